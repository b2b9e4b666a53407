"""Arguments of one type, as many as there are: those of list literals."""


struct VariadicList[
    elt_is_mutable: Bool,
    origin: Origin[mut=elt_is_mutable],
    //,
    element_type: AnyType,
    is_owned: Bool,
](RegisterPassable):
    comptime __del__is_trivial = True
    comptime _Element = Pointer[Self.element_type, Self.origin]
    var _data: Pointer[Self._Element, MutUntrackedOrigin]

    @always_inline("nodebug")
    @implicit
    def __init__[
        size: __mlir_type.index, list_origin: ImmOrigin
    ](
        out self,
        value: Pointer[
            __mlir_type[`!pop.array<`, size, `, `, Self._Element._mlir_lit_ref, `>`], list_origin
        ]._mlir_lit_ref,
    ):
        self._data = Pointer[Self._Element, MutUntrackedOrigin](
            _mlir_value=__mlir_op.`pop.pointer.bitcast`[
                _type=Pointer[Self._Element, MutUntrackedOrigin]._mlir_type
            ](__mlir_op.`lit.ref.to_pointer`(value))
        )

    @always_inline("nodebug")
    def __getitem__(self, i: Int) -> ref[Self.origin] Self.element_type:
        return self._data[unsafe_offset=i][]
