"""scan: a loop of known length with a carry, stacked inputs and stacked outputs.

The operands are constants, initial carries and stacked inputs; the results final carries and
stacked outputs. The body is a jaxpr (constants, carries, slices) -> (carries, slices).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

from maxjax._base import config, pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.errors import ConcretizationTypeError
from maxjax._base.fixpoint import rounds
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import first_parameter, parameter_names
from maxjax._base.source import show_as
from maxjax._base.tracebacks import boundary
from maxjax._higher_order import python_control, refs
from maxjax._higher_order.control import (
    Traced,
    check_carry,
    chosen,
    either,
    empty_like,
    merged,
    operands_of,
    parameter_paths,
    promote_weak,
    rearranged,
    scalars,
    split_linearized,
    traced,
    unrolled,
)
from maxjax._higher_order.hi_types import hi_classes, hooks, lifted_values
from maxjax._higher_order.structured import bind_known, structured
from maxjax._ir.contract import CLOSED_JAXPR, COUNT, FLAG, FLAGS, NATURAL, POSITIVE, optional, takes
from maxjax._ir.control_flow import BodyRule, ControlFlow, Group, Role
from maxjax._ir.costs import ENTERED, Cost, XlaCost
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, derived
from maxjax._ir.liveness import dependent_outputs, eliminate_dead_code, needed_inputs
from maxjax._ir.refs import RefsTouched, RefUse, read_all, write_back
from maxjax._ir.rule_groups import Derivative, Host, Printed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer, all_as_given, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import HostValue, Params, Value
from maxjax._primitives import fitting
from maxjax._primitives.rules import Linear, is_linear
from maxjax._transforms.jvp import instantiate
from maxjax._transforms.linearize import LinearTrace, by_linearization
from maxjax._transforms.simplify import simplify_once
from maxjax._transforms.transpose import of_types, transpose_partly, transpose_with_refs

T = TypeVar("T")

# --- the primitive --------------------------------------------------------------------------------


def bind(consts: Sequence[Value], init: Sequence[Value], xs: Sequence[Value], jaxpr: ClosedJaxpr, *,
         length: int, reverse: bool = False, unroll: int = 1,
         computed: tuple[bool, ...] | None = None) -> list[Any]:
    """Applies the primitive.

    Args:
      computed: of the stacked outputs of the user's function, which the loop computes; the others
        are its inputs. It is only printed.
    """
    return scan_p.bind(
        *consts, *init, *xs, computed=computed, jaxpr=jaxpr, length=length, num_carry=len(init),
        num_consts=len(consts), reverse=reverse, unroll=unroll)


def _parts(values: Sequence[T], num_consts: int, num_carry: int) -> tuple[
        list[Any], list[Any], list[Any]]:
    """Constants, carries, stacked inputs."""
    end = num_consts + num_carry
    return list(values[:num_consts]), list(values[num_consts:end]), list(values[end:])


@derived
def _loop(jaxpr: ClosedJaxpr, length: int, num_carry: int, num_consts: int,
          reverse: bool) -> Callable[..., list[Any]]:
    """The loop as a Python function:

        def loop(k0, a0, x0):
            y0 = empty(y0_like)
            for i, s0 in zip(range(5), x0):
                a0, y0[i], = body(k0, a0, s0)
            return [a0, y0]
    """
    numbers = range(len(jaxpr.in_avals) - num_consts - num_carry)
    outs = range(len(jaxpr.out_avals) - num_carry)
    consts = [f"k{n}" for n in range(num_consts)]
    carries = [f"a{n}" for n in range(num_carry)]
    order = f"range({length - 1}, -1, -1)" if reverse else f"range({length})"
    stacked = [f"x{n}[::-1]" if reverse else f"x{n}" for n in numbers]
    slices = [f"s{n}" for n in numbers]
    results = "".join(f"{name}, " for name in (*carries, *(f"y{n}[i]" for n in outs)))
    lines = [f"def loop({', '.join((*consts, *carries, *(f'x{n}' for n in numbers)))}):"]
    lines += scalars([*consts, *carries], jaxpr.in_avals[:num_consts + num_carry])
    lines += [f"    y{n} = empty(y{n}_like, {length})" for n in outs]
    lines.append(f"    for i, {', '.join(slices)} in zip({order}, {', '.join(stacked)}):" if slices
                 else f"    for i in {order}:")
    call = f"body({', '.join((*consts, *carries, *slices))})"
    lines.append(f"        {results}= {call}" if results else f"        {call}")
    lines.append(f"    return [{', '.join((*carries, *(f'y{n}' for n in outs)))}]")
    namespace: dict[str, Any] = {
        "empty": empty_like, "body": interpreter(simplify_once(jaxpr)),
        **{f"y{n}_like": jaxpr.out_avals[num_carry + n] for n in outs}}
    exec(compile("\n".join(lines), "<a loop of tier 0>", "exec"), namespace)
    return namespace["loop"]


def _specialize(in_avals: Sequence[ShapedArray], params: Params,
                out_avals: Sequence[ShapedArray]) -> Callable[..., list[Any]]:
    loop: Any = None

    def run(*values: HostValue) -> list[Any]:
        nonlocal loop      # made at the first call: many an equation is only written down
        if loop is None:
            loop = _loop(params["jaxpr"], params["length"], params["num_carry"],
                         params["num_consts"], params["reverse"])
        return loop(*values)

    return run


def _evaluate(*values: HostValue, jaxpr: ClosedJaxpr, length: int, num_carry: int, num_consts: int,
              reverse: bool, **params: object) -> list[Any]:
    return _loop(jaxpr, length, num_carry, num_consts, reverse)(*values)


def _settings(params: Params) -> dict[str, Any]:
    return {"length": params["length"], "reverse": params["reverse"], "unroll": params["unroll"]}


def _linearize(trace: LinearTrace, primals: Sequence[Array], tangents: Sequence[Array | None], *,
               jaxpr: ClosedJaxpr, num_carry: int, num_consts: int, **params: object
               ) -> tuple[list[Any], list[Any]]:
    """Two loops: the loop itself, which also stacks what its derivative needs, and behind it a loop
    over tangents that is linear. Of a body ``c, y = f(a, c, x)``, before and after, a dot for a
    tangent::

        c_n, ys = scan(f, consts=[a], init=[c_0], xs=[xs])

        c_n, ys, rs   = scan(forward, consts=[a], init=[c_0], xs=[xs])
        h             = hoisted(a)
        c_n., ys.     = scan(linear, consts=[h, a, a.], init=[c_0.], xs=[xs., rs, xs])

        forward(a, c, x)                -> c', y, r
        hoisted(a)                      -> h            what follows from constants, once
        linear(h, a, a., c., x., r, x)  -> c'., y.

    Which carries have tangents is a fixpoint: one has if its start has, or what an iteration makes
    of it.
    """
    division = trace.division
    nonzero = tuple(tangent is not None for tangent in tangents)
    consts_nz, carry_nz, xs_nz = map(tuple, _parts(nonzero, num_consts, num_carry))
    num_ys = len(jaxpr.out_avals) - num_carry
    # Constants and stacked values are there for the second loop as well.
    given = (*(True,) * num_consts, *(False,) * num_carry, *(True,) * len(xs_nz))
    for _ in rounds(num_carry, "linearizing a scan"):
        split = split_linearized(
            jaxpr, division, (*consts_nz, *carry_nz, *xs_nz), (*carry_nz, *(False,) * num_ys),
            given, (*(False,) * num_carry, *(True,) * num_ys), num_consts)
        out_nz = split.out_nonzero
        if out_nz[:num_carry] == carry_nz:
            break
        carry_nz = out_nz[:num_carry]
    consts, init, xs = _parts(primals, num_consts, num_carry)
    made = len(split.forward.out_avals) - num_carry - num_ys
    results = bind_known(
        scan_p, primals, {**params, "jaxpr": split.forward, "num_carry": num_carry,
                          "num_consts": num_consts},
        (*division.known(out_nz), *(True,) * made))
    outs, inside = results[:num_carry + num_ys], results[num_carry + num_ys:]
    if not any(out_nz):
        return outs, [None] * len(outs)

    hoisted = eval_jaxpr(split.hoisted.jaxpr, split.hoisted.consts, *consts)
    invariant_numbers, invariant, stacked_numbers, stacked = [], [], [], []
    for position, (kind, number) in enumerate(split.sources):
        if kind == "hoisted" or (kind == "input" and number < num_consts):
            invariant_numbers.append(position)
            invariant.append(hoisted[number] if kind == "hoisted" else consts[number])
        else:
            stacked_numbers.append(position)
            stacked.append(
                inside[number] if kind == "inside" else outs[number] if kind == "output" else
                xs[number - num_consts - num_carry])
    count = len(split.sources)
    consts_dot, init_dot, xs_dot = _parts(tangents, num_consts, num_carry)
    t_consts, t_carry, t_xs = _parts(
        range(count, count + sum(consts_nz) + sum(carry_nz) + sum(xs_nz)),
        sum(consts_nz), sum(carry_nz))
    body = rearranged(
        split.linear, (*invariant_numbers, *t_consts, *t_carry, *t_xs, *stacked_numbers))
    init_dot = [division.start(x, t) for x, t, flag in zip(
        init, init_dot, carry_nz, strict=True) if flag]
    results = bind(
        [*invariant, *(t for t in consts_dot if t is not None)], init_dot,
        [*(t for t in xs_dot if t is not None), *stacked], body, **_settings(params))
    return outs, merged(out_nz, results)


def _linear_carries(jaxpr: ClosedJaxpr, linear: Sequence[bool], num_consts: int,
                    num_carry: int) -> tuple[bool, ...]:
    """Which carries are linear in the loop: a known start does not make them known."""
    consts, carry, xs = map(tuple, _parts(linear, num_consts, num_carry))
    for _ in rounds(num_carry, "the linear carries of a scan"):
        new = either(carry, dependent_outputs(jaxpr.jaxpr, (*consts, *carry, *xs))[:num_carry])
        if new == carry:
            break
        carry = new
    return carry


@derived
def _known_carries(jaxpr: ClosedJaxpr, known: tuple[bool, ...], num_consts: int,
                   num_carry: int) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The body of a loop that computes only the marked carries, and stacks what each iteration
    starts from; with which of the inputs it takes."""
    outputs = [n for n in range(num_carry) if known[n]]
    marks = [n < num_carry and known[n] for n in range(len(jaxpr.out_avals))]
    needed = needed_inputs(jaxpr.jaxpr, marks)
    needed[num_consts:num_consts + num_carry] = known
    chosen_body = rearranged(jaxpr, tuple(chosen(range(len(needed)), needed)), tuple(outputs))
    carries = [jaxpr.jaxpr.invars[num_consts + n] for n in outputs]
    body = eliminate_dead_code(ClosedJaxpr(
        chosen_body.jaxpr.replace(outvars=[*chosen_body.jaxpr.outvars, *carries]),
        chosen_body.consts))
    return body, tuple(needed)


@derived
def _transposed(jaxpr: ClosedJaxpr, linear: tuple[bool, ...], has_cotangent: tuple[bool, ...],
                num_consts: int, num_carry: int) -> tuple[
                    ClosedJaxpr, tuple[bool, ...], tuple[bool, ...], tuple[bool, ...],
                    tuple[RefUse, ...]]:
    """The body of the backward loop, which constants, carries and inputs have cotangents, and the
    array references that it uses.

    It takes values of references that are read, known constants; values of references that are
    written, sums of the constants' cotangents, the carries' cotangents; known carries, known
    slices, the cotangents of the outputs.
    """
    consts_lin, carry_lin, xs_lin = map(tuple, _parts(linear, num_consts, num_carry))
    carry_given, ys_given = has_cotangent[:num_carry], has_cotangent[num_carry:]
    for _ in rounds(num_carry, "the cotangents of a scan"):
        nonzero = transpose_with_refs(jaxpr, linear, (*carry_given, *ys_given))[1]
        consts_nz, carry_nz, xs_nz = _parts(nonzero, sum(consts_lin), sum(carry_lin))
        new = either(carry_given, [bool(flag) for flag in merged(carry_lin, carry_nz)])
        if new == carry_given:
            break
        carry_given = new
    in_consts, in_carry, in_xs = _parts(jaxpr.in_avals, num_consts, num_carry)
    out_carry, out_ys = jaxpr.out_avals[:num_carry], jaxpr.out_avals[num_carry:]
    sums = [aval.cotangent() for aval in chosen(chosen(in_consts, consts_lin), consts_nz)]
    # A cotangent has one type through the whole loop: that of the carry that comes out.
    carry_cotangents = [aval.cotangent() for aval in chosen(out_carry, carry_given)]
    known = [[aval for aval, lin in zip(avals, lins, strict=True) if not lin] for avals, lins in (
        (in_consts, consts_lin), (in_carry, carry_lin), (in_xs, xs_lin))]
    ys_cotangents = [aval.cotangent() for aval in chosen(out_ys, ys_given)]

    def body(*args: Array) -> list[Any]:
        given = iter(args)
        known_consts = [next(given) for _ in known[0]]
        before = [next(given) for _ in sums]
        cotangents = [next(given) for _ in carry_cotangents]
        rest = list(given)
        known_slices, ys = rest[:len(known[1]) + len(known[2])], rest[-len(ys_cotangents):]
        ys = ys if ys_cotangents else []
        values, given = iter([*known_consts, *known_slices]), iter([*cotangents, *ys])
        found = iter([x for x in transpose_partly(
            jaxpr.jaxpr, jaxpr.consts,
            [Linear(aval) if lin else next(values)
             for aval, lin in zip(jaxpr.in_avals, linear, strict=True)],
            [next(given) if has else None for has in (*carry_given, *ys_given)],
            merged(consts_nz, before)) if x is not None])
        to_consts = [next(found) for _ in before]
        to_carries = merged(carry_lin, [next(found) if flag else None for flag in carry_nz])
        refs.keep_types(context.trace)
        return [*to_consts,
                *(instantiate(cotangent, aval.cotangent()) for cotangent, aval in zip(
                    chosen(to_carries, carry_given), chosen(in_carry, carry_given), strict=True)),
                *found]

    avals = [*known[0], *sums, *carry_cotangents, *known[1], *known[2], *ys_cotangents]
    result = trace_to_jaxpr(body, avals, jaxpr.jaxpr.debug_info, with_refs=True)
    uses = result.refs
    if uses:
        only_read, written = ([len(avals) + n for n in part] for part in refs.split_uses(uses))
        start = len(known[0])
        count = len(result.out_avals) - len(written)
        result = rearranged(
            result, (*only_read, *range(start), *written, *range(start, len(avals))),
            (*range(count, count + len(written)), *range(count)))
    return result, tuple(consts_nz), carry_given, tuple(xs_nz), uses


def _transpose(cotangents: Sequence[Array | None], *operands: Array | Linear, jaxpr: ClosedJaxpr,
               num_carry: int, num_consts: int, length: int, reverse: bool, **params: Any
               ) -> list[Any]:
    """The loop backwards, over cotangents. Of a body that is linear in the constants ``a``, the
    carries ``c`` and the slices ``x``, with values ``k``, ``d`` and ``z`` that are known of each
    kind; before and after, an underscore for a cotangent::

        d_n, c_n, ys = scan(f, consts=[k, a], init=[d_0, c_0], xs=[z, xs])

        ds               = scan(g, consts=[k], init=[d_0], xs=[z])           if there is a d
        a_, c_0_, xs_    = scan(f_T, consts=[k], init=[0, c_n_], xs=[ds, z, ys_], reverse)

        g(k, d, z)                   -> d', d           each iteration's d, stacked
        f_T(k, a_, c_, d, z, y_)     -> a_ + a'_, c'_, x_

    The cotangents of constants are sums over all iterations, so they are carried. References that
    the body reads or writes go in front of the constants and of the sums.
    """
    marks = [is_linear(operand) for operand in operands]
    cotangents = of_types(cotangents, jaxpr.out_avals)
    carry_lin = _linear_carries(jaxpr, marks, num_consts, num_carry)
    consts_lin, _, xs_lin = _parts(marks, num_consts, num_carry)
    consts, init, xs = _parts(operands, num_consts, num_carry)
    known_carry = [not lin for lin in carry_lin]
    settings = {"length": length, "unroll": params["unroll"]}
    known_values: list[Any] = []
    if any(known_carry):
        body, needed = _known_carries(jaxpr, tuple(known_carry), num_consts, num_carry)
        kinds = _parts(needed, num_consts, num_carry)
        known_values = bind(
            chosen(consts, kinds[0]), chosen(init, kinds[1]), chosen(xs, kinds[2]), body,
            reverse=reverse, **settings)[sum(known_carry):]
    given = tuple(
        cotangent is not None and (n >= num_carry or carry_lin[n])
        for n, cotangent in enumerate(cotangents))
    body, consts_nz, carry_given, xs_nz, uses = _transposed(
        jaxpr, (*consts_lin, *carry_lin, *xs_lin), given, num_consts, num_carry)
    out_avals = jaxpr.out_avals
    sums = [instantiate(None, operand.aval.cotangent()) for operand in chosen(
        [x for x in consts if type(x) is Linear], consts_nz)]
    carry_cotangents = [instantiate(cotangent, aval.cotangent()) for cotangent, aval, flag in zip(
        cotangents[:num_carry], out_avals[:num_carry], carry_given, strict=True) if flag]
    ys_cotangents = [cotangent for cotangent in cotangents[num_carry:] if cotangent is not None]
    only_read, written = ([uses[n] for n in part] for part in refs.split_uses(uses))
    results = bind(
        [*read_all(only_read), *(x for x, lin in zip(consts, consts_lin, strict=True) if not lin)],
        [*read_all(written), *sums, *carry_cotangents],
        [*known_values, *(x for x, lin in zip(xs, xs_lin, strict=True) if not lin), *ys_cotangents],
        body, reverse=not reverse, **settings)
    write_back(written, results[:len(written)])
    found = iter(results[len(written):])
    to_consts = merged(consts_lin, [next(found) if flag else None for flag in consts_nz])
    to_init = [next(found) if flag else None for flag in carry_given]
    to_init = [cotangent if is_linear(x) else None
               for cotangent, x in zip(to_init, init, strict=True)]
    to_xs = merged(xs_lin, [next(found) if flag else None for flag in xs_nz])
    return [*to_consts, *to_init, *to_xs]


def _shown(params: Params) -> dict[str, Any]:
    """The groups of the operands and of the results in the form of JAX's parameters, in which each
    leaf is a None."""
    jaxpr, num_consts, num_carry = params["jaxpr"], params["num_consts"], params["num_carry"]
    ys = len(jaxpr.out_avals) - num_carry
    computed = params["computed"]
    if computed is None or sum(computed) != ys:      # of the loop that this one was made from
        computed = (True,) * ys
    results = str(((None,) * num_carry, computed)).replace(
        "True", "RightsOnly(Right(None))").replace("False", "RightsOnly(Left(None))")
    return {
        "ft_in": tuple((None,) * len(part) for part in _parts(
            jaxpr.in_avals, num_consts, num_carry)),
        "ft_out": results,
        **{name: params[name] for name in ("jaxpr", "length", "reverse", "unroll")}}


scan_p = structured(
    "scan",
    ControlFlow(
        groups=(Group(Role.CONSTANT, "num_consts"), Group(Role.CARRY, "num_carry"),
                Group(Role.SCANNED)),
        bodies=(BodyRule("jaxpr", "body", takes=(0, 1, 2)),),
        length="length", reverse="reverse"),
    contract=takes(
        (0, None), fitting.groups("num_consts", "num_carry"), reverse=FLAG, length=COUNT,
        jaxpr=CLOSED_JAXPR, num_consts=NATURAL, num_carry=NATURAL,
        unroll=POSITIVE, computed=optional(FLAGS)),
    evaluate=_evaluate,
    host=Host(specialize=_specialize),
    derivative=Derivative(linearize=_linearize, partly=by_linearization),
    transpose=_transpose,
    printed=Printed(_shown),
    cost=Cost(xla=XlaCost(alone=True, turns=2), roofline=ENTERED.roofline),
)


# --- the function ---------------------------------------------------------------------------------


Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@boundary
def scan(f: Callable[[Carry, X], tuple[Carry, Y]], init: Carry, xs: X | None = None,
         length: int | None = None, reverse: bool = False, unroll: int | bool = 1,
         _split_transpose: bool = False) -> tuple[Carry, Y]:
    """Loops over the leading axis of ``xs`` with a carry.

    Args:
      f: ``(carry, x) -> (carry, y)``, where ``x`` is a slice of ``xs``. Pytrees all.
      init: the first carry. The carry keeps its structure, shapes and dtypes.
      xs: arrays ``(length, ...)``; None for none.
      length: the number of iterations; needed where ``xs`` holds no arrays.
      reverse: from the last slice to the first; outputs stand where their inputs did.
      unroll: accepted; how a backend runs the loop is its own choice.

    Returns:
      The last carry, and the outputs ``y`` stacked along a new leading axis.

    Raises:
      TypeError: the carry changes its structure, shape or dtype, or ``f`` gives no pair.
      ValueError: leading axes differ, one is split over Explicit axes, or nothing gives
        the length.

    See also: ``lax.fori_loop``, ``lax.while_loop``, ``lax.map``, ``lax.associative_scan``,
    ``lax.cumsum``, ``jax.checkpoint``.

    >>> scan(lambda total, x: (total + x, total), 0, jnp.arange(4))
    (Array(6, dtype=int32), Array([0, 0, 1, 3], dtype=int32, weak_type=True))
    """
    if not callable(f):
        raise TypeError("lax.scan: f argument should be a callable.")
    return scan_for(f, init, xs, length, reverse, unroll)


def scan_for(f: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]], init: PyTree, xs: PyTree,
             length: int | None, reverse: bool = False, unroll: int | bool = 1,
             *, owner: Callable[..., PyTree] | None = None,
             key: Hashable = None, name: str = "") -> tuple[Any, Any]:
    """``scan`` of a function that wraps a user's.

    Args:
      owner, key: the user's function, with which the trace is cached, and how it is wrapped.
      name: of the carry in messages.
    """
    if hi_classes:
        xs = hooks.elements(xs, length)
    xs_leaves, xs_tree = pytree.flatten(xs)
    if refs.has_refs(xs_leaves):
        return _scan_references(f, init, xs_leaves, xs_tree, length, reverse, unroll)
    xs_values = operands_of(xs_leaves)
    length = _length(xs_values, length)
    unroll = unrolled(unroll, length)
    if config.disable_jit.value:
        return python_control.scan(f, init, xs_values, xs_tree, length, bool(reverse))
    init = lifted_values(init)
    leaves, tree = pytree.flatten(init)
    in_fori = key == "fori_loop"
    if refs.has_refs(leaves):
        slices = [x.aval.without_dim(0) for x in xs_values]
        refs.refuse_both_ways(owner or f, "fori_loop" if in_fori else "scan", tuple(init)
                              if in_fori else (init, pytree.unflatten(xs_tree, slices)))
        refs.refuse_carry(owner or f, "fori_loop" if in_fori else "scan",
                          init[1] if in_fori else init, "[0][1]" if in_fori else "[0]",
                          _carry_name(owner or f, in_fori))
    carry = operands_of(leaves)
    both = pytree.tuple_of(tree, xs_tree)
    for x in xs_values:
        on_mesh = x.aval.mesh_spec
        if on_mesh is not None and on_mesh[1].partitions[0] is not None:
            raise ValueError(
                f"0th dimension of all xs should be replicated. Got {on_mesh[1]}")
    slices = [x.aval.without_dim(0) for x in xs_values]

    names = None if owner is None else functools.partial(
        parameter_paths, owner, pytree.structure(tuple(init)) if in_fori
        else pytree.tuple_of(xs_tree))

    def trace() -> tuple[Traced, int]:
        avals = [*(x.aval for x in carry), *slices]
        try:
            body = traced(owner or f, "fori_loop" if in_fori else "scan", both, avals, key, f,
                          names)
        except RefsTouched as touched:
            body = touched.traced
        return body, _check_pair(body)

    body, num_carry = trace()
    outs = body.closed.out_avals[:num_carry]
    promoted = promote_weak(carry, outs)
    if promoted is not None:
        carry = promoted
        body, num_carry = trace()
        outs = body.closed.out_avals[:num_carry]
    check_carry("scan body", name or first_parameter(f), canonical(tree),
                [x.aval for x in carry], canonical(body.tree.children()[0]), outs)
    closed, uses = body.closed, body.closed.refs
    only_read, written = ([uses[n] for n in part] for part in refs.split_uses(uses))
    if uses:
        closed = _with_refs_carried(closed, len(body.consts))
    results = loop(closed, [*refs.values_for(only_read), *body.consts],
                   [*refs.values_for(written), *carry], xs_values, length=length,
                   reverse=bool(reverse), unroll=unroll)
    refs.write_all(written, results[:len(written)], in_loop=True)
    results = results[len(written):]
    out_tree = hooks.stacked(body.tree, length) if hi_classes else body.tree
    return pytree.unflatten(out_tree, all_as_given(results))


def _carry_name(function: Callable[..., PyTree], in_fori: bool) -> str:
    names = parameter_names(function)
    return names[in_fori] if len(names) > in_fori else "args[0]"


def _scan_references(f: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]], init: PyTree,
                     xs_leaves: list[Array], xs_tree: PyTreeSpec, length: int | None, reverse: bool,
                     unroll: int | bool) -> Any:
    """A scan over references: each iteration reads and writes its slice of them."""
    elements = refs.Elements(f, "scan", (init, pytree.unflatten(xs_tree, xs_leaves)), xs_leaves)

    def with_slices(carry: PyTree, leaves: list[Value]) -> Any:
        after, y = f(carry, pytree.unflatten(xs_tree, elements.given(leaves)))
        return after, (y, elements.finals())

    show_as(with_slices, f)
    values = elements.values(xs_leaves)
    with elements.borrowed():
        last, (ys, finals) = scan_for(
            with_slices, init, values, length, reverse, unroll, name=first_parameter(f))
    elements.write(finals)
    return last, ys


def _length(xs: Sequence[Array], length: int | None) -> int:
    for x in xs:
        if not x.aval.shape:
            shown = x if isinstance(x, Tracer) or x.aval.size else x.aval.str_short()
            raise ValueError(f"scan got value with no leading axis to scan over: {shown}.")
    lengths = [x.aval.shape[0] for x in xs]
    if length is not None:
        if isinstance(length, Tracer) and length.concrete() is None:
            raise ConcretizationTypeError(
                length, "The `length` argument to `scan` expects a concrete `int` value. For "
                "scan-like iteration with a dynamic length, use `while_loop` or `fori_loop`.")
        length = int(length)
        if any(size != length for size in lengths):
            raise ValueError(
                f"scan got `length` argument of {length} which disagrees with leading axis sizes "
                f"{lengths}.")
        return max(length, 0)
    sizes = list(dict.fromkeys(lengths))
    if len(sizes) > 1:
        raise ValueError("scan got values with different leading axis sizes: "
                         f"{', '.join(str(size) for size in lengths)}.")
    if not sizes:
        raise ValueError("scan got no values to scan over and `length` not provided.")
    return sizes[0]


@derived
def _with_refs_carried(closed: ClosedJaxpr, num_consts: int) -> ClosedJaxpr:
    """The body of a loop that uses references: the values of those that it only reads are its
    first constants, of those that it writes its first carries."""
    only_read, written = refs.split_uses(closed.refs)
    inputs = len(closed.in_avals) - len(closed.refs)
    outputs = len(closed.out_avals) - len(written)
    return rearranged(
        closed,
        (*(inputs + n for n in only_read), *range(num_consts), *(inputs + n for n in written),
         *range(num_consts, inputs)),
        (*range(outputs, outputs + len(written)), *range(outputs)))


def _check_pair(body: Traced) -> int:
    """The number of carries that a body gives."""
    children = body.tree.children()
    if len(children) != 2:
        result = pytree.unflatten(body.tree, body.closed.out_avals)
        if isinstance(result, ShapedArray):
            result = ("~" if result.weak_type else "") + result.str_short()
        raise TypeError(f"scan body output must be a pair, got {result}.")
    return children[0].num_leaves


def loop(closed: ClosedJaxpr, consts: Sequence[Value], init: Sequence[Value], xs: Sequence[Value],
         **settings: Any) -> list[Any]:
    """Binds a scan; what the body only passes through is not carried or stacked at all."""
    plan = _handed_on(closed, len(consts), len(init))
    if not plan:
        return bind(consts, init, xs, closed, **settings)
    body, fixed, copies = plan
    results = iter(bind(
        [*chosen(init, fixed), *consts],
        [x for x, flag in zip(init, fixed, strict=True) if not flag], xs, body,
        computed=tuple(source is None for source in copies), **settings))
    carry = [x if flag else next(results) for x, flag in zip(init, fixed, strict=True)]
    return [*carry, *(next(results) if source is None else xs[source] for source in copies)]


@derived
def _handed_on(closed: ClosedJaxpr, num_consts: int, num_carry: int) -> Any:
    """The body with unchanged carries as constants and without outputs that are inputs.

    Returns:
      The body, which carries are unchanged, and for each stacked output the number of the input
      that it equals, or None. False where there is nothing of the kind.
    """
    jaxpr = closed.jaxpr
    _, carries, slices = _parts(jaxpr.invars, num_consts, num_carry)
    fixed = tuple(before is after for before, after in zip(
        carries, jaxpr.outvars[:num_carry], strict=True))
    numbers: dict[Atom, int] = {var: number for number, var in enumerate(slices)}
    copies = tuple(numbers.get(atom) for atom in jaxpr.outvars[num_carry:])
    if not any(fixed) and all(source is None for source in copies):
        return False
    before = range(num_consts, num_consts + num_carry)
    inputs = (*chosen(before, fixed), *range(num_consts),
              *(n for n, flag in zip(before, fixed, strict=True) if not flag),
              *range(num_consts + num_carry, len(jaxpr.invars)))
    outputs = (*(n for n, flag in enumerate(fixed) if not flag),
               *(num_carry + n for n, source in enumerate(copies) if source is None))
    return rearranged(closed, inputs, outputs), fixed, copies
