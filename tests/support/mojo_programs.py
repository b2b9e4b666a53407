"""The Mojo backend under test: many programs, their kernels built in few libraries.

Tier 0 is held against real JAX by ``test_cases``; here each program must give what tier 0 gives.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import maxjax
import maxjax.numpy
import maxjax.tree_util
from maxjax._base import dtypes
from maxjax._base.config import enable_x64
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo import crew, small_loops
from maxjax._max.mojo import executable as executable_module
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.executable import Executable, runner
from maxjax._max.mojo.forms import Form
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.mojo.plan import Plan, physical_types
from maxjax._max.mojo.store import KernelStore
from maxjax._runtime.program import Program
from maxjax._transforms.partition import host_reason, partition
from maxjax._transforms.tokens import order_steps
from tests.support import harness
from tests.support.harness import Case

# Where a process of guarded memory finds what the first has built.
BUILT = "MAXJAX_TEST_KERNELS"
CORES = 2
PER_LIBRARY = 64
MODES = ("value", "jvp", "gradient")


def on_host(eqn: JaxprEqn) -> str | None:
    return host_reason(eqn, control_flow=True)


@dataclasses.dataclass
class Piece:
    """What the host or the backend does of a program at a time."""

    jaxpr: Any
    plan: Plan | None       # None: a host step

    def kernels(self) -> Iterable[Form]:
        return self.plan.kernels if self.plan is not None else ()


@dataclasses.dataclass
class Item:
    """A program, the values of its inputs, and how its results are compared.

    Attributes:
      name: of the case, with the mode.
      program, values: the program and its arguments, constants included.
      pieces: what runs one after the other.
      reasons: of its host steps.
      exact: gives the results in float64.
      slack: how much further from those than tier 0's they may lie, where rounding is amplified.
      problem: why it could not be planned.
    """

    name: str
    program: Program
    values: list[Any]
    tolerance: str = "accumulate"
    derivative_from: int = 1 << 30      # outputs from this one on are derivatives
    signed_zeros: bool = True
    pieces: list[Piece] = dataclasses.field(default_factory=list)
    reasons: list[str] = dataclasses.field(default_factory=list)
    exact: Callable[[], list[Any]] | None = None
    slack: float = 2
    problem: Exception | None = None

    @property
    def kernels(self) -> list[Form]:
        return [kernel for piece in self.pieces for kernel in piece.kernels()]

    @property
    def is_compiled(self) -> bool:
        return any(piece.plan is not None for piece in self.pieces)

    def plan(self, cores: int = CORES) -> Item:
        """Cuts and plans the program, each stage of planning checked."""
        try:
            for piece in partition(order_steps(self.program.opened.jaxpr), on_host):
                self.reasons += piece.reasons
                self.pieces.append(Piece(
                    piece.jaxpr, None if piece.on_host else CheckedPlan(piece.jaxpr, cores)))
        except Exception as error:
            self.problem = error
        return self

    def compare(self, actual: Sequence[Any], expected: Sequence[Any]) -> None:
        for number, (ours, theirs, aval) in enumerate(
                zip(actual, expected, self.program.out_avals, strict=True)):
            ours, theirs = np.asarray(ours), np.asarray(theirs)
            assert ours.shape == theirs.shape == aval.shape, (number, ours.shape, theirs.shape)
            assert ours.dtype == theirs.dtype == dtypes.physical(aval.dtype), (
                number, ours.dtype, theirs.dtype)
            try:
                harness.assert_close(
                    ours, theirs, self.tolerance, derivative=number >= self.derivative_from,
                    signed_zeros=self.signed_zeros, what=f"output {number} ")
            except AssertionError:
                if not self.is_as_accurate(number, ours, theirs):
                    raise

    def is_as_accurate(self, number: int, ours: np.ndarray, theirs: np.ndarray) -> bool:
        """Whether what amplifies rounding is as near to the float64 result as tier 0's is."""
        if (self.exact is None or self.tolerance not in ("accumulate", "loose")
                or not harness.is_inexact(theirs.dtype)):
            return False
        ours, theirs, exact = (
            np.asarray(x, np.float64) for x in (ours, theirs, self.exact()[number]))
        if not all(np.isfinite(x).all() for x in (ours, theirs, exact)):
            return False
        return bool(np.abs(ours - exact).max() <= self.slack * np.abs(theirs - exact).max())


def item_of(case: Case, mode: str) -> Item:
    """The program of a case ("value"), with its tangents ("jvp") or cotangents ("gradient")."""
    rng = np.random.default_rng(case.seed())
    with case.precision():
        operands = [maxjax.numpy.asarray(arg) for arg in case.args]
        fun = case.on(maxjax)
        derivative_from = 1 << 30
        if mode != "value":
            outputs = fun(*case.args)
            derivative_from = len(harness.leaves(outputs))
            if mode == "jvp":
                given = [harness.random_like(rng, arg) for arg in operands]
            else:
                given = [harness.random_like(rng, output) for output in harness.leaves(outputs)]
            moving = [x for x in given if x.dtype != harness.FLOAT0]
            fun = _derivative(fun, mode, len(operands), given)
            operands += [maxjax.numpy.asarray(x) for x in moving]
        closed = maxjax.jit(fun)._lookup(tuple(operands), {}).closed
        program = Program(closed)
        values = [*program.consts, *(operand.host() for operand in operands)]

    def exact() -> list[Any]:
        with jax.enable_x64(True), enable_x64(True):
            return harness.leaves(fun(*(harness.widened(x.host()) for x in operands)))

    return Item(f"{case.name} [{mode}]", program, values, case.tolerance, derivative_from,
                case.signed_zeros, exact=exact)


def _derivative(fun: Callable[..., Any], mode: str, count: int,
                given: Sequence[Any]) -> Callable[..., Any]:
    """A function of the arguments and of those directions that are not float0."""
    def derivative(*values: Any) -> Any:
        args, rest = values[:count], iter(values[count:])
        directions = [x if x.dtype == harness.FLOAT0 else next(rest) for x in given]
        if mode == "jvp":
            outputs, tangents = maxjax.jvp(fun, args, tuple(directions))
            kept = maxjax.tree_util.tree_leaves(tangents)
        else:
            outputs, pullback = maxjax.vjp(fun, *args)
            structure = maxjax.tree_util.tree_structure(outputs)
            kept = pullback(maxjax.tree_util.tree_unflatten(structure, directions))
        return outputs, [x for x in kept if x.dtype != dtypes.float0]

    return derivative


def modes_of(case: Case) -> list[str]:
    if case.raises or not case.jittable:
        return []
    return list(MODES) if case.differentiable else ["value"]


def family(cases: Sequence[Case], count: int | None = None) -> list[Item]:
    """The planned programs of a family, at most ``count``, spread evenly over the table."""
    chosen = [(case, mode) for case in cases for mode in modes_of(case)]
    if count is not None and len(chosen) > count:
        step = len(chosen) / count
        chosen = [chosen[int(number * step)] for number in range(count)]
    return [item_of(case, mode).plan() for case, mode in chosen]


def tables() -> dict[str, list[Case]]:
    return {name: cases for name, cases in harness.families().items()
            if not isinstance(cases, Exception)}


def default(count: int | None) -> list[Item]:
    """So many programs of each family."""
    return [item for cases in tables().values() for item in family(cases, count)]


# --- building -------------------------------------------------------------------------------------

@functools.cache
def pack() -> Pack:
    """The pack, in the user's cache."""
    built = Pack()
    error = built.build()
    assert error is None, error
    crew.start(built)
    return built


@functools.cache
def store() -> KernelStore:
    """An empty store: what is tested has been built from today's sources. Or another process's."""
    folder = os.environ.get(BUILT)
    if folder is None:
        _folders.append(tempfile.TemporaryDirectory(prefix="maxjax-kernels-"))
        folder = _folders[0].name
    created = KernelStore(HEADER, ArtifactCache(Path(folder)), PER_LIBRARY)
    created.libraries.compiler_threads = 1
    return created


_folders: list[tempfile.TemporaryDirectory] = []


def build(items: Iterable[Item]) -> int:
    """Builds the kernels of all items; returns how many there are."""
    kernels = list(dict.fromkeys(kernel for item in items for kernel in item.kernels))
    store().build(kernels)
    return len(kernels)


# --- watching -------------------------------------------------------------------------------------

def seen(monkeypatch: Any, module: Any, name: str) -> list[Any]:
    """What a function of the planner gives from now on, call by call; loops of few elements are as
    others."""
    found: list[Any] = []
    function = getattr(module, name)

    def noting(*args: Any) -> Any:
        found.append(function(*args))
        return found[-1]

    monkeypatch.setattr(small_loops, "MOST_ELEMENTS", 0)
    monkeypatch.setattr(module, name, noting)
    return found


def fill_unwritten(monkeypatch: Any, byte: int) -> None:
    """Native memory that nothing has written consists of this byte."""
    def empty(shape: Any, dtype: Any = float) -> np.ndarray:
        made = np.empty(shape, dtype)
        made.reshape(-1).view(np.uint8)[...] = byte
        return made

    monkeypatch.setattr(executable_module, "_empty", empty)


# --- running --------------------------------------------------------------------------------------

def executable(plan: Plan, jaxpr: Any, make: Callable[..., Executable] = Executable) -> Executable:
    failures = store().failures()
    for kernel in plan.kernels:
        assert kernel not in failures, f"{failures[kernel]}\n{kernel.source}"
    addresses: dict[Any, int] = dict(store().find(plan.kernels))
    for function in plan.functions:
        place = pack().address(function)
        assert place is not None, f"the pack has no {function}"
        addresses[function] = place
    return make(plan, physical_types(jaxpr), addresses, runner(pack().address("run_program")))


def without_kernels(plan: Plan, jaxpr: Any,
                    make: Callable[..., Executable] = Executable) -> Executable:
    """A plan's executable with the vector machine in the place of all kernels."""
    functions = plan.functions_without_kernels()
    assert functions is not None, "the machine has no instruction for a group"
    addresses = {name: pack().address(name) for name in functions}
    assert all(addresses.values()), [name for name, place in addresses.items() if not place]
    return make(plan, physical_types(jaxpr), addresses, runner(pack().address("run_program")))


def has_code(item: Item) -> bool:
    """Whether the vector machine can run a program."""
    return all(piece.plan is None or piece.plan.functions_without_kernels() is not None
               for piece in item.pieces)


def run(item: Item, values: Sequence[Any],
        make: Callable[..., Executable] = Executable) -> list[np.ndarray]:
    """The results of an item's program on the backend, its host steps on tier 0."""
    jaxpr = item.program.opened.jaxpr
    known: dict[Any, Any] = dict(zip(jaxpr.invars, values, strict=True))
    for piece in item.pieces:
        operands = [known[var] for var in piece.jaxpr.invars]
        if piece.plan is None:
            with np.errstate(all="ignore"):
                results = interpreter(ClosedJaxpr(piece.jaxpr, []))(*operands)
        else:
            operands = [np.asarray(x) for x in operands]
            results = executable(piece.plan, piece.jaxpr, make)(operands)
        known.update(zip(piece.jaxpr.outvars, results, strict=True))
    return [known[atom] if atom in known else np.asarray(atom.val) for atom in jaxpr.outvars]


def check(item: Item, make: Callable[..., Executable] = Executable) -> None:
    """The backend gives what tier 0 gives, and leaves its arguments alone."""
    if item.problem is not None:
        raise item.problem
    values = [np.asarray(x) for x in item.values]
    with np.errstate(all="ignore"):
        expected = item.program.tier0(*[x.copy() for x in values])
    before = [x.tobytes() for x in values]
    actual = run(item, values, make)
    assert [x.tobytes() for x in values] == before, "an argument was overwritten"
    item.compare(actual, expected)


def check_all(items: Sequence[Item]) -> None:
    """``check`` of each; all that differ are told."""
    failures = []
    for item in items:
        try:
            check(item)
        except Exception as error:
            failures.append(f"{item.name}: {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {len(items)} differ:\n" + "\n".join(failures)


def sources_of(item: Item) -> str:
    return "\n\n".join(kernel.source for kernel in item.kernels)


def host_report(items: Iterable[Item]) -> dict[str, list[str]]:
    """The programs with host steps, by the steps' reasons."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for item in items:
        for reason in item.reasons:
            found[reason].append(item.name)
    return dict(found)


def flushed(x: Any) -> np.ndarray:
    """Numbers with zeros of the same sign in place of subnormal ones, which compiled programs take
    for 0, as XLA's do."""
    x = np.asarray(x)
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(0, x), x).astype(x.dtype)
