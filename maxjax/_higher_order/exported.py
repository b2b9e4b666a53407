"""Exported functions: programs apart from the Python function that they were traced from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from maxjax._base import config, dtypes, meshes, pytree
from maxjax._base.meshes import AxisType, Mesh
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.shardings import NamedSharding
from maxjax._base.signatures import leaf_names
from maxjax._base.specs import PartitionSpec, entry_axes
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order import export_format, export_jax
from maxjax._higher_order.cache_misses import tree_differences
from maxjax._higher_order.custom_vjp import custom_vjp
from maxjax._higher_order.dynamic import MAX_SIZES
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.safety_checks import DisabledSafetyCheck
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.jaxpr import ClosedJaxpr, Family
from maxjax._ir.liveness import read_inputs
from maxjax._ir.runtime import call_of, installed
from maxjax._ir.substitute import with_sizes
from maxjax._ir.symbolic import scope_of, solve
from maxjax._ir.trace import Array, aval_of, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Shape, Value
from maxjax._transforms.autodiff import leaf_operand

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


class ReadModule(Protocol):
    """The program of one of JAX's files.

    Attributes:
      artifact: its bytes of StableHLO.
      kept: the numbers of the arguments that it takes.
    """

    artifact: bytes
    kept: tuple[int, ...]

    def at(self, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
        """The program of arguments of these types."""


@dataclasses.dataclass(frozen=True, eq=False)
class Exported:
    """A function for one signature, which can be called, differentiated and saved.

    Made by ``export`` and ``deserialize``.

    Attributes:
      fun_name: the function's name.
      in_tree: the structure of ``(args, kwargs)``, without the static arguments.
      in_avals: the types of its leaves; sizes may be symbolic.
      out_tree, out_avals: of the result.
      platforms: what it was exported for.
      disabled_safety_checks: what calls do not check.
      calling_convention_version: the version of JAX's convention that the call follows.
      nr_devices: how many devices it runs on: those of the mesh that arguments, results or the
        program name.
      ordered_effects, unordered_effects: none: functions with effects are not exported.

    >>> exported = jax.export.export(jax.jit(jnp.sin))(jnp.ones(3))
    >>> exported.in_avals
    (ShapedArray(float32[3]),)
    >>> print(exported)
    Exported(fun_name=sin, ...)
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    platforms: tuple[str, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    # Takes and gives the arrays except those of float0, which hold nothing.
    program: ClosedJaxpr = dataclasses.field(repr=False)
    _get_vjp: Callable[[Exported], Exported] | None = dataclasses.field(repr=False)
    calling_convention_version: int = maximum_supported_calling_convention_version
    nr_devices: int = 1
    ordered_effects: tuple[Any, ...] = ()
    unordered_effects: tuple[Any, ...] = ()

    # How each argument and result is split along the mesh's axes; None: left open.
    in_specs: tuple[PartitionSpec | None, ...] = dataclasses.field(default=(), repr=False)
    out_specs: tuple[PartitionSpec | None, ...] = dataclasses.field(default=(), repr=False)
    # The names and sizes of those axes, and whether they are Explicit.
    mesh_axes: tuple[tuple[str, int, bool], ...] = dataclasses.field(default=(), repr=False)
    # Whether it comes from a file: its program is checked again with each call's sizes.
    _was_read: bool = dataclasses.field(default=False, repr=False)
    # The program of one of JAX's files, for the sizes of a call.
    _read_module: ReadModule | None = dataclasses.field(default=None, repr=False)
    _programs: dict[Any, ClosedJaxpr] = dataclasses.field(default_factory=dict, repr=False)
    _family: Family = dataclasses.field(default_factory=Family, repr=False)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def __repr__(self) -> str:
        # As JAX's, without its bytes of a program.
        told = {"fun_name": self.fun_name, "in_tree": self.in_tree, "in_avals": self.in_avals,
                "out_tree": self.out_tree, "out_avals": self.out_avals,
                "_has_named_shardings": True,
                "_in_named_shardings": self.in_specs or self.in_shardings_hlo,
                "_out_named_shardings": self.out_specs or self.out_shardings_hlo,
                **{name: getattr(self, name) for name in (
                    "in_shardings_hlo", "out_shardings_hlo", "nr_devices", "platforms",
                    "ordered_effects", "unordered_effects", "disabled_safety_checks",
                    "calling_convention_version", "module_kept_var_idx",
                    "uses_global_constants")}}
        return f"Exported({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    # --- what it is ---
    @property
    def module_kept_var_idx(self) -> tuple[int, ...]:
        """The arguments that the result depends on."""
        if self._read_module is not None:
            return self._read_module.kept
        if self.uses_global_constants:      # arguments say what the sizes are
            return tuple(range(len(self.in_avals)))
        taken = [n for n, aval in enumerate(self.in_avals) if aval.dtype != dtypes.float0]
        return tuple(
            n for n, read in zip(taken, read_inputs(self.program), strict=True) if read)

    @property
    def uses_global_constants(self) -> bool:
        """Whether sizes are symbolic."""
        return any(is_dimension(size) for aval in self.in_avals for size in aval.shape)

    @property
    def in_shardings_hlo(self) -> tuple[None, ...]:
        """None for each argument."""
        return (None,) * len(self.in_avals)

    @property
    def out_shardings_hlo(self) -> tuple[None, ...]:
        """None for each result."""
        return (None,) * len(self.out_avals)

    def in_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """How each argument lies over a mesh of the axes that it was exported for."""
        return _shardings(mesh, self.in_specs, len(self.in_avals))

    def out_shardings_jax(self, mesh: Mesh) -> tuple[NamedSharding | None, ...]:
        """How each result lies over a mesh of the axes that it was exported for."""
        return _shardings(mesh, self.out_specs, len(self.out_avals))

    def mlir_module(self) -> str:
        """The program as StableHLO; see ``jax.stages.Lowered.as_text``.

        Raises:
          NotImplementedError: an operation cannot be written with its symbolic sizes.
        """
        self._check_program("as StableHLO")
        return export_jax.stablehlo(self, self.program)

    @property
    def mlir_module_serialized(self) -> bytes:
        """The text of ``mlir_module``, which MLIR's parsers read as they do bytecode; of a function
        that JAX has saved, its bytecode."""
        if self._read_module is not None:
            return self._read_module.artifact
        return self.mlir_module().encode()

    # --- saving ---
    def serialize(self, vjp_order: int = 0, *, format: str = "maxjax") -> bytearray:
        """The function as bytes, which ``deserialize`` reads, in another process too.

        Args:
          vjp_order: how many times it can be differentiated in reverse mode afterwards.
          format: "maxjax", or "jax": what real JAX's ``deserialize`` reads, too.

        Raises:
          ValueError: there are no derivatives of that order, a structure holds a class that is
            not registered for it, or there is no such format.
          NotImplementedError: JAX's format cannot hold it: it has an operation that XLA does not
            have, or not with symbolic sizes.
        """
        if vjp_order < 0:
            raise ValueError(f"vjp_order must not be negative, got {vjp_order}")
        if format not in ("maxjax", "jax"):
            raise ValueError(f"format must be 'maxjax' or 'jax', got {format!r}")
        functions = [self]
        for _ in range(vjp_order):
            if not functions[-1].has_vjp():
                raise ValueError(
                    "serialization of an Exported that does not have vjps of high-enough order")
            functions.append(functions[-1].vjp())
        for function in functions:
            function._check_program("in maxjax's format")
        return export_jax.write(functions) if format == "jax" else export_format.write(functions)

    def _check_program(self, form: str) -> None:
        if self._read_module is not None and self.uses_global_constants:
            raise NotImplementedError(
                f"{self.fun_name} {form}: its sizes are symbolic, and JAX has saved it: keep its "
                "file")

    # --- derivatives ---
    def has_vjp(self) -> bool:
        """Whether ``vjp`` gives one."""
        return self._get_vjp is not None

    def vjp(self) -> Exported:
        """The function that takes arguments and cotangents of the results, all flat, and gives the
        cotangents of the arguments.

        Raises:
          ValueError: it was saved without a derivative.
        """
        if self._get_vjp is None:
            raise ValueError("No VJP is available")
        known = self._programs.get("vjp")
        if known is None:
            known = self._programs["vjp"] = self._get_vjp(self)      # type: ignore[assignment]
        return known      # type: ignore[return-value]

    # --- calling ---
    def call(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Calls the function.

        Args:
          args, kwargs: of the structure, shapes and dtypes that it was exported for; symbolic
            sizes are found from the shapes.

        Raises:
          ValueError: the arguments' structure, shapes or dtypes differ, or the platform does.
        """
        leaves, tree = pytree.flatten((args, kwargs))
        if tree != self.in_tree.spec:
            raise ValueError(self._tree_message(tree))
        operands = [leaf_operand(leaf) for leaf in leaves]
        avals = [aval_of(x) for x in operands]
        self._check_platform()
        closed = self._program_for(avals)
        inputs = [x for x, aval in zip(operands, avals, strict=True)
                  if aval.dtype != dtypes.float0]
        runtime = installed.runtime
        at_base = context.trace is runtime
        if at_base and not config.disable_jit.value:
            mesh = self._mesh_around(inputs)
            logical = self._logical_mesh(mesh)
            inputs, outs = self._placed(inputs, logical)
            results = runtime.call(
                call_of(closed, "", None if outs is None else tuple(outs)), inputs)
            if logical is not mesh:
                results = [_renamed(x, logical, mesh) for x in results]
        else:
            results = _differentiable(self, closed, avals)(*inputs)
        out_avals = iter(closed.out_avals)
        shapes = [None if aval.dtype == dtypes.float0 else next(out_avals)
                  for aval in self.out_avals]
        given = iter(results)
        return self.out_tree.unflatten([
            np.zeros(self._shape_of_float0(aval, avals), dtypes.float0) if shape is None
            else next(given)
            for aval, shape in zip(self.out_avals, shapes, strict=True)])

    def _mesh_around(self, inputs: Sequence[Array]) -> Any:
        """The mesh of the arrays or around the call; None for a function of one device.

        Raises:
          ValueError: it has another number of devices.
        """
        if self.nr_devices == 1:
            return None
        mesh: Any = next(
            (x.sharding.mesh for x in inputs if isinstance(x.sharding, NamedSharding)),
            meshes.around().concrete)
        if mesh.size != self.nr_devices:
            raise ValueError(
                f"Function {self.fun_name} was exported for {self.nr_devices} devices and is "
                f"called in a context with {max(mesh.size, 1)} devices, which is not allowed.")
        return mesh

    def _logical_mesh(self, mesh: Mesh | None) -> Any:
        """The devices of a mesh, in its order, under the axes that the function was exported for.
        """
        names, sizes, explicit = zip(*self.mesh_axes, strict=True) if self.mesh_axes else ((),) * 3
        if mesh is None or not names or tuple(mesh.shape.items()) == tuple(
                zip(names, sizes, strict=True)):
            return mesh
        return Mesh(mesh.devices.reshape(sizes), names, axis_types=tuple(
            AxisType.Explicit if flag else AxisType.Auto for flag in explicit))

    def _placed(self, inputs: Sequence[Array], mesh: Mesh | None
                ) -> tuple[list[Any], Sequence[Any] | None]:
        """The arrays with the shardings that the function requires, and those of the results."""
        if mesh is None:
            return list(inputs), None
        places = [place for place, aval in zip(
            self.in_shardings_jax(mesh), self.in_avals, strict=True)
            if aval.dtype != dtypes.float0]
        outs = [place for place, aval in zip(
            self.out_shardings_jax(mesh), self.out_avals, strict=True)
            if aval.dtype != dtypes.float0]
        return [x if place is None else installed.runtime.put(x, place)
                for x, place in zip(inputs, places, strict=True)], outs

    def _shape_of_float0(self, aval: ShapedArray, avals: Sequence[ShapedArray]) -> tuple[int, ...]:
        return _shape_at(aval, self._sizes(avals))

    def _tree_message(self, tree: PyTreeSpec) -> str:
        differences = "".join(
            f"   - {path} is a {given} in the invocation and a {seen} when exported, so {why}.\n\n"
            for path, seen, given, why in tree_differences(self.in_tree.spec, tree))
        return ("The invocation args and kwargs must have the same pytree structure as when the "
                f"function '{self.fun_name}' was exported, but they have the following structural "
                f"differences:\n{differences}")

    def _check_platform(self) -> None:
        platform = installed.runtime.platform
        if (platform not in self.platforms
                and DisabledSafetyCheck.platform() not in self.disabled_safety_checks):
            raise ValueError(f"Function '{self.fun_name}' was exported for platforms "
                             f"'{self.platforms}' but it is used on '{(platform,)}'.")

    def _names(self) -> list[str]:
        return argument_names(self.in_tree)

    def _sizes(self, avals: Sequence[ShapedArray]) -> dict[str, Any]:
        return solve(self._names(), [aval.shape for aval in self.in_avals],
                     [aval.shape for aval in avals])

    def _program_for(self, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
        """The program for the sizes of the arguments."""
        key = tuple([(aval.shape, aval.dtype) for aval in avals])
        known = self._programs.get(key)
        if known is not None:
            return known
        for name, want, got in zip(self._names(), self.in_avals, avals, strict=True):
            _check_argument(name, want, got)
        sizes = self._sizes(avals)
        if not sizes:
            return self.program
        closed = self._with_sizes(sizes) if self._read_module is None else (
            self._read_module.at([aval for aval in avals if aval.dtype != dtypes.float0]))
        if scope_of([aval.shape for aval in avals]) is None:
            closed = closed.with_facts(closed.facts._replace(family=self._family))
            while len(self._programs) >= MAX_SIZES:
                self._programs.pop(next(k for k in self._programs if not isinstance(k, str)))
            self._programs[key] = closed
        return closed


    def _with_sizes(self, sizes: Mapping[str, int]) -> ClosedJaxpr:
        if not self._was_read:
            return with_sizes(self.program, sizes)
        try:
            closed = with_sizes(self.program, sizes)
            export_format.check_program(closed)
        except Exception as error:      # of all that the parameters of a file may be
            raise export_format.malformed(error) from error
        return closed


def deserialize(blob: bytearray | bytes | memoryview) -> Exported:
    """Reads what ``Exported.serialize`` gave, as ``jax.export.deserialize`` documents it."""
    derivative: Exported | None = None
    for fields in reversed(export_format.read(blob)):
        get = None if derivative is None else (lambda _, known=derivative: known)
        derivative = Exported(**fields, _get_vjp=get, _was_read=True)
    return derivative      # type: ignore[return-value]  # there is one at least


def _shardings(mesh: Mesh, specs: Sequence[PartitionSpec | None],
               count: int) -> tuple[NamedSharding | None, ...]:
    if not specs:
        return (None,) * count
    # Over an abstract mesh too, the memory is said.
    return tuple([None if spec is None else NamedSharding(mesh, spec, memory_kind="device")
                  for spec in specs])


def _renamed(x: Array, logical: Mesh, mesh: Mesh) -> Array:
    """An array over a logical mesh, over another of the same devices if its axes can say it.

    Explicit axes are part of its type, and stay.
    """
    place = getattr(x, "sharding", None)
    if not isinstance(place, NamedSharding) or place.mesh != logical or (
            AxisType.Explicit in logical.axis_types):
        return x
    axes = iter((name, size) for name, size in mesh.shape.items() if size > 1)
    groups: dict[Any, list[str]] = {}
    for name, size in logical.shape.items():
        covered, group = 1, groups.setdefault(name, [])
        while covered < size:
            part, width = next(axes)
            group.append(part)
            covered *= width
        if covered != size:
            return x
    spec = PartitionSpec(*[
        (parts[0] if len(parts) == 1 else tuple(parts)) if (parts := [
            part for name in entry_axes(entry) for part in groups[name]]) else None
        for entry in place.spec.partitions])
    return installed.runtime.put(x, NamedSharding(mesh, spec))


def _check_argument(name: str, want: ShapedArray, got: ShapedArray) -> None:
    def shown(shape: Shape) -> str:
        return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"

    if got.ndim != want.ndim:
        raise ValueError(f"Rank mismatch for {name}: expected {shown(want.shape)} and called with "
                         f"{shown(got.shape)}")
    if got.dtype != want.dtype:
        raise ValueError(f"Dtype mismatch for {name}: expected {dtype_name(want)} and called "
                         f"with {dtype_name(got)}")
    for axis, (size, actual) in enumerate(zip(want.shape, got.shape, strict=True)):
        if not is_dimension(size) and size != actual:
            raise ValueError(
                f"Shape mismatch for {name}.shape[{axis}] (expected same constant): expected "
                f"{shown(want.shape)} and called with {shown(got.shape)}")


def dtype_name(aval: ShapedArray) -> str:
    return getattr(aval.dtype, "name", str(aval.dtype))


def argument_names(tree: PyTreeDef) -> list[str]:
    """``args[0]['a']`` and so on, for the leaves of ``(args, kwargs)``."""
    return leaf_names(tree.spec, "args[{}]".format, "kwargs[{!r}]".format)


def _differentiable(exported: Exported, closed: ClosedJaxpr,
                    avals: Sequence[ShapedArray]) -> Callable[..., list[Any]]:
    """The call of a program, with the exported derivative as its rule."""

    @custom_vjp
    def call_exported(*inputs: Value) -> list[Any]:
        return list(jit_p.bind(*map(leaf_operand, inputs), jaxpr=closed, name=exported.fun_name))

    def forward(*inputs: Value) -> tuple[list[Any], Any]:
        return call_exported(*inputs), inputs

    def backward(inputs: Sequence[Value], cotangents: Sequence[Value]) -> tuple[Any, ...]:
        derivative = exported.vjp()
        given, found = iter(inputs), iter(cotangents)
        primals = [_float0(aval) if aval.dtype == dtypes.float0 else next(given) for aval in avals]
        outs = [None if aval.dtype == dtypes.float0 else next(found) for aval in exported.out_avals]
        sizes = exported._sizes(avals)
        directions = [
            _float0(aval.tangent(), sizes) if out is None or aval.tangent().dtype == dtypes.float0
            else out for aval, out in zip(exported.out_avals, outs, strict=True)]
        results = derivative.call(*primals, *directions)
        return tuple(None if aval.tangent().dtype == dtypes.float0 else result
                     for aval, result in zip(avals, results, strict=True)
                     if aval.dtype != dtypes.float0)

    call_exported.defvjp(forward, backward)
    return call_exported


def _float0(aval: ShapedArray, sizes: Mapping[str, int] | None = None) -> np.ndarray:
    return np.zeros(_shape_at(aval, sizes), dtypes.float0)


def _shape_at(aval: ShapedArray, sizes: Any) -> tuple[int, ...]:
    sized: tuple[Any, ...] = aval.shape
    return tuple([size.value(sizes) if is_dimension(size) else size for size in sized])


# --- making them ----------------------------------------------------------------------------------
