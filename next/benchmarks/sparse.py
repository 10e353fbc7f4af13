"""Structure by an L1 penalty beside the present library's, on the same samples.

Gaussians on random 3-regular graphs with precisions 1 and .25; double wells of height 2 in a chain coupled by .7, all
pairs up to degree 4; interactions of four, three and two variables in turn, all terms up to degree 4 in up to four
variables; and 25 blocks of four with a pair, a product of three and one of four, among all 4.6 million such terms. "F1"
is of sets of variables, the mean over sets; seconds are those of the processor per fit, on one thread.
A number is a strength in units of noise (.12 for Gaussians, .1 elsewhere); "ebic" chooses it, and the terms that are
left are estimated again. The present library has l1=number and l1="auto".

    python benchmarks/sparse.py [--sets 3] [--only wells] [--quick]
"""

import argparse
import warnings

import numpy as np
from common import Present, machine, one_thread_seconds, write_table

from isodus import ISODUS, L1, PolynomialModel, PseudoLikelihood, ScoreMatching, datasets

PRESENT = """
import time, warnings
import isodus
warnings.simplefilter("ignore")
def answer(job):
    make = getattr(isodus, job["estimator"])
    started = time.process_time()
    est = make(job["degree"], max_order=job["order"], l1=job["l1"], n_jobs=1).fit(job["X"])
    seconds = time.process_time() - started
    names = est.model_.names
    return {"seconds": seconds, "sets": [[names.index(v) for v in edge] for edge in est.model_.hyperedges()]}
"""
ESTIMATORS = {"ISODUS": ISODUS, "PseudoLikelihood": PseudoLikelihood, "ScoreMatching": ScoreMatching}


def gaussian(p):
    def make(seed):
        P = datasets.regular_precision(p, seed=seed)
        X = np.random.default_rng([seed, 1]).standard_normal((2000, p)) @ np.linalg.cholesky(np.linalg.inv(P)).T
        return X, {tuple(pair) for pair in np.argwhere(np.triu(P, 1)).tolist()}

    return make


def wells(p, n):
    return lambda seed: (datasets.double_wells(n, p, coupling=0.7, seed=seed), {(i, i + 1) for i in range(p - 1)})


def bodies(sizes, n):
    def make(seed):
        keys = datasets.many_body_theta(sizes)
        return datasets.many_body(n, sizes, seed=seed), {tuple(sorted(set(key))) for key in keys if len(set(key)) > 1}

    return make


def blocks(p, n):
    """Independent blocks of four variables with own terms x²/4 + x⁴/24."""
    between = {(0, 1): 0.2, (1, 2, 3): 0.1, (0, 1, 2, 3): 0.1}
    own = {(i,) * d: c for i in range(4) for d, c in ((2, 1 / 4), (4, 1 / 24))}

    def make(seed):
        Z = PolynomialModel.from_dict(own | between).sample(p // 4 * n, random_state=seed)
        X = np.asarray(Z).reshape(p // 4, n, 4).transpose(1, 0, 2).reshape(n, p)
        return X, {tuple(4 * b + i for i in key) for b in range(p // 4) for key in between}

    return make


# name: (samples and truth, degree, order, estimators, strength)
ROWS = {
    "Gaussian, p = 100": (gaussian(100), 2, 2, tuple(ESTIMATORS), 0.12),
    "Gaussian, p = 1,000": (gaussian(1000), 2, 2, tuple(ESTIMATORS), 0.12),
    "wells in a chain, p = 12": (wells(12, 3000), 4, 2, tuple(ESTIMATORS), 0.1),
    "four, three, two, p = 9": (bodies((4, 3, 2), 5000), 4, 4, tuple(ESTIMATORS), 0.1),
    "four, three, two, p = 20": (bodies((4, 3, 2, 4, 3, 2, 2), 5000), 4, 4, ("PseudoLikelihood", "ScoreMatching"), 0.1),
    "blocks of four, p = 100, n = 20,000": (blocks(100, 20_000), 4, 4, ("PseudoLikelihood", "ScoreMatching"), 0.042),
}


def f1(found, truth):
    found = {tuple(sorted(edge)) for edge in found}
    return 2 * len(found & truth) / max(len(found) + len(truth), 1)


def ours(estimator, X, degree, order, strength):
    est = ESTIMATORS[estimator](degree, max_order=order, penalty=L1(strength), n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = one_thread_seconds(lambda: est.fit(X))
    return seconds, [tuple(int(name[1:]) for name in edge) for edge in est.model_.hyperedges()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rows = []
    with Present(PRESENT) as present:
        for name, (make, degree, order, estimators, number) in ROWS.items():
            if (options.only and options.only not in name) or (options.quick and ("1,000" in name or "blocks" in name)):
                continue
            for estimator in estimators:
                for strength in (number, "ebic"):
                    new, old = [], []
                    for seed in range(1 if options.quick else options.sets):
                        X, truth = make(seed)
                        seconds, found = ours(estimator, X, degree, order, strength)
                        new.append((seconds, f1(found, truth)))
                        l1 = "auto" if strength == "ebic" else strength
                        there = present.ask(X=X, estimator=estimator, degree=degree, order=order, l1=l1)
                        old.append((there["seconds"], f1(there["sets"], truth)))
                    (s, score), (t, other) = np.mean(new, axis=0), np.mean(old, axis=0)
                    least = min(row[0] for row in new) / min(row[0] for row in old)
                    rows.append(
                        (name, estimator, strength, len(new), f"{score:.3f}", f"{other:.3f}", s, t, f"{least:.2f}")
                    )
                    print(*rows[-1], flush=True)
    header = ("model", "estimator", "strength", "sets", "F1", "F1, present", "s", "s, present", "ratio of least s")
    write_table("sparse", header, rows, f"{__doc__}\n{machine()}.")


if __name__ == "__main__":
    main()
