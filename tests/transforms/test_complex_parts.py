"""Complex numbers as pairs of real ones, as the Mojo backend computes with them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support import mojo_programs
from tests.support.harness import leaves

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._ir.jaxpr import every_equation
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

RNG = np.random.default_rng(7)
Z = (RNG.normal(size=(6, 8)) + 1j * RNG.normal(size=(6, 8))).astype(np.complex64)
PARTS = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)
ODD = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)], np.complex64)


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)


def planned(function, *args):
    """The checked plans of a program."""
    program = Program(maxjax.jit(function)._lookup(args, {}).closed)
    item = mojo_programs.Item("", program, [*program.consts, *map(np.asarray, args)])
    item.plan()
    assert item.problem is None, item.problem
    return item


def check(function, *args, host=False):
    """A program runs natively, and gives what tier 0 gives."""
    item = planned(function, *args)
    assert any(piece.plan is None for piece in item.pieces) is host, item.reasons
    mojo_programs.check(item)
    return item


def in_loops(z):
    def step(carry, row):
        z, count = carry
        z = jnp.where(jnp.abs(z) < 3, z * z + row, z)
        return (z, count + (jnp.abs(z) < 3)), (z.sum(), count)
    return lax.scan(step, (z[0] * 0, jnp.zeros(8, jnp.int32)), z)


def in_while(z):
    return lax.while_loop(lambda c: jnp.abs(c[0]).sum() < 1e4, lambda c: (
        c[0] * (1.1 + 0.3j), jnp.conj(c[1]), c[2] + 1), (z, z[0], 0))


def in_branches(z):
    def branch(i, z):
        return lax.switch(i, (lambda z: z * 1j, lambda z: (z.T @ z)[:6], lambda z: z / (z + 1)), z)
    return lax.fori_loop(0, 3, branch, z)


def products(z):
    real = jnp.real(z)
    return (z @ z.conj().T, jnp.einsum("ij,kj->ik", real, z), jnp.tensordot(z, real, 2),
            jnp.vdot(z, z), jnp.outer(z[0], z[1]))


def movement(z):
    return (jnp.concatenate([z, z[::-1]], 1).T, jnp.pad(z, 1, constant_values=2 - 1j),
            z.reshape(2, 3, 8).transpose(2, 0, 1), jnp.stack([z[0], z[1]]), jnp.tile(z[0], 3),
            z.at[1, ::2].set(3j).at[0].add(z[2]), jnp.roll(z, 3, 1), jnp.split(z, 2),
            jnp.where(jnp.real(z) > 0, z, 0), lax.dynamic_slice(z, (1, 2), (3, 4)),
            z.at[np.array([1, 99])].get(mode="fill"),
            z.at[np.array([1, 99])].get(mode="fill", fill_value=5 - 2j),
            jnp.cumsum(z, 1), z.sum(0), z.astype(jnp.float32), z.astype(bool))


def mixed_with_the_host(z):
    def step(z, _):
        z = z * jnp.exp(0.1j * jnp.arange(8))
        z = jnp.fft.ifft(jnp.fft.fft(z) * (0.5 + 0.5j)) - 0.1 * z
        return z, jnp.abs(z) ** 2
    return lax.scan(step, z, None, length=4)


def derivative(z):
    def loss(x):
        size = jnp.sum(jnp.abs(jnp.exp(1j * x) @ z) ** 2)
        return size + jnp.sum(jnp.real(x * 2j) - jnp.log(x + 1j).imag)
    return maxjax.value_and_grad(loss)(jnp.arange(6.0))


@pytest.mark.parametrize("function", (
    in_loops, in_while, in_branches, products, movement, mixed_with_the_host, derivative),
    ids=lambda function: function.__name__)
def test_programs(function):
    item = check(function, Z)
    loops = [eqn for eqn in every_equation(item.program.opened) if eqn.primitive.control_flow]
    for loop in loops:
        kinds = {atom.aval.dtype for atom in (*loop.invars, *loop.outvars)}
        assert np.dtype(np.complex64) not in kinds


@pytest.mark.parametrize("name", ("multiply", "divide", "subtract", "not_equal"))
def test_two_odd_numbers(name):
    check(getattr(jnp, name), *(x.copy() for x in np.meshgrid(ODD, ODD)))


@pytest.mark.parametrize("name", (
    "abs", "exp", "log", "sqrt", "sin", "cos", "sinh", "cosh", "sign", "square", "conj", "negative",
    "reciprocal"))
def test_odd_numbers(name):
    """Signs of zeros, infinities and NaN are those of tier 0, which JAX's decide."""
    function = getattr(jnp, name)
    check(function, ODD)
    check(function, (10.0 ** RNG.uniform(-18, 18, 500) * np.exp(6j * RNG.random(500))).astype(
        np.complex64) if name not in ("exp", "sin", "cos", "sinh", "cosh") else Z)


def test_powers():
    for power in (-3, -1, 0, 1, 2, 5):
        check(lambda z, power=power: lax.integer_pow(z, power), Z)


def test_scalars_and_no_elements():
    check(lambda z: (z * 2j, z + jnp.zeros(3), jnp.abs(z), z == 1), np.complex64(1 - 1j))
    check(lambda z: (z * 2j, z.sum(0), jnp.abs(z), z.T @ z), Z[:0])


def test_arguments_and_results():
    """They stay whole: what is only passed on is not taken apart."""
    item = check(lambda z, x: (z, z.T, z + 1, x, z), Z, Z.real.copy())
    assert [x.dtype for x in leaves(mojo_programs.run(item, item.values))] == [
        np.complex64] * 3 + [np.float32, np.complex64]


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("operands", [(Z, Z), (Z, Z.real), (Z.real, Z)])
def test_the_real_part_of_a_product(operands, dtype):
    check(lambda x, y: lax.dot_general(
        x, y, (((1,), (1,)), ((), ())), preferred_element_type=dtype), *operands)


def test_what_has_no_rules_stays_whole():
    """A program that the host would compute in most steps."""
    item = check(lambda z: jnp.arctanh(jnp.tan(z)) * 2, Z, host=True)
    assert len(item.pieces) == 1
