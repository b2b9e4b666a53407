"""Scopes of symbolic sizes: a trace's symbols, and the comparisons that it depends on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from maxjax._base.errors import DynamicSizeError, InternalError
from maxjax._base.interrupts import entered_at_once
from maxjax._base.source import SourceLine
from maxjax._ir.polynomials import Monomial, Terms

if TYPE_CHECKING:
    from maxjax._ir.dimensions import Dimension, Size

# Sizes 0 and 1 mean something of their own (empty, broadcast): a symbol never stands for them.
LEAST = 2


class _State:
    """What is known of dimensions, in all threads.

    Attributes:
      open_scopes: how many scopes are open; only they make dimensions.
      as_scalar: ``(dimension, dtype, weak)`` -> a scalar array, of Python's own integer type if the
        dtype is None; set by the primitive that does it.
    """

    __slots__ = ("as_scalar", "open_scopes")
    as_scalar: Callable[[Dimension, Any, bool], Any]

    def __init__(self) -> None:
        self.open_scopes = 0


state = _State()


class Guard(NamedTuple):
    """A comparison of a dimension with zero, and its outcome."""

    dimension: Dimension
    relation: str           # "==", "<" or "<="
    outcome: bool
    source: SourceLine | None

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return compare(self.dimension.value(sizes), self.relation) is self.outcome

    def __str__(self) -> str:
        dimension, relation = self.dimension, self.relation
        if not self.outcome:
            relation = {"==": "!=", "<": ">=", "<=": ">"}[relation]
        variable, constant = dimension.split_constant()
        if variable.leading_sign() < 0:
            variable, constant = -variable, -constant
            relation = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(relation, relation)
        where = f" ({self.source})" if self.source else ""
        return f"{variable} {relation} {-constant}{where}"


def compare(value: int, relation: str) -> bool:
    return value == 0 if relation == "==" else value < 0 if relation == "<" else value <= 0


class Extreme(NamedTuple):
    """``max(left, right)`` or ``min(left, right)``, where neither is known to be the greater."""

    operation: str
    left: Dimension
    right: Dimension


class Scope:
    """One trace: the sizes at hand, the guards, and the first use that no trace can serve."""

    def __init__(self, sizes: Mapping[str, int]):
        self.sizes = dict(sizes)
        self.guards: dict[tuple[Dimension, str], Guard] = {}
        self.failure: DynamicSizeError | None = None
        self.quotients: dict[str, tuple[Dimension, Dimension]] = {}
        self.extremes: dict[str, Extreme] = {}
        # The scope's equalities: ``factor * monomial`` is written as other terms.
        self.rules: dict[Monomial, tuple[int, Terms]] = {}
        self.closed = False

    def lower(self, dimension: Dimension) -> float:
        """A number that a dimension never falls below."""
        total: float = 0
        for monomial, coefficient in dimension.terms.items():
            least: float = 1
            for atom, power in monomial:
                quotient = self.quotients.get(atom)
                least *= (LEAST if quotient is None else _lower_quotient(*quotient)) ** power
            if monomial and coefficient < 0:
                return -math.inf
            total += coefficient * least
        return total

    def bounds_of(self, dimension: Dimension) -> tuple[float, float]:
        """The least and the greatest value, as integers where they are finite."""
        low, high = self.lower(dimension), -self.lower(-dimension)
        return (low if math.isinf(low) else int(low)), (high if math.isinf(high) else int(high))

    def operands(self, atom: str) -> tuple[Dimension, Dimension] | None:
        """What an atom is made of; None for a symbol."""
        extreme = self.extremes.get(atom)
        return self.quotients.get(atom) if extreme is None else (extreme.left, extreme.right)

    def extreme(self, operation: str, left: Size, right: Size) -> Any:
        """The maximum or minimum of two sizes, by a comparison."""
        return max(left, right) if operation == "max" else min(left, right)

    # ``(difference, relation, asked)`` -> the outcome for all sizes, in scopes without sizes at
    # hand; ``asked`` is the comparison as it was written: two operands and the operator.
    decide: Callable[[Dimension, str, tuple[Any, str, Any]], bool] | None = None

    def needed(self, dimension: Dimension, what: str, where: str) -> Exception:
        """The error for a size of which Python needs the number."""
        error = DynamicSizeError(
            f"the size {dimension} was needed as a number (for {what}){where}, but the function is "
            "being traced for every size of "
            f"{', '.join(map(repr, self.sizes))} at once. What is done with a dynamic size "
            "can be arithmetic, comparisons, and shapes of arrays; to use its value, leave the "
            "dimension out of dynamic_dims.")
        if self.failure is None:
            self.failure = error
        return error

    def mixed(self, left: Dimension, right: Dimension) -> Exception:
        """The error for an operation on dimensions of two scopes."""
        return InternalError(f"the sizes {left} and {right} are of different traces")

    def __enter__(self) -> Scope:
        state.open_scopes += 1
        return self

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        state.open_scopes -= 1
        self.closed = True


def _lower_quotient(above: Dimension, below: Dimension) -> float:
    return 0 if above.lower() >= 0 and below.lower() > 0 else -math.inf
