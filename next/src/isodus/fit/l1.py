"""The L1 penalty that a user chooses: its strength, its units, and what each term costs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from .._core.checks import one_of, positive_integer
from ..terms import Key, MonomialBasis
from .penalties import Penalty

__all__ = ["L1", "Rule"]

Array = np.ndarray
Term = Sequence[int | str]
Weights = Mapping[Any, float] | Callable[[Key], float]
Rule = Literal["or", "and"]
_CHOICES = ("ebic", "cv", "stars")


class L1(Penalty):
    """A penalty λ Σ_k c_k |θ_k| that leaves few terms in the model; each variable has a problem of its own.

    θ are coefficients of powers of y = (x − location)/scale, in the units that `scale` of the estimator gives. Below
    the highest degree, which terms are zero depends on the origin of y.

    Parameters
    ----------
    strength : float or {"ebic", "cv", "stars"}, default="ebic"
        λ; or how it is chosen along a path. "ebic": the extended information criterion of pseudo-likelihood, for rows
        that are independent. "cv": the held-out score of `folds` folds. "stars": the smallest λ
        down to which halves of the rows disagree on at most 5 % of the penalised terms.
    units : {"noise", "raw", "paper"}, default="noise"
        Units of λ. "noise": of each term's slope in one row, so that λ√n is how many standard errors a term must show.
        "raw": λ itself is what |θ| costs. "paper": λ√(log p / n) is.
    weights : mapping or callable, optional
        c of some terms, by key such as (0, 0, 1) or ("a", "a", "b"), or as a function of the key of numbers; 0 keeps a
        term, infinity leaves it out.
    include, exclude : list of terms, optional
        Terms that are in the model whatever they cost, and terms that are not.
    penalize_self : bool, default=False
        Whether terms of one variable are penalised.
    rule : {"or", "and"}, default="or"
        Whether a term is in the model if one of its variables keeps it, or if all of them do.
    path : list of float, optional
        The decreasing strengths that are tried where data choose.
    folds : int, default=5
        Of "cv".
    refit : bool or "auto", default="auto"
        Whether the terms that are left are estimated again, without penalty. "auto": where "ebic" or "stars" chose.

    Examples
    --------
    >>> from isodus import L1
    >>> L1(0.1, units="raw")
    L1(strength=0.1, units='raw')
    """

    def __init__(
        self,
        strength: float | Literal["ebic", "cv", "stars"] = "ebic",
        *,
        units: Literal["noise", "raw", "paper"] = "noise",
        weights: Weights | None = None,
        include: Collection[Term] | None = None,
        exclude: Collection[Term] | None = None,
        penalize_self: bool = False,
        rule: Rule = "or",
        path: Sequence[float] | None = None,
        folds: int = 5,
        refit: bool | Literal["auto"] = "auto",
    ) -> None:
        self.strength = strength
        self.units = units
        self.weights = weights
        self.include = include
        self.exclude = exclude
        self.penalize_self = penalize_self
        self.rule = rule
        self.path = path
        self.folds = folds
        self.refit = refit

    selects: ClassVar[bool] = True

    def check(self) -> None:
        """An error for values that mean nothing."""
        number = isinstance(self.strength, Real) and not isinstance(self.strength, bool)
        if not (
            self.strength in _CHOICES if isinstance(self.strength, str) else number and 0 <= self.strength < np.inf
        ):
            raise ValueError(
                f'strength of L1 must be "ebic", "cv", "stars" or a number of at least 0, not {self.strength!r}.'
            )
        one_of(self.units, ("noise", "raw", "paper"), "units of L1")
        one_of(self.rule, ("or", "and"), "rule of L1")
        one_of(self.refit, (True, False, "auto"), "refit of L1")
        one_of(self.penalize_self, (True, False), "penalize_self of L1")
        positive_integer(self.folds, "folds of L1", least=2)
        if self.path is not None:
            self._check_path()

    def _check_path(self) -> None:
        try:
            values = np.asarray(self.path, float)
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.ndim != 1 or len(values) < 2 or not np.all(np.isfinite(values) & (values > 0)):
            raise ValueError(f"path of L1 must list two or more positive strengths, not {self.path!r:.60}.")
        up = np.flatnonzero(np.diff(values) >= 0)
        if len(up):
            raise ValueError(
                f"path of L1 must decrease, as each strength starts from the one before, but {values[up[0]]:g} is "
                f"followed by {values[up[0] + 1]:g}."
            )
        if not isinstance(self.strength, str):
            raise ValueError(
                f"path of L1 lists the strengths to choose from, and strength is {self.strength:g}. Leave path out, or "
                "use strength='ebic'."
            )

    @property
    def has_errors(self) -> bool:
        """Only what is estimated again has."""
        return self.refits

    @property
    def refits(self) -> bool:
        """Whether what is left is estimated again."""
        return self.strength in ("ebic", "stars") if self.refit == "auto" else bool(self.refit)

    def in_words(self, path: Any = None, strength: float = np.nan) -> str:
        """The strength, how it was chosen, and whether what is left was estimated again."""
        how = "" if path is None else f", chosen by {path.criterion}"
        return f"L1 of strength {strength:.3g}{how}" + (", then none" if self.refits else "")

    def multiplier(self, p: int, n: float) -> float:
        """What λ is multiplied by."""
        return float(np.sqrt(np.log(p) / n)) if self.units == "paper" else 1.0

    def weight(self, keys: Sequence[Key], names: Sequence[str]) -> Array:
        """c of each term, (K,)."""
        place = {key: k for k, key in enumerate(keys)}
        out = np.array([0.0 if len(set(key)) == 1 and not self.penalize_self else 1.0 for key in keys])
        if callable(self.weights):
            out[:] = [_weight(self.weights(key), key) for key in keys]
        elif self.weights is not None:
            if not isinstance(self.weights, Mapping):
                raise ValueError(
                    f"weights of L1 must map terms to numbers, or be a function of a term, not {self.weights!r:.60}."
                )
            for k, (term, value) in zip(
                _places(self.weights, place, names, "weights"), self.weights.items(), strict=True
            ):
                out[k] = _weight(value, term)
        inside, outside = (
            _places(terms, place, names, what) for terms, what in ((self.include, "include"), (self.exclude, "exclude"))
        )
        both = set(inside) & set(outside)
        if both:
            term = tuple(names[i] for i in keys[min(both)])
            raise ValueError(f"The term {term} is in include and in exclude of L1. Leave it out of one.")
        out[inside], out[outside] = 0.0, np.inf
        return out


def _weight(value: Any, term: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not float(value) >= 0:
        raise ValueError(f"weights of L1 give {value!r} for {term}. Use a number of at least 0, or infinity.")
    return float(value)


def _places(terms: Collection[Term] | None, place: Mapping[Key, int], names: Sequence[str], what: str) -> list[int]:
    """Where terms stand; an error for one that the fit does not have."""
    if terms is None:
        return []
    if isinstance(terms, str) or not isinstance(terms, Collection):
        raise ValueError(f"{what} of L1 must list terms such as (0, 1) or ('a', 'b'), not {terms!r:.60}.")
    found: list[int] = []
    for term in terms:
        try:
            (key,) = MonomialBasis([term]).keys(names)
        except ValueError:
            raise ValueError(
                f"{what} of L1 has {term!r:.60}, which is no term of these columns. A term is a tuple of columns by "
                "number or name, such as (0, 0, 1) for x0² x1."
            ) from None
        if key not in place:
            raise ValueError(
                f"{what} of L1 has the term {term!r}, which is not one of the {len(place):,} terms of this fit. "
                "Raise degree or max_order, or leave the term out."
            )
        if place[key] in found:
            raise ValueError(f"{what} of L1 has the term {term!r} twice. List it once.")
        found.append(place[key])
    return found
