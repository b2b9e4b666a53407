"""Cutting a program into what a compiled backend runs and what the host runs.

Each equation gets a stage: compiled stage 0, host stage 0, compiled stage 1, ... A value of one
stage is available to the later ones, and an equation stands in the earliest stage of its kind
that has all its operands. This gives the fewest pieces that the dependencies allow. Equations with
effects run on the host, in no earlier stage than the effects before them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.jaxpr import Atom, DropVar, Jaxpr, JaxprEqn, Var, subjaxprs
from maxjax._ir.liveness import has_effects, read_variables

# What MAX computes with on a CPU. It has float8 dtypes too, but compiles nothing for them there.
COMPILED_DTYPES = frozenset((dtypes.bool_, *dtypes.INTS, *dtypes.FLOATS))

# Why the graph backend leaves loops and branches to the host.
HOST_REASON = "MAX graphs do without control flow"


class Piece:
    """A stage: a jaxpr whose inputs and outputs are variables of the whole program."""

    __slots__ = ("inputs", "jaxpr", "on_host", "outputs", "reasons")

    def __init__(self, on_host: bool, jaxpr: Jaxpr, reasons: list[str]):
        self.on_host = on_host
        self.jaxpr = jaxpr
        self.inputs: list[Var] = jaxpr.invars
        self.outputs: list[Var] = jaxpr.outvars      # type: ignore[assignment]
        self.reasons = reasons


def host_reason(eqn: JaxprEqn, control_flow: bool = False) -> str | None:
    """Why an equation runs on the host; None if the backend can compile it.

    ``control_flow``: the backend compiles loops and conditionals, whatever is in their bodies,
    linear algebra, and users' kernels.
    """
    primitive = eqn.primitive
    # What a body takes whole, loops and branches take whole.
    whole: Collection[np.dtype] = ()
    if control_flow:
        whole = dtypes.COMPLEX if primitive.inner.control_flow is not None \
            else primitive.compiled.takes_complex
    for atom in (*eqn.invars, *eqn.outvars):
        dtype = atom.aval.dtype
        if dtype in COMPILED_DTYPES or dtype in whole:
            continue
        if control_flow and dtype in dtypes.COMPLEX:
            # Others of that dtype are computed as pairs of real numbers.
            return primitive.host.reason or f"{primitive.name} of {dtype.name} has no kernel"
        if not dtypes.is_opaque(dtype):
            return f"MAX has no {dtype.name}"
        if dtypes.physical(dtype) not in COMPILED_DTYPES:
            return f"MAX has no {dtype.name}"
    for inner in () if primitive.cacheable or (
            primitive.inner.control_flow is not None and control_flow) else subjaxprs(eqn.params):
        for inner_eqn in inner.eqns:
            reason = host_reason(inner_eqn, control_flow)
            if reason is not None:
                return f"its body has {inner_eqn.primitive.name}: {reason}"
    if primitive.composed is not None and control_flow:
        parts = primitive.composed([atom.aval for atom in eqn.invars], eqn.params)
        for inner_eqn in parts.jaxpr.eqns:
            reason = host_reason(inner_eqn, control_flow)
            if reason is not None:
                return f"it is composed of {inner_eqn.primitive.name}: {reason}"
    if primitive.lower is None:
        return primitive.host.reason or "it has no lowering"
    if primitive.host.reason is not None and not control_flow:
        return primitive.host.reason
    if primitive.is_own and not control_flow:
        return "its rules, which are the user's, are for the Mojo backend"
    if primitive.inner.control_flow is not None:
        if not control_flow:
            return HOST_REASON
        # The order of effects is that of steps of the host.
        return "its body has effects" if has_effects(eqn) else None
    if primitive.host.condition is not None:
        return primitive.host.condition(*[atom.aval for atom in eqn.invars], **eqn.params)
    return None


def host_reason_within(eqn: JaxprEqn) -> str | None:
    """``host_reason`` for an equation of a loop's or a choice's body that is a step of the host."""
    return host_reason(eqn, control_flow=True)


def partition(jaxpr: Jaxpr,
              reason: Callable[[JaxprEqn], str | None] = host_reason) -> list[Piece]:
    """The pieces of a jaxpr without constants, in the order in which they run."""
    stage: dict[Atom, tuple[int, bool]] = {}
    groups: dict[tuple[int, bool], list[JaxprEqn]] = {}
    reasons: dict[tuple[int, bool], list[str]] = {}
    after_effects = 0
    whys = [reason(eqn) for eqn in jaxpr.eqns]
    if jaxpr.eqns and not any(whys):
        groups[0, False] = jaxpr.eqns
    for eqn, why in zip(jaxpr.eqns, whys, strict=True) if not groups else ():
        on_host = why is not None
        effectful = has_effects(eqn)
        number = after_effects if effectful else 0
        for atom in eqn.invars:
            if atom in stage:
                before, was_host = stage[atom]
                # A host stage follows the compiled stage of its number.
                number = max(number, before + (1 if was_host and not on_host else 0))
        place = (number, on_host)
        if effectful:
            after_effects = number
        groups.setdefault(place, []).append(eqn)
        if why is not None:
            reasons.setdefault(place, []).append(f"{eqn.primitive.name}: {why}")
        for var in eqn.outvars:
            stage[var] = place
    wanted = set(jaxpr.outvars)
    pieces = []
    order = sorted(groups)
    used_by: dict[Var, set[Any]] = {}
    for place, eqns in groups.items() if len(groups) > 1 else ():
        for var in read_variables(eqns):
            used_by.setdefault(var, set()).add(place)
    for place in order:
        eqns = groups[place]
        made = {var: None for eqn in eqns for var in eqn.outvars}
        inputs = [var for var in read_variables(eqns) if var not in made]
        outputs = [var for var in made if not isinstance(var, DropVar)
                   and (var in wanted or used_by.get(var, set()) - {place})]
        pieces.append(Piece(place[1], Jaxpr([], inputs, outputs, eqns, jaxpr.debug_info),
                            list(dict.fromkeys(reasons.get(place, ())))))
    return pieces


def overwritable(jaxpr: Jaxpr, donated: Sequence[int], pieces: Sequence[Piece]
                 ) -> list[tuple[int, ...]]:
    """For each piece, those of its inputs that are donated to the program and that nothing but the
    piece reads: what another piece has read, it may have given on as its own result."""
    given = {jaxpr.invars[position] for position in donated}.difference(jaxpr.outvars)
    readers = Counter(var for piece in pieces for var in piece.inputs if var in given)
    return [tuple([position for position, var in enumerate(piece.inputs) if readers[var] == 1])
            for piece in pieces]
