"""The tasks of peers.py that ask for a structure: of Gaussians, of double wells, of groups of up to four variables."""

import contextlib
import io
import subprocess
from functools import partial

import networkx
import numpy as np
import r_huge
import structure_fourbody
import structure_gaussian
from peers_table import ABSENT, LIMIT, Data, Task, TooSlow, measure, say
from scipy.stats import norm, rankdata
from sklearn.covariance import GraphicalLassoCV

from isodus import ISODUS, PolynomialModel, ScoreMatching
from isodus.datasets import double_wells, regular_gaussian

TUNING = 999  # the set on which a penalty is found; not used again
QUICKER, SLOWER = "graphical lasso, GGLasso", "graphical lasso, scikit-learn"
WIDER = np.geomspace(0.8, 20, 14)  # constants for samples that are no Gaussian's

TOLD = Task(
    "Gaussian structure, told the penalty",
    "F1 of edges",
    True,
    "isodus, tilted ISODUS",
    "Random 3-regular graphs, κ = 0.25, n = 500. Every method has the λ = c √(log p / n) with the fewest errors on "
    "another graph of as many variables (of eleven c for p = 100; for more, from there, of three at most); seconds are "
    "those of one fit.",
)
CHOSEN = Task(
    "Gaussian structure, choosing the penalty",
    "F1 of edges",
    True,
    'isodus, l1="auto"',
    "The same samples; every method chooses its penalty itself, and seconds are those of that, too. Extended BIC has "
    "γ = 0.5 in GGLasso and in R's huge.",
)
WELLS = Task(
    "Double wells on a lattice",
    "F1 of edges",
    True,
    "isodus, tilted ISODUS",
    "Square lattices, height 2, neighbours coupled by 0.5 x_i x_j or by 0.5 x_i² x_j², by Gibbs sampling; isodus has "
    "all pairs up to degree 4 as candidates. Every method is told the c with the fewest errors on another set, of the "
    'smaller lattice and n; only where it says l1="auto" the penalty is chosen from the samples, and seconds are those '
    "of that, too. Normal scores are ranks made Gaussian; the group lasso has x, x² and x³ of each other variable. "
    "With 1,000 samples a coupling x_i² x_j² is about three of its standard errors, where all others are known not to "
    'be there; among 1,800 candidates some are so far from none by chance, and l1="auto" asks for four.',
)
FOURBODY = Task(
    "Interactions of up to four variables",
    "F1 of groups",
    True,
    'isodus, l1="auto"',
    "`hypertree_polynomial`, n = 5,000, all monomials up to degree 4 as candidates, the penalty chosen from the "
    "samples. The lasso on products of up to three others is told its best λ of twelve and the better of two rules, on "
    "these very samples.",
)


def graph_f1(data, found):
    """F1 of the edges of a graph, as a matrix."""
    missed, added = structure_gaussian.errors(found, data.truth)
    right = int(np.triu(data.truth, 1).sum()) - missed
    return 2 * right / max(2 * right + missed + added, 1)


def matrix(groups, p):
    """Pairs of variables as a matrix."""
    found = np.zeros((p, p), bool)
    for a, b in groups:
        found[a, b] = found[b, a] = True
    return found


def unless_it_fails(method, X, l1):
    """No graph where the penalty is too weak for a method."""
    try:
        return method(X, l1)
    except (ArithmeticError, ValueError):
        return np.zeros((X.shape[1],) * 2, bool)


def told(methods, data, constants, before):
    """Functions of samples alone, each with the constant that makes the fewest errors on `data`.

    before: constants for fewer variables, the first to try, of three at most; those found take their place. Two
    programs for one problem share one, that of the quicker.
    """
    out = dict(methods)
    for name in sorted(methods, key=lambda name: name == SLOWER):
        method = methods[name]
        if isinstance(method, str):
            continue
        if name == SLOWER and name in before and not isinstance(methods.get(QUICKER, ABSENT), str):
            c = before[QUICKER]
        else:
            trial = partial(unless_it_fails, method)
            c, _ = structure_gaussian.search(trial, data.X, data.truth, before.get(name), constants)
        before[name] = c
        say(f"  {name}: c = {c:.2f}")

        def at_best(data, method=method, c=c):
            return method(data.X, c * np.sqrt(np.log(data.X.shape[1]) / len(data.X)))

        out[name] = at_best
    return out


# the graph of a Gaussian


def gaussian_data(p, k):
    truth = regular_gaussian(p, 3, structure_gaussian.KAPPA, rng=k)
    return Data(np.array(truth.sample(500, rng=1000 + k)), structure_gaussian.edges(truth))


def gaussian_methods():
    """Those of structure_gaussian.py on one thread, and what is missing."""
    out, missing = structure_gaussian.methods()
    out = {name: method for name, method in out.items() if not name.endswith("threads")}
    return out | {f"{what}": ABSENT for what in missing}


def chosen_by_isodus(data):
    return structure_gaussian.ours(ISODUS, data.X, "auto")


def off_diagonal(precision):
    found = np.abs(precision) > 1e-10
    np.fill_diagonal(found, False)
    return found


def cross_validated(Z):
    return GraphicalLassoCV().fit(Z).precision_


def by_ebic(gamma, Z):
    """GGLasso along a path of 20 penalties."""
    from gglasso.problem import glasso_problem

    problem = glasso_problem(np.cov(Z.T, bias=True), len(Z), reg_params={"lambda1": 0.1})
    grid = {"lambda1_range": np.geomspace(0.5, 0.005, 20)}
    with contextlib.redirect_stdout(io.StringIO()):  # it tells how each ended
        problem.model_selection(modelselect_params=grid, method="eBIC", gamma=gamma, tol=1e-5, rtol=1e-5)
    return problem.solution.precision_


def by_huge(way, data):
    """R's huge by one of its own ways to choose."""
    try:
        return r_huge.run(way, data.X, LIMIT)
    except subprocess.TimeoutExpired:
        raise TooSlow from None


def ready_for_ebic():
    """Whether GGLasso is there; it is compiled, too."""
    if structure_gaussian.ADMM_SGL is None:
        return False
    by_ebic(0.5, np.random.default_rng(0).standard_normal((50, 3)))
    return True


SETS = {100: 5, 300: 5, 1000: 3}


def gaussian(quick):
    methods, constants, slow = gaussian_methods(), {}, {}
    for p, sets in ({100: 2} if quick else SETS).items():
        todo = told(methods, gaussian_data(p, TUNING), structure_gaussian.CONSTANTS, constants)
        yield from measure(TOLD, f"p = {p:,}", todo, partial(gaussian_data, p), graph_f1, sets, slow)


def gaussian_chosen(quick):
    standardized, slow = structure_gaussian.standardized, {}
    todo = {
        CHOSEN.ours: chosen_by_isodus,
        "graphical lasso, scikit-learn, cross-validation": lambda d: off_diagonal(cross_validated(standardized(d.X))),
        "graphical lasso, GGLasso, extended BIC": ABSENT,
        "lasso, R's huge, rotations": partial(by_huge, r_huge.ROTATED) if r_huge.there() else ABSENT,
        "graphical lasso, R's huge, extended BIC": partial(by_huge, r_huge.EBIC) if r_huge.there() else ABSENT,
    }
    if ready_for_ebic():
        todo["graphical lasso, GGLasso, extended BIC"] = lambda d: off_diagonal(by_ebic(0.5, standardized(d.X)))
    for p, sets in ({100: 2} if quick else SETS).items():
        yield from measure(CHOSEN, f"p = {p:,}", todo, partial(gaussian_data, p), graph_f1, sets, slow)


# a lattice of double wells


def wells_data(side, n, squares, k):
    """Samples of a lattice whose neighbours are coupled by 0.5 x_i x_j, or by 0.5 x_i² x_j²."""
    lattice = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(side, side))
    model = double_wells(lattice)
    if squares:
        model = PolynomialModel.from_dict(
            {term if len(set(term)) == 1 else tuple(sorted(2 * term)): v for term, v in model.to_dict().items()}
        )
    X = model.sample(n, rng=1000 + k, method="gibbs")
    return Data(np.array(X), matrix(lattice.edges, side * side))


def found_pairs(estimator, X, l1):
    model = estimator(4, l1=l1).fit(X).model_
    return matrix(structure_fourbody.groups(structure_fourbody.interactions(model)), X.shape[1])


def normal_scores(X):
    return norm.ppf(rankdata(X, axis=0) / (len(X) + 1))


def group_lasso(X, l1):
    """skglm's, of every variable on three powers of every other; an edge is a group that both ends keep."""
    import skglm

    Z, p = structure_gaussian.standardized(X), X.shape[1]
    powers = np.stack([structure_gaussian.standardized(Z**d) for d in (1, 2, 3)], axis=2)
    B = np.zeros((p, p))
    for i in range(p):
        others = np.flatnonzero(np.arange(p) != i)
        F = np.asfortranarray(powers[:, others].reshape(len(X), -1))
        beta = skglm.GroupLasso(3, alpha=l1, fit_intercept=False).fit(F, Z[:, i]).coef_
        B[i, others] = np.abs(beta.reshape(-1, 3)).sum(axis=1)
    return structure_gaussian.both(B)


def wells(quick):
    gauss = structure_gaussian
    methods = {
        WELLS.ours: partial(found_pairs, ISODUS),
        "isodus, score matching": partial(found_pairs, ScoreMatching),
        "graphical lasso, scikit-learn": gauss.covariance_lasso,
        "graphical lasso, scikit-learn, of normal scores": lambda X, l1: gauss.covariance_lasso(normal_scores(X), l1),
        "graphical lasso, GGLasso": gauss.admm if gauss.ADMM_SGL is not None else ABSENT,
        "lasso, scikit-learn": partial(gauss.node_wise, gauss.Lasso),
        "lasso, skglm": ABSENT if gauss.skglm is None else partial(gauss.node_wise, gauss.skglm.Lasso),
        "group lasso on powers, skglm": ABSENT if gauss.skglm is None else group_lasso,
    }
    coupled = {"x_i x_j": [(5, 1000, 5), (6, 1000, 3)], "x_i² x_j²": [(5, 1000, 3), (5, 4000, 3)]}
    for coupling, sizes in coupled.items():
        squares, sizes = coupling != "x_i x_j", [(3, 1000, 2)] if quick else sizes
        todo = {
            'isodus, tilted ISODUS, l1="auto"': lambda data: found_pairs(ISODUS, data.X, "auto"),
            'isodus, score matching, l1="auto"': lambda data: found_pairs(ScoreMatching, data.X, "auto"),
            **told(methods, wells_data(*sizes[0][:2], squares, TUNING), WIDER, {}),
        }
        slow = {}
        for side, n, sets in sizes:
            size = f"{side} × {side}, {coupling}, n = {n:,}"
            yield from measure(WELLS, size, todo, partial(wells_data, side, n, squares), graph_f1, sets, slow)


# interactions of up to four variables


def fourbody_data(p, k):
    truth, X = structure_fourbody.draw(p, 5000, k)
    return Data(X, structure_fourbody.groups(structure_fourbody.interactions(truth)))


def found_groups(estimator, data):
    model = estimator(4, max_order=4, l1="auto").fit(data.X).model_
    return structure_fourbody.groups(structure_fourbody.interactions(model))


def lasso_on_products(data):
    outcomes = structure_fourbody.lasso(data.X, data.truth)
    return max((found for _, found, *_ in outcomes), key=lambda found: structure_fourbody.f1(found, data.truth)[0])


def fourbody(quick):
    todo = {
        FOURBODY.ours: partial(found_groups, ISODUS),
        'isodus, score matching, l1="auto"': partial(found_groups, ScoreMatching),
        "lasso on products, scikit-learn": lasso_on_products,
    }
    slow, judge = {}, lambda data, found: structure_fourbody.f1(found, data.truth)[0]
    for p, sets in ({8: 2} if quick else {12: 5, 20: 3}).items():
        yield from measure(FOURBODY, f"p = {p}", todo, partial(fourbody_data, p), judge, sets, slow)
