"""How sure estimates are, by making them again: the bootstrap, and stability of what a penalty keeps."""

from .bootstrap import Bootstrap, bootstrap
from .stability import expected_false, selection_frequencies

__all__ = ["Bootstrap", "bootstrap", "expected_false", "selection_frequencies"]
