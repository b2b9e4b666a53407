"""Elementwise functions that NumPy has no vector code for, of arrays without gaps.

`<name>_float32`: x, out | count, threads
"""
from extensibility import ElementwiseUnaryOp
from std.sys.info import simd_width_of

from kernels.calling import Args, Slots, integer, operand
from kernels.crew import Tasks, spread
from kernels.reduction import Array, Held, chunk_begin, held, task_count
from kernels.unary import (
    Acosh,
    Asinh,
    Atanh,
    Cosh,
    Digamma,
    Erf,
    Erfc,
    Exp2,
    Expm1,
    Lgamma,
    Log1p,
    Logistic,
    Sinh,
    Tan,
)


@fieldwise_init
struct Range[Op: ElementwiseUnaryOp, dtype: DType](Tasks):
    """The tasks of apply."""

    var x: Held[Self.dtype]
    var result: Held[Self.dtype]
    var count: Int
    var tasks: Int

    def run(self, task: Int):
        comptime width = 2 * simd_width_of[Self.dtype]()  # two hide each other's latency
        var i = chunk_begin(task, self.tasks, self.count)
        var end = chunk_begin(task + 1, self.tasks, self.count)
        while i + width <= end:
            var x = self.x.unsafe_load[width=width](i)
            self.result.unsafe_store(i, Self.Op.elementwise[Self.dtype, width](x))
            i += width
        while i < end:
            var x = self.x.unsafe_load[width=1](i)
            self.result.unsafe_store(i, Self.Op.elementwise[Self.dtype, 1](x))
            i += 1


@always_inline
def apply[Op: ElementwiseUnaryOp](slots: Slots, args: Args):
    comptime dtype = DType.float32
    var count = integer(args, 4)
    var tasks = task_count(count, 8 * count, integer(args, 5))
    spread(
        Range[Op, dtype](
            held(operand[dtype](slots, args, 0)), held(operand[dtype](slots, args, 1)), count, tasks
        ),
        tasks,
    )


@export("acosh_float32")
def acosh_float32(slots: Slots, args: Args) abi("C"):
    apply[Acosh](slots, args)


@export("asinh_float32")
def asinh_float32(slots: Slots, args: Args) abi("C"):
    apply[Asinh](slots, args)


@export("atanh_float32")
def atanh_float32(slots: Slots, args: Args) abi("C"):
    apply[Atanh](slots, args)


@export("cosh_float32")
def cosh_float32(slots: Slots, args: Args) abi("C"):
    apply[Cosh](slots, args)


@export("digamma_float32")
def digamma_float32(slots: Slots, args: Args) abi("C"):
    apply[Digamma](slots, args)


@export("erf_float32")
def erf_float32(slots: Slots, args: Args) abi("C"):
    apply[Erf](slots, args)


@export("erfc_float32")
def erfc_float32(slots: Slots, args: Args) abi("C"):
    apply[Erfc](slots, args)


@export("exp2_float32")
def exp2_float32(slots: Slots, args: Args) abi("C"):
    apply[Exp2](slots, args)


@export("expm1_float32")
def expm1_float32(slots: Slots, args: Args) abi("C"):
    apply[Expm1](slots, args)


@export("lgamma_float32")
def lgamma_float32(slots: Slots, args: Args) abi("C"):
    apply[Lgamma](slots, args)


@export("log1p_float32")
def log1p_float32(slots: Slots, args: Args) abi("C"):
    apply[Log1p](slots, args)


@export("logistic_float32")
def logistic_float32(slots: Slots, args: Args) abi("C"):
    apply[Logistic](slots, args)


@export("sinh_float32")
def sinh_float32(slots: Slots, args: Args) abi("C"):
    apply[Sinh](slots, args)


@export("tan_float32")
def tan_float32(slots: Slots, args: Args) abi("C"):
    apply[Tan](slots, args)
