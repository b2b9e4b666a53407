"""Names of jax itself: transformations, devices, checkify, export."""

from __future__ import annotations

from compat.spec import Case, case, cases, check, floats

TABLE: dict[str, list[Case]] = {}
STRUCT = "s = jax.ShapeDtypeStruct; "


def refused(*texts: str) -> list[Case]:
    return check(*texts, raises=True)


TABLE["jax.Inline"] = check(
    "list(f)", "f('auto')", "jax.jit(lambda x: x, inline=f.XLA_LATE)(1.)",
    *(f"jax.make_jaxpr(lambda x: jax.jit(lambda y: y * 2, inline={kind})(x))(1.)"
      for kind in ("f.JAX_EARLY", "f.JAX_LATE", "True", "False"))) + refused(
    "jax.jit(lambda x: x, inline='auto')(1.)", "jax.jit(lambda x: x, inline=None)(1.)")
TABLE["jax.CompilerEffortLevel"] = check("list(f)", "f.O1.value", "f(9)")
TABLE["jax.get_mesh"] = check("f()", "m = jax.make_mesh((1,), ('x',))\nwith jax.set_mesh(m): "
                              "y = f()\ny == m") + refused("jax.jit(lambda x: f())(1.)")
TABLE["jax.get_abstract_mesh"] = check("f()", "jax.jit(lambda x: f().empty)(1.)")
TABLE["jax.use_abstract_mesh"] = check("f is jax.sharding.use_abstract_mesh")
TABLE["jax.random.Key"] = check("f.__name__", "f(jax.random.key(0)).shape")
TABLE["jax.sharding.UnreducedKind"] = check(
    "list(f)", "jax.P('x', unreduced={'y'}).unreduced_kind",
    "jax.P('x', unreduced={'y'}, unreduced_kind=f.max)", "jax.P('x').unreduced_kind",
    "jax.P(unreduced={'y'}, unreduced_kind=f.min).update(reduced={'x'})",
    "jax.P(unreduced={'y'}) == jax.P(unreduced={'y'}, unreduced_kind=f.sum)",
    "jax.P(unreduced={'y'}) == jax.P(unreduced={'y'}, unreduced_kind=f.max)") + refused(
    "jax.P('x', unreduced_kind=f.sum)", "jax.P(unreduced={'y'}, unreduced_kind='max')")
TABLE["jax.sharding.ManualAxisType"] = check(
    "f()", "f(varying={'x'})", "f(varying={'x'}, unreduced={'y'}).vur == {'x', 'y'}",
    "f(unreduced={'x'})", "f(unreduced={'x'}).to_ct_mat()", "f(reduced={'x'}).to_ct_mat()",
    "f(varying={'x'}).update(varying={'y'}, reduced={'z'})", "f().empty, f(varying={'x'}).empty",
    "f(varying={'x'}) == f(varying={'x'}), f(varying={'x'}) == f()",
    "f(unreduced={'x'}, unreduced_kind=jax.sharding.UnreducedKind.max)",
    "jax.ShapeDtypeStruct((2,), jnp.float32, manual_axis_type=f(varying={'x'}))") + refused(
    "f({'x'})", "f(varying='x')", "f(varying={'x'}, unreduced={'x'})",
    "f(varying={'x'}, reduced={'x'})", "f(unreduced_kind=jax.sharding.UnreducedKind.sum)",
    "f(unreduced={'x'}, unreduced_kind='sum')",
    "jax.ShapeDtypeStruct((2,), jnp.float32, manual_axis_type=3)")
TABLE["jax.export.symbolic_dim_bounds"] = check(
    "f(3)", *(f"f(jax.export.symbolic_shape({text!r})[0])" for text in (
        "a", "2*a + 1", "mod(a, 4)", "a*b - 1", "max(a, 3)", "floordiv(a, 2)")),
    "f(jax.export.symbolic_shape('a', constraints=['a <= 10', 'a >= 4'])[0] - 2)") + refused(
    "f('a')", "f(2.)")

# --- transformations ------------------------------------------------------------------------------

TABLE["jax.jit"] = (
    cases(
        "f(lambda x: jnp.sin(x) * 2)(x)",
        "f(lambda x, n: x ** n, static_argnums=1)(x, 3)",
        "f(lambda x, n: x ** n, static_argnames='n')(x, n=3)",
        "f(lambda d: d['a'] + d['b'][0])({'a': x, 'b': [x]})",
        "f(lambda *a, **k: a[0] * k['y'])(x, y=2.)",
        "f(f(lambda x: x + 1))(x)",
        "f(lambda x: (x, None, {'y': x}))(x)",
        "f(lambda x: x, donate_argnums=0)(x + 0)",
        "f(lambda x: 3)(x)",
        "f(inline=True)(lambda x: x * 2)(x)",
        "f(lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x))(x)",
        x=floats(3),
    )
    + check(
        "f(lambda x: x)(2)",
        "f(lambda x: x)(True)",
        "f(lambda: 1.5)()",
        "f(lambda x: x).__name__",
        "f(lambda x: x * 2).lower(1.).out_info",
        "f(lambda x: x + 1).trace(1.).jaxpr",
        "f(lambda x: x + 1).eval_shape(1.)",
        "f(lambda x: x + 1).lower(1.).compile()(2.)",
        "f(lambda x: x.shape)(jnp.ones((2, 3)))",
        "f(lambda x: x, keep_unused=True)(np.float32(3))",
        "f(lambda k: k)(jax.random.key(0))",
        "f(lambda x: x.dtype == jnp.float32)(1.)",
        "type(f(abs)).__name__",
    )
    + refused(
        "f(lambda x: x if x > 0 else -x)(1.)",
        "f(lambda x: float(x))(1.)",
        "f(3)",
        "f(lambda x: np.asarray(x))(1.)",
        "f(lambda x: x)('a')",
        "f(lambda x: 'a')(1.)",
        "f(lambda x: range(x))(3)",
        "f(lambda x, y: x, static_argnums=1)(1, [2])",
        "f(lambda x: x)(object())",
        "f(lambda x: jnp.ones(x))(3)",
        "f(lambda x: x, static_argnums=2)(1)",
        "f(lambda x: x, static_argnames='y')(1)",
        "f(lambda x: x)()",
        "f(lambda x: x)(1, 2)",
    )
)
TABLE["jax.vmap"] = (
    cases(
        "f(jnp.dot)(x, y)",
        "f(jnp.dot, (0, None))(x, y[0])",
        "f(lambda d: d['a'] * 2, ({'a': 1},))({'a': x})",
        "f(lambda a: a.sum(), in_axes=1, out_axes=0)(x)",
        "f(lambda a: a, out_axes=1)(x)",
        "f(lambda a: a, out_axes=-1)(x)",
        "f(lambda a: lax.psum(a, 'i'), axis_name='i')(x)",
        "f(f(lambda a, b: a * b))(x, y)",
        "f(lambda a: 1., out_axes=None)(x)",
        "f(lambda a: 2., axis_size=2)(x)",
        "f(lambda a, k: a * k)(x, k=y)",
        "f(lambda a: (a, a.sum()), out_axes=(1, 0))(x)",
        x=floats(2, 3),
        y=floats(2, 3),
    )
    + check("f(lambda x: x)(jnp.zeros((0, 3)))", "f(lambda x: x * 2).__name__")
    + refused(
        "f(lambda x, y: x + y)(jnp.ones(2), jnp.ones(3))",
        "f(lambda x: x)(1.)",
        "f(lambda x: x, in_axes=1)(jnp.ones(3))",
        "f(lambda x: x, in_axes=(0, 0))(jnp.ones(3))",
        "f(lambda x: x, in_axes=None)(jnp.ones(3))",
        "f(3)",
        "f(lambda x: x, out_axes=None)(jnp.ones(3))",
        "f(lambda x: x, in_axes='a')(jnp.ones(3))",
        "f(lambda x: x, out_axes=3)(jnp.ones(3))",
        "f(lambda x: 'a')(jnp.ones(3))",
        "f(lambda x, y: x, in_axes=[0])(jnp.ones(3), 1)",
    )
)
TABLE["jax.eval_shape"] = check(
    "f(lambda x: x + 1, 1.)",
    "f(jnp.dot, jax.ShapeDtypeStruct((2, 3), 'float32'), jnp.ones(3))",
    "f(lambda x: {'a': x, 'b': (x.sum(),)}, jnp.ones((2, 3)))",
    "f(lambda x, y: x + y, np.ones(2), y=2)",
    "f(lambda: jnp.zeros((3, 4), 'bfloat16'))",
    "f(lambda k: jax.random.split(k), jax.random.key(0))",
    "f(lambda x: None, 1)",
    "f(lambda x: x.mean(0), jax.ShapeDtypeStruct((2, 3), jnp.float16))",
    "f(jax.jit(jnp.sin), 1.).shape",
    "f(lambda x: x @ x.T, jnp.ones((3, 2))).dtype",
    "f(lambda: 3)",
) + refused(
    "f(lambda x: 'a', 1.)",
    "f(lambda x, y: x @ y, jnp.ones((2, 3)), jnp.ones((2, 3)))",
    "f(3)",
    "f(lambda x: x, 'a')",
    "f(lambda x: int(x), 1)",
)
TABLE["jax.make_jaxpr"] = check(
    "f(lambda x: x + 1)(1.)",
    "f(lambda x, n: x * n, static_argnums=1)(1., 3)",
    "f(lambda x: x * 2, return_shape=True)(jnp.ones(2))[1]",
    "len(f(lambda x: jnp.sin(x) * x)(1.).eqns)",
    "f(lambda x: x)(1.).in_avals",
    "f(lambda x: (x, 1))(1).out_avals",
    "type(f(jnp.sin)(1.)).__name__",
    "[np.asarray(c) for c in f(lambda x: np.arange(3.) * x)(1.).consts]",
) + refused("f(3)", "f(lambda x: x)('a')")
TABLE["jax.hessian"] = (
    cases(
        "f(lambda x: (x ** 3).sum())(x)",
        "f(lambda x: {'a': x.prod()})(x)",
        "f(lambda x, y: (x * y).sum(), (0, 1))(x, x)",
        x=floats(3),
        tol="loose",
        signed_zeros=False,     # XLA replaces a product with the zeros off the diagonal
    )
    + check(
        "f(lambda x: x ** 3)(2.)",
        "f(lambda x: (x ** 2, 5), has_aux=True)(2.)",
        "f(lambda d: d['a'] * d['b'])({'a': 1., 'b': 2.})",
    )
    + refused("f(lambda x: x)(1)", "f(3)")
)
TABLE["jax.jacobian"] = (
    cases(
        "f(lambda x: jnp.sin(x) * x[0])(x)",
        "f(lambda x: {'a': x * 2, 'b': x.sum()})(x)",
        "f(lambda x, y: x * y, (0, 1))(x, x)",
        x=floats(3),
        signed_zeros=False,     # see hessian
    )
    + check("f(lambda x: x ** 3)(2.)")
    + refused("f(lambda x: x)(1)")
)
TABLE["jax.disable_jit"] = check(
    "with f():\n    y = jax.jit(lambda x: x if x > 0 else -x)(-2.)\ny",
    "with f():\n    y = lax.cond(True, lambda: 1, lambda: 2)\ny",
    "with f():\n    y = lax.scan(lambda c, x: (c + x, c), 0, jnp.arange(3))\ny",
    "with f(False):\n    y = jax.jit(jnp.sin)(1.)\ny",
    "with f():\n    y = jax.grad(jax.jit(lambda x: x * x if x > 0 else x))(3.)\ny",
    "with f():\n    y = lax.while_loop(lambda c: c < 5, lambda c: c + 1, 0)\ny",
) + check(
    "with f(True):\n    with f(False):\n        y = jax.jit(lambda x: x if x > 0 else -x)(-2.)\ny",
    raises=True,
)
TABLE["jax.named_scope"] = cases(
    "with f('a'):\n    y = jnp.sin(x)\ny",
    "g = f('a')(lambda x: x * 2); g(x)",
    "with f('a'):\n    with f('b'):\n        y = x + 1\ny",
    x=floats(3),
) + refused("f(3)", "f(None)", "f()")
TABLE["jax.named_call"] = cases(
    "f(jnp.sin)(x)",
    "f(lambda x, y=1: x * y, name='g')(x, y=2)",
    "jax.jit(f(jnp.cos, name='c'))(x)",
    x=floats(3),
) + check("f(lambda x: x, name='g')(3)")
TABLE["jax.ensure_compile_time_eval"] = check(
    "g = jax.jit(lambda: (lambda: 0)())\n@jax.jit\ndef h(x):\n    with "
    "jax.ensure_compile_time_eval():\n"
    "        n = int(jnp.arange(4).sum())\n    return x * n\nh(2.)",
    "with f():\n    y = jnp.sin(1.)\ny",
    "@jax.jit\ndef h(x):\n    with jax.ensure_compile_time_eval():\n        y = jnp.ones(2) if "
    "jnp.ones(()) > 0 else None\n"
    "    return x + y\nh(2.)",
) + check(
    "@jax.jit\ndef h(x):\n    with jax.ensure_compile_time_eval():\n        return int(x)\nh(2)",
    raises=True,
)
TABLE["jax.experimental.pjit.pjit"] = cases(
    "f(lambda x: x * 2)(x)",
    "f(lambda x, n: x * n, static_argnums=1)(x, 3)",
    "f(lambda x: (x, x.sum()))(x)",
    x=floats(3),
) + refused("f(lambda x: x if x > 0 else 0)(1.)", "f(3)")
TABLE["jax.test_util.check_grads"] = check(
    "f(jnp.sin, (1.,), 2)",
    "f(lambda x, y: x * y, (1., 2.), 1, modes=['rev'])",
    "f(jnp.exp, (jnp.ones(3),), order=1, atol=.1, rtol=.1)",
    "f(jnp.cos, (1.,), 1, ('fwd',), eps=1e-2)",
) + refused(
    "g = jax.custom_jvp(jnp.sin); g.defjvp(lambda p, t: (jnp.sin(p[0]), 3 * t[0])); f(g, (1.,), 1)"
)
for mode in ("jvp", "vjp"):
    TABLE[f"jax.test_util.check_{mode}"] = check(
        "g = "
        + (
            "lambda *a: jax.jvp(jnp.sin, *a)"
            if mode == "jvp"
            else "lambda *a: jax.vjp(jnp.sin, *a)"
        )
        + "; f(jnp.sin, g, (1.,))"
    )
TABLE["jax.float0"] = TABLE["jax.dtypes.float0"] = check(
    "f",
    "np.zeros(2, f).shape",
    "np.zeros(2, f).dtype",
    "jax.grad(lambda x: x * 1., allow_int=True)(2).dtype == f",
    "jax.jvp(lambda x: x, (1,), (np.zeros((), f),))[1].dtype",
)

# --- arrays and devices ---------------------------------------------------------------------------

TABLE["jax.Array"] = check(
    "isinstance(jnp.ones(2), f)",
    "isinstance(np.ones(2), f)",
    "isinstance(1.0, f)",
    "issubclass(type(jnp.ones(2)), f)",
    "jax.jit(lambda x: isinstance(x, jax.Array))(1.)",
    "isinstance(jax.random.key(0), f)",
    "f | None",
    "isinstance(f, type)",
    "jax.vmap(lambda x: isinstance(x, jax.Array) * x)(jnp.arange(2))",
    "'shape' in dir(f), 'at' in dir(f)",
) + refused("f()", "f(1)", "f(np.ones(2))")
TABLE["jax.ShapeDtypeStruct"] = check(
    "f((2, 3), jnp.float32)",
    "f((2, 3), 'bfloat16').dtype",
    "f(shape=(), dtype=int)",
    "f((2,), jnp.float32) == f((2,), jnp.float32)",
    "f((2,), jnp.float32) == f((3,), jnp.float32)",
    "hash(f((2,), 'int8')) == hash(f((2,), 'int8'))",
    "f((2, 3), float).size",
    "f((2, 3), float).ndim",
    "len(f((2, 3), float))",
    "f((2,), 'float32', weak_type=True)",
    "f((2,), 'float32').sharding",
    "f((2,), 'float32').update(shape=(3,))",
    "jax.tree.leaves(f((2,), 'int32'))",
    "f([2, 3], 'int8').shape",
    "f((2,), jax.random.key(0).dtype)",
    "jax.jit(jnp.sin).lower(f((2,), 'float32')).out_info",
    "f((1,), 'int32').weak_type",
    "jnp.zeros_like(f((2, 3), 'int8'))",
    "jnp.ones(f((2, 3), 'int8').shape)",
) + check(
    "f((2,), None)",
    "f((2,))",
    "f()",
    "f(3, 'int8')",
    "len(f((), float))",
    "f((2,), 'nothing')",
    "f((2,), float) + 1",
    "jnp.sin(f((2,), 'float32'))",
    raises=None,
)
TABLE["jax.ShapeDtypeStruct.like"] = check(
    "jax.ShapeDtypeStruct.like(jnp.ones((2, 3)))",
    "f(jnp.ones(2, 'int8')).dtype",
    "f(jnp.asarray(1.0))",
)
ONE = (
    "len({0}) >= 1",
    "{0}[0].platform",
    "{0}[0].id",
    "{0}[0].process_index",
    "{0}[0] == {0}[0]",
    "type({0}).__name__",
    "hash({0}[0]) == hash({0}[0])",
    "isinstance({0}[0], jax.Device)",
)
TABLE["jax.devices"] = check(
    *(t.format("f()") for t in ONE),
    "f('cpu')[0] == f()[0]",
    "f(backend='cpu')[0].platform",
    "jnp.ones(2).devices() == {f()[0]}",
) + refused("f('nothing')", "f('tpu')")
TABLE["jax.local_devices"] = check(
    *(t.format("f()") for t in ONE),
    "f() == jax.devices()",
    "f(process_index=0) == f()",
    "f(backend='cpu') == f()",
) + check("f(process_index=3)", "f(backend='nothing')", raises=None)
TABLE["jax.device_count"] = check(
    "f() == len(jax.devices())", "f('cpu') == f()", "type(f())"
) + refused("f('nothing')")
TABLE["jax.local_device_count"] = check(
    "f() == len(jax.local_devices())", "f('cpu') == f()"
) + refused("f('nothing')")
for name in ("process_index", "host_id"):
    TABLE[f"jax.{name}"] = check("f()", "f('cpu')") + check("f('nothing')", raises=None)
for name in ("process_count", "host_count"):
    TABLE[f"jax.{name}"] = check("f()", "f('cpu')")
for name in ("process_indices", "host_ids"):
    TABLE[f"jax.{name}"] = check("f()", "list(f())")
TABLE["jax.default_backend"] = check("f()", "f() == jax.devices()[0].platform")
TABLE["jax.Device"] = check(
    "isinstance(jax.devices()[0], f)",
    "f.__name__",
    "isinstance(1, f)",
    "d = jax.devices()[0]; d.local_hardware_id",
    "d = jax.devices()[0]; isinstance(d.device_kind, str)",
    "d = jax.devices()[0]; d.client.platform",
    "d = jax.devices()[0]; [repr(m) for m in d.addressable_memories()]",
    "d = jax.devices()[0]; [str(m) for m in d.addressable_memories()]",
    "m = jax.devices()[0].default_memory(); m.kind, m.platform, m.process_index",
    "d = jax.devices()[0]; d.memory('device') == d.default_memory() != d.memory('pinned_host')",
    "d = jax.devices()[0]; d.memory('pinned_host').addressable_by_devices() == [d]",
) + refused("jax.devices()[0].memory('nothing')")
TABLE["jax.memory"] = check("list(f.Space)", "f.Space.Host.name") + cases(
    "y = jax.device_put(x, f.Space.Host); y.sharding.memory_kind, y * 2",
    "y = jax.device_put(x, f.Space.Host); jax.device_put(y, f.Space.Device).sharding.memory_kind",
    "jax.jit(lambda x: jax.device_put(x, f.Space.Host) + 1)(x)",
    x=floats(3), modes="eager")
TABLE["jax.experimental.topologies.get_topology_desc"] = refused("f(platform='cpu')", "f()")
WRITTEN = "c = jax.jit(lambda x: x * 2).lower(jnp.ones(3)).compile()\n"
TABLE["jax.experimental.serialize_executable.serialize"] = check(
    WRITTEN + "[str(tree) for tree in f(c)[1:]]", WRITTEN + "type(f(c)[0])")
TABLE["jax.experimental.serialize_executable.deserialize_and_load"] = check(
    WRITTEN + "f(*jax.experimental.serialize_executable.serialize(c))(jnp.arange(3.0))")
TABLE["jax.experimental.custom_partitioning.custom_partitioning"] = check(
    "g = f(lambda x: x * 2)\n"
    "g.def_partition(partition=None, sharding_rule='i -> i')\n"
    "g(jnp.arange(3.0))") + refused(
    "g = f(lambda x: x * 2)\n"
    "g.def_partition(partition=lambda *_: None, infer_sharding_from_operands=lambda *_: None)\n"
    "g(jnp.arange(3.0))")
TABLE["jax.Array.format"] = check(*(
    f"str(jnp.ones({shape}).format)" for shape in ("()", "(2, 3)", "(2, 3, 4)")))
D = "d = jax.devices()[0]\n"
TABLE["jax.device_put"] = (
    cases(
        "f(x)",
        D + "f(x, d)",
        "f({'a': x, 'b': (x,)})",
        D + "f(x, jax.sharding.SingleDeviceSharding(d)) * 2",
        D + "jax.jit(lambda x: f(x, d))(x)",
        "f(x, may_alias=True)",
        D + "f([x, x], [d, None])",
        x=floats(3),
    )
    + check(
        "f(np.arange(3))",
        "f(1)",
        "f(2.5)",
        "f(True)",
        "f([1, 2])",
        "f(None)",
        "f(np.float64(2))",
        D + "f(1, d).devices() == {d}",
        D + "f(jnp.ones(2), d).sharding == jax.sharding.SingleDeviceSharding(d)",
        "f(jax.random.key(0))",
        "f(jnp.arange(2)).committed",
        D + "f(jnp.arange(2), d).committed",
        D + "f(np.int8(3), device=d)",
        "f(jnp.asarray(1.))",
        "m = jax.make_mesh((1,), ('x',)); f(jnp.arange(4), jax.NamedSharding(m, jax.P('x')))",
    )
    + refused(
        "f('a')",
        "f(object())",
        "f(1, 'cpu')",
        "f(1, 3)",
        D + "f([1, 2], [d])",
        "m = jax.make_mesh((1,), ('x',)); f(1, jax.NamedSharding(m, jax.P('x')))",
    )
)
TABLE["jax.device_get"] = check(
    "f(jnp.arange(3))",
    "f({'a': jnp.ones(2), 'b': (1, None)})",
    "f(1.5)",
    "f(np.ones(2))",
    "f(jnp.float32(2))",
    "f('a')",
    "type(f(jnp.ones(2)))",
    "f(jnp.ones(2, 'bfloat16'))",
    "f([])",
) + check("jax.jit(f)(1.)")
TABLE["jax.block_until_ready"] = check(
    "f(jnp.arange(3))", "f({'a': jnp.ones(2), 'b': 'text'})", "f(3)", "f(None)", "f([np.ones(2)])"
) + case("jax.jit(lambda x: f(x * 2))(x)", x=floats(3), raises=None, modes="eager")
TABLE["jax.copy_to_host_async"] = check(
    "f(jnp.arange(3))", "f({'a': jnp.ones(2), 'b': 1})", "f(None)"
)
TABLE["jax.live_arrays"] = check(
    "x = jnp.ones(3); any(y is x for y in f())", "type(f())", "f('cpu') is not None"
)
TABLE["jax.clear_caches"] = check("f()", "g = jax.jit(lambda x: x + 1); a = g(1.); f(); g(a)")
TABLE["jax.typeof"] = check(
    "f(jnp.ones((2, 3)))",
    "f(1)",
    "f(1.5)",
    "f(True)",
    "f(np.ones(2, 'int8'))",
    "f(jnp.ones(2)).shape",
    "f(2j).dtype",
    "f(1).weak_type",
    "jax.jit(lambda x: (print, f(x).ndim)[1])(jnp.ones(2))",
    "str(f(jnp.ones((2, 3), 'bfloat16')))",
    "f(jax.random.key(0))",
    "f(jnp.ones(2)) == f(jnp.zeros(2))",
    "f(jnp.ones((2, 3))).size",
    "repr(f(jnp.ones(2)))",
    "type(f(1)).__name__",
    "f(jnp.ones(2)).update(shape=(3,))",
) + refused("f('a')", "f([1, 2])", "f(None)")
TABLE["jax.default_device"] = check(
    D + "with f(d):\n    x = jnp.ones(2)\nx.devices() == {d}",
    "with f(None):\n    x = jnp.ones(2)\nx",
    "with f('cpu'):\n    x = jnp.ones(2)\nx",
) + check("f(3).__enter__()", "with f('x'):\n    y = 1\ny", raises=None)

# --- checkify, export -----------------------------------------------------------------------------

c = "jax.experimental.checkify"
C = f"c = {c}; "
TABLE[f"{c}.check"] = check(
    C + "e, y = c.checkify(lambda x: (f(x > 0, 'bad'), x * 2)[1])(jnp.ones(())); e.get(), y",
    C
    + "e, y = c.checkify(lambda x: (f(x > 0, 'bad {}', x), x * 2)[1])(-jnp.ones(())); "
      "str(e.get()).split('\\n')[0], y",
    C + "e, y = jax.jit(c.checkify(lambda x: (f(x > 0, 'bad'), x)[1]))(-1.); y",
) + refused(
    "f(jnp.array(1.) > 2, 'bad')", "jax.jit(lambda x: (f(x > 0, 'a'), x)[1])(1.)", "f(1., 'x')"
)
TABLE[f"{c}.checkify"] = check(
    *(
        C + t
        for t in (
            "e, y = f(lambda x: jnp.log(x), errors=c.float_checks)(-1.); e.get() is None",
            "e, y = f(lambda x: x[5], errors=c.index_checks)(jnp.ones(3)); e.get() is None",
            "e, y = f(lambda x: 1 / x, errors=c.div_checks)(jnp.zeros(2)); e.get() is None",
            "e, y = f(lambda x: x * 2)(jnp.ones(3)); e.get(), y",
            "e, y = jax.vmap(f(lambda x: jnp.log(x), errors=c.nan_checks))(jnp.array([1., "
            "-1.])); e.get() is None",
            "e, y = f(lambda x: lax.fori_loop(0, 3, lambda i, c: c / (1. - i), x), "
            "errors=c.all_checks)(1.); e.get() is None",
        )
    )
) + refused("f(3)(1)")
for name in (
    "float_checks",
    "all_checks",
    "automatic_checks",
    "div_checks",
    "index_checks",
    "nan_checks",
    "user_checks",
):
    TABLE[f"{c}.{name}"] = check(
        "type(f).__name__",
        "len(f)",
        "sorted(e.__name__ for e in f)",
        C + "e, y = c.checkify(jnp.log, errors=f)(-1.); e.get() is None",
    )
TABLE[f"{c}.ErrorCategory"] = check("f.__name__")
TABLE[f"{c}.Error"] = check(
    "f.__name__", C + "e, _ = c.checkify(lambda x: x)(1.); isinstance(e, f), e.get(), e.throw()"
) + refused(C + "e, _ = c.checkify(jnp.log, errors=c.nan_checks)(-1.); e.throw()")
TABLE[f"{c}.check_error"] = check(C + "e, _ = c.checkify(lambda x: x)(1.); f(e)") + refused(
    C + "e, _ = c.checkify(jnp.log, errors=c.nan_checks)(-1.); f(e)", "f(3)"
)
TABLE[f"{c}.debug_check"] = check(C + "f(True, 'a')") + check(
    C + "e, _ = c.checkify(lambda x: (f(x > 0, 'a'), x)[1])(jnp.float32(-1)); e.get() is None"
)
TABLE[f"{c}.init_error"] = check("f.get()", "type(f).__name__")
TABLE[f"{c}.JaxRuntimeError"] = check("f.__name__", "f is jax.errors.JaxRuntimeError")
e = "jax.export"
E = (
    "e = __import__('importlib').import_module(jax.__name__ + '.export'); x = "
    "jax.ShapeDtypeStruct((3,), 'float32'); "
)
TABLE[f"{e}.export"] = check(
    E + "f(jax.jit(jnp.sin))(x).call(jnp.ones(3))",
    E + "f(jax.jit(lambda x: x * 2))(x).out_avals",
    E + "f(jax.jit(lambda x: x * 2))(x).in_avals",
    E + "f(jax.jit(jnp.sin))(x).platforms",
    E + "f(jax.jit(jnp.sin))(x).fun_name",
    E
    + "s = e.symbolic_shape('a'); f(jax.jit(lambda x: x * 2))(jax.ShapeDtypeStruct(s, "
      "'float32')).call(jnp.ones(4))",
    E + "f(jax.jit(jnp.sin))(x).in_tree",
) + refused(
    E + "f(lambda x: x)(x)",
    E + "f(jax.jit(jnp.sin))(x).call(jnp.ones(4))",
    E + "f(jax.jit(jnp.sin))(x).call(jnp.ones(3, int))",
)
TABLE[f"{e}.Exported"] = check(
    "f.__name__",
    E + "isinstance(e.export(jax.jit(jnp.sin))(x), f)",
    E + "e.export(jax.jit(jnp.sin))(x).nr_devices",
    E + "jax.jit(e.export(jax.jit(jnp.sin))(x).call)(jnp.ones(3))",
    E + "e.export(jax.jit(jnp.sin))(x).has_vjp()",
)
TABLE[f"{e}.symbolic_shape"] = check(
    "f('a, b')",
    "type(f('a')[0]).__name__",
    "f('2*a, b+1')",
    "f('a, 3')",
    "f('a, ...', like=(2, 3, 4))",
    "a, b = f('a, b'); a + b, a * 2, a == a, a - a",
    "a, = f('a'); a >= 1",
    "f('')",
    "a, = f('a', constraints=['a >= 4']); a >= 3",
    "f('a, b') == f('a, b')",
    "a, = f('a'); str(a * a + 1)",
    "a, = f('a'); (2 * a) // 2",
    "a, = f('a'); (a + 4) % 2",
) + refused("f('a a')", "f('a, ...')", "a, = f('a'); bool(a > 5)")
TABLE[f"{e}.is_symbolic_dim"] = check(
    "f(3)", E + "f(e.symbolic_shape('a')[0])", E + "f(e.symbolic_shape('a, 3')[1])", "f('a')"
)
TABLE[f"{e}.symbolic_args_specs"] = check(
    "f(jnp.ones((2, 3)), 'a, b')",
    "f({'x': jnp.ones(2), 'y': jnp.ones(3)}, {'x': 'a', 'y': None})",
    "f((jnp.ones((2, 3)), jnp.ones(2)), ('a, ...', None))",
)
TABLE[f"{e}.SymbolicScope"] = check(
    "f.__name__", "isinstance(f(), f)", E + "a, = e.symbolic_shape('a', scope=f()); a + 1"
)
TABLE[f"{e}.DisabledSafetyCheck"] = check(
    "f.__name__", "isinstance(f.platform(), f)", "f.custom_call('g') == f.custom_call('g')"
)
TABLE[f"{e}.default_export_platform"] = check("f()")
for name in ("minimum", "maximum"):
    TABLE[f"{e}.{name}_supported_calling_convention_version"] = check("type(f)")
TABLE[f"{e}.register_namedtuple_serialization"] = check(
    "from collections import namedtuple\nQ = namedtuple('Q', 'x y'); f(Q, serialized_name='t.Q' "
    "+ str(id(Q))) is Q"
)
TABLE[f"{e}.register_pytree_node_serialization"] = check("f.__name__")
