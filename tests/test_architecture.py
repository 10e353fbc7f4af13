"""Dependencies point downwards only, and importing isodus stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import isodus

ROOT = Path(isodus.__file__).parent

# from the bottom up; a module imports from lower layers, not from its own
LAYERS = [
    {"_version", "arrays", "checks", "csv_dialect", "factors", "io", "progress", "significance", "slopes", "supports"}
    | {"wording"},
    {"dependence", "files", "functions", "sample_complexity", "tables", "univariate"},
    {"spaces"},
    {"references", "ties"},
    {"basis"},
    {"conditional", "description", "energy", "lattice", "samples", "transforms"},
    {"blocks", "formula", "losses", "plotting", "solvers", "sampling", "positivity"},
    {"objective", "consensus", "regression", "diagnostics", "model_file", "penalties", "penalty_path", "streams"}
    | {"rounding"},
    {"cluster", "density", "elsewhere", "inference", "refinement", "enforcement", "nodewise"},
    {"debiasing", "pilots", "strength", "path", "validation"},
    {"criteria"},
    {"optimum", "model", "selection", "shortlist"},
    {
        "datasets",
        "goodness",
        "likelihood",
        "metrics",
        "planning",
        "prediction",
        "resampling",
        "suitability",
    },
    {"preparation"},
    {"fitting", "shared"},
    {"estimators"},
    {"comparison", "groups"},
    {"report"},
    {"__init__"},
    {"paper"},
    {"cli"},
    {"__main__"},
]


def level(module):
    found = [k for k, layer in enumerate(LAYERS) if module in layer]
    assert found, f"{module} has no place in the architecture"
    return found[0]


def top(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[0]


def imports(path):
    """Modules of isodus that a file imports, by the first name below isodus."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - (node.level - 1)]
            target = (*base, *(node.module or "").split(".")) if node.module else base
            if target:
                yield target[0]
            else:
                names = [alias.name for alias in node.names]
                yield from (n if (ROOT / f"{n}.py").exists() or (ROOT / n).is_dir() else "__init__" for n in names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "isodus":
            yield [*(node.module or "").split("."), "__init__"][1]
        elif isinstance(node, ast.Import):
            assert not any(alias.name.split(".")[0] == "isodus" for alias in node.names), path


def test_dependencies_point_downwards():
    for path in ROOT.rglob("*.py"):
        for target in imports(path):
            if target != top(path):
                assert level(target) < level(top(path)), f"{path.relative_to(ROOT)} imports {target}"


def test_losses_solvers_and_samples_do_not_know_one_another():
    apart = {"losses", "solvers", "samples"}
    for path in ROOT.rglob("*.py"):
        if top(path) in apart:
            assert not (set(imports(path)) & (apart - {top(path)})), path


def test_importing_isodus_pulls_in_nothing_heavy():
    code = (
        "import sys, isodus; print([m for m in ('torch', 'dask', 'matplotlib', 'jax', 'networkx') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_what_benchmarks_and_pages_import_is_there():
    files = [file for folder in ("benchmarks", "docs") for file in (ROOT.parents[1] / folder).rglob("*.py")]
    assert len(files) > 20
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "isodus":
                exec(compile(ast.Module([node], []), str(path), "exec"), {})


def test_files_are_one_job_each():
    for path in ROOT.rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, path
