"""Programs on arrays over all devices of a job, for 4 devices in any number of processes.

``python -m maxjax -m tests.distributed.global_programs`` in each process: process 0 writes all
results to the file that the variable RESULTS names. Under JAX's name it runs on JAX. PROGRAMS, if
set, names those that run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

Programs = dict[str, Callable[[], Any]]
RING = [(n, (n + 1) % 4) for n in range(4)]


def line() -> Mesh:
    return jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))


def plane() -> Mesh:
    return jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)


def numbers(*shape: int) -> np.ndarray:
    return (np.sin(np.arange(np.prod(shape)) * 1.7) * 2).astype("float32").reshape(shape)


def over(mesh: Mesh, value: np.ndarray, *spec: Any) -> Any:
    return jax.make_array_from_callback(
        value.shape, NamedSharding(mesh, P(*spec)), lambda index: value[index])


def smap(f: Any, ins: Any, outs: Any, mesh: Mesh, **options: Any) -> Any:
    return jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, **options)


def operations() -> Programs:
    """Each once outside jit, once inside."""
    mesh = plane()
    a, b = over(mesh, numbers(8, 4), "a", "b"), over(mesh, numbers(4, 4), "b")
    v = over(line(), numbers(8), "x")
    found: Programs = {}

    def both(name: str, function: Callable[..., Any], *args: Any) -> None:
        found[name] = lambda: function(*args)
        found[name + " jit"] = lambda: jax.jit(function)(*args)

    both("elementwise", lambda a: jnp.sin(a) * a + 1, a)
    both("matmul", jnp.matmul, a, b)
    both("einsum", lambda a, b: jnp.einsum("ij,jk->ki", a, b), a, b)
    both("sums", lambda a: (a.sum(), a.sum(0), a.mean(1), a.max(), a.argmax()), a)
    both("softmax", jax.nn.softmax, a)
    both("cumsum", lambda a: jnp.cumsum(a, 0), a)
    both("sort", lambda v: (jnp.sort(v), jnp.argsort(v)), v)
    both("indexing", lambda a: (a[2], a[1:3], a[:, 1], a[jnp.array([0, 5, 2])]), a)
    both("updates", lambda a: (a.at[1].set(0.), a.at[:, 2].add(1.)), a)
    both("shapes", lambda a: (a.T, a.reshape(4, 8), a.reshape(-1), jnp.stack([a, a])), a)
    both("joining", lambda v: (jnp.concatenate([v, v]), jnp.roll(v, 1), v[::-1], jnp.pad(v, 1)), v)
    both("small floats", lambda a: a.astype(jnp.bfloat16).sum(0), a)
    both("integers", lambda v: (v * 10).astype(int).sum(), v)
    both("gradient", jax.grad(lambda a, b: jnp.tanh(a @ b).mean()), a, b)
    both("random", lambda a: a + jax.random.normal(jax.random.key(1), (8, 4)), a)
    both("scan", lambda a: lax.scan(lambda c, x: (c + x.sum(), c * x), 0., a), a)
    both("while", lambda v: lax.while_loop(
        lambda c: (c * c).sum() < 100, lambda c: c * 2, v), v)
    both("cond", lambda a: lax.cond(a.sum() > 0, lambda a: a * 2, lambda a: -a, a), a)
    found["unused"] = lambda: jax.jit(lambda a, s: s * 2)(a, 3.)
    found["scalar"] = lambda: jax.jit(lambda a, s: a * s)(a, 2.)
    found["constraint"] = lambda: jax.jit(lambda a: lax.with_sharding_constraint(
        a * 2, NamedSharding(mesh, P("b", "a"))))(a)
    found["made sharded"] = lambda: jax.jit(
        lambda: jnp.arange(8.), out_shardings=NamedSharding(line(), P("x")))()
    for name, spec in (("swapped", P("b", "a")), ("one", P(None, ("b", "a"))), ("all", P())):
        found[f"device_put {name}"] = lambda spec=spec: jax.device_put(a, NamedSharding(mesh, spec))
    found["device_put to another mesh"] = lambda: jax.device_put(a, NamedSharding(line(), P("x")))
    found["keys"] = lambda: jax.random.key_data(jax.jit(
        lambda k: jax.random.split(k, 4), out_shardings=NamedSharding(line(), P("x")))(
            jax.random.key(3)))
    return found


def collectives() -> Programs:
    mesh = line()
    v = over(mesh, numbers(8), "x")
    m = over(mesh, numbers(8, 4), "x")
    turned = Mesh(np.array(jax.devices()).reshape(2, 2).T, ("a", "b"))
    found: Programs = {}
    bodies: dict[str, tuple[Any, Any, Any]] = {
        "psum": (lambda x: lax.psum(x, "x"), v, P()),
        "pmax": (lambda x: lax.pmax(x, "x"), v, P()),
        "pmin": (lambda x: lax.pmin(x, "x"), v, P()),
        "all_gather": (lambda x: lax.all_gather(x, "x"), v, P("x")),
        "all_gather tiled": (lambda x: lax.all_gather(x, "x", axis=1, tiled=True), m, P("x")),
        "psum_scatter": (lambda x: lax.psum_scatter(x * jnp.ones((4, 1)), "x"), v, P("x")),
        "psum_scatter tiled": (
            lambda x: lax.psum_scatter(jnp.tile(x, 4), "x", tiled=True), v, P("x")),
        "ppermute": (lambda x: lax.ppermute(x, "x", RING), v, P("x")),
        "ppermute of some": (lambda x: lax.ppermute(x, "x", [(0, 3), (2, 1)]), v, P("x")),
        "all_to_all": (lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), m, P(None, "x")),
        "axis_index": (lambda x: x + lax.axis_index("x"), v, P("x")),
        "scan": (lambda x: lax.scan(lambda c, _: (
            c + lax.psum(c, "x"), lax.pmax(c, "x")), x, None, length=3), v, (P("x"), P(None))),
        "while": (lambda x: lax.while_loop(
            lambda c: lax.psum((c * c).sum(), "x") < 1000,
            lambda c: lax.ppermute(c, "x", RING) * 2, x), v, P("x")),
        "loops in loops": (lambda x: lax.fori_loop(0, 3, lambda n, c: lax.scan(
            lambda c, k: (jnp.sin(c + lax.pmean(c, "x")) * k, None), c,
            jnp.arange(1., 3.), reverse=True)[0] + lax.ppermute(c, "x", RING) * n, x), v, P("x")),
        "choices in loops": (lambda x: lax.scan(lambda c, n: (lax.cond(
            n % 2 == 0, lambda c: c + lax.psum(c, "x"), lambda c: c * 0.5, c), lax.psum(n, "x")),
            x, jnp.arange(4))[0], v, P("x")),
        "unread in loops": (lambda x: lax.fori_loop(
            0, 3, lambda n, c: (lax.psum(c[1], "x"), c[1] + n), (lax.psum(x, "x"), x))[1],
            v, P("x")),
        "cond": (lambda x: lax.cond(
            lax.psum(x.sum(), "x") > -1e6, lambda x: x * lax.axis_index("x"),
            lambda x: x, x), v, P("x")),
    }
    for name, (body, x, outs) in bodies.items():
        found[name] = lambda body=body, x=x, outs=outs: smap(body, P("x"), outs, mesh)(x)
        found[name + " jit"] = lambda body=body, x=x, outs=outs: jax.jit(
            smap(body, P("x"), outs, mesh))(x)
    groups = [[0, 2], [1, 3]]
    found["psum of groups"] = lambda: smap(
        lambda x: lax.psum(x, "x", axis_index_groups=groups), P("x"), P("x"), mesh,
        check_vma=False)(v)
    for title, grid in (("plane", plane()), ("turned", turned)):
        y = over(grid, numbers(8, 4), "a", "b")
        for axes in ("a", "b", ("a", "b"), ("b", "a")):
            for name, body in {
                    "sum": lambda x, axes: lax.psum(x, axes),
                    "gather": lambda x, axes: lax.all_gather(x, axes, tiled=True),
                    "exchange": lambda x, axes: lax.all_to_all(
                        jnp.tile(x, (1, 2)), axes, 1, 0, tiled=True),
                    "scatter": lambda x, axes: lax.psum_scatter(
                        jnp.tile(x, (4, 1)), axes, tiled=True),
                    "permutation": lambda x, axes: lax.ppermute(x, axes, [(0, 1), (1, 0)])}.items():
                found[f"{title} {name} {axes}"] = lambda body=body, axes=axes, grid=grid, y=y: smap(
                    lambda x: body(x, axes), P("a", "b"), P(("a", "b")), grid, check_vma=False)(y)

        def loss(y: Any, grid: Mesh = grid) -> Any:
            return smap(lambda x: lax.psum(jnp.sin(x).sum(), ("a", "b")), P("a", "b"), P(),
                        grid)(y)
        found[f"{title} gradient"] = lambda loss=loss, y=y: jax.grad(loss)(y)
        found[f"{title} gradient jit"] = lambda loss=loss, y=y: jax.jit(
            lambda y: y - 0.1 * jax.grad(loss)(y))(y)
    found["gradient of a scan"] = lambda: jax.grad(lambda v: smap(lambda x: lax.psum(
        lax.scan(lambda c, _: (jnp.sin(c) * lax.pmean(c, "x"), None), x, None, length=3)[0].sum(),
        "x"), P("x"), P(), mesh)(v))(v)
    found["among other operations"] = lambda: jax.jit(lambda v: (smap(
        lambda x: x * lax.psum(x, "x"), P("x"), P("x"), mesh)(v * 2) + 1).sum())(v)
    found["over some axes"] = lambda: jax.jit(lambda a: jax.shard_map(
        lambda x: lax.psum(x, "a"), mesh=plane(), in_specs=P("a"), out_specs=P(),
        axis_names={"a"})(a))(over(plane(), numbers(8, 4), "a", "b"))
    return found


def explicit() -> Programs:
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Explicit,) * 2)

    def within(function: Callable[[Any], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with jax.set_mesh(mesh):
                return function(over(mesh, numbers(8, 4), "a", "b"))
        return run

    return {f"explicit {name}": within(function) for name, function in {
        "product": lambda e: e * 2,
        "type": lambda e: np.array(str(jax.typeof(e + 1))),
        "matmul": lambda e: jax.jit(lambda e: jnp.einsum(
            "ij,kj->ik", e, e, out_sharding=P("a")))(e),
        "sum": lambda e: e.sum(0),
        "reshard": lambda e: jax.sharding.reshard(e, P("b", "a")),
        "gradient": jax.grad(lambda e: (e ** 2).sum()),
        "creation": lambda e: (jnp.arange(4) + 1, jnp.ones((4, 4), out_sharding=P("a"))),
    }.items()}


def main() -> None:
    jax.config.update("jax_raise_on_ppermute_sort_diff", False)      # axes in any order
    results = {}
    wanted = os.environ.get("PROGRAMS", "").split(",")
    for group in (operations, collectives, explicit):
        for name, program in group().items():
            if wanted != [""] and name not in wanted:
                continue
            for number, leaf in enumerate(jax.tree.leaves(program())):
                if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
                    leaf = multihost_utils.process_allgather(leaf, tiled=True)
                results[f"{name} {number}"] = np.asarray(leaf)
    if jax.process_index() == 0:
        # bfloat16 and the like are stored as what contains them.
        np.savez(os.environ["RESULTS"], **{
            name: value.astype("float32") if value.dtype.kind == "V" else value
            for name, value in results.items()})
        sys.stdout.write("* done\n")
        sys.stdout.flush()
    if jax.process_count() > 1:
        jax.distributed.shutdown()
