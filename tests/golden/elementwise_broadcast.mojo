# One pass: x * 2 and the sum are never arrays; the bias is read anew for each row.
#
#     def elementwise_broadcast(x, bias):
#         return jnp.tanh(x * 2 + bias)

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: mul, add, tanh

    (float32[n], float32, float32[n]) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var n = integer(args, 10)
    var points = args.unsafe_offset(17)
    comptime W = 2 * simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var pieces = integer(args, 11)
    var walk = Walk[4](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r2 = p2.unsafe_offset(walk.offsets[2])
        var r3 = p3.unsafe_offset(walk.offsets[3])

        @always_inline
        def body[w: Int](i: Int) {var r0, var r2, var r3, var v0}:
            var v1 = load[DType.float32, w](r0, i)
            var v2 = v1 * SIMD[DType.float32, w](v0)
            var v3 = load[DType.float32, w](r2, i)
            var v4 = v2 + v3
            var v5 = Tanh.elementwise[DType.float32, w](v4)
            r3.unsafe_store(i, v5)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 8)


calls:
  kernel_0: float32[64,128], float32[], float32[128] -> float32[64,128]
