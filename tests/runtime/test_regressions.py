"""Bugs that similar libraries have had: each eager, pending, under jit, compiled."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

import maxjax
from maxjax._ir.runtime import installed
from maxjax._runtime.cells import pending
from maxjax._runtime.program import Program
from maxjax._runtime.tiering import tiering
from tests.support import harness, tier1
from tests.support.against_jax import assert_tree_same

X = np.array([0.5, -1.25, 2.0], np.float32)
Y = np.array([3.0, 0.25, -1.0], np.float32)
SQUARE = np.array([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5], [0.1, 0.2, 0.4]], np.float32)
REPEATED = np.array([0, 2, 2, 0, 2], np.int32)


def softmax(j, x, axis):
    top = j.numpy.exp(x - j.numpy.max(x, axis=axis, keepdims=True))
    return top / j.numpy.sum(top, axis=axis, keepdims=True)


def replaced_nan(j, x):
    """The update overwrites all that is NaN: the gradient is finite."""
    bad = j.numpy.log(x).at[1].set(0.0)
    return j.numpy.sum(bad)


CASES = {
    "a square, then a product of equal shapes": (lambda j, x, y: (x * x, x * y), (X, Y)),
    "a product, then a square": (lambda j, x, y: (x * y, x * x, y * x, y * y), (X, Y)),
    "differences both ways": (lambda j, x, y: (x - y, y - x, x - x), (X, Y)),
    "softmax along either axis of a square": (
        lambda j, x: (softmax(j, x, -1), softmax(j, x, -2)), (SQUARE,)),
    "sums along either axis": (
        lambda j, x: [x.sum(axis) for axis in (-1, -2, 0, 1, None, (0, 1), ())], (SQUARE,)),
    "full of -1 and of -2": (
        lambda j, x: (x * j.numpy.full((3,), -1.0), x * j.numpy.full((3,), -2.0)), (X,)),
    "constants that are equal but not the same": (
        lambda j, x: (x * 0.0, x * -0.0, x * 1, x * True, x + 1.0, x + 1), (X,)),
    "signs of zeros": (lambda j, x: (1 / (x * 0.0), 1 / (x * -0.0)), (X,)),
    "grad of f(x, x)": (
        lambda j, x: j.grad(lambda a, b: j.numpy.sum(a * b), argnums=(0, 1))(x, x), (X,)),
    "grad of f(x, x) by the first": (
        lambda j, x: j.grad(lambda a, b: j.numpy.sum(a * b * b))(x, x), (X,)),
    "grad of a closure at the closed-over value": (
        lambda j, x: j.grad(lambda y: j.numpy.sum(x * y))(x), (X,)),
    "vjp and jvp of f(x, x)": (
        lambda j, x, y: (j.vjp(lambda a, b: a * b, x, x)[1](y),
                         j.jvp(lambda a, b: a * b * b, (x, x), (y, x))), (X, Y)),
    "gather of repeated indices": (
        lambda j, x, i: j.grad(lambda x: j.numpy.sum(x[i] ** 2 * j.numpy.arange(5.0)))(x),
        (X, REPEATED)),
    "take of repeated rows": (
        lambda j, x, i: j.grad(lambda x: j.numpy.sum(j.numpy.sin(j.numpy.take(x, i, axis=0))))(x),
        (SQUARE, REPEATED)),
    "add at repeated indices": (
        lambda j, x, i: (x.at[i].add(1.0), x.at[i].multiply(2.0), x.at[i].max(0.75),
                         x.at[i].min(0.1)), (X, REPEATED)),
    "set at repeated indices": (
        lambda j, x, i: x.at[i].set(7.0), (X, REPEATED)),
    "gradient of an add at repeated indices": (
        lambda j, x, u, i: j.grad(lambda x, u: j.numpy.sum(x.at[i].add(u) ** 2), (0, 1))(x, u),
        (X, np.arange(5, dtype=np.float32), REPEATED)),
    "ties in max": (
        lambda j, x: j.grad(lambda x: j.numpy.max(x))(x * 0 + 1), (X,)),
    "ties in max along an axis": (
        lambda j, x: j.grad(lambda x: j.numpy.sum(j.numpy.max(x, axis=1)))(j.numpy.round(x)),
        (SQUARE,)),
    "ties in maximum": (
        lambda j, x: j.grad(lambda x, y: j.numpy.sum(j.numpy.maximum(x, y)), (0, 1))(x, x), (X,)),
    "abs and relu at zero": (
        lambda j, x: j.grad(lambda x: j.numpy.sum(j.numpy.abs(x) + j.numpy.maximum(x, 0)))(x * 0),
        (X,)),
    "argmax of ties": (
        lambda j, x: (j.numpy.argmax(x * 0), j.numpy.argmin(x * 0)), (X,)),
    "grad of a jit that was called": (
        lambda j, x: (lambda f: (f(x), j.grad(f)(x), f(x * 2)))(
            j.jit(lambda x: j.numpy.sum(j.numpy.sin(x)))), (X,)),
    "jit inside jit inside grad": (
        lambda j, x: j.grad(j.jit(lambda x: j.numpy.sum(j.jit(lambda y: y * y * x)(x))))(x), (X,)),
    "grad inside jit inside grad": (
        lambda j, x: j.grad(lambda x: j.numpy.sum(j.jit(j.vmap(j.grad(lambda y: y ** 3)))(x)))(x),
        (X,)),
    "second order through a jit": (
        lambda j, x: j.vmap(j.grad(j.grad(j.jit(lambda y: j.numpy.exp(y) * y))))(x), (X,)),
    "NaN where an update overwrites": (
        lambda j, x: (replaced_nan(j, x), x.at[1].set(0.0)), (np.array([1, -1, 2], np.float32),)),
    "NaN next to where": (
        lambda j, x: j.numpy.where(x > 0, j.numpy.log(j.numpy.where(x > 0, x, 1)), 0), (X,)),
    "gradient of where": (
        lambda j, x: j.grad(lambda x: j.numpy.sum(j.numpy.where(
            x > 0, j.numpy.sqrt(j.numpy.where(x > 0, x, 1)), 0)))(x), (X,)),
    "an unused result": (lambda j, x, y: (j.numpy.sin(x) * 0 + y, x + y)[1], (X, Y)),
    "one array twice in the results": (lambda j, x: (lambda y: (y, y, [y]))(x + 1), (X,)),
    "a result that is an argument": (lambda j, x, y: (y, x, x * y), (X, Y)),
    "broadcast of one to many": (
        lambda j, x: j.grad(lambda s: j.numpy.sum(s * x[:, None] + s))(x[:1]), (X,)),
    "nothing at all": (lambda j, x: (x[:0].sum(), x[:0] * 2, j.numpy.zeros((0, 3)) @ x), (X,)),
}
# Both XLA and NumPy may differ by one rounding.
KIND = "accumulate"


@functools.cache
def expected_of(name):
    fun, args = CASES[name]
    return jax.jit(functools.partial(fun, jax))(*args)


def operands(args):
    return [installed.runtime.operand(arg) for arg in args]


@pytest.mark.parametrize("name", CASES)
def test_a_graph_that_stays_pending(name):
    """No value is read before the whole graph is recorded."""
    fun, args = CASES[name]
    actual = fun(maxjax, *operands(args))
    assert_tree_same(actual, expected_of(name), KIND, weak=False)


@pytest.mark.parametrize("name", CASES)
def test_operations_that_run_at_once(name, monkeypatch):
    """Each operation runs as it is recorded."""
    fun, args = CASES[name]
    monkeypatch.setattr("maxjax._runtime.pending.MAX_OPERATIONS", 0)
    actual = fun(maxjax, *operands(args))
    assert not pending.cells
    assert_tree_same(actual, expected_of(name), KIND, weak=False)


@pytest.mark.parametrize("name", CASES)
def test_a_graph_that_becomes_a_program(name, monkeypatch):
    """The pending graph becomes a program; the second time it is found."""
    fun, args = CASES[name]
    monkeypatch.setattr("maxjax._runtime.cells.LIGHT_BYTES", -1)
    for _ in range(2):
        actual = fun(maxjax, *operands(args))
        assert_tree_same(actual, expected_of(name), KIND, weak=False)


@pytest.mark.parametrize("name", CASES)
def test_a_case_under_jit(name):
    fun, args = CASES[name]
    jitted = maxjax.jit(functools.partial(fun, maxjax))
    for _ in range(2):
        assert_tree_same(jitted(*args), expected_of(name), KIND, weak=False)


# One of each kind: on the Mojo backend, and some of them on the graph backend, where a kernel costs
# MAX seconds; these are part of test_tier1's module. `pytest -m exhaustive` has all there too.
COMPILED = (
    "signs of zeros", "grad of f(x, x) by the first", "a result that is an argument",
    "softmax along either axis of a square", "add at repeated indices", "ties in max",
    "NaN where an update overwrites")
BY_MAX = COMPILED[:3]


def program_of(name, backend):
    """The program of a case, its operands, and its results' tree."""
    fun, args = CASES[name]
    values = operands(args)
    entry = maxjax.jit(functools.partial(fun, maxjax))._lookup(tuple(values), {})
    program = Program(entry.closed)
    program.backend = backend
    return program, [*program.consts, *(value.host() for value in values)], entry.out_tree


def check_results(name, actual):
    for a, e in zip(harness.leaves(actual), harness.leaves(expected_of(name)), strict=True):
        harness.assert_same(np.asarray(a), e, KIND, weak=False, signed_zeros=False)


@pytest.mark.xdist_group("mojo")
def test_compiled_by_mojo():
    pytest.importorskip("max.engine")
    from tests.support import mojo_programs
    mojo_programs.pack()
    items = {}
    for name in COMPILED:
        program, values, tree = program_of(name, "mojo")
        item = mojo_programs.Item(name, program, values).plan()
        assert item.problem is None and item.is_compiled, name
        items[name] = item, tree
    mojo_programs.build(item for item, _ in items.values())
    for name, (item, tree) in items.items():
        check_results(name, tree.unflatten(mojo_programs.run(
            item, [np.asarray(x) for x in item.values])))


def compiled_cases(names=BY_MAX):
    """The cases as programs of the graph backend, by name, and their results' trees."""
    programs = {}
    for number, name in enumerate(names):
        program, values, tree = program_of(name, "graph")
        assert tiering.prepare(program), name
        programs[name] = tier1.Compiled(None, program, values, f"regression{number}_"), tree
    return programs


def check_compiled(programs, models):
    """The ``models`` of the module with the programs' pieces return the same as JAX."""
    failures = []
    for name, (item, tree) in programs.items():
        compiled = item.on(models)
        try:
            check_results(name, tree.unflatten(compiled(item.values)))
        except AssertionError as error:
            failures.append(f"{name}: {error}")
    assert not failures, "\n".join(failures)
