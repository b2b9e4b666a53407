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
from maxjax._primitives.arithmetic import (
    abs_p,
    add_p,
    ceil_p,
    div_p,
    floor_p,
    is_finite_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    rem_p,
    round_p,
    sign_p,
    square_p,
    sub_p,
)
from maxjax._primitives.broadcasting import broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.comparison import (
    and_p,
    eq_p,
    ge_p,
    gt_p,
    le_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    select_n_p,
    xor_p,
)
from maxjax._primitives.convert import convert_element_type_p
from maxjax._primitives.creation import iota_p
from maxjax._primitives.cumulative import cummax_p, cummin_p, cumprod_p, cumsum_p
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.joining import concatenate_p
from maxjax._primitives.lapack import stack_size
from maxjax._primitives.layout import reshape_p, rev_p, squeeze_p, transpose_p
from maxjax._primitives.linalg_factors import lu_p, lu_pivots_to_permutation_p, qr_p
from maxjax._primitives.polynomial import polynomial_p
from maxjax._primitives.reduction import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
)
from maxjax._primitives.slicing import pad_p, slice_p
from maxjax._primitives.sorting import sort_p
from maxjax._primitives.transcendental import sqrt_p
from maxjax._runtime.program import Program, program_of

# A program takes a few microseconds to be called, and as long as hundreds of calls to be planned.
_LEAST_EQUATIONS = 6
_OFTEN = 32
# What is computed from constants alone is kept, up to this size.
_MOST_BYTES = 8 << 10

_REAL = frozenset((dtypes.bool_, *dtypes.INTS, dtypes.float32, dtypes.float64))

_COMPARISONS = frozenset((eq_p, ge_p, gt_p, le_p, lt_p, ne_p))
_EXTREMES = frozenset((max_p, min_p))
# Of integers any order gives the same.
_OF_INTEGERS = frozenset((
    cummax_p, cummin_p, cumprod_p, cumsum_p, max_p, min_p, reduce_max_p, reduce_min_p,
    reduce_prod_p, reduce_sum_p))
# Of one matrix both tiers call the same routine of LAPACK.
_FACTORS = frozenset((lu_p, qr_p))
# What is added to these has a NumPy rule that moves elements or finds positions.
exact = {
    *_COMPARISONS, abs_p, add_p, and_p, argmax_p, argmin_p, broadcast_in_dim_p, ceil_p,
    concatenate_p, convert_element_type_p, div_p, dynamic_slice_p, floor_p, gather_p, iota_p,
    is_finite_p, lu_pivots_to_permutation_p, mul_p, neg_p, not_p, or_p, pad_p, polynomial_p,
    reduce_and_p, reduce_or_p, rem_p, reshape_p, rev_p, round_p, select_n_p, sign_p, slice_p,
    sort_p, sqrt_p, square_p, squeeze_p, sub_p, transpose_p, xor_p}


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
    primitive = eqn.primitive
    given, results = [atom.aval for atom in eqn.invars], [var.aval for var in eqn.outvars]
    if primitive in _FACTORS:
        return stack_size(given[0]) == 1
    if not all(aval.dtype in _REAL for aval in (*given, *results)):
        return False
    of_integers = all(dtypes.is_integer(aval.dtype) for aval in given)
    return (primitive in exact or primitive in _OF_INTEGERS and of_integers
            or primitive is cumsum_p and given[0].dtype == dtypes.float32     # in float64
            or primitive in _EXTREMES and eqn.outvars[0] not in signed)


def _ignores_signs(eqn: JaxprEqn, signed: Container[Atom]) -> bool:
    """Whether an equation's results that matter are the same for zeros of either sign."""
    primitive, result = eqn.primitive, eqn.outvars[0]
    return primitive in _COMPARISONS or primitive in _EXTREMES and result not in signed or (
        primitive is convert_element_type_p
        and (not dtypes.is_inexact(result.aval.dtype) or result not in signed))


def _quotients(closed: ClosedJaxpr) -> int:
    return sum(eqn.primitive is div_p for eqn in closed.jaxpr.eqns)
