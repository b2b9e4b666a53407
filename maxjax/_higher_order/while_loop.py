"""while_loop, a loop that runs as long as a predicate holds, and fori_loop.

The operands are the predicate's constants, the body's constants and the initial carries. The
predicate's jaxpr takes (its constants, carries), the body's (its constants, carries).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from maxjax._base import config, dtypes, pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.fixpoint import rounds
from maxjax._base.pytree import PyTree
from maxjax._base.signatures import first_parameter, parameter_names
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order import python_control, refs
from maxjax._higher_order.control import (
    Traced,
    check_carry,
    forwarded,
    operands_of,
    parameter_paths,
    promote_weak,
    rearranged,
    scalars,
    traced,
    used_inputs,
)
from maxjax._higher_order.hi_types import lifted_values
from maxjax._higher_order.scan import scan_for
from maxjax._higher_order.structured import (
    Batched,
    Differentiated,
    bind_jvp,
    bind_known,
    structured,
)
from maxjax._ir.contract import CLOSED_JAXPR, NATURAL, takes
from maxjax._ir.control_flow import BodyRule, ControlFlow, Group, Role
from maxjax._ir.costs import ALONE
from maxjax._ir.effects import io_effect, ordered_io_effect
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, Facts, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import RefsTouched, read_all
from maxjax._ir.rule_groups import Derivative
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, Trace, Tracer, all_as_given
from maxjax._ir.typing import ArrayLike, HostValue, Tree, Value
from maxjax._primitives import fitting
from maxjax._primitives.arithmetic import add_p
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import lt_p, select_n_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.reduction import reduce_or_p
from maxjax._primitives.rules import Linear
from maxjax._transforms.linearize import LinearTrace, partial_jaxpr
from maxjax._transforms.simplify import simplify_once

REVERSE_MODE = (
    "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic "
    "start/stop values. Try using lax.scan, or using fori_loop with static start/stop.")

# --- the primitive --------------------------------------------------------------------------------


def bind(cond_consts: Sequence[Value], body_consts: Sequence[Value], init: Sequence[Value],
         cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr) -> list[Any]:
    return while_p.bind(
        *cond_consts, *body_consts, *init, body_jaxpr=body_jaxpr, body_nconsts=len(body_consts),
        cond_jaxpr=cond_jaxpr, cond_nconsts=len(cond_consts))


_FLOW = ControlFlow(
    groups=(Group(Role.CONSTANT, "cond_nconsts"), Group(Role.CONSTANT, "body_nconsts"),
            Group(Role.CARRY)),
    bodies=(BodyRule("cond_jaxpr", "condition", takes=(0, 2), decides=True),
            BodyRule("body_jaxpr", "body", takes=(1, 2))))


@derived
def _loop(body_jaxpr: ClosedJaxpr, cond_jaxpr: ClosedJaxpr, cond_nconsts: int,
          body_nconsts: int) -> Callable[..., list[Any]]:
    """The loop as a Python function:

        def loop(p0, k0, a0, a1):
            while cond(p0, a0, a1)[0]:
                a0, a1, = body(k0, a0, a1)
            return [a0, a1]
    """
    cond_consts = [f"p{n}" for n in range(cond_nconsts)]
    body_consts = [f"k{n}" for n in range(body_nconsts)]
    carries = [f"a{n}" for n in range(len(body_jaxpr.out_avals))]
    results = "".join(f"{name}, " for name in carries)
    source = "\n".join([
        f"def loop({', '.join((*cond_consts, *body_consts, *carries))}):",
        *scalars([*cond_consts, *body_consts, *carries],
                 [*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals]),
        f"    while cond({', '.join((*cond_consts, *carries))})[0]:",
        f"        {results}{'= ' if results else ''}body({', '.join((*body_consts, *carries))})",
        f"    return [{', '.join(carries)}]"])
    namespace: dict[str, Any] = {"cond": interpreter(simplify_once(cond_jaxpr)),
                                 "body": interpreter(simplify_once(body_jaxpr))}
    exec(compile(source, "<a loop of tier 0>", "exec"), namespace)
    return namespace["loop"]


def _evaluate(*values: HostValue, body_jaxpr: ClosedJaxpr, body_nconsts: int,
              cond_jaxpr: ClosedJaxpr, cond_nconsts: int) -> list[Any]:
    return _loop(body_jaxpr, cond_jaxpr, cond_nconsts, body_nconsts)(*values)


def _linearize(trace: Trace, primals: Sequence[Array], tangents: Sequence[Array | None],
               **params: object) -> tuple[list[Any], list[Any]]:
    # The number of iterations, so of residuals, is not known: the linear map runs the loop again.
    outs = while_p.bind(*primals, **params)
    both = Differentiated(_FLOW.structure(params, len(primals)), tangents)
    if not any(both.results):
        return outs, [None] * len(outs)
    return outs, bind_jvp(while_p, primals, tangents, params, both)[1]


def _partly(trace: LinearTrace, primitive: Primitive, args: Sequence[Value], **params: Any
            ) -> list[Any]:
    """A loop of known values; the unknown ones run it again, as in ``_linearize``."""
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    parts = _FLOW.structure(params, len(args)).parts(tuple(map(trace.records, args)))
    cond_consts, body_consts, carry = map(tuple, parts)
    for _ in rounds(len(carry), "the known carries of a while loop"):
        known_body, _, new = partial_jaxpr(body, (*body_consts, *carry), carry)
        if new == carry:
            break
        carry = new
    known_cond, _, (unknown_end,) = partial_jaxpr(cond, (*cond_consts, *carry))
    results = trace.record(while_p, args, params)
    if unknown_end or all(carry):
        return results
    known_body, known_cond = (
        rearranged(known, tuple(range(len(known.in_avals))), tuple(range(count)))
        for known, count in ((known_body, len(carry)), (known_cond, 1)))
    known = bind_known(
        while_p, args, {**params, "body_jaxpr": known_body, "cond_jaxpr": known_cond},
        tuple([not flag for flag in carry]))
    return [mine if flag else other
            for flag, mine, other in zip(carry, results, known, strict=True)]


def _transpose(cotangents: Sequence[Array | None], *operands: Array | Linear, **params: object
               ) -> list[Any]:
    raise ValueError(REVERSE_MODE)


def _batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
           **params: Any) -> tuple[list[Any], list[int | None]]:
    effects = params["cond_jaxpr"].effects | params["body_jaxpr"].effects
    if ordered_io_effect in effects:
        raise Exception("Ordered IO effects not supported in vmap.")
    flow = _FLOW.structure(params, len(operands))
    batched = Batched(flow, size, axes)
    cond_consts, body_consts, init = flow.parts(batched.operands(operands))
    cond, body = batched.jaxprs
    if not batched.predicate:
        return bind(cond_consts, body_consts, init, cond, body), batched.out_axes
    if io_effect in effects:
        raise Exception(
            "Unordered IO effects not supported in while_loop with batched predicate")
    going, = eval_jaxpr(cond.jaxpr, cond.consts, *cond_consts, *init)
    any_going, step = _until_all_are_done(body, cond, len(cond_consts), len(body_consts))
    results = bind([], [*cond_consts, *body_consts], [going, *init], any_going, step)
    return results[1:], batched.out_axes


@derived
def _until_all_are_done(body: ClosedJaxpr, cond: ClosedJaxpr, cond_nconsts: int,
                        body_nconsts: int) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """A predicate and a body that carry which elements still run; the others stay as they are."""
    carries = body.in_avals[body_nconsts:]
    going_aval = cond.out_avals[0]

    def step(*args: Array) -> list[Any]:
        cond_consts, args = args[:cond_nconsts], args[cond_nconsts:]
        body_consts, (going, *carry) = args[:body_nconsts], args[body_nconsts:]
        new = eval_jaxpr(body.jaxpr, body.consts, *body_consts, *carry)
        kept = [select_n_p.bind(_over(going, after.shape), before, after)
                for before, after in zip(carry, new, strict=True)]
        after, = eval_jaxpr(cond.jaxpr, cond.consts, *cond_consts, *kept)
        return [after, *kept]

    any_going = trace_to_jaxpr(
        lambda going, *carry: [reduce_or_p.bind(going, axes=(0,))], [going_aval, *carries])
    consts = [*cond.in_avals[:cond_nconsts], *body.in_avals[:body_nconsts]]
    return any_going.with_facts(Facts(is_batched_predicate=True)), trace_to_jaxpr(
        step, [*consts, going_aval, *carries], body.jaxpr.debug_info)


def is_batched(predicate: ClosedJaxpr) -> bool:
    """Whether ``vmap`` made this predicate from those of the elements' loops."""
    return predicate.facts.is_batched_predicate


def _over(mask: Array, shape: tuple[int, ...]) -> Any:
    return mask if mask.shape == shape else broadcast_in_dim(mask, shape, (0,))


while_p = structured(
    "while",
    _FLOW,
    contract=takes(
        (0, None), fitting.groups("cond_nconsts", "body_nconsts"), cond_nconsts=NATURAL,
        cond_jaxpr=CLOSED_JAXPR, body_nconsts=NATURAL, body_jaxpr=CLOSED_JAXPR),
    evaluate=_evaluate,
    derivative=Derivative(linearize=_linearize, partly=_partly),
    transpose=_transpose,
    batch=_batch,
    cost=ALONE,
)


# --- the functions --------------------------------------------------------------------------------


@boundary
def while_loop(cond_fun: Callable[[Tree], ArrayLike], body_fun: Callable[[Tree], Tree],
               init_val: Tree) -> Tree:
    """Applies ``body_fun`` to the carry as long as ``cond_fun`` of it is true.

    Only forward-mode differentiable: the number of iterations is not known beforehand.

    Args:
      cond_fun: carry -> a boolean scalar.
      body_fun: carry -> carry, of the same structure, shapes and dtypes.
      init_val: the first carry, a pytree.

    Returns:
      The last carry; the first, where the predicate is false at once.

    Raises:
      TypeError: the predicate is not a boolean scalar, or the carry changes its structure or types.

    See also: ``lax.fori_loop``, ``lax.scan``, ``lax.cond``.

    >>> lax.while_loop(lambda x: x < 100, lambda x: 3 * x, 1)
    Array(243, dtype=int32, weak_type=True)
    """
    if not (callable(body_fun) and callable(cond_fun)):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    return _while(cond_fun, body_fun, init_val)


def _while(cond_fun: Callable[[PyTree], PyTree], body_fun: Callable[[PyTree], PyTree],
           init_val: PyTree, *, owner: Callable[..., PyTree] | None = None, key: Hashable = None,
           name: str = "") -> Any:
    if config.disable_jit.value:
        done, result = python_control.while_loop(cond_fun, body_fun, init_val)
        if done:
            return result
    init_val = lifted_values(init_val)
    leaves, tree = pytree.flatten(init_val)
    if refs.has_refs(leaves):
        names = parameter_names(owner or body_fun)
        in_fori = key == "fori_loop"
        refs.refuse_carry(owner or body_fun, "fori_loop" if in_fori else "while_body",
                          init_val[2] if in_fori else init_val, "[2]" if in_fori else "",
                          names[in_fori] if len(names) > in_fori else "args[0]")
    arguments = pytree.structure((init_val,))
    carry = operands_of(leaves)

    def trace(function: Callable[..., PyTree], kind: str) -> Any:
        avals = [x.aval for x in carry]
        if owner is None or function is cond_fun:
            return traced(owner or function, kind, arguments, avals, key, function)
        return traced(owner, "fori_loop", arguments, avals, key, function, functools.partial(
            _fori_names, owner, init_val))

    try:
        body = trace(body_fun, "while_body")
        promoted = promote_weak(carry, body.closed.out_avals)
        if promoted is not None:
            carry = promoted
            body = trace(body_fun, "while_body")
        cond = trace(cond_fun, "while_cond")
    except RefsTouched:
        return _while_references(
            cond_fun, body_fun, init_val, trace, name or first_parameter(body_fun))
    if cond.tree.num_nodes != 1 or cond.tree.num_leaves != 1:
        raise TypeError("cond_fun must return a boolean scalar, but got pytree "
                        f"{PyTreeDef(cond.tree)}.")
    predicate = cond.closed.out_avals[0]
    if predicate.dtype != dtypes.bool_ or predicate.shape:
        raise TypeError("cond_fun must return a boolean scalar, but got output type(s) "
                        f"[{predicate!r}].")
    check_carry("while_loop body", name or first_parameter(body_fun), canonical(tree),
                [x.aval for x in carry], body.tree, body.closed.out_avals)
    results = _bind_with_constants(cond, body, carry)
    return pytree.unflatten(body.tree, all_as_given(results))


def _fori_names(function: Callable[..., PyTree], carry: tuple[PyTree, ...]) -> list[str]:
    """The names of a ``fori_loop``'s carries: its index, its bound and the leaves of its value."""
    index, *value = parameter_paths(function, pytree.structure((carry[0], carry[2])))
    return [index, "upper", *value]


def _bind_with_constants(cond: Traced, body: Traced, carry: list[Array]) -> list[Any]:
    """Binds the loop; what the body gives back as it is, and the condition does not look at, is no
    carry but a constant of the body: ``vmap`` need not repeat it for the elements."""
    cond_count, body_count = len(cond.consts), len(body.consts)
    looked_at = used_inputs(cond.closed)[cond_count:]
    constant = [number == body_count + n and not looked_at[n]
                for n, number in enumerate(forwarded(body.closed))]
    if not any(constant):
        return bind(cond.consts, body.consts, carry, cond.closed, body.closed)
    fixed = [n for n, flag in enumerate(constant) if flag]
    kept = [n for n, flag in enumerate(constant) if not flag]
    cond_jaxpr = rearranged(cond.closed, (
        *range(cond_count), *(cond_count + n for n in kept)))
    body_jaxpr = rearranged(body.closed, (
        *(body_count + n for n in fixed), *range(body_count), *(body_count + n for n in kept)),
        tuple(kept))
    results = iter(bind(cond.consts, [*(carry[n] for n in fixed), *body.consts],
                        [carry[n] for n in kept], cond_jaxpr, body_jaxpr))
    return [carry[n] if flag else next(results) for n, flag in enumerate(constant)]


def _while_references(cond_fun: Callable[[PyTree], PyTree], body_fun: Callable[[PyTree], PyTree],
                      init_val: PyTree, trace: Callable[[Callable[..., PyTree], str], Traced],
                      name: str) -> Any:
    """A loop whose functions use array references: with their values in the carry.

    Raises:
      RefsTouched: the condition writes one.
    """
    touched = []
    for function, kind in ((body_fun, "while_body"), (cond_fun, "while_cond")):
        try:
            trace(function, kind)
        except RefsTouched as error:
            if function is cond_fun and any(use.operation for use in error.uses):
                raise
            touched.append(error.uses)
    uses = refs.union(*touched)
    condition, body = (refs.functional(function, uses) for function in (cond_fun, body_fun))
    new, result = _while(
        lambda carry: condition(*carry)[1], lambda carry: body(*carry),
        (read_all(uses), init_val), name=name)
    refs.write_all(uses, new, in_loop=True)
    return result


@boundary
def fori_loop(lower: ArrayLike, upper: ArrayLike, body_fun: Callable[[PyTree, PyTree], PyTree],
              init_val: PyTree, *, unroll: int | bool | None = None) -> Any:
    """Loops over the integers from ``lower`` to ``upper - 1`` with a carry.

    With bounds that are known while tracing it is a ``scan``, and differentiable in reverse mode;
    otherwise a ``while_loop``.

    Args:
      lower, upper: integers, known or traced; no iteration where ``upper`` is not above ``lower``.
      body_fun: ``(i, carry) -> carry``.
      init_val: the first carry, a pytree, whose structure, shapes and dtypes ``body_fun`` keeps.
      unroll: see ``scan``; only where the bounds are known.

    Returns:
      The last carry.

    Raises:
      TypeError: the bounds' dtypes differ, or the carry changes its structure or types.
      ValueError: ``unroll`` is given where the bounds are not known.

    See also: ``lax.scan``, ``lax.while_loop``, ``lax.map``.

    >>> lax.fori_loop(1, 5, lambda i, product: product * i, 1)
    Array(24, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError("lax.fori_loop: body_fun argument should be callable.")
    start, stop = _same_dtype(*operands_of([lower, upper]))
    first, end = _known(start), _known(stop)
    if first is None or end is None:
        if unroll is not None:
            raise ValueError(
                "Can only use `unroll` in `fori_loop` if the loop bounds are statically known.")

        one = _one_like(start)

        def cond(loop_carry: PyTree) -> Any:
            return lt_p.bind(loop_carry[0], loop_carry[1])

        def body(loop_carry: PyTree) -> Any:
            i, last, value = loop_carry
            return add_p.bind(i, one), last, body_fun(i, value)

        return _while(cond, body, (start, stop, init_val), owner=body_fun, key="fori_loop",
                      name="loop_carry")[2]

    if config.disable_jit.value:
        return python_control.fori_loop(first, end, body_fun, init_val)
    # A known bound counts as a Python integer.
    start, = operands_of([first])
    one = _one_like(start)

    def step(loop_carry: PyTree, _: object) -> Any:
        i, value = loop_carry
        return (add_p.bind(i, one), body_fun(i, value)), None

    result, _ = scan_for(
        step, (start, init_val), None, max(end - first, 0), False,
        1 if unroll is None else unroll, owner=body_fun, key="fori_loop", name="loop_carry")
    return result[1]


def _one_like(value: Array) -> Any:
    return installed.runtime.constant(np.ones((), value.aval.dtype), value.aval.update(shape=()))


def _same_dtype(lower: Array, upper: Array) -> tuple[Any, Any]:
    """The bounds; a Python integer takes the dtype of the other one."""
    dtypes_of = [value.aval.dtype for value in (lower, upper)]
    if dtypes_of[0] == dtypes_of[1]:
        return lower, upper
    weak = [value.aval.weak_type for value in (lower, upper)]
    if all(map(dtypes.is_signed, dtypes_of)) and weak[0] != weak[1]:
        if weak[0]:
            return convert_element_type(lower, dtypes_of[1]), upper
        return lower, convert_element_type(upper, dtypes_of[0])
    raise TypeError("lower and upper arguments to fori_loop must have equal types, got "
                    f"{dtypes_of[0].name} and {dtypes_of[1].name}")


def _known(value: Array | None) -> int | None:
    """A bound that is known while tracing."""
    if isinstance(value, Tracer):
        value = value.concrete()
    return None if value is None or value.shape else int(value)
