"""The names of jax.interpreters.batching."""

from typing import Any

from maxjax._base import dtypes
from maxjax._primitives.creation import iota
from maxjax._transforms.batching import BatchTrace as BatchTrace
from maxjax._transforms.batching import BatchTracer as BatchTracer
from maxjax._transforms.vmappable import registered as _registered
from maxjax.interpreters import batching as _public


def is_vmappable(x: Any) -> bool:
    """Whether an object's class was given to ``register_vmappable``."""
    return type(x) in _registered


def make_iota(axis_size: int) -> Any:
    """The positions along a mapped axis."""
    return iota(dtypes.int32, (axis_size,), 0)


def to_elt(trace: BatchTrace, get_idx: Any, x: Any, spec: int | None) -> Any:
    """One element of an array that is mapped along an axis; None: it is not mapped."""
    return trace.box(x, spec)


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
