"""The lowering context for MAX graphs of an accelerator.

Our loops are for processors, and our elementwise kernels for any target: what has a loop of ours on
the CPU is composed of MAX's operations here. What cannot be is a step of the host
(``maxjax._max.graph.accelerator.device_reason``), and never comes here.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from max.dtype import DType
from max.graph import DeviceRef, TensorValue, ops

from maxjax._base import dtypes
from maxjax._max.graph.context import GraphContext
from maxjax._max.lowering import reduction_identity
from maxjax._max.operations import LoweringError
from maxjax._primitives.convolution import window_positions
from maxjax._primitives.threefry import PARITY, ROTATIONS

_REDUCTIONS = {"sum": ops.sum, "prod": ops.prod, "max": ops.max, "min": ops.min}
# Those of lax.Precision and lax.DotAlgorithmPreset that ask for more than the matrix units of an
# accelerator give for float32 operands, which round them to ten bits behind the point.
_EXACT_PRODUCTS = frozenset(("HIGHEST", "F32_F32_F32", "TF32_TF32_F32_X3", "BF16_BF16_F32_X3",
                             "BF16_BF16_F32_X6", "BF16_BF16_F32_X9", "F64_F64_F64"))
_LOWER_BITS = 13        # of a float32, which they do not take
# So many places of a scatter are passed over at once where none is an element's row.
_PLACES = 64
# The kernel's numbers.
_SCATTERS = {"set": 0, "add": 1, "mul": 2, "min": 3, "max": 4}
# Sums and products wrap around, or round, in a wider dtype as they do in their own.
_WIDER = {DType.bool: DType.int32, DType.int8: DType.int32, DType.uint8: DType.int32,
          DType.int16: DType.int32, DType.uint16: DType.int32, DType.uint32: DType.int64,
          DType.float16: DType.float32, DType.bfloat16: DType.float32}


class DeviceContext(GraphContext):
    """Lowers equations into a graph for an accelerator.

    Args:
      device: the accelerator; the CPU for a simulated one.
    """

    selects_in_windows = False

    def __init__(self, device: DeviceRef):
        self.device = device

    def transpose(self, x: TensorValue, permutation: Sequence[int]) -> TensorValue:
        if list(permutation) == sorted(permutation):
            return x
        shape = self.shape(x)
        if 0 in shape:
            return self.reshape(x, [shape[dim] for dim in permutation])
        if x.dtype == DType.bool:
            return ops.cast(ops.permute(ops.cast(x, DType.uint8), list(permutation)), DType.bool)
        return ops.permute(x, list(permutation))

    def reduce_middle(self, kind: str, x: TensorValue) -> TensorValue:
        if kind in ("and", "or") and x.dtype == DType.bool:
            kind = {"and": "min", "or": "max"}[kind]
        if kind not in _REDUCTIONS or x.dtype == DType.uint64:
            return self._halved(kind, x)
        outer, _, inner = self.shape(x)
        wide = _WIDER.get(x.dtype, x.dtype)
        wider = x if wide == x.dtype else ops.cast(x, wide)
        if kind in ("max", "min") and x.dtype.is_float():
            # MAX's drop NaN, and an integer has none.
            ordered = self._ordered(wider, kind)
            extremes = ops.reshape(_REDUCTIONS[kind](ordered, axis=1), (outer, inner))
            result = self._from_ordered(extremes, self.dtype(wider))
        else:
            result = ops.reshape(_REDUCTIONS[kind](wider, axis=1), (outer, inner))
        return result if wide == x.dtype else ops.cast(result, x.dtype)

    def _ordered(self, x: TensorValue, kind: str) -> TensorValue:
        """Integers in the order of floats, with NaN beyond infinity: above it for "max", below
        -infinity for "min"."""
        integers = np.dtype(f"int{8 * self.dtype(x).itemsize}")
        least, most = dtypes.extremes(integers)
        flipped = self._flipped(self.bitcast(x, integers))
        is_nan = self.kernel("ne", x, x, out_dtype=dtypes.bool_)
        return self.select(is_nan, [flipped, self.full_like(
            flipped, most if kind == "max" else least)])

    def _from_ordered(self, x: TensorValue, dtype: np.dtype) -> TensorValue:
        found = self.bitcast(self._flipped(x), dtype)
        for end in dtypes.extremes(self.dtype(x)):
            is_nan = self.native("eq", x, self.scalar(end, x))
            found = self.select(is_nan, [found, self.full_like(found, np.nan)])
        return found

    def _flipped(self, bits: TensorValue) -> TensorValue:
        """The bits of floats as integers in their order, and back: those of negative floats but
        for the sign are turned over."""
        dtype = self.dtype(bits)
        signs = self.kernel("shift_right_arithmetic", bits,
                            self.scalar(8 * dtype.itemsize - 1, bits))
        return self.kernel("xor", bits, self.kernel(
            "and", signs, self.scalar(np.iinfo(dtype).max, bits)))

    def _halved(self, kind: str, x: TensorValue) -> TensorValue:
        """A reduction that MAX has not, as the operation on ever shorter halves."""
        operation = {"sum": "add", "prod": "mul"}.get(kind, kind)
        while (size := self.shape(x)[1]) > 1:
            outer, _, inner = self.shape(x)
            half = size // 2
            parts = [self.slice(x, (0, start, 0), (outer, start + half, inner), None)
                     for start in (0, half)]
            combined = (self.native if operation in ("add", "mul") else self.kernel)(
                operation, *parts)
            if size % 2:
                rest = self.slice(x, (0, size - 1, 0), (outer, size, inner), None)
                combined = self.concatenate([combined, rest], 1)
            x = combined
        outer, _, inner = self.shape(x)
        return self.reshape(x, (outer, inner))

    def matmul(self, a: TensorValue, b: TensorValue, transpose_a: bool = False,
               transpose_b: bool = False) -> TensorValue:
        """In float32 as exact as the equation asks; else by the matrix units, as JAX does it."""
        product = functools.partial(super().matmul, transpose_a=transpose_a,
                                    transpose_b=transpose_b)
        if self.dtype(a) != dtypes.float32 or 0 in (*self.shape(a), *self.shape(b)) or (
                self.eqn is None or not _is_exact(self.eqn.params.get("precision"))):
            return product(a, b)
        (seen, upper, rest), (seen_b, upper_b, rest_b) = self._parts(a), self._parts(b)
        # What is left out, rest @ rest_b, is below 2**-20 of the product of the magnitudes.
        small = self.native("add", product(upper, rest_b), product(rest, upper_b))
        return self.native("add", product(seen, seen_b), small)

    def _parts(self, x: TensorValue) -> tuple[TensorValue, TensorValue, TensorValue]:
        """What the matrix units see of float32 numbers; the same and what is left, of the finite
        ones (else an infinity times a rest of 0 would be NaN)."""
        bits = self.bitcast(x, np.dtype(np.int32))
        mask = self.scalar(-1 << _LOWER_BITS, bits)
        upper = self.bitcast(self.kernel("and", bits, mask), np.dtype(np.float32))
        rest = self.native("sub", x, upper)
        is_finite = self.native("eq", rest, rest)
        nothing = self.full_like(x, 0)
        return tuple([self.select(is_finite, [other, finite]) for other, finite in (
            (x, upper), (nothing, upper), (nothing, rest))])

    def argreduce(self, kind: str, x: TensorValue, axis: int, dtype: Any) -> TensorValue:
        """The first position of what is equal to the extreme; of a NaN, where there is one."""
        shape = self.shape(x)
        result = tuple(size for dim, size in enumerate(shape) if dim != axis)
        if x.dtype == DType.bool:
            x = ops.cast(x, DType.int32)
        wide = self.canonical(x, [axis])
        outer, size, inner = self.shape(wide)
        extreme = self.reshape(self.reduce_middle(kind, wide), (outer, 1, inner))
        is_found = self.native("eq", wide, extreme)
        if x.dtype.is_float():
            is_nan = self.kernel("ne", wide, wide, out_dtype=dtypes.bool_)
            is_found = ops.logical_or(is_found, is_nan)
        positions = self.iota(np.int32, (outer, size, inner), 1)
        positions = self.select(is_found, [self.full_like(positions, size), positions])
        return self.convert(self.reshape(self.reduce_middle("min", positions), result), dtype)

    def threefry(self, key0: TensorValue, key1: TensorValue, counter0: TensorValue,
                 counter1: TensorValue) -> list[TensorValue]:
        def whole(word: int, like: TensorValue) -> TensorValue:
            return self.scalar(np.uint32(word), like)

        keys = (key0, key1,
                self.kernel("xor", self.kernel("xor", key0, key1), whole(int(PARITY), key0)))
        x, y = self.native("add", counter0, keys[0]), self.native("add", counter1, keys[1])
        for step in range(5):
            for rotation in ROTATIONS[step % 2]:
                x = self.native("add", x, y)
                turned = self.kernel(
                    "or", self.kernel("shift_left", y, whole(rotation, y)),
                    self.kernel("shift_right_logical", y, whole(32 - rotation, y)))
                y = self.kernel("xor", turned, x)
            x = self.native("add", x, keys[(step + 1) % 3])
            y = self.native("add", self.native("add", y, keys[(step + 2) % 3]),
                            whole(step + 1, y))
        return [x, y]

    def cumulative(self, kind: str, x: TensorValue, axis: int, reverse: bool) -> TensorValue:
        """After the step of distance d each element combines the 2 d that end with it."""
        shape, own = self.shape(x), x.dtype
        if 0 in shape:
            return x
        wide = _WIDER[own] if own in (DType.float16, DType.bfloat16) else own
        x = self.canonical(x if wide == own else ops.cast(x, wide), [axis])
        size, distance = self.shape(x)[1], 1
        while distance < size:
            combined = self._combined(kind, self._part(x, 1, 0, size - distance),
                                      self._part(x, 1, distance, size))
            ends = (size - distance, size) if reverse else (0, distance)
            rest = self._part(x, 1, *ends)
            x = self.concatenate([combined, rest] if reverse else [rest, combined], 1)
            distance *= 2
        result = self.reshape(x, shape)
        return result if wide == own else ops.cast(result, own)

    def _combined(self, kind: str, x: TensorValue, y: TensorValue) -> TensorValue:
        operation = {"sum": "add", "prod": "mul"}.get(kind)
        return self.kernel(kind, x, y) if operation is None else self.native(operation, x, y)

    def _part(self, x: TensorValue, axis: int, start: int, limit: int, step: int = 1
              ) -> TensorValue:
        shape = self.shape(x)
        starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
        starts[axis], limits[axis], steps[axis] = start, limit, step
        return self.slice(x, starts, limits, steps)

    def sliding(self, kernel: str, operands: Sequence[TensorValue], shape: Sequence[int],
                window: Sequence[int], strides: Sequence[int], low: Sequence[int],
                window_dilation: Sequence[int], base_dilation: Sequence[int]) -> TensorValue:
        if 0 in shape or 0 in self.shape(operands[0]):
            raise LoweringError(f"{kernel} of nothing")
        x, = operands
        kind = kernel.removeprefix("window_")
        filler = 0 if kernel == "unfold" else reduction_identity(kind, self.dtype(x))
        counts = tuple(shape[1:3])
        config = [(before, (count - 1) * stride + (width - 1) * step + 1 - before
                   - (size - 1) * base - 1, base - 1)
                  for size, width, count, stride, before, step, base in zip(
                      self.shape(x)[1:3], window, counts, strides, low, window_dilation,
                      base_dilation, strict=True)]
        x = self.pad(x, self.scalar(filler, x), [(0, 0, 0), *config, (0, 0, 0)])
        outer, height, columns, inner = self.shape(x)
        if kernel == "unfold":
            places = window_positions((height, columns), window, counts, tuple(strides),
                                      window_dilation)
            x = self.reshape(x, (outer, height * columns, inner))
            x = self.gather_rows(x, places.reshape(-1).astype(np.int32), 1)
            return self.reshape(x, tuple(shape))
        for axis in (1, 2):
            x = self._windows_along(kind, x, axis, window[axis - 1], window_dilation[axis - 1])
            x = self._part(x, axis, 0, self.shape(x)[axis], strides[axis - 1])
        return x

    def _windows_along(self, kind: str, x: TensorValue, axis: int, width: int, step: int
                       ) -> TensorValue:
        """Combines ``width`` elements ``step`` apart, of windows whose widths are powers of two."""
        count = self.shape(x)[axis] - (width - 1) * step
        result: Any = None
        start, power = 0, 1
        while True:
            if width & power:
                part = self._part(x, axis, start, start + count)
                result = part if result is None else self._combined(kind, result, part)
                start += power * step
            if 2 * power > width:
                return result
            size = self.shape(x)[axis]
            x = self._combined(kind, self._part(x, axis, 0, size - power * step),
                               self._part(x, axis, power * step, size))
            power *= 2

    def write_window(self, x: TensorValue, update: TensorValue, starts: Sequence[TensorValue]
                     ) -> TensorValue:
        """Each element of x learns whether it is in the window, and what it gets there."""
        shape, sizes = self.shape(x), self.shape(update)
        if 0 in sizes:
            return x
        inside = None
        for dim, (size, part, start) in enumerate(zip(shape, sizes, starts, strict=True)):
            if size == part:
                continue
            if start.dtype == DType.uint64:
                start = self.kernel("min", start, self.scalar(size - part, start))
            start = self._clipped(self.convert(start, np.dtype(np.int64)), size - part)
            places = self.native("sub", self.iota(np.int64, (size,), 0), start)
            nearest = self._clipped(places, part - 1)
            update = self.gather_rows(update, nearest, dim)
            here = self.reshape(self.native("eq", places, nearest),
                                [size if other == dim else 1 for other in range(len(shape))])
            inside = here if inside is None else ops.logical_and(*self.aligned([inside, here]))
        return update if inside is None else self.select(inside, [x, update])

    def _clipped(self, x: TensorValue, largest: int) -> TensorValue:
        return self.kernel("max", self.kernel("min", x, self.scalar(largest, x)),
                           self.scalar(0, x))

    def scatter_rows(self, kind: str, x: TensorValue, rows: TensorValue,
                     updates: TensorValue) -> TensorValue:
        if x.dtype == DType.bool:
            kind = {"add": "max", "mul": "min"}.get(kind, kind)
            x, updates = ops.cast(x, DType.uint8), ops.cast(updates, DType.uint8)
            return ops.cast(self.scatter_rows(kind, x, rows, updates), DType.bool)
        blocks = -(-self.shape(rows)[0] // _PLACES)
        nowhere = self.full((blocks * _PLACES - self.shape(rows)[0],), -1, dtypes.int32)
        places = self.concatenate([rows, nowhere], 0)
        wide = self.reshape(places, (blocks, _PLACES, 1))
        least, greatest = (self.reshape(self.reduce_middle(end, wide), (blocks,))
                           for end in ("min", "max"))
        return ops.custom(
            "maxjax_device_scatter_rows", self.device, [x, places, least, greatest, updates],
            [x.type], parameters={"kind": _SCATTERS[kind]})[0].tensor

    # --- steps of the host ---
    def sort_permutation(self, x: TensorValue) -> TensorValue:
        raise LoweringError("a sort is a step of the host")


def _is_exact(precision: Hashable) -> bool:
    """Whether a product's precision, or that of one of its operands, asks for all of float32."""
    return any(getattr(part, "name", None) in _EXACT_PRODUCTS
               for part in (precision if isinstance(precision, tuple) else (precision,)))
