"""The pages of JAX's documentation, cell by cell, on JAX and on maxjax:

    python -m compat.jax_pages CHECKOUT [PART ...] [--show]     pages whose names contain a part

Each page runs in a process of its own on each library. What a cell prints, the text of its last
expression and what it raises are compared. Cells that fail on JAX for a name or a module that is
not there do not count.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from compat import ROOT

LIBRARIES = ("jax", "maxjax")
# What needs accelerators or packages that are not there, runs for long, or is for developers.
LEFT_OUT = ("pallas/", "changelog", "CHANGELOG", "contributing", "developer", "cute_dsl",
            "installation", "tfds", "Neural_Network_and", "colocated", "host-offloading", "jax2tf",
            "profiling", "README", "gpu", "investigating", "multiprocess", "multi_process")
CELL_SECONDS, PAGE_SECONDS = 60, 300

_FENCED = re.compile(r"^(?P<indent>[ ]*)(?P<fence>```+|~~~+)(?P<head>[^\n]*)\n(?P<body>.*?)"
                     r"^(?P=indent)(?P=fence)[ ]*$", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")
_TIME = re.compile(r"\d+(\.\d+)? ?(ms|us|µs|s)\b")
# Of a shell or a notebook, not of Python.
_MAGIC = re.compile(r"\s*(!|%\S)")
_NOT_THERE = ("ModuleNotFoundError", "ImportError", "NameError", "FileNotFoundError")


class Outcome(NamedTuple):
    """What a cell raised, printed, and the text of its last expression."""

    error: str | None
    printed: str
    value: str | None


class Late(BaseException):
    """A cell took too long."""


# --- a page's cells -------------------------------------------------------------------------------

def cells(text: str) -> list[str]:
    """The cells of a page in Markdown: notebooks' cells, blocks of Python, and what stands behind
    prompts, each statement a cell."""
    found: list[str] = []
    for block in _FENCED.finditer(text):
        head, body = block["head"].strip(), textwrap.dedent(block["body"])
        if head.startswith("{code-cell}"):
            found.append(_without_options(body))
        elif ">>>" in body and (not head or head.startswith("python")):
            found += _behind_prompts(body)
        elif head.startswith(("py", "Python")):
            found.append(body)
    return found


def _without_options(body: str) -> str:
    lines = body.splitlines()
    while lines and (lines[0].startswith(":") or not lines[0].strip()):
        lines.pop(0)
    if lines and lines[0].strip() == "---":
        lines = lines[lines.index("---", 1) + 1:]
    return "\n".join(lines)


def _behind_prompts(body: str) -> list[str]:
    statements: list[list[str]] = []
    for line in map(str.rstrip, body.splitlines()):
        prompt, text = line[:3], line[4:]
        if prompt == ">>>":
            statements.append([text])
        elif prompt == "..." and statements:
            statements[-1].append(text)
    return ["\n".join(lines) for lines in statements]


def examine(source: str, space: dict[str, Any]) -> Outcome | None:
    """Runs a cell in this process; None if it is not Python."""
    try:
        body = ast.parse("\n".join("pass" if _MAGIC.match(line) else line
                                   for line in source.splitlines())).body
    except SyntaxError:
        return None
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, error, value = io.StringIO(), None, None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), "<cell>", "exec"), space)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
            importlib.import_module("jax").effects_barrier()
    except BaseException as raised:
        error = f"{type(raised).__name__}: {raised}"
    return Outcome(error, printed.getvalue(), None if value is None else repr(value))


def work(library: str, page: Path, results: Path) -> None:
    """Runs a page in this process, which ends with it."""
    if library == "maxjax":
        importlib.import_module("maxjax.__main__").install()

    def late(*_: Any) -> None:
        raise Late

    signal.signal(signal.SIGALRM, late)
    importlib.import_module("jax")      # real JAX draws numbers while it is imported
    np.random.seed(0)
    text = page.read_text()
    space: dict[str, Any] = {"__name__": "__main__"}
    if "{code-cell}" not in text:       # pages of prompts take these names for granted
        exec("import jax, jax.numpy as jnp, numpy as np\n"
             "from jax import grad, jit, lax, random, vmap", space)
    outcomes: list[Outcome | None] = []
    for source in cells(text):
        signal.alarm(CELL_SECONDS)
        try:
            outcomes.append(examine(source, space))
        finally:
            signal.alarm(0)
        results.write_text(json.dumps(outcomes))
    sys.stdout.flush()
    os._exit(0)     # whatever threads the page has left


def run(page: Path, folder: Path, library: str) -> list[Outcome | None]:
    """A page's outcomes on a library, as far as it came."""
    results = folder / f"{library}.json"
    results.write_text("[]")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu",
                   "MAXJAX_COMPILE": os.environ.get("MAXJAX_COMPILE", "never")}
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run([sys.executable, "-m", "compat.jax_pages", "--worker", library, str(page),
                        str(results)], env=environment, cwd=folder, timeout=PAGE_SECONDS,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return [None if found is None else Outcome(*found)
            for found in json.loads(results.read_text())]


# --- comparing ------------------------------------------------------------------------------------

def compared(ours: Outcome, theirs: Outcome) -> str:
    """"same", "digits" if only the last digits of numbers differ, or "other"."""
    kinds = {_compared(*pair) for pair in zip(ours, theirs, strict=True)}
    return next(kind for kind in ("other", "digits", "same") if kind in kinds)


def _compared(ours: str | None, theirs: str | None) -> str:
    if ours is None or theirs is None:
        return "same" if ours is theirs else "other"
    ours, theirs = _stable(ours), _stable(theirs)
    if ours == theirs:
        return "same"
    texts = [_NUMBER.sub("#", "".join(text.split())) for text in (ours, theirs)]
    numbers = [np.array(_NUMBER.findall(text), float) for text in (ours, theirs)]
    if texts[0] == texts[1] and np.allclose(*numbers, rtol=1e-5, atol=1e-6):
        return "digits"
    return "other"


def _stable(text: str) -> str:
    """Without addresses, times, and the names of modules."""
    text = re.sub(r"0x[0-9a-f]+", "0x", text).replace("maxjax._runtime.array", "jaxlib._jax")
    return " ".join(_TIME.sub("time", text.replace("maxjax", "jax")).split())


def counts(outcomes: Sequence[tuple[Outcome | None, Outcome | None]]) -> Counter[str]:
    """How many cells' pairs, ours first, are of each kind."""
    return Counter(
        "none" if ours is None else compared(ours, theirs) for ours, theirs in outcomes
        if theirs is not None and not (theirs.error or "").startswith((*_NOT_THERE, "Late")))


# --- the command ----------------------------------------------------------------------------------

def pages(checkout: Path, parts: Sequence[str]) -> list[Path]:
    """The pages that have cells, but for those left out, and of these the ones asked for."""
    return [page for page in sorted((checkout / "docs").rglob("*.md"))
            if not any(word in str(page.relative_to(checkout)) for word in LEFT_OUT)
            and (not parts or any(part in str(page) for part in parts))
            and cells(page.read_text())]


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments[:1] == ["--worker"]:
        work(arguments[1], Path(arguments[2]), Path(arguments[3]))
    made = argparse.ArgumentParser(prog="python -m compat.jax_pages", description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("checkout", type=Path, help="of JAX's repository")
    made.add_argument("parts", nargs="*", metavar="PART", help="of the pages' names")
    made.add_argument("--show", action="store_true", help="print each cell that differs")
    options = made.parse_args(arguments)
    total: Counter[str] = Counter()
    for page in pages(options.checkout.resolve(), options.parts):
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = (run(page, Path(folder), name) for name in reversed(LIBRARIES))
        # A page that ended maxjax's process has no outcomes from there on.
        pairs = list(zip([*ours, *[None] * (len(theirs) - len(ours))], theirs, strict=False))
        found = counts(pairs)
        total += found
        print(f"{page.relative_to(options.checkout.resolve() / 'docs')!s:60} "
              f"{found.total()} cells  {_words(found)}", flush=True)
        if options.show:
            for source, pair in zip(cells(page.read_text()), pairs, strict=False):
                if counts([pair]).keys() - {"same"}:
                    print(f"---\n{source}\nmaxjax: {pair[0]}\nJAX: {pair[1]}\n", flush=True)
    print(f"{total.total()} cells  {_words(total)}")
    return 0


def _words(found: Counter[str]) -> str:
    return "  ".join(f"{kind} {found[kind]}" for kind in ("same", "digits", "other", "none"))


if __name__ == "__main__":
    raise SystemExit(main())
