"""Are interactions of two, three and four variables found among all that there might be, and what does a path cost?

Sparse random models of 30 variables (`hypertree_polynomial`: groups of four, three and two in turn, each sharing
one variable with an earlier one, one monomial each, as large as a bound allows that makes the model integrable), 20,000
samples, drawn exactly. In `sparse_polynomial`, whose interactions share that bound at few variables, most are within a
few standard errors of none, and nothing could find them among so many candidates. All 46,375 monomials of degree up to
4 are candidates. ISODUS and score matching choose their penalty themselves (l1="auto"). The peer is a lasso of every
variable on all standardised products of the others up to degree 3, scikit-learn's coordinate descent on their Gram
matrix, at the λ of a grid of twelve at which its F1 is highest: it is told the truth there, as the others are not. It
finds a group of variables if each of them, or in a second line any, takes in a product whose variables are the rest.
Groups of variables (hyperedges) and single terms are counted, self terms are not; terms are those in standardised
variables, whose origin is not quite that of the truth. The lasso has no terms: x_i² x_j is no product of x_i and
others. Seconds are those of everything, with the choice of λ.

Then a path of 50 λ, evenly on a logarithmic scale from the least that empties the model down to some λ, against one
cold fit at that λ: `isodus.path.follow` and `at`, both without the model without interactions, from which both start.

    python benchmarks/structure_fourbody.py [--quick] [--models 1] [--only recovery]
"""

import argparse
import os
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.linear_model import lasso_path

from isodus import ISODUS, MonomialBasis, ScoreMatching
from isodus.arrays import one_blas_thread
from isodus.criteria import likelihood_nodes
from isodus.datasets import hypertree_polynomial, regular_gaussian
from isodus.path import LOOSE, at, begin, follow, settled
from isodus.pilots import confined, floors
from isodus.regression import independent
from isodus.samples import ArraySamples

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
LAMBDAS = np.geomspace(0.2, 0.01, 12)
POINTS = 50


def seconds(function, *arguments):
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def draw(p, n, seed):
    """A model and samples of it."""
    truth = hypertree_polynomial(p, rng=seed)
    X = truth.sample(n, rng=1000 + seed, n_jobs=CORES)
    assert X.info.method == "exact", X.info
    return truth, np.array(X)


def groups(terms):
    return {tuple(sorted(set(term))) for term in terms if len(set(term)) > 1}


def interactions(model):
    """Terms of two variables or more that are not zero, in standardised variables."""
    return {term for term, value in model.to_dict("standardized").items() if value != 0 and len(set(term)) > 1}


def f1(found, truth):
    """F1, precision, recall."""
    right = len(found & truth)
    precision, recall = right / max(len(found), 1), right / len(truth)
    return 2 * right / (len(found) + len(truth)), precision, recall


def in_words(found, truth):
    score, precision, recall = f1(found, truth)
    return f"{score:.3f}      {precision:.3f}   {recall:.3f}"


def learn(estimator, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        est = estimator(4, max_order=4, l1="auto", n_jobs=CORES).fit(X)
    for message in dict.fromkeys(str(w.message) for w in caught):
        print(f"  {estimator.__name__} warns: {message}")
    found = interactions(est.model_)
    return [(estimator.__name__, groups(found), found, est.l1_)]


def products(Z, terms):
    """Each product of columns of Z, as columns; a term is its variables, in increasing order of degree."""
    columns = {(): np.ones(len(Z))}
    for term in terms:
        columns[term] = columns[term[:-1]] * Z[:, term[-1]]
    return np.stack([columns[term] for term in terms], axis=1)


def lasso(X, truth):
    """The groups that all their variables, and that any of them takes in, each at its best λ."""
    n, p = X.shape
    terms = sorted(MonomialBasis(p, 3, max_order=None).terms, key=len)
    Z, total, G = (X - X.mean(axis=0)) / X.std(axis=0), 0.0, 0.0
    for rows in np.array_split(np.arange(n), max(n // 2000, 1)):
        F = products(Z[rows], terms)
        total, G = total + F.sum(axis=0), G + F.T @ F
    mean = total / n
    G = G / n - np.outer(mean, mean)
    spread = np.sqrt(np.diagonal(G))
    G /= np.outer(spread, spread)
    kept = [{} for _ in LAMBDAS]  # how many of its variables keep a group
    for i in range(p):
        others = np.array([i not in term for term in terms])
        y, own = terms.index((i,)), [terms[k] for k in np.flatnonzero(others)]
        sub = np.ascontiguousarray(G[np.ix_(others, others)])
        # all it needs is in the Gram matrix; what stands for X and y tells their sizes only
        path = lasso_path(
            np.broadcast_to(0.0, (n, len(own))),
            np.ones(n),
            alphas=LAMBDAS,
            precompute=sub * n,
            Xy=np.ascontiguousarray(G[others, y]) * n,
            check_input=False,
        )[1]
        for count, coefficients in zip(kept, path.T, strict=True):
            for group in {tuple(sorted({i, *own[k]})) for k in np.flatnonzero(coefficients)}:
                count[group] = count.get(group, 0) + 1
    out = []
    for name, most in (("all", np.inf), ("any", 1)):
        found = [{group for group, many in count.items() if many >= min(len(group), most)} for count in kept]
        best = int(np.argmax([f1(one, truth)[0] for one in found]))
        out.append((f"lasso on products, {name}", found[best], None, LAMBDAS[best]))
    return out


def recovery(p, n, seed):
    """Prints a table; F1 of groups by ISODUS, the λ that it chose, and the samples."""
    taken, (truth, X) = seconds(draw, p, n, seed)
    terms = interactions(truth)
    sizes = np.bincount([len(group) for group in groups(terms)])[2:]
    print(
        f"\nmodel {seed}: p = {p}, {len(terms)} interactions of 2, 3 … variables: {', '.join(map(str, sizes))}; among "
        f"{len(MonomialBasis(p, 4, max_order=4)):,} terms; n = {n:,}; model and samples found in {taken:.1f} s",
        flush=True,
    )
    print(f"  {'':<23} seconds      λ   groups: F1  precision  recall   terms: F1  precision  recall", flush=True)
    ours = None
    for method in (lambda: learn(ISODUS, X), lambda: learn(ScoreMatching, X), lambda: lasso(X, groups(terms))):
        duration, outcomes = seconds(method)
        for name, found, found_terms, l1 in outcomes:
            ours = ours or (f1(found, groups(terms))[0], l1)
            line = f"  {name:<23} {duration:7.1f}  {l1:.3f}       {in_words(found, groups(terms))}"
            if found_terms is not None:
                line += f"       {in_words(found_terms, terms)}"
            print(line, flush=True)
    return *ours, X


def beginning(basis, X, pool=None):
    """The start of a path of pseudo-likelihood, as the estimators make it; its variables in standard deviations."""
    samples = ArraySamples(X, None, X.mean(axis=0), X.std(axis=0), pool)
    nodes, unit = likelihood_nodes(basis, samples), np.ones(X.shape[1])
    low = floors(basis, unit)
    theta = confined(independent(basis, samples), low)
    weight = np.where(basis.orders == 1, 0.0, 1.0)

    def places(values, otherwise):
        return np.where(nodes.terms >= 0, values[nodes.terms], otherwise)

    options = dict(tol=1e-6, max_iter=100)
    return begin(nodes, places(theta, 0.0), places(weight, np.inf), places(low, -np.inf), **options)


def follow_to_the_end(start, grid):
    """As a choice of λ does it: a path to a loose tolerance, and its last point, here, to that of the start."""
    *_, last = follow(start, grid, tol=max(start.tol, LOOSE * grid.min()))
    return settled(start, last)


def path(name, start, low, repeats):
    """Seconds of a path / of a fit."""
    grid = np.geomspace(start.l1_max, low, POINTS)
    durations = []
    for _ in range(repeats):
        whole, last = seconds(follow_to_the_end, start, grid)
        cold, alone = seconds(at, start, grid[-1])
        durations.append((whole, cold))
    whole, cold = np.median(durations, axis=0)
    many = np.count_nonzero(last.theta[start.weight > 0])
    differ = np.abs(last.theta - alone.theta).max()
    print(
        f"  {name}: {POINTS} λ from {grid[0]:.3f} to {grid[-1]:.3f} in {whole:.3f} s, the last alone {cold:.3f} s; "
        f"{many:,} parameters there, which differ by at most {differ:.0e}",
        flush=True,
    )
    return whole / cold


def paths(q, X, l1, pool):
    """Seconds of a path / of a fit: for a Gaussian of q variables, and for samples X of a model of degree 4."""
    Y = np.array(regular_gaussian(q, 3, 0.25, rng=q).sample(2000, rng=1))
    start, ratios = beginning(MonomialBasis(q, 2), Y), {}
    for what, strength in (("recovers the graph", 2.0), ("fills it with chance", 0.7)):
        name = f"Gaussian, p = {q}, to a λ that {what}"
        ratios[name] = path(name, start, strength * np.sqrt(np.log(q) / len(Y)), 3)
    p = X.shape[1]
    name = f"four-body, p = {p}"
    ratios[name] = path(name, beginning(MonomialBasis(p, 4, max_order=4), X, pool), l1, 1)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="p = 12, n = 5,000; for paths, the Gaussian has p = 100")
    parser.add_argument("--models", type=int, default=1)
    parser.add_argument("--only", choices=["recovery", "path"])
    options = parser.parse_args()
    p, n = (12, 5000) if options.quick else (30, 20_000)
    print(f"{CORES} cores, n_jobs={CORES}")
    scores, ratios, l1, X = [], {}, None, None
    if options.only != "path":
        for seed in range(options.models):
            score, l1, X = recovery(p, n, seed)
            scores.append(score)
    if options.only != "recovery":
        if X is None:
            X, l1 = draw(p, n, 0)[1], 0.06 if options.quick else 0.018  # what ISODUS chose
        print("\npaths", flush=True)
        with one_blas_thread(), ThreadPoolExecutor(CORES) as pool:  # as in a fit
            ratios = paths(100 if options.quick else 300, X, l1, pool)
    print()
    if scores:
        print(f"F1 of groups, ISODUS, least of {len(scores)}: {min(scores):.3f} (wanted: at least 0.95)")
    for name, ratio in ratios.items():
        print(f"path of {POINTS} / cold fit, {name}: {ratio:.1f} (wanted: at most 5)")


if __name__ == "__main__":
    main()
