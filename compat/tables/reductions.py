"""Reductions, positions of extremes, cumulative functions, and those that leave NaN out."""

from __future__ import annotations

from compat.spec import Case, array, bools, case, cases, check, floats, ints, reduction, shaped

TABLE: dict[str, list[Case]] = {}
NAN = float("nan")
FEW = "float32 bfloat16 int32 bool complex64"


def put(names: str, rows: list[Case]) -> None:
    for name in names.split():
        TABLE.setdefault(f"jax.numpy.{name}", []).extend(rows)


put("prod nansum nanprod", reduction(initial=True, where=True, dtype=True, low=0.5, high=2.0))
put("max min amax amin nanmax nanmin", reduction(initial=True, where=True, distinct=True))
put("all any", reduction(where=True, grad=False, dtypes=FEW))
put("mean nanmean", reduction(where=True, dtype=True))
put("var std nanvar nanstd", reduction(where=True, dtype=True, tol="loose"))
put("ptp", reduction(distinct=True))
put("count_nonzero", reduction(grad=False, dtypes=FEW))
put("argmax argmin nanargmax nanargmin",
    reduction(grad=False, tuples=False, distinct=True, dtypes=FEW))
put("average", reduction(dtypes=FEW))
put("cumsum cumprod nancumsum nancumprod",
    reduction(keepdims=False, tuples=False, dtype=True, low=0.5, high=1.5))
put("cumulative_sum cumulative_prod",
    reduction(keepdims=False, tuples=False, dtype=True, low=0.5, high=1.5))

put("minmax",
    cases("f(x)", "f(x, 0)", "f(x, axis=(0, 1), keepdims=True)", "f(x, -1, initial=0.5)",
          "f(x, initial=(2., -2.), where=x > 0)", x=floats(3, 4))
    + case("f(x)", x=shaped(5), dtypes="int32 uint8 bool bfloat16 float64", modes="eager jit")
    + cases("f(x, initial=(1., 2.))", x=floats(0), modes="eager jit")
    + case("f(x)", x=array([1.0, NAN], "float32"), modes="eager jit")
    + cases("f(x[:0])", "f(x, where=x > 0)", "f(x, out=1)", "f([1., 2.])", "f(x, 3)",
            x=floats(3), raises=True))

with_nan = array([[1.0, NAN, 3.0], [NAN, NAN, NAN]], "float32")
put("nansum nanprod nanmean nanvar nanstd nanmax nanmin nancumsum nancumprod "
    "sum prod mean var std max min amax amin cumsum cumprod ptp",
    cases("f(x)", "f(x, axis=1)", "f(x, axis=0)", x=with_nan, tol="accumulate"))
put("nanargmax nanargmin argmax argmin",
    cases("f(x)", "f(x, axis=1)", "f(x, axis=0, keepdims=True)", x=with_nan))

# Ties: each of the equal extremes has its share of the derivative.
ties = array([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]], "float32")
put("max min amax amin nanmax nanmin ptp", cases("f(x)", "f(x, axis=1)", x=ties))
put("argmax argmin", cases("f(x)", "f(x, axis=1)", x=ties))
put("argmax argmin", case("f(x, axis=(0, 1))", x=floats(2, 3), raises=True)
    + case("f(x)", x=floats(0), raises=True) + case("f(x, keepdims=True)", x=ints(2, 3)))
zeros = array([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]], "float32")
put("prod cumprod nanprod", cases("f(x)", "f(x, axis=1)", x=zeros))

put("var std nanvar nanstd", cases("f(x, ddof=1)", "f(x, axis=0, ddof=1)", "f(x, ddof=20)",
                                   "f(x, axis=0, ddof=3)", x=floats(3, 4), tol="loose"))
put("var std", cases("f(x, correction=1)", "f(x, axis=0, mean=x.mean(0, keepdims=True))",
                     x=floats(3, 4), tol="loose")
    + case("f(x, ddof=1, correction=1)", x=floats(3), raises=True)
    + case("f(x, dtype='float32')", x=shaped(3, dtype="complex64"), raises=None, modes="eager")
    + case("f(x)", x=array([2.0, 2.0, 2.0], "float32")))
put("sum prod", cases("f(x, promote_integers=False)", x=shaped(3, 2), modes="eager jit",
                      dtypes="int8 uint8 bool float16")
    + case("f(x, initial=jnp.ones(2))", x=floats(3), raises=True))
put("max min", case("f(x, where=m)", x=floats(2, 3), m=bools(2, 3), raises=True)
    + case("f(x, initial=0, where=m)", x=ints(2, 3), m=bools(2, 3), modes="eager jit vmap"))
put("sum mean max any", cases("f(x, (0, 0))", "f(x, axis=-3)", "f(x, axis=1.0)",
                              "f(x, out=jnp.zeros(()))", "f([1, 2])", "f('a')",
                              x=floats(2, 3), raises=True)
    + cases("f(x, ())", "f(x, None)", "f(x, -1)", x=floats(2, 3), tol="accumulate"))
put("sum mean prod max min all", check(
    "f(3)", "f(2.5)", "f(True)", "f(np.float32(2))", "f(np.arange(4))"))
put("average", (
    cases("f(x, weights=w)", "f(x, weights=w, returned=True)", "f(x, returned=True)",
          "f(x, axis=0, weights=w, keepdims=True)", "f(x, axis=1, weights=w[0])",
          x=floats(3, 4), w=floats(3, 4, low=0.5), tol="accumulate")
    + case("f(x, weights=w)", x=floats(3, 4), w=floats(4), raises=True)
    + case("f(x, axis=0, weights=w)", x=floats(3, 4), w=floats(4), raises=True)
    + case("f(x, weights=w)", x=ints(3), w=ints(3, low=1))
))
put("count_nonzero", cases("f(x)", "f(x, axis=(0, 1), keepdims=True)", x=ints(2, 3)))
put("cumulative_sum cumulative_prod", (
    cases("f(x, include_initial=True)", "f(x, dtype='float16', include_initial=True)",
          x=shaped(4, low=0.5, high=1.5), dtypes="float32 int8", tol="accumulate",
          modes="eager jit")
    + case("f(x, axis=1, include_initial=True)", x=floats(2, 3), tol="accumulate")
    + case("f(x)", x=floats(2, 3), raises=True) + check("f(1.0)", raises=True)
))
put("cumsum cumprod", cases("f(x, axis=0, dtype=bool)", "f(x, axis=1, dtype='int8')",
                            x=shaped(2, 3), dtypes="int32 float32", modes="eager jit",
                            raises=None))
