"""Calls that are found again without flattening pytrees: results and traces as in JAX, whatever
changes between two calls."""

from __future__ import annotations

import collections
import inspect
import itertools
import random
import types

import jax
import numpy as np
import pytest

import maxjax
from maxjax import tree_util
from maxjax._base import float_errors, pytree
from maxjax._higher_order import repeats
from maxjax._higher_order.repeats import MAX_STRUCTURES, Repeats, reader
from maxjax._higher_order.static_arguments import Selection, split
from tests.support.against_jax import assert_same_error

X = np.arange(3, dtype=np.float32)
Pair = collections.namedtuple("Pair", "a b")


class Ordered(dict):
    """A dictionary that is no pytree node."""


class Tuple(tuple):
    """As ``Ordered``."""


class Same:
    """Equal to all of its class, as a static argument."""

    def __eq__(self, other):
        return isinstance(other, Same)

    def __hash__(self):
        return 1


class Unequal:
    """Cannot be compared."""

    def __eq__(self, other):
        raise RuntimeError("no")

    def __hash__(self):
        return 2


def together(tree, y=0):
    return tree["a"] + tree["b"] + y


def calls(j):
    """Arguments and keyword arguments, of which each kind comes several times."""
    x, y = j.numpy.asarray(X), j.numpy.asarray(X + 1)
    z = j.numpy.asarray(X[:2])
    return [
        ((x,), {}), ((x, y), {}), ((), {"a": x}), ((x,), {"a": y}), ((x,), {"b": y}), ((X,), {}),
        ((2,), {}), ((2.0,), {}), ((True,), {}), ((np.float32(2),), {}), ((z,), {}),
        (({"a": x, "b": y},), {}), (({"b": x, "a": y},), {}), (({"a": x},), {}),
        (({"a": x, "c": y},), {}), (({"a": x, "b": (y, None)},), {}),
        (({"a": x, "b": (y, x)},), {}), (({"a": x, "b": [y, x]},), {}),
        (({1: x, 2: y},), {}), (({True: x, 2: y},), {}), (([],), {}), (((),), {}), (({},), {}),
        ((None,), {}), (([x, [y, [z]]],), {}), (([x, [y, z]],), {}), ((Pair(x, y),), {}),
        ((collections.OrderedDict(a=x, b=y),), {}),
        ((collections.defaultdict(list, a=x, b=y),), {}), (({"a": 1, "b": 2.0},), {}),
        (({"a": x}, {"a": y}), {"c": {"d": [z]}})]


@pytest.mark.parametrize("seed", range(3))
def test_mixed_calls(seed):
    """Of one function, in any order."""
    order = list(range(len(calls(jax)))) * 14
    random.Random(seed).shuffle(order)
    found = []
    for j in (maxjax, jax):
        runs = []

        def function(*args, runs=runs, j=j, **kwargs):
            runs.append(1)
            return j.tree.map(lambda v: v * 2, (args, kwargs))
        jitted, given = j.jit(function), calls(j)
        answers = []
        for number in order:
            args, kwargs = given[number]
            answers.append((str(jitted(*args, **kwargs)), len(runs)))
        found.append(answers)
    for number, mine, theirs in zip(order, *found, strict=True):
        assert mine == theirs, calls(maxjax)[number]


STATICS = (3, 3.0, True, 1, "a", b"a", None, (1, 2), (1.0, 2.0), Same(), Same(), len, -0.0, 0.0)


def test_static_arguments():
    """By value and class, by position and by name."""
    order = [*range(len(STATICS))] * 14
    random.Random(1).shuffle(order)
    found = []
    for j in (maxjax, jax):
        seen = []

        def function(x, how, *, name="n", seen=seen):
            seen.append((repr(type(how)), name))
            return x["a"] + len(seen)
        jitted = j.jit(function, static_argnames=("how", "name"))
        answers = []
        for number in order:
            x = {"a": j.numpy.asarray(X)}
            how = STATICS[number]
            answers += [jitted(x, how), jitted(x, how=how), jitted(x, how, name=number % 3),
                        jitted(how=how, x=x)]
        found.append((list(map(str, answers)), seen))
    assert found[0] == found[1]


def test_static_objects_that_change():
    """What is equal to itself may have another hash."""
    class Holder:
        def __init__(self):
            self.factor = 0

        def __hash__(self):
            return hash(self.factor)

        def __eq__(self, other):
            return self.factor == other.factor

    found = []
    for j in (maxjax, jax):
        jitted = j.jit(lambda how, x: x["a"] * how.factor, static_argnums=0)
        holder, x = Holder(), {"a": j.numpy.asarray(X)}
        answers = []
        for number in range(100):
            holder.factor = number // 25
            answers.append(jitted(holder, x).tolist())
        found.append(answers)
    assert found[0] == found[1]


def test_what_cannot_be_compared():
    def fails(j):
        jitted = j.jit(lambda x, how: x["a"] * 2, static_argnums=1)
        x = {"a": j.numpy.asarray(X)}
        for _ in range(12):
            jitted(x, 1)
        for _ in range(3):
            jitted(x, Unequal())
    assert_same_error(fails)


@pytest.mark.parametrize("wrong", [
    lambda j, x: (({"a": x, "b": "text"},), {}), lambda j, x: (({"a": x, "b": object()},), {}),
    lambda j, x: (({"a": x, "b": 1 << 80},), {}), lambda j, x: ((Ordered(a=x, b=x),), {}),
    lambda j, x: ((Tuple((x, x)),), {}), lambda j, x: (({"a": x, 1: x},), {}),
    lambda j, x: ((), {}), lambda j, x: ((x, x, x), {}), lambda j, x: ((x,), {"no": x})])
def test_wrong_arguments_afterwards(wrong):
    def fails(j):
        jitted, x = j.jit(together), j.numpy.asarray(X)
        for _ in range(12):
            jitted({"a": x, "b": x})
        args, kwargs = wrong(j, x)
        return jitted(*args, **kwargs)
    assert_same_error(fails)


def test_tracers_and_options_in_between():
    for j in (maxjax, jax):
        runs = []

        def function(tree, runs=runs):
            runs.append(1)
            return tree["a"] * 2
        jitted = j.jit(function)
        x = {"a": j.numpy.asarray(X)}
        for _ in range(12):
            assert jitted(x).tolist() == [0, 2, 4]
            assert j.vmap(jitted)(x).tolist() == [0, 2, 4]
            assert j.grad(lambda v, jitted=jitted: jitted({"a": v}).sum())(X).tolist() == [2] * 3
            assert j.jit(lambda v, jitted=jitted: jitted(v) + 1)(x).tolist() == [1, 3, 5]
            with j.disable_jit():
                assert jitted(x).tolist() == [0, 2, 4]
            with j.numpy_rank_promotion("warn"):
                assert jitted(x).tolist() == [0, 2, 4]
        jitted.clear_cache()
        before = len(runs)
        jitted(x)
        assert len(runs) == before + 1


def test_deleted_and_donated_trees():
    def fails(j):
        jitted = j.jit(lambda tree: {"a": tree["a"] + 1}, donate_argnums=0)
        x = {"a": j.numpy.asarray(X) + 0}
        for _ in range(12):
            x, before = jitted(x), x
        assert before["a"].is_deleted() and x["a"].tolist() == [12, 13, 14]
        jitted(before)
    assert_same_error(fails)


def test_many_structures():
    """More than are kept: each is right nevertheless."""
    jitted = maxjax.jit(lambda tree: sum(tree.values()))
    for _, count in itertools.product(range(12), range(1, 3 * MAX_STRUCTURES)):
        tree = {f"k{n}": maxjax.numpy.float32(n) for n in range(count)}
        assert jitted(tree) == count * (count - 1) / 2


def test_calls_that_never_come_again_are_forgotten(monkeypatch):
    monkeypatch.setattr(repeats, "MAX_REPEATS", 4)
    known = Repeats(by_place=False)
    for entry in range(40):
        known.keep(({"a": X},), {}, [X], tree_util.tree_structure((({"a": X},), {})), None, entry)
        assert known.find(({"a": X},), {}) is None
        assert len(known._counts) <= 4


def test_compiled_ahead_with_trees():
    def fails(j):
        x = {"a": j.numpy.asarray(X), "b": [j.numpy.asarray(X), 2]}
        compiled = j.jit(lambda tree, y: (tree["a"] * y, tree["b"][1])).lower(x, y=3.0).compile()
        for _ in range(12):
            assert str(compiled(x, y=3.0)) == str(compiled({"b": x["b"], "a": x["a"]}, y=3.0))
        compiled({"a": x["a"], "b": tuple(x["b"])}, y=3.0)
    assert_same_error(fails, whole=True)


# --- readers --------------------------------------------------------------------------------------

def tree_of(rng, depth):
    kind = rng.choice(("leaf", "leaf", "none", "tuple", "list", "dict") if depth else ("leaf",))
    if kind == "leaf":
        return object()
    if kind == "none":
        return None
    children = [tree_of(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == "tuple" and len(children) == 2 and rng.random() < 0.5:
        return Pair(*children)
    if kind == "dict":
        return dict(zip(rng.sample("abcdefgh", len(children)), children, strict=True))
    return tuple(children) if kind == "tuple" else children


@pytest.mark.parametrize("seed", range(200))
def test_readers_of_random_trees(seed):
    """A reader gives the leaves in order, and nothing where the structure is another."""
    rng = random.Random(seed)
    made = []
    for _ in range(6):
        args = tuple([tree_of(rng, 3) for _ in range(rng.randrange(3))])
        kwargs = {name: tree_of(rng, 2) for name in rng.sample("xyz", rng.randrange(3))}
        chosen = Selection(tuple(rng.sample(range(3), rng.randrange(2))),
                           frozenset(rng.sample("xyz", rng.randrange(2))))
        if any(isinstance(value, (list, dict)) for value in (
                *[args[n] for n in chosen.positions if n < len(args)],
                *[kwargs[name] for name in chosen.names if name in kwargs])):
            continue
        try:
            made.append((args, kwargs, chosen, split(chosen, args, kwargs)))
        except ValueError:      # what is static holds a list
            continue
    for args, kwargs, chosen, (leaves, tree, static) in made:
        read = reader(tree, static)
        assert read is not None
        found = read(args, kwargs)
        assert found is not None and list(found[0]) == leaves
        for other_args, other_kwargs, other, (other_leaves, other_tree, other_static) in made:
            if other != chosen:
                continue
            try:
                found = read(other_args, other_kwargs)
            except (ValueError, KeyError):
                found = None
            if found is not None and not all(type(x) is object for x in found[0]):
                found = None      # a node in the place of a leaf: it has no type of an array
            places = [[place for place, *_ in x.values] for x in (static, other_static)]
            alike = (tree == other_tree and places[0] == places[1]
                     and static.num_positional == other_static.num_positional)
            assert (found is not None) == alike
            if found is not None:
                assert list(found[0]) == other_leaves


class Turned(Pair):
    """A named tuple that gives its elements in another order."""

    def __iter__(self):
        return reversed(list(super().__iter__()))


@pytest.mark.parametrize("tree", [
    Turned(1, 2), collections.OrderedDict(a=1), collections.defaultdict(list, a=1),
    collections.deque([1])])
def test_nodes_without_readers(tree):
    """They are flattened as ever."""
    assert reader(pytree.flatten((({"a": tree},), {}))[1], None) is None


# --- NumPy's floating-point errors ----------------------------------------------------------------

def test_errors_are_ignored_and_restored():
    with np.errstate(divide="raise", over="warn", invalid="print", under="ignore"):
        before = np.geterr()
        saved = float_errors.state()
        try:
            float_errors.ignore()
            assert set(np.geterr().values()) == {"ignore"}
            assert np.divide(np.float32(1), np.zeros(1, np.float32))[0] == np.inf
        finally:
            float_errors.restore(saved)
        assert np.geterr() == before
        maxjax.jit(lambda x: 1 / x)(np.zeros(3, np.float32)).block_until_ready()
        assert np.geterr() == before


def test_errors_where_numpy_keeps_no_variable():
    """A NumPy that keeps the setting elsewhere is asked by its own functions."""
    assert float_errors._known is not None
    other = types.ModuleType("other_float_errors")
    source = inspect.getsource(float_errors)
    exec(source.replace("_known = _found()", "_known = None"), other.__dict__)
    assert other._known is None
    before = other.state()
    other.ignore()
    assert set(np.geterr().values()) == {"ignore"}
    other.restore(before)
    assert np.geterr() == before
