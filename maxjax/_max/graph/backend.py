"""The graph backend: MAX compiles a graph for each piece of a program, in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maxjax._base import threads
from maxjax._ir.jaxpr import Jaxpr
from maxjax._ir.serialize import NotSerializable, dumps, encode
from maxjax._max import backend, kernel_digest
from maxjax._max.backend import Done, Progress, Runs, nothing_compiled
from maxjax._max.graph import session
from maxjax._max.graph.service import CompileService, Job
from maxjax._max.mojo import crew
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.versions import cpu_target, versions
from maxjax._transforms.partition import Piece, partition

BUILDER = "maxjax._max.graph.builder:build"


@dataclass(frozen=True)
class Prepared(backend.Prepared):
    """Adds the text that the worker compiles, and the key of its artifact."""

    text: str = ""
    key: bytes = b""


class GraphBackend(backend.Backend[Prepared, Job]):
    """Compiles with MAX's graph compiler."""

    name = "graph"
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

    def why_unavailable(self) -> str | None:
        return session.why_unavailable()

    def prepare(self, jaxpr: Jaxpr, donated: tuple[int, ...] = ()) -> Prepared:
        unavailable = session.why_unavailable()
        if unavailable is not None:
            return Prepared(reason=unavailable)
        pieces = self._pieces(jaxpr)
        reason = nothing_compiled(pieces)
        if reason is not None:
            return Prepared(pieces, reason)
        try:
            text = dumps({"pieces": texts(pieces)})
        except NotSerializable as error:
            return Prepared(pieces, f"the program cannot be handed to the compiler: {error}")
        key = "\n".join(
            [versions(), self._target(pieces), kernel_digest.digest(), text]).encode()
        return Prepared(pieces, None, text, key)

    def _pieces(self, jaxpr: Jaxpr) -> list[Piece]:
        return partition(jaxpr)

    def _target(self, pieces: Sequence[Piece]) -> str:
        """What a program is compiled for: a part of its key."""
        return cpu_target()

    def _options(self, pieces: Sequence[Piece]) -> dict[str, Any]:
        """What the compile worker has to know."""
        return {"directory": self.directory}

    def _loaded(self, prepared: Prepared, path: Path) -> Any:
        """The executables of an artifact."""
        models = session.load(path)
        crew.start(self._pack(), graphs=True)       # our kernels' threads
        return executables(prepared.pieces, models)

    def is_kept(self, prepared: Prepared) -> bool:
        return self.service.cache.lookup(prepared.key) is not None

    def find(self, prepared: Prepared) -> Runs | None:
        path = self.service.cache.lookup(prepared.key)
        if path is None:
            return None
        try:
            return self._loaded(prepared, path)
        except Exception as error:
            self.service.cache.discard(prepared.key)
            raise RuntimeError(f"the artifact cannot be loaded: {type(error).__name__}: "
                               f"{error}") from error

    def submit(self, prepared: Prepared, priority: float, done: Done) -> Job:
        def finished(path: Path | None, error: str | None) -> None:
            runs = None
            if error is None:
                try:
                    runs = self.find(prepared)
                except RuntimeError as failure:
                    error = str(failure)
                if runs is None and error is None:
                    error = "the artifact is gone"
            done(runs, error)

        return self.service.submit(
            prepared.key, prepared.text, finished, priority, self._options(prepared.pieces))

    def wait(self, job: Job, progress: Progress | None) -> None:
        self.service.wait(job, progress)


def texts(pieces: Sequence[Piece], prefix: str = "") -> list[list[Any]]:
    """The names and the encoded jaxprs of what is compiled, for the builder."""
    return [[f"{prefix}piece_{number}", encode(piece.jaxpr)]
            for number, piece in enumerate(pieces) if not piece.on_host]


def executables(pieces: Sequence[Piece], models: Mapping[str, Any], prefix: str = "") -> Runs:
    """The compiled pieces of loaded models, which are named as `texts` names them."""
    return {number: session.Executable(models[f"{prefix}piece_{number}"])
            for number, piece in enumerate(pieces) if not piece.on_host}
