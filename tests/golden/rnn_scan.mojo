# The loop is a step of the tape; its kernel writes the state twice, as carry and as output.
#
#     def rnn_scan(recurrent, weights, sequence, state):
#         def cell(state, x):
#             state = jnp.tanh(x @ weights + state @ recurrent)
#             return state, state
#         return lax.scan(cell, state, sequence)

@always_inline
def kernel_0_0(p0: Pointer[Scalar[DType.float32], MutAnyOrigin], p1: Pointer[Scalar[DType.float32], MutAnyOrigin], p2: Pointer[Scalar[DType.float32], MutAnyOrigin], p3: Pointer[Scalar[DType.float32], MutAnyOrigin]):
    """Of float32."""
    comptime W = 2 * simd_width_of[DType.float32]()
    var r0 = p0.unsafe_offset(0)
    var r1 = p1.unsafe_offset(0)
    var r2 = p2.unsafe_offset(0)
    var r3 = p3.unsafe_offset(0)
    @always_inline
    def body[w: Int](i: Int) {var r0, var r1, var r2, var r3}:
        var v0 = load[DType.float32, w](r0, i)
        var v1 = load[DType.float32, w](r1, i)
        var v2 = v0 + v1
        var v3 = Tanh.elementwise[DType.float32, w](v2)
        r2.unsafe_store(i, v3)
        r3.unsafe_store(i, v3)
    sweep_fixed[W, 256](body)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    """A loop on the tape: 2 of 3 calls written here."""
    comptime Function = def (Slots, Args) abi("C") thin -> None
    var ns2 = integer(args, 4)
    var s2 = slots.unsafe_offset(ns2)[]
    var ns3 = integer(args, 5)
    var s3 = slots.unsafe_offset(ns3)[]
    var ns4 = integer(args, 8)
    var s4 = slots.unsafe_offset(ns4)[]
    var ns5 = integer(args, 9)
    var s5 = slots.unsafe_offset(ns5)[]
    var tape6 = args.unsafe_offset(15).unsafe_bitcast[Args]()[]
    var ns7 = integer(tape6.unsafe_offset(2), 2)
    var s7 = slots.unsafe_offset(ns7)[]
    var ns8 = integer(tape6.unsafe_offset(44), 2)
    var s8 = slots.unsafe_offset(ns8)[]
    var ns9 = integer(args, 13)
    var s9 = slots.unsafe_offset(ns9)[]
    for step_i1 in range(integer(args, 0)):
        var i1 = step_i1
        s2 = s3.unsafe_offset(0 + i1 * 512)
        slots.unsafe_offset(ns2)[] = s2
        s4 = s5.unsafe_offset(0 + i1 * 1024)
        slots.unsafe_offset(ns4)[] = s4
        products_fixed[DType.float32, 1, 8, 32, 16, 0, 16, 1, 0, 32, 1, 256](s2.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), s7.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), s4.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]())
        tape6.unsafe_offset(21).unsafe_bitcast[Function]()[](slots, tape6.unsafe_offset(23))
        kernel_0_0(s4.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), s8.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), s4.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]](), s8.unsafe_offset(0).unsafe_bitcast[Scalar[DType.float32]]())
        var held10 = s9
        s9 = s8
        slots.unsafe_offset(ns9)[] = s9
        s8 = held10
        slots.unsafe_offset(ns8)[] = s8


calls:
  tape_copy_bytes: 1024 bytes
  tape_scan: sets 3 slots
  kernel_0: 20 times
    matmul_float32: float32[8,16], float32[16,32] -> float32[8,32]
    matmul_float32: float32[8,32], float32[32,32] -> float32[8,32]
    vector_machine: float32[8,32], float32[8,32] -> float32[8,32], float32[8,32]
