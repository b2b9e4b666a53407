"""Schedules: what a group computes when, for both of its forms; and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.gen import views
from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
from maxjax._base.errors import InternalError
from maxjax._max.mojo import bytecode, emit, fusion
from maxjax._max.mojo.abi import VECTOR_KINDS
from maxjax._max.mojo.emit_loop import LoopForm
from maxjax._max.mojo.groupings import Groupings
from maxjax._max.mojo.plan import Plan
from maxjax._max.mojo.schedule import (
    CALL,
    POINT,
    SWEEP,
    Phase,
    Schedule,
    check_memory,
    check_schedule,
    schedule_of,
)
from maxjax._max.mojo.structure import (
    INNER,
    NEXT,
    ROWS,
    SAME,
    KernelStructure,
    OperandStructure,
    ValueStructure,
)
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

FLOAT = np.dtype(np.float32)


def read(varies: int = INNER) -> OperandStructure:
    return OperandStructure(FLOAT, False, False, NEXT if varies & INNER else SAME, varies)


def written(varies: int = INNER) -> OperandStructure:
    return OperandStructure(FLOAT, False, True, NEXT if varies & INNER else SAME, varies)


def load(operand: int) -> ValueStructure:
    return ValueStructure("load", "", FLOAT, (), operand)


def apply(name: str, *inputs: int) -> ValueStructure:
    return ValueStructure("apply", name, FLOAT, inputs)


def reduce(name: str, of: int) -> ValueStructure:
    return ValueStructure("reduce", name, FLOAT, (of,))


def structure(kind: str, operands: list[OperandStructure], values: list[ValueStructure],
              *outputs: tuple[int, int], has_inner: bool = True, has_rows: bool = False
              ) -> KernelStructure:
    return KernelStructure(kind, has_inner, has_rows or kind == "columns", tuple(values),
                           tuple(operands), outputs)


SOFTMAX = structure(
    "rows", [read(), read(0), written()],
    [load(0), reduce("max", 0), load(1), apply("max", 2, 1), apply("sub", 0, 3), apply("exp", 4),
     reduce("sum", 5), apply("div", 5, 6)], (7, 2))
# The sum and the largest value of columns, the first of which are also stored as they are.
COLUMNS = structure(
    "columns", [read(INNER | ROWS), read(ROWS), written(INNER | ROWS), read(), written()],
    [load(0), load(1), apply("mul", 0, 1), reduce("sum", 2), load(3), apply("add", 3, 4)],
    (2, 2), (5, 4))
SINGLE = structure("map", [read(0), written(0)], [load(0), apply("exp", 0)], (1, 1),
                   has_inner=False)


def test_schedules_are_read_by_people():
    assert str(schedule_of(SOFTMAX)) == """\
rows of float32, float32, float32
  once:
    v2 = load operand 1
  phase 0, all:
    v0 = load operand 0
    v1 gathers max(v0)
  phase 1, a point:
    v3 = max(v2, v1)
  phase 1, all:
    v0 = load operand 0
    v4 = sub(v0, v3)
    v5 = exp(v4), saved
    v6 gathers sum(v5)
  phase 2, all:
    v5, saved
    v7 = div(v5, v6)
    operand 2 = v7"""
    assert str(schedule_of(COLUMNS)) == """\
columns of float32, float32, float32, float32, float32
  phase 0, a row:
    v1 = load operand 1
  phase 0, all:
    v0 = load operand 0
    v2 = mul(v0, v1)
    v3 gathers sum(v2)
    operand 2 = v2
  phase 0, end:
    v4 = load operand 3
    v5 = add(v3, v4)
    operand 4 = v5"""
    assert str(schedule_of(SINGLE)) == """\
map of float32, float32
  once:
    v0 = load operand 0
    v1 = exp(v0)
    operand 1 = v1"""


def test_what_costs_little_or_is_of_several_rows_is_computed_again():
    assert [x.name for x in schedule_of(SOFTMAX).saved] == ["exp"]
    assert not schedule_of(SOFTMAX._replace(has_rows=True)).saved
    cheap = SOFTMAX._replace(values=tuple([
        x._replace(name="neg") if x.name == "exp" else x for x in SOFTMAX.values]))
    phase = schedule_of(cheap).phases[2]
    assert [x.name for x in phase.full] == ["", "sub", "neg", "div"]


def test_both_forms_are_of_one_schedule():
    """The machine gathers and stores what the schedule says, in the phase that it says."""
    forms = {form for program in mojo_programs.default(4) for form in program.kernels
             if not isinstance(form, LoopForm)}
    with_code = 0
    for form in forms:
        schedule = form.schedule
        assert form.source == emit.text_of(schedule)
        code = bytecode.code_of(schedule, 1024, 1024, schedule.structure.has_rows)
        if code is None:
            continue
        with_code += 1
        assert sum(x.opcode == "store" for x in code.call) == len(schedule.stored)
        assert len(code.phases) == len(schedule.phases)
        for phase, scheduled in zip(code.phases, schedule.phases, strict=True):
            made = [[x.opcode.removesuffix("_columns") for x in part] for part in phase.parts]
            assert [part.count("reduce") for part in made] == [0, len(scheduled.gathered), 0]
            assert [part.count("store") for part in made] == [
                0, len(scheduled.stored), len(scheduled.last)]
            assert made[0].count("apply") == sum(x.kind == "apply" for x in scheduled.line)
            # What another phase has left in registers is not computed again.
            assert made[1].count("apply") <= len(scheduled.full) + len(scheduled.stored)
    assert with_code > 20 and {form.structure.kind for form in forms} == set(VECTOR_KINDS)


# --- what is refused ------------------------------------------------------------------------------

BAD_GROUPS = {
    "computed from what comes later": (
        structure("map", [read(), written()], [apply("exp", 1), load(0)], (0, 1)),
        "value 0 of a group is computed from values (1,)"),
    "reads what it stores": (
        structure("map", [read(), written()], [load(0), load(1), apply("add", 0, 1)], (2, 1)),
        "v1 = load operand 1: it reads what is stored"),
    "writes what it reads": (
        structure("map", [read(), written()], [load(0)], (0, 0), (0, 1)),
        "v0 = load operand 0: it is stored to an operand that is read"),
    "a reduction of a map": (
        structure("map", [read(), written()], [load(0), reduce("sum", 0)], (1, 1)),
        "v1 = sum(v0): it is computed in another scope than its own"),
    "all elements stored for a row": (
        structure("rows", [read(), written(0)], [load(0), apply("exp", 0)], (1, 1)),
        "v1 = exp(v0): it is stored where it is not known"),
    "a reduction of columns that depends on another": (
        structure("columns", [read(INNER | ROWS), written()],
                  [load(0), reduce("max", 0), apply("sub", 0, 1), reduce("sum", 2)], (3, 1)),
        "v2 = sub(v0, v1): it is computed where v1 is not known"),
    "all rows stored with the result of columns": (
        structure("columns", [read(INNER | ROWS), written(INNER | ROWS)],
                  [load(0), reduce("max", 0), apply("sub", 0, 1)], (2, 1)),
        "v2 = sub(v0, v1): it is computed where v1 is not known"),
    "a row of columns after the last one": (
        structure("columns", [read(INNER | ROWS), read(ROWS), written()],
                  [load(0), reduce("max", 0), load(1), apply("sub", 1, 2)], (3, 2)),
        "v2 = load operand 1: it is computed when no row is left"),
}


@pytest.mark.parametrize("name", BAD_GROUPS)
def test_bad_groups(name):
    bad, words = BAD_GROUPS[name]
    with pytest.raises(InternalError, match=re.escape(words)):
        schedule_of(bad)


def with_phase(schedule: Schedule, number: int, **fields) -> Schedule:
    phases = list(schedule.phases)
    phases[number] = phases[number]._replace(**fields)
    return schedule._replace(phases=tuple(phases))


def narrowed(schedule: Schedule) -> Schedule:
    """What differs along a row, computed once a call."""
    value = schedule.phases[0].full[0]
    value.scope = CALL
    return schedule._replace(call=(*schedule.call, value))


def constant(schedule: Schedule) -> Schedule:
    """What differs along a row, said not to."""
    value = schedule.phases[1].full[1]
    value.varies, value.scope = 0, POINT
    return with_phase(schedule, 1, line=(*schedule.phases[1].line, value))


def turned(schedule: Schedule) -> Schedule:
    first, second, *rest = schedule.phases[1].full
    return with_phase(schedule, 1, full=(second, first, *rest))


BAD_SCHEDULES = {
    "not computed once a point": (
        lambda x: with_phase(x, 1, line=()), "v4 = sub(v0, v3): it is computed where v3 is not"),
    "not computed once a call": (
        lambda x: x._replace(call=()), "v3 = max(v2, v1): it is computed where v2 is not known"),
    "too early": (turned, "v4 = sub(v0, v3): it is computed where v0 is not known"),
    "too rarely": (narrowed, "v0 = load operand 0: it varies in its scope"),
    "said to vary less": (constant, "v4 = sub(v0, v3): it is computed where v0 is not known"),
    "before its reduction": (
        lambda x: with_phase(x, 0, line=x.phases[1].line),
        "v3 = max(v2, v1): it is computed where v1 is not known"),
    "not saved": (
        lambda x: x._replace(saved=()), "v5 = exp(v4): it is computed where v4 is not known"),
    "not gathered": (
        lambda x: with_phase(x, 1, gathered=()),
        "v7 = div(v5, v6): it is computed where v6 is not known"),
    "gathered without its operand": (
        lambda x: with_phase(x, 0, full=()), "v1 = max(v0): it gathers what is not computed"),
    "stored before it is computed": (
        lambda x: with_phase(x, 1, stored=x.phases[2].stored),
        "v7 = div(v5, v6): it is stored where it is not known"),
    "stored nowhere": (
        lambda x: with_phase(x, 2, stored=()), "operands [] are stored, and should be [2]"),
    "stored twice": (
        lambda x: with_phase(x, 2, stored=2 * x.phases[2].stored),
        "operands [2, 2] are stored, and should be [2]"),
    "a phase that is missing": (
        lambda x: x._replace(phases=x.phases[1:]),
        "v3 = max(v2, v1): it is computed where v1 is not known"),
}


@pytest.mark.parametrize("name", BAD_SCHEDULES)
def test_bad_schedules(name):
    change, words = BAD_SCHEDULES[name]
    with pytest.raises(InternalError, match=re.escape(words)):
        check_schedule(change(schedule_of(SOFTMAX)))


def test_scopes_are_those_of_operands():
    """A value of a wider scope than its operand's is refused wherever it is put."""
    schedule = schedule_of(structure(
        "map", [read(), written()], [load(0), apply("exp", 0)], (1, 1)))
    phase, = schedule.phases
    value = phase.full[1]
    assert value.scope == SWEEP
    value.scope = POINT
    bad = schedule._replace(phases=(Phase((value,), phase.full[:1], (), phase.stored),))
    with pytest.raises(InternalError, match="it varies in its scope"):
        check_schedule(bad)


# --- reading what is stored -----------------------------------------------------------------------

def test_memory_that_is_stored_is_not_read():
    check_memory("a group", ["z"], ["x", "y", "x"])
    with pytest.raises(InternalError, match="'a group' reads 'z', which it stores"):
        check_memory("a group", ["w", "z"], ["x", "z"])


def test_no_plan_reads_its_own_output_as_another_view(monkeypatch):
    """Were a group to compute what it reads through a reshape, its plan would be refused."""
    monkeypatch.setattr(fusion, "groupings", Groupings())
    monkeypatch.setattr(fusion.Fusion, "_units_reading_rearranged", lambda self, node: {})
    refused = 0
    for seed in range(30):
        drawn = views.Program(seed)
        closed = maxjax.make_jaxpr(drawn.function)(*drawn.inputs(0))
        try:
            Plan(Program(closed).opened.jaxpr, 2)
        except InternalError as error:
            assert "which it stores" in str(error)
            refused += 1
    assert refused
