"""jax.experimental.multihost_utils, for a single process."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base.missing import explain_missing_names
from maxjax._base.shardings import NamedSharding
from maxjax._runtime.placement import device_put
from maxjax.tree_util import tree_map


class ProcessFailureError(Exception):
    """Another process has failed; never raised, since there is none.

    >>> issubclass(ProcessFailureError, Exception)
    True
    """


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, of which there is one, as NumPy arrays.

    Args:
      in_tree: a pytree of arrays of any shape.
      tiled: whether the processes' arrays are concatenated along the first axis; otherwise they are
        stacked along a new one.

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
    """Whether a preemption notice has arrived for this step: always False.

    >>> reached_preemption_sync_point(3)
    False
    """
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over a mesh, from this process's part of each, which is the whole array.

    Args:
      local_inputs: a pytree of arrays.
      global_mesh: a ``Mesh``.
      pspecs: a ``PartitionSpec``, or a pytree of them that is a prefix of ``local_inputs``.

    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], "x")
    >>> host_local_array_to_global_array(np.arange(3), mesh, jax.P("x")).sharding.spec
    P('x',)
    """
    return device_put(local_inputs, tree_map(
        lambda spec: NamedSharding(global_mesh, spec), pspecs))


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """This process's part of arrays over a mesh, which is the whole array.

    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], "x")
    >>> global_array_to_host_local_array(jnp.arange(3), mesh, jax.P("x"))
    Array([0, 1, 2], dtype=int32)
    """
    return host_local_array_to_global_array(global_inputs, global_mesh, pspecs)


explain_missing_names(__name__)
