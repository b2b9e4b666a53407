"""The body of a ``shard_map`` while it is traced; outside programs its values can be looked at.

The body is recorded as a jaxpr. Looking at a value (``print``, ``if``, ``int``) runs what is
recorded so far on all shards, as a ``shard_map`` of its own whose results are stacked; what follows
reads those results as inputs. So each operation, with its effects, runs once and in order, and a
body that nobody looks into stays one program. Under transformations that know values the pieces are
transformed as any ``shard_map``; under others (``jit``, what ``vmap`` maps) there is only the type.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import caches, config
from maxjax._base.interrupts import context_manager
from maxjax._base.meshes import NONE_AROUND, AnyMesh, Mesh, around, within
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import AxisName, PartitionSpec
from maxjax._higher_order.buffer_callback import buffer_callback_p
from maxjax._higher_order.callback import io_callback_p, pure_callback_p
from maxjax._ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Params,
    Var,
    derived,
    subjaxprs,
)
from maxjax._ir.liveness import read_variables
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import Ref
from maxjax._ir.runtime import installed
from maxjax._ir.staging import DynamicJaxprTracer, StagingTrace, enclosing_traces
from maxjax._ir.trace import Array, Tracer, Value, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import FlatJvp, FlatVjp
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.layout import reshape, squeeze_p
from maxjax._primitives.sharding import device_put_p, type_on
from maxjax._primitives.slicing import slice_in_dim
from maxjax._sharding.execute import cut
from maxjax._sharding.shard_map import dims_of, shard_map_p, stacked_spec

P = PartitionSpec


class Given(NamedTuple):
    """The global value behind a variable of the body.

    Attributes:
      value: the global value, split as ``spec`` says.
      stacked: the type of one shard where that has one dimension more than the variable, the first,
        along which the shards are stacked; else None.
    """

    value: Any
    spec: PartitionSpec
    stacked: ShapedArray | None = None


class _Surroundings:
    """The traces, named axes and meshes around the running code, to be restored later."""

    __slots__ = ("meshes", "state")

    def __init__(self) -> None:
        self.state = dict(vars(context))
        self.meshes = around()

    @context_manager
    def restored(self) -> Iterator[None]:
        now = vars(context)
        state = dict(now)
        with within(self.meshes):
            try:
                now.update(self.state)
                yield
            finally:
                now.update(state)


class Part(NamedTuple):
    """A piece of the body as a program of one shard, and the global values of its inputs."""

    closed: ClosedJaxpr
    given: list[Given]
    trace: ShardTrace

    def apply(self, out_specs: tuple[PartitionSpec, ...]) -> list[Any]:
        """Applies it to all shards, under the current trace."""
        trace = self.trace
        return shard_map_p.bind(
            *[x.value for x in self.given], mesh=trace.mesh,
            in_specs=tuple([x.spec for x in self.given]), out_specs=out_specs,
            jaxpr=known_program(trace.function, self.closed), check_vma=trace.check_vma,
            newly_manual_axes=trace.manual)


class ShardTrace(StagingTrace):
    """Records the body of a ``shard_map``, and runs it as far as somebody wants values.

    Made where the ``shard_map`` is called, outside of its body.

    Args:
      location, argument_names: of the function, for messages.
      function: the one with this body; what is derived from its programs is kept with it.
      mesh, manual, check_vma: of the ``shard_map``.
    """

    __slots__ = ("check_vma", "function", "given", "inside", "is_bottom", "manual", "mesh",
                 "outside", "sees_values", "tracers", "types_tell", "unknown")

    def __init__(self, location: str, argument_names: Sequence[str] | None,
                 function: Callable[..., PyTree], mesh: AnyMesh, manual: frozenset[AxisName],
                 check_vma: bool):
        super().__init__(location, "shard_map", argument_names)
        self.function = function
        self.mesh = mesh
        self.manual = manual
        self.check_vma = check_vma
        self.types_tell = check_vma
        self.outside = self.inside = _Surroundings()
        traces = list(enclosing_traces())
        # Whether the enclosing traces know values at all.
        self.sees_values = all(
            trace.sees_values if isinstance(trace, ShardTrace) else
            not isinstance(trace, StagingTrace) for trace in traces)
        # Whether nothing around differentiates or maps.
        self.is_bottom = self.sees_values and (traces[0] is installed.runtime or (
            isinstance(traces[0], ShardTrace) and traces[0].is_bottom))
        self.given: dict[Var, Given] = {}
        # The variables that have no known value.
        self.unknown: set[Var] = set()
        # The variables that Python still holds.
        self.tracers: weakref.WeakValueDictionary[Var, Tracer] = weakref.WeakValueDictionary()

    def run(self, body: Callable[..., Sequence[Array]], avals: Sequence[ShapedArray],
            values: Sequence[Array], specs: Sequence[PartitionSpec]) -> Part:
        """Traces the body, within its mesh; returns the piece that is left to apply.

        Args:
          values, specs: the global values that the body's inputs are shards of.
        """
        try:
            tracers = [self.new_input(aval) for aval in avals]
            for tracer, value, spec in zip(tracers, values, specs, strict=True):
                self._give(tracer._var, value, spec)
            with current_trace(self):
                self.inside = _Surroundings()
                outputs = body(*tracers)
            closed = self.close(outputs)
        finally:
            self.live = False
            self.inside = self.outside      # which does not refer back to this trace
        jaxpr = closed.jaxpr
        inputs = {*jaxpr.constvars, *jaxpr.invars}
        computed = [var for var in read_variables(jaxpr.eqns, jaxpr.outvars)
                    if var in self.given and var not in inputs]
        return self._part([*jaxpr.constvars, *computed, *jaxpr.invars], jaxpr.eqns, jaxpr.outvars)

    # --- tracing ----------------------------------------------------------------------------------

    def atom(self, value: Value) -> Atom:
        count = len(self.constants)
        atom = super().atom(value)
        if len(self.constants) > count:
            _refuse_on_explicit_axes(value)
            self._give(*next(reversed(self.constants.values())), P())
        return atom

    def _give(self, var: Var, value: Value, spec: PartitionSpec) -> None:
        self.given[var] = Given(value, spec)
        if isinstance(value, Tracer) and not value.is_known():
            self.unknown.add(var)

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        if primitive is device_put_p and self.sees_values:
            for device in params["devices"]:
                if device is not None:
                    raise ValueError(
                        "device_put with explicit device not allowed within shard_map-decorated "
                        f"functions, but got device {device}")
        result = super().apply(primitive, args, params)
        if self.sees_values:
            eqn = self.eqns[-1]
            if not self.unknown.isdisjoint(eqn.invars):
                self.unknown.update(eqn.outvars)
            for tracer in result if primitive.multiple_results else [result]:
                self.tracers[tracer._var] = tracer
        return result

    def reference(self, ref: Ref) -> Any:
        state = super().reference(ref)
        if state.initial is not None:
            self.unknown.add(state.initial._var)
        return state

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: object) -> list[Any]:
        if self.is_bottom:      # nobody asks for derivatives
            return function(*args)
        return super().apply_custom_jvp(function, jvp, args, **params)

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: object) -> list[Any]:
        if self.is_bottom:
            return function(*args)
        return super().apply_custom_vjp(function, rule, args, **params)

    def origin(self, var: Var) -> str:
        # Its values are known, but for those that differ between shards.
        return "" if self.is_known(var) else super().origin(var)

    # --- looking ----------------------------------------------------------------------------------

    def is_known(self, var: Var) -> bool:
        return self.sees_values and var not in self.unknown

    def concrete(self, var: Var) -> Any:
        if not self.check_vma or not _is_same_on_all(var.aval):
            return None
        found = self._value(var)
        if found is None:
            return None
        value = found.value.concrete() if isinstance(found.value, Tracer) else found.value
        if found.stacked is None or value is None:
            return value
        with self.outside.restored(), current_trace(installed.runtime):
            return squeeze_p.bind(slice_in_dim(value, 0, 1, 0), dimensions=(0,))

    def text(self, var: Var) -> str:
        """The block of each device; the type alone where values are not known."""
        mesh = self._devices()
        found = None if mesh is None else self._blocks(var, mesh)
        if mesh is None or found is None:
            return super().text(var)
        names, blocks = found
        positions = [mesh.axis_names.index(name) for name in names]
        axes = f"({', '.join(map(str, mesh.axis_names))},)"
        with within(NONE_AROUND), current_trace(installed.runtime):
            return "\n".join(
                f"On {device} at mesh coordinates {axes} = {index}:\n"
                f"{blocks[tuple(index[position] for position in positions)]}\n"
                for index, device in np.ndenumerate(mesh.devices))

    def _devices(self) -> Mesh | None:
        if isinstance(self.mesh, Mesh):
            return self.mesh
        concrete = self.outside.meshes.concrete
        if concrete.abstract_mesh == self.mesh and not concrete.empty:
            return concrete
        outer = self.outside.state["trace"]
        return outer._devices() if isinstance(outer, ShardTrace) else None

    def _blocks(self, var: Var, mesh: Mesh) -> tuple[list[Any], Any] | None:
        """The blocks of all shards along leading dimensions, and the axes that those stand for."""
        found = self._value(var)
        if found is None:
            return None
        value = found.value
        names: list[Any] = []
        if isinstance(value, Tracer):
            if not isinstance(value._trace, ShardTrace) or type(value) is not DynamicJaxprTracer:
                return None
            outer = value._trace._blocks(value._var, mesh)
            if outer is None:
                return None
            names, value = outer
        else:
            value = installed.runtime.put(value, mesh.devices.flat[0])
        # A mesh that is set wants operands on all of its devices.
        with self.outside.restored(), within(NONE_AROUND), current_trace(installed.runtime):
            sizes = dict(mesh.shape_tuple)
            # The values of enclosing shards are stacked along leading dimensions already.
            dims = (*[(name,) for name in names],
                    *dims_of(found.spec, len(value.shape) - len(names)))
            split = {axis for axes in dims for axis in axes}
            names = [name for name in sizes if name in split]
            shape = (*[sizes[name] for name in names], *var.aval.shape)
            return names, reshape(cut(value, dims, sizes), shape)

    def _value(self, var: Var) -> Given | None:
        if self.live and self.is_known(var) and (
                var not in self.given or any(eqn.effects for eqn in self.eqns)):
            self._compute()
        return self.given.get(var) if self.is_known(var) else None

    def _compute(self) -> None:
        """Runs what is recorded so far, as far as its operands are known."""
        now: list[JaxprEqn] = []
        later: list[JaxprEqn] = []
        for eqn in self.eqns:
            known = self.unknown.isdisjoint(eqn.invars)
            (now if known else later).append(eqn)
        read_later = read_variables(later)
        wanted = [var for eqn in now for var in eqn.outvars
                  if var in self.tracers or var in read_later]
        axes = [name for name in self.mesh.axis_names if name in self.manual]
        # Types do not say which results of callbacks differ.
        self.types_tell = self.types_tell and not any(map(_calls_python, now))
        specs = tuple([stacked_spec(var.aval, axes, self.types_tell) for var in wanted])
        self.eqns = now
        with self.inside.restored():
            tracers = [DynamicJaxprTracer(self, var) for var in wanted]
            results: list[Any] = [
                expand_axis(tracer, 0) if len(spec) else tracer
                for tracer, spec in zip(tracers, specs, strict=True)]
        self.eqns = later
        outvars = [result._var for result in results]
        read = self.drop_unused(now, outvars)
        inputs = [var for var in read if var in self.given]
        with self.outside.restored():
            values = self._part(inputs, now, outvars).apply(specs)
        for var, result, value, spec in zip(wanted, results, values, specs, strict=True):
            self.given[var] = Given(value, spec, result.aval if len(spec) else None)

    def _part(self, inputs: Sequence[Var], eqns: Sequence[JaxprEqn],
              outvars: Sequence[Atom]) -> Part:
        """These equations as a program of variables whose values are known."""
        given = [self.given[var] for var in inputs]
        invars, unstacked = [], []
        for var, (_, _, stacked) in zip(inputs, given, strict=True):
            invars.append(var if stacked is None else Var(stacked))
            if stacked is not None:
                unstacked.append(JaxprEqn(squeeze_p, invars[-1:], {"dimensions": (0,)}, [var]))
        return Part(ClosedJaxpr(Jaxpr([], invars, outvars, [*unstacked, *eqns],
                                      self.debug_info)), given, self)


# The programs that each function was traced to, by structure; they live as long as the function.
# Its Python runs at every call, and what is derived from an equal program is found again.
_programs = caches.cache_by_owner()
_PROGRAM_LIMIT = 64


def _refuse_on_explicit_axes(value: Value) -> None:
    """Raises NotImplementedError where a body closes over a value on Explicit axes: within it
    those are manual."""
    if not isinstance(value, Array):
        return
    aval = value.aval
    if aval.mesh_spec is None and not isinstance(value, Tracer) and isinstance(
            value.sharding, NamedSharding):
        aval = type_on(aval, value.sharding)
    if aval.mesh_spec is not None and aval.mesh_spec[0].explicit_axes:
        raise NotImplementedError(
            "Closing over inputs to shard_map where the input is sharded on `Explicit` axes is not "
            "implemented. As a workaround, please pass those inputs as an argument to shard_map. "
            f"Got input with shape {aval.str_short(short_dtypes=True)}"
            f"({{Explicit: {aval.mesh_spec[0].explicit_axes}}})")


def known_program(function: Callable[..., PyTree], closed: ClosedJaxpr) -> ClosedJaxpr:
    """The first jaxpr of a function that is equal to this one, or this one."""
    try:
        known = _programs.setdefault(function, {})
        key = _structure(closed.jaxpr)
        found = known.get(key)
    except TypeError:      # a function that cannot be referred to weakly, an unhashable parameter
        return closed
    if found is None:
        if len(known) >= _PROGRAM_LIMIT:
            known.clear()
        found = known[key] = closed
    return found


def _structure(jaxpr: Jaxpr) -> Any:
    """The structure of a jaxpr without constants, except the lines of its equations."""
    numbers: dict[Var, int] = {}

    def atom(x: Atom) -> Any:
        if isinstance(x, Literal):
            return x.aval, np.asarray(x.val).tobytes()
        return numbers[x]

    for var in jaxpr.invars:
        numbers[var] = len(numbers)
    eqns = []
    for eqn in jaxpr.eqns:
        operands = tuple(map(atom, eqn.invars))
        for var in eqn.outvars:
            numbers[var] = len(numbers)
        dropped = tuple([isinstance(var, DropVar) for var in eqn.outvars])
        eqns.append((eqn.primitive, tuple(eqn.params.items()), operands, dropped))
    return (tuple([var.aval for var in jaxpr.invars]), tuple(eqns),
            tuple(map(atom, jaxpr.outvars)), config.trace_state())


@derived
def _any_calls_python(closed: ClosedJaxpr) -> bool:
    return any(map(_calls_python, closed.eqns))


def _calls_python(eqn: JaxprEqn) -> bool:
    """Whether an equation, or one inside it, calls a Python function for its results."""
    if eqn.primitive in (pure_callback_p, io_callback_p, buffer_callback_p):
        return True
    return not eqn.primitive.cacheable and any(
        isinstance(jaxpr, ClosedJaxpr) and _any_calls_python(jaxpr)
        for jaxpr in subjaxprs(eqn.params))


def _is_same_on_all(aval: ShapedArray) -> bool:
    states = aval.manual_axis_type
    return not (states.varying or states.unreduced or states.reduced)
