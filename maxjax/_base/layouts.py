"""Layouts of arrays in memory, and the pairs of a layout and a sharding."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from maxjax._base.shardings import Sharding


class _Auto:
    def __repr__(self) -> str:
        return "AUTO"


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
    Format(layout=AUTO, sharding=None)
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


def row_major(rank: int, sharding: Sharding | None) -> Format:
    """How an array of maxjax lies in memory; without a sharding it is not known where."""
    if sharding is None:
        return Format()
    return Format(Layout(tuple(range(rank)), ()), sharding)


def sharding_of(placement: Format, argument: str, rank: int | None = None) -> Sharding | None:
    """The sharding of a format whose layout, if it has one, can only be row-major.

    Args:
      argument: where it was given, for the message.
      rank: of the array, if it is known.

    Raises:
      NotImplementedError: another layout.
    """
    layout = placement.layout
    if isinstance(layout, Layout):
        axes = tuple(layout.major_to_minor)
        if axes != tuple(range(len(axes) if rank is None else rank)):
            raise NotImplementedError(
                f"{argument}: arrays of maxjax are row-major, got {layout}")
    return placement.sharding
