from pathlib import Path

import isodus


def test_isodus_is_imported_from_this_tree():
    assert Path(isodus.__file__).resolve() == Path(__file__).resolve().parents[1] / "src" / "isodus" / "__init__.py"
