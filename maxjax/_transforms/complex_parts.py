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
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import bodies_of, structure_of
from maxjax._ir.evaluate import apply_equation, eval_jaxpr, literal_operand
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import (
    abs_,
    abs_p,
    add,
    add_p,
    complex_p,
    conj_p,
    div,
    div_p,
    imag_p,
    integer_pow_p,
    mul,
    mul_p,
    neg,
    neg_p,
    real_p,
    sign_p,
    square_p,
    sub,
    sub_p,
)
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.builders import add_any_p
from maxjax._primitives.comparison import (
    and_p,
    eq_p,
    ge_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    select,
    select_n_p,
)
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
from maxjax._primitives.joining import concatenate_p, split_p
from maxjax._primitives.layout import copy_p, reshape_p, rev_p, squeeze_p, transpose_p
from maxjax._primitives.linalg_factors import qr_by_reflections, qr_p
from maxjax._primitives.slicing import pad_p, slice_p
from maxjax._primitives.stacking import stack_p, tile_p, unstack_p
from maxjax._primitives.transcendental import (
    atan2_p,
    cos_p,
    cosh_p,
    exp_p,
    log1p_p,
    log_p,
    sin_p,
    sinh_p,
    sqrt_p,
)
from maxjax._transforms.simplify import simplify

_SINGLE, _WIDE = np.dtype(np.complex64), np.dtype(np.float64)
_WHOLE = frozenset((_SINGLE, np.dtype(np.complex128)))
# Powers of two by which numbers in double precision are brought to where their squares neither
# overflow nor lose digits, and from where on: squares of what is between are normal numbers.
_SCALE, _FAR = 600, 500
# Equations with rules, for each without one, from which on a program is taken apart.
_LEAST_RULED = 2

Parts = tuple[Any, Any]


class Complex:
    """A value of a program: whole, as parts, or both once both have been asked for."""

    __slots__ = ("_parts", "_whole", "aval")

    def __init__(self, aval: ShapedArray, parts: Parts | None = None, whole: Any = None):
        self.aval = aval
        self._parts = parts
        self._whole = whole

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            self._parts = real_p.bind(self._whole), imag_p.bind(self._whole)
        return self._parts

    @property
    def whole(self) -> Any:
        if self._whole is None:
            self._whole = complex_p.bind(*self.parts)
        return self._whole


def split_complex(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr without constants, with parts in the place of complex values inside it."""
    if not _has_complex(closed):
        return closed
    ruled = other = 0
    for eqn in _equations(closed):
        if _is_complex(eqn) and not (
                eqn.primitive.control_flow is not None or eqn.primitive.takes_complex):
            ruled, other = (ruled + 1, other) if eqn.primitive in RULES else (ruled, other + 1)
    if ruled < _LEAST_RULED * other or not ruled:
        return closed

    def flat(*args: Any) -> list[Any]:
        return [x.whole if isinstance(x, Complex) else x for x in _run(closed, [
            Complex(aval, whole=x) if aval.dtype in _WHOLE else x
            for x, aval in zip(args, closed.in_avals, strict=True)])]

    split = trace_to_jaxpr(flat, closed.in_avals, closed.jaxpr.debug_info)
    return closed if split.consts else simplify(split)


def _has_complex(closed: ClosedJaxpr) -> bool:
    known = closed.cache.get(_has_complex)
    if known is None:
        known = closed.cache[_has_complex] = any(map(_is_complex, closed.jaxpr.eqns))
    return known


def _is_complex(eqn: JaxprEqn) -> bool:
    """Whether complex values are among the operands and results, or in the jaxprs inside."""
    for atom in eqn.invars:
        if atom.aval.dtype in _WHOLE:
            return True
    for var in eqn.outvars:
        if var.aval.dtype in _WHOLE:
            return True
    return eqn.primitive.control_flow is not None and any(map(_has_complex, bodies_of(eqn)))


def _equations(closed: ClosedJaxpr) -> Iterator[JaxprEqn]:
    for eqn in closed.jaxpr.eqns:
        yield eqn
        for body in bodies_of(eqn):
            yield from _equations(body)


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
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
    if eqn.primitive.control_flow is not None:
        return _controlled(eqn, operands)
    rule = RULES.get(eqn.primitive)
    if rule is None:
        results = apply_equation(eqn, [x.whole if isinstance(x, Complex) else x for x in operands])
        return [Complex(var.aval, whole=x) if var.aval.dtype in _WHOLE else x
                for x, var in zip(results, eqn.outvars, strict=True)]
    made = rule(eqn, *operands)
    results = made if eqn.primitive.multiple_results else [made]
    return [Complex(var.aval, tuple(_of_shape(part, var.aval.shape) for part in x))
            if var.aval.dtype in _WHOLE else x for x, var in zip(results, eqn.outvars, strict=True)]


def _of_shape(x: Any, shape: tuple[int, ...]) -> Any:
    """A part that has no dimensions, or sizes of 1, in the shape of the whole."""
    own = np.shape(x)
    return x if own == shape else broadcast_in_dim(x, shape, tuple(range(len(own))))


# --- loops and branches ---------------------------------------------------------------------------

def _controlled(eqn: JaxprEqn, operands: list[Any]) -> list[Any]:
    flow = structure_of(eqn)
    counts = [sum(2 if isinstance(x, Complex) else 1 for x in group)
              for group in flow.parts(operands)]
    params = flow.regrouped(eqn.params, counts, [_body(body.jaxpr) for body in flow.bodies])
    results = iter(apply_equation(eqn.replace(params=params), _flat(operands)))
    return [Complex(var.aval, (next(results), next(results))) if var.aval.dtype in _WHOLE
            else next(results) for var in eqn.outvars]


def _flat(values: Sequence[Any]) -> list[Any]:
    """Values with parts in the place of complex ones."""
    flat: list[Any] = []
    for x in values:
        flat += [_of_shape(part, x.aval.shape) for part in x.parts] if isinstance(x, Complex) \
            else [x]
    return flat


def _body(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr that takes and gives parts."""
    known = closed.cache.get(_body)
    if known is not None:
        return known

    def flat(*args: Any) -> list[Any]:
        given = iter(args)
        return _flat(_run(closed, [
            Complex(aval, (next(given), next(given))) if aval.dtype in _WHOLE else next(given)
            for aval in closed.in_avals]))

    avals = [inner for aval in closed.in_avals for inner in (
        [aval.update(dtype=dtypes.real_dtype(aval.dtype), weak_type=False)] * 2
        if aval.dtype in _WHOLE else [aval])]
    known = closed.cache[_body] = trace_to_jaxpr(flat, avals, closed.jaxpr.debug_info)
    return known


# --- rules: of an equation and its operands, complex or real --------------------------------------

def _each(eqn: JaxprEqn, *operands: Any) -> Any:
    """Part by part."""
    results = []
    for k in range(2):
        given = [x.parts[k] if isinstance(x, Complex) else x for x in operands]
        params = _params_of_part(eqn.params, eqn.outvars[0].aval.dtype, k)
        results.append(apply_equation(eqn.replace(params=params), given))
    pairs = [*zip(*results, strict=True)]
    return pairs if eqn.primitive.multiple_results else pairs[0]


def _params_of_part(params: dict[str, Any], dtype: np.dtype, k: int) -> dict[str, Any]:
    if "fill_value" not in params or params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        return params
    fill = params["fill_value"]
    value = default_fill(dtype) if fill is None else fill.value
    return {**params, "fill_value": FillValue.of((value.real, value.imag)[k])}


def _product(x: Parts, y: Parts) -> Parts:
    (a, b), (c, d) = x, y
    return sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c))


def _chosen(which: Any, on_false: Any, on_true: Any) -> Any:
    shape = np.shape(which)
    return select(which, _of_shape(on_false, shape), _of_shape(on_true, shape))


def _both(x: Any, y: Any) -> Any:
    return and_p.bind(x, y)


def _either(x: Any, y: Any) -> Any:
    return or_p.bind(x, y)


def _number(value: float, x: Any) -> Any:
    """A number of the dtype of ``x``."""
    return x.dtype.type(value)


def _is(x: Any, value: float) -> Any:
    return eq_p.bind(x, _number(value, x))


def _is_infinite(x: Any) -> Any:
    return _is(abs_(x), np.inf)


def _is_finite(x: Any) -> Any:
    return lt_p.bind(abs_(x), _number(np.inf, x))


def _is_nan(x: Any) -> Any:
    return ne_p.bind(x, x)


def _with_sign(size: Any, x: Any) -> Any:
    """A number of a size, which is not negative, with the sign of another, also of a zero."""
    # A quotient of infinity has the zero's sign.
    negative = lt_p.bind(
        _chosen(_is(x, 0), x, div(_number(1, x), x)), _number(0, x))
    return _chosen(negative, size, neg(size))


def _quotient(x: Parts, y: Parts) -> Parts:
    """As NumPy divides, and by annex G of the C standard where that is not finite."""
    shape = np.broadcast_shapes(*(np.shape(part) for part in (*x, *y)))
    (a, b), (c, d) = ([_of_shape(part, shape) for part in number] for number in (x, y))
    one, zero, infinity = (_number(value, c) for value in (1, 0, np.inf))
    wide = ge_p.bind(abs_(c), abs_(d))
    major, minor = _chosen(wide, d, c), _chosen(wide, c, d)
    by_zero = _both(_is(c, 0), _is(d, 0))
    ratio = div(minor, _chosen(by_zero, major, one))
    scale = div(one, add(major, mul(minor, ratio)))
    real = mul(_chosen(wide, add(mul(a, ratio), b), add(a, mul(b, ratio))), scale)
    imaginary = mul(_chosen(wide, sub(mul(b, ratio), a), sub(b, mul(a, ratio))), scale)
    lost = _both(_is_nan(real), _is_nan(imaginary))
    finite = _both(_is_finite(c), _is_finite(d)), _both(_is_finite(a), _is_finite(b))
    upper = _both(lost, _both(_either(_is_infinite(a), _is_infinite(b)), finite[0]))
    lower = _both(lost, _both(_either(_is_infinite(c), _is_infinite(d)), finite[1]))

    def boxed(part: Any) -> Any:
        return _with_sign(_chosen(_is_infinite(part), zero, one), part)

    def put(where: Any, values: Parts) -> None:
        nonlocal real, imaginary
        real, imaginary = _chosen(where, real, values[0]), _chosen(where, imaginary, values[1])

    def product(factor: Any, a: Any, b: Any, c: Any, d: Any) -> Parts:
        return (mul(factor, add(mul(a, c), mul(b, d))), mul(factor, sub(mul(b, c), mul(a, d))))

    put(upper, product(infinity, boxed(a), boxed(b), c, d))
    put(lower, product(zero, a, b, boxed(c), boxed(d)))
    signed = _with_sign(infinity, c)
    unknown = _both(_is_nan(a), _is_nan(b))
    put(_both(by_zero, not_p.bind(unknown)), (mul(signed, a), mul(signed, b)))
    return real, imaginary


def _power(eqn: JaxprEqn, x: Complex) -> Parts:
    """By repeated squaring."""
    exponent, base, result = abs(eqn.params["y"]), x.parts, None
    while exponent:
        if exponent & 1:
            result = base if result is None else _product(result, base)
        exponent >>= 1
        if exponent:
            base = _product(base, base)
    one = _number(1, base[0]), _number(0, base[0])
    if result is None:
        return one
    return _quotient(one, result) if eqn.params["y"] < 0 else result


def _square(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return mul(sub(a, b), add(a, b)), mul(_number(2, a), mul(a, b))


def _wide(x: Any) -> Any:
    return convert_element_type_p.bind(x, new_dtype=_WIDE, weak_type=False)


def _as_part(x: Any, like: Any) -> Any:
    """In the dtype of a part."""
    return convert_element_type_p.bind(x, new_dtype=like.dtype, weak_type=False)


def _squared_size(a: Any, b: Any) -> Any:
    return add(mul(a, a), mul(b, b))


class _Scaled(NamedTuple):
    """Parts in double precision whose squares neither overflow nor underflow.

    Squares of single precision are exact in double. Parts in double precision are multiplied by a
    power of two.
    """

    a: Any
    b: Any
    far: tuple[Any, Any] | None     # where it is large, and where it is small

    def by(self, x: Any, power: float, each: Callable[[Any, Any], Any] = mul,
           unit: float = 2.0) -> Any:
        """``x`` times ``2 ** power`` where the parts were made smaller, by its inverse where they
        were made larger."""
        if self.far is None:
            return x
        if each is mul:
            values = unit ** power, unit ** -power, 1.0
        else:
            values = unit * power, -unit * power, 0.0
        large, small, other = map(_WIDE.type, values)
        return each(x, _chosen(self.far[0], _chosen(self.far[1], other, small), large))


def _scaled(x: Complex) -> _Scaled:
    a, b = x.parts
    if x.aval.dtype == _SINGLE:
        return _Scaled(_wide(a), _wide(b), None)
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    a, b = _of_shape(a, shape), _of_shape(b, shape)
    largest = _chosen(lt_p.bind(abs_(a), abs_(b)), abs_(a), abs_(b))
    far = (ge_p.bind(largest, _WIDE.type(2.0 ** _FAR)),
           lt_p.bind(largest, _WIDE.type(2.0 ** -_FAR)))
    scaled = _Scaled(a, b, far)
    return _Scaled(scaled.by(a, -_SCALE), scaled.by(b, -_SCALE), far)


def _size(x: Complex) -> Any:
    scaled = _scaled(x)
    size = sqrt_p.bind(_squared_size(scaled.a, scaled.b))
    size = _as_part(scaled.by(size, _SCALE), x.parts[0])
    # One infinite part makes it infinite, also beside a NaN.
    return _chosen(_either(*map(_is_infinite, x.parts)), size, _number(np.inf, size))


def _sign(eqn: JaxprEqn, x: Complex) -> Parts:
    size = _size(x)
    size = _chosen(_is(size, 0), size, _number(1, size))
    a, b = x.parts
    return div(a, size), div(b, size)


def _exp(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    # The whole may overflow where the product does not.
    root = exp_p.bind(mul(a, _number(0.5, a)))
    return (mul(mul(root, cos_p.bind(b)), root),
            _chosen(_is(b, 0), mul(mul(root, sin_p.bind(b)), root), b))


def _log(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    scaled = _scaled(x)
    half, one = _WIDE.type(0.5), _WIDE.type(1)
    size = mul(half, log_p.bind(_squared_size(scaled.a, scaled.b)))
    if scaled.far is not None:
        size = scaled.by(size, _SCALE, add, math.log(2))
        above = _above_one(a, b)
        size = _chosen(lt_p.bind(abs_(above), half), size, mul(half, log1p_p.bind(above)))
        # One infinite part makes it infinite; a NaN is not, but for what is beside it.
        unknown = _either(_is_nan(a), _is_nan(b))
        size = _chosen(unknown, size, _WIDE.type(np.nan))
    return _as_part(size, a), _as_part(atan2_p.bind(*map(_wide, (b, a))), a)


def _two_sum(x: Any, y: Any) -> Parts:
    """A sum and what rounding takes off it."""
    total = add(x, y)
    other = sub(total, x)
    return total, add(sub(x, sub(total, other)), sub(y, other))


def _two_square(x: Any) -> Parts:
    """A square and what rounding takes off it, by halves of 26 bits each."""
    turned = mul(x, _WIDE.type(2.0 ** 27 + 1))
    high = sub(turned, sub(turned, x))
    low = sub(x, high)
    square = mul(x, x)
    return square, add(add(sub(mul(high, high), square), mul(_WIDE.type(2), mul(high, low))),
                       mul(low, low))


def _above_one(a: Any, b: Any) -> Any:
    """``a * a + b * b - 1`` in twice the precision: its logarithm has the digits that a size near
    one has lost."""
    (square, rest), (other, less) = _two_square(a), _two_square(b)
    swapped = lt_p.bind(square, other)
    larger, smaller = _chosen(swapped, square, other), _chosen(swapped, other, square)
    total, first = _two_sum(larger, _WIDE.type(-1))
    total, second = _two_sum(total, smaller)
    return add(total, add(add(first, second), add(rest, less)))


def _root(eqn: JaxprEqn, x: Complex) -> Parts:
    half, zero, one = map(_WIDE.type, (0.5, 0, 1))
    scaled = _scaled(x)
    a, b = scaled.a, scaled.b
    b = _chosen(eq_p.bind(b, zero), b, zero)        # the cut belongs to what is above it
    major = sqrt_p.bind(mul(half, add(sqrt_p.bind(_squared_size(a, b)), abs_(a))))
    minor = div(mul(half, b), _chosen(eq_p.bind(major, zero), major, one))
    major, minor = (scaled.by(part, _SCALE // 2) for part in (major, minor))
    left = lt_p.bind(a, zero)
    like = x.parts[0]
    real = _as_part(_chosen(left, major, abs_(minor)), like)
    imaginary = _as_part(
        _chosen(left, minor, _chosen(lt_p.bind(b, zero), major, neg(major))), like)
    a, b = x.parts
    far, unknown = _is_infinite(b), _either(_is_nan(a), _is_nan(b))
    nan = _number(np.nan, a)
    return (_chosen(unknown, _chosen(far, real, abs_(b)), nan),
            _chosen(unknown, _chosen(far, imaginary, b), nan))


def _sinh(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return (mul(sinh_p.bind(a), cos_p.bind(b)),
            _chosen(_is(b, 0), mul(cosh_p.bind(a), sin_p.bind(b)), b))


def _cosh(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return (mul(cosh_p.bind(a), cos_p.bind(b)),
            _chosen(_is(b, 0), mul(sinh_p.bind(a), sin_p.bind(b)), b))


def _sin(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return (_chosen(_is(a, 0), mul(sin_p.bind(a), cosh_p.bind(b)), a),
            mul(cos_p.bind(a), sinh_p.bind(b)))


def _cos(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return (mul(cos_p.bind(a), cosh_p.bind(b)),
            _chosen(_is(a, 0), neg(mul(sin_p.bind(a), sinh_p.bind(b))), a))


def _dot(eqn: JaxprEqn, x: Any, y: Any) -> Any:
    parts = _dot_of_parts(eqn, x, y)
    dtype = eqn.outvars[0].aval.dtype
    if dtypes.is_complex(dtype):
        return parts
    # preferred_element_type is real
    return convert_element_type_p.bind(parts[0], new_dtype=dtype, weak_type=False)


def _dot_of_parts(eqn: JaxprEqn, x: Any, y: Any) -> Parts:
    wanted = eqn.outvars[0].aval.dtype
    if wanted not in _WHOLE:
        wanted = max((operand.aval.dtype for operand in (x, y) if isinstance(operand, Complex)),
                     key=lambda dtype: dtype.itemsize)
    params = {**eqn.params, "preferred_element_type": dtypes.real_dtype(wanted)}

    def dot(a: Any, b: Any) -> Any:
        return dot_general_p.bind(a, b, **params)

    if not isinstance(x, Complex):
        c, d = y.parts
        return dot(x, c), dot(x, d)
    a, b = x.parts
    if not isinstance(y, Complex):
        return dot(a, y), dot(b, y)
    c, d = y.parts
    return sub(dot(a, c), dot(b, d)), add(dot(a, d), dot(b, c))


def _convert(eqn: JaxprEqn, x: Any) -> Any:
    dtype = eqn.params["new_dtype"]
    if dtype not in _WHOLE:
        return convert_element_type_p.bind(x.parts[0], **eqn.params)
    part = dtypes.real_dtype(dtype)
    real, imaginary = x.parts if isinstance(x, Complex) else (x, part.type(0))
    return tuple(number if number.dtype == part else convert_element_type_p.bind(
        number, new_dtype=part, weak_type=False) for number in (real, imaginary))


def _conj(eqn: JaxprEqn, x: Any) -> Parts:
    if not isinstance(x, Complex):
        return x, _number(0, x)
    a, b = x.parts
    return a, neg(b)


def _qr(eqn: JaxprEqn, x: Complex) -> Any:
    if eqn.params["pivoting"]:
        results = apply_equation(eqn, [x.whole])
        return [(real_p.bind(out), imag_p.bind(out)) for out in results[:2]] + results[2:]
    parts = trace_to_jaxpr(lambda a: qr_by_reflections(a, **eqn.params), [x.aval])
    return [out.parts for out in _run(parts, [x])]


def _compared(combined: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def rule(eqn: JaxprEqn, x: Complex, y: Complex) -> Any:
        (a, b), (c, d) = x.parts, y.parts
        return combined(eqn.primitive.bind(a, c), eqn.primitive.bind(b, d))
    return rule


RULES: dict[Primitive, Callable[..., Any]] = {
    **dict.fromkeys((
        add_any_p, add_p, broadcast_in_dim_p, concatenate_p, copy_p, cumsum_p, dynamic_slice_p,
        dynamic_update_slice_p, gather_p, name_p, neg_p, optimization_barrier_p, pad_p,
        reduce_sum_p, reshape_p, rev_p, scatter_add_p, scatter_p, scatter_sub_p, select_n_p,
        slice_p, split_p, squeeze_p, stack_p, sub_p, tile_p, transpose_p, unstack_p), _each),
    abs_p: lambda eqn, x: _size(x),
    complex_p: lambda eqn, x, y: (x, y),
    conj_p: _conj,
    convert_element_type_p: _convert,
    cos_p: _cos,
    cosh_p: _cosh,
    div_p: lambda eqn, x, y: _quotient(x.parts, y.parts),
    dot_general_p: _dot,
    eq_p: _compared(_both),
    exp_p: _exp,
    imag_p: lambda eqn, x: x.parts[1],
    integer_pow_p: _power,
    log_p: _log,
    mul_p: lambda eqn, x, y: _product(x.parts, y.parts),
    ne_p: _compared(_either),
    qr_p: _qr,
    real_p: lambda eqn, x: x.parts[0],
    sign_p: _sign,
    sin_p: _sin,
    sinh_p: _sinh,
    sqrt_p: _root,
    square_p: _square,
}
