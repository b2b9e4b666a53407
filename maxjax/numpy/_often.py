"""Operations that stand for several, and how they run when they come very often.

They are interpreted: that takes a microsecond or more for each equation. As programs they become
native, which takes a few microseconds for all. A call's result must not depend on how many calls
there were before, so they become programs only where both compute the same bits: what is computed
exactly, rounded to the nearest number, or moved (docs/numerics.md, which also tells of subnormal
numbers). The order of a sum is not the same, nor are elementary functions, nor is the sign of a
zero that is the larger of zeros of both signs.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any

import numpy as np

from maxjax._base import config, dtypes
from maxjax._base.ownership import locked
from maxjax._ir.interpret import interpreter, runner
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from maxjax._ir.liveness import variables
from maxjax._primitives.arithmetic import div_p
from maxjax._primitives.lapack import stack_size
from maxjax._runtime.program import Program, program_of

# A program takes a few microseconds to be called, and as long as hundreds of calls to be planned.
_LEAST_EQUATIONS = 6
_OFTEN = 32
# What is computed from constants alone is kept, up to this size.
_MOST_BYTES = 8 << 10

_REAL = frozenset((dtypes.bool_, *dtypes.INTS, dtypes.float32, dtypes.float64))

_COMPARISONS = frozenset(("eq", "ge", "gt", "le", "lt", "ne"))
_EXTREMES = frozenset(("max", "min"))
_EXACT = _COMPARISONS | frozenset((
    "abs", "add", "and", "argmax", "argmin", "broadcast_in_dim", "ceil", "concatenate",
    "convert_element_type", "div", "dynamic_slice", "floor", "gather", "iota", "is_finite",
    "lu_pivots_to_permutation", "mul", "neg", "not", "or", "pad", "polynomial", "reduce_and",
    "reduce_or", "rem", "reshape", "rev", "round", "select_n", "sign", "slice", "sort", "sqrt",
    "square", "squeeze", "sub", "transpose", "xor",
    # Functions with a NumPy rule of their own that moves elements or finds positions.
    "whole_digitize", "whole_searchsorted", "whole_take", "whole_take_along_axis",
    "whole_triangle"))
# Of integers any order gives the same.
_OF_INTEGERS = frozenset((
    "cummax", "cummin", "cumprod", "cumsum", "max", "min", "reduce_max", "reduce_min",
    "reduce_prod", "reduce_sum"))
# Of one matrix both tiers call the same routine of LAPACK.
_FACTORS = frozenset(("lu", "qr"))


def function_of(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A function of NumPy arrays that computes a simplified jaxpr, outside programs."""
    interpreted = interpreter(_with_known(closed))
    if len(closed.jaxpr.eqns) < _LEAST_EQUATIONS or not has_same_bits(closed):
        return interpreted
    program: Program | None = None
    calls = 0

    def run(*arrays: Any) -> list[Any]:
        nonlocal program, calls
        if program is None:
            calls += 1
            if calls == _OFTEN:
                made = program_of(closed)
                # Programs have products with reciprocals where these are rounded otherwise.
                if _quotients(made.closed) == _quotients(closed):
                    program = made
        elif config.compile_mode.value == "auto":
            return program.run([*arrays])
        return interpreted(*arrays)

    return run


def _with_known(closed: ClosedJaxpr) -> ClosedJaxpr:
    """With what is computed from constants alone as constants, but for results: these are arrays of
    their own each time."""
    known: dict[Var, np.ndarray] = {}
    eqns = []
    results = {*closed.jaxpr.outvars}
    with np.errstate(all="ignore"):
        for eqn in closed.jaxpr.eqns:
            if (all(isinstance(atom, Literal) or atom in known for atom in eqn.invars)
                    and all(var not in results and type(var.aval.nbytes) is int
                            and var.aval.nbytes <= _MOST_BYTES for var in eqn.outvars)):
                found = runner(eqn)(*[
                    atom.val if isinstance(atom, Literal) else known[atom] for atom in eqn.invars])
                for var, value in zip(eqn.outvars, found if eqn.primitive.multiple_results
                                      else [found], strict=True):
                    known[var] = locked(np.asarray(value))
            else:
                eqns.append(eqn)
    if not known:
        return closed
    read = {var for eqn in eqns for var in variables(eqn.invars)}
    kept = [var for var in known if var in read]
    jaxpr = closed.jaxpr
    return ClosedJaxpr(jaxpr.replace(constvars=[*jaxpr.constvars, *kept], eqns=eqns),
                       [*closed.consts, *[known[var] for var in kept]])


def has_same_bits(closed: ClosedJaxpr) -> bool:
    """Whether a simplified program is known to compute the same bits in all tiers."""
    # Values of which it makes a difference whether a zero is negative; readers come first.
    signed: set[Atom] = {*closed.jaxpr.outvars}
    for eqn in reversed(closed.jaxpr.eqns):
        if not _is_exact(eqn, signed):
            return False
        if not _ignores_signs(eqn, signed):
            signed.update(variables(eqn.invars))
    return True


def _is_exact(eqn: JaxprEqn, signed: Container[Atom]) -> bool:
    name = eqn.primitive.name
    given, results = [atom.aval for atom in eqn.invars], [var.aval for var in eqn.outvars]
    if name in _FACTORS:
        return stack_size(given[0]) == 1
    if not all(aval.dtype in _REAL for aval in (*given, *results)):
        return False
    of_integers = all(dtypes.is_integer(aval.dtype) for aval in given)
    return (name in _EXACT or name in _OF_INTEGERS and of_integers
            or name == "cumsum" and given[0].dtype == dtypes.float32     # in float64
            or name in _EXTREMES and eqn.outvars[0] not in signed)


def _ignores_signs(eqn: JaxprEqn, signed: Container[Atom]) -> bool:
    """Whether an equation's results that matter are the same for zeros of either sign."""
    name, result = eqn.primitive.name, eqn.outvars[0]
    return name in _COMPARISONS or name in _EXTREMES and result not in signed or (
        name == "convert_element_type"
        and (not dtypes.is_inexact(result.aval.dtype) or result not in signed))


def _quotients(closed: ClosedJaxpr) -> int:
    return sum(eqn.primitive is div_p for eqn in closed.jaxpr.eqns)
