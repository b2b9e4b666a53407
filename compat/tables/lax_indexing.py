"""Gather and scatter, slices at computed places, and sorting in jax.lax."""

from __future__ import annotations

from compat.spec import array, case, cases, check, floats, ints, shaped, special

EXACT = {"tol": "exact"}
SUM = {"tol": "accumulate"}
NAN = float("nan")


def index(*values, dtype="int32"):
    return array(list(values) if len(values) != 1 else values[0], dtype).fix()


_G = "n = lax.GatherDimensionNumbers"
_GATHER = (
    cases(f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 4))",
          f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 3), mode='clip')",
          f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 2), mode='fill')",
          f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 4), mode='fill', fill_value=7)",
          f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 4), mode='promise_in_bounds')",
          f"{_G}((1, 2), (), (0,)); f(x, i, n, (2, 3), mode='clip')",
          x=shaped(5, 4), i=array([[2], [0], [4]], "int32").fix(), **SUM)
    + cases(f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 4), mode='fill')",
            f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 4), mode='clip')",
            f"{_G}((1, 2), (), (0,)); f(x, i, n, (3, 4), mode=lax.GatherScatterMode.CLIP)",
            f"{_G}((1, 2), (), (0,)); f(x, i, n, (3, 4), mode='fill')",
            f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 2), mode=lax.GatherScatterMode.FILL_OR_DROP)",
            x=shaped(5, 4), i=array([[-1], [3], [9]], "int32").fix(), **SUM)
    + case(f"{_G}((), (0, 1), (1, 0)); f(x, i, n, (1, 1))", x=shaped(3, 4),
           i=array([[2, 1], [0, 0]], "int32").fix(), dtypes="float32 complex64 int8 bool", **SUM)
    + case(f"{_G}((1,), (), (0,), (0,), (0,)); f(x, i, n, (1, 2), mode='clip')", x=shaped(3, 5),
           i=array([[0], [2], [4]], "int32").fix(), raises=True)
    + case(f"{_G}((), (1,), (1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,)); "
           "f(x, i, n, (1, 1), mode='clip')", x=shaped(3, 5),
           i=array([[0], [2], [4]], "int32").fix(), **SUM)
    + case(f"{_G}((0,), (), (0,)); f(x, i, n, (2,), mode='clip')", x=shaped(5),
           i=array([2], "uint8").fix(), **SUM)
    + case(f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 3), mode='fill')", x=shaped(5, 4),
           i=array([[2], [9]], "int32"), dtypes="int32 uint8 bool bfloat16 complex64",
           modes="eager jit vmap")
    + case(f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 4))", x=shaped(5, 4),
           i=ints(0, 1), modes="eager jit")
    + cases(f"{_G}((1,), (0,), (0,)); f(x, i, n, (2, 4))",
            f"{_G}((1,), (), (0,)); f(x, i, n, (1, 4))",
            f"{_G}((1,), (0,), (2,)); f(x, i, n, (1, 4))",
            f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 9))",
            f"{_G}((1,), (0,), (0,)); f(x, i * 1., n, (1, 4))",
            f"{_G}((1,), (0,), (0,)); f(x, i, n, (1, 4), mode='no')",
            f"{_G}((1,), (0,), (0,)); f(x, i, n, (1,))",
            x=floats(5, 4), i=array([[2], [0]], "int32"), raises=True)
)
_S = "n = lax.ScatterDimensionNumbers"


def _scatter(unique=False, **options):
    promise = ", unique_indices=True" if unique else ""
    apart = array([[2], [0]], "int32").fix()
    rows = cases(f"{_S}((1,), (0,), (0,)); f(x, i, u, n{promise})",
                 f"{_S}((1,), (0,), (0,)); f(x, i, u, n, mode='clip'{promise})",
                 f"{_S}((1,), (0,), (0,)); f(x, i, u, n, mode='drop'{promise})",
                 f"{_S}((1,), (0,), (0,)); f(x, i, u, n, indices_are_sorted=False, "
                 f"mode=lax.GatherScatterMode.FILL_OR_DROP{promise})",
                 x=shaped(4, 3, low=0.5), i=apart, u=shaped(2, 3, low=0.5), **options)
    rows += cases(f"{_S}((1,), (0,), (0,)); f(x, i, u, n{promise})",
                  f"{_S}((1,), (0,), (0,)); f(x, i, u, n, mode='clip'{promise})",
                  x=shaped(4, 3), i=array([[9], [-1]], "int32").fix(), u=shaped(2, 3), **options)
    rows += case(f"{_S}((0, 1), (), (0, 1)); f(x, i, u, n, mode='clip'{promise})",
                 x=shaped(4, 3), i=index([[2, 5]][0]), u=shaped(2, 2), **options)
    rows += case(f"{_S}((1,), (0,), (0,)); f(x, i, u, n{promise})", x=shaped(4, 3), i=apart,
                 u=shaped(2, 3), modes="eager jit", tol="accumulate", raises=None,
                 dtypes="int32 uint8 bfloat16 complex64 float64")
    rows += case(f"{_S}((), (1,), (1,), operand_batching_dims=(0,), "
                 f"scatter_indices_batching_dims=(0,)); f(x, i, u, n{promise})", x=shaped(3, 5),
                 i=array([[0], [2], [4]], "int32").fix(), u=shaped(3), **options)
    rows += case(f"{_S}((1,), (0,), (0,)); f(x, i, u, n)", x=shaped(4, 3), i=ints(0, 1).fix(),
                 u=shaped(0, 3), modes="eager jit")
    rows += cases(f"{_S}((1,), (0,), (0,)); f(x, i, u[:1], n)",
                  f"{_S}((1,), (0,), (0,)); f(x, i * 1., u, n)",
                  f"{_S}((1,), (0,), (0,)); f(x, i, u.astype('int32'), n)",
                  f"{_S}((1,), (0,), (0,)); f(x, i, u, n, mode='no')",
                  f"{_S}((1,), (), (0,)); f(x, i, u, n)",
                  x=floats(4, 3), i=array([[2], [0]], "int32"), u=floats(2, 3), raises=True)
    return rows


_TWICE = case(f"{_S}((), (0,), (0,)); f(x, i, u, n)", x=shaped(4, low=0.5),
              i=array([[2], [0], [2]], "int32").fix(), u=shaped(3, low=0.5, distinct=True),
              modes="eager jit vmap", **SUM)
_SLICED = {"x": shaped(5, 4), **EXACT}

TABLE = {
    "jax.lax.gather": _GATHER,
    "jax.lax.scatter": _scatter(**EXACT),
    "jax.lax.scatter_add": _scatter(**SUM) + _TWICE,
    "jax.lax.scatter_sub": _scatter(**SUM) + _TWICE,
    "jax.lax.scatter_mul": _scatter(unique=True, **SUM) + _TWICE
    + case(f"{_S}((1,), (0,), (0,)); f(x, i, u, n)", x=floats(4, 3), u=floats(2, 3),
           i=array([[2], [0]], "int32").fix(), modes="grad"),
    "jax.lax.scatter_min": _scatter(**EXACT) + _TWICE,
    "jax.lax.scatter_max": _scatter(**EXACT) + _TWICE,
    "jax.lax.scatter_apply": cases(
        f"{_S}((1,), (0,), (0,)); f(x, i, jnp.sin, n, update_shape=(2, 3))",
        f"{_S}((1,), (0,), (0,)); f(x, i, lambda v: v * 2, n, update_shape=(2, 3), "
        "unique_indices=True, mode='clip')",
        x=shaped(4, 3), i=array([[2], [0]], "int32").fix(), grad=False, tol="loose",
        modes="eager jit"),
    "jax.lax.GatherDimensionNumbers": check(
        "f((1,), (0,), (0,))", "f(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))",
        "f((1,), (0,), (0,), (1,), (2,)).operand_batching_dims"),
    "jax.lax.ScatterDimensionNumbers": check(
        "f((1,), (0,), (0,))", "f((1,), (0,), (0,), (1,), (2,)).scatter_indices_batching_dims"),
    "jax.lax.GatherScatterMode": check(
        "[m.name for m in f]", "f.from_any('clip')", "f.from_any(None)", "f.from_any('drop')",
        "f.CLIP") + check("f.from_any('no')", raises=True),

    # Slices.
    "jax.lax.dynamic_slice": cases("f(x, (i, j), (2, 2))", "f(x, [i, 1], (3, 4))",
                                   "f(x, (i, -1), (1, 1))", "f(x, (9, i), slice_sizes=(2, 0))",
                                   i=index(1), j=index(-2), **_SLICED)
    + case("f(x, k, (2, 2))", x=shaped(5, 4), k=index(4, 1), **EXACT)
    + case("f(x, (i,), (3,))", x=shaped(5), i=array(7, "uint8").fix(), modes="eager jit vmap",
           dtypes="int8 bool complex64 bfloat16")
    + case("f(x, (i, i), (2, 2), allow_negative_indices=False)", i=index(1), **_SLICED)
    + case("f(x, (), ())", x=floats())
    + cases("f(x, (0,), (2, 2))", "f(x, (0, 0), (6, 2))", "f(x, (0, 0), (2,))",
            "f(x, (0., 0.), (2, 2))", "f(x, (jnp.int32(0), jnp.int8(0)), (2, 2))",
            "f(x, (jnp.zeros(1, int), 0), (2, 2))", "f(x, (0, 0), (-1, 2))", x=floats(5, 4),
            raises=True),
    "jax.lax.dynamic_slice_in_dim": cases("f(x, i, 2)", "f(x, i, 3, 1)", "f(x, -1, 2, axis=-1)",
                                          "f(x, i, 0)", i=index(3), **_SLICED)
    + cases("f(x, 0, 6)", "f(x, 0, 2, 2)", x=floats(5, 4), raises=True),
    "jax.lax.dynamic_index_in_dim": cases("f(x, i)", "f(x, i, 1)",
                                          "f(x, i, axis=-1, keepdims=False)", "f(x, -1, 0, False)",
                                          "f(x, 99)", i=index(2), **_SLICED)
    + case("f(x, 0, 2)", x=floats(5, 4), raises=True),
    "jax.lax.dynamic_update_slice": cases("f(x, u, (i, j))", "f(x, u, [4, i])",
                                          "f(x, u, (-2, -1))", u=shaped(2, 3), i=index(1),
                                          j=index(-2), **_SLICED)
    + case("f(x, u, k)", x=shaped(5), u=shaped(2), k=index([4]), dtypes="int8 bool complex64",
           modes="eager jit vmap")
    + case("f(x, u, (0, 0))", x=floats(5, 4), u=floats(0, 4))
    + cases("f(x, u, (0,))", "f(x, u.astype(int), (0, 0))", "f(x, u[0], (0, 0))",
            "f(u, x, (0, 0))", "f(x, u, (0., 0.))", x=floats(5, 4), u=floats(2, 3), raises=True),
    "jax.lax.dynamic_update_slice_in_dim": cases("f(x, u, i, 0)", "f(x, u, -1, axis=0)",
                                                 u=shaped(2, 4), i=index(4), **_SLICED)
    + case("f(x, u, i, -1)", u=shaped(5, 1), i=index(2), **_SLICED)
    + case("f(x, u, 0, 3)", x=floats(5, 4), u=floats(2, 4), raises=True),
    "jax.lax.dynamic_update_index_in_dim": cases("f(x, u, i, 0)", "f(x, u[None], -1, axis=0)",
                                                 u=shaped(4), i=index(4), **_SLICED)
    + case("f(x, u, i, -1)", u=shaped(5), i=index(2), **_SLICED)
    + case("f(x, 1., 1, 0)", x=floats(3)),
    "jax.lax.index_in_dim": cases("f(x, 1)", "f(x, -1, 1)", "f(x, 2, axis=-1, keepdims=False)",
                                  **_SLICED)
    + cases("f(x, 5)", "f(x, -6)", "f(x, 0, 2)", "f(x, 1.5)", x=floats(5, 4), raises=True),
    "jax.lax.index_take": cases("f(x, (i,), (0,))", "f(x, (i,), (1,))", "f(x, (i, i), (0, 1))",
                                x=shaped(5, 4), i=index(2, 0, -1), **SUM),

    # Sorting.
    "jax.lax.sort": cases("f(x)", "f(x, 0)", "f(x, dimension=-2, is_stable=False)",
                          x=shaped(3, 4, distinct=True), dtypes="float32 int32", **EXACT)
    + case("f(x)", x=shaped(5), dtypes="bool int8 uint8 bfloat16 float16 complex64 float64",
           modes="eager jit")
    + case("f(x)", x=special(), dtypes="float32 float16 int8", modes="eager jit",
           signed_zeros=False)
    + case("f(x)", x=array([NAN, 1., -NAN, float("inf"), -1.], "float32"), modes="eager jit")
    + cases("f((k, x))", "f([k, x], num_keys=2)", "f((k, x), 0, num_keys=1)",
            k=ints(3, 4, high=2).fix(), x=shaped(3, 4, distinct=True), **EXACT)
    + case("f((x, y, z), num_keys=2)", x=shaped(6, low=0, high=2, dtype="int32"),
           y=shaped(6, low=0, high=2, dtype="int32"), z=floats(6), modes="eager jit vmap")
    + case("f((z, z), num_keys=2)", z=array([1 + 1j, 1 - 1j, NAN, 0], "complex64"),
           modes="eager jit")
    + case("f(x)", x=floats(0)) + case("f(x, 0)", x=floats(2, 0))
    + cases("f(x, 2)", "f((x, x[0]))", "f(())", "f((x, x), num_keys=3)", "f((x,), num_keys=0)",
            "f(x[0, 0])", x=floats(3, 4), raises=True),
    "jax.lax.sort_key_val": cases("f(k, x)", "f(k, x, 0)", "f(k, x, dimension=0, is_stable=True)",
                                  k=shaped(3, 4, distinct=True), x=shaped(3, 4), **EXACT)
    + case("f(k, x)", k=floats(3), x=floats(4), raises=True),
    "jax.numpy.top_k": cases(
        "f(x, 2)", "f(x, 3, axis=0)", "f(x, 0)", "f(x, 2, mode='smallest')",
        "f(x, 2, axis=0, mode='smallest', sorted=False)", x=shaped(3, 4, distinct=True), **EXACT)
    + cases("f(x, 3)", "f(x, 3, mode='smallest')", x=shaped(5),
            dtypes="int32 uint8 int8 bool bfloat16 float16 float64", modes="eager jit")
    + cases("f(x, 3)", "f(x, 5, mode='smallest')", x=array([1., NAN, 1., -0., 0.], "float32"),
            modes="eager jit", signed_zeros=False)
    + cases("f(x, 5)", "f(x, -1)", "f(x, 1, axis=2)", "f(x[0, 0], 1)", "f(x * 1j, 1)",
            "f([1., 2.], 1)", "f(x, 1, mode='least')", x=floats(3, 4), raises=True),
    "jax.lax.top_k": cases("f(x, 2)", "f(x, 2, is_stable=False)", "f(x, 3, axis=0)", "f(x, k=4)",
                           "f(x, 0)", x=shaped(3, 4, distinct=True), **EXACT)
    + case("f(x, 3)", x=shaped(5), dtypes="int32 uint8 int8 bool bfloat16 float16 float64",
           modes="eager jit")
    + cases("f(x, 3)", "f(x, 5)", x=array([1., NAN, 1., -0., 0.], "float32"), modes="eager jit",
            signed_zeros=False)
    + cases("f(x, 5)", "f(x, -1)", "f(x, 1, axis=2)", "f(x[0, 0], 1)", "f(x * 1j, 1)",
            x=floats(3, 4), raises=True),
    "jax.lax.approx_max_k": cases("f(x, 2)", "f(x, 2, reduction_dimension=0)",
                                  "f(x, k=3, recall_target=0.8)", x=shaped(4, 5, distinct=True),
                                  **EXACT)
    + case("f(x, 2)", x=shaped(5, distinct=True), dtypes="bfloat16 float16 float64",
           modes="eager jit")
    + cases("f(x, 0)", "f(x, 9)", "f(x.astype(int), 2)", "f(x, 2, 2)", x=floats(4, 5),
            raises=True),
    "jax.lax.approx_min_k": cases("f(x, 2)", "f(x, 2, 0)", x=shaped(4, 5, distinct=True), **EXACT)
    + cases("f(x, 0)", "f(x, 9)", x=floats(4, 5), raises=True),
}
