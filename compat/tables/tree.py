"""jax.tree, jax.tree_util, jax.flatten_util: containers, None, key paths, registration, errors."""

from __future__ import annotations

from compat.spec import Case, array, case, cases, check, floats, ints, shaped

TABLE: dict[str, list[Case]] = {}
BOTH: dict[str, list[Case]] = {}  # by the names of jax.tree

IMPORTS = (
    "from collections import OrderedDict, defaultdict, namedtuple, deque\n"
    "P = namedtuple('P', 'x y')\n"
)
TREES = (
    "1",
    "None",
    "[1, 2]",
    "(1, (2, None), [])",
    "{'b': 2, 'a': [1, {'c': 3}]}",
    "()",
    "{}",
    "P(1, [2])",
    "OrderedDict(b=1, a=2)",
    "defaultdict(list, b=1, a=2)",
    "{3: 'a', 1: 'b'}",
    "'text'",
    "object",
    "deque([1, 2])",
    "{1, 2}",
    "[(1, 2), {'k': (3,)}, None, P(None, 4)]",
)
BIG = "t = {'b': [1, (2, None)], 'a': P(3, {'k': 4})}; "
LEAF = ", is_leaf=lambda x: isinstance(x, tuple)"
NONE = ", is_leaf=lambda x: x is None"

PAIR = """
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __repr__(self):
        return f'Pair({self.a!r}, {self.b!r})'
"""
NODE = PAIR + (
    "jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a,), p.b), "
    "lambda b, c: Pair(c[0], b))\n"
)
KEYED = PAIR + (
    "G = jax.tree_util.GetAttrKey\n"
    "jax.tree_util.register_pytree_with_keys(Pair, "
    "lambda p: (((G('a'), p.a), (G('b'), p.b)), None), lambda _, c: Pair(*c))\n"
)


def checks(*texts: str, raises: bool | str | None = False) -> list[Case]:
    return check(*(IMPORTS + text for text in texts), raises=raises)


def trees(form: str, *others: str) -> list[Case]:
    """``form`` of every tree, t in it."""
    return checks(*(f"t = {tree}; {form}" for tree in TREES), *others)


BOTH["flatten"] = trees(
    "f(t)",
    BIG + f"f(t{LEAF})",
    BIG + f"f(t{NONE})",
    NODE + "f([Pair(1, 'b'), 2])",
    NODE + "f(Pair(1, 2))[1] == f(Pair(5, 2))[1], f(Pair(1, 2))[1] == f(Pair(1, 3))[1]",
    "f({'a': 1}, is_leaf=lambda x: True)",
    "f(jnp.ones(2))",
    "f((jnp.arange(2), np.ones(1)))",
) + checks("f({'a': 1, 2: 3})", "f()", "f(1, 2)", raises=None)
BOTH["leaves"] = trees(
    "f(t)", BIG + f"f(t{LEAF})", BIG + f"f(t{NONE})", NODE + "f(Pair([1, 2], 3))", "f(jnp.ones(2))"
) + checks("f({'a': 1, 2: 3})", raises=None)
BOTH["structure"] = trees(
    "f(t)",
    BIG + f"f(t{LEAF})",
    BIG + f"f(t{NONE})",
    NODE + "f(Pair([1, 2], 3))",
    "f([1, 2]) == f([3, 4]), f([1]) == f((1,)), f([1]) != f([2])",
    "hash(f([1])) == hash(f([2]))",
    "f({'a': 1, 'b': 2}) == f({'b': 1, 'a': 2})",
    "f([1, (2,)]).num_leaves, f([1, (2,)]).num_nodes",
    "f(None) == f(None)",
    "repr(f(1)), str(f([]))",
)
BOTH["unflatten"] = trees(
    "s = jax.tree.structure(t); f(s, list(range(10, 10 + s.num_leaves)))",
    "f(jax.tree.structure([1, 2]), iter((3, 4)))",
    "f(jax.tree.structure([1]), ({'a': 2},))",
    NODE + "f(jax.tree.structure(Pair(1, 2)), [5])",
    "f(jax.tree.structure([1, 2]), (x for x in 'ab'))",
) + checks(
    "f(jax.tree.structure([1, 2]), [1])",
    "f(jax.tree.structure([1, 2]), [1, 2, 3])",
    "f(jax.tree.structure(None), [1])",
    "f([1], [2])",
    "f(jax.tree.structure(1), 3)",
    raises=True,
)
BOTH["map"] = (
    trees(
        "f(lambda x: (x,), t)",
        "f(lambda x, y: x + y, [1, (2, 3)], [4, (5, 6)])",
        "f(lambda x, y: (x, y), [1, 2], [(3, 4), {'a': 5}])",
        BIG + f"f(type, t{LEAF})",
        BIG + f"f(lambda x: x is None, t{NONE})",
        "f(lambda x, y: (x, y), (1, 2), ({}, None))",
        "f(lambda x, y: x, {'a': 1, 'b': 2}, {'b': 3, 'a': 4})",
        "f(lambda x: None, [1, 2])",
        "f(lambda *x: x, [1], [2], [3], [4])",
        NODE + "f(lambda x: x + 1, [Pair(1, 'aux'), 2])",
        KEYED + "f(lambda x: x + 1, Pair(1, 2))",
        "f(jnp.sum, {'x': jnp.ones(3)})",
        "f(lambda x, y: x, (), ())",
        "f(lambda x, y: x, None, None)",
        "f(lambda x, y: x, 1, [1, 2])",
    )
    + case("f(jnp.sin, {'a': x, 'b': [x * 2, None]})", x=floats(3))
    + case("f(lambda a, b: a * b, (x, [y]), (y, [x]))", x=floats(3), y=floats(3))
    + case("jax.vmap(lambda t: f(jnp.sum, t))({'x': x, 'y': (x,)})", x=floats(3, 2))
    + checks(
        "f(lambda x, y: x, [1, 2], [1])",
        "f(lambda x, y: x, [1, 2], (1, 2))",
        "f(lambda x, y: x, {'a': 1}, {'b': 1})",
        "f(lambda x, y: x, [1, [2]], [1, 2])",
        "f(lambda x, y: x, [1], None)",
        "f(lambda x, y: x, {'a': 1}, {'a': 1, 'b': 2})",
        "f(lambda x, y: x, P(1, 2), (1, 2))",
        "f(lambda x, y: x, None, 1)",
        "f([1])",
        "f(lambda x: x)",
        NODE + "f(lambda x, y: x, Pair(1, 2), Pair(1, 3))",
        raises=True,
    )
)
BOTH["reduce"] = (
    checks(
        "f(lambda a, b: a + b, [1, (2, 3)])",
        "f(lambda a, b: a + b, [1, 2], 10)",
        "f(lambda a, b: a + [b], {'b': 1, 'a': 2}, [])",
        "f(lambda a, b: a + b, [], 5)",
        "f(lambda a, b: a - b, 3)",
        "f(max, [None, 3, (4,)])",
        "f(lambda a, b: (a, b), [1, 2], None)",
        "f(lambda a, b: (a, b), [1, 2, 3], initializer=0)",
    )
    + case("f(lambda a, b: a + b.sum(), [x, {'a': x}], 0.)", x=floats(3))
    + checks("f(lambda a, b: a + b, [])", "f(lambda a, b: a + b, None)", raises=True)
)
BOTH["reduce_associative"] = checks(
    "f(lambda a, b: a + b, [1, (2, 3)])",
    "f(lambda a, b: a + b, [1, 2], identity=10)",
    "f(lambda a, b: a + b, ['a', 'b', 'c', 'd', 'e'])",
    "f(lambda a, b: (a, b), [1, 2, 3, 4, 5])",
    "f(lambda a, b: (a, b), [1, 2, 3], identity=0)",
    "f(lambda a, b: a + b, [], identity=5)",
    "f(lambda a, b: a - b, 3)",
) + checks("f(lambda a, b: a + b, [])", raises=None)
BOTH["all"] = checks(
    "f([True, 1])",
    "f([True, 0])",
    "f([])",
    "f(None)",
    "f({'a': [np.bool_(True)]})",
    "f([None, True])",
    "f([[], True], is_leaf=lambda x: x == [])",
    "f(jnp.array(False))",
    "f(('a', ''))",
) + checks("f([jnp.ones(2) > 0])", raises=True)
BOTH["transpose"] = checks(
    "s = jax.tree.structure; f(s([1, 2]), s({'a': 1, 'b': 2}), [{'a': 1, 'b': 2}, {'a': 3, 'b': "
    "4}])",
    "s = jax.tree.structure; f(s([1, 2]), None, [(1, 2), (3, 4)])",
    "s = jax.tree.structure; f(s((1, [2])), s(P(1, 2)), (P(1, 2), [P(3, 4)]))",
    "s = jax.tree.structure; f(s([1]), s([1, 2, 3]), [[1, 2, 3]])",
) + checks(
    "s = jax.tree.structure; f(s([1, 2]), s((1, 2)), [(1, 2), (3,)])",
    "s = jax.tree.structure; f(s([]), None, [])",
    "s = jax.tree.structure; f(s([1, 2]), s((1, 2)), [(1, 2)])",
    "s = jax.tree.structure; f(s([1, 2]), s(()), [(), ()])",
    raises=None,
)
BOTH["flatten_with_path"] = trees(
    "f(t)",
    BIG + f"f(t{LEAF})",
    BIG + f"f(t{NONE})",
    NODE + "f([Pair(1, 'b'), 2])",
    KEYED + "f([Pair(1, {'x': 2}), 2])",
    BIG + "[jax.tree_util.keystr(k) for k, _ in f(t)[0]]",
    "f({'a': [1, 2]}, is_leaf=lambda x: x == [1, 2])",
    "f([1, [2]], is_leaf=lambda p, x: len(p) == 1, is_leaf_takes_path=True)",
)
BOTH["leaves_with_path"] = trees(
    "f(t)",
    BIG + f"f(t{LEAF})",
    BIG + f"f(t{NONE})",
    KEYED + "f([Pair(1, {'x': 2}), 2])",
    "f([1, [2, 3]], is_leaf=lambda p, x: len(p) == 1, is_leaf_takes_path=True)",
)
BOTH["map_with_path"] = (
    trees(
        "f(lambda p, x: (jax.tree_util.keystr(p), x), t)",
        "f(lambda p, x, y: (p, x + y), [1, {'a': 2}], [3, {'a': 4}])",
        BIG + f"f(lambda p, x: p, t{LEAF})",
        KEYED + "f(lambda p, x: jax.tree_util.keystr(p), [Pair(1, 2)])",
        "f(lambda p, x: len(p), {'a': [1], 'b': 2}, is_leaf=lambda p, x: len(p) == 1, "
        "is_leaf_takes_path=True)",
    )
    + case("f(lambda p, v: v * len(p), {'a': x, 'b': [x]})", x=floats(3))
    + checks("f(lambda p, x, y: x, [1, 2], [1])", "f(lambda p, x, y: x, [1], (1,))", raises=True)
)
BOTH["broadcast"] = checks(
    "f(1, [2, (3, 4)])",
    "f([1, 2], [(3, 4), {'a': 5}])",
    "f({'a': 1}, {'a': [1, 2]})",
    "f(None, None)",
    "f([1, None], [[2, 3], None])",
    "f(0, {})",
    "f([1, (2,)], [[3, 4], (5,)], is_leaf=lambda x: isinstance(x, tuple))",
) + checks("f([1], [1, 2])", "f([1, 2], 3)", "f((1,), [1])", raises=None)

for name, rows in BOTH.items():
    TABLE[f"jax.tree.{name}"] = rows
    TABLE[f"jax.tree_util.tree_{name}"] = rows

u = "jax.tree_util"
TABLE["jax.tree.static"] = check("type(f).__name__", "callable(f)")
KEYS = {
    "SequenceKey": ("f(3)", "f(idx=3)"),
    "DictKey": ("f('a')", "f(key=3)"),
    "GetAttrKey": ("f('a')", "f(name='b')"),
    "FlattenedIndexKey": ("f(2)", "f(key=2)"),
}
for name, (first, second) in KEYS.items():
    field = second[2:].split("=")[0]
    TABLE[f"{u}.{name}"] = check(
        first,
        second,
        f"repr({first})",
        f"str({first})",
        f"{first}.{field}",
        f"{first} == {first}, {first} == {second}, {first} != 1",
        f"hash({first}) == hash({first})",
        f"jax.tree_util.keystr(({first}, {second}))",
        f"{{{first}: 1}}[{first}]",
        f"jax.tree.leaves({first})",
        "f.__match_args__",
    ) + check("f()", "f(1, 2)", f"x = {first}; x.{field} = 1; x", raises=None)
TABLE[f"{u}.DictKey"] += check("f('a') < f('b')", raises=None)
TABLE[f"{u}.KeyEntry"] = check("f is not None")
TABLE[f"{u}.KeyPath"] = check("f is not None")
PATH = (
    "k = jax.tree_util; p = (k.DictKey('a'), k.SequenceKey(0), k.GetAttrKey('b'), "
    "k.FlattenedIndexKey(3), k.DictKey(5)); "
)
TABLE[f"{u}.keystr"] = check(
    "f(())",
    PATH + "f(p)",
    PATH + "f(p, simple=True)",
    PATH + "f(p, simple=True, separator='/')",
    PATH + "f(p, separator='.')",
    PATH + "f(list(p))",
    PATH + "f(p[:1])",
    "f(('x', 3))",
    "f(('x', 3), simple=True, separator='-')",
    "[f(p) for p, _ in jax.tree_util.tree_leaves_with_path({'a': [1, {'b': 2}]})]",
) + check("f(3)", "f(None)", raises=None)
TABLE[f"{u}.all_leaves"] = check(
    "f([1, 2])",
    "f([1, [2]])",
    "f([])",
    "f([None])",
    "f([1, ()])",
    "f({'a': 1})",
    "f((1, 'a'))",
    "f([(1, 2)], is_leaf=lambda x: isinstance(x, tuple))",
    "f([jnp.ones(2)])",
)
TABLE[f"{u}.is_tree_node"] = checks(
    "f(list)",
    "f(type(None))",
    "f(int)",
    "f(P)",
    "f(jax.Array)",
    "f(dict)",
    "f(OrderedDict)",
    NODE + "f(Pair)",
    PAIR + "f(Pair)",
    "f([])",
    "f(1)",
)
TABLE[f"{u}.treedef_is_leaf"] = check(
    "f(jax.tree.structure(1))",
    "f(jax.tree.structure(None))",
    "f(jax.tree.structure([1]))",
    "f(jax.tree.structure(()))",
    "f(jax.tree.structure('a'))",
) + check("f(1)", raises=True)
TABLE[f"{u}.treedef_children"] = checks(
    "f(jax.tree.structure([1, (2, 3)]))",
    "f(jax.tree.structure({'b': 1, 'a': [2]}))",
    "f(jax.tree.structure(1))",
    "f(jax.tree.structure(None))",
    "f(jax.tree.structure(P(1, [2])))",
) + check("f(1)", raises=True)
TABLE[f"{u}.treedef_tuple"] = check(
    "s = jax.tree.structure; f([s(1), s([1, 2])])",
    "f([])",
    "f(())",
    "s = jax.tree.structure; f((s(None),)) == s((None,))",
    "s = jax.tree.structure; f(iter([s(1)]))",
) + check("f(1)", raises=True)
TABLE[f"{u}.PyTreeDef"] = checks(
    "isinstance(jax.tree.structure([1]), f)",
    "f.__name__",
    "jax.tree.structure([1, (2,)]).children()",
    "jax.tree.structure({'a': 1}).node_data()",
    "jax.tree.structure([1, (2, 3)]).flatten_up_to([4, ((5,), 6)])",
    "jax.tree.structure([1, 2]).unflatten([3, 4])",
    "jax.tree.structure([1, None]).num_nodes",
    "jax.tree.structure((1, 2)).compose(jax.tree.structure([1, 2]))",
    "jax.tree.structure([1, 2]).walk(lambda c, d: tuple(c), lambda x: x + 1, [3, 4])",
    "jax.tree.structure(1).node_data()",
    "jax.tree.structure(P(1, 2)).node_data()[1]",
    "import pickle; pickle.loads(pickle.dumps(jax.tree.structure([1, {'a': 2}])))",
    "jax.tree.structure([1]) == 3",
    "{jax.tree.structure([1]): 5}[jax.tree.structure([2])]",
) + checks(
    "f()",
    "jax.tree.structure([1, (2,)]).flatten_up_to([4, 5])",
    "jax.tree.structure([1, 2]).flatten_up_to([1])",
    "jax.tree.structure({'a': 1}).flatten_up_to({'b': 1})",
    "jax.tree.structure([1, 2]).unflatten([3])",
    raises=True,
)
TABLE[f"{u}.default_registry"] = check(
    "f.flatten([1, 2])",
    "f.flatten_one_level([1, [2]])",
    "f.flatten_one_level({'a': 1})",
    "f.flatten_one_level(1)",
)
TABLE[f"{u}.flatten_one_level"] = checks(
    "f([1, [2]])",
    "f({'b': 1, 'a': 2})",
    "f((1, 2))",
    "f(P(1, 2))[0]",
    "f(None)",
    NODE + "f(Pair(1, 2))",
) + check("f(1)", "f('a')", raises=True)
TABLE[f"{u}.flatten_one_level_with_keys"] = checks(
    "f([1, [2]])",
    "f({'b': 1, 'a': 2})",
    "f((1, 2))",
    KEYED + "f(Pair(1, 2))",
    NODE + "f(Pair(1, 2))",
) + check("f(1)", "f('a')", raises=True)

# --- registration ---------------------------------------------------------------------------------

USED = (
    "t = [Pair(1, (2, 3))]; jax.tree.leaves(t)",
    "t = [Pair(1, (2, 3))]; jax.tree.structure(t)",
    "jax.tree.map(lambda x: x, Pair(1, 2))",
    "jax.tree_util.tree_leaves_with_path([Pair(1, (2, 3))])",
    "jax.jit(lambda p: p.a * 2)(Pair(jnp.arange(3), 4))",
    "jax.grad(lambda p: p.a ** 2)(Pair(3., 4)).a",
    "jax.tree.leaves(jax.tree.map(lambda x: None, Pair(1, 2)))",
)
METHODS = """
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __repr__(self):
        return f'Pair({self.a!r}, {self.b!r})'
    def tree_flatten(self):
        return (self.a,), self.b
    def tree_flatten_with_keys(self):
        return ((jax.tree_util.GetAttrKey('a'), self.a),), self.b
    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children, aux)
"""
TABLE[f"{u}.register_pytree_node"] = checks(
    *(NODE + text for text in USED),
    PAIR + "f(Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c), "
    "lambda p: ((('a'), p.a), (('b'), p.b)))",
    PAIR + "f(Pair, lambda p: ([p.a, p.b], None), lambda _, c: Pair(*c))\n"
    "jax.tree.map(lambda x: x + 1, Pair(1, 2))",
    PAIR + "f(Pair, lambda p: ((p.a, None), 'aux'), lambda a, c: (a, c))\n"
    "jax.tree.map(lambda x: x + 1, Pair(1, 2))",
) + checks(
    NODE + "f(Pair, lambda p: ((), None), lambda a, c: 1)",
    "f(list, lambda p: ((), None), lambda a, c: 1)",
    PAIR + "f(Pair, lambda p: 3, lambda a, c: 1)\njax.tree.leaves(Pair(1, 2))",
    PAIR + "f(Pair, lambda p: (p.a,), lambda a, c: 1)\njax.tree.leaves(Pair(1, 2))",
    raises=True,
)
TABLE[f"{u}.register_pytree_node_class"] = checks(
    *(METHODS + "f(Pair)\n" + text for text in USED), METHODS + "f(Pair) is Pair"
) + checks(METHODS + "f(f(Pair))", PAIR + "f(Pair)\njax.tree.leaves(Pair(1, 2))", raises=True)
TABLE[f"{u}.register_pytree_with_keys"] = checks(
    *(KEYED + text for text in USED if "grad" not in text),
    PAIR + "f(Pair, lambda p: ((('a', p.a), ('b', p.b)), None), lambda _, c: Pair(*c), "
    "lambda p: ((p.a, p.b), None))\njax.tree_util.tree_flatten_with_path(Pair(1, 2))",
) + checks(KEYED + "f(Pair, lambda p: ((), None), lambda a, c: 1)", raises=True)
TABLE[f"{u}.register_pytree_with_keys_class"] = checks(
    *(METHODS + "f(Pair)\n" + text for text in USED), METHODS + "f(Pair) is Pair"
) + checks(METHODS + "f(f(Pair))", raises=True)
DATA = """
import dataclasses
@dataclasses.dataclass
class Pair:
    a: object
    b: object
"""
TABLE[f"{u}.register_dataclass"] = checks(
    *(
        DATA + "f(Pair, data_fields=['a'], meta_fields=['b'])\n" + text.replace("(2, 3)", "'m'")
        for text in USED
    ),
    *(DATA + "f(Pair, ['a', 'b'], [])\n" + text for text in USED[:4]),
    DATA + "f(Pair)\njax.tree.leaves(Pair(1, 2))",
    DATA + "f(Pair, ['a'], ['b']) is Pair",
    DATA.replace("b: object", "b: object = dataclasses.field(metadata=dict(static=True))")
    + "f(Pair)\njax.tree.structure(Pair(1, 2))",
    DATA.replace("b: object", "b: object = dataclasses.field(default=3)")
    + "f(Pair, ['a'], [], drop_fields=['b'])\njax.tree.map(lambda x: x * 2, Pair(1, 2)).b",
) + checks(
    DATA + "f(Pair, ['a'], [])",
    DATA + "f(Pair, ['a', 'c'], ['b'])",
    DATA + "f(Pair, ['a'])",
    DATA + "f(Pair, ['a', 'b'], ['b'])",
    PAIR + "f(Pair)",
    raises=None,
)
TABLE[f"{u}.register_static"] = checks(
    PAIR + "f(Pair) is Pair",
    PAIR + "f(Pair)\njax.tree.leaves([Pair(1, 2), 3])",
    PAIR + "f(Pair)\njax.tree.structure([Pair(1, 2), 3])",
    PAIR + "f(Pair)\njax.tree.map(lambda x: x + 1, [Pair(1, 2), 3])",
    PAIR + "f(Pair)\njax.jit(lambda p, x: p.a * x)(Pair(3, 4), 5)",
) + checks(PAIR + "f(f(Pair))", raises=True)
TABLE[f"{u}.Partial"] = (
    checks(
        "f(lambda x, y: x - y, 1)(2)",
        "f(max, key=lambda x: -x)([1, 2, 3])",
        "jax.tree.leaves(f(jnp.sin, 1, y=2))",
        "f(f(lambda *a: a, 1), 2)(3)",
        "p = f(pow, 2); p.func is pow, p.args, p.keywords",
        "jax.tree.map(lambda x: x * 2, f(pow, 3))(2)",
        "jax.tree_util.tree_leaves_with_path(f(pow, 2, a=3))",
        "isinstance(f(pow), __import__('functools').partial)",
        "jax.jit(lambda g, x: g(x))(f(lambda a, x: a * x, 2.), 3.)",
    )
    + case("jax.jit(lambda g: g(2.))(f(lambda a, x: a * x, x))", x=floats(3))
    + checks("f()", "f(3)", raises=True)
)

TABLE["jax.flatten_util.ravel_pytree"] = (
    cases(
        "f({'a': x, 'b': (y, x[0])})[0]",
        "v, back = f({'a': x, 'b': [y]}); back(v * 2)",
        "f(x)[0]",
        "v, back = f((x, y)); jax.grad(lambda v: back(v)[0].sum())(v)",
        x=floats(2, 3),
        y=floats(4),
    )
    + cases(
        "f((x, y))[0]",
        "v, back = f((x, y)); back(v)",
        x=floats(2),
        y=ints(3),
        grad=False,
        vmap=False,
    )
    + case("v, back = f([x, y]); back(v)", x=floats(2), y=array([1, 2], "float16"))
    + case(
        "v, back = f([x]); back(v)",
        x=shaped(2, 2),
        dtypes="float32 bfloat16 int8 complex64 bool",
        modes="eager jit",
    )
    + checks(
        "f([])[0]",
        "f(None)[1](jnp.zeros(0))",
        "f(3)[0]",
        "f([1, 2.5])[0]",
        "f({'a': 1.})[1](jnp.ones(1))",
        "f((1, 2))[1](np.array([3, 4], 'int32'))",
        "f([np.ones(2)])[0]",
    )
    + checks(
        "f(jnp.ones(2))[1](jnp.ones(3))",
        "f(jnp.ones(2))[1](jnp.ones(2, int))",
        "f([jnp.ones(2), jnp.arange(2)])[1](jnp.arange(4))",
        "f(['a'])",
        raises=None,
    )
)
