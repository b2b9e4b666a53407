"""Makes a kernel of a group: its structure, and the operands of its call."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from maxjax._max.mojo.forms import Form, form_of
from maxjax._max.mojo.fusion import Fusion, Group, last_wide, reduced_map
from maxjax._max.mojo.nodes import (
    Access,
    Apply,
    IndexMap,
    Iota,
    Node,
    Reduce,
    View,
    base_of,
    compose,
    identity_map,
    map_access,
    strided,
)
from maxjax._max.mojo.structure import (
    INNER,
    NEXT,
    POINTS,
    ROWS,
    SAME,
    STRIDED,
    KernelStructure,
    OperandStructure,
    ValueStructure,
)

# A node's location: a base, and where there its elements are.
Placement = Callable[[Node], tuple[Node, Access]]


class Operand(NamedTuple):
    """A memory operand: whose memory, and the strides over the space.

    An iota has no memory: its ``access`` gives values instead of elements.
    """

    node: Node
    access: Access
    is_output: bool


class Kernel(NamedTuple):
    """A group's kernel, and what a call of it needs.

    Attributes:
      form: what is compiled.
      operands: in the order of the call's operands.
      points, rows: the dimensions of the space that each iterates over.
      inner: the swept dimension, or -1.
    """

    form: Form
    operands: list[Operand]
    points: list[int]
    rows: list[int]
    inner: int

    @property
    def kind(self) -> str:
        """"map", "rows" or "columns"."""
        return self.form.structure.kind


def gather(group: Group, fusion: Fusion, place: Placement) -> Kernel:
    """The kernel of a group.

    A kernel iterates over its space by points (the kept dimensions except the inner one), at each
    point by rows (the reduced dimensions except the inner one), and sweeps each row.
    """
    gatherer = _Gatherer(group, fusion)
    record = fusion.records[group]
    kernel = None if record.kernel is None else gatherer.again(record.kernel, place)
    if kernel is None:
        kernel = gatherer.kernel(place)
        if record.kernel is None:
            record.kernel = gatherer.recipe(kernel.form)
    return kernel


class Recipe(NamedTuple):
    """What the kernels of a group have in common for all sizes.

    Attributes:
      form: of the kernel, if operands have the same strides as far as that matters.
      loads: for each load of the kernel, the number of the node that is read, the map from the
        space to its index, and the number of the operand that this is.
      outputs: the operands' numbers.
    """

    form: Form
    loads: tuple[tuple[int, IndexMap, int], ...]
    outputs: tuple[int, ...]


class _Gatherer:
    def __init__(self, group: Group, fusion: Fusion):
        self.group = group
        self.fusion = fusion
        self.groups_of = fusion.groups_of
        self.rank = len(group.space)
        self.operands: list[Operand] = []
        self.values: list[ValueStructure] = []
        self._numbers: dict[tuple[Node, IndexMap], int] = {}
        self._operand_numbers: dict[Operand, int] = {}
        self._loads: list[tuple[Node, IndexMap, int]] = []

    def kernel(self, place: Placement) -> Kernel:
        group = self.group
        values = [self.value(*home) for home in zip(group.homes, self._home_maps(), strict=True)]
        outputs = self._stored(place)
        kind, inner, points, rows, operands = self._loops()
        return Kernel(form_of(KernelStructure(
            kind, inner >= 0, bool(rows), tuple(self.values), operands,
            tuple(zip(values, outputs, strict=True)))), self.operands, points, rows, inner)

    def recipe(self, form: Form) -> Recipe:
        """What is remembered when the kernel has been made."""
        numbers = self.fusion.numbers
        return Recipe(form, tuple([(numbers[node], index_map, operand)
                                   for node, index_map, operand in self._loads]),
                      tuple([operand for _, operand in form.structure.outputs]))

    def again(self, recipe: Recipe, place: Placement) -> Kernel | None:
        """The kernel of a group that is alike but for sizes; None if it is another one."""
        form, loads, stored = recipe
        for number, index_map, operand in loads:
            if self._load(self.fusion.order[number], index_map) != operand:
                break
        else:
            if self._stored(place) == list(stored):
                _, inner, points, rows, operands = self._loops()
                if operands == form.structure.operands:
                    return Kernel(form, self.operands, points, rows, inner)
        self.operands, self._operand_numbers, self._loads = [], {}, []
        return None

    def _home_maps(self) -> list[IndexMap]:
        group = self.group
        return [reduced_map(group, node) if isinstance(node, Reduce) else group.maps[node][0]
                for node in group.homes]

    def _stored(self, place: Placement) -> list[int]:
        """The operands that results are stored to."""
        outputs = []
        for node, index_map in zip(self.group.homes, self._home_maps(), strict=True):
            # Where the node's element for a point of the space is stored: the map is one to one.
            base, access = place(node)
            strides = [0] * self.rank
            for stride, (_, _, dim) in zip(access.strides, index_map, strict=True):
                if dim >= 0:
                    strides[dim] = stride
            outputs.append(self.operand(
                Operand(base, Access(access.offset, tuple(strides)), True)))
        return outputs

    def _loops(self) -> tuple[str, int, list[int], list[int], tuple[OperandStructure, ...]]:
        """The kind, the loops' dimensions, and how the operands vary along them."""
        group = self.group
        space, reduced = group.space, group.axes or ()
        inner = last_wide(space)
        wide = [dim for dim in range(self.rank) if space[dim] != 1 and dim != inner]
        points = [dim for dim in wide if dim not in reduced]
        rows = [dim for dim in wide if dim in reduced]
        kind = "map" if group.axes is None else "rows" if inner in reduced else "columns"
        operands = []
        for owner, (_, strides_of), is_output in self.operands:
            stride, varies = NEXT, 0
            if inner >= 0:
                step = strides_of[inner]
                stride = step if step in (SAME, NEXT) else STRIDED
                varies = INNER if step else 0
                if any(strides_of[dim] for dim in rows):
                    varies |= ROWS
                if not varies and not is_output and any(strides_of[dim] for dim in points):
                    varies = POINTS
            operands.append(OperandStructure(
                owner.dtype, isinstance(owner, Iota), is_output, stride, varies))
        return kind, inner, points, rows, tuple(operands)

    def operand(self, operand: Operand) -> int:
        number = self._operand_numbers.get(operand)
        if number is None:
            number = self._operand_numbers[operand] = len(self.operands)
            self.operands.append(operand)
        return number

    def value(self, node: Node, index_map: IndexMap) -> int:
        """The number of a node's value, at the index that a map gives for one of the space."""
        group, groups_of = self.group, self.groups_of
        while True:
            if isinstance(node, View):
                index_map = compose(node.index_map, index_map)
            elif not (isinstance(node, Apply) and node.name == "copy"
                      and group in groups_of.get(node, ())):
                break
            node = node.inputs[0]
        key = (node, index_map)
        number = self._numbers.get(key)
        if number is None:
            value = self._make(node, index_map)
            number = self._numbers[key] = len(self.values)
            self.values.append(value)
        return number

    def _make(self, node: Node, index_map: IndexMap) -> ValueStructure:
        group = self.group
        if group in self.groups_of.get(node, ()):
            if isinstance(node, Apply):
                return ValueStructure(
                    "apply", node.name, node.dtype,
                    tuple([self.value(x, index_map) for x in node.inputs]), -1, node.source)
            if isinstance(node, Reduce):
                operand = self.value(node.inputs[0], identity_map(group.space))
                return ValueStructure("reduce", node.name, node.dtype, (operand,))
        return ValueStructure("iota" if isinstance(base_of(node), Iota) else "load", "",
                              node.dtype, (), self._load(node, index_map))

    def _load(self, node: Node, index_map: IndexMap) -> int:
        """The operand that an element of a node is read from."""
        operand = self.operand(
            Operand(base_of(node), map_access(strided(node), index_map, self.rank), False))
        self._loads.append((node, index_map, operand))
        return operand
