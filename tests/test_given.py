import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isodus import PolynomialModel, univariate
from isodus.datasets import gaussian_10, paper_4d, paper_pair
from isodus.progress import Progress
from isodus.sampling import NotExactError, given

NAN = np.nan
THREE = PolynomialModel.from_dict(
    {(i,) * 4: 0.3 for i in range(3)}
    | {(0, 1): 0.4, (0, 2): -0.5, (1, 2): 0.3, (0, 0, 1): 0.2, (1, 2, 2): -0.3, (0, 0, 2, 2): 0.1, (0,): 0.2}
)


class Calls(Progress):
    """Remembers what it is told, and interrupts at the call of this number."""

    def __init__(self, stop=None):
        super().__init__(False)
        self.seen, self.stop = [], stop

    def __call__(self, what, done, total):
        self.seen.append((what, done, total))
        if len(self.seen) == self.stop:
            raise KeyboardInterrupt


def fill(model, Y, n_draws, rng=0, progress=None):
    progress = Progress(False) if progress is None else progress
    return given.fill(model.basis, model.theta, model.names, Y, n_draws, np.random.default_rng(rng), progress)


def agree(x, exact, error=0.0):
    """The mean of x, (n_draws, rows, …), rows alike and independent, is exact: by the spread of the means of rows."""
    means = x.mean(axis=0)
    spread = np.hypot(means.std(axis=0, ddof=1) / np.sqrt(len(means)), error)
    return np.all(np.abs(means.mean(axis=0) - exact) < 4 * spread)


def wells(height, coupling):
    """E = Σ h (x_i² − 1)² − c x_0 x_1, and a third variable that x_0 depends on a little."""
    own = {(i, i): -2 * height for i in (0, 1)} | {(i,) * 4: height for i in (0, 1)}
    return PolynomialModel.from_dict(own | {(0, 1): -coupling, (2, 2): 0.5, (0, 2): 0.1})


def test_a_gaussian_has_the_mean_and_covariance_of_the_textbook():
    model, rows = gaussian_10(), 150
    hidden, there = [1, 4, 5, 8], [0, 2, 3, 6, 7, 9]
    Y = 3 * np.random.default_rng(1).standard_normal((10, rows))
    Y[hidden] = NAN
    found = fill(model, Y, 256)
    A = model.precision()
    covariance = np.linalg.inv(A[np.ix_(hidden, hidden)])
    mean = -covariance @ A[np.ix_(hidden, there)] @ Y[there]
    x = (found.values[:, hidden] - mean).transpose(0, 2, 1)
    assert agree(x, 0.0)
    assert agree(x[..., :, None] * x[..., None, :], covariance)
    # draws are nearly independent: means of 256 have the variance of one draw over 256/τ, τ about 1.5 at most
    tau = x.mean(axis=0).var(axis=0) / np.diag(covariance) * 256
    assert np.all((tau > 0.6) & (tau < 1.8))
    assert np.max(found.r_hat) < 1.2


def test_one_missing_cell_is_drawn_exactly(monkeypatch):
    monkeypatch.setattr(given, "_BYTES", 200_000)  # a few rows at a time
    model, n = paper_pair(1), 400
    Y = np.stack([np.full(n, NAN), np.random.default_rng(2).uniform(-1.5, 1.5, n)])
    found = fill(model, Y, 50)
    assert (found.thin, found.sweeps, found.complete) == (1, 0, True)
    assert np.all(found.r_hat == 1)
    a = model.conditional_coefficients(0, np.where(np.isnan(Y), 0.0, Y).T).T
    moments = univariate.integrate(a, moments=4).moments
    x = found.values[:, 0]
    for l in range(1, 5):
        error = (x**l - moments[l - 1]).ravel()
        assert abs(error.mean()) < 4 * error.std() / np.sqrt(error.size)
    u = univariate.cdf(np.tile(a, 50), x.ravel())
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert len(np.unique(u)) == u.size
    row = 300  # the integrals by themselves: one row by the trapezoid rule
    t = np.linspace(-4, 4, 2001)
    density = np.exp(-model.energy(np.stack([t, np.full_like(t, Y[1, row])], axis=1)))
    assert moments[1, row] == pytest.approx(density @ t**2 / density.sum(), rel=1e-9)


@pytest.mark.parametrize("size", [given._BYTES, 400_000])
def test_two_of_three_against_quadrature(size, monkeypatch):
    rows, z = 100, 0.8
    monkeypatch.setattr(given, "_BYTES", size)
    Y = np.repeat([[NAN], [NAN], [z]], rows, axis=1)
    calls = Calls()
    found = fill(THREE, Y, 256, progress=calls)
    what, done, total = calls.seen[-1]
    assert (what, done) == (f"imputing, a draw every {found.thin} sweeps", total)
    assert (total > 16) == (size == 400_000)  # several blocks of rows, or one
    t = np.linspace(-5, 5, 401)
    grid = [g.ravel() for g in np.meshgrid(t, t, [z], indexing="ij")]
    density = np.exp(-THREE.energy(np.stack(grid, axis=1)))
    density /= density.sum()
    x, y = found.values[:, 0], found.values[:, 1]
    for i, j in [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (2, 1)]:
        assert agree(x**i * y**j, density @ (grid[0] ** i * grid[1] ** j)), (i, j)


def test_a_row_with_nothing_in_it_is_a_sample_of_the_model():
    found = fill(THREE, np.full((3, 100), NAN), 64)
    X = THREE.sample(100_000, rng=1)
    Y = found.values.transpose(0, 2, 1)
    for term in [(0,), (1,), (2,), (0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        values = X[:, term].prod(axis=1)
        assert agree(Y[:, :, term].prod(axis=2), values.mean(), values.std() / np.sqrt(len(X))), term


def test_patterns_of_their_own_and_cells_that_are_there():
    X = paper_4d().sample(40, rng=0).T  # 0 and 1 interact, and 2 and 3
    patterns = [(), (0,), (0, 2), (1, 3), (0, 1), (0, 1, 2), (0, 1, 2, 3), (2, 3)]
    Y = X.copy()
    for k in range(40):
        Y[list(patterns[k % 8]), k] = NAN
    before, found = Y.copy(), fill(paper_4d(), Y, 5)
    there = ~np.isnan(Y)
    assert np.array_equal(Y, before, equal_nan=True)
    assert found.values.shape == (5, 4, 40)
    assert np.all(np.isfinite(found.values))
    for values in found.values:
        assert np.array_equal(values[there].view(np.int64), X[there].view(np.int64))  # to the bit
        assert np.all(values[~there] != X[~there])
    tied = {4: [0, 1], 5: [0, 1], 6: [0, 1, 2, 3], 7: [2, 3]}
    for k in range(40):
        assert np.flatnonzero(found.r_hat[:, k] != 1).tolist() == tied.get(k % 8, [])
    assert found.sweeps > 0
    again, other = fill(paper_4d(), Y, 5), fill(paper_4d(), Y, 5, rng=1)
    assert np.array_equal(found.values, again.values)
    assert np.array_equal(found.r_hat, again.r_hat)
    assert np.all(other.values[:, ~there] != found.values[:, ~there])


@pytest.mark.parametrize("n_draws", [1, 40, 300, 20_000])
def test_any_number_of_draws_all_different(n_draws):
    Y = np.array([[NAN, NAN, 0.1], [NAN, 0.3, 0.2]])
    found = fill(paper_pair(1), Y, n_draws)
    assert found.values.shape == (n_draws, 2, 3)
    for i, k in [(0, 0), (1, 0), (0, 1)]:
        assert len(np.unique(found.values[:, i, k])) == n_draws
    assert (found.thin, found.sweeps) == (1, 8 + (16 if n_draws < 20_000 else 20))


def test_nothing_to_do():
    Y = np.random.default_rng(0).standard_normal((2, 7))
    found = fill(paper_pair(1), Y, 3)
    assert np.array_equal(found.values, np.repeat(Y[None], 3, axis=0))
    assert np.array_equal(found.r_hat, np.ones((2, 7)))
    assert found[2:] == (1, 0, True)
    assert fill(paper_pair(1), np.empty((2, 0)), 3).values.shape == (3, 2, 0)


def test_wells_that_chains_do_not_leave_are_told(monkeypatch):
    monkeypatch.setattr(given, "_MOST", 8)
    Y = np.array([[NAN, NAN, NAN], [NAN, NAN, 1.0], [0.0, 0.5, 0.2]])
    found = fill(wells(10.0, 8.0), Y, 16)
    assert found.thin == 8
    assert found.sweeps == 8 + 16 + 16 * 8
    assert np.all(found.r_hat[:2, :2] > 1.25)
    assert np.all(found.r_hat[:, 2] == 1)
    signs = np.sign(found.values[:, :2, :2])
    assert np.array_equal(signs[:, 0], signs[:, 1])
    assert set(signs.ravel()) == {-1.0, 1.0}  # sixteen draws of as many chains
    assert np.all(found.values[:, 0, 2] > 0.5)
    weak = fill(wells(10.0, 0.2), Y, 16)  # as deep; but each well is as good, and draws are of both
    assert weak.thin == 1
    assert np.all(weak.r_hat < 1.2)


def test_an_interruption_gives_what_there_is(monkeypatch):
    monkeypatch.setattr(given, "_MOST", 8)
    model, Y = wells(10.0, 8.0), np.array([[NAN, 1.0], [NAN, NAN], [0.0, 0.5]])
    calls = Calls(stop=1 + 16 + 5)  # one for the cell that needs no chain
    found = fill(model, Y, 3, progress=calls)
    assert calls.seen[0] == ("imputing, independent draws", 1, 1)
    assert calls.seen[-1] == ("imputing, a draw every 8 sweeps", 5, 16)
    assert (found.thin, found.sweeps, found.complete) == (1, 24, False)
    assert np.all(np.isfinite(found.values))
    assert np.all(found.r_hat[:2, 0] > 1.25)
    for stop in (1, 16):
        with pytest.raises(KeyboardInterrupt):
            fill(model, Y, 3, progress=Calls(stop))


def test_a_density_that_does_not_exist_is_named():
    terms = {(0, 0, 1): 1.0, (1,) * 4: 1.0, (2, 2): 0.5, (0, 2): 0.1}  # of x0 only where x1 is positive
    model = PolynomialModel.from_dict(terms, names=["ph", "temp", "salt"])
    Y = np.array([[NAN, NAN, NAN, NAN], [1.0, 0.5, -1.0, 2.0], [0.0, 0.1, 0.2, 0.3]])
    with pytest.raises(NotExactError, match="row 2: the density of ph given the other variables does not exist"):
        fill(model, Y, 7)
    Y[2] = NAN
    with pytest.raises(NotExactError, match="row 2: the density of ph given the other variables does not exist"):
        fill(model, Y, 7)
    assert np.all(np.isfinite(fill(model, Y[:, [0, 1, 3]], 7).values))
    flat = PolynomialModel.from_dict({(0, 0): 1.0}, n_variables=2)
    with pytest.raises(ValueError, match="no term contains x1: its density is flat"):
        fill(flat, np.array([[1.0], [NAN]]), 1)


@pytest.mark.parametrize("kinds", [{"a": "Float64", "b": "Float64"}, {"a": "Int64", "b": "Float32"}, {"a": "Int8"}])
def test_types_of_pandas_are_read_as_those_of_numpy(kinds):
    model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0}, names=["a", "b"])
    plain = pd.DataFrame({"a": [1.0, NAN, 2.0], "b": [2.0, 3.0, NAN]})
    frame = plain.astype(kinds)
    pd.testing.assert_frame_equal(model.impute(frame, rng=0), model.impute(plain, rng=0))
    turned = frame[["b", "a"]]
    np.testing.assert_array_equal(model.impute(turned, 2, rng=0), model.impute(plain, 2, rng=0))
    np.testing.assert_array_equal(model.energy(turned), model.energy(plain))
    np.testing.assert_array_equal(model.logpdf(frame[:1]), model.logpdf(plain[:1]))
    np.testing.assert_array_equal(model.conditional("a", turned[:2]).mean(), model.conditional("a", plain[:2]).mean())
    with pytest.raises(
        ValueError, match=r"columns that are not numeric: b \(could not convert string to float: 'many'"
    ):
        model.impute(frame.assign(b=["1", "2", "many"]))
