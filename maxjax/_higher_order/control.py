"""What scan, while_loop and cond share: tracing their functions, checking and splitting jaxprs."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from maxjax._base import config, dtypes, pytree, signatures, tree_equality
from maxjax._base.canonical_specs import canonical
from maxjax._base.errors import ConcretizationTypeError
from maxjax._base.pytree import KeyPath, PyTree, PyTreeSpec
from maxjax._base.source import function_location
from maxjax._base.specs import AxisName
from maxjax._higher_order.hi_types import lifted_values
from maxjax._higher_order.outputs import check_outputs
from maxjax._higher_order.refs import keep_types
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var, derived, replaced
from maxjax._ir.liveness import eliminate_dead_code, has_effects, read_variables, variables
from maxjax._ir.refs import RefsTouched
from maxjax._ir.runtime import installed
from maxjax._ir.staging import ArgumentNames, trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer, context, invalid_type
from maxjax._ir.types import ShapedArray, match_up_to_weak_type
from maxjax._ir.typing import Value
from maxjax._primitives.convert import convert_element_type
from maxjax._transforms.linearize import Division

# --- tracing --------------------------------------------------------------------------------------


class Traced:
    """A function of a loop or branch as a jaxpr without constants.

    Attributes:
      closed: the jaxpr; its first inputs are ``consts``.
      consts: the values that the function closes over.
      tree: the structure of its results.
      out_specs: of a ``shard_map``, one for each result.
    """

    __slots__ = ("closed", "consts", "out_specs", "tree")
    out_specs: tuple[Any, ...]

    def __init__(self, closed: ClosedJaxpr, consts: list[Value], tree: PyTreeSpec):
        self.closed = closed
        self.consts = consts
        self.tree = tree


# The traces of each function, by signature; dropped with the function.
_traced: weakref.WeakKeyDictionary[Any, dict[Any, Traced]] = weakref.WeakKeyDictionary()


def forget_traces() -> None:
    """Makes all functions of loops and branches trace again."""
    _traced.clear()


def traced(function: Callable[..., PyTree], kind: str, tree: PyTreeSpec,
           avals: Sequence[ShapedArray], key: Hashable = None,
           call: Callable[..., PyTree] | None = None, argument_names: ArgumentNames = None
           ) -> Traced:
    """The jaxpr of ``function`` at a signature; cached by function object.

    Args:
      kind: what it is traced for, in the words of messages.
      tree, avals: its arguments, as the tuple of them.
      call: what is traced in the function's place; ``key`` distinguishes such calls.
      argument_names: one for each leaf of the arguments, for messages; those of the function's
        parameters, if absent.

    Raises:
      RefsTouched: the function touches array references from outside.
    """
    full_key = (kind, key, tree, tuple(avals), config.trace_state(), context.axis_env,
                context.manual)
    try:
        known = _traced.setdefault(function, {})
    except TypeError:      # unhashable, or it cannot be referred to weakly
        known = {}
    result = known.get(full_key)
    if result is None:
        result = _trace(function, kind, tree, avals, call or function, argument_names)
        if not any(isinstance(value, Tracer) for value in result.consts) and all(
                use.ref._storage.owner is installed.runtime for use in result.closed.refs):
            # A function that closes over tracers is traced anew: they may differ next time. So
            # is one that uses references which live no longer than the trace around it.
            known[full_key] = result
    if result.closed.refs:
        raise RefsTouched(kind, result.closed.refs, result)
    return result


def _trace(function: Callable[..., PyTree], kind: str, tree: PyTreeSpec,
           avals: Sequence[ShapedArray], call: Callable[..., PyTree],
           argument_names: ArgumentNames) -> Traced:
    location = function_location(function)
    if argument_names is None:
        argument_names = functools.partial(parameter_paths, function, tree)
    out_tree: Any = None

    def flat(*tracers: Value) -> Sequence[Any]:
        nonlocal out_tree
        outputs = lifted_values(call(*pytree.unflatten(tree, tracers)))
        leaves, out_tree = pytree.flatten(outputs)
        leaves = check_outputs(leaves, location, kind, outputs)
        keep_types(context.trace)
        return leaves

    closed = trace_to_jaxpr(flat, avals, location, kind, argument_names, with_refs=True)
    jaxpr = closed.jaxpr
    open_jaxpr = Jaxpr([], [*jaxpr.constvars, *jaxpr.invars], jaxpr.outvars, jaxpr.eqns,
                       jaxpr.debug_info)
    return Traced(ClosedJaxpr(open_jaxpr, (), closed.refs), closed.consts,
                  canonical(out_tree))


def parameter_paths(function: Callable[..., PyTree], tree: PyTreeSpec) -> list[str]:
    """A name like ``params['w']`` for each leaf of the tuple of a function's arguments."""
    return signatures.argument_names(function, pytree.tuple_of(tree, pytree.structure({})))


def operands_of(leaves: Sequence[object]) -> list[Any]:
    """The leaves of an argument as arrays and tracers.

    Raises:
      TypeError: one is neither a number nor an array.
    """
    runtime = installed.runtime
    result = []
    for leaf in leaves:
        if isinstance(leaf, Array):
            result.append(leaf)
            continue
        try:
            result.append(runtime.argument(leaf))
        except TypeError:
            raise invalid_type(leaf) from None
    return result


def promote_weak(values: list[Array], out_avals: Sequence[ShapedArray]) -> list[Any] | None:
    """The carries, without weak types that the body's outputs do not have; None if all stay."""
    if len(values) != len(out_avals):
        return None
    changed = False
    result = list(values)
    for position, (value, out) in enumerate(zip(values, out_avals, strict=True)):
        aval = value.aval
        if not aval.weak_type or match_up_to_weak_type(aval, out):
            continue
        if not (dtypes.is_numeric(out.dtype) or dtypes.is_bool(out.dtype)):
            continue
        dtype, _ = dtypes.promote(((aval.dtype, True), (out.dtype, out.weak_type)))
        result[position] = convert_element_type(value, dtype)
        changed = True
    return result if changed else None


# --- messages -------------------------------------------------------------------------------------


def check_carry(what: str, name: str, in_tree: PyTreeSpec, in_avals: Sequence[ShapedArray],
                out_tree: PyTreeSpec, out_avals: Sequence[ShapedArray]) -> None:
    """Raises if a body changes the structure or the types of its carry.

    Args:
      what: "scan body" or "while_loop body".
      name: of the parameter that is the carry.

    Raises:
      TypeError: names the leaves, with what they are and what they were.
    """
    def component(path: KeyPath) -> str:
        place = pytree.path_string(path)
        if not name:
            return "the input carry" + (f" component at {place}" if place else "")
        return f"the input carry {'component ' if place else ''}{name}{place}"

    if in_tree != out_tree:
        differences = list(tree_equality.structure_differences(
            pytree.unflatten(in_tree, in_avals), pytree.unflatten(out_tree, out_avals)))
        lines = [
            f"{component(path)} is {mine} but the corresponding component of the carry output is "
            f"{other}, so {why}" for path, mine, other, why in differences]
        raise TypeError(
            f"{what} function carry input and carry output must have the same pytree structure, "
            f"but they differ:\n\n{_listed(lines)}\n\n"
            "Revise the function so that the carry output has the same pytree structure as the "
            "carry input.")
    if all(map(_alike, in_avals, out_avals)):
        return
    paths = pytree.flatten_with_path(pytree.numbered(in_tree))[0]
    lines, casts = [], []
    for path, mine, other in zip(paths, in_avals, out_avals, strict=True):
        if _alike(mine, other):
            continue
        lines.append(
            f"{component(path)} has type {mine.str_short()} but the corresponding output carry "
            f"component has type {other.str_short()}, so {_mismatch(mine, other)}")
        if other.vma - mine.vma:
            casts.append((
                other.vma - mine.vma, "the initial carry value corresponding to "
                f"{component(path)}"))
    raise TypeError(
        f"{what} function carry input and carry output must have equal types, but they differ:\n\n"
        f"{_listed(lines)}\n\n{_casts(casts, ',')}"
        "Revise the function so that all output types match the corresponding input types.")


def _alike(mine: ShapedArray, other: ShapedArray) -> bool:
    """Whether a carry keeps its type, with how it is split over Explicit axes."""
    return match_up_to_weak_type(mine, other) and _split(mine) == _split(other)


def _split(aval: ShapedArray) -> tuple[Any, ...]:
    """What splits each dimension; nothing where nothing does."""
    entries = () if aval.mesh_spec is None else aval.mesh_spec[1].partitions
    return entries if any(entries) else ()


def check_branches(what: str, first: tuple[str, Callable[..., PyTree], Traced],
                   second: tuple[str, Callable[..., PyTree], Traced]) -> None:
    """Raises where two branches (name, function, what it was traced to) give other results.

    Raises:
      TypeError: names the leaves, with their types.
    """
    (name, function, mine), (other_name, other_function, other) = first, second
    if mine.tree == other.tree and all(map(
            _alike, mine.closed.out_avals, other.closed.out_avals)):
        return
    functions = (f"{name} is {function_location(function)}\n"
                 f"{other_name} is {function_location(other_function)}\n")
    result = pytree.unflatten(mine.tree, mine.closed.out_avals)
    if mine.tree != other.tree:
        lines = []
        for path, left, right, why in tree_equality.structure_differences(
                result, pytree.unflatten(other.tree, other.closed.out_avals), "pytree leaf"):
            place = f" at path {pytree.path_string(path)}" if path else ""
            lines.append(f"{name} output{place} is {left} but {other_name} output{place} is "
                         f"{right}, so {why}")
        raise TypeError(
            f"{what} branch outputs must have the same pytree structure, but they differ:\n\n"
            f"{functions}\n{_listed(lines, False)}\n\n"
            f"Revise {name} and/or {other_name} so that they have the same pytree structure.")
    lines, casts = [], []
    for path, left, right in zip(
            pytree.flatten_with_path(result)[0], mine.closed.out_avals, other.closed.out_avals,
            strict=True):
        if _alike(left, right):
            continue
        place = f" at path {pytree.path_string(path)}" if path else ""
        lines.append(
            f"the output of {name}{place} has type {left.str_short()} but the corresponding "
            f"output of {other_name} has type {right.str_short()}, so {_mismatch(left, right)}")
        if left.vma != right.vma:
            missing = right.vma - left.vma
            where = name if missing else other_name
            casts.append((missing or left.vma - right.vma, f"the output of {where}{place}"))
    raise TypeError(
        f"{what} branches must have equal output types but they differ.\n\n{functions}\n"
        f"{_listed(lines)}\n\n{_casts(casts, '')}"
        f"Revise {name} and/or {other_name} so that all output types match.")


def _listed(lines: Sequence[str], capital: bool = True) -> str:
    if len(lines) == 1:
        line = lines[0]
        return f"{line[0].upper() if capital else line[0]}{line[1:]}."
    return ";\n".join(f"  * {line}" for line in lines) + "."


def _casts(places: Sequence[tuple[frozenset[AxisName], str]], comma: str) -> str:
    """What to do about values that vary over other manual axes: for each, which, and where."""
    if not places:
        return ""
    axes = [tuple(axis for axis in context.manual.axes if axis in missing)
            if context.manual is not None else tuple(missing) for missing, _ in places]
    calls = [f"`jax.lax.pcast(..., {names}, to='varying')`{comma} to {where}"
             for names, (_, where) in zip(axes, places, strict=True)]
    advice = (f"This might be fixed by applying {calls[0]}." if len(calls) == 1 else
              "This might be fixed by:\n" + ";\n".join(f"  * applying {call}" for call in calls)
              + ".")
    return (f"{advice}\nSee https://docs.jax.dev/en/latest/201/shard-map.html#scan-vma for "
            "more information.\n\n")


def _mismatch(left: ShapedArray, right: ShapedArray) -> str:
    what = [name for name, differ in (
        ("dtypes", left.dtype != right.dtype), ("shapes", left.shape != right.shape),
        ("shardings", _split(left) != _split(right)),
        ("manual axis types", left.manual_axis_type != right.manual_axis_type)) if differ]
    return ", and ".join(f"the {name} do not match" for name in what)


# --- jaxprs ---------------------------------------------------------------------------------------


@derived
def rearranged(closed: ClosedJaxpr, inputs: tuple[int | ShapedArray, ...],
               outputs: tuple[int, ...] | None = None) -> ClosedJaxpr:
    """The jaxpr with other inputs and outputs, by their numbers; a type is an unused input."""
    jaxpr = closed.jaxpr
    invars = [jaxpr.invars[item] if isinstance(item, int) else Var(item) for item in inputs]
    outvars = jaxpr.outvars if outputs is None else [jaxpr.outvars[item] for item in outputs]
    return closed.replace(jaxpr=jaxpr.replace(invars=invars, outvars=outvars))


def forwarded(closed: ClosedJaxpr) -> tuple[int | None, ...]:
    """For each output the number of the input that it is; None for what is computed."""
    numbers: dict[Any, int] = {var: number for number, var in enumerate(closed.jaxpr.invars)}
    return tuple(numbers.get(var) if isinstance(var, Var) else None
                 for var in closed.jaxpr.outvars)


def handed_on(outs: Sequence[Value], leaves: Sequence[object], closed: ClosedJaxpr,
              num_consts: int) -> list[Any]:
    """The results of a call; those that are arguments, and numbers of Python's, as these."""
    if not any(leaf.__class__ in dtypes.PYTHON_SCALARS for leaf in leaves):
        return [*outs]
    places = [None if n is None or n < num_consts else n - num_consts for n in forwarded(closed)]
    return [out if place is None or leaves[place].__class__ not in dtypes.PYTHON_SCALARS
            else dtypes.typed_number(leaves[place])
            for out, place in zip(outs, places, strict=True)]


def used_inputs(closed: ClosedJaxpr) -> list[bool]:
    """Which inputs an equation takes, or are outputs."""
    read = read_variables(closed.eqns, closed.outvars)
    return [var in read for var in closed.invars]


class Split:
    """A jaxpr split for linearization, with the residuals sorted by where they come from.

    Attributes:
      forward: inputs -> (outputs, those residuals that must be computed inside).
      linear: (residuals, tangents) -> tangents of the outputs.
      hoisted: the invariant inputs -> the residuals that depend on nothing else.
      sources: for each residual of ``linear`` ("input", number of the input), ("output", number of
        the output), ("hoisted", number) or ("inside", number).
      out_nonzero: which outputs have a tangent.
    """

    __slots__ = ("forward", "hoisted", "linear", "out_nonzero", "sources")
    forward: ClosedJaxpr
    linear: ClosedJaxpr
    hoisted: ClosedJaxpr
    sources: list[tuple[str, int]]
    out_nonzero: tuple[bool, ...]


@derived
def split_linearized(closed: ClosedJaxpr, division: Division, nonzero: tuple[bool, ...],
                     instantiated: tuple[bool, ...], given: tuple[bool, ...],
                     given_outputs: tuple[bool, ...], num_invariant: int) -> Split:
    """Divides a jaxpr in a known and a linear part, and sorts the residuals.

    Args:
      given, given_outputs: the inputs and outputs that are at hand anyway, and no residuals.
      num_invariant: how many of the first inputs are the same in each iteration.
    """
    split = Split()
    forward, linear, split.out_nonzero = division.divide(closed, nonzero, instantiated)
    count = len(closed.out_avals)
    forward, split.linear = _with_literals(forward, linear, count)
    jaxpr = forward.jaxpr
    positions = {var: number for number, var in enumerate(jaxpr.invars)}
    outputs = {atom: number for number, atom in enumerate(jaxpr.outvars[:count])
               if given_outputs[number]}
    invariant: set[Any] = {*jaxpr.constvars, *jaxpr.invars[:num_invariant]}
    hoisted_eqns = []
    for eqn in jaxpr.eqns if num_invariant else ():
        if not has_effects(eqn) and invariant.issuperset(variables(eqn.invars)):
            invariant.update(eqn.outvars)
            hoisted_eqns.append(eqn)
    split.sources = []
    hoisted: list[Any] = []
    inside: list[Any] = []
    for atom in jaxpr.outvars[count:]:
        if atom in positions and given[positions[atom]]:
            split.sources.append(("input", positions[atom]))
        elif atom in invariant:
            split.sources.append(("hoisted", len(hoisted)))
            hoisted.append(atom)
        elif atom in outputs:
            split.sources.append(("output", outputs[atom]))
        else:
            split.sources.append(("inside", len(inside)))
            inside.append(atom)
    split.forward = ClosedJaxpr(
        jaxpr.replace(outvars=[*jaxpr.outvars[:count], *inside]), forward.consts)
    split.hoisted = eliminate_dead_code(ClosedJaxpr(Jaxpr(
        jaxpr.constvars, jaxpr.invars[:num_invariant], hoisted, hoisted_eqns, jaxpr.debug_info),
        forward.consts))
    return split


def _with_literals(forward: ClosedJaxpr, linear: ClosedJaxpr, count: int) -> tuple[
        ClosedJaxpr, ClosedJaxpr]:
    """Residuals that are literals stand in the linear jaxpr itself."""
    residuals = forward.jaxpr.outvars[count:]
    literals = {var: atom for var, atom in zip(
        linear.jaxpr.invars[:len(residuals)], residuals, strict=True)
        if isinstance(atom, Literal)}
    if not literals:
        return forward, linear
    jaxpr = linear.jaxpr
    return (
        ClosedJaxpr(forward.jaxpr.replace(outvars=[
            *forward.jaxpr.outvars[:count], *variables(residuals)]), forward.consts),
        ClosedJaxpr(jaxpr.replace(
            invars=[var for var in jaxpr.invars if var not in literals],
            eqns=[eqn.replace(invars=replaced(eqn.invars, literals)) for eqn in jaxpr.eqns],
            outvars=replaced(jaxpr.outvars, literals)), linear.consts))


def chosen(values: Sequence[object], marks: Sequence[bool]) -> list[Any]:
    """The values that are marked."""
    return [value for value, mark in zip(values, marks, strict=True) if mark]


def merged(marks: Sequence[bool], values: Sequence[object]) -> list[Any]:
    """The values at the marked places, None at the others."""
    given = iter(values)
    return [next(given) if mark else None for mark in marks]


def either(left: Sequence[bool], right: Sequence[bool]) -> tuple[bool, ...]:
    return tuple(a or b for a, b in zip(left, right, strict=True))


def empty_like(aval: ShapedArray, *leading: int) -> np.ndarray:
    return np.empty((*leading, *aval.shape), dtypes.physical(aval.dtype))


def scalars(names: Sequence[str], avals: Sequence[ShapedArray]) -> list[str]:
    """Lines that make scalars of arrays of rank 0, with which NumPy computes much faster."""
    return [f"    {name} = {name}[()]" for name, aval in zip(names, avals, strict=True)
            if not aval.shape and getattr(aval.dtype, "isbuiltin", 0) == 1]


def unrolled(unroll: int | bool, length: int) -> int:
    """How many iterations of a loop an iteration of the program makes.

    Raises:
      ConcretizationTypeError: it is traced.
      ValueError: it is negative.
    """
    if isinstance(unroll, Tracer) and unroll.concrete() is None:
        raise ConcretizationTypeError(
            unroll, "The `unroll` argument to `scan` expects a concrete `int` or `bool` value.")
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    unroll = operator.index(unroll)
    if unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    return max(unroll, 1)
