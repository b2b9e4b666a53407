"""jax.experimental.sparse: what the arrays stand for, and what is stored where that is one way."""

from compat.spec import array, cases, check, floats

_M = {"m": array([[0.0, 1.0, 0.0, 2.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0]], "float32")}
_MX = {**_M, "x": floats(4)}
_B = "s = jax.experimental.sparse; b = s.BCOO.fromdense(m, nse=5); "
_EAGER = {"modes": "eager jit"}


def _parts(expression):
    """Data, coordinates and shape of a sparse result."""
    return f"{_B}r = {expression}; (r.data, r.indices, jnp.array(r.shape, int))"


def _dense(*expressions, **options):
    return cases(*[f"{_B}({expression}).todense()" for expression in expressions],
                 modes="eager jit grad", **{**_M, **options})


TABLE = {
    "jax.experimental.sparse.BCOO":
        cases(_parts("f.fromdense(m, nse=4)"), _parts("f.fromdense(m, nse=6)"),
              _parts("f.fromdense(m, nse=2)"), _parts("f.fromdense(m, nse=2, n_batch=1)"),
              _parts("f.fromdense(m, nse=3, n_dense=1)"), _parts("b.T"),
              _parts("b.reshape(2, 6)"), _parts("b.sum(0)"), _parts("-b"), _parts("b * m"),
              _parts("b / 2"), _parts("b.sum_duplicates(nse=6)"), _parts("b + b"),
              _parts("b[:2]"), _parts("b.astype(int)"), _parts("b.sort_indices()"),
              **_EAGER, **_M)
        + _dense("b", "b.T", "b * 2.", "2 * b", "b - b", "b[0]", "b[:, 1:3]", "b[1, 0]",
                 "b @ b.T", "b[::-1]", "b * b", "b ** 2", "abs(b)", "b.sum(1)",
                 "f.fromdense(m, nse=3, n_batch=1)", "f.fromdense(m, nse=3, n_dense=1)")
        + cases(_B + "b @ x", _B + "b @ jnp.stack([x, x], 1)", _B + "m[:, 0] @ b",
                _B + "b.sum()", _B + "b + m",
                modes="eager jit grad vmap", **_MX)
        + cases("s = jax.experimental.sparse; jax.vmap(lambda b: b @ x)("
                "s.BCOO.fromdense(jnp.stack([m, m + 1]), nse=12, n_batch=1))",
                "s = jax.experimental.sparse; "
                "s.BCOO.fromdense(jnp.stack([m, m + 1]), nse=12, n_batch=1) @ x",
                modes="eager jit", **_MX)
        + cases(_B + "b @ m", _B + "b + 1.", _B + "b - m", _B + "b == b", raises=True, **_M)
        + check("repr(f.fromdense(np.eye(3, dtype='float32')))",
                "f.fromdense(np.eye(3, dtype='float32')).nse",
                "repr(f.fromdense(np.eye(3, dtype='float32'), n_batch=1))"),
    "jax.experimental.sparse.BCSR": cases(
        "r = f.fromdense(m, nse=4); (r.data, r.indices, r.indptr)",
        "f.fromdense(m, nse=4) @ x", "f.fromdense(m, nse=4).todense()", **_EAGER, **_MX),
    "jax.experimental.sparse.bcsr_fromdense": cases(
        "r = f(m, nse=4); (r.data, r.indices, r.indptr)", **_EAGER, **_M),
    "jax.experimental.sparse.bcsr_todense": cases(
        "f(jax.experimental.sparse.BCSR.fromdense(m, nse=4))", **_EAGER, **_M),
    "jax.experimental.sparse.bcoo_fromdense": cases(
        _parts("f(m, nse=4)"), _parts("f(m, nse=4, index_dtype='int8')"), **_EAGER, **_M),
    "jax.experimental.sparse.bcoo_todense": cases(_B + "f(b)", modes="eager jit grad", **_M),
    "jax.experimental.sparse.bcoo_extract": cases(_parts("f(b, m + 1)"), **_EAGER, **_M),
    "jax.experimental.sparse.bcoo_reduce_sum": _dense(
        "f(b, axes=[0])", "f(b, axes=(0, 1))",
        "f(s.BCOO.fromdense(m, nse=3, n_batch=1), axes=(0,))"),
    "jax.experimental.sparse.bcoo_sum_duplicates": cases(
        _parts("f(b + b, nse=5)"), **_EAGER, **_M),
    "jax.experimental.sparse.bcoo_sort_indices": cases(_parts("f(b.T)"), **_EAGER, **_M),
    "jax.experimental.sparse.bcoo_transpose": cases(
        _parts("f(b, permutation=(1, 0))"), **_EAGER, **_M),
    "jax.experimental.sparse.bcoo_reshape": cases(
        _parts("f(b, new_sizes=(4, 3))"), _parts("f(b, new_sizes=(12,))"), **_EAGER, **_M),
    "jax.experimental.sparse.bcoo_squeeze": _dense("f(b[:1], dimensions=(0,))"),
    "jax.experimental.sparse.bcoo_slice": _dense(
        "f(b, start_indices=(0, 1), limit_indices=(2, 3))",
        "f(b, start_indices=(0, 0), limit_indices=(3, 4), strides=(2, 2))"),
    "jax.experimental.sparse.bcoo_rev": _dense("f(b, dimensions=(0,))", "f(b, dimensions=(0, 1))"),
    "jax.experimental.sparse.bcoo_concatenate": _dense(
        "f([b, b], dimension=0)", "f([b, b], dimension=1)"),
    "jax.experimental.sparse.bcoo_broadcast_in_dim": _dense(
        "f(b, shape=(2, 3, 4), broadcast_dimensions=(1, 2))",
        "f(b, shape=(3, 1, 4), broadcast_dimensions=(0, 2))"),
    "jax.experimental.sparse.bcoo_multiply_dense": cases(
        _B + "f(b, m + 1)", _B + "f(b, x)", modes="eager jit grad", **_MX),
    "jax.experimental.sparse.bcoo_multiply_sparse": _dense("f(b, b)", "f(b, s.BCOO.fromdense("
                                                           "m[:, ::-1], nse=4))"),
    "jax.experimental.sparse.bcoo_update_layout":
        _dense("f(s.BCOO.fromdense(m, nse=3, n_dense=1), n_dense=0)",
               "f(s.BCOO.fromdense(m, nse=3, n_batch=1), n_batch=0)",
               "f(b, n_batch=1, on_inefficient=None)")
        + cases(_B + "f(b, n_batch=1)", _B + "f(b, n_dense=1)", raises=True, **_M),
    "jax.experimental.sparse.bcoo_dot_general": cases(
        _B + "f(b, x, dimension_numbers=(((1,), (0,)), ((), ())))",
        _B + "f(m, b, dimension_numbers=(((1,), (1,)), ((), ())))",
        _B + "f(b, m, dimension_numbers=(((0, 1), (0, 1)), ((), ())))",
        _B + "f(b, b, dimension_numbers=(((1,), (1,)), ((), ()))).todense()",
        modes="eager jit grad", **_MX),
    "jax.experimental.sparse.JAXSparse": check(
        "issubclass(jax.experimental.sparse.BCOO, f)"),
    "jax.experimental.sparse.SparseEfficiencyError": check("f.__mro__[1].__name__"),
    "jax.experimental.sparse.SparseEfficiencyWarning": check("f.__mro__[1].__name__"),
    "jax.experimental.sparse.empty": cases("f((2, 3)).todense()", "f((2, 3), dtype=int).data"),
    "jax.experimental.sparse.eye": cases("f(3).todense()", "f(3, 4, k=1).todense()",
                                         "f(3, 2, k=-1).todense()", "f(2, dtype=int).indices"),
    "jax.experimental.sparse.random_bcoo": cases(
        "f(jax.random.key(0), (3, 4), nse=3).todense()",
        "f(jax.random.key(1), (5, 5)).todense()", "f(jax.random.key(1), (5, 5), nse=.5).data"),
    "jax.experimental.sparse.todense": cases(_B + "f(b)", "f(m)", **_EAGER, **_M),
    "jax.experimental.sparse.grad": cases(
        _B + "f(lambda b: (b @ x).sum())(b).todense()",
        _B + "f(lambda b, x: ((b * b).sum() * x).sum(), argnums=1)(b, x)",
        _B + "f(lambda b: ((b @ x).sum(), 3.), has_aux=True)(b)[0].data", **_EAGER, **_MX),
    "jax.experimental.sparse.value_and_grad": cases(
        _B + "v, (g, h) = f(lambda b, x: (b @ x).sum(), argnums=(0, 1))(b, x); (v, g.data, h)",
        **_EAGER, **_MX),
    **{f"jax.experimental.sparse.{name}": cases(
        _B + "f(lambda b: b @ x)(b).todense()", _B + "f(lambda b: b @ x)(b).data",
        **_EAGER, **_MX) for name in ("jacfwd", "jacrev", "jacobian")},
    "jax.experimental.sparse.sparsify":
        cases(_B + "f(lambda x: jnp.sin(x) * 2)(b).todense()",
              _B + "f(lambda x, y: (x @ y).sum())(b, x)", _B + "f(jnp.sum)(b)",
              _B + "f(lambda x: x.T)(b).todense()",
              _B + "f(jax.jit(lambda x: jnp.concatenate([x, x])))(b).todense()",
              _B + "f(lambda x, y: x * y)(b, m).todense()",
              _B + "f(lambda x: jnp.tanh(x)[0])(b).todense()", modes="eager jit grad", **_MX)
        + cases(_B + "f(jnp.exp)(b)", _B + "f(lambda x: x + 1)(b)", raises=True, **_M),
    "jax.experimental.sparse.COO": cases(
        "r = f.fromdense(m, nse=5); (r.data, r.row, r.col)", "f.fromdense(m, nse=4) @ x",
        "f.fromdense(m, nse=4).T @ m", "f.fromdense(m, nse=4).T.todense()",
        "r = f.fromdense(m, nse=4)._sort_indices(); (r.data, r.row)", **_EAGER, **_MX)
        + cases("f.fromdense(m) * 2", "f.fromdense(m) @ f.fromdense(m)", "f.fromdense(m) @ m",
                raises=True, **_M),
    "jax.experimental.sparse.CSR": cases(
        "r = f.fromdense(m, nse=5); (r.data, r.indices, r.indptr)", "f.fromdense(m, nse=4) @ x",
        "f.fromdense(m, nse=4).T.todense()", **_EAGER, **_MX)
        + cases("f.fromdense(m)[0]", "f.fromdense(m).sum()", "f.fromdense(m) @ m[None]",
                raises=True, **_M),
    "jax.experimental.sparse.CSC": cases(
        "r = f.fromdense(m, nse=5); (r.data, r.indices, r.indptr)", "f.fromdense(m, nse=4) @ x",
        "f.fromdense(m, nse=4).T.todense()", **_EAGER, **_MX),
    **{f"jax.experimental.sparse.{kind}_fromdense": cases(
        "f(m, nse=4).data", "f(m, nse=6).data", "f(m, nse=4, index_dtype='int8').todense()",
        **_EAGER, **_M)
        for kind in ("coo", "csr")},
    # JAX's gradients of such matrices are wrong, or raise IndexError, with padding or transposed.
    **{f"jax.experimental.sparse.{kind}_todense": cases(
        f"f(jax.experimental.sparse.{kind.upper()}.fromdense(m, nse=5))", **_EAGER, **_M)
        for kind in ("coo", "csr")},
    **{f"jax.experimental.sparse.{kind}_matvec": cases(
        f"f(jax.experimental.sparse.{kind.upper()}.fromdense(m, nse=5), x)",
        f"f(jax.experimental.sparse.{kind.upper()}.fromdense(m, nse=5), x[:3], transpose=True)",
        **_EAGER, **_MX) for kind in ("coo", "csr")},
    **{f"jax.experimental.sparse.{kind}_matmat": cases(
        f"f(jax.experimental.sparse.{kind.upper()}.fromdense(m, nse=5), m.T)",
        f"f(jax.experimental.sparse.{kind.upper()}.fromdense(m, nse=5), m, transpose=True)",
        **_EAGER, **_MX) for kind in ("coo", "csr")},
    "jax.experimental.sparse.bcoo_conv_general_dilated": cases(
        "s = jax.experimental.sparse; f(s.BCOO.fromdense(m[:1, None], nse=3), m[1:2, None, :2], "
        "window_strides=(1,), padding='SAME').todense()",
        "s = jax.experimental.sparse; f(s.BCOO.fromdense(m[:1, None], nse=3), "
        "s.BCOO.fromdense(m[1:2, None, :2], nse=1), window_strides=(1,), padding=[(1, 2)])"
        ".todense()", **_EAGER, **_M),
    "jax.experimental.sparse.bcoo_dot_general_sampled": cases(
        "f(m, m, jnp.array([[0, 1], [2, 2]]), dimension_numbers=(((1,), (1,)), ((), ())))",
        "f(m, m, jnp.array([[[0], [1]]] * 3), dimension_numbers=(((), ()), ((0,), (0,))))",
        modes="eager jit grad", **_M),
    "jax.experimental.sparse.bcoo_dynamic_slice": _dense(
        "f(b, (1, 2), (2, 2))", "f(b, (jnp.int32(-1), jnp.int32(9)), (1, 3))",
        "f(s.BCOO.fromdense(m, nse=3, n_batch=1), (1, 2), (2, 2))"),
    "jax.experimental.sparse.bcoo_gather": _dense(
        "f(b, jnp.array([[0], [2]]), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4))",
        "f(b, jnp.array([[0], [2]]), lax.GatherDimensionNumbers((0,), (1,), (1,)), (3, 1))"),
    "jax.experimental.sparse.bcsr_broadcast_in_dim": _dense(
        "f(s.BCSR.from_bcoo(b), shape=(2, 3, 4), broadcast_dimensions=(1, 2))"),
    "jax.experimental.sparse.bcsr_concatenate": _dense(
        "f([s.BCSR.from_bcoo(b)] * 2, dimension=0)", "f([s.BCSR.from_bcoo(b)] * 2, dimension=1)"),
    "jax.experimental.sparse.bcsr_dot_general": cases(
        _B + "f(s.BCSR.from_bcoo(b), x, dimension_numbers=(((1,), (0,)), ((), ())))",
        _B + "f(s.BCSR.from_bcoo(b), m, dimension_numbers=(((0, 1), (0, 1)), ((), ())))",
        modes="eager jit grad", **_MX),
    "jax.experimental.sparse.bcsr_extract": cases(
        _B + "c = s.BCSR.from_bcoo(b); f(c.indices, c.indptr, m + 1)", **_EAGER, **_M),
    "jax.experimental.sparse.bcsr_sum_duplicates": _dense("f(s.BCSR.from_bcoo(b + b), nse=5)"),
    "jax.experimental.sparse.linalg.spsolve": cases(
        "f(x[:3], jnp.arange(3), jnp.arange(4), x[1:])",
        "s = jax.experimental.sparse; c = s.CSR.fromdense(m[:, :3] + jnp.eye(3), nse=4); "
        "f(c.data, c.indices, c.indptr, x[1:])", modes="eager jit grad", tol="accumulate", **_MX)
        + cases("f(x, jnp.arange(4), jnp.arange(4), x)", raises=True, **_MX),
    "jax.experimental.sparse.linalg.lobpcg_standard": cases(
        "f(jnp.diag(jnp.arange(1., 21.)) + 0.01, jnp.eye(20)[:, :2] + 0.1)[0]",
        "abs(f(lambda v: jnp.arange(1., 21.)[:, None] * v, jnp.eye(20)[:, :1] + 0.1)[1]).round(3)",
        modes="eager jit", tol="loose")
        + cases("f(jnp.eye(5), jnp.eye(5)[:, :2])", "f(jnp.eye(20)[:5], jnp.ones((20, 1)))",
                raises=True),
}
