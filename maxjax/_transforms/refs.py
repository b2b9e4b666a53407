"""References among the arguments of a transformed function: they are lent to it.

The function gets references of its own, which live under the transformation's trace and hold the
transformed values; their final values are written to the caller's references afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.interrupts import context_manager, entered_at_once
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.source import function_location, show_as
from maxjax._ir.refs import AbstractRef, Ref, Storage, argument_ref, check_distinct, read, write
from maxjax._ir.trace import context
from maxjax._ir.typing import Value


class Lent:
    """The references among the leaves of a function's arguments.

    Raises:
      ValueError: a reference appears twice.
    """

    def __init__(self, leaves: Sequence[object], names: Sequence[str], location: str, kind: str):
        self.refs = {n: leaf for n, leaf in enumerate(leaves) if leaf.__class__ is Ref}
        self.names = names
        self.location = location
        self.kind = kind
        self.written: list[int] = []
        check_distinct([(ref, names[n]) for n, ref in self.refs.items()], location, kind)
        self._own: dict[int, tuple[Ref, Any]] = {}

    def values(self, leaves: Sequence[Any]) -> list[Any]:
        """The leaves with the values of references in their place."""
        return [read(leaf) if n in self.refs else leaf for n, leaf in enumerate(leaves)]

    def given(self, values: Sequence[Any]) -> list[Any]:
        """What the function is called with: references of the current trace to these values."""
        result = list(values)
        for n in self.refs:
            value = values[n]
            own = argument_ref(AbstractRef(value.aval), n, self.names[n],
                               storage=Storage(context.trace, value))
            self._own[n] = own, value
            result[n] = own
        return result

    def finals(self) -> list[Any]:
        """The values of those references that the function has written."""
        own, self._own = self._own, {}
        self.written = [n for n, (ref, value) in own.items() if ref._storage.value is not value]
        return [own[n][0]._storage.value for n in self.written]

    @context_manager
    def borrowed(self) -> Iterator[None]:
        """Lets nobody else use the references while the function has them.

        Raises:
          ValueError: somebody else used one.
        """
        before = [(ref._storage, ref._storage.lent) for ref in self.refs.values()]
        lent = [(n, ref._storage) for n, ref in self.refs.items()]
        try:
            for n, storage in lent:
                storage.lent = self.location, self.kind, self.names[n]
            yield
        finally:
            _restore(before)

    def write(self, values: Sequence[Value]) -> None:
        """Gives the caller's references the new values of those that were written."""
        for n, value in zip(self.written, values, strict=True):
            write(self.refs[n], value)


@entered_at_once
def _restore(before: Sequence[tuple[Storage, tuple[str, str, str] | None]]) -> None:
    try:
        for storage, lent in before:
            storage.lent = lent
    except BaseException:       # an interrupt, as in the middle of any loop
        _restore(before)
        raise


def lending(function: Callable[..., PyTree], tree: PyTreeSpec, leaves: Sequence[object],
            has_aux: bool, kind: str) -> tuple[Lent, Callable[..., Any]]:
    """The references among the leaves of a function's arguments, and the function of all leaves,
    with values in place of references, that gives the result and the references' final values."""
    lent = Lent(leaves, [f"args[{n}]" for n in range(len(leaves))], function_location(function),
                kind)

    def with_values(*values: Value) -> Any:
        result = function(*pytree.unflatten(tree, lent.given(values)))
        if not has_aux:
            return result, lent.finals()
        result, aux = result
        return (result, lent.finals()), aux

    show_as(with_values, function)
    return lent, with_values
