import json
import re
import sys
import warnings
from dataclasses import replace
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import isodus
from isodus import MonomialBasis, PolynomialModel
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
    assert f"mean log P(x_i | rest) per variable, on these samples: {expected.score(X):.4f}\n" in result.stdout
    assert f"model written to {tmp_path / 'model.json'}" in result.stdout


def test_a_gaussian_is_compared_on_rows_that_were_not_fitted(table):
    X = pd.read_csv(table)[["speed", "load"]]
    out = np.random.default_rng(0).permutation(3000)[np.unique(X, axis=0, return_inverse=True)[1].ravel()] % 5 == 0
    fits = isodus.ISODUS().fit(X[~out]), isodus.PseudoLikelihood(degree=2).fit(X[~out])
    model, gaussian = (each.score(X[out]) for each in fits)
    said = f"held out, 600 rows predicted by a fit to the others: {model:.4f}, a Gaussian {gaussian:.4f} (± "
    result = fit(table)
    assert said in result.stdout
    assert "a Gaussian has" not in result.stdout
    assert json.loads(fit(table, "--json").stdout)["held_out"]["score"] == pytest.approx(model)


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
        ("a,b\n1,\n2,3\n,\n", [], "missing values in FILE, 2 of 3 rows: a (1), b (2). Choose other columns, --missing"),
        ("a,b\n1,2\ninf,3\n", [], "FILE: a is infinite in row 2"),
        ("a,b,a\n1,2,3\n", [], "more than one column of FILE is called 'a'"),
        ("1.5,2\n3,4\n", [], "add a header line"),
        ("a,b\n1,2,3\n4,5,6\n", [], "have more fields than its header"),
        ("a,b\nx,y\n", [], "FILE has no numeric column: 'a', 'b'"),
        ("a,b\n1,2\n3,4\n", ["--columns", "a,c"], "FILE has no column 'c'; it has 'a', 'b'"),
        ("a,b\n1,2\n3,x\n", ["--columns", "a,b"], "not numeric: b has 'x' in line 3"),
        ("a,b\n1,2\n3,4\n", ["--columns", "a,a"], "'a' chosen more than once"),
        ("a,b\n0,2\n-3,4\n5,0\n", ["--transform", "log10"], "not above zero, of 3 rows: a (2), b (1)"),
        ("a,b\n1,2\n3,4\n", ["--degree", "3"], "degree=3 is odd"),
        ("a,b\n1,2\n3,4\n", ["--degree", "0"], "degree must be an even integer of at least 2, not 0"),
        ("a,b\n1,2\n3,4\n", ["--max-order", "0"], "max_order must be an integer of at least 1, not 0"),
        ("a,b\n1,2\n3,4\n", ["--l1", ""], "l1 must be one of 'auto', 'ebic', 'cv', 'stars'"),
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


@pytest.fixture
def pair(tmp_path):
    """The file of a model of two variables."""
    path = tmp_path / "pair.json"
    replace(paper_pair(1), names=("speed", "load")).save(path)
    return path


@pytest.fixture
def logs(tmp_path):
    """The file of a model of log10 of two columns, "a" of mean 100 and "b" ten times that, up to 1 %."""
    path = tmp_path / "logs.json"
    of_logs = PolynomialModel.from_dict({(0, 0): 6e4, (0, 1): -1e5, (1, 1): 5e4}, names=["a", "b"])
    closed = MonomialBasis(2, 2)
    values = [of_logs.to_dict().get(term, 0.0) for term in closed.terms]
    replace(
        of_logs, basis=closed, theta=np.array(values), location=np.array([2.0, 3.0]), settings={"transform": "log10"}
    ).save(path)
    return path


def sample(*arguments):
    return CliRunner().invoke(app, ["sample", *map(str, arguments)])


def values(text):
    """The numbers of a table, to the last digit."""
    return np.loadtxt(StringIO(text), delimiter=",", skiprows=1)


def test_sample_writes_what_the_library_draws(pair, tmp_path):
    output = tmp_path / "new.csv"
    result = sample(pair, "-n", 2000, "--seed", 3, "-o", output)
    assert result.exit_code == 0, result.output
    expected = PolynomialModel.load(pair).sample(2000, 3)
    assert output.read_text().startswith("speed,load\n")
    assert np.array_equal(values(output.read_text()), expected)
    assert result.stdout == ""
    said, written = result.stderr.splitlines()
    assert re.fullmatch(r"2,000 samples of 2 variables in \d+\.\d\d s: exact, independent samples of the model", said)
    assert written == f"written to {output}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "pair.json"]


def test_sample_without_output_is_a_table_on_standard_output(pair):
    result = sample(pair, "--seed", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("speed,load\n")
    assert np.array_equal(values(result.stdout), PolynomialModel.load(pair).sample(1000, 1))
    assert result.stderr.count("\n") == 1
    assert sample(pair, "--seed", 1).stdout == result.stdout
    assert sample(pair, "--seed", 2).stdout != result.stdout
    assert sample(pair, "-n", 5).stdout != sample(pair, "-n", 5).stdout


def test_samples_as_npy(pair, tmp_path):
    output = tmp_path / "new.NPY"
    result = sample(pair, "-n", 10, "--seed", 3, "-o", output)
    assert result.exit_code == 0, result.output
    assert np.array_equal(np.load(output), PolynomialModel.load(pair).sample(10, 3))
    assert f"written to {output}; its columns are speed, load" in result.stderr


def test_sample_takes_a_method_and_a_start(pair, table):
    result = sample(pair, "-n", 600, "--method", "gibbs", "--start", table, "--seed", 0)
    assert result.exit_code == 0, result.output
    start = pd.read_csv(table)[["speed", "load"]]
    expected = PolynomialModel.load(pair).sample(600, 0, method="gibbs", start=start)
    assert np.array_equal(values(result.stdout), expected)
    assert re.match(r"600 samples of 2 variables in .* s: Gibbs \(512 chains .*effective samples", result.stderr)
    unused = sample(pair, "-n", 5, "--start", table)
    assert "note: --start was not used, exact samples need none" in unused.stderr


def test_warnings_of_sampling_are_lines(pair, monkeypatch):
    def draw(self, n, rng, **options):
        warnings.warn("the chains have\nnot mixed", UserWarning, stacklevel=2)
        return quietly(self, n, rng, **options)

    quietly = PolynomialModel.sample
    monkeypatch.setattr(PolynomialModel, "sample", draw)
    result = sample(pair, "-n", 5)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines()[1:] == ["warning: the chains have not mixed"]
    assert len(result.stdout.splitlines()) == 6


def test_samples_of_a_transformed_model_are_in_the_units_of_the_data(logs):
    result = sample(logs, "-n", 2000, "--seed", 0)
    assert result.exit_code == 0, result.output
    X = pd.read_csv(StringIO(result.stdout))
    assert np.allclose(X.mean(), [100, 1000], rtol=0.01)
    assert "the model is of log10 of the data; the table is in units of the data" in result.stderr
    kept = sample(logs, "-n", 2000, "--seed", 0, "--transformed")
    assert np.allclose(pd.read_csv(StringIO(kept.stdout)), np.log10(X))
    assert "the model is of log10 of the data; the table is of log10 too" in kept.stderr
    replace(PolynomialModel.load(logs), settings={"transform": "asinh"}).save(logs)
    result = sample(logs, "-n", 2000, "--seed", 0)
    assert np.allclose(np.arcsinh(values(result.stdout)), values(kept.stdout))


def test_a_start_is_in_the_units_of_the_data(logs, tmp_path):
    path = tmp_path / "start.csv"
    path.write_text("b,a\n1000,100\n1010,101\n")
    result = sample(logs, "-n", 600, "--method", "hmc", "--start", path, "--seed", 0)
    assert result.exit_code == 0, result.output
    start = np.log10([[100, 1000], [101, 1010]])
    expected = PolynomialModel.load(logs).sample(600, 0, method="hmc", start=start)
    assert np.allclose(np.log10(values(result.stdout)), expected)


def test_given_fills_in_cells_and_columns_and_keeps_all_else(pair, tmp_path):
    path, output = tmp_path / "holes.csv", tmp_path / "full.csv"
    path.write_text(',who,speed,id\n0,"me, you",0.50,007\n1,NA,,008\n2,,NaN,9\n3,you,1e-1,010\n')
    result = sample(pair, "--given", path, "-o", output, "--seed", 5)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    filled, added, written = result.stderr.splitlines()
    assert re.fullmatch(r"filled in 6 cells: speed 2, load 4; \d+\.\d\d s", filled)
    assert added == f"not in {path}, added as new columns: load"
    assert written == f"written to {output}"
    known = pd.DataFrame({"speed": [0.5, np.nan, np.nan, 0.1], "load": np.nan})
    expected = PolynomialModel.load(pair).impute(known, rng=5)
    lines = output.read_text().splitlines()
    assert lines[0] == ",who,speed,id,load"
    assert [line.split(",")[-1] for line in lines[1:]] == [repr(value) for value in expected["load"].tolist()]
    speed = expected["speed"].tolist()
    assert lines[1].startswith('0,"me, you",0.50,007,')
    assert lines[2].startswith(f"1,NA,{speed[1]!r},008,")
    assert lines[3].startswith(f"2,,{speed[2]!r},9,")
    assert lines[4].startswith("3,you,1e-1,010,")
    assert sample(pair, "--given", path, "--seed", 5).stdout == output.read_text()


def test_given_with_one_column_takes_empty_lines_for_missing_cells(pair, tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("speed\n0.5\n\n0.25\n")
    result = sample(pair, "--given", path)
    assert result.exit_code == 0, result.output
    assert "filled in 4 cells: speed 1, load 3;" in result.stderr
    X = pd.read_csv(StringIO(result.stdout))
    assert X["speed"].tolist()[::2] == [0.5, 0.25]
    assert np.isfinite(X).all(axis=None)


def test_given_without_anything_missing_stays_as_it_is(pair, tmp_path):
    path, text = tmp_path / "full.csv", "load,id,speed\n0.50,07,1\n1,08,2\n"
    path.write_text(text)
    result = sample(pair, "--given", path)
    assert result.exit_code == 0, result.output
    assert result.stdout == text
    assert result.stderr == f"nothing is missing in the 2 rows of {path}: they stay as they are\n"


def test_given_is_in_the_units_of_the_data(logs, tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("a,b\n100.,\n102.,\n,1000\n")
    result = sample(logs, "--given", path, "--seed", 0)
    assert result.exit_code == 0, result.output
    X = pd.read_csv(StringIO(result.stdout))
    assert np.allclose(X["a"] * 10, X["b"], rtol=0.05)
    assert result.stdout.startswith("a,b\n100.,")
    path.write_text("a,b\n2.,\n2.01,\n,3.\n")
    kept = sample(logs, "--given", path, "--seed", 0, "--transformed")
    X = pd.read_csv(StringIO(kept.stdout))
    assert np.allclose(X["a"] + 1, X["b"], atol=0.02)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", ["-o", "new.xlsx"], "new.xlsx: the samples can be written to a file that ends in .csv or .npy"),
        ("", ["-o", "nowhere/new.csv"], "there is no folder nowhere"),
        ("", ["-o", "FOLDER"], "FOLDER is a folder: name a file to write the samples to"),
        ("speed,load\n1,2\n", ["--start", "FILE", "-o", "FILE"], "the samples would replace the samples in FILE"),
        ("speed\n1\n", ["--start", "FILE"], "FILE has no column 'load'; it has 'speed'"),
        ("speed\n1\n", ["--given", "FILE", "-n", "5"], "-n does not go with --given: the rows are those of the file"),
        ("speed\n1\n", ["--given", "FILE", "--method", "hmc"], "--method and --start do not go with --given"),
        ("speed\n1\n", ["--given", "FILE", "--start", "FILE"], "--method and --start do not go with --given"),
        ("speed\n1\n", ["--given", "FILE", "-o", "FILE"], "the filled table would replace the table in FILE"),
        ("speed\n1\n", ["--given", "FILE", "-o", "new.npy"], "can be written to a file that ends in .csv"),
        ("speed\n1\nlow\n", ["--given", "FILE"], "column speed of FILE has 'low' in line 3: write a finite number"),
        ("speed\nx\n-inf\n", ["--given", "FILE"], "has 'x' in line 2, and 1 more cell like it: write a finite"),
        ("fast,id\n1,2\n", ["--given", "FILE"], "no column of the model: it has 'fast', 'id', the model has 'speed'"),
        ("speed,load\n", ["--given", "FILE"], "FILE has a header and no rows"),
        ("speed,speed\n1,2\n", ["--given", "FILE"], "more than one column of FILE is called 'speed'"),
    ],
)
def test_errors_of_sample_are_one_line_and_status_1(pair, tmp_path, content, options, message):
    path = tmp_path / "data.csv"
    path.write_text(content)
    names = {"FILE": str(path), "FOLDER": str(tmp_path)}
    result = sample(pair, *(names.get(option, option) for option in options))
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert message.replace("FILE", str(path)).replace("FOLDER", str(tmp_path)) in line
    assert path.read_text() == content


def test_sample_needs_a_model_that_is_a_density(tmp_path):
    path = tmp_path / "model.json"
    assert f"error: there is no file {path}" in sample(path).stderr
    path.write_text("speed,load\n1,2\n")
    result = sample(path)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {path} is no isodus model: it is not JSON")
    PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 3.0, (1, 1): 1.0}).save(path)
    for result in (sample(path), sample(path, "--debug")):
        assert result.exit_code == 1
        assert result.stdout == ""
    assert isinstance(result.exception, ValueError)
    (line,) = sample(path).stderr.splitlines()
    assert line.startswith("error: the model is no probability distribution: ")


def test_given_and_log10_of_what_is_not_above_zero(logs, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\n0,1\n1,\n-1,-2\n")
    result = sample(logs, "--given", path)
    assert result.exit_code == 1
    message = (
        "error: log10 of values that are not above zero, of 3 rows: a (2), b (1). The model is of log10 of the data"
    )
    assert message in result.stderr
    model = PolynomialModel.load(logs)
    replace(model, settings={"transform": "sqrt"}).save(logs)
    assert f"error: {logs} is of sqrt of the data, which cannot be undone here" in sample(logs).stderr
    assert sample(logs, "-n", 5, "--transformed").exit_code == 0


def test_fit_with_a_penalty(tmp_path):
    X = isodus.datasets.regular_gaussian(6, rng=0).sample(2000, rng=1)
    path, output = tmp_path / "samples.csv", tmp_path / "model.json"
    pd.DataFrame(X, columns=list("abcdef")).to_csv(path, index=False)
    result = fit(path, "--degree", 2, "--l1", "auto", "-o", output)
    assert result.exit_code == 0, result.output
    expected = isodus.ISODUS(2, l1="auto").fit(pd.read_csv(path))
    assert PolynomialModel.load(output).to_dict() == expected.model_.to_dict()
    assert "penalised terms are in the model" in result.stdout
    bad = fit(path, "--l1", "lasso")
    assert bad.exit_code != 0
    assert "l1 must be one of" in bad.output


def test_scores_of_very_many_rows_are_taken_on_some_of_them(tmp_path, monkeypatch, table):
    monkeypatch.setattr(sys.modules["isodus.cli.fit"], "_MOST_SCORED", 500)
    result = fit(table, "--degree", 2, "--json")
    assert json.loads(result.stdout)["n_scored"] == 500
    assert "on 500 of the rows: " in fit(table, "--degree", 2).stdout
