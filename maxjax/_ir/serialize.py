"""Jaxprs as text: canonical, so that equal programs have equal texts, and readable back.

The text is what a compile worker gets, and the key under which an artifact is kept. It holds no
code and no values but scalar literals and the constants of sub-jaxprs.
"""

from __future__ import annotations

import base64
import enum
import importlib
import json
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.primitive import Primitive, registry
from maxjax._ir.types import ShapedArray


class NotSerializable(Exception):
    """A program holds something that has no text, such as a Python function."""


def _dtype_name(dtype: Any) -> str:
    if dtypes.is_key(dtype):
        return f"key:{dtype.impl}"
    return "float0" if dtype == dtypes.float0 else dtype.name


def _dtype_of(name: str) -> Any:
    if name.startswith("key:"):
        return dtypes.key_dtype(name[4:])
    return dtypes.float0 if name == "float0" else np.dtype(name)


def _encode_aval(aval: ShapedArray) -> list[Any]:
    return [list(aval.shape), _dtype_name(aval.dtype), int(aval.weak_type)]


def _decode_aval(data: list[Any]) -> ShapedArray:
    return ShapedArray(tuple(data[0]), _dtype_of(data[1]), bool(data[2]))


def _encode_value(value: Any) -> Any:
    """A parameter: each kind but strings, integers, bools and None behind a tag."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, enum.Enum):
        return {"enum": _path_of(type(value)), "name": value.name}
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, float):
        return {"float": value.hex()}       # JSON has no NaN and no infinities
    if isinstance(value, ClosedJaxpr):
        return {"closed": encode(value.jaxpr),
                "consts": [_encode_array(np.asarray(const)) for const in value.consts]}
    if isinstance(value, Jaxpr):
        return {"jaxpr": encode(value)}
    if isinstance(value, Primitive):
        return {"primitive": value.name}
    if isinstance(value, ShapedArray):
        return {"aval": _encode_aval(value)}
    if isinstance(value, np.dtype) or dtypes.is_key(value):
        return {"dtype": _dtype_name(value)}
    if isinstance(value, tuple):
        items = [_encode_value(item) for item in value]
        if type(value) is tuple:
            return {"tuple": items}
        return {"named": _path_of(type(value)), "items": items}
    if isinstance(value, frozenset):
        return {"set": sorted((_encode_value(item) for item in value), key=repr)}
    if isinstance(value, (np.ndarray, np.generic)):
        return {"array": _encode_array(np.asarray(value))}
    raise NotSerializable(f"a parameter of type {type(value).__name__}")


def _path_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_of(path: str) -> Any:
    module, _, name = path.partition(":")
    if module.split(".")[0] != "maxjax":
        raise NotSerializable(f"the class {path} is not maxjax's")
    return getattr(importlib.import_module(module), name)


def _decode_value(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    if "tuple" in data:
        return tuple(_decode_value(item) for item in data["tuple"])
    if "named" in data:
        return _class_of(data["named"])(*(_decode_value(item) for item in data["items"]))
    if "enum" in data:
        return _class_of(data["enum"])[data["name"]]
    if "float" in data:
        return float.fromhex(data["float"])
    if "dtype" in data:
        return _dtype_of(data["dtype"])
    if "primitive" in data:
        return registry[data["primitive"]]
    if "aval" in data:
        return _decode_aval(data["aval"])
    if "closed" in data:
        return ClosedJaxpr(decode(data["closed"]), [_decode_array(c) for c in data["consts"]])
    if "jaxpr" in data:
        return decode(data["jaxpr"])
    if "array" in data:
        return _decode_array(data["array"])
    return frozenset(_decode_value(item) for item in data["set"])


def _encode_array(value: np.ndarray) -> list[Any]:
    content = np.ascontiguousarray(value).tobytes()
    return [list(value.shape), _dtype_name(value.dtype), base64.b64encode(content).decode()]


def _decode_array(data: list[Any]) -> np.ndarray:
    content = base64.b64decode(data[2])
    return np.frombuffer(content, _dtype_of(data[1])).reshape(data[0])


def encode(jaxpr: Jaxpr) -> dict[str, Any]:
    """A jaxpr as plain JSON data; variables are numbered in the order of their appearance."""
    numbers: dict[Var, int] = {}

    def define(var: Var) -> list[Any]:
        if isinstance(var, DropVar):
            return [-1, _encode_aval(var.aval)]
        numbers[var] = len(numbers)
        return [numbers[var], _encode_aval(var.aval)]

    def use(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            return [_encode_aval(atom.aval), _encode_array(np.asarray(atom.val))[2]]
        return numbers[atom]

    return {
        "consts": [define(var) for var in jaxpr.constvars],
        "inputs": [define(var) for var in jaxpr.invars],
        "equations": [
            [eqn.primitive.name, [use(atom) for atom in eqn.invars],
             {name: _encode_value(value) for name, value in sorted(eqn.params.items())},
             [define(var) for var in eqn.outvars]]
            for eqn in jaxpr.eqns],
        "outputs": [use(atom) for atom in jaxpr.outvars],
    }


def decode(data: dict[str, Any]) -> Jaxpr:
    """The jaxpr that ``encode`` gave."""
    variables: dict[int, Var] = {}

    def define(item: list[Any]) -> Var:
        aval = _decode_aval(item[1])
        if item[0] < 0:
            return DropVar(aval)
        var = variables[item[0]] = Var(aval)
        return var

    def use(item: Any) -> Atom:
        if isinstance(item, int):
            return variables[item]
        aval = _decode_aval(item[0])
        value = np.frombuffer(base64.b64decode(item[1]), dtypes.physical(aval.dtype))[0]
        return Literal(value, aval)

    constvars = [define(item) for item in data["consts"]]
    invars = [define(item) for item in data["inputs"]]
    eqns = []
    for name, operands, params, results in data["equations"]:
        operands = [use(item) for item in operands]
        values = {key: _decode_value(value) for key, value in params.items()}
        eqns.append(JaxprEqn(registry[name], operands, values, [define(item) for item in results]))
    return Jaxpr(constvars, invars, [use(item) for item in data["outputs"]], eqns)


def dumps(data: Any) -> str:
    """Canonical JSON."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))
