"""checkpoint: the backward pass recomputes what the forward pass computed, and did not save.

``remat2`` calls a jaxpr. Its linearization runs the function without saving residuals, and records
another ``remat2``, of the tangents and of the function's own operands, which recomputes the
residuals. Its transpose is one of the cotangents. Residuals that a policy allows are saved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.errors import ConcretizationTypeError
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import argument_names, wraps
from maxjax._base.source import Names, kept_source_lines, scopes, show_as
from maxjax._base.tracebacks import boundary
from maxjax._higher_order import refs
from maxjax._higher_order.calls import call_primitive, without_dead_code
from maxjax._higher_order.checkpoint_policies import Policy
from maxjax._higher_order.control import Traced, chosen, handed_on, merged, operands_of, traced
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.saved_inside import Divided, divided
from maxjax._ir.costs import ENTERED
from maxjax._ir.effects import io_effect, ordered_io_effect
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var, derived, replaced
from maxjax._ir.liveness import (
    eliminate_dead_code,
    needed_equations,
    read_variables,
    variables,
)
from maxjax._ir.refs import RefsTouched, read_all
from maxjax._ir.rule_groups import Derivative, Inner, Outside
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.identities import name_p
from maxjax._transforms.linearize import Division, LinearTrace, by_linearization
from maxjax._transforms.simplify import called_by, inline_calls

# --- the primitive --------------------------------------------------------------------------------


class _Split:
    """A jaxpr split in what runs in the forward pass and what runs in the backward pass.

    Attributes:
      known: operands -> (results, saved residuals).
      num_saved: the number of these residuals.
      needed: which of the operands ``staged`` takes.
      staged: (saved residuals, needed operands, tangents) -> tangents of the results.
      out_nonzero: which results have a tangent.
    """

    __slots__ = ("known", "needed", "num_saved", "out_nonzero", "staged")
    known: ClosedJaxpr
    num_saved: int
    needed: tuple[bool, ...]
    staged: ClosedJaxpr
    out_nonzero: tuple[bool, ...]


@derived
def _split(closed: ClosedJaxpr, division: Division, nonzero: tuple[bool, ...],
           policy: Policy | None) -> _Split:
    forward, linear, out_nonzero = division.divide(closed, nonzero)
    if policy is not None:
        # A policy decides on the operations inside jitted functions too.
        forward = inline_calls(forward, called_by(jit_p))
    jaxpr, count = forward.jaxpr, len(closed.out_avals)
    residuals = jaxpr.outvars[count:]
    parts = Divided(jaxpr.eqns, jaxpr.eqns, []) if policy is None else divided(jaxpr.eqns, policy)
    # Backwards from the residuals to the values that are saved; then into loops and branches.
    # Callbacks for debugging are called again, as in JAX.
    again = needed_equations(parts.again, set(variables(residuals)))
    if parts.saveable:
        again = eliminate_dead_code(ClosedJaxpr(
            Jaxpr(jaxpr.constvars, [*jaxpr.invars, *parts.saveable], residuals, again),
            forward.consts)).eqns
    wanted = read_variables(again, residuals)
    saved = [var for var in parts.saveable if var in wanted]

    split = _Split()
    split.out_nonzero = out_nonzero
    split.num_saved = len(saved)
    split.needed = tuple(var in wanted for var in jaxpr.invars)
    split.known = eliminate_dead_code(ClosedJaxpr(
        jaxpr.replace(eqns=parts.first, outvars=[*jaxpr.outvars[:count], *saved]), forward.consts))
    split.staged = _joined(
        forward, again, residuals, [*saved, *chosen(jaxpr.invars, split.needed)], linear)
    return split


_AGAIN = Names(("rematted_computation",))


def _joined(forward: ClosedJaxpr, eqns: list[JaxprEqn], residuals: Sequence[Atom],
            inputs: list[Var], linear: ClosedJaxpr) -> ClosedJaxpr:
    """The equations that compute the residuals, and then the linear jaxpr of them."""
    inner = linear.jaxpr
    count = len(residuals)
    values = dict(zip(inner.invars[:count], residuals, strict=True))
    joined = Jaxpr(
        [*forward.jaxpr.constvars, *inner.constvars], [*inputs, *inner.invars[count:]],
        replaced(inner.outvars, values),
        [*map(_named, eqns), *(eqn.replace(invars=replaced(eqn.invars, values))
                               for eqn in inner.eqns)],
        forward.jaxpr.debug_info)
    return eliminate_dead_code(ClosedJaxpr(joined, [*forward.consts, *linear.consts]))


def _named(eqn: JaxprEqn) -> JaxprEqn:
    """An equation that is computed again, in a scope which says so."""
    return eqn.replace(source=eqn.source and eqn.source.inside(_AGAIN))


def _linearize(trace: LinearTrace, primals: Sequence[Array], tangents: Sequence[Array | None], *,
               jaxpr: ClosedJaxpr, prevent_cse: bool | Sequence[bool], differentiated: bool,
               policy: Policy | None) -> tuple[list[Any], list[Any]]:
    effects = jaxpr.effects & {io_effect, ordered_io_effect}
    if effects:     # would happen once more in the backward pass
        raise NotImplementedError(
            "Effects not supported in partial-eval of `checkpoint`/`remat`: "
            f"{sorted(map(str, effects))}")
    nonzero = tuple(tangent is not None for tangent in tangents)
    split = _split(jaxpr, trace.division, nonzero, policy)
    with kept_source_lines():
        scopes.source_line = None       # the equations', in the scopes that are open
        results = eval_jaxpr(split.known.jaxpr, split.known.consts, *primals)
    count = len(jaxpr.out_avals)
    outs, saved = results[:count], results[count:]
    if not any(split.out_nonzero):
        return outs, [None] * count
    if isinstance(prevent_cse, tuple):
        prevent_cse = (*(True,) * split.num_saved, *chosen(prevent_cse, split.needed),
                       *(True,) * sum(nonzero))
    out_tangents = remat_p.bind(
        *saved, *chosen(primals, split.needed), *(t for t in tangents if t is not None),
        jaxpr=split.staged, prevent_cse=prevent_cse, differentiated=True, policy=policy)
    return outs, merged(split.out_nonzero, out_tangents)


def _guarded(eqn: JaxprEqn) -> Sequence[bool]:
    prevented = eqn.params["prevent_cse"] if eqn.params["differentiated"] else False
    return prevented if isinstance(prevented, tuple) else (prevented,) * len(eqn.invars)


remat_p = call_primitive(
    "remat2", "jaxpr", follow=("jvp", "transpose", "batch"), per_operand={"prevent_cse": True},
    derivative=Derivative(linearize=_linearize, partly=by_linearization),
    inner=Inner("jaxpr", guarded=_guarded, scope="checkpoint", dead_code=functools.partial(
        without_dead_code, per_operand=("prevent_cse",))),
    outside=Outside(stepwise=True),
    cost=ENTERED,
)

# --- the functions --------------------------------------------------------------------------------


def checkpoint(fun: Callable[..., PyTree], *, prevent_cse: bool | Sequence[bool] = True,
               policy: Policy | None = None, static_argnums: int | tuple[int, ...] = (),
               static_argnames: str | Iterable[str] = ()) -> Callable[..., Any]:
    """``fun``, with residuals that the backward pass recomputes instead of having them saved.

    Args:
      fun: a function of arrays or pytrees of them.
      prevent_cse: whether the second computation stays separate from the first where one program
        holds both; one for each argument, or for all. Inside ``scan`` it may be False.
      policy: which residuals are saved anyway: one of ``jax.checkpoint_policies``.
      static_argnums: the positional arguments that are Python values.
      static_argnames: accepted, and without effect, as in JAX.

    Returns:
      A function of the same arguments and results.

    Raises:
      TypeError: ``prevent_cse`` is not a boolean.

    See also: ``jax.grad``, ``jax.ad_checkpoint.checkpoint_name``, ``jax.checkpoint_policies``,
    ``lax.scan``.

    >>> wave = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    >>> jax.ad_checkpoint.print_saved_residuals(wave, 2.)
    f32[] from the argument x
    """
    if isinstance(prevent_cse, Sequence):
        prevent_cse = tuple(prevent_cse)
    if not isinstance(prevent_cse, (tuple, bool)):
        raise TypeError(
            f"prevent_cse must be a bool or tuple of bools, got {type(prevent_cse)=}")
    numbers: Any = (static_argnums,) if type(static_argnums) is int else static_argnums

    @wraps(fun)
    @boundary
    def fun_remat(*args: PyTree, **kwargs: PyTree) -> Any:
        static = _static_positions(numbers, len(args))
        dynamic = tuple(arg for n, arg in enumerate(args) if n not in static)
        leaves, tree = pytree.flatten((dynamic, kwargs))
        if refs.has_refs(leaves):
            return _checkpoint_references(fun, args, kwargs, static, prevent_cse, policy)
        values = operands_of(leaves)
        try:
            body = _trace(fun, args, static, tree, [x.aval for x in values])
        except RefsTouched as touched:
            uses = refs.union(refs.callers_uses(touched, fun))
            shifted = tuple(n + 1 for n in sorted(static))
            new, result = checkpoint(
                refs.functional(fun, uses), prevent_cse=prevent_cse if isinstance(prevent_cse, bool)
                else (True, *prevent_cse), policy=policy, static_argnums=shifted)(
                    read_all(uses), *args, **kwargs)
            refs.write_all(uses, new)
            return result
        cse: Any = prevent_cse
        if isinstance(cse, tuple):
            arguments = (dynamic, kwargs) if kwargs else dynamic
            cse = (*(False,) * len(body.consts), *pytree.broadcast_prefix(cse, arguments))
        outs = remat_p.bind(*body.consts, *values, jaxpr=body.closed, prevent_cse=cse,
                            differentiated=False, policy=policy)
        return pytree.unflatten(body.tree, handed_on(outs, leaves, body.closed, len(body.consts)))

    return fun_remat


def _checkpoint_references(fun: Callable[..., PyTree], args: tuple[PyTree, ...],
                           kwargs: dict[str, PyTree], static: frozenset[int],
                           prevent_cse: bool | Sequence[bool], policy: Policy | None) -> Any:
    """A call with references among the arguments: as one that closes over them."""
    def call(*given: PyTree, **more: PyTree) -> Any:
        dynamic = iter(given)
        return fun(*(arg if n in static else next(dynamic) for n, arg in enumerate(args)), **more)

    show_as(call, fun)
    if kwargs:
        raise NotImplementedError(
            "a function under `jax.checkpoint` with array references takes no keyword arguments")
    pure, arrays = refs.with_arguments(
        call, "checkpoint / remat", tuple(arg for n, arg in enumerate(args) if n not in static))
    cse = prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)
    return checkpoint(pure, prevent_cse=cse, policy=policy)(*arrays)


def remat(fun: Callable[..., PyTree], *, prevent_cse: bool = True, policy: Policy | None = None,
          static_argnums: int | tuple[int, ...] = ()) -> Callable[..., Any]:
    """Another name of ``checkpoint``.

    Args:
      fun: a function of arrays or pytrees of them.
      prevent_cse, policy, static_argnums: see ``checkpoint``.

    Returns:
      A function of the same arguments and results.

    See also: ``jax.checkpoint``.
    """
    return checkpoint(fun, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums)


def _static_positions(numbers: int | Sequence[int], count: int) -> frozenset[int]:
    where = "the `static_argnums` argument to `jax.checkpoint` / `jax.remat`"
    if not (type(numbers) is tuple and all(type(n) is int for n in numbers)):
        raise TypeError(f"{where} must be an int, tuple of ints or, bool, but got value {numbers}")
    if not all(-count <= n < count for n in numbers):
        raise ValueError(
            f"{where} can only take integer values greater than or equal to `-len(args)` and less "
            f"than `len(args)`, but got {numbers}, while `len(args)` = {count}")
    return frozenset(n % count for n in numbers)


def _trace(fun: Callable[..., PyTree], args: tuple[PyTree, ...], static: frozenset[int],
           tree: PyTreeSpec, avals: list[ShapedArray]) -> Traced:
    if not static:
        def call(dynamic: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Any:
            return fun(*dynamic, **kwargs)
    else:
        def call(dynamic: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Any:
            given = iter(dynamic)
            return fun(*(arg if n in static else next(given) for n, arg in enumerate(args)),
                       **kwargs)
    fixed = tuple((n, type(args[n]), args[n]) for n in sorted(static))
    owner: Callable[..., Any] = fun
    try:
        hash(fixed)
    except TypeError:      # traced anew each time
        owner = call
        show_as(call, fun)
        fixed = ()
    if any(isinstance(leaf, Tracer) for _, _, arg in fixed for leaf in pytree.leaves(arg)):
        owner, fixed = call, ()
    names = functools.partial(
        argument_names, fun, tree, [n for n in range(len(args)) if n not in static])
    try:
        return traced(owner, "checkpoint / remat", tree, avals, fixed, call, names)
    except ConcretizationTypeError as error:
        message = str(error)
        if "for checkpoint" in message:
            error.args = (
                f"{message}\n\nConsider using the `static_argnums` parameter for `jax.remat` or "
                "`jax.checkpoint`. See the `jax.checkpoint` docstring and its example involving "
                "`static_argnums`:\n"
                "https://docs.jax.dev/en/latest/_autosummary/jax.checkpoint.html\n",)
        raise


def checkpoint_name(x: PyTree, name: str) -> Any:
    """The arrays of a pytree as they are, under a name for the policies of ``checkpoint``.

    Args:
      x: a pytree of arrays.
      name: a text, which policies such as ``jax.checkpoint_policies.save_only_these_names`` ask
        for.

    Returns:
      ``x``.

    See also: ``jax.checkpoint``, ``jax.checkpoint_policies``.

    >>> def f(x):
    ...     return jnp.cos(jax.ad_checkpoint.checkpoint_name(jnp.sin(x), "sine"))
    >>> policy = jax.checkpoint_policies.save_only_these_names("sine")
    >>> jax.checkpoint(f, policy=policy)(0.)
    Array(1., dtype=float32, weak_type=True)
    """
    return pytree.map(lambda leaf: name_p.bind(operands_of([leaf])[0], name=name), x)


def checkpoint_name_fwd(x: PyTree, name: str) -> Any:
    """As ``checkpoint_name``; derivatives pass without a name.

    >>> jax.grad(lambda x: jax.ad_checkpoint.checkpoint_name_fwd(x * x, "square"))(3.)
    Array(6., dtype=float32, weak_type=True)
    """
    def named(leaf: Value) -> Any:
        return name_p.bind(leaf, name=name)

    function = custom_jvp(named)
    function.defjvp(lambda primals, tangents: (named(*primals), *tangents))
    return pytree.map(lambda leaf: function(operands_of([leaf])[0]), x)
