"""jax.experimental.multihost_utils, for the one process that there is."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base.missing import missing_names
from maxjax.tree_util import tree_map


class ProcessFailureError(Exception):
    """Another process has failed; never raised, since there is none.

    >>> issubclass(ProcessFailureError, Exception)
    True
    """


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, here of one, as NumPy arrays.

    Args:
      in_tree: a pytree of arrays of any shape.
      tiled: whether the processes' arrays are joined along the first axis; else they are stacked
        along a new one.

    >>> process_allgather(jnp.arange(3))
    array([[0, 1, 2]], dtype=int32)
    >>> process_allgather(jnp.arange(3), tiled=True)
    array([0, 1, 2], dtype=int32)
    """
    def gather(leaf: Any) -> np.ndarray:
        value = np.asarray(leaf)
        return value if tiled else value[None]
    return tree_map(gather, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The first process's values, as NumPy arrays.

    >>> broadcast_one_to_all({"seed": 3})
    {'seed': array(3)}
    """
    return tree_map(np.asarray, in_tree)


def sync_global_devices(name: str) -> None:
    """Waits for all processes, of which there is one.

    >>> sync_global_devices("after checkpoint")
    """


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Checks that all processes hold the same values, as one process always does.

    >>> assert_equal({"step": 3}, "steps differ")
    """
    tree_map(np.asarray, in_tree)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether a notice of preemption has come for this step: nobody sends any.

    >>> reached_preemption_sync_point(3)
    False
    """
    return False


__getattr__ = missing_names(__name__)
