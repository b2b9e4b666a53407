"""Inspection: values while a program runs (jax.debug), and where its parts run and why."""

from __future__ import annotations

import functools
import shutil
import subprocess
import textwrap
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from maxjax._base import config, pytree
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.debugger import breakpoint as breakpoint
from maxjax._higher_order.debugging import debug_callback as callback
from maxjax._higher_order.debugging import debug_print as print
from maxjax._higher_order.jit_function import PjitFunction, make_jit
from maxjax._ir import drawing
from maxjax._ir.effects import DebugEffect as DebugEffect
from maxjax._ir.effects import OrderedDebugEffect as OrderedDebugEffect
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn
from maxjax._ir.picture import dot
from maxjax._runtime import on_device, on_mesh, source_costs, spanning
from maxjax._runtime.program import Program, program_of, programs_of
from maxjax._runtime.sharding_pictures import inspect_array_sharding as inspect_array_sharding
from maxjax._runtime.sharding_pictures import visualize_array_sharding as visualize_array_sharding
from maxjax._runtime.sharding_pictures import visualize_sharding as visualize_sharding
from maxjax._runtime.tiering import tiering
from maxjax._transforms.partition import host_reason
from maxjax._transforms.simplify import simplify

__all__ = ["DebugEffect", "Explanation", "OrderedDebugEffect", "Statistics", "breakpoint",
           "callback", "explain", "graph", "inspect_array_sharding", "log", "print", "statistics",
           "visualize_array_sharding", "visualize_sharding"]

log = functools.partial(print, _use_logging=True)

explain_missing_names(__name__)


# ``explain`` does not print programs with more equations.
_SHOWN_EQUATIONS = 40


class Statistics(NamedTuple):
    """How a jitted function's programs have run, over all signatures.

    Attributes:
      interpreted_calls, compiled_calls: calls in tier 0, and on MAX.
      state: how the most-called program runs: "interpreted", "native" (on the vector machine,
        without kernels of its own) or "compiled".
      reason: why it is not compiled, if there is a reason but that it has not cost enough: "it is
        being compiled", no part of it can be, the compiler failed, a call takes less than MAX's
        dispatch, or it was tried and took longer.
      compile_seconds: from the request to the swap; 0 for an artifact found on disk.
    """

    interpreted_calls: int
    compiled_calls: int
    state: str
    reason: str | None
    compile_seconds: float


def statistics(function: Callable[..., Any]) -> Statistics:
    """Statistics of a function made by ``jit``.

    Raises:
      TypeError: the function is not jitted.
    """
    if not isinstance(function, PjitFunction):
        raise TypeError(f"statistics needs a function made by maxjax.jit, got {function!r}")
    programs = [program for entry in function._entries.values() for program in (
        *[program for closed in (entry.closed, *on_mesh.programs_of(entry.closed))
          for program in programs_of(closed)],
        *spanning.programs_of(entry.closed))]
    if not programs:
        return Statistics(0, 0, "interpreted", None, 0.0)
    busiest = max(programs, key=lambda p: p.interpreted_calls + p.compiled_calls)
    return Statistics(
        sum(program.interpreted_calls for program in programs),
        sum(program.compiled_calls for program in programs),
        busiest.tier, busiest.why, max(program.compile_seconds for program in programs))


class Explanation:
    """The result of ``explain``; ``print`` it.

    Attributes:
      state, reason: as in ``Statistics``.
      pieces: for each piece in order ("MAX" or "host", the count of each primitive, the reasons why
        it is on the host).
      cached: whether the compiled program is on disk.
      constant_bytes: of the arrays that the function closes over.
      backend: "mojo" or "graph".
      flops, bytes: floating-point operations of a call, and bytes of its arguments and results.
      piece_costs: the same for each piece.
      jaxpr: the simplified program.
      lines: its equations by lines of the source, the costliest first: a list of objects with
        ``line``, ``equations``, ``primitives``, ``flops``, ``estimate`` (seconds) and ``seconds``
        (measured, or None).
      guards: for a function with ``dynamic_dims``, what its trace assumes about sizes, in words;
        for each variant.
      on_accelerator: the same of the accelerator where the arguments are, as text; None if they are
        on the CPU.
      peak_bytes: of the memory that a call takes besides its arguments (Mojo backend).
      source: the program's kernels and calls as text (Mojo backend).
      uncompiled_source: the vector machine's code, which stands in for kernels that are not
        compiled (Mojo backend).
    """

    def __init__(self, name: str, program: Program, closed: ClosedJaxpr,
                 guards: list[list[str]], values: list[Any] | None = None):
        self.name = name
        self.guards = guards
        self.flops = float(sum(map(source_costs.flops_of, simplify(closed).jaxpr.eqns)))
        self.bytes = sum(aval.nbytes for aval in (*closed.in_avals, *closed.out_avals))
        self.state = program.tier
        self.reason = program.why
        self.interpreted_calls = program.interpreted_calls
        self.compiled_calls = program.compiled_calls
        self.compile_seconds = program.compile_seconds
        self.constant_bytes = sum(value.nbytes for value in program.consts)
        self.jaxpr = program.closed
        self.lines = source_costs.by_line(self.jaxpr, None if values is None else (
            source_costs.measured(self.jaxpr, values)))
        self.cached = False
        has_tier1 = tiering.prepare(program)
        prepared = program.prepared
        assert prepared is not None
        backend = tiering.backend_of(program)
        self.backend = backend.name
        if has_tier1:
            self.cached = backend.is_kept(prepared)
        else:
            self.reason = program.why
        self.cache_directory = backend.directory
        self.peak_bytes = prepared.peak_bytes
        self.source = prepared.source
        self.uncompiled_source = prepared.uncompiled_source
        self._runs_uncompiled = program.uncompiled
        self.shows_source = False
        self.on_accelerator: str | None = None
        self.pieces = [
            ("host" if piece.on_host else "MAX",
             Counter(eqn.primitive.name for eqn in piece.jaxpr.eqns), prepared.reasons(number))
            for number, piece in enumerate(prepared.pieces)]
        self.piece_costs = [
            (sum(map(source_costs.flops_of, piece.jaxpr.eqns)),
             sum(var.aval.nbytes for var in (*piece.inputs, *piece.outputs)))
            for piece in prepared.pieces]

    def _sentence(self) -> str:
        """How it runs, in plain words."""
        calls = _number(self.interpreted_calls + self.compiled_calls, "call")
        if self.state == "compiled":
            return f"compiled, {calls} so far"
        if self.state == "native":
            return (f"native on the vector machine, {calls} so far: "
                    + (self.reason or "its kernels have not cost enough to be compiled"))
        begin = f"interpreted, {calls} so far" if self.interpreted_calls else "not called yet"
        if self.reason is not None:
            return f"{begin}: {self.reason}"
        if config.compile_mode.value == "never":
            return f"{begin}; compile='never' has it interpreted"
        if all(place == "host" for place, _, _ in self.pieces):
            return f"{begin}; nothing in it can be compiled"
        if self.interpreted_calls:
            return f"{begin}, which cost too little to gain by compiling"
        if self.cached:
            return f"{begin}; it is compiled already"
        if config.compile_mode.value == "always":
            return f"{begin}; compiled when it is called"
        return f"{begin}; compiled once its calls have cost more than that takes"

    def __str__(self) -> str:
        count = sum(sum(operations.values()) for _, operations, _ in self.pieces)
        lines = [f"{self.name}: {self._sentence()}",
                 f"  {_number(count, 'operation')} in {_number(len(self.pieces), 'piece')}, "
                 f"{self.flops:.4g} flops, {self.bytes:.4g} bytes of arguments and results"]
        for number, (place, operations, reasons) in enumerate(self.pieces):
            shown = ", ".join(f"{name} x{times}" if times > 1 else name
                              for name, times in operations.most_common())
            flops, moved = self.piece_costs[number]
            lines.append(f"  piece {number} on {place}: {shown}; {flops:.4g} flops, "
                         f"{moved} bytes in and out")
            lines.extend(f"    {reason}" for reason in reasons)
        lines.append(f"  compiled program on the disk: {'yes' if self.cached else 'no'}, "
                     f"in {self.cache_directory}")
        lines.append(f"  calls: {self.interpreted_calls} interpreted, {self.compiled_calls} on MAX"
                     + (f"; ready {self.compile_seconds:.1f} s after the request"
                        if self.compile_seconds else ""))
        if self.on_accelerator is not None:
            lines.append(textwrap.indent(self.on_accelerator, "  "))
        if self.peak_bytes:
            lines.append(f"  memory: {self.peak_bytes} bytes at the peak, arguments not counted")
        if self.constant_bytes:
            lines.append(f"  constants, passed as inputs: {self.constant_bytes} bytes")
        for number, guards in enumerate(self.guards):
            lines.append(f"  variant {number} for all sizes of 2 and more" + (
                ", where " + ", ".join(guards) if guards else ""))
        equations = len(self.jaxpr.eqns)
        measured = any(line.seconds is not None for line in self.lines)
        if equations > _SHOWN_EQUATIONS or measured:
            by = "measured in the interpreter" if measured else "estimated"
            lines.append(f"  simplified to {equations} equations, which are in the attribute "
                         f"jaxpr; their time ({by}) and number by line of the source:")
            lines += ["  " + line for line in source_costs.table(self.lines)]
        if equations <= _SHOWN_EQUATIONS:
            lines += ["  simplified:", textwrap.indent(str(self.jaxpr), "    ")]
        if self.shows_source:
            lines += ["", self.source]
            if self._runs_uncompiled:
                lines += ["", "until its kernels are compiled:", self.uncompiled_source]
        return "\n".join(lines)

    __repr__ = __str__


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def explain(function: Callable[..., Any], *args: Any, source: bool = False,
            measure: bool = False, **kwargs: Any) -> Explanation:
    """Says which parts of ``function(*args, **kwargs)`` run on MAX, which on the host and why, what
    is cached, what it costs, and what it was simplified to; of a long program, which lines of the
    source cost most. Traces the function if necessary; computes nothing.

    Args:
      measure: runs the program in the interpreter, three times each equation, and says how long the
        equations of each line take. The arguments have to be values.
      source: also prints the Mojo source of the program's kernels, and the calls in order;
        see docs/compiler.md.
    """
    jitted = function if isinstance(function, PjitFunction) else make_jit(function)
    found = jitted._lookup(args, kwargs)
    closed = found.closed
    guards = [] if jitted._dynamic is None else [
        [str(guard) for guard in variant.guards]
        for variants in jitted._dynamic.variants.values() for variant in variants]
    values = None
    if measure:
        operands, entry = jitted._prepared(args, kwargs)
        values = [operand.host() for operand in (*entry.captured, *operands)]
    explanation = Explanation(jitted.function_name, program_of(closed, found.call.donated),
                              closed, guards, values)
    explanation.shows_source = source
    on_accelerator = on_device.explained(closed, pytree.leaves((args, kwargs)))
    explanation.on_accelerator = None if on_accelerator is None else str(on_accelerator)
    return explanation


class Graph(str):
    """A graph in Graphviz's language, which notebooks draw."""

    def svg(self) -> str:
        """The drawing: Graphviz's where its command ``dot`` is there, otherwise a simpler one."""
        program = shutil.which("dot")
        if program is not None:
            made = subprocess.run([program, "-Tsvg"], input=self, capture_output=True, text=True,
                                  check=False)
            if made.returncode == 0:
                return made.stdout
        return drawing.svg(self)

    _repr_svg_ = svg

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def graph(function: Callable[..., Any], *args: Any, simplified: bool = False,
          **kwargs: Any) -> Graph:
    """The jaxpr of ``function(*args, **kwargs)`` as a graph: text in Graphviz's language, which
    notebooks draw, and ``.svg()`` gives the drawing. Graphviz need not be installed.

    Its nodes are inputs, equations and results, its edges are values with their types; the jaxprs
    of calls, loops and branches are boxes.
    Traces the function if necessary; computes nothing.

    Args:
      simplified: draws the program that actually runs, and shades the parts on the host, with the
        reason.

    >>> text = maxjax.debug.graph(lambda x: jnp.sin(x) * 2, 1.0)
    >>> [line.strip() for line in text.splitlines() if "sin" in line]
    ['n1 [label="sin"];']
    """
    jitted = function if isinstance(function, PjitFunction) else make_jit(function)
    entry = jitted._lookup(args, kwargs)
    _, tree, static = jitted._flatten(args, kwargs)
    names = jitted._argument_names(tree, static)
    if not simplified:
        return Graph(dot(entry.closed, jitted.function_name, None, names))

    def note(eqn: JaxprEqn) -> str | None:
        reason = host_reason(eqn, control_flow=True)
        return None if reason is None else f"host: {reason}"

    program = program_of(entry.closed)
    constants = [f"constant {number}" for number in range(len(program.consts))]
    return Graph(dot(program.opened, jitted.function_name, note, [*constants, *names]))
