"""Makes docs/sachs.md and its pictures: how sure the graph of eleven proteins is.

python docs/make_sachs.py
"""

import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.covariance import GraphicalLassoCV

from isodus import ISODUS, compare
from isodus.datasets import load_sachs
from isodus.metrics import partial_correlations

HERE = Path(__file__).parent
# of the network in Sachs et al. (2005), Science 308, 523, directions left out; our column names
KNOWN = """PKC-PKA PKC-pmek PKC-praf PKC-P38 PKC-pjnk PKA-praf PKA-pmek PKA-p44/42 PKA-pakts473 PKA-pjnk PKA-P38
praf-pmek pmek-p44/42 p44/42-pakts473 plcg-PIP3 plcg-PIP2 PIP3-PIP2"""
EDGES = {frozenset(pair.split("-")) for pair in KNOWN.split()}
CALLED = {"praf": "Raf", "pmek": "Mek", "p44/42": "Erk", "pakts473": "Akt", "plcg": "Plcγ", "pjnk": "Jnk"}


def called(name):
    """A protein as biologists call it."""
    return CALLED.get(name, name)


def one_condition():
    """853 cells of the first condition, which were stimulated and not otherwise treated."""
    X = load_sachs(condition=True)
    return X[X["condition"] == 1].drop(columns="condition").reset_index(drop=True)


def draw(ax, names, edges, title):
    """edges: {pair: width}; blue: in the published network, orange: not."""
    graph = nx.Graph()
    graph.add_nodes_from(names)
    places = nx.circular_layout(graph)
    for pair in EDGES - set(edges):
        nx.draw_networkx_edges(graph, places, [tuple(pair)], ax=ax, edge_color="#bbbbbb", style="dotted", width=1)
    for pair, width in edges.items():
        colour = "#0072b2" if pair in EDGES else "#d55e00"
        nx.draw_networkx_edges(graph, places, [tuple(pair)], ax=ax, edge_color=colour, width=width)
    nx.draw_networkx_nodes(graph, places, ax=ax, node_color="white", edgecolors="#333333", node_size=900)
    nx.draw_networkx_labels(graph, places, {name: called(name) for name in names}, ax=ax, font_size=9)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()
    ax.margins(0.12)


def table(frame):
    """Pairs of proteins with their tests, in Markdown."""
    lines = ["| proteins | χ² | df | p | q | published |", "| --- | --- | --- | --- | --- | --- |"]
    for row in frame.itertuples():
        pair = frozenset(row.variables.split("*"))
        known = "yes" if pair in EDGES else ""
        lines.append(
            f"| {' – '.join(called(v) for v in row.variables.split('*'))} | {row.chi2:.0f} | {row.df} "
            f"| {row.p_value:.1e} | {row.q_value:.1e} | {known} |"
        )
    return "\n".join(lines)


def main():
    """Fit, test, draw, write."""
    X = one_condition()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        est = ISODUS(degree=4).fit(X)
    said = [str(w.message) for w in caught]
    pairs = est.model_.interactions()
    found = pairs[pairs["q_value"] < 0.05]
    Z = (X - X.mean()) / X.std()
    lasso = GraphicalLassoCV().fit(Z).precision_
    names = list(X.columns)
    lasso_edges = {
        frozenset((names[i], names[j])): 1.0 + 6 * abs(lasso[i, j]) / np.sqrt(lasso[i, i] * lasso[j, j])
        for i, j in zip(*np.triu_indices(11, 1), strict=True)
        if lasso[i, j] != 0
    }
    gaussian = ISODUS(degree=2).fit(X)
    partial = partial_correlations(gaussian.model_)
    partial_found = {frozenset((r.a, r.b)) for r in partial[partial["q_value"] < 0.05].itertuples()}
    ours = {frozenset(v.split("*")): 1.0 + np.log10(c) for v, c in zip(found["variables"], found["chi2"], strict=True)}
    figure, axes = plt.subplots(1, 2, figsize=(11, 5.6), layout="constrained")
    draw(axes[0], names, ours, f"isodus, degree 4, q < 0.05: {len(ours)} pairs, {len(ours.keys() & EDGES)} published")
    right = len(lasso_edges.keys() & EDGES)
    draw(axes[1], names, lasso_edges, f"graphical lasso, cross-validated: {len(lasso_edges)} pairs, {right} published")
    figure.savefig(HERE / "images" / "sachs_graph.png", dpi=130)
    fit = est.goodness_of_fit(X)
    figure, ax = plt.subplots(figsize=(6.5, 5.5), layout="constrained")
    fit.plot(ax)
    figure.savefig(HERE / "images" / "sachs_residuals.png", dpi=130)
    whole = load_sachs()
    verdicts = []
    for data in (X, whole):
        half = np.random.default_rng(0).permutation(len(data)) < len(data) // 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            halves = {f"degree {d}": ISODUS(degree=d).fit(data[half]) for d in (2, 4)}
        verdicts.append(compare(halves, data[~half]).verdict)
    worst = "\n".join(
        f"| {called(name)} | {row['statistic']:.3f} | {row['p_value']:.2g} | {row['q_value']:.2g} |"
        for name, row in fit.residuals.sort_values("p_value").head(5).iterrows()
    )
    text = f"""# Eleven proteins: how sure is the graph?

Made by `python docs/make_sachs.py`, pictures and figures too. The data are {len(X)} single cells of the first
experimental condition of Sachs et al. (2005), log10 of the fluorescence of eleven proteins: `load_sachs`.

```python
from isodus import ISODUS
from isodus.datasets import load_sachs

X = load_sachs(condition=True)
X = X[X["condition"] == 1].drop(columns="condition")
est = ISODUS(degree=4).fit(X)
pairs = est.model_.interactions()  # a row a pair of proteins: all its terms tested at once
pairs[pairs["q_value"] < 0.05]
```

The fit ends after {est.n_iter_[0]} Newton steps as: {", ".join(sorted(set(est.status_)))}.

## Which proteins interact

A pair has six terms up to degree 4; Wald's test asks whether all of them are zero, and q is the false discovery rate
(Benjamini and Hochberg) among the {len(pairs)} pairs. "Published": neighbours in the network of Sachs et al., which was
learned from all conditions, with interventions; directions are left out.

{table(found)}

The graphical lasso, with its penalty chosen by cross-validation, has {len(lasso_edges)} pairs, of which {right} are
published; it has no p-values. A Gaussian's partial correlations (`isodus.metrics.partial_correlations`, degree 2) with
q < 0.05 are {len(partial_found)} pairs, of which {len(partial_found & EDGES)} are published.

![Graphs of both](images/sachs_graph.png)

Blue: published. Orange: not. Dotted: published and not found.

## Does the model fit?

`est.goodness_of_fit(X)` says: **{fit.verdict}**

Residuals are P(X_i ≤ x_i | rest), uniform if the model is right; the p-values allow for the model having been fitted to
the same cells. The worst variables:

| variable | Kolmogorov–Smirnov | p | q |
| --- | --- | --- | --- |
{worst}

![Residuals](images/sachs_residuals.png)

## Is it worth going beyond a Gaussian?

Learned from one half of the cells and scored on the other, `isodus.compare` says of this condition, of which half is
{len(X) // 2} cells: **{verdicts[0]}**.

And of all {len(whole):,} cells of nine conditions, whose mixture is less Gaussian than each: **{verdicts[1]}**.

## What the library warned of

{chr(10).join(f"- {message}" for message in said)}
"""
    (HERE / "sachs.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
