"""Random keys, bits and the samplers that are primitives; keys come in as their words."""

from __future__ import annotations

import jax.extend.random
import ml_dtypes
import numpy as np

import maxjax
from maxjax._primitives.random_bits import multiply_add, threefry2x32_p
from tests.support.harness import Case

RNG = np.random.default_rng(0)
KEY = np.array([0x13198A2E, 0x243F6A88], np.uint32)
KEYS = RNG.integers(0, 1 << 32, (3, 2), np.uint64).astype(np.uint32)
WORDS = [RNG.integers(0, 1 << 32, 7, np.uint64).astype(np.uint32) for _ in range(4)]
ALPHA = np.array([0.1, 0.5, 1.0, 2.5, 40.0], np.float32)
MEANS = np.array([0.0, 0.3, 4.0, 9.9, 10.0, 250.0], np.float32)
FACTORS = [RNG.normal(size=(4, 5)).astype(np.float32) for _ in range(3)]


def wrap(j, words):
    return j.random.wrap_key_data(words)


def threefry(j, *words):
    primitive = threefry2x32_p if j is maxjax else jax.extend.random.threefry2x32_p
    return primitive.bind(*words)


def fused(j, x, y, z):
    return multiply_add(x, y, z) if j is maxjax else x * y + z


CASES = [
    *(Case(f"seed-{label}", lambda j, x: j.random.key_data(j.random.key(x)), (value,),
           differentiable=False, tolerance="exact")
      for label, value in (("int32", np.array(-7, np.int32)), ("uint8", np.array(200, np.uint8)),
                           ("python", 42))),
    Case("seed-int64", lambda j, x: j.random.key_data(j.random.key(x)), (np.int64(-(1 << 40) + 3),),
         differentiable=False, x64=True, tolerance="exact"),
    Case("wrap", lambda j, x: j.random.key_data(wrap(j, x)), (KEYS,), differentiable=False,
         tolerance="exact"),
    *(Case(f"split-{shape}", lambda j, x, shape=shape: j.random.key_data(
        j.random.split(wrap(j, x), shape)), (KEY,), differentiable=False, tolerance="exact")
      for shape in (2, 5, (2, 3), 0)),
    Case("clone", lambda j, x: j.random.key_data(j.random.clone(wrap(j, x))), (KEYS,),
         differentiable=False, tolerance="exact"),
    Case("split-raw", lambda j, x: j.random.split(x, 3), (KEY,), differentiable=False,
         tolerance="exact"),
    Case("fold_in", lambda j, x, i: j.random.key_data(j.random.fold_in(wrap(j, x), i)),
         (KEY, np.array(9, np.int32)), differentiable=False, tolerance="exact"),
    *(Case(f"bits-{np.dtype(dtype).name}-{shape}", lambda j, x, dtype=dtype, shape=shape:
           j.random.bits(wrap(j, x), shape, dtype), (KEY,), differentiable=False,
           tolerance="exact")
      for dtype in (np.uint8, np.uint16, np.uint32) for shape in ((), (7,), (3, 5), (0, 2))),
    Case("bits-uint64", lambda j, x: j.random.bits(wrap(j, x), (5,), np.uint64), (KEY,),
         differentiable=False, x64=True, tolerance="exact"),
    Case("threefry2x32", threefry, tuple(WORDS), differentiable=False, tolerance="exact"),
    Case("multiply_add", fused, tuple(FACTORS)),
    Case("multiply_add-bfloat16", fused, tuple(x.astype(ml_dtypes.bfloat16) for x in FACTORS),
         differentiable=False),
    *(Case(f"{name}-{np.dtype(dtype).name}", lambda j, x, name=name, dtype=dtype: getattr(
        j.random, name)(wrap(j, x), (4, 3), dtype), (KEY,), differentiable=False)
      for name in ("uniform", "normal") for dtype in (np.float32, np.float16, ml_dtypes.bfloat16)),
    Case("uniform-bounds", lambda j, x, low, high: j.random.uniform(
        wrap(j, x), (3, 4), minval=low, maxval=high), (KEY, *(np.float32(v) for v in (-2, 3))),
        smooth=False, by_default=True),
    Case("gamma", lambda j, x, a: j.random.gamma(wrap(j, x), a), (KEY, ALPHA), smooth=False,
         tolerance="iterative", primitives=("random_gamma_grad",)),
    Case("loggamma", lambda j, x, a: j.random.loggamma(wrap(j, x), a), (KEY, ALPHA), smooth=False,
         tolerance="iterative"),
    Case("random_gamma_grad", lambda j, a, x: j.lax.random_gamma_grad(a, x)
         if hasattr(j.lax, "random_gamma_grad") else maxjax_gamma_grad(a, x),
         (ALPHA[1:], np.array([0.2, 0.9, 3.0, 38.0], np.float32)), differentiable=False,
         tolerance="iterative"),
    Case("poisson", lambda j, x, m: j.random.poisson(wrap(j, x), m), (KEY, MEANS),
         differentiable=False, tolerance="exact", by_default=True),
]


def maxjax_gamma_grad(alpha, sample):
    return maxjax._ir.primitive.registry["random_gamma_grad"].bind(alpha, sample)
