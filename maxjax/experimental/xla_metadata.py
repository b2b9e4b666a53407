"""jax.experimental.xla_metadata: what a program says of its operations to whoever reads it.

Nothing here computes otherwise for it: it is written into the StableHLO that ``lower`` gives, as
frontend attributes, from which XLA's tools take it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from maxjax._base import config, pytree
from maxjax._base.interrupts import context_manager, entered_at_once
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
        metadata = {**outer.metadata, **self._updates}
        inner, kept = outer.with_metadata(metadata), tuple(sorted(metadata.items())) or None
        self._outer.append((outer, config.trace_metadata()))
        try:
            scopes.names = inner
            config.set_trace_metadata(kept)
        except BaseException:       # an interrupt: nobody calls `__exit__`
            self.__exit__()
            raise

    @entered_at_once
    def __exit__(self, *_: Any) -> None:
        *self._outer, (scopes.names, metadata) = self._outer
        config.set_trace_metadata(metadata)

    def __call__(self, function: Callable[..., PyTree]) -> _XlaMetadataWrapper:
        return _XlaMetadataWrapper(function, self._updates)


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


def xla_metadata_call(f: Callable[..., Any] | None = None, /, **meta: Any) -> Callable[..., Any]:
    """The function, whose operations have metadata for XLA, and those of its derivatives.

    Args:
      f: a function of arrays; without it, this is a decorator.
      meta: strings and numbers.

    Raises:
      TypeError: a value is another thing.

    >>> double = xla_metadata_call(lambda x: x * 2, tag="doubled")
    >>> double(3.), 'tag = "doubled"' in jax.jit(double).lower(3.).as_text()
    (Array(6., dtype=float32, weak_type=True), True)
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(f: Callable[..., Any] | Mapping[str, Any] | None = None, /,
                       metadata: Mapping[str, Any] | None = None, *,
                       ad_metadata: str | Mapping[str, Any] = "same") -> Callable[..., Any]:
    """``xla_metadata_call`` with the metadata as a dict.

    Args:
      f: a function of arrays, or the metadata; without a function, this is a decorator.
      metadata: strings and numbers by name.
      ad_metadata: that of derivatives; "same", as maxjax writes it down with the operations that
        these come of.

    Raises:
      TypeError: ``f`` is no function, a value is no string or number, or ``ad_metadata`` is neither
        "same", "drop" nor a dict.
      NotImplementedError: ``ad_metadata`` is not "same".

    >>> xla_metadata_call2({"tag": 1})(jnp.negative)(3.)
    Array(-3., dtype=float32, weak_type=True)
    """
    if isinstance(f, Mapping) and metadata is None:
        f, metadata = None, f
    if f is None:
        return functools.partial(_with_metadata, metadata=metadata, ad_metadata=ad_metadata)
    if not callable(f):
        raise TypeError(f"expected a callable to wrap, got {f!r}")
    return _with_metadata(f, metadata, ad_metadata)


def _with_metadata(f: Callable[..., Any], metadata: Mapping[str, Any] | None,
                   ad_metadata: str | Mapping[str, Any]) -> _XlaMetadataWrapper:
    known: dict[str, object] = {}
    for key, value in (metadata or {}).items():
        if not isinstance(value, (str, bool, int, float)):
            raise TypeError("xla_metadata_call metadata values must be str, bool, int, or float, "
                            f"got {type(value)} for key {key!r}")
        known[key] = str(value).lower() if isinstance(value, bool) else str(value)
    if ad_metadata != "same":
        if ad_metadata != "drop" and not isinstance(ad_metadata, Mapping):
            raise TypeError("ad_metadata must be 'same', 'drop', or a dict of metadata, got "
                            f"{ad_metadata!r}")
        raise NotImplementedError(
            "xla_metadata_call2: derivatives have the metadata of what they come of in maxjax: "
            "ad_metadata has to be 'same'")

    @functools.wraps(f)
    def of_arrays(*args: PyTree, **kwargs: PyTree) -> Any:
        # Python's own numbers are arrays to it, as they are to a jitted function.
        leaves, tree = pytree.flatten((args, kwargs))
        args, kwargs = pytree.unflatten(tree, [leaf_operand(leaf) for leaf in leaves])
        return f(*args, **kwargs)

    return XlaMetadataContextManager(known)(of_arrays)


@context_manager
def fuse_limit() -> Iterator[None]:
    """Operations that are traced inside have the metadata ``FUSE_LIMIT``, which keeps XLA from
    fusing them with others. maxjax's own kernels do not look at it.

    >>> def f(x):
    ...     with fuse_limit():
    ...         return jnp.sin(x)
    >>> "FUSE_LIMIT" in jax.jit(f).lower(0.).as_text()
    True
    """
    with set_xla_metadata(FUSE_LIMIT=True):
        yield


def must_fuse_call(identifier: str) -> Callable[..., Any]:
    """A decorator: the function's operations have the metadata ``MUST_FUSE``, by which XLA makes
    one kernel of them. maxjax's own kernels do not look at it.

    >>> must_fuse_call("1")(jnp.negative)(2.)
    Array(-2., dtype=float32, weak_type=True)
    """
    return xla_metadata_call(MUST_FUSE=identifier)


explain_missing_names(__name__)
