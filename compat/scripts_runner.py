"""Whole scripts, unchanged, on real JAX and on maxjax: what they print is compared.

Comment lines at the top of a script say what the comparison must know::

    # needs: jax.custom_vjp
    # tolerance: 1e-3 (60 steps of training amplify the rounding)
    # absolute: 1e-6 (residuals near zero)
    # libraries: flax optax

The relative tolerance is 1e-5 and the absolute one 0 where nothing is said. A script that *needs*
what maxjax does not have yet is "waiting": it must run on JAX, and fail on maxjax for that reason;
once it passes, the run fails until the comment is gone. A script of *libraries* that are not
installed is "skipped"; `make library-scripts` makes an environment with all of them.

    python -m compat scripts [NAME ...] [--interpreted | --compiled] [--fresh] [--write]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "compat" / "scripts"
MODES = {"auto": "auto", "interpreted": "never", "compiled": "always"}
SECONDS = {"auto": 300.0, "interpreted": 300.0, "compiled": 900.0}
SECONDS_OF_JAX = 300.0


# --- scripts --------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Script:
    """A script, and what its comments say of the comparison."""

    path: Path
    text: str
    needs: str | None = None
    tolerance: float = 1e-5
    absolute: float = 0.0
    libraries: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """Its libraries that are not installed."""
        return [name for name in self.libraries if not _version(name)]

    @property
    def name(self) -> str:
        return self.path.stem


def read_script(path: Path) -> Script:
    """Reads a script with its header.

    Raises:
      ValueError: a tolerance other than the usual one comes without a reason in parentheses.
    """
    script = Script(path, path.read_text(encoding="utf-8"))
    for line in script.text.splitlines():
        libraries = re.fullmatch(r"# libraries: (.+)", line)
        if libraries is not None:
            script = replace(script, libraries=tuple(libraries.group(1).split()))
            continue
        found = re.fullmatch(r"# (needs|tolerance|absolute): (\S+)(?: \((.+)\))?", line)
        if found is None:
            break
        key, value, reason = found.groups()
        if key == "needs":
            script = replace(script, needs=value)
        elif reason is None:
            raise ValueError(f"{path.name}: {line!r} gives no reason in parentheses")
        elif key == "tolerance":
            script = replace(script, tolerance=float(value))
        else:
            script = replace(script, absolute=float(value))
    return script


def all_scripts(names: Iterable[str] = ()) -> list[Script]:
    """The scripts of those names; all when none is given.

    Raises:
      ValueError: there is no script of that name.
    """
    paths = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
    wanted = list(names) or list(paths)
    for name in wanted:
        if name not in paths:
            raise ValueError(f"no script {name!r} in {FOLDER.name}/: {', '.join(paths)}")
    return [read_script(paths[name]) for name in wanted]


# --- comparison -----------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"(?P<number>(?<![\w.])[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf)(?=j?(?![\w.]|\.\d)))"
    r"|[A-Za-z_]\w*|\S", re.IGNORECASE)


def tokens(line: str) -> list[tuple[str, float | int | None]]:
    """A line's words, signs and numbers, with the numbers' values."""
    found: list[tuple[str, float | int | None]] = []
    for match in _TOKEN.finditer(line):
        text = match.group()
        number: float | int | None = None
        if match.group("number") is not None:
            number = int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
        found.append((text, number))
    return found


def _close(actual: float | int, expected: float | int, script: Script) -> bool:
    if isinstance(actual, int) or isinstance(expected, int):
        return type(actual) is type(expected) and actual == expected
    if not (math.isfinite(actual) and math.isfinite(expected)):
        return actual == expected or (math.isnan(actual) and math.isnan(expected))
    allowed = script.absolute + script.tolerance * min(abs(actual), abs(expected))
    return abs(actual - expected) <= allowed


def _lines(text: str) -> list[str]:
    """Lines; those of one printed array are one, as its width decides where it is broken."""
    found: list[str] = []
    is_open = False
    for line in text.splitlines():
        if is_open:
            found[-1] += "\n" + line
        else:
            found.append(line)
        is_open = found[-1].count("[") > found[-1].count("]")
    return found


def first_difference(actual: str, expected: str, script: Script) -> str | None:
    """The first line of ``actual`` that is not as in ``expected``; None when there is none."""
    left, right = _lines(actual), _lines(expected)
    for number in range(max(len(left), len(right))):
        if number >= len(left) or number >= len(right):
            more = (left if number < len(left) else right)[number]
            who = "only maxjax" if number < len(left) else "only JAX"
            return f"line {number + 1}: {who} prints {more!r}"
        ours, theirs = tokens(left[number]), tokens(right[number])
        same = len(ours) == len(theirs) and all(
            a == e if x is None or y is None else _close(x, y, script)
            for (a, x), (e, y) in zip(ours, theirs))
        if not same:
            return f"line {number + 1}: {left[number]!r}, in JAX {right[number]!r}"
    return None


# --- running --------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Run:
    """What one process printed, and how it ended; its exit code is None where it took too long."""

    output: str
    errors: str
    code: int | None
    seconds: float

    @property
    def last_error(self) -> str:
        lines = self.errors.strip().splitlines()
        return "took too long" if self.code is None else lines[-1] if lines else f"exit {self.code}"


def run_process(arguments: Sequence[str], variables: dict[str, str], timeout: float) -> Run:
    """Runs Python in a temporary working directory."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **variables}
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        try:
            done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment,
                                  text=True, capture_output=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return Run("", "", None, time.perf_counter() - started)
        return Run(done.stdout, done.stderr, done.returncode, time.perf_counter() - started)


def run_maxjax(script: Script, mode: str = "auto", seconds: float | None = None) -> Run:
    """Runs a script through ``python -m maxjax``, for at most so many seconds."""
    return run_process(["-m", "maxjax", str(script.path)], {"MAXJAX_COMPILE": MODES[mode]},
                       seconds or SECONDS[mode])


def run_jax(script: Script, cached: bool = True) -> Run:
    """Runs a script on JAX, or tells what it printed when it last ran."""
    kept = _cache_folder() / f"{_digest(script)}.json"
    if cached and kept.exists():
        return Run(**json.loads(kept.read_text()))
    run = run_process([str(script.path)], {}, SECONDS_OF_JAX)
    if run.code == 0:
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(asdict(run)))
        partial.replace(kept)
    return run


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "maxjax-compat" / "scripts"


def _version(package: str) -> str:
    """Its version; empty where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _digest(script: Script) -> str:
    """Names all that JAX's output depends on."""
    digest = hashlib.sha256(script.text.encode())
    for path in sorted((script.path.parent / "data").glob("*")):
        digest.update(path.read_bytes())
    for package in ("jax", "jaxlib", "numpy", *script.libraries):
        digest.update(_version(package).encode())
    digest.update(sys.version.encode())
    return digest.hexdigest()


# --- results --------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Record:
    """One script's row of the matrix; ``state`` is "pass", "fail", "waiting" or "skipped"."""

    name: str
    state: str
    seconds_jax: float
    seconds_maxjax: float
    detail: str

    @property
    def ratio(self) -> float:
        return self.seconds_maxjax / self.seconds_jax if self.seconds_jax else 0.0


def judge(script: Script, jax: Run, ours: Run) -> Record:
    """Compares two runs of a script."""
    if jax.code != 0:
        state, detail = "fail", f"fails on JAX: {jax.last_error}"
    elif ours.code != 0:
        lacking = script.needs is not None and script.needs.split(".")[-1] in ours.last_error
        state, detail = ("waiting" if lacking else "fail"), ours.last_error
        if lacking:
            detail = f"needs {script.needs}"
    else:
        difference = first_difference(ours.output, jax.output, script)
        state, detail = ("pass", "") if difference is None else ("fail", difference)
        if script.needs is not None:
            state = "fail"
            detail = difference or f"it passes: remove its comment `needs: {script.needs}`"
    return Record(script.name, state, jax.seconds, ours.seconds, detail)


def run_all(names: Iterable[str] = (), mode: str = "auto", cached: bool = True,
            report: Callable[[Record], None] | None = None,
            seconds: float | None = None) -> list[Record]:
    """Runs scripts one after the other.

    Args:
      names: which scripts; all when none is given.
      mode: "auto", "interpreted" (tier 0 only) or "compiled" (waits for the compiler).
      cached: JAX's output (and its time) may be that of an earlier run.
      report: is given each record as soon as it is known.
      seconds: a script's limit on maxjax; the mode's where it is None.
    """
    records = []
    for script in all_scripts(names):
        if script.missing:
            detail = f"not installed: {', '.join(script.missing)}"
            record = Record(script.name, "skipped", 0.0, 0.0, detail)
        else:
            record = judge(script, run_jax(script, cached), run_maxjax(script, mode, seconds))
        records.append(record)
        if report is not None:
            report(record)
    return records


def _print(record: Record) -> None:
    print(f"{record.state:8}{record.name:28}{record.seconds_jax:7.2f} s"
          f"{record.seconds_maxjax:7.2f} s{record.ratio:7.2f}  {record.detail}", flush=True)


def main(arguments: Sequence[str]) -> list[Record]:
    """Runs the scripts that the arguments name, prints a line for each, and gives the records."""
    parser = argparse.ArgumentParser("compat.scripts_runner", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--interpreted", action="store_true", help="tier 0 only")
    parser.add_argument("--compiled", action="store_true", help="wait for the compiler")
    parser.add_argument("--libraries", action="store_true", help="only those that use libraries")
    parser.add_argument("--fresh", action="store_true", help="run JAX too, whatever is kept")
    parser.add_argument("--seconds", type=float, help="limit of a script on maxjax")
    parser.add_argument("--write", action="store_true", help="put the rows into the matrix")
    options = parser.parse_args(arguments)
    mode = "compiled" if options.compiled else "interpreted" if options.interpreted else "auto"
    print(f"{'state':8}{'script':28}{'JAX':>9}{'maxjax':>9}{'ratio':>7}")
    names = options.names
    if options.libraries:
        names = [script.name for script in all_scripts(names) if script.libraries]
    records = run_all(names, mode, not options.fresh, _print, options.seconds)
    states = [record.state for record in records]
    kinds = ("pass", "waiting", "skipped", "fail")
    print(", ".join(f"{states.count(state)} {state}" for state in kinds))
    return records


if __name__ == "__main__":
    sys.exit(any(record.state == "fail" for record in main(sys.argv[1:])))
