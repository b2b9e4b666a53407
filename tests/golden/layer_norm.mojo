# One kernel goes over each row three times: mean, variance, result.
#
#     def layer_norm(x, scale, offset):
#         mean = jnp.mean(x, axis=-1, keepdims=True)
#         variance = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
#         return (x - mean) * lax.rsqrt(variance + 1e-6) * scale + offset

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """rows: sum, mul, sub, add, rsqrt

    (float32[n], float32, float32, float32[n], float32[n]) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var p4 = operand[DType.float32](slots, args, 4)
    var p5 = operand[DType.float32](slots, args, 5)
    var n = integer(args, 14)
    var points = args.unsafe_offset(23)
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var v1 = load[DType.float32, 1](p2, 0)
    var walk = Walk[6](points, begin)

    for _ in range(begin, end):
        var a2 = Lanes[Summing, DType.float32, W]()
        var r0 = p0.unsafe_offset(walk.offsets[0])

        @always_inline
        def pass0[w: Int, unit: Int](i: Int) {var r0, mut a2}:
            var v3 = load[DType.float32, w](r0, i)
            a2.take[w, unit](v3)

        sweep_units[W](pass0, 0, n)
        var v2 = a2.result().cast[DType.float32]()

        var v4 = v2 * v0
        var a5 = Lanes[Summing, DType.float32, W]()

        @always_inline
        def pass1[w: Int, unit: Int](i: Int) {var r0, var v4, mut a5}:
            var v3 = load[DType.float32, w](r0, i)
            var v6 = v3 - SIMD[DType.float32, w](v4)
            var v7 = v6 * v6
            a5.take[w, unit](v7)

        sweep_units[W](pass1, 0, n)
        var v5 = a5.result().cast[DType.float32]()

        var v8 = v5 * v0
        var v9 = v8 + v1
        var v10 = Rsqrt.elementwise[DType.float32, 1](v9)
        var r3 = p3.unsafe_offset(walk.offsets[3])
        var r4 = p4.unsafe_offset(walk.offsets[4])
        var r5 = p5.unsafe_offset(walk.offsets[5])

        @always_inline
        def pass2[w: Int](i: Int) {var r0, var r3, var r4, var r5, var v4, var v10}:
            var v3 = load[DType.float32, w](r0, i)
            var v6 = v3 - SIMD[DType.float32, w](v4)
            var v11 = v6 * SIMD[DType.float32, w](v10)
            var v12 = load[DType.float32, w](r3, i)
            var v13 = v11 * v12
            var v14 = load[DType.float32, w](r4, i)
            var v15 = v13 + v14
            r5.unsafe_store(i, v15)

        sweep[W](pass2, 0, n)

        walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 12)


calls:
  kernel_0: float32[64,128], float32[], float32[], float32[128], float32[128] -> float32[64,128]
