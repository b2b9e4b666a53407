"""Sorting, transposition and the threefry hash as MAX's graphs call them."""
import extensibility
from extensibility import InputTensor, OutputTensor
from max.gpu.host import DeviceContext
from std.runtime import parallelism_level

from .arrangement import U32, argsort_rows, threefry_arrays, transpose_middle
from .reduction import stored


@extensibility.register("maxjax_argsort")
struct Argsort:
    """The stable permutation that sorts each row of a matrix."""

    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[dtype = DType.int32, rank=2, ...],
        x: InputTensor[rank=2, ...],
        context: DeviceContext,
    ) raises:
        comptime kind = stored[x.dtype]()
        argsort_rows[kind](
            x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
            result.unsafe_ptr().as_unsafe_any_origin(),
            x.dim_size[0](),
            x.dim_size[1](),
            parallelism_level(),
        )


@extensibility.register("maxjax_transpose")
struct Transpose:
    """Exchanges the middle axes: (outer, rows, columns, inner) to (outer, columns, rows, inner)."""

    @staticmethod
    def execute[target: StaticString](
        result: OutputTensor[rank=4, ...],
        x: InputTensor[dtype=result.dtype, rank=4, ...],
        context: DeviceContext,
    ) raises:
        comptime kind = stored[result.dtype]()
        transpose_middle[kind](
            x.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
            result.unsafe_ptr().unsafe_bitcast[Scalar[kind]]().as_unsafe_any_origin(),
            x.dim_size[0](),
            x.dim_size[1](),
            x.dim_size[2](),
            x.dim_size[3](),
            parallelism_level(),
        )


@extensibility.register("maxjax_threefry2x32")
struct Threefry2x32:
    """Hashes two arrays of counters; each key word is an array of their size or of size 1."""

    @staticmethod
    def execute[target: StaticString](
        result0: OutputTensor[dtype=U32, rank=1, ...],
        result1: OutputTensor[dtype=U32, rank=1, ...],
        key0: InputTensor[dtype=U32, rank=1, ...],
        key1: InputTensor[dtype=U32, rank=1, ...],
        counter0: InputTensor[dtype=U32, rank=1, ...],
        counter1: InputTensor[dtype=U32, rank=1, ...],
        context: DeviceContext,
    ) raises:
        threefry_arrays(
            key0.unsafe_ptr().as_unsafe_any_origin(),
            key1.unsafe_ptr().as_unsafe_any_origin(),
            counter0.unsafe_ptr().as_unsafe_any_origin(),
            counter1.unsafe_ptr().as_unsafe_any_origin(),
            result0.unsafe_ptr().as_unsafe_any_origin(),
            result1.unsafe_ptr().as_unsafe_any_origin(),
            key0.dim_size[0](),
            counter0.dim_size[0](),
            parallelism_level(),
        )
