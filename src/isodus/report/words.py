"""The sentences of a report: what was found, how sure it is, how it was computed, what to cite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._version import __version__
from ..comparison import nested_test
from ..description import candidate_sets, chosen_from_the_same, terms_in_words
from ..diagnostics import Integrability
from ..goodness import GoodnessOfFit
from ..model import PolynomialModel
from ..transforms import of_setting
from ..wording import listed, many
from .fit import Checked

__all__ = [
    "cautions",
    "citations",
    "how",
    "next_steps",
    "number",
    "probability",
    "samples_in_words",
    "short",
    "summary",
    "units",
]

_LEVEL = 0.05
_ROWS_A_TERM = 50  # that a test of terms wants, see `nested_test`
_LONGEST = 40  # characters of a name
_CALLED = {"ISODUS": "ISODUS", "PseudoLikelihood": "pseudo-likelihood", "ScoreMatching": "score matching"}
_PAPER = (
    "C. X. Ren, S. Misra, M. Vuffray and A. Y. Lokhov, “Learning Continuous Exponential Families Beyond Gaussian”, "
    "arXiv:2102.09198 (2021). The estimator and the family of models."
)
_WORKS = {
    "PseudoLikelihood": "J. Besag, “Statistical analysis of non-lattice data”, The Statistician 24, 179 (1975). "
    "Pseudo-likelihood.",
    "ScoreMatching": "A. Hyvärinen, “Estimation of non-normalized statistical models by score matching”, "
    "Journal of Machine Learning Research 6, 695 (2005). Score matching.",
}
_FALSE = (
    "Y. Benjamini and Y. Hochberg, “Controlling the false discovery rate”, Journal of the Royal Statistical Society B "
    "57, 289 (1995). The q-values."
)
_STEIN = (
    "Q. Liu, J. Lee and M. Jordan, “A kernelized Stein discrepancy for goodness-of-fit tests”, ICML (2016); "
    "K. Chwialkowski, H. Strathmann and A. Gretton, “A kernel test of goodness of fit”, ICML (2016). The Stein test."
)
_SETTINGS = {
    "estimator": "estimator",
    "degree": "highest degree",
    "max_order": "most variables in a term",
    "min_degree": "lowest degree",
    "basis": "terms",
    "l1": "penalty asked for",
    "l1_chosen": "penalty chosen",
    "debias": "correction after selection",
    "center": "variables centred",
    "scale": "variables scaled",
    "transform": "transform of the data",
    "dependence": "dependence between rows",
    "weights": "weights taken as",
    "covariance": "standard errors from",
    "error_df": "degrees of freedom of standard errors",
    "integrable": "that it be a density (integrable)",
}


def short(name: str, most: int = _LONGEST) -> str:
    """A name as it is shown: in one line, control characters replaced, its middle left out if it is long."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(str(name).split()))
    keep = most - 1
    return text if len(text) <= most else f"{text[: keep - keep // 2]}…{text[len(text) - keep // 2 :]}"


def number(value: float | None, digits: int = 4) -> str:
    """With a real minus, in so many digits."""
    return "" if value is None or np.isnan(value) else f"{value:.{digits}g}".replace("-", "−")


def probability(value: float | None) -> str:
    """A p- or q-value."""
    if value is None or np.isnan(value):
        return ""
    return "< 1e−99" if value < 1e-99 else f"{value:.2g}".replace("-", "−")


def summary(
    model: PolynomialModel, sets: pd.DataFrame, verdict: Integrability, checked: Checked | None
) -> list[tuple[str, str]]:
    """A question and its answer each."""
    by = _CALLED.get(model.settings.get("estimator", ""), model.settings.get("estimator"))
    source = "made from given parameters, not from samples"
    if model.n_samples is not None:
        source = f"learned from {model.n_samples:,.10g} samples{f' by {by}' if by else ''}"
    terms = terms_in_words(model)
    terms += ";" if "," in terms else ","
    said = [
        ("What it is", f"A model of {many(len(model.names), 'variable')} with {terms} {source}."),
        ("Who interacts", _interactions(model, sets)),
    ]
    if model.basis.degree > 2 and model.basis.spaces is None:
        said.append(("More than a Gaussian?", " ".join(filter(None, (_gaussian(model), _prediction(model))))))
    said.append(("A density?", _density(verdict)))
    if checked is None:
        return [*said, ("Does it fit?", "Not known here: the report was made without samples.")]
    said.append(("Does it fit?", _fits(checked)))
    advice = [] if checked.found is None else next_steps(model, checked.found)
    return [*said, ("What to do next", " ".join(advice))] if advice else said


def _interactions(model: PolynomialModel, sets: pd.DataFrame) -> str:
    if not len(sets):
        return "No variables interact: the model has no term of two variables or more."
    called = lambda frame: listed([" – ".join(short(model.names[v], 24) for v in row) for row in frame["variables"]])
    strong = sets.sort_values("strength", ascending=False, kind="stable")
    what = "pair" if (sets["order"] == 2).all() else "set"
    some, of, chosen = f"{many(len(sets), what)} of variables", candidate_sets(model), chosen_from_the_same(model)
    left = f"Of {of:,} candidate {what}s of variables the penalty left {len(sets):,}. " if of and chosen else ""
    if sets["q_value"].isna().all():
        return (
            f"{left}{some} {'has' if len(sets) == 1 else 'have'} terms that are not zero. How "
            f"sure they are is not known, as the model has no standard errors. The strongest: {called(strong)}."
        )
    sure = strong[strong["q_value"] < _LEVEL]
    if not len(sure):
        return f"{left}Of {some} none surely interacts (false discovery rate 5 %)."
    if not chosen:
        return (
            f"{len(sure):,} of {some} surely interact (false discovery rate 5 %). The strongest of these: "
            f"{called(sure)}."
        )
    return (
        f"{left or f'The penalty left {some}. '}{len(sure):,} of these interact at a false discovery rate of 5 %, "
        "which is too optimistic: they were chosen from the same samples, and those that were left out are not "
        f"counted. The strongest: {called(sure)}."
    )


def _gaussian(model: PolynomialModel) -> str:
    above = model.basis.degrees > 2
    high = int(np.count_nonzero(model.theta[above]))
    if not high:
        return "Not tested: no term above degree 2 is in the model."
    try:
        test = nested_test(model, 2)
    except ValueError as error:
        return f"{many(high, 'term')} above degree 2; whether they are needed was not tested: {error}."
    if not np.isfinite(test.p_value):
        return f"{many(high, 'term')} above degree 2; too few samples for so many to be tested at once."
    answer = "Yes" if test.p_value < _LEVEL else "Not shown"
    few = model.n_samples is not None and model.n_samples < _ROWS_A_TERM * test.df
    why = "they were chosen from the same samples" if chosen_from_the_same(model) else ""
    why = why or (f"there are fewer than {_ROWS_A_TERM} samples a term" if few else "")
    chosen = f", which is too small, as {why}" if why and test.p_value < _LEVEL else ""
    held = int(np.count_nonzero(np.isnan(model.stderr("standardized")) & above & (model.theta != 0)))
    less = f" ({held} of them held at a bound, and not tested)" if held else ""
    p = probability(test.p_value)
    p = p if "<" in p else f"= {p}"
    return f"{answer}, by a test: of {many(high, 'term')} above degree 2{less}, tested at once, p {p}{chosen}."


def _prediction(model: PolynomialModel) -> str:
    """Prediction is another question than whether terms are zero, and one for rows that were not fitted."""
    if not np.any(model.theta[model.basis.degrees > 2]):
        return ""
    return (
        "Whether the model predicts better than a Gaussian is another question: isodus compare answers it, on rows "
        "that neither was fitted to."
    )


def _density(verdict: Integrability) -> str:
    answer = {"integrable": "Yes, proved", "not integrable": "No", "unknown": "Not known"}[verdict.status]
    return f"{answer}: {verdict.reason}."


def _fits(checked: Checked) -> str:
    if checked.found is None:
        return f"Not tested: {checked.why}."
    verdict = checked.found.verdict
    return f"{verdict[0].upper()}{verdict[1:]}. {samples_in_words(checked)}"


def samples_in_words(checked: Checked) -> str:
    """On which samples the tests are, and what that means for them."""
    n = many(checked.n, "sample")
    if checked.allowed:
        return f"Tested on the {n} that the model was learned from; the tests allow for that."
    if checked.same:
        known = "" if checked.told else " (their number, means and spreads agree)"
        return (
            f"Tested on the {n} that the model was learned from{known}. The tests take the model as given, not as bent "
            "towards them, and so see less misfit than there may be."
        )
    if checked.told:
        return f"Tested on {n} that were said to be new."
    return (
        f"Tested on {n} that are taken for new ones: their number, means or spreads are not those of the samples that "
        "the model was learned from."
    )


def next_steps(model: PolynomialModel, found: GoodnessOfFit) -> list[str]:
    """What to do about a misfit, a sentence each; nothing where none was found."""
    advice = []
    if found.misfits:
        advice.append(
            f"Look at the residuals and the histograms of {listed([short(name) for name in found.misfits], 4)} below: "
            "long tails ask for a logarithm or ranks of the variable, piles of equal values for leaving it out, "
            "other shapes for a higher degree."
        )
    elif found.stein is not None and found.stein.p_value < found.level / 2:
        weaker = "a weaker penalty, " if chosen_from_the_same(model) else ""
        advice.append(
            f"Each variable by itself fits, but how they go together does not: try {weaker}larger sets of variables "
            "(max_order 3) or a higher degree, and see whether new samples are predicted better (isodus compare)."
        )
    if found.beyond or found.unlike:
        advice.append(
            "Do not sample from this model: read its terms, which tell how variables go together near the data. To "
            "sample, learn a Gaussian (degree 2), or the model of isodus.match_moments (isodus fit --match-moments)."
        )
    if found.misfits or (found.stein is not None and found.stein.p_value < found.level / 2):
        advice.append("Until then take intervals and p-values as those of the nearest model of this form.")
    return advice


def cautions(model: PolynomialModel, checked: Checked | None) -> list[str]:
    """What to bear in mind when reading the tables."""
    said = []
    known = model.covariance is not None
    if chosen_from_the_same(model):
        what = (
            "Standard errors, intervals, p- and q-values do not know of that, and are too optimistic." if known else ""
        )
        said.append(f"Which terms are in the model was chosen by a penalty from the same samples. {what}".strip())
    if not known:
        said.append("The model has no standard errors: there are no intervals, p- or q-values.")
    elif np.isnan(model.stderr("standardized")).any():
        held = int(np.count_nonzero(np.isnan(model.stderr("standardized")) & (model.theta != 0)))
        if held:
            said.append(
                f"{many(held, 'term')} held at a bound or not told apart from others: without a standard error."
            )
    if known and model.moved_from is not None:
        said.append(
            "θ was moved after it was estimated, say to be a density; intervals, p and q are of the estimate, so that "
            "θ need not be in the middle of its interval, or inside of it."
        )
    if known:
        said.append(
            "Intervals are at 95 % each, not all at once; q is the false discovery rate at which a term counts."
        )
    if model.basis.degree > 2 and np.any(model.location):
        said.append(
            "In the units of the data θ of a term below the highest degree depends on where zero is; compare sizes by "
            "the standardised θ, in which each variable is centred and scaled."
        )
    kinds = of_setting(model.settings.get("transform"), model.names)
    if kinds:
        said.append(
            f"Variables are transformed: {listed([f'{kind} of {short(name)}' for name, kind in kinds.items()], 8)}."
        )
        if checked is not None and "rank" in kinds.values():
            said.append("Ranks are those among the samples shown.")
    return said


def units(model: PolynomialModel) -> str:
    """In which variables the model is."""
    if np.any(model.location) or np.any(model.scale != 1):
        return "Each variable is centred and scaled for the computation, and strengths are in those units."
    return "Variables are taken as they are, neither centred nor scaled."


def how(model: PolynomialModel) -> list[tuple[str, str]]:
    """Settings by name, those that say most first, with words for them."""
    left_out, usual = {"notes", "default"}, model.settings.get("default", [])
    settings = {name: value for name, value in model.settings.items() if name not in left_out and value is not None}
    rows = [("report made by", f"isodus {__version__}")]
    if model.n_samples is not None:
        rows.append(("samples", f"{model.n_samples:,.10g}"))
    order = [*(name for name in _SETTINGS if name in settings), *(name for name in settings if name not in _SETTINGS)]
    return rows + [
        (_SETTINGS.get(name, name), _value(settings[name]) + (" (default)" if name in usual else "")) for name in order
    ]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 400 else f"{text[:400]}…"


def citations(model: PolynomialModel, tested: bool) -> list[str]:
    """Works that the report rests on, and the software."""
    own = _WORKS.get(model.settings.get("estimator", ""))
    works = [f"isodus, version {__version__}. The software.", _PAPER]
    works += [own] if own else []
    works += [_FALSE] if model.covariance is not None else []
    return works + ([_STEIN] if tested else [])
