"""What loops over few elements know of integers is true of each value that comes up."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from maxjax._max.mojo.loop_ranges import Range, Ranges, known_range
from maxjax._max.mojo.scalar_code import Instruction, Register

INT8, INT32, BOOL = np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.bool_)
COMPUTED = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "rem": np.fmod, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "eq": np.equal, "ne": np.not_equal}
LOGICAL = {"and": np.logical_and, "or": np.logical_or}
RANGES = ((0, 0), (0, 5), (-3, 4), (1, 3), (4, 4), (-128, 127), (100, 127), (-128, -120))
BOOLEANS = ((0, 0), (1, 1), (0, 1))


def registers(dtype: np.dtype, count: int) -> list[Register]:
    return [Register(number, 1, dtype, 8 * number) for number in range(count)]


def values(of: Range) -> np.ndarray:
    return np.arange(of[0], of[1] + 1)


def known(given: list[Register], ranges: tuple[Range, ...]) -> Ranges:
    found = Ranges()
    for register, of in zip(given, ranges, strict=True):
        found.set(register, of)
    return found


@pytest.mark.parametrize("name", (*COMPUTED, *LOGICAL))
def test_a_result_is_within_its_range(name):
    """Also where a computation wraps around: then nothing is known."""
    dtype, bounds, compute = (BOOL, BOOLEANS, LOGICAL[name]) if name in LOGICAL \
        else (INT8, RANGES, COMPUTED[name])
    given = registers(dtype, 2)
    decided = 0
    for ranges in itertools.product(bounds, repeat=2):
        of = known(given, ranges)
        a, b = np.meshgrid(*(values(x).astype(dtype) for x in ranges), indexing="ij")
        if name == "rem" and not b.all():
            b = np.where(b == 0, b.dtype.type(1), b)
            of.set(given[1], (int(b.min()), int(b.max())))
        with np.errstate(all="ignore"):
            exact = compute(a, b)
        found = of.result(name, given, exact.dtype)
        if found is not None:
            decided += 1
            assert found[0] <= exact.min() and exact.max() <= found[1], (ranges, found)
        same = of.unchanged(name, given)
        if same is not None:
            np.testing.assert_array_equal(exact, a if same is given[0] else b)
    assert decided


def test_ranges_are_sharp_where_nothing_wraps():
    given = registers(INT32, 2)
    of = known(given, ((0, 5), (-2, 3)))
    assert of.result("add", given, INT32) == (-2, 8)
    assert of.result("sub", given, INT32) == (-3, 7)
    assert of.result("mul", given, INT32) == (-10, 15)
    assert of.result("lt", given, BOOL) is None
    assert of.result("max", given, INT32) == (0, 5)


@pytest.mark.parametrize("predicate, taken", (((0, 0), 2), ((1, 1), 1), ((0, 1), None)))
def test_a_decided_selection_is_its_operand(predicate, taken):
    given = [*registers(BOOL, 1), *registers(INT32, 2)]
    of = known(given, (predicate, (1, 2), (7, 9)))
    assert of.unchanged("select", given) is (None if taken is None else given[taken])
    assert of.result("select", given, INT32) == (1, 9)


def test_floats_and_unsigned_integers_have_no_range():
    for dtype in (np.float32, np.float64, np.uint32, np.complex64):
        register, = registers(np.dtype(dtype), 1)
        assert known([register], ((0, 3),)).of(register) is None


@pytest.mark.parametrize("seed", range(200))
def test_a_counted_carry_stays_in_its_range(seed):
    draw = random.Random(seed)
    carry, = registers(INT8, 1)
    first = draw.randint(-128, 127)
    begin = first, min(127, first + draw.randint(0, 6))
    step, length = draw.choice((-7, -1, 1, 2, 30)), draw.choice((1, 2, 5, 40))
    of = Ranges()
    end = of.counted({carry: step}, {carry: begin}, length, {})[carry]
    inside = of.of(carry)
    for start in range(begin[0], begin[1] + 1):
        counter = np.int8(start)
        for _ in range(length):
            assert inside is None or inside[0] <= counter <= inside[1]
            counter = np.int8((int(counter) + step + 128) % 256 - 128)
        wrapped = not -128 <= start + length * step <= 127
        # What the caller keeps of an end is what its register can hold: `set` decides.
        of.set(carry, end)
        left = of.of(carry)
        assert left is None or wrapped is False and left[0] <= counter <= left[1]
        of.set(carry, inside)


@pytest.mark.parametrize("seed", range(200))
def test_a_carry_stays_within_its_conditions_limit(seed):
    """A loop that runs as long as its counter is below, or above, a bound."""
    draw = random.Random(seed)
    carry, bound = registers(INT8, 2)
    first = draw.randint(-128, 127)
    begin = first, min(127, first + draw.randint(0, 6))
    limit, step = draw.randint(-128, 127), draw.choice((-9, -1, 1, 3))
    name = draw.choice(("lt", "le") if step > 0 else ("gt", "ge"))
    predicate = Register(2, 1, BOOL, 16)
    operands = (carry, bound)
    if draw.random() < 0.5:
        operands, written = operands[::-1], {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}[name]
    else:
        written = name
    of = known([bound], ((limit, limit),))
    limits = of.limits(
        [Instruction("apply", predicate, operands, name=written)], predicate)
    end = of.counted({carry: step}, {carry: begin}, None, limits)[carry]
    inside = of.of(carry)
    for start in range(begin[0], begin[1] + 1):
        counter = start
        for _ in range(300):
            if not COMPUTED[name](counter, limit):
                break
            assert inside is None or inside[0] <= counter <= inside[1]
            counter = (counter + step + 128) % 256 - 128
        else:
            assert end is None      # it never ends, for it wraps around
            continue
        assert end is None or end[0] <= counter <= end[1]


def test_a_loop_forgets_what_it_changes():
    given = registers(INT32, 2)
    of = known(given, ((0, 5), (1, 1)))
    assert of.taken(given[:1]) == {given[0]: (0, 5)}
    assert of.of(given[0]) is None and of.of(given[1]) == (1, 1)


def test_elements_have_their_wholes_range():
    whole = Register(0, 4, INT32, 0)
    element = Register(2, 1, INT32, 8, whole=whole)
    of = known([whole], ((3, 9),))
    assert of.of(element) == (3, 9)
    of.set(element, (4, 4))
    assert of.of(element) == (4, 4) and of.of(whole) == (3, 9)


def test_what_is_stored_with_a_program_is_known():
    data = np.array([3, -1, 7], np.int32)
    assert known_range(data.tobytes(), 3, INT32) == (-1, 7)
    assert known_range(data.tobytes(), 2, INT32) is None
    assert known_range(None, 3, INT32) is None
    assert known_range(np.ones(2).tobytes(), 2, np.dtype(np.float64)) is None
