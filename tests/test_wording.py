"""Notes that say the same of several variables are one."""

from dataclasses import replace

from isodus.datasets import double_wells
from isodus.fitting import on_floor_note
from isodus.wording import listed, many, once


def test_numbers_and_lists():
    assert (many(1, "pair"), many(1200, "pair")) == ("1 pair", "1,200 pairs")
    assert listed(["a", "b", "c"], 2) == "a, b and 1 more"


def test_lines_are_said_once():
    lines = [
        "no x1^4: held",
        "no x2^4: held",
        "no x3^4: held",
        "mass far",
        "mass far. Do this",
        "no x9: left out",
        "a b",
        "a c d",
    ]
    assert once(lines) == ["no x1^4, x2^4, x3^4: held", "mass far. Do this", "no x9: left out", "a b", "a c d"]
    assert once(["p q r", "p s t"]) == ["p q r", "p s t"]
    assert once(["a b c", "a d c", "a d e"]) == ["a b, d c", "a d e"]
    many_lines = once([f"no v{k}: held" for k in range(40)])
    assert many_lines == ["no " + ", ".join(f"v{k}" for k in range(12)) + " and 28 more: held"]


def test_names_of_several_words_are_put_together_too():
    note = "the data do not support {}: its parameter is held at the least value"
    names = ["wind speed^4", "rain^4", "the depth of snow^4"]
    (line,) = once([note.format(name) for name in names])
    assert line == f"the data do not support {', '.join(names)}: their parameters are held at the least value"
    assert once(["the data do not", "the data do not support"]) == ["the data do not support"]


def test_a_summary_and_a_notebook_have_one_note_of_all_that_is_held():
    notes = [on_floor_note((v,) * 4, ["a", "b", "c d"]) for v in range(3)]
    model = replace(double_wells(3), settings={"notes": notes})
    told = "the data do not support a^4, b^4, c d^4: their parameters are held at the least value"
    for text in (model.summary(), model._repr_html_()):
        assert text.count("held at the least value") == 1
        assert told in text
