"""How programs are split: a jaxpr in; each value's sharding and why, and the program of a shard."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import pytree
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._sharding.engine import partition
from maxjax._sharding.specs import Spec
from tests.golden.programs import golden


def partitioned(mesh: dict[str, int], specs: list[Spec], function: Callable[..., Any],
                *args: Any) -> str:
    closed = trace_to_jaxpr(lambda *xs: pytree.flatten(function(*xs))[0],
                            [ShapedArray(x.shape, x.dtype) for x in args])
    made = partition(closed, mesh, specs)
    given = "\n".join(f"  {spec}" for spec in specs)
    return f"{closed.jaxpr}\n\ngiven\n{given}\n\n{made.report.text()}\n\n{made.jaxpr.jaxpr}\n"


def program(mesh: dict[str, int], *args: tuple[Any, Spec]) -> Callable[[Any], Any]:
    """The arguments, each with how it is split."""
    return golden(functools.partial(partitioned, mesh, [spec for _, spec in args]), "sharding",
                  *(arg for arg, _ in args))


@program({"data": 2, "model": 2}, ((8, 16), Spec.of(None, "model")), ((16, 8), Spec.of("model")),
         ((4, 8), Spec.of("data")))
def mlp_step(w, v, x):
    """Data and tensor parallel: a psum over model after the second product, and one over data for
    both gradients together."""
    return maxjax.grad(lambda w, v: jnp.sum((jnp.tanh(x @ w) @ v - x) ** 2), (0, 1))(w, v)


@program({"data": 2, "model": 2}, ((3, 8, 8), Spec.of(None, None, "model")),
         ((4, 8), Spec.of("data")))
def scan_over_layers(ws, x):
    """The carry is split inside the loop as outside; what a layer gathers, it gathers each time."""
    return lax.scan(lambda x, w: (jnp.tanh(x @ w), x.sum()), x, ws)


@program({"model": 4}, ((16, 4), Spec.of("model")), (np.zeros(8, np.int32), Spec.of(None)))
def embedding_over_vocabulary(table, tokens):
    """Each shard looks up the rows that it holds, zero for others; a psum puts them together."""
    return table[tokens] @ table.T


@program({"x": 4}, ((8, 3), Spec.of("x")))
def split_of_an_axis(x):
    """A reshape splits the dimension in two, so it splits the mesh axis as well."""
    return jnp.reshape(x, (2, 4, 3)).sum(0)
