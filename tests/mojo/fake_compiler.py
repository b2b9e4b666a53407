"""A shell script in the compiler's place, kernels for it to build, and what they leave."""

from __future__ import annotations

import ctypes
import os
import signal
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo import toolchain

DRIVER = "MODULAR_MOJO_MAX_DRIVER_PATH"  # names another compiler


def scaled(factor: int) -> str:
    return textwrap.dedent(f"""\
        @export("KERNEL")
        def KERNEL(slots: Slots, args: Args) abi("C"):
            var x = operand[DType.float32](slots, args, 0)
            for i in range(integer(args, 2)):
                x.unsafe_store(i, x.unsafe_load[width=1](i) * {factor})
        """)


SOURCES = [scaled(factor) for factor in range(40)]


def apply(place: int, count: int = 4) -> list[float]:
    x = np.ones(count, np.float32)
    slots, args = np.array([x.ctypes.data]), np.array([0, 0, count])
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(place)(
        slots.ctypes.data, args.ctypes.data)
    return x.tolist()


class Compiler:
    """A shell script in the compiler's place, for what is built within a folder: what this process
    still builds elsewhere, for tests before, is the real one's."""

    def __init__(self, folder: Path, library: Path, monkeypatch: pytest.MonkeyPatch):
        self.path, self.note, self.library = folder / "mojo", folder / "note", library
        self.folder, self.real = folder, toolchain._compiler()[0]
        monkeypatch.setenv(DRIVER, str(self.path))
        self.does('cp "$library" "$out"')

    def does(self, commands: str) -> None:
        real = f'{DRIVER}={self.real} exec {self.real} "$@"'
        self.path.write_text(
            f'#!/bin/sh\ncase "$*" in *{self.folder}*) ;; *) {real};; esac\n'
            f"echo $$ >> {self.note}\nlibrary={self.library}\n"
            f'for out; do source="$before"; before="$flag"; flag="$out"; done\n{commands}\n')
        self.path.chmod(0o755)

    @property
    def runs(self) -> list[int]:
        return [int(pid) for pid in self.note.read_text().split()] if self.note.exists() else []


def leftovers(cache: ArtifactCache) -> list[str]:
    return [path.name for path in cache.directory.iterdir()
            if path.name.startswith(("building", "incoming")) or path.name.endswith(".lock")]


def forked(action: Callable[[], object]) -> bool:
    """Whether the action is true in a forked child, within twenty seconds."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(0 if action() else 1)
        except BaseException:
            os._exit(99)
    return os.waitpid(child, 0)[1] == 0
