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
    names: dict[Var, str] = {}
    namespace.update(_SCALAR_TYPES)

    def name(var: Var) -> str:
        return names.setdefault(var, f"v{len(names)}")

    def read(atom: Atom) -> str:
        if isinstance(atom, Literal):
            key = f"c{len(namespace)}"
            namespace[key] = atom.val
            return key
        return name(atom)

    def as_arrays(atoms: Sequence[Atom]) -> list[str]:
        """As ``read``: literals as arrays, which functions of NumPy's take in less time."""
        operands = list(map(read, atoms))
        for key, atom in zip(operands, atoms, strict=True):
            if isinstance(atom, Literal):
                namespace[key] = np.asarray(atom.val, atom.aval.dtype)
        return operands

    parameters = [name(var) for var in (*jaxpr.constvars, *jaxpr.invars)]
    last = last_uses(jaxpr)
    given = {jaxpr.invars[position] for position in donated}
    kept = {*jaxpr.constvars, *jaxpr.invars} - given
    # What is overwritten however small it is; and what functions of NumPy's have made, which give
    # arrays of their own, no views.
    chain: set[Atom] = {*given}
    fresh: set[Atom] = set()
    reads: Counter[Atom] = Counter(atom for eqn in jaxpr.eqns for atom in {*variables(eqn.invars)})
    if donated:
        lines = ["def program(values):", f"    {', '.join(parameters)}, = values",
                 "    values.clear()"]
        namespace["is_alone"] = is_alone
    else:
        lines = [f"def program({', '.join(parameters)}):"]
    for position, eqn in enumerate(jaxpr.eqns):
        run = runner(eqn)
        operands = list(map(read, eqn.invars))
        expression = _expression(eqn, run, operands)
        taken = None
        if expression is None:
            taken = _overwritten(eqn, run, [
                atom for atom in eqn.invars if last.get(atom) == position and atom not in kept
                and (atom in chain or atom.aval.nbytes > _FREE_BYTES)]) if donated else None
            if taken is not None:
                chain.update(eqn.outvars)
                # On a line of its own: as an operand it would be referred to once more.
                test = f"is_alone({read(taken)})" if reads[taken] > 1 else (
                    "True" if taken in fresh else f"{read(taken)}.flags.writeable"
                    if taken in given else f"is_alone({read(taken)})")
                lines.append(f"    out = {read(taken)} if {test} else None")
                operands.append("out=out")
            if isinstance(run, np.ufunc):
                if any(atom.aval.shape for atom in eqn.invars):
                    operands[:len(eqn.invars)] = as_arrays(eqn.invars)
                fresh.update(eqn.outvars)
            function = f"{_identifier(eqn.primitive.name)}_{position}"
            namespace[function] = run
            expression = f"{function}({', '.join(operands)})"
        results = ", ".join(map(name, eqn.outvars))
        if eqn.primitive.multiple_results:
            results += ","
            if not eqn.outvars:
                results = "_"
        lines.append(f"    {results} = {expression}")
        freed = [atom for atom in eqn.invars if last.get(atom) == position
                 and atom.aval.nbytes > _FREE_BYTES]
        names_freed = list(map(read, dict.fromkeys(freed)))
        if taken is not None:
            names_freed += [x for x in (read(taken), "out") if x not in names_freed]
        if names_freed:
            lines.append(f"    {' = '.join(names_freed)} = None")
    lines.append(f"    return [{', '.join(map(read, jaxpr.outvars))}]")
    return "\n".join(lines)


def _overwritten(eqn: JaxprEqn, run: object, operands: Sequence[Atom]) -> Atom | None:
    """The operand that an equation may write its result to, of those that it reads last: where its
    rule is a function of NumPy's that computes element by element."""
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
    if eqn.primitive.expression is not None:
        text = eqn.primitive.expression(avals, operands)
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
