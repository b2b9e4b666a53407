"""What an application of a primitive must be given: how many operands, which parameters, and how
they fit one another.

Operations see to it before they bind a primitive, whose rules rely on it. A program that operations
did not write, such as one that was read from a file, is held against the contracts
(``check_operands`` of ``maxjax._ir.check``). A primitive without one stands in no such program.

    contract=takes(1, axis=AXIS, reverse=FLAG)
"""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import InconclusiveDimensionOperation
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.types import ShapedArray

# How operands and parameters must fit: ``(*avals, **params)`` -> what is wrong, or None.
Rule = Callable[..., "str | None"]

# No size, stride or count is greater: sums and products of a few of them are exact in 128 bits,
# and what goes through so many elements never ends.
GREATEST = 1 << 40


class Kind(NamedTuple):
    """What a parameter may be.

    Attributes:
      what: in words, as errors say it.
      holds: whether a value is that, for operands of given types.
    """

    what: str
    holds: Callable[[Any, Sequence[ShapedArray]], bool]


class Contract:
    """See ``takes``."""

    __slots__ = ("least", "most", "parameters", "rules")

    def __init__(self, least: int, most: int | None, rules: Sequence[Rule],
                 parameters: Mapping[str, Kind]):
        self.least = least
        self.most = most
        self.rules = rules
        self.parameters = parameters

    def problem(self, avals: Sequence[ShapedArray], params: Mapping[str, object]) -> str | None:
        """What an application violates, in words; None if it is as it must be."""
        if not self.least <= len(avals) <= (len(avals) if self.most is None else self.most):
            wanted = (self.least if self.least == self.most else f"{self.least} or more"
                      if self.most is None else f"{self.least} to {self.most}")
            return f"it has {len(avals)} operands, and needs {wanted}"
        if params.keys() != self.parameters.keys():
            return (f"its parameters are {', '.join(sorted(params)) or 'none'}, and must be "
                    f"{', '.join(sorted(self.parameters)) or 'none'}")
        for name, kind in self.parameters.items():
            try:
                holds = kind.holds(params[name], avals)
            except InconclusiveDimensionOperation:
                continue        # it is asked again once the sizes are known
            if not holds:
                value = repr(params[name])
                value = value if len(value) <= 80 else value[:80] + "..."
                return f"its parameter {name} is {value}, and must be {kind.what}"
        for rule in self.rules:
            try:
                found = rule(*avals, **params)
            except InconclusiveDimensionOperation:
                continue
            if found is not None:
                return found
        return None


def takes(operands: int | tuple[int, int | None], *rules: Rule, **parameters: Kind) -> Contract:
    """A contract.

    Args:
      operands: how many there are: a number, or the least and the greatest (None: any).
      rules: how operands and parameters must fit, asked in this order, after the parameters.
      parameters: the kind of each.
    """
    least, most = operands if isinstance(operands, tuple) else (operands, operands)
    return Contract(least, most, rules, parameters)


# --- kinds of parameters --------------------------------------------------------------------------

def is_integer(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, no bool, and not out of all proportion."""
    return type(value) is int and -GREATEST <= value <= GREATEST


def is_size(value: object) -> bool:
    return is_dimension(value) or is_integer(value) and value >= 0


def _are(values: object, holds: Callable[[object], bool]) -> TypeGuard[tuple[object, ...]]:
    return type(values) is tuple and all(map(holds, values))


def _axes(values: object, rank: int) -> bool:
    return _are(values, lambda value: is_integer(value) and 0 <= value < rank) and (
        len(set(values)) == len(values))


def each(count: str, holds: Callable[[Any], bool], what: str) -> Kind:
    """A tuple with one item for each dimension of the first operand ("dimension"), for each operand
    ("operand"), or of any length ("any")."""
    def fits(value: object, avals: Sequence[ShapedArray]) -> bool:
        wanted = {"dimension": avals[0].ndim if avals else 0, "operand": len(avals)}.get(count)
        return _are(value, holds) and wanted in (None, len(value))

    return Kind(f"a tuple of {what}" + ("" if count == "any" else f", one for each {count}"), fits)


def instance(kind: type[enum.Enum]) -> Kind:
    """A member of an enumeration."""
    return Kind(f"a {kind.__name__}", lambda value, avals: type(value) is kind)


def one_of(*values: object) -> Kind:
    """One of a few values, of its type too."""
    return Kind(f"{' or '.join(map(repr, values))}", lambda value, avals: any(
        type(value) is type(known) and value == known for known in values))


def optional(kind: Kind) -> Kind:
    """None, or a value of a kind."""
    return Kind(f"None or {kind.what}",
                lambda value, avals: value is None or kind.holds(value, avals))


def integer(least: int, greatest: int) -> Kind:
    """An integer within bounds."""
    return Kind(f"an integer from {least} to {greatest}",
                lambda value, avals: type(value) is int and least <= value <= greatest)


def numbered(kind: type) -> Kind:
    """A namedtuple of tuples of dimensions."""
    def holds(value: object, avals: Sequence[ShapedArray]) -> bool:
        return isinstance(value, tuple) and value.__class__ is kind and all(
            _are(field, lambda item: is_integer(item) and item >= 0) for field in tuple(value))

    return Kind(f"{kind.__name__} of tuples of dimensions", holds)


def is_dtype(value: object) -> bool:
    return dtypes.is_key(value) or isinstance(value, np.dtype) and value in STORED


def is_pair(value: object) -> bool:
    return _are(value, lambda item: is_integer(item) or is_dimension(item)) and len(value) == 2


def is_triple(value: object) -> bool:
    return _are(value, lambda item: is_integer(item) or is_dimension(item)) and len(value) == 3


# The dtypes of arrays, by their names.
STORED = frozenset((
    dtypes.bool_, *dtypes.INTS, *dtypes.SMALL_INTS, *dtypes.FLOATS, *dtypes.SMALL_FLOATS,
    *dtypes.COMPLEX))

NUMBER = Kind("a finite number", lambda value, avals: (
    type(value) in (int, float) and math.isfinite(value)))
OPTION = Kind("None or a member of an enumeration", lambda value, avals: (
    value is None or isinstance(value, enum.Enum)))
PRECISION = Kind("None, a precision or a pair of them", lambda value, avals: all(
    item is None or isinstance(item, (enum.Enum, int)) or is_dtype(item)
    for item in (value if isinstance(value, tuple) else (value,))))
ANY_TUPLE = Kind("a tuple", lambda value, avals: type(value) is tuple)
EACH_NONE = each("operand", lambda item: item is None, "None")
CLOSED_JAXPR = Kind("a jaxpr", lambda value, avals: type(value) is ClosedJaxpr)
CLOSED_JAXPRS = Kind("a tuple of one or more jaxprs", lambda value, avals: (
    _are(value, lambda item: type(item) is ClosedJaxpr) and len(value) > 0))
NATURAL = integer(0, GREATEST)
POSITIVE = integer(1, GREATEST)

FLAG = Kind("True or False", lambda value, avals: type(value) is bool)
FLAGS = each("any", lambda item: type(item) is bool, "True or False")
COUNT = Kind("a size", lambda value, avals: is_size(value))
SHAPE = each("any", is_size, "sizes")
SIZES = each("dimension", is_size, "sizes")
STEPS = each("dimension", lambda item: is_integer(item) and item > 0, "positive integers")
INTEGERS = each("dimension", is_integer, "integers")
PAIRS = each("dimension", is_pair, "pairs of integers")
# For convolutions and windows: one item for each spatial dimension, which the type rule counts.
SPATIAL_STEPS = each("any", lambda item: is_integer(item) and item > 0, "positive integers")
SPATIAL_PAIRS = each("any", is_pair, "pairs of integers")
NONE = one_of(None)
TEXT = Kind("a text", lambda value, avals: type(value) is str)
DTYPE = Kind("a dtype", lambda value, avals: is_dtype(value))
NUMBER_DTYPE = Kind("a dtype of numbers", lambda value, avals: (
    isinstance(value, np.dtype) and value in STORED - {dtypes.bool_}))
INTEGER_DTYPE = Kind("a dtype of integers", lambda value, avals: (
    isinstance(value, np.dtype) and value in dtypes.INTS))
AXIS = Kind("a dimension of the first operand", lambda value, avals: (
    is_integer(value) and 0 <= value < avals[0].ndim))
AXES = Kind("a tuple of different dimensions of the operand", lambda value, avals: (
    _axes(value, avals[0].ndim)))
ONE_AXIS = Kind("a tuple of one dimension of the operand", lambda value, avals: (
    _axes(value, avals[0].ndim) and len(value) == 1))
PERMUTATION = Kind("a tuple of all dimensions of the operand", lambda value, avals: (
    _axes(value, avals[0].ndim) and len(value) == avals[0].ndim))


# --- the types in a program -----------------------------------------------------------------------

def type_problem(aval: ShapedArray) -> str | None:
    """What is wrong with a type in a program that was read: no machine holds a value of it."""
    if not is_dtype(aval.dtype):
        return f"there are no arrays of dtype {aval.dtype}"
    if not all(map(is_size, aval.shape)):
        return f"its shape is {aval.shape}"
    sizes = [size for size in aval.shape if not is_dimension(size)]
    nbytes = math.prod(sizes) * dtypes.physical(aval.dtype).itemsize
    if nbytes > _memory():
        return f"it takes {nbytes:,} bytes, more than this machine has"
    # Strides are products of the other sizes, also where one is zero.
    if math.prod(size for size in sizes if size) >= GREATEST << 10:
        return f"its sizes {aval.shape} are out of all proportion"
    return None


def _memory() -> int:
    """The machine's memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
