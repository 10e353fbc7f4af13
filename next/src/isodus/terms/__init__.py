"""Which products of functions a model has, and T, which writes the unknowns in them."""

from .basis import MonomialBasis, lattice
from .keys import Key, Product, count_up_to, key_of, keys_up_to, name_of, product_of
from .terms import Local, Terms
from .transform import to_powers

__all__ = [
    "Key",
    "Local",
    "MonomialBasis",
    "Product",
    "Terms",
    "count_up_to",
    "key_of",
    "keys_up_to",
    "lattice",
    "name_of",
    "product_of",
    "to_powers",
]
