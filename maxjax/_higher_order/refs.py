"""Array references in the functions of loops and branches.

A function is traced once; if it touches references from outside (``RefsTouched``), it is traced
again as a function that also takes their values, and gives the new ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.pytree import PyTree
from maxjax._base.signatures import argument_names
from maxjax._base.source import function_location, show_as
from maxjax._ir.jaxpr import ClosedJaxpr, Var
from maxjax._ir.refs import (
    SET,
    Ref,
    RefState,
    RefsTouched,
    RefUse,
    Storage,
    argument_ref,
    check_distinct,
    read_all,
    write,
)
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, aval_of, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.convert import convert_element_type
from maxjax._transforms.refs import Lent


def has_refs(leaves: Sequence[object]) -> bool:
    return any(leaf.__class__ is Ref for leaf in leaves)


def functional(function: Callable[..., PyTree], uses: Sequence[RefUse]) -> Callable[..., Any]:
    """``(values of the references, *args) -> (new values, result)``; the types stay."""
    def pure(values: Sequence[Array], *args: PyTree, **kwargs: PyTree) -> Any:
        states = [RefState(None, value) for value in values]
        refs = context.trace.refs      # type: ignore[attr-defined]  # of the trace for this call
        refs.update((use.ref._storage, state) for use, state in zip(uses, states, strict=True))
        result = function(*args, **kwargs)
        return [_like(state.value, value.aval)
                for state, value in zip(states, values, strict=True)], result

    show_as(pure, function)
    return pure


def _like(value: Array, kind: ShapedArray) -> Any:
    if value.aval.weak_type == kind.weak_type:
        return value
    return convert_element_type(value, value.aval.dtype, kind.weak_type)


def keep_types(trace: Any) -> None:
    """Makes the new values of references as weakly typed as the old ones, in a trace."""
    for state in trace.refs.values():
        if state.initial is not None:
            state.value = _like(state.value, state.initial.aval)


def split_uses(uses: Sequence[RefUse]) -> tuple[list[int], list[int]]:
    """The numbers of those that are only read, and of those that are written."""
    return ([n for n, use in enumerate(uses) if not use.operation],
            [n for n, use in enumerate(uses) if use.operation])


def extended(closed: ClosedJaxpr, uses: Sequence[RefUse]) -> ClosedJaxpr:
    """The jaxpr as one that takes the values of all these references, and gives the new values of
    those that are written."""
    jaxpr = closed.jaxpr
    inputs = len(jaxpr.invars) - len(closed.refs)
    written = [use.ref._storage for use in closed.refs if use.operation]
    outputs = len(jaxpr.outvars) - len(written)
    before = dict(zip([use.ref._storage for use in closed.refs], jaxpr.invars[inputs:],
                      strict=True))
    after = dict(zip(written, jaxpr.outvars[outputs:], strict=True))
    for use in uses:
        if use.ref._storage not in before:
            before[use.ref._storage] = Var(use.ref.aval.inner_aval)
    return ClosedJaxpr(jaxpr.replace(
        invars=[*jaxpr.invars[:inputs], *(before[use.ref._storage] for use in uses)],
        outvars=[*jaxpr.outvars[:outputs], *(
            after.get(use.ref._storage, before[use.ref._storage])
            for use in uses if use.operation)]), closed.consts)


def values_for(uses: Sequence[RefUse]) -> list[Any]:
    """The values of references, as weakly typed as a trace takes them."""
    return [_like(value, use.ref.aval.inner_aval)
            for use, value in zip(uses, read_all(uses), strict=True)]


def strong(value: Array) -> Any:
    """The value that a reference is set to, which is not weakly typed."""
    if not value.aval.weak_type:
        return value
    return convert_element_type(value, value.aval.dtype)


def write_all(uses: Sequence[RefUse], values: Sequence[Array], in_loop: bool = False) -> None:
    for use, value in zip(uses, values, strict=True):
        if use.operation:
            is_set = in_loop and use.operation == SET
            write(use.ref, strong(value) if is_set else value, use.operation)


def callers_uses(error: RefsTouched, function: Callable[..., PyTree]) -> list[RefUse]:
    """What a function uses, its arguments (``with_arguments``) under the caller's names."""
    own = getattr(function, "own_refs", ())
    return [RefUse(use.ref._argument.of, use.operation)      # type: ignore[union-attr,arg-type]
            if use.ref in own else use for use in error.uses]


def union(*found: Sequence[RefUse]) -> list[RefUse]:
    """Each reference once; it is written if one of the functions writes it."""
    uses: dict[Storage, RefUse] = {}
    for use in (use for part in found for use in part):
        known = uses.get(use.ref._storage)
        if known is None or not known.operation:
            uses[use.ref._storage] = use
    return list(uses.values())


def with_arguments(function: Callable[..., PyTree], kind: str, arguments: tuple[PyTree, ...]
                   ) -> tuple[Callable[..., Any], list[Any]]:
    """A function of the arguments' arrays alone, which closes over the references among them.

    Raises:
      ValueError: a reference appears twice.
    """
    leaves, tree = pytree.flatten(arguments)
    names = argument_names(function, pytree.structure((arguments, {})))
    check_distinct([(leaf, name) for leaf, name in zip(leaves, names, strict=True)
                    if leaf.__class__ is Ref], function_location(function), kind)
    fixed = [argument_ref(leaf.aval, n, name, leaf) if leaf.__class__ is Ref else None
             for n, (leaf, name) in enumerate(zip(leaves, names, strict=True))]

    def call(*arrays: Value) -> Any:
        given = iter(arrays)
        return function(*pytree.unflatten(
            tree, [next(given) if ref is None else ref for ref in fixed]))

    show_as(call, function)
    call.own_refs = {ref for ref in fixed if ref is not None}      # type: ignore[attr-defined]
    return call, [leaf for leaf in leaves if leaf.__class__ is not Ref]


class Elements(Lent):
    """The references among a loop's inputs: each iteration has a reference to its own slice."""

    def __init__(self, function: Callable[..., PyTree], kind: str, arguments: tuple[PyTree, ...],
                 leaves: Sequence[object]):
        names = argument_names(function, pytree.structure((arguments, {})))
        super().__init__(
            leaves, names[len(names) - len(leaves):], function_location(function), kind)

    def finals(self) -> list[Any]:
        own = dict(self._own)
        return [_like(value, own[n][1].aval)
                for value, n in zip(super().finals(), self.written, strict=True)]


def refuse_both_ways(function: Callable[..., PyTree], kind: str,
                     arguments: tuple[PyTree, ...]) -> None:
    """Raises ValueError where a loop's body takes a reference that it also closes over.

    Args:
      arguments: values, types of values, and references.
    """
    call, given = with_arguments(function, kind, arguments)
    with contextlib.suppress(RefsTouched):
        trace_to_jaxpr(lambda *values: [call(*values), ()][1],
                       [x if isinstance(x, ShapedArray) else aval_of(installed.runtime.operand(x))
                        for x in given], function_location(function), kind)


def refuse_carry(function: Callable[..., PyTree], kind: str, carry: PyTree, prefix: str,
                 name: str) -> None:
    """Raises ValueError where a loop's carry holds a reference: its body could only return it."""
    paths, leaves = pytree.flatten_with_path(carry)[:2]
    check_distinct([(leaf, f"{name}{pytree.path_string(path)}")
                    for path, leaf in zip(paths, leaves, strict=True) if leaf.__class__ is Ref],
                   function_location(function), kind)
    for path, leaf in zip(paths, leaves, strict=True):
        if leaf.__class__ is Ref:
            place = pytree.path_string(path)
            where = f" at output tree path result{prefix}{place}" if prefix or place else ""
            raise ValueError(
                f"function {function_location(function)} traced for {kind} returned a mutable "
                f"array reference of type {leaf.aval}{where}, but mutable array references cannot "
                f"be returned.\n\nThe returned mutable array was passed in as the argument "
                f"{name}{place}.")
