"""jax.experimental.xla_metadata: what a program says of its operations to whoever reads it.

Nothing here computes otherwise for it: it is written into the StableHLO that ``lower`` gives, as
frontend attributes, from which XLA's tools take it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from maxjax._base import config, pytree
from maxjax._base.missing import explain_missing_names
from maxjax._base.pytree import PyTree
from maxjax._base.source import scopes
from maxjax._primitives.identities import xla_metadata_value_p
from maxjax._transforms.autodiff import leaf_operand


class XlaMetadataContextManager:
    """Operations traced inside have the metadata; a function that it decorates as well."""

    def __init__(self, updates: dict[str, object]):
        self._updates = updates
        self._outer: list[Any] = []

    def __enter__(self) -> None:
        outer = scopes.names
        self._outer.append(outer)
        _set({**outer.metadata, **self._updates})

    def __exit__(self, *_: Any) -> None:
        _set(self._outer.pop().metadata)

    def __call__(self, function: Callable[..., PyTree]) -> _XlaMetadataWrapper:
        return _XlaMetadataWrapper(function, self._updates)


def _set(metadata: Any) -> None:
    scopes.names = scopes.names.with_metadata(metadata)
    config.set_trace_metadata(tuple(sorted(metadata.items())) or None)


class _XlaMetadataWrapper:
    """A function under the context; its stages (``lower``, ``trace``), too."""

    def __init__(self, function: Callable[..., PyTree], updates: dict[str, object]):
        functools.update_wrapper(self, function)
        self._function = function
        self._updates = updates

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Any:
        with XlaMetadataContextManager(self._updates):
            return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._function, name)
        return type(self)(value, self._updates) if callable(value) else value


def set_xla_metadata(x: PyTree = None, **kwargs: Any) -> Any:
    """Metadata for operations: of the operations that give the arrays in ``x``, or without ``x`` of
    all that are traced inside a context or a decorated function.

    Args:
      x: a pytree of arrays.
      kwargs: the metadata.

    Returns:
      ``x``, or a context manager and decorator.

    >>> @jax.jit
    ... def f(x):
    ...     return set_xla_metadata(jnp.sin(x), breakpoint=True)
    >>> f(0.), "breakpoint" in f.lower(0.).as_text()
    (Array(0., dtype=float32, weak_type=True), True)
    """
    if x is None:
        return XlaMetadataContextManager(kwargs)
    known = tuple(sorted(kwargs.items()))
    leaves, tree = pytree.flatten(x)
    return pytree.unflatten(tree, [
        xla_metadata_value_p.bind(leaf_operand(leaf), xla_metadata_kvs=known) for leaf in leaves])


explain_missing_names(__name__)
