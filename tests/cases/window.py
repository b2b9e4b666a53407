"""Reductions over windows."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)
X = RNG.permutation(120).astype(np.float32).reshape(4, 6, 5) / 8 - 7
TIES = RNG.integers(-2, 3, (4, 6, 5)).astype(np.float32)
INITIAL = {"add": 0.0, "max": -np.inf, "min": np.inf}

# window, strides, padding, base dilation, window dilation
WINDOWS = {
    "valid": ((1, 2, 2), (1, 1, 1), "VALID", None, None),
    "pool": ((1, 2, 2), (1, 2, 2), "VALID", None, None),
    "same": ((2, 3, 2), (1, 2, 1), "SAME", None, None),
    "lower": ((2, 3, 2), (2, 2, 3), "SAME_LOWER", None, None),
    "pads": ((3, 2, 1), (1, 1, 2), ((1, 2), (0, 1), (0, 0)), None, None),
    "whole": ((4, 6, 5), (1, 1, 1), "VALID", None, None),
    "strides": ((1, 1, 1), (2, 3, 2), "VALID", None, None),
    "none": ((9, 1, 1), (1, 1, 1), "VALID", None, None),
}
DILATED = {
    "holes": ((2, 2, 2), (1, 2, 1), ((0, 1), (1, 0), (1, 1)), (2, 1, 3), (1, 2, 1)),
    "window-holes": ((2, 2, 3), (1, 1, 1), "SAME", None, (2, 3, 1)),
}


def of(kind, params, initial=None):
    value = INITIAL[kind] if initial is None else initial
    return lambda j, x: j.lax.reduce_window(x, value, getattr(j.lax, kind), *params)


CASES = [
    *(Case(f"{kind}-{name}", of(kind, params), (X,), tolerance="accumulate",
           linear=kind == "add", differentiable=name != "none")
      for kind in INITIAL for name, params in WINDOWS.items()),
    *(Case(f"{kind}-{name}", of(kind, params), (X,), tolerance="accumulate",
           linear=kind == "add", differentiable=kind == "add")
      for kind in INITIAL for name, params in DILATED.items()),
    *(Case(f"{kind}-special", of(kind, WINDOWS["same"]), (
        np.where(TIES == 2, np.nan, np.where(TIES == 1, np.inf, TIES)),), differentiable=False,
        tolerance="accumulate") for kind in INITIAL),
    *(Case(f"{kind}-{np.dtype(dtype).name}", of(kind, WINDOWS["same"], {
        "add": np.zeros((), dtype)[()], "max": low, "min": high}[kind]), (TIES.astype(dtype),),
        differentiable=False, tolerance="accumulate")
      for kind in INITIAL for dtype, low, high in (
          (np.int32, np.int32(-2**31), np.int32(2**31 - 1)), (np.int8, np.int8(-128), np.int8(127)),
          (ml_dtypes.bfloat16, ml_dtypes.bfloat16(-np.inf), ml_dtypes.bfloat16(np.inf)))),
    Case("max-from-zero", of("max", WINDOWS["same"], 0.0), (X,), differentiable=False),
    Case("add-from-three", of("add", WINDOWS["pads"], 3.0), (X,), differentiable=False,
         tolerance="accumulate"),
    Case("mul", lambda j, x: j.lax.reduce_window(
        x, 1.0, j.lax.mul, (1, 2, 2), (1, 1, 2), "SAME"), (X / 7,), differentiable=False,
        tolerance="accumulate"),
    Case("or", lambda j, x: j.lax.reduce_window(
        x, False, j.lax.bitwise_or, (1, 2, 2), (1, 1, 2), "SAME"), (X > 5,),
        differentiable=False, tolerance="exact"),
    Case("two", lambda j, x: j.lax.reduce_window(
        (x, x), (0.0, -np.inf), lambda a, b: (j.lax.add(a[0], b[0]), j.lax.max(a[1], b[1])),
        (1, 2, 2), (1, 1, 2), "SAME"), (X,), differentiable=False, vmappable=False,
        tolerance="accumulate"),
    # Ties: reverse mode gives all to the first. (JAX's forward mode is not consistent there.)
    *(Case(f"grad-{kind}-{name}", lambda j, x, c, kind=kind, params=params: j.vjp(
        lambda y: of(kind, params)(j, y), x)[1](c)[0], (TIES, cotangent), tolerance="accumulate",
        differentiable=False)
      for kind in ("max", "min") for name, params in WINDOWS.items() if name != "none"
      for cotangent in [np.asarray(RNG.normal(size={
          "valid": (4, 5, 4), "pool": (4, 3, 2), "same": (4, 3, 5), "lower": (2, 3, 2),
          "pads": (5, 6, 3), "whole": (1, 1, 1), "strides": (2, 2, 3)}[name]), np.float32)]),
]

ERRORS = {
    "window": lambda l: l.reduce_window(X, 0.0, l.add, (2,), (1, 1, 1), "VALID"),
    "strides": lambda l: l.reduce_window(X, 0.0, l.add, (2, 2, 1), (1,), "VALID"),
    "padding": lambda l: l.reduce_window(X, 0.0, l.add, (2, 2, 1), (1, 1, 1), "FOO"),
    "window-zero": lambda l: l.reduce_window(X, 0.0, l.add, (0, 2, 1), (1, 1, 1), "VALID"),
    "strides-zero": lambda l: l.reduce_window(X, 0.0, l.add, (1, 2, 1), (0, 1, 1), "VALID"),
}
CASES += [Case(f"error-{label}", lambda j, fun=fun: fun(j.lax), (), raises=True)
          for label, fun in ERRORS.items()]
