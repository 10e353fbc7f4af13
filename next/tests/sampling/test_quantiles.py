"""Quantiles of smooth axes, which draws end with: against integrals on fine grids of their own, and limits."""

import numpy as np
import pytest

from isodus.axes import Bounded, Functions, HalfLine, Interval, Line, Mapped, WholeLine

NORMAL = np.random.default_rng(0).standard_normal(2000)
WELL = np.where(np.random.default_rng(1).random(2000) < 0.5, -1.5, 1.5) + 0.3 * NORMAL
AXES = {
    "line": Line.fit(NORMAL, 4),
    "line of degree 8": Line.fit(NORMAL, 8),
    "two wells": Line.fit(WELL, 4),
    "bounded": Bounded.fit(NORMAL, 8),
    "interval": Interval.fit(np.tanh(NORMAL), 4, ends=(-1.0, 1.0)),
    "half line": HalfLine.fit(np.abs(NORMAL), 4),
    "mapped": Mapped.fit(np.exp(NORMAL), 3),
    "window": WholeLine(0.5, 2.0, 4).on_window(-4.0, 5.0),
    "functions": Functions(lambda x: np.stack([x, np.log(x)], axis=1), (0.0, np.inf), [1, 1]),
}


def coefficients(name, n, rng):
    """Coefficients of densities that are resolved: flat, peaked, with two modes, with mass at an end."""
    J = len(AXES[name].degrees)
    a = rng.normal(scale=0.3, size=(n, J)) / np.arange(1, J + 1)
    if name == "functions":
        return np.column_stack([1 + rng.random(n), -3 * rng.random(n)])
    if name == "window":
        a += [0.0, -1.0, 0.0, 0.5]
    return a


@pytest.mark.parametrize("name", AXES)
def test_quantile_inverts_the_distribution_function(name):
    rng, axis = np.random.default_rng(2), AXES[name]
    a, v = coefficients(name, 3000, rng), rng.random(3000)
    x = axis.quantile(a, v)
    assert np.abs(axis.cdf(a, x) - v).max() < (2e-9 if name == "functions" else 2e-10)  # there the series ends earlier


@pytest.mark.parametrize("name", ["line", "two wells", "interval", "half line", "window"])
def test_quantile_against_a_fine_grid(name):
    rng, axis = np.random.default_rng(3), AXES[name]
    a, v = coefficients(name, 20, rng), rng.random(20)
    x = axis.quantile(a, v)
    if name == "window":
        ends, tail = (0.5 - 8.0, 0.5 + 10.0), 0.0
    else:
        ends = tuple(axis.location + axis.scale * y for y in (axis.low, axis.high))
        tail = 40 * axis.tail * axis.scale
    low = ends[0] - tail if name in ("line", "two wells") else ends[0]
    high = ends[1] + tail if name in ("line", "two wells", "half line") else ends[1]
    edges = np.unique(
        np.concatenate([np.linspace(*ends, 400), np.linspace(low, ends[0], 300), np.linspace(ends[1], high, 300)])
    )
    s, w = np.polynomial.legendre.leggauss(16)
    for row, level, at in zip(a, v, x, strict=True):
        cut = np.unique(np.append(edges, np.clip(at, low, high)))
        half = np.diff(cut)[:, None] / 2
        places = cut[:-1, None] + half * (s + 1)
        density = np.exp(axis.log_base(places.ravel()) - axis.functions(places.ravel()) @ row).reshape(places.shape)
        mass = (density * half * w).sum(axis=1)
        assert abs(mass[cut[1:] <= at].sum() / mass.sum() - level) < 2e-10


def test_thin_layers_and_peaks():
    # the density falls by e^300 within the window, from an end: nearly all mass is in the tail or next to it
    axis = AXES["line"]
    phi = axis.functions(axis.location + axis.scale * np.array([axis.low, axis.high]))[:, 0]
    v = np.linspace(0.001, 0.999, 500)
    for slope in (30.0, -100.0, 300.0):
        a = np.zeros((500, 4))
        a[:, 0] = slope
        rate = slope * (phi[1] - phi[0]) / (axis.high - axis.low)  # of the exponential, in y
        y = (axis.quantile(a, v) - axis.location) / axis.scale
        edge, side = (axis.low, 1) if slope > 0 else (axis.high, -1)
        tail, inside = axis.tail, 1 / abs(rate)  # masses over the density at the edge
        share = tail / (tail + inside)
        below = v if slope > 0 else 1 - v
        d = np.where(below < share, tail * np.log(np.minimum(below / share, 1)), 0)
        d = np.where(below >= share, -inside * np.log(np.maximum((1 - below) / (1 - share), 1e-300)), d)
        assert y == pytest.approx(edge + side * d, abs=1e-7)


def test_order_and_ends():
    axis = AXES["interval"]
    a = np.tile([0.5, -0.3, 0.2, 0.1], (1001, 1))
    x = axis.quantile(a, np.linspace(0, 1, 1001))
    assert x[0] == pytest.approx(-1)
    assert x[-1] == pytest.approx(1)
    assert np.all(np.diff(x) > 0)


def test_rows_do_not_depend_on_each_other():
    rng, axis = np.random.default_rng(4), AXES["two wells"]
    a, v = coefficients("two wells", 500, rng), rng.random(500)
    whole = axis.quantile(a, v)
    parts = np.concatenate([axis.quantile(a[k : k + 7], v[k : k + 7]) for k in range(0, 500, 7)])
    assert parts == pytest.approx(whole, abs=1e-10)
