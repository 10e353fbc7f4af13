"""Draws from a model, its log Z, and missing values given the rest."""

from .draws import Draws, sample
from .filling import fill
from .graph import NoDensity
from .partition import LogPartition, log_partition

__all__ = ["Draws", "LogPartition", "NoDensity", "fill", "log_partition", "sample"]
