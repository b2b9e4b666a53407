"""Programs with ``shard_map`` and ``pmap`` on 8 devices, of the named library.

A separate script, because the number of devices is fixed when a library starts: ``python -m
tests.sharding.shard_map_programs jax`` prints each program's outcome as JSON: values, a text, or an
error. JAX's outcomes are stored in ``shard_map.json``: computing them takes more than a minute.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Programs = dict[str, Callable[[], Any]]
# Run with JAX each time, and compiled by maxjax.
LIVE = ("collectives psum", "collectives all_gather of two", "gradients checked 3",
        "nests vmap of, over an axis", "texts mixed", "texts vjp", "errors carry",
        "errors wrong claims", "pmap in_axes")
COMPILED = ("collectives all_gather tiled", "collectives ppermute",
            "gradients checked 0", "tensor parallel")


class Library:
    """The parts of a library that the programs use, and meshes of 1, 2 and 3 axes."""

    def __init__(self, name: str):
        self.jax = importlib.import_module(name)
        self.jnp = importlib.import_module(f"{name}.numpy")
        self.lax = importlib.import_module(f"{name}.lax")
        sharding = self.sharding = importlib.import_module(f"{name}.sharding")
        self.P = sharding.PartitionSpec
        auto = sharding.AxisType.Auto

        def mesh(sizes: tuple[int, ...], names: tuple[str, ...]) -> Any:
            return self.jax.make_mesh(sizes, names, axis_types=(auto,) * len(names))

        self.line = mesh((8,), ("x",))
        self.plane = mesh((4, 2), ("x", "y"))
        self.space = mesh((2, 2, 2), ("b", "a", "c"))

    def map(self, f: Any, in_specs: Any, out_specs: Any, mesh: Any = None, **options: Any) -> Any:
        return self.jax.shard_map(f, mesh=mesh or self.plane, in_specs=in_specs,
                                  out_specs=out_specs, **options)


def numbers(*shape: int) -> np.ndarray:
    """Numbers of either sign, no two alike."""
    count = int(np.prod(shape))
    return (np.sin(np.arange(count) * 1.7) + np.arange(count) * 0.01).astype(
        np.float32).reshape(shape)


# --- collectives ----------------------------------------------------------------------------------


def collectives(j: Library) -> Programs:
    lax, P, jnp = j.lax, j.P, j.jnp
    x = numbers(32)
    plane, space = numbers(8, 4), numbers(4, 4, 4)
    both = P(("x", "y"))
    groups = [[0, 2], [1, 3]]
    ring = [(i, (i + 1) % 4) for i in range(4)]
    result: Programs = {
        "psum": lambda: j.map(lambda a: lax.psum(a, "x"), P("x"), P())(x),
        "psum of two": lambda: j.map(lambda a: lax.psum(a, ("x", "y")), both, P())(x),
        "psum of a tree": lambda: j.map(
            lambda t: lax.psum(t, "y"), ({"u": P("y"), "v": P(None, "y")},), P())(
                {"u": x, "v": plane}),
        "psum of what does not vary": lambda: j.map(lambda a: lax.psum(a, "y"), P("x"), P("x"))(x),
        "psum of a number": lambda: j.map(lambda a: a * lax.psum(1, "x"), P("x"), P("x"))(x),
        "psum of booleans": lambda: j.map(lambda a: lax.psum(a > 0, "x"), P("x"), P())(x),
        "pmean": lambda: j.map(lambda a: lax.pmean(a, "x"), P("x"), P())(x),
        "pmax": lambda: j.map(lambda a: lax.pmax(a, ("x", "y")), both, P())(x),
        "pmin": lambda: j.map(lambda a: lax.pmin(a, "y"), P("x", "y"), P("x"))(plane),
        "all_gather": lambda: j.map(lambda a: lax.all_gather(a, "x"), P("x"), P("x"))(x),
        "all_gather tiled": lambda: j.map(
            lambda a: lax.all_gather(a, "y", axis=1, tiled=True), P("x", "y"), P("x", "y"))(plane),
        "all_gather at 1": lambda: j.map(
            lambda a: lax.all_gather(a, "y", axis=1), P("x", "y"), P("x", "y"))(plane),
        "all_gather of two": lambda: j.map(
            lambda a: lax.all_gather(a, ("x", "y"), tiled=True), both, both)(x),
        "all_gather of two, minor first": lambda: j.map(
            lambda a: lax.all_gather(a, ("y", "x")), both, both)(x),
        "all_gather invarying": lambda: j.map(
            lambda a: lax.all_gather(a, "x", tiled=True, to="invarying"), P("x"), P())(x),
        "psum_scatter": lambda: j.map(
            lambda a: lax.psum_scatter(a, "x"), P(None, "x"), P("x"))(plane[:4]),
        "psum_scatter tiled": lambda: j.map(
            lambda a: lax.psum_scatter(a, "x", tiled=True), P("x"), P("x"))(x),
        "psum_scatter of two": lambda: j.map(
            lambda a: lax.psum_scatter(a, ("x", "y"), tiled=True), P(), both)(x),
        "ppermute": lambda: j.map(lambda a: lax.ppermute(a, "x", ring), P("x"), P("x"))(x),
        "ppermute of some": lambda: j.map(
            lambda a: lax.ppermute(a, "x", [(0, 1), (1, 3)]), P("x"), P("x"))(x),
        "ppermute of two": lambda: j.map(
            lambda a: lax.ppermute(a, ("x", "y"), [(i, (i + 3) % 8) for i in range(7)]),
            both, both)(x),
        "pshuffle": lambda: j.map(
            lambda a: lax.pshuffle(a, "x", [2, 0, 1, 3]), P("x"), P("x"))(x),
        "all_to_all": lambda: j.map(
            lambda a: lax.all_to_all(a, "x", 0, 0), P("x"), P("x"))(numbers(16, 3)),
        "all_to_all tiled": lambda: j.map(
            lambda a: lax.all_to_all(a, "y", 1, 0, tiled=True), P("x", "y"), P("x", "y"))(
                numbers(8, 8)),
        "all_to_all of two": lambda: j.map(
            lambda a: lax.all_to_all(a, ("x", "y"), 0, 0, tiled=True), both, both)(numbers(64)),
        "pswapaxes": lambda: j.map(lambda a: lax.pswapaxes(a, "x", 0), P("x"), P("x"))(
            numbers(16)),
        "axis_index": lambda: j.map(lambda a: a + lax.axis_index("x"), P("x"), P("x"))(x),
        "axis_index of two": lambda: j.map(
            lambda a: a + lax.axis_index(("y", "x")), both, both)(x),
        "axis_size": lambda: j.map(lambda a: a * lax.axis_size(("x", "y")), P("x"), P("x"))(x),
        "groups all_to_all": lambda: j.map(
            lambda a: lax.all_to_all(a, "x", 0, 0, axis_index_groups=groups), P("x"), P("x"),
            check_vma=False)(numbers(8)),
        "space, one axis": lambda: j.map(
            lambda a: lax.psum(a, "a"), P("a", "b", "c"), P(None, "b", "c"), j.space)(space),
        "space, two axes": lambda: j.map(
            lambda a: lax.psum(a, ("c", "b")), P("a", "b", "c"), P("a"), j.space)(space),
        "space, gather": lambda: j.map(
            lambda a: lax.all_gather(a, ("a", "c"), tiled=True), P(("a", "c"), "b"),
            P(("a", "c"), "b"), j.space)(space),
        "space, scatter": lambda: j.map(
            lambda a: lax.psum_scatter(a, ("c", "a"), tiled=True), P(None, "b"),
            P(("c", "a"), "b"), j.space)(space),
        "space, ring of two": lambda: j.map(
            lambda a: lax.ppermute(a, ("b", "c"), [(i, (i + 1) % 4) for i in range(4)]),
            P(("b", "c"), "a"), P(("b", "c"), "a"), j.space)(space),
        "space, exchange": lambda: j.map(
            lambda a: lax.all_to_all(a, ("a", "b"), 1, 0, tiled=True), P(("a", "b")),
            P(("a", "b")), j.space)(space),
        "random numbers": lambda: j.map(
            lambda k: j.jax.random.normal(j.jax.random.fold_in(k, lax.axis_index("x")), (2,)),
            P(), P("x"))(j.jax.random.key(0)),
        "no claim is checked": lambda: j.map(
            lambda a: a + lax.axis_index("y"), P("x"), P("x"), check_vma=False)(x),
        "a shard's constant": lambda: j.map(lambda a: a + jnp.arange(8.), P("x"), P("x"))(x),
    }
    for name in ("psum", "pmean", "pmax", "pmin", "all_gather"):
        result[f"groups {name}"] = lambda name=name: j.map(
            lambda a: getattr(lax, name)(a, "x", axis_index_groups=groups), P("x"), P("x"),
            check_vma=False)(numbers(8))
    for name in ("psum", "pmean", "pmax", "pmin"):
        result[f"groups of unlike sizes {name}"] = lambda name=name: j.map(
            lambda a: getattr(lax, name)(a, "x", axis_index_groups=[[0, 3, 1], [2]]), P("x"),
            P("x"), check_vma=False)(numbers(8))
    result["groups psum_scatter"] = lambda: j.map(
        lambda a: lax.psum_scatter(a, "x", axis_index_groups=groups, tiled=True), P("x"), P("x"),
        check_vma=False)(numbers(16))
    return result


# --- derivatives ----------------------------------------------------------------------------------


def derivatives(j: Library) -> Programs:
    jax, jnp, lax, P = j.jax, j.jnp, j.lax, j.P
    v, w = numbers(16), numbers(4)
    bodies = [
        (lambda a, b: lax.psum((a * b).sum(), "x"), P()),
        (lambda a, b: a * b * jnp.sin(b), P("x")),
        (lambda a, b: lax.pmean(a, "x") * b, P()),
        (lambda a, b: jnp.sin(lax.all_gather(a, "x", tiled=True))[:4] * b, P("x")),
        (lambda a, b: lax.psum_scatter(jnp.outer(b, a).ravel(), "x", tiled=True), P("x")),
        (lambda a, b: lax.ppermute(jnp.sin(a * b), "x", [(0, 1), (1, 3), (3, 2)]), P("x")),
        (lambda a, b: lax.all_to_all(jnp.sin(a) * b, "x", 0, 0, tiled=True), P("x")),
        (lambda a, b: a * lax.axis_index("x") + lax.psum(a.sum() * b, "x"), P("x")),
    ]
    result: Programs = {}
    for number, (body, out) in enumerate(bodies):
        for check in (True, False):
            f = j.map(body, (P("x"), P()), out, check_vma=check)

            def loss(v: Any, w: Any, f: Any = f) -> Any:
                return jnp.sum(jnp.sin(f(v, w)))

            name = f"{'checked' if check else 'unchecked'} {number}"
            result[name] = lambda loss=loss: jax.grad(loss, argnums=(0, 1))(v, w)
            if number % 2:
                result[f"forward, {name}"] = lambda f=f: jax.jvp(
                    f, (v, w), (numbers(16)[::-1].copy(), numbers(4)[::-1].copy()))

    def inner(a: Any, b: Any) -> Any:
        return lax.psum(jnp.sum(a * jnp.sin(b)), "x")

    result["inside, checked"] = lambda: j.map(
        jax.grad(inner, argnums=(0, 1)), (P("x"), P()), (P("x"), P()))(v, w)
    result["inside, unchecked"] = lambda: j.map(
        jax.grad(inner, argnums=(0, 1)), (P("x"), P()), (P("x"), P()), check_vma=False)(v, w)
    result["inside, of the shards' losses"] = lambda: j.map(
        jax.grad(lambda b, a: jnp.sum(a * jnp.sin(b))), (P(), P("x")), P())(w, v)
    result["gathered as one"] = lambda: jax.grad(j.map(
        lambda a: jnp.sin(lax.all_gather(a, "x", tiled=True, to="invarying")).sum(), P("x"), P()))(
            v)
    result["twice"] = lambda: jax.jacfwd(jax.grad(lambda t: jnp.sum(jnp.sin(j.map(
        lambda a: lax.psum(jnp.sin(a), "x"), P("x"), P())(t)))))(v)
    result["checkpoint"] = lambda: jax.grad(lambda t: j.map(jax.checkpoint(
        lambda a: lax.psum(jnp.sin(jnp.sin(a)), "x")), P("x"), P())(t).sum())(v)
    result["linearized"] = lambda: jax.linearize(j.map(
        lambda a: jnp.sin(a) * jnp.sin(a.sum()), P("x"), P("x")), v)[1](v)

    @jax.custom_vjp
    def product(a: Any, b: Any) -> Any:
        return a * b

    product.defvjp(lambda a, b: (a * b, (a, b)), lambda r, g: (g * r[1], lax.psum(g * r[0], "x")))
    result["a rule that sums"] = lambda: jax.grad(lambda b: jnp.sum(jnp.sin(j.map(
        product, (P("x"), P()), P("x"))(v, b))))(w)
    return result


# --- within other transformations -----------------------------------------------------------------


def nests(j: Library) -> Programs:
    jax, jnp, lax, P = j.jax, j.jnp, j.lax, j.P
    v, w = numbers(16), numbers(4, 16)

    def scaled(a: Any, b: Any) -> Any:
        return a * lax.psum(b, "x")

    def halves(a: Any) -> Any:
        def body(carry: Any, t: Any) -> Any:
            return jnp.tanh(carry * t + lax.psum(t, "x")), carry
        start = lax.pcast(jnp.ones(()), "x", to="varying")
        return lax.scan(body, start, a)[1]

    def until(a: Any) -> Any:
        return lax.while_loop(lambda c: lax.psum(c.sum(), "x") < 50, lambda c: c * 2 + 1, a)

    def branch(a: Any) -> Any:
        return lax.cond(lax.axis_index("x") > 1, jnp.sin, lambda t: t * 2, a)

    mapped = j.map(scaled, (P("x"), P("x")), P("x"))
    return {
        "vmap of": lambda: jax.vmap(mapped, (0, None))(w, v),
        "vmap of, at the end": lambda: jax.vmap(mapped, (1, 1), 1)(w.T, w.T),
        "vmap of, over an axis": lambda: jax.vmap(mapped, (0, None), spmd_axis_name="y")(w, v),
        "vmap in": lambda: j.map(jax.vmap(lambda a: lax.psum(a * 2, "x")), P("x"), P())(v),
        "vmap in, with a name": lambda: j.map(jax.vmap(
            lambda a: lax.psum(a, "i") * lax.psum(a, "x"), axis_name="i"), P("x"), P(),
            check_vma=False)(v),
        "jit of": lambda: jax.jit(mapped)(v, v),
        "jit in": lambda: j.map(jax.jit(scaled), (P("x"), P("x")), P("x"))(v, v),
        "scan in": lambda: j.map(halves, P("x"), P("x"))(v),
        "gradient of scan in": lambda: jax.grad(
            lambda t: jnp.sum(j.map(halves, P("x"), P("x"))(t) ** 2))(v),
        "scan of": lambda: lax.scan(lambda c, t: (mapped(c, t), c.sum()), v, w * 0.1),
        "while in": lambda: j.map(until, P("x"), P("x"))(jnp.abs(v)),
        "cond in": lambda: j.map(branch, P("x"), P("x"))(v),
        "gradient of cond in": lambda: jax.grad(
            lambda t: jnp.sum(j.map(branch, P("x"), P("x"))(t) ** 2))(v),
        "of another": lambda: jax.jit(j.map(
            lambda a: jax.shard_map(lambda b: lax.psum(b, "y") * 2 + lax.axis_index("x"),
                                    in_specs=P("y"), out_specs=P(), axis_names={"y"})(a),
            P("x"), P("x"), axis_names={"x"}))(v),
        "one axis manual": lambda: jax.jit(j.map(
            lambda a: a * 2 + lax.axis_index("x"), P("x"), P("x"), axis_names={"x"}))(v),
        "decorator": lambda: jax.shard_map(
            mesh=j.plane, in_specs=P("x"), out_specs=P("x"))(lambda a: a * 2)(v),
        "callback": lambda: jax.jit(j.map(lambda a: jax.pure_callback(
            lambda t: np.asarray(t) * 2, jax.ShapeDtypeStruct((4,), jnp.float32), a),
            P("x"), P("x")))(v),
        "on sharded arguments": lambda: (lambda f, x: (f(x), jax.grad(f)(x)))(
            jax.jit(lambda t: jnp.sum(jnp.sin(mapped(t * 2, t)))),
            jax.device_put(v, j.sharding.NamedSharding(j.plane, P("x")))),
        "where it is": lambda: repr(jax.jit(mapped)(v, v).sharding),
        "where it is, without jit": lambda: repr(mapped(v, v).sharding),
    }


# --- types, in texts ------------------------------------------------------------------------------


def texts(j: Library) -> Programs:
    jax, jnp, lax, P = j.jax, j.jnp, j.lax, j.P
    x, y = jnp.asarray(numbers(8)), jnp.asarray(numbers(2))
    wide = jnp.asarray(numbers(4, 4))
    one, two = np.float32(1), np.float32(2)

    def jaxpr(f: Any, in_specs: Any, out_specs: Any, *args: Any, mesh: Any = None,
              **options: Any) -> Callable[[], Any]:
        return lambda: str(jax.make_jaxpr(j.map(f, in_specs, out_specs, mesh, **options))(*args))

    def typed(a: Any) -> str:
        seen = []

        def body(a: Any) -> Any:
            seen.append([str(jax.typeof(t)) for t in (
                a, a + 1, lax.psum(a, "b"), lax.pmax(a, ("a", "b")), lax.axis_index("c") + a.sum(),
                lax.all_gather(a, "c"), jnp.ones(2))])
            return a

        jax.make_jaxpr(j.map(body, P("b", "a"), P("b", "a"), j.space))(a)
        return str(seen)

    return {
        "types": lambda: typed(wide),
        # Not with 2: JAX makes a Python number vary before it is converted; here it is a literal.
        "scalar": jaxpr(lambda a: a * two, P("x"), P("x"), x),
        "mixed": jaxpr(lambda a, b: a + b * jnp.sin(b), (P("x"), P()), P("x"), x, y),
        "two axes": jaxpr(lambda a, b: a + b, (P("x"), P("y")), P(("x", "y")), x, x[:4]),
        "psum": jaxpr(lambda a: lax.psum(a, ("x", "y")), P("x", "y"), P(), wide),
        "psum of what does not vary": jaxpr(lambda a: lax.psum(a, "y"), P("x"), P("x"), x),
        "pmean": jaxpr(lambda a: lax.pmean(a, "x"), P("x"), P(), x),
        "pmax": jaxpr(lambda a: lax.pmax(a, ("x", "y")), P("x"), P(), x),
        "all_gather": jaxpr(lambda a: lax.all_gather(a, "y"), P("x"), P(("x", "y")), x),
        "all_gather invarying": jaxpr(
            lambda a: lax.all_gather(a, "x", tiled=True, to="invarying"), P("x"), P(), x),
        "psum_scatter": jaxpr(lambda a: lax.psum_scatter(a, "x", tiled=True), P(), P("x"), x),
        "ppermute": jaxpr(lambda a: lax.ppermute(a, "x", [(0, 1)]), P("x"), P("x"), x),
        "all_to_all": jaxpr(lambda a: lax.all_to_all(a, "y", 0, 0, tiled=True), P("x"),
                            P(("x", "y")), x),
        "axis_index": jaxpr(lambda a: a + lax.axis_index("x"), P("x"), P("x"), x),
        "pcast": jaxpr(lambda a: lax.pcast(a, ("x", "y"), to="varying"), P(), P(("x", "y")), x),
        "closure": jaxpr(lambda a: a + x[:2], P("x"), P("x"), x),
        "unchecked": jaxpr(lambda a, b: lax.psum(a + b, "x"), (P("x"), P()), P(), x, y,
                           check_vma=False),
        "scan": jaxpr(lambda a: lax.scan(
            lambda c, t: (c + t, c), lax.pcast(jnp.zeros(()), "x", to="varying"), a)[1], P("x"),
            P("x"), x),
        "fori": jaxpr(lambda a: lax.fori_loop(0, 3, lambda i, c: c * two, a), P("x"), P("x"), x),
        "while": jaxpr(lambda a: lax.while_loop(
            lambda c: c.sum() < 15 * two, lambda c: c * two + one, a), P("x"), P("x"), x),
        "cond": jaxpr(lambda a, b: lax.cond(b[0] > one, jnp.sin, jnp.cos, a), (P(), P("x")), P("x"),
                      x, x),
        "jit": jaxpr(jax.jit(lambda a, b: a * b), (P("x"), P()), P("x"), x, y),
        "order": jaxpr(lambda a, b: lax.psum(a + b, ("a", "b")), (P("b", "c"), P("a", "c")),
                       P("c"), wide, wide, mesh=j.space),
        "gradient inside": jaxpr(jax.grad(
            lambda a, b: lax.psum(jnp.sum(a * jnp.sin(b)), "x"), argnums=(0, 1)), (P("x"), P()),
            (P("x"), P()), x, y),
        "jvp": lambda: str(jax.make_jaxpr(lambda v, t: jax.jvp(
            j.map(lambda a: lax.psum(jnp.sin(a), "x"), P("x"), P()), (v,), (t,)))(x, x)),
        "vjp": lambda: str(jax.make_jaxpr(lambda v: jax.vjp(j.map(
            lambda a: jnp.sin(a) * jnp.sin(a.sum()), P("x"), P("x")), v)[1](v))(x)),
        "vjp, unchecked": lambda: str(jax.make_jaxpr(lambda v: jax.vjp(j.map(
            lambda a: jnp.sin(a) * jnp.sin(a.sum()), P("x"), P("x"), check_vma=False),
            v)[1](v))(x)),
        "of another": lambda: str(jax.make_jaxpr(j.map(
            lambda a: jax.shard_map(lambda b: lax.psum(b, "y") * two, in_specs=P("y"),
                                    out_specs=P(), axis_names={"y"})(a),
            P("x"), P("x"), axis_names={"x"}))(x)),
        "pmap": lambda: str(jax.make_jaxpr(jax.pmap(
            lambda a: lax.psum(a, "i"), axis_name="i"))(x)),
    }


# --- errors ---------------------------------------------------------------------------------------


def errors(j: Library) -> Programs:
    jax, jnp, lax, P = j.jax, j.jnp, j.lax, j.P
    x = numbers(8)

    def same(a: Any) -> Any:
        return a

    @jax.custom_vjp
    def product(a: Any, b: Any) -> Any:
        return a * b

    product.defvjp(lambda a, b: (a * b, (a, b)), lambda r, g: (g * r[1], g * r[0]))
    explicit = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
    given, split = (jax.device_put(numbers(n), jax.sharding.NamedSharding(explicit, P("x")))
                    for n in (8, 4))
    whole = jax.device_put(numbers(4), jax.sharding.NamedSharding(explicit, P()))

    def around(held: Any) -> Any:
        with jax.set_mesh(explicit):
            return jax.shard_map(lambda a: a + held, in_specs=P("x"), out_specs=P("x"))(given)

    return {
        "closes over Explicit axes": lambda: around(split),
        "closes over a copy on Explicit axes": lambda: around(whole),
        "rank": lambda: j.map(same, P("x", "y"), P("x"))(x),
        "rank of a leaf": lambda: j.map(
            lambda a, b: a, (P("x"), {"k": P("x", "y")}), P("x"))(x, {"k": x}),
        "not divisible": lambda: j.map(same, P("x"), P("x"))(x[:6]),
        "two not divisible": lambda: j.map(
            lambda a, b: a, (P("x"), P("x", "y")), P("x"))(x[:6], numbers(4, 3)),
        "no such axis": lambda: j.map(same, P("z"), P("x"), j.line)(x),
        "no such axis in out_specs": lambda: j.map(same, P("x"), P("z"), j.line)(x),
        "rank of a result": lambda: j.map(lambda a: a.sum(), P("x"), P("x"))(x),
        "wrong claim": lambda: jax.jit(j.map(same, P("x"), P()))(x),
        "wrong claim of two": lambda: jax.jit(j.map(same, P(("x", "y")), P("x")))(x),
        "wrong claims": lambda: jax.jit(j.map(
            lambda a: {"u": a, "v": a}, P(("x", "y")), {"u": P(), "v": P("y")}))(x),
        "structure": lambda: j.map(lambda a, b: a, (P("x"),), P("x"))(x, x),
        "keys": lambda: j.map(lambda a: a["u"], ({"v": P("x")},), P("x"))({"u": x}),
        "no spec": lambda: j.map(same, ("x",), P("x"))(x),
        "structure of results": lambda: j.map(lambda a: (a, a), P("x"), (P("x"),) * 3)(x),
        "no mesh": lambda: jax.shard_map(same, in_specs=P("x"), out_specs=P("x"))(x),
        "bad mesh": lambda: jax.shard_map(same, mesh="m", in_specs=P("x"), out_specs=P("x"))(x),
        "axis_names": lambda: j.map(same, P("x"), P("x"), j.line, axis_names={"z"})(x),
        "axis_names in a list": lambda: j.map(same, P("x"), P("x"), axis_names=["x"])(x),
        "axis that is not manual": lambda: jax.jit(
            j.map(same, P("y"), P("x"), axis_names={"x"}))(x),
        "not callable": lambda: j.map(3, P("x"), P("x")),
        "in_specs inferred": lambda: jax.shard_map(same, mesh=j.line, out_specs=P("x"))(x),
        "name not bound": lambda: j.map(lambda a: lax.axis_index("z"), P("x"), P("x"))(x),
        "varying already": lambda: j.map(
            lambda a: lax.pcast(a, "x", to="varying"), P("x"), P("x"))(x),
        "pcast outside": lambda: lax.pcast(x, "z", to="varying"),
        "carry": lambda: j.map(
            lambda a: lax.scan(lambda c, t: (c + t, c), jnp.zeros(()), a), P("x"), P("x"))(x),
        "carry of fori": lambda: j.map(
            lambda a: lax.fori_loop(0, 3, lambda i, c: c * 2 + a, jnp.ones(2)), P("x"), P("x"))(x),
        "carry of while": lambda: j.map(lambda a: lax.while_loop(
            lambda c: c.sum() < 30, lambda c: c * 2 + a, jnp.ones(2)), P("x"), P("x"))(x),
        "twice a target": lambda: j.map(
            lambda a: lax.ppermute(a, "x", [(0, 1), (2, 1)]), P("x"), P("x"))(x),
        "a rule that does not sum": lambda: jax.grad(lambda b: jnp.sum(j.map(
            product, (P("x"), P()), P("x"))(x, b)))(x[:2]),
        "truth": lambda: jax.jit(j.map(lambda a: a if a.sum() > 0 else -a, P("x"), P("x")))(x),
        "ordered printing": lambda: jax.jit(j.map(
            lambda a: (jax.debug.print("{}", a, ordered=True), a)[1], P("x"), P("x")))(x),
    }


# --- pmap -----------------------------------------------------------------------------------------


def pmaps(j: Library) -> Programs:
    jax, jnp, lax = j.jax, j.jnp, j.lax
    x = numbers(8, 2)
    return {
        "plain": lambda: jax.pmap(lambda a: a * 2)(x),
        "fewer": lambda: jax.pmap(lambda a: a * 2)(x[:3]),
        "psum": lambda: jax.pmap(lambda a: lax.psum(a, "i"), axis_name="i")(x),
        "groups": lambda: jax.pmap(lambda a: lax.psum(
            a, "i", axis_index_groups=[[0, 1, 2, 3], [4, 5, 6, 7]]), axis_name="i")(x),
        "in_axes": lambda: jax.pmap(lambda a, b: a + b, in_axes=(1, None))(x, 2.),
        "out_axes": lambda: jax.pmap(lambda a, b: a + b, in_axes=(0, None), out_axes=1)(x, 2.),
        "out_axes None": lambda: jax.pmap(lambda a: a, axis_name="i", out_axes=None)(x),
        "static": lambda: jax.pmap(
            lambda a, n: a * n if n > 2 else a, static_broadcasted_argnums=1)(x, 3),
        "devices": lambda: jax.pmap(lambda a: a * 2, devices=jax.devices()[2:4])(x[:2]),
        "tree": lambda: jax.pmap(lambda d, *, k: {"u": d["a"] * k})({"a": x}, k=x),
        "permuted": lambda: jax.pmap(
            lambda a: lax.ppermute(a, "i", [(0, 1), (1, 2)]), axis_name="i")(x),
        "gradient of": lambda: jax.grad(lambda v: jnp.sum(jax.pmap(
            lambda a: lax.psum(a * a, "i"), axis_name="i")(v)))(x),
        "gradient in": lambda: jax.pmap(
            jax.grad(lambda a: jnp.sum(lax.psum(a * a, "i"))), axis_name="i")(x),
        "vmap of": lambda: jax.vmap(jax.pmap(lambda a: lax.psum(a * a, "i"), axis_name="i"))(
            x.reshape(2, 4, 2)),
        "vmap in": lambda: jax.pmap(jax.vmap(lambda a: lax.psum(a * a, "i")), axis_name="i")(
            x.reshape(4, 2, 2)),
        "where it is": lambda: repr(jax.pmap(lambda a: a * 2)(x).sharding),
        "too many": lambda: jax.pmap(lambda a: a)(numbers(9, 2)),
        "sizes differ": lambda: jax.pmap(lambda a, b: a + b)(numbers(3, 2), numbers(4, 2)),
        "nothing mapped": lambda: jax.pmap(lambda a: a, in_axes=None)(x),
        "axis_size": lambda: jax.pmap(lambda a: a, axis_size=3)(x),
        "bad in_axes": lambda: jax.pmap(lambda a: a, in_axes="x")(x),
        "too many in_axes": lambda: jax.pmap(lambda a: a, in_axes=(0, 0))(x),
        "static is missing": lambda: jax.pmap(lambda a: a, static_broadcasted_argnums=1)(x),
        "in another": lambda: jax.pmap(jax.pmap(
            lambda a: lax.psum(a, ("i", "k")), axis_name="k"), axis_name="i")(x[:4]),
    }


# --- running --------------------------------------------------------------------------------------


def programs(j: Library) -> Programs:
    from tests.sharding.shard_map_models import models  # more of these, each of some length

    families = {"collectives": collectives, "gradients": derivatives, "nests": nests,
                "texts": texts, "errors": errors, "pmap": pmaps}
    result = {f"{family} {name}": program for family, make in families.items()
              for name, program in make(j).items()}
    return {**result, **models(j)}


def normalized(text: str) -> str:
    """Without a library's own names, and with sets in order."""
    text = re.sub(r"frozenset\(\{([^}]*)\}\)",
                  lambda m: f"frozenset({{{', '.join(sorted(m[1].split(', ')))}}})", text)
    text = re.sub(r"(?<=input state: )\{([^}]*)\}",
                  lambda m: f"{{{', '.join(sorted(m[1].split(', ')))}}}", text)
    text = re.sub(r" This error occurs at source: .*", "", text)
    text = re.sub(r"np\.int64\((\d+)\)", r"\1", text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r" at \S+\.py:\d+", "", text)
    return re.sub(r"<[\w.]*OrderedDebugEffect object>", "OrderedDebug", text)


def outcome(program: Callable[[], Any], tree: Any) -> Any:
    try:
        result = program()
    except Exception as error:
        return {"error": type(error).__name__, "text": normalized(str(error))}
    if isinstance(result, str):
        return {"text": normalized(result)}
    return {"values": [{"dtype": str(leaf.dtype), "shape": list(leaf.shape),
                        "data": np.asarray(leaf).astype(float).ravel().tolist()}
                       for leaf in tree.leaves(result)]}


def broken(j: Library) -> dict[str, Any]:
    """The outcomes of programs if a collective does not communicate."""
    collective = importlib.import_module("maxjax._primitives.collective")
    varying = importlib.import_module("maxjax._primitives.varying")
    rules = importlib.import_module("maxjax._sharding.shard_body").RULES
    wrong: dict[Any, tuple[Callable[..., Any], tuple[str, ...]]] = {
        varying.psum_invariant_p: (lambda x, *, axes: x, (
            "collectives psum", "data parallel", "gradients checked 1")),
        collective.psum_p: (lambda x, *, axes, axis_index_groups: x, (
            "gradients unchecked 0", "unchecked data parallel", "pmap psum")),
        collective.ppermute_p: (lambda x, **params: x, (
            "collectives ppermute", "pipeline", "ring attention", "stencil")),
        collective.all_to_all_p: (lambda x, **params: x, (
            "collectives all_to_all tiled", "mixture of experts")),
        collective.pmax_p: (lambda x, **params: x, ("collectives pmax", )),
    }
    result = {}
    for primitive, (rule, names) in wrong.items():
        right, rules[primitive] = rules[primitive], rule
        # Functions are traced again, because none of them is cached.
        made = programs(j)
        result.update({name: outcome(made[name], j.jax.tree) for name in names})
        rules[primitive] = right
    return result


def main() -> None:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    name, *wanted = sys.argv[1:]
    library = Library(name)
    if wanted == ["broken"]:
        print(json.dumps(broken(library)))
        return
    if name == "jax":       # otherwise most of the time is spent optimizing code that runs once
        library.jax.config.update("jax_disable_most_optimizations", True)
    found = {key: outcome(program, library.jax.tree)
             for key, program in programs(library).items() if not wanted or key in wanted}
    print(json.dumps(found, indent=0 if name == "jax" and not wanted else None))


if __name__ == "__main__":
    main()
