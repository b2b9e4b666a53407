"""jax.ref: mutable array references."""

from __future__ import annotations

from typing import Any

from maxjax._base.missing import explain_missing_names
from maxjax._ir.refs import AbstractRef as AbstractRef
from maxjax._ir.refs import Ref as Ref
from maxjax._ir.refs import make_ref, read
from maxjax._ir.staging import StagingTrace, enclosing_traces, is_staging
from maxjax._ir.trace import Array, context
from maxjax._primitives.convert import convert_element_type
from maxjax._transforms.autodiff import leaf_operand
from maxjax.numpy import zeros
from maxjax.numpy._refs import addupdate as addupdate
from maxjax.numpy._refs import get as get
from maxjax.numpy._refs import set as set
from maxjax.numpy._refs import swap as swap


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None,
            pin: bool = False) -> Ref:
    """A mutable reference to an array, which is read and written by indexing.

    A function under ``jit`` takes references as arguments or closes over them, and its writes are
    visible outside; so do loops and branches. See ``docs/refs.md``.

    Args:
      init_val: the initial value: an array or number.
      memory_space: recorded in the type.
      kind: recorded in the type; with "no_grad_no_remat", writes have no derivatives.
      pin: whether XLA is to keep the array in one place; here it changes nothing.

    Returns:
      A ``Ref``.

    Raises:
      NotImplementedError: a ``memory_space`` or ``pin`` is given outside ``jit``.
      TypeError: ``init_val`` is neither an array nor a number.
      ValueError: in a ``shard_map`` outside ``jit``.

    See also: ``jax.freeze``, ``jax.Ref``, ``jax.ref.get``, ``jax.ref.swap``.

    >>> total = jax.new_ref(0.)
    >>> @jax.jit
    ... def add(x):
    ...     total[...] += x
    >>> add(2.)
    >>> add(3.)
    >>> total[...]
    Array(5., dtype=float32)
    """
    try:
        value = leaf_operand(init_val)
    except TypeError:
        raise TypeError(
            "Error interpreting argument to new_ref as a JAX value. The problematic value is of "
            f"type {type(init_val)} and was passed to new_ref at position 0.\n") from None
    if memory_space is not None and not is_staging():
        raise NotImplementedError("array ref with memory space only works inside of a `jit`.")
    if pin and not is_staging():
        raise NotImplementedError("pinned array ref only works inside of a `jit`.")
    tracing = next((trace for trace in enclosing_traces() if isinstance(trace, StagingTrace)), None)
    if getattr(tracing, "sees_values", False):
        raise ValueError("Eager shard_map cannot return a `jax.Ref`. Please wrap your shard_map in "
                         "`jax.jit`.")
    if not is_staging():      # outside jit JAX makes an array, which has a dtype of its own
        value = convert_element_type(value, value.aval.dtype)
    return make_ref(value, memory_space, kind)


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """A reference to an uninitialized array of a given type; only under ``jit``.

    Args:
      ty: anything with a shape and a dtype.
      pin: whether XLA is to keep the array in one place; here it changes nothing.

    Raises:
      NotImplementedError: outside ``jit``.

    >>> @jax.jit
    ... def copy(x):
    ...     ref = jax.empty_ref(jax.typeof(x))
    ...     ref[...] = x
    ...     return ref[...]
    >>> copy(3.)
    Array(3., dtype=float32)
    """
    if not is_staging():
        raise NotImplementedError("Evaluation rule for 'empty_ref' not implemented")
    return make_ref(zeros(ty.shape, ty.dtype), memory_space)


def freeze(ref: Ref) -> Array:
    """The final value of a reference, which can no longer be written.

    Inside a function that is being traced the reference must have been made there, and is invalid
    afterwards.

    Raises:
      ValueError: the reference comes from outside the function that is being traced.

    >>> ref = jax.new_ref(jnp.arange(3))
    >>> ref[0] = 7
    >>> jax.freeze(ref)
    Array([7, 1, 2], dtype=int32)
    """
    if not isinstance(ref, Ref):
        return ref
    value = read(ref)
    _invalidate(ref, "frozen")
    return value


def free_ref(ref: Ref) -> tuple[()]:
    """Releases a reference: inside a function that is being traced it is invalid afterwards.

    Raises:
      ValueError: the reference comes from outside the function that is being traced.

    >>> @jax.jit
    ... def double(x):
    ...     ref = jax.new_ref(x)
    ...     ref[...] += x
    ...     result = ref[...]
    ...     jax.free_ref(ref)
    ...     return result
    >>> double(2)
    Array(4, dtype=int32)
    """
    _invalidate(ref, "freed")
    return ()


def _invalidate(ref: Ref, how: str) -> None:
    owner = ref._storage.owner
    trace = context.trace
    while trace is not owner:
        if isinstance(trace, StagingTrace):
            raise ValueError(
                f"an array reference is {how} in the function that made it: this one, of type "
                f"{ref.aval}, comes from outside the function that is being traced")
        outer = trace.outwards()
        if outer is None:
            return
        trace = outer
    if is_staging():
        if ref._storage.invalid:
            raise ValueError(f"an array reference of type {ref.aval} was {ref._storage.invalid} "
                             "before")
        ref._storage.invalid = how


explain_missing_names(__name__)
