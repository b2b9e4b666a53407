"""jax.numpy.linalg, polynomials, and products of vectors and matrices.

Values are compared directly, signs and phases of vectors included: both libraries call LAPACK.
"""

from __future__ import annotations

from typing import Any

from compat.spec import (
    Case,
    array,
    case,
    cases,
    check,
    floats,
    matrix,
    positive_definite,
    shaped,
)

TABLE: dict[str, list[Case]] = {}
OTHERS = "int32 bool uint8 float16 bfloat16"
NAN = array([[float("nan")] * 2] * 2, "float32")
FULL: dict[str, Any] = {"tol": "iterative", "signed_zeros": False}
PRODUCT: dict[str, Any] = {"tol": "accumulate", "signed_zeros": False}
EAGER = {"modes": "eager jit"}


def put(name: str, rows: list[Case], module: str = "jax.numpy.linalg") -> None:
    TABLE.setdefault(f"{module}.{name}", []).extend(rows)


def several(text: str, kind: Any, *shapes: tuple[int, ...], others: str = OTHERS,
            nan: bool = True) -> list[Case]:
    """A function of one matrix: dtypes, batches, empty ones, NaN, what it refuses."""
    first = shapes[0]
    rows = case(text, x=kind(*first), dtypes="float32 complex64", **FULL)
    rows += case(text, x=kind(*first), dtypes="float64 complex128", modes="eager grad", **FULL)
    for shape in shapes[1:]:
        rows += case(text, x=kind(*shape), modes="eager grad", **FULL)
    rows += case(text, x=kind(2, 2, *first), modes="eager vmap", **FULL)
    rows += case(text, x=kind(*first).strided(), modes="eager", **FULL)
    rows += case(text, x=shaped(0, *first), modes="eager", raises=None, **FULL)
    rows += case(text, x=shaped(0, 0), modes="eager jit", raises=None, **FULL)
    if nan:
        rows += case(text, x=NAN, modes="eager", raises=None, **FULL)
    rows += case(text, x=kind(*first), dtypes=others, modes="eager", raises=None, **FULL)
    rows += case(text, x=floats(3), modes="eager", raises=None, **FULL)
    rows += check(f"{text.replace('x', '[[2.0, 1.0], [1.0, 2.0]]', 1)}", raises=True)
    return rows


def square(text: str, kind: Any = matrix, **options: Any) -> list[Case]:
    return (several(text, kind, (3, 3), (1, 1), (2, 2), (6, 6), **options)
            + case(text, x=floats(5, 3), modes="eager", raises=None, **FULL))


def oblong(text: str, **options: Any) -> list[Case]:
    return several(text, matrix, (5, 3), (3, 3), (1, 4), (3, 5), **options)


def named(function: str) -> list[Case]:
    return check(f"type({function}).__name__", f"{function}._fields")


SINGULAR = array([[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], [0.0, 1.0, 0.0, 2.0],
                  [1.0, 0.0, 5.0, 1.0]], "float32")
LOW_RANK = array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]], "float32")

# --- decompositions -------------------------------------------------------------------------------

put("cholesky", square("f(x)", positive_definite) + cases(
    "f(x, upper=True)", "f(x, symmetrize_input=False)", x=positive_definite(3, 3),
    dtypes="float32 complex64", **FULL)
    + case("f(x)", x=array([[1.0, 2.0], [2.0, 1.0]], "float32"), **EAGER, **FULL))
put("qr", (
    oblong("f(x)") + oblong("f(x, mode='complete')") + oblong("f(x, 'r')")
    + case("f(x, 'full')", x=matrix(4, 2), **FULL)
    + case("f(x, 'raw')", x=matrix(4, 2), dtypes="float32 complex64", **FULL)
    + case("f(x, 'nothing')", x=matrix(3, 3), raises="mode") + named("f(jnp.eye(2))")
))
put("eigh", square("f(x)", positive_definite) + cases(
    "f(x, 'U')", "f(x, UPLO='L', symmetrize_input=False)", "f(x, 'U', symmetrize_input=False)",
    x=positive_definite(4, 4), **FULL)
    + case("f(x, 'X')", x=matrix(3, 3), raises=True) + named("f(jnp.eye(2))"))
put("eigvalsh", square("f(x)", positive_definite)
    + case("f(x, 'U', symmetrize_input=False)", x=positive_definite(4, 4), **FULL))
put("eig", square("f(x)") + named("f(jnp.eye(2))"))
put("eigvals", square("f(x)")
    + case("f(x)", x=array([[0.0, 1.0], [-1.0, 0.0]], "float32"), **FULL))
put("svd", (
    oblong("f(x)") + oblong("f(x, full_matrices=False)") + oblong("f(x, compute_uv=False)")
    + cases("f(x, hermitian=True)", "f(x, hermitian=True, compute_uv=False)",
            x=positive_definite(4, 4), dtypes="float32 complex64", **FULL)
    + case("f(x - 3 * jnp.eye(4), hermitian=True)", x=positive_definite(4, 4), **FULL)
    + cases("f(x, full_matrices=False, subset_by_index=(0, 2))",
            "f(x, subset_by_index=(0, 2))", x=matrix(3, 3), raises=True)
    + named("f(jnp.eye(2))")
))
put("svdvals", oblong("f(x)"))

# --- numbers --------------------------------------------------------------------------------------

put("det", (
    square("f(x)")
    + case("f(x)", x=shaped(4, 4), dtypes="float32 complex64", **FULL)
    + case("f(x)", x=SINGULAR, **FULL) + case("f(0 * x)", x=floats(4, 4), **FULL)
    + case("f(x)", x=LOW_RANK, **FULL)
    + case("f(x)", x=array([[1, 2], [3, 4]], "int32"), **EAGER, **FULL)
    + case("jax.hessian(f)(x)", x=matrix(4, 4), modes="eager", **FULL)
))
put("slogdet", (
    square("f(x)") + case("f(x, method='qr')", x=matrix(3, 3), dtypes="float32 float64", **FULL)
    + case("f(x, method='qr')", x=shaped(2, 4, 4), modes="eager vmap", **FULL)
    + case("f(x, method='qr')", x=matrix(3, 3), dtypes="complex64", raises=True)
    + case("f(x)", x=shaped(4, 4), dtypes="float32 complex64", **FULL)
    + case("f(0 * x)", x=floats(3, 3), **EAGER, **FULL)
    + case("f(x, method='svd')", x=matrix(3, 3), raises=True)
    + case("jax.hessian(lambda x: f(x)[1])(x)", x=matrix(4, 4), modes="eager", **FULL)
    + named("f(jnp.eye(2))")
))
put("matrix_rank", (
    oblong("f(x)") + cases("f(x)", "f(x, 1e-3)", "f(x, rtol=0.5)", "f(x, hermitian=True)",
                           "f(x, tol=0.1)", x=LOW_RANK, **EAGER, **FULL)
    + case("f(x, r)", x=matrix(2, 3, 3), r=array([0.1, 0.5], "float32"), **EAGER, **FULL)
    + case("f(x)", x=floats(), **EAGER, **FULL)
))
put("cond", (
    square("f(x)")
    + cases(*(f"f(x, {p})" for p in ("2", "-2", "1", "-1", "'fro'", "jnp.inf", "-jnp.inf",
                                     "'nuc'")), x=matrix(3, 3), **FULL)
    + case("f(x)", x=matrix(4, 2), **FULL) + case("f(x, 1)", x=matrix(4, 2), raises=True)
))
ORDERS = ("None", "0", "1", "2", "3", "-1", "-2", "0.5", "jnp.inf", "-jnp.inf")
put("norm", (
    cases("f(x)", "f(x, axis=0)", "f(x, axis=(0, 1))", "f(x, keepdims=True)",
          "f(x, axis=-1, keepdims=True)", x=shaped(3, 4), dtypes="float32 complex64", **FULL)
    + cases(*(f"f(x, {order})" for order in ORDERS), x=shaped(5), **FULL)
    + cases(*(f"f(x, {order}, axis=1)" for order in ("0", "1", "3", "jnp.inf")), x=shaped(2, 3),
            dtypes="complex64", **FULL)
    + cases(*(f"f(x, {order})" for order in ("'fro'", "'nuc'", "1", "-1", "2", "-2", "jnp.inf",
                                             "-jnp.inf", "None")), x=matrix(3, 4), **FULL)
    + cases("f(x, 'nuc', axis=(0, 2))", "f(x, 2, axis=(2, 0), keepdims=True)",
            "f(x, 1, (0, 1), True)", "f(x, -2, (-1, -3))", x=floats(3, 2, 4), **FULL)
    + cases("f(x)", "f(x, axis=0)", "f(x, 1)", x=shaped(3, 3), dtypes=OTHERS, **EAGER,
            tol="accumulate", raises=None)
    + cases("f(x)", "f(x, 2)", "f(x, 1)", "f(x, 3)", "f(x, jnp.inf)", x=array([0.0] * 3, "float32"),
            **FULL)
    + cases("f(x)", "f(x, axis=1)", "f(x, 1, axis=0)", "f(x, jnp.inf, axis=0)", x=floats(3, 0),
            **EAGER, raises=None)
    + cases("f(x, 'nothing')", "f(x, 'fro', axis=0)", "f(x, 3)", "f(x, axis=(0, 1, 2))",
            "f(x, 'inf', axis=0)", "f(x, axis=5)", "f(x, 7)",
            x=floats(3, 3), raises=True)
    + case("f(x)", x=floats(), **FULL) + case("f(x)", x=floats(2, 2, 2), **FULL)
    + case("f(x, 2)", x=floats(2, 2, 2), raises=True)
))
put("vector_norm", (
    cases("f(x)", "f(x, axis=0)", "f(x, axis=(0, 1))", "f(x, keepdims=True)", "f(x, ord=1)",
          "f(x, ord=jnp.inf, axis=1)", "f(x, ord=3, axis=(1,))", x=shaped(3, 4),
          dtypes="float32 complex64", **FULL)
    + case("f(x)", x=shaped(3), dtypes=OTHERS, **EAGER, tol="accumulate")
    + cases("f(x, ord='fro')", "f(x, axis=4)", x=floats(3), raises=True)
))
put("matrix_norm", (
    cases("f(x)", "f(x, ord='nuc')", "f(x, ord=1, keepdims=True)", "f(x, ord=-2)",
          x=matrix(2, 3, 4), dtypes="float32", **FULL)
    + case("f(x, ord=2)", x=matrix(3, 3), dtypes="complex64", **FULL)
    + cases("f(x, ord='x')", "f(x[0])", x=floats(3, 3), raises=True)
))

# --- equations ------------------------------------------------------------------------------------

put("solve", (
    case("f(x, y)", x=matrix(3, 3), y=shaped(3, 2), dtypes="float32 complex64", **FULL)
    + case("f(x, y)", x=matrix(3, 3), y=shaped(3), dtypes="float64 complex128",
           modes="eager jit grad", **FULL)
    + case("f(x, y)", x=matrix(2, 3, 3), y=floats(3), **FULL)
    + case("f(x, y)", x=matrix(2, 3, 3), y=floats(2, 3, 1), **FULL)
    + case("f(x, y)", x=matrix(3, 3), y=floats(2, 3, 2), **FULL)
    + case("f(x, y)", x=shaped(2, 2), y=shaped(2), dtypes="int32 float16 bool", modes="eager",
           raises=None, **FULL)
    + case("f(x, y)", x=matrix(3, 3), y=shaped(3, 1, dtype="complex64"), **FULL)
    + case("f(x, y)", x=shaped(0, 0), y=shaped(0, 2), **EAGER, raises=None, **FULL)
    + case("f(0 * x, y)", x=matrix(2, 2), y=floats(2), modes="eager", **FULL)
    + cases("f(x, y)", "f(x[:, 0], y)", "f(x, y[0, 0])", x=matrix(3, 3), y=floats(4, 2),
            raises=True)
    + case("jax.hessian(lambda x: f(x, y).sum())(x)", x=matrix(3, 3), y=floats(3),
           modes="eager", **FULL)
))
put("inv", square("f(x)") + case("jax.hessian(lambda x: f(x).sum())(x)", x=matrix(3, 3),
                                 modes="eager", **FULL)
    + case("f(0 * x)", x=matrix(2, 2), modes="eager", **FULL))
put("pinv", (
    oblong("f(x)", nan=False)
    + cases("f(x, 0.5)", "f(x, rcond=0.3)", "f(x, rtol=1e-3)", x=matrix(4, 3), **FULL)
    + case("f(x, hermitian=True)", x=positive_definite(3, 3), **FULL)
    + case("f(x, r)", x=matrix(2, 3, 3), r=array([0.1, 0.5], "float32").fix(), vmap=False, **FULL)
    + case("f(x)", x=LOW_RANK, **EAGER, **FULL)
))
put("lstsq", (
    case("f(x, y)", x=matrix(5, 3), y=shaped(5), dtypes="float32 complex64", **FULL)
    + case("f(x, y)", x=matrix(5, 3), y=shaped(5, 2), dtypes="float32 float64",
           modes="eager jit grad", **FULL)
    + case("f(x, y)", x=matrix(3, 5), y=floats(3), **FULL)
    + cases("f(x, y, 0.5)", "f(x, y, rcond=-1)", "f(x, y, numpy_resid=True)", x=matrix(5, 3),
            y=floats(5), modes="eager", **FULL)
    + case("f(x, y, numpy_resid=True)", x=matrix(3, 3), y=floats(3), modes="eager", **FULL)
    + case("f(x, y)", x=LOW_RANK, y=floats(3), modes="eager", **FULL)
    + case("f(x, y)", x=shaped(3, 2), y=shaped(3), dtypes="int32 float16", modes="eager",
           raises=None, **FULL)
    + case("f(x, y)", x=floats(0, 3), y=floats(0), modes="eager", raises=None, **FULL)
    + cases("f(x, y[1:])", "f(x[0], y)", "f(x, y[:, None, None])", x=floats(5, 3), y=floats(5),
            raises=True)
))
put("tensorinv", cases("f(x)", "f(x, ind=2)", x=matrix(6, 6), raises=None, **EAGER, **FULL)
    + cases("f(x.reshape(2, 3, 6))", "f(x.reshape(6, 2, 3), ind=1)", x=matrix(6, 6), **FULL)
    + case("f(x, 0)", x=matrix(4, 4), raises=True))
put("tensorsolve", cases("f(x.reshape(2, 3, 6), y)", "f(x.reshape(2, 6, 3), y, axes=(1,))",
                         x=matrix(6, 6), y=floats(2, 3), **FULL)
    + cases("f(x, y)", "f(x.reshape(3, 2, 6), y)", x=matrix(6, 6), y=floats(2, 3), raises=True))
put("matrix_power", (
    cases("f(x, 0)", "f(x, 1)", "f(x, 2)", "f(x, 5)", "f(x, -1)", "f(x, -3)", x=matrix(3, 3),
          dtypes="float32", **FULL)
    + case("f(x, 3)", x=shaped(2, 2, 2), dtypes="complex64 int32 uint8", modes="eager jit", **FULL)
    + cases("f(x, 3)", "f(x, 0)", "f(x, -2)", x=shaped(2, 2), dtypes="int32 bool float16",
            **EAGER, raises=None, **FULL)
    + cases("f(x, 2)", "f(x[0], 2)", "f(x, 1.5)", x=floats(3, 2), raises=True)
))

# --- products -------------------------------------------------------------------------------------

TWO = {"x": shaped(3, 4), "y": shaped(4, 2)}
put("matmul", (
    case("f(x, y)", **TWO, dtypes="float32 complex64", **PRODUCT)
    + case("f(x, y)", **TWO, dtypes="int32 bool float16 bfloat16 float64", **EAGER, **PRODUCT)
    + cases("f(x, y, precision='highest')", "f(x, y, preferred_element_type='float32')",
            **TWO, **PRODUCT)
    + case("f(x, y)", x=floats(2, 1, 3, 4), y=floats(5, 4, 2), **PRODUCT)
    + cases("f(x, y)", "f(x[0], y)", "f(x, y[0, 0])", x=floats(3, 4), y=floats(3, 2), raises=True)
))
put("outer", case("f(x, y)", x=shaped(3), y=shaped(2), dtypes="float32 complex64 int32 bool",
                  **PRODUCT)
    + cases("f(x[None], y)", "f(x[0], y)", x=floats(3), y=floats(2), raises=True))
put("cross", case("f(x, y)", x=shaped(2, 3), y=shaped(2, 3), dtypes="float32 complex64 int32",
                  **PRODUCT)
    + case("f(x, y, axis=0)", x=floats(3, 2), y=floats(3, 2), **PRODUCT)
    + case("f(x, y)", x=floats(2, 2), y=floats(2, 2), raises=True))
put("vecdot", cases("f(x, y)", "f(x, y, axis=0)", x=shaped(3, 4), y=shaped(3, 4),
                    dtypes="float32 complex64 int32", **PRODUCT)
    + cases("f(x, y[:2])", "f(x, y[:, 1:])", x=floats(3, 4), y=floats(3, 4), raises=True))
put("tensordot", cases("f(x, y, axes=1)", "f(x, y, axes=((1,), (0,)))", "f(x, y, axes=0)", **TWO,
                       **PRODUCT)
    + case("f(x, y)", x=floats(2, 3, 4), y=floats(3, 4, 2), **PRODUCT)
    + case("f(x, y)", x=floats(2, 3), y=floats(3, 2), raises=True))
put("multi_dot", case("f([x, y])", **TWO, **PRODUCT)
    + case("f([x, y, z])", **TWO, z=shaped(2, 5), dtypes="float32 complex64", **PRODUCT)
    + case("f([a, x, y, b])", a=floats(3), **TWO, b=floats(2), **PRODUCT)
    + cases("f([x])", "f([x[0], y[None], y])", **TWO, raises=True))
put("trace", cases("f(x)", "f(x, offset=1)", "f(x, dtype='float32')", x=shaped(2, 3, 4),
                   dtypes="float32 int8", raises=None, **PRODUCT)
    + case("f(x)", x=floats(3), raises=True))
put("diagonal", cases("f(x)", "f(x, offset=-1)", "f(x, offset=9)", x=shaped(2, 3, 4),
                      dtypes="float32 int8") + case("f(x)", x=floats(3), raises=True))
put("matrix_transpose", case("f(x)", x=shaped(2, 3, 4), dtypes="float32 complex64 bool")
    + case("f(x)", x=floats(3), raises=True))

# --- polynomials ----------------------------------------------------------------------------------

POLYNOMIALS: dict[str, list[Case]] = {
    "roots": (
        cases("f(x)", "f(x, strip_zeros=False)", x=array([2.0, -3.0, 1.0, 5.0]),
              dtypes="float32 complex64", **FULL)
        + cases("f(x)", "f(x, strip_zeros=False)", x=array([0.0, 0.0, 1.0, 2.0, 3.0]),
                **EAGER, **FULL)
        + cases("f(x)", "f(x, strip_zeros=False)", x=array([1.0, 2.0, 0.0, 0.0]), **EAGER, **FULL)
        + cases("f(x)", "f(x, strip_zeros=False)", x=array([0.0, 0.0]), **EAGER, **FULL)
        + cases("f(x[:0])", "f(x[:1])", "f(x[:2])", "f(x[0])", x=floats(3), **EAGER, **FULL)
        + case("f(x)", x=array([1, -3, 2]), dtypes="int32 float64 float16", **EAGER, raises=None,
               **FULL)
        + case("f(x)", x=floats(2, 2), raises=True) + check("f([1, 2, 3])", raises=True)
    ),
    "poly": (
        case("f(x)", x=shaped(3), dtypes="float32 complex64", **FULL)
        + case("f(x)", x=shaped(3), dtypes="int32 bool float16 float64", **EAGER, **FULL)
        + cases("f(x)", "f(x[:2, :2])", x=positive_definite(3, 3), **FULL)
        + cases("f(x[:0])", "f(x[0])", "f(x[:1])", x=floats(3), **EAGER, **FULL)
        + case("f(x)", x=floats(3, 2), raises=True) + check("f([1, 2])", raises=True)
    ),
    "polyfit": (
        cases("f(x, y, 1)", "f(x, y, 2)", "f(x, y, 0)", "f(x, y, 1, full=True)",
              "f(x, y, 1, cov=True)", "f(x, y, 1, cov='unscaled')", "f(x, y, 2, rcond=0.5)",
              "f(x, y, 1, w=x)", x=floats(6, low=0.5, high=4), y=floats(6), **FULL)
        + cases("f(x, y, 1)", "f(x, y, 1, cov=True)", "f(x, y, 1, full=True)",
                "f(x, y, 1, w=x)", x=floats(6, low=0.5, high=4), y=floats(6, 2), **EAGER, **FULL)
        + case("f(x, y, 1, w=w)", x=shaped(4), y=shaped(4), w=shaped(4, dtype="int32"),
               dtypes="float64", **EAGER, **FULL)
        + case("f(x, y, 1)", x=floats(4), y=shaped(4, dtype="complex64"), **EAGER, **FULL)
        + case("f(x, y, 1)", x=shaped(4), y=shaped(4), dtypes="int32", raises=True)
        + cases("f(x, y, -1)", "f(x[None], y, 1)", "f(x[:0], y[:0], 1)", "f(x, y[:3], 1)",
                "f(x, y[None, None], 1)", "f(x, y, 1, w=x[None])", "f(x, y, 1, w=x[1:])",
                "f(x, y, 3, cov=True)", "f(x, y, 'a')", x=floats(4), y=floats(4), raises=True)
    ),
    "polyval": (
        case("f(p, x)", p=shaped(3), x=shaped(2, 2), dtypes="float32 complex64 int32", **PRODUCT)
        + case("f(p, x)", p=floats(3, 2), x=floats(2), **PRODUCT)
        + cases("f(p[:0], x)", "f(p, 2.0)", "f(p, x, unroll=2)", "f(p, 2)", p=floats(3),
                x=floats(2), **EAGER, **PRODUCT)
        + case("f(p, x)", p=shaped(3, dtype="int32"), x=floats(2), **PRODUCT)
        + check("f([1, 2], 3)", raises=True) + case("f(p[0], 1.0)", p=floats(2), raises=True)
    ),
    "polyadd": cases("f(x, y)", "f(y, x)", x=shaped(4), y=shaped(2),
                     dtypes="float32 complex64 int32 bool", raises=None)
    + case("f(x, y)", x=floats(3, 2), y=floats(1, 2))
    + case("f(x, y)", x=floats(3), y=shaped(2, dtype="int32")) + check("f([1], [2])", raises=True)
    + case("f(x, y)", x=floats(3, 3), y=floats(3))
    + cases("f(x, y)", "f(y, x)", x=floats(3, 3), y=floats(2), raises=True)
    + check("f(jnp.zeros(0), jnp.ones(2))", "f(jnp.ones(()), jnp.ones(2))", raises=True),
    "polysub": cases("f(x, y)", "f(y, x)", x=shaped(4), y=shaped(2),
                     dtypes="float32 complex64 int32 bool", raises=None)
    + check("f([1], [2])", raises=True)
    + check("jnp.signbit(f(jnp.ones(1), jnp.zeros(2)))")
    + cases("f(x, y)", "f(y, x)", x=floats(3, 3), y=floats(2), raises=True),
    "polymul": (
        case("f(x, y)", x=shaped(4), y=shaped(2), dtypes="float32 complex64", **PRODUCT)
        + case("f(x, y)", x=shaped(4), y=shaped(2), dtypes="int32 float16 bool float64", **EAGER,
               **PRODUCT)
        + cases("f(x[:0], y)", "f(x, y, trim_leading_zeros=True)", x=array([0.0, 1.0, 2.0]),
                y=array([0.0, 3.0]), **EAGER, **PRODUCT)
        + check("f([1], [2])", raises=True) + case("f(x, x)", x=floats(2, 2), raises=True)
    ),
    "polydiv": (
        cases("f(x, y)", "f(y, x)", x=array([1.0, 5.0, 6.0, -2.0]), y=array([2.0, 3.0]),
              dtypes="float32 complex64", **PRODUCT)
        + cases("f(x, x)", "f(x, x[:1])", "f(x, 0 * x[:2])", x=array([2.0, 3.0, 4.0]), **EAGER,
                **PRODUCT)
        + case("f(x, y)", x=array([2, 3, 4]), y=array([1, 2]), dtypes="int32 float16", **EAGER,
               **PRODUCT)
        + case("f(x, y, trim_leading_zeros=True)", x=array([1.0, 5.0, 6.0]), y=array([1.0, 2.0]),
               **EAGER, **PRODUCT)
        + check("f([1, 2], [2])", raises=True)
    ),
    "polyder": (
        cases("f(x)", "f(x, 2)", "f(x, m=5)", "f(x, 0)", x=shaped(4), dtypes="float32 complex64",
              **PRODUCT)
        + case("f(x)", x=shaped(4), dtypes="int32 bool float16 float64", **EAGER, **PRODUCT)
        + cases("f(x, -1)", "f(x, 1.5)", x=floats(3), raises=True)
        + check("f([1, 2])", raises=True)
    ),
    "polyint": (
        cases("f(x)", "f(x, 2)", "f(x, 3, k=2.0)", "f(x, 0)", "f(x, 2, x[:2])", x=shaped(4),
              dtypes="float32 complex64", **PRODUCT)
        + case("f(x)", x=shaped(4), dtypes="int32 bool float16 float64", **EAGER, **PRODUCT)
        + cases("f(x, -1)", "f(x, 2, k=[1, 2])", "f(x, 2, k=jnp.arange(3))", x=floats(3),
                raises=True)
        + case("f(x[:0])", x=floats(3), **EAGER, **PRODUCT) + check("f([1, 2])", raises=True)
    ),
}
for name, rows in POLYNOMIALS.items():
    put(name, rows, "jax.numpy")
