"""Pictures of shardings: which device holds which part of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base.shardings import Sharding
from maxjax._higher_order.debugging import inspect_sharding
from maxjax._ir.trace import Array, Tracer


def visualize_sharding(shape: Sequence[int], sharding: Sharding, *, use_color: bool = True,
                       scale: float = 1.0, min_width: int = 9, max_width: int = 80,
                       color_map: object = None) -> None:
    """Prints which devices hold which part of an array.

    Args:
      shape: the array's, of one or two dimensions.
      sharding: how it lies.
      scale: the height of the picture, in tens of lines.
      min_width, max_width: of a cell and of the picture.
      use_color, color_map: accepted; the picture is text.

    Raises:
      ValueError: another number of dimensions.

    >>> visualize_sharding((4,), jnp.zeros(4).sharding)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    cells: dict[tuple[int, int], list[int]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        row, column = (part.start or 0 for part in ((slice(None), *index)[-2:]))
        cells.setdefault((row, column), []).append(device.id)
    rows, columns = (sorted({cell[n] for cell in cells}) for n in (0, 1))
    height, width = 1, min_width
    if len(shape) == 2:
        lines = int(10 * scale)
        across = min(int(lines * 2.5 * shape[1] / shape[0]), max_width)
        height = max(lines // len(rows) - 2, 0) // 2 * 2 + 1
        width = max(across // len(columns), min_width)
    labels = {cell: f"CPU {','.join(map(str, sorted(ids)))}" for cell, ids in cells.items()}
    widths = [max(width - 2, *(len(labels[row, column]) for row in rows)) for column in columns]

    def rule(left: str, middle: str, right: str) -> str:
        return left + middle.join("─" * size for size in widths) + right

    def line(texts: Sequence[str]) -> str:
        padded = []
        for text, size in zip(texts, widths, strict=True):
            before = (size - len(text)) // 2
            padded.append(" " * before + text + " " * (size - len(text) - before))
        return "│" + "│".join(padded) + "│"

    picture = [rule("┌", "┬", "┐")]
    for number, row in enumerate(rows):
        if number:
            picture.append(rule("├", "┼", "┤"))
        empty = [line([""] * len(columns))] * (height // 2)
        picture += [*empty, line([labels[row, column] for column in columns]), *empty]
    print("\n".join([*picture, rule("└", "┴", "┘")]))


def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Prints which devices hold which part of an array; see ``visualize_sharding``.

    >>> visualize_array_sharding(jnp.zeros(4))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(
        arr.shape, sharding, **kwargs))


def inspect_array_sharding(value: Array, *, callback: Callable[[Sharding], None]) -> None:
    """Calls a function with the sharding of an array.

    Inside ``jit`` it is called when the program is partitioned over the mesh, with what propagation
    gave the value; where there is no mesh, whenever the program runs.

    >>> inspect_array_sharding(jnp.zeros(4), callback=lambda sharding: print(sharding.num_devices))
    1
    """
    if isinstance(value, Tracer):
        inspect_sharding(value, callback)
    else:
        callback(value.sharding)
