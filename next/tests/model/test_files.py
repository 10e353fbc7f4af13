"""Files: every public output survives, and whatever happens to a file has a decided outcome."""

import gzip
import json
import os
import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from isodus import MonomialBasis, PolynomialModel, PseudoLikelihood, datasets
from isodus.axes import Functions


@pytest.fixture(scope="module")
def tied():
    """Tied parameters and no lower terms: T is not the identity."""
    basis = MonomialBasis([(0, 0), (1, 1), (0, 1), (0, 0, 0, 0), (1, 1, 1, 1)], ties=[0, 0, 1, 2, 2])
    return PseudoLikelihood(4, basis=basis).fit(datasets.paper_pair(300)).model_


def outputs(model, X):
    """All that a model says."""
    view = model.polynomial()
    return {
        "repr": repr(model),
        "names": model.names,
        "dict": model.to_dict(),
        "frame": model.to_frame().to_csv(),
        "interactions": model.interactions().to_csv(),
        "hyperedges": model.hyperedges(),
        "edges": repr(sorted(model.graph(q=None).edges(data=True))),
        "summary": model.summary(),
        "formula": model.formula(),
        "covariance": None if view.covariance is None else view.covariance.tolist(),
        "energy": model.energy(X).tolist(),
        "logpdf": model.logpdf(X, 0.5).tolist(),
        "outside": model.outside(X).to_csv(),
        "integrability": model.integrability(),
        "theta": model.theta.tolist(),
        "axes": model.terms.axes,
        "notes": model.notes,
        "draws": np.asarray(model.sample(5, random_state=0)).tolist(),
        "type of draws": type(model.sample(2, random_state=0)),
        "conditional": model.conditional(0, X).mean().tolist(),
        "fitted": None if model.fitted is None else (model.fitted.held_out, model.fitted.columns, model.fitted.n),
    }


def rows(model):
    return 0.5 * np.random.default_rng(0).standard_normal((6, len(model.names)))


@pytest.mark.parametrize("name", ["pair", "butterfly", "triple", "quartic", "tied", "mixed"])
@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_everything_survives(name, ending, request, tmp_path):
    model = request.getfixturevalue(name)
    X = request.getfixturevalue("values")[:6] if name == "mixed" else rows(model)
    path = tmp_path / f"model.{ending}"
    model.save(path)
    assert outputs(PolynomialModel.load(path), X) == outputs(model, X)
    again = tmp_path / "again.json"
    PolynomialModel.load(path).save(again)
    text = gzip.decompress(path.read_bytes()) if ending.endswith("gz") else path.read_bytes()
    assert again.read_bytes() == text
    assert path.read_bytes().startswith(b"\x1f\x8b") == ending.endswith("gz")


@pytest.mark.parametrize("name", ["pair", "tied", "mixed"])
def test_pickles(name, request):
    model = request.getfixturevalue(name)
    X = request.getfixturevalue("values")[:6] if name == "mixed" else rows(model)
    assert outputs(pickle.loads(pickle.dumps(model)), X) == outputs(model, X)


def test_extreme_numbers_survive(tmp_path):
    model = PolynomialModel.from_dict(
        {"a": 5e-324, ("a", "a"): 1.7976931348623157e308, ("a", "b"): -0.1, ("b", "b"): 1 / 3}
    )
    model.save(tmp_path / "m.json")
    assert PolynomialModel.load(tmp_path / "m.json").tau.tolist() == model.tau.tolist()


def test_functions_of_the_user_are_not_saved(tmp_path):
    axis = Functions(lambda x: np.stack([x, np.log(x)], axis=1), (0.0, np.inf), [1, 1])
    model = PolynomialModel.from_dict({"a": 1.0, ("a", "a"): -1.0}, axes=[axis])
    with pytest.raises(ValueError, match="The model cannot be saved: .*functions of your own"):
        model.save(tmp_path / "m.json")
    assert os.listdir(tmp_path) == []


def test_a_file_is_whole_or_as_before(pair, tmp_path, monkeypatch):
    path = tmp_path / "m.json"
    path.write_text("before")
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        pair.save(path)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["m.json"]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        PolynomialModel.load(tmp_path / "none.json")


# ------------------------------------------------------------------------------------------------ what is refused


@pytest.fixture(scope="module")
def content(pair, tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "m.json"
    pair.save(path)
    return json.loads(path.read_text())


def changed(content, place, value):
    """A copy of the content with another value at a place, such as "terms.keys.0"; del: without it."""
    copy = json.loads(json.dumps(content))
    *way, last = [int(part) if part.isdecimal() else part for part in place.split(".")]
    part = copy
    for step in way:
        part = part[step]
    if value is None and last in ("names", "axes", "tau", "version", "notes", "keys"):
        del part[last]
    else:
        part[last] = value
    return copy


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("format", "other", "does not say that it is one"),
        ("version", 2, "format version 2, and this isodus reads up to 1; upgrade"),
        ("version", "1", "version must be an integer"),
        ("version", None, "no entry 'version'"),
        ("names", None, "no entry 'names'"),
        ("names", ["a", "a"], "different from each other"),
        ("names", ["a", 1], r"names\[1\] must be a text, not 1"),
        ("names", ["a"], "axes has 2 entries in place of 1"),
        ("axes", {}, "axes must be a list"),
        ("axes.0.kind", "cube", r"axes\[0\] cannot be read: no axis is of kind 'cube'"),
        ("axes.0.scale", -1.0, r"axes\[0\] cannot be read: .*positive scale"),
        ("axes.0.scale", 10**400, r"axes\[0\]"),
        ("axes.0.alpha", [[1.0]], r"axes\[0\] cannot be read"),
        ("axes.0.alpha", "nan", r"axes\[0\] cannot be read"),
        ("axes.0.beta", [1e-300] * 4, r"functions of axes\[0\] are not finite"),
        ("axes.1", {"kind": "circle", "degree": 10**9}, r"axes\[1\].degree is out of range: 1e\+09"),
        ("axes.1", {"kind": "whole line", "location": 0, "scale": 1, "degree": 1e300}, "degree is out of range"),
        ("axes.1", {"kind": "functions", "f": "import os"}, "an axis of kind 'functions' has|functions of your own"),
        ("axes.1", {"kind": "mapped", "axis": {"kind": "circle", "degree": 10**9}}, "degree is out of range"),
        ("axes.0.alpha", [0.1] * 2000, r"axes\[0\].alpha has more than 100 numbers"),
        ("axes.0.location", 1e200, r"axes\[0\]"),
        ("axes.0", {"kind": "bounded", "centres": [0.1] * 10**5}, "centres has more than 1,000 numbers"),
        ("axes.0", {"kind": "mapped", "knots": [[0.1] * 10**5] * 2}, "knots has more than 20,000 numbers"),
        ("tau", [1.0], "tau has 1 entries in place of 14"),
        ("tau.0", "nan", r"tau\[0\] must be a number, not 'nan'"),
        ("tau.0", True, r"tau\[0\] must be a number, not True"),
        ("tau.0", 10**400, "too large"),
        ("terms.keys", [], "terms are not different"),
        ("terms.keys.0", [], "from 1 to 64 variables"),
        ("terms.keys.0", [0, 0, 0, 0, 0], "a function that its axis does not have"),
        ("terms.keys.0", [2], r"terms.keys\[0\]\[0\] must be an integer from 0 to 1"),
        ("terms.keys.0", [1], "not different from each other"),
        ("terms.keys.0", [0.0], "must be an integer"),
        ("terms.copies", 0, "copies must be an integer from 1"),
        ("terms.T", [[0], [0], [1.0]], "products must be a list"),
        ("fitted.covariance", "AAAA", "fitted.covariance has 3 bytes in place of 840"),
        ("fitted.covariance", "not base64!", "covariance is not base64"),
        ("fitted.minima", [9.0, 9.0], "minima are not below the maxima"),
        ("fitted.tests.0.2", 1.5, "not a probability"),
        ("fitted.tests.0.3", "guess", "must be 'score' or 'one-step'"),
        ("fitted.tests", [], "tests has 0 entries in place of 1"),
        ("fitted.n", -1.0, "fitted.n is out of range"),
        ("fitted", [1], "fitted has no entry 'columns'"),
        ("notes", [{"kind": "x"}], r"notes\[0\] cannot be read"),
        ("notes", [{"kind": "x", "severity": "loud", "variables": [], "numbers": {}, "text": ""}], "severity must be"),
    ],
)
def test_wrong_values_are_named(content, place, value, message, tmp_path):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(changed(content, place, value)))
    with pytest.raises(ValueError, match=f"bad.json is not a readable isodus model: .*(?:{message})"):
        PolynomialModel.load(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not JSON"),
        (b"\x00\xff\xfe", "not text|not JSON"),
        (b"[1, 2]", "does not say that it is one"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"format": "isodus model", "version": NaN}', "NaN, which is not a number"),
        (b'{"format": "isodus model", "version": ' + b"9" * 5000 + b"}", "digits|version"),
        (gzip.compress(b"{}")[:-4], "ends too early"),
        (gzip.compress(b"{}")[:6] + b"\x07" * 30, "damaged|ends too early"),
        (gzip.compress(b" " * 200_000_000, 9), "too large to be that of a model"),
    ],
    ids=["empty", "bytes", "list", "nested", "NaN", "digits", "cut gzip", "damaged gzip", "gzip bomb"],
)
def test_what_is_no_model_is_refused(data, message, tmp_path):
    path = tmp_path / "bad.json.gz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=f"bad.json.gz is not a readable isodus model: .*(?:{message})"):
        PolynomialModel.load(path)


def test_axes_inside_axes_inside_axes(content, tmp_path):
    deep = {"kind": "circle", "degree": 2}
    for _ in range(sys.getrecursionlimit() // 4):
        deep = {"kind": "mapped", "axis": deep, "g": "asinh", "scale": 1.0, "knots": None}
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(changed(content, "axes.0", deep)))
    with pytest.raises(ValueError, match=r"bad.json is not a readable isodus model"):
        PolynomialModel.load(path)


# ------------------------------------------------------------------------------------------------ mutations

STRANGE = [None, True, -1, 0, 10**30, 1e308, -0.0, "nan", "", "line", [], {}, [[]], [0] * 50, {"kind": "line"}, 0.5, 2]


def places(value, way=()):
    """All places in nested lists and dictionaries."""
    yield way
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*way, key))


def mutated(content, rng):
    """A file with something wrong with it: bytes, or a value, an entry or a part in another place."""
    text = bytearray(json.dumps(content).encode())
    kind = rng.integers(6)
    if kind == 0:  # cut off
        return bytes(text[: rng.integers(len(text))])
    if kind == 1:  # flipped bytes
        for _ in range(rng.integers(1, 4)):
            text[rng.integers(len(text))] ^= 1 << rng.integers(8)
        return bytes(text)
    if kind == 2:  # compressed, and damaged
        packed = bytearray(gzip.compress(bytes(text)))
        packed[rng.integers(len(packed))] ^= 1 << rng.integers(8)
        return bytes(packed[: rng.integers(len(packed))] if rng.random() < 0.3 else packed)
    copy = json.loads(bytes(text))
    every = [way for way in places(copy) if way]
    *way, last = every[rng.integers(len(every))]
    part = copy
    for step in way:
        part = part[step]
    if kind == 3:  # another value
        part[last] = STRANGE[rng.integers(len(STRANGE))]
    elif kind == 4:  # without it
        del part[last]
    else:  # a part of the file in its place
        other = copy
        for step in every[rng.integers(len(every))]:
            other = other[step]
        part[last] = json.loads(json.dumps(other))
    return json.dumps(copy).encode()


@pytest.mark.parametrize("name", ["pair", "tied", "mixed"])
def test_mutations_have_a_decided_outcome(name, request, tmp_path):
    """500 of each: a ValueError that names the file, or a model that says all that a model says."""
    model = request.getfixturevalue(name)
    original = tmp_path / "m.json"
    model.save(original)
    content, rng, read = json.loads(original.read_text()), np.random.default_rng(0), 0
    path = tmp_path / "mutated.json"
    for _ in range(500):
        path.write_bytes(mutated(content, rng))
        try:
            found = PolynomialModel.load(path)
        except ValueError as error:
            assert str(error).startswith(f"{path} is not a readable isodus model: ")  # noqa: PT017
            assert len(str(error)) < 1000  # noqa: PT017
            continue
        read += 1
        assert len(found.tau) == len(found.terms) > 0
        assert found.theta.shape == (len(found.terms.products),)
        assert np.isfinite(found.theta).all()
        assert len(found.names) == len(found.terms.axes)
        assert repr(found).startswith("PolynomialModel of")
        assert isinstance(found.fitted is None or found.fitted.interaction_tests(), list | bool | None)
        with np.errstate(all="ignore"):
            assert isinstance(found.summary(), str)
            assert isinstance(found.to_frame(), pd.DataFrame)
            found.save(tmp_path / "again.json")
    assert 0 < read < 250
