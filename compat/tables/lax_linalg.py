"""jax.lax.linalg.

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
REFUSED = "int32 bool float16 bfloat16"
NAN = array([[float("nan")] * 2] * 2, "float32")
FULL: dict[str, Any] = {"tol": "iterative", "signed_zeros": False}


def put(name: str, rows: list[Case]) -> None:
    TABLE.setdefault(f"jax.lax.linalg.{name}", []).extend(rows)


def several(text: str, kind: Any, *shapes: tuple[int, ...], grad: Any = None,
            empty: bool = True) -> list[Case]:
    """A function of one matrix: dtypes, a batch, empty ones, NaN, what it refuses."""
    first = shapes[0]
    options = {**FULL, "grad": grad}
    rows = case(text, x=kind(*first), dtypes="float32 complex64", **options)
    rows += case(text, x=kind(*first), dtypes="float64 complex128", modes="eager grad",
                 **options)
    for shape in shapes[1:]:
        rows += case(text, x=kind(*shape), modes="eager grad", **options)
    rows += case(text, x=kind(2, 2, *first), modes="eager vmap", **FULL)
    rows += case(text, x=shaped(0, *first), modes="eager", raises=None, **FULL)
    if empty:
        rows += case(text, x=shaped(0, 0), modes="eager jit", raises=None, **FULL)
    rows += case(text, x=NAN, modes="eager", raises=None, **FULL)
    rows += case(text, x=kind(*first), dtypes=REFUSED, modes="eager", raises=None, **FULL)
    rows += case(text, x=floats(3), raises=True, **FULL)
    return rows


def square(text: str, kind: Any = matrix, **options: Any) -> list[Case]:
    return (several(text, kind, (3, 3), (1, 1), (6, 6), **options)
            + case(text, x=floats(5, 3), raises=True, **FULL))


def oblong(text: str, grad: Any = None) -> list[Case]:
    return several(text, matrix, (5, 3), (3, 3), (1, 4), (3, 5), grad=grad)


# --- factorizations -------------------------------------------------------------------------------

put("cholesky", (
    square("f(x)", positive_definite)
    + square("f(x, symmetrize_input=False)", positive_definite)
    + case("f(x)", x=array([[1.0, 2.0], [2.0, 1.0]], "float32"), modes="eager jit", **FULL)
    + case("f(x)", x=array([[4, 2], [2, 5]], "int32"), **FULL)
))
put("cholesky_update", (
    cases("f(jnp.triu(x), y)", "f(x, y)", x=matrix(4, 4), y=floats(4), dtypes="float32",
          raises=None, **FULL)
    + case("f(jnp.triu(x), y)", x=matrix(3, 3, dtype="float64"), y=floats(3, dtype="float64"),
           modes="eager jit", x64=True, **FULL)
    + case("f(-jnp.triu(x), 0 * y)", x=matrix(3, 3), y=floats(3), modes="eager jit", **FULL)
    + case("f(x, y)", x=matrix(3, 3), y=shaped(3), dtypes="int32 complex64 bool",
           raises=True, **FULL)
    + cases("f(x, y[:2])", "f(x, x)", "f(x[0], y)", x=matrix(3, 3), y=floats(3), raises=True)
))
put("lu", oblong("f(x)") + oblong("f(x)[1:]")
    + case("f(x)", x=array([[0.0, 0.0], [0.0, 0.0]], "float32"), modes="eager jit", **FULL))
put("lu_pivots_to_permutation", (
    cases("f(i, 5)", "f(i, 3)", i=array([2, 2, 2], "int32"))
    + case("f(i, 4)", i=array([[2, 3, 3], [0, 1, 2]], "int32"))
    + case("f(i, 4)", i=shaped(0, dtype="int32"), modes="eager jit")
    + case("f(i, 4)", i=shaped(3), dtypes="float32 int64 uint32", raises=True)
    + cases("f(i, 2)", "f(i[0], 2)", i=array([2, 2, 2], "int32"), raises=True)
))
put("qr", (
    oblong("f(x)") + oblong("f(x, full_matrices=False)")
    + oblong("f(x, pivoting=True, full_matrices=False)")
    + cases("f(x, pivoting=True)", "f(x, pivoting=True)[2]", x=matrix(2, 5, 3),
            dtypes="float32 complex64", modes="eager jit vmap", **FULL)
    + case("f(x, full_matrices=False, pivoting=True)", x=matrix(2, 4, 3), modes="grad", **FULL)
    + case("q, r = f(x, use_magma=True); q @ r", x=matrix(3, 3), **FULL)
))
put("householder_product", (
    case("f(x, t)", x=shaped(5, 3), t=shaped(3), dtypes="float32 complex64", **FULL)
    + case("f(x, t)", x=shaped(5, 3), t=shaped(3), dtypes="float64 complex128",
           modes="eager jit", **FULL)
    + case("f(x, t)", x=floats(2, 5, 3), t=floats(2, 2), modes="eager jit vmap", **FULL)
    + case("f(x, t)", x=floats(4, 4), t=floats(0), modes="eager jit", **FULL)
    + cases("f(x, t)", "f(x.T, x[:, 0])", "f(x, x[:, 0])", "f(x[None], t[None, None])",
            x=floats(5, 3), t=shaped(3, dtype="int32"), raises=True)
    + case("f(x, x[0])", x=shaped(3, 3), dtypes=REFUSED, raises=True)
))
put("ormqr", (
    cases("f(x, t, c)", "f(x, t, c, transpose=True)", "f(x, t, c.mT, left=False)",
          "f(x, t, c.mT, left=False, transpose=True)",
          x=shaped(5, 3), t=shaped(3), c=shaped(5, 4), dtypes="float32 complex64", **FULL)
    + case("f(x, t, c)", x=floats(2, 5, 3), t=floats(2, 3), c=floats(2, 5, 1),
           modes="eager jit vmap", **FULL)
    + cases("f(x, t, c.T)", "f(x, t, c, left=False)", "f(x, t, c[0])", "f(x, t[0], c)",
            x=floats(5, 3), t=floats(3), c=floats(5, 4), raises=True)
    + case("f(x, x[0], x)", x=shaped(3, 3), dtypes=REFUSED, raises=True)
))
put("symmetric_product", (
    cases("f(x, y)", "f(x, y, alpha=2.0, beta=-1.0)", "f(x, y, beta=3.0, symmetrize_output=True)",
          x=floats(3, 2), y=floats(3, 3), tol="accumulate")
    + case("f(x, y, beta=2.0)", x=shaped(3, 2), y=shaped(3, 3), dtypes="float64",
           modes="eager jit", tol="accumulate")
    + case("f(x, y, beta=2.0)", x=shaped(3, 2), y=shaped(3, 3), dtypes="float16 bfloat16",
           modes="eager jit", raises=True)
    + case("f(x, y, beta=2)", x=floats(2, 3, 2), y=floats(2, 3, 3), modes="eager jit vmap",
           tol="accumulate")
    + case("f(x, y)", x=shaped(3, 2), y=shaped(3, 3), dtypes="int32 complex64", raises=True)
    + cases("f(x, y[0])", "f(x, y[1:])", "f(x[None], y)", x=floats(3, 2), y=floats(3, 3),
            raises=True)
))

# --- eigenvalues and singular values --------------------------------------------------------------

put("eigh", (
    square("f(x)", positive_definite)
    + cases("f(x, symmetrize_input=False)", "f(x, symmetrize_input=False, lower=False)",
            "f(x, sort_eigenvalues=False)", "f(x, subset_by_index=(0, 4))",
            "f(x, implementation=lax.linalg.EighImplementation.QR)[1]",
            x=positive_definite(4, 4), dtypes="float32 complex64", **FULL)
    + case("f(x, symmetrize_input=False, lower=False)[1]", x=matrix(4, 4), modes="eager", **FULL)
    + cases("f(x, subset_by_index=(0, 2))",
            "f(x, implementation=lax.linalg.EighImplementation.JACOBI)",
            "f(x, implementation=lax.linalg.EighImplementation.QDWH)", x=matrix(3, 3), raises=True)
))
NO_VECTORS = "compute_left_eigenvectors=False, compute_right_eigenvectors=False"
put("eig", (
    square("f(x)") + square(f"f(x, {NO_VECTORS})")
    + cases("f(x, enable_eigvec_derivs=True)",
            "f(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True)",
            "f(x, compute_right_eigenvectors=False, enable_eigvec_derivs=True)",
            x=matrix(4, 4), dtypes="float32 complex64", **FULL)
    + case("f(x, enable_eigvec_derivs=True)", x=shaped(4, 4), dtypes="float64 complex128",
           modes="eager jit grad", **FULL)
    + case(f"jax.hessian(lambda x: f(x, {NO_VECTORS})[0].real.sum())(x)", x=matrix(3, 3),
           modes="eager", raises=True)
    + cases("f(x, implementation=lax.linalg.EigImplementation.MAGMA)", "f(x, use_magma=True)",
            x=matrix(3, 3), raises=True)
    + case("f(x, implementation=lax.linalg.EigImplementation.LAPACK)[0]", x=matrix(3, 3),
           modes="eager jit", **FULL)
))
put("svd", (
    oblong("f(x)") + oblong("f(x, full_matrices=False)")
    + oblong("f(x, compute_uv=False)")
    + cases("f(x, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.QR)",
            "f(x, full_matrices=False, algorithm=lax.linalg.SvdAlgorithm.DIVIDE_AND_CONQUER)",
            "f(x, algorithm=lax.linalg.SvdAlgorithm.QR, compute_uv=False)",
            "f(x, subset_by_index=(0, 3), full_matrices=False)", x=matrix(4, 3), **FULL)
    + cases("f(x, subset_by_index=(0, 2))", "f(x, subset_by_index=(0, 2), full_matrices=False)",
            "f(x, algorithm=lax.linalg.SvdAlgorithm.JACOBI)",
            "f(x, algorithm=lax.linalg.SvdAlgorithm.POLAR)", x=matrix(3, 3), raises=True)
    + case("f(x, full_matrices=False)", x=array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], "float32"),
           **FULL)
))
put("schur", (
    square("f(x)") + square("f(x, compute_schur_vectors=False)")
    + case("f(x)", x=array([[0.0, 1.0], [-1.0, 0.0]], "float32"), modes="eager jit", **FULL)
    + case("f(x, sort_eig_vals=True, select_callable=lambda w: w > 0)", x=matrix(3, 3),
           raises=True)
))
# Of an empty matrix JAX's error is one of its compiler.
put("hessenberg", square("f(x)", empty=False))
put("tridiagonal", square("f(x)", positive_definite)
    + case("f(x, lower=False)", x=positive_definite(4, 4), dtypes="float32 complex64", **FULL))
POLAR = "u, h, n, done = f(x); (u, h, n, done)"
put("qdwh", (
    cases(POLAR, "f(x)[1]", x=matrix(4, 4), dtypes="float32 complex64", **FULL)
    + case(POLAR, x=matrix(5, 3), **FULL)
    + case(POLAR, x=matrix(3, 3), dtypes="float64", modes="eager jit", **FULL)
    + cases("f(x, max_iterations=2)", "f(x, max_iterations=0)", "f(x, eps=1e-2)",
            "f(x, eps=0.3)", "f(x, is_hermitian=True)", "f(x, dynamic_shape=(3, 3))",
            x=matrix(4, 4), modes="eager jit", **FULL)
    + case("jax.jvp(lambda x: f(x)[:2], (x,), (2 * x,))", x=matrix(4, 3), modes="eager jit",
           **FULL)
    + case("f(x)", x=NAN, modes="eager", **FULL)
    + case("f(0 * x)", x=floats(3, 3), modes="eager", **FULL)
    + cases("f(x.T)", "f(x[0])", "f(x[None])", x=floats(4, 3), raises=True)
    + case("f(x)", x=shaped(3, 3), dtypes=REFUSED, raises=True)
))

# --- equations ------------------------------------------------------------------------------------

put("triangular_solve", (
    [row for left in (True, False) for lower in (True, False) for transposed in (True, False)
     for row in case(f"f(x, y, left_side={left}, lower={lower}, transpose_a={transposed})",
                     x=matrix(3, 3), y=floats(3, 3), **FULL)]
    + cases("f(x, y, left_side=True, transpose_a=True, conjugate_a=True)",
            "f(x, y, left_side=True, conjugate_a=True)", "f(x, y, unit_diagonal=True, lower=True)",
            x=matrix(3, 3), y=shaped(3, 3), dtypes="complex64 float32", **FULL)
    + case("f(x, y)", x=matrix(3, 3), y=shaped(2, 3), dtypes="float64 complex128",
           modes="eager jit grad", **FULL)
    + case("f(x, y)", x=matrix(3, 3), y=shaped(2, 3), dtypes="float16 bfloat16",
           modes="eager jit", tol="accumulate")
    + case("f(x, y, left_side=True)", x=matrix(2, 3, 3), y=floats(2, 3, 1), **FULL)
    + cases("f(x, y)", "f(x, y, left_side=True)", x=matrix(3, 3), y=floats(3), **FULL)
    + case("f(0 * x, y)", x=floats(2, 2), y=floats(2, 2), modes="eager jit", **FULL)
    + case("f(x, y)", x=shaped(0, 0), y=shaped(2, 0), modes="eager jit", **FULL)
    + cases("f(x, y)", "f(x[:2], y)", "f(x[0], y)", "f(x[None], y)",
            "f(x, x.astype('bfloat16'))", x=matrix(3, 3), y=floats(3, 2), raises=True)
    + case("f(x, x)", x=shaped(3, 3), dtypes="int32 bool", raises=True)
))
BANDS = {"l": floats(4), "d": floats(4, low=3, high=6), "u": floats(4), "b": floats(4, 2)}
put("tridiagonal_solve", (
    case("f(l, d, u, b)", **BANDS, **FULL)
    + case("f(x[0], x[1], x[2], x)", x=matrix(4, 4), dtypes="float64 complex64",
           modes="eager jit grad", **FULL)
    + case("f(l, d, u, b)", l=floats(2, 3), d=floats(2, 3, low=3, high=6), u=floats(2, 3),
           b=floats(2, 3, 2), **FULL)
    + cases("f(l[:1], d[:1], u[:1], b[:1])", "f(l[:2], d[:2], u[:2], b[:2])",
            "f(l, 0 * d, 0 * u, b)", "f(l, 0 * d, u, b, perturb_singular=True)",
            "f(0 * l, 0 * d, 0 * u, b, perturb_singular=True)",
            "f(0 * l, d * (d > 4), 0 * u, b, perturb_singular=True)",
            "f(l, d * 1e-9, 0 * u, b, perturb_singular=True)",
            "f(l, d, u, b[:, :0])", "jax.hessian(lambda d: f(l, d, u, b).sum())(d)",
            **BANDS, modes="eager jit", **FULL)
    + cases("f(l, d, u, b[:, 0])", "f(l[1:], d, u, b)", "f(l, d, u, b[1:])", "f(l, d, u, b[None])",
            **BANDS, raises=True)
    + case("f(x[0], x[1], x[2], x)", x=shaped(4, 4), dtypes=REFUSED, raises=True)
))

# --- classes and primitives -----------------------------------------------------------------------

for enum in ("EigImplementation", "EighImplementation", "SvdAlgorithm"):
    put(enum, check("f", "[(m.name, m.value) for m in f]", "list(f)", "len(f)",
                    "f(list(f)[0].value)") + check("f('nothing')", raises=True))
for primitive in ("cholesky", "cholesky_update", "eig", "eigh", "hessenberg",
                  "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qr", "schur",
                  "svd", "symmetric_product", "triangular_solve", "tridiagonal",
                  "tridiagonal_solve"):
    put(f"{primitive}_p", check("f.name", "f.multiple_results"))
JAXPRS = {
    "lu_p": "lax.linalg.lu", "qr_p": "lax.linalg.qr", "svd_p": "lax.linalg.svd",
    "eig_p": "lax.linalg.eig", "schur_p": "lax.linalg.schur",
    "hessenberg_p": "lax.linalg.hessenberg", "tridiagonal_p": "lax.linalg.tridiagonal",
    "eigh_p": "lambda x: lax.linalg.eigh(x, symmetrize_input=False)",
}
for primitive, function in JAXPRS.items():
    put(primitive, check(f"str(jax.make_jaxpr({function})(jnp.eye(3)))"))
