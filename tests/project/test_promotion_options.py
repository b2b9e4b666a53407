"""Under the strict options of promotion, what a user did not write is not refused.

Every case of the compat suite runs under both options. What maxjax refuses because of them, JAX
must refuse too. (JAX refuses a few more: what its own functions mix inside themselves.)
"""

from __future__ import annotations

import contextlib

import pytest

pytest.importorskip("jax")

from compat import chosen, evaluate
from compat.spec import Case

REFUSALS = ("jax_numpy_rank_promotion='raise'", "jax_numpy_dtype_promotion=strict")


@contextlib.contextmanager
def strict(library: evaluate.Library, x64: bool):
    jax = library.package
    with (evaluate.surroundings(library, x64), jax.numpy_rank_promotion("raise"),
          jax.numpy_dtype_promotion("strict")):
        yield


def refusal(case: Case, mode: str) -> str | None:
    """What maxjax says where it refuses a case because of the options."""
    with strict(evaluate.own(), case.x64):
        error = evaluate.run(evaluate.own(), case, mode).error
    return error[1] if error is not None and any(text in error[1] for text in REFUSALS) else None


def raises_in_jax(case: Case, mode: str) -> bool:
    """Whether JAX raises there; told from a trace where that suffices, since compiling is slow."""
    library = evaluate.real()
    with strict(library, case.x64):
        try:
            function, args = evaluate.Prepared(library, case).call(mode)
            if args and "jit" in case.modes:
                library.package.jit(function).trace(*args)
            else:
                function(*args)
        except Exception:
            return True
    return False


def unfounded(modes: tuple[str, ...]) -> list[str]:
    return [f"{name}: {case.title} ({mode}): {told}"
            for name, cases in chosen.rows().items() for case in cases for mode in modes
            if mode in case.modes and (told := refusal(case, mode)) is not None
            and not raises_in_jax(case, mode)]


@pytest.mark.extended
def test_refuses_only_what_jax_refuses():
    assert not unfounded(("eager",))


@pytest.mark.exhaustive       # two more runs of all tables
def test_refuses_only_what_jax_refuses_in_derivatives_and_batches():
    assert not unfounded(("grad", "vmap"))


@pytest.mark.parametrize("expression, refused", [
    ("jnp.ones((2, 3)) + jnp.ones(3)", True),
    ("jnp.ones(3) + jnp.ones(3, int)", True),
    ("jnp.logical_or(jnp.ones(3), jnp.ones(3, int))", True),
    ("jnp.isin(jnp.ones((2, 3)), jnp.ones(2))", False),
    ("jnp.allclose(jnp.arange(3), jnp.arange(3))", False),
])
@pytest.mark.parametrize("library", [evaluate.real, evaluate.own])
def test_what_is_refused(library, expression, refused):
    with strict(library(), False), (
            pytest.raises((TypeError, ValueError)) if refused else contextlib.nullcontext()):
        eval(expression, {"jnp": library().numpy})
