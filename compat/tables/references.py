"""Mutable array references."""

from __future__ import annotations

from compat.spec import array, case, cases, check, floats

X, V = floats(3), array([4.0, 5.0], "float32")

TABLE = {
    "jax.new_ref": cases(
        "r = f(x); r[...]", "r = f(x); r[1:] *= x[0]; r[...]",
        "r = f(jnp.zeros_like(x)); lax.fori_loop(0, 3, lambda i, c: "
        "(r.addupdate(jnp.sin(x[i]), i), c)[1], 0); r[...] ** 2",
        "r = f(x); jax.jit(lambda: jax.ref.set(r, 0, r[1] * r[2]))(); r[...]",
        "r = f(x[0]); lax.scan(lambda c, y: (jax.ref.set(r, ..., r[...] * y), (c, r[...]))[1], "
        "0., x)[1], r[...]", x=X) + case(
        "r = f(x); r[0] = 2.; r[1:] *= 2.; r[...]", x=X, modes="eager jit vmap") + check(
        "repr(f(jnp.zeros(3)))", "repr(f(3))", "repr(jax.typeof(f(jnp.ones((2, 3)))))",
        "r = f(jnp.zeros(3)); g = jax.jit(lambda x: r.addupdate(x)); g(jnp.ones(3)); "
        "g(jnp.ones(3)); r[...]",
        "r = f(jnp.zeros(3)); jax.jit(lambda r: jax.ref.set(r, 1, 5.))(r); r[...]",
        "r = f(jnp.arange(3.)); r.shape, r.ndim, r.size, str(r.dtype), len(r)"),
    "jax.empty_ref": check("jax.jit(lambda: f(jax.ShapeDtypeStruct((2,), 'float32')).shape)()",
                           "jax.jit(lambda x: (r := f(jax.typeof(x)), jax.ref.set(r, ..., x), "
                           "r[...])[2])(jnp.arange(3.))"),
    # JAX has no batching rule for it.
    "jax.free_ref": cases("r = jax.new_ref(x); y = r[1:] * 2; f(r); y", x=X,
                          modes="eager jit grad"),
    "jax.freeze": cases("r = jax.new_ref(x); r[1] = x[0] * x[2]; f(r)", x=X),
    "jax.Ref": check("isinstance(jax.new_ref(1.), f)", "isinstance(jnp.ones(2), f)",
                     "r = jax.new_ref(jnp.arange(4.)); r.addupdate(1., 2); r[::2]"),
    "jax.ds": check("r = jax.new_ref(jnp.arange(6.)); r[f(1, 2)], r[f(0, 3, 2)], r[f(2)]",
                    "repr((f(1, 2), f(3), f(None), f(1, 2, 3)))",
                    "jax.jit(lambda r, i: r[f(i, 2)])(jax.new_ref(jnp.arange(6.)), 5)"),
    "jax.ref.get": cases("r = jax.new_ref(x); f(r), f(r, 0), f(r, slice(1, 3)), "
                         "f(r, jnp.array([2, 0]))", x=X),
    "jax.ref.set": cases("r = jax.new_ref(x); f(r, 0, x[2]); f(r, slice(1, 3), v); r[...]",
                         x=X, v=V),
    "jax.ref.swap": cases("r = jax.new_ref(x); f(r, slice(1, 3), v), r[...]", x=X, v=V),
    "jax.ref.addupdate": cases(
        "r = jax.new_ref(x); f(r, slice(1, 3), v); f(r, jnp.array([0, 0]), v); r[...]", x=X, v=V),
    "jax.ref.AbstractRef": check(
        "repr(f(jax.core.ShapedArray((3,), jnp.float32)))",
        "f(jax.core.ShapedArray((3,), jnp.float32)) == jax.typeof(jax.new_ref(jnp.ones(3)))",
        "a = f(jax.core.ShapedArray((3,), jnp.float32)); a.shape, a.ndim, a.str_short(True)"),
    "jax.ad": check("str((f.GradRef(), f.GradValue(), f.DontWant(), f.DidntWant()))",
                    "_, g = jax.vjp(lambda x, y: x * y, 2., 3.); r = jax.new_ref(1.); "
                    "str(g.with_refs(r, f.DontWant())(1.)), r[...]"),
}
for _name in ("new_ref", "empty_ref", "free_ref", "freeze", "Ref"):
    TABLE[f"jax.ref.{_name}"] = TABLE[f"jax.{_name}"]
