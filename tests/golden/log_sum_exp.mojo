# The maximum of a row, then its sum of exponentials, which are never stored.
#
#     def log_sum_exp(x):
#         largest = jnp.max(x, axis=1)
#         return largest + jnp.log(jnp.sum(jnp.exp(x - largest[:, None]), axis=1))

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """rows: max, sub, exp, sum, log, add

    (float32[n]) -> (float32[1])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var n = integer(args, 6)
    var points = args.unsafe_offset(11)
    comptime W = 2 * simd_width_of[DType.float32]()
    var walk = Walk[2](points, begin)

    for _ in range(begin, end):
        var a0 = Lanes[Maximizing, DType.float32, W]()
        var r0 = p0.unsafe_offset(walk.offsets[0])

        @always_inline
        def pass0[w: Int, unit: Int](i: Int) {var r0, mut a0}:
            var v1 = load[DType.float32, w](r0, i)
            a0.take[w, unit](v1)

        sweep_units[W](pass0, 0, n)
        var v0 = a0.result().cast[DType.float32]()

        var a2 = Lanes[Summing, DType.float32, W, units=1]()

        @always_inline
        def pass1[w: Int, unit: Int](i: Int) {var r0, var v0, mut a2}:
            var v1 = load[DType.float32, w](r0, i)
            var v3 = v1 - SIMD[DType.float32, w](v0)
            var v4 = Exp.elementwise[DType.float32, w](v3)
            a2.take[w, unit](v4)

        sweep_units[W, units=1](pass1, 0, n)
        var v2 = a2.result().cast[DType.float32]()

        var v5 = Log.elementwise[DType.float32, 1](v2)
        var v6 = v0 + v5
        p1.unsafe_store(walk.offsets[1], v6)
        walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 4)


calls:
  kernel_0: float32[64,128] -> float32[64]
