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

# Refused by both with other types of errors, which in JAX come from within: an IndexError of a rule
# for reshapes, and for piecewise an axis that is not found in an empty mesh (with a concrete mesh,
# it is maxjax's ShardingTypeError in JAX too).
# So are searches, whose loop JAX refuses by the types of its carry, and hypot of two operands whose
# shardings cannot be joined.
OTHER_ERRORS = ("jnp.kron(", "jnp.piecewise(", "jnp.interp(", "jnp.digitize(",
                "jnp.searchsorted(", "jnp.hypot(")

def is_error(outcome: str) -> bool:
    return outcome.endswith(("Error", "Exception"))


def check(seed: int) -> None:
    cases = programs(seed, COUNT)
    wrong = []
    for case, mine, other in zip(
            cases, outcomes(maxjax, cases), outcomes(jax, cases), strict=True):
        if is_error(mine) and is_error(other) and case[0].startswith(OTHER_ERRORS):
            continue
        if mine != other:
            wrong.append(f"{case}: {mine}, in JAX {other}")
    assert not wrong, "\n".join(wrong)


def test_random_programs_of_explicit_meshes():
    check(0)


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(1, 8))
def test_more_programs(seed):
    check(seed)
