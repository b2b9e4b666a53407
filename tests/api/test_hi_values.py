"""Values of types of a user's own, made and taken by primitives of a user's own."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
import pytest

import maxjax
from tests.support.against_jax import agree

X = np.array([[0.5, -1.25], [3.0, 2.0]], np.float32)


class Fixed:
    """Numbers in fixed point: integers and the power of two that they count."""

    def __init__(self, j):
        hijax = importlib.import_module(f"{j.__name__}.experimental.hijax")
        jnp = j.numpy

        @dataclasses.dataclass(frozen=True)
        class Number:
            count: Any
            unit: Any

        @dataclasses.dataclass(frozen=True)
        class NumberType(hijax.HiType):
            shape: tuple[int, ...]

            def lo_ty(self):
                return [hijax.ShapedArray(self.shape, np.dtype("int32")),
                        hijax.ShapedArray((), np.dtype("float32"))]

            def lower_val(self, number):
                return [number.count, number.unit]

            def raise_val(self, count, unit):
                return Number(count, unit)

            def to_tangent_aval(self):
                return hijax.ShapedArray(self.shape, np.dtype("float32"))

            def str_short(self, short_dtypes=False, mesh_axis_types=False):
                return f"fixed{list(self.shape)}"

            __repr__ = str_short

        hijax.register_hitype(Number, lambda number: NumberType(number.count.shape))

        class ToFixed(hijax.HiPrim):
            def __init__(self, x):
                self.in_avals, self.out_aval, self.params = (x,), NumberType(x.shape), {}
                super().__init__()

            def expand(self, x):
                return Number(jnp.round(x * 8).astype(np.int32), jnp.float32(0.125))

            def vjp_fwd(self, nonzeros, x):
                return self(x), None

            def vjp_bwd_retval(self, residuals, cotangent):
                return (2 * cotangent,)

            def jvp(self, primals, tangents):
                return self(*primals), 2 * tangents[0]

        class Product(hijax.HiPrim):
            def __init__(self, x, number):
                self.in_avals, self.out_aval, self.params = (x, number), x, {}
                super().__init__()

            def expand(self, x, number):
                return x * number.count * number.unit

            def vjp_fwd(self, nonzeros, x, number):
                return self(x, number), (x, number)

            def vjp_bwd_retval(self, residuals, cotangent):
                x, number = residuals
                return product(cotangent, number), cotangent * x

            def jvp(self, primals, tangents):
                x, number = primals
                return self(x, number), product(tangents[0], number) + tangents[1] * x

        def product(x, number):
            return Product(j.typeof(x), j.typeof(number))(x, number)

        self.fixed = lambda x: ToFixed(j.typeof(x))(x)
        self.product = product


def sum_of_squares(j, fixed):
    return lambda number: j.numpy.sum(fixed.product(j.numpy.ones((2, 2)), number) ** 2)


CASES = {
    "eager": lambda j, f: (str(j.typeof(f.fixed(X))), f.product(X, f.fixed(X))),
    "within jit": lambda j, f: j.jit(lambda x: f.product(x, f.fixed(x)))(X),
    "result of jit": lambda j, f: j.jit(f.fixed)(X).count,
    "argument of jit": lambda j, f: j.jit(lambda number: f.product(X, number))(f.fixed(X)),
    "closed over by jit": lambda j, f: (lambda number: j.jit(
        lambda x: f.product(x, number))(X))(f.fixed(X)),
    "through two jits": lambda j, f: j.jit(lambda x: f.product(x, j.jit(f.fixed)(x)))(X),
    "type in jit": lambda j, f: j.jit(lambda number: j.typeof(number).shape[0])(f.fixed(X)),
    "grad": lambda j, f: j.grad(lambda x: sum_of_squares(j, f)(f.fixed(x)))(X),
    "grad by a value": lambda j, f: j.grad(sum_of_squares(j, f))(f.fixed(X)),
    "grad by two": lambda j, f: j.grad(lambda x, number: j.numpy.sum(
        f.product(x, number) ** 2), (0, 1))(X, f.fixed(X)),
    "grad by a value in a tree": lambda j, f: j.grad(lambda tree: tree["x"] * sum_of_squares(j, f)(
        tree["number"]))({"x": 2.0, "number": f.fixed(X)}),
    "value_and_grad": lambda j, f: j.value_and_grad(sum_of_squares(j, f))(f.fixed(X)),
    "vjp": lambda j, f: j.vjp(sum_of_squares(j, f), f.fixed(X))[1](1.0),
    "jit of grad": lambda j, f: j.jit(j.grad(sum_of_squares(j, f)))(f.fixed(X)),
    "grad of jit": lambda j, f: j.grad(j.jit(sum_of_squares(j, f)))(f.fixed(X)),
    "grad through a result of jit": lambda j, f: j.grad(lambda x: sum_of_squares(j, f)(
        j.jit(f.fixed)(x)))(X),
    "jvp": lambda j, f: j.jvp(lambda x: f.product(x, f.fixed(x)), (X,), (X,)),
    "carry of scan": lambda j, f: j.lax.scan(lambda number, x: (f.fixed(f.product(x, number)), ()),
                                             f.fixed(X), np.stack([X, X]))[0].count,
    "carry of while": lambda j, f: j.lax.while_loop(
        lambda number: j.numpy.sum(f.product(X, number)) < 50.0,
        lambda number: f.fixed(f.product(2 * np.ones_like(X), number)), f.fixed(X)).count,
    "cond": lambda j, f: j.grad(lambda x: sum_of_squares(j, f)(j.lax.cond(
        x[0, 0] > 0, f.fixed, lambda x: f.fixed(2 * x), x)))(X),
}


@pytest.mark.parametrize("name", CASES)
def test_as_in_jax(name):
    agree(lambda j: CASES[name](j, Fixed(j)))


def test_what_is_refused():
    f = Fixed(maxjax)
    number = f.fixed(X)
    with pytest.raises(AttributeError, match="has no attribute count"):
        maxjax.jit(lambda number: number.count)(number)
    with pytest.raises(NotImplementedError, match="must implement `batch`"):
        maxjax.vmap(f.fixed)(X)


@pytest.mark.parametrize("pair", [lambda a, b: [a, b], lambda a, b: (a, b)], ids=["list", "tuple"])
def test_what_a_loop_gives_has_its_body_s_own_type(pair):
    """Also where values of such types could be among what it stacks."""
    def program(j):
        Fixed(j)
        return j.lax.scan(lambda c, x: pair(c + x, {"y": (c, None)}), 1.0, X[0])

    agree(program)
