"""How fast is the graph of a Gaussian recovered, against the lasso in its many forms?

Random 3-regular graphs, precision 1 on the diagonal and κ = 0.25 on edges; n = 2,000 samples of p = 100, 300 and 1,000
variables. Every method gets the raw X and gives back a graph; its seconds are those of all of that (for R's huge,
without handing over X). Ours: `PseudoLikelihood(2, l1=λ)` and `ISODUS(2, l1=λ)`, whole fits, n_jobs as it is by
default: one thread, also of BLAS, while peers have BLAS on all cores. Peers, on standardised X: scikit-learn's
`graphical_lasso`; a `Lasso` a node, of scikit-learn and of skglm; GGLasso's ADMM; R's huge, if R has it; and thirty
lines of numba, coordinate descent on the Gram matrix, plain or with an active set, on one thread or all, whichever is
quicker, compiled beforehand. An edge of a node-wise method is one that both ends keep.

Each runs at a λ at which it recovers the graph, found before it is timed: λ = c √(log p / n), at p = 100 with every c
of a geometric grid of eleven from 1.2 to 4.5; of those without errors the middle one, and where there is none the one
with the fewest. For more variables the c that was best for fewer comes first, and its neighbours only if it makes
errors, at most three in all. Methods that take less than ten seconds run several times, in turn, and medians are
compared.

    python benchmarks/structure_gaussian.py [--quick] [--only 300] [--repeats 3] [--peers skglm huge]
"""

import argparse
import contextlib
import io
import os
import time
import warnings
from functools import partial

import numpy as np
import r_huge
from sklearn.covariance import graphical_lasso
from sklearn.linear_model import Lasso

from isodus import ISODUS, PseudoLikelihood
from isodus.datasets import regular_gaussian

try:
    import numba
except ImportError:
    numba = None
try:
    import skglm
except ImportError:
    skglm = None
try:
    from gglasso.solver.single_admm_solver import ADMM_SGL
except ImportError:
    ADMM_SGL = None

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
KAPPA, N = 0.25, 2000
CONSTANTS = np.geomspace(1.2, 4.5, 11)
PATIENCE = 10  # seconds beyond which once is enough
SIZES = (100, 300, 1000)

COMPILED, PLAIN = "lasso on the Gram matrix, numba, active set", "lasso on the Gram matrix, numba, plain sweeps"
LIKELIHOOD, TILTED, LASSO = "isodus, pseudo-likelihood", "isodus, tilted ISODUS", "lasso, scikit-learn"


def seconds(function, *arguments):
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def standardized(X):
    Z = X - X.mean(axis=0)
    return np.asfortranarray(Z / Z.std(axis=0))


def gram(X):
    Z = standardized(X)
    return Z.T @ Z / len(Z)


def ours(estimator, X, l1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an empty model, in the search
        model = estimator(2, l1=l1).fit(X).model_
    place = {name: i for i, name in enumerate(model.names)}
    found = np.zeros((X.shape[1],) * 2, bool)
    for a, b in model.hyperedges():
        found[place[a], place[b]] = found[place[b], place[a]] = True
    return found


def both(B):
    """The edges that both their ends keep; B: coefficients, a row a node."""
    return (B != 0) & (B.T != 0)


def node_wise(make, X, l1):
    Z, p = standardized(X), X.shape[1]
    B = np.zeros((p, p))
    for i in range(p):
        others = np.arange(p) != i
        B[i, others] = make(alpha=l1, fit_intercept=False).fit(np.asfortranarray(Z[:, others]), Z[:, i]).coef_
    return both(B)


def covariance_lasso(X, l1):
    found = np.abs(graphical_lasso(gram(X), l1)[1]) > 1e-10
    np.fill_diagonal(found, False)
    return found


def admm(X, l1):
    S = gram(X)
    with contextlib.redirect_stdout(io.StringIO()):  # it tells how it ended
        found, _ = ADMM_SGL(S, l1, np.eye(len(S)))
    edges = found["Theta"] != 0
    np.fill_diagonal(edges, False)
    return edges


def coordinate_descent(G, l1, tol):
    """Lasso of every variable on the others: min ½ βᵀGβ − G_i·β + λ|β|, β_i = 0; a row a variable."""
    p = len(G)
    B = np.zeros((p, p))
    for i in numba.prange(p):
        beta, active, many = B[i], np.empty(p, np.int64), 0
        inside = np.zeros(p, np.bool_)
        inside[i] = True
        rest = G[i].copy()  # G_i − Gβ
        while True:
            before = many
            for j in range(p):
                if not inside[j] and abs(rest[j]) > l1 + tol:
                    inside[j], active[many] = True, j
                    many += 1
            if many == before:
                break
            moved = 1.0
            while moved > tol:
                moved = 0.0
                for a in range(many):
                    j = active[a]
                    z = rest[j] + G[j, j] * beta[j]
                    change = np.sign(z) * max(abs(z) - l1, 0.0) / G[j, j] - beta[j]
                    if change != 0.0:
                        beta[j] += change
                        moved = max(moved, abs(change))
                        for b in range(many):
                            rest[active[b]] -= G[j, active[b]] * change
            rest[:] = G[i]
            for a in range(many):
                j = active[a]
                if beta[j] != 0.0:
                    rest -= beta[j] * G[j]
    return B


def cyclic(G, l1, tol):
    """The same by plain sweeps over all coordinates."""
    p = len(G)
    B = np.zeros((p, p))
    for i in numba.prange(p):
        beta, rest = B[i], G[i].copy()  # G_i − Gβ
        moved = 1.0
        while moved > tol:
            moved = 0.0
            for j in range(p):
                if j != i:
                    z = rest[j] + G[j, j] * beta[j]
                    change = np.sign(z) * max(abs(z) - l1, 0.0) / G[j, j] - beta[j]
                    if change != 0.0:
                        beta[j] += change
                        rest -= change * G[j]
                        moved = max(moved, abs(change))
    return B


def compiled(solve, X, l1):
    return both(solve(gram(X), l1, 1e-7))


def methods():
    """Functions (X, λ) → graph, and what is missing."""
    out = {LIKELIHOOD: partial(ours, PseudoLikelihood), TILTED: partial(ours, ISODUS)}
    missing = []
    if numba is None:
        missing.append("numba, the compiled peer")
    else:
        for label, solve in ((COMPILED, coordinate_descent), (PLAIN, cyclic)):
            for name, parallel in ((f"{label}, 1 thread", False), (f"{label}, {CORES} threads", True)):
                out[name] = partial(compiled, numba.njit(parallel=parallel)(solve))
    out[LASSO] = partial(node_wise, Lasso)
    if skglm is None:
        missing.append("skglm")
    else:
        out["lasso, skglm"] = partial(node_wise, skglm.Lasso)
    out["graphical lasso, scikit-learn"] = covariance_lasso
    if ADMM_SGL is None:
        missing.append("GGLasso (gglasso)")
    else:
        out["graphical lasso, GGLasso"] = admm
    if r_huge.there():
        out["lasso, R's huge"] = r_huge.told
    else:
        missing.append("lasso, R's huge")
    return out, missing


def run(method, X, l1):
    """Seconds and the graph."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a penalty too weak to converge, in a search
        duration, found = seconds(method, X, l1)
    return (found[1], found[0]) if isinstance(found, tuple) else (duration, found)


def errors(found, truth):
    """Edges that were missed, and that were added."""
    return int(np.triu(truth & ~found, 1).sum()), int(np.triu(found & ~truth, 1).sum())


def search(method, X, truth, before=None, constants=CONSTANTS):
    """A constant c at which the graph is recovered, or nearly, and the outcome of `run` there.

    before: that for fewer variables, the first to try.
    """
    unit, tried = np.sqrt(np.log(X.shape[1]) / len(X)), {}

    def attempt(k):
        tried[k] = run(method, X, constants[k] * unit)
        return errors(tried[k][1], truth)

    if before is None:
        wrong = np.array([sum(attempt(k)) for k in range(len(constants))])
        best = np.flatnonzero(wrong == wrong.min())
        k = int(best[len(best) // 2])
        return constants[k], tried[k]
    k = int(np.argmin(np.abs(constants - before)))
    while len(tried) < 3 and 0 <= k < len(constants) and k not in tried:
        missed, added = attempt(k)
        if missed + added == 0:
            break
        k += 1 if added > missed else -1
    k = min(tried, key=lambda k: sum(errors(tried[k][1], truth)))
    return constants[k], tried[k]


def draw(p):
    truth = regular_gaussian(p, 3, KAPPA, rng=p)
    return np.array(truth.sample(N, rng=1)), edges(truth)


def edges(truth):
    graph = truth.precision() != 0
    np.fill_diagonal(graph, False)
    return graph


def compare(p, todo, constants, repeats):
    """Prints a table; median seconds of every method."""
    X, truth = draw(p)
    print(f"\np = {p:,}: {np.triu(truth).sum():,} edges, n = {N:,}", flush=True)
    outcomes, l1 = {}, {}
    for name, method in todo.items():
        constants[name], first = search(method, X, truth, constants.get(name))
        l1[name] = constants[name] * np.sqrt(np.log(p) / N)
        outcomes[name] = [first] if first[0] > PATIENCE else []
    for _ in range(repeats):
        for name, method in todo.items():
            if not outcomes[name] or outcomes[name][0][0] <= PATIENCE:
                outcomes[name].append(run(method, X, l1[name]))
    durations = {name: [duration for duration, _ in values] for name, values in outcomes.items()}
    wrong = {name: errors(values[-1][1], truth) for name, values in outcomes.items()}
    print(f"  {'':<46} seconds  fastest      λ  missed  added")
    for name, values in durations.items():
        missed, added = wrong[name]
        print(
            f"  {name:<46} {np.median(values):7.3f}  {min(values):7.3f}  {l1[name]:.3f}  {missed:6}  {added:5}"
            + ("" if len(values) > 1 else "  once"),
            flush=True,
        )
    return {name: float(np.median(values)) for name, values in durations.items()}


def speed(options):
    todo, missing = methods()
    if options.peers:
        kept = [*options.peers, COMPILED, PLAIN, "isodus"]
        todo = {name: method for name, method in todo.items() if any(word in name for word in kept)}
    print(f"{CORES} cores; isodus with n_jobs=None, which is one thread, also of BLAS; peers have BLAS on all")
    for what in missing:
        print(f"missing, and so not compared: {what}")
    sizes = [options.only] if options.only else SIZES[:1] if options.quick else SIZES
    constants, medians = {}, {}
    for p in (q for q in SIZES if q < sizes[0]):
        X, truth = draw(p)
        constants = {name: search(method, X, truth, constants.get(name))[0] for name, method in todo.items()}
    for p in sizes:
        medians[p] = compare(p, todo, constants, options.repeats)
    print()
    for p, median in medians.items():
        mine, tilted = median[LIKELIHOOD], median[TILTED]
        for label in (PLAIN, COMPILED) if numba else ():
            best = min(value for name, value in median.items() if name.startswith(label))
            what = label.split(", ")[-1]
            print(f"p = {p:,}, pseudo-likelihood / compiled lasso, {what}: {mine / best:.2f} (wanted: at most 1.5)")
            print(f"p = {p:,}, tilted ISODUS / compiled lasso, {what}: {tilted / best:.2f} (wanted: at most 5)")
        if LASSO in median:
            print(
                f"p = {p:,}, lasso of scikit-learn / tilted ISODUS: {median[LASSO] / tilted:.1f} (wanted: at least 10)"
            )
    if 300 in medians and 1000 in medians:
        for name in (LIKELIHOOD, TILTED):
            power = np.log(medians[1000][name] / medians[300][name]) / np.log(1000 / 300)
            print(f"{name}, seconds grow as p to the power of {power:.2f} from 300 to 1,000 (wanted: at most 2)")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="p = 100")
    parser.add_argument("--only", type=int, help="one p")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peers", nargs="+", help="besides the compiled one only those with such words in their names")
    speed(parser.parse_args())


if __name__ == "__main__":
    main()
