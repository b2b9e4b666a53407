"""Transfer guards: what is refused or logged where a value would be copied to another device.

On the CPU nothing is copied, but a guard finds what would be on an accelerator. A program's own
constants are no transfers; what the user passes is: a Python number or a NumPy array as an operand,
an array on another device than the result's.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np

from maxjax._base import config, dtypes
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.interrupts import context_manager
from maxjax._base.logs import logger
from maxjax._base.shardings import Sharding, SingleDeviceSharding
from maxjax._base.source import is_internal
from maxjax._ir.staging import is_staging
from maxjax._ir.types import ShapedArray
from maxjax._runtime.devices import default_device
from maxjax._transforms.batching import BatchTracer

# Arguments by these names say what to do, and are no operands.
_STATIC = frozenset((
    "axes", "axis", "axis1", "axis2", "ddof", "decimals", "dtype", "keepdims", "mode", "ndmin",
    "num", "order", "ord", "precision", "static_argnums", "unroll"))


# The flags of a function's code that say that it takes any number of arguments.
_TAKES_ANY = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class _State(threading.local):
    is_explicit = False
    destination: Sharding | None = None      # what explicit ones ask for


_state = _State()


@context_manager
def explicit(destination: Any = None) -> Iterator[None]:
    """Transfers inside are what the user asks for."""
    before = _state.is_explicit, _state.destination
    known = destination if isinstance(destination, Sharding) else None
    try:
        _state.is_explicit, _state.destination = True, known
        yield
    finally:
        _state.is_explicit, _state.destination = before


def check_operands(operands: Iterable[Any], array_type: type) -> None:
    """Guards operands from the host, those of no ``array_type``.

    Raises:
      JaxRuntimeError: the user passed one, and the guard forbids that.
    """
    for operand in operands:
        if not isinstance(operand, array_type):
            from_host(operand, None)


def from_host(value: Any, aval: ShapedArray | None, is_passed: bool = False) -> None:
    """Guards a value from the host that becomes an array.

    Args:
      aval: the array's type, if it is not the value's own.
      is_passed: whether it is known to be the user's.

    Raises:
      JaxRuntimeError: the guard forbids it.
    """
    level = config.transfer_guard_host_to_device.value
    if not _acts(level) or is_staging() or not (
            is_passed or _state.is_explicit or _is_passed_by_user()):
        return
    if aval is None:
        kind = value.__class__
        aval = (ShapedArray((), *dtypes.python_scalar(kind)) if kind in dtypes.PYTHON_SCALARS
                else ShapedArray(np.shape(value), dtypes.canonical(np.asarray(value).dtype)))
    where = _state.destination or SingleDeviceSharding(default_device())
    _act(level, f"host-to-device transfer: aval={aval!r}, dst_sharding={where!r}")


def between_devices(operands: Sequence[Any], results: Sequence[Any]) -> None:
    """Guards arrays whose devices are not those of the results that are computed from them.

    Raises:
      JaxRuntimeError: the guard forbids it.
    """
    level = config.transfer_guard_device_to_device.value
    if not _acts(level) or is_staging() or not results:
        return
    target = results[0].devices()
    for operand in operands:
        # One that was donated has no devices any more, and has the same sharding.
        if hasattr(operand, "devices") and operand.sharding.device_set != target:
            source = "" if _state.is_explicit else f" sharding={operand.sharding!r},"
            _act(level, f"device-to-device transfer: aval={operand.aval!r},{source} "
                        f"dst_sharding={results[0].sharding!r}")
            return


def _acts(level: str | None) -> bool:
    if level in (None, "allow"):
        return False
    return not _state.is_explicit or level in ("log_explicit", "disallow_explicit")


def _act(level: str, what: str) -> None:
    if level.startswith("log"):
        logger.warning("%s", what)
    else:
        raise JaxRuntimeError(f"INVALID_ARGUMENT: Disallowed {what}")


def _is_passed_by_user() -> bool:
    """Whether the function that the user has called was given a value of the host's."""
    frame: FrameType | None = sys._getframe(1)
    called: FrameType | None = None
    while frame is not None and is_internal(frame.f_code):
        # What takes any arguments hands them on, perhaps from a comprehension.
        if not frame.f_code.co_flags & _TAKES_ANY and frame.f_code.co_name[0] != "<":
            called = frame
        frame = frame.f_back
    if called is None:
        return True
    code = called.f_code
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    return any(_is_of_host(called.f_locals[name]) for name in names
               if name not in _STATIC and name in called.f_locals)


def _is_of_host(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_is_of_host, value))
    if isinstance(value, dict):
        return any(map(_is_of_host, value.values()))
    if isinstance(value, slice):
        return any(map(_is_of_host, (value.start, value.stop, value.step)))
    if isinstance(value, BatchTracer):
        return _is_of_host(value.value)
    return not isinstance(value, bool) and isinstance(
        value, (int, float, complex, np.ndarray, np.generic))
