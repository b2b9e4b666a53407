"""jax.experimental.control_deps: the order of operations, which is that of the program here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base.missing import explain_missing_names


def control_dep(src: Any, dst: Any) -> None:
    """Says that ``src`` is computed before ``dst``. Here without effect.

    >>> x = jnp.ones(2)
    >>> control_dep(x, x + 1)
    """


def schedule(ops: Sequence[Any]) -> None:
    """Says that values are computed in this order. Here without effect."""


explain_missing_names(__name__)
