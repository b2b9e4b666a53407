"""Partial results: which operations may run on the parts of a sum before it is summed.

The parts of ``x = psum(part)`` may stay parts through ``f`` as long as ``psum(f(part))`` is
``f(x)``: through what is linear in them alone, and through sums of values that are all in parts.
A value stays in parts only if all of its uses allow that and reducing what comes of them costs no
more than reducing it at once, where it is made. So a sum of two partial gradients is one reduction,
and a broadcast of a partial sum is preceded by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var

Parts = Mapping[str, str]      # axis -> how the parts combine

# Linear in each of the named operands by itself (None: in any), the others being whole.
_ONE: dict[str, tuple[int, ...] | None] = {
    "mul": None, "dot_general": None, "conv_general_dilated": None, "div": (0,),
    "gather": (0,), "dynamic_slice": (0,), "triangular_solve": (1,),
}
# Linear in all of the named operands together (None: all of them).
_ALL: dict[str, tuple[int, ...] | None] = {
    "add": None, "add_any": None, "sub": None, "concatenate": None, "stack": None,
    "complex": None, "select_n": (), "dynamic_update_slice": (0, 1), "pad": (0, 1),
    "neg": None, "real": None, "imag": None, "conj": None, "reduce_sum": None, "cumsum": None,
    "reduce_window_sum": None, "split": None, "unstack": None, "tile": None, "fft": None,
    "convert_element_type": None,
}
# Movement of elements: any kind of part will do.
_MOVES = frozenset({"reshape", "transpose", "squeeze", "broadcast_in_dim", "slice", "copy", "rev",
                    "stage", "name", "optimization_barrier"})


def accumulators(jaxpr: Jaxpr, carries_in: Sequence[Var], carries_out: Sequence[Atom]) -> list[int]:
    """The carries of a loop that are only ever added to: ``out = in + x``."""
    uses: Counter[Var] = Counter(
        atom for eqn in jaxpr.eqns for atom in eqn.invars if isinstance(atom, Var))
    uses.update(atom for atom in jaxpr.outvars if isinstance(atom, Var))
    makers = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    found = []
    for number, (source, target) in enumerate(zip(carries_in, carries_out, strict=True)):
        eqn = makers.get(target) if isinstance(target, Var) else None
        if (eqn is not None and eqn.primitive.name in ("add", "add_any") and source in eqn.invars
                and uses[source] == 1 and isinstance(target, Var) and uses[target] == 1):
            found.append(number)
    return found


def _keeps_precision(eqn: JaxprEqn) -> bool:
    """A conversion is linear if it rounds nothing: to a wider type of the same kind."""
    before, after = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    return (dtypes.is_inexact(before) == dtypes.is_inexact(after)
            and before.kind != "b" and after.itemsize >= before.itemsize
            and (before.kind == after.kind or dtypes.is_inexact(before)))


def passes(eqn: JaxprEqn, axis: str, kind: str, parts: Sequence[Parts]) -> bool:
    """Whether the result is in parts as the operands are, which hold them along ``axis``."""
    name = eqn.primitive.name
    here = [number for number, part in enumerate(parts) if axis in part]
    if any(parts[number][axis] != kind for number in here):
        return False
    if name in _MOVES:
        return True
    if kind != "add":
        return False
    if name == "gather" and not _fills_with_sum(eqn):
        return False
    if name in _ONE:
        places = _ONE[name]
        return len(here) == 1 and (places is None or here[0] in places)
    if name not in _ALL or (name == "convert_element_type" and not _keeps_precision(eqn)):
        return False
    places = _ALL[name]
    wanted = (range(1, len(parts)) if name == "select_n"
              else range(len(parts)) if places is None else places)
    return set(here) <= set(wanted) and all(
        number in here or _is_zero(eqn.invars[number]) for number in wanted)


def _fills_with_sum(eqn: JaxprEqn) -> bool:
    """What stands outside the bounds must be a sum of itself: NaN or 0."""
    fill = eqn.params["fill_value"]
    if fill is not None:
        return bool(fill.value == 0)
    return dtypes.is_inexact(eqn.outvars[0].aval.dtype)


def _is_zero(atom: Atom) -> bool:
    return isinstance(atom, Literal) and bool(atom.val == 0)


def kept(jaxpr: Jaxpr, made: Callable[[JaxprEqn], Parts], used: Callable[[JaxprEqn], set[str]],
         axes_of: Callable[[Var], set[str]], asked: Mapping[Var, Parts],
         price: Callable[[Var], float], given: Mapping[Var, Parts]) -> tuple[
             dict[Var, Parts], dict[JaxprEqn, Parts]]:
    """For each variable the axes along which it stays in parts, and for each equation those along
    which it computes parts of its result from parts of its operands. What is not kept is reduced
    where it is made.

    Args:
      made: the parts that an equation makes of whole operands.
      used: the axes that an equation splits its work over.
      axes_of: the axes that split a variable's dimensions.
      asked: the parts that outputs are wanted in.
      price: what it costs to reduce a variable.
      given: the parts that inputs come in.
    """
    reduced: set[Var] = {var for var in jaxpr.outvars if isinstance(var, Var) and var not in asked}
    while True:
        parts: dict[Var, Parts] = {var: part for var, part in given.items() if var not in reduced}
        through: dict[JaxprEqn, Parts] = {}
        size = len(reduced)

        def of(atom: Atom, parts: Any = parts) -> Parts:
            return parts.get(atom, {}) if isinstance(atom, Var) else {}

        for eqn in jaxpr.eqns:
            operands = [of(atom) for atom in eqn.invars]
            own = made(eqn)
            found: dict[str, str] = {}
            incoming = {axis: kind for part in operands for axis, kind in part.items()}
            if incoming:
                # Of a barrier's operands each has its own result: all or none stays in parts.
                several = len(eqn.outvars) > 1 and eqn.primitive.name == "optimization_barrier"
                busy = used(eqn)
                for axis, kind in incoming.items():
                    if several or axis in busy or axis in own or not passes(
                            eqn, axis, kind, operands):
                        reduced.update(atom for atom, part in zip(
                            eqn.invars, operands, strict=True)
                            if axis in part and isinstance(atom, Var))
                    else:
                        found[axis] = kind
            through[eqn] = found
            found = {**own, **found}
            for var in eqn.outvars:
                if found.keys() & axes_of(var):
                    reduced.add(var)
                if found and var not in reduced:
                    parts[var] = found
        later: dict[Var, float] = dict.fromkeys(asked, 0.0)      # the price of what comes of it
        for eqn in reversed(jaxpr.eqns):
            if not through[eqn]:
                continue
            cost = 0.0
            for var in eqn.outvars:
                if var in parts and later.get(var, 0.0) > price(var):
                    reduced.add(var)
                cost += price(var) if var in reduced else later.get(var, 0.0)
            for atom in {atom for atom in eqn.invars if isinstance(atom, Var) and atom in parts}:
                later[atom] = later.get(atom, 0.0) + cost
        reduced.update(var for var, cost in later.items() if var in parts and cost > price(var))
        if len(reduced) == size:
            return parts, through
