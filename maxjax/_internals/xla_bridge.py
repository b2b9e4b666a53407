"""The clients that run programs: maxjax's devices."""

from __future__ import annotations

from typing import Any

from maxjax import default_backend as default_backend
from maxjax import device_count as device_count
from maxjax import devices as devices
from maxjax import host_count as host_count
from maxjax import host_id as host_id
from maxjax import local_device_count as local_device_count
from maxjax import local_devices as local_devices
from maxjax import process_count as process_count
from maxjax import process_index as process_index
from maxjax import process_indices as process_indices
from maxjax._runtime.devices import are_known as _are_known
from maxjax.extend.backend import backends as backends
from maxjax.extend.backend import get_backend as get_backend


def backends_are_initialized() -> bool:
    """Whether the platforms have been looked for, after which their number is fixed."""
    return _are_known()


def __getattr__(name: str) -> Any:
    if name == "_backends":
        return backends() if backends_are_initialized() else {}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
