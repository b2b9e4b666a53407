"""Arrays in loops over few elements that are themselves large: rows of them are read and written.

``x.at[i].set(...)`` in a ``fori_loop`` or ``while_loop``, samples that are kept, tables that are
looked up: such an array stays in memory, where the loop's result is to be, and the code for the
scalar machine reads and writes its rows there. So there is one array at a time for all the values
that the program has of it, and the order of the code decides which: a value is read before the
next one is written over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from maxjax._ir.control_flow import Role
from maxjax._ir.jaxpr import Jaxpr, Literal, subjaxprs
from maxjax._max.mojo.fusion import ordered
from maxjax._max.mojo.nodes import (
    Access,
    Apply,
    Call,
    Input,
    Loop,
    Node,
    Reshape,
    Result,
    View,
    is_copy,
    is_row_major,
    is_update,
    map_access,
    row_major,
)
from maxjax._max.mojo.scalar_code import Register

# Values of more elements are kept in memory instead of registers.
MOST_ELEMENTS = 128
# Equations that large arrays may be operands of.
_USERS = frozenset((
    "slice", "gather", "take_rows", "dynamic_slice", "dynamic_update_slice", "scatter",
    "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max", "scatter_rows",
    "reshape", "squeeze", "while", "scan", "cond"))


class Unsuited(Exception):
    """A loop that is not one over few elements."""


@dataclass(eq=False, slots=True)
class Memory:
    """A large array, row-major.

    Attributes:
      cell: a register that holds where it begins.
      is_constant: whether the loop only reads it.
    """

    cell: Register
    elements: int
    dtype: np.dtype
    is_constant: bool


Value = Register | Memory


def registers(values: Sequence[Value]) -> list[Register]:
    """Values that all have to be registers."""
    found = [x for x in values if isinstance(x, Register)]
    if len(found) != len(values):
        raise Unsuited
    return found


def is_suited(jaxpr: Jaxpr) -> bool:
    """Whether all values have some elements, but not many, or are large arrays of which only rows
    are read and written."""
    large = set()
    for var in (*jaxpr.invars, *jaxpr.constvars, *(x for eqn in jaxpr.eqns for x in eqn.outvars)):
        size = math.prod(var.aval.shape)
        if not size:
            return False
        if size > MOST_ELEMENTS:
            large.add(var)
    for eqn in jaxpr.eqns:
        if large and eqn.primitive.name not in _USERS and any(
                not isinstance(x, Literal) and x in large for x in (*eqn.invars, *eqn.outvars)):
            return False
        if not all(is_suited(inner.jaxpr)
                   for inner in subjaxprs(eqn.params)):
            return False
    return True


def in_order(results: Sequence[Node]) -> list[Node]:
    """The nodes that results are computed of, operands first, and what reads a large array before
    what writes to it.

    Raises:
      Unsuited: there is no such order.
    """
    order = ordered(results)
    versions: dict[Node, Node] = {}     # of nodes that are a large array's value, the first of them
    writers: dict[Node, Node] = {}
    readers: dict[Node, list[Node]] = {}
    for node in order:
        if isinstance(node, Result) and not is_copy(node.inputs[0]):
            if node.size > MOST_ELEMENTS:
                versions[node] = node
            continue
        same = unchanged(node)
        if same is not None and same in versions:
            versions[node] = versions[same]
        elif isinstance(node, Input) and node.size > MOST_ELEMENTS:
            versions[node] = node
        elif not isinstance(node, Call) or not is_copy(node):
            written = {versions.get(x) for x in _overwritten(node)}
            for version in {versions[x] for x in node.inputs if x in versions}:
                if version not in written:
                    readers.setdefault(version, []).append(node)
                elif version in writers:
                    raise Unsuited
                else:
                    writers[version] = node
    if any(versions.get(result) in writers for result in results if result in versions):
        raise Unsuited
    return _sorted(order, {node: readers.get(version, [])
                           for version, node in writers.items()}) if readers else order


def unchanged(node: Node) -> Node | None:
    """The operand that a node has all the elements of, in their order."""
    if isinstance(node, Reshape) or isinstance(node, Apply) and node.name == "copy":
        return node.inputs[0]
    if isinstance(node, Result) and is_copy(node.inputs[0]):
        return node.inputs[0].inputs[0]
    if isinstance(node, View):
        x, = node.inputs
        access = map_access(Access(0, row_major(x.shape)), node.index_map, len(node.shape))
        if node.size == x.size and not access.offset and is_row_major(access.strides, node.shape):
            return x
    return None


def _overwritten(node: Node) -> Iterable[Node]:
    """The operands that a unit may leave other elements in."""
    if isinstance(node, Call):
        return node.inputs[:1] if is_update(node) else ()
    if not isinstance(node, Loop):
        return ()
    if node.flow.is_loop:
        return [x for x, role in zip(node.inputs, node.flow.roles, strict=True)
                if role is Role.CARRY]
    # A branch may, if there is a result to leave.
    return node.inputs if any(math.prod(aval.shape) > MOST_ELEMENTS
                              for aval in node.flow.bodies[0].jaxpr.out_avals) else ()


def _sorted(order: Sequence[Node], before: Mapping[Node, Sequence[Node]]) -> list[Node]:
    """Nodes, operands first, and some nodes behind others as well."""
    done: dict[Node, bool] = {}     # whether a node is there, or on the way
    found: list[Node] = []
    for last in order:
        stack = [last]
        while stack:
            node = stack[-1]
            if done.get(node):
                stack.pop()
                continue
            waits = [x for x in (*node.inputs, *before.get(node, ())) if not done.get(x)]
            if not waits:
                done[node] = True
                found.append(stack.pop())
            elif node in done:
                raise Unsuited      # they wait for one another
            else:
                done[node] = False
                stack += waits
    return found
