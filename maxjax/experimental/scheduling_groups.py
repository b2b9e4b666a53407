"""jax.experimental.scheduling_groups: operations to schedule together."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from maxjax._base.missing import explain_missing_names
from maxjax.experimental.xla_metadata import XlaMetadataContextManager


def scheduling_group(name: str) -> Callable[..., Any]:
    """A decorator: XLA would schedule the function's operations together. Here without effect.

    >>> scheduling_group("first")(jnp.negative)(2.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    return xla_metadata_call(scheduling_group=name)


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: Any) -> Callable[..., Any]:
    """The function, whose operations have metadata for XLA: see ``set_xla_metadata``.

    Without a function: a decorator.
    """
    if f is None:
        return functools.partial(xla_metadata_call, **meta)
    return XlaMetadataContextManager(meta)(f)


explain_missing_names(__name__)
