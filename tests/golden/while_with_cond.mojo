# The condition, the body and its branches are steps of the tape: no way back to Python.
#
#     def while_with_cond(x):
#         def body(state):
#             count, x = state
#             return count + 1, lax.cond(count % 2 == 0, lambda x: x * 3 + 1, lambda x: x / 2, x)
#         return lax.while_loop(lambda state: jnp.sum(state[1]) < 1000, body, (0, x))

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """rows: sum, lt

    (float32[n], float32) -> (bool[1])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.uint8](slots, args, 2)
    var n = integer(args, 8)
    var points = args.unsafe_offset(14)
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var walk = Walk[3](points, begin)

    for _ in range(begin, end):
        var a1 = Lanes[Summing, DType.float32, W]()
        var r0 = p0.unsafe_offset(walk.offsets[0])

        @always_inline
        def pass0[w: Int, unit: Int](i: Int) {var r0, mut a1}:
            var v2 = load[DType.float32, w](r0, i)
            a1.take[w, unit](v2)

        sweep_units[W](pass0, 0, n)
        var v1 = a1.result().cast[DType.float32]()

        var v3 = Lt.elementwise[DType.float32, 1](v1, v0)
        store_bool(p2, walk.offsets[2], v3)
        walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 6)


@export("kernel_1")
def kernel_1(slots: Slots, args: Args) abi("C"):
    """map: rem, lt, ne, and, add, select, eq, convert

    (int32, int32, int32, bool, int32) -> (int32[1], int32[1])
    """
    var p0 = operand[DType.int32](slots, args, 0)
    var p1 = operand[DType.int32](slots, args, 1)
    var p2 = operand[DType.int32](slots, args, 2)
    var p3 = operand[DType.uint8](slots, args, 3)
    var p4 = operand[DType.int32](slots, args, 4)
    var p5 = operand[DType.int32](slots, args, 5)
    var p6 = operand[DType.int32](slots, args, 6)

    var v0 = load[DType.int32, 1](p0, 0)
    var v1 = load[DType.int32, 1](p1, 0)
    var v2 = Rem.elementwise[DType.int32, 1](v0, v1)
    var v3 = load[DType.int32, 1](p2, 0)
    var v4 = Lt.elementwise[DType.int32, 1](v2, v3)
    var v5 = load_bool[1](p3, 0)
    var v6 = Ne.elementwise[DType.bool, 1](v4, v5)
    var v7 = Ne.elementwise[DType.int32, 1](v2, v3)
    var v8 = v6 & v7
    var v9 = v2 + v1
    var v10 = v8.select(v9, v2)
    var v11 = Eq.elementwise[DType.int32, 1](v10, v3)
    var v12 = Convert.elementwise[DType.bool, DType.int32, 1](v11)
    var v13 = load[DType.int32, 1](p4, 0)
    var v14 = v0 + v13
    p5.unsafe_store(0, v12)
    p6.unsafe_store(0, v14)


def kernel_2_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: div

    (float32[n], float32) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var n = integer(args, 8)
    var points = args.unsafe_offset(14)
    comptime W = 2 * simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var pieces = integer(args, 9)
    var walk = Walk[3](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r2 = p2.unsafe_offset(walk.offsets[2])

        @always_inline
        def body[w: Int](i: Int) {var r0, var r2, var v0}:
            var v1 = load[DType.float32, w](r0, i)
            var v2 = v1 / SIMD[DType.float32, w](v0)
            r2.unsafe_store(i, v2)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_2")
def kernel_2(slots: Slots, args: Args) abi("C"):
    launch(kernel_2_part, slots, args, 6)


def kernel_3_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: mul, add

    (float32[n], float32, float32) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var n = integer(args, 10)
    var points = args.unsafe_offset(17)
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var v1 = load[DType.float32, 1](p2, 0)
    var pieces = integer(args, 11)
    var walk = Walk[4](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r3 = p3.unsafe_offset(walk.offsets[3])

        @always_inline
        def body[w: Int](i: Int) {var r0, var r3, var v0, var v1}:
            var v2 = load[DType.float32, w](r0, i)
            var v3 = v2 * SIMD[DType.float32, w](v0)
            var v4 = v3 + SIMD[DType.float32, w](v1)
            r3.unsafe_store(i, v4)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_3")
def kernel_3(slots: Slots, args: Args) abi("C"):
    launch(kernel_3_part, slots, args, 8)


calls:
  tape_copy_bytes: 4 bytes
  tape_copy_bytes: 800 bytes
  tape_scan: sets 7 slots
  tape_while
    (condition)
    kernel_0: float32[200], float32[] -> bool[]
    (body)
    kernel_1: int32[], int32[], int32[], bool[], int32[] -> int32[], int32[]
    tape_scan: sets 2 slots
    tape_switch
      (branch 0)
      kernel_2: float32[200], float32[] -> float32[200]
      (branch 1)
      kernel_3: float32[200], float32[], float32[] -> float32[200]
  tape_copy_bytes: 4 bytes
  tape_copy_bytes: 800 bytes
