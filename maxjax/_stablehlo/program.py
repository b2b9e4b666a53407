"""What a file of StableHLO holds, whether it is text or bytecode: functions of operations."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

# Regions and attributes nest at most so deep.
DEEPEST = 60
# More elements has no array: of what a file says, and of what it computes.
MOST_ELEMENTS = 1 << 40
MOST_DIMENSIONS = 64


class Unreadable(ValueError):
    """A program is malformed, or uses what cannot be read. The message says what, and where."""

    def __init__(self, where: str, problem: str):
        super().__init__(f"cannot read StableHLO: {where}: {problem}")


class Tensor(NamedTuple):
    """A type; a size is None where the program does not know it."""

    shape: tuple[int | None, ...]
    dtype: np.dtype

    @property
    def is_static(self) -> bool:
        return None not in self.shape


class Other(NamedTuple):
    """A type that is no tensor's."""

    text: str


Type = Tensor | Other


class Value:
    """A result of an operation, or an argument of a block."""

    __slots__ = ("type",)

    def __init__(self, type: Type):
        self.type = type


class Symbol(NamedTuple):
    """A reference to a function."""

    name: str


class Dense(NamedTuple):
    """A constant: ``elements`` is of the shape, or has none where all are one."""

    elements: np.ndarray
    shape: tuple[int, ...]

    def array(self) -> np.ndarray:
        return np.broadcast_to(self.elements, self.shape)


class Opaque(NamedTuple):
    """An attribute of which nothing is read but its text."""

    text: str


@dataclasses.dataclass(slots=True)
class Block:
    arguments: list[Value]
    operations: list[Operation] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
      name: with its dialect: "stablehlo.add".
      attributes: by name; integers, strings, lists, records, ``Dense`` and so on.
      regions: each of one block.
      where: the place in the file.
      location: what it says of where it comes from, in parentheses.
    """

    name: str
    operands: list[Value]
    results: list[Value]
    attributes: dict[str, Any]
    regions: list[Block]
    where: str
    location: str = ""


@dataclasses.dataclass(slots=True)
class Function:
    name: str
    block: Block
    results: list[Type]
    where: str


class Mesh(NamedTuple):
    """The axes of a mesh, whose devices are numbered in their order."""

    axes: dict[str, int]


class Placement(NamedTuple):
    """How a value lies over a mesh of some name: the axes of each of its dimensions."""

    mesh: str
    dimensions: list[list[str]]


@dataclasses.dataclass(slots=True)
class Module:
    functions: dict[str, Function]
    name: str = ""
    meshes: dict[str, Mesh] = dataclasses.field(default_factory=dict)


def checked_tensor(shape: tuple[int | None, ...], dtype: np.dtype, where: str) -> Tensor:
    """A type, unless there can be no array of it."""
    known = [size for size in shape if size is not None]
    if len(shape) > MOST_DIMENSIONS or any(size < 0 for size in known) or (
            math.prod(max(1, size) for size in known) > MOST_ELEMENTS):
        raise Unreadable(where, f"no array has the shape {shape}"[:200])
    return Tensor(shape, dtype)
