"""``jax.experimental.roofline`` against real JAX, on one device and over abstract meshes."""

from __future__ import annotations

import dataclasses
import itertools

import jax
import jax.experimental.roofline
import jax.extend
import numpy as np
import pytest

import maxjax
import maxjax.experimental.roofline
import maxjax.extend
from maxjax.experimental import roofline

X = np.ones((4, 5), np.float32)
UNARY = ("abs acos acosh asin asinh atan atanh cbrt ceil cos cosh digamma erf erf_inv erfc exp "
         "exp2 expm1 floor is_finite lgamma log log1p logistic neg round rsqrt sign sin sinh sqrt "
         "square tan tanh").split()
BINARY = "add sub mul div rem max min pow atan2 nextafter eq ne lt le gt ge igamma complex".split()


def numbers(j, x):
    """Two indices that are known when the program runs."""
    return j.lax.argmax(x[:, :2], 0, np.int32)


PROGRAMS = {
    **{name: lambda j, x, name=name: getattr(j.lax, name)(x) for name in UNARY},
    **{name: lambda j, x, name=name: getattr(j.lax, name)(x, x + 1) for name in BINARY},
    "powers": lambda j, x: (x ** 3, x ** -1),
    "booleans": lambda j, x: (x > 0) & (x < 2) | ~(x == 1),
    "products": lambda j, x: x @ x.T @ x,
    "batched products": lambda j, x: j.numpy.einsum("ij,ikj->ik", x, x[:, None] * x),
    "half products": lambda j, x: j.numpy.dot(
        x.astype("bfloat16"), x.T.astype("bfloat16"), preferred_element_type=np.float32),
    "sums": lambda j, x: (x.sum(), x.sum(0), x.mean(1), x.max(), x.prod(0)),
    "cumulative": lambda j, x: (j.lax.cumsum(x, 1), j.lax.cummax(x, 0), j.lax.cumlogsumexp(x, 1)),
    "selects": lambda j, x: j.numpy.where(x > 0, x, 2 * x),
    "moves": lambda j, x: j.numpy.concatenate([x.T.reshape(4, 5), x[:, ::-1]]).sum(),
    "one operand thrice": lambda j, x: j.numpy.concatenate([x, x, x]).sum(),
    "gathers": lambda j, x: x[numbers(j, x)] + x.at[numbers(j, x)].get(
        mode="fill", fill_value=0),
    "scatters": lambda j, x: (x.at[numbers(j, x)].add(x[:2]), x.at[numbers(j, x)].set(x[:2])),
    "slices of arrays": lambda j, x: j.lax.dynamic_update_slice(
        x, j.lax.dynamic_slice(x, (1, 1), (2, 2)), (0, 0)),
    "jit": lambda j, x: j.jit(lambda y: j.numpy.sin(y) * j.numpy.cos(y) * y)(2 * x) + x,
    "checkpoint": lambda j, x: j.checkpoint(lambda y: j.numpy.sin(y) + j.numpy.cos(y))(x) + x,
    "relu": lambda j, x: j.nn.relu(x) + x,
    "scan": lambda j, x: j.lax.scan(
        lambda c, y: (2 * c, (c @ c.T, c + y)), x, np.ones((3, 4, 5), np.float32)),
    "scan of a large body": lambda j, x: j.lax.scan(
        lambda c, _: (j.numpy.ones((100, 100)).sum() + c, None), x, None, length=2)[0],
    "unused results of a scan": lambda j, x: j.lax.scan(
        lambda c, _: (2 * c, c @ c.T), x, None, length=3)[0],
    "while": lambda j, x: j.lax.while_loop(lambda c: c.sum() < 9, lambda c: c @ x.T @ x, x),
    "cond": lambda j, x: j.lax.cond(x.sum() > 1, lambda: x @ x.T @ x, lambda: x),
    "dead code": lambda j, x: (x @ x.T, x)[1],
    "constants": lambda j, x: x @ j.numpy.ones((5, 100)) + np.ones((4, 100), np.float32),
    "arguments as results": lambda j, x: (x, j.numpy.sin(x), x, 3.),
    "gradient": lambda j, x: j.grad(lambda w: (j.numpy.sin(x @ w) ** 2).sum())(x.T),
    "random numbers": lambda j, x: x + j.random.uniform(j.random.key(0), x.shape),
    "callback": lambda j, x: j.pure_callback(lambda v: v, x, x),
    "attention": lambda j, x: j.nn.softmax(x @ x.T) @ x,
    "transform": lambda j, x: j.numpy.fft.fft(x),
}
CONVOLUTIONS = [
    ((2, 3, 8, 8), (4, 3, 3, 3), ((1, 1), "SAME"), {}),
    ((2, 3, 8, 8), (4, 3, 3, 3), ((2, 2), "VALID"), {}),
    ((1, 1, 8), (1, 1, 3), ((1,), [(1, 1)]), {"lhs_dilation": (2,)}),
    ((1, 4, 8), (6, 2, 3), ((1,), [(0, 0)]), {"feature_group_count": 2}),
    ((4, 4, 8), (6, 4, 3), ((1,), [(0, 0)]), {"batch_group_count": 2}),
    ((2, 3, 7, 9), (5, 3, 2, 3), ((2, 1), [(1, 0), (0, 2)]), {"rhs_dilation": (1, 2)}),
]
MESHES = [(1,), (2,), (3,), (4,), (8,), (2, 2), (4, 2), (3, 3), (4, 3), (2, 2, 2)]
COLLECTIVES = {
    "all_gather": lambda j, x, name, count: j.lax.all_gather(x, name, tiled=True),
    "all_to_all": lambda j, x, name, count: j.lax.all_to_all(x, name, 0, 0, tiled=True),
    "psum_scatter": lambda j, x, name, count: j.lax.psum_scatter(x, name, tiled=True),
    "psum": lambda j, x, name, count: j.lax.pcast(j.lax.psum(x, name), name, to="varying"),
    "pmax": lambda j, x, name, count: j.lax.pmax(x, name),
    **{f"ppermute by {shift}": lambda j, x, name, count, shift=shift: j.lax.ppermute(
        x, name, [(n, (n + shift) % count) for n in range(count)]) for shift in (0, 1, 3, -2)},
    "ppermute reversed": lambda j, x, name, count: j.lax.ppermute(
        x, name, [(n, count - 1 - n) for n in range(count)]),
    "ppermute of one": lambda j, x, name, count: j.lax.ppermute(x, name, [(0, count // 2)]),
}


def costs(library, function, *args, **options):
    shapes, result = library.experimental.roofline.roofline(function, **options)(*args)
    return ([(shape.shape, shape.dtype) for shape in library.tree.leaves(shapes)],
            dataclasses.asdict(result))


@pytest.mark.parametrize("name", PROGRAMS)
def test_costs_of_programs_are_those_of_jax(name):
    mine, theirs = (costs(j, lambda x, j=j: PROGRAMS[name](j, x), X) for j in (maxjax, jax))
    assert mine == theirs


@pytest.mark.parametrize("operand,kernel,args,options", CONVOLUTIONS)
def test_convolutions(operand, kernel, args, options):
    arrays = [np.ones(shape, np.float32) for shape in (operand, kernel)]
    mine, theirs = (costs(j, lambda x, k, j=j: j.lax.conv_general_dilated(
        x, k, *args, **options), *arrays) for j in (maxjax, jax))
    assert mine == theirs


@pytest.mark.parametrize("sizes", MESHES, ids=str)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name, sizes):
    axes = "xyz"[:len(sizes)]
    count = int(np.prod(sizes))
    chosen = [*axes, *itertools.permutations(axes)] if name == "all_to_all" else [tuple(axes)]

    def found(j, axis):
        mesh = j.sharding.AbstractMesh(
            sizes, tuple(axes), axis_types=(j.sharding.AxisType.Auto,) * len(sizes))
        spec = j.sharding.PartitionSpec(tuple(axes))
        taking = int(np.prod([sizes[axes.index(part)] for part in axis]))
        return costs(j, lambda x: COLLECTIVES[name](j, x, axis, taking),
                     j.ShapeDtypeStruct((count * count * 4, 3), np.float32),
                     mesh=mesh, in_specs=spec, out_specs=spec)

    for axis in chosen:
        assert found(maxjax, axis) == found(jax, axis)


@pytest.mark.parametrize("pins", [(True, False), (False, True), (True, True)])
def test_pinned_operands(pins):
    options = dict(zip(("pin_lhs_in_vmem", "pin_rhs_in_vmem"), pins, strict=True))
    mine, theirs = (costs(j, lambda x: x @ x.T, X, **options) for j in (maxjax, jax))
    assert mine == theirs


def test_rules_of_ones_own(caplog):
    def found(j):
        module = j.experimental.roofline
        primitive = j.extend.core.Primitive("measured")
        primitive.def_abstract_eval(lambda x: x)
        before = costs(j, lambda x: primitive.bind(x) * 2, X)
        seen = []

        @module.register_roofline(primitive)
        def rule(context, *shapes, **params):
            seen.append((context.primitive is primitive, [shape.bytes for shape in shapes],
                         context.mesh, context.pin_lhs_in_vmem, params))
            return module.RooflineResult(flops=7, unfused_flops=9)

        return before, costs(j, lambda x: primitive.bind(x) * 2, X), seen

    assert found(maxjax) == found(jax)
    assert "No roofline rule for measured" in caplog.text


def test_results_add_up():
    def total(module):
        result = module.RooflineResult
        return dataclasses.asdict(
            result(flops=1, ici_bytes={"x": 1}, peak_hbm_bytes=3)
            + result(flops=2, ici_bytes={"x": 3, "y": 2}, peak_hbm_bytes=4) + result.zeros())

    assert total(roofline) == total(jax.experimental.roofline)


@pytest.mark.parametrize("over_mesh", [False, True])
@pytest.mark.parametrize("function", [
    lambda j, x: x @ x.T, lambda j, x: j.numpy.sin(x) * x, lambda j, x: (x, x.sum(0) @ x.T)[0]])
def test_the_backward_pass(function, over_mesh):
    def found(j):
        options = {}
        if over_mesh:
            mesh = j.sharding.AbstractMesh((2,), ("x",), (j.sharding.AxisType.Auto,))
            options = {"mesh": mesh, "in_specs": j.P("x"), "out_specs": j.P("x")}
        return costs(j, lambda x: function(j, x),
                     j.ShapeDtypeStruct((4, 6), j.numpy.bfloat16), vjp=True, **options)

    assert found(maxjax) == found(jax)


def test_roofline_and_grad():
    def found(j):
        mesh = j.sharding.AbstractMesh((2,), ("x",), (j.sharding.AxisType.Auto,))
        count = j.experimental.roofline.roofline_and_grad(
            lambda x, y: j.numpy.sin(x) @ x.T * y.sum(), mesh, (j.P("x"), j.P()), j.P("x"))
        shapes, forward, backward = count(
            j.ShapeDtypeStruct((4, 6), np.float32), j.ShapeDtypeStruct((3,), np.int32))
        return (shapes.shape, shapes.dtype, shapes.sharding.spec == j.P("x"),
                dataclasses.asdict(forward), dataclasses.asdict(backward))

    assert found(maxjax) == found(jax)
