"""Windows as MAX's graphs call them.

Every kernel takes an int32 vector `geometry` (see `windows.Geometry`). Registered as `maxjax_unfold`,
which gives the windows' elements, `maxjax_window_<kind>`, which reduces each window, and
`maxjax_select_scatter_<comparison>`, the derivative of its extremes.
"""
import extensibility
from extensibility import InputTensor, OutputTensor
from max.gpu.host import DeviceContext
from std.runtime import parallelism_level

from .reduction import Array, Maximizing, Minimizing, Reducer, Summing, stored
from .windows import Geometry, Sizes, reduce_windows, scatter_windows, unfold_windows


@extensibility.register("maxjax_unfold")
struct Unfold:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        comptime kind = stored[result.dtype]()
        unfold_windows[kind](
            x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
            result.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
            Sizes(
                x.dim_size[0](),
                x.dim_size[1](),
                x.dim_size[2](),
                x.dim_size[3](),
                result.dim_size[1](),
                result.dim_size[2](),
            ),
            Geometry(geometry.unsafe_ptr().as_unsafe_any_origin()),
            parallelism_level(),
        )


@always_inline
def window_tensor[
    Op: Reducer, holes_are_zero: Bool
](
    result: OutputTensor[rank=4, ...],
    x: InputTensor[dtype=result.dtype, rank=4, ...],
    geometry: InputTensor[dtype = DType.int32, rank=1, ...],
):
    comptime kind = result.dtype
    reduce_windows[Op, kind, holes_are_zero](
        rebind[Array[kind]](x.unsafe_ptr().as_unsafe_any_origin()),
        rebind[Array[kind]](result.unsafe_ptr().as_unsafe_any_origin()),
        Sizes(
            x.dim_size[0](),
            x.dim_size[1](),
            x.dim_size[2](),
            x.dim_size[3](),
            result.dim_size[1](),
            result.dim_size[2](),
        ),
        Geometry(geometry.unsafe_ptr().as_unsafe_any_origin()),
        parallelism_level(),
    )


@extensibility.register("maxjax_window_sum")
struct WindowSum:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        window_tensor[Summing, True](result, x, geometry)


@extensibility.register("maxjax_window_max")
struct WindowMax:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        window_tensor[Maximizing, False](result, x, geometry)


@extensibility.register("maxjax_window_min")
struct WindowMin:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        window_tensor[Minimizing, False](result, x, geometry)


@always_inline
def scatter_tensor[
    Op: Reducer, largest: Bool
](
    result: OutputTensor[rank=4, ...],
    x: InputTensor[dtype=result.dtype, rank=4, ...],
    updates: InputTensor[dtype=result.dtype, rank=4, ...],
    geometry: InputTensor[dtype = DType.int32, rank=1, ...],
):
    comptime kind = result.dtype
    scatter_windows[Op, kind, largest](
        rebind[Array[kind]](x.unsafe_ptr().as_unsafe_any_origin()),
        rebind[Array[kind]](updates.unsafe_ptr().as_unsafe_any_origin()),
        rebind[Array[kind]](result.unsafe_ptr().as_unsafe_any_origin()),
        Sizes(
            x.dim_size[0](),
            x.dim_size[1](),
            x.dim_size[2](),
            x.dim_size[3](),
            updates.dim_size[1](),
            updates.dim_size[2](),
        ),
        Geometry(geometry.unsafe_ptr().as_unsafe_any_origin()),
        parallelism_level(),
    )


@extensibility.register("maxjax_select_scatter_ge")
struct SelectScatterGe:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        updates: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Maximizing, True](result, x, updates, geometry)


@extensibility.register("maxjax_select_scatter_le")
struct SelectScatterLe:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        updates: InputTensor[dtype=result.dtype, rank=4, ...],
        geometry: InputTensor[dtype = DType.int32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Minimizing, False](result, x, updates, geometry)
