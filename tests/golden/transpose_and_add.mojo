# The transpose is a copy by blocks, after which both operands are read in lines.
#
#     def transpose_and_add(x, y):
#         return x.T + y

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: add

    (float32[n], float32[n]) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var n = integer(args, 8)
    var points = args.unsafe_offset(14)
    comptime W = simd_width_of[DType.float32]()
    var pieces = integer(args, 9)
    var walk = Walk[3](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r1 = p1.unsafe_offset(walk.offsets[1])
        var r2 = p2.unsafe_offset(walk.offsets[2])

        @always_inline
        def body[w: Int](i: Int) {var r0, var r1, var r2}:
            var v0 = load[DType.float32, w](r0, i)
            var v1 = load[DType.float32, w](r1, i)
            var v2 = v0 + v1
            r2.unsafe_store(i, v2)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 6)


calls:
  copy_32: float32[128,64], strides [1,128] to [64,1]
  kernel_0: float32[128,64], float32[128,64] -> float32[128,64]
