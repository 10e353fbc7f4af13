import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from cases import NAMESPACES
from scipy.integrate import quad

from isodus import MonomialBasis, PolynomialModel
from isodus.arrays import to_host


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    basis = MonomialBasis(3, 4, max_order=2)
    theta = rng.standard_normal(len(basis)) / 10
    theta[[basis.terms.index((i,) * 4) for i in range(3)]] = 1.0
    return PolynomialModel(basis, theta, [1.0, -2.0, 0.5], [2.0, 0.5, 1.0], ["a", "b", "c"], 1000, {"nu": 0.1})


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_energy_in_raw_units_is_the_polynomial_of_to_dict(model, namespace):
    X = np.random.default_rng(1).standard_normal((20, 3))
    Y = NAMESPACES[namespace](X)
    E = to_host(model.energy(Y))
    polynomial = sum(v * np.prod(X[:, list(t)], axis=1) for t, v in model.to_dict().items())
    assert np.allclose(E - E[0], polynomial - polynomial[0], rtol=1e-10, atol=1e-10)
    score = to_host(model.score_function(Y))
    h = 1e-5
    for i in range(3):
        step = h * np.eye(3)[i]
        difference = (model.energy(X - step) - model.energy(X + step)) / (2 * h)
        assert np.allclose(score[:, i], difference, rtol=1e-7, atol=1e-7)
    a = to_host(model.conditional_coefficients(1, Y))
    y = (X[:, 1] + 2.0) / 0.5
    moved = X.copy()
    moved[:, 1] = -2.0
    conditional = sum(a[:, l] * y ** (l + 1) for l in range(4))
    assert np.allclose(conditional, E - model.energy(moved), rtol=1e-10, atol=1e-10)


def test_conditional_density_integrates_to_one_in_raw_units(model):
    x = np.array([0.3, -1.9, 0.8])
    for i, (lo, hi) in enumerate([(-8, 8), (-5, 2), (-4, 4)]):

        def density(t, i=i):
            at = x.copy()
            at[i] = t
            return float(np.exp(model.conditional_log_density(at[None])[0, i]))

        assert quad(density, lo, hi, limit=200)[0] == pytest.approx(1.0, abs=1e-7)


def test_a_conditional_that_does_not_exist_has_density_zero():
    model = PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): -1.0, (0, 1): 0.3})
    values = model.conditional_log_density(np.zeros((2, 2)))
    assert np.all(np.isfinite(values[:, 0]))
    assert np.all(np.isneginf(values[:, 1]))


def test_far_from_the_origin_the_energy_is_accurate():
    near = PolynomialModel(MonomialBasis(2, 4), np.linspace(-0.4, 1, 14), [0.0, 0.0], [1.0, 1.0])
    far = PolynomialModel(MonomialBasis(2, 4), near.theta, [1e6, -1e6], [1.0, 1.0])
    Y = np.random.default_rng(0).integers(-20, 20, (50, 2)) / 8
    assert np.allclose(near.energy(Y), far.energy(Y + far.location), rtol=1e-9, atol=1e-9)
    assert np.allclose(near.score_function(Y), far.score_function(Y + far.location), rtol=1e-9, atol=1e-9)


def test_a_model_does_not_change(model):
    with pytest.raises(AttributeError):
        model.theta = np.zeros(3)
    with pytest.raises(ValueError, match="read-only"):
        model.theta[0] = 1
    with pytest.raises(TypeError):
        model.settings["nu"] = 2


def test_frame_and_words(model):
    frame = model.to_frame()
    sure = ["stderr", "ci_low", "ci_high", "p_value", "q_value"]
    assert list(frame.columns) == ["term", "degree", "order", "theta", *sure]
    assert frame["theta"].tolist() == list(model.to_dict().values())
    assert frame[sure].isna().all(axis=None)  # it was not learned
    assert model.interactions()["p_value"].isna().all()
    row = frame[frame["term"] == "a^2*b"].iloc[0]
    assert (row["degree"], row["order"]) == (3, 2)
    assert repr(model) == "PolynomialModel: 3 variables (a, b, c), 30 terms up to degree 4"
    words = model.summary(n_terms=3)
    assert "learned from 1,000 samples" in words
    assert "nu=0.1" in words
    strongest = max(
        (t for t in model.basis.terms if len(set(t)) > 1), key=lambda t: abs(model.to_dict("standardized")[t])
    )
    assert model.term_name(strongest) in words.splitlines()[3]
    assert "no variables interact" in PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): 2.0}).summary()


@pytest.fixture
def learned(model):
    """With a covariance, of which two parameters have none: they were held."""
    root = np.random.default_rng(2).standard_normal((30, 30)) * np.geomspace(1e-3, 1e3, 30)[:, None]
    covariance = root @ root.T
    covariance[[4, 29]] = covariance[:, [4, 29]] = np.nan
    return replace(model, covariance=covariance)


def same_but_for_rounding(a, b):
    assert np.array_equal(np.isnan(a), np.isnan(b))
    return np.allclose(a, b, rtol=1e-13, atol=0, equal_nan=True)


def test_a_covariance_is_kept_by_files_pickles_and_copies(learned, tmp_path):
    learned.save(tmp_path / "m.json")
    for back in (
        PolynomialModel.load(tmp_path / "m.json"),
        pickle.loads(pickle.dumps(learned)),
        copy.copy(learned),
        copy.deepcopy(learned),
    ):
        assert np.array_equal(back.theta, learned.theta)
        assert same_but_for_rounding(back.covariance, learned.covariance)
        for units in ("raw", "standardized"):
            assert same_but_for_rounding(back.stderr(units), learned.stderr(units))
            assert np.flatnonzero(np.isnan(back.stderr(units))).tolist() == [4, 29]
        assert not back.covariance.flags.writeable
    assert np.array_equal(learned.to_frame()["stderr"], learned.stderr(), equal_nan=True)


def test_a_file_without_a_covariance_has_no_standard_errors(model, learned, tmp_path):
    path = tmp_path / "m.json"
    model.save(path)
    assert PolynomialModel.load(path).covariance is None
    learned.save(path)
    content = json.loads(path.read_text())
    del content["covariance"]  # as files of an older version
    path.write_text(json.dumps(content))
    assert np.all(np.isnan(PolynomialModel.load(path).stderr()))


@pytest.mark.parametrize(
    ("covariance", "message"),
    [("AAAA", "damaged"), ("not base 64!", "damaged"), (7, "damaged"), ("eJxjYBgFQwcAAAQAAAE=", "damaged")],
)
def test_a_damaged_covariance_is_refused(learned, tmp_path, covariance, message):
    path = tmp_path / "m.json"
    learned.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"covariance": covariance}))
    with pytest.raises(ValueError, match=message):
        PolynomialModel.load(path)
    with pytest.raises(ValueError, match=r"covariance has shape \(2, 2\), it should have \(30, 30\)"):
        replace(learned, covariance=np.eye(2))


def test_structure_has_names():
    model = PolynomialModel.from_dict({(0, 1): 3.0, (0, 0, 1): 4.0, (1, 1): 1.0, (1, 2, 3): 2.0}, names=list("wxyz"))
    assert model.hyperedges() == {("w", "x"): 5.0, ("x", "y", "z"): 2.0}
    graph = model.graph()
    assert set(graph.nodes) == set("wxyz")
    assert {frozenset(e) for e in graph.edges} == {frozenset(e) for e in ("wx", "xy", "xz", "yz")}
    assert graph.edges["w", "x"]["weight"] == 5.0


def test_precision():
    model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 0.5, (1, 1): 2.0, (0,): 3.0})
    assert np.array_equal(model.precision(), [[2.0, 0.5], [0.5, 4.0]])
    with pytest.raises(ValueError, match="degree 4 has no precision matrix"):
        PolynomialModel.from_dict({(0,) * 4: 1.0}).precision()


def test_a_file_gives_the_model_back_to_the_bit(model, tmp_path):
    odd = PolynomialModel(
        model.basis,
        model.theta * np.pi,
        model.location / 3,
        model.scale / 7,
        ['"quoted"', "<b>", "π☃"],
        1e6,
        {"x": None},
    )
    odd.save(tmp_path / "m.json")
    back = PolynomialModel.load(tmp_path / "m.json")
    assert back.basis == odd.basis
    for name in ("theta", "location", "scale"):
        assert np.array_equal(getattr(back, name), getattr(odd, name))
    assert (back.names, back.n_samples, dict(back.settings)) == (odd.names, odd.n_samples, dict(odd.settings))
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


def test_a_failed_save_leaves_the_old_file(model, tmp_path):
    path = tmp_path / "m.json"
    model.save(path)
    before = path.read_text()
    bad = PolynomialModel(model.basis, model.theta, settings={"x": object()})
    with pytest.raises(TypeError):
        bad.save(path)
    assert path.read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "format version 99.*reads version 1"),
        ({"format": "other"}, "no isodus model"),
        ({"theta": None}, "damaged"),
        ({"theta": [1.0]}, "damaged: theta has shape"),
        ({"theta": [float("nan")] * 30}, "damaged: theta holds a value that is not finite"),
        ({"scale": [0.0, 1.0, 1.0]}, "scale must be positive"),
        ({"names": ["a", "a", "b"]}, "more than one variable is called a"),
        ({"terms": [[0, 9]]}, "names variable 9"),
        ({"scale": None}, "must be lists"),
        ({"names": "abc"}, "must be lists"),
        ({"n_samples": "x"}, "n_samples must be a number"),
        ({"version": True}, "format version True"),
    ],
)
def test_other_files_are_refused(model, tmp_path, change, message):
    path = tmp_path / "m.json"
    model.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        PolynomialModel.load(path)


@pytest.mark.parametrize("field", ["names", "location", "scale", "degree", "terms", "theta", "n_samples", "settings"])
def test_a_missing_field_is_named(model, tmp_path, field):
    path = tmp_path / "m.json"
    model.save(path)
    content = json.loads(path.read_text())
    del content[field]
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"incomplete: {field} missing"):
        PolynomialModel.load(path)


def test_text_that_is_no_json_is_refused(tmp_path):
    (tmp_path / "m.json").write_text("no json")
    with pytest.raises(ValueError, match="not JSON"):
        PolynomialModel.load(tmp_path / "m.json")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PolynomialModel.from_dict({}), "theta is empty"),
        (lambda: PolynomialModel.from_dict({(0, 3): 1.0}, names=["a"]), "names variable 3"),
        (lambda: PolynomialModel.from_dict({0: 1.0}), "a term is a tuple"),
        (lambda: PolynomialModel.from_dict({(): 1.0}), "a term is a tuple"),
        (lambda: PolynomialModel.from_dict({"ab": 1.0}), "a term is a tuple"),
        (lambda: PolynomialModel.from_dict({(0, -1): 1.0}), "a term is a tuple"),
        (lambda: PolynomialModel.from_dict({(0,): np.inf}), "not finite"),
        (lambda: PolynomialModel.from_dict({(0, 0): 1.0}, names=["a", "a"]), "names must differ"),
        (
            lambda: PolynomialModel(MonomialBasis(1, 2, min_degree=2), [1.0], [3.0]),
            "closed under translation",
        ),
        (lambda: PolynomialModel.from_dict({(0, 0): 1.0}).energy(np.zeros((3, 2))), "1 variables: x0"),
        (lambda: PolynomialModel.from_dict({(0, 0): 1.0}).to_dict("inches"), 'must be "raw" or'),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_columns_of_a_frame_are_taken_by_name(model):
    X = np.random.default_rng(1).standard_normal((5, 3))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    assert np.array_equal(model.energy(frame), model.energy(X))
    assert np.array_equal(model.energy(frame.assign(d=1.0)[["c", "d", "a", "b"]]), model.energy(X))
    assert np.array_equal(model.energy(pd.DataFrame(X)), model.energy(X))  # no names: by position
    with pytest.raises(ValueError, match="X has no column c"):
        model.energy(frame.rename(columns={"c": "z"}))


@pytest.mark.parametrize("kind", [int, bool, object, np.float32, np.float16])
def test_values_of_any_real_type(model, kind):
    X = np.array([[0, 1, 1], [1, 0, 1]])
    assert np.allclose(np.asarray(model.energy(X.astype(kind)), float), model.energy(X.astype(float)), rtol=1e-5)
    with pytest.raises(ValueError, match="complex"):
        model.energy(X * 1j)


def test_a_summary_says_that_intervals_are_of_what_was_estimated():
    model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0})
    sure = replace(model, covariance=0.01 * np.eye(3), n_samples=100)
    assert "θ was moved" not in sure.summary()
    assert "θ was moved from there, and may be outside of them" in replace(sure, moved_from=model.theta + 1).summary()


def test_a_summary_tells_of_how_many_candidates_a_penalty_chose():
    model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 0.5, (1, 1): 1.0, (2, 2): 1.0})
    settings = {"estimator": "ISODUS", "degree": 4, "max_order": 2, "l1": "auto"}
    model = replace(model, covariance=1e-4 * np.eye(4), n_samples=100, settings=settings)
    told = "the penalty left 1 set of variables, of 3 candidates; 1 of these interact at a false discovery rate of 5 %"
    assert told in model.summary()
    assert "too optimistic" in model.summary()
    assert "candidates" not in replace(model, settings=settings | {"exclude": "[(0, 2)]"}).summary()
    assert "1 of 1 sets of variables interact" in replace(model, settings=settings | {"debias": "split"}).summary()
