"""As many elements as the type says."""


struct Array[T: TrivialRegisterPassable, length: Int](Copyable, Deinitable, Movable):
    comptime _mlir_type = __mlir_type[
        `!pop.array<`, Self.length._mlir_value, `, `, Self.T, `>`
    ]
    comptime __del__is_trivial = True
    comptime __copy_ctor_is_trivial = True
    comptime __move_ctor_is_trivial = True
    var _array: Self._mlir_type

    @always_inline
    def __init__(out self, *, uninitialized: Bool):
        __mlir_op.`lit.ownership.mark_initialized`(__get_mvalue_as_litref(self))

    @always_inline
    def __init__(out self, *, fill: Self.T):
        self._array = __mlir_op.`pop.array.repeat`[_type=Self._mlir_type](fill)

    @always_inline
    def __init__[
        *, __literal_size__: Int
    ](
        out self: Array[Self.T, __literal_size__],
        *elements: Self.T,
        __list_literal__: NoneType,
    ):
        self = Array[Self.T, __literal_size__](uninitialized=True)
        var i = 0
        while i < __literal_size__:
            self[i] = elements[i]
            i += 1

    @always_inline("nodebug")
    def unsafe_ptr(ref self) -> Pointer[Self.T, origin_of(self)]:
        return Pointer(to=self).unsafe_bitcast[Self.T]()

    @always_inline("nodebug")
    def __getitem__(ref self, i: Int) -> ref[self] Self.T:
        return self.unsafe_ptr()[unsafe_offset=i]

    @always_inline("nodebug")
    def __len__(self) -> Int:
        return Self.length
