"""Values of a user's types whose tangents are values of such types too."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import numpy as np
import pytest

import maxjax
from tests.support.against_jax import agree, assert_same_error


class Pairs:
    """Pairs of arrays, whose tangents are pairs."""

    def __init__(self, j, tangents=lambda aval: aval):
        hijax = importlib.import_module(f"{j.__name__}.experimental.hijax")

        @dataclasses.dataclass(frozen=True)
        class PairType(hijax.HiType):
            first: Any
            second: Any

            def lo_ty(self):
                return [self.first, self.second]

            def lower_val(self, pair):
                return [pair.first, pair.second]

            def raise_val(self, first, second):
                return Pair(first, second)

            def to_tangent_aval(self):
                return tangents(self)

            def vspace_zero(self):
                return Pair(*[j.numpy.zeros(low.shape, low.dtype) for low in self.lo_ty()])

            def vspace_add(self, one, other):
                return make(*[x + y for x, y in zip(take(one), take(other), strict=True)])

            def _getitem(self, pair, number):
                return take(pair)[number]

            def _mul(self, pair, factor):
                return make(*[x * factor for x in take(pair)])

            def _len(self, pair):
                return 2

            @hijax.aval_property
            def swapped(pair):
                return make(*take(pair)[::-1])

        @dataclasses.dataclass(frozen=True)
        class Pair:
            first: Any
            second: Any

        hijax.register_hitype(
            Pair, lambda pair: PairType(j.typeof(pair.first), j.typeof(pair.second)))

        class Make(hijax.HiPrim):
            def __init__(self, first, second):
                self.in_avals, self.out_aval = (first, second), PairType(first, second)
                self.params = {}
                super().__init__()

            def expand(self, first, second):
                return Pair(first, second)

            def jvp(self, primals, tangents):
                return self(*primals), self(*map(hijax.instantiate_zeros, tangents))

            def vjp_fwd(self, nonzeros, first, second):
                return self(first, second), None

            def vjp_bwd_retval(self, residuals, cotangent):
                return take(cotangent)

            def transpose(self, cotangent, *accums):
                for accum, x in zip(accums, take(cotangent), strict=True):
                    if isinstance(accum, hijax.GradAccum):
                        accum.accum(x)

        class Take(hijax.HiPrim):
            def __init__(self, pair):
                self.in_avals, self.out_aval = (pair,), tuple(pair.lo_ty())
                self.params = {}
                super().__init__()

            def expand(self, pair):
                return pair.first, pair.second

            def jvp(self, primals, tangents):
                return self(*primals), self(*tangents)

            def vjp_fwd(self, nonzeros, pair):
                return self(pair), None

            def vjp_bwd_retval(self, residuals, cotangents):
                return (make(*map(hijax.instantiate_zeros, cotangents)),)

            def transpose(self, cotangents, accum):
                accum.accum(make(*map(hijax.instantiate_zeros, cotangents)))

        class Set(hijax.HiPrim):
            """What cannot be part of a program."""

            def __init__(self, pair):
                self.in_avals, self.out_aval, self.params = (pair,), (), {}
                super().__init__()

            def expand(self, pair):
                return ()

            def staging(self, trace, source_info, *args):
                raise ValueError("pairs cannot be set in a program")

        def make(first, second):
            return Make(j.typeof(first), j.typeof(second))(first, second)

        def take(pair):
            return Take(j.typeof(pair))(pair)

        self.make, self.take = make, take
        self.set = lambda pair: Set(j.typeof(pair))(pair)
        self.pair = make(j.numpy.float32([1, 2]), j.numpy.float32(3))
        self.other = make(j.numpy.float32([0.5, -1]), j.numpy.float32(4))


def product(p):
    def of(pair):
        first, second = p.take(pair)
        return (first ** 2).sum() * second

    return of


def read(result):
    """A pair as its arrays."""
    return (result.first, result.second) if hasattr(result, "first") else result


CASES = {
    "grad": lambda j, p: j.grad(product(p))(p.pair),
    "grad of jit": lambda j, p: j.grad(j.jit(product(p)))(p.pair),
    "jit of grad": lambda j, p: j.jit(j.grad(product(p)))(p.pair),
    "value_and_grad": lambda j, p: j.value_and_grad(product(p))(p.pair)[1],
    "grad through a pair": lambda j, p: j.grad(
        lambda x: product(p)(p.make(x, 2 * x.sum())))(j.numpy.float32([1, 2])),
    "grad by one of two": lambda j, p: j.grad(
        lambda x: product(p)(p.make(j.numpy.float32([1, 2]), x)))(j.numpy.float32(5)),
    "grad of what it is used in twice": lambda j, p: j.grad(
        lambda pair: product(p)(pair) + 3 * p.take(pair)[1])(p.pair),
    "grad of a part": lambda j, p: j.grad(lambda pair: 3 * p.take(pair)[1])(p.pair),
    "second derivative": lambda j, p: j.grad(lambda x: p.take(j.grad(product(p))(
        p.make(x, x.sum())))[0].sum())(j.numpy.float32([1, 2])),
    "jvp": lambda j, p: j.jvp(product(p), (p.pair,), (p.other,)),
    "jvp of jit": lambda j, p: j.jvp(j.jit(product(p)), (p.pair,), (p.other,)),
    "jvp that gives a pair": lambda j, p: read(j.jvp(
        lambda x: p.make(x, x.sum()), (j.numpy.float32([1, 2]),), (j.numpy.float32([3, 4]),))[1]),
    "vjp": lambda j, p: j.vjp(product(p), p.pair)[1](j.numpy.float32(2))[0],
    "vjp of a pair": lambda j, p: j.vjp(
        lambda x: p.make(x, x.sum()), j.numpy.float32([1, 2]))[1](p.pair),
    "operators in jit": lambda j, p: j.jit(
        lambda pair: (pair[1], p.take(pair * 2.0)[0], len(pair), p.take(pair.swapped)[0]))(p.pair),
    "what a type has": lambda j, p: j.jit(lambda pair: pair[0] + pair.first.shape[0])(p.pair),
    "a traced pair": lambda j, p: j.jit(lambda pair: (
        j.numpy.float32(isinstance(pair, j.core.Tracer)), pair[0]))(p.pair),
    "set": lambda j, p: p.set(p.pair),
}


@pytest.mark.parametrize("name", CASES)
def test_as_in_jax(name):
    agree(lambda j: read(CASES[name](j, Pairs(j))))


@pytest.mark.parametrize("run", [
    lambda j, p: j.jit(lambda pair: p.set(pair))(p.pair),
    lambda j, p: j.jit(lambda x: (p.set(p.pair), x)[1])(1.0),
    lambda j, p: j.lax.scan(lambda c, _: (c, p.set(p.pair)), 0, None, length=3),
    lambda j, p: j.linearize(lambda x: p.make(x, x), 1.0)[1](1.0),
], ids=["jit", "closed over by jit", "closed over by scan", "linearize"])
def test_errors_are_those_of_jax(run):
    assert_same_error(lambda j: run(j, Pairs(j)))


@pytest.mark.parametrize("derivative", [
    lambda p: maxjax.grad(lambda x: product(p)(p.make(x, x.sum())))(np.ones(2, np.float32)),
    lambda p: maxjax.jvp(lambda x: p.take(p.make(x, x.sum())), *[(np.ones(2, np.float32),)] * 2),
    lambda p: maxjax.linearize(lambda x: p.make(x, x.sum()), np.ones(2, np.float32)),
    lambda p: maxjax.grad(product(p))(p.pair)], ids=["grad", "jvp", "linearize", "by a pair"])
def test_tangents_of_other_arrays_are_refused(derivative):
    """JAX has any type above arrays for tangents."""
    p = Pairs(maxjax, lambda aval: dataclasses.replace(aval, second=aval.first))
    with pytest.raises(NotImplementedError, match="whose tangents are neither an array nor"):
        derivative(p)
