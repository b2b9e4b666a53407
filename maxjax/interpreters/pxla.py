"""jax.interpreters.pxla: the current mesh."""

from __future__ import annotations

from maxjax._base import meshes
from maxjax._base.meshes import Mesh
from maxjax._base.missing import explain_missing_names


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
    """What JAX keeps for each thread: the mesh that is set."""

    env = ResourceEnv()


explain_missing_names(__name__, deprecated={"thread_resources": (
    ThreadResources(),
    "jax.interpreters.pxla.thread_resources is deprecated as of JAX v0.8.2. Please switch to using "
    "`with jax.set_mesh(mesh)` instead of `with mesh:` and then use "
    "`jax.sharding.get_abstract_mesh()` to get the current mesh.")})
