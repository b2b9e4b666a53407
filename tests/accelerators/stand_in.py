"""Compiled pieces of a simulated accelerator without a compiler: the interpreter, on buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from maxjax._base import config
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr
from maxjax._ir.serialize import decode, encode
from maxjax._max.device_memory import DeviceBuffer, DeviceMemory
from maxjax._max.graph import session
from maxjax._max.graph.accelerator import AcceleratorBackend
from maxjax._runtime import devices


class Interpreted:
    """Takes and gives buffers of one memory alone, as a compiled piece does."""

    def __init__(self, memory: DeviceMemory, jaxpr: Jaxpr):
        self.memory = memory
        self.run = interpreter(ClosedJaxpr(decode(encode(jaxpr))))

    def __call__(self, buffers: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        raws = self.memory.raws(buffers)
        values = [session.from_buffer(raw, buffer.shape, buffer.dtype)
                  for raw, buffer in zip(raws, buffers, strict=True)]
        with np.errstate(all="ignore"):
            results = [np.asarray(x) for x in self.run(*values)]
        memory = self.memory
        return [DeviceBuffer(memory, memory.copied(session.to_buffer(x)), x.shape, x.dtype)
                for x in results]


@pytest.fixture
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every program for an accelerator is found compiled."""
    monkeypatch.setattr(AcceleratorBackend, "find", lambda self, prepared: {
        number: Interpreted(self.memory, piece.jaxpr)
        for number, piece in enumerate(prepared.pieces) if not piece.on_host})
    with config.compile_mode("auto"):
        yield


def gpu(number: int = 0) -> devices.Device:
    return devices.accelerators()[number]
