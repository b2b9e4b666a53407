"""vmap, on pytrees."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from maxjax._base import pytree
from maxjax._base.treedef import PyTreeDef
from maxjax._ir.trace import Array, base_trace
from maxjax._transforms.autodiff import check_callable, operands_of
from maxjax._transforms.batching import batch_flat, to_axis


def vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_name: Any = None,
         axis_size: int | None = None, spmd_axis_name: Any = None, sum_match: bool = False
         ) -> Callable[..., Any]:
    """A function that applies ``fun`` to each element of its arguments along an axis.

    Args:
      fun: a function of arrays or pytrees of them.
      in_axes: for each positional argument the axis to map (None: the same for all elements); an
        int for all, or a tuple of ints, None and prefix pytrees. Keyword arguments map axis 0.
      out_axes: where the mapped axis goes in the results; a prefix pytree.
      axis_name: a name for collectives under the map.
      axis_size: the number of elements, where no argument tells.

    Raises:
      ValueError: the sizes differ, or an axis is out of range.
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not isinstance(in_axes, (int, tuple, type(None))):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}.")
    if not all(isinstance(leaf, int) for leaf in pytree.leaves(in_axes)):
        raise TypeError(
            "vmap in_axes must be an int, None, or (nested) container with those types as leaves, "
            f"but got {in_axes}.")

    @functools.wraps(fun, assigned=[name for name in functools.WRAPPER_ASSIGNMENTS
                                    if hasattr(fun, name)])
    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
                f"positional arguments passed to the function, but got {len(in_axes)=}, "
                f"{len(args)=}")
        leaves, tree = pytree.flatten((args, kwargs))
        axes = flatten_axes("vmap in_axes", (in_axes, 0), (args, kwargs), tree)
        values = operands_of(leaves)
        axes = [None if axis is None else normalize_in_axis(axis, value.aval.shape)
                for axis, value in zip(axes, values, strict=True)]
        size = mapped_size(fun, tree, values, axes, axis_size)
        out_tree: Any = None

        def flat(*xs: Any) -> list[Any]:
            nonlocal out_tree
            call_args, call_kwargs = pytree.unflatten(tree, xs)
            outputs, out_tree = pytree.flatten(fun(*call_args, **call_kwargs))
            return [x if isinstance(x, Array) else vmap_output(x) for x in outputs]

        outs, dims = batch_flat(flat, size, values, axes, axis_name)
        dummy = pytree.unflatten(out_tree, outs)
        targets = flatten_axes("vmap out_axes", out_axes, dummy, out_tree)
        results = []
        for out, dim, target in zip(outs, dims, targets, strict=True):
            if target is None:
                if dim is not None:
                    raise ValueError(
                        "at vmap out_axes, got axis spec None but output was batched on axis "
                        f"{dim}")
                results.append(out)
                continue
            rank = len(out.shape) + (dim is None)
            if not -rank <= target < rank:
                raise ValueError(
                    f"axis {target} is out of bounds for array of dimension {rank}")
            results.append(to_axis(out, dim, target % rank, size))
        return pytree.unflatten(out_tree, results)

    return vmap_f


def vmap_output(leaf: Any) -> Any:
    try:
        return base_trace[0].operand(leaf)
    except TypeError:
        raise TypeError(f"Output from batched function {leaf!r} with type {type(leaf)} is not a "
                        "valid JAX type") from None


def flatten_axes(what: str, axes: Any, value: Any, tree: Any) -> list[Any]:
    """One axis (or None) for each leaf of ``value``."""
    if isinstance(axes, int) or axes is None:
        return [axes] * tree.num_leaves
    try:
        return pytree.broadcast_prefix(axes, value, what=what)
    except ValueError:
        specification = axes[0] if what.endswith("in_axes") else axes
        raise ValueError(
            f"{what} specification must be a tree prefix of the corresponding value; \n"
            f"got the specification {specification} for a value of structure "
            f"{PyTreeDef(tree)}.") from None


def normalize_in_axis(axis: int, shape: tuple[int, ...]) -> int:
    rank = len(shape)
    if not -rank <= axis < rank:
        if axis < 0:
            implied = -axis
        else:
            implied = axis + 1
        raise ValueError(
            f"vmap was requested to map its argument along axis {axis}, which implies that its "
            f"rank should be at least {implied}, but is only {rank} (its shape is {shape})")
    return axis % rank


def mapped_size(fun: Callable[..., Any], tree: Any, values: list[Any], axes: list[Any],
                axis_size: int | None) -> int:
    """The size that all mapped axes share."""
    sizes = [value.aval.shape[axis] for value, axis in zip(values, axes, strict=True)
             if axis is not None]
    if axis_size is not None:
        sizes.append(axis_size)
    if not sizes:
        raise ValueError(
            "vmap must have at least one non-None value in in_axes or axis_size must be specified")
    if len(set(sizes)) == 1:
        return sizes[0]
    raise ValueError(size_message(fun, tree, values, axes, axis_size))


def size_message(fun: Callable[..., Any], tree: Any, values: list[Any], axes: list[Any],
                 axis_size: int | None) -> str:
    args, kwargs = pytree.unflatten(tree, range(tree.num_leaves))
    try:
        names = list(inspect.signature(fun).parameters)
    except (TypeError, ValueError):
        names = []
    paths: list[str] = [""] * len(values)
    for number, value in enumerate(args):
        name = f"argument {names[number]}" if number < len(names) else f"args[{number}]"
        for path, leaf in zip(*pytree.flatten_with_path(value)[:2], strict=True):
            paths[leaf] = name + pytree.path_string(path)
    for key, value in kwargs.items():
        for path, leaf in zip(*pytree.flatten_with_path(value)[:2], strict=True):
            paths[leaf] = f"kwargs['{key}']" + pytree.path_string(path)
    groups: dict[int, list[str]] = {}
    for where, value, axis in zip(paths, values, axes, strict=True):
        if axis is not None:
            groups.setdefault(value.aval.shape[axis], []).append(
                f"axis {axis} of {where} of type {value.aval.str_short()}")
    lines = ["vmap got inconsistent sizes for array axes to be mapped:"]
    if axis_size is not None:
        lines.append(f"  * the axis_size argument says {axis_size}")
    for size, places in groups.items():
        if len(places) == 1:
            lines.append(f"  * one axis had size {size}: {places[0]}")
        else:
            shown = ",\n    ".join(places[:5])
            more = f",\n    and {len(places) - 5} more" if len(places) > 5 else ""
            lines.append(f"  * most axes ({len(places)} of them) had size {size}, e.g. {places[0]}"
                         if len(places) > 5 else
                         f"  * some axes ({len(places)} of them) had size {size}: {shown}{more}")
    return ";\n".join(lines).replace(":;", ":", 1)
