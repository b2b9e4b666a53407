"""That a plan's calls stay within their arrays: asked of each plan, whatever it was made from.

A kernel trusts its integers, so a mistake anywhere above, or a program that should not have been
let in, would read and write memory that is not its own. Each access here is held against the sizes
of its arrays as planning ends: what runs is not asked again.
``check_plan.py`` checks more, in tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base.errors import InternalError
from maxjax._ir.control_flow import Role
from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.nodes import (
    Access,
    Call,
    Composed,
    Iota,
    Loop,
    Node,
    Overlay,
    base_of,
    strided,
)
from maxjax._primitives import fourier

if TYPE_CHECKING:
    from maxjax._max.mojo.part import Part


def check_extents(part: Part) -> None:
    """Checks all accesses of a part whose calls are written.

    Raises:
      InternalError: one is outside of its array. Names the node, the group or the function.
    """
    for unit, detail in part.units:
        if isinstance(unit, Group):
            for operand in part.kernels[unit].operands:
                _check_access(unit, operand.node, operand.access, unit.space)
        elif isinstance(unit, Composed):
            if detail != "done":        # which comes once, after its pieces
                continue
            for source, piece in zip(unit.sources, unit.pieces, strict=True):
                _check_piece(unit, source, piece)
            if isinstance(unit, Overlay):
                _require(unit.ground.size == unit.size, unit, f"it is put on {unit.ground!r}")
                _check_strided(unit, unit.ground)
        elif isinstance(unit, Loop):
            _check_loop(unit)
        elif isinstance(unit, Call):
            _check_call(unit)


def _require(holds: bool, what: object, message: str) -> None:
    if not holds:
        raise InternalError(f"{what!r}: {message}")


def _check_access(what: object, node: Node, access: Access, space: Sequence[int]) -> None:
    """An access, once for each point of a space, stays within a node."""
    if 0 in space:
        return
    first = last = access.offset
    for size, stride in zip(space, access.strides, strict=True):
        end = (size - 1) * stride
        if end < 0:
            first += end
        else:
            last += end
    # For an array without elements a zero is stored, which is not read.
    if first < 0 or last >= max(node.size, 1):
        raise InternalError(
            f"{what!r}: it accesses {node!r} from element {first} to {last}, of {node.size}")


def _check_piece(node: Composed, source: Node, piece: Any) -> None:
    for whole, size, start, step in zip(node.shape, source.shape, piece.starts, piece.steps,
                                        strict=True):
        end = start + (size - 1) * step
        _require(size == 0 or 0 <= start < whole and 0 <= end < whole, node,
                 f"a piece goes from {start} to {end} of {whole}")
    _check_strided(node, source)


def _check_strided(what: object, x: Node) -> None:
    """A view of what lies in memory."""
    base = base_of(x)
    if not isinstance(base, Iota):
        _check_access(what, base, strided(x), x.shape)


def _check_loop(loop: Loop) -> None:
    """Each body is given arrays of the sizes that it was planned for."""
    flow = loop.flow
    for x in loop.inputs:
        _check_strided(loop, x)
    for body in flow.bodies:
        for number, aval in zip(body.takes, body.jaxpr.in_avals, strict=True):
            shape = loop.inputs[number].shape
            if flow.roles[number] is Role.SCANNED:
                _require(bool(shape) and (flow.length is None or shape[0] >= flow.length), loop,
                         f"it goes through {shape} {flow.length} times")
                shape = shape[1:]
            _require(math.prod(shape) == math.prod(aval.shape), loop,
                     f"a body takes {aval}, and is given {shape}")


def _check_call(call: Call) -> None:
    for x in call.inputs:
        _check_strided(call.function, x)
    if call.host is not None:
        return
    if call.strided:
        _check_matrices(call)
        return
    kind = next((name for name in _kinds if call.function.startswith(name)), None)
    if kind is None:
        raise InternalError(f"{call.function}: what it accesses is not known")
    first = call.inputs[0].dtype.itemsize
    inputs, outputs = EXTENTS[kind](call.integers, first)
    given = [x.size for x in call.inputs]
    _require(len(inputs) == len(given) and len(outputs) == len(call.result_bytes), call.function,
             f"it has {len(given)} operands and {len(call.result_bytes)} results")
    _require(all(need <= size for need, size in zip(inputs, given, strict=True)), call.function,
             f"it reads {list(inputs)} elements of arrays of {given}")
    _require(all(need <= size for need, size in zip(outputs, call.result_bytes, strict=True)),
             call.function, f"it writes {list(outputs)} bytes of {list(call.result_bytes)}")


def _check_matrices(call: Call) -> None:
    """A product of matrices, or a copy of any view."""
    result, = call.result_bytes
    if len(call.inputs) == 1:
        needed = call.inputs[0].size
    else:
        a, b = call.inputs
        _require(a.shape[:-2] == b.shape[:-2] and a.shape[-1] == b.shape[-2], call.function,
                 f"a product of {a.shape} and {b.shape}")
        needed = math.prod(a.shape[:-1]) * b.shape[-1]
    _require(needed * call.inputs[0].dtype.itemsize <= result, call.function,
             f"it writes {needed} elements to {result} bytes")


# --- the pack's functions -------------------------------------------------------------------------

# A function of the integers of a call and of the bytes of an element of its first operand, which
# gives how many elements of each operand it reads, and how many bytes of each result it writes.
Extents = Callable[[Sequence[int], int], tuple[Sequence[int], Sequence[int]]]


def _canonical(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    whole = n[0] * n[1] * n[2]
    return [whole], [whole * size]


def _positions(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    return [n[0] * n[1] * n[2] if n[1] else 1 << 62], [4 * n[0] * n[2]]


def _windows(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    return [math.prod(n[:4])], [n[0] * n[4] * n[5] * n[3] * size]


def _unfolded(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    return [math.prod(n[:4])], [n[0] * n[4] * n[5] * n[6] * n[7] * n[3] * size]


def _selected(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    return [math.prod(n[:4]), n[0] * n[4] * n[5] * n[3]], [math.prod(n[:4]) * size]


def _convolved(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    outputs = n[-2]
    return ([math.prod(n[:4]), n[6] * n[7] * n[3] * outputs],
            [n[0] * n[4] * n[5] * outputs * size])


def _window(n: Sequence[int]) -> tuple[int, int, int]:
    """The rank, and the elements of the window and of the whole."""
    rank = n[0]
    return rank, math.prod(n[1:1 + rank]), math.prod(n[1 + 3 * rank:1 + 4 * rank])


def _read_window(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    rank, part, whole = _window(n)
    return [whole, rank], [part * size]


def _write_window(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    rank, part, whole = _window(n)
    return [whole, rank, part], [whole * size]


def _products(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    stack, m, columns, k = n[:4]
    return [stack * m * columns, stack * k], [stack * m * columns * size]


def _by_reflections(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    stack, m, columns, rows, width, taus = n[:6]
    return [stack * rows * width, stack * taus, stack * m * columns], [stack * m * columns * size]


def _reflections(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    stack, rows, columns = n[:3]
    whole = stack * rows * columns
    return [whole], [whole * size, stack * min(rows, columns) * size]


def _factors(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    stack, rows, columns = n[:3]
    whole = stack * rows * columns
    return [whole], [whole * size, 4 * stack * min(rows, columns), 4 * stack * rows]


def _values(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    stack, rows, columns = n[:3]
    return [stack * rows * columns], [stack * min(rows, columns) * n[-2]]


def _decomposed(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    stack, rows, columns, _, full = n[:5]
    k = min(rows, columns)
    return [stack * rows * columns], [
        stack * k * n[-2], stack * rows * (rows if full else k) * size,
        stack * columns * (columns if full else k) * size]


def _eigenvalues(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    line = n[0] * n[1] * 2 * n[-2]
    return [n[0] * n[1] ** 2], [line, *[n[1] * line] * (n[3] + n[4])]


def _transformed(n: Sequence[int], size: int) -> tuple[Sequence[int], Sequence[int]]:
    known = fourier.extents(n, size if fourier.Kind(n[0]).is_from_real else size // 2)
    if known is None:
        return [1 << 62, 1 << 62], [0, 0]
    return known[:2], known[2:]


EXTENTS: dict[str, Extents] = {
    "argsort_few_": lambda n, size: ([n[0] * n[1]], [4 * n[0] * n[2]]),
    "argsort_": lambda n, size: ([n[0] * n[1]], [4 * n[0] * n[1]]),
    "sort_": lambda n, size: ([n[0] * n[1]], [n[0] * n[1] * size]),
    "argmax_": _positions, "argmin_": _positions,
    "cumsum_": _canonical, "cumprod_": _canonical, "cummax_": _canonical, "cummin_": _canonical,
    "unfold_": _unfolded, "window_": _windows, "select_scatter_": _selected,
    "convolve_": _convolved, "read_window_": _read_window, "write_window_": _write_window,
    "gather_rows_": lambda n, size: (
        [n[0] * n[1] * n[2], n[3]], [n[0] * n[3] * n[2] * size]),
    "scatter_rows_": lambda n, size: ([n[0] * n[1], n[2], n[2] * n[1]], [n[0] * n[1] * size]),
    "permutation_of_exchanges": lambda n, size: ([n[0] * n[1]], [4 * n[0] * n[2]]),
    "threefry2x32": lambda n, size: ([n[0], n[0], n[1], n[1]], [4 * n[1], 4 * n[1]]),
    "gamma_cubes_": lambda n, size: ([n[0], n[0]], [0, 0]),
    "poisson_counts_": lambda n, size: ([n[0], n[0] * n[1]], [4 * n[0] * n[1], 0]),
    "potrf_": lambda n, size: ([n[0] * n[1] ** 2], [n[0] * n[1] ** 2 * size]),
    "getrf_": _factors, "geqrf_": _reflections, "orgqr_": _products, "ormqr_": _by_reflections,
    "trsm_": lambda n, size: ([n[0] * n[1] ** 2, n[0] * n[1] * n[2]], [n[0] * n[1] * n[2] * size]),
    "gesv_": lambda n, size: ([n[0] * n[1] ** 2, n[0] * n[1] * n[2]], [n[0] * n[1] * n[2] * size]),
    "gtsv_": lambda n, size: (
        [n[0] * n[1]] * 3 + [n[0] * n[1] * n[2]], [n[0] * n[1] * n[2] * size]),
    "geev_values_": _eigenvalues, "geev_both_": _eigenvalues, "geev_": _eigenvalues,
    "gees_": lambda n, size: ([n[0] * n[1] ** 2], [n[0] * n[1] ** 2 * size] * 2),
    "gees_values_": lambda n, size: ([n[0] * n[1] ** 2], [n[0] * n[1] ** 2 * size]),
    "gehrd_": lambda n, size: (
        [n[0] * n[1] ** 2], [n[0] * n[1] ** 2 * size, n[0] * (n[1] - 1) * size]),
    "sytrd_": lambda n, size: (
        [n[0] * n[1] ** 2], [n[0] * n[1] ** 2 * size, n[0] * n[1] * n[-2],
                             n[0] * (n[1] - 1) * n[-2], n[0] * (n[1] - 1) * size]),
    "syevd_": lambda n, size: (
        [n[0] * n[1] ** 2], [n[0] * n[1] ** 2 * size, n[0] * n[1] * n[-2]]),
    "gesdd_values_": _values, "gesdd_": _decomposed, "fourier_": _transformed,
}
_kinds = sorted(EXTENTS, key=len, reverse=True)
