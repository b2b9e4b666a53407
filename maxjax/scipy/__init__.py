"""jax.scipy: SciPy's functions on maxjax arrays; each module is imported on first use."""

from __future__ import annotations

from typing import Any

from maxjax._base.lazy import import_module as _import_module
from maxjax._base.missing import attribute_error

_MODULES = ("cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize",
            "signal", "sparse", "spatial", "special", "stats")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    raise attribute_error(__name__, name)
