"""Names of jax itself: callbacks, debugging, profiling, monitoring."""

from __future__ import annotations

from compat.spec import Case, case, cases, check, floats
from compat.tables.toplevel import refused

TABLE: dict[str, list[Case]] = {}
PRINTED = (
    "import io, contextlib\nb = io.StringIO()\nwith contextlib.redirect_stdout(b):\n"
    "    {};  jax.effects_barrier()\nb.getvalue()"
)


def printed(*texts: str) -> list[Case]:
    """What is written to the standard output."""
    return check(*(PRINTED.format(text) for text in texts))


TABLE["jax.debug.print"] = printed(
    "f('x = {}', jnp.arange(3))",
    "f('{x} {y}', x=1, y=jnp.ones(2))",
    "jax.jit(lambda x: f('{}', x))(2.)",
    "f('{{}} {}', 3)",
    "f('plain')",
    "f('{:.2f}', 1.5)",
    "f('{x:.3f}', x=jnp.float32(2))",
    "jax.jit(lambda x: f('{x}', x=x, ordered=True))(jnp.ones((2, 2)))",
    "jax.vmap(lambda x: f('{}', x))(jnp.arange(2))",
    "lax.fori_loop(0, 3, lambda i, c: (f('{}', i, ordered=True), c)[1], 0)",
    "f('{a}', a={'k': jnp.ones(1)})",
    "jax.grad(lambda x: (f('{}', x), x * x)[1])(3.)",
) + refused("f('{}')", "f('{x}', y=1)", "f(3)", "f('{}', 1, 2, x=3); f('{y}', x=3)")
SEEN = "seen = []; g = lambda *a, **k: seen.append((a, k)); "
TABLE["jax.debug.callback"] = check(
    SEEN + "f(g, jnp.arange(2), y=1); jax.effects_barrier(); len(seen)",
    SEEN + "jax.jit(lambda x: f(g, x))(2.); jax.effects_barrier(); float(seen[0][0][0])",
    SEEN + "jax.vmap(lambda x: f(g, x))(jnp.arange(3)); jax.effects_barrier(); len(seen)",
    SEEN + "jax.jit(lambda x: f(g, x, ordered=True))(2.); jax.effects_barrier(); len(seen)",
) + refused("f(3, 1)")
TABLE["jax.debug.log"] = check(
    "import logging; logging.disable(); f('x {}', 1); jax.effects_barrier(); logging.disable(0)"
)
TABLE["jax.debug.visualize_array_sharding"] = check("f.__name__") + refused(
    "f(jnp.ones((2, 2, 2)))", "f(3)"
)
TABLE["jax.debug.visualize_sharding"] = check("f.__name__")
TABLE["jax.debug.inspect_array_sharding"] = check(
    "seen = []; f(jnp.ones(2), callback=seen.append); jax.effects_barrier(); len(seen)",
    "seen = []; jax.jit(lambda x: (f(x, callback=seen.append), x)[1])(jnp.ones(2)); "
    "jax.effects_barrier(); len(seen)",
)
TABLE["jax.debug.breakpoint"] = check("f.__name__")
for name in ("DebugEffect", "OrderedDebugEffect"):
    TABLE[f"jax.debug.{name}"] = check("f.__name__", "isinstance(f(), f)")
TABLE["jax.pure_callback"] = (
    cases(
        "f(lambda x: np.sin(x), jax.ShapeDtypeStruct(x.shape, x.dtype), x, "
        "vmap_method='sequential')",
        "jax.jit(lambda x: f(lambda x: x * 2, x, x))(x)",
        "f(lambda x: (x, x.sum()), (x, jnp.float32(0)), x, vmap_method='sequential')",
        "jax.vmap(lambda x: f(lambda x: x + 1, x, x, vmap_method='expand_dims'))(x)",
        "jax.vmap(lambda x: f(lambda x: x + 1, x, x, vmap_method='broadcast_all'))(x)",
        x=floats(3),
        grad=False,
        vmap=False,
    )
    + case("f(lambda x: x, x, x)", x=floats(3), modes="grad vmap")
    + refused(
        "f(lambda x: x[:1], jnp.ones(3), jnp.ones(3))",
        "jax.vmap(lambda x: f(lambda x: x, x, x))(jnp.ones(3))",
        "f(3, 1, 2)",
        "f(lambda x: 'a', jnp.ones(3), 1.)",
        "jax.vmap(lambda x: f(lambda x: x, x, x, vmap_method='x'))(jnp.ones(3))",
    )
)
TABLE["jax.experimental.io_callback"] = (
    cases(
        "f(lambda x: x * 2, x, x)",
        "jax.jit(lambda x: f(lambda x: x * 2, x, x, ordered=True))(x)",
        x=floats(3),
        grad=False,
        vmap=False,
    )
    + check(
        "seen = []; jax.jit(lambda x: f(seen.append, None, x))(1.); jax.effects_barrier(); "
        "len(seen)"
    )
    + refused("jax.grad(lambda x: f(lambda x: x, x, x))(1.)", "f(3, None)")
)
TABLE["jax.effects_barrier"] = check("f()", "jax.jit(jnp.sin)(1.); f()")
for name, given in (("StepTraceAnnotation", "'train', step_num=1"), ("TraceAnnotation", "'a'")):
    TABLE[f"jax.profiler.{name}"] = check(
        f"with f({given}):\n    y = jnp.ones(2) + 1\ny", "f.__name__", f"f({given}) is not None"
    )
TABLE["jax.profiler.annotate_function"] = check(
    "f(lambda x: x + 1)(2)",
    "f(lambda x: x + 1, name='g')(2)",
    "@f\ndef g(x):\n    return x\ng.__name__",
)
TRACE = "import tempfile\nd = tempfile.mkdtemp()\n"
TABLE["jax.profiler.trace"] = check(TRACE + "with f(d):\n    y = jnp.sin(1.)\ny") + check(
    TRACE + "with f(d):\n    with f(d):\n        y = 1\ny", raises=True
)
TABLE["jax.profiler.start_trace"] = check(
    TRACE + "f(d); y = jnp.sin(1.); jax.profiler.stop_trace(); y"
) + check(TRACE + "f(d)\ntry:\n    f(d)\nfinally:\n    jax.profiler.stop_trace()\n1", raises=True)
TABLE["jax.profiler.stop_trace"] = refused("f()")
TABLE["jax.profiler.ProfileOptions"] = check("f.__name__", "f() is not None")
TABLE["jax.profiler.start_server"] = TABLE["jax.profiler.stop_server"] = check("f.__name__")
TABLE["jax.profiler.device_memory_profile"] = check("type(f())")
TABLE["jax.profiler.save_device_memory_profile"] = check(
    TRACE + "import os\nf(d + '/a'); os.path.exists(d + '/a')"
)
EVENTS = {
    "event": ("f('/a')", "/a"),
    "event_duration_secs": ("f('/a', 1.5)", "/a"),
    "scalar": ("f('/a', 2)", "/a"),
    "event_time_span": ("f('/a', 1., 2.)", "/a"),
}
M = "m = jax.monitoring; seen = []; l = lambda *a, **k: seen.append((a, k)); "
ENDS = {"event": "", "event_duration": "_duration", "scalar": "", "event_time_span": ""}
for name, registers, leaves, given in (
    ("record_event", "register_event_listener", "unregister_event_listener", "'/a'"),
    (
        "record_event_duration_secs",
        "register_event_duration_secs_listener",
        "unregister_event_duration_listener",
        "'/a', 1.5",
    ),
    ("record_scalar", "register_scalar_listener", "unregister_scalar_listener", "'/a', 2"),
    (
        "record_event_time_span",
        "register_event_time_span_listener",
        "unregister_event_time_span_listener",
        "'/a', 1., 2.",
    ),
):
    text = (
        M
        + f"m.{registers}(l); m.{name}({given}, k='v'); m.{leaves}(l); m.{name}({given}); [s "
          f"for s in seen if s[0][0] == '/a']"
    )
    for each in (name, registers, leaves):
        TABLE[f"jax.monitoring.{each}"] = check(text, "f.__name__")
    TABLE[f"jax.monitoring.{leaves}"] += refused("f(lambda *a: None)")
TABLE["jax.monitoring.clear_event_listeners"] = check("f.__name__")
