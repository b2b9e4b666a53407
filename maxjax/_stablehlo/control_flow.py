"""Branches and loops as StableHLO's regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import Role, Structure

if TYPE_CHECKING:
    from maxjax._stablehlo.emitter import Emitter
    from maxjax._stablehlo.writer import Value


def choice(ctx: Emitter, flow: Structure, operands: Sequence[Value]) -> list[Value]:
    index = ctx.convert(operands[flow.index[0]], np.int32)
    results = [(aval.shape, dtypes.physical(aval.dtype)) for aval in flow.out_avals()]

    def region(number: int, body: Any) -> Callable[[], None]:
        return ctx.region([], lambda: ctx.inside(
            body.jaxpr, [operands[place] for place in body.takes], f"branch_{number}_fun"))

    return ctx.emit_all("stablehlo.case", [index], results,
                         regions=[region(number, body) for number, body in enumerate(flow.bodies)])


def while_loop(ctx: Emitter, flow: Structure, operands: Sequence[Value]) -> list[Value]:
    body, = flow.producers
    predicate = flow.predicate
    assert predicate is not None
    types = [(x.shape, x.dtype) for x in operands]

    def condition(*values: Value) -> Sequence[Value]:
        return ctx.inside(predicate.jaxpr, [values[number] for number in predicate.takes], "cond")

    def step(*values: Value) -> Sequence[Value]:
        new = ctx.inside(body.jaxpr, [values[number] for number in body.takes], "body")
        after = dict(zip(flow.carries, new, strict=True))
        return [after.get(number, x) for number, x in enumerate(values)]

    results = ctx.emit_all("stablehlo.while", operands, types, regions=[
        ctx.region(types, condition), ctx.region(types, step)])
    return [results[number] for number in flow.carries]


def scan(ctx: Emitter, flow: Structure, operands: Sequence[Value]) -> list[Value]:
    body, = flow.producers
    count = len(flow.carries)
    length = flow.length or 0
    stacked = [ctx.full(aval.shape, 0, aval.dtype) for aval in flow.out_avals()[count:]]
    if not length:      # the body, which takes an element of what has none, could not be written
        return [*[operands[number] for number in flow.carries], *stacked]
    start = [*operands, *stacked, ctx.constant(np.int32(0))]
    types = [(x.shape, x.dtype) for x in start]

    def condition(*values: Value) -> Sequence[Value]:
        return [ctx.native("lt", values[-1], ctx.size(length))]

    def step(*values: Value) -> Sequence[Value]:
        counter = values[-1]
        place = counter if not flow.reverse else ctx.native(
            "sub", ctx.size(length - 1), counter)
        given = []
        for number in body.takes:
            x = values[number]
            if flow.roles[number] is Role.SCANNED:
                x = ctx.at(x, place)
            given.append(x)
        new = ctx.inside(body.jaxpr, given, "body")
        after = dict(zip(flow.carries, new[:count], strict=True))
        kept = [after.get(number, x) for number, x in enumerate(values[:len(operands)])]
        filled = [ctx.put(old, x, place) for old, x in zip(
            values[len(operands):-1], new[count:], strict=True)]
        return [*kept, *filled, ctx.native("add", counter, ctx.constant(np.int32(1)))]

    results = ctx.emit_all("stablehlo.while", start, types, regions=[
        ctx.region(types, condition), ctx.region(types, step)])
    return [*[results[number] for number in flow.carries], *results[len(operands):-1]]
