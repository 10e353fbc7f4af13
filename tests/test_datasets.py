import subprocess
import sys
from collections import Counter
from functools import cache

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isodus import ISODUS, ScoreMatching, datasets
from isodus.datasets import (
    diamond_gaussian,
    double_wells,
    gaussian,
    gaussian_10,
    hypertree_polynomial,
    load_sachs,
    paper_1d,
    paper_4d,
    paper_pair,
    phi4_lattice,
    regular_gaussian,
    sparse_polynomial,
)

# median, and sum in hundredths, of each column of the published table
PROTEINS = {
    "praf": (53.8, 92632103),
    "pmek": (26.7, 108541426),
    "plcg": (16.5, 40953730),
    "PIP2": (52.8, 112826743),
    "PIP3": (17.8, 20184303),
    "p44/42": (17.2, 19882849),
    "pakts473": (37.2, 60599442),
    "PKA": (449.0, 467191362),
    "PKC": (12.7, 22653082),
    "P38": (30.5, 100801829),
    "pjnk": (18.4, 54701518),
}
CELLS = [853, 902, 911, 723, 810, 799, 848, 913, 707]  # under each condition


def test_sachs_is_the_published_table():
    cells = load_sachs(log10=False, condition=True)
    assert cells.shape == (7466, 12)
    assert list(cells.columns) == [*PROTEINS, "condition"]
    assert cells["condition"].value_counts(sort=False).sort_index().to_dict() == dict(enumerate(CELLS, 1))
    for name, (median, total) in PROTEINS.items():
        assert cells[name].median() == median
        assert np.rint(100 * cells[name]).sum() == total
    assert cells.iloc[-1].tolist() == [30.5, 1.01, 7.3, 173.0, 22.9, 6.61, 13.7, 890.0, 1.0, 1.0, 1.65, 9]


def test_sachs_comes_in_logarithms_by_default():
    cells, raw = load_sachs(), load_sachs(log10=False)
    assert list(cells.columns) == list(raw.columns) == list(PROTEINS)
    assert np.array_equal(cells, np.log10(raw.to_numpy()))
    assert int((raw == 1.0).to_numpy().sum()) == int((cells == 0).to_numpy().sum()) == 1669
    assert "condition" in load_sachs(condition=True)


def test_options_of_sachs_are_named():
    with pytest.raises(TypeError):
        load_sachs(True)


def test_importing_isodus_reads_no_data():
    code = (
        "import sys; opened = []; "
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None); "
        "import isodus.datasets; print(any('sachs' in name for name in opened))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


# random sparse polynomials


def interactions(model):
    """Terms of two variables or more."""
    return {term: value for term, value in model.to_dict().items() if len(set(term)) > 1}


def own_energy(degree, X):
    """Σ_i Σ_d c_d x_i^d with d c_d E[z^d], z standard normal, the same for d = 2, 4 … degree, and 1 in all."""
    normal = {2: 1, 4: 3, 6: 15}
    return sum((X**d).sum(axis=1) / (d * normal[d] * degree / 2) for d in range(2, degree + 1, 2))


SHAPES = [
    dict(p=2),
    dict(p=9),
    dict(p=9, degree=2),
    dict(p=9, max_order=3, n_interactions=40),
    dict(p=8, max_order=4, treewidth=3),
    dict(p=4, max_order=3, treewidth=2),
    dict(p=7, degree=6, max_order=4),
    dict(p=5, n_interactions=0),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strength", [0.2, 0.999])
def test_sparse_polynomials_are_integrable_within_their_bound(shape, strength):
    rng = np.random.default_rng(0)
    for seed in range(5):
        model = sparse_polynomial(**shape, strength=strength, rng=seed)
        assert model.integrability().status == "integrable"
        X = rng.standard_cauchy((2000, shape["p"])) * 10 ** rng.uniform(-3, 3, (2000, 1))
        U = own_energy(shape.get("degree", 4), X)
        assert np.all(np.abs(model.energy(X) - U) <= strength * U * (1 + 1e-9))


@pytest.mark.parametrize("strength", [0.2, 0.8])
def test_strength_is_reached(strength):
    # in a Gaussian |x_i x_j| = (x_i² + x_j²)/2 at best: half of each parameter counts at either variable
    theta = sparse_polynomial(12, 2, strength=strength).to_dict()
    load = [sum(abs(v) for t, v in theta.items() if i in t and t != (i, i)) / 2 / theta[i, i] for i in range(12)]
    assert_allclose(max(load), strength)
    # a lone term of equal powers is largest beside U where all |x_i| are equal: near 0, at c_2 x² = c_4 x⁴, or far out
    X = np.array([1e-5, np.sqrt(6), 1e5])
    seen = set()
    for p, seed in [(p, seed) for p in (2, 3) for seed in range(12)]:
        model = sparse_polynomial(p, max_order=p, n_interactions=1, strength=strength, rng=seed)
        (term,) = interactions(model)
        if len(set(Counter(term).values())) == 1:
            seen.add(term)
            x = np.tile(X[len(term) - 2], (1, p))
            assert_allclose(np.abs(model.energy(x) / own_energy(4, x) - 1), strength)
    assert seen == {(0, 1), (0, 0, 1, 1), (0, 1, 2)}


@pytest.mark.parametrize(
    ("p", "degree", "max_order", "n", "treewidth"),
    [(10, 4, 2, 17, None), (10, 4, 3, 20, 4), (12, 4, 4, 30, None), (12, 6, 4, 27, 3), (3, 2, 2, 3, None)],
)
def test_number_order_and_degree_of_interactions(p, degree, max_order, n, treewidth):
    model = sparse_polynomial(p, degree, max_order=max_order, n_interactions=n, treewidth=treewidth, rng=1)
    terms = interactions(model)
    assert len(model.basis) == n + p * degree // 2
    assert len(terms) == len(model.hyperedges()) == n  # no group twice
    assert model.basis.degree == degree
    sizes = Counter(len(set(term)) for term in terms)
    assert set(sizes) == set(range(2, max_order + 1))
    assert max(sizes.values()) - min(sizes.values()) <= 1


def test_degrees_and_powers_vary():
    terms = interactions(sparse_polynomial(60, max_order=3, n_interactions=600))
    powers = Counter(tuple(sorted(Counter(term).values())) for term in terms)
    # of pairs a third each of degree 2, 3 and 4, and x³y twice as often as x²y²; of threes a half each
    expected = {(1, 1): 100, (1, 2): 100, (1, 3): 66.7, (2, 2): 33.3, (1, 1, 1): 150, (1, 1, 2): 150}
    assert set(powers) == set(expected)
    assert all(abs(powers[k] - expected[k]) < 4 * np.sqrt(expected[k]) for k in expected)
    assert abs(np.sum(np.sign(list(terms.values())))) < 4 * np.sqrt(600)


def test_enough_groups_of_one_size_or_else_of_others():
    # nine cliques of four variables in a 3-tree of twelve: of 31 the other 22 are pairs and threes
    terms = interactions(sparse_polynomial(12, max_order=4, n_interactions=31, treewidth=3))
    assert Counter(len(set(term)) for term in terms) == {4: 9, 3: 11, 2: 11}


def test_by_default_a_variable_is_in_three_interactions():
    for max_order in (2, 3, 4):
        terms = interactions(sparse_polynomial(50, max_order=max_order))
        assert 150 <= sum(len(set(term)) for term in terms) <= 154
    assert len(interactions(sparse_polynomial(3))) == 3  # as many as there are
    assert nx.is_tree(sparse_polynomial(50, treewidth=1).graph())


def treewidth(graph):
    """Exact, by dynamic programming over the sets of vertices eliminated first (Bodlaender et al., 2012)."""
    graph = nx.convert_node_labels_to_integers(graph)

    def met(eliminated, v):
        """Neighbours of v once the vertices of a set are gone: those that it reaches through them."""
        seen, todo = {v}, [v]
        while todo:
            for u in set(graph[todo.pop()]) - seen:
                seen.add(u)
                if u in eliminated:
                    todo.append(u)
        return len(seen - eliminated - {v})

    @cache
    def width(gone):
        return min((max(width(gone - {v}), met(gone - {v}, v)) for v in gone), default=0)

    return width(frozenset(graph))


def test_exact_treewidth_of_known_graphs():
    known = [(nx.path_graph(7), 1), (nx.cycle_graph(7), 2), (nx.grid_2d_graph(3, 3), 3), (nx.complete_graph(6), 5)]
    known += [(nx.petersen_graph(), 4), (nx.complete_bipartite_graph(3, 5), 3)]
    assert [treewidth(graph) for graph, _ in known] == [k for _, k in known]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_treewidth_is_bounded(k):
    p, max_order = 9, min(k + 1, 3)
    for seed in range(3):
        for n in (None, 8):
            model = sparse_polynomial(p, max_order=max_order, n_interactions=n, treewidth=k, rng=seed)
            assert treewidth(model.graph()) <= k
    edges = k * p - k * (k + 1) // 2  # of a k-tree
    whole = sparse_polynomial(p, n_interactions=edges, treewidth=k).graph()
    assert whole.number_of_edges() == edges
    assert treewidth(whole) == k
    assert treewidth(sparse_polynomial(p, n_interactions=edges).graph()) > k or k == 1  # the bound is felt
    with pytest.raises(ValueError, match=f"there are {edges} groups"):
        sparse_polynomial(p, n_interactions=edges + 1, treewidth=k)


def test_a_bound_on_the_treewidth_makes_no_hubs():
    for k in (1, 2, 3):
        model = sparse_polynomial(400, max_order=2, treewidth=k)
        assert max(degree for _, degree in model.graph().degree()) <= 2 ** (k + 1) + k
        assert nx.approximation.treewidth_min_fill_in(model.graph())[0] <= k + 1


def test_sparse_polynomials_follow_their_seed():
    options = dict(max_order=3, treewidth=4)
    first = sparse_polynomial(10, **options, rng=3).to_dict()
    assert first == sparse_polynomial(10, **options, rng=3).to_dict()
    assert first == sparse_polynomial(10, **options, rng=np.random.default_rng(3)).to_dict()
    assert first.keys() != sparse_polynomial(10, **options, rng=4).to_dict().keys()
    weaker = sparse_polynomial(10, **options, strength=0.4, rng=3)
    assert_allclose(list(interactions(weaker).values()), [first[term] / 2 for term in interactions(weaker)])
    assert sparse_polynomial(10, rng=None).to_dict() != sparse_polynomial(10, rng=None).to_dict()


@pytest.mark.parametrize("degree", [2, 4, 6])
def test_sparse_polynomials_spread_about_one(degree):
    for strength, least, most in ((0.1, 0.95, 1.15), (0.8, 0.7, 1.5)):
        for seed in range(3):
            model = sparse_polynomial(5, degree, treewidth=2, strength=strength, rng=seed)
            spread = model.sample(5_000, rng=0).std(axis=0)
            assert np.all((spread > least) & (spread < most))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(p=1), "p must be a whole number of at least 2, not 1"),
        (dict(p=5, degree=3), "degree must be even, not 3"),
        (dict(p=5, degree=2, max_order=3), "max_order=3, but a term of degree 2 has at most 2 of 5 variables"),
        (dict(p=3, max_order=4), "at most 3 of 3 variables"),
        (dict(p=5, max_order=3, treewidth=1), "max_order=3 takes a treewidth of 2 or more"),
        (dict(p=5, treewidth=0), "treewidth must be a whole number of at least 1, not 0"),
        (dict(p=5, strength=1.0), "strength must lie between 0 and 1, not 1.0"),
        (dict(p=5, strength=0), "strength must lie between 0 and 1, not 0"),
        (dict(p=5, strength=np.nan), "strength must be a finite number"),
        (dict(p=5, n_interactions=11), "n_interactions=11, but there are 10 groups"),
        (dict(p=5, n_interactions=2.5), "n_interactions must be a whole number"),
    ],
)
def test_bad_sparse_polynomials(arguments, message):
    with pytest.raises(ValueError, match=message):
        sparse_polynomial(**arguments)


# lattices


def action(phi, mass2, coupling, periodic):
    """phi: (n, …); differences to the next site, around the end where the lattice is periodic."""
    axes = tuple(range(1, phi.ndim))
    S = (mass2 / 2 * phi**2 + coupling / 24 * phi**4).sum(axis=axes)
    for axis in axes:
        around = periodic and phi.shape[axis] > 2
        step = np.roll(phi, -1, axis) - phi if around else np.diff(phi, axis=axis)
        S += 0.5 * (step**2).sum(axis=axes)
    return S


@pytest.mark.parametrize("size", [1, 2, 3, 6, (1, 4), (2, 2), (3, 4), (2, 5), (2, 3, 3)])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(("mass2", "coupling"), [(-1.0, 6.0), (-3.5, 0.7), (0.8, 2.0), (0.3, 0.0)])
def test_lattice_has_the_action(size, periodic, mass2, coupling):
    model = phi4_lattice(size, mass2=mass2, coupling=coupling, periodic=periodic)
    phi = 2 * np.random.default_rng(0).standard_normal((20, *np.atleast_1d(size)))
    X = phi.reshape(20, -1)
    assert_allclose(model.energy(X), action(phi, mass2, coupling, periodic), rtol=1e-12)
    assert_allclose(model.energy(-X), model.energy(X))
    assert model.integrability().status == "integrable"
    assert model.basis.degree == (4 if coupling else 2)


def test_periodic_lattices_look_the_same_from_every_site():
    phi = np.random.default_rng(0).standard_normal((10, 3, 5))
    for periodic in (True, False):
        energy = phi4_lattice((3, 5), periodic=periodic).energy
        same = [
            np.allclose(energy(np.roll(phi, 1, axis).reshape(10, -1)), energy(phi.reshape(10, -1))) for axis in (1, 2)
        ]
        assert same == [periodic, periodic]


def test_free_field_on_a_ring_has_its_spectrum():
    L, mass2 = 7, 0.4
    precision = phi4_lattice(L, mass2=mass2, coupling=0.0, periodic=True).precision()
    assert_allclose(
        np.linalg.eigvalsh(precision), np.sort(mass2 + 2 - 2 * np.cos(2 * np.pi * np.arange(L) / L)), atol=1e-12
    )


def test_sides_of_length_two_have_one_bond():
    assert phi4_lattice(2, periodic=True).to_dict() == phi4_lattice(2).to_dict()
    assert phi4_lattice((2, 2), periodic=True).to_dict()[0, 1] == -1.0
    assert nx.is_isomorphic(phi4_lattice((4, 4), periodic=True).graph(), nx.grid_graph((4, 4), periodic=True))


def test_sites_are_named_by_their_place():
    assert phi4_lattice(3).names == ("phi_0", "phi_1", "phi_2")
    assert phi4_lattice((2, 2)).names == ("phi_0_0", "phi_0_1", "phi_1_0", "phi_1_1")
    assert set(phi4_lattice((2, 11)).graph()["phi_1_10"]) == {"phi_0_10", "phi_1_9"}
    assert phi4_lattice(np.array([2, 3])).names == phi4_lattice([2, 3]).names


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(size=0), "size must be a whole number of at least 1, not 0"),
        (dict(size=(3, 2.5)), "size must be a whole number of at least 1, not 2.5"),
        (dict(size=()), "size is empty"),
        (dict(size=3, coupling=-1.0), "mass2=-1.0 with coupling=-1.0 has no density"),
        (dict(size=3, mass2=0.0, coupling=0.0), "coupling must be positive, or zero and mass2 positive"),
        (dict(size=3, mass2=np.inf), "mass2 must be a finite number"),
        (dict(size=(3, 3), periodic=(True, False)), "periodic must be True or False, for all sides"),
    ],
)
def test_bad_lattices(arguments, message):
    with pytest.raises(ValueError, match=message):
        phi4_lattice(**arguments)


# double wells


GRAPHS = [
    (1, []),
    (4, [(0, 1), (1, 2), (2, 3)]),
    ([(2, 0), (1, 2), (0, 2)], [(0, 2), (1, 2)]),
    (np.array([[0, 1], [1, 2]]), [(0, 1), (1, 2)]),
    (nx.cycle_graph(5), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]),
    (nx.DiGraph([(0, 1), (1, 0), (2, 1)]), [(0, 1), (1, 2)]),
    (nx.MultiGraph([(0, 1), (0, 1)]), [(0, 1)]),
    (nx.empty_graph(3), []),
]


@pytest.mark.parametrize(("graph", "edges"), GRAPHS)
@pytest.mark.parametrize(("height", "coupling"), [(2.0, 0.5), (0.3, -4.0), (1.0, 0.0)])
def test_double_wells_have_their_energy(graph, edges, height, coupling):
    model = double_wells(graph, height=height, coupling=coupling)
    p = 1 + max((v for edge in edges for v in edge), default=len(model.names) - 1)
    x = 2 * np.random.default_rng(0).standard_normal((p, 20))
    energy = height * ((x**2 - 1) ** 2).sum(axis=0) + coupling * sum((x[i] * x[j] for i, j in edges), np.zeros(20))
    assert_allclose(model.energy(x.T), energy - p * height, rtol=1e-12, atol=1e-12)
    assert model.names == tuple(f"x{i}" for i in range(p))
    assert model.integrability().status == "integrable"


def test_nodes_of_other_kinds_give_names():
    assert double_wells([("b", "a"), ("a", "c")]).names == ("b", "a", "c")
    assert set(double_wells([("b", "a"), ("a", "c")]).hyperedges()) == {("b", "a"), ("a", "c")}
    assert double_wells([(1, 2), (2, 3)]).names == ("1", "2", "3")
    square = nx.grid_graph((2, 2))
    model = double_wells(square)
    assert model.names == tuple(map(str, square))
    assert nx.is_isomorphic(model.graph(), square)


def test_negative_couplings_align_neighbours():
    for coupling in (-0.7, 0.7):
        X = double_wells(2, coupling=coupling).sample(2000, rng=0)
        assert np.sign(np.mean(X[:, 0] * X[:, 1])) == -np.sign(coupling)
        assert_array_equal(np.abs(np.median(np.abs(X), axis=0) - 1) < 0.1, [True, True])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(graph=0), "graph must be a whole number of at least 1, not 0"),
        (dict(graph=[]), "the graph is empty"),
        (dict(graph=nx.Graph()), "the graph is empty"),
        (dict(graph=[(0, 1, 2)]), "an edge is a pair of nodes"),
        (dict(graph=[(0, 1), (1, 1)]), r"the edge \(1, 1\) links a node to itself"),
        (dict(graph=3, height=0.0), "height must be positive, not 0.0"),
        (dict(graph=3, coupling=np.nan), "coupling must be a finite number, not nan"),
    ],
)
def test_bad_double_wells(arguments, message):
    with pytest.raises(ValueError, match=message):
        double_wells(**arguments)


@pytest.mark.parametrize("seed", range(4))
def test_hypertrees_have_groups_that_share_one_variable(seed):
    model = hypertree_polynomial(17, max_order=4, strength=0.9, rng=seed)
    groups = [set(map(model.names.index, group)) for group in model.hyperedges()]
    assert set().union(*groups) == set(range(17))
    assert max(len(group) for group in groups) == 4
    assert all(len(a & b) <= 1 for k, a in enumerate(groups) for b in groups[:k])
    assert max(sum(i in group for group in groups) for i in range(17)) == 2
    assert nx.is_connected(model.graph())
    X = np.random.default_rng(seed).standard_normal((2000, 17)) * 3
    own = 0.1 * (X**2 + X**4).sum(axis=1)
    assert (np.abs(model.energy(X) - own) <= 0.9 * own * (1 + 1e-12)).all()
    assert model.integrability().status == "integrable"


def test_bad_hypertrees():
    for options, message in (
        (dict(p=5, degree=3), "degree must be even"),
        (dict(p=5, strength=1.0), "strength must lie between"),
        (dict(p=3, max_order=4), "max_order=4, but"),
    ):
        with pytest.raises(ValueError, match=message):
            hypertree_polynomial(**options)


# all of them


INSTANCES = {
    "paper_1d": paper_1d(),
    "paper_pair": paper_pair(1),
    "paper_4d": paper_4d(),
    "gaussian": gaussian([[2.0, -0.5], [-0.5, 1.0]]),
    "gaussian_10": gaussian_10(),
    "regular_gaussian": regular_gaussian(10),
    "diamond_gaussian": diamond_gaussian(),
    "sparse_polynomial, in threes": sparse_polynomial(4, max_order=3, treewidth=2),
    "sparse_polynomial, in fours": sparse_polynomial(4, max_order=4, rng=1),
    "sparse_polynomial, degree 6": sparse_polynomial(2, 6, rng=1),
    "phi4_lattice, chain": phi4_lattice(4),
    "phi4_lattice, ring": phi4_lattice(4, periodic=True),
    "phi4_lattice, 2 x 3": phi4_lattice((2, 3), mass2=-2.0),
    "phi4_lattice, free": phi4_lattice((2, 3), mass2=1.0, coupling=0.0),
    "double_wells, chain": double_wells(4, height=1.5),
    "double_wells, triangle": double_wells([(0, 1), (1, 2), (0, 2)], coupling=-0.5),
    "hypertree_polynomial": hypertree_polynomial(5, max_order=3),
}
SIZES, SETS = (1_500, 24_000), 4
NO_DENSITY = "ignore:the learned model is no density"  # score matching, where samples are few


def test_every_dataset_has_an_instance():
    assert {name.split(",")[0] for name in INSTANCES} | {"load_sachs"} == set(datasets.__all__)


@cache
def drawn(name):
    return INSTANCES[name].sample(SETS * sum(SIZES), rng=list(INSTANCES).index(name))


@cache
def recovered(name, estimator):
    """The factor by which the error falls from 1,500 to 24,000 samples, and errors over standard errors at 24,000.

    Root mean square over terms, each in units of its standard error at 24,000 samples, and over 4 sets.
    """
    model = INSTANCES[name]
    errors = []
    for samples in np.split(drawn(name), [SETS * SIZES[0]]):
        fits = [estimator(basis=model.basis).fit(Y).model_ for Y in np.split(samples, SETS)]
        errors.append(np.array([list(fit.to_dict().values()) for fit in fits]) - model.theta)
    stderr = np.array([fit.stderr() for fit in fits])
    few, many = (np.sqrt(np.mean((error / stderr.mean(axis=0)) ** 2)) for error in errors)
    return few / many, errors[1] / stderr


@pytest.mark.filterwarnings(NO_DENSITY)
@pytest.mark.parametrize("estimator", [ISODUS, ScoreMatching])
@pytest.mark.parametrize("name", INSTANCES)
def test_truth_is_recovered(name, estimator):
    """1/√n gives a factor of 4, with a spread of a quarter; an error that stays gives 1, and large ratios z."""
    factor, z = recovered(name, estimator)
    assert 1.8 < factor < 8
    assert np.max(np.abs(z)) < 4.5
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.5


@pytest.mark.filterwarnings(NO_DENSITY)
@pytest.mark.parametrize("estimator", [ISODUS, ScoreMatching])
def test_errors_fall_as_one_over_root_n(estimator):
    """Geometric mean of the factors of all datasets, with a spread of 1/16, and root mean square of all z."""
    factors, z = zip(*(recovered(name, estimator) for name in INSTANCES), strict=True)
    assert 3.3 < np.exp(np.mean(np.log(factors))) < 4.9
    assert 0.9 < np.sqrt(np.mean(np.concatenate([part.ravel() for part in z]) ** 2)) < 1.1
