"""Broadcast, reshape, transpose, concatenate, split, pad, slice and so on."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.support.harness import Case

X = np.arange(24, dtype=np.float32).reshape(4, 6) / 7 - 1
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 5 - 2
COLUMN = X[:, :1]
DTYPES = (np.int8, np.uint32, np.bool_, np.complex64, ml_dtypes.bfloat16)

LINEAR = {
    "broadcast": (lambda l, x: l.broadcast(x, (2, 3)), X),
    "broadcast-none": (lambda l, x: l.broadcast(x, ()), X),
    "broadcast_in_dim": (lambda l, x: l.broadcast_in_dim(x, (2, 4, 6), (1, 2)), X),
    "broadcast_in_dim-ones": (lambda l, x: l.broadcast_in_dim(x, (4, 5, 6), (0, 1)), COLUMN[:, :1]),
    "broadcast_in_dim-empty": (lambda l, x: l.broadcast_in_dim(x, (0, 4), (1,)), X[:, 0]),
    "broadcast_to_rank": (lambda l, x: l.broadcast_to_rank(x, 4), X),
    "reshape": (lambda l, x: l.reshape(x, (3, 8)), X),
    "reshape-int": (lambda l, x: l.reshape(x, 24), X),
    "reshape-order": (lambda l, x: l.reshape(x, (8, 3), (1, 0)), X),
    "reshape-scalar": (lambda l, x: l.reshape(x, ()), X[:1, :1]),
    "reshape-empty": (lambda l, x: l.reshape(x, (0, 7)), X[:0]),
    "collapse": (lambda l, x: l.collapse(x, 0, 2), CUBE),
    "squeeze": (lambda l, x: l.squeeze(x, (-1,)), COLUMN),
    "expand_dims": (lambda l, x: l.expand_dims(x, (1, -1)), X),
    "transpose": (lambda l, x: l.transpose(x, (2, 0, 1)), CUBE),
    "rev": (lambda l, x: l.rev(x, (0, 2)), CUBE),
    "split": (lambda l, x: l.split(x, (1, 0, 3), 2), CUBE),
    "split-negative": (lambda l, x: l.split(x, (2, 2), -2)[1], X),
    "tile": (lambda l, x: l.tile(x, (2, 3)), X),
    "unstack": (lambda l, x: l.unstack(x, 1), CUBE),
    "pad": (lambda l, x: l.pad(x, x.dtype.type(0), ((1, 2, 0), (0, 1, 2))), X),
    "pad-crop": (lambda l, x: l.pad(x, x.dtype.type(0), ((-1, 2, 1), (3, -2, 0))), X),
    "pad-crop-all": (lambda l, x: l.pad(x, x.dtype.type(0), ((-3, -1, 0), (-9, 9, 1))), X[:, :3]),
    "pad-empty": (lambda l, x: l.pad(x, x.dtype.type(0), ((1, 1, 3), (0, 0, 0))), X[:0]),
    "slice": (lambda l, x: l.slice(x, (1, 0), (3, 5)), X),
    "slice-strides": (lambda l, x: l.slice(x, (1, 0), (4, 6), (2, 3)), X),
    "slice-empty": (lambda l, x: l.slice(x, (1, 2), (1, 5)), X),
    "slice_in_dim": (lambda l, x: l.slice_in_dim(x, 1, -1, 2, 1), X),
}

CASES = [
    *(Case(name, lambda j, x, fun=fun: fun(j.lax, x), (x,), linear=True, tolerance="exact")
      for name, (fun, x) in LINEAR.items()),
    *(Case(f"{name}-{np.dtype(dtype).name}", lambda j, x, fun=fun: fun(j.lax, x),
           (np.abs(X).astype(dtype),), differentiable=False, tolerance="exact")
      for name in ("broadcast", "reshape-order", "slice-strides", "split-negative", "tile")
      for fun in [LINEAR[name][0]] for dtype in DTYPES),
    Case("concatenate", lambda j, x, y: j.lax.concatenate([x, y, x], 1), (X, COLUMN),
         linear=True, tolerance="exact"),
    Case("concatenate-one", lambda j, x: j.lax.concatenate([x], 0), (X,), linear=True,
         tolerance="exact"),
    Case("stack", lambda j, x, y: j.lax.stack([x, y], 1), (X, X + 1), linear=True,
         tolerance="exact"),
    Case("pad-value", lambda j, x, v: j.lax.pad(x, v, ((1, 2, 1), (0, -1, 2))),
         (X, np.float32(2.5)), linear=True, tolerance="accumulate"),
    Case("iota", lambda j: (j.lax.iota(np.int32, 5), j.lax.broadcasted_iota(np.float32, (2, 3), 1),
                            j.lax.iota(np.int8, 200), j.lax.iota(np.complex64, 3)), (),
         differentiable=False, vmappable=False, tolerance="exact"),
    Case("broadcast-weak", lambda j, x: j.lax.broadcast(x, (3,)), (1.5,), tolerance="exact"),
]

ERRORS = {
    "broadcast_in_dim-length": lambda l: l.broadcast_in_dim(X, (2, 4, 6), (1,)),
    "broadcast_in_dim-sizes": lambda l: l.broadcast_in_dim(X, (2, 4, 6), (0, 2)),
    "broadcast_in_dim-rank": lambda l: l.broadcast_in_dim(X, (4,), (0, 1)),
    "broadcast_in_dim-subset": lambda l: l.broadcast_in_dim(X, (4, 6, 1), (0, 5)),
    "broadcasted_iota-dimension": lambda l: l.broadcasted_iota(np.int32, (2, 3), 2),
    "iota-bool": lambda l: l.iota(np.bool_, 3), "iota-negative": lambda l: l.iota(np.int32, -3),
    "reshape-negative": lambda l: l.reshape(X, (-1,)),
    "reshape-dimensions": lambda l: l.reshape(X, (24,), (0,)),
    "transpose-short": lambda l: l.transpose(X, (0,)),
    "transpose-negative": lambda l: l.transpose(X, (-1, 0)),
    "rev-repeated": lambda l: l.rev(X, (0, 0)), "rev-bounds": lambda l: l.rev(X, (3,)),
    "rev-negative": lambda l: l.rev(X, (-1,)),
    "concatenate-none": lambda l: l.concatenate([], 0),
    "concatenate-shapes": lambda l: l.concatenate([X, COLUMN], 0),
    "concatenate-ranks": lambda l: l.concatenate([X, X[0]], 0),
    "concatenate-dtypes": lambda l: l.concatenate([X, X.astype(np.int32)], 0),
    "concatenate-bounds": lambda l: l.concatenate([X, X], 5),
    "pad-length": lambda l: l.pad(X, np.float32(0), ((1, 1, 0),)),
    "pad-dtype": lambda l: l.pad(X, np.int32(0), ((1, 1, 0), (0, 0, 0))),
    "pad-interior": lambda l: l.pad(X, np.float32(0), ((1, 1, -1), (0, 0, 0))),
    "pad-size": lambda l: l.pad(X, np.float32(0), ((-9, 1, 0), (0, 0, 0))),
    "pad-value": lambda l: l.pad(X, X, ((1, 1, 0), (0, 0, 0))),
    "slice-strides": lambda l: l.slice(X, (0, 0), (1, 5), (1,)),
    "slice_in_dim-bounds": lambda l: l.slice_in_dim(X, 0, 9, axis=1),
    "squeeze-size": lambda l: l.squeeze(X, (0,)), "squeeze-bounds": lambda l: l.squeeze(X, (7,)),
    "expand_dims-repeated": lambda l: l.expand_dims(X, (0, 0)),
    "expand_dims-bounds": lambda l: l.expand_dims(X, (5,)),
    "broadcast_shapes": lambda l: l.broadcast_shapes((2, 2), (3,)),
    "split-sum": lambda l: l.split(X, (1, 2)), "split-negative": lambda l: l.split(X, (-1, 5)),
    "split-bounds": lambda l: l.split(X, (2, 2), 5),
}
CASES += [Case(f"error-{label}", lambda j, fun=fun: fun(j.lax), (), raises=True)
          for label, fun in ERRORS.items()]
