"""Golden propagation: a jaxpr in; each value's sharding and why, and the program of a shard out.

    python -m tests.sharding.test_golden      # rewrites the files: read the changes
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import pytree
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._sharding.engine import partition
from maxjax._sharding.specs import Spec

GOLDEN = Path(__file__).with_name("golden")
Program = tuple[Callable[..., Any], list[tuple[tuple[int, ...], Any]], dict[str, int], list[Spec]]


def step(w, v, x):
    return maxjax.grad(lambda w, v: jnp.sum((jnp.tanh(x @ w) @ v - x) ** 2), (0, 1))(w, v)


def layers(ws, x):
    return lax.scan(lambda x, w: (jnp.tanh(x @ w), x.sum()), x, ws)


def embedding(table, tokens):
    return table[tokens] @ table.T


F32, I32 = np.float32, np.int32
PROGRAMS: dict[str, Program] = {
    "mlp_step": (step, [((8, 16), F32), ((16, 8), F32), ((4, 8), F32)],
                 {"data": 2, "model": 2},
                 [Spec.of(None, "model"), Spec.of("model"), Spec.of("data")]),
    "scan_over_layers": (layers, [((3, 8, 8), F32), ((4, 8), F32)], {"data": 2, "model": 2},
                         [Spec.of(None, None, "model"), Spec.of("data")]),
    "embedding_over_vocabulary": (embedding, [((16, 4), F32), ((8,), I32)], {"model": 4},
                                  [Spec.of("model"), Spec.of(None)]),
    "split_of_an_axis": (lambda x: jnp.reshape(x, (2, 4, 3)).sum(0), [((8, 3), F32)], {"x": 4},
                         [Spec.of("x")]),
}


def text(name: str) -> str:
    function, types, mesh, specs = PROGRAMS[name]
    closed = trace_to_jaxpr(lambda *xs: pytree.flatten(function(*xs))[0],
                            [ShapedArray(shape, dtype) for shape, dtype in types])
    made = partition(closed, mesh, specs)
    given = "\n".join(f"  {spec}" for spec in specs)
    return (f"{closed.jaxpr}\n\ngiven\n{given}\n\n{made.report.text()}\n\n{made.jaxpr.jaxpr}\n")


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name):
    assert text(name) == (GOLDEN / f"{name}.sharding").read_text()


def test_no_golden_file_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.sharding")} == set(PROGRAMS)


if __name__ == "__main__":
    for each in PROGRAMS:
        (GOLDEN / f"{each}.sharding").write_text(text(each))
