"""jax.random: the bits are JAX's; what is computed from them by a logarithm and such, nearly."""

from __future__ import annotations

from compat.spec import Case, array, case, cases, check, floats, shaped

TABLE: dict[str, list[Case]] = {}

K = "k = jax.random.key(7); "
SEVERAL = "ks = jax.random.split(jax.random.key(7), 3); "


def drawn(
    *arguments: str,
    tol: str = "elementwise",
    shape: str = "(2, 3)",
    dtypes: str = "",
    wrong: str = "jnp.float32",
    x64: bool = True,
    **inputs,
) -> list[Case]:
    """A sampler ``f(key, arguments, shape, dtype)``: typed and raw keys, batches of keys, dtypes.

    Args:
      arguments: those before the shape, as text; the rows below use the first, the others are
        whole calls of their own.
      dtypes: those to ask for; ``wrong`` is one that is refused.
    """
    first, *others = arguments
    given = f", {first}" if first else ""
    rows = case(K + f"f(k{given}, shape={shape})", tol=tol)
    rows += cases(
        SEVERAL + f"jax.vmap(lambda k: f(k{given}, shape={shape}))(ks)",
        K + f"f(k{given}, shape=(0, 3))",
        tol=tol,
        modes="eager",
    )
    rows += case(
        "f(k" + given + f", shape={shape})", tol=tol, k=array([3, 5], "uint32"), grad=False
    )
    for dtype in dtypes.split():
        rows += case(
            K + f"f(k{given}, shape={shape}, dtype='{dtype}')",
            tol=tol,
            modes="eager",
            x64=dtype in ("float64", "int64", "uint64", "complex128"),
        )
    if x64:
        rows += case(K + f"f(k{given}, shape={shape})", tol=tol, modes="eager", x64=True)
    rows += cases(*others, tol=tol, modes="eager")
    rows += check(f"f(1.0{', ' + given.removeprefix(', ') if given else ''})", raises=True)
    if wrong:
        rows += case(
            K + f"f(k{given}, shape={shape}, dtype={wrong})", raises=None, tol=tol, modes="eager"
        )
    return rows


# --- keys -----------------------------------------------------------------------------------------

SEEDS = ("0", "42", "-1", "2**31", "2**32 - 1", "np.int64(7)", "np.uint32(9)", "True")
TABLE["jax.random.PRNGKey"] = (
    check(*(f"f({seed})" for seed in SEEDS), "f(1).dtype", "f(0, impl='rbg').shape")
    + check("f(2**40 + 3)", "f(-2**40)", x64=True)
    + case("f(s)", s=array(5, "int32"), grad=False)
    + case("f(s)", s=array(5, "uint8"), grad=False)
    + check("f(1.0)", "f(jnp.arange(2))", "f('a')", "f(0, impl='nothing')", "f()", raises=True)
)
COUNTING = (
    "i = f(key_shape=(2,), name='counting', tag='cnt', seed=lambda n: jnp.stack([n, n])"
    ".astype('uint32'), split=lambda k, shape: k + jnp.ones((*shape, 2), 'uint32'), "
    "random_bits=lambda k, width, shape: jnp.full(shape, k.sum()).astype(f'uint{width}'), "
    "fold_in=lambda k, n: k + n); k = jax.random.key(3, impl=i)\n")
TABLE["jax.extend.random.define_prng_impl"] = check(*(COUNTING + text for text in (
    "k", "k.dtype", "i", "jax.random.split(k)", "jax.random.fold_in(k, 2)",
    "jax.random.bits(k, (2,))", "jax.random.PRNGKey(1, impl=i)", "jax.random.key_impl(k) == i",
    "jax.vmap(lambda k: jax.random.bits(k, (2,)))(jax.random.split(k, 3))")))
TABLE["jax.random.key"] = (
    check(
        *(f"jax.random.key_data(f({seed}))" for seed in SEEDS),
        "f(0)",
        "repr(f(0))",
        "str(f(0).dtype)",
        "f(0).shape, f(0).ndim, f(0).size",
        "f(1) == f(1)",
        "f(1) != f(2)",
        "jax.random.split(f(0), 3)[1]",
        "jnp.stack([f(0), f(1)])",
        "jax.random.split(f(0), 4).reshape(2, 2).shape",
        "f(0).itemsize",
        "f(0).is_fully_addressable",
        "jnp.issubdtype(f(0).dtype, jax.dtypes.prng_key)",
        "isinstance(f(0), jax.Array)",
        "jnp.where(True, f(0), f(1))",
        "jax.random.split(f(0), 3).at[0].set(f(9))",
        "jax.tree.map(lambda k: k, {'k': f(3)})",
        "[jax.random.key_data(k) for k in jax.random.split(f(0), 2)]",
        "len(jax.random.split(f(0), 5))",
        "jnp.concatenate([jax.random.split(f(0), 2)] * 2)",
    )
    + case("jax.random.key_data(f(s))", s=array(5, "int32"), grad=False)
    + case(
        "jax.random.key_data(lax.scan(lambda k, _: (jax.random.split(k)[0], None), f(s), None, "
        "length=3)[0])",
        s=array(5, "int32"),
        grad=False,
    )
    + case(
        "jax.random.key_data(lax.cond(s > 3, lambda: f(1), lambda: f(2)))",
        s=array(5, "int32"),
        grad=False,
    )
    + check(
        "f(1.0)",
        "f(jnp.arange(2))",
        "f(0) + 1",
        "f(0) < f(1)",
        "np.asarray(f(0))",
        "-f(0)",
        "jnp.sum(f(0))",
        "f(0, impl='nothing')",
        "f(f(0))",
        "f(0).astype('uint32')",
        "float(f(0))",
        "hash(f(0))",
        raises=True,
    )
    + check("getattr(f(0).dtype, 'kind', None)")
)
TABLE["jax.random.split"] = (
    cases(
        "f(k)",
        "f(k, 3)",
        "f(k, (2, 3))",
        "f(k, num=0)",
        "a, b = f(k); f(b)[0]",
        "f(k, ())",
        k=array([3, 5], "uint32"),
        grad=False,
        tol="exact",
    )
    + cases(
        K + "jax.random.key_data(f(k, 5))",
        K + "jax.random.key_data(f(k, (2, 2)))",
        SEVERAL + "jax.random.key_data(jax.vmap(f)(ks))",
        SEVERAL + "jax.random.key_data(jax.vmap(lambda k: f(k, 3))(ks))",
    )
    + check(
        "k = jax.random.key(0); a, b = f(k); jax.random.key_data(b)",
        "f(jax.random.key(0)).dtype",
        "f(np.array([1, 2], 'uint32'))",
    )
    + check(
        "f(0)",
        "f(jnp.arange(2))",
        "f(jnp.zeros(3, 'uint32'))",
        "f(jax.random.key(0), 2.5)",
        "f(jax.random.split(jax.random.key(0)))",
        "f(jnp.zeros((2, 2), 'uint32'))",
        "f(None)",
        raises=True,
    )
)
TABLE["jax.random.fold_in"] = (
    cases(
        "f(k, 7)",
        "f(k, d)",
        "f(f(k, d), 2)",
        k=array([3, 5], "uint32"),
        d=array(4, "int32"),
        grad=False,
        tol="exact",
    )
    + cases("f(k, d)", k=array([3, 5], "uint32"), d=array(200, "uint8"), grad=False)
    + cases(
        K + "jax.random.key_data(f(k, 3))",
        K + "jax.random.key_data(f(k, 2**32 - 1))",
        K + "jax.random.key_data(f(k, np.int64(3)))",
        K + "jax.random.key_data(jax.vmap(lambda i: f(k, i))(jnp.arange(4)))",
        SEVERAL + "jax.random.key_data(jax.vmap(f, (0, None))(ks, 5))",
    )
    + check(
        "f(jax.random.key(0), True)", "jax.random.key_data(f(jax.random.key(0), jnp.uint32(3)))"
    )
    + check(
        "f(jax.random.key(0), 'a')",
        "f(0, 1)",
        "f(jax.random.key(0), jnp.arange(2))",
        "f(jax.random.split(jax.random.key(0)), 1)",
        raises=True,
    )
    + case("jax.random.key_data(f(jax.random.key(0), x))", x=1.5, raises=None)
)
TABLE["jax.random.key_data"] = (
    check(
        "f(jax.random.key(5))",
        "f(jax.random.PRNGKey(5))",
        "f(jax.random.split(jax.random.key(1), 3))",
        "f(jax.random.key(5, impl='threefry2x32')).dtype",
        "f(np.array([1, 2], 'uint32'))",
    )
    + case("f(jax.random.wrap_key_data(k))", k=array([3, 5], "uint32"), grad=False)
    + check("f(jnp.ones(2))", "f(0)", "f('a')", raises=True)
)
TABLE["jax.random.wrap_key_data"] = (
    check(
        "f(jnp.array([3, 5], 'uint32'))",
        "f(np.array([[3, 5], [1, 2]], 'uint32')).shape",
        "f(jnp.array([3, 5], 'uint32'), impl='threefry2x32') == f(jnp.array([3, 5], 'uint32'))",
        "f(jnp.zeros((2, 3, 2), 'uint32'))",
    )
    + case("jax.random.bits(f(k), (3,))", k=array([3, 5], "uint32"), grad=False)
    + check(
        "f(jnp.arange(2))",
        "f(jnp.zeros(3, 'uint32'))",
        "f(jnp.zeros((), 'uint32'))",
        "f(jax.random.key(0))",
        "f(jnp.zeros(2, 'uint32'), impl='nothing')",
        raises=True,
    )
)
TABLE["jax.random.key_impl"] = check(
    "f(jax.random.key(0))",
    "str(f(jax.random.key(0)))",
    "f(jax.random.PRNGKey(0))",
    "f(jax.random.split(jax.random.key(0)))",
    "f(jax.random.key(0, impl='threefry2x32'))",
    "jax.random.key_data(jax.random.key(5, impl=f(jax.random.key(0))))",
) + check("f(1)", "f(jnp.ones(2))", raises=True)
TABLE["jax.random.key_dtype"] = check(
    "f()",
    "f('threefry2x32')",
    "f() == jax.random.key(0).dtype",
    "f().name",
    "jnp.issubdtype(f(), jax.dtypes.prng_key)",
    "f(None).itemsize",
) + check("f('nothing')", raises=True)
TABLE["jax.random.clone"] = (
    check(
        "jax.random.key_data(f(jax.random.key(3)))",
        "f(jax.random.key(3))",
        "f(jax.random.PRNGKey(3))",
        "jax.random.key_data(f(jax.random.split(jax.random.key(3))))",
    )
    + case("f(k)", k=array([3, 5], "uint32"), grad=False)
    + check("f(1)", "f(jnp.ones(2))")
)

# --- bits, and what is a pure function of them ----------------------------------------------------

TABLE["jax.random.bits"] = (
    cases(
        "f(k)",
        "f(k, (2, 3))",
        "f(k, (5,), 'uint8')",
        "f(k, (5,), 'uint16')",
        "f(k, (0,))",
        "f(k, shape=(3,), dtype='uint32')",
        "jax.vmap(f)(jax.random.split(k, 3))",
        "f(k, (3, 1, 2, 1))",
        "f(k, (1001,))",
        k=array([3, 5], "uint32"),
        grad=False,
        tol="exact",
    )
    + check("f(jax.random.key(0), (3,), 'uint64')", "f(jax.random.key(0), (2, 2))", x64=True)
    + check(
        "f(jax.random.key(0), (2,), 'int32')",
        "f(jax.random.key(0), (2,), 'float32')",
        "f(jax.random.key(0), 3)",
        "f(3)",
        raises=None,
    )
)
TABLE["jax.random.uniform"] = (
    drawn(
        "",
        "f(jax.random.key(1), (3,), 'float32', -2, 5)",
        "f(jax.random.key(1), (2, 3), minval=jnp.arange(3.), maxval=10.)",
        "f(jax.random.key(1), 4)",
        "f(jax.random.key(1), (3,), 'float32', 3., 1.)",
        "f(jax.random.key(1), (3,), minval=-jnp.inf)",
        "f(jax.random.key(1), (1001,))",
        "f(jax.random.key(1), (3,), minval=1e-30, maxval=1e30)",
        tol="exact",
        dtypes="float32 float16 bfloat16 float64",
        wrong="jnp.int32",
    )
    + cases(
        "f(jax.random.key(1), (2, 3), minval=a, maxval=b)",
        "f(jax.random.key(1), (3,), 'float32', a, 9)",
        a=floats(3),
        b=floats(3, low=4, high=5),
    )
    + check("f(jax.random.key(0), (2,), minval=jnp.ones(3))", raises=True)
)
TABLE["jax.random.randint"] = (
    drawn(
        "minval=0, maxval=10",
        "f(jax.random.key(1), (5,), -5, 5)",
        "f(jax.random.key(1), (5,), 0, 256, 'uint8')",
        "f(jax.random.key(1), (5,), -128, 128, 'int8')",
        "f(jax.random.key(1), (3,), jnp.arange(3), 10)",
        "f(jax.random.key(1), (3,), 5, 5)",
        "f(jax.random.key(1), (3,), 5, 2)",
        "f(jax.random.key(1), (4,), -2**31, 2**31 - 1)",
        "f(jax.random.key(1), (), 0, jnp.array(7))",
        "f(jax.random.key(1), (3,), 0, 1000, 'int16')",
        "f(jax.random.key(1), 3, 0, 4)",
        "f(jax.random.key(1), (2, 3), jnp.zeros((2, 1), int), jnp.array([2, 3, 4]))",
        tol="exact",
        dtypes="int32 int8 uint8 int16 uint32 int64 uint64",
        wrong="jnp.float32",
    )
    + case(
        "f(k, (3,), a, a + 7)", k=array([3, 5], "uint32"), a=array([1, 2, 3], "int32"), grad=False
    )
    + check(
        "f(jax.random.key(0), (2,), 0)", "f(jax.random.key(0), (2,), jnp.arange(3), 9)", raises=True
    )
)
TABLE["jax.random.bernoulli"] = (
    drawn(
        "p=0.3",
        "f(jax.random.key(1))",
        "f(jax.random.key(1), 0.9, (4,))",
        "f(jax.random.key(1), jnp.array([0., 1., .5]))",
        "f(jax.random.key(1), jnp.array([.1, .5], 'bfloat16'), (3, 2))",
        "f(jax.random.key(1), 0.3, (4,), mode='high')",
        "f(jax.random.key(1), np.float32(.25), (4,))",
        tol="exact",
        wrong="",
    )
    + case("f(k, p, (2, 3))", k=array([3, 5], "uint32"), p=floats(3, low=0, high=1), grad=False)
    + check(
        "f(jax.random.key(0), jnp.ones(3), (2,))",
        "f(jax.random.key(0), 0.5, mode='x')",
        "f(jax.random.key(0), 'a')",
        "f(jax.random.key(0), 1j)",
        raises=True,
    )
)
TABLE["jax.random.rademacher"] = drawn(
    "",
    "f(jax.random.key(1), (5,), 'int8')",
    "f(jax.random.key(1))",
    tol="exact",
    dtypes="int32 float32 int8 float64",
    wrong="bool",
)
TABLE["jax.random.permutation"] = (
    cases(
        "f(k, 7)",
        "f(k, 1)",
        "f(k, 0)",
        "f(k, np.int32(5))",
        "f(k, jnp.arange(12).reshape(4, 3))",
        "f(k, jnp.arange(12).reshape(4, 3), axis=1)",
        "f(k, 300)",
        "f(k, jnp.arange(12).reshape(4, 3), 1, independent=True)",
        "f(k, jnp.arange(12).reshape(4, 3), independent=True)",
        "f(k, jnp.zeros((0, 3)))",
        "f(k, jnp.arange(4) > 1)",
        "f(k, np.arange(5.))",
        k=array([3, 5], "uint32"),
        grad=False,
        tol="exact",
    )
    + cases(
        "f(jax.random.key(2), x)",
        "f(jax.random.key(2), x, axis=-1)",
        "f(jax.random.key(2), x, 0, True)",
        x=floats(4, 3),
        tol="exact",
    )
    + case(
        "f(jax.random.key(2), x)",
        x=shaped(4, 3),
        dtypes="int8 bool complex64 bfloat16",
        modes="eager jit",
        tol="exact",
    )
    + case(SEVERAL + "jax.vmap(lambda k: f(k, 6))(ks)")
    + check(
        "f(jax.random.key(0), jnp.arange(3), axis=2)",
        "f(jax.random.key(0), 2.5)",
        "f(jax.random.key(0), [1, 2])",
        "f(0, 3)",
        "f(jax.random.key(0), jnp.ones(()))",
        raises=None,
    )
)
TABLE["jax.random.choice"] = (
    cases(
        "f(k, 5)",
        "f(k, 5, (3,))",
        "f(k, 5, (3,), replace=False)",
        "f(k, 5, (2, 2), False)",
        "f(k, jnp.arange(10, 15), (2, 3))",
        "f(k, jnp.array([1., 2., 3.]), (4,), p=jnp.array([.2, .3, .5]))",
        "f(k, 3, (4,), True, jnp.array([0., 1., 0.]))",
        "f(k, jnp.arange(12).reshape(4, 3), (2,))",
        "f(k, jnp.arange(12).reshape(4, 3), (2,), axis=1)",
        "f(k, jnp.arange(12).reshape(4, 3), (2,), False, axis=1)",
        "f(k, 4, (2,), False, p=jnp.array([.1, .2, .3, .4]))",
        "f(k, 4, (0,))",
        "f(k, np.array([3, 4]), (3,))",
        "f(k, 4, (2,), False, p=jnp.array([.1, .2, .3, .4]), mode='high')",
        k=array([3, 5], "uint32"),
        grad=False,
        tol="exact",
    )
    + case("f(jax.random.key(1), x, (4,))", x=floats(3, 2), tol="exact")
    + case(SEVERAL + "jax.vmap(lambda k: f(k, 6, (2,), False))(ks)")
    + check(
        "f(jax.random.key(0), 3, (4,), False)",
        "f(jax.random.key(0), 0)",
        "f(jax.random.key(0), 3, p=jnp.ones(2))",
        "f(jax.random.key(0), 2.5)",
        "f(jax.random.key(0), jnp.ones((2, 2)), axis=3)",
        "f(1, 3)",
        "f(jax.random.key(0), [1, 2, 3])",
        "f(jax.random.key(0), jnp.zeros((0,)), (2,))",
        raises=None,
    )
)
TABLE["jax.random.categorical"] = (
    cases(
        "f(k, x)",
        "f(k, x, axis=0)",
        "f(k, x, shape=(5, 2))",
        "f(k, x, -1, (4, 2))",
        "f(k, x[0])",
        "f(k, x[0], shape=(7,))",
        "f(k, x, shape=(2,), replace=False)",
        "f(k, x[0], shape=(2,), replace=False)",
        "f(k, x, mode='high')",
        "f(k, jnp.log(x * 0), shape=(2,))",
        "f(k, x, axis=0, shape=(3, 3))",
        k=array([3, 5], "uint32"),
        x=floats(2, 3),
        grad=False,
        tol="exact",
    )
    + case(
        "f(jax.random.key(1), x)",
        x=shaped(2, 3),
        dtypes="float16 float64",
        tol="exact",
        modes="eager jit",
    )
    + cases(
        "f(jax.random.key(1), jnp.array([0., -jnp.inf, 1.]), shape=(8,))",
        "f(jax.random.key(1), jnp.ones(4, 'bfloat16'), shape=(8,))",
        "f(jax.random.key(1), jnp.zeros((2, 0, 3)))",
        SEVERAL + "jax.vmap(lambda k: f(k, jnp.arange(3.)))(ks)",
        tol="exact",
    )
    + check(
        "f(jax.random.key(0), jnp.ones((2, 3)), shape=(4,))",
        "f(0, jnp.ones(3))",
        "f(jax.random.key(0), jnp.ones(3), axis=2)",
        "f(jax.random.key(0), 1.0)",
        "f(jax.random.key(0), jnp.ones(3, int))",
        "f(jax.random.key(0), jnp.ones(3), shape=(4,), replace=False)",
        raises=None,
    )
)

# --- continuous distributions ---------------------------------------------------------------------

FLOATS = "float32 float16 bfloat16 float64"
TABLE["jax.random.normal"] = drawn(
    "",
    "f(jax.random.key(1), 4)",
    "f(jax.random.key(1), (1001,))",
    "f(jax.random.key(1), (3,), jnp.float32) * 2",
    "f(jax.random.key(1), (3, 1, 1, 2))",
    "f(jax.random.key(1), dtype=float)",
    dtypes=FLOATS + " complex64 complex128",
    wrong="jnp.int32",
    tol="loose",
)
TABLE["jax.random.truncated_normal"] = drawn(
    "lower=-1., upper=2.",
    "f(jax.random.key(1), -2, 2, (3,))",
    "f(jax.random.key(1), jnp.array([-1., 0.]), 3.)",
    "f(jax.random.key(1), -jnp.inf, jnp.inf, (3,))",
    "f(jax.random.key(1), 2., 2.5, (4,))",
    dtypes=FLOATS,
    wrong="jnp.int32",
    tol="loose",
) + case("f(jax.random.key(1), a, 3., (2, 3))", a=floats(3, low=-2, high=1), tol="loose")
for name in ("gumbel", "cauchy", "exponential", "laplace", "logistic"):
    TABLE[f"jax.random.{name}"] = drawn(
        "",
        "f(jax.random.key(1), 4)",
        "f(jax.random.key(1), (1001,))",
        dtypes=FLOATS,
        wrong="jnp.int32",
        tol="loose",
    )
TABLE["jax.random.gumbel"] += case("f(jax.random.key(1), (4,), mode='high')", tol="loose")
for name in ("maxwell", "double_sided_maxwell"):
    given = "" if name == "maxwell" else "loc=1., scale=2."
    TABLE[f"jax.random.{name}"] = drawn(
        given, dtypes="float32 float16 float64", wrong="jnp.int32", tol="loose"
    )
TABLE["jax.random.double_sided_maxwell"] += case(
    "f(jax.random.key(1), a, b, (2, 3))", a=floats(3), b=floats(3, low=1, high=2), tol="loose"
)

# One or two parameters: (arguments, the same as inputs, their domain).
PARAMETERS = {
    "gamma": ("2.5", "a", (0.2, 4.0)),
    "loggamma": ("0.5", "a", (0.2, 4.0)),
    "beta": ("2., 3.", "a, b", (0.3, 4.0)),
    "chisquare": ("3.", "a", (1.0, 5.0)),
    "f": ("3., 5.", "a, b", (2.0, 6.0)),
    "generalized_normal": ("2.", "a", (1.0, 3.0)),
    "pareto": ("2.", "a", (1.0, 3.0)),
    "t": ("4.", "a", (2.0, 6.0)),
    "wald": ("2.", "a", (0.5, 3.0)),
    "rayleigh": ("2.", "a", (0.5, 3.0)),
    "weibull_min": ("2., 3.", "a, b", (1.0, 3.0)),
    "lognormal": ("0.5", "a", (0.2, 1.0)),
}
for name, (given, names, (low, high)) in PARAMETERS.items():
    inputs = {letter: floats(3, low=low, high=high) for letter in names.split(", ")}
    tol = (
        "iterative"
        if name in ("gamma", "loggamma", "beta", "f", "t", "chisquare", "generalized_normal")
        else "loose"
    )
    TABLE[f"jax.random.{name}"] = (
        drawn(
            given,
            f"f(jax.random.key(1), {given}, shape=(101,))",
            # The bounds of class iterative say nothing of narrow floats.
            dtypes="float32 float64" if tol == "iterative" else FLOATS,
            wrong="jnp.int32",
            tol=tol,
        )
        # JAX's f does not take parameters of fewer dimensions, nor generalized_normal no shape.
        + case(
            f"f(jax.random.key(1), {names}, shape={'(3,)' if name == 'f' else '(2, 3)'})",
            tol=tol,
            **inputs,
        )
        + (
            case(f"f(jax.random.key(1), {names})", tol=tol, modes="eager jit", **inputs)
            if name != "generalized_normal"
            else []
        )
        + check(
            f"f(jax.random.key(1), {given.replace(given.split(',')[0], 'jnp.ones(3)', 1)}, "
            "shape=(2,))",
            raises=None,
        )
    )
TABLE["jax.random.triangular"] = drawn(
    "0., 1., 3.", dtypes=FLOATS, wrong="jnp.int32", tol="loose"
) + case("f(jax.random.key(1), a, a + 1, a + 3, shape=(2, 3))", a=floats(3), tol="loose")
TABLE["jax.random.dirichlet"] = (
    drawn(
        "jnp.array([1., 2., 3.])",
        "f(jax.random.key(1), jnp.array([.1, .01, 5.]), (4,))",
        "f(jax.random.key(1), jnp.ones((2, 3)), (5, 2))",
        "f(jax.random.key(1), jnp.ones((2, 1)))",
        shape="(2,)",
        dtypes="float32 float64",
        wrong="jnp.int32",
        tol="iterative",
    )
    + case("f(jax.random.key(1), a, (2,))", a=floats(3, low=0.5, high=3), tol="iterative")
    + check("f(jax.random.key(0), 1.)", "f(jax.random.key(0), jnp.ones((2, 3)), (3,))", raises=None)
)
TABLE["jax.random.multivariate_normal"] = (
    drawn(
        "jnp.zeros(2), jnp.array([[2., 1.], [1., 3.]])",
        "f(jax.random.key(1), jnp.ones((4, 2)), jnp.eye(2))",
        "f(jax.random.key(1), jnp.ones(2), jnp.eye(2), (3,), method='svd')",
        "f(jax.random.key(1), jnp.ones(2), jnp.eye(2) * jnp.array([1., 3.]), (3,), method='eigh')",
        "f(jax.random.key(1), jnp.ones(2), jnp.eye(2), jnp.float32.dtype.itemsize * (2,))",
        shape="(3,)",
        dtypes="float32 float64",
        wrong="jnp.int32",
        tol="iterative",
    )
    + case("f(jax.random.key(1), m, jnp.eye(3) * 2, (2,))", m=floats(3), tol="iterative")
    + check(
        "f(jax.random.key(0), jnp.ones(2), jnp.eye(3))",
        "f(jax.random.key(0), 1., jnp.eye(2))",
        "f(jax.random.key(0), jnp.ones(2), jnp.eye(2), method='x')",
        "f(jax.random.key(0), jnp.ones(2), jnp.ones(2))",
        raises=None,
    )
)
TABLE["jax.random.ball"] = cases(
    K + "f(k, 3)",
    K + "f(k, 3, 1)",
    K + "f(k, 2, 2, (4,))",
    K + "f(k, 2, jnp.inf, (4,))",
    K + "f(k, d=1, p=2, shape=(3,), dtype='float16')",
    SEVERAL + "jax.vmap(lambda k: f(k, 3))(ks)",
    tol="iterative",
) + check("f(1, 3)", "f(jax.random.key(0), 0)", "f(jax.random.key(0), 2.5)", raises=None)
TABLE["jax.random.orthogonal"] = cases(
    K + "f(k, 3)",
    K + "f(k, 3, (2,))",
    K + "f(k, 1)",
    K + "f(k, 2, (), 'complex64')",
    K + "f(k, 3, m=2)",
    K + "f(k, 2, m=4)",
    K + "f(k, 0)",
    tol="iterative",
) + check(
    "f(jax.random.key(0), 2.5)", "f(1, 2)", "f(jax.random.key(0), 2, (), 'int32')", raises=None
)

# --- counts ---------------------------------------------------------------------------------------

TABLE["jax.random.poisson"] = (
    drawn(
        "3.5",
        "f(jax.random.key(1), 50., (6,))",
        "f(jax.random.key(1), 0., (3,))",
        "f(jax.random.key(1), jnp.array([.5, 5., 100.]))",
        "f(jax.random.key(1), 3, (4,))",
        "f(jax.random.key(1), jnp.array([-1., jnp.nan]))",
        tol="exact",
        dtypes="int32 int16 int64",
        wrong="jnp.float32",
    )
    + case("f(jax.random.key(1), a, (2, 3))", a=floats(3, low=0.5, high=20), grad=False)
    + check("f(jax.random.key(0), jnp.ones(3), (2,))", raises=None)
)
TABLE["jax.random.binomial"] = (
    drawn(
        "10, 0.3",
        "f(jax.random.key(1), 100, .5, (6,))",
        "f(jax.random.key(1), 0, .5, (3,))",
        "f(jax.random.key(1), jnp.array([5., 50.]), jnp.array([.1, .9]))",
        "f(jax.random.key(1), 5, jnp.array([0., 1., -1., jnp.nan]))",
        tol="exact",
        dtypes="float32 float16 float64",
        wrong="jnp.int32",
    )
    + case(
        "f(jax.random.key(1), n, p, (2, 3))",
        n=floats(3, low=2, high=30),
        p=floats(3, low=0.1, high=0.9),
        grad=False,
    )
    + check("f(jax.random.key(0), jnp.ones(3), .5, (2,))", raises=None)
)
TABLE["jax.random.geometric"] = (
    drawn(
        "0.3",
        "f(jax.random.key(1), jnp.array([.1, .9, 1.]))",
        tol="exact",
        dtypes="int32 int16 int64",
        wrong="jnp.float32",
    )
    + case("f(jax.random.key(1), p, (2, 3))", p=floats(3, low=0.1, high=0.9), grad=False)
    + check("f(jax.random.key(0), jnp.ones(3), (2,))", raises=None)
)
TABLE["jax.random.multinomial"] = cases(
    K + "f(k, 10, jnp.array([.2, .3, .5]))",
    K + "f(k, 0, jnp.array([.2, .8]))",
    K + "f(k, jnp.array([5., 9.]), jnp.array([.2, .8]), shape=(2, 2))",
    K + "f(k, 10, jnp.array([.2, .3, .5]), shape=(4, 3))",
    K + "f(k, 10, jnp.array([.2, .3, .5]), dtype='float16')",
    SEVERAL + "jax.vmap(lambda k: f(k, 6, jnp.array([.5, .5])))(ks)",
    tol="exact",
) + check(
    "f(jax.random.key(0), 3, .5)",
    "f(1, 3, jnp.ones(2))",
    "f(jax.random.key(0), 3, jnp.array([.2, .8]), shape=(3,))",
    raises=None,
)
TABLE["jax.random.loggamma"] += case(
    K + "f(k, 0.5, shape=(2, 3), dtype='float16')", modes="eager", tol="loose"
)
