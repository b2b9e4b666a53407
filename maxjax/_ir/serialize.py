"""Jaxprs as text: canonical, so that equal programs have equal texts, and can be read back.

The text is what a compile worker gets, and the key under which an artifact is stored. It holds no
code, and no values except scalar literals and the constants of sub-jaxprs.
"""

from __future__ import annotations

import base64
import enum
import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import STORED, type_problem
from maxjax._ir.dimensions import Dimension, Size
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


# Never `np.dtype(name)`: that reads a language of its own, with records and objects.
_DTYPES: dict[str, Any] = {
    "float0": dtypes.float0, **{dtype.name: dtype for dtype in STORED},
    **{f"key:{name}": dtypes.key_dtype(name) for name in dtypes.KEY_GENERATORS}}


def _dtype_of(name: object) -> Any:
    if not isinstance(name, str) or name not in _DTYPES:
        raise NotSerializable(f"the dtype {name!r}, of which there are no arrays")
    return _DTYPES[name]


def _encode_aval(aval: ShapedArray) -> list[Any]:
    shape = [_encode_size(size) for size in aval.shape]
    return [shape, _dtype_name(aval.dtype), int(aval.weak_type)]


def _encode_size(size: Size) -> Any:
    return {"size": str(size)} if size.__class__ is Dimension else size


def _decode_aval(data: object, sizes: Sizes = _no_symbols) -> ShapedArray:
    sized, name, weak = _items(data, 3)
    shape = tuple([_decode_size(size, sizes) for size in _items(sized)])
    if type(weak) not in (int, bool) or weak not in (0, 1):
        raise NotSerializable(f"the weak type {weak!r}")
    aval = ShapedArray(shape, _dtype_of(name), bool(weak))
    if aval.dtype != dtypes.float0:
        problem = type_problem(aval)
        if problem is not None:
            raise NotSerializable(f"a value of the type {aval}: {problem}")
    return aval


def _decode_size(data: object, sizes: Sizes) -> Any:
    if isinstance(data, dict):
        text = data.get("size")
        if len(data) != 1 or not isinstance(text, str):
            raise NotSerializable(f"the size {data!r}")
        return sizes(text)
    if type(data) is not int or data < 0:
        raise NotSerializable(f"the size {data!r}")
    return data


def _items(data: object, count: int | None = None) -> list[Any]:
    """A list, of so many items."""
    if not isinstance(data, list) or count not in (None, len(data)):
        raise NotSerializable(f"{_shown(data)} where a list " + (
            "is needed" if count is None else f"of {count} items is needed"))
    return data


def _shown(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 60 else text[:60] + "..."


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


def _class_of(path: object, base: type) -> Any:
    """A class of maxjax that is loaded; nothing is imported for a text, and nothing else that can
    be called is found.
    """
    if not isinstance(path, str):
        raise NotSerializable(f"the class {_shown(path)}")
    module, _, name = path.partition(":")
    if module.split(".")[0] != "maxjax":
        raise NotSerializable(f"the class {path} is not maxjax's")
    found = vars(sys.modules[module]).get(name) if module in sys.modules else None
    if not (isinstance(found, type) and issubclass(found, base) and found.__module__ == module
            and (base is enum.Enum or hasattr(found, "_fields"))):
        raise NotSerializable(f"{path} is no {base.__name__} of maxjax's")
    return found


def _decode_value(data: object, sizes: Sizes) -> Any:
    if not isinstance(data, dict):
        if isinstance(data, list):
            raise NotSerializable(f"the parameter {_shown(data)}")
        return data
    if "size" in data:
        return _decode_size(data, sizes)
    if "tuple" in data:
        return tuple([_decode_value(item, sizes) for item in _items(data["tuple"])])
    if "named" in data:
        kind = _class_of(data["named"], tuple)
        items = _items(data["items"], len(kind._fields))
        return kind(*[_decode_value(item, sizes) for item in items])
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
        consts = [_decode_array(const) for const in _items(data["consts"])]
        return ClosedJaxpr(decode(data["closed"], sizes), consts)
    if "jaxpr" in data:
        return decode(data["jaxpr"], sizes)
    if "array" in data:
        return _decode_array(data["array"])
    return frozenset([_decode_value(item, sizes) for item in _items(data["set"])])


def _encode_array(value: np.ndarray) -> list[Any]:
    content = np.ascontiguousarray(value).tobytes()
    return [list(value.shape), _dtype_name(value.dtype), base64.b64encode(content).decode()]


def _decode_array(data: object) -> np.ndarray:
    shape, name, text = _items(data, 3)
    return elements(text, ShapedArray(
        tuple([_decode_size(size, _no_symbols) for size in _items(shape)]), _dtype_of(name)))


def elements(text: str, aval: ShapedArray) -> np.ndarray:
    """The array of a type whose bytes a text holds in base 64.

    Raises:
      NotSerializable: these are more bytes, or fewer, or of no element.
    """
    dtype = dtypes.physical(aval.dtype)
    content = base64.b64decode(text, validate=True)
    if len(content) != math.prod(aval.shape) * dtype.itemsize:
        raise NotSerializable(f"a constant of {len(content)} bytes for the type {aval}")
    found = np.frombuffer(content, dtype).reshape(aval.shape)
    # Elements of these have bits that mean nothing, and each reader would take them as it likes.
    if dtype == dtypes.bool_ and found.view(np.uint8).max(initial=0) > 1 or (
            dtype in (*dtypes.SMALL_INTS, dtypes.float4_e2m1fn)
            and found.astype(np.float32).astype(dtype).tobytes() != content):
        raise NotSerializable(f"a constant with bytes that are no {dtype}")
    return found


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


def decode(data: Mapping[str, Any], sizes: Sizes = _no_symbols) -> Jaxpr:
    """The jaxpr that ``encode`` gave.

    Args:
      sizes: gives the sizes that texts of symbolic sizes stand for.

    Raises:
      NotSerializable: the text names a primitive or a class that maxjax does not have.
    """
    variables: dict[int, Var] = {}

    def define(item: object) -> Var:
        number, described = _items(item, 2)
        aval = _decode_aval(described, sizes)
        if type(number) is not int or number in variables:
            raise NotSerializable(f"a variable {_shown(number)}, or two of that number")
        if number < 0:
            return DropVar(aval)
        var = variables[number] = Var(aval)
        return var

    def use(item: object) -> Atom:
        if type(item) is int:
            if item not in variables:
                raise NotSerializable(f"the variable {item}, which is not defined before")
            return variables[item]
        described, text = _items(item, 2)
        aval = _decode_aval(described, sizes)
        if aval.shape:
            raise NotSerializable(f"a literal of the type {aval}, which is no scalar")
        return Literal(elements(text, aval)[()], aval)

    def values(name: str, params: object) -> dict[str, Any]:
        if not isinstance(params, dict):
            raise NotSerializable(f"the parameters {_shown(params)} of {name}")
        found = {}
        for key, value in params.items():
            try:
                found[key] = _decode_value(value, sizes)
            except NotSerializable:
                raise
            except Exception as error:
                raise NotSerializable(f"the parameter {key} of {name}: {error!r}") from error
        return found

    constvars = [define(item) for item in _items(data["consts"])]
    invars = [define(item) for item in _items(data["inputs"])]
    eqns = []
    for eqn in _items(data["equations"]):
        name, operands, params, results = _items(eqn, 4)
        if not isinstance(name, str) or name not in registry:
            raise NotSerializable(f"the primitive {name}, which maxjax does not have")
        eqns.append(JaxprEqn(registry[name], [use(item) for item in _items(operands)],
                             values(name, params), [define(item) for item in _items(results)]))
    return Jaxpr(constvars, invars, [use(item) for item in _items(data["outputs"])], eqns)


def dumps(data: object) -> str:
    """Canonical JSON."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"))
