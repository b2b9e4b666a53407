"""Rounding to narrower floats.

Processors without instructions for `bfloat16` round to it by a call for each element, unless it is
written out. So it is: in integer arithmetic, for whole vectors.
"""
from std.utils.numerics import isnan


@always_inline
def rounded_to[
    dtype: DType, width: SIMDLength, //, target: DType
](x: SIMD[dtype, width]) -> SIMD[target, width]:
    """The nearest number of another floating dtype, to even in the middle; of `bfloat16`, the
    nearest to what is the nearest in `float32`, as XLA's and NumPy's is."""
    comptime if target != DType.bfloat16 or dtype == target:
        return x.cast[target]()
    elif dtype != DType.float32:
        return rounded_to[target](x.cast[DType.float32]())
    else:
        var single = rebind[SIMD[DType.float32, width]](x)
        var bits = single.to_bits[DType.uint32]()
        var nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        var quiet = ((bits >> 16) & 0x8000) | 0x7FC0
        return SIMD[target, width](
            from_bits=isnan(single).select(quiet, nearest).cast[DType.uint16]()
        )
