"""Elementwise operations: each at special and at regular points, for every kind of dtype."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np

import maxjax._primitives.all  # noqa: F401  every primitive is registered
from maxjax._ir.linearity import SUM
from maxjax._ir.primitive import registry
from tests.support.elementwise import LAX
from tests.support.harness import Case

bfloat16 = np.dtype(ml_dtypes.bfloat16)
int4, uint4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)
float8 = np.dtype(ml_dtypes.float8_e4m3fn)
float8_wide = np.dtype(ml_dtypes.float8_e5m2)
CASES: list[Case] = []

# --- arrays ---------------------------------------------------------------------------------------

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.3,
           -0.7, 1e-3, -1e-3, 3.7, -3.7, 9.25, -9.25, 40.0, -40.0, 100.0, -100.0, 3e4, -3e4]


def special(dtype):
    """NaN, infinities, zeros, the edges of domains, large and small values."""
    info = ml_dtypes.finfo(dtype)
    edges = [float(info.max), float(info.min), float(info.smallest_normal)]
    return np.array(SPECIAL + edges).astype(dtype)


def whole(dtype):
    info = ml_dtypes.iinfo(dtype)
    values = [0, 1, 2, 3, 5, 7, info.max, info.max - 1, info.min, info.min + 1]
    if info.min < 0:
        values += [-1, -2, -3, -5, -7]
    return np.array([v for v in values if info.min <= v <= info.max]).astype(dtype)


def pairs(values):
    """All pairs of elements, as two arrays."""
    left, right = np.meshgrid(values, values)
    return np.ravel(left), np.ravel(right)


COMPLEX = np.array([1 + 2j, -1.5 + 0.5j, 0.25 - 0.75j, -0.3 - 0.4j, 2.0 + 0j, 0.5j])
ints = np.int32, np.int8, np.int16, np.uint8, np.uint32
narrow = np.float16, bfloat16


def ops(name):
    return lambda j, *xs: getattr(j.lax, name)(*xs)


def each(name):
    """The unary operation on each argument."""
    return lambda j, *xs: [getattr(j.lax, name)(x) for x in xs]


def each_pair(name):
    return lambda j, *xs: [getattr(j.lax, name)(x, y)
                           for x, y in zip(xs[::2], xs[1::2], strict=True)]


def add(name, fun, args, **options):
    CASES.append(Case(name, fun, tuple(args), **options))


# --- what follows from the table ------------------------------------------------------------------

# XLA counts the bits of int4 in its sign extension, and has no such products and absolute values.
REFUSED = {"population_count": {int4}, "mulhi": {int4, uint4}, "abs": {int4}}


def takes(row, dtype):
    # Without primitives it is a composition of functions like sqrt.
    name = row.primitives[0] if row.primitives else "sqrt"
    return np.dtype(dtype) in registry[name].values.accepts


def integers(row):
    return [dtype for dtype in map(np.dtype, (*ints, int4, uint4))
            if takes(row, dtype) and dtype not in REFUSED.get(row.name, ())]


def derived(operands):
    return [row for row in LAX.values() if row.operands == operands and row.domain]


def smooth(row):
    """A case in the row's domain; the operands go through it in different orders."""
    points = [np.roll(x, 2 * n).astype(np.float32) for n, x in enumerate(row.points())]
    if row.operands == 2:
        points = [x.reshape(2, 3) for x in points]
    linearity = registry[row.primitives[0]].linearity if row.primitives else None
    add(f"{row.name}-smooth", ops(row.name), points, tolerance=row.tolerance,
        linear=linearity is SUM and row.operands == 2)


for _row in derived(1):
    if _row.differentiable and takes(_row, bfloat16):
        _options = {"smooth": False, "tolerance": _row.at_edges, "by_default": _row.by_default,
                    "differentiable": _row.edge_derivatives}
        add(f"{_row.name}-special", each(_row.name), map(special, (np.float32, *narrow)),
            **_options)
        add(f"{_row.name}-float64", ops(_row.name), [special(np.float64)], x64=True, **_options)
        smooth(_row)
        if takes(_row, np.complex64):
            _z = COMPLEX[:4] if _row.cuts else COMPLEX      # off the cuts, which lie on the axes
            add(f"{_row.name}-complex", ops(_row.name), [_z.astype(np.complex64)],
                smooth=_row.name != "sign",
                # The derivative 1 + tan(x)**2 cancels.
                tolerance="loose" if _row.name == "tan" else _row.in_plane)
    if _types := integers(_row):
        add(f"{_row.name}-integers", each(_row.name), map(whole, _types), tolerance="exact")
    if takes(_row, bool):
        add(f"{_row.name}-bool", ops(_row.name), [np.array([True, False])])

CHOSEN = [0, 1, 2, 3, 4, 5, 6, 7, 9, 12, 17, 26]
for _row in derived(2):
    _name = _row.name
    _floats = takes(_row, bfloat16)
    if _floats and _row.differentiable and _row.edges:
        _options = {"tolerance": _row.at_edges, "signed_zeros": _row.signed_zeros}
        add(f"{_name}-special", each_pair(_name),
            [side for dtype in (np.float32, bfloat16) for side in pairs(special(dtype)[CHOSEN])],
            smooth=False, **_options)
        # Not its derivatives: XLA keeps steps in float32 there that would overflow in float16.
        add(f"{_name}-float16", ops(_name), pairs(special(np.float16)[CHOSEN]),
            differentiable=False, **_options)
        add(f"{_name}-float64", ops(_name), pairs(special(np.float64)[:12]), smooth=False,
            x64=True, **_options)
        smooth(_row)
        if takes(_row, np.complex64):
            add(f"{_name}-complex", ops(_name),
                [np.array([1 + 2j, -1.5 + 0.5j, 0.2 - 0.7j], np.complex64),
                 np.array([0.5 - 1j, 1.5 + 0.5j, -0.3 + 0.4j], np.complex64)],
                tolerance=_row.in_plane,
                # In JAX they compare, and complex numbers have no order.
                differentiable=_row.name not in ("max", "min"))
    if _types := integers(_row):
        add(f"{_name}-integers", each_pair(_name),
            [side for dtype in _types for side in pairs(whole(dtype))])
    if takes(_row, bool):
        add(f"{_name}-bool", ops(_name), pairs(np.array([True, False])))
        if _floats and not _row.differentiable:
            add(f"{_name}-special", each_pair(_name),
                [side for dtype in (np.float32, bfloat16) for side in pairs(special(dtype)[:8])],
                smooth=False)

# --- unary ----------------------------------------------------------------------------------------

POINTS, POSITIVE = LAX["sin"].points()[0], LAX["lgamma"].points()[0]
add("is_finite", each("is_finite"), map(special, (np.float32, *narrow)), smooth=False)
add("round-even", lambda j, x: j.lax.round(x, j.lax.RoundingMethod.TO_NEAREST_EVEN),
    [special(np.float32)], smooth=False, tolerance="exact")
add("round-large", each("round"),
    [np.array([0.49999997, -0.49999997, 8388607.5, 8388609.0, -0.2], np.float32)], smooth=False)
for _exponent, _mantissa in ((8, 7), (5, 10), (4, 3), (8, 23), (2, 0)):
    add(f"reduce_precision-{_exponent}-{_mantissa}",
        lambda j, x, e=_exponent, m=_mantissa: j.lax.reduce_precision(x, e, m),
        [np.concatenate([special(np.float32),
                         np.float32([1.2345678, 65519.9, 65520.1, 6.1e-5, 3.3e-8])])],
        smooth=False, tolerance="exact", by_default=True)
for _power in (-3, -2, -1, 0, 1, 2, 3, 5, 8):
    add(f"integer_pow-{_power}", lambda j, *xs, y=_power: [j.lax.integer_pow(x, y) for x in xs],
        [special(np.float32), special(bfloat16)], smooth=False, tolerance="loose")
add("integer_pow-smooth", lambda j, x: [j.lax.integer_pow(x, y) for y in (-2, 3, 4)],
    [np.array(POINTS, np.float32)])
add("polynomial", lambda j, x, c: [
        j.lax.polynomial(x, [1.5, 2, c[0], -0.5]), j.lax.polynomial(x, [c[1], x]),
        j.lax.polynomial(x, [2.5]), j.lax.polynomial(x, []), j.lax.polynomial(x, c, unroll=2)],
    [np.array(POINTS, np.float32), np.float32([0.5, -2, 3])])
add("polynomial-special", lambda j, *xs: [j.lax.polynomial(x, [1, 2, 0.5]) for x in xs],
    [special(np.float32), special(bfloat16), whole(np.int32)], smooth=False)
add("polynomial-complex", lambda j, x: j.lax.polynomial(x, [1, 2j, 0.5]),
    [COMPLEX.astype(np.complex64)])
add("integer_pow-integers", lambda j, *xs: [j.lax.integer_pow(x, 3) for x in xs],
    [*map(whole, (np.int32, np.uint8))])
add("float8", lambda j, *xs: [f(x) for x in xs for f in (
        j.lax.neg, j.lax.abs, j.lax.exp, j.lax.floor, j.lax.square, j.lax.is_finite)],
    [np.array([1, -2, 0.5, 3.5, 0, np.nan]).astype(t) for t in (float8, float8_wide)],
    differentiable=False)

# --- binary ---------------------------------------------------------------------------------------

A = np.array([[0.3, -1.2, 2.5], [1.7, -0.4, 0.9]])
B = np.array([[1.1, 0.7, -2.2], [-0.8, 2.4, 1.3]])
for _name in ("eq_to", "lt_to", "le_to"):
    add(_name, lambda j, *xs, name=_name: [
            getattr(j.lax, f"{name}_p").bind(x, y)
            for x, y in zip(xs[::2], xs[1::2], strict=True)],
        [*pairs(special(np.float32)[:8]), *pairs(whole(np.int32)[:5])], differentiable=False)
add("eq-complex", each_pair("eq"), pairs(np.array([1 + 1j, 1, np.nan, 1j], np.complex64)),
    differentiable=False)
add("nextafter", each_pair("nextafter"),
    [side for dtype in (np.float32, *narrow) for side in pairs(special(dtype)[:12])],
    differentiable=False)
add("nextafter-float64", ops("nextafter"), pairs(special(np.float64)[:12]),
    differentiable=False, x64=True)
add("mul-out_dtype", lambda j, x, y: j.lax.mul(x, y, out_dtype=np.int32),
    [np.array([100, -100], np.int8), np.array([100, 7], np.int8)])
add("pow-integers", lambda j, x, y: j.lax.pow(x, y),
    [np.repeat(special(np.float32)[:10], 7), np.tile(np.arange(-3, 4, dtype=np.int32), 10)],
    smooth=False, tolerance="loose")
add("pow-integers-smooth", lambda j, x: j.lax.pow(x, np.array([2, 3, -1, 0, 1], np.int32)),
    [np.array([0.5, -1.5, 2.0, 3.0, -0.7], np.float32)], tolerance="loose", vmappable=False)
# NumPy has shorter ways for some exponents that are numbers.
add("pow-number", lambda j, *xs: [
        j.lax.pow(x, x.dtype.type(y)) for x in xs for y in (0.5, -0.5, 0, 1, -1, 2, 3, 1 / 3)],
    [special(np.float32), special(bfloat16)], differentiable=False, tolerance="loose")
add("polygamma", ops("polygamma"),
    [np.array([0, 1, 1, 2, 3], np.float32), np.array([1.5, 0.3, 4.0, 2.5, 1.2], np.float32)],
    tolerance="loose", differentiable=False)
add("polygamma-smooth", lambda j, x: j.lax.polygamma(j.lax.full_like(x, 1), x),
    [np.array(POSITIVE, np.float32)], tolerance="loose", differentiable=False)
add("zeta", ops("zeta"), [np.array([2, 3, 1.5], np.float32), np.array([1, 0.5, 4], np.float32)],
    tolerance="loose", differentiable=False)

for _label, _shapes in {"rows": ((2, 3), (1, 3)), "columns": ((2, 1), (1, 3)),
                        "scalar": ((), (2, 3)), "scalars": ((), ()), "one": ((1, 1), (2, 3)),
                        "empty": ((0, 3), (1, 3)), "last": ((2, 3), ())}.items():
    _rng = np.random.default_rng(3)
    _left, _right = (_rng.normal(size=shape).astype(np.float32) for shape in _shapes)
    add(f"broadcast-{_label}", lambda j, x, y: [
            f(x, y) for f in (j.lax.add, j.lax.sub, j.lax.mul, j.lax.div, j.lax.max, j.lax.atan2,
                              j.lax.lt, j.lax.rem)],
        [np.asarray(_left), np.asarray(_right)], tolerance="loose")

# Divisors that are written down, of which powers of two become shifts.
for _dtype in (np.int8, np.int32, np.uint8, np.uint32):
    _ends = np.iinfo(_dtype)
    add(f"divide-by-number-{np.dtype(_dtype).name}", lambda j, x: [
            f(x, x.dtype.type(y)) for f in (j.lax.div, j.lax.rem) for y in (1, 2, 3, 16, 64)],
        [np.resize(np.array([_ends.min, _ends.min + 1, *range(max(_ends.min, -17), 18),
                             _ends.max - 1, _ends.max], _dtype), 300)], tolerance="exact")

# --- clamp and select -----------------------------------------------------------------------------

LOW, HIGH = np.float32(-1), np.float32(1.5)
add("clamp-special", lambda j, lo, x, hi: j.lax.clamp(lo, x, hi),
    [np.full(30, -1, np.float32), special(np.float32), np.full(30, 1.5, np.float32)], smooth=False)
# JAX has no derivative by a scalar edge of an array.
add("clamp-scalars", lambda j, x: j.lax.clamp(-1.0, x, 1.5), [A.astype(np.float32)], smooth=False)
add("clamp-edges", lambda j, lo, x, hi: j.lax.clamp(lo, x, hi),
    [np.asarray(LOW), A.astype(np.float32), np.asarray(HIGH)], differentiable=False)
add("clamp-mixed", lambda j, x, hi: j.lax.clamp(j.lax.full((), np.float32(-1)), x, hi),
    [A.astype(np.float32), np.abs(B).astype(np.float32)], smooth=False)
add("clamp-crossed", lambda j, x: j.lax.clamp(2.0, x, 1.5), [A.astype(np.float32)], smooth=False)
add("clamp-integers", lambda j, lo, x, hi: j.lax.clamp(lo, x, hi),
    [np.asarray(np.int32(-2)), whole(np.int32), np.asarray(np.int32(3))])
add("select-mask", lambda j, p, x, y: j.lax.select(p, x, y),
    [A > 0, A.astype(np.float32), B.astype(np.float32)])
_large = np.resize(special(np.float32), (70, 60))
add("select-large", lambda j, p, x, n: [
        j.lax.select(p, x, j.lax.neg(x)), j.lax.select(p, n, j.lax.bitwise_not(n)),
        j.lax.select(p, x, j.lax.full_like(x, 0))],
    [np.arange(4200).reshape(70, 60) % 7 < 3, _large,
     np.arange(4200, dtype=np.int32).reshape(70, 60)],
    smooth=False, tolerance="exact")
add("select-scalar", lambda j, p, x, y: j.lax.select(p, x, y),
    [np.asarray(True), A.astype(np.float32), B.astype(np.float32)])
add("select-same", lambda j, p, x: j.lax.select(p, x, x), [A > 0, A.astype(np.float32)])
add("select_n-indices", lambda j, n, *xs: j.lax.select_n(n, *xs),
    [np.array([0, 2, 1, 2, 0], np.int32),
     *(np.arange(5, dtype=np.float32) + 10 * k for k in range(3))])
# Out of range: the nearest case. JAX's derivatives disagree with each other there.
add("select_n-out-of-range", lambda j, n, *xs: j.lax.select_n(n, *xs),
    [np.array([-1, 0, 1, 2, 7], np.int32),
     *(np.arange(5, dtype=np.float32) + 10 * k for k in range(3))], differentiable=False)
add("select_n-two-indices", lambda j, n, *xs: j.lax.select_n(n, *xs),
    [np.array([0, 0, 1, 1, 0], np.int32),
     *(np.arange(5, dtype=np.float32) + 10 * k for k in range(2))])
add("select_n-one", lambda j, n, x: j.lax.select_n(n, x),
    [np.array([0, 0], np.int32), np.ones(2, np.float32)])

# --- conversion -----------------------------------------------------------------------------------

_sources = [special(np.float32), special(bfloat16), special(np.float16),
            np.float32([2147483520, 2147483648, -2147483648, -2147483904, 4294967040, 4294967296,
                        255.5, 256, -0.9, 1e10]),
            whole(np.int32), whole(np.uint32), whole(np.int8), whole(np.uint8),
            np.array([True, False])]
for _target in (np.bool_, np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32, np.float16,
                bfloat16, np.float32, np.complex64, int4, uint4, float8, float8_wide):
    _target = np.dtype(_target)
    add(f"convert-{_target.name}",
        lambda j, *xs, t=_target: [j.lax.convert_element_type(x, t) for x in xs], _sources,
        smooth=False, tolerance="exact",
        differentiable=np.issubdtype(_target, np.floating) or _target == np.int32)
for _target in (np.int64, np.uint64, np.float32, np.float64, np.int32, np.float16, bfloat16):
    _target = np.dtype(_target)
    add(f"convert64-{_target.name}",
        lambda j, *xs, t=_target: [j.lax.convert_element_type(x, t) for x in xs],
        [special(np.float64), np.float64([2.0**63, -2.0**63, 2.0**64, 2.0**63 - 1024, 1e300]),
         # Rounded twice to bfloat16, and to float16, by way of float32.
         np.float64([1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, -1 - 3 * 2**-8 - 2**-40]),
         np.float64([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, -1 - 3 * 2**-11 - 2**-40]),
         np.float64([65519.9999999, 65520]),
         whole(np.int64), whole(np.uint64)],
        smooth=False, tolerance="exact", x64=True)
add("convert-smooth", lambda j, x: j.lax.convert_element_type(
        j.lax.convert_element_type(x, np.complex64), np.complex64),
    [np.array(POINTS, np.float32)], smooth=False)
add("convert-from-complex", lambda j, x: [j.lax.convert_element_type(x, t) for t in (
        np.bool_, np.complex64)], [COMPLEX.astype(np.complex64)], differentiable=False)
for _label, _source, _target in (
        ("float-bits", np.float32([1.5, -0.0, np.inf]), np.int32),
        ("float-bytes", np.float32([1.5, -2.0]), np.uint8),
        ("bytes-float", np.arange(8, dtype=np.uint8).reshape(2, 4), np.float32),
        ("halves", np.float32([[1.5, -2.0]]), np.int16),
        ("bfloat16", np.float32([1.5]).astype(bfloat16), np.uint16),
        ("nibbles", np.array([0x5A, -3], np.int8), int4),
        ("from-nibbles", np.array([[1, -2], [7, -8]]).astype(int4), np.int8),
        ("same-nibbles", np.array([1, -2]).astype(int4), uint4)):
    add(f"bitcast-{_label}", lambda j, x, t=_target: j.lax.bitcast_convert_type(x, t), [_source],
        differentiable=False)

add("complex", lambda j, x, y: j.lax.complex(x, y),
    [special(np.float32), special(np.float32)[::-1].copy()], smooth=False)
add("complex-parts", lambda j, x, y: [
        j.lax.real(j.lax.complex(x, y)), j.lax.imag(j.lax.conj(j.lax.complex(x, y)))],
    [A.astype(np.float32), B.astype(np.float32)])
add("conj-real", lambda j, x: j.lax.conj(x), [A.astype(np.float32)])
add("conj-complex", lambda j, z: j.lax.conj(z), [COMPLEX.astype(np.complex64)])
add("real", lambda j, z: j.lax.real(z), [COMPLEX.astype(np.complex64)])
add("imag", lambda j, z: j.lax.imag(z), [COMPLEX.astype(np.complex64)])
add("stop_gradient", lambda j, x: j.lax.mul(j.lax.stop_gradient(x), x),
    [A.astype(np.float32)], smooth=False)
add("stop_gradient-tree", lambda j, x, n: j.lax.stop_gradient({"a": x, "b": (n, None)}),
    [A.astype(np.float32), np.arange(2, dtype=np.int32)], smooth=False)

# --- constants and weak types ---------------------------------------------------------------------

for _label, _args in {"float": ((2, 3), 1.5), "int": ((2,), 7), "typed": ((2,), 1.7, np.int32),
                      "wrapped": ((2,), 300, np.int8), "scalar": ((), 2.0), "empty": ((0, 2), 1),
                      "bool": ((2,), True), "strong": ((2,), np.float32(1)), "one": (3, 1.0),
                      "complex": ((2,), 1j)}.items():
    add(f"full-{_label}", lambda j, args=_args: j.lax.full(*args), [], differentiable=False,
        vmappable=False)
add("full_like", lambda j, x: [
        j.lax.full_like(x, 2), j.lax.full_like(x, 2.7, np.int32), j.lax.full_like(x, 1, shape=(3,)),
        j.lax.full_like(1.0, 2), j.lax.full_like(j.lax.full((), 1.0), 3)],
    [A.astype(np.float32)], differentiable=False, vmappable=False)
WEAK = {
    "float-float": lambda l: l.add(1.0, 2.0), "int-int": lambda l: l.mul(2, 3),
    "division": lambda l: l.div(7, 0), "remainder": lambda l: l.rem(7, 0),
    "compare": lambda l: l.eq(1.0, 1.0), "finite": lambda l: l.is_finite(1.0),
    "array-float": lambda l: l.add(np.ones(2, np.float32), 1.5),
    "numpy": lambda l: l.add(np.ones(2, np.float32), np.float64(1)),
    "int-numpy": lambda l: l.add(1, np.array(3)), "pow": lambda l: l.pow(2.0, 2),
    "clamp": lambda l: l.clamp(0.0, 2.0, 1.0), "select": lambda l: l.select(True, 1.0, 2.0),
    "complex": lambda l: l.complex(1.0, 2.0), "real": lambda l: l.real(1j),
    "not": lambda l: l.bitwise_not(1), "bool": lambda l: l.bitwise_and(True, False),
    "precision": lambda l: l.reduce_precision(1.5, 5, 10), "max": lambda l: l.max(1.0, 2.0),
    "convert-int": lambda l: l.convert_element_type(1, float), "conj": lambda l: l.conj(1j),
    "convert-scalar": lambda l: l.convert_element_type(300, np.int8),
    "bitcast": lambda l: l.bitcast_convert_type(1.0, np.int32), "square": lambda l: l.square(3),
    "integer_pow": lambda l: l.integer_pow(2.0, 3), "round": lambda l: l.round(2.5),
    "popcount": lambda l: l.population_count(7), "exp": lambda l: l.exp(1.0, accuracy=None),
}
for _label, _fun in WEAK.items():
    # Not under jit: XLA folds 7 / 0 with the processor's own division, and dies of it.
    add(f"weak-{_label}", lambda j, f=_fun: f(j.lax), [], differentiable=False, vmappable=False,
        jittable=False)
add("weak-argument", lambda j, x, y: [j.lax.mul(x, x), j.lax.add(x, y), j.lax.lt(x, x)],
    [2.5, np.float32(3)], tolerance="exact")

# --- errors ---------------------------------------------------------------------------------------

F, F2, F3 = (np.ones(shape, np.float32) for shape in (2, (2, 2), 3))
I, B1 = np.ones(2, np.int32), np.ones(2, bool)
ERRORS = {
    "list": lambda l: l.add([1.0], F), "string": lambda l: l.neg("a"),
    "none": lambda l: l.neg(None),
    "list-second": lambda l: l.add(F, [1.0]), "list-and": lambda l: l.bitwise_and([1], 1),
    "dtypes": lambda l: l.add(F, I), "scalar-dtype": lambda l: l.add(F, 1),
    "scalars": lambda l: l.add(1, 2.0), "bool": lambda l: l.add(F, True),
    "neg-bool": lambda l: l.neg(True), "sin-int": lambda l: l.sin(1),
    "abs-unsigned": lambda l: l.abs(np.uint8(1)), "shape": lambda l: l.add(F, F3),
    "rank": lambda l: l.add(F2, F), "rank-dtype": lambda l: l.add(F2, I),
    "rank-bool": lambda l: l.add(F2, B1), "shape-dtype": lambda l: l.add(F, np.ones(3, np.int32)),
    "complex-order": lambda l: l.lt(1j, 1j), "real-float": lambda l: l.real(F),
    "conj-int": lambda l: l.conj(1), "complex-half": lambda l: l.complex(F.astype(np.float16), F),
    "pow-int": lambda l: l.pow(2, 2.0), "pow-complex": lambda l: l.pow(F, F * 1j),
    "pow-bool": lambda l: l.pow(F, True), "pow-rank": lambda l: l.pow(F2, F),
    "integer_pow": lambda l: l.integer_pow(I, -1), "reciprocal": lambda l: l.reciprocal(I),
    "integer_pow-bool": lambda l: l.integer_pow(B1, 2), "shift": lambda l: l.shift_left(F, 1),
    "clamp-dtype": lambda l: l.clamp(0, F, 1), "clamp-min": lambda l: l.clamp(F3, F, 1.0),
    "clamp-max": lambda l: l.clamp(0.0, F, np.ones(1, np.float32)),
    "select-shape": lambda l: l.select(np.array([True]), F, F),
    "select-which": lambda l: l.select(F, F, F), "select-dtype": lambda l: l.select(B1, F, I),
    "select-scalar": lambda l: l.select(B1, F, 1.0), "select_n-none": lambda l: l.select_n(I),
    "select_n-bool": lambda l: l.select_n(True, F, F, F),
    "round": lambda l: l.round(F, 7), "round-int": lambda l: l.round(I),
    "convert-none": lambda l: l.convert_element_type(1, None),
    "convert-list": lambda l: l.convert_element_type([1], np.float32),
    "convert-string": lambda l: l.convert_element_type(F, "S4"),
    "convert-complex": lambda l: l.convert_element_type(1j, np.float32),
    "bitcast-size": lambda l: l.bitcast_convert_type(np.ones((2, 3), np.int16), np.int32),
    "bitcast-scalar": lambda l: l.bitcast_convert_type(np.int8(1), np.int32),
    "bitcast-bool": lambda l: l.bitcast_convert_type(B1, np.int8),
    "precision-exponent": lambda l: l.reduce_precision(F, 0, 10),
    "precision-mantissa": lambda l: l.reduce_precision(F, 5, -1),
    "precision-int": lambda l: l.reduce_precision(I, 5, 10),
    "precision-float": lambda l: l.reduce_precision(F, 5.0, 10),
    "full-array": lambda l: l.full((2,), F), "full-negative": lambda l: l.full((-1,), 1.0),
    "full-float": lambda l: l.full((2.5,), 1), "full-string": lambda l: l.full((2,), "a"),
    "full_like-list": lambda l: l.full_like([1], 2),
    "stop_gradient": lambda l: l.stop_gradient("a"),
    "refused-polygamma": lambda l: l.polygamma(B1, B1),
    "missing": lambda l: l.add(F), "dtype": lambda l: l.dtype([1]),
}
ERRORS |= {
    f"mixed-{name}": lambda l, name=name, x=x, y=y: getattr(l, name)(x, y) for name, x, y in (
    *((name, I, I.astype(np.int8)) for name in (
        "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "bitwise_and",
        "bitwise_or", "bitwise_xor", "shift_left", "shift_right_logical",
        "shift_right_arithmetic", "mulhi")),
    *((name, F, F.astype(np.float16)) for name in ("atan2", "nextafter", "pow")))}
# Of operands that it does not take.
for _row in derived(1) + derived(2):
    _wrong = next((x for x in (B1, F, F * 1j) if not takes(_row, x.dtype)), None)
    if _wrong is not None:
        ERRORS[f"refused-{_row.name}"] = lambda l, name=_row.name, xs=(_wrong,) * _row.operands: (
            getattr(l, name)(*xs))
for _label, _fun in ERRORS.items():
    add(f"error-{_label}", lambda j, f=_fun: f(j.lax), [], raises=True)

# --- compositions that cross rules ----------------------------------------------------------------

add("operators", lambda j, x, y: [
        f(x, y) for f in (operator.add, operator.sub, operator.mul, operator.truediv)],
    [A.astype(np.float32), B.astype(np.float32)])
add("deep", lambda j, x: j.lax.tanh(j.lax.sin(j.lax.exp(j.lax.neg(j.lax.square(x))))),
    [A.astype(np.float32)])
