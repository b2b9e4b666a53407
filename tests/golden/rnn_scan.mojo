# The loop is a step of the tape; its kernel writes the state twice, as carry and as output.
#
#     def rnn_scan(recurrent, weights, sequence, state):
#         def cell(state, x):
#             state = jnp.tanh(x @ weights + state @ recurrent)
#             return state, state
#         return lax.scan(cell, state, sequence)

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: add, tanh

    (float32[n], float32[n]) -> (float32[n], float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var n = integer(args, 10)
    var points = args.unsafe_offset(17)
    comptime W = 2 * simd_width_of[DType.float32]()
    var pieces = integer(args, 11)
    var walk = Walk[4](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r1 = p1.unsafe_offset(walk.offsets[1])
        var r2 = p2.unsafe_offset(walk.offsets[2])
        var r3 = p3.unsafe_offset(walk.offsets[3])

        @always_inline
        def body[w: Int](i: Int) {var r0, var r1, var r2, var r3}:
            var v0 = load[DType.float32, w](r0, i)
            var v1 = load[DType.float32, w](r1, i)
            var v2 = v0 + v1
            var v3 = Tanh.elementwise[DType.float32, w](v2)
            r2.unsafe_store(i, v3)
            r3.unsafe_store(i, v3)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 8)


calls:
  tape_copy_bytes: 1024 bytes
  tape_scan: sets 3 slots
  tape_scan: 20 times
    matmul_float32: float32[8,16], float32[16,32] -> float32[8,32]
    matmul_float32: float32[8,32], float32[32,32] -> float32[8,32]
    kernel_0: float32[8,32], float32[8,32] -> float32[8,32], float32[8,32]
