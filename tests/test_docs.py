"""Every code block of the pages is run, and every link between them leads somewhere."""

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import matplotlib
import pytest
from typer.testing import CliRunner

from isodus import ISODUS
from isodus.cli import app
from isodus.datasets import double_wells

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "RELEASING.md", *sorted(DOCS.glob("*.md"))]
}
FENCE = re.compile(r"^(?P<marks>`{3,}|:{3,})(?P<language>[^\n`]*)\n(?P<code>.*?)^(?P=marks)\s*$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
NOT_RUN = "# not run:"  # and why, as the first line of a block: a GPU, a cluster


def blocks(path):
    """(language, code) of every fenced block of a page, in order."""
    return [(found["language"].strip(), found["code"]) for found in FENCE.finditer(path.read_text(encoding="utf-8"))]


def with_code(*languages):
    return [name for name, path in PAGES.items() if any(language in languages for language, _ in blocks(path))]


@pytest.mark.parametrize("name", with_code("python", "sh"))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_code_of_a_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    space = {"__name__": f"page {name}"}
    for k, (language, code) in enumerate(blocks(PAGES[name])):
        if language == "python":
            compiled = compile(code, f"{name}, block {k}", "exec")
            if not code.startswith(NOT_RUN):
                exec(compiled, space)
        elif language == "sh":
            for line in filter(None, code.splitlines()):
                run(line)


def run(line):
    """A line of a shell: of isodus it is run, of make and Python its targets and files must exist."""
    word, *rest = shlex.split(line, comments=True)
    if word == "isodus":
        result = CliRunner().invoke(app, rest)
        assert result.exit_code == 0, f"{line}\n{result.output}"
    elif word == "make":
        for target in (word for word in rest if "=" not in word):
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M), line
    elif word == "python" and rest[0] != "-m":
        assert (ROOT / rest[0]).exists(), line
    else:
        assert word in ("git", "pip", "python"), line


def test_blocks_that_are_not_run_are_few_and_say_why():
    skipped = [code.splitlines()[0] for path in PAGES.values() for _, code in blocks(path) if code.startswith(NOT_RUN)]
    assert len(skipped) <= 2
    assert all(len(first) > len(NOT_RUN) + 3 for first in skipped)


@cache
def anchors(path):
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+?)\s*$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def source(path):
    """What a page that the site makes is made of; any other path as it is."""
    if path.parent.name == "reference":
        return ROOT / "src" / Path(*path.stem.split(".")[:1])
    return path


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page = PAGES[name]
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for found in LINK.finditer(text):
        target, _, anchor = found["target"].partition("#")
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path = source((page.parent / target).resolve()) if target else page
        assert path.exists(), f"{name}: {found['target']}"
        if anchor:
            assert anchor in anchors(path), f"{name}: no heading {anchor} in {path.name}"


def test_pages_are_in_the_table_of_contents():
    listed = set(re.findall(r"^(?:.*<)?([\w/]+)>?$", "\n".join(toctrees()), re.M))
    missing = {path.stem for path in DOCS.glob("*.md")} - listed - {"index"}
    assert not missing


def toctrees():
    return [code for path in DOCS.glob("*.md") for language, code in blocks(path) if language == "{toctree}"]


def written(node):
    """A string of the source; what is put into it is … there."""
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_messages_that_are_explained_exist():
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src").rglob("*.py"))
    messages = {written(node) for tree in trees for node in ast.walk(tree)}
    headings = re.findall(r"^### (.+)$", (DOCS / "faq.md").read_text(encoding="utf-8"), re.M)
    assert len(headings) > 20
    unknown = [heading for heading in headings if not any(heading in message for message in messages)]
    assert not unknown


def test_what_the_readme_says_of_its_example():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = ISODUS(degree=4).fit(double_wells(4).sample(4000, rng=0)).model_.interactions().set_index("variables")
    found = table[table["q_value"] < 0.05]
    true = {"x0*x1", "x1*x2", "x2*x3"}
    assert true <= set(found.index)
    assert found.loc[sorted(true), "q_value"].max() < 1e-90
    (false,) = set(found.index) - true
    assert f"`{false}` with q = {found.loc[false, 'q_value']:.2f}" in text


def test_gallery_is_complete():
    gallery = {path.stem for path in (DOCS / "gallery").glob("plot_*.py")}
    assert {stem.split("_", 2)[2] for stem in gallery} == {
        "pixels",
        "proteins",
        "lattice",
        "double_wells",
        "frame_to_networkx",
    }
