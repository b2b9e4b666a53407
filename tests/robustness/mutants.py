"""Exported programs with one thing changed, their digest made right: what a stranger would send.

``python -m tests.robustness.mutants SEED COUNT [FIRST]`` reads and runs so many of them, from the
one of number FIRST on, on every tier, in memory next to inaccessible pages, and prints a line for
each before and after it runs. A process that ends early, or falls silent, is a fault of the program
of its last line.
"""

from __future__ import annotations

import collections
import copy
import json
import random
import resource
import signal
import sys
from typing import Any

import numpy as np

import maxjax
from maxjax import export
from maxjax._base import dtypes
from maxjax._higher_order.export_format import packed
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, every_equation
from maxjax._max.mojo import executable
from maxjax._max.mojo.plan import Plan
from maxjax._runtime.agreement import disagreement
from maxjax._runtime.program import Program
from maxjax._transforms.partition import partition
from tests.mojo.guarded import guarded
from tests.support import harness, mojo_programs

# Seconds that a program may take on the interpreter: loops without end are their writer's.
SECONDS = 2
# The most memory that reading a small file takes, and that its program is given.
MOST_READING, MOST_MEMORY = 200 << 20, 12 << 30

INTEGERS = (-1, 0, 1, 2, 3, 5, 7, 31, 32, 1000, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31),
            1 << 40, (1 << 63) - 1, -(1 << 63), 1 << 64, 10 ** 30)
STRINGS = ("", "add", "sin", "max", "*", "float32", "int8", "bool", "float64", "key:rbg", "O",
           "f4,f4", "M8[s]", "AACAPw==", "__import__('os').abort()", "1", "b", "b^9999999999",
           "set", "maxjax._base.lazy:import_module", "subprocess:Popen")
OTHERS = (None, True, False, [], {}, {"tuple": []}, {"float": "nan"}, {"float": "inf"},
          {"tuple": [0]}, {"size": "b"}, {"dtype": "int32"}, {"enum": "os:_Environ", "name": "x"},
          {"array": [[2], "float32", "AACAPw=="]}, {"primitive": "exp"}, {"set": [1]}, 1.5)
DTYPES = ("float32", "float64", "int32", "int64", "int8", "uint8", "uint32", "bool", "float16",
          "bfloat16", "complex64", "int4", "float8_e4m3fn", "float0")


def programs(rng: random.Random, count: int) -> list[tuple[str, list[Any]]]:
    """Files of so many cases of the tests' tables, a case of each primitive among them first."""
    cases = [(f"{family}-{case.name}", case) for family, cases in harness.families().items()
             if not isinstance(cases, Exception) for case in cases
             if case.jittable and not case.raises and not case.x64]
    rng.shuffle(cases)
    chosen, rest = [], []
    known: set[str] = set()
    for name, case in cases:
        try:
            exported = export.export(maxjax.jit(case.on(maxjax)))(*case.args)
            held = {eqn.primitive.name for eqn in every_equation(exported.program)}
            if any(aval.size > 4000 for aval in exported.in_avals) or any(
                    eqn.params.get("unique_indices") for eqn in every_equation(exported.program)):
                continue        # what is promised of indices does not hold for random ones
            data = json.loads(bytes(exported.serialize())[export_header():])
        except NotImplementedError:
            continue
        (rest if held <= known else chosen).append((name, data))
        known |= held
        if len(chosen) + len(rest) >= 6 * count:
            break
    return (chosen + rest)[:count]


def export_header() -> int:
    return len(packed([])) - len(b"[]")


def nodes(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Each value in a file's data, with the way to it."""
    items = (node.items() if isinstance(node, dict) else
             enumerate(node) if isinstance(node, list) else ())
    found = []
    for key, value in items:
        found += [((*path, key), value), *nodes(value, (*path, key))]
    return found


def mutant(data: list[Any], rng: random.Random) -> tuple[list[Any], str]:
    """The data with one thing changed, and what that is. Parameters come first."""
    data = copy.deepcopy(data)
    # What is promised of indices does not hold for random ones, and a broken promise has no answer.
    everything = [item for item in nodes(data)
                  if item[0][-1] not in ("unique_indices", "indices_are_sorted")]
    equations = [item for item in everything if "equations" in item[0]]
    params = [item for item in equations if len(item[0]) > 5 and isinstance(item[0][-1], (str, int))
              and any(part == 2 and before.__class__ is int for before, part in zip(
                  item[0][3:], item[0][4:], strict=False))]
    pool = rng.choice([params or everything, params or everything, equations or everything,
                       everything])
    path, value = rng.choice(pool)
    owner = data
    for key in path[:-1]:
        owner = owner[key]
    new = changed(value, rng)
    owner[path[-1]] = new
    return data, f"{'/'.join(map(str, path))}: {str(value)[:60]} -> {str(new)[:60]}"


def changed(value: Any, rng: random.Random) -> Any:
    """Another value, of the same kind more often than not."""
    if rng.random() < 0.12:
        return rng.choice([*INTEGERS, *STRINGS, *OTHERS])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value - 1, value + 1, -value, 2 * value, *INTEGERS])
    if isinstance(value, str):
        return rng.choice(DTYPES if value in DTYPES and rng.random() < 0.9 else STRINGS)
    if isinstance(value, list):
        other = list(value)
        rng.shuffle(other)
        return rng.choice([value[:-1], value[1:], value[::-1], other, value + value[-1:]])
    return rng.choice(OTHERS)


def values_of(aval: Any, rng: np.random.Generator) -> np.ndarray:
    dtype = dtypes.physical(aval.dtype)
    if dtype.kind == "V" and dtype.names or dtypes.is_key(aval.dtype):
        return np.zeros(aval.shape, dtype)
    # No zeros, of which matrices would be singular: LAPACK then gives what it likes.
    return np.asarray(rng.choice([-2, -1, 1, 2, 3, 4], aval.shape)).astype(dtype)


class Endless(Exception):
    """A program runs for longer than a test waits."""


def _end(*_: object) -> None:
    raise Endless


def fault(blob: bytes, seed: int) -> str:
    """What is wrong about how a file is read and run; "refused", "endless" or "ran" if nothing is.
    """
    before = peak()
    try:
        exported = export.deserialize(blob)
    except ValueError as error:
        exported = None
        if "bug in maxjax" in str(error):
            return f"WRONG: {error}"
    if peak() > before + MOST_READING:
        return f"WRONG: to read it took {(peak() - before) >> 20} MB"
    if exported is None:
        return "refused"
    rng = np.random.default_rng(seed)
    closed = exported.program
    program = Program(closed)
    values = [*program.consts, *[values_of(aval, rng) for aval in closed.in_avals]]
    signal.alarm(SECONDS)
    try:
        with np.errstate(all="ignore"):
            expected = program.tier0(*[np.array(x) for x in values])
    except Endless:
        return "endless"
    except MemoryError:
        return "memory"
    except NotImplementedError:
        return "not implemented"
    finally:
        signal.alarm(0)
    print("native", flush=True)
    try:
        actual = natively(program, values)
    except MemoryError:
        return "memory"
    for number, (ours, theirs, aval) in enumerate(zip(
            actual, expected, program.out_avals, strict=True)):
        ours, theirs = np.asarray(ours), np.asarray(theirs)
        if ours.shape != aval.shape or theirs.shape != aval.shape or (
                ours.dtype != dtypes.physical(aval.dtype)):
            return f"WRONG: result {number} is {ours.dtype}{ours.shape}, of type {aval}"
        difference = None if ours.dtype.kind == "V" and ours.dtype.names else disagreement(
            ours, theirs, aval)
        if difference and not _overflows(ours, theirs) and not _is_rounding(
                program, values, number, theirs, aval):
            return f"DIFFERENT: result {number}: {difference}"
    return "ran"


def _overflows(*results: np.ndarray) -> bool:
    """Whether one of the results has numbers so great that sums of them overflow in one order and
    not in another: little is known of what diverges."""
    return any(
        np.abs(result[np.isfinite(result)]).max(initial=0) > np.finfo(result.dtype).max / 100
        for result in results
        if result.dtype in (np.float32, np.float64, np.complex64, np.complex128))


def _is_rounding(program: Program, values: list[Any], number: int, expected: np.ndarray, aval: Any
                 ) -> bool:
    """Whether the interpreter's own result differs too where its inputs are next numbers: of what
    cancels, such as the inverse of a matrix that is almost singular, little is known."""
    rng = np.random.default_rng(0)

    def near(x: np.ndarray) -> np.ndarray:
        if x.dtype not in (np.float32, np.float64):
            return np.array(x)
        return np.nextafter(x, rng.choice([-9, 9], x.shape).astype(x.dtype))

    with np.errstate(all="ignore"):
        others = [program.tier0(*map(near, values))[number] for _ in range(4)]
    return any(disagreement(np.asarray(other), expected, aval) for other in others)


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def natively(program: Program, values: list[Any]) -> list[Any]:
    """The results with the pack's functions and its vector machine, in guarded memory."""
    jaxpr = program.opened.jaxpr
    known: dict[Any, Any] = dict(zip(jaxpr.invars, values, strict=True))
    for piece in partition(jaxpr, mojo_programs.on_host):
        operands = [known[var] for var in piece.jaxpr.invars]
        plan = None if piece.on_host else Plan(piece.jaxpr, 2)
        if plan is None or plan.functions_without_kernels() is None:
            with np.errstate(all="ignore"):
                results = interpreter(ClosedJaxpr(piece.jaxpr, []))(*operands)
        else:
            results = mojo_programs.without_kernels(plan, piece.jaxpr)([
                _kept(np.asarray(x)) for x in operands])
        known.update(zip(piece.jaxpr.outvars, results, strict=True))
    return [known[atom] if atom in known else np.asarray(atom.val) for atom in jaxpr.outvars]


def _kept(value: np.ndarray) -> np.ndarray:
    held = guarded(value.shape, value.dtype, True)
    held[...] = value
    return held


def main(seed: int, count: int, first: int = 0) -> None:
    signal.signal(signal.SIGALRM, _end)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    executable._empty = lambda shape, dtype: guarded(shape, dtype, True)  # type: ignore[assignment]
    rng = random.Random(seed)
    files = programs(rng, max(count // 8, 60))
    print("ready", flush=True)
    outcomes: collections.Counter[str] = collections.Counter()
    for number in range(first, count):
        one = random.Random(seed * 1_000_003 + number)
        name, data = files[number % len(files)]
        data, what = mutant(data, one)
        print(f"begin {number} {name} {what}", flush=True)
        try:
            outcome = fault(bytes(packed(data)), seed + number)
        except Exception as error:
            outcome = f"WRONG: {type(error).__name__}: {str(error)[:300]}"
        if ":" in outcome:
            print(f"fault {number} {name} {what}: {outcome}", flush=True)
        outcomes[outcome.partition(":")[0]] += 1
    print("done", json.dumps(outcomes), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
