"""A jaxpr as a StableHLO module."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import InconclusiveDimensionOperation
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import read_inputs
from maxjax._ir.primitive import Primitive
from maxjax._ir.runtime import Devices
from maxjax._ir.symbolic import scope_of
from maxjax._max.operations import LoweringError
from maxjax._stablehlo.devices import mesh_line, sharding
from maxjax._stablehlo.emitter import Emitter, Rule
from maxjax._stablehlo.keys import with_words
from maxjax._stablehlo.rules import rules
from maxjax._stablehlo.symbolic import SymbolicEmitter
from maxjax._stablehlo.writer import Value
from maxjax._transforms.simplify import inline_named, simplify


@functools.cache
def _rules() -> dict[Primitive, Rule]:
    return rules()


def module_text(name: str, closed: ClosedJaxpr, results: Sequence[str],
                located: bool = False, arguments: Sequence[str] = (),
                devices: Devices | None = None) -> str:
    """A module whose function ``main`` computes a jaxpr of its inputs that are read, or count as
    read (``keep_unused``); where sizes are symbolic, of all, as they say what the sizes are.

    Random keys are taken and returned as uint32 words, in a last dimension of their own. What
    StableHLO has no operation for is a call of ``maxjax.<primitive>``, which only maxjax computes.

    Args:
      name: of the function; the module's is ``jit_`` and that.
      results: what each result is called.
      located: operations say the scopes and the line that they come from.
      arguments: what each argument is called in messages about its sizes.
      devices: how the program lies over several.

    Raises:
      NotImplementedError: an operation cannot be written with its symbolic sizes.
    """
    scope = scope_of([aval.shape for aval in closed.in_avals])
    if scope is None:
        return _module_text(Emitter(_rules(), name if located else None), name, closed, results,
                            arguments, devices)
    symbolic = SymbolicEmitter(_rules(), name if located else None)
    with scope:
        try:
            return _module_text(symbolic, name, closed, results, arguments or [
                f"args[{number}]" for number in range(len(closed.in_avals))], devices)
        except (LoweringError, InconclusiveDimensionOperation, OverflowError) as error:
            raise NotImplementedError(f"{name} as StableHLO with symbolic sizes: {error}"
                                      ) from error


def _module_text(emitter: Emitter, name: str, closed: ClosedJaxpr, results: Sequence[str],
                 arguments: Sequence[str], devices: Devices | None) -> str:
    if emitter.located is not None:
        closed = inline_named(closed)
    closed = simplify(with_words(closed))
    jaxpr = closed.jaxpr
    emitter.depth = 2
    is_symbolic = isinstance(emitter, SymbolicEmitter)
    reads = [read or is_symbolic for read in read_inputs(closed)]
    taken: list[Value] = []
    values: list[Value] = []
    for var, read in zip(jaxpr.invars, reads, strict=True):
        values.append(Value(f"%arg{len(taken)}", *_words(var.aval)))
        if read:
            taken.append(values[-1])
    if isinstance(emitter, SymbolicEmitter):
        emitter.find_symbols([*zip(arguments, taken, strict=True)])
    values = [emitter.bitcast(x, var.aval.dtype) if read and _is_key(var.aval) else x
              for x, var, read in zip(values, jaxpr.invars, reads, strict=True)]
    outputs = [emitter.bitcast(x, np.dtype(np.uint32)) if _is_key(atom.aval) else x
               for x, atom in zip(emitter.lower_closed(closed, values), jaxpr.outvars, strict=True)]
    emitter.line(f"return {', '.join([x.name for x in outputs])} : "
                 f"{', '.join([x.type for x in outputs])}" if outputs else "return")
    specs = devices or Devices((), [None] * len(values), [None] * len(outputs))
    parameters = [f"{x.name}: {_typed(x, sharding(spec, len(x.shape)))}"
                  for x, spec in zip(taken, [spec for spec, read in zip(
                      specs.arguments, reads, strict=True) if read], strict=True)]
    returned = [_typed(x, [f'jax.result_info = "{result}"', *sharding(spec, len(x.shape))])
                for x, result, spec in zip(outputs, results, specs.results, strict=True)]
    symbol = re.sub(r"[^\w.-]", "_", name).rstrip("_")
    said = "jax.uses_shape_polymorphism = true, " if is_symbolic else ""
    count = math.prod(size for _, size in specs.axes)
    return "\n".join([
        f"module @jit_{symbol} attributes {{{said}mhlo.num_partitions = {count} : i32, "
        "mhlo.num_replicas = 1 : i32} {", *([] if devices is None else [mesh_line(devices)]),
        f"  func.func public @main({', '.join(parameters)}) -> ({', '.join(returned)}) {{",
        *emitter.lines, "  }",
        *(emitter.functions if isinstance(emitter, SymbolicEmitter) else ()), "}", ""])


def _typed(x: Value, attributes: Sequence[str]) -> str:
    """The type of an argument or result, and what is said of it."""
    return f"{x.type} {{{', '.join(attributes)}}}" if attributes else x.type


def _is_key(aval: Any) -> bool:
    return isinstance(aval.dtype, dtypes.KeyDType)


def _words(aval: Any) -> tuple[tuple[int, ...], np.dtype]:
    """The shape and dtype in which a value is taken and returned."""
    if not _is_key(aval):
        return aval.shape, np.dtype(aval.dtype)
    return (*aval.shape, dtypes.physical(aval.dtype).itemsize // 4), np.dtype(np.uint32)
