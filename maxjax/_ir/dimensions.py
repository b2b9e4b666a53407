"""Symbolic sizes: what ``shape`` holds while a function is traced for every size at once.

A ``Dimension`` is a polynomial with integer coefficients of symbols, such as ``2*batch + 1``, and
of floor divisions, maxima and minima that have no simpler form. It computes like an integer. A
comparison whose outcome depends on the symbols is answered for the sizes at hand and recorded as a
``Guard``: the trace serves the sizes for which all guards have the same outcome. Where Python needs
the number itself (a ``range``, an index, ``float``), no trace can serve all sizes: an error names
the line.
"""

from __future__ import annotations

import math
import operator
import os
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import (
    TYPE_CHECKING,
    Any,
    NoReturn,
    SupportsIndex,
    SupportsInt,
    TypeGuard,
    Union,
)

import numpy as np

from maxjax._base.errors import InternalError
from maxjax._base.source import SourceLine, is_internal, user_frame
from maxjax._ir.polynomials import (
    Monomial,
    Terms,
    add_terms,
    divide_terms,
    multiply_monomials,
    print_order,
)
from maxjax._ir.size_scopes import Guard, Scope, compare, state

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_NUMPY = os.path.dirname(np.__file__) + os.sep
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep
_WEAK_REMOVAL = weakref.WeakValueDictionary()._remove.__code__  # type: ignore[attr-defined]

# A size: a number, or a symbolic one.
Size = Union[int, "Dimension"]


def _array(dimension: Dimension) -> Any:
    return state.as_scalar(dimension, None, True)


def is_dimension(value: object) -> TypeIs[Dimension]:
    return value.__class__ is Dimension


def larger(left: Size, right: Size) -> Any:
    """The greater of two sizes; ``max(n, 3)`` where symbols decide and none are at hand."""
    return _extreme("max", left, right)


def smaller(left: Size, right: Size) -> Any:
    """The lesser of two sizes; ``min(n, 3)`` where symbols decide and none are at hand."""
    return _extreme("min", left, right)


def _extreme(operation: str, left: Size, right: Size) -> Any:
    for size in (left, right):
        if is_dimension(size):
            return size.scope.extreme(operation, left, right)
    return max(left, right) if operation == "max" else min(left, right)


def is_open(size: object) -> bool:
    """Whether a size has symbols, and no number is at hand for them."""
    return is_dimension(size) and size.scope.decide is not None


def least(size: Size) -> float:
    """The number that a size is, or that a symbolic one never falls below."""
    return size.lower() if is_dimension(size) else size


def constant_size(value: SupportsIndex | Dimension) -> Any:
    """A size as an int, or the dimension that it is."""
    return value if value.__class__ is Dimension else int(value)


def size_index(value: SupportsIndex | Dimension) -> Any:
    """``operator.index`` for what may be a dimension."""
    return value if value.__class__ is Dimension else operator.index(value)


def broadcast_shapes(*shapes: Sequence[Size]) -> tuple[Any, ...]:
    """The shape that shapes broadcast to.

    Raises:
      ValueError: they do not.
    """
    if not state.open_scopes:
        try:
            return np.broadcast_shapes(*shapes)
        except TypeError:       # a size that no array has, as of a sparse array
            if not any(is_dimension(size) for shape in shapes for size in shape):
                raise
    rank = max(map(len, shapes), default=0)
    result = []
    for dim in range(-rank, 0):
        sizes = [shape[dim] for shape in shapes if len(shape) >= -dim and shape[dim] != 1]
        if any(size != sizes[0] for size in sizes):
            raise ValueError("shape mismatch: objects cannot be broadcast to a single shape.")
        result.append(sizes[0] if sizes else 1)
    return tuple(result)


class Dimension:
    """A size that depends on symbols. Equal polynomials of one trace are equal and hash alike."""

    __slots__ = ("_hash", "scope", "terms")
    __array_ufunc__ = None      # NumPy's scalars leave their operators to this class

    def __init__(self, scope: Scope, terms: Terms):
        self.scope = scope
        self.terms = terms
        self._hash = hash((id(scope), frozenset(terms.items())))

    # --- looking ---
    def value(self, sizes: Mapping[str, Size]) -> Any:
        """What it is for sizes of the symbols: a number, or of other symbols."""
        total = 0
        for monomial, coefficient in self.terms.items():
            for atom, power in monomial:
                coefficient *= self._atom(atom, sizes) ** power
            total += coefficient
        return total

    def _atom(self, name: str, sizes: Mapping[str, Size]) -> Any:
        size = sizes.get(name)
        if size is not None:
            return size
        extreme = self.scope.extremes.get(name)
        if extreme is not None:
            choose = larger if extreme.operation == "max" else smaller
            return choose(extreme.left.value(sizes), extreme.right.value(sizes))
        above, below = self.scope.quotients[name]
        return above.value(sizes) // below.value(sizes)

    @property
    def hint(self) -> int:
        """The number that it is for the sizes at hand."""
        return self.value(self.scope.sizes)

    def split_constant(self) -> tuple[Dimension, int]:
        rest = {monomial: value for monomial, value in self.terms.items() if monomial}
        return Dimension(self.scope, rest), self.terms.get((), 0)

    def leading_sign(self) -> int:
        """The sign of the first term that is printed."""
        terms = self._with_remainders()
        return 1 if terms[max(terms, key=print_order)] > 0 else -1

    def lower(self) -> float:
        """A number that it never falls below."""
        return self.scope.lower(self)

    def __repr__(self) -> str:
        parts: list[str] = []
        terms = self._with_remainders()
        for monomial in sorted(terms, key=print_order, reverse=True):
            coefficient = terms[monomial]
            factors = [name if power == 1 else f"{name}^{power}" for name, power in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            text = "*".join(factors)
            sign = "-" if coefficient < 0 else "+"
            parts.append(f" {sign} {text}" if parts else text if sign == "+" else f"- {text}")
        return "".join(parts)

    def _with_remainders(self) -> Terms:
        """The terms, ``times * (a - b*floordiv(a, b))`` being ``times * mod(a, b)``."""
        terms: Terms = self.terms
        for name in {atom for monomial in terms for atom, _ in monomial
                     if atom in self.scope.quotients}:
            above, below = self.scope.quotients[name]
            multiple = {multiply_monomials(monomial, ((name, 1),)): value
                        for monomial, value in below.terms.items()}
            first, value = next(iter(multiple.items()))
            times = -terms.get(first, 0) // value
            parts = {known: times * value
                     for known, value in add_terms(above.terms, multiple, -1).items()}
            if times and all(terms.get(known, 0) == value for known, value in parts.items()):
                terms = {known: value for known, value in terms.items() if known not in parts}
                terms[((f"mod({above}, {below})", 1),)] = times
        return terms

    # --- arithmetic ---
    def _with_array(self, operation: Callable[[Any, Any], object], left: object, right: object
                    ) -> Any:
        """An operation with a number that is no integer, or with a NumPy array: as a scalar
        array."""
        numbers = (float, complex, np.generic, np.ndarray)
        if not (isinstance(left, numbers) or isinstance(right, numbers)):
            return NotImplemented
        return operation(*(_array(x) if x is self else x for x in (left, right)))

    def __add__(self, other: object) -> Any:
        terms = self._operand(other)
        if terms is None:
            return self._with_array(operator.add, self, other)
        return self._make(add_terms(self.terms, terms))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self._make({monomial: -value for monomial, value in self.terms.items()})

    def __pos__(self) -> Dimension:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __sub__(self, other: object) -> Any:
        terms = self._operand(other)
        if terms is None:
            return self._with_array(operator.sub, self, other)
        return self._make(add_terms(self.terms, terms, -1))

    def __rsub__(self, other: object) -> Any:
        terms = self._operand(other)
        if terms is None:
            return self._with_array(operator.sub, other, self)
        return self._make(add_terms(terms, self.terms, -1))

    def __mul__(self, other: object) -> Any:
        terms = self._operand(other)
        if terms is None:
            return self._with_array(operator.mul, self, other)
        product: dict[Monomial, int] = {}
        for left, a in self.terms.items():
            for right, b in terms.items():
                monomial = multiply_monomials(left, right)
                product[monomial] = product.get(monomial, 0) + a * b
        return self._make(product)

    __rmul__ = __mul__

    def __pow__(self, other: object) -> Any:
        if isinstance(other, int) and other >= 0:
            result: Any = 1
            for _ in range(other):
                result = result * self
            return result
        return _array(self) ** other

    def __rpow__(self, other: complex) -> Any:
        return other ** _array(self)

    def __truediv__(self, other: object) -> Any:
        return _array(self) / (_array(other) if is_dimension(other) else other)

    def __rtruediv__(self, other: object) -> Any:
        return other / _array(self)

    def __floordiv__(self, other: object) -> Any:
        if self._operand(other) is None:
            return self._with_array(operator.floordiv, self, other)
        return _quotient(self.scope, self, other)

    def __rfloordiv__(self, other: object) -> Any:
        if self._operand(other) is None:
            return self._with_array(operator.floordiv, other, self)
        return _quotient(self.scope, other, self)

    def __mod__(self, other: object) -> Any:
        if self._operand(other) is None:
            return self._with_array(operator.mod, self, other)
        return self - self.__floordiv__(other) * other

    def __rmod__(self, other: object) -> Any:
        if self._operand(other) is None:
            return self._with_array(operator.mod, other, self)
        return other - self.__rfloordiv__(other) * self

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> Any:
        return other // self, other % self

    def _operand(self, other: object) -> Terms | None:
        if is_dimension(other):
            if other.scope is not self.scope:
                raise self.scope.mixed(self, other)
            return other.terms
        if isinstance(other, int) or _is_numpy_integer(other):
            return {(): int(other)} if other else {}
        return None

    def _make(self, terms: Mapping[Monomial, int]) -> Any:
        return _simplest(self.scope, terms)

    # --- comparison ---
    def __eq__(self, other: object) -> Any:
        if self is other:
            return True
        if other.__class__ is Dimension and other.scope is not self.scope:
            return False
        terms = self._operand(other)
        if terms is None:
            if isinstance(other, float):
                return other.is_integer() and self == int(other)
            return NotImplemented
        if is_dimension(other) and self.terms == terms:
            return True
        return self._ask(add_terms(self.terms, terms, -1), "==", (self, "==", other))

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __lt__(self, other: object) -> Any:
        return self._less(other, "<", math.ceil, "<")

    def __le__(self, other: object) -> Any:
        return self._less(other, "<=", math.floor, "<=")

    def __gt__(self, other: object) -> Any:
        outcome = self._less(other, "<=", math.floor, ">")
        return outcome if outcome is NotImplemented else not outcome

    def __ge__(self, other: object) -> Any:
        outcome = self._less(other, "<", math.ceil, ">=")
        return outcome if outcome is NotImplemented else not outcome

    def _less(self, other: object, relation: str, rounded: Callable[[float], int], written: str
              ) -> Any:
        if isinstance(other, float):
            if not math.isfinite(other):
                return other == math.inf
            other = rounded(other)
        terms = self._operand(other)
        if terms is None:
            return NotImplemented
        return self._ask(add_terms(self.terms, terms, -1), relation, (self, written, other))

    def _ask(self, terms: Mapping[Monomial, int], relation: str, asked: tuple[Size, str, object]
             ) -> bool:
        """Whether a polynomial stands in a relation to zero; recorded if symbols decide it."""
        if self.scope.closed:
            raise InternalError(f"the size {self} is used after its trace has ended")
        difference = _simplest(self.scope, terms)
        if difference.__class__ is not Dimension:
            return compare(difference, relation)
        if self.scope.decide is not None:
            return self.scope.decide(difference, relation, asked)
        if difference.lower() > 0:
            return False
        upper = -(-difference).lower()
        if upper < 0:
            return relation != "=="
        if upper == 0 and relation == "<=":
            return True
        if difference.lower() == 0 and relation == "<":
            return False
        outcome = compare(difference.hint, relation)
        guards = self.scope.guards
        if (difference, relation) not in guards:
            frame = user_frame(2)
            source = None if frame is None else SourceLine(frame.f_code, frame.f_lasti)
            guards[difference, relation] = Guard(difference, relation, outcome, source)
        return outcome

    def __bool__(self) -> bool:
        return self != 0

    def __hash__(self) -> int:
        # As a key of a user's table it would not be found among the numbers there.
        if self.scope.decide is not None:
            return self._hash
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _is_standard_library(frame.f_code.co_filename):
            if frame.f_code is _WEAK_REMOVAL:
                # A key dies wherever its object does, and the entry of a number cannot be meant.
                return self._hash
            frame = frame.f_back
        if frame is not None and not is_internal(frame.f_code):
            self._needed("a hash")
        return self._hash

    # --- where Python needs the number ---
    def _needed(self, what: str) -> NoReturn:
        frame: FrameType | None = sys._getframe(2)
        inner = sys._getframe(2)
        while frame is not None and (is_internal(frame.f_code)
                                     or _is_library(frame.f_code.co_filename)):
            frame = frame.f_back
        where = "" if frame is None else f" at {SourceLine(frame.f_code, frame.f_lasti)}"
        if inner is not frame and where:
            where += f", in {inner.f_code.co_name}"
        raise self.scope.needed(self, what, where)

    def __index__(self) -> int:
        self._needed("an integer")

    def __int__(self) -> int:
        self._needed("int()")

    def __float__(self) -> float:
        self._needed("float()")

    def __complex__(self) -> complex:
        self._needed("complex()")

    def bit_length(self) -> int:
        """The bits of the number, by comparisons with powers of two."""
        bits = 0
        while self >= 1 << bits:
            bits += 1
        return bits

    def __round__(self, digits: int | None = None) -> Dimension:
        return self

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __jax_array__(self) -> Any:
        return _array(self)

    def __array__(self, *args: object, **kwargs: object) -> Any:
        self._needed("a NumPy array")

    def __reduce__(self) -> Any:
        self._needed("a copy outside the trace")


def _is_standard_library(filename: str) -> bool:
    return filename.startswith(_STANDARD_LIBRARY) and "site-packages" not in filename


def _is_library(filename: str) -> bool:
    return _is_standard_library(filename) or filename.startswith(_NUMPY)


def _is_numpy_integer(value: object) -> TypeGuard[SupportsInt]:
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "") in "iu" and not getattr(value, "shape", True)\
        and not hasattr(value, "aval")


def combined(left: Size, right: Dimension, factor: int) -> Any:
    """``left + factor * right`` without the scope's rules."""
    terms: Terms = left.terms if is_dimension(left) else {(): left}
    return polynomial(right.scope, add_terms(terms, right.terms, factor))


def symbol_in(scope: Scope, name: str) -> Any:
    """The size that a symbol is; a number where the scope's rules say which."""
    return _simplest(scope, {((name, 1),): 1})


def _simplest(scope: Scope, terms: Terms) -> Any:
    """A dimension by the scope's rules; a number where no symbol is left."""
    for monomial in scope.rules.keys() & terms.keys() if scope.rules else ():
        factor, others = scope.rules[monomial]
        if terms[monomial] % factor == 0:
            left = {known: value for known, value in terms.items() if known != monomial}
            times = terms[monomial] // factor
            terms = add_terms(left, {other: times * value for other, value in others.items()})
    return polynomial(scope, terms)


def polynomial(scope: Scope, terms: Terms) -> Any:
    """A dimension as it is written; a number where no symbol is left."""
    terms = {monomial: value for monomial, value in terms.items() if value}
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Dimension(scope, terms)


def _quotient(scope: Scope, above: Any, below: Any) -> Any:
    """The floor of a quotient: exact division where it is exact, else a new atom."""
    if isinstance(below, int) and below == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    numerator: Terms = above.terms if is_dimension(above) else {(): int(above)} if above else {}
    denominator: Terms = below.terms if is_dimension(below) else {(): int(below)}
    whole, rest = divide_terms(numerator, denominator)
    result = _simplest(scope, whole)
    remainder = _simplest(scope, rest)
    if not is_dimension(remainder) and not is_dimension(below):
        return result + remainder // below
    if not is_dimension(remainder) and remainder == 0:
        return result
    if is_dimension(below) and 0 <= _lower(remainder) and 0 < _lower(below - remainder):
        return result
    name = f"floordiv({remainder}, {below})"
    remainder, below = (x if is_dimension(x) else Dimension(scope, {(): int(x)})
                        for x in (remainder, below))
    scope.quotients[name] = remainder, below
    return result + Dimension(scope, {((name, 1),): 1})


def _lower(value: Size) -> float:
    return value.lower() if is_dimension(value) else value
