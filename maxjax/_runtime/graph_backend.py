"""The graph backend: MAX compiles a graph for each piece of a program, in a worker process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base import threads
from maxjax._ir.serialize import NotSerializable, dumps, encode
from maxjax._max import kernel_digest, session
from maxjax._max.mojo import crew
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.service import CompileService
from maxjax._runtime.compiled import CompiledProgram
from maxjax._runtime.program import Program
from maxjax._transforms.partition import partition

BUILDER = "maxjax._max.graph.builder:build"


class GraphBackend:
    """Compiles with MAX's graph compiler."""

    name = "graph"
    broken = None       # it has nothing to turn to: what fails is told by each program
    # A call of a compiled program costs about this much, whatever it computes: a program that
    # tier 0 runs in less is never compiled.
    DISPATCH_NANOSECONDS = 40_000

    def __init__(self, pack: Callable[[], Pack]) -> None:
        self._pack = pack
        self._service: CompileService | None = None
        self._lock = threads.lock()

    @property
    def service(self) -> CompileService:
        if self._service is None:
            with self._lock:
                if self._service is None:
                    self._service = CompileService(BUILDER)
        return self._service

    @property
    def directory(self) -> str:
        return str(self.service.cache.directory)

    def prepare(self, program: Program) -> str | None:
        """Cuts the program into pieces and makes its text and key; or why that cannot be."""
        unavailable = session.why_unavailable()
        if unavailable is not None:
            return unavailable
        if program.artifact_key:
            return None
        program.pieces = pieces = partition(program.opened.jaxpr)
        if all(piece.on_host for piece in pieces):
            return "; ".join(reason for piece in pieces for reason in piece.reasons) \
                or "there is nothing to compute"
        try:
            program.text = dumps({"pieces": [
                [f"piece_{number}", encode(piece.jaxpr)]
                for number, piece in enumerate(pieces) if not piece.on_host]})
        except NotSerializable as error:
            return f"the program cannot be handed to the compiler: {error}"
        program.artifact_key = "\n".join([
            session.versions(), session.cpu_target(),
            kernel_digest.digest(), program.text]).encode()
        return None

    def is_kept(self, program: Program) -> bool:
        """Whether all that the program needs lies on the disk."""
        return self.service.cache.lookup(program.artifact_key) is not None

    def find(self, program: Program) -> CompiledProgram | None:
        """The program compiled, if it was before.

        Raises:
          RuntimeError: what was kept cannot be loaded; it is forgotten.
        """
        path = self.service.cache.lookup(program.artifact_key)
        if path is None:
            return None
        try:
            models = session.load(path)
            crew.start(self._pack(), graphs=True)       # our kernels' threads
            return graph_program(program, models)
        except Exception as error:
            self.service.cache.discard(program.artifact_key)
            raise RuntimeError(f"the artifact cannot be loaded: {type(error).__name__}: "
                               f"{error}") from error

    def submit(self, program: Program, priority: float,
               done: Callable[[CompiledProgram | None, str | None], None]) -> Any:
        def finished(path: Any, error: str | None) -> None:
            compiled = None
            if error is None:
                try:
                    compiled = self.find(program)
                except RuntimeError as failure:
                    error = str(failure)
                if compiled is None and error is None:
                    error = "the artifact is gone"
            done(compiled, error)

        return self.service.submit(
            program.artifact_key, program.text, finished, priority,
            {"directory": str(self.service.cache.directory)})

    def wait(self, job: Any, progress: Callable[[float], None] | None) -> None:
        self.service.wait(job, progress)


def graph_program(program: Program, models: dict[str, Any], prefix: str = "") -> CompiledProgram:
    """A program of loaded models."""
    return CompiledProgram(program, {
        number: session.Executable(models[f"{prefix}piece_{number}"])
        for number, piece in enumerate(program.pieces) if not piece.on_host})


