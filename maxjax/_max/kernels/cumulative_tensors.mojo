"""Cumulative operations as MAX's graphs call them, along the middle axis of (outer, axis, inner).

Registered as `maxjax_cum<name>` with a Bool parameter `reverse`.
"""
import extensibility
from extensibility import InputTensor, OutputTensor
from max.gpu.host import DeviceContext
from std.runtime import parallelism_level

from .cumulative import AddingExponentials, accumulate_middle
from .reduction import Maximizing, Minimizing, Multiplying, Reducer, Summing, stored


@always_inline
def accumulate_tensor[
    Op: Reducer
](
    result: OutputTensor[rank=3, ...],
    x: InputTensor[dtype=result.dtype, rank=3, ...],
    reverse: Bool,
):
    comptime kind = stored[result.dtype]()
    accumulate_middle[Op, kind](
        x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
        result.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
        x.dim_size[0](),
        x.dim_size[1](),
        x.dim_size[2](),
        reverse,
        parallelism_level(),
    )


@extensibility.register("maxjax_cumsum")
struct Cumsum:
    @staticmethod
    def execute[
        target: StaticString, reverse: Bool
    ](
        result: OutputTensor[rank=3, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        accumulate_tensor[Summing](result, x, reverse)


@extensibility.register("maxjax_cumprod")
struct Cumprod:
    @staticmethod
    def execute[
        target: StaticString, reverse: Bool
    ](
        result: OutputTensor[rank=3, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        accumulate_tensor[Multiplying](result, x, reverse)


@extensibility.register("maxjax_cummax")
struct Cummax:
    @staticmethod
    def execute[
        target: StaticString, reverse: Bool
    ](
        result: OutputTensor[rank=3, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        accumulate_tensor[Maximizing](result, x, reverse)


@extensibility.register("maxjax_cummin")
struct Cummin:
    @staticmethod
    def execute[
        target: StaticString, reverse: Bool
    ](
        result: OutputTensor[rank=3, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        accumulate_tensor[Minimizing](result, x, reverse)


@extensibility.register("maxjax_cumlogsumexp")
struct Cumlogsumexp:
    @staticmethod
    def execute[
        target: StaticString, reverse: Bool
    ](
        result: OutputTensor[rank=3, ...],
        x: InputTensor[dtype=result.dtype, rank=3, ...],
        context: DeviceContext,
    ) raises:
        accumulate_tensor[AddingExponentials](result, x, reverse)
