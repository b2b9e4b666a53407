# Maximum, exponentials, their sum and the quotients: one kernel, with memory for one row.
#
#     def softmax(x):
#         shifted = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
#         return shifted / jnp.sum(shifted, axis=1, keepdims=True)

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """rows: max, sub, exp, sum, div, mul

    (float32[n], float32) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var n = integer(args, 8)
    var points = args.unsafe_offset(14)
    comptime W = 2 * simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var m1 = List[Scalar[DType.float32]](length=n, fill=0)
    var s1 = m1.unsafe_ptr().as_unsafe_any_origin()
    var walk = Walk[3](points, begin)

    for _ in range(begin, end):
        var a2 = Lanes[Maximizing, DType.float32, W]()
        var r0 = p0.unsafe_offset(walk.offsets[0])

        @always_inline
        def pass0[w: Int, unit: Int](i: Int) {var r0, mut a2}:
            var v3 = load[DType.float32, w](r0, i)
            a2.take[w, unit](v3)

        sweep_units[W](pass0, 0, n)
        var v2 = a2.result().cast[DType.float32]()

        var a4 = Lanes[Summing, DType.float32, W, units=1]()

        @always_inline
        def pass1[w: Int, unit: Int](i: Int) {var r0, var v2, var s1, mut a4}:
            var v3 = load[DType.float32, w](r0, i)
            var v5 = v3 - SIMD[DType.float32, w](v2)
            var v1 = Exp.elementwise[DType.float32, w](v5)
            s1.unsafe_store(i, v1)
            a4.take[w, unit](v1)

        sweep_units[W, units=1](pass1, 0, n)
        var v4 = a4.result().cast[DType.float32]()

        var v6 = v0 / v4
        var r2 = p2.unsafe_offset(walk.offsets[2])

        @always_inline
        def pass2[w: Int](i: Int) {var r2, var v6, var s1}:
            var v1 = load[DType.float32, w](s1, i)
            var v7 = v1 * SIMD[DType.float32, w](v6)
            r2.unsafe_store(i, v7)

        sweep[W](pass2, 0, n)

        walk.advance(points)
    keep(m1)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 6)


calls:
  kernel_0: float32[64,128], float32[] -> float32[64,128]
