"""Quotients by what is the same for many elements are products with its reciprocal, as in XLA.

    y = x / 3.0              y = x * 0.33333334
    y = x / broadcast(s)     y = x * broadcast(1 / s)

That is another number than the quotient, in the last bit, and takes less time. It is done after
tracing, where a program is made ready to run: what is traced, printed or exported has the quotient.
It concerns float16, float32 and float64: XLA keeps quotients of complex numbers, and computes
bfloat16 in float32, where both come to the same.

XLA does so where the divisor
- is a constant of the program, a number or an array, or is computed from such alone;
- has dimensions of size 1 along which it is broadcast;
- is a scalar or an array that is broadcast to more dimensions, and that nothing else reads: not a
  second quotient either. What a loop hands on from one iteration to the next is read by that too.

An operation outside a program is a program of its own: nothing else reads its operands, and none is
a constant (``alone``, ``each_alone``). Functions such as ``mean``, which are programs in JAX, have
constants of their own there too (``divide_by_constant``).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from maxjax._ir.control_flow import Role, Structure, structure_of
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, derived, note
from maxjax._ir.liveness import has_effects, read_variables, variables
from maxjax._ir.primitive import Primitive, op_spec
from maxjax._ir.staging import is_staging, traces_eager_call
from maxjax._ir.trace import Array
from maxjax._primitives.arithmetic import div_p, has_reciprocal, mul_p, one_over
from maxjax._primitives.broadcasting import broadcast_in_dim_p
from maxjax._transforms.hoist import hoist_invariants
from maxjax._transforms.simplify import called, inline_calls, simplify, simplify_once


def multiply_by_reciprocals(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A simplified program with products in the place of quotients, also in loops and branches."""
    if not _divides(closed):
        return closed
    jaxpr = closed.jaxpr
    rewriting = _Rewriting(jaxpr, set(jaxpr.constvars), ())
    eqns = rewriting.run()
    if rewriting.leaves_loops:
        eqns = hoist_invariants(closed.replace(eqns=eqns)).jaxpr.eqns
    return _with_constants(closed.replace(eqns=eqns))


def each_alone(closed: ClosedJaxpr, program: Primitive) -> ClosedJaxpr:
    """The operations of a function that is called outside programs, each one of its own.

    Args:
      program: the primitive of the calls that are programs there too. All calls are inlined.
    """
    def callee(eqn: JaxprEqn) -> ClosedJaxpr | None:
        inner = called(eqn)
        if inner is None or eqn.primitive is not program:
            return inner and each_alone(inner, program)
        return multiply_by_reciprocals(simplify(inner))

    return inline_calls(
        closed.replace(eqns=[new for eqn in closed.jaxpr.eqns for new in alone(eqn)]), callee)


def alone(eqn: JaxprEqn) -> list[JaxprEqn]:
    """The equations of an operation outside a program.

    A number that was traced into it is an operand like others there: a single element is divided by
    it, more are multiplied.
    """
    if not _is_quotient(eqn) or (
            isinstance(eqn.invars[1], Literal) and _is_one(eqn.outvars[0].aval.shape)):
        return [eqn]
    jaxpr = Jaxpr([], variables(eqn.invars), eqn.outvars, [eqn])
    return _Rewriting(jaxpr, set(), ()).run()


def divide_by_constant(x: Array, divisor: np.generic | Array) -> Array:
    """A quotient in a function that is a program in JAX, and its divisor a constant of that.

    Args:
      divisor: a scalar of the dtype of ``x``; an array only for a symbolic size.
    """
    is_written_down = is_staging() and not traces_eager_call()
    if isinstance(divisor, np.generic) and has_reciprocal(divisor.dtype) and not is_written_down:
        # A cache would take -0.0 for 0.0.
        reciprocal = _known_reciprocal if divisor else _reciprocal
        return mul_p.bind(x, reciprocal(divisor, divisor.dtype))
    return div_p.bind(x, divisor)


def _reciprocal(number: np.generic, dtype: np.dtype) -> np.generic:
    with np.errstate(all="ignore"):
        return np.divide(1, number, dtype=dtype)


_known_reciprocal = functools.lru_cache(256)(_reciprocal)


@derived
def _divides(closed: ClosedJaxpr) -> bool:
    """Whether there is anything to look at: most programs have no quotients."""
    return any(_is_quotient(eqn) or any(map(_divides, _bodies(eqn))) for eqn in closed.jaxpr.eqns)


def _bodies(eqn: JaxprEqn) -> Sequence[ClosedJaxpr]:
    flow = None if eqn.primitive.inner.control_flow is None else structure_of(eqn)
    return [] if flow is None else [body.jaxpr for body in flow.bodies]


def _is_quotient(eqn: JaxprEqn) -> bool:
    return eqn.primitive is div_p and has_reciprocal(eqn.outvars[0].aval.dtype)


@derived
def _body(closed: ClosedJaxpr, known: tuple[bool, ...], handed_on: tuple[bool, ...]
          ) -> tuple[ClosedJaxpr, bool]:
    """A body with products, and whether reciprocals of constants are computed in it.

    Args:
      known: for each input, whether it is a constant of the program.
      handed_on: for each input, whether the next iteration takes it as well.
    """
    jaxpr = closed.jaxpr
    rewriting = _Rewriting(
        jaxpr, {*jaxpr.constvars, *_chosen(jaxpr.invars, known)}, _chosen(jaxpr.invars, handed_on))
    new = closed.replace(eqns=rewriting.run())
    note(new, simplify_once, new)
    return new, rewriting.leaves_loops


def _chosen(values: Sequence[Var], flags: Sequence[bool]) -> list[Var]:
    return [value for value, flag in zip(values, flags, strict=True) if flag]


class _Rewriting:
    """One jaxpr.

    Attributes:
      known: variables that are computed from constants of the program.
      uses: how often each is read.
      leaves_loops: a reciprocal of a constant is computed here or in a body.
    """

    def __init__(self, jaxpr: Jaxpr, known: set[Var], also_read: Iterable[Var]):
        self.jaxpr = jaxpr
        self.known = known
        self.uses: Counter[Atom] = Counter(
            var for eqn in jaxpr.eqns for var in variables(eqn.invars))
        self.uses.update(variables(jaxpr.outvars))
        self.uses.update(also_read)
        self.made: dict[Atom, JaxprEqn] = {}
        self.reciprocals: dict[Var, Var] = {}
        self.eqns: list[JaxprEqn] = []
        self.leaves_loops = False

    def run(self) -> list[JaxprEqn]:
        for eqn in self.jaxpr.eqns:
            if _is_quotient(eqn):
                factor = self._factor(eqn, *eqn.invars)
                if factor is not None:
                    eqn = eqn.replace(primitive=mul_p, invars=[eqn.invars[0], factor])
            elif eqn.primitive.inner.control_flow is not None:
                eqn = self._with_bodies(eqn, structure_of(eqn))
            elif self._is_known(eqn):
                self.known.update(eqn.outvars)
            if len(eqn.outvars) == 1:
                self.made[eqn.outvars[0]] = eqn
            self.eqns.append(eqn)
        return self.eqns

    def _is_known(self, eqn: JaxprEqn) -> bool:
        return (not has_effects(eqn) and eqn.primitive.cacheable
                and all(map(self._is_constant, eqn.invars))
                and bool(variables(eqn.invars)))

    def _is_constant(self, atom: Atom) -> bool:
        return isinstance(atom, Literal) or atom in self.known

    def _factor(self, eqn: JaxprEqn, x: Atom, y: Atom) -> Atom | None:
        """What x is multiplied by; None where it is divided."""
        shape = eqn.outvars[0].aval.shape
        if x.aval.shape != shape or self._is_constant(x) and self._is_constant(y):
            return None
        if isinstance(y, Literal):
            return Literal(_reciprocal(y.aval.dtype.type(y.val), y.aval.dtype), y.aval)
        if y in self.known:
            self.leaves_loops = True
            return self._reciprocal(eqn, y)
        if y.aval.shape != shape:
            if y.aval.ndim or self.uses[y] == 1 and not _is_one(shape):
                return self._reciprocal(eqn, y)
            return None
        producer = self.made.get(y)
        if producer is None or producer.primitive is not broadcast_in_dim_p:
            return None
        source = producer.invars[0]
        if (isinstance(source, Literal) or len(producer.invars) > 1
                or _is_one(shape) or _same_but_ones(source.aval.shape, shape)
                or self.uses[source] > 1):
            return None
        factor = Var(y.aval)
        self.eqns.append(producer.replace(
            invars=[self._reciprocal(eqn, source)], outvars=[factor]))
        return factor

    def _reciprocal(self, eqn: JaxprEqn, y: Var) -> Var:
        made = self.reciprocals.get(y)
        if made is None:
            made = self.reciprocals[y] = Var(y.aval)
            self.eqns.append(JaxprEqn(
                div_p, [one_over(y.aval), y], {}, [made], eqn.source))
            if y in self.known:
                self.known.add(made)
        return made

    def _with_bodies(self, eqn: JaxprEqn, flow: Structure) -> JaxprEqn:
        if not any(_divides(body.jaxpr) for body in flow.bodies):
            return eqn
        constant = [role is Role.CONSTANT for role in flow.roles]
        known = [flag and self._is_constant(atom)
                 for flag, atom in zip(constant, eqn.invars, strict=True)]
        jaxprs = []
        for body in flow.bodies:
            new, leaves = _body(body.jaxpr, tuple([known[number] for number in body.takes]),
                                tuple([flow.is_loop and constant[number] for number in body.takes]))
            jaxprs.append(new)
            self.leaves_loops = self.leaves_loops or leaves
        return eqn.replace(params=flow.operands.description.with_jaxprs(eqn.params, jaxprs))


def _is_one(shape: Sequence[object]) -> bool:
    return all(type(size) is int and size == 1 for size in shape)


def _same_but_ones(shape: Sequence[object], other: Sequence[object]) -> bool:
    """Whether a broadcast from one shape to the other repeats nothing."""
    def sizes(shape: Sequence[object]) -> list[object]:
        return [size for size in shape if not (type(size) is int and size == 1)]
    return sizes(shape) == sizes(other)


def _with_constants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The reciprocals of arrays that are constants, as constants."""
    jaxpr = closed.jaxpr
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    eqns, constvars, consts = [], [*jaxpr.constvars], [*closed.consts]
    for eqn in jaxpr.eqns:
        if (_is_quotient(eqn) and isinstance(eqn.invars[0], Literal) and eqn.invars[1] in values
                and eqn.invars[0].val == 1):
            value = values[eqn.invars[1]]
            run = op_spec(div_p, tuple([atom.aval for atom in eqn.invars]), {}).run
            assert run is not None
            with np.errstate(all="ignore"):
                consts.append(run(eqn.invars[0].val,
                                  value.host() if hasattr(value, "host") else np.asarray(value)))
            constvars.append(eqn.outvars[0])
        else:
            eqns.append(eqn)
    if len(consts) == len(closed.consts):
        return closed
    read = read_variables(eqns, jaxpr.outvars)
    kept = [number for number, var in enumerate(constvars) if var in read]
    return ClosedJaxpr(
        jaxpr.replace(constvars=[constvars[number] for number in kept], eqns=eqns),
        [consts[number] for number in kept], facts=closed.facts)
