# The gradient is stored in the pass that sums its columns.
#
#     def stored_while_summed(x, hidden):
#         gradient = x * (1 - hidden * hidden)
#         return gradient, jnp.sum(gradient, axis=0)

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """columns: mul, sub, sum

    (float32[n], float32, float32[n]) -> (float32[n], float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var p4 = operand[DType.float32](slots, args, 4)
    var n = integer(args, 12)
    var points = args.unsafe_offset(20)
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var blocks = integer(args, 13)
    var rows = integer(args, 14)
    var row_args = points.unsafe_offset(1 + 6 * integer(points, 0))
    var walk = Walk[5](points, begin // blocks)
    var a1 = Columns[Summing, DType.float32](part_size(n, blocks))

    for item in range(begin, end):
        var first = part_begin(n, item % blocks, blocks)
        var last = part_begin(n, item % blocks + 1, blocks)
        a1.clear(last - first)
        var row = Walk[5](row_args)
        var done = 0
        var is_line = integer(row_args, 0) == 1
        var d0 = Walk[5].stride(row_args, 0, 0) if is_line else 0
        var d2 = Walk[5].stride(row_args, 2, 0) if is_line else 0
        var d4 = Walk[5].stride(row_args, 4, 0) if is_line else 0
        while done < rows:
            var r0 = p0.unsafe_offset(walk.offsets[0] + row.offsets[0])
            var r2 = p2.unsafe_offset(walk.offsets[2] + row.offsets[2])
            var r4 = p4.unsafe_offset(walk.offsets[4] + row.offsets[4])
            var q1 = a1.partial()

            @always_inline
            def body[w: Int, units: Int](i: Int) {
                var r0, var r2, var r4, var v0, var first, var d0, var d2, var d4, var q1
            }:
                var b1 = SIMD[DType.float32, w](Summing.identity[DType.float32]())
                comptime for unit in range(units):
                    var v2 = load[DType.float32, w](r0.unsafe_offset(unit * d0), i)
                    var v3 = load[DType.float32, w](r2.unsafe_offset(unit * d2), i)
                    var v4 = v3 * v3
                    var v5 = SIMD[DType.float32, w](v0) - v4
                    var v6 = v2 * v5
                    b1 = Summing.combine[DType.float32, w](b1, v6)
                    r4.unsafe_offset(unit * d4).unsafe_store(i, v6)
                take_column[Summing](q1, i - first, b1)

            var count = UNITS if is_line and done + UNITS <= rows else 1
            sweep_rows[W](body, first, last, count)
            row.skip(row_args, count)
            done += count
            a1.count_rows(count)
        a1.finish()
        var r3 = p3.unsafe_offset(walk.offsets[3])
        var q1 = a1.result()

        @always_inline
        def finish[w: Int](i: Int) {var r3, var first, var q1}:
            var v1 = rebind[SIMD[DType.float32, w]](q1.unsafe_load[width=w](i - first))
            r3.unsafe_store(i, v1)

        sweep[W](finish, first, last)
        if item % blocks + 1 == blocks:
            walk.advance(points)
    a1.keep()


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 10)


calls:
  kernel_0: float32[64,128], float32[], float32[64,128] -> float32[128], float32[64,128]
