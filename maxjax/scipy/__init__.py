"""jax.scipy: SciPy's functions on maxjax arrays; each module is imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxjax._base.lazy import import_module as _import_module
from maxjax._base.missing import attribute_error

_MODULES = ("cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize",
            "signal", "sparse", "spatial", "special", "stats")

if TYPE_CHECKING:
    from maxjax.scipy import cluster as cluster
    from maxjax.scipy import fft as fft
    from maxjax.scipy import integrate as integrate
    from maxjax.scipy import interpolate as interpolate
    from maxjax.scipy import linalg as linalg
    from maxjax.scipy import ndimage as ndimage
    from maxjax.scipy import optimize as optimize
    from maxjax.scipy import signal as signal
    from maxjax.scipy import sparse as sparse
    from maxjax.scipy import spatial as spatial
    from maxjax.scipy import special as special
    from maxjax.scipy import stats as stats

if not TYPE_CHECKING:
    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return _import_module(f"{__name__}.{name}")
        raise attribute_error(__name__, name)
