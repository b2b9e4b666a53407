"""How operands and parameters of primitives must fit: the rules that their contracts name.

Each takes types and parameters and gives what is wrong in words, or None. They are for programs
that operations did not write; operations say it in JAX's words.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Sequence, Sized
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import Rule, type_problem
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import DType, Shape
from maxjax._primitives.widths import bit_width

# --- dtypes ---------------------------------------------------------------------------------------


def of_dtypes(what: str, holds: Callable[[DType], bool], *numbers: int) -> Rule:
    """Operands of those numbers (all, if there are none) are of certain dtypes."""
    def rule(*avals: ShapedArray, **params: object) -> str | None:
        for number in numbers or range(len(avals)):
            if not holds(avals[number].dtype):
                return f"its operand {number} is of dtype {avals[number].dtype}, and must be {what}"
        return None

    return rule


def _is_number(dtype: DType) -> bool:
    return not dtypes.is_opaque(dtype) and dtypes.is_numeric(dtype)


def _is_ordered(dtype: DType) -> bool:
    return not dtypes.is_opaque(dtype) and not dtypes.is_complex(dtype)


NUMBERS = of_dtypes("of numbers", _is_number)
NO_KEYS = of_dtypes("no dtype of keys", lambda dtype: not dtypes.is_opaque(dtype))
ORDERED = of_dtypes("of an order", _is_ordered)
BITS = of_dtypes("of integers or booleans", lambda dtype: not dtypes.is_opaque(dtype) and (
    dtypes.is_bool(dtype) or dtypes.is_integer(dtype)))
INEXACT = of_dtypes("of floats or complex numbers", lambda dtype: (
    not dtypes.is_opaque(dtype) and dtypes.is_inexact(dtype)))


def indices(*numbers: int) -> Rule:
    """Operands are of integers."""
    return of_dtypes("of integers", lambda dtype: dtype in dtypes.INTS, *numbers)


def keys(number: int = 0) -> Rule:
    """An operand is of random keys."""
    return of_dtypes("of random keys", dtypes.is_key, number)


def power(x: ShapedArray, y: ShapedArray) -> str | None:
    """An exponent is of the base's dtype, or of integers."""
    return None if y.dtype == x.dtype or y.dtype in dtypes.INTS + dtypes.SMALL_INTS else (
        f"{x.dtype} is not raised to {y.dtype}")


def alike(*numbers: int) -> Rule:
    """Operands of those numbers (all, if there are none) share a dtype."""
    def rule(*avals: ShapedArray, **params: object) -> str | None:
        found = {avals[number].dtype for number in numbers or range(len(avals))}
        return None if len(found) < 2 else (
            f"its operands are of different dtypes: {', '.join(map(str, found))}")

    return rule


# --- shapes ---------------------------------------------------------------------------------------

def ranks(*least: int) -> Rule:
    """The first operands have so many dimensions, or more."""
    def rule(*avals: ShapedArray, **params: object) -> str | None:
        for number, (aval, rank) in enumerate(zip(avals, least, strict=False)):
            if aval.ndim < rank:
                return f"its operand {number} has {aval.ndim} dimensions, and needs {rank}"
        return None

    return rule


def same_shapes(*avals: ShapedArray, **params: object) -> str | None:
    """All operands have one shape."""
    shapes = [aval.shape for aval in avals]
    return None if all(shape == shapes[0] for shape in shapes) else (
        f"its operands are of different shapes: {', '.join(map(str, shapes))}")


def _require(holds: object, what: str, avals: Sequence[ShapedArray], *found: object) -> str | None:
    """The words for operands that do not fit."""
    if holds:
        return None
    shapes = ", ".join(str(aval.shape) for aval in avals)
    return f"{what}: its operands are of shapes {shapes}" + (
        f", with {', '.join(map(str, found))}" if found else "")


def leading(first: ShapedArray, second: ShapedArray, **params: object) -> str | None:
    """The first operand has the leading dimensions of the second."""
    return _require(second.shape[:first.ndim] == first.shape, "there is one for each element",
                    [first, second])


def scalars(*avals: ShapedArray, **params: object) -> str | None:
    """All operands are scalars."""
    return _require(all(not aval.ndim for aval in avals), "scalars are needed", avals)


def scalar_first(first: ShapedArray, *avals: ShapedArray, **params: object) -> str | None:
    """The first operand is a scalar."""
    return scalars(first)


def square(a: ShapedArray, *others: ShapedArray, **params: object) -> str | None:
    return _require(a.ndim >= 2 and a.shape[-1] == a.shape[-2], "a matrix must be square", [a])


def of_matrices(*wanted: str) -> Rule:
    """Operands are stacks of arrays, with sizes by letters: ``of_matrices("nn", "nk")``."""
    def rule(*avals: ShapedArray, **params: object) -> str | None:
        sizes: dict[str, Any] = {}
        holds = all(aval.ndim >= len(letters) for aval, letters in zip(avals, wanted, strict=True))
        stacks = [aval.shape[:aval.ndim - len(letters)]
                  for aval, letters in zip(avals, wanted, strict=True)]
        holds = holds and all(stack == stacks[0] for stack in stacks) and all(
            sizes.setdefault(letter, size) == size
            for aval, letters in zip(avals, wanted, strict=True)
            for letter, size in zip(letters, aval.shape[aval.ndim - len(letters):], strict=True))
        return _require(holds, f"stacks of {', '.join(wanted)} are needed", avals)

    return rule


def broadcast_in_dim(x: ShapedArray, *, shape: Shape, broadcast_dimensions: tuple[int, ...]
                     ) -> str | None:
    dims = broadcast_dimensions
    holds = len(dims) == x.ndim and list(dims) == sorted(set(dims)) and all(
        0 <= dim < len(shape) and (size == 1 or size == shape[dim])
        for dim, size in zip(dims, x.shape, strict=True))
    return _require(holds, "its dimensions must be those of the result, or 1", [x], dims, shape)


def clamp(low: ShapedArray, x: ShapedArray, high: ShapedArray) -> str | None:
    return _require(all(bound.shape in ((), x.shape) for bound in (low, high)),
                    "bounds are scalars or of the operand's shape", [low, x, high])


def concatenate(*avals: ShapedArray, dimension: int) -> str | None:
    rests = [(*aval.shape[:dimension], *aval.shape[dimension + 1:]) for aval in avals]
    return _require(all(rest == rests[0] and aval.ndim == avals[0].ndim
                        for rest, aval in zip(rests, avals, strict=True)),
                    "all sizes but one must be the same", avals, dimension)


def select_n(which: ShapedArray, *cases: ShapedArray) -> str | None:
    if which.dtype not in (dtypes.bool_, dtypes.int32) or (
            which.dtype == dtypes.bool_ and len(cases) > 2):
        return f"{which.dtype} selects from {len(cases)} operands"
    return _require(which.shape in ((), cases[0].shape) and all(
        case.shape == cases[0].shape for case in cases), "shapes must be the same",
        [which, *cases])


def dot_general(x: ShapedArray, y: ShapedArray, *, dimension_numbers: Any, precision: object,
                preferred_element_type: object) -> str | None:
    found = dimension_numbers
    holds = type(found) is tuple and len(found) == 2 and all(
        type(pair) is tuple and len(pair) == 2 and len(pair[0]) == len(pair[1]) and all(
            type(dims) is tuple and all(type(dim) is int for dim in dims) for dims in pair)
        for pair in found)
    if holds:
        for aval, dims in ((x, found[0][0] + found[1][0]), (y, found[0][1] + found[1][1])):
            holds = holds and len(set(dims)) == len(dims) and all(
                0 <= dim < aval.ndim for dim in dims)
        holds = holds and all(x.shape[a] == y.shape[b] for pair in found
                              for a, b in zip(*pair, strict=True))
    return _require(holds, "sizes of corresponding dimensions must be the same", [x, y], found)


def product_dtype(x: ShapedArray, y: ShapedArray, *, preferred_element_type: DType | None,
                  **params: object) -> str | None:
    """The dtype of a sum of products holds what the operands do."""
    wanted = preferred_element_type
    if wanted is None:
        return None
    for aval in (x, y):
        if dtypes.is_opaque(wanted) or any(
                holds(aval.dtype) and not holds(wanted)
                for holds in (dtypes.is_complex, dtypes.is_inexact)) or (
                dtypes.is_inexact(wanted) and not dtypes.is_inexact(aval.dtype)) or (
                dtypes.is_complex(wanted) and not dtypes.is_complex(aval.dtype)) or (
                dtypes.is_signed(wanted) and not dtypes.is_signed(aval.dtype)) or (
                dtypes.is_signed(aval.dtype) and not dtypes.is_signed(wanted)):
            return f"a product of {x.dtype} and {y.dtype} is not preferred as {wanted}"
    return None


def starts(first: int) -> Rule:
    """Operands from that number on are integers of one dtype, one for each dimension of the first.
    """
    def rule(*avals: ShapedArray, **params: object) -> str | None:
        rest = avals[first:]
        return _require(len(rest) == avals[0].ndim and all(
            aval.shape == () and aval.dtype in dtypes.INTS and aval.dtype == rest[0].dtype
            for aval in rest),
            "each dimension needs an integer as its start, all of one dtype", avals)

    return rule


def iota(*, dtype: DType, shape: Shape, dimension: int) -> str | None:
    if dtypes.is_opaque(dtype) or dtypes.is_bool(dtype):
        return f"{dtype} is no dtype of numbers"
    return None if dimension < len(shape) else f"{shape} has no dimension {dimension}"


def pad(x: ShapedArray, value: ShapedArray, *, padding_config: Sequence[tuple[int, int, int]]
        ) -> str | None:
    between = [0 if size == 0 else (size - 1) * config[2]
               for size, config in zip(x.shape, padding_config, strict=True)]
    holds = value.shape == () and all(config[2] >= 0 for config in padding_config) and all(
        config[0] + config[1] + size + more >= 0
        for size, more, config in zip(x.shape, between, padding_config, strict=True))
    return _require(holds, "padding leaves a size of 0 or more, by a scalar", [x, value],
                    padding_config)


def slice_within(x: ShapedArray, *, start_indices: Shape, limit_indices: Shape,
                 strides: Shape | None) -> str | None:
    holds = all(0 <= start <= limit <= size for start, limit, size in zip(
        start_indices, limit_indices, x.shape, strict=True))
    return _require(holds, "a slice must lie within its operand", [x], start_indices,
                    limit_indices)


def squeeze(x: ShapedArray, *, dimensions: tuple[int, ...]) -> str | None:
    return _require(all(x.shape[dim] == 1 for dim in dimensions),
                    "dimensions of size 1 can be removed", [x], dimensions)


def split(x: ShapedArray, *, sizes: Shape, axis: int) -> str | None:
    return _require(sum(sizes) == x.shape[axis], "parts must add up to the whole", [x], sizes)


def stack(*avals: ShapedArray, axis: int) -> str | None:
    return same_shapes(*avals) or (
        None if axis <= avals[0].ndim else f"{axis} is no dimension of the result")


def nonempty(x: ShapedArray, *, axes: tuple[int, ...], **params: object) -> str | None:
    """Where there is a result, there are elements that it is chosen from."""
    return _require(all(x.shape[axis] != 0 for axis in axes), "there is nothing to choose from",
                    [x], axes)


def sort(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int) -> str | None:
    if not 1 <= num_keys <= len(avals):
        return f"{num_keys} of {len(avals)} operands are keys"
    return same_shapes(*avals)


def top_k(x: ShapedArray, *, k: int, axis: int, is_stable: bool) -> str | None:
    return _require(k <= x.shape[axis], "no more elements can be taken than there are", [x], k)


def transfers(*avals: ShapedArray, devices: Sized, srcs: Sized, copy_semantics: Sized
              ) -> str | None:
    return None if len(devices) == len(srcs) == len(copy_semantics) == len(avals) else (
        f"it has {len(avals)} operands, for {len(devices)} devices")


def groups(*counts: str) -> Rule:
    """Parameters say how many operands are in the first groups of them."""
    def rule(*avals: ShapedArray, **params: Any) -> str | None:
        total = sum([params[name] for name in counts])
        return None if total <= len(avals) else f"{total} of {len(avals)} operands are in groups"

    return rule


# --- windows --------------------------------------------------------------------------------------

def window(x: ShapedArray, *others: ShapedArray, **params: Any) -> str | None:
    """What windows go through, the padded operand, is an array that can be."""
    spread = params.get("base_dilation", (1,) * x.ndim)
    return _padded(x, range(x.ndim), params["padding"], spread)


def _padded(x: ShapedArray, dims: Sequence[int], padding: Sequence[tuple[int, int]],
            dilation: Sequence[int]) -> str | None:
    shape = list(x.shape)
    for dim, (low, high), step in zip(dims, padding, dilation, strict=True):
        size = shape[dim]
        shape[dim] = size + low + high + (0 if size == 0 else (size - 1) * (step - 1))
        if shape[dim] < 0:
            return _require(False, "padding leaves less than nothing", [x], padding)
    found = type_problem(ShapedArray(tuple(shape), x.dtype))
    return None if found is None else f"its padded operand: {found}"


def selects(source: ShapedArray, operand: ShapedArray, *, window_dimensions: Shape,
            window_strides: Shape, padding: Sequence[tuple[int, int]], **params: object
            ) -> str | None:
    """A source has an element for each window of the operand."""
    sizes = [max((size + low + high - width) // step + 1, 0)
             for size, (low, high), width, step in zip(
                 operand.shape, padding, window_dimensions, window_strides, strict=True)]
    return _require(source.ndim == operand.ndim and list(source.shape) == sizes,
                    "the source has an element for each window", [source, operand])


def convolution(x: ShapedArray, kernel: ShapedArray, *, window_strides: Shape,
                padding: Sequence[tuple[int, int]], lhs_dilation: Shape, rhs_dilation: Shape,
                dimension_numbers: Sequence[tuple[int, ...]], feature_group_count: int,
                batch_group_count: int, **params: object) -> str | None:
    rank = x.ndim
    parts = (window_strides, padding, lhs_dilation, rhs_dilation)
    if kernel.ndim != rank or rank < 2 or any(len(part) != rank - 2 for part in parts) or any(
            sorted(spec) != list(range(rank)) for spec in dimension_numbers):
        return _require(False, "dimensions must correspond", [x, kernel], dimension_numbers)
    x_spec, kernel_spec, _ = dimension_numbers
    batch, features = x.shape[x_spec[0]], x.shape[x_spec[1]]
    outs, ins = kernel.shape[kernel_spec[0]], kernel.shape[kernel_spec[1]]
    holds = features == ins * feature_group_count and outs % feature_group_count == 0 and (
        batch % batch_group_count == 0 and outs % batch_group_count == 0) and (
        1 in (feature_group_count, batch_group_count))
    return _require(holds, "features must be those of the kernel in each group", [x, kernel],
                    feature_group_count, batch_group_count) or _padded(
        x, x_spec[2:], padding, lhs_dilation) or _padded(
        kernel, kernel_spec[2:], ((0, 0),) * (rank - 2), rhs_dilation)


# --- linear algebra -------------------------------------------------------------------------------

def reflections(a: ShapedArray, taus: ShapedArray) -> str | None:
    holds = a.ndim >= 2 and taus.shape[:-1] == a.shape[:-2] and taus.ndim == a.ndim - 1
    return _require(holds and taus.shape[-1] <= a.shape[-1] <= a.shape[-2],
                    "a matrix has a reflection for a column, and no more columns than rows",
                    [a, taus])


def by_reflections(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool,
                   transpose: bool) -> str | None:
    holds = a.ndim >= 2 and c.ndim == a.ndim and taus.ndim == a.ndim - 1 and (
        a.shape[:-2] == c.shape[:-2] == taus.shape[:-1])
    holds = holds and a.shape[-2] == c.shape[-2 if left else -1] and (
        taus.shape[-1] <= min(a.shape[-2:]))
    return _require(holds, "reflections must be of the matrix's rows or columns", [a, taus, c])


def triangular(a: ShapedArray, b: ShapedArray, *, left_side: bool, **params: object) -> str | None:
    holds = a.ndim >= 2 and b.ndim == a.ndim and a.shape[-1] == a.shape[-2] and (
        a.shape[:-2] == b.shape[:-2] and a.shape[-1] == b.shape[-2 if left_side else -1])
    return _require(holds, "a square matrix for the other's rows or columns is needed", [a, b])


def permutation_size(pivots: ShapedArray, *, permutation_size: int) -> str | None:
    return _require(pivots.shape[-1] <= permutation_size,
                    "there are no more exchanges than elements", [pivots], permutation_size)


# --- random numbers, bits, transforms -------------------------------------------------------------

def wraps(words: ShapedArray, *, impl: Any) -> str | None:
    holds = words.dtype == dtypes.uint32 and words.ndim and words.shape[-1] == impl.dtype.words
    return _require(holds, f"a key of {impl.name} has {impl.dtype.words} words", [words])


def state_of(state: ShapedArray, *, dtype: object, **params: object) -> str | None:
    holds = state.dtype == dtypes.uint32 and state.shape == (4,) or (
        state.dtype == dtypes.uint64 and state.shape == (2,))
    holds = holds and isinstance(dtype, np.dtype) and dtype in dtypes.UNSIGNED
    return _require(holds, "the state of a generator of bits is of 128 bits", [state], dtype)


def bitcast(x: ShapedArray, *, new_dtype: DType) -> str | None:
    if x.dtype == new_dtype:
        return None
    if any(dtypes.is_opaque(kind) or dtypes.is_bool(kind) or dtypes.is_complex(kind)
           for kind in (x.dtype, new_dtype)):
        return f"the bits of {x.dtype} are none of {new_dtype}"
    old, new = (bit_width(dtypes.physical(kind)) for kind in (x.dtype, new_dtype))
    return _require(new <= old or x.ndim and x.shape[-1] * old == new,
                    f"the last dimension must fill an element of {new_dtype}", [x])


def transform(x: ShapedArray, *, fft_type: enum.Enum, fft_lengths: Shape) -> str | None:
    rank = len(fft_lengths)
    holds = 1 <= rank <= x.ndim and all(length > 0 for length in fft_lengths)
    if holds:
        name = fft_type.name
        given = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1) if name == "IRFFT" else fft_lengths
        holds = x.shape[x.ndim - rank:] == tuple(given)
    return _require(holds, "the lengths must be those of the last dimensions", [x], fft_lengths)


def fills(x: ShapedArray, indices: ShapedArray, *, fill_value: Any, **params: object) -> str | None:
    """What a gather fills with is an element."""
    if fill_value is None:
        return None
    physical = dtypes.physical(x.dtype)
    holds = isinstance(fill_value.bits, str) and re.fullmatch(
        "[0-9a-f]*", fill_value.bits) and len(fill_value.bits) == 2 * physical.itemsize
    return None if holds and fill_value.dtype == physical else (
        f"it fills {x.dtype} with something else")


def seeds(x: ShapedArray, **params: object) -> str | None:
    return None if x.dtype in dtypes.INTS else f"a seed is an integer, and not of {x.dtype}"
