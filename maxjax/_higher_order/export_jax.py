"""Exported functions in the format of real JAX's files; ``maxjax.export`` reads them.

Types, structures and numbers of a file are in a FlatBuffer, its program as StableHLO.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import dtypes, pytree
from maxjax._base.flatbuffer import Number, Numbers, written
from maxjax._base.tree_format import encode_tree
from maxjax._higher_order.safety_checks import DisabledSafetyCheck
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import read_inputs
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
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
# Of the format, and of the JAX that writes it so.
NEWEST, RELEASED = 12, "0.12.0.1"

# The dtypes by their numbers; those of keys follow.
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128", "bfloat16", "int4", "uint4",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float0", "float8_e4m3", "float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn",
    "key<fry>", "key<rbg>", "key<urbg>")
# Kinds of nodes of a structure.
LEAF, NONE, TUPLE, LIST, DICT, CUSTOM = range(6)


def write(functions: Sequence[Exported]) -> bytearray:
    """Functions as a file: one, its derivative, and so on.

    Raises:
      NotImplementedError: sizes are symbolic, the function is of several devices, or it has what
        only maxjax computes.
    """
    fields: dict[int, Any] | None = None
    for function in reversed(functions):
        outer = _fields(function)
        if fields is not None:
            outer[DERIVATIVE] = fields
        fields = outer
    return bytearray(written(fields or {}))


def _fields(exported: Exported) -> dict[int, Any]:
    if exported.nr_devices != 1:
        raise NotImplementedError(f"{exported.fun_name} in JAX's format: it is of "
                                  f"{exported.nr_devices} devices")
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
    return {
        VERSION: Number("H", NEWEST), NAME: exported.fun_name,
        IN_TREE: _tree(encode_tree(exported.in_tree)), IN_TYPES: [*map(_encoded, ins)],
        OUT_TREE: _tree(encode_tree(exported.out_tree)), OUT_TYPES: [*map(_encoded, outs)],
        IN_PLACES: [{} for _ in ins], OUT_PLACES: [{} for _ in outs],
        PLATFORMS: list(exported.platforms), ORDERED_EFFECTS: [], UNORDERED_EFFECTS: [],
        DISABLED_CHECKS: [_check(check) for check in exported.disabled_safety_checks],
        MODULE: module, KEPT: Numbers("H", kept),
        CALLING_CONVENTION: Number("H", exported.calling_convention_version),
        DEVICES: Number("I", 1), TYPES: encoded, MESHES: [], SHARDINGS: [],
        IN_NUMBERS: Numbers("I", numbers[0]), OUT_NUMBERS: Numbers("I", numbers[1]),
        IN_SHARDINGS: Numbers("I", [0] * len(ins)), OUT_SHARDINGS: Numbers("I", [0] * len(outs)),
        RELEASE: RELEASED}


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
    """The program, which gives truth values in place of float0, and the arguments it takes."""
    program = exported.program
    if exported.uses_global_constants:
        raise NotImplementedError(
            f"{exported.fun_name} in JAX's format: its sizes are symbolic")
    closed = _with_float0(exported, program)
    taken = [number for number, aval in enumerate(exported.in_avals)
             if aval.dtype != dtypes.float0]
    kept = [number for number, read in zip(taken, read_inputs(simplify(closed)), strict=True)
            if read]
    paths, _, _ = pytree.flatten_with_path(pytree.numbered(exported.out_tree.spec))
    names = ["".join(["result", *map(str, path)]).replace('"', "'") for path in paths]
    text = installed.runtime.stablehlo(exported.fun_name, closed, names)
    only_here = re.search(r'"maxjax\.([\w-]+)"', text)
    if only_here is not None:
        raise NotImplementedError(f"{exported.fun_name} in JAX's format: XLA has no operation for "
                                  f"its primitive {only_here[1]!r}")
    return text.encode(), kept


def _with_float0(exported: Exported, program: ClosedJaxpr) -> ClosedJaxpr:
    if all(aval.dtype != dtypes.float0 for aval in exported.out_avals):
        return program

    def function(*operands: Value) -> list[Any]:
        results = iter(eval_jaxpr(program.jaxpr, program.consts, *operands))
        return [full(aval.shape, False, dtypes.bool_) if aval.dtype == dtypes.float0
                else next(results) for aval in exported.out_avals]

    return trace_to_jaxpr(function, program.in_avals, exported.fun_name)
