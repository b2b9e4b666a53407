"""The argument ``strategy`` of ``x.at[index].get()``: ways of reading that indices must allow."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from maxjax._ir.trace import Array
from maxjax._primitives.gather_plan import GatherScatterMode
from maxjax.numpy._index_parsing import Slice, as_tuple

_NAMES = ("auto", "gather", "static_slice", "dynamic_slice")


def check_strategy(strategy: Any, shape: tuple[int, ...], index: Any,
                   mode: str | GatherScatterMode | None, wrap_negative_indices: bool) -> None:
    """Checks that an index can be read in the way that is asked for.

    Raises:
      TypeError: the strategy is no text, or an entry of the index is not one that it takes.
      ValueError: there is no such strategy, or it does not go with the mode.
      IndexError: a constant is out of bounds.
    """
    if strategy == "auto":
        return
    if not isinstance(strategy, str):
        raise TypeError(f"Expected strategy to be IndexingStrategy or str; got {strategy}")
    if strategy not in _NAMES:
        raise ValueError(f"Unknown indexing strategy: {strategy!r}")
    if strategy == "gather":
        return
    wanted = GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else (
        GatherScatterMode.from_any(mode))
    if wanted not in (GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP):
        raise ValueError(f"{strategy} requires mode='promise_in_bounds' or mode='clip'")
    entries = as_tuple(index)
    used = sum(entry is not None and entry is not Ellipsis for entry in entries)
    dimension = 0
    for position, entry in enumerate(entries):
        if entry is None:
            continue
        if entry is Ellipsis:
            dimension += len(shape) - used
            continue
        if strategy == "static_slice":
            _check_static(entry, position, dimension, shape, wrap_negative_indices)
        else:
            _check_dynamic(entry, position)
        dimension += 1


def _is_integer(entry: object) -> bool:
    if isinstance(entry, (bool, np.bool_)):
        return False
    try:
        operator.index(entry)       # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _check_static(entry: Any, position: int, dimension: int, shape: tuple[int, ...],
                  wrap: bool) -> None:
    if isinstance(entry, (Array, Slice)) or not (isinstance(entry, slice) or _is_integer(entry)):
        raise TypeError("static_slice: indices must be static scalars or slices. Got index of type "
                        f"{type(entry)} at position {position}")
    if not isinstance(entry, slice) and dimension < len(shape):
        size = shape[dimension]
        if not (-size if wrap else 0) <= operator.index(entry) < size:
            raise IndexError(f"index {entry} out of bounds for axis {dimension} with size {size} "
                             f"(normalize_indices={wrap})")


def _check_dynamic(entry: Any, position: int) -> None:
    if isinstance(entry, slice):
        if entry.step not in (None, 1, -1):
            raise TypeError("dynamic_slice: only unit steps supported in slice. Got "
                            f"{entry} at position {position}")
    elif not isinstance(entry, Slice) and np.ndim(entry) or isinstance(entry, (bool, np.bool_)):
        raise TypeError("dynamic_slice: only scalar indices allowed. Got index of type "
                        f"{type(entry)} at position {position}")
