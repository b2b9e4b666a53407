"""Reductions of sliding windows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._higher_order.composed import bind_composed, reduce_window_p
from maxjax._ir.dimensions import constant_size
from maxjax._ir.trace import Array
from maxjax._primitives import arithmetic
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import select
from maxjax._primitives.convolution import dilated, output_spatial
from maxjax._primitives.slicing import pad_p, slice_p
from maxjax._primitives.window import (
    padded,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
)
from maxjax.lax._operands import integers
from maxjax.lax._operands import operand as as_operand
from maxjax.lax._reductions import (
    Computation,
    check_initial_structure,
    initial_values,
    is_identity,
    strongly_typed,
)
from maxjax.lax._window import PaddingType, padtype_to_pads

__all__ = ["reduce_window", "reduce_window_shape_tuple"]


def reduce_window_shape_tuple(operand_shape: Sequence[int], window_dimensions: Sequence[int],
                              window_strides: Sequence[int], padding: Any,
                              base_dilation: Sequence[int] | None = None,
                              window_dilation: Sequence[int] | None = None) -> tuple[int, ...]:
    """The shape of ``reduce_window``.

    Args:
      padding: pairs (before, after).

    >>> lax.reduce_window_shape_tuple((5, 6), (2, 2), (1, 2), [(0, 1), (1, 1)])
    (5, 4)
    """
    ones = (1,) * len(operand_shape)
    return tuple(constant_size(size) for size in output_spatial(
        operand_shape, window_dimensions, window_strides, padding,
        ones if base_dilation is None else base_dilation,
        ones if window_dilation is None else window_dilation))


# The reductions with a primitive: the computation's primitive -> (reduction, identity).
_MONOIDS = {
    arithmetic.add_p: (reduce_window_sum_p, lambda dtype: 0),
    arithmetic.max_p: (reduce_window_max_p, lambda dtype: dtypes.extremes(dtype)[0]),
    arithmetic.min_p: (reduce_window_min_p, lambda dtype: dtypes.extremes(dtype)[1]),
}


def reduce_window(operand: Any, init_value: Any, computation: Callable[[Any, Any], Any],
                  window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                  padding: str | Sequence[tuple[int, int]] = "VALID",
                  base_dilation: Sequence[int] | None = None,
                  window_dilation: Sequence[int] | None = None) -> Any:
    """Combines the elements of each window by a function of two.

    Args:
      operand: an array, or a pytree of arrays of one shape.
      init_value: a scalar (for each operand), the initial value of each window.
      computation: an associative function of two such values.
      window_dimensions: the size of windows in each dimension.
      window_strides: the distance between windows; 1 by default.
      padding: "VALID", "SAME", "SAME_LOWER" or pairs (before, after).
      base_dilation: the distance between elements.
      window_dilation: the same within windows.

    Returns:
      An array (or a pytree) with an element for each window, of the operand's dtype.

    Raises:
      TypeError: parameters do not fit the operand.

    See also: ``lax.reduce``, ``lax.conv_general_dilated``, ``lax.cumsum``,
    ``jax.nn.initializers.normal``.

    >>> lax.reduce_window(jnp.arange(5.), 0., lax.add, (2,), (2,))
    Array([1., 5.], dtype=float32)
    """
    leaves, tree = pytree.flatten(operand)
    arrays = [as_operand(x, "reduce_window", position) for position, x in enumerate(leaves)]
    check_initial_structure(tree, init_value)
    inits = initial_values("reduce_window", arrays, pytree.leaves(init_value))
    shape = arrays[0].shape
    params = _window_parameters(shape, window_dimensions, window_strides, padding, base_dilation,
                                window_dilation)
    strong = list(map(strongly_typed, arrays))
    combine = Computation(computation, tree, [x.aval for x in strong], "reduce_window")
    single = combine.primitive
    known = None if single is None else _MONOIDS.get(single)
    if single is not None and known is not None and not dtypes.is_bool(arrays[0].dtype):
        primitive, identity = known
        # Only a reduction that starts from its identity keeps a weak type, as in JAX.
        if is_identity(inits[0], identity(arrays[0].dtype)):
            return pytree.unflatten(tree, [primitive.bind(arrays[0], **params)])
        out = single.bind(strongly_typed(inits[0]), primitive.bind(strong[0], **params))
        return pytree.unflatten(tree, [out])
    arrays, inits = strong, list(map(strongly_typed, inits))
    count = len(arrays)
    return pytree.unflatten(tree, bind_composed(
        reduce_window_p, lambda *xs: _by_elements(xs[:count], xs[count:], combine, **params),
        [*arrays, *inits], jaxpr=combine.closed.jaxpr, consts=(), **params))


def _window_parameters(shape: tuple[int, ...], window_dimensions: Sequence[int],
                       window_strides: Any, padding: Any, base_dilation: Any,
                       window_dilation: Any) -> dict[str, Any]:
    name = "reduce_window"
    window = integers(window_dimensions)
    if len(window) != len(shape):
        raise TypeError(f"{name} got the wrong number of window_dimensions for operand: got "
                        f"operand shape {shape} with window_dimensions {window}.")
    values = {"window_dimensions": window}
    for what, given in (("window_strides", window_strides), ("base_dilation", base_dilation),
                        ("window_dilation", window_dilation)):
        values[what] = (1,) * len(shape) if given is None else integers(given)
        if len(values[what]) != len(window):
            raise TypeError(f"{name} got inconsistent {what} and window_dimensions: got {what} "
                            f"{values[what]} and window_dimensions {window}.")
    for what, numbers in values.items():
        if any(value < 1 for value in numbers):
            raise TypeError(f"{name} {what} must have every element be strictly positive, got "
                            f"{numbers}.")
    if isinstance(padding, (str, PaddingType)):
        effective = [dilated(width, d) for width, d in zip(
            window, values["window_dilation"], strict=True)]
        # As in JAX, padding is computed for the operand before its dilation.
        pads = padtype_to_pads(shape, effective, values["window_strides"], padding)
    else:
        pads = [(int(low), int(high)) for low, high in padding]
        if len(pads) != len(window):
            raise ValueError(f"{name} got inconsistent padding and window_dimensions: got padding "
                            f"{tuple(pads)} and window_dimensions {window}.")
    return {"window_dimensions": window, "window_strides": values["window_strides"],
            "padding": tuple(pads), "base_dilation": values["base_dilation"],
            "window_dilation": values["window_dilation"]}


def _by_elements(arrays: Sequence[Array], inits: Sequence[Any], combine: Computation, *,
                 window_dimensions: Any, window_strides: Any, padding: Any, base_dilation: Any,
                 window_dilation: Any) -> list[Any]:
    """Combines strided slices one by one, one for each element of a window. Padding and holes are
    skipped."""
    counts = output_spatial(arrays[0].shape, window_dimensions, window_strides, padding,
                            base_dilation, window_dilation)
    total = [broadcast_in_dim(init, counts, ()) if counts else init for init in inits]
    if not all(counts):
        return total
    config = tuple((low, high, d - 1) for (low, high), d in zip(
        padding, base_dilation, strict=True))
    wide = [pad_p.bind(x, init, padding_config=config) for x, init in zip(
        arrays, inits, strict=True)]
    inside = padded(np.ones(arrays[0].shape, np.bool_), False, padding, base_dilation)
    for offset in np.ndindex(*window_dimensions):
        starts = tuple(operator.mul(k, step) for k, step in zip(
            offset, window_dilation, strict=True))
        limits = tuple(start + (count - 1) * stride + 1 for start, count, stride in zip(
            starts, counts, window_strides, strict=True))
        joined = combine(total, [
            slice_p.bind(x, start_indices=starts, limit_indices=limits,
                         strides=window_strides) for x in wide])
        here = inside[tuple(map(slice, starts, limits, window_strides))]
        if not here.all():
            here = np.ascontiguousarray(here)
            joined = [select(here, before, after)
                      for before, after in zip(total, joined, strict=True)]
        total = joined
    return total
