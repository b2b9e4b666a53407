"""dot_general: products of arrays, summed over some dimensions and matched over others."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes, native
from maxjax._ir.contract import ANY_TUPLE, DTYPE, PRECISION, optional, takes
from maxjax._ir.costs import Cost, Roofline, XlaCost
from maxjax._ir.linearity import PRODUCT
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Host, Printed, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Params, Shape, Value
from maxjax._primitives import fitting
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.convert import convert, convert_element_type
from maxjax._primitives.layout import transpose
from maxjax._primitives.rules import aval_of, factor_rule, is_linear, of_numbers
from maxjax._primitives.widths import BIT_WIDTHS, bit_width

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import FactorRule, Linear


# ((contracted of lhs, of rhs), (batch of lhs, of rhs)).
_Pair = tuple[tuple[int, ...], tuple[int, ...]]
DotDimensionNumbers = tuple[_Pair, _Pair]


def free_dimensions(rank: int, contracting: tuple[int, ...], batch: tuple[int, ...]
                    ) -> tuple[int, ...]:
    """The dimensions that are neither contracted nor matched."""
    return tuple(dim for dim in range(rank) if dim not in contracting and dim not in batch)


def _abstract(lhs: ShapedArray, rhs: ShapedArray, *,
              dimension_numbers: DotDimensionNumbers, precision: Hashable,
              preferred_element_type: np.dtype | None) -> ShapedArray:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    shape = (*(lhs.shape[dim] for dim in lhs_batch),
             *(lhs.shape[dim] for dim in free_dimensions(lhs.ndim, lhs_contract, lhs_batch)),
             *(rhs.shape[dim] for dim in free_dimensions(rhs.ndim, rhs_contract, rhs_batch)))
    dtype, weak = result_type(lhs, rhs, preferred_element_type)
    return ShapedArray(shape, dtype, weak)


def result_type(lhs: ShapedArray, rhs: ShapedArray, preferred: np.dtype | None) -> tuple[Any, ...]:
    """The dtype of the result, and whether it is weak."""
    weak = lhs.weak_type and rhs.weak_type
    if preferred is not None:
        return preferred, weak and preferred == result_type(lhs, rhs, None)[0]
    if lhs.dtype == rhs.dtype:
        return lhs.dtype, weak
    return max(lhs.dtype, rhs.dtype, key=_rank), weak


def _rank(dtype: np.dtype) -> tuple[int, ...]:
    """The order of dtypes by which XLA chooses that of a product: complex, range, precision,
    width, sign."""
    real = dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else dtype
    floating = dtypes.is_floating(real)
    info = dtypes.finfo(real) if floating else None
    return (dtypes.is_complex(dtype), info.maxexp if info else -1, info.nmant if info else -1,
            1 if real == dtypes.bool_ else bit_width(real), not dtypes.is_unsigned(real))


# --- the NumPy rule -------------------------------------------------------------------------------

def compute_dtype(lhs: np.dtype, rhs: np.dtype, out: np.dtype) -> np.dtype:
    """The dtype in which a sum of products is accumulated.

    Operands of two dtypes are converted to the result's before anything else, as XLA does it: the
    int32 of 1.5 and of 2 of int8 is 1 times 2; the int32 of two floats is their rounded product.
    """
    if lhs != rhs:
        lhs = rhs = out
    if out == dtypes.bool_:       # true if any product is
        return dtypes.float32
    if dtypes.is_floating(out) and out.itemsize < 4:
        return dtypes.float32
    if not dtypes.is_complex(out):
        for dtype in (lhs, rhs):
            if dtypes.is_complex(dtype):
                return dtype
    if dtypes.is_integer(out) and dtypes.is_inexact(lhs):
        return lhs
    narrow = dtypes.is_integer(out) and out in BIT_WIDTHS or (
        out.itemsize < 4 and dtypes.is_signed(out))
    return dtypes.int32 if narrow else out


def _as_matrices(rank: int, contracting: tuple[int, ...], batch: tuple[int, ...], shape: Shape,
                 contracting_last: bool) -> tuple[Any, ...]:
    """(permutation, shape) that make an operand (batch..., free, contracted), or the latter two
    exchanged; None where there is nothing to do."""
    free = free_dimensions(rank, contracting, batch)
    groups = (free, contracting) if contracting_last else (contracting, free)
    permutation = (*batch, *groups[0], *groups[1])
    sizes = (*(shape[dim] for dim in batch),
             *(math.prod(shape[dim] for dim in group) for group in groups))
    moved = tuple(shape[dim] for dim in permutation)
    return (None if permutation == tuple(range(rank)) else permutation,
            None if sizes == moved else sizes)


def _specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any]:
    """Plans, once, which views make the product a matrix product.

    BLAS takes operands whose rows or columns are contiguous as they are: a transposed view costs
    nothing.
    """
    lhs, rhs = in_avals
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = params["dimension_numbers"]
    out = out_avals[0]
    compute = compute_dtype(lhs.dtype, rhs.dtype, out.dtype)
    mixed = lhs.dtype != rhs.dtype
    plain = lhs.dtype == rhs.dtype == out.dtype == compute
    small = lhs.ndim <= 2 and rhs.ndim <= 2 and not lhs_batch and len(lhs_contract) == 1
    if plain and small and dtypes.is_inexact(compute):
        return _matrix_product(lhs, rhs, lhs_contract[0], rhs_contract[0])
    left_order, left_shape = _as_matrices(lhs.ndim, lhs_contract, lhs_batch, lhs.shape, True)
    right_order, right_shape = _as_matrices(rhs.ndim, rhs_contract, rhs_batch, rhs.shape, False)
    shape, dtype = out.shape, out.dtype
    matmul = integer_matmul if dtypes.is_integer(compute) else np.matmul
    batched = bool(lhs_batch)

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if mixed:
            x, y = convert_operand(x, dtype), convert_operand(y, dtype)
        if not plain:
            x, y = convert_operand(x, compute), convert_operand(y, compute)
        if left_order is not None:
            x = x.transpose(left_order)
        if left_shape is not None:
            x = x.reshape(left_shape)
        if right_order is not None:
            y = y.transpose(right_order)
        if right_shape is not None:
            y = y.reshape(right_shape)
        if batched:
            x, y = _contiguous_matrix(x), _contiguous_matrix(y)
        result = matmul(x, y)
        if result.shape != shape:
            result = result.reshape(shape)
        return result if plain else convert_result(result, dtype)

    return run


def convert_operand(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.asarray(x) if x.dtype == dtype else convert(np.asarray(x), dtype)


def convert_result(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if x.dtype == dtype:
        return x
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(dtype):
        x = x.real
    return convert(np.asarray(x), dtype)


def _contiguous_matrix(x: np.ndarray) -> np.ndarray:
    """A stack of matrices whose rows or columns are contiguous, which BLAS needs."""
    itemsize = x.itemsize
    if x.strides[-1] == itemsize or x.strides[-2] == itemsize:
        return x
    return np.ascontiguousarray(x)


def integer_matmul(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """np.matmul of integers, by BLAS in float64 where that is exact: NumPy's own is 10x slower."""
    products = x.size * y.shape[-1]
    if products >= native.FEWEST:
        matmul = native.find("matmul", x.dtype, products)
        if matmul:
            return _native_matmul(matmul, x, y)
    if y.size and products > 4096:
        bound = _magnitude(x) * _magnitude(y) * x.shape[-1]
        if bound < 2**53:
            product = np.matmul(x.astype(np.float64), y.astype(np.float64))
            # By int64, which holds it and wraps: float64 to fewer bits is undefined.
            return product.astype(np.int64).astype(x.dtype, copy=False)
        matmul = native.find("matmul wide", x.dtype, products)
        if matmul:
            return _native_matmul(matmul, x, y)
    return np.matmul(x, y)


def _native_matmul(function: native.Function, x: np.ndarray, y: np.ndarray) -> Any:
    """The product of matrices, or of equally many of them along leading dimensions."""
    out = np.empty((*x.shape[:-1], y.shape[-1]), x.dtype)
    (m, k), n = x.shape[-2:], y.shape[-1]
    batch = math.prod(x.shape[:-2])
    strides = []
    operands = []
    for operand in (x, y, out):
        stack = operand.reshape(batch, *operand.shape[-2:])
        if any(stride < 0 or stride % stack.itemsize for stride in stack.strides):
            stack = np.ascontiguousarray(stack)
        operands.append(stack)
        strides += [stride // stack.itemsize for stride in stack.strides]
    function(operands, (batch, m, n, k, *strides[:-1]), x.size * n // _PRODUCTS)
    return out


# As many products take as long as other functions take for an element.
_PRODUCTS = 64


def _magnitude(x: np.ndarray) -> int:
    return max(abs(int(x.max())), abs(int(x.min())))


def _matrix_product(lhs: ShapedArray, rhs: ShapedArray, left: int, right: int
                    ) -> Callable[..., Any]:
    """The product of matrices and vectors that contract dimensions ``left`` and ``right``."""
    with_vector = lhs.ndim < 2 or rhs.ndim < 2 or 1 in (*lhs.shape, *rhs.shape)
    # What np.dot calls, without what that looks for first.
    dot: Callable[..., Any] = _dot_by_rows if with_vector else np.ndarray.dot
    if left == lhs.ndim - 1:
        # np.dot contracts the last dimension of the left with the last but one of the right.
        if right == 0:
            return dot
        return lambda x, y: dot(x, y.T)
    if right == 0:
        return lambda x, y: dot(x.T, y)
    return lambda x, y: dot(x.T, y.T)


# Larger arrays are read as they lie.
_MOST_COPIED = 1 << 14


def _dot_by_rows(x: np.ndarray, y: np.ndarray) -> Any:
    """A product of a matrix and a vector, of which BLAS adds the terms in another order where an
    array lies in memory otherwise than by rows. No user sees which do."""
    return _by_rows(x).dot(_by_rows(y))


def _by_rows(x: np.ndarray) -> np.ndarray:
    return x if x.flags.c_contiguous or x.nbytes > _MOST_COPIED else np.ascontiguousarray(x)


def _evaluate(x: np.ndarray, y: np.ndarray, **params: Any) -> Any:
    avals = tuple(ShapedArray(v.shape, v.dtype) for v in (x, y))
    return _specialize(avals, params, (_abstract(*avals, **params),))(x, y)


# --- derivatives ----------------------------------------------------------------------------------

def _jvp(primals: Sequence[Array], tangents: Sequence[Array | None], **params: object
         ) -> tuple[Array, Array | None]:
    lhs, rhs = primals
    out = dot_general_p.bind(lhs, rhs, **params)
    if not dtypes.is_inexact(out.dtype):
        return out, None
    terms = []
    if tangents[0] is not None:
        terms.append(dot_general_p.bind(tangents[0], rhs, **params))
    if tangents[1] is not None:
        terms.append(dot_general_p.bind(lhs, tangents[1], **params))
    total = None
    for term in terms:
        total = add_tangents(total, term)
    return out, total


def _transpose_lhs(cotangent: Array, lhs: Array | Linear, rhs: Array,
                   dimension_numbers: DotDimensionNumbers, precision: Hashable,
                   preferred: np.dtype | None, swapped: bool) -> Array:
    """The cotangent of the left operand.

    The result's dimensions are (batch, lhs free, rhs free), or (batch, rhs free, lhs free) where
    ``swapped``. Contracting it with rhs over rhs free leaves (batch, lhs free, contracted).
    """
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs_free = free_dimensions(len(lhs.shape), lhs_contract, lhs_batch)
    rhs_free = free_dimensions(len(rhs.shape), rhs_contract, rhs_batch)
    count = len(lhs_batch)
    start = count if swapped else count + len(lhs_free)
    contracted = tuple(range(start, start + len(rhs_free)))
    numbers = ((contracted, rhs_free), (tuple(range(count)), rhs_batch))
    result = dot_general_p.bind(
        cotangent, rhs, dimension_numbers=numbers, precision=precision,
        preferred_element_type=preferred)
    # What is left of rhs stands in rhs's order: give each dimension the place of its partner.
    partner = dict(zip(rhs_contract, lhs_contract, strict=True))
    order = (*lhs_batch, *lhs_free, *(partner[dim] for dim in sorted(rhs_contract)))
    result, wanted = transpose(result, tuple(np.argsort(order).tolist())), aval_of(lhs)
    if result.dtype == wanted.dtype:      # of its own weak type, as in JAX
        return result
    return convert_element_type(result, wanted.dtype, wanted.weak_type)


def _transpose(cotangent: Array, lhs: Any, rhs: Any, *,
               dimension_numbers: DotDimensionNumbers, precision: Hashable,
               preferred_element_type: np.dtype | None) -> list[Array | None]:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    if is_linear(lhs):
        return [_transpose_lhs(cotangent, lhs, rhs, dimension_numbers, precision,
                               preferred_element_type, False), None]
    swapped = ((rhs_contract, lhs_contract), (rhs_batch, lhs_batch))
    return [None, _transpose_lhs(cotangent, rhs, lhs, swapped, precision,
                                 preferred_element_type, True)]


# --- batching -------------------------------------------------------------------------------------

def _shifted(dims: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(dim + (dim >= axis) for dim in dims)


def _batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *,
           dimension_numbers: DotDimensionNumbers, precision: Hashable,
           preferred_element_type: np.dtype | None) -> tuple[Array, int]:
    (lhs, rhs), (lhs_axis, rhs_axis) = operands, axes
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    count = len(lhs_batch)
    if lhs_axis is not None:
        lhs_contract, lhs_batch = _shifted(lhs_contract, lhs_axis), _shifted(lhs_batch, lhs_axis)
    if rhs_axis is not None:
        rhs_contract, rhs_batch = _shifted(rhs_contract, rhs_axis), _shifted(rhs_batch, rhs_axis)
    if lhs_axis is not None and rhs_axis is not None:
        lhs_batch, rhs_batch = (lhs_axis, *lhs_batch), (rhs_axis, *rhs_batch)
        out_axis = 0
    elif lhs_axis is not None:
        # One more free dimension of the left operand.
        free = free_dimensions(len(lhs.shape), lhs_contract, lhs_batch)
        out_axis = count + free.index(lhs_axis)
    else:
        lhs_free = free_dimensions(len(lhs.shape), lhs_contract, lhs_batch)
        free = free_dimensions(len(rhs.shape), rhs_contract, rhs_batch)
        out_axis = count + len(lhs_free) + free.index(rhs_axis)
    numbers = ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))
    return dot_general_p.bind(
        lhs, rhs, dimension_numbers=numbers, precision=precision,
        preferred_element_type=preferred_element_type), out_axis


# --- lowering -------------------------------------------------------------------------------------

def _lower(ctx: Lowering, lhs: object, rhs: object, *,
           dimension_numbers: DotDimensionNumbers, precision: Hashable,
           preferred_element_type: np.dtype | None) -> Any:
    left, right = ctx.in_avals
    out = ctx.out_avals[0]
    compute = compute_dtype(left.dtype, right.dtype, out.dtype)
    if left.dtype != right.dtype:
        lhs, rhs = ctx.convert(lhs, out.dtype), ctx.convert(rhs, out.dtype)
    lhs, rhs = ctx.convert(lhs, compute), ctx.convert(rhs, compute)
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    if not lhs_batch and left.ndim == right.ndim == 2 and len(lhs_contract) == 1:
        result = ctx.matmul(lhs, rhs, transpose_a=lhs_contract[0] == 0,
                            transpose_b=rhs_contract[0] == 1)
        return ctx.convert(result, out.dtype)
    left_order, left_shape = _as_matrices(left.ndim, lhs_contract, lhs_batch, left.shape, True)
    right_order, right_shape = _as_matrices(
        right.ndim, rhs_contract, rhs_batch, right.shape, False)
    if left_order is not None:
        lhs = ctx.transpose(lhs, left_order)
    if right_order is not None:
        rhs = ctx.transpose(rhs, right_order)
    sizes = tuple(left.shape[dim] for dim in lhs_batch)
    stack = (math.prod(sizes),) if sizes else ()
    rows = math.prod(left.shape[dim] for dim in free_dimensions(
        left.ndim, lhs_contract, lhs_batch))
    columns = math.prod(right.shape[dim] for dim in free_dimensions(
        right.ndim, rhs_contract, rhs_batch))
    inner = math.prod(left.shape[dim] for dim in lhs_contract)
    lhs = ctx.reshape(lhs, (*stack, rows, inner))
    rhs = ctx.reshape(rhs, (*stack, inner, columns))
    result = ctx.matmul(lhs, rhs, transpose_a=False, transpose_b=False)
    return ctx.convert(ctx.reshape(result, out.shape), out.dtype)


def _factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
             dimension_numbers: DotDimensionNumbers, **params: object
             ) -> FactorRule:
    """bmk, bnk -> bmn: contracted factors give partial sums."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
    lhs, rhs = in_avals
    left: list = [None] * lhs.ndim
    right: list = [None] * rhs.ndim
    for number, (i, j) in enumerate(zip(lhs_batch, rhs_batch, strict=True)):
        left[i] = right[j] = f"b{number}"
    for number, (i, j) in enumerate(zip(lhs_contract, rhs_contract, strict=True)):
        left[i] = right[j] = f"k{number}"
    lhs_free = free_dimensions(lhs.ndim, lhs_contract, lhs_batch)
    rhs_free = free_dimensions(rhs.ndim, rhs_contract, rhs_batch)
    for number, dim in enumerate(lhs_free):
        left[dim] = f"m{number}"
    for number, dim in enumerate(rhs_free):
        right[dim] = f"n{number}"
    result = [*(left[dim] for dim in (*lhs_batch, *lhs_free)), *(right[dim] for dim in rhs_free)]
    return factor_rule([left, right], [result], in_avals, out_avals,
                       reduction={left[dim]: "add" for dim in lhs_contract})


def _flops(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
           dimension_numbers: DotDimensionNumbers, **params: object) -> float:
    (lhs_contract, _), _ = dimension_numbers
    return 2.0 * out_avals[0].size * math.prod(in_avals[0].shape[dim] for dim in lhs_contract)


# Multiplications for which BLAS uses no threads, of matrices that are none of them one vector.
_FEW_PRODUCTS = 1 << 16


def _uses_one_thread(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                     **params: Any) -> bool:
    return all(aval.ndim == 2 and min(aval.shape) > 1 and aval.dtype.kind == "f"
               for aval in (*in_avals, *out_avals)) and (
                   _flops(in_avals, out_avals, **params) <= 2 * _FEW_PRODUCTS)


def _shown(params: Params) -> Any:
    shown = {name: value for name, value in params.items()
             if value is not None or name not in (
                 "precision", "preferred_element_type", "out_sharding")}
    if isinstance(shown.get("precision"), enum.Enum):       # an algorithm
        shown["precision"] = shown["precision"].name
    shown["dimension_numbers"] = tuple(
        tuple(list(dims) for dims in pair) for pair in shown["dimension_numbers"])
    return shown


dot_general_p = Primitive(
    "dot_general",
    contract=takes(
        2, fitting.dot_general, fitting.NO_KEYS, fitting.product_dtype, dimension_numbers=ANY_TUPLE,
        precision=PRECISION, preferred_element_type=optional(DTYPE)),
    linearity=PRODUCT,
    printed=Printed(_shown),
    abstract=of_numbers("dot_general", _abstract),
    evaluate=_evaluate,
    host=Host(specialize=_specialize, calls_blas=True, uses_one_thread=_uses_one_thread),
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    factors=_factors,
    cost=Cost(
        flops=_flops,
        xla=XlaCost(spreads=False, alone=True),
        roofline=Roofline(multiplies=True)),
    values=Values(may_give_nan=True),
)


# --- operations that rules are written with -------------------------------------------------------

def dot_general(lhs: Value, rhs: Value, dimension_numbers: DotDimensionNumbers,
                precision: Hashable = None, preferred_element_type: np.dtype | None = None
                ) -> Array:
    return dot_general_p.bind(
        lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type)


def matmul(lhs: Value, rhs: Value) -> Any:
    """The product of two matrices."""
    return dot_general(lhs, rhs, (((1,), (0,)), ((), ())))
