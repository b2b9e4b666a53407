"""The lowering context for MAX graphs of an accelerator.

Our loops are for processors, and our elementwise kernels for any target: what has a loop of ours on
the CPU is composed of MAX's operations here. What cannot be is a step of the host
(``maxjax._max.graph.accelerator.device_reason``), and never comes here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from max.dtype import DType
from max.graph import DeviceRef, TensorValue, ops

from maxjax._base import dtypes
from maxjax._max.graph.context import GraphContext
from maxjax._max.lowering import LoweringError
from maxjax._primitives.random_bits import PARITY, ROTATIONS

_REDUCTIONS = {"sum": ops.sum, "prod": ops.prod, "max": ops.max, "min": ops.min}
# Sums and products wrap around, or round, in a wider dtype as they do in their own.
_WIDER = {DType.bool: DType.int32, DType.int8: DType.int32, DType.uint8: DType.int32,
          DType.int16: DType.int32, DType.uint16: DType.int32, DType.uint32: DType.int64,
          DType.float16: DType.float32, DType.bfloat16: DType.float32}


class DeviceContext(GraphContext):
    """Lowers equations into a graph for an accelerator.

    Args:
      device: the accelerator; the CPU for a simulated one.
    """

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
        result = ops.reshape(_REDUCTIONS[kind](wider, axis=1), (outer, inner))
        if kind in ("max", "min") and x.dtype.is_float():
            # MAX's drop NaN.
            is_nan = ops.cast(self.kernel("ne", wider, wider, out_dtype=dtypes.bool_), DType.int32)
            some = ops.reshape(ops.max(is_nan, axis=1), (outer, inner))
            result = self.select(self.native("gt", some, self.scalar(0, some)),
                                 [result, self.full_like(result, np.nan)])
        return result if wide == x.dtype else ops.cast(result, x.dtype)

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

    # --- steps of the host ---
    def cumulative(self, kind: str, x: TensorValue, axis: int, reverse: bool) -> TensorValue:
        raise LoweringError("a cumulative operation is a step of the host")

    def sliding(self, kernel: str, operands: Sequence[TensorValue], shape: Sequence[int],
                window: Sequence[int], strides: Sequence[int], low: Sequence[int],
                window_dilation: Sequence[int], base_dilation: Sequence[int]) -> TensorValue:
        raise LoweringError("a window is a step of the host")

    def scatter_rows(self, kind: str, x: TensorValue, rows: TensorValue,
                     updates: TensorValue) -> TensorValue:
        raise LoweringError("a scatter is a step of the host")

    def sort_permutation(self, x: TensorValue) -> TensorValue:
        raise LoweringError("a sort is a step of the host")
