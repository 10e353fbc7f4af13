"""The conditional distributions against scipy's quadrature and closed forms, in units other than the standardised."""

import pickle
from itertools import pairwise

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad

from isodus import PolynomialModel
from isodus.arrays import to_host
from isodus.conditional import Conditional
from isodus.univariate import draw

ROWS = {
    "Gaussian": (0.3, 0.8, 0.0, 0.0, 0.0, 0.0),
    "two wells": (0.2, -3.0, 0.0, 1.0, 0.0, 0.0),
    "high wells": (0.1, -12.0, 0.0, 6.0, 0.0, 0.0),
    "one well, skew": (-1.0, 0.7, -1.1, 0.6, 0.0, 0.0),
    "shoulder": (0.0, 0.0, 2.0, 1.5, 0.0, 0.0),
    "sextic": (0.1, -0.4, 0.3, 0.5, -0.2, 0.3),
    "sextic, three wells": (0.0, 9.0, 0.0, -12.0, 0.0, 4.0),
}
LOCATION, SCALE = 40.0, 0.25


@pytest.fixture(scope="module")
def rows():
    return Conditional("x", np.array(list(ROWS.values())).T, LOCATION, SCALE, ["u", "v"])


def expectation(a, g, upto=np.inf):
    """∫_{−∞}^upto g(x) exp(−Σ a_l y^l) dx in raw units, not normalised."""
    f = lambda x: g(x) * np.exp(-np.polyval([*a[::-1], 0.0], (x - LOCATION) / SCALE))
    cuts = np.minimum(LOCATION + SCALE * np.linspace(-6.0, 6.0, 25), upto)
    return sum(quad(f, *ends, epsabs=1e-14, epsrel=1e-11)[0] for ends in pairwise(cuts))


@pytest.mark.parametrize("j", range(len(ROWS)), ids=list(ROWS))
def test_moments_density_and_distribution_match_quadrature(rows, j):
    a = rows.a[:, j]
    Z = expectation(a, lambda x: 1.0)
    mean = expectation(a, lambda x: x) / Z
    var = expectation(a, lambda x: (x - mean) ** 2) / Z
    assert rows.mean()[j] == pytest.approx(mean, rel=1e-11)
    assert rows.var()[j] == pytest.approx(var, rel=1e-8)
    assert rows.std()[j] == pytest.approx(np.sqrt(var), rel=1e-8)
    for x in LOCATION + SCALE * np.array([-1.3, -0.2, 0.0, 0.9, 2.0]):
        energy = np.polyval([*a[::-1], 0.0], (x - LOCATION) / SCALE)
        assert rows.logpdf(x)[j] == pytest.approx(-energy - np.log(Z), abs=1e-8)
        assert rows.cdf(x)[j] == pytest.approx(expectation(a, lambda x: 1.0, x) / Z, abs=1e-8)


def test_the_density_integrates_to_one_and_is_highest_at_the_mode(rows):
    x = LOCATION + SCALE * np.linspace(-8.0, 8.0, 20_001)
    density = rows.pdf(x[None, :])
    assert density.shape == (len(ROWS), len(x))
    assert np.allclose(np.trapezoid(density, x), 1.0, atol=1e-9)
    assert np.all(rows.pdf(rows.mode()) >= density.max(axis=1) * (1 - 1e-12))
    assert np.allclose(rows.pdf(rows.mode()), density.max(axis=1), rtol=1e-4)


def test_quadratic_energies_are_normal_distributions():
    rng = np.random.default_rng(0)
    mu, sigma = rng.normal(0.0, 2.0, 50), rng.uniform(0.01, 3.0, 50)
    c = Conditional("x", np.stack([-mu / sigma**2, 0.5 / sigma**2]), location=-7.0, scale=3.0)
    exact = stats.norm(-7.0 + 3.0 * mu, 3.0 * sigma)
    x = exact.mean() + exact.std() * rng.uniform(-4.0, 4.0, 50)
    assert np.allclose(c.mean(), exact.mean(), rtol=1e-12, atol=1e-12)
    assert np.allclose(c.mode(), exact.mean(), rtol=1e-12, atol=1e-12)
    assert np.allclose(c.var(), exact.var(), rtol=1e-10)
    assert np.allclose(c.logpdf(x), exact.logpdf(x), atol=1e-9)
    assert np.allclose(c.cdf(x), exact.cdf(x), atol=1e-9)
    assert np.allclose(c.median(), exact.median(), atol=1e-8)
    assert np.allclose(c.quantile(0.2), exact.ppf(0.2), atol=1e-8)
    assert np.allclose(c.interval(0.9).T, exact.interval(0.9), atol=1e-8)


def test_narrow_and_far_from_zero_nothing_cancels():
    # y is 1000 ± 2⁻⁷; its energy, in powers of y, has terms of 8e9, whose last digit is 1e-6
    m, half_precision = 1000.0, 8192.0
    c = Conditional("x", [[-2.0 * m * half_precision], [half_precision]])
    exact = stats.norm(m, np.sqrt(0.5 / half_precision))
    x = m + exact.std() * np.linspace(-5.0, 5.0, 11)[None, :]
    assert c.mean()[0] == pytest.approx(m, rel=1e-15)
    assert c.var()[0] == pytest.approx(exact.var(), rel=1e-10)
    assert np.allclose(c.logpdf(x), exact.logpdf(x), rtol=0.0, atol=1e-9)
    assert np.allclose(c.cdf(x), exact.cdf(x), atol=1e-9)


def test_quantile_and_cdf_undo_each_other(rows):
    q = np.array([1e-6, 0.01, 0.3, 0.5, 0.8, 0.999])
    x = rows.quantile(q)
    assert x.shape == (len(ROWS), len(q))
    assert np.all(np.diff(x, axis=1) > 0)
    assert np.allclose(rows.cdf(x), q, rtol=0.0, atol=1e-9)
    u = np.random.default_rng(0).random((len(ROWS), 3))  # of each row its own
    assert np.allclose(rows.cdf(rows.quantile(u)), u, rtol=0.0, atol=1e-9)
    assert np.allclose(rows.quantile(0.8), x[:, 4], rtol=1e-9)
    assert np.allclose(rows.median(), x[:, 3], rtol=1e-9)
    assert np.allclose(rows.interval(0.4), rows.quantile([0.3, 0.7]), rtol=1e-9)


def test_the_ends_of_the_line(rows):
    assert np.all(rows.quantile([0.0, 1.0]) == [-np.inf, np.inf])
    assert np.all(rows.interval(1.0) == [-np.inf, np.inf])
    assert np.allclose(rows.interval(0.0), rows.median()[:, None], rtol=1e-9)
    assert np.allclose(rows.cdf([[-np.inf, -1e9, 1e9, np.inf]]), [0.0, 0.0, 1.0, 1.0], rtol=0.0, atol=1e-12)
    assert np.all(rows.pdf([[-np.inf, -1e300, 1e300, np.inf]]) == 0.0)
    at = np.full(len(ROWS), LOCATION)
    at[2] = np.nan
    for f in (rows.cdf, rows.pdf, rows.logpdf):
        assert np.array_equal(np.isnan(f(at)), np.arange(len(ROWS)) == 2)
        assert np.allclose(f(at)[3:], f(LOCATION)[3:], rtol=1e-9)


def test_draws_follow_the_distribution(rows):
    x = rows.sample(2000, rng=0)
    assert x.shape == (len(ROWS), 2000)
    assert min(stats.kstest(u, "uniform").pvalue for u in rows.cdf(x)) > 1e-3
    assert stats.kstest(rows.cdf(x).ravel(), "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(x)[np.triu_indices(len(ROWS), 1)]).max() < 0.1
    assert np.array_equal(x, rows.sample(2000, rng=np.random.default_rng(0)))
    one = rows.sample(rng=3)
    assert np.allclose(one, rows.sample(1, rng=3)[:, 0], rtol=1e-12)
    assert np.allclose(one, LOCATION + SCALE * draw(rows.a, np.random.default_rng(3)), rtol=1e-12)


def test_many_values_a_row_are_done_in_blocks(rows, monkeypatch):
    x = LOCATION + SCALE * np.linspace(-2.0, 2.0, 11)[None, :]
    whole = rows.cdf(x), rows.quantile(np.linspace(0.1, 0.9, 11))
    monkeypatch.setattr("isodus.conditional._BLOCK", 3 * len(ROWS))
    assert np.allclose(rows.cdf(x), whole[0], rtol=0.0, atol=1e-12)
    assert np.allclose(rows.quantile(np.linspace(0.1, 0.9, 11)), whole[1], rtol=1e-12)


def test_shapes(rows):
    n = len(rows)
    assert n == len(ROWS)
    for f in (rows.cdf, rows.pdf, rows.logpdf):
        assert f(LOCATION).shape == f(np.full(n, LOCATION)).shape == (n,)
        assert f(np.full((n, 1), LOCATION)).shape == (n, 1)
        assert f(np.full((1, 5), LOCATION)).shape == f(np.full((n, 5), LOCATION)).shape == (n, 5)
        assert f(np.empty((1, 0))).shape == (n, 0)
        assert np.allclose(f(np.full((n, 2), LOCATION))[:, 1], f(LOCATION), rtol=1e-9)
        with pytest.raises(ValueError, match=r"x has 5 values for 7 rows.*x\[None, :\]"):
            f(np.zeros(5))
        with pytest.raises(ValueError, match=r"x has shape \(5, 7\)"):
            f(np.zeros((5, n)))
    for f in (rows.mean, rows.var, rows.std, rows.mode, rows.median, rows.sample):
        assert f().shape == (n,)
    assert rows.interval().shape == (n, 2)
    assert rows.quantile([0.5]).shape == (n, 1)
    none = Conditional("x", np.empty((4, 0)))
    assert len(none) == 0
    assert none.mean().shape == none.cdf(0.0).shape == none.sample().shape == (0,)
    assert none.interval().shape == none.pdf(np.zeros((1, 2))).shape == none.sample(2).shape == (0, 2)


def test_frame_repr_and_copies(rows):
    frame = rows.to_frame([0.05, 0.5])
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["mean", "std", "5%", "50%"]
    assert np.allclose(frame["50%"], rows.median(), rtol=1e-9)
    assert list(rows.to_frame().columns) == ["mean", "std", "2.5%", "50%", "97.5%"]
    assert repr(rows) == "Conditional distribution of x given u, v, 7 rows"
    a = [[0.0], [1.0]]
    assert repr(Conditional("PKA", a, given=[f"x{i}" for i in range(10)])) == (
        "Conditional distribution of PKA given 10 variables, 1 row"
    )
    assert repr(Conditional("PKA", a)) == "Conditional distribution of PKA, 1 row"
    assert np.allclose(pickle.loads(pickle.dumps(rows)).pdf(LOCATION), rows.pdf(LOCATION), rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        rows.a[0, 0] = 1.0
    strict = Conditional("x", array_api_strict.asarray(rows.a), LOCATION, SCALE)
    assert np.allclose(strict.mean(), rows.mean(), rtol=1e-12)


@pytest.mark.parametrize("bad", [(0.0, -1.0, 0.0, 0.0), (0.0, 1.0, 0.5, 0.0), (0.0,) * 4, (0.0, np.nan, 0.0, 1.0)])
def test_a_row_without_a_density_is_named(bad):
    a = np.array([(0.0, 1.0, 0.0, 0.0), (0.1, 0.0, 0.0, 1.0), bad, bad]).T
    with pytest.raises(ValueError, match="PKA has no distribution .* in 2 of 4 rows, the first: row 2"):
        Conditional("PKA", a)


def test_arguments_are_checked(rows):
    for q in (-0.1, 1.1, np.nan, [0.5, np.nan]):
        with pytest.raises(ValueError, match="q must lie between 0 and 1"):
            rows.quantile(q)
    for level in (-0.1, 1.5, np.nan):
        with pytest.raises(ValueError, match="level must lie between 0 and 1"):
            rows.interval(level)
    for n_draws in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="n_draws must be a positive integer"):
            rows.sample(n_draws)
    for scale in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="scale positive"):
            Conditional("x", [[0.0], [1.0]], scale=scale)
    with pytest.raises(ValueError, match="a has shape"):
        Conditional("x", [0.0, 1.0])


def test_it_is_the_conditional_of_a_model():
    terms = {(0, 0): 0.5, (0, 0, 0, 0): 1.0, (0, 1): 0.6, (0, 0, 1): 0.2, (1,): 0.3, (1, 1): -1.0, (1, 1, 1, 1): 0.5}
    model = PolynomialModel.from_dict(terms, names=["a", "b"])
    X = np.random.default_rng(0).normal(size=(20, 2))
    a = to_host(model.conditional_coefficients(1, X)).T
    c = Conditional("b", a, model.location[1], model.scale[1], ["a"])
    assert np.allclose(c.logpdf(X[:, 1]), model.conditional_log_density(X)[:, 1], atol=1e-9)
