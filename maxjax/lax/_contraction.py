"""Operations of jax.lax that multiply arrays and sum over dimensions."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._primitives import arithmetic, comparison, convert, shape
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.cumulative import cumsum
from maxjax.lax._operands import operand as as_operand
from maxjax.lax._shape import integers

__all__ = [
    "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "Precision", "PrecisionLike",
    "batch_matmul", "dot", "dot_general", "dot_general_p", "ragged_dot",
]


class Precision(enum.Enum):
    """How exact products of float32 need be on accelerators; on CPUs they are always exact."""

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
    """The dtypes in which a product is computed; accepted, and computed exactly."""

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Names of common algorithms."""

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


PrecisionLike = Any
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def canonical_precision(precision: Any) -> Any:
    """None, an algorithm, or a precision for each operand.

    Raises:
      ValueError: it names no precision.
    """
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


def _check(lhs: Array, rhs: Array, numbers: Any) -> None:
    """Raises where dimension numbers do not fit; see ``dot_general``."""
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


def dot_general(lhs: Any, rhs: Any, dimension_numbers: DotDimensionNumbers,
                precision: PrecisionLike = None, preferred_element_type: Any = None, *,
                out_sharding: Any = None) -> Array:
    """The product of two arrays, summed over some dimensions and matched over others.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``: pairs
        of dimensions that are summed over, and pairs that stay side by side.
      precision: of products on accelerators.
      preferred_element_type: the dtype of the result and of the accumulation.

    Returns:
      An array of the dimensions (batch, rest of lhs, rest of rhs).

    Raises:
      TypeError: dimensions repeat, do not exist or differ in size.
    """
    x, y = as_operand(lhs, "dot_general"), as_operand(rhs, "dot_general", 1)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    numbers = ((integers(lhs_contract), integers(rhs_contract)),
               (integers(lhs_batch), integers(rhs_batch)))
    _check(x, y, numbers)
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonical(preferred_element_type)
    return dot_general_p.bind(
        x, y, dimension_numbers=numbers, precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type)


def dot(lhs: Any, rhs: Any, *, dimension_numbers: DotDimensionNumbers | None = None,
        precision: PrecisionLike = None, preferred_element_type: Any = None,
        out_sharding: Any = None) -> Array:
    """The product of matrices and vectors; any ``dot_general`` with ``dimension_numbers``.

    Raises:
      ValueError: an operand is neither a matrix nor a vector.
      TypeError: the contracted sizes differ.
    """
    x, y = as_operand(lhs, "dot_general"), as_operand(rhs, "dot_general", 1)
    if dimension_numbers is None:
        if not (1 <= x.ndim <= 2 and 1 <= y.ndim <= 2 and x.shape[-1] == y.shape[0]):
            raise ValueError(
                "jax.lax.dot: dimension_numbers must be specified when not performing simple "
                "un-batched matrix-matrix, matrix-vector, or vector-vector products; got "
                f"lhs_shape={x.shape} rhs_shape={y.shape}")
        dimension_numbers = (((x.ndim - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: PrecisionLike = None) -> Array:
    """Products of the matrices in the last two dimensions, matched over all others.

    Raises:
      ValueError: the ranks differ, or are below 2.
    """
    x, y = as_operand(lhs, "batch_matmul"), as_operand(rhs, "batch_matmul", 1)
    rank = x.ndim
    if rank < 2 or y.ndim < 2:
        raise ValueError(f"Arguments to batch_matmul must be at least 2D, got {x.ndim}, {y.ndim}")
    if rank != y.ndim:
        raise ValueError(f"Arguments to batch_matmul must have same ndim, got {x.ndim}, {y.ndim}")
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)), precision)


def ragged_dot(lhs: Any, rhs: Any, group_sizes: Any, precision: PrecisionLike = None,
               preferred_element_type: Any = None, group_offset: Any = None,
               out_sharding: Any = None) -> Array:
    """Multiplies consecutive groups of rows by a matrix each.

    Args:
      lhs: (M, K).
      rhs: (G, K, N), a matrix a group.
      group_sizes: (G,) integers; rows past their sum give zeros.

    Raises:
      TypeError: shapes do not fit.
      NotImplementedError: for a ``group_offset``.
    """
    if group_offset is not None:
        raise NotImplementedError("ragged_dot with a group_offset is not implemented; slice "
                                  "group_sizes and rhs instead.")
    x, y = as_operand(lhs, "ragged_dot"), as_operand(rhs, "ragged_dot", 1)
    sizes = as_operand(group_sizes, "ragged_dot", 2)
    if x.ndim != 2 or y.ndim != 3 or sizes.shape != y.shape[:1] or x.shape[1] != y.shape[1]:
        raise TypeError(f"ragged_dot requires lhs (M, K), rhs (G, K, N) and group_sizes (G,), got "
                        f"{x.shape}, {y.shape} and {sizes.shape}.")
    groups, rows = y.shape[0], x.shape[0]
    # Row r belongs to group g where the groups before g end at r or before, and g after.
    stops = cumsum(sizes, 0)
    starts = arithmetic.sub(stops, sizes)
    position = shape.iota(sizes.dtype, (groups, rows), 1)
    inside = comparison.and_p.bind(
        comparison.ge(position, shape.broadcast_in_dim(starts, (groups, rows), (0,))),
        comparison.lt_p.bind(position, shape.broadcast_in_dim(stops, (groups, rows), (0,))))
    mask = convert.convert_element_type(inside, x.dtype)
    wide = shape.broadcast_leading(x, groups)
    wide = arithmetic.mul(wide, shape.broadcast_in_dim(mask, wide.shape, (0, 1)))
    return dot_general(wide, y, (((0, 2), (0, 1)), ((), ())), precision, preferred_element_type)
