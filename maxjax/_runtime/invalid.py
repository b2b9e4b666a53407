"""``debug_nans`` and ``debug_infs``: results are checked, and the operation to blame is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from maxjax._base import config, dtypes
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, Params
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array, Value

if TYPE_CHECKING:
    import numpy.typing as npt

    from maxjax._runtime.array import ArrayImpl

Apply = Callable[[Primitive, tuple[Value, ...], Params], Any]


def kind_of(value: npt.ArrayLike) -> str | None:
    """What is wrong with a value: "nan" or "inf"; None if nothing that is checked for."""
    value = np.asarray(value)
    if value.dtype == dtypes.float0 or not dtypes.is_inexact(value.dtype):
        return None
    with np.errstate(all="ignore"):
        if config.debug_nans.value and bool(np.isnan(value).any()):
            return "nan"
        if config.debug_infs.value and bool(np.isinf(value).any()):
            return "inf"
    return None


def check(name: str, results: Sequence[ArrayImpl]) -> None:
    """Checks the results (arrays) of a primitive.

    Raises:
      FloatingPointError: one is invalid.
    """
    for result in results:
        if dtypes.is_key(result.aval.dtype):
            continue
        kind = kind_of(result.host())
        if kind is not None:
            raise FloatingPointError(f"invalid value ({kind}) encountered in {name}")


def check_program(closed: ClosedJaxpr, operands: Sequence[Value], results: Sequence[ArrayImpl],
                  apply: Apply) -> None:
    """Checks a program's results; if one is invalid, the operations run one by one.

    Args:
      operands: arrays, before they are donated.
      apply: runs a primitive and checks its results.

    Raises:
      FloatingPointError: names the first operation whose result is invalid, and its line.
    """
    kinds = [kind_of(result.host()) for result in results
             if not dtypes.is_key(result.aval.dtype)]
    kind = next((kind for kind in kinds if kind is not None), None)
    if kind is not None:
        blame(kind, closed, operands, apply)


def blame(kind: str, closed: ClosedJaxpr, operands: Sequence[Value], apply: Apply,
          operation: str = "") -> NoReturn:
    """Says which operation of a program gives an invalid value.

    Args:
      operation: the name of the one that the program is, if it is one.

    Raises:
      FloatingPointError: in any case.
    """
    if operation:
        raise FloatingPointError(f"invalid value ({kind}) encountered in {operation}")
    _run_each(closed, operands, apply)
    name = closed.jaxpr.debug_info or "a program"
    raise FloatingPointError(
        f"invalid value ({kind}) encountered in the output of {name}. Its operations were run "
        "again one by one, as if without jit. However, the de-optimized function did not produce "
        "an invalid value: it may be a literal of the function's (jax.numpy.nan) or an input that "
        "it hands on; or compiled arithmetic rounds otherwise.")


def _run_each(closed: ClosedJaxpr, operands: Sequence[Value], apply: Apply) -> None:
    def run(eqn: JaxprEqn, given: Sequence[Value]) -> Sequence[Any]:
        if not eqn.outvars:        # only its effects: they have been
            return []
        try:
            result = apply(eqn.primitive, tuple(given), eqn.params)
        except FloatingPointError as error:
            message = _with_line(str(error), eqn)
            if any(_is_invalid(value) for value in given):
                message += (f"\nAn operand of {eqn.primitive.name} has such a value: the "
                            "de-optimized function did not produce it, a literal or an input "
                            "has it.")
            raise FloatingPointError(message) from None
        return result if eqn.primitive.multiple_results else [result]

    eval_jaxpr(closed.jaxpr, closed.consts, *operands, rule=run)


def _is_invalid(value: Value) -> bool:
    if dtypes.is_key(value.dtype):
        return False
    if isinstance(value, Array) and not value.is_fully_addressable:
        # What of it is here; other processes have the rest.
        return any(kind_of(shard.data) is not None for shard in value.addressable_shards)
    return kind_of(value) is not None


def _with_line(message: str, eqn: JaxprEqn) -> str:
    if "\n" in message or eqn.source is None:
        return message
    return f"{message}\nfrom line {eqn.source}"
