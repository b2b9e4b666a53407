"""jax.interpreters.xla: its applicable part; maxjax's programs do not run on XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base.missing import explain_missing_names
from maxjax._runtime.devices import Client as Backend
from maxjax._transforms.autodiff import operands_of

__all__ = ["Backend", "apply_primitive", "canonicalize_dtype_handlers"]

# Libraries register classes that act as arrays; here ``__jax_array__`` is what makes one.
canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: np.asarray}


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """The results of one operation.

    >>> jax.interpreters.xla.apply_primitive(lax.add_p, 1.0, 2.0)
    Array(3., dtype=float32, weak_type=True)
    """
    return prim.bind(*operands_of(args), **params)


explain_missing_names(__name__)
