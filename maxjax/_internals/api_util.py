"""The names of jax.api_util, and arguments by number and by name."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from maxjax import api_util as _public
from maxjax._base import pytree
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.static_arguments import select


def infer_argnums_and_argnames(sig: inspect.Signature, argnums: int | Sequence[int] | None,
                               argnames: str | Iterable[str] | None
                               ) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The same arguments by number and by name, where one of the two is given."""
    def function(*args: Any, **kwargs: Any) -> None:
        pass

    function.__signature__ = sig      # type: ignore[attr-defined]
    chosen = select(function, argnums, argnames, "static")
    known = [name for name in sig.parameters if name in chosen.names]
    given = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    return chosen.positions, (*known, *(name for name in given if name not in known))


def flatten_axes(name: str, treedef: PyTreeDef, axis_tree: Any, *, kws: bool = False) -> list[Any]:
    """The axis of each leaf of a tree, by a prefix of the tree; None is an axis like others.

    Raises:
      ValueError: it is no prefix.
    """
    whole = treedef.unflatten(range(treedef.num_leaves))

    def is_axis(node: Any) -> bool:
        return node is None

    try:
        return pytree.broadcast_prefix(axis_tree, whole, is_axis)
    except ValueError:
        raise pytree.prefix_error(axis_tree, whole, name, is_axis) from None


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
