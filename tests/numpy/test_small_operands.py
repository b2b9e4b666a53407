"""Functions of scalars, of empty arrays and of arrays with one element, against real JAX."""

from __future__ import annotations

import jax
import jax.scipy.cluster.vq
import jax.scipy.interpolate
import jax.scipy.linalg
import jax.scipy.ndimage
import jax.scipy.optimize
import jax.scipy.signal
import jax.scipy.stats
import pytest

from tests.gen import recent_calls
from tests.gen.small_operands import calls
from tests.numpy.test_edge_values import check, evaluated

# Errors that come from within JAX, of calls which it does not foresee.
ACCIDENTS = (AttributeError, ZeroDivisionError)


def check_calls(chosen: list[str]) -> None:
    wrong = []
    for call in chosen:
        try:
            evaluated(jax, call, {})
        except ACCIDENTS:
            continue
        except Exception:
            pass
        try:
            check(call, {})
        except AssertionError as error:
            wrong.append(f"{call}: {str(error) or 'another error'}")
        except Exception as error:
            wrong.append(f"{call}: {type(error).__name__}: {error}")
    assert not wrong, "\n".join(wrong)


def test_random_calls() -> None:
    check_calls(calls(0, 60))


def test_random_calls_of_what_changed_in_0_12() -> None:
    check_calls(recent_calls.calls(0, 150))


@pytest.mark.extended
@pytest.mark.parametrize("seed", range(1, 5))
def test_more_random_calls(seed: int) -> None:
    check_calls(calls(seed, 400))
