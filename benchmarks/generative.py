"""Do new samples look like the data? Learned from one half of a real data set, held against the other half.

For a Gaussian, ISODUS as it comes and `match_moments` (degree 4, pairs): how many standard deviations of a term apart
the means of all monomials up to degree 4, of one variable and of pairs, are in 10,000 new samples and in the held-out
half (root mean square and largest; halves of the data themselves differ by what stands first); R-hat and effective
samples; and -log P(x_i | rest) a variable on the held-out half, in units of each variable's standard deviation (lower
is better). One split, one seed: the first column tells what chance does. `--picture FILE` draws the marginals and a
few pairs of the Sachs proteins, data and samples.

    python benchmarks/generative.py [--only sachs] [--seed 0] [--picture sachs.png]
"""

import argparse
import time
import warnings

import numpy as np
from real_data import DATA

from isodus import ISODUS, MonomialBasis, PseudoLikelihood, match_moments
from isodus.datasets import load_sachs
from isodus.likelihood import statistics

DRAWS = 10_000


def learners(train, seed):
    """Names and models; the last takes the terms and units of the one before."""
    yield "Gaussian", lambda: PseudoLikelihood(degree=2).fit(train).model_
    learned = ISODUS(degree=4).fit(train).model_
    yield "ISODUS", lambda: learned
    yield "match_moments", lambda: match_moments(learned, train, rng=seed)


def compare(X, seed):
    """Rows of what each learner gave."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, held_out = X[order[: len(X) // 2]], X[order[len(X) // 2 :]]
    basis = MonomialBasis(X.shape[1], 4, max_order=2)
    location, scale = np.median(train, axis=0), train.std(axis=0)
    terms = lambda rows: statistics(basis, ((rows - location) / scale).T)
    there, spread = terms(held_out).mean(axis=1), terms(held_out).std(axis=1)
    yield "the other half", train, None, (terms(train).mean(axis=1) - there) / spread, None, None
    for name, learn in learners(train, seed):
        started = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = learn()
            seconds = time.perf_counter() - started
            try:
                drawn = model.sample(DRAWS, seed)
            except ValueError as error:
                yield name, None, seconds, None, None, f"not sampled: {error}"
                continue
        said = [str(w.message) for w in caught if "mass far from" in str(w.message) or "mixed" in str(w.message)]
        score = -model.conditional_log_density(held_out).mean() - np.mean(np.log(X.std(axis=0)))
        yield name, drawn, seconds, (terms(np.asarray(drawn)).mean(axis=1) - there) / spread, score, "; ".join(said)


def draw_picture(path, data, drawn, names):
    """Marginals of all variables, and the pairs whose correlations are largest: data above, samples below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(4, 6, figsize=(15, 9.5), constrained_layout=True)
    for i, (name, ax) in enumerate(zip(names, axes[:2].ravel(), strict=False)):
        low, high = np.quantile(np.concatenate([data[:, i], drawn[:, i]]), [0.001, 0.999])
        bins = np.linspace(low, high, 50)
        ax.hist(data[:, i], bins, density=True, color="#cccccc", label="data")
        ax.hist(drawn[:, i], bins, density=True, histtype="step", color="#0072b2", lw=1.6, label="samples")
        ax.set(title=name, yticks=[])
    axes[1, 5].axis("off")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    axes[1, 5].legend(handles, labels, loc="center", frameon=False, fontsize=13)
    correlation = np.abs(np.triu(np.corrcoef(data.T), 1))
    pairs = np.argsort(-correlation, axis=None)[:6]
    for k, pair in enumerate(pairs):
        i, j = np.unravel_index(pair, correlation.shape)
        for row, rows, what in ((2, data, "data"), (3, drawn, "samples")):
            ax = axes[row, k]
            ax.scatter(
                rows[:5000, i], rows[:5000, j], s=2, alpha=0.25, lw=0, color="#555555" if row == 2 else "#0072b2"
            )
            ax.set(xlabel=names[i], ylabel=names[j], title=what)
            margin = np.array([-0.3, 0.3])
            ax.set_xlim(np.quantile(data[:, i], [0.0005, 0.9995]) + margin)
            ax.set_ylim(np.quantile(data[:, j], [0.0005, 0.9995]) + margin)
    figure.suptitle(
        "Sachs proteins (log10): held-out data, and 10,000 samples of the model learned from the other half"
    )
    figure.savefig(path, dpi=90)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=DATA)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--picture")
    options = parser.parse_args()
    for name in [options.only] if options.only else DATA:
        X = DATA[name]()
        print(f"\n{name}: {X.shape[0]:,} samples of {X.shape[1]} variables")
        try:
            for who, drawn, seconds, off, score, said in compare(X, options.seed):
                line = f"  {who:<15}"
                if off is not None:
                    line += f" moments off by {np.sqrt(np.mean(off * off)):8.3g} (largest {np.abs(off).max():8.3g})"
                if seconds is not None:
                    line += f"  learned in {seconds:5.1f} s"
                if score is not None:
                    info = drawn.info
                    line += f"  held-out {score:8.4f}  R-hat {info.r_hat.max():.3f}  ESS {info.ess.min():,.0f}"
                print(line, f"  {said[:150]}" if said else "", flush=True)
                if options.picture and name == "sachs" and who == "match_moments":
                    order = np.random.default_rng(options.seed).permutation(len(X))
                    draw_picture(
                        options.picture, X[order[len(X) // 2 :]], np.asarray(drawn), list(load_sachs().columns)
                    )
        except ValueError as error:
            print("  ", error)


if __name__ == "__main__":
    main()
