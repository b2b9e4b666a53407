"""Random draws: a name's cases with other dtypes, shapes, axes, memory layouts and modes.

What hypothesis finds it makes small; the case that is printed belongs into a table.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import hypothesis
from hypothesis import strategies as st

from compat import chosen, evaluate, judge
from compat.spec import DTYPES, X64, Case, Input

SIZES = (0, 1, 2, 3, 5)
LAYOUTS = (lambda made: made, lambda made: made, Input.numpy, Input.strided)
_AXIS = re.compile(r"axis=(-?\d+|\([^)]*\))")
# Nothing but inputs and the arguments of a reduction: an error of JAX's tells something, too.
_PLAIN = re.compile(r"f\([a-z](, [a-z])*(, (axis=[^)]*|keepdims=True))*\)")


def base_cases(cases: Sequence[Case]) -> list[Case]:
    """The cases that can be drawn anew: all inputs are random arrays of a shape."""
    return [case for case in cases if case.inputs and not case.raises and "\n" not in case.text
            and all(made.remake is not None for made in case.inputs.values())]


@st.composite
def cases_like(draw: Any, bases: Sequence[Case]) -> tuple[Case, str]:
    """A case and a mode."""
    base = draw(st.sampled_from(list(bases)))
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), max_size=4)))
    inputs = {}
    for name, made in base.inputs.items():
        own = shape
        if _PLAIN.fullmatch(base.text) and len(base.inputs) > 1:
            # Broadcasting: leading axes dropped, others of size one.
            own = tuple(1 if draw(st.integers(0, 4)) == 0 else n
                        for n in shape[draw(st.integers(0, len(shape))):])
        elif not _PLAIN.fullmatch(base.text):
            rank = len(made.generate(name, "float32").shape)
            own = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=rank, max_size=rank)))
        remade = made.remake(own)
        inputs[name] = draw(st.sampled_from(LAYOUTS))(
            dataclasses.replace(remade, fixed=made.fixed))
    text = _AXIS.sub(lambda _: f"axis={draw(st.integers(-len(shape), max(0, len(shape) - 1)))}",
                     base.text)
    dtype = draw(st.sampled_from([base.dtype, *DTYPES.split(), "float64", "int64", "uint32"]))
    case = dataclasses.replace(base, text=text, inputs=inputs, dtype=dtype, raises=None,
                               x64=base.x64 or dtype in X64)
    return case, draw(st.sampled_from(base.modes))


class Found(AssertionError):
    """A case that differs."""


def explore(name: str, cases: Sequence[Case], count: int) -> judge.Result | None:
    """The smallest case that differs, of ``count`` draws; None if none does."""
    bases = base_cases(cases)
    if not bases:
        return None
    last: list[judge.Result] = []

    @hypothesis.settings(max_examples=count, deadline=None, database=None,
                         print_blob=False, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(cases_like(bases))
    def draws(drawn: tuple[Case, str]) -> None:
        case, mode = drawn
        theirs = evaluate.run(evaluate.real(), case, mode)
        hypothesis.assume(theirs.error is None or _PLAIN.fullmatch(case.text) is not None)
        result = judge.verdict(case, mode, "0", evaluate.run(evaluate.own(), case, mode), theirs)
        if result.problem is not None and result.known is None:
            last[:] = [result]
            raise Found

    try:
        draws()
    except Found:
        return last[0]
    except hypothesis.errors.Unsatisfiable:
        return None
    return None


def main(names: Sequence[str], count: int) -> int:
    """Explores names; prints what differs."""
    rows = chosen.rows()
    bad = 0
    for name in names:
        if not base_cases(rows.get(name, [])):
            continue
        result = explore(name, rows[name], count)
        bad += result is not None
        print(f"{'FAIL' if result else 'pass'}  {name}", flush=True)
        if result is not None:
            judge.print_case(result.shown())
    print(f"{bad} names differ")
    return 1 if bad else 0
