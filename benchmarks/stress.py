"""Does a loss ever overflow, or give what is no number, at finite samples and parameters?

python benchmarks/stress.py [--seed 0] [--count 20000000]

Random conditional coefficients and samples, over forty orders of magnitude, at millions of nodes; of each loss value
and derivatives. Half of the coefficients have sizes that go together, as those of a density whose scale is that of the
samples: all is finite then. The others have any sizes. There, pseudo-likelihood may be +∞, as where there is no
conditional density: its energy has terms that cancel beyond double precision, and a solver does not go there. What is
wrong is printed with the seed and the coefficients that show it.
"""

import argparse
import time

import numpy as np

from isodus.losses.pseudo_likelihood import PseudoLikelihoodLoss
from isodus.losses.score_matching import ScoreMatchingLoss
from isodus.losses.screening import Screening

NODES, ROWS = 50, 100


def coefficients(rng, s, wild):
    """a, (s, q, n), the highest positive, and x, (q, n): of any size, or of sizes that go together."""
    shape = (NODES, ROWS)
    unit = 10.0 ** rng.uniform(-6, 6, shape)
    sign = rng.choice([-1.0, 1.0], (s, *shape))
    power = np.arange(1, s + 1)[:, None, None]
    size = 10.0 ** (rng.uniform(-20, 20, (s, *shape)) if wild else rng.uniform(-3, 3, (s, *shape)))
    a = sign * (size if wild else size / unit**power)
    a[-1] = np.abs(a[-1])
    x = rng.choice([-1.0, 1.0], shape) * 10.0 ** (rng.uniform(-6, 6, shape) if wild else rng.uniform(-2, 2, shape))
    return a, x if wild else x * unit


def losses(rng, s):
    """Each loss with constants of its own."""
    nu, delta = 10.0 ** rng.uniform(-6, 3, NODES), rng.choice([0.5, 1.0, 2.0]) * np.ones(NODES)
    yield "screening", Screening.of_degree(s, nu, delta, np.zeros(NODES), "log")
    yield "pseudo-likelihood", PseudoLikelihoodLoss()
    yield "score matching", ScoreMatchingLoss()


def faults(loss, a, x, hessian, wild):
    """Where, (q, n), something of a loss is not as it should be, and where it is infinite and may be so."""
    with np.errstate(all="ignore"):
        shift, value, factors, rest = loss.at(np.arange(NODES), x, hessian, None)(a.copy(), x.copy())
    infinite = (value == np.inf) if wild and loss.link == "mean" else np.zeros(x.shape, bool)
    bad = ~np.isfinite(value) | ~np.isfinite(shift)[:, None]
    for z, f in factors:
        bad |= ~np.isfinite(z) | ~np.isfinite(f).all(axis=0)
    if rest is not None:
        bad |= ~np.isfinite(rest).all(axis=0)
    return bad & ~infinite, infinite


def stress(seed, count, say=print):
    """How many of at least so many (a, x) of each loss are at fault, by loss; infinite; and how many there were."""
    rng, found, infinite, done = np.random.default_rng(seed), {}, 0, 0
    while done < count:
        s, wild = int(rng.choice([2, 4, 6])), bool(rng.integers(2))
        a, x = coefficients(rng, s, wild)
        for name, loss in losses(rng, s):
            for hessian in (False, True):
                bad, far = faults(loss, a, x, hessian, wild)
                infinite += int(far.sum())
                if bad.any():
                    i, j = np.argwhere(bad)[0]
                    if found.get(name, 0) < 20:
                        say(f"{name}, seed {seed}, after {done}: a = {a[:, i, j].tolist()}, x = {x[i, j]}")
                    found[name] = found.get(name, 0) + int(bad.sum())
        done += NODES * ROWS
    return found, infinite, done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000_000)
    options = parser.parse_args()
    started = time.perf_counter()
    found, infinite, done = stress(options.seed, options.count)
    print(f"seed {options.seed}: {done:,} nodes and samples for each of three losses, twice, in "
          f"{time.perf_counter() - started:.0f} s")  # fmt: skip
    print(f"pseudo-likelihood beyond double precision, and infinite: {infinite:,}")
    print(f"not finite: {sum(found.values())} {found or ''} (wanted: 0)")


if __name__ == "__main__":
    main()
