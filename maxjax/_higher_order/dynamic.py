"""``jit(f, dynamic_dims=...)``: one trace for every size.

The function is traced with symbols for the sizes (``maxjax._ir.dimensions``); a call substitutes
its sizes for them. A *variant* is a trace with its guards, the comparisons of sizes that the
function made: where their outcomes differ, it takes another path, and is traced again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from maxjax._base import config, pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._higher_order.static_arguments import Static
from maxjax._ir.dimensions import symbol_in
from maxjax._ir.jaxpr import Family
from maxjax._ir.size_scopes import LEAST, Guard, Scope
from maxjax._ir.substitute import with_sizes
from maxjax._ir.types import ShapedArray
from maxjax._primitives import dimension as dimension  # gives sizes as arrays

if TYPE_CHECKING:
    from maxjax._higher_order.entries import Entry, Trace

# The most sizes that a function has programs for; the oldest is dropped first.
MAX_SIZES = 512


class Variant:
    """One trace and the sizes that it serves.

    Attributes:
      trace: the trace, with symbols among its sizes.
      guards: the comparisons that must have the same outcome for other sizes.
    """

    __slots__ = ("family", "guards", "trace")

    def __init__(self, trace: Trace, guards: list[Guard]):
        self.trace = trace
        self.guards = guards
        self.family = Family()

    def serves(self, sizes: Mapping[str, int]) -> bool:
        return all(guard.holds(sizes) for guard in self.guards)

    def at(self, sizes: Mapping[str, int]) -> Trace:
        """The trace for sizes; the function does not run."""
        closed = with_sizes(self.trace.closed, sizes)
        return self.trace._replace(
            closed=closed.with_facts(closed.facts._replace(family=self.family)))


class DynamicDims:
    """Which dimensions of a function's arguments are symbols, and its variants."""

    def __init__(self, dims: Mapping[int | str, PyTree], positional: list[str]):
        if not isinstance(dims, Mapping):
            raise TypeError(
                "dynamic_dims must map arguments to their dynamic dimensions, such as "
                f'{{0: {{0: "batch"}}}}, got {dims!r}')
        self.by_name: dict[str, Any] = {}
        self.by_position: dict[int, Any] = {}
        for key, spec in dims.items():
            _check_spec(spec, f"dynamic_dims[{key!r}]")
            if isinstance(key, str):
                self.by_name[key] = spec
                if key in positional:
                    self.by_position[positional.index(key)] = spec
            elif isinstance(key, int) and not isinstance(key, bool):
                position = key + len(positional) if key < 0 else key
                self.by_position[position] = spec
                if 0 <= position < len(positional):
                    self.by_name[positional[position]] = spec
            else:
                raise TypeError("dynamic_dims must have argument positions or names for keys, got "
                                f"{key!r}")
        self.variants: dict[Any, list[Variant]] = {}

    def leaf_dims(self, tree: PyTreeSpec, positions: list[int]) -> list[dict[int, str]]:
        """For each leaf of the dynamic arguments its symbols by dimension."""
        result: list[dict[int, str]] = [{} for _ in range(tree.num_leaves)]
        args, kwargs = pytree.numbered(tree)
        for position, value in zip(positions, args, strict=True):
            spec = self.by_position.get(position)
            for leaf, dims in _spread(spec, value, f"argument {position}"):
                result[leaf] = dims
        for name, value in kwargs.items():
            for leaf, dims in _spread(self.by_name.get(name), value, f"argument {name!r}"):
                result[leaf] = dims
        return result

    def entry(self, avals: tuple[ShapedArray, ...], tree: PyTreeSpec, static: Static | None,
              positions: list[int], names: Callable[[], list[str]],
              trace: Callable[[tuple[ShapedArray, ...]], Trace],
              make_entry: Callable[[Trace], Entry]) -> Entry:
        """The entry of a signature, by a trace of it or of other sizes.

        Args:
          positions: of the positional arguments that are not static.
          names: gives the name of each leaf, for messages.
          trace: traces the function at given types.
          make_entry: makes jit's entry of a trace.

        Raises:
          ValueError: the arguments lack a dimension, or one symbol has two sizes.
          DynamicSizeError: the function needs a size as a number.
        """
        leaf_dims = self.leaf_dims(tree, positions)
        sizes = _sizes(avals, leaf_dims, names)
        open_sizes = {name: size for name, size in sizes.items() if size >= LEAST}
        if not open_sizes:
            return make_entry(trace(avals))
        pattern = tuple([_pattern(aval, dims, open_sizes)
                         for aval, dims in zip(avals, leaf_dims, strict=True)])
        variants = self.variants.setdefault((tree, pattern, static, config.trace_state()), [])
        for variant in variants:
            if variant.serves(open_sizes):
                return make_entry(variant.at(open_sizes))
        with Scope(open_sizes) as scope:
            symbols = {name: symbol_in(scope, name) for name in open_sizes}
            symbolic = tuple([
                ShapedArray([symbols.get(size, size) for size in shape], dtype, weak)
                for shape, dtype, weak in pattern])
            try:
                made = trace(symbolic)
            except Exception as error:
                if scope.failure is None or error is scope.failure:
                    raise
                raise scope.failure from error
            if scope.failure is not None:      # somebody caught it, and took another path
                raise scope.failure
            if made.captured:
                return make_entry(trace(avals))
        variant = Variant(made, list(scope.guards.values()))
        variants.append(variant)
        return make_entry(variant.at(open_sizes))


def _check_spec(spec: PyTree, path: str) -> None:
    if spec is None:
        return
    if isinstance(spec, Mapping):
        if all(isinstance(key, int) for key in spec):
            for key, symbol in spec.items():
                if not isinstance(symbol, str) or not symbol.isidentifier():
                    raise ValueError(
                        f"{path}[{key}] must be the name of a symbol, an identifier such as "
                        f"'batch', got {symbol!r}")
            return
        for key, inner in spec.items():
            _check_spec(inner, f"{path}[{key!r}]")
    elif isinstance(spec, (tuple, list)):
        for position, inner in enumerate(spec):
            _check_spec(inner, f"{path}[{position}]")
    else:
        raise TypeError(f"{path} must map dimensions to symbols, such as {{0: 'batch'}}, or be a "
                        f"pytree of such maps, got {spec!r}")


def _spread(spec: PyTree, value: PyTree, path: str) -> Iterator[tuple[int, dict[int, str]]]:
    """The leaves (numbers) under an argument, with their part of its specification."""
    if spec is None:
        return
    if isinstance(spec, Mapping) and all(isinstance(key, int) for key in spec):
        for leaf in pytree.leaves(value):
            yield leaf, dict(spec)
        return
    children: list[tuple[Any, Any]]
    if isinstance(spec, Mapping) and isinstance(value, Mapping) and set(spec) <= set(value):
        children = [(key, value[key]) for key in spec]
        inner = [spec[key] for key in spec]
    elif isinstance(spec, (tuple, list)) and isinstance(value, (tuple, list)) and (
            len(spec) == len(value)):
        children, inner = list(enumerate(value)), list(spec)
    else:
        raise ValueError(f"dynamic_dims does not fit the structure of {path}: {spec!r}")
    for (key, child), part in zip(children, inner, strict=True):
        yield from _spread(part, child, f"{path}[{key!r}]")


def _sizes(avals: tuple[ShapedArray, ...], leaf_dims: list[dict[int, str]],
           names: Callable[[], list[str]]) -> dict[str, int]:
    """The size of each symbol."""
    found: dict[str, tuple[int, int, int]] = {}
    for leaf, (aval, dims) in enumerate(zip(avals, leaf_dims, strict=True)):
        for axis, symbol in dims.items():
            if not -aval.ndim <= axis < aval.ndim:
                raise ValueError(
                    f"dynamic_dims calls dimension {axis} of the argument {names()[leaf]} "
                    f"{symbol!r}, which has the shape {aval.shape}")
            size = aval.shape[axis]
            first = found.setdefault(symbol, (size, leaf, axis))
            if first[0] != size:
                called = names()
                raise ValueError(
                    f"dimension {axis} of the argument {called[leaf]} is {symbol!r}, which is "
                    f"{first[0]} by dimension {first[2]} of the argument {called[first[1]]}: "
                    f"needed {first[0]}, got {size}")
    return {symbol: size for symbol, (size, _, _) in found.items()}


def _pattern(aval: ShapedArray, dims: Mapping[int, str], open_sizes: Mapping[str, int]) -> Any:
    shape: list[Any] = list(aval.shape)
    for axis, symbol in dims.items():
        if symbol in open_sizes:
            shape[axis] = symbol
    return tuple(shape), aval.dtype, aval.weak_type
