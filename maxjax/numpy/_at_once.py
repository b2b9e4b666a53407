"""Functions that become a single operation when they are called again and again.

A call of a function of several operations, outside transformations, makes a cell of each. That
takes longer than to compute small arrays. So a function that has been called a few times with
arguments of the same types is traced, and from then on such a call is one operation, which runs all
of them one after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from maxjax._base import caches, config, pytree
from maxjax._base.config import status
from maxjax._base.meshes import use as mesh_use
from maxjax._base.source import Warned
from maxjax._higher_order.jit import jit_p
from maxjax._ir.control_flow import bodies_of
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, Var
from maxjax._ir.liveness import has_effects
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Host, Inner
from maxjax._ir.runtime import installed
from maxjax._ir.staging import EAGER, trace_to_jaxpr
from maxjax._ir.trace import Tracer, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Function
from maxjax._runtime.array import ArrayImpl
from maxjax._transforms.quotients import each_alone
from maxjax._transforms.simplify import simplify_operations
from maxjax.numpy._often import function_of

# Tracing takes as long as some ten calls: what is called seldom, or with another number each time,
# is not traced.
_CALLS = 4
_LIMIT = 512      # of kinds of calls of one function

# Of larger arrays the operations cost most, and their graphs become programs, which are found again
# by all of them.
_MOST_BYTES = 8 << 10
_MOST_RESULT_BYTES = 32 << 10     # of one result: an outer product of small arrays is larger
_LONG = 16        # of elements of a tuple or list

_STATIC = frozenset((type(None), bool, int, str))


decorated: list[Callable[..., Any]] = []      # the functions that are


class _Program:
    """A traced call. Compared by identity, as a parameter."""

    __slots__ = ("closed", "primitive", "run", "tree")

    def __init__(self, name: str, closed: ClosedJaxpr, tree: Any):
        self.closed = closed
        self.run = function_of(closed)
        self.tree = tree      # None for a single array
        self.primitive = _primitive(name, tree is None)


def _abstract(*avals: ShapedArray, program: _Program) -> Any:
    out_avals = program.closed.out_avals
    return out_avals[0] if program.tree is None else tuple(out_avals)


def _specialize(in_avals: Any, params: dict[str, Any], out_avals: Any) -> Any:
    program = params["program"]
    run = program.run
    return (lambda *arrays: run(*arrays)[0]) if program.tree is None else run


@functools.cache
def _primitive(name: str, is_single: bool) -> Primitive:
    return Primitive(
        f"repeated_{name}{'' if is_single else '_results'}", abstract=_abstract,
        host=Host(specialize=_specialize), multiple_results=not is_single,
        derivative=Derivative(missing="transformations see the operations that it stands for"),
        inner=Inner(expand=lambda avals, params: params["program"].closed))


def at_once(function: Function) -> Function:
    """Makes calls of a function that come often a single operation, outside transformations.

    Its results are those of its own operations. A call is left as it is if it has other arguments
    than arrays and a few kinds of static values, or if the function needs an array's value, has
    effects or loops, warns, or gives an argument back.
    """
    name = f"{function.__module__.rpartition('.')[2].strip('_')}_{function.__name__}"
    kinds: dict[Any, Any] = caches.cache()

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if context.trace is not installed.runtime or status.watched or mesh_use.ever_set:
            return function(*args, **options)
        key: list[Any] = [config.trace_state()]
        arrays: list[ArrayImpl] = []
        if not _read((*args, *options.values()) if options else args, key, arrays):
            return function(*args, **options)
        kind = (*key, *options)
        known = kinds.get(kind, 0)
        if known.__class__ is int:
            if known != _CALLS:
                if len(kinds) >= _LIMIT:
                    kinds.clear()
                kinds[kind] = min(known + 1, _CALLS)
                before = Warned.count
                results = function(*args, **options)
                if Warned.count != before:
                    kinds[kind] = None
                return results
            known = kinds[kind] = _traced(
                function, args, options, [x.aval for x in arrays], name)
        if known is None:
            return function(*args, **options)
        results = known.primitive.bind(*arrays, program=known)
        return results if known.tree is None else pytree.unflatten(known.tree, results)

    made: Any = call
    # What is checked before every other call need not be before one of a kind that has passed.
    made.stays_outermost = at_once
    decorated.append(made)
    return made


def all_at_once(namespace: dict[str, Any], *but: str) -> None:
    """Makes ``at_once`` of all public functions that a module defines.

    Args:
      namespace: the module's, complete: the call is its last statement.
      but: names of functions that are one operation in any case, or none at all.
    """
    own = namespace["__name__"]
    for name, function in [*namespace.items()]:
        if (isinstance(function, FunctionType) and function.__module__ == own
                and name == function.__name__ and not name.startswith("_") and name not in but
                and not hasattr(function, "__wrapped__")):
            namespace[name] = at_once(function)


def _read(values: Sequence[Any], key: list[Any], arrays: list[ArrayImpl]) -> bool:
    """Fills in the arrays among arguments, and what tells apart calls that are not alike; whether
    all arguments are such."""
    for value in values:
        kind = value.__class__
        if kind is ArrayImpl:
            aval = value.aval
            if value._placement is not None or aval.nbytes > _MOST_BYTES:
                return False
            arrays.append(value)
            key.append(aval)
        elif kind in _STATIC or isinstance(value, np.dtype):
            key.append(kind)        # 1 equals 1.0 and True
            key.append(value)
        elif kind is float:
            key.append(kind)
            key.append(value if value else str(value))      # 0.0 equals -0.0
        elif (kind is tuple or kind is list) and len(value) <= _LONG:
            key.append(kind)
            key.append(len(value))
            if not _read(value, key, arrays):
                return False
        else:
            return False
    return True


def _filled(value: Any, given: Iterator[Any]) -> Any:
    """An argument with other arrays."""
    kind = value.__class__
    if kind is ArrayImpl:
        return next(given)
    return kind([_filled(x, given) for x in value]) if kind is tuple or kind is list else value


def _traced(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any],
            avals: list[ShapedArray], name: str) -> _Program | None:
    tree: Any = None

    def flat(*tracers: Any) -> Any:
        nonlocal tree
        given = iter(tracers)
        values = [_filled(x, given) for x in (*args, *options.values())]
        result = function(*values[:len(args)],
                          **dict(zip(options, values[len(args):], strict=True)))
        results, tree = pytree.flatten(result)
        if not all(isinstance(x, Tracer) for x in results):
            raise TypeError("a result that is no array of the program")
        if isinstance(result, Tracer):
            tree = None
        return results

    try:
        closed = simplify_operations(each_alone(
            trace_to_jaxpr(flat, avals, function.__name__, EAGER), jit_p))
    except Exception:       # The function itself, which is called next, says what is wrong.
        return None
    if (any(aval.nbytes > _MOST_RESULT_BYTES for aval in closed.out_avals)
            or not _is_simple(closed.jaxpr)):
        return None
    return _Program(name, closed, tree)


def _is_simple(jaxpr: Jaxpr) -> bool:
    """Whether all that a program does is to make new arrays."""
    made = {var for eqn in jaxpr.eqns for var in eqn.outvars}
    results = [atom for atom in jaxpr.outvars if isinstance(atom, Var) and atom in made]
    return (len({*results}) == len(jaxpr.outvars)
            and all(eqn.primitive.cacheable and not has_effects(eqn)
                     and not any(True for _ in bodies_of(eqn))
                     and eqn.primitive.outside.placement is None
                     and eqn.primitive.outside.eager is None
                     and eqn.primitive.outside.program is None for eqn in jaxpr.eqns))
