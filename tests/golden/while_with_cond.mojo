# The condition, the body and its branches are steps of the tape: no way back to Python.
#
#     def while_with_cond(x):
#         def body(state):
#             count, x = state
#             return count + 1, lax.cond(count % 2 == 0, lambda x: x * 3 + 1, lambda x: x / 2, x)
#         return lax.while_loop(lambda state: jnp.sum(state[1]) < 1000, body, (0, x))

@always_inline
def kernel_0_0(p0: Pointer[Scalar[DType.float32], MutAnyOrigin], p1: Pointer[Scalar[DType.float32], MutAnyOrigin], p2: Pointer[Scalar[DType.uint8], MutAnyOrigin]):
    """Of float32, bool."""
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var n = 200
    for _ in range(1):
        var a1 = Lanes[Summing, DType.float32, W]()
        var r0 = p0.unsafe_offset(0)

        @always_inline
        def pass0[w: Int, unit: Int](i: Int) {var r0, mut a1}:
            var v2 = load[DType.float32, w](r0, i)
            a1.take[w, unit](v2)

        sweep_units[W](pass0, 0, n)
        var v1 = a1.result().cast[DType.float32]()

        var v3 = v1.lt(v0)
        store_bool(p2, 0, v3)


@always_inline
def kernel_0_1(p0: Pointer[Scalar[DType.int32], MutAnyOrigin], p1: Pointer[Scalar[DType.int32], MutAnyOrigin], p2: Pointer[Scalar[DType.int32], MutAnyOrigin], p3: Pointer[Scalar[DType.uint8], MutAnyOrigin], p4: Pointer[Scalar[DType.int32], MutAnyOrigin], p5: Pointer[Scalar[DType.int32], MutAnyOrigin], p6: Pointer[Scalar[DType.int32], MutAnyOrigin]):
    """Of int32, bool."""
    var v0 = load[DType.int32, 1](p0, 0)
    var v1 = Scalar[DType.int32](2)
    var v2 = Rem.elementwise[DType.int32, 1](v0, v1)
    var v3 = Scalar[DType.int32](0)
    var v4 = v2.lt(v3)
    var v5 = Scalar[DType.bool](False)
    var v6 = Ne.elementwise[DType.bool, 1](v4, v5)
    var v7 = ~v2.eq(v3)
    var v8 = v6 & v7
    var v9 = v2 + v1
    var v10 = v8.select(v9, v2)
    var v11 = v10.eq(v3)
    var v12 = Convert.elementwise[DType.bool, DType.int32, 1](v11)
    var v13 = Scalar[DType.int32](1)
    var v14 = v0 + v13
    p5.unsafe_store(0, v12)
    p6.unsafe_store(0, v14)


@always_inline
def kernel_0_2(p0: Pointer[Scalar[DType.float32], MutAnyOrigin], p1: Pointer[Scalar[DType.float32], MutAnyOrigin], p2: Pointer[Scalar[DType.float32], MutAnyOrigin]):
    """Of float32."""
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var r0 = p0.unsafe_offset(0)
    var r2 = p2.unsafe_offset(0)
    @always_inline
    def body[w: Int](i: Int) {var r0, var r2, var v0}:
        var v1 = load[DType.float32, w](r0, i)
        var v2 = v1 * SIMD[DType.float32, w](v0)
        r2.unsafe_store(i, v2)
    sweep_fixed[W, 200](body)


@always_inline
def kernel_0_3(p0: Pointer[Scalar[DType.float32], MutAnyOrigin], p1: Pointer[Scalar[DType.float32], MutAnyOrigin], p2: Pointer[Scalar[DType.float32], MutAnyOrigin], p3: Pointer[Scalar[DType.float32], MutAnyOrigin]):
    """Of float32."""
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var v1 = load[DType.float32, 1](p2, 0)
    var r0 = p0.unsafe_offset(0)
    var r3 = p3.unsafe_offset(0)
    @always_inline
    def body[w: Int](i: Int) {var r0, var r3, var v0, var v1}:
        var v2 = load[DType.float32, w](r0, i)
        var v3 = v2 * SIMD[DType.float32, w](v0)
        var v4 = v3 + SIMD[DType.float32, w](v1)
        r3.unsafe_store(i, v4)
    sweep_fixed[W, 200](body)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    """A loop on the tape: 4 of 6 calls written here."""
    comptime Function = def (Slots, Args) abi("C") thin -> None
    var tape1 = args.unsafe_offset(0).unsafe_bitcast[Args]()[]
    var ns2 = integer(tape1.unsafe_offset(2), 0)
    var s2 = slots.unsafe_offset(ns2)[]
    var ns3 = integer(tape1.unsafe_offset(2), 2)
    var s3 = slots.unsafe_offset(ns3)[]
    var ns4 = integer(tape1.unsafe_offset(2), 4)
    var s4 = slots.unsafe_offset(ns4)[]
    var tape5 = args.unsafe_offset(2).unsafe_bitcast[Args]()[]
    var ns6 = integer(tape5.unsafe_offset(2), 0)
    var s6 = slots.unsafe_offset(ns6)[]
    var ns7 = integer(tape5.unsafe_offset(2), 10)
    var s7 = slots.unsafe_offset(ns7)[]
    var ns8 = integer(tape5.unsafe_offset(2), 12)
    var s8 = slots.unsafe_offset(ns8)[]
    var ns10 = integer(tape5.unsafe_offset(33), 4)
    var s10 = slots.unsafe_offset(ns10)[]
    var ns11 = integer(tape5.unsafe_offset(33), 8)
    var s11 = slots.unsafe_offset(ns11)[]
    var tape12 = tape5.unsafe_offset(33).unsafe_offset(13).unsafe_bitcast[Args]()[]
    var tape14 = tape5.unsafe_offset(50).unsafe_offset(3).unsafe_bitcast[Args]()[]
    var ns15 = integer(tape14.unsafe_offset(2), 4)
    var s15 = slots.unsafe_offset(ns15)[]
    var tape16 = tape5.unsafe_offset(50).unsafe_offset(5).unsafe_bitcast[Args]()[]
    while True:
        kernel_0_0(s2.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), s3.unsafe_offset(64).unsafe_bitcast[Scalar[DType.float32]](), s4.unsafe_offset(0).unsafe_bitcast[Scalar[DType.uint8]]())
        if s4.unsafe_offset(0)[] == 0:
            break
        kernel_0_1(s6.unsafe_offset(0).unsafe_bitcast[Scalar[DType.int32]](), s3.unsafe_offset(128).unsafe_bitcast[Scalar[DType.int32]](), s3.unsafe_offset(0).unsafe_bitcast[Scalar[DType.int32]](), s3.unsafe_offset(192).unsafe_bitcast[Scalar[DType.uint8]](), s3.unsafe_offset(256).unsafe_bitcast[Scalar[DType.int32]](), s7.unsafe_offset(0).unsafe_bitcast[Scalar[DType.int32]](), s8.unsafe_offset(0).unsafe_bitcast[Scalar[DType.int32]]())
        var i9 = 0
        s10 = s7.unsafe_offset(64 + i9 * 0)
        slots.unsafe_offset(ns10)[] = s10
        s11 = s7.unsafe_offset(128 + i9 * 0)
        slots.unsafe_offset(ns11)[] = s11
        pass
        var index13 = Int(s7.unsafe_offset(0).unsafe_bitcast[Scalar[DType.int32]]().unsafe_load[width=1](0))
        if index13 <= 0:
            kernel_0_2(s2.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), s3.unsafe_offset(320).unsafe_bitcast[Scalar[DType.float32]](), s15.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]())
        else:
            kernel_0_3(s2.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), s3.unsafe_offset(384).unsafe_bitcast[Scalar[DType.float32]](), s3.unsafe_offset(448).unsafe_bitcast[Scalar[DType.float32]](), s15.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]())
        var held17 = s6
        s6 = s8
        slots.unsafe_offset(ns6)[] = s6
        s8 = held17
        slots.unsafe_offset(ns8)[] = s8
        var held18 = s2
        s2 = s15
        slots.unsafe_offset(ns2)[] = s2
        s15 = held18
        slots.unsafe_offset(ns15)[] = s15


calls:
  tape_copy_bytes: 4 bytes
  tape_copy_bytes: 800 bytes
  tape_scan: sets 7 slots
  kernel_0
    (condition)
    vector_machine: float32[200], float32[] -> bool[]
    (body)
    vector_machine: int32[], int32[], int32[], bool[], int32[] -> int32[], int32[]
    tape_scan: sets 2 slots
    tape_switch
      (branch 0)
      vector_machine: float32[200], float32[] -> float32[200]
      (branch 1)
      vector_machine: float32[200], float32[], float32[] -> float32[200]
  tape_copy_bytes: 4 bytes
  tape_copy_bytes: 800 bytes
