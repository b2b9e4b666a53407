"""jax.experimental.scheduling_groups: operations to schedule together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base.missing import explain_missing_names
from maxjax.experimental.xla_metadata import xla_metadata_call as xla_metadata_call


def scheduling_group(name: str) -> Callable[..., Any]:
    """A decorator: XLA would schedule the function's operations together. Here without effect.

    >>> scheduling_group("first")(jnp.negative)(2.0)
    Array(-2., dtype=float32, weak_type=True)
    """
    return xla_metadata_call(scheduling_group=name)


explain_missing_names(__name__)
