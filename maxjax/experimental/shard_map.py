"""jax.experimental.shard_map: the function under its old name and arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from maxjax._base.missing import attribute_error
from maxjax._sharding.shard_map_api import shard_map as _shard_map


def _old(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any,
         check_rep: bool = True) -> Callable[..., Any]:
    """``jax.shard_map`` with its arguments in another order.

    Args:
      check_rep: its ``check_vma``.
    """
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


_old.__name__ = _old.__qualname__ = "shard_map"

if TYPE_CHECKING:
    shard_map = _old

if not TYPE_CHECKING:
    def __getattr__(name: str) -> Any:
        if name != "shard_map":
            raise attribute_error(__name__, name)
        warnings.warn(
            "jax.experimental.shard_map is deprecated in v0.8.0. Used jax.shard_map instead.",
            DeprecationWarning, stacklevel=2)
        return _old
