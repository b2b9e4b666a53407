"""Indexing, updates, gather and scatter."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import maxjax
from maxjax._primitives.rows import scatter_rows_p, take_rows_p
from tests.support.harness import Case

rng = np.random.default_rng(7)


def numbers(*shape, dtype=np.float32):
    return (rng.normal(size=shape) * 3).astype(dtype)


def ints(*values, dtype=np.int32):
    return np.array(values, dtype)


V = numbers(5)
M = numbers(4, 3)
X = numbers(2, 3, 4)
REPEATED = ints(0, 2, 0, -1)
GRID = ints([0, 1], [2, -1])
OUTSIDE = ints(1, 9, -9)


def at(x, index):
    return x.at[index]


def gather_numbers(j, *dims):
    return j.lax.GatherDimensionNumbers(*dims)


def scatter_numbers(j, *dims):
    return j.lax.ScatterDimensionNumbers(*dims)


def take_rows(j, x, i):
    """The primitive itself; its rows are in bounds."""
    return take_rows_p.bind(x, i) if j is maxjax else x[:, i]


def scatter_rows(kind):
    methods = {"set": "set", "add": "add", "mul": "multiply", "min": "min", "max": "max"}

    def function(j, x, i, u):
        if j is maxjax:
            return scatter_rows_p.bind(x, i, u, kind=kind)
        return getattr(x.at[i], methods[kind])(u, mode="drop")

    return function


def column(kind, mode):
    """A column at a computed place, within the array or outside."""
    return lambda j, x, i, u: getattr(x.at[:, i[0]], kind)(u, mode=mode)


def typed(dtype):
    """Every kind of element through one gather and one scatter of each sort."""
    name = np.dtype(dtype).name
    data = (numbers(4, 3) > 0) if dtype is np.bool_ else numbers(4, 3).astype(dtype)
    update = data[:2]
    yield Case(f"gather {name}", lambda j, x, i: x[i], (data, REPEATED))
    yield Case(f"gather filled {name}", lambda j, x, i: x.at[i].get(mode="fill"), (data, OUTSIDE),
               smooth=False)
    yield Case(f"scatter {name}", lambda j, x, i, u: x.at[i].set(u), (data, ints(1, 1), update))
    yield Case(f"scatter column {name}", lambda j, x, i, u: x.at[:, i[0]].set(u[0, 0]),
               (data, REPEATED[1:], update))
    if np.dtype(dtype).kind not in "bc":
        yield Case(f"scatter max {name}", lambda j, x, i, u: x.at[i].max(u),
                   (data, ints(1, 0), update), smooth=False)
    if np.dtype(dtype).kind != "b":
        yield Case(f"scatter add {name}", lambda j, x, i, u: x.at[i].add(u),
                   (data, ints(1, 1), update))


CASES = [
    # static indices
    Case("integer", lambda j, x: x[1], (X,), linear=True),
    Case("negative integers", lambda j, x: x[-1, :, -2], (X,), linear=True),
    Case("integer clipped", lambda j, x: x[7], (V,), linear=True),
    Case("slices", lambda j, x: x[:1, 1:, ::2], (X,), linear=True),
    Case("reversed slices", lambda j, x: x[::-1, 2:0:-1, ::-3], (X,), linear=True),
    Case("empty slice", lambda j, x: x[3:1], (V,), linear=True),
    Case("new axes", lambda j, x: x[None, 0, ..., None], (X,), linear=True),
    Case("nothing", lambda j, x: x[...], (X,), linear=True),
    Case("scalar", lambda j, x: x[()], (numbers(),), linear=True),
    Case("too many", lambda j, x: x[0, 0], (V,), raises=True),
    *(Case(f"gather of nothing along {mode}", lambda j, x, i, mode=mode: j.lax.gather(
        x, i, gather_numbers(j, (0,), (), (0,), (1,), (0,)), (4, 0), mode=mode),
           (M, ints([1], [7], [0])), differentiable=False) for mode in ("clip", "fill")),
    Case("gather of collapsed nothing", lambda j, x, i: j.lax.gather(
        x, i, gather_numbers(j, (0,), (1,), (1,)), (4, 0), mode="clip"), (M, ints([3])),
         raises=True),
    Case("two ellipses", lambda j, x: x[..., ...], (X,), raises=True),
    Case("list", lambda j, x: x[[0, 1]], (X,), raises=True),
    Case("string", lambda j, x: x["a"], (X,), raises=True),
    Case("float", lambda j, x: x[0.5], (X,), raises=True),
    # computed integers
    Case("computed integer", lambda j, x, i: x[i], (X, np.int32(1))),
    Case("computed negative", lambda j, x, i: x[0, i], (X, np.int8(-1))),
    Case("computed outside", lambda j, x, i: x[i], (V, np.int32(9))),
    Case("computed unsigned", lambda j, x, i: x[i], (V, np.uint8(200))),
    Case("computed twice", lambda j, x, i: x[i, ::-1, i], (X, np.int32(1))),
    Case("computed with new axis", lambda j, x, i: x[i, None, ..., 1:], (X, np.int32(1))),
    # arrays of integers
    Case("array", lambda j, x, i: x[i], (V, REPEATED)),
    Case("array of rank 2", lambda j, x, i: x[i], (M, GRID)),
    Case("array second", lambda j, x, i: x[:, i], (M, ints(0, 2, 1))),
    Case("arrays together", lambda j, x, i: x[i, i], (M, ints(0, 1, 2))),
    Case("arrays apart", lambda j, x, i: x[i, :, i], (X, ints(0, 1, 1))),
    Case("arrays broadcast", lambda j, x, i, k: x[i, :, k], (X, ints([0], [1]), ints(0, 3, 2))),
    Case("array and integer", lambda j, x, i: x[0, :, i], (X, ints(0, 1))),
    Case("array and slices", lambda j, x, i: x[::-1, i, 1:3], (X, ints(0, 2, 2, 1))),
    Case("array and new axes", lambda j, x, i: x[None, i, None, 1:], (X, ints(0, 1))),
    Case("array empty", lambda j, x, i: x[i], (M, np.zeros((0, 2), np.int32))),
    Case("array outside", lambda j, x, i: x[i], (V, OUTSIDE), smooth=False),
    Case("array filled", lambda j, x, i: x.at[i].get(mode="fill"), (V, OUTSIDE), smooth=False),
    Case("array filled with", lambda j, x, i: x.at[i].get(mode="fill", fill_value=3),
         (V, OUTSIDE)),
    Case("array clipped", lambda j, x, i: x.at[i].get(mode="clip"), (V, OUTSIDE)),
    Case("array of bytes", lambda j, x, i: x[i],
         (V, ints(1, -1, 100, dtype=np.int8)), smooth=False),
    Case("shapes that do not broadcast", lambda j, x: x[np.zeros(2, int), np.zeros(3, int)], (X,),
         raises=True),
    # masks
    Case("mask", lambda j, x: x[np.array([True, False, True, False])], (M,), linear=True),
    Case("mask of rank 2", lambda j, x: x[np.eye(4, 3) > 0], (M,), linear=True),
    Case("mask second", lambda j, x: x[:, np.array([True, False, True])], (M,), linear=True),
    Case("flag", lambda j, x: x[True], (M,), linear=True),
    Case("flag false", lambda j, x: x[False], (M,), linear=True),
    Case("mask of another shape", lambda j, x: x[np.array([True])], (M,), raises=True),
    # updates
    Case("set integer", lambda j, x, u: x.at[1].set(u), (M, numbers(3)), linear=True),
    Case("set slice", lambda j, x, u: x.at[1:3].set(u), (M, numbers(3)), linear=True),
    Case("set reversed", lambda j, x, u: x.at[::-1].set(u), (V, numbers(5)), linear=True),
    Case("set strided", lambda j, x, u: x.at[::2].set(u), (V, numbers(3)), linear=True),
    Case("set strided twice", lambda j, x, u: x.at[::2, 2::-2].set(u), (M, numbers(2, 2)),
         linear=True),
    Case("set all", lambda j, x, u: x.at[...].set(u), (M, numbers(3)), linear=True),
    Case("set outside", lambda j, x, u: x.at[9].set(u), (V, numbers()), linear=True),
    Case("set constant", lambda j, x: x.at[1:3].set(0), (V,), linear=True),
    Case("set NaN away", lambda j, x: j.numpy.sqrt(x.at[0].set(1.0)), (ints(-1, 4, 9).astype(
        np.float32),)),
    Case("set computed", lambda j, x, i, u: x.at[i].set(u), (M, np.int32(-1), numbers(3))),
    Case("set computed outside", lambda j, x, i, u: x.at[i].set(u), (V, np.int32(7), numbers())),
    Case("set array", lambda j, x, i, u: x.at[i].set(u), (V, ints(3, 1), numbers(2))),
    Case("set repeated", lambda j, x, i, u: x.at[i].set(u), (V, ints(1, 3, 1), numbers(3))),
    Case("set repeated scalar", lambda j, x, i, u: x.at[i].set(u), (V, ints(1, 3, 1), numbers())),
    Case("set dropped", lambda j, x, i, u: x.at[i].set(u), (V, OUTSIDE, numbers(3))),
    Case("set clipped", lambda j, x, i, u: x.at[i].set(u, mode="clip"),
         (V, OUTSIDE, numbers(3))),
    Case("set apart", lambda j, x, i, u: x.at[i, :, i].set(u), (X, ints(0, 1), numbers(2, 3))),
    Case("set with slices", lambda j, x, i, u: x.at[i, 1:, ::2].set(u),
         (X, ints(1, 0), numbers(2, 2, 2))),
    Case("set mask", lambda j, x, u: x.at[np.eye(4, 3) > 0].set(u), (M, numbers(3)), linear=True),
    Case("set too many values", lambda j, x: x.at[0:2].set(np.ones(3, np.float32)), (V,),
         raises=True),
    Case("add slice", lambda j, x, u: x.at[1:3].add(u), (V, numbers(2)), linear=True),
    Case("add repeated", lambda j, x, i, u: x.at[i].add(u), (V, ints(1, 3, 1), numbers(3))),
    Case("add rows", lambda j, x, i, u: x.at[i].add(u), (M, ints(1, 3, 1), numbers(3, 3))),
    Case("add columns", lambda j, x, i, u: x.at[:, i].add(u), (M, ints(1, 1), numbers(4, 2))),
    Case("subtract repeated", lambda j, x, i, u: x.at[i].subtract(u),
         (V, ints(1, 3, 1), numbers(3))),
    Case("multiply", lambda j, x, u: x.at[1:3].multiply(u), (V, numbers(2))),
    Case("multiply repeated", lambda j, x, i: x.at[i].multiply(np.float32(2.5)),
         (V, ints(1, 3, 1))),
    Case("multiply unique", lambda j, x, i, u: x.at[i].multiply(u, unique_indices=True),
         (V, ints(1, 3), numbers(2))),
    Case("divide", lambda j, x, i: x.at[i].divide(np.float32(2.5)), (V, ints(1, 3, 1))),
    Case("power", lambda j, x, i: x.at[i].power(np.float32(2)), (np.abs(V), ints(1, 3))),
    Case("min", lambda j, x, i, u: x.at[i].min(u), (V, ints(1, 3, 1), numbers(3))),
    Case("max", lambda j, x, i, u: x.at[i].max(u), (V, ints(1, 3, 1), numbers(3))),
    Case("max ties", lambda j, x, i, u: x.at[i].max(u),
         (np.ones(3, np.float32), ints(0, 0, 1), np.ones(3, np.float32)), smooth=False),
    *(Case(f"{kind} column {mode} {place}", column(kind, mode),
           (numbers(4, 3, 5), ints(place), numbers(4, 5)))
      for kind, mode, place in (("set", "drop", -1), ("set", "drop", 5), ("set", "clip", 5),
                                ("add", "drop", 2), ("subtract", "drop", -9),
                                ("multiply", "drop", -1))),
    Case("apply", lambda j, x, i: x.at[i].apply(j.numpy.square), (V, ints(1, 3, 1)),
         differentiable=False),
    # dynamic slices
    Case("dynamic_slice", lambda j, x, i: j.lax.dynamic_slice(x, (i, i), (2, 2)),
         (M, np.int32(1))),
    Case("dynamic_slice clipped", lambda j, x, i: j.lax.dynamic_slice(x, (i,), (3,)),
         (V, np.int32(4))),
    Case("dynamic_slice negative", lambda j, x, i: j.lax.dynamic_slice_in_dim(x, i, 2),
         (V, np.int32(-3))),
    Case("dynamic_slice too large", lambda j, x: j.lax.dynamic_slice(x, (0,), (9,)), (V,),
         raises=True),
    Case("dynamic_index_in_dim", lambda j, x, i: j.lax.dynamic_index_in_dim(x, i, 1, False),
         (M, np.int32(2))),
    Case("dynamic_update_slice",
         lambda j, x, u, i: j.lax.dynamic_update_slice(x, u, (i, i)),
         (M, numbers(2, 2), np.int32(3))),
    Case("dynamic_update_index_in_dim",
         lambda j, x, u, i: j.lax.dynamic_update_index_in_dim(x, u, i, 1),
         (M, numbers(4), np.int32(1))),
    *(Case(f"window {x.dtype} at {start}", lambda j, x, i, k: (
        j.lax.dynamic_slice(x, (i, k, i), (x.shape[0] - 2, x.shape[1] - 3, 2)),
        j.lax.dynamic_update_slice(
            x, j.lax.rev(x[3:, 2:, 1:], (0, 2)), (i, k, i))), (x, *start))
      for start in ((np.int32(1), np.int32(1)), (np.int8(-7), np.int8(90)))
      for x in (numbers(30, 21, 3), numbers(30, 21, 3) > 0, *(
          numbers(30, 21, 3, dtype=name) for name in ("int8", ml_dtypes.bfloat16)))),
    Case("windows in a loop", lambda j, x: j.lax.fori_loop(0, 5, lambda i, x: (
        x.at[1:-1, 1:-1].set(x[1:-1, 1:-1] + x[2:, 1:-1] - 0.5 * x[:-2, 2:])), x),
        (numbers(40, 50),), linear=True),
    Case("windows written where they are read", lambda j, x: j.lax.fori_loop(
        0, 5, lambda i, x: j.lax.dynamic_update_slice(x, x[:30, 1:40], (i, i)), x),
        (numbers(40, 50),), linear=True),
    Case("index_in_dim", lambda j, x: j.lax.index_in_dim(x, -1, 1), (M,), linear=True),
    Case("slice_in_dim", lambda j, x: j.lax.slice_in_dim(x, 0, -1, 2), (M,), linear=True),
    # gather and scatter in full
    Case("gather windows", lambda j, x, i: j.lax.gather(
        x, i, gather_numbers(j, (0, 2), (), (1, 0)), (2, 2)), (M, ints([0, 1], [9, -1])),
        smooth=False),
    Case("gather batched", lambda j, x, i: j.lax.gather(
        x, i, gather_numbers(j, (), (1,), (1,), (0,), (0,)), (1, 1), mode="fill"),
        (M, ints([[0]], [[2]], [[1]], [[5]])), smooth=False),
    Case("scatter windows", lambda j, x, i, u: j.lax.scatter_add(
        x, i, u, scatter_numbers(j, (0, 2), (), (1, 0))),
        (M, ints([0, 1], [0, 2], [1, 9]), numbers(2, 3, 2))),
    Case("scatter batched", lambda j, x, i, u: j.lax.scatter(
        x, i, u, scatter_numbers(j, (), (1,), (1,), (0,), (0,))),
        (M, ints([[0]], [[2]], [[1]], [[5]]), numbers(4, 1))),
    Case("take_rows", take_rows, (X, ints(2, 0, 0)), differentiable=False),
    *(Case(f"scatter_rows {kind}", scatter_rows(kind), (M, ints(1, 3, 1, 4), numbers(4, 3)),
           differentiable=False) for kind in ("set", "add", "mul", "min", "max")),
    # functions
    Case("take", lambda j, x, i: j.numpy.take(x, i), (M, ints(0, 7, -1))),
    Case("take outside", lambda j, x, i: j.numpy.take(x, i, 1), (M, OUTSIDE), smooth=False),
    Case("take wrapped", lambda j, x, i: j.numpy.take(x, i, 0, mode="wrap"), (M, OUTSIDE)),
    Case("take_along_axis", lambda j, x, i: j.numpy.take_along_axis(x, i, 1), (M, ints(
        [0, 2], [1, -1], [0, 0], [2, 1]))),
    Case("take_along_axis nothing", lambda j, x, i: j.numpy.take_along_axis(x, i, 1),
         (M, np.zeros((4, 0), np.int32))),
    Case("take_along_axis broadcast", lambda j, x, i: j.numpy.take_along_axis(x, i, 0),
         (M, ints([3, 1, 0]))),
    Case("take_along_axis wide", lambda j, x, i: j.numpy.take_along_axis(x, i, 1),
         (X, ints([[1], [2]]))),
    Case("put", lambda j, x, i, u: j.numpy.put(x, i, u, inplace=False),
         (M, ints(1, 50, 7), numbers(2))),
    Case("put_along_axis", lambda j, x, i: j.numpy.put_along_axis(x, i, 2.0, 1, inplace=False),
         (M, ints([0], [2], [1], [1]))),
    Case("nonzero", lambda j, x: j.numpy.nonzero(x, size=5, fill_value=-1),
         (np.eye(4, 3, dtype=np.float32),), smooth=False),
    Case("nonzero cut", lambda j, x: j.numpy.nonzero(x, size=2), (np.eye(4, 3, dtype=np.int32),)),
    Case("flatnonzero", lambda j, x: j.numpy.flatnonzero(x), (ints(0, 3, 0, 2),),
         jittable=False, vmappable=False),
    Case("argwhere", lambda j, x: j.numpy.argwhere(x, size=4), (np.eye(3, dtype=np.bool_),)),
    Case("compress", lambda j, x: j.numpy.compress(
        np.array([True, False, True]), x, 1, size=2), (M,),
         linear=True),
    Case("extract", lambda j, x: j.numpy.extract(x > 0, x, size=12), (M,)),
    Case("place", lambda j, x: j.numpy.place(x, x > 0, np.float32(2), inplace=False), (M,),
         smooth=False),
    Case("choose", lambda j, a, x: j.numpy.choose(a, [x, x * 2], mode="clip"),
         (ints(0, 1, 5), numbers(3))),
    Case("unravel_index", lambda j, i: j.numpy.unravel_index(i, (2, 3)), (ints(0, 5, -1, 99),)),
    Case("ravel_multi_index", lambda j, a, b: j.numpy.ravel_multi_index(
        (a, b), (2, 3), mode="wrap"), (ints(0, 1, 5), ints(2, -1, 4))),
    Case("ix_", lambda j, x, a, b: x[j.numpy.ix_(a, b)], (M, ints(0, 3), ints(1, 1, 2))),
    # 64 bits
    Case("array in 64 bits", lambda j, x, i: x[i], (numbers(5, dtype=np.float64), ints(
        0, -1, 4, dtype=np.int64)), x64=True),
    Case("add in 64 bits", lambda j, x, i, u: x.at[i].add(u), (
        numbers(5, dtype=np.float64), ints(0, -1, 0, dtype=np.int64),
        numbers(3, dtype=np.float64)), x64=True),
    Case("computed in 64 bits", lambda j, x, i: x[i], (numbers(5, dtype=np.float64),
                                                        np.int64(-2)), x64=True),
    Case("out of 32 bits", lambda j, x, i, k: [x[i], x[k]], (
        numbers(5, dtype=np.float64), np.int64(2 - 2**32), np.int64(2**32 + 1)), x64=True),
    *(Case(f"{dtype.__name__} {place}, of several dimensions", lambda j, x, i: [
        x[i], x[i, 1], x[:, i], x[1:, i], x.at[i].get(mode="clip"),
        x.at[i].get(wrap_negative_indices=False), j.numpy.take(x, i, 0, mode="clip"), x[0, :][i]],
        (numbers(5, 3, dtype=np.float64), dtype(place)), x64=True)
      for dtype, places in ((np.uint32, (3, 2**31, 2**32 - 4)),
                            (np.int64, (2**32 + 1, 2**31, -2**33 - 2, -3)),
                            (np.uint64, (2**32 + 1, 2**63 + 2, 2**64 - 4)))
      for place in places),
    *(case for dtype in (np.bool_, np.int8, np.uint8, np.int32, np.uint32, np.float16,
                         ml_dtypes.bfloat16, np.complex64) for case in typed(dtype)),
]
