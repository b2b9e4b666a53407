"""Passes that make a jaxpr smaller without changing what it computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.source import NO_NAMES
from maxjax._ir.control_flow import bodies_of, with_bodies
from maxjax._ir.evaluate import eval_jaxpr, itself
from maxjax._ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    derived,
    note,
    replaced,
)
from maxjax._ir.liveness import eliminate_dead_code, has_effects
from maxjax._ir.primitive import Primitive, op_spec
from maxjax._ir.typing import Value
from maxjax._primitives.arithmetic import add_p, div_p, mul_p, neg_p, sub_p
from maxjax._primitives.broadcasting import broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.collective import pmax_p, pmin_p, psum_p
from maxjax._primitives.comparison import select_n_p
from maxjax._primitives.convert import stop_gradient_p
from maxjax._primitives.identities import name_p, optimization_barrier_p
from maxjax._primitives.layout import reshape_p, squeeze_p
from maxjax._primitives.reduction import reduce_max_p, reduce_min_p
from maxjax._transforms.hoist import hoist_invariants
from maxjax._transforms.literals import literals_inside
from maxjax._transforms.masked_products import select_products
from maxjax._transforms.masked_updates import mask_updates
from maxjax._transforms.orientation import orient_products
from maxjax._transforms.regular_windows import cut_regularly
from maxjax._transforms.sums_of_products import multiply_matrices

# An equation in a better form, or the atom that it comes to.
Rewritten = JaxprEqn | Atom


def called(eqn: JaxprEqn) -> Any:
    """The jaxpr that an equation only calls; None for a call that is inlined late."""
    return None if eqn.primitive.inner.inlined_late else eqn.primitive.called(eqn.params)


def _called_late(eqn: JaxprEqn) -> Any:
    return eqn.primitive.called(eqn.params) if eqn.primitive.inner.inlined_late else None


def called_by(*primitives: Primitive) -> Callable[[JaxprEqn], Any]:
    """``called``, but only of these primitives."""
    return lambda eqn: called(eqn) if eqn.primitive in primitives else None


def expansion(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """The jaxpr of an equation that stands for several operations until it is compiled."""
    expand = eqn.primitive.inner.expand
    return None if expand is None else expand([atom.aval for atom in eqn.invars], eqn.params)


def inline_calls(closed: ClosedJaxpr,
                 jaxpr_of: Callable[[JaxprEqn], ClosedJaxpr | None] = called,
                 stays: Callable[[JaxprEqn], bool] | None = None) -> ClosedJaxpr:
    """Replaces calls by the equations that they call. Afterwards no two variables are shared.

    Args:
      jaxpr_of: gives the jaxpr that replaces an equation; None where the equation stays.
      stays: of calls that are not replaced.
    """
    if stays is not None:
        early = _inlined(closed, lambda eqn: None if stays(eqn) else called(eqn))
        late = eliminate_dead_code(early)
        if any(eqn.primitive.inner.inlined_late for eqn in late.jaxpr.eqns):
            return inline_calls(_inlined(late, _called_late), stays=stays)
        return early
    inlined = _inlined(closed, jaxpr_of)
    if jaxpr_of is called and any(eqn.primitive.inner.inlined_late for eqn in inlined.jaxpr.eqns):
        return inline_calls(_inlined(eliminate_dead_code(inlined), _called_late))
    return inlined


def inline_named(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inlines calls, also in bodies; the scopes of equations then tell what they were called in.

    >>> f = jax.jit(lambda x: jax.jit(jax.named_scope("layer")(jnp.sin))(x))
    >>> "jit(sin)/layer/sin" in f.lower(1.0).as_text(debug_info=True)
    True
    """
    inlined = _inlined(closed, called, named=True)
    if any(eqn.primitive.inner.inlined_late for eqn in inlined.jaxpr.eqns):
        return inline_named(_inlined(eliminate_dead_code(inlined), _called_late, named=True))
    jaxpr = inlined.jaxpr
    eqns = [eqn.replace(params=with_bodies(eqn, map(inline_named, bodies_of(eqn))))
            if any(True for _ in bodies_of(eqn)) else eqn for eqn in jaxpr.eqns]
    return ClosedJaxpr(Jaxpr(jaxpr.constvars, jaxpr.invars, jaxpr.outvars, eqns, jaxpr.debug_info),
                       inlined.consts, facts=inlined.facts)


def _inlined(closed: ClosedJaxpr, jaxpr_of: Callable[[JaxprEqn], ClosedJaxpr | None],
             named: bool = False) -> ClosedJaxpr:
    constants: dict[int, tuple[Var, Any]] = {}
    eqns: list[JaxprEqn] = []
    # The scopes of the calls that are being inlined, where they are to be told.
    around = NO_NAMES

    def constant(value: Value, constvar: Var) -> Var:
        known = constants.get(id(value))
        if known is None:
            known = constants[id(value)] = (Var(constvar.aval), value)
        return known[0]

    def inline(jaxpr: Jaxpr, consts: Sequence[Value], operands: Sequence[Atom]) -> list[Atom]:
        constvars = list(map(constant, consts, jaxpr.constvars))
        return eval_jaxpr(jaxpr, constvars, *operands, rule=write, literal=itself)

    def write(eqn: JaxprEqn, invars: list[Atom]) -> Sequence[Atom]:
        nonlocal around
        callee = jaxpr_of(eqn)
        if callee is not None:
            if eqn.primitive.inner.guarded is not None:
                invars = behind_barrier(eqn, invars, eqn.primitive.inner.guarded(eqn))
            inner, inner_consts = ((callee.jaxpr, callee.consts)
                                   if isinstance(callee, ClosedJaxpr) else (callee, ()))
            if not named:
                return inline(inner, inner_consts, invars)
            outer, scopes = around, eqn.source.scopes if eqn.source else NO_NAMES
            around = scopes.inside(outer).and_name(eqn.primitive.scope(eqn.params))
            results = inline(inner, inner_consts, invars)
            around = outer
            return results
        outvars = [type(var)(var.aval) for var in eqn.outvars]
        source = eqn.source.inside(around) if around and eqn.source else eqn.source
        eqns.append(JaxprEqn(eqn.primitive, invars, eqn.params, outvars, source))
        return outvars

    def behind_barrier(eqn: JaxprEqn, operands: list[Atom], flags: Sequence[bool]) -> list[Atom]:
        kept = [atom for atom, flag in zip(operands, flags, strict=True)
                if flag and isinstance(atom, Var)]
        results = [Var(atom.aval) for atom in kept]
        if kept:
            eqns.append(JaxprEqn(
                optimization_barrier_p, kept, {}, results, eqn.source))
        given = iter(results)
        return [next(given) if flag and isinstance(atom, Var) else atom
                for atom, flag in zip(operands, flags, strict=True)]

    invars = [Var(var.aval) for var in closed.jaxpr.invars]
    outvars = inline(closed.jaxpr, closed.consts, invars)
    constvars = [var for var, _ in constants.values()]
    consts = [value for _, value in constants.values()]
    # Functions that call one another hold what they share until garbage is collected.
    constants.clear()
    return ClosedJaxpr(Jaxpr(constvars, invars, outvars, eqns, closed.jaxpr.debug_info), consts,
                       facts=closed.facts)


def expand(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces equations that stand for several operations by those operations."""
    if all(eqn.primitive.inner.expand is None for eqn in closed.jaxpr.eqns):
        return closed
    return simplify(inline_calls(closed, expansion))


def eliminate_common_subexpressions(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Equal equations are computed once."""
    jaxpr = closed.jaxpr
    env: dict[Var, Atom] = {}
    seen: dict[Any, list[Var]] = {}
    eqns = []

    for eqn in jaxpr.eqns:
        eqn = _with_operands(eqn, env)
        if eqn.primitive.cacheable and not has_effects(eqn):
            key = (eqn.primitive, tuple(map(_atom_key, eqn.invars)), tuple(eqn.params.items()))
            known = seen.get(key)
            if known is not None:
                env.update(zip(eqn.outvars, known, strict=True))
                continue
            seen[key] = [var if type(var) is Var else Var(var.aval) for var in eqn.outvars]
            if any(type(var) is not Var for var in eqn.outvars):
                eqn = eqn.replace(outvars=seen[key])
        eqns.append(eqn)
    return closed.replace(eqns=eqns, outvars=replaced(jaxpr.outvars, env))


def _with_operands(eqn: JaxprEqn, env: dict[Var, Atom]) -> JaxprEqn:
    """An equation with its operands replaced."""
    if any(atom in env for atom in eqn.invars):
        return eqn.replace(invars=replaced(eqn.invars, env))
    return eqn


def _atom_key(atom: Atom) -> Any:
    """By their bytes, 0.0 differs from -0.0 and a NaN equals itself."""
    if isinstance(atom, Literal):
        value = atom.val
        return (atom.aval, value.tobytes() if hasattr(value, "tobytes") else repr(value))
    return atom


def rewrite(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Exact local rewrites: each gives the same values, bit for bit.

    - an operation on literals alone is computed now;
    - a choice between one value and itself is that value;
    - a reshape of a reshape is one; one to the same shape is none;
    - a sum over dimensions of size 1 is a reshape;
    - a collective over dimensions alone is a reduction;
    - minus minus a value, a sum with zero, a product with one are that value;
    - a scalar that was broadcast for an elementwise operation joins it as a scalar.
    """
    jaxpr = closed.jaxpr
    env: dict[Var, Atom] = {}
    made: dict[Atom, JaxprEqn] = {}
    uses = Counter(atom for eqn in jaxpr.eqns for atom in eqn.invars)
    eqns = []
    for eqn in jaxpr.eqns:
        eqn = _with_operands(eqn, env)
        result = _rewritten(eqn, made, uses)
        if not isinstance(result, JaxprEqn):
            env[eqn.outvars[0]] = result
            continue
        for var in result.outvars:
            made[var] = result
        eqns.append(result)
    return closed.replace(eqns=eqns, outvars=replaced(jaxpr.outvars, env))


def _rewritten(eqn: JaxprEqn, made: dict[Atom, JaxprEqn], uses: Counter[Atom]) -> Rewritten:
    """One equation, after the rewrites that apply."""
    primitive = eqn.primitive
    if not eqn.outvars or primitive.multiple_results or has_effects(eqn):
        return eqn
    if (eqn.invars and all(isinstance(atom, Literal) for atom in eqn.invars)
            and not eqn.outvars[0].aval.shape):
        folded = _folded(eqn)
        if folded is not None:
            return folded
    if primitive.values.joins_scalars and len(eqn.invars) > 1:
        eqn = _with_scalars(eqn, made)
    rule = _RULES.get(primitive)
    return eqn if rule is None else rule(eqn, made, uses)


def _collective(eqn: JaxprEqn, made: dict[Atom, JaxprEqn], uses: Counter[Atom]) -> Rewritten:
    """A collective over dimensions alone is a reduction."""
    axes = eqn.params["axes"]
    if not all(isinstance(axis, int) for axis in axes):
        return eqn
    if not axes:
        return eqn.invars[0]
    eqn = eqn.replace(primitive=_REDUCTIONS[eqn.primitive], params={"axes": axes})
    return _sum(eqn, made, uses) if eqn.primitive is reduce_sum_p else eqn


def _sum(eqn: JaxprEqn, made: dict[Atom, JaxprEqn], uses: Counter[Atom]) -> Rewritten:
    """A sum over dimensions of size 1 is a reshape."""
    operand = eqn.invars[0]
    shape = operand.aval.shape
    if isinstance(operand, Var) and all(shape[axis] == 1 for axis in eqn.params["axes"]):
        return _shaped(_reshape(eqn, operand), made, uses)
    return eqn


def _identity(eqn: JaxprEqn, made: dict[Atom, JaxprEqn], uses: Counter[Atom]) -> Rewritten:
    """What marks a value for other passes is that value."""
    return eqn.invars[0] if eqn.invars[0].aval is eqn.outvars[0].aval else eqn


def _choice(eqn: JaxprEqn, made: dict[Atom, JaxprEqn], uses: Counter[Atom]) -> Rewritten:
    """A choice between one value and itself is that value, and so is one that is known."""
    which, first, *others = eqn.invars
    if isinstance(which, Literal) and 0 <= int(which.val) <= len(others):
        chosen = eqn.invars[1 + int(which.val)]
        if chosen.aval is eqn.outvars[0].aval:
            return chosen
    if isinstance(first, Var) and first.aval is eqn.outvars[0].aval and all(
            case is first for case in eqn.invars[2:]):
        return first
    return eqn


def _shaped(eqn: JaxprEqn, made: dict[Atom, JaxprEqn], uses: Counter[Atom]) -> Rewritten:
    """A reshape of a reshape is one; one to the same shape is none."""
    source = eqn.invars[0]
    if isinstance(source, Literal):
        return eqn
    producer = made.get(source)
    if producer is not None and producer.primitive in _RESHAPES:
        source = producer.invars[0]
    return source if source.aval is eqn.outvars[0].aval else _reshape(eqn, source)


def _negation(eqn: JaxprEqn, made: dict[Atom, JaxprEqn], uses: Counter[Atom]) -> Rewritten:
    """Minus minus a value is that value."""
    producer = made.get(eqn.invars[0])
    return producer.invars[0] if producer is not None and producer.primitive is neg_p else eqn


def _with_neutral(eqn: JaxprEqn, made: dict[Atom, JaxprEqn], uses: Counter[Atom]) -> Rewritten:
    """A sum with zero, a product with one and the like is the other operand."""
    neutral, either = _NEUTRAL[eqn.primitive]
    aval = eqn.outvars[0].aval
    if dtypes.is_opaque(aval.dtype) or dtypes.is_complex(aval.dtype):
        return eqn
    for value, other in (eqn.invars, eqn.invars[::-1]) if either else (eqn.invars,):
        if (isinstance(other, Literal) and value.aval is aval
                and _is_number(other.val, neutral, dtypes.is_inexact(aval.dtype))):
            return value
    return eqn


def _is_number(value: Value, number: float, signed: bool) -> bool:
    """Whether a literal is this number; ``signed``: with the same sign if it is zero."""
    return bool(value == number and (
        not signed or np.signbit(np.float64(value)) == np.signbit(number)))


# Collectives over dimensions alone.
_REDUCTIONS = {psum_p: reduce_sum_p, pmax_p: reduce_max_p, pmin_p: reduce_min_p}
_RESHAPES = (reshape_p, squeeze_p)
# What changes no value as the second operand, or as either: a float's zero has a sign.
_NEUTRAL: dict[Primitive, tuple[float, bool]] = {
    add_p: (-0.0, True), sub_p: (0.0, False), mul_p: (1.0, True), div_p: (1.0, False)}
_RULES: dict[Primitive, Callable[[JaxprEqn, dict[Atom, JaxprEqn], Counter[Atom]], Rewritten]] = {
    **dict.fromkeys(_REDUCTIONS, _collective),
    reduce_sum_p: _sum,
    stop_gradient_p: _identity,
    name_p: _identity,
    select_n_p: _choice,
    **dict.fromkeys(_RESHAPES, _shaped),
    neg_p: _negation,
    **dict.fromkeys(_NEUTRAL, _with_neutral),
}


def _with_scalars(eqn: JaxprEqn, made: dict[Atom, JaxprEqn]) -> JaxprEqn:
    shape = eqn.outvars[0].aval.shape
    if not any(atom in made and made[atom].primitive in (broadcast_in_dim_p, reshape_p)
               for atom in eqn.invars):
        return eqn
    scalars: list[Atom] = []
    for atom in eqn.invars:
        current = atom
        while current in made:
            producer = made[current]
            if producer.primitive not in (broadcast_in_dim_p, reshape_p):
                break
            if producer.primitive is reshape_p and producer.invars[0].aval.size != 1:
                break
            current = producer.invars[0]
        scalars.append(current if not current.aval.shape else atom)
    # One operand at least must still have the shape.
    if all(atom.aval.shape != shape for atom in scalars):
        return eqn
    avals = [atom.aval for atom in scalars]
    if eqn.primitive.abstract(*avals, **eqn.params) is not eqn.outvars[0].aval:
        return eqn
    return eqn.replace(invars=scalars)


def _reshape(eqn: JaxprEqn, source: Atom) -> JaxprEqn:
    params = {"new_sizes": eqn.outvars[0].aval.shape, "dimensions": None}
    if "sharding" in eqn.params:
        params["sharding"] = eqn.params["sharding"]
    return JaxprEqn(reshape_p, [source], params, eqn.outvars, eqn.source)


def _folded(eqn: JaxprEqn) -> Literal | None:
    aval = eqn.outvars[0].aval
    if dtypes.is_opaque(aval.dtype) or any(dtypes.is_opaque(a.aval.dtype) for a in eqn.invars):
        return None
    run = op_spec(eqn.primitive, tuple(atom.aval for atom in eqn.invars), eqn.params).run
    if run is None:
        return None
    with np.errstate(all="ignore"):
        value = run(*[atom.val for atom in eqn.invars if isinstance(atom, Literal)])
    return Literal(np.asarray(value, aval.dtype)[()], aval)


def simplify_bodies(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Simplifies the jaxprs of loops and branches."""
    eqns = []
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.inner.control_flow is not None:
            eqn = eqn.replace(params=with_bodies(eqn, map(simplify_once, bodies_of(eqn))))
        eqns.append(eqn)
    return closed.replace(eqns=eqns)


def simplify(closed: ClosedJaxpr) -> ClosedJaxpr:
    """All passes."""
    return _improved(select_products(_flat(closed)))


def simplify_operations(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Like ``simplify_once``, for operations that are no program together in JAX: a boolean that
    one converts and another multiplies with is a number by then."""
    simplified = _improved(_flat(closed))
    note(simplified, simplify_once, simplified)
    return simplified


def _flat(closed: ClosedJaxpr) -> ClosedJaxpr:
    return _hoisted(simplify_bodies(literals_inside(inline_calls(closed))))


def _improved(closed: ClosedJaxpr) -> ClosedJaxpr:
    return eliminate_dead_code(orient_products(multiply_matrices(rewrite(
        cut_regularly(eliminate_common_subexpressions(mask_updates(closed)))))))


def _hoisted(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Without invariants in the loops, whose bodies are simplified before and after."""
    closed = hoist_invariants(closed)
    for eqn in closed.jaxpr.eqns:
        for body in bodies_of(eqn):
            note(body, simplify_once, body)
    return closed


@derived
def simplify_once(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Like ``simplify``; the result is cached, and not simplified again."""
    simplified = simplify(closed)
    note(simplified, simplify_once, simplified)
    return simplified
