"""A clock."""
from std.ffi import external_call


@always_inline
def perf_counter_ns() -> UInt64:
    var time = Array[Int64, 2](fill=0)
    _ = external_call["clock_gettime", Int32](Int32(1), Pointer(to=time))  # CLOCK_MONOTONIC
    return UInt64(time[0]) * 1_000_000_000 + UInt64(time[1])
