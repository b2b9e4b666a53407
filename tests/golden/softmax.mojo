# Maximum, exponentials, their sum and the quotients: one kernel, with memory for one row.
#
#     def softmax(x):
#         shifted = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
#         return shifted / jnp.sum(shifted, axis=1, keepdims=True)

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """rows: max, sub, exp, sum, div

    (float32[n]) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var n = integer(args, 6)
    var points = args.unsafe_offset(11)
    comptime W = 2 * simd_width_of[DType.float32]()
    var m0 = List[Scalar[DType.float32]](length=n, fill=0)
    var s0 = m0.unsafe_ptr().as_unsafe_any_origin()
    var walk = Walk[2](points, begin)

    for _ in range(begin, end):
        var a1 = Lanes[Maximizing, DType.float32, W]()
        var r0 = p0.unsafe_offset(walk.offsets[0])

        @always_inline
        def pass0[w: Int, unit: Int](i: Int) {var r0, mut a1}:
            var v2 = load[DType.float32, w](r0, i)
            a1.take[w, unit](v2)

        sweep_units[W](pass0, 0, n)
        var v1 = a1.result().cast[DType.float32]()

        var a3 = Lanes[Summing, DType.float32, W]()

        @always_inline
        def pass1[w: Int, unit: Int](i: Int) {var r0, var v1, var s0, mut a3}:
            var v2 = load[DType.float32, w](r0, i)
            var v4 = v2 - SIMD[DType.float32, w](v1)
            var v0 = Exp.elementwise[DType.float32, w](v4)
            s0.unsafe_store(i, v0)
            a3.take[w, unit](v0)

        sweep_units[W](pass1, 0, n)
        var v3 = a3.result().cast[DType.float32]()

        var r1 = p1.unsafe_offset(walk.offsets[1])

        @always_inline
        def pass2[w: Int](i: Int) {var r1, var v3, var s0}:
            var v0 = load[DType.float32, w](s0, i)
            var v5 = v0 / SIMD[DType.float32, w](v3)
            r1.unsafe_store(i, v5)

        sweep[W](pass2, 0, n)

        walk.advance(points)
    keep(m0)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 4)


calls:
  kernel_0: float32[64,128] -> float32[64,128]
