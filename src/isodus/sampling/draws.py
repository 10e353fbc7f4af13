"""Samples that tell how they were made."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["Draws", "SamplingInfo", "require_arviz", "to_arviz"]


@dataclass(frozen=True, eq=False)
class SamplingInfo:
    """How samples were made, and how good they are.

    Parameters
    ----------
    method : str
        "exact", or which chains, a part for each group of interacting variables that has them.
    names : sequence of str
        The variables.
    r_hat : array of shape (n_variables,)
        Rank-normalised split R-hat, over groups of chains with the same start; near 1 if chains have forgotten it.
        1 for exact samples.
    ess, tail_ess : arrays of shape (n_variables,)
        Effective sample sizes, of the bulk and of the tails (Vehtari and others, 2021), of all draws of all chains.
    n_draws : int
        How many draws of all chains these figures are of; `sample` gives as many of them as were asked for.
    trustworthy : bool
        False where chains disagree or hardly moved; a warning said so.
    details : mappings, one for each group of variables with chains
        variables, chains, draws, thin, warm_up (steps before the first draw), seconds (before it, and of the draws),
        acceptance, swap_rates, and R-hat and effective size of the energy.
    """

    method: str
    names: Sequence[str]
    r_hat: np.ndarray
    ess: np.ndarray
    tail_ess: np.ndarray
    n_draws: int
    trustworthy: bool = True
    complete: bool = True
    details: Sequence[dict[str, Any]] = field(default_factory=list)

    def to_frame(self) -> pd.DataFrame:
        """A row a variable: R-hat and the effective sample sizes."""
        columns = {"r_hat": self.r_hat, "ess": self.ess, "tail_ess": self.tail_ess}
        return pd.DataFrame(columns, index=pd.Index(self.names, name="variable"))

    def __repr__(self) -> str:
        if not self.details:
            return "SamplingInfo: exact, independent samples of the model" + ("" if self.complete else ". Interrupted")
        worst, fewest = int(np.argmax(self.r_hat)), int(np.argmin(self.ess))
        parts = [
            f"{d['method']} ({d['chains']} chains of {d['draws']} draws, one every {d['thin']} steps after "
            f"{d['warm_up']:,} of warm-up)"
            for d in self.details
        ]
        return (
            f"SamplingInfo: {'; '.join(parts)}. R-hat up to {self.r_hat[worst]:.3f} ({self.names[worst]}), at least "
            f"{self.ess[fewest]:,.0f} effective samples ({self.names[fewest]})"
            + ("" if self.trustworthy else ". NOT TO BE TRUSTED")
            + ("" if self.complete else ". Interrupted")
        )

    def warn(self, n: int, method: str) -> None:
        """Of chains that have not mixed, or that were stopped; n: how many samples were asked for."""
        if not self.complete:
            warnings.warn(f"interrupted: {self.n_draws:,} draws were made, for {n:,}", UserWarning, stacklevel=3)
        if self.trustworthy:
            return
        what = ", ".join(f"{self.names[v]} {self.r_hat[v]:.2f}" for v in np.argsort(-self.r_hat)[:3])
        what += "".join(f", the energy {d['energy_r_hat']:.2f}" for d in self.details if d["energy_r_hat"] > 1.01)
        other = method in ("gibbs", "hmc")
        remedy = 'Try method="tempering", or start' if other else "Take a model with fewer or weaker terms, or start"
        warnings.warn(
            f"the chains have not mixed, and these samples are not to be trusted: R-hat of {what} (below 1.01 it would "
            f"be well), {self.ess.min():,.0f} effective samples of {self.n_draws:,} at the least. {remedy} from "
            "samples that are in all modes (start=)",
            UserWarning,
            stacklevel=3,
        )


class Draws(np.ndarray):
    """Samples, an ordinary array of shape (n, p), with `info`: a `SamplingInfo`.

    Parts of it have none (`info` is None), and what is computed from it is an ordinary array.
    """

    info: SamplingInfo | None = None

    def __new__(cls, values: np.ndarray, info: SamplingInfo | None = None) -> Draws:
        """The values, not copied."""
        made = np.asarray(values).view(cls)
        made.info = info
        return made

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        """What is computed from samples is no sample."""
        return array[()] if return_scalar else np.asarray(array)


def require_arviz() -> Any:
    """The module, or what to do."""
    try:
        import arviz
    except ImportError:
        raise ImportError("return_inferencedata=True needs ArviZ: pip install arviz") from None
    return arviz


def to_arviz(x: np.ndarray, names: Sequence[str], attrs: dict[str, Any]) -> Any:
    """ArviZ's InferenceData (a DataTree from version 1), of draws (chains, draws, p)."""
    arviz = require_arviz()
    odd = [name for name in names if name in ("chain", "draw") or "/" in name]
    if odd:
        names = [f"{name}_".replace("/", "_") if name in odd else name for name in names]
        if len(set(names)) < len(names):
            raise ValueError(f"ArviZ cannot hold variables called {', '.join(odd)}: rename them in the model")
    values = {name: x[:, :, i] for i, name in enumerate(names)}
    if "posterior" in inspect.signature(arviz.from_dict).parameters:
        return arviz.from_dict(posterior=values, posterior_attrs=attrs)
    return arviz.from_dict({"posterior": values}, attrs={"posterior": attrs})
