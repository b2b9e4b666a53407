"""How arrays print."""

from __future__ import annotations

from compat.spec import Case, check

TABLE: dict[str, list[Case]] = {}

ARRAYS = (
    "jnp.arange(3)", "jnp.array(1.5)", "jnp.array(1)", "jnp.array(True)", "jnp.array([])",
    "jnp.zeros((0, 3))", "jnp.zeros((2, 0), 'int8')", "jnp.asarray(1.0)", "jnp.asarray(2)",
    "jnp.arange(3) * 1.0", "jnp.asarray([1, 2]) + jnp.asarray(1.0)", "jnp.ones(2, 'bfloat16')",
    "jnp.array([1.5, -2.25], 'bfloat16')", "jnp.array([1 + 2j, -1j])", "jnp.array(2j)",
    "jnp.arange(2000)", "jnp.arange(2000.0).reshape(40, 50)", "jnp.arange(40.0)",
    "jnp.array([1e-10, 1.0, 1e10])", "jnp.array([jnp.nan, jnp.inf, -jnp.inf, 0.0, -0.0])",
    "jnp.array([[1.5, 2.25], [3.0, 4.125]])", "jnp.ones((2, 2, 2), 'int8')",
    "jnp.array([True, False])", "jnp.array([1, 2], 'uint8')", "jnp.array([0.1, 0.2], 'float16')",
    "jnp.array([1, -2], 'int4')", "jnp.array([1.5, 2], 'float8_e4m3fn')",
    "jnp.linspace(0, 1, 17)", "jnp.arange(25).reshape(5, 5) * 100000",
    "jnp.ones((1, 1))", "jnp.full((3, 30), 1.23456789)", "jnp.array(123456789.0)",
    "jnp.array(1e-7)", "jnp.array([1, 1000000])", "jnp.array(3.0, 'bfloat16')",
    "jnp.array([[]])", "jnp.array([1.0, 2.0]).astype('complex64')", "jnp.arange(1001)",
    "jnp.asarray(True)", "jnp.asarray(1j)", "jnp.zeros((3, 0, 2))",
)

TABLE["jax.Array.__repr__"] = check(*(f"repr({a})" for a in ARRAYS)) + check(
    "repr([jnp.arange(2), {'a': jnp.ones(1)}])",
    "repr(jnp.float32(0.1))", "repr(jnp.pi * jnp.ones(2))",
    "repr(jnp.array([1, 2]) == 1)") + check(
    "repr(jnp.arange(3.0))", "repr(jnp.arange(3))", "repr(jnp.asarray(1.0))", x64=True) + check(
    "x = jnp.ones(3); x.delete(); repr(x)", raises="deleted")
TABLE["jax.Array.__str__"] = check(*(f"str({a})" for a in ARRAYS)) + check(
    "f'{jnp.arange(3)} and {jnp.array(2.5)}'", "'%s' % jnp.arange(3)",
    "x = jnp.ones(3); x.delete(); str(x)", raises=None)
TABLE["jax.numpy.array_repr"] = check(*(f"f({a})" for a in ARRAYS[:14])) + check(
    "f(jnp.array([1.23456, 2.0]), precision=2)", "f(jnp.arange(30), max_line_width=40)",
    "f(jnp.array([1e-9, 1.0]), suppress_small=True)", "f(np.arange(3))")
TABLE["jax.numpy.array_str"] = check(*(f"f({a})" for a in ARRAYS[:14]), raises=None) + check(
    "f(jnp.array([1.23456, 2.0]), precision=2)", "f(jnp.arange(30), max_line_width=40)",
    "f(jnp.array([1e-9, 1.0]), suppress_small=True)", "f(np.arange(3))")
TABLE["jax.numpy.set_printoptions"] = check(*(
    f"before = np.get_printoptions()\n"
    f"f({options})\n"
    f"text = repr({array}), str({array})\n"
    f"np.set_printoptions(**{{k: v for k, v in before.items() if k != 'override_repr'}})\n"
    f"text" for options in (
        "precision=2", "threshold=5, edgeitems=1", "linewidth=30", "suppress=True",
        "nanstr='-', infstr='oo'", "sign='+'", "floatmode='fixed'", "2",
        "formatter={'float': lambda v: f'<{v}>'}")
    for array in ("jnp.array([1.23456, jnp.nan, 1e-9, jnp.inf, 3., 4., 5.])", "jnp.arange(20)")))
TABLE["jax.numpy.get_printoptions"] = check("f()['precision']", "sorted(f())")
TABLE["jax.numpy.printoptions"] = check(
    "with f(precision=2):\n    text = repr(jnp.array([1.23456]))\ntext",
    "with f(threshold=3) as options:\n    text = str(jnp.arange(9))\ntext",
    "with f(legacy='1.13'):\n    text = repr(jnp.arange(3.0))\ntext")
