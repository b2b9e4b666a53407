"""What a program costs, counted as XLA counts it: ``lower(x).cost_analysis()``.

An element of a result is one operation, or a transcendental one, which is counted apart; loops are
counted as one turn, and of branches the dearest. XLA computes some functions by others, whose
counts they have. Before compilation each operation reads its operands and writes its results;
afterwards a group of operations that XLA would fuse reads and writes what leaves the group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from maxjax._ir.costs import bytes_of, size_of
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, subjaxprs
from maxjax._ir.liveness import read_variables, variables
from maxjax._ir.types import ShapedArray

# The bytes of the pointer to each of several results: in memory, and as XLA counts accesses.
_POINTER = 8
_COUNTED_POINTER = 4


class Cost(NamedTuple):
    flops: float = 0.0
    transcendentals: float = 0.0
    bytes: float = 0.0

    def plus(self, other: Cost) -> Cost:
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))

    def properties(self) -> dict[str, float]:
        """As ``cost_analysis`` gives it: counts of 0 are left out."""
        found = {"flops": self.flops, "transcendentals": self.transcendentals,
                 "bytes accessed": self.bytes}
        return {name: float(count) for name, count in found.items() if count}


# --- operations -----------------------------------------------------------------------------------

def _work(eqn: JaxprEqn) -> tuple[float, float]:
    """Operations and transcendental ones of an equation without jaxprs of its own."""
    cost = eqn.primitive.cost.xla
    ins, outs = [x.aval for x in eqn.invars], [x.aval for x in eqn.outvars]
    count = cost.flops or eqn.primitive.flops_of
    return count(ins, outs, eqn.params), cost.transcendentals * size_of(outs[:1])


def _moved(eqn: JaxprEqn) -> float:
    """The bytes that an equation reads and writes by itself."""
    cost = eqn.primitive.cost.xla
    ins, outs = [x.aval for x in eqn.invars], [x.aval for x in eqn.outvars]
    if cost.moved is not None:
        return cost.moved(ins, outs, eqn.params)
    total = bytes_of(ins) + bytes_of(outs)
    if outs and outs[0].ndim and len(ins) > 1 and cost.spreads:
        # A scalar among arrays is spread over their shape first.
        total += sum(2 * outs[0].size * aval.dtype.itemsize for aval in ins if not aval.ndim)
    return total + _initial(eqn)


def _initial(eqn: JaxprEqn) -> int:
    """The bytes of the value at which a reduction begins."""
    return eqn.outvars[0].aval.dtype.itemsize if eqn.primitive.cost.xla.reduces else 0


def _of_jaxpr(jaxpr: ClosedJaxpr | Jaxpr, moved: Callable[[ClosedJaxpr | Jaxpr], float]) -> Cost:
    total = Cost()
    for eqn in jaxpr.eqns:
        total = total.plus(_of_equation(eqn, moved))
    return total._replace(bytes=moved(jaxpr))


def _of_equation(eqn: JaxprEqn, moved: Callable[[ClosedJaxpr | Jaxpr], float]) -> Cost:
    inner = [_of_jaxpr(sub, moved) for sub in subjaxprs(eqn.params)]
    if not inner or eqn.primitive.cost.flops is not None:
        return Cost(*_work(eqn))
    if eqn.primitive.cost.xla.chooses:
        return Cost(*(max(counts) for counts in zip(*inner, strict=True)))
    total = Cost(eqn.primitive.cost.xla.turns)
    for cost in inner:
        total = total.plus(cost)
    return total


# --- bytes ----------------------------------------------------------------------------------------

def _bytes_of_each(jaxpr: ClosedJaxpr | Jaxpr) -> float:
    """Every operation by itself."""
    return sum(sum(map(_bytes_of_each, subjaxprs(eqn.params)))
               if any(True for _ in subjaxprs(eqn.params)) else _moved(eqn) for eqn in jaxpr.eqns)


class _Group(NamedTuple):
    """Operations that are fused: what they read and write, and the bytes of it."""

    reads: set[Var]
    writes: set[Var]
    bytes: float


def _groups(jaxpr: ClosedJaxpr | Jaxpr) -> list[_Group]:
    """What would be fused, in order: an operation joins the one that alone uses its result."""
    eqns = list(jaxpr.eqns)
    results = set(variables(_outvars(jaxpr)))
    users: dict[Var, set[int]] = {}
    members: dict[int, list[JaxprEqn]] = {}
    for number in reversed(range(len(eqns))):
        eqn = eqns[number]
        wanted = set().union(*(users.get(x, ()) for x in eqn.outvars))
        group = next(iter(wanted), number)
        cost, reader = eqn.primitive.cost.xla, eqns[group].primitive.cost.xla
        if (len(wanted) != 1 or results.intersection(eqn.outvars) or cost.reduces or cost.alone
                or reader.alone and not cost.views):
            group = number
        members.setdefault(group, []).append(eqn)
        for x in variables(eqn.invars):
            users.setdefault(x, set()).add(group)
    return [_group(eqns[number], members[number]) for number in sorted(members)]


def _group(last: JaxprEqn, eqns: list[JaxprEqn]) -> _Group:
    made = {x for eqn in eqns for x in eqn.outvars}
    read = [x for eqn in eqns for x in variables(eqn.invars) if x not in made]
    writes = set(last.outvars)
    cost = last.primitive.cost.xla
    if len(eqns) == 1 and cost.takes_part:
        moved = _moved(last)
    else:
        # A fused operation reads each operand once.
        moved = (bytes_of(x.aval for x in (read if cost.alone else set(read)))
                 + bytes_of(x.aval for x in writes) + sum(map(_initial, eqns))
                 + sum(map(_bytes_of_fused, subjaxprs(last.params))))
    return _Group(set(read), writes, moved)


def _outvars(jaxpr: ClosedJaxpr | Jaxpr) -> Sequence[Any]:
    return (jaxpr.jaxpr).outvars


def _bytes_of_fused(jaxpr: ClosedJaxpr | Jaxpr) -> float:
    if not jaxpr.eqns:
        return 2 * bytes_of(x.aval for x in _outvars(jaxpr))       # copied
    return sum(group.bytes for group in _groups(jaxpr))


# --- programs -------------------------------------------------------------------------------------

def _with_pointers(cost: Cost, results: Sequence[ShapedArray]) -> Cost:
    return cost.plus(Cost(bytes=_COUNTED_POINTER * len(results) if len(results) > 1 else 0))


def lowered_cost(closed: ClosedJaxpr) -> dict[str, float]:
    """The cost of a program before compilation."""
    return _with_pointers(_of_jaxpr(closed, _bytes_of_each), closed.out_avals).properties()


def compiled_cost(closed: ClosedJaxpr) -> dict[str, float]:
    """The cost of a simplified program, with operations fused."""
    return _with_pointers(_of_jaxpr(closed, _bytes_of_fused), closed.out_avals).properties()


def result_bytes(avals: Sequence[ShapedArray]) -> int:
    """The bytes of a program's results, with pointers to them if there are several."""
    return bytes_of(avals) + (_POINTER * len(avals) if len(avals) > 1 else 0)


def argument_bytes(closed: ClosedJaxpr) -> int:
    """The bytes of the arguments of a simplified program that it uses."""
    used = read_variables(closed.eqns, closed.outvars)
    return bytes_of(x.aval for x in closed.invars if x in used)


def temporary_bytes(closed: ClosedJaxpr) -> int:
    """The largest sum of values between the groups of a simplified program that are alive at a
    time."""
    groups = _groups(closed)
    results = set(closed.jaxpr.outvars)
    made = {x for group in groups for x in group.writes} - results
    last = {x: number for number, group in enumerate(groups) for x in group.reads & made}
    alive = peak = 0
    for number, group in enumerate(groups):
        alive += bytes_of(x.aval for x in group.writes if x in last)
        peak = max(peak, alive)
        alive -= bytes_of(x.aval for x in group.reads & made if last[x] == number)
    return peak
