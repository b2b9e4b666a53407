"""The machine that is compiled for."""
from std.sys.defines import is_defined
from std.sys.intrinsics import inlined_assembly, llvm_intrinsic
