"""The primitives that StableHLO says otherwise than their lowering: mostly in one operation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.primitive import Primitive, registry
from maxjax._primitives.gather_plan import GatherScatterMode
from maxjax._stablehlo import linalg
from maxjax._stablehlo.emitter import COMPARISONS, Emitter, Rule, conjugate
from maxjax._stablehlo.operations import BINARY, CLIENT, UNARY
from maxjax._stablehlo.text import integers, listed
from maxjax._stablehlo.writer import Value


def _elementwise(operation: str) -> Rule:
    def rule(ctx: Emitter, *xs: Value, **params: Any) -> Value:
        operands = ctx.aligned(xs)
        out = ctx.out_avals[0]
        return ctx.emit(operation, operands, operands[0].shape, dtypes.physical(out.dtype))
    return rule


def _comparison(name: str, total: bool = False) -> Rule:
    return lambda ctx, *xs, **params: ctx.compare(name, *ctx.aligned(xs), total=total)


def _round(ctx: Emitter, x: Value, *, rounding_method: Any) -> Value:
    name = "round_half_even" if int(rounding_method) else "round_half_away"
    return ctx.kernel(name, x)


def _said(ctx: Emitter, x: Value, *, xla_metadata_kvs: Sequence[tuple[str, object]]) -> Value:
    ctx.say(x, dict(xla_metadata_kvs))
    return x


def _barrier(ctx: Emitter, *xs: Value) -> list[Value]:
    """Kept, so that a compiler does not merge what is computed again with the original."""
    return ctx.emit_all("stablehlo.optimization_barrier", xs, [(x.shape, x.dtype) for x in xs])


def _clamp(ctx: Emitter, low: Value, x: Value, high: Value) -> Value:
    return ctx.emit("stablehlo.clamp", ctx.aligned((low, x, high)), x.shape, x.dtype)


def _dot_general(ctx: Emitter, a: Value, b: Value, *, dimension_numbers: Any, **params: Any
                 ) -> Value:
    contracting, batching = dimension_numbers
    return ctx.dot(a, b, contracting, batching, ctx.out_avals[0].dtype)


def _labels(spec: Sequence[int], names: str) -> str:
    """The dimensions in their order: two names, and numbers for those in space."""
    labels = {spec[0]: names[0], spec[1]: names[1],
              **{dim: str(number) for number, dim in enumerate(spec[2:])}}
    return f"[{', '.join([labels[dim] for dim in range(len(spec))])}]"


def _convolution(ctx: Emitter, lhs: Value, rhs: Value, *, window_strides: Sequence[int],
                 padding: Sequence[Sequence[int]], lhs_dilation: Sequence[int],
                 rhs_dilation: Sequence[int], dimension_numbers: Any, feature_group_count: int,
                 batch_group_count: int, **params: Any) -> Value:
    out = ctx.out_avals[0]
    space = len(window_strides)
    numbers = dimension_numbers
    false = ": " + ", ".join(["false"] * space) if space else ""
    return ctx.convolution(
        lhs, rhs, out.shape, out.dtype, padding, f"window_strides = {integers(window_strides)}, "
        f"lhs_dilation = {integers(lhs_dilation)}, rhs_dilation = {integers(rhs_dilation)}, "
        f"window_reversal = array<i1{false}>, dimension_numbers = #stablehlo.conv<"
        f"{_labels(numbers.lhs_spec, 'bf')}x{_labels(numbers.rhs_spec, 'oi')}->"
        f"{_labels(numbers.out_spec, 'bf')}>, feature_group_count = {feature_group_count} : i64, "
        f"batch_group_count = {batch_group_count} : i64")


def _gather(ctx: Emitter, x: Value, indices: Value, *, dimension_numbers: Any,
            slice_sizes: Sequence[int], mode: Any, indices_are_sorted: bool, **params: Any
            ) -> Value:
    if mode == GatherScatterMode.FILL_OR_DROP or 0 in ctx.out_avals[0].shape:
        lower: Any = registry["gather"].lower
        return lower(ctx, x, indices, dimension_numbers=dimension_numbers, slice_sizes=slice_sizes,
                     mode=mode, indices_are_sorted=indices_are_sorted, **params)
    numbers = dimension_numbers
    return ctx.gather(
        x, indices, ctx.out_avals[0].shape, f"offset_dims = {listed(numbers.offset_dims)}, "
        f"collapsed_slice_dims = {listed(numbers.collapsed_slice_dims)}, "
        f"operand_batching_dims = {listed(numbers.operand_batching_dims)}, "
        f"start_indices_batching_dims = {listed(numbers.start_indices_batching_dims)}, "
        f"start_index_map = {listed(numbers.start_index_map)}, "
        f"index_vector_dim = {len(indices.shape) - 1}", slice_sizes, indices_are_sorted)


def _scatter(kind: str) -> Rule:
    def rule(ctx: Emitter, x: Value, indices: Value, updates: Value, *, dimension_numbers: Any,
             mode: Any, unique_indices: bool, indices_are_sorted: bool, **params: Any) -> Value:
        if mode == GatherScatterMode.CLIP:
            lower: Any = registry["scatter" if kind == "set" else f"scatter-{kind}"].lower
            return lower(ctx, x, indices, updates, dimension_numbers=dimension_numbers, mode=mode,
                         unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                         **params)
        numbers = dimension_numbers
        name = kind
        if kind == "sub":
            name, updates = "add", ctx.kernel("neg", updates)
        return ctx.scatter(
            name, x, indices, updates,
            f"update_window_dims = {listed(numbers.update_window_dims)}, "
            f"inserted_window_dims = {listed(numbers.inserted_window_dims)}, "
            f"input_batching_dims = {listed(numbers.operand_batching_dims)}, "
            f"scatter_indices_batching_dims = {listed(numbers.scatter_indices_batching_dims)}, "
            f"scatter_dims_to_operand_dims = {listed(numbers.scatter_dims_to_operand_dims)}, "
            f"index_vector_dim = {len(indices.shape) - 1}", indices_are_sorted, unique_indices)
    return rule


def _starts(ctx: Emitter, starts: Sequence[Value]) -> list[Value]:
    """The start indices, converted to one dtype, as the operation wants them."""
    kind = np.result_type(*[x.dtype for x in starts]) if starts else np.dtype(np.int32)
    return [ctx.convert(x, kind) for x in starts]


def _dynamic_slice(ctx: Emitter, x: Value, *starts: Value, slice_sizes: Sequence[int]) -> Value:
    if not starts:
        return x
    return ctx.dynamic_slice(x, _starts(ctx, starts), slice_sizes)


def _dynamic_update_slice(ctx: Emitter, x: Value, update: Value, *starts: Value) -> Value:
    if not starts:
        return update
    return ctx.emit("stablehlo.dynamic_update_slice", [x, update, *_starts(ctx, starts)], x.shape,
                    x.dtype)


def _sort(ctx: Emitter, *xs: Value, dimension: int, is_stable: bool, num_keys: int) -> list[Value]:
    return ctx.sort(xs, dimension, num_keys, is_stable)


def _windows(kind: str) -> Rule:
    def rule(ctx: Emitter, x: Value, *, window_dimensions: Sequence[int],
             window_strides: Sequence[int], padding: Sequence[Sequence[int]],
             base_dilation: Sequence[int], window_dilation: Sequence[int]) -> Value:
        return ctx.windows(kind, x, ctx.out_avals[0].shape, window_dimensions, window_strides,
                           padding, base_dilation, window_dilation)
    return rule


def _select_and_scatter(ctx: Emitter, source: Value, operand: Value, *, select_prim: Primitive,
                        window_dimensions: Sequence[int], window_strides: Sequence[int],
                        padding: Sequence[Sequence[int]], **params: Any) -> Value:
    pads = ", ".join([listed(pair) for pair in padding])
    result, = ctx.emit_all(
        "stablehlo.select_and_scatter", [operand, source, ctx.identity("sum", source.dtype)],
        [(operand.shape, source.dtype)],
        f"window_dimensions = {integers(window_dimensions)}, "
        f"window_strides = {integers(window_strides)}, "
        f"padding = dense<[{pads}]> : tensor<{len(padding)}x2xi64>",
        [ctx.region([((), operand.dtype)] * 2,
                    lambda x, y: [ctx.compare(select_prim.name, x, y)]),
         ctx.combiner("sum", source.dtype)])
    return result


def _fft(ctx: Emitter, x: Value, *, fft_type: Any, fft_lengths: Sequence[int]) -> Value:
    """At most three dimensions at a time; others one by one, where the values are complex."""
    kind = ("FFT", "IFFT", "RFFT", "IRFFT")[int(fft_type)]
    out, last = ctx.out_avals[0], len(x.shape) - 1
    others = range(last + 1 - len(fft_lengths), last + 1 - 3)

    def transformed(x: Value, kind: str, lengths: Sequence[int], shape: Sequence[int],
                    dtype: Any) -> Value:
        return ctx.emit("stablehlo.fft", [x], shape, dtype,
                        f"fft_type = #stablehlo<fft_type {kind}>, "
                        f"fft_length = {integers(lengths)}")

    def along(x: Value, dim: int) -> Value:
        swapped = [*range(last + 1)]
        swapped[dim], swapped[last] = last, dim
        x = ctx.transpose(x, swapped)
        x = transformed(x, kind.replace("R", ""), x.shape[-1:], x.shape, x.dtype)
        return ctx.transpose(x, swapped)

    if kind == "IRFFT":
        for dim in others:
            x = along(x, dim)
    lengths = fft_lengths[-3:]
    shape = [*x.shape[:last + 1 - len(lengths)], *out.shape[last + 1 - len(lengths):]]
    x = transformed(x, kind, lengths, shape, out.dtype)
    if kind != "IRFFT":
        for dim in others:
            x = along(x, dim)
    return x


def _bitcast(ctx: Emitter, x: Value, *, new_dtype: Any) -> Value:
    """The result's shape counts bits: elements of less than a byte have one each in memory."""
    kind = dtypes.physical(new_dtype)
    return x if x.dtype == kind else ctx.emit(
        "stablehlo.bitcast_convert", [x], ctx.out_avals[0].shape, kind)


_ALGORITHMS = ("DEFAULT", "THREE_FRY", "PHILOX")


def _bit_generator(ctx: Emitter, state: Value, *, shape: Sequence[int], dtype: Any,
                   algorithm: Any, **params: Any) -> list[Value]:
    """The state is two words of 64 bits, also where it is given as four of 32."""
    words = state
    if state.dtype == np.uint32:
        words = ctx.bitcast(ctx.reshape(state, (2, 2)), np.dtype(np.uint64))
    moved, bits = ctx.emit_all(
        "stablehlo.rng_bit_generator", [words], [(words.shape, words.dtype), (shape, dtype)],
        f"rng_algorithm = #stablehlo<rng_algorithm {_ALGORITHMS[int(algorithm)]}>")
    if state.dtype == np.uint32:
        moved = ctx.reshape(ctx.bitcast(moved, np.dtype(np.uint32)), (4,))
    return [moved, bits]


def _uniform(ctx: Emitter, low: Value, high: Value, *, shape: Sequence[int]) -> Value:
    sizes = ctx.constant(np.array(shape, np.int64))
    return ctx.emit("stablehlo.rng", [low, high, sizes], shape, low.dtype,
                    "rng_distribution = #stablehlo<rng_distribution UNIFORM>")


def _log2(ctx: Emitter, x: Value) -> Value:
    return ctx.kernel("mul", ctx.kernel("log", x), ctx.scalar(1 / math.log(2), x))


def _reduce_precision(ctx: Emitter, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    return ctx.emit("stablehlo.reduce_precision", [x], x.shape, x.dtype,
                    f"exponent_bits = {exponent_bits} : i32, mantissa_bits = {mantissa_bits} : i32")


def rules() -> dict[Primitive, Rule]:
    """The rules of all primitives that exist."""
    named: dict[str, Rule] = {
        "round": _round, "clamp": _clamp, "optimization_barrier": _barrier,
        "dot_general": _dot_general,
        "conv_general_dilated": _convolution, "gather": _gather, "scatter": _scatter("set"),
        "dynamic_slice": _dynamic_slice, "dynamic_update_slice": _dynamic_update_slice,
        "sort": _sort, "select_and_scatter_add": _select_and_scatter, "fft": _fft,
        "conj": conjugate, **linalg.RULES, "reduce_precision": _reduce_precision,
        "is_finite": _elementwise("stablehlo.is_finite"),
        "real": _elementwise("stablehlo.real"), "imag": _elementwise("stablehlo.imag"),
        "complex": _elementwise("stablehlo.complex"), "xla_metadata_value": _said,
        "rng_bit_generator": _bit_generator, "rng_uniform": _uniform, "log2": _log2,
        "bitcast_convert_type": _bitcast,
    }
    tables: list[tuple[dict[str, str], str]] = [
        (BINARY, "stablehlo"), (UNARY, "stablehlo"), (CLIENT, "chlo")]
    for table, dialect in tables:
        for name, operation in table.items():
            if name in registry:
                named.setdefault(name, _elementwise(f"{dialect}.{operation}"))
    for name in COMPARISONS:
        named[name] = _comparison(name)
    for name in ("eq", "lt", "le"):
        named[f"{name}_to"] = _comparison(name, total=True)
    for kind in ("add", "sub", "mul", "min", "max"):
        named[f"scatter-{kind}"] = _scatter(kind)
    for kind in ("sum", "max", "min"):
        named[f"reduce_window_{kind}"] = _windows(kind)
    return {registry[name]: rule for name, rule in named.items()}

