"""Array namespaces, host copies and memory: the little that differs between array libraries.

Everything that touches samples asks the array for its namespace (``xp = namespace(x)``) and uses
only functions of the array API standard. The two places where the standard lacks what speed needs,
writing a product into existing memory and asking how much memory is free, are here.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from functools import cache
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import array_api_compat
import numpy as np
from threadpoolctl import ThreadpoolController

__all__ = [
    "add_to_rows",
    "available_memory",
    "gram",
    "matmul_into",
    "multiply_into",
    "namespace",
    "on_accelerator",
    "on_device",
    "one_blas_thread",
    "rows_at_once",
    "set_rows",
    "to_host",
    "transposed",
    "unmasked",
    "writable",
]

Array = Any
"""An array of any library that follows the array API standard."""

_GROUP = Path("/sys/fs/cgroup")
_CONTROL = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
_LINE = 64  # bytes of a cache line
_SHARE, _MOST_ROWS = (
    16,
    1 << 18,
)  # of an accelerator's free memory for a block; integrals take some hundred numbers a row


@cache
def _blas() -> ThreadpoolController:
    """Looking for the loaded BLAS libraries takes a millisecond: once is enough."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """While it lasts, products of matrices stay in their thread: those here are small, or in threads already."""
    return _blas().limit(limits=1, user_api="blas")


def namespace(x: Array) -> Any:
    """The module whose functions follow the array API standard for arrays like `x`."""
    return np if type(x) is np.ndarray else array_api_compat.array_namespace(x)


def multiply_into(out: Array, x: Array, y: Array) -> None:
    """``out[...] = x * y``, without a temporary array where the library can."""
    if type(out) is np.ndarray:
        np.multiply(x, y, out=out)
    elif _writes_into(out):
        namespace(out).multiply(x, y, out=out)
    else:
        out[...] = x * y


def matmul_into(out: Array, A: Array, B: Array) -> None:
    """``out[...] = A @ B``, without a temporary array where the library can."""
    if type(out) is np.ndarray:
        np.matmul(A, B, out=out)
    elif _writes_into(out):
        namespace(out).matmul(A, B, out=out)
    else:
        out[...] = A @ B


def _writes_into(out: Array) -> bool:
    return array_api_compat.is_torch_array(out) or array_api_compat.is_cupy_array(out)


def add_to_rows(out: Array, rows: slice | np.ndarray, values: Array) -> None:
    """``out[rows] += values``; row by row where the library has no index arrays, or rows are not all different."""
    if isinstance(rows, slice) or (type(out) is np.ndarray and len(set(rows.tolist())) == len(rows)):
        out[rows, ...] += values
    else:
        for j, row in enumerate(rows.tolist()):
            out[row, ...] += values[j, ...]


def set_rows(out: Array, rows: np.ndarray, values: Array, axis: int = 0) -> None:
    """``out[rows] = values`` along one axis, for rows in ascending order; row by row where it must be."""
    before: tuple[Any, ...] = (slice(None),) * axis
    if len(rows) == rows[-1] - rows[0] + 1:
        out[(*before, slice(int(rows[0]), int(rows[-1]) + 1), ...)] = values
    elif type(out) is np.ndarray:
        out[(*before, rows)] = values
    else:
        for j, row in enumerate(rows.tolist()):
            out[(*before, row, ...)] = values[(*before, j, ...)]


def empty(shape: tuple[int, ...], like: Array) -> Array:
    """An uninitialised array of the library, device and type of `like`, on a cache line's boundary.

    Products of rows that start in the middle of a cache line take up to twice the time, and NumPy does not
    see to it by itself.
    """
    if type(like) is not np.ndarray:
        return namespace(like).empty(shape, dtype=like.dtype, device=like.device)
    size, step = prod(shape), like.itemsize
    memory = np.empty(size + _LINE // step, like.dtype)
    start = -memory.__array_interface__["data"][0] % _LINE // step
    return memory[start : start + size].reshape(shape)


def gram(G: Array) -> Array:
    """G Gᵀ without its first row; few rows are multiplied faster as a general than as a symmetric product."""
    if G.shape[0] < 20:
        return G[1:, :] @ namespace(G).matrix_transpose(G)
    return (G @ namespace(G).matrix_transpose(G))[1:, :]


def contract(a: Array, u: Array) -> Array:
    """Σ_l a_l u_l over the first axis."""
    if type(a) is np.ndarray:
        return np.einsum("l...,l...->...", a, u)
    return namespace(a).sum(a * u, axis=0)


def on_device(x: np.ndarray, like: Array) -> Array:
    """A host array as an array of the library, device and floating type of `like`."""
    if type(like) is np.ndarray:
        with np.errstate(over="ignore"):
            return x.astype(like.dtype, copy=False) if x.dtype.kind == "f" else x
    xp = namespace(like)
    dtype = like.dtype if x.dtype.kind == "f" else xp.int64
    return xp.asarray(x, dtype=dtype, device=array_api_compat.device(like))


def transposed(X: Array) -> Array:
    """Xᵀ with contiguous rows, in new memory."""
    out = empty((X.shape[1], X.shape[0]), X)
    out[...] = namespace(X).matrix_transpose(X)
    return out


def to_host(x: Array) -> np.ndarray:
    """A copy of `x` in host memory as a NumPy array."""
    if isinstance(x, np.ndarray) or np.isscalar(x):
        return np.asarray(x)
    if array_api_compat.is_cupy_array(x):
        return x.get()
    return np.asarray(array_api_compat.to_device(x, "cpu") if hasattr(x, "to") else x)


def unmasked(x: Any) -> Any:
    """`x`, or, if it is a masked array, that with NaN for what is masked, which would else count as if it were not."""
    if not isinstance(x, np.ma.MaskedArray):
        return x
    return np.ma.filled(x.astype(np.float64), np.nan) if np.ma.is_masked(x) else x.data


def writable(x: Array) -> Array:
    """`x`, or, if it is JAX's, which cannot be written to, what shares its memory on the same device and can.

    That is NumPy on the host and PyTorch or CuPy, whichever is there, on an accelerator.
    """
    if not array_api_compat.is_jax_array(x):
        return x
    if next(iter(x.devices())).platform == "cpu":
        return np.asarray(x)
    for library in ("torch", "cupy"):
        try:
            return import_module(library).from_dlpack(x)
        except ImportError:
            continue
    raise ValueError(
        "X is a JAX array on an accelerator: to compute there PyTorch or CuPy is needed beside JAX. Install one, or "
        "pass numpy.asarray(X)"
    )


def on_accelerator(x: Array) -> bool:
    """Whether an array lies in memory of its own, away from the host's."""
    return array_api_compat.is_cupy_array(x) or (array_api_compat.is_torch_array(x) and x.device.type != "cpu")


def rows_at_once(x: Array, on_host: int, width: int, most: int = _MOST_ROWS) -> int:
    """How many rows a block of samples has: `on_host`, where it is to stay in cache; many on an accelerator.

    There every call costs as much as thousands of rows, and memory is the limit; width: bytes a row takes. At most
    `most`.
    """
    if not on_accelerator(x):
        return on_host
    return int(np.clip(_accelerator_memory(x) // (_SHARE * width), on_host, most))


def _accelerator_memory(x: Array) -> int:
    """Bytes that are free where an array of an accelerator lies; 4 GiB where the library does not say."""
    if array_api_compat.is_cupy_array(x):
        return int(x.device.mem_info[0])
    if x.device.type == "cuda":
        return int(import_module("torch").cuda.mem_get_info(x.device)[0])
    return 4 << 30


def available_memory() -> int:
    """Bytes of host memory that could be allocated now; 8 GiB where the system does not say."""
    return min(_left_on_host(), _left_in_container())


def _left_on_host() -> int:
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


def _left_in_container() -> int:
    """What a control group, as of a container or a batch job, leaves; its cache of files can be had back."""
    for limit, usage in _CONTROL:
        try:
            most, used = int((_GROUP / limit).read_text()), int((_GROUP / usage).read_text())
            stat = (_GROUP / limit).with_name("memory.stat").read_text().split()
            cache = int(stat[stat.index("inactive_file") + 1]) if "inactive_file" in stat else 0
            return max(most - used + cache, 0)
        except (OSError, ValueError):  # none, or "max": no limit
            continue
    return sys.maxsize
