"""Operations of jax.lax that multiply arrays and sum over dimensions."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from maxjax._base import config, dtypes
from maxjax._higher_order.composed import bind_composed, ragged_dot_general_p, scaled_dot_p
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import arithmetic, broadcasting, comparison, convert, creation, layout
from maxjax._primitives.contraction import dot_general_p, result_type
from maxjax._primitives.cumulative import cumsum
from maxjax._primitives.widths import bit_width
from maxjax.lax._operands import integers
from maxjax.lax._operands import operand as as_operand

__all__ = [
    "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "Precision", "PrecisionLike",
    "RaggedDotDimensionNumbers", "batch_matmul", "dot", "dot_general", "dot_general_p",
    "ragged_dot", "ragged_dot_general", "scaled_dot",
]


class Precision(enum.Enum):
    """The precision of float32 products on accelerators; on CPUs they are always exact.

    >>> lax.dot(jnp.ones(3), jnp.ones(3), precision=lax.Precision.HIGHEST)
    Array(3., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _PRECISION_NAMES.get(value) if isinstance(value, str) or value is None else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


_PRECISION_NAMES: dict[Any, Precision] = {
    **dict.fromkeys((None, "default", "fastest", "bfloat16"), Precision.DEFAULT),
    **dict.fromkeys(("high", "bfloat16_3x", "tensorfloat32"), Precision.HIGH),
    **dict.fromkeys(("highest", "float32"), Precision.HIGHEST),
}


class DotAlgorithm(NamedTuple):
    """The dtypes in which a product is computed; accepted, and computed exactly.

    >>> lax.DotAlgorithm(jnp.float32, jnp.float32, jnp.float32).num_primitive_operations
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Names of common algorithms: operand types, accumulation type, and number of passes.

    >>> lax.DotAlgorithmPreset.BF16_BF16_F32.name
    'BF16_BF16_F32'
    """

    DEFAULT = 0
    ANY_F8_ANY_F8_F32 = 1
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 2
    ANY_F8_ANY_F8_ANY = 3
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 4
    F16_F16_F16 = 5
    F16_F16_F32 = 6
    BF16_BF16_BF16 = 7
    BF16_BF16_F32 = 8
    BF16_BF16_F32_X3 = 9
    BF16_BF16_F32_X6 = 10
    BF16_BF16_F32_X9 = 11
    TF32_TF32_F32 = 12
    TF32_TF32_F32_X3 = 13
    F32_F32_F32 = 14
    F64_F64_F64 = 15

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    __str__ = __repr__


PrecisionLike = (None | str | Precision | tuple[str, str] | tuple[Precision, Precision]
                 | DotAlgorithm | DotAlgorithmPreset)
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def canonical_precision(precision: Any) -> Any:
    """None, an algorithm, or a precision for each operand.

    Raises:
      ValueError: it does not name a precision.
    """
    if precision is None:
        precision = config.default_matmul_precision.value
    if precision is None or isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str):
        if precision in _PRECISION_NAMES:
            return (Precision(precision),) * 2
        if precision in DotAlgorithmPreset.__members__:
            return DotAlgorithmPreset[precision]
        raise ValueError(
            "'precision' must be one of None, a Precision, a DotAlgorithmPreset or one of their "
            f"names, got {precision!r}.")
    if isinstance(precision, Precision):
        return (precision, precision)
    if isinstance(precision, (tuple, list)) and len(precision) == 2:
        return tuple(Precision(p) if isinstance(p, str) else p for p in precision)
    raise ValueError(f"Precision argument must be None, a string, a Precision or a pair of these; "
                     f"got {precision!r}.")


def check_not_narrower(own: Any, preferred: Any) -> None:
    """Raises if ``preferred`` has fewer bits than ``own``; per part for complex numbers."""
    def width(dtype: Any) -> int:
        if dtypes.is_bool(dtype):
            return 1
        return bit_width(dtype) // (2 if dtypes.is_complex(dtype) else 1)

    if width(preferred) < width(own):
        raise TypeError("`preferred_element_type` must not be narrower than the original type, got "
                        f"preferred_element_type of {preferred} for result type of {own}.")


def _check(lhs: Array, rhs: Array, numbers: Any) -> None:
    """Raises if dimension numbers do not fit; see ``dot_general``."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    for side, contracting, batch, x in (("lhs", lhs_contract, lhs_batch, lhs),
                                        ("rhs", rhs_contract, rhs_batch, rhs)):
        if not all(0 <= dim < x.ndim for dim in (*contracting, *batch)):
            raise TypeError(
                f"dot_general requires {side} dimension numbers to be nonnegative and less than "
                f"the number of axes of the {side} value, got {side}_batch of {batch} and "
                f"{side}_contracting of {contracting} for {side} of rank {x.ndim}")
    if len(lhs_batch) != len(rhs_batch):
        raise TypeError("dot_general requires equal numbers of lhs_batch and rhs_batch "
                        f"dimensions, got lhs_batch {lhs_batch} and rhs_batch {rhs_batch}.")
    for side, contracting, batch in (("lhs", lhs_contract, lhs_batch),
                                     ("rhs", rhs_contract, rhs_batch)):
        if len(set(batch)) != len(batch):
            raise TypeError(f"dot_general requires {side} batch dimensions to be distinct, got "
                            f"{side}_batch {batch}.")
        if len(set(contracting)) != len(contracting):
            raise TypeError(f"dot_general requires {side} contracting dimensions to be distinct, "
                            f"got {side}_contracting {contracting}.")
        if set(batch) & set(contracting):
            raise TypeError(
                f"dot_general requires {side} batch dimensions to be disjoint from contracting "
                f"dimensions, got {side}_batch {batch} and {side}_contracting {contracting}.")

    def sizes(x: Array, dims: Sequence[int]) -> tuple[int, ...]:
        return tuple(x.shape[dim] for dim in dims)

    if sizes(lhs, lhs_batch) != sizes(rhs, rhs_batch):
        raise TypeError(
            "dot_general requires lhs batch dimensions and rhs batch dimensions to have the same "
            f"shape, got {sizes(lhs, lhs_batch)} and {sizes(rhs, rhs_batch)}.")
    if sizes(lhs, lhs_contract) != sizes(rhs, rhs_contract):
        raise TypeError(
            "dot_general requires contracting dimensions to have the same shape, got "
            f"{sizes(lhs, lhs_contract)} and {sizes(rhs, rhs_contract)}.")


def dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
                precision: PrecisionLike = None, preferred_element_type: Any = None, *,
                out_sharding: Any = None) -> Array:
    """The product of two arrays, summed over some dimensions and matched over others.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``: pairs of
        dimensions that are summed over, and pairs of batch dimensions.
      precision: of products on accelerators.
      preferred_element_type: the dtype of the result and of the accumulation.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of the dimensions (batch, rest of lhs, rest of rhs).

    Raises:
      TypeError: dimensions repeat, do not exist or differ in size.

    See also: ``lax.dot``, ``lax.batch_matmul``, ``jnp.matmul``, ``jnp.einsum``, ``jnp.tensordot``.

    >>> x, y = jnp.ones((5, 2, 3)), jnp.ones((5, 4, 3))
    >>> lax.dot_general(x, y, (((2,), (2,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    if out_sharding is not None:
        return with_out_sharding(dot_general, out_sharding, lhs, rhs, dimension_numbers, precision,
            preferred_element_type)
    x, y = as_operand(lhs, "dot_general"), as_operand(rhs, "dot_general", 1)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = ((integers(lhs_contract), integers(rhs_contract)),
               (integers(lhs_batch), integers(rhs_batch)))
    _check(x, y, numbers)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonical(preferred_element_type)
        own, _ = result_type(x.aval, y.aval, None)
        if not dtypes.is_floating(own):
            check_not_narrower(own, preferred_element_type)
    return dot_general_p.bind(
        x, y, dimension_numbers=numbers, precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type)


def dot(lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: DotDimensionNumbers | None = None,
        precision: PrecisionLike = None, preferred_element_type: Any = None,
        out_sharding: Any = None) -> Array:
    """The product of matrices and vectors; with ``dimension_numbers``, any ``dot_general``.

    Raises:
      ValueError: an operand is neither a matrix nor a vector.
      TypeError: the contracted sizes differ.

    >>> lax.dot(jnp.ones((2, 3)), jnp.arange(3.))
    Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(dot, out_sharding, lhs, rhs, dimension_numbers=dimension_numbers,
            precision=precision, preferred_element_type=preferred_element_type)
    x, y = as_operand(lhs, "dot_general"), as_operand(rhs, "dot_general", 1)
    if dimension_numbers is None:
        if not (1 <= x.ndim <= 2 and 1 <= y.ndim <= 2 and x.shape[-1] == y.shape[0]):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple "
                "un-batched matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={x.shape} rhs_shape={y.shape}")
        dimension_numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Products of the matrices in the last two dimensions, matched over all others.

    Raises:
      ValueError: the ranks differ, or are below 2.

    >>> lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = as_operand(lhs, "batch_matmul"), as_operand(rhs, "batch_matmul", 1)
    rank = x.ndim
    if rank < 2 or y.ndim < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {x.ndim}, {y.ndim}")
    if rank != y.ndim:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {x.ndim}, {y.ndim}")
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)


# --- ragged products ------------------------------------------------------------------------------

class RaggedDotDimensionNumbers:
    """The dimensions that ``ragged_dot_general`` multiplies, and those of the groups.

    Args:
      dot_dimension_numbers: as for ``dot_general``.
      lhs_ragged_dimensions: the one dimension of lhs that is divided into groups.
      rhs_group_dimensions: the dimension of rhs that has one entry for each group, or none.

    >>> lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)).rhs_group_dimensions
    (0,)
    """

    def __init__(self, dot_dimension_numbers: Any, lhs_ragged_dimensions: Sequence[int],
                 rhs_group_dimensions: Sequence[int]):
        (lhs, rhs), (lhs_batch, rhs_batch) = dot_dimension_numbers
        self.dot_dimension_numbers = ((integers(lhs), integers(rhs)),
                                      (integers(lhs_batch), integers(rhs_batch)))
        self.lhs_ragged_dimensions = integers(lhs_ragged_dimensions)
        self.rhs_group_dimensions = integers(rhs_group_dimensions)

    def _fields(self) -> tuple[Any, ...]:
        return self.dot_dimension_numbers, self.lhs_ragged_dimensions, self.rhs_group_dimensions

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, RaggedDotDimensionNumbers)
                and self._fields() == other._fields())

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        numbers, ragged, groups = self._fields()
        return (f"RaggedDotDimensionNumbers(dot_dimension_numbers={numbers}, "
                f"lhs_ragged_dimensions={ragged}, rhs_group_dimensions={groups})")


def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: Any, precision: PrecisionLike = None,
               preferred_element_type: Any = None, group_offset: Any = None,
               out_sharding: Any = None) -> Array:
    """Multiplies each of several consecutive groups of rows by its own matrix.

    Args:
      lhs: (M, K).
      rhs: (G, K, N), one matrix per group.
      group_sizes: (G,) integers; rows past their sum give zeros.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.
      group_offset: must be None.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array (M, N).

    Raises:
      TypeError: shapes do not fit, or ``group_sizes`` are not integers.
      NotImplementedError: for a ``group_offset``.

    See also: ``lax.ragged_dot_general``, ``lax.dot_general``, ``jax.ops.segment_sum``.

    >>> lax.ragged_dot(jnp.ones((3, 2)), jnp.arange(4.).reshape(2, 2, 1), jnp.array([2, 1]))
    Array([[1.],
           [1.],
           [5.]], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(ragged_dot, out_sharding, lhs, rhs, group_sizes, precision,
            preferred_element_type, group_offset)
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(lhs, rhs, group_sizes, numbers, precision, preferred_element_type,
                              group_offset)


def ragged_dot_general(lhs: ArrayLike, rhs: ArrayLike, group_sizes: Any,
                       ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                       precision: PrecisionLike = None, preferred_element_type: Any = None,
                       group_offset: Any = None, out_sharding: Any = None) -> Array:
    """A product whose operands are divided into groups along the ragged dimension of lhs.

    Args:
      lhs, rhs: arrays.
      group_sizes: integers (G,), or (..., G) with sizes for each index of the dimensions before the
        ragged one.
      ragged_dot_dimension_numbers: the ragged dimension of lhs is free (each group is multiplied by
        its entry of rhs's group dimension), contracted (the result gets a leading dimension of
        groups) or a batch dimension.
      precision, preferred_element_type: as for ``dot_general``.

    Raises:
      TypeError: shapes or dimension numbers do not fit, or ``group_sizes`` are not integers.
      NotImplementedError: for a ``group_offset``.

    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> x = jnp.ones((4, 1))
    >>> lax.ragged_dot_general(x, x, jnp.array([1, 3]), numbers).ravel()
    Array([1., 3.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(ragged_dot_general, out_sharding, lhs, rhs, group_sizes,
            ragged_dot_dimension_numbers, precision, preferred_element_type, group_offset)
    name = "ragged_dot_general"
    if group_offset is not None:
        raise NotImplementedError(f"{name} with a group_offset is not implemented; slice "
                                  "group_sizes and rhs instead.")
    x, y = as_operand(lhs, name), as_operand(rhs, name, 1)
    sizes = as_operand(group_sizes, name, 2)
    numbers = ragged_dot_dimension_numbers
    if not dtypes.is_integer(sizes.dtype):
        raise TypeError(f"{name} requires that group_sizes.dtype is subtype of np.integer.")
    _check(x, y, numbers.dot_dimension_numbers)
    before = _check_ragged(x, y, sizes, numbers)
    precision = canonical_precision(precision)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonical(preferred_element_type)

    def compose(x: Any, y: Any, sizes: Any) -> list[Any]:
        return [_ragged_product(x, y, sizes, numbers, before, precision, preferred_element_type)]

    return bind_composed(
        ragged_dot_general_p, compose, [x, y, sizes], ragged_dot_dimension_numbers=numbers,
        precision=precision, preferred_element_type=preferred_element_type, group_offset=None,
        out_sharding=None)[0]


def _check_ragged(x: Array, y: Array, sizes: Array,
                  numbers: RaggedDotDimensionNumbers) -> tuple[int, ...]:
    """The dimensions of lhs along which group sizes may differ."""
    name = "ragged_dot_general"
    (contracting, rhs_contracting), (batch, rhs_batch) = numbers.dot_dimension_numbers
    if len(numbers.lhs_ragged_dimensions) != 1:
        raise TypeError(f"{name} expects exactly one lhs ragged dimension.")
    ragged, = numbers.lhs_ragged_dimensions
    groups = numbers.rhs_group_dimensions
    if not 0 <= ragged < x.ndim:
        raise TypeError(f"{name} requires lhs ragged dimension numbers to be nonnegative and less "
                        f"than the number of axes of the lhs value, got {ragged} for lhs of rank "
                        f"{x.ndim}.")
    if ragged in contracting or ragged in batch:
        if groups:
            raise TypeError(f"{name} requires zero group dimensions in the rhs when lhs ragged "
                            "dimension is contracting or batch.")
        outer = batch if ragged in batch else contracting
        inside = outer[:outer.index(ragged)]
    else:
        if len(groups) != 1:
            raise TypeError(f"{name} requires exactly one rhs group dimension when lhs ragged "
                            "dimension is noncontracting.")
        if not 0 <= groups[0] < y.ndim:
            raise TypeError(f"{name} requires rhs group dimension numbers to be nonnegative and "
                            f"less than the number of axes of the rhs value, got {groups[0]} for "
                            f"rhs of rank {y.ndim}.")
        if groups[0] in (*rhs_contracting, *rhs_batch):
            raise TypeError(f"{name} requires rhs group dimension numbers to be distinct from "
                            "contracting and batch dimensions.")
        inside = tuple(dim for dim in range(ragged) if dim not in (*contracting, *batch))
    before = inside if ragged in batch else (*batch, *inside)
    if not sizes.ndim:
        raise TypeError("expected rank of group_sizes to be at least 1, got 0.")
    count = sizes.shape[-1]
    expected = (*(x.shape[dim] for dim in before), count)
    if sizes.ndim > 1 and sizes.shape != expected:
        raise TypeError(f"expected group_sizes to have shape {expected}, got {sizes.shape}.")
    if groups and y.shape[groups[0]] != count:
        raise TypeError(f"expected rhs group dimension size to be {count}, got "
                        f"{y.shape[groups[0]]}.")
    return before


def _ragged_product(x: Any, y: Any, sizes: Any, numbers: RaggedDotDimensionNumbers,
                    before: tuple[int, ...], precision: Any, preferred: Any) -> Array:
    (contracting, rhs_contracting), (batch, rhs_batch) = numbers.dot_dimension_numbers
    ragged, = numbers.lhs_ragged_dimensions
    if ragged in batch:      # a group contains whole products, which are independent
        return dot_general(x, y, numbers.dot_dimension_numbers, precision, preferred)
    # An element belongs to group g if the groups before g end at or before it, and g after it.
    count = sizes.shape[-1]
    stops = cumsum(sizes, sizes.ndim - 1)
    starts = arithmetic.sub(stops, sizes)
    wide = (count, *x.shape)

    def spread(bounds: Any) -> Any:
        bounds = layout.move_axis(bounds, bounds.ndim - 1, 0)
        dims = (0, *(dim + 1 for dim in before)) if sizes.ndim > 1 else (0,)
        order = sorted(range(len(dims)), key=lambda place: dims[place])
        return broadcasting.broadcast_in_dim(layout.transpose(bounds, order), wide, sorted(dims))

    position = creation.iota(sizes.dtype, wide, ragged + 1)
    inside = comparison.and_p.bind(comparison.ge(position, spread(starts)),
                                   comparison.lt_p.bind(position, spread(stops)))
    parted = comparison.select(inside, creation.full(wide, 0, x.dtype),
                               broadcasting.broadcast_leading(x, count))
    moved = tuple(dim + 1 for dim in contracting)
    moved_batch = tuple(dim + 1 for dim in batch)
    if ragged in contracting:
        out = dot_general(parted, y, ((moved, rhs_contracting), (moved_batch, rhs_batch)),
                          precision, preferred)
        return layout.move_axis(out, len(batch), 0)
    group, = numbers.rhs_group_dimensions
    return dot_general(parted, y, (((0, *moved), (group, *rhs_contracting)),
                                   (moved_batch, rhs_batch)), precision, preferred)


# --- scaled products ------------------------------------------------------------------------------

def scaled_dot(lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: Any = None, rhs_scale: Any = None,
               dimension_numbers: DotDimensionNumbers | None = None,
               preferred_element_type: Any = None) -> Array:
    """The product of two arrays, each multiplied by scales shared by several elements.

    Args:
      lhs, rhs: arrays of one rank.
      lhs_scale, rhs_scale: with the operands' shapes except in the contracting dimension, whose
        size divides the operand's at least twice; 1 by default.
      dimension_numbers: as for ``dot_general``; by default products of matrices, matched over
        the first dimension in rank 3.
      preferred_element_type: of the result; bfloat16 by default.

    Raises:
      TypeError: shapes do not fit.

    >>> x = jnp.ones((1, 4), jnp.bfloat16)
    >>> lax.scaled_dot(x, x.T, lhs_scale=jnp.array([[1, 8]], jnp.bfloat16))
    Array([[18]], dtype=bfloat16)
    """
    name = "scaled_dot"
    x, y = as_operand(lhs, name), as_operand(rhs, name, 1)
    if dimension_numbers is None:
        dimension_numbers = ((((2,), (1,)), ((0,), (0,))) if x.ndim == 3
                             else (((1,), (0,)), ((), ())))
    (left, right), (left_batch, right_batch) = dimension_numbers
    numbers = ((integers(left), integers(right)), (integers(left_batch), integers(right_batch)))
    preferred = (dtypes.bfloat16 if preferred_element_type is None
                 else dtypes.canonical(preferred_element_type))
    scales = [None if scale is None else as_operand(scale, name) for scale in (
        lhs_scale, rhs_scale)]
    ranks = [value.ndim for value in (x, y)]
    ranks += [rank if scale is None else scale.ndim
              for rank, scale in zip(ranks, scales, strict=True)]
    if len(set(ranks)) > 1:
        raise TypeError(
            "All input tensors must have the same rank. Got lhs rank: {} rhs rank: {} lhs_scale "
            "rank: {} rhs_scale rank: {}.".format(*ranks))
    _check(x, y, numbers)
    for side, value, scale, contracting in (("LHS", x, scales[0], numbers[0][0]),
                                            ("RHS", y, scales[1], numbers[0][1])):
        if scale is not None:
            _check_scale(side, value, scale, contracting)
    present = [scale for scale in scales if scale is not None]

    def compose(x: Any, y: Any, *given: Any) -> list[Any]:
        rest = iter(given)
        x, y = (_scaled(value, None if scale is None else next(rest), preferred)
                for value, scale in zip((x, y), scales, strict=True))
        return [dot_general(x, y, numbers, None, preferred)]

    return bind_composed(
        scaled_dot_p, compose, [x, y, *present],
        known_by=(numbers, preferred, *[scale is None for scale in scales]),
        dimension_numbers=numbers, preferred_element_type=preferred)[0]


def _check_scale(side: str, value: Array, scale: Array, contracting: Sequence[int]) -> None:
    for dim, (size, count) in enumerate(zip(value.shape, scale.shape, strict=True)):
        if dim not in contracting:
            if size != count:
                raise TypeError(
                    f"{side} dim {dim} of size {size} does not match scale dim size {count}.")
            continue
        if not count or size % count:
            raise TypeError(f"{side} contracting dim {dim} of size {size} must be divisible by "
                            f"its scale's dim size {count}.")
        if size // count < 2:
            raise TypeError(f"The ratio of {side} contracting dim {dim} to its scale's dim size "
                            f"({size // count}) must be at least 2.")


def _scaled(value: Any, scale: Any, dtype: Any) -> Any:
    value = convert.convert_element_type(value, dtype)
    if scale is None:
        return value
    ratios = [size // max(count, 1) for size, count in zip(value.shape, scale.shape, strict=True)]
    pairs = [size for pair in zip(scale.shape, ratios, strict=True) for size in pair]
    scale = broadcasting.broadcast_in_dim(
        convert.convert_element_type(scale, dtype), pairs, tuple(range(0, len(pairs), 2)))
    return arithmetic.mul(value, layout.reshape(scale, value.shape))
