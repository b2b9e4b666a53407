"""Products, random bits, barriers and constants of jax.lax."""

from __future__ import annotations

from compat import surface
from compat.spec import array, case, cases, check, floats, ints, shaped
from tests.support.elementwise import LAX

SUM = {"tol": "accumulate"}
_NUMBERS = "n = lax.RaggedDotDimensionNumbers"
_SIZES = array([2, 1], "int32").fix()
STATE = array([0, 1, 2, 3], "uint32")
EDGE = array([5, 6, 0xFFFFFFFF, 0xFFFFFFFF], "uint32")
F8 = "float8_e4m3fn"
SCALE = "float8_e8m0fnu"

TABLE = {
    # Products.
    "jax.lax.dot": cases("f(x, y)", "f(x, y[:, 0])", "f(x[0], y[:, 0])", "f(x[0], y)",
                         "f(x, y, precision='highest')",
                         x=shaped(2, 3), y=shaped(3, 4), dtypes="float32 complex64", **SUM)
    + case("f(x, y)", x=shaped(2, 3), y=shaped(3, 2), modes="eager jit", **SUM,
           dtypes="int32 int8 uint8 bool bfloat16 float16 float64")
    + case("f(x, y, dimension_numbers=(((0,), (1,)), ((), ())))", x=floats(3, 2), y=floats(4, 3),
           **SUM)
    + case("f(x, y)", x=floats(0, 3), y=floats(3, 2)) + case("f(x, y)", x=floats(2, 0),
                                                             y=floats(0, 2))
    + cases("f(x, x)", "f(x, x[None])", "f(x, 2.)", "f(x[0], x)", x=floats(2, 3), raises=True),
    "jax.lax.dot_general": cases(
        "f(x, y, (((2,), (2,)), ((0,), (0,))))", "f(x, y, (((1, 2), (1, 2)), ((0,), (0,))))",
        "f(x, y, (((), ()), ((), ())))", "f(x, y, (((0, 2), (0, 2)), ((1,), (1,))))",
        "f(x, y, dimension_numbers=[[[2], [2]], [[], []]])",
        x=shaped(2, 3, 4), y=shaped(2, 3, 4), **SUM)
    + case("f(x, y, (((1,), (0,)), ((), ())))", x=shaped(2, 3), y=shaped(3, 2), **SUM,
           modes="eager jit", dtypes="int32 int8 uint8 bool bfloat16 float16 complex64 float64")
    + cases("f(x, y, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)",
            "f(x, y, (((1,), (0,)), ((), ())), None, jnp.float32)", x=shaped(2, 3),
            y=shaped(3, 2), dtypes="int8 bfloat16 float32", modes="eager jit", raises=None, **SUM)
    + cases("f(x, y, (((1,), (0,)), ((), ())), 'high')",
            "f(x, y, (((1,), (0,)), ((), ())), (lax.Precision.HIGH, lax.Precision.DEFAULT))",
            "f(x, y, (((1,), (0,)), ((), ())), lax.DotAlgorithmPreset.F32_F32_F32)",
            x=shaped(2, 3), y=shaped(3, 2), **SUM)
    + case("f(x, y, (((1,), (0,)), ((), ())))", x=floats(2, 3), y=shaped(3, 2, dtype="bfloat16"),
           modes="eager jit grad", **SUM)
    + cases("f(x, y, (((2,), (0,)), ((), ())))", "f(x, y, (((1,), (1,)), ((), ())))",
            "f(x, y, (((1,), (0,)), ((0,), ())))", "f(x, y, (((1, 1), (0, 0)), ((), ())))",
            "f(x, y, (((1,), (0,)), ((1,), (0,))))", "f(x, y, (((1,), (0,)), ((), ())), 'no')",
            "f(x, y, (((-1,), (0,)), ((), ())))", x=floats(2, 3), y=floats(3, 2), raises=True),
    "jax.lax.batch_matmul": case("f(x, y)", x=shaped(2, 3, 4), y=shaped(2, 4, 2),
                                 dtypes="float32 complex64", **SUM)
    + case("f(x, y, precision='high')", x=shaped(3, 2), y=shaped(2, 3), **SUM)
    + cases("f(x, y)", "f(x, x)", "f(x[0, 0], x[0, 0])", x=floats(2, 3, 4), y=floats(4, 2),
            raises=True),
    "jax.lax.ragged_dot": case("f(x, y, s)", x=shaped(4, 2), y=shaped(2, 2, 3), s=_SIZES,
                               vmap=False, **SUM)
    + case("f(x, y, s, preferred_element_type=jnp.float32)", x=shaped(4, 2), y=shaped(2, 2, 3),
           s=array([1, 3], "int32").fix(), dtypes="bfloat16 float32", modes="eager jit", **SUM)
    + case("f(x, y, s)", x=shaped(2, 4, 2), y=shaped(2, 2, 2, 3), modes="eager", raises=True,
           s=ints(2, 2).fix())
    + cases("f(x, y, s[:1])", "f(x, y, s * 1.)", "f(x[0], y, s)", "f(x, y[:, :1], s)",
            x=floats(4, 2), y=floats(2, 2, 3), s=_SIZES, raises=True),
    "jax.lax.ragged_dot_general": case(
        f"{_NUMBERS}((((0,), (0,)), ((), ())), (0,), ()); f(x, y, s, n)", x=shaped(5, 4),
        y=shaped(5, 3), s=array([2, 1, 1], "int32").fix(), grad=False, vmap=False, **SUM)
    + case(f"{_NUMBERS}((((2,), (2,)), ((0,), (1,))), (1,), (0,)); f(x, y, s, n)",
           x=shaped(2, 4, 3), y=shaped(2, 2, 3, 2), s=array([[1, 2], [3, 1]], "int32").fix(),
           modes="eager jit", **SUM)
    + case(f"{_NUMBERS}((((2,), (2,)), ((0,), (1,))), (1,), (0,)); f(x, y, s, n)",
           x=shaped(2, 4, 3), y=shaped(2, 2, 3, 2), s=_SIZES, modes="eager jit", **SUM)
    + case(f"{_NUMBERS}((((2,), (1,)), ((0,), (0,))), (0,), ()); f(x, y, s, n)",
           x=shaped(4, 2, 3), y=shaped(4, 3, 2), s=_SIZES, modes="eager jit", **SUM)
    + cases(f"{_NUMBERS}((((0,), (0,)), ((), ())), (0, 1), ()); f(x, y, s, n)",
            f"{_NUMBERS}((((0,), (0,)), ((), ())), (0,), (0,)); f(x, y, s, n)",
            f"{_NUMBERS}((((0,), (0,)), ((), ())), (1,), ()); f(x, y, s, n)",
            x=floats(5, 4), y=floats(5, 3), s=_SIZES, raises=True),
    "jax.lax.RaggedDotDimensionNumbers": check(
        "f((((1,), (1,)), ((), ())), (0,), (0,))",
        "f((((1,), (1,)), ((), ())), [0], [0]) == f((((1,), (1,)), ((), ())), (0,), (0,))"),
    "jax.lax.scaled_dot": cases(
        "f(x, y, lhs_scale=a, rhs_scale=b)", "f(x, y)", "f(x, y, lhs_scale=a)",
        "f(x, y, rhs_scale=b, preferred_element_type=jnp.float32)",
        "f(x[None], y[None], lhs_scale=a[None], rhs_scale=b[None])",
        x=shaped(4, 64, dtype=F8), y=shaped(64, 3, dtype=F8),
        a=array([[1, 2], [4, .5], [1, 1], [2, 8]], SCALE), b=array([[1, 2, .5], [4, 1, 1]], SCALE),
        modes="eager jit", tol="iterative")
    + case("f(x, y, lhs_scale=x[:, :32])", x=shaped(4, 64, dtype="bfloat16"), modes="grad",
           y=shaped(64, 3, dtype="bfloat16"))
    + cases("f(x, y, lhs_scale=x[:, :3])", "f(x, y, lhs_scale=x)", "f(x, y, lhs_scale=x[:3, :2])",
            "f(x[None], y)", x=shaped(4, 64, dtype="bfloat16"), y=shaped(64, 3, dtype="bfloat16"),
            raises=True),
    "jax.lax.Precision": check("list(f)", "f('high')", "f(None)", "f.HIGHEST", "f('float32')",
                               "str(f.DEFAULT)") + check("f('no')", raises=True),
    "jax.lax.DotAlgorithm": check(
        "f(jnp.float32, jnp.float32, jnp.float32).lhs_component_count",
        "f(jnp.float32, jnp.float32, jnp.float32).allow_imprecise_accumulation"),
    "jax.lax.DotAlgorithmPreset": check("[m.name for m in f]", "f.BF16_BF16_F32"),
    "jax.lax.DotDimensionNumbers": check("f is not None"),
    "jax.lax.PrecisionLike": check("f is not None"),

    # Random bits.
    "jax.lax.rng_bit_generator": cases(
        *(f"f(k, {shape}, jnp.{kind}, lax.RandomAlgorithm.{name})"
          for name in ("RNG_DEFAULT", "RNG_THREE_FRY", "RNG_PHILOX")
          for shape, kind in (((5,), "uint32"), ((3, 3), "uint8"), ((2, 3), "uint16"),
                              ((), "uint32"), ((0,), "uint32"), ((3, 4, 5), "uint32"))),
        k=STATE, modes="eager jit", tol="exact")
    + cases("f(k, (9,))", "f(k, (9,), algorithm=1)", "f(k, (4,), algorithm=lax.RandomAlgorithm(2))",
            k=EDGE, modes="eager jit vmap", tol="exact")
    + cases("f(k, (5,), jnp.uint64)", "f(k, (2, 3), jnp.uint64, 1)", k=STATE, x64=True,
            modes="eager jit")
    + case("f(k, (5,))", k=array([7, 8], "uint64"), x64=True, modes="eager jit")
    + cases("f(k, (2,), jnp.int32)", "f(k, (2,), jnp.float32)", k=STATE, raises=True),
    "jax.lax.RandomAlgorithm": check("list(f)", "f(1)", "str(f.RNG_PHILOX)", "int(f.RNG_DEFAULT)"),
    "jax.lax.rng_uniform": case("y = f(0., 1., (2, 3)); y.shape, y.dtype, (y >= 0).all(), "
                                "(y < 1).all()")
    + case("y = f(jnp.int32(2), jnp.int32(5), (50,)); y.dtype, (y >= 2).all(), (y < 5).all()")
    + case("y = f(a, a + 1, (40,)); y.dtype, (y >= a).all()", a=shaped(dtype="float32"),
           modes="eager jit")
    + cases("f(0., 1, (2,))", "f(jnp.zeros(2), 1., (2,))", raises=True)
    + case("f(a, 9., ())", a=floats(), modes="grad vmap"),

    # Barriers, tokens, names.
    "jax.lax.optimization_barrier": case("f(x)", x=shaped(2, 3), dtypes="float32 complex64 int8")
    + case("f({'a': x, 'b': (y, 2)})", x=floats(2), y=ints(2)) + case("f(None)") + case("f(())")
    + case("f('a')", raises=True),
    "jax.lax.dce_sink": case("f(x)", x=floats(2), modes="eager jit")
    + case("f({'a': x})", x=floats(2), modes="eager") + case("f('a')", raises=True),
    "jax.lax.create_token": case("f(); 1") + case("f(3); 2"),
    "jax.lax.after_all": case("f(lax.create_token(), lax.create_token()); 1"),
    "jax.lax.composite": cases("f(lambda x: jnp.sin(x) + 1, 'a.b')(x)",
                               "f(lambda x, *, k=2: {'y': x * k}, name='n.m', version=1)(x, k=3)",
                               "f(lambda x, y: (x + y, x), 'n.m')(x, 2.)", x=floats(2, 3))
    + case("f(lambda x: x, 'n')('a')", raises=True),

    # What becomes of arrays as they are passed about.
    "jax.lax.platform_dependent": case("f(x, cpu=lambda x: x + 1, default=lambda x: x)",
                                       x=floats(3))
    + case("f(x, default=lambda x: (x, 1))", x=floats(3)) + case("f(3, default=lambda x: x * 2)"),
}

_PRIMITIVES = """after_all approx_top_k argmax argmin bitcast_convert_type broadcast_in_dim
    concatenate conv_general_dilated copy create_token cumlogsumexp cummax cummin cumprod cumsum
    dce_sink device_put dot_general dynamic_slice dynamic_update_slice gather iota
    optimization_barrier pad reduce reduce_and reduce_max reduce_min reduce_or reduce_prod
    reduce_sum reduce_window reduce_window_max reduce_window_min reduce_window_sum reduce_xor
    reshape rev rng_bit_generator rng_uniform scatter scatter_add scatter_max scatter_min
    scatter_mul scatter_sub select_and_gather_add select_and_scatter select_and_scatter_add slice
    sort split squeeze stack stage tile top_k transpose unstack""".split()
for _name in [*_PRIMITIVES, *(name for row in LAX.values() for name in row.primitives)]:
    if f"jax.lax.{_name}_p" in surface.names() and f"jax.lax.{_name}_p" not in surface.excused():
        TABLE[f"jax.lax.{_name}_p"] = check("f.name", "f.multiple_results")
TABLE["jax.lax.neg_p"] += case("f.bind(x)", x=floats(3))
TABLE["jax.lax.add_p"] += case("f.bind(x, x)", x=floats(3))
TABLE["jax.lax.sort_p"] += case("f.bind(x, dimension=0, is_stable=True, num_keys=1)", x=floats(3))
TABLE["jax.lax.tile_p"] += case("f.bind(x, reps=(2,))", x=floats(3))
TABLE["jax.lax.stack_p"] += case("f.bind(x, x, axis=1)", x=floats(3))
TABLE["jax.lax.select_and_scatter_p"] = check("f.name")
