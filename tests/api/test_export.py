"""jax.export: round trips, also to another process; damage is detected; JAX's errors."""

from __future__ import annotations

import collections
import hashlib
import json
import random
import struct
import subprocess
import sys

import jax
import jax.export as jax_export
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import export
from maxjax._base.errors import InternalError
from maxjax._higher_order.export_format import _HEADER, MAGIC, VERSION
from maxjax._ir.check import check_operands
from maxjax._ir.jaxpr import Jaxpr, JaxprEqn, Var
from maxjax._ir.types import ShapedArray
from tests.support import harness
from tests.support.against_jax import (
    assert_same_error,
    errors_of,
    first_line,
)

X = np.sin(np.arange(12, dtype=np.float32)).reshape(4, 3)
W = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
State = collections.namedtuple("State", "step weights")
Plain = collections.namedtuple("Plain", "x")


class Pair:
    def __init__(self, x, y, label):
        self.x, self.y, self.label = x, y, label


for library in (maxjax, jax):
    library.tree_util.register_pytree_node(
        Pair, lambda pair: ((pair.x, pair.y), pair.label),
        lambda label, children: Pair(*children, label))
for module in (export, jax_export):
    module.register_namedtuple_serialization(State, serialized_name="test.State")
    module.register_pytree_node_serialization(
        Pair, serialized_name="test.Pair", serialize_auxdata=str.encode,
        deserialize_auxdata=lambda content: bytes(content).decode())


def loops(j, x):
    def step(carry, row):
        carry = j.lax.cond(row.sum() > 0, lambda c: c + row, lambda c: c * 0.5, carry)
        return carry, carry.max()

    carry, trace = j.lax.scan(step, j.numpy.zeros(3), x)
    return j.lax.fori_loop(0, 3, lambda i, c: c * 1.5 + i, carry), trace


def with_rule(j, x):
    @j.custom_vjp
    def clipped(x):
        return 10 * x

    clipped.defvjp(lambda x: (clipped(x), None), lambda _, cotangent: (cotangent.clip(-1, 1),))
    return clipped(j.numpy.sin(x))


FUNCTIONS = {
    "layer": lambda j, x: j.nn.gelu(x @ W + 1),
    "loops": loops,
    "with_rule": with_rule,
    "remat": lambda j, x: j.checkpoint(lambda x: j.numpy.sin(j.numpy.sin(x)))(x),
    "trees": lambda j, x: {"b": [x, None], "a": State(x.sum(), (x, 2)),
                           "c": Pair(x[0], x[1:], "name")},
    "sorted": lambda j, x: j.numpy.sort(x, 0)[::-1],
    "integers": lambda j, x: (x.astype(int), x > 0, x),
    "special": lambda j, x: j.scipy.special.gammaln(x + 3),
    "constant": lambda j, x: x + j.random.normal(j.random.key(3), x.shape),
}


def total(j, call):
    def loss(x):
        return sum(j.numpy.sum(j.numpy.sin(leaf)) for leaf in j.tree.leaves(call(x))
                   if getattr(leaf, "dtype", None) == np.float32)
    return loss


def saved(name, j=maxjax, module=export, order=1):
    function = FUNCTIONS[name]
    return module.export(j.jit(lambda x: function(j, x)))(X).serialize(vjp_order=order)


def same(actual, expected, rtol=1e-5):
    assert (jax.tree.structure(actual) == jax.tree.structure(expected))
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        a, e = np.asarray(a), np.asarray(e)
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        np.testing.assert_allclose(a, e, rtol=rtol, atol=1e-5)


# --- there and back -------------------------------------------------------------------------------

@pytest.mark.parametrize("name", FUNCTIONS)
def test_round_trip(name):
    function = FUNCTIONS[name]
    loaded = export.deserialize(saved(name))
    expected = jax.jit(lambda x: function(jax, x))(X)
    result = loaded.call(X)
    same(maxjax.tree.map(np.asarray, result), jax.tree.map(np.asarray, expected))
    same(np.asarray(maxjax.jit(total(maxjax, loaded.call))(X)),
         np.asarray(total(jax, lambda x: function(jax, x))(X)))
    same(np.asarray(maxjax.grad(total(maxjax, loaded.call))(X)),
         np.asarray(jax.grad(total(jax, lambda x: function(jax, x)))(X)))


def test_another_process(tmp_path):
    names = [name for name in FUNCTIONS if name != "trees"]
    for name in names:
        (tmp_path / name).write_bytes(saved(name))
    np.save(tmp_path / "x.npy", X)
    code = f"""
import numpy as np
from maxjax import export, grad, tree
x = np.load("x.npy")
for name in {names}:
    loaded = export.deserialize(open(name, "rb").read())
    leaves = tree.leaves(loaded.call(x))
    slope = grad(lambda x: sum(leaf.sum() for leaf in tree.leaves(loaded.call(x))
                               if leaf.dtype == np.float32))(x)
    np.savez(name + ".npz", *map(np.asarray, leaves), np.asarray(slope))
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    for name in names:
        loaded = export.deserialize(saved(name))
        slope = maxjax.grad(lambda x, call=loaded.call: sum(
            leaf.sum() for leaf in maxjax.tree.leaves(call(x)) if leaf.dtype == np.float32))(X)
        found = np.load(tmp_path / f"{name}.npz")
        expected = [*map(np.asarray, maxjax.tree.leaves(loaded.call(X))), np.asarray(slope)]
        for a, e in zip(found.values(), expected, strict=True):
            np.testing.assert_array_equal(a, e)


def test_under_the_name_of_jax(tmp_path):
    code = ("from jax import export\nimport jax.numpy as jnp, jax\n"
            "e = export.export(jax.jit(jnp.sin))(1.)\n"
            "print(jax.export.deserialize(e.serialize()).call(0.))")
    done = subprocess.run([sys.executable, "-m", "maxjax", "-c", code], capture_output=True,
                          text=True, check=True)
    assert done.stdout == "0.0\n"


def test_random_keys():
    def draw(j, key):
        return j.random.split(key), j.random.uniform(key, (2,))

    exported = export.export(maxjax.jit(lambda key: draw(maxjax, key)))(maxjax.random.key(0))
    assert str(exported.in_avals) == "(ShapedArray(key<fry>[]),)"
    keys, numbers = export.deserialize(exported.serialize()).call(maxjax.random.key(7))
    expected_keys, expected = draw(jax, jax.random.key(7))
    np.testing.assert_array_equal(maxjax.random.key_data(keys), jax.random.key_data(expected_keys))
    np.testing.assert_array_equal(numbers, expected)

    constant = maxjax.random.split(maxjax.random.key(1))
    exported = export.export(maxjax.jit(lambda n: maxjax.random.bits(constant[n])))(0)
    assert int(export.deserialize(exported.serialize()).call(1)) == int(
        maxjax.random.bits(constant[1]))


def test_second_derivative():
    loaded = export.deserialize(
        export.export(maxjax.jit(lambda x: jnp.sin(x) * x))(1.).serialize(vjp_order=2))
    same(np.asarray(maxjax.grad(maxjax.grad(loaded.call))(0.5)),
         np.asarray(jax.grad(jax.grad(lambda x: jax.numpy.sin(x) * x))(0.5)))
    assert [loaded.has_vjp(), loaded.vjp().has_vjp(), loaded.vjp().vjp().has_vjp()] == [
        True, True, False]
    with pytest.raises(ValueError, match="high-enough order"):
        loaded.serialize(vjp_order=3)
    with pytest.raises(ValueError, match="No VJP is available"):
        maxjax.grad(export.deserialize(loaded.serialize()).call)(0.5)


def test_nested_calls():
    inner = export.deserialize(saved("layer"))
    outer = export.export(maxjax.jit(lambda x: inner.call(2 * x).sum()))(X)
    again = export.deserialize(outer.serialize(vjp_order=1))
    same(np.asarray(maxjax.grad(again.call)(X)),
         np.asarray(jax.grad(lambda x: FUNCTIONS["layer"](jax, 2 * x).sum())(X)), rtol=1e-4)
    batched = maxjax.vmap(inner.call)(np.stack([X, 2 * X]))
    same(np.asarray(batched[1]), np.asarray(inner.call(2 * X)))


# --- against JAX ----------------------------------------------------------------------------------

ATTRIBUTES = ("fun_name", "platforms", "nr_devices", "calling_convention_version",
              "ordered_effects", "unordered_effects", "in_shardings_hlo", "out_shardings_hlo",
              "module_kept_var_idx", "uses_global_constants", "disabled_safety_checks")
STRINGS = ("in_tree", "in_avals", "out_tree", "out_avals")


def exported_pair(fun, *args):
    def both(j, module):
        def scaled(*xs, **kwargs):
            return fun(j, *xs, **kwargs)
        return module.export(j.jit(scaled))(*args)

    return both(maxjax, export), both(jax, jax_export)


@pytest.mark.parametrize("args", [
    (X,), (1.5,), ({"b": X, "a": [X, None]},), (np.arange(3), X)], ids=str)
def test_attributes(args):
    ours, theirs = exported_pair(lambda j, *xs: j.tree.map(lambda x: x * 2, xs), *args)
    for level in ("function", "vjp"):
        for name in ATTRIBUTES:
            assert getattr(ours, name) == getattr(theirs, name), (level, name)
        for name in STRINGS:
            assert str(getattr(ours, name)) == str(getattr(theirs, name)), (level, name)
        assert str(ours) == str(theirs)
        assert ours.has_vjp() is theirs.has_vjp() is True
        ours, theirs = ours.vjp(), theirs.vjp()


def _two(j):
    module = export if j is maxjax else jax_export

    def add(x, y):
        return x + y
    return module.export(j.jit(add))(X, X)


def _module(j):
    return export if j is maxjax else jax_export


ERRORS = {
    "shape": lambda j: _two(j).call(X[:2], X),
    "rank": lambda j: _two(j).call(X, X[0]),
    "dtype": lambda j: _two(j).call(X, X.astype(int)),
    "too few": lambda j: _two(j).call(X),
    "keyword": lambda j: _two(j).call(X, y=X),
    "text": lambda j: _two(j).call(X, "a"),
    "platform": lambda j: _module(j).export(
        j.jit(j.numpy.sin), platforms=["tpu"])(X).call(X),
    "forward": lambda j: j.jvp(_two(j).call, (X, X), (X, X)),
    "registered twice": lambda j: _module(j).register_namedtuple_serialization(
        State, serialized_name="other"),
    "name twice": lambda j: _module(j).register_namedtuple_serialization(
        Plain, serialized_name="test.State"),
    "no namedtuple": lambda j: _module(j).register_namedtuple_serialization(
        int, serialized_name="int"),
    "like": lambda j: _module(j).symbolic_shape("..."),
    "scope and constraints": lambda j: _module(j).symbolic_shape(
        "a", scope=_module(j).SymbolicScope(), constraints=["a >= 2"]),
    "constraints of text": lambda j: _module(j).symbolic_shape("a", constraints="a >= 2"),
    "no comparison": lambda j: _module(j).symbolic_shape("a", constraints=["a != 2"]),
    "two scopes": lambda j: j.numpy.shape(
        _module(j).symbolic_shape("a")[0] + _module(j).symbolic_shape("b")[0]),
    "no rank": lambda j: symbolic(j, "b").call(X),
    "zero": lambda j: symbolic(j, "b, 3").call(X[:0]),
    "remainder": lambda j: symbolic(j, "2*b, 3").call(X[:3]),
    "product": lambda j: symbolic(j, "a*b, 3"),
    "constraint": lambda j: symbolic(j, "b, 3", constraints=["b>=3"]).call(X[:2]),
    "mismatch": lambda j: symbolic(j, "b, b").call(X),
    "inconclusive": lambda j: symbolic(j, "b", lambda x: x if x.shape[0] > 5 else 2 * x),
    "broadcast": lambda j: symbolic(j, "b, c", lambda x: x + x[0, :, None]),
}
# Texts that name scopes, symbols in JAX's own order, or the sides of a comparison.
FREE_TEXT = {"two scopes", "inconclusive", "product", "broadcast"}


def symbolic(j, spec, function=None, **options):
    shape = _module(j).symbolic_shape(spec, **options)
    function = function or (lambda x: x.sum())
    return _module(j).export(j.jit(function))(j.ShapeDtypeStruct(shape, np.float32))


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_jax(name):
    if name in FREE_TEXT:
        ours, theirs = errors_of(ERRORS[name])
        assert type(ours).__name__ == type(theirs).__name__
    else:
        assert_same_error(ERRORS[name])


@pytest.mark.parametrize("kind", ["pure_callback", "debug_print"])
def test_callbacks_are_named(kind):
    def call(j, x):
        if kind == "pure_callback":
            return j.pure_callback(np.sin, x, x)
        return j.lax.cond(x.sum() > 0, lambda: j.debug.print("{}", x), lambda: None)

    ours, theirs = errors_of(lambda j: _module(j).export(j.jit(lambda x: call(j, x)))(X))
    assert isinstance(ours, NotImplementedError) and isinstance(theirs, NotImplementedError)
    assert kind in first_line(ours)


def test_disabled_checks_and_platforms():
    check = export.DisabledSafetyCheck.platform()
    exported = export.export(maxjax.jit(jnp.sin), platforms=["tpu"], disabled_checks=[check])(X)
    loaded = export.deserialize(exported.serialize())
    assert loaded.platforms == ("tpu",) and loaded.disabled_safety_checks == (check,)
    same(np.asarray(loaded.call(X)), np.sin(X))
    text = exported.mlir_module()
    assert "stablehlo.sine %arg0" in text and exported.mlir_module_serialized == text.encode()



# --- damage ---------------------------------------------------------------------------------------

def test_every_damaged_byte_is_noticed():
    content = saved("layer")
    for offset in [*range(_HEADER.size), *range(_HEADER.size, len(content), 37), len(content) - 1]:
        for change in (1, 0x80):
            damaged = bytearray(content)
            damaged[offset] ^= change
            with pytest.raises(ValueError, match="cannot deserialize"):
                export.deserialize(damaged)


def test_cut_off_files():
    content = saved("layer")
    for length in [*range(0, _HEADER.size + 1, 7), *range(_HEADER.size, len(content), 101)]:
        with pytest.raises(ValueError, match="cannot deserialize"):
            export.deserialize(content[:length])
    with pytest.raises(ValueError, match="cannot deserialize"):
        export.deserialize(content + b"x")


def packed(payload, version=VERSION):
    content = json.dumps(payload).encode()
    return _HEADER.pack(MAGIC, version, len(content), hashlib.sha256(content).digest()) + content


def parts():
    content = saved("trees", order=0)
    return json.loads(content[_HEADER.size:])


def test_newer_files():
    with pytest.raises(ValueError, match=f"format {VERSION + 1}, of a newer maxjax"):
        export.deserialize(packed(parts(), VERSION + 1))
    content = bytearray(saved("layer"))
    struct.pack_into("<I", content, len(MAGIC), 99)
    with pytest.raises(ValueError, match="newer"):
        export.deserialize(content)


def test_malformed_files_with_a_right_digest():
    def broken(key, value):
        functions = parts()
        functions[0][key] = value
        return functions

    for payload in (None, [], [1], [{}], {"a": 1}, broken("types", []), broken("program", {}),
                    broken("in_tree", ["tuple", [None]]),
                    broken("in_tree", ["custom", [], "x", ""]),
                    broken("arguments", 2), broken("constants", ["AAAA"]), broken("platforms", 3),
                    broken("constraints", ["a"])):
        with pytest.raises(ValueError, match=r"[Cc]annot deserialize"):
            export.deserialize(packed(payload))


@pytest.mark.parametrize("parameter", [
    {"named": "os:system", "items": ["true"]},
    {"named": "maxjax._base.lazy:LazyModule", "items": ["antigravity"]},
    {"named": "maxjax.export:deserialize", "items": [""]},
    {"enum": "maxjax._ir.types:os", "name": "system"},
])
def test_files_name_nothing_to_call(parameter):
    functions = parts()
    functions[0]["program"]["equations"][0][2]["extra"] = parameter
    with pytest.raises(ValueError, match=r"malformed: .*maxjax's"):
        export.deserialize(packed(functions))


def test_unknown_primitives_are_named():
    functions = parts()
    functions[0]["program"]["equations"][0][0] = "unheard_of"
    with pytest.raises(ValueError, match="the primitive unheard_of"):
        export.deserialize(packed(functions))


def test_what_cannot_be_exported_is_refused():
    with pytest.raises(ValueError, match="unregistered type `.*Plain"):
        export.export(maxjax.jit(lambda p: p))(Plain(X)).serialize()
    with pytest.raises(TypeError, match="dictionaries with string keys"):
        export.export(maxjax.jit(lambda p: p))({1: X}).serialize()
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(np.sin)(X)
    with pytest.raises(ValueError, match="vjp_order"):
        export.export(maxjax.jit(jnp.sin))(X).serialize(vjp_order=-1)
    with pytest.raises(TypeError, match="DisabledSafetyCheck"):
        export.export(maxjax.jit(jnp.sin), disabled_checks=["platform"])


# --- crafted files --------------------------------------------------------------------------------

CRAFTED = {
    "contraction": (lambda x, w: jnp.sin(x) @ w + 1, X, W),
    "gather": (lambda x, i: (x[i] * 2).sum(0), X, np.arange(3, dtype=np.int32)),
    "select": (lambda x, i: jnp.where(x > 0, x, i).astype(jnp.float16), X,
               np.arange(3, dtype=np.int32)),
    "several": (lambda x: (jnp.sort(x), jnp.argmax(x, 1), x.T.reshape(2, 6),
                           jnp.concatenate([x, x]), jnp.cumsum(x, 0)), X),
    "bits": (lambda i: (i << 1) | (i ^ 3), np.arange(3, dtype=np.int32)),
    "update": (lambda x: x.at[0].set(2.0).at[1, 1].add(jnp.fft.rfft(x[:, 0]).real[0]), X),
    "branches": (lambda x: maxjax.lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: -v, x), X),
    "loop": (lambda x: maxjax.lax.scan(lambda c, row: (c + row.sum(), row * 2), 0.0, x), X),
}
DTYPES = ("float32", "float64", "int32", "int8", "uint32", "bool", "float16", "bfloat16",
          "complex64")


def nodes(node, path=()):
    """(path, value) for all values in a file's data."""
    items = (node.items() if isinstance(node, dict) else
             enumerate(node) if isinstance(node, list) else ())
    for key, value in items:
        yield (*path, key), value
        yield from nodes(value, (*path, key))


def crafted(data, rng):
    """The data of a file with one or two values replaced, dtypes above all."""
    data = json.loads(json.dumps(data))
    for _ in range(rng.choice([1, 1, 2, 3])):
        everything = list(nodes(data))
        named = [item for item in everything if isinstance(item[1], str) and item[1] in DTYPES]
        path, value = rng.choice(named if named and rng.random() < 0.7 else everything)
        owner = data
        for key in path[:-1]:
            owner = owner[key]
        if isinstance(value, bool) or value is None:
            owner[path[-1]] = rng.choice([True, False, None, 0])
        elif isinstance(value, int):
            owner[path[-1]] = value + rng.choice([-1, 1])
        elif isinstance(value, str):
            owner[path[-1]] = rng.choice([*DTYPES, "add", "sin", "max", "*", "AACAPw=="])
        elif isinstance(value, list):
            owner[path[-1]] = rng.choice([value[:-1], value[::-1], value + value[-1:]])
        else:
            owner[path[-1]] = rng.choice([None, [], {}])
    return data


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_files_are_refused_or_give_what_they_say(name):
    function, *args = CRAFTED[name]
    content = export.export(maxjax.jit(function))(*args).serialize()
    data = json.loads(content[_HEADER.size:])
    rng = random.Random(name)
    refused = 0
    for _ in range(150):
        try:
            exported = export.deserialize(packed(crafted(data, rng)))
        except ValueError:
            refused += 1
            continue
        values = [jnp.ones(aval.shape, aval.dtype) for aval in exported.in_avals]
        try:
            given, options = exported.in_tree.unflatten(values)
            results = maxjax.tree.leaves(exported.call(*given, **options))
        except (ValueError, TypeError, NotImplementedError):
            continue
        for result, aval in zip(results, exported.out_avals, strict=True):
            held = np.asarray(result)
            assert (held.shape, held.dtype) == (aval.shape, maxjax.dtypes.canonicalize_dtype(
                aval.dtype))
    assert refused > 50


@pytest.mark.parametrize("name", sorted(harness.all_primitives()))
def test_primitives_with_operands_that_share_a_dtype(name):
    """A program is refused if one of them has another dtype."""
    primitive = harness.all_primitives()[name]
    if primitive.values.same_dtypes is None or len("four"[primitive.values.same_dtypes]) < 2:
        return
    kinds = [np.dtype(dtype) for dtype in DTYPES]
    accepts = primitive.values.accepts
    taken = [kind for kind in kinds if accepts is None or kind in accepts]
    for left in taken:
        for right in kinds:
            operands = [Var(ShapedArray((2,), kind)) for kind in (left, left, left, right)]
            jaxpr = Jaxpr([], operands, [], [JaxprEqn(primitive, operands, {}, [])])
            if left == right:
                check_operands(jaxpr)
                continue
            with pytest.raises(InternalError, match="operand"):
                check_operands(jaxpr)
