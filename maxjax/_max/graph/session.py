"""Runs compiled programs: MAX is first imported here, when a program is first loaded.

This module uses what is below ``max.engine`` and ``max.driver`` (``max._core``). The public modules
wrap the same objects and take three times as long to import (85 ms against 29 ms, because of the
graph dialects, asyncio and psutil), which every process would pay before its first compiled call;
they also claim SIGUSR2. The worker builds and compiles graphs through the public modules.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from maxjax._base import threads
from maxjax._base.lazy import import_module
from maxjax._transforms.partition import COMPILED_DTYPES

# Up to this size copying a read-only array costs less than sharing it.
_COPY_BYTES = 1 << 15

_lock = threads.lock()
_core: Any = None
_session: Any = None
_accelerator_session: Any = None
_accelerators: dict[int, Any] = {}
_used = False       # True once the first session is made
_inherited = False  # in a forked child: the session's threads stayed behind in the parent


def telemetry_off() -> None:
    """Disables MAX's usage reports, unless the user decided; before the first import."""
    os.environ.setdefault("MODULAR_TELEMETRY_ENABLED", "0")


def _import_core() -> Any:
    global _core
    if _core is None:
        telemetry_off()
        _core = import_module("max._core")
    return _core


def import_compiler() -> tuple[Any, Any, Any]:
    """``max.engine``, ``max.driver`` and ``max.graph``, for the worker."""
    telemetry_off()
    return (import_module("max.engine"), import_module("max.driver"),
            import_module("max.graph"))


def resolve(path: str) -> Callable[..., Any]:
    """The function named by ``"module:function"``; its module is imported now.

    The graph builder is in a higher layer than the worker that calls it, and in tests it is outside
    the package; so it is named, not imported.
    """
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def why_unavailable() -> str | None:
    """Why MAX cannot run programs in this process, or None when it can."""
    if _inherited:
        return ("this process was forked from one that had already used MAX, whose threads do "
                "not survive a fork (start it with the 'spawn' or 'forkserver' method instead)")
    return None


def session() -> Any:
    """The process's one inference session, on the CPU; made at the first call.

    Returns the object inside a ``max.engine.InferenceSession``.

    Raises:
      ImportError: MAX is not installed.
      RuntimeError: the process was forked from one with a session.
    """
    global _session, _used
    if _inherited:
        raise RuntimeError(f"MAX cannot be used here: {why_unavailable()}")
    if _session is None:
        with _lock:
            if _session is None:
                _used = True
                core = _import_core()
                _session = core.engine.InferenceSession([core.driver.CPU()], [], 0)
    return _session


def accelerator_session() -> Any:
    """The process's one inference session on the CPU and all accelerators of MAX; made at the first
    call, as the CPU's is.

    Raises:
      ImportError: MAX is not installed.
      RuntimeError: the process was forked from one with a session.
    """
    global _accelerator_session
    if _accelerator_session is None:
        session()       # the first one decides how many threads there are
        with _lock:
            if _accelerator_session is None:
                core = _import_core()
                devices = [cpu(), *map(accelerator, range(accelerator_count()))]
                _accelerator_session = core.engine.InferenceSession(devices, [], 0)
    return _accelerator_session


def accelerator_count() -> int:
    """How many accelerators MAX finds on this machine; 0 where it is not installed."""
    try:
        return int(_import_core().driver.accelerator_count())
    except ImportError:
        return 0


def accelerator(number: int) -> Any:
    """MAX's device of an accelerator."""
    known = _accelerators.get(number)
    if known is None:
        known = _accelerators[number] = _import_core().driver.Accelerator(number)
    return known


def cpu() -> Any:
    """MAX's device of the host."""
    return _import_core().driver.CPU()


@threads.after_fork
def _after_fork_in_child() -> None:
    global _inherited
    _inherited = _used


def load(path: Path, accelerators: bool = False) -> dict[str, Any]:
    """The models of an artifact, by their graphs' names.

    Args:
      accelerators: it was compiled for one.

    Raises:
      RuntimeError: the file is missing, damaged, or made by another version of MAX.
      ImportError: MAX is not installed.
    """
    current = accelerator_session() if accelerators else session()
    compiled = _core.engine.read(str(path))
    return {model.name: model for model in current._load_all(current._wrap_compiled(compiled), {})}


class _WritableView:
    """Exposes a read-only array's memory as writable, and keeps the array alive."""

    __slots__ = ("__array_interface__", "array")

    def __init__(self, array: np.ndarray):
        interface = array.__array_interface__
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
        self.array = array


def _shareable(array: np.ndarray) -> np.ndarray:
    """The array's values in a form that NumPy exports: contiguous, aligned, not read-only.

    MAX's version of DLPack has no read-only arrays. MAX does not write to the inputs of a
    graph, so sharing their memory under another flag is safe. Clearing the flag on the array
    itself would race with other threads.
    """
    if array.nbytes <= _COPY_BYTES or not (array.flags.c_contiguous and array.flags.aligned):
        return np.array(array, order="C", subok=False)
    return np.asarray(_WritableView(array))


def _element_type(name: str) -> np.dtype:
    return np.dtype(getattr(np, name) if hasattr(np, name) else getattr(ml_dtypes, name))


def _storage(core: Any, dtype: np.dtype) -> tuple[np.dtype, Any] | None:
    """The unsigned type that replaces one that DLPack does not support, for NumPy and MAX."""
    if dtype.kind in "iuf" and not dtype.name.startswith(("bfloat", "float8")):
        return None
    bits = 8 * dtype.itemsize
    return np.dtype(f"uint{bits}"), getattr(core.dtype.DType, f"uint{bits}")


def _sender(core: Any, kind: Any) -> Callable[[np.ndarray], Any]:
    """The cheapest conversion of an array of one element type to a buffer."""
    from_dlpack = core.driver.Buffer._from_dlpack
    dtype = _element_type(kind.name)
    storage = _storage(core, dtype)
    if storage is None:
        def send(array: np.ndarray) -> Any:
            return from_dlpack(array if array.flags.carray else _shareable(array))
        return send
    stand_in = storage[0]

    def send_stand_in(array: np.ndarray) -> Any:
        if array.dtype != dtype:
            raise ValueError(f"expected an array of {dtype}, got {array.dtype}")
        array = array if array.flags.carray else _shareable(array)
        return from_dlpack(array.view(stand_in))._view(kind, array.shape)
    return send_stand_in


def _receiver(core: Any, kind: Any) -> Callable[[Any], np.ndarray]:
    """The cheapest conversion of a buffer of one element type to an array, sharing memory."""
    dtype = _element_type(kind.name)
    storage = _storage(core, dtype)
    if storage is None or dtype == np.bool_:
        return np.from_dlpack
    stand_in = storage[1]

    def receive(buffer: Any) -> np.ndarray:
        return np.from_dlpack(buffer._view(stand_in, buffer.shape)).view(dtype)
    return receive


def to_buffer(value: np.ndarray) -> Any:
    """A host's value as a buffer of MAX in the host's memory, which it may share.

    What MAX has no dtype for goes as its bits: complex values as a last dimension of two parts.
    """
    core = _import_core()
    value = np.asarray(value, order="C")
    if value.dtype.kind == "c":
        value = value[..., None].view(value.real.dtype)
    if value.dtype not in COMPILED_DTYPES:
        value = value.view(np.dtype(f"uint{8 * value.dtype.itemsize}"))
    return _sender(core, getattr(core.dtype.DType, value.dtype.name))(value)


def from_buffer(raw: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """The value of a buffer in the host's memory, which it shares."""
    value = _receiver(_import_core(), raw.dtype)(raw)
    return value.view(dtype).reshape(shape) if value.dtype != dtype else value


def output_dtypes(model: Any) -> list[np.dtype]:
    """The dtypes of a model's results."""
    return [_element_type(spec.dtype.name) for spec in model.output_metadata]


class Executable:
    """One loaded model, a function from NumPy arrays to NumPy arrays.

    Arrays of the model's dtypes and shapes are passed without a copy unless they are strided,
    misaligned, or small and read-only. Results share MAX's memory and keep it alive; where MAX
    returns a view of an input or the same memory twice, they are copies.

    Raises, when called:
      ValueError: the number, shapes or dtypes of the arrays are not the model's.
      RuntimeError: the program failed, or the process was forked from one that used MAX.
    """

    __slots__ = ("model", "input_dtypes", "output_dtypes", "_execute", "_senders", "_receivers")

    def __init__(self, model: Any):
        core = _import_core()
        self.model = model
        inputs = [spec.dtype for spec in model.input_metadata]
        outputs = [spec.dtype for spec in model.output_metadata]
        self.input_dtypes = [_element_type(kind.name) for kind in inputs]
        self.output_dtypes = [_element_type(kind.name) for kind in outputs]
        self._execute = model._execute_device_tensors
        self._senders = [_sender(core, kind) for kind in inputs]
        self._receivers = [_receiver(core, kind) for kind in outputs]

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        if _inherited:
            raise RuntimeError(f"MAX cannot be used here: {why_unavailable()}")
        if len(arrays) != len(self._senders):
            raise ValueError(f"expected {len(self._senders)} arrays, got {len(arrays)}")
        buffers = [send(array) for send, array in zip(self._senders, arrays)]
        outputs = self._execute(buffers)
        # A slice or a reshape of an input comes back as a view of the input's memory, which the
        # caller may write to later; one result under two names comes back as one buffer.
        spans = []
        for buffer, array in zip(buffers, arrays):
            start = buffer._data_ptr()
            spans.append((start, start + array.nbytes))
        results = []
        for buffer, receive in zip(outputs, self._receivers):
            result = receive(buffer)
            pointer = buffer._data_ptr()
            for start, stop in spans:
                if start <= pointer < stop:
                    result = result.copy()
                    break
            else:
                spans.append((pointer, pointer + result.nbytes))
            results.append(result)
        return results
