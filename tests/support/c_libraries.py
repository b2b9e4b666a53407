"""Calls of libraries that ``maxjax.export.library`` has written, by ctypes and in processes."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import maxjax
from maxjax import export
from maxjax._base import dtypes
from maxjax._base.config import compile_mode

# As in `maxjax_dtype`; tests of the header hold it against that.
DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 "
          "complex64 complex128").split()


class CArray(ctypes.Structure):
    """The struct ``maxjax_array``."""

    _fields_ = (("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32))

    def __init__(self, array: np.ndarray):
        self.kept = array
        super().__init__(array.ctypes.data, (ctypes.c_int64 * max(array.ndim, 1))(*array.shape),
                         DTYPES.index(array.dtype.name), array.ndim)


class CLibrary:
    """A loaded library.

    Attributes:
      manifest: what its file says.
    """

    def __init__(self, files: Any):
        self.manifest = json.loads(Path(files.manifest).read_text())
        self.name = self.manifest["function"]
        self.native = ctypes.CDLL(str(files.library), mode=ctypes.RTLD_LOCAL)
        self.function = getattr(self.native, self.name, None)
        self.arrays = self.native[f"{self.name}_arrays"]
        self.error = self.native[f"{self.name}_error"]
        self.error.restype = ctypes.c_char_p
        self.release = self.native[f"{self.name}_release"]

    def results(self, sizes: tuple[int, ...] = ()) -> list[np.ndarray]:
        """Arrays for results, filled with bytes that nothing computes."""
        values = dict(zip([size["name"] for size in self.manifest["sizes"]], sizes, strict=True))
        found = []
        for described in self.manifest["results"]:
            shape = [eval(size, {}, values) if isinstance(size, str) else size
                     for size in described["shape"]]
            dtype = getattr(ml_dtypes, described["dtype"], None) or described["dtype"]
            array = np.empty(shape, dtype)
            array.reshape(-1).view(np.uint8)[:] = 0xA5
            found.append(array)
        return found

    def __call__(self, *arguments: np.ndarray, sizes: tuple[int, ...] = ()) -> list[np.ndarray]:
        """The results; raises a RuntimeError with the text of an error."""
        results = self.results(sizes)
        self.run(arguments, results, sizes)
        return results

    def run(self, arguments: Any, results: Any, sizes: tuple[int, ...] = ()) -> None:
        assert self.function is not None
        self.check(self.function(*map(ctypes.c_int64, sizes), *[
            ctypes.c_void_p(x.ctypes.data) for x in (*arguments, *results)]))

    def run_arrays(self, arguments: Any, results: Any, sizes: tuple[int, ...] = ()) -> None:
        taken, given = [(CArray * len(part))(*map(CArray, part)) for part in (arguments, results)]
        self.check(self.arrays(*map(ctypes.c_int64, sizes), taken, ctypes.c_int64(len(taken)),
                               given, ctypes.c_int64(len(given))))

    def check(self, code: int) -> None:
        if code:
            raise RuntimeError(self.error(code).decode())


def leaves(tree: Any) -> list[np.ndarray]:
    """As a library takes and gives them: keys as their data."""
    return [np.asarray(maxjax.random.key_data(x)) if dtypes.is_key(getattr(x, "dtype", None))
            else np.asarray(x) for x in maxjax.tree.leaves(tree)]


def compiled(f: Any, *args: Any) -> list[np.ndarray]:
    with compile_mode("always"):
        return leaves(maxjax.jit(f)(*args))


def exported(folder: Path, f: Any, *args: Any, name: str = "f", **options: Any) -> CLibrary:
    return CLibrary(export.library(f, *args, path=folder, name=name, **options))


def same_bits(actual: Any, expected: Any) -> None:
    kinds = [[(x.shape, x.dtype) for x in part] for part in (actual, expected)]
    assert kinds[0] == kinds[1]
    for number, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
        assert ours.tobytes() == theirs.tobytes(), (number, ours, theirs)


def run(folder: Path, *command: str) -> str:
    """What a command prints, in an environment without Python."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env={
        "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"),
        "TMPDIR": str(folder)}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
