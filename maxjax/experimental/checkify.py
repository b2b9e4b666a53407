"""jax.experimental.checkify: run-time checks, as values that a function returns.

``checkify(f)`` interprets the jaxpr of ``f`` and threads an ``Error`` through it: through calls,
and through loops and branches as extra carries and results. A check adds to it; nothing is raised
until the error is examined.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes, pytree
from maxjax._base.meshes import PartitionSpec
from maxjax._base.source import function_location
from maxjax._higher_order import custom_jvp as custom
from maxjax._higher_order import scan as scan_module
from maxjax._higher_order import while_loop as while_module
from maxjax._higher_order.checkpoint import remat_p
from maxjax._higher_order.cond import cond_p
from maxjax._higher_order.control import rearranged
from maxjax._higher_order.custom_jvp import custom_jvp_call_p
from maxjax._higher_order.custom_vjp import custom_vjp_call_p
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.outputs import check_outputs
from maxjax._higher_order.scan import scan_p
from maxjax._higher_order.while_loop import while_p
from maxjax._ir.control_flow import structure_of
from maxjax._ir.effects import Effect
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, aval_of, context
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
from maxjax._primitives.rules import replicated_factors
from maxjax._sharding.shard_map import inside, shard_map_p
from maxjax._transforms.batching import to_axis
from maxjax.experimental._checkify_errors import (
    BatchedError,
    DivisionByZeroError,
    ErrorCategory,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    NaNError,
    OOBError,
)

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]

# --- the error value ------------------------------------------------------------------------------


class Kind(NamedTuple):
    """The key of checks that share a slot in an error: category and types of values."""

    category: ErrorCategory
    types: tuple[ShapedArray, ...]


class Cause:
    """A check in the program: how its values are turned into an exception."""

    __slots__ = ("build",)

    def __init__(self, build: Callable[[Sequence[Any]], JaxException]):
        self.build = build


class Place(NamedTuple):
    """The first failure of a kind: whether it occurred, the code of its cause, its values."""

    failed: Any
    code: Any
    values: list[Any]


Structure = tuple[tuple[Kind, ...], tuple[tuple[int, Cause], ...]]


class Error:
    """The failed checks; a pytree, so that it may be a result of ``jit`` or ``vmap``."""

    __slots__ = ("_causes", "_places")

    def __init__(self, places: dict[Kind, Place], causes: dict[int, Cause]):
        self._places = places
        self._causes = causes

    def get(self) -> str | None:
        """The message of the first check that failed; None if none did."""
        exception = self.get_exception()
        return None if exception is None else str(exception)

    def get_exception(self) -> JaxException | None:
        """The exception for the first check that failed; None if none did."""
        shapes = [np.shape(place.failed) for place in self._places.values()]
        if not any(shapes):
            return self._exception(())
        shape = np.broadcast_shapes(*shapes)
        found = ((index, self._spread(shape)._exception(index)) for index in np.ndindex(*shape))
        failed = {index: exception for index, exception in found if exception is not None}
        return BatchedError(failed) if failed else None

    def throw(self) -> None:
        """Raises JaxRuntimeError if a check failed; ``checkify`` handles it like ``check``."""
        _report(self)

    def __repr__(self) -> str:
        return f"Error({self.get()})"

    def _exception(self, index: tuple[int, ...]) -> JaxException | None:
        """The exception of the first cause in program order, for one element of a batch."""
        failed = [(int(np.asarray(place.code)[index]), place) for place in self._places.values()
                  if np.asarray(place.failed)[index]]
        if not failed:
            return None
        code, place = min(failed, key=lambda pair: pair[0])
        return self._causes[code].build([x[index] if index else x for x in place.values])

    def _spread(self, shape: tuple[int, ...]) -> Error:
        """The same checks, in each element of a batch."""
        def spread(kind: Kind, place: Place) -> Place:
            rank = np.ndim(place.failed)
            if rank == len(shape):
                return place
            failed, code = (jnp.broadcast_to(x, shape) for x in (place.failed, place.code))
            return Place(failed, code, [
                jnp.broadcast_to(x, (*shape, *aval.shape))
                for x, aval in zip(place.values, kind.types, strict=True)])

        return Error({kind: spread(kind, place) for kind, place in self._places.items()},
                     self._causes)

    # --- as flat values ---
    def leaves(self) -> list[Any]:
        return [x for place in self._places.values()
                for x in (place.failed, place.code, *place.values)]

    def structure(self) -> Structure:
        return tuple(self._places), tuple(self._causes.items())

    @staticmethod
    def of(structure: Structure, leaves: Iterable[Any]) -> Error:
        kinds, causes = structure
        given = iter(leaves)
        return Error({kind: Place(next(given), next(given), [next(given) for _ in kind.types])
                      for kind in kinds}, dict(causes))

    # --- with more in it ---
    def adding(self, kind: Kind, place: Place, causes: dict[int, Cause]) -> Error:
        """Adds a check; an earlier failure remains."""
        known = self._places.get(kind)
        if known is not None:
            def chosen(before: Any, now: Any) -> Any:
                failed = known.failed
                rank = max(np.ndim(before), np.ndim(now))
                return jnp.where(jnp.reshape(failed, (*np.shape(failed), *[1] * (
                    rank - np.ndim(failed)))), before, now)

            place = Place(known.failed | place.failed, chosen(known.code, place.code),
                          list(map(chosen, known.values, place.values)))
        return Error({**self._places, kind: place}, {**self._causes, **causes})

    def with_kinds(self, kinds: Iterable[Kind]) -> Error:
        """Adds slots for these kinds, without failures."""
        places = dict(self._places)
        for kind in kinds:
            if kind not in places:
                places[kind] = Place(jnp.zeros((), bool), jnp.full((), -1, np.int32), [
                    jnp.ones(aval.shape, aval.dtype) for aval in kind.types])
        return Error(places, self._causes)

    def with_causes(self, structure: Structure) -> Error:
        return Error(self._places, {**self._causes, **dict(structure[1])})


pytree.register(Error, lambda error: (tuple(error.leaves()), error.structure()), Error.of)

init_error = Error({}, {})
_next_code = itertools.count(1).__next__


def _failing(error: Error, failed: Any, category: ErrorCategory, values: Sequence[Any],
             build: Callable[[Sequence[Any]], JaxException]) -> Error:
    """``error`` with a check added that fails where ``failed`` is true."""
    code = _next_code()
    # The same type in all loops and branches: never weak.
    values = [lax.convert_element_type(x, x.dtype) for x in map(jnp.asarray, values)]
    kind = Kind(category, tuple(aval_of(x) for x in values))
    place = Place(jnp.asarray(failed), jnp.full((), code, np.int32), values)
    return error.adding(kind, place, {code: Cause(build)})


# --- check ----------------------------------------------------------------------------------------


class _CheckEffect(Effect):
    """Raises an error: only ``checkify`` can run it."""

    def check_runnable(self) -> None:
        raise ValueError(
            "Cannot abstractly evaluate a checkify.check which was not functionalized. This "
            "probably means you tried to stage (jit/scan/pmap/...) a `check` without "
            "functionalizing it through `checkify.checkify`.")


_check_effect = _CheckEffect("Check")


def _check_eager(operands: Sequence[Any], *, structure: Structure, debug: bool) -> list[Any]:
    exception = None if debug else Error.of(structure, operands).get_exception()
    if exception is not None:
        raise JaxRuntimeError(str(exception)) from exception
    return []


def _check_batch(size: int, operands: Sequence[Any], axes: Sequence[int | None], *,
                 structure: Structure, debug: bool) -> tuple[list[Any], list[Any]]:
    _report(Error.of(structure, [
        to_axis(x, axis, 0, size) for x, axis in zip(operands, axes, strict=True)]), debug)
    return [], []


check_p = Primitive(
    "check",
    abstract=lambda *avals, **params: (),
    # Only debug checks get here, and they have no effect outside checkify.
    evaluate=lambda *values, **params: [],
    host_reason="a check that nothing looks at",
    eager=_check_eager,
    effects=lambda structure, debug: frozenset() if debug else frozenset({_check_effect}),
    jvp=lambda primals, tangents, **params: (check_p.bind(*primals, **params), []),
    batch=_check_batch,
    factors=replicated_factors,
    multiple_results=True,
    cacheable=False,
)


def _report(error: Error, debug: bool = False) -> None:
    if any(np.shape(place.failed) for place in error._places.values()):
        error = _last_of_batch(error)
    check_p.bind(*map(jnp.asarray, error.leaves()), structure=error.structure(), debug=debug)


def _last_of_batch(error: Error) -> Error:
    """For each kind, the last element of the batch that failed."""
    places = {}
    for kind, place in error._places.items():
        rank = len(np.shape(place.failed))
        failed = jnp.ravel(place.failed)
        index = failed.size - 1 - jnp.argmax(failed[::-1])
        places[kind] = Place(*pytree.map(
            lambda x, index=index, rank=rank: jnp.reshape(x, (-1, *x.shape[rank:]))[index],
            tuple(place)))
    return Error(places, error._causes)


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Adds an error where ``pred`` is false.

    Outside ``checkify`` it raises at once, and cannot be used in ``jit`` or a loop.

    Args:
      pred: a boolean scalar.
      msg: a format string.
      fmt_args, fmt_kwargs: pytrees of arrays for the format.
      debug: see ``debug_check``.

    Raises:
      TypeError: ``pred`` is not a boolean scalar, or a format argument is not an array.
      JaxRuntimeError: outside ``checkify``, if ``pred`` is false.

    >>> def f(x):
    ...     checkify.check(x > 0, "{x} needs to be positive!", x=x)
    ...     return 1 / x
    >>> error, _ = jax.jit(checkify.checkify(f))(-3.)
    >>> error.get()
    '-3.0 needs to be positive! (`check` failed)'
    """
    _check(pred, msg, fmt_args, fmt_kwargs, debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """``check`` under ``checkify``; elsewhere it does nothing, and may be used in any program.

    >>> jax.jit(lambda x: checkify.debug_check(x > 0, "not positive"))(-3.)
    """
    _check(pred, msg, fmt_args, fmt_kwargs, True)


def _check(pred: Any, msg: str, args: tuple[Any, ...], kwargs: dict[str, Any],
           debug: bool) -> None:
    if not (isinstance(pred, bool) or (
            isinstance(pred, Array) and pred.shape == () and pred.dtype == dtypes.bool_)):
        name = "debug_check" if debug else "check"
        raise TypeError(f"{name} takes a scalar pred as argument, got {pred}")
    values, tree = pytree.flatten((args, kwargs))
    for value in values:
        if not isinstance(value, (Array, np.ndarray)):
            raise TypeError("Formatting arguments to checkify.check need to be PyTrees of arrays, "
                            f"but got {value!r} of type {type(value)}.")
    _report(_failing(init_error, jnp.logical_not(pred), FailedCheckError, values,
                     lambda given: FailedCheckError(msg, *pytree.unflatten(tree, given))), debug)


def check_error(error: Error) -> None:
    """Raises if ``error`` records a failure: the inverse of ``checkify``, which records it again.

    Raises:
      TypeError: ``error`` is not an ``Error``.
      JaxRuntimeError: outside ``checkify``, if a check failed.
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    _report(error)


# --- the interpreter ------------------------------------------------------------------------------

Enabled = frozenset[ErrorCategory]
Results = tuple[Error, Sequence[Any]]
Rule = Callable[[JaxprEqn, Enabled, Error, list[Any]], Results]
_rules: dict[Primitive, Rule] = {}


def _interpret(jaxpr: Jaxpr, consts: Sequence[Any], enabled: Enabled, error: Error,
               *args: Any) -> tuple[Error, list[Any]]:
    """Runs a jaxpr under the current trace, with its checks."""
    def checked(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        nonlocal error
        rule = _rules.get(eqn.primitive)
        if rule is not None:
            error, results = rule(eqn, enabled, error, operands)
            return results
        results = apply_equation(eqn, operands)
        if eqn.primitive.may_give_nan:
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
        return _interpret(closed.jaxpr, closed.consts, enabled, error, *args)

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
    return _failing(error, jnp.any(jnp.stack(found)), NaNError, (), lambda _: NaNError(name))


@_rule(div_p)
def _div_rule(eqn: JaxprEqn, enabled: Enabled, error: Error, operands: list[Any]) -> Results:
    if DivisionByZeroError in enabled:
        error = _failing(error, jnp.any(jnp.equal(operands[1], 0)), DivisionByZeroError, (),
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
    return _failing(error, jnp.any(outside), OOBError, (place,),
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
    found = Error.of(eqn.params["structure"], operands)
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
        found, outs = _interpret(inner.jaxpr, inner.consts, enabled, init_error, *args)
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
    return _interpret(closed.jaxpr, closed.consts, enabled, error, *operands)


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
        result, outs = _interpret(closed.jaxpr, closed.consts, enabled,
                                  Error.of(before, values[:count]), *consts, *values[count:])
        after = result.structure()
        return [*result.leaves(), *outs]

    def jvp(primals: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
        outs, out_tangents = params["jvp"](primals[count:], tangents[count:])
        return [*primals[:count], *outs], [*[None] * count, *out_tangents]

    def stage(trace: Any, function: Any, jvp: Any, args: Sequence[Any]) -> list[Any]:
        return custom.stage(trace, function, jvp, args, name=params["name"],
                            rule_name=params["jvp"].__name__,
                            symbolic_zeros=params["symbolic_zeros"])

    results = context.trace.apply_custom_jvp(
        function, jvp, [*error.leaves(), *args], stage=stage)
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
        reverse=params["reverse"], unroll=params["unroll"],
        split_transpose=params["_split_transpose"]))


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
        return _interpret(cond.jaxpr, cond.consts, enabled, error, *args)

    def step(error: Error, *args: Any) -> Results:
        error, outs = _interpret(body.jaxpr, body.consts, enabled, error, *args[num_cond:])
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


# --- checkify -------------------------------------------------------------------------------------

user_checks: Enabled = frozenset({FailedCheckError})
nan_checks: Enabled = frozenset({NaNError})
index_checks: Enabled = frozenset({OOBError})
div_checks: Enabled = frozenset({DivisionByZeroError})
float_checks: Enabled = nan_checks | div_checks
automatic_checks: Enabled = float_checks | index_checks
all_checks: Enabled = automatic_checks | user_checks


def checkify(f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks
             ) -> Callable[..., tuple[Error, Any]]:
    """A function that returns an ``Error`` and the result of ``f``.

    Args:
      f: a function of any arguments; it may contain ``check``s.
      errors: which checks are enabled. ``user_checks``: those in ``f``; ``nan_checks``: an
        operation produced a NaN; ``div_checks``: a division by zero; ``index_checks``: an index out
        of bounds. They combine with ``|``: ``float_checks``, ``automatic_checks``, ``all_checks``.

    The result may be jitted, mapped and differentiated.

    >>> def f(x, i):
    ...     return jnp.sin(x)[i]
    >>> error, y = checkify.checkify(f, errors=checkify.automatic_checks)(
    ...     jnp.ones(3), jnp.array(5))
    >>> error.get().split(": ")[1].strip()
    'index 5 is out of bounds for axis 0 with size 3.'
    >>> error, y = jax.jit(checkify.checkify(jnp.log, errors=checkify.nan_checks))(-1.)
    >>> error.throw()
    Traceback (most recent call last):
    ...
    maxjax.experimental.checkify.JaxRuntimeError: nan generated by primitive: log.
    """
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        location = function_location(f)
        tree: Any = None

        def flat() -> list[Any]:
            nonlocal tree
            # The arguments are closed over, so that their types do not change.
            outputs = f(*args, **kwargs)
            leaves, tree = pytree.flatten(outputs)
            return check_outputs(leaves, location, "checkify", outputs)

        closed = trace_to_jaxpr(flat, [], location, "checkify")
        error, outs = _interpret(closed.jaxpr, closed.consts, frozenset(errors), init_error)
        return error, pytree.unflatten(tree, outs)

    return checked
