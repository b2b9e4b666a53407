"""Derivatives where operands are zero, tiny, huge, infinite or missing, against real JAX.

A value that is scaled on its way must have a derivative that is, too: the chain rule by itself
squares what the function has kept in range, divides zeros, and subtracts what is nearly equal.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import jax
import jax.scipy.special
import numpy as np
import pytest

import maxjax
import maxjax.scipy.special

OF_ONE = """
numpy: abs sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh
    tanh arcsinh arccosh arctanh sinc square reciprocal i0 nan_to_num real
nn: relu relu6 sigmoid softplus silu gelu elu celu selu log_sigmoid hard_tanh hard_swish mish
    leaky_relu sparse_plus logsumexp
scipy.special: erf erfc expit logit ndtr i0 i1 entr gammaln log_softmax
"""
OF_TWO = """
numpy: add subtract multiply divide power maximum minimum fmax fmin hypot logaddexp copysign fmod
    remainder heaviside
scipy.special: xlogy rel_entr kl_div
"""
# JAX flushes what is below the least normal number to zero, and may lose what is near it.
VALUES = np.array([0, -0.0, 1, -1, 0.5, -3, 1e-3, 1e-8, -1e-8, 1e-12, 20, -20, -90, 100, 1e5, -1e10,
                   1e18, np.inf, -np.inf, np.nan], np.float32)
COUNT = 8
# Where the libraries differ on purpose: compat/known_differences.toml has the reasons.
LEFT_OUT = {
    "scipy.special.i1": lambda x: abs(x) >= 90,
    "scipy.special.kl_div": lambda p, q: np.isinf(p) & np.isinf(q),
}


def names(table: str) -> list[str]:
    found, module = [], ""
    for line in table.strip().split("\n"):
        if not line.startswith(" "):
            module, _, line = line.partition(": ")
        found += [f"{module}.{name}" for name in line.split()]
    return found


def gradients(library: Any, name: str, operands: list[np.ndarray]) -> list[np.ndarray]:
    function = library
    for part in name.split("."):
        function = getattr(function, part)
    gradient = library.grad(lambda *args: library.numpy.sum(function(*args)),
                            tuple(range(len(operands))))
    return [np.asarray(x, np.float64) for x in library.vmap(gradient)(*operands)]


def check(name: str, operands: list[np.ndarray]) -> None:
    for expected, actual in zip(gradients(jax, name, operands),
                                gradients(maxjax, name, operands), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-35, err_msg=name)


def cases() -> list[tuple[str, list[np.ndarray]]]:
    pairs = np.array(list(itertools.product(VALUES, VALUES)))
    found = []
    for table, operands in ((OF_ONE, [VALUES]), (OF_TWO, [*pairs.T])):
        for name in names(table):
            left_out = LEFT_OUT.get(name, lambda *args: np.zeros(args[0].shape, bool))(*operands)
            found.append((name, [x[~left_out] for x in operands]))
    return found


def test_gradients_of_some_functions() -> None:
    for name, operands in random.Random(0).sample(cases(), COUNT):
        check(name, operands)


@pytest.mark.parametrize("name", ["numpy.hypot", "numpy.expm1", "nn.elu", "scipy.special.i0",
                                  "scipy.special.rel_entr", "scipy.special.kl_div"])
def test_gradients_that_were_wrong(name: str) -> None:
    check(name, dict(cases())[name])


@pytest.mark.extended
@pytest.mark.parametrize("name", [*names(OF_ONE), *names(OF_TWO)])
def test_gradients(name: str) -> None:
    check(name, dict(cases())[name])
