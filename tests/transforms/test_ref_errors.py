"""Array references: errors that JAX and maxjax both raise, and what is refused."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import maxjax
from tests.transforms.test_refs import run

ERRORS = {
    "broadcast": "jax.new_ref(jnp.arange(3))[...] = 3",
    "shape": "jax.new_ref(jnp.arange(3.))[1:] = jnp.ones(3)",
    "dtype": "jax.new_ref(jnp.arange(3))[0] = 1.5",
    "dtype added": "jax.new_ref(jnp.arange(3.)).addupdate(1, 0)",
    "half": "jax.new_ref(jnp.arange(3.))[...] = jnp.ones(3, jnp.float16)",
    "out of range": "jax.new_ref(jnp.arange(3.))[3]",
    "slice out of range": "jax.new_ref(jnp.arange(3.))[5:]",
    "negative step": "jax.new_ref(jnp.arange(3.))[::-1]",
    "too many indices": "jax.new_ref(jnp.arange(3.))[0, 0]",
    "mask": "jax.new_ref(jnp.arange(3.))[np.array([True, False, True])]",
    "no reference": "jax.ref.get(jnp.arange(3), 0)",
    "no reference to set": "jax.ref.set(jnp.ones(3), 0, 1.)",
    "no reference to add to": "jax.ref.addupdate(jnp.ones(3), 0, 1.)",
    "no array": "jax.new_ref([1, 2])",
    "arithmetic": "jax.new_ref(1.) + 1",
    "method": "jax.new_ref(jnp.ones(3)).sum()",
    "array of it": "np.asarray(jax.new_ref(jnp.arange(3.)))",
    "empty_ref eagerly": "jax.empty_ref(jax.ShapeDtypeStruct((2,), 'float32'))",
    "memory space eagerly": "jax.new_ref(1., memory_space='any')",
    "set when frozen": """
        def f(x):
            r = jax.new_ref(x)
            value = jax.freeze(r)
            r[...] = x
            return value, r[...]
        jax.jit(f)(jnp.ones(2))""",
    "read when freed": """
        def f(x):
            r = jax.new_ref(x)
            jax.free_ref(r)
            return r[...]
        jax.jit(f)(jnp.ones(2))""",
    "returned argument": "jax.jit(lambda r: (1, {'a': r}))(jax.new_ref(1.))",
    "returned": "jax.jit(lambda x: jax.new_ref(x))(1.)",
    "returned from a shape": "jax.eval_shape(lambda r: r, jax.new_ref(1.))",
    "passed twice": "r = jax.new_ref(1.); jax.jit(lambda a, b: 1)(r, r)",
    "passed twice inside":
        "r = jax.new_ref(1.); jax.jit(lambda r: jax.jit(lambda a, b: 1)(r, r))(r)",
    "passed and closed over": "r = jax.new_ref(1.); jax.jit(lambda a: a[...] + r[...])(r)",
    "passed and closed over inside":
        "r = jax.new_ref(1.); jax.jit(lambda r: jax.jit(lambda a: a[...] + r[...])(r))(r)",
    "cond: passed twice":
        "r = jax.new_ref(1.); jax.lax.cond(True, lambda a, b: 1, lambda a, b: 1, r, r)",
    "cond: passed and closed over":
        "r = jax.new_ref(1.); jax.lax.cond(True, lambda a: a[...], lambda a: r[...] + a[...], r)",
    "cond: returned": "jax.lax.cond(True, lambda a: a, lambda a: a, jax.new_ref(1.))",
    "scan: carry": "jax.lax.scan(lambda c, x: (c, x), jax.new_ref(1.), jnp.arange(3.))",
    "scan: returned": "r = jax.new_ref(0.); jax.lax.scan(lambda c, x: (c, r), 0., jnp.ones(2))",
    "scan: passed twice":
        "r = jax.new_ref(jnp.ones(2)); jax.lax.scan(lambda c, x: (c, 1), 0., (r, r))",
    "scan: passed and closed over":
        "r = jax.new_ref(jnp.ones(2)); jax.lax.scan(lambda c, x: (c + r[0] * x[...], 1), 0., r)",
    "fori_loop: carry": "jax.lax.fori_loop(0, 3, lambda i, c: c, jax.new_ref(1.))",
    "while_loop: carry": "jax.lax.while_loop(lambda c: True, lambda c: c, jax.new_ref(1.))",
    "vmap: set": """
        r = jax.new_ref(0.)
        jax.vmap(lambda x: jax.ref.set(r, ..., x))(jnp.ones(3))""",
    "vmap: set the same": """
        r = jax.new_ref(0.)
        jax.vmap(lambda x: (jax.ref.set(r, ..., 1.), x)[1])(jnp.ones(3))""",
    "vmap: added in jit": """
        r = jax.new_ref(0.)
        jax.vmap(jax.jit(lambda x, r: r.addupdate(x)), (0, None))(jnp.ones(3), r)""",
    "vmap: sizes": "jax.vmap(lambda x, r: x)(jnp.ones(3), jax.new_ref(jnp.zeros(2)))",
    "vmap: passed twice":
        "r = jax.new_ref(jnp.zeros(2)); jax.vmap(lambda a, b: 1.)(r, r)",
    "grad: set": "r = jax.new_ref(0.); jax.grad(lambda x: (jax.ref.set(r, ..., x), x)[1])(1.)",
    "grad: set in jit": """
        r = jax.new_ref(0.)
        jax.grad(jax.jit(lambda x, r: (jax.ref.set(r, ..., x), x)[1]))(1., r)""",
    "jvp: set": """
        r = jax.new_ref(0.)
        jax.jvp(lambda x: (jax.ref.set(r, ..., x), x)[1], (1.,), (1.,))""",
    "grad by a reference": "jax.grad(lambda r: r[...] ** 2)(jax.new_ref(3.))",
    "with_refs: shape": """
        _, f_vjp = jax.vjp(lambda a: a * 2., 1.)
        f_vjp.with_refs(jax.new_ref(jnp.ones(3)))(1.)""",
    "with_refs: dtype": """
        _, f_vjp = jax.vjp(lambda a: a * 2., 1.)
        f_vjp.with_refs(jax.new_ref(jnp.float16(1)))(1.)""",
    "scan: closed over and carried": """
        r = jax.new_ref(0.)
        jax.lax.scan(lambda y_ref, _: (r[...] + y_ref[...], None), r, None, length=1)""",
    "fori_loop: closed over and carried": """
        r = jax.new_ref(0.)
        jax.lax.fori_loop(0, 2, lambda i, y_ref: r[...] + y_ref[...], r)""",
    "in a shard_map": """
        mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        jax.shard_map(lambda x: jax.freeze(jax.new_ref(x)), mesh=mesh, in_specs=jax.P("x"),
                      out_specs=jax.P("x"))(jnp.ones(2))""",
    "with_refs: structure": """
        f_vjp = jax.vjp(lambda a, b: a['x'] * b, {'x': 1.}, 2.)[1]
        f_vjp.with_refs(jax.new_ref(1.), jax.new_ref(1.))""",
    "with_refs: value of a reference": """
        r = jax.new_ref(2.)
        jax.vjp(lambda d: d['r'][...], {'r': r})[1].with_refs({'r': jax.ad.GradValue()})""",
    "linearize: no reference": "jax.linearize(lambda r: r[...] * 2., jax.new_ref(1.))[1](1.)",
    "jacrev by a reference": "jax.jacrev(lambda r: r[...] ** 2)(jax.new_ref(3.))",
    "vjp: called": """
        r = jax.new_ref(2.)
        jax.vjp(lambda x, r: x * r[...], 3., r)[1](1.)""",
    "leaked from jit": "l = []; jax.jit(lambda x: l.append(jax.new_ref(x)))(1.); l[0][...]",
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_that_of_jax(name):
    text = ERRORS[name]
    raised = []
    for library in (maxjax, jax):
        with pytest.raises(Exception) as caught:
            run(library, text)
        message = str(caught.value).splitlines()[0].partition(" Transforms")[0]
        raised.append((type(caught.value).__name__, message))
    assert raised[0] == raised[1]


def test_more_than_jax():
    """Programs on which JAX fails, and their correct results."""
    import maxjax.numpy as jnp
    from maxjax import lax
    r = maxjax.new_ref(jnp.zeros((3, 2)))
    maxjax.vmap(lambda x, r: maxjax.ref.set(r, ..., x), (0, 1))(jnp.ones((2, 3)), r)
    assert np.asarray(r[...]).tolist() == [[1, 1]] * 3
    s = maxjax.new_ref(0)
    lax.while_loop(lambda i: s[...] < 5, lambda i: (s.addupdate(2), i + 1)[1], 0)
    assert int(s[...]) == 6
    t = maxjax.new_ref(jnp.zeros(2))
    maxjax.vmap(lambda x, t: lax.cond(
        x > 0, lambda: maxjax.ref.set(t, ..., x), lambda: None))(jnp.array([-1.0, 2.0]), t)
    assert np.asarray(t[...]).tolist() == [0, 2]


def test_a_forward_rule_gives_back_no_reference_of_its_own():
    """JAX names the rule as a partial."""
    text = """
        f = jax.custom_vjp(lambda x: x)
        def forward(x): return x, {"kept": jax.new_ref(x)}
        f.defvjp(forward, lambda r, g: (g,))
        jax.vjp(f, 3.)"""
    messages = []
    for library in (maxjax, jax):
        with pytest.raises(ValueError) as caught:
            run(library, text)
        messages.append(str(caught.value).partition(" returned ")[2])
    assert messages[0] == messages[1] != ""


@pytest.mark.parametrize("text, message", [
    ("r = jax.new_ref(0)\n"
     "jax.lax.while_loop(lambda i: (r.addupdate(1), i < 3)[1], lambda i: i + 1, 0)",
     "while_cond"),
    # JAX leaves out what is written to a frozen reference and not read.
    ("def f(x): r = jax.new_ref(x); jax.freeze(r); r[...] = x\njax.jit(f)(1.)",
     "must be called on"),
    # JAX gives the value, and forgets what goes by the other way in the derivative.
    ("r = jax.new_ref(1.); jax.vjp(lambda a: a[...] + r[...], r)", "both closed over and passed"),
    ("r = jax.new_ref(1.); jax.vjp(lambda a, b: a[...] + b[...], r, r)", "appeared at both"),
    ("r = jax.new_ref(1.); jax.jit(lambda: jax.freeze(r))()", "comes from outside"),
    ("r = jax.new_ref(1.); jax.jit(lambda x: x + r[...], dynamic_dims={0: {0: 'n'}})(jnp.ones(3))",
     "traced for jit"),
    ("import maxjax.export; r = jax.new_ref(1.); jax.export.export(jax.jit(lambda: r[...]))()",
     "export"),
    ("r = jax.new_ref(1.)\n"
     "g = jax.custom_vjp(lambda x: x)\n"
     "g.defvjp(lambda x: (x * r[...], None), lambda _, cotangent: (cotangent,))\n"
     "jax.grad(jax.jit(lambda x: g(x)))(1.)", "not supported"),
    ("r = jax.new_ref(jnp.ones(2)); jax.vmap(lambda a: a[...] + r[0])(r)", "both closed over"),
])
def test_what_is_not_supported_is_refused(text, message):
    """Unsupported features raise errors that say so."""
    with pytest.raises((NotImplementedError, ValueError), match=message):
        run(maxjax, text)
