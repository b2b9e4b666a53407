"""Types above arrays (``jax.experimental.hijax``) in programs, loops and under vmap, against JAX.

The type is of numbers as small integers, with a scale for each row. Its values are mapped by a
specification of its own.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax.experimental.hijax
from tests.api.test_hi_primitives import hijax_of
from tests.support.against_jax import agree, assert_same_error

X = np.array([[0.5, -1.25, 2.0], [3.0, 2.0, -7.0]], np.float32)


class Types:
    """The type, primitives that make and take its values, and the specification."""

    def __init__(self, j):
        hijax, jnp = hijax_of(j), j.numpy

        @dataclasses.dataclass(frozen=True)
        class Along(hijax.MappingSpec):
            axis: int

        @dataclasses.dataclass(frozen=True)
        class QuantizedType(hijax.HiType):
            shape: tuple[int, ...]

            def lo_ty(self):
                return [hijax.ShapedArray(self.shape, np.dtype("int8")),
                        hijax.ShapedArray(self.shape[:-1], np.dtype("float32"))]

            def lower_val(self, value):
                return [value.counts, value.scales]

            def raise_val(self, counts, scales):
                return Quantized(counts, scales)

            def to_tangent_aval(self):
                return hijax.ShapedArray(self.shape, np.dtype("float32"))

            def dec_rank(self, size, spec):
                shape = list(self.shape)
                assert shape.pop(spec.axis) == size
                return QuantizedType(tuple(shape))

            def inc_rank(self, size, spec):
                shape = list(self.shape)
                shape.insert(spec.axis, size)
                return QuantizedType(tuple(shape))

            def leading_axis_spec(self):
                return Along(0)

            @hijax.aval_property
            def rows(self):
                return j.typeof(self).shape[0]

            @hijax.aval_method
            def restored(self):
                return restore(self)

            def __getattr__(self, name):
                if name.startswith("_"):
                    raise AttributeError(name)
                return hijax.aval_property(lambda value: f"{name} of {j.typeof(value)}")

            def str_short(self, short_dtypes=False, mesh_axis_types=False):
                return f"quantized{list(self.shape)}"

            __repr__ = str_short

        @dataclasses.dataclass(frozen=True)
        class Quantized:
            counts: Any
            scales: Any

        hijax.register_hitype(Quantized, lambda value: QuantizedType(value.counts.shape))

        class Quantize(hijax.HiPrim):
            def __init__(self, x):
                self.in_avals, self.params = (x,), {}
                self.out_aval = QuantizedType(x.shape)
                super().__init__()

            def expand(self, x):
                scales = jnp.max(jnp.abs(x), axis=-1) / 127
                return Quantized(jnp.round(x / scales[..., None]).astype("int8"), scales)

            def vjp_fwd(self, nonzeros, x):
                return self(x), None

            def vjp_bwd_retval(self, residuals, ct):
                return (2 * ct,)

            def jvp(self, primals, tangents):
                return self(*primals), 2 * tangents[0]

            lin, linearized = hijax.linearize_from_jvp

            def batch(self, axis_data, args, dims):
                x, = hijax.bdims_at_front(axis_data, args, dims)
                return quantize(x), Along(0)

        class Restore(hijax.HiPrim):
            def __init__(self, value):
                self.in_avals, self.params = (value,), {}
                self.out_aval = hijax.ShapedArray(value.shape, np.dtype("float32"))
                super().__init__()

            def expand(self, value):
                return value.counts * value.scales[..., None]

            def vjp_fwd(self, nonzeros, value):
                return self(value), value

            def vjp_bwd(self, value, ct, accum):
                accum.accum(3 * ct)
                accum.accum(0 * restore(value))

            def jvp(self, primals, tangents):
                return self(*primals), 3 * tangents[0] + 0 * restore(*primals)

            lin, linearized = hijax.linearize_from_jvp

            def batch(self, axis_data, args, dims):
                return restore(*args), None if dims[0] is None else dims[0].axis

        class Sum(hijax.HiPrim):
            """With rules that follow from ``jvp``, of a value and an array."""

            def __init__(self, value, x):
                self.in_avals, self.out_aval, self.params = (value, x), x, {}
                super().__init__()

            def expand(self, value, x):
                return value.counts * value.scales[..., None] + x

            def jvp(self, primals, tangents):
                dv, dx = map(hijax.instantiate_zeros, tangents)
                return self(*primals), 5 * dv * restore(primals[0]) + 7 * dx

            lin, linearized = hijax.linearize_from_jvp
            vjp_fwd, vjp_bwd_retval = hijax.vjp_from_jvp

        def quantize(x):
            return Quantize(j.typeof(x))(x)

        def restore(value):
            return Restore(j.typeof(value))(value)

        self.quantize, self.restore, self.along = quantize, restore, Along
        self.sum = lambda value, x: Sum(j.typeof(value), j.typeof(x))(value, x)
        self.value = quantize(X)

    def through(self, x):
        return self.restore(self.quantize(x))


PROGRAMS = {
    "argument and result of jit": lambda j, t: t.restore(j.jit(
        lambda v: t.quantize(2 * t.restore(v)))(t.value)),
    "static and donated": lambda j, t: j.jit(
        lambda v, n: t.restore(v) * n, static_argnums=1, donate_argnums=0)(t.quantize(X), 2),
    "shardings": lambda j, t: j.jit(
        t.restore, in_shardings=None,
        out_shardings=j.sharding.SingleDeviceSharding(j.devices()[0]))(t.value),
    "closed over": lambda j, t: (j.jit(lambda: t.restore(t.value))(),
                                 t.restore(j.jit(lambda: t.value)())),
    "types": lambda j, t: (str(j.typeof(t.value)), str(j.eval_shape(t.quantize, X)),
                           j.eval_shape(t.restore, t.value).shape,
                           str(j.eval_shape(lambda v: {"v": v}, t.value))),
    "of a tracer": lambda j, t: j.jit(lambda v: [v.rows, len(str(v)), str(j.typeof(v))][0])(
        t.value),
    "attribute of the type's own": lambda j, t: j.jit(lambda v: len(v.colour))(t.value),
    "method of a tracer": lambda j, t: j.jit(lambda v: v.restored())(t.value),
    "leaves": lambda j, t: (len(j.tree.leaves({"v": t.value, "x": 1})),
                            t.restore(j.block_until_ready(t.value))),
    "branches": lambda j, t: t.restore(j.lax.cond(
        X[0, 0] > 0, lambda: t.value, lambda: t.quantize(X + 1))),
    "fori_loop": lambda j, t: t.restore(j.lax.fori_loop(
        0, 3, lambda i, v: t.quantize(2 * t.restore(v)), t.value)),
    "while_loop": lambda j, t: t.restore(j.lax.while_loop(
        lambda v: t.restore(v).sum() < 20, lambda v: t.quantize(2 * t.restore(v)),
        t.quantize(np.abs(X)))),
    "carried": lambda j, t: t.restore(j.lax.scan(
        lambda v, x: (t.quantize(t.restore(v) + x), None), t.value, X)[0]),
    "stacked": lambda j, t: t.restore(j.lax.scan(lambda c, x: (c, t.quantize(x)), 0.0, X)[1]),
    "stacked in jit": lambda j, t: j.jit(lambda x: t.restore(j.lax.scan(
        lambda c, x: (c, t.quantize(x)), 0.0, x)[1]))(X),
    "gone over": lambda j, t: j.lax.scan(
        lambda c, v: (c + t.restore(v).sum(), t.restore(v)), 0.0, t.value, length=2),
    "grad of gone over": lambda j, t: j.grad(lambda x: j.lax.scan(
        lambda c, v: (c + t.restore(v).sum(), None), 0.0, t.quantize(x), length=2)[0])(X),
    "grad of stacked": lambda j, t: j.grad(lambda x: (t.restore(j.lax.scan(
        lambda c, x: (c, t.quantize(x)), 0.0, x)[1]) * X).sum())(X),
    "map": lambda j, t: j.lax.map(t.through, X),
    "vmap": lambda j, t: j.vmap(t.through)(X),
    "vmap of jit": lambda j, t: (j.vmap(j.jit(t.through))(X), j.vmap(
        lambda x: j.jit(t.restore)(j.jit(t.quantize)(x)))(X)),
    "jit of vmap": lambda j, t: j.jit(j.vmap(t.through))(X),
    "vmap of vmap": lambda j, t: j.vmap(j.vmap(t.through))(np.stack([X, X + 1])),
    "vmap by name": lambda j, t: j.vmap(
        lambda x: j.lax.psum(t.through(x), "i"), axis_name="i")(X),
    "vmap of an argument": lambda j, t: j.vmap(
        t.restore, in_axes=t.along(0), axis_size=2)(t.value),
    "vmap of arguments": lambda j, t: j.vmap(
        lambda tree, x: t.restore(tree["v"]) + x, in_axes=({"v": t.along(0)}, 0))(
            {"v": t.value}, X),
    "vmap of a result": lambda j, t: t.restore(j.vmap(t.quantize, out_axes=t.along(0))(X)),
    "vmap of results": lambda j, t: [x if n == "x" else t.restore(x) for n, x in j.vmap(
        lambda x: {"v": t.quantize(x), "x": 2 * x},
        out_axes={"v": t.along(0), "x": 1})(X).items()],
    "vmap with sums": lambda j, t: t.restore(j.vmap(
        lambda x: (t.quantize(x), x), out_axes=(t.along(0), None), sum_match=True)(X)[0]),
    "vmap in and out": lambda j, t: t.restore(j.vmap(
        lambda v: t.quantize(t.restore(v) + 1), in_axes=t.along(0), out_axes=t.along(0),
        axis_size=2)(t.value)),
    "vmap of the same value": lambda j, t: t.restore(j.vmap(
        lambda x, v: v, in_axes=(0, None), out_axes=None)(X, t.value)),
    "types under vmap": lambda j, t: j.vmap(
        lambda v: t.restore(v) * j.typeof(v).shape[0], in_axes=t.along(0), axis_size=2)(t.value),
    "grad of vmap": lambda j, t: j.grad(lambda x: (j.vmap(t.through)(x) * X).sum())(X),
    "vmap of grad": lambda j, t: j.vmap(j.grad(lambda x, y: (t.through(x) * y).sum()))(X, X),
    "vmap of grad by a value": lambda j, t: j.vmap(
        j.grad(lambda v: t.restore(v).sum()), in_axes=t.along(0), axis_size=2)(t.value),
    "grad of vmap by a value": lambda j, t: j.grad(lambda v: (j.vmap(
        t.restore, in_axes=t.along(0), axis_size=2)(v) * X).sum())(t.value),
    "jacrev": lambda j, t: j.jacrev(t.through)(X[0]),
    "vjp": lambda j, t: j.vjp(t.restore, t.value)[1](X + 0),
    "vjp of a result": lambda j, t: j.vjp(t.quantize, X)[1](j.numpy.asarray(X)),
    "vjp of results": lambda j, t: j.vjp(lambda x: {"v": t.quantize(x), "x": x}, X)[1](
        {"v": X, "x": X}),
    "jvp": lambda j, t: j.jvp(t.restore, (t.value,), (j.numpy.asarray(X),))[1],
    "jvp of a result": lambda j, t: j.jvp(t.quantize, (X,), (j.numpy.asarray(X),))[1],
    "linearize": lambda j, t: j.linearize(t.restore, t.value)[1](X),
    "linearize of a result": lambda j, t: j.linearize(
        lambda x: (t.quantize(x), x), X)[1](X)[0],
    "jit of jvp": lambda j, t: j.jit(lambda x: j.jvp(t.quantize, (x,), (x,))[1])(X),
    "rules from jvp": lambda j, t: [
        j.jvp(t.sum, (t.value, X), (X, X))[1], j.linearize(t.sum, t.value, X)[1](X, X),
        j.grad(lambda v, x: t.sum(v, x).sum(), (0, 1))(t.value, X),
        j.jit(j.grad(lambda x: t.sum(t.quantize(x), x).sum()))(X),
        j.jit(lambda x: j.linearize(lambda y: t.sum(t.quantize(y), x), x)[1](x))(X)],
    "checkpoint": lambda j, t: j.grad(j.checkpoint(lambda x: t.through(x).sum()))(X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_jax(name):
    agree(lambda j: PROGRAMS[name](j, Types(j)))


@pytest.mark.parametrize("run", [
    lambda j, t: j.vmap(t.restore)(t.value),
    lambda j, t: j.vmap(t.quantize)(X),
    lambda j, t: j.vmap(lambda x: {"a": t.quantize(x)}, out_axes=None)(X),
    lambda j, t: j.lax.scan(lambda c, v: (c, None), 0.0, t.value),
    lambda j, t: j.jit(lambda v: v._counts)(t.value).shape,
], ids=["in_axes", "out_axes", "no out_axes", "scan without length", "attribute"])
def test_errors_are_those_of_jax(run):
    assert_same_error(lambda j: run(j, Types(j)))


@pytest.mark.parametrize("run", [
    lambda j, take, value: take(value),
    lambda j, take, value: j.jit(take)(value),
    lambda j, take, value: j.grad(take)(value),
    lambda j, take, value: j.vmap(take, in_axes=hijax_of(j).MappingSpec(), axis_size=2)(value),
    lambda j, take, value: j.lax.scan(lambda c, v: (c, take(v)), 0.0, value, length=2),
    lambda j, take, value: str(j.typeof(value)),
    lambda j, take, value: hash(hijax_of(j).HiType()),
    lambda j, take, value: hijax_of(j).HiType() == hijax_of(j).HiType(),
    *[lambda j, take, value, name=name, count=count: getattr(j.typeof(value), name)(*range(count))
      for name, count in {"lo_ty": 0, "lower_val": 1, "raise_val": 2, "to_tangent_aval": 0,
                          "to_ct_aval": 0, "vspace_zero": 0, "vspace_add": 2, "dec_rank": 2,
                          "inc_rank": 2, "leading_axis_spec": 0, "shard": 4, "unshard": 3,
                          "nospec": 3, "reshard": 1}.items()],
    *[lambda j, take, value, name=name: getattr(hijax_of(j).HiPspec(), name)()
      for name in ("to_lo", "to_tangent_spec", "to_ct_spec")],
])
def test_what_a_type_must_define(run):
    """Each is asked for where it is needed."""
    def outcome(j):
        hijax = hijax_of(j)

        class Bare(hijax.HiType):
            def __hash__(self):
                return 0

            def __eq__(self, other):
                return isinstance(other, Bare)

        class Value:
            pass

        hijax.register_hitype(Value, lambda value: Bare())

        class Take(hijax.HiPrim):
            def __init__(self):
                self.in_avals, self.params = (Bare(),), {}
                self.out_aval = hijax.ShapedArray((), np.dtype("float32"))
                super().__init__()

            def expand(self, value):
                return j.numpy.float32(1)

        try:
            return run(j, Take(), Value())
        except NotImplementedError as error:
            return str(error)

    agree(outcome)


@pytest.mark.parametrize("call", [
    lambda f, value: maxjax.make_jaxpr(f)(value), lambda f, value: maxjax.jit(f).lower(value),
    lambda f, value: maxjax.jit(f).trace(value)])
def test_no_jaxpr_has_such_a_type(call):
    t = Types(maxjax)
    with pytest.raises(NotImplementedError, match="a jaxpr, or ahead of time"):
        call(t.restore, t.value)


def test_a_jaxpr_shows_the_arrays():
    """JAX's shows the value."""
    t = Types(maxjax)
    shown = str(maxjax.make_jaxpr(t.through)(X))
    assert "b:i8[2,3] c:f32[2] d:f32[2,3] = Quantize a" in shown and "= Restore b c d" in shown


@pytest.mark.parametrize("loop", [
    lambda t, x: maxjax.lax.scan(
        lambda v, _: (t.quantize(t.restore(v)), None), t.quantize(x), None, length=2)[0],
    lambda t, x: maxjax.lax.cond(x[0] > 1, lambda: t.quantize(x), lambda: t.quantize(x + 1))],
    ids=["scan", "cond"])
def test_loops_and_branches_under_vmap_are_refused(loop):
    """JAX fails on them with errors of its own machinery."""
    t = Types(maxjax)
    with pytest.raises(NotImplementedError, match="of a value of a type above arrays .* vmap"):
        maxjax.vmap(lambda x: t.restore(loop(t, x)))(X)


def test_what_is_not_stacked_is_refused():
    hijax = maxjax.experimental.hijax

    class Odd(type(maxjax.typeof(Types(maxjax).value))):
        def leading_axis_spec(self):
            return Types(maxjax).along(1)

    class Value:
        def __init__(self, of):
            self.counts, self.scales = of.counts, of.scales

    hijax.register_hitype(Value, lambda value: Odd(value.counts.shape))
    value = Value(Types(maxjax).value)
    with pytest.raises(NotImplementedError, match="whose tangents are not stacked"):
        maxjax.lax.scan(lambda c, v: (c, None), 0.0, value, length=3)


def test_nothing_leaks():
    t = Types(maxjax)
    with maxjax.checking_leaks():
        maxjax.jit(lambda v: t.quantize(t.restore(v)))(t.value)
        maxjax.vmap(t.quantize, out_axes=t.along(0))(X)
        maxjax.grad(lambda x: maxjax.vmap(t.through)(x).sum())(X)


@pytest.mark.parametrize("name", [
    "hijax.HiPrimitive", "hijax.MutableHiType", "hijax.VJPHiPrimitive", "hijax.AvalQDD",
    "hijax.AvalMutableQDD", "cur_qdd"])
def test_what_jax_no_longer_has(name):
    module, _, name = f"experimental.{name}".rpartition(".")

    def message(j):
        with pytest.raises(AttributeError) as caught:
            getattr(importlib.import_module(f"{j.__name__}.{module}"), name)
        return str(caught.value).replace("maxjax", "jax")

    agree(message)
