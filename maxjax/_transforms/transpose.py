"""Transposition: from the linear jaxpr of tangents to the linear map of cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base.errors import JaxStackTraceBeforeTransformation, ShardingTypeError
from maxjax._base.meshes import use as mesh_use
from maxjax._base.shardings import NamedSharding
from maxjax._base.source import kept_source_lines, scopes
from maxjax._ir.evaluate import apply_equation, literal_operand
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, derived
from maxjax._ir.liveness import dependent_equations, variables
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import RefsTouched
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.rules import Linear
from maxjax._primitives.sharding import freed, reshard_p
from maxjax._transforms.jvp import instantiate

# The cotangent of a primitive's one result, or those of all its results.
Cotangents = Array | None | Sequence[Array | None]


def backward_pass(jaxpr: Jaxpr, consts: Sequence[Value], cotangents: Sequence[Array | None],
                  wanted: Sequence[bool] | None = None, totals: Sequence[Array | None] = ()
                  ) -> list[Any]:
    """Cotangents of the inputs of a linear jaxpr (None where zero).

    The rule of a custom_vjp is applied wherever another's cotangents arrive, zero or not: it may
    return what does not depend on them. Only what is not used by any result gets none.

    Args:
      jaxpr: each equation depends on the inputs.
      consts: the values of its constants: operands that are known, as literals are.
      wanted: the inputs whose cotangents are asked for; those of the others may be anything.
      totals: to what the cotangents of the first inputs are added.
    """
    asked: set[Var] | None = None      # what depends on those inputs
    if wanted is not None and not all(wanted):
        asked = {var for var, flag in zip(jaxpr.invars, wanted, strict=True) if flag}
        dependent_equations(jaxpr.eqns, asked)
    known: dict[Atom, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    accumulated: dict[Atom, Any] = dict(zip(jaxpr.invars, totals, strict=False))
    zero: set[Atom] = set()     # those at which nothing but zeros has arrived, and some has
    for var, cotangent in zip(jaxpr.outvars, cotangents, strict=True):
        if cotangent is not None:
            accumulated[var] = add_tangents(accumulated.get(var), cotangent)
    with kept_source_lines():
        _transpose_equations(jaxpr.eqns, known, accumulated, zero, asked)
    # None stands for the cotangent of an input that no result depends on.
    return [accumulated[var] if var in accumulated
            else instantiate(None, var.aval.cotangent()) if var in zero else None
            for var in jaxpr.invars]


def _transpose_equations(eqns: Sequence[JaxprEqn], known: dict[Atom, Value],
                         accumulated: dict[Atom, Array], zero: set[Atom], asked: set[Var] | None
                         ) -> None:
    """Adds to the cotangents of the equations' operands, from the last equation to the first."""
    outer = scopes.source_line
    for eqn in reversed(eqns):
        if asked is not None and asked.isdisjoint(eqn.outvars):
            continue
        # Equations that the rule traces get the source line of this one.
        scopes.source_line = (outer if eqn.source is None
                              else eqn.source.inside(scopes.names) if scopes.names else eqn.source)
        given = [accumulated.pop(var, None) for var in eqn.outvars]
        asks = eqn.primitive.derivative.zero_is_cotangent
        if all(cotangent is None for cotangent in given):
            if zero.isdisjoint(eqn.outvars):
                continue
            if not asks:
                zero.update(atom for atom in eqn.invars
                            if atom not in known and not isinstance(atom, Literal))
                continue
        elif zero and not asks:     # jaxprs inside would take None for a result that is not used
            given = [instantiate(None, var.aval.cotangent()) if cotangent is None and var in zero
                     else cotangent for cotangent, var in zip(given, eqn.outvars, strict=True)]
        operands = [
            known[atom] if atom in known
            else literal_operand(atom) if isinstance(atom, Literal) else Linear(atom.aval)
            for atom in eqn.invars]
        try:
            transposed = _transpose(
                eqn, given if eqn.primitive.multiple_results else given[0], operands)
        except FloatingPointError as error:      # of debug_nans
            raise error from _before_transformation(error, eqn)
        for atom, operand, cotangent in zip(eqn.invars, operands, transposed, strict=True):
            if type(operand) is not Linear:
                continue
            if cotangent is not None:
                accumulated[atom] = add_tangents(accumulated.get(atom), cotangent)
            elif asks:
                zero.add(atom)


def of_types(cotangents: Sequence[Array | None], avals: Sequence[ShapedArray]
             ) -> list[Array | None]:
    """The cotangents in the dtypes of values of those types, as a jaxpr declares its inputs: rules
    of the user's may give cotangents of another."""
    wanted = [aval.cotangent().dtype for aval in avals]
    return [cotangent if cotangent is None or cotangent.dtype == dtype
            else convert_element_type(cotangent, dtype)
            for cotangent, dtype in zip(cotangents, wanted, strict=True)]


def _transpose(eqn: JaxprEqn, cotangent: Cotangents, operands: list[Value | Linear]
               ) -> Sequence[Any]:
    rule = eqn.primitive.transpose
    if rule is None:
        raise missing_transpose(eqn.primitive)
    if mesh_use.ever_set and any(
            x.aval.mesh_spec is not None for x in operands if hasattr(x, "aval")):
        return _transpose_on_mesh(eqn, cotangent, operands)
    return rule(cotangent, *operands, **eqn.params)


def _before_transformation(error: Exception, eqn: JaxprEqn) -> Exception | None:
    """The cause of an error in the backward pass: the line of what was differentiated."""
    if eqn.source is None:
        return error.__cause__      # type: ignore[return-value]
    return JaxStackTraceBeforeTransformation(
        f"{type(error).__name__}: {error}\n\nIt was raised by the derivative of the operation "
        f"{eqn.primitive.name} on line {eqn.source}.")


def _on_mesh(transposed: Sequence[Array | None], operands: Sequence[Value | Linear]) -> list[Any]:
    """Each cotangent, with the sharding that its operand's type says."""
    result = []
    for cotangent, operand in zip(transposed, operands, strict=True):
        if cotangent is not None and type(operand) is Linear and hasattr(cotangent, "aval"):
            wanted = operand.aval.mesh_spec
            if operand.aval.cotangent().manual_axis_type != cotangent.aval.manual_axis_type:
                raise ValueError(
                    f"Expected cotangent type {operand.aval.cotangent().str_short()} but got "
                    f"{cotangent.aval.str_short()}")
            if wanted is not None and wanted != cotangent.aval.mesh_spec:
                cotangent = reshard_p.bind(
                    cotangent, dst_sharding=NamedSharding(wanted[0], wanted[1].to_ct_spec()))
        result.append(cotangent)
    return result


def _transpose_on_mesh(eqn: JaxprEqn, cotangent: Any, operands: list[Value | Linear]
                       ) -> list[Any]:
    """Applies the rule where types mention a mesh; if it refuses them, without the mesh."""
    rule: Any = eqn.primitive.transpose
    try:
        transposed = rule(cotangent, *operands, **eqn.params)
    except ShardingTypeError:
        cotangent = (list(map(freed, cotangent)) if eqn.primitive.multiple_results
                     else freed(cotangent))
        transposed = rule(cotangent, *[
            Linear(x.aval.update(mesh_spec=None)) if type(x) is Linear else freed(x)
            for x in operands], **eqn.params)
    return _on_mesh(transposed, operands)


def missing_transpose(primitive: Primitive) -> NotImplementedError:
    return NotImplementedError("Transpose rule (for reverse-mode differentiation) for "
                               f"'{primitive.name}' not implemented")


def transpose_partly(jaxpr: Jaxpr, consts: Sequence[Value], operands: Sequence[Value | Linear],
                     cotangents: Sequence[Array | None], totals: Sequence[Array | None] = ()
                     ) -> list[Any]:
    """Cotangents of the ``Linear`` operands of a jaxpr (None where zero).

    What depends on known operands alone runs forward; the rest is a linear jaxpr of constants.

    Args:
      totals: to what the cotangents of the first ``Linear`` operands are added.
    """
    known: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    inputs: list[Var] = []
    for var, operand in zip(jaxpr.invars, operands, strict=True):
        if type(operand) is Linear:
            inputs.append(var)
        else:
            known[var] = operand
    eqns = []
    outer = scopes.source_line
    for eqn in jaxpr.eqns:
        if known.keys() >= set(variables(eqn.invars)):
            if outer.__class__ is not str:
                scopes.source_line = eqn.source
            results = apply_equation(eqn, [
                literal_operand(atom) if isinstance(atom, Literal) else known[atom]
                for atom in eqn.invars])
            known.update(zip(eqn.outvars, results, strict=True))
        else:
            eqns.append(eqn)
    scopes.source_line = outer
    outputs = [(atom, cotangent) for atom, cotangent in zip(jaxpr.outvars, cotangents, strict=True)
               if not isinstance(atom, Literal) and atom not in known]
    linear = Jaxpr(list(known), inputs, [var for var, _ in outputs], eqns)
    return backward_pass(linear, list(known.values()), [cotangent for _, cotangent in outputs],
                         totals=totals)


def transpose_jaxpr(closed: ClosedJaxpr, is_linear: tuple[bool, ...],
                    has_cotangent: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The jaxpr (known operands, cotangents) -> cotangents of the linear operands, with which of
    the linear operands have one.

    Raises:
      RefsTouched: the backward rule of a custom_vjp uses array references.
    """
    result, nonzero = transpose_with_refs(closed, is_linear, has_cotangent)
    if result.refs:
        raise RefsTouched("the backward pass of a primitive", result.refs)
    return result, nonzero


@derived
def transpose_with_refs(
        closed: ClosedJaxpr, is_linear: tuple[bool, ...],
        has_cotangent: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """``transpose_jaxpr`` for callers that deal with the ``refs`` of the result."""
    known_avals = [aval for aval, linear in zip(closed.in_avals, is_linear, strict=True)
                   if not linear]
    cotangent_avals = [aval.cotangent() for aval, given in zip(
        closed.out_avals, has_cotangent, strict=True) if given]
    nonzero: list[bool] = []

    def function(*args: Array) -> list[Any]:
        known = iter(args[:len(known_avals)])
        given = iter(args[len(known_avals):])
        operands = [Linear(aval) if linear else next(known)
                    for aval, linear in zip(closed.in_avals, is_linear, strict=True)]
        cotangents = [next(given) if has else None for has in has_cotangent]
        results = transpose_partly(closed.jaxpr, closed.consts, operands, cotangents)
        nonzero.extend(result is not None for result in results)
        return [result for result in results if result is not None]

    result = trace_to_jaxpr(function, [*known_avals, *cotangent_avals], closed.jaxpr.debug_info,
                            with_refs=True)
    return result, tuple(nonzero)
