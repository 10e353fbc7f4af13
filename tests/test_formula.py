"""Models as mathematics: text, HTML, LaTeX, tables."""

import re
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from isodus import ISODUS, MonomialBasis, PolynomialModel
from isodus.datasets import paper_pair

SMALL = PolynomialModel.from_dict({(0, 0): 2.0, (0, 1): -0.5, (1, 1): 1.0, (0, 0, 0, 1): 1.234e-7}, names=["x0", "b<c"])


@pytest.fixture(scope="module")
def learned():
    X = pd.DataFrame(np.asarray(paper_pair(1).sample(5000, rng=0)) * 3 + [10, -5], columns=["raf", "p38 & co"])
    return ISODUS(4).fit(X).model_


def value(formula, **variables):
    """The text of a formula as a number."""
    raised = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    text = re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda found: f"**({found[0].translate(raised)})", formula)
    return eval(text.replace("−", "-").replace("×", "*").replace("·", "*"), variables)


def shown(model, width=100):
    console = Console(file=StringIO(), width=width)
    console.print(model)
    return console.file.getvalue()


def test_as_text():
    assert SMALL.formula() == "2·x0² − 0.5·x0·b<c + 1·b<c² + 1.23×10⁻⁷·x0³·b<c"


def test_as_html_names_are_escaped():
    assert SMALL.formula("html").startswith("2&#8239;<i>x0</i><sup>2</sup> − 0.5&#8239;<i>x0</i>·<i>b&lt;c</i>")
    assert "10<sup>−7</sup>" in SMALL.formula("html")


def test_as_latex():
    assert SMALL.formula("latex", n_terms=3) == (
        r"2\,x_{0}^{2} - 0.5\,x_{0}\,\mathrm{b<c} + 1\,\mathrm{b<c}^{2} + \text{1 more terms}"
    )
    odd = PolynomialModel.from_dict({(0, 0): 1.0, (1, 1): 1.0}, names=["a_b", "50 %"])
    assert odd.formula("latex") == r"1\,\mathrm{a\_b}^{2} + 1\,\mathrm{50\ \%}^{2}"


def test_a_formula_is_the_energy_also_where_the_data_are_far_from_zero():
    basis = MonomialBasis(3, 4)
    theta = np.where(basis.degrees % 2 == 0, np.linspace(-0.5, 1.0, len(basis)), 0.0)
    moved = PolynomialModel(basis, theta, [4.0, -2.0, 7.0], [2.0, 0.5, 1.0], names=["a", "b", "c"])
    x = [4.5, -2.25, 6.0]
    text = moved.formula()
    exact = sum(theta * np.prod([x[v] for v in term]) for term, theta in moved.to_dict().items())
    size = sum(abs(theta * np.prod([x[v] for v in term])) for term, theta in moved.to_dict().items())
    assert abs(value(text, **dict(zip("abc", x, strict=True))) - exact) < 5e-3 * size  # three digits of each
    assert text.count("·") > moved.formula(units="standardized").count("·")


def test_the_first_term_may_be_negative_and_all_may_be_zero():
    model = PolynomialModel.from_dict({(0,): -1.0, (0, 0): 2.0}, names=["x"])
    assert model.formula() == "−1·x + 2·x²"
    assert PolynomialModel.from_dict({(0, 0): 0.0}).formula() == "0"
    assert "0" in shown(PolynomialModel.from_dict({(0, 0): 0.0}))


def test_styles_and_units_are_checked():
    with pytest.raises(ValueError, match="style must be one of 'text', 'html', 'latex', not 'tex'"):
        SMALL.formula("tex")
    with pytest.raises(ValueError, match="units must be"):
        SMALL.formula(units="metres")


class Cells(HTMLParser):
    """Texts of the rows of a table; tags must close in order."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_the_table_of_a_notebook_has_what_the_frame_has(learned):
    head, *rows = Cells(learned._repr_html_()).rows
    assert head == ["term", "θ", "standard error", "95 % interval", "q", "θ, standardised"]
    frame = learned.to_frame()
    order = np.argsort(-np.abs(learned.theta))[:12]
    assert len(rows) == 12
    for row, k in zip(rows, order, strict=True):
        number = float(re.sub(r"×10(.*)", r"e\1", row[1]).replace("−", "-"))
        assert number == pytest.approx(frame["theta"][k], rel=5e-3)
    assert "p38 &amp; co" in learned._repr_html_()
    assert "learned from 5,000 samples" in learned._repr_html_()
    assert f"the 12 strongest of {len(frame)} terms" in learned._repr_html_()


def test_a_terminal_shows_the_same(learned):
    text = shown(learned)
    for heading in ("term", "standard error", "95 % interval", "θ, standardised"):
        assert heading in text
    assert "density ∝ exp(−E), E = " in text
    plain = shown(SMALL)
    assert "standard error" not in plain
    assert "standardised" not in plain


def test_notes_and_moved_parameters_are_told(learned):
    moved = PolynomialModel(
        learned.basis,
        learned.theta * 1.1,
        learned.location,
        learned.scale,
        learned.names,
        covariance=learned.covariance,
        moved_from=learned.theta,
        settings={"notes": ["made integrable, <b>far</b>"]},
    )
    for text in (moved._repr_html_(), shown(moved)):
        assert "intervals and q are of what was estimated" in text
    assert "note: made integrable, &lt;b&gt;far&lt;/b&gt;" in moved._repr_html_()
