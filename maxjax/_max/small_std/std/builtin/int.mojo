"""Int, which is also the type of a vector's length."""

comptime _Index = __mlir_type.index
comptime _Scalar = __mlir_type.`!kgen.scalar<index>`
comptime SIMDLength = Int


trait Intable:
    def __int__(self) -> Int:
        ...


struct Int(Intable, TrivialRegisterPassable):
    var _mlir_value: _Index

    @always_inline("builtin")
    @implicit
    def __init__(out self, mlir_value: _Index):
        self._mlir_value = mlir_value

    @always_inline("builtin")
    @implicit
    def __init__(out self, literal: IntLiteral):
        self._mlir_value = literal.__mlir_index__()

    @always_inline("nodebug")
    def __init__[T: Intable](out self, value: T):
        self = value.__int__()

    @always_inline("builtin")
    def __mlir_index__(self) -> _Index:
        return self._mlir_value

    @always_inline("builtin")
    def __int__(self) -> Int:
        return self

    @always_inline("builtin")
    def __bool__(self) -> Bool:
        return self != 0

    @always_inline("builtin")
    def __add__(self, other: Self) -> Self:
        return __mlir_op.`index.add`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __sub__(self, other: Self) -> Self:
        return __mlir_op.`index.sub`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __mul__(self, other: Self) -> Self:
        return __mlir_op.`index.mul`(self._mlir_value, other._mlir_value)

    @always_inline("nodebug")
    def __floordiv__(self, other: Self) -> Self:
        """By 0 this is 0."""
        var by_zero = (other == 0)._mlir_value
        return __mlir_op.`pop.select`(
            by_zero,
            Self(0)._mlir_value,
            __mlir_op.`index.floordivs`(
                self._mlir_value,
                __mlir_op.`pop.select`(by_zero, Self(1)._mlir_value, other._mlir_value),
            ),
        )

    @always_inline("nodebug")
    def __mod__(self, other: Self) -> Self:
        """By 0 this is 0."""
        var by_zero = (other == 0)._mlir_value
        var divisor = __mlir_op.`pop.select`(by_zero, Self(1)._mlir_value, other._mlir_value)
        return __mlir_op.`index.sub`(
            self._mlir_value,
            __mlir_op.`index.mul`(
                __mlir_op.`index.floordivs`(self._mlir_value, divisor), divisor
            ),
        )

    @always_inline("builtin")
    def __neg__(self) -> Self:
        return 0 - self

    @always_inline("builtin")
    def __and__(self, other: Self) -> Self:
        return __mlir_op.`index.and`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __or__(self, other: Self) -> Self:
        return __mlir_op.`index.or`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __xor__(self, other: Self) -> Self:
        return __mlir_op.`index.xor`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __invert__(self) -> Self:
        return self ^ -1

    @always_inline("builtin")
    def __lshift__(self, other: Self) -> Self:
        return __mlir_op.`index.shl`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __rshift__(self, other: Self) -> Self:
        return __mlir_op.`index.shrs`(self._mlir_value, other._mlir_value)

    @always_inline("builtin")
    def __radd__(self, other: Self) -> Self:
        return other + self

    @always_inline("builtin")
    def __rsub__(self, other: Self) -> Self:
        return other - self

    @always_inline("builtin")
    def __rmul__(self, other: Self) -> Self:
        return other * self

    @always_inline("nodebug")
    def __rfloordiv__(self, other: Self) -> Self:
        return other // self

    @always_inline("nodebug")
    def __iadd__(mut self, other: Self):
        self = self + other

    @always_inline("nodebug")
    def __isub__(mut self, other: Self):
        self = self - other

    @always_inline("nodebug")
    def __imul__(mut self, other: Self):
        self = self * other

    @always_inline("nodebug")
    def __ifloordiv__(mut self, other: Self):
        self = self // other

    @always_inline("nodebug")
    def __iand__(mut self, other: Self):
        self = self & other

    @always_inline("nodebug")
    def __ior__(mut self, other: Self):
        self = self | other

    @always_inline("nodebug")
    def __irshift__(mut self, other: Self):
        self = self >> other

    @always_inline("nodebug")
    def __ilshift__(mut self, other: Self):
        self = self << other

    @always_inline("builtin")
    def __eq__(self, other: Self) -> Bool:
        return __mlir_op.`index.cmp`[pred=__mlir_attr.`#index.cmp_predicate<eq>`](
            self._mlir_value, other._mlir_value
        )

    @always_inline("builtin")
    def __ne__(self, other: Self) -> Bool:
        return __mlir_op.`index.cmp`[pred=__mlir_attr.`#index.cmp_predicate<ne>`](
            self._mlir_value, other._mlir_value
        )

    @always_inline("builtin")
    def __lt__(self, other: Self) -> Bool:
        return __mlir_op.`index.cmp`[pred=__mlir_attr.`#index.cmp_predicate<slt>`](
            self._mlir_value, other._mlir_value
        )

    @always_inline("builtin")
    def __le__(self, other: Self) -> Bool:
        return __mlir_op.`index.cmp`[pred=__mlir_attr.`#index.cmp_predicate<sle>`](
            self._mlir_value, other._mlir_value
        )

    @always_inline("builtin")
    def __gt__(self, other: Self) -> Bool:
        return __mlir_op.`index.cmp`[pred=__mlir_attr.`#index.cmp_predicate<sgt>`](
            self._mlir_value, other._mlir_value
        )

    @always_inline("builtin")
    def __ge__(self, other: Self) -> Bool:
        return __mlir_op.`index.cmp`[pred=__mlir_attr.`#index.cmp_predicate<sge>`](
            self._mlir_value, other._mlir_value
        )
