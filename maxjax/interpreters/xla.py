"""jax.interpreters.xla: its applicable part; maxjax's programs do not run on XLA."""

from __future__ import annotations

from typing import Any

from maxjax._base.missing import explain_missing_names
from maxjax._runtime.devices import Client as Backend
from maxjax._transforms.autodiff import operands_of

__all__ = ["Backend", "apply_primitive"]


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """The results of one operation.

    >>> jax.interpreters.xla.apply_primitive(lax.add_p, 1.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return prim.bind(*operands_of(args), **params)


explain_missing_names(__name__)
