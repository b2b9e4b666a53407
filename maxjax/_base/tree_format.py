"""The structure of pytrees as plain JSON data. Users' classes go by registered names."""

from __future__ import annotations

import base64
import collections
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from maxjax._base import pytree
from maxjax._base.pytree import PyTree
from maxjax._base.treedef import PyTreeDef

T = TypeVar("T", bound=type)


class UnregisteredType(ValueError):
    """A file names a class that is not registered here."""


class _Format(NamedTuple):
    kind: type
    name: str
    serialize: Callable[[Any], bytes | bytearray]
    deserialize: Callable[[bytes], Any]
    from_children: Callable[[Any, Any], Any]


_by_kind: dict[type, _Format] = {}
_by_name: dict[str, _Format] = {}


def register_pytree_node_serialization(
        nodetype: T, *, serialized_name: str,
        serialize_auxdata: Callable[[Any], bytes | bytearray],
        deserialize_auxdata: Callable[[bytes], Any],
        from_children: pytree.Unflatten | None = None) -> T:
    """Lets exported functions with instances of a class among arguments and results be saved.

    Args:
      nodetype: a class that is registered as a pytree node.
      serialized_name: what it is called in the file; the reader registers its class by this name.
      serialize_auxdata, deserialize_auxdata: the metadata of a node to bytes, and back.
      from_children: makes an instance of metadata and children, in place of the function that the
        class is registered as a node with.

    Returns:
      The class.

    Raises:
      ValueError: the class or the name is registered already, or the class is no pytree node.

    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> jax.tree_util.register_pytree_node(
    ...     Pair, lambda pair: ((pair.x, pair.y), None), lambda _, children: Pair(*children))
    >>> _ = jax.export.register_pytree_node_serialization(
    ...     Pair, serialized_name="doc.Pair", serialize_auxdata=lambda _: b"",
    ...     deserialize_auxdata=lambda _: None)
    >>> exported = jax.export.export(jax.jit(lambda pair: pair.x + pair.y))(Pair(1., 2.))
    >>> jax.export.deserialize(exported.serialize()).call(Pair(3., 4.))
    Array(7., dtype=float32)
    """
    registration = pytree.registered.get(nodetype)
    if from_children is None:
        if registration is None:
            raise ValueError("If `from_children` is not present, you must call first"
                             f"`jax.tree_util.register_pytree_node` for `{nodetype}`")
        from_children = registration.unflatten
    _register(_Format(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata,
                      from_children))
    return nodetype


def register_namedtuple_serialization(nodetype: T, *, serialized_name: str) -> T:
    """Lets exported functions with namedtuples of a class among arguments and results be saved.

    Args:
      nodetype: the class.
      serialized_name: what it is called in the file; the reader registers its class by this name.

    Returns:
      The class.

    Raises:
      ValueError: the class or the name is registered already, or it is no class of namedtuples.

    >>> import collections
    >>> State = collections.namedtuple("State", "step loss")
    >>> _ = jax.export.register_namedtuple_serialization(State, serialized_name="doc.State")
    >>> exported = jax.export.export(jax.jit(lambda s: State(s.step + 1, s.loss)))(State(1, 0.5))
    >>> jax.export.deserialize(exported.serialize()).call(State(3, 0.25)).step
    Array(4, dtype=int32)
    """
    if not isinstance(nodetype, type) or not pytree.is_namedtuple(nodetype):
        raise ValueError("Use `jax.export.register_pytree_node_serialization` for types other "
                         "than `collections.namedtuple`.")
    make: Any = nodetype

    def from_children(names: object, children: Sequence[PyTree]) -> Any:
        if names is None or names == list(make._fields):
            return make(*children)
        if not isinstance(names, list) or sorted(map(str, names)) != sorted(make._fields):
            raise ValueError(f"{nodetype.__name__} has the fields {make._fields}, not {names}")
        return make(**dict(zip(names, children, strict=True)))

    # As JAX's files have it; older ones of maxjax's own have no names.
    _register(_Format(nodetype, serialized_name,
                      lambda _: json.dumps(list(make._fields)).encode(),
                      lambda content: json.loads(content) if content else None, from_children))
    return nodetype


def _register(form: _Format) -> None:
    known = _by_kind.get(form.kind)
    if known is not None:
        raise ValueError(f"Duplicate serialization registration for type `{form.kind}`. Previous "
                         f"registration was with serialized_name `{known.name}`.")
    known = _by_name.get(form.name)
    if known is not None:
        raise ValueError(
            f"Duplicate serialization registration for serialized_name `{form.name}`. Previous "
            f"registration was for type `{known.kind}`.")
    _by_kind[form.kind] = _by_name[form.name] = form


def encode_tree(definition: PyTreeDef) -> Any:
    """A structure as plain JSON data.

    Raises:
      ValueError: it has nodes of a class that has no name in files.
      TypeError: a key of a dictionary is no string, or a class's function gives no bytes.
    """
    node = definition.node_data()
    if node is None:
        return "*"
    kind, data = node
    children = [encode_tree(child) for child in definition.children()]
    if kind is type(None):
        return None
    if kind is tuple or kind is list:
        return [kind.__name__, children]
    if kind is dict or kind is collections.OrderedDict:
        for key in data:
            if not isinstance(key, str):
                raise TypeError("Serialization is supported only for dictionaries with string "
                                f"keys. Found key {key} of type {type(key)}.")
        return [kind.__name__, children, list(data)]
    form = _by_kind.get(kind)
    if form is None:
        raise ValueError(
            f"Cannot serialize PyTreeDef containing an unregistered type `{kind}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`.")
    auxiliary = form.serialize(data)
    if not isinstance(auxiliary, (bytes, bytearray)):
        raise TypeError(f"The custom serialization function for `{kind}` must return bytes or "
                        f"bytearray, got {type(auxiliary)}")
    return ["custom", children, form.name, base64.b64encode(auxiliary).decode()]


def decode_tree(data: object) -> PyTreeDef:
    """The structure that ``encode_tree`` gave.

    Raises:
      UnregisteredType: it has nodes of a class that is not registered.
    """
    return PyTreeDef(pytree.structure(_example(data)))


def _example(data: Any) -> Any:
    """A pytree of a structure, with objects for leaves."""
    if data == "*":
        return object()
    if data is None:
        return None
    kind, children = data[0], [_example(child) for child in data[1]]
    if kind == "tuple":
        return tuple(children)
    if kind == "list":
        return children
    if kind in ("dict", "OrderedDict") and (
            len(set(data[2])) < len(children) or not all(isinstance(key, str) for key in data[2])):
        raise ValueError(f"a dictionary of the keys {data[2]}")
    if kind == "dict":
        return dict(zip(data[2], children, strict=True))
    if kind == "OrderedDict":
        return collections.OrderedDict(zip(data[2], children, strict=True))
    form = _by_name.get(data[2]) if kind == "custom" else None
    if form is None:
        raise UnregisteredType(
            f"Cannot deserialize a PyTreeDef containing an unregistered type `{data[2]}`. Use "
            "`export.register_pytree_node_serialization` or "
            "`export.register_namedtuple_serialization`.")
    return form.from_children(form.deserialize(base64.b64decode(data[3])), tuple(children))
