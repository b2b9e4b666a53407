"""What is a loop in JAX is one here: programs do not grow with the sizes of their operands."""

from __future__ import annotations

import numpy as np
import pytest

import maxjax as jax
import maxjax.numpy as jnp
from maxjax._ir.jaxpr import every_equation
from maxjax.experimental.ode import odeint


def matrix(n: int) -> np.ndarray:
    return np.eye(n, dtype=np.float32) + np.float32(1 / n)


def solution(n: int):
    def loss(rate, times):
        return odeint(lambda y, t, rate: -rate * y, jnp.ones(2), times, rate).sum()

    return jax.grad(loss, (0, 1)), (1.0, np.linspace(0, 1, n, dtype=np.float32))


PROGRAMS = {
    "gradient of odeint": solution,
    "expm": lambda n: (jax.scipy.linalg.expm, (np.stack([matrix(3)] * n),)),
    "sqrtm": lambda n: (jax.scipy.linalg.sqrtm, (matrix(n),)),
    "funm": lambda n: (lambda x: jax.scipy.linalg.funm(x, jnp.exp), (matrix(n),)),
    "solve_sylvester": lambda n: (
        jax.scipy.linalg.solve_sylvester, (matrix(4), matrix(n), np.ones((4, n), np.float32))),
    "mode": lambda n: (lambda x: jax.scipy.stats.mode(x, axis=0), (np.ones((5, n), np.int32),)),
}


def equations(program, n: int) -> int:
    function, args = program(n)
    return sum(1 for _ in every_equation(jax.make_jaxpr(function)(*args)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_do_not_grow(name):
    assert equations(PROGRAMS[name], 4) == equations(PROGRAMS[name], 9)
