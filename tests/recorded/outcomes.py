"""Recorded outcomes: what lines of Python give in JAX, to be given by maxjax.

A file is about one subject::

    # prose
    ! statements that the lines below need
    expression
        with jax.enable_x64(True)
        -> what JAX gives: what is printed, and the value or the error
         | further lines of it
        differs: why maxjax gives something else
        here -> what it gives

``with`` and ``differs`` are rare. All files run with 8 devices and these names: ``jax``, ``jnp``,
``lax``, ``np``, ``S``, which is the module ``sharding``, its classes, ``P``, and ``module``, which
imports more. Each file has a process of its own: devices are counted when a library starts.

    python -m tests.recorded [NAME ...]      # asks JAX and maxjax again, and writes the files anew
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from tests import ROOT
from tests.support import neighbours

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))
CLASSES = ("AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec",
           "SingleDeviceSharding")
MODULES = ("random", "nn", "tree", "tree_util", "dtypes", "ops")
WITH, JAX, DIFFERS, HERE = "    with ", "    -> ", "    differs: ", "    here -> "
MORE = "     | "


@dataclasses.dataclass
class Line:
    """An expression, or statements, with outcomes.

    Attributes:
      comment: the prose and blank lines above it.
      code: what is run, several lines for statements.
      statement: whether it has no value; then ``jax`` is empty unless it raises.
      context: what it is run under, an expression.
      jax, here: what JAX gives, and maxjax where that differs.
      reason: why it differs.
    """

    comment: list[str]
    code: str
    statement: bool
    context: str = ""
    jax: str = ""
    here: str = ""
    reason: str = ""


def read(name: str) -> list[Line]:
    """The lines of a file, in order."""
    lines: list[Line] = []
    comment: list[str] = []
    last = ""       # the field that a continued line belongs to
    for text in (FOLDER / f"{name}.txt").read_text().split("\n")[:-1]:
        if text.startswith((MORE, MORE.rstrip())):
            field = getattr(lines[-1], last)
            setattr(lines[-1], last, f"{field}\n{text[len(MORE):]}")
        elif text.startswith("    "):
            start, last = next((start, field) for start, field in (
                (WITH, "context"), (JAX, "jax"), (HERE, "here"), (DIFFERS, "reason"))
                if text.startswith(start))
            setattr(lines[-1], last, text[len(start):])
        elif text.startswith("!"):
            code = text[2:]
            if last == "code" and lines[-1].statement and not comment:
                lines[-1].code += f"\n{code}"
            else:
                lines.append(Line(comment, code, True))
                comment, last = [], "code"
        elif not text or text.startswith("#"):
            comment.append(text)
        else:
            lines.append(Line(comment, text, False))
            comment, last = [], "code"
    assert not comment, f"{name}.txt ends with prose"
    return lines


def write(name: str, lines: list[Line]) -> None:
    """What ``read`` reads."""
    def outcome(start: str, text: str) -> list[str]:
        first, *rest = text.split("\n")
        return [start + first, *((MORE + more).rstrip(" ") if not more else MORE + more
                                 for more in rest)]

    texts: list[str] = []
    for line in lines:
        texts += line.comment
        texts += [f"! {code}".rstrip(" ") for code in line.code.split("\n")] if (
            line.statement) else [line.code]
        if line.context:
            texts.append(WITH + line.context)
        if line.jax:
            texts += outcome(JAX, line.jax)
        if line.reason:
            texts.append(DIFFERS + line.reason)
            texts += outcome(HERE, line.here)
    (FOLDER / f"{name}.txt").write_text("\n".join([*texts, ""]))


# --- running --------------------------------------------------------------------------------------

def namespace(library: str) -> dict[str, Any]:
    import numpy as np

    jax = importlib.import_module(library)
    for name in MODULES:
        importlib.import_module(f"{library}.{name}")
    sharding = importlib.import_module(f"{library}.sharding")
    return {"jax": jax, "jnp": importlib.import_module(f"{library}.numpy"),
            "lax": importlib.import_module(f"{library}.lax"), "np": np, "S": sharding,
            **{name: getattr(sharding, name) for name in CLASSES}, "P": sharding.PartitionSpec,
            "module": lambda name: importlib.import_module(f"{library}.{name}")}


def outcome_of(line: Line, names: dict[str, Any]) -> str:
    """What a line gives: its value as printed, or its error, after what it prints itself.

    Without addresses and the lines of the library's files.
    """
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context = eval(line.context, names) if line.context else contextlib.nullcontext()
        try:
            with context:
                if line.statement:
                    exec(line.code, names)
                    value = ""
                else:
                    value = repr(eval(line.code, names))
        except Exception as error:
            value = f"{type(error).__name__}: {error}"
    text = re.sub(r" at (0x[0-9a-f]+|/\S+\.py:\d+)", "", printed.getvalue() + value)
    return re.sub(r"0x[0-9a-f]{6,}", "0x0", text)


def run(library: str, name: str) -> list[str]:
    """What each line of a file gives in a library, in this process."""
    if library == "maxjax" and "NEIGHBOURS" in os.environ:
        neighbours.install()
    names = namespace(library)
    return [outcome_of(line, names) for line in read(name)]


def outcomes(library: str, name: str) -> list[str]:
    """What each line of a file gives in a library, in a process with 8 devices."""
    environment = {**os.environ, "MAXJAX_COMPILE": "never", "JAX_PLATFORMS": "cpu",
                   "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
                   "PYTHONHASHSEED": "0"}      # sets print in one order
    done = subprocess.run([sys.executable, "-m", "tests.recorded", "--run", library, name],
                          cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def record(name: str) -> None:
    """Writes a file anew, with what JAX gives now, and maxjax where it differs."""
    lines = read(name)
    theirs = outcomes("jax", name)
    ours = outcomes("maxjax", name) if any(line.reason for line in lines) else theirs
    for line, jax, here in zip(lines, theirs, ours, strict=True):
        line.jax, line.here = jax, here
    write(name, lines)
