"""Tier 0: a jaxpr as a Python function of NumPy arrays.

The equations become the lines of a generated function, so that a call costs nothing beyond the
NumPy calls themselves:

    def program(a, b):
        c = mul(a, b)
        d = reduce_sum(c)
        c = None
        return [d]

That of a program with donated arguments takes them in a list, which it empties: they are freed, or
overwritten, where they are read for the last time.

    def program(values):
        a, b, = values
        values.clear()
        out = a if is_alone(a) else None
        c = mul(a, b, out=out)
        a = out = None
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base.ownership import is_alone
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, derived
from maxjax._ir.liveness import last_uses, variables
from maxjax._ir.primitive import op_spec
from maxjax._ir.types import ShapedArray

if TYPE_CHECKING:
    from maxjax._ir.jaxpr import Atom

_SCALAR_TYPES = {kind.__name__: kind for kind in (
    np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    np.float16, np.float32, np.float64, np.complex64, np.complex128)}

# Smaller results are not worth a line that frees them.
_FREE_BYTES = 16 << 10


def source_of(jaxpr: Jaxpr, namespace: dict[str, object],
              donated: Collection[int] = ()) -> str:
    """The Python source of a jaxpr, constants first among its parameters; fills ``namespace``.

    Args:
      donated: the inputs, after the constants, whose memory results may take.
    """
    writer = _Writer(jaxpr, namespace, donated)
    for position, eqn in enumerate(jaxpr.eqns):
        writer.write(position, eqn)
    writer.lines.append(f"    return [{', '.join(map(writer.read, jaxpr.outvars))}]")
    return "\n".join(writer.lines)


class _Writer:
    """The lines of a program, which ``source_of`` describes."""

    def __init__(self, jaxpr: Jaxpr, namespace: dict[str, object], donated: Collection[int]):
        self._names: dict[Var, str] = {}
        self._namespace = namespace
        namespace.update(_SCALAR_TYPES)
        parameters = [self._name(var) for var in (*jaxpr.constvars, *jaxpr.invars)]
        self._last = last_uses(jaxpr)
        self._given = {jaxpr.invars[position] for position in donated}
        self._kept = {*jaxpr.constvars, *jaxpr.invars} - self._given
        # What is overwritten however small it is; and what functions of NumPy's have made, which
        # give arrays of their own, no views.
        self._chain: set[Atom] = {*self._given}
        self._fresh: set[Atom] = set()
        self._reads: Counter[Atom] = Counter(
            atom for eqn in jaxpr.eqns for atom in {*variables(eqn.invars)})
        if donated:
            self.lines = ["def program(values):", f"    {', '.join(parameters)}, = values",
                          "    values.clear()"]
            namespace["is_alone"] = is_alone
        else:
            self.lines = [f"def program({', '.join(parameters)}):"]

    def _name(self, var: Var) -> str:
        return self._names.setdefault(var, f"v{len(self._names)}")

    def read(self, atom: Atom, as_array: bool = False) -> str:
        """The name of a value; a literal is an array where a function of NumPy's takes it, which
        then takes less time."""
        if not isinstance(atom, Literal):
            return self._name(atom)
        key = f"c{len(self._namespace)}"
        self._namespace[key] = np.asarray(atom.val, atom.aval.dtype) if as_array else atom.val
        return key

    def write(self, position: int, eqn: JaxprEqn) -> None:
        """The lines of an equation."""
        run = runner(eqn)
        operands = list(map(self.read, eqn.invars))
        expression = _expression(eqn, run, operands)
        taken = None
        if expression is None:
            if isinstance(run, np.ufunc) and any(atom.aval.shape for atom in eqn.invars):
                operands = [self.read(atom, as_array=True) for atom in eqn.invars]
            taken = self._taken(position, eqn, run) if self._given else None
            if taken is not None:
                operands.append("out=out")
            if isinstance(run, np.ufunc):
                self._fresh.update(eqn.outvars)
            function = f"{_identifier(eqn.primitive.name)}_{position}"
            self._namespace[function] = run
            expression = f"{function}({', '.join(operands)})"
        results = ", ".join(map(self._name, eqn.outvars))
        if eqn.primitive.multiple_results:
            results += ","
            if not eqn.outvars:
                results = "_"
        self.lines.append(f"    {results} = {expression}")
        freed = [atom for atom in eqn.invars if self._last.get(atom) == position
                 and (atom.aval.nbytes > _FREE_BYTES or self._may_hold_given(atom))]
        names_freed = list(map(self.read, dict.fromkeys(freed)))
        if taken is not None:
            names_freed += [x for x in (self.read(taken), "out") if x not in names_freed]
        if names_freed:
            self.lines.append(f"    {' = '.join(names_freed)} = None")

    def _may_hold_given(self, atom: Atom) -> bool:
        """Whether a value may be a view, by which it would keep what is donated from being
        overwritten later."""
        return bool(self._given) and atom not in self._fresh and atom not in self._kept

    def _taken(self, position: int, eqn: JaxprEqn, run: object) -> Atom | None:
        """The operand whose memory the result takes, if it may; decided in a line of its own: as an
        operand it would be referred to once more."""
        taken = _overwritten(eqn, run, [
            atom for atom in eqn.invars if self._last.get(atom) == position
            and atom not in self._kept
            and (atom in self._chain or atom.aval.nbytes > _FREE_BYTES)])
        if taken is not None:
            self._chain.update(eqn.outvars)
            name = self.read(taken)
            test = f"is_alone({name})" if self._reads[taken] > 1 else (
                "True" if taken in self._fresh else f"{name}.flags.writeable"
                if taken in self._given else f"is_alone({name})")
            self.lines.append(f"    out = {name} if {test} else None")
        return taken


def _overwritten(eqn: JaxprEqn, run: object, operands: Sequence[Atom]) -> Atom | None:
    """The operand that an equation may write its result to, of those that it reads last: where its
    rule is a function of NumPy's that computes element by element, or updates its first operand."""
    if eqn.primitive.host.updates:
        updated = eqn.invars[0]
        return (updated if updated in operands and updated.aval.shape
                and eqn.invars.count(updated) == 1 else None)
    if not isinstance(run, np.ufunc) or run.nout != 1 or run.signature is not None:
        return None
    result, = eqn.outvars
    return next((atom for atom in operands
                 if atom.aval.shape and atom.aval.shape == result.aval.shape
                 and atom.aval.dtype == result.aval.dtype), None)


# On NumPy's scalars Python's operators compute the same in a tenth of the time.
_OPERATORS = {
    np.add: "{} + {}", np.subtract: "{} - {}", np.multiply: "{} * {}", np.divide: "{} / {}",
    np.less: "{} < {}", np.less_equal: "{} <= {}", np.greater: "{} > {}",
    np.greater_equal: "{} >= {}", np.equal: "{} == {}", np.not_equal: "{} != {}",
    np.bitwise_and: "{} & {}", np.bitwise_or: "{} | {}", np.bitwise_xor: "{} ^ {}",
    np.negative: "-{}", np.bitwise_not: "~{}",
}


def _expression(eqn: JaxprEqn, run: Callable[..., object] | None, operands: list[str]
                ) -> str | None:
    """Cheap equations as Python expressions; None for those that call their NumPy rule."""
    avals = [atom.aval for atom in (*eqn.invars, *eqn.outvars)]
    if eqn.primitive.host.expression is not None:
        text = eqn.primitive.host.expression(avals, operands)
        if text is not None:
            return text
    if not all(map(is_plain_scalar, avals)):
        return None
    template = _OPERATORS.get(run) if isinstance(run, np.ufunc) else None
    return None if template is None else template.format(*operands)


def is_plain_scalar(aval: ShapedArray) -> bool:
    """Scalars of the dtypes that ml_dtypes adds are left to their own rules."""
    return not aval.shape and getattr(aval.dtype, "isbuiltin", 0) == 1


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def runner(eqn: JaxprEqn) -> Callable[..., Any]:
    """The NumPy function of an equation."""
    avals: tuple[ShapedArray, ...] = tuple([atom.aval for atom in eqn.invars])
    run = op_spec(eqn.primitive, avals, eqn.params).run
    if run is None:
        raise eqn.primitive.without_rule()
    return run


@derived
def interpreter(closed: ClosedJaxpr, donated: tuple[int, ...] = ()) -> Callable[..., list[Any]]:
    """A function of NumPy arrays that computes a jaxpr with its constants; if there are donated
    inputs, of a list of arrays, which it empties."""
    namespace: dict[str, Any] = {}
    source = source_of(closed.jaxpr, namespace, donated)
    filename = f"<tier 0 of {closed.jaxpr.debug_info or 'a program'}>"
    exec(compile(source, filename, "exec"), namespace)
    program = namespace["program"]
    if not closed.consts:
        return program
    consts = tuple([value.host() if hasattr(value, "host") else value for value in closed.consts])
    return lambda *values: program(*consts, *values)
