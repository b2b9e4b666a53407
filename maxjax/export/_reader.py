"""Programs of StableHLO, run as operations of ``jax.lax``: what a transformation sees of them.

Operations check their operands, as they do for a user: a file may say anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import maxjax
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import aval_of
from maxjax._stablehlo.program import (
    MOST_ELEMENTS,
    Block,
    Dense,
    Function,
    Mesh,
    Module,
    Operation,
    Other,
    Tensor,
    Type,
    Unreadable,
    Value,
)
from maxjax._transforms.autodiff import leaf_operand

# A program whose calls, written out, are of more operations would take minutes to trace.
MOST_OPERATIONS = 500_000
# Constants up to this size are known while a program of unknown sizes is traced.
_KNOWN = 4096


class ShapeError(ValueError):
    """The sizes of arguments do not fulfil a program's conditions."""


class Token:
    """The value that orders effects, of which programs that are read have none."""


TOKEN = Token()
TOKEN_TYPES = ("!stablehlo.token", "token")

class ManualAxes(NamedTuple):
    """The mesh of a manual computation, and along which of its axes a value is a part."""

    mesh: Mesh
    names: tuple[str, ...]


Rule = Callable[["Reader", Operation, list[Any]], Any]


class Reader:
    """Runs the functions of a module.

    Attributes:
      definitions: what each value is a result of, where that is an operation.
      used: the values that are operands of some operation.
      values: those that are known where the operation that is being run stands.
      manual: the manual computation in which that stands.
      folds: whether integers that are known are computed with at once: sizes depend on them.
    """

    def __init__(self, module: Module, rules: dict[str, Rule]):
        self.module = module
        self.rules = rules
        self.definitions: dict[Value, Operation] = {}
        self.used: set[Value] = set()
        self.values: dict[Value, Any] = {}
        self.manual: ManualAxes | None = None
        self.folds = False
        for function in module.functions.values():
            self._look_through(function.block)
        self._check_size()

    def _look_through(self, block: Block) -> None:
        for value in block.arguments:
            self.folds |= isinstance(value.type, Tensor) and not value.type.is_static
        for operation in block.operations:
            self.used.update(operation.operands)
            for value in operation.results:
                self.definitions[value] = operation
                self.folds |= isinstance(value.type, Tensor) and not value.type.is_static
            for region in operation.regions:
                self._look_through(region)

    def _check_size(self) -> None:
        """Calls are written out: no function calls itself, and all of them are not too many."""
        sizes: dict[str, int] = {}
        active: set[str] = set()

        def size_of(name: str, where: str) -> int:
            if name in sizes:
                return sizes[name]
            if name in active:
                raise Unreadable(where, f"the function {name} calls itself")
            if len(active) > 200:
                raise Unreadable(where, "calls nest too deep")
            active.add(name)
            sizes[name] = size_of_block(self.function(name, where).block)
            active.remove(name)
            if sizes[name] > MOST_OPERATIONS:
                raise Unreadable(where, f"the function {name} is of more than {MOST_OPERATIONS} "
                                        "operations, with those that it calls")
            return sizes[name]

        def size_of_block(block: Block) -> int:
            total = 0
            for operation in block.operations:
                total += 1 + sum(map(size_of_block, operation.regions))
                for key in ("callee", "decomposition"):
                    name = operation.attributes.get(key)
                    if name is not None:
                        total += size_of(symbol(operation, key), operation.where)
            return total

        for name in self.module.functions:
            size_of(name, "the module")

    def function(self, name: str, where: str) -> Function:
        found = self.module.functions.get(name)
        if found is None:
            raise Unreadable(where, f"there is no function {name}")
        return found

    # --- running ---
    def call(self, name: str, operands: Sequence[Any], where: str) -> list[Any]:
        function = self.function(name, where)
        results = self.run(function.block, operands, {}, where)
        self.check(results, function.results, f"the function {name}", where)
        return results

    def run(self, block: Block, operands: Sequence[Any], known: dict[Value, Any],
            where: str) -> list[Any]:
        """What a block returns.

        Args:
          operands: of its arguments.
          known: the values around it.
        """
        self.check(operands, [value.type for value in block.arguments], "a region", where)
        values = {**known, **dict(zip(block.arguments, operands, strict=True))}
        for operation in block.operations:
            given = []
            for value in operation.operands:
                if value not in values:
                    raise Unreadable(operation.where, "a value from elsewhere")
                given.append(values[value])
            if operation.name in ("func.return", "stablehlo.return", "sdy.return"):
                if operation is not block.operations[-1]:
                    raise Unreadable(operation.where, "operations after the end of a region")
                return given
            results = self._results(operation, given, values)
            values.update(zip(operation.results, results, strict=True))
        raise Unreadable(where, "a region that returns nothing")

    def _results(self, operation: Operation, given: list[Any],
                 values: dict[Value, Any]) -> list[Any]:
        rule = self.rules.get(operation.name)
        if rule is None:
            raise Unreadable(operation.where, f"the operation {operation.name} is not supported")
        outer, self.values = self.values, values
        try:
            result = self._folded(rule, operation, given) if self.folds else None
            if result is None:
                result = rule(self, operation, given)
        except (Unreadable, ShapeError):
            raise
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError,
                NotImplementedError, ArithmeticError, MemoryError) as error:
            raise Unreadable(operation.where, f"{operation.name}: {type(error).__name__}: "
                                              f"{str(error)[:500]}") from error
        finally:
            self.values = outer
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        self.check(results, [value.type for value in operation.results], operation.name,
                   operation.where)
        return results

    def _folded(self, rule: Rule, operation: Operation, given: list[Any]) -> Any:
        """Known integers, of known ones."""
        if not given or operation.regions or not all(
                isinstance(x, np.ndarray) and x.dtype.kind in "iub" and x.size <= _KNOWN
                for x in given) or not all(
                isinstance(value.type, Tensor) and value.type.dtype.kind in "iub"
                and math.prod(size or 1 for size in value.type.shape) <= _KNOWN
                for value in operation.results):
            return None
        if operation.name in ("func.call", "stablehlo.composite", "stablehlo.custom_call"):
            return None      # which fold inside
        with maxjax.ensure_compile_time_eval():
            result = rule(self, operation, given)
            return [np.asarray(x) for x in (result if isinstance(result, (list, tuple))
                                            else [result])]

    def check(self, values: Sequence[Any], types: Sequence[Type], what: str, where: str) -> None:
        """Values are of the types that the program names."""
        if len(values) != len(types):
            raise Unreadable(where, f"{what} gives {len(values)} values, not {len(types)}")
        for value, type in zip(values, types, strict=True):
            if value is TOKEN and isinstance(type, Other) and type.text in TOKEN_TYPES:
                continue
            if value is TOKEN or not isinstance(type, Tensor):
                raise Unreadable(where, f"{what} has a value of type {str(type)[:60]}")
            shape, dtype = np.shape(value), np.dtype(value.dtype)
            if dtype != type.dtype or len(shape) != len(type.shape) or any(
                    want is not None and want != size
                    for want, size in zip(type.shape, shape, strict=True)):
                raise Unreadable(where, f"{what} gives {dtype}{list(shape)}, not "
                                        f"{type.dtype}{list(type.shape)}")

    # --- what is known ---
    def definition(self, value: Value) -> Operation | None:
        return self.definitions.get(value)

    def is_zero(self, value: Value) -> bool:
        """Whether a value is known to be zeros."""
        made = self.definition(value)
        if made is not None and made.name == "stablehlo.broadcast_in_dim":
            return self.is_zero(made.operands[0])
        constant = made.attributes.get("value") if made is not None else None
        return isinstance(constant, Dense) and not constant.elements.any()

    def known(self, x: Any, operation: Operation, what: str) -> np.ndarray:
        """A value that is known while the program is traced."""
        if not isinstance(x, np.ndarray):
            raise Unreadable(operation.where, f"{operation.name}: {what} is not known before the "
                                              "program runs")
        return x


def checked_bind(primitive: Primitive, operation: Operation, operands: Sequence[Any],
                 **params: Any) -> Any:
    """Applies a primitive that no operation of ``jax.lax`` stands for."""
    arrays = [*map(leaf_operand, operands)]
    avals = [aval_of(x) for x in arrays]
    problem = None if primitive.contract is None else primitive.contract.problem(avals, params)
    if problem is not None or primitive.values.accepts is not None and any(
            aval.dtype not in primitive.values.accepts for aval in avals):
        raise Unreadable(operation.where, f"{operation.name}: {problem or 'of such a dtype'}")
    return primitive.bind(*arrays, **params)


# --- attributes -----------------------------------------------------------------------------------

def attribute(operation: Operation, name: str, kind: type, default: Any = None) -> Any:
    """An attribute, which must be of a kind."""
    value = operation.attributes.get(name, default)
    if type(value) is not kind:
        raise Unreadable(operation.where, f"{operation.name}: its attribute {name} is "
                                          f"{str(value)[:60]}")
    return value


def symbol(operation: Operation, name: str) -> str:
    value = operation.attributes.get(name)
    found = getattr(value, "name", None)
    if not isinstance(found, str):
        raise Unreadable(operation.where, f"{operation.name}: its attribute {name} names no "
                                          "function")
    return found


def integers(operation: Operation, name: str, default: Any = None) -> tuple[int, ...]:
    """An attribute with several integers."""
    value = operation.attributes.get(name, default)
    if isinstance(value, Dense) and value.elements.dtype.kind in "iu" and len(value.shape) == 1:
        if value.shape[0] > 1 << 16:
            raise Unreadable(operation.where, f"{operation.name}: its attribute {name} is long")
        value = value.array().tolist()
    if not isinstance(value, (list, tuple)) or any(
            type(item) is not int or abs(item) >= 1 << 62 for item in value):
        raise Unreadable(operation.where, f"{operation.name}: its attribute {name} is "
                                          f"{str(value)[:60]}, not integers")
    return tuple(value)


def pairs(operation: Operation, name: str, count: int) -> list[tuple[int, int]]:
    """An attribute with two integers for each dimension; zeros where there is none."""
    value = operation.attributes.get(name)
    if value is None:
        return [(0, 0)] * count
    if not isinstance(value, Dense) or value.shape != (count, 2) or (
            value.elements.dtype.kind not in "iu"):
        raise Unreadable(operation.where, f"{operation.name}: its attribute {name} is not two "
                                          "integers for each dimension")
    return [(int(low), int(high)) for low, high in value.array()]


def word(operation: Operation, name: str, default: str | None = None) -> str:
    """An attribute that is one word of a few."""
    value = operation.attributes.get(name, default)
    if not isinstance(value, str):
        raise Unreadable(operation.where, f"{operation.name}: its attribute {name} is "
                                          f"{str(value)[:60]}")
    return value


def flags(operation: Operation, name: str, count: int) -> tuple[bool, ...]:
    value = operation.attributes.get(name)
    if value is None:
        return (False,) * count
    if isinstance(value, Dense) and value.elements.dtype == bool and value.shape == (count,):
        value = value.array().tolist()
    if not isinstance(value, list) or len(value) != count or any(
            type(item) is not bool for item in value):
        raise Unreadable(operation.where, f"{operation.name}: its attribute {name}")
    return tuple(value)


def known_sizes(reader: Reader, operation: Operation, x: Any, what: str = "a shape"
                ) -> tuple[int, ...]:
    """A shape that is computed."""
    known = reader.known(x, operation, what)
    if known.ndim != 1 or known.dtype.kind not in "iu" or known.size > 64:
        raise Unreadable(operation.where, f"{operation.name}: {what} is no list of integers")
    found = tuple([int(size) for size in known])
    if any(size < 0 for size in found) or np.prod(found, dtype=object) > MOST_ELEMENTS:
        raise Unreadable(operation.where, f"{operation.name}: the shape {found}")
    return found


def result_type(operation: Operation, number: int = 0) -> Tensor:
    """The type of a result, a tensor's."""
    if number < len(operation.results):
        type = operation.results[number].type
        if isinstance(type, Tensor):
            return type
    raise Unreadable(operation.where, f"{operation.name}: the type of its result {number}")


def single_operation(block: Block) -> str | None:
    """The operation of a region that only combines its two arguments."""
    operations = []
    same: dict[Value, Value] = {}      # what says only where a value lies
    for operation in block.operations:
        if operation.name == "sdy.sharding_constraint" and (
                len(operation.operands) == len(operation.results) == 1):
            same[operation.results[0]] = operation.operands[0]
        else:
            operations.append(operation)
    if len(operations) != 2 or len(block.arguments) != 2:
        return None
    combined, returned = operations
    if set(combined.operands) != set(block.arguments) or len(combined.operands) != 2 or (
            combined.attributes or combined.regions
            or [same.get(value, value) for value in returned.operands] != combined.results):
        return None
    return combined.name


def expression(reader: Reader, block: Block) -> list[Any] | None:
    """What a region of elementwise operations returns, as nested tuples; None if it does more."""
    known: dict[Value, Any] = {value: number for number, value in enumerate(block.arguments)}
    for operation in block.operations:
        if operation.regions or len(operation.operands) > 3:
            return None
        operands = []
        for value in operation.operands:
            if value in known:
                operands.append(known[value])
                continue
            outside = reader.definition(value)
            if outside is None or outside.name != "stablehlo.constant":
                return None
            operands.append(_constant(outside))
        if operation.name in ("stablehlo.return", "func.return"):
            return operands
        if operation.name == "stablehlo.constant":
            made: Any = _constant(operation)
        else:
            kinds = []
            if operation.name == "stablehlo.compare" and operation.operands:
                kind = operation.attributes.get("compare_type", "NOTYPE")
                kinds = [operation.attributes.get("comparison_direction"),
                         compare_kind(operation.operands[0]) if kind == "NOTYPE" else kind]
            if operation.name in ("stablehlo.and", "stablehlo.or"):
                operands.sort(key=repr)
            made = (operation.name.partition(".")[2], *map(str, kinds), *operands)
        if len(operation.results) != 1 or len(repr(made)) > 20_000:
            return None
        known[operation.results[0]] = made
    return None


def _constant(operation: Operation) -> tuple[str, Any]:
    value = operation.attributes.get("value")
    if not isinstance(value, Dense) or value.elements.size != 1:
        return "constant", None
    element = value.elements.reshape(-1)[0]
    if value.elements.dtype.kind not in "iubc" and bool(np.isnan(element)):
        return "constant", "nan"
    return "constant", complex(element) if value.elements.dtype.kind == "c" else float(element)


def compare_kind(value: Value) -> str:
    """How values are compared where a comparison does not say it."""
    dtype = value.type.dtype if isinstance(value.type, Tensor) else np.dtype(bool)
    if dtype.kind == "b" or dtype.name.startswith("uint"):
        return "UNSIGNED"
    return "SIGNED" if dtype.name.startswith("int") else "FLOAT"


def is_floating(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or (dtype.kind == "V" and not dtype.name.startswith(("int", "uint")))


def lowest(dtype: np.dtype) -> Any:
    """The identity of a maximum."""
    if dtype.kind == "b":
        return False
    if is_floating(dtype):
        return -np.inf
    return int(ml_dtypes.iinfo(dtype).min)


def highest(dtype: np.dtype) -> Any:
    """The identity of a minimum."""
    if dtype.kind == "b":
        return True
    return np.inf if is_floating(dtype) else int(ml_dtypes.iinfo(dtype).max)
