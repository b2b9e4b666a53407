"""jax.interpreters.pxla: the current mesh."""

from __future__ import annotations

from maxjax._base import meshes
from maxjax._base.meshes import Mesh
from maxjax._base.missing import explain_missing_names

__all__ = ["thread_resources"]


class ResourceEnv:
    """The current thread's resource environment.

    >>> jax.interpreters.pxla.thread_resources.env.physical_mesh.empty
    True
    """

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh that ``with mesh:`` or ``jax.set_mesh`` has set; an empty one if none is."""
        return meshes.around().concrete


class ThreadResources:
    """Of this thread."""

    env = ResourceEnv()


thread_resources = ThreadResources()

_PMAP = ". Please use `jax.shard_map` instead of `jax.pmap`."
explain_missing_names(__name__, {
    name: f"jax.interpreters.pxla.{name} was removed in JAX v0.10.0{then}"
    for names, then in (
        ("MapTracer PmapExecutable parallel_callable shard_args", "."),
        ("Chunked NoSharding Replicated ShardedAxis ShardingSpec Unstacked spec_to_indices", _PMAP))
    for name in names.split()})
