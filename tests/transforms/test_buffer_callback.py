"""buffer_callback in compiled programs; its outcomes beside JAX's: tests/recorded."""

from __future__ import annotations

import numpy as np
import pytest

import maxjax
from maxjax._base import config
from maxjax.debug import statistics
from maxjax.experimental.buffer_callback import buffer_callback

ROW = maxjax.ShapeDtypeStruct((5,), np.float32)


@pytest.mark.tier1
@pytest.mark.xdist_group("mojo")
def test_it_is_a_host_step_of_compiled_programs():
    seen = []

    def shift(context, out, x):
        seen.append(np.array(np.asarray(x)))
        np.add(np.asarray(x), 1, out=np.asarray(out))

    with config.compile_mode("always"):
        @maxjax.jit
        def f(x):
            y = buffer_callback(shift, ROW)(maxjax.numpy.sin(x) * 2)
            return maxjax.lax.scan(lambda c, _: (buffer_callback(shift, ROW)(c) * 2, None),
                                   maxjax.numpy.cos(y), None, length=3)[0]

        x = np.linspace(0, 1, 5, dtype=np.float32)
        expected = np.cos(np.sin(x) * 2 + 1)
        for _ in range(3):
            expected = (expected + 1) * 2
        for call in range(1, 3):
            np.testing.assert_allclose(f(x), expected, rtol=1e-5)
            assert len(seen) == 4 * call
        np.testing.assert_allclose(seen[0], np.sin(x) * 2, rtol=1e-5)
        assert statistics(f).compiled_calls == 2


def test_a_kept_result_does_not_change():
    kept = []

    def fill(context, out, value):
        np.asarray(out)[...] = np.asarray(value)

    f = maxjax.jit(lambda value: buffer_callback(fill, ROW)(value))
    for value in range(4):
        kept.append(f(float(value)))
    assert [np.unique(x).tolist() for x in kept] == [[0], [1], [2], [3]]


def test_keys_are_not_written():
    with pytest.raises(TypeError, match="no keys"):
        buffer_callback(lambda *args: None, maxjax.random.key(0))
