"""Programs that differ in sizes only: what was decided for one serves the others, each of which
gets the plan that it would have got by itself."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.gen import mojo_random
from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._max import lowering
from maxjax._max.mojo import executable, fusion
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._max.mojo.forms import GroupCode
from maxjax._max.mojo.groupings import Groupings
from maxjax._max.mojo.plan import Plan
from maxjax._max.mojo.scalar_code import LoopCode
from maxjax._max.mojo.tape import Tape
from maxjax._runtime.program import Program
from maxjax._transforms.partition import partition

pytestmark = pytest.mark.xdist_group("mojo")

# Of the random programs, and the assignments of sizes to each.
STRUCTURES, ASSIGNMENTS = 40, 6


def calls(tape: Tape) -> list[Any]:
    """A tape as values that compare equal where it does the same with the same memory."""
    return [(step.function, step.kernel and step.kernel.identity, str(step.note),
             [calls(x) if isinstance(x, Tape) else str(x.code) if isinstance(x, GroupCode)
              else str(x) if isinstance(x, LoopCode) else int(x) for x in step.integers])
            for step in tape.steps]


def contents(plan: Plan) -> Any:
    return (calls(plan.tape), plan.arena, plan.slots, plan.constants, list(map(str, plan.outputs)),
            [form.identity for form in plan.kernels], list(plan.functions))


class Planner:
    """Plans programs one after the other, and each of them by itself as well.

    Attributes:
      known: what is remembered from one to the next.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.monkeypatch = monkeypatch
        self.known = Groupings()

    def plan(self, jaxpr: Any) -> tuple[Plan, Plan]:
        plans = []
        for memory in (self.known, Groupings()):
            self.monkeypatch.setattr(fusion, "groupings", memory)
            plans.append(CheckedPlan(jaxpr, mojo_programs.CORES))
        assert contents(plans[0]) == contents(plans[1])
        return plans[0], plans[1]


@pytest.fixture
def planner(monkeypatch) -> Planner:
    return Planner(monkeypatch)


# --- training steps at thirty batch sizes ---------------------------------------------------------

FEATURES, HIDDEN, CLASSES, TIMES = 12, 8, 3, 5


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def trained(loss):
    def step(parameters, *data):
        value, gradients = maxjax.value_and_grad(loss)(parameters, *data)
        return value, maxjax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)
    return step


def perceptron(batch):
    def loss(parameters, x, y):
        first, bias, second = parameters
        hidden = jnp.tanh(x @ first + bias)
        return -jnp.mean(jnp.sum(maxjax.nn.log_softmax(hidden @ second) * y, -1))
    return trained(loss), ([numbers(FEATURES, HIDDEN), numbers(HIDDEN), numbers(HIDDEN, CLASSES)],
                           numbers(batch, FEATURES), numbers(batch, CLASSES))


def attention(batch):
    def loss(parameters, x):
        inputs, outputs = parameters
        query, key, value = jnp.split((x - x.mean(-1, keepdims=True)) @ inputs, 3, axis=-1)
        scores = jnp.where(jnp.tri(TIMES, dtype=bool), query @ key.transpose(0, 2, 1), -1e9)
        mixed = maxjax.nn.softmax(scores) @ value
        return jnp.mean((x + mixed @ outputs)[:, -1] ** 2)
    return trained(loss), ([numbers(HIDDEN, 3 * HIDDEN), numbers(HIDDEN, HIDDEN)],
                           numbers(batch, TIMES, HIDDEN))


def recurrent(batch):
    def loss(parameters, xs):
        first, second = parameters

        def cell(state, x):
            state = jnp.tanh(x @ first + state @ second)
            return state, state.sum(-1)
        state, sums = lax.scan(cell, jnp.zeros((batch, HIDDEN)), xs)
        return jnp.sum(state ** 2) + jnp.sum(sums)
    return trained(loss), ([numbers(FEATURES, HIDDEN), numbers(HIDDEN, HIDDEN)],
                           numbers(TIMES, batch, FEATURES))


def selection(batch):
    """Gathers, scatters, a sort, reversals and windows of the batch."""
    def step(table, rows):
        chosen = table[rows]
        order = jnp.argsort(chosen[:, 0])
        table = table.at[rows].add(chosen[order] * 2)
        return table, jnp.flip(chosen, 0), jnp.pad(chosen, ((1, 2), (0, 0))), chosen[:1].sum()
    return step, (numbers(FEATURES, HIDDEN), np.arange(batch, dtype=np.int32) % FEATURES)


# The batch is 1, 0, odd, large, and as long as other dimensions.
BATCHES = [*range(28), 64, 513]


@pytest.mark.parametrize("model", [perceptron, attention, recurrent, selection])
def test_batch_sizes(planner, model):
    programs = 0
    for batch in BATCHES:
        step, arguments = model(batch)
        program = Program(maxjax.make_jaxpr(step)(*arguments))
        jaxpr = program.opened.jaxpr
        before = planner.known.made
        ours, alone = planner.plan(jaxpr)
        programs += planner.known.made > before
        values = [*program.consts, *map(np.asarray, maxjax.tree.leaves(arguments))]
        results = [mojo_programs.without_kernels(plan, jaxpr)(list(values))
                   for plan in (ours, alone)]
        for mine, theirs, expected in zip(*results, program.tier0(*values), strict=True):
            assert mine.tobytes() == theirs.tobytes()
            np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)
    # Anew where the batch is as long as another dimension, or where the positions of windows
    # depend on it.
    assert programs <= (len(BATCHES) if model is selection else 12)


def test_random_programs(planner):
    """Few sizes, which are often the same."""
    plans = 0
    for structure in range(STRUCTURES):
        for assignment in range(ASSIGNMENTS):
            item = mojo_random.program(structure, assignment)
            for piece in partition(item.program.opened.jaxpr, mojo_programs.on_host):
                if not piece.on_host:
                    planner.plan(piece.jaxpr)
                    plans += 1
    assert planner.known.made < 0.9 * plans


# --- what is told apart, and what is forgotten ----------------------------------------------------

def made(planner: Planner, function, *arguments: np.ndarray) -> int:
    """How many times the nodes of a program were cut anew."""
    before = planner.known.made
    planner.plan(Program(maxjax.make_jaxpr(function)(*arguments)).opened.jaxpr)
    return planner.known.made - before


def test_what_makes_a_difference(planner):
    def f(x, y):
        return jnp.sin(x).sum(0) * y

    assert made(planner, f, numbers(7, 5), numbers(5)) == 1
    assert made(planner, f, numbers(9, 6), numbers(6)) == 0
    assert made(planner, f, numbers(5, 5), numbers(5)) == 1         # equal dimensions
    assert made(planner, f, numbers(6, 6), numbers(6)) == 0
    assert made(planner, f, numbers(1, 5), numbers(5)) == 1
    assert made(planner, f, numbers(7, 1), numbers(1)) == 1
    assert made(planner, f, numbers(700, 5), numbers(5)) == 0
    assert made(planner, f, numbers(700, 6), numbers(6)) == 1       # of more than 4096 elements
    assert made(planner, lambda x, y: jnp.sin(x).sum(1) * y, numbers(5, 7), numbers(5)) == 1
    assert made(planner, lambda x, y: jnp.cos(x).sum(0) * y, numbers(7, 5), numbers(5)) == 1
    assert made(planner, f, numbers(7, 5).astype(np.float16), numbers(5).astype(np.float16)) == 1


def kernels(planner: Planner, function, *arguments: np.ndarray) -> int:
    plan, _ = planner.plan(Program(maxjax.make_jaxpr(function)(*arguments)).opened.jaxpr)
    return len(plan.kernels)


def test_arrays_of_equal_sizes_fuse(planner):
    """A sum joins a group over an equal space; groups that read all of an array are one kernel."""
    def scaled(x, y):
        return jnp.sin(y) * jnp.cos(x).sum(1, keepdims=True)

    assert kernels(planner, scaled, numbers(5, 40), numbers(5, 30)) == 2
    assert kernels(planner, scaled, numbers(5, 40), numbers(5, 40)) == 1
    assert kernels(planner, scaled, numbers(6, 30), numbers(6, 50)) == 2

    def apart(x, y, z):
        return jnp.sin(x[:4] * y), jnp.cos(x[:4] - z)

    assert kernels(planner, apart, numbers(20), numbers(6, 4), numbers(6, 4)) == 2
    assert kernels(planner, apart, numbers(24), numbers(6, 4), numbers(6, 4)) == 1
    assert kernels(planner, apart, numbers(28), numbers(6, 4), numbers(6, 4)) == 2


def test_the_oldest_are_forgotten(planner, monkeypatch):
    monkeypatch.setattr("maxjax._max.mojo.groupings._MOST_NODES", 12)
    def f(x):
        return jnp.sin(x) * x + 1

    assert [made(planner, f, numbers(size)) for size in (3, 4)] == [1, 0]
    for count in range(1, 4):
        made(planner, lambda x, count=count: sum([jnp.sin(x) * k for k in range(count)]),
             numbers(7))
    assert made(planner, f, numbers(5)) == 1


# --- what lowers an equation ----------------------------------------------------------------------

def test_an_equation_s_decomposition_is_traced_once(monkeypatch):
    traced: list[Any] = []
    trace_to_jaxpr = lowering.trace_to_jaxpr
    monkeypatch.setattr(lowering, "trace_to_jaxpr", lambda function, *rest: (
        traced.append(function), trace_to_jaxpr(function, *rest))[1])

    def f(x, i):
        return x[i] + x.at[i].get(mode="fill") + x.at[i].get(mode="clip")

    def plan(size):
        Plan(Program(maxjax.make_jaxpr(f)(numbers(size), np.arange(3))).opened.jaxpr, 1)
        return len(traced)

    maxjax.clear_caches()
    first = plan(9)
    assert first > 0 and plan(9) == first
    assert plan(10) > first
    maxjax.clear_caches()
    assert plan(9) > 2 * first


# --- temporaries ----------------------------------------------------------------------------------

def test_calls_of_several_sizes_on_threads():
    """Large arenas are lent to one call after the other."""
    def f(x):
        return jnp.cumsum(jnp.sort(jnp.cumsum(x, 1), 0) - x, 0).sum(1)

    runs, expected = [], []
    for rows in (400, 517, 650):
        x = numbers(rows, 700)
        program = Program(maxjax.make_jaxpr(f)(x))
        plan = Plan(program.opened.jaxpr, 2)
        assert plan.arena in executable._LENT_BYTES
        runs.append((mojo_programs.without_kernels(plan, program.opened.jaxpr), x))
        expected.append(runs[-1][0]([x])[0].copy())
        np.testing.assert_allclose(expected[-1], program.tier0(x)[0], rtol=1e-3, atol=1e-2)
    wrong = []

    def call(first):
        for number in range(12):
            run, x = runs[(first + number) % 3]
            if run([x])[0].tobytes() != expected[(first + number) % 3].tobytes():
                wrong.append((first, number))

    threads = [threading.Thread(target=call, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
