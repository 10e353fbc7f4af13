"""Interactions as a graph: pairs are edges, larger sets of variables are hyperedges."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import pandas as pd

from .fitted import Fitted
from .tables import check_share

__all__ = ["graph_of", "significant"]


def significant(table: pd.DataFrame, q: float | None, fitted: Fitted | None) -> pd.DataFrame:
    """The interactions with q_value at most q; all that are not zero where q is None or there are no tests by design.

    These are models that were not fitted, and those whose terms a penalty has chosen.
    """
    if q is None or fitted is None or fitted.selected:
        return table[table["strength"] > 0]
    q = check_share(q, "q")
    if len(table) and table["q_value"].isna().all():
        raise ValueError(
            f"The fit ended with status {fitted.status!r} and has no tests, so no interaction is significant. "
            "Use q=None for all interactions, or fit with a stronger penalty."
        )
    return table[table["q_value"] <= q]


def graph_of(table: pd.DataFrame, names: Sequence[str]) -> nx.Graph:
    """Nodes are all variables; edges have strength, p_value and q_value, and graph["hyperedges"] lists larger sets."""
    graph, larger = nx.Graph(), []
    graph.add_nodes_from(names)
    for key, row in zip(table.index, table.itertuples(index=False), strict=True):
        about = {name: float(getattr(row, name)) for name in ("strength", "p_value", "q_value")}
        variables = tuple(names[i] for i in key)
        if len(variables) == 2:
            graph.add_edge(*variables, **about)
        else:
            larger.append({"variables": variables, **about})
    graph.graph["hyperedges"] = larger
    return graph
