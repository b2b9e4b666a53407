"""The lowering context for MAX graphs.

A value is a ``max.graph.TensorValue`` of static shape and of the physical dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from max.dtype import DType
from max.graph import DeviceRef, TensorType, TensorValue, ops

from maxjax._base import dtypes
from maxjax._ir.types import ShapedArray
from maxjax._max.lowering import Lowering, reduction_identity
from maxjax._max.operations import LoweringError

CPU = DeviceRef.CPU()

# MAX's own operations that are correct as they are, by the primitive's name.
_NATIVE: dict[str, Callable[..., Any]] = {
    "add": ops.add,
    "sub": ops.sub,
    "mul": ops.mul,
    "div": ops.div,
    "neg": ops.negate,
    "eq": ops.equal,
    "ne": ops.not_equal,
    "lt": lambda x, y: ops.greater(y, x),
    "le": lambda x, y: ops.greater_equal(y, x),
    "gt": ops.greater,
    "ge": ops.greater_equal,
    "sqrt": ops.sqrt,
    "rsqrt": ops.rsqrt,
    "erf": ops.erf,
    "floor": ops.floor,
    "ceil": ops.ceil,
    "round": ops.round,
    "trunc": ops.trunc,
    "abs": ops.abs,
    "logical_and": ops.logical_and,
    "logical_or": ops.logical_or,
    "logical_not": ops.logical_not,
    "logical_xor": ops.logical_xor,
}
# Where MAX's own operation is wrong or several times slower (docs/max.md): it finds NaN equal to
# anything in not_equal, and equal to itself in equal.
_BETTER = frozenset(("sin", "cos", "log", "log1p"))
_COMPARED_BY_KERNEL = frozenset(("eq", "ne"))
_ON_BOOLS = {"add": ops.logical_or, "mul": ops.logical_and, "eq": None, "ne": ops.logical_xor,
             "max": ops.logical_or, "min": ops.logical_and, "and": ops.logical_and,
             "or": ops.logical_or, "xor": ops.logical_xor, "not": ops.logical_not}


def max_dtype(dtype: Any) -> DType:
    return getattr(DType, dtypes.physical(dtype).name)


def numpy_dtype(dtype: DType) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, dtype.name, None) or dtype.name)


def tensor_type(aval: ShapedArray, device: DeviceRef = CPU) -> TensorType:
    return TensorType(max_dtype(aval.dtype), aval.shape, device)


class GraphContext(Lowering[TensorValue]):
    """Lowers equations into the MAX graph that is being built.

    Attributes:
      device: whose kernels compute.
    """

    device = CPU

    # --- what is known of a value ---
    def shape(self, x: TensorValue) -> tuple[int, ...]:
        return tuple(int(dim) for dim in x.shape)

    def dtype(self, x: TensorValue) -> np.dtype:
        return numpy_dtype(x.dtype)

    def is_float(self, x: TensorValue) -> bool:
        return x.dtype.is_float()

    # --- constants ---
    def constant(self, value: Any) -> TensorValue:
        value = np.array(value, order="C")
        kind = max_dtype(value.dtype)
        if value.dtype == np.bool_:
            flat = ops.constant(value.astype(np.uint8).reshape(-1), DType.uint8, self.device)
            return ops.reshape(ops.cast(flat, DType.bool), value.shape)
        if value.dtype.kind == "V" or value.dtype.name.startswith(("bfloat", "float8")):
            # float32 holds each of them exactly.
            return ops.cast(self.constant(value.astype(np.float32)), kind)
        if not value.ndim:      # ops.constant makes a vector of it
            return ops.reshape(ops.constant(value.reshape(1), kind, self.device), ())
        return ops.constant(value, kind, self.device)

    def scalar(self, value: Any, like: TensorValue) -> TensorValue:
        return self.constant(np.asarray(value, self.dtype(like)))

    def full(self, shape: Sequence[int], value: Any, dtype: Any) -> TensorValue:
        scalar = self.constant(np.asarray(value, dtypes.physical(dtype)))
        return ops.broadcast_to(scalar, tuple(shape))

    def full_like(self, x: TensorValue, value: Any) -> TensorValue:
        return self.full(self.shape(x), value, self.dtype(x))

    def iota(self, dtype: Any, shape: Sequence[int], dimension: int) -> TensorValue:
        sizes = [1] * len(shape)
        sizes[dimension] = shape[dimension]
        if shape[dimension] <= 65536:
            line = self.constant(np.arange(shape[dimension]).astype(dtypes.physical(dtype)))
        else:
            line = ops.range(0, shape[dimension], 1, out_dim=shape[dimension],
                             dtype=DType.int64, device=self.device)
            line = ops.cast(line, max_dtype(dtype))
        return ops.broadcast_to(ops.reshape(line, sizes), tuple(shape))

    # --- elementwise ---
    def native(self, name: str, *xs: TensorValue) -> TensorValue:
        """MAX's own operation, or a better kernel of ours."""
        if xs[0].dtype == DType.bool and name in _ON_BOOLS:
            if name == "eq":
                return ops.logical_not(ops.logical_xor(*self.aligned(xs)))
            return _ON_BOOLS[name](*self.aligned(xs))
        if name in _BETTER:
            return self.kernel(name, *xs)
        if xs[0].dtype == DType.bool:
            xs = tuple(ops.cast(x, DType.uint8) for x in xs)
        if name in _COMPARED_BY_KERNEL and xs[0].dtype.is_float():
            return self.kernel(name, *xs, out_dtype=dtypes.bool_)
        return _NATIVE[name](*xs)

    def aligned(self, xs: Sequence[TensorValue]) -> list[TensorValue]:
        """The operands, broadcast to their common shape."""
        shapes = [self.shape(x) for x in xs]
        shape = np.broadcast_shapes(*shapes)
        return [x if own == shape else ops.broadcast_to(self.pad_rank(x, len(shape)), shape)
                for x, own in zip(xs, shapes, strict=True)]

    def pad_rank(self, x: TensorValue, rank: int) -> TensorValue:
        shape = self.shape(x)
        if not shape or len(shape) == rank:
            return x
        return ops.reshape(x, (1,) * (rank - len(shape)) + shape)

    def kernel(self, name: str, *xs: TensorValue, out_dtype: Any = None) -> TensorValue:
        """maxjax's own elementwise kernel."""
        if xs[0].dtype == DType.bool and name in _ON_BOOLS:
            return self.native(name, *xs)
        operands = self.aligned(xs)
        kind = operands[0].dtype if out_dtype is None else max_dtype(out_dtype)
        result_type = TensorType(kind, operands[0].shape, self.device)
        return ops.custom(f"maxjax_{name}", self.device, operands, [result_type])[0].tensor

    def select(self, which: TensorValue, cases: Sequence[TensorValue]) -> TensorValue:
        if len(cases) == 1:
            return cases[0]
        if which.dtype == DType.bool:
            which, on_false, on_true = self.aligned([which, *cases])
            return ops.where(which, on_true, on_false)
        result = cases[-1]
        for number in range(len(cases) - 2, -1, -1):
            chosen = self.native("le", which, self.scalar(number, which))
            result = self.select(chosen, [result, cases[number]])
        return result

    def convert(self, x: TensorValue, dtype: Any) -> TensorValue:
        kind = max_dtype(dtype)
        source = x.dtype
        if source == kind:
            return x
        if kind == DType.bool:
            if source.is_float():
                return self.kernel("convert", x, out_dtype=dtype)
            return self.native("ne", x, self.scalar(0, x))
        if source == DType.bool:
            return ops.cast(x, kind)
        if source.is_float() and kind.is_integral():
            return self.kernel("convert", x, out_dtype=dtype)
        return ops.cast(x, kind)

    def bitcast(self, x: TensorValue, dtype: Any) -> TensorValue:
        old, new = self.dtype(x), dtypes.physical(dtype)
        if old.itemsize == new.itemsize:
            if old == new:
                return x
            if dtypes.bool_ in (old, new):
                return self.convert(x, dtype)
            return self.kernel("bitcast", x, out_dtype=dtype)
        wide, narrow = max(old.itemsize, new.itemsize), min(old.itemsize, new.itemsize)
        wide_bits, narrow_bits = np.dtype(f"uint{wide * 8}"), np.dtype(f"uint{narrow * 8}")
        count = wide // narrow
        shape = self.shape(x)
        if new.itemsize < old.itemsize:
            bits = self.reshape(self.bitcast(x, wide_bits), (*shape, 1))
            shifts = self.constant(np.arange(count, dtype=wide_bits) * wide_bits.type(narrow * 8))
            parts = self.kernel("shift_right_logical", bits, shifts)
            mask = self.scalar((1 << narrow * 8) - 1, parts)
            return self.bitcast(ops.cast(self.kernel("and", parts, mask), max_dtype(narrow_bits)),
                                dtype)
        parts = ops.cast(self.bitcast(x, narrow_bits), max_dtype(wide_bits))
        total = None
        for number in range(count):
            starts = [0] * (len(shape) - 1) + [number]
            limits = [*shape[:-1], number + 1]
            part = self.reshape(self.slice(parts, starts, limits, None), shape[:-1])
            if number:
                part = self.kernel("shift_left", part, self.scalar(number * narrow * 8, part))
            total = part if total is None else self.kernel("or", total, part)
        return self.bitcast(total, dtype)

    # --- shapes ---
    def reshape(self, x: TensorValue, shape: Sequence[int]) -> TensorValue:
        if self.shape(x) == tuple(shape):
            return x
        if 0 in shape:      # MAX wants the other dimensions of an empty array to match
            return self.full(shape, 0, self.dtype(x))
        return ops.reshape(x, tuple(shape))

    def broadcast(self, x: TensorValue, shape: Sequence[int],
                  dims: Sequence[int]) -> TensorValue:
        sizes = [1] * len(shape)
        for dim, size in zip(dims, self.shape(x), strict=True):
            sizes[dim] = size
        x = self.reshape(x, sizes)
        return x if tuple(sizes) == tuple(shape) else ops.broadcast_to(x, tuple(shape))

    def transpose(self, x: TensorValue, permutation: Sequence[int]) -> TensorValue:
        shape = self.shape(x)
        result = [shape[dim] for dim in permutation]
        # Runs of neighbours that stay adjacent are merged into one dimension; those of size 1 are
        # dropped.
        groups: list[list[int]] = []
        for dim in permutation:
            if shape[dim] == 1:
                continue
            if groups and all(shape[d] == 1 for d in range(groups[-1][-1] + 1, dim)) \
                    and dim > groups[-1][-1]:
                groups[-1].append(dim)
            else:
                groups.append([dim])
        if len(groups) <= 1 or math.prod(shape) == 0:
            return self.reshape(x, result)
        order = sorted(range(len(groups)), key=lambda g: groups[g][0])
        sizes = [math.prod(shape[dim] for dim in groups[g]) for g in order]
        places = [order.index(g) for g in range(len(groups))]
        swapped = _exchange(places)
        if swapped is None:
            return self.reshape(ops.permute(self.reshape(x, sizes), places), result)
        first = swapped
        outer, inner = math.prod(sizes[:first]), math.prod(sizes[first + 2:])
        rows, columns = sizes[first], sizes[first + 1]
        wide = self.reshape(x, (outer, rows, columns, inner))
        turned = ops.custom("maxjax_transpose", self.device, [wide], [TensorType(
            x.dtype, (outer, columns, rows, inner), self.device)])[0].tensor
        return self.reshape(turned, result)

    def concatenate(self, xs: Sequence[TensorValue], axis: int) -> TensorValue:
        kept = [x for x in xs if math.prod(self.shape(x))]
        if not kept:
            shape = list(self.shape(xs[0]))
            shape[axis] = sum(self.shape(x)[axis] for x in xs)
            return self.reshape(xs[0], shape)
        return kept[0] if len(kept) == 1 else ops.concat(kept, axis)

    def slice(self, x: TensorValue, starts: Sequence[int], limits: Sequence[int],
              strides: Sequence[int] | None) -> TensorValue:
        strides = strides or (1,) * len(starts)
        shape = tuple(max(0, -(-(limit - start) // step))
                      for start, limit, step in zip(starts, limits, strides, strict=True))
        if shape == self.shape(x):
            return x
        if 0 in shape:
            return self.full(shape, 0, self.dtype(x))
        index = [
            (slice(start, limit, step), size)
            for start, limit, step, size in zip(starts, limits, strides, shape, strict=True)]
        return ops.slice_tensor(x, index)

    def pad(self, x: TensorValue, value: TensorValue, config: Sequence[Any]) -> TensorValue:
        shape = self.shape(x)
        for dim, (_, _, interior) in enumerate(config):
            if interior and shape[dim] > 1:
                x = self.dilate(x, value, dim, interior)
                shape = self.shape(x)
        cut = [(max(0, -low), size - max(0, -high))
               for size, (low, high, _) in zip(shape, config, strict=True)]
        if any(start > limit for start, limit in cut):
            # A cut beyond the other end leaves only padding.
            total = [low + high + size for size, (low, high, _) in zip(shape, config, strict=True)]
            return ops.broadcast_to(value, tuple(total))
        if any(pair != (0, size) for pair, size in zip(cut, shape, strict=True)):
            x = self.slice(x, [start for start, _ in cut], [limit for _, limit in cut], None)
        amounts = [(max(0, low), max(0, high)) for low, high, _ in config]
        for dim, (low, high) in enumerate(amounts):
            if low or high:
                sizes = list(self.shape(x))
                parts = []
                for amount in (low, high):
                    sizes[dim] = amount
                    parts.append(ops.broadcast_to(value, tuple(sizes)) if amount else None)
                pieces = [part for part in (parts[0], x, parts[1]) if part is not None]
                x = self.concatenate(pieces, dim)
        return x

    def dilate(self, x: TensorValue, value: TensorValue, dim: int, interior: int) -> TensorValue:
        """Puts ``interior`` values between the elements along a dimension."""
        shape = self.shape(x)
        wide = self.reshape(x, (*shape[:dim + 1], 1, *shape[dim + 1:]))
        filler = ops.broadcast_to(value, (*shape[:dim + 1], interior, *shape[dim + 1:]))
        joined = ops.concat([wide, filler], dim + 1)
        size = shape[dim] * (interior + 1)
        flat = self.reshape(joined, (*shape[:dim], size, *shape[dim + 1:]))
        limits = list(self.shape(flat))
        limits[dim] = size - interior
        return self.slice(flat, [0] * len(limits), limits, None)

    def reverse(self, x: TensorValue, dimensions: Sequence[int]) -> TensorValue:
        for dim in dimensions:
            size = self.shape(x)[dim]
            if size > 1:
                x = self.gather_rows(x, self.constant(np.arange(size)[::-1].astype(np.int64)), dim)
        return x

    # --- reductions and products ---
    def canonical(self, x: TensorValue, axes: Sequence[int]) -> TensorValue:
        """``x`` as (outer, reduced, inner), with the reduced dimensions brought together."""
        shape = self.shape(x)
        axes = sorted(axes)
        contiguous = axes == list(range(axes[0], axes[-1] + 1))
        if not contiguous:
            kept = [dim for dim in range(len(shape)) if dim not in axes]
            x = self.transpose(x, [*kept, *axes])
            outer = math.prod(shape[dim] for dim in kept)
            return self.reshape(x, (outer, math.prod(shape[dim] for dim in axes), 1))
        outer = math.prod(shape[:axes[0]])
        inner = math.prod(shape[axes[-1] + 1:])
        return self.reshape(x, (outer, math.prod(shape[dim] for dim in axes), inner))

    def reduce(self, kind: str, x: TensorValue, axes: Sequence[int]) -> TensorValue:
        shape = self.shape(x)
        result = tuple(size for dim, size in enumerate(shape) if dim not in axes)
        if not axes:
            return x
        if math.prod(shape) == 0:
            return self.full(result, reduction_identity(kind, self.dtype(x)), self.dtype(x))
        if all(shape[dim] == 1 for dim in axes):
            return self.reshape(x, result)
        wide = self.canonical(x, axes)
        return self.reshape(self.reduce_middle(kind, wide), result)

    def reduce_middle(self, kind: str, x: TensorValue) -> TensorValue:
        outer, _, inner = self.shape(x)
        if kind in ("and", "or") and x.dtype == DType.bool:
            kind = {"and": "min", "or": "max"}[kind]
        if kind == "sum" and inner == 1 and x.dtype in (DType.float32, DType.float64):
            # MAX's own operation fuses with its producer, and is correct for these dtypes.
            return ops.sum(ops.reshape(x, (outer, x.shape[1])), axis=1)
        return ops.custom(f"maxjax_reduce_{kind}", self.device, [x],
                          [TensorType(x.dtype, (outer, inner), self.device)])[0].tensor

    def argreduce(self, kind: str, x: TensorValue, axis: int, dtype: Any) -> TensorValue:
        shape = self.shape(x)
        result = tuple(size for dim, size in enumerate(shape) if dim != axis)
        wide = self.canonical(x, [axis])
        outer, _, inner = self.shape(wide)
        index = ops.custom(f"maxjax_arg{kind}", self.device, [wide],
                           [TensorType(DType.int32, (outer, inner), self.device)])[0].tensor
        return self.convert(self.reshape(index, result), dtype)

    def cumulative(self, kind: str, x: TensorValue, axis: int, reverse: bool) -> TensorValue:
        shape = self.shape(x)
        if math.prod(shape) == 0:
            return x
        wide = self.canonical(x, [axis])
        result = ops.custom(f"maxjax_cum{kind}", self.device, [wide], [wide.type],
                            parameters={"reverse": reverse})[0].tensor
        return self.reshape(result, shape)

    def matmul(self, a: TensorValue, b: TensorValue, transpose_a: bool = False,
               transpose_b: bool = False) -> TensorValue:
        rank = len(self.shape(a))
        swap = [*range(rank - 2), rank - 1, rank - 2]
        if transpose_a:
            a = ops.permute(a, swap)
        if transpose_b:
            b = ops.permute(b, swap)
        if 0 in (*self.shape(a), *self.shape(b)):
            shape = (*self.shape(a)[:-1], self.shape(b)[-1])
            return self.full(shape, 0, self.dtype(a))
        return ops.matmul(a, b)

    def sliding(self, kernel: str, operands: Sequence[TensorValue], shape: Sequence[int],
                window: Sequence[int], strides: Sequence[int], low: Sequence[int],
                window_dilation: Sequence[int], base_dilation: Sequence[int]) -> TensorValue:
        if 0 in shape or 0 in self.shape(operands[0]):
            raise LoweringError(f"{kernel} of nothing")
        geometry = np.array([*window, *strides, *low, *window_dilation, *base_dilation], np.int32)
        return ops.custom(f"maxjax_{kernel}", self.device, [*operands, self.constant(geometry)],
                          [TensorType(operands[0].dtype, tuple(shape), self.device)])[0].tensor

    # --- indexing ---
    def gather_rows(self, x: TensorValue, indices: Any, axis: int) -> TensorValue:
        if isinstance(indices, np.ndarray):
            indices = self.constant(indices)
        if x.dtype == DType.bool:
            return ops.cast(ops.gather(ops.cast(x, DType.uint8), indices, axis), DType.bool)
        return ops.gather(x, indices, axis)

    def scatter_rows(self, kind: str, x: TensorValue, rows: TensorValue,
                     updates: TensorValue) -> TensorValue:
        if x.dtype == DType.bool:
            kind = {"add": "max", "mul": "min"}.get(kind, kind)
        return ops.custom(f"maxjax_scatter_rows_{kind}", self.device, [x, rows, updates],
                          [x.type])[0].tensor

    def sort_permutation(self, x: TensorValue) -> TensorValue:
        return ops.custom("maxjax_argsort", self.device, [x],
                          [TensorType(DType.int32, self.shape(x), self.device)])[0].tensor

    def threefry(self, key0: TensorValue, key1: TensorValue, counter0: TensorValue,
                 counter1: TensorValue) -> list[TensorValue]:
        results = ops.custom("maxjax_threefry2x32", self.device, [key0, key1, counter0, counter1],
                             [counter0.type, counter1.type])
        return [result.tensor for result in results]


def _exchange(places: list[int]) -> int | None:
    """Where a permutation only exchanges two neighbours; None if it does anything else."""
    moved = [i for i, place in enumerate(places) if place != i]
    if len(moved) == 2 and moved[1] == moved[0] + 1:
        return moved[0]
    return None
