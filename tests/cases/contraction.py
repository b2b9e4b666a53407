"""dot_general and what stands on it."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)


def array(*shape, dtype=np.float32):
    values = RNG.normal(size=shape) * 3
    return np.asarray(values > 0 if dtype is np.bool_ else values, dtype)


# shapes and dimension numbers
PRODUCTS = {
    "matrix": ((4, 6), (6, 5), (((1,), (0,)), ((), ()))),
    "matrix-nt": ((4, 6), (5, 6), (((1,), (1,)), ((), ()))),
    "matrix-tn": ((6, 4), (6, 5), (((0,), (0,)), ((), ()))),
    "matrix-tt": ((6, 4), (5, 6), (((0,), (1,)), ((), ()))),
    "vector": ((6,), (6,), (((0,), (0,)), ((), ()))),
    "vector-matrix": ((6,), (5, 6), (((0,), (1,)), ((), ()))),
    "matrix-vector": ((6, 5), (6,), (((0,), (0,)), ((), ()))),
    "batch": ((2, 4, 6), (2, 6, 5), (((2,), (1,)), ((0,), (0,)))),
    "batch-inside": ((4, 2, 6), (6, 5, 2), (((2,), (0,)), ((1,), (2,)))),
    "batch-two": ((2, 3, 4, 5), (3, 5, 2, 7), (((3,), (1,)), ((0, 1), (2, 0)))),
    "contract-two": ((2, 3, 4, 5), (5, 3, 2, 7), (((1, 3), (1, 0)), ((0,), (2,)))),
    "outer": ((2, 3), (4, 5), (((), ()), ((), ()))),
    "elementwise": ((2, 3), (2, 3), (((), ()), ((0, 1), (0, 1)))),
    "total": ((2, 3), (3, 2), (((0, 1), (1, 0)), ((), ()))),
    "scalar": ((), (2, 3), (((), ()), ((), ()))),
    "empty": ((0, 3), (3, 4), (((1,), (0,)), ((), ()))),
    "empty-sum": ((4, 0), (0, 5), (((1,), (0,)), ((), ()))),
}
DTYPES = (np.int8, np.uint8, np.int32, np.uint32, np.bool_, np.float16, ml_dtypes.bfloat16)


def general(numbers, **options):
    return lambda j, x, y: j.lax.dot_general(x, y, numbers, **options)


CASES = [
    *(Case(f"dot_general-{name}", general(numbers), (array(*lhs), array(*rhs)),
           tolerance="accumulate")
      for name, (lhs, rhs, numbers) in PRODUCTS.items()),
    *(Case(f"dot_general-{name}-{np.dtype(dtype).name}", general(PRODUCTS[name][2]),
           (array(*PRODUCTS[name][0], dtype=dtype), array(*PRODUCTS[name][1], dtype=dtype)),
           differentiable=False, tolerance="accumulate")
      for name in ("matrix-nt", "batch-inside", "vector") for dtype in DTYPES),
    Case("dot_general-complex", general(PRODUCTS["batch"][2]),
         (array(2, 4, 6) + 1j * array(2, 4, 6), array(2, 6, 5) - 1j * array(2, 6, 5)),
         tolerance="accumulate"),
    Case("dot-wraps", lambda j, x: j.lax.dot(x, x), (np.full((64, 64), 2**30 + 3, np.int32),),
         differentiable=False, vmappable=False, tolerance="exact"),
    Case("dot-exact-ints", lambda j, x: j.lax.dot(x, x), (
        RNG.integers(-1000, 1000, (40, 40)).astype(np.int32),),
        differentiable=False, tolerance="exact"),
    *(Case(f"dot-{np.dtype(x).name}-{np.dtype(y).name}-{np.dtype(out).name if out else None}",
           lambda j, a, b, out=out: j.lax.dot(a, b, preferred_element_type=out),
           (array(4, 6, dtype=x), array(6, 3, dtype=y)), differentiable=False,
           tolerance="accumulate")
      for x, y, out in (
          (np.int8, np.int8, np.int32), (ml_dtypes.bfloat16, ml_dtypes.bfloat16, np.float32),
          (np.float32, np.float32, ml_dtypes.bfloat16), (np.int8, np.int32, None),
          (np.float32, ml_dtypes.bfloat16, None), (np.int8, np.float32, None),
          (np.float16, np.float16, np.float32))),
    Case("dot-preferred-grad", lambda j, a, b: j.lax.dot(
        a, b, preferred_element_type=np.float32),
        (array(4, 6, dtype=ml_dtypes.bfloat16), array(6, 3, dtype=ml_dtypes.bfloat16)),
        smooth=False, tolerance="accumulate"),
    Case("dot-precision", lambda j, a, b: j.lax.dot(a, b, precision="highest"),
         (array(4, 6), array(6, 3)), tolerance="accumulate"),
    Case("dot-special", lambda j, a, b: j.lax.dot(a, b),
         (np.array([[np.nan, 1], [np.inf, 0], [1, 2]], np.float32), array(2, 3)),
         smooth=False, differentiable=False, tolerance="accumulate"),
    Case("batch_matmul", lambda j, a, b: j.lax.batch_matmul(a, b),
         (array(2, 3, 4, 5), array(2, 3, 5, 2)), tolerance="accumulate"),
    Case("ragged_dot", lambda j, a, b: j.lax.ragged_dot(a, b, np.array([1, 2, 0], np.int32)),
         (array(4, 6), array(3, 6, 2)), tolerance="accumulate", vmappable=False),
]

X = array(4, 6)
ERRORS = {
    "dot": lambda l: l.dot(X, X), "dot-rank": lambda l: l.dot(X[None], X),
    "dot-scalars": lambda l: l.dot(1.0, 2.0), "dot-list": lambda l: l.dot([1.0], [2.0]),
    "contract-sizes": lambda l: l.dot_general(X, X, (((1,), (0,)), ((), ()))),
    "contract-number": lambda l: l.dot_general(X, X, (((1,), (1, 0)), ((), ()))),
    "contract-batch": lambda l: l.dot_general(X, X, (((1,), (1,)), ((1,), (0,)))),
    "contract-bounds": lambda l: l.dot_general(X, X, (((1,), (2,)), ((), ()))),
    "contract-repeated": lambda l: l.dot_general(X, X, (((1, 1), (1, 1)), ((), ()))),
    "batch-sizes": lambda l: l.dot_general(X, X[:3], (((1,), (1,)), ((0,), (0,)))),
    "batch_matmul": lambda l: l.batch_matmul(X[None], X),
}
CASES += [Case(f"error-{label}", lambda j, fun=fun: fun(j.lax), (), raises=True)
          for label, fun in ERRORS.items()]
