"""vmap with named axes, and the collectives over them."""

from __future__ import annotations

from compat.spec import bools, case, cases, check, floats, shaped

GROUPS = "axis_index_groups=[[0, 1], [2, 3]]"
SHIFT = "[(0, 1), (1, 2), (2, 3), (3, 0)]"


def over(*bodies: str, **options):
    """Expressions of ``x``, each mapped over an axis ``i`` and under the calls that keep it."""
    return cases(*(f"jax.vmap(lambda x: {body}, axis_name='i')(x)" for body in bodies), **options)


def nested(*bodies: str, **options):
    """Expressions of ``x`` under the axes ``i`` and, outside, ``j``."""
    return cases(*(f"jax.vmap(jax.vmap(lambda x: {body}, axis_name='i'), axis_name='j')(x)"
                   for body in bodies), **options)


def printed(*bodies: str):
    """The jaxprs of expressions of a 4 by 4 matrix ``x`` under axes ``i`` and ``j``."""
    return check(*(
        f"str(jax.make_jaxpr(lambda x: {body}, axis_env=[('i', 4), ('j', 2)])(np.ones((4, 4), 'f'))"
        ")" for body in bodies))


def unbound(*bodies: str):
    return (cases(*bodies, x=floats(4), modes="eager", raises="unbound axis name")
            + cases(*(f"jax.jit(lambda x: {body})(x)" for body in bodies),
                    *(f"jax.vmap(lambda x: {body}, axis_name='j')(x)" for body in bodies),
                    x=floats(4), modes="eager", raises="unbound axis name: i"))


def reduction(grad: bool):
    """Rows of a reduction ``f(x, axes)``."""
    options = {} if grad else {"grad": False}
    return (
        over("f(x, 'i')", "f({'a': x, 'b': (x[0], 3)}, 'i')", "x + f(f(x, 'i'), 'i')",
             "f(1., 'i') + x", "jax.jit(lambda x: f(x, 'i'))(x)", x=floats(4, 3),
             tol="accumulate", **options)
        + nested("f(x, 'j')", "f(x, ('i', 'j'))", x=floats(2, 3, 2), tol="accumulate", **options)
        + case("jax.vmap(lambda x: f(x, 'i'), 1, None, axis_name='i')(x)", x=floats(4, 3),
               tol="accumulate", **options)
        + over("f(x, 'i')", x=shaped(4, 2), dtypes="int8 bfloat16 float64", modes="eager jit",
               tol="accumulate")
        + over("f(x, 'i')", x=bools(4, 2))
        + over("f(True, 'i')", "f(2, 'i')", "f(np.float32(2), 'i')", "f(jnp.float32(2), 'i')",
               x=floats(4), modes="eager")
        + case("f(x, ())", x=floats(2, 3)) + case("f(x, 2)", x=floats(2, 3), raises=True)
        + over(f"f(x, 'i', {GROUPS})", "f(x, 'i', axis_index_groups=[[0, 1], [1, 2]])",
               "f(x, (0, 'i'), axis_index_groups=[[0, 1]])", "f('a', 'i')", "f(x, 7)",
               "f(x, ('i', 'i'))", x=floats(4, 2), modes="eager", raises=True)
        + unbound("f(x, 'i')")
        + printed("f(x, 'i')", "f((x, 2 * x), ('i', 'j'))", f"f(x, 'i', {GROUPS})",
                  "jax.jit(lambda x: f(x, 'i'))(x)",
                  "jax.vmap(lambda x: f(x, ('i', 'k')), axis_name='k', out_axes=None)(x)",
                  "jax.vmap(lambda x: f(x, 'i'))(x)"))


def positions(grad: bool):
    """Rows of a reduction that takes dimensions of its operand among the axes."""
    options = {} if grad else {"grad": False}
    return (over("f(x, [0, 'i'])", "f(x, 0)", x=floats(4, 3), tol="accumulate", **options)
            + cases("f(x, 0)", "f(x, (0, 1))", x=floats(2, 3), tol="accumulate",
                    modes="eager")
            + printed("f(x, (0, 'i'))", "f(x, (1, 0))"))


def linear(*bodies: str, shape: tuple[int, ...] = (4, 4, 3), grad: bool = True,
           first_inside: int = 0):
    """Rows of a collective that moves elements; bodies of ``x``, one element of ``shape``.

    Those from the number ``first_inside`` on are mapped over another axis inside.
    """
    first = f"f({bodies[0]})"
    # JAX has no right transpose of some under the axis itself.
    own = [f"jax.grad(lambda x: (f({body}) ** 2).sum())(x)" for body in bodies[:2]] if grad else []
    return (over(*(f"f({body})" for body in bodies), *own, f"jax.jit(lambda x: {first})(x)",
                 first.replace("x", "{'a': x, 'b': 2 * x}", 1), x=floats(*shape), tol="accumulate")
            + over(*(f"jax.vmap(lambda x: f({body}), -1)(jnp.stack([x, 2 * x], -1))"
                     for body in bodies[first_inside:]),
                   x=floats(*shape), modes="eager jit", tol="accumulate")
            + over(first, x=shaped(*shape), dtypes="int8 float64", modes="eager jit",
                   tol="accumulate")
            + nested(first, x=floats(2, *shape), tol="accumulate")
            + printed(*(f"f({body})" for body in bodies), f"jax.vmap(lambda x: {first})(x[None])"))


TABLE = {
    "jax.vmap": (
        cases("f(lambda x, y: x * y)(x, y)", "f(lambda x, y: x * y, (0, None))(x, y[0])",
              "f(lambda x, *, k: x * k, 1)(x.T, k=y)", "f(lambda d: d['a'] @ d['b'], "
              "({'a': 0, 'b': None},))({'a': x, 'b': y[1]})", "f(f(jnp.dot, (None, 0)), (0, None), "
              "1)(x, y)", "f(lambda x: (x, {'s': x.sum()}), out_axes=(-1, 0))(x)",
              "f(lambda x: x, None, None, axis_size=3)(x)", "f(lambda x: 2., axis_name='i')(x)",
              "f(lambda: lax.axis_index('i') * 1., axis_name='i', axis_size=3)()",
              "f(lambda x: x, axis_name='i', spmd_axis_name='k')(x)",
              "f(lambda x, s: x, (0, None))(x, 'text')",
              x=floats(4, 3), y=floats(4, 3), tol="accumulate")
        + case("f(lambda x, y: (x, type(y).__name__ == 'int', y), (0, None), (0, 0, None))(x, 3)",
               x=floats(2), modes="eager")
        + cases("f(lambda x: x, out_axes=None)(x)",
                "f(lambda x: {'a': x}, out_axes={'a': None})(x)",
                "f(lambda x: x, axis_name='i', out_axes=None)(x)", "f(lambda x: x, 2)(x)",
                "f(lambda x: x, -3)(x)", "f(lambda x: x, out_axes=2)(x)", "f(lambda x: x)(3.)",
                "f(lambda x: x, True)(x)", "f(lambda x: x, out_axes='a')(x)", "f(lambda: 1)()",
                "f(lambda x: x, ({'a': 0},))({'a': x, 'b': x})", "f(lambda x: x, (0, 0))(x)",
                "f(lambda x: (x, x), out_axes=(0,))(x)", "f(lambda x, y: x)(x, x[0])",
                "f(lambda x: x, None)(x)", "f(lambda x: x, axis_size=5)(x)", "f(lambda x: x)('a')",
                "f(lambda x: 'a')(x)", "f(3)", "f(lambda x: x, axis_name=[1])(x)",
                x=floats(2, 3), modes="eager", raises=True)
        + check("f(jnp.dot).__name__", "f(lambda x: x).__doc__")
    ),
    "jax.lax.psum": (
        reduction(True) + positions(True)
        + over(f"f(1, 'i', {GROUPS}) * x", "x / f(1, 'i')", "x.reshape((f(1, 'i'),))",
               "jax.vmap(lambda y: f(y * x[0], 'i'))(x)", "f(lax.axis_index('i') * x, 'i')",
               "lax.scan(lambda c, y: (f(c, 'i') + y, c), x[0], x)",
               "lax.cond(f(x, 'i')[0] > 0, lambda x: f(x, 'i'), jnp.sin, x)",
               "lax.cond(x[0] > 0, lambda x: f(x, 'i'), jnp.sin, x)",
               "lax.switch(lax.axis_index('i') % 2, [lambda x: f(x, 'i'), lambda x: x], x)",
               "jax.checkpoint(lambda x: jnp.sin(x) * f(x, 'i'))(x)",
               "jax.grad(lambda x: jnp.sin(f(x, 'i')).sum())(x)",
               "jax.vjp(lambda x: f(jnp.sin(x), 'i'), x)[1](x)[0]",
               "jax.jvp(lambda x: f(jnp.sin(x), 'i'), (x,), (x,))",
               "jax.linearize(lambda x: f(jnp.sin(x), 'i'), x)[1](x)",
               "jax.hessian(lambda x: f(x[0] * x[1], 'i'))(x)",
               "jax.grad(jax.checkpoint(lambda x: f(jnp.sin(x), 'i').sum()))(x)",
               "jax.jit(jax.grad(lambda x: f(jnp.sin(x), 'i').sum()))(x)",
               x=floats(4, 4), tol="accumulate")
        + nested("jax.grad(lambda x: f(x ** 2, ('i', 'j')).sum())(x)",
                 "jax.grad(lambda x: f(x ** 2, 'j').sum())(x)", "f(f(x, 'j'), 'i') - x",
                 "f(x[0] * lax.axis_index('j'), ('j', 'i'))", x=floats(2, 3, 2), tol="accumulate")
        + check("jax.vmap(lambda x: f(1, 'i'), axis_name='i', out_axes=None)(np.ones(4))")
        + over("lax.while_loop(lambda c: c[0] < 4 * f(c[1], 'i'), lambda c: (c[0] + 1, "
               "c[1] - f(c[1], 'i') / 16), (0., x))", x=floats(4, low=0.1, high=0.3), grad=False)
        + over("jax.random.normal(jax.random.fold_in(jax.random.key(0), lax.axis_index('i')))"
               " + f(x, 'i')", "jax.nn.softmax(f(x, 'i'))", x=floats(4, 3), tol="accumulate")
        + case("f(x, -1)", x=floats(2, 3), modes="eager", tol="accumulate")
        + case("g = jax.custom_vjp(lambda x: x * 2); g.defvjp(lambda x: (x * 2, x), "
               "lambda r, ct: (f(ct * r, 'i'),)); jax.vmap(jax.jit(g), axis_name='i')(x)",
               x=floats(4, 3), tol="accumulate")
        + case("g = jax.custom_jvp(lambda x: x * 2); g.defjvp(lambda p, t: (p[0] * 2, "
               "f(t[0], 'i'))); jax.vmap(lambda x: jax.jvp(jax.jit(g), (x,), (x,)), axis_name='i')"
               "(x)", x=floats(4, 3), tol="accumulate")
        + case("g = lambda x: (x - lax.pmean(x, 'i')) / jnp.sqrt(1e-5 + f(x ** 2, 'i')); "
               "jax.vmap(g, axis_name='i')(x) * y", x=floats(4, 3), y=floats(4, 3), tol="loose")
        + printed("jax.jvp(lambda x: f(x, 'i'), (x,), (x,))")),
    "jax.lax.pmean": reduction(True) + case("f(x, 0)", x=floats(2, 3), raises=True),
    "jax.lax.pmax": reduction(False) + positions(False) + over(
        "jax.grad(lambda x: f(x, 'i'))(x)", x=floats(4), modes="eager", raises="pmax"),
    "jax.lax.pmin": reduction(False) + positions(False) + over(
        "jax.grad(lambda x: f(x, 'i'))(x)", x=floats(4), modes="eager", raises="pmin"),
    "jax.lax.ppermute": (
        linear(f"x, 'i', {SHIFT}", "x, ('i',), [(3, 0), (2, 1), (1, 3), (0, 2)]")
        + over("f(x, 'i', [(0, 0), (0, 1), (1, 2), (3, 3)])", f"f(2., 'i', {SHIFT}) * x",
               x=floats(4, 2))
        + over("f(x, 'i', [(0, 1), (1, 0)])", "f(x, 'i', [0, 1])", x=floats(4), modes="eager",
               raises=True)
        + case("f(x, 'i', [(0, 0)])", x=floats(4), modes="eager", raises=None)
        + cases(f"jax.jit(lambda x: f(x, 'i', {SHIFT}))(x)", x=floats(4), modes="eager",
                raises="unbound axis name: i")),
    "jax.lax.pshuffle": (
        linear("x, 'i', [3, 0, 2, 1]", "x, 'i', (0, 1, 2, 3)")
        + over("f(x, 'i', [0, 0, 1, 1])", "f(x, 'i', [3, 0])", x=floats(4), modes="eager",
               raises="`perm` does not represent a permutation")),
    "jax.lax.all_gather": (
        linear("x, 'i'", "x, 'i', axis=1", "x, 'i', axis=-1", "x, 'i', axis=1, "
               "tiled=True", "x, 'i', tiled=True")
        + over("f(2., 'i') + x", "f(jnp.arange(3.), 'i', axis=1).sum() * x",
               "f(jnp.ones(2), 'i', tiled=True).sum() * x", "f(x, ())", x=floats(4, 4),
               tol="accumulate")
        + over(f"f(x, 'i', {GROUPS})", "f(x, 'i', axis=2)", "f(x, 'i', axis=1, tiled=True)",
               "f(x, 'i', to='bad')", x=floats(4, 4), modes="eager", raises=True)
        + over("f(x, 'i', to='reduced')", "f(x, 'i', to='invarying')", x=floats(4, 4),
               modes="eager")
        + nested("f(x, ('j', 'i'))", x=floats(2, 3), modes="eager", raises=True)
        + printed("f(x, ('i', 'j'))", f"f(x, 'i', {GROUPS})") + unbound("f(x, 'i')")),
    "jax.lax.psum_scatter": (
        linear("x, 'i'", "x, 'i', scatter_dimension=1", "x, 'i', tiled=True",
               "x, 'i', scatter_dimension=1, tiled=True", shape=(4, 4, 4), first_inside=2)
        + over("jax.vmap(lambda x: f(x, 'i'), -1)(jnp.stack([x, 2 * x], -1))",
               x=floats(4, 4, 4), modes="eager", raises=None)
        + over("f(jnp.ones((8, 2)), 'i', tiled=True) * x[0]", "f(jnp.arange(4.), 'i') * x",
               "f(x, ())", x=floats(4, 4))
        + over(f"f(x, 'i', {GROUPS})", "f(x, 'i', scatter_dimension=2)", x=floats(4, 2),
               modes="eager", raises=True)
        + over("f(x, 'i', tiled=True)", "f(x, 'i')", x=floats(4, 3), modes="eager", raises=None)
        + check("jax.make_jaxpr(lambda x: f(x, 'i'), axis_env=[('i', 4)])(np.ones(2))",
                "jax.make_jaxpr(lambda x: f(x, 'i', tiled=True), axis_env=[('i', 4)])(np.ones(2))",
                raises="reduce_scatter operand scatter dimension size 2 must")
        + printed(f"f(x[:2], 'i', {GROUPS})") + unbound("f(x, 'i')")),
    "jax.lax.all_to_all": (
        linear("x, 'i', 0, 0", "x, 'i', 0, 1", "x, 'i', 1, 0", "x, 'i', 0, 0, "
               "tiled=True", "x, 'i', 0, 1, tiled=True", "x, 'i', 1, 0, tiled=True",
               shape=(4, 4, 4), grad=False)
        + over("f(x, 'i', 0, 2)", "f(x, 'i', 1, 2, tiled=True)", x=floats(4, 4, 8, 3))
        + nested("f(x, ('j', 'i'), 0, 0)", "f(x, ('i', 'j'), 0, 1)", "f(x, ('j', 'i'), 1, 0, "
                 "tiled=True)", "f(x, ('i', 'j'), 1, 1, tiled=True)", x=floats(2, 3, 6, 12))
        + over("f(x, 'i', 0, 0)", "f(x, 'i', 0, 0, tiled=True)", "f(x, 'i', 3, 0)",
               f"f(x[:2], 'i', 0, 0, {GROUPS})", x=floats(4, 3), modes="eager", raises=True)
        + printed(f"f(x[:2], 'i', 0, 0, {GROUPS})") + unbound("f(x + jnp.ones(1), 'i', 0, 0)")
        # JAX loses itself where the operand is the same for all elements.
        + over("f(jnp.ones((4, 2)), 'i', 0, 1)", "jax.grad(lambda x: f(x, 'i', 0, 1).sum())(x)",
               x=floats(4, 4, 2), modes="eager", raises=None)),
    "jax.lax.pswapaxes": (
        linear("x, 'i', 0", "x, 'i', 1", shape=(4, 4, 4), grad=False)
        + over("f(x, 'i', 0)", x=floats(4, 3), modes="eager", raises=True)
        + unbound("f(x + jnp.ones(1), 'i', 0)")),
    "jax.lax.pbroadcast": (
        printed("f(x, 'i', 2)", "jax.vmap(lambda x: f(x, ('i', 'j'), 1))(x)",
                "jax.jvp(lambda x: f(x, 'i', 2), (x,), (x,))")
        + over("f(x, 'i', 7)", x=floats(4), modes="eager", raises="doesn't fit in the axis size")
        + over("f(x, 'i', 2)", x=floats(4), modes="eager", raises=None)),
    "jax.lax.axis_index": (
        over("f('i')", "f('i') * x", "f(('i',)) + x", "jnp.zeros(4).at[f('i')].set(x[0])",
             "jax.jit(lambda: f('i'))() * x", "lax.fori_loop(0, 3, lambda n, c: c + f('i'), x)",
             "lax.dynamic_index_in_dim(jnp.arange(4.), f('i'), keepdims=False) * x",
             "jax.random.uniform(jax.random.fold_in(jax.random.key(1), f('i')), (2,)).sum() * x",
             "jax.vmap(lambda y: y * f('i'))(x)", x=floats(4, 3))
        + nested("f('i') * x", "f('j') * x", "f(('i', 'j'))", "f(('j', 'i'))", "f(['i', 'j'])",
                 x=floats(2, 3))
        + case("f(())") + unbound("f('i') * x", "f(('i', 'i')) * x")
        + printed("f('i')", "f(('i', 'j'))", "jax.vmap(lambda y: f('i') + y)(x)",
                  "jax.vmap(lambda y: f(('k', 'i')), axis_name='k')(x)")),
    "jax.lax.axis_size": (
        over("f('i') * x", "jnp.ones(f('i')) * x[0]", x=floats(4, 3))
        + nested("f('i') * x", "f(('i', 'j')) * x", x=floats(2, 3))
        + check("jax.vmap(lambda x: f('i'), axis_name='i', out_axes=None)(np.ones(4))", "f(())")
        + unbound("f('i') * x") + printed("f(('i', 'j')) * x")),
    "jax.make_jaxpr": check(
        "str(f(lambda x: x * lax.axis_size('i'), axis_env=[('i', 4)])(1.))",
        "str(f(lambda x: x * lax.axis_size('i'), axis_env=[('i', 4), ('i', 3)])(1.))")
    + check("f(lambda x: lax.psum(x, 'i'))(1.)", raises="unbound axis name"),
}

_BINDS = {
    "psum": "axes=('i',), axis_index_groups=None", "pmax": "axes=('i',), axis_index_groups=None",
    "pmin": "axes=('i',), axis_index_groups=None", "ppermute": f"axis_name=('i',), perm={SHIFT}",
    "all_gather": "all_gather_dimension=0, axis_index_groups=None, axis_name=('i',), axis_size=4, "
                  "tiled=False",
}
for _name, _params in _BINDS.items():
    TABLE[f"jax.lax.{_name}_p"] = check("f.name", "f.multiple_results") + over(
        f"f.bind(x, {_params})", x=floats(4, 3), modes="eager jit", tol="accumulate")
TABLE["jax.lax.axis_index_p"] = check("f.name", "f.multiple_results") + over(
    "f.bind(axis_name='i') * x", x=floats(4), modes="eager jit")
TABLE["jax.lax.all_to_all_p"] = check("f.name", "f.multiple_results")
