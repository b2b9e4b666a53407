"""Control flow: scan, while_loop, fori_loop, cond, switch, map, associative_scan, composed."""

from __future__ import annotations

import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)
C, W = (RNG.normal(size=(3,)).astype(np.float32) for _ in range(2))
X = RNG.normal(size=(4, 3)).astype(np.float32)
M = (0.3 * RNG.normal(size=(3, 3))).astype(np.float32)
Z = (RNG.normal(size=(4, 3)) + 1j * RNG.normal(size=(4, 3))).astype(np.complex64)
N = np.array([3, 1, 4, 1], np.int32)
P = np.array([True, False, True])
S = np.float32(1.5)


# --- scan -----------------------------------------------------------------------------------------

def cell(j, c, x, **options):
    """A carry of one array; outputs from the carry and from the input."""
    return j.lax.scan(lambda c, x: (j.numpy.tanh(c + x), (c * x, j.numpy.sin(x))), c, x, **options)


def recurrent(j, m, c, x):
    """Closes over an array, of which the body computes something that is always the same."""
    def body(c, x):
        c = j.numpy.tanh(j.numpy.sin(m) @ c + x)
        return c, c.sum()

    return j.lax.scan(body, c, x)


def counting(j, c, x):
    """Integers beside floats in the carry."""
    def body(carry, x):
        i, total = carry
        return (i + 1, total * x + i.astype(total.dtype)), i * 2

    return j.lax.scan(body, (j.numpy.int32(0), c), x)


def late_tangent(j, c, x):
    """The second carry has no tangent at first, the third one never."""
    def body(carry, x):
        a, b, d = carry
        return (a * x, b + a, d * 2), b

    return j.lax.scan(body, (c, j.numpy.zeros_like(c), j.numpy.ones_like(c)), x[:, ::-1])


def handing_on(j, c, x):
    """Unchanged carries, and outputs that are inputs."""
    return j.lax.scan(lambda carry, y: ((carry[0], carry[1] + carry[0] * y), (y, carry[0])),
                      (c, c), x)


def tree_scan(j, c, x):
    def body(carry, xs):
        new = {"a": carry["a"] + xs["u"], "b": carry["b"] * 0.5}
        return new, [xs["v"].sum(), new["a"]]

    return j.lax.scan(body, {"a": c, "b": j.numpy.ones(2)}, {"u": x, "v": 2 * x})


def by_length(j, c):
    return j.lax.scan(lambda c, _: (j.numpy.cos(c), c), c, None, length=5)


def nothing_to_scan(j, c, x):
    return j.lax.scan(lambda c, x: (c + x, c * x), c, x[:0])


def scan_in_scan(j, c, x):
    def outer(c, row):
        def inner(d, y):
            return j.numpy.sin(d * y), d

        total, ds = j.lax.scan(inner, c.sum(), row)
        return c * total, ds

    return j.lax.scan(outer, c, x)


def scan_of_gradient(j, c, x):
    def energy(c, x):
        return (j.numpy.sin(c) * x).sum()

    return j.lax.scan(lambda c, x: (c - 0.1 * j.grad(energy)(c, x), energy(c, x)), c, x)[0]


def gradient_of_scan(j, c, x):
    return j.grad(lambda c: (cell(j, c, x)[0] ** 2).sum())(c)


def jit_in_scan(j, c, x):
    step = j.jit(lambda c, x: j.numpy.tanh(c) + x)
    return j.lax.scan(lambda c, x: (step(c, x), step(x, c)), c, x)


def vmap_in_scan(j, c, x):
    return j.lax.scan(
        lambda c, x: (j.vmap(lambda a, b: a * j.numpy.cos(b))(c, x), None), c, x)[0]


def keys_in_scan(j, n):
    def body(key, x):
        key, sub = j.random.split(key)
        return key, j.random.uniform(sub, (2,)) + x

    return j.lax.scan(body, j.random.key(n[0]), n.astype(np.float32))[1]


def weak_carry(j, x):
    """Weakly typed zeros yield to what the body makes of them."""
    return j.lax.scan(lambda c, x: (c + x.sum(), c), 0, x)


# --- while_loop and fori_loop ---------------------------------------------------------------------

def doubling(j, c):
    """How often depends on the value: each element of a batch runs as long as it needs."""
    return j.lax.while_loop(lambda s: (s[0] ** 2).sum() < 50.0,
                            lambda s: (s[0] * 1.5 + 0.1, s[1] + 1), (c, 0))


def newton(j, x):
    return j.lax.while_loop(lambda y: abs(y * y - x) > 1e-4, lambda y: 0.5 * (y + x / y), x)


def counted_while(j, c, n):
    """The predicate does not depend on the floats."""
    return j.lax.while_loop(lambda s: s[0] < n[0], lambda s: (s[0] + 1, j.numpy.sin(s[1])),
                            (j.numpy.int32(0), c))[1]


def gcd(j, n):
    a, b = n[0] * 12, n[2] * 9
    return j.lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]


def closing_while(j, c, w):
    return j.lax.while_loop(lambda s: s.sum() < w.sum() + 10, lambda s: s + w ** 2 + 0.5, c)


def never(j, c):
    return j.lax.while_loop(lambda c: j.numpy.bool_(False), lambda c: c + 1, c)


def fori(j, c, w):
    return j.lax.fori_loop(0, 5, lambda i, c: j.numpy.sin(c) * w + i, c)


def fori_from(j, c):
    return j.lax.fori_loop(2, 6, lambda i, c: c * 0.5 + i, c)


def fori_indexed(j, x):
    return j.lax.fori_loop(
        0, 4, lambda i, s: (s[0] + x[i] * s[1], s[1].at[i % 3].add(x[i, 0])),
        (x[0], x[1]))


def fori_dynamic(j, c, n):
    return j.lax.fori_loop(0, n[2], lambda i, c: j.numpy.sin(c) + 0.1 * i, c)


def fori_backwards(j, c):
    return j.lax.fori_loop(3, 0, lambda i, c: c + 1, c)


# --- cond and switch ------------------------------------------------------------------------------

def choice(j, p, c, w):
    return j.lax.cond(p[0], lambda a, b: (a * j.numpy.sin(b), b), lambda a, b: (b, a * a), c, w)


def choice_by_value(j, s, c):
    return j.lax.cond(s > 0, lambda a: j.numpy.log(abs(a) + s), lambda a: a * s, c)


def closing_choice(j, p, c, w):
    return j.lax.cond(p[1], lambda: c * w, lambda: c - w)


def choice_without_tangent(j, p, c):
    """One branch is a constant."""
    return j.lax.cond(p[2], lambda a: (a * 2, a), lambda a: (j.numpy.ones(3), a), c)


def guarded(j, x):
    """The derivative of the branch that is not taken is infinite."""
    return j.lax.cond(x > 0, lambda x: j.numpy.sqrt(x), lambda x: 0.0 * x, x)


def keyword_operand(j, p, c):
    return j.lax.cond(p[0], lambda a: a[0] + 1, lambda a: a[1], operand=(c, 2 * c))


def no_operand(j, p):
    return j.lax.cond(p[0], lambda _: 1, lambda _: 2, operand=None)


def number_as_predicate(j, s, c):
    return j.lax.cond(s, lambda a: a, lambda a: -a, c)


def integers_chosen(j, p, n):
    return j.lax.cond(p[0], lambda n: (n + 1, n > 2), lambda n: (n * 2, n < 1), n)


def switched(j, n, c, w):
    return j.lax.switch(n[1], [
        lambda a, b: a + b, lambda a, b: a * j.numpy.cos(b), lambda a, b: b], c, w)


def switched_out_of_range(j, n, c):
    return [j.lax.switch(n[0] + k, [lambda a: a, lambda a: 2 * a, lambda a: a * a], c)
            for k in (-9, 9)]


def nested_choice(j, p, c):
    inner = lambda a: j.lax.cond(p[1], j.numpy.sin, lambda b: b * b, a)
    return j.lax.cond(p[0], inner, lambda a: a, c)


def choice_of_keys(j, p, n):
    key = j.random.key(n[0])
    key = j.lax.cond(p[0], lambda k: j.random.fold_in(k, 1), lambda k: k, key)
    return j.random.uniform(key, (3,))


# --- all together ---------------------------------------------------------------------------------

def choice_in_scan(j, c, x):
    def body(c, x):
        c = j.lax.cond(x.sum() > 0, lambda c: j.numpy.sin(c) * x, lambda c: c - x, c)
        return c, c[0]

    return j.lax.scan(body, c, x)


def scan_in_choice(j, p, c, x):
    return j.lax.cond(p[0], lambda c: cell(j, c, x)[0], lambda c: c * x[0], c)


def scan_in_choice_in_while(j, c, x):
    def body(state):
        i, c = state
        return i + 1, j.lax.cond(
            i % 2 == 0, lambda c: j.lax.scan(lambda c, x: (j.numpy.tanh(c + x), None), c, x)[0],
            lambda c: 0.5 * c, c)

    return j.lax.while_loop(lambda s: s[0] < 3, body, (0, c))[1]


def while_in_scan(j, c, x):
    def body(c, x):
        c = j.lax.while_loop(lambda c: (c ** 2).sum() > 1.0, lambda c: 0.7 * c, c + x)
        return c, c.sum()

    return j.lax.scan(body, c, x)


def hessian_through_scan(j, c, x):
    return j.hessian(lambda c: cell(j, c, x)[0].sum())(c)


def jacobians(j, c, x):
    f = lambda c: recurrent(j, j.numpy.eye(3), c, x)
    return j.jacfwd(f)(c), j.jacrev(f)(c)


def own_rule_in_scan(j, c, x):
    @j.custom_jvp
    def f(c, x):
        return j.numpy.sin(c) * x

    @f.defjvp
    def f_jvp(primals, tangents):
        (c, x), (c_dot, x_dot) = primals, tangents
        return f(c, x), 3 * x * c_dot + j.numpy.cos(c) * x_dot

    return j.lax.scan(lambda c, x: (f(c, x), None), c, x)[0]


# --- map and associative_scan ---------------------------------------------------------------------

def mapped(j, x, w, **options):
    return j.lax.map(lambda row: {"a": row * w, "b": j.numpy.sin(row).sum()}, x, **options)


def products(j, x, **options):
    return j.lax.associative_scan(j.numpy.multiply, x, **options)


def matrix_products(j, m, **options):
    ms = j.numpy.stack([m, 2 * m, m.T, m + 1, m])
    return j.lax.associative_scan(lambda a, b: a @ b, ms, **options)


def linear_recurrence(j, x, **options):
    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    return j.lax.associative_scan(combine, (j.numpy.tanh(x), x), axis=1, **options)


# --- custom_linear_solve and custom_root ----------------------------------------------------------

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.3, 0.1, 5.0]], np.float32)


def jacobi(j, matrix):
    """A solver that nobody could differentiate in reverse mode."""
    def solve(matvec, b):
        diagonal = j.numpy.diag(matrix)
        return j.lax.while_loop(
            lambda x: abs(matvec(x) - b).max() > 1e-5,
            lambda x: x + (b - matvec(x)) / diagonal, j.numpy.zeros_like(b))
    return solve


def linear_system(j, a, b):
    stopped = j.lax.stop_gradient(a)
    return j.lax.custom_linear_solve(
        lambda x: a @ x, b, jacobi(j, stopped), jacobi(j, stopped.T))


def symmetric_system(j, a, b):
    s = a + a.T
    return j.lax.custom_linear_solve(
        lambda x: {"x": s @ x["x"]}, {"x": b},
        lambda matvec, b: {"x": j.numpy.linalg.solve(s, b["x"])}, symmetric=True)


def system_with_data(j, a, b):
    def solve(matvec, b):
        x = j.numpy.linalg.solve(a, b)
        return x, abs(matvec(x) - b).max() < 1e-3

    return j.lax.custom_linear_solve(lambda x: a @ x, b, solve, has_aux=True)


def root(j, a, b):
    """x with x^3 + a x = b, by Newton's method."""
    def solve(f, x):
        def step(x):
            value, slope = j.jvp(f, (x,), (j.numpy.ones_like(x),))
            return x - value / slope

        return j.lax.while_loop(lambda x: abs(f(x)).max() > 1e-5, step, x)

    return j.lax.custom_root(lambda x: x ** 3 + a * x - b, j.numpy.ones_like(b), solve,
                             lambda g, y: y / g(j.numpy.ones_like(y)))


CASES = [
    Case("custom_linear_solve", linear_system, (A, C), tolerance="iterative", smooth=False),
    Case("custom_linear_solve-symmetric", symmetric_system, (A, C), tolerance="iterative"),
    Case("custom_linear_solve-aux", system_with_data, (A, C), tolerance="iterative",
         differentiable=False),
    Case("custom_linear_solve-aux-forward", lambda j, a, b: j.jvp(
        lambda b: system_with_data(j, a, b)[0], (b,), (b,)), (A, C), tolerance="iterative",
        differentiable=False),
    Case("custom_root", root, (np.abs(C) + 1, W), tolerance="iterative", smooth=False),
    Case("scan", cell, (C, X)),
    Case("scan-reverse", lambda j, c, x: cell(j, c, x, reverse=True), (C, X)),
    Case("scan-unroll", lambda j, c, x: cell(j, c, x, unroll=3), (C, X)),
    Case("scan-unroll-all", lambda j, c, x: cell(j, c, x, unroll=True, reverse=True), (C, X)),
    Case("scan-split-transpose", lambda j, c, x: cell(j, c, x, _split_transpose=True), (C, X)),
    Case("scan-closure", recurrent, (M, C, X), tolerance="accumulate"),
    Case("scan-counter", counting, (C, X)),
    Case("scan-late-tangent", late_tangent, (C, X)),
    Case("scan-handing-on", handing_on, (C, X)),
    Case("scan-tree", tree_scan, (C, X), tolerance="accumulate", smooth=False),
    Case("scan-length", by_length, (C,)),
    Case("scan-empty", nothing_to_scan, (C, X)),
    Case("scan-in-scan", scan_in_scan, (C, X), tolerance="accumulate"),
    Case("scan-of-gradient", scan_of_gradient, (C, X)),
    Case("scan-gradient", gradient_of_scan, (C, X), tolerance="accumulate"),
    Case("scan-jit-inside", jit_in_scan, (C, X)),
    Case("scan-vmap-inside", vmap_in_scan, (C, X)),
    Case("scan-keys", keys_in_scan, (N,), differentiable=False),
    Case("scan-weak-carry", weak_carry, (X,), tolerance="accumulate", smooth=False),
    Case("scan-complex", cell, (Z[0], Z[1:]), tolerance="accumulate"),
    Case("scan-bfloat16", cell, (C.astype("bfloat16"), X.astype("bfloat16")), smooth=False,
         differentiable=False, vmappable=False),
    Case("scan-integers", lambda j, n: j.lax.scan(lambda c, x: (c * x, c + x), 1, n), (N,),
         differentiable=False, tolerance="exact"),
    Case("scan-x64", cell, (C.astype(np.float64), X.astype(np.float64)), x64=True),
    Case("while", doubling, (C,), differentiable=False),
    Case("while-forward", lambda j, c: j.jvp(lambda c: doubling(j, c)[0], (c,), (c,)), (C,),
         differentiable=False),
    Case("while-linearize", lambda j, c: j.linearize(lambda c: doubling(j, c)[0], c)[1](c), (C,),
         differentiable=False),
    Case("while-jacfwd", lambda j, c: j.jacfwd(lambda c: doubling(j, c)[0])(c), (C,),
         differentiable=False),
    Case("while-newton", newton, (S,), differentiable=False),
    Case("while-counted", counted_while, (C, N), differentiable=False),
    Case("while-counted-forward",
         lambda j, c, n: j.jvp(lambda c: counted_while(j, c, n), (c,), (c,)), (C, N),
         differentiable=False),
    Case("while-gcd", gcd, (N,), differentiable=False, tolerance="exact"),
    Case("while-closure", closing_while, (C, W), differentiable=False),
    Case("while-closure-forward",
         lambda j, c, w: j.jvp(lambda w: closing_while(j, c, w), (w,), (c,)), (C, W),
         differentiable=False),
    Case("while-never", never, (C,), differentiable=False),
    Case("fori", fori, (C, W)),
    Case("fori-from", fori_from, (C,)),
    Case("fori-indexed", fori_indexed, (X,)),
    Case("fori-dynamic", fori_dynamic, (C, N), differentiable=False),
    Case("fori-dynamic-forward",
         lambda j, c, n: j.jvp(lambda c: fori_dynamic(j, c, n), (c,), (c,)), (C, N),
         differentiable=False),
    Case("fori-backwards", fori_backwards, (C,)),
    Case("fori-unroll", lambda j, c: j.lax.fori_loop(0, 5, lambda i, c: c * 0.5, c, unroll=2),
         (C,)),
    Case("cond", choice, (P, C, W)),
    Case("cond-by-value", choice_by_value, (S, C)),
    Case("cond-closure", closing_choice, (P, C, W)),
    Case("cond-without-tangent", choice_without_tangent, (P, C), smooth=False),
    Case("cond-guarded", guarded, (np.float32(-1.0),)),
    Case("cond-guarded-vmap", lambda j, c: j.vmap(lambda x: guarded(j, x))(c),
         (np.array([-1, 0, 4], np.float32),), smooth=False),
    Case("cond-keyword", keyword_operand, (P, C)),
    Case("cond-none", no_operand, (P,), differentiable=False),
    Case("cond-number", number_as_predicate, (S, C), smooth=False),
    Case("cond-old-form", lambda j, p, c, w: j.lax.cond(
        p[0], c, j.numpy.sin, w, lambda b: b * 2), (P, C, W)),
    Case("cond-integers", integers_chosen, (P, N), differentiable=False, tolerance="exact"),
    Case("cond-nested", nested_choice, (P, C)),
    Case("cond-keys", choice_of_keys, (P, N), differentiable=False),
    Case("switch", switched, (N, C, W)),
    Case("switch-clamped", switched_out_of_range, (N, C)),
    Case("switch-single", lambda j, n, c: j.lax.switch(n[0], [j.numpy.sin], c), (N, C)),
    Case("switch-gradient", lambda j, n, c: j.grad(
        lambda c: switched(j, n, c, c).sum())(c), (N, C)),
    Case("cond-in-scan", choice_in_scan, (C, X)),
    Case("scan-in-cond", scan_in_choice, (P, C, X)),
    Case("scan-in-cond-in-while", scan_in_choice_in_while, (C, X), differentiable=False),
    Case("scan-in-cond-in-while-forward", lambda j, c, x: j.jvp(
        lambda c: scan_in_choice_in_while(j, c, x), (c,), (c,)), (C, X), differentiable=False),
    Case("while-in-scan", while_in_scan, (C, X), differentiable=False),
    Case("while-in-scan-forward", lambda j, c, x: j.linearize(
        lambda c: while_in_scan(j, c, x), c)[1](c), (C, X), differentiable=False),
    Case("scan-hessian", hessian_through_scan, (C, X[:2]), differentiable=False,
         tolerance="accumulate"),
    Case("scan-jacobians", jacobians, (C, X[:2]), differentiable=False, tolerance="accumulate"),
    Case("scan-custom-jvp", own_rule_in_scan, (C, X), smooth=False),
    Case("map", mapped, (X, W), tolerance="accumulate"),
    Case("map-batches", lambda j, x, w: mapped(j, x, w, batch_size=3), (X, W),
         tolerance="accumulate"),
    Case("map-whole-batches", lambda j, x, w: mapped(j, x, w, batch_size=2), (X, W),
         tolerance="accumulate"),
    Case("map-one-batch", lambda j, x, w: mapped(j, x, w, batch_size=9), (X, W),
         tolerance="accumulate"),
    Case("associative_scan", products, (X,), tolerance="accumulate", signed_zeros=False),
    Case("associative_scan-reverse", lambda j, x: products(j, x, reverse=True, axis=1), (X,),
         tolerance="accumulate", signed_zeros=False),
    Case("associative_scan-matrices", matrix_products, (M,), tolerance="accumulate",
         signed_zeros=False),
    Case("associative_scan-pairs", linear_recurrence, (X,), tolerance="accumulate",
         signed_zeros=False),
    # These do not commute.
    Case("associative_scan-matrices-reverse", lambda j, m: matrix_products(j, m, reverse=True),
         (M,), tolerance="accumulate", signed_zeros=False),
    Case("associative_scan-pairs-reverse", lambda j, x: linear_recurrence(j, x, reverse=True),
         (X,), tolerance="accumulate", signed_zeros=False),
    Case("associative_scan-bool", lambda j, p: j.lax.associative_scan(
        j.numpy.logical_xor, p), (P,), differentiable=False, tolerance="exact"),
]
