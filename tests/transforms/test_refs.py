"""Array references: programs that JAX and maxjax both run."""

from __future__ import annotations

import textwrap

import jax
import numpy as np
import pytest

import maxjax
from tests.support.against_jax import assert_tree_same
from tests.support.selection import extended_but

STASH = """
@jax.custom_vjp
def stash(r, x): return x
def forward(r, x): return x, r
def backward(r, g):
    r.addupdate(g)
    return None, g
stash.defvjp(forward, backward)
r = jax.new_ref(jnp.float32(0))
"""

RULES = """
@jax.custom_vjp
def accumulate(r, x):
    r[...] += x
    return 2 * x
accumulate.defvjp(lambda r, x: (accumulate(r, x), None), lambda _, g: (None, g))
@jax.custom_vjp
def product(r, x): return r[...] * x
product.defvjp(lambda r, x: (product(r, x), r[...]), lambda value, g: (None, 10 * value * g))
@jax.custom_vjp
def writes(r, x): return 2 * x + 0 * r[...]
def forward(r, x):
    r[...] = x
    return 2 * x, None
writes.defvjp(forward, lambda _, g: (None, 3 * g))
@jax.custom_vjp
def count(r, x):
    r[...] += 1
    return x * r[...]
count.defvjp(lambda r, x: (count(r, x), r[...]), lambda n, g: (None, n * g))
"""

# Each puts its results in ``out``; references in it are replaced by their values.
PROGRAMS = {
    "reading": """
        r = jax.new_ref(jnp.arange(24.).reshape(2, 3, 4))
        out = (r[...], r[0], r[-1, 1], r[:, 1:, ::2], r[jax.ds(0, 1)], r[0, :, jnp.array([0, 1])],
               r[jnp.array([0, 1]), jnp.array([2, 0])], r[0, ..., 1], r[()], r[:, -2:],
               jax.ref.get(r), jax.ref.get(r, (0, 1)), r.shape, r.ndim, r.size, len(r))""",
    "writing": """
        r = jax.new_ref(jnp.zeros((3, 4)))
        r[0] = jnp.ones(4)
        r[1, 2] = 5.
        r[2, 1:] = jnp.arange(3.)
        r[:, ::2] += 1.
        r[jnp.array([0, 1]), jnp.array([3, 3])] = jnp.array([7., 8.])
        jax.ref.set(r, (0, 0), 9.)
        old = jax.ref.swap(r, 1, jnp.full(4, 2.))
        jax.ref.addupdate(r, (slice(None), jnp.array([0, 0])), jnp.ones((3, 2)))
        r.addupdate(1., (2, 3))
        out = old, r""",
    "indices out of range": """
        r = jax.new_ref(jnp.arange(3.))
        r[jnp.array([8, 1, -1])] = jnp.array([5., 6., 7.])
        out = r[jnp.array([8, -1, -9])], r[1:9], r[-5], r""",
    "in a shard_map under jit": """
        mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        def f(x):
            r = jax.new_ref(x)
            r[...] += 1
            return jax.freeze(r)
        settings = dict(mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
        out = (jax.jit(jax.shard_map(f, **settings))(jnp.ones(2)),
               jax.shard_map(jax.jit(f), **settings)(jnp.ones(2)))""",
    "computed places": """
        r = jax.new_ref(jnp.arange(8.))
        @jax.jit
        def f(i, r):
            r[i] = 10.
            r.addupdate(1., i)
            return r[i], r[jax.ds(i, 2)], r[jax.ds(i, 2, 3)], jax.ref.swap(
                r, jax.ds(i, 2), jnp.zeros(2))
        out = [(f(i, r), r[...]) for i in (0, 2, 7, 20)]""",
    "a body with side effects": """
        def f(values, xs):
            held, made = [jax.new_ref(v) for v in values], []
            total, *others = held[:]
            def body(c, x):
                made.append(1)
                first, last = held.pop(), held.pop()
                total[...] += x * first[...]
                return c + last[...] * x, first[...] + c
            c, ys = jax.lax.scan(body, 0., xs)
            return c, ys, total[...], len(made)
        xs = jnp.arange(4.) + 1
        first = f([1., 2., 3.], xs)
        def losses(values):
            c, ys, total, _ = f(values, xs)
            return jnp.sin(c) + ys.sum() * total
        out = first, jax.grad(losses)([1., 2., 3.]), jax.jit(losses)([1., 2., 3.]), jax.jvp(
            losses, ([1., 2., 3.],), ([1., 1., 0.],))""",
    "vjp beside a reference": """
        r = jax.new_ref(jnp.float32(2))
        y, f_vjp = jax.vjp(lambda x, r: x * r[...], jnp.float32(3), r)
        z, f_jvp = jax.linearize(lambda r, x: {"x": x * r[...]}, r, jnp.float32(3))
        g = jax.custom_vjp(lambda x, r: x * r[...])
        g.defvjp(lambda x, r: (g(x, r), r), lambda r, g: (g * r[...], None))
        out = y, z, jax.vjp(g, jnp.float32(3), r)[0], jax.grad(g)(jnp.float32(3), r)""",
    "ahead of time": """
        r, s = jax.new_ref(jnp.zeros(3)), jax.new_ref(jnp.ones(3))
        def f(r, x):
            r[...] += x
            return r[...] * 2
        lowered = jax.jit(f).lower(r, 1.)
        compiled = lowered.compile()
        out = [compiled(r, 1.), compiled(s, 2.), compiled(r, 3.), r, s,
               [x.shape for x in jax.tree.leaves(lowered.in_avals)],
               jax.jit(f).eval_shape(r, 1.).shape]""",
    "ahead of time, from outside": """
        r = jax.new_ref(jnp.zeros(3))
        @jax.jit
        def f(x):
            r[...] += x
            return x + 1
        compiled = f.lower(1.).compile()
        out = [compiled(1.), r[...], compiled(2.), f(4.), r]""",
    "integers of other widths": """
        r = jax.new_ref(jnp.zeros(3, int))
        r[0] = jnp.int8(3)
        out = r""",
    "freeze and free": """
        def f(x):
            r, s = jax.new_ref(x), jax.empty_ref(jax.typeof(x))
            s[...] = r[...] * 2
            x = s[...]
            jax.free_ref(s)
            return x, jax.freeze(r)
        out = jax.jit(f)(jnp.arange(3.)), jax.freeze(jax.new_ref(2))""",
    "keys": """
        r = jax.new_ref(jax.random.key(0))
        @jax.jit
        def draw():
            r[...], key = jax.random.split(r[...])
            return jax.random.uniform(key)
        out = draw(), draw()""",
    "views": """
        r = jax.new_ref(jnp.arange(6.).reshape(2, 3))
        @jax.jit
        def f(r):
            v = r.at[1]
            v[0] = 8.
            w = v.at[1:]
            w[...] += 1
            w[1] += 1
            return jax.ref.get(w), w[0], v[...], w.shape
        out = f(r), r""",
    "jit: arguments": """
        rs = {'a': jax.new_ref(jnp.zeros(2)), 'b': [jax.new_ref(jnp.ones(2))]}
        @jax.jit
        def f(p, *, k):
            p['a'][...] += p['b'][0][...] * k
            p['b'][0][...] *= 2
            return p['a'][0]
        out = f(rs, k=2.), f(rs, k=3.), rs""",
    "jit: closed over, one trace": """
        r, traces = jax.new_ref(0.), []
        @jax.jit
        def f(x):
            traces.append(1)
            r[...] += x
            return r[...]
        out = f(1.), f(2.), r[...], f(3.), len(traces)""",
    "jit: arguments, one trace for all references": """
        traces = []
        @jax.jit
        def f(r, x):
            traces.append(1)
            r[...] += x
        rs = [jax.new_ref(jnp.float32(n)) for n in range(4)]
        for r in rs: f(r, 1.)
        out = rs, len(traces)""",
    "jit in jit": """
        r = jax.new_ref(jnp.zeros(3))
        @jax.jit
        def g(r, x): r[...] += x
        @jax.jit
        def f(x):
            q = jax.new_ref(x)
            g(q, x); g(q, 2 * x); g(r, q[...])
            jax.jit(lambda a, b: jax.ref.set(a, 0, b[1]))(r, q)
            return q[...]
        out = f(jnp.ones(3)), r[...], f(jnp.ones(3)), r""",
    "jit: donated, static, inline": """
        import functools
        r = jax.new_ref(jnp.float32(2.))
        @functools.partial(jax.jit, static_argnums=1, donate_argnums=2)
        def f(x, n, y, r):
            r[...] += n
            return x * r[...] + y
        g = jax.jit(lambda x: x + r[...], inline=True)
        out = f(1., 3, jnp.ones(2), r), r, jax.jit(lambda x: g(x) * g(x))(1.)""",
    "an error half way leaves the value": """
        r = jax.new_ref(0.)
        def f(x):
            r[...] = x
            raise KeyError
        try: jax.jit(f)(1.)
        except KeyError: pass
        out = r""",
    "modules": """
        class Linear:
            def __init__(self, key):
                self.w = jax.new_ref(jax.random.normal(key, (3, 2)))
                self.b = jax.new_ref(jnp.zeros(2))
                self.calls = jax.new_ref(0)
            def __call__(self, x):
                self.calls[...] += 1
                return x @ self.w[...] + self.b[...]
        model, momentum = Linear(jax.random.key(0)), jax.new_ref(jnp.zeros((3, 2)))
        @jax.jit
        def step(x, y):
            def loss(w, b): return jnp.mean((x @ w + b - y) ** 2)
            value, (gw, gb) = jax.value_and_grad(loss, (0, 1))(model.w[...], model.b[...])
            momentum[...] = .9 * momentum[...] + gw
            model.w[...] -= .1 * momentum[...]
            model.b.addupdate(-.1 * gb)
            model(x)
            return value
        steps = [step(jnp.ones((4, 3)), jnp.zeros((4, 2))) for _ in range(3)]
        out = steps, model.calls, model.w""",
    "scan: closed over": """
        r = jax.new_ref(jnp.zeros(3))
        def f(c, i):
            r[i] += c
            return c + 1., r[...]
        out = jax.lax.scan(f, 1., jnp.arange(3)), jax.jit(
            lambda: jax.lax.scan(f, 1., jnp.arange(3)))(), r""",
    "scan: slices": """
        r, s = jax.new_ref(jnp.arange(4.)), jax.new_ref(jnp.zeros(4))
        def f(c, x):
            a, b = x
            b[...] = a[...] + c
            return c + 1., a[...]
        first = jax.lax.scan(f, 0., (r, s), reverse=True)
        out = first, s[...], jax.jit(lambda r, s: jax.lax.scan(f, 1., (r, s)))(r, s), r, s""",
    "foreach": """
        def foreach(*args):
            return lambda body: jax.lax.scan(lambda _, x: (None, body(*x)), None, args)[1]
        r = jax.new_ref(0)
        @foreach(jnp.arange(10))
        def ys(x):
            r[...] += x
            return x * 2
        out = r, ys""",
    "fori_loop, while_loop, map": """
        r = jax.new_ref(jnp.arange(4.))
        def f(i, c):
            r.addupdate(c, i)
            return c * 2
        def g(i):
            r[i] += 1.
            return i + 1
        one = jnp.float32(1)
        out = (jax.lax.fori_loop(0, 3, f, one), jax.jit(
            lambda n: jax.lax.fori_loop(0, n, f, one))(2), jax.lax.while_loop(
            lambda i: i < 2, g, 0), jax.lax.map(lambda x: x[...], r), r)""",
    "cond and switch": """
        r, s = jax.new_ref(jnp.float32(1)), jax.new_ref(jnp.float32(10))
        def add(n):
            def f(q): q.addupdate(jnp.float32(n)); return q[...]
            return f
        @jax.jit
        def f(p, x):
            def yes(): r[...] = x
            jax.lax.cond(p, yes, lambda: s.addupdate(r[...]))
            return jax.lax.cond(p, lambda q: q[...] * 2, lambda q: x, r)
        g = jax.jit(lambda i, r: jax.lax.switch(i, [add(1), add(2), add(3)], r))
        x = jnp.float32(4)
        out = f(True, x), f(False, x), g(2, r), g(0, r), jax.lax.cond(True, add(1), add(2), s), r, s
        """,
    "cond in scan in jit": """
        r = jax.new_ref(0.)
        @jax.jit
        def f():
            def b(c, x):
                def t(): r[...] += x
                jax.lax.cond(x > 1, t, lambda: None)
                return c, r[...]
            return jax.lax.scan(b, None, jnp.arange(4.))
        out = f(), r""",
    "vmap: arguments": """
        def dist(x, y, out):
            out[...] = jnp.sum((x - y) ** 2)
        xs, r = jnp.arange(12.).reshape(3, 4), jax.new_ref(jnp.zeros((3, 3)))
        jax.vmap(jax.vmap(dist, (0, None, 0)), (None, 0, 0))(xs, xs, r)
        s = jax.new_ref(jnp.zeros((3, 4)))
        f = lambda s, i, x: jax.ref.swap(s, i, x)
        first = jax.vmap(f, (0, 0, None))(s, jnp.arange(3), 2.)
        jax.vmap(jax.jit(lambda s, x: s.addupdate(x)))(s, xs)
        out = r, s, first, jax.vmap(lambda x, s: x + s[0, 0], (0, None))(xs, s)""",
    "vmap: inside": """
        def f(x, i):
            r = jax.new_ref(jnp.zeros(3))
            r[i] = x[0]
            r[1:] += x[1:] * r[0]
            return r[...]
        xs = jnp.arange(6.).reshape(2, 3)
        out = jax.vmap(f)(xs, jnp.array([0, 2])), jax.jit(jax.vmap(f))(xs, jnp.array([0, 2]))""",
    "derivatives: inside": """
        def f(x):
            r = jax.new_ref(jnp.zeros(4))
            def body(i, _): r[i] = jnp.sin(x * i) * r[0]
            r[0] = x
            jax.lax.fori_loop(1, 4, body, None)
            return (r[...] ** 2).sum()
        def g(x):
            r = jax.new_ref(x)
            jax.lax.cond(x > 0, lambda: jax.ref.set(r, ..., jnp.sin(r[...])), lambda: None)
            return r[...]
        def h(x):
            r = jax.new_ref(x)
            jax.lax.while_loop(lambda i: i < 3, lambda i: (
                jax.ref.set(r, ..., r[...] * x), i + 1)[1], 0)
            return r[...]
        out = (jax.grad(f)(2.), jax.jit(jax.grad(f))(2.), jax.jvp(f, (2.,), (1.,)), jax.grad(g)(2.),
               jax.grad(jax.jit(g))(-2.), jax.jvp(h, (2.,), (1.,)), jax.linearize(f, 2.)[1](1.))""",
    "derivatives: plumbing": """
        r = jax.new_ref(jnp.float32(2))
        def f(x, r):
            y = x * r[...]
            r[...] += jax.lax.stop_gradient(y)
            return y
        out = jax.grad(f)(1., r), jax.jit(jax.grad(f))(1., r), jax.grad(jax.jit(f))(1., r), r""",
    "jvp by a reference": """
        r, t = jax.new_ref(3.), jax.new_ref(1.)
        def f(r):
            r[...] = jnp.sin(r[...])
            return r[...] ** 2
        out = jax.jvp(f, (r,), (t,)), r, t""",
    "with_refs": """
        g, h = jax.new_ref(100.), jax.new_ref(jnp.zeros(3))
        _, f_vjp = jax.vjp(lambda a, b: a['x'] * b, {'x': 2.}, jnp.ones(3))
        f_vjp.with_refs({'x': g}, h)(jnp.arange(3.))
        first = f_vjp.with_refs({'x': jax.ad.GradValue()}, h)(jnp.ones(3))[0]
        names = str(f_vjp.with_refs({'x': jax.ad.DontWant()}, h)(jnp.ones(3)))
        out = g, h, first, names""",
    "gradients summed over parts of a batch": """
        def loss(ws, xs):
            return jnp.mean(jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), xs, ws)[0])
        @jax.jit
        def batch(ws, xs):
            total = jax.new_ref(jnp.zeros_like(ws))
            def part(_, xs):
                value, f_vjp = jax.vjp(lambda ws: loss(ws, xs), ws)
                f_vjp.with_refs(total)(jnp.ones_like(value))
                return (), value
            values = jax.lax.scan(part, (), xs.reshape(3, 2, 4))[1]
            return jax.freeze(total), values
        out = batch(jnp.ones((2, 4, 4)) / 8, jnp.arange(24.).reshape(6, 4) / 24)""",
    **{f"vjp of a reference: {name}": f"""
        def f(x, r):
            {body}
        r, g = jax.new_ref(jnp.arange(3.)), jax.new_ref(jnp.array([1., 2., 3.]))
        value, f_vjp = jax.vjp(f, jnp.float32(1.5), r)
        by_x, mark = f_vjp.with_refs(jax.ad.GradValue(), g)(jnp.float32(2))
        out = value, by_x, str(mark), r, g, f_vjp.with_refs(jax.ad.DontWant(), g)(1.)[1] and g"""
       for name, body in {
           "read": "return x * r[1]", "unused": "return x", "only written": "r[0] = x; return x",
           "a constant written": "r[...] = jnp.ones(3); return x",
           "read and written": "y = x * r[2]; r[1] = y * y; return y + r[1]",
           "added to": "r.addupdate(x, 1); return jnp.sin(x * r[1])",
           "in a scan": "return jax.lax.scan(lambda c, i: (jax.ref.set(r, i, r[i] * c), "
                        "(c + r[i], None))[1], x, jnp.arange(3))[0]"}.items()},
    "vjp of a reference: not wanted": """
        r = jax.new_ref(2.)
        f_vjp = jax.vjp(lambda x, d: x * d['r'][...], jnp.float32(3), {'r': r})[1]
        out = f_vjp.with_refs(jax.ad.GradValue(), {'r': jax.ad.DontWant()})(1.)[0]""",
    "vjp of a reference: in jit": """
        @jax.jit
        def run(x, r, g):
            def f(x, r):
                y = x * r[...]
                r[...] = y * y
                return y
            value, f_vjp = jax.vjp(f, x, r)
            return value, f_vjp.with_refs(jax.ad.GradValue(), g)(1.)[0]
        r, g = jax.new_ref(2.), jax.new_ref(5.)
        out = run(3., r, g), r, g""",
    "vjp of a reference: under grad": """
        def outer(x):
            r, g = jax.new_ref(x), jax.new_ref(0.)
            f_vjp = jax.vjp(lambda x, r: x * r[...] ** 2, 3., r)[1]
            return f_vjp.with_refs(jax.ad.GradValue(), g)(1.)[0] + g[...]
        out = jax.grad(outer)(2.)""",
    "linearize of a reference": """
        def f(x, r):
            r[...] = jnp.sin(r[...] * x)
            return x * r[...]
        r, t = jax.new_ref(2.), jax.new_ref(3.)
        value, f_jvp = jax.linearize(f, 0.5, r)
        out = value, f_jvp(1., t), r, t""",
    "custom_vjp: stashed gradients": STASH + """
        def f(x, r): return jnp.sin(stash(r, x))
        first = jax.grad(f)(1., r), f(1., r), jax.jit(f)(1., r), r[...]
        out = first, jax.jit(jax.grad(f))(2., r), r[...], jax.grad(jax.jit(f))(3., r), r""",
    "custom_vjp: stashed in a scan": STASH + """
        def f(x, r):
            return jax.lax.scan(lambda c, _: (jnp.sin(stash(r, c)), None), x, length=3)[0]
        s = jax.new_ref(jnp.zeros(3))
        mapped = jax.vmap(jax.grad(lambda x, s: jnp.sin(stash(s, x))))(jnp.arange(3.), s)
        out = (jax.grad(f)(1., r), jax.jit(jax.grad(f))(1., r), jax.grad(jax.jit(f))(1., r), r,
               mapped, s)""",
    **{f"custom_vjp of a reference: {name}": RULES + f"""
        transform = {transform}
        r = jax.new_ref(jnp.full(3, 2.))
        def new(): return jax.new_ref(jnp.full(3, 3.))
        def later(x):
            r = jax.new_ref(jnp.sin(x))
            return (accumulate(r, x) + r[...]).sum()
        x = jnp.arange(3.)
        out = [transform(f)(x) for f in (
            lambda x: product(r, x).sum(), lambda x: accumulate(r, x).sum(),
            lambda x: writes(r, x).sum(), lambda x: product(jax.new_ref(x), x).sum(), later,
            lambda x: (lambda r: accumulate(r, accumulate(r, x)).sum() + r[...].sum())(new()),
            lambda x: (lambda r: jax.lax.scan(lambda c, _: (accumulate(r, c), None), x, None,
                                              length=3)[0].sum() + r[...].sum())(new()),
            lambda x: (lambda r: jax.lax.fori_loop(0, 3, lambda i, c: product(r, c),
                                                   x).sum())(new()),
            lambda x: (lambda r: jax.lax.cond(x[1] > 0, lambda: accumulate(r, x), lambda: x).sum()
                       + r[...].sum())(new()),
            lambda x: (lambda r: jax.jit(accumulate)(r, x).sum() + r[...].sum())(new()),
            lambda x: jax.vmap(lambda y: product(r, y))(jnp.stack([x, x])).sum(),
            lambda x: count(jax.new_ref(jnp.int32(0)), x).sum())], r"""
       for name, transform in {
           "grad": "jax.grad", "jit": "jax.jit", "jit of grad": "lambda f: jax.jit(jax.grad(f))",
           "grad of jit": "lambda f: jax.grad(jax.jit(f))",
           "value and gradient": "lambda f: jax.jit(jax.value_and_grad(f))"}.items()},
    **{f"custom_vjp of a reference: {name}, with a cotangent": f"""
        def function(r, x): {body}
        f = jax.custom_vjp(function)
        f.defvjp(lambda r, x: (function(r, x), x), lambda x, g: ({cotangent}, 7 * g))
        def once(x): return f(jax.new_ref(jnp.sin(x)), x)
        def later(x):
            r = jax.new_ref(jnp.sin(x))
            return f(r, x) + r[...]
        def twice(x):
            r = jax.new_ref(jnp.sin(x))
            r[...] = r[...] * 2
            return (f(r, x) + f(r, 2 * x)) * r[...]
        def loop(x):
            r = jax.new_ref(jnp.sin(x))
            return jax.lax.scan(lambda c, _: (c + f(r, x), None), 0., None, length=2)[0]
        out = [(jax.grad(g)(0.7), jax.jit(jax.grad(g))(0.7), jax.grad(jax.jit(g))(0.7),
                jax.vmap(jax.grad(g))(jnp.array([0.7, 0.2])), jax.grad(jax.checkpoint(g))(0.7))
               for g in (once, later, twice, loop)]"""
       for name, body, cotangent in (
           ("read", "return r[...] * x", "5 * g"), ("unused", "return 2 * x", "5 * g"),
           ("none given", "return r[...] * x", "None"),
           ("written", "r[...] = r[...] * x; return r[...] + x", "5 * g"))},
    "custom_vjp of a reference: argument": RULES + """
        r = jax.new_ref(jnp.full(3, 2.))
        x = jnp.arange(3.)
        out = [jax.jit(accumulate)(r, x), jax.jit(lambda r, x: jax.grad(
            lambda x: product(r, x).sum())(x))(r, x), r]""",
    "custom_vjp of a reference: residual": """
        @jax.custom_vjp
        def f(r, x): return r[...] * x
        f.defvjp(lambda r, x: (f(r, x), r), lambda r, g: (None, r[...] * g))
        r = jax.new_ref(jnp.full(3, 2.))
        out = [transform(lambda x: f(r, x).sum())(jnp.ones(3))
               for transform in (jax.grad, lambda f: jax.jit(jax.grad(f)))]""",
    "custom_vjp of a reference: symbolic zeros": """
        @jax.custom_vjp
        def f(r, x):
            r[...] *= 2
            return r[...] * x
        f.defvjp(lambda r, x: (f(r.value, x.value), None), lambda _, g: (None, 7 * g),
                 symbolic_zeros=True)
        def g(x): return f(jax.new_ref(jnp.ones(3)), x).sum()
        out = jax.grad(g)(jnp.ones(3)), jax.jit(jax.grad(g))(jnp.ones(3))""",
    "custom_vjp: order and reads": """
        @jax.custom_vjp
        def stash(r, x): return x
        stash.defvjp(lambda r, x: (x, r), lambda r, g: (
            jax.ref.set(r, ..., r[...] * 2 + g), (None, g))[1])
        r, w = jax.new_ref(jnp.zeros(2)), jnp.arange(4.).reshape(2, 2)
        def f(x, r):
            return jax.lax.scan(lambda c, w: (jnp.tanh(stash(r, c) * w), None), x, w)[0].sum()
        out = jax.grad(f)(jnp.ones(2), r), r""",
    "checkpoint": """
        r = jax.new_ref(3.)
        @jax.checkpoint
        def f(x):
            q = jax.new_ref(x)
            q[...] *= r[...]
            return jnp.sin(q[...])
        @jax.checkpoint
        def g(x, r):
            r[...] = 2.
            return jnp.sin(x) * r[...]
        out = f(1.), jax.grad(f)(1.), jax.jit(jax.grad(f))(1.), g(1., r), jax.grad(g)(1., r), r""",
    "looking without running": """
        r = jax.new_ref(jnp.arange(3.))
        def f(r):
            r[0] = 5.
            return r[1:]
        shape = jax.eval_shape(f, r)
        jax.make_jaxpr(f)(r)
        typed = jax.eval_shape(f, jax.typeof(r))
        out = shape.shape, r, str(jax.typeof(r)), repr(r), typed.shape""",
    "disable_jit": """
        r = jax.new_ref(jnp.arange(3.))
        with jax.disable_jit():
            jax.jit(lambda r: jax.ref.set(r, 0, 4.))(r)
            jax.lax.cond(True, lambda: r.addupdate(jnp.ones(3)), lambda: None)
        out = r""",
    "copies": """
        import copy
        r = jax.new_ref(jnp.arange(3.))
        s = copy.deepcopy(r)
        s[0] = 7.
        out = r, s, len(jax.tree.leaves({'a': r}))""",
}
# Types and first lines agree, up to "Transforms", after which JAX shows its own classes.

def run(library, text):
    names = {"jax": library, "jnp": library.numpy, "np": np}
    exec(textwrap.dedent(text) if text.startswith("\n ") else _dedented(text), names)
    if "out" not in names:
        return None
    return library.tree.map(
        lambda leaf: leaf[...] if isinstance(leaf, library.Ref) else leaf, names["out"])


def _dedented(text):
    """A text whose first lines are not indented and whose others are."""
    head, found, tail = text.partition("\n        ")
    return head + "\n" + textwrap.dedent("        " + tail) if found else textwrap.dedent(text)


@pytest.mark.parametrize("name", extended_but([*PROGRAMS][::3], PROGRAMS))
def test_a_program_with_references_agrees_with_jax(name):
    text = PROGRAMS[name]
    assert_tree_same(run(maxjax, text), run(jax, text), weak=False, derivative=True)
