"""Every case of every family through every check, and the completeness of the primitives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from tests.support import harness
from tests.support.harness import Case

FAMILIES = harness.families()
CASES = [(family, case) for family, cases in FAMILIES.items()
         if not isinstance(cases, Exception) for case in cases]
PRIMITIVES = harness.all_primitives()


@pytest.mark.parametrize("family", list(FAMILIES))
def test_family_can_be_imported(family):
    if isinstance(FAMILIES[family], Exception):
        raise FAMILIES[family]
    names = [case.name for case in FAMILIES[family]]
    assert len(names) == len(set(names)), "two cases of one name"


def checks_of(case: Case) -> dict[str, Callable[[Case], None]]:
    """Everything that a case goes through, by name."""
    if case.raises:
        return {"error": harness.check_raises}
    checks: dict[str, Callable[[Case], None]] = {"value": harness.check_value}
    if case.jittable:
        checks["jit"] = harness.check_jit
    differentiable = case.differentiable and case.jittable
    if differentiable:
        checks |= {"jvp": harness.check_jvp, "vjp": harness.check_vjp}
    if differentiable and case.smooth:
        checks |= {"adjoint": harness.check_adjoint,
                   "finite differences": harness.check_finite_differences}
    if case.vmappable:
        checks["vmap"] = harness.check_vmap
    if differentiable and case.vmappable:
        checks["vmap of gradient"] = harness.check_vmap_of_gradient
    return checks


def marks_of(number: int, family: str, case: Case, check: str) -> list[pytest.MarkDecorator]:
    """A case's checks stand together, and in one process: JAX is asked once for all of them. Of
    what composes two transformations, or holds two derivatives that are compared with JAX's against
    each other, the usual run has every fifth case."""
    group = pytest.mark.xdist_group(f"{family}-{case.name}")
    composed = check in ("vmap of gradient", "adjoint")
    return [group, pytest.mark.extended] if composed and number % 5 else [group]


@pytest.mark.parametrize("check,case", [
    pytest.param(check, case, id=f"{family}-{case.name}-{name}",
                 marks=marks_of(number, family, case, name))
    for number, (family, case) in enumerate(CASES) for name, check in checks_of(case).items()])
def test_a_case_agrees_with_jax(check, case):
    check(case)


# --- completeness ---------------------------------------------------------------------------------

# Of programs over several processes: tests/distributed/. They come after all transformations.
OVER_PROCESSES = {"collective", "coordinate", "exchange", "ordered_exchange"}

# What stands for other primitives outside of transformations is tested by test_whole.py.
@pytest.mark.parametrize("name", sorted(
    PRIMITIVES.keys() - harness.expanded() - OVER_PROCESSES))
def test_primitive_has_its_rules_or_reasons(name):
    primitive = PRIMITIVES[name]
    missing = []
    runs = name not in ERASED | {"shard_map"}      # shard_map becomes another program before
    if runs and primitive.evaluate is None and primitive.host.specialize is None:
        missing.append("evaluate")
    if runs and primitive.lower is None and not primitive.host.reason:
        missing.append("lower or host_reason")
    derivative = primitive.jvp or primitive.derivative.linearize or primitive.derivative.missing
    if not derivative and name not in LINEAR_PROGRAMS:
        missing.append("jvp or no_derivative")
    if primitive.batch is None and name not in NO_OPERANDS | NOT_BATCHED:
        missing.append("batch")
    if primitive.factors is None:
        missing.append("factors")
    # What calls jaxprs or Python is as linear as these are.
    by_itself = primitive.cacheable and primitive.inner.calls is None and name not in CALLBACKS
    if by_itself and primitive.transpose is not None and primitive.linearity is None:
        missing.append("linearity")
    if primitive.linearity is not None and primitive.transpose is None and name != "name":
        missing.append("transpose")
    assert not missing, f"{name} lacks {', '.join(missing)}"


# Primitives without operands are never batched.
NO_OPERANDS = frozenset({
    "iota", "axis_index", "create_token", "dimension_size", "rng_bit_generator_state"})
# JAX has no rule either.
NOT_BATCHED = {"linear_call"}
# Of linear programs alone, which are differentiated no more.
LINEAR_PROGRAMS = {"custom_lin"}


@pytest.fixture(scope="session")
def exercised() -> set[str]:
    """The primitives that any case reaches."""
    names: set[str] = set()
    for derivatives in (False, True):
        for _, case in CASES:
            if TO_EXERCISE <= names:
                return names
            with contextlib.suppress(Exception):       # the case's own tests report it
                names |= harness.exercised(case, derivatives)
    return names


# Calls of Python functions, which no table's cases could be compiled with: what they do is tested
# by test_callbacks.py, test_buffer_callback.py and test_checkify.py.
CALLBACKS = {"pure_callback", "io_callback", "debug_callback", "debug_print", "check",
             "buffer_callback"}

# Calls with rules of the user's: transforms/test_custom_rules.py.
CUSTOM_CALLS = {"custom_lin", "custom_vjp_call", "custom_vmap_call", "linear_call", "remat2",
                "remat_opt"}

# Conversions of types, which shard_map erases before anything runs: sharding/test_shard_map.py.
ERASED = {"pvary", "psum_invariant", "all_gather_invariant", "vary_unreduced_cast",
          "reduced_vary_cast", "unreduced_psum", "preduced", "all_gather_reduced",
          "unreduced_reduce_scatter"}

# Need a mesh, which no text of a program holds: tests/sharding/.
ON_A_MESH = {"reshard", "sharding_constraint", "shard_map"}

# test_dynamic_dims.py: a case's sizes are known.
OPEN_SIZES = {"dimension_size"}


TO_EXERCISE = (PRIMITIVES.keys() - harness.expanded() - CALLBACKS - CUSTOM_CALLS - OPEN_SIZES
               - ERASED - ON_A_MESH - OVER_PROCESSES)


@pytest.mark.parametrize("name", sorted(TO_EXERCISE))
def test_primitive_is_exercised(name, exercised):
    assert name in exercised, f"no case reaches {name}"
