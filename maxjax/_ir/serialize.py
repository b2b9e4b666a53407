"""Jaxprs as text: canonical, so that equal programs have equal texts, and can be read back.

The text is what a compile worker gets, and the key under which an artifact is stored. It holds no
code, and no values except scalar literals and the constants of sub-jaxprs.
"""

from __future__ import annotations

import base64
import enum
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.lazy import import_module
from maxjax._ir.dimensions import Dimension
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.primitive import Primitive, registry
from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    from maxjax._ir.typing import DType


class NotSerializable(Exception):
    """A program holds something that has no text, such as a Python function.

    The arguments are what it is and the primitive that holds it.
    """

    def __str__(self) -> str:
        return str(self.args[0])


# The size that a text such as ``2*batch + 1`` stands for.
Sizes = Callable[[str], Any]


def _no_symbols(text: str) -> Any:
    raise NotSerializable(f"the symbolic size {text} in a program of known sizes")


def _dtype_name(dtype: DType) -> str:
    if dtypes.is_key(dtype):
        return f"key:{dtype.impl}"
    if dtypes.is_user_defined(dtype):       # what its elements are alone counts in a program
        dtype = dtype.physical
    return "float0" if dtype == dtypes.float0 else dtype.name


def _dtype_of(name: str) -> Any:
    if name.startswith("key:"):
        return dtypes.key_dtype(name[4:])
    return dtypes.float0 if name == "float0" else np.dtype(name)


def _encode_aval(aval: ShapedArray) -> list[Any]:
    shape = [_encode_size(size) for size in aval.shape]
    return [shape, _dtype_name(aval.dtype), int(aval.weak_type)]


def _encode_size(size: Any) -> Any:
    return {"size": str(size)} if size.__class__ is Dimension else size


def _decode_aval(data: list[Any], sizes: Sizes = _no_symbols) -> ShapedArray:
    shape = [sizes(size["size"]) if isinstance(size, dict) else size for size in data[0]]
    return ShapedArray(tuple(shape), _dtype_of(data[1]), bool(data[2]))


def _encode_value(value: object) -> Any:
    """A parameter: strings, integers, bools and None as they are, other kinds behind a tag."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if value.__class__ is Dimension:
        return _encode_size(value)
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
    if isinstance(value, Primitive) and registry.get(value.name) is value:
        return {"primitive": value.name}
    if isinstance(value, ShapedArray):
        return {"aval": _encode_aval(value)}
    if isinstance(value, np.dtype) or dtypes.is_opaque(value):
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


def _class_of(path: str, base: type) -> Any:
    """A class of maxjax; never anything else that can be called."""
    module, _, name = path.partition(":")
    if module.split(".")[0] != "maxjax":
        raise NotSerializable(f"the class {path} is not maxjax's")
    found = getattr(import_module(module), name, None)
    if not (isinstance(found, type) and issubclass(found, base) and found.__module__ == module):
        raise NotSerializable(f"{path} is no {base.__name__} of maxjax's")
    return found


def _decode_value(data: Any, sizes: Sizes) -> Any:
    if not isinstance(data, dict):
        return data
    if "size" in data:
        return sizes(data["size"])
    if "tuple" in data:
        return tuple(_decode_value(item, sizes) for item in data["tuple"])
    if "named" in data:
        kind = _class_of(data["named"], tuple)
        return kind(*(_decode_value(item, sizes) for item in data["items"]))
    if "enum" in data:
        return _class_of(data["enum"], enum.Enum)[data["name"]]
    if "float" in data:
        return float.fromhex(data["float"])
    if "dtype" in data:
        return _dtype_of(data["dtype"])
    if "primitive" in data:
        return registry[data["primitive"]]
    if "aval" in data:
        return _decode_aval(data["aval"], sizes)
    if "closed" in data:
        consts = [_decode_array(const) for const in data["consts"]]
        return ClosedJaxpr(decode(data["closed"], sizes), consts)
    if "jaxpr" in data:
        return decode(data["jaxpr"], sizes)
    if "array" in data:
        return _decode_array(data["array"])
    return frozenset(_decode_value(item, sizes) for item in data["set"])


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

    def values(eqn: JaxprEqn) -> dict[str, Any]:
        try:
            return {name: _encode_value(value) for name, value in sorted(eqn.params.items())}
        except NotSerializable as error:
            if error.args[1:]:      # of an inner equation
                raise
            raise NotSerializable(error.args[0], eqn.primitive.name) from None

    def use(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            return [_encode_aval(atom.aval), _encode_array(np.asarray(atom.val))[2]]
        return numbers[atom]

    for eqn in jaxpr.eqns:
        if eqn.primitive.is_own:
            raise NotSerializable("rules that are not maxjax's own", eqn.primitive.name)
    return {
        "consts": [define(var) for var in jaxpr.constvars],
        "inputs": [define(var) for var in jaxpr.invars],
        "equations": [
            [eqn.primitive.name, [use(atom) for atom in eqn.invars],
             values(eqn),
             [define(var) for var in eqn.outvars]]
            for eqn in jaxpr.eqns],
        "outputs": [use(atom) for atom in jaxpr.outvars],
    }


def decode(data: dict[str, Any], sizes: Sizes = _no_symbols) -> Jaxpr:
    """The jaxpr that ``encode`` gave.

    Args:
      sizes: gives the sizes that texts of symbolic sizes stand for.

    Raises:
      NotSerializable: the text names a primitive or a class that maxjax does not have.
    """
    variables: dict[int, Var] = {}

    def define(item: list[Any]) -> Var:
        aval = _decode_aval(item[1], sizes)
        if item[0] < 0:
            return DropVar(aval)
        var = variables[item[0]] = Var(aval)
        return var

    def use(item: Any) -> Atom:
        if isinstance(item, int):
            return variables[item]
        aval = _decode_aval(item[0], sizes)
        value = np.frombuffer(base64.b64decode(item[1]), dtypes.physical(aval.dtype))[0]
        return Literal(value, aval)

    constvars = [define(item) for item in data["consts"]]
    invars = [define(item) for item in data["inputs"]]
    eqns = []
    for name, operands, params, results in data["equations"]:
        if name not in registry:
            raise NotSerializable(f"the primitive {name}, which maxjax does not have")
        operands = [use(item) for item in operands]
        values = {key: _decode_value(value, sizes) for key, value in params.items()}
        eqns.append(JaxprEqn(registry[name], operands, values, [define(item) for item in results]))
    return Jaxpr(constvars, invars, [use(item) for item in data["outputs"]], eqns)


def dumps(data: object) -> str:
    """Canonical JSON."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))
