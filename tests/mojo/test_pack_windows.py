"""The kernels of the pack over windows.

`test_within_bounds` runs everything a second time,
in a process of its own, on buffers that end at an inaccessible page.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("max.engine")

from maxjax._primitives import comparison, window
from tests.mojo.pack_calls import (
    BITS,
    GUARDED,
    NUMBERS,
    THREADS,
    assert_same,
    call,
    empty,
    plain,
    run_guarded,
    values,
)

# Of x: outer, height, width, inner. Then pairs: window, strides, padding before, padding after,
# dilation of the window, of the operand.
WINDOWS = (
    ((2, 5, 6, 3), (2, 2), (2, 2), (0, 0), (0, 0), (1, 1), (1, 1)),
    ((1, 7, 5, 1), (3, 2), (1, 2), (1, 0), (1, 1), (1, 1), (1, 1)),
    ((2, 4, 6, 19), (2, 3), (1, 1), (1, 2), (0, 1), (2, 1), (1, 2)),
    ((1, 6, 6, 2), (2, 2), (1, 1), (-1, -2), (-1, 0), (1, 2), (2, 1)),
    ((3, 1, 40, 1), (1, 5), (1, 1), (0, 2), (0, 2), (1, 1), (1, 1)),
    ((3, 60, 130, 1), (2, 2), (2, 2), (0, 0), (0, 0), (1, 1), (1, 1)),
    ((2, 60, 67, 33), (3, 3), (2, 1), (1, 1), (1, 1), (1, 1), (1, 1)),
    ((0, 4, 4, 2), (2, 2), (1, 1), (0, 0), (0, 0), (1, 1), (1, 1)),
    ((2, 4, 4, 0), (2, 2), (1, 1), (0, 0), (0, 0), (1, 1), (1, 1)),
)


def padded(x: np.ndarray, value: Any, low: tuple, high: tuple, dilation: tuple) -> np.ndarray:
    return window.padded(x, np.asarray(value, x.dtype)[()],
                         ((0, 0), *zip(low, high, strict=True), (0, 0)), (1, *dilation, 1))


def window_counts(case: tuple) -> tuple[int, ...]:
    (_, *spatial, _), size, stride, low, high, step, base = case
    return tuple(
        ((n - 1) * base[k] + 1 + low[k] + high[k] - (size[k] - 1) * step[k] - 1) // stride[k] + 1
        for k, n in enumerate(spatial))


def window_sizes(case: tuple) -> list[int]:
    shape, size, stride, low, _, step, base = case
    return [*shape, *window_counts(case), *size, *stride, *low, *step, *base]


def window_params(case: tuple) -> dict[str, Any]:
    _, size, stride, low, high, step, base = case
    return {"window_dimensions": (1, *size, 1), "window_strides": (1, *stride, 1),
            "padding": ((0, 0), *zip(low, high, strict=True), (0, 0)),
            "window_dilation": (1, *step, 1), "base_dilation": (1, *base, 1)}


@pytest.mark.parametrize("bits", BITS)
def test_unfolded_windows_hold_their_elements(bits: int) -> None:
    for case in WINDOWS:
        shape, size, stride, low, high, step, base = case
        x = values(f"uint{bits}", *shape)
        wide = padded(x, 0, low, high, base)
        rows, columns = window_counts(case)
        expected = np.concatenate([
            wide[:, i * step[0]:i * step[0] + (rows - 1) * stride[0] + 1:stride[0],
                 j * step[1]:j * step[1] + (columns - 1) * stride[1] + 1:stride[1]]
            for i in range(size[0]) for j in range(size[1])], -1)
        for threads in THREADS:
            out = empty(x.dtype, *expected.shape)
            call("windows", f"unfold_{bits}", [x, out], *window_sizes(case), threads)
            assert_same(out, expected)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_convolutions_are_products_of_windows(dtype: str) -> None:
    """Windows times weights, in one block and in several."""
    larger = (3, 40, 41, 12), (3, 5), (1, 2), (1, 2), (1, 0), (1, 1), (1, 1)
    for case in (*WINDOWS, larger):
        shape, size, _, low, high, _, base = case
        if 0 in shape or base != (1, 1):
            continue
        x = plain(dtype, *shape)
        unfolded = empty(x.dtype, shape[0], *window_counts(case),
                         size[0] * size[1] * shape[3])
        call("windows", f"unfold_{8 * x.itemsize}", [x, unfolded], *window_sizes(case), 1)
        for outputs in (1, 5, 40):
            weights = plain(dtype, unfolded.shape[-1], outputs)
            expected = unfolded.astype(np.float64) @ weights.astype(np.float64)
            for threads in THREADS:
                out = empty(x.dtype, *expected.shape)
                call("matmul", f"convolve_{dtype}", [x, weights, out], *window_sizes(case),
                     outputs, threads)
                np.testing.assert_allclose(
                    out, expected, rtol=0, atol=1e-12 if dtype == "float64" else 1e-3)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("kind", ("sum", "max", "min"))
def test_reductions_of_windows_agree_with_tier_0(kind: str, dtype: str) -> None:
    primitive = getattr(window, f"reduce_window_{kind}_p")
    for case in WINDOWS:
        x = (plain if kind == "sum" else values)(dtype, *case[0])
        with np.errstate(all="ignore"):
            expected = primitive.evaluate(x, **window_params(case))
        for threads in THREADS:
            out = empty(x.dtype, *expected.shape)
            call("windows", f"window_{kind}_{dtype}", [x, out], *window_sizes(case), threads)
            assert_same(out, expected)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("kind", ("ge", "le"))
def test_select_scatter(kind: str, dtype: str) -> None:
    for case in WINDOWS:
        shape, size, stride, low, high, step, base = case
        if step != (1, 1) or base != (1, 1):
            continue
        x, updates = values(dtype, *shape), plain(dtype, shape[0], *window_counts(case), shape[3])
        params = window_params(case)
        del params["window_dilation"], params["base_dilation"]
        with np.errstate(all="ignore"):
            expected = window.select_and_scatter_add_p.evaluate(
                updates, x, select_prim=getattr(comparison, f"{kind}_p"), **params)
        for threads in THREADS:
            out = empty(x.dtype, *shape)
            call("windows", f"select_scatter_{kind}_{dtype}", [x, updates, out],
                 *window_sizes(case), threads)
            assert_same(out, expected)


@pytest.mark.skipif(GUARDED, reason="this is the process that the test starts")
def test_within_bounds() -> None:
    run_guarded(__file__)
