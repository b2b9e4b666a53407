"""Several iterations of a loop as one, where they compute large arrays element by element.

Each iteration of such a loop reads and writes the arrays that it carries: that, not the arithmetic,
takes its time. Several iterations in one body are one kernel, which reads and writes them once. The
values are the same.
"""

from __future__ import annotations

from typing import Any

from maxjax._ir.control_flow import Role, Structure
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import div_p, integer_pow_p, square_p
from maxjax._primitives.broadcasting import broadcast_in_dim_p
from maxjax._primitives.comparison import clamp_p, select_n_p
from maxjax._primitives.layout import reshape
from maxjax._primitives.slicing import slice_in_dim
from maxjax._primitives.transcendental import rsqrt_p, sqrt_p
from maxjax._transforms.partition import host_reason_within
from maxjax._transforms.simplify import expand

# Smaller arrays stay in caches that are as fast as what is computed.
_LEAST_BYTES = 1 << 17
# So many iterations at most, of so many operations together: a kernel's compile takes longer the
# longer it is.
_MOST_TOGETHER = 10
_MOST_WORK = 64
# What operations take in units of a cheap one. Others compute for longer than memory takes.
_WORK: dict[Primitive, int] = {
    select_n_p: 1, clamp_p: 2, square_p: 1, integer_pow_p: 2, div_p: 8, sqrt_p: 8, rsqrt_p: 8,
    broadcast_in_dim_p: 0}
# Beside them numbers may be computed: indices, steps, coefficients.
_FEW_ELEMENTS = 16
_MOST_SMALL = 12


def together(flow: Structure) -> int:
    """How many iterations of a loop are best made one; 1: it stays as it is."""
    length = flow.length
    if length is None or length < 2 or flow.predicate is not None or not flow.is_loop:
        return 1
    body, = flow.producers
    if len(body.jaxpr.out_avals) != len(flow.carries):
        return 1
    largest = max(body.jaxpr.out_avals, key=_nbytes, default=None)
    if largest is None or _nbytes(largest) < _LEAST_BYTES:
        return 1
    work = _work(body.jaxpr, largest.shape)
    if work is None:
        return 1
    most = min(_MOST_TOGETHER, length, _MOST_WORK // max(work, 1))
    return next((count for count in range(most, 1, -1) if length % count == 0), 1)


def unrolled(flow: Structure, count: int) -> Structure:
    """A loop of which ``count`` iterations are one; each takes as many slices of what is scanned.
    """
    body, = flow.producers
    scanned = tuple(flow.roles[number] is Role.SCANNED for number in body.takes)
    carries = tuple(body.takes.index(number) for number in flow.carries)
    closed = _several(body.jaxpr, count, scanned, carries, flow.reverse)
    assert flow.length is not None
    return Structure(flow.operands, [closed], flow.length // count, flow.reverse)


def _nbytes(aval: ShapedArray) -> int:
    return aval.size * aval.dtype.itemsize


@derived
def _work(closed: ClosedJaxpr, shape: tuple[int, ...]) -> int | None:
    """The work for each element of a shape; None if a body does anything else but compute some
    numbers."""
    work = small = 0
    for eqn in expand(closed).jaxpr.eqns:
        if host_reason_within(eqn) is not None or eqn.primitive.inner.control_flow is not None:
            return None
        if all(atom.aval.size <= _FEW_ELEMENTS for atom in eqn.outvars):
            if any(atom.aval.shape == shape for atom in eqn.invars):
                return None
            small += 1
            continue
        if any(atom.aval.shape != shape for atom in eqn.outvars) or any(
                atom.aval.shape not in (shape, ()) for atom in eqn.invars):
            return None
        own = _work_of(eqn)
        if own is None:
            return None
        work += own
    return work if work and small <= _MOST_SMALL else None


def _work_of(eqn: JaxprEqn) -> int | None:
    own = _WORK.get(eqn.primitive)
    return 1 if own is None and eqn.primitive.compiled.cheap else own


@derived
def _several(closed: ClosedJaxpr, count: int, scanned: tuple[bool, ...], carries: tuple[int, ...],
             reverse: bool) -> ClosedJaxpr:
    """``count`` iterations of a body.

    Args:
      scanned: which inputs are slices.
      carries: which of them each result is, in the next iteration.
    """
    closed = expand(closed)

    def steps(*values: Array) -> list[Any]:
        known: list[Any] = [*values]
        results: list[Any] = []
        for step in range(count - 1, -1, -1) if reverse else range(count):
            inputs = [_slice(x, step) if flag else x
                      for x, flag in zip(known, scanned, strict=True)]
            results = eval_jaxpr(closed.jaxpr, closed.consts, *inputs)
            for position, value in zip(carries, results, strict=True):
                known[position] = value
        return results

    return trace_to_jaxpr(steps, [
        aval.with_leading(count) if flag else aval
        for aval, flag in zip(closed.in_avals, scanned, strict=True)])


def _slice(x: Array, number: int) -> Array:
    return reshape(slice_in_dim(x, number, number + 1, 0), x.shape[1:])
