"""Tables that contract tests loop over."""

from dataclasses import replace
from functools import cache

import array_api_strict
import numpy as np

from isodus import MonomialBasis, PolynomialModel
from isodus.datasets import paper_pair
from isodus.functions import HeavyTails, Hermite, Legendre, LogPowers
from isodus.losses.pseudo_likelihood import PseudoLikelihoodLoss
from isodus.losses.score_matching import ScoreMatchingLoss
from isodus.losses.screening import Screening
from isodus.spaces import PLAIN

NAMESPACES = {"numpy": np.asarray, "array_api_strict": array_api_strict.asarray}
try:
    import torch
except ImportError:
    pass
else:
    NAMESPACES["torch"] = torch.asarray
OTHERS = [name for name in NAMESPACES if name != "numpy"]

BASES = {
    "gaussian": MonomialBasis(3, 2),
    "quartic pairs": MonomialBasis(3, 4, max_order=2),
    "quartic, no linear terms": MonomialBasis(2, 4, min_degree=2),
    "all four-body terms": MonomialBasis(4, 4),
    "three-body": MonomialBasis(4, 4, max_order=3),
    "self terms": MonomialBasis(2, 4, max_order=1),
    "one variable, sextic": MonomialBasis(1, 6),
    "listed": MonomialBasis(3, terms=[(0, 0), (1, 1), (2, 2), (0, 1, 2), (0, 0, 0, 0), (1, 1, 2, 2)]),
}
# what variables may be: a basis a row, and every contract that holds for one on the line holds for it
SPACES = {
    "half lines": MonomialBasis(2, 3, support=(0.0, np.inf)),
    "intervals": MonomialBasis(2, 4, support=[(-1.0, 1.0), (0.5, 2.0)]),
    "spins": MonomialBasis(3, 3, support="spin"),
    "alphabets": MonomialBasis(2, 4, support=[[-1, 0, 1], [0.0, 0.5, 1.0, 2.0]]),
    "angles": MonomialBasis(2, 4, max_order=2, support="circle"),
    "mixed": MonomialBasis(4, 4, max_order=2, support=[None, "spin", (0.0, np.inf), (-1.0, 1.0)]),
    "Hermite": MonomialBasis(2, 4, functions=Hermite(0.2, 0.9)),
    "Legendre": MonomialBasis(2, 4, functions=Legendre(-1.5, 1.5)),
    "Gamma": MonomialBasis(2, terms=[(0,), (0, 0), (1,), (1, 1), (0, 0, 1, 1)], functions=LogPowers()),
    "heavy tails": MonomialBasis(3, 3, functions={0: HeavyTails(), 1: HeavyTails(0.1, 2.0), 2: Legendre(-2.0, 2.0)}),
}
EVERYWHERE = BASES | SPACES

PAIR = paper_pair(1)
# two coupled double wells, their barriers four and six times the thermal energy
WELLS = PolynomialModel.from_dict(
    {(0, 0): -4.0, (0, 0, 0, 0): 1.0, (0, 1): 0.6, (0, 0, 1): 0.2, (1,): 0.3, (1, 1): -12.0, (1, 1, 1, 1): 6.0}
)


@cache
def _drawn(model):
    X = model.sample(40_000, rng=0)
    X.flags.writeable = False
    return X


def drawn(model, n):
    """Samples of a model that is always the same object: preparing to draw takes longer than drawing."""
    return _drawn(model)[:n]


def screening(basis, nu=0.7, delta=2.0, centre=0.0, link="log"):
    p = basis.n_variables
    spread = 1 + 0.1 * np.arange(p)  # a value of its own for every variable
    return Screening.of_degree(basis.degree, nu * spread, delta * np.ones(p), centre * spread, link, basis.spaces)


# a loss: one row here
LOSSES = {
    "screening, log": lambda basis: screening(basis),
    "screening, plain": lambda basis: screening(basis, link="plain"),
    "screening, odd power": lambda basis: screening(basis, delta=1.0),
    "screening, δ not an integer": lambda basis: screening(basis, delta=0.7),
    "screening, centre elsewhere": lambda basis: screening(basis, centre=0.3),
    "screening, tilted": lambda basis: replace(screening(basis, nu=0.1), pilot=parameters_of(basis, seed=3)),
    "score matching": lambda basis: ScoreMatchingLoss(),
    "pseudo-likelihood": lambda basis: PseudoLikelihoodLoss(),
}

_FEWER = ("screening, odd power", "screening, centre elsewhere", "screening, plain")
# every loss on every basis; score matching knows of no values that lie apart
PAIRS = [
    (name, loss)
    for name, basis in EVERYWHERE.items()
    for loss in LOSSES
    if name in BASES
    or (loss not in _FEWER and not (loss == "score matching" and any(s.support.values for s in basis.spaces)))
]


def samples_of(basis, n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0.1, 0.8, (n, basis.n_variables))
    for i, (support, _) in enumerate(basis.spaces or ()):
        if support.values is not None:
            X[:, i] = rng.choice(support.values, n)
        elif support.bounded:
            X[:, i] = rng.uniform(support.low, support.high, n)
        elif np.isfinite(support.low):
            X[:, i] = support.low + 0.05 + np.abs(X[:, i])
    return X


def parameters_of(basis, seed=0, size=0.2):
    """Random local parameters; those of highest powers and of even monomials positive, so that conditionals exist."""
    rng = np.random.default_rng(seed)
    thetas = [size * rng.standard_normal(len(basis.local(i).terms)) for i in range(basis.n_variables)]
    for i, theta in enumerate(thetas):
        terms = [basis.terms[k] for k in basis.local(i).terms]
        space = PLAIN if basis.spaces is None else basis.spaces[i]
        even = [all(term.count(v) % 2 == 0 for v in term) for term in terms]
        if not space.support.bounded and np.isfinite(space.support.low):
            even = [len(term) > 1 for term in terms]
        theta[even] = np.abs(theta[even])
        own = [k for k, term in enumerate(terms) if set(term) == {i}]
        theta[max(own, key=lambda k: len(terms[k]))] += size
        if hasattr(space.functions, "start"):
            for k in own:
                theta[k] += space.functions.start(basis.degree)[len(terms[k]) - 1]
    return thetas
