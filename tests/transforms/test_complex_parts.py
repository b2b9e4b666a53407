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
Z = RNG.normal(size=(6, 8)) + 1j * RNG.normal(size=(6, 8))
PARTS = (0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan)
ODD = np.array([complex(a, b) for a, b in itertools.product(PARTS, PARTS)])


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)


@pytest.fixture(autouse=True, params=(np.complex64, np.complex128))
def dtype(request):
    with maxjax.enable_x64(request.param is np.complex128):
        yield request.param


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
            jnp.cumsum(z, 1), z.sum(0), z.astype(jnp.float32), z.astype(complex) + 1,
            z.astype(bool))


def mixed_with_the_host(z):
    def step(z, _):
        z = z * jnp.exp(0.1j * jnp.arange(8))
        z = jnp.fft.ifft(jnp.fft.fft(z) * (0.5 + 0.5j)) - 0.1 * z
        return z, jnp.abs(z) ** 2
    return lax.scan(step, z, None, length=4)


def systems_in_loops(z):
    """LAPACK takes whole numbers, also those that are the same for all iterations."""
    h, y, points = z[:, :6] + 8 * jnp.eye(6, dtype=z.dtype), z[:, 6:], z[0]

    def at(total, point):
        x = jnp.linalg.solve(point * jnp.eye(6, dtype=z.real.dtype) - h, y)
        return lax.cond(point.real > 0, lambda: total + x,
                        lambda: total - jnp.linalg.solve(h, x)), x[0]
    return lax.scan(at, y * 0, points), lax.fori_loop(
        0, 3, lambda i, y: jnp.linalg.solve(h, y) + 1j, y)


def decompositions(z):
    h = z[:, :6]
    stack = jnp.stack([h, h + 3j])
    return (jnp.linalg.inv(stack) * 1j, jnp.linalg.det(stack), jnp.linalg.slogdet(stack),
            jnp.linalg.qr(stack), [x + 1j for x in jnp.linalg.qr(z, "complete")],
            jnp.linalg.cholesky(h @ h.conj().T + 9 * jnp.eye(6, dtype=z.dtype)) * 1j,
            lax.linalg.triangular_solve(h, z, left_side=True, conjugate_a=True) * 1j,
            jnp.prod(z, 0), jnp.prod(z), lax.linalg.lu(1j * stack))


def derivative(z):
    def loss(x):
        size = jnp.sum(jnp.abs(jnp.exp(1j * x) @ z) ** 2)
        return size + jnp.sum(jnp.real(x * 2j) - jnp.log(x + 1j).imag)
    return maxjax.value_and_grad(loss)(jnp.arange(6.0))


def behind_barriers(z):
    """Complex numbers and others behind one barrier, and behind those of ``checkpoint``."""
    w, n, r = lax.optimization_barrier((z * 2j, jnp.arange(8), jnp.abs(z)))

    def size(z, n):
        w = lax.fori_loop(0, 2, lambda i, c: jnp.sin(c) * n, z)
        return (jnp.abs(w[n % 4]) ** 2).sum()
    return w + n * r, *maxjax.value_and_grad(maxjax.checkpoint(size))(z / 4, n)


@pytest.mark.parametrize("function", (
    in_loops, in_while, in_branches, products, movement, derivative, decompositions,
    behind_barriers),
    ids=lambda function: function.__name__)
def test_loops_carry_parts(function, dtype):
    item = check(function, Z.astype(dtype))
    loops = [eqn for eqn in every_equation(item.program.opened) if eqn.primitive.inner.control_flow]
    for loop in loops:
        kinds = {atom.aval.dtype for atom in (*loop.invars, *loop.outvars)}
        assert not kinds.intersection((np.dtype(np.complex64), np.dtype(np.complex128)))


@pytest.mark.parametrize("function", (mixed_with_the_host, systems_in_loops),
    ids=lambda function: function.__name__)
def test_whole_numbers_in_loops(function, dtype):
    check(function, Z.astype(dtype))


# Steps of random programs: of a matrix (6, 6), a vector (6), and a real number.
STEPS = (
    lambda z, v, r: (z @ z / (1 + jnp.abs(z).max()), v, r),
    lambda z, v, r: (z, z @ v / (1 + jnp.abs(v).max()), r + jnp.abs(v).sum()),
    lambda z, v, r: (jnp.linalg.solve(z + 9 * jnp.eye(6, dtype=z.dtype), z), v, r),
    lambda z, v, r: (z, jnp.linalg.solve(z + 9 * jnp.eye(6, dtype=z.dtype), v[:, None])[:, 0], r),
    lambda z, v, r: (z.at[1].set(v).at[:, 2].multiply(0.5j), v[::-1], jnp.real(z).mean()),
    lambda z, v, r: (jnp.where(jnp.abs(z) > r, z.conj().T, z - 1j), v, jnp.sin(r)),
    lambda z, v, r: (z, jnp.exp(1j * v.real) * jnp.sqrt(v), jnp.angle(v[2])),
    lambda z, v, r: (z / (2 + jnp.cos(z.imag)), v / (v.conj() + 3), jnp.tanh(r)),
    lambda z, v, r: (jnp.roll(z, 2, 1) * r, jnp.concatenate([v[3:], v[:3]]), r),
    lambda z, v, r: (jnp.linalg.qr(z + jnp.eye(6, dtype=z.dtype))[0], jnp.cumsum(v) / 3, r),
    lambda z, v, r: (lax.cond(r > 0, lambda: z * v, lambda: z.T + v), v + r, -r),
    lambda z, v, r: lax.fori_loop(0, 3, lambda i, c: (
        c[0].at[i].add(c[1] * 0.1), c[1].at[i].set(c[0][i, i]), c[2] * 0.9), (z, v, r)),
)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed, dtype):
    """Steps in any order, some of them in a loop that stacks what it passes."""
    random = np.random.default_rng(seed)
    chosen = [STEPS[n] for n in random.integers(0, len(STEPS), 6)]

    def steps(carry):
        for step in chosen[2:]:
            z, v, r = step(*carry)
            # Magnitudes near one: what is chaotic would amplify rounding.
            carry = (z / (1 + jnp.abs(z)), v / (1 + jnp.abs(v)),
                     jnp.asarray(r / (1 + jnp.abs(r)), carry[2].dtype))
        return carry

    def program(z, v, r):
        carry = chosen[1](*chosen[0](z, v, r))
        carry = (carry[0], carry[1], jnp.asarray(carry[2], r.dtype))
        last, passed = lax.scan(lambda c, _: ((new := steps(c)), new[1]), carry, None, length=3)
        return *last, passed

    z = Z[:, :6].astype(dtype)
    item = planned(program, z, z[0] + 1, z.real[1, 1])
    item.tolerance = "loose"
    mojo_programs.check(item)


@pytest.mark.parametrize("name", (
    "multiply", "divide", "subtract", "not_equal", "power", "maximum", "minimum"))
def test_two_odd_numbers(name, dtype):
    odd = ODD.astype(dtype)
    check(getattr(jnp, name), *(x.copy() for x in np.meshgrid(odd, odd)))


@pytest.mark.parametrize("number", (*ODD, 4, -0.5, 2 - 7j, 1e-30 + 1e30j))
def test_quotients_with_a_number_of_the_program(number, dtype):
    """Questions about a constant divisor are answered before anything is computed."""
    odd, number = ODD.astype(dtype), dtype(number)
    check(lambda x: (x / number, number / x), odd)
    if np.isfinite(number) and number:
        by_variable = planned(lambda x, y: x / y, odd, odd)
        by_constant = planned(lambda x: x / number, odd)
        assert equation_count(by_constant) < equation_count(by_variable) / 2


def equation_count(item):
    return len(list(every_equation(item.program.opened)))


def test_whole_numbers_are_moved(dtype):
    """By one movement, what is only moved; by an index, what is computed with afterwards."""
    z = np.tile(Z.astype(dtype), (20, 20))
    item = check(lambda z: jnp.concatenate([z.T[::-1], z.T]), z)
    steps = [step for piece in item.pieces for step in piece.plan.tape.steps]
    assert dtype is np.complex128 or len(steps) == 2
    check(lambda z: (z.T[::-1] + z.T, z.T, z.T * 2), z)
    check(lambda z: (lax.dynamic_slice(z[1:], (2, z.real[0, 0].astype(int)), (3, 4)),
                     jnp.broadcast_to(z[0], (3, 5, 160)), jnp.squeeze(z[:1, ::2], 0)), z)


@pytest.mark.parametrize("name", (
    "abs", "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sign", "square",
    "conj", "negative", "reciprocal", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh",
    "exp2", "expm1", "log1p", "log2", "logistic", "rsqrt"))
def test_odd_numbers(name, dtype):
    """Signs of zeros, infinities and NaN are those of tier 0, which JAX's decide."""
    function = getattr(lax if name in ("logistic", "rsqrt") else jnp, name)
    check(function, ODD.astype(dtype))
    most = 18 if dtype is np.complex64 else 150
    is_exponential = name in (
        "exp", "exp2", "expm1", "logistic", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    check(function, (Z if is_exponential else 10.0 ** RNG.uniform(-most, most, 500) * np.exp(
        6j * RNG.random(500))).astype(dtype))


@pytest.mark.parametrize("name", ("abs", "log", "sqrt"))
@pytest.mark.parametrize("sizes", (
    10.0 ** RNG.uniform(-300, 308, 2000), 10.0 ** RNG.uniform(-303, -290, 500),
    1 + 10.0 ** RNG.uniform(-16, -1, 2000), 1 - 10.0 ** RNG.uniform(-16, -1, 2000)),
    ids=("any", "small", "above one", "below one"))
def test_sizes_whose_squares_lose_digits(name, sizes, dtype):
    """In double precision: where squares overflow or underflow, and logarithms are near zero."""
    with maxjax.enable_x64():
        item = check(getattr(jnp, name), (sizes * np.exp(7j * RNG.random(len(sizes)))))
    result, = leaves(mojo_programs.run(item, item.values))
    reference = getattr(np, name)(item.values[-1].astype(np.clongdouble))
    for part in ("real", "imag"):
        exact = getattr(reference, part)
        wrong = np.abs(getattr(result, part) - exact)
        assert np.all(wrong <= 4 * np.spacing(np.abs(exact).astype(np.float64)) + 2e-32)


AROUND = 10.0 ** RNG.uniform(-14, -1, 1000) * np.exp(7j * RNG.random(1000))


@pytest.mark.parametrize("name", (
    "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"))
@pytest.mark.parametrize("points", (
    1 + AROUND, -1 + AROUND, 1j + AROUND, -1j + AROUND,
    10.0 ** RNG.uniform(-30, 30, 1000) * np.exp(7j * RNG.random(1000)),
    RNG.uniform(-3, 3, 1000) + 1j * 10.0 ** RNG.uniform(-30, -5, 1000),
    10.0 ** RNG.uniform(-30, -5, 1000) + 1j * RNG.uniform(-3, 3, 1000)),
    ids=("1", "-1", "i", "-i", "any", "axis", "imaginary axis"))
def test_inverse_functions_near_branch_points(name, points, dtype):
    item = check(getattr(jnp, name), points.astype(dtype))
    result, = leaves(mojo_programs.run(item, item.values))
    reference = getattr(np, name)(item.values[-1].astype(np.clongdouble))
    for part in ("real", "imag"):
        exact = getattr(reference, part)
        rounded = np.abs(exact).astype(result.real.dtype)
        wrong = np.abs(getattr(result, part) - exact)
        assert np.all(wrong <= (0.51 if dtype is np.complex64 else 4) * np.spacing(rounded))


@pytest.mark.parametrize("exponent", (2, 0.5, -1.5, 1 + 2j, 0, 3j))
def test_powers(exponent, dtype):
    sizes = 10.0 ** RNG.uniform(-5, 5, 500) * np.exp(7j * RNG.random(500))
    check(lambda z: (z ** exponent, jnp.asarray(exponent, z.dtype) ** (z / (1 + jnp.abs(z)))),
          sizes.astype(dtype))
    check(lambda z: lax.pow(z, jnp.arange(48).reshape(z.shape) % 7), Z.astype(dtype))


def test_integer_powers_by_parts(dtype):
    for power in (-3, -1, 0, 1, 2, 5):
        check(lambda z, power=power: lax.integer_pow(z, power), Z.astype(dtype))


def test_scalars_and_no_elements(dtype):
    check(lambda z: (z * 2j, z + jnp.zeros(3), jnp.abs(z), z == 1), dtype(1 - 1j))
    check(lambda z: (z * 2j, z.sum(0), jnp.abs(z), z.T @ z), Z[:0].astype(dtype))


@pytest.mark.parametrize("function", (
    lambda x, y: x * y + x, lambda x, y: (x * 2j).conj() - y, lambda x, y: jnp.where(
        jnp.real(x) > 1, x * y, y)))
def test_both_parts_are_computed_together(function, dtype):
    """Operands are read once, and the result is written where it is to be."""
    z = np.tile(Z.astype(dtype), (100, 8))
    item = check(function, z, z + 1)
    plan, = [piece.plan for piece in item.pieces]
    assert len(plan.codes) == 1 and len(plan.tape.steps) == 1


def test_arguments_and_results(dtype):
    """They stay whole: what is only passed on is not taken apart."""
    z = Z.astype(dtype)
    item = check(lambda z, x: (z, z.T, z + 1, x, z), z, z.real.copy())
    assert [x.dtype for x in leaves(mojo_programs.run(item, item.values))] == [
        dtype] * 3 + [z.real.dtype, dtype]


@pytest.mark.parametrize("wanted", ["float", "complex"])
@pytest.mark.parametrize("real", [(), (0,), (1,)])
def test_the_real_part_of_a_product(real, wanted, dtype):
    z = Z.astype(dtype)
    operands = [z.real.copy() if number in real else z for number in range(2)]
    check(lambda x, y: lax.dot_general(
        x, y, (((1,), (1,)), ((), ())), preferred_element_type=wanted), *operands)


def test_both_precisions():
    """Each part has the precision of what is computed."""
    with maxjax.enable_x64():
        single = Z.astype(np.complex64)
        check(lambda x, y: (x + y, x @ y.T, x.astype(y.dtype) * 2j, (x * y).astype(x.dtype),
                            jnp.where(x == y, x, 1j), y.at[0].set(x[1])), single, Z)


def test_what_has_no_rules_stays_whole(dtype):
    """A program that the host would compute in most steps."""
    item = check(lambda z: jnp.sort(jnp.cumprod(z, 1), 0) * 2, Z.astype(dtype), host=True)
    assert len(item.pieces) == 1
