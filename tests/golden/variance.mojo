# One sum over all rows, then one of squares; what is between them stays in a register.
#
#     def variance(x):
#         return jnp.var(x)

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """rows: sum, mul, sub

    (float32[n], float32) -> (float32[1])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var n = integer(args, 8)
    var points = args.unsafe_offset(14)
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var walk = Walk[3](points, begin)
    var rows = integer(args, 10)
    var row_args = points.unsafe_offset(1 + 4 * integer(points, 0))

    for _ in range(begin, end):
        var a1 = Lanes[Summing, DType.float32, W, many=True]()
        var row = Walk[3](row_args)
        for _ in range(rows):
            var r0 = p0.unsafe_offset(walk.offsets[0] + row.offsets[0])

            @always_inline
            def pass0[w: Int, unit: Int](i: Int) {var r0, mut a1}:
                var v2 = load[DType.float32, w](r0, i)
                a1.take[w, unit](v2)

            sweep_units[W](pass0, 0, n)
            row.advance(row_args)
        var v1 = a1.result().cast[DType.float32]()

        var v3 = v1 * v0
        var a4 = Lanes[Summing, DType.float32, W, many=True]()
        row = Walk[3](row_args)
        for _ in range(rows):
            var r0 = p0.unsafe_offset(walk.offsets[0] + row.offsets[0])

            @always_inline
            def pass1[w: Int, unit: Int](i: Int) {var r0, var v3, mut a4}:
                var v2 = load[DType.float32, w](r0, i)
                var v5 = v2 - SIMD[DType.float32, w](v3)
                var v6 = v5 * v5
                a4.take[w, unit](v6)

            sweep_units[W](pass1, 0, n)
            row.advance(row_args)
        var v4 = a4.result().cast[DType.float32]()

        var v7 = v4 * v0
        p2.unsafe_store(walk.offsets[2], v7)
        walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 6)


calls:
  kernel_0: float32[64,128], float32[] -> float32[]
