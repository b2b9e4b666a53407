"""Ahead of time: ``jit(f).trace(...)``, ``.lower()``, ``.compile()``."""

from __future__ import annotations

import dataclasses
import operator
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import config, meshes, pytree
from maxjax._base.layouts import format_of
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.shardings import NamedSharding, Sharding
from maxjax._base.source import function_location
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.cache_misses import tree_differences
from maxjax._higher_order.constraints import named
from maxjax._higher_order.cost_analysis import (
    argument_bytes,
    compiled_cost,
    lowered_cost,
    result_bytes,
    temporary_bytes,
)
from maxjax._higher_order.entries import Entry
from maxjax._higher_order.jit_refs import call_with_refs
from maxjax._higher_order.repeats import Repeats
from maxjax._higher_order.shape_struct import ShapeDtypeStruct, shape_structs
from maxjax._higher_order.static_arguments import Static
from maxjax._higher_order.target import check_options
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import read_inputs
from maxjax._ir.refs import AbstractRef, Ref
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Tracer, tracer_class
from maxjax._ir.types import ShapedArray
from maxjax._primitives.sharding import type_on
from maxjax._transforms.simplify import simplify

if TYPE_CHECKING:
    from maxjax._higher_order.jit_function import PjitFunction


@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """What is known of one leaf of the arguments."""

    _aval: ShapedArray
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


class Stage:
    """What all stages say of the function and its signature."""

    def __init__(self, jitted: PjitFunction, entry: Entry, tree: PyTreeSpec,
                 static: Static | None, places: Sequence[Any],
                 types: Sequence[ShapedArray | AbstractRef]):
        self._jitted = jitted
        self._entry = entry
        self._tree = tree
        self._static = static
        self._places = places      # the shardings of the arguments, where they are known
        self._types = types        # those of the arguments, references among them
        self._meshes = meshes.around()      # those that are set where the function is traced

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of ``(args, kwargs)``, without the static arguments."""
        return PyTreeDef(self._tree)

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the result."""
        return PyTreeDef(self._entry.out_tree)

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as a pytree ``(args, kwargs)``; of what is lowered, with the
        shardings that they are to have."""
        avals = self._argument_avals()
        if not isinstance(self, Traced):
            avals = [type_on(aval, place) if isinstance(place, NamedSharding) else aval
                     for aval, place in zip(avals, self._places, strict=True)]
        return pytree.unflatten(self._tree, avals)

    @property
    def args_info(self) -> Any:
        """Type and donation of each argument, as a pytree ``(args, kwargs)``."""
        return pytree.unflatten(self._tree, [
            ArgInfo(aval, position in self._entry.call.donated)
            for position, aval in enumerate(self._argument_avals())])

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results, as a pytree, and their shardings as far as they are
        known: from a type, as asked for, or as found by the compiler."""
        return self._structs(
            [aval.strip_weak_type() for aval in self._own_results()])

    def _structs(self, avals: Sequence[ShapedArray]) -> Any:
        structs = shape_structs(avals)
        return pytree.unflatten(self._entry.out_tree, [
            struct if sharding is None else struct.update(sharding=sharding)
            for struct, sharding in zip(structs, self._result_shardings(), strict=True)])

    def _result_shardings(self) -> Sequence[Any]:
        return self._entry.asked or [None] * len(self._own_results())

    def _own_results(self) -> list[ShapedArray]:
        """The types of the function's results, without the new values of references."""
        closed = self._entry.closed
        return closed.out_avals[:self._entry.out_tree.num_leaves]

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        return self._entry.call.donated

    def _argument_avals(self) -> list[ShapedArray]:
        return [aval.inner_aval if isinstance(aval, AbstractRef) else aval for aval in self._types]


class Traced(Stage):
    """A function traced for one signature."""

    @property
    def jaxpr(self) -> ClosedJaxpr:
        return self._entry.closed

    @property
    def out_info(self) -> Any:
        """Shapes, dtypes, weak types and known shardings of the results, as a pytree."""
        return self._structs(self._own_results())

    @property
    def out_avals(self) -> Any:
        """The types of the results, as a pytree."""
        return pytree.unflatten(self._entry.out_tree, list(self._own_results()))

    @property
    def fun_name(self) -> str:
        return self._jitted.function_name

    def lower(self, *, lowering_platforms: Iterable[str] | None = None,
              _private_parameters: object = None) -> Lowered:
        """The program that would be compiled."""
        self._entry.check_use()
        with meshes.within(self._meshes):
            return Lowered(self._jitted, self._entry, self._tree, self._static, self._places,
                           self._types)


class Lowered(Stage):
    """A simplified program, ready to be compiled."""

    def _result_shardings(self) -> Sequence[Any]:
        """Types name an abstract mesh: here it is that of the arguments."""
        asked = super()._result_shardings()
        mesh = next((place.mesh for place in self._places
                     if isinstance(place, NamedSharding)), None)
        return [NamedSharding(mesh, aval.mesh_spec[1])
                if sharding is None and mesh is not None and aval.mesh_spec is not None
                else sharding
                for sharding, aval in zip(asked, self._own_results(), strict=True)]

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as StableHLO, or as HLO.

        What StableHLO has no operation for is a call of ``maxjax.<primitive>``.

        Args:
          dialect: "stablehlo", which is the default, or "hlo".
          debug_info: operations say the scopes (``jax.named_scope``) and the line that they come
            from.

        Raises:
          NotImplementedError: the dialect is "hlo", and sizes are symbolic.
          ValueError: there is no such dialect.
        """
        if dialect not in (None, "stablehlo", "hlo"):
            raise ValueError(f"Unknown dialect: {dialect}")
        text = stablehlo_of(self._jitted.function_name, self._entry.closed, self._entry.out_tree,
                            debug_info)
        return installed.runtime.hlo(text) if dialect == "hlo" else text

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The simplified jaxpr."""
        return simplify(self._entry.closed)

    def cost_analysis(self) -> dict[str, float]:
        """Operations ("flops", "transcendentals") and bytes ("bytes accessed") of the program, as
        XLA counts them."""
        return lowered_cost(self._entry.closed)

    def compile(self, compiler_options: Mapping[str, object] | None = None) -> Compiled:
        """Compiles the program and waits for it.

        Args:
          compiler_options: XLA options, which have no effect; a warning says so once.

        Raises:
          JaxRuntimeError: XLA has no option of such a name.
          TypeError: a name is not a string, or a value neither a string nor a number.
        """
        check_options(compiler_options or {})
        with meshes.within(self._meshes):
            return self._compiled()

    def _compiled(self) -> Compiled:
        # The values of references follow the arguments, and their new ones the results.
        arrays = [n for n, aval in enumerate(self._types) if not isinstance(aval, AbstractRef)]
        uses = self._entry.closed.refs
        ahead = len(self._entry.captured)
        positions = [*arrays, *(None if use.ref._argument is None else use.ref._argument.position
                                for use in uses)]
        ins, found = installed.runtime.compile(
            self._entry.call,
            [*[None] * ahead, *(None if n is None else self._places[n] for n in positions)])
        places = dict(zip(positions, ins[ahead:], strict=True))
        return Compiled(self, [places.get(n) for n in range(len(self._types))],
                        found[:len(self._own_results())])


@dataclasses.dataclass(frozen=True)
class CompiledMemoryStats:
    """Bytes that a compiled program works with."""

    generated_code_size_in_bytes: int = 0
    argument_size_in_bytes: int = 0
    output_size_in_bytes: int = 0
    alias_size_in_bytes: int = 0
    temp_size_in_bytes: int = 0
    host_generated_code_size_in_bytes: int = 0
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0


class Compiled(Stage):
    """A compiled function; takes arguments of exactly the types and shardings that it was compiled
    for."""

    def __init__(self, lowered: Lowered, ins: Sequence[Sharding | None],
                 found: Sequence[Sharding]):
        super().__init__(lowered._jitted, lowered._entry, lowered._tree, lowered._static, ins,
                         lowered._types)
        self._out_shardings = found
        # Calls with arguments that are where the program wants them.
        self._repeats: Repeats[Entry] = Repeats(by_place=True)

    def _result_shardings(self) -> Sequence[Any]:
        return self._out_shardings

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, as a pytree ``(args, kwargs)``; None where nothing reads
        it."""
        return pytree.unflatten(self._tree, self._read_places())

    def _read_places(self) -> list[Sharding | None]:
        read = read_inputs(self._entry.closed)[:len(self._places)]
        if len(read) < len(self._places):      # references are no inputs
            return list(self._places)
        return [place if flag else None for place, flag in zip(self._places, read, strict=True)]

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result, as a pytree."""
        return pytree.unflatten(self._entry.out_tree, self._out_shardings)

    @property
    def input_formats(self) -> Any:
        """The layout and sharding of each argument, as a pytree ``(args, kwargs)``."""
        return pytree.unflatten(self._tree, [
            format_of(len(aval.shape), place, axes) for aval, place, axes in zip(
                self._argument_avals(), self._read_places(), self._axes_of_arguments(),
                strict=True)])

    @property
    def output_formats(self) -> Any:
        """The layout and sharding of each result, as a pytree."""
        return pytree.unflatten(self._entry.out_tree, [
            format_of(len(aval.shape), place, axes) for aval, place, axes in zip(
                self._own_results(), self._out_shardings, self._axes_of_results(), strict=True)])

    def _axes_of_arguments(self) -> list[Any]:
        """For each argument its axes in the layout that was asked for, or None."""
        shardings = self._jitted._shardings
        layouts = ([None] * len(self._types) if shardings is None else
                   shardings.layouts_of_arguments(self._tree, self._static))
        return [layout and layout.major_to_minor for layout in layouts]

    def _axes_of_results(self) -> list[Any]:
        """For each result the order of axes that was asked for, from the outermost; None: none."""
        layouts = self._entry.layouts or [None] * len(self._own_results())
        return [layout and layout.major_to_minor for layout in layouts]

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Runs the program.

        Raises:
          TypeError: the arguments' structure or types differ, or they are tracers.
          ValueError: an argument was put elsewhere.
        """
        known = self._repeats.find(args, kwargs)
        if known is not None:
            entry, operands = known
            return entry.finish(installed.runtime.call(entry.call, operands))
        if config.disable_jit.value:
            raise ValueError("Disable jit is not supported in the AOT path since the function is "
                             f"not available for (jit({self._jitted.function_name}))")
        if meshes.around() is self._meshes:
            return self._run(args, kwargs)
        with meshes.within(self._meshes):
            return self._run(args, kwargs)

    call = __call__

    def _run(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> Any:
        leaves, tree = pytree.flatten((args, kwargs))
        if tree != self._tree:
            raise TypeError(tree_message(self._tree, tree))
        entry, runtime = self._entry, installed.runtime
        if entry.touches_refs:
            self._check_types([leaf.aval if isinstance(leaf, Ref) else runtime.argument(leaf).aval
                               for leaf in leaves])
            return pytree.unflatten(entry.out_tree, call_with_refs(
                entry, self._placed(leaves), self._names,
                lambda operands: runtime.call(entry.call, operands)))
        avals = runtime.signature(leaves)
        if avals is None:
            for leaf in leaves:
                if isinstance(leaf, Tracer):
                    raise TypeError(
                        "Cannot apply JAX transformations to a function lowered and compiled for "
                        "a particular signature. Detected argument of Tracer type "
                        f"{tracer_class(leaf)}.")
            avals = tuple(runtime.argument(leaf).aval for leaf in leaves)
        self._check_types(avals)
        placed = self._placed(leaves)
        result = entry.run(placed)
        if all(map(operator.is_, placed, leaves)):
            self._repeats.keep(args, kwargs, leaves, tree, None, entry)
        return result

    def _names(self) -> tuple[list[str], str]:
        return (self._jitted._argument_names(self._tree, self._static),
                function_location(self._jitted._function))

    def _check_types(self, avals: Sequence[ShapedArray | AbstractRef]) -> None:
        if any(isinstance(a, AbstractRef) != isinstance(b, AbstractRef)
               or a.shape != b.shape or a.dtype != b.dtype
               for a, b in zip(avals, self._types, strict=True)):
            raise TypeError(self._type_message(avals))

    def _placed(self, leaves: Sequence[Any]) -> Sequence[Any]:
        shardings = self._jitted._shardings
        if shardings is not None and shardings.moves_arguments:
            return [installed.runtime.put(leaf, place)
                    for leaf, place in zip(leaves, self._places, strict=True)]
        wrong = [number for number, (leaf, place) in enumerate(zip(
            leaves, self._places, strict=True)) if _is_committed(leaf)
            and not leaf.sharding.is_equivalent_to(place, leaf.ndim)]
        if wrong:
            names = self._jitted._argument_names(self._tree, self._static)
            lines = [f"Argument {names[n]} with shape {leaves[n].aval.str_short()}:\n"
                     f"  Passed sharding: {leaves[n].sharding}\n"
                     f"  Required sharding: {self._places[n]}" for n in wrong]
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the shardings of "
                f"arguments passed to it. Here are the {len(wrong)} mismatches:\n"
                + "\n".join(lines))
        default = installed.runtime.devices(None)[0]
        return [installed.runtime.put(leaf, place) if place is not None
                and (isinstance(place, NamedSharding) or place._devices()[0] is not default)
                and not _is_committed(leaf) else leaf
                for leaf, place in zip(leaves, self._places, strict=True)]

    def _type_message(self, avals: Sequence[ShapedArray | AbstractRef]) -> str:
        names = self._jitted._argument_names(self._tree, self._static)
        lines = [
            f"Argument '{name}' compiled with {want.str_short()} and called with {got.str_short()}"
            for name, want, got in zip(names, self._types, avals, strict=True)
            if want.str_short() != got.str_short()]
        return ("Argument types differ from the types for which this computation was compiled. "
                "Perhaps you are calling the compiled executable with a different enable_x64 mode "
                "than when it was AOT compiled? The mismatches are:\n" + "\n".join(lines))

    def as_text(self) -> str:
        """The program in readable form."""
        return module_text(self._jitted.function_name, simplify(self._entry.closed))

    def cost_analysis(self) -> dict[str, float]:
        """Operations ("flops", "transcendentals") and bytes ("bytes accessed") of the program, as
        XLA counts them, with operations fused."""
        return compiled_cost(simplify(self._entry.closed))

    def memory_analysis(self) -> CompiledMemoryStats:
        """Bytes of arguments, of results, of values in between, and of donated arguments."""
        avals = self._argument_avals()
        program = simplify(self._entry.closed)
        return CompiledMemoryStats(
            argument_size_in_bytes=argument_bytes(program),
            output_size_in_bytes=result_bytes(self._entry.closed.out_avals),
            alias_size_in_bytes=sum(avals[number].nbytes for number in self._entry.call.donated),
            temp_size_in_bytes=temporary_bytes(program))

    def runtime_executable(self) -> Any:
        return None


def argument_place(leaf: PyTree) -> Any:
    """Where an argument was put, or is going to be."""
    if isinstance(leaf, ShapeDtypeStruct):
        return None if leaf.sharding is None else named(leaf.sharding, "jit", "in_shardings")
    return leaf.sharding if _is_committed(leaf) else None


def _is_committed(leaf: object) -> bool:
    """Whether an argument has been put somewhere; nothing is known of a traced one."""
    return not isinstance(leaf, Tracer) and getattr(leaf, "committed", False)


# --- text -----------------------------------------------------------------------------------------

def module_text(name: str, closed: ClosedJaxpr) -> str:
    symbol = re.sub(r"[^\w.-]", "_", name).rstrip("_")
    return f"module @jit_{symbol} {{\n{textwrap.indent(str(closed), '  ')}\n}}\n"


def stablehlo_of(name: str, closed: ClosedJaxpr, out_tree: PyTreeSpec, located: bool) -> str:
    """A jaxpr as StableHLO; its results are called by their paths."""
    count = out_tree.num_leaves
    paths, _, _ = pytree.flatten_with_path(pytree.unflatten(out_tree, [0] * count))
    names = ["".join(["result", *map(str, path)]).replace('"', "'") for path in paths]
    # References' new values follow the function's own results.
    names += [f"result[{number}]" for number in range(count, len(closed.out_avals))]
    return installed.runtime.stablehlo(name, closed, names, located)


# --- structures that differ -----------------------------------------------------------------------

def tree_message(expected: PyTreeSpec, found: PyTreeSpec) -> str:
    """The message for arguments whose structure is not the one that was compiled for."""
    lines = [f"{path}, seen {seen} but now given {given}, so {why}"
             for path, seen, given, why in tree_differences(expected, found)]
    shown = "\n".join(f"    * at {line}" for line in lines[:5])
    return ("Function compiled with input pytree does not match the input pytree it was called "
            f"with. There are {len(lines)} mismatches, including:\n{shown}")
