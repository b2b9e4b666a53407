"""jax.experimental.pallas.triton: what kernels for GPUs name, as far as it can be interpreted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base.missing import explain_missing_names

explain_missing_names(__name__)


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of the compiler for GPUs; the interpreter ignores them."""

    num_warps: int | None = None
    num_stages: int | None = None


def load(ref: Any, *, mask: Any = None, other: Any = None, cache_modifier: str | None = None,
         eviction_policy: str | None = None, volatile: bool = False) -> Any:
    """What a reference holds where the mask holds, and ``other`` elsewhere.

    Raises:
      ValueError: ``other`` without a mask.
    """
    value = ref[...]
    if other is None:
        return value
    if mask is None:
        raise ValueError("`other` requires a `mask`.")
    return jnp.where(mask, value, jnp.asarray(other, value.dtype))


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Writes, where the mask holds."""
    ref[...] = val if mask is None else jnp.where(mask, val, ref[...])


def _atomic(name: str, combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def operation(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Any:
        old = x_ref_or_view[idx]
        new = combine(old, jnp.asarray(val, old.dtype))
        x_ref_or_view[idx] = new if mask is None else jnp.where(mask, new, old)
        return old

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = (f"``{name.removeprefix('atomic_')}`` into a part of a reference; gives "
                         "what was there.")
    return operation


atomic_add = _atomic("atomic_add", lambda old, new: old + new)
atomic_max = _atomic("atomic_max", jnp.maximum)
atomic_min = _atomic("atomic_min", jnp.minimum)
atomic_and = _atomic("atomic_and", lambda old, new: old & new)
atomic_or = _atomic("atomic_or", lambda old, new: old | new)
atomic_xor = _atomic("atomic_xor", lambda old, new: old ^ new)
atomic_xchg = _atomic("atomic_xchg", lambda old, new: new)


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Any:
    """Writes ``val`` where the reference, of a scalar, holds ``cmp``; gives what was there."""
    old = ref[...]
    ref[...] = jnp.where(old == cmp, jnp.asarray(val, old.dtype), old)
    return old


def approx_tanh(x: Any) -> Any:
    """``tanh``."""
    return lax.tanh(x)


def dot(a: Any, b: Any, trans_a: bool = False, trans_b: bool = False,
        allow_tf32: bool | None = None, precision: Any = None) -> Any:
    """The product of matrices, or of their transposes, in float32 or a wider dtype.

    Raises:
      ValueError: something else than two matrices.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError("`a` and `b` must be 2D arrays.")
    kind = jnp.promote_types(jnp.result_type(a, b), jnp.float32)
    return lax.dot_general(a, b, (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ())),
                           precision=precision, preferred_element_type=kind)


def debug_barrier() -> None:
    """Nothing: one program runs at a time."""


def max_contiguous(x: Any, values: Any) -> Any:
    """``x``, promised to have runs of so many: for compilers of devices."""
    return x
