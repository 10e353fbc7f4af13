"""Reports: what they say, what they must not do, and what they are made of when something is missing."""

import base64
import json
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from typer.testing import CliRunner

from isodus import ISODUS, PolynomialModel, PseudoLikelihood, write_report
from isodus.cli import app
from isodus.datasets import double_wells, paper_pair, regular_gaussian
from isodus.goodness import goodness_of_fit
from isodus.report.page import embedded

ODD = ["<script>alert(1)</script>", "a\"b'c", "</script><img src=x onerror=alert(2)>", "😀 naïve & co", "=1+1,\n$x$"]
VOID = {"meta", "link", "img", "input", "br", "wbr"}


class Reader(HTMLParser):
    """Elements, attributes and text of a page, and whether every element that is opened is closed."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        self.text.append(text)

    def data(self):
        """What is embedded for scripts."""
        return json.loads(next(text for text in self.text if text.startswith('{"names"')))


def report(tmp_path, model, X=None, **options):
    path = tmp_path / "r.html"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_report(model, path, X, **options)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def wells():
    X = pd.DataFrame(np.asarray(double_wells(3).sample(600, rng=0)), columns=["alpha", "beta", "gamma"])
    return PseudoLikelihood(4).fit(X), X


def test_it_says_what_the_model_and_the_samples_say(tmp_path, wells):
    est, X = wells
    page = report(tmp_path, est, X, said=["seen: a <warning>"])
    read = Reader(page)
    model = est.model_
    text = " ".join(read.text)
    assert "A model of 3 variables with 30 terms up to degree 4, learned from 600 samples by pseudo-likelihood" in text
    assert "Tested on the 600 samples that the model was learned from; the tests allow for that." in text
    assert est.goodness_of_fit(X).verdict[1:] in text
    assert "seen: a <warning>" in read.text
    assert "arXiv:2102.09198" in text
    assert "Besag" in text
    terms = read.data()["terms"]
    frame = model.to_frame()
    names = [model.term_name(tuple(v for v, k in powers for _ in range(k))) for powers in terms["powers"]]
    assert sorted(names) == sorted(frame["term"])
    expected = frame.set_index("term").loc[names]
    for column in ("theta", "stderr", "ci_low", "ci_high", "p_value", "q_value"):
        np.testing.assert_allclose(terms[column], expected[column], rtol=1e-7)
    assert read.tags.count("tr") == 1 + 30 + 1 + 3 + 1 + 10  # terms, residuals, moments
    sets = {tuple(model.names[v] for v in one["v"]): one["strength"] for one in read.data()["graph"]["sets"]}
    assert sets == pytest.approx(model.hyperedges())
    images = [value for tag, name, value in read.attributes if (tag, name) == ("img", "src")]
    assert len(images) == 3 + 3 + 1
    alts = [value for tag, name, value in read.attributes if (tag, name) == ("img", "alt")]
    both = "Density of alpha under the model as a line, and of the model given the other variables, dashed"
    assert f"{both}, over a histogram of 600 samples" in alts
    assert "Blue" in read.text
    assert "predicts a variable from the others better" not in text  # on the samples that it was learned from
    assert "Whether the model predicts better than a Gaussian is another question: isodus compare answers it" in text
    assert len(page) < 1_500_000


def test_nothing_is_fetched_and_only_its_own_script_can_run(tmp_path, wells):
    read = Reader(report(tmp_path, *wells))
    (policy,) = (v for tag, name, v in read.attributes if tag == "meta" and name == "content" and "default-src" in v)
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy
    for tag, name, value in read.attributes:
        assert name != "style"
        assert not name.startswith("on")
        if name in ("src", "href"):
            assert value.startswith(("data:", "#")), (tag, value[:80])


@pytest.mark.parametrize("with_data", [False, True])
def test_names_are_text(tmp_path, with_data):
    model = replace(double_wells(5), names=tuple(ODD))
    X = np.asarray(model.sample(200, rng=0)) if with_data else None
    page = report(tmp_path, model, X, title="<b>" + ODD[0], said=[ODD[2]])
    read = Reader(page)
    assert read.tags.count("script") == 2
    assert "b" not in read.tags
    assert {tag for tag in read.tags if tag == "img"} == {"img"}
    assert read.data()["names"] == ODD
    assert "<img src=x" not in page
    assert "😀 naïve & co" in read.text
    for part in re.findall(r"data:image/svg\+xml;base64,([^\"]*)", page):
        assert b"alert" not in base64.b64decode(part)


def test_embedded_json_cannot_end_its_element():
    value = {"a": "</script><!--&\u2028\u2029😀\ud800"}
    text = embedded(value)
    assert text.isascii()
    assert not set(text) & set("<>&")
    assert json.loads(text) == value


def test_without_samples_it_tells_what_the_model_can(tmp_path):
    text = " ".join(Reader(report(tmp_path, paper_pair())).text)
    assert "made from given parameters, not from samples" in text
    assert "the report was made without samples" in text
    assert "The model has no standard errors: there are no intervals" in text
    assert "The model, by draws from it" in text


def test_a_model_that_is_no_density(tmp_path):
    model = PolynomialModel.from_dict({(0, 0): 1.0, (0, 1): 3.0, (1, 1): 1.0})
    text = " ".join(Reader(report(tmp_path, model)).text)
    assert f"No: {model.integrability().reason}" in text
    assert "The densities of the model are not shown: it is no density" in text
    X = np.random.default_rng(0).standard_normal((50, 2))
    assert "Goodness of fit" in report(tmp_path, model, X)


def test_a_model_of_one_variable_and_one_without_terms(tmp_path):
    one = PolynomialModel.from_dict({(0, 0): -1.0, (0, 0, 0, 0): 1.0})
    text = " ".join(Reader(report(tmp_path, one, np.asarray(one.sample(100, rng=0)))).text)
    assert "No variables interact, so there is no graph." in text
    assert "Interactions of 1 variable" in text
    assert "No variables interact: " in " ".join(Reader(report(tmp_path, replace(one, theta=np.zeros(2)))).text)


def test_terms_that_were_chosen_from_the_same_samples(tmp_path):
    truth = regular_gaussian(8, rng=0)
    X = np.asarray(truth.sample(400, rng=1))
    est = ISODUS(2, l1="auto").fit(X)
    text = " ".join(Reader(report(tmp_path, est, X)).text)
    assert "Which terms are in the model was chosen by a penalty from the same samples." in text
    assert re.search(
        r"Of 28 candidate pairs of variables the penalty left \d+\. \d+ of these interact at a false", text
    )
    assert "which is too optimistic: they were chosen from the same samples" in text
    est = ISODUS(2, l1=0.2).fit(X)
    assert est.model_.covariance is None
    read = Reader(report(tmp_path, est, X))
    assert "As the model has no standard errors" not in read.text
    assert ("button", "data-column", "q_value") not in read.attributes
    assert "The tests take the model as given, not as bent towards them" in " ".join(read.text)


def test_whose_samples_they_are(tmp_path, wells):
    est, X = wells
    new = pd.DataFrame(np.asarray(double_wells(3).sample(600, rng=5)), columns=X.columns)
    said = lambda *arguments, **options: " ".join(Reader(report(tmp_path, *arguments, **options)).text)
    agree = "that the model was learned from (their number, means and spreads agree). The tests take"
    assert agree in said(est.model_, X)
    text = said(est, new + 0.3)
    assert "that are taken for new ones: their number, means or spreads are not those of the samples that the" in text
    assert goodness_of_fit(est.model_, new + 0.3, n_draws=0).verdict.split(" (")[0][1:] in text
    assert "that were said to be new" in said(est, new, new=True)
    text = said(est, X, sample_weight=np.full(600, 2.0))
    assert "Not tested: the tests know nothing of weights." in text


def test_a_model_with_its_mass_elsewhere_is_not_drawn_from(tmp_path, wells):
    est, X = wells
    note = "the learned model has its mass far from the data: about alpha = 9"
    model = replace(est.model_, settings={**est.model_.settings, "notes": [note]})
    longer = f"{note}. It can be read"
    read = Reader(report(tmp_path, model, X, said=[longer]))
    assert "Note: the model was not sampled: its mass is far from the data." in read.text
    assert longer in read.text
    assert note not in read.text


def test_long_names_and_many_terms_stay_small(tmp_path):
    p = 40
    names = [f"{'long name ' * 300}{i}" for i in range(p)]
    theta = {(i, i): 1.0 for i in range(p)} | {(i, j): 0.2 for i in range(p) for j in range(i)}  # no density
    page = report(tmp_path, PolynomialModel.from_dict(theta, names=names))
    assert len(page) < 3_000_000
    shown = page[page.index("<body>") : page.index('<script type="application/json"')]
    assert max(map(len, Reader(shown.replace("<body>", "")).text)) < 2500  # no name at full length
    theta = {(i, i): 1.0 for i in range(80)} | {(i, j): 0.2 for i in range(80) for j in range(i)}
    read = Reader(report(tmp_path, PolynomialModel.from_dict(theta)))
    assert "The 2,000 strongest of 3,240 terms." in " ".join(read.text)
    assert len(read.data()["terms"]["theta"]) == 2000
    assert len(read.data()["graph"]["sets"]) == 1500
    assert "Here are the 1,500 strongest of 3,160 sets." in " ".join(read.text)


def test_what_is_refused(tmp_path, wells):
    est, X = wells
    with pytest.raises(ValueError, match="a PolynomialModel or a fitted estimator is wanted"):
        write_report("model", tmp_path / "r.html")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(est, tmp_path / "none" / "r.html")
    with pytest.raises(ValueError, match="column beta"):
        write_report(est, tmp_path / "r.html", X.assign(beta=np.nan))
    assert list(tmp_path.iterdir()) == []


def isodus(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_the_command(tmp_path, wells, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, X = wells
    X.assign(alpha=10 ** X["alpha"]).to_csv("d.csv", index=False)
    done = isodus("fit", "d.csv", "--degree", 2, "--transform", "log10:alpha", "-o", "m.json", "--report", "a.html")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "report written to a.html"
    text = " ".join(Reader(Path("a.html").read_text(encoding="utf-8")).text)
    assert "the tests allow for that" in text
    assert "Variables are transformed: log10 of alpha." in text
    done = isodus("report", "m.json", "--data", "d.csv", "-o", "b.html", "--title", "Wells")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "written to b.html\n"
    text = " ".join(Reader(Path("b.html").read_text(encoding="utf-8")).text)
    assert "that the model was learned from (their number, means and spreads agree)" in text
    assert "Wells" in text
    done = isodus("report", "m.json", "--json")
    assert json.loads(done.stdout) == {"written": "m.html", "said": [], "warnings": []}
    for arguments, words in (
        (("m.json", "-o", "r.txt"), "ends in .html"),
        (("none.json",), "there is no file"),
        (("m.json", "--weights", "alpha", "-o", "c.html"), "give --data too"),
        (("m.json", "--data", "none.csv", "-o", "c.html"), "none.csv"),
        (("m.json",), "m.html is there already: name a file for the report with -o; -o m.html replaces it"),
    ):
        done = isodus("report", *arguments)
        assert done.exit_code == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: ")
        assert words in line


def test_the_figure_of_residuals_holds_its_legend(tmp_path):
    names = tuple(f"{'a_rather_long_name_of_' * 2}{k}" for k in range(4))
    X = np.exp(np.random.default_rng(0).standard_normal((500, 4)))
    model = replace(PseudoLikelihood(2).fit(X).model_, names=names)
    page = report(tmp_path, model, X)
    image = Image.open(BytesIO(base64.b64decode(re.search(r"data:image/png;base64,([^\"]*)", page)[1]))).convert("L")
    edge = np.concatenate([np.asarray(image)[:, :4], np.asarray(image)[:, -4:]], axis=1)
    assert edge.min() == 255  # a margin: nothing is cut off there


def test_what_to_do_about_a_misfit_is_said_and_counts_agree(tmp_path):
    X = np.exp(np.random.default_rng(0).standard_normal((500, 3)))
    est = PseudoLikelihood(2).fit(X)
    found = est.goodness_of_fit(X)
    text = " ".join(Reader(report(tmp_path, est, X)).text)
    assert found.verdict[1:] in text
    assert f"Look at the residuals and the histograms of {', '.join(found.misfits)} below" in text
    assert found.plot(Figure()).get_title() == f"{len(found.misfits)} of 3 variables off (q < 0.025)"


def test_a_model_whose_draws_are_unlike_the_samples_is_shown_as_it_is(tmp_path, wells):
    est, X = wells
    read = Reader(report(tmp_path, est.model_, X + 1.0, new=True))
    text = " ".join(read.text)
    assert "Do not sample from this model" in text
    assert "Where the two lines differ, the model has its mass elsewhere than the samples." in text
    text = " ".join(Reader(report(tmp_path, est, X, sample_weight=np.full(600, 2.0))).text)
    assert "What the model by itself has is not shown: the tests know nothing of weights." in text


def test_long_names_can_be_broken_after_their_words_only(tmp_path):
    names = ("od280/od315_of_diluted_wines", "alcalinity_of_ash")
    page = report(tmp_path, replace(paper_pair(), names=names))
    assert "<bdi>od280/<wbr>od315_<wbr>of_<wbr>diluted_<wbr>wines</bdi></span>·<wbr><span" in page


def test_the_report_counts_terms_as_the_summary_does(tmp_path):
    X = np.asarray(regular_gaussian(8, rng=0).sample(400, rng=1))
    model = ISODUS(4, l1="auto").fit(X + 3.0).model_
    words = repr(model).partition("), ")[2]
    assert words.startswith(f"{len(model.basis)} terms up to degree 4")
    assert f"with {words}" in " ".join(Reader(report(tmp_path, model)).text)
    assert words in model.summary()
