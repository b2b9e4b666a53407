"""Jupyter: a kernel in which ``import jax`` gives maxjax, and lines that change."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

NAME = "maxjax"
_USAGE = "usage: maxjax --install-kernel [--sys-prefix | --prefix FOLDER]"


_WIDTH = 100


def rewrites_lines(stream: TextIO | None) -> bool:
    """Whether a line that is printed can be written over: on terminals, and in notebooks.

    Args:
      stream: None where the process was started without it, as services are; what a program puts
        in its place may be closed, and need not know more than how to write.
    """
    if stream is None or getattr(stream, "closed", False):
        return False
    is_terminal = getattr(stream, "isatty", None)
    return (is_terminal is not None and is_terminal()
            or type(stream).__module__.startswith("ipykernel."))


def write_over(stream: TextIO, text: str) -> None:
    """Prints a line in place of the last one; "" leaves nothing."""
    # Notebooks know no code that clears a line.
    stream.write(f"\r{text:<{_WIDTH}}" + ("" if text else "\r"))
    stream.flush()


def kernel_spec() -> dict[str, object]:
    """What Jupyter is told: which command starts the kernel, and what it is called."""
    return {"argv": [sys.executable, "-m", "maxjax", "-m", "ipykernel_launcher",
                     "-f", "{connection_file}"],
            "display_name": "maxjax (Python 3)", "language": "python",
            "interrupt_mode": "signal", "metadata": {"debugger": True}}


def _users_folder() -> Path:
    """Where Jupyter looks for what a user has installed."""
    if named := os.environ.get("JUPYTER_DATA_DIR"):
        return Path(named)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Jupyter"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share", "jupyter")


def install_kernel(arguments: Sequence[str]) -> int:
    """Writes the kernel's description to the user's Jupyter folder, to this environment's
    (``--sys-prefix``), or below another folder (``--prefix``); returns an exit status."""
    if importlib.util.find_spec("ipykernel") is None:
        print("a kernel needs ipykernel: pip install 'maxjax[notebook]'", file=sys.stderr)
        return 1
    match list(arguments):
        case []:
            data = _users_folder()
        case ["--sys-prefix"]:
            data = Path(sys.prefix, "share", "jupyter")
        case ["--prefix", folder]:
            data = Path(folder, "share", "jupyter")
        case _:
            print(_USAGE, file=sys.stderr)
            return 2
    place = data / "kernels" / NAME
    try:
        place.mkdir(parents=True, exist_ok=True)
        (place / "kernel.json").write_text(json.dumps(kernel_spec(), indent=1) + "\n")
    except OSError as error:
        print(f"the kernel cannot be written to {place}: {error.strerror}", file=sys.stderr)
        return 1
    print(f"the kernel {NAME!r} is in {place}")
    return 0
