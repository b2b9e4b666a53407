# The sum is computed by pieces, each of which is written into the padded result.
#
#     def windows(x, y, z):
#         return jnp.pad(jnp.concatenate([jnp.sin(x), y], axis=1) + z, ((1, 1), (0, 2)))

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: sin, add

    (float32[n], float32[n]) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var n = integer(args, 8)
    var points = args.unsafe_offset(14)
    comptime W = 2 * simd_width_of[DType.float32]()
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
            var v1 = Sin.elementwise[DType.float32, w](v0)
            var v2 = load[DType.float32, w](r1, i)
            var v3 = v1 + v2
            r2.unsafe_store(i, v3)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 6)


def kernel_1_part(slots: Slots, args: Args, begin: Int, end: Int):
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


@export("kernel_1")
def kernel_1(slots: Slots, args: Args) abi("C"):
    launch(kernel_1_part, slots, args, 6)


calls:
  fill_32: float32[66,162]
  kernel_0: float32[64,128], float32[64,160] -> float32[66,162]
  kernel_1: float32[64,32], float32[64,160] -> float32[66,162]
