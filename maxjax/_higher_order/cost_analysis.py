"""What a program costs, counted as XLA counts it: ``lower(x).cost_analysis()``.

An element of a result is one operation, or a transcendental one, which is counted apart; loops are
counted as one turn, and of branches the dearest. XLA computes some functions by others, whose
counts they have. Before compilation each operation reads its operands and writes its results;
afterwards a group of operations that XLA would fuse reads and writes what leaves the group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, subjaxprs
from maxjax._ir.types import ShapedArray

# Of each result, where there are several: in memory, and in XLA's count of what is accessed.
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


# Operations and transcendental ones for each element of the result, where it is not (1, 0).
_EACH = {
    **dict.fromkeys(("exp", "exp2", "log", "log1p", "expm1", "sqrt", "rsqrt", "cbrt", "pow", "tanh",
                     "sin", "cos", "tan", "atan2", "erf"), (0, 1)),
    "atan": (0, 1), "logistic": (3, 1), "asin": (5, 2), "acos": (6, 2), "sinh": (10, 3),
    "cosh": (5, 2), "erf_inv": (36, 2), "select_n": (1, 0), "threefry2x32": (70, 0),
    "random_bits": (36, 0),
}
# What makes or moves elements, or is a call of a library, without operations that XLA would count.
_NONE = frozenset((
    "transpose", "reshape", "squeeze", "expand_dims", "broadcast_in_dim", "slice", "rev", "iota",
    "bitcast_convert_type", "copy", "stop_gradient", "random_seed", "random_wrap",
    "random_unwrap", "device_put", "optimization_barrier", "sharding_constraint",
    "top_k", "cholesky", "lu", "eigh", "eig", "svd", "geqrf", "householder_product",
    "triangular_solve", "schur", "hessenberg", "tridiagonal", "tridiagonal_solve"))
# Operations for each pair of elements that a reduction combines, where it is not 1.
_PAIR = {"argmax": 9, "argmin": 9}
# What is fused neither with what it reads nor with what reads it.
_ALONE = frozenset((
    "dot_general", "conv_general_dilated", "sort", "fft", "scatter", "scatter-add",
    "scatter_mul", "scatter_min", "scatter_max", "dynamic_update_slice", "while", "scan", "cond"))
# What such an operation reads as it would read its operand.
_VIEWS = frozenset(("transpose", "reshape", "squeeze", "expand_dims"))


def _size(avals: Iterable[ShapedArray]) -> int:
    return sum(aval.size for aval in avals if isinstance(aval, ShapedArray))


def _nbytes(avals: Iterable[ShapedArray]) -> int:
    return sum(aval.nbytes for aval in avals if isinstance(aval, ShapedArray))


# --- operations -----------------------------------------------------------------------------------

def _work(eqn: JaxprEqn) -> tuple[float, float]:
    """Operations and transcendental ones of an equation without jaxprs of its own."""
    name = eqn.primitive.name
    ins, outs = [x.aval for x in eqn.invars], [x.aval for x in eqn.outvars]
    size = _size(outs[:1])
    if name in _NONE:
        return 0, 0
    if name in _EACH:
        flops, transcendentals = _EACH[name]
        return flops * size, transcendentals * size
    if name == "convert_element_type":
        return (0 if ins[0].dtype == outs[0].dtype else size), 0
    if name == "integer_pow":
        return size * _products(abs(eqn.params["y"])), 0
    if name == "sort":
        return ins[0].size * math.ceil(math.log2(max(ins[0].size, 1))), 0
    if name == "fft":
        # Two operations for each of the four products of a complex one.
        lengths = math.prod(max(length, 1) for length in eqn.params["fft_lengths"])
        return 8 * math.log2(lengths) * ins[0].size, 0
    if name in ("cumsum", "cumprod", "cummax", "cummin"):
        return size * (ins[0].shape[eqn.params["axis"]] - 1), 0
    if "window_dimensions" in eqn.params:
        return size * (math.prod(eqn.params["window_dimensions"]) - 1), 0
    if name.startswith("scatter"):
        return (0 if name == "scatter" else ins[-1].size), 0
    if len(ins) == 1 and _reduces(eqn):
        return _PAIR.get(name, 1) * max(ins[0].size - size, 0), 0
    return eqn.primitive.flops_of(ins, outs, eqn.params), 0


def _products(power: int) -> int:
    """How many products give a power, by repeated squares."""
    return max(power.bit_length() + power.bit_count() - 2, 0)


def _moved(eqn: JaxprEqn) -> float:
    """The bytes that an equation reads and writes by itself."""
    name = eqn.primitive.name
    ins, outs = [x.aval for x in eqn.invars], [x.aval for x in eqn.outvars]
    if name in ("transpose", "stop_gradient", "copy", "squeeze"):
        return 0
    if name in ("slice", "dynamic_slice"):
        return 2 * _nbytes(outs)
    if name == "integer_pow":
        return 3 * _nbytes(outs) * max(_products(abs(eqn.params["y"])), 1)
    if name == "gather":
        return 2 * _nbytes(outs) + _nbytes(ins[1:2])
    if name == "dynamic_update_slice":
        return 2 * _nbytes(ins[1:2])
    if name.startswith("scatter"):
        return 3 * _nbytes(ins[2:]) + _nbytes(ins[1:2])
    total = _nbytes(ins) + _nbytes(outs)
    if outs and outs[0].ndim and len(ins) > 1 and name not in ("pad", "dot_general"):
        # A scalar among arrays is spread over their shape first.
        total += sum(2 * outs[0].size * aval.dtype.itemsize for aval in ins if not aval.ndim)
    return total + _initial(eqn)


def _reduces(eqn: JaxprEqn) -> bool:
    name = eqn.primitive.name
    return name.startswith(("reduce_", "arg", "cum")) and name != "reduce_precision"


def _initial(eqn: JaxprEqn) -> int:
    """The bytes of the value at which a reduction begins."""
    return eqn.outvars[0].aval.dtype.itemsize if _reduces(eqn) else 0


def _of_jaxpr(jaxpr: ClosedJaxpr | Jaxpr, moved: Callable[[ClosedJaxpr | Jaxpr], float]) -> Cost:
    total = Cost()
    for eqn in jaxpr.eqns:
        total = total.plus(_of_equation(eqn, moved))
    return total._replace(bytes=moved(jaxpr))


def _of_equation(eqn: JaxprEqn, moved: Callable[[ClosedJaxpr | Jaxpr], float]) -> Cost:
    inner = [_of_jaxpr(sub, moved) for sub in subjaxprs(eqn.params)]
    if not inner or eqn.primitive.flops is not None:
        return Cost(*_work(eqn))
    if eqn.primitive.name == "cond":
        return Cost(*(max(counts) for counts in zip(*inner, strict=True)))
    # A loop with a counter compares it and adds to it.
    total = Cost(2.0 if eqn.primitive.name == "scan" else 0.0)
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
    results = {x for x in _outvars(jaxpr) if isinstance(x, Var)}
    users: dict[Var, set[int]] = {}
    members: dict[int, list[JaxprEqn]] = {}
    for number in reversed(range(len(eqns))):
        eqn = eqns[number]
        wanted = set().union(*(users.get(x, ()) for x in eqn.outvars))
        group = next(iter(wanted), number)
        if (len(wanted) != 1 or results.intersection(eqn.outvars) or _reduces(eqn)
                or eqn.primitive.name in _ALONE
                or eqns[group].primitive.name in _ALONE and eqn.primitive.name not in _VIEWS):
            group = number
        members.setdefault(group, []).append(eqn)
        for x in eqn.invars:
            if isinstance(x, Var):
                users.setdefault(x, set()).add(group)
    return [_group(eqns[number], members[number]) for number in sorted(members)]


def _group(last: JaxprEqn, eqns: list[JaxprEqn]) -> _Group:
    made = {x for eqn in eqns for x in eqn.outvars}
    read = [x for eqn in eqns for x in eqn.invars if isinstance(x, Var) and x not in made]
    writes = set(last.outvars)
    name = last.primitive.name
    if len(eqns) == 1 and name in ("slice", "dynamic_slice"):
        moved = _moved(last)
    else:
        # A fused operation reads each operand once.
        moved = (_nbytes(x.aval for x in (read if name in _ALONE else set(read)))
                 + _nbytes(x.aval for x in writes) + sum(map(_initial, eqns))
                 + sum(map(_bytes_of_fused, subjaxprs(last.params))))
    return _Group(set(read), writes, moved)


def _outvars(jaxpr: ClosedJaxpr | Jaxpr) -> Sequence[Any]:
    return (jaxpr.jaxpr).outvars


def _bytes_of_fused(jaxpr: ClosedJaxpr | Jaxpr) -> float:
    if not jaxpr.eqns:
        return 2 * _nbytes(x.aval for x in _outvars(jaxpr))       # copied
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
    return _nbytes(avals) + (_POINTER * len(avals) if len(avals) > 1 else 0)


def argument_bytes(closed: ClosedJaxpr) -> int:
    """The bytes of the arguments of a simplified program that it uses."""
    used = {x for eqn in closed.eqns for x in eqn.invars if isinstance(x, Var)}
    used.update(x for x in closed.jaxpr.outvars if isinstance(x, Var))
    return _nbytes(x.aval for x in closed.jaxpr.invars if x in used)


def temporary_bytes(closed: ClosedJaxpr) -> int:
    """The largest sum of values between the groups of a simplified program that are alive at a
    time."""
    groups = _groups(closed)
    results = set(closed.jaxpr.outvars)
    made = {x for group in groups for x in group.writes} - results
    last = {x: number for number, group in enumerate(groups) for x in group.reads & made}
    alive = peak = 0
    for number, group in enumerate(groups):
        alive += _nbytes(x.aval for x in group.writes if x in last)
        peak = max(peak, alive)
        alive -= _nbytes(x.aval for x in group.reads & made if last[x] == number)
    return peak
