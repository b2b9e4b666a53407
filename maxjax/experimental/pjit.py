"""jax.experimental.pjit: ``jax.jit`` under its old name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base.meshes import physical_mesh_set
from maxjax._base.missing import explain_missing_names
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.api import jit
from maxjax._higher_order.jit_function import PjitFunction
from maxjax._higher_order.jit_sharded import UNSPECIFIED
from maxjax._higher_order.stages import Lowered, Traced


def pjit(fun: Callable[..., Any], in_shardings: Any = UNSPECIFIED,
         out_shardings: Any = UNSPECIFIED,
         static_argnums: int | Sequence[int] | None = None,
         static_argnames: str | Iterable[str] | None = None,
         donate_argnums: int | Sequence[int] | None = None,
         donate_argnames: str | Iterable[str] | None = None, keep_unused: bool = False,
         device: Any = None, backend: str | None = None, inline: bool = False,
         compiler_options: dict[str, Any] | None = None) -> Any:
    """``jax.jit`` with positional options, which runs on the mesh of ``with mesh:``.

    ``PartitionSpec``s refer to that mesh, and shardings that are None are replicated over it.

    >>> pjit(lambda x: 2 * x)(3)
    Array(6, dtype=int32, weak_type=True)
    """
    made = jit(fun, in_shardings=in_shardings, out_shardings=out_shardings,
               static_argnums=static_argnums, static_argnames=static_argnames,
               donate_argnums=donate_argnums, donate_argnames=donate_argnames,
               keep_unused=keep_unused, device=device, backend=backend, inline=inline,
               compiler_options=compiler_options)
    if made._shardings is not None:
        made._shardings.caller = "pjit"
    made.__class__ = PjitOverMesh
    return made


class PjitOverMesh(PjitFunction):
    """A function under pjit: runs on the mesh of ``with mesh:`` as under ``jax.set_mesh``."""

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with physical_mesh_set():
            return super().__call__(*args, **kwargs)

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        with physical_mesh_set():
            return super().trace(*args, **kwargs)

    @boundary
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        with physical_mesh_set():
            return super().lower(*args, **kwargs)

    @boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        with physical_mesh_set():
            return super().eval_shape(*args, **kwargs)


explain_missing_names(__name__, deprecated={
    "pjit": (pjit, "jax.experimental.pjit.pjit has been deprecated. Please use `jax.jit` instead."),
})
if not TYPE_CHECKING:
    del pjit
