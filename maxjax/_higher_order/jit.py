"""jit: a function traced once for each signature, and the primitive that calls a jaxpr."""

from __future__ import annotations

import functools
import inspect
import logging
import operator
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import config, monitoring, pytree, spans
from maxjax._base.source import function_location
from maxjax._higher_order.cache_misses import explain
from maxjax._higher_order.dynamic import MAX_SIZES, DynamicDims
from maxjax._higher_order.jit_refs import returned_ref, traced_argument, used_refs
from maxjax._higher_order.target import Target
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, Var, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import Ref, RefUse, read, read_all, write_back
from maxjax._ir.runtime import installed
from maxjax._ir.staging import eval_jaxpr, trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Function
from maxjax._primitives.rules import call_factors, is_linear
from maxjax._transforms.batching import batch_jaxpr
from maxjax._transforms.jvp import jvp_jaxpr
from maxjax._transforms.linearize import linearize_jaxpr
from maxjax._transforms.transpose import transpose_with_refs

if TYPE_CHECKING:
    from maxjax._higher_order.stages import Lowered, Traced

logger = logging.getLogger("maxjax")

# So many traces of functions that touch array references are kept: each holds the references.
MAX_REF_ENTRIES = 32

# --- the primitive --------------------------------------------------------------------------------


def _jit_jvp(primals, tangents, *, jaxpr, name):
    nonzero = tuple(tangent is not None for tangent in tangents)
    both, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
    results = jit_p.bind(*primals, *(t for t in tangents if t is not None), jaxpr=both, name=name)
    count = len(jaxpr.out_avals)
    given = iter(results[count:])
    return results[:count], [next(given) if is_nonzero else None for is_nonzero in out_nonzero]


def _jit_linearize(trace, primals, tangents, *, jaxpr, name):
    nonzero = tuple(tangent is not None for tangent in tangents)
    forward, linear, out_nonzero = linearize_jaxpr(jaxpr, nonzero)
    results = jit_p.bind(*primals, jaxpr=forward, name=name)
    count = len(jaxpr.out_avals)
    outs, residuals = results[:count], results[count:]
    if not any(out_nonzero):
        return outs, [None] * count
    given = iter(jit_p.bind(
        *residuals, *(t for t in tangents if t is not None), jaxpr=linear, name=name))
    return outs, [next(given) if is_nonzero else None for is_nonzero in out_nonzero]


def _jit_transpose(cotangents, *operands, jaxpr, name):
    linear = tuple(map(is_linear, operands))
    given = tuple(cotangent is not None for cotangent in cotangents)
    transposed, nonzero = transpose_with_refs(jaxpr, linear, given)
    uses = transposed.refs
    results = iter(write_back(uses, jit_p.bind(
        *(x for x, is_lin in zip(operands, linear, strict=True) if not is_lin),
        *(ct for ct in cotangents if ct is not None), *read_all(uses), jaxpr=transposed,
        name=name)))
    flags = iter(nonzero)
    return [(next(results) if next(flags) else None) if is_lin else None for is_lin in linear]


def _jit_batch(size, operands, axes, *, jaxpr, name):
    batched, out_batched = batch_jaxpr(jaxpr, size, tuple(axes))
    results = jit_p.bind(*operands, jaxpr=batched, name=name)
    return results, [0 if is_batched else None for is_batched in out_batched]


jit_p = Primitive(
    "jit",
    abstract=lambda *avals, jaxpr, name: tuple(jaxpr.out_avals),
    bodies=lambda *avals, jaxpr, name: [(jaxpr, avals, None)],
    evaluate=lambda *values, jaxpr, name: interpreter(jaxpr)(*values),
    lower=lambda ctx, *values, jaxpr, name: ctx.lower_closed(jaxpr, values),
    jvp=_jit_jvp,
    linearize=_jit_linearize,
    transpose=_jit_transpose,
    batch=_jit_batch,
    factors=call_factors,
    multiple_results=True,
    cacheable=False,
    calls="jaxpr",
    names_inputs=True,
    shown=lambda params: {
        name: value for name, value in params.items()
        if not (name == "donated_invars" and not any(value))
        and not (name in ("inline", "keep_unused") and not value)},
)


# --- the function ---------------------------------------------------------------------------------


class _Unspecified:
    """The default of ``jit``'s shardings."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = _Unspecified()


class Entry:
    """What one signature of a jitted function was traced to."""

    __slots__ = ("captured", "closed", "donated", "is_leaf", "out_tree", "traced", "unusable")

    def __init__(self, closed: ClosedJaxpr, out_tree: Any, captured: list[Any],
                 donated: tuple[int, ...], keep_unused: bool = False):
        self.traced = closed
        self.closed = _reading_all(closed) if keep_unused else closed
        self.out_tree = out_tree
        self.is_leaf = out_tree.is_leaf()
        self.captured = captured      # tracers of outer functions: the first operands
        # The donated leaves, and the types of those that no result can take the memory of.
        self.donated, self.unusable = usable_donations(
            closed, donated, keep_unused) if donated else ((), [])

    def warn_of_donations(self) -> None:
        """Says once which donated memory is of no use."""
        unusable, self.unusable = self.unusable, []
        if unusable:
            shown = ", ".join(aval.str_short() for aval in unusable)
            warnings.warn(
                f"Some donated buffers were not usable: {shown}.\nSee an explanation at "
                "https://docs.jax.dev/en/latest/faq.html#buffer-donation.", stacklevel=4)


@derived
def _reading_all(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program, which runs where any of its operands is, read or not."""
    result = ClosedJaxpr(closed.jaxpr, closed.consts, closed.refs)
    result.cache.update({name: closed.cache[name] for name in ("name", "argument names")
                         if name in closed.cache})
    result.cache["used"] = [True] * len(closed.in_avals)
    return result


def warn_of_constants(constants: Sequence[Any]) -> None:
    """Warns of more bytes of constants than ``jax_captured_constants_warn_bytes`` allows."""
    limit = config.captured_constants_warn_bytes.value
    if limit is None or limit < 0:
        return
    total = sum(getattr(constant, "nbytes", 0) for constant in constants)
    if total >= limit:
        warnings.warn(
            f"A large amount of constants were captured during lowering ({bytes_text(total)} "
            "total). If this is intentional, disable this warning by setting "
            "JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1.", stacklevel=2)


def bytes_text(count: float) -> str:
    """A number of bytes, in a unit that suits it: "4.00KB"."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.2f}{unit}"
        count /= 1000
    return f"{count:.2f}TB"


def usable_donations(closed: ClosedJaxpr, donated: Sequence[int], keep_unused: bool) -> tuple[
        tuple[int, ...], list[ShapedArray]]:
    """The donated inputs whose memory a result of as many bytes can have; and the other types.

    Inputs that nothing reads are no part of the program, unless they are to be kept.
    """
    jaxpr = closed.jaxpr
    read = {atom for eqn in jaxpr.eqns for atom in eqn.invars if isinstance(atom, Var)}
    read.update(atom for atom in jaxpr.outvars if isinstance(atom, Var))
    room = Counter(aval.nbytes for aval in jaxpr.out_avals)
    taken, unusable = [], []
    for position in donated:
        var = jaxpr.invars[position]
        if var not in read and not keep_unused:
            continue
        if room[var.aval.nbytes]:
            room[var.aval.nbytes] -= 1
            taken.append(position)
        else:
            unusable.append(var.aval)
    return tuple(taken), unusable


# What functions were traced to, by signature: jitted again, they are not traced again. Held
# weakly, it goes with the function.
_shared: weakref.WeakKeyDictionary[Any, dict[Any, tuple[ClosedJaxpr, Any]]] = (
    weakref.WeakKeyDictionary())
_jitted: weakref.WeakSet[PjitFunction] = weakref.WeakSet()


def shared_traces(function: Callable[..., Any]) -> dict[Any, tuple[ClosedJaxpr, Any]]:
    try:
        return _shared.setdefault(function, {})
    except TypeError:      # unhashable, or it cannot be referred to weakly
        return {}


def forget_traces() -> None:
    """Makes all functions trace again."""
    _shared.clear()
    for jitted in list(_jitted):
        jitted.clear_cache()


class PjitFunction:
    """A function under jit. Made by ``maxjax.jit``."""

    # Methods for its life ahead of time: ``stages.py``, which stands on this file, puts them here.
    trace: Callable[..., Traced]
    lower: Callable[..., Lowered]
    eval_shape: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], static_argnums: tuple[int, ...],
                 static_argnames: frozenset[str], donate_argnums: tuple[int, ...],
                 donate_argnames: frozenset[str], inline: bool, keep_unused: bool,
                 dynamic: DynamicDims | None = None):
        functools.update_wrapper(self, function)
        self._function = function
        self._static_argnums = static_argnums
        self._static_argnames = static_argnames
        self._donate_argnums = donate_argnums
        self._donate_argnames = donate_argnames
        self._inline = inline
        self._keep_unused = keep_unused
        self._dynamic = dynamic
        self._target: Target | None = None
        self._entries: dict[Any, Entry] = {}
        self._plain_entries: dict[Any, Entry] = {}      # of calls with arrays and nothing else
        self._ref_entries: dict[Any, Entry] = {}      # of functions that touch array references
        self._simple = not (static_argnums or static_argnames)
        self._name = getattr(function, "__name__", type(function).__name__)
        _jitted.add(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        runtime = installed.runtime
        at_base = context.trace is runtime
        if self._simple and not kwargs and at_base:
            # Arrays and nothing else: neither taken apart nor put together again.
            types = runtime.array_types(args)
            if types is not None:
                entry = self._plain_entries.get((types, config.trace_state()))
                if entry is not None:
                    results = runtime.call(entry.closed, args, entry.donated)
                    return results[0] if entry.is_leaf else entry.out_tree.unflatten(results)
        if self._simple:
            leaves, tree = pytree.flatten((args, kwargs))
            static: Any = None
        else:
            leaves, tree, static = self._split(args, kwargs)
        if at_base:
            avals = runtime.signature(leaves)
            if avals is not None:
                entry = self._entries.get((tree, avals, static, config.trace_state()))
                if entry is not None:
                    try:
                        results = runtime.call(entry.closed, leaves, entry.donated)
                    except OverflowError:      # a Python int too large: told with its path below
                        pass
                    else:
                        if self._simple and not kwargs and runtime.array_types(args) is not None:
                            self._plain_entries[avals, config.trace_state()] = entry
                        return entry.out_tree.unflatten(results)
        return self._call_slowly(leaves, tree, static, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Jitted methods bind like functions."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<PjitFunction of {self._function!r}>"

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        """Leaves and tree of the dynamic arguments, and the static ones as part of the key."""
        static: list[Any] = []
        count = len(args)
        positions = {n if n >= 0 else n + count for n in self._static_argnums}
        dynamic_args = []
        for position, value in enumerate(args):
            if position in positions:
                static.append((position, type(value), check_hashable(value)))
            else:
                dynamic_args.append(value)
        dynamic_kwargs = {}
        for name, value in kwargs.items():
            if name in self._static_argnames:
                static.append((name, type(value), check_hashable(value)))
            else:
                dynamic_kwargs[name] = value
        static.sort(key=lambda item: str(item[0]))
        leaves, tree = pytree.flatten((tuple(dynamic_args), dynamic_kwargs))
        return leaves, tree, (count, tuple(static))

    def _call_slowly(self, leaves: list[Any], tree: Any, static: Any, args: tuple[Any, ...],
                     kwargs: dict[str, Any]) -> Any:
        if config.disable_jit.value:
            return self._function(*args, **kwargs)
        runtime = installed.runtime
        operands: list[Array | Ref] = []
        for position, leaf in enumerate(leaves):
            if leaf.__class__ is Ref:
                operands.append(leaf)
                continue
            try:
                operands.append(runtime.operand(leaf))
            except (TypeError, OverflowError) as error:
                if isinstance(error, OverflowError):
                    path = argument_names(self._function, tree, static)[position]
                    raise OverflowError(
                        "An overflow was encountered while parsing an argument to a jitted "
                        f"computation, whose argument path is {path}. Got {type(leaf)} with value "
                        f"{leaf}") from None
                raise self._argument_error(leaf, position, tree, static) from None
        at_base = context.trace is runtime
        # Rules of derivatives that run later have to find the references themselves: there is an
        # entry for each of them where derivatives may be taken.
        avals = tuple([x if x.__class__ is Ref and not at_base else x.aval for x in operands])
        entry = self._entry(avals, tree, static)
        if entry.closed.refs or any(x.__class__ is Ref for x in operands):
            return self._call_with_refs(entry, operands, tree, static)
        if self._inline and context.trace is not installed.runtime:
            results: Sequence[Any] = eval_jaxpr(
                entry.closed.jaxpr, entry.closed.consts, *entry.captured, *operands)
        elif context.trace is installed.runtime and not any(
                isinstance(x, Tracer) for x in entry.captured):
            entry.warn_of_donations()
            results = runtime.call(entry.closed, leaves, entry.donated)
        else:
            results = jit_p.bind(
                *entry.captured, *operands, jaxpr=entry.closed, name=self._name)
        return pytree.unflatten(entry.out_tree, results)

    def _call_with_refs(self, entry: Entry, operands: list[Any], tree: Any, static: Any) -> Any:
        """Calls with the values of references as further arguments, and writes the new ones."""
        runtime = installed.runtime
        at_base = context.trace is runtime
        closed = entry.closed
        refs = used_refs(closed.refs, operands, lambda: (
            argument_names(self._function, tree, static), function_location(self._function)))
        arguments = [*(x for x in operands if x.__class__ is not Ref), *map(read, refs)]
        if self._inline and not at_base:
            results: Sequence[Any] = eval_jaxpr(
                closed.jaxpr, closed.consts, *entry.captured, *arguments)
        elif at_base and not any(isinstance(x, Tracer) for x in (*entry.captured, *arguments)):
            entry.warn_of_donations()
            results = runtime.call(closed, arguments, entry.donated)
        else:
            results = jit_p.bind(*entry.captured, *arguments, jaxpr=closed, name=self._name)
        uses = [RefUse(ref, use.operation) for ref, use in zip(refs, closed.refs, strict=True)]
        return pytree.unflatten(entry.out_tree, write_back(uses, results))

    def _argument_error(self, leaf: Any, position: int, tree: Any, static: Any) -> TypeError:
        path = argument_names(self._function, tree, static)[position]
        if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):       # in the place of an array
            sizes = ",".join(map(str, leaf.shape))
            return TypeError(f"Argument '{path}' of shape {leaf.dtype}[{sizes}] of type "
                             f"{type(leaf)} is not a valid JAX type.")
        return TypeError(
            f"Error interpreting argument to {self._function} as an abstract array. The "
            f"problematic value is of type {type(leaf)} and was passed to the function at "
            f"path {path}.\nThis typically means that a jit-wrapped function was called "
            "with a non-array argument, and this argument was not marked as static using "
            "the static_argnums or static_argnames parameters of jax.jit.")

    def _entry(self, avals: tuple[Any, ...], tree: Any, static: Any) -> Entry:
        key: Any = (tree, avals, static, config.trace_state())
        if context.axis_env:
            key = (*key, context.axis_env, context.manual)
        entry = self._entries.get(key)
        if entry is None and self._ref_entries:
            entry = self._ref_entries.get(key)
        if entry is None:
            entry = self._new_entry(avals, tree, static)
            if entry.closed.refs or not all(isinstance(aval, ShapedArray) for aval in avals):
                if not entry.captured:
                    while len(self._ref_entries) >= MAX_REF_ENTRIES:
                        self._ref_entries.pop(next(iter(self._ref_entries)))
                    self._ref_entries[key] = entry
            elif not entry.captured:
                # A function that closes over tracers is traced anew: they are other ones next time.
                self._entries[key] = entry
        return entry

    def _new_entry(self, avals: tuple[ShapedArray, ...], tree: Any, static: Any) -> Entry:
        if self._target is not None:
            self._target.check(self._name, function_location(self._function))
        dynamic = self._dynamic
        # Within a transformation sizes are those of its own trace.
        if dynamic is None or context.trace is not installed.runtime:
            return self._trace_shared(avals, tree, static)
        if not all(isinstance(aval, ShapedArray) for aval in avals):
            raise NotImplementedError(
                "jit with dynamic_dims takes no array references as arguments: pass their values")
        while len(self._entries) >= MAX_SIZES:
            self._entries.pop(next(iter(self._entries)))
            self._plain_entries.clear()
        args, _ = pytree.unflatten(tree, range(tree.num_leaves))
        return dynamic.entry(
            avals, tree, static, dynamic_positions(len(args), static),
            lambda: argument_names(self._function, tree, static),
            lambda types: self._trace(types, tree, static, with_refs=False),
            lambda closed, out_tree: Entry(
                closed, out_tree, [], self._donated(tree, static), self._keep_unused))

    def _trace_shared(self, avals: tuple[ShapedArray, ...], tree: Any, static: Any) -> Entry:
        """The entry of a trace that another jit of the function may have made."""
        key = (avals, tree, static, config.trace_state(), context.axis_env, context.manual)
        traces = shared_traces(self._function)
        known = traces.get(key)
        if known is not None:
            closed, out_tree = known
            return Entry(closed, out_tree, [], self._donated(tree, static), self._keep_unused)
        if config.explain_cache_misses.value:
            explain(self._function, key, traces, argument_names(self._function, tree, static))
        entry = self._trace(avals, tree, static)
        if not entry.captured and not entry.closed.refs:
            traces[key] = entry.traced, entry.out_tree
        return entry

    def _trace(self, avals: tuple[ShapedArray, ...], tree: Any, static: Any,
               with_refs: bool = True) -> Entry:
        function = self._function
        location = function_location(function)
        if config.no_tracing.value:
            raise RuntimeError(
                f"re-tracing function {location} for `jit`, but 'no_tracing' is set")
        start, started, since = time.perf_counter(), spans.clock(), time.time()
        out_tree: Any = None
        names = argument_names(function, tree, static)
        arrays = [n for n, aval in enumerate(avals) if isinstance(aval, ShapedArray)]
        given = [traced_argument(aval, n, name)
                 for n, (aval, name) in enumerate(zip(avals, names, strict=True))]

        def flat(*tracers: Any) -> Sequence[Any]:
            nonlocal out_tree
            leaves = list(given)
            for n, tracer in zip(arrays, tracers, strict=True):
                leaves[n] = tracer
            given_args, given_kwargs = pytree.unflatten(tree, leaves)
            args, kwargs = merge_static(given_args, given_kwargs, static)
            outputs = function(*args, **kwargs)
            leaves, out_tree = pytree.flatten(outputs)
            return check_outputs(leaves, location, "jit", outputs)

        closed = trace_to_jaxpr(flat, [avals[n] for n in arrays], location, "jit",
                                [names[n] for n in arrays], with_refs)
        closed, captured = hoist_tracers(closed)
        spans.add(f"trace {self._name}", "trace", started)
        monitoring.record_phase("/jax/core/compile/jaxpr_trace_duration", since, time.time(),
                                fun_name=self._name)
        closed.cache["name"] = self._name
        closed.cache["argument names"] = names
        if config.log_compiles.value:
            logger.warning("Finished tracing %s for jit in %.9f sec", self._name,
                           time.perf_counter() - start)
            logger.warning("Compiling jit(%s) with global shapes and types (%s).", self._name,
                           ", ".join(map(repr, avals)))
        if context.trace is installed.runtime:
            warn_of_constants(closed.consts)
        donated = () if captured else self._donated(tree, static)
        if len(arrays) < len(avals):
            donated = tuple(arrays.index(n) for n in donated if n in arrays)
        return Entry(closed, pytree.canonical(out_tree), captured, donated, self._keep_unused)

    def _donated(self, tree: Any, static: Any) -> tuple[int, ...]:
        """The positions of the leaves of donated arguments."""
        if not self._donate_argnums and not self._donate_argnames:
            return ()
        args, kwargs = pytree.unflatten(tree, range(tree.num_leaves))
        positions = dynamic_positions(len(args), static)
        total = len(args) if static is None else static[0]
        donated = {n if n >= 0 else n + total for n in self._donate_argnums}
        chosen: list[int] = []
        for position, value in zip(positions, args, strict=True):
            if position in donated:
                chosen.extend(pytree.leaves(value))
        for name, value in kwargs.items():
            if name in self._donate_argnames:
                chosen.extend(pytree.leaves(value))
        return tuple(chosen)

    def _lookup(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Entry:
        """What the signature of these arguments was, or is now, traced to."""
        leaves, tree, static = self._flatten(args, kwargs)
        runtime = installed.runtime
        avals = tuple([leaf.aval if hasattr(leaf, "aval") else runtime.operand(leaf).aval
                       for leaf in leaves])
        return self._entry(avals, tree, static)

    def _flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Any, Any]:
        if self._simple:
            return (*pytree.flatten((args, kwargs)), None)
        return self._split(args, kwargs)

    def clear_cache(self) -> None:
        """Forgets all that was traced."""
        shared_traces(self._function).clear()
        self._entries.clear()
        self._plain_entries.clear()
        self._ref_entries.clear()
        if self._dynamic is not None:
            self._dynamic.variants.clear()

    def _cache_size(self) -> int:
        return len(self._entries) + len(self._ref_entries)


def check_hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError as error:
        raise ValueError(
            "Non-hashable static arguments are not supported. An error occurred while trying to "
            f"hash an object of type {type(value)}, {value}. The error was:\nTypeError: {error}\n"
        ) from None
    return value


def dynamic_positions(count: int, static: Any) -> list[int]:
    """The original positions of the dynamic positional arguments."""
    if static is None:
        return list(range(count))
    taken = {position for position, _, _ in static[1] if isinstance(position, int)}
    return [position for position in range(static[0]) if position not in taken]


def merge_static(args: tuple[Any, ...], kwargs: dict[str, Any], static: Any) -> tuple[
        tuple[Any, ...], dict[str, Any]]:
    """The arguments with the static ones back at their places."""
    if static is None:
        return args, kwargs
    merged: list[Any] = [None] * static[0]
    for position, value in zip(dynamic_positions(len(args), static), args, strict=True):
        merged[position] = value
    kwargs = dict(kwargs)
    for position, _, value in static[1]:
        if isinstance(position, int):
            merged[position] = value
        else:
            kwargs[position] = value
    return tuple(merged), kwargs


# Held weakly: a function takes what it closes over with it.
_signatures: weakref.WeakKeyDictionary[Any, inspect.Signature | None] = (
    weakref.WeakKeyDictionary())


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return _signatures[function]
    except (KeyError, TypeError):      # new, or unhashable
        pass
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = None
    try:
        _signatures[function] = signature
    except TypeError:
        pass
    return signature


def argument_names(function: Callable[..., Any], tree: Any, static: Any = None) -> list[str]:
    """A name like ``params['w']`` for each leaf of the dynamic arguments."""
    args, kwargs = pytree.unflatten(tree, range(tree.num_leaves))
    try:
        signature = signature_of(function)
    except TypeError:      # an unhashable callable
        signature = None
    names: list[str] = []
    if signature is not None:
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                names.extend(f"{parameter.name}[{i}]" for i in range(len(args) + 16))
                break
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                names.append(parameter.name)
    result: list[str] = [""] * tree.num_leaves
    for position, value in zip(dynamic_positions(len(args), static), args, strict=True):
        name = names[position] if position < len(names) else f"args[{position}]"
        for path, leaf in zip(*pytree.flatten_with_path(value)[:2], strict=True):
            result[leaf] = name + pytree.path_string(path)
    for name, value in kwargs.items():
        for path, leaf in zip(*pytree.flatten_with_path(value)[:2], strict=True):
            result[leaf] = name + pytree.path_string(path)
    return result


class HasNoValue:
    """What has a type and no value, and may yet be the result of a function that is only traced."""

    __slots__ = ()
    _aval: ShapedArray

    def _as_constant(self) -> Array:
        return _Unknown(self._aval)


class _Unknown(Array):
    """A constant that can be traced, and not computed with."""

    __slots__ = ()

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def literal(self) -> Any:
        return None

    def host(self) -> Any:
        raise TypeError("A ShapeDtypeStruct does not have a value and cannot be used as a constant "
                        "in a JAX function.")


def check_outputs(leaves: Sequence[Any], location: str, kind: str,
                  tree: Any = None) -> list[Any]:
    """The leaves of a function's result as arrays; ``tree`` is the result, for the message."""
    runtime = installed.runtime
    results = []
    for position, leaf in enumerate(leaves):
        if isinstance(leaf, Array):
            results.append(leaf)
            continue
        if isinstance(leaf, Ref):
            raise returned_ref(leaf, location, kind, position, tree)
        if isinstance(leaf, HasNoValue):
            results.append(leaf._as_constant())
            continue
        try:
            results.append(runtime.operand(leaf))
        except TypeError:
            path = "" if tree is None else pytree.path_string(
                pytree.flatten_with_path(tree)[0][position])
            raise TypeError(
                f"function {location} traced for {kind} returned a value of type {type(leaf)}"
                + (f" at output component {path}" if path else "")
                + ", which is not a valid JAX type") from None
    return results


def hoist_tracers(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """Makes the tracers among a jaxpr's constants its first inputs."""
    if not any(isinstance(value, Tracer) for value in closed.consts):
        return closed, []
    jaxpr = closed.jaxpr
    pairs = list(zip(jaxpr.constvars, closed.consts, strict=True))
    captured = [(var, value) for var, value in pairs if isinstance(value, Tracer)]
    kept = [(var, value) for var, value in pairs if not isinstance(value, Tracer)]
    hoisted = Jaxpr([var for var, _ in kept], [*(var for var, _ in captured), *jaxpr.invars],
                    jaxpr.outvars, jaxpr.eqns, jaxpr.debug_info)
    return (ClosedJaxpr(hoisted, [value for _, value in kept], closed.refs),
            [value for _, value in captured])


def with_constants(closed: ClosedJaxpr, values: Sequence[Any]) -> ClosedJaxpr:
    """A jaxpr whose first inputs become constants: the reverse of ``hoist_tracers``."""
    if not values:
        return closed
    jaxpr, count = closed.jaxpr, len(values)
    return ClosedJaxpr(
        Jaxpr([*jaxpr.invars[:count], *jaxpr.constvars], jaxpr.invars[count:], jaxpr.outvars,
              jaxpr.eqns, jaxpr.debug_info), [*values, *closed.consts])


def _as_tuple(value: Any, kind: type) -> tuple[Any, ...]:
    if value is None:
        return ()
    if isinstance(value, kind) or (kind is int and isinstance(value, str)):
        return (value,)
    return tuple(value)


def jitted(function: Function, *, static_argnames: Sequence[str] = ()) -> Function:
    """``make_jit`` of a function that keeps its own type to its callers."""
    made: Any = make_jit(function, static_argnames=static_argnames)
    return made


def make_jit(function: Callable[..., Any], static_argnums: int | Sequence[int] | None = None,
             static_argnames: str | Iterable[str] | None = None,
             donate_argnums: int | Sequence[int] | None = None,
             donate_argnames: str | Iterable[str] | None = None,
             keep_unused: bool = False, inline: bool = False,
             dynamic_dims: Mapping[int | str, Any] | None = None) -> PjitFunction:
    """A jitted function; numbers and names of static arguments stand for each other."""
    if not callable(function):
        raise TypeError(f"Expected a callable value, got {function}")
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"Expected a function, got a generator function: {function}")
    numbers = tuple(map(operator.index, _as_tuple(static_argnums, int)))
    names = _as_tuple(static_argnames, str)
    donated_numbers = tuple(map(operator.index, _as_tuple(donate_argnums, int)))
    donated_names = _as_tuple(donate_argnames, str)
    try:
        signature = signature_of(function)
    except TypeError:
        signature = None
    if signature is not None:
        numbers, names = _resolve(signature, numbers, names, "static_argnums", "static_argnames",
                                  infer_names=static_argnames is None,
                                  infer_numbers=static_argnums is None)
        donated_numbers, donated_names = _resolve(
            signature, donated_numbers, donated_names, "donate_argnums", "donate_argnames",
            infer_names=donate_argnames is None, infer_numbers=donate_argnums is None)
    both = set(names) & set(donated_names)
    if both:
        raise ValueError(
            f"static_argnames and donate_argnames cannot intersect. Argument names {both} appear "
            "in both static_argnames and donate_argnames")
    dynamic = None if dynamic_dims is None else DynamicDims(
        dynamic_dims, [] if signature is None else positional_names(signature))
    return PjitFunction(function, numbers, frozenset(names), donated_numbers,
                        frozenset(donated_names), inline, keep_unused, dynamic)


def positional_names(signature: inspect.Signature) -> list[str]:
    return [p.name for p in signature.parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _resolve(signature: inspect.Signature, numbers: tuple[int, ...], names: tuple[str, ...],
             numbers_name: str, names_name: str, infer_names: bool,
             infer_numbers: bool) -> tuple[tuple[int, ...], tuple[str, ...]]:
    parameters = list(signature.parameters.values())
    positional = positional_names(signature)
    by_name = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    takes_more = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    unknown = {name for name in names if name not in by_name}
    if unknown and not takes_any:
        raise ValueError(
            f"Jitted function has invalid argnames {unknown} in {names_name}. Function does not "
            "take these args.")
    outside = [n for n in numbers if not -len(positional) <= n < len(positional)]
    if outside and not takes_more:
        raise ValueError(
            f"Jitted function has {numbers_name}={numbers}, but only accepts {len(positional)} "
            "positional arguments.")
    all_numbers, all_names = list(numbers), list(names)
    if infer_names:
        all_names.extend(positional[n] for n in numbers
                         if -len(positional) <= n < len(positional) and positional[n] in by_name)
    if infer_numbers:
        all_numbers.extend(positional.index(name) for name in names if name in positional)
    return tuple(all_numbers), tuple(all_names)
