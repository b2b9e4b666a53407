"""Checks that the output of each stage of planning is well formed. Run in tests after each stage.

Each check raises an InternalError that names the node, the group or the step, and the property that
it violates. `CheckedPlan` of ``check_plan.py`` plans a program with all checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base.errors import InternalError
from maxjax._ir.control_flow import Role
from maxjax._max.mojo.emitter import REDUCERS
from maxjax._max.mojo.fusion import MOST_MEMBERS, Fusion, Group, ordered, same_dims
from maxjax._max.mojo.nodes import (
    ON_HOST,
    Alias,
    Apply,
    Assemble,
    Call,
    Composed,
    Computed,
    Constant,
    Empty,
    IndexMap,
    Input,
    Iota,
    Loop,
    Node,
    Overlay,
    Reduce,
    Reshape,
    Result,
    Unit,
    View,
    base_of,
    is_row_major,
    memory_dtype,
    reshape_access,
    strided,
)

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "is_finite"))
_BOOL = np.dtype(bool)


def require(holds: bool, what: Any, message: str) -> None:
    """Raises an InternalError that names ``what`` unless the condition holds."""
    if not holds:
        raise InternalError(f"{what if isinstance(what, str) else repr(what)}: {message}")


# --- nodes ---
def check_nodes(outputs: Sequence[Node]) -> None:
    """Checks each node that the outputs need against its class's contract.

    Raises:
      InternalError: a shape, a dtype, an operand, an index map or a window violates the contract.
        Names the node.
    """
    for node in ordered(outputs):
        rule = _RULES.get(type(node))
        if rule is None:
            raise InternalError(f"{node!r}: {type(node).__name__} is no kind of node")
        require(isinstance(node.dtype, np.dtype), node, f"its dtype is {node.dtype!r}")
        require(all(type(size) is int and size >= 0 for size in node.shape), node,
                f"its shape is {node.shape}")
        require(0 not in node.shape or isinstance(node, (Input, Result, Empty)), node,
                "it has no elements, and is not Empty")
        for operand in node.inputs:
            require(isinstance(node, Result) or not isinstance(operand, (Call, Loop)), node,
                    f"it reads {operand!r}, which is no value")
        rule(node)


def _no_operands(node: Node) -> None:
    require(not node.inputs, node, f"it has {len(node.inputs)} operands, and needs none")


def _one_operand(node: Node, of_dtype: bool = True) -> Node:
    require(len(node.inputs) == 1, node, f"it has {len(node.inputs)} operands, and needs one")
    operand, = node.inputs
    require(not of_dtype or operand.dtype == node.dtype, node,
            f"its operand {operand!r} has another dtype")
    return operand


def _in_memory(node: Node, operand: Node) -> None:
    base = base_of(operand)
    require(not isinstance(base, Iota), node, f"its operand {operand!r} is in no memory")
    require(0 in operand.shape or is_row_major(strided(operand).strides, operand.shape), node,
            f"its operand {operand!r} does not lie row by row in memory")


def _check_input(node: Input) -> None:
    _no_operands(node)
    require(node.number >= 0, node, f"its number is {node.number}")


def _check_constant(node: Constant) -> None:
    _no_operands(node)
    value = node.value
    require(value.shape == node.shape and value.dtype == node.dtype, node,
            f"its value is {value.dtype}{list(value.shape)}")
    require(value.flags.c_contiguous, node, "its value does not lie row by row")


def _check_empty(node: Empty) -> None:
    _no_operands(node)
    require(0 in node.shape, node, "it has elements")


def _check_apply(node: Apply) -> None:
    require(bool(node.inputs), node, "it has no operands")
    for operand in node.inputs:
        require(operand.shape == node.shape, node, f"its operand {operand!r} has another shape")
    first, kinds = node.inputs[0], [x.dtype for x in node.inputs]
    if node.source is not None:
        require(node.name.startswith("custom "), node, "it has a source, and is not custom")
    elif node.name == "select":
        require(kinds == [_BOOL, node.dtype, node.dtype], node,
                f"it selects from {', '.join(map(str, kinds))}")
    elif node.name == "bitcast":
        _one_operand(node, of_dtype=False)
        require(first.dtype.itemsize == node.dtype.itemsize and _BOOL not in (*kinds, node.dtype),
                node, f"it has not the bits of {first!r}")
    elif node.name == "convert":
        _one_operand(node, of_dtype=False)
    elif node.name == "copy":
        _one_operand(node)
    else:
        require(len(set(kinds)) == 1, node, f"its operands are {', '.join(map(str, kinds))}")
        wanted = _BOOL if node.name in _COMPARISONS else first.dtype
        require(node.dtype == wanted, node, f"{node.name} of {first.dtype} gives {wanted}")


def _check_reduce(node: Reduce) -> None:
    operand = _one_operand(node)
    rank = len(operand.shape)
    require(node.name in REDUCERS, node, "it is no reduction")
    require(bool(node.axes) and list(node.axes) == sorted({*node.axes} & {*range(rank)}), node,
            f"its axes {node.axes} are not some of {rank} dimensions, ascending")
    kept = tuple(size for dim, size in enumerate(operand.shape) if dim not in node.axes)
    require(node.shape == kept, node, f"its operand {operand!r} leaves {list(kept)}")


def _check_index_map(what: Any, index_map: IndexMap, source: Node, space: Sequence[int]) -> None:
    """An index map from a space to a source's dimensions stays within them."""
    require(len(index_map) == len(source.shape), what,
            f"its index map {index_map} is not one of {source!r}")
    for dim, (size, (start, step, along)) in enumerate(
            zip(source.shape, index_map, strict=True)):
        require(-1 <= along < len(space), what,
                f"its index map goes along dimension {along} of {len(space)}")
        require((step == 0) == (along < 0) and (along < 0 or space[along] != 1), what,
                f"its index map has step {step} along dimension {along}")
        last = start + step * (space[along] - 1) if along >= 0 else start
        require(0 <= start < size and 0 <= last < size, what,
                f"its index map goes from {start} to {last} in dimension {dim} of {source!r}")
    dims = [along for _, _, along in index_map if along >= 0]
    require(len(dims) == len(set(dims)), what, f"its index map {index_map} goes along a diagonal")


def _check_view(node: View) -> None:
    operand = _one_operand(node)
    require(not isinstance(operand, View), node, f"its operand {operand!r} is a view")
    _check_index_map(node, node.index_map, operand, node.shape)


def _check_reshape(node: Reshape) -> None:
    operand = _one_operand(node)
    require(not isinstance(operand, Reshape), node, f"its operand {operand!r} is a reshape")
    require(operand.size == node.size, node,
            f"its operand {operand!r} has {operand.size} elements")
    require(reshape_access(strided(operand), operand.shape, node.shape) is not None, node,
            f"strides cannot say it of {operand!r}")


def _check_iota(node: Iota) -> None:
    _no_operands(node)
    require(len(node.shape) == 1, node, "it has not one dimension")


def _check_alias(node: Alias) -> None:
    operand = _one_operand(node, of_dtype=False)
    _in_memory(node, operand)
    old, new = operand.dtype.itemsize, node.dtype.itemsize
    if new < old:
        holds = node.shape == (*operand.shape, old // new)
    else:
        holds = new > old and operand.shape == (*node.shape, new // old)
    require(holds, node, f"it has not the bytes of {operand!r}")


def _check_pieces(node: Composed) -> list[list[int]]:
    """Returns where each ends."""
    rank, pieces = len(node.shape), node.pieces
    require(bool(pieces) and len(node.inputs) in (len(pieces), len(pieces) + 1), node,
            f"it has {len(node.inputs)} operands for {len(pieces)} pieces")
    for operand in node.inputs:
        require(operand.dtype == node.dtype, node, f"its operand {operand!r} has another dtype")
        require(not isinstance(base_of(operand), Iota), node,
                f"its operand {operand!r} is in no memory")
    ends = []
    for source, piece in zip(node.sources, pieces, strict=True):
        require(len(piece.starts) == len(piece.steps) == len(source.shape) == rank, node,
                f"its piece {source!r} has another rank")
        last = [start + step * (size - 1) for start, step, size
                in zip(piece.starts, piece.steps, source.shape, strict=True)]
        require(min((*piece.starts, 0)) >= 0 and min((*piece.steps, 1)) > 0
                and all(place < size for place, size in zip(last, node.shape, strict=True)), node,
                f"its piece {source!r} goes from {list(piece.starts)} to {last}")
        ends.append([place + 1 for place in last])
    return ends


def _check_assemble(node: Assemble) -> None:
    ends = _check_pieces(node)
    if node.filler is not None:
        require(node.filler.size == 1, node, f"its filler {node.filler!r} is not one element")
        return
    filled = sum(source.size for source in node.sources)
    require(filled == node.size, node, f"its pieces fill {filled} of {node.size} elements")
    for before, piece in zip(ends, node.pieces[1:], strict=False):
        require(any(end == start for end, start in zip(before, piece.starts, strict=True)), node,
                f"a piece that begins at {list(piece.starts)} does not follow that before it")


def _check_overlay(node: Overlay) -> None:
    require(len(node.inputs) == 2, node, f"it has {len(node.inputs)} operands, and needs two")
    _check_pieces(node)
    require(node.ground.shape == node.shape, node, f"its array {node.ground!r} has another shape")
    _in_memory(node, node.ground)


def _check_call(node: Call) -> None:
    require(node.shape == (), node, "a call has no shape")
    require(all(isinstance(x, int) for x in node.integers), node,
            f"its integers are {node.integers}")
    for operand in node.inputs:
        require(not isinstance(base_of(operand), Iota), node,
                f"its operand {operand!r} is in no memory")
        if not node.strided:
            _in_memory(node, operand)
    require((node.host is not None) == (node.function == ON_HOST), node, "it has no step")
    if node.host is not None:
        kinds = [(x.shape, x.dtype) for x in node.inputs]
        needed = [(shape, memory_dtype(dtype)) for shape, dtype in node.host.inputs]
        require(kinds == needed, node, f"its operands are {kinds}")
    if node.strided:
        require(not node.integers, node, "it is strided, and has integers of its own")
        wanted = {"copy": 1, "matmul": 2}.get(node.function.partition("_")[0])
        require(len(node.inputs) == wanted, node,
                f"the planner has no integers for {node.function} of {len(node.inputs)} operands")


_Kind = tuple[tuple[int, ...], np.dtype]


def _loop_types(node: Loop) -> tuple[dict[int, _Kind], list[_Kind]]:
    """The types of a loop's operands, by number, and of its results, according to its programs."""
    def types(avals: Iterable[Any], ahead: tuple[int, ...] = ()) -> list[_Kind]:
        return [((*ahead, *aval.shape), memory_dtype(aval.dtype)) for aval in avals]

    flow = node.flow
    count = len(flow.carries)
    line = () if flow.length is None else (flow.length,)
    operands: dict[int, _Kind] = {number: ((), np.dtype(np.int32)) for number in flow.index}
    for body in flow.bodies:
        avals = body.jaxpr.in_avals
        require(len(avals) == len(body.takes), node,
                f"its {body.label} has {len(avals)} operands, {len(body.takes)} by its structure")
        for number, aval in zip(body.takes, avals, strict=True):
            kind, = types([aval], line if flow.roles[number] is Role.SCANNED else ())
            require(operands.setdefault(number, kind) == kind, node,
                    f"its programs differ in the type of operand {number}")
    if flow.predicate is not None:
        require(types(flow.predicate.jaxpr.out_avals) == [((), _BOOL)], node,
                "its condition is not one bool")
    found = []
    for body in flow.producers:
        avals = body.jaxpr.out_avals
        require(types(avals[:count]) == [operands[number] for number in flow.carries], node,
                "its body does not give back what it carries")
        found.append(types(avals[:count]) + types(avals[count:], line))
    require(all(results == found[0] for results in found), node,
            "its branches differ in their types")
    return operands, found[0]


def _check_loop(node: Loop) -> None:
    require(node.shape == (), node, "a loop has no shape")
    count = len(node.flow.roles)
    require(count == len(node.inputs), node,
            f"it has {len(node.inputs)} operands, {count} by its structure")
    wanted, _ = _loop_types(node)
    for number, kind in wanted.items():
        operand = node.inputs[number]
        require((operand.shape, operand.dtype) == kind, node,
                f"its operand {operand!r} should be {kind[1]}{list(kind[0])}")
        _in_memory(node, operand)


def _check_result(node: Result) -> None:
    source = _one_operand(node, of_dtype=False)
    require(isinstance(source, (Call, Loop)), node, f"it is of {source!r}")
    require(node.number >= 0, node, f"its number is {node.number}")
    if isinstance(source, Loop):
        _, types = _loop_types(source)
        require(node.number < len(types), node, f"{source!r} has {len(types)} results")
        shape, dtype = types[node.number]
        require((node.shape, node.dtype) == (shape, dtype), node,
                f"result {node.number} of {source!r} is {dtype}{list(shape)}")


_RULES: dict[type[Node], Callable[[Any], None]] = {
    Input: _check_input, Constant: _check_constant, Empty: _check_empty, Apply: _check_apply,
    Reduce: _check_reduce, View: _check_view, Reshape: _check_reshape, Iota: _check_iota,
    Alias: _check_alias, Assemble: _check_assemble, Overlay: _check_overlay, Call: _check_call,
    Loop: _check_loop, Result: _check_result,
}


# --- groups ---
def check_groups(fusion: Fusion) -> None:
    """Checks the groups of a program, and the order of its units.

    Raises:
      InternalError: a group computes a node outside its space, a node that is computed or read
        belongs to no group or memory, or a unit precedes one that it reads. Names the group or the
        node.
    """
    groups = [unit for unit in fusion.units if isinstance(unit, Group)]
    for group in groups:
        _check_group(group, fusion)
    require(len(set(fusion.units)) == len(fusion.units), fusion.units, "a unit comes twice")
    done: set[Any] = set()
    for unit in fusion.units:
        for node in _memory_read(unit):
            maker = _maker(node, fusion)
            require(maker is None or maker in done, unit, f"it comes before {node!r} is made")
        done.add(unit)
    for node in fusion.order:
        if isinstance(node, Unit):
            require(node in done, node, "it is none of the program's units")
        if isinstance(node, Computed):
            known = fusion.groups_of.get(node, {})
            require(bool(known) and done.issuperset(known)
                    and all(node in group.maps for group in known), node,
                    "it is computed in no group that is one of the units")
    for node in fusion.outputs:
        base = base_of(node)
        require(not isinstance(base, Computed) or base in fusion.home, base,
                "it is wanted, and put in no memory")


def _check_group(group: Group, fusion: Fusion) -> None:
    dims = range(len(group.space))
    require(0 < len(group.maps) <= MOST_MEMBERS, group, f"it computes {len(group.maps)} nodes")
    require(group.axes is None or (bool(group.axes) and all(dim in dims for dim in group.axes)),
            group, "its axes are not some of its space's")
    reduces = [node for node in group.maps if isinstance(node, Reduce)]
    require(bool(reduces) == (group.axes is not None), group,
            f"it has {len(reduces)} reductions")
    for reduction in reduces:
        require(same_dims(group, reduction.axes) and reduction.inputs[0].shape == group.space,
                group, f"{reduction!r} does not reduce its space")
    for node, maps in group.maps.items():
        require(bool(maps), group, f"{node!r} has no index map")
        for index_map in maps:
            _check_index_map(group, index_map, node, group.space)
    require(bool(group.homes), group, "it puts nothing in memory")
    for node in group.homes:
        require(node in group.maps and fusion.home.get(node) is group, group,
                f"{node!r} is not at home in it")
        require(isinstance(node, Reduce) or group.level(node, group.maps[node][0]) != "", group,
                f"{node!r} is at home in it, and has not an element for each of its points")


def _memory_read(unit: Any) -> Iterable[Node]:
    """The nodes that a unit reads from memory."""
    if not isinstance(unit, Group):
        return map(base_of, unit.inputs)
    # A reshape is read from memory even where the group computes its source.
    return [base for node in unit.maps for x in node.inputs for base in [base_of(x)]
            if base not in unit.maps or _is_reshaped(x)]


def _is_reshaped(node: Node) -> bool:
    while isinstance(node, View):
        node = node.inputs[0]
    return isinstance(node, Reshape)


def _maker(node: Node, fusion: Fusion) -> Any:
    """The unit that stores a node; None for one that is in memory from the beginning."""
    while isinstance(node, Alias):
        node = base_of(node.inputs[0])
    if isinstance(node, Computed):
        home = fusion.home.get(node)
        require(home is not None, node, "it is read from memory, and put in none")
        return home
    if isinstance(node, Result):
        return node.inputs[0]
    return node if isinstance(node, Unit) else None
