"""Makes the pictures docs/images/plot_*.png: every plot of isodus.plotting, at 5, 11 and 60 variables.

python docs/make_plots.py
"""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import pandas as pd
from matplotlib.figure import Figure

from isodus import ISODUS, PseudoLikelihood, ScoreMatching
from isodus.datasets import double_wells, hypertree_polynomial, load_sachs, paper_pair, regular_gaussian
from isodus.plotting import error_scaling, penalty_path, plot

IMAGES = Path(__file__).parent / "images"


def save(name, draw, *args, **options):
    """A figure that `draw` makes its axes in, which come last."""
    figure = Figure(layout="constrained")
    draw(*args, figure, **options)
    figure.savefig(IMAGES / f"plot_{name}.png", dpi=100)
    print(f"plot_{name}.png")


def proteins():
    """853 cells of the first condition."""
    X = load_sachs(condition=True)
    return X[X["condition"] == 1].drop(columns="condition").reset_index(drop=True)


def errors(truth, sizes, sets):
    """A row a fit: method, n, error."""
    known, rows = truth.to_dict(), []
    for n in sizes:
        for k in range(sets):
            X = truth.sample(n, rng=1000 * k + n)
            for make in (ISODUS, PseudoLikelihood, ScoreMatching):
                found = make(4).fit(X).model_.to_dict()
                error = sum(abs(found[term] - known.get(term, 0.0)) for term in found) / len(found)
                rows.append({"method": make.__name__, "n": n, "error": error})
    return pd.DataFrame(rows)


def main():
    """Fit and draw."""
    X = double_wells(5).sample(3000, rng=0)
    wells, normal = ISODUS(degree=4).fit(X).model_, ISODUS(degree=2).fit(X).model_
    save("graph_5", plot, "graph", wells, None)
    save("marginals_5", plot, "marginals", wells, X)
    save("residuals_5", plot, "residuals", normal, X)

    X = proteins()
    cells = ISODUS(degree=4).fit(X).model_
    save("graph_11", plot, "graph", cells, None)
    save("couplings_11", plot, "couplings", cells, None)
    save("forest_11", plot, "forest", cells, None, n=25)
    save("marginals_11", plot, "marginals", cells, X)
    save("pairs_11", plot, "pairs", cells, X)

    X = hypertree_polynomial(11, rng=1).sample(4000, rng=0)
    save("graph_11_sets", plot, "graph", PseudoLikelihood(4, max_order=4, l1="auto").fit(X).model_, None)
    save("graph_60_sets", plot, "graph", hypertree_polynomial(60, rng=1), None)

    X = regular_gaussian(60, rng=0).sample(3000, rng=0)
    est = ISODUS(degree=2, l1="auto").fit(X)
    save("graph_60", plot, "graph", est.model_, None)
    save("couplings_60", plot, "couplings", est.model_, None)
    save("path_60", penalty_path, est.path_)
    save("errors", error_scaling, errors(paper_pair(), [300, 1000, 3000, 10_000, 30_000], 6))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main()
