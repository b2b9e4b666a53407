"""The functions of jax.lax that make, move, join and convert."""

from __future__ import annotations

from compat.spec import bools, case, cases, check, floats, ints, shaped, special

MANY = "float32 int8 bool complex64 bfloat16"
MOVE = {"tol": "exact"}

TABLE = {
    "jax.lax.broadcast": cases("f(x, (2, 3))", "f(x, ())", "f(x, (0,))", x=shaped(2), **MOVE)
    + case("f(x, (2,))", x=shaped(2, 2), dtypes=MANY, modes="eager jit")
    + case("f(3., (2,))") + case("f(x, (-1,))", x=floats(2), raises=True)
    + case("f(x, [2])", x=floats(), **MOVE),
    "jax.lax.broadcast_in_dim": cases(
        "f(x, (2, 3), (0,))", "f(x, (3, 2), (1,))", "f(x, (2, 2), [1])",
        "f(x, shape=(4, 2, 3), broadcast_dimensions=(1,))", x=shaped(2), tol="accumulate")
    + cases("f(x, (5, 3), (0, 1))", "f(x, (2, 5, 3), (1, 2))", x=shaped(1, 3), tol="accumulate",
            dtypes="float32 complex64")
    + case("f(x, (2, 0), ())", x=floats()) + case("f(2, (3,), ())")
    + cases("f(x, (3,), (0,))", "f(x, (2,), (1,))", "f(x, (2, 2), ())", "f(x, (), ())",
            "f(x, (2, -1), (0,))", x=floats(2), raises=True)
    + case("f(x, (2, 3, 2), (2, 0))", x=floats(2, 2), modes="eager jit vmap"),
    "jax.lax.broadcast_like": case("f(x, y)", x=shaped(3), y=shaped(2, 3), dtypes=MANY)
    + case("f(x, y)", x=floats(1, 3), y=floats(2, 3)) + case("f(1, y)", y=floats(2))
    + case("f(x, y)", x=floats(2), y=floats(2, 3), raises=True)
    + case("f(x, y)", x=floats(2, 3), y=floats(3), raises=True),
    "jax.lax.broadcast_shapes": check("f((3, 1), (4,))", "f((2,))", "f((0,), (1,))",
                                      "f((2, 1), (1, 3), (5, 1, 1))")
    + check("f((2,), (3,))", "f((0,), (2,))", raises=True),
    "jax.lax.broadcast_to_rank": cases("f(x, 2)", "f(x, 4)", "f(x, rank=3)", x=shaped(2, 3))
    + case("f(x, 1)", x=floats(2, 3)),
    "jax.lax.broadcasted_iota": cases(
        "f(jnp.int32, (2, 3), 1)", "f('float32', (2, 3), 0)", "f(jnp.uint8, (300,), 0)",
        "f(jnp.complex64, (3,), 0)", "f(jnp.bfloat16, (2, 2), dimension=1)", "f(int, (0, 2), 0)",
        modes="eager jit")
    + cases("f(bool, (2,), 0)", "f(int, (2,), 1)", "f(int, (2,), -1)", "f(int, (), 0)",
            "f(int, (-2,), 0)", raises=True),
    "jax.lax.iota": cases("f(jnp.int32, 4)", "f('float32', 3)", "f(jnp.int8, 0)", "f(float, 2)",
                          modes="eager jit")
    + cases("f(jnp.int32, -1)", "f(bool, 2)", "f(jnp.int32, 2.5)", raises=True),
    "jax.lax.bitcast_convert_type": case("f(x, jnp.int32)", x=shaped(2, 3), tol="exact",
                                         modes="eager jit vmap")
    + cases("f(x, jnp.uint8)", "f(x, jnp.float16)", "f(x, 'int32')", "f(x, jnp.float32)",
            x=special(), modes="eager jit", tol="exact")
    + case("f(x, jnp.float32)", x=ints(3, 4, high=99, dtype="uint8"), modes="eager jit vmap")
    + case("f(x, jnp.int8)", x=shaped(2), dtypes="int16 uint8 bfloat16", modes="eager jit")
    + case("f(x, jnp.uint8)", x=shaped(2), dtypes="float64 int64", modes="eager jit")
    + case("f(x, jnp.float64)", x=ints(2, 8, dtype="uint8"), x64=True, modes="eager jit")
    + cases("f(x, jnp.int32)", "f(x, bool)", "f(x, jnp.complex64)",
            x=ints(3, dtype="uint8"), raises=True)
    + case("f(x, jnp.uint8)", x=bools(3), raises=True) + case("f(x, bool)", x=bools(3)),
    "jax.lax.collapse": cases("f(x, 0, 2)", "f(x, 1)", "f(x, 1, 3)", "f(x, -2, None)", "f(x, 1, 1)",
                              "f(x, start_dimension=0, stop_dimension=3)", x=shaped(2, 3, 4))
    + case("f(x, 2, 1)", x=floats(2, 3, 4), raises=True) + case("f(x, 0)", x=floats(0, 3)),
    "jax.lax.concatenate": cases("f([x, y], 0)", "f((x, y, x), dimension=0)", x=shaped(2, 3),
                                 y=shaped(1, 3), dtypes="float32 complex64")
    + case("f([x, y], 1)", x=shaped(2, 0), y=shaped(2, 3), dtypes=MANY, modes="eager jit")
    + case("f(x, 0)", x=floats(2, 3)) + case("f([x], 0)", x=floats(2))
    + cases("f([x, y], 1)", "f([x, y], -1)", "f([x, y], 2)", "f([], 0)", "f([x, y[0]], 0)",
            "f([x, y.astype(int)], 0)", x=floats(2, 3), y=floats(1, 3), raises=True),
    "jax.lax.convert_element_type": cases(
        "f(x, jnp.int32)", "f(x, jnp.float16)", "f(x, 'bool')", "f(x, jnp.complex64)",
        "f(x, float)", "f(x, jnp.uint8)", x=shaped(2, 3), dtypes="float32 int32 bool", **MOVE)
    + cases("f(x, jnp.int8)", "f(x, jnp.bfloat16)", "f(x, jnp.uint32)", x=special(),
            modes="eager jit")
    + case("f(x, jnp.float32)", x=shaped(3), dtypes="bfloat16 float16 complex64 float8_e4m3fn")
    + cases("f(1.5, int)", "f(True, jnp.float32)", "f(3, jnp.complex64)")
    + cases("f(x, None)", "f(x, str)", "f('a', jnp.float32)", x=floats(2), raises=True),
    "jax.lax.dtype": check("f(jnp.ones(2, jnp.int8))", "f(1)", "f(1.)", "f(True)", "f(1j)",
                           "f(np.float16(1))")
    + check("f('a')", "f([1])", "f(None)", raises=True),
    "jax.lax.empty": case("f((2, 3), jnp.float32).shape") + case("f((2,), jnp.int8).dtype")
    + case("f((0,), 'bool')"),
    "jax.lax.expand_dims": cases("f(x, (0,))", "f(x, (0, -1))", "f(x, (1, 2))", "f(x, ())",
                                 "f(x, dimensions=[2])", x=shaped(2, 3))
    + cases("f(x, (0, 0))", "f(x, (4,))", "f(x, (0, -3))", x=floats(2), raises=True),
    "jax.lax.full": cases("f((2, 3), 7)", "f((2,), 1.5)", "f((), 2)", "f((2,), 1, jnp.float32)",
                          "f(3, 1.)", "f((2,), True)", "f((0,), 1j)", "f((2,), 2.7, jnp.int32)",
                          modes="eager jit")
    + case("f((2, 3), x)", x=shaped(), dtypes="float32 int8 bool", tol="accumulate")
    + case("f((2,), x)", x=1.5)
    + cases("f((2,), jnp.ones(2))", "f((-1,), 1)", "f((2.5,), 1)", "f((2,), 'a')", raises=True),
    "jax.lax.full_like": case("f(x, 3)", x=shaped(2, 3), dtypes=MANY, modes="eager jit vmap")
    + cases("f(x, 2.5)", "f(x, 1, dtype=jnp.int8)", "f(x, 1, shape=(4,))", "f(2., 3)",
            x=shaped(2, 3), dtypes="float32 int32", modes="eager jit")
    + case("f(1, 2.5)") + case("f([1], 2)", raises=True),
    "jax.lax.pad": cases("f(x, 0., [(1, 2, 0), (0, 0, 1)])", "f(x, 1., [(-1, 0, 0), (1, -1, 0)])",
                         "f(x, 2., [(-1, -1, 1), (0, -2, 2)])", "f(x, 0., ((0, 0, 0),) * 2)",
                         "f(x, 0., [(-2, 3, 0), (3, -2, 1)])", x=floats(3, 4), tol="accumulate")
    + case("f(x, v, [(1, 1, 1)])", x=shaped(3), v=shaped(), dtypes="float32 complex64",
           tol="accumulate")
    + case("f(x, 0, [(1, 0, 0)])", x=shaped(2), dtypes="int32", modes="eager jit")
    + case("f(x, x[0], [(1, 0, 2)])", x=shaped(2), dtypes="bool int8 bfloat16", modes="eager jit")
    + case("f(x, 0., [(2, 1, 3)])", x=floats(0)) + case("f(x, 0., [])", x=floats())
    + cases("f(x, 0, [(0, 0, 0)])", "f(x, 0., [(0, 0, -1)])", "f(x, 0., [(-2, -2, 0)])",
            "f(x, 0., [])", "f(x, x, [(0, 0, 0)])", x=floats(3), raises=True),
    "jax.lax.reshape": cases("f(x, (3, 2))", "f(x, 6)", "f(x, (1, 6, 1))", "f(x, (6,), (1, 0))",
                             "f(x, (3, 2), dimensions=(0, 1))", x=shaped(2, 3))
    + case("f(x, (4, 2), (2, 0, 1))", x=shaped(2, 2, 2), dtypes=MANY, modes="eager jit vmap")
    + case("f(x, (0, 5))", x=floats(2, 0)) + case("f(x, ())", x=floats(1))
    + cases("f(x, (4,))", "f(x, (-1,))", "f(x, (6,), (0, 0))", "f(x, (2.5, 2))", x=floats(2, 3),
            raises=True),
    "jax.lax.rev": cases("f(x, (0,))", "f(x, (1, 0))", "f(x, ())", "f(x, dimensions=[1])",
                         x=shaped(2, 3))
    + case("f(x, (0,))", x=shaped(3), dtypes=MANY, modes="eager jit")
    + cases("f(x, (0, 0))", "f(x, (2,))", "f(x, (-1,))", x=floats(2, 3), raises=True),
    "jax.lax.shape_as_value": cases("f((2, 3))", "f(())", "f([4])"),
    "jax.lax.slice": cases("f(x, (0, 1), (2, 4))", "f(x, (0, 0), (3, 4), (2, 3))",
                           "f(x, (1, 1), (1, 4))", "f(x, [0, 0], limit_indices=[3, 1])",
                           x=shaped(3, 4))
    + case("f(x, (1,), (5,), (2,))", x=shaped(6), dtypes=MANY, modes="eager jit")
    + cases("f(x, (0, 0), (4, 4))", "f(x, (2, 0), (1, 4))", "f(x, (0, 0), (3, 4), (1,))",
            x=floats(3, 4), raises=True),
    "jax.lax.slice_in_dim": cases("f(x, 1, 3)", "f(x, None, None, 2)", "f(x, -2, None, axis=1)",
                                  "f(x, 0, -1, 1, 1)", "f(x, 2, 2)", x=shaped(3, 4))
    + cases("f(x, 2, 1)", "f(x, 0, 5)", "f(x, 0, 1, axis=2)", x=floats(3, 4),
            raises=True),
    "jax.lax.split": cases("f(x, (1, 2))", "f(x, [1, 0, 3], axis=1)", "f(x, (3,), 0)",
                           "f(x, (2, 2), -1)", x=shaped(3, 4))
    + case("f(x, (1, 1))", x=shaped(2), dtypes=MANY, modes="eager jit")
    + cases("f(x, (1, 1))", "f(x, (-1, 4))", "f(x, (3,), 2)", x=floats(3, 4), raises=True),
    "jax.lax.squeeze": cases("f(x, (0,))", "f(x, (0, 2))", "f(x, (-1,))", "f(x, ())",
                             x=shaped(1, 3, 1))
    + cases("f(x, (1,))", "f(x, (3,))", "f(x, (0, 0))", x=floats(1, 3, 1), raises=True),
    "jax.lax.stack": cases("f([x, y])", "f((x, y, x), 1)", "f([x, y], axis=-1)", x=shaped(2, 3),
                           y=shaped(2, 3), dtypes="float32 complex64")
    + case("f([x, x])", x=shaped(2), dtypes=MANY, modes="eager jit")
    + case("f([1., 2.])") + case("f([x])", x=floats()) + case("f(x, 1)", x=floats(2, 3))
    + case("f([x, x])", x=floats(0, 2))
    + cases("f([x, x[0]])", "f([x, x.astype(int)])", "f([x, x], 3)", "f([x, x[:1]])",
            x=floats(2, 3), raises=True),
    "jax.lax.unstack": cases("f(x)", "f(x, 1)", "f(x, axis=-1)", "f(x)[1]", x=shaped(2, 3),
                             dtypes="float32 complex64")
    + case("f(x)", x=shaped(2), dtypes=MANY, modes="eager jit") + case("f(x)", x=floats(0, 2))
    + cases("f(x, 2)", "f(x[0, 0])", x=floats(2, 3), raises=True),
    "jax.lax.stage": case("f(x)", x=shaped(2), dtypes=MANY) + cases("f(3)", "f(2.)", "f(True)")
    + case("f(x)", x=floats(2).numpy(), modes="eager") + cases("f('a')", "f([1])", raises=True),
    "jax.lax.stop_gradient": case("x * f(x)", x=shaped(2, 3), dtypes="float32 complex64")
    + case("f({'a': x, 'b': (x, x)})", x=floats(2)) + case("f(x)", x=ints(2))
    + case("f('a')", raises=True),
    "jax.lax.tile": cases("f(x, (2, 1))", "f(x, (1, 3))", "f(x, [2, 2])", "f(x, (0, 1))",
                          x=shaped(2, 3), tol="accumulate")
    + case("f(x, (2,))", x=shaped(2), dtypes=MANY, modes="eager jit") + case("f(3., ())")
    + case("f(x, (2,))", x=floats(2, 3), raises=True),
    "jax.lax.transpose": cases("f(x, (2, 0, 1))", "f(x, [0, 1, 2])", "f(x, permutation=(1, 2, 0))",
                               x=shaped(2, 3, 4))
    + case("f(x, (1, 0))", x=shaped(2, 3), dtypes=MANY, modes="eager jit")
    + case("f(x, ())", x=floats()) + case("f(x, (1, 0))", x=floats(0, 2))
    + cases("f(x, (0, 0))", "f(x, (0,))", "f(x, (-1, 0))", x=floats(2, 3), raises=True),
}
