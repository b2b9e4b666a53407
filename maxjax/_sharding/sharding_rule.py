"""How dimensions of operands and results of a user's function correspond: ``"i j, j k -> i k"``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from maxjax._ir.types import ShapedArray
from maxjax._primitives.rules import FactorRule

# Stands for leading dimensions, of which there may be any number.
BATCHING = "…"


def _check_name(factor: str) -> None:
    if not re.match("[a-zA-Z]", factor):
        raise ValueError(f"Factor names have to start with a letter, but got {factor!r}")


class CompoundFactor(tuple[str, ...]):
    """A dimension that consists of several factors, the first the major one.

    >>> CompoundFactor("i", "j")
    ('i', 'j')
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise ValueError("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(
                    f"Each element of CompoundFactor must be a str, but got {type(factor)}")
            if factor.startswith(BATCHING):
                raise ValueError("Ellipsis can't be used in a compound factor")
            _check_name(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The dimensions of one array: names of factors, and ``CompoundFactor``s.

    >>> ArrayMapping("i", "j")
    ('i', 'j')
    """

    __slots__ = ()

    def __new__(cls, *dims: Any) -> ArrayMapping:
        for place, dim in enumerate(dims):
            if not isinstance(dim, (str, CompoundFactor)):
                raise ValueError("Each element of ArrayMapping must be a str or CompoundFactor, "
                                 f"but got {type(dim)}")
            if isinstance(dim, str) and not dim.startswith(BATCHING):
                _check_name(dim)
            elif isinstance(dim, str) and place:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
        return super().__new__(cls, dims)


class SdyShardingRule:
    """The mappings of all operands and results.

    Args:
      operand_mappings, result_mappings: an ``ArrayMapping`` for each.
      reduction_factors, need_replication_factors, permutation_factors: names of factors that are
        summed over; that no axis may split; whose elements move between shards.
      factor_sizes: of the factors that are only in compound ones.

    Raises:
      ValueError: a size is given for a factor that is a dimension by itself, or not for another.
    """

    def __init__(self, operand_mappings: tuple[ArrayMapping, ...],
                 result_mappings: tuple[ArrayMapping, ...],
                 reduction_factors: Sequence[str] = (),
                 need_replication_factors: Sequence[str] = (),
                 permutation_factors: Sequence[str] = (), **factor_sizes: int):
        self.operand_mappings = tuple(operand_mappings)
        self.result_mappings = tuple(result_mappings)
        self.reduction_factors = tuple(reduction_factors)
        self.need_replication_factors = tuple(need_replication_factors)
        self.permutation_factors = tuple(permutation_factors)
        self.factor_sizes = factor_sizes
        dims = [dim for mapping in (*self.operand_mappings, *self.result_mappings)
                for dim in mapping]
        whole = {dim for dim in dims if not isinstance(dim, CompoundFactor)}
        parts = {name for dim in dims if isinstance(dim, CompoundFactor) for name in dim}
        for name in factor_sizes:
            if name not in whole | parts:
                raise ValueError(f"Factor {name} is not used in the rule, but size is provided")
            if name in whole:
                raise ValueError(
                    f"Factor {name} represents a whole dimension; do not specify its size")
        for name in sorted(parts - whole):
            if name not in factor_sizes:
                raise ValueError(
                    f"Factor {name} is only used in compound factors; must specify its size")

    def _key(self) -> Any:
        return (self.operand_mappings, self.result_mappings, self.reduction_factors,
                self.need_replication_factors, self.permutation_factors,
                tuple(sorted(self.factor_sizes.items())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SdyShardingRule) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return (f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, "
                f"{self.factor_sizes})")


def parsed(text: str, **options: Any) -> SdyShardingRule:
    """The rule that a text gives, such as ``"... i j, ... j k -> ... i k"``.

    Raises:
      ValueError: it has no arrow, or its brackets are not balanced.
    """
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(f"There is no -> in rule: {text!r}")
    operands, results = (
        tuple([ArrayMapping(*_dimensions(array, side)) for array in side.split(",")])
        for side in map(str.strip, sides))
    return SdyShardingRule(operands, results, **options)


def _dimensions(array: str, side: str) -> Iterator[Any]:
    compound: list[str] | None = None
    for position, token in enumerate(re.findall(r"\(|\)|[^\s()]+", array)):
        if token in "()":
            if token == "(" and compound is not None:
                raise ValueError(
                    "Compound factors should be one level, nested brackets are not allowed")
            if token == ")" and compound is None:
                raise ValueError(f"Brackets are not balanced in rule: {side!r}")
            if compound is None:
                compound = []
            elif len(compound) < 2:
                raise ValueError("Brackets should contain at least two factors")
            else:
                yield CompoundFactor(*compound)
                compound = None
        elif compound is not None:
            compound.append(token)
        elif token.startswith("..."):
            if position:
                raise ValueError("Ellipsis can only be used at the beginning of a dimension")
            yield BATCHING + (token[3:] or "0")
        else:
            yield token
    if compound is not None:
        raise ValueError(f"Brackets are not balanced in rule: {side!r}")


def factors_of(rule: SdyShardingRule, in_avals: Sequence[ShapedArray],
               out_avals: Sequence[ShapedArray]) -> FactorRule:
    """The rule for arrays of these types.

    Raises:
      ValueError: the number of arrays, or of an array's dimensions, differs.
    """
    sizes: dict[str, int] = dict(rule.factor_sizes)
    return FactorRule(
        _factors("operand", rule.operand_mappings, in_avals, sizes),
        _factors("result", rule.result_mappings, out_avals, sizes), sizes,
        replicated=frozenset(rule.need_replication_factors),
        permutation=frozenset(rule.permutation_factors))


def _factors(kind: str, mappings: Sequence[ArrayMapping], avals: Sequence[ShapedArray],
             sizes: dict[str, int]) -> list[Any]:
    """The factors of each dimension of each array; adds their sizes."""
    if len(mappings) != len(avals):
        raise ValueError(f"Sharding rule has {len(mappings)} {kind}s, but the operation has "
                         f"{len(avals)} {kind}s")
    found = []
    for number, (mapping, aval) in enumerate(zip(mappings, avals, strict=True)):
        dims = _without_batching(mapping, aval.ndim)
        if len(dims) != aval.ndim:
            raise ValueError(
                f"Sharding rule {_ordinal(number)} {kind} has rank {len(dims)}, but the "
                f"operation {_ordinal(number)} {kind} has rank {aval.ndim}")
        found.append(dims)
        sizes.update({names[0]: size for names, size in zip(dims, aval.shape, strict=True)
                      if len(names) == 1})
    return found


def _without_batching(mapping: ArrayMapping, rank: int) -> tuple[tuple[str, ...], ...]:
    dims: list[tuple[str, ...]] = []
    for dim in mapping:
        if isinstance(dim, CompoundFactor):
            dims.append(tuple(dim))
        elif dim.startswith(BATCHING):
            count = rank - len(mapping) + 1
            dims += [(f"{dim}{number}",) for number in range(count - 1, -1, -1)]
        else:
            dims.append((dim,))
    return tuple(dims)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number, "th") if number < 20 else "th"
    return f"{number}{ending}"
