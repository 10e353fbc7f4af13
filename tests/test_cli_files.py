"""The command line as a process, on files as they are found in the wild."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from processes import interrupt, isodus, start
from sklearn.datasets import load_breast_cancer

from isodus import ISODUS, PolynomialModel
from isodus.cli.sample import sample
from isodus.datasets import double_wells, paper_pair, regular_gaussian

N = 1500


def lines(text):
    return text.decode().splitlines()


@pytest.fixture(scope="module")
def frame():
    X = np.asarray(paper_pair(1).sample(N, rng=0)).round(6)
    return pd.DataFrame({"größe": X[:, 0], "load": X[:, 1]})


def as_csv(frame, **options):
    return frame.to_csv(index=False, **options)


READABLE = {
    "plain": lambda f: as_csv(f).encode(),
    "byte-order mark": lambda f: b"\xef\xbb\xbf" + as_csv(f).encode(),
    "semicolons and decimal commas": lambda f: as_csv(f, sep=";", decimal=",").encode(),
    "tabs": lambda f: as_csv(f, sep="\t").encode(),
    "Latin-1": lambda f: as_csv(f).encode("latin-1"),
    "Windows line ends": lambda f: as_csv(f, lineterminator="\r\n").encode(),
    "UTF-16": lambda f: as_csv(f, sep="\t").encode("utf-16"),
    "UTF-16, big end first": lambda f: b"\xfe\xff" + as_csv(f).encode("utf-16-be"),
}
SAID = {
    "semicolons and decimal commas": "fields separated by semicolons, decimal commas",
    "tabs": "fields separated by tabs",
    "Latin-1": "text in Latin-1, not UTF-8",
    "UTF-16": "fields separated by tabs, text in UTF-16, not UTF-8",
    "UTF-16, big end first": "text in UTF-16, not UTF-8",
}


@pytest.mark.parametrize("name", READABLE)
def test_text_of_any_kind_is_the_same_table(tmp_path, frame, name):
    path = tmp_path / "data.csv"
    path.write_bytes(READABLE[name](frame))
    done = isodus("fit", path, "--estimator", "score-matching", "-o", tmp_path / "m.json")
    assert done.returncode == 0, done.stderr.decode()
    model = PolynomialModel.load(tmp_path / "m.json")
    assert model.names == ("größe", "load")
    assert model.n_samples == N
    assert (SAID.get(name) is None) == (f"{path}: " not in done.stdout.decode().replace(f"to {path}", ""))
    assert SAID.get(name, "read 1,500 rows, 2 columns") in done.stdout.decode()
    theta = PolynomialModel.load(tmp_path / "m.json").theta
    from isodus import ScoreMatching

    np.testing.assert_allclose(theta, ScoreMatching().fit(frame).model_.theta, rtol=1e-8, atol=1e-10)
    terms = pd.read_csv(tmp_path / "m.terms.csv")
    assert terms["term"].tolist() == [model.term_name(term) for term in model.basis.terms]


WRITERS = {
    ".parquet": lambda f, p: f.to_parquet(p),
    ".feather": lambda f, p: f.to_feather(p),
    ".npy": lambda f, p: np.save(p, f.to_numpy()),
    ".npz": lambda f, p: np.savez(p, **{name: f[name] for name in f}),
}


def test_files_of_other_kinds_and_several_of_them(tmp_path, frame):
    for ending, write in WRITERS.items():
        paths = [tmp_path / f"{k}{ending}" for k in range(2)]
        for path, part in zip(paths, (frame[:700], frame[700:].reset_index(drop=True)), strict=True):
            write(part, path)
        done = isodus("fit", *paths, "--degree", 2, "--json")
        assert done.returncode == 0, done.stderr.decode()
        found = json.loads(done.stdout)
        assert found["n_samples"] == N
        assert found["columns"] == (["x0", "x1"] if ending == ".npy" else ["größe", "load"])
        assert len(found["terms"]) == 5
        assert done.stdout.count(b"\n") == 1


def test_standard_input_columns_by_pattern_weights_and_level(frame):
    table = frame.rename(columns={"größe": "gene_a", "load": "gene_b"}).assign(times=2, note="x")
    options = ["--columns", "gene_*", "--weights", "times", "--level", 0.9, "--json", "--degree", 2]
    done = isodus("fit", "-", *options, stdin=as_csv(table).encode())
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["columns"] == ["gene_a", "gene_b"]
    assert found["n_samples"] == 2 * N
    expected = ISODUS(2).fit(table[["gene_a", "gene_b"]], sample_weight=table["times"]).model_.to_frame(level=0.9)
    np.testing.assert_allclose([row["ci_low"] for row in found["terms"]], expected["ci_low"], rtol=1e-6)


def test_a_file_that_is_given_twice_is_refused(tmp_path, frame):
    path, link = tmp_path / "data.csv", tmp_path / "link.csv"
    path.write_text(as_csv(frame))
    link.symlink_to(path)
    for twice in ([path, path], [path, tmp_path / "." / ".." / tmp_path.name / "data.csv"], [path, link], ["-", "-"]):
        named = "standard input" if twice[0] == "-" else str(twice[1])
        refused(isodus("fit", *twice, stdin=b"a,b\n1,2\n"), f"{named} is given twice", "its rows would count twice")


def test_integers_without_a_header_are_told(tmp_path):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.poisson(50, (60, 2)) * [1, 2])
    path, said = tmp_path / "data.csv", "is taken for names: if it is a sample, as all others, add a header line"
    headless = {"47,-90": True, "0,1": False, "1,2": False, "a,7": False, "7,8": True}
    for header, told in headless.items():
        path.write_text(header + "\n" + rows.to_csv(index=False, header=False))
        done = isodus("fit", path, "--degree", 2, "--json")
        assert done.returncode == 0, done.stderr.decode()
        lines_said = [line for line in json.loads(done.stdout)["said"] if said in line]
        assert lines_said == ([f"{path}: the first line ({header.replace(',', ', ')}) {said}"] if told else [])
    path.write_text("7,8\n" + (rows + 0.5).to_csv(index=False, header=False))  # of fractions they are names
    assert said not in isodus("fit", path, "--degree", 2, "--json").stdout.decode()
    path.write_text("1,0,1\n0,1,1\n")
    refused(isodus("fit", path), "begins with numbers (1, 0, 1, …), not with names: add a header line")


def refused(done, *words):
    assert done.returncode == 1
    (line,) = lines(done.stderr)
    assert line.startswith("error: ")
    for word in words:
        assert word in line, line
    assert b"Traceback" not in done.stderr


def test_files_that_cannot_be_read_are_one_clear_line(tmp_path):
    cases = {
        "empty.csv": (b"", "is empty"),
        "header.csv": (b"a,b\n", "has a header and no rows"),
        "twice.csv": (b"a,b,a\n1,2,3\n", "more than one column", "'a'"),
        "wide.csv": (b",".join(b"c%d" % k for k in range(20_001)) + b"\n" + b",".join([b"1"] * 20_001) + b"\n",
                     "has 20,001 columns and 1 rows", "on its side"),
        "broken.parquet": (b"PAR1 not really", "cannot be read"),
        "broken.npy": (b"\x93NUMPY\x01", "cannot be read"),
        "three.npy": (None, "is no table"),
    }  # fmt: skip
    for name, (content, *words) in cases.items():
        path = tmp_path / name
        if content is None:
            np.save(path, np.zeros((2, 2, 2)))
        else:
            path.write_bytes(content)
        refused(isodus("fit", path), *words)


def test_a_folder_that_cannot_be_written_into(tmp_path, frame):
    (tmp_path / "data.csv").write_text(as_csv(frame))
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    if os.geteuid() == 0:  # to whom no mode is a lock
        folder = Path("/proc")
    refused(isodus("fit", tmp_path / "data.csv", "-o", folder / "m.json"), "cannot be written into")


def test_a_pipe_that_is_closed_early(tmp_path, frame):
    ISODUS(2).fit(frame).model_.save(tmp_path / "m.json")
    command = f"'{sys.executable}' -m isodus sample '{tmp_path}/m.json' -n 200000 | head -n 3"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=300)
    assert len(lines(done.stdout)) == 3
    assert b"Traceback" not in done.stderr
    assert b"error" not in done.stderr.lower()


def test_a_run_that_is_killed_leaves_the_old_file(tmp_path):
    X = np.asarray(double_wells(8).sample(60_000, rng=0))
    np.save(tmp_path / "data.npy", X)
    model = tmp_path / "m.json"
    model.write_text("the old model")
    arguments = ["fit", tmp_path / "data.npy", "--l1", "cv", "-o", model]
    run = start("-m", "isodus", *arguments, stdout=subprocess.PIPE)
    assert run.stdout.readline().startswith(b"read 60,000 rows")
    time.sleep(1.0)
    run.kill()
    run.wait()
    assert model.read_text() == "the old model"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.npy", "m.json"]


def test_an_interrupt_says_where_it_was(tmp_path):
    np.save(tmp_path / "data.npy", np.asarray(double_wells(8).sample(30_000, rng=0)))
    arguments = ["fit", tmp_path / "data.npy", "--l1", "cv"]
    run = start("-m", "isodus", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.readline()
    time.sleep(2.0)
    _, errors = interrupt(run)
    assert run.returncode == 130
    assert b"interrupted" in errors
    assert b"Traceback" not in errors


def test_missing_values(tmp_path, frame):
    holes = frame.copy()
    rng = np.random.default_rng(0)
    holes.loc[rng.random(N) < 0.1, "load"] = np.nan
    holes.loc[rng.random(N) < 0.05, "größe"] = np.nan
    path = tmp_path / "holes.csv"
    path.write_text(as_csv(holes))
    count = holes.isna().sum()
    refused(isodus("fit", path), f"größe ({count['größe']})", f"load ({count['load']})", "--missing drop")
    left = len(holes.dropna())
    done = isodus("fit", path, "--missing", "drop", "--degree", 2, "--json")
    assert json.loads(done.stdout)["n_samples"] == left
    done = isodus("fit", path, "--missing", "impute", "--degree", 2, "--json")
    found = json.loads(done.stdout)
    assert found["n_samples"] == N
    assert any(f"{count.sum()} missing cells filled in by the model" in line for line in found["said"])
    theta = {row["term"]: row["theta"] for row in found["terms"]}
    truth = ISODUS(2).fit(frame).model_.to_frame().set_index("term")
    for term, row in truth.iterrows():
        assert abs(theta[term] - row["theta"]) < 4 * row["stderr"]


def test_options_that_suit_the_size_of_the_data(tmp_path):
    truth = regular_gaussian(8, rng=0)
    path = tmp_path / "wide.csv"
    names = [f"v{k}" for k in range(8)]
    path.write_text(as_csv(pd.DataFrame(np.asarray(truth.sample(680, rng=1)), columns=names)))
    done = isodus("fit", path, "--json")
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["settings"]["l1"] == "auto"
    assert any("46 terms a variable up to degree 4 are too many for 680 rows" in line for line in found["said"])
    edges = {tuple(row["variables"].split("*")) for row in found["interactions"]}
    assert edges == {tuple(name.replace("x", "v") for name in edge) for edge in truth.hyperedges()}


def test_transforms_by_column(tmp_path, frame):
    table = pd.DataFrame({"a": np.exp(frame["größe"]), "b": frame["load"], "c": np.arange(N) % 977.0})
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text(as_csv(table))
    options = ["--degree", 2, "--transform", "log10:a", "--transform", "rank:c", "-o", model]
    done = isodus("fit", path, *options)
    assert done.returncode == 0, done.stderr.decode()
    learned = PolynomialModel.load(model)
    assert learned.settings["transform"] == {"a": "log10", "c": "rank"}
    refused(isodus("sample", model, "-n", 5), "cannot be undone")
    assert isodus("sample", model, "-n", 5, "--transformed").returncode == 0
    refused(isodus("fit", path, "--transform", "sqrt"), "one of log10, asinh, rank is wanted")
    refused(isodus("fit", path, "--transform", "log10:q"), "no column 'q'")
    refused(isodus("fit", path, "--transform", "asinh", "--transform", "log10:a"), "gives a twice")


def test_compare(tmp_path):
    X = pd.DataFrame(np.asarray(double_wells(2).sample(3000, rng=0)), columns=["a", "b"])
    for degree in (2, 4):
        ISODUS(degree).fit(X[:2000]).model_.save(tmp_path / f"{degree}.json")
    X[2000:].to_csv(tmp_path / "new.csv", index=False)
    models = [tmp_path / "2.json", tmp_path / "4.json"]
    done = isodus("compare", *models, "--data", tmp_path / "new.csv", "--json")
    found = json.loads(done.stdout)
    assert found["recommended"] == str(models[1])
    text = isodus("compare", *models, "--data", tmp_path / "new.csv").stdout.decode()
    assert found["verdict"] in text
    refused(isodus("compare", models[0], tmp_path / "no.json", "--data", tmp_path / "new.csv"), "there is no file")
    refused(isodus("compare", models[0], models[0], "--data", tmp_path / "new.csv"), "given twice")


def test_every_command_speaks_json(tmp_path, frame):
    (tmp_path / "data.csv").write_text(as_csv(frame))
    run = lambda *arguments: isodus(*arguments, "--json", cwd=tmp_path)

    def answer(*arguments):
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
        return json.loads(done.stdout)

    assert answer("fit", "data.csv", "--degree", 2, "-o", "m.json")["written"] == ["m.json", "m.terms.csv"]
    drawn = answer("sample", "m.json", "-n", 5, "--seed", 1)
    assert list(drawn["samples"]) == ["größe", "load"]
    assert [len(values) for values in drawn["samples"].values()] == [5, 5]
    kept = answer("sample", "m.json", "-n", 5, "--seed", 1, "-o", "new.csv")
    assert kept["written"] == "new.csv"
    assert "samples" not in kept
    assert pd.read_csv(tmp_path / "new.csv", float_precision="round_trip").to_dict("list") == drawn["samples"]
    (tmp_path / "holes.csv").write_text("größe,load\n0.5,\n")
    filled = answer("sample", "m.json", "--given", "holes.csv", "--seed", 1)
    assert filled["samples"]["größe"] == ["0.5"]
    assert float(filled["samples"]["load"][0]) < 10
    assert answer("plot", "m.json", "--kind", "graph")["written"] == "m.graph.png"
    assert (tmp_path / "m.graph.png").stat().st_size > 1000
    assert answer("compare", "m.json", "--data", "data.csv")["recommended"] == "m.json"
    studies = answer("paper")["studies"]
    assert {row["study"] for row in studies} >= {"error-1d", "n-star"}
    assert {row["state"] for row in studies} == {""}
    demo = answer("demo", "-n", 2000)
    assert sum(term["true"] != 0 for term in demo["terms"]) == 24
    assert demo["mean_error"] > 0
    assert run("sample", "none.json").returncode == 1


def test_what_is_filled_in_is_written_as_the_rest(tmp_path, frame):
    ISODUS(2).fit(frame).model_.save(tmp_path / "m.json")
    holes = frame.head(50).copy()
    holes.iloc[[3, 7], 1] = np.nan
    holes.to_csv(tmp_path / "deutsch.csv", sep=";", decimal=",", index=False)
    done = isodus("sample", "m.json", "--given", "deutsch.csv", "--seed", 0, "-o", "filled.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    filled = pd.read_csv(tmp_path / "filled.csv", sep=";", decimal=",")
    assert filled.dtypes.eq(float).all()
    assert filled.notna().all(axis=None)
    pd.testing.assert_frame_equal(filled[holes.notna()], holes)


def test_draws_that_are_unlike_the_samples_are_told(tmp_path):
    table = load_breast_cancer(as_frame=True).data.iloc[:, [0, 1, 4, 5, 6, 8]].sample(398, random_state=0)
    (tmp_path / "cells.csv").write_text(as_csv(table))
    words = json.loads(isodus("fit", tmp_path / "cells.csv", "--l1", "cv", "--json").stdout)["warnings"]
    (told,) = [one for one in words if one.startswith("draws of the model are unlike the samples")]
    assert "mean concavity" in told
    assert "do not sample from it" in told
    (tmp_path / "pair.csv").write_text(
        as_csv(pd.DataFrame(np.asarray(paper_pair(1).sample(3000, rng=0)), columns=["a", "b"]))
    )
    assert json.loads(isodus("fit", tmp_path / "pair.csv", "--json").stdout)["warnings"] == []


def test_a_model_to_sample_from(tmp_path):
    frame = pd.DataFrame(np.asarray(double_wells(2).sample(500, rng=0)), columns=["a", "b"])
    (tmp_path / "wells.csv").write_text(as_csv(frame.assign(n=1)))
    options = ("--columns", "a,b", "--degree", 4, "--match-moments")
    done = isodus("fit", "wells.csv", *options, "-o", "m.json", "--report", "m.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = PolynomialModel.load(tmp_path / "m.json")
    assert model.settings["estimator"] == "match_moments"
    assert model.basis.degree == 6
    assert "by match_moments" in (tmp_path / "m.html").read_text(encoding="utf-8")
    np.testing.assert_allclose(np.asarray(model.sample(20_000, rng=0)).std(axis=0), frame.std(), rtol=0.05)
    done = isodus("fit", "wells.csv", *options, "--weights", "n", cwd=tmp_path)
    assert done.returncode == 1
    assert b"--match-moments does not know of --weights" in done.stderr


def test_pictures_and_reports_that_were_not_named_replace_nothing(tmp_path, frame):
    ISODUS(2).fit(frame).model_.save(tmp_path / "m.json")
    for command, written in (("plot", "m.graph.png"), ("report", "m.html")):
        assert isodus(command, "m.json", cwd=tmp_path).returncode == 0
        before = (tmp_path / written).stat().st_mtime_ns
        done = isodus(command, "m.json", cwd=tmp_path)
        assert done.returncode == 1
        assert f"{written} is there already" in done.stderr.decode()
        assert (tmp_path / written).stat().st_mtime_ns == before
        assert isodus(command, "m.json", "-o", written, cwd=tmp_path).returncode == 0


def test_on_a_terminal_the_first_samples_are_shown(tmp_path, frame, monkeypatch, capsys):
    ISODUS(2).fit(frame).model_.save(tmp_path / "m.json")
    sample(tmp_path / "m.json")
    assert len(capsys.readouterr().out.splitlines()) == 1 + 1000
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    sample(tmp_path / "m.json")
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1 + 10
    assert "the first 10 of 1,000 rows; -o samples.csv writes all" in shown.err
    sample(tmp_path / "m.json", n=10)
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1 + 10
    assert "the first" not in shown.err


def test_a_gaussian_is_not_rejected_by_too_few_rows(tmp_path):
    """The joint test of 54 terms on 300 rows rejects Gaussian data nearly always, so that it is not relied on."""
    data = tmp_path / "d.csv"
    X = np.random.default_rng(3).standard_normal((300, 4))
    pd.DataFrame(X, columns=list("abcd")).to_csv(data, index=False)
    done = isodus("fit", data, "--degree", "4", "-o", tmp_path / "m.json")
    assert b"a Gaussian? not tested reliably: with fewer than 50 samples a term p is too small: of " in done.stdout
