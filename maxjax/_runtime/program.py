"""Programs: a simplified jaxpr with its two tiers."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from maxjax._base import caches, collection, config, float_errors, spans
from maxjax._base.config import status
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Params, Var, derived, subjaxprs
from maxjax._ir.primitive import OpSpec, Primitive
from maxjax._ir.types import ShapedArray, check_sizes
from maxjax._max.backend import Prepared
from maxjax._runtime.made import made_of
from maxjax._transforms.complex_parts import split_complex
from maxjax._transforms.quotients import alone, multiply_by_reciprocals
from maxjax._transforms.simplify import expand, simplify

_clock = time.perf_counter_ns
# Why a program does not run compiled yet.
BEING_COMPILED = "it is being compiled"


class Program:
    """A jaxpr that runs: interpreted at first, compiled once it is hot.

    Attributes:
      closed: the simplified jaxpr. Its constants are inputs of both tiers.
      opened: the same jaxpr with its constants as inputs, which is what is compiled.
      effects: what it does besides computing results.
      heat: nanoseconds that tier 0 has spent on it.
      cost: seconds that a call is estimated to take.
      size: thousands of equations, including those of bodies: planning takes time in proportion.
      prepared: the plan of its backend for it, once that has been made.
      compiled: the tier-1 executable (a callable of a list of NumPy arrays), or None.
      donated: the inputs, constants included, whose memory results may take. Among them, a value
        that may not be overwritten is read-only. `run` empties the list of values.
      uncompiled: some kernels are not compiled, and the vector machine runs instead of them.
      uncharged: nanoseconds of such runs that its kernels have not been charged for.
      state: "new", "cold", "native" (it runs uncompiled), "queued" (for the compiler),
        "compiled", "failed", "host" (nothing of it can be compiled), "light" (dispatch would cost
        more than tier 0), "slower" (MAX turned out to be).
      reason: why it is interpreted, where it failed or may not be compiled.
    """

    __slots__ = ("__weakref__", "_expanded", "_interpreted", "_opened", "_tier0", "backend",
                 "best_interpreted", "closed", "compile_seconds", "compiled", "compiled_calls",
                 "consts", "cost", "donated", "effects", "family", "has_won", "heat",
                 "interpreted_calls",
                 "look_heat", "looked", "out_avals", "prepared", "proven", "reason", "rejected",
                 "retry_at", "size", "state", "trial_best", "trial_calls", "uncharged",
                 "uncompiled")

    def __init__(self, closed: ClosedJaxpr, donated: tuple[int, ...] = ()):
        self.effects = closed.effects
        for effect in self.effects:
            effect.check_runnable()
        for eqn in closed.jaxpr.eqns:
            check_sizes([var.aval for var in eqn.outvars])
        with collection.stopped:
            self._simplify(closed)
        self.out_avals: list[ShapedArray] = closed.out_avals
        self.consts = [
            value.host() if hasattr(value, "host") else np.asarray(value)
            for value in self.closed.consts]
        self.donated = tuple([position + len(self.consts) for position in donated])
        self.family = closed.facts.family
        self.heat = 0 if self.family is None else self.family.heat
        self.best_interpreted = 1 << 62
        self.proven: Any = None         # compiled, and not slower than tier 0
        self.rejected: Any = None       # compiled, and slower than tier 0 when it was tried
        self.has_won = False            # compiled, it was not slower, which may be chance
        self.retry_at = 0
        self.interpreted_calls = 0
        self.compiled: Any = None
        self.uncompiled = False
        self.uncharged = 0
        self.compiled_calls = 0
        self.compile_seconds = 0.0
        self.trial_calls = 0
        self.trial_best = 0
        self.state = "new"
        self.reason: str | None = None
        self.cost = self.size = 0.0
        self.prepared: Prepared | None = None
        self.backend = ""                   # chosen when the program is prepared for tier 1
        self.looked = False
        self.look_heat = 0                  # the heat at which the cache is searched for it

    def _simplify(self, closed: ClosedJaxpr) -> None:
        self.closed = multiply_by_reciprocals(simplify(closed))
        jaxpr = self.closed.jaxpr
        # Constants are inputs of both tiers: a large one is not copied into the program.
        opened = ClosedJaxpr(jaxpr.replace(
            constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]))
        self._interpreted = opened
        self._tier0: Callable[..., list[Any]] | None = None
        self._expanded = expand(opened)
        self._opened: ClosedJaxpr | None = None

    @property
    def opened(self) -> ClosedJaxpr:
        """What backends compile: constants are inputs, and complex values are in parts."""
        known = self._opened
        if known is None:
            with collection.stopped:
                known = self._opened = split_complex(self._expanded)
        return known

    @property
    def tier0(self) -> Callable[..., list[Any]]:
        """The equations as a Python function (``maxjax._ir.interpret``), made for the first call
        that runs it."""
        run = self._tier0
        if run is None:
            with collection.stopped:
                run = self._tier0 = interpreter(self._interpreted, self.donated)
        return run

    def run(self, values: list[np.ndarray]) -> list[Any]:
        """Results for physical NumPy values of the inputs."""
        if self.consts:
            given = values
            values = self.consts + given
            if self.donated:
                given.clear()
        proven = self.proven
        if proven is not None and status.runs_compiled:
            self.compiled_calls += 1
            return proven(values)
        if spans.state.record is None:
            return self._run(values)
        calls, start = self.compiled_calls, spans.clock()
        outputs = self._run(values)
        tier = "tier 0" if self.compiled_calls == calls else "tier 1"
        spans.add(f"{self.name} ({tier})", tier, start, equations=len(self._expanded.jaxpr.eqns),
                  state="interpreted" if tier == "tier 0" else self.tier)
        return outputs

    @property
    def tier(self) -> str:
        """How it runs: "interpreted", "native" (without kernels of its own) or "compiled"."""
        if self.compiled is None:
            return "interpreted"
        return "native" if self.uncompiled else "compiled"

    @property
    def why(self) -> str | None:
        """Why it does not run compiled, if there is a reason."""
        return BEING_COMPILED if self.state == "queued" else self.reason

    @property
    def name(self) -> str:
        """The name of the function it comes from."""
        return self.closed.jaxpr.debug_info.split(" at ")[0] or "a program"

    def _run(self, values: list[np.ndarray]) -> list[Any]:
        tiering = policy.tiering
        if self.state == "new":
            self.state = "cold"
            self.cost, self.size = tiering.estimate(self._expanded.jaxpr)
            self.look_heat = tiering.LEAST_LOOKUP_NANOSECONDS
            tiering.first_call(self)
        compiled = self.compiled        # another thread may give it up meanwhile
        if compiled is not None:
            if config.compile_mode.value != "never":
                return tiering.run_compiled(self, compiled, values)
        elif self.state in ("cold", "queued") and config.compile_mode.value == "always":
            tiering.compile_or_warn(self)
            compiled = self.compiled
            if compiled is not None:
                return tiering.run_compiled(self, compiled, values)
        tier0 = self._tier0 or self.tier0
        start = _clock()
        errors = float_errors.state()
        try:
            float_errors.ignore()
            outputs = tier0(values) if self.donated else tier0(*values)
        finally:
            float_errors.restore(errors)
        elapsed = _clock() - start
        self.heat += elapsed
        if self.family is not None:
            self.family.heat = max(self.heat, self.family.heat)
        self.interpreted_calls += 1
        best = self.best_interpreted
        if elapsed < best:
            self.best_interpreted = elapsed
        elif not self.interpreted_calls & 7:
            # Machines are not equally busy: it grows with what calls take, and no faster than by a
            # quarter at a time, as one call may take very long.
            self.best_interpreted = min(elapsed, best + (best >> 2))
        if self.rejected is not None:
            if self.interpreted_calls >= self.retry_at:
                tiering.retry(self)
        elif self.state in ("cold", "queued"):
            if self.heat > self.look_heat and not self.looked:
                tiering.warm(self)
            # What ran only once, however long it took, may never run again.
            if (self.heat > tiering.HOT_NANOSECONDS and self.state == "cold"
                    and self.interpreted_calls >= tiering.HOT_CALLS):
                tiering.request(self)
        return outputs


class Tiering:
    """Decides when a program is compiled; this default never does."""

    HOT_NANOSECONDS = 1 << 62
    LEAST_LOOKUP_NANOSECONDS = 1 << 62
    HOT_CALLS = 1

    def estimate(self, jaxpr: Jaxpr) -> tuple[float, float]:
        return 0.0, 0.0

    def first_call(self, program: Program) -> None:
        pass

    def warm(self, program: Program) -> None:
        pass

    def request(self, program: Program) -> None:
        pass

    def retry(self, program: Program) -> None:
        pass

    def compile_now(self, program: Program) -> None:
        program.state = "failed"

    def compile_or_warn(self, program: Program) -> None:
        program.state = "failed"

    def run_compiled(self, program: Program, compiled: Any, values: list[np.ndarray]) -> list[Any]:
        program.compiled_calls += 1
        return compiled(values)


class _Policy:
    """Holds the one tiering of the process."""

    __slots__ = ("tiering",)

    def __init__(self) -> None:
        self.tiering = Tiering()


policy = _Policy()


def program_of(closed: ClosedJaxpr, donated: tuple[int, ...] = ()) -> Program:
    """The program of a jaxpr, for inputs of which some are donated; kept with it."""
    programs = made_of(closed).programs
    return programs.get(donated) or programs.setdefault(donated, Program(closed, donated))


def programs_of(closed: ClosedJaxpr) -> list[Program]:
    """The programs of a jaxpr so far: one for each choice of donated inputs."""
    return list(made_of(closed).programs.values())


def application(primitive: Primitive, avals: tuple[ShapedArray, ...], params: Params
                ) -> ClosedJaxpr:
    """The jaxpr of one application of a primitive with jaxprs inside; kept with the first."""
    owner = next(jaxpr for jaxpr in subjaxprs(params) if isinstance(jaxpr, ClosedJaxpr))
    return _application(owner, primitive, avals, tuple(params.items()))


@derived
def _application(owner: ClosedJaxpr, primitive: Primitive, avals: tuple[ShapedArray, ...],
                 params: tuple[tuple[str, object], ...]) -> ClosedJaxpr:
    invars = [Var(aval) for aval in avals]
    results: Any = primitive.abstract(*avals, **dict(params))
    outvars = [Var(aval) for aval in results]
    return ClosedJaxpr(Jaxpr(
        [], invars, outvars, [JaxprEqn(primitive, invars, dict(params), outvars)],
        owner.jaxpr.debug_info))


@caches.memoized
def single(spec: OpSpec) -> ClosedJaxpr:
    """The jaxpr of one operation."""
    invars, outvars = list(map(Var, spec.in_avals)), list(map(Var, spec.out_avals))
    return ClosedJaxpr(Jaxpr([], invars, outvars, [
        JaxprEqn(spec.primitive, invars, spec.params, outvars)], spec.primitive.name))


# --- pending graphs as programs -------------------------------------------------------------------
# Keyed by structure: the specs (identities that equal applications share), the wiring, which of
# the results are wanted, and the types of the inputs. Values, Python scalars too, are inputs.
_graph_programs: dict[Any, Program] = caches.cache()
# Programs, and equations in all of them: an equation takes some 2 kB. What was used last stays.
_MOST_GRAPHS, _MOST_EQUATIONS = 512, 1 << 15
# How often graphs have come that are no programs yet, by their hashes.
_times: dict[int, int] = caches.cache()
_MOST_TIMES = 1 << 12


def run_heavy(cells: Sequence[Any], runs_before: int = 0) -> list[tuple[Any, Any]] | None:
    """Runs a pending graph as a program, so that it can become hot.

    Args:
      runs_before: how often the graph has to come before it is a program.

    Returns:
      the cells that somebody waits for, with their values; None if the graph is no program.
    """
    numbers: dict[int, int] = {}
    inputs: list[Any] = []
    input_numbers: dict[int, int] = {}
    key: list[Any] = []
    outputs: list[Any] = []
    for cell in cells:
        wiring = []
        for position, operand in enumerate(cell.inputs):
            number = numbers.get(id(operand))
            if number is None:
                if hasattr(operand, "done"):
                    if not operand.done:
                        return None
                    operand = operand.value
                number = input_numbers.get(id(operand))
                if number is None:
                    number = input_numbers[id(operand)] = -1 - len(inputs)
                    inputs.append((operand, cell.spec.in_avals[position]))
            wiring.append(number)
        parts = cell.parts or [cell]
        wanted = []
        for part in parts:
            alive = part.array is not None and part.array() is not None
            numbers[id(part)] = len(numbers)
            if alive:
                outputs.append(part)
            wanted.append(alive)
        key.append((cell.spec, tuple(wiring), tuple(wanted)))
    full_key = (tuple(key), tuple([aval for _, aval in inputs]))
    program = _graph_programs.pop(full_key, None)
    if program is None:
        if runs_before and not _has_come(full_key, runs_before):
            return None
        _make_room(len(key))
        program = Program(_graph_jaxpr(cells, inputs, outputs))
    _graph_programs[full_key] = program
    values = program.run([np.asarray(value) for value, _ in inputs])
    return list(zip(outputs, values, strict=True))


def _has_come(key: Hashable, times: int) -> bool:
    """Whether a graph has come so often before; counts this time."""
    identity = hash(key)
    before = _times.pop(identity, 0)
    if before >= times:
        return True
    if len(_times) >= _MOST_TIMES:
        _times.clear()
    _times[identity] = before + 1
    return False


def _make_room(equations: int) -> None:
    """Forgets the graphs that have not run for longest, until one more fits."""
    sizes = {key: len(key[0]) for key in list(_graph_programs)}
    left = len(sizes), sum(sizes.values()) + equations
    for key, size in sizes.items():
        if left[0] < _MOST_GRAPHS and left[1] <= _MOST_EQUATIONS:
            return
        _graph_programs.pop(key, None)
        left = left[0] - 1, left[1] - size


def _graph_jaxpr(cells: Sequence[Any], inputs: Sequence[Any],
                 outputs: Sequence[Any]) -> ClosedJaxpr:
    variables: dict[int, Var] = {}
    invars = []
    for value, aval in inputs:
        var = variables[id(value)] = Var(aval.off_mesh())
        invars.append(var)
    eqns = []
    for cell in cells:
        operands = [variables[id(x.value if hasattr(x, "done") and x.done else x)]
                    for x in cell.inputs]
        parts = cell.parts or [cell]
        outvars = []
        for part, aval in zip(parts, cell.spec.out_avals, strict=True):
            var = variables[id(part)] = Var(aval.off_mesh())
            outvars.append(var)
        eqns += alone(JaxprEqn(cell.spec.primitive, operands, cell.spec.params, outvars))
    outvars = [variables[id(part)] for part in outputs]
    return ClosedJaxpr(Jaxpr([], invars, outvars, eqns, "eager operations"))
