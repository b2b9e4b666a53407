"""Calls of the pack that the kernel of a loop over few elements (``emit_loop.py``) has in its text:
positions of extremes, and cumulative operations (``kernels/few.mojo``)."""

from __future__ import annotations

from maxjax._max.mojo.emitter import REDUCERS, kind_name
from maxjax._max.mojo.scalar_code import Instruction
from maxjax._max.mojo.structure import BOOL

_MOST_OF_FEW = 64       # elements
_MOST_COMPARED = 16     # of a line; more are compared by vectors
_MOST_ADDED = 32        # likewise; more are blocks, each of which begins anew
_CUMULATIVE = "cum"
_ACCUMULATED = ("sum", "prod", "max", "min")


def of_few(x: Instruction) -> str:
    """The text of the function for a call, without its operands; "" of what is called."""
    kind = x.function.partition("_")[0]
    if x.opcode != "call" or not x.sources or x.sources[0].dtype == BOOL:
        return ""
    dtype = kind_name(x.sources[0].dtype)
    if kind in ("argmax", "argmin"):
        outer, count, inner = x.numbers[:3]
        if not 0 < outer * count * inner <= _MOST_OF_FEW or count > _MOST_COMPARED:
            return ""
        return f"positions_of_few[{dtype}, {kind == 'argmax'}, {outer}, {count}, {inner}]"
    kind = kind.removeprefix(_CUMULATIVE)
    if not x.function.startswith(_CUMULATIVE) or kind not in _ACCUMULATED:
        return ""
    outer, count, inner, reverse = x.numbers[:4]
    # Columns are accumulated side by side, what is rounded to zero in one of them all anew.
    if inner != 1 or not 0 < count <= _MOST_ADDED or outer * count > _MOST_OF_FEW:
        return ""
    return f"accumulate_few[{REDUCERS[kind]}, {dtype}, {outer}, {count}, {bool(reverse)}]"
