"""StableHLO's products, reductions, indexing and control flow: what each is in ``jax.lax``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._primitives.comparison import ge_p, le_p
from maxjax._primitives.window import select_and_scatter_add_p
from maxjax._stablehlo.program import Block, Operation, Tensor, Unreadable, Value
from maxjax._transforms.autodiff import leaf_operand
from maxjax.export._reader import (
    Reader,
    Rule,
    attribute,
    checked_bind,
    compare_kind,
    expression,
    flags,
    highest,
    integers,
    lowest,
    pairs,
    result_type,
    single_operation,
)

# --- products -------------------------------------------------------------------------------------

_PRECISIONS = {"DEFAULT": lax.Precision.DEFAULT, "HIGH": lax.Precision.HIGH,
               "HIGHEST": lax.Precision.HIGHEST}


def _precision(operation: Operation) -> Any:
    value = operation.attributes.get("precision_config") or []
    if not isinstance(value, list) or len(value) not in (0, 2) or any(
            not isinstance(item, str) or item not in _PRECISIONS for item in value):
        raise Unreadable(operation.where, f"{operation.name}: its precision is {str(value)[:60]}")
    found = tuple([_PRECISIONS[item] for item in value])
    return found if found and set(found) != {lax.Precision.DEFAULT} else None


def _dot_general(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    left, right = operands
    numbers = attribute(operation, "dot_dimension_numbers", dict)
    if operation.attributes.get("algorithm") is not None:
        _check_algorithm(operation)

    def dims(name: str) -> tuple[int, ...]:
        found = numbers.get(name, [])
        if not isinstance(found, list) or any(type(dim) is not int for dim in found):
            raise Unreadable(operation.where, f"dot_general: its {name} are {str(found)[:60]}")
        return tuple(found)

    return lax.dot_general(
        left, right, ((dims("lhs_contracting_dimensions"), dims("rhs_contracting_dimensions")),
                      (dims("lhs_batching_dimensions"), dims("rhs_batching_dimensions"))),
        precision=_precision(operation), preferred_element_type=result_type(operation).dtype)


def _check_algorithm(operation: Operation) -> None:
    """An algorithm asks for more or fewer bits in between: on CPUs it is that of the operands."""
    algorithm = operation.attributes["algorithm"]
    kinds = [algorithm.get(key) for key in (
        "lhs_precision_type", "rhs_precision_type", "accumulation_type")] if isinstance(
        algorithm, dict) else []
    operand = operation.operands[0].type
    if not isinstance(operand, Tensor) or len(kinds) != 3 or any(
            not isinstance(kind, Tensor) for kind in kinds):
        raise Unreadable(operation.where, f"dot_general: the algorithm {str(algorithm)[:100]}")


def _convolution(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    left, right, *widths = operands
    space = np.ndim(left) - 2
    numbers = operation.attributes.get("dimension_numbers")
    if not isinstance(numbers, tuple) or len(numbers) != 3 or space < 0:
        raise Unreadable(operation.where, "convolution: its dimension numbers")
    specs = [_spec(operation, labels, names, space)
             for labels, names in zip(numbers, ("bf", "oi", "bf"), strict=True)]
    reverse = flags(operation, "window_reversal", space)
    if any(reverse):
        right = lax.rev(right, [specs[1][2 + dim] for dim, flag in enumerate(reverse) if flag])
    ones = (1,) * space
    padding = pairs(operation, "padding", space) if not widths else [
        (int(low), int(high)) for low, high in reader.known(widths[0], operation, "its padding")]
    return lax.conv_general_dilated(
        left, right, integers(operation, "window_strides", ones), padding,
        integers(operation, "lhs_dilation", ones), integers(operation, "rhs_dilation", ones),
        lax.ConvDimensionNumbers(*specs), attribute(operation, "feature_group_count", int, 1),
        attribute(operation, "batch_group_count", int, 1), _precision(operation),
        result_type(operation).dtype)


def _spec(operation: Operation, labels: Any, names: str, space: int) -> tuple[int, ...]:
    """Where the two named dimensions are, and those in space, in their order."""
    wanted = [*names, *range(space)]
    if not isinstance(labels, list) or len(labels) != len(wanted) or any(
            labels.count(label) != 1 for label in wanted):
        raise Unreadable(operation.where, f"convolution: the dimensions {str(labels)[:60]}")
    return tuple([labels.index(label) for label in wanted])


# --- reductions -----------------------------------------------------------------------------------

def _scalars(reader: Reader, operation: Operation, number: int) -> Callable[..., Any]:
    """The function of a region of scalars."""
    if len(operation.regions) <= number:
        raise Unreadable(operation.where, f"{operation.name} without a region")
    block, known = operation.regions[number], reader.values

    def function(*values: Any) -> list[Any]:
        return reader.run(block, [*map(leaf_operand, values)], known, operation.where)

    return function


def _halves(operation: Operation, operands: list[Any]) -> tuple[list[Any], list[Any]]:
    count = len(operands) // 2
    if not count or len(operands) != 2 * count:
        raise Unreadable(operation.where, f"{operation.name} of {len(operands)} operands")
    return operands[:count], operands[count:]


def _combine(reader: Reader, operation: Operation, count: int) -> Callable[[Any, Any], Any]:
    function = _scalars(reader, operation, 0)
    if count == 1:
        return lambda x, y: function(x, y)[0]
    return lambda xs, ys: tuple(function(*xs, *ys))


def _reduce(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    arrays, inits = _halves(operation, operands)
    dimensions = integers(operation, "dimensions")
    if not dimensions:      # each element is combined with the initial value
        arrays = [lax.expand_dims(x, (0,)) for x in arrays]
        dimensions = (0,)
    extreme = _extreme_and_place(reader, operation, arrays, inits, dimensions)
    if extreme is not None:
        return extreme
    combine = _combine(reader, operation, len(arrays))
    if len(arrays) == 1:
        return lax.reduce(arrays[0], inits[0], combine, dimensions)
    return list(lax.reduce(tuple(arrays), tuple(inits), combine, dimensions))


def _extreme_and_place(reader: Reader, operation: Operation, arrays: list[Any], inits: list[Any],
                       dimensions: tuple[int, ...]) -> list[Any] | None:
    """JAX's argmax and argmin: a reduction of values and of their places."""
    if len(arrays) != 2 or len(dimensions) != 1 or not all(
            isinstance(init, np.ndarray) for init in inits) or inits[1] != 0:
        return None
    places = reader.definition(operation.operands[1])
    if places is None or places.name != "stablehlo.iota" or (
            places.attributes.get("iota_dimension") != dimensions[0]):
        return None
    found = expression(reader, operation.regions[0]) if operation.regions else None
    for direction, identity, reduce, choose in (
            ("GT", lowest, lax.reduce_max, lax.argmax), ("LT", highest, lax.reduce_min,
                                                        lax.argmin)):
        if found == _better(operation, direction) and (
                inits[0] == np.asarray(identity(np.dtype(arrays[0].dtype)), arrays[0].dtype)):
            return [reduce(arrays[0], dimensions),
                    choose(arrays[0], dimensions[0], np.dtype(arrays[1].dtype))]
    return None


def _better(operation: Operation, direction: str) -> list[Any]:
    """The reduction's region, as ``expression`` gives it, for arguments (x, i, y, j)."""
    x, i = map(compare_kind, operation.operands[:2])

    def either(name: str, *parts: Any) -> tuple[Any, ...]:
        return (name, *sorted(parts, key=repr))

    wins = either("or", ("compare", direction, x, 0, 2), ("compare", "NE", x, 0, 0))
    ties = either("and", ("compare", "EQ", x, 0, 2), ("compare", "LT", i, 1, 3))
    return [("select", wins, 0, 2), ("select", either("or", wins, ties), 1, 3)]


def _reduce_window(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    arrays, inits = _halves(operation, operands)
    rank = np.ndim(arrays[0])
    ones = (1,) * rank
    window = integers(operation, "window_dimensions")
    strides, base, dilation = (integers(operation, name, ones) for name in (
        "window_strides", "base_dilations", "window_dilations"))
    padding = pairs(operation, "padding", rank)
    _check_windows(operation, np.shape(arrays[0]), window, strides, base, dilation, padding)
    prefixes = _prefixes(operation, arrays, inits, window, padding,
                         {strides, base, dilation} == {ones})
    if prefixes is not None:
        return prefixes
    combine = _combine(reader, operation, len(arrays))
    one = len(arrays) == 1
    result = lax.reduce_window(
        arrays[0] if one else tuple(arrays), inits[0] if one else tuple(inits), combine, window,
        strides, padding, base, dilation)
    return result if one else list(result)


# With its padding; what combines elements by a function of the program has masks of such a size.
_MOST_PADDED = 1 << 28


def _check_windows(operation: Operation, shape: Sequence[int], window: Sequence[int],
                   strides: Sequence[int], base: Sequence[int], dilation: Sequence[int],
                   padding: Sequence[tuple[int, int]]) -> None:
    """Before anything of these sizes is made: they are in proportion, and those of the result."""
    if len({len(shape), *map(len, (window, strides, base, dilation))}) > 1 or min(
            (1, *window, *strides, *base, *dilation)) < 1:
        raise Unreadable(operation.where, f"{operation.name}: its windows")
    sizes = [max(0, (size - 1) * step + 1) + low + high
             for size, step, (low, high) in zip(shape, base, padding, strict=True)]
    if math.prod(max(1, size) for size in sizes) > _MOST_PADDED:
        raise Unreadable(operation.where, f"{operation.name} of an array that is padded to {sizes}")
    found = [max(0, (size - (width - 1) * gap - 1) // step + 1)
             for size, width, gap, step in zip(sizes, window, dilation, strides, strict=True)]
    if any(want is not None and want != size for want, size in zip(
            result_type(operation).shape, found, strict=False)):
        raise Unreadable(operation.where, f"{operation.name} gives the shape {found}")


_PREFIXES: dict[str, tuple[Callable[..., Any], Callable[[np.dtype], Any]]] = {
    "stablehlo.add": (lax.cumsum, lambda dtype: 0),
    "stablehlo.multiply": (lax.cumprod, lambda dtype: 1),
    "stablehlo.maximum": (lax.cummax, lowest), "stablehlo.minimum": (lax.cummin, highest),
}


def _prefixes(operation: Operation, arrays: list[Any], inits: list[Any], window: Sequence[int],
              padding: list[tuple[int, int]], plain: bool) -> Any:
    """Sums of all prefixes, as JAX writes them: one window of the dimension's whole size."""
    x, init = arrays[0], inits[0]
    long = [dim for dim, size in enumerate(window) if size != 1]
    name = single_operation(operation.regions[0]) if operation.regions else None
    if len(arrays) != 1 or len(long) != 1 or not plain or name not in _PREFIXES or (
            x.dtype == bool or not isinstance(init, np.ndarray)) or len(window) != np.ndim(x):
        return None
    dim = long[0]
    size = np.shape(x)[dim]
    function, identity = _PREFIXES[str(name)]
    others = {pair for number, pair in enumerate(padding) if number != dim}
    if window[dim] != size or others - {(0, 0)} or padding[dim] not in (
            (size - 1, 0), (0, size - 1)) or (
            init != np.asarray(identity(np.dtype(x.dtype)), x.dtype)):
        return None
    return function(x, dim, reverse=padding[dim][0] == 0)


def _select_and_scatter(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, source, init = operands
    chosen = expression(reader, operation.regions[0]) if len(operation.regions) == 2 else None
    kind = compare_kind(operation.operands[0])
    choices = {"GE": ge_p, "LE": le_p}
    found = [direction for direction in choices
             if chosen == [("compare", direction, kind, 0, 1)]]
    if not found:
        raise Unreadable(operation.where, "select_and_scatter with another choice than JAX's")
    if single_operation(operation.regions[1]) != "stablehlo.add" or not (
            isinstance(init, np.ndarray) and init == 0):
        raise Unreadable(operation.where, "select_and_scatter that does not add to zeros")
    rank = np.ndim(x)
    return checked_bind(
        select_and_scatter_add_p, operation, [source, x], select_prim=choices[found[0]],
        window_dimensions=integers(operation, "window_dimensions", (1,) * rank),
        window_strides=integers(operation, "window_strides", (1,) * rank),
        padding=tuple(pairs(operation, "padding", rank)))


# --- indexing -------------------------------------------------------------------------------------

def _numbers(operation: Operation, name: str) -> Callable[[str], tuple[int, ...]]:
    record = attribute(operation, name, dict)

    def read(key: str) -> tuple[int, ...]:
        found = record.get(key, [])
        if not isinstance(found, list) or any(type(dim) is not int for dim in found):
            raise Unreadable(operation.where, f"{operation.name}: its {key} are {str(found)[:60]}")
        return tuple(found)

    return read


def _index_vectors(operation: Operation, indices: Any, record: str, read: Any) -> Any:
    """Indices with their vectors along the last dimension."""
    place = operation.attributes[record].get("index_vector_dim", 0)
    rank = np.ndim(indices)
    if type(place) is not int or not 0 <= place <= rank:
        raise Unreadable(operation.where, f"{operation.name}: its index_vector_dim")
    if place == rank:
        return lax.reshape(indices, (*np.shape(indices), 1))
    if place == rank - 1:
        return indices
    return lax.transpose(indices, [dim for dim in range(rank) if dim != place] + [place])


def _gather(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, indices, *sizes = operands
    read = _numbers(operation, "dimension_numbers")
    numbers = lax.GatherDimensionNumbers(
        read("offset_dims"), read("collapsed_slice_dims"), read("start_index_map"),
        read("operand_batching_dims"), read("start_indices_batching_dims"))
    indices = _index_vectors(operation, indices, "dimension_numbers", read)
    slice_sizes = tuple(reader.known(sizes[0], operation, "a size").tolist()) if sizes else (
        integers(operation, "slice_sizes"))
    return lax.gather(
        x, indices, numbers, slice_sizes, mode=lax.GatherScatterMode.CLIP,
        indices_are_sorted=attribute(operation, "indices_are_sorted", bool, False))


_SCATTERS: dict[str, Callable[..., Any]] = {
    "stablehlo.add": lax.scatter_add, "stablehlo.multiply": lax.scatter_mul,
    "stablehlo.maximum": lax.scatter_max, "stablehlo.minimum": lax.scatter_min,
}


def _scatter(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    if len(operands) != 3 or len(operation.regions) != 1:
        raise Unreadable(operation.where, f"scatter of {len(operands)} operands")
    x, indices, updates = operands
    name = "scatter_dimension_numbers"
    read = _numbers(operation, name)
    numbers = lax.ScatterDimensionNumbers(
        read("update_window_dims"), read("inserted_window_dims"),
        read("scatter_dims_to_operand_dims"), read("input_batching_dims"),
        read("scatter_indices_batching_dims"))
    indices = _index_vectors(operation, indices, name, read)
    unique = attribute(operation, "unique_indices", bool, False)
    options = {"indices_are_sorted": attribute(operation, "indices_are_sorted", bool, False),
               "unique_indices": unique, "mode": lax.GatherScatterMode.FILL_OR_DROP}
    region = operation.regions[0]
    kind, combined = single_operation(region), expression(reader, region)
    if combined == [1]:
        return lax.scatter(x, indices, updates, numbers, **options)
    if combined == [("subtract", 0, 1)]:
        return lax.scatter_sub(x, indices, updates, numbers, **options)
    if kind in _SCATTERS and x.dtype != bool:
        return _SCATTERS[str(kind)](x, indices, updates, numbers, **options)
    if not _reads(region, region.arguments[1:]):
        function = _scalars(reader, operation, 0)
        other = np.zeros((), x.dtype)
        window = np.shape(updates)
        return lax.scatter_apply(x, indices, _each(lambda y: function(y, other)[0]), numbers,
                                 update_shape=window, **options)
    raise Unreadable(operation.where, "scatter with a combination that is none of JAX's")


def _each(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of scalars for all elements of an array."""
    def mapped(x: Any) -> Any:
        shape = np.shape(x)
        if 0 in shape:
            return x
        return lax.reshape(lax.map(function, lax.reshape(x, (math.prod(shape),))), shape)
    return mapped


def _reads(block: Block, values: Sequence[Value]) -> bool:
    return any(value in operation.operands or any(
        _reads(region, values) for region in operation.regions)
        for operation in block.operations for value in values)


STRUCTURED: dict[str, Rule] = {
    "stablehlo.dot_general": _dot_general, "stablehlo.convolution": _convolution,
    "stablehlo.dynamic_conv": _convolution, "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter, "stablehlo.gather": _gather,
    "stablehlo.dynamic_gather": _gather, "stablehlo.scatter": _scatter,
}
