"""Complex numbers: special values, holomorphic derivatives, and what orders or converts them.

The rows of each function in the other tables have complex64 among their dtypes; these add to them.
"""

from __future__ import annotations

from collections.abc import Sequence

from compat.spec import Case, array, case, cases, check, floats, shaped, special
from tests.support.elementwise import LAX

TABLE: dict[str, list[Case]] = {}
LOOSE = {"tol": "loose", "signed_zeros": False}
HOLOMORPHIC = "jax.grad(lambda z: f(z).sum(), holomorphic=True)(x)"
# Parts of either sign and size, in order of neither.
ORDERED = array([1 + 2j, 1 + 1j, 5j, -1 - 1j, 1 + 2j, -5j, 2, 0], "complex64")


def put(prefix: str, names: str | Sequence[str], rows: list[Case]) -> None:
    for name in names.split() if isinstance(names, str) else names:
        TABLE[f"{prefix}.{name}"] = TABLE.get(f"{prefix}.{name}", []) + rows


SPECIAL = case("f(x)", x=special(), dtypes="complex64 complex128", modes="eager jit", raises=None,
               **LOOSE)
DERIVED = (case("f(x)", x=shaped(6, low=-1.5, high=1.5), dtypes="complex128",
                modes="eager jit grad", **LOOSE)
           + case(HOLOMORPHIC, x=shaped(6, low=-1.5, high=1.5), dtypes="complex64",
                  modes="eager jit vmap", raises=None, **LOOSE))
ANALYTIC = ("acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log1p reciprocal sin "
            "sinh sqrt square tan tanh")
put("jax.numpy", ANALYTIC, SPECIAL + DERIVED)
for _row in LAX.values():
    if _row.operands == 1 and _row.domain:
        put("jax.lax", _row.name, SPECIAL + DERIVED if _row.analytic else SPECIAL)
put("jax.numpy", "log10 log2 sinc", SPECIAL + DERIVED)
put("jax.numpy", "abs angle conj imag isfinite isinf isnan iscomplex isreal nan_to_num negative "
    "real rint sign signbit floor ceil trunc deg2rad cbrt logical_not invert", SPECIAL)

PAIRS = (case("f(x, y)", x=special("complex64"), y=special("complex64"), modes="eager jit",
              raises=None, **LOOSE)
         + case("f(x, y[::-1])", x=special("complex64"), y=special("complex64"),
                modes="eager jit", raises=None, **LOOSE))
put("jax.numpy", "add subtract multiply divide power maximum minimum equal not_equal less greater "
    "logical_and isclose float_power", PAIRS)
put("jax.lax", [row.name for row in LAX.values() if row.operands == 2 and row.domain], PAIRS)
MIXED = cases("f(x, y)", "f(y, x)", x=shaped(5, dtype="complex64"), y=floats(5, low=0.5, high=2.0),
              **LOOSE) + cases("f(x, 2)", "f(x, 1.5j)", "f(2j, x)", x=floats(4, low=0.5, high=2.0),
                               raises=None, **LOOSE)
put("jax.numpy", "add subtract multiply divide power logaddexp logaddexp2", MIXED)
REFUSED = case("f(x, y)", x=shaped(3), y=shaped(3), dtypes="complex64", raises=None,
               modes="eager jit")
put("jax.numpy", "floor_divide remainder fmod copysign hypot heaviside nextafter divmod gcd "
    "bitwise_and ldexp", REFUSED)

INTEGRAL = tuple(f"x ** {n}" for n in (-2, -1, 0, 1, 2, 3))
put("jax.lax", "integer_pow", cases(*(f"f(x, {n})" for n in (-3, -1, 0, 2, 5)), x=shaped(5),
                                    dtypes="complex64 complex128", **LOOSE))
TABLE["jax.Array.__pow__"] = cases(*INTEGRAL, "x ** 0.5", "x ** y", x=shaped(4), y=shaped(4),
                                   dtypes="complex64", **LOOSE)

# --- reductions, order ----------------------------------------------------------------------------

X = shaped(3, 4, dtype="complex64")
put("jax.numpy", "sum prod mean var std cumsum cumprod max min ptp median average nansum nanprod "
    "nanmean nanvar nanstd nanmax nanmin cumulative_sum cumulative_prod",
    case("f(x)", x=ORDERED, raises=None, **LOOSE))
put("jax.numpy", "sum prod mean var std max min nanmean nansum cumsum cumprod",
    cases("f(x, axis=0)", "f(x, axis=1)", x=X, **LOOSE)
    + case("f(x[0], dtype='complex64')", x=floats(2, 3), raises=None, **LOOSE))
put("jax.numpy", "sum prod mean var std cumsum", case(
    "f(x, dtype='float32')", x=X, modes="eager jit", raises=None, **LOOSE))
put("jax.numpy", "argmax argmin nanargmax nanargmin", cases("f(x)", "f(x, 0)", x=X, raises=True))
put("jax.lax", "argmax argmin", case("f(x, 0, jnp.int32)", x=X, raises=True))
put("jax.numpy", "sort argsort unique sort_complex", case("f(x)", x=ORDERED, modes="eager"))
put("jax.numpy", "sort argsort", cases("f(x, descending=True)", "f(x, stable=False)", x=ORDERED))
put("jax.numpy", "searchsorted isin union1d intersect1d setdiff1d", case(
    "f(jnp.sort(x), x[:3])", x=ORDERED, modes="eager"))
put("jax.lax", "sort", cases("f(x)", "f((x, jnp.arange(8)))", "f((x.imag, x))[1]", x=ORDERED))
put("jax.lax", "cumsum cumprod cummax cummin cumlogsumexp",
    cases("f(x)", "f(x, reverse=True)", x=ORDERED, **LOOSE))
put("jax.lax", "reduce_sum reduce_prod reduce_max reduce_min", case("f(x, (0,))", x=X, **LOOSE))
put("jax.lax", "reduce_window", cases(
    "f(x, np.complex64(0), lax.add, (2, 2), (1, 1), 'SAME')", x=X, **LOOSE)
    # JAX has no derivative of products in windows; maxjax has.
    + case("f(x, np.complex64(1), lax.mul, (2, 1), (1, 2), 'VALID')", x=X, grad=False, **LOOSE))
put("jax.numpy", "clip histogram digitize bincount unwrap",
    case("f(x)", x=X, raises=None, modes="eager"))

# --- products -------------------------------------------------------------------------------------

put("jax.numpy", "dot matmul vdot inner outer kron convolve correlate vecdot", cases(
    "f(x, y)", "f(x.real, y)", "f(x, (3 * y.real).astype(int))", x=shaped(4, dtype="complex64"),
    y=shaped(4, dtype="complex64"), tol="accumulate", signed_zeros=False))
put("jax.numpy", "einsum", cases("f('ij,kj->ik', x, x)", "f('ij,ij->', x, x.conj())", x=X,
                                 tol="accumulate", signed_zeros=False))
put("jax.lax", "dot_general", cases(
    "f(x, x, (((1,), (1,)), ((), ())))",
    "f(x, x, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)", x=X,
    modes="eager jit", tol="accumulate", signed_zeros=False))
put("jax.lax", "conv_general_dilated", case(
    "f(x, y, (2,), [(1, 2)], rhs_dilation=(2,))", x=shaped(2, 3, 7, dtype="complex64"),
    y=shaped(4, 3, 2, dtype="complex64"), tol="accumulate", signed_zeros=False))

# --- conversion, creation, indexing ---------------------------------------------------------------

put("jax.Array", "astype", cases(*(
    f"x.astype('{t}')" for t in "bool int32 float32 float16 complex64".split()), x=X,
    modes="eager jit"))
put("jax.lax", "convert_element_type", cases(*(
    f"f(x, jnp.{t})" for t in "bool_ int32 uint8 float32 complex64".split()), x=X,
    modes="eager jit") + case("f(x, jnp.complex64)", x=floats(3)))
put("jax.lax", "complex", cases("f(x, y)", "f(x, 2.0)", x=floats(4), y=floats(4))
    + case("f(x, y[::-1])", x=special("float32"), y=special("float32"), modes="eager jit"))
put("jax.numpy", "array asarray", check(
    "f(1j)", "f([1, 2j])", "f([[1, 2j], [3., 4]])", "f(1j, dtype='complex64')", "f([1j, 2])[0]")
    + check("f(1 + 2j, dtype='float32')", "f(3j, dtype=int)", raises=True))
put("jax.numpy", "full", check("f((2,), 1 + 2j)", "f(2, 3, 'complex64')")
    + check("f((2,), 1j, 'float32')", raises=True))
put("jax.numpy", "arange", check("f(5j)", raises=True) + check("f(0, 3, dtype='complex64')"))
put("jax.numpy", "linspace", cases("f(x[0, 0], x[0, 1], 5)", x=X, **LOOSE))
put("jax.numpy", "geomspace logspace", check("f(1, 1j, 5)", "f(1 + 1j, 2 + 3j, 4)"))
put("jax.numpy", "where", cases("f(x.real > 0, x, 1)", "f(x, x, 2j)", "f(x.real > 0, x.real, 1j)",
                                x=X))
put("jax.numpy", "array_repr array_str", check(
    "f(jnp.array([1 + 2j, -0.5j]))", "f(jnp.zeros((0, 2), complex))",
    "f(jnp.array([1e10 - 1e-5j]))",
    "f(jnp.array([complex(0, -0.0), complex(np.nan, np.inf)]))"))
TABLE["jax.Array.real"] = case("x.real", x=X) + case("x.real", x=floats(3))
TABLE["jax.Array.imag"] = case("x.imag", x=X) + case("x.imag", x=floats(3))
TABLE["jax.Array.conj"] = case("x.conj()", x=X) + case("x.conj()", x=floats(3))
for _name, _value in (("set", "1 + 2j"), ("add", "1 + 2j"), ("multiply", "1 + 2j"),
                      ("divide", "1 + 2j"), ("power", "2"), ("min", "1j"), ("max", "1j")):
    TABLE[f"jax.Array.at[].{_name}"] = cases(
        f"x.at[jnp.array([0, 2, 0])].{_name}({_value})", f"x.at[1, ::2].{_name}({_value})", x=X,
        grad=False if _name in ("multiply", "divide", "power", "min", "max") else None, **LOOSE)
    TABLE[f"jax.Array.at[].{_name}"] += cases(
        f"x.at[jnp.array([0, 2, 0])].{_name}({_value})", f"x.at[1].{_name}(1.5)",
        x=shaped(3), dtypes="int32 float32", modes="eager jit", raises=None, **LOOSE)

# --- known differences ----------------------------------------------------------------------------

put("jax.numpy", "max min", case("f(z)", z=array([complex("nan"), 1 + 2j, 3j, -1], "complex64"),
                                 modes="eager jit"))
put("jax.numpy", "exp tanh", case(
    "jnp.signbit(f(x).imag)", x=array([complex(-1, -0.0)], "complex64"), modes="eager"))
