"""Samples: the only door for tables, and sums over blocks of rows."""

from .facts import ColumnFacts, column_facts
from .samples import Block, Kept, MemorySamples, Samples, Weights, as_samples, checked_groups, checked_weights
from .tables import columns_of

__all__ = [
    "Block",
    "ColumnFacts",
    "Kept",
    "MemorySamples",
    "Samples",
    "Weights",
    "as_samples",
    "checked_groups",
    "checked_weights",
    "column_facts",
    "columns_of",
]
