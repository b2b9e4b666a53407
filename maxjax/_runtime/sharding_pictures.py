"""Pictures of shardings: which device holds which part of an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base.lazy import (
    matplotlib,
    rich_align,
    rich_box,
    rich_console,
    rich_padding,
    rich_table,
)
from maxjax._base.shardings import Sharding
from maxjax._higher_order.debugging import inspect_sharding
from maxjax._ir.trace import Array, Tracer


def visualize_sharding(shape: Sequence[int], sharding: Sharding, *, use_color: bool = True,
                       scale: float = 1.0, min_width: int = 9, max_width: int = 80,
                       color_map: Callable[[float], Sequence[float]] | None = None) -> None:
    """Prints which devices hold which part of an array; notebooks show it as HTML.

    Args:
      shape: the array's, of one or two dimensions.
      sharding: how it lies.
      use_color: parts have colours in place of borders, where the terminal has colours.
      scale: the height of the picture, in tens of lines.
      min_width, max_width: of a part.
      color_map: from numbers between 0 and 1 to red, green and blue between 0 and 1; by default
        Matplotlib's ``tab20b``, where Matplotlib is installed.

    Raises:
      ValueError: another number of dimensions.

    >>> visualize_sharding((4,), jnp.zeros(4).sharding)
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    console = rich_console.Console(width=max_width)
    colors = (color_map or _default_colors()) if use_color and console.color_system else None
    parts: dict[tuple[int, int], list[int]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        row, column = (part.start or 0 for part in ((slice(None), *index)[-2:]))
        parts.setdefault((row, column), []).append(device.id)
    rows, columns = (sorted({part[n] for part in parts}) for n in (0, 1))
    border = 0 if colors else 2
    lines = int(10 * scale)
    # An array of one dimension is a row, as wide as its column would be.
    height = lines // len(rows) if len(shape) == 2 else 1
    across = int(lines * 2.5 * (shape[1] if len(shape) == 2 else 1) / shape[0])
    width = max(min(across // len(columns), max_width), min_width)
    blank = max(height - border, 0)
    table = rich_table.Table(show_header=False, show_lines=not colors, padding=0, pad_edge=False,
                             highlight=not colors,
                             box=None if colors else rich_box.SQUARE)
    count = len(rows) * len(columns)
    step = count // 2 + 1      # neighbours get colours that lie far apart
    for number, row in enumerate(rows):
        cells = []
        for place, column in enumerate(columns):
            label = f"CPU {','.join(map(str, sorted(parts[row, column])))}"
            spare = max(width - border - len(label), 0)
            cell = number * len(columns) + place
            style = _style(colors(cell * step % count / max(count - 1, 1))) if colors else "none"
            cells.append(rich_padding.Padding(
                rich_align.Align(label, "center", vertical="middle"),
                (blank // 2, spare - spare // 2, blank - blank // 2, spare // 2), style=style))
        table.add_row(*cells)
    console.print(table, end="\n\n" if colors else "\n")


def _default_colors() -> Callable[[float], Sequence[float]] | None:
    try:
        colors: Callable[[float], Sequence[float]] = matplotlib.colormaps["tab20b"]
    except ImportError:
        return None
    return colors


def _style(color: Sequence[float]) -> Any:
    """A background, with letters that can be read on it."""
    red, green, blue = (int(part * 255) for part in color[:3])
    letters = "black" if red * 0.299 + green * 0.587 + blue * 0.114 > 186 else "white"
    front = {"black": "rgb(0,0,0)", "white": "rgb(255,255,255)"}[letters]
    return f"{front} on rgb({red},{green},{blue})"


def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Prints which devices hold which part of an array; see ``visualize_sharding``.

    Args:
      arr: an array of one or two dimensions, or a tracer.
      kwargs: those of ``visualize_sharding``.

    Returns:
      None.

    See also: ``jax.debug.visualize_sharding``, ``jax.debug.inspect_array_sharding``.

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
