"""What only jax.lax has: incomplete gamma and beta functions, generic reducers, barriers, bits."""

from __future__ import annotations

import importlib

import ml_dtypes
import numpy as np

import maxjax
from tests.support.harness import Case

RNG = np.random.default_rng(7)
A = RNG.uniform(0.5, 4, 6).astype(np.float32)
X = RNG.uniform(0.5, 4, 6).astype(np.float32)
UNIT = RNG.uniform(0.1, 0.9, 6).astype(np.float32)
GRID = RNG.uniform(0.5, 1.5, (4, 5)).astype(np.float32)
STATE = np.array([0, 1, 2, 3], np.uint32)
LEFT = RNG.normal(size=(5, 3)).astype(np.float32)
RIGHT = RNG.normal(size=(2, 3, 4)).astype(np.float32)
SIZES = np.array([2, 2], np.int32)
HALVES = [RNG.normal(size=shape).astype(ml_dtypes.bfloat16) for shape in ((3, 8), (8, 2))]
SCALES = np.array([[1, 2], [0.5, 4], [2, 1]], ml_dtypes.bfloat16)


def selected(j, x):
    """Nothing in JAX's public interface applies the generic select_and_scatter."""
    if j is not maxjax:
        return x
    program = maxjax.make_jaxpr(lambda x: [x])(x)
    return j.lax.select_and_scatter_p.bind(x, decomposition=program)[0]


def said(j, x):
    module = importlib.import_module(f"{j.__name__}.experimental.xla_metadata")
    return module.set_xla_metadata(j.numpy.concatenate([x, x]), breakpoint=True)


def token(j, x):
    j.lax.after_all(j.lax.create_token())
    j.lax.dce_sink(x)
    return x * 2


CASES = [
    Case("igamma", lambda j, a, x: j.lax.igamma(a, x), (A, X), tolerance="iterative",
         smooth=False),
    Case("igammac", lambda j, a, x: j.lax.igammac(a, x), (A, X), tolerance="iterative",
         smooth=False),
    Case("igamma_grad_a", lambda j, a, x: j.lax.igamma_grad_a(a, x), (A, X),
         differentiable=False, tolerance="iterative"),
    Case("betainc", lambda j, a, b, x: j.lax.betainc(
        j.lax.stop_gradient(a), j.lax.stop_gradient(b), x), (A, X, UNIT), tolerance="iterative",
        smooth=False),
    Case("stack", lambda j, x, y: j.lax.stack([x, y, x], 1), (GRID, GRID + 1), linear=True,
         tolerance="exact"),
    Case("unstack", lambda j, x: j.lax.unstack(x, 1)[1::2], (GRID,), linear=True,
         tolerance="exact"),
    Case("tile", lambda j, x: j.lax.tile(x, (2, 3)), (GRID,), linear=True),
    Case("stage", lambda j, x: j.lax.stage_p.bind(x), (GRID,), linear=True, tolerance="exact"),
    Case("device_put", lambda j, x: j.device_put(x), (GRID,), linear=True, tolerance="exact"),
    Case("select_and_scatter", selected, (GRID,), linear=True, tolerance="exact"),
    Case("optimization_barrier", lambda j, x, y: j.lax.optimization_barrier((x, {"y": y})),
         (GRID, A), linear=True, tolerance="exact"),
    Case("xla_metadata_value", said, (GRID,), linear=True, tolerance="exact"),
    Case("tokens", token, (GRID,), vmappable=False),
    Case("reduce-generic", lambda j, x: j.lax.reduce(
        x, np.float32(0), lambda a, b: a + b + a * b, (0,)), (GRID,), differentiable=False,
        tolerance="accumulate"),
    Case("reduce-product", lambda j, x: j.lax.reduce(
        x, 1.0, lambda a, b: j.numpy.multiply(a, b) + 0, (1,)), (GRID,),
        tolerance="accumulate"),
    Case("reduce_window-product", lambda j, x: j.lax.reduce_window(
        x, np.float32(1), j.lax.mul, (2, 2), (1, 1), "SAME"), (GRID,), differentiable=False,
        tolerance="accumulate"),
    Case("composite", lambda j, x: j.lax.composite(lambda y: j.numpy.sin(y) + 1, "my.sine")(x),
         (GRID,), differentiable=False, vmappable=False),
    Case("approx_max_k", lambda j, x: j.lax.approx_max_k(x, 2), (GRID,), tolerance="exact"),
    Case("approx_min_k", lambda j, x: j.lax.approx_min_k(x, 2, 0), (GRID,), tolerance="exact"),
    Case("ragged_dot", lambda j, x, y, s: j.lax.ragged_dot(x, y, s), (LEFT, RIGHT, SIZES),
         tolerance="accumulate", vmappable=False),
    Case("scaled_dot", lambda j, x, y, s: j.lax.scaled_dot(x, y, lhs_scale=s),
         (*HALVES, SCALES), differentiable=False, vmappable=False, tolerance="iterative"),
    *(Case(f"rng_bit_generator-{algorithm}-{shape}", lambda j, k, shape=shape, number=algorithm:
           j.lax.rng_bit_generator(k, shape, algorithm=number), (STATE,), differentiable=False,
           vmappable=False, tolerance="exact") for algorithm in (1, 2) for shape in ((7,), (3, 3))),
    Case("rng_uniform", lambda j, x: j.lax.rng_uniform(np.float32(0), x, (3,)) < x,
         (np.float32(2),), differentiable=False, vmappable=False, tolerance="exact"),
]
