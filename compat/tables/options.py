"""Names of jax itself: options and versions."""

from __future__ import annotations

from compat.spec import Case, check
from compat.tables.toplevel import refused

TABLE: dict[str, list[Case]] = {}

TABLE["jax.config"] = check(
    "f.jax_enable_x64",
    "f.jax_debug_nans",
    "f.jax_default_matmul_precision",
    "old = f.jax_debug_nans; f.update('jax_debug_nans', True); x = f.jax_debug_nans; "
    "f.update('jax_debug_nans', old); x",
    "f.update('jax_enable_x64', True); x = jnp.arange(2); f.update('jax_enable_x64', False); "
    "x.dtype",
    "f.jax_numpy_rank_promotion",
    "f.jax_threefry_partitionable",
    "f.jax_default_prng_impl",
    "f.jax_disable_jit",
    "'jax_enable_x64' in f.values",
    "f.update('jax_platform_name', 'cpu')",
    "f.jax_log_compiles",
    "f.jax_traceback_filtering",
) + refused("f.update('nothing', 1)", "f.nothing", "f.update('jax_default_matmul_precision', 3)")
for name in (
    "jax_enable_x64",
    "jax_default_prng_impl",
    "jax_default_matmul_precision",
    "jax_enable_checks",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_threefry_partitionable",
):
    TABLE[f"jax.config.{name}"] = check("f", f"jax.config.{name} == f")
TABLE["jax.make_user_context"] = check("f(3).value")
TABLE["jax.enable_x64"] = check(
    "with f(True):\n    x = jnp.arange(2)\nx.dtype",
    "with f():\n    x = jnp.ones(2)\nx.dtype",
    "with f(True):\n    with f(False):\n        x = jnp.ones(1)\nx.dtype",
    "with f(True):\n    x = jax.jit(lambda x: x * 2)(np.float64(1))\nx.dtype",
    "with f(True):\n    y = jax.config.jax_enable_x64\ny, jax.config.jax_enable_x64",
)
CONTEXTS = {
    "numpy_dtype_promotion": ("'strict'", "jnp.ones(2) + jnp.ones(2, 'int8')", "jnp.ones(2) + 1"),
    "numpy_rank_promotion": ("'raise'", "jnp.ones((2, 3)) + jnp.ones(3)", "jnp.ones((2, 3)) + 1."),
    "debug_nans": ("True", "jnp.log(-jnp.ones(2))", "jnp.log(jnp.ones(2))"),
    "debug_infs": ("True", "1 / jnp.zeros(2)", "1 / jnp.ones(2)"),
    "no_tracing": ("True", "jax.jit(lambda x: x * 31.5)(1.)", "1 + 1"),
}
for name, (value, bad, good) in CONTEXTS.items():
    TABLE[f"jax.{name}"] = check(f"with f({value}):\n    y = {good}\ny") + refused(
        f"with f({value}):\n    y = {bad}\ny"
    )
TABLE["jax.numpy_dtype_promotion"] += check(
    "with f('standard'):\n    y = jnp.ones(2) + jnp.ones(2, 'int8')\ny"
) + refused("with f('x'):\n    y = 1\ny")
TABLE["jax.numpy_rank_promotion"] += check(
    "with f('allow'):\n    y = jnp.ones((2, 3)) + jnp.ones(3)\ny"
) + refused("with f('x'):\n    y = 1\ny")
for name in (
    "transfer_guard",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "transfer_guard_device_to_device",
):
    TABLE[f"jax.{name}"] = check(
        "with f('allow'):\n    y = jnp.ones(2) + 1\ny", "with f('log'):\n    y = jnp.arange(3)\ny"
    ) + refused("with f('x'):\n    y = 1\ny")
TABLE["jax.transfer_guard"] += check(
    "with f('disallow'):\n    y = jax.jit(jnp.cos)(jax.device_put(np.ones(3)))\ny",
    "x = jnp.arange(3)\nwith f('disallow'):\n    y = x[1]\ny",
) + refused(
    "with f('disallow'):\n    y = jnp.arange(3) + 1\ny",
    "with f('disallow'):\n    y = jax.jit(jnp.cos)(np.ones(3))\ny",
    "with f('disallow_explicit'):\n    y = jax.device_put(np.ones(3))\ny",
)
for name in (
    "check_tracer_leaks",
    "enable_checks",
    "enable_custom_prng",
    "explain_cache_misses",
    "log_compiles",
    "debug_key_reuse",
    "threefry_partitionable",
    "softmax_custom_jvp",
    "allow_f16_reductions",
    "legacy_prng_key",
    "no_execution",
    "auto_pcast",
    "jax2tf_associative_scan_reductions",
    "thread_guard",
    "array_garbage_collection_guard",
    "remove_size_one_mesh_axis_from_type",
):
    value = {"legacy_prng_key": "'allow'", "array_garbage_collection_guard": "'allow'"}.get(
        name, "False"
    )
    TABLE[f"jax.{name}"] = check(f"with f({value}):\n    y = jax.jit(jnp.cos)(2.)\ny")
TABLE["jax.threefry_partitionable"] += check(
    "with f(True):\n    y = jax.random.bits(jax.random.key(0), (3,))\ny"
)
TABLE["jax.checking_leaks"] = check(
    "with f():\n    y = jax.jit(jnp.cos)(2.)\ny", "with f():\n    y = jax.grad(jnp.sin)(1.)\ny"
) + refused("leak = []\nwith f():\n    jax.jit(lambda x: leak.append(x))(1.)\n1")
TABLE["jax.default_matmul_precision"] = check(
    *(
        f"with f({p!r}):\n    y = jnp.ones((2, 2)) @ jnp.ones((2, 2))\ny"
        for p in ("highest", "float32", "bfloat16", "default", None)
    )
) + refused("with f('x'):\n    y = 1\ny")
TABLE["jax.default_prng_impl"] = check(
    "with f('threefry2x32'):\n    k = jax.random.key(0)\nk"
) + refused("with f('x'):\n    y = 1\ny")
TABLE["jax.__version__"] = check("f[0].isdigit()", "type(f)")
TABLE["jax.__version_info__"] = check("type(f)", "len(f) >= 3")
TABLE["jax.print_environment_info"] = check("type(f(return_string=True))", "'numpy' in f(True)")
