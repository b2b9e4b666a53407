"""cond and switch: one of several branches, chosen by an index.

The operands are the index (int32, in range) and those that all branches take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import config, dtypes, pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.tracebacks import boundary
from maxjax._higher_order import refs
from maxjax._higher_order.control import (
    Traced,
    check_branches,
    chosen,
    either,
    forwarded,
    merged,
    operands_of,
    rearranged,
    split_linearized,
    traced,
)
from maxjax._higher_order.python_control import known
from maxjax._higher_order.structured import Batched, bind_known, structured
from maxjax._ir.contract import CLOSED_JAXPRS, takes
from maxjax._ir.control_flow import BodyRule, ControlFlow, Group, Role
from maxjax._ir.costs import Cost, XlaCost
from maxjax._ir.effects import io_effect, ordered_io_effect
from maxjax._ir.evaluate import eval_jaxpr, eval_with_refs
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, Var, derived
from maxjax._ir.refs import RefsTouched, RefUse, read_all, write_back
from maxjax._ir.rule_groups import Derivative, Host, Printed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, aval_of, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, HostValue, Params, Value
from maxjax._primitives import fitting
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import clamp_p, eq_p, ne_p, select_n_p
from maxjax._primitives.convert import convert_element_type, stop_gradient_p
from maxjax._primitives.rules import is_linear, scalar_like
from maxjax._primitives.varying import like_type
from maxjax._transforms.batching import batch_jaxpr, to_axis
from maxjax._transforms.jvp import instantiate
from maxjax._transforms.linearize import LinearTrace, by_linearization, placeholder
from maxjax._transforms.simplify import simplify_once
from maxjax._transforms.transpose import of_types, transpose_with_refs

# --- the primitive --------------------------------------------------------------------------------

Branches = tuple[ClosedJaxpr, ...]

_FLOW = ControlFlow(groups=(Group(Role.INDEX, 1), Group(Role.CONSTANT)),
                    bodies=(BodyRule("branches", "branch", takes=(1,)),))


def _specialize(in_avals: Sequence[ShapedArray], params: Params,
                out_avals: Sequence[ShapedArray]) -> Callable[..., list[Any]]:
    functions: list[Any] = []

    def run(index: Any, *values: HostValue) -> list[Any]:
        if not functions:      # made at the first call: many an equation is only written down
            functions.extend(interpreter(simplify_once(branch)) for branch in params["branches"])
        # Functions keep the index in bounds; a program that was deserialized may not.
        return functions[max(0, min(index, len(functions) - 1))](*values)

    return run


def _evaluate(index: Value, *values: HostValue, branches: Branches) -> list[Any]:
    return _specialize((), {"branches": branches}, ())(index, *values)


def _union(branches: Branches, outputs: Callable[[ClosedJaxpr], tuple[bool, ...]]
           ) -> tuple[bool, ...]:
    """What ``outputs`` marks for any of the branches."""
    marks = (False,) * len(branches[0].out_avals)
    for branch in branches:
        marks = either(marks, outputs(branch))
    return marks


def _residual_places(branches: Sequence[Sequence[ShapedArray]]
                     ) -> tuple[list[ShapedArray], list[list[int]]]:
    """The types of the places that all branches' residuals share, and for each branch those of its
    own. Residuals of one type share a place: a branch fills its own and leaves the others zero."""
    places: list[ShapedArray] = []
    taken: list[list[int]] = []
    for residuals in branches:
        free = list(range(len(places)))
        mine = []
        for aval in residuals:
            place = next((n for n in free if places[n] is aval), None)
            if place is None:
                place = len(places)
                places.append(aval)
            else:
                free.remove(place)
            mine.append(place)
        taken.append(mine)
    return places, taken


def _linearize(trace: LinearTrace, primals: Sequence[Array], tangents: Sequence[Array | None], *,
               branches: Branches) -> tuple[list[Any], list[Any]]:
    index, *operands = primals
    division = trace.division
    if tangents[0] is not None:      # part of a rule: which branch runs is not known
        count = len(branches[0].out_avals)
        return [None] * count, trace.record(cond_p, [
            x if t is None else t for x, t in zip(primals, tangents, strict=True)],
            {"branches": branches})
    nonzero = tuple(tangent is not None for tangent in tangents[1:])
    count, num_operands = len(branches[0].out_avals), len(operands)
    nothing = (False,) * count
    given = (True,) * num_operands
    out_nz = _union(branches, lambda branch: division.divide(branch, nonzero, nothing)[2])
    known_outs = division.known(out_nz)
    splits = [split_linearized(branch, division, nonzero, out_nz, given, known_outs, 0)
              for branch in branches]
    places, taken = _residual_places([split.forward.out_avals[count:] for split in splits])
    results = bind_known(cond_p, primals, {"branches": tuple(
        with_places(split.forward, count, tuple(places), tuple(mine))
        for split, mine in zip(splits, taken, strict=True))},
        (*known_outs, *(True,) * len(places)))
    outs, residuals = results[:count], results[count:]
    if not any(out_nz):
        return outs, [None] * count

    known = [*operands, *outs, *residuals]
    starts = {"input": 0, "output": num_operands, "inside": num_operands + count}
    positions: list[list[int]] = []      # for each branch, where among these its residuals are
    for split, mine in zip(splits, taken, strict=True):
        hoisted = eval_jaxpr(split.hoisted.jaxpr, split.hoisted.consts)
        found: list[int] = []
        for kind, number in split.sources:
            if kind == "hoisted":
                position = len(known)
                known.append(hoisted[number])
            else:
                position = starts[kind] + (mine[number] if kind == "inside" else number)
                if position in found:      # a second operand of the same value
                    known.append(known[position])
                    position = len(known) - 1
            found.append(position)
        positions.append(found)
    directions = [t for t in tangents if t is not None]
    # Only what some branch takes is an operand of the second choice.
    used = sorted({position for found in positions for position in found})
    linear = []
    for split, found in zip(splits, positions, strict=True):
        inputs = [found.index(position) if position in found else aval_of(known[position])
                  for position in used]
        start = len(found)
        linear.append(rearranged(
            split.linear, (*inputs, *range(start, start + len(directions)))))
    out_tangents = cond_p.bind(
        index, *(known[position] for position in used), *directions, branches=tuple(linear))
    return outs, merged(out_nz, out_tangents)


@derived
def with_places(forward: ClosedJaxpr, count: int, places: tuple[ShapedArray, ...],
                 mine: tuple[int, ...]) -> ClosedJaxpr:
    """The outputs, then something for each place: residuals, or zeros."""
    def branch(*args: Value) -> list[Any]:
        results = eval_jaxpr(forward.jaxpr, forward.consts, *args)
        filled = dict(zip(mine, results[count:], strict=True))
        return [*results[:count], *(like_type(
            filled[n] if n in filled else placeholder(aval.off_mesh()), aval)
            for n, aval in enumerate(places))]

    return trace_to_jaxpr(branch, forward.in_avals, forward.jaxpr.debug_info)


@derived
def _transposed(branch: ClosedJaxpr, linear: tuple[bool, ...], given: tuple[bool, ...],
                wanted: tuple[bool, ...]) -> ClosedJaxpr:
    """(known operands, cotangents) -> cotangents of the linear operands that are wanted."""
    backward, nonzero = transpose_with_refs(branch, linear, given)
    avals = chosen(branch.in_avals, linear)

    def transposed(*args: Value) -> list[Any]:
        found = merged(nonzero, eval_with_refs(backward, *args))
        refs.keep_types(context.trace)
        return [instantiate(cotangent, aval.cotangent()) for cotangent, aval, flag in zip(
            found, avals, wanted, strict=True) if flag]

    count = len(backward.in_avals) - len(backward.refs)
    return trace_to_jaxpr(transposed, backward.in_avals[:count], branch.jaxpr.debug_info,
                          with_refs=True)


def _transpose(cotangents: Sequence[Array | None], index: Value, *operands: Any,
               branches: Branches) -> list[Any]:
    linear = tuple(map(is_linear, operands))
    cotangents = of_types(cotangents, branches[0].out_avals)
    given = tuple(cotangent is not None for cotangent in cotangents)
    wanted = (False,) * sum(linear)
    for branch in branches:
        wanted = either(wanted, transpose_with_refs(branch, linear, given)[1])
    backward = [_transposed(branch, linear, given, wanted) for branch in branches]
    uses = refs.union(*(branch.refs for branch in backward))
    results = cond_p.bind(
        index, *(x for x, lin in zip(operands, linear, strict=True) if not lin),
        *(cotangent for cotangent in cotangents if cotangent is not None), *read_all(uses),
        branches=tuple(refs.extended(branch, uses) if uses else branch for branch in backward))
    results = write_back(uses, results)
    return [None, *merged(linear, merged(wanted, results))]


def _batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *,
           branches: Branches) -> tuple[list[Any], list[int | None]]:
    (index, *values), (index_axis, *value_axes) = operands, axes
    if index_axis is None:
        batched = Batched(_FLOW.structure({"branches": branches}, len(operands)), size, axes)
        results = cond_p.bind(*operands, branches=tuple(batched.jaxprs))
        return results, batched.out_axes
    if any(effect in branch.effects for branch in branches
           for effect in (io_effect, ordered_io_effect)):
        raise NotImplementedError("IO effect not supported in vmap-of-cond.")
    return _select_branches(size, index, values, value_axes, branches)


def _select_branches(size: int, index: Array, operands: Sequence[Array],
                     axes: Sequence[int | None], branches: Branches) -> tuple[
                         list[Any], list[int | None]]:
    """Computes all branches of all elements, and selects."""
    values = [to_axis(x, axis, 0, size) if axis is not None or _has_tangents(x) else x
              for x, axis in zip(operands, axes, strict=True)]
    new_axes = tuple(0 if axis is not None or _has_tangents(x) else None
                     for x, axis in zip(operands, axes, strict=True))
    results = []
    for number, branch in enumerate(branches):
        batched, _ = batch_jaxpr(branch, size, new_axes, True)
        mine = eq_p.bind(index, scalar_like(number, index.dtype))
        # No derivative goes back through the elements that take another branch: there the
        # branch may be anywhere, and zero times infinity is not zero.
        results.append(eval_jaxpr(batched.jaxpr, batched.consts, *(
            select_n_p.bind(_over(mine, x.shape), stop_gradient_p.bind(x), x)
            if _has_tangents(x) else x for x in values)))
    if len(branches) == 2:
        index = ne_p.bind(index, scalar_like(0, index.dtype))
    outs = [select_n_p.bind(_over(index, cases[0].shape), *cases)
            for cases in zip(*results, strict=True)]
    return outs, [0] * len(outs)


def _has_tangents(value: Value) -> bool:
    return dtypes.has_tangents(value.dtype)


def _over(which: Array, shape: tuple[int, ...]) -> Any:
    return which if which.shape == shape else broadcast_in_dim(which, shape, (0,))


cond_p = structured(
    "cond",
    _FLOW,
    contract=takes(
        (1, None), fitting.of_dtypes("int32", lambda dtype: dtype == dtypes.int32, 0),
        fitting.scalar_first, branches=CLOSED_JAXPRS),
    evaluate=_evaluate,
    host=Host(specialize=_specialize),
    derivative=Derivative(linearize=_linearize, partly=by_linearization),
    transpose=_transpose,
    batch=_batch,
    printed=Printed(lambda params: (
        {"branches": params["branches"]} if "branches" in params else params)),
    cost=Cost(xla=XlaCost(alone=True, chooses=True)),
)


# --- the functions --------------------------------------------------------------------------------


class _NoOperand:
    """The default of ``operand``, since None is a valid one."""

    def __repr__(self) -> str:
        return "<no operand>"


_NO_OPERAND = _NoOperand()


@boundary
def cond(pred: ArrayLike, true_fun: Callable[..., PyTree], false_fun: Callable[..., PyTree],
         *operands: PyTree, operand: PyTree = _NO_OPERAND) -> Any:
    """Applies ``true_fun`` where ``pred`` is true, else ``false_fun``.

    Both are traced, and give results of the same structure, shapes and dtypes; one is run. Under
    ``vmap`` with a predicate that differs between elements both are run, and results selected.

    Args:
      pred: a boolean scalar; a number counts as true where it is not zero.
      true_fun, false_fun: functions of the operands, pytrees.
      operands: what the chosen function is called with.
      operand: the same, for a single one.

    Returns:
      The result of the function that ran. Under reverse-mode differentiation only its derivative is
      computed.

    Raises:
      TypeError: ``pred`` is not a scalar, or the results differ in structure or type.

    See also: ``lax.switch``, ``lax.select``, ``jnp.where``, ``lax.while_loop``.

    >>> lax.cond(jnp.array(False), lambda x: x + 1, lambda x: -x, 3)
    Array(-3, dtype=int32, weak_type=True)
    """
    if not (callable(true_fun) and callable(false_fun)):
        # cond(pred, true_operand, true_fun, false_operand, false_fun), the old form.
        if len(operands) == 2 and callable(false_fun) and callable(operands[1]):
            true_operand, on_true, false_operand, on_false = true_fun, false_fun, *operands
            return cond(pred, lambda pair: on_true(pair[0]), lambda pair: on_false(pair[1]),
                        (true_operand, false_operand))
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    if operand is not _NO_OPERAND:
        if operands:
            raise TypeError("if 'operand' keyword is passed then no positional operands can be "
                            f"passed, got operand={operand} and positional operands {operands}")
        operands = (operand,)
    index = _index_of(pred)
    if config.disable_jit.value and known(index):
        return (true_fun if int(index) else false_fun)(*operands)
    leaves, tree = pytree.flatten(operands)
    if refs.has_refs(leaves):
        (on_true, given), (on_false, _) = (refs.with_arguments(function, "cond", operands)
                                           for function in (true_fun, false_fun))
        return cond(pred, on_true, on_false, *given)
    values = operands_of(leaves)
    branches, uses = _traced_branches("cond", (true_fun, false_fun), tree, values)
    if uses:
        on_true, on_false = (refs.functional(function, uses) for function in (true_fun, false_fun))
        new, result = cond(pred, on_true, on_false, read_all(uses), *operands)
        refs.write_all(uses, new)
        return result
    check_branches("cond", ("true_fun", true_fun, branches[0]),
                   ("false_fun", false_fun, branches[1]))
    return _choose(index, branches[::-1], values, branches[0].tree)


def _index_of(pred: ArrayLike) -> Any:
    """A predicate as 0 or 1."""
    if pred is None:
        raise TypeError("cond predicate is None")
    if not isinstance(pred, (Array, np.ndarray, np.generic, bool, int, float, complex)):
        if isinstance(pred, (list, tuple, str)):
            raise TypeError(f"Pred must be a scalar, got {pred} of type {type(pred)}")
        raise TypeError(f"Pred type must be either boolean or number, got {pred}.")
    if np.shape(pred):
        raise TypeError(f"Pred must be a scalar, got {pred} of shape {np.shape(pred)}.")
    value, = operands_of([pred])
    dtype = value.aval.dtype
    if not dtypes.is_bool(dtype):
        if not dtypes.is_numeric(dtype) or dtypes.is_complex(dtype):
            raise TypeError(f"Pred type must be either boolean or number, got {dtype}.")
        value = ne_p.bind(value, scalar_like(0, dtype))
    return convert_element_type(value, dtypes.int32)


@boundary
def switch(index: ArrayLike, branches: Sequence[Callable[..., PyTree]], *operands: PyTree,
           operand: PyTree = _NO_OPERAND) -> Any:
    """Applies the branch of the given number; an index out of range is clamped.

    Args:
      index: an integer scalar.
      branches: functions of the operands with results of the same structure, shapes and dtypes.
      operands: what the chosen branch is called with.
      operand: the same, for a single one.

    Returns:
      The result of the branch that ran; one that is not chosen is traced, too, but not run.

    Raises:
      TypeError: ``index`` is not an integer scalar, or the results differ in structure or type.
      ValueError: there are no branches.

    See also: ``lax.cond``, ``lax.select_n``, ``jnp.choose``.

    >>> lax.switch(5, [lambda x: x, lambda x: 10 * x], 3)
    Array(30, dtype=int32, weak_type=True)
    """
    if not all(map(callable, branches)):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    if operand is not _NO_OPERAND:
        if operands:
            raise TypeError("if 'operand' keyword is passed then no positional operands can be "
                            f"passed, got operand={operand} and positional operands {operands}")
        operands = (operand,)
    if np.shape(index):
        raise TypeError(f"Branch index must be scalar, got {index} of shape {np.shape(index)}.")
    if not isinstance(index, (Array, np.ndarray, np.generic, bool, int, float, complex)):
        raise TypeError(f"Index type must be an integer, got {index}.")
    value, = operands_of([index])
    if not dtypes.is_integer(value.aval.dtype):
        raise TypeError(
            f"Index type must be an integer, got {index} as {value.aval.dtype.name}")
    branches = tuple(branches)
    if not branches:
        raise ValueError("Empty branch sequence")
    if len(branches) == 1:
        return branches[0](*operands)
    value = convert_element_type(value, dtypes.int32)
    last = scalar_like(len(branches) - 1, dtypes.int32)
    value = clamp_p.bind(scalar_like(0, dtypes.int32), value, last)
    if config.disable_jit.value and known(value):
        return branches[int(value)](*operands)
    leaves, tree = pytree.flatten(operands)
    if refs.has_refs(leaves):
        pairs = [refs.with_arguments(function, "switch", operands) for function in branches]
        return switch(index, [function for function, _ in pairs], *pairs[0][1])
    values = operands_of(leaves)
    results, uses = _traced_branches("switch", branches, tree, values)
    if uses:
        new, result = switch(index, [refs.functional(function, uses) for function in branches],
                             read_all(uses), *operands)
        refs.write_all(uses, new)
        return result
    for number, result in enumerate(results[1:], 1):
        check_branches("switch", ("branch 0", branches[0], results[0]),
                       (f"branch{number}", branches[number], result))
    return _choose(value, results, values, results[0].tree)


def _traced_branches(kind: str, functions: Sequence[Callable[..., PyTree]], tree: PyTreeSpec,
                     operands: Sequence[Array]) -> tuple[list[Traced], list[RefUse]]:
    """What the functions were traced to, or the array references that they use."""
    avals = [x.aval for x in operands]
    branches, touched = [], []
    for function in functions:
        try:
            branches.append(traced(function, kind, tree, avals))
        except RefsTouched as error:
            touched.append(refs.callers_uses(error, function))
    return branches, refs.union(*touched)


def _choose(index: Array, branches: Sequence[Traced], operands: Sequence[Array],
            tree: PyTreeSpec) -> Any:
    """Binds the branches; what each closes over is among the operands of all.

    Args:
      tree: of the result; the branches' are equal, but for metadata that is equal and differs.
    """
    consts: dict[int, Any] = {}
    for branch in branches:
        consts.update((id(value), value) for value in branch.consts)
    order = {key: position for position, key in enumerate(consts)}
    values = list(consts.values())
    avals = [aval_of(value) for value in values]
    closed = []
    for branch in branches:
        inputs: list[Any] = list(avals)
        for number, value in enumerate(branch.consts):
            inputs[order[id(value)]] = number
        start = len(branch.consts)
        closed.append(rearranged(
            branch.closed, (*inputs, *range(start, start + len(operands)))))
    # An operand that is the same result of all branches does not depend on the index.
    given = [*values, *operands]
    same = [found[0] if all(value is found[0] for value in found) else None
            for found in zip(*(_given_back(branch, given) for branch in closed), strict=True)]
    chosen_outputs = tuple(n for n, value in enumerate(same) if value is None)
    if len(chosen_outputs) < len(same):
        closed = [rearranged(branch, tuple(range(len(given))), chosen_outputs)
                  for branch in closed]
    results = iter(cond_p.bind(index, *given, branches=tuple(closed)))
    return pytree.unflatten(tree, [
        next(results) if value is None else value for value in same])


def _given_back(branch: ClosedJaxpr, operands: Sequence[Value]) -> list[Any]:
    """For each result the operand, or the value that the branch closes over, which it is."""
    held = dict(zip(branch.jaxpr.constvars, branch.consts, strict=True))
    return [held.get(var) if isinstance(var, Var) and number is None
            else None if number is None else operands[number]
            for var, number in zip(branch.jaxpr.outvars, forwarded(branch), strict=True)]


def platform_dependent(*args: PyTree, default: Callable[..., PyTree] | None = None,
                       **per_platform: Callable[..., PyTree]) -> Any:
    """Applies the function for the platform that programs run on.

    Args:
      default: for all other platforms.
      per_platform: a function for each, by keyword: ``cpu``, ``cuda``, ``rocm``, ``tpu``.

    Raises:
      NotImplementedError: there is none for this platform, and no default.

    >>> lax.platform_dependent(3, cpu=lambda x: x + 1, default=lambda x: x)
    4
    """
    function = per_platform.get("cpu", default)
    if function is None:
        platforms = tuple((name,) for name in per_platform)
        raise NotImplementedError(
            f"MLIR translation rule for primitive 'platform_index(platforms={platforms})' not "
            "found for platform cpu")
    return function(*args)
