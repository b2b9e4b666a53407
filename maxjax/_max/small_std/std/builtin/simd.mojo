"""Vectors of numbers."""
from std.builtin.int import Intable
from std.sys.info import bit_width_of
from std.sys.intrinsics import llvm_intrinsic

comptime Scalar[dtype: DType] = SIMD[dtype, 1]
comptime Int8 = Scalar[DType.int8]
comptime Int16 = Scalar[DType.int16]
comptime Int32 = Scalar[DType.int32]
comptime Int64 = Scalar[DType.int64]
comptime UInt8 = Scalar[DType.uint8]
comptime UInt16 = Scalar[DType.uint16]
comptime UInt32 = Scalar[DType.uint32]
comptime UInt64 = Scalar[DType.uint64]
comptime UInt128 = Scalar[DType.uint128]
comptime Float16 = Scalar[DType.float16]
comptime Float32 = Scalar[DType.float32]
comptime Float64 = Scalar[DType.float64]


struct SIMD[dtype: DType, length: Int](Intable, TrivialRegisterPassable):
    comptime _mlir_type = __mlir_type[
        `!kgen.simd<`, Self.length._mlir_value, `, `, Self.dtype._mlir_value, `>`
    ]
    comptime _Mask = SIMD[DType.bool, Self.length]
    comptime MAX = Self(_largest[Self.dtype]())
    comptime MIN = Self(_smallest[Self.dtype]())
    var _mlir_value: Self._mlir_type

    # --- made from ---
    @always_inline("builtin")
    def __init__(out self):
        self = Self(0)

    @always_inline("builtin")
    def __init__(out self, *, mlir_value: Self._mlir_type):
        self._mlir_value = mlir_value

    @always_inline("builtin")
    @implicit
    def __init__(out self, value: IntLiteral, /):
        self._mlir_value = __mlir_attr[
            `#pop.int_literal_convert<`, value.value, `> : `, Self._mlir_type
        ]

    @always_inline("builtin")
    @implicit
    def __init__(out self, value: FloatLiteral, /):
        self._mlir_value = __mlir_attr[
            `#pop.float_literal_convert<`, value.value, `> : `, Self._mlir_type
        ]

    @always_inline("builtin")
    @implicit
    def __init__(out self, value: Int, /):
        self._mlir_value = __mlir_op.`pop.simd.splat`[_type=Self._mlir_type](
            __mlir_op.`pop.cast`[_type=Scalar[Self.dtype]._mlir_type](
                __mlir_op.`pop.cast_from_builtin`[_type=__mlir_type.`!kgen.scalar<index>`](
                    value._mlir_value
                )
            )
        )

    @always_inline("builtin")
    @implicit
    def __init__(out self, value: Scalar[Self.dtype], /):
        self._mlir_value = __mlir_op.`pop.simd.splat`[_type=Self._mlir_type](value._mlir_value)

    @always_inline("nodebug")
    @implicit
    def __init__(out self: SIMD[DType.bool, Self.length], value: Bool, /):
        self = SIMD[DType.bool, Self.length](fill=value)

    @always_inline("nodebug")
    def __init__(out self: SIMD[DType.bool, Self.length], *, fill: Bool):
        self._mlir_value = __mlir_op.`pop.simd.splat`[_type=Self._Mask._mlir_type](
            fill._mlir_value
        )

    @always_inline("nodebug")
    def __init__[other: DType, //](out self, value: SIMD[other, Self.length], /):
        self = value.cast[Self.dtype]()

    @always_inline("nodebug")
    def __init__[integer: DType, //](out self, *, from_bits: SIMD[integer, Self.length]):
        self = Self(mlir_value=__mlir_op.`pop.bitcast`[_type=Self._mlir_type](from_bits._mlir_value))

    # --- elements ---
    @always_inline("nodebug")
    def __getitem__(self, lane: Int) -> Scalar[Self.dtype]:
        return Scalar[Self.dtype](
            mlir_value=__mlir_op.`pop.simd.extractelement`(self._mlir_value, lane._mlir_value)
        )

    @always_inline("nodebug")
    def __setitem__(mut self, lane: Int, value: Scalar[Self.dtype]):
        self._mlir_value = __mlir_op.`pop.simd.insertelement`(
            self._mlir_value, value._mlir_value, lane._mlir_value
        )

    @always_inline("nodebug")
    def slice[width: Int, /, *, offset: Int = 0](self) -> SIMD[Self.dtype, width]:
        var result = SIMD[Self.dtype, width]()
        comptime for lane in range(width):
            result[lane] = self[lane + offset]
        return result

    @always_inline("nodebug")
    def reversed(self) -> Self:
        var result = Self()
        comptime for lane in range(Self.length):
            result[lane] = self[Self.length - 1 - lane]
        return result

    @always_inline("nodebug")
    def join(self, other: Self) -> SIMD[Self.dtype, 2 * Self.length]:
        var result = SIMD[Self.dtype, 2 * Self.length]()
        comptime for lane in range(Self.length):
            result[lane] = self[lane]
            result[lane + Self.length] = other[lane]
        return result

    @always_inline("nodebug")
    def interleave(self, other: Self) -> SIMD[Self.dtype, 2 * Self.length]:
        var result = SIMD[Self.dtype, 2 * Self.length]()
        comptime for lane in range(Self.length):
            result[2 * lane] = self[lane]
            result[2 * lane + 1] = other[lane]
        return result

    @always_inline("nodebug")
    def deinterleave(self) -> Halves[Self.dtype, Self.length // 2]:
        var even = SIMD[Self.dtype, Self.length // 2]()
        var odd = SIMD[Self.dtype, Self.length // 2]()
        comptime for lane in range(Self.length // 2):
            even[lane] = self[2 * lane]
            odd[lane] = self[2 * lane + 1]
        return Halves(even, odd)

    # --- conversion ---
    @always_inline("nodebug")
    def cast[target: DType](self) -> SIMD[target, Self.length]:
        comptime R = SIMD[target, Self.length]
        comptime if Self.dtype == target:
            return rebind[R](self)
        elif Self.dtype == DType.bool:
            return rebind[Self._Mask](self).select(R(1), R(0))
        elif target == DType.bool:
            return rebind[R](self.ne(0))
        else:
            return R(
                mlir_value=__mlir_op.`pop.cast`[_type=R._mlir_type](
                    self._mlir_value
                )
            )

    @always_inline("nodebug")
    def to_bits[target: DType](self) -> SIMD[target, Self.length]:
        """Of the same width."""
        return SIMD[target, Self.length](
            mlir_value=__mlir_op.`pop.bitcast`[_type=SIMD[target, Self.length]._mlir_type](
                self._mlir_value
            )
        )

    @always_inline("builtin")
    def __bool__(self) -> Bool:
        return Bool(mlir_value=__mlir_op.`pop.simd.reduce_or`(self.ne(0)._mlir_value))

    @always_inline("nodebug")
    def __int__(self) -> Int:
        """Of one element."""
        # Unsigned ones through the widest, so that no sign is extended.
        comptime if Self.dtype.is_unsigned() | (Self.dtype == DType.bool):
            return _as_int(rebind[Scalar[Self.dtype]](self).cast[DType.uint64]()._mlir_value)
        else:
            return _as_int(rebind[Scalar[Self.dtype]._mlir_type](self._mlir_value))

    @always_inline("nodebug")
    def __len__(self) -> Int:
        return Self.length

    # --- arithmetic ---
    @always_inline("builtin")
    def __neg__(self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.neg`(self._mlir_value))

    @always_inline("builtin")
    def __invert__(self) -> Self:
        return self ^ -1

    @always_inline("builtin")
    def __abs__(self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.abs`(self._mlir_value))

    @always_inline("nodebug")
    def __floordiv__(self, other: Self) -> Self:
        """Of integers by 0 this is 0."""
        comptime if Self.dtype.is_floating_point():
            return Self(mlir_value=__mlir_op.`pop.floordiv`(self._mlir_value, other._mlir_value))
        else:
            var by_zero = other.eq(0)
            var divisor = by_zero.select(Self(1), other)
            return by_zero.select(
                Self(0),
                Self(mlir_value=__mlir_op.`pop.floordiv`(self._mlir_value, divisor._mlir_value)),
            )

    @always_inline("nodebug")
    def __mod__(self, other: Self) -> Self:
        """Of integers; by 0 this is 0."""
        return other.eq(0).select(Self(0), self - self // other * other)

    @always_inline("nodebug")
    def fma(self, factor: Self, addend: Self) -> Self:
        return Self(
            mlir_value=__mlir_op.`pop.fma`[fastmathFlags=__mlir_attr.`#pop.fmf<contract>`](
                self._mlir_value, factor._mlir_value, addend._mlir_value
            )
        )

    @always_inline("builtin")
    def __add__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.add`(self._mlir_value, other._mlir_value))

    @always_inline("builtin")
    def __sub__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.sub`(self._mlir_value, other._mlir_value))

    @always_inline("builtin")
    def __mul__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.mul`(self._mlir_value, other._mlir_value))

    @always_inline("builtin")
    def __truediv__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.div`(self._mlir_value, other._mlir_value))

    @always_inline("builtin")
    def __lshift__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.shl`(self._mlir_value, other._mlir_value))

    @always_inline("builtin")
    def __rshift__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.shr`(self._mlir_value, other._mlir_value))

    @always_inline("builtin")
    def __and__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.simd.and`(self._mlir_value, other._mlir_value))

    @always_inline("builtin")
    def __or__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.simd.or`(self._mlir_value, other._mlir_value))

    @always_inline("builtin")
    def __xor__(self, other: Self) -> Self:
        return Self(mlir_value=__mlir_op.`pop.simd.xor`(self._mlir_value, other._mlir_value))

    @always_inline("nodebug")
    def __radd__(self, other: Self) -> Self:
        return other + self

    @always_inline("nodebug")
    def __iadd__(mut self, other: Self):
        self = self + other

    @always_inline("nodebug")
    def __rsub__(self, other: Self) -> Self:
        return other - self

    @always_inline("nodebug")
    def __isub__(mut self, other: Self):
        self = self - other

    @always_inline("nodebug")
    def __rmul__(self, other: Self) -> Self:
        return other * self

    @always_inline("nodebug")
    def __imul__(mut self, other: Self):
        self = self * other

    @always_inline("nodebug")
    def __rtruediv__(self, other: Self) -> Self:
        return other / self

    @always_inline("nodebug")
    def __itruediv__(mut self, other: Self):
        self = self / other

    @always_inline("nodebug")
    def __rlshift__(self, other: Self) -> Self:
        return other << self

    @always_inline("nodebug")
    def __ilshift__(mut self, other: Self):
        self = self << other

    @always_inline("nodebug")
    def __rrshift__(self, other: Self) -> Self:
        return other >> self

    @always_inline("nodebug")
    def __irshift__(mut self, other: Self):
        self = self >> other

    @always_inline("nodebug")
    def __rand__(self, other: Self) -> Self:
        return other & self

    @always_inline("nodebug")
    def __iand__(mut self, other: Self):
        self = self & other

    @always_inline("nodebug")
    def __ror__(self, other: Self) -> Self:
        return other | self

    @always_inline("nodebug")
    def __ior__(mut self, other: Self):
        self = self | other

    @always_inline("nodebug")
    def __rxor__(self, other: Self) -> Self:
        return other ^ self

    @always_inline("nodebug")
    def __ixor__(mut self, other: Self):
        self = self ^ other

    @always_inline("nodebug")
    def __rfloordiv__(self, other: Self) -> Self:
        return other // self

    @always_inline("nodebug")
    def __ifloordiv__(mut self, other: Self):
        self = self // other

    @always_inline("nodebug")
    def __rmod__(self, other: Self) -> Self:
        return other % self

    @always_inline("nodebug")
    def __imod__(mut self, other: Self):
        self = self % other

    # --- comparison: elements, or, of one element, as a whole ---
    @always_inline("builtin")
    def eq(self, other: Self) -> Self._Mask:
        return Self._Mask(
            mlir_value=__mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<eq>`](
                self._mlir_value, other._mlir_value
            )
        )

    @always_inline("builtin")
    def ne(self, other: Self) -> Self._Mask:
        return Self._Mask(
            mlir_value=__mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<ne>`](
                self._mlir_value, other._mlir_value
            )
        )

    @always_inline("builtin")
    def lt(self, other: Self) -> Self._Mask:
        return Self._Mask(
            mlir_value=__mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<lt>`](
                self._mlir_value, other._mlir_value
            )
        )

    @always_inline("builtin")
    def le(self, other: Self) -> Self._Mask:
        return Self._Mask(
            mlir_value=__mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<le>`](
                self._mlir_value, other._mlir_value
            )
        )

    @always_inline("builtin")
    def gt(self, other: Self) -> Self._Mask:
        return Self._Mask(
            mlir_value=__mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<gt>`](
                self._mlir_value, other._mlir_value
            )
        )

    @always_inline("builtin")
    def ge(self, other: Self) -> Self._Mask:
        return Self._Mask(
            mlir_value=__mlir_op.`pop.cmp`[pred=__mlir_attr.`#kgen.cmp_pred<ge>`](
                self._mlir_value, other._mlir_value
            )
        )

    @always_inline("builtin")
    def __eq__(self, other: Self) -> Bool:
        return Bool(mlir_value=__mlir_op.`pop.simd.reduce_and`(self.eq(other)._mlir_value))

    @always_inline("builtin")
    def __lt__(self, other: Self) -> Bool:
        return Bool(mlir_value=__mlir_op.`pop.simd.reduce_and`(self.lt(other)._mlir_value))

    @always_inline("builtin")
    def __le__(self, other: Self) -> Bool:
        return Bool(mlir_value=__mlir_op.`pop.simd.reduce_and`(self.le(other)._mlir_value))

    @always_inline("builtin")
    def __gt__(self, other: Self) -> Bool:
        return Bool(mlir_value=__mlir_op.`pop.simd.reduce_and`(self.gt(other)._mlir_value))

    @always_inline("builtin")
    def __ge__(self, other: Self) -> Bool:
        return Bool(mlir_value=__mlir_op.`pop.simd.reduce_and`(self.ge(other)._mlir_value))

    @always_inline("builtin")
    def __ne__(self, other: Self) -> Bool:
        return ~(self == other)

    @always_inline("nodebug")
    def reduce_add(self) -> Scalar[Self.dtype]:
        """The sum of its halves, again and again."""
        comptime if Self.length == 1:
            return self[0]
        else:
            comptime half = Self.length // 2
            return (self.slice[half]() + self.slice[half, offset=half]()).reduce_add()

    # --- of masks ---
    @always_inline("nodebug")
    def select[
        kind: DType, //
    ](self, yes: SIMD[kind, Self.length], no: SIMD[kind, Self.length]) -> SIMD[kind, Self.length]:
        return SIMD[kind, Self.length](
            mlir_value=__mlir_op.`pop.simd.select`(
                rebind[Self._Mask](self)._mlir_value, yes._mlir_value, no._mlir_value
            )
        )

    @always_inline("nodebug")
    def reduce_or(self) -> Bool:
        return Bool(
            mlir_value=__mlir_op.`pop.simd.reduce_or`(rebind[Self._Mask](self)._mlir_value)
        )

    @always_inline("nodebug")
    def reduce_and(self) -> Bool:
        return Bool(
            mlir_value=__mlir_op.`pop.simd.reduce_and`(rebind[Self._Mask](self)._mlir_value)
        )


@fieldwise_init
struct Halves[dtype: DType, length: Int](TrivialRegisterPassable):
    """The elements of a vector at even places, and those at odd ones."""

    var even: SIMD[Self.dtype, Self.length]
    var odd: SIMD[Self.dtype, Self.length]

    @always_inline("nodebug")
    def __getitem__(self, i: Int) -> SIMD[Self.dtype, Self.length]:
        return self.even if i == 0 else self.odd


@always_inline("builtin")
def _as_int[dtype: __mlir_type.`!kgen.dtype`, //](
    value: __mlir_type[`!kgen.scalar<`, dtype, `>`]
) -> Int:
    return Int(
        mlir_value=__mlir_op.`pop.cast_to_builtin`[_type=__mlir_type.index](
            __mlir_op.`pop.cast`[_type=__mlir_type.`!kgen.scalar<index>`](value)
        )
    )


@always_inline("nodebug")
def _largest[dtype: DType]() -> Scalar[dtype]:
    """The largest integer, infinity, or True."""
    comptime if dtype == DType.bool:
        return Scalar[dtype](1)
    elif dtype.is_floating_point():
        return Scalar[dtype](FloatLiteral.infinity)
    elif dtype.is_unsigned():
        return ~Scalar[dtype](0)
    else:
        return ~(Scalar[dtype](1) << Scalar[dtype](bit_width_of[dtype]() - 1))


@always_inline("nodebug")
def _smallest[dtype: DType]() -> Scalar[dtype]:
    comptime if dtype.is_floating_point():
        return Scalar[dtype](-FloatLiteral.infinity)
    elif dtype.is_unsigned() or dtype == DType.bool:
        return Scalar[dtype](0)
    else:
        return Scalar[dtype](1) << Scalar[dtype](bit_width_of[dtype]() - 1)
