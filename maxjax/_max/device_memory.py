"""Which memory a value is in, and how it moves: the host's, or that of an accelerator.

Everything that crosses between the two does so here, and is counted. An accelerator is one of
MAX's, or a simulated one (``MAXJAX_SIMULATED_ACCELERATORS``, for tests): memory of the host that is
treated as if it were apart, so that a path that forgets to move a value is an error.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import threads
from maxjax._max.graph import session

SIMULATED = "MAXJAX_SIMULATED_ACCELERATORS"


@dataclasses.dataclass
class Transfers:
    """What has moved between the host and an accelerator.

    Attributes:
      to_device, to_host: how many values.
      bytes_to_device, bytes_to_host: their bytes.
    """

    to_device: int = 0
    to_host: int = 0
    bytes_to_device: int = 0
    bytes_to_host: int = 0


class DeviceBuffer:
    """A value in an accelerator's memory. It is read by ``DeviceMemory.load`` alone.

    Attributes:
      memory: the accelerator's.
      raw: MAX's buffer.
      shape, dtype: of the value; the dtype is physical.
      nbytes: of the value.
    """

    __slots__ = ("dtype", "memory", "nbytes", "raw", "shape")

    def __init__(self, memory: DeviceMemory, raw: Any, shape: tuple[int, ...], dtype: np.dtype):
        self.memory = memory
        self.raw = raw
        self.shape = shape
        self.dtype = dtype
        self.nbytes = math.prod(shape) * dtype.itemsize
        memory._holds(self.nbytes)

    def __del__(self) -> None:
        self.memory._releases(self.nbytes)

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise TypeError(f"a buffer of {self.memory.name} is not in the host's memory: it has to be "
                        "moved")


class DeviceMemory:
    """The memory of one accelerator.

    Attributes:
      number: the accelerator's.
      transfers: what has moved so far.
      bytes_in_use, peak_bytes_in_use, num_allocs: of buffers that arrays hold.
    """

    is_simulated = False

    def __init__(self, number: int):
        self.number = number
        self.transfers = Transfers()
        self.bytes_in_use = self.peak_bytes_in_use = self.num_allocs = 0
        self._lock = threads.lock()

    @property
    def name(self) -> str:
        return f"gpu:{self.number}"

    @property
    def api(self) -> str:
        """The platform's name in JAX: "cuda" or "rocm"."""
        return {"hip": "rocm"}.get(self._device().api, self._device().api)

    @property
    def kind(self) -> str:
        """What the accelerator is."""
        return str(self._device().model_name or self._device().architecture_name)

    @property
    def compiled_for(self) -> str | int:
        """What the graph builder has to know of it."""
        return self.number

    @property
    def target(self) -> str:
        """What kernels are compiled for: part of the keys of compiled programs."""
        return f"{self.name} {self._device().api} {self._device().architecture_name}"

    def _device(self) -> Any:
        return session.accelerator(self.number)

    def sessions_models(self, path: Any) -> dict[str, Any]:
        """The models of an artifact that was compiled for it, by their graphs' names."""
        return session.load(path, accelerators=True)

    # --- moving ---
    def store(self, value: np.ndarray) -> DeviceBuffer:
        """A copy of a host's value in this memory."""
        raw = self._sent(session.to_buffer(np.asarray(value)))
        with self._lock:
            self.transfers.to_device += 1
            self.transfers.bytes_to_device += value.nbytes
        return DeviceBuffer(self, raw, value.shape, value.dtype)

    def load(self, buffer: DeviceBuffer) -> np.ndarray:
        """A copy of a value in the host's memory.

        Raises:
          ValueError: it is in another accelerator's.
        """
        self._check(buffer)
        value = session.from_buffer(self._fetched(buffer.raw), buffer.shape, buffer.dtype)
        with self._lock:
            self.transfers.to_host += 1
            self.transfers.bytes_to_host += value.nbytes
        return value

    def raws(self, buffers: Sequence[DeviceBuffer]) -> list[Any]:
        """MAX's buffers of values in this memory.

        Raises:
          TypeError, ValueError: one is not in it.
        """
        for buffer in buffers:
            if buffer.__class__ is not DeviceBuffer or buffer.memory is not self:
                self._check(buffer)
        return [buffer.raw for buffer in buffers]

    def _check(self, buffer: DeviceBuffer) -> None:
        if not isinstance(buffer, DeviceBuffer):
            raise TypeError(f"a value of type {type(buffer).__name__} is not in the memory of "
                            f"{self.name}")
        if buffer.memory is not self:
            raise ValueError(f"a buffer of {buffer.memory.name} is not in the memory of "
                             f"{self.name}")

    def wait(self) -> None:
        """Waits until all that was asked of the accelerator is done."""
        self._device().synchronize()

    def copied(self, raw: Any) -> Any:
        """Another buffer with the same value. MAX copies later, and holds no memory until then."""
        copy = raw.copy()
        self.wait()
        return copy

    def _sent(self, raw: Any) -> Any:
        device = self._device()
        sent = raw.to(device)
        device.synchronize()        # the host's memory may be written to from now on
        return sent

    def _fetched(self, raw: Any) -> Any:
        fetched = raw.to(session.cpu())
        self.wait()
        return fetched

    # --- statistics ---
    def _holds(self, nbytes: int) -> None:
        with self._lock:
            self.num_allocs += 1
            self.bytes_in_use += nbytes
            self.peak_bytes_in_use = max(self.peak_bytes_in_use, self.bytes_in_use)

    def _releases(self, nbytes: int) -> None:
        # Without the lock: a collection may run this in a thread that holds it.
        self.bytes_in_use -= nbytes

    def stats(self) -> dict[str, int]:
        """As JAX's ``memory_stats``; of arrays alone, as far as bytes in use go."""
        return {"num_allocs": self.num_allocs, "bytes_in_use": self.bytes_in_use,
                "peak_bytes_in_use": self.peak_bytes_in_use, **self._limits()}

    def _limits(self) -> dict[str, int]:
        total = self._device().stats.get("total_memory")
        return {} if total is None else {"bytes_limit": int(total)}


class SimulatedMemory(DeviceMemory):
    """A part of the host's memory that only ``store`` and ``load`` move values into and out of."""

    is_simulated = True

    @property
    def api(self) -> str:
        return "cuda"

    @property
    def kind(self) -> str:
        return "simulated"

    @property
    def compiled_for(self) -> str | int:
        return "simulated"

    @property
    def target(self) -> str:
        return "simulated"

    def sessions_models(self, path: Any) -> dict[str, Any]:
        return session.load(path)

    def _device(self) -> Any:
        return session.cpu()

    def _sent(self, raw: Any) -> Any:
        return self.copied(raw)

    _fetched = _sent

    def _limits(self) -> dict[str, int]:
        return {}


class DeviceExecutable:
    """One loaded model of an accelerator: a function from buffers in its memory to such buffers.

    Raises, when called:
      TypeError, ValueError: an operand is not in that memory.
      RuntimeError: the program failed.
    """

    __slots__ = ("_execute", "_memory", "_outputs", "_views")

    def __init__(self, memory: DeviceMemory, model: Any):
        self._memory = memory
        self._execute = model._execute_device_tensors
        self._outputs = session.output_dtypes(model)
        # Which results are an operand's memory, or a part of it, or another result's: the compiler
        # decides that, so the first call tells it for all.
        self._views: list[bool] | None = None

    def __call__(self, buffers: Sequence[DeviceBuffer]) -> list[DeviceBuffer]:
        memory = self._memory
        raws = memory.raws(buffers)
        outputs = self._execute(raws)
        views = self._views
        if views is None:
            views = self._views = self._find_views(buffers, outputs)
        # Nobody writes to any, but each is to be counted, and freed, by itself.
        return [DeviceBuffer(memory, memory.copied(raw) if is_view else raw, tuple(raw.shape),
                             dtype)
                for raw, dtype, is_view in zip(outputs, self._outputs, views, strict=True)]

    def _find_views(self, buffers: Sequence[DeviceBuffer], outputs: Sequence[Any]) -> list[bool]:
        spans = [(buffer.raw._data_ptr(), buffer.raw._data_ptr() + buffer.nbytes)
                 for buffer in buffers]
        found = []
        for raw, dtype in zip(outputs, self._outputs, strict=True):
            pointer = raw._data_ptr()
            found.append(any(start <= pointer < stop for start, stop in spans))
            spans.append((pointer, pointer + math.prod(raw.shape) * dtype.itemsize))
        return found


def _counted() -> list[DeviceMemory]:
    text = os.environ.get(SIMULATED, "").strip()
    if text:
        if not text.isdigit():
            raise ValueError(f"environment variable {SIMULATED} is {text!r}, and needs to be a "
                             "whole number")
        return [SimulatedMemory(number) for number in range(int(text))]
    return [DeviceMemory(number) for number in range(session.accelerator_count())]


@dataclasses.dataclass
class _Found:
    """The memories of this machine's accelerators, once somebody has asked for them."""

    memories: list[DeviceMemory] | None = None


_found = _Found()


def memories() -> list[DeviceMemory]:
    """The memories of all accelerators; the first call looks for them.

    Raises:
      ValueError: the number of simulated ones is none.
    """
    if _found.memories is None:
        _found.memories = _counted()
    return _found.memories
