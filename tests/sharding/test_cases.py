"""The sharding engine: every primitive, split at random, gives the unsharded result."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import random
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax._primitives.all  # every primitive is registered
import maxjax.numpy as jnp
from maxjax._base import dtypes, pytree
from maxjax._ir.jaxpr import ClosedJaxpr, Var, subjaxprs
from maxjax._ir.primitive import registry
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._primitives.rules import elementwise_factors
from maxjax._sharding.engine import partition
from maxjax._sharding.graph import all_equations, normalize
from maxjax._sharding.projection import rule_of
from maxjax._sharding.specs import Spec
from maxjax.experimental.sparse._primitives import SparsePrimitive
from tests.sharding.sharded import check_equal, unsharded
from tests.support import harness

MESHES: tuple[dict[str, int], ...] = (
    {"x": 4}, {"x": 2, "y": 3}, {"x": 2, "y": 2, "z": 2})
ALL_MESHES: tuple[dict[str, int], ...] = (
    *[{"x": size} for size in (2, 3, 5, 8)], {"x": 2, "y": 2}, {"x": 4, "y": 2}, {"x": 3, "y": 2},
    {"x": 2, "y": 2, "z": 2})
NEEDS_AN_AXIS = "a collective: it has a place under a named axis only"
CALLS_PYTHON = "calls Python, which has no table of cases"
NOT_RUN = {
    **dict.fromkeys(("ppermute", "pbroadcast", "all_gather", "reduce_scatter", "all_to_all",
                     "ragged_all_to_all",
                     "axis_index", "psum", "pmax", "pmin"), NEEDS_AN_AXIS),
    **dict.fromkeys(("pure_callback", "buffer_callback", "io_callback", "debug_callback",
                     "debug_print", "check"), CALLS_PYTHON),
    **dict.fromkeys(("pvary", "psum_invariant", "all_gather_invariant", "shard_map",
                     "vary_unreduced_cast", "reduced_vary_cast", "unreduced_psum", "preduced",
                     "all_gather_reduced", "unreduced_reduce_scatter"),
                    "already the program of one shard: tests/sharding/test_shard_map.py"),
    **dict.fromkeys(("reshard", "sharding_constraint"),
                    "says itself how its value lies: tests/recorded/shardings.txt"),
    **dict.fromkeys(("collective", "coordinate", "exchange", "ordered_exchange"),
                    "of a program that has been split over processes: tests/distributed"),
    "dimension_size": "sizes are known when a program is split",
    **dict.fromkeys(("jit", "custom_jvp_call", "custom_vjp_call", "remat2", "custom_vmap_call",
                     "linear_call", "custom_lin",
                     "remat_opt"), "inlined or transposed away before"),
    **{name: "inlined before" for name, primitive in registry.items()
       if isinstance(primitive, SparsePrimitive)},
}

NOT_SPLIT = {name for name, why in NOT_RUN.items() if why in (NEEDS_AN_AXIS, CALLS_PYTHON)}


def primitives(closed: ClosedJaxpr) -> set[str]:
    names = set()
    for eqn in closed.jaxpr.eqns:
        names.add(eqn.primitive.name)
        for inner in subjaxprs(eqn.params):
            if isinstance(inner, ClosedJaxpr):
                names |= primitives(inner)
    return names


def program(case: harness.Case, mode: str) -> tuple[ClosedJaxpr, list[np.ndarray]]:
    """A case, or its derivative forwards or backwards, as a program with its inputs."""
    args = [installed.runtime.operand(arg) for arg in case.args]

    def forward(*xs: Any) -> list[Any]:
        return pytree.flatten(case.fun(maxjax, *xs))[0]

    def jvp(*xs: Any) -> list[Any]:
        return maxjax.jvp(forward, xs, tuple([
            jnp.ones_like(x) if dtypes.is_inexact(x.dtype) else np.zeros(x.shape, dtypes.float0)
            for x in xs]))[1]

    def vjp(*xs: Any) -> list[Any]:
        outs, pullback = maxjax.vjp(forward, *xs)
        found = pullback([jnp.ones_like(x) if dtypes.is_inexact(x.dtype)
                          else np.zeros(x.shape, dtypes.float0) for x in outs])
        return [x for x in found if x.dtype != dtypes.float0]

    function = {"value": forward, "jvp": jvp, "vjp": vjp}[mode]
    closed = trace_to_jaxpr(function, [arg.aval for arg in args])
    return closed, [arg.host() for arg in args]


@functools.cache
def reaching() -> dict[str, list[tuple[harness.Case, str]]]:
    """For each primitive some cases whose programs contain it, and in which mode."""
    found: dict[str, list[tuple[harness.Case, str]]] = {}
    for cases in harness.families().values():
        for case in cases:
            if case.raises or not case.jittable:
                continue
            names: set[str] = set()
            with case.precision():
                for mode in ("value", "vjp", "jvp") if case.differentiable else ("value",):
                    if mode != "value" and all(len(found[name]) > 2 for name in names):
                        continue      # unlikely to add anything new
                    closed, _ = program(case, mode)
                    names = primitives(closed)
                    if "shard_map" in names:      # jit replaces it by other operations first
                        break
                    for name in names:
                        found.setdefault(name, []).append((case, mode))
    return found


def random_spec(rng: random.Random, shape: tuple[int, ...], mesh: dict[str, int]) -> Spec:
    axes = list(mesh)
    rng.shuffle(axes)
    dims: list[list[str]] = [[] for _ in shape]
    left = list(shape)
    for axis in axes:
        fitting = [dim for dim, size in enumerate(left) if size and size % mesh[axis] == 0]
        if fitting and rng.random() < 0.85:
            dim = rng.choice(fitting)
            dims[dim].append(axis)
            left[dim] //= mesh[axis]
    return Spec.of(*map(tuple, dims))


def specs_of(rng: random.Random, args: list[np.ndarray], mesh: dict[str, int],
             most: int) -> list[list[Spec]]:
    """All ways to split the arguments over a mesh, or a sample of a given size."""
    ways = [list(legal_specs(np.shape(arg), mesh)) for arg in args]
    if math.prod(map(len, ways)) <= most:
        return [list(specs) for specs in itertools.product(*ways)]
    return [[rng.choice(options) for options in ways] for _ in range(most)]


def legal_specs(shape: tuple[int, ...], mesh: dict[str, int]) -> Iterator[Spec]:
    """Every axis along none or one of the dimensions, in each order, where sizes divide."""
    for places in itertools.product((None, *range(len(shape))), repeat=len(mesh)):
        for order in itertools.permutations(mesh):
            dims = [tuple(axis for axis in order
                          if places[list(mesh).index(axis)] == dim) for dim in range(len(shape))]
            if all(size and size % math.prod(mesh[axis] for axis in axes) == 0
                   for size, axes in zip(shape, dims, strict=True)) and (
                    order == tuple(mesh) or any(len(axes) > 1 for axes in dims)):
                yield Spec.of(*dims)


def pattern(closed: ClosedJaxpr) -> Any:
    """The aspects of a program that the engine sees: wiring, shapes and parameters, but not element
    types nor, if nothing is summed, which elementwise operation it is."""
    jaxpr = closed.jaxpr
    number = {var: place for place, var in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    alike = not any(rule_of(eqn).reduction for eqn in all_equations(jaxpr))
    rows = []
    for eqn in jaxpr.eqns:
        elementwise = alike and eqn.primitive.factors is elementwise_factors
        name = "elementwise" if elementwise else f"{eqn.primitive} {eqn.params}"
        for var in eqn.outvars:
            number[var] = len(number)
        rows.append((name, *((number.get(atom) if isinstance(atom, Var) else None, atom.aval.shape)
                             for atom in (*eqn.invars, *eqn.outvars))))
    return (*rows, *(number.get(atom) if isinstance(atom, Var) else None
                     for atom in jaxpr.outvars))


def failures_of(case: harness.Case, mode: str, closed: ClosedJaxpr, args: list[np.ndarray],
                meshes: tuple[dict[str, int], ...], most: int) -> Iterator[str]:
    rng = random.Random(zlib.crc32(f"{case.name} {mode}".encode()))
    expected = unsharded(closed, args)
    for mesh in meshes:
        for specs in specs_of(rng, args, mesh, most):
            try:
                check_equal(partition(closed, mesh, specs), closed, args, case.tolerance,
                            mode != "value", expected)
            except Exception as error:
                yield (f"{case.name}, {mode}, {mesh}, {[str(spec) for spec in specs]}: "
                       f"{type(error).__name__}: {str(error)[:200]}")


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", sorted(harness.families()))
def test_every_case_on_every_mesh(family):
    """Values, derivatives and cotangents; up to eight ways of splitting on each mesh.

    To the engine all elementwise operations and element types are equivalent: the first three
    programs of a ``pattern`` run so, the others in one way on a mesh of each rank.
    """
    failures: list[str] = []
    seen: collections.Counter[Any] = collections.Counter()
    for case in harness.families()[family]:
        if case.raises or not case.jittable:
            continue
        for mode in ("value", "vjp", "jvp") if case.differentiable else ("value",):
            with case.precision():
                closed, args = program(case, mode)
                if not primitives(closed).isdisjoint(NOT_SPLIT):
                    continue
                key = pattern(normalize(closed))
                seen[key] += 1
                failures += failures_of(case, mode, closed, args,
                                        *((ALL_MESHES, 8) if seen[key] <= 3 else (MESHES, 1)))
    assert not failures, f"{len(failures)} failures\n" + "\n".join(failures[:40])


@pytest.mark.parametrize("name", sorted(
    harness.all_primitives().keys() - NOT_RUN.keys() - harness.expanded()))
def test_sharded_equals_whole(name):
    rows = reaching().get(name, [])
    assert rows, f"no case reaches {name}, and NOT_RUN gives no reason"
    rng = random.Random(zlib.crc32(name.encode()))
    for case, mode in rng.sample(rows, min(2, len(rows))):
        with case.precision():
            closed, args = program(case, mode)
            for mesh in MESHES:
                specs = [random_spec(rng, np.shape(arg), mesh) for arg in args]
                made = partition(closed, mesh, specs)
                check_equal(made, closed, args, case.tolerance, mode != "value")
