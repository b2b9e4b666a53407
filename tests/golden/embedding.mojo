# Indices are wrapped and clipped, rows gathered by the pack, positions added.
#
#     def embedding(table, tokens, positions):
#         return table[tokens] + positions

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: lt, add, select, min, max

    (int32[n], int32, int32, int32) -> (int32[n])
    """
    var p0 = operand[DType.int32](slots, args, 0)
    var p1 = operand[DType.int32](slots, args, 1)
    var p2 = operand[DType.int32](slots, args, 2)
    var p3 = operand[DType.int32](slots, args, 3)
    var p4 = operand[DType.int32](slots, args, 4)
    var n = integer(args, 12)
    var points = args.unsafe_offset(20)
    comptime W = simd_width_of[DType.int32]()
    var v0 = load[DType.int32, 1](p1, 0)
    var v1 = load[DType.int32, 1](p2, 0)
    var v2 = load[DType.int32, 1](p3, 0)
    var pieces = integer(args, 13)
    var walk = Walk[5](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r4 = p4.unsafe_offset(walk.offsets[4])

        @always_inline
        def body[w: Int](i: Int) {var r0, var r4, var v0, var v1, var v2}:
            var v3 = load[DType.int32, w](r0, i)
            var v4 = v3.lt(SIMD[DType.int32, w](v0))
            var v5 = v3 + SIMD[DType.int32, w](v1)
            var v6 = v4.select(v5, v3)
            var v7 = Min.elementwise[DType.int32, w](v6, SIMD[DType.int32, w](v2))
            var v8 = Max.elementwise[DType.int32, w](v7, SIMD[DType.int32, w](v0))
            r4.unsafe_store(i, v8)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 10)


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
  kernel_0: int32[8,20], int32[], int32[], int32[] -> int32[8,20]
  gather_rows_32: float32[1,1000,64], int32[160] -> float32[1,160,64]
  kernel_1: float32[1,160,64], float32[20,64] -> float32[8,20,64]
