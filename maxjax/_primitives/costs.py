"""What several primitives cost, as XLA and JAX's roofline count it (``maxjax/_ir/costs.py``)."""

from __future__ import annotations

import dataclasses
import math

from maxjax._ir.costs import Avals, Cost, Count, Roofline, XlaCost, bytes_of, size_of
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


def each(flops: int, transcendentals: int = 0) -> Cost:
    """XLA counts so many operations for each element of the result."""
    return Cost(xla=XlaCost(
        lambda ins, outs, params: flops * size_of(outs[:1]), transcendentals))


def elementwise(flops: int, transcendentals: int = 0) -> Cost:
    """As ``each``; JAX's roofline counts one."""
    return Cost(xla=each(flops, transcendentals).xla, roofline=ELEMENTWISE.roofline)


def _windows(ins: Avals, outs: Avals, params: Params) -> float:
    return size_of(outs[:1]) * (math.prod(params["window_dimensions"]) - 1)


def _along_axis(ins: Avals, outs: Avals, params: Params) -> float:
    return size_of(outs[:1]) * (ins[0].shape[params["axis"]] - 1)


def _one_line(ins: Avals, outs: Avals, params: Params) -> float:
    """JAX counts the numbers along the axis, however many lines there are."""
    return ins[0].shape[params["axis"]]


def _scattered_bytes(ins: Avals, outs: Avals, params: Params) -> float:
    return 3 * bytes_of(ins[2:]) + bytes_of(ins[1:2])


def no_flops(in_avals: Avals, out_avals: Avals, **params: object) -> float:
    return 0.0


def reduction_flops(in_avals: Avals, out_avals: Avals, **params: object) -> float:
    """For operations that combine the elements of an operand pair by pair."""
    return float(max(in_avals[0].size - out_avals[0].size, 0))


# It moves elements, or makes them without arithmetic.
MOVES = Cost(no_flops)

# --- as XLA counts --------------------------------------------------------------------------------

# It makes or moves elements, or is a call of a library, without operations that XLA would count.
FREE = Cost(xla=XlaCost(nothing))
# Nothing is moved, either.
UNMOVED = Cost(no_flops, XlaCost(nothing, moved=nothing))
VIEW = Cost(xla=XlaCost(views=True))
UNMOVED_VIEW = Cost(xla=XlaCost(moved=nothing, views=True))
SLICE = Cost(no_flops, XlaCost(moved=moves_results, takes_part=True))
ONE_EACH = each(1)
TRANSCENDENTAL = each(0, 1)
REDUCTION = Cost(reduction_flops, XlaCost(combines(), reduces=True))
WINDOWS = Cost(xla=XlaCost(_windows))
REDUCED_WINDOWS = Cost(xla=XlaCost(_windows, reduces=True))

# --- as JAX's roofline counts, too ----------------------------------------------------------------

ELEMENTWISE = Cost(roofline=Roofline(results))
FREE_ROOFLINE = Cost(roofline=Roofline(nothing))
CUMULATIVE = Cost(xla=XlaCost(_along_axis, reduces=True), roofline=Roofline(_one_line))
CUMULATIVE_OF_TWO = Cost(xla=XlaCost(nothing, reduces=True), roofline=Roofline(
    lambda ins, outs, params: 2 * _one_line(ins, outs, params)))
_SCATTER = XlaCost(lambda ins, outs, params: ins[-1].size, moved=_scattered_bytes)
_SCATTER_ROOFLINE = Roofline(lambda ins, outs, params: ins[2].size,
                             lambda ins, outs: [ins[1], *[ins[2]] * 3])
SCATTER = Cost(xla=_SCATTER, roofline=_SCATTER_ROOFLINE)
SCATTER_ALONE = Cost(xla=dataclasses.replace(_SCATTER, alone=True), roofline=_SCATTER_ROOFLINE)
SCATTER_UNCOMBINED = Cost(
    xla=XlaCost(nothing, moved=_scattered_bytes, alone=True),
    roofline=dataclasses.replace(_SCATTER_ROOFLINE, flops=nothing))
