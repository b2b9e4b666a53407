"""What a program costs by the lines of the user's code that its equations come from."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxjax._ir.control_flow import iterations
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.interpret import runner
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, subjaxprs
from maxjax._runtime.estimates import equation_seconds

_TIMES = 3
_SHOWN_LINES = 20
_SHOWN_PRIMITIVES = 4


@dataclass
class LineCost:
    """The equations of one line of the user's code.

    Attributes:
      line: ``file:line (function)``; "" for equations that have none.
      primitives: how many equations of each.
      flops: of a call; those of all turns of loops included.
      estimate: seconds of a call by the model that decides what gets compiled.
      seconds: measured in the interpreter, or None.
    """

    line: str
    primitives: Counter[str] = field(default_factory=Counter)
    flops: float = 0.0
    estimate: float = 0.0
    seconds: float | None = None

    @property
    def equations(self) -> int:
        return self.primitives.total()

    @property
    def cost(self) -> float:
        return self.estimate if self.seconds is None else self.seconds


def flops_of(eqn: JaxprEqn) -> float:
    """The floating-point operations of an equation, those of all turns of a loop included."""
    inner = [flops_of(inner_eqn) for sub in subjaxprs(eqn.params) for inner_eqn in sub.eqns]
    if inner:
        return sum(inner) * float(iterations(eqn))
    return eqn.primitive.flops_of([atom.aval for atom in eqn.invars],
                                  [var.aval for var in eqn.outvars], eqn.params)


def by_line(closed: ClosedJaxpr, seconds: Sequence[float] | None = None) -> list[LineCost]:
    """The lines, the costliest first.

    Args:
      seconds: of each equation, as ``measured``.
    """
    found: dict[str, LineCost] = {}
    for number, eqn in enumerate(closed.jaxpr.eqns):
        line = "" if eqn.source is None else str(eqn.source)
        cost = found.setdefault(line, LineCost(line))
        cost.primitives.update([eqn.primitive.name])
        cost.flops += flops_of(eqn)
        cost.estimate += equation_seconds(eqn)
        if seconds is not None:
            cost.seconds = (cost.seconds or 0.0) + seconds[number]
    return sorted(found.values(), key=lambda cost: -cost.cost)


def measured(closed: ClosedJaxpr, values: Sequence[np.ndarray]) -> list[float]:
    """Runs a program in the interpreter; the seconds of each equation, the best of three times for
    those without effects.

    Args:
      values: of the inputs, as NumPy has them.
    """
    seconds: list[float] = []

    def timed(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        run: Callable[..., Any] = runner(eqn)
        best = float("inf")
        result: Any = None
        for _ in range(1 if eqn.effects else _TIMES):
            start = time.perf_counter()
            result = run(*operands)
            best = min(best, time.perf_counter() - start)
        seconds.append(best)
        return result if eqn.primitive.multiple_results else (result,)

    consts = [value.host() if hasattr(value, "host") else value for value in closed.consts]
    with np.errstate(all="ignore"):
        eval_jaxpr(closed.jaxpr, consts, *values, rule=timed, literal=lambda literal: literal.val)
    return seconds


def table(costs: Sequence[LineCost]) -> list[str]:
    """The lines as text, the costliest first, the rest in one."""
    total = sum(cost.cost for cost in costs) or 1.0
    shown, rest = costs[:_SHOWN_LINES], costs[_SHOWN_LINES:]
    lines = [_row(cost.cost / total, cost, cost.equations, _names(cost.primitives),
                  os.path.relpath(cost.line) if cost.line.startswith(os.getcwd() + os.sep)
                  else cost.line or "(no line)") for cost in shown]
    if rest:
        together = LineCost("", sum((cost.primitives for cost in rest), Counter()),
                            seconds=sum(cost.cost for cost in rest))
        if rest[0].seconds is None:
            together.seconds = None
        lines.append(_row(sum(cost.cost for cost in rest) / total, together, together.equations,
                          _names(together.primitives), f"{len(rest)} other lines"))
    return lines


def _row(share: float, cost: LineCost, equations: int, names: str, line: str) -> str:
    time_taken = "" if cost.seconds is None else f"{1e3 * cost.seconds:9.3f} ms "
    return f"{share:7.1%} {time_taken}{equations:5d}  {line}: {names}"


def _names(primitives: Counter[str]) -> str:
    most = primitives.most_common()
    shown = [f"{name} x{count}" if count > 1 else name
             for name, count in most[:_SHOWN_PRIMITIVES]]
    return ", ".join([*shown, *(["..."] if len(most) > _SHOWN_PRIMITIVES else [])])
