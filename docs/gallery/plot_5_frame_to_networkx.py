"""
From a DataFrame to networkx
============================

Thirteen measurements of 178 wines: a table goes in, a graph comes out, and networkx takes over.
"""

import warnings

import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd
from sklearn.datasets import load_wine

from isodus import ISODUS, selection_frequencies

# %%
# Columns keep their names. So few rows tell little beyond means and couplings, so degree 2 it is: a Gaussian, of which
# ``l1="auto"`` chooses the edges.

wine = load_wine(as_frame=True).data.rename(columns={"od280/od315_of_diluted_wines": "od280_od315"})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    est = ISODUS(degree=2, l1="auto").fit(wine)
for message in [*(warning.message for warning in caught), *est.notes_]:
    print("-", message)

# %%
# One column is rounded, so that 11 of its values are exactly 16: little enough to go on. What interacts most strongly:

print("\n".join(est.model_.summary(n_terms=5).splitlines()[2:8]))

# %%
# The graph has the strength of each coupling as "weight", in standardised variables, so that it can be compared from
# edge to edge.

graph = est.model_.graph()
pd.DataFrame(
    [(a, b, w) for a, b, w in graph.edges(data="weight")],
    columns=["a", "b", "weight"],
).sort_values("weight", ascending=False, ignore_index=True).round(3)

# %%
# From here on it is networkx: communities, centrality, layouts, files (``nx.write_graphml``).

communities = nx.community.greedy_modularity_communities(graph, weight="weight")
colour = {name: k for k, group in enumerate(communities) for name in group}
places = nx.kamada_kawai_layout(graph, weight=None)
figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
nx.draw_networkx_edges(graph, places, ax=ax, width=[4 * w for *_, w in graph.edges(data="weight")], edge_color="0.7")
nx.draw_networkx_nodes(graph, places, ax=ax, node_color=[colour[v] for v in graph], cmap="tab10", node_size=250)
nx.draw_networkx_labels(graph, {v: (x, y + 0.08) for v, (x, y) in places.items()}, ax=ax, font_size=8)
ax.set_axis_off()
ax.margins(0.12)
plt.show()

pd.Series(nx.degree_centrality(graph), name="degree centrality").sort_values(ascending=False).head(5).round(2)

# %%
# How stable are the edges? Choose again on random halves of the wines. What half of the rows keeps nearly always can
# be relied on; what it keeps now and then rests on few wines.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the same as above
    frequencies = selection_frequencies(ISODUS(degree=2, l1="auto"), wine, n_draws=20)
frequencies[frequencies["selected"]][["term", "frequency", "stderr"]].round(2)

# %%
# A hypergraph is the dictionary ``est.model_.hyperedges()``, sets of names with their strength: at degree 4 and
# ``max_order=4`` it holds threes and fours, which a graph cannot.

est.model_.hyperedges()
