"""Programs with symbolic sizes: sizes are values of the text, computed from those of arguments.

An operation whose result has a symbolic size takes it as an operand where the operands' types do
not give it. What has no such form raises ``LoweringError``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import Dimension, Size, is_dimension, larger, symbol_in
from maxjax._ir.primitive import Primitive
from maxjax._ir.symbolic import linear_in, mismatch, specification_text, symbols_of
from maxjax._max.operations import LoweringError
from maxjax._stablehlo.emitter import Emitter, Rule
from maxjax._stablehlo.text import boolean, integers, listed
from maxjax._stablehlo.writer import Value

_INDEX = np.dtype(np.int32)
# Values that the message of an assertion says.
_MOST_SHOWN = 32
# The operations whose results' types do not follow from those of the operands.
_SIZED = frozenset([f"stablehlo.{name}" for name in (
    "iota", "reshape", "broadcast_in_dim", "rng_bit_generator", "custom_call")])


class SymbolicEmitter(Emitter):
    """Writes a function whose arguments have symbolic sizes.

    Attributes:
      symbols: the value of each symbol.
      functions: the lines of functions that the written one calls.
      index: the dtype of sizes.
    """

    def __init__(self, rules: dict[Primitive, Rule], located: str | None = None):
        super().__init__(rules, located)
        self.symbols: dict[str, Value] = {}
        self.functions: list[str] = []
        self.index: np.dtype = _INDEX

    def rule_of(self, primitive: Primitive) -> Rule:
        if primitive.values.known is None:
            return super().rule_of(primitive)
        known = primitive.values.known
        return lambda _, **params: self.convert(self.size(known(params)), self.out_avals[0].dtype)

    def emit_all(self, operation: str, operands: Sequence[Value],
                 results: Sequence[tuple[Sequence[int], Any]], attributes: str = "",
                 regions: Sequence[Callable[[], None]] = (), discardable: str = ""
                 ) -> list[Value]:
        is_told = "indices_of_shape_operands" in discardable or any(
            f'call_target_name = "{dialect}.' in attributes for dialect in ("maxjax", "stablehlo"))
        if operation in _SIZED and not is_told and _is_symbolic(*[shape for shape, _ in results]):
            raise LoweringError(f"{operation} has no symbolic sizes")
        return super().emit_all(operation, operands, results, attributes, regions, discardable)

    # --- sizes ---
    def size(self, size: Size) -> Value:
        if not is_dimension(size):
            return self.constant(np.array(size, self.index))
        terms = []
        for monomial, coefficient in size.terms.items():
            factors = [self._atom(size, atom) for atom, power in monomial for _ in range(power)]
            if coefficient != 1 or not factors:
                factors.append(self.size(coefficient))
            terms.append(functools.reduce(functools.partial(self.kernel, "mul"), factors))
        return functools.reduce(functools.partial(self.kernel, "add"), terms)

    def _atom(self, size: Dimension, name: str) -> Value:
        """What a term multiplies: a symbol, a quotient or an extreme."""
        operands = size.scope.operands(name)
        if operands is None:
            if name not in self.symbols:
                raise LoweringError(f"no argument says the size {name}")
            return self.convert(self.symbols[name], self.index)
        left, right = map(self.size, operands)
        extreme = size.scope.extremes.get(name)
        return self.divided(left, right)[0] if extreme is None else self.kernel(
            extreme.operation, left, right)

    def divided(self, x: Value, y: Value) -> tuple[Value, Value]:
        """The floor of a quotient, and the remainder of the division that is rounded to zero."""
        quotient, rest = self.kernel("div", x, y), self.kernel("rem", x, y)
        is_less = self.kernel(
            "and", self.compare("ne", self.kernel("sign", x), self.kernel("sign", y)),
            self.compare("ne", rest, self.scalar(0, rest)))
        less = self.kernel("sub", quotient, self.scalar(1, quotient))
        return self.select(is_less, [quotient, less]), rest

    def sizes(self, sizes: Sequence[Size]) -> Value:
        """Sizes as a vector."""
        if not _is_symbolic(sizes):
            return self.constant(np.array([*map(int, sizes)], _INDEX))
        parts = [super(SymbolicEmitter, self).reshape(self.size(size), (1,)) for size in sizes]
        return parts[0] if len(parts) == 1 else super().concatenate(parts, 0)

    def shape_operands(self, shapes: Sequence[Sequence[int]]) -> list[Value]:
        return [*map(self.sizes, shapes)] if _is_symbolic(*shapes) else []

    def scalar(self, value: Any, like: Value) -> Value:
        return self.convert(self.size(value), like.dtype) if is_dimension(value) else (
            super().scalar(value, like))

    def find_symbols(self, arguments: Sequence[tuple[str, Value]]) -> None:
        """Computes the symbols from the arguments' sizes, and checks these as a call does.

        Args:
          arguments: the names and values of all whose sizes may be symbolic.
        """
        finder = _Finder(self, arguments)
        left: Sequence[_Place] = finder.places
        while left:
            later = [place for place in left if not finder.take(*place)]
            if len(later) == len(left):
                break
            left = later
        finder.check()

    # --- operations that take sizes ---
    def iota(self, dtype: Any, shape: Sequence[int], dimension: int) -> Value:
        kind = dtypes.physical(dtype)
        if not _is_symbolic(shape) or kind == np.bool_:
            return super().iota(dtype, shape, dimension)
        return self.emit("stablehlo.dynamic_iota", [self.sizes(shape)], shape, kind,
                         f"iota_dimension = {dimension} : i64")

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        if not _is_symbolic(shape) or x.shape == tuple(shape):
            return super().reshape(x, shape)
        return self.emit("stablehlo.dynamic_reshape", [x, self.sizes(shape)], shape, x.dtype)

    def broadcast(self, x: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
        if not _is_symbolic(shape) or (
                x.shape == tuple(shape) and list(dims) == list(range(len(shape)))):
            return super().broadcast(x, shape, dims)
        return self.emit("stablehlo.dynamic_broadcast_in_dim", [x, self.sizes(shape)], shape,
                         x.dtype, f"broadcast_dimensions = {integers(dims)}")

    def slice(self, x: Value, starts: Sequence[int], limits: Sequence[int],
              strides: Sequence[int] | None) -> Value:
        strides = strides or (1,) * len(starts)
        if not _is_symbolic(starts, limits, strides):
            return super().slice(x, starts, limits, strides)
        shape = [larger(0, (limit - start + step - 1) // step)
                 for start, limit, step in zip(starts, limits, strides, strict=True)]
        return self.emit("stablehlo.real_dynamic_slice",
                         [x, *map(self.sizes, (starts, limits, strides))], shape, x.dtype)

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        if not _is_symbolic(sizes):
            return super().dynamic_slice(x, starts, sizes)
        # A gather of one slice, which it moves into the array as this operation does.
        place = super().concatenate([
            super(SymbolicEmitter, self).reshape(self.convert(start, _INDEX), (1,))
            for start in starts], 0)
        dims = listed(range(len(sizes)))
        return self.gather(x, place, sizes, f"offset_dims = {dims}, start_index_map = {dims}, "
                           "index_vector_dim = 0", sizes, True)

    def pad(self, x: Value, value: Value, config: Sequence[Any]) -> Value:
        if not _is_symbolic(x.shape, *config):
            return super().pad(x, value, config)
        shape = [low + high + size + larger(0, size - 1) * interior
                 for size, (low, high, interior) in zip(x.shape, config, strict=True)]
        if not _is_symbolic(*config):
            return self.padded(x, value, shape, config)
        return self.emit("stablehlo.dynamic_pad",
                         [x, value, *map(self.sizes, zip(*config, strict=True))], shape, x.dtype)

    def gather(self, x: Value, indices: Value, shape: Sequence[int], numbers: str,
               sizes: Sequence[int], is_sorted: bool = False) -> Value:
        if not _is_symbolic(sizes):
            return super().gather(x, indices, shape, numbers, sizes, is_sorted)
        return self.emit(
            "stablehlo.dynamic_gather", [x, indices, self.sizes(sizes)], shape, x.dtype,
            f"dimension_numbers = #stablehlo.gather<{numbers}>, "
            f"indices_are_sorted = {boolean(is_sorted)}")

    def convolution(self, x: Value, weights: Value, shape: Sequence[int], dtype: Any,
                    padding: Sequence[Sequence[int]], attributes: str) -> Value:
        if not _is_symbolic(*padding):
            return super().convolution(x, weights, shape, dtype, padding, attributes)
        return self.emit("stablehlo.dynamic_conv", [x, weights, self._pairs(padding)], shape,
                         dtype, attributes)

    def _pairs(self, pairs: Sequence[Sequence[int]]) -> Value:
        return super().reshape(self.sizes([size for pair in pairs for size in pair]),
                               (len(pairs), 2))

    def windows(self, kind: str, x: Value, shape: Sequence[int], window: Sequence[int],
                strides: Sequence[int], padding: Sequence[Sequence[int]],
                base_dilation: Sequence[int], window_dilation: Sequence[int]) -> Value:
        if not _is_symbolic(window, strides, base_dilation, window_dilation, *padding):
            return super().windows(kind, x, shape, window, strides, padding, base_dilation,
                                   window_dilation)
        operands = [x, self.identity(kind, x.dtype),
                    *map(self.sizes, (window, strides, base_dilation, window_dilation)),
                    self._pairs(padding)]
        result, = self.emit_all(
            "stablehlo.custom_call", operands, [(shape, x.dtype)],
            'call_target_name = "stablehlo.dynamic_reduce_window", api_version = 2 : i32, '
            f"called_computations = [@{self._combining(kind, x.dtype)}]")
        return result

    def _combining(self, kind: str, dtype: np.dtype) -> str:
        """The name of a function that combines two elements."""
        name = f"{kind}_of_{dtype.name}"
        head = f"  func.func private @{name}("
        if not any(line.startswith(head) for line in self.functions):
            of_main, self.lines = self.lines, []
            x, y = (Value(f"%arg{number}", (), dtype) for number in range(2))
            result = self.combined(kind, x, y)
            self.functions += [f"{head}%arg0: {x.type}, %arg1: {x.type}) -> {x.type} {{",
                               *self.lines, f"    return {result.name} : {result.type}", "  }"]
            self.lines = of_main
        return name


def _is_symbolic(*sizes: Sequence[Any]) -> bool:
    return any(is_dimension(size) for part in sizes for size in part)


# The name of a dimension of an argument, its symbolic size, and its actual one.
_Place = tuple[str, Dimension, Value]


class _Finder:
    """What ``symbolic.solve`` finds and checks of a call's sizes, as operations of a program."""

    def __init__(self, emitter: SymbolicEmitter, arguments: Sequence[tuple[str, Value]]):
        self.emitter = emitter
        self.places: list[_Place] = []
        for name, x in arguments:
            shape: Sequence[Size] = x.shape
            self.places += [(f"{name}.shape[{axis}]", size, emitter.emit(
                "stablehlo.get_dimension_size", [x], (), _INDEX, f"dimension = {axis} : i64"))
                for axis, size in enumerate(shape) if is_dimension(size)]
        self.uses = specification_text([name for name, _ in arguments],
                                       [x.shape for _, x in arguments])
        self.known: dict[str, Any] = {}
        self.found: set[str] = set()        # the dimensions that a symbol comes from
        self.obtained: list[tuple[str, Value, str, Value]] = []

    def take(self, place: str, size: Dimension, actual: Value) -> bool:
        """Finds a symbol from one dimension; False while more than one is unknown there."""
        emitter = self.emitter
        unknown = symbols_of(size) - set(self.known)
        name = next(iter(unknown), "")
        linear = linear_in(size, name, self.known) if len(unknown) == 1 else None
        if linear is None:
            return False
        factor, rest = linear
        value = actual if rest.__class__ is int and rest == 0 else emitter.kernel(
            "sub", actual, emitter.size(rest))
        if is_dimension(factor) or factor != 1:
            value, remainder = emitter.divided(value, emitter.size(factor))
            self._assert("eq", remainder, 0, "Division had remainder {} when computing the "
                         f"value of '{name}'.", remainder)
        emitter.symbols[name] = value
        self.known[name] = symbol_in(size.scope, name)
        self.found.add(place)
        self.obtained.append((f"'{name}' = ", value,
                              f" from specification '{size}' for dimension {place} (= ", actual))
        self._assert("ge", value, 1, f"Expected value >= 1 for dimension variable '{name}'.")
        return True

    def check(self) -> None:
        """That all sizes are what the symbols say, and that constraints hold."""
        emitter = self.emitter
        for place, size, actual in self.places:
            if place not in self.found:
                said = emitter.size(size)
                self._assert("eq", emitter.kernel("sub", said, actual), 0, "Found inconsistency "
                             f"between dimension size {place} (= {{}}) and the specification "
                             f"'{size}' (= {{}}).", actual, said)
        scope: Any = self.places[0][1].scope if self.places else None
        # Numbers in them may be the limits of integers.
        emitter.index = np.dtype(np.int64)
        for constraint in scope.constraints if scope is not None else ():
            value = emitter.size(constraint.difference)
            relation = "equal" if constraint.is_equality else "greater or equal"
            self._assert(
                "eq" if constraint.is_equality else "ge", value, 0,
                f"Expected '{constraint.difference}' to be {relation} to 0, but found {{}}. ",
                value, what=f"symbolic shape constraint {constraint.text}")
        emitter.index = _INDEX

    def _assert(self, relation: str, value: Value, bound: int, why: str, *shown: Value,
                what: str = "polymorphic shapes specification") -> None:
        """An assertion whose message says values; "{}" is where each of those shown is."""
        holds = self.emitter.compare(relation, value, self.emitter.scalar(bound, value))
        values = [*shown]

        def number(x: Value) -> str:
            if x not in values:
                values.append(x)
            return f"{{{values.index(x)}}}"

        for x in shown:
            why = why.replace("{}", number(x), 1)
        # XLA takes no more than 32 of them.
        symbols = self.obtained if 2 * len(self.obtained) + len(values) <= _MOST_SHOWN else []
        obtained = "".join([f"{start}{number(x)}{middle}{number(y)}), "
                            for start, x, middle, y in symbols])
        message = mismatch(what, why, self.uses, obtained)
        self.emitter.emit_all(
            "stablehlo.custom_call", [holds, *values], [],
            'call_target_name = "shape_assertion", api_version = 2 : i32, has_side_effect = true',
            discardable=f"error_message = {json.dumps(message, ensure_ascii=False)}")

