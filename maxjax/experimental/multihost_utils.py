"""jax.experimental.multihost_utils: for one process, in which there is nobody to agree with."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import pytree
from maxjax._base.missing import missing_names
from maxjax._base.shardings import NamedSharding
from maxjax._runtime.placement import device_put

__all__ = ["assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
           "host_local_array_to_global_array", "process_allgather", "sync_global_devices"]
__getattr__ = missing_names(__name__)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The leaves that process 0 has, as NumPy arrays."""
    return pytree.map(np.asarray, in_tree)


def sync_global_devices(name: str) -> None:
    """Waits until all processes are here: they are."""


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The leaves of all processes, as NumPy arrays.

    Args:
      in_tree: a pytree of arrays.
      tiled: concatenate along the first dimension, instead of stacking.

    >>> process_allgather(np.arange(3)).shape
    (1, 3)
    """
    return pytree.map(lambda x: np.asarray(x) if tiled or not getattr(
        x, "is_fully_addressable", True) else np.asarray(x)[None], in_tree)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises AssertionError if processes have different values: there is one."""


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over a mesh, from this process's part of each: all of it."""
    return device_put(local_inputs, pytree.map(
        lambda spec: NamedSharding(global_mesh, spec), pspecs))


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """This process's part of arrays over a mesh: all of it."""
    return host_local_array_to_global_array(global_inputs, global_mesh, pspecs)
