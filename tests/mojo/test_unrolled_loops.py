"""Loops of which several iterations are one: which are, and that their values are the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._max.mojo import context
from maxjax._runtime.program import Program
from maxjax._transforms import unroll

pytestmark = pytest.mark.xdist_group("mojo")

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 16 - 0.6
P = np.arange(60, dtype=np.float32) / 32 - 0.9


def horner(length, **options):
    return lambda x, p: lax.scan(
        lambda y, c: (y * x + c, None), jnp.zeros_like(x), p[:length], **options)[0]


def counted(length, step):
    return lambda x, p: lax.fori_loop(0, length, lambda i, y: step(i, y, x, p), x)


def escape(x, p):
    def step(_, state):
        z, count = state
        inside = z.real ** 2 + z.imag ** 2 < 4
        return jnp.where(inside, z * z + c, z), count + inside
    c = lax.complex(x, x[::-1] / 2)
    return lax.fori_loop(0, 12, step, (c, jnp.zeros(c.shape, jnp.int32)))


def of_bytes(x, p):
    return lax.fori_loop(0, 16, lambda i, y: (y * 3 + i.astype(jnp.uint8)) ^ (y >> 1),
                         (x * 100).astype(jnp.uint8))


def two_scanned(x, p):
    def step(state, slices):
        y, last, unchanged = state
        a, (b, c) = slices
        return (y * a[1] + c * unchanged, b, unchanged), None
    return lax.scan(step, (x, p[0], x + 1), (p[:20].reshape(10, 2), (p[20:30], p[30:40])))[0]


# What becomes of a loop: how many iterations are one, for each time that one is lowered.
LOOPS = {
    "scan": (horner(60), [10]),
    "reversed": (horner(60, reverse=True), [10]),
    "short": (horner(4), [4]),
    "of prime length": (horner(59), []),
    "of one iteration": (horner(1), []),
    "fori_loop": (counted(14, lambda i, y, x, p: y * x + p[2 * i]), [7]),
    "division": (counted(12, lambda i, y, x, p: 0.5 * (y + (x + 2) / (y * y + 1))), [4]),
    "exchanged": (lambda x, p: lax.fori_loop(
        0, 9, lambda i, s: (s[1], s[0] * jnp.where(s[1] > 0, x, 1 - x)), (x, x / 2)), [9]),
    "complex": (escape, [3]),
    "bytes": (of_bytes, [8]),
    "two scanned": (two_scanned, [10]),
    "nested": (counted(3, lambda i, z, x, p: lax.fori_loop(
        0, 6, lambda j, y: y * x + z * p[i + j], z)), [6]),
    "with a sum": (counted(8, lambda i, y, x, p: y * x + y.sum()), []),
    "with an element": (counted(8, lambda i, y, x, p: y * x + y[0, 0]), []),
    "of rows": (counted(8, lambda i, y, x, p: y * x + p[:6]), []),
    "shifted": (counted(8, lambda i, y, x, p: jnp.roll(y, 1, 0) * x), []),
    "exponential": (counted(8, lambda i, y, x, p: jnp.exp(-y * x)), []),
    "stacked": (lambda x, p: lax.scan(lambda y, c: (y * x + c, y), x, p[:8]), []),
    "while_loop": (lambda x, p: lax.while_loop(
        lambda s: s[0] < 8, lambda s: (s[0] + 1, s[1] * x), (0, x)), []),
}


@pytest.fixture
def counts(monkeypatch):
    monkeypatch.setattr(unroll, "_LEAST_BYTES", 1)
    found = []

    def unrolled(flow, count):
        found.append(count)
        return unroll.unrolled(flow, count)
    monkeypatch.setattr(context, "unrolled", unrolled)
    return found


def item(name):
    function = LOOPS[name][0]
    drawn = Program(maxjax.make_jaxpr(function)(X, P))
    return mojo_programs.Item(name, drawn, [*drawn.consts, X, P]).plan()


def test_elementwise_loops_are_unrolled_and_give_the_same_values(counts, monkeypatch):
    mojo_programs.fill_unwritten(monkeypatch, 0x75)
    items, found = [], {}
    for name in LOOPS:
        counts.clear()
        items.append(item(name))
        found[name] = list(dict.fromkeys(counts))
    assert found == {name: expected for name, (_, expected) in LOOPS.items()}
    mojo_programs.build(items)
    mojo_programs.check_all(items)


def test_small_arrays_are_not_unrolled(monkeypatch):
    monkeypatch.setattr(context, "unrolled", None)
    item("scan")
