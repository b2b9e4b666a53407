"""jax.experimental.shard_alike: values that are to lie over a mesh in the same way."""

from __future__ import annotations

from typing import Any

from maxjax._base import pytree
from maxjax._base.missing import explain_missing_names
from maxjax._base.treedef import PyTreeDef
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, invalid_type
from maxjax._ir.typing import Value
from maxjax._primitives.identities import shard_alike_p


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """The leaves of two pytrees, unchanged; each lies over the mesh as its counterpart does.

    What splits a dimension of one leaf splits that dimension of the other, whichever of the two
    shardings is known. Differentiable.

    Args:
      x, y: pytrees of one structure, with leaves of the same shapes.

    Raises:
      ValueError: the structures differ, there is no leaf, or the shapes of two leaves differ.
      TypeError: a leaf is no array.

    >>> shard_alike(jnp.arange(2), jnp.zeros(2))
    (Array([0, 1], dtype=int32), Array([0., 0.], dtype=float32))
    """
    xs, x_tree = pytree.flatten(x)
    ys, y_tree = pytree.flatten(y)
    if x_tree != y_tree:
        raise ValueError(f"Trees should be equal. Got x_tree: {PyTreeDef(x_tree)}, "
                         f"y_tree: {PyTreeDef(y_tree)}")
    if not xs:
        raise ValueError("shard_alike needs at least one pair of arrays, got none")
    pairs = [_alike(*map(_operand, pair)) for pair in zip(xs, ys, strict=True)]
    first, second = zip(*pairs, strict=True)
    return pytree.unflatten(x_tree, first), pytree.unflatten(y_tree, second)


def _operand(leaf: object) -> Array:
    try:
        return installed.runtime.argument(leaf)
    except TypeError:
        raise invalid_type(leaf) from None


def _alike(x: Value, y: Value) -> Any:
    if x.shape != y.shape:
        raise ValueError(
            f"The leaves shapes of `x` and `y` should match. Got `x` leaf shape: {x.shape} and `y` "
            f"leaf shape: {y.shape}.")
    return shard_alike_p.bind(x, y)


explain_missing_names(__name__)
