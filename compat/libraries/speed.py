"""``python -m compat.libraries.speed``: programs of libraries, timed on JAX and on maxjax in turns.

The table replaces the one in docs/libraries.md. maxjax's kernel pack is there, and no other kernel
when a program starts: each gets a copy of a folder with the pack alone. JAX has no persistent cache
either.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from compat import ROOT, state
from compat.libraries import programs, section

ENDS = "<!-- the libraries' speed -->", "<!-- end of the libraries' speed -->"
_LIMIT = 300.0       # seconds for a process


def timed(name: str, seconds: float, ours: bool, cache: str) -> dict[str, float] | str:
    """What `programs` prints of one program, or the last line of its error."""
    command = [sys.executable, *(["-m", "maxjax"] if ours else []), "-m",
               "compat.libraries.programs", name, str(seconds)]
    # "auto": what users get. `compat` has its processes interpret.
    variables = {**os.environ, "MAXJAX_COMPILE": "auto", "MAXJAX_CACHE_DIR": cache,
                 "MAXJAX_DETACHED_BUILDS": "0"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True,
                              timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        return f"more than {_LIMIT:.0f} s"
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2]
    found: dict[str, float] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found


def row(name: str, ours: Any, theirs: Any) -> list[str]:
    if isinstance(ours, str) or isinstance(theirs, str):
        return [name.replace("_", " "), *(x if isinstance(x, str) else "" for x in (ours, theirs))]
    return [name.replace("_", " "),
            f"{ours['first'] / theirs['first']:.2f} ({ours['first']:.1f} s / "
            f"{theirs['first']:.1f} s)",
            f"{ours['call'] / theirs['call']:.2f} ({1e3 * ours['call']:.2f} ms / "
            f"{1e3 * theirs['call']:.2f} ms)"]


def write(rows: list[list[str]], load: float) -> None:
    made = state.provenance()
    lines = [
        ENDS[0], "## Speed", "",
        "`python -m compat.libraries.speed`, in the environment of `make libraries`: maxjax's time "
        "/ JAX's, with the kernel pack there and at first no other kernel. First: from the "
        "process' start to the first result; a call: each one after that.",
        f"Run on {made['day']}, from commit {made['commit']}, with {made['versions']}, on "
        f"{made['machine']}, at a load of {load:.1f}.", "",
        "| program | first | a call |", "| --- | --- | --- |",
        *(f"| {' | '.join(cells)} |" for cells in rows), ENDS[1]]
    section.PAGE.write_text(section.placed(section.PAGE.read_text(), "\n".join(lines), ENDS))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m compat.libraries.speed")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(programs.PROGRAMS))
    parser.add_argument("--seconds", type=float, default=2.0, help="of calls, for each program")
    parser.add_argument("--pack", type=Path, help="a folder with the kernel pack, and nothing else")
    parser.add_argument("--no-page", action="store_true", help="only print the table")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        pack, cache = options.pack or Path(folder) / "pack", Path(folder) / "cache"
        subprocess.run([sys.executable, "-m", "maxjax", "--prepare"], cwd=ROOT, check=True,
                       env={**os.environ, "MAXJAX_CACHE_DIR": str(pack)})
        for name in options.names or programs.PROGRAMS:
            shutil.copytree(pack, cache)
            rows.append(row(name, *(timed(name, options.seconds, ours, str(cache))
                                    for ours in (True, False))))
            shutil.rmtree(cache)
    table = Table("program", "first", "a call", title="maxjax / JAX")
    for cells in rows:
        table.add_row(*cells)
    Console().print(table)
    if not options.no_page and not options.names:
        write(rows, load)


if __name__ == "__main__":
    main()
