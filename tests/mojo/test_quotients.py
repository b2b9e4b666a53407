"""Quotients and remainders of 64-bit integers: vectors of small ones are divided as real numbers,
others one by one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
from maxjax import lax
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

COUNT = 4001


def operands(dtype, rng):
    """Pairs of which both are below 2^52, or one, or none; and multiples and their neighbours."""
    info = np.iinfo(dtype)

    def below(bits):
        most = min(1 << bits, info.max)
        return rng.integers(max(-most, info.min), most, COUNT, dtype, endpoint=True)

    for bits in (4, 31, 33, 51, 52, 53, 63):
        for other in (3, 32, 51, 52, 60):
            yield below(bits), below(other)
    for most in (8, 20, 26):
        divisor = rng.integers(1, 1 << most, COUNT, dtype)
        quotient = rng.integers(1, 1 << 52 - most, COUNT, dtype)
        yield divisor * quotient + rng.integers(0, 3, COUNT, dtype) - dtype(1), divisor


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_quotients_and_remainders(dtype, monkeypatch):
    pairs = list(operands(dtype, np.random.default_rng(0)))
    with maxjax.enable_x64(True):
        program = Program(maxjax.make_jaxpr(
            lambda *given: [f(x, y) for x, y in zip(given[::2], given[1::2], strict=True)
                            for f in (lax.div, lax.rem)])(*[x for pair in pairs for x in pair]))
        item = mojo_programs.Item("quotients", program, [
            *program.consts, *[x for pair in pairs for x in pair]]).plan()
        mojo_programs.build([item])
        mojo_programs.check_all([item])
        monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
        mojo_programs.check_all([item])
