"""The bytes of exported functions. What is read is data, never code.

A file is a magic line, the format's version, the payload's length and SHA-256, and the payload:
JSON of the function, its derivative, the derivative of that, and so on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import InternalError
from maxjax._base.meshes import PartitionSpec, entry_axes
from maxjax._base.tree_format import UnregisteredType, decode_tree, encode_tree
from maxjax._higher_order import custom_gradient as custom_gradient  # has primitives
from maxjax._higher_order.safety_checks import DisabledSafetyCheck
from maxjax._ir.check import check_jaxpr, check_operands
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from maxjax._ir.runtime import installed
from maxjax._ir.serialize import NotSerializable, decode, dumps, encode
from maxjax._ir.symbolic import SymbolicScope, parse_dimension, scope_of
from maxjax._ir.types import ShapedArray, match_up_to_weak_type
from maxjax._ir.typing import Value
from maxjax._primitives import all as all_primitives  # noqa: F401  those that come at first use
from maxjax._primitives.convert import convert_element_type_p

if TYPE_CHECKING:
    from maxjax._higher_order.exported import Exported

MAGIC = b"maxjax exported\n"
VERSION = 1
_HEADER = struct.Struct(f"<{len(MAGIC)}sIQ32s")


# --- writing --------------------------------------------------------------------------------------

def write(functions: Sequence[Exported]) -> bytearray:
    """Functions as bytes: one, its derivative, and so on."""
    payload = dumps([_encode(function) for function in functions]).encode()
    return bytearray(_HEADER.pack(MAGIC, VERSION, len(payload), hashlib.sha256(payload).digest())
                     + payload)


def _encode(exported: Exported) -> dict[str, Any]:
    shapes = [aval.shape for aval in exported.in_avals]
    scope = scope_of(shapes)
    program = _strong(exported.program)
    return {
        "name": exported.fun_name,
        "in_tree": encode_tree(exported.in_tree), "out_tree": encode_tree(exported.out_tree),
        "types": _encode_types([
            aval.strip_weak_type() for aval in exported.in_avals + exported.out_avals]),
        "arguments": len(exported.in_avals),
        "platforms": list(exported.platforms),
        "disabled_checks": [repr(check) for check in exported.disabled_safety_checks],
        "calling_convention": exported.calling_convention_version,
        "devices": exported.nr_devices,
        "mesh": [list(axis) for axis in exported.mesh_axes],
        "in_specs": [_encode_spec(spec) for spec in exported.in_specs],
        "out_specs": [_encode_spec(spec) for spec in exported.out_specs],
        "constraints": [constraint.text for constraint in scope.constraints] if scope else [],
        "program": encode(program.jaxpr),
        "constants": [_encode_constant(value) for value in program.consts],
    }


def _encode_spec(spec: PartitionSpec | None) -> Any:
    """A spec as lists of names; dimensions that are open are as whole ones."""
    return None if spec is None else [
        [list(entry_axes(entry)) for entry in spec], sorted(spec.unreduced), sorted(spec.reduced)]


def _decode_spec(data: list[Any] | None) -> PartitionSpec | None:
    return None if data is None else PartitionSpec(
        *map(tuple, data[0]), unreduced=frozenset(data[1]), reduced=frozenset(data[2]))


def _encode_types(avals: Sequence[ShapedArray]) -> Any:
    """Types, as the inputs of a program without equations."""
    return encode(Jaxpr([], [Var(aval) for aval in avals], [], []))["inputs"]


def _strong(program: ClosedJaxpr) -> ClosedJaxpr:
    """With results that are not weakly typed: those of a saved function are not, as in JAX."""
    eqns = list(program.jaxpr.eqns)
    outvars: list[Atom] = []
    for atom in program.jaxpr.outvars:
        if atom.aval.weak_type:
            var = Var(atom.aval.strip_weak_type())
            eqns.append(JaxprEqn(convert_element_type_p, [atom],
                                 {"new_dtype": var.aval.dtype, "weak_type": False}, [var]))
            atom = var
        outvars.append(atom)
    return ClosedJaxpr(program.jaxpr.replace(eqns=eqns, outvars=outvars), program.consts)


def _encode_constant(value: Value) -> str:
    content = installed.runtime.concrete(value).host()
    return base64.b64encode(np.ascontiguousarray(content).tobytes()).decode()


# --- reading --------------------------------------------------------------------------------------

def read(blob: bytearray | bytes | memoryview) -> list[dict[str, Any]]:
    """The fields of the functions that ``write`` was given.

    Raises:
      ValueError: the bytes are no exported function, are damaged, or are of a newer maxjax.
    """
    content = bytes(memoryview(blob))
    if content[:len(MAGIC)] != MAGIC:
        raise ValueError("cannot deserialize: this is no function exported by maxjax (files of "
                         "JAX's jax.export hold StableHLO, which maxjax cannot read)")
    if len(content) < _HEADER.size:
        raise ValueError("cannot deserialize: the exported function is cut off within its header")
    _, version, length, digest = _HEADER.unpack_from(content)
    payload = content[_HEADER.size:]
    if version > VERSION:
        raise ValueError(f"cannot deserialize: the exported function is of format {version}, of a "
                         f"newer maxjax; this one reads up to {VERSION}")
    if version < 1 or len(payload) != length or hashlib.sha256(payload).digest() != digest:
        raise ValueError("cannot deserialize: the exported function is damaged (its length or "
                         "digest is not what its header says)")
    try:
        functions = [_decode(item) for item in json.loads(payload)]
        if not functions:
            raise ValueError("there is no function in it")
        return functions
    except UnregisteredType:
        raise
    except (NotSerializable, InternalError, KeyError, IndexError, TypeError, AttributeError,
            ValueError, RecursionError) as error:
        raise ValueError(f"cannot deserialize: the exported function is malformed: {error}"
                         ) from error


def _decode(data: dict[str, Any]) -> dict[str, Any]:
    scope = SymbolicScope(data["constraints"])

    def sizes(text: str) -> Any:
        return parse_dimension(text, scope)

    with scope:
        types = decode({"consts": [], "inputs": data["types"], "equations": [], "outputs": []},
                       sizes)
        jaxpr = decode(data["program"], sizes)
        constants = [_decode_constant(text, var.aval)
                     for text, var in zip(data["constants"], jaxpr.constvars, strict=True)]
        program = ClosedJaxpr(jaxpr, constants)
        check_operands(program)
        if scope_of([aval.shape for aval in types.in_avals]) is None:
            check_jaxpr(program)      # a symbolic one is checked with its sizes, at each call
    count = data["arguments"]
    in_avals, out_avals = tuple(types.in_avals[:count]), tuple(types.in_avals[count:])
    in_tree, out_tree = decode_tree(data["in_tree"]), decode_tree(data["out_tree"])
    if (in_tree.num_leaves, out_tree.num_leaves) != (len(in_avals), len(out_avals)) or (
            not _match(in_avals, jaxpr.in_avals) or not _match(out_avals, jaxpr.out_avals)):
        raise NotSerializable("its types are not those of its program")
    return {
        "fun_name": data["name"],
        "in_tree": in_tree, "in_avals": in_avals, "out_tree": out_tree, "out_avals": out_avals,
        "platforms": tuple(data["platforms"]),
        "disabled_safety_checks": tuple(map(DisabledSafetyCheck, data["disabled_checks"])),
        "program": program,
        "calling_convention_version": data["calling_convention"],
        "nr_devices": data.get("devices", 1),
        "mesh_axes": tuple(map(tuple, data.get("mesh", ()))),
        "in_specs": tuple(map(_decode_spec, data.get("in_specs", ()))),
        "out_specs": tuple(map(_decode_spec, data.get("out_specs", ()))),
    }


def _match(avals: Sequence[ShapedArray], of_program: Sequence[ShapedArray]) -> bool:
    real = [aval for aval in avals if aval.dtype != dtypes.float0]
    return len(real) == len(of_program) and all(map(match_up_to_weak_type, real, of_program))


def _decode_constant(text: str, aval: ShapedArray) -> Any:
    content = np.frombuffer(base64.b64decode(text), dtypes.physical(aval.dtype))
    return installed.runtime.constant(content.reshape(aval.shape), aval)
