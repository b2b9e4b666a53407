"""take_rows and scatter_rows: what lowered gathers and scatters consist of.

A backend must know these two; they occur only in lowered programs, where derivatives have been
taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxjax._base import dtypes, native
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Host
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis
from maxjax._primitives import costs
from maxjax._primitives.arithmetic import add, mul
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_leading
from maxjax._primitives.comparison import lt_p, select
from maxjax._primitives.creation import full, iota
from maxjax._primitives.layout import move_axis, reshape, transpose
from maxjax._primitives.rules import replicated_factors

_NO_DERIVATIVE = "it stands only in lowered programs, where derivatives have been taken"

# --- take_rows ------------------------------------------------------------------------------------


def _leading(value: Array, axis: int | None, size: int) -> Array:
    return broadcast_leading(value, size) if axis is None else move_axis(value, axis, 0)


def _rows_of_all(rows: Array, height: int) -> Array:
    """Row numbers (size, count) in the rows of all elements of a batch, laid end to end."""
    return add(rows, mul(iota(dtypes.int32, rows.shape, 0), np.int32(height)))


def _take_rows_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis]
                     ) -> tuple[Array, int]:
    x, rows = operands
    x = _leading(x, axes[0], size)
    _, before, height, after = x.shape
    if axes[1] is None:
        out = take_rows_p.bind(reshape(x, (size * before, height, after)), rows)
        return reshape(out, (size, before, rows.shape[0], after)), 0
    rows = move_axis(rows, axes[1], 0)
    count = rows.shape[1]
    x = reshape(transpose(x, (1, 0, 2, 3)), (before, size * height, after))
    out = take_rows_p.bind(x, reshape(_rows_of_all(rows, height), (size * count,)))
    return transpose(reshape(out, (before, size, count, after)), (1, 0, 2, 3)), 0


take_rows_p = Primitive(
    "take_rows",
    # (before, rows, after), int32 (count,), all in bounds -> (before, count, after)
    abstract=lambda x, rows: ShapedArray((x.shape[0], rows.shape[0], x.shape[2]), x.dtype),
    evaluate=lambda x, rows: np.take(x, rows, axis=1),
    lower=lambda ctx, x, rows: ctx.gather_rows(x, rows, 1),
    derivative=Derivative(missing=_NO_DERIVATIVE),
    batch=_take_rows_batch,
    factors=replicated_factors,
)

# --- scatter_rows ---------------------------------------------------------------------------------


def _scatter_rows_evaluate(x: np.ndarray, rows: np.ndarray, updates: np.ndarray, *, kind: str,
                           out: np.ndarray | None = None) -> np.ndarray:
    if out is None or not out.flags.c_contiguous:
        out = np.array(x, order="C")
    kept = rows < x.shape[0]
    if not kept.all():
        rows, updates = rows[kept], updates[kept]
    write_rows(out, rows, updates, kind, unique=False)
    return out


def _scatter_rows_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *,
                        kind: str) -> tuple[Array, int]:
    x, rows, updates = operands
    x, updates = _leading(x, axes[0], size), _leading(updates, axes[2], size)
    _, height, after = x.shape
    count = updates.shape[1]
    if axes[1] is None:       # the elements of the batch side by side
        wide = [reshape(transpose(value, (1, 0, 2)), (value.shape[1], size * after))
                for value in (x, updates)]
        out = scatter_rows_p.bind(wide[0], rows, wide[1], kind=kind)
        return reshape(out, (height, size, after)), 1
    rows = move_axis(rows, axes[1], 0)
    dropped = full(rows.shape, size * height, dtypes.int32)
    bound = broadcast_in_dim(np.int32(height), rows.shape, ())
    rows = select(lt_p.bind(rows, bound), dropped, _rows_of_all(rows, height))
    out = scatter_rows_p.bind(
        reshape(x, (size * height, after)), reshape(rows, (size * count,)),
        reshape(updates, (size * count, after)), kind=kind)
    return reshape(out, (size, height, after)), 0


scatter_rows_p = Primitive(
    "scatter_rows",
    # (rows, after), int32 (count,) where `rows` itself means dropped, (count, after);
    # kind is "set" (the last one counts), "add", "mul", "min" or "max"
    abstract=lambda x, rows, updates, *, kind: ShapedArray(x.shape, x.dtype),
    evaluate=_scatter_rows_evaluate,
    host=Host(updates=True),
    lower=lambda ctx, x, rows, updates, *, kind: ctx.scatter_rows(kind, x, rows, updates),
    derivative=Derivative(missing=_NO_DERIVATIVE),
    batch=_scatter_rows_batch,
    factors=replicated_factors,
    cost=costs.SCATTER,
)

_UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum,
           "max": np.maximum}


def write_rows(out: np.ndarray, rows: np.ndarray, updates: np.ndarray, kind: str,
               unique: bool) -> None:
    """Combines ``updates`` into rows of ``out`` (2-D, contiguous) in place, in their order."""
    width = out.shape[1]
    if width == 1:
        out, updates = out.reshape(-1), updates.reshape(-1)
    name = None
    if updates.size >= native.FEWEST:
        if kind == "set":
            name = "scatter_rows_set" if width in native.SET_WIDTHS else None
        elif kind != "sub" and not unique:
            name = f"scatter_rows_{kind}" if width > 1 else f"scatter_rows_{kind} elements"
    scatter = native.find(name, out.dtype, updates.size) if name else None
    if scatter:
        scatter((out, rows.astype(np.int32, copy=False), np.ascontiguousarray(updates), out),
                (len(out), width, len(rows)), updates.size)
        return
    if kind == "set":
        out[rows] = updates
        return
    ufunc = _UFUNCS[kind]
    if unique:
        out[rows] = ufunc(out[rows], updates)
        return
    if width > 1:       # NumPy is fast only where both index and operand have one dimension
        rows = (rows[:, None].astype(np.intp) * width + np.arange(width)).reshape(-1)
        out, updates = out.reshape(-1), updates.reshape(-1)
    ufunc.at(out, rows, updates)
