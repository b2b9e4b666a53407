# Differences of all pairs of positions, whose three coordinates come first: rows of 400.
#
#     def squared_distances(x):
#         difference = x[:, None] - x[None]
#         return jnp.sum(difference * difference, axis=-1)

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """columns: sub, mul, sum

    (float32[1], float32[n]) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var n = integer(args, 8)
    var points = args.unsafe_offset(14)
    comptime W = simd_width_of[DType.float32]()
    var blocks = integer(args, 9)
    var rows = integer(args, 10)
    var row_args = points.unsafe_offset(1 + 4 * integer(points, 0))
    var walk = Walk[3](points, begin // blocks)
    var a0 = Columns[Summing, DType.float32](part_size(n, blocks))

    for item in range(begin, end):
        var first = part_begin(n, item % blocks, blocks)
        var last = part_begin(n, item % blocks + 1, blocks)
        a0.clear(last - first)
        var row = Walk[3](row_args)
        for _ in range(rows):
            var v1 = load[DType.float32, 1](p0, walk.offsets[0] + row.offsets[0])
            var r1 = p1.unsafe_offset(walk.offsets[1] + row.offsets[1])
            var q0 = a0.partial()

            @always_inline
            def body[w: Int](i: Int) {var r1, var v1, var first, var q0}:
                var v2 = load[DType.float32, w](r1, i)
                var v3 = SIMD[DType.float32, w](v1) - v2
                var v4 = v3 * v3
                take_column[Summing](q0, i - first, v4)

            sweep[W](body, first, last)
            row.advance(row_args)
            a0.count_rows(1)
        a0.finish()
        var r2 = p2.unsafe_offset(walk.offsets[2])
        var q0 = a0.result()

        @always_inline
        def finish[w: Int](i: Int) {var r2, var first, var q0}:
            var v0 = rebind[SIMD[DType.float32, w]](q0.unsafe_load[width=w](i - first))
            r2.unsafe_store(i, v0)

        sweep[W](finish, first, last)
        if item % blocks + 1 == blocks:
            walk.advance(points)
    a0.keep()


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 6)


calls:
  copy_32: float32[3,400], strides [1,3] to [400,1]
  kernel_0: float32[3,400], float32[3,400] -> float32[400,400], 2 threads
