"""How fast are independent samples of a chain of double wells, against NUTS in effective samples a second?

E(x) = h Σ (x_i² − 1)² + 0.5 Σ x_i x_{i+1}, p = 64 and 1,000, barriers of height h = 1, easy for NUTS, and 2. (At h = 4
its R-hat is still 1.26 after 2,000 draws of 16 chains.) `PolynomialModel.sample` gives independent samples, one
effective sample each. The peer is NumPyro's NUTS on the same cores, as a pilot found best for it: float32 (0.7 of the
time of float64), eight vectorised chains a core at p = 64 and one a core at p = 1,000, target acceptance 0.5 (1.1 to
1.7 times as many effective samples of x a second as with its default, 0.8). Its kernel is called directly, because
`MCMC.run` compiles anew at every call. The two run in turn, several times, and medians are compared: NUTS without
compilation and warm-up, isodus without set-up (finding the grid, starting a process a core); effective samples of x_i,
median over the variables. The least over the variables, and those of x_i² and x_i x_{i+1}, are printed too; x_i² takes
no change of wells, and NUTS is good at it. The means of all three must agree within their errors. Both use all cores
they may: `taskset -c 0,1` for two.

    python benchmarks/sampling.py [--quick] [--rounds 5] [--accept 0.5] [--chains 8] [--float64]
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from isodus.datasets import double_wells

try:
    import numpyro
except ImportError:
    numpyro = None

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
COUPLING = 0.5
WARMUP = 1000


class Case(NamedTuple):
    """How much of what runs in a round."""

    p: int
    chains: int  # of NUTS, a core
    draws: int  # of every chain in a round
    n: int  # our samples in a round
    wanted: int  # our samples a second / effective samples a second of NUTS


CASES = (Case(64, 8, 2000, 100_000, 100), Case(1000, 1, 4000, 20_000, 30))


def seconds(function, *arguments):
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


class Nuts:
    """Chains of NumPyro's NUTS that run on, round by round; their seconds of compilation and of warm-up."""

    def __init__(self, case, height, accept):
        import jax
        import jax.numpy as jnp
        from numpyro.infer import NUTS

        def potential(x):
            wells = x * x - 1
            return height * jnp.sum(wells * wells) + COUPLING * jnp.sum(x[1:] * x[:-1])

        kernel = NUTS(potential_fn=potential, target_accept_prob=accept)

        def warm_up(key, x):
            start = kernel.init(key, WARMUP, x, (), {})
            return jax.lax.fori_loop(0, WARMUP, lambda _, state: kernel.sample(state, (), {}), start)

        def sample(state):
            def step(state, _):
                state = kernel.sample(state, (), {})
                return state, (state.z, state.num_steps, state.diverging)

            return jax.lax.scan(step, state, None, length=case.draws)

        def compiled(function, *arguments):
            return jax.pmap(jax.vmap(function) if case.chains > 1 else function).lower(*arguments).compile()

        shape = (CORES, case.chains) if case.chains > 1 else (CORES,)
        keys = jax.random.split(jax.random.key(0), shape)
        x = jax.random.normal(jax.random.key(1), (*shape, case.p))
        self.ready = jax.block_until_ready
        self.compilation, warm_up = seconds(compiled, warm_up, keys, x)
        self.warm_up, self.state = seconds(lambda: self.ready(warm_up(keys, x)))
        duration, self.sample = seconds(compiled, sample, self.state)
        self.compilation += duration

    def round(self):
        """Seconds, x (chains, draws, p), mean number of leapfrog steps, share of divergences."""
        duration, (self.state, out) = seconds(lambda: self.ready(self.sample(self.state)))
        x, steps, diverging = map(np.array, out)
        return duration, x.reshape(-1, *x.shape[-2:]), steps.mean(), diverging.mean()


def statistics(x):
    """x_i, x_i² and x_i x_{i+1}, with the variables last."""
    return x, x * x, x[..., 1:] * x[..., :-1]


def effective(x):
    """Effective samples of every variable, and the largest split R-hat; x: (chains, draws, variables)."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    blocks = np.array_split(x.astype(float), max(x.size // 2_000_000, 1), axis=2)
    ess = np.concatenate([effective_sample_size(block) for block in blocks])
    return ess, max(split_gelman_rubin(block).max() for block in blocks)


def compare(case, height, rounds, accept):
    """Prints what both measure; our samples a second / effective samples a second of NUTS, or None without NumPyro."""
    model = double_wells(case.p, height=height, coupling=COUPLING)
    set_up, _ = seconds(model.sample, 1)
    model.sample(40_000 if case.p < 1000 else 20_000, n_jobs=CORES)  # starts the processes
    peer = None if numpyro is None else Nuts(case, height, accept)
    ours, means, theirs = [], [], []
    for k in range(rounds):
        duration, X = seconds(lambda seed=k: model.sample(case.n, seed, n_jobs=CORES))
        ours.append(duration)
        means.append([value.mean(axis=0) for value in statistics(X)])
        if peer is not None:
            theirs.append(peer.round())
    rate, with_set_up = case.n / np.median(ours), case.n / (np.median(ours) + set_up)
    print(f"\np = {case.p:,}, barriers of height {height:g}; seconds of a round, median (fastest) of {rounds}")
    print(f"  isodus {np.median(ours):.2f} ({min(ours):.2f}) for {case.n:,} samples; set-up {set_up:.2f} s")
    print(f"    samples a second: {rate:,.0f}, with set-up {with_set_up:,.0f}")
    if peer is None:
        return None
    durations, x, steps, diverging = (list(values) for values in zip(*theirs, strict=True))
    x, duration = np.concatenate(x, axis=1), np.median(durations)
    chains, length, _ = x.shape
    print(
        f"  NUTS {duration:.2f} ({min(durations):.2f}) for {chains} chains of {case.draws:,} draws, "
        f"{np.mean(steps):.0f} steps each, {np.mean(diverging):.1%} divergent; "
        f"compilation {peer.compilation:.1f} s, warm-up ({WARMUP:,} draws) {peer.warm_up:.2f} s"
    )
    print("    effective samples:  a second  least of all  with warm-up    a draw  largest R-hat")
    z, sizes = [], []
    for k, name in enumerate(("x_i", "x_i^2", "x_i x_{i+1}")):
        value = statistics(x)[k]
        ess, r_hat = effective(value)
        sizes.append(ess / rounds / duration)
        with_warm_up = np.median(ess) / (peer.warm_up + rounds * duration)
        print(
            f"    {name:<18} {np.median(sizes[k]):10,.0f} {sizes[k].min():13,.0f} {with_warm_up:13,.0f} "
            f"{np.median(ess) / chains / length:9.3f} {r_hat:14.3f}"
        )
        error = statistics(X)[k].std(axis=0) * np.sqrt(1 / ess + 1 / (rounds * case.n))
        z.append((value.mean(axis=(0, 1), dtype=float) - np.mean([mean[k] for mean in means], axis=0)) / error)
        if k == 0:
            both = with_set_up / with_warm_up
    z = np.abs(np.concatenate(z))
    limit = norm.isf(0.005 / len(z))  # exceeded by chance once in a hundred times
    verdict = "they agree" if z.max() < limit else "THEY DO NOT AGREE, and the comparison means nothing"
    print(f"  largest z-score of {len(z):,} means: {z.max():.1f} (wanted: below {limit:.1f}): {verdict}")
    ratio = rate / np.median(sizes[0])
    print(
        f"  isodus / NUTS: {ratio:.1f}; with set-up and warm-up {both:.1f}; least of all variables "
        f"{rate / sizes[0].min():.1f}; of x_i^2 {rate / np.median(sizes[1]):.1f}"
    )
    return ratio


def large(n):
    """Seconds of n samples of 1,000 variables of a new model, and gigabytes above the samples themselves."""
    model = double_wells(1000, coupling=COUPLING)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    duration, X = seconds(lambda: model.sample(n, 0, n_jobs=CORES))
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(duration, (peak - X.nbytes) / 1e9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="2 rounds, a quarter of the samples, height 2 alone")
    parser.add_argument("--accept", type=float, default=0.5, help="target acceptance of NUTS")
    parser.add_argument("--chains", type=int, help="of NUTS, vectorised, a core")
    parser.add_argument("--float64", action="store_true", help="NUTS in float64")
    parser.add_argument("--large", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.large:
        return large(options.large)
    rounds, heights, part = (2, (2.0,), 4) if options.quick else (options.rounds, (1.0, 2.0), 1)
    n = 100_000 // part
    command = [sys.executable, __file__, "--large", str(n)]  # first: a child counts its parent's memory as its own
    duration, gigabytes = map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    print(f"{CORES} cores, coupling {COUPLING:g}")
    if numpyro is None:
        print("NumPyro is missing, so only isodus is measured; for the peer: pip install numpyro jax")
    else:
        import jax

        numpyro.set_host_device_count(CORES)
        numpyro.enable_x64(options.float64)
        print(f"NumPyro {numpyro.__version__}, JAX {jax.__version__}, float{64 if options.float64 else 32}", end=", ")
        print(f"target acceptance {options.accept:g}")
    ratios = []
    for given in CASES:
        chains = options.chains or given.chains
        draws = max(given.draws * given.chains // chains // part, 100)
        case = given._replace(chains=chains, draws=draws, n=given.n // part)
        ratios += [(case, height, compare(case, height, rounds, options.accept)) for height in heights]
    print(f"\n{n:,} samples of p = 1,000, height 2, with set-up, in a process of their own:")
    print(f"memory above the {n * 8000 / 1e9:.1f} GB of the samples: {gigabytes:.2f} GB")
    print(f"seconds: {duration:.1f}" + ("" if options.quick else " (wanted: at most 20)"))
    for case, height, ratio in ratios:
        if ratio is not None:
            print(f"isodus / NUTS, p = {case.p:,}, height {height:g}: {ratio:.1f} (wanted: at least {case.wanted})")


if __name__ == "__main__":
    main()
