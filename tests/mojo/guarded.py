"""Runs programs in memory next to inaccessible pages: out-of-bounds accesses crash.

``python -m tests.mojo.guarded end|begin random|cases|vector|loops|crash COUNT``: arguments,
results, constants and temporaries end, or begin, at such a page (``crash`` reads beyond one;
``vector`` runs the random programs on the vector machine, ``loops`` are those of
``gen/loop_programs.py``). Unwritten memory contains 0xff: NaN, -1. Prints each program's name
before it runs, and ``done`` at the end.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
from typing import Any

import numpy as np

from maxjax._max.mojo import executable, loop_registers
from tests.gen import loop_programs, mojo_random
from tests.support import mojo_programs

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def guarded(shape: Any, dtype: Any, at_end: bool) -> np.ndarray:
    """An array whose memory ends, or begins, at an inaccessible page."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    dtype = np.dtype(dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    whole = -(-nbytes // PAGE) * PAGE
    memory = mmap.mmap(-1, whole + 2 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (address, address + PAGE + whole):
        if _libc.mprotect(ctypes.c_void_p(page), PAGE, 0):      # no access
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = PAGE + (whole - nbytes if at_end else 0)
    flat = np.frombuffer(memory, np.uint8, nbytes, offset)
    flat[...] = 0xff
    return flat.view(dtype).reshape(shape) if nbytes else np.empty(shape, dtype)


def main(side: str, what: str, count: str) -> None:
    at_end = side == "end"

    if what == "crash":
        array = guarded((3, 5), np.float32, at_end)
        print(ctypes.c_char.from_address(array.ctypes.data + (60 if at_end else -1)).value)

    def empty(shape: Any, dtype: Any) -> np.ndarray:
        return guarded(shape, dtype, at_end)

    executable._empty = empty       # type: ignore[assignment]

    if what == "loops":
        loop_registers.MOST_ELEMENTS = 0
        items = loop_programs.default(int(count))
    else:
        items = (mojo_random.default(int(count)) if what in ("random", "vector")
                 else mojo_programs.default(int(count) or None))
    if what == "vector":
        mojo_programs.executable = mojo_programs.without_kernels
        items = [item for item in items if mojo_programs.has_code(item)]
    else:
        mojo_programs.build(items)
    for item in items:
        print(item.name, flush=True)
        values = []
        for value in item.values:
            value = np.asarray(value)
            values.append(empty(value.shape, value.dtype))
            values[-1][...] = value
        item.values = values
        mojo_programs.check(item)
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
