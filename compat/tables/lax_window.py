"""Convolutions, reductions and sliding windows of jax.lax."""

from __future__ import annotations

import math

from compat.spec import array, bools, case, cases, check, floats, ints, shaped, special

SUM = {"tol": "accumulate"}
LOOSE = {"tol": "iterative"}
IMAGE = {"x": shaped(2, 4, 5, 6), "w": shaped(3, 4, 3, 2)}
LAST = '("NHWC", "HWIO", "NHWC")'
LINE = '("NHC", "HIO", "NHC")'


def _reduction(values=None, logical=False, dtypes="float32", **options):
    made = values or shaped(3, 4, 2, distinct=True)
    rows = cases("f(x, (0,))", "f(x, (0, 2))", "f(x, ())", "f(x, axes=[1])", x=made,
                 dtypes=dtypes, **options)
    rows += case("f(x, (0,))", x=shaped(3, 2), modes="eager jit", raises=None, tol="accumulate",
                 dtypes="int32 uint8 int8 bool bfloat16 float16 complex64 float64 float32")
    rows += case("f(x, (0,))", x=shaped(0, 2), modes="eager jit", raises=None,
                 dtypes="float32 int32 bool")
    rows += cases("f(x, (3,))", "f(x, (-1,))", "f(x, (0, 0))", x=shaped(2, 2), raises=True,
                  dtypes="int32" if logical else "float32")
    return rows


def _cumulative(dtypes="int32 uint8 bool bfloat16 float16 complex64 float64", **options):
    rows = cases("f(x)", "f(x, 1)", "f(x, axis=1, reverse=True)", "f(x, 0, True)",
                 x=shaped(3, 4, low=0.3, high=1.5, distinct=True), **options)
    rows += case("f(x)", x=shaped(4, low=-2, high=2), modes="eager jit", raises=None,
                 tol="accumulate", dtypes=dtypes)
    rows += cases("f(x)", "f(x, reverse=True)", x=array([1., float("nan"), 2., 3.], "float32"),
                  modes="eager jit")
    rows += case("f(x, 1)", x=floats(2, 0), modes="eager jit")
    rows += case("f(x)", x=special("float32"), modes="eager jit", tol="accumulate",
                 signed_zeros=False)
    rows += cases("f(x, -1)", "f(x, 2)", "f(x[0, 0])", x=floats(2, 2), raises=True)
    return rows


def _position():
    rows = cases("f(x, 0, jnp.int32)", "f(x, 1, jnp.int8)", "f(x, axis=1, index_dtype='uint16')",
                 x=shaped(3, 4, distinct=True), dtypes="float32 int32 bool bfloat16",
                 modes="eager jit vmap")
    rows += case("f(x, 0, jnp.int32)", x=array([1., 3., 3., 1.], "float32"), modes="eager jit grad")
    rows += case("f(x, 0, jnp.int32)", x=special(), dtypes="float32 float16 int8",
                 modes="eager jit")
    rows += cases("f(x, -1, jnp.int32)", "f(x, 2, jnp.int32)", "f(x, 0, jnp.float32)",
                  "f(x[:0], 0, jnp.int32)", x=floats(2, 2), raises=True)
    rows += case("f(x, 0, jnp.int32)", x=shaped(2), dtypes="complex64", raises=None,
                 modes="eager jit")
    return rows


_GROUPS = {"x": shaped(4, 4, 6), "w": shaped(4, 2, 3)}
_CONV = (
    cases("f(x, w, (1, 1), 'VALID')", "f(x, w, (2, 1), 'SAME')",
          "f(x, w, (1, 2), [(1, 2), (0, 1)], rhs_dilation=(2, 1))",
          "f(x, w, (1, 1), [(-1, 1), (2, -2)], lhs_dilation=(2, 3))", **IMAGE, **LOOSE)
    + cases("f(x, w, (2, 1), 'SAME_LOWER')",
            "f(x, w, (1, 1), [(0, 0), (1, 1)], (2, 1), (1, 2))", "f(x, w, (3, 4), 'valid')",
            modes="eager jit grad", **IMAGE, **LOOSE)
    + case(f"f(x, w, (2, 1), 'SAME', dimension_numbers={LAST})", x=shaped(2, 5, 6, 4),
           w=shaped(3, 2, 4, 3), dtypes="float32 complex64", **LOOSE)
    + cases("f(x, w, (1, 2), 'SAME', dimension_numbers=('HWNC', 'OHWI', 'CHNW'))",
            "f(x, w, (1, 2), 'SAME', dimension_numbers=('HWNC', 'OWHI', 'CHNW'))",
            x=shaped(5, 6, 2, 4), w=shaped(3, 3, 3, 4), **LOOSE)
    + cases("f(x, w, (1,), 'SAME', feature_group_count=2)",
            "f(x, w, (2,), [(1, 1)], (2,), (1,), feature_group_count=2)",
            x=shaped(4, 4, 6), w=shaped(6, 2, 3), **LOOSE)
    + case("f(x, w, (1,), 'VALID', feature_group_count=4)", x=shaped(2, 4, 6), w=shaped(8, 1, 2),
           **LOOSE)
    + cases("f(x, w, (1,), 'SAME', batch_group_count=2)",
            "f(x, w, (1,), [(1, 0)], rhs_dilation=(2,), batch_group_count=4)",
            x=shaped(4, 2, 6), w=shaped(4, 2, 3), **LOOSE)
    + case("f(x, w, (), ())", x=shaped(2, 3), w=shaped(4, 3), **LOOSE)
    + case("f(x, w, (1, 1, 2), 'SAME')", x=shaped(1, 2, 3, 4, 5), w=shaped(2, 2, 2, 1, 3), **LOOSE)
    + case("f(x, w, (1,) * 4, 'VALID')", x=shaped(1, 1, 2, 3, 2, 3), w=shaped(1, 1, 2, 2, 1, 2),
           modes="eager jit grad", **LOOSE)
    + case("f(x, w, (1,), 'SAME')", x=shaped(2, 3, 5), w=shaped(2, 3, 3), modes="eager jit",
           dtypes="int32 uint8 int8 float16 bfloat16 float64 complex128", **LOOSE)
    + cases("f(x, w, (1,), 'SAME', preferred_element_type=jnp.int32)",
            "f(x, w, (1,), 'SAME', preferred_element_type=jnp.float32)",
            x=shaped(2, 3, 5), w=shaped(2, 3, 3), modes="eager jit", raises=None,
            dtypes="int8 bfloat16 float32", **LOOSE)
    + case("f(x, w, (1,), 'VALID', precision='highest')", x=shaped(2, 3, 5), w=shaped(2, 3, 3),
           **LOOSE)
    + case("f(x, w, (1,), 'VALID', precision=(lax.Precision.HIGH, lax.Precision.DEFAULT))",
           x=shaped(2, 3, 5), w=shaped(2, 3, 3), modes="eager jit", **LOOSE)
    + case("f(x, w, (1,), 'SAME')", x=shaped(0, 3, 5), w=shaped(2, 3, 3), modes="eager jit grad")
    + case("f(x, w, (1,), 'VALID')", x=shaped(2, 3, 2), w=shaped(2, 3, 3), modes="eager jit grad")
    + case("f(x, w, (1,), 'VALID')", x=shaped(2, 0, 5), w=shaped(2, 0, 3), modes="eager jit grad")
    + cases("f(x, w, (1, 1), 'SAME')", "f(x, w, (0,), 'SAME')", "f(x, w, (1,), 'NO')",
            "f(x, w, (1,), [(0, 0)] * 2)", "f(x, w, (1,), 'SAME', (2,))",
            "f(x, w, (1,), 'SAME', feature_group_count=2)", "f(x, w[:, :2], (1,), 'SAME')",
            "f(x, w, (1,), 'SAME', batch_group_count=3)", "f(x, w.astype(int), (1,), 'SAME')",
            "f(x, w[0], (1,), 'SAME')", "f(x, w, (1,), 'SAME', feature_group_count=0)",
            "f(x, w, (1,), 'SAME', dimension_numbers=('NCH', 'OIW', 'NCH'))",
            "f(x, w, (1,), 'SAME', dimension_numbers=('NCH', 'OI', 'NCH'))",
            "f(x, w, (1,), 'SAME', dimension_numbers=('NCH', 'OIH'))",
            "f(x, w, (1,), 'SAME', rhs_dilation=(0,))",
            "f(x, w, (1,), 'SAME', precision='most')",
            x=floats(2, 3, 5), w=floats(2, 3, 3), raises=True)
)
_WINDOW = (
    # Weakly typed arrays.
    check("f(jnp.broadcast_to(1, (4,)), 1, lax.add, (2,))",
          "f(jnp.broadcast_to(1, (4,)), 1, lambda a, b: a + b + 1, (2,))",
          "f(jnp.broadcast_to(1, (4,)), jnp.ones((), int), lax.add, (2,))",
          "f(jnp.broadcast_to(1, (4,)), jnp.ones((), int), lambda a, b: a + b + 1, (2,))")
    + cases("f(x, 0., lax.add, (2, 2))", "f(x, 0., lax.add, (2, 3), (1, 2), 'SAME')",
            "f(x, -jnp.inf, lax.max, (2, 2), (2, 1), [(1, 0), (0, 1)])",
            "f(x, jnp.inf, lax.min, (1, 3), (1, 1), 'SAME')", x=shaped(5, 6, distinct=True), **SUM)
    + case("f(x, 0., lax.add, (2, 2), (1, 1), 'VALID', (2, 1), (1, 2))", x=shaped(4, 5), **SUM)
    + cases("f(x, 1., lax.add, (2, 2), (2, 2), [(1, -1), (-1, 2)])",
            "f(x, 2., lax.max, (2, 2), (1, 1), padding='SAME_LOWER')",
            "f(x, 1., lax.mul, (2, 2), (2, 2), 'SAME')",
            "f(x, 0., lambda a, b: a + b + a * b, (1, 2))", x=shaped(4, 5), modes="eager jit vmap",
            **SUM)
    + case("f(x, -jnp.inf, lax.max, (2,), (1,), 'VALID', (2,), (3,))", x=floats(7),
           modes="eager jit vmap")
    + case("f(x, 0, lax.add, (2,), (1,), padding='SAME')", x=shaped(5), modes="eager jit vmap",
           dtypes="int32 uint8")
    + case("f(x, jnp.zeros((), x.dtype), lax.add, (3,))", x=shaped(7), **SUM, modes="eager jit",
           dtypes="bfloat16 float16 complex64 float64")
    + case("f(x, jnp.array(jnp.iinfo(x.dtype).min, x.dtype), lax.max, (2,))", x=shaped(5),
           dtypes="int32 int8 uint8", modes="eager jit")
    + case("f(x, False, lax.bitwise_or, (2,))", x=bools(5), modes="eager jit vmap")
    + case("f(x, True, lax.bitwise_and, (2, 2), (1, 1), 'SAME')", x=bools(3, 3),
           modes="eager jit vmap")
    + case("f((x, i), (-jnp.inf, -1), lambda a, b: tuple(jnp.where(a[0] >= b[0], a, b) for a, b"
           " in ((a, b), (a[::-1], b[::-1]))), (2,))", x=floats(4), i=ints(4), modes="eager jit",
           raises=None)
    + case("f((x, y), (0., 1.), lambda a, b: (a[0] + b[0], a[1] * b[1]), (2,), (1,), 'SAME')",
           x=floats(4), y=floats(4), **SUM, modes="eager jit vmap")
    + case("f(x, 0., lax.add, (2, 2))", x=floats(0, 3)) + case("f(x, 0., lax.add, ())", x=floats())
    + cases("f(x, 0., lax.add, (2,))", "f(x, 0., lax.add, (2, 0))",
            "f(x, 0., lax.add, (2, 2), (1,))", "f(x, 0., lax.add, (2, 2), padding='NO')",
            "f(x, 0., lax.add, (2, 2), (1, 1), [(0, 0)])", "f(x, x, lax.add, (2, 2))",
            "f(x, 0., lax.add, (2, 2), (1, 1), 'SAME', (0, 1))", x=floats(3, 3), raises=True)
    + case("f(x, -jnp.inf, lax.max, (2,), (2,))", x=array([1., 1., 2., 2., 3.], "float32"))
    + case("f(x, -jnp.inf, lax.max, (2,), (1,))",
           x=array([1., float("nan"), 2., 2., 3.], "float32"), modes="eager jit")
)
_REDUCE = (
    # Weakly typed arrays.
    check("f(jnp.broadcast_to(1, (4,)), 1, lax.add, (0,))",
          "f(jnp.broadcast_to(1, (4,)), 1, lambda a, b: a + b + 1, (0,))",
          "f(jnp.broadcast_to(1, (4,)), jnp.ones((), int), lax.add, (0,))",
          "f(jnp.broadcast_to(1, (4,)), jnp.ones((), int), lambda a, b: a + b + 1, (0,))")
    + cases("f(x, 0., lax.add, (0,))", "f(x, 1., lax.mul, (0, 1))", "f(x, -jnp.inf, lax.max, (1,))",
          "f(x, jnp.inf, lax.min, [0])", "f(x, 2., lax.add, ())",
          "f(x, 0., lambda a, b: a + b, (0, 2))", x=shaped(2, 3, 2, distinct=True), **SUM)
    + cases("f(x, 1., lambda a, b: a * b, dimensions=(0,))", "f(x, 0., lax.max, (1,))",
            "f(x, 0., lambda a, b: jnp.logaddexp(a, b), (0,))", x=shaped(3, 4, low=0.5), **SUM)
    + case("f(x, 1., lambda a, b: jnp.sqrt(a * a + b * b), (0,))", x=shaped(5, low=1), **SUM,
           modes="eager jit vmap")
    + case("f((x, y), (0., 1.), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,))",
           x=floats(3, 2), y=floats(3, 2), **SUM)
    + case("f((x, i), (-jnp.inf, -1), lambda a, b: (jnp.maximum(a[0], b[0]), "
           "jnp.where(a[0] >= b[0], a[1], b[1])), (0,))", x=shaped(5, 2, distinct=True),
           i=ints(5, 2), modes="eager jit vmap")
    + case("f({'a': x}, {'a': 0.}, lambda a, b: {'a': a['a'] + b['a']}, (0,))", x=floats(3), **SUM)
    + case("f(x, jnp.array(0, x.dtype), lax.add, (0,))", x=shaped(3, 2), modes="eager jit", **SUM,
           dtypes="int32 uint8 bfloat16 complex64 float64")
    + case("f(x, False, lax.bitwise_or, (0,))", x=bools(3, 2), modes="eager jit vmap")
    + case("f(x, 0, lax.bitwise_xor, (0,))", x=ints(3, 2), modes="eager jit vmap")
    + case("f(x, 5., lax.add, (0,))", x=floats(0, 2), modes="eager jit")
    + case("f(x, 5., lambda a, b: a * b, (0,))", x=floats(0, 2), modes="eager jit")
    + cases("f(x, 0., lax.add, (2,))", "f(x, 0., lax.add, (0, 0))", "f(x, x, lax.add, (0,))",
            "f(x, jnp.zeros(2), lax.add, (0,))", "f(x, 0., lambda a, b: (a, b), (0,))",
"f((x, x), (0.,), lax.add, (0,))",
            x=floats(2, 2), raises=True)
)

TABLE = {
    "jax.lax.conv_general_dilated": _CONV
    + case("f(x, w, (1,), [(1, 1)])", x=array([[[1.0, 1.0, 1.0]]]), w=array([[[math.inf, 1.0]]]),
           modes="eager jit"),
    "jax.lax.conv": case("f(x, w, (1, 1), 'SAME')", **IMAGE, **LOOSE)
    + case("f(x, w, (2, 1), 'VALID', preferred_element_type=jnp.float32)", **IMAGE,
           modes="eager jit", **LOOSE)
    + case("f(x, w, (2,), 'VALID')", **IMAGE, raises=True),
    "jax.lax.conv_with_general_padding": cases(
        "f(x, w, (1, 1), [(1, 0), (0, 2)], None, None)", "f(x, w, (2, 1), 'SAME', None, (1, 2))",
        "f(x, w, (1, 1), [(0, 0), (0, 0)], (2, 1), (1, 2))", **IMAGE, **LOOSE),
    "jax.lax.conv_transpose": cases(
        "f(x, w, (2,), 'SAME')", "f(x, w, (3,), 'VALID')", "f(x, w, (1,), [(1, 2)])",
        "f(x, w, (2,), 'SAME', rhs_dilation=(2,))",
        "f(x, w, (2,), [(0, 1)], use_consistent_padding=True)", x=shaped(2, 5, 3),
        w=shaped(3, 3, 4), **LOOSE)
    + cases("f(x, w, (2,), 'SAME', transpose_kernel=True)",
            "f(x, w, (2,), 'VALID', transpose_kernel=True, precision='high')",
            x=shaped(2, 5, 4), w=shaped(3, 3, 4), **LOOSE)
    + case("f(x, w, (2, 3), 'VALID')", x=shaped(1, 3, 4, 2), w=shaped(4, 3, 2, 3), **LOOSE)
    + case("f(x, w, (2, 1), 'SAME', dimension_numbers=('NCHW', 'OIHW', 'NCHW'))",
           x=shaped(1, 2, 3, 4), w=shaped(3, 2, 2, 3), **LOOSE)
    + case("f(x, w, (1, 2, 1), 'SAME')", x=shaped(1, 2, 3, 2, 2), w=shaped(2, 2, 2, 2, 3),
           modes="eager jit grad", **LOOSE)
    + case("f(x, w, (2,), 'NO')", x=floats(2, 5, 3), w=floats(3, 3, 4), raises=True),
    "jax.lax.conv_general_dilated_patches": cases(
        "f(x, (2, 3), (1, 1), 'VALID')", "f(x, (3, 2), (2, 1), 'SAME')",
        "f(x, (2, 2), (1, 1), [(1, 0), (0, 0)], rhs_dilation=(1, 2))", x=shaped(2, 3, 4, 5),
        **SUM)
    + case(f"f(x, (2,), (1,), 'SAME', (2,) and None, dimension_numbers={LINE})",
           x=shaped(2, 5, 3), **SUM),
    "jax.lax.conv_general_dilated_local": case("f(x, w, (1,), 'VALID', (3,))", x=shaped(2, 2, 6),
                                               w=shaped(3, 6, 4), **LOOSE)
    + case("f(x, w, (2, 1), 'SAME', (2, 2))", x=shaped(2, 3, 4, 3), w=shaped(2, 12, 2, 3), **LOOSE)
    + case(f"f(x, w, (1, 1), 'VALID', (2, 2), dimension_numbers={LAST})", x=shaped(1, 3, 4, 2),
           w=shaped(2, 3, 8, 5), **LOOSE),
    "jax.lax.conv_dimension_numbers": check(
        f"f((1, 2, 3, 4), (5, 6, 7, 8), {LAST})", "f((1, 2, 3), (4, 5, 6), None)",
        "f((1, 2, 3), (4, 5, 6), lax.ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2)))")
    + check("f((1, 2, 3), (4, 5), None)", "f((1, 2, 3), (4, 5, 6), ('NCH', 'OIH', 'NC'))",
            "f((1, 2, 3), (4, 5, 6), 'NCH')", "f((1, 2, 3), (4, 5, 6), ('NCH', 'OIH', 'NCC'))",
            raises=True),
    "jax.lax.conv_general_permutations": check(f"f({LAST})", "f(('NCHW', 'OIHW', 'NHWC'))")
    + check("f(('NHWC', 'HWIO', 'NHW'))", "f(('NHWC', 'HDIO', 'NHWC'))", raises=True),
    "jax.lax.conv_general_shape_tuple": check(
        f"tuple(map(int, f((1, 8, 8, 2), (3, 3, 2, 4), (1, 2), 'SAME', {LAST})))",
        f"tuple(map(int, f((1, 8, 8, 2), (3, 3, 2, 4), (1, 2), [(0, 1), (1, 2)], {LAST})))"),
    "jax.lax.conv_shape_tuple": check(
        "tuple(map(int, f((1, 2, 8, 8), (4, 2, 3, 3), (1, 2), [(0, 1), (1, 1)])))",
        "tuple(map(int, f((4, 2, 8, 8), (4, 2, 3, 3), (1, 2), 'SAME', 2)))",
        "tuple(map(int, f((4, 2, 2, 2), (4, 2, 3, 3), (1, 2), 'VALID')))")
    + check("f((1, 2, 8, 8), (4, 2, 3, 3), (1, 2), [(0, 1)])", raises=True),
    "jax.lax.conv_transpose_shape_tuple": check(*(
        f"tuple(map(int, f((1, 8, 8, 2), (3, 3, 2, 4), {strides}, {pads}, {LAST})))"
        for strides in ((1, 2), (3, 4)) for pads in ("'SAME'", "'VALID'", "[(1, 1), (0, 2)]"))),
    "jax.lax.reduce_window_shape_tuple": check(
        "f((5, 6), (2, 2), (1, 2), [(0, 1), (1, 1)])", "f((5, 0), (2, 7), (1, 2), [(0, 0)] * 2)",
        "f((5, 6), (2, 2), (1, 2), [(0, 1), (1, 1)], (2, 2), (3, 1))")
    + check("f((5, 6), (2, 2), (1, 2), 'SAME')", "f((5, 6), (2,), (1, 2), [(0, 0)] * 2)",
            raises=True),
    "jax.lax.padtype_to_pads": check(
        "f((5, 6), (2, 3), (1, 2), 'SAME')", "f((5, 6), (2, 3), (1, 2), 'SAME_LOWER')",
        "f((5,), (2,), (1,), 'VALID')",
        "f((5,), (7,), (1,), 'same')")
    + check("f((5,), (2,), (1,), 'NO')", raises=True),
    "jax.lax.ConvDimensionNumbers": check("f((0, 1), (0, 1), (0, 1))",
                                          "f((0, 1), (1, 0), (0, 1)).rhs_spec"),
    "jax.lax.ConvGeneralDilatedDimensionNumbers": check("f is not None"),
    "jax.lax.reduce_window": _WINDOW,
    "jax.lax.reduce": _REDUCE,
    "jax.lax.reduce_sum": _reduction(**SUM, dtypes="float32 complex64"),
    "jax.lax.reduce_prod": _reduction(shaped(3, 4, 2, low=0.5, high=2), **SUM),
    "jax.lax.reduce_max": _reduction()
    + case("f(x, (0,))", x=array([1., 3., 3.], "float32"))
    + case("f(x, (0,))", x=special(), dtypes="float32 int8", modes="eager jit"),
    "jax.lax.reduce_min": _reduction()
    + case("f(x, (0,))", x=array([1., 1., 3.], "float32"))
    + case("f(x, (0,))", x=special(), dtypes="float32 int8", modes="eager jit"),
    **{f"jax.lax.reduce_{name}": _reduction(shaped(3, 4, 2), logical=True, dtypes="int32 bool",
                                            modes="eager jit vmap")
       for name in ("and", "or", "xor")},
    "jax.lax.argmax": _position(), "jax.lax.argmin": _position(),
    "jax.lax.cumsum": _cumulative(**SUM), "jax.lax.cumprod": _cumulative(**SUM),
    "jax.lax.cummax": _cumulative() + case("f(x)", x=array([1., 2., 2., 1.], "float32")),
    "jax.lax.cummin": _cumulative(),
    "jax.lax.cumlogsumexp": _cumulative("bfloat16 float16 complex64 float64", **SUM),
}
