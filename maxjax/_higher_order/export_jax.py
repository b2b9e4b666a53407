"""Exported functions in the format of real JAX's files; ``maxjax.export`` reads them.

Types, structures and numbers of a file are in a FlatBuffer, its program as StableHLO.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import dtypes, pytree
from maxjax._base.flatbuffer import Number, Numbers, written
from maxjax._base.signatures import leaf_names
from maxjax._base.specs import PartitionSpec, entry_axes
from maxjax._base.tree_format import encode_tree
from maxjax._higher_order.safety_checks import DisabledSafetyCheck
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import read_inputs
from maxjax._ir.runtime import Devices, installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.symbolic import scope_of
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.creation import full
from maxjax._transforms.simplify import simplify

if TYPE_CHECKING:
    from maxjax._higher_order.exported import Exported

# The fields of a file, by number; those between them are of older versions.
VERSION, NAME, IN_TREE, IN_TYPES, OUT_TREE, OUT_TYPES = range(6)
IN_PLACES, OUT_PLACES = 7, 8
PLATFORMS, ORDERED_EFFECTS, UNORDERED_EFFECTS, DISABLED_CHECKS, MODULE = range(9, 14)
CALLING_CONVENTION, KEPT, HAS_SIZES, DERIVATIVE, DEVICES = range(14, 19)
TYPES, MESHES, SHARDINGS, IN_NUMBERS, OUT_NUMBERS = range(19, 24)
IN_SHARDINGS, OUT_SHARDINGS, RELEASE = range(24, 27)
# The version of the format, and the release of JAX that writes it.
NEWEST, RELEASED = 12, "0.12.0.1"

# The dtypes by their numbers; those of keys follow.
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128", "bfloat16", "int4", "uint4",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float0", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn",
    "key<fry>", "key<rbg>", "key<urbg>")
# Kinds of axes.
AUTO, EXPLICIT = 1, 2
# Kinds of nodes of a structure.
LEAF, NONE, TUPLE, LIST, DICT, CUSTOM = range(6)


def write(functions: Sequence[Exported]) -> bytearray:
    """Functions as a file: one, its derivative, and so on.

    Raises:
      NotImplementedError: the function has what only maxjax computes, or XLA does not compute with
        symbolic sizes.
    """
    fields: dict[int, Any] | None = None
    for function in reversed(functions):
        outer = _fields(function)
        if fields is not None:
            outer[DERIVATIVE] = fields
        fields = outer
    return bytearray(written(fields or {}))


def _fields(exported: Exported) -> dict[int, Any]:
    with scope_of([aval.shape for aval in exported.in_avals]) or contextlib.nullcontext():
        module, kept = _module(exported)
    ins, outs = ([_type(exported, aval) for aval in avals]
                 for avals in (exported.in_avals, exported.out_avals))
    listed: list[Any] = []
    numbers: list[list[int]] = []
    for types in (ins, outs):
        numbers.append([])
        for type in types:
            if type not in listed:
                listed.append(type)
            numbers[-1].append(listed.index(type))
    encoded = [_encoded(type) for type in listed]
    meshes, shardings, places = _shardings(exported)
    return {
        VERSION: Number("H", NEWEST), NAME: exported.fun_name,
        IN_TREE: _tree(encode_tree(exported.in_tree)), IN_TYPES: [*map(_encoded, ins)],
        OUT_TREE: _tree(encode_tree(exported.out_tree)), OUT_TYPES: [*map(_encoded, outs)],
        IN_PLACES: [{} for _ in ins], OUT_PLACES: [{} for _ in outs],
        PLATFORMS: list(exported.platforms), ORDERED_EFFECTS: [], UNORDERED_EFFECTS: [],
        DISABLED_CHECKS: [_check(check) for check in exported.disabled_safety_checks],
        MODULE: module, KEPT: Numbers("H", kept),
        HAS_SIZES: Number("B", int(exported.uses_global_constants)),
        CALLING_CONVENTION: Number("H", exported.calling_convention_version),
        DEVICES: Number("I", exported.nr_devices), TYPES: encoded, MESHES: meshes,
        SHARDINGS: shardings,
        IN_NUMBERS: Numbers("I", numbers[0]), OUT_NUMBERS: Numbers("I", numbers[1]),
        IN_SHARDINGS: Numbers("I", places[0]), OUT_SHARDINGS: Numbers("I", places[1]),
        RELEASE: RELEASED}


def _shardings(exported: Exported) -> tuple[list[Any], list[Any], list[list[int]]]:
    """The mesh and the specs that arguments and results have, and their numbers, from 1 on; 0 for
    what is left open."""
    found: list[PartitionSpec] = []
    places: list[list[int]] = []
    for specs in _specs(exported):
        for spec in specs:
            if spec is not None and spec not in found:
                found.append(spec)
        places.append([0 if spec is None else 1 + found.index(spec) for spec in specs])
    if not found:
        return [], [], places
    names, sizes, explicit = zip(*exported.mesh_axes, strict=True)
    mesh: dict[int, Any] = {0: Numbers("I", sizes), 1: list(names),
                            2: Numbers("B", [EXPLICIT if flag else AUTO for flag in explicit])}
    if exported.platforms[0] == "cpu":      # the kind of others' devices is not known
        mesh[3] = {0: "cpu", 2: "cpu"}
    return [mesh], [{0: mesh, 1: {0: [{0: list(entry_axes(entry))} for entry in spec.partitions],
                                  1: [], 2: []},
                     2: "device", 3: Number("I", 0)} for spec in found], places


def _specs(exported: Exported) -> list[list[PartitionSpec | None]]:
    """The specs of arguments and of results; those over Explicit axes are in the types."""
    specs = []
    for given, avals in ((exported.in_specs, exported.in_avals),
                         (exported.out_specs, exported.out_avals)):
        specs.append([
            _checked(exported, spec if spec is not None or aval.mesh_spec is None
                     else aval.mesh_spec[1])
            for spec, aval in zip(given or [None] * len(avals), avals, strict=True)])
    return specs if exported.nr_devices > 1 else [[None] * len(each) for each in specs]


def _checked(exported: Exported, spec: PartitionSpec | None) -> PartitionSpec | None:
    names = {name for name, _, _ in exported.mesh_axes if isinstance(name, str)}
    if spec is not None and (spec.unreduced or spec.reduced or any(
            entry is PartitionSpec.UNCONSTRAINED or not names.issuperset(entry_axes(entry))
            for entry in spec.partitions)):
        raise NotImplementedError(f"{exported.fun_name} in JAX's format: the specification {spec}")
    return spec


def _type(exported: Exported, aval: ShapedArray) -> tuple[tuple[str, ...], int]:
    name = "float0" if aval.dtype == dtypes.float0 else str(getattr(aval.dtype, "name", aval.dtype))
    if name not in DTYPES:
        raise NotImplementedError(f"{exported.fun_name} in JAX's format: it has no number for "
                                  f"{name}")
    return tuple(map(str, aval.shape)), DTYPES.index(name)


def _encoded(type: tuple[tuple[str, ...], int]) -> dict[int, Any]:
    return {1: list(type[0]), 2: Number("B", type[1]), 3: Number("B", 1)}


def _check(check: DisabledSafetyCheck) -> dict[int, Any]:
    target = check.is_custom_call()
    return {} if target is None else {0: Number("B", 1), 1: target}


def _tree(data: Any) -> dict[int, Any]:
    """A structure, from what ``encode_tree`` gives."""
    if data == "*":
        return {}
    if data is None:
        return {0: Number("B", NONE)}
    kind, children = data[0], [_tree(child) for child in data[1]]
    match kind:
        case "tuple" | "list":
            return {0: Number("B", TUPLE if kind == "tuple" else LIST), 1: children}
        case "dict":
            return {0: Number("B", DICT), 1: children, 2: list(data[2])}
        case "custom":
            return {0: Number("B", CUSTOM), 1: children, 3: data[2],
                    4: base64.b64decode(data[3])}
    raise NotImplementedError(f"JAX's format has no {kind}")


def _module(exported: Exported) -> tuple[bytes, list[int]]:
    """The program, which gives truth values in place of float0, and the arguments it takes: where
    sizes are symbolic, all, as they say what the sizes are."""
    is_symbolic = exported.uses_global_constants
    closed = _with_float0(exported, is_symbolic)
    taken = [number for number, aval in enumerate(exported.in_avals)
             if is_symbolic or aval.dtype != dtypes.float0]
    kept = [number for number, read in zip(taken, read_inputs(simplify(closed)), strict=True)
            if read or is_symbolic]
    text = stablehlo(exported, closed)
    only_here = re.search(r'"maxjax\.([\w-]+)"', text)
    if only_here is not None:
        raise NotImplementedError(f"{exported.fun_name} in JAX's format: XLA has no operation for "
                                  f"its primitive {only_here[1]!r}"
                                  + " with symbolic sizes" * is_symbolic)
    return text.encode(), kept


def stablehlo(exported: Exported, closed: ClosedJaxpr) -> str:
    """A function's program as StableHLO; it takes all arguments, or all but those of float0, and
    gives such results."""
    ins, outs = _specs(exported)
    paths, _, _ = pytree.flatten_with_path(pytree.numbered(exported.out_tree.spec))
    results = [("".join(["result", *map(str, path)]).replace('"', "'"), spec)
               for path, spec, aval in zip(paths, outs, exported.out_avals, strict=True)
               if aval.dtype != dtypes.float0 or len(closed.out_avals) == len(outs)]
    names = leaf_names(exported.in_tree.spec, "args[{}]".format, "kwargs[{!r}]".format)
    arguments = [(name, spec) for name, spec, aval in zip(
        names, ins, exported.in_avals, strict=True)
        if aval.dtype != dtypes.float0 or len(closed.in_avals) == len(ins)]
    devices = None if exported.nr_devices == 1 else Devices(
        [(name, size) for name, size, _ in exported.mesh_axes],
        [spec for _, spec in arguments], [spec for _, spec in results])
    return installed.runtime.stablehlo(
        exported.fun_name, closed, [name for name, _ in results],
        arguments=[name for name, _ in arguments], devices=devices)


def _with_float0(exported: Exported, takes_all: bool) -> ClosedJaxpr:
    """The program, which gives truth values in place of float0, and takes them if it takes all."""
    program = exported.program
    given = exported.in_avals if takes_all else [
        aval for aval in exported.in_avals if aval.dtype != dtypes.float0]
    if all(aval.dtype != dtypes.float0 for aval in (*given, *exported.out_avals)):
        return program

    def function(*operands: Value) -> list[Any]:
        results = iter(eval_jaxpr(program.jaxpr, program.consts, *[
            x for x, aval in zip(operands, given, strict=True) if aval.dtype != dtypes.float0]))
        return [full(aval.shape, False, dtypes.bool_) if aval.dtype == dtypes.float0
                else next(results) for aval in exported.out_avals]

    return trace_to_jaxpr(function, [
        ShapedArray(aval.shape, dtypes.bool_) if aval.dtype == dtypes.float0 else aval
        for aval in given], exported.fun_name)
