"""Scatters as MAX's graphs call them.

Registered as `maxjax_scatter_rows_<kind>`: x (rows, width), places (count) of int32, updates
(count, width) give (rows, width). A place outside x drops its update.
"""
import extensibility
from extensibility import InputTensor, OutputTensor
from max.gpu.host import DeviceContext
from std.runtime import parallelism_level

from .reduction import Maximizing, Minimizing, Multiplying, Reducer, Summing, stored
from .scatter import Replacing, scatter


@always_inline
def scatter_tensor[
    R: Reducer
](
    result: OutputTensor[rank=2, ...],
    x: InputTensor[dtype=result.dtype, rank=2, ...],
    places: InputTensor[dtype = DType.int32, rank=1, ...],
    updates: InputTensor[dtype=result.dtype, rank=2, ...],
):
    comptime kind = stored[result.dtype]()
    scatter[R, kind](
        result.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
        x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
        places.unsafe_ptr().as_unsafe_any_origin(),
        updates.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
        x.dim_size[0](),
        x.dim_size[1](),
        places.dim_size[0](),
        parallelism_level(),
    )


@extensibility.register("maxjax_scatter_rows_set")
struct ScatterRowsSet:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=2, ...],
        places: InputTensor[dtype = DType.int32, rank=1, ...],
        updates: InputTensor[dtype=result.dtype, rank=2, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Replacing](result, x, places, updates)


@extensibility.register("maxjax_scatter_rows_add")
struct ScatterRowsAdd:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=2, ...],
        places: InputTensor[dtype = DType.int32, rank=1, ...],
        updates: InputTensor[dtype=result.dtype, rank=2, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Summing](result, x, places, updates)


@extensibility.register("maxjax_scatter_rows_mul")
struct ScatterRowsMul:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=2, ...],
        places: InputTensor[dtype = DType.int32, rank=1, ...],
        updates: InputTensor[dtype=result.dtype, rank=2, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Multiplying](result, x, places, updates)


@extensibility.register("maxjax_scatter_rows_min")
struct ScatterRowsMin:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=2, ...],
        places: InputTensor[dtype = DType.int32, rank=1, ...],
        updates: InputTensor[dtype=result.dtype, rank=2, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Minimizing](result, x, places, updates)


@extensibility.register("maxjax_scatter_rows_max")
struct ScatterRowsMax:
    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=2, ...],
        x: InputTensor[dtype=result.dtype, rank=2, ...],
        places: InputTensor[dtype = DType.int32, rank=1, ...],
        updates: InputTensor[dtype=result.dtype, rank=2, ...],
        context: DeviceContext,
    ) raises:
        scatter_tensor[Maximizing](result, x, places, updates)
