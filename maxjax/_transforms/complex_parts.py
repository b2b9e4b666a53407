"""Complex numbers as pairs of real ones, which backends compute with.

    c:c64[8] = mul a b        a', a'', b', b'' are the parts of a and b:
                              d:f32[8] = mul a' b'      e:f32[8] = mul a'' b''
                              c':f32[8] = sub d e       and c'' likewise

Loops and branches carry pairs. An equation without a rule here gets whole numbers, and what it
gives is taken apart: where most are of that kind, a program is left alone. Equations of linear
algebra are not counted: LAPACK takes whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import bodies_of, structure_of
from maxjax._ir.evaluate import apply_equation, eval_jaxpr, literal_operand
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Params, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.typing import Value
from maxjax._primitives.arithmetic import (
    add,
    add_p,
    complex_p,
    imag_p,
    neg,
    neg_p,
    real_p,
    sub,
    sub_p,
)
from maxjax._primitives.broadcasting import broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.builders import add_any_p
from maxjax._primitives.comparison import eq_p, ne_p, select_n_p
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.convert import convert_element_type_p
from maxjax._primitives.cumulative import cumsum_p
from maxjax._primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from maxjax._primitives.gather_plan import FillValue, GatherScatterMode, default_fill
from maxjax._primitives.identities import name_p, optimization_barrier_p
from maxjax._primitives.indexing import (
    gather_p,
    scatter_add_p,
    scatter_p,
    scatter_sub_p,
)
from maxjax._primitives.joining import concatenate, concatenate_p, split_p
from maxjax._primitives.layout import (
    copy_p,
    reshape,
    reshape_p,
    rev_p,
    squeeze_p,
    transpose,
    transpose_p,
)
from maxjax._primitives.linalg_factors import qr_by_reflections, qr_p
from maxjax._primitives.linalg_solve import triangular_solve_p
from maxjax._primitives.reduction import reduce_prod_p
from maxjax._primitives.slicing import pad_p, slice_in_dim, slice_p
from maxjax._primitives.stacking import stack_p, tile_p, unstack_p
from maxjax._transforms import complex_functions, complex_inverses
from maxjax._transforms.complex_functions import (
    Complex,
    Operand,
    Parts,
    both,
    either,
    number_like,
    of_shape,
    product_of,
)
from maxjax._transforms.simplify import simplify

_WHOLE = frozenset(dtypes.COMPLEX)
# Equations with rules, for each without one, from which on a program is taken apart.
_LEAST_RULED = 2


def split_complex(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr without constants, with parts in the place of complex values inside it."""
    if not _has_complex(closed):
        return closed
    ruled = other = 0
    for eqn in _equations(closed):
        if _is_complex(eqn) and not (
                eqn.primitive.inner.control_flow is not None
                or eqn.primitive.compiled.takes_complex and eqn.primitive not in _MOVED):
            ruled, other = (ruled + 1, other) if eqn.primitive in RULES else (ruled, other + 1)
    if ruled < _LEAST_RULED * other or not ruled:
        return closed

    def flat(*args: Value) -> list[Any]:
        return [x.whole if isinstance(x, Complex) else x for x in _run(closed, [
            Complex(aval, whole=x) if aval.dtype in _WHOLE else x
            for x, aval in zip(args, closed.in_avals, strict=True)])]

    split = trace_to_jaxpr(flat, closed.in_avals, closed.jaxpr.debug_info)
    return closed if split.consts else simplify(split)


@derived
def _has_complex(closed: ClosedJaxpr) -> bool:
    return any(map(_is_complex, closed.jaxpr.eqns))


def _is_complex(eqn: JaxprEqn) -> bool:
    """Whether complex values are among the operands and results, or in the jaxprs inside."""
    for atom in eqn.invars:
        if atom.aval.dtype in _WHOLE:
            return True
    for var in eqn.outvars:
        if var.aval.dtype in _WHOLE:
            return True
    return eqn.primitive.inner.control_flow is not None and any(map(_has_complex, bodies_of(eqn)))


def _equations(closed: ClosedJaxpr) -> Iterator[JaxprEqn]:
    for eqn in closed.jaxpr.eqns:
        yield eqn
        for body in bodies_of(eqn):
            yield from _equations(body)


def _run(closed: ClosedJaxpr, args: Sequence[Operand]) -> list[Any]:
    consts = [Complex(var.aval, whole=value) if var.aval.dtype in _WHOLE else value
              for var, value in zip(closed.jaxpr.constvars, closed.consts, strict=True)]
    return eval_jaxpr(closed.jaxpr, consts, *args, rule=_results, literal=_literal)


def _literal(literal: Literal) -> Any:
    if literal.aval.dtype not in _WHOLE:
        return literal_operand(literal)
    value = literal.aval.dtype.type(literal.val)
    return Complex(literal.aval, (value.real, value.imag))


def _results(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
    if not _is_complex(eqn):
        return apply_equation(eqn, operands)
    if eqn.primitive.inner.control_flow is not None:
        return _controlled(eqn, operands)
    rule = RULES.get(eqn.primitive)
    if rule is None:
        results = apply_equation(eqn, [x.whole if isinstance(x, Complex) else x for x in operands])
        return [Complex(var.aval, whole=x) if var.aval.dtype in _WHOLE else x
                for x, var in zip(results, eqn.outvars, strict=True)]
    if eqn.primitive in _MOVED \
            and eqn.outvars[0].aval.dtype in eqn.primitive.compiled.takes_complex \
            and all(x.lies for x in operands if isinstance(x, Complex)):
        return [_moved(eqn, operands, rule)]
    made = rule(eqn, *operands)
    results = made if eqn.primitive.multiple_results else [made]
    return [Complex(var.aval, tuple(of_shape(part, var.aval.shape) for part in x))
            if var.aval.dtype in _WHOLE else x for x, var in zip(results, eqn.outvars, strict=True)]


def _moved(eqn: JaxprEqn, operands: Sequence[Operand], rule: Callable[..., Any]) -> Complex:
    """The result of an equation that only moves elements: of whole numbers one movement, by parts
    two, or none where an index says it."""
    aval = eqn.outvars[0].aval

    def whole() -> Value | None:
        if not all(x.lies for x in operands if isinstance(x, Complex)):
            return None
        return apply_equation(
            eqn, [x.whole if isinstance(x, Complex) else x for x in operands])[0]

    def parts() -> Parts:
        real, imaginary = rule(eqn, *operands)
        return of_shape(real, aval.shape), of_shape(imaginary, aval.shape)

    return Complex(aval, moved=(whole, parts))


# --- loops and branches ---------------------------------------------------------------------------

def _controlled(eqn: JaxprEqn, operands: list[Operand]) -> list[Any]:
    flow = structure_of(eqn)
    counts = [sum(2 if isinstance(x, Complex) else 1 for x in group)
              for group in flow.parts(operands)]
    params = flow.regrouped(eqn.params, counts, [_body(body.jaxpr) for body in flow.bodies])
    results = iter(apply_equation(eqn.replace(params=params), _flat(operands)))
    return [Complex(var.aval, (next(results), next(results))) if var.aval.dtype in _WHOLE
            else next(results) for var in eqn.outvars]


def _flat(values: Sequence[Operand]) -> list[Any]:
    """Values with parts in the place of complex ones."""
    flat: list[Any] = []
    for x in values:
        flat += [of_shape(part, x.aval.shape) for part in x.parts] if isinstance(x, Complex) \
            else [x]
    return flat


@derived
def _body(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr that takes and gives parts."""
    def flat(*args: Value) -> list[Any]:
        given = iter(args)
        return _flat(_run(closed, [
            Complex(aval, (next(given), next(given))) if aval.dtype in _WHOLE else next(given)
            for aval in closed.in_avals]))

    avals = [inner for aval in closed.in_avals for inner in (
        [aval.update(dtype=dtypes.real_dtype(aval.dtype), weak_type=False)] * 2
        if aval.dtype in _WHOLE else [aval])]
    return trace_to_jaxpr(flat, avals, closed.jaxpr.debug_info)


# --- rules: of an equation and its operands, complex or real --------------------------------------

def _each(eqn: JaxprEqn, *operands: Operand) -> Any:
    """Part by part."""
    results = []
    for k in range(2):
        given = [x.parts[k] if isinstance(x, Complex) else x for x in operands]
        params = _params_of_part(eqn.params, eqn.outvars[0].aval.dtype, k)
        results.append(apply_equation(eqn.replace(params=params), given))
    pairs = [*zip(*results, strict=True)]
    return pairs if eqn.primitive.multiple_results else pairs[0]


def _barrier(eqn: JaxprEqn, *operands: Operand) -> list[Any]:
    """Both parts of complex operands, and the others as they are, behind one barrier."""
    results = iter(apply_equation(eqn, _flat(operands)))
    return [(next(results), next(results)) if isinstance(x, Complex) else next(results)
            for x in operands]


def _params_of_part(params: Params, dtype: np.dtype, k: int) -> dict[str, Any]:
    if "fill_value" not in params or params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        return params
    fill = params["fill_value"]
    value = default_fill(dtype) if fill is None else fill.value
    return {**params, "fill_value": FillValue.of((value.real, value.imag)[k])}


def _dot(eqn: JaxprEqn, x: Operand, y: Operand) -> Any:
    parts = _dot_of_parts(eqn, x, y)
    dtype = eqn.outvars[0].aval.dtype
    if dtypes.is_complex(dtype):
        return parts
    # preferred_element_type is real
    return convert_element_type_p.bind(parts[0], new_dtype=dtype, weak_type=False)


def _dot_of_parts(eqn: JaxprEqn, x: Operand, y: Any) -> Parts:
    wanted = eqn.outvars[0].aval.dtype
    if wanted not in _WHOLE:
        wanted = max((operand.aval.dtype for operand in (x, y) if isinstance(operand, Complex)),
                     key=lambda dtype: dtype.itemsize)
    params = {**eqn.params, "preferred_element_type": dtypes.real_dtype(wanted)}

    def dot(a: Value, b: Value) -> Any:
        return dot_general_p.bind(a, b, **params)

    if not isinstance(x, Complex):
        c, d = y.parts
        return dot(x, c), dot(x, d)
    a, b = x.parts
    if not isinstance(y, Complex):
        return dot(a, y), dot(b, y)
    c, d = y.parts
    return sub(dot(a, c), dot(b, d)), add(dot(a, d), dot(b, c))


def _convert(eqn: JaxprEqn, x: Operand) -> Any:
    dtype = eqn.params["new_dtype"]
    part = dtypes.real_dtype(dtype)
    real, imaginary = x.parts if isinstance(x, Complex) else (x, part.type(0))
    if dtype not in _WHOLE:
        return convert_element_type_p.bind(real, **eqn.params)
    return tuple(number if number.dtype == part else convert_element_type_p.bind(
        number, new_dtype=part, weak_type=False) for number in (real, imaginary))


def _reduced_product(eqn: JaxprEqn, x: Complex) -> Parts:
    """Half of the elements by the other half, again and again."""
    (axes, shape) = eqn.params["axes"], x.aval.shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    size = math.prod(shape[axis] for axis in axes)
    parts = x.parts
    one = number_like(1, parts[0]), number_like(0, parts[0])
    lines = [transpose(of_shape(part, shape), (*axes, *kept)) for part in parts]
    lines = [reshape(line, (size, *(shape[axis] for axis in kept))) for line in lines]
    while size > 1:
        half = size // 2
        first, second = ([slice_in_dim(line, start, start + half, 0) for line in lines]
                         for start in (0, half))
        product = product_of((first[0], first[1]), (second[0], second[1]))
        rest = [slice_in_dim(line, 2 * half, size, 0) for line in lines]
        lines = [concatenate([part, more], 0) if size % 2 else part
                 for part, more in zip(product, rest, strict=True)]
        size -= half
    if not size:
        return one
    return (reshape(lines[0], eqn.outvars[0].aval.shape),
            reshape(lines[1], eqn.outvars[0].aval.shape))


def _triangular(eqn: JaxprEqn, a: Complex, b: Complex) -> Parts:
    params = eqn.params
    matrix = a.whole
    if params["conjugate_a"] and not params["transpose_a"]:     # BLAS has no name for it
        matrix = complex_p.bind(a.parts[0], neg(a.parts[1]))
        params = {**params, "conjugate_a": False}
    out = triangular_solve_p.bind(matrix, b.whole, **params)
    return real_p.bind(out), imag_p.bind(out)


def _qr(eqn: JaxprEqn, x: Complex) -> Any:
    if eqn.params["pivoting"]:
        q, r, order = apply_equation(eqn, [x.whole])
        return [*((real_p.bind(out), imag_p.bind(out)) for out in (q, r)), order]
    parts = trace_to_jaxpr(lambda a: qr_by_reflections(a, **eqn.params), [x.aval])
    return [out.parts for out in _run(parts, [x])]


def _compared(combined: Callable[[Value, Value], Value]) -> Callable[..., Any]:
    def rule(eqn: JaxprEqn, x: Complex, y: Complex) -> Any:
        (a, b), (c, d) = x.parts, y.parts
        return combined(eqn.primitive.bind(a, c), eqn.primitive.bind(b, d))
    return rule


_MOVED = frozenset((
    broadcast_in_dim_p, concatenate_p, dynamic_slice_p, reshape_p, rev_p, slice_p,
    squeeze_p, transpose_p))

RULES: dict[Primitive, Callable[..., Any]] = {
    **dict.fromkeys((
        add_any_p, add_p, broadcast_in_dim_p, concatenate_p, copy_p, cumsum_p, dynamic_slice_p,
        dynamic_update_slice_p, gather_p, name_p, neg_p, pad_p,
        reduce_sum_p, reshape_p, rev_p, scatter_add_p, scatter_p, scatter_sub_p, select_n_p,
        slice_p, split_p, squeeze_p, stack_p, sub_p, tile_p, transpose_p, unstack_p), _each),
    **complex_functions.RULES,
    **complex_inverses.RULES,
    complex_p: lambda eqn, x, y: (x, y),
    convert_element_type_p: _convert,
    dot_general_p: _dot,
    eq_p: _compared(both),
    imag_p: lambda eqn, x: x.parts[1],
    ne_p: _compared(either),
    optimization_barrier_p: _barrier,
    qr_p: _qr,
    reduce_prod_p: _reduced_product,
    real_p: lambda eqn, x: x.parts[0],
    triangular_solve_p: _triangular,
}
