import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import isodus
from isodus import PolynomialModel
from isodus.cli import app
from isodus.datasets import paper_pair


def test_demo_prints_true_and_learned_parameters():
    result = CliRunner().invoke(app, ["demo", "-n", "20000"])
    assert result.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    cells = [row[k : k + 3] for row in rows for k in (0, 3)]
    assert len(cells) == 24
    found = [[float(number) for number in (cell[1], *cell[2].split("±"))] for cell in cells]
    assert sum(abs(true - learned) for true, learned, _ in found) / 24 < 0.1
    assert sum(abs(true - learned) < 2 * stderr for true, learned, stderr in found) >= 20  # of 24, 95 % each
    assert ["x0^4", "2.00"] in [cell[:2] for cell in cells]
    assert "20,000 samples drawn in" in result.stdout


def test_version():
    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == f"isodus {isodus.__version__}"


@pytest.fixture
def table(tmp_path):
    """A small CSV file: two variables of the paper's model, and columns that are none."""
    X = paper_pair(1).sample(3000, rng=0)
    path = tmp_path / "samples.csv"
    pd.DataFrame({"speed": X[:, 0], "load": X[:, 1], "who": "me"}).to_csv(path)
    return path


def fit(*arguments):
    return CliRunner().invoke(app, ["fit", *map(str, arguments)])


def test_fit_learns_what_the_library_learns(table, tmp_path):
    result = fit(table, "-o", tmp_path / "model.json")
    assert result.exit_code == 0, result.output
    model = PolynomialModel.load(tmp_path / "model.json")
    X = pd.read_csv(table)[["speed", "load"]]
    expected = isodus.ISODUS().fit(X)
    assert model.names == ("speed", "load")
    assert np.allclose(model.theta, expected.model_.theta, rtol=1e-9)
    assert "read 3,000 rows, 2 columns in" in result.stdout
    assert "left out: column 1 (has no name), who (has 'me' in line 2)" in result.stdout
    assert model.summary() in result.stdout
    gaussian = isodus.PseudoLikelihood(degree=2).fit(X).score(X)
    assert f"{expected.score(X):.4f}; a Gaussian has {gaussian:.4f}" in result.stdout
    assert f"model written to {tmp_path / 'model.json'}" in result.stdout


def test_fit_takes_its_options(table, tmp_path):
    output = tmp_path / "model.json"
    options = ["--columns", "load, speed", "--degree", 2, "--max-order", 1, "--transform", "asinh"]
    result = fit(table, *options, "--estimator", "score-matching", "-o", output)
    assert result.exit_code == 0, result.output
    assert "left out" not in result.stdout
    model = PolynomialModel.load(output)
    X = np.arcsinh(pd.read_csv(table)[["load", "speed"]])
    expected = isodus.ScoreMatching(2, max_order=1).fit(X).model_
    assert model.names == ("load", "speed")
    assert np.allclose(model.theta, expected.theta, rtol=1e-9)
    assert model.settings["estimator"] == "ScoreMatching"
    assert model.settings["transform"] == "asinh"


def test_fit_without_output_writes_nothing(table, tmp_path):
    result = fit(table, "--estimator", "pseudo-likelihood", "--degree", 2)
    assert result.exit_code == 0
    assert "strongest interactions" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["samples.csv"]


def test_warnings_and_notes_are_lines(tmp_path):
    x = np.random.default_rng(0).normal(size=200)
    path = tmp_path / "twins.csv"
    pd.DataFrame({"a": x, "b": x}).to_csv(path, index=False)
    result = fit(path, "--estimator", "score-matching")
    assert result.exit_code == 0, result.output
    assert "note: singular, 2 of 2 variables: a, b" in result.stdout
    lines = result.stderr.splitlines()
    assert lines
    assert all(line.startswith("warning: ") for line in lines)
    assert any("cannot be told apart" in line for line in lines)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (None, [], "there is no file"),
        ("", [], "is empty"),
        ("a,b\n", [], "has a header and no rows"),
        ("a,b\n1,\n2,3\n,\n", [], "missing or infinite values in FILE, 3 rows: a (1), b (2)"),
        ("a,b,a\n1,2,3\n", [], "more than one column of FILE is called 'a'"),
        ("1.5,2\n3,4\n", [], "add a header line"),
        ("a,b\n1,2,3\n4,5,6\n", [], "have more fields than its header"),
        ("a;b\n1;2\n3;4\n", [], "separated by commas"),
        ("a,b\nx,y\n", [], "FILE has no numeric column: 'a', 'b'"),
        ("a,b\n1,2\n3,4\n", ["--columns", "a,c"], "FILE has no column 'c'; it has 'a', 'b'"),
        ("a,b\n1,2\n3,x\n", ["--columns", "a,b"], "not numeric: b has 'x' in line 3"),
        ("a,b\n1,2\n3,4\n", ["--columns", "a,a"], "'a' chosen more than once"),
        ("a,b\n0,2\n-3,4\n5,0\n", ["--transform", "log10"], "not above zero, of 3 rows: a (2), b (1)"),
        ("a,b\n1,2\n3,4\n", ["--degree", "3"], "degree=3 is odd"),
        ("a,b\n1,2\n3,4\n", ["-o", "nowhere/model.json"], "there is no folder nowhere"),
        ("a,b\n1,2\n3,4\n", ["-o", "FILE"], "would replace the samples"),
    ],
)
def test_errors_are_one_line_and_status_1(tmp_path, content, options, message):
    path = tmp_path / "samples.csv"
    if content is not None:
        path.write_text(content)
    result = fit(path, *(str(path) if option == "FILE" else option for option in options))
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert message.replace("FILE", str(path)) in line
    assert content is None or path.read_text() == content


def test_debug_shows_the_traceback(tmp_path):
    result = fit(tmp_path / "none.csv", "--debug")
    assert isinstance(result.exception, FileNotFoundError)
