"""Arrays of which a window is overwritten (``Overlay``): written by what computes the window, in
the memory of the array.

``b.at[1:-1].set((a[:-2] + a[2:]) / 2)`` is one kernel, which writes to the memory of ``b`` if
nothing reads ``b`` afterwards. What computes the window may read the array itself where it writes,
as ``b.at[1:].add(...)`` does. If it reads other elements of it, as a stencil in one array does, it
is stored on its own first, and copied: each element would otherwise have to be read before it is
overwritten. An array that is still read afterwards is copied before its window is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.gather import Kernel, gather
from maxjax._max.mojo.nodes import (
    Access,
    Alias,
    Composed,
    Iota,
    Node,
    Overlay,
    Result,
    View,
    base_of,
    row_major,
)

if TYPE_CHECKING:
    from maxjax._max.mojo.part import Part


def computed_there(part: Part, overlay: Overlay, home: Node, window: Access,
                   positions: Mapping[Any, int]) -> bool:
    """Whether the kernel that computes a window can write it there.

    Args:
      home: what it computes.
      window: where in the overlaid array.
      positions: of the units.
    """
    fusion = part.fusion
    group = fusion.home[home]
    ground = base_of(overlay.ground)
    if positions.get(_maker(part, ground), -1) >= positions[group]:
        return False        # the array would not be there yet
    windows = {**part.windows, home: (overlay, window)}

    def place(node: Node) -> tuple[Node, Access]:
        return windows.get(node) or (node, Access(0, row_major(node.shape)))

    return reads_where_it_writes(part, gather(group, fusion, place), overlay, ground)


def reads_where_it_writes(part: Part, kernel: Kernel, overlay: Overlay, ground: Node) -> bool:
    """Whether a kernel reads of an array only the elements that it writes the window over, each of
    them just there."""
    inputs = [x.access for x in kernel.operands if not x.is_output and not isinstance(x.node, Iota)
              and part.owner(x.node) is part.owner(ground)]
    outputs = {x.access for x in kernel.operands if x.is_output and x.node is overlay}
    return not inputs or (kernel.kind == "map" and outputs == set(inputs))


def _maker(part: Part, node: Node) -> Any:
    """The unit that leaves a node in memory; None for one that is there from the beginning."""
    while isinstance(node, Alias):
        node = base_of(node.inputs[0])
    if isinstance(node, Composed):
        return node
    return node.inputs[0] if isinstance(node, Result) else part.fusion.home.get(node)


def may_overwrite(part: Part, overlay: Overlay, operand: Node, number: int) -> bool:
    """Whether an overlaid array may be where the array under it is, which is read by nothing from
    a step on but by what writes the window.

    Args:
      number: the step that copies the array otherwise.
    """
    for unit, detail in part.units[number + 1:part.last[operand] + 1]:
        if operand not in map(part.owner, part.reads(unit, detail)):
            continue
        if isinstance(unit, Group):
            if not any(part.windows.get(home, (None,))[0] is overlay for home in unit.homes) \
                    or not reads_where_it_writes(part, part.kernels[unit], overlay, operand):
                return False
        elif unit is not overlay or not _is_apart(overlay):
            return False
    return True


def _is_apart(overlay: Overlay) -> bool:
    """Whether the piece is a view of the array, of other elements than those that it overwrites."""
    source, ground = overlay.sources[0], overlay.ground
    if not isinstance(source, View) or source.inputs[0] is not ground:
        return False
    return any(_last(start, step, dim, source.shape) < begin
               or _first(start, step, dim, source.shape) >= begin + size
               for (start, step, dim), begin, size in zip(
                   source.index_map, overlay.pieces[0].starts, source.shape, strict=True))


def _first(start: int, step: int, dim: int, shape: Sequence[int]) -> int:
    return start if dim < 0 or step > 0 else start + step * (shape[dim] - 1)


def _last(start: int, step: int, dim: int, shape: Sequence[int]) -> int:
    return start if dim < 0 or step < 0 else start + step * (shape[dim] - 1)
