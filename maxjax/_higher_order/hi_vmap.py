"""``vmap`` of functions that take or give values of types above arrays.

How such a value is mapped only its type knows: ``in_axes`` and ``out_axes`` have a ``MappingSpec``
for it, the types of one element and of all are those that ``dec_rank`` and ``inc_rank`` give, and
the rules ``batch`` of primitives take and give the value of all elements. An element is a
``HiValue`` of arrays with no axis to map (``ValueAxis``).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._higher_order.hi_types import HiValue, hi_classes, hi_type_of
from maxjax._higher_order.hi_values import axes_of_value, is_value, lifted
from maxjax._ir.trace import Array
from maxjax._ir.typing import Value
from maxjax._primitives.broadcasting import reduce_sum
from maxjax._transforms.autodiff import leaf_operand
from maxjax._transforms.batching import ValueAxis, batch_flat, to_axis
from maxjax._transforms.vmap import flatten_axes, mapped_size, normalize_in_axis, vmap_output
from maxjax._transforms.vmappable import MappingSpec, above_arrays


def _concerns(tree: PyTree) -> bool:
    return bool(hi_classes) and any(map(is_value, pytree.leaves(tree, is_value)))


def _unmatched(path: str, target: object, axis: object) -> ValueError:
    return ValueError(f"at vmap out_axes{path}, got axis spec {target} but output was batched on "
                      f"axis {axis}")


def _size(fun: Callable[..., PyTree], tree: PyTreeSpec, leaves: list[PyTree], axes: list[Any],
          axis_size: int | None) -> int:
    for leaf, axis in zip(leaves, axes, strict=True):
        if is_value(leaf) and isinstance(axis, int):
            raise ValueError(
                f"vmap was requested to map a value of non-array type {hi_type_of(leaf)} along "
                f"axis {axis}, but non-array types can't be mapped along an integer axis. Instead "
                "pass a mapping spec (a MappingSpec instance) as this argument's in_axes entry, "
                "and pass axis_size explicitly.")
    arrays = [leaf if is_value(leaf) or axis is None else leaf_operand(leaf)
              for leaf, axis in zip(leaves, axes, strict=True)]
    return mapped_size(fun, tree, arrays, [
        None if axis is None or is_value(leaf) else normalize_in_axis(axis, array.aval.shape)
        for leaf, array, axis in zip(leaves, arrays, axes, strict=True)], axis_size)


def _as_given(leaf: PyTree, operands: Sequence[Value]) -> Any:
    return leaf


def _element(structure: PyTreeSpec, which: slice, operands: Sequence[Value]) -> Any:
    return pytree.unflatten(structure, operands[which])


def _call(fun: Callable[..., PyTree], args: tuple[PyTree, ...], kwargs: dict[str, PyTree],
          in_axes: PyTree, out_axes: PyTree, axis_name: Hashable | None, axis_size: int | None,
          spmd_axis_name: Hashable | None, sum_match: bool) -> Any:
    leaves, tree = pytree.flatten((args, kwargs), is_value)
    axes = flatten_axes("vmap in_axes", (in_axes, 0), pytree.numbered(tree), tree)
    size = _size(fun, tree, leaves, axes, axis_size)
    operands: list[Any] = []
    dims: list[Any] = []
    elements: list[Callable[[Sequence[Any]], Any]] = []     # each of all operands
    for leaf, axis in zip(leaves, axes, strict=True):
        if axis is None:
            elements.append(functools.partial(_as_given, leaf))
            continue
        start = len(operands)
        if not is_value(leaf):
            operands.append(leaf_operand(leaf))
            dims.append(normalize_in_axis(axis, operands[-1].aval.shape))
            elements.append(operator.itemgetter(start))
            continue
        one = hi_type_of(leaf).dec_rank(size, axis)
        value = lifted(leaf)
        operands.extend(value.arrays)
        if value.carrier is not None:
            operands.append(value.carrier)
        dims.extend(axes_of_value(value.aval, one, axis))
        structure = pytree.structure(HiValue(one, value.arrays, value.carrier))
        elements.append(functools.partial(_element, structure, slice(start, len(operands))))
    out_leaves: list[Any] = []
    out_tree: Any = None

    def flat(*xs: Value) -> list[Any]:
        nonlocal out_leaves, out_tree
        call_args, call_kwargs = pytree.unflatten(tree, [element(xs) for element in elements])
        found, out_tree = pytree.flatten(fun(*call_args, **call_kwargs), is_value)
        results: list[Any] = []
        for leaf in found:
            if is_value(leaf):
                value = lifted(leaf)
                carrier = [] if value.carrier is None else [value.carrier]
                results += [*value.arrays, *carrier]
                # No tracer outlives the trace.
                out_leaves.append((value.aval, len(value.arrays), len(carrier)))
            else:
                results.append(leaf if isinstance(leaf, Array) else vmap_output(leaf))
                out_leaves.append(None)
        return results

    outs = iter(list(zip(*batch_flat(
        flat, size, operands, dims, axis_name, spmd_axis_name), strict=True)))
    targets = flatten_axes("vmap out_axes", out_axes, pytree.numbered(out_tree), out_tree)
    paths = map(pytree.path_string, pytree.flatten_with_path(pytree.numbered(out_tree))[0])
    results = []
    for leaf, target, path in zip(out_leaves, targets, paths, strict=True):
        if leaf is None:
            out, dim = next(outs)
            if target is None and dim is not None and sum_match:
                results.append(reduce_sum(out, (dim,)))
            elif target is None or isinstance(target, MappingSpec):
                if dim is not None or target is not None:
                    raise _unmatched(path, target, dim)
                results.append(out)
            else:
                results.append(to_axis(out, dim, target % (len(out.shape) + (dim is None)), size))
            continue
        aval, count, carried = leaf
        parts = [next(outs) for _ in range(count + carried)]
        arrays = [array for array, _ in parts]
        mapped = next((axis for _, axis in parts if isinstance(axis, ValueAxis)), None)
        spec = None if mapped is None else mapped.spec
        if spec != target:
            raise _unmatched(path, target, spec)
        value = HiValue(aval if mapped is None else mapped.whole, arrays[:count],
                        arrays[count] if carried else None)
        results.append(pytree.unflatten(pytree.structure(value), arrays))
    return pytree.unflatten(out_tree, results)


above_arrays.concerns = _concerns
above_arrays.call = _call
