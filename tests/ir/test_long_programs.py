"""Long programs: their cost is linear in their length, and the data structures for that are right.

The cost is this thread's processor time, for a program and for one four times as long: linear work
takes four times as much, quadratic work sixteen.
"""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import collection, config
from maxjax._max.mojo.arena import ALIGNMENT, Arena
from maxjax._max.mojo.backend import MojoBackend
from maxjax._max.mojo.unit_graph import UnitGraph
from maxjax._runtime import memory
from maxjax._runtime.program import Program
from maxjax._runtime.tiering import tiering

VECTOR = np.linspace(0.1, 0.8, 8, dtype=np.float32)
MATRIX = np.eye(4, dtype=np.float32)
# Linear work comes to slightly more than 4, because of caches and the allocator; quadratic work to
# 16.
MOST_GROWTH = 8
TRIES = 4

OPERATIONS = [jnp.sin, lambda x: x * 1.01, lambda x: x + 0.5, jnp.tanh]


def chain(n: int) -> Callable[[Any], Any]:
    def function(x):
        for position in range(n):
            x = OPERATIONS[position % len(OPERATIONS)](x)
        return x.sum()
    return function


# name -> (operations of the smaller program, operations -> (function, arguments))
SHAPES: dict[str, tuple[int, Callable[[int], tuple[Callable[..., Any], Any]]]] = {}


def shape(n: int) -> Callable[[Any], Any]:
    def add(make):
        SHAPES[make.__name__] = n, make
        return make
    return add


@shape(300)
def grad_of_chain(n):
    return maxjax.grad(chain(n)), (VECTOR,)


@shape(300)
def vmap_of_grad(n):
    return maxjax.vmap(maxjax.grad(chain(n))), (np.stack([VECTOR, VECTOR]),)


@shape(300)
def jvp_of_chain(n):
    return lambda x: maxjax.jvp(chain(n), (x,), (x,)), (VECTOR,)


@shape(300)
def checkpointed(n):
    return maxjax.grad(maxjax.checkpoint(chain(n))), (VECTOR,)


@shape(400)
def many_outputs(n):
    return lambda x: [jnp.sin(x) * float(k) for k in range(n)], (VECTOR,)


@shape(200)
def many_inputs(n):
    return maxjax.grad(lambda xs: sum((jnp.sin(x) * x).sum() for x in xs)), (
        [VECTOR + k for k in range(n)],)


@shape(250)
def many_constants(n):
    constants = [np.full(8, k, np.float32) for k in range(n)]

    def function(x):
        for constant in constants:
            x = jnp.sin(x + constant)
        return x.sum()
    return maxjax.grad(function), (VECTOR,)


@shape(200)
def long_lives(n):
    """The residuals of the first half are read in the second, in reverse order."""
    def function(x):
        kept = [jnp.sin(x * float(k)) for k in range(n)]
        result = jnp.zeros_like(x)
        for value in reversed(kept):
            result = result * value + value
        return result.sum()
    return maxjax.grad(function), (VECTOR,)


@shape(150)
def matrix_products(n):
    def function(w, x):
        for _ in range(n):
            x = jnp.tanh(x @ w)
        return x.sum()
    return maxjax.grad(function), (MATRIX, MATRIX)


@shape(150)
def one_mask_for_all(n):
    """All groups read one array, and none may be merged with another."""
    def function(w, mask, x):
        for _ in range(n):
            x = (x @ w) * mask
        return x.sum()
    return maxjax.grad(function), (MATRIX, MATRIX, MATRIX)


@shape(150)
def one_value_for_all(n):
    def function(x):
        y = jnp.tanh(x)
        return [(y @ (y * float(k))).sum(0) for k in range(n)]
    return function, (MATRIX,)


@shape(150)
def crossing_chains(n):
    def function(x, y, w):
        for _ in range(n):
            x, y = jnp.tanh(x @ w) + y, jnp.sin(y) @ w * x
        return x.sum() + y.sum()
    return maxjax.grad(function), (MATRIX, MATRIX, MATRIX)


@shape(200)
def reductions(n):
    def function(x):
        for _ in range(n):
            x = x - x.sum(0, keepdims=True)
        return x.sum()
    return function, (MATRIX,)


@shape(200)
def joined(n):
    return lambda x: jnp.stack([jnp.sin(x * float(k)) for k in range(n)]), (VECTOR,)


@shape(100)
def joined_slices(n):
    return (lambda x: jnp.concatenate([x[k:k + 1] for k in range(n)])), (
        np.ones((1000, 4), np.float32),)


@shape(200)
def elements(n):
    def function(x):
        total = 0.0
        for k in range(n):
            total = total + x[k % 8] * x[(k + 1) % 8]
        return total
    return maxjax.grad(function), (VECTOR,)


@shape(60)
def conditionals(n):
    def function(x):
        for _ in range(n):
            x = lax.cond(x[0] > 0, jnp.sin, lambda x: x * 2.0, x)
        return x.sum()
    return maxjax.grad(function), (VECTOR,)


@shape(250)
def long_body(n):
    def body(x, _):
        y = x
        for position in range(n):
            y = OPERATIONS[position % len(OPERATIONS)](y)
        return y, None
    return maxjax.grad(lambda x: lax.scan(body, x, None, length=3)[0].sum()), (VECTOR,)


@shape(200)
def many_carried(n):
    def body(carry, _):
        return [jnp.sin(x) * y for x, y in zip(carry, carry[1:] + carry[:1], strict=True)], None
    return lambda xs: lax.scan(body, xs, None, length=2)[0], ([VECTOR + k for k in range(n)],)


@shape(40)
def layers(n):
    """An unrolled training step."""
    def loss(parameters, x):
        for w, b, scale in parameters:
            centred = x - x.mean(-1, keepdims=True)
            normal = centred / jnp.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * scale
            x = x + maxjax.nn.gelu(normal @ w + b)
        return (x ** 2).mean()

    def step(parameters, x):
        value, gradients = maxjax.value_and_grad(loss)(parameters, x)
        return value, maxjax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)
    return step, ([(MATRIX / 2, MATRIX[0], MATRIX[1] + 1) for _ in range(n)], MATRIX[:3])


@shape(100)
def jits_in_a_jit(n):
    inner = maxjax.jit(lambda x: maxjax.jit(jnp.sin)(x) * 2.0)

    def function(x):
        for _ in range(n):
            x = inner(x)
        return x.sum()
    return maxjax.grad(function), (VECTOR,)


def assert_linear(work: Callable[[int], float], n: int) -> None:
    """``work`` returns the seconds that a number of operations take; the best of a few runs are
    compared."""
    small = large = float("inf")
    for _ in range(TRIES):
        small, large = min(small, work(n)), min(large, work(4 * n))
        if large < MOST_GROWTH * small:
            return
    raise AssertionError(f"{n} operations took {small:.3f} s, {4 * n} took {large:.3f} s")


def seconds(work: Callable[..., Any], *args: Any) -> float:
    """This thread's time, without the garbage collector, which runs at arbitrary times."""
    gc.disable()
    try:
        start = time.thread_time()
        work(*args)
        return time.thread_time() - start
    finally:
        gc.enable()


@pytest.mark.parametrize("name", SHAPES)
def test_calls_take_linear_time(name):
    """Three calls under jit: tracing, transforming, simplifying, tier 0's text and running it."""
    n, make = SHAPES[name]

    def work(n):
        function, args = make(n)

        def three_calls():
            jitted = maxjax.jit(function)
            for _ in range(3):
                maxjax.block_until_ready(jitted(*args))
        return seconds(three_calls)
    assert_linear(work, n)


@pytest.mark.parametrize("name", SHAPES)
def test_planning_takes_linear_time(name):
    n, make = SHAPES[name]

    def work(n):
        function, args = make(n)
        program = Program(maxjax.make_jaxpr(function)(*args))
        prepared = []
        taken = seconds(lambda: prepared.append(MojoBackend().prepare(program.opened.jaxpr)))
        assert prepared[-1].plans
        return taken
    assert_linear(work, n)


def test_what_is_not_jitted_takes_linear_time():
    def work(n):
        x = jnp.asarray(VECTOR)
        return seconds(lambda: np.asarray(maxjax.grad(chain(n))(x)))
    assert_linear(work, 400)


def test_a_pending_graph_takes_linear_time():
    def work(n):
        x = jnp.asarray(VECTOR)
        return seconds(lambda: np.asarray(chain(n)(x)))
    assert_linear(work, 1000)


def test_printing_takes_linear_time():
    def work(n):
        return seconds(str, maxjax.make_jaxpr(maxjax.grad(chain(n)))(VECTOR))
    assert_linear(work, 400)


def test_sharding_takes_linear_time():
    sharding = maxjax.sharding.NamedSharding(
        maxjax.make_mesh((1,), ("x",)), maxjax.sharding.PartitionSpec("x"))

    def work(n):
        jitted = maxjax.jit(maxjax.grad(chain(n)), in_shardings=sharding)
        return seconds(lambda: np.asarray(jitted(VECTOR)))
    assert_linear(work, 200)


# --- what is planned at all -----------------------------------------------------------------------

@pytest.fixture
def planned(monkeypatch):
    """Records the programs planned from here on."""
    found = []
    prepare = MojoBackend.prepare

    def counted(self, jaxpr, donated):
        found.append(jaxpr)
        return prepare(self, jaxpr, donated)
    monkeypatch.setattr(MojoBackend, "prepare", counted)
    return found


def test_nothing_is_planned_that_is_never_compiled(planned, monkeypatch):
    monkeypatch.setattr(tiering, "HOT_NANOSECONDS", 0)
    monkeypatch.setattr(tiering, "LOOKUP_NANOSECONDS", 0)
    monkeypatch.setattr(tiering, "EAGER_LOOKUP_SECONDS", -1.0)
    jitted = maxjax.jit(maxjax.grad(chain(50)))
    with config.compile_mode("never"):
        for _ in range(5):
            jitted(VECTOR)
    assert not planned
    with config.compile_mode("auto"):
        monkeypatch.setattr(tiering, "submit", lambda program, priority: None)
        jitted(VECTOR)
    assert planned


def test_a_long_program_is_planned_when_it_has_taken_as_long(planned, monkeypatch):
    """At 30 us an equation: 2,700 of them are not worth planning for a call of a few ms."""
    monkeypatch.setattr(tiering, "HOT_NANOSECONDS", 1 << 62)
    jitted = maxjax.jit(maxjax.grad(chain(1000)))
    with config.compile_mode("auto"):
        jitted(VECTOR)
        assert not planned
        program, = (entry.closed.made.programs[()] for entry in jitted._entries.values())
        assert 2 < program.size < 4
        program.heat = int(tiering.LOOKUP_NANOSECONDS * program.size) + 1
        jitted(VECTOR)
        assert planned == [program.opened.jaxpr]


def test_the_collector_rests_while_a_program_is_planned(monkeypatch):
    running = []
    prepare = MojoBackend.prepare
    monkeypatch.setattr(MojoBackend, "prepare", lambda self, jaxpr, donated: (
        running.append(gc.isenabled()), prepare(self, jaxpr, donated))[1])
    program = Program(maxjax.make_jaxpr(chain(10))(VECTOR))
    assert gc.isenabled()
    tiering.prepare(program)
    assert running == [False] and gc.isenabled()


def test_the_collector_is_left_as_it_was():
    gc.disable()
    try:
        with collection.stopped, collection.stopped:
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
    inside, done = threading.Event(), threading.Event()

    def work():
        with collection.stopped:
            inside.set()
            done.wait(60)
    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    with pytest.raises(ZeroDivisionError), collection.stopped:
        raise ZeroDivisionError
    assert not gc.isenabled()       # the other thread is still inside
    done.set()
    thread.join()
    assert gc.isenabled()


def test_tier_0_is_made_for_the_first_call_that_it_runs():
    program = Program(maxjax.make_jaxpr(chain(10))(VECTOR))
    assert program._tier0 is None
    with config.compile_mode("never"):
        program.run([VECTOR])
    assert program._tier0 is program.tier0


# --- the bookkeeping ------------------------------------------------------------------------------

class PlainArena:
    """First fit by examining every block."""

    def __init__(self) -> None:
        self.blocks: list[list[int]] = []

    def allocate(self, size: int, first: int, last: int) -> int:
        size = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        offset = 0
        for begin, end, since, until in sorted(self.blocks):
            if since <= last and first <= until:
                if begin - offset >= size:
                    break
                offset = max(offset, end)
        self.blocks.append([offset, offset + size, first, last])
        return offset


@pytest.mark.parametrize("seed", range(30))
def test_the_arena_gives_the_first_place_that_fits(seed):
    chance = random.Random(seed)
    steps = chance.choice((5, 40, 150))
    arena, plain = Arena(), PlainArena()
    for step in range(steps):
        for _ in range(chance.randint(0, 3)):
            size = chance.choice((0, 1, 64, 100, chance.randint(0, 5000)))
            last = step + chance.choice((0, 1, 5, chance.randint(0, steps)))
            place = arena.allocate(size, step, last)
            assert place == plain.allocate(size, step, last)
    arena.restart()
    for step in range(steps):
        for _ in range(chance.randint(0, 2)):
            size = chance.randint(0, 3000)
            assert arena.allocate(size, step, step) == plain.allocate(size, step, step)
    assert arena.size == max((end for _, end, _, _ in plain.blocks), default=0)


def reached(reads: dict[int, set[int]], start: int) -> set[int]:
    found, stack = {start}, [start]
    while stack:
        for unit in reads[stack.pop()] - found:
            found.add(unit)
            stack.append(unit)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_units_are_joined_where_none_needs_the_other(seed):
    """As many units as a search may examine: every answer is exact."""
    chance = random.Random(seed)
    graph, reads = UnitGraph(), {}
    for unit in range(60):
        known = list(reads)
        graph.add(unit)
        reads[unit] = set()
        readers = chance.sample(known, min(len(known), chance.randint(0, 2)))
        graph.connect(readers, unit)
        for reader in readers:
            reads[reader].add(unit)
        if len(known) < 3:
            continue
        target, *others = chance.sample(known, 3)
        if chance.random() < 0.7:
            others = [other for other in others if other != target]
            allowed = reached(reads, target).isdisjoint(others)
            assert graph.joins(target, others) == allowed
            for other in others if allowed else ():
                reads[other].add(target)
        else:
            second = others[0]
            allowed = second not in reached(reads, target) and target not in reached(reads, second)
            assert (second in graph.needs(target)) == (second in reached(reads, target))
            assert graph.merge(target, second) == allowed
            if allowed:
                reads[target] |= reads.pop(second)
                for made in reads.values():
                    if second in made:
                        made.remove(second)
                        made.add(target)
        assert {unit: set(graph.reads[unit]) for unit in reads} == reads
    assert all(unit not in reached(reads, made) for unit in reads for made in reads[unit])


@pytest.mark.parametrize("seed", range(10))
def test_what_shares_memory_with_one_of_many_arrays(seed):
    chance = random.Random(seed)
    roots = [np.zeros((chance.randint(1, 40), 3), kind) for kind in (np.int8, np.float32) * 4]

    def view():
        root = chance.choice(roots)
        return chance.choice((root, root.T, root[::-1], root[1:3], root[:0], root[::2, 1]))
    arrays = [view() for _ in range(20)]
    shares = memory.sharing(arrays)
    # What is no view, and none of them, is memory that a program has made.
    views = [value for value in (view() for _ in range(40)) if value.base is not None]
    for value in (*views, *arrays, np.zeros(3), np.float32(1), np.zeros(())):
        assert shares(value) == any(np.may_share_memory(value, array) for array in arrays)
