"""Loop invariants: computed before the loop, with the same bits, and only where that is no loss."""

from __future__ import annotations

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._ir.control_flow import bodies_of
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, every_equation
from maxjax._transforms.simplify import inline_calls, simplify

RNG = np.random.default_rng(0)
A = RNG.standard_normal((6, 4)).astype(np.float32)
W = RNG.standard_normal(4).astype(np.float32)
X = RNG.standard_normal(4).astype(np.float32)


def names(closed: ClosedJaxpr) -> list[str]:
    return [eqn.primitive.name for eqn in closed.eqns]


def inside(closed: ClosedJaxpr) -> list[str]:
    """The primitives within the loops of a jaxpr."""
    return [eqn.primitive.name for outer in closed.eqns for body in bodies_of(outer)
            for eqn in every_equation(body)]


def check(function, *args) -> ClosedJaxpr:
    """The simplified jaxpr, after it has given the same bits as the equations one by one."""
    closed = maxjax.make_jaxpr(function)(*args)
    plain = interpreter(inline_calls(closed))(*map(np.asarray, args))
    simplified = simplify(closed)
    found = interpreter(simplified)(*map(np.asarray, args))
    for ours, theirs in zip(found, plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()
    return simplified


def loop(step, count=5):
    return lambda a, w, x: lax.fori_loop(0, count, lambda _, x: step(a, w, x), x)


def until(step, limit=5):
    return lambda a, w, x: lax.while_loop(
        lambda c: c[0] < limit, lambda c: (c[0] + 1, step(a, w, c[1])), (0, x))


@pytest.mark.parametrize("kind", [loop, until])
def test_a_product_leaves(kind):
    simplified = check(kind(lambda a, w, x: x + jnp.tanh(a @ w) @ a), A, W, X)
    assert "dot_general" not in inside(simplified) and "tanh" not in inside(simplified)
    assert names(simplified).count("dot_general") == 2


def test_both_loops_of_a_nest_are_left():
    def function(a, w, x):
        def outer(_, x):
            b = a * x           # of the outer iteration: leaves the inner loop only
            return lax.fori_loop(0, 3, lambda _, y: y + (a @ w) @ a + jnp.exp(b).sum(0), x)
        return lax.fori_loop(0, 3, outer, x)

    simplified = check(function, A, W, X)
    outer, = [body for eqn in simplified.eqns for body in bodies_of(eqn)]
    assert "dot_general" in names(simplified) and "dot_general" not in inside(simplified)
    assert "exp" in names(outer) and "exp" not in inside(outer)


def test_a_carry_that_does_not_change_is_a_constant():
    def function(a, w, x):
        return lax.while_loop(lambda c: c[2].sum() < 50, lambda c: (
            c[0], c[1], c[2] + (c[0] @ c[1])[:4] ** 2 + 1), (a, w, x))

    assert "dot_general" not in inside(check(function, A, W, X))

    def changing(a, w, x):
        return lax.fori_loop(0, 3, lambda _, c: (c[0], c[1] + 1, c[2] + (c[0] @ c[1])[:4]),
                             (a, w, x))

    assert "dot_general" in inside(check(changing, A, W, X))


def test_the_condition_is_left_as_well():
    def function(a, w, x):
        return lax.while_loop(lambda x: x.sum() < jnp.abs(a @ w).sum(), lambda x: x + 1, x)

    simplified = check(function, A, W, X)
    assert inside(simplified).count("dot_general") == 0


def test_what_only_moves_elements_stays():
    """A broadcast or a transpose would take memory for as long as the loop runs."""
    def function(a, w, x):
        return lax.fori_loop(0, 3, lambda _, x: x @ (a.T @ jnp.broadcast_to(x, (4, 4)).sum(0)
                                                     [None].repeat(6, 0)) + a[::2].T[:, 0], x)

    simplified = check(function, A, W, X)
    assert "transpose" in inside(simplified)
    assert "transpose" not in names(simplified)


def test_memory_is_bounded():
    """An outer product that is cheap and larger than its operands is computed where it is read."""
    big = np.ones(2000, np.float32)

    def function(v, x):
        return lax.fori_loop(0, 3, lambda _, x: x + jnp.max(v[:, None] * v - x), x)

    assert "mul" in inside(simplify(maxjax.make_jaxpr(function)(big, np.float32(1))))

    def costly(v, x):
        return lax.fori_loop(0, 3, lambda _, x: x + jnp.max(jnp.exp(v[:, None] * v) - x), x)

    assert "exp" in inside(simplify(maxjax.make_jaxpr(costly)(big, np.float32(1))))
    assert "exp" not in inside(simplify(maxjax.make_jaxpr(costly)(big[:100], np.float32(1))))


def test_loops_of_no_or_one_iteration_stay_as_they_are():
    for count in (0, 1):
        assert "dot_general" in inside(check(
            lambda a, w, x, count=count: lax.scan(
                lambda x, _: (x + (a @ w) @ a, None), x, None, count)[0], A, W, X))
    check(until(lambda a, w, x: x + jnp.log(a @ w) @ a, 0), A, W, X)


def test_effects_barriers_and_branches_stay():
    seen: list[float] = []

    def function(a, w, x):
        def body(_, x):
            maxjax.debug.callback(lambda v: seen.append(float(v)), w.sum())
            return lax.cond(x[0] > 0, lambda: x + jnp.exp(w), lambda: x)
        return lax.fori_loop(0, 3, body, x)

    simplified = simplify(maxjax.make_jaxpr(function)(A, W, X))
    assert "debug_callback" in inside(simplified)
    maxjax.jit(function)(A, W, X)
    maxjax.effects_barrier()
    assert len(seen) == 3

    def recomputed(a, w, x):
        layer = maxjax.checkpoint(lambda x: jnp.sin(jnp.exp(a @ w) @ a * x))
        return lax.fori_loop(0, 3, lambda _, x: layer(x), x)

    check(lambda a, w, x: maxjax.grad(lambda x: recomputed(a, w, x).sum())(x), A, W, X)


def test_scanned_values_change():
    def function(a, w, x):
        return lax.scan(lambda x, row: (x + row * (a @ w).sum(), row @ w), x, a, reverse=True)

    simplified = check(function, A, W, X)
    assert names(simplified).count("dot_general") == 1
    assert inside(simplified).count("dot_general") == 1


def test_random_loops():
    """Random bodies of constants, carries that change or do not, and literals."""
    unary = [jnp.tanh, jnp.exp, lambda x: x * 2, lambda x: x.T, lambda x: x[::-1], jnp.negative,
             lambda x: x.sum(0, keepdims=True) + jnp.zeros_like(x), lambda x: x.at[1].set(3)]
    binary = [jnp.add, jnp.multiply, jnp.matmul, jnp.maximum, jnp.subtract]
    for seed in range(30):
        rng = np.random.default_rng(seed)
        plan = [(int(rng.integers(2)), int(rng.integers(8)), int(rng.integers(1 << 16)),
                 int(rng.integers(1 << 16))) for _ in range(12)]

        def body(constants, carries, plan=plan):
            values = [*constants, *carries]
            for two, which, first, second in plan:
                a, b = values[first % len(values)], values[second % len(values)]
                values.append(jnp.clip(
                    binary[which % len(binary)](a, b) if two else unary[which](a), -3, 3))
            return (values[-1], carries[1], values[-2])

        def function(a, b, c, d, e, seed=seed, body=body):
            if seed % 2:
                return lax.fori_loop(0, 3, lambda _, carry: body((a, b), carry), (c, d, e))
            return lax.while_loop(lambda c: c[0] < seed % 3, lambda c: (
                c[0] + 1, *body((a, b), c[1:])), (0, c, d, e))

        check(function, *[rng.standard_normal((3, 3)).astype(np.float32) for _ in range(5)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_matrix_is_factored_once(dtype):
    """A system with the same matrix each time is solved by its factors."""
    with maxjax.enable_x64(True):
        a = RNG.standard_normal((9, 9)).astype(dtype)
        if a.dtype.kind == "c":
            a += 1j * RNG.standard_normal((9, 9))
        x = np.arange(1, 10).astype(dtype)

        def fixed(a, x):
            return lax.fori_loop(
                0, 4, lambda _, x: x / 8 + jnp.linalg.solve(a + jnp.eye(9, dtype=dtype), x), x)

        def nested(a, x):
            return lax.fori_loop(0, 2, lambda i, x: lax.while_loop(
                lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] / 8 + jnp.linalg.solve(
                    a + jnp.eye(9, dtype=dtype), c[1])), (i * 0, x))[1], x)

        def other(a, x):
            return lax.fori_loop(0, 4, lambda i, x: jnp.linalg.solve(a + i, x), x)

        expected = x
        for _ in range(4):
            expected = expected / 8 + np.linalg.solve(a + np.eye(9, dtype=dtype), expected)
        for function in (fixed, nested):
            simplified = simplify(maxjax.make_jaxpr(function)(a, x))
            assert names(simplified).count("lu") == 1
            assert "lu" not in inside(simplified) and "linear_solve" not in inside(simplified)
            with maxjax.default_matmul_precision("highest"):
                np.testing.assert_allclose(
                    maxjax.jit(function)(a, x), expected, rtol=1e4 * np.finfo(dtype).eps)
        assert "linear_solve" in inside(simplify(maxjax.make_jaxpr(other)(a, x)))
