from typer.testing import CliRunner

import isodus
from isodus.cli import app


def test_demo_prints_true_and_learned_parameters():
    result = CliRunner().invoke(app, ["demo", "-n", "20000"])
    assert result.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines() if "│" in line]
    cells = [row[k : k + 3] for row in rows for k in (0, 3)]
    assert len(cells) == 24
    true, learned = ([float(cell[k]) for cell in cells] for k in (1, 2))
    assert sum(abs(t - l) for t, l in zip(true, learned, strict=True)) / 24 < 0.2
    assert ["x0^4", "2.00"] in [cell[:2] for cell in cells]
    assert "20,000 samples drawn in" in result.stdout


def test_version():
    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == f"isodus {isodus.__version__}"
