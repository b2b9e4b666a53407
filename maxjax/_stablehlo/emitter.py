"""Jaxprs as StableHLO text: the operations that lowerings call, each a line or a few.

What StableHLO has an operation for is said in it (``rules.py``); every other primitive by what it
is lowered to for the compilers, or else as a call of ``maxjax.<primitive>``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import Structure
from maxjax._ir.dimensions import broadcast_shapes, larger
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._max.lowering import Lowering, reduction_identity
from maxjax._max.operations import LoweringError
from maxjax._primitives.threefry import PARITY, ROTATIONS
from maxjax._stablehlo import control_flow
from maxjax._stablehlo.operations import BINARY, CLIENT, UNARY
from maxjax._stablehlo.text import (
    boolean,
    dense,
    element_type,
    integers,
    listed,
)
from maxjax._stablehlo.writer import Value, Writer

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_COMBINERS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "and": "and",
              "or": "or", "xor": "xor", "add": "add", "mul": "multiply"}

Rule = Callable[..., Any]


class Emitter(Writer, Lowering[Value]):
    """Writes one function.

    Args:
      rules: primitives that are written otherwise than they are lowered.
      located: the name of the function, where each operation is to say its scopes and its line.
    """

    def __init__(self, rules: dict[Primitive, Rule], located: str | None = None):
        super().__init__(located)
        self.rules = rules

    def rule_of(self, primitive: Primitive) -> Rule:
        rule: Any = self.rules.get(primitive, primitive.lower)
        eqn = self.eqn
        for atom in () if eqn is None else (*eqn.invars, *eqn.outvars):
            dtype = atom.aval.dtype
            if isinstance(dtype, dtypes.KeyDType) and dtype.physical.kind == "V":
                raise NotImplementedError(
                    f"keys of {dtype.impl} have no form in StableHLO; those of JAX's own "
                    "generators have")

        def written(_: Emitter, *xs: Value, **params: Any) -> Any:
            """By its rule, or as a call of maxjax where that cannot say it."""
            lines, count, eqn = len(self.lines), self._count, self.eqn
            try:
                if rule is not None:
                    return rule(self, *xs, **params)
            except LoweringError:
                del self.lines[lines:]
                self._count = count
                self.eqn = eqn
            results = self.emit_all(
                "stablehlo.custom_call", xs, [
                    (aval.shape, dtypes.physical(aval.dtype)) for aval in self.out_avals],
                f'call_target_name = "maxjax.{primitive.name}"')
            return results if primitive.multiple_results else results[0]

        return written

    # --- what is known of a value ---
    def shape(self, x: Value) -> tuple[int, ...]:
        return x.shape

    def dtype(self, x: Value) -> np.dtype:
        return x.dtype

    def is_float(self, x: Value) -> bool:
        return dtypes.is_floating(x.dtype)

    # --- constants ---
    def constant(self, value: Any) -> Value:
        value = np.asarray(value)
        value = value.astype(dtypes.physical(value.dtype), copy=False)
        result = self.value(value.shape, value.dtype)
        kind = result.type      # an error names a dtype that has none
        self.line(f"{result.name} = stablehlo.constant {dense(value)} : {kind}")
        return result

    def size(self, size: int) -> Value:
        return self.constant(np.int32(size))

    def shape_operands(self, shapes: Sequence[Sequence[int]]) -> list[Value]:
        """What a call of a function in XLA takes besides its operands, to know its results'
        shapes."""
        return []

    def scalar(self, value: Any, like: Value) -> Value:
        return self.constant(np.asarray(value, like.dtype))

    def full(self, shape: Sequence[int], value: Any, dtype: Any) -> Value:
        return self.broadcast(self.constant(np.asarray(value, dtypes.physical(dtype))), shape, ())

    def full_like(self, x: Value, value: Any) -> Value:
        return self.full(x.shape, value, x.dtype)

    def iota(self, dtype: Any, shape: Sequence[int], dimension: int) -> Value:
        kind = dtypes.physical(dtype)
        if kind == np.bool_:
            return self.convert(self.iota(np.int32, shape, dimension), kind)
        return self.emit("stablehlo.iota", (), shape, kind, f"iota_dimension = {dimension} : i64")

    # --- elementwise ---
    def aligned(self, xs: Sequence[Value]) -> list[Value]:
        """The operands, broadcast to their common shape as NumPy does."""
        shape = broadcast_shapes(*[x.shape for x in xs])
        return [self.spread(x, shape) for x in xs]

    def spread(self, x: Value, shape: Sequence[int]) -> Value:
        if x.shape == tuple(shape):
            return x
        ahead = len(shape) - len(x.shape)
        kept = [dim for dim, size in enumerate(x.shape) if size == shape[dim + ahead]]
        if len(kept) < len(x.shape):
            x = self.reshape(x, [x.shape[dim] for dim in kept])
        return self.broadcast(x, shape, [dim + ahead for dim in kept])

    def native(self, name: str, *xs: Value) -> Value:
        return self.kernel(name, *xs)

    def kernel(self, name: str, *xs: Value, out_dtype: Any = None) -> Value:
        operands = self.aligned(xs)
        shape, dtype = operands[0].shape, operands[0].dtype
        if name in COMPARISONS:
            return self.compare(name, *operands)
        if name == "is_finite":
            return self.emit("stablehlo.is_finite", operands, shape, np.bool_)
        if name in ("convert", "bitcast"):
            return getattr(self, name)(operands[0], out_dtype)
        if name == "exp2":
            return self.kernel("exp", self.kernel("mul", operands[0],
                                                  self.scalar(math.log(2), operands[0])))
        if name in BINARY or name in UNARY:
            return self.emit(f"stablehlo.{BINARY.get(name) or UNARY[name]}", operands, shape, dtype)
        if name in CLIENT:
            return self.emit(f"chlo.{CLIENT[name]}", operands, shape, dtype)
        raise LoweringError(f"StableHLO has no operation {name}")

    def compare(self, direction: str, x: Value, y: Value, *, total: bool = False) -> Value:
        """Elementwise; ``total``: of floats, in IEEE's total order."""
        if dtypes.is_floating(x.dtype) or x.dtype.kind == "c":
            kind = "TOTALORDER" if total else "FLOAT"
        else:
            kind = "UNSIGNED" if element_type(x.dtype).startswith(("u", "i1>")) \
                or x.dtype == np.bool_ else "SIGNED"
        return self.emit(
            "stablehlo.compare", [x, y], x.shape, np.bool_,
            f"compare_type = #stablehlo<comparison_type {kind}>, "
            f"comparison_direction = #stablehlo<comparison_direction {direction.upper()}>")

    def select(self, which: Value, cases: Sequence[Value]) -> Value:
        if len(cases) == 1:
            return cases[0]
        if which.dtype == np.bool_:
            no, yes = self.aligned(cases)
            which = self.spread(which, yes.shape)
            return self.emit("stablehlo.select", [which, yes, no], yes.shape, yes.dtype)
        result = cases[-1]
        for number in range(len(cases) - 2, -1, -1):
            chosen = self.native("le", which, self.scalar(number, which))
            result = self.select(chosen, [result, cases[number]])
        return result

    def convert(self, x: Value, dtype: Any) -> Value:
        kind = dtypes.physical(np.dtype(dtype))
        if x.dtype == kind:
            return x
        if kind == np.bool_:
            return self.native("ne", x, self.scalar(0, x))
        if x.dtype.kind == "c" and kind.kind != "c":
            x = self.emit("stablehlo.real", [x], x.shape, np.empty(0, x.dtype).real.dtype)
        return x if x.dtype == kind else self.emit("stablehlo.convert", [x], x.shape, kind)

    def bitcast(self, x: Value, dtype: Any) -> Value:
        kind = dtypes.physical(dtype)
        if x.dtype == kind:
            return x
        shape = x.shape
        if kind.itemsize < x.dtype.itemsize:
            shape = (*shape, x.dtype.itemsize // kind.itemsize)
        elif kind.itemsize > x.dtype.itemsize:
            shape = shape[:-1]
        return self.emit("stablehlo.bitcast_convert", [x], shape, kind)

    # --- shapes ---
    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        return x if x.shape == tuple(shape) else self.emit(
            "stablehlo.reshape", [x], shape, x.dtype)

    def broadcast(self, x: Value, shape: Sequence[int], dims: Sequence[int]) -> Value:
        if x.shape == tuple(shape) and list(dims) == list(range(len(shape))):
            return x
        return self.emit("stablehlo.broadcast_in_dim", [x], shape, x.dtype,
                         f"broadcast_dimensions = {integers(dims)}")

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        if list(permutation) == list(range(len(x.shape))):
            return x
        return self.emit("stablehlo.transpose", [x], [x.shape[dim] for dim in permutation],
                         x.dtype, f"permutation = {integers(permutation)}")

    def concatenate(self, xs: Sequence[Value], axis: int) -> Value:
        shape = list(xs[0].shape)
        shape[axis] = sum([x.shape[axis] for x in xs])
        return self.emit("stablehlo.concatenate", xs, shape, xs[0].dtype,
                         f"dimension = {axis} : i64")

    def slice(self, x: Value, starts: Sequence[int], limits: Sequence[int],
              strides: Sequence[int] | None) -> Value:
        strides = strides or (1,) * len(starts)
        shape = [max(0, -(-(limit - start) // step))
                 for start, limit, step in zip(starts, limits, strides, strict=True)]
        return self.emit("stablehlo.slice", [x], shape, x.dtype,
                         f"start_indices = {integers(starts)}, limit_indices = {integers(limits)}, "
                         f"strides = {integers(strides)}")

    def pad(self, x: Value, value: Value, config: Sequence[Any]) -> Value:
        shape = [low + high + size + max(0, size - 1) * interior
                 for size, (low, high, interior) in zip(x.shape, config, strict=True)]
        return self.padded(x, value, shape, config)

    def padded(self, x: Value, value: Value, shape: Sequence[int], config: Sequence[Any]) -> Value:
        low, high, interior = zip(*config, strict=True) if config else ((), (), ())
        return self.emit("stablehlo.pad", [x, value], shape, x.dtype,
                         f"edge_padding_low = {integers(low)}, "
                         f"edge_padding_high = {integers(high)}, "
                         f"interior_padding = {integers(interior)}")

    def reverse(self, x: Value, dimensions: Sequence[int]) -> Value:
        return self.emit("stablehlo.reverse", [x], x.shape, x.dtype,
                         f"dimensions = {integers(dimensions)}")

    # --- reductions and products ---
    def combiner(self, kind: str, dtype: Any) -> Callable[[], None]:
        """The region that combines two elements."""
        return self.region([((), dtype)] * 2, lambda x, y: [self.combined(kind, x, y)])

    def combined(self, kind: str, x: Value, y: Value) -> Value:
        return self.emit(f"stablehlo.{_COMBINERS[kind]}", [x, y], (), x.dtype)

    def identity(self, kind: str, dtype: Any) -> Value:
        return self.constant(np.asarray(reduction_identity(kind, dtype), dtype))

    def reduce(self, kind: str, x: Value, axes: Sequence[int]) -> Value:
        shape = [size for dim, size in enumerate(x.shape) if dim not in axes]
        result, = self.emit_all(
            "stablehlo.reduce", [x, self.identity(kind, x.dtype)], [(shape, x.dtype)],
            f"dimensions = {integers(axes)}", [self.combiner(kind, x.dtype)])
        return result

    def argreduce(self, kind: str, x: Value, axis: int, dtype: Any) -> Value:
        """The first index of the extreme, or of a NaN."""
        index = np.dtype(dtype)
        places = self.iota(index, x.shape, axis)
        shape = [size for dim, size in enumerate(x.shape) if dim != axis]

        def better(x0: Value, i0: Value, x1: Value, i1: Value) -> Sequence[Value]:
            wins = self.compare("gt" if kind == "max" else "lt", x0, x1)
            if dtypes.is_floating(x0.dtype):
                wins = self.kernel("or", wins, self.compare("ne", x0, x0))
            ties = self.kernel("and", self.compare("eq", x0, x1), self.compare("lt", i0, i1))
            first = self.kernel("or", wins, ties)
            return [self.select(wins, [x1, x0]), self.select(first, [i1, i0])]

        start = [self.identity(kind, x.dtype), self.constant(np.asarray(0, index))]
        scalars = [((), x.dtype), ((), index)]
        return self.emit_all(
            "stablehlo.reduce", [x, places, *start], [(shape, x.dtype), (shape, index)],
            f"dimensions = {integers([axis])}", [self.region(scalars * 2, better)])[1]

    def windows(self, kind: str, x: Value, shape: Sequence[int], window: Sequence[int],
                strides: Sequence[int], padding: Sequence[Sequence[int]],
                base_dilation: Sequence[int], window_dilation: Sequence[int]) -> Value:
        """A reduction over windows."""
        pads = ", ".join([listed(pair) for pair in padding])
        result, = self.emit_all(
            "stablehlo.reduce_window", [x, self.identity(kind, x.dtype)], [(shape, x.dtype)],
            f"window_dimensions = {integers(window)}, window_strides = {integers(strides)}, "
            f"base_dilations = {integers(base_dilation)}, "
            f"window_dilations = {integers(window_dilation)}, "
            f"padding = dense<[{pads}]> : tensor<{len(window)}x2xi64>",
            [self.combiner(kind, x.dtype)])
        return result

    def cumulative(self, kind: str, x: Value, axis: int, reverse: bool) -> Value:
        if not x.shape[axis]:
            return x
        size = larger(1, x.shape[axis])     # a symbolic one may be 0, which no window is
        rank = len(x.shape)
        window, padding = [1] * rank, [(0, 0)] * rank
        window[axis] = size
        padding[axis] = (0, size - 1) if reverse else (size - 1, 0)
        return self.windows(kind, x, x.shape, window, [1] * rank, padding, [1] * rank, [1] * rank)

    def dot(self, a: Value, b: Value, contracting: Sequence[Sequence[int]],
            batching: Sequence[Sequence[int]], dtype: Any) -> Value:
        shape = [a.shape[dim] for dim in batching[0]]
        for x, used in ((a, (*contracting[0], *batching[0])), (b, (*contracting[1], *batching[1]))):
            shape += [size for dim, size in enumerate(x.shape) if dim not in used]
        return self.emit(
            "stablehlo.dot_general", [a, b], shape, dtype,
            f"dot_dimension_numbers = #stablehlo.dot<"
            f"lhs_batching_dimensions = {listed(batching[0])}, "
            f"rhs_batching_dimensions = {listed(batching[1])}, "
            f"lhs_contracting_dimensions = {listed(contracting[0])}, "
            f"rhs_contracting_dimensions = {listed(contracting[1])}>")

    def convolution(self, x: Value, weights: Value, shape: Sequence[int], dtype: Any,
                    padding: Sequence[Sequence[int]], attributes: str) -> Value:
        pads = f"dense<[{', '.join([listed(pair) for pair in padding])}]>" if padding else "dense<>"
        return self.emit("stablehlo.convolution", [x, weights], shape, dtype,
                         f"padding = {pads} : tensor<{len(padding)}x2xi64>, {attributes}")

    def matmul(self, a: Value, b: Value, transpose_a: bool = False,
               transpose_b: bool = False) -> Value:
        rank = len(a.shape)
        batch = range(rank - 2)
        return self.dot(a, b, ([rank - 2 if transpose_a else rank - 1],
                               [rank - 1 if transpose_b else rank - 2]), (batch, batch), a.dtype)

    # --- indexing ---
    def gather_rows(self, x: Value, indices: Any, axis: int) -> Value:
        if isinstance(indices, np.ndarray):
            indices = self.constant(indices)
        rank, ahead = len(indices.shape), axis
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])
        offsets = [*range(ahead), *range(ahead + rank, len(shape))]
        sizes = [1 if dim == axis else size for dim, size in enumerate(x.shape)]
        return self.gather(
            x, indices, shape, f"offset_dims = {listed(offsets)}, collapsed_slice_dims = [{axis}], "
            f"start_index_map = [{axis}], index_vector_dim = {rank}", sizes)

    def gather(self, x: Value, indices: Value, shape: Sequence[int], numbers: str,
               sizes: Sequence[int], is_sorted: bool = False) -> Value:
        return self.emit(
            "stablehlo.gather", [x, indices], shape, x.dtype,
            f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {integers(sizes)}, "
            f"indices_are_sorted = {boolean(is_sorted)}")

    def scatter(self, kind: str, x: Value, indices: Value, updates: Value, numbers: str,
                is_sorted: bool = False, unique: bool = False) -> Value:
        def combine(old: Value, new: Value) -> Sequence[Value]:
            return [new if kind == "set" else self.combined(kind, old, new)]

        result, = self.emit_all(
            "stablehlo.scatter", [x, indices, updates], [(x.shape, x.dtype)],
            f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, "
            f"indices_are_sorted = {boolean(is_sorted)}, unique_indices = {boolean(unique)}",
            [self.region([((), x.dtype)] * 2, combine)])
        return result

    def scatter_rows(self, kind: str, x: Value, rows: Value, updates: Value) -> Value:
        """``x`` (rows, width), updates (count, width) combined in at positions (count,)."""
        if kind == "sub":
            kind, updates = "add", self.native("neg", updates)
        return self.scatter(
            kind, x, rows, updates,
            "update_window_dims = [1], inserted_window_dims = [0], "
            "scatter_dims_to_operand_dims = [0], index_vector_dim = 1")

    # --- sorting ---
    def sort(self, xs: Sequence[Value], dimension: int, num_keys: int, is_stable: bool = True
             ) -> list[Value]:
        """Sorts along a dimension by the first operands; NaN last, zeros equal."""
        def canonical(x: Value) -> Value:
            if not dtypes.is_floating(x.dtype):
                return x
            # In JAX's words, by which readers know the order.
            zeros = self.select(self.compare("eq", x, self.scalar(0, x)), [x, self.scalar(0, x)])
            return self.select(self.compare("ne", x, x), [zeros, self.scalar(np.nan, x)])

        def keys_of(x: Value) -> list[Value]:
            if x.dtype.kind != "c":
                return [canonical(x)]
            part = np.empty(0, x.dtype).real.dtype
            return [canonical(self.emit(f"stablehlo.{name}", [x], (), part))
                    for name in ("real", "imag")]

        def before(*pairs: Value) -> Sequence[Value]:
            result = None
            for number in reversed(range(num_keys)):
                left, right = keys_of(pairs[2 * number]), keys_of(pairs[2 * number + 1])
                for x, y in reversed([*zip(left, right, strict=True)]):
                    less = self.compare("lt", x, y, total=True)
                    if result is not None:
                        equal = self.compare("eq", x, y, total=True)
                        less = self.kernel("or", less, self.kernel("and", equal, result))
                    result = less
            assert result is not None
            return [result]

        scalars = [((), x.dtype) for x in xs for _ in range(2)]
        return self.emit_all(
            "stablehlo.sort", xs, [(x.shape, x.dtype) for x in xs],
            f"dimension = {dimension} : i64, is_stable = {boolean(is_stable)}",
            [self.region(scalars, before)])

    def sort_permutation(self, x: Value) -> Value:
        return self.sort([x, self.iota(np.int32, x.shape, 1)], 1, 1)[1]

    def threefry(self, key0: Value, key1: Value, counter0: Value, counter1: Value) -> list[Value]:
        """Twenty rounds, a key word added after every four."""
        first, second = (self.spread(x, counter0.shape) for x in (key0, key1))
        last = self.kernel("xor", self.kernel("xor", first, second), self.scalar(PARITY, first))
        keys = (first, second, last)
        x, y = self.kernel("add", counter0, first), self.kernel("add", counter1, second)
        for step in range(5):
            for rotation in ROTATIONS[step % 2]:
                x = self.kernel("add", x, y)
                turned = self.kernel(
                    "or", self.kernel("shift_left", y, self.scalar(rotation, y)),
                    self.kernel("shift_right_logical", y, self.scalar(32 - rotation, y)))
                y = self.kernel("xor", x, turned)
            x = self.kernel("add", x, keys[(step + 1) % 3])
            y = self.kernel("add", self.kernel("add", y, keys[(step + 2) % 3]),
                            self.scalar(step + 1, y))
        return [x, y]

    # --- control flow ---
    def inside(self, closed: ClosedJaxpr, values: Sequence[Value], part: str) -> list[Value]:
        """A jaxpr of a loop or a choice, which is that part of it."""
        with self.part_of(part):
            return self.lower_closed(closed, values)

    def control_flow(self, name: str, flow: Structure, operands: Sequence[Value]) -> list[Value]:
        if not flow.is_loop:
            return control_flow.choice(self, flow, operands)
        if flow.predicate is not None:
            return control_flow.while_loop(self, flow, operands)
        return control_flow.scan(self, flow, operands)

    def at(self, x: Value, place: Value) -> Value:
        """The slice at an index of the first dimension."""
        zeros = [self.constant(np.int32(0))] * (len(x.shape) - 1)
        sizes = (1, *x.shape[1:])
        return self.reshape(self.dynamic_slice(x, [place, *zeros], sizes), x.shape[1:])

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        return self.emit("stablehlo.dynamic_slice", [x, *starts], sizes, x.dtype,
                         f"slice_sizes = {integers(sizes)}")

    def put(self, x: Value, row: Value, place: Value) -> Value:
        """With a slice written at an index of the first dimension."""
        zeros = [self.constant(np.int32(0))] * (len(x.shape) - 1)
        return self.emit("stablehlo.dynamic_update_slice",
                         [x, self.reshape(row, (1, *row.shape)), place, *zeros], x.shape, x.dtype)


def conjugate(ctx: Emitter, x: Value, **params: Any) -> Value:
    part = np.empty(0, x.dtype).real.dtype
    real, imaginary = (ctx.emit(f"stablehlo.{name}", [x], x.shape, part)
                       for name in ("real", "imag"))
    return ctx.emit("stablehlo.complex", [real, ctx.kernel("neg", imaginary)], x.shape, x.dtype)
