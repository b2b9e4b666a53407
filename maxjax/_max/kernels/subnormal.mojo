"""What the processor does with subnormal numbers: it computes with them, in a hundred times the time
that others take, or takes them for 0.

XLA's programs take them for 0, operands and results alike, and so do ours while they run. A thread
that runs one changes its mode, and is given back as it was.
"""
from std.sys import llvm_intrinsic
from std.sys.info import CompilationTarget

# The bits of x86's MXCSR for results and operands; AArch64's FPCR has one for both.
comptime TAKEN_FOR_0 = 0x8040 if CompilationTarget.is_x86() else 1 << 24


@always_inline
def floating_mode() -> Int:
    """The calling thread's."""
    comptime if CompilationTarget.is_x86():
        var word = UInt32(0)
        llvm_intrinsic["llvm.x86.sse.stmxcsr", NoneType](Pointer(to=word))
        return Int(word)
    else:
        return Int(llvm_intrinsic["llvm.aarch64.get.fpcr", Int64]())


@always_inline
def set_floating_mode(mode: Int):
    comptime if CompilationTarget.is_x86():
        var word = UInt32(mode)
        llvm_intrinsic["llvm.x86.sse.ldmxcsr", NoneType](Pointer(to=word))
    else:
        llvm_intrinsic["llvm.aarch64.set.fpcr", NoneType](Int64(mode))
