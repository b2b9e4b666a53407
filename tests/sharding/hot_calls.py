"""Counts the library's own Python functions that calls over a mesh of 8 devices go through: a
script of its own, as the devices are counted when the library starts.

    python -m tests.sharding.hot_calls
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any


def functions_called(call: Callable[[], Any], root: str) -> list[str]:
    """The names, with their modules, in order."""
    found: list[str] = []

    def profile(frame: Any, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(root):
            module = path.removeprefix(root).strip(os.sep).removesuffix(".py")
            found.append(f"{module.replace(os.sep, '.')}:{frame.f_code.co_name}")

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def counts() -> dict[str, dict[str, Any]]:
    """For each call: how many functions its first and a later one go through, and whether the
    first propagates shardings."""
    import numpy as np

    import maxjax as jax
    import maxjax.numpy as jnp
    from maxjax.sharding import AxisType, NamedSharding, PartitionSpec

    root = os.path.dirname(jax.__file__)
    P = PartitionSpec
    found: dict[str, dict[str, Any]] = {}

    def count(name: str, call: Callable[[], Any]) -> None:
        first = functions_called(call, root)
        for _ in range(12):
            call()
        found[name] = {"first": len(first), "hot": len(functions_called(call, root)),
                       "propagates": "_sharding.engine:partition" in first}

    def layer(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w)

    for kind in (AxisType.Auto, AxisType.Explicit):
        mesh = jax.make_mesh((8,), ("x",), axis_types=(kind,))
        rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
        x = jax.device_put(np.ones((8, 16), np.float32), rows)
        w = jax.device_put(np.ones((16, 4), np.float32), whole)

        def total(x: Any) -> Any:
            return jax.lax.psum(jnp.sin(x).sum(0), "x")

        plain = jax.jit(lambda x, w: layer(x, w))
        placed = jax.jit(lambda x, w: layer(x, w), in_shardings=(rows, whole), out_shardings=rows)
        mapped = jax.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P())
        jitted, name = jax.jit(mapped), kind.name
        count(f"jit {name}", lambda f=plain, x=x, w=w: f(x, w))
        count(f"jit with shardings {name}", lambda f=placed, x=x, w=w: f(x, w))
        ahead = placed.lower(x, w).compile()
        count(f"compiled with shardings {name}", lambda f=ahead, x=x, w=w: f(x, w))
        tree = jax.jit(lambda t: layer(t["x"], t["w"])).lower({"x": x, "w": w}).compile()
        count(f"compiled, of a tree {name}", lambda f=tree, x=x, w=w: f({"x": x, "w": w}))
        count(f"jit(shard_map) {name}", lambda f=jitted, x=x: f(x))
        count(f"shard_map {name}", lambda f=mapped, x=x: f(x))
    return found


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    json.dump(counts(), sys.stdout)
