"""Reductions, positions of extremes, running sums and reduce by any function."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)
X = RNG.permutation(24).astype(np.float32).reshape(2, 3, 4) / 8 - 1.4
TIES = np.array([[1, 3, 3, 0, 2], [2, 2, 5, -0.0, 0.0], [0, 0, 0, 0, 0]], np.float32)
SPECIAL = np.array([[1, np.nan, 3, np.inf], [-np.inf, 2, -0.0, 0.0], [1, 5, 2, -1]], np.float32)
ZEROS = np.array([[1, 0, 3, 2], [0, 2, 0, 4], [1, 5, 2, -1]], np.float32)
MINUS = np.full((2, 3), -0.0, np.float32)
INTS = RNG.integers(-100, 100, (3, 5))
AXES = {"": (1,), "-all": (0, 1, 2), "-two": (0, 2), "-none": ()}

REDUCTIONS = ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
LOGICAL = ("reduce_and", "reduce_or", "reduce_xor")
CUMULATIVE = ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
ADDED = ("cumsum", "cumlogsumexp")


def of(name, *params, **options):
    return lambda j, x: getattr(j.lax, name)(x, *params, **options)


CASES = [
    *(Case(f"{name}{suffix}", of(name, axes), (X,), tolerance="accumulate",
           linear=name == "reduce_sum")
      for name in REDUCTIONS for suffix, axes in AXES.items()),
    *(Case(f"{name}-of_one{len(axes)}", of(name, axes), (MINUS[:, :1],), smooth=False)
      for name in REDUCTIONS for axes in ((), (1,))),
    # The gradient of a NaN extreme is 0 / 0: XLA makes a 0 of it once it has fused the product.
    *(Case(f"{name}-{what}", of(name, (1,)), (x,), smooth=False, tolerance="accumulate",
           differentiable=what != "special" or name in ("reduce_sum", "reduce_prod"))
      for name in REDUCTIONS for what, x in (("ties", TIES), ("special", SPECIAL),
                                             ("zeros", ZEROS))),
    *(Case(f"{name}-empty", of(name, (0,)), (X[:0],), tolerance="exact", smooth=False,
           differentiable=name in ("reduce_sum", "reduce_prod"))
      for name in REDUCTIONS),
    *(Case(f"{name}-{np.dtype(dtype).name}", of(name, (0,)), (INTS.astype(dtype),),
           differentiable=False, tolerance="accumulate")
      for name in REDUCTIONS
      for dtype in (np.int8, np.uint8, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16)),
    *(Case(f"{name}-complex", of(name, (0,)), (X + 1j * X[::-1],), tolerance="accumulate")
      for name in ("reduce_sum", "reduce_prod")),
    *(Case(f"{name}-{np.dtype(dtype).name}", of(name, (1,)), (INTS.astype(dtype),),
           differentiable=False, tolerance="exact")
      for name in LOGICAL for dtype in (np.bool_, np.int8, np.uint32)),
    *(Case(f"{name}-bool", of(name, (1,)), (INTS > 0,), differentiable=False, tolerance="exact")
      for name in ("reduce_max", "reduce_min")),
    *(Case(f"{name}-{what}", of(name, 1, np.int32), (x,), differentiable=False,
           tolerance="exact")
      for name in ("argmax", "argmin")
      for what, x in (("float", X), ("ties", TIES), ("special", SPECIAL), ("int", INTS.astype(
          np.int8)), ("bool", INTS > 0), ("bfloat16", SPECIAL.astype(ml_dtypes.bfloat16)))),
    Case("argmax-uint8", of("argmax", 0, np.uint8), (X,), differentiable=False,
         tolerance="exact"),
    *(Case(f"{name}{'-reverse' if reverse else ''}-{axis}", of(name, axis, reverse), (X,),
           tolerance="accumulate", linear=name == "cumsum")
      for name in CUMULATIVE for axis in (0, 2) for reverse in (False, True)),
    *(Case(f"{name}-{what}", of(name, 1), (x,), smooth=False, tolerance="accumulate",
           signed_zeros=name in ADDED)
      for name in CUMULATIVE for what, x in (("ties", TIES), ("special", SPECIAL),
                                             ("zeros", ZEROS), ("empty", TIES[:, :0]),
                                             ("negative_zeros", MINUS))),
    Case("cumsum-one", of("cumsum", 1), (MINUS[:, :1],), smooth=False, tolerance="exact"),
    *(Case(f"{name}-{np.dtype(dtype).name}", of(name, 1), (INTS.astype(dtype),),
           differentiable=False, tolerance="accumulate")
      for name in CUMULATIVE[:4] for dtype in (np.int8, np.uint32)),
    *(Case(f"{name}-{np.dtype(dtype).name}", of(name, 1), (TIES.astype(dtype),),
           differentiable=False, tolerance="accumulate", signed_zeros=name in ADDED)
      for name in CUMULATIVE for dtype in (np.float16, ml_dtypes.bfloat16)),
    Case("reduce_sum-weak", lambda j, x: j.lax.reduce_sum(j.lax.broadcast(x, (3,)), (0,)), (2.5,)),
    Case("reduce-add", lambda j, x: j.lax.reduce(x, 0.0, j.lax.add, (0,)), (X,),
         tolerance="accumulate"),
    Case("reduce-add-from", lambda j, x: j.lax.reduce(x, 2.0, j.lax.add, (0,)), (X,),
         tolerance="accumulate", differentiable=False),
    Case("reduce-max", lambda j, x: j.lax.reduce(x, -np.inf, j.lax.max, (0, 1)), (X,)),
    Case("reduce-or", lambda j, x: j.lax.reduce(x, False, j.lax.bitwise_or, (1,)), (INTS > 0,),
         differentiable=False, tolerance="exact"),
    Case("reduce-xor", lambda j, x: j.lax.reduce(x, 0, j.lax.bitwise_xor, (1,)),
         (INTS.astype(np.int32),), differentiable=False, tolerance="exact"),
    Case("reduce-two", lambda j, x: j.lax.reduce(
        (x, x), (0.0, 1.0), lambda a, b: (j.lax.add(a[0], b[0]), j.lax.mul(a[1], b[1])), (1, 2)),
        (X,), differentiable=False, tolerance="accumulate", vmappable=False),
    Case("reduce-argmax", lambda j, x: j.lax.reduce(
        (x, j.lax.broadcasted_iota(np.int32, (2, 3, 4), 1)), (-np.inf, -1),
        lambda a, b: (j.lax.select(j.lax.ge(a[0], b[0]), a[0], b[0]),
                      j.lax.select(j.lax.ge(a[0], b[0]), a[1], b[1])), (1,)),
        (X,), differentiable=False, vmappable=False),
]

ERRORS = {
    "reduce_sum-repeated": lambda l: l.reduce_sum(X, (0, 0)),
    "reduce_sum-bounds": lambda l: l.reduce_sum(X, (5,)),
    "reduce_sum-negative": lambda l: l.reduce_sum(X, (-1,)),
    "reduce_sum-list": lambda l: l.reduce_sum([1.0], (0,)),
    "reduce_sum-bool": lambda l: l.reduce_sum(INTS > 0, (0,)),
    "reduce_and-float": lambda l: l.reduce_and(X, (0,)),
    "reduce-bounds": lambda l: l.reduce(X, 0.0, l.add, (5,)),
    "argmax-axis": lambda l: l.argmax(X, -1, np.int32),
    "argmax-dtype": lambda l: l.argmax(X, 0, np.float32),
    "argmax-empty": lambda l: l.argmax(X[:0], 0, np.int32),
    "cumsum-negative": lambda l: l.cumsum(X, -1), "cumsum-bounds": lambda l: l.cumsum(X, 3),
    "cumsum-bool": lambda l: l.cumsum(INTS > 0, 0),
}
CASES += [Case(f"error-{label}", lambda j, fun=fun: fun(j.lax), (), raises=True)
          for label, fun in ERRORS.items()]
