"""LAPACK in libraries for C: which file has its routines, and what goes along with that."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from pathlib import Path

from maxjax._base.errors import InternalError
from maxjax._max.mojo.elf import Reference, needed
from maxjax._primitives import lapack
from maxjax._primitives.lapack import Routine

# How files name a routine: Fortran's compilers, and SciPy's OpenBLAS.
_NAMES = ("{}_", "scipy_{}_")
_LOOKED_FOR = ("dpotrf", "zgesdd", "dtrsm")
_FILE = re.compile(r"[^/]*(openblas|lapack|blas|mkl_rt)[^/]*\.so[^/]*")


class Lapack:
    """A shared library with the routines of LAPACK and BLAS.

    Args:
      chosen: the file; by default that which SciPy's are in.

    Attributes:
      paths: of the files that have them.
      companions: files that have to lie beside the library that is linked with it. None, if it
        was chosen: whoever chose it knows where it will be.

    Raises:
      ValueError: it has no routines of LAPACK.
    """

    def __init__(self, chosen: Path | None):
        lapack.address("potrf", lapack.LAPACK_DTYPES[0])        # SciPy's is loaded now
        candidates = _loaded() if chosen is None else [chosen]
        found = ((_definers(path, name), name) for path in candidates for name in _NAMES)
        self.paths, self._name = next((pair for pair in found if pair[0]), ([], ""))
        if not self.paths:
            raise ValueError(
                "SciPy's LAPACK is in no file that can be linked with: `lapack` names another"
                if chosen is None else
                f"{chosen} has no routines of LAPACK and BLAS with names such as dpotrf_")
        self.companions = [] if chosen is not None else _with_needed(self.paths)

    def linked(self, integers: Sequence[int]) -> list[int]:
        """Integers with references to routines in the place of addresses in this process."""
        for x in integers:
            # Only by an oversight: it would be an address of nothing elsewhere.
            if type(x) is int and x in lapack.routines:
                raise InternalError(f"the address of {lapack.routines[x].name} is a plain integer")
        return [Reference(self._name.format(x.name)) if isinstance(x, Routine) else x
                for x in integers]


class _Symbol(ctypes.Structure):
    """``Dl_info`` of the system's loader."""

    _fields_ = (("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("address", ctypes.c_void_p))


def _definers(path: Path, name: str) -> list[Path]:
    """The files that have routines of LAPACK and of BLAS by names of that form: this one, or some
    that it needs; none where there is not each of them."""
    try:
        library = ctypes.CDLL(str(path))
        functions = [getattr(library, name.format(x)) for x in _LOOKED_FOR]
        find = ctypes.CDLL(None).dladdr
    except (OSError, AttributeError):
        return []
    files: dict[Path, None] = {}
    for function in functions:
        info = _Symbol()
        if not find(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info)) or not info.file:
            return []
        files[Path(info.file.decode(errors="surrogateescape"))] = None
    return list(files)


def _loaded() -> list[Path]:
    """Files in this process that may be it."""
    try:
        text = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return []
    return [Path(path) for path in dict.fromkeys(
        line.split(maxsplit=5)[5] for line in text.splitlines() if line.count("/"))
        if _FILE.fullmatch(path.rpartition("/")[2])]


def _with_needed(paths: Sequence[Path]) -> list[Path]:
    """Files, and those beside them that they need, directly or not."""
    left, found = [*paths], dict[Path, None]()
    while left:
        file = left.pop()
        if file in found:
            continue
        found[file] = None
        try:
            names = needed(file)[1]
        except (OSError, ValueError, struct.error):
            continue
        left += [file.parent / name for name in names if (file.parent / name).is_file()]
    return list(found)
