"""Which standard library kernels are compiled with: a small one of our own, or MAX's.

MAX's is elaborated anew for each file, in nine tenths of the time that a kernel takes to compile.
The small one (``small_std/``) has what kernels use of it, by the same names and with the same bits.
It is prepared once for a cache folder: both packages and the kernels precompiled, and what
libraries have in common as an object, which is linked to each of them by MAX's own linker.

It is used with the compilers that it was tried with, for texts whose kernels are all part of it, as
those that are generated and the pack's are. What it lacks is MAX's to compile.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from maxjax._base import threads, variables
from maxjax._max import kernel_digest
from maxjax._max.versions import cpu_target, max_folder, versions

logger = logging.getLogger("maxjax")

SOURCES = Path(__file__).resolve().parent.parent / "small_std"
PACKAGES = ("std", "extensibility")
# What compiles a text: commands, each of which begins with a program, and what is in their
# environment. Raises what the caller understands.
Run = Callable[[Sequence[Sequence[str]], dict[str, str]], None]

_COMPILERS = re.compile(r"\bmojo_compiler 1\.2\.")
_IMPORT_PATH = "MODULAR_MOJO_MAX_IMPORT_PATH"
# What names parts of the compiler, and where they are in MAX's folder.
_ENVIRONMENT = {_IMPORT_PATH: "lib/mojo", "MODULAR_MOJO_MAX_DRIVER_PATH": "bin/mojo"}
# Kernels that texts import; with those that these import, they are the package `kernels`.
_KERNELS = "".join(f"from kernels.{name} import\n" for name in (
    "abi", "arithmetic", "arrangement", "blocks", "calling", "comparison", "conversion", "copies",
    "crew", "cumulative", "few", "fixed", "fourier", "halves", "host", "launching", "loops",
    "odometer", "reduction", "scatter", "special", "special_single", "stacks", "unary", "windows"))
_IMPORTS = re.compile(r"\n[ \t]*(?:from|import) +(\w+)(?:\.(\w+))?")
_MANIFEST = "manifest.json"
_STAND_IN = "stand-in"      # the folder of a `cc` that is never called
# Kernels import only these declarations of what is compiled once, in the object of all libraries.
_DECLARED = {"launching": '''"""The launch of a generated kernel, which is linked to its library."""
from std.ffi import external_call

from .calling import Args, Slots

comptime Part = def (Slots, Args, Int, Int) thin -> None


@always_inline
def launch(part: Part, slots: Slots, args: Args, at: Int):
    external_call["maxjax_launch", NoneType](part, slots, args, at)
''', "odometer": '''"""The odometer of outer dimensions, which is linked to a kernel's library."""
from std.ffi import external_call

from .calling import Args

comptime Integers = Pointer[Int, MutAnyOrigin]
comptime NEVER = 1 << 62


@always_inline
def stand(args: Args, position: Int, indices: Integers, offsets: Integers, operands: Int) -> Int:
    return external_call["maxjax_stand", Int](args, position, indices, offsets, operands)


@always_inline
def carry(args: Args, indices: Integers, offsets: Integers, operands: Int) -> Int:
    return external_call["maxjax_carry", Int](args, indices, offsets, operands)
'''}
_SHARED = '''from kernels.calling import Args, Slots
from kernels.launching_here import Part, launch
from kernels.odometer_here import Integers, carry, stand


@export("maxjax_launch")
def maxjax_launch(part: Part, slots: Slots, args: Args, at: Int) abi("C"):
    launch(part, slots, args, at)


@export("maxjax_stand")
def maxjax_stand(
    args: Args, position: Int, indices: Integers, offsets: Integers, operands: Int
) abi("C") -> Int:
    return stand(args, position, indices, offsets, operands)


@export("maxjax_carry")
def maxjax_carry(args: Args, indices: Integers, offsets: Integers, operands: Int) abi("C") -> Int:
    return carry(args, indices, offsets, operands)
'''
# What compilers call where a processor has no instruction for it: conversions of 16 bits, each
# rounded once. Whoever links with a C compiler has them from its library.
_CONVERSIONS = '''

@export("__truncdfhf2")
def maxjax_double_to_half(x: Float64) abi("C") -> Float16:
    var bits = x.to_bits[DType.uint64]()
    var sign = (bits >> 48) & 0x8000
    var a = bits & 0x7FFFFFFFFFFFFFFF
    var result: UInt64
    if a > 0x7FF0000000000000:
        result = 0x7E00 | ((a >> 42) & 0x1FF)
    elif a >= 0x40EFFE0000000000:
        result = 0x7C00
    elif a >= 0x3F10000000000000:
        var rebased = a - 0x3F00000000000000
        result = (rebased + 0x1FFFFFFFFFF + ((rebased >> 42) & 1)) >> 42
    elif a <= 0x3E60000000000000:
        result = 0
    else:
        var mantissa = (a & 0xFFFFFFFFFFFFF) | 0x10000000000000
        var shift = 1051 - (a >> 52)
        var half = UInt64(1) << (shift - 1)
        result = (mantissa + half - 1 + ((mantissa >> shift) & 1)) >> shift
    return Float16(from_bits=(sign | result).cast[DType.uint16]())


@export("__truncsfbf2")
def maxjax_single_to_bfloat(x: Float32) abi("C") -> Scalar[DType.bfloat16]:
    var bits = x.to_bits[DType.uint32]()
    var rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    if (bits & 0x7FFFFFFF) > 0x7F800000:
        rounded = (bits >> 16) | 0x40
    return Scalar[DType.bfloat16](from_bits=rounded.cast[DType.uint16]())


@export("__truncdfbf2")
def maxjax_double_to_bfloat(x: Float64) abi("C") -> Scalar[DType.bfloat16]:
    # To the nearest odd number of single precision, unless it is one: then its half is on the
    # right side.
    var near = x.cast[DType.float32]()
    var bits = near.to_bits[DType.uint32]()
    var wide = near.cast[DType.float64]()
    if wide != x and x == x:
        if abs(wide) > abs(x):
            bits -= 1
        bits |= 1
    return maxjax_single_to_bfloat(Float32(from_bits=bits))


@export("__truncsfhf2")
def maxjax_single_to_half(x: Float32) abi("C") -> Float16:
    return maxjax_double_to_half(x.cast[DType.float64]())


@export("__extendhfsf2")
def maxjax_half_to_single(x: Float16) abi("C") -> Float32:
    var bits = x.to_bits[DType.uint16]().cast[DType.uint32]()
    var sign = (bits & 0x8000) << 16
    var exponent = (bits >> 10) & 0x1F
    var fraction = bits & 0x3FF
    if exponent == 0:
        var size = fraction.cast[DType.float32]() * 5.9604644775390625e-08
        return Float32(from_bits=size.to_bits[DType.uint32]() | sign)
    if exponent == 31:
        return Float32(from_bits=sign | 0x7F800000 | (fraction << 13))
    return Float32(from_bits=sign | ((exponent + 112) << 23) | (fraction << 13))
'''

_lock = threads.lock()
_checked: dict[str, Path] = {}      # folders by their digests, as far as this process knows them
_broken: str | None = None          # why this process does without


def why_not() -> str | None:
    """Why kernels compile with MAX's standard library; None: they do not."""
    chosen = variables.standard_library()
    if chosen == "max":
        return "MAXJAX_STANDARD_LIBRARY chooses MAX's"
    for variable, place in _ENVIRONMENT.items():
        value = os.environ.get(variable)
        # MAX itself sets some to where its own files are.
        if value and chosen != "small" and max_folder() is not None and Path(value) != Path(
                max_folder() or "", place):
            return f"{variable} names another compiler's: {value}"
    if sys.platform != "linux":
        return "the small one is for Linux"
    if chosen != "small" and not _COMPILERS.search(versions()):
        return f"the small one was not tried with this compiler ({versions()})"
    if linker() is None:
        return "MAX's linker is missing"
    return _broken


def linker() -> str | None:
    """MAX's linker, or None."""
    path = (max_folder() or Path()) / "bin" / "lld"
    return str(path) if max_folder() is not None and os.access(path, os.X_OK) else None


def applies(source: str) -> bool:
    """Whether a text is compiled with the small library: it imports nothing else."""
    return _has_all_of(source) and why_not() is None


def identity(source: str) -> str:
    """What a library depends on besides its source and the compiler's options."""
    return f"the small standard library {_digest()}" if applies(source) else ""


def commands(source: Path, output: Path, folder: Path, options: Sequence[str]) -> list[list[str]]:
    """What compiles a text into a library, in an ``environment``."""
    compiled = source.with_suffix(".o")
    return [compile_command(source, compiled, options), link_command([compiled], output, folder)]


def compile_command(source: Path, output: Path, options: Sequence[str]) -> list[str]:
    return ["mojo", "build", "--emit", "object", *options, "-D", "MAXJAX_LINKED", str(source),
            "-o", str(output)]


def link_command(objects: Sequence[Path], output: Path, folder: Path,
                 options: Sequence[str] = ()) -> list[str]:
    # Whatever else is missing is to be known now, not when the library is loaded.
    return [linker() or "", "-flavor", "gnu", "-shared", "-Bsymbolic", "--as-needed", "-z", "defs",
            *options, "-o", str(output), *map(str, objects), str(folder / "shared.o"),
            *_system_libraries()]


def environment(folder: Path) -> dict[str, str]:
    # The compiler looks for a C compiler even where nothing is to be linked.
    path = os.environ.get("PATH", os.defpath)
    return {_IMPORT_PATH: str(folder), "PATH": f"{path}{os.pathsep}{folder / _STAND_IN}"}


def give_up(reason: str) -> None:
    """For the rest of this process, MAX's library compiles all kernels."""
    global _broken
    _broken = reason
    logger.warning("kernels are compiled with MAX's standard library from now on, which takes "
                   "longer: %s", reason)


def prepared(directory: Path, scratch: Path, options: Sequence[str], common: str,
             target: str | None, run: Run) -> Path:
    """The library's folder within a cache folder, prepared if necessary.

    Args:
      scratch: a private folder on the same file system.
      options: of the compiler, for what depends on the processor.
      common: Mojo text that is part of all libraries.

    Raises:
      OSError: there is no place for it.
      Exception: what ``run`` raises.
    """
    digest = hashlib.sha256("\0".join((
        _digest(), versions(), target or cpu_target(), *options, common)).encode()).hexdigest()[:32]
    folder = directory / f"library-{digest}"
    with _lock:
        if _checked.get(digest) == folder and (folder / _MANIFEST).exists():
            return folder
        if _is_whole(folder):
            with contextlib.suppress(OSError):
                os.utime(folder)        # used: the cache removes those that are not
        else:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                folder.unlink()
            # A folder of its own: the compiler would take its `kernels` for those of a text beside
            # it, also of one that MAX's library compiles afterwards.
            scratch = scratch / "preparing"
            made = scratch / "prepared"
            made.mkdir(mode=0o700, parents=True)
            _prepare(made, scratch, options, common, run)
            try:
                os.rename(made, folder)
            except OSError:     # another process was faster
                if not _is_whole(folder):
                    raise
        _checked[digest] = folder
    return folder


def _prepare(made: Path, scratch: Path, options: Sequence[str], common: str, run: Run) -> None:
    kernels = scratch / "kernels"
    kernels.mkdir()
    (kernels / "__init__.mojo").write_text('"""Kernels that generated ones use."""\n')
    for name in _parts():
        shutil.copyfile(kernel_digest.PACKAGE / f"{name}.mojo", kernels / (
            f"{name}_here.mojo" if name in _DECLARED else f"{name}.mojo"))
    for name, text in _DECLARED.items():
        (kernels / f"{name}.mojo").write_text(text)
    (made / _STAND_IN).mkdir()
    # A file, not a link to a program: nothing in a cache leads to what lies outside of it.
    stand_in = made / _STAND_IN / "cc"
    stand_in.write_text("#!/bin/sh\nexit 1\n")
    stand_in.chmod(0o700)
    shared = scratch / "shared.mojo"
    shared.write_text(_SHARED + _CONVERSIONS + common)
    run([*(["mojo", "precompile", "-o", str(made / f"{path.name}.mojoc"), str(path)]
           for path in (*(SOURCES / name for name in PACKAGES), kernels)),
         ["mojo", "build", "--emit", "object", *options, str(shared),
          "-o", str(made / "shared.o")]], environment(made))
    described = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                 for path in sorted(made.iterdir()) if path.is_file()}
    if set(described) != {"std.mojoc", "extensibility.mojoc", "kernels.mojoc", "shared.o"}:
        raise OSError(f"the compiler left {', '.join(described) or 'nothing'}")
    (made / _MANIFEST).write_text(json.dumps(described))


def _is_whole(folder: Path) -> bool:
    """Whether a folder has all files as they were written."""
    try:
        described = json.loads((folder / _MANIFEST).read_bytes())
        return bool(described) and (folder / _STAND_IN / "cc").is_file() and all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
            for name, digest in described.items())
    except (OSError, ValueError, AttributeError):
        return False


@functools.lru_cache(maxsize=256)
def _has_all_of(source: str) -> bool:
    parts = _parts()
    return all(package in PACKAGES or package == "kernels" and name in parts
               for package, name in _IMPORTS.findall(f"\n{source}"))


@functools.cache
def _parts() -> frozenset[str]:
    """The files of kernels that are part of it."""
    return kernel_digest.reached(_KERNELS)


@functools.cache
def _digest() -> str:
    """A digest of its sources and of the kernels that are part of it."""
    texts = (kernel_digest.kernels(_KERNELS), _SHARED, _CONVERSIONS, *_DECLARED.values())
    total = hashlib.sha256(" ".join(texts).encode())
    for path in sorted(SOURCES.rglob("*.mojo")):
        total.update(f"{path.relative_to(SOURCES)}".encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


@functools.cache
def _system_libraries() -> tuple[str, ...]:
    """The C library and its mathematics as they are loaded here: what is linked names them, so
    that it finds them in processes that have not loaded them."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            loaded = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
    except (OSError, IndexError):
        return ()
    return tuple(sorted(path for path in loaded
                        if re.search(r"/lib[cm](\.so\.6|-2\.\d+\.so)$", path)))
