"""Names of jax itself: dtypes, errors, types, stages."""

from __future__ import annotations

from compat.spec import Case, check
from compat.tables.toplevel import refused

TABLE: dict[str, list[Case]] = {}

d = "jax.dtypes"
TABLE[f"{d}.canonicalize_dtype"] = (
    check(
        "f('float64')",
        "f(int)",
        "f(float)",
        "f(bool)",
        "f('bfloat16')",
        "f(np.uint64)",
        "f(complex)",
        "f(jnp.int8)",
        "f('int64', allow_extended_dtype=True)",
    )
    + check("f('float64')", "f(int)", x64=True)
    + refused("f('x')")
    + check("f(None)", raises=None)
)
TABLE[f"{d}.issubdtype"] = check(
    "f(jnp.float32, jnp.floating)",
    "f('int32', np.integer)",
    "f(jnp.bfloat16, np.floating)",
    "f(jax.random.key(0).dtype, jax.dtypes.prng_key)",
    "f(np.float32, jax.dtypes.extended)",
    "f(jnp.int4, jnp.integer)",
    "f(float, np.inexact)",
    "f('complex64', 'float32')",
    "f(jax.dtypes.prng_key, jax.dtypes.extended)",
)
TABLE[f"{d}.result_type"] = check(
    "f(1, 2.)",
    "f(jnp.ones(2), 1)",
    "f('int8', 'uint8')",
    "f(np.float64)",
    "f(jnp.int8, 1.)",
    "f(True, 1)",
    "f(1, return_weak_type_flag=True)",
) + refused("f()")
TABLE[f"{d}.itemsize_bits"] = check(
    "f(jnp.float32)", "f('int4')", "f(bool)", "f(np.dtype('complex64'))", "f(jnp.bfloat16)"
) + check("f('x')", raises=True)
TABLE[f"{d}.scalar_type_of"] = check(
    "f(1)", "f(1.5)", "f(True)", "f(jnp.ones(2))", "f(jnp.arange(2))", "f(2j)"
) + refused("f('a')")
TABLE[f"{d}.bfloat16"] = check("f", "np.dtype(f)", "jnp.ones(2, f)", "f(1.5)", "f == jnp.bfloat16")
for name, args in (
    ("finfo", ("jnp.float32", "'bfloat16'", "float", "jnp.ones(2, 'float16')")),
    ("iinfo", ("jnp.int32", "'int4'", "int", "'uint8'")),
):
    fields = ("eps", "max", "bits", "tiny") if name == "finfo" else ("max", "min", "bits")
    TABLE[f"{d}.{name}"] = check(
        *(f"f({a}).{field}" for a in args for field in fields), f"f({args[0]}).dtype"
    )
TABLE[f"{d}.prng_key"] = check(
    "f.__name__", "jnp.issubdtype(jax.random.key(0).dtype, f)", "issubclass(f, np.generic)"
)
TABLE[f"{d}.extended"] = check(
    "f.__name__", "jnp.issubdtype(jax.random.key(0).dtype, f)", "issubclass(f, np.generic)"
)
TABLE[f"{d}.TypePromotionError"] = check("f.__name__", "issubclass(f, ValueError)") + check(
    "with jax.numpy_dtype_promotion('strict'):\n    y = jnp.ones(2) + jnp.ones(2, 'int8')\ny",
    raises=True,
)
RAISED = {
    "ConcretizationTypeError": "jax.jit(lambda x: jnp.arange(x))(3)",
    "TracerArrayConversionError": "jax.jit(lambda x: np.asarray(x))(1.)",
    "TracerBoolConversionError": "jax.jit(lambda x: 1 if x else 2)(1.)",
    "TracerIntegerConversionError": "jax.jit(lambda x: [1, 2][x])(1)",
    "NonConcreteBooleanIndexError": "jax.jit(lambda x: x[x > 0])(jnp.ones(2))",
    "UnexpectedTracerError": "s = []; jax.jit(lambda x: s.append(x))(1.); s[0] + 1",
    "InconclusiveDimensionOperation": "a, = jax.export.symbolic_shape('a'); bool(a > 5)",
}
for name in ("JaxRuntimeError", "KeyReuseError", *RAISED):
    TABLE[f"jax.errors.{name}"] = check(
        "f.__name__",
        "issubclass(f, Exception)",
        "[c.__name__ for c in f.__mro__ if c.__module__ == 'builtins']",
    ) + (refused(RAISED[name]) if name in RAISED else [])
TABLE["jax.typing.ArrayLike"] = check(
    "f is not None",
    "isinstance(1., f)",
    "isinstance(np.ones(2), f)",
    "isinstance(jnp.ones(2), f)",
    "isinstance('a', f)",
    "f | None is not None",
    "isinstance([1], f)",
    "isinstance(True, f)",
    "isinstance(np.float32(1), f)",
)
TABLE["jax.typing.DTypeLike"] = check("f is not None", "(f | None) is not None")
TABLE["jax.dlpack.from_dlpack"] = check(
    "f(np.arange(3))",
    "f(np.ones((2, 3), 'float32'))",
    "f(jnp.ones(2))",
    "f(np.ones((2, 3), 'float32').T.copy())",
    "f(np.arange(3, dtype='int8'), copy=True)",
) + refused("f(3)", "f([1, 2])")
TABLE["jax.dlpack.is_supported_dtype"] = check(
    "f(jnp.float32)",
    "f('int8')",
    "f(np.dtype(object))",
    "f(bool)",
    "f(jnp.bfloat16)",
    "f(jnp.int4)",
)
TABLE["jax.distributed.is_initialized"] = check("f()")
TABLE["jax.distributed.initialize"] = TABLE["jax.distributed.shutdown"] = check("f.__name__")
TABLE["jax.stages.Compiled"] = check(
    "f.__name__",
    "c = jax.jit(lambda x: x * 2).lower(1.).compile(); isinstance(c, f), c(3.)",
    "c = jax.jit(lambda x: x).lower(1.).compile(); type(c.as_text())",
) + refused("jax.jit(lambda x: x * 2).lower(1.).compile()(jnp.ones(2))")
TABLE["jax.stages.Lowered"] = check(
    "f.__name__",
    "l = jax.jit(lambda x: x * 2).lower(1.); isinstance(l, f), l.out_info",
    "l = jax.jit(lambda x, y: x).lower(1., y=2); l.in_tree",
    "jax.jit(lambda x: (x, x)).lower(1.).out_tree",
    "type(jax.jit(lambda x: x).lower(1.).as_text())",
    "jax.jit(lambda x: x).lower(1.).args_info",
)
TABLE["jax.stages.Traced"] = check(
    "f.__name__",
    "t = jax.jit(lambda x: x * 2).trace(1.); isinstance(t, f), t.out_info",
    "jax.jit(lambda x: x * 2).trace(1.).jaxpr",
    "jax.jit(lambda x: x).trace(1.).fun_name",
    "jax.jit(lambda x: x + 1).trace(1.).lower().compile()(2.)",
)
TABLE["jax.stages.ArgInfo"] = check("f.__name__")
