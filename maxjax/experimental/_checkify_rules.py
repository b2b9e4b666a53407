"""How checkify interprets jaxprs: a rule for each primitive that is checked, or has jaxprs inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order import custom_jvp as custom
from maxjax._higher_order import scan as scan_module
from maxjax._higher_order import while_loop as while_module
from maxjax._higher_order.checkpoint import remat_p
from maxjax._higher_order.cond import cond_p
from maxjax._higher_order.control import rearranged
from maxjax._higher_order.custom_jvp import custom_jvp_call_p
from maxjax._higher_order.custom_vjp_call import custom_vjp_call_p
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.scan import scan_p
from maxjax._higher_order.while_loop import while_p
from maxjax._ir.control_flow import structure_of
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import aval_of, context
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import div_p
from maxjax._primitives.dynamic_slice import (
    dynamic_slice_p,
    dynamic_update_slice_p,
)
from maxjax._primitives.gather_plan import window_sizes
from maxjax._primitives.indexing import (
    gather_p,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
)
from maxjax._sharding.shard_map import inside, shard_map_p
from maxjax.experimental._checkify_errors import (
    DivisionByZeroError,
    ErrorCategory,
    NaNError,
    OOBError,
)
from maxjax.experimental._checkify_value import Error, Structure, check_p, failing, init_error

Enabled = frozenset[ErrorCategory]
Results = tuple[Error, Sequence[Any]]
Rule = Callable[[JaxprEqn, Enabled, Error, list[Any]], Results]
_rules: dict[Primitive, Rule] = {}


def interpret(jaxpr: Jaxpr, consts: Sequence[Any], enabled: Enabled, error: Error,
               *args: Any) -> tuple[Error, list[Any]]:
    """Runs a jaxpr under the current trace, with its checks."""
    def checked(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        nonlocal error
        rule = _rules.get(eqn.primitive)
        if rule is not None:
            error, results = rule(eqn, enabled, error, operands)
            return results
        results = apply_equation(eqn, operands)
        if eqn.primitive.values.may_give_nan:
            error = _check_nan(eqn, enabled, error, results)
        return results

    results = eval_jaxpr(jaxpr, consts, *args, rule=checked)
    return error, results


def _rule(*primitives: Primitive) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        _rules.update(dict.fromkeys(primitives, rule))
        return rule
    return register


def _staged(call: Callable[..., Results], error: Error, in_avals: Sequence[ShapedArray],
            name: str) -> tuple[ClosedJaxpr, Structure]:
    """``call``, a function of an error and values, as a flat jaxpr; and the resulting error."""
    before = error.structure()
    count = len(error.leaves())
    after: Any = None

    def flat(*values: Any) -> list[Any]:
        nonlocal after
        result, outs = call(Error.of(before, values[:count]), *values[count:])
        after = result.structure()
        return [*result.leaves(), *outs]

    closed = trace_to_jaxpr(flat, [*map(aval_of, error.leaves()), *in_avals], name)
    return closed, after


def _checked(closed: ClosedJaxpr, enabled: Enabled, error: Error) -> tuple[ClosedJaxpr, Structure]:
    def call(error: Error, *args: Any) -> Results:
        return interpret(closed.jaxpr, closed.consts, enabled, error, *args)

    return _staged(call, error, closed.in_avals, closed.jaxpr.debug_info)


def _split(structure: Structure, results: Sequence[Any]) -> Results:
    count = sum(2 + len(kind.types) for kind in structure[0])
    return Error.of(structure, results[:count]), results[count:]


# --- primitives that check their results or their operands ----------------------------------------


def _check_nan(eqn: JaxprEqn, enabled: Enabled, error: Error, results: Sequence[Any]) -> Error:
    found = [jnp.any(jnp.isnan(x)) for x in results if dtypes.is_inexact(x.dtype)]
    if NaNError not in enabled or not found:
        return error
    name = eqn.primitive.name
    return failing(error, jnp.any(jnp.stack(found)), NaNError, (), lambda _: NaNError(name))


@_rule(div_p)
def _div_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    if DivisionByZeroError in enabled:
        error = failing(error, jnp.any(jnp.equal(operands[1], 0)), DivisionByZeroError, (),
                         lambda _: DivisionByZeroError())
    results = apply_equation(eqn, operands)
    return _check_nan(eqn, enabled, error, results), results


def _check_bounds(error: Error, starts: Any, axes: Sequence[int], sizes: Sequence[int],
                  shape: tuple[int, ...]) -> Error:
    """Checks the starts ``(..., len(axes))`` of windows of ``sizes`` along ``axes``."""
    if 0 in starts.shape:
        return error
    largest = dtypes.iinfo(starts.dtype).max
    limits = np.array([min(shape[axis] - sizes[axis], largest) for axis in axes], starts.dtype)
    limits = limits[(None,) * (starts.ndim - 1)]
    outside = jnp.ravel((starts < 0) | (starts > limits))
    first = jnp.argmax(outside)
    column = first % len(axes)
    place = jnp.stack([
        jnp.ravel(starts)[first].astype(np.int32), jnp.array(axes, np.int32)[column],
        jnp.array([shape[axis] for axis in axes], np.int32)[column]])
    return failing(error, jnp.any(outside), OOBError, (place,),
                    lambda values: OOBError(shape, values[0]))


@_rule(dynamic_slice_p)
def _dynamic_slice_rule(eqn: JaxprEqn, enabled: Enabled, error: Error,
                        operands: list[Any]) -> Results:
    operand, *starts = operands
    if OOBError in enabled and starts:
        error = _check_bounds(error, jnp.stack(starts), range(len(starts)),
                              eqn.params["slice_sizes"], operand.shape)
    return error, apply_equation(eqn, operands)


@_rule(dynamic_update_slice_p)
def _dynamic_update_slice_rule(eqn: JaxprEqn, enabled: Enabled, error: Error,
                               operands: list[Any]) -> Results:
    operand, update, *starts = operands
    if OOBError in enabled and starts:
        error = _check_bounds(error, jnp.stack(starts), range(len(starts)), update.shape,
                              operand.shape)
    return error, apply_equation(eqn, operands)


@_rule(gather_p)
def _gather_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    if OOBError in enabled:
        operand, starts = operands
        error = _check_bounds(error, starts, eqn.params["dimension_numbers"].start_index_map,
                              eqn.params["slice_sizes"], operand.shape)
    return error, apply_equation(eqn, operands)


@_rule(scatter_p, scatter_add_p, scatter_max_p, scatter_min_p, scatter_mul_p)
def _scatter_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    results = apply_equation(eqn, operands)
    if OOBError not in enabled:
        return error, results
    operand, starts, updates = operands
    numbers = eqn.params["dimension_numbers"]
    error = _check_bounds(error, starts, numbers.scatter_dims_to_operand_dims,
                          window_sizes(operand.shape, updates.shape, numbers), operand.shape)
    return _check_nan(eqn, enabled, error, results), results


@_rule(check_p)
def _check_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    # Its message was made where it was traced; it runs after all checks so far.
    found = Error.of(eqn.params["structure"], operands).renumbered()
    for kind, place in found._places.items():
        if kind.category in enabled:
            error = error.adding(kind, place, {})
    return error.with_causes(found.structure()), []


# --- primitives with jaxprs inside ----------------------------------------------------------------


@_rule(jit_p)
def _jit_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    closed, after = _checked(eqn.params["jaxpr"], enabled, error)
    return _split(after, jit_p.bind(*error.leaves(), *operands, **{**eqn.params, "jaxpr": closed}))


@_rule(remat_p)
def _remat_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    inner = eqn.params["jaxpr"]
    closed, after = _checked(inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner),
                             enabled, error)
    jaxpr = closed.jaxpr
    body: Any = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    if isinstance(inner, ClosedJaxpr):
        body = ClosedJaxpr(body)
    return _split(after, eqn.primitive.bind(
        *closed.consts, *error.leaves(), *operands, **{**eqn.params, "jaxpr": body}))


@_rule(shard_map_p)
def _shard_map_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    """Each device has checks of its own: its element of a batch of them."""
    params = eqn.params
    inner = params["jaxpr"]
    names = tuple(name for name in params["mesh"].axis_names
                  if name in params["newly_manual_axes"])

    def on_shard(_: Error, *args: Any) -> Results:
        found, outs = interpret(inner.jaxpr, inner.consts, enabled, init_error, *args)
        return Error.of(found.structure(), [jnp.expand_dims(x, 0) for x in found.leaves()]), outs

    with inside(params["mesh"], params["newly_manual_axes"], params["check_vma"]):
        closed, after = _staged(on_shard, init_error, inner.in_avals, inner.jaxpr.debug_info)
    count = len(closed.out_avals) - len(inner.out_avals)
    results = shard_map_p.bind(*operands, **{
        **params, "jaxpr": closed,
        "out_specs": (*[PartitionSpec(names)] * count, *params["out_specs"])})
    found, outs = _split(after, results)
    if not found._places:
        return error, outs
    error = error._spread(np.shape(next(iter(found._places.values())).failed))
    for kind, place in found._places.items():
        error = error.adding(kind, place, {})
    return error.with_causes(found.structure()), outs


@_rule(custom_vjp_call_p)
def _custom_vjp_rule(eqn: JaxprEqn, enabled: Enabled, error: Error,
                     operands: list[Any]) -> Results:
    closed = eqn.params["call_jaxpr"]
    return interpret(closed.jaxpr, closed.consts, enabled, error, *operands)


@_rule(custom_jvp_call_p)
def _custom_jvp_rule(eqn: JaxprEqn, enabled: Enabled, error: Error,
                     operands: list[Any]) -> Results:
    """The rule keeps its function; checks inside the rule are ignored under differentiation."""
    params = eqn.params
    closed, num_consts = params["call_jaxpr"], params["num_consts"]
    consts, args = operands[:num_consts], operands[num_consts:]
    _, after = _checked(closed, enabled, error)
    error = error.with_kinds(after[0])
    before = error.structure()
    count = len(error.leaves())

    def function(*values: Any) -> list[Any]:
        nonlocal after
        result, outs = interpret(closed.jaxpr, closed.consts, enabled,
                                  Error.of(before, values[:count]), *consts, *values[count:])
        after = result.structure()
        return [*result.leaves(), *outs]

    def jvp(primals: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
        outs, out_tangents = params["jvp"](primals[count:], tangents[count:])
        return [*primals[:count], *outs], [*[None] * count, *out_tangents]

    results = context.trace.apply_custom_jvp(
        function, jvp, [*error.leaves(), *args],
        stage=functools.partial(custom.stage, name=params["name"],
                                rule_name=params["jvp"].__name__,
                                symbolic_zeros=params["symbolic_zeros"]))
    return _split((before[0], after[1]), results)


@_rule(cond_p)
def _cond_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    index, *values = operands
    branches = eqn.params["branches"]
    for branch in branches:      # all must return an error of the same kinds
        error = error.with_kinds(_checked(branch, enabled, error)[1][0])
    pairs = [_checked(branch, enabled, error) for branch in branches]
    results = cond_p.bind(index, *error.leaves(), *values,
                          branches=tuple(closed for closed, _ in pairs))
    after, outs = _split(pairs[0][1], results)
    for _, structure in pairs:
        after = after.with_causes(structure)
    return after, outs


@_rule(scan_p)
def _scan_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    flow, params = structure_of(eqn), eqn.params
    consts, init, xs = flow.parts(operands)
    body = params["jaxpr"]
    error = error.with_kinds(_checked(body, enabled, error)[1][0])
    closed, after = _checked(body, enabled, error)
    count = len(error.leaves())
    closed = _behind(closed, count, len(consts))
    return _split(after, scan_module.bind(
        consts, [*error.leaves(), *init], xs, closed, length=params["length"],
        reverse=params["reverse"], unroll=params["unroll"]))


def _behind(closed: ClosedJaxpr, count: int, consts: int,
            outputs: tuple[int, ...] | None = None) -> ClosedJaxpr:
    """A jaxpr that takes an error, with this many values, after its constants: a carry."""
    end = count + consts
    return rearranged(closed, (*range(count, end), *range(count),
                               *range(end, len(closed.in_avals))), outputs)


@_rule(while_p)
def _while_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    params = eqn.params
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    if while_module.is_batched(cond):
        raise ValueError("Checkify does not support batched while-loops (checkify-of-vmap-of-"
                         "while). \nHint: if possible, move the vmap to the outer level to get "
                         "vmap-of-checkify-of-while.")
    cond_consts, body_consts, carry = structure_of(eqn).parts(operands)
    num_cond = len(cond_consts)

    def condition(error: Error, *args: Any) -> Results:
        return interpret(cond.jaxpr, cond.consts, enabled, error, *args)

    def step(error: Error, *args: Any) -> Results:
        error, outs = interpret(body.jaxpr, body.consts, enabled, error, *args[num_cond:])
        # Checks the next evaluation of the predicate.
        error, _ = condition(error, *args[:num_cond], *outs)
        return error, outs

    error, _ = condition(error, *cond_consts, *carry)
    avals = [*cond.in_avals[:num_cond], *body.in_avals]
    name = body.jaxpr.debug_info
    error = error.with_kinds(_staged(step, error, avals, name)[1][0])
    closed, after = _staged(step, error, avals, name)
    count = len(error.leaves())
    closed = _behind(closed, count, num_cond + len(body_consts))
    predicate, _ = _staged(condition, error, cond.in_avals, cond.jaxpr.debug_info)
    predicate = _behind(predicate, count, num_cond, (len(predicate.out_avals) - 1,))
    return _split(after, while_module.bind(
        cond_consts, [*cond_consts, *body_consts], [*error.leaves(), *carry], predicate, closed))
