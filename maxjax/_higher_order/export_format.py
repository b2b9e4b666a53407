"""The bytes of exported functions. What is read is data, never code.

A file is a magic line, the format's version, the payload's length and SHA-256, and the payload:
JSON of the function, its derivative, the derivative of that, and so on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import InternalError
from maxjax._base.specs import PartitionSpec, entry_axes
from maxjax._base.tree_format import UnregisteredType, decode_tree, encode_tree
from maxjax._higher_order import custom_gradient as custom_gradient  # has primitives
from maxjax._higher_order.safety_checks import DisabledSafetyCheck
from maxjax._ir.check import check_contracts, check_jaxpr, check_operands
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from maxjax._ir.runtime import installed
from maxjax._ir.serialize import NotSerializable, decode, dumps, elements, encode
from maxjax._ir.shape_parser import parse_dimension
from maxjax._ir.symbolic import SymbolicScope, scope_of
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
    return packed([_encode(function) for function in functions])


def packed(data: Sequence[object]) -> bytearray:
    """The file of such data: its header, with the digest, and its text."""
    payload = dumps(data).encode()
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
        [list(entry_axes(entry)) for entry in spec.partitions], sorted(spec.unreduced),
        sorted(spec.reduced)]


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
    return program.replace(eqns=eqns, outvars=outvars)


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
        raise ValueError("cannot deserialize: this is no function exported by maxjax or JAX")
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
        # JSON's NaN, infinities and fractions are of no use here.
        functions = [_decode(item) for item in json.loads(
            payload, parse_constant=_no_number, parse_float=_no_number)]
        if not functions:
            raise ValueError("there is no function in it")
        return functions
    except UnregisteredType:
        raise
    except Exception as error:      # of all that a file may be: rules rely on what is checked here
        raise malformed(error) from error


def malformed(error: Exception) -> ValueError:
    """What is said of a file that was read, where this error shows that it is none of ours."""
    problem = error.problem if isinstance(error, InternalError) else error if isinstance(
        error, (ValueError, NotSerializable)) else f"{type(error).__name__}: {error}"
    return ValueError(f"cannot deserialize: the exported function is malformed: {problem}")


def check_program(program: ClosedJaxpr) -> None:
    """All that rules, backends and the calls of a program rely on, for one that was read.

    Raises:
      InternalError: it does not hold. Names the equation and the parameter.
    """
    check_contracts(program)
    check_operands(program)
    check_jaxpr(program)


def _no_number(text: str) -> Any:
    raise ValueError(f"the number {text}")


def _decode(data: dict[str, Any]) -> dict[str, Any]:
    _check_fields(data)
    scope = SymbolicScope(data["constraints"])

    def sizes(text: str) -> Any:
        if not is_proportionate(text):
            raise ValueError(f"the size {text[:60]} is out of all proportion")
        return parse_dimension(text, scope)

    with scope:
        types = decode({"consts": [], "inputs": data["types"], "equations": [], "outputs": []},
                       sizes)
        jaxpr = decode(data["program"], sizes)
        constants = [_decode_constant(text, var.aval)
                     for text, var in zip(data["constants"], jaxpr.constvars, strict=True)]
        program = ClosedJaxpr(jaxpr, constants)
        check_program(program)
    count = data["arguments"]
    in_avals, out_avals = tuple(types.in_avals[:count]), tuple(types.in_avals[count:])
    in_tree, out_tree = decode_tree(data["in_tree"]), decode_tree(data["out_tree"])
    if [part[0] for part in _pair(data["in_tree"])] != ["tuple", "dict"]:
        raise NotSerializable("its arguments are no pair of positional ones and keywords")
    if (in_tree.num_leaves, out_tree.num_leaves) != (len(in_avals), len(out_avals)) or (
            not _match(in_avals, jaxpr.in_avals) or not _match(out_avals, jaxpr.out_avals)):
        raise NotSerializable("its types are not those of its program")
    for specs, avals in (("in_specs", in_avals), ("out_specs", out_avals)):
        given = data.get(specs) or [None] * len(avals)
        if len(given) != len(avals) or any(
                spec is not None and len(spec[0]) > aval.ndim
                for spec, aval in zip(given, avals, strict=False)):
            raise NotSerializable(f"its {specs} are not those of its types")
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


# The limits of a symbolic size: the length of its text, and its powers.
_LONGEST = 1000
_GREATEST_POWER = 64

_FIELDS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str),
    "arguments": lambda value: type(value) is int and value >= 0,
    "platforms": lambda value: _are(value, str),
    "disabled_checks": lambda value: _are(value, str),
    "calling_convention": lambda value: type(value) is int,
    "devices": lambda value: type(value) is int and value >= 1,
    "mesh": lambda value: _are(value, list) and all(
        [type(item) for item in axis] == [str, int, bool] and axis[1] >= 1 for axis in value),
    "in_specs": lambda value: all(map(_is_spec, value)) if isinstance(value, list) else False,
    "out_specs": lambda value: all(map(_is_spec, value)) if isinstance(value, list) else False,
    "constraints": lambda value: _are(value, str) and all(map(is_proportionate, value)),
    "types": lambda value: isinstance(value, list),
    "program": lambda value: isinstance(value, dict),
    "constants": lambda value: _are(value, str),
    "in_tree": lambda value: True,
    "out_tree": lambda value: True,
}
# Fields that files of functions of one device may lack.
_OPTIONAL = frozenset(("devices", "mesh", "in_specs", "out_specs"))


def is_proportionate(text: str) -> bool:
    """Whether a symbolic size, or what holds for some, is one that is read in no time."""
    return len(text) <= _LONGEST and all(
        len(number) <= 12 for number in re.findall("[0-9]+", text)) and all(
        int(power) <= _GREATEST_POWER for power in re.findall(r"\^\s*([0-9]+)", text))


def _are(values: object, kind: type) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _is_spec(value: object) -> bool:
    return value is None or isinstance(value, list) and len(value) == 3 and _are(
        value[0], list) and all(_are(names, str) for names in (*value[0], *value[1:]))


def _check_fields(data: Any) -> None:
    if not isinstance(data, dict):
        raise ValueError("a function is no record of fields")
    for name, holds in _FIELDS.items():
        if name in data and not holds(data[name]) or name not in data and name not in _OPTIONAL:
            raise ValueError(f"its field {name} is {str(data.get(name, 'absent'))[:60]}")
    mesh = {axis[0]: axis[1] for axis in data.get("mesh", ())}
    if len(mesh) != len(data.get("mesh", ())) or (
            math.prod(mesh.values()) != data.get("devices", 1)):
        raise ValueError(f"a mesh of axes {mesh} is not one of {data.get('devices', 1)} devices")
    for spec in (*data.get("in_specs", ()), *data.get("out_specs", ())):
        names = [] if spec is None else [
            name for part in (*spec[0], *spec[1:]) for name in part]
        if not set(names) <= mesh.keys() or len(set(names)) < len(names):
            raise ValueError(f"the specification {spec} is none of the axes {list(mesh)}")


def _pair(tree: Sequence[Any]) -> list[Any]:
    """The two parts of a tuple of two, as ``encode_tree`` gives it."""
    kind, parts = tree
    return list(parts) if kind == "tuple" and len(parts) == 2 else [" "]


def _match(avals: Sequence[ShapedArray], of_program: Sequence[ShapedArray]) -> bool:
    real = [aval for aval in avals if aval.dtype != dtypes.float0]
    return len(real) == len(of_program) and all(map(match_up_to_weak_type, real, of_program))


def _decode_constant(text: str, aval: ShapedArray) -> Any:
    return installed.runtime.constant(elements(text, aval), aval)
