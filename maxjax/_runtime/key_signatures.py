"""Whether a program uses a random key twice (``jax_debug_key_reuse``).

A signature says what an operation does with its keys: it consumes some of its operands (``Sink``),
gives new ones (``Source``), or passes one on (``Forward``). That of a jaxpr follows from those of
its equations. Operations that are not in the table consume the keys they are given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxjax._base.dtypes import KeyDType
from maxjax._base.errors import KeyReuseError
from maxjax._higher_order.checkpoint import remat_p
from maxjax._higher_order.debugging import debug_callback_p, debug_print_p
from maxjax._ir.control_flow import Role, Structure, structure_of
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var, derived
from maxjax._ir.primitive import Primitive
from maxjax._primitives.broadcasting import broadcast_in_dim_p
from maxjax._primitives.comparison import eq_p, ne_p
from maxjax._primitives.convert import convert_element_type_p
from maxjax._primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from maxjax._primitives.identities import stage_p
from maxjax._primitives.indexing import gather_p, scatter_p
from maxjax._primitives.joining import concatenate_p
from maxjax._primitives.layout import copy_p, reshape_p, squeeze_p
from maxjax._primitives.random_bits import (
    random_bits_p,
    random_clone_p,
    random_fold_in_p,
    random_seed_p,
    random_split_p,
    random_unwrap_p,
    random_wrap_p,
)
from maxjax._primitives.random_rejection import random_gamma_p
from maxjax._primitives.sharding import device_put_p, reshard_p, sharding_constraint_p
from maxjax._primitives.slicing import slice_p

# Which elements of an array of keys: all, or a mask of its shape.
Mask = Any


class Sink(NamedTuple):
    """Keys of an operand are consumed."""

    operand: int
    mask: Mask = True

    def __repr__(self) -> str:
        return _text("Sink", self.operand, self.mask)


class Source(NamedTuple):
    """Keys of a result are new."""

    result: int
    mask: Mask = True

    def __repr__(self) -> str:
        return _text("Source", self.result, self.mask)


def _text(name: str, place: int, mask: Mask) -> str:
    return f"{name}({place})" if mask is True else f"{name}({place}, {mask})"


class Forward(NamedTuple):
    """A result has the keys of an operand."""

    operand: int
    result: int

    def __repr__(self) -> str:
        return f"Forward({self.operand}, {self.result})"


class Signature(NamedTuple):
    sinks: tuple[Sink, ...] = ()
    sources: tuple[Source, ...] = ()
    forwards: tuple[Forward, ...] = ()

    def __repr__(self) -> str:
        parts = (*self.sinks, *self.sources, *self.forwards)
        return f"KeyReuseSignature({', '.join(map(repr, parts))}{',' * (len(parts) == 1)})"


_CONSUMES, _NEW = (Sink(0),), (Source(0),)
_NOTHING, _PASSES = Signature(), Signature((), (), (Forward(0, 0),))
_SIGNATURES: dict[Primitive, Signature] = {
    random_bits_p: Signature(_CONSUMES), random_gamma_p: Signature(_CONSUMES),
    random_split_p: Signature(_CONSUMES, _NEW),
    **dict.fromkeys((random_clone_p, random_fold_in_p, random_seed_p, random_wrap_p),
                    Signature((), _NEW)),
    **dict.fromkeys((random_unwrap_p, debug_callback_p, debug_print_p, eq_p, ne_p), _NOTHING),
    **dict.fromkeys((broadcast_in_dim_p, copy_p, stage_p, convert_element_type_p, reshape_p,
                     squeeze_p, sharding_constraint_p, reshard_p, dynamic_slice_p, gather_p),
                    _PASSES),
    dynamic_update_slice_p: Signature((Sink(1),), (), (Forward(0, 0),)),
    scatter_p: Signature((Sink(2),), (), (Forward(0, 0),)),
}


def _is_key(atom: Any) -> bool:
    return isinstance(atom.aval.dtype, KeyDType)


def overlap(a: Mask, b: Mask) -> bool:
    """Whether an element is in both."""
    return bool(np.any(np.logical_and(a, b)))


def union(a: Mask, b: Mask) -> Mask:
    return True if a is True or b is True else np.logical_or(a, b)


def complement(mask: Mask) -> Mask:
    return False if mask is True else True if mask is False else np.logical_not(mask)


def signature_of(eqn: JaxprEqn) -> Signature:
    """What an equation does with its keys.

    Raises:
      KeyReuseError: it, or what is in it, uses one twice.
    """
    known = _SIGNATURES.get(eqn.primitive)
    if known is not None:
        return known
    special = _SPECIAL.get(eqn.primitive)
    if special is not None:
        return special(eqn)
    if eqn.primitive.inner.control_flow is not None:
        flow = structure_of(eqn)
        return _loop(eqn, flow) if flow.is_loop else _choice(flow)
    callee = eqn.primitive.called(eqn.params)
    if callee is not None:
        return of_program(callee)
    return Signature(tuple([Sink(i) for i, x in enumerate(eqn.invars) if _is_key(x)]),
                     tuple([Source(i) for i, x in enumerate(eqn.outvars) if _is_key(x)]))


@derived
def of_program(closed: ClosedJaxpr) -> Signature:
    """What a program does to the keys among its inputs and, numbered behind them, its constants.

    Raises:
      KeyReuseError: it uses a key twice.
    """
    jaxpr = closed.jaxpr
    consumed: dict[Var, Mask] = {}
    passed: dict[Var, Var] = {}
    new: dict[Var, Mask] = {}

    def root(var: Var) -> Var:
        while var in passed:
            var = passed[var]
        return var

    for eqn in jaxpr.eqns:
        signature = signature_of(eqn)
        for sink in signature.sinks:
            atom = eqn.invars[sink.operand]
            if isinstance(atom, Literal):
                continue
            var = root(atom)
            before = consumed.get(var, False)
            mask = sink.mask if _fits(sink.mask, var) else True
            if overlap(before, mask):
                raise KeyReuseError(
                    f"In {eqn.primitive.name}, argument {sink.operand} is already consumed.")
            consumed[var] = union(before, mask)
        for source in signature.sources:
            new[eqn.outvars[source.result]] = source.mask
        for forward in signature.forwards:
            given = eqn.invars[forward.operand]
            if isinstance(given, Var) and _is_key(given):
                passed[eqn.outvars[forward.result]] = given
    inputs = [*jaxpr.invars, *jaxpr.constvars]
    places = {var: number for number, var in enumerate(inputs)}
    sources, forwards = [], []
    for number, atom in enumerate(jaxpr.outvars):
        if isinstance(atom, Var) and _is_key(atom):
            var = root(atom)
            if var in places:
                forwards.append(Forward(places[var], number))
            else:
                left = np.logical_and(new.get(var, True), complement(consumed.get(var, False)))
                if np.any(left):
                    sources.append(Source(number, True if np.all(left) else left))
    return Signature(
        tuple([Sink(number, consumed[var]) for number, var in enumerate(inputs)
               if var in consumed]), tuple(sources), tuple(forwards))


def _fits(mask: Mask, var: Var) -> bool:
    return mask is True or np.shape(mask) == var.aval.shape


# --- equations whose parameters decide ------------------------------------------------------------


def _slice(eqn: JaxprEqn) -> Signature:
    x, = eqn.invars
    if not _is_key(x):
        return Signature()
    params = eqn.params
    strides = params["strides"] or (1,) * len(x.aval.shape)
    mask = np.zeros(x.aval.shape, bool)
    mask[tuple([slice(*part) for part in zip(
        params["start_indices"], params["limit_indices"], strides, strict=True)])] = True
    return Signature((Sink(0, mask),), _NEW)


def _concatenate(eqn: JaxprEqn) -> Signature:
    return Signature(tuple([Sink(i) for i, x in enumerate(eqn.invars) if _is_key(x)]),
                     _NEW if _is_key(eqn.outvars[0]) else ())


def _each(eqn: JaxprEqn) -> Signature:
    return Signature((), (), tuple([Forward(i, i) for i in range(len(eqn.invars))]))


def _remat(eqn: JaxprEqn) -> Signature:
    """Where it is differentiated, the first pass has used the keys before, and they are meant to be
    used again."""
    return Signature() if eqn.params["differentiated"] else of_program(eqn.params["jaxpr"])


def _choice(flow: Structure) -> Signature:
    sinks: dict[int, Mask] = {}
    sources: list[set[int]] = []
    for body in flow.bodies:
        signature = of_program(body.jaxpr)
        for sink in signature.sinks:
            if sink.operand < len(body.takes):
                number = body.takes[sink.operand]
                sinks[number] = union(sinks.get(number, False), sink.mask)
        sources.append({source.result for source in signature.sources})
    return Signature(tuple([Sink(*item) for item in sorted(sinks.items())]),
                     tuple(map(Source, sorted(set.intersection(*sources)))))


def _loop(eqn: JaxprEqn, flow: Structure) -> Signature:
    is_while = flow.predicate is not None
    if flow.predicate is not None:
        signature = of_program(flow.predicate.jaxpr)
        if signature.sinks:
            raise KeyReuseError(
                "while_loop cond function leads to key reuse when repeatedly executed:   "
                f"cond_signature={signature}\n  eqn={eqn}")
    body, = flow.producers
    signature = of_program(body.jaxpr)
    name, label = ("while_loop", "  body_signature") if is_while else ("scan", "\n  signature")
    sources = {source.result for source in signature.sources}
    renewed = {number for position, number in enumerate(flow.carries) if position in sources}
    taken = [body.takes[sink.operand] if sink.operand < len(body.takes) else None
             for sink in signature.sinks]
    reused = [number for number in taken
              if number is None or flow.roles[number] is not Role.SCANNED
              and number not in renewed]
    if reused:
        why = "" if is_while else ", because key constants are repeatedly consumed"
        raise KeyReuseError(
            f"{name} body function leads to key reuse when repeatedly executed{why}:"
            f"{' ' if is_while else ''}{label}={signature}\n  eqn={eqn}")
    return Signature(tuple([Sink(number) for number in taken if number is not None]),
                     tuple(map(Source, sorted(sources))))


_SPECIAL: dict[Primitive, Callable[[JaxprEqn], Signature]] = {
    slice_p: _slice, concatenate_p: _concatenate, device_put_p: _each, remat_p: _remat}
