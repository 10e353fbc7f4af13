"""Standard errors of all estimators on models whose truth is known: (estimate − truth)/SE over a few sets."""

import warnings

import numpy as np
import pytest

from isodus import ISODUS, IsodusWarning, PowerReference, PseudoLikelihood, ScoreMatching, datasets

P = np.array([[1.0, 0.4], [0.4, 2.0]])
MODELS = {
    "Gaussian": (lambda n: datasets.gaussian(n, P, seed=61), datasets.gaussian_theta(P), 2, 800),
    "pair": (lambda n: datasets.paper_pair(n, seed=61), datasets.paper_pair_theta(), 4, 2000),
}
ESTIMATORS = {
    "pseudo-likelihood": PseudoLikelihood,
    "tilted": ISODUS,
    "power": lambda d, **k: ISODUS(d, reference=PowerReference(0.2), **k),
    "score matching": ScoreMatching,
    "consensus": lambda d, **k: PseudoLikelihood(d, consensus="precision", **k),
}
SETS = 25


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_errors_are_as_large_as_stated(name, model):
    """The mean square of 25 sets is 1 ± .2 for independent terms; a wrong factor √2 or a lost weight is beyond."""
    draw, truth, degree, n = MODELS[model]
    z = []
    for X in np.split(draw(SETS * n), SETS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IsodusWarning)
            est = ESTIMATORS[name](degree, n_jobs=1).fit(X)
        view = est.model_.polynomial()
        z.append((view.coefficients - [truth.get(key, 0.0) for key in view.keys]) / view.stderr)
    z = np.array(z)
    assert 0.6 < np.mean(z**2) < 1.5, np.mean(z**2)
    assert np.mean(np.abs(z) < 1.96) > 0.88
