"""Trees of booleans that say something of each leaf of a function's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree
from maxjax._base.signatures import wraps
from maxjax._ir.refs import Ref
from maxjax._primitives.convert import stop_gradient_p
from maxjax._transforms.linear_functions import operands_of


def flags_of(given: PyTree, values: Sequence[PyTree], what: str) -> list[bool]:
    """A flag for each leaf of ``values``.

    Args:
      given: a boolean, or containers of booleans that are a prefix of the values; a container
        corresponds to any other with as many children.
      what: the argument and its function, for messages: ``in_nzs of vjp``.

    Raises:
      ValueError: it is no such tree.
    """
    name, _, function = what.partition(" of ")
    return flags_for(given, tuple(values), name, f"the {name} argument to jax.{function}")


def flags_for(given: PyTree, values: PyTree, name: str, described: str) -> list[bool]:
    """``flags_of``, with what messages call the flags in short, and at their beginning."""
    found: list[bool] = []

    def fill(flags: PyTree, value: PyTree, path: str) -> None:
        if isinstance(flags, bool):
            found.extend([flags] * pytree.structure(value).num_leaves)
            return
        inside = pytree.one_level(flags)
        if inside is None:
            raise ValueError(
                f"{described} must be a tree of bools, like a tuple-tree "
                f"(made of bools and tuples only), but {path} is {flags!r} of type "
                f"{type(flags).__name__}")
        prefix = (f"{described} must form a tree prefix of the "
                  "corresponding values (up to container types")
        node = pytree.one_level(value)
        if node is None:
            raise ValueError(f"{prefix}), but {path} is a container while the corresponding part "
                             "of the values is a leaf; use a single bool there instead")
        if len(inside.children) != len(node.children):
            raise ValueError(
                f"{prefix}, so containers need only match in their number of children), but {path} "
                f"has {len(inside.children)} children while the corresponding container has "
                f"{len(node.children)}")
        if type(flags) is type(value) is dict and sorted(flags) != sorted(value):
            raise ValueError(
                f"{prefix.partition(' (')[0]}, but {path} is a dict with keys {sorted(flags)} "
                f"while the corresponding dict has keys {sorted(value)}")
        for number, (flag, child) in enumerate(zip(inside.children, node.children, strict=True)):
            fill(flag, child, f"{path}[{number}]")

    fill(given, values, name)
    return found


def with_zeros(fun: Callable[..., PyTree], flags: Sequence[bool]) -> Callable[..., PyTree]:
    """``fun``, whose derivative by the leaves with a false flag is zero."""
    @wraps(fun)
    def masked(*args: PyTree) -> PyTree:
        leaves, tree = pytree.flatten(args)
        return fun(*pytree.unflatten(tree, [
            leaf if flag or isinstance(leaf, Ref) else _constant(leaf)
            for leaf, flag in zip(leaves, flags, strict=True)]))

    return masked


def _constant(leaf: object) -> Any:
    operand, = operands_of([leaf])
    return stop_gradient_p.bind(operand) if dtypes.has_tangents(operand.aval.dtype) else leaf
