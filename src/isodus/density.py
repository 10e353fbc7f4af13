"""The density of a model itself: samples, what is missing, normalisation, one variable given the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from . import description, energy, rounding, sampling
from .arrays import Array, namespace, on_device, one_blas_thread
from .checks import count, finite_rows, generator, positions, warn
from .conditional import Conditional
from .diagnostics import Integrability
from .progress import Progress, Show
from .samples import floating_rows, matching_rows
from .sampling import gaussian, given
from .spaces import PLAIN, Space, Spaces, check_inside

if TYPE_CHECKING:
    from .basis import MonomialBasis

__all__ = ["Density"]


class _Centred(NamedTuple):
    """θ in y about other locations, the groups of variables of that, and by how much the energy there is below zero."""

    location: np.ndarray
    theta: np.ndarray
    groups: list[sampling.Group]
    depth: float


def _warn_of_estimate(value: float, error: float) -> None:
    if error:
        warn(
            f"log Z is an estimate, by annealed importance sampling: {value:.6g} ± {error:.2g}. "
            "return_error=True gives both"
        )


class Density:
    """What a `PolynomialModel` can do that takes its integral."""

    if TYPE_CHECKING:
        basis: MonomialBasis
        theta: np.ndarray
        location: np.ndarray
        scale: np.ndarray
        names: tuple[str, ...]

        def _by_block(self, X: Array, function: Any, location: np.ndarray | None = None) -> Array: ...
        def conditional_coefficients(self, i: int, X: Array) -> Array: ...  # noqa: D102
        def integrability(self) -> Integrability: ...  # noqa: D102
        def _standardised(self, X: Any, name: str, missing: bool = False) -> np.ndarray: ...

    def sample(
        self,
        n: int,
        rng: int | np.random.Generator | None = None,
        *,
        method: Literal["auto", "exact", "gibbs", "hmc", "tempering"] = "auto",
        start: Any = None,
        n_jobs: int | None = None,
        progress: Show = None,
        return_inferencedata: bool = False,
        force: bool = False,
    ) -> Any:
        """n samples, shape (n, p), an array whose `info` tells how they were made (`isodus.sampling.SamplingInfo`).

        Parameters
        ----------
        rng : int or numpy.random.Generator, optional
            The same gives the same samples, whatever `n_jobs`. (Where "auto" has to choose between two kinds of chains
            it goes by their speed, once for a model.)
        method : {"auto", "exact", "gibbs", "hmc", "tempering"}
            "exact": independent samples of Gaussian models of any size, and of others whose interacting variables
            form a tree or nearly (see `isodus.sampling`). "gibbs" and "hmc": Markov chains, by draws of one variable
            given the others or by Hamiltonian trajectories; "tempering": such chains at several temperatures that
            trade places, for separated modes. "auto": exact where it can be had; elsewhere the chains that give most
            effective samples a second, tempered if they do not mix. Chains that have not mixed say so in a warning.
        start : array or DataFrame of shape (any, p), optional
            Samples for chains to start from, such as the data; by default they start from far apart.
        n_jobs : int, optional
            Processes, as everywhere in joblib; -1 is one a core. They pay from some ten million values.
        progress : bool or callable, optional
            A bar, by default on a terminal after a second, or a function, as in `ISODUS`. Ctrl-C leaves what there is.
        return_inferencedata : bool
            All draws of all chains as ArviZ wants them, instead of an array.
        force : bool
            Draw also from a model whose fit found its mass far from the data (see its notes); an error without it.
        """
        self._require_near("Samples", force)
        n, rng = count(n, "n"), generator(rng)
        sampling.check_method(method)
        if return_inferencedata:
            sampling.require_arviz()
        begin = None if start is None else self._standardised(start, "start").T
        with Progress(progress) as bar:
            options: dict[str, Any] = dict(method=method, start=begin, n_jobs=n_jobs, progress=bar, chosen=self._chosen)
            X, info = sampling.sample(self._groups, self.names, n, rng, self.location, self.scale, **options)
        info.warn(n, method)
        if return_inferencedata:
            return sampling.to_arviz(X, self.names, {"method": info.method, "model": repr(self)})
        rows = X.reshape(-1, X.shape[2])
        if len(rows) > n:  # the first of all chains would be nearest to where those began, several in one place
            rows = rows[rng.choice(len(rows), n, replace=False)]
        elif X.shape[0] > 1:
            rows = X.swapaxes(0, 1).reshape(rows.shape)
        return sampling.Draws(rows, info)

    def impute(
        self,
        X: Any,
        n_draws: int | None = None,
        rng: int | np.random.Generator | None = None,
        *,
        progress: Show = None,
        force: bool = False,
    ) -> Any:
        """X with its missing cells (NaN) drawn from their distribution given the others of the row; a frame as a frame.

        With `n_draws`, that many independent completions, shape (n_draws, n, p). Cells that do not interact with one
        another are drawn exactly, others by Gibbs sweeps from many starts; where those do not agree, a warning says so.
        force: as in `sample`, for rows that have no value at all.
        """
        Y = self._standardised(X, "X", missing=True)
        if np.isnan(Y).all(axis=1).any():
            self._require_near("What is filled into rows without any value", force)
        self._require_density()
        many = 1 if n_draws is None else count(n_draws, "n_draws")
        with Progress(progress) as bar, one_blas_thread():
            found = given.fill(self.basis, self.theta, self.names, Y.T.copy(), many, generator(rng), bar)
        given.warn(found, self.names)
        there = floating_rows(X, self.names)
        Z = np.where(np.isnan(there), found.values.swapaxes(1, 2) * self.scale + self.location, there)
        if n_draws is None and isinstance(X, pd.DataFrame):
            return pd.DataFrame(Z[0], X.index, self.names)
        return Z[0] if n_draws is None else Z

    def conditional(self, i: int | str, X: Any) -> Conditional:
        """The distribution of one variable, by index or name, given the others, a row of X each; see `Conditional`.

        The column of the variable itself is not looked at. Values of others where these cannot be are a ValueError.
        """
        i = positions(i, self.names)[0] if isinstance(i, str) else range(self.basis.n_variables)[i]
        others = tuple(name for k, name in enumerate(self.names) if k != i)
        space = PLAIN if self.basis.spaces is None else self.basis.spaces[i]
        rows = np.array(floating_rows(X, self.names), dtype=np.float64)
        if rows.ndim == 2 and rows.shape[1] == len(self.names):
            rows[:, i] = self.location[i] + self.scale[i] * space.inside
        finite_rows(rows, self.names, "X")
        check_inside(rows, self.names, *self._where)
        a = self.conditional_coefficients(i, rows).T
        found = Conditional(self.names[i], a, self.location[i], self.scale[i], others, space)
        rounding.check_given(self.basis, self.theta, i, ((rows - self.location) / self.scale).T, found)
        return found

    def log_partition(
        self, *, return_error: bool = False, rng: int | np.random.Generator | None = 0, force: bool = False
    ) -> float | tuple[float, float]:
        """log Z, Z = ∫ exp(−E(x)) dx over the variables in the units of X, E as `energy` gives it.

        Exact wherever `sample` is, to about 1e-7 times the root of the number of variables. Elsewhere it is estimated
        by annealed importance sampling from `rng`, with a warning, or with ``return_error=True`` its standard error.
        force: as in `sample`.
        """
        self._require_near("log Z", force)
        about, error = self._normalised(rng)
        value = about + self._centred.depth
        if return_error:
            return value, error
        _warn_of_estimate(value, error)
        return value

    def logpdf(self, X: Array, *, rng: int | np.random.Generator | None = 0, force: bool = False) -> Array:
        """The log density −E(x) − log Z at every row of X, the normalisation as in `log_partition`; −inf `outside`.

        force: as in `sample`.
        """
        self._require_near("Log densities", force)
        (location, theta, _, depth), (log_z, error) = self._centred, self._normalised(rng)
        _warn_of_estimate(log_z + depth, error)
        own = lambda Y: energy.energy(self.basis, theta, Y)[None, :]
        return self._inside(X, lambda rows: -self._by_block(rows, own, location)[:, 0] - log_z)

    def outside(self, X: Array) -> Array:
        """Which values of X are where their variable cannot be, to rounding: a boolean array of shape (n, p)."""
        rows = matching_rows(X, self.names)
        xp, (spaces, slack) = namespace(rows), self._where
        if spaces is None:
            return xp.zeros(rows.shape, dtype=xp.bool, device=rows.device)
        columns = (rows[:, i] for i in range(len(spaces)))
        found = [(x == x) & ~space.holds(x, own) for x, space, own in zip(columns, spaces, slack, strict=True)]
        return xp.stack(found, axis=1)

    @cached_property
    def _where(self) -> tuple[Spaces | None, list[float]]:
        """Where variables live, in the units of X, and by how much rounding may put them beside that."""
        if self.basis.spaces is None:
            return None, []
        location, scale = self.location.tolist(), self.scale.tolist()
        spaces = tuple(map(Space.in_units, self.basis.spaces, location, scale))
        return spaces, [space.support.slack(c) for space, c in zip(spaces, location, strict=True)]

    def _inside(self, X: Any, function: Callable[[Array], Array]) -> Array:
        """A function of the rows of X where they lie where the model lives, −inf elsewhere."""
        rows = matching_rows(X, self.names)
        if self.basis.spaces is None:
            return function(rows)
        xp, outside = namespace(rows), self.outside(rows)
        gone = xp.any(outside, axis=1)
        if not bool(xp.any(gone)):
            return function(rows)
        somewhere = self.location + self.scale * [space.inside for space in self.basis.spaces]
        value = function(xp.where(outside, on_device(somewhere, rows), rows))
        return xp.where(gone if value.ndim == 1 else gone[:, None], -xp.inf, value)

    def _normalised(self, rng: int | np.random.Generator | None) -> tuple[float, float]:
        """log Z, of energies as `_centred` has them, and its standard error; an estimate is kept with its seed."""
        volume, groups = float(self._log_volume.sum()), self._centred.groups
        try:
            return sampling.log_partition(groups) + volume, 0.0
        except sampling.NotExactError:
            seed, known = rng if isinstance(rng, int) else None, self._estimates
            if seed is None or seed not in known:
                value, error = sampling.estimate_log_partition(groups, self.names, generator(rng))
                known[seed] = value + volume, error
            return known[seed]

    @property
    def _log_volume(self) -> np.ndarray:
        """The log of what dx is of dy, (p,); a variable with a few values has no dx."""
        if self.basis.spaces is None:
            return np.log(self.scale)
        return np.where([space.support.values is None for space in self.basis.spaces], np.log(self.scale), 0.0)

    @cached_property
    def _estimates(self) -> dict[int | None, tuple[float, float]]:
        return {}

    @cached_property
    def _chosen(self) -> dict[int, str]:
        """Which chains were found quickest, by the first variable of their group: a seed goes on giving the same."""
        return {}

    @cached_property
    def _groups(self) -> list[sampling.Group]:
        """What sampling and normalisation need, if the density exists."""
        self._require_density()
        return sampling.prepare(self.basis, self.theta, self.names)

    @cached_property
    def _centred(self) -> _Centred:
        """The energy with Gaussian groups of variables about their means, where it does not cancel."""
        location, theta, groups, depth = self.location.copy(), self.theta.copy(), [], 0.0
        for group in self._groups:
            if group.gaussian:
                v = group.variables
                mean, lower, slip = gaussian.centre(group.basis, group.theta)
                if not slip <= rounding.LOST:
                    raise energy.cancels(f"where the density of {self.names[v[0]]} is", lower)
                location[v] += self.scale[v] * mean
                theta[(self.basis.degrees == 1) & np.isin(self.basis.factors[:, 0], v)] = 0.0
                group = group._replace(theta=np.where(group.basis.degrees == 1, 0.0, group.theta))
                depth += lower
            groups.append(group)
        return _Centred(location, theta, groups, depth)

    def _require_near(self, what: str, force: bool) -> None:
        """An error for a model whose fit found its mass far from the data, unless forced; what: that is asked for."""
        note = description.far_away(self)
        if note and not force:
            raise ValueError(
                f"{note}. {what} would describe that region, not your data. Use isodus.match_moments(model, X) for a "
                "model to draw from, lower the degree, or transform heavy tails. force=True (--force) overrides this"
            )

    def _require_density(self) -> None:
        if self._verdict.status == "not integrable":
            raise ValueError(f"the model is no probability distribution: {self._verdict.reason}")

    @cached_property
    def _verdict(self) -> Integrability:
        return self.integrability()
