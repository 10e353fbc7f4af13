import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import NAMESPACES

from isodus import ISODUS, PolynomialModel, PseudoLikelihood, ScoreMatching, open_samples
from isodus.datasets import double_wells, gaussian_10, load_sachs, paper_1d, paper_4d
from isodus.suitability import check_relations, check_suitability, few_rows


def messages(X, weight=None, names=None):
    names = [f"x{i}" for i in range(X.shape[1])] if names is None else names
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_suitability(X, weight, names)
    assert all(warning.category is UserWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def columns(draw, n, repetitions):
    """Many independent samples of size n side by side."""
    return draw(n * repetitions).reshape(repetitions, n, -1).transpose(1, 0, 2).reshape(n, -1)


@pytest.mark.parametrize("n", [50, 200, 1000, 20000])
def test_what_a_polynomial_energy_holds_is_not_complained_of(n):
    rng = np.random.default_rng(n)
    well = PolynomialModel.from_dict({(0, 0): -8.0, (0, 0, 0, 0): 4.0})
    repetitions = max(5000 // n, 2)
    for model in (paper_1d(), paper_4d(), gaussian_10(), well):
        assert messages(columns(lambda size, model=model: model.sample(size, rng), n, repetitions)) == []
    assert messages(columns(rng.standard_normal, n, 5 * repetitions)) == []
    assert messages(rng.random((n, 10))) == []
    assert messages(rng.normal(0, 1, (max(n, 500), 10)).round(1)) == []  # rounding that does no harm


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, size: rng.laplace(size=size),
        lambda rng, size: rng.exponential(size=size),
        lambda rng, size: rng.standard_t(3, size),
        lambda rng, size: rng.standard_t(5, size),
        lambda rng, size: rng.lognormal(size=size),
    ],
    ids=["laplace", "exponential", "t3", "t5", "lognormal"],
)
def test_heavy_tails_are_found(draw):
    rng = np.random.default_rng(0)
    found = [bool(messages(draw(rng, (1000, 1)))) for _ in range(100)]
    assert np.mean(found) > 0.8
    (message,) = messages(np.column_stack([rng.normal(size=5000), draw(rng, 5000)]), names=["calm", "wild"])
    assert "wild (kurtosis" in message
    assert "calm" not in message
    assert "asinh" in message


def test_a_narrow_peak_is_no_heavy_tail():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(10000) < 0.25, rng.uniform(-2, 2, 10000), rng.normal(0, 0.1, 10000))
    assert np.mean((x - x.mean()) ** 4) / x.var() ** 2 > 6
    assert messages(x[:, None]) == []


@pytest.mark.parametrize("size", [40.0, 1e100])
def test_the_row_that_makes_the_tail_is_named(size):
    X = np.random.default_rng(0).normal(size=(3000, 2))
    X[17, 1] = size
    (message,) = messages(X)
    y = X[:, 1] / size  # fourth powers of 1e100 would overflow
    assert f"x1 (kurtosis {np.mean((y - y.mean()) ** 4) / y.var() ** 2:,.1f}, " in message
    assert f"of it from row 17, {size:.4g})" in message


def test_values_at_an_end_of_the_range_and_inside():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 4))
    X[:, 0] = np.maximum(X[:, 0], -1.5)  # 6.7 % of a Gaussian
    X[:, 1] = np.minimum(X[:, 1], 2.0)  # 2.3 %
    X[rng.random(20000) < 0.05, 2] = 0.25  # 5 %
    ends, inside = messages(X)
    assert "x0 (6." in ends or "x0 (7" in ends
    assert "% at its lowest, -1.5)" in ends
    assert "% at its highest, 2)" in ends
    assert "x2" not in ends
    assert "x2 (" in inside
    assert "% equal 0.25)" in inside
    assert not any(name in inside for name in ("x0", "x1", "x3"))


def test_few_distinct_values_have_their_own_words():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 500), rng.poisson(3, 500), rng.poisson(1000, 500), rng.normal(size=500)])
    (message,) = messages(X.astype(float), names=["sex", "visits", "cells", "height"])
    assert "sex (2 values)" in message
    assert "visits (" in message
    assert "cells" not in message
    assert "height" not in message


def test_each_kind_is_said_once_with_the_worst_variables_first():
    X = np.sinh(np.random.default_rng(0).normal(size=(2000, 12)) * np.linspace(1, 2, 12))
    (message,) = messages(X)
    kurtosis = [float(words.split(" ")[0].rstrip(",)").replace(",", "")) for words in message.split("(kurtosis ")[1:]]
    assert len(kurtosis) == 8
    assert kurtosis == sorted(kurtosis, reverse=True)
    assert "and 4 more" in message


def test_proteins_at_the_floor_are_named_with_their_shares():
    cells = load_sachs()
    said = messages(cells.to_numpy(), names=list(cells.columns))
    (ends,) = [message for message in said if "end of the range" in message]
    for name in cells:
        percent = 100 * float((cells[name] == 0).mean())
        assert (f"{name} ({percent:.2g} % at its lowest, 0)" in ends) == (percent > 1)


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_weights_are_repetitions_whatever_the_arrays(namespace):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.laplace(size=3000), np.maximum(rng.normal(size=3000), -1), rng.normal(size=3000)])
    weight = rng.integers(0, 3, len(X))
    convert = NAMESPACES[namespace]
    repeated = messages(np.repeat(X, weight, axis=0))
    assert len(repeated) == 2
    assert messages(convert(X), convert(weight.astype(float))) == repeated


def test_large_samples_are_judged_by_part_of_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300_000, 2))
    X[:, 1] = np.where(rng.random(len(X)) < 0.03, X[:, 1].min() - 1, X[:, 1])
    (message,) = messages(X)
    percent = float(message.split("x1 (")[1].split(" %")[0])
    assert abs(percent - 3) < 1
    assert messages(X) == [message]


@pytest.mark.parametrize(
    ("estimator", "blocks"),
    [(ISODUS, False), (PseudoLikelihood, False), (ScoreMatching, False), (ScoreMatching, True)],
)
def test_columns_that_are_linear_functions_of_others_are_named(estimator, blocks):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000 if blocks else 400, 4)) * [1.0, 1e-6, 3.0, 1e200] + [1e3, 0.0, 5.0, 0.0]
    X[:, 1] = (X[:, 0] - 2 * X[:, 2]) * 1e-7
    frame = pd.DataFrame(X, columns=["height", "made up", "weight", "age"])
    data = open_samples(lambda: [frame]) if blocks else frame
    with pytest.warns(UserWarning, match="linear functions of others: .*") as caught:
        estimator(2).fit(data)
    words = next(str(one.message) for one in caught if "linear functions" in str(one.message))
    for name in ("height", "made up", "weight"):
        assert name in words
    assert "age" not in words


def test_columns_that_nearly_repeat_others_are_not_complained_of():
    rng = np.random.default_rng(0)
    x = rng.standard_normal(3000)
    X = np.stack([x, x + 1e-5 * rng.standard_normal(3000), x**2 + rng.standard_normal(3000)], axis=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ISODUS(2).fit(X)
        ISODUS(2).fit(rng.standard_normal((20, 5)))
    assert not [one for one in caught if "linear functions" in str(one.message)]


@pytest.mark.parametrize("estimator", [ISODUS, PseudoLikelihood])
def test_too_few_rows_for_the_terms_of_a_variable_are_told(estimator):
    X = np.asarray(double_wells(5).sample(600, rng=0))  # 28 terms a variable, which want 560 rows
    with pytest.warns(UserWarning, match="28 terms a variable up to degree 4 are too many for 400 rows"):
        est = estimator(4).fit(X[:400])
    assert est.notes_[0].endswith("(20 a term are wanted)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator(4).fit(X)
        estimator(2).fit(X[:400])
        estimator(4, l1="auto").fit(X[:400])
    assert few_rows(560, 28, 4) == "" != few_rows(559, 28, 4)


def test_the_page_of_messages_gives_the_same_advice_on_piles_of_values():
    page = (Path(__file__).parents[1] / "docs" / "faq.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^### (values[^\n]*)\n+(.*?)(?=^#)", page, re.M | re.S))
    assert len(parts) == 2
    for advice in parts.values():
        assert "Leave those rows out" not in advice
        assert "bias" in advice


def said(X, degree):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_relations(X, [f"v{i}" for i in range(X.shape[1])], degree)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_clusters_that_no_variable_joins_are_told(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    side = 10.0 * rng.choice([-1, 1], 600)
    (words,) = said(scale * (X + np.outer(side, [1, 0, -1])), 4)
    assert "samples in 2 clusters that are far apart in v0, v2: " in words
    assert not said(scale * (X + np.outer(side, [1, 0, -1])), 2)  # one Gaussian, and right as such
    assert not said(scale * (X + np.outer(side, [0, 1, 0])), 4)  # its own density has both
    assert not said(scale * (X + 10.0 * rng.choice([-1, 1], (600, 3))), 4)  # every combination is there
    assert not said(X + np.outer(0.3 * side, [1, 0, -1]), 4)  # near enough that some lie between


@pytest.mark.parametrize(("eps", "nearly"), [(0.0, ""), (1e-10, ""), (1e-5, "nearly "), (1e-2, None)])
def test_columns_that_nearly_repeat_others_are_told_above_degree_2(eps, nearly):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5))
    X[:, 3] = X[:, 0] - 2 * X[:, 2] + eps * rng.standard_normal(500)
    found = said(X, 4)
    if nearly is None:
        assert not found
        return
    (words,) = found
    made_of = words[len(f"columns that are {nearly}linear functions of others: ") : words.index(". ")]
    assert set(made_of.replace(" of", ",").split(", ")) == {"v0", "v2", "v3"}
    assert bool(said(X, 2)) == (nearly == "")


def test_one_row_far_out_makes_no_columns_alike():
    X = np.random.default_rng(0).standard_normal((500, 3))
    X[7] = 1e8
    assert not said(X, 2)
    assert not said(X, 4)


def test_products_of_columns_are_told_and_powers_of_few_values_are_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)) + 2
    X[:, 2] = X[:, 0] * X[:, 1]
    (words,) = said(X, 4)
    assert "v0*v1" in words
    assert "v3" not in words
    X = np.c_[rng.standard_normal(500), rng.integers(0, 2, 500)]
    assert not said(X, 4)
