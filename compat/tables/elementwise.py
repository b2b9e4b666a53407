"""Elementwise functions of jax.numpy, and the ufunc objects."""

from __future__ import annotations

from typing import Any

from compat.spec import (
    Case,
    array,
    bools,
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

ANGLES = "cos sinh cosh arctan arcsinh atan asinh sinc"
ALL = "exp exp2 expm1 square positive negative fabs"
ROUNDED = "floor ceil trunc rint round around sign"
WHOLE = "int32 int8 uint8 bool float32"

TABLE: dict[str, list[Case]] = {}


def put(names: str, rows: list[Case]) -> None:
    for name in names.split():
        TABLE.setdefault(f"jax.numpy.{name}", []).extend(rows)


put(f"{ANGLES} {ALL} {ROUNDED}", elementwise(1))
put("tan tanh", elementwise(1, tol="loose"))      # 1 + tan(x)**2 cancels
put("degrees rad2deg radians deg2rad conj conjugate real imag angle modf nan_to_num",
    elementwise(1))
put("arcsin arccos arctanh asin acos atanh", elementwise(1, domain=(-0.9, 0.9)))
put("arccosh acosh", elementwise(1, domain=(1.1, 5.0)))
put("log2 log10 log1p sqrt cbrt reciprocal i0 absolute abs", elementwise(1, domain=(0.1, 5.0)))
put("isfinite isinf isnan isneginf isposinf iscomplex isreal signbit logical_not",
    elementwise(1, grad=False))
put("bitwise_count bitwise_invert bitwise_not invert",
    elementwise(1, dtypes=WHOLE, grad=False))
put("subtract multiply divide true_divide arctan2 atan2 fmax fmin copysign "
    "heaviside nextafter hypot logaddexp logaddexp2 float_power",
    elementwise(2, domain=(0.3, 3.0)))
put("maximum minimum", elementwise(2, domain=(0.3, 3.0), signed_zeros=False))
# Complex powers, exp(y log(x)), are some 7 units from the true ones, in JAX and here.
put("power pow",
    elementwise(2, domain=(0.4, 4.3), integers=(1, 4), complex_tol="loose"))
put("floor_divide remainder mod fmod divmod",
    elementwise(2, domain=(0.4, 4.3), integers=(1, 4)))
put("equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
    "isclose", elementwise(2, grad=False))
put("bitwise_and bitwise_or bitwise_xor gcd lcm left_shift right_shift bitwise_left_shift "
    "bitwise_right_shift", elementwise(2, dtypes=WHOLE, grad=False, integers=(0, 6)))

# What the families do not reach.
MORE = {
    "frexp": (
        elementwise(1, grad=False, dtypes="float32 bfloat16 float16 int32 complex64")
        + case("f(x.astype('float8_e4m3fn'))", modes="eager jit",
               x=array([1.5, 0.0, 3.0, -448.0], "float32"))
    ),
    "spacing": elementwise(1, grad=False, dtypes="float32 float16 int32 complex64"),
    "ldexp": (
        cases("f(x, i)", x=shaped(4), i=ints(4, low=-3, high=4), dtypes="float32 float16 int32")
        + case("f(x, 3)", x=floats(2, 3)) + case("f(x, y)", x=floats(2), y=floats(2), raises=True)
        + case("f(x.astype('float8_e4m3fn'), 2)", modes="eager jit", x=floats(4))
        + case("f(x.astype('float8_e4m3fn'), 10)", modes="eager jit", x=floats(4))
    ),
    "fix": check("f(2.5)", raises=True),
    "iscomplexobj": check("f(1j)", "f(jnp.ones(2))", "f(np.complex64(1))", "f([1, 2j])"),
    "isrealobj": check("f(1j)", "f(jnp.ones(2))", "f(1)"),
    "isscalar": check("f(1)", "f(jnp.ones(()))", "f(jnp.ones(2))", "f('a')",
                                "f(np.float32(1))", "f([1])", "f(None)"),
    "iterable": check("f(1)", "f(jnp.ones(2))", "f('a')", "f([1])"),
    "clip": (
        cases("f(x, 0.5)", "f(x, None, 0.5)", "f(x, min=-1, max=1.5)", "f(x)", x=floats(3, 4))
        + case("f(x, low, high)", x=floats(3, 4), low=floats(4), high=floats(3, 1))
        + case("f(x, -1, 1)", x=shaped(3), dtypes="int8 float16 bool", modes="eager jit")
        + case("f(x, 0, 1)", x=shaped(3), dtypes="complex64", raises="ordering")
        + case("f(x, 1, -1)", x=floats(5))
        + case("f(x, -1, 1)", x=array([-1.0, 1.0, 0.0], "float32"))
    ),
    "round": (
        cases("f(x, 2)", "f(x, decimals=-1)", x=shaped(3, low=-90, high=90),
              dtypes="float32 float16 complex64", modes="eager jit")
        + case("f(x, -1)", x=ints(3), raises=True) + case("f(x)", x=bools(2), raises=True)
        + case("f(x)", x=array([0.5, 1.5, 2.5, -0.5, -1.5], "float32"))
    ),
    "nan_to_num": cases(
        "f(x, nan=1.5)", "f(x, posinf=7.0, neginf=-7.0)", "f(x, False, 0.0, 1.0)",
        x=special(), dtypes="float32 complex64", modes="eager jit"),
    "angle": cases("f(x, deg=True)", x=shaped(4), dtypes="complex64 float32"),
    "power": (
        cases("f(x, 0)", "f(x, 1)", "f(x, 2)", "f(x, 3)", "f(x, -2)", x=floats(4))
        + cases("f(x, 2)", "f(x, 7)", x=shaped(4), dtypes="int32 uint8 complex64",
                modes="eager jit")
        + case("f(x, -1)", x=ints(3), raises="negative")
        + case("f(x, y)", x=array([0.0, 0.0, 0.0, 2.0], "float32"),
               y=array([0.0, 1.0, 2.0, 0.0], "float32"))
        + case("f(x, i)", x=floats(4), i=ints(4, low=-2, high=3))
        + case("f(2, x)", x=ints(4))
    ),
    "maximum": (
        case("f(x, x)", x=floats(3))
        + case("f(x, y)", x=array([1.0, 2.0, 0.0], "float32"), y=array([1.0, 1.0, 0.0], "float32"))
        + cases("f.reduce(x)", "f.reduce(x, axis=1, keepdims=True)", "f.outer(x, y)",
                x=floats(3, 4, distinct=True), y=floats(2))
    ),
    "abs": case("f(x)", x=array([0.0, -0.0, 1.0, -1.0], "float32")),
    "sqrt": case("f(x)", x=array([0.0, 4.0], "float32")),
    "hypot": case("f(x, y)", x=array([0.0, 3.0], "float32"), y=array([0.0, 4.0],
                                                                             "float32")),
    "sinc": case("f(x)", x=array([0.0, 1.0, -0.5], "float32")),
    "i0": case("f(x)", x=array([0.0, 1.0, -0.5], "float32")),
    "logaddexp": (
        case("f(x, y)", x=array([-float("inf"), 1.0, float("inf")], "float32"),
             y=array([-float("inf"), -float("inf"), 2.0], "float32"))
        + cases("f.reduce(x)", "f.accumulate(x, axis=1)", x=floats(3, 4))
    ),
    "isclose": cases(
        "f(x, y)", "f(x, y, rtol=0.5)", "f(x, y, atol=1.0)", "f(x, y, equal_nan=True)",
        x=special("float32"), y=special("float32")),
    "allclose": (
        cases("f(x, x)", "f(x, y)", "f(x, y, atol=10)", x=shaped(3), y=shaped(3),
              dtypes="float32 int32 complex64")
        + cases("f(x, x)", "f(x, x, equal_nan=True)", x=special("float32"))
        + case("f(x, y)", x=floats(2), y=floats(3), raises=True)
    ),
    "array_equal": (
        cases("f(x, x)", "f(x, y)", "f(x, x[:2])", x=shaped(3), y=shaped(3),
              dtypes="float32 int32 bool complex64")
        + cases("f(x, x)", "f(x, x, equal_nan=True)", x=special("float32"))
        + check("f([1, 2], [1, 2])", "f(1, 2)")
        + check("f(1, 'a')", "f('a', 'a')", raises=True)
    ),
    "array_equiv": cases(
        "f(x, x)", "f(x, x[:1])", "f(x, x[0])", x=shaped(3), dtypes="float32 int32")
    + case("f(x[:2], x)", x=floats(3), raises=True),
    "gcd": case("f(x, y)", x=floats(2), y=floats(2), raises="integers")
    + case("f(x, y)", x=array([0, 0, 12, -8], "int32"), y=array([0, 5, 18, 12], "int32")),
    "lcm": case("f(x, y)", x=floats(2), y=floats(2), raises="integers")
    + case("f(x, y)", x=array([0, 0, 12, -8], "int32"), y=array([0, 5, 18, 12], "int32")),
    "floor_divide": cases(
        "f(x, y)", "f(x, 0)", x=array([7, -7, 7, -7, 0], "int32"),
        y=array([2, 2, -2, -2, 3], "int32"), modes="eager jit vmap")
    + case("f(x, y)", x=array([7.5, -7.5, 7.5, -7.5], "float32"),
           y=array([2.0, 2.0, -2.0, -2.0], "float32")),
    "remainder": cases(
        "f(x, y)", "f(x, 0)", x=array([7, -7, 7, -7, 0], "int32"),
        y=array([2, 2, -2, -2, 3], "int32"), modes="eager jit vmap")
    + case("f(x, y)", x=array([7.5, -7.5, 7.5, -7.5], "float32"),
           y=array([2.0, 2.0, -2.0, -2.0], "float32")),
    "divmod": case("f(x, y)", x=array([7.5, -7.5, 7.5, -7.5], "float32"),
                             y=array([2.0, 2.0, -2.0, -2.0], "float32")),
    "where": (
        case("f(c, x, y)", c=bools(2, 3), x=shaped(2, 3), y=shaped(3),
             dtypes="float32 int8 bool complex64 bfloat16")
        + case("f(c, x, 0)", c=bools(3), x=floats(3))
        + case("f(x > 0, jnp.log(x), 0.0)", x=array([-1.0, 0.5, 2.0], "float32"))
        + case("f(x, x, y)", x=ints(4), y=floats(4))
        + case("f(c)", c=array([True, False, True], "bool"), modes="eager")
        + case("f(c, size=3, fill_value=-1)", c=array([True, False, True], "bool"),
               modes="eager jit")
        + case("f(c, x, y)", c=bools(2), x=floats(3), y=floats(3), raises=True)
        + case("f(c, x)", c=bools(2), x=floats(2), raises=True)
    ),
    "select": (
        cases("f([x > 1, x > 0], [x, 2 * x])", "f([x > 1, x < 0], [x, y], default=7)",
              x=floats(3, 4), y=floats(4))
        + case("f([x > 1], [x, x])", x=floats(3), raises=True)
        + case("f([], [])", x=floats(3), raises=True)
        + case("f([x > 1, x > 0], [x, 3], 2)", x=ints(4))
    ),
    "piecewise": (
        cases("f(x, [x < 0, x >= 1], [-1.0, 1.0, 0.0])", "f(x, [x < 0], [lambda v: v ** 2, 3])",
              "f(x, [x < 0, x > 1], [lambda v: -v, lambda v: 2 * v])",
              "f(x, x[None] < 0, [jnp.sin, jnp.cos])", x=floats(5))
        + case("f(x, x < 0, [jnp.sin, jnp.cos])", x=floats(5), raises=True)
        + case("f(x, [x < 0], [lambda v, a, b=0: a * v + b, 0], 3, b=1)", x=floats(5))
        + case("f(x, [x > 0], [1, 2, 3])", x=floats(5), raises=True)
    ),
    "vectorize": (
        cases("f(lambda a: a * 2)(x)", "f(jnp.dot, signature='(k),(k)->()')(x, y)",
              "f(jnp.outer, signature='(n),(m)->(n,m)')(x, y)",
              "f(lambda a, b: a + b, excluded={1})(x, 2.0)",
              x=floats(2, 3), y=floats(3), tol="accumulate")
        + case("f(lambda a: (a, -a), signature='(n)->(n),(n)')(x)", x=floats(2, 3))
        + case("f(jnp.dot, signature='(k),(k)->()')(x, y)", x=floats(2), y=floats(3), raises=True)
        + check("f(jnp.dot, signature='(k')(jnp.ones(2), 1)",
                "f(jnp.dot, signature='(k),(k)->()')(1.0, 2.0)", raises=True)
    ),
    "apply_along_axis": cases(
        "f(jnp.sum, 0, x)", "f(jnp.sort, 1, x)", "f(lambda v: v[::2] * 2, -1, x)",
        "f(jnp.outer, 1, x, jnp.arange(2.0))", x=floats(3, 4, distinct=True), tol="accumulate")
    + case("f(jnp.sum, 2, x)", x=floats(3, 4), raises=True),
    "apply_over_axes": cases(
        "f(jnp.sum, x, [0, 2])", "f(jnp.max, x, (1,))", x=floats(2, 3, 4, distinct=True),
        tol="accumulate") + case("f(jnp.max, x, 1)", x=floats(2, 3), raises=True),
    "frompyfunc": (
        cases("f(lambda a, b: a * b + 1, 2, 1)(x, y)",
              "f(lambda a, b: a + b, 2, 1, identity=0).reduce(x)",
              "f(lambda a, b: a + b, 2, 1, identity=0).reduce(x, axis=1, keepdims=True)",
              "f(lambda a, b: a + b, 2, 1, identity=0).accumulate(x, axis=1)",
              "f(lambda a, b: a * b, 2, 1).outer(x, y)",
              "f(lambda a, b: a + b, 2, 1).at(x, jnp.array([0, 0]), 2.0, inplace=False)",
              "f(lambda a, b: a + b, 2, 1).reduceat(x, jnp.array([0, 2]), axis=1)",
              x=floats(2, 3), y=floats(3), tol="accumulate")
        + case("f(lambda a: (a, -a), 1, 2)(x)", x=floats(3))
        + check("f(lambda a: a, 1, 1).nin", "f(lambda a: a, 1, 1).nargs",
                "f(lambda a: a, 1, 1).identity", "f(lambda a: a, 1, 1).nout")
        + check("f(lambda a: a, 1, 1).reduce(jnp.ones(2))", "f(3, 1, 1)", raises=True)
    ),
    "ufunc": (
        check("isinstance(jnp.add, f)", "jnp.add.nin", "jnp.add.nout", "jnp.add.nargs",
              "jnp.add.identity", "jnp.multiply.identity", "jnp.maximum.identity",
              "jnp.logical_and.identity", "jnp.bitwise_and.identity", "jnp.logaddexp.identity",
              "jnp.subtract.identity", "jnp.negative.nin", "repr(jnp.add)", "jnp.add.__name__",
              "isinstance(jnp.sin, f)", "jnp.add == jnp.add", "jnp.add == jnp.multiply",
              "[n for n in dir(f) if not n.startswith('_')]",
              "hash(jnp.add) == hash(jnp.add)")
        + check("jnp.add(1, 2, out=jnp.zeros(()))", "jnp.add(1, 2, where=True)", "jnp.add(1)",
                raises=True)
    ),
}
for _name, _rows in MORE.items():
    put(_name, _rows)


def ufunc(dtype: str) -> list[Case]:
    """The methods of a ufunc of two arguments."""
    some = "eager jit grad" if dtype == "float32" else "eager jit"
    tail: dict[str, Any] = {"dtypes": dtype, "modes": "eager jit"}
    return (
        cases("f.reduce(x)", "f.reduce(x, axis=1, keepdims=True)", "f.reduce(x, axis=None)",
              "f.accumulate(x)", "f.accumulate(x, axis=1)", "f.outer(x, y)",
              "f.reduceat(x, jnp.array([0, 2, 1]), axis=1)",
              x=shaped(3, 4), y=shaped(2), dtypes=dtype, tol="accumulate", modes=some,
              raises=None)
        + case("f.at(x, i, y, inplace=False)", x=shaped(4), y=shaped(2), i=array([1, 1], "int32"),
               **tail)
        + case("f.reduce(x, where=m, initial=v)", x=shaped(3, 4), m=bools(3, 4), v=array(1),
               tol="accumulate", **tail)
        + case("f.reduce(x, axis=(0, 1))", x=shaped(2, 3), raises=None, tol="accumulate", **tail)
        + case("f.reduce(x)", x=shaped(0, 3), raises=None, **tail)
        + case("f.reduce(x, where=m)", x=shaped(2, 3), m=bools(2, 3), raises=None, **tail)
        + case("f.at(x, i, y)", x=shaped(4), y=shaped(2), i=array([1, 1], "int32"),
               dtypes=dtype, raises=True)
    )


put("add multiply subtract maximum minimum logaddexp logaddexp2", ufunc("float32"))
put("bitwise_and bitwise_or bitwise_xor", ufunc("int32"))
put("logical_and logical_or logical_xor", ufunc("bool"))
put("negative", cases("f.at(x, i, inplace=False)", x=floats(4), i=array([1, 3], "int32"))
    + case("f.outer(x, x)", x=floats(2), raises=True) + case("f(x)", x=bools(2), raises=True))
put("add", cases("f(x, 1)", "f(x, 1.5)", "f(x, True)", "f(x, 1j)", x=shaped(3),
                 dtypes="bool int8 float16 float32", modes="eager jit")
    + case("f(x, v)", x=ints(3), v=scalar(2.5)))
for _argument in ("'text'", "[1, 2]", "None", "np.array(['a'])", "np.array([None])",
                  "np.array('2020-01-01', 'datetime64[D]')"):
    put("sin sqrt", check(f"f({_argument})", raises=True))
    put("add logical_and", check(f"f({_argument}, 1)", raises=True))
