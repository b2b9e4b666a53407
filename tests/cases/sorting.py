"""Sorting and the largest elements."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)
X = RNG.permutation(60).astype(np.float32).reshape(3, 20) / 8 - 3
LONG = RNG.permutation(400).astype(np.float32).reshape(2, 200)
POOL = np.array([1, np.nan, -np.inf, 3, 3, np.inf, -0.0, 0.0, 2, -5, 7.5])
SPECIAL = RNG.choice(POOL, (3, 30)).astype(np.float32)
KEYS, VALUES = (RNG.integers(0, high, (3, 30)).astype(np.int32) for high in (4, 9))
DTYPES = (np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.uint32, np.bool_)


def cast(x, dtype):
    return (np.abs(np.nan_to_num(x, posinf=99, neginf=-99)) if np.dtype(dtype).kind in "iub"
            else x).astype(dtype)


CASES = [
    *(Case(f"sort-{name}", lambda j, x, axis=axis: j.lax.sort(x, axis), (x,), tolerance="exact",
           smooth=smooth)
      for name, x, axis, smooth in (
          ("last", X, -1, True), ("first", X, 0, True), ("special", SPECIAL, 1, False),
          ("empty", X[:, :0], 1, True), ("one", X[:, :1], 1, True))),
    *(Case(f"{name}-{np.dtype(dtype).name}", fun, (cast(SPECIAL, dtype),), differentiable=False,
           tolerance="exact")
      for name, fun in (("sort", lambda j, x: j.lax.sort(x)),
                        ("top_k", lambda j, x: j.lax.top_k(x, 4)),
                        ("sort_key_val", lambda j, x: j.lax.sort_key_val(
                            x, j.lax.broadcasted_iota(np.int32, x.shape, 1))))
      for dtype in DTYPES),
    Case("sort-complex", lambda j, x: j.lax.sort(x), (X + 1j * RNG.integers(0, 3, X.shape),),
         differentiable=False, tolerance="exact"),
    *(Case(f"sort-keys-{keys}", lambda j, k, v, x, keys=keys: j.lax.sort(
        (k, v, x), num_keys=keys), (KEYS, VALUES, SPECIAL), differentiable=False,
        tolerance="exact") for keys in (1, 2, 3)),
    Case("sort-stable", lambda j, k, x: j.lax.sort((k, x), 0, num_keys=1), (
        SPECIAL, np.arange(90, dtype=np.int32).reshape(3, 30)), differentiable=False,
        tolerance="exact"),
    Case("sort-pair", lambda j, k, x: j.lax.sort_key_val(k, x), (X, X[::-1] * 2),
         tolerance="exact"),
    *(Case(f"top_k-{name}", lambda j, x, k=k, axis=axis: j.lax.top_k(x, k, axis=axis), (x,),
           tolerance="exact", smooth=smooth)
      for name, x, k, axis, smooth in (
          ("last", X, 3, -1, True), ("first", X, 2, 0, True), ("all", X, 20, -1, True),
          ("none", X, 0, -1, True), ("long", LONG, 5, -1, True),
          ("special", SPECIAL, 30, -1, False))),
    Case("top_k-ties", lambda j, x: j.lax.top_k(x, 9), (
        RNG.integers(0, 6, (2, 200)).astype(np.int32),), differentiable=False, tolerance="exact"),
    *(Case(f"{name}-axis", lambda j, x, name=name: getattr(j.lax, name)(
        x, 2, reduction_dimension=0), (X,), tolerance="exact")
      for name in ("approx_max_k", "approx_min_k")),
]

ERRORS = {
    "sort-axis": lambda l: l.sort(X, dimension=3),
    "sort-shapes": lambda l: l.sort((X, X[:2])),
    "sort-keys": lambda l: l.sort((X, X), num_keys=3),
    "top_k-k": lambda l: l.top_k(X, 99), "top_k-negative": lambda l: l.top_k(X, -1),
    "top_k-scalar": lambda l: l.top_k(1.0, 1), "top_k-complex": lambda l: l.top_k(1j * X, 2),
    "approx_max_k-int": lambda l: l.approx_max_k(KEYS, 2),
}
CASES += [Case(f"error-{label}", lambda j, fun=fun: fun(j.lax), (), raises=True)
          for label, fun in ERRORS.items()]
