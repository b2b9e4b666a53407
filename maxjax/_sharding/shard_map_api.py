"""``shard_map``: a function of shards, applied to global values."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

from maxjax._base import pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.meshes import AbstractMesh, AnyMesh, AxisType, Mesh, get_abstract_mesh
from maxjax._base.meshes import use as mesh_use
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.shardings import NamedSharding
from maxjax._base.signatures import argument_names, wraps
from maxjax._base.source import function_location
from maxjax._base.specs import AxisName, PartitionSpec, entry_axes, spec_axes
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.control import operands_of
from maxjax._higher_order.jit_refs import returned_ref
from maxjax._higher_order.outputs import check_outputs
from maxjax._ir.refs import Ref
from maxjax._ir.staging import enclosing_traces
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Function
from maxjax._primitives.varying import vary
from maxjax._sharding.shard_map import dims_of, inner_mesh, inside, restrict_spec, shard_aval
from maxjax._sharding.shard_trace import ShardTrace
from maxjax._transforms.batching import BatchTrace
from maxjax._transforms.refs import Lent

P = PartitionSpec


class Infer:
    """The default of ``in_specs``: the arguments' types say how they lie along Explicit axes."""

    def __repr__(self) -> str:
        return "jax.sharding.Infer"


INFER: Any = Infer()


@overload
def shard_map(f: Function, /, *, out_specs: PyTree, in_specs: PyTree = INFER,
              mesh: AnyMesh | None = None,
              axis_names: set[AxisName] | frozenset[AxisName] = frozenset(),
              check_vma: bool = True) -> Function: ...
@overload
def shard_map(f: None = None, /, *, out_specs: PyTree, in_specs: PyTree = INFER,
              mesh: AnyMesh | None = None,
              axis_names: set[AxisName] | frozenset[AxisName] = frozenset(),
              check_vma: bool = True) -> Callable[[Function], Function]: ...


def shard_map(f: Callable[..., PyTree] | None = None, /, *, out_specs: PyTree,
              in_specs: PyTree = INFER, mesh: AnyMesh | None = None,
              axis_names: set[AxisName] | frozenset[AxisName] = frozenset(), check_vma: bool = True
              ) -> Any:
    """A function of whole arrays that applies ``f`` to each shard of them.

    Within ``f`` the axes of the mesh have names, over which collectives such as ``lax.psum``
    communicate. Differentiable in both modes.

    Args:
      f: a function of arrays or pytrees of them, positional ones; absent: gives a decorator.
      out_specs: how the results of the shards are put together; a prefix pytree of
        ``PartitionSpec``s. Along an axis that is not named all shards must give the same.
      in_specs: how the arguments are cut; likewise, for the tuple of arguments. Along an axis that
        is not named all shards get the same. Absent: what the arguments' types say.
      mesh: the one around if None.
      axis_names: the axes that are manual in ``f``; all of the mesh if empty.
      check_vma: whether types say over which axes values may vary (``float32[4]{V:x}``), so that
        ``out_specs`` can be checked, and what is the same on all shards is differentiated as such.

    Returns:
      A function of whole arrays; or, without ``f``, a decorator.

    Raises:
      TypeError: ``f`` is not callable, or a spec, the mesh or ``axis_names`` of the wrong type.
      ValueError: a spec names an axis that is not manual, is too long, or does not divide the
        dimension; or ``out_specs`` leaves out an axis over which a result may vary.

    See also: ``jax.jit``, ``jax.vmap``, ``jax.pmap``, ``lax.psum``, ``jax.make_mesh``,
    ``jax.sharding.PartitionSpec``.

    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> total = jax.shard_map(lambda x: jax.lax.psum(x.sum(), "x"), mesh=mesh,
    ...                       in_specs=jax.P("x"), out_specs=jax.P())
    >>> total(jnp.arange(4.))
    Array(6., dtype=float32)
    """
    settings = {"out_specs": out_specs, "in_specs": in_specs, "mesh": mesh,
                "axis_names": axis_names, "check_vma": check_vma}
    if f is None:
        return functools.partial(shard_map, **settings)
    if not callable(f):
        raise TypeError("shard_map requires a callable for its first argument, but got "
                        f"{f} of type {type(f)}.")
    function: Callable[..., Any] = f
    if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(
            "shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` instance "
            f"for its second argument, but got {mesh} of type {type(mesh)}.")
    if not isinstance(axis_names, (set, frozenset)):
        raise TypeError("`axis_names` argument of shard_map should be of type `frozenset` or "
                        f"`set`. Got type: {type(axis_names)}")
    call = _Call(function, mesh, in_specs, out_specs, frozenset(axis_names), bool(check_vma))

    @wraps(function)
    @boundary
    def wrapped(*args: PyTree) -> Any:
        return call(args)

    return wrapped


# So many signatures of a call are kept.
_MOST = 256


class _Inputs(NamedTuple):
    """What the arguments of a call are to its body: the specs and types of shards, and names."""

    specs: tuple[PartitionSpec, ...]
    avals: list[ShapedArray]
    names: list[str]


class _Call:
    """A function under ``shard_map``, with its mesh and specs."""

    def __init__(self, function: Callable[..., PyTree], mesh: AnyMesh | None, in_specs: PyTree,
                 out_specs: PyTree, axis_names: frozenset[AxisName], check_vma: bool):
        self.function = function
        self.mesh = mesh
        self.in_specs = in_specs
        self.out_specs = out_specs
        self.axis_names = axis_names
        self.check_vma = check_vma
        self.name = getattr(function, "__name__", str(function))
        self.has_all_specs = in_specs is None or in_specs is INFER or not any(
            spec is None for spec in pytree.flatten(in_specs, _is_spec)[0])
        self._known_inputs: dict[Any, _Inputs] = {}
        self._known_out_specs: dict[Any, tuple[PartitionSpec, ...]] = {}

    def surroundings(self) -> tuple[Any, frozenset[Any]]:
        """The mesh, and the axes that become manual."""
        around, mesh = get_abstract_mesh(), self.mesh
        if mesh is None:
            if around.empty:
                raise ValueError("The context mesh cannot be empty. Use `jax.set_mesh(mesh)` to "
                                 "enter into a mesh context")
            mesh = around
        elif mesh.empty:
            raise ValueError(f"shard_map requires a non-empty mesh. Got {mesh}")
        elif not around.empty:
            if (mesh.shape_tuple, tuple(mesh.axis_types)) != (
                    around.shape_tuple, tuple(around.axis_types)):
                raise ValueError(f"The context mesh {around} should match the mesh passed to "
                                 f"shard_map {mesh}")
            if around.manual_axes:      # within another shard_map
                mesh = around
        names = frozenset(mesh.axis_names) - _mapped_axes()
        if not self.axis_names <= names:
            raise ValueError(f"jax.shard_map requires axis_names={self.axis_names} to be a subset "
                             f"of mesh.axis_names={names}")
        return mesh, self.axis_names or names - frozenset(mesh.manual_axes)

    def __call__(self, args: tuple[PyTree, ...]) -> Any:
        mesh_use.ever_set = True
        mesh, manual = self.surroundings()
        args, whole = self._without_fixed(args)
        leaves, tree = pytree.flatten(args)
        location = function_location(self.function)
        lent = Lent(leaves, argument_names(self.function, pytree.structure((args, {}))), location,
                    "shard_map") if any(leaf.__class__ is Ref for leaf in leaves) else None
        values = operands_of(leaves if lent is None else lent.values(leaves))
        inputs = self._inputs(mesh, manual, args, tree, values)
        trace = ShardTrace(location, inputs.names, self.function, mesh, manual, self.check_vma)
        out_specs: tuple[PartitionSpec, ...] = ()
        out_tree: Any = None

        def body(*tracers: Array) -> list[Any]:
            nonlocal out_specs, out_tree
            outputs = self.function(*whole(
                tree, tracers if lent is None else lent.given(tracers)))
            leaves, out_tree = pytree.flatten(outputs)
            for position, leaf in enumerate(leaves):
                if leaf.__class__ is Ref:
                    raise returned_ref(leaf, location, "shard_map", position, leaves)
            out_specs = self._output_specs(mesh, manual, outputs, out_tree)
            values = check_outputs(operands_of(leaves), location, "shard_map", outputs)
            self._check_out_ranks(outputs, values, out_specs)
            if self.check_vma:
                self._check_replication(outputs, values, out_specs, mesh, manual)
                values = [_as_claimed(x, spec) for x, spec in zip(values, out_specs, strict=True)]
            if lent is None:
                return values
            finals = lent.finals()
            for n, value in zip(lent.written, finals, strict=True):
                if not value.aval.vma & manual <= frozenset(spec_axes(inputs.specs[n])):
                    raise ValueError(
                        f"shard_map applied to the function '{self.name}' was given the array "
                        f"reference {inputs.names[n]} with the in_spec {inputs.specs[n]}, but what "
                        f"it writes there varies: {value.aval.str_short()}")
            out_specs = *out_specs, *(inputs.specs[n] for n in lent.written)
            return [*values, *finals]

        with inside(mesh, manual, self.check_vma), (
                contextlib.nullcontext() if lent is None else lent.borrowed()):
            last = trace.run(body, inputs.avals, values, inputs.specs)
        results = last.apply(out_specs)
        if lent is not None:
            count = len(results) - len(lent.written)
            lent.write(results[count:])
            results = results[:count]
        return pytree.unflatten(canonical(out_tree), results)

    def _without_fixed(self, args: tuple[PyTree, ...]) -> tuple[
            tuple[PyTree, ...], Callable[[PyTreeSpec, Sequence[Any]], Any]]:
        """The arguments with None for each leaf whose spec is None, which may be any object and
        which the body sees as it is; and what makes whole arguments of the others."""
        if self.has_all_specs:
            return args, pytree.unflatten
        given = tuple(self.in_specs) if isinstance(self.in_specs, list) else self.in_specs
        leaves, tree = pytree.flatten(args)
        try:
            specs = pytree.broadcast_prefix(given, args, _is_spec)
        except ValueError:      # reported with the other specs
            return args, pytree.unflatten

        def whole(_: PyTreeSpec, values: Sequence[Any]) -> Any:
            rest = iter(values)
            return pytree.unflatten(tree, [
                leaf if spec is None else next(rest)
                for leaf, spec in zip(leaves, specs, strict=True)])

        return pytree.unflatten(tree, [
            None if spec is None else leaf
            for leaf, spec in zip(leaves, specs, strict=True)]), whole

    # --- arguments --------------------------------------------------------------------------------

    def _inputs(self, mesh: AnyMesh, manual: frozenset[AxisName], args: tuple[PyTree, ...],
                tree: PyTreeSpec, values: Sequence[Array]) -> _Inputs:
        """What arguments of a signature are to the body, checked once."""
        key = (mesh, manual, tree, tuple([x.aval for x in values]))
        known = self._known_inputs.get(key)
        if known is None:
            specs = self._input_specs(mesh, manual, args, values)
            if len(self._known_inputs) >= _MOST:
                self._known_inputs.clear()
            known = self._known_inputs[key] = _Inputs(
                specs, [shard_aval(x.aval, spec, mesh, self.check_vma, manual)
                        for x, spec in zip(values, specs, strict=True)],
                argument_names(self.function, pytree.structure((args, {}))))
        return known

    def _input_specs(self, mesh: AnyMesh, manual: frozenset[AxisName], args: tuple[PyTree, ...],
                     values: Sequence[Array]) -> tuple[PartitionSpec, ...]:
        explicit = frozenset(mesh.explicit_axes)
        typed = [_typed_spec(x.aval) for x in values]
        if self.in_specs is INFER:
            if not manual <= explicit:
                kinds = ", ".join(f"AxisType.{kind.name}" for name, kind in zip(
                    mesh.axis_names, mesh.axis_types, strict=True)
                    if name in manual and kind is not AxisType.Explicit)
                raise TypeError(
                    "shard_map in_specs argument must be a pytree of "
                    "`jax.sharding.PartitionSpec` instances, but it was `None` when "
                    f"axis_names={manual} are of type {kinds}")
            return tuple(typed) if manual == explicit else tuple(
                restrict_spec(spec, manual) for spec in typed)
        given = self.in_specs
        specs = _flat(tuple(given) if isinstance(given, list) else given, args, "in_specs")
        _check_specs("in_specs", specs, mesh, manual)
        self._check_in_ranks(args, values, specs)
        self._check_divisible(args, values, specs, mesh)
        for value, spec, whole, leaf in zip(values, specs, typed, pytree.leaves(args), strict=True):
            own, ndim = restrict_spec(whole, manual), value.aval.ndim
            if manual <= explicit:
                if _long(spec, ndim) != _long(own, ndim):
                    shown = leaf.aval if leaf.__class__ is Ref else value.aval
                    raise ValueError(
                        f"in_specs passed to shard_map: {_long(spec, ndim)} does not "
                        f"match the specs of the input: {_long(whole, ndim)} for arg: "
                        f"{shown.str_short()}. `in_specs` is an optional argument so you can "
                        "omit specifying it and shard_map will infer the in_specs from the "
                        "arguments. If you want to reshard your inputs, you can use `jax.reshard` "
                        "on the arguments and then pass those args to shard_map.")
                continue
            for kind in ("unreduced", "reduced"):
                if getattr(spec, kind) != getattr(own, kind):
                    raise ValueError(
                        f"in_specs containing {kind} {spec} passed to shard_map should be equal to "
                        f"the {kind} present on the in_aval "
                        f"{value.aval.str_short(short_dtypes=True)}")
        return specs

    def _argument(self, args: tuple[PyTree, ...], position: int) -> tuple[str, str]:
        """The path of a leaf of the arguments, and which parameter it is part of."""
        path = pytree.flatten_with_path(args)[0][position]
        number = int(pytree.path_string(path[:1]).strip("[]"))
        try:
            bound = inspect.signature(self.function).bind(*range(len(args)))
        except (TypeError, ValueError):
            bound = None
        where = f"args{pytree.path_string(path)}"
        extra = ""
        if bound is not None:
            for name, value in bound.arguments.items():
                if value == number or (isinstance(value, tuple) and number in value):
                    parameter = bound.signature.parameters[name]
                    extra = (f"where args[{number}] is bound to {self.name}'s parameter "
                             f"'{parameter}', ")
        return where, extra

    def _check_in_ranks(self, args: tuple[PyTree, ...], values: Sequence[Array],
                        specs: Sequence[PartitionSpec]) -> None:
        lines, scalar = [], False
        for position, (value, spec) in enumerate(zip(values, specs, strict=True)):
            rank = value.aval.ndim
            if len(spec) > rank:
                scalar = scalar or rank == 0
                paths = _spec_paths(self.in_specs, args, "in_specs")
                argument, extra = self._argument(args, position)
                lines.append(
                    f"{paths[position]} is {spec} which has length {len(spec)}, but the passed "
                    f"{argument}, {extra}has shape {value.aval.str_short()}, which has rank {rank} "
                    f"(and {rank} < {len(spec)})")
        extra = ("\n\nFor scalar values (rank 0), consider using an in_specs entry of `P()`, where "
                 "`P = jax.sharding.PartitionSpec`.") if scalar else ""
        if lines:
            raise ValueError(
                f"shard_map applied to the function '{self.name}' was given an in_specs entry "
                "which is too long to be compatible with the corresponding input value from the "
                f"function:\n\n{_listed(lines)}\n\nEntries in in_specs must be of length no "
                "greater than the number of axes in the corresponding input value.\n\nEither "
                f"revise the spec to be shorter, or modify '{self.name}' so that its inputs have "
                f"sufficient rank.{extra}")

    def _check_divisible(self, args: tuple[PyTree, ...], values: Sequence[Array],
                         specs: Sequence[PartitionSpec], mesh: AnyMesh) -> None:
        lines = []
        sizes = dict(mesh.shape_tuple)
        for position, (value, spec) in enumerate(zip(values, specs, strict=True)):
            for dim, axes in enumerate(dims_of(spec, value.aval.ndim)):
                parts, size = 1, value.aval.shape[dim]
                for axis in axes:
                    parts *= sizes[axis]
                if size % parts == 0:
                    continue
                paths = _spec_paths(self.in_specs, args, "in_specs")
                argument, extra = self._argument(args, position)
                what = (f"mesh axis '{axes[0]}' (of size {parts})" if len(axes) == 1 else
                        f"mesh axes {axes} (of total size {parts})")
                lines.append(
                    f"the passed {argument} of shape {value.aval.str_short()}, {extra}corresponds "
                    f"to {paths[position]} of value {spec}, which maps array axis {dim} (of size "
                    f"{size}) to {what}, but {parts} does not evenly divide {size}")
        if lines:
            raise ValueError(
                f"shard_map applied to the function '{self.name}' was given argument arrays with "
                "axis sizes that are not evenly divisible by the corresponding mesh axis sizes:"
                f"\n\n{_mesh_text(mesh)}\n\n{_listed(lines)}\n\nArray arguments' axis sizes must "
                "be evenly divisible by the mesh axis or axes indicated by the corresponding "
                "elements of the argument's in_specs entry. Consider checking that in_specs are "
                "correct, and if so consider changing the mesh axis sizes or else padding the "
                f"input and adapting '{self.name}' appropriately.")

    # --- results ----------------------------------------------------------------------------------

    def _output_specs(self, mesh: AnyMesh, manual: frozenset[AxisName], outputs: PyTree,
                      tree: PyTreeSpec) -> tuple[PartitionSpec, ...]:
        """The spec of each leaf of the body's results, checked once for a structure of them."""
        key = (mesh, manual, tree)
        known = self._known_out_specs.get(key)
        if known is None:
            known = _flat(self.out_specs, outputs, "out_specs")
            _check_specs("out_specs", known, mesh, manual)
            if len(self._known_out_specs) >= _MOST:
                self._known_out_specs.clear()
            self._known_out_specs[key] = known
        return known

    def _check_out_ranks(self, outputs: PyTree, values: Sequence[Array],
                         specs: Sequence[PartitionSpec]) -> None:
        lines, scalar = [], False
        for position, (value, spec) in enumerate(zip(values, specs, strict=True)):
            rank = value.aval.ndim
            if len(spec) > rank:
                paths = _spec_paths(self.out_specs, outputs, "out_specs")
                output_paths = pytree.flatten_with_path(outputs)[0]
                scalar = scalar or rank == 0
                lines.append(
                    f"{paths[position]} is {spec} which has length {len(spec)}, but {self.name}"
                    f"(*args){pytree.path_string(output_paths[position])} has shape "
                    f"{value.aval.off_mesh().str_short()}, which has rank {rank} (and {rank} < "
                    f"{len(spec)})")
        if not lines:
            return
        extra = ("\n\nFor scalar values (rank 0), consider using an out_specs entry of `P()`, "
                 "where `P = jax.sharding.PartitionSpec`. In particular, for rank 0 outputs which "
                 "are not constant over the mesh, add at least one (singleton) axis to them so "
                 "that they can be concatenated using out_specs.") if scalar else ""
        raise ValueError(
            f"shard_map applied to the function '{self.name}' was given an out_specs entry which "
            "is too long to be compatible with the corresponding output value from the function:"
            f"\n\n{_listed(lines)}\n\nEntries in out_specs must be of length no greater than the "
            "number of axes in the corresponding output value.\n\nEither revise the spec to be "
            f"shorter, or modify '{self.name}' so that its outputs have sufficient rank.{extra}")

    def _check_replication(self, outputs: PyTree, values: Sequence[Array],
                           specs: Sequence[PartitionSpec], mesh: AnyMesh,
                           manual: frozenset[AxisName]) -> None:
        lines = []
        for position, (value, spec) in enumerate(zip(values, specs, strict=True)):
            states = value.aval.manual_axis_type
            known = frozenset(spec_axes(spec)) | spec.unreduced | spec.reduced
            if states.vur & manual <= known:
                continue
            path = _spec_paths(self.out_specs, outputs, "out_specs")[position]
            start = f"{path} is {spec} which implies that the corresponding output value is "
            left_out = [name for name in mesh.axis_names if name not in known]
            if len(left_out) == 1:
                lines.append(f"{start}replicated across mesh axis '{left_out[0]}', but could not "
                             "infer replication over any axes")
                continue
            shown = [",".join(str(name) for name in mesh.axis_names if name in axes) for axes in (
                frozenset(spec_axes(spec)), states.varying.intersection(left_out), states.varying)]
            lines.append(
                f"{start}only varying across mesh axes {{{shown[0]}}} and not {{{shown[1]}}}, but "
                f"it was inferred to be possibly varying over {{{shown[2]}}}")
        if lines:
            raise ValueError(
                f"shard_map applied to the function '{self.name}' was given out_specs which "
                "require replication which can't be statically inferred given the mesh:\n\n"
                f"{_mesh_text(mesh)}\n\n{_listed(lines)}\n\nCheck if these output values are meant "
                "to be replicated over those mesh axes. If not, consider revising the "
                "corresponding out_specs entries. If so, consider disabling the check by passing "
                "the check_vma=False argument to `jax.shard_map`.")


def _mapped_axes() -> frozenset[AxisName]:
    """The Explicit axes that the elements of ``vmap``s around lie along."""
    return frozenset(
        axis for trace in enclosing_traces() if isinstance(trace, BatchTrace)
        for axis in entry_axes(trace.entry))


# --- specs ----------------------------------------------------------------------------------------


def _is_spec(node: object) -> bool:
    return node is None or isinstance(node, PartitionSpec)


def _is_leaf(node: object) -> bool:
    return isinstance(node, PartitionSpec)


def _flat(specs: PyTree, value: PyTree, name: str) -> tuple[PartitionSpec, ...]:
    """One spec for each leaf of ``value``. None among those of inputs is the empty one."""
    is_leaf = _is_spec if name == "in_specs" else _is_leaf
    for path, leaf in zip(*pytree.flatten_with_path(specs, is_leaf=is_leaf)[:2], strict=True):
        if not _is_spec(leaf):
            raise TypeError(
                f"shard_map {name} argument must be a pytree of `jax.sharding.PartitionSpec` "
                f"instances, but:\n\n  {name}{pytree.path_string(path)} is {leaf} of type "
                f"{type(leaf).__name__}, \n\nCheck the {name} values passed to shard_map.")
    try:
        found = pytree.broadcast_prefix(specs, value, is_leaf=is_leaf)
    except ValueError:
        raise pytree.structure_error(specs, value, f"shard_map {name}", is_leaf) from None
    if name == "out_specs" and any(spec is None for spec in found):
        raise pytree.structure_error(specs, value, f"shard_map {name}", is_leaf)
    return tuple(P() if spec is None else spec for spec in found)


def _spec_paths(specs: PyTree, value: PyTree, name: str) -> list[str]:
    """Where in ``specs`` the spec of each leaf stands, as ``in_specs[0]``."""
    is_leaf = _is_spec if name == "in_specs" else _is_leaf
    paths = pytree.flatten_with_path(specs, is_leaf=is_leaf)[0]
    tree = pytree.structure(specs, is_leaf)
    numbered = pytree.numbered(tree)
    return [name + pytree.path_string(paths[number])
            for number in pytree.broadcast_prefix(numbered, value)]


def _check_specs(name: str, specs: Sequence[PartitionSpec], mesh: AnyMesh,
                 manual: frozenset[AxisName]) -> None:
    for spec in specs:
        for axis in spec_axes(spec):
            if axis not in manual:
                raise ValueError(
                    f"shard_map {name} argument must refer to an axis marked as manual ({manual}), "
                    f"but:\n\n  {name} refers to '{axis}'\n\nCheck the {name} values passed to "
                    "shard_map.")
        _check_unreduced(name, spec, mesh, manual)


def _check_unreduced(name: str, spec: PartitionSpec, mesh: AnyMesh, manual: frozenset[AxisName]
                     ) -> None:
    """Raises ValueError where unreduced or reduced values come in or out along axes that are not
    manual, or go out along axes that were not Explicit."""
    for kind in ("unreduced", "reduced"):
        if not getattr(spec, kind) <= manual:
            raise ValueError(
                f"{kind} in {name} {spec} can only be used when the mesh passed to shard_map "
                f"contains axis names of type `Manual`. Got mesh {inner_mesh(mesh, manual)}")
    if name == "out_specs" and (spec.unreduced or spec.reduced):
        NamedSharding(mesh.abstract_mesh, spec)


def _as_claimed(x: Array, spec: PartitionSpec) -> Any:
    """A result that varies along the axes that its spec names.

    Raises:
      ValueError: it is not unreduced, or reduced, along the same axes as its spec says.
    """
    x = vary(x, spec_axes(spec))
    states = x.aval.manual_axis_type
    for kind in ("unreduced", "unreduced_kind", "reduced"):
        if getattr(spec, kind) != getattr(states, kind):
            raise ValueError(
                f"out_specs passed to shard_map should be equal to the {kind} present on the "
                f"out_aval. Got out_specs={spec} and "
                f"out_aval={x.aval.str_short(short_dtypes=True)}")
    return x


def _typed_spec(aval: ShapedArray) -> PartitionSpec:
    """What a type says of Explicit axes."""
    return P() if aval.mesh_spec is None else aval.mesh_spec[1]


def _long(spec: PartitionSpec, ndim: int) -> PartitionSpec:
    return spec.update(partitions=(*spec.partitions, *[None] * (ndim - len(spec))))


def _mesh_text(mesh: AnyMesh) -> str:
    return (f"The mesh given has shape {tuple(mesh.axis_sizes)} with corresponding axis names "
            f"{mesh.axis_names}.")


def _listed(lines: Sequence[str]) -> str:
    return lines[0] if len(lines) == 1 else "\n\n".join(f"* {line}" for line in lines)
