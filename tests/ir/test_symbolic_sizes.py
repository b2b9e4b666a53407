"""Symbolic sizes compute, compare and print as the numbers that they stand for would.

Random expressions of two symbols are evaluated twice: as a `Dimension`, whose value is then taken
for sizes of the symbols, and by Python's integers for those sizes.
"""

from __future__ import annotations

import itertools
import operator
import random
from typing import Any

import pytest

from maxjax._base.errors import InconclusiveDimensionOperation
from maxjax._ir import dimensions, size_ranges
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.shape_parser import parse_dimension
from maxjax._ir.size_scopes import Scope
from maxjax._ir.symbolic import SymbolicScope

SIZES = [{"a": a, "b": b} for a, b in itertools.product((2, 3, 4, 7, 12, 100), repeat=2)]
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def expression(draw: random.Random, depth: int) -> Any:
    """A function of the symbols that computes like a size."""
    if not depth or draw.random() < 0.2:
        name = draw.choice("ab")
        number = draw.randint(-3, 5)
        return draw.choice((lambda of: of[name], lambda of: of[name], lambda of: number))
    left, right = expression(draw, depth - 1), expression(draw, depth - 1)
    divisor = draw.choice((2, 3, 5, -2))
    return draw.choice((
        lambda of: left(of) + right(of),
        lambda of: left(of) - right(of),
        lambda of: left(of) * right(of),
        lambda of: -left(of),
        lambda of: left(of) // divisor,
        lambda of: left(of) % divisor,
        lambda of: left(of) // of["b"],
        lambda of: dimensions.larger(left(of), right(of)),
        lambda of: dimensions.smaller(left(of), right(of))))


def symbols(scope: Scope) -> dict[str, Any]:
    return {name: dimensions.symbol_in(scope, name) for name in "ab"}


def value(size: Any, sizes: dict[str, int]) -> int:
    return size.value(sizes) if is_dimension(size) else size


@pytest.mark.parametrize("seed", range(30))
def test_arithmetic_is_that_of_the_numbers(seed):
    compute = expression(random.Random(seed), 4)
    found = compute(symbols(SymbolicScope()))
    assert [value(found, sizes) for sizes in SIZES] == [compute(sizes) for sizes in SIZES]


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_for_all_sizes(seed):
    compute = expression(random.Random(seed), 3)
    scope = SymbolicScope()
    found = compute(symbols(scope))
    if is_dimension(found):
        low, high = scope.bounds_of(found)
        assert all(low <= compute(sizes) <= high for sizes in SIZES)


def test_bounds_are_sharp_where_they_can_be():
    scope = SymbolicScope(["a >= 3", "a <= 10", "b >= 2"])
    a, b = symbols(scope).values()
    assert scope.bounds_of(a) == (3, 10)
    assert scope.bounds_of(2 * a - 1) == (5, 19)
    assert scope.bounds_of(a * b) == (6, float("inf"))
    assert scope.bounds_of(a % 4) == (0, 3)
    assert scope.bounds_of(10 - a) == (0, 7)


@pytest.mark.parametrize("seed", range(25))
def test_a_decided_comparison_holds_for_all_sizes(seed):
    draw = random.Random(seed)
    left, right = expression(draw, 2), expression(draw, 2)
    given = symbols(SymbolicScope())
    for compare in COMPARISONS:
        try:
            outcome = compare(left(given), right(given))
        except InconclusiveDimensionOperation:
            assert compare not in (operator.eq, operator.ne), "JAX answers equality always"
        else:
            if compare not in (operator.eq, operator.ne):
                assert all(compare(left(sizes), right(sizes)) == outcome for sizes in SIZES)
            elif outcome == (compare is operator.eq):
                assert all(left(sizes) == right(sizes) for sizes in SIZES)


@pytest.mark.parametrize("seed", range(25))
def test_a_guard_serves_the_sizes_with_its_outcome(seed):
    """A trace at hand answers for its sizes, and its guards say for which others that holds."""
    draw = random.Random(seed)
    left, right = expression(draw, 2), expression(draw, 2)
    at_hand = draw.choice(SIZES)
    scope = Scope(at_hand)
    with scope:
        given = symbols(scope)
        outcomes = [compare(left(given), right(given)) for compare in COMPARISONS]
    assert outcomes == [compare(left(at_hand), right(at_hand)) for compare in COMPARISONS]
    for sizes in SIZES:
        if all(guard.holds(sizes) for guard in scope.guards.values()):
            assert outcomes == [compare(left(sizes), right(sizes)) for compare in COMPARISONS]


@pytest.mark.parametrize("seed", range(30))
def test_what_is_printed_is_read_as_the_same_size(seed):
    scope = SymbolicScope()
    found = expression(random.Random(seed), 3)(symbols(scope))
    if is_dimension(found):
        assert parse_dimension(str(found), scope) == found


@pytest.mark.parametrize("start", (None, 0, 1, 3, -1, -3))
@pytest.mark.parametrize("stop", (None, 0, 2, -1, 50))
@pytest.mark.parametrize("step", (None, 1, 2, -1, -3))
def test_slices_of_a_symbolic_size_take_what_those_of_numbers_take(start, stop, step):
    size = symbols(SymbolicScope())["a"]
    found = size_ranges.slice_range(slice(start, stop, step), size)
    for sizes in SIZES:
        expected = range(sizes["a"])[start:stop:step]
        count = value(size_ranges.count_of(found), sizes)
        assert count == len(expected)
        for numbers, wanted in ((found, expected),
                                (size_ranges.reversed_range(found), expected[::-1])):
            assert [value(numbers[k], sizes) for k in range(count)] == [*wanted]
            assert [value(numbers[k - count], sizes) for k in range(count)] == [*wanted]


def test_an_equality_is_a_rule():
    scope = SymbolicScope(["a == 2*b"])
    a, b = symbols(scope).values()
    assert a == 2 * b and str(a + b) == "3*b"
    assert a // 2 == b and a % 2 == 0


def test_sizes_of_two_scopes_do_not_mix():
    left, right = symbols(SymbolicScope())["a"], symbols(SymbolicScope())["a"]
    with pytest.raises(ValueError, match="scope"):
        left + right
