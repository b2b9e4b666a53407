"""Array references among the arguments of a jitted function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import pytree
from maxjax._base.pytree import PyTree
from maxjax._ir.refs import (
    AbstractRef,
    Ref,
    RefUse,
    argument_ref,
    both_ways,
    check_distinct,
    read,
    write_back,
)
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value

if TYPE_CHECKING:
    from maxjax._higher_order.entries import Entry


def traced_argument(aval: ShapedArray | Ref, position: int, name: str) -> Ref | None:
    """What stands for an argument that is a reference while the function is traced.

    ``aval`` is the type of the argument, or the reference itself where only that will do.
    """
    if isinstance(aval, AbstractRef):
        return argument_ref(aval, position, name)
    return argument_ref(aval.aval, position, name, aval) if isinstance(aval, Ref) else None


def used_refs(uses: Sequence[RefUse], operands: Sequence[Any],
              names: Callable[[], tuple[list[str], str]]) -> list[Ref]:
    """The references that a call uses: arguments of it, and those that the function closes over.

    Args:
      names: those of the arguments and of the function, for messages.

    Raises:
      ValueError: one is passed twice, or is passed and closed over.
    """
    passed = [(position, x) for position, x in enumerate(operands) if x.__class__ is Ref]
    if passed:
        storages = {x._storage for _, x in passed}
        closed_over = {use.ref._storage for use in uses if use.ref._argument is None}
        if len(storages) < len(passed) or not storages.isdisjoint(closed_over):
            all_names, location = names()
            check_distinct([(x, all_names[position]) for position, x in passed], location, "jit")
            for position, x in passed:
                if x._storage in closed_over:
                    raise both_ways(x, location, "jit", all_names[position])
    return [use.ref if use.ref._argument is None else operands[use.ref._argument.position]
            for use in uses]


def call_with_refs(entry: Entry, operands: Sequence[Value],
                   names: Callable[[], tuple[list[str], str]],
                   apply: Callable[[Sequence[Value]], Sequence[Array]]) -> list[Any]:
    """A function's own results, of a call with the values of references as further arguments; the
    new ones are written.

    Args:
      operands: those of the call, references among them.
      names: those of the arguments and of the function, for messages.
      apply: gives the program's results.

    Raises:
      ValueError: a reference is passed twice, or is passed and closed over.
    """
    uses = entry.closed.refs
    refs = used_refs(uses, operands, names)
    results = apply([*(x for x in operands if x.__class__ is not Ref), *map(read, refs)])
    return write_back(
        [RefUse(ref, use.operation) for ref, use in zip(refs, uses, strict=True)], results)


def returned_ref(ref: Ref, location: str, kind: str, position: int, tree: PyTree) -> ValueError:
    """The error of a function that returns a reference, the leaf of ``tree`` at a position."""
    path = "" if tree is None else pytree.path_string(
        pytree.flatten_with_path(tree)[0][position])
    where = f" at output tree path result{path}" if path else ""
    origin = ref._argument and (
        f"\n\nThe returned mutable array was passed in as the argument {ref._argument.name}.")
    if origin is None and ref._line is not None:
        origin = f"\n\nThe returned mutable array was created on line {ref._line.with_column()}."
    return ValueError(
        f"function {location} traced for {kind} returned a mutable array reference of type "
        f"{ref.aval}{where}, but mutable array references cannot be returned.{origin or ''}")
