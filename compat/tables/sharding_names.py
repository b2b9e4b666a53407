"""Meshes, shardings, shard_map and pmap, on one device."""

from __future__ import annotations

from compat.spec import Case, cases, check, floats

TABLE: dict[str, list[Case]] = {}
S = "jax.sharding"
M = "m = jax.make_mesh((1,), ('x',)); P = jax.P; d = jax.devices()[0]; S = jax.sharding\n"
M2 = "m = jax.make_mesh((1, 1), ('x', 'y')); P = jax.P; d = jax.devices()[0]; S = jax.sharding\n"


def meshed(*texts: str, raises: bool | None = False, mesh: str = M) -> list[Case]:
    return check(*(mesh + text for text in texts), raises=raises)


SPECS = (
    "f()",
    "f('x')",
    "f(None, 'x')",
    "f(('x', 'y'), None)",
    "f('x', None, 'y')",
    "f('x') == f('x')",
    "f('x') == f('x', None)",
    "f('x') == f(('x',))",
    "hash(f('x')) == hash(f('x'))",
    "repr(f('x', None))",
    "str(f(('x', 'y')))",
    "len(f('x', None))",
    "f('x', None)[0]",
    "list(f(None, 'x'))",
    "isinstance(f(), tuple)",
    "f(f.UNCONSTRAINED, 'x')",
    "f('x') + f('y')",
    "tuple(f('x'))",
    "jax.tree.leaves(f('x'))",
    "f(()) == f(None)",
    "f('x', unreduced={'y'})",
    "f('x').unreduced",
    "{f('x'): 1}[f('x')]",
)
TABLE[f"{S}.PartitionSpec"] = check(*SPECS) + check(
    "f('x', 'x')", "f(1)", "f(['x'])", "f(a=1)", raises=None
)
TABLE["jax.P"] = check(*SPECS[:12], "f is jax.sharding.PartitionSpec")
TABLE[f"{S}.PartitionSpec.UNCONSTRAINED"] = check("repr(f)", "jax.P(f) == jax.P(f)")
NAMED = (
    "f(m, P('x')).spec",
    "f(m, P('x')).mesh == m",
    "f(m, P('x')) == f(m, P('x'))",
    "f(m, P()) == f(m, P('x'))",
    "f(m, P('x')).shard_shape((4,))",
    "f(m, P()).is_fully_replicated",
    "f(m, P('x')).device_set == {d}",
    "hash(f(m, P())) == hash(f(m, P()))",
    "f(m, P('x')).is_fully_addressable",
    "f(m, P('x')).memory_kind is None or isinstance(f(m, P()).memory_kind, str)",
    "f(m, P('x')).devices_indices_map((4,))[d]",
    "f(m, P('x')).is_equivalent_to(f(m, P('x', None)), 2)",
    "jax.device_put(jnp.arange(4), f(m, P('x'))).sharding.spec",
    "jnp.zeros(4, device=f(m, P('x'))).sharding == f(m, P('x'))",
    "f(m, P('x')).num_devices",
    "f(m, P('x')).with_spec(P()).spec if hasattr(f, 'with_spec') else 0",
    "jax.jit(lambda x: x * 2, out_shardings=f(m, P('x')))(jnp.ones(4))",
    "jax.jit(lambda x: x * 2, in_shardings=f(m, P('x')))(jnp.ones(4))",
)
TABLE[f"{S}.NamedSharding"] = meshed(*NAMED) + meshed(
    "f(m, P('z'))",
    "f(m, P('x', 'x'))",
    "f(m)",
    "f(P('x'), m)",
    "f(m, 'x')",
    "f(m, P('x', None, None)).shard_shape((4,))",
    raises=None,
)
TABLE["jax.NamedSharding"] = meshed(*NAMED[:6], "f is S.NamedSharding")
TABLE[f"{S}.SingleDeviceSharding"] = meshed(
    "f(d) == f(d)",
    "f(d).device_set == {d}",
    "f(d).is_fully_replicated",
    "f(d).shard_shape((2, 3))",
    "hash(f(d)) == hash(f(d))",
    "jax.device_put(1., f(d)).sharding == f(d)",
    "f(d).is_equivalent_to(S.NamedSharding(m, P()), 2)",
    "f(d).num_devices",
    "isinstance(f(d), S.Sharding)",
)
TABLE[f"{S}.Sharding"] = meshed(
    "isinstance(jnp.ones(2).sharding, f)",
    "isinstance(S.NamedSharding(m, P()), f)",
    "isinstance(P(), f)",
    "f.__name__",
)
MESHES = (
    "f(np.array([d]), ('x',)).shape",
    "f(np.array([[d]]), ('x', 'y')).axis_names",
    "f(np.array([d]), 'x').axis_names",
    "f([d], ('x',)).size",
    "f(np.array([d]), ('x',)) == f(np.array([d]), ('x',))",
    "f(np.array([[d]]), ('x', 'y')).axis_sizes",
    "f(np.array([[d]]), ('x', 'y')).devices.shape",
    "with f(np.array([d]), ('x',)) as q:\n    n = q.axis_names\nn",
    "f(np.array([d]), ('x',)).empty",
    "f(np.array([d]), ('x',)).axis_types",
    "f(np.array([d]), ('x',)).is_multi_process",
    "repr(f([d], ('x',)))",
    "f([d], ('x',)).abstract_mesh",
    "f([d], ('x',), axis_types=(S.AxisType.Explicit,)).axis_types",
    "f([d], ('x',)).local_mesh == f([d], ('x',))",
    "f([d], ('x',)).devices.flat[0] == d",
    "f([d], ('x',)).shape_tuple",
)
TABLE[f"{S}.Mesh"] = meshed(*MESHES) + meshed(
    "f(np.array([[d]]), ('x',))",
    "f(np.array([d]), ('x', 'y'))",
    "f(np.array([[d]]), ('x', 'x'))",
    "f([d], (3,))",
    "f(3, ('x',))",
    raises=None,
)
TABLE[f"{S}.AbstractMesh"] = meshed(
    "f((2, 3), ('x', 'y'))",
    "f((2,), ('x',)).shape",
    "f((2, 3), ('x', 'y')).size",
    "f((2,), ('x',)) == f((2,), ('x',))",
    "f((2,), ('x',)).axis_names",
    "f((2,), ('x',)).axis_types",
    "f((2,), ('x',), axis_types=(S.AxisType.Explicit,)).axis_types",
    "S.NamedSharding(f((2,), ('x',)), P('x')).spec",
    "f((2,), ('x',)).empty",
    "f((2, 3), ('x', 'y')).axis_sizes",
) + meshed("f((2, 3), ('x',))", "f((2, 2), ('x', 'x'))", raises=None)
TABLE[f"{S}.AxisType"] = check(
    "f.Auto, f.Explicit, f.Manual",
    "[t.name for t in f]",
    "f.Auto == f.Auto",
    "f['Auto']",
    "repr(f.Explicit)",
) + check("f.Nothing", "f('x')", raises=True)
TABLE[f"{S}.AbstractDevice"] = check("f.__name__")
TABLE["jax.make_mesh"] = meshed(
    "f((1,), ('x',)).shape",
    "f((1, 1), ('x', 'y')).axis_names",
    "f((1,), ('x',), devices=[d]).devices.shape",
    "f((1,), ('x',)).axis_types",
    "f((1,), ('x',), axis_types=(S.AxisType.Auto,)).axis_types",
    "f((1, 1), ('a', 'b')).size",
    "type(f((1,), ('x',))).__name__",
    "f((1,), ('x',)) == f((1,), ('x',))",
) + meshed(
    "f((3000,), ('x',))",
    "f((1, 1), ('x',))",
    "f((1,), ('x',), axis_types=())",
    "f(1, 'x')",
    raises=None,
)
for name in ("jax.set_mesh", f"{S}.set_mesh"):
    TABLE[name] = meshed(
        "with f(m):\n    y = S.get_abstract_mesh().axis_names\ny",
        "with f(m):\n    y = jax.jit(lambda x: x * 2)(jnp.ones(4))\ny",
        "with f(m):\n    y = jax.reshard(jnp.arange(4), P('x'))\ny",
        "with f(m):\n    y = S.get_mesh() == m\ny",
    ) + meshed("f(3)", "with f('x'):\n    y = 1\ny", raises=None)
TABLE[f"{S}.get_mesh"] = meshed("f().empty", "with jax.set_mesh(m):\n    y = f() == m\ny") + check(
    "jax.jit(lambda x: (jax.sharding.get_mesh(), x)[1])(1.)", raises=None
)
TABLE[f"{S}.get_abstract_mesh"] = meshed(
    "f().empty",
    "f().axis_names",
    "with jax.set_mesh(m):\n    y = f().shape\ny",
    "with S.use_abstract_mesh(S.AbstractMesh((2,), ('x',))):\n    y = f().shape\ny",
)
TABLE[f"{S}.use_abstract_mesh"] = meshed(
    "with f(S.AbstractMesh((2,), ('x',))):\n    y = S.get_abstract_mesh().axis_names\ny",
    "with f(m.abstract_mesh):\n    y = S.get_abstract_mesh().size\ny",
) + meshed("with f(3):\n    y = 1\ny", raises=None)
EXPLICIT = (
    "e = jax.make_mesh((1,), ('x',), axis_types=(jax.sharding.AxisType.Explicit,)); P = jax.P; "
    "S = jax.sharding; d = jax.devices()[0]\n"
)
for name in ("jax.reshard", f"{S}.reshard"):
    TABLE[name] = meshed(
        "f(jnp.arange(4), S.NamedSharding(e, P('x')))",
        "jax.typeof(f(jnp.arange(4.), S.NamedSharding(e, P('x'))))",
        "with jax.set_mesh(e):\n    y = f(jnp.arange(4), P('x')) * 2\ny",
        "f({'a': jnp.ones(2)}, S.NamedSharding(e, P()))",
        "with jax.set_mesh(e):\n    y = jax.grad(lambda x: f(x, P('x')).sum())(jnp.ones(2))\ny",
        mesh=EXPLICIT,
    ) + meshed(
        "f(jnp.arange(4), P('x'))",
        "f(jnp.arange(4), 3)",
        "f(jnp.arange(4), S.NamedSharding(e, P(None, 'x')))",
        raises=None,
        mesh=EXPLICIT,
    )
for name in ("auto_axes", "explicit_axes"):
    TABLE[f"{S}.{name}"] = check("f.__name__") + (
        meshed(
            "with jax.set_mesh(e):\n    y = f(lambda x: x * 2, "
            "out_sharding=P('x'))(jnp.ones(4))\ny",
            mesh=EXPLICIT,
        )
        if name == "auto_axes"
        else meshed(
            "with jax.set_mesh(m):\n    y = jax.jit(lambda x: f(lambda x: x * 2, "
            "in_sharding=P('x'))(x))(jnp.ones(4))\ny"
        )
    )
TABLE[f"{S}.make_single_device_sharding"] = meshed(
    "f(d).device_set == {d}", "f(d).is_fully_replicated", raises=None
)
AUTO = M.replace("('x',))", "('x',), axis_types=(jax.sharding.AxisType.Auto,))")
SHARD = (
    "f(lambda x: x * 2, mesh=m, in_specs=P('x'), out_specs=P('x'))(x)",
    "f(lambda x: lax.psum(x, 'x'), mesh=m, in_specs=P('x'), out_specs=P())(x)",
    "jax.jit(f(lambda x: x.sum()[None], mesh=m, in_specs=(P('x'),), out_specs=P('x')))(x)",
    "f(lambda x, y: x @ y.T, mesh=m, in_specs=(P('x', None), P(None, None)), out_specs=P('x', "
    "None))(x, x)",
    "f(lambda x: lax.all_gather(x, 'x', tiled=True), mesh=m, in_specs=P('x'), out_specs=P('x'))(x)",
    "f(lambda x: lax.axis_index('x') + x, mesh=m, in_specs=P('x'), out_specs=P('x'))(x)",
    "f(lambda d: {'b': d['a']}, mesh=m, in_specs=({'a': P('x')},), out_specs={'b': "
    "P('x')})({'a': x})",
)
BAD = (
    "f(lambda x: x, mesh=m, in_specs=P('z'), out_specs=P())(jnp.ones(4))",
    "f(lambda x: x, mesh=m, in_specs=P('x'), out_specs=P())(jnp.ones(4))",
    "f(lambda x: x, mesh=m, in_specs=(P(), P()), out_specs=P())(jnp.ones(4))",
    "f(lambda x: x, mesh=3, in_specs=P(), out_specs=P())(jnp.ones(4))",
    "f(lambda x: x, mesh=m, in_specs=P('x'), out_specs=(P(), P()))(jnp.ones(4))",
    "f(lambda x: x, mesh=m, in_specs=P(None, None, 'x'), out_specs=P())(jnp.ones(4))",
    "f(3, mesh=m, in_specs=P(), out_specs=P())(1.)",
)
TABLE["jax.shard_map"] = cases(*(AUTO + t for t in SHARD), x=floats(2, 3), vmap=False) + meshed(
    *BAD, raises=None
)
SET = AUTO + "with jax.set_mesh(m): y = "
TABLE["jax.smap"] = cases(*(SET + text + "\ny" for text in (
    "f(lambda x: x * 2, in_axes=0, out_axes=0, axis_name='x')(x)",
    "f(lambda x: lax.psum(x, 'x'), in_axes=1, out_axes=None, axis_name='x')(x)",
    "jax.jit(f(lambda x, y: x.sum() * y, in_axes=(1, None), out_axes=0, axis_name='x'))(x, x[0])",
    "f(in_axes=({'a': 0},), out_axes={'b': 1}, axis_name='x')(lambda d: {'b': d['a']})({'a': x})",
)), x=floats(2, 3), modes="eager") + check(*(SET + text + "\ny" for text in (
    "f(lambda x: x, in_axes=0, out_axes=0, axis_name='z')(jnp.ones(4))",
    "f(lambda x: x, in_axes=0, out_axes=0, axis_name=('x',))(jnp.ones(4))",
    "f(lambda x: x, in_axes=0, out_axes=None, axis_name='x')(jnp.ones(4))",
    "f(lambda x: x, in_axes=3, out_axes=0, axis_name='x')(jnp.ones(4))",
    "f(lambda x: x, in_axes='a', out_axes=0, axis_name='x')(jnp.ones(4))",
    "f(lambda x: x, in_axes=0, out_axes='a', axis_name='x')(jnp.ones(4))",
    "f(lambda x: x, in_axes=(0.5,), out_axes=0, axis_name='x')(jnp.ones(4))",
    "f(lambda x: x, out_axes=0, axis_name='x')(jnp.ones(4))",
    "f(3, in_axes=0, out_axes=0, axis_name='x')(jnp.ones(4))")), raises=True) + check(
        "f(lambda x: x, in_axes=0, out_axes=0, axis_name='x')(jnp.ones(4))", raises=True)
TABLE["jax.experimental.shard_map.shard_map"] = cases(
    *(AUTO + t for t in SHARD[:4]), x=floats(2, 3), vmap=False, modes="eager"
) + meshed(*BAD[:3], raises=None)
TABLE["jax.pmap"] = cases(
    "f(lambda x: x * 2)(x)",
    "f(lambda x: lax.psum(x, 'i'), axis_name='i')(x)",
    "f(lambda x, n: x * n, in_axes=(0, None))(x, 3.)",
    "f(lambda x, n: x * n, static_broadcasted_argnums=1)(x, 3)",
    "f(lambda d: d['a'].sum())({'a': x})",
    "f(lambda x: (x, x.mean()))(x)",
    x=floats(1, 3),
    vmap=False,
    modes="eager jit grad",
) + check(
    "f(lambda x: x)(jnp.ones((5000, 2)))",
    "f(3)",
    "f(lambda x: x)(1.)",
    "f(lambda x, y: x)(jnp.ones(1), jnp.ones(2))",
    raises=True,
)
DEV = "m = jax.make_mesh((1,), ('x',)); s = jax.NamedSharding(m, jax.P('x')); "
TABLE["jax.make_array_from_callback"] = check(
    DEV + "f((4,), s, lambda i: np.arange(4)[i])",
    DEV + "f((4, 2), s, lambda i: np.ones((4, 2), 'float32')[i]).sharding == s",
    DEV + "f((2,), s, lambda i: np.arange(2.)[i], dtype='float32')",
    DEV + "f((), jax.NamedSharding(m, jax.P()), lambda i: np.float32(3))",
) + check(
    DEV + "f((4,), s, lambda i: np.arange(3))",
    DEV + "f((4,), 3, lambda i: np.arange(4))",
    raises=None,
)
TABLE["jax.make_array_from_single_device_arrays"] = check(
    DEV + "f((4,), s, [jnp.arange(4)])", DEV + "f((4,), s, [jnp.arange(4.)]).sharding == s"
) + check(
    DEV + "f((5,), s, [jnp.arange(4)])",
    DEV + "f((4,), s, [])",
    DEV + "f((4,), s, [jnp.arange(4)] * 2)",
    raises=None,
)
TABLE["jax.make_array_from_process_local_data"] = check(
    DEV + "f(s, np.arange(4))",
    DEV + "f(s, np.ones((2, 3), 'float32'), (2, 3))",
    DEV + "f(s, np.ones((2, 3), 'int8')).sharding == s",
) + check(DEV + "f(s, np.arange(4), (5,))", raises=None)
X = "jax.experimental"
TABLE[f"{X}.mesh_utils.create_device_mesh"] = check(
    "f((1,), jax.devices()[:1]).shape",
    "f((1, 1), devices=jax.devices()[:1]).ndim",
    "f([1], jax.devices()[:1])[0] == jax.devices()[0]",
    "type(f((1,), jax.devices()[:1]))",
) + check("f((3000,))", "f((2,), jax.devices()[:1])", raises=True)
TABLE[f"{X}.mesh_utils.create_hybrid_device_mesh"] = check(
    "f.__name__", "f((1, 1), (1, 1), process_is_granule=True).shape",
    "f((1,), (1, 1), process_is_granule=True).shape",
) + check("f((1,), (1,))", "f((1,), (2,), process_is_granule=True)", raises=True)
H = f"{X}.multihost_utils"
TABLE[f"{H}.process_allgather"] = check(
    "f(jnp.arange(3))",
    "f(np.ones(2))",
    "f(jnp.arange(3), tiled=True)",
    "f({'a': jnp.ones(2)})",
    "f(2.5)",
)
TABLE[f"{H}.sync_global_devices"] = check("f('a')")
TABLE[f"{H}.broadcast_one_to_all"] = check("f(jnp.arange(3))", "f({'a': np.ones(2)})", "f(3)")
TABLE[f"{H}.assert_equal"] = check("f(jnp.arange(3))", "f({'a': 1}, 'message')")
TABLE[f"{H}.reached_preemption_sync_point"] = check("f(1)", raises=None)
TABLE[f"{H}.global_array_to_host_local_array"] = meshed(
    "f(jax.device_put(jnp.arange(4), jax.NamedSharding(m, P('x'))), m, P('x'))"
)
TABLE[f"{X}.layout.Format"] = check("f.__name__", "f()", "f() == f()")
TABLE[f"{X}.layout.Layout"] = check(
    "f((0, 1)).major_to_minor", "f((0, 1)) == f((0, 1))", "f.__name__"
)
TABLE[f"{X}.layout.with_layout_constraint"] = check("f.__name__")
TABLE["jax.Shard"] = check(
    "s = jnp.arange(3).addressable_shards[0]; isinstance(s, f)",
    "jnp.arange(3).addressable_shards[0].data",
    "jnp.arange(3).addressable_shards[0].index",
    "jnp.arange(3).addressable_shards[0].replica_id",
    "jnp.arange(3).addressable_shards[0].device == jax.devices()[0]",
    "f.__name__",
)
