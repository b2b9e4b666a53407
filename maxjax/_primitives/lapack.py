"""LAPACK for stacks of matrices: calls of the pack's ``linalg.mojo``, which both tiers make.

The routines are SciPy's, by the addresses that ``scipy.linalg.cython_lapack`` publishes.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxjax._base import dtypes, native
from maxjax._base.lazy import cython_blas, cython_lapack
from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering

LAPACK_DTYPES = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def not_lapack(name: str, dtype: object) -> TypeError:
    """The error for an operand that is of none of these."""
    return TypeError(f"{name} does not accept dtype {dtype} at position 0. Accepted dtypes at "
                     "position 0 are subtypes of float32, complex128, complex64, float64.")


_PREFIXES = dict(zip(LAPACK_DTYPES, "sdcz", strict=True))


class Call(NamedTuple):
    """A function of the pack, its integers (but for the number of threads) and its results."""

    kind: str
    integers: tuple[int, ...]
    results: Sequence[ShapedArray]


def stack_size(aval: ShapedArray) -> int:
    """The number of matrices."""
    return math.prod(aval.shape[:-2])


class Routine(int):
    """Where a routine begins, in this process.

    Attributes:
      name: as in LAPACK.
    """

    name: str


@functools.cache
def address(names: str, dtype: np.dtype) -> Routine:
    """Where a routine of LAPACK or BLAS begins; of two names, the real or the complex one's.

    ``address("orgqr ungqr", dtype)`` is that of ``dorgqr`` for float64, ``zungqr`` for complex128.
    """
    chosen = names.split()
    name = _PREFIXES[dtype] + chosen[-1 if dtypes.is_complex(dtype) else 0]
    table = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    found = Routine(capsule_pointer(table[name], capsule_name(table[name])))
    found.name = name
    routines[int(found)] = found
    return found


# Those that were asked for, by their addresses.
routines: dict[int, Routine] = {}


capsule_name: Any = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi))
capsule_pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


@functools.cache
def bits(value: float, dtype: np.dtype) -> int:
    """The bits of a real value of a dtype's kind; of 32 bits twice."""
    data = np.full(2, value, dtypes.real_dtype(dtype)).tobytes()[:8]
    return int.from_bytes(data, "little", signed=True)


@functools.cache
def one_bits(dtype: np.dtype) -> int:
    """The bits of one; the real part's, of a complex dtype."""
    real = dtypes.real_dtype(dtype)
    return int(np.ones((), real).view(f"i{real.itemsize}"))


def run(call: Call, arrays: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """The results of a call in tier 0, if the pack is there and there are matrices enough."""
    dtype, count = arrays[0].dtype, call.integers[0]
    function = native.find(call.kind, dtype, arrays[0].size) if count > 1 else None
    if function is None:
        return None
    outs = [np.empty(aval.shape, aval.dtype) for aval in call.results]
    # Threads are worth it as soon as there are several matrices: the pack knows how many.
    function([*map(np.ascontiguousarray, arrays), *outs], call.integers, native.PARALLEL)
    return outs


def lower(ctx: Lowering, call: Call, values: Sequence[object]) -> list[Any]:
    """The results of a call in a program."""
    return ctx.matrices(call.kind, values, call.integers,
                        [(aval.shape, aval.dtype) for aval in call.results])
