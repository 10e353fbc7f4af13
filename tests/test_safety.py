"""What SECURITY.md promises: files are data and never code, and nothing is fetched or sent."""

import ast
import socket
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import isodus
from isodus import ISODUS, PolynomialModel
from isodus.cli import app

ROOT = Path(isodus.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))

# what runs code that comes from data, or starts other programs
CODE = {"eval", "exec", "compile", "__import__", "read_pickle", "to_pickle", "system", "popen", "load_module"}
MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "yaml", "code", "runpy", "subprocess"}
# what reaches other machines
MODULES |= {"socket", "ssl", "http", "urllib", "urllib3", "requests", "httpx", "aiohttp", "ftplib", "smtplib", "xmlrpc"}


def name_of(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def imported(node):
    """The modules of an import, and what is taken from them, that are not of the package."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [] if node.level else [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]


def is_safe(call):
    name = name_of(call.func)
    owner = name_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if name in CODE:
        return (owner, name) in (("re", "compile"), ("platform", "system"))
    if name == "load" and owner in ("np", "numpy", "joblib"):
        return any(one.arg == "allow_pickle" and one.value.value is False for one in call.keywords)
    return True


def test_no_file_of_the_package_runs_data_or_reaches_out():
    assert len(FILES) > 100
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = imported(node)
                assert not MODULES & {name.split(".")[0] for name in names}, where
                assert not {"joblib.load", "joblib.dump"} & set(names), where
            if isinstance(node, ast.Call):
                assert is_safe(node), where


def test_what_is_unsafe_is_found():
    for code in ("eval(x)", "pd.read_pickle(f)", "np.load(f)", "np.load(f, allow_pickle=True)", "os.system(x)"):
        (call,) = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
        assert not is_safe(call), code
    assert imported(ast.parse("from urllib import request").body[0])[0] in MODULES


@pytest.fixture
def offline(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError(f"the network was asked for: {arguments[1:]}")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)


def test_nothing_is_fetched_or_sent(offline, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="the network was asked for"):
        socket.create_connection(("localhost", 1))
    X = np.random.default_rng(0).standard_normal((300, 3)) @ [[1, 0.5, 0], [0, 1, 0.4], [0, 0, 1]]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    ISODUS(2).fit(frame).model_.save("m.json")
    assert len(PolynomialModel.load("m.json").sample(10, rng=0)) == 10
    frame.to_csv("x.csv", index=False)
    commands = [
        ["fit", "x.csv", "--degree", "2", "-o", "n.json", "--report", "r.html"],
        ["sample", "m.json", "-n", "5"],
        ["plot", "m.json", "-o", "p.svg"],
        ["compare", "m.json", "n.json", "--data", "x.csv"],
        ["report", "m.json", "--data", "x.csv", "-o", "s.html"],
        ["demo"],
    ]
    for command in commands:
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, (command, done.output, done.exception)
    for page in ("r.html", "s.html"):  # nor by a browser that shows a report
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert not [word for word in ('src="http', 'href="http', "url(http", "@import") if word in text]
