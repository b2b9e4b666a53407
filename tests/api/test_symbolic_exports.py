"""Functions with symbolic sizes and of several devices as StableHLO: real JAX runs what is written,
and maxjax reads it."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys

import jax
import jax.export
import numpy as np
import pytest

import maxjax
from maxjax import export
from maxjax._base.flatbuffer import Buffer
from tests.api.test_export import same
from tests.gen.exported_programs import joined, weights

KERNEL = weights(4, 1, 3, 3)
EYE = np.eye(3, dtype=np.float32)
PLACES = np.array([0, 2])


def masked(j, x):
    seen = j.numpy.tril(j.numpy.ones((x.shape[1],) * 2, bool))
    scores = j.numpy.where(seen, x @ x.swapaxes(1, 2), -j.numpy.inf)
    return j.nn.softmax(scores) @ x


def normalized(j, x):
    return (x - x.mean(0)) / (x.std(0) + 1)


def pooled(padding):
    return lambda j, x: j.lax.reduce_window(
        x, -np.inf, j.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), padding)


def convolved(strides):
    return lambda j, x: j.lax.conv_general_dilated(x, KERNEL, strides, "SAME")


# Functions of a library and an argument, and its sizes; those of the extended ones are alike.
CASES = {
    "layers": (lambda j, x: (j.nn.softmax(x @ weights(3, 4)), x.mean(), x.sum(0) / x.shape[0]),
               "b, 3"),
    "cumulative": (lambda j, x: (j.numpy.cumsum(x, 0), j.numpy.cumsum(x, 1),
                                 j.lax.cummax(x, 0, reverse=True)), "b, 3"),
    "sort": (lambda j, x: (j.numpy.sort(x, 0), j.numpy.argsort(x, 1), j.lax.top_k(x, 2)), "b, 3"),
    "scan": (lambda j, x: j.lax.scan(lambda c, v: (c + v, c * v), x[0] * 0, x, reverse=True),
             "b, c"),
    "scatter": (lambda j, x: (x.at[0].set(1.), x.at[:, 1].add(2.),
                              x.at[j.numpy.array([0, 1])].mul(3.)), "b, 3"),
    "dynamic slices": (lambda j, x: (
        j.lax.dynamic_slice(x, (j.numpy.int32(x.sum()), 0), (1, 3)),
        j.lax.dynamic_slice(x, (-5, j.numpy.int32(x.sum())), (x.shape[0], 2)),
        j.lax.dynamic_update_slice(x, x[:1] * 2, (1, 0))), "b, 3"),
    "convolution": (convolved((2, 2)), "b, 1, h, h"),
    "sizes": (lambda j, x: (x * x.shape[0], x.shape[0] // 2 + x.shape[1]**2 - 3 * x.shape[0],
                            (x.shape[0] - 2 * x.shape[1]) // 3, x.shape[0] % 3), "b, c"),
    "cholesky": (lambda j, x: j.numpy.linalg.cholesky(j.numpy.swapaxes(x, 1, 2) @ x + EYE),
                 "b, 3, 3"),
}
EXTENDED = {
    "pad": (lambda j, x: (j.numpy.pad(x, ((1, 2), (0, 0))), j.lax.pad(
        x[:, 0], np.float32(0), [(x.shape[0], 1, 1)])), "b, 3"),
    "reshape": (lambda j, x: (x.reshape(-1), x.reshape(x.shape[0] * 3, 1), x.ravel()[::2]), "b, 3"),
    "while": (lambda j, x: j.lax.while_loop(lambda y: y.max() > 1, lambda y: y * 0.5, abs(x)),
              "b, 3"),
    "take": (lambda j, x: (x[j.numpy.array([0, -1])], j.numpy.take(x, PLACES, axis=1), x[-1],
                           x[:, j.numpy.argmax(x, 1)]), "b, 3"),
    "pool": (pooled("SAME"), "b, 1, h, h"),
    "attention": (masked, "b, t, 4"),
    "multiple": (lambda j, x: x[:x.shape[0] // 2] + x[x.shape[0] // 2:], "2*b, 3"),
    "normal": (lambda j, x: j.random.normal(j.random.key(0), x.shape) + x, "b, 3"),
    "concatenate": (lambda j, x: j.numpy.concatenate([x, x * 2])[1:-1], "b, 3"),
    "arange": (lambda j, x: x + j.numpy.arange(x.shape[0])[:, None], "b, 3"),
    "scan rows": (lambda j, x: j.lax.scan(lambda c, v: (c + v, c * v), np.zeros(3, np.float32), x),
                  "b, 3"),
    "cond": (lambda j, x: j.lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, x), "b, 3"),
    "one hot": (lambda j, x: j.nn.one_hot(j.numpy.argmax(x, 1), 3) + j.nn.relu(x), "b, 3"),
    "take along": (lambda j, x: j.numpy.take_along_axis(x, j.numpy.argsort(x, 0), 0), "b, 3"),
    "convolution of a batch": (convolved((1, 1)), "b, 1, 5, 5"),
    "convolution of a square": (convolved((1, 1)), "b, 1, h, h"),
    "pool of a batch": (pooled("VALID"), "b, 1, 5, 5"),
    "einsum": (lambda j, x: j.numpy.einsum("bi,cj->bcij", x, x), "b, c"),
    "two columns": (lambda j, x: x.reshape(2, -1).sum(1), "2*b, 3"),
    "flip": (lambda j, x: (x[::-1], j.numpy.roll(x, 1, 0), x.T), "b, 3"),
    "normalize": (normalized, "b, 3"),
    "norm": (lambda j, x: j.numpy.linalg.norm(x, axis=1), "b, 3"),
    "fft": (lambda j, x: abs(j.numpy.fft.rfft(x, axis=1)), "b, 3"),
    "solve": (lambda j, x: j.numpy.linalg.solve(x + 9 * EYE, x), "b, 3, 3"),
    "randint": (lambda j, x: j.random.randint(j.random.key(0), x.shape, 0, 10) + x, "b, 3"),
    "tile": (lambda j, x: (j.numpy.tile(x, (2, 1)), j.numpy.repeat(x, 2, 0),
                           j.numpy.stack([x, x])), "b, 3"),
    "clip": (lambda j, x: j.numpy.clip(x, -1, 1).var(), "b, 3"),
    "logsumexp": (lambda j, x: j.scipy.special.logsumexp(x, 0), "b, 3"),
    "median": (lambda j, x: j.numpy.median(x, 0), "b, 3"),
    "vmap": (lambda j, x: j.vmap(lambda row: row @ weights(3, 3) @ row)(x), "b, 3"),
    "map": (lambda j, x: j.lax.map(lambda row: row.sum(), x), "b, 3"),
    "fori": (lambda j, x: j.lax.fori_loop(0, x.shape[0], lambda i, a: a + x[i], x[0]), "b, 3"),
    "gelu": (lambda j, x: j.nn.gelu(x) + j.scipy.special.erf(x), "b, 3"),
    "eye": (lambda j, x: j.numpy.eye(x.shape[0]) @ x, "b, 3"),
    "diagonal": (lambda j, x: j.numpy.diag(x), "b, b"),
    "extremes": (lambda j, x: (x.max(0), x.argmin(0), j.numpy.any(x > 1), x.prod(1)), "b, 3"),
}


def exported(j, function, args, sizes, **options):
    types = j.export.symbolic_args_specs(args, sizes, **options)
    return j.export.export(j.jit(lambda *xs: function(j, *xs)))(*types)


def argument(sizes, number):
    """One whose symbols have different sizes."""
    known = {"b": number, "c": number + 1, "t": number + 2, "h": number + 3}
    return weights(*(eval(size, known) for size in sizes.split(",")), seed=number)


def check(function, sizes, *numbers):
    ours = exported(maxjax, function, (argument(sizes, 3),), sizes)
    content = bytes(ours.serialize(format="jax"))
    loaded = export.deserialize(content)
    theirs = dataclasses.replace(exported(jax, function, (argument(sizes, 3),), sizes),
                                 mlir_module_serialized=ours.mlir_module_serialized)
    assert str(ours.in_avals) == str(theirs.in_avals)
    assert str(ours.out_avals) == str(theirs.out_avals)
    assert ours.module_kept_var_idx == theirs.module_kept_var_idx
    for number in numbers:
        x = argument(sizes, number)
        expected = [np.asarray(y) for y in jax.tree.leaves(
            jax.jit(lambda x: function(jax, x))(x))]
        same([np.asarray(y) for y in jax.tree.leaves(theirs.call(x))], expected, 1e-4)
        same([np.asarray(y) for y in maxjax.tree.leaves(loaded.call(x))], expected, 1e-4)


@pytest.mark.parametrize("name", CASES)
def test_jax_runs_symbolic_programs(name):
    check(*CASES[name], 1, 4)


@pytest.mark.extended
@pytest.mark.parametrize("name", [*CASES, *EXTENDED])
def test_jax_runs_symbolic_programs_of_many_sizes(name):
    check(*(CASES | EXTENDED)[name], 1, 2, 3, 7)


def test_sums_of_what_may_be_empty():
    """JAX does not write them; it runs them."""
    ours = exported(maxjax, lambda j, x: j.numpy.cumsum(x[1:], 0), (weights(4, 3),), "b, 3")
    theirs = dataclasses.replace(
        exported(jax, lambda j, x: x[1:], (weights(4, 3),), "b, 3"),
        mlir_module_serialized=ours.mlir_module_serialized)
    for count in (1, 2, 5):
        x = weights(count, 3)
        same(np.asarray(theirs.call(x)), np.cumsum(x[1:], 0))


SIZES, CONSTRAINTS = ("b, 3", "3*c", "b"), ("b >= c",)


def arguments(b, c):
    return weights(b, 3), weights(3 * c, seed=1), weights(b, seed=2)


def test_derivatives_of_symbolic_programs():
    """Also of an argument that only says a size, and with a result of integers."""
    ours = exported(maxjax, joined, arguments(2, 1), SIZES, constraints=CONSTRAINTS)
    theirs = exported(jax, joined, arguments(2, 1), SIZES, constraints=CONSTRAINTS)
    root = export.deserialize(bytes(ours.serialize(1, format="jax")))
    assert root.module_kept_var_idx == theirs.module_kept_var_idx == (0, 1, 2)
    assert root.vjp().module_kept_var_idx == theirs.vjp().module_kept_var_idx == (0, 1, 2, 3, 4)
    written = dataclasses.replace(
        theirs.vjp(), mlir_module_serialized=Buffer(
            bytes(ours.serialize(1, format="jax"))).root().table(17).bytes(13))
    for sizes in ((2, 1), (4, 4)):
        args = arguments(*sizes)
        result = joined(jax, *args)
        directions = (np.zeros(result["places"].shape, jax.dtypes.float0),
                      np.ones(result["rows"].shape, np.float32))
        expected = [np.asarray(y) for y in theirs.vjp().call(*args, *directions)]
        same([np.asarray(y) for y in written.call(*args, *directions)], expected, 1e-4)
        slopes = maxjax.grad(lambda *xs: root.call(*xs)["rows"].sum(), argnums=(0, 1, 2))(*args)
        same([np.asarray(y) for y in slopes], expected, 1e-4)
    # The program itself says that b >= c.
    free = exported(jax, joined, arguments(2, 1), SIZES)
    with pytest.raises(ValueError, match="refining shapes"):
        dataclasses.replace(free, mlir_module_serialized=ours.mlir_module_serialized).call(
            *arguments(1, 2))


@pytest.mark.parametrize("shapes, message", [
    ([(2, 3), (4,), (2,)], r"Division had remainder 1 when computing the value of 'c'"),
    ([(0, 3), (3,), (0,)], "Expected value >= 1 for dimension variable 'b'"),
    ([(2, 3), (3,), (3,)], r"Found inconsistency between dimension size args\[2\].shape\[0\] "
                           r"\(= 3\) and the specification 'b' \(= 2\)"),
    ([(2, 3), (9,), (2,)], r"Expected '- c \+ b' to be greater or equal to 0, but found -1"),
], ids=["remainder", "zero", "inconsistent", "constraint"])
def test_sizes_are_checked(shapes, message):
    """By the program itself: in the words of a call, with the values of the symbols."""
    ours = exported(maxjax, joined, arguments(2, 1), SIZES, constraints=CONSTRAINTS)
    args = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(ValueError, match=message) as called:
        ours.call(*args)
    with pytest.raises(ValueError, match=message) as read:
        export.from_stablehlo(ours.mlir_module())(*args)
    start = re.escape(str(called.value).partition(" Obtained")[0])
    assert re.search(start, str(read.value))


def test_what_has_no_symbolic_form():
    ours = exported(maxjax, lambda j, x: j.numpy.fft.fft(x, axis=1), (weights(2, 3),), "b, 3")
    assert "stablehlo.fft" in ours.mlir_module()
    ours = exported(maxjax, lambda j, x: j.lax.rng_bit_generator(
        np.zeros(4, np.uint32), x.shape)[1], (weights(2, 3),), "b, 3")
    with pytest.raises(NotImplementedError, match="primitive 'rng_bit_generator' with symbolic"):
        ours.serialize(format="jax")


# --- several devices ------------------------------------------------------------------------------

MESHES = """
import dataclasses, sys
import jax, jax.export, maxjax, numpy as np

def weights(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)

def layer(j, mesh, x, y):
    return j.numpy.tanh(x @ y), y.sum()

def constrained(j, mesh, x, y):
    place = j.sharding.NamedSharding(mesh, j.P("a", "b"))
    h = j.lax.with_sharding_constraint(x @ y, place)
    return h, h.sum()

def mapped(j, mesh, x, y):
    return j.shard_map(lambda x, y: (j.lax.psum(x.sum(0), "a"), y), mesh=mesh,
                       in_specs=(j.P("a"), j.P()), out_specs=(j.P(), j.P()))(x, y)

ARGS = weights(4, 8), weights(8, 4, seed=1)
# The function, whether axes are Explicit, sizes, and the specs of arguments and results.
CASES = [
    (layer, False, None, [("a",), (None, "b")], None),
    (layer, True, None, [("a",), (None, "b")], None),
    (layer, False, None, [(("a", "b"),), ()], [(None, ("b", "a")), ()]),
    (layer, False, ("2*n, 8", None), [("a",), (None, "b")], None),
    (constrained, False, None, [("a",), (None, "b")], [("a",), ()]),
    (mapped, False, None, [("a",), ()], None),
]

def made(j, function, is_explicit, sizes, ins, outs):
    kind = j.sharding.AxisType.Explicit if is_explicit else j.sharding.AxisType.Auto
    mesh = j.make_mesh((2, 2), ("a", "b"), axis_types=(kind,) * 2)
    places = [j.NamedSharding(mesh, j.P(*spec)) for spec in ins]
    options = {} if outs is None else {
        "out_shardings": tuple(j.NamedSharding(mesh, j.P(*spec)) for spec in outs)}
    args = ARGS if sizes is None else j.export.symbolic_args_specs(ARGS, sizes)
    if sizes is None:
        args = [j.ShapeDtypeStruct(x.shape, x.dtype, sharding=place)
                for x, place in zip(args, places)]
    else:
        options["in_shardings"] = tuple(places)
    function = j.jit(lambda *xs: function_of(j, mesh, *xs), **options)
    return mesh, places, j.export.export(function)(*args)

def spec_of(sharding):
    return None if sharding is None else str(sharding.spec)

for function_of, is_explicit, sizes, ins, outs in CASES[:int(sys.argv[1])]:
    case = function_of, is_explicit, sizes, ins, outs
    mesh, places, theirs = made(jax, *case)
    _, _, ours = made(maxjax, *case)
    read = maxjax.export.deserialize(bytes(ours.serialize(format="jax")))
    assert ours.nr_devices == read.nr_devices == theirs.nr_devices == 4
    assert [None if s is None else str(s) for s in read.in_specs] == [
        *map(spec_of, theirs._in_named_shardings)]
    args = [jax.device_put(x, place) for x, place in zip(ARGS, places)]
    expected = [np.asarray(x) for x in function_of(jax, mesh, *args)]
    with jax.set_mesh(mesh):
        wanted = jax.jit(theirs.call)(*args)
        found = jax.jit(dataclasses.replace(
            theirs, mlir_module_serialized=ours.mlir_module_serialized).call)(*args)
    for a, w, e in zip(found, wanted, expected):
        assert len(a.devices()) == 4 and a.sharding == w.sharding, (a.sharding, w.sharding)
        np.testing.assert_allclose(np.asarray(a), e, 1e-5, 1e-5)
print("ran", len(CASES[:int(sys.argv[1])]))
"""


@pytest.mark.parametrize("count", [2, pytest.param(6, marks=pytest.mark.extended)])
def test_jax_runs_programs_of_several_devices(count):
    done = subprocess.run([sys.executable, "-c", MESHES, str(count)], capture_output=True,
                          text=True, env={**os.environ, "XLA_FLAGS":
                                          "--xla_force_host_platform_device_count=4"})
    assert done.stdout == f"ran {count}\n", done.stderr
