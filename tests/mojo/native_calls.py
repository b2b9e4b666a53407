"""The NumPy rules of primitives with native functions and without, for operands of all kinds."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from maxjax._base import native
from maxjax._base.config import compile_mode
from maxjax._ir.primitive import Primitive, op_spec
from maxjax._ir.types import ShapedArray
from maxjax._runtime.native_functions import NativeFunctions, native_function
from tests.mojo.pack_calls import Twins, address, library, other_library

FILES = {"sort": "ordering", "argsort": "ordering", "argmax": "ordering", "argmin": "ordering",
         "scatter": "indexing", "matmul": "matmul", "copy": "movement",
         "threefry2x32": "random", "cumsum": "cumulative", "cumprod": "cumulative",
         "cummax": "cumulative", "cummin": "cumulative", "cumlogsumexp": "cumulative",
         **dict.fromkeys(native.MATRICES, "linalg"), **dict.fromkeys(native.SPECTRA, "spectra"),
         "crew": "tape", "searchsorted": "searching"}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
TOLERANCE = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-12}


def file_of(name: str) -> str:
    if name.startswith("vector_"):
        kind = name.split("_")[-1]
        return "vector_halves" if kind in ("float16", "bfloat16") else f"vector_{kind}"
    return FILES.get(name.split("_")[0], "elementwise")


class BuiltPack:
    """A stand-in for `Pack`: the functions of libraries that tests have built."""

    def address(self, name: str) -> int | None:
        function = getattr(library(file_of(name)), name, None)
        return None if function is None else address(function)

    def function(self, name: str, result: Any = None, arguments: Any = (
            ctypes.c_void_p, ctypes.c_void_p)) -> Any:
        return ctypes.CFUNCTYPE(result, *arguments)(self.address(name))


class Calls:
    """A provider whose functions are ready at once, and which records the calls."""

    def __init__(self) -> None:
        self.provider = NativeFunctions(BuiltPack)
        self.names: list[str] = []

    def __call__(self, name: str) -> native.Function | None:
        self.provider.load(name)
        function = self.provider(name)
        if function is None:
            return None

        # Of the elementwise operations another library has not the operation itself.
        block = self.provider._addresses[name][1]
        called = "map_blocks" if block else name

        def call(arrays: Any, integers: Any, size: int) -> None:
            self.names.append(name)
            other = other_library(file_of(called))
            twins = Twins(arrays) if other is not None else None
            function(arrays, integers, size)
            if twins is not None:
                native_function(address(getattr(other, called)), block, self.provider.threads)(
                    twins.arrays, integers, size)
                twins.check(called)
        return call


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def values(name: str, shape: Any, seed: int = 0, special: bool = False) -> np.ndarray:
    """Random values, many of them equal; ``special``: zeros of both signs, infinities and NaN."""
    random = np.random.default_rng(seed)
    if name == "bool":
        return random.integers(0, 2, shape).astype(bool)
    dtype = dtype_of(name)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return random.integers(info.min, info.max, shape, dtype, endpoint=True)
    x = np.round(random.standard_normal(shape), 1).astype(dtype)
    if special and x.size:
        for value in (0.0, -0.0, np.inf, -np.inf, np.nan):
            x[random.random(x.shape) < 0.1] = value
    return x


def arrangements(x: np.ndarray) -> list[np.ndarray]:
    """Copies of an array in different layouts: row-major, column-major, reversed, strided, in
    read-only memory."""
    spaced = np.empty(tuple(2 * size for size in x.shape), x.dtype)
    spaced = spaced[(slice(None, None, 2),) * x.ndim]
    spaced[...] = x
    fixed = x.copy()
    fixed.flags.writeable = False
    return [x, np.asfortranarray(x), np.ascontiguousarray(x[::-1])[::-1], spaced, fixed]


def same(ours: Any, theirs: Any) -> None:
    """Bitwise equal, except that all NaN are equivalent."""
    assert type(ours) is type(theirs)
    if isinstance(ours, (list, tuple)):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        return
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    if ours.dtype.kind == "c":
        real = ours.real.dtype
        same(*[np.ascontiguousarray(x).reshape(-1).view(real) for x in (ours, theirs)])
        return
    if ours.dtype.kind in "fV":
        nan = np.isnan(theirs)
        np.testing.assert_array_equal(np.isnan(ours), nan)
        ours, theirs = (np.where(nan, 0, x).astype(x.dtype) for x in (ours, theirs))
    integer = f"u{ours.itemsize}"
    np.testing.assert_array_equal(
        np.ascontiguousarray(ours).view(integer), np.ascontiguousarray(theirs).view(integer))


def close(ours: np.ndarray, theirs: np.ndarray) -> None:
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    if ours.dtype.kind in "iub":
        same(ours, theirs)
        return
    np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64),
                               rtol=TOLERANCE[ours.dtype.name], atol=TOLERANCE[ours.dtype.name])


def both(primitive: Primitive, operands: Any, compare: Any = same, **params: Any) -> Any:
    """The primitive's NumPy rule with native functions and without; the latter's result."""
    avals = tuple(ShapedArray(x.shape, x.dtype) for x in operands)
    run = op_spec(primitive, avals, params).run
    before = [np.array(x) for x in operands]
    with np.errstate(all="ignore"):
        ours = run(*operands)
        with compile_mode("never"):
            theirs = run(*operands)
    compare(ours, theirs)
    same(list(map(np.asarray, operands)), before)
    return theirs
