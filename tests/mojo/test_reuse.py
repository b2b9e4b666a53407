"""Updates in place: of loops' carried values, results of branches and temporaries.

Each program gives what tier 0 gives, is planned with all checks, and leaves its arguments alone.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base.errors import InternalError
from maxjax._max.mojo import small_loops
from maxjax._max.mojo.check_plan import CheckedPlan, check_part
from maxjax._max.mojo.plan import Plan
from maxjax._max.mojo.tape import Tape
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")


@pytest.fixture(autouse=True)
def no_small_loops(monkeypatch):
    """Arrays are small here, and their loops tapes nevertheless."""
    monkeypatch.setattr(small_loops, "MOST_ELEMENTS", 0)


X = np.arange(1, 21, dtype=np.float32).reshape(5, 4)
V = np.linspace(-1, 1, 5).astype(np.float32)


def steps(tape: Tape, within: bool = False) -> list[str]:
    """The calls of a tape and those within it; ``within``: only those in bodies."""
    found = []
    for step in tape.steps:
        if not within:
            found.append(f"{step.function or 'kernel'} {step.note}")
        for x in step.integers:
            if isinstance(x, Tape):
                found += steps(x)
    return found


def check(function, *args) -> RecordedPlan:
    """The plan of a program, after it has given what tier 0 gives, twice, from the same memory."""
    program = Program(maxjax.make_jaxpr(function)(*args))
    plan = RecordedPlan(program.opened.jaxpr, 1)
    run = mojo_programs.without_kernels(plan, program.opened.jaxpr)
    values = [*program.consts, *map(np.asarray, args)]
    for _ in range(2):
        given = [np.array(x) for x in values]
        for ours, theirs in zip(run(given), program.tier0(*values), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for x, value in zip(given, values, strict=True):
            np.testing.assert_array_equal(x, value)
    return plan


class RecordedPlan(CheckedPlan):
    """Records carried values of the shape of ``X`` that are not updated in place."""

    def finished(self, part):
        super().finished(part)
        vars(self).setdefault("exchanged", []).extend(
            source for output, source in part.carried.items()
            if source.shape == X.shape and output not in part.reuse.inputs)


def copies(plan: Plan, size: int = X.nbytes) -> list[str]:
    """The calls within loops that copy an array of the size of ``X`` as it is."""
    return [step for step in steps(plan.tape, within=True)
            if re.match(rf"tape_copy_bytes {size} |copy_\d+ \w+\[5,4\], strides \[4,1\]", step)]


IN_PLACE = {
    "scatter": lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i].set(c[i - 1] + 1), x),
    "add": lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i, 1].add(c[i, 0]), x),
    "slice": lambda x: lax.fori_loop(
        0, 4, lambda i, c: lax.dynamic_update_slice(c, c[:2, :2] * 2, (i, i)), x),
    "twice": lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i].set(0.).at[:, 1].mul(2.), x),
    "elementwise": lambda x: lax.fori_loop(0, 5, lambda i, c: jnp.maximum(c * 2 - 1, 3.), x),
    "read before": lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i].set(c.sum(0)), x),
    "read before, written after": lambda x: lax.fori_loop(
        0, 3, lambda i, c: (c @ c.T / 99.) @ jnp.ones((5, 4)), x),
    "while": lambda x: lax.while_loop(lambda c: c.sum() < 999, lambda c: c.at[1].mul(2.), x),
    "no trip": lambda x: lax.while_loop(lambda c: c.sum() < 0, lambda c: c.at[1].mul(2.), x),
    "scan": lambda x: lax.scan(lambda c, r: (c.at[1].add(r), r * 2), x, x),
    "reverse scan": lambda x: lax.scan(lambda c, r: (c.at[1].add(r), c[2]), x, x, reverse=True),
    "nested": lambda x: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(
        0, 4, lambda j, c: c.at[i, j].set(i + 10. * j), c), x),
    "nested while": lambda x: lax.fori_loop(0, 3, lambda i, c: lax.while_loop(
        lambda c: c[i, 0] < 50, lambda c: c.at[i].mul(3.), c), x),
    "through a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(
        0, 2, lambda j, c: (c[0], c[1] + c[0][i, j]), (c[0].at[i].set(7.), c[1])), (x, 0.)),
    "branch": lambda x: lax.fori_loop(0, 5, lambda i, c: lax.cond(
        i % 2 == 0, lambda c: c.at[i].set(-1.), lambda c: c, c), x),
    "both branches": lambda x: lax.fori_loop(0, 5, lambda i, c: lax.switch(
        i % 3, [lambda c: c.at[i].set(-1.), lambda c: c.at[:, 0].add(2.), lambda c: c], c), x),
    "branch in a loop in a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(
        0, 4, lambda j, c: lax.cond(j > i, lambda c: c.at[i, j].set(0.), lambda c: c, c), c), x),
    "two": lambda x: lax.fori_loop(
        0, 5, lambda i, c: (c[0].at[i].set(c[1][0]), c[1] + c[0][i, 0]), (x, x * 2)),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_updates_are_made_in_place(name):
    plan = check(IN_PLACE[name], X)
    assert not copies(plan), copies(plan)
    assert not plan.exchanged


# What reads a value after it would have been overwritten, or has it in two places.
HAZARDS = {
    "returned and updated": lambda x: lax.fori_loop(
        0, 5, lambda i, c: (c[0].at[i].set(-1.), c[0]), (x, x)),
    "swapped": lambda x: lax.fori_loop(0, 5, lambda i, c: (c[1], c[0]), (x, x + 1)),
    "from each other": lambda x: lax.fori_loop(
        0, 5, lambda i, c: (c[0] + c[1], c[0] * 2, c[2].at[i].set(c[0][i])), (x, x, x)),
    "updated by each other": lambda x: lax.fori_loop(
        0, 5, lambda i, c: (c[0].at[i].set(c[1][i]), c[1].at[i].set(c[0][i])), (x, -x)),
    "updates from itself": lambda x: lax.fori_loop(
        0, 5, lambda i, c: c.at[jnp.arange(5)].set(c[::-1]), x),
    "updates of itself, turned": lambda x: lax.fori_loop(
        0, 5, lambda i, c: c.at[jnp.array([1, 0, 3])].set(c[:3]), x),
    "collected": lambda x: lax.scan(lambda c, r: (c.at[1].set(r), c), x, x),
    "collected after": lambda x: lax.scan(
        lambda c, r: (c.at[1].set(r), c.at[1].set(r)), x, x, reverse=True),
    "shifted": lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.concatenate([c[1:], c[:1]]), x),
    "reversed": lambda x: lax.fori_loop(0, 3, lambda i, c: c[::-1] + 1, x),
    "transposed": lambda x: lax.fori_loop(0, 3, lambda i, c: c.T * 2, x[:4]),
    "an argument, twice": lambda x: (lax.fori_loop(0, 3, lambda i, c: c.at[i].set(0.), x), x),
    "a result, twice": lambda x: (lambda y: (y, y, y.sum()))(
        lax.fori_loop(0, 3, lambda i, c: c.at[i].set(0.), x)),
    "a constant": lambda x: lax.fori_loop(
        0, 3, lambda i, c: c.at[i].set(9.), jnp.asarray(np.array(X))) + x,
    "also read": lambda x: lax.fori_loop(
        0, 3, lambda i, c: (c[0].at[i].set(0.), c[1] + x[i, 0]), (x, 0.)),
    "read later": lambda x: (lambda y: (lax.fori_loop(
        0, 3, lambda i, c: c.at[i].set(0.), y), jnp.sin(y)))(x * 2),
    "branch, read later": lambda x: (lambda y: (lax.cond(
        x[0, 0] > 0, lambda y: y.at[0].set(0.), lambda y: y, y), y + 1))(x * 2),
    "branch, twice": lambda x: lax.fori_loop(0, 4, lambda i, c: lax.cond(
        i % 2 == 0, lambda a, b: (b, a), lambda a, b: (a.at[i].set(b[0]), b), *c), (x, -x)),
    "branch that must copy": lambda x: lax.fori_loop(0, 4, lambda i, c: lax.cond(
        i % 2 == 0, lambda c: c, lambda c: c[::-1] * 2, c), x),
    "branch of one value": lambda x: lax.fori_loop(0, 4, lambda i, c: lax.cond(
        i % 2 == 0, lambda a, b: (a.at[0].set(1.), b), lambda a, b: (a, b.at[0].set(2.)),
        c[0], c[0]), (x, x)),
    "same value for two carries": lambda x: (lambda y: lax.fori_loop(
        0, 3, lambda i, c: (c[0].at[i].set(5.), c[1].at[i].mul(2.)), (y, y)))(x + 1),
    "inner loop reads it too": lambda x: lax.fori_loop(0, 3, lambda i, c: lax.fori_loop(
        0, 2, lambda j, d: d.at[j].set(c[i]), c), x),
    "dropped and out of bounds": lambda x: lax.fori_loop(
        0, 9, lambda i, c: c.at[i - 3].set(c[i - 4], mode="drop"), x),
    "odd and even": lambda x: [lax.fori_loop(0, n, lambda i, c: c[::-1] * 2, x)
                               for n in range(4)],
    "slices": lambda x: lax.fori_loop(0, 3, lambda i, c: c[:2].at[i % 2].set(c[4, 0])[
        jnp.array([0, 1, 0, 1, 0])], x),
}


@pytest.mark.parametrize("name", HAZARDS)
def test_what_is_read_later_is_not_overwritten(name):
    check(HAZARDS[name], X)


def test_references():
    def function(x):
        total = maxjax.new_ref(x)
        log = maxjax.new_ref(jnp.zeros(5))

        def body(i, _):
            log[i] = total[i, 0]
            total[i] = total[i - 1] + 1
        lax.fori_loop(0, 5, body, None)
        return total[...], log[...]

    check(function, X)


def test_donated_and_kept_buffers():
    kept = jnp.asarray(X)
    function = maxjax.jit(IN_PLACE["scatter"])
    expected = np.asarray(function(kept))
    for _ in range(3):
        np.testing.assert_array_equal(function(kept), expected)
    np.testing.assert_array_equal(kept, X)


def test_memory_does_not_grow():
    """A carry that is updated in place has one buffer: the result's."""
    x = np.zeros((1000, 10), np.float32)
    plan = check(lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i].add(1.), x), x)
    assert plan.arena < x.nbytes // 8
    plan = check(lambda x: lax.while_loop(
        lambda c: c[0, 0] < 3, lambda c: c[::-1] + 1, x).sum(), x)
    assert plan.arena < 2 * x.nbytes + 4096


def test_temporaries():
    """A scatter into a value that nobody else reads copies nothing, outside loops as well."""
    plan = check(lambda x: jnp.zeros_like(x).at[1].set(x[0]).at[2].add(x[3]) + 1, X)
    assert plan.arena < 3 * X.nbytes


def test_values_without_elements_in_two_places():
    """A carry that is two results, or takes another's place, is not copied where it is empty."""
    x = X[:, :0]
    check(lambda x: lax.scan(lambda c, _: ((c[1], c[0]), c[0]), (x, x + 1), None, length=3), x)
    check(lambda x: lax.scan(lambda c, _: ((c[1] * 2,) * 2, (c[0], c[1] * 2)), (x, x), None, 3), x)
    check(lambda x: [lax.fori_loop(0, 3, lambda i, c: jnp.sort(c), x)] * 3, x)
    check(lambda x: lax.cond(x.size + x.sum() > 0, lambda x: (x, x, jnp.sort(x)),
                             lambda x: (jnp.sort(x),) * 3, x), x)


def step(what: int, i, x, y, a: int, b: int):
    """An update, a read or a choice of two values."""
    return [
        lambda: x.at[(i + a) % 5].set(y[b % 5]),
        lambda: x.at[a % 5, b % 4].add(y[0, 0]),
        lambda: jnp.where(x > y, x, y - 1),
        lambda: x + y,
        lambda: lax.dynamic_update_slice(x, y[:2, :3], (i, a % 3)),
        lambda: x[::-1],
        lambda: lax.cond(i % 2 == a % 2, lambda x, y: x, lambda x, y: x.at[0].set(y[1]), x, y),
        lambda: lax.fori_loop(0, 2, lambda j, z: z.at[j].set(y[(j + b) % 5]), x),
        lambda: lax.cond(x[0, 0] > 0, lambda x, y: (x, y), lambda x, y: (x * 2, x), x, y)[b % 2],
    ][what % 9]()


def programs(seed: int):
    """A random body of updates, reads and choices of three carried values."""
    rng = np.random.default_rng(seed)
    plan = rng.integers(0, 1 << 16, (int(rng.integers(2, 7)), 5)).tolist()
    outputs = rng.integers(0, 1 << 16, 3).tolist()
    kind, count = seed % 3, int(rng.integers(0, 5))

    def body(i, carry):
        values = list(carry)
        for what, first, second, a, b in plan:
            x, y = values[first % len(values)], values[second % len(values)]
            values.append(jnp.clip(step(what, i, x, y, a, b), -9, 9))
        return tuple(values[number % len(values)] for number in outputs)

    def function(a, b, c):
        if kind == 0:
            return lax.fori_loop(0, count, body, (a, b, c))
        if kind == 1:
            return lax.while_loop(lambda c: c[0] < count, lambda c: (
                c[0] + 1, *body(c[0], c[1:])), (0, a, a, b))
        return lax.scan(lambda c, i: (body(i, c), c[0] if count == 1 else c[1][0]),
                        (a, b, b), jnp.arange(count), reverse=bool(seed & 4))

    return function, [rng.integers(-5, 5, (5, 4)).astype(np.float32) for _ in range(3)]


@pytest.mark.parametrize("batch", range(4))
def test_random_programs(batch):
    for seed in range(12 * batch, 12 * batch + 12):
        function, args = programs(seed)
        try:
            check(function, *args)
        except Exception as error:
            raise AssertionError(f"{seed}: {error}\n{maxjax.make_jaxpr(function)(*args)}") \
                from error


@pytest.mark.exhaustive
def test_many_random_programs():
    for seed in range(100, 1000):
        function, args = programs(seed)
        check(function, *args)


# --- the checker ----------------------------------------------------------------------------------

class KeptPlan(Plan):
    """A plan that records its parts."""

    def finished(self, part):
        vars(self).setdefault("parts", []).append(part)


def kept(function, *args):
    return KeptPlan(Program(maxjax.make_jaxpr(function)(*args)).opened.jaxpr, 1)


def body_with_an_update():
    """A body that reads its carry and then writes it, the reader and the writer."""
    plan = kept(lambda x: lax.fori_loop(
        0, 5, lambda i, c: (c[0].at[i].set(0.), c[1] + c[0].sum()), (x, 0.)), X)
    part = plan.parts[0]
    check_part(part)
    output = next(node for node in part.reuse.inputs if node.shape == X.shape)
    source = part.reuse.inputs[output]
    reader, writer = [number for number, (unit, detail) in enumerate(part.units)
                      if source in part.reads(unit, detail)]
    return part, output, reader, writer


def test_a_read_after_the_update_is_found():
    part, _, reader, writer = body_with_an_update()
    part.units.insert(writer, part.units.pop(reader))
    with pytest.raises(InternalError, match="still lives"):
        check_part(part)


def test_an_update_of_what_is_read_twice_is_found():
    part, _, _, writer = body_with_an_update()
    scatter = part.units[writer][0]
    scatter.inputs = (*scatter.inputs[:2], scatter.inputs[0])
    with pytest.raises(InternalError, match="still lives"):
        check_part(part)


def test_an_update_elsewhere_is_found():
    part, output, _, _ = body_with_an_update()
    slot, offset = part.places[output]
    part.places[output] = slot, offset + 64
    with pytest.raises(InternalError, match="and is elsewhere"):
        check_part(part)
