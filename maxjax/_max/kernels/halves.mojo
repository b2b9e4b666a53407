"""Rounding to narrower floats.

Processors without instructions for `bfloat16` round to it by a call for each element, unless it is
written out. So it is: in integer arithmetic, for whole vectors.
"""
from std.utils.numerics import isnan


@always_inline
def to_odd[width: SIMDLength, //](x: SIMD[DType.float64, width]) -> SIMD[DType.float32, width]:
    """`float32` nearest to zero, with the last bit set where bits were lost: what is rounded from
    it to half as many bits is rounded once."""
    comptime U = SIMD[DType.uint32, width]
    var near = x.cast[DType.float32]()
    var bits = near.to_bits[DType.uint32]()
    var wide = near.cast[DType.float64]()
    var lost = wide.ne(x) & ~isnan(x)
    var below = abs(wide).gt(abs(x)).select(bits - 1, bits)
    return SIMD[DType.float32, width](from_bits=lost.select(below | U(1), bits))


@always_inline
def rounded_to[
    dtype: DType, width: SIMDLength, //, target: DType
](x: SIMD[dtype, width]) -> SIMD[target, width]:
    """The nearest number of another floating dtype, to even in the middle."""
    comptime if target != DType.bfloat16 or dtype == target:
        return x.cast[target]()
    elif dtype == DType.float64:
        return rounded_to[target](to_odd(rebind[SIMD[DType.float64, width]](x)))
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
