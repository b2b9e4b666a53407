"""What the runtime has made to run a jaxpr. It lives exactly as long as the jaxpr."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxjax._base import threads
from maxjax._ir.jaxpr import ClosedJaxpr

if TYPE_CHECKING:
    from maxjax._max.device_memory import DeviceMemory
    from maxjax._runtime.on_device import DeviceProgram
    from maxjax._runtime.on_mesh import MeshProgram
    from maxjax._runtime.program import Program
    from maxjax._runtime.spanning import ProcessProgram


class Made:
    """Programs of one jaxpr.

    Attributes:
      programs: by the inputs whose memory results may take.
      on_accelerators: by the accelerator.
      on_meshes: those that run over a mesh, by it and by the shardings of operands and results.
      over_processes: this process's part of those over the devices of several, by the same.
    """

    __slots__ = ("on_accelerators", "on_meshes", "over_processes", "programs")

    def __init__(self) -> None:
        self.programs: dict[tuple[int, ...], Program] = {}
        self.on_accelerators: dict[DeviceMemory, DeviceProgram] = {}
        self.on_meshes: dict[Any, MeshProgram] = {}
        self.over_processes: dict[Any, ProcessProgram] = {}


_lock = threads.lock()


def made_of(closed: ClosedJaxpr) -> Made:
    """What has been made of a jaxpr."""
    made: Made | None = closed.made
    if made is None:
        with _lock:
            made = closed.made = closed.made or Made()
    return made
