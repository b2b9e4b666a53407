"""jax.experimental.multihost_utils: values of all processes, and waiting for them."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._base.processes import job
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import PartitionSpec
from maxjax._distributed.start import connection
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array
from maxjax._runtime.placement import device_put, for_leaves
from maxjax._runtime.spanning import gathered
from maxjax.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten


class ProcessFailureError(Exception):
    """Another process has failed; collectives raise JaxRuntimeError instead.

    >>> issubclass(ProcessFailureError, Exception)
    True
    """


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes as NumPy arrays; of an array over several processes, the whole.

    Args:
      in_tree: a pytree of arrays of any shape, the same in all processes.
      tiled: whether the processes' arrays are concatenated along the first axis; otherwise, and
        where they are scalars, they are stacked along a new one.

    Raises:
      ValueError: an array is over several processes, and ``tiled`` is False.
      JaxRuntimeError: another process is missing, or does something else.

    >>> process_allgather(jnp.arange(3))
    array([[0, 1, 2]], dtype=int32)
    >>> process_allgather(jnp.arange(3), tiled=True)
    array([0, 1, 2], dtype=int32)
    """
    def gather(leaf: Any) -> np.ndarray:
        if isinstance(leaf, Array) and not leaf.is_fully_addressable:
            if not tiled:
                raise ValueError("Gathering global non-fully-addressable arrays only supports "
                                 "tiled=True")
            return np.array(gathered(leaf))
        value = np.asarray(leaf)
        if job.count == 1:
            return value if tiled else value[None]
        value = value.astype(dtypes.canonical(value.dtype), copy=False)
        stacked = connection.everybody().all_gather(value, "process_allgather")
        return stacked.reshape(-1, *value.shape[1:]) if tiled and value.ndim else stacked

    return tree_map(gather, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The first process's values, as NumPy arrays.

    Args:
      in_tree: a pytree of arrays, of the same types in all processes.
      is_source: whether this process's values are the ones, as one process must say; None: the
        first process's are.

    Raises:
      JaxRuntimeError: another process is missing, or does something else.
      ValueError: not exactly one process is the source.

    >>> broadcast_one_to_all({"seed": 3})
    {'seed': array(3)}
    """
    if job.count == 1:
        return tree_map(np.asarray, in_tree)
    group = connection.everybody()
    says = np.array(job.index == 0 if is_source is None else is_source, np.uint8)
    sources = np.flatnonzero(group.all_gather(says, "source of broadcast_one_to_all"))
    if len(sources) != 1:
        raise ValueError("broadcast_one_to_all needs one process as source, got "
                         f"{sources.tolist()}")

    def broadcast(leaf: Any) -> np.ndarray:
        value = np.asarray(leaf)
        value = value.astype(dtypes.canonical(value.dtype), copy=False)
        return group.broadcast(value, int(sources[0]), "broadcast_one_to_all")

    return tree_map(broadcast, in_tree)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have called this with the same name.

    Raises:
      AssertionError: another process gave another name.
      JaxRuntimeError: another process is missing, or does something else.

    >>> sync_global_devices("after checkpoint")
    """
    assert_equal(np.uint32(zlib.crc32(name.encode())),
                 f"sync_global_devices name mismatch ({name!r})")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Checks that all processes hold the same values.

    Raises:
      AssertionError: they do not.
      JaxRuntimeError: another process is missing, or does something else.

    >>> assert_equal({"step": 3}, "steps differ")
    """
    if job.count == 1:
        tree_map(np.asarray, in_tree)
        return
    gathered = process_allgather(in_tree, tiled=False)
    same = tree_map(lambda values: bool((values == values[:1]).all()), gathered)
    if not all(tree_leaves(same)):
        expected = tree_map(
            lambda values: values if values.ndim < 2 else values.reshape(-1, *values.shape[2:]),
            gathered)
        raise AssertionError(f"{fail_message}. Expected: {expected}; got: {in_tree}.")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether a preemption notice has arrived for this step: always False.

    >>> reached_preemption_sync_point(3)
    False
    """
    return False


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over a mesh, from this process's part of each.

    Args:
      local_inputs: a pytree of arrays: the part that the mesh's devices of this process hold.
      global_mesh: a ``Mesh``.
      pspecs: a ``PartitionSpec``, or a pytree of them that is a prefix of ``local_inputs``.

    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], "x")
    >>> host_local_array_to_global_array(np.arange(3), mesh, jax.P("x")).sharding.spec
    P('x',)
    """
    if not global_mesh.is_multi_process:
        return device_put(local_inputs, tree_map(
            lambda spec: NamedSharding(global_mesh, spec), pspecs))

    def over_all(leaf: Any, spec: PartitionSpec) -> Any:
        if isinstance(leaf, Array) and not leaf.is_fully_addressable:
            return leaf
        return installed.runtime.spread(
            leaf if isinstance(leaf, Array) else np.asarray(leaf), NamedSharding(global_mesh, spec))

    return _with_specs(over_all, local_inputs, pspecs)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """This process's part of arrays over a mesh; arrays that are all here stay as they are.

    >>> mesh = jax.sharding.Mesh(jax.devices()[:1], "x")
    >>> global_array_to_host_local_array(jnp.arange(3), mesh, jax.P("x"))
    Array([0, 1, 2], dtype=int32)
    """
    def here(leaf: Any, spec: PartitionSpec) -> Any:
        if not isinstance(leaf, Array) or leaf.is_fully_addressable:
            return leaf
        return installed.runtime.collected(device_put(leaf, NamedSharding(global_mesh, spec)))

    return _with_specs(here, global_inputs, pspecs)


def _with_specs(function: Any, tree: Any, pspecs: Any) -> Any:
    """Applies a function to each leaf and its spec."""
    leaves, structure = tree_flatten(tree)
    return tree_unflatten(structure, list(map(
        function, leaves, for_leaves(pspecs, tree, len(leaves), "pspecs"))))


explain_missing_names(__name__)
