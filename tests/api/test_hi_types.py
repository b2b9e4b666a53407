"""Types above arrays (``jax.experimental.hijax``): a cell that changes and a pair that does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax.experimental
import maxjax.experimental.hijax
from tests.api.test_hi_primitives import hijax_of
from tests.support.against_jax import agree


class Types:
    """The types, and functions of their values."""

    def __init__(self, j):
        hijax, tree = hijax_of(j), j.tree_util
        self.j = j

        @dataclasses.dataclass(frozen=True)
        class State:
            avals: Any
            treedef: Any

            def normalize(self):
                return self

        class CellType(hijax.MutableHiType):
            def __hash__(self):
                return hash(CellType)

            def __eq__(self, other):
                return isinstance(other, CellType)

            def str_short(self, short_dtypes=False, **_):
                return "Cell"

            __repr__ = str_short

            def lo_ty_qdd(self, state):
                return list(state.avals)

            def new_from_loval(self, state, *arrays):
                return Cell(arrays, state.treedef)

            def read_loval(self, state, cell):
                return tree.tree_leaves(get(cell))

            def update_from_loval(self, state, cell, *arrays):
                set_p.bind(cell, *arrays, treedef=state.treedef)

            def to_tangent_aval(self):
                return CellType()

        class Cell:
            def __init__(self, leaves, treedef):
                self.leaves, self.treedef = tuple(leaves), treedef

            def cur_qdd(self):
                return State(tuple(map(j.typeof, self.leaves)), self.treedef)

        class Effect(j.extend.core.Effect if j is maxjax else _effect_of_jax()):
            pass

        hijax.control_flow_allowed_effects.add_type(Effect)
        hijax.register_hitype(Cell, lambda cell: CellType())
        effects = {Effect()}

        class New(hijax.HiPrimitive):
            def abstract_eval(self, *avals, treedef):
                return hijax.AvalQDD(CellType(), State(avals, treedef)), effects

            def to_lojax(self, *leaves, treedef):
                return Cell(leaves, treedef)

        class Get(hijax.HiPrimitive):
            multiple_results = True

            def abstract_eval(self, cell, *, avals):
                return avals, effects

            def to_lojax(self, cell, *, avals):
                return cell.leaves

            def jvp(self, primals, tangents, *, avals):
                raise NotImplementedError

        class Set(hijax.HiPrimitive):
            multiple_results = True

            def abstract_eval(self, cell, *avals, treedef):
                cell.mutable_qdd.update(State(avals, treedef))
                return [], effects

            def to_lojax(self, cell, *leaves, treedef):
                cell.leaves, cell.treedef = leaves, treedef
                return []

            def jvp(self, primals, tangents, *, treedef):
                raise NotImplementedError

        new_p, get_p, set_p = New("new_cell"), Get("get_cell"), Set("set_cell")

        def new(value):
            leaves, treedef = tree.tree_flatten(value)
            return new_p.bind(*map(j.numpy.asarray, leaves), treedef=treedef)

        def get(cell):
            state = cur_qdd(cell)
            return tree.tree_unflatten(state.treedef, get_p.bind(cell, avals=state.avals))

        def put(cell, value):
            leaves, treedef = tree.tree_flatten(value)
            set_p.bind(cell, *map(j.numpy.asarray, leaves), treedef=treedef)

        cur_qdd = j.experimental.cur_qdd
        self.new, self.get, self.set = new, get, put

        @dataclasses.dataclass(frozen=True)
        class PairType(hijax.HiType):
            of: Any

            def lo_ty(self):
                return [self.of, self.of]

            def lower_val(self, pair):
                return [pair.first, pair.second]

            def raise_val(self, first, second):
                return Pair(first, second)

        class Pair:
            def __init__(self, first, second):
                self.first, self.second = first, second

        hijax.register_hitype(Pair, lambda pair: PairType(j.typeof(pair.first)))

        class First(hijax.HiPrimitive):
            def abstract_eval(self, pair):
                return pair.of, set()

            def to_lojax(self, pair):
                return pair.first

        class Swapped(hijax.HiPrimitive):
            def abstract_eval(self, pair):
                return pair, set()

            def to_lojax(self, pair):
                return Pair(pair.second, pair.first)

        self.pair, self.first = Pair, First("first").bind
        self.swapped = Swapped("swapped").bind


def _effect_of_jax() -> type:
    from jax._src.effects import Effect  # jax.extend has no class for it

    return Effect


def changed_in(transform):
    """A program whose functions close over a cell, or are given one, and change it."""
    def run(j):
        t = Types(j)
        jnp, lax, cell = j.numpy, j.lax, t.new(np.float32([1, 2]))

        def step(x):
            t.set(cell, t.get(cell) * 1.5 + 1)
            return x * 2

        def given(cell, x):
            t.set(cell, t.get(cell) + x)
            return t.get(cell).sum()

        def nested(cell, x):
            @j.jit
            def inner(y):
                t.set(cell, t.get(cell) * y)
                return t.get(cell).sum()

            first = inner(x)
            t.set(cell, t.get(cell) + 1)
            return first + inner(x)

        def branches(flag):
            def true():
                t.set(cell, t.get(cell) - 1)
                return 1.0

            return lax.cond(flag, true, lambda: 2.0)

        f = j.jit(given)
        results = {
            "eager": lambda: step(2.0),
            "jit": lambda: [j.jit(step)(2.0)],
            "jit twice": lambda: [g(2.0) for g in [j.jit(step)] * 2],
            "argument": lambda: [f(cell, 1.0), t.get(cell), f(cell, 2.0)],
            "shardings": lambda: [
                j.jit(given, in_shardings=None, out_shardings=j.sharding.SingleDeviceSharding(
                    j.devices()[0]))(cell, x) for x in (1.0, 2.0)],
            "under another": lambda: j.jit(lambda x: f(cell, x) + f(cell, x))(1.0),
            "nested": lambda: j.jit(nested)(cell, 2.0),
            "eval_shape": lambda: j.eval_shape(nested, cell, 2.0).shape,
            "scan": lambda: lax.scan(lambda c, x: (step(c), x), 1.0, None, length=3)[0],
            "while": lambda: lax.while_loop(lambda i: i < 9, step, 1),
            "fori in jit": lambda: j.jit(lambda: lax.fori_loop(0, 3, lambda i, c: step(c), 1.0))(),
            "cond": lambda: [branches(True), branches(False)],
            "cond in jit": lambda: [j.jit(branches)(flag) for flag in (True, False, True)],
            "grad": lambda: j.grad(lambda x: step(x) * t.get(cell).sum())(2.0),
            "vmap": lambda: j.vmap(lambda x: step(x) * t.get(cell))(jnp.arange(3.0)),
            "made inside": lambda: j.jit(lambda x: t.get(t.new(x)))(3.0),
        }[transform]()
        return results, t.get(cell)

    return run


@pytest.mark.parametrize("transform", [
    "eager", "jit", "jit twice", "argument", "shardings", "under another", "nested",
    "eval_shape", "scan", "while", "fori in jit", "cond", "cond in jit", "grad", "vmap",
    "made inside"])
def test_mutable_values(transform):
    agree(changed_in(transform))


def test_an_argument_may_come_to_hold_another_tree():
    def run(j):
        t = Types(j)
        cell = t.new({"a": np.float32(1)})

        @j.jit
        def grow(cell, x):
            t.set(cell, {**t.get(cell), "b": x})

        grow(cell, np.arange(3))
        before = t.get(cell)
        grow(cell, np.float32(2))
        return before, t.get(cell)

    agree(run)


def test_values_that_do_not_change():
    def run(j):
        t = Types(j)
        pair = t.pair(j.numpy.float32(1), j.numpy.float32(2))
        swap = j.jit(lambda pair, x: (t.swapped(pair), x + t.first(pair)))
        swapped, total = swap(pair, 3.0)
        again, _ = j.jit(swap)(swapped, 3.0)
        return t.first(swapped), total, t.first(again), j.jit(lambda: t.first(pair))()

    agree(run)


@pytest.mark.parametrize("transform", ["grad", "vmap"])
def test_a_write_of_a_transformed_value_is_refused(transform):
    t = Types(maxjax)
    cell = t.new(np.float32(1))

    def f(x):
        t.set(cell, x)
        return x

    with pytest.raises(Exception, match="performing a write operation with"):
        getattr(maxjax, transform)(f)(np.float32(1) if transform == "grad" else np.float32([1, 2]))
    assert t.get(cell) == 1


def test_another_tree_from_outside_is_refused():
    t = Types(maxjax)
    cell = t.new(np.float32(1))
    with pytest.raises(NotImplementedError, match="pass it as an argument of the jitted function"):
        maxjax.jit(lambda: t.set(cell, (1.0, 2.0)))()
    assert t.get(cell) == 1
    f = maxjax.jit(lambda: t.get(cell))
    f()
    t.set(cell, (1.0, 2.0))
    with pytest.raises(TypeError, match="pass it as an argument"):
        f()


@pytest.mark.parametrize("call", [
    lambda f, cell: maxjax.make_jaxpr(f)(cell), lambda f, cell: maxjax.jit(f).lower(cell),
    lambda f, cell: maxjax.jit(f).trace(cell)])
def test_no_jaxpr_has_such_a_type(call):
    t = Types(maxjax)
    with pytest.raises(NotImplementedError, match="a jaxpr, or ahead of time"):
        call(t.get, t.new(np.float32(1)))


def test_nothing_leaks():
    """JAX's own check says that this leaks."""
    t = Types(maxjax)
    cell = t.new(np.float32([1, 2]))

    @maxjax.jit
    def f(cell, x):
        t.set(cell, t.get(cell) + t.get(t.new(x)))
        return x

    with maxjax.checking_leaks():
        f(cell, 1.0)
        maxjax.jit(lambda: t.set(cell, 2 * t.get(cell)))()
    assert t.get(cell).tolist() == [4, 6]


def test_an_error_leaves_a_value_as_it_was():
    t = Types(maxjax)
    cell = t.new(np.float32(1))

    def f(cell):
        t.set(cell, t.get(cell) + 1)
        raise KeyError

    for call in (lambda: maxjax.jit(f)(cell), lambda: maxjax.jit(lambda: f(cell))()):
        with pytest.raises(KeyError):
            call()
    assert t.get(cell) == 1
    assert maxjax.jit(t.get)(cell) == 1


def test_a_derivative_of_its_own_is_refused():
    class Twice(maxjax.experimental.hijax.HiPrimitive):
        def to_lojax(self, x):
            return 2 * x

        def jvp(self, primals, tangents):
            return 2 * primals[0], 5 * tangents[0]

    twice = Twice("twice").bind
    assert twice(1.0) == 2
    with pytest.raises(NotImplementedError, match="twice on traced arrays, with a derivative"):
        maxjax.grad(twice)(1.0)
