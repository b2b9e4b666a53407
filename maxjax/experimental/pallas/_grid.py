"""Which point of a grid a kernel is at."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base.interrupts import context_manager


class _Point(threading.local):
    """The point of the grid at which this thread traces a kernel or an index map.

    Attributes:
      indices, sizes: of each dimension of the grid; None outside kernels.
    """

    indices: Sequence[Any] | None = None
    sizes: Sequence[Any] = ()


_point = _Point()


@context_manager
def at(indices: Sequence[Any], sizes: Sequence[Any]) -> Iterator[None]:
    """What is traced inside is at this point."""
    before = _point.indices, _point.sizes
    try:
        _point.indices, _point.sizes = indices, sizes
        yield
    finally:
        _point.indices, _point.sizes = before


def _along(axis: int, what: str) -> tuple[Any, Any]:
    if _point.indices is None:
        raise AssertionError(f"{what} is for kernels of pallas_call and their index maps")
    if axis not in range(len(_point.indices)):
        raise ValueError(f"Axis {axis} is out of bounds for grid {tuple(_point.sizes)}")
    return _point.indices[axis], _point.sizes[axis]


def program_id(axis: int) -> Any:
    """The index in the grid along an axis, a traced int32.

    Raises:
      ValueError: the grid has no such axis.

    >>> pl = jax.experimental.pallas
    >>> def kernel(o_ref):
    ...     o_ref[pl.program_id(0)] = 10 * pl.program_id(0)
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.int32), grid=3, interpret=True)()
    Array([ 0, 10, 20], dtype=int32)
    """
    return _along(axis, "program_id")[0]


def num_programs(axis: int) -> Any:
    """The size of the grid along an axis, an integer where it is one.

    Raises:
      ValueError: the grid has no such axis.

    >>> pl = jax.experimental.pallas
    >>> def kernel(o_ref):
    ...     o_ref[pl.program_id(0)] = pl.num_programs(0)
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.int32), grid=3, interpret=True)()
    Array([3, 3, 3], dtype=int32)
    """
    return _along(axis, "num_programs")[1]


def unraveled(step: Any, sizes: Sequence[Any]) -> list[Any]:
    """The indices of a step: the last varies fastest."""
    indices = []
    for size in reversed(sizes):
        size = jnp.int32(size)
        indices.append(lax.rem(step, size))
        step = lax.div(step, size)
    return indices[::-1]
