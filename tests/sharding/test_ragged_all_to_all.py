"""``ragged_all_to_all`` against its documented meaning, as JAX's CPU backend does not run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests import ROOT

COUNT = 8


def setting(seed, count=COUNT, each=2, rest=(3,), dtype=np.float32):
    """Random operands of all elements of an axis: slices of 0 to 3 rows, with gaps between them."""
    rng = np.random.default_rng(seed)
    length = count * each
    sizes = rng.integers(0, 4, (count, length)).astype(np.int32)

    def placed(sizes):
        """Where slices of these sizes lie, in a random order."""
        starts = np.zeros_like(sizes)
        for row, out in zip(sizes, starts, strict=True):
            position = 0
            for number in rng.permutation(length):
                position += rng.integers(0, 2)
                out[number] = position
                position += row[number]
        return starts

    def exchanged(x):
        return x.reshape(count, count, each).swapaxes(0, 1).reshape(count, length)

    received = exchanged(sizes)
    sent_from, received_at = placed(sizes), placed(received)
    rows = [int((starts + lengths).max()) + 1
            for starts, lengths in ((sent_from, sizes), (received_at, received))]
    operand, output = [rng.normal(size=(count, n, *rest)).astype(dtype) for n in rows]
    return operand, output, sent_from, sizes, exchanged(received_at), received


def by_definition(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes):
    result = output.copy()
    count, length = send_sizes.shape
    for source in range(count):
        for n in range(length):
            target = n // (length // count)
            start, size = input_offsets[source, n], send_sizes[source, n]
            at = output_offsets[source, n]
            result[target, at:at + size] = operand[source, start:start + size]
    return result


def in_groups(operands, groups):
    result = operands[1].copy()
    for group in groups:
        result[group] = by_definition(*[x[group] for x in operands])
    return result


def mapped(axis_name, groups=None, sizes=(COUNT,), names=("x",)):
    import maxjax as jax
    mesh = jax.make_mesh(sizes, names, axis_types=(jax.sharding.AxisType.Auto,) * len(names))
    return jax.shard_map(
        lambda *xs: jax.lax.ragged_all_to_all(
            *[x[0] for x in xs], axis_name=axis_name, axis_index_groups=groups)[None],
        mesh=mesh, in_specs=jax.P(names), out_specs=jax.P(names))


def padded(operands, rows):
    """With this many rows of data."""
    data = [np.concatenate([x, np.full((len(x), rows - x.shape[1]), 99, x.dtype)], 1)
            for x in operands[:2]]
    return [*data, *operands[2:]]


def run():
    """Each check's name with the greatest difference from the definition."""
    import maxjax as jax
    jnp = jax.numpy
    differences = {}

    def check(name, actual, expected):
        actual = np.asarray(actual)
        same = actual.dtype == expected.dtype and actual.shape == expected.shape
        differences[name] = float(np.max(np.abs(
            actual.astype(np.complex128) - expected))) if same else "another type"

    dtypes = (np.float32, np.int8, np.complex64, jnp.bfloat16, np.bool_)
    for seed, dtype in enumerate(dtypes):
        operands = setting(seed, dtype=dtype)
        check(f"{np.dtype(dtype).name} eager", mapped("x")(*operands), by_definition(*operands))
        check(f"{np.dtype(dtype).name} jit", jax.jit(mapped("x"))(*operands),
              by_definition(*operands))
    operands = setting(7, rest=())
    check("rank 1", mapped("x")(*operands), by_definition(*operands))
    single = setting(3, each=1)
    check("one slice for each", mapped("x")(*single), by_definition(*single))
    plane = {"sizes": (4, 2), "names": ("x", "y")}
    check("two names", mapped(("x", "y"), **plane)(*operands), by_definition(*operands))
    check("two names jit", jax.jit(mapped(("x", "y"), **plane))(*operands),
          by_definition(*operands))
    pairs = [padded(setting(seed, 2, rest=()), 20) for seed in range(4)]
    few = [np.concatenate(xs) for xs in zip(*pairs, strict=True)]
    check("the minor of two axes", mapped("y", **plane)(*few),
          in_groups(few, [[0, 1], [2, 3], [4, 5], [6, 7]]))
    groups = [[0, 5], [3, 1], [2, 7], [4, 6]]
    spread = [x[np.argsort(np.concatenate(groups))] for x in few]
    check("groups", mapped("x", groups)(*spread), in_groups(spread, groups))
    check("pmap", jax.pmap(lambda *xs: jax.lax.ragged_all_to_all(*xs, axis_name="i"),
                           axis_name="i")(*operands), by_definition(*operands))
    byte = [x.astype(np.int8) if n > 1 else x for n, x in enumerate(operands)]
    check("offsets of 8 bits", mapped("x")(*byte), by_definition(*operands))

    several = [padded(setting(seed, rest=()), 60) for seed in range(3)]
    check("vmap", jax.vmap(mapped("x"))(*map(np.stack, zip(*several, strict=True))),
          np.stack([by_definition(*each) for each in several]))
    check("vmap of the data", jax.vmap(mapped("x"), (2, None, None, None, None, None))(
        np.stack([operands[0], -operands[0]], 2), *operands[1:]),
        np.stack([by_definition(x, *operands[1:]) for x in (operands[0], -operands[0])]))

    # It is linear in the data: <w, f(a, b)> = <f' w, (a, b)>.
    data, slices = operands[:2], operands[2:]
    weights = np.random.default_rng(9).normal(size=operands[1].shape).astype(np.float32)

    def weighed(operand, output):
        return (mapped("x")(operand, output, *slices) * weights).sum()

    for name, function in (("", weighed), (" jit", jax.jit(weighed))):
        gradients = jax.grad(function, (0, 1))(*data)
        for n, gradient in enumerate(gradients):
            expected = np.zeros_like(data[n])
            for place in np.ndindex(expected.shape):
                unit = [np.zeros_like(x) for x in data]
                unit[n][place] = 1
                expected[place] = (by_definition(*unit, *slices) * weights).sum()
            check(f"gradient {n}{name}", gradient, expected)
    _, tangent = jax.jvp(lambda x: mapped("x")(x, data[1], *slices), (data[0],), (data[0],))
    check("jvp", tangent, by_definition(data[0], np.zeros_like(data[1]), *slices))
    return differences


@pytest.mark.xdist_group("mojo")
@pytest.mark.parametrize("compile", ["never", "auto"])
def test_as_documented(compile):
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    result = subprocess.run(
        [sys.executable, "-c", "import json\nfrom tests.sharding.test_ragged_all_to_all import run"
         "\nprint(json.dumps(run()))"], cwd=ROOT, capture_output=True, text=True,
        env={**environment, "MAXJAX_COMPILE": compile,
             "XLA_FLAGS": f"--xla_force_host_platform_device_count={COUNT}"})
    assert result.returncode == 0, result.stderr
    differences = json.loads(result.stdout)
    assert len(differences) > 20
    assert not {name: value for name, value in differences.items()
                if value != 0 and not (name.startswith("gradient") and value < 1e-6)}
