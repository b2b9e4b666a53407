"""jax.scipy.linalg, jax.scipy.sparse.linalg and the small modules of jax.scipy."""

from __future__ import annotations

from compat.spec import (
    Case,
    array,
    case,
    cases,
    check,
    floats,
    matrix,
    positive_definite,
)

TABLE: dict[str, list[Case]] = {}
A, P = matrix(4, 4), positive_definite(4, 4)
SOLVED = {"tol": "iterative"}


def put(names: str, rows: list[Case], module: str = "linalg") -> None:
    for name in names.split():
        TABLE.setdefault(f"jax.scipy.{module}.{name}", []).extend(rows)


put("cholesky", cases("f(x)", "f(x, lower=True)", x=P, **SOLVED))
put("cho_factor", cases("f(x)[0]", "f(x, lower=True)[0]", x=P, **SOLVED))
put("cho_solve", cases("f(jax.scipy.linalg.cho_factor(x), b)",
                       "f(jax.scipy.linalg.cho_factor(x, True), b[:, 0])", x=P, b=floats(4, 2),
                       **SOLVED))
put("solve_triangular", cases(
    "f(x, b)", "f(x, b, lower=True)", "f(x, b[:, 0], trans=1)", "f(x, b, trans='C', lower=True)",
    "f(x, b, unit_diagonal=True)", x=A, b=floats(4, 2), **SOLVED)
    + case("f(x, b, trans=3)", x=A, b=floats(4), raises=True))
put("solve", cases("f(x, b)", "f(x, b, assume_a='pos')",
                   "f(x, b[:, 0], lower=True, assume_a='pos')", x=P, b=floats(4, 2), **SOLVED)
    + cases("f(x, b, assume_a='pos')", "f(x, b[..., 0], assume_a='pos')",
            x=positive_definite(2, 4, 4), b=floats(2, 4, 3), modes="eager jit", **SOLVED)
    + case("f(x, b, assume_a='pos')", x=positive_definite(2, 4, 4), b=floats(4), raises=True)
    + case("f(x, x, assume_a='a')", x=A, raises=True))
put("inv det", case("f(x)", x=A, **SOLVED))
put("lu", cases("f(x)", "f(x, permute_l=True)", x=A, modes="eager jit", **SOLVED))
put("lu_factor", case("f(x)", x=A, modes="eager jit", **SOLVED))
put("lu_solve", cases(*(f"f(jax.scipy.linalg.lu_factor(x), b, {trans})" for trans in (0, 1, 2)),
                      x=A, b=floats(4, 2), **SOLVED)
    + cases(*(f"f(jax.scipy.linalg.lu_factor(x), b{part}, {trans})"
              for part in ("", "[:1]", "[0]", "[..., 0]") for trans in (0, 2)),
            x=positive_definite(2, 4, 4), b=floats(2, 4, 3), modes="eager jit", **SOLVED)
    + case("f(jax.scipy.linalg.lu_factor(x), x[:2])", x=A, raises=True))
put("qr", cases("q, r = f(x); q @ r", "jnp.abs(f(x, mode='r')[0])",
                "q, r = f(x, mode='economic'); q @ r", x=A, modes="eager jit", **SOLVED)
    + case("f(x, mode='a')", x=A, raises=True))
put("qr_multiply", case("q, r = f(x, b, 'left'); jnp.abs(q)", x=A, b=floats(4, 2),
                        modes="eager jit", **SOLVED))
put("svd", cases("f(x, compute_uv=False)", x=A, **SOLVED))
put("eigh", cases("f(x, eigvals_only=True)", "f(x)[0]", x=P, **SOLVED)
    + cases("f(x, x.T @ x, eigvals_only=True)", "f(x, x.T @ x, type=2, eigvals_only=True)",
            "w, v = f(x, x.T @ x, type=3); jnp.abs(v)", x=P, **SOLVED)
    + case("f(x, type=4)", x=P, raises="type must be"))
put("schur", case("t, z = f(x); z @ t @ z.T", x=A, modes="eager jit", **SOLVED))
put("rsf2csf", case("t, z = f(*jax.scipy.linalg.schur(x)); (z @ t @ z.conj().T).real", x=A,
                    modes="eager jit", **SOLVED))
put("hessenberg", case("h, q = f(x, calc_q=True); q @ h @ q.T", x=A, modes="eager jit", **SOLVED))
put("polar", cases("f(x)", "f(x[:3], 'left')", "f(x, 'left', method='svd')",
                   "f(x, method='svd')", x=A, modes="eager jit", **SOLVED)
    + cases("f(x, 'a')", "f(x, 'left')", x=A, raises=True))
put("eigh_tridiagonal", case("f(d, e, eigvals_only=True)", d=floats(5), e=floats(4),
                             modes="eager jit", **SOLVED))
put("expm", cases("f(x)", "f(0.01 * x)", "f(jnp.triu(x), upper_triangular=True)", x=A,
                  modes="eager jit grad", **SOLVED))
put("expm_frechet", cases("f(x, y)", "f(x, y, compute_expm=False)", x=A, y=floats(4, 4),
                          modes="eager jit", **SOLVED))
put("sqrtm", case("f(x).real", x=P, modes="eager jit", **SOLVED))
put("funm", case("f(x, jnp.exp).real", x=P, modes="eager", **SOLVED))
put("solve_sylvester", case("f(x, y, x)", x=P, y=positive_definite(4, 4), modes="eager",
                            **SOLVED)
    + cases("f(x, y, z)", "f(x, y, z[0])", "f(x[0], y, z)", "f(x, y, z, method='eigen')",
            "f(x, y[:, :2, :2], z[..., :2])", x=positive_definite(2, 4, 4),
            y=positive_definite(2, 4, 4), z=floats(3, 2, 4, 4), modes="eager", **SOLVED)
    + cases("f(x, x, x[0])", "f(x, x, x, method='a')", x=floats(3, 3), raises=True))
put("toeplitz hankel", cases("f(x)", "f(x, y)", x=floats(3), y=floats(4)))
put("circulant companion fiedler fiedler_companion", case("f(x)", x=floats(5, low=0.5),
                                                          tol="loose"))
put("leslie", case("f(x, y)", x=floats(4), y=floats(3)) + case("f(x, x)", x=floats(3), raises=True))
put("block_diag", cases("f(x, y)", "f(x, y, 3.0)", "f(x[0])", x=floats(2, 3), y=floats(1, 2))
    + check("f()"))
put("convolution_matrix", cases("f(x, 4)", "f(x, 5, 'same')", "f(x, 5, mode='valid')", x=floats(3)))
put("dft helmert hilbert pascal", check("f(4)"))
put("invhilbert invpascal hadamard", check("f(4)"))
put("dft", check("f(3, 'sqrtn')", "f(3, scale='n')"))
put("pascal invpascal", check("f(3, 'lower')", "f(3, kind='upper')")
    + check("f(3, 'a')", raises=True))
put("helmert", check("f(3, full=True)"))
put("hadamard", check("f(3)", raises=True))

SPARSE = "sparse.linalg"
put("cg", cases("f(x, b)[0]", "f(lambda v: x @ v, b, tol=1e-6)[0]", "f(x, {'a': b}['a'], b)[0]",
                x=P, b=floats(4), modes="eager jit grad", **SOLVED), SPARSE)
put("gmres bicgstab", case("f(x, b, tol=1e-6)[0]", x=P, b=floats(4), modes="eager jit", **SOLVED),
    SPARSE)
put("cg gmres bicgstab", case("f(x, b)", x=floats(3, 4), b=floats(4), raises=True), SPARSE)
put("dct idct", cases("f(x)", "f(x, axis=0)", "f(x, norm='ortho')", "f(x, n=6)", "f(x, n=2)",
                      x=floats(3, 4), tol="accumulate") + case("f(x, 3)", x=floats(3), raises=True),
    "fft")
put("dctn idctn", cases("f(x)", "f(x, axes=(0,))", "f(x, s=(2, 5), norm='ortho')", x=floats(3, 4),
                        tol="accumulate"), "fft")
put("trapezoid", cases("f(x)", "f(x, x * x)", "f(x, dx=0.5, axis=0)", x=floats(3, 4),
                       tol="accumulate"), "integrate")
put("vq", case("f(x, y)", x=floats(5, 2), y=floats(3, 2), modes="eager jit", tol="accumulate")
    + case("f(x, y)", x=floats(5, 2), y=floats(3), raises=True), "cluster.vq")
PLACES = {"x": floats(4, 5), "r": array([0.3, 5.2, -1.4], "float32"),
          "c": array([1.2, 0.4, 2.9], "float32")}
put("map_coordinates", cases(*(
    f"f(x, [r, c], {order}, {mode!r}, 0.5)" for order in (0, 1)
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect")), **PLACES, vmap="r c",
    grad="x", tol="accumulate")
    + cases("f(x, [r, c], 2)", "f(x, [r], 1)", "f(x, [r, c], 1, 'a')", **PLACES, raises=True),
    "ndimage")
put("convolve correlate", cases(
    *(f"f(x, y, {mode!r}, {method!r})" for mode in ("full", "same", "valid")
      for method in ("direct", "fft")), x=floats(6), y=floats(3), modes="eager jit grad",
    tol="iterative"), "signal")
put("convolve2d correlate2d fftconvolve", cases(
    *(f"f(x, y, {mode!r})" for mode in ("full", "same", "valid")), x=floats(5, 4), y=floats(3, 2),
    modes="eager jit", tol="iterative"), "signal")
put("detrend", cases("f(x)", "f(x, axis=0, type='constant')", "f(x, bp=[2])", x=floats(3, 6),
                     tol="iterative"), "signal")
put("minimize", case("f(lambda v: jnp.sum((v - x) ** 2), x * 0, method='BFGS').x", x=floats(3),
                     modes="eager jit", tol="iterative")
    + case("f(lambda v: v.sum(), x, method='a')", x=floats(3), raises=True), "optimize")
put("OptimizeResults", check("f._fields"), "optimize")

TABLE["jax.experimental.ode.odeint"] = (
    case("f(lambda y, t, a: -a * y, y, jnp.array([0.0, 0.5, 1.0]), a, rtol=1e-4, atol=1e-5)",
         y=floats(2), a=floats(low=0.5, high=2.0), modes="eager jit grad", tol="iterative")
    + case("f(lambda y, t: y, y, t)", y=floats(2), t=array([0, 1], "int32"), raises=True))
