"""``jax_debug_key_reuse``: which random keys in arrays are consumed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from maxjax._base.config import debug_key_reuse
from maxjax._base.dtypes import KeyDType
from maxjax._base.errors import KeyReuseError
from maxjax._base.tracebacks import Place, places_of_user, traceback_of
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._runtime.key_signatures import (
    Mask,
    Signature,
    Sink,
    complement,
    of_program,
    overlap,
    union,
)

# By the arrays' identities: the array, which keys, and where the first of them was.
_consumed: dict[int, tuple[Any, Mask, list[Place]]] = {}
_FIRST = ("PRNG key first used at the above location was subsequently reused at the following "
          "location:")


def used(closed: ClosedJaxpr, args: Sequence[Any], name: str) -> Callable[[Sequence[Any]], None]:
    """Asks for the keys that a program consumes; what is returned notes its results.

    Args:
      name: the program's, in the error.

    Raises:
      KeyReuseError: some are consumed already, or it consumes one twice.
    """
    if not debug_key_reuse.value:
        return lambda results: None
    signature = of_program(closed)
    given = [*args, *closed.consts]
    for sink, array in _keys(signature, given):
        if overlap(_of(array), sink.mask):
            first = KeyReuseError(_FIRST).with_traceback(traceback_of(_consumed[id(array)][2]))
            raise KeyReuseError(f"Previously-consumed key passed to {name} at index "
                                f"{sink.operand}") from first
    return lambda results: _note(signature, given, results)


def _note(signature: Signature, args: Sequence[Any], results: Sequence[Any]) -> None:
    for sink, array in _keys(signature, args):
        _set(array, union(_of(array), sink.mask))
    for source in signature.sources:
        _set(results[source.result], complement(source.mask))
    for forward in signature.forwards:
        result, mask = results[forward.result], _of(args[forward.operand])
        same = isinstance(mask, bool) or np.shape(mask) == result.shape
        _set(result, mask if same else bool(np.all(mask)))


def _keys(signature: Signature, args: Sequence[Any]) -> Iterator[tuple[Sink, Any]]:
    for sink in signature.sinks:
        array = args[sink.operand]
        if isinstance(getattr(array, "dtype", None), KeyDType):
            yield sink, array


def _of(array: Any) -> Mask:
    entry = _consumed.get(id(array))
    return False if entry is None else entry[1]


def _set(array: Any, mask: Mask) -> None:
    key = id(array)
    if mask is False:
        _consumed.pop(key, None)
        return
    known = _consumed.get(key)
    places = places_of_user() if known is None else known[2]
    _consumed[key] = weakref.ref(array, lambda _: _consumed.pop(key, None)), mask, places
