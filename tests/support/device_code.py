"""Compiles kernels for a GPU where there is none: their machine code as text, for a check.

It shows that kernels are code for a device, which says nothing of how they run there.
"""

from __future__ import annotations

import ctypes
import re
import tempfile
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from maxjax._max.mojo import vector_operations
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.forms import Form
from maxjax._max.mojo.toolchain import Pace, build_library
from maxjax._max.mojo.vector_operations import Operator

# Nvidia's Hopper: what MAX supports first.
TARGET = "sm_90"
# What each device has: the partial results of columns are in memory that is allocated.
RUNTIME = frozenset(("malloc", "free", "vprintf"))
_DEVICE = """
from max.gpu import global_idx
from max.gpu.host import get_gpu_target
from max.gpu.host.compile import _compile_code
"""
_READ = """

@export("text_of_{name}")
def text_of_{name}() abi("C") -> Pointer[UInt8, ImmStaticOrigin]:
    return _compile_code[{name}, target=get_gpu_target["{target}"]()]().asm.unsafe_ptr()

@export("length_of_{name}")
def length_of_{name}() abi("C") -> Int:
    return _compile_code[{name}, target=get_gpu_target["{target}"]()]().asm.byte_length()
"""


def of_operators(operators: Iterable[Operator]) -> dict[str, str]:
    """Texts of device functions that compute an element each, by the operations' names."""
    return {operator.function: "\n".join([
        "", f"def {operator.function}(result: Bytes, a: Bytes, b: Bytes, c: Bytes, n: Int):",
        "    comptime w = 1", "    var i = Int(global_idx.x)", "    if i < n:",
        *operator.loads(" " * 8), operator.store(" " * 8), ""]) for operator in operators}


def of_forms(forms: Iterable[Form]) -> dict[str, str]:
    """Texts of generated kernels without what shares their items among threads, by names."""
    texts = {}
    for number, form in enumerate(forms):
        name = f"kernel_{number}"
        source = form.source.replace("KERNEL", name)
        part, export, _ = source.partition(f'@export("{name}")\n')
        if part:
            texts[f"{name}_part"] = part
        else:       # a kernel without items
            texts[name] = source.removeprefix(export).replace(' abi("C")', "")
    return texts


def compiled(texts: Mapping[str, str]) -> dict[str, str]:
    """The PTX of device functions, by their names.

    Raises:
      ToolchainError: one of them cannot be compiled.
    """
    head = vector_operations.HEAD if any("Bytes" in text for text in texts.values()) else HEADER
    source = head + _DEVICE + "".join(
        text + _READ.format(name=name, target=TARGET) for name, text in texts.items())
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "device.so"
        build_library(source, output, pace=Pace(urgent=True))
        library = ctypes.CDLL(str(output))
        found = {}
        for name in texts:
            text, length = library[f"text_of_{name}"], library[f"length_of_{name}"]
            text.restype, length.restype = ctypes.c_void_p, ctypes.c_ssize_t
            found[name] = ctypes.string_at(text(), length()).decode()
        return found


def problems(compiled_texts: Mapping[str, str], allowed: Container[str] = ()) -> list[str]:
    """What is no code for the device by itself: no entry, or calls of functions from elsewhere."""
    found = []
    for name, text in compiled_texts.items():
        missing = [word for word in (f".target {TARGET}", ".entry") if word not in text]
        called = [function for function in re.findall(
            r"\.extern \.func(?: \([^)]*\))? (\w+)", text) if function not in allowed]
        if missing or called:
            found.append(f"{name}: without {missing}, calls {called}")
    return found
