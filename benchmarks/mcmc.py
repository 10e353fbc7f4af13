"""How many effective samples a second do Markov chains give where there is no exact sampler, against NUTS?

Two models: the field φ⁴ on a lattice of 16 × 16, and Sachs' eleven proteins, degree 4, pairs, by `match_moments`. What
`PolynomialModel.sample` runs on them, `isodus.sampling.chains`, is called directly, for all draws of all chains. The
peer is NumPyro's NUTS on the same cores: float32 (quicker than float64), its kernel called directly, because `MCMC.run`
compiles anew at every call, energies as one would write them by hand (slices of the lattice, a quadratic form of
powers). A pilot in the same run finds what is best for it, one after the other: vectorised chains a core, target
acceptance, a diagonal or a dense mass matrix. Its chains start from a normal distribution on the lattice and, lest some
stay in tails, from data for the proteins. Ours start from far apart.

The two run in turn, several times. Effective samples of both are those of `isodus.sampling.convergence`: bulk, of all
chains, over what the same function makes of as many independent numbers, since it flatters short chains (1.11 a number
for 512 chains of 40). Their median over the variables of x_i, a second, is compared, of a median round: NUTS without
compilation and 1,000 draws of warm-up, isodus without its start, pilot and warm-up. The least over the variables and
those of x_i² are printed too, and seconds with everything. Means of x_i and x_i² must agree within their errors. Both
use all cores they may: `taskset -c 0,1` for two; the machine must have nothing else to do.

    python benchmarks/mcmc.py [--quick] [--rounds 5] [--only lattice] [--model FILE]
"""

import argparse
import os
import time
import warnings
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from isodus import ISODUS, MonomialBasis, PolynomialModel, match_moments
from isodus.datasets import load_sachs, phi4_lattice
from isodus.energy import energy
from isodus.progress import Progress
from isodus.sampling import chains, restrict
from isodus.sampling.convergence import autocorrelation_time, effective_sample_size, r_hat

try:
    import numpyro
except ImportError:
    numpyro = None

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
SIDE = 16
WARMUP = 1000
WANTED = 3
FEW = 50  # variables


class Setting(NamedTuple):
    """Of NUTS; chains: vectorised, a core."""

    chains: int = 8
    accept: float = 0.8
    dense: bool = False

    def __str__(self):
        mass = "dense" if self.dense else "diagonal"
        return f"{self.chains} a core, target acceptance {self.accept:g}, {mass} mass matrix"


OTHERS = {"chains": (1, 32), "accept": (0.6,), "dense": (True,)}


class Case(NamedTuple):
    """A model in standardised units, its energy for JAX, where NUTS starts (any number, p), our samples in a round."""

    name: str
    basis: MonomialBasis
    theta: np.ndarray
    names: tuple[str, ...]
    potential: Any
    start: np.ndarray
    n: int


def seconds(function, *arguments):
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def lattice():
    model = phi4_lattice((SIDE, SIDE))

    def potential(x):
        import jax.numpy as jnp

        f = x.reshape(SIDE, SIDE)
        down, right, square = f[1:] - f[:-1], f[:, 1:] - f[:, :-1], f * f
        return jnp.sum(0.25 * square * square - 0.5 * square) + 0.5 * (jnp.sum(down * down) + jnp.sum(right * right))

    start = np.random.default_rng(0).standard_normal((1000, SIDE * SIDE))
    return Case("lattice", model.basis, model.theta, model.names, potential, start, 20_000)


def proteins(file=None):
    data = load_sachs()
    X = data.to_numpy()
    if file:
        model = PolynomialModel.load(file)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of data and of a mass far from them
            model = ISODUS(degree=4).fit(data).model_
        duration, model = seconds(lambda: match_moments(model, data, rng=0))
        print(f"match_moments took {duration:.0f} s")
    p = X.shape[1]
    basis, theta = restrict(model.basis, model.theta, np.arange(p))  # without terms that are 0, as `sample` does
    start = np.random.default_rng(0).permutation((X - model.location) / model.scale)
    return Case("proteins", basis, theta, model.names, pairs(basis, theta), start, 40_000)


def pairs(basis, theta):
    """E = aᵀv + vᵀQv, v = (x, x², …), for JAX; terms of one or two variables."""
    p, s = basis.n_variables, basis.degree
    a, Q = np.zeros(s * p), np.zeros((s * p, s * p))
    for term, value in zip(basis.terms, theta, strict=True):
        places = [(term.count(v) - 1) * p + v for v in sorted(set(term))]
        if len(places) == 1:
            a[places[0]] = value
        else:
            Q[places[0], places[1]] = value
    m = int(np.max(np.nonzero(Q))) // p * p + p

    def potential(x):
        import jax.numpy as jnp

        powers = [x]
        for _ in range(s - 1):
            powers.append(powers[-1] * x)
        v = jnp.concatenate(powers)
        return jnp.asarray(a, x.dtype) @ v + v[:m] @ (jnp.asarray(Q[:m, :m], x.dtype) @ v[:m])

    return potential


@cache
def flattery(many, draws):
    """Effective samples a number, of independent numbers: above 1 for chains of few draws."""
    x = np.random.default_rng(0).standard_normal((many, draws, 20))
    return np.median(effective_sample_size(x)) / many / draws


def effective(x):
    """Effective samples of every variable; x: (chains, draws, p)."""
    return effective_sample_size(x) / flattery(*x.shape[:2])


class Nuts:
    """Chains of NumPyro's NUTS that run on, block by block; their seconds of compilation and of warm-up."""

    def __init__(self, case, setting, draws):
        import jax
        import jax.numpy as jnp
        from numpyro.infer import NUTS

        kernel = NUTS(potential_fn=case.potential, target_accept_prob=setting.accept, dense_mass=setting.dense)

        def warm_up(key, x):
            start = kernel.init(key, WARMUP, x, (), {})
            return jax.lax.fori_loop(0, WARMUP, lambda _, state: kernel.sample(state, (), {}), start)

        def sample(state):
            def step(state, _):
                state = kernel.sample(state, (), {})
                return state, (state.z, state.num_steps, state.diverging)

            return jax.lax.scan(step, state, None, length=draws)

        def compiled(function, *arguments):
            return jax.pmap(jax.vmap(function) if setting.chains > 1 else function).lower(*arguments).compile()

        shape = (CORES, setting.chains) if setting.chains > 1 else (CORES,)
        keys = jax.random.split(jax.random.key(0), shape)
        x = jnp.asarray(np.resize(case.start, (*shape, case.start.shape[1])), jnp.float32)
        self.setting, self.draws, self.ready, self.blocks = setting, draws, jax.block_until_ready, []
        self.compilation, warm_up = seconds(compiled, warm_up, keys, x)
        self.warm_up, self.state = seconds(lambda: self.ready(warm_up(keys, x)))
        duration, self.sample = seconds(compiled, sample, self.state)
        self.compilation += duration

    def run(self, least):
        """Blocks of draws, for so many seconds at least."""
        while least > 0:
            duration, (self.state, out) = seconds(lambda: self.ready(self.sample(self.state)))
            x, steps, diverging = map(np.array, out)
            self.blocks.append((duration, x.reshape(-1, *x.shape[-2:]), steps.mean(), diverging.mean()))
            least -= duration

    def result(self):
        """Seconds of a block, median; x, (chains, draws, p); mean number of steps; share of divergences."""
        durations, x, steps, diverging = zip(*self.blocks, strict=True)
        return np.median(durations), np.concatenate(x, axis=1), np.mean(steps), np.mean(diverging)

    def rates(self, square=False):
        """Effective samples a second of every variable."""
        duration, x, _, _ = self.result()
        return effective(x * x if square else x) / len(self.blocks) / duration


def check(case):
    """That NUTS samples from the same energy."""
    import jax

    X = np.concatenate([np.random.default_rng(1).standard_normal((20, case.start.shape[1])), case.start[:20]])
    ours = energy(case.basis, case.theta, X.T)
    theirs = np.array(jax.vmap(case.potential)(X.astype(np.float32)))
    assert np.allclose(theirs, ours, rtol=1e-4, atol=1e-4 * np.abs(ours).max()), np.abs(theirs - ours).max()


def choose(case, quick):
    """NUTS, with the setting that gave most effective samples a second."""
    check(case)
    best, most, tried = None, 0.0, {}
    print("  what is best for NUTS: effective samples a second, seconds of compilation and warm-up")

    def attempt(setting):
        nonlocal best, most
        if setting in tried:
            return
        peer = Nuts(case, setting, max((800 if quick else 4000) // setting.chains, 25))
        peer.run(1.0 if quick else 6.0)
        tried[setting] = rate = np.median(peer.rates())
        print(f"    {rate:8,.0f} {peer.compilation:6.1f} {peer.warm_up:6.1f}  {setting}", flush=True)
        if rate > most:
            best, most = peer, rate

    attempt(Setting())
    for name, values in () if quick else OTHERS.items():
        found = best.setting
        if name == "dense" and case.basis.n_variables > FEW:
            found = found._replace(chains=1)  # vectorised, each step would factorise the mass matrix, for minutes
        for value in values:
            attempt(found._replace(**{name: value}))
    best.blocks = []
    return best


def mean_and_error(x):
    """Over chains and draws, of every variable."""
    return x.mean(axis=(0, 1)), np.sqrt(x.var(axis=(0, 1)) * autocorrelation_time(x) / x[..., 0].size)


def compare(case, rounds, quick):
    """Prints what both measure; effective samples a second of isodus / of NUTS, or None without NumPyro."""
    print(f"\n{case.name}: {case.basis.n_variables} variables, {len(case.basis)} terms")
    peer = None if numpyro is None else choose(case, quick)

    def ours(n, seed, prefer=None):
        rng, options = np.random.default_rng(seed), dict(prefer=prefer, n_jobs=CORES, progress=Progress(False))
        return chains.run(case.basis, case.theta, case.names, n, rng, **options)

    prefer = ours(1, 0).kind  # starts the processes too; a model keeps what it chose
    n, all_seconds, rates, rates2, sizes, means = case.n // 4 if quick else case.n, [], [], [], [], []
    for k in range(rounds):
        duration, run = seconds(ours, n, k + 1, prefer)
        all_seconds.append((*run.seconds, duration))
        sizes.append(effective(run.draws))
        rates.append(sizes[-1] / run.seconds[1])
        rates2.append(effective(run.draws**2) / run.seconds[1])
        means.append([mean_and_error(run.draws), mean_and_error(run.draws**2)])
        if peer is not None:
            peer.run(1.0 if quick else 5.0)
    many, draws, _ = run.draws.shape
    print(
        f"  isodus: {run.method}, {many} chains of {draws:,} draws, one every {run.thin} steps, acceptance "
        f"{run.acceptance or 1:.2f}, {np.median(sizes) / many / draws:.2f} effective samples a draw, "
        f"largest R-hat {run.r_hat.max():.3f}"
    )
    before, drawing, everything = np.median(all_seconds, axis=0)
    print(f"    seconds, median: before the draws {before:.1f}, draws {drawing:.1f}, with diagnostics {everything:.1f}")
    table = [("isodus", *(np.median(values, axis=0) for values in (rates, rates2)))]
    if peer is not None:
        duration, x, steps, diverging = peer.result()
        print(
            f"  NUTS: {x.shape[0]} chains of {x.shape[1]:,} draws, {peer.setting}, {steps:.0f} steps a draw, "
            f"{diverging:.1%} divergent, largest R-hat {r_hat(x).max():.3f}"
        )
        print(f"    seconds: compilation {peer.compilation:.1f}, warm-up ({WARMUP:,} draws) {peer.warm_up:.1f}")
        table.append(("NUTS", peer.rates(), peer.rates(square=True)))
    print("  effective samples a second:  x_i  (least)    x_i^2  (least)")
    for name, *values in table:
        print(f"    {name:<22}" + "".join(f" {np.median(v):8,.0f} {v.min():8,.0f}" for v in values))
    if peer is None:
        return None
    z = []
    for k, value in enumerate((x.astype(float), x.astype(float) ** 2)):
        mean, error = mean_and_error(value)
        own = np.mean([m[k][0] for m in means], axis=0)
        z.append((mean - own) / np.hypot(error, np.linalg.norm([m[k][1] for m in means], axis=0) / rounds))
    z = np.abs(np.concatenate(z))
    limit = norm.isf(0.005 / len(z))  # exceeded by chance once in a hundred times
    verdict = "they agree" if z.max() < limit else "THEY DO NOT AGREE, and the comparison means nothing"
    print(f"  largest z-score of {len(z):,} means: {z.max():.1f} (wanted: below {limit:.1f}): {verdict}")
    (_, mine, mine2), (_, its, its2) = table
    size = np.median(sizes)
    theirs = peer.compilation + peer.warm_up + size / np.median(its)
    print(f"  isodus / NUTS: least {mine.min() / its.min():.1f}, of x_i^2 {np.median(mine2) / np.median(its2):.1f}")
    print(
        f"  {size:,.0f} effective samples with everything: isodus {everything:.1f} s, NUTS {theirs:.1f} s, of these "
        f"{peer.compilation:.1f} of compilation: ratio {theirs / everything:.1f}, without compilation "
        f"{(theirs - peer.compilation) / everything:.1f}"
    )
    return np.median(mine) / np.median(its)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="2 short rounds, one setting of NUTS")
    parser.add_argument("--only", choices=["lattice", "proteins"])
    parser.add_argument("--model", help="a model of the proteins, instead of learning one")
    options = parser.parse_args()
    print(f"{CORES} cores")
    if numpyro is None:
        print("NumPyro is missing, so only isodus is measured; for the peer: pip install numpyro jax")
    else:
        import jax

        numpyro.set_host_device_count(CORES)
        print(f"NumPyro {numpyro.__version__}, JAX {jax.__version__}, float32")
    makers = {"lattice": lattice, "proteins": lambda: proteins(options.model)}
    ratios = {
        name: compare(make(), 2 if options.quick else options.rounds, options.quick)
        for name, make in makers.items()
        if options.only in (None, name)
    }
    print()
    for name, ratio in ratios.items():
        if ratio is not None:
            print(f"isodus / NUTS, {name}: {ratio:.1f} (wanted: at least {WANTED})")


if __name__ == "__main__":
    main()
