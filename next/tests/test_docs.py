"""Every block of code in the pages runs and shows what it says, and the picture of a fit is that of the source."""

import doctest
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from test_architecture import ROOMS

from isodus.fit.objective import Objective

NEXT = Path(__file__).parents[1]
DOCS = NEXT / "docs"
PAGES = [NEXT / "README.md", *sorted(DOCS.glob("*.md"))]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
LANGUAGES = ("python", "sh", "text")


def blocks(page):
    """The languages of a page's blocks, and the page with all but its Python blanked: lines keep their numbers."""
    languages, code, language = [], [], None
    for line in page.read_text("utf-8").splitlines():
        fence = re.fullmatch(r"\s*```(.*)", line)
        if fence:
            languages += [] if language is not None else [fence[1]]
            language = fence[1] if language is None else None
        code.append(line if language == "python" and not fence else "")
    assert language is None, f"{page.name} has a block that does not end"
    return languages, "\n".join(code) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs_and_shows_its_output(page, tmp_path, monkeypatch):
    """As one session in a module of its own, so that functions of a page can be pickled."""
    languages, code = blocks(page)
    assert set(languages) <= set(LANGUAGES)
    assert all(line.startswith(">>> ") for line in re.findall(r"(?:\A|\n\n)(?!\n)(.+)", code))
    module = ModuleType(f"page_{page.stem.lower()}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(code, vars(module), page.name, str(page), 0)
    test.globs = vars(module)  # itself, and no copy
    said = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    assert result.failed == 0, "".join(said)
    assert result.attempted or "python" not in languages


def test_links_lead_to_files():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
            assert target.startswith("https://") or (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.fixture(scope="module")
def script():
    """The names in docs/trace.py."""
    return runpy.run_path(str(DOCS / "trace.py"))


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """What docs/trace.py prints and draws now; in a process of its own, as caches hide calls."""
    picture = tmp_path_factory.mktemp("trace") / "trace.svg"
    command = [sys.executable, "-W", "error", str(DOCS / "trace.py"), str(picture)]
    environment = os.environ | {"PYTHONPATH": str(NEXT / "src"), "PYTHONIOENCODING": "utf-8"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout, picture.read_text("utf-8")


def test_nothing_calls_back_but_what_was_given(script, traced):
    """Directly, a fit calls only its own room and rooms above it."""
    assert list(script["ROOMS"]) == [room for room in ROOMS if room in script["ROOMS"]]
    back = [line for line in traced[0].splitlines() if line.startswith("back:")]
    assert back
    assert all(line.endswith(", given") for line in back), back


def test_a_direct_call_back_would_be_seen(script):
    Call = script["Call"]
    assert Call("axes/base", "fit/objective", False).back
    assert not Call("fit/objective", "axes/base", False).back
    assert not Call("fit/learn", "fit/newton", False).back


def test_the_picture_is_that_of_the_source(traced):
    drawn = (DOCS / "trace.svg").read_text("utf-8")
    assert drawn == traced[1], "A fit takes other ways than docs/trace.svg shows. Run docs/trace.py."


def test_the_page_names_the_files_of_the_central_path(script, traced):
    page = (DOCS / "index.md").read_text("utf-8")
    files = re.findall(r"^ *\d+ (.) ([\w/]+\.py)$", traced[0], re.MULTILINE)
    central = {file for star, file in files if star == "*"}
    assert central == {f"{file}.py" for file in script["CENTRAL"]}
    table = page[page.index("## The central path") : page.index("## What happens later")]
    assert set(re.findall(r"^\| `([\w/]+\.py)` \|", table, re.MULTILINE)) == central
    assert f"- The fit enters {len(files)} files." in page
    assert f"- {len(central)} of them are the central path" in page
    assert f"- {len(files) - len(central)} are leaves" in page


def test_the_page_names_what_is_there():
    """Methods of the objective by their names, and files by their paths."""
    page = (DOCS / "index.md").read_text("utf-8")
    methods = re.findall(r"`Objective\.(\w+)`", page)
    assert methods
    assert [name for name in methods if not hasattr(Objective, name)] == []
    named = re.findall(r"`((?:_core|axes|terms|data|losses|fit|sampling|model|estimators)/\w+\.py)`", page)
    assert [name for name in named if not (DOCS.parent / "src" / "isodus" / name).exists()] == []
    assert len(named) > 30
