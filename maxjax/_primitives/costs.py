"""What several primitives cost, as XLA and JAX's roofline count it (``maxjax/_ir/costs.py``)."""

from __future__ import annotations

import math

from maxjax._ir.costs import Avals, Count, Roofline, XlaCost, bytes_of, size_of
from maxjax._ir.typing import Params


def results(ins: Avals, outs: Avals, params: Params) -> float:
    """As many as the result has elements."""
    return size_of(outs[:1])


def nothing(ins: Avals, outs: Avals, params: Params) -> float:
    return 0


def moves_results(ins: Avals, outs: Avals, params: Params) -> float:
    """As many bytes of an operand are read as are written."""
    return 2 * bytes_of(outs)


def combines(each: int = 1) -> Count:
    """So many operations for each pair of elements that a reduction combines."""
    return lambda ins, outs, params: each * max(ins[0].size - size_of(outs[:1]), 0)


def each(flops: int, transcendentals: int = 0) -> XlaCost:
    """So many operations for each element of the result."""
    return XlaCost(lambda ins, outs, params: flops * size_of(outs[:1]), transcendentals)


def _windows(ins: Avals, outs: Avals, params: Params) -> float:
    return size_of(outs[:1]) * (math.prod(params["window_dimensions"]) - 1)


def _along_axis(ins: Avals, outs: Avals, params: Params) -> float:
    return size_of(outs[:1]) * (ins[0].shape[params["axis"]] - 1)


def _one_line(ins: Avals, outs: Avals, params: Params) -> float:
    """JAX counts the numbers along the axis, however many lines there are."""
    return ins[0].shape[params["axis"]]


def _scattered_bytes(ins: Avals, outs: Avals, params: Params) -> float:
    return 3 * bytes_of(ins[2:]) + bytes_of(ins[1:2])


# --- XLA ------------------------------------------------------------------------------------------

# It makes or moves elements, or is a call of a library, without operations that XLA would count.
FREE = XlaCost(nothing)
# Nothing is moved, either.
UNMOVED = XlaCost(nothing, moved=nothing)
VIEW = XlaCost(views=True)
UNMOVED_VIEW = XlaCost(moved=nothing, views=True)
SLICE = XlaCost(moved=moves_results, takes_part=True)
ONE_EACH = each(1)
TRANSCENDENTAL = each(0, 1)
REDUCTION = XlaCost(combines(), reduces=True)
CUMULATIVE = XlaCost(_along_axis, reduces=True)
WINDOWS = XlaCost(_windows)
REDUCED_WINDOWS = XlaCost(_windows, reduces=True)
SCATTER = XlaCost(lambda ins, outs, params: ins[-1].size, moved=_scattered_bytes)
SCATTER_ALONE = XlaCost(SCATTER.flops, moved=_scattered_bytes, alone=True)
SCATTER_UNCOMBINED = XlaCost(nothing, moved=_scattered_bytes, alone=True)

# --- the roofline ---------------------------------------------------------------------------------

ELEMENTWISE = Roofline(results)
FREE_ROOFLINE = Roofline(nothing)
CUMULATIVE_ROOFLINE = Roofline(_one_line)
CUMULATIVE_ROOFLINE_OF_TWO = Roofline(
    lambda ins, outs, params: 2 * _one_line(ins, outs, params))
SCATTER_ROOFLINE = Roofline(lambda ins, outs, params: ins[2].size,
                            lambda ins, outs: [ins[1], *[ins[2]] * 3])
SCATTER_UNCOMBINED_ROOFLINE = Roofline(nothing, SCATTER_ROOFLINE.moved)
