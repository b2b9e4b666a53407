"""StableHLO's calls, branches and loops: what each is in ``jax.lax``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._stablehlo.program import Block, Operation, Tensor, Unreadable, Value
from maxjax._transforms.autodiff import leaf_operand
from maxjax.export._reader import TOKEN, Reader, Rule, symbol, word


def _call(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    return reader.call(symbol(operation, "callee"), operands, operation.where)


def _composite(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    """An operation on elements under its name, anything else by what it is composed of."""
    name = word(operation, "name")
    rule = reader.rules.get(name)
    record = operation.attributes.get("composite_attributes") or {}
    if rule is not None and name.startswith("chlo.") and isinstance(record, dict):
        return rule(reader, dataclasses.replace(operation, name=name, attributes=record), operands)
    return reader.call(symbol(operation, "decomposition"), operands, operation.where)


def _branch(reader: Reader, block: Block, operation: Operation) -> Callable[[], Any]:
    known = reader.values
    return lambda: tuple(map(leaf_operand, reader.run(block, [], known, operation.where)))


def _case(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    index, = operands
    branches = [_branch(reader, block, operation) for block in operation.regions]
    if not branches or np.shape(index) != () or index.dtype != np.int32:
        raise Unreadable(operation.where, "a choice without branches, or not by an integer")
    if len(branches) > 1 and not _is_in_range(reader, operation.operands[0], len(branches)):
        # What is out of range means the last one.
        last = np.array(len(branches) - 1, np.int32)
        index = lax.select_n(lax.lt(index, np.array(0, np.int32)), index, last)
    return list(lax.switch(index, branches))


def _is_in_range(reader: Reader, index: Value, count: int) -> bool:
    """Whether an index is one of a truth value, or clamped."""
    made = reader.definition(index)
    if made is None:
        return False
    first = made.operands[0].type if made.operands else None
    return made.name == "stablehlo.convert" and isinstance(first, Tensor) and first.dtype == bool


def _if(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    which, = operands
    if len(operation.regions) != 2 or np.shape(which) != () or which.dtype != bool:
        raise Unreadable(operation.where, "a choice that is not of two branches by a truth value")
    yes, no = (_branch(reader, block, operation) for block in operation.regions)
    return list(lax.cond(which, yes, no))


def _while(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    """A loop; one that counts from a known number to another is a scan, which has all
    derivatives. What the body hands on is no part of the carry."""
    if len(operation.regions) != 2 or not operands:
        raise Unreadable(operation.where, "a loop without regions, or of nothing")
    condition, body = operation.regions
    returned = body.operations[-1].operands if body.operations else []
    if len(returned) != len(operands) or len(body.arguments) != len(operands):
        raise Unreadable(operation.where, "a loop whose body returns other values than it takes")
    fixed = [a is b for a, b in zip(returned, body.arguments, strict=True)]
    known = reader.values
    operands = [*map(_kept, operands)]

    def whole(carry: Sequence[Any]) -> list[Any]:
        moving = iter(carry)
        return [x if stays else next(moving) for x, stays in zip(operands, fixed, strict=True)]

    def step(carry: Any) -> Any:
        results = reader.run(body, whole(carry), known, operation.where)
        return tuple([leaf_operand(x) for x, stays in zip(results, fixed, strict=True)
                      if not stays])

    start = tuple([leaf_operand(x) for x, stays in zip(operands, fixed, strict=True) if not stays])
    length = _trip_count(reader, operation, operands)
    if length is not None:
        found, _ = lax.scan(lambda carry, _: (step(carry), None), start, None, length)
    else:
        found = lax.while_loop(
            lambda carry: reader.run(condition, whole(carry), known, operation.where)[0],
            step, start)
    return whole(found)


def _kept(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else leaf_operand(x)


def _trip_count(reader: Reader, operation: Operation, operands: list[Any]) -> int | None:
    """How often a loop runs that counts by one, up to a constant."""
    condition, body = operation.regions
    compared = condition.operations[-2] if len(condition.operations) > 1 else None
    if compared is None or compared.name != "stablehlo.compare" or (
            condition.operations[-1].operands != compared.results) or (
            compared.attributes.get("comparison_direction") != "LT") or (
            compared.attributes.get("compare_type") not in ("SIGNED", None)):
        return None
    counter, limit = compared.operands
    if counter not in condition.arguments:
        return None
    place = condition.arguments.index(counter)
    start, bound = operands[place], _constant_of(reader, limit)
    step = reader.definition(body.operations[-1].operands[place])
    if not isinstance(start, np.ndarray) or start.dtype.kind != "i" or bound is None or (
            step is None or step.name != "stablehlo.add" or len(step.operands) != 2):
        return None
    first, second = step.operands
    if first is not body.arguments[place]:
        first, second = second, first
    if first is not body.arguments[place] or _constant_of(reader, second) != 1:
        return None
    return max(0, bound - int(start))


def _constant_of(reader: Reader, value: Value) -> int | None:
    """A known integer."""
    made = reader.definition(value)
    known = reader.values.get(value)
    if known is None and made is not None and made.name == "stablehlo.constant":
        known = reader.rules[made.name](reader, made, [])
    if isinstance(known, np.ndarray) and known.shape == () and known.dtype.kind == "i":
        return int(known)
    return None


def _token(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    if any(x is not TOKEN for x in operands):
        raise Unreadable(operation.where, f"{operation.name} of what is no token")
    return TOKEN


CONTROL_FLOW: dict[str, Rule] = {
    "func.call": _call, "stablehlo.composite": _composite, "stablehlo.case": _case,
    "stablehlo.if": _if, "stablehlo.while": _while,
    "stablehlo.create_token": _token, "stablehlo.after_all": _token,
}
