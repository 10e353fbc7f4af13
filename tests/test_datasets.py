import subprocess
import sys

import numpy as np
import pytest

from isodus.datasets import load_sachs

# median, and sum in hundredths, of each column of the published table
PROTEINS = {
    "praf": (53.8, 92632103),
    "pmek": (26.7, 108541426),
    "plcg": (16.5, 40953730),
    "PIP2": (52.8, 112826743),
    "PIP3": (17.8, 20184303),
    "p44/42": (17.2, 19882849),
    "pakts473": (37.2, 60599442),
    "PKA": (449.0, 467191362),
    "PKC": (12.7, 22653082),
    "P38": (30.5, 100801829),
    "pjnk": (18.4, 54701518),
}
CELLS = [853, 902, 911, 723, 810, 799, 848, 913, 707]  # under each condition


def test_sachs_is_the_published_table():
    cells = load_sachs(log10=False, condition=True)
    assert cells.shape == (7466, 12)
    assert list(cells.columns) == [*PROTEINS, "condition"]
    assert cells["condition"].value_counts(sort=False).sort_index().to_dict() == dict(enumerate(CELLS, 1))
    for name, (median, total) in PROTEINS.items():
        assert cells[name].median() == median
        assert np.rint(100 * cells[name]).sum() == total
    assert cells.iloc[-1].tolist() == [30.5, 1.01, 7.3, 173.0, 22.9, 6.61, 13.7, 890.0, 1.0, 1.0, 1.65, 9]


def test_sachs_comes_in_logarithms_by_default():
    cells, raw = load_sachs(), load_sachs(log10=False)
    assert list(cells.columns) == list(raw.columns) == list(PROTEINS)
    assert np.array_equal(cells, np.log10(raw.to_numpy()))
    assert int((raw == 1.0).to_numpy().sum()) == int((cells == 0).to_numpy().sum()) == 1669
    assert "condition" in load_sachs(condition=True)


def test_options_of_sachs_are_named():
    with pytest.raises(TypeError):
        load_sachs(True)


def test_importing_isodus_reads_no_data():
    code = (
        "import sys; opened = []; "
        "sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == 'open' else None); "
        "import isodus.datasets; print(any('sachs' in name for name in opened))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
