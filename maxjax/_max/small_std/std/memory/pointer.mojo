"""Addresses of values, and of the elements of arrays."""
from std.builtin.int import Intable
from std.sys.info import size_of


struct Pointer[mut: Bool, //, T: AnyType, origin: Origin[mut=mut]](
    Intable, TrivialRegisterPassable
):
    comptime _mlir_type = __mlir_type[`!kgen.pointer<`, Self.T, `>`]
    comptime _mlir_lit_ref = __mlir_type[
        `!lit.ref<`, Self.T, `, `, Self.origin._mlir_origin, `>`
    ]
    var _mlir_value: Self._mlir_type

    @always_inline("builtin")
    def __init__(out self, *, _mlir_value: Self._mlir_type):
        self._mlir_value = _mlir_value

    @always_inline("nodebug")
    def __init__(out self, *, ref[Self.origin] to: Self.T):
        self = Self(_mlir_value=__mlir_op.`lit.ref.to_pointer`(__get_mvalue_as_litref(to)))

    @always_inline("builtin")
    @implicit
    def __init__[
        unused: NoneType = None
    ](other: Pointer, out self: Pointer[other.T, ImmOrigin(other.origin)]):
        self._mlir_value = other._mlir_value

    @always_inline("nodebug")
    def __getitem__(self) -> ref[Self.origin] Self.T:
        return __get_litref_as_mvalue(
            __mlir_op.`lit.ref.from_pointer`[_type=Self._mlir_lit_ref](self._mlir_value)
        )

    @always_inline("nodebug")
    def __getitem__(self, *, unsafe_offset: Int) -> ref[Self.origin] Self.T:
        return self.unsafe_offset(unsafe_offset)[]

    @always_inline("nodebug")
    def unsafe_offset(self, offset: Int) -> Self:
        return Self(_mlir_value=__mlir_op.`pop.offset`(self._mlir_value, offset._mlir_value))

    @always_inline("nodebug")
    def __int__(self) -> Int:
        return Int(mlir_value=__mlir_op.`pop.pointer_to_index`(self._mlir_value))

    @always_inline("nodebug")
    def __eq__(self, other: Pointer[Self.T, ...]) -> Bool:
        return Int(self) == Int(other)

    @always_inline("nodebug")
    def __ne__(self, other: Pointer[Self.T, ...]) -> Bool:
        return Int(self) != Int(other)

    @always_inline("nodebug")
    def unsafe_bitcast[U: AnyType](self) -> Pointer[U, Self.origin]:
        return Pointer[U, Self.origin](
            _mlir_value=__mlir_op.`pop.pointer.bitcast`[_type=Pointer[U, Self.origin]._mlir_type](
                self._mlir_value
            )
        )

    @always_inline("nodebug")
    def unsafe_origin_cast[
        to_mut: Bool, //, target: Origin[mut=to_mut]
    ](self) -> Pointer[Self.T, target]:
        return Pointer[Self.T, target](
            _mlir_value=__mlir_op.`pop.pointer.bitcast`[
                _type=Pointer[Self.T, target]._mlir_type
            ](self._mlir_value)
        )

    @always_inline("nodebug")
    def as_unsafe_any_origin(self) -> Pointer[Self.T, MutAnyOrigin]:
        return self.unsafe_origin_cast[MutAnyOrigin]()

    @__allow_legacy_custom_self_type
    @always_inline("nodebug")
    def unsafe_load[
        dtype: DType, //, width: Int = 1
    ](self: Pointer[SIMD[dtype, 1], ...], offset: Int = 0) -> SIMD[dtype, width]:
        return __mlir_op.`pop.load`[
            alignment=_size_of[dtype],
            isVolatile=__mlir_attr.`false`,
            isInvariant=__mlir_attr.`false`,
            isNonTemporal=__mlir_attr.`false`,
        ](
            __mlir_op.`pop.pointer.bitcast`[
                _type=__mlir_type[`!kgen.pointer<`, SIMD[dtype, width], `>`]
            ](__mlir_op.`pop.offset`(self._mlir_value, offset._mlir_value))
        )

    @__allow_legacy_custom_self_type
    @always_inline("nodebug")
    def unsafe_store[
        dtype: DType, //, width: Int = 1
    ](self: Pointer[SIMD[dtype, 1], ...], offset: Int, value: SIMD[dtype, width]):
        __mlir_op.`pop.store`[
            alignment=_size_of[dtype],
            isVolatile=__mlir_attr.`false`,
            isNonTemporal=__mlir_attr.`false`,
        ](
            value,
            __mlir_op.`pop.pointer.bitcast`[
                _type=__mlir_type[`!kgen.pointer<`, SIMD[dtype, width], `>`]
            ](__mlir_op.`pop.offset`(self._mlir_value, offset._mlir_value)),
        )


comptime _size_of[dtype: DType] = __mlir_attr[
    `#kgen.param.expr<get_sizeof, #kgen.type<!kgen.simd<1, `,
    dtype._mlir_value,
    `>> : !kgen.type, `,
    __mlir_attr.`#kgen.param.expr<current_target> : !kgen.target`,
    `> : index`,
]


@always_inline("nodebug")
def unsafe_memcpy[
    T: AnyType, //
](*, dest: Pointer[T, ...], src: Pointer[T, ...], count: Int):
    __mlir_op.`pop.call_llvm_intrinsic`[
        intrin=__mlir_attr.`"llvm.memcpy" : !kgen.string`,
        _type=None,
        hasSideEffects=__mlir_attr.`true`,
    ](
        dest.unsafe_bitcast[UInt8](),
        src.unsafe_bitcast[UInt8](),
        Int64(count * size_of[T]()),
        Bool(False),
    )
