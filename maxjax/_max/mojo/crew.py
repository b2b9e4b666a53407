"""The crew: threads that take part in the calls of native kernels (see ``kernels/crew.mojo``).

They start with the first program that uses threads, and run in native code, without the GIL: for
some tens of microseconds after a call they spin, then they sleep. Kernels find them through a cell
of memory, whose address each library receives; where it is empty, as in a child after a fork, a
call runs on its caller's thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from typing import TYPE_CHECKING

import numpy as np

from maxjax._base import threads
from maxjax._base.threads import cores
from maxjax._max.mojo.abi import CREW_ALIGNMENT, CREW_NAME, CREW_WORDS
from maxjax._max.versions import max_folder

if TYPE_CHECKING:
    from maxjax._max.mojo.pack_library import Pack

_cell = np.zeros(1, np.int64)
_memories: list[np.ndarray] = []        # of this process and of those it was forked from
_started = False
_announced = False
_lock = threads.lock()

# The symbol by which a library's address is known: part of each that imports kernels (see
# `toolchain`).
JOIN = "maxjax_crew_cell"


def join(library: ctypes.CDLL) -> None:
    """Gives a library of kernels the crew's address."""
    try:
        place = getattr(library, JOIN)
    except AttributeError:
        return
    place.restype = ctypes.POINTER(ctypes.c_int64)
    place()[0] = _cell.ctypes.data


def start(pack: Pack, graphs: bool = False) -> None:
    """Starts a thread for each further core, once per process, if the pack is built.

    Args:
      graphs: whether MAX's graphs use them too.
    """
    global _started, _announced
    if cores() == 1 or pack.address("crew_help") is None:
        return
    if graphs and not _announced:
        _announced = True
        _announce()
    if _started:
        return
    with _lock:
        if _started:
            return
        try:
            _start(pack)
            _started = True
        except BaseException:       # an interrupt: the next call starts others
            _cell[0] = 0
            raise


def _start(pack: Pack) -> None:
    memory = np.zeros(CREW_WORDS + CREW_ALIGNMENT // 8, np.int64)
    _memories.append(memory)
    words = memory.ctypes.data + -memory.ctypes.data % CREW_ALIGNMENT
    pack.function("crew_open", None, (ctypes.c_void_p,))(words)
    assist = pack.function("crew_help", None, (ctypes.c_void_p,))
    with contextlib.suppress(RuntimeError):     # no more threads available: use fewer
        for _ in range(cores() - 1):
            threading.Thread(
                target=assist, args=(words,), name="maxjax-crew", daemon=True).start()
    _cell[0] = words


def _announce() -> None:
    """Lets the kernels of graphs find the crew: their global variables are in MAX's runtime."""
    folder = max_folder()
    for path in folder.glob("lib/libKGENCompilerRTShared.*") if folder is not None else ():
        insert = ctypes.CDLL(str(path)).KGEN_CompilerRT_InsertGlobal
        insert.restype = None
        insert.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
        insert(CREW_NAME.encode(), len(CREW_NAME), _cell.ctypes.data)


@threads.after_fork
def _after_fork_in_child() -> None:
    """The threads belonged to the parent."""
    global _started
    _started = False
    _cell[0] = 0
