"""The Mojo kernels' numerics, held against JAX through a shared library of the same structs."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from maxjax._max import kernel_library

# The largest error in ulps that a result may have: in float64 against JAX's float64, in narrower
# types against JAX's float64 rounded. The default is what a faithful rounding of a float64 gives.
_ULPS: dict[str, dict[str, float]] = {}


def _dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    directory = os.environ.get("MAXJAX_TEST_KERNEL_CACHE")
    folder = Path(directory) if directory else tmp_path_factory.mktemp("kernels")
    return ctypes.CDLL(str(kernel_library.build_test_library(folder)))


def call(library: ctypes.CDLL, name: str, *operands: np.ndarray,
         result_dtype: np.dtype | None = None) -> np.ndarray:
    operands = tuple(np.ascontiguousarray(operand) for operand in operands)
    result = np.empty(operands[0].shape, result_dtype or operands[0].dtype)
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (*operands, result)]
    getattr(library, name)(*pointers, ctypes.c_int64(result.size))
    return result
