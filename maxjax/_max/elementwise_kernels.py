"""What is known of our elementwise kernels, gathered from the primitives that they compute."""

from __future__ import annotations

import numpy as np

from maxjax._base import native
from maxjax._ir.primitive import Primitive
from maxjax._primitives import (
    arithmetic,
    comparison,
    convert,
    layout,
    random_bits,
    special,
    special_functions,
    transcendental,
)
from maxjax._primitives.kernels import Kernel

# Those of the modules in which some have kernels or are cheap.
_PRIMITIVES = dict.fromkeys(
    value for module in (arithmetic, comparison, convert, layout, random_bits, special,
                         special_functions, transcendental)
    for value in vars(module).values() if isinstance(value, Primitive))

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel for primitive in _PRIMITIVES for kernel in primitive.kernels}

# Operations of a few instructions: computing them twice costs less than memory does. One is the
# compiler's own word, which ``select_n`` is lowered to.
CHEAP = frozenset(("select",)) | {
    name for primitive in _PRIMITIVES if primitive.cheap
    for name in [kernel.name for kernel in primitive.kernels] or [primitive.name]}


def pack_kernels() -> list[Kernel]:
    """Those that the pack exports for float32, for tier 0 to call."""
    kind = np.dtype(np.float32)
    return [KERNELS[name] for name in sorted(KERNELS) if kind in native.LEAST.get(name, ())]
