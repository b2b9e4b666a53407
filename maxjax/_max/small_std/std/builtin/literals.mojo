"""Literals: their values are parameters of their types, of any precision."""


struct NoneType(TrivialRegisterPassable):
    var _value: __mlir_type.`!kgen.none`

    @always_inline("builtin")
    @implicit
    def __init__(out self, value: __mlir_type.`!kgen.none`):
        self._value = value


comptime _Integer = __mlir_type.`!pop.int_literal`
comptime _Number = __mlir_type.`!pop.float_literal`


@__nonmaterializable(Int)
struct IntLiteral[value: _Integer](TrivialRegisterPassable):
    @always_inline("builtin")
    def __init__(out self):
        pass

    @always_inline("builtin")
    def __mlir_index__(self) -> __mlir_type.index:
        return __mlir_attr[
            `#kgen.cast_to_builtin<#pop.int_literal_convert<`,
            self.value,
            `> : !kgen.scalar<index>> : index`,
        ]

    @always_inline("builtin")
    def __neg__(self) -> type_of(0 - self):
        return {}

    @always_inline("builtin")
    def __invert__(self) -> type_of(self ^ -1):
        return {}

    @always_inline("builtin")
    def __add__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<add `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __sub__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<sub `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __mul__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<mul `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __floordiv__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<floordiv `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __mod__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<mod `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __lshift__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<lshift `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __rshift__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<rshift `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __and__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<and `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __or__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<or `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __xor__(
        self, other: IntLiteral[_]
    ) -> IntLiteral[
        __mlir_attr[
            `#pop.int_literal_bin<xor `,
            self.value,
            `,`,
            other.value,
            `> : !pop.int_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __eq__(self, other: IntLiteral[_]) -> Bool:
        return __mlir_attr[
            `#pop.int_literal_cmp<eq `, self.value, `,`, other.value, `> : i1`
        ]

    @always_inline("builtin")
    def __ne__(self, other: IntLiteral[_]) -> Bool:
        return __mlir_attr[
            `#pop.int_literal_cmp<ne `, self.value, `,`, other.value, `> : i1`
        ]

    @always_inline("builtin")
    def __lt__(self, other: IntLiteral[_]) -> Bool:
        return __mlir_attr[
            `#pop.int_literal_cmp<lt `, self.value, `,`, other.value, `> : i1`
        ]

    @always_inline("builtin")
    def __le__(self, other: IntLiteral[_]) -> Bool:
        return __mlir_attr[
            `#pop.int_literal_cmp<le `, self.value, `,`, other.value, `> : i1`
        ]

    @always_inline("builtin")
    def __gt__(self, other: IntLiteral[_]) -> Bool:
        return __mlir_attr[
            `#pop.int_literal_cmp<gt `, self.value, `,`, other.value, `> : i1`
        ]

    @always_inline("builtin")
    def __ge__(self, other: IntLiteral[_]) -> Bool:
        return __mlir_attr[
            `#pop.int_literal_cmp<ge `, self.value, `,`, other.value, `> : i1`
        ]


@__nonmaterializable(Float64)
struct FloatLiteral[value: _Number](TrivialRegisterPassable):
    comptime nan = FloatLiteral[__mlir_attr.`#pop.float_literal<nan>`]()
    comptime infinity = FloatLiteral[__mlir_attr.`#pop.float_literal<inf>`]()

    @always_inline("builtin")
    def __init__(out self):
        pass

    @always_inline("builtin")
    @implicit
    def __init__(
        literal: IntLiteral[_],
    ) -> FloatLiteral[
        __mlir_attr[`#pop.int_to_float_literal<`, literal.value, `> : !pop.float_literal`]
    ]:
        return {}

    @always_inline("builtin")
    def __neg__(self) -> type_of(self * -1):
        return {}

    @always_inline("builtin")
    def __add__(
        self, other: FloatLiteral
    ) -> FloatLiteral[
        __mlir_attr[
            `#pop.float_literal_bin<add `,
            Self.value,
            `,`,
            other.value,
            `> : !pop.float_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __radd__(self, other: FloatLiteral) -> type_of(other.__add__(self)):
        return {}

    @always_inline("builtin")
    def __sub__(
        self, other: FloatLiteral
    ) -> FloatLiteral[
        __mlir_attr[
            `#pop.float_literal_bin<sub `,
            Self.value,
            `,`,
            other.value,
            `> : !pop.float_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __rsub__(self, other: FloatLiteral) -> type_of(other.__sub__(self)):
        return {}

    @always_inline("builtin")
    def __mul__(
        self, other: FloatLiteral
    ) -> FloatLiteral[
        __mlir_attr[
            `#pop.float_literal_bin<mul `,
            Self.value,
            `,`,
            other.value,
            `> : !pop.float_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __rmul__(self, other: FloatLiteral) -> type_of(other.__mul__(self)):
        return {}

    @always_inline("builtin")
    def __truediv__(
        self, other: FloatLiteral
    ) -> FloatLiteral[
        __mlir_attr[
            `#pop.float_literal_bin<truediv `,
            Self.value,
            `,`,
            other.value,
            `> : !pop.float_literal`,
        ]
    ]:
        return {}

    @always_inline("builtin")
    def __rtruediv__(self, other: FloatLiteral) -> type_of(other.__truediv__(self)):
        return {}


struct StaticString(TrivialRegisterPassable):
    """The name of something, known when the program is compiled."""

    var _mlir_value: __mlir_type.`!kgen.string`

    @always_inline("builtin")
    @implicit
    def __init__(out self, literal: StringLiteral):
        self._mlir_value = literal.value


struct StringLiteral[value: __mlir_type.`!kgen.string`](TrivialRegisterPassable):
    @always_inline("builtin")
    def __init__(out self):
        pass

    @always_inline("builtin")
    def __merge_with__[other_type: type_of(StringLiteral[_])](self) -> StaticString:
        return StaticString(self)
