"""Tries maxjax on this machine's accelerator, and writes one report, in ten minutes at most.

    python -m tools.try_accelerator [--report FILE] [--seconds SECONDS]

It runs the case tables' programs and compares them with the CPU's results, trains networks, runs
example scripts, and times some programs: on the accelerator, on the CPU, and with JAX on the same
accelerator where it is installed for it. Each part is a process of its own, which writes down what
it finds as it goes: one that crashes or takes too long costs the rest of its own findings only.

Without an accelerator it says so; with MAXJAX_SIMULATED_ACCELERATORS=1 it tries itself on a
simulated one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
# What share of the time each part may take.
SHARES = {"cases": 0.4, "training": 0.2, "examples": 0.1, "speed": 0.3}
# Example scripts, as users start them.
EXAMPLES = (("digits.py", "--model", "mlp", "--steps", "60"), ("dynamic_batches.py",),
            ("language_model.py", "--steps", "20"))
# Up to so many cases are compiled as one program: most of a compile does not depend on its size.
TOGETHER = 16
RUNS, STEPS = 20, 20
# Products of float32 are to agree with the CPU's.
PRECISION = "highest"
# Processes that try the case tables: compiling takes a core each, and a gigabyte.
CASE_PROCESSES = max(1, min(8, (os.cpu_count() or 1) // 2))

Row = dict[str, Any]


# --- what is tried, in processes of their own -----------------------------------------------------

def find() -> Iterator[Row]:
    """The accelerators."""
    import maxjax as jax

    for device in jax.devices("gpu"):
        memory = device.accelerator
        assert memory is not None
        yield {"device": str(device), "kind": device.device_kind, "target": memory.target,
               "simulated": memory.is_simulated,
               "bytes": (device.memory_stats() or {}).get("bytes_limit")}


def cases(number: str = "0", of: str = "1") -> Iterator[Row]:
    """Programs of the case tables: the first of each family, then the others in turn.

    Every ``of``-th of them, from ``number`` on.
    """
    from tests.support import harness

    families = [[case for case in found if case.jittable and not case.raises]
                for found in harness.families().values() if not isinstance(found, Exception)]
    longest = max(map(len, families))
    ordered = [(family[number], number == 0) for number in range(longest) for family in families
               if number < len(family)]
    yield {"of": len(ordered)}
    ordered = ordered[int(number)::int(of)]
    for x64 in (False, True):
        first = [case for case, is_first in ordered if is_first and case.x64 == x64]
        yield from _together(first)
    for x64 in (False, True):
        rest = [case for case, is_first in ordered if not is_first and case.x64 == x64]
        yield from _together(rest)


def _together(chosen: list[Any]) -> Iterator[Row]:
    """Few at first, so that a slow machine finds out something."""
    start, count = 0, 2
    while start < len(chosen):
        group = chosen[start:start + count]
        with group[0].precision():
            yield from _compared(group)
        start, count = start + count, min(2 * count, TOGETHER)


def _compared(group: list[Any]) -> Iterator[Row]:
    """Runs some cases as one program; one by one where that fails."""
    import maxjax as jax
    from maxjax._base import config
    from maxjax._runtime import on_device
    from tests.support import harness

    operands = [[jax.numpy.asarray(arg) for arg in case.args] for case in group]
    device = jax.devices("gpu")[0]
    there = jax.device_put(operands, device)
    with config.compile_mode("never"), jax.default_device(jax.devices("cpu")[0]):
        expected = [jax.tree.leaves(jax.jit(case.on(jax))(*given))
                    for case, given in zip(group, operands, strict=True)]
    function = jax.jit(lambda given: [
        case.on(jax)(*args) for case, args in zip(group, given, strict=True)])
    started = time.perf_counter()
    try:
        with config.compile_mode("always"), jax.default_matmul_precision(PRECISION):
            results = [jax.tree.leaves(tree) for tree in function(there)]
            found = [[x.host() for x in leaves] for leaves in results]
    except Exception as error:
        if len(group) > 1:
            for case in group:
                yield from _compared([case])
        else:
            yield {"case": group[0].name, "outcome": "error",
                   "why": f"{type(error).__name__}: {error}"[:300]}
        return
    seconds = time.perf_counter() - started
    with jax.default_matmul_precision(PRECISION):
        program = on_device.explained(
            function._lookup((there,), {}).closed, jax.tree.leaves(there))
    state = program.state if program is not None else "host"
    for case, ours, theirs in zip(group, found, expected, strict=True):
        row = {"case": case.name, "state": state, "seconds": seconds / len(group)}
        if state == "failed":
            row |= {"outcome": "not compiled", "why": str(program and program.reason)[:300]}
        else:
            row |= _judged(harness, case, ours, [x.host() for x in theirs])
        yield row


def _judged(harness: Any, case: Any, ours: list[Any], theirs: list[Any]) -> Row:
    try:
        for x, y in zip(ours, theirs, strict=True):
            harness.assert_close(x, y, case.tolerance, signed_zeros=case.signed_zeros)
    except AssertionError as error:
        return {"outcome": "differs", "why": str(error)[:300]}
    return {"outcome": "agrees"}


def training(library: str, where: str) -> Iterator[Row]:
    """Steps of networks: the losses, and how long a step takes."""
    from benchmarks.models import TRAIN_STEPS

    jax = importlib.import_module(library)
    device = jax.devices(where)[0]
    # Convolutions are compiled longest.
    for name in sorted(TRAIN_STEPS, key="cnn".__eq__):
        step, arguments = TRAIN_STEPS[name](jax, 64)
        arguments = jax.device_put(arguments, device)
        losses, times = [], []
        for _ in range(STEPS):
            started = time.perf_counter()
            loss, *state = step(*arguments)
            losses.append(float(loss))
            times.append(time.perf_counter() - started)
            arguments = (*state, *arguments[len(state):])
        yield {"network": name, "losses": losses, "seconds": statistics.median(times[3:]),
               "first": times[0], **_transfers(device)}


def speed(library: str, where: str) -> Iterator[Row]:
    """Calls of jitted functions on arrays that stay where they are."""
    jax = importlib.import_module(library)
    device = jax.devices(where)[0]
    memory = getattr(device, "accelerator", None)
    is_small = where == "cpu" or memory is not None and memory.is_simulated
    for name, (function, work, unit, dtype, *shapes) in _programs(jax, is_small).items():
        generator = np.random.default_rng(0)
        arguments = jax.device_put([
            generator.standard_normal(shape, np.float32).astype(dtype) for shape in shapes], device)
        jitted = jax.jit(function)
        started = time.perf_counter()
        jax.block_until_ready(jitted(*arguments))
        first = time.perf_counter() - started
        alone, together = [], []
        for _ in range(RUNS):
            started = time.perf_counter()
            jax.block_until_ready(jitted(*arguments))
            alone.append(time.perf_counter() - started)
        for _ in range(3):
            started = time.perf_counter()
            results = [jitted(*arguments) for _ in range(RUNS)]
            jax.block_until_ready(results)
            together.append((time.perf_counter() - started) / RUNS)
            del results
        yield {"program": name, "first": first, "alone": statistics.median(alone),
               "seconds": min(together), "rate": work / min(together), "unit": unit}


def _programs(jax: Any, is_small: bool) -> dict[str, tuple[Any, ...]]:
    """By name: the function, its work (bytes read and written once, or operations) and the unit of
    that, the dtype, and shapes."""
    jnp = jax.numpy
    side = 256 if is_small else 8192
    square, bytes_ = (side, side), 4 * side * side

    def tanh(x: Any) -> Any:
        return jnp.tanh(x) * 2 + x

    def products(side: int) -> tuple[Any, ...]:
        return jnp.matmul, 2 * side ** 3, "TFLOP/s"

    f32, bf16 = jnp.float32, jnp.bfloat16
    half = side // 2
    return {
        "tanh(x) * 2 + x, 1,000": (tanh, 8000, "GB/s", f32, (1000,)),
        f"tanh(x) * 2 + x, {side} x {side}": (tanh, 2 * bytes_, "GB/s", f32, square),
        f"sum over rows, {side} x {side}": (lambda x: x.sum(1), bytes_, "GB/s", f32, square),
        f"sum over columns, {side} x {side}": (lambda x: x.sum(0), bytes_, "GB/s", f32, square),
        f"softmax, {side} x {side}": (
            lambda x: jax.nn.softmax(x), 2 * bytes_, "GB/s", f32, square),
        f"transpose and add, {side} x {side}": (
            lambda x: x.T + x, 2 * bytes_, "GB/s", f32, square),
        f"product, float32, {half} x {half}": (*products(half), f32, (half, half), (half, half)),
        f"product, bfloat16, {side} x {side}": (*products(side), bf16, square, square),
    }


def _transfers(device: Any) -> Row:
    """What a step of ours has moved; nothing for JAX, and for the CPU."""
    memory = getattr(device, "accelerator", None)
    return {} if memory is None else {
        "to_device": memory.transfers.to_device / STEPS,
        "to_host": memory.transfers.to_host / STEPS}


def examples() -> Iterator[Row]:
    """Scripts as users start them, with the accelerator as the default device."""
    environment = {**os.environ, "JAX_PLATFORMS": "cuda,cpu",
                   "PYTHONPATH": os.pathsep.join(
                       [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
                   "MAXJAX_COMPILE": "auto"}
    with tempfile.TemporaryDirectory() as folder:
        for name, *arguments in EXAMPLES:
            if name == "digits.py":
                arguments += ["--picture", str(Path(folder) / "digits.png")]
            started = time.perf_counter()
            done = subprocess.run(
                [sys.executable, str(ROOT / "examples" / name), *arguments], cwd=folder,
                env=environment, capture_output=True, text=True, check=False)
            said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
            yield {"script": name, "outcome": "runs" if done.returncode == 0 else "error",
                   "seconds": time.perf_counter() - started, "said": (said or [""])[-1][:200]}


PARTS: dict[str, Callable[..., Iterable[Row]]] = {
    "find": find, "cases": cases, "training": training, "speed": speed, "examples": examples}


# --- the processes --------------------------------------------------------------------------------

def run(part: str, seconds: float, *arguments: str) -> tuple[list[Row], str]:
    """A part's findings, and why there are no more: "" where it came to its end."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        path.touch()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "tools.try_accelerator", "--part", part, "--rows", str(path),
                 *(f"--argument={x}" for x in arguments)], cwd=ROOT, capture_output=True, text=True,
                timeout=seconds, check=False,
                env={**os.environ, **({"MAXJAX_COMPILE": "always"} if part != "cases" else {}),
                     # JAX leaves the others some of the accelerator's memory.
                     "XLA_PYTHON_CLIENT_PREALLOCATE": "false"})
            errors = [line for line in done.stderr.splitlines() if re.match(r"[\w.]+Error: ", line)]
            why = "" if done.returncode == 0 else (
                errors[-1][:300] if errors else f"it ended with exit code {done.returncode}")
        except subprocess.TimeoutExpired:
            why = f"its time was up after {seconds:.0f} s"
        return [json.loads(line) for line in path.read_text().splitlines()], why


def run_cases(seconds: float) -> tuple[list[Row], str]:
    """The case tables', by several processes."""
    with concurrent.futures.ThreadPoolExecutor(CASE_PROCESSES) as pool:
        found = list(pool.map(
            lambda number: run("cases", seconds, str(number), str(CASE_PROCESSES)),
            range(CASE_PROCESSES)))
    return ([row for rows, _ in found for row in rows],
            "; ".join(dict.fromkeys(why for _, why in found if why)))


def run_part(part: str, path: Path, arguments: list[str]) -> None:
    with path.open("a", buffering=1) as file:
        for row in PARTS[part](*arguments):
            file.write(json.dumps(row) + "\n")


# --- the report -----------------------------------------------------------------------------------

def milliseconds(rows: Iterable[Row], key: str, name: str) -> str:
    return next((f"{1000 * row['seconds']:.3g}" for row in rows if row[key] == name), "-")


def report(devices: list[Row], seconds: float) -> Iterator[str]:
    yield "# maxjax on an accelerator\n"
    for device in devices:
        memory = f", {device['bytes'] / 2**30:.0f} GiB" if device["bytes"] else ""
        yield f"- {device['device']}: {device['kind']}{memory}, {device['target']}"
    if any(device["simulated"] for device in devices):
        yield ("\n**The accelerator is simulated: a second memory on the CPU. Nothing here says "
               "anything of a GPU.**")
    yield f"\n{platform.platform()}, Python {platform.python_version()}, " + ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("max", "numpy", "jax")
        if _is_installed(name)) + f", {time.strftime('%Y-%m-%d')}\n"
    with concurrent.futures.ThreadPoolExecutor() as pool:
        # What is timed afterwards is compiled meanwhile.
        compiled = [pool.submit(run, part, SHARES["cases"] * seconds, "maxjax", "gpu")
                    for part in ("training", "speed")] if CASE_PROCESSES > 1 else []
        yield from _cases_report(*run_cases(SHARES["cases"] * seconds))
        concurrent.futures.wait(compiled)
    third = seconds / 3
    found = {}
    for part in ("training", "speed"):
        for column, library, where in (("maxjax", "maxjax", "gpu"),
                                       ("maxjax, CPU", "maxjax", "cpu"), ("JAX", "jax", "gpu")):
            if where == "cpu" and part == "speed":
                continue        # its sizes are for accelerators
            if library == "maxjax" or _is_installed("jax"):
                found[part, column] = run(part, SHARES[part] * third, library, where)
    yield from _training_report({c: rows for (p, c), rows in found.items() if p == "training"})
    yield from _speed_report({c: rows for (p, c), rows in found.items() if p == "speed"})
    yield "\n## Example scripts, the accelerator as the default\n"
    yield "| script | outcome | s | its last line |\n| --- | --- | --: | --- |"
    rows, why = run("examples", SHARES["examples"] * seconds)
    for row in rows:
        yield (f"| {row['script']} | {row['outcome']} | {row['seconds']:.1f} | "
               f"{row['said'].replace('|', chr(92) + '|')} |")
    if why:
        yield f"\nThe rest was not tried: {why}"


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _cases_report(rows: list[Row], why: str) -> Iterator[str]:
    of = next((row["of"] for row in rows if "of" in row), 0)
    rows = [row for row in rows if "case" in row]
    yield f"\n## The case tables: {len(rows)} of {of} programs, against the CPU's results\n"
    counts = {outcome: sum(row["outcome"] == outcome for row in rows)
              for outcome in ("agrees", "differs", "not compiled", "error")}
    on_host = sum(row.get("state") == "host" for row in rows)
    yield "- " + ", ".join(f"{outcome}: {count}" for outcome, count in counts.items())
    yield f"- in programs of which nothing can run there: {on_host}"
    if why:
        yield f"- the others were not tried: {why}"
    for row in rows:
        if row["outcome"] != "agrees":
            yield f"- {row['case']}: {row['outcome']}: {' '.join(row['why'].split())}"


def _training_report(found: dict[str, tuple[list[Row], str]]) -> Iterator[str]:
    yield "\n## Training steps, batch 64, ms\n"
    yield from _table("network", found)
    there, here = (found[column][0] for column in ("maxjax", "maxjax, CPU"))
    for row in there:
        other = next((x for x in here if x["network"] == row["network"]), None)
        if other is not None:
            worst = max(abs(a - b) / max(abs(b), 1e-6) for a, b in zip(
                row["losses"], other["losses"], strict=True))
            yield (f"- {row['network']}: the losses differ from the CPU's by at most {worst:.1e} "
                   f"of them; {row['to_device']:.1f} values a step go there, {row['to_host']:.1f} "
                   "come back")


def _speed_report(found: dict[str, tuple[list[Row], str]]) -> Iterator[str]:
    yield f"\n## Calls on arrays that stay there: {RUNS} in a row, and one that is waited for, ms\n"
    yield "| program | " + " | ".join(
        f"{column} | alone | first call, s | rate" for column in found) + " |"
    yield "| --- |" + " --: | --: | --: | --: |" * len(found)
    rows = {column: {row["program"]: row for row in rows} for column, (rows, _) in found.items()}
    for name in dict.fromkeys(name for known in rows.values() for name in known):
        yield f"| {name} | " + " | ".join(
            _speeds(known[name]) if name in known else "- | - | - | -"
            for known in rows.values()) + " |"
    yield from _reasons(found)


def _speeds(row: Row) -> str:
    rate = row["rate"] / (1e12 if row["unit"] == "TFLOP/s" else 1e9)
    return (f"{1000 * row['seconds']:.3g} | {1000 * row['alone']:.3g} | {row['first']:.2g} | "
            f"{rate:.3g} {row['unit']}")


def _table(key: str, found: dict[str, tuple[list[Row], str]]) -> Iterator[str]:
    yield f"| {key} | " + " | ".join(found) + " |"
    yield "| --- |" + " --: |" * len(found)
    names = dict.fromkeys(row[key] for rows, _ in found.values() for row in rows)
    for name in names:
        yield f"| {name} | " + " | ".join(
            milliseconds(rows, key, name) for rows, _ in found.values()) + " |"
    yield from _reasons(found)


def _reasons(found: dict[str, tuple[list[Row], str]]) -> Iterator[str]:
    """Why a column ends early."""
    yield ""
    for column, (_, why) in found.items():
        if why:
            yield f"- {column}: {why}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "accelerator.md")
    parser.add_argument("--seconds", type=float, default=580)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--argument", action="append", default=[], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        run_part(options.part, options.rows, options.argument)
        return 0
    devices, why = run("find", 60)
    if not devices:
        print(f"No accelerator was found: {why}\nMAXJAX_SIMULATED_ACCELERATORS=1 tries this "
              "command on a simulated one.", file=sys.stderr)
        return 1
    options.report.parent.mkdir(parents=True, exist_ok=True)
    with options.report.open("w", buffering=1) as file:
        for line in report(devices, options.seconds):
            print(line, flush=True)
            file.write(line + "\n")
    print(f"\nwritten to {options.report}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
