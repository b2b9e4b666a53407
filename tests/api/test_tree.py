"""Pytrees: JAX's results and messages."""

import collections
import dataclasses
import pickle
import subprocess
import sys

import jax
import pytest

import maxjax
import maxjax._base.pytree
import maxjax.tree
import maxjax.tree_util


class World:
    """One library with one set of the same classes registered with it."""

    def __init__(self, library):
        self.tree, self.tu = library.tree, library.tree_util
        tu = self.tu

        @tu.register_pytree_node_class
        class Node:
            def __init__(self, a, b):
                self.a, self.b = a, b

            def tree_flatten(self):
                return (self.a,), self.b

            @classmethod
            def tree_unflatten(cls, aux, children):
                return cls(*children, aux)

            def __repr__(self):
                return f"Node({self.a}, {self.b})"

        @tu.register_pytree_with_keys_class
        class Keyed:
            def __init__(self, a, b):
                self.a, self.b = a, b

            def tree_flatten_with_keys(self):
                return ((tu.GetAttrKey("a"), self.a), (tu.GetAttrKey("b"), self.b)), None

            @classmethod
            def tree_unflatten(cls, aux, children):
                return cls(*children)

            def __repr__(self):
                return f"Keyed({self.a}, {self.b})"

        @tu.register_dataclass
        @dataclasses.dataclass
        class Data:
            x: int
            y: int
            z: str = dataclasses.field(default="q", metadata={"static": True})

        @tu.register_static
        @dataclasses.dataclass(frozen=True)
        class Static:
            q: int

        self.Node, self.Keyed, self.Data, self.Static = Node, Keyed, Data, Static
        self.Pair = collections.namedtuple("Pair", "x y")
        for cls in (Node, Keyed, Data, Static, self.Pair):
            cls.__module__ = cls.__qualname__ = cls.__name__


THEIRS, OURS = World(jax), World(maxjax)

TREES = {
    "leaf": lambda w: 1, "None": lambda w: None, "empty tuple": lambda w: (), "empty": lambda w: [],
    "empty dict": lambda w: {}, "singleton": lambda w: (1,), "nested": lambda w: [1, [2, (3,)]],
    "dict": lambda w: {"b": 1, "a": (2, None)}, "namedtuple": lambda w: w.Pair(1, [2]),
    "ordered": lambda w: collections.OrderedDict([("b", 1), ("a", 2)]),
    "defaultdict": lambda w: collections.defaultdict(list, {"b": 1, "a": 2}),
    "ints": lambda w: {10: 1, 2: {"z": 1, "c": [2]}},
    "partial": lambda w: w.tu.Partial(max, 1, k=2),
    "node": lambda w: w.Node([1], 2), "keyed": lambda w: {"k": w.Keyed([1], 2)},
    "dataclass": lambda w: w.Data([1], 2), "static": lambda w: [w.Static(1), 2],
}
FUNCTIONS = {
    "structure": lambda w, x: w.tu.tree_structure(x),
    "flatten": lambda w, x: w.tree.flatten(x),
    "paths": lambda w, x: w.tree.flatten_with_path(x),
    "keystr": lambda w, x: w.tree.map_with_path(lambda p, v: (w.tu.keystr(p), v), x),
    "simple": lambda w, x: [w.tu.keystr(p, simple=True, separator="/")
                            for p, _ in w.tree.leaves_with_path(x)],
    "map": lambda w, x: w.tree.map(lambda v: v + 1, x),
    "leaves": lambda w, x: w.tree.leaves(x, is_leaf=lambda v: v is None),
    "children": lambda w, x: w.tu.treedef_children(w.tu.tree_structure(x)),
    "node data": lambda w, x: w.tu.tree_structure(x).node_data(),
    "counts": lambda w, x: (w.tree.structure(x).num_leaves, w.tree.structure(x).num_nodes),
    "compose": lambda w, x: w.tree.structure(x).compose(w.tree.structure([0, None])),
    "round trip": lambda w, x: w.tree.unflatten(w.tree.structure(x), w.tree.leaves(x)),
    "is leaf": lambda w, x: w.tu.treedef_is_leaf(w.tree.structure(x)),
    "equal": lambda w, x: (w.tree.structure(x) == w.tree.structure(x),
                           hash(w.tree.structure(x)) == hash(w.tree.structure(x))),
}


def outcome(function, world, *args):
    try:
        return repr(function(world, *args)).replace("maxjax.", "jax.")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_function_of_tree(tree, function):
    results = [outcome(FUNCTIONS[function], w, TREES[tree](w)) for w in (OURS, THEIRS)]
    assert results[0] == results[1]


CALLS = {
    "other keys": lambda w: w.tree.map(max, {"a": 1}, {"b": 1}),
    "more keys": lambda w: w.tree.map(max, {"a": 1, "b": 2}, {"a": 1}),
    "lengths": lambda w: w.tree.map(max, [1, 2], [1]),
    "lengths inside": lambda w: w.tree.map(max, {"a": [1, 2], "b": 2}, {"a": [1], "b": 1}),
    "types": lambda w: w.tree.map(max, [1, 2], (1, 2)),
    "leaf": lambda w: w.tree.map(max, [1, 2], 3),
    "None": lambda w: w.tree.map(max, [1, None], [3, 4]),
    "namedtuple": lambda w: w.tree.map(max, w.Pair(1, 2), (1, 2)),
    "metadata": lambda w: w.tree.map(max, w.Node(1, 2), w.Node(1, 3)),
    "prefix": lambda w: w.tree.map(lambda x, y: (x, y), [1, 2], [3, [4]]),
    "None as leaf": lambda w: w.tree.map(
        lambda x, y: (x, y), [1, None], [3, None], is_leaf=lambda x: x is None),
    "reduce": lambda w: w.tree.reduce(lambda a, b: a + b, [1, [2, 3]]),
    "reduce from": lambda w: w.tree.reduce(lambda a, b: a + b, [1, [2, 3]], 10),
    "reduce nothing": lambda w: w.tree.reduce(lambda a, b: a + b, []),
    "associative": lambda w: w.tree.reduce_associative(lambda a, b: (a, b), [1, 2, 3, 4, 5]),
    "associative nothing": lambda w: w.tree.reduce_associative(lambda a, b: (a, b), []),
    "transpose": lambda w: w.tree.transpose(
        w.tree.structure([0, 0]), w.tree.structure({"a": 0, "b": 0}),
        [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    "transpose found": lambda w: w.tree.transpose(
        w.tree.structure([0, 0]), None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    "transpose mismatch": lambda w: w.tree.transpose(
        w.tree.structure([0, 0]), w.tree.structure({"a": 0}),
        [{"a": 1, "b": 2}, {"a": 3, "b": 4}]),
    "all": lambda w: w.tree.all([True, [False]]),
    "broadcast": lambda w: w.tree.broadcast({"a": 1, "b": 2}, {"a": [1, 2], "b": 3}),
    "broadcast mismatch": lambda w: w.tree.broadcast([1], [1, 2]),
    "too few": lambda w: w.tree.unflatten(w.tree.structure([1, 2]), [1]),
    "too many": lambda w: w.tree.unflatten(w.tree.structure([1, 2]), [1, 2, 3]),
    "all leaves": lambda w: (w.tu.all_leaves([1, 2]), w.tu.all_leaves([1, [2]]),
                             w.tu.all_leaves([None])),
    "tuple of": lambda w: w.tu.treedef_tuple([w.tree.structure([1]), w.tree.structure(1)]),
    "keys": lambda w: [w.tu.DictKey("a"), w.tu.SequenceKey(0), w.tu.GetAttrKey("x"),
                       w.tu.FlattenedIndexKey(2)],
    "path stops": lambda w: w.tree.flatten_with_path(
        {"b": 1, "a": [{"z": 1, "c": (2, None)}]}, is_leaf=lambda p, x: len(p) == 2,
        is_leaf_takes_path=True),
    "twice": lambda w: w.tu.register_pytree_node(
        w.Node, lambda x: ((), None), lambda aux, children: None),
    "one level": lambda w: w.tu.default_registry.flatten_one_level([1, 2]),
    "pickle": lambda w: pickle.loads(pickle.dumps(w.tree.structure({"a": 1}))),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_it_gives_in_jax(name):
    assert outcome(CALLS[name], OURS) == outcome(CALLS[name], THEIRS)


def test_nested_partials_keep_their_arguments_apart():
    inner = maxjax.tree_util.Partial(max, 1)
    outer = maxjax.tree_util.Partial(inner, 2)
    assert outer() == 2 and maxjax.tree_util.tree_leaves(outer) == [2]


@pytest.mark.parametrize("kind", [list, tuple])
def test_flat_sequences_are_as_nested_ones(kind):
    """Trees known to be flat do not go through optree; the treedefs are equal."""
    flat = kind([1, 2.0, "a", maxjax.numpy.ones(2), maxjax.numpy.float32(1)])
    leaves, treedef = maxjax.tree.flatten(flat)
    assert type(leaves) is list and all(a is b for a, b in zip(leaves, flat, strict=True))
    subclass = type("Sub", (float,), {})
    other = maxjax.tree.structure(kind([subclass()] * 5))    # a type that optree handles
    assert treedef == other == maxjax.tree.structure(flat) and hash(treedef) == hash(other)
    assert maxjax.tree.leaves(flat) == leaves and repr(treedef) == repr(other)
    assert type(treedef.unflatten(leaves)) is kind


def test_a_leafs_type_may_become_a_nodes():
    class Pair(complex):
        pass

    maxjax._base.pytree.leaf_type(Pair)
    assert len(maxjax.tree.leaves([Pair(1, 2)] * 3)) == 3
    maxjax.tree_util.register_pytree_node(
        Pair, lambda pair: ((pair.real, pair.imag), None), lambda _, parts: Pair(*parts))
    assert maxjax.tree.leaves([Pair(1, 2)] * 2) == [1.0, 2.0, 1.0, 2.0]


def test_containers_are_known_after_exit_functions_ran(tmp_path):
    script = tmp_path / "early.py"
    script.write_text("""
import atexit
import maxjax
ran = []
atexit.register(ran.append, 1)
atexit._run_exitfuncs()
print(ran, maxjax.tree.leaves((1, [{"a": 2}])))
""")
    result = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert (result.stdout, result.stderr, result.returncode) == ("[1] [1, 2]\n", "", 0)
