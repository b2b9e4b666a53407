# Three results of one pass; the scalars of the step are computed before it.
#
#     def adam(parameter, gradient, first, second, step):
#         first = 0.9 * first + 0.1 * gradient
#         second = 0.999 * second + 0.001 * gradient * gradient
#         count = (step + 1).astype(jnp.float32)
#         rate = 1e-3 * jnp.sqrt(1 - 0.999 ** count) / (1 - 0.9 ** count)
#         return parameter - rate * first / (jnp.sqrt(second) + 1e-8), first, second

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: add, convert, pow, sub, sqrt, mul, div

    (float32[n], float32, float32, float32, int32, int32, float32, float32[n], float32, float32[n],
    float32[n], float32) -> (float32[n], float32[n], float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var p4 = operand[DType.int32](slots, args, 4)
    var p5 = operand[DType.int32](slots, args, 5)
    var p6 = operand[DType.float32](slots, args, 6)
    var p7 = operand[DType.float32](slots, args, 7)
    var p8 = operand[DType.float32](slots, args, 8)
    var p9 = operand[DType.float32](slots, args, 9)
    var p10 = operand[DType.float32](slots, args, 10)
    var p11 = operand[DType.float32](slots, args, 11)
    var p12 = operand[DType.float32](slots, args, 12)
    var p13 = operand[DType.float32](slots, args, 13)
    var p14 = operand[DType.float32](slots, args, 14)
    var n = integer(args, 32)
    var points = args.unsafe_offset(50)
    comptime W = 2 * simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var v1 = load[DType.float32, 1](p2, 0)
    var v2 = load[DType.float32, 1](p3, 0)
    var v3 = load[DType.int32, 1](p4, 0)
    var v4 = load[DType.int32, 1](p5, 0)
    var v5 = v3 + v4
    var v6 = v5.cast[DType.float32]()
    var v7 = Pow.elementwise[DType.float32, 1](v2, v6)
    var v8 = v1 - v7
    var v9 = Sqrt.elementwise[DType.float32, 1](v8)
    var v10 = v0 * v9
    var v11 = load[DType.float32, 1](p6, 0)
    var v12 = Pow.elementwise[DType.float32, 1](v11, v6)
    var v13 = v1 - v12
    var v14 = v10 / v13
    var v15 = load[DType.float32, 1](p8, 0)
    var v16 = load[DType.float32, 1](p11, 0)
    var pieces = integer(args, 33)
    var walk = Walk[15](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r7 = p7.unsafe_offset(walk.offsets[7])
        var r9 = p9.unsafe_offset(walk.offsets[9])
        var r10 = p10.unsafe_offset(walk.offsets[10])
        var r12 = p12.unsafe_offset(walk.offsets[12])
        var r13 = p13.unsafe_offset(walk.offsets[13])
        var r14 = p14.unsafe_offset(walk.offsets[14])

        @always_inline
        def body[w: Int](i: Int) {
            var r0, var r7, var r9, var r10, var r12, var r13, var r14, var v0, var v2, var v11,
            var v14, var v15, var v16
        }:
            var v17 = load[DType.float32, w](r0, i)
            var v18 = load[DType.float32, w](r7, i)
            var v19 = SIMD[DType.float32, w](v11) * v18
            var v20 = load[DType.float32, w](r9, i)
            var v21 = SIMD[DType.float32, w](v15) * v20
            var v22 = v19 + v21
            var v23 = SIMD[DType.float32, w](v14) * v22
            var v24 = load[DType.float32, w](r10, i)
            var v25 = SIMD[DType.float32, w](v2) * v24
            var v26 = SIMD[DType.float32, w](v0) * v20
            var v27 = v26 * v20
            var v28 = v25 + v27
            var v29 = Sqrt.elementwise[DType.float32, w](v28)
            var v30 = v29 + SIMD[DType.float32, w](v16)
            var v31 = v23 / v30
            var v32 = v17 - v31
            r12.unsafe_store(i, v32)
            r13.unsafe_store(i, v28)
            r14.unsafe_store(i, v22)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 30)


calls:
  kernel_0: float32[64,128], float32[], float32[], float32[], int32[], int32[], float32[],
      float32[64,128], float32[], float32[64,128], float32[64,128], float32[] -> float32[64,128],
      float32[64,128], float32[64,128], 2 threads
