"""Derivatives of ``odeint`` of complex states, against JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.experimental.ode
import jax.numpy
import numpy as np
import pytest

import maxjax
import maxjax.experimental.ode
import maxjax.numpy


def loss(j: Any) -> Any:
    def decay(y: Any, t: Any, a: Any) -> Any:
        return a * y * j.numpy.exp(-t).astype(y.dtype)

    return lambda y0, a, times: j.experimental.ode.odeint(decay, y0, times, a).real.sum()


TIMES = np.linspace(0., 1., 3, dtype=np.float32)


@pytest.mark.parametrize("argnum", [0, 1, 2])
def test_first_derivatives(argnum):
    mine, theirs = (j.grad(loss(j), argnum)(1 + 2j, 3 + 4j, TIMES) for j in (maxjax, jax))
    assert mine.dtype == theirs.dtype
    np.testing.assert_allclose(mine, theirs, rtol=1e-4)


def test_second_derivatives():
    def twice(j: Any) -> Any:
        return j.grad(lambda a: j.grad(loss(j), 1)(1 + 2j, a, TIMES).real)(0.5 + 1j)

    mine, theirs = twice(maxjax), twice(jax)
    assert mine.dtype == theirs.dtype
    np.testing.assert_allclose(mine, theirs, rtol=1e-3)
