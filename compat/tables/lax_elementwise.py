"""The elementwise functions of jax.lax."""

from __future__ import annotations

from compat.spec import (
    Case,
    array,
    case,
    cases,
    check,
    elementwise,
    floats,
    ints,
    scalar,
    shaped,
    special,
)
from tests.support.elementwise import LAX, Operation


def _lax(row: Operation) -> list[Case]:
    """Operands of one dtype and shape, or scalars; other dtypes and ranks raise."""
    rows = elementwise(row.operands, row.domain, promotes=False, tol=row.tolerance,
                       complex_tol=row.in_plane, grad=row.differentiable, edges=row.edges,
                       signed_zeros=row.signed_zeros)
    if row.operands == 2:
        x, y = ({"low": low, "high": high} for low, high in row.domain)
        rows += case("f(x, y)", x=shaped(2, 3, **x), y=shaped(**y), tol=row.tolerance,
                     grad=None if row.differentiable else False, raises=None)
        rows += case("f(x, y)", x=floats(2), y=ints(2), raises=None)
        rows += case("f(x, y)", x=floats(2), y=floats(1, 2), raises=True)
        rows += case("f(x, y)", x=floats(2), y=floats(3), raises=True)
        rows += case("f(x, 'a')", x=floats(2), raises=True)
    else:
        rows += case("f('a')", raises=True, modes="eager")
    return rows


_BITS = "int32 uint32 int8 uint8 int16 uint16 bool"
_SHIFTS = (
    case("f(x, n)", x=array([1, -1, -128, 127, 77], "int8"),
         n=array([0, 1, 7, 8, -1], "int8"), modes="eager jit vmap")
    + case("f(x, n)", x=array([1, -1, -2147483648, 99, 5], "int32"),
           n=array([0, 31, 32, -3, 4], "int32"), modes="eager jit vmap")
    + case("f(x, n)", x=array([1, 255, 128], "uint8"), n=array([7, 8, 200], "uint8"),
           modes="eager jit vmap")
    + case("f(x, n)", x=shaped(2, 3), n=ints(2, 3, high=9, dtype="int8"), dtypes="int8",
           modes="eager jit vmap")
    + case("f(x, n)", x=array([1, -5], "int64"), n=array([33, 64], "int64"), x64=True,
           modes="eager jit")
    + case("f(x, n)", x=floats(3), n=floats(3), raises=True)
    + case("f(x, n)", x=ints(3), n=ints(3, dtype="int8"), raises=True)
    + case("f(x, 1)", x=ints(3), modes="eager jit")
)
_DIVISION = (
    cases("f(x, y)", x=array([7, -7, 7, -7, 0, 5, -5, -2147483648], "int32"),
          y=array([3, 3, -3, -3, 5, 0, 0, -1], "int32"), modes="eager jit vmap")
    + cases("f(x, y)", x=array([7, 200, 0, 5], "uint8"), y=array([3, 7, 5, 0], "uint8"),
            modes="eager jit")
    + cases("f(x, y)", x=array([7, -128, 0, 5], "int8"), y=array([3, -1, 5, 0], "int8"),
            modes="eager jit")
)

_ACCURACY = "cos erfc exp exp2 expm1 log log1p log2 logistic sin tan tanh sqrt rsqrt cbrt".split()
TABLE = {
    "jax.lax.div": _DIVISION,
    "jax.lax.rem": _DIVISION,
    "jax.lax.population_count": case("f(x)", x=special(), dtypes=_BITS.replace(" bool", ""),
                                     modes="eager jit vmap")
    + case("f(x)", x=floats(2), raises=True) + case("f(x)", x=ints(0, 2)),
    "jax.lax.clz": case("f(x)", x=special(), dtypes=_BITS.replace(" bool", ""),
                        modes="eager jit vmap")
    + case("f(x)", x=floats(2), raises=True) + case("f(x)", x=shaped(3), dtypes="int64 uint64"),
    "jax.lax.shift_left": _SHIFTS,
    "jax.lax.shift_right_logical": _SHIFTS,
    "jax.lax.shift_right_arithmetic": _SHIFTS,
    "jax.lax.mulhi": case("f(x, y)", x=special(), y=special(), modes="eager jit",
                          dtypes="int32 uint32 int16 uint16 int8 uint8")
    + case("f(x, y)", x=floats(2), y=floats(2), raises=True)
    + case("f(x=x, y=x)", x=ints(2), raises=True),
    "jax.lax.polygamma": case("f(m, x)", m=array([0., 1., 2., 3.], "float32").fix(),
                              x=floats(4, low=0.5, high=5), tol="accumulate")
    + case("f(m, x)", m=array([1., 1.5, -1.], "float32").fix(), x=floats(3, low=0.5, high=5),
           tol="accumulate", modes="eager jit")
    + case("f(1, x)", x=floats(3), raises=True)
    + case("f(m, x)", m=shaped(2, low=0, high=2).fix(), x=shaped(2, low=1, high=2),
           dtypes="int32", raises=True),
    "jax.lax.igamma_grad_a": case("f(a, x)", a=floats(2, low=1), x=floats(2, low=1), modes="grad"),
    "jax.lax.random_gamma_grad": case("f(a, x)", a=shaped(3, low=0.5, high=4),
                                      x=shaped(3, low=0.5, high=4), tol="iterative",
                                      modes="eager jit vmap", dtypes="float32 float64")
    + case("f(a, x)", a=array([0.5, 2.0, 50.0, 0.01], "float32"),
           x=array([3.0, 0.0, 45.0, 0.001], "float32"), tol="iterative", modes="eager jit"),
    "jax.lax.betainc": case("f(a, b, x)", a=shaped(2, 3, low=0.5, high=4).fix(),
                            b=shaped(2, 3, low=0.5, high=4).fix(),
                            x=shaped(2, 3, low=0.05, high=0.95), tol="iterative",
                            dtypes="float32 float64")
    + case("f(a, b, x)", a=array([0., 1., 2., 0., -1., 3.], "float32"),
           b=array([1., 0., 3., 0., 1., 2.], "float32"),
           x=array([.5, .5, 0., .5, .5, 1.5], "float32"), modes="eager jit", tol="iterative")
    + case("f(a, b, x)", a=floats(2, low=1), b=floats(2, low=1), x=floats(2, low=0.1, high=0.9),
           modes="grad", tol="iterative")
    + case("f(1., 2., x)", x=0.3, tol="iterative")
    + case("f(1, 2, x)", x=0.3, raises=True)
    + case("f(a, b, x)", a=floats(2), b=floats(3), x=floats(2), raises=True),
    "jax.lax.pow": case("f(x, y)", x=shaped(2, 3, low=0.5, high=3), y=shaped(2, 3),
                        dtypes="float32 complex64", tol="loose")
    + case("f(x, y)", x=shaped(2, 3, low=0.5, high=3), y=shaped(2, 3),
           dtypes="float16 bfloat16 float64", modes="eager jit grad", tol="loose")
    + case("f(x, y)", x=floats(2, 3), y=ints(2, 3, low=-2, high=3), tol="loose")
    + case("f(x, y)", x=floats(3), y=ints(low=0), tol="loose")
    + case("f(x, 2)", x=floats(3)) + case("f(x, 2.5)", x=floats(3, low=0.1), tol="loose")
    + case("f(x, y)", x=array([0., 0., -0., 2., -1.], "float32"),
           y=array([0., -1., 3., 0., .5], "float32"))
    + case("f(x, y)", x=ints(3), y=ints(3), raises=True)
    + case("f(x, y)", x=floats(3), y=shaped(3, dtype="float16"), raises=True)
    + case("f(x, y)", x=floats(3), y=floats(1, 3), raises=True),
    "jax.lax.polynomial": cases(
        "f(x, [1., 2., 3.])", "f(x, [])", "f(x, [2.])", "f(x, [x, 2., x])",
        "f(x, [1., 2., 3., 4.], unroll=2)", x=shaped(2, 3), dtypes="float32 complex64", tol="loose")
    + case("f(x, c)", x=floats(3), c=floats(4), tol="loose")
    + case("f(2., [1., c, 3.])", c=scalar(0.5))
    + case("f(x, [1, 2])", x=shaped(3), dtypes="int32 uint8 bfloat16 float64", modes="eager jit",
           tol="loose")
    + cases("f(x, [x[:2], x])", "f(x > 0, [1., 2.])", "f(x, [1., 2.], unroll=-1)", "f(x, 1.)",
            x=floats(3), raises=True),
    "jax.lax.integer_pow": cases("f(x, 0)", "f(x, 1)", "f(x, 2)", "f(x, 3)", "f(x, 7)", "f(x, -2)",
                                 x=shaped(2, 3, low=0.5, high=2), dtypes="float32 complex64",
                                 tol="loose")
    + cases("f(x, 3)", "f(x, 11)", x=shaped(3), dtypes="int32 int8 uint8 bfloat16",
            modes="eager jit", tol="loose")
    + case("f(x, -1)", x=ints(2), raises=True) + case("f(x, 2)", x=shaped(2, dtype="bool"),
                                                      raises=True)
    + case("f(x, 0)", x=array([0., -1.], "float32")),
    "jax.lax.round": cases("f(x)", "f(x, lax.RoundingMethod.TO_NEAREST_EVEN)", "f(x, 1)",
                           x=array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 1e9, -0.0]),
                           dtypes="float32 float16 bfloat16", tol="exact")
    + case("f(x)", x=special()) + case("f(x)", x=ints(2), raises=True)
    + case("f(x, 7)", x=floats(2), raises=True),
    "jax.lax.reduce_precision": cases("f(x, 5, 10)", "f(x, 8, 7)", "f(x, 4, 3)", "f(x, 2, 0)",
                                      "f(x, exponent_bits=8, mantissa_bits=23)",
                                      x=shaped(3, 4), tol="exact")
    + case("f(x, 5, 10)", x=special(), modes="eager jit")
    + case("f(x, 5, 2)", x=shaped(3), dtypes="float16 bfloat16 float64", modes="eager jit",
           tol="exact")
    + cases("f(x, 0, 2)", "f(x, 5, -1)", "f(x, 5.5, 1)", x=floats(2), raises=True)
    + case("f(x, 5, 2)", x=ints(2), raises=True),
    "jax.lax.clamp": case("f(low, x, high)", low=shaped(2, 3, low=-2, high=-1),
                          x=shaped(2, 3), high=shaped(2, 3, low=1, high=2),
                          dtypes="float32 bfloat16 int32 uint8", tol="exact")
    + case("f(-1., x, 1.)", x=floats(2, 3)) + case("f(0, x, 2)", x=ints(2, 3), modes="eager jit")
    + case("f(low, x, high)", low=scalar(-1.), x=floats(3), high=scalar(1.), grad="x")
    + case("f(-1., x, 1.)", x=special(), modes="eager jit")
    + case("f(0., x, 1.)", x=array([0., 1., 2., -1.], "float32"))
    + case("f(0, x, 1)", x=floats(3), raises=True)
    + case("f(x, x, y)", x=floats(3), y=floats(1), raises=True)
    + case("f(lo, x, hi)", lo=array([1 + 1j], "complex64"), x=shaped(1), hi=array([2], "complex64"),
           dtypes="complex64", modes="eager jit"),
    "jax.lax.select": case("f(p, x, y)", p=shaped(2, 3, dtype="bool"), x=shaped(2, 3),
                           y=shaped(2, 3), dtypes="float32 int32 complex64")
    + case("f(p, x, y)", p=shaped(dtype="bool"), x=floats(2), y=floats(2))
    + case("f(True, x, y)", x=floats(2), y=floats(2))
    + case("f(p, x, y)", p=shaped(2, dtype="bool"), x=floats(2, 2), y=floats(2, 2), raises=True)
    + case("f(p, x, y)", p=shaped(2, dtype="bool"), x=floats(2), y=ints(2), raises=True)
    + case("f(p, x, y)", p=floats(2), x=floats(2), y=floats(2), raises=True),
    "jax.lax.select_n": case("f(i, x, y, z)", i=ints(2, 3, high=2), x=floats(2, 3), y=floats(2, 3),
                             z=floats(2, 3))
    + case("f(p, x, y)", p=shaped(2, 3, dtype="bool"), x=shaped(2, 3), y=shaped(2, 3),
           dtypes="float32 complex64 int8")
    + case("f(i, x, y)", i=array(1, "int32").fix(), x=floats(2), y=floats(2))
    + case("f(i, x, y)", i=array([-1, 0, 1, 5], "int32").fix(), x=floats(4), y=floats(4),
           modes="eager jit")
    + case("f(i, x)", i=shaped(2, dtype="bool"), x=floats(2), modes="eager jit")
    + case("f(p, x, x, x)", p=shaped(2, dtype="bool"), x=floats(2), raises=True)
    + case("f(i)", i=ints(2), raises=True)
    + case("f(i, x, y)", i=ints(2), x=floats(2), y=floats(3), raises=True),
    "jax.lax.RoundingMethod": check("list(f)", "f.AWAY_FROM_ZERO", "int(f.TO_NEAREST_EVEN)"),
    "jax.lax.AccuracyMode": check("[m.name for m in f]", "f.HIGHEST.value"),
    "jax.lax.Tolerance": check("f(atol=0.5).atol", "f(1e-3, 1e-2, 4).ulps")
    + check("f()", "f(-1)", raises=True),
}
for _row in LAX.values():
    if _row.domain:
        _name = f"jax.lax.{_row.name}"
        TABLE[_name] = _lax(_row) + TABLE.get(_name, [])

for _name in _ACCURACY:
    _low = 0.5 if _name in ("log", "sqrt", "rsqrt") else -1.0
    TABLE[f"jax.lax.{_name}"] += case(
        "f(x, accuracy=lax.AccuracyMode.HIGHEST)", x=floats(3, low=_low), modes="eager jit")
