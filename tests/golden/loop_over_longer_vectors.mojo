# In memory, and computed a vector at a time; the product is a call of the pack, by its address
# in the machine's code.
#
#     def loop_over_longer_vectors(state, weights):
#         def body(i, x):
#             x = jnp.where(x > 0, x * 0.5 + 1, x - 2)
#             return x + jnp.sum(weights @ x)
#         return lax.fori_loop(0, 10, body, state)

@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    """loop: gt, mul, add, sub, select, convert
    """
    var frame = Frame(slots, args)
    from std.collections import Array as FixedArray
    from std.memory import unsafe_memcpy
    from kernels.few import accumulate_few, positions_of_few, reduce_few
    var block = frame.address(0)
    block = block.unsafe_offset(-Int(block) & 63)
    comptime Function = def (Slots, Args) abi("C") thin -> None
    var last = frame.integer(-1) - 1
    var code = args.unsafe_offset(last).unsafe_bitcast[Args]()[]
    frame.slots.unsafe_offset(frame.integer(last - 1))[] = block
    var l0 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b0 = Pointer(to=l0).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m0 = b0.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l1 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b1 = Pointer(to=l1).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m1 = b1.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l3 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b3 = Pointer(to=l3).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m3 = b3.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l6 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b6 = Pointer(to=l6).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m6 = b6.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l9 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b9 = Pointer(to=l9).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m9 = b9.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l12 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b12 = Pointer(to=l12).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m12 = b12.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var r20 = 0
    var l4 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b4 = Pointer(to=l4).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m4 = b4.unsafe_offset(0).unsafe_bitcast[Scalar[DType.uint8]]()
    var l7 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b7 = Pointer(to=l7).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m7 = b7.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l10 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b10 = Pointer(to=l10).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m10 = b10.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l13 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b13 = Pointer(to=l13).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m13 = b13.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l14 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b14 = Pointer(to=l14).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m14 = b14.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l15 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b15 = Pointer(to=l15).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m15 = b15.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var l16 = FixedArray[SIMD[DType.uint64, 8], 1](fill=0)
    var b16 = Pointer(to=l16).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m16 = b16.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float64]]()
    var l18 = FixedArray[SIMD[DType.uint64, 8], 2](fill=0)
    var b18 = Pointer(to=l18).unsafe_bitcast[UInt8]().unsafe_origin_cast[MutUntrackedOrigin]()
    var m18 = b18.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]()
    var r2 = Scalar[DType.float32](0)
    var r5 = r2
    var r8 = r2
    var r11 = r2
    var r17 = r2
    unsafe_memcpy(dest=b0.unsafe_offset(0), src=frame.address(1), count=96)
    unsafe_memcpy(dest=b1.unsafe_offset(0), src=frame.address(2), count=32)
    r2 = at(frame.address(3).unsafe_bitcast[Scalar[DType.float32]](), 0)
    var v1 = SIMD[DType.float32, 8](r2)
    m3.unsafe_store(0, v1)
    r5 = at(frame.address(4).unsafe_bitcast[Scalar[DType.float32]](), 0)
    var v2 = SIMD[DType.float32, 8](r5)
    m6.unsafe_store(0, v2)
    r8 = at(frame.address(5).unsafe_bitcast[Scalar[DType.float32]](), 0)
    var v3 = SIMD[DType.float32, 8](r8)
    m9.unsafe_store(0, v3)
    r11 = at(frame.address(6).unsafe_bitcast[Scalar[DType.float32]](), 0)
    var v4 = SIMD[DType.float32, 8](r11)
    m12.unsafe_store(0, v4)
    r20 = frame.integer(16)
    while r20 > 0:
        var v5 = vector_at[8](m1, 0).gt(SIMD[DType.float32, 8](r2))
        var v6 = vector_at[8](m1, 0) * SIMD[DType.float32, 8](r5)
        var v7 = v6 + SIMD[DType.float32, 8](r8)
        var v8 = vector_at[8](m1, 0) - SIMD[DType.float32, 8](r11)
        var v9 = v5.select(v7, v8)
        m14.unsafe_store(0, v9)
        products_of_registers[DType.float32, 1, 3, 1, 8, 0, 8, 1, 0, 1, 1, 3](b0.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), b14.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), b15.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]())
        reduce_few[Summing, DType.float32, DType.float64, 1, 3](b15.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), b16.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float64]]())
        r17 = at(m16, 0).cast[DType.float32]()
        var v10 = SIMD[DType.float32, 8](r17)
        var v11 = vector_at[8](m14, 0) + v10
        m1.unsafe_store(0, v11)
        r20 -= 1
    unsafe_memcpy(dest=frame.address(7), src=b1.unsafe_offset(0), count=32)
    in_use(l0)
    in_use(l1)
    in_use(l3)
    in_use(l4)
    in_use(l6)
    in_use(l7)
    in_use(l9)
    in_use(l10)
    in_use(l12)
    in_use(l13)
    in_use(l14)
    in_use(l15)
    in_use(l16)
    in_use(l18)


calls:
  kernel_0: a loop over few elements
