"""Lowering the bodies of loops and choices, some of whose equations may be the host's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Literal
from maxjax._max.host_step import HostStep
from maxjax._max.mojo.context import MojoContext
from maxjax._max.mojo.nodes import Node
from maxjax._transforms.partition import host_reason_within, partition
from maxjax._transforms.simplify import expand


def lower_body(context: MojoContext, closed: ClosedJaxpr, xs: Sequence[Node]) -> list[Node]:
    """The results of a body: what a piece of a program is on the top level, is a step here."""
    closed = expand(closed)
    jaxpr = closed.jaxpr
    consts = [context.constant(np.asarray(value)) for value in closed.consts]
    pieces = partition(jaxpr, host_reason_within)
    if not any(piece.on_host for piece in pieces):
        return context.lower_jaxpr(jaxpr, consts, xs)
    values: dict[Atom, Node] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *xs),
                                        strict=True))
    for piece in pieces:
        operands = [values[var] for var in piece.inputs]
        results = context.host_step(HostStep(piece), operands) if piece.on_host \
            else context.lower_jaxpr(piece.jaxpr, [], operands)
        values.update(zip(piece.outputs, results, strict=True))
    return [context.constant(np.asarray(atom.val)) if isinstance(atom, Literal) else values[atom]
            for atom in jaxpr.outvars]
