"""StableHLO: XLA parses, compiles and runs the text of each case's program, and agrees with tier 0.

It is an independent reading of the whole intermediate representation.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax._src import xla_bridge
from jax._src.interpreters import mlir
from jaxlib import _jax, lapack, xla_client
from jaxlib.mlir import ir

import maxjax
from maxjax._base.dtypes import KeyDType
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import read_inputs
from maxjax._ir.runtime import installed
from maxjax._transforms.simplify import simplify
from tests.support import mojo_programs

# XLA finds SciPy's LAPACK only after this.
lapack._lapack.initialize()

FAMILIES = mojo_programs.tables()
# `pytest -m exhaustive` runs all.
COUNT = 10


def parsed(text):
    with mlir.make_ir_context():
        return mlir.module_to_bytecode(ir.Module.parse(text))


def run_by_xla(text, values):
    return run_code(parsed(text), values)


def run_code(code, values):
    client = xla_bridge.get_backend("cpu")
    executable = client.compile_and_load(
        code, _jax.DeviceList(tuple(client.devices()[:1])), xla_client.CompileOptions())
    with jax.enable_x64(True):
        results = executable.execute_sharded([jax.device_put(value) for value in values])
        return [np.asarray(shards[0])
                for shards in results.disassemble_into_single_device_arrays()]


def text_of(closed):
    return installed.runtime.stablehlo(
        "f", closed, [f"result[{number}]" for number in range(len(closed.out_avals))])


def words(value, aval):
    return value[..., None].view(np.uint32) if isinstance(aval.dtype, KeyDType) else value


def read_by_xla(text):
    """Bytecode of what XLA reads; None where only maxjax can run it."""
    code = parsed(text)
    return None if "maxjax." in text else code


def check(item, read):
    """Whether XLA can run all of it; raises an AssertionError where it gives something else."""
    closed = ClosedJaxpr(item.program.opened.jaxpr, [])
    values = [np.asarray(value) for value in item.values]
    with np.errstate(all="ignore"):
        expected = item.program.tier0(*[value.copy() for value in values])
    code = read(text_of(closed))
    if code is None:
        return False
    given = [words(value, aval) for value, aval, read in zip(
        values, closed.in_avals, read_inputs(simplify(closed)), strict=True) if read]
    actual = run_code(code, given)
    if item.tolerance == "elementwise":
        item.tolerance = "accumulate"       # XLA rounds a product and a sum at once
    item.compare([value.view(np.dtype(aval.dtype.physical))[..., 0]
                  if isinstance(aval.dtype, KeyDType) else value
                  for value, aval in zip(actual, closed.out_avals, strict=True)], expected)
    return True


def check_family(family, count, read=read_by_xla):
    chosen = [(case, mode) for case in FAMILIES[family] for mode in mojo_programs.modes_of(case)]
    if count is not None and len(chosen) > count:
        chosen = [chosen[int(number * len(chosen) / count)] for number in range(count)]
    failures, said = [], 0
    for case, mode in chosen:
        item = mojo_programs.item_of(case, mode)
        try:
            said += check(item, read)
        except Exception as error:
            failures.append(f"{item.name}: {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {len(chosen)} differ:\n" + "\n".join(failures)
    return said, len(chosen)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_give_what_tier_0_gives(family):
    check_family(family, COUNT)


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_give_what_tier_0_gives(family):
    check_family(family, None)


def test_operations_say_where_they_come_from():
    """With ``debug_info``: scopes and lines, which XLA reads, and without it none."""
    def function(x):
        with maxjax.named_scope('the "first"'):
            y = maxjax.numpy.sin(x)
        y = maxjax.lax.fori_loop(0, 3, lambda _, c: c + maxjax.numpy.tanh(c), y)
        return y, maxjax.numpy.sort(x)

    lowered = maxjax.jit(function).lower(np.ones(3, np.float32))
    text = lowered.as_text(debug_info=True)
    line = function.__code__.co_firstlineno + 2
    assert rf'loc("jit(function)/the \"first\"/sin"("{__file__}":{line}:0))' in text
    assert 'loc("jit(function)/while/body/tanh"' in text
    assert "}) : (tensor<3xf32>) -> (tensor<3xf32>) loc(" in text
    assert parsed(text)
    assert " loc(" not in lowered.as_text() and lowered.as_text() == lowered.as_text("stablehlo")


# Keys of XLA's own generator: functions of a key, its numbers, and a library.
KEYS = {
    "draws": lambda j, key, n: (j.random.uniform(key, (5,)), j.random.normal(key, (2, 3)),
                                j.random.randint(key, (7,), 0, n[2])),
    "bits": lambda j, key, n: [j.random.bits(key, (5,), dtype)
                               for dtype in ("uint8", "uint16", "uint32")],
    "split": lambda j, key, n: j.random.split(key, (2, 3)),
    "fold_in": lambda j, key, n: j.random.fold_in(key, n[1]),
    "a seed": lambda j, key, n: j.random.key(n[0], impl=j.random.key_impl(key)),
    "none": lambda j, key, n: j.random.split(key, 0),
    "moved about": lambda j, key, n: j.numpy.where(
        n[:2, None] > 1, j.random.split(key, (3, 2)).T[:, n[:1]], key)[::-1],
    "mapped": lambda j, key, n: j.vmap(lambda k, i: j.random.uniform(j.random.fold_in(k, i), (2,)))(
        j.random.split(key, 3), n),
    "mapped numbers": lambda j, key, n: j.vmap(lambda i: j.random.fold_in(key, i))(n),
    "a scan": lambda j, key, n: j.lax.scan(
        lambda k, x: (j.random.split(k)[1], j.random.uniform(k) * x), key, n),
    "scanned": lambda j, key, n: j.lax.scan(
        lambda s, k: (s + j.random.uniform(k), k), 0.0, j.random.split(key, 4)),
    "a loop": lambda j, key, n: j.lax.while_loop(
        lambda c: c[1] < 0.9, lambda c: (j.random.fold_in(c[0], 1), j.random.uniform(c[0])),
        (key, 0.0)),
    "a choice": lambda j, key, n: j.lax.cond(
        n[0] > 0, lambda k: (k, 1.0), lambda k: (j.random.fold_in(k, 3), j.random.uniform(k)), key),
}


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_xlas_generator(name, impl):
    """XLA runs the program on the keys' words, and gives what JAX gives, to the bit."""
    n = np.array([0, 1, 2], np.int32)

    def result(j):
        return j.jit(lambda key, n: KEYS[name](j, key, n), keep_unused=True)

    def plain(j, leaves):
        return [np.asarray(j.random.key_data(x) if j.dtypes.issubdtype(x.dtype, j.dtypes.prng_key)
                           else x) for x in leaves]

    key = maxjax.random.key(7, impl=impl)
    text = result(maxjax).lower(key, n).as_text()
    actual = run_by_xla(text, [np.asarray(maxjax.random.key_data(key)), n])
    expected = plain(jax, jax.tree.leaves(result(jax)(jax.random.key(7, impl=impl), n)))
    for a, e in zip(actual, expected, strict=True):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        np.testing.assert_array_equal(a, e)
