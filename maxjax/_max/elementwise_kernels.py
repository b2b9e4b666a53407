"""Facts about our elementwise kernels, collected from the primitives that they compute."""

from __future__ import annotations

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

# The primitives of the modules where some have kernels or are cheap.
_PRIMITIVES = dict.fromkeys(
    value for module in (arithmetic, comparison, convert, layout, random_bits, special,
                         special_functions, transcendental)
    for value in vars(module).values() if isinstance(value, Primitive))

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel for primitive in _PRIMITIVES for kernel in primitive.compiled.kernels}

# Operations of a few instructions: computing them twice costs less than memory traffic. One is the
# compiler's own operation, to which ``select_n`` is lowered.
CHEAP = frozenset(("select",)) | {
    name for primitive in _PRIMITIVES if primitive.compiled.cheap
    for name in [kernel.name for kernel in primitive.compiled.kernels] or [primitive.name]}
