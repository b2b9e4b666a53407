"""Order statistics, histograms, covariance."""

from __future__ import annotations

from compat.spec import Case, array, case, cases, floats, ints, reduction, shaped

TABLE: dict[str, list[Case]] = {}
NAN = float("nan")
FEW = "float32 float16 int32 complex64 bool"


def put(names: str, rows: list[Case]) -> None:
    for name in names.split():
        TABLE.setdefault(f"jax.numpy.{name}", []).extend(rows)


put("median nanmedian", reduction(dtypes=FEW, distinct=True, empty=False))
put("quantile nanquantile percentile nanpercentile", (
    [row for q in ("0.3", "1.0") for row in cases(
        f"f(x, {q})", f"f(x, {q}, axis=1)", f"f(x, {q}, axis=0, keepdims=True)",
        x=floats(3, 4, distinct=True), tol="accumulate")]
    + [row for method in "linear lower higher midpoint nearest inverted_cdf weibull".split()
       for row in case(f"f(x, q, axis=1, method={method!r})", x=floats(3, 4, distinct=True),
                       q=array([0.0, 0.25, 0.6, 1.0], "float32").fix(), raises=None,
                       tol="accumulate")]
    + case("f(x, q)", x=floats(5, distinct=True), q=array([0.3, 0.7], "float32"),
           tol="accumulate")
    + case("f(x, 0.5, axis=(0, 2))", x=floats(2, 3, 2, distinct=True), tol="accumulate")
    + case("f(x, 0.25)", x=shaped(5, distinct=True), dtypes="float16 bfloat16 int32 bool",
           modes="eager jit", tol="loose")
    + case("f(x, 0.25)", x=shaped(5), dtypes="complex64", raises=True)
    + case("f(x, 0.25, axis=1)", x=array([[1.0, NAN, 3.0], [NAN, NAN, NAN]], "float32"))
    + case("f(x, 0.25)", x=array([], "float32"), raises=None, modes="eager jit")
    + case("f(x, q)", x=floats(5), q=floats(2, 2, low=0.1, high=0.9), raises=True)
    + case("f(x, 0.5, method='cubic')", x=floats(5), raises=True)
    + case("f(x, 0.5, out=x)", x=floats(5), raises=True)
    + case("f(x, 0.5, overwrite_input=True)", x=floats(5), raises=True)
    + case("f(x, q)", x=floats(5), q=array([1.5, -0.5, 120.0], "float32"), modes="eager jit",
           tol="accumulate")
    + case("f(x, 0.3)", x=shaped(6, distinct=True), dtypes="float64", modes="eager jit")
))
put("quantile nanquantile percentile nanpercentile", (
    case("f(x, 0.5, weights=w)", x=floats(5), w=floats(5, low=0.1), raises=True)
    + cases("f(x, q, weights=w, method='inverted_cdf')",
            "f(x, q[1], weights=w[0], axis=1, method='inverted_cdf', keepdims=True)",
            "f(x, q, weights=w, axis=0, method='inverted_cdf')", x=floats(3, 4, distinct=True),
            w=floats(3, 4, low=0.1), q=array([0.0, 0.3, 0.7], "float32").fix())
    + case("f(x, q, axis=1, weights=w, method='inverted_cdf')",
           x=array([[1.0, NAN, 3.0], [NAN, NAN, NAN]], "float32"), q=array([0.3, 0.8], "float32"),
           w=array([1.0, 1.0, 2.0], "float32"), modes="eager jit")
    + case("f(x, 0.5, weights=w, method='inverted_cdf')", x=floats(3),
           w=array([1.0, -1.0, 2.0], "float32"), modes="eager jit")
    + case("f(x, 0.5, weights=w, method='inverted_cdf')", x=floats(2, 3), w=floats(3),
           raises=True)
))
put("median nanmedian", cases("f(x)", "f(x, axis=1)", tol="accumulate",
                              x=array([[1.0, NAN, 3.0], [NAN, NAN, NAN]], "float32"))
    + case("f(x, axis=0)", x=floats(4, 3, distinct=True), tol="accumulate"))

put("bincount", (
    cases("f(x)", "f(x, minlength=8)", x=ints(6, high=4), modes="eager")
    + cases("f(x, length=5)", "f(x, length=3)", "f(x, length=8, minlength=2)", x=ints(6, high=4),
            modes="eager jit vmap")
    + case("f(x, weights=w, length=5)", x=ints(6, high=4), w=floats(6))
    + case("f(x)", x=ints(6), modes="eager jit")      # JAX refuses it under jit
    + case("f(x, length=4)", x=shaped(5, low=0), dtypes="uint8 bool int8", modes="eager jit",
           raises=None)
    + case("f(x, length=4)", x=array([-1, 0, 7, 2], "int32"))
    + case("f(x)", x=floats(3), raises=True) + case("f(x)", x=ints(2, 3), raises=True)
    + case("f(x, length=3)", x=ints(0), modes="eager jit")
    + case("f(x, weights=w, length=3)", x=ints(3), w=floats(2), raises=True)
))
put("histogram_bin_edges", (
    cases("f(x)", "f(x, bins=4)", "f(x, bins=4, range=(-1, 2))", "f(x, jnp.array([0., 1., 3.]))",
          x=floats(12), tol="loose")
    + case("f(x, 3)", x=shaped(5), dtypes="int32 float16", modes="eager jit", tol="loose")
    + case("f(x, 'auto')", x=floats(5), raises=True)
    + case("f(x)", x=array([], "float32"), modes="eager jit", raises=None)
    + case("f(x, 2)", x=array([2.0, 2.0], "float32"), modes="eager jit")
))
put("histogram", (
    cases("f(x)", "f(x, bins=4)", "f(x, bins=4, range=(-1, 2))", "f(x, density=True)",
          "f(x, jnp.array([-1., 0., 1., 3.]))", x=floats(12), tol="loose",
          modes="eager jit vmap")
    + cases("f(x, 4, weights=w)", "f(x, 4, weights=w, density=True)", x=floats(12), w=floats(12),
            tol="loose", modes="eager jit vmap")
    + case("f(x, 3)", x=shaped(8), dtypes="int32 float16 bool", modes="eager jit", tol="loose",
           raises=None)
    + case("f(x, weights=w)", x=floats(4), w=floats(3), raises=True)
))
put("histogram2d", (
    cases("f(x, y)", "f(x, y, bins=3)", "f(x, y, bins=[2, 3])", "f(x, y, 3, density=True)",
          "f(x, y, 3, range=[(-2, 2), (-1, 1)])", "f(x, y, jnp.array([-1., 0., 1.]))",
          "f(x, y, [jnp.array([-1., 0., 1.]), 2])", x=floats(10), y=floats(10), tol="loose",
          modes="eager jit vmap")
    + case("f(x, y, 3, weights=w)", x=floats(10), y=floats(10), w=floats(10), tol="loose",
           modes="eager jit vmap")
    + case("f(x, y)", x=floats(4), y=floats(3), raises=True)
))
put("histogramdd", (
    cases("f(x)", "f(x, bins=3)", "f(x, bins=[2, 3])", "f(x, 3, density=True)",
          "f(x, 3, range=[(-2, 2), (-1, 1)])", x=floats(10, 2), tol="loose",
          modes="eager jit vmap")
    + case("f(x, 3, weights=w)", x=floats(10, 3), w=floats(10), tol="loose",
           modes="eager jit vmap")
    + cases("f(x, bins=[2])", "f(x, range=[(0, 1)])", x=floats(4, 2), raises=True)
))
put("cov", (
    cases("f(x)", "f(x, rowvar=False)", "f(x, bias=True)", "f(x, ddof=0)", "f(x, x[::-1])",
          "f(x[0])", x=floats(3, 5), tol="loose")
    + case("f(x, dtype=jnp.float16)", x=floats(3, 5), tol="loose", modes="eager jit")
    + case("f(x)", x=shaped(3, 5), dtypes="complex64 int32", tol="loose")
    + cases("f(x, fweights=i)", "f(x, aweights=w)", "f(x, fweights=i, aweights=w)",
            "f(x, fweights=i, ddof=0)", x=floats(3, 4), i=array([1, 2, 1, 3], "int32"),
            w=floats(4, low=0.5), tol="loose")
    + case("f(x)", x=floats(2, 3, 4), raises=True)
    + case("f(x, fweights=w)", x=floats(3, 4), w=floats(4), raises=True)
    + case("f(x, fweights=w)", x=floats(3, 4), w=ints(3, low=1), raises=True)
))
put("corrcoef", (
    cases("f(x)", "f(x, rowvar=False)", "f(x, x[::-1])", "f(x[0])", x=floats(3, 5), tol="loose")
    + case("f(x)", x=shaped(3, 5), dtypes="complex64 int32", tol="loose")
    + case("f(x)", x=floats(2, 3, 4), raises=True)
))
