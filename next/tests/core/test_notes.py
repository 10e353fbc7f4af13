import json
import warnings

import pytest

from isodus._core.notes import IsodusWarning, Note, announce

NOTE = Note("held out", "warning", ("a", "b"), {"gap": 0.5}, "Held out, this model scores badly. Use a ridge.")


def test_a_note_survives_a_file():
    assert Note.from_dict(json.loads(json.dumps(NOTE.to_dict()))) == NOTE
    assert hash(NOTE) == hash(Note.from_dict(NOTE.to_dict()))


@pytest.mark.parametrize(
    "broken",
    [{}, {"kind": "x"}, NOTE.to_dict() | {"severity": "bad"}, NOTE.to_dict() | {"numbers": 3}, [], None, "text"],
)
def test_what_is_not_a_note(broken):
    with pytest.raises(ValueError, match="note|severity"):
        Note.from_dict(broken)


def test_only_warnings_are_announced_and_they_point_at_the_caller():
    with pytest.warns(IsodusWarning, match="scores badly") as record:
        announce(NOTE)
    assert record[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        announce(Note("pile", "info", (), {}, "A fact."))
