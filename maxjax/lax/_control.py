"""Control flow: loops, branches, and functions built from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base import dtypes, pytree
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.cond import cond, cond_p, platform_dependent, switch
from maxjax._higher_order.control import operands_of
from maxjax._higher_order.implicit import custom_linear_solve, custom_root, linear_solve_p
from maxjax._higher_order.scan import scan, scan_for, scan_p
from maxjax._higher_order.while_loop import fori_loop, while_loop, while_p
from maxjax._primitives.arithmetic import add_p
from maxjax._primitives.comparison import or_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape, rev_p
from maxjax._primitives.slicing import pad, slice_in_dim, slice_p
from maxjax._transforms.vmap import vmap

__all__ = [
    "associative_scan", "cond", "cond_p", "custom_linear_solve", "custom_root", "fori_loop",
    "linear_solve_p", "map", "platform_dependent", "scan", "scan_p", "switch", "while_loop",
    "while_p",
]


@boundary
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """Applies ``f`` to each slice of ``xs`` along the leading axis, one after the other.

    Args:
      f: a function of a slice, pytrees both.
      xs: a pytree of arrays ``(n, ...)``.
      batch_size: the number of slices per step, applied with ``vmap``.

    Returns:
      The results, stacked along a new leading axis.

    Raises:
      ValueError: leading sizes differ, or there are no arrays.
      TypeError: ``batch_size`` is negative.

    See also: ``lax.scan``, ``jax.vmap``, ``lax.fori_loop``.

    >>> map(lambda x: 2 * x, jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    if not batch_size:
        return scan_for(lambda carry, x: (carry, f(x)), (), xs, None, owner=f, key="map")[1]
    leaves, tree = pytree.flatten(xs)
    values = operands_of(leaves)
    for value in values:
        if not value.aval.shape:
            raise ValueError(f"scan got value with no leading axis to scan over: {value}.")
    count = min((value.aval.shape[0] for value in values), default=0)
    if batch_size < 0 and count:
        raise TypeError(f"map: batch_size must be positive, got {batch_size}")
    whole = count - count % batch_size
    batched = vmap(f)
    batches = [reshape(x if whole == count else slice_in_dim(x, 0, whole, 0),
                       (whole // batch_size, batch_size, *x.aval.shape[1:])) for x in values]
    rest = [slice_in_dim(x, whole, count, 0) for x in values] if whole < count else []
    parts = []
    if whole:
        parts.append(scan_for(lambda carry, x: (carry, batched(x)), (),
                              pytree.unflatten(tree, batches), None, owner=f, key="map of vmap")[1])
    if rest or not whole:
        parts.append(batched(pytree.unflatten(tree, rest or values)))
    if whole:
        parts[0] = pytree.map(lambda y: reshape(y, (whole, *y.aval.shape[2:])), parts[0])
    return parts[0] if len(parts) == 1 else pytree.map(
        lambda left, right: concatenate([left, right], 0), *parts)


@boundary
def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False,
                     axis: int = 0) -> Any:
    """The prefix results of an associative operation along an axis, in logarithmic depth.

    Args:
      fn: ``(before, element) -> result`` on pytrees like ``elems``; works on batches of elements.
      elems: arrays of one size along ``axis``.
      reverse: from the last element to the first, so that ``before`` is after the element.
      axis: along which.

    Returns:
      A pytree like ``elems``, whose element i combines those up to i.

    Raises:
      TypeError: ``fn`` is not callable.
      ValueError: sizes differ along the axis, or there is no such axis.

    See also: ``lax.scan``, ``lax.cumsum``, ``lax.cumprod``, ``jnp.cumsum``.

    >>> associative_scan(jnp.add, jnp.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    if not callable(fn):
        raise TypeError("lax.associative_scan: fn argument should be callable.")
    leaves, tree = pytree.flatten(elems)
    values = operands_of(leaves)
    if not values:
        return elems
    rank = values[0].aval.ndim
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {rank}")
    axis %= rank
    count = values[0].aval.shape[axis]
    if any(value.aval.shape[axis] != count for value in values[1:]):
        raise ValueError("Array inputs to associative_scan must have the same first dimension. "
                         f"(saw: {[value.aval.shape for value in values]})")

    def cut(xs: list[Any], start: int, stop: int, stride: int = 1) -> list[Any]:
        results = []
        for x in xs:
            starts, limits, strides = [0] * x.aval.ndim, list(x.aval.shape), [1] * x.aval.ndim
            starts[axis], limits[axis], strides[axis] = start, stop, stride
            results.append(slice_p.bind(
                x, start_indices=tuple(starts), limit_indices=tuple(limits),
                strides=tuple(strides)))
        return results

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        return operands_of(pytree.leaves(fn(
            pytree.unflatten(tree, left), pytree.unflatten(tree, right))))

    def partial(xs: list[Any]) -> list[Any]:
        size = xs[0].aval.shape[axis]
        if size < 2:
            return xs
        # Results at odd positions are those of pairs; one more step gives the even positions.
        odd = partial(combine(cut(xs, 0, size - 1, 2), cut(xs, 1, size, 2)))
        before = cut(odd, 0, size // 2 - 1) if size % 2 == 0 else odd
        even = combine(before, cut(xs, 2, size, 2))
        even = [concatenate([x, y], axis) for x, y in zip(cut(xs, 0, 1), even, strict=True)]
        return [_interleave(x, y, axis) for x, y in zip(even, odd, strict=True)]

    if reverse:
        values = [rev_p.bind(x, dimensions=(axis,)) for x in values]
    results = partial(values)
    if reverse:
        results = [rev_p.bind(x, dimensions=(axis,)) for x in results]
    return pytree.unflatten(tree, results)


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    """Interleaves the elements; ``even`` has as many, or one more."""
    counts = even.aval.shape[axis], odd.aval.shape[axis]

    def spread(x: Any, low: int, high: int) -> Any:
        config = [(0, 0, 0)] * x.aval.ndim
        config[axis] = (low, high, 1)
        return pad(x, 0, config)

    join = or_p if dtypes.is_bool(even.aval.dtype) else add_p
    return join.bind(spread(even, 0, int(counts[0] == counts[1])),
                     spread(odd, 1, int(counts[0] != counts[1])))
