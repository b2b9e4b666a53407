"""The examples in the docstrings of JAX's public objects, on JAX and on maxjax.

An example counts where it passes on JAX itself, as its own documentation runs it. The text is that
of the installed JAX, for both; the names it sees are ``jax``, ``jnp``, ``lax``, ``np``, ``partial``
and those of the module that its object is public in. There are eight devices, as examples of
shardings need.
"""

from __future__ import annotations

import argparse
import doctest
import functools
import importlib
import inspect
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compat import ROOT, surface
from compat.jax_tests import records

FILE = "docstrings"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LIBRARIES = ("jax", "maxjax")


def texts() -> dict[str, str]:
    """The docstrings with examples, by a public name; each once, whatever else it is called."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for name, text in _documented():
        if ">>>" in text and text not in seen:
            seen.add(text)
            found[name] = text
    return found


def _documented() -> Iterator[tuple[str, str]]:
    for module_name in surface.MODULES:
        module = importlib.import_module(module_name)
        yield module_name, inspect.getdoc(module) or ""
        for name in dir(module):
            value = getattr(module, name, None)
            home = str(getattr(value, "__module__", "")).partition(".")[0]
            if name.startswith("_") or home not in ("jax", "jaxlib"):
                continue
            # Of instances the class's docstring, which is not about them, does not count.
            yield f"{module_name}.{name}", value.__doc__ or "" if callable(value) else ""
            if inspect.isclass(value):
                yield from ((f"{module_name}.{name}.{method}", inspect.getdoc(part) or "")
                            for method, part in vars(value).items() if not method.startswith("_"))


def module_of(name: str) -> str:
    """The public module that an object is in."""
    return max((module for module in surface.MODULES
                if name == module or name.startswith(module + ".")), key=len)


def examine(name: str, text: str) -> str | None:
    """Runs an object's examples in this process: what went wrong, or None."""
    spaces: dict[str, Any] = {"partial": functools.partial}
    for module in ("numpy", "jax", "jax.numpy", "jax.lax"):
        short = {"numpy": "np", "jax.numpy": "jnp", "jax.lax": "lax"}.get(module, module)
        spaces[short] = importlib.import_module(module)
    try:
        home = importlib.import_module(module_of(name))
    except ImportError as error:
        return str(error)
    spaces = {**{key: getattr(home, key) for key in dir(home) if not key.startswith("_")},
              **spaces}
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(text), spaces, name, None, 0)
    report = io.StringIO()
    doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=report.write)
    return report.getvalue() or None


def work(library: str, results: Path) -> int:
    """Runs the names and texts of standard input, a line of JSON each, in this process."""
    if library == "maxjax":
        importlib.import_module("maxjax.__main__").install()
    for line in sys.stdin:
        name, text = json.loads(line)
        problem = examine(name, text)
        with open(results, "a") as stream:
            stream.write(json.dumps({"id": name, "problem": problem}) + "\n")
    return 0


def _outcomes(library: str, chosen: dict[str, str], results: Path,
              options: argparse.Namespace) -> dict[str, str | None]:
    """What each docstring gave on a library; one that ends its process is said to have."""
    results.unlink(missing_ok=True)
    outcomes: dict[str, str | None] = {}
    waiting = dict(chosen)
    while waiting:
        command = [sys.executable, "-m", __name__, library, str(results)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu",
                       "JAX_NUM_CPU_DEVICES": "8", "MAXJAX_COMPILE": options.compile}
        reason = "the process died"
        try:
            subprocess.run(command, env=environment, text=True, cwd=results.parent,
                           input="".join(json.dumps(pair) + "\n" for pair in waiting.items()),
                           timeout=options.file_seconds, stdout=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            reason = "it took too long"
        outcomes |= {line["id"]: line["problem"] for line in records.lines_of(results)}
        waiting = {name: text for name, text in chosen.items() if name not in outcomes}
        if waiting:      # the first of them did it
            outcomes[next(iter(waiting))] = reason
            del waiting[next(iter(waiting))]
    return outcomes


def run(names: Sequence[str], options: argparse.Namespace) -> None:
    """Runs the examples of those names, or all, and keeps what maxjax made of them.

    Raises:
      ValueError: a name has no examples.
    """
    found = texts()
    for name in names:
        if name not in found:
            raise ValueError(f"JAX's docstring of {name!r} has no examples, or is another's too")
    chosen = {name: found[name] for name in names or found}
    on_jax = _outcomes("jax", chosen, options.results / "docstrings.jax", options)
    good = {name: text for name, text in chosen.items() if on_jax[name] is None}
    print(f"{FILE}: of {len(chosen)} objects with examples {len(good)} pass on JAX")
    ours = _outcomes("maxjax", good, options.results / "docstrings.maxjax", options)
    lines = [{"id": name, "outcome": "failed" if ours[name] else "passed",
              **({"type": "Docstring", "message": ours[name]} if ours[name] else {})}
             for name in good]
    (options.results / f"{FILE}.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    raise SystemExit(work(sys.argv[1], Path(sys.argv[2])))
