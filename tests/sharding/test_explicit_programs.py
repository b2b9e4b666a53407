"""Random programs over Explicit axes against real JAX: the types of results, what is refused."""

from __future__ import annotations

import jax
import jax.scipy.special
import jax.scipy.stats
import pytest

import maxjax
import maxjax.scipy.special
import maxjax.scipy.stats
from tests.gen.explicit_programs import outcomes, programs

COUNT = 400

# What JAX refuses here because of how it computes these functions: by a loop whose carry begins
# without the sharding, by a scatter, by a sort together with whole arrays, by a convolution whose
# length no longer divides. maxjax computes them in other ways, and answers.
ANSWERED = ("jnp.argpartition(", "jnp.bincount(", "jnp.convolve(", "jnp.correlate(", "jnp.kron(",
            "jnp.nanmedian(a, axis=-1)", "jnp.polyadd(", "jnp.polyval(", "jnp.vecdot(",
            "jnp.linalg.vecdot(", "jnp.insert(", "jnp.diagflat(", "jnp.diagonal(",
            "jnp.piecewise(a, [a < 0], [b[0]", "jax.ops.segment_sum(", "a.at[0].set(b[0])",
            "a.at[:].set(b)", "a.at[:].add(b)")
# Not as JAX yet: einsum without a contraction and with a summed dimension of one element, where JAX
# takes the left operand's sharding; functions that slice along the sharded dimension, or give their
# operands one rank before `where` sees them.
DIFFERENT = ('jnp.einsum("...,...->...", a, b)', 'jnp.einsum("i...,i...->...", a, b)',
             'jnp.einsum("...i,...i->...", a, b)', "jax.scipy.special.xlogy(a, b)",
             "jnp.logaddexp.reduce(a)", "a.at[1:3].get()", "jax.nn.softmax(a, where=b > 0)")


def is_error(outcome: str) -> bool:
    return outcome.endswith(("Error", "Exception"))


def check(seed: int) -> None:
    cases = [case for case in programs(seed, COUNT) if case[0] not in DIFFERENT]
    wrong = []
    for case, mine, other in zip(
            cases, outcomes(maxjax, cases), outcomes(jax, cases), strict=True):
        if is_error(other) and (is_error(mine) or case[0].startswith(ANSWERED)):
            continue
        if mine != other:
            wrong.append(f"{case}: {mine}, in JAX {other}")
    assert not wrong, "\n".join(wrong)


def test_programs():
    check(0)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(1, 8))
def test_more_programs(seed):
    check(seed)
