"""A function under jit: traced once for each signature."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import operator
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import config, logs, monitoring, pytree, spans, tree_equality
from maxjax._base.canonical_specs import canonical
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import argument_names, fun_name, positional_names, signature_of
from maxjax._base.source import function_location
from maxjax._base.tracebacks import boundary, forget, is_boundary, shorten
from maxjax._higher_order.argument_errors import not_abstract, overflow_of
from maxjax._higher_order.cache_misses import explain
from maxjax._higher_order.constants import hoist_tracers, warn_of_constants
from maxjax._higher_order.dynamic import DynamicDims
from maxjax._higher_order.entries import Entry, EntryCache, Trace
from maxjax._higher_order.hi_types import (
    HiArguments,
    any_hi_value,
    hi_classes,
    lifted_values,
    on_arrays,
    put_together,
    refuse_hitypes,
    taken_apart,
    types_of_values,
)
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.jit_refs import call_with_refs, traced_argument
from maxjax._higher_order.jit_sharded import Chosen, Shardings, constrained_results
from maxjax._higher_order.outputs import check_outputs
from maxjax._higher_order.shape_struct import abstract_leaf
from maxjax._higher_order.stages import Lowered, Traced, argument_place
from maxjax._higher_order.static_arguments import (
    Selection,
    Static,
    check_comparable,
    dynamic_positions,
    merge,
    select,
    split,
)
from maxjax._higher_order.target import Target
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.refs import Ref
from maxjax._ir.runtime import installed
from maxjax._ir.staging import StagingTrace, is_staging, trace_to_jaxpr, traces_eager_call
from maxjax._ir.symbolic import scope_of
from maxjax._ir.trace import Array, Tracer, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Function, Value
from maxjax._transforms.autodiff import check_callable


class _Signature:
    """The signature of the function inside, for ``inspect``."""

    def __get__(self, instance: PjitFunction | None, owner: type | None = None) -> Any:
        return None if instance is None else signature_of(instance._function)


class PjitFunction:
    """A function under jit. Made by ``maxjax.jit``."""

    __signature__ = _Signature()

    def __init__(self, function: Callable[..., PyTree], static: Selection, donated: Selection,
                 inline: bool, keep_unused: bool, dynamic: DynamicDims | None,
                 target: Target | None, shardings: Shardings | None):
        functools.update_wrapper(self, function)
        # A callable object's attributes do not stand in front of this class' own methods.
        for own in PjitFunction.__dict__.keys() & self.__dict__.keys():
            if own.startswith("_") and not own.startswith("__"):
                del self.__dict__[own]
        name = fun_name(function)
        self.__name__ = name
        if "__qualname__" not in self.__dict__:
            self.__qualname__ = name
        self._function = function
        self._static = static
        self._donated = donated
        self._inline = inline
        self._keep_unused = keep_unused
        self._dynamic = dynamic
        self._target = target
        self._shardings = shardings
        self._entries = EntryCache(
            function, None if dynamic is None else dynamic.variants, shardings is not None)
        self._of_arrays: PjitFunction | None = None
        # Part of the pickled state under the name that JAX has for it.
        self.function_name = name

    @is_boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        try:
            if context.trace is installed.runtime:
                known = self._entries.repeats.find(args, kwargs)
                if known is not None:
                    entry, operands = known
                    try:
                        return entry.finish(installed.runtime.call(entry.call, operands))
                    except OverflowError:      # a Python int too large: its path is named below
                        pass
            return self._call_anew(args, kwargs)
        except FloatingPointError as found:
            try:
                if config.debug_nans.value or config.debug_infs.value:
                    self._blame_function(args, kwargs)
                raise
            except Exception as error:
                forget(error, found)      # found again where the function runs without jit
                shorten(error)
                raise
        except Exception as error:
            shorten(error)
            raise

    def _blame_function(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> None:
        """Runs the function without jit, after an invalid result: what it raises names its line.

        Returns where nothing is raised, or where this call is part of another program.
        """
        if is_staging() or any(
                isinstance(leaf, Array) and not isinstance(leaf, Tracer) and leaf.is_deleted()
                for leaf in pytree.leaves((args, kwargs))):
            return
        print("Invalid nan value encountered in the output of a jax.jit function. Calling the "
              "de-optimized version.")
        self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Jitted methods bind like functions."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        try:
            return f"<PjitFunction of {self._function!r}>"
        except Exception:      # the function's own
            return "<PjitFunction>"

    # --- ahead of time ---
    @boundary
    def trace(self, *args: PyTree, **kwargs: PyTree) -> Traced:
        """Traces the function for arguments of which only the types matter."""
        entry, leaves, tree, static = self._trace_abstract(args, kwargs)
        given: Chosen = ([None] * len(leaves) if self._shardings is None
                         else self._shardings.of_arguments(tree, static))
        return Traced(self, entry, tree, static, [
            argument_place(leaf) if sharding is None else sharding
            for leaf, sharding in zip(leaves, given, strict=True)],
            [abstract_leaf(leaf) for leaf in leaves])

    @boundary
    def lower(self, *args: PyTree, **kwargs: PyTree) -> Lowered:
        """Traces and lowers the function."""
        return self.trace(*args, **kwargs).lower()

    @boundary
    def eval_shape(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """The shapes and dtypes of the results."""
        if hi_classes and any_hi_value(pytree.leaves((args, kwargs))):
            args, kwargs = taken_apart((args, kwargs))
            return types_of_values(self._on_arrays().eval_shape(*args, **kwargs))
        entry = self._trace_abstract(args, kwargs)[0]
        structs = entry.result_structs(entry.asked)
        return types_of_values(structs) if hi_classes else structs

    def _trace_abstract(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> tuple[
            Entry, list[Any], Any, Static | None]:
        """The entry for arguments of which only the types matter; leaves and tree of the dynamic
        ones, and the static ones."""
        leaves, tree, static = self._flatten(args, kwargs)
        if hi_classes and any_hi_value(leaves):
            refuse_hitypes(f"a jaxpr, or ahead of time, of {self!r} for a value of such a type")
        avals = []
        for position, leaf in enumerate(leaves):
            try:
                avals.append(abstract_leaf(leaf))
            except TypeError:
                raise self._argument_error(leaf, position, tree, static) from None
        scope = scope_of([aval.shape for aval in avals])
        with scope if scope is not None else contextlib.nullcontext():
            return self._entry(tuple(avals), tree, static), leaves, tree, static

    # --- calls that are not hot ---
    def _call_anew(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Any:
        """A call unlike those before, or one that never counts as a repetition."""
        if config.disable_jit.value:
            return self._function(*args, **kwargs)
        leaves, tree, static = self._flatten(args, kwargs)
        known = self._known_entry(leaves, tree, static)
        if known is not None:
            with contextlib.suppress(OverflowError):      # as in __call__
                result = known.run(leaves)
                self._entries.repeats.keep(args, kwargs, leaves, tree, static, known)
                return result
        operands = None
        with contextlib.suppress(HiArguments):
            operands = self._operands(leaves, tree, static, bool(kwargs))
        if operands is None:
            return self._call_on_arrays(args, kwargs)
        entry = self._entry(_types(operands), tree, static)
        if entry.touches_refs:
            results: Sequence[Any] = call_with_refs(
                entry, operands, lambda: (self._argument_names(tree, static),
                                          function_location(self._function)),
                functools.partial(self._apply, entry))
        else:
            results = self._apply(entry, operands)
            # Where arrays had to be moved, the next such call has to move them as well.
            if (self._shardings is not None and not entry.captured
                    and context.trace is installed.runtime
                    and all(map(operator.is_, leaves, operands))):
                self._entries.repeats.keep(args, kwargs, leaves, tree, static, entry)
        if context.trace is installed.runtime:
            return entry.finish(results)
        return pytree.unflatten(entry.out_tree, results)

    def _known_entry(self, leaves: Sequence[object], tree: PyTreeSpec, static: Static | None
                     ) -> Entry | None:
        """The entry of a call outside of transformations, if there is one for the types alone."""
        if self._shardings is not None or context.trace is not installed.runtime:
            return None
        types = installed.runtime.signature(leaves)
        entry = None if types is None else self._known((tree, types, static, config.trace_state()))
        return None if entry is None or entry.touches_refs else entry

    def _operands(self, leaves: Sequence[object], tree: PyTreeSpec, static: Static | None,
                  has_kwargs: bool = False) -> list[Any]:
        """The leaves as arrays, which lie as is asked for; references as they are.

        Raises:
          HiArguments: one is of a type above arrays.
          TypeError: one is no array.
          OverflowError: a Python int is too large.
        """
        if self._shardings is not None:
            self._shardings.check_call(has_kwargs)
        if hi_classes and any_hi_value(leaves):
            raise HiArguments
        places: Chosen = ([None] * len(leaves) if self._shardings is None
                          else self._shardings.of_arguments(tree, static))
        operands: list[Any] = []
        for position, (leaf, place) in enumerate(zip(leaves, places, strict=True)):
            try:
                operand: Any = leaf if leaf.__class__ is Ref else installed.runtime.argument(leaf)
            except OverflowError:
                path = self._argument_names(tree, static)[position]
                raise overflow_of(leaf, path) from None
            except TypeError:
                raise self._argument_error(leaf, position, tree, static) from None
            if place is not None:
                operand = self._shardings.placed(      # type: ignore[union-attr]
                    leaf, operand, place,
                    lambda n=position: self._argument_names(tree, static)[n])  # type: ignore[misc]
            operands.append(operand)
        return operands

    def _apply(self, entry: Entry, operands: Sequence[Value]) -> Sequence[Any]:
        """The results of an entry's program: it runs, or is written into the program around it."""
        given = [*entry.captured, *operands]
        if context.trace is installed.runtime and not any(isinstance(x, Tracer) for x in given):
            entry.check_use()
            return installed.runtime.call(entry.call, operands)
        if (self._inline and self._shardings is None and isinstance(context.trace, StagingTrace)
                and not traces_eager_call()):
            return eval_jaxpr(entry.closed.jaxpr, entry.closed.consts, *given)
        results = jit_p.bind(*given, jaxpr=entry.closed, name=self.function_name)
        asked = entry.call.asked
        return results if asked is None else constrained_results(results, asked)

    # --- values of types above arrays ---
    def _on_arrays(self) -> PjitFunction:
        """The function of the arrays in the values among its arguments."""
        if self._dynamic is not None:
            refuse_hitypes(f"{self!r} with dynamic_dims, of an argument of such a type")
        if self._of_arrays is None:
            self._of_arrays = PjitFunction(
                on_arrays(self._function), self._static, self._donated, self._inline,
                self._keep_unused, None, self._target,
                self._shardings)
        return self._of_arrays

    def _call_on_arrays(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Any:
        args, kwargs = taken_apart((args, kwargs))
        return put_together(self._on_arrays()(*args, **kwargs))

    def _prepared(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> tuple[
            list[Any], Entry]:
        """The operands with the shardings asked for, and the entry."""
        leaves, tree, static = self._flatten(args, kwargs)
        operands = self._operands(leaves, tree, static, bool(kwargs))
        return operands, self._entry(_types(operands), tree, static)

    def _argument_names(self, tree: PyTreeSpec, static: Static | None) -> list[str]:
        return argument_names(self._function, tree, dynamic_positions(tree, static))

    def _argument_error(self, leaf: object, position: int, tree: PyTreeSpec,
                        static: Static | None) -> TypeError:
        path = self._argument_names(tree, static)[position]
        if isinstance(leaf, np.generic):
            return TypeError(f"Argument '{leaf}' of type {type(leaf)} is not a valid JAX type.")
        if (hasattr(leaf, "shape") and hasattr(leaf, "dtype")       # stands for an array
                and not isinstance(leaf, (np.ndarray, type))):
            sizes = ",".join(map(str, leaf.shape))
            return TypeError(f"Argument '{path}' of shape {leaf.dtype}[{sizes}] of type "
                             f"{type(leaf)} is not a valid JAX type.")
        return not_abstract(self._function, leaf, path)

    # --- tracing ---
    def _entry(self, avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec, static: Static | None
               ) -> Entry:
        key: Any = (tree, avals, static, config.trace_state())
        if context.axis_env:
            key = (*key, context.axis_env, context.manual)
        entry = self._known(key)
        if entry is None:
            entry = self._new_entry(avals, tree, static)
            self._entries.keep(key, entry)
        return entry

    def _known(self, key: Any) -> Entry | None:
        try:
            return self._entries.by_signature.get(key)
        except Exception as error:      # whatever comparing the user's objects raises
            kept = list(self._entries.by_signature)
            check_comparable(key[2], [known[2] for known in kept])
            tree_equality.check_comparable(key[0], [known[0] for known in kept], error)
            raise

    def _new_entry(self, avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec,
                   static: Static | None) -> Entry:
        if self._target is not None:
            self._target.check(self.function_name, function_location(self._function))
        if self._shardings is not None:
            self._shardings.check_layouts_of_arguments(
                avals, tree, static, lambda: self._argument_names(tree, static))
        dynamic = self._dynamic
        # Within a transformation sizes are those of its own trace.
        if dynamic is None or context.trace is not installed.runtime:
            return self._trace_shared(avals, tree, static)
        types = tuple([aval for aval in avals if isinstance(aval, ShapedArray)])
        if len(types) < len(avals):
            raise NotImplementedError(
                "jit with dynamic_dims takes no array references as arguments: pass their values")
        return dynamic.entry(
            types, tree, static, dynamic_positions(tree, static),
            lambda: self._argument_names(tree, static),
            lambda types: self._trace(types, tree, static, with_refs=False),
            lambda trace: self._made_entry(trace, avals, tree, static))

    def _trace_shared(self, avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec,
                      static: Static | None) -> Entry:
        """The entry of a trace that another jit of the function may have made."""
        key = (avals, tree, static, config.trace_state(), context.axis_env, context.manual,
               frozenset(context.kept_scalars or ()))
        traces = self._entries.traces
        known = traces.get(key)
        if known is not None:
            return self._made_entry(known, avals, tree, static)
        if config.explain_cache_misses.value:
            # A copy: other threads add to the traces.
            explain(self._function, key, tuple(traces.copy()), self._argument_names(tree, static))
        trace = self._trace(avals, tree, static)
        if not trace.captured and not trace.closed.refs:
            traces[key] = trace
        return self._made_entry(trace, avals, tree, static)

    def _trace(self, avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec, static: Static | None,
               with_refs: bool = True) -> Trace:
        function = self._function
        location = function_location(function)
        weakref.ref(function)      # a TypeError of what cannot be referred to weakly, as in JAX
        if config.no_tracing.value:
            raise RuntimeError(
                f"re-tracing function {location} for `jit`, but 'no_tracing' is set")
        start, started, since = time.perf_counter(), spans.clock(), time.time()
        out_tree: Any = None
        names = self._argument_names(tree, static)
        arrays = [n for n, aval in enumerate(avals) if isinstance(aval, ShapedArray)]
        given = [traced_argument(aval, n, name)
                 for n, (aval, name) in enumerate(zip(avals, names, strict=True))]

        def flat(*tracers: Value) -> Sequence[Any]:
            nonlocal out_tree
            leaves: list[Any] = list(given)
            for n, tracer in zip(arrays, tracers, strict=True):
                leaves[n] = tracer
            given_args, given_kwargs = pytree.unflatten(tree, leaves)
            args, kwargs = merge(given_args, given_kwargs, static)
            outputs = lifted_values(function(*args, **kwargs))
            leaves, out_tree = pytree.flatten(outputs)
            return check_outputs(leaves, location, "jit", outputs)

        closed = trace_to_jaxpr(
            flat, [aval for aval in avals if isinstance(aval, ShapedArray)], location, "jit",
            [names[n] for n in arrays], with_refs)
        closed, captured = hoist_tracers(closed)
        spans.add(f"trace {self.function_name}", "trace", started)
        monitoring.record_phase("/jax/core/compile/jaxpr_trace_duration", since, time.time(),
                                fun_name=self.function_name)
        closed = closed.with_facts(closed.facts._replace(
            name=self.function_name, qualname=self.__qualname__, argument_names=names))
        level = logging.WARNING if config.log_compiles.value else logging.DEBUG
        logs.DISPATCH.log(level, "Finished tracing %s for jit in %.9f sec", self.function_name,
                         time.perf_counter() - start)
        logs.COMPILING.log(level, "Compiling jit(%s) with global shapes and types %s.",
                           self.function_name, tuple(avals))
        if context.trace is installed.runtime:
            warn_of_constants(closed.consts)
        return Trace(closed, canonical(out_tree), captured)

    def _made_entry(self, trace: Trace, avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec,
                    static: Static | None) -> Entry:
        """The entry of a trace, with the numbers of the donated arrays among its inputs."""
        donated: tuple[int, ...] = ()
        arrays = [n for n, aval in enumerate(avals) if isinstance(aval, ShapedArray)]
        if self._donated and not trace.captured:
            donated = self._donated.leaves(tree, static)
            if len(arrays) < len(avals):
                donated = tuple(arrays.index(n) for n in donated if n in arrays)
        return Entry(trace, donated, self._keep_unused,
                     bool(trace.closed.refs) or len(arrays) < len(avals), self._shardings)

    def _lookup(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Entry:
        """The entry of these arguments' signature, which is traced if it is new."""
        leaves, tree, static = self._flatten(args, kwargs)
        runtime = installed.runtime
        avals = tuple([leaf.aval if hasattr(leaf, "aval") else runtime.argument(leaf).aval
                       for leaf in leaves])
        return self._entry(avals, tree, static)

    def _flatten(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> tuple[
            list[Any], Any, Static | None]:
        """Leaves and tree of the dynamic arguments, and the static ones."""
        if self._static:
            return split(self._static, args, kwargs)
        return (*pytree.flatten((args, kwargs)), None)

    def clear_cache(self) -> None:
        """Drops all traces."""
        self._entries.clear()

    def _cache_size(self) -> int:
        return len(self._entries)


def _types(operands: Sequence[Array | Ref]) -> tuple[Any, ...]:
    """Types of operands. Derivative rules that run later need the references themselves: where
    derivatives may be taken, each reference has an entry of its own."""
    at_base = context.trace is installed.runtime
    return tuple([x if isinstance(x, Ref) and not at_base else x.aval for x in operands])


def jitted(function: Function, *, static_argnames: Sequence[str] = ()) -> Function:
    """``make_jit`` of a function that keeps its own type to its callers."""
    made: Any = make_jit(function, static_argnames=static_argnames)
    return made


def make_jit(function: Callable[..., PyTree], static_argnums: int | Sequence[int] | None = None,
             static_argnames: str | Iterable[str] | None = None,
             donate_argnums: int | Sequence[int] | None = None,
             donate_argnames: str | Iterable[str] | None = None,
             keep_unused: bool = False, inline: bool = False,
             dynamic_dims: Mapping[int | str, PyTree] | None = None,
             target: Target | None = None, shardings: Shardings | None = None) -> PjitFunction:
    """A jitted function; static arguments given by number are known by name, and the reverse."""
    check_callable(function)
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"Expected a function, got a generator function: {function}")
    static = select(function, static_argnums, static_argnames, "static")
    donated = select(function, donate_argnums, donate_argnames, "donate")
    both = set(static.names & donated.names)
    if both:
        raise ValueError(
            f"static_argnames and donate_argnames cannot intersect. Argument names {both} appear "
            "in both static_argnames and donate_argnames")
    dynamic = None
    if dynamic_dims is not None:
        signature = signature_of(function)
        dynamic = DynamicDims(
            dynamic_dims, [] if signature is None else positional_names(signature))
    return PjitFunction(
        function, static, donated, inline, keep_unused, dynamic, target, shardings)
