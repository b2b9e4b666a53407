"""The registration of classes whose instances are nodes of pytrees."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.pytree import GetAttrKey
from maxjax._ir.typing import Class


def register_pytree_node(nodetype: type, flatten_func: Callable[[Any], tuple[Any, Any]],
                         unflatten_func: Callable[[Any, Any], Any],
                         flatten_with_keys_func: Callable[[Any], tuple[Any, Any]] | None = None
                         ) -> None:
    """Registers a class whose instances are nodes of pytrees.

    Args:
      nodetype: the class; subclasses are not registered with it.
      flatten_func: returns (children, metadata) of an instance; metadata is hashable.
      unflatten_func: returns an instance from (metadata, children).
      flatten_with_keys_func: returns (pairs (key, child), metadata).

    Returns:
      None.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_pytree_node_class``, ``jax.tree_util.register_dataclass``,
    ``jax.tree_util.register_pytree_with_keys``, ``jax.tree_util.register_static``.

    >>> class Pair(list):
    ...     pass
    >>> jax.tree_util.register_pytree_node(Pair, lambda p: (tuple(p), None), lambda _, p: Pair(p))
    >>> jax.tree_util.tree_map(abs, Pair([-1, -2]))
    [1, 2]
    """
    pytree.register(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: Class) -> Class:
    """Decorates a class with methods ``tree_flatten`` and (class) ``tree_unflatten``.

    Args:
      cls: the class. ``tree_flatten(self)`` returns (children, metadata); ``tree_unflatten(cls,
        metadata, children)`` an instance, and runs with tracers and other objects as children, so
        that it should not check them.

    Returns:
      The class.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_pytree_node``, ``jax.tree_util.register_dataclass``,
    ``jax.tree_util.register_pytree_with_keys_class``.

    >>> @jax.tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten(self):
    ...         return (self.value,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children):
    ...         return cls(*children)
    >>> jax.tree_util.tree_leaves(Box((1, 2)))
    [1, 2]
    """
    node: Any = cls
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), node.tree_unflatten)
    return cls


def register_pytree_with_keys(nodetype: type,
                              flatten_with_keys: Callable[[Any], tuple[Any, Any]],
                              unflatten_func: Callable[[Any, Any], Any],
                              flatten_func: Callable[[Any], tuple[Any, Any]] | None = None
                              ) -> None:
    """Registers a class whose instances are nodes of pytrees with keyed children.

    Args:
      nodetype: the class.
      flatten_with_keys: returns (pairs (key, child), metadata) of an instance.
      unflatten_func: returns an instance from (metadata, children).
      flatten_func: returns (children, metadata), where no keys are asked for; None: by the first.

    Returns:
      None.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_pytree_with_keys_class``,
    ``jax.tree_util.register_pytree_node``, ``jax.tree.flatten_with_path``.

    >>> class Named(list):
    ...     pass
    >>> key = jax.tree_util.GetAttrKey('only')
    >>> jax.tree_util.register_pytree_with_keys(
    ...     Named, lambda n: ([(key, n[0])], None), lambda _, n: Named(n))
    >>> jax.tree_util.keystr(jax.tree_util.tree_leaves_with_path(Named([5]))[0][0])
    '.only'
    """
    if flatten_func is None:
        def flatten_func(tree: Any) -> tuple[Any, Any]:
            pairs, metadata = flatten_with_keys(tree)
            return [child for _, child in pairs], metadata
    pytree.register(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: Class) -> Class:
    """Decorates a class with methods ``tree_flatten_with_keys`` and (class) ``tree_unflatten``.

    Args:
      cls: the class. ``tree_flatten_with_keys`` returns (pairs (key, child), metadata).

    Returns:
      The class.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_pytree_with_keys``,
    ``jax.tree_util.register_pytree_node_class``.

    >>> @jax.tree_util.register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten_with_keys(self):
    ...         return ((jax.tree_util.GetAttrKey('value'), self.value),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, metadata, children):
    ...         return cls(*children)
    >>> jax.tree_util.keystr(jax.tree_util.tree_leaves_with_path(Box(1))[0][0])
    '.value'
    """
    node: Any = cls
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(
        cls, operator.methodcaller("tree_flatten_with_keys"), node.tree_unflatten, flatten)
    return cls


def register_dataclass(nodetype: Class, data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None,
                       drop_fields: Sequence[str] = ()) -> Class:
    """Registers a dataclass as a node of pytrees; also a decorator.

    Args:
      nodetype: the class. Left out: a decorator is returned.
      data_fields: the fields that are children. Default: all those without the metadata
        ``static=True``.
      meta_fields: the fields that are part of the structure.
      drop_fields: fields with defaults, which are dropped.

    Returns:
      The class. Instances are rebuilt without ``__init__``.

    Raises:
      TypeError: only one of ``data_fields`` and ``meta_fields`` is given.
      ValueError: the fields do not match the class.

    See also: ``jax.tree_util.register_pytree_node``, ``jax.tree_util.register_static``.

    >>> import dataclasses
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = dataclasses.field(metadata={'static': True}, default='first')
    >>> jax.tree_util.tree_leaves(Layer(0.5))
    [0.5]
    """
    if data_fields is None or meta_fields is None:
        if (data_fields is None) != (meta_fields is None):
            raise TypeError("register_dataclass: data_fields and meta_fields must both be specified"
                            f" when either is specified. Got {data_fields=} {meta_fields=}.")
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(
                "register_dataclass: data_fields and meta_fields are required when nodetype is not "
                f"a dataclass. Got {nodetype=}.")
        fields = [field for field in dataclasses.fields(nodetype)
                  if field.name not in drop_fields]
        data_fields = [field.name for field in fields if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in fields if field.metadata.get("static", False)]
    data, meta = tuple(data_fields), tuple(meta_fields)
    if overlap := {*data} & {*meta}:
        raise ValueError("data_fields and meta_fields must not overlap. Overlapping fields: "
                         f"{overlap}.")
    if dataclasses.is_dataclass(nodetype):
        expected = {field.name for field in dataclasses.fields(nodetype) if field.init}
        if expected != {*data, *meta, *drop_fields} & expected or not {*data, *meta} <= expected:
            missing = expected - {*data, *meta, *drop_fields}
            extra = {*data, *meta} - expected
            raise ValueError(
                "data_fields and meta_fields must include all dataclass fields with ``init=True`` "
                "and only them."
                + (f" Missing fields: {missing}. Add them to drop_fields to suppress this error."
                   if missing else "")
                + (f" Unexpected fields: {extra}." if extra else ""))

    def flatten(tree: Any) -> tuple[Any, Any]:
        return (tuple(getattr(tree, name) for name in data),
                tuple(getattr(tree, name) for name in meta))

    def flatten_with_keys(tree: Any) -> tuple[Any, Any]:
        return ([(GetAttrKey(name), getattr(tree, name)) for name in data],
                tuple(getattr(tree, name) for name in meta))

    def unflatten(metadata: Any, children: Any) -> Any:
        return nodetype(**dict(zip(meta, metadata, strict=True)),
                        **dict(zip(data, children, strict=True)))

    pytree.register(nodetype, flatten, unflatten, flatten_with_keys)
    return nodetype


def register_static(cls: Class) -> Class:
    """Decorates a hashable class: its instances are part of the structure, without leaves.

    Args:
      cls: a class whose instances hash and compare by value.

    Returns:
      The class.

    Raises:
      ValueError: the class is already registered.

    See also: ``jax.tree_util.register_dataclass``, ``jax.tree_util.register_pytree_node``,
    ``jax.jit``.

    >>> @jax.tree_util.register_static
    ... class Mode(str):
    ...     pass
    >>> jax.tree_util.tree_leaves((Mode('train'), 1))
    [1]
    """
    pytree.register(cls, lambda value: ((), value), lambda value, children: value,
                    lambda value: ((), value))
    return cls
