"""What a traced function returns: arrays, and what may stand in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.pytree import PyTree
from maxjax._higher_order.jit_refs import returned_ref
from maxjax._ir.refs import Ref
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray


class HasNoValue:
    """What has a type and no value, and may yet be the result of a function that is only traced."""

    __slots__ = ()
    _aval: ShapedArray


class _Unknown(Array):
    """A constant that can be traced, and not computed with."""

    __slots__ = ()

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def literal(self) -> Any:
        return None

    def host(self) -> Any:
        raise TypeError("A ShapeDtypeStruct does not have a value and cannot be used as a constant "
                        "in a JAX function.")


def without_value(leaf: HasNoValue) -> Array:
    """What stands for it in a function that is only traced."""
    return _Unknown(leaf._aval)


def check_outputs(leaves: Sequence[object], location: str, kind: str,
                  tree: PyTree = None) -> list[Any]:
    """The leaves of a function's result as arrays; ``tree`` is the result, for the message."""
    runtime = installed.runtime
    results = []
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, Array):
            results.append(leaf)
            continue
        if isinstance(leaf, Ref):
            raise returned_ref(leaf, location, kind, position, tree)
        if isinstance(leaf, HasNoValue):
            results.append(without_value(leaf))
            continue
        try:
            results.append(runtime.argument(leaf))
        except TypeError:
            path = "" if tree is None else pytree.path_string(
                pytree.flatten_with_path(tree)[0][position])
            raise TypeError(
                f"function {location} traced for {kind} returned a value of type {type(leaf)}"
                + (f" at output component {path}" if path else "")
                + ", which is not a valid JAX type") from None
    return results
