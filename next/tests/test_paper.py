"""Every study of the paper runs, verdicts follow from intervals, and the page is that of the results."""

import json
from math import exp
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

from isodus import ISODUS, L1, IsodusWarning, PolynomialModel, PowerReference
from isodus.datasets import gaussian, paper_pair, paper_pair_theta, regular_precision
from paper import STUDIES, degree_ratio, penalized, study
from paper import page as pages
from paper import statistics as st
from paper.methods import LIKELIHOOD, PAPER, estimators, learn
from paper.timing import adaptive_pass, casadi, conditional, ipopt

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", STUDIES)
def test_studies_run(name, tmp_path):
    """The first of the smallest repetitions, as all of them: rows, claims with verdicts, a figure."""
    module = study.load(name)
    tasks = module.tasks("tiny")
    index = next(key for key in ("set", "model", "graph") if key in tasks[0])
    rows = [row for task in tasks if task[index] == 0 for row in study.rows_of(module, dict(task))]
    table = pd.DataFrame(rows)
    table = pd.concat([table.assign(**{index: k}) for k in range(2)], ignore_index=True)
    claims = module.claims(table)
    assert claims
    assert {claim.verdict for claim in claims} <= {st.HOLDS, st.FAILS, st.OPEN}
    assert all(claim.measured and claim.text for claim in claims)
    module.draw(table).savefig(tmp_path / "figure.svg")
    assert all(module.tasks(size) for size in ("quick", "standard"))


def test_a_study_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    """Tasks that are in the file, the last of them cut short, are not run again."""
    tasks = study.load("error-1d").tasks("tiny")
    mark = study.mark_of(tasks)
    kept = [{"n": 5, "set": 7, "method": PAPER, "error": 1.0}]
    lines = [json.dumps([json.dumps(task), 1.0, kept]) for task in tasks[:-1]] + ['["{\\"n']
    (tmp_path / f"error-1d.{mark}.part.jsonl").write_text("\n".join(lines))
    results = study.compute("error-1d", "tiny", tmp_path)
    assert (results.table["set"] == 7).sum() == len(tasks) - 1
    assert len(results.table) > len(tasks)
    assert study.stored("error-1d", tmp_path).about == results.about
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".csv", ".json"]


@pytest.mark.parametrize(
    ("interval", "least", "most", "verdict"),
    [
        ((1.0, 0.9, 1.1), 0.5, 2.0, st.HOLDS),
        ((1.0, 0.9, 1.1), 1.2, np.inf, st.FAILS),
        ((1.0, 0.9, 1.1), -np.inf, 0.8, st.FAILS),
        ((1.0, 0.9, 1.1), 1.0, np.inf, st.OPEN),
        ((1.0, np.nan, np.nan), 0.5, 2.0, st.OPEN),
    ],
)
def test_a_verdict_needs_the_whole_interval(interval, least, most, verdict):
    assert st.Claim("", st.Interval(*interval), least, most).verdict == verdict


def test_intervals_cover():
    """Of means, ratios and slopes in 95 % of 600 sets, within 3 points."""
    rng, hits = np.random.default_rng(0), np.zeros(3)
    for _ in range(600):
        a, b = 1 + 0.3 * rng.standard_normal((2, 25))
        a = a + b  # of mean 2, and related to b
        noise = np.exp(0.3 * rng.standard_normal((10, 4)))
        n = np.array([10.0, 100.0, 1000.0, 10_000.0])
        exponent = st.interval(st.slopes(pd.DataFrame(noise / n**0.5, columns=n)))
        figures = (st.interval(a), 2.0), (st.ratio(a, b), 2.0), (exponent, -0.5)
        hits += [found.low < truth < found.high for found, truth in figures]
    assert np.abs(hits / 600 - 0.95).max() < 0.03


def test_adaptive_integrals_are_those_of_the_conditional_density():
    X, theta = paper_pair(2000), paper_pair_theta()
    found = adaptive_pass(theta, X[:3], 2.5)
    x, y = X[2]
    energy = lambda t: sum(v * t ** k.count(0) * y ** k.count(1) for k, v in theta.items() if 0 in k)
    Z = quad(lambda t: exp(-energy(t)), -np.inf, np.inf)[0]
    assert found[2, 0, 0] == pytest.approx(np.log(Z), abs=1e-6)
    assert found[2, 0, 2] == pytest.approx(quad(lambda t: t**2 * exp(-energy(t)) / Z, -np.inf, np.inf)[0], abs=1e-6)
    assert sum(c * x**l for l, c in enumerate(conditional(theta, 0, X[2]))) == pytest.approx(energy(x))


@pytest.mark.skipif(casadi is None, reason="CasADi is not installed")
def test_ipopt_finds_the_same():
    X = paper_pair(4000)
    ours = estimators(degree=4, tol=1e-8)[PAPER]
    fit = learn(ours, X)
    other = ipopt(X, list(fit.theta))
    assert max(abs(other[key] - value) for key, value in fit.theta.items()) < 1e-6


def test_random_energies_have_a_density_within_reach():
    for degree in (2, 4, 6, 8):
        theta = degree_ratio.energy(degree, 0)
        assert set(theta) == {(0,) * l for l in range(2, degree + 1)}
        assert PolynomialModel.from_dict(theta).integrability()
        assert all(0 <= value <= 1 for value in theta.values())


def test_the_page_is_that_of_the_results():
    assert (DOCS / "paper.md").read_text("utf-8") == pages.page(study.RESULTS, DOCS), "Run make paper SIZE=standard."


def test_the_penalised_estimator_is_the_public_one():
    """Where its answer is a density."""
    X, reference = gaussian(2000, regular_precision(6), 1), PowerReference(nu=2.0, delta=2.0, link="plain")
    penalty = L1(0.35, units="paper", rule="and", refit=False)
    options = dict(reference=reference, penalty=penalty, scale=None, consensus="geometric")
    with pytest.warns(IsodusWarning, match="Held out"):
        public = ISODUS(2, min_degree=2, **options).fit(X)
    ours = penalized.learned(penalized.CODE, X, [0.35])[0]
    assert np.abs(ours - penalized.precision(public.model_.to_dict(), 6)).max() < 1e-6
    assert 0 < np.count_nonzero(penalized.couplings(ours)) < 15


def test_methods_are_the_papers():
    made = {name: make() for name, make in estimators(degree=4).items()}
    assert (made[PAPER].reference.nu, made[PAPER].reference.delta, made[PAPER].scale) == (2.0, 2.0, None)
    assert made[PAPER].consensus == made[LIKELIHOOD].consensus == "geometric"
