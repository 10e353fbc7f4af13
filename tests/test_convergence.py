import tracemalloc

import numpy as np
import pytest
from scipy.signal import lfilter

from isodus.sampling import convergence
from isodus.sampling.convergence import autocorrelation_time, effective_sample_size, r_hat, tail_effective_sample_size

ALL = effective_sample_size, tail_effective_sample_size, r_hat, autocorrelation_time


def ar1(rng, shape, rho):
    """x_t = ρ x_{t−1} + noise along axis 1, stationary from the start."""
    noise = rng.standard_normal(shape)
    noise[:, 0] /= np.sqrt(1 - rho**2)
    return lfilter([1.0], [1.0, -rho], noise, axis=1)


def cases():
    """Chains, (chains, draws), each from a generator of its own."""
    rng = np.random.default_rng
    return {
        "slow": ar1(rng(1), (4, 250), 0.9),
        "antithetic": ar1(rng(2), (4, 100), -0.3),
        "odd number of draws, heavy tails": rng(3).standard_cauchy((4, 101)),
        "apart": rng(4).standard_normal((3, 50)) + np.array([[0.0], [1.0], [5.0]]),
        "of different spread": rng(5).standard_normal((4, 100)) * np.array([[1.0], [1.0], [1.0], [3.0]]),
        "drift": rng(6).standard_normal((2, 200)) + np.linspace(0, 2, 200),
        "ties": np.round(ar1(rng(7), (4, 100), 0.8)),
        "binary": (ar1(rng(8), (4, 100), 0.8) > 0).astype(float),
        "many and short": ar1(rng(9), (512, 40), 0.7),
        "alternating": ar1(rng(10), (2, 100), -0.9),
    }


def halves(x):
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def diagnostics(x):
    """ESS of bulk and tail, R̂, and the ESS of the mean that ArviZ takes from split chains."""
    parts = halves(x)
    found = [f(x[:, :, None])[0] for f in (effective_sample_size, tail_effective_sample_size, r_hat)]
    return [*found, parts.size / autocorrelation_time(parts[:, :, None])[0]]


# ArviZ 0.23.4 (1.3.0 gives the same digits): ess(x), ess(x, method="tail"), rhat(x), ess(x, method="mean")
REFERENCE = {
    "slow": (36.3073023198374, 106.95557473362278, 1.0919446613200605, 37.8077595052068),
    "antithetic": (855.2482193990392, 452.99389389797796, 0.9944081484916303, 888.8244070452621),
    "odd number of draws, heavy tails": (435.1128514878963, 463.7230258477595, 0.9949061043290476, 419.94052781618603),
    "apart": (4.994292932721228, 50.155440414507794, 1.8162371414146312, 4.008280568453747),
    "of different spread": (272.8011880160015, 43.89743272773156, 1.1370576323072747, 272.76024868190353),
    "drift": (9.279827544219517, 63.28403925801124, 1.1512273271769904, 9.374054802595479),
    "ties": (42.104868826795474, 70.03980212689721, 1.091276582706878, 42.88886908531765),
    "binary": (75.86625764609718, 75.86625764609718, 1.042060252841527, 75.86625764609718),
    "many and short": (3234.3904097092814, 7999.187949622905, 1.1216491123429013, 3233.3261970998383),
    "alternating": (460.2059991327962, 55.72937996559922, 1.1513672348855701, 460.2059991327962),
}


def test_reference_values():
    for name, x in cases().items():
        np.testing.assert_allclose(diagnostics(x), REFERENCE[name], rtol=1e-10, err_msg=name)


def test_arviz_agrees():
    arviz = pytest.importorskip("arviz")
    for name, x in cases().items():
        ess = [arviz.ess(x), arviz.ess(x, method="tail", prob=(0.05, 0.95)), arviz.ess(x, method="mean")]
        np.testing.assert_allclose(diagnostics(x), [*ess[:2], arviz.rhat(x), ess[2]], rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.5, 0.9])
def test_autocorrelation_time_of_a_known_process(rho):
    """The mean of 16 estimates is off by 0.5 to 2 %; without its −1 the sum would be by 5 %, or more."""
    x = ar1(np.random.default_rng(0), (16, 4000, 16), rho)
    tau = autocorrelation_time(x)
    assert abs(tau.mean() / ((1 + rho) / (1 - rho)) - 1) < 0.03
    assert tau.std() < 0.1 * tau.mean()
    np.testing.assert_allclose(
        effective_sample_size(x), 16 * 4000 / tau, rtol=0.1
    )  # normal values: ranks change little


def test_many_chains_that_are_short():
    """Of 512 chains of 40 draws, τ = 5.7 in the long run, the mean has a known error: S/ESS should be that, or more."""
    rho, n = 0.7, 40
    x = ar1(np.random.default_rng(1), (512, n, 20), rho)
    tau = (1 + rho) / (1 - rho) - 2 * rho * (1 - rho**n) / (n * (1 - rho) ** 2)
    assert tau < autocorrelation_time(x).mean() < 1.25 * tau
    assert tau < np.mean(512 * n / effective_sample_size(x)) < 1.25 * tau


def test_bounds():
    x = ar1(np.random.default_rng(2), (4, 1000, 3), -0.95)
    np.testing.assert_allclose(effective_sample_size(x), 4000 * np.log10(4000))
    np.testing.assert_allclose(autocorrelation_time(x), 1 / np.log10(4000))


@pytest.mark.filterwarnings("error")
def test_invariance():
    """Ranks know no monotone map; nothing knows units, even at the ends of what double precision holds.

    Units are powers of 2: the two middle values are equally far from the median, but for rounding.
    """
    x = ar1(np.random.default_rng(3), (4, 100, 2), 0.5)
    np.testing.assert_allclose(effective_sample_size(np.exp(x)), effective_sample_size(x), rtol=1e-12)
    for f in ALL:
        for unit in (2.0**-980, -2.0, 2.0**1022):
            np.testing.assert_allclose(f(unit * x), f(x), rtol=1e-12)
        np.testing.assert_allclose(f(1e6 + x), f(x), rtol=1e-3)
    k = np.round(3 * x)
    np.testing.assert_allclose(autocorrelation_time(1 + np.finfo(float).eps * k), autocorrelation_time(k), rtol=1e-12)


@pytest.mark.parametrize("draws", [4, 5, 8, 9, 10, 100])
@pytest.mark.parametrize("chains", [1, 2, 100])
def test_equal_values(chains, draws):
    x = np.full((chains, draws, 1), 0.1)
    S = chains * draws
    assert r_hat(x) == 1
    assert effective_sample_size(x) == tail_effective_sample_size(x) == S - draws % 2 * chains
    assert autocorrelation_time(x) == 1


@pytest.mark.parametrize("draws", [4, 5, 8, 9, 10, 100])
@pytest.mark.parametrize(
    "values", [[0.1, 0.2], [1.0, -1.0], [1.0, 1.0 + 1e-15], [0.0] * 3 + [1.0] * 97, np.arange(512.0)]
)
def test_stuck_chains(values, draws):
    x = np.repeat(values, draws).reshape(-1, draws, 1)
    assert r_hat(x) == np.inf
    assert effective_sample_size(x) == tail_effective_sample_size(x) == 1
    assert autocorrelation_time(x) == x.size


@pytest.mark.parametrize("draws", [4, 5, 8, 20, 100])
def test_chains_almost_stuck(draws):
    """Each about a place of its own: no more independent draws than halves of chains, however many are made."""
    x = np.arange(8.0)[:, None, None] + 1e-3 * np.random.default_rng(4).standard_normal((8, draws, 2))
    assert (r_hat(x) > 2).all()
    assert (effective_sample_size(x) < 17).all()
    assert (autocorrelation_time(x) > draws / 2).all()


def test_chains_that_differ_in_spread_alone():
    x = np.random.default_rng(5).standard_normal((4, 200, 1)) * np.array([1.0, 1.0, 1.0, 4.0])[:, None, None]
    assert r_hat(x) > 1.1
    assert convergence._ratio(convergence._normal(x.transpose(2, 0, 1))) < 1.01  # not seen without folding


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("draws", [2, 50])
def test_values_that_are_not_finite(value, draws):
    x = np.random.default_rng(6).standard_normal((4, draws, 3))
    x[2, 1, 1] = value
    others = np.delete(x, 1, axis=2)
    for f, bad in zip(ALL, [0, 0, np.inf, np.inf], strict=True):
        np.testing.assert_array_equal(f(x), np.insert(f(others), 1, bad))


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_few_draws(draws):
    for x in (np.random.default_rng(7).standard_normal((4, draws, 2)), np.zeros((4, draws, 2))):
        assert (r_hat(x) == np.inf).all()
        assert (effective_sample_size(x) == 1).all()
        assert (tail_effective_sample_size(x) == 1).all()
        assert (autocorrelation_time(x) == 4 * draws).all()


@pytest.mark.parametrize("shape", [(4, 0, 2), (0, 10, 2)])
def test_no_draws(shape):
    for f, bad in zip(ALL, [0, 0, np.inf, np.inf], strict=True):
        np.testing.assert_array_equal(f(np.empty(shape)), [bad, bad])


def test_no_variables():
    for f in ALL:
        assert f(np.empty((4, 10, 0))).shape == (0,)


@pytest.mark.filterwarnings("error")
def test_finite_input_gives_positive_finite_times():
    rng = np.random.default_rng(8)
    for draws in (1, 3, 4, 5, 6, 7, 8, 9, 10, 30):
        x = ar1(rng, (3, draws, 100), 0.5)
        x[..., :50] = np.round(x[..., :50])
        x[..., :10] *= 1e308 / np.abs(x).max()
        x[..., 10:20] *= 1e-310
        for f in ALL:
            found = f(x)
            assert (found > 0).all()
            assert f is r_hat or np.isfinite(found).all()


def test_blocks_do_not_matter(monkeypatch):
    x = ar1(np.random.default_rng(9), (4, 60, 11), 0.6)
    x[..., 3], x[0, 0, 5], x[..., 7] = 1.0, np.nan, np.round(x[..., 7])
    whole = [f(x) for f in ALL]
    for variables in (1, 2, 4):
        monkeypatch.setattr(convergence, "_CELLS", variables * 4 * 60)
        for f, expected in zip(ALL, whole, strict=True):
            np.testing.assert_allclose(f(x), expected, rtol=1e-13)


def test_memory_is_bounded():
    x = np.random.default_rng(10).standard_normal((100, 100, 300))
    tracemalloc.start()
    r_hat(x)  # takes the most
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6
