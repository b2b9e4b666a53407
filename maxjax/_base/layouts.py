"""Layouts of arrays in memory, and the pairs of a layout and a sharding."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from maxjax._base.errors import JaxRuntimeError
from maxjax._base.shardings import Sharding


class _Auto:
    def __repr__(self) -> str:
        return "AutoLayout"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The order of an array's axes in memory, from the outermost to the innermost.

    Args:
      major_to_minor: a permutation of the axes.

    >>> Layout((1, 0))
    Layout(major_to_minor=(1, 0), tiling=None, sub_byte_element_size_in_bits=0)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar[Any] = _Auto()

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))


@dataclasses.dataclass(frozen=True)
class Format:
    """A layout together with a sharding.

    Raises:
      TypeError: ``layout`` is not a layout, or ``sharding`` no sharding.
      ValueError: there is a layout but no sharding.

    >>> Format(jax.experimental.layout.Layout.AUTO)
    Format(layout=AutoLayout, sharding=None)
    """

    layout: Any = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if not (self.layout is None or self.layout is Layout.AUTO
                or isinstance(self.layout, Layout)):
            raise TypeError(
                "Invalid value received for the layout argument. Expected values are `None`, "
                f"`Layout.AUTO` or an instance of `Layout`. Got {self.layout} of type "
                f"{type(self.layout)}")
        if not (self.sharding is None or isinstance(self.sharding, Sharding)):
            raise TypeError(
                "Invalid value received for the sharding argument. Expected values are `None` or "
                f"an instance of `jax.Sharding`. Got {self.sharding} of type "
                f"{type(self.sharding)}")
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                f"Sharding has to be concrete when layout is of type {Layout}. Please pass a "
                "`jax.sharding.NamedSharding` or `jax.sharding.SingleDeviceSharding` to the "
                f"sharding argument. Got sharding {self.sharding}")

    def check_concrete(self, where: str) -> None:
        """
        Raises:
          TypeError: the layout is left to a compiler, which there is none of for what lies already.
        """
        if self.layout is Layout.AUTO:
            raise TypeError("`Layout.AUTO` cannot be used in place of a device-local layout "
                            f"{where}. Got {self}")


def format_of(rank: int, sharding: Sharding | None, axes: Sequence[int] | None = None) -> Format:
    """How an array of a rank lies in memory; without a sharding it is not known where.

    Args:
      axes: from the outermost to the innermost; None: row-major.
    """
    if sharding is None:
        return Format()
    return Format(Layout(tuple(range(rank) if axes is None else axes), ()), sharding)


def check_layout(layout: Layout, shape: Sequence[object], what: str) -> None:
    """Checks that an array of that shape can lie so.

    Args:
      what: the array, for the message.

    Raises:
      ValueError: the layout is of another rank.
      JaxRuntimeError: it is no permutation.
      NotImplementedError: it has tiles.
    """
    axes = layout.major_to_minor
    if len(axes) != len(shape):
        raise ValueError(
            f"One of {what} is incompatible with its layout annotation {layout}: Length of "
            "major_to_minor and the rank of the value should match. Got "
            f"major_to_minor={axes} and shape={tuple(shape)}")
    if sorted(axes) != list(range(len(axes))):
        raise JaxRuntimeError(f"INVALID_ARGUMENT: {what}: the axes of {layout} are not those of "
                              f"an array of rank {len(axes)}, each once")
    if layout.tiling:
        raise NotImplementedError(f"{what}: maxjax has no tiled layouts, got {layout}")
