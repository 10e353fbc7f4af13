"""Models whose mass is far from the data: no draws, log densities or normalisation unless they are forced."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from processes import isodus

from isodus import ISODUS, MonomialBasis, PolynomialModel
from isodus.diagnostics import strays
from isodus.plotting import draw, marginals, pairs

NAMES = ["cd3", "cd4", "cd8", "cd19"]
REFUSED = "the learned model has its mass far from the data: .* would describe that region, not your data.*match_mom"


def cells(n=3000, seed=0):
    """Logarithms of four markers as cytometry has them: two populations, strong correlations, a pile at the floor."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 1))
    second = (rng.random(n) < 0.3)[:, None] * np.array([1.2, 1.0, 0.2, 0.6])
    return pd.DataFrame(
        np.maximum(2 + 0.35 * (common + 0.45 * rng.standard_normal((n, 4))) + second, 1.5), columns=NAMES
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Of the first of ten data sets whose model strays: about half of them do, and rounding decides which."""
    path = tmp_path_factory.mktemp("far") / "m.json"
    for seed in range(10):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            est = ISODUS(4).fit(cells(seed=seed))
        said = [str(w.message) for w in caught if "has its mass far from the data" in str(w.message)]
        notes = [note for note in est.notes_ if "has its mass far from the data" in note]
        assert notes == [message.partition(". It can be read")[0] for message in said]
        if said:
            assert "Samples and log Z would describe that region, not your data: isodus raises" in said[0]
            est.model_.save(path)
            return path
    pytest.fail("none of ten models has its mass far from the data")


@pytest.fixture(scope="module")
def model(file):
    """As a file has it: the verdict is kept."""
    return PolynomialModel.load(file)


def test_what_takes_the_integral_is_refused(model):
    X = cells(50)
    for asked in (lambda: model.sample(10), lambda: model.logpdf(X), model.log_partition):
        with pytest.raises(ValueError, match=REFUSED):
            asked()
    assert np.isfinite(np.asarray(model.conditional_log_density(X))).all()  # what is given the others is not
    assert np.isfinite(np.asarray(model.energy(X))).all()


def noted():
    """A model that can be drawn from, with such a note: where the mass is in truth far away, rounding may forbid it."""
    note = "the learned model has its mass far from the data: about a = 99"
    return PolynomialModel(MonomialBasis(2, 2), [0.0, 0.0, 0.5, 0.2, 0.5], names=["a", "b"], settings={"notes": [note]})


def test_force_overrides(tmp_path):
    noted().save(tmp_path / "m.json")
    model, X = PolynomialModel.load(tmp_path / "m.json"), np.zeros((5, 2))
    for asked in (lambda: model.sample(10), lambda: model.logpdf(X), model.log_partition):
        with pytest.raises(ValueError, match=REFUSED):
            asked()
    assert np.asarray(model.sample(10, rng=0, force=True)).shape == (10, 2)
    assert np.isfinite(model.log_partition(force=True))
    assert np.isfinite(model.logpdf(X, force=True)).all()
    assert len(marginals(model, axes=Figure(), force=True)) == 2
    with pytest.raises(ValueError, match=REFUSED):
        marginals(model, axes=Figure())
    for command in (("sample", "-n", "20", "--seed", "0"), ("plot", "--kind", "marginals", "-o", tmp_path / "p.png")):
        assert isodus(command[0], tmp_path / "m.json", *command[1:]).returncode == 1
        done = isodus(command[0], tmp_path / "m.json", *command[1:], "--force")
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.png").exists()


def test_pictures_of_draws(model):
    for function in (marginals, pairs):
        with pytest.raises(ValueError, match=REFUSED):
            function(model, axes=Figure())
        with pytest.raises(ValueError, match=REFUSED):
            function(model, cells(50), Figure(), rest="both")
    assert len(marginals(model, cells(50), Figure())) == 4  # averaged over the data: no draws
    assert draw("graph", model) is not None


def test_the_command_line(file, tmp_path):
    for command in (("sample", file), ("plot", file, "--kind", "marginals", "-o", tmp_path / "p.png")):
        done = isodus(*command)
        assert done.returncode == 1
        assert b"would describe that region, not your data" in done.stderr
        assert b"--force" in done.stderr
        assert done.stdout == b""
    assert list(tmp_path.iterdir()) == []


def test_rows_without_any_value_are_draws_too(tmp_path):
    noted().save(tmp_path / "m.json")
    model, X = PolynomialModel.load(tmp_path / "m.json"), np.array([[0.5, np.nan], [np.nan, np.nan]])
    assert np.isfinite(model.impute(X[:1], rng=0)).all()
    with pytest.raises(ValueError, match=REFUSED):
        model.impute(X, rng=0)
    assert np.isfinite(model.impute(X, rng=0, force=True)).all()
    (tmp_path / "d.csv").write_text("a,b\n0.5,\n,\n")
    command = ("sample", tmp_path / "m.json", "--given", tmp_path / "d.csv")
    assert b"would describe that region" in isodus(*command).stderr
    assert len(isodus(*command, "--force").stdout.splitlines()) == 3


def piled(seed, n=4000):
    """Four correlated columns of two populations, with piles at both ends of their ranges."""
    rng = np.random.default_rng(seed)
    z, second = rng.standard_normal((n, 1)), rng.random((n, 1)) < 0.4
    X = 1.5 + 0.5 * z + 0.15 * rng.standard_normal((n, 4)) + second * np.array([1.5, 1.2, 0.8, 0.3])
    X = np.maximum(X, [1.0, 0.9, 1.0, 0.8])
    return np.column_stack([np.minimum(X[:, 0], 3.6), X[:, 1:]])


def test_what_a_wide_search_finds_the_fit_has_told():
    """From 24 rows the mass of all three is missed, though that of the first is a hundred times the range away."""
    missed = 0
    for seed in (4, 5, 9):
        X = piled(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            est = ISODUS(4).fit(X)
        model, told = est.model_, any("has its mass far from the data" in note for note in est.notes_)
        found = strays(model.basis, model.theta, ((X[::5] - model.location) / model.scale).T)
        missed += found is not None and not told
    assert missed <= 1  # rounding decides where a fit ends


def test_the_verdict_is_in_the_file(file):
    notes = json.loads(file.read_text())["settings"]["notes"]
    assert any("has its mass far from the data" in note for note in notes)


def test_a_model_near_its_data_is_not_refused():
    X = np.random.default_rng(0).normal(size=(500, 2))
    model = ISODUS(2).fit(X).model_
    assert np.asarray(model.sample(5, rng=0)).shape == (5, 2)
    assert np.isfinite(model.logpdf(X)).all()
