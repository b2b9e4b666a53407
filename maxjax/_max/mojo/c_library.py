"""Programs as shared libraries for C: the tape, kernels and constants in one file.

All of a program's kernels are compiled to objects, as are the files of the pack that it needs; its
tapes, codes and constants are an object as well (``elf.py``), whose addresses the linker fills in.
``c_entry.py`` has the functions that are called. Nothing of MAX is linked: what kernels need of the
system is in the C library.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import itertools
import json
import math
import platform
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import collection, dtypes, native
from maxjax._ir.jaxpr import Jaxpr
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.host_step import HostStep
from maxjax._max.mojo import c_entry, c_header, crew, standard_library, toolchain
from maxjax._max.mojo.abi import CREW_WORDS
from maxjax._max.mojo.c_header import Array
from maxjax._max.mojo.c_lapack import Lapack
from maxjax._max.mojo.elf import DataObject, Reference, needed
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.forms import Form
from maxjax._max.mojo.linking import Linker, Places
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.mojo.plan import Plan
from maxjax._max.mojo.store import Kernel
from maxjax._max.mojo.toolchain import Pace, ToolchainError
from maxjax._max.versions import versions
from maxjax._transforms.partition import host_reason, partition
from maxjax._transforms.tokens import order_steps

_MOST_CONSTANTS = 3 << 29       # code reaches so far
_KERNELS_TOGETHER = 24
_DRIVER = "run_tape"

# Among the words of /proc/cpuinfo.
_INSTRUCTION_SETS = re.compile(
    r"\b(?:(?:s?sse|avx|bmi|amx|sve|asimd)\w*|fma|f16c|vaes|gfni|popcnt|abm|movbe|fphp|bf16)\b")

Sizes = Sequence[tuple[str, int, int]]      # names, least and greatest values


class Refused(NotImplementedError):
    """A program that cannot be a library."""


class Described(NamedTuple):
    """What a user reads of a library's function.

    Attributes:
      arguments, results: with sizes as they are written.
      size_names: of the sizes that are arguments.
    """

    arguments: Sequence[Array]
    results: Sequence[Array]
    size_names: Sequence[str]


class Program(NamedTuple):
    """A program for its sizes.

    Attributes:
      jaxpr: it, with its constants as the first inputs.
      constants: their values.
      arguments, results: of what is not a constant.
    """

    jaxpr: Jaxpr
    constants: Sequence[np.ndarray]
    arguments: Sequence[Array]
    results: Sequence[Array]


class Prepared(NamedTuple):
    """A library before its kernels are compiled.

    Attributes:
      name: of its function.
      described: what a user reads of it.
      sizes: those that are arguments, named as in C.
      data: tapes, codes and constants.
      kernels: generated ones.
      functions: of the pack.
      entry: the text of the functions that are called.
      temporaries: the most bytes of them that a call takes.
      threads: how many may share a kernel's call.
      lapack: a library of LAPACK, if it needs one.
    """

    name: str
    described: Described
    sizes: Sizes
    data: DataObject
    kernels: list[Form]
    functions: list[str]
    entry: str
    temporaries: int
    threads: int
    lapack: Lapack | None


def prepare(name: str, programs: Iterable[Program | None], sizes: Sizes, described: Described, *,
            planning: AbstractContextManager[Any], threads: int | None = None,
            lapack: Path | None = None) -> Prepared:
    """Plans a library.

    Args:
      programs: for all sizes, the last of them varying fastest; None: they are not allowed.
      planning: held while something is planned: what planners remember is for all programs.
      threads: how many may share a kernel's call.
      lapack: a library of LAPACK; by default SciPy's.

    Raises:
      Refused: it has something that only Python can compute.
      ValueError: that is no library of LAPACK.
    """
    threads = threads or crew.cores()
    data = DataObject(platform.machine())
    kernels: dict[Form, None] = {}
    functions = dict.fromkeys([_DRIVER])
    members: list[_Member | None] = []
    for program in programs:
        with planning, collection.stopped:
            member = None if program is None else _Member(
                program, planned(program.jaxpr, threads))
        members.append(member)
        if member is not None:
            kernels.update(member.plan.kernels)
            functions.update(member.plan.functions)
    if threads > 1:
        functions.update(dict.fromkeys(("crew_open", "crew_help")))
        data.accessor(c_entry.CREW, data.cells(c_entry.CREW_OWN + CREW_WORDS))
    there = [member for member in members if member is not None]
    if not there:
        raise Refused(f"{name} allows no sizes")
    frame = _frame(data, there)
    constants: dict[int, Reference] = {}
    routines = Lapack(lapack) if any(member.needs_lapack for member in there) else None
    blocks: list[int] = []
    for member in members:
        blocks.append(0 if member is None else _block(data, member, frame, constants, routines))
        if data.nbytes > _MOST_CONSTANTS:
            raise Refused(f"the constants of {name} take more than {_MOST_CONSTANTS >> 20} MB: "
                          "pass them as arguments")
    data.accessor(c_entry.PROGRAMS, data.words(blocks))
    named = [(c_name, least, most) for c_name, (_, least, most) in zip(
        described.size_names, sizes, strict=True)]
    texts = c_header.error_texts(described.arguments, described.results, named)
    data.accessor(c_entry.TEXTS, data.words(
        [data.constant(text.encode() + b"\0", 1) for text in texts]))
    return Prepared(name, described, named, data, list(kernels), list(functions),
                    c_entry.text(name, there[0].slots, named, len(texts) - 1, threads > 1),
                    max(member.plan.arena for member in there), threads, routines)


class Built(NamedTuple):
    """What is in a library: parts of the pack."""

    pack: list[str]


def build(prepared: Prepared, output: Path, *, target: str | None = None,
          progress: Callable[[str], None] | None = None) -> Built:
    """Writes a library.

    Args:
      target: the processor; by default this one.
      progress: told what is being done.

    Raises:
      ToolchainError: there is no compiler, or it fails.
    """
    reason = standard_library.why_not()
    if reason is not None:
        raise ToolchainError("missing", f"a C library needs the small standard library: {reason}")
    pack = Pack()
    units = list(dict.fromkeys(pack.names[function] for function in prepared.functions))
    objects = _Objects(pack.libraries.cache, target, progress)
    try:
        found = objects.of([*(unit.source for unit in units), *_texts(prepared.kernels),
                            prepared.entry])
        _link(prepared, objects, found, output, target)
    finally:
        objects.forget()
    return Built([unit.name for unit in units])


def planned(jaxpr: Jaxpr, cores: int) -> Plan:
    """The plan of a program that needs no Python.

    Raises:
      Refused: it needs that.
    """
    jaxpr = order_steps(jaxpr)
    pieces = partition(jaxpr, functools.partial(host_reason, control_flow=True))
    reasons = [reason for piece in pieces if piece.on_host for reason in piece.reasons]
    plan = None
    if not reasons:
        plan = Plan(jaxpr, cores)
        reasons = [reason for step in plan.host_steps for reason in step.reasons]
    if plan is None or reasons:
        raise Refused("only Python can compute parts of it: " + "; ".join(dict.fromkeys(reasons)))
    return plan


class _Member:
    """A program for its sizes, planned.

    Attributes:
      slots: where the addresses of arguments and results go. Results that no call writes have
        slots behind those of the plan.
      used: how many slots there are.
    """

    def __init__(self, program: Program, plan: Plan):
        self.program = program
        self.plan = plan
        first = len(program.jaxpr.invars)
        written, others = itertools.count(first), itertools.count(plan.slots)
        self.slots = [
            *range(len(program.constants), first),
            *(next(written) if type(x) is tuple else next(others) for x in plan.outputs)]
        self.used = next(others)
        self.needs_lapack = not {function.rpartition("_")[0] for function in plan.functions
                                 }.isdisjoint(native.MATRICES)


def _frame(data: DataObject, members: Sequence[_Member]) -> dict[str, int]:
    """The fields of blocks that say what a call's memory is: the same for all sizes."""
    head = -(-8 * (1 + max(member.used for member in members)) // 64) * 64
    arena = max(member.plan.arena for member in members)
    return {"HEAD": head, "BYTES": -(-(head + max(arena, 1)) // 64) * 64,
            "CELLS": data.cells(c_entry.KEPT), "IS_ONE": int(len(members) == 1)}


class _NoHost:
    """For programs without steps of the host."""

    def call(self, step: HostStep, integers: Sequence[int]) -> tuple[int, list[int]]:
        raise Refused(f"only Python can compute parts of it: {step}")

    def function(self, step: HostStep, places: Places) -> int:
        raise Refused(f"only Python can compute parts of it: {step}")


def _block(data: DataObject, member: _Member, frame: Mapping[str, int],
           constants: dict[int, Reference], lapack: Lapack | None) -> Reference:
    """Adds a program's block, with what it points to.

    Args:
      constants: where the constants of programs are, by their identity.
    """
    def keep(integers: Sequence[int]) -> Reference:
        return data.words(integers if lapack is None else lapack.linked(integers))

    program, plan = member.program, member.plan
    addresses: dict[Any, int] = {name: Reference(name) for name in plan.functions}
    addresses |= {form: Reference(Kernel(form).symbol) for form in plan.kernels}
    linker = Linker(addresses, keep, _NoHost())
    tape, length = linker.tape(plan.tape)
    template: list[int] = [0] * member.used
    for slot, value in enumerate(program.constants):
        if id(value) not in constants:
            constants[id(value)] = data.constant(np.ascontiguousarray(value).tobytes())
        template[slot] = constants[id(value)]
    template[plan.constant_slot] = data.constant(plan.constants)
    rows: list[int] = []
    copies: list[int] = []
    arrays = [*program.arguments, *program.results]
    for number, (array, slot) in enumerate(zip(arrays, member.slots, strict=True)):
        nbytes = math.prod(map(int, array.shape)) * array.dtype.itemsize
        result = number - len(program.arguments)
        rows += (slot, nbytes, array.alignment, int(result >= 0), array.number, len(array.shape),
                 data.words([int(size) for size in array.shape] or [0]))
        if result >= 0 and type(source := plan.outputs[result]) is int:
            copies += (source, slot, nbytes)
    block = {
        "TAPE": tape, "LENGTH": length, "TEMPLATE": data.words(template), "SLOTS": member.used,
        "ARENA_SLOT": plan.arena_slot, "ARRAYS": data.words(rows or [0]), "COUNT": len(arrays),
        "COPIES": data.words(copies or [0]), "COPY_COUNT": len(copies) // 3, **frame}
    return data.words([block[field] for field in c_entry.BLOCK])


def _texts(kernels: Sequence[Form]) -> list[str]:
    """The texts of modules with kernels."""
    parts = [Kernel(kernel).text.rstrip("\n") + "\n\n\n" for kernel in sorted(
        kernels, key=lambda kernel: Kernel(kernel).symbol)]
    return [HEADER + "\n\n" + "".join(parts[start:start + _KERNELS_TOGETHER])
            for start in range(0, len(parts), _KERNELS_TOGETHER)]


class _Objects:
    """Objects by their texts, kept in the cache folder."""

    def __init__(self, cache: ArtifactCache, target: str | None,
                 progress: Callable[[str], None] | None):
        self.cache = cache
        self.target = target
        self.progress = progress
        self._not_kept: list[Path] = []

    def forget(self) -> None:
        """Removes those that the cache has not taken."""
        for path in self._not_kept:
            path.unlink(missing_ok=True)

    def of(self, texts: Sequence[str]) -> list[Path]:
        """The files, in the order of the texts; those that are missing are built."""
        keys = [self._key(text) for text in texts]
        found = [self.cache.lookup(key) for key in keys]
        missing = [n for n, path in enumerate(found) if path is None]
        waiting = iter(missing)
        failures: list[BaseException] = []
        pace = Pace(urgent=True)
        done = itertools.count(1)

        def work() -> None:
            for n in waiting:
                if failures:
                    return
                if self.progress is not None:
                    self.progress(f"compiles part {next(done)} of {len(missing)}")
                try:
                    found[n] = self._built(texts[n], keys[n], pace)
                except BaseException as error:
                    failures.append(error)
                    pace.stopped = True

        # Daemon threads, not a concurrent.futures pool: the interpreter must not wait for a build.
        helpers = [threading.Thread(target=work, name="maxjax-objects", daemon=True)
                   for _ in range(min(crew.cores(), len(missing), 4) - 1)]
        for helper in helpers:
            helper.start()
        work()
        for helper in helpers:
            helper.join()
        if failures:
            raise failures[0]
        return [path for path in found if path is not None]

    def _key(self, text: str) -> bytes:
        return "\0".join((toolchain.identity(text, self.target), "object", text)).encode()

    def _built(self, text: str, key: bytes, pace: Pace) -> Path:
        output = self.cache.incoming(".o")
        self._not_kept.append(output)
        toolchain.build_object(text, output, directory=self.cache.directory, target=self.target,
                               seconds=1200.0, pace=pace)
        return self.cache.store(key, output, suffix=".o") or output


def _link(prepared: Prepared, objects: _Objects, found: Sequence[Path], output: Path,
          target: str | None) -> None:
    directory, lapack = objects.cache.directory, prepared.lapack
    written, script = objects.cache.incoming(".o"), objects.cache.incoming(".o")
    made = objects.cache.incoming(".so")
    try:
        written.write_bytes(prepared.data.written())
        described = prepared.described
        exported = "".join(f"{x}; " for x in c_entry.functions(
            prepared.name, len(described.arguments) + len(described.results)))
        script.write_text(f"{{ global: {exported}local: *; }};\n")
        toolchain.link_objects(
            [*found, written, *([] if lapack is None else lapack.paths)], made,
            ["-soname", f"lib{prepared.name}.so", "-s", "-z", "now", "--version-script",
             # Threads of its own stay in its code.
             str(script), *(("-z", "nodelete") if prepared.threads > 1 else ()),
             *(() if lapack is None else ("-rpath", "$ORIGIN"))],
            directory=directory, target=target)
        output.write_bytes(made.read_bytes())
    finally:
        for path in (written, script, made):
            path.unlink(missing_ok=True)


def check_name(name: str) -> None:
    """Raises a ValueError where a C function cannot have that name."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) or name in c_header.KEYWORDS:
        raise ValueError(f"{name!r} is no name of a C function; `name` chooses another")
    for library in (ctypes.CDLL(None), *_mathematics()):
        if any(hasattr(library, x) for x in c_entry.functions(name)):
            raise ValueError(f"{name!r} is a function of the system's libraries, which would be "
                             "called instead; `name` chooses another")


def _mathematics() -> list[ctypes.CDLL]:
    try:
        return [ctypes.CDLL("libm.so.6" if sys.platform == "linux" else "libm.dylib")]
    except OSError:
        return []


def manifest(prepared: Prepared, built: Built, library: Path, made_by: str,
             target: str | None) -> str:
    """What a library needs, and what is in it, as JSON."""
    content = library.read_bytes()

    def arrays(which: Sequence[Array]) -> list[Mapping[str, Any]]:
        return [{"name": x.name, "dtype": dtypes.name_of(x.dtype), "shape": list(x.shape),
                 "in_python": x.note} for x in which]

    symbols = sorted({match.decode() for match in re.findall(
        rb"(?<=\0)GLIBC_[0-9.]+(?=\0)", content)}, key=lambda text: [
            int(part) for part in text.partition("_")[2].split(".")])
    return json.dumps({
        "function": prepared.name, "made_by": made_by, "compilers": versions(),
        "needs": {"system": sys.platform, "machine": platform.machine(),
                  **_processor(target or toolchain.target_cpu()),
                  "libraries": needed(library)[1],
                  "go_along": [] if prepared.lapack is None else [
                      path.name for path in prepared.lapack.companions],
                  "least_glibc": symbols[-1].partition("_")[2] if symbols else None},
        "sizes": [{"name": size, "least": least, "greatest": most}
                  for size, least, most in prepared.sizes],
        "arguments": arrays(prepared.described.arguments),
        "results": arrays(prepared.described.results),
        "bytes_of_library": len(content),
        "bytes_of_constants_and_tapes": prepared.data.nbytes,
        "bytes_of_temporaries_per_call": prepared.temporaries,
        "most_threads": prepared.threads, "kernels": len(prepared.kernels),
        "parts_of_the_pack": built.pack,
        "sha256": hashlib.sha256(content).hexdigest()}, indent=1) + "\n"


def _processor(target: str | None) -> dict[str, Any]:
    """Which processor code is compiled for: a target, or this one, by its name and by the
    instruction sets that the compiler may have used."""
    if target is not None:
        return {"processor": target}
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        text = ""
    name, flags = (re.search(rf"^{key}\s*:\s*(.*)$", text, re.MULTILINE | re.IGNORECASE)
                   for key in ("model name", "(?:flags|features)"))
    return {"processor": f"like {name[1] if name else 'the one that it was built on'}",
            "instruction_sets": sorted(_INSTRUCTION_SETS.findall(flags[1] if flags else ""))}
