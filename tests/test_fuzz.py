"""Files that were damaged at random: a clear refusal or an answer, never a crash, a hang or a file elsewhere."""

import base64
import json
import random
import re
import warnings
import zlib
from contextlib import suppress

import numpy as np
import pytest
from typer.testing import CliRunner

from isodus import ISODUS, PolynomialModel
from isodus.cli import app
from isodus.tables import read_table

BITS = [b",", b";", b'"', b"\n", b"\r", b"\t", b"\0", b"nan", b"inf", b"1e999", b"-", b"\xff\xfe", b"{", b"}", b"[["]
BITS += [b"null", b"-1", b"1e308", b"9" * 400, b"a" * 50, b"true", b'"""', "é".encode(), b"[" * 2000]
X = np.random.default_rng(0).standard_normal((60, 3)) @ [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]
CSV = ("a,b,c\n" + "".join(",".join(f"{v:.4f}" for v in row) + "\n" for row in X)).encode()


def damaged(content, rng):
    """A text with one to six random changes."""
    for _ in range(rng.randint(1, 6)):
        k, i, j = rng.randrange(9), rng.randrange(len(content) + 1), rng.randrange(len(content) + 1)
        if k == 0:
            content = content[:i] + bytes([rng.randrange(256)]) + content[i + 1 :]
        elif k == 1:
            content = content[:i] + content[i + rng.randint(1, 200) :]
        elif k in (2, 3):
            content = content[:i] + rng.choice(BITS) + content[i:]
        elif k == 4:
            content = content[:i] + content[j : j + rng.randint(1, 100)] + content[i:]
        elif k == 5:
            content = content.replace(rng.choice([b",", b".", b"0", b":"]), rng.choice([b";", b"\t", b" ", b"NA", b""]))
        elif k == 6:
            content = content[:i]
        elif k == 7:
            content = b"\xef\xbb\xbf" + content
        else:
            content = content.decode("latin-1").encode(rng.choice(["utf-16", "utf-8"]))
    return content


def odd_value(rng):
    values = [None, True, -1, 0, 10**9, 10**400, 1e308, "x", "", [], {}, [[]], [None], [10**400], ["x"], [[0, 10**9]]]
    return rng.choice([*values, float("nan"), float("inf"), [float("nan")] * 3, [[-1]], [[0] * 500]])


@pytest.fixture(scope="module")
def model():
    return ISODUS(2).fit(X).model_


def refused_or_read(path):
    found, words = None, ""
    try:
        found = PolynomialModel.load(path)
    except ValueError as error:
        words = str(error)
    if found is None:
        assert str(path) in words
        return False
    assert np.isfinite(found.energy(np.zeros((1, len(found.names))))).all() or np.abs(found.theta).max() > 1e100
    found.to_frame()
    return True


def test_damaged_models_are_refused_or_read(model, tmp_path):
    path, rng = tmp_path / "m.json", random.Random(0)
    model.save(path)
    whole = path.read_bytes()
    read = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(700):
            path.write_bytes(damaged(whole, rng))
            read += refused_or_read(path)
        for _ in range(700):
            content = json.loads(whole)
            for field in rng.sample(sorted(content), rng.randint(1, 2)):
                content[field] = odd_value(rng)
            path.write_text(json.dumps(content))
            read += refused_or_read(path)
    assert 0 < read < 700
    assert [file.name for file in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_few_bytes_do_not_unfold_to_gigabytes(model, tmp_path, sparse):
    path = tmp_path / "m.json"
    model.save(path)
    content = json.loads(path.read_text())
    bomb = base64.b64encode(zlib.compress(bytes(64 << 20), 9)).decode()
    content["covariance"] = dict(rows=bomb, columns=bomb, values=bomb) if sparse else bomb
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="damaged: its covariance is cut short, or has more than 45 values"):
        PolynomialModel.load(path)


def test_a_file_without_end_is_not_read(model, tmp_path, monkeypatch):
    model.save(tmp_path / "m.json")
    monkeypatch.setattr("isodus.io.MOST_BYTES", 1000)
    with pytest.raises(ValueError, match="is no isodus model: it has 0.0 GB"):
        PolynomialModel.load(tmp_path / "m.json")


def test_damaged_tables_are_refused_or_read(tmp_path):
    path, rng, read = tmp_path / "x.csv", random.Random(1), 0
    for _ in range(300):
        path.write_bytes(damaged(CSV, rng))
        with suppress(ValueError, OSError):
            table = read_table([path])
            read += 1
            assert not np.isinf(table.frame.to_numpy()).any()
    assert 30 < read < 270


def test_an_array_without_rows(tmp_path):
    np.save(tmp_path / "x.npy", X[:0])
    with pytest.raises(ValueError, match="has no rows"):
        read_table([tmp_path / "x.npy"])


def test_an_array_that_promises_more_than_there_is(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    path.write_bytes(path.read_bytes().replace(b"(60, 3), ", b"(9999999999, 9), ")[:-8])
    with pytest.raises(ValueError, match="cannot be read"):
        read_table([path])


OPTIONS = [[], ["--missing", "drop"], ["--missing", "impute"], ["--columns", "a,b"], ["--weights", "c"]]
OPTIONS += [["--transform", "log10:a"], ["--json"], ["-o", "out.json"]]


def test_commands_end_with_an_answer_or_a_line(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    model.save("m.json")
    (tmp_path / "good.csv").write_bytes(CSV)
    whole, rng, run = (tmp_path / "m.json").read_bytes(), random.Random(2), CliRunner()
    expected = {"m.json", "good.csv", "x.csv", "y.json", "out.json", "out.terms.csv"}
    codes = []
    for k in range(50):
        if k % 3:
            (tmp_path / "x.csv").write_bytes(damaged(CSV, rng))
            arguments = ["fit", "x.csv", "--degree", "2", *rng.choice(OPTIONS)]
        else:
            (tmp_path / "y.json").write_bytes(damaged(whole, rng))
            arguments = rng.choice([["sample", "y.json", "-n", "5"], ["compare", "y.json", "--data", "good.csv"]])
        done = run.invoke(app, arguments)
        assert done.exception is None or isinstance(done.exception, SystemExit), (k, done.exception)
        codes.append(done.exit_code)
        assert done.exit_code in (0, 1, 2)
        lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert done.exit_code != 1 or lines, done.output
        assert not any(re.match(r"error: \w+(Error|Exception): ", line) for line in lines), lines
        assert "Traceback" not in done.output
    assert {0, 1} <= set(codes)
    assert {file.name for file in tmp_path.rglob("*")} <= expected
    assert (tmp_path / "good.csv").read_bytes() == CSV
