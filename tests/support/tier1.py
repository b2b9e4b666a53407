"""Tier 1 under test: many cases in one MAX module, each held against tier 0.

Tier 0 is held against real JAX by ``test_cases``; here every compiled piece must give what tier 0
gives. One compile serves a family: a kernel costs MAX seconds, a module tens of seconds more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

import maxjax
import maxjax.numpy
import maxjax.tree_util
from maxjax._base import dtypes
from maxjax._ir.serialize import dumps
from maxjax._max.graph import session
from maxjax._max.graph.backend import executables, texts
from maxjax._max.versions import cpu_target, versions
from maxjax._runtime.compiled import CompiledProgram
from maxjax._runtime.program import Program
from maxjax._runtime.tiering import tiering
from tests.support import harness
from tests.support.harness import Case


@dataclasses.dataclass
class Compiled:
    """A program, the operands to run it on, and the case that it is of, for `check`."""

    case: Case | None
    program: Program
    values: list[Any]
    prefix: str

    @property
    def has_compiled_piece(self) -> bool:
        return any(not piece.on_host for piece in self.program.prepared.pieces)

    def on(self, models: dict[str, Any]) -> CompiledProgram:
        """The program of models, among which are its own."""
        pieces = self.program.prepared.pieces
        return CompiledProgram(
            self.program.opened.jaxpr, pieces, executables(pieces, models, self.prefix))


def program_of(case: Case, prefix: str, gradient: bool = False) -> Compiled:
    """The program of a case, or of its result and cotangents."""
    with case.precision():
        fun = case.on(maxjax)
        if gradient:
            value_of = fun

            def fun(*args: Any) -> Any:
                outputs, pullback = maxjax.vjp(value_of, *args)
                cotangents = maxjax.tree_util.tree_map(maxjax.numpy.ones_like, outputs)
                return outputs, [x for x in pullback(cotangents) if x.dtype != dtypes.float0]

        operands = [maxjax.numpy.asarray(arg) for arg in case.args]
        closed = maxjax.jit(fun)._lookup(tuple(operands), {}).closed
        program = Program(closed)
        program.backend = "graph"
        tiering.prepare(program)
        values = [*program.consts, *(operand.host() for operand in operands)]
    return Compiled(case, program, values, prefix)


def compile_together(items: Sequence[Compiled], timeout: float = 1500.0) -> dict[str, Any]:
    """The models of all pieces of all items, compiled in one module; by name."""
    pieces = [text for item in items for text in texts(item.program.prepared.pieces, item.prefix)]
    if not pieces:
        return {}
    text = dumps({"pieces": pieces})
    service = tiering.graph.service
    key = "\n".join([versions(), cpu_target(), text]).encode()
    options = {"directory": str(service.cache.directory)}
    job = service.submit(key, text, lambda path, error: None, 0.0, options)
    return session.load(service.wait(job, timeout=timeout))


def check(item: Compiled, models: dict[str, Any]) -> None:
    """Tier 1 gives what tier 0 gives."""
    program = item.program
    compiled = item.on(models)
    with np.errstate(all="ignore"):
        expected = program.tier0(*item.values)
    actual = compiled(item.values)
    for number, (ours, theirs, aval) in enumerate(
            zip(actual, expected, program.out_avals, strict=True)):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        assert ours.shape == theirs.shape == aval.shape, (number, ours.shape, theirs.shape)
        assert ours.dtype == theirs.dtype == dtypes.physical(aval.dtype), (
            number, ours.dtype, theirs.dtype)
        harness.assert_close(
            ours, theirs, item.case.tolerance, derivative=number >= 1,
            signed_zeros=item.case.signed_zeros, what=f"output {number} ")


def select(cases: Sequence[Case], count: int | None = None) -> list[Case]:
    """Cases that run compiled; at most ``count``, spread evenly over the table."""
    chosen = [case for case in cases if case.jittable and not case.raises]
    if count is None or len(chosen) <= count:
        return chosen
    step = len(chosen) / count
    return [chosen[int((number + 0.5) * step)] for number in range(count)]


def smallest(cases: Sequence[Case], prefix: str, count: int = 6) -> Compiled:
    """The program with the fewest compiled equations, of so many cases spread over the table."""
    made = [program_of(case, prefix) for case in select(cases, count)]
    compiled = [item for item in made if item.has_compiled_piece]
    return min(compiled or made, key=lambda item: sum(
        len(piece.jaxpr.eqns) for piece in item.program.prepared.pieces if not piece.on_host))
