"""Checks that a jaxpr is well formed. Run in tests after every pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import InternalError
from maxjax._ir.contract import type_problem
from maxjax._ir.control_flow import Structure, structure_of
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from maxjax._ir.primitive import abstract_results
from maxjax._ir.printing import unruled_text
from maxjax._ir.trace import aval_of
from maxjax._ir.types import ShapedArray, match_up_to_weak_type


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Checks definitions, types and literals, in sub-jaxprs too.

    Raises:
      InternalError: a variable is used before it is defined or defined twice, a type is not what
        the primitive's rule says, or a literal is not a scalar of its dtype. Names the equation.
    """
    if isinstance(jaxpr, ClosedJaxpr):
        _check_constants(jaxpr)
        jaxpr = jaxpr.jaxpr
    defined: set[Var] = set()

    def define(var: object, where: object) -> None:
        if not isinstance(var, Var):
            raise InternalError(f"{where} defines {var!r}, which is no variable")
        if var in defined:
            raise InternalError(f"{where} defines {var!r} a second time")
        defined.add(var)

    def read(atom: Atom, where: object) -> None:
        if isinstance(atom, Literal):
            _check_literal(atom, where)
        elif not isinstance(atom, Var):
            raise InternalError(f"{where} uses {atom!r}, which is no variable or literal")
        elif atom not in defined:
            raise InternalError(f"{where} uses {atom!r} before it is defined")

    for var in (*jaxpr.constvars, *jaxpr.invars):
        define(var, f"the head of the jaxpr of {jaxpr.debug_info or 'a function'}")
    for position, eqn in enumerate(jaxpr.eqns):
        where = _Place(position, eqn)
        for atom in eqn.invars:
            read(atom, where)
        for inner in subjaxprs(eqn.params):
            try:
                check_jaxpr(inner)
            except InternalError as error:
                raise InternalError(f"in {where}: {error.problem}") from None
        _check_types(eqn, where)
        for var in eqn.outvars:
            define(var, where)
    for atom in jaxpr.outvars:
        read(atom, f"the result of the jaxpr of {jaxpr.debug_info or 'a function'}")


def check_operands(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Checks that the operands are of dtypes that their primitives take, in sub-jaxprs too.

    Operations check it before they bind a primitive, whose rules rely on it: this is for programs
    that operations did not write.

    Raises:
      InternalError: an operand is of another dtype. Names the equation.
    """
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    for position, eqn in enumerate(jaxpr.eqns):
        primitive = eqn.primitive
        accepts, same_dtypes = primitive.values.accepts, primitive.values.same_dtypes
        kinds = [atom.aval.dtype for atom in eqn.invars]
        wrong = [kind for kind in kinds[same_dtypes or slice(None)]
                 if accepts is not None and kind not in accepts]
        if wrong:
            raise InternalError(f"{_Place(position, eqn)} has an operand of dtype {wrong[0]}, "
                                f"which {primitive.name} does not take")
        if same_dtypes is not None and len(set(kinds[same_dtypes])) > 1:
            raise InternalError(f"{_Place(position, eqn)} has operands of different dtypes: "
                                f"{', '.join(map(str, kinds))}")
        if primitive.inner.bodies is not None or primitive.inner.control_flow is not None:
            _check_bodies(eqn, _Place(position, eqn))
        for inner in subjaxprs(eqn.params):
            check_operands(inner)


def check_contracts(jaxpr: Jaxpr | ClosedJaxpr, depth: int = 0) -> None:
    """Checks that each application is given what its primitive's contract asks for, that there can
    be values of each type, and that jaxprs are not nested too deep, in sub-jaxprs too.

    Operations see to it before they bind a primitive, whose rules rely on it: this is for programs
    that operations did not write, and comes before the other checks, which ask rules.

    Raises:
      InternalError: an application violates its contract. Names the equation and the parameter.
    """
    if depth > MOST_NESTED:
        raise InternalError(f"its jaxprs are nested deeper than {MOST_NESTED}")
    if isinstance(jaxpr, ClosedJaxpr):
        jaxpr = jaxpr.jaxpr
    _check_values((*jaxpr.constvars, *jaxpr.invars), "the head of a jaxpr")
    for position, eqn in enumerate(jaxpr.eqns):
        where, primitive = _Place(position, eqn), eqn.primitive
        _check_values((*eqn.invars, *eqn.outvars), where)
        if primitive.contract is None:
            raise InternalError(f"{where} has the primitive {primitive.name}, which stands in no "
                                "program that is read")
        problem = primitive.contract.problem([atom.aval for atom in eqn.invars], eqn.params)
        if problem is not None:
            raise InternalError(f"{where} is no application of {primitive.name}: {problem}")
        for inner in subjaxprs(eqn.params):
            check_contracts(inner, depth + 1)


# A program of loops and branches has a few levels; Python's own stack ends at some hundred.
MOST_NESTED = 40


def _check_values(atoms: Sequence[Atom], where: object) -> None:
    for atom in atoms:
        problem = type_problem(atom.aval)
        if problem is not None:
            raise InternalError(f"{where} has a value of a type that cannot be, {atom.aval}: "
                                f"{problem}")


def _check_bodies(eqn: JaxprEqn, where: object) -> None:
    avals = [atom.aval for atom in eqn.invars]
    try:
        bodies = (_bodies(structure_of(eqn), avals) if eqn.primitive.inner.bodies is None
                  else eqn.primitive.inner.bodies(*avals, **eqn.params))
    except Exception as error:
        raise InternalError(f"{where} has parameters of another kind: {error}") from error
    for body, given, wanted in bodies:
        if not isinstance(body, ClosedJaxpr):
            raise InternalError(f"{where} has {body!r} for a jaxpr")
        for what, have, want in (("operands", given, body.in_avals),
                                 ("results", body.out_avals, wanted)):
            if want is not None and (len(have) != len(want) or not all(
                    map(match_up_to_weak_type, have, want))):
                raise InternalError(f"{where} has a jaxpr with {what} of other types: "
                                    f"{list(have)} for {list(want)}")


def _bodies(flow: Structure, avals: Sequence[ShapedArray]) -> list[tuple[Any, ...]]:
    """The jaxprs of a loop or a choice, with the types of each one's operands and results."""
    scanned = [avals[number] for number in flow.scanned]
    if any(aval.shape[0] != flow.length for aval in scanned):
        raise ValueError(f"not all of {scanned} are of length {flow.length}")
    carries = [avals[number] for number in flow.carries]
    outs = flow.producers[0].jaxpr.out_avals
    wanted = [*carries, *outs[len(carries):]]
    return [(body.jaxpr, [flow.inside(number, avals[number]) for number in body.takes],
             [ShapedArray((), dtypes.bool_)] if body.decides else wanted) for body in flow.bodies]


def _check_types(eqn: JaxprEqn, where: object) -> None:
    primitive = eqn.primitive
    try:
        expected = abstract_results(
            primitive, tuple([atom.aval for atom in eqn.invars]), eqn.params)
    except Exception as error:
        raise InternalError(
            f"{where} is refused by the rule of {primitive.name}: {error}") from error
    found = tuple(var.aval for var in eqn.outvars)
    if len(expected) != len(found):
        raise InternalError(f"{where} has {len(found)} results instead of {len(expected)}")
    for aval, want in zip(found, expected, strict=True):
        if not eqn.invars:      # it varies along the manual axes around the jaxpr
            want = want.update(vma=aval.vma)
        if aval is not want:
            raise InternalError(f"{where} has a result of type {aval} where the rule says {want}")


def _check_literal(literal: Literal, where: object) -> None:
    aval = literal.aval
    shape = np.shape(literal.val)
    dtype = getattr(literal.val, "dtype", None)
    if aval.shape or shape:
        raise InternalError(f"{where} has a literal of shape {aval.shape or shape}, not a scalar")
    if dtype != dtypes.physical(aval.dtype):
        raise InternalError(f"{where} has a literal of dtype {dtype} for the type {aval}")


def _check_constants(closed: ClosedJaxpr) -> None:
    variables = closed.jaxpr.constvars
    if len(variables) != len(closed.consts):
        raise InternalError(
            f"a jaxpr of {len(variables)} constants holds the values of {len(closed.consts)}")
    for var, value in zip(variables, closed.consts, strict=True):
        aval: ShapedArray = aval_of(value)
        if not match_up_to_weak_type(aval, var.aval):
            raise InternalError(f"the constant of type {var.aval} has a value of type {aval}")


class _Place(NamedTuple):
    """Where an equation stands, printed only if an error says so: printing takes longer than all of
    the checks."""

    position: int
    eqn: JaxprEqn

    def __str__(self) -> str:
        # What is refused may be of a kind that rules would loop over for ever.
        text = " ".join(unruled_text(self.eqn).split())
        text = text if len(text) <= 200 else text[:200] + "..."
        return f"equation {self.position} ({text})"
