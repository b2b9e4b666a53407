"""Modules that are costly to import and rarely needed, brought in at the first use of a name."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from maxjax._base import threads
from maxjax._base.missing import attribute_error


def import_module(name: str) -> ModuleType:
    """Imports a module late: no fork comes amid it, which would leave its lock held in the child.

    Raises:
      ImportError: it cannot be imported.
    """
    with threads.unforked:
        return importlib.import_module(name)


class LazyModule:
    """Stands for a module until one of its attributes is asked for.

    SciPy costs more to import than the rest of maxjax together, and most scripts never reach
    the few functions that need it.
    """

    def __init__(self, name: str):
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = import_module(self._name)
        value = getattr(self._module, attribute)
        setattr(self, attribute, value)
        return value


scipy_special = LazyModule("scipy.special")
scipy_linalg = LazyModule("scipy.linalg")
cython_blas = LazyModule("scipy.linalg.cython_blas")
cython_lapack = LazyModule("scipy.linalg.cython_lapack")
scipy_optimize = LazyModule("scipy.optimize")
scipy_sparse = LazyModule("scipy.sparse")
scipy_sparse_linalg = LazyModule("scipy.sparse.linalg")
scipy_signal = LazyModule("scipy.signal")
scipy_fft = LazyModule("scipy.fft")
opt_einsum = LazyModule("opt_einsum")
threadpoolctl = LazyModule("threadpoolctl")
mpi = LazyModule("mpi4py.MPI")
matplotlib = LazyModule("matplotlib")
rich_align = LazyModule("rich.align")
rich_box = LazyModule("rich.box")
rich_console = LazyModule("rich.console")
rich_padding = LazyModule("rich.padding")
rich_table = LazyModule("rich.table")


def import_named_modules(package: str) -> None:
    """Has a package import a module of its own when it is asked for it as an attribute, as if all
    had been imported before."""
    def __getattr__(name: str) -> ModuleType:
        target = f"{package}.{name}"
        try:
            return import_module(target)
        except ModuleNotFoundError as error:
            if error.name != target:
                raise
        raise attribute_error(package, name)

    vars(sys.modules[package])["__getattr__"] = __getattr__
