"""Exported functions as shared libraries for C: which programs they are, and the files."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.interrupts import context_manager
from maxjax._higher_order.exported import Exported
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.symbolic import scope_of, symbolic_shape, symbols_of
from maxjax._ir.types import ShapedArray
from maxjax._max.mojo import c_entry, c_header, c_library
from maxjax._max.mojo.c_header import Array
from maxjax._max.mojo.c_library import Program, Refused, Sizes
from maxjax._runtime import notebooks
from maxjax._runtime.program import program_of
from maxjax._runtime.tiering import tiering

# Programs of one function, each of which is planned.
MOST_PROGRAMS = 4096


class Files(NamedTuple):
    """What was written.

    Attributes:
      library: the shared library.
      header: its C header.
      manifest: what it needs and what is in it, as JSON.
    """

    library: Path
    header: Path
    manifest: Path


def write(exported: Exported, name: str, argument_names: Sequence[str],
          result_names: Sequence[str], folder: Path, *, made_by: str, threads: int | None = None,
          target: str | None = None, lapack: Path | None = None) -> Files:
    """Writes an exported function as a library.

    Args:
      name: of the C function.
      argument_names, result_names: of all leaves, as in Python.
      folder: where to write the files.
      made_by: a version of maxjax.
      threads, target, lapack: as of ``c_library``.

    Raises:
      NotImplementedError: it has something that only Python can compute, or too many sizes.
      ValueError: there can be no C function of that name.
    """
    c_library.check_name(name)
    sizes = _sizes(exported)
    described = _described(exported, name, argument_names, result_names, sizes)
    folder.mkdir(parents=True, exist_ok=True)
    files = Files(folder / f"lib{name}.so", folder / f"{name}.h", folder / f"{name}.json")
    with _progress_line(name) as progress:
        programs = _programs(exported, described, sizes, progress)
        prepared = c_library.prepare(name, programs, sizes, described, planning=tiering.planning,
                                     threads=threads, lapack=lapack)
        built = c_library.build(prepared, files.library.with_suffix(".new"), target=target,
                                progress=progress)
    os.replace(files.library.with_suffix(".new"), files.library)
    for companion in prepared.lapack.companions if prepared.lapack is not None else ():
        shutil.copyfile(companion, folder / companion.name)
    files.header.write_text(c_header.header(
        name, described.arguments, described.results, sizes, made_by), encoding="utf-8")
    files.manifest.write_text(c_library.manifest(
        prepared, built, files.library, made_by, target), encoding="utf-8")
    return files


def _sizes(exported: Exported) -> list[tuple[str, int, int]]:
    """The symbols of an exported function's arguments, with their least and greatest values."""
    scope = scope_of([aval.shape for aval in exported.in_avals])
    if scope is None:
        return []
    names = dict.fromkeys(name for aval in exported.in_avals for size in aval.shape
                          for name in sorted(symbols_of(size)))
    sizes = []
    many = 1
    for name in names:
        symbol, = symbolic_shape(name, scope=scope)
        least, most = scope.bounds_of(symbol)
        if most == float("inf"):
            raise Refused(
                f"the size {name} has no greatest value, and a library has a program for each "
                f"size: give it one, as in symbolic_shape({name!r}, "
                f"constraints=[\"{name} <= 64\"])")
        sizes.append((name, int(least), int(most)))
        many *= int(most) - int(least) + 1
    if many > MOST_PROGRAMS:
        raise Refused(f"there would be programs for {many} sizes, which is more than "
                      f"{MOST_PROGRAMS}: closer bounds make them fewer")
    return sizes


def _described(exported: Exported, name: str, argument_names: Sequence[str],
               result_names: Sequence[str], sizes: Sizes) -> c_library.Described:
    arguments = [(x, aval) for x, aval in zip(argument_names, exported.in_avals, strict=True)
                 if aval.dtype != dtypes.float0]
    results = [(x, aval) for x, aval in zip(result_names, exported.out_avals, strict=True)
               if aval.dtype != dtypes.float0]
    taken = ["arguments", "argument_count", "results", "result_count", *c_entry.functions(name)]
    size_names = c_header.identifiers([size for size, _, _ in sizes], taken)
    names = c_header.identifiers([x for x, _ in (*arguments, *results)], [*taken, *size_names])
    arrays = [_array(chosen, aval, python) for chosen, (python, aval) in zip(
        names, (*arguments, *results), strict=True)]
    return c_library.Described(arrays[:len(arguments)], arrays[len(arguments):], size_names)


def _array(name: str, aval: ShapedArray, python: str) -> Array:
    shape = tuple([str(size) if is_dimension(size) else size for size in aval.shape])
    if dtypes.is_key(aval.dtype):       # as its data, of which two words are one number
        return Array(name, (*shape, *aval.dtype.key_shape), dtypes.uint32, 8, python)
    kind = np.dtype(dtypes.physical(aval.dtype))
    if not c_header.has_type(kind):
        raise Refused(f"C has no type for arrays of {dtypes.name_of(kind)}")
    real = dtypes.real_dtype(kind) if dtypes.is_complex(kind) else kind
    return Array(name, shape, kind, real.itemsize, python)


def _programs(exported: Exported, described: c_library.Described, sizes: Sizes,
              progress: Callable[[str], None]) -> Iterator[Program | None]:
    """The programs of all sizes, None where constraints forbid them."""
    ranges = [range(least, most + 1) for _, least, most in sizes]
    for number, chosen in enumerate(itertools.product(*ranges)):
        if len(chosen):
            progress(f"plans size {number + 1}")
        values = {name: value for (name, _, _), value in zip(sizes, chosen, strict=True)}
        avals = [aval.update(shape=_at(aval, values)) for aval in exported.in_avals]
        try:
            closed = exported._program_for(avals)
        except ValueError:      # it is not among the sizes that are allowed
            yield None
            continue
        program = program_of(closed)
        yield Program(
            program.opened.jaxpr, program.consts,
            _sized(described.arguments, exported.in_avals, values),
            _sized(described.results, exported.out_avals, values))


def _sized(arrays: Sequence[Array], avals: Sequence[ShapedArray],
           values: dict[str, int]) -> list[Array]:
    shapes = [_at(aval, values) for aval in avals if aval.dtype != dtypes.float0]
    return [array._replace(shape=(*shape, *array.shape[len(shape):]))
            for array, shape in zip(arrays, shapes, strict=True)]


def _at(aval: ShapedArray, values: dict[str, int]) -> tuple[int, ...]:
    sized: tuple[object, ...] = aval.shape
    return tuple([size.value(values) if is_dimension(size) else size      # type: ignore[misc]
                  for size in sized])


@context_manager
def _progress_line(name: str) -> Iterator[Callable[[str], None]]:
    """Says on a terminal, or in a notebook, what is being done."""
    shows = notebooks.rewrites_lines(sys.stderr)
    started = time.monotonic()

    def show(text: str) -> None:
        if shows:
            notebooks.write_over(
                sys.stderr, f"maxjax: library {name}: {text}, {time.monotonic() - started:.0f} s ")

    try:
        yield show
    finally:
        if shows:
            with contextlib.suppress(OSError):
                notebooks.write_over(sys.stderr, "")
