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

from maxjax._base import config, monitoring, pytree, spans
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import argument_names, fun_name, positional_names, signature_of
from maxjax._base.source import function_location
from maxjax._base.tracebacks import boundary, forget, is_boundary, shorten
from maxjax._higher_order.cache_misses import explain
from maxjax._higher_order.constants import hoist_tracers, warn_of_constants
from maxjax._higher_order.dynamic import DynamicDims
from maxjax._higher_order.entries import Entry, EntryCache, float0_as_numpy
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
from maxjax._higher_order.jit_refs import traced_argument, used_refs
from maxjax._higher_order.jit_sharded import (
    Chosen,
    Shardings,
    constrained_results,
    with_new_values,
)
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
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.refs import Ref, RefUse, read, write_back
from maxjax._ir.runtime import installed
from maxjax._ir.staging import StagingTrace, is_staging, trace_to_jaxpr
from maxjax._ir.symbolic import scope_of
from maxjax._ir.trace import Array, Tracer, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Function, Value
from maxjax._transforms.autodiff import check_callable

logger = logging.getLogger("maxjax")


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
        self._entries = EntryCache(function, None if dynamic is None else dynamic.variants)
        self._simple = not static
        self._plain = self._simple and shardings is None
        self._of_arrays: PjitFunction | None = None
        self._last_placed: tuple[object, Entry, Chosen | None] | None = None
        # Part of the pickled state under the name that JAX has for it.
        self.function_name = name

    @is_boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        try:
            runtime = installed.runtime
            at_base = context.trace is runtime
            if self._plain and not kwargs and at_base:
                # Arrays or numbers: no pytrees to flatten.
                types = runtime.array_types(args)
                if types is not None:
                    entry = self._entries.by_types.get((types, config.trace_state()))
                    if entry is not None:
                        try:
                            results = runtime.call(entry.closed, args, entry.donated)
                        except OverflowError:      # a Python int too large: its path is named below
                            pass
                        else:
                            return (results[0] if entry.is_leaf
                                    else entry.out_tree.unflatten(results))
            if self._shardings is not None:
                return self._call_sharded(args, kwargs)
            if self._simple:
                leaves, tree = pytree.flatten((args, kwargs))
                static: Static | None = None
            else:
                leaves, tree, static = split(self._static, args, kwargs)
            if at_base:
                avals = runtime.signature(leaves)
                if avals is not None:
                    entry = self._known((tree, avals, static, config.trace_state()))
                    if entry is not None and not (entry.touches_refs or entry.gives_float0):
                        try:
                            results = runtime.call(entry.closed, leaves, entry.donated)
                        except OverflowError:      # a Python int too large: its path is named below
                            pass
                        else:
                            types = None if kwargs or not self._plain \
                                else runtime.array_types(args)
                            if types is not None:
                                self._entries.by_types[types, config.trace_state()] = entry
                            return entry.out_tree.unflatten(results)
            return self._call_slowly(leaves, tree, static, args, kwargs)
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
        structs = entry.result_structs(self._result_shardings(entry))
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
    def _call_slowly(self, leaves: list[object], tree: PyTreeSpec, static: Static | None,
                     args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Any:
        if config.disable_jit.value:
            return self._function(*args, **kwargs)
        if hi_classes and any_hi_value(leaves):
            return self._call_on_arrays(args, kwargs)
        runtime = installed.runtime
        operands: list[Any] = []
        for position, leaf in enumerate(leaves):
            if leaf.__class__ is Ref:
                operands.append(leaf)
                continue
            try:
                operands.append(runtime.argument(leaf))
            except OverflowError:
                path = self._argument_names(tree, static)[position]
                raise OverflowError(
                    "An overflow was encountered while parsing an argument to a jitted "
                    f"computation, whose argument path is {path}. Got {type(leaf)} with value "
                    f"{leaf}") from None
            except TypeError:
                raise self._argument_error(leaf, position, tree, static) from None
        at_base = context.trace is runtime
        # Derivative rules that run later need the references themselves: where derivatives may be
        # taken, each reference has an entry of its own.
        avals = tuple([x if x.__class__ is Ref and not at_base else x.aval for x in operands])
        entry = self._entry(avals, tree, static)
        if entry.closed.refs or any(x.__class__ is Ref for x in operands):
            return self._call_with_refs(entry, operands, tree, static)
        if self._inline and isinstance(context.trace, StagingTrace):
            results: Sequence[Any] = eval_jaxpr(
                entry.closed.jaxpr, entry.closed.consts, *entry.captured, *operands)
        elif context.trace is installed.runtime and not any(
                isinstance(x, Tracer) for x in entry.captured):
            entry.warn_of_donations()
            results = runtime.call(entry.closed, leaves, entry.donated)
            if entry.gives_float0:
                results = float0_as_numpy(results)
        else:
            results = jit_p.bind(
                *entry.captured, *operands, jaxpr=entry.closed, name=self.function_name)
        return pytree.unflatten(entry.out_tree, results)

    def _call_with_refs(self, entry: Entry, operands: list[Value | Ref], tree: PyTreeSpec,
                        static: Static | None, outs: Chosen | None = None) -> Any:
        """Calls with the values of references as further arguments, and writes the new ones.

        ``outs`` are the shardings asked for the function's own results.
        """
        runtime = installed.runtime
        at_base = context.trace is runtime
        closed = entry.closed
        refs = used_refs(closed.refs, operands, lambda: (
            self._argument_names(tree, static), function_location(self._function)))
        arguments = [*(x for x in operands if x.__class__ is not Ref), *map(read, refs)]
        if self._inline and isinstance(context.trace, StagingTrace):
            results: Sequence[Any] = eval_jaxpr(
                closed.jaxpr, closed.consts, *entry.captured, *arguments)
        elif at_base and not any(isinstance(x, Tracer) for x in (*entry.captured, *arguments)):
            entry.warn_of_donations()
            results = runtime.call(closed, arguments, entry.donated,
                                   out_shardings=with_new_values(outs, closed))
        else:
            results = jit_p.bind(*entry.captured, *arguments, jaxpr=closed, name=self.function_name)
            asked = with_new_values(outs, closed)
            if asked is not None:
                results = constrained_results(results, asked)
        uses = [RefUse(ref, use.operation) for ref, use in zip(refs, closed.refs, strict=True)]
        return pytree.unflatten(entry.out_tree, write_back(uses, results))

    def _call_sharded(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Any:
        """Calls with the shardings that arguments and results are asked to have."""
        known = self._last_placed
        runtime = installed.runtime
        found = None
        if not kwargs and self._simple and context.trace is runtime:
            found = runtime.placed_types(args), config.trace_state()
            if known is not None and found == known[0]:
                _, entry, outs = known
                results = runtime.call(entry.closed, args, entry.donated, out_shardings=outs)
                return results[0] if entry.is_leaf else entry.out_tree.unflatten(results)
        if config.disable_jit.value:
            return self._function(*args, **kwargs)
        prepared = None
        with contextlib.suppress(HiArguments):
            prepared = self._prepared(args, kwargs)
        if prepared is None:
            return self._call_on_arrays(args, kwargs)
        operands, entry, outs, tree, static = prepared
        if entry.closed.refs or any(x.__class__ is Ref for x in operands):
            return self._call_with_refs(entry, operands, tree, static, outs)
        if context.trace is installed.runtime and not [
                x for x in (*entry.captured, *operands) if isinstance(x, Tracer)]:
            entry.warn_of_donations()
            results = runtime.call(entry.closed, operands, entry.donated, out_shardings=outs)
            if (found is not None and found[0] is not None and not entry.captured
                    and self._shardings is not None and self._shardings.out_layouts is None
                    and len(args) == len(operands) and all(map(operator.is_, args, operands))):
                # Nothing had to be moved: the next such call runs at once.
                self._last_placed = found, entry, outs
        else:
            results = constrained_results(
                jit_p.bind(*entry.captured, *operands, jaxpr=entry.closed,
                           name=self.function_name), outs)
        if self._shardings is not None and self._shardings.out_layouts is not None:
            results = self._shardings.laid_out(entry, results)
        return entry.out_tree.unflatten(results)

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
            list[Any], Entry, Any, PyTreeSpec, Static | None]:
        """The operands with the shardings asked for, the entry, the shardings asked for the
        results (None where nothing is), the operands' tree, and the static arguments."""
        if self._shardings is None:
            leaves, tree, static = self._flatten(args, kwargs)
            operands = [installed.runtime.argument(leaf) for leaf in leaves]
        else:
            operands, tree, static = self._shardings.operands(self, args, kwargs)
        at_base = context.trace is installed.runtime
        # As in _call_slowly.
        avals = tuple([x if x.__class__ is Ref and not at_base else x.aval for x in operands])
        entry = self._entry(avals, tree, static)
        return operands, entry, self._result_shardings(entry), tree, static

    def _result_shardings(self, entry: Entry) -> Chosen | None:
        """What ``out_shardings`` or ``device`` asks for."""
        return None if self._shardings is None else self._shardings.of_results(entry)

    def _argument_names(self, tree: PyTreeSpec, static: Static | None) -> list[str]:
        return argument_names(self._function, tree, dynamic_positions(tree, static))

    def _argument_error(self, leaf: object, position: int, tree: PyTreeSpec,
                        static: Static | None) -> TypeError:
        path = self._argument_names(tree, static)[position]
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):       # stands for an array
            sizes = ",".join(map(str, leaf.shape))
            return TypeError(f"Argument '{path}' of shape {leaf.dtype}[{sizes}] of type "
                             f"{type(leaf)} is not a valid JAX type.")
        return TypeError(
            f"Error interpreting argument to {self._function} as an abstract array. The "
            f"problematic value is of type {type(leaf)} and was passed to the function at "
            f"path {path}.\nThis typically means that a jit-wrapped function was called "
            "with a non-array argument, and this argument was not marked as static using "
            "the static_argnums or static_argnames parameters of jax.jit.")

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
            pytree.check_comparable(key[0], [known[0] for known in kept], error)
            raise

    def _new_entry(self, avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec,
                   static: Static | None) -> Entry:
        if self._target is not None:
            self._target.check(self.function_name, function_location(self._function))
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
            lambda closed, out_tree: self._made_entry(closed, out_tree, [], avals, tree, static))

    def _trace_shared(self, avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec,
                      static: Static | None) -> Entry:
        """The entry of a trace that another jit of the function may have made."""
        key = (avals, tree, static, config.trace_state(), context.axis_env, context.manual,
               frozenset(context.kept_scalars or ()))
        traces = self._entries.traces
        known = traces.get(key)
        if known is not None:
            closed, out_tree = known
            return self._made_entry(closed, out_tree, [], avals, tree, static)
        if config.explain_cache_misses.value:
            # A copy: other threads add to the traces.
            explain(self._function, key, tuple(traces.copy()), self._argument_names(tree, static))
        entry = self._trace(avals, tree, static)
        if not entry.captured and not entry.closed.refs:
            traces[key] = entry.traced, entry.out_tree
        return entry

    def _trace(self, avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec, static: Static | None,
               with_refs: bool = True) -> Entry:
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
        if config.log_compiles.value:
            logger.warning("Finished tracing %s for jit in %.9f sec", self.function_name,
                           time.perf_counter() - start)
            logger.warning("Compiling jit(%s) with global shapes and types %s.",
                           self.function_name, tuple(avals))
        if context.trace is installed.runtime:
            warn_of_constants(closed.consts)
        return self._made_entry(
            closed, pytree.canonical(out_tree), captured, avals, tree, static)

    def _made_entry(self, closed: ClosedJaxpr, out_tree: PyTreeSpec, captured: list[Value],
                    avals: tuple[ShapedArray | Ref, ...], tree: PyTreeSpec, static: Static | None
                    ) -> Entry:
        """The entry of a trace, with the numbers of the donated arrays among its inputs."""
        donated: tuple[int, ...] = ()
        arrays = [n for n, aval in enumerate(avals) if isinstance(aval, ShapedArray)]
        if self._donated and not captured:
            donated = self._donated.leaves(tree, static)
            if len(arrays) < len(avals):
                donated = tuple(arrays.index(n) for n in donated if n in arrays)
        return Entry(closed, out_tree, captured, donated, self._keep_unused,
                     bool(closed.refs) or len(arrays) < len(avals))

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
        if self._simple:
            return (*pytree.flatten((args, kwargs)), None)
        return split(self._static, args, kwargs)

    def clear_cache(self) -> None:
        """Drops all traces."""
        self._entries.clear()

    def _cache_size(self) -> int:
        return len(self._entries)


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
