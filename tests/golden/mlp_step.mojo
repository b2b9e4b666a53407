# A training step: products are the pack's, all between them is fused with its reductions.
#
#     def mlp_step(parameters, x, labels):
#         def loss(parameters):
#             (w1, b1), (w2, b2) = parameters
#             logits = jnp.tanh(x @ w1 + b1) @ w2 + b2
#             chosen = jnp.take_along_axis(logits, labels[:, None], axis=1)
#             largest = lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True))
#             normalizer = largest + jnp.log(jnp.sum(jnp.exp(logits - largest), axis=1, keepdims=True))
#             return jnp.mean(normalizer - chosen)
#
#         value, gradient = maxjax.value_and_grad(loss)(parameters)
#         return value, maxjax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient)

def kernel_0_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: add, tanh

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
            var v1 = load[DType.float32, w](r1, i)
            var v2 = v0 + v1
            var v3 = Tanh.elementwise[DType.float32, w](v2)
            r2.unsafe_store(i, v3)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    launch(kernel_0_part, slots, args, 6)


def kernel_1_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: lt, add, select, ge, le, and, min, max, mul

    (int32[n], int32, int32, int32, int32[n], int32) -> (int32[n], int32[n])
    """
    var p0 = operand[DType.int32](slots, args, 0)
    var p1 = operand[DType.int32](slots, args, 1)
    var p2 = operand[DType.int32](slots, args, 2)
    var p3 = operand[DType.int32](slots, args, 3)
    var p4 = integer(args, 9)
    var p5 = operand[DType.int32](slots, args, 5)
    var p6 = operand[DType.int32](slots, args, 6)
    var p7 = operand[DType.int32](slots, args, 7)
    var n = integer(args, 18)
    var points = args.unsafe_offset(29)
    comptime W = simd_width_of[DType.int32]()
    var v0 = load[DType.int32, 1](p1, 0)
    var v1 = load[DType.int32, 1](p2, 0)
    var v2 = load[DType.int32, 1](p3, 0)
    var v3 = load[DType.int32, 1](p5, 0)
    var pieces = integer(args, 19)
    var walk = Walk[8](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r4 = p4 + walk.offsets[4]
        var r6 = p6.unsafe_offset(walk.offsets[6])
        var r7 = p7.unsafe_offset(walk.offsets[7])

        @always_inline
        def body[w: Int](i: Int) {var r0, var r4, var r6, var r7, var v0, var v1, var v2, var v3}:
            var v4 = load[DType.int32, w](r0, i)
            var v5 = v4.lt(SIMD[DType.int32, w](v0))
            var v6 = v4 + SIMD[DType.int32, w](v1)
            var v7 = v5.select(v6, v4)
            var v8 = v7.ge(SIMD[DType.int32, w](v0))
            var v9 = v7.le(SIMD[DType.int32, w](v2))
            var v10 = v8 & v9
            var v11 = Min.elementwise[DType.int32, w](v7, SIMD[DType.int32, w](v2))
            var v12 = Max.elementwise[DType.int32, w](v11, SIMD[DType.int32, w](v0))
            var v13 = ramp[DType.int32, w](r4 + i, 1)
            var v14 = v13 * SIMD[DType.int32, w](v1)
            var v15 = v12 + v14
            var v16 = v10.select(v15, SIMD[DType.int32, w](v3))
            r6.unsafe_store(i, v16)
            r7.unsafe_store(i, v15)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_1")
def kernel_1(slots: Slots, args: Args) abi("C"):
    launch(kernel_1_part, slots, args, 16)


def kernel_2_part(slots: Slots, args: Args, begin: Int, end: Int):
    """rows: log, add, lt, select, ge, le, and, sub, sum, mul

    (float32[n], float32[n], int32[n], int32, int32, int32, float32[n], float32,
    float32) -> (float32[1])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.int32](slots, args, 2)
    var p3 = operand[DType.int32](slots, args, 3)
    var p4 = operand[DType.int32](slots, args, 4)
    var p5 = operand[DType.int32](slots, args, 5)
    var p6 = operand[DType.float32](slots, args, 6)
    var p7 = operand[DType.float32](slots, args, 7)
    var p8 = operand[DType.float32](slots, args, 8)
    var p9 = operand[DType.float32](slots, args, 9)
    var n = integer(args, 22)
    var points = args.unsafe_offset(35)
    comptime W = 2 * simd_width_of[DType.float32]()
    var v0 = load[DType.int32, 1](p3, 0)
    var v1 = load[DType.int32, 1](p4, 0)
    var v2 = load[DType.int32, 1](p5, 0)
    var v3 = load[DType.float32, 1](p7, 0)
    var v4 = load[DType.float32, 1](p8, 0)
    var walk = Walk[10](points, begin)

    for _ in range(begin, end):
        var a5 = Lanes[Summing, DType.float32, W, units=1]()
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r1 = p1.unsafe_offset(walk.offsets[1])
        var r2 = p2.unsafe_offset(walk.offsets[2])
        var r6 = p6.unsafe_offset(walk.offsets[6])

        @always_inline
        def pass0[w: Int, unit: Int](i: Int) {
            var r0, var r1, var r2, var r6, var v0, var v1, var v2, var v3, mut a5
        }:
            var v6 = load[DType.float32, w](r0, i)
            var v7 = load[DType.float32, w](r1, i)
            var v8 = Log.elementwise[DType.float32, w](v7)
            var v9 = v6 + v8
            var v10 = load[DType.int32, w](r2, i)
            var v11 = v10.lt(SIMD[DType.int32, w](v0))
            var v12 = v10 + SIMD[DType.int32, w](v1)
            var v13 = v11.select(v12, v10)
            var v14 = v13.ge(SIMD[DType.int32, w](v0))
            var v15 = v13.le(SIMD[DType.int32, w](v2))
            var v16 = v14 & v15
            var v17 = load[DType.float32, w](r6, i)
            var v18 = v16.select(v17, SIMD[DType.float32, w](v3))
            var v19 = v9 - v18
            a5.take[w, unit](v19)

        sweep_units[W, units=1](pass0, 0, n)
        var v5 = a5.result().cast[DType.float32]()

        var v20 = v5 * v4
        p9.unsafe_store(walk.offsets[9], v20)
        walk.advance(points)


@export("kernel_2")
def kernel_2(slots: Slots, args: Args) abi("C"):
    launch(kernel_2_part, slots, args, 20)


def kernel_3_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: neg

    (float32) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var n = integer(args, 6)
    var points = args.unsafe_offset(11)
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p0, 0)
    var v1 = Neg.elementwise[DType.float32, 1](v0)
    var pieces = integer(args, 7)
    var walk = Walk[2](points, begin // pieces)

    for item in range(begin, end):
        var piece = item % pieces if pieces > 1 else 0
        var r1 = p1.unsafe_offset(walk.offsets[1])

        @always_inline
        def body[w: Int](i: Int) {var r1, var v1}:
            r1.unsafe_store(i, SIMD[DType.float32, w](v1))

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_3")
def kernel_3(slots: Slots, args: Args) abi("C"):
    launch(kernel_3_part, slots, args, 4)


def kernel_4_part(slots: Slots, args: Args, begin: Int, end: Int):
    """columns: div, mul, add, sum, sub

    (float32[n], float32, float32, float32[1], float32[n], float32[n]) -> (float32[n], float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var p4 = operand[DType.float32](slots, args, 4)
    var p5 = operand[DType.float32](slots, args, 5)
    var p6 = operand[DType.float32](slots, args, 6)
    var p7 = operand[DType.float32](slots, args, 7)
    var n = integer(args, 18)
    var points = args.unsafe_offset(29)
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var v1 = load[DType.float32, 1](p2, 0)
    var blocks = integer(args, 19)
    var rows = integer(args, 20)
    var row_args = points.unsafe_offset(1 + 9 * integer(points, 0))
    var walk = Walk[8](points, begin // blocks)
    var a2 = Columns[Summing, DType.float32](part_size(n, blocks))

    for item in range(begin, end):
        var first = part_begin(n, item % blocks, blocks)
        var last = part_begin(n, item % blocks + 1, blocks)
        a2.clear(last - first)
        var row = Walk[8](row_args)
        for _ in range(rows):
            var v3 = load[DType.float32, 1](p3, walk.offsets[3] + row.offsets[3])
            var v4 = v1 / v3
            var r4 = p4.unsafe_offset(walk.offsets[4] + row.offsets[4])
            var r5 = p5.unsafe_offset(walk.offsets[5] + row.offsets[5])
            var r7 = p7.unsafe_offset(walk.offsets[7] + row.offsets[7])
            var q2 = a2.partial()

            @always_inline
            def body[w: Int](i: Int) {var r4, var r5, var r7, var v4, var first, var q2}:
                var v5 = load[DType.float32, w](r4, i)
                var v6 = SIMD[DType.float32, w](v4) * v5
                var v7 = load[DType.float32, w](r5, i)
                var v8 = v6 + v7
                take_column[Summing](q2, i - first, v8)
                r7.unsafe_store(i, v8)

            sweep[W](body, first, last)
            row.advance(row_args)
            a2.count_rows(1)
        a2.finish()
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r6 = p6.unsafe_offset(walk.offsets[6])
        var q2 = a2.result()

        @always_inline
        def finish[w: Int](i: Int) {var r0, var r6, var v0, var first, var q2}:
            var v2 = rebind[SIMD[DType.float32, w]](q2.unsafe_load[width=w](i - first))
            var v9 = load[DType.float32, w](r0, i)
            var v10 = SIMD[DType.float32, w](v0) * v2
            var v11 = v9 - v10
            r6.unsafe_store(i, v11)

        sweep[W](finish, first, last)
        if item % blocks + 1 == blocks:
            walk.advance(points)
    a2.keep()


@export("kernel_4")
def kernel_4(slots: Slots, args: Args) abi("C"):
    launch(kernel_4_part, slots, args, 16)


def kernel_5_part(slots: Slots, args: Args, begin: Int, end: Int):
    """columns: add, sub, mul, sum

    (float32[n], float32, float32[n], float32, float32[n]) -> (float32[n], float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var p4 = operand[DType.float32](slots, args, 4)
    var p5 = operand[DType.float32](slots, args, 5)
    var p6 = operand[DType.float32](slots, args, 6)
    var n = integer(args, 16)
    var points = args.unsafe_offset(26)
    comptime W = simd_width_of[DType.float32]()
    var v0 = load[DType.float32, 1](p1, 0)
    var v1 = load[DType.float32, 1](p3, 0)
    var blocks = integer(args, 17)
    var rows = integer(args, 18)
    var row_args = points.unsafe_offset(1 + 8 * integer(points, 0))
    var walk = Walk[7](points, begin // blocks)
    var a2 = Columns[Summing, DType.float32](part_size(n, blocks))

    for item in range(begin, end):
        var first = part_begin(n, item % blocks, blocks)
        var last = part_begin(n, item % blocks + 1, blocks)
        a2.clear(last - first)
        var row = Walk[7](row_args)
        var done = 0
        var is_line = integer(row_args, 0) == 1
        var d2 = Walk[7].stride(row_args, 2, 0) if is_line else 0
        var d4 = Walk[7].stride(row_args, 4, 0) if is_line else 0
        var d6 = Walk[7].stride(row_args, 6, 0) if is_line else 0
        while done < rows:
            var r2 = p2.unsafe_offset(walk.offsets[2] + row.offsets[2])
            var r4 = p4.unsafe_offset(walk.offsets[4] + row.offsets[4])
            var r6 = p6.unsafe_offset(walk.offsets[6] + row.offsets[6])
            var q2 = a2.partial()

            @always_inline
            def body[w: Int, units: Int](i: Int) {
                var r2, var r4, var r6, var v1, var first, var d2, var d4, var d6, var q2
            }:
                var b2 = SIMD[DType.float32, w](Summing.identity[DType.float32]())
                comptime for unit in range(units):
                    var v3 = load[DType.float32, w](r2.unsafe_offset(unit * d2), i)
                    var v4 = load[DType.float32, w](r4.unsafe_offset(unit * d4), i)
                    var v5 = SIMD[DType.float32, w](v1) + v4
                    var v6 = SIMD[DType.float32, w](v1) - v4
                    var v7 = v5 * v6
                    var v8 = v3 * v7
                    b2 = Summing.combine[DType.float32, w](b2, v8)
                    r6.unsafe_offset(unit * d6).unsafe_store(i, v8)
                take_column[Summing](q2, i - first, b2)

            var count = UNITS if is_line and done + UNITS <= rows else 1
            sweep_rows[W](body, first, last, count)
            row.skip(row_args, count)
            done += count
            a2.count_rows(count)
        a2.finish()
        var r0 = p0.unsafe_offset(walk.offsets[0])
        var r5 = p5.unsafe_offset(walk.offsets[5])
        var q2 = a2.result()

        @always_inline
        def finish[w: Int](i: Int) {var r0, var r5, var v0, var first, var q2}:
            var v2 = rebind[SIMD[DType.float32, w]](q2.unsafe_load[width=w](i - first))
            var v9 = load[DType.float32, w](r0, i)
            var v10 = SIMD[DType.float32, w](v0) * v2
            var v11 = v9 - v10
            r5.unsafe_store(i, v11)

        sweep[W](finish, first, last)
        if item % blocks + 1 == blocks:
            walk.advance(points)
    a2.keep()


@export("kernel_5")
def kernel_5(slots: Slots, args: Args) abi("C"):
    launch(kernel_5_part, slots, args, 14)


def kernel_6_part(slots: Slots, args: Args, begin: Int, end: Int):
    """map: mul, sub

    (float32[n], float32, float32[n]) -> (float32[n])
    """
    var p0 = operand[DType.float32](slots, args, 0)
    var p1 = operand[DType.float32](slots, args, 1)
    var p2 = operand[DType.float32](slots, args, 2)
    var p3 = operand[DType.float32](slots, args, 3)
    var n = integer(args, 10)
    var points = args.unsafe_offset(17)
    comptime W = simd_width_of[DType.float32]()
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
            var v2 = load[DType.float32, w](r2, i)
            var v3 = SIMD[DType.float32, w](v0) * v2
            var v4 = v1 - v3
            r3.unsafe_store(i, v4)

        sweep[W](body, part_begin(n, piece, pieces), part_begin(n, piece + 1, pieces))
        if piece + 1 == pieces:
            walk.advance(points)


@export("kernel_6")
def kernel_6(slots: Slots, args: Args) abi("C"):
    launch(kernel_6_part, slots, args, 8)


calls:
  matmul_float32: float32[128,32], float32[32,64] -> float32[128,64]
  kernel_0: float32[128,64], float32[64] -> float32[128,64]
  matmul_float32: float32[128,64], float32[64,10] -> float32[128,10]
  vector_machine: float32[128,10], float32[10] -> float32[128], float32[128,10], float32[128],
      float32[128,10]
  kernel_1: int32[128], int32[], int32[], int32[], int32[128], int32[] -> int32[128], int32[128,1]
  gather_rows_32: float32[1,1280,1], int32[128] -> float32[1,128,1]
  kernel_2: float32[128], float32[128], int32[128], int32[], int32[], int32[], float32[1,128,1],
      float32[], float32[] -> float32[]
  copy_32: float32[1280,1], strides [0,0] to [1,1]
  kernel_3: float32[] -> float32[128,1]
  scatter_rows_add_float32: float32[1280,1], int32[128], float32[128,1] -> float32[1280,1]
  kernel_4: float32[10], float32[], float32[], float32[128], float32[128,10], float32[1280,1] ->
      float32[10], float32[128,10]
  matmul_float32: float32[128,10], float32[10,64] -> float32[128,64]
  kernel_5: float32[64], float32[], float32[128,64], float32[], float32[128,64] -> float32[64],
      float32[128,64]
  matmul_float32: float32[32,128], float32[128,64] -> float32[32,64]
  kernel_6: float32[32,64], float32[], float32[32,64] -> float32[32,64]
  matmul_float32: float32[64,128], float32[128,10] -> float32[64,10]
  kernel_6: float32[64,10], float32[], float32[64,10] -> float32[64,10]
