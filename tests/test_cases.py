"""Every case of every family through every check, and the completeness of the primitives."""

from __future__ import annotations

import contextlib

import harness
import pytest
from harness import Case

import maxjax._primitives.all  # noqa: F401  every primitive is registered
from maxjax._ir.primitive import registry
from maxjax._transforms.simplify import EXPANSIONS

FAMILIES = harness.families()
CASES = [(family, case) for family, cases in FAMILIES.items()
         if not isinstance(cases, Exception) for case in cases]


def each(*conditions):
    """Parametrises over the cases that fulfil all conditions."""
    chosen = [(family, case) for family, case in CASES
              if all(condition(case) for condition in conditions)]
    return pytest.mark.parametrize(
        "case", [case for _, case in chosen],
        ids=[f"{family}-{case.name}" for family, case in chosen])


def runs(case: Case) -> bool:
    return not case.raises


def differentiable(case: Case) -> bool:
    return runs(case) and case.differentiable and case.jittable


def smooth(case: Case) -> bool:
    return differentiable(case) and case.smooth


@pytest.mark.parametrize("family", list(FAMILIES))
def test_family_can_be_imported(family):
    if isinstance(FAMILIES[family], Exception):
        raise FAMILIES[family]
    names = [case.name for case in FAMILIES[family]]
    assert len(names) == len(set(names)), "two cases of one name"


@each(runs)
def test_value(case):
    harness.check_value(case)


@each(runs, lambda case: case.jittable)
def test_jit(case):
    harness.check_jit(case)


@each(differentiable)
def test_jvp(case):
    harness.check_jvp(case)


@each(differentiable)
def test_vjp(case):
    harness.check_vjp(case)


@each(smooth)
def test_adjoint(case):
    harness.check_adjoint(case)


@each(smooth)
def test_finite_differences(case):
    harness.check_finite_differences(case)


@each(runs, lambda case: case.vmappable)
def test_vmap(case):
    harness.check_vmap(case)


@each(differentiable, lambda case: case.vmappable)
def test_vmap_of_gradient(case):
    harness.check_vmap_of_gradient(case)


@each(lambda case: case.raises)
def test_error(case):
    harness.check_raises(case)


# --- completeness ---------------------------------------------------------------------------------

# What stands for other primitives outside of transformations is tested by test_whole.py.
@pytest.mark.parametrize("name", sorted(registry.keys() - EXPANSIONS.keys()))
def test_primitive_has_its_rules_or_reasons(name):
    primitive = registry[name]
    missing = []
    runs = name not in ERASED | {"shard_map"}      # shard_map becomes another program before
    if runs and primitive.evaluate is None and primitive.specialize is None:
        missing.append("evaluate")
    if runs and primitive.lower is None and not primitive.host_reason:
        missing.append("lower or host_reason")
    if primitive.jvp is None and primitive.linearize is None and not primitive.no_derivative:
        missing.append("jvp or no_derivative")
    operands = primitive.name not in NO_OPERANDS
    if primitive.batch is None and operands:
        missing.append("batch")
    if primitive.factors is None:
        missing.append("factors")
    assert not missing, f"{name} lacks {', '.join(missing)}"


# Primitives without operands are never batched.
NO_OPERANDS = frozenset({
    "iota", "axis_index", "create_token", "dimension_size", "rng_bit_generator_state"})


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
# by test_callbacks.py and test_checkify.py.
CALLBACKS = {"pure_callback", "io_callback", "debug_callback", "debug_print", "check"}


# Conversions of types, which shard_map erases before anything runs: tests/test_shard_map.py.
ERASED = {"pvary", "psum_invariant", "all_gather_invariant"}

# Need a mesh, which no text of a program holds: tests/test_sharding_api.py, test_shard_map.py.
ON_A_MESH = {"reshard", "sharding_constraint", "shard_map"}

# test_dynamic_dims.py: a case's sizes are known.
OPEN_SIZES = {"dimension_size"}


TO_EXERCISE = (registry.keys() - EXPANSIONS.keys() - CALLBACKS - OPEN_SIZES - ERASED
               - ON_A_MESH)


@pytest.mark.parametrize("name", sorted(TO_EXERCISE))
def test_primitive_is_exercised(name, exercised):
    assert name in exercised, f"no case reaches {name}"
