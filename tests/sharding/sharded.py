"""Running a partitioned program without devices: a vmap for each mesh axis, inputs by shard."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

import maxjax
from maxjax._base import dtypes
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._sharding.engine import Partitioned
from tests.support import harness


def block(shape: tuple[int, ...], dims: Any, mesh: dict[str, int],
          place: dict[str, int]) -> tuple[slice, ...]:
    """The part of an array that the shard at ``place`` holds."""
    slices = []
    for size, axes in zip(shape, dims, strict=True):
        index, count = 0, 1
        for axis in axes:
            index = index * mesh[axis] + place[axis]
            count *= mesh[axis]
        part = size // count
        slices.append(slice(index * part, (index + 1) * part))
    return tuple(slices)


def places(mesh: dict[str, int]):
    """(position on the mesh, by name) of every device."""
    for index in itertools.product(*map(range, mesh.values())):
        yield index, dict(zip(mesh, index, strict=True))


def cut(value: np.ndarray, dims: Any, mesh: dict[str, int]) -> np.ndarray:
    """The shards, stacked along one leading dimension for each mesh axis that splits the value."""
    split = {name: size for name, size in mesh.items() if any(name in axes for axes in dims)}
    shards = [value[block(value.shape, dims, split, place)] for _, place in places(split)]
    return np.stack(shards).reshape((*split.values(), *shards[0].shape))


def joined(shards: np.ndarray, shape: tuple[int, ...], dims: Any,
           mesh: dict[str, int]) -> np.ndarray:
    """The whole array; replicas must agree, NaN with NaN."""
    whole = np.zeros(shape, shards.dtype)
    seen = np.zeros(shape, bool)
    for index, place in places(mesh):
        here = block(shape, dims, mesh, place)
        shard = shards[index]
        if seen[here].all():
            same = (whole[here] == shard) | ((whole[here] != whole[here]) & (shard != shard))
            assert np.all(same), f"replicas differ at {place}: {whole[here]}, {shard}"
        whole[here] = shard
        seen[here] = True
    assert seen.all()
    return whole


def run(made: Partitioned, args: list[np.ndarray]) -> list[np.ndarray]:
    """The assembled outputs of a partitioned program."""
    mesh = made.mesh

    def function(*xs: Any) -> list[Any]:
        return eval_jaxpr(made.jaxpr.jaxpr, made.jaxpr.consts, *xs)

    for name, size in reversed(mesh.items()):
        axes = tuple(0 if any(name in axes for axes in dims) else None for dims in made.in_specs)
        function = maxjax.vmap(function, in_axes=axes, axis_name=name, axis_size=size)
    inputs = [cut(np.asarray(value), dims, mesh)
              for value, dims in zip(args, made.in_specs, strict=True)]
    closed = trace_to_jaxpr(function, [
        ShapedArray(value.shape, aval.dtype, aval.weak_type)
        for value, aval in zip(inputs, made.jaxpr.in_avals, strict=True)])
    outs = interpreter(closed)(*inputs)
    shapes = [tuple(size * math.prod(mesh[axis] for axis in axes)
                    for size, axes in zip(aval.shape, dims, strict=True))
              for aval, dims in zip(made.jaxpr.out_avals, made.out_specs, strict=True)]
    return [joined(np.asarray(out), shape, dims, mesh)
            for out, shape, dims in zip(outs, shapes, made.out_specs, strict=True)]


def unsharded(closed: ClosedJaxpr, args: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(out) for out in interpreter(closed)(*args)]


def check_equal(made: Partitioned, closed: ClosedJaxpr, args: list[np.ndarray], tolerance: str,
                derivative: bool = False, expected: list[np.ndarray] | None = None) -> None:
    """The sharded program's results equal the unsharded one's; sums may be in another order."""
    if {"psum", "reduce_scatter"} & made.report.counts().keys() and tolerance in (
            "exact", "elementwise"):
        tolerance = "accumulate"
    with np.errstate(all="ignore"):
        whole = unsharded(closed, args) if expected is None else expected
        pairs = zip(run(made, args), whole, strict=True)
    for actual, expected in pairs:
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        if dtypes.is_inexact(expected.dtype):
            harness.assert_close(actual, expected, tolerance, derivative, signed_zeros=False)
        elif expected.dtype.kind in "biu":
            np.testing.assert_array_equal(actual, expected)
