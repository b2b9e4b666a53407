"""Makes nodes anew of other operands, for passes over nodes."""

from __future__ import annotations

from collections.abc import Sequence

from maxjax._max.mojo.context import MojoContext
from maxjax._max.mojo.nodes import (
    Alias,
    Apply,
    Call,
    Composed,
    Loop,
    Node,
    Reduce,
    Reshape,
    Result,
    View,
    strided,
)


def rebuilt(context: MojoContext, node: Node, operands: Sequence[Node]) -> Node:
    """The node with other operands, which have the shapes and dtypes of its own."""
    if isinstance(node, Reduce):
        return context.reduce(node.name, operands[0], node.axes)
    if isinstance(node, View):
        return context.view(operands[0], node.shape, node.index_map)
    if isinstance(node, Reshape):
        return context.reshape(operands[0], node.shape)
    if isinstance(node, Apply):
        return context.shared(Apply(
            node.shape, node.dtype, context.aligned(operands), node.name, node.source))
    if isinstance(node, Result):
        return context.shared(Result(node.shape, node.dtype, tuple(operands), node.number))
    # The others read memory that lies as before.
    kept = tuple([new if new is old or strided(new) == strided(old) else context.memory(new)
                  for new, old in zip(operands, node.inputs, strict=True)])
    if isinstance(node, Alias):
        return context.shared(Alias(node.shape, node.dtype, kept))
    if isinstance(node, Composed):
        return context.shared(type(node)(node.shape, node.dtype, kept, node.pieces))
    if isinstance(node, Call):
        return context.shared(Call(node.shape, node.dtype, kept, node.function, node.integers,
                                   node.strided, node.result_bytes, node.host))
    assert isinstance(node, Loop)
    return Loop(node.shape, node.dtype, kept, node.name, node.flow)
