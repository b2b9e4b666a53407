# One kernel: slices, the stack and the branches are variables; the machine's code is behind
# it.
#
#     def loop_over_few_elements(state, forces):
#         def body(state, force):
#             x, y, z = state
#             x = lax.cond(x > y, lambda x: x * 0.5, lambda x: x + force, x)
#             return jnp.stack([y, z * x, x - y]), x
#         return lax.scan(body, state, forces)

@export("kernel_0")
def kernel_0(slots: Slots, args: Args) abi("C"):
    """loop: gt, convert, add, mul, sub
    """
    var frame = Frame(slots, args)
    var r13 = 0
    var r0_0 = Scalar[DType.float32](0)
    var r0_1 = r0_0
    var r0_2 = r0_0
    var r8 = r0_0
    var r3 = r0_0
    var r4 = Scalar[DType.bool](0)
    var r5 = Scalar[DType.int32](0)
    var r6 = r0_0
    var r12_0 = r0_0
    var r12_1 = r0_0
    var r12_2 = r0_0
    r0_0 = at(frame.address(1).unsafe_bitcast[Scalar[DType.float32]](), 0)
    r0_1 = at(frame.address(1).unsafe_bitcast[Scalar[DType.float32]](), 1)
    r0_2 = at(frame.address(1).unsafe_bitcast[Scalar[DType.float32]](), 2)
    var r1 = frame.address(2).unsafe_offset(frame.integer(12))
    var r2 = frame.address(3).unsafe_offset(frame.integer(13))
    r8 = at(frame.address(4).unsafe_bitcast[Scalar[DType.float32]](), 0)
    r13 = frame.integer(14)
    while r13 > 0:
        r3 = at(r1.unsafe_bitcast[Scalar[DType.float32]](), 0)
        r1 = r1.unsafe_offset(4)
        r4 = r0_0.gt(r0_1)
        r5 = Convert.elementwise[DType.bool, DType.int32, 1](r4)
        if r5 <= 0:
            r6 = r0_0 + r3
        else:
            r6 = r0_0 * r8
        r12_1 = r0_2 * r6
        r12_2 = r6 - r0_1
        r12_0 = r0_1
        r2.unsafe_bitcast[Scalar[DType.float32]]().unsafe_store(0, r6)
        r2 = r2.unsafe_offset(4)
        r0_0 = r12_0
        r0_1 = r12_1
        r0_2 = r12_2
        r13 -= 1
    frame.address(5).unsafe_bitcast[Scalar[DType.float32]]().unsafe_store(0, r0_0)
    frame.address(5).unsafe_bitcast[Scalar[DType.float32]]().unsafe_store(1, r0_1)
    frame.address(5).unsafe_bitcast[Scalar[DType.float32]]().unsafe_store(2, r0_2)


calls:
  kernel_0: a loop over few elements
