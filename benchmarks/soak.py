"""Random models, supports, sizes and options, fitted and checked: is any answer wrong without a word?

    python benchmarks/soak.py [--fits 20000] [--seed 0] [--jobs 2] [--seconds 540] [--keep FILE]

Every fit has a number; ``--only NUMBER`` does it again and tells more. With ``--keep`` each is written down as it ends,
and a run that was cut off goes on where it was. Of each:

- the model is drawn (line, half line, interval, circle, spins, a few values, functions, mixed), then the number of
  samples, the estimator and its options; samples are exact;
- what must always hold is checked: finite parameters, a status for each variable, files that read back, draws inside
  the supports, a score; of every fifth without a penalty, the same answer with columns in the opposite order;
- if nothing was said (no warning, no note), parameters must be within eight of their standard errors, and what has no
  standard errors, after a penalty, must predict new samples nearly as well as the truth. What fails here is wrong
  without a word.

A refusal (an error with a message) is an answer, and is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from isodus import ISODUS, PolynomialModel, PseudoLikelihood, ScoreMatching, __version__
from isodus.datasets import double_wells, sparse_polynomial
from isodus.functions import HeavyTails, Hermite, Legendre, LogPowers

INF = np.inf
FAR, WORSE = 8.0, 0.25  # standard errors; nats a variable
KINDS = (
    "Gaussian",
    "quartic",
    "double wells",
    "half line",
    "interval",
    "circle",
    "spins",
    "values",
    "mixed",
    "functions",
)


def random_model(kind: str, rng: np.random.Generator) -> tuple[PolynomialModel, dict]:
    """A model of a kind, and the options that an estimator needs for its terms."""
    p = int(rng.integers(1, 5))
    pairs = [(i, i + 1) for i in range(p - 1) if rng.random() < 0.8]  # a chain, of which samples are exact and quick
    size = lambda scale: float(scale * rng.standard_normal())
    if kind == "Gaussian":
        theta = {(i, i): 0.5 + rng.random() for i in range(p)} | {(i,): size(0.5) for i in range(p)}
        theta |= {pair: size(0.15) for pair in pairs}
        return PolynomialModel.from_dict(theta), dict(degree=2)
    if kind == "quartic":
        model = sparse_polynomial(max(p, 2), 4, max_order=2, treewidth=1, rng=rng)
        return model, dict(degree=4, max_order=2)
    if kind == "double wells":
        return double_wells(p, height=1 + rng.random(), coupling=size(0.3)), dict(degree=4, max_order=2)
    if kind == "half line":
        low = float(rng.choice([0.0, -2.0, 5.0]))
        theta = {(i,): 0.5 + rng.random() for i in range(p)} | {pair: 0.3 * rng.random() for pair in pairs}
        theta |= {(i, i): 0.2 * rng.random() for i in range(p)}
        model = PolynomialModel.from_dict(theta, support=(0.0, INF))
        return model, dict(degree=2, support=(low, INF), shift=low)
    if kind == "interval":
        theta = {(i,) * d: size(1.0) for i in range(p) for d in (1, 2)} | {pair: size(0.8) for pair in pairs}
        return PolynomialModel.from_dict(theta, support=(-1.0, 2.0)), dict(degree=2, support=(-1.0, 2.0))
    if kind == "circle":
        theta = {(i,): size(0.8) for i in range(p)} | {(i, i): size(0.5) for i in range(p)}
        theta |= {pair: size(0.7) for pair in pairs}
        return PolynomialModel.from_dict(theta, support="circle"), dict(degree=2, support="circle")
    if kind == "spins":
        theta = {(i,): size(0.3) for i in range(p)} | {pair: size(0.4) for pair in pairs}
        if p > 2:
            theta[0, 1, 2] = size(0.4)
        return PolynomialModel.from_dict(theta, support="spin"), dict(degree=3, max_order=3, support="spin")
    if kind == "values":
        values = [0, 1, 2, 3][: int(rng.integers(2, 5))]
        theta = {(i,): size(0.5) for i in range(p)} | {pair: size(0.2) for pair in pairs}
        return PolynomialModel.from_dict(theta, support=values), dict(degree=2, support=values)
    if kind == "mixed":
        where = [(None, "spin", "positive", (0.0, 1.0))[int(k)] for k in rng.integers(0, 4, p)]
        theta = {(i,): 0.5 + rng.random() for i in range(p)} | {(i, i): 0.5 for i in range(p) if where[i] != "spin"}
        theta |= {pair: 0.3 * rng.random() for pair in pairs}
        return PolynomialModel.from_dict(theta, support=where), dict(degree=2, support=where)
    functions = (Hermite(), Legendre(-1.0, 1.0), LogPowers(), HeavyTails())[int(rng.integers(4))]
    theta = {(i,): min(size(0.3), 0.9) for i in range(p)} | {(i, i): 1.0 + rng.random() for i in range(p)}
    if isinstance(functions, Legendre):
        theta |= {pair: size(0.3) for pair in pairs}
    model = PolynomialModel.from_dict(theta, functions=functions)
    return model, dict(degree=2, max_order=2 if isinstance(functions, Legendre) else 1, functions=functions)


def one(number: int, seed: int, verbose: bool = False) -> dict:
    """One fit: what it was, what came of it."""
    rng = np.random.default_rng([seed, number])
    kind = KINDS[int(rng.integers(len(KINDS)))]
    truth, options = random_model(kind, rng)
    shift, p = options.pop("shift", 0.0), len(truth.names)
    n = int(np.exp(rng.uniform(np.log(60), np.log(6000))))
    made = int(rng.choice(4, p=[0.5, 0.15, 0.2, 0.15]))
    make = (ISODUS, lambda **o: ISODUS(refine=0, **o), PseudoLikelihood, ScoreMatching)[made]
    name = ("ISODUS", "paper's form", "pseudo-likelihood", "score matching")[made]
    if p > 1 and rng.random() < 0.25:
        options["l1"] = "auto" if rng.random() < 0.5 else float(rng.uniform(0.5, 3) / np.sqrt(n))
    out = dict(number=number, kind=kind, estimator=name, penalised="l1" in options, p=p, n=n, outcome="fine", why="")
    X = np.asarray(truth.sample(n, rng=rng)) + shift
    new = np.asarray(truth.sample(500, rng=rng))
    estimator = make(**options)
    if verbose:
        print(truth, estimator, n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit = estimator.fit(X)
        except ValueError as error:
            return out | dict(outcome="refused", why=str(error)[:120])
    said = [str(w.message) for w in caught] + [
        note for note in fit.notes_ if "left out" not in note and "penalised terms" not in note
    ]
    if verbose:
        print(fit.model_.to_frame().to_string(), *said, sep="\n")
    broken = invariants(fit, X, rng, bool(said))
    if not broken and not said and p > 1 and number % 5 == 0 and not out["penalised"]:
        broken = turned(fit, make, options, X)
    if broken:
        return out | dict(outcome="broken", why=broken)
    if said:
        return out | dict(outcome="said", why=said[0][:120])
    behind = float(np.mean(truth.conditional_log_density(new)) - fit.score(new + shift))
    out["behind"] = behind
    if not out["penalised"] and not shift:
        known = truth.to_dict()
        frame = fit.model_.to_frame()
        z = (frame["theta"] - [known.get(term, 0.0) for term in fit.model_.basis.terms]) / frame["stderr"]
        out["z"] = z[np.isfinite(z)].tolist()
        if np.abs(out["z"]).max(initial=0.0) > FAR:
            return out | dict(outcome="wrong", why=f"a parameter is {np.abs(out['z']).max():.1f} standard errors off")
        if not np.all(np.isfinite(z)):
            return out | dict(outcome="wrong", why="a parameter has no standard error, and nothing is said of it")
        return out
    if not behind < WORSE + 20 * len(fit.model_.theta) / (n * p):
        return out | dict(outcome="wrong", why=f"new samples are predicted worse by {behind:.2g} nats a variable")
    return out


def invariants(fit, X: np.ndarray, rng: np.random.Generator, doubted: bool) -> str:
    """What does not hold that always must; empty if all does. What is in doubt need not be sampled from."""
    model = fit.model_
    if not np.all(np.isfinite(model.theta)):
        return "parameters are not finite"
    if len(fit.status_) != X.shape[1]:
        return "a variable has no status"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save(path)
        again = PolynomialModel.load(path)
    if not np.array_equal(again.energy(X[:50]), model.energy(X[:50])) or again.basis != model.basis:
        return "the file reads back as another model"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of samples without a conditional density, which score −inf
        values = fit.score_samples(X)
    if np.any(np.isnan(values)):
        return "a score is no number"
    proved = fit.integrability_ is not None and fit.integrability_.status == "integrable"
    if model.basis.spaces is not None and proved and not doubted:
        drawn = (np.asarray(model.sample(20, rng=rng)) - model.location) / model.scale
        for space, y in zip(model.basis.spaces, drawn.T, strict=True):
            if not support_holds(space.support, y):
                return "a draw is outside of its support"
    return ""


def turned(fit, make, options: dict, X: np.ndarray) -> str:
    """How the answer differs by more than a fifth of its error with columns in the opposite order; empty if not."""
    if isinstance(options.get("support"), list) and any(not isinstance(s, int | float) for s in options["support"]):
        options = options | dict(support=options["support"][::-1])  # a support a variable
    other = make(**options).fit(X[:, ::-1]).model_.to_dict("standardized")
    last = X.shape[1] - 1
    values = fit.model_.to_dict("standardized").items()
    for (term, theta), error in zip(values, fit.model_.stderr("standardized"), strict=True):
        there = other[tuple(sorted(last - i for i in term))]
        if not abs(theta - there) <= 0.2 * error + 1e-6 * (1 + abs(theta)):
            return f"{term} is {theta:.4g} ± {error:.2g}, and {there:.4g} with columns in the opposite order"
    return ""


def support_holds(support, y: np.ndarray) -> bool:
    """Whether all lie inside, ends of an interval to rounding."""
    if support.values is not None or support.circle:
        return bool(np.all(support.holds(y)))
    return bool(np.all((y >= support.low - 1e-12) & (y <= support.high + 1e-12)))


def summary(found: list[dict], seconds: float, seed: int) -> str:
    """The table."""
    count = Counter(one["outcome"] for one in found)
    lines = [
        f"isodus {__version__}, seed {seed}: {len(found):,} fits in {seconds:,.0f} s; "
        + ", ".join(f"{count[what]:,} {what}" for what in ("fine", "said", "refused", "broken", "wrong")),
        "",
        f"{'':22}{'fits':>7}{'fine':>7}{'said':>7}{'refused':>9}{'broken':>8}{'wrong':>7}{'rms z':>8}{'|z|<1.96':>10}",
    ]
    by: dict[str, list[dict]] = defaultdict(list)
    for entry in found:
        by[entry["kind"]].append(entry)
        by[entry["estimator"] + (", l1" if entry["penalised"] else "")].append(entry)
    for name, some in by.items():
        what = Counter(entry["outcome"] for entry in some)
        z = np.concatenate([[], *(entry.get("z", []) for entry in some)])
        tail = f"{np.sqrt(np.mean(z**2)):8.2f}{np.mean(np.abs(z) < 1.96):10.3f}" if len(z) else ""
        counts = (
            f"{len(some):7,}{what['fine']:7,}{what['said']:7,}{what['refused']:9,}{what['broken']:8,}{what['wrong']:7,}"
        )
        lines.append(f"{name:22}{counts}{tail}")
    for entry in found:
        if entry["outcome"] in ("broken", "wrong", "crash"):
            what = {k: entry[k] for k in ("number", "kind", "estimator", "penalised", "p", "n", "outcome", "why")}
            lines.append(f"--only {entry['number']}: {what}")
    return "\n".join(lines)


def safely(number: int, seed: int, until: float) -> dict | None:
    """One fit, whatever happens; none if time is up."""
    if time.time() > until:
        return None
    try:
        return one(number, seed)
    except Exception:
        where = traceback.format_exc().strip().split("\n")
        why = where[-1][:120] + " at " + next((line.strip() for line in reversed(where) if "isodus" in line), "")[:100]
        return dict(number=number, kind="?", estimator="?", penalised=False, p=0, n=0, outcome="broken", why=why)


def kept(path: str | None, seed: int) -> tuple[list[dict], float]:
    """What an earlier run found, and the seconds it took."""
    if path is None or not Path(path).exists():
        return [], 0.0
    found = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    if any((entry["seed"], entry["version"]) != (seed, __version__) for entry in found):
        raise SystemExit(f"{path} is of another seed or version: name another file")
    return found, max((entry["seconds"] for entry in found), default=0.0)


def main() -> None:
    """Print the summary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fits", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=INF, help="no new fits after so long")
    parser.add_argument("--keep", help="a file of what was found, to go on from")
    parser.add_argument("--only", type=int, help="the number of a fit to do again")
    options = parser.parse_args()
    if options.only is not None:
        print(one(options.only, options.seed, verbose=True))
        return
    before, spent = kept(options.keep, options.seed)
    started, until = time.perf_counter(), time.time() + options.seconds
    todo = sorted(set(range(options.fits)) - {entry["number"] for entry in before})
    calls = (delayed(safely)(number, options.seed, until) for number in todo)
    done = Parallel(n_jobs=options.jobs, return_as="generator_unordered", pre_dispatch=4 * options.jobs)(calls)
    found = before
    with open(options.keep or os.devnull, "a", encoding="utf-8") as file:
        for entry in done:
            if entry is not None:
                found.append(entry)
                seconds = round(spent + time.perf_counter() - started, 1)
                file.write(json.dumps(entry | dict(seed=options.seed, version=__version__, seconds=seconds)) + "\n")
    found.sort(key=lambda entry: entry["number"])
    print(summary(found, spent + time.perf_counter() - started, options.seed))


if __name__ == "__main__":
    main()
