"""A jaxpr as a StableHLO module."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import kept_inputs
from maxjax._ir.primitive import Primitive
from maxjax._stablehlo.emitter import Emitter, Rule, Value
from maxjax._stablehlo.rules import rules
from maxjax._transforms.simplify import simplify


@functools.cache
def _rules() -> dict[Primitive, Rule]:
    return rules()


def module_text(name: str, closed: ClosedJaxpr, results: Sequence[str],
                located: bool = False) -> str:
    """A module whose function ``main`` computes a jaxpr of its inputs that are read, or count as
    read (``keep_unused``).

    Random keys are taken and returned as uint32 words, in a last dimension of their own. What
    StableHLO has no operation for is a call of ``maxjax.<primitive>``, which only maxjax computes.

    Args:
      name: of the function; the module's is ``jit_`` and that.
      results: what each result is called.
      located: operations say the scopes and the line that they come from.

    Raises:
      NotImplementedError: a size is symbolic.
    """
    if any(is_dimension(size) for aval in (*closed.in_avals, *closed.out_avals)
           for size in aval.shape):
        raise NotImplementedError(f"{name} as StableHLO: its sizes are symbolic")
    traced, closed = closed, simplify(closed)
    jaxpr = closed.jaxpr
    emitter = Emitter(_rules(), name if located else None)
    emitter.depth = 2
    taken: list[Value] = []
    values: list[Value] = []
    for var, read in zip(jaxpr.invars, kept_inputs(traced, closed), strict=True):
        x = Value(f"%arg{len(taken)}", *_words(var.aval))
        if read:
            taken.append(x)
            if _is_key(var.aval):
                x = emitter.bitcast(x, var.aval.dtype)
        values.append(x)
    outputs = [emitter.bitcast(x, np.dtype(np.uint32)) if _is_key(atom.aval) else x
               for x, atom in zip(emitter.lower_closed(closed, values), jaxpr.outvars, strict=True)]
    emitter.line(f"return {', '.join([x.name for x in outputs])} : "
                 f"{', '.join([x.type for x in outputs])}" if outputs else "return")
    returned = ", ".join([f'{x.type} {{jax.result_info = "{result}"}}'
                          for x, result in zip(outputs, results, strict=True)])
    arguments = ", ".join([f"{x.name}: {x.type}" for x in taken])
    symbol = re.sub(r"[^\w.-]", "_", name).rstrip("_")
    return "\n".join([
        f"module @jit_{symbol} attributes "
        "{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {",
        f"  func.func public @main({arguments}) -> ({returned}) {{",
        *emitter.lines, "  }", "}", ""])


def _is_key(aval: Any) -> bool:
    return isinstance(aval.dtype, dtypes.KeyDType)


def _words(aval: Any) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and dtype in which a value is taken and returned."""
    if not _is_key(aval):
        return aval.shape, np.dtype(aval.dtype)
    return (*aval.shape, dtypes.physical(aval.dtype).itemsize // 4), np.dtype(np.uint32)
