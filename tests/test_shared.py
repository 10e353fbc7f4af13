"""Terms that share one parameter."""

import itertools

import numpy as np
import pytest

from isodus import ISODUS, MonomialBasis, PolynomialModel, PseudoLikelihood, ScoreMatching, lattice_basis
from isodus.datasets import phi4_lattice
from isodus.losses.pseudo_likelihood import PseudoLikelihoodLoss
from isodus.losses.screening import Screening
from isodus.samples import ArraySamples
from isodus.shared import Shared

CHAIN = PolynomialModel.from_dict(
    {(i, i): 0.3 for i in range(5)}
    | {(i,) * 4: 0.2 for i in range(5)}
    | {tuple(sorted((i, (i + 1) % 5))): -0.4 for i in range(5)}
)


@pytest.fixture(scope="module")
def X():
    return np.asarray(CHAIN.sample(4000, rng=0))


@pytest.mark.parametrize("loss", ["pseudo-likelihood", "screening"])
def test_gradient_and_hessian_against_finite_differences(X, loss):
    basis, p = lattice_basis(5), 5
    made = PseudoLikelihoodLoss()
    if loss == "screening":
        made = Screening.of_degree(4, np.full(p, 0.1), np.full(p, 2.0), np.zeros(p), "log")
    shared = Shared(basis, made, ArraySamples(X[:300], None, np.zeros(p), np.ones(p)))
    tau, h = np.array([0.25, -0.3, 0.15]), 1e-5
    here = shared(tau)
    for k in range(3):
        up, down = shared(tau + h * np.eye(3)[k]), shared(tau - h * np.eye(3)[k])
        assert here.gradient[k] == pytest.approx((up.value - down.value) / (2 * h), rel=1e-6, abs=1e-7)
        assert np.allclose(here.hessian[k], (up.gradient - down.gradient) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", [ISODUS, PseudoLikelihood, ScoreMatching, lambda **o: ISODUS(refine=0, nu=0.02, **o)])
def test_couplings_are_recovered_with_the_errors_that_are_told(X, make):
    fit = make(basis=lattice_basis(5)).fit(X)
    assert list(fit.shared_.index) == ["mass", "neighbours", "quartic"]
    z = (fit.shared_.theta - [0.3, -0.4, 0.2]) / fit.shared_.stderr
    assert np.abs(z).max() < 3
    assert len(set(np.round([fit.model_.to_dict()[i, i] for i in range(5)], 12))) == 1
    assert fit.model_.stderr()[0] == pytest.approx(fit.shared_.stderr["mass"])
    assert fit.shared_.terms.tolist() == [5, 5, 5]


def test_the_error_is_that_of_many_sets():
    """The standard error that is told, against the spread over forty sets of samples."""
    sets = np.asarray(CHAIN.sample(40 * 500, rng=1)).reshape(40, 500, 5)
    found = [PseudoLikelihood(basis=lattice_basis(5)).fit(part).shared_ for part in sets]
    spread = np.std([one.theta for one in found], axis=0, ddof=1)
    told = np.sqrt(np.mean([one.stderr**2 for one in found], axis=0))
    assert np.all((told / spread > 0.7) & (told / spread < 1.4))  # a spread of forty is known to 11 %


def test_no_more_samples_than_score_matching_and_fewer_where_modes_are_apart(X):
    wells = phi4_lattice(5, mass2=-6.0, coupling=12.0, periodic=True)
    rows = np.asarray(wells.sample(4000, rng=0))
    for data, basis, most in ((X, lattice_basis(5), 1.02), (rows, lattice_basis(5), 0.9)):
        ours, theirs = (make(basis=basis).fit(data).shared_.stderr["quartic"] for make in (ISODUS, ScoreMatching))
        assert ours <= most * theirs


def test_terms_by_themselves_are_what_they_were():
    """With every group of one term, the fit is that of pseudo-likelihood without ties."""
    rows = np.asarray(CHAIN.sample(1500, rng=3))
    basis = MonomialBasis(5, terms=CHAIN.basis.terms)
    alone = MonomialBasis(5, terms=CHAIN.basis.terms, tied=lambda term: term)
    a = PseudoLikelihood(basis=basis, scale=False, center=False).fit(rows)
    b = PseudoLikelihood(basis=alone).fit(rows)
    assert np.allclose(a.model_.parameters(), b.model_.parameters(), atol=2e-6)
    assert np.allclose(a.model_.stderr(), b.model_.stderr(), rtol=0.02)


def test_spins_share_couplings():
    every = np.array(list(itertools.product([-1.0, 1.0], repeat=6)))
    ring = {tuple(sorted((i, (i + 1) % 6))): -0.3 for i in range(6)} | {(i,): 0.1 for i in range(6)}
    model = PolynomialModel.from_dict(ring, support="spin")
    counts = np.random.default_rng(0).multinomial(20_000, np.exp(model.logpdf(every)))
    basis = MonomialBasis(6, terms=ring, support="spin", tied=len)
    for options in (dict(), dict(refine=0)):
        fit = ISODUS(basis=basis, **options).fit(every, sample_weight=counts)
        assert np.abs((fit.shared_.theta - [0.1, -0.3]) / fit.shared_.stderr).max() < 3


@pytest.mark.parametrize(
    ("shape", "options", "counts"),
    [
        (5, {}, {"mass": 5, "neighbours": 5, "quartic": 5}),
        ((2, 2), {}, {"mass": 4, "neighbours": 4, "quartic": 4}),
        (
            (4, 4),
            dict(degree=6, next_neighbours=True),
            {"mass": 16, "neighbours": 32, "next neighbours": 32, "quartic": 16, "sextic": 16},
        ),
        (
            (3, 3),
            dict(periodic=False, degree=2),
            {"mass, 2 neighbours": 4, "mass, 3 neighbours": 4, "mass, 4 neighbours": 1, "neighbours": 12},
        ),
        ((3, 3, 3), {}, {"mass": 27, "neighbours": 81, "quartic": 27}),
    ],
)
def test_lattices(shape, options, counts):
    ties = lattice_basis(shape, **options).tied
    found = dict(zip(ties.labels, ties.summed(np.ones(len(ties.codes))).astype(int).tolist(), strict=True))
    assert found == counts


def test_a_lattice_has_the_terms_of_the_field_theory():
    for periodic in (True, False):
        basis, model = lattice_basis((3, 4), periodic), phi4_lattice((3, 4), periodic=periodic)
        assert basis.terms == model.basis.terms
        for label in set(basis.tied.labels):
            theta = model.theta[basis.tied.codes == basis.tied.labels.index(label)]
            assert np.ptp(theta) == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: ISODUS(basis=lattice_basis(5), l1=0.1).fit(X), "leave l1 = 0"),
        (lambda X: lattice_basis(1), "whole numbers of at least 2"),
        (lambda X: lattice_basis((4, 4), degree=3), "degree must be 2, 4 or 6"),
        (lambda X: MonomialBasis(2, 2, tied=lambda term: []), "must be hashable"),
        (lambda X: MonomialBasis(2, 2, tied=[["a"]]), "a group is a list of terms"),
    ],
)
def test_bad_input(X, make, message):
    with pytest.raises(ValueError, match=message):
        make(X)
