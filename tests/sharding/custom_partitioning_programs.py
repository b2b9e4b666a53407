"""Functions that say how they are divided; prints what a library makes of each, as JSON."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


def programs(j: Any) -> dict[str, Callable[[], Any]]:
    jnp, lax = j.numpy, j.lax
    module = importlib.import_module(f"{j.__name__}.experimental.custom_partitioning")
    P, named = j.sharding.PartitionSpec, j.sharding.NamedSharding
    mesh = j.make_mesh((2, 2), ("x", "y"), axis_types=(j.sharding.AxisType.Auto,) * 2,
                       devices=j.devices()[:4])
    x = j.device_put(jnp.arange(16.).reshape(4, 4), named(mesh, P("x", "y")))
    rows = j.device_put(jnp.arange(16.), named(mesh, P("x")))
    seen: list[str] = []

    def shown(tree: Any) -> str:
        return str(j.tree.map(lambda s: (s.shape, str(s.dtype), str(s.sharding.spec)), tree))

    def made(rule: Any, function: Any = lambda x: 2 * x, local: Any = None, args: Any = None,
             results: Any = None, static: tuple[int, ...] = (), **options: Any) -> Any:
        divided = module.custom_partitioning(function, static_argnums=static)

        def partition(*given: Any) -> Any:
            *values, mesh, arguments, result = given
            seen.append(f"{values} {dict(mesh.shape)} {shown((arguments, result))}")
            own = j.tree.map(lambda s: s.sharding, (arguments, result))
            body = local or (lambda *xs: function(*xs, *values))
            return (mesh, body, own[1] if results is None else named(mesh, results),
                    own[0] if args is None else tuple(named(mesh, spec) for spec in args))

        divided.def_partition(partition, sharding_rule=rule, **options)
        return divided

    def run(function: Any, *values: Any) -> Any:
        seen.clear()
        found = j.jit(function)(*values)
        return [seen[:], j.tree.map(
            lambda r: [str(r.sharding.spec), np.asarray(r).tolist()], found)]

    def eager(function: Any) -> Any:
        seen.clear()
        return [seen[:], np.asarray(function(x)).tolist()]

    five = made("i j -> i j", local=lambda x: 5 * x)
    return {
        "elementwise": lambda: run(five, x),
        "inside": lambda: run(lambda x: five(x + 1) - 1, x),
        "eager": lambda: eager(five),
        "one device": lambda: np.asarray(j.jit(five)(jnp.ones((2, 2)))).tolist(),
        "sums": lambda: run(made(
            "i k, k j -> i j", lambda a, b: a @ b, lambda a, b: lax.psum(a @ b, "y"),
            reduction_factors=("k",)), x, j.device_put(x, named(mesh, P("y", None)))),
        "gathered": lambda: run(made(
            "i j -> i j", lambda x: jnp.cumsum(x, 1), args=[P("x", None)], results=P("x", None),
            need_replication_factors=("j",)), x),
        "batches": lambda: run(made("... j -> ... j"), x),
        "compound": lambda: run(made(
            "(i j) -> i j", lambda x: x.reshape(4, 4), lambda x: x.reshape(-1, 4)), rows),
        "trees": lambda: run(made(
            "i j -> i j, i", lambda x: {"a": 2 * x, "b": x.sum(1)},
            lambda x: {"a": 2 * x, "b": lax.psum(x.sum(1), "y")}), x),
        "static": lambda: run(lambda x: made(
            "i j -> i j", lambda x, n: n * x, static=(1,))(x, 3), x),
        "from a function": lambda: run(made(
            lambda mesh, arguments, results: f"{'i j'[:2 * arguments[0].rank]} -> i j"), x),
        "in a loop": lambda: run(
            lambda x: lax.scan(lambda c, _: (five(c), None), x, None, length=2)[0], x),
        "in shard_map": lambda: run(j.shard_map(
            five, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")), x),
        "wrong rank": lambda: run(made("i -> i"), x),
        "wrong shape": lambda: run(made("i j -> i j", local=lambda x: x[:1]), x),
        "no rule": lambda: run(made(None, infer_sharding_from_operands=lambda *_: None), x),
        "gradient": lambda: run(j.grad(lambda x: five(x).sum()), x),
        "mapped": lambda: run(j.vmap(five), x),
        **{f"rule {text}": lambda text=text: str(made(text).sharding_rule) for text in (
            "i j", "i j -> (i)", "(i j) -> k", "i j -> i k l(", "i ... -> i", "1 -> i",
            "... i -> ... i", "(i (j k)) -> i", "i, -> i", "i->j->k")},
    }


def outcome(program: Callable[[], Any]) -> Any:
    try:
        return program()
    except Exception as error:
        # JAX's message holds the traceback of the place in JAX where it is raised.
        lines = str(error).splitlines()
        text = next((line[line.index("Mismatch in"):] for line in lines if "Mismatch in" in line),
                    lines[0])
        return [type(error).__name__, text]


def main() -> None:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    library = importlib.import_module(sys.argv[1])
    importlib.import_module(f"{sys.argv[1]}.sharding")
    print(json.dumps({name: outcome(program) for name, program in programs(library).items()}))


if __name__ == "__main__":
    main()
