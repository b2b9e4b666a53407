"""Operations of jax.lax that reduce or accumulate along dimensions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTreeSpec
from maxjax._base.specs import UnreducedKind
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.composed import bind_composed, reduce_p
from maxjax._higher_order.constraints import reduced_with_out_sharding, with_out_sharding
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import arithmetic, comparison, reduction
from maxjax._primitives.broadcasting import broadcast_in_dim, reduce_sum_p
from maxjax._primitives.comparison import gt_p, lt_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape, transpose
from maxjax._primitives.reduction import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_xor_p,
)
from maxjax._primitives.slicing import slice_in_dim
from maxjax._transforms.batching import batch_flat
from maxjax.lax._operands import check_accepted, integers
from maxjax.lax._operands import operand as as_operand

__all__ = [
    "argmax", "argmax_p", "argmin", "argmin_p", "cumlogsumexp", "cumlogsumexp_p", "cummax",
    "cummax_p", "cummin", "cummin_p", "cumprod", "cumprod_p", "cumsum", "cumsum_p", "reduce",
    "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p", "reduce_min", "reduce_min_p",
    "reduce_or", "reduce_or_p", "reduce_p", "reduce_prod", "reduce_prod_p", "reduce_sum",
    "reduce_sum_p", "reduce_xor", "reduce_xor_p",
]


def check_axes(x: Array, axes: Sequence[int]) -> tuple[int, ...]:
    axes = integers(axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axes' of reduction: {axes}")
    if not all(0 <= axis < x.ndim for axis in axes):
        raise ValueError(f"reduction axes {axes} contains out-of-bounds indices for "
                         f"{x.aval.str_short()}.")
    return axes


def _reduction(primitive: Primitive, what: str, example: tuple[str, str],
               numeric: bool = False, logical: bool = False) -> Callable[..., Array]:
    name = primitive.name

    def function(operand: Any, axes: Sequence[int]) -> Array:
        x = as_operand(operand, name)
        axes = integers(axes)
        if logical and any(axis >= x.ndim for axis in axes):
            raise IndexError(f"{name}: axes {axes} are out of bounds for {x.aval.str_short()}.")
        axes = check_axes(x, axes)
        if numeric and not dtypes.is_numeric(x.dtype):
            raise TypeError(f"{name} does not accept dtype {x.dtype}. Accepted dtypes are subtypes "
                            "of number.")
        if logical and not (dtypes.is_integer(x.dtype) or dtypes.is_bool(x.dtype)):
            raise TypeError("logical reduction requires operand dtype bool or int, got "
                            f"{x.dtype}.")
        return primitive.bind(x, axes=axes)

    function.__name__ = function.__qualname__ = name
    values, result = example
    function.__doc__ = f"""{what} along ``axes``, which are removed.

    Args:
      operand: an array.
      axes: the dimensions, counted from the left.

    Raises:
      ValueError: axes repeat, or are out of bounds.
      TypeError: the dtype is invalid.

    >>> lax.{name}(jnp.array({values}), (1,))
    {result}
    """
    return function


_sum = _reduction(reduce_sum_p, "The sum",
    ("[[1, 2], [3, 4]]", "Array([3, 7], dtype=int32)"), numeric=True)
reduce_prod = _reduction(reduce_prod_p, "The product",
    ("[[1, 2], [3, 4]]", "Array([ 2, 12], dtype=int32)"), numeric=True)
_max = _reduction(reduce_max_p, "The greatest element (NaN if there is one)",
    ("[[1., 2.], [3., jnp.nan]]", "Array([ 2., nan], dtype=float32)"))
_min = _reduction(reduce_min_p, "The least element (NaN if there is one)",
    ("[[1., 2.], [3., jnp.nan]]", "Array([ 1., nan], dtype=float32)"))
reduce_and = _reduction(reduce_and_p, "The bitwise conjunction",
    ("[[3, 6], [1, 2]]", "Array([2, 0], dtype=int32)"), logical=True)
reduce_or = _reduction(reduce_or_p, "The bitwise disjunction",
    ("[[3, 6], [1, 2]]", "Array([7, 3], dtype=int32)"), logical=True)
reduce_xor = _reduction(reduce_xor_p, "The bitwise exclusive disjunction",
    ("[[3, 6], [1, 2]]", "Array([5, 3], dtype=int32)"), logical=True)


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum along ``axes``, which are removed.

    Raises:
      ValueError: axes repeat, or are out of bounds.
      TypeError: the dtype is invalid.

    >>> lax.reduce_sum(jnp.arange(6).reshape(2, 3), (0,))
    Array([3, 5, 7], dtype=int32)
    """
    if out_sharding is not None:
        return reduced_with_out_sharding(_sum, UnreducedKind.sum, out_sharding, operand, axes)
    return _sum(operand, axes)


def reduce_max(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The greatest element along ``axes``, which are removed (NaN if there is one).

    Raises:
      ValueError: axes repeat, or are out of bounds.

    >>> lax.reduce_max(jnp.array([[1., 2.], [3., jnp.nan]]), (1,))
    Array([ 2., nan], dtype=float32)
    """
    if out_sharding is not None:
        return reduced_with_out_sharding(_max, UnreducedKind.max, out_sharding, operand, axes)
    return _max(operand, axes)


def reduce_min(operand: ArrayLike, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The least element along ``axes``, which are removed (NaN if there is one).

    Raises:
      ValueError: axes repeat, or are out of bounds.

    >>> lax.reduce_min(jnp.array([[1., 2.], [3., jnp.nan]]), (1,))
    Array([ 1., nan], dtype=float32)
    """
    if out_sharding is not None:
        return reduced_with_out_sharding(_min, UnreducedKind.min, out_sharding, operand, axes)
    return _min(operand, axes)


def _position(primitive: Primitive, what: str, order: Primitive) -> Callable[..., Array]:
    def function(operand: Any, axis: int, index_dtype: Any) -> Array:
        x = as_operand(operand, primitive.name)
        check_accepted(order, [x.aval, x.aval])
        dtype = dtypes.argument(index_dtype, primitive.name)
        if not 0 <= axis < x.ndim:
            raise ValueError(f"Invalid axis {axis} for operand shape {x.shape}")
        if not dtypes.is_integer(dtype):
            raise TypeError(f"index_dtype must be an integer type, but got {dtype.name}")
        axis = operator.index(axis)
        if x.shape[axis] < 1:
            raise ValueError("argmin and argmax require non-empty reduced dimension. "
                             f"operand.shape={x.shape} {axis=}")
        return primitive.bind(x, axes=(axis,), index_dtype=dtype)

    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = f"""The first position of the {what} element along an axis; NaN counts as it.

    Args:
      operand: an array.
      axis: counted from the left.
      index_dtype: the integer dtype of the result.

    Raises:
      ValueError: the axis is out of bounds, or empty.
      TypeError: ``index_dtype`` is no integer dtype.

    >>> lax.{primitive.name}(jnp.array([1., 3., jnp.nan]), 0, jnp.int8)
    Array(2, dtype=int8)
    """
    return function


argmax = _position(argmax_p, "greatest", gt_p)
argmin = _position(argmin_p, "least", lt_p)


def _cumulative(primitive: Primitive, what: str, result: str) -> Callable[..., Array]:
    name = primitive.name

    def function(operand: Any, axis: int = 0, reverse: bool = False) -> Array:
        x = as_operand(operand, name)
        if axis < 0:
            raise ValueError("XLA operations do not allow negative axes")
        if axis >= x.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of shape {x.shape}")
        if not dtypes.is_numeric(x.dtype):
            raise TypeError(f"{name} does not accept dtype {x.dtype}. Accepted dtypes are subtypes "
                            "of number.")
        if primitive is cumlogsumexp_p and dtypes.is_integer(x.dtype) and x.size:
            raise OverflowError(f"{name} of {x.dtype}: a sum of no elements has the logarithm "
                                "-infinity, which is no integer")
        return primitive.bind(x, axis=operator.index(axis), reverse=bool(reverse))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The cumulative {what} along an axis.

    Args:
      operand: an array of numbers.
      axis: counted from the left.
      reverse: from the last element to the first.

    Raises:
      ValueError: the axis is out of bounds.
      TypeError: the dtype is invalid.

    >>> lax.{name}(jnp.array([1., 3., 2.]))
    Array([{result}], dtype=float32)
    """
    return function


cumsum = _cumulative(cumsum_p, "sum", "1., 4., 6.")
cumprod = _cumulative(cumprod_p, "product", "1., 3., 6.")
cummax = _cumulative(cummax_p, "maximum", "1., 3., 3.")
cummin = _cumulative(cummin_p, "minimum", "1., 1., 1.")
cumlogsumexp = _cumulative(cumlogsumexp_p, "logarithm of the sum of exponentials",
    "1.      , 3.126928, 3.407606")


# --- reduce by any function -----------------------------------------------------------------------

def _all_ones(dtype: Any) -> Any:
    return True if dtype == dtypes.bool_ else np.invert(np.zeros((), dtype))


# The reductions with a primitive: the computation's primitive -> (reduction, identity).
MONOIDS: dict[Primitive, tuple[Primitive, Callable[[Any], Any]]] = {
    arithmetic.add_p: (reduce_sum_p, lambda dtype: 0),
    arithmetic.mul_p: (reduce_prod_p, lambda dtype: 1),
    arithmetic.max_p: (reduce_max_p, lambda dtype: dtypes.extremes(dtype)[0]),
    arithmetic.min_p: (reduce_min_p, lambda dtype: dtypes.extremes(dtype)[1]),
    comparison.and_p: (reduction.reduce_and_p, _all_ones),
    comparison.or_p: (reduction.reduce_or_p, lambda dtype: 0),
    comparison.xor_p: (reduction.reduce_xor_p, lambda dtype: 0),
}


class Computation:
    """A reduction's combining function of two scalars (or pytrees of them)."""

    def __init__(self, function: Callable[..., Any], tree: Any, avals: Sequence[Any], name: str):
        self.count = len(avals)

        def flat(*values: Any) -> list[Any]:
            left = pytree.unflatten(tree, values[:self.count])
            right = pytree.unflatten(tree, values[self.count:])
            leaves, out_tree = pytree.flatten(function(left, right))
            if out_tree != tree:
                raise ValueError(f"{name} output must have the same tree structure as the operands "
                                 f"{PyTreeDef(tree)} vs. {PyTreeDef(out_tree)}")
            return [as_operand(leaf, name) for leaf in leaves]

        scalars = [aval.update(shape=(), weak_type=False) for aval in avals]
        self.closed: ClosedJaxpr = trace_to_jaxpr(flat, [*scalars, *scalars], name, name)
        for aval, out in zip(scalars, self.closed.out_avals, strict=True):
            if out.shape or out.dtype != aval.dtype:
                raise TypeError(f"{name} computation must give scalars of its operands' dtypes: "
                                f"got {out.str_short()}, expected {aval.str_short()}.")

    @property
    def primitive(self) -> Primitive | None:
        """The one primitive that combines the two arguments, if that is all."""
        jaxpr = self.closed.jaxpr
        if self.count == 1 and len(jaxpr.eqns) == 1 and not self.closed.consts:
            eqn, = jaxpr.eqns
            whole = jaxpr.outvars[0] is eqn.outvars[0] and len(eqn.invars) == 2
            if whole and set(map(id, eqn.invars)) == set(map(id, jaxpr.invars)):
                return eqn.primitive
        return None

    def __call__(self, left: Sequence[Any], right: Sequence[Any]) -> list[Any]:
        """Elementwise, on arrays of one shape."""
        shape = left[0].shape
        flat = [reshape(x, (x.size,)) for x in (*left, *right)]
        outs, axes = batch_flat(
            lambda *xs: eval_jaxpr(self.closed.jaxpr, self.closed.consts, *xs),
            flat[0].size, flat, [0] * len(flat))
        return [reshape(out, shape) if axis is not None else broadcast_in_dim(out, shape, ())
                for out, axis in zip(outs, axes, strict=True)]


def check_initial_structure(operands: PyTreeSpec, init_values: Any) -> None:
    """Raises ValueError if the initial values are another pytree than the operands."""
    found = pytree.structure(init_values)
    if found != operands:
        raise ValueError("Operands must have the same tree structure as init_values: "
                         f"{PyTreeDef(operands)} vs. {PyTreeDef(found)}")


def initial_values(name: str, operands: Sequence[Array], inits: Sequence[Any]) -> list[Any]:
    """The initial values, in their operands' dtypes."""
    if len(operands) != len(inits):
        raise ValueError(f"{name} needs one initial value for each operand, got {len(inits)} for "
                        f"{len(operands)}.")
    # Numbers are known even while a function is traced, as ``is_identity`` asks.
    values = [installed.runtime.concrete(init) if isinstance(
        init, (int, float, complex, np.generic)) else as_operand(init, name) for init in inits]
    shapes = [value.shape for value in values]
    if any(shapes):
        if name == "reduce":
            raise ValueError(f"reduce found non-scalar initial value: {shapes}")
        raise TypeError(
            f"{name} expected init_values to be scalars but init_values have shapes {shapes}.")
    result = []
    for x, value in zip(operands, values, strict=True):
        if value.dtype != x.dtype:
            if not value.weak_type:
                raise TypeError(f"{name} operands and initial values must have the same dtypes, "
                                f"got {x.dtype} and {value.dtype}.")
            value = convert_element_type(value, x.dtype, False)
        result.append(value)
    return result


def strongly_typed(x: Array) -> Array:
    if x.weak_type and not x.ndim and not isinstance(x, Tracer):
        return installed.runtime.concrete(np.asarray(x))
    return convert_element_type(x, x.dtype, False)


def is_identity(value: Any, identity: Any) -> bool:
    """Whether a scalar is known to be ``identity``."""
    scalar = value.literal()
    return scalar is not None and bool(scalar == np.asarray(identity))


def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any],
           dimensions: Sequence[int], out_sharding: Any = None) -> Any:
    """Combines the elements along dimensions by a function of two.

    Args:
      operands: an array, or a pytree of arrays of one shape.
      init_values: scalars, likewise: the result for no elements.
      computation: an associative function of two such values; the order of combination is
        unspecified.
      dimensions: the dimensions to remove.

    Returns:
      An array (or a pytree) without the dimensions.

    Raises:
      ValueError: dimensions repeat, or are out of bounds.
      TypeError: dtypes or shapes do not fit.

    See also: ``lax.reduce_sum``, ``lax.reduce_window``, ``jnp.sum``.

    >>> lax.reduce(jnp.arange(1., 5.), 1., lambda x, y: x * y, (0,))
    Array(24., dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(
            reduce, out_sharding, operands, init_values, computation, dimensions)
    leaves, tree = pytree.flatten(operands)
    arrays = [as_operand(x, "reduce", position) for position, x in enumerate(leaves)]
    check_initial_structure(tree, init_values)
    inits = initial_values("reduce", arrays, pytree.leaves(init_values))
    if len({x.shape for x in arrays}) > 1:
        raise TypeError(f"reduce operands must have one shape, got {[x.shape for x in arrays]}.")
    axes = check_axes(arrays[0], dimensions)
    if not axes:      # as in JAX, the initial values are then ignored
        return pytree.unflatten(tree, arrays)
    # A result is weakly typed where both its array and its initial value are.
    arrays = [x if init.weak_type else strongly_typed(x)
              for x, init in zip(arrays, inits, strict=True)]
    combine = Computation(computation, tree, [x.aval for x in arrays], "reduce")
    single = combine.primitive
    known = None if single is None else MONOIDS.get(single)
    if single is not None and known is not None and not (
            known[0] in (reduce_sum_p, reduce_prod_p) and dtypes.is_bool(arrays[0].dtype)):
        primitive, identity = known
        out = primitive.bind(arrays[0], axes=axes)
        if not is_identity(inits[0], identity(arrays[0].dtype)):
            out = single.bind(inits[0], out)
        out = convert_element_type(out, out.dtype, arrays[0].weak_type)
        return pytree.unflatten(tree, [out])
    count = len(arrays)
    outs = bind_composed(
        reduce_p, lambda *xs: _fold(xs[:count], xs[count:], combine, axes), [*arrays, *inits],
        computation=computation, jaxpr=combine.closed.jaxpr, dimensions=axes)
    return pytree.unflatten(tree, [convert_element_type(out, out.dtype, x.weak_type)
                                   for out, x in zip(outs, arrays, strict=True)])


def _fold(arrays: Sequence[Array], inits: Sequence[Any], combine: Computation,
          axes: tuple[int, ...]) -> list[Any]:
    """Combines neighbours until one is left: log2(n) steps, in the order of the elements."""
    shape = arrays[0].shape
    kept = tuple(dim for dim in range(len(shape)) if dim not in axes)
    rest = tuple(shape[dim] for dim in kept)
    size = 1
    for axis in axes:
        size *= shape[axis]
    starts = [broadcast_in_dim(init, rest, ()) if rest else init for init in inits]
    if not size or 0 in rest:
        return starts
    values = [reshape(transpose(x, (*axes, *kept)), (size, *rest)) for x in arrays]
    while size > 1:
        half = size // 2
        joined = combine([slice_in_dim(x, 0, 2 * half - 1, 0, 2) for x in values],
                         [slice_in_dim(x, 1, 2 * half, 0, 2) for x in values])
        if size % 2:
            joined = [concatenate([x, slice_in_dim(last, size - 1, size, 0)], 0)
                      for x, last in zip(joined, values, strict=True)]
        values, size = joined, half + size % 2
    return combine(starts, [reshape(x, rest) for x in values])


