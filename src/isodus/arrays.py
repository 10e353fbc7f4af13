"""Array namespaces, host copies and memory: the little that differs between array libraries.

Everything that touches samples asks the array for its namespace (``xp = namespace(x)``) and uses
only functions of the array API standard. The two places where the standard lacks what speed needs,
writing a product into existing memory and asking how much memory is free, are here.
"""

from __future__ import annotations

import os
from typing import Any

import array_api_compat
import numpy as np
from scipy.linalg.blas import dgemm

__all__ = [
    "available_memory",
    "gram",
    "matmul_into",
    "multiply_into",
    "namespace",
    "on_device",
    "to_host",
    "transposed",
]

Array = Any
"""An array of any library that follows the array API standard."""


def namespace(x: Array) -> Any:
    """The module whose functions follow the array API standard for arrays like `x`."""
    return np if type(x) is np.ndarray else array_api_compat.array_namespace(x)


def multiply_into(out: Array, x: Array, y: Array) -> None:
    """``out[...] = x * y``, without a temporary array where the library can."""
    if type(out) is np.ndarray:
        np.multiply(x, y, out=out)
    else:
        out[...] = x * y


def matmul_into(out: Array, A: Array, B: Array) -> None:
    """``out[...] = A @ B``, without a temporary array where the library can."""
    if type(out) is np.ndarray:
        np.matmul(A, B, out=out)
    else:
        out[...] = A @ B


def gram(G: Array) -> Array:
    """G Gᵀ. A few rows are multiplied faster as a general product than as a symmetric one."""
    if type(G) is np.ndarray and len(G) < 20 and G.dtype == np.float64:
        return dgemm(1.0, G.T, G.T, trans_a=True)
    return G @ namespace(G).matrix_transpose(G)


def on_device(x: np.ndarray, like: Array) -> Array:
    """A host array as an array of the library, device and floating type of `like`."""
    if type(like) is np.ndarray:
        return x
    xp = namespace(like)
    dtype = like.dtype if x.dtype.kind == "f" else xp.int64
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(like))


def transposed(X: Array) -> Array:
    """Xᵀ with contiguous rows, in new memory."""
    if type(X) is np.ndarray:
        return np.array(X.T, order="C")
    xp = namespace(X)
    return xp.asarray(xp.matrix_transpose(X), copy=True)


def to_host(x: Array) -> np.ndarray:
    """A copy of `x` in host memory as a NumPy array."""
    if isinstance(x, np.ndarray) or np.isscalar(x):
        return np.asarray(x)
    return np.asarray(array_api_compat.to_device(x, "cpu") if hasattr(x, "to") else x)


def available_memory() -> int:
    """Bytes of host memory that could be allocated now; 8 GiB where the system does not say."""
    try:
        with open("/proc/meminfo") as f:
            for line in f:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 << 30
