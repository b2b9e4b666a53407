"""What kernels do beside arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from maxjax import debug, lax, tree_util
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.api import jit
from maxjax._higher_order.constraints import reshard
from maxjax._ir.refs import make_ref, read
from maxjax.experimental.pallas._blocks import uninitialized
from maxjax.experimental.pallas._specs import CostEstimate, MemoryRef


def when(condition: Any, /) -> Callable[[Callable[[], None]], None]:
    """``@pl.when(condition)`` runs the function below where the condition holds.

    >>> pl = jax.experimental.pallas
    >>> @pl.when(True)
    ... def _():
    ...     print("yes")
    yes
    """
    def run(function: Callable[[], None]) -> None:
        if isinstance(condition, bool):
            if condition:
                function()
            return

        def taken() -> None:
            function()

        lax.cond(condition, taken, lambda: None)

    return run


def loop(lower: Any, upper: Any, *, init_carry: Any = None, step: Any = 1,
         unroll: int | bool | None = None) -> Callable[[Callable[..., Any]], Any]:
    """``@pl.loop(lower, upper)`` runs the function below for each index.

    Args:
      init_carry: with one, the function also takes what the iteration before gave, and the last
        result is the value of the decorated name.
      step: from one index to the next, positive.

    >>> pl = jax.experimental.pallas
    >>> def kernel(x_ref, o_ref):
    ...     @pl.loop(0, 3)
    ...     def _(i):
    ...         o_ref[i] = i * x_ref[i]
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.float32), interpret=True)(jnp.ones(3))
    Array([0., 1., 2.], dtype=float32)
    """
    def run(function: Callable[..., Any]) -> Any:
        count = cdiv(upper - lower, step)

        def body(number: Any, carry: Any) -> Any:
            index = lower + number * step
            if init_carry is None:
                function(index)
                return None
            return function(index, carry)

        return lax.fori_loop(0, count, body, init_carry, unroll=unroll)

    return run


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (),
               **kw_types: Any) -> Any:
    """The result of a function that is given references to fresh memory of these types.

    >>> pl = jax.experimental.pallas
    >>> def kernel(x_ref, o_ref):
    ...     def inside(scratch_ref):
    ...         scratch_ref[...] = x_ref[...] + 1
    ...         o_ref[...] = scratch_ref[...]
    ...     pl.run_scoped(inside, pl.ANY((3,), jnp.float32))
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.float32), interpret=True)(jnp.ones(3))
    Array([2., 2., 2.], dtype=float32)
    """
    shapes, tree = tree_util.tree_flatten(
        (types, kw_types), is_leaf=lambda x: isinstance(x, MemoryRef))
    shapes = [shape if isinstance(shape, MemoryRef) else shape.get_ref_aval() for shape in shapes]
    args, kwargs = tree_util.tree_unflatten(tree, [
        make_ref(uninitialized(shape.shape, shape.dtype)) for shape in shapes])
    return f(*args, **kwargs)


def with_scoped(*types: Any, collective_axes: Any = (), **kw_types: Any
                ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function is given references to fresh memory after its arguments.

    >>> pl = jax.experimental.pallas
    >>> @pl.with_scoped(pl.ANY((3,), jnp.float32))
    ... def kernel(x_ref, o_ref, scratch_ref):
    ...     scratch_ref[...] = x_ref[...] + 1
    ...     o_ref[...] = scratch_ref[...]
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.float32), interpret=True)(jnp.ones(3))
    Array([2., 2., 2.], dtype=float32)
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            return run_scoped(lambda *refs, **named: function(*args, *refs, **kwargs, **named),
                              *types, collective_axes=collective_axes, **kw_types)

        return call

    return decorate


def run_state(f: Callable[..., None]) -> Callable[..., Any]:
    """A function of values that gives ``f`` references to them, and what they are at the end.

    >>> pl = jax.experimental.pallas
    >>> def double(ref):
    ...     ref[...] = 2 * ref[...]
    >>> pl.run_state(double)(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    def call(values: Any) -> Any:
        leaves, tree = tree_util.tree_flatten(values)
        refs = [make_ref(jnp.asarray(leaf)) for leaf in leaves]
        f(tree_util.tree_unflatten(tree, refs))
        return tree_util.tree_unflatten(tree, [read(ref) for ref in refs])

    return call


def empty(shape: Sequence[int], dtype: Any, *, out_sharding: Any = None) -> Any:
    """An array that nobody has written.

    Args:
      out_sharding: where it is to lie.

    >>> pl = jax.experimental.pallas
    >>> pl.empty((2,), jnp.float32)
    Array([nan, nan], dtype=float32)
    """
    made = uninitialized(tuple(shape), dtypes.canonical(dtype))
    return made if out_sharding is None else reshard(made, out_sharding)


def empty_like(x: Any) -> Any:
    """Arrays of the same shapes and dtypes that nobody has written.

    >>> pl = jax.experimental.pallas
    >>> pl.empty_like(jnp.ones(2))
    Array([nan, nan], dtype=float32)
    """
    return tree_util.tree_map(lambda leaf: empty(leaf.shape, leaf.dtype), x)


def broadcast_to(a: Any, shape: tuple[int, ...]) -> Any:
    """``jnp.broadcast_to``.

    >>> pl = jax.experimental.pallas
    >>> pl.broadcast_to(jnp.ones(1), (2,))
    Array([1., 1.], dtype=float32)
    """
    return jnp.broadcast_to(a, shape)


def reciprocal(x: Any, *, approx: bool = False, full_range: bool = True) -> Any:
    """``1 / x``; an approximation is what devices give.

    >>> pl = jax.experimental.pallas
    >>> pl.reciprocal(jnp.float32(4))
    Array(0.25, dtype=float32)
    """
    return 1 / x


def debug_print(fmt: str, *args: Any) -> None:
    """Prints values while a kernel runs: ``jax.debug.print``.

    >>> pl = jax.experimental.pallas
    >>> def kernel(x_ref, o_ref):
    ...     pl.debug_print("x[0] is {}", x_ref[0])
    ...     o_ref[...] = x_ref[...]
    >>> pl.pallas_call(kernel, jax.ShapeDtypeStruct((3,), jnp.float32), interpret=True)(jnp.ones(3))
    x[0] is 1.0
    Array([1., 1., 1.], dtype=float32)
    """
    debug.print(fmt, *args)


def multiple_of(x: Any, values: Sequence[int] | int) -> Any:
    """``x``, promised to be a multiple of these: for compilers of devices.

    >>> pl = jax.experimental.pallas
    >>> pl.multiple_of(jnp.int32(8), 4)
    Array(8, dtype=int32)
    """
    return x


def cdiv(a: Any, b: Any) -> Any:
    """The quotient of integers, rounded up.

    >>> pl = jax.experimental.pallas
    >>> pl.cdiv(7, 2)
    4
    """
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return lax.div(a + (b - 1), b)


def align_to(a: Any, alignment: Any) -> Any:
    """The least multiple of ``alignment`` that is not below ``a``.

    >>> pl = jax.experimental.pallas
    >>> pl.align_to(5, 4)
    8
    """
    return cdiv(a, alignment) * alignment


def next_power_of_2(x: int) -> int:
    """The least power of two that is not below ``x``.

    Raises:
      ValueError: ``x`` is negative.

    >>> pl = jax.experimental.pallas
    >>> pl.next_power_of_2(5)
    8
    """
    if x < 0:
        raise ValueError("`next_power_of_2` requires a non-negative integer.")
    return 1 << (x - 1).bit_length() if x else 1


def strides_from_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The elements from one index to the next in each dimension of a row-major array.

    >>> pl = jax.experimental.pallas
    >>> pl.strides_from_shape((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[n + 1:]) for n in range(len(shape)))


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """What a function of arrays costs: its operations, and the bytes of arguments and results.

    >>> pl = jax.experimental.pallas
    >>> pl.estimate_cost(jnp.sin, jnp.ones(10)).transcendentals
    10
    """
    lowered = jit(fun).lower(*args, **kwargs)
    found = lowered.cost_analysis() or {}
    arrays = tree_util.tree_leaves(((args, kwargs), lowered.out_info))
    return CostEstimate(int(found.get("flops", 0)), int(found.get("transcendentals", 0)),
                        sum(array.size * array.dtype.itemsize for array in arrays))
