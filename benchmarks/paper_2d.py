"""How fast is the paper's two-variable case, against Ipopt on the same problems and against its own floor?

Pair (1, 2) of the authors' model, all terms of degree 2 to 4, n = 1e5, ν = δ = 2, tolerance 1e-8, both
nodes, from raw X. Ipopt through CasADi gets the same node problems (log objective, one expression over all
samples, exact derivatives). The two run in turn, several times, and medians are compared. The floor of a
Newton method is one evaluation of value, gradient and Hessian from raw X.

    python benchmarks/paper_2d.py [--repeats 7] [--n-jobs 2]
"""

import argparse
import time

import numpy as np
from scipy.special import gamma
from threadpoolctl import threadpool_limits

from isodus import ISODUS, MonomialBasis
from isodus.datasets import paper_pair
from isodus.losses.screening import Screening
from isodus.objective import Objective
from isodus.samples import ArraySamples

try:
    import casadi
except ImportError:
    casadi = None

NU = DELTA = 2.0
BASIS = MonomialBasis(2, 4, min_degree=2)
MISSING = "CasADi is missing, and with it Ipopt, so there is nothing to compare with: pip install casadi"


def fit(X, n_jobs):
    estimator = ISODUS(
        basis=BASIS,
        nu=NU,
        delta=DELTA,
        center=False,
        scale=False,
        refine=0,
        consensus="mean",
        integrable="warn",
        tol=1e-8,
        n_jobs=n_jobs,
    )
    return estimator.fit(X)


def ipopt(X, i, basis=BASIS):
    """Node i by Ipopt: its parameters in the order of `basis.local(i)`, and the seconds of Ipopt alone."""
    e = basis.degree + DELTA
    x, columns = X[:, i], []
    for k in basis.local(i).terms:
        term = basis.terms[k]
        l = term.count(i)
        c = 0.0 if l % 2 else NU ** (-l / e) * gamma((l + 1) / e) / gamma(1 / e)
        columns.append((x**l - c) * np.prod(X[:, [v for v in term if v != i]], axis=1))
    G, log_r = np.stack(columns, axis=1), -NU * np.abs(x) ** e
    theta = casadi.MX.sym("theta", G.shape[1])
    f = casadi.log(casadi.sum1(casadi.exp(casadi.DM(G) @ theta + casadi.DM(log_r))) / len(x))
    options = {"ipopt.tol": 1e-8, "ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
    solver = casadi.nlpsol("solver", "ipopt", {"x": theta, "f": f}, options)
    started = time.perf_counter()
    solution = solver(x0=np.zeros(G.shape[1]))
    return np.array(solution["x"]).ravel(), time.perf_counter() - started


def mean_of_nodes(basis, answers):
    """The parameters of a model from those of its nodes, as `ipopt` gives them."""
    total = np.zeros(len(basis))
    for i, (theta, _) in enumerate(answers):
        np.add.at(total, basis.local(i).terms, theta)
    return total / basis.orders


def evaluate(X):
    """Value, gradient and Hessian of both nodes at zero, from raw X."""
    loss = Screening.of_degree(4, np.full(2, NU), np.full(2, DELTA), np.zeros(2), "log")
    samples = ArraySamples(X, None, np.zeros(2), np.ones(2))
    with threadpool_limits(1, user_api="blas"):
        return Objective(BASIS, loss, samples).evaluate([0, 1], [np.zeros(9), np.zeros(9)])


def seconds(function, *arguments):
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--n-jobs", type=int, default=2)
    options = parser.parse_args()
    if casadi is None:
        return print(MISSING)
    X = paper_pair(1).sample(100_000, rng=0)
    evaluate(X), fit(X, options.n_jobs)
    ours, evaluations, theirs, solves = [], [], [], []
    for _ in range(options.repeats):
        for _ in range(5):
            evaluations.append(seconds(evaluate, X)[0])
            duration, estimator = seconds(fit, X, options.n_jobs)
            ours.append(duration)
        duration, answers = seconds(lambda: [ipopt(X, i) for i in (0, 1)])
        theirs.append(duration)
        solves.append(sum(solve for _, solve in answers))
    difference = np.abs(estimator.model_.theta - mean_of_nodes(BASIS, answers)).max()

    def show(what, durations):
        print(f"{what:<52} median {np.median(durations) * 1e3:8.1f} ms, fastest {np.min(durations) * 1e3:8.1f} ms")

    print(f"n = 100,000, {options.repeats} rounds, n_jobs = {options.n_jobs}")
    show("isodus fit, both nodes, from raw X", ours)
    show("isodus value, gradient and Hessian, both nodes", evaluations)
    show("Ipopt, both nodes, from raw X", theirs)
    show("Ipopt, both nodes, its solve calls only", solves)
    print(f"iterations of isodus, on subsamples and all samples: {estimator.n_iter_.tolist()}")
    print(f"largest difference of the answers: {difference:.1e} (wanted: below 1e-6)")
    print(f"Ipopt / isodus, solve calls only: {np.median(solves) / np.median(ours):.1f}")
    print(f"fit / one evaluation: {np.median(ours) / np.median(evaluations):.2f} (wanted: at most 3.5)")
    print(f"Ipopt / isodus: {np.median(theirs) / np.median(ours):.1f} (wanted: at least 40)")


if __name__ == "__main__":
    main()
