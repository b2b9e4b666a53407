"""What every file has without importing it."""
from std.builtin.traits import (
    AnyType,
    Copyable,
    Deinitable,
    ImplicitlyCopyable,
    Movable,
    RegisterPassable,
    TrivialRegisterPassable,
)
from std.builtin.bool import Bool
from std.builtin.literals import FloatLiteral, IntLiteral, NoneType, StaticString, StringLiteral
from std.builtin.int import Int, SIMDLength
from std.builtin.dtype import DType
from std.builtin.origins import (
    ImmOrigin,
    ImmStaticOrigin,
    ImmutAnyOrigin,
    MutAnyOrigin,
    MutOrigin,
    MutUntrackedOrigin,
    Origin,
    StaticConstantOrigin,
)
from std.builtin.simd import (
    SIMD,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Scalar,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    UInt128,
)
from std.builtin.range import StopIteration, range
from std.builtin.rebind import rebind
from std.builtin.values import abs, max, min, swap
from std.builtin.variadics import VariadicList
from std.collections import Array, List, Span, len
from std.memory import Pointer
