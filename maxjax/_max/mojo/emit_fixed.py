"""Writes an elementwise group as a function for its sizes: those, and all strides, are numbers in
its text, and it is given where its operands are. Loops that are one function consist of such ones
(``loop_function.py``): a row of 24 elements is three vectors there, without a loop."""

from __future__ import annotations

from maxjax._base.dtypes import name_of
from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.emit import MapEmitter
from maxjax._max.mojo.emitter import Value, stored_name
from maxjax._max.mojo.layout import KernelIntegers
from maxjax._max.mojo.structure import STRIDED, KernelStructure


class FixedEmitter(MapEmitter):
    """Writes one function."""

    def __init__(self, structure: KernelStructure, call: KernelIntegers, name: str):
        super().__init__(structure)
        self.call = call
        self.name = name

    def function(self) -> list[str]:
        """Its lines."""
        self.write(self.outputs)
        return self.lines

    def _begin(self) -> None:
        operands = ", ".join(
            f"p{number}: " + ("Int" if x.is_iota else
                              f"Pointer[Scalar[{stored_name(x.dtype)}], MutAnyOrigin]")
            for number, x in enumerate(self.operands))
        self.line(0, "@always_inline")
        self.line(0, f"def {self.name}({operands}):")
        names = [f"{name_of(x.dtype)}" for x in self.operands]
        self.line(1, f'"""Of {", ".join(dict.fromkeys(names))}."""')

    def _write_scalars(self, outputs: list[tuple[Value, int]]) -> None:
        self._begin()
        for value in self.values:
            self._compute(1, value, "1", self._pointer_call)
        for value, number in outputs:
            self._store(1, value, number, "1", self._pointer_call)

    def write(self, outputs: list[tuple[Value, int]]) -> None:
        if not self.has_inner:
            self._write_scalars(outputs)
            return
        self._begin()
        for number in range(len(self.operands)):
            if self.inner_stride(number) == STRIDED:
                self.line(1, f"var t{number} = {self.call.strides[number]}")
        costly = any(value.scope == "sweep" and value.kind == "apply"
                     and value.name not in CHEAP for value in self.values)
        self.line(1, f"comptime W = {'2 * ' if costly else ''}simd_width_of[{self._widest()}]()")
        for value in self.values:
            if value.scope == "call":
                self._compute(1, value, "1", self._pointer_call)
        depth = 1
        for number, dim in enumerate(self.call.point_dims):
            self.line(depth, f"for i{number} in range({dim[0]}):")
            depth += 1
        self._point(depth, outputs)

    def _point(self, depth: int, outputs: list[tuple[Value, int]]) -> None:
        for value in self.values:
            if value.scope == "point":
                self._compute(depth, value, "1", self._pointer_point)
        swept = [value for value in self.values if value.scope == "sweep"]
        numbers = [value.operand for value in swept if value.operand >= 0]
        stores = [number for _, number in outputs]
        self._row_pointers(depth, [*numbers, *stores], self._pointer_point)
        self._closure(depth, "body[w: Int]", self._captures(
            swept, [*numbers, *stores],
            more=[value for value, _ in outputs if value.scope != "sweep"]))
        for value in swept:
            self._compute(depth + 1, value, "w", self._pointer_sweep)
        for value, number in outputs:
            self._store(depth + 1, value, number, "w", self._pointer_sweep)
        self.line(depth, f"sweep_fixed[W, {self.call.length}](body)")

    def _pointer_point(self, number: int) -> tuple[str, str]:
        terms = [f"i{k} * {dim[1 + number]}" for k, dim in enumerate(self.call.point_dims)
                 if dim[1 + number]]
        return f"p{number}", " + ".join(terms) or "0"
