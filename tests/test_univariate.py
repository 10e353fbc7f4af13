"""univariate against mpmath at 36 digits, on the same double coefficients, and closed forms."""

from functools import cache
from itertools import pairwise

import array_api_strict
import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from isodus import univariate
from isodus.arrays import to_host
from isodus.univariate import cdf, draw, integrate, quantile
from isodus.univariate.adaptive import integrate_each

TOL = 1e-10


def expand(*coefficients, at=0.0):
    """Coefficients of x^1… of Σ_k c_k (x − at)^k, rounded to double."""
    p = np.poly1d([0.0])
    for k, c in enumerate(coefficients):
        p = p + c * np.poly1d([1.0, -at]) ** k
    return tuple(np.pad(p.coeffs[::-1], (0, len(coefficients)))[1 : len(coefficients)])


QUARTIC = {
    "friendly": (0.3, -0.5, 0.2, 1.0),
    "one well, skew": (-1.0, 0.7, -1.1, 0.6),
    **{f"double well, height {h:g}": (0.0, -2.0 * h, 0.0, h) for h in (1.0, 4.0, 30.0, 45.0, 100.0, 1e4, 1e6)},
    "unequal wells": (0.7, -8.0, 0.4, 4.0),
    "unequal high wells": (0.01, -2e4, 0.005, 1e4),
    "a weak well beside a strong one": (30.0, -60.0, 0.0, 30.0),
    "narrow": (3.0, 1e6, 2.0, 1e6),
    "narrow, quadratic": (1.0, 1e6, 0.0, 1e-6),
    "wide": (1e-4, 1e-6, 1e-8, 1e-12),
    "wide double well": (1e-6, -1e-5, 0.0, 1e-12),
    "nearly Gaussian": (0.2, 0.5, 1e-3, 1e-6),
    "nearly Gaussian, tiny quartic": (0.2, 0.5, 0.0, 1e-40),
    "a third power that makes a far deep well": (0.1, 0.5, 0.2, 1e-3),
    "shoulder": expand(0.0, 0.0, 0.0, 4.0, 3.05),
    "flat": (0.0, 0.0, 0.0, 1.0),
    # Mass at 1e3, width 1e-2. Σ|a_l x^l| there is 1e10 (2e16 for the quartic), so the *coefficients'*
    # rounding moves the density by far more than 1e-10; the reference is that of the rounded coefficients.
    "narrow at 1e3": expand(0.0, 0.0, 5e3, 1.0, 2.0, at=1e3),
    "narrow at -1e3": expand(0.0, 0.0, 5e3, 0.0, 1e-6, at=-1e3),
    "quartic at 1e3": expand(0.0, 0.0, 0.0, 0.0, 1.0, at=1e3),
    "two narrow wells at 1e3": (0.0, -2e6 * 1e-2, 0.0, 1e-2),
    "double well at 1e3": expand(0.0, 0.1, -8.0, 0.0, 4.0, at=1e3),
    "effective degree 2": (0.4, 1.5, 0.0, 0.0),
}
SEXTIC = {
    "friendly": (0.1, -0.4, 0.3, 0.5, -0.2, 0.3),
    "three wells": (0.0, 9.0, 0.0, -12.0, 0.0, 4.0),
    "three high wells": (0.0, 900.0, 0.0, -1200.0, 0.0, 400.0),
    "wide": (0.0, 0.0, 1e-6, 0.0, 0.0, 1e-12),
    "narrow": (1e3, 1e6, 0.0, 1e6, 0.0, 1e6),
    "effective degree 4": (0.3, -0.5, 0.2, 1.0, 0.0, 0.0),
}
OTHERS = {
    "degree 10": (0.5, -1.0, 0.3, 0.8, -0.1, -0.6, 0.2, 0.1, -0.05, 0.08),
    # its eighth moment was off by 4e-10 when the check of the trapezoid sum was as loose as for degree 4
    "degree 10, steep": (1.91, 15.144, 0.165, 0.599, 0.101, 0.299, 1.311, -0.601, 3.229, 2.657),
    "degree 8, wells": (0.1, 0.0, -3.0, 0.0, 2.0, -30.0, 0.0, 10.0),
}


@cache
def gauss(n):
    with mp.workdps(40):
        start = np.polynomial.legendre.leggauss(n)[0]
        x = [mp.findroot(lambda t: mp.legendre(n, t), mp.mpf(float(v))) for v in start]
        slope = [n * (v * mp.legendre(n, v) - mp.legendre(n - 1, v)) / (v * v - 1) for v in x]
        return [(v, 2 / ((1 - v * v) * d * d)) for v, d in zip(x, slope, strict=True)]


@cache
def reference(a, moments=8, upto=None):
    """log Z, E[x^l], E|x|^l, E[(x − centre)^l], P(x < upto), by composite Gauss sums at 36 digits."""
    with mp.workdps(36):
        while a[-1] == 0:
            a = a[:-1]
        c = [mp.mpf(0), *map(mp.mpf, map(float, a))]
        slope = [k * c[k] for k in range(1, len(c))]
        roots = mp.polyroots(slope, maxsteps=500, extraprec=600, asc=True)
        points = sorted(mp.re(r) for r in roots if abs(mp.im(r)) < 1e-12 * (1 + abs(r)))

        def q(x):
            value = mp.mpf(0)
            for ck in reversed(c):
                value = value * x + ck
            return value

        low = min(q(x) for x in points)
        cuts = set(points)
        for x in points:  # outward from every critical point in steps that grow with the local width
            if q(x) - low > 55:
                continue
            for sign in (-1, 1):
                t = mp.mpf(10) ** -30
                while abs(q(x + sign * 2 * t) - q(x)) < 2:
                    t *= 2
                y = x
                while q(y) - low < 55 and len(cuts) < 400:
                    step = t
                    while abs(q(y + sign * 2 * step) - q(y)) < 8:
                        step *= 2
                    while abs(q(y + sign * step) - q(y)) > 16:
                        step /= 2
                    y += sign * step
                    cuts.add(y)
        cuts |= {mp.mpf(upto)} if upto is not None else set()
        cuts = sorted(cuts)
        centre = min(points, key=q)
        central, below, size = [mp.mpf(0)] * (moments + 1), mp.mpf(0), np.zeros(moments + 1)
        for left, right in pairwise(cuts):
            if min(q(left), q(right)) - low > 55:
                continue
            h = (right - left) / 2
            for v, w in gauss(20 if len(a) <= 6 else 40):  # against 56: 6e-18, 4e-23
                x = left + h * (1 + v)
                f = h * w * mp.exp(low - q(x))
                below += f if upto is not None and right <= upto else 0
                size += float(f) * np.abs(float(x)) ** np.arange(moments + 1)
                for k in range(moments + 1):
                    central[k] += f
                    f *= x - centre
        total = central[0]
        central = [m / total for m in central]
        raw = [about(central, centre, k) for k in range(moments + 1)]
        return {
            "log_z": mp.log(total) - low,
            "raw": raw,
            "size": size / float(total),
            "central": central,
            "centre": centre,
            "below": below / total,
        }


def about(M, shift, k):
    """E[(shift + v)^k] from M_j = E[v^j]."""
    return sum(mp.binomial(k, j) * shift ** (k - j) * M[j] for j in range(k + 1))


def batch(table):
    return np.array(list(table)).T.copy()


def errors(a, r, j, moments):
    """Relative errors of Z and of the moments (against E|x|^l) of row j."""
    ref = reference(tuple(a[:, j]), 8)
    with mp.workdps(40):
        z = abs(mp.expm1(mp.mpf(float(r.log_z[j])) - ref["log_z"]))
        m = [abs(mp.mpf(float(r.moments[k, j])) - ref["raw"][k + 1]) / ref["size"][k + 1] for k in range(moments)]
        return float(z), max(map(float, m), default=0.0)


@pytest.mark.parametrize("table", [QUARTIC, SEXTIC], ids=["quartic", "sextic"])
def test_log_z_and_moments_of_one_mixed_batch_match_mpmath(table):
    a = batch(table.values())
    r = integrate(a, moments=8)
    assert r.missing.size == 0
    for j, name in enumerate(table):
        z, m = errors(a, r, j, 8)
        # a double holds log Z only to eps |log Z|
        assert z <= TOL + 2 * np.finfo(float).eps * abs(r.log_z[j]), (name, z)
        assert m <= TOL, (name, m)


@pytest.mark.parametrize("name", OTHERS)
def test_other_degrees_match_mpmath(name):
    a = batch([OTHERS[name]])
    z, m = errors(a, integrate(a, moments=8), 0, 8)
    assert z <= TOL
    assert m <= TOL


TILTED = {
    "Gaussian": (0.4, 0.5, 0.0, 0.0),
    "a little less than Gaussian": (-0.7, 0.6, 0.02, -0.01),
    "as low as it goes": (0.2, 0.9, -0.03, -0.05),
    "far deeper wells": (0.3, 0.5, 0.02, -0.05),
    "quartic": (0.3, 0.2, -0.4, 0.5),
    "steep": (-1.5, 0.8, 1.0, 2.0),
    "two wells": (0.4, -1.5, 0.2, 0.8),
    "far from zero": (-12.0, 2.5, 0.05, 0.02),
}


def test_tilted_rows_match_mpmath_on_the_quick_road(monkeypatch):
    a = batch(TILTED.values())
    q = np.concatenate([a, np.zeros((1, a.shape[1])), np.full((1, a.shape[1]), 1e-3)])
    monkeypatch.setattr(univariate.rows, "careful", None)
    for moments in (4, 8):  # they begin with different rules
        r = integrate(a, moments=moments, nu=1e-3, power=6.0)
        for j, name in enumerate(TILTED):
            assert max(errors(q, r, j, moments)) <= TOL, name


def trial_points(n, seed):
    """Coefficients (4, n) as a line search far from the solution makes them: deep wells, far apart and from zero."""
    rng = np.random.default_rng(seed)
    a = rng.choice([-1.0, 1.0], (4, n)) * 10.0 ** rng.uniform(-2.0, [[3.0], [2.5], [2.0], [2.0]], (4, n))
    a[3] = 10.0 ** rng.uniform(-3.0, 0.0, n)
    return a


def double_wells(n, seed):
    """h (y² − w²)² + e y, y = x − m: wells of nearly equal depth, barriers from 1e-3 to 1e6."""
    rng = np.random.default_rng(seed)
    h, w, m = 10.0 ** rng.uniform(-3, 0, n), 10.0 ** rng.uniform(-0.5, 1.5, n), rng.normal(size=n) * 5.0
    e = rng.normal(size=n) * 10.0 ** rng.uniform(-6, 1.7, n) / w
    b = -2.0 * h * w * w
    return np.stack([e - 2.0 * b * m - 4.0 * h * m**3, b + 6.0 * h * m * m, -4.0 * h * m, h])


def level_barriers(n, seed):
    """Barriers, and depths of the other well, from half to twice the cutoff level: every case of `wells`."""
    rng = np.random.default_rng(seed)
    D, height, e = 10.0 ** rng.uniform(-1, 2, n), rng.uniform(20.0, 150.0, n), rng.uniform(0.0, 60.0, n)
    h = 16.0 * height / D**4
    return np.stack([e / D, h * D * D, -2.0 * h * D, h])


HARD = {"trial points": trial_points, "double wells": double_wells, "barriers at the level": level_barriers}
# a far well at the level made up 1.7e-9 and 1.5e-10 of a moment, and was dropped
FAR_WELLS = [(0.0, 73.06046276, 26.88174776, 2.53414439), (-0.23930919, 6.56093107, -0.83696386, 0.02765965)]


@pytest.mark.parametrize("name", HARD)
def test_hard_quartics_match_mpmath_without_the_careful_road(name, monkeypatch):
    monkeypatch.setattr(univariate.rows, "careful", None)
    integrate(HARD[name](3000, 1), moments=8)
    a = HARD[name](16, 2)
    for tol in (TOL, 1e-6):
        r = integrate(a, moments=8, tol=tol)
        for j in range(a.shape[1]):
            z, m = errors(a, r, j, 8)
            assert z <= tol + 2 * np.finfo(float).eps * abs(r.log_z[j]), a[:, j]
            assert m <= tol, a[:, j]


def test_a_light_well_far_away_counts_in_the_moments():
    a = batch(FAR_WELLS)
    r = integrate(a, moments=8)
    for j in range(a.shape[1]):
        assert max(errors(a, r, j, 8)) <= TOL


def friendly(n, seed):
    rng = np.random.default_rng(seed)
    return np.stack([*rng.normal(size=(3, n)), rng.uniform(0.2, 2.0, n)])


@pytest.mark.parametrize("make", [friendly, *HARD.values()])
@pytest.mark.parametrize("moments", [0, 4, 8])
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_a_loose_tolerance_is_kept(make, moments, tol):
    a = make(3000, 4)
    exact, r = integrate(a, moments=moments, tol=1e-12), integrate(a, moments=moments, tol=tol)
    assert np.all(np.abs(r.log_z - exact.log_z) <= tol + 1e-14 * np.abs(exact.log_z))
    even = np.concatenate([np.ones((1, 3000)), exact.moments[1::2]])
    for k in range(1, moments + 1):
        size = np.sqrt(even[k // 2] * even[(k + 1) // 2])  # ≥ E|x|^k, the same for even k
        assert np.all(np.abs(r.moments[k - 1] - exact.moments[k - 1]) <= tol * size), k


@pytest.mark.parametrize("tail", [{}, {"nu": 1e-3, "power": 6.0}])
def test_a_loose_tolerance_is_kept_for_other_degrees(tail):
    a = friendly(2000, 6)
    a = a if tail else np.concatenate([a, np.zeros((1, 2000)), a[3:]])
    exact, r = integrate(a, moments=8, tol=1e-12, **tail), integrate(a, moments=8, tol=1e-6, **tail)
    assert np.all(np.abs(r.log_z - exact.log_z) <= 1e-6)
    assert np.all(np.abs(r.moments - exact.moments)[1::2] <= 1e-6 * exact.moments[1::2])


@pytest.mark.parametrize("tail", [{}, {"nu": 1e-3, "power": 6.0}])
def test_the_mode_is_the_lowest_point(tail):
    rng = np.random.default_rng(8)
    a = rng.normal(size=(4, 1000)) * np.array([[0.3], [3.0], [0.3], [1.0]])
    a[3] = rng.uniform(0.0 if tail else 0.05, 2.0, 1000)
    x = integrate(a, **tail).mode

    def q(t):
        return t * (a[0] + t * (a[1] + t * (a[2] + t * a[3]))) + (1e-3 * t**6 if tail else 0.0)

    grid = np.linspace(-8.0, 8.0, 1001)[:, None]
    assert np.all(q(x) <= np.min(q(grid), axis=0) + 1e-12 * (1.0 + np.abs(q(x))))


def test_mass_far_from_zero_has_accurate_central_moments():
    names = ["narrow at 1e3", "narrow at -1e3", "quartic at 1e3", "double well at 1e3"]
    a = batch(QUARTIC[k] for k in names)
    r = integrate(a, moments=8)
    for j, name in enumerate(names):
        ref = reference(tuple(a[:, j]))
        with mp.workdps(36):  # about the mode that was returned, itself a rounded number
            d = ref["centre"] - mp.mpf(float(r.mode[j]))
            for k in range(1, 9):
                size = mp.sqrt(ref["central"][k - k % 2] * ref["central"][k + k % 2])  # ≥ E|t|^k
                error = mp.mpf(float(r.central[k - 1, j])) - about(ref["central"], d, k)
                assert abs(error) <= TOL * size, (name, k)


def test_gaussian_rows_match_the_closed_form():
    rng = np.random.default_rng(5)
    a = np.stack([rng.normal(size=200) * 10.0 ** rng.uniform(-3, 3, 200), 10.0 ** rng.uniform(-6, 6, 200)])
    r = integrate(a, moments=4)
    mean, var = -a[0] / (2 * a[1]), 1 / (2 * a[1])
    log_z = a[0] ** 2 / (4 * a[1]) + 0.5 * np.log(np.pi / a[1])
    exact = np.array([mean, mean**2 + var, mean**3 + 3 * mean * var, mean**4 + 6 * mean**2 * var + 3 * var**2])
    size = (np.abs(mean) + np.sqrt(var)) ** np.arange(1, 5)[:, None]
    assert np.all(np.abs(r.log_z - log_z) <= TOL + 4 * np.finfo(float).eps * np.abs(log_z))
    assert np.all(np.abs(r.moments - exact) <= TOL * size)
    assert np.all(np.abs(r.central[1] - var) <= TOL * var)
    np.testing.assert_allclose(r.mode, mean, rtol=1e-14)


def adaptive(a, nu, power, centre, points, g=lambda x: 1):
    """∫ g exp(−q) by mpmath's double exponential rule between `points`."""
    with mp.workdps(15):

        def f(x):
            q = sum(mp.mpf(float(c)) * x ** (k + 1) for k, c in enumerate(a))
            return g(x) * mp.exp(-q - mp.mpf(nu) * abs(x - mp.mpf(centre)) ** mp.mpf(power))

        return mp.quad(f, [mp.mpf(p) for p in points])


@pytest.mark.parametrize(
    ("a", "nu", "power", "centre"),
    [
        ((0.5, -1.0, 0.3, -0.4), 0.05, 6.0, 0.0),
        ((0.5, -1.0, 0.3, -0.4), 0.05, 6.0, 1.7),
        ((0.5, -1.0, 0.3, -0.4), 1.0, 4.5, 0.0),
        ((0.5, -1.0, 0.3, -0.4), 0.1, 5.0, -0.6),
        ((1.0,), 0.7, 1.5, 0.3),
        ((0.0, 0.0), 1.0, 2.5, 0.0),
        ((0.3, -1.0, 0.0), 0.2, 3.2, 0.1),
    ],
)
def test_tail_term_alone_makes_a_density(a, nu, power, centre):
    column = np.array(a)[:, None]
    r = integrate(column, moments=4, nu=nu, power=power, centre=centre)
    points = [-8, -5, -3, -1, centre, 2, 3.5, 5, 8] if power > 2 else [-60, -10, -3, centre, 2, 10, 60]
    z = adaptive(a, nu, power, centre, points)
    assert abs(float(mp.mpf(float(r.log_z[0])) - mp.log(z))) <= TOL
    for k in (1, 4):
        m = float(adaptive(a, nu, power, centre, points, lambda x, k=k: x**k) / z)
        assert abs(float(r.moments[k - 1, 0]) - m) <= TOL * max(1.0, abs(m)), k
    x = quantile(column, np.array([0.37]), nu=nu, power=power, centre=centre)
    below = adaptive(a, nu, power, centre, sorted([p for p in points if p < x[0]] + [float(x[0])])) / z
    assert abs(float(below) - 0.37) <= TOL
    assert abs(cdf(column, x, nu=nu, power=power, centre=centre)[0] - 0.37) <= TOL


def test_rows_without_a_density_are_reported_by_index_and_spoil_nothing():
    good = (0.3, -0.5, 0.2, 1.0)
    bad = [
        (0.0, 0.0, 0.0, -1.0), (1.0, 1.0, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.0, -1.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0), (np.nan, 1.0, 0.0, 1.0), (0.0, np.inf, 0.0, 1.0),
    ]  # fmt: skip
    a = batch([good, *bad, good])
    r = integrate(a, moments=4)
    assert r.missing.tolist() == list(range(1, 8))
    assert np.all(np.isposinf(r.log_z[r.missing]))
    assert np.all(r.moments[:, r.missing] == 0)
    alone = integrate(batch([good]), moments=4)
    for j in (0, 8):
        np.testing.assert_allclose(r.log_z[j], alone.log_z[0], rtol=1e-13)
        np.testing.assert_allclose(r.moments[:, j], alone.moments[:, 0], rtol=1e-12)
    assert integrate(batch(bad), moments=2).missing.size == 7
    assert integrate(np.zeros((3, 2))).missing.tolist() == [0, 1]
    assert integrate(batch(bad), nu=0.1, power=6.0).missing.tolist() == [5, 6]
    with pytest.raises(ValueError, match=r"7 of 9 rows have no density .*row 1"):
        quantile(a, np.full(9, 0.5))


@pytest.mark.parametrize("table", [QUARTIC, SEXTIC], ids=["quartic", "sextic"])
def test_quantile_and_cdf_match_mpmath(table):
    a = batch(table.values())
    n = a.shape[1]
    density = np.exp(peak(a))
    for level in (1e-6, 0.3, 0.93):
        x = quantile(a, np.full(n, level))
        # mass at 1e3: x itself is only known to eps |x|, so compare at the x that came out
        slack = 4 * np.spacing(np.abs(x)) * density
        assert np.all(np.abs(cdf(a, x) - level) <= TOL + slack)
    for name in CDF_ROWS & set(table):
        column = batch([table[name]])
        x = quantile(column, np.array([0.3]))
        below = float(reference(tuple(column[:, 0]), 0, float(x[0]))["below"])
        assert abs(float(cdf(column, x)[0]) - below) <= TOL, name


CDF_ROWS = {
    "friendly", "unequal wells", "unequal high wells", "narrow", "nearly Gaussian", "narrow at 1e3",
    "quartic at 1e3", "two narrow wells at 1e3", "three wells",
}  # fmt: skip


def peak(a):
    """−log of the standard deviation, about the log density: what an error in x costs in probability."""
    r = integrate(a, moments=2)
    return -0.5 * np.log(r.central[1] - r.central[0] ** 2 + 1e-300)


def test_cdf_ends_and_order():
    a = batch(QUARTIC.values())
    n = a.shape[1]
    assert np.all(cdf(a, np.full(n, -1e6)) == 0)
    np.testing.assert_allclose(cdf(a, np.full(n, 1e6)), 1.0, atol=1e-14)
    values = [cdf(a, np.full(n, x)) for x in np.linspace(-3, 3, 13)]
    assert np.all(np.diff(values, axis=0) >= -1e-13)


def test_draws_follow_the_density():
    n = 20_000
    grid = np.linspace(-6, 6, 100_001)
    rows = [((0.4, -8.0, 0.1, 4.0), 0.0), ((0.0, -200.0, 0.0, 100.0), 0.0), ((0.5, -1.0, 0.3, -0.4), 5.0)]
    for row, power in rows:
        a = np.repeat(np.array(row)[:, None], n, axis=1)
        x = draw(a, np.random.default_rng(11), nu=0.1 if power else 0.0, power=power)
        q = np.polynomial.polynomial.polyval(grid, (0.0, *row)) + (0.1 * np.abs(grid) ** power if power else 0.0)
        F = np.cumsum(np.exp(q.min() - q))
        F = F / F[-1]
        assert stats.kstest(x, lambda t, F=F: np.interp(t, grid, F)).pvalue > 1e-3
        # a distribution shifted by 5 % of a standard deviation is told apart
        assert stats.kstest(x + 0.05 * x.std(), lambda t, F=F: np.interp(t, grid, F)).pvalue < 1e-3


CONTRACT = [
    ({k: QUARTIC[k] for k in list(QUARTIC)[::2]}, {}),
    (dict(enumerate(level_barriers(12, 5).T)), {}),
    ({k: SEXTIC[k] for k in ("friendly", "narrow", "effective degree 4")}, {}),
    ({k: QUARTIC[k] for k in ("friendly", "unequal wells")}, {"nu": 0.01, "power": 6.0, "centre": 0.3}),
    ({k: QUARTIC[k] for k in ("friendly", "unequal wells")}, {"nu": 0.01, "power": 5.5}),
]


@pytest.mark.parametrize(("table", "tail"), CONTRACT)
def test_array_api_strict_gives_the_same(table, tail):
    a = batch(table.values())
    b = array_api_strict.asarray(a)
    u = np.linspace(0.01, 0.99, a.shape[1])
    r, strict = integrate(a, moments=4, **tail), integrate(b, moments=4, **tail)
    assert isinstance(strict.log_z, array_api_strict.asarray(0.0).__class__)
    assert strict.missing.tolist() == r.missing.tolist()
    np.testing.assert_allclose(to_host(strict.log_z), r.log_z, rtol=1e-13, atol=1e-12)
    size = np.abs(r.moments) + 1e-12 * (np.abs(r.mode) + 1) ** np.arange(1, 5)[:, None]
    assert np.all(np.abs(to_host(strict.moments) - r.moments) <= 1e-11 * size + 1e-12 * size.max(axis=0))
    x, y = quantile(a, u, **tail), quantile(b, array_api_strict.asarray(u), **tail)
    np.testing.assert_allclose(to_host(cdf(b, y, **tail)), cdf(a, x, **tail), atol=1e-9)
    assert draw(b, np.random.default_rng(0), **tail).shape == (a.shape[1],)


def test_splitting_the_batch_changes_nothing(monkeypatch):
    rng = np.random.default_rng(2)
    a = rng.normal(size=(4, 300)) * 10.0 ** rng.uniform(-1, 1.5, (4, 300))
    a[3] = 10.0 ** rng.uniform(-3, 3, 300)
    whole = integrate(a, moments=4)
    parts = [integrate(a[:, i : i + 37], moments=4) for i in range(0, 300, 37)]
    size = np.maximum(np.abs(whole.moments), np.abs(whole.mode) ** np.arange(1, 5)[:, None])
    monkeypatch.setattr(univariate.rows, "_BLOCK", 64)
    for other in (parts, [integrate(a, moments=4)]):
        log_z, moments = (np.concatenate([getattr(p, k) for p in other], axis=-1) for k in ("log_z", "moments"))
        np.testing.assert_allclose(log_z, whole.log_z, rtol=1e-13, atol=1e-12)
        assert np.all(np.abs(moments - whole.moments) <= 1e-11 * size)


def test_no_warnings_and_no_nan_for_coefficients_over_many_orders():
    rng = np.random.default_rng(3)
    a = rng.normal(size=(4, 2000)) * 10.0 ** rng.uniform(-6, 6, (4, 2000))
    a[3] = np.abs(a[3])
    with np.errstate(all="raise"):
        r = integrate(a, moments=8)
        x = quantile(a, rng.random(2000))
    assert r.missing.size == 0
    for v in (r.log_z, r.moments, r.central, r.mode, x):
        assert np.all(np.isfinite(v))
    assert np.all(r.central[1] >= r.central[0] ** 2)


def test_no_rows():
    r = integrate(np.zeros((4, 0)), moments=2)
    assert r.moments.shape == (2, 0)
    assert quantile(np.zeros((4, 0)), np.zeros(0)).shape == (0,)


ADAPTIVE = {
    "friendly": np.random.default_rng(0).normal([0, 0.5, 0, 1], [1, 0.3, 0.3, 0.2], (12, 4)).T,
    "double wells": np.array([(0.1 * k, -2.0 * h, 0.02 * h, h) for k, h in enumerate((1.0, 2.5, 4.0, 8.0, 15.0))]).T,
    "three wells": np.array([SEXTIC["three wells"], SEXTIC["friendly"]]).T,
    "of lower degree": np.array([(0.4, 1.5, 0.0, 0.0), (-3.0, 0.2, 0.0, 0.0)]).T,
    "missing": np.array(
        [(0, 0, 0, -1.0), (0, 0, 1.0, 0), (1.0, 0, 0, 0), (0, 0, 0, 0), (0, np.nan, 0, 1), (1, -1, 0, 0), (1, 1, 1, 1)]
    ).T.astype(float),
}


def test_a_row_that_double_precision_does_not_resolve_is_missing():
    a = np.array([(0.0, 0.0, -6.2e3, 2.4e4, 1.3e4, -4.9e4, -6.0e3, 2.2e4, 0.06), (0.0, 0.0, 0.5, 0, 0, 0, 0, 0, 0)]).T[
        1:
    ]
    assert integrate_each(a, moments=2).missing.tolist() == [0]


@pytest.mark.parametrize("name", ADAPTIVE)
def test_each_row_by_itself_gives_the_same(name):
    a = ADAPTIVE[name]
    batched, each = integrate(a, moments=8), integrate_each(a, moments=8)
    assert np.array_equal(batched.missing, each.missing)
    assert len(each.missing) == (6 if name == "missing" else 0)
    assert np.allclose(batched.log_z, each.log_z, rtol=1e-9, atol=1e-9)
    size = (1 + each.moments[1::2]).repeat(2, axis=0)  # odd moments may cancel
    assert np.all(np.abs(batched.moments - each.moments) <= 1e-8 * size)
