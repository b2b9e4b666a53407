"""Builds maxjax's Mojo kernels: the package for MAX graphs, and a C library of the same structs."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mojo.run import subprocess_run_mojo  # type: ignore[import-untyped]

from maxjax._max.elementwise_kernels import KERNELS
from maxjax._primitives.kernels import Kernel

SOURCES = Path(__file__).parent.parent / "kernels"


def _names(kernel: Kernel) -> tuple[str, ...]:
    return tuple(dtype.name for dtype in kernel.dtypes)


def _pairs(kernel: Kernel) -> tuple[tuple[str, str], ...]:
    assert kernel.results is not None
    return tuple((dtype.name, result.name)
                 for dtype in kernel.dtypes for result in kernel.results(dtype))


# The kernels and the dtypes that each supports.
UNARY = {name: _names(kernel) for name, kernel in KERNELS.items()
         if kernel.operands == 1 and kernel.results is None}
BINARY = {name: _names(kernel) for name, kernel in KERNELS.items()
          if kernel.operands == 2 and kernel.results is None}
# Two operands, a bool result.
COMPARISON = {name: _names(kernel) for name, kernel in KERNELS.items()
              if kernel.operands == 2 and kernel.results is not None}
# Those whose result has another dtype: name -> (operand dtype, result dtype) pairs.
MIXED = {name: _pairs(kernel) for name, kernel in KERNELS.items()
         if kernel.operands == 1 and kernel.results is not None}


class KernelBuildError(Exception):
    """The Mojo compiler rejected maxjax's kernels; holds what it said."""


def package_path(directory: Path) -> Path:
    """The precompiled kernels (a ``.mojoc`` file), for ``custom_extensions`` of a MAX graph.

    Built at the first call, in about 2 s, and stored in ``directory``, which is created for the
    user alone. The file holds no machine code: any CPU can use it, but only this version of MAX.

    Raises:
      KernelBuildError: the compiler failed.
    """
    # A loader takes the module's name from the file's, so this has to be an identifier.
    path = directory / f"maxjax_kernels_{_digest()}.mojoc"
    if not path.exists():
        _build(path, ["precompile", str(SOURCES)])
    return path


def build_test_library(directory: Path) -> Path:
    """A shared library of C functions over arrays, one for each elementwise kernel and dtype.

    ``void <name>_<dtype>(const T *x, T *result, int64 count)``; kernels of two operands take
    ``const T *x, const T *y`` and those of another result dtype are named
    ``<name>_<dtype>_<result dtype>``. bool is a byte, bfloat16 two.

    Raises:
      KernelBuildError: the compiler failed.
    """
    source = _test_library_source()
    path = directory / f"libmaxjax_kernels_{_digest(source, _cpu())}.so"
    if not path.exists():
        _make_private(directory)
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            (Path(folder) / "library.mojo").write_text(source)
            _build(path, ["build", "--emit", "shared-lib", "-I", str(SOURCES.parent),
                          str(Path(folder) / "library.mojo")])
    return path


def _digest(*texts: str) -> str:
    """A digest of the kernels' sources, the compiler's version and further texts."""
    total = hashlib.sha256()
    for source in sorted(SOURCES.glob("*.mojo")):
        total.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    for text in (importlib.metadata.version("max"),
                 importlib.metadata.version("mojo-compiler"), *texts):
        total.update(text.encode() + b"\0")
    return total.hexdigest()[:20]


def _cpu() -> str:
    """The machine's kind of CPU, as far as native code depends on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return platform.machine() + next(
        (line for line in lines if line.startswith(("flags", "Features"))), "")


def _make_private(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def _build(path: Path, command: Sequence[str]) -> None:
    """Runs the compiler into a folder of its own, then renames its output to ``path``."""
    _make_private(path.parent)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        output = Path(folder) / path.name
        try:
            subprocess_run_mojo([*command, "-o", str(output)], check=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            os.replace(output, path)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            said = error.stdout if isinstance(error, subprocess.CalledProcessError) else error
            raise KernelBuildError(
                f"building maxjax's kernels with `mojo {command[0]}` failed:\n{said}") from error


_LIBRARY_HEAD = '''"""C functions over arrays, from the structs that MAX graphs use."""
from extensibility import (
    ElementwiseBinaryComparisonOp,
    ElementwiseBinaryOp,
    ElementwiseUnaryMixedOp,
    ElementwiseUnaryOp,
)
from std.sys.info import simd_width_of
from kernels.arithmetic import *
from kernels.comparison import *
from kernels.conversion import *
from kernels.unary import *

comptime Array = Pointer[UInt8, MutAnyOrigin]


@always_inline
def load[dtype: DType, width: Int](x: Array, i: Int) -> SIMD[dtype, width]:
    comptime if dtype == DType.bool:
        return rebind[SIMD[dtype, width]](x.unsafe_load[width=width](i).ne(0))
    else:
        return x.unsafe_bitcast[Scalar[dtype]]().unsafe_load[width=width](i)


@always_inline
def store[dtype: DType, width: SIMDLength, //](x: Array, i: Int, value: SIMD[dtype, width]):
    comptime if dtype == DType.bool:
        x.unsafe_store(i, value.cast[DType.uint8]())
    else:
        x.unsafe_bitcast[Scalar[dtype]]().unsafe_store(i, value)


@always_inline
def unary[Op: ElementwiseUnaryOp, dtype: DType](x: Array, result: Array, count: Int):
    comptime width = simd_width_of[dtype]() if dtype != DType.bool else 1
    var i = 0
    while i + width <= count:
        store(result, i, Op.elementwise[dtype, width](load[dtype, width](x, i)))
        i += width
    while i < count:
        store(result, i, Op.elementwise[dtype, 1](load[dtype, 1](x, i)))
        i += 1


@always_inline
def binary[Op: ElementwiseBinaryOp, dtype: DType](x: Array, y: Array, result: Array, count: Int):
    comptime width = simd_width_of[dtype]() if dtype != DType.bool else 1
    var i = 0
    while i + width <= count:
        var value = Op.elementwise[dtype, width](
            load[dtype, width](x, i), load[dtype, width](y, i)
        )
        store(result, i, value)
        i += width
    while i < count:
        store(result, i, Op.elementwise[dtype, 1](load[dtype, 1](x, i), load[dtype, 1](y, i)))
        i += 1


@always_inline
def comparison[
    Op: ElementwiseBinaryComparisonOp, dtype: DType
](x: Array, y: Array, result: Array, count: Int):
    comptime width = simd_width_of[dtype]() if dtype != DType.bool else 1
    var i = 0
    while i + width <= count:
        var value = Op.elementwise[dtype, width](
            load[dtype, width](x, i), load[dtype, width](y, i)
        )
        store(result, i, value)
        i += width
    while i < count:
        store(result, i, Op.elementwise[dtype, 1](load[dtype, 1](x, i), load[dtype, 1](y, i)))
        i += 1


@always_inline
def mixed[
    Op: ElementwiseUnaryMixedOp, dtype: DType, out_dtype: DType
](x: Array, result: Array, count: Int):
    comptime width = simd_width_of[dtype]() if dtype != DType.bool else 1
    var i = 0
    while i + width <= count:
        store(result, i, Op.elementwise[dtype, out_dtype, width](load[dtype, width](x, i)))
        i += width
    while i < count:
        store(result, i, Op.elementwise[dtype, out_dtype, 1](load[dtype, 1](x, i)))
        i += 1
'''


def _test_library_source() -> str:
    def function(name: str, loop: str, arguments: str, parameters: Sequence[str]) -> str:
        declared = ", ".join(f"{argument}: Array" for argument in arguments.split(", "))
        return (f'\n\n@export("{name}")\ndef c_{name}({declared}, count: Int) abi("C"):\n'
                f'    {loop}[{", ".join(parameters)}]({arguments}, count)\n')

    parts = [_LIBRARY_HEAD]
    for table, loop, arguments in ((UNARY, "unary", "x, result"),
                                   (BINARY, "binary", "x, y, result"),
                                   (COMPARISON, "comparison", "x, y, result")):
        for name, dtypes in table.items():
            parts += [function(f"{name}_{dtype}", loop, arguments,
                               (KERNELS[name].struct, f"DType.{dtype}")) for dtype in dtypes]
    for name, pairs in MIXED.items():
        parts += [function(f"{name}_{source}_{target}", "mixed", "x, result",
                           (KERNELS[name].struct, f"DType.{source}", f"DType.{target}"))
                  for source, target in pairs]
    return "".join(parts)
