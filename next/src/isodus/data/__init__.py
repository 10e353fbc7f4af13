"""Samples: the only door for tables, and sums over blocks of rows."""

from .clusters import Clusters
from .facts import ColumnFacts, column_facts, order_facts
from .partitions import in_task
from .samples import Block, Kept, MemorySamples, Samples, as_samples, opened, samples_of
from .stream import Stream, StreamSamples, open_samples, over_rows
from .tables import columns_of
from .weights import Weights, checked_weights

__all__ = [
    "Block",
    "Clusters",
    "ColumnFacts",
    "Kept",
    "MemorySamples",
    "Samples",
    "Stream",
    "StreamSamples",
    "Weights",
    "as_samples",
    "checked_weights",
    "column_facts",
    "columns_of",
    "in_task",
    "open_samples",
    "opened",
    "order_facts",
    "over_rows",
    "samples_of",
]
