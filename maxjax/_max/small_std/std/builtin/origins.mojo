"""Whose memory a pointer points into, as far as the compiler follows it."""

comptime ImmOrigin = Origin[mut=False]
comptime MutOrigin = Origin[mut=True]

comptime AnyOrigin[*, mut: Bool] = Origin[
    _mlir_origin=__mlir_attr[`#lit.any.origin : !lit.origin<`, +mut._mlir_value, `>`]
]()
comptime ImmutAnyOrigin = AnyOrigin[mut=False]
comptime MutAnyOrigin = AnyOrigin[mut=True]

comptime UntrackedOrigin[*, mut: Bool] = Origin[
    _mlir_origin=__mlir_attr[`#lit.origin.union<> : !lit.origin<`, +mut._mlir_value, `>`]
]()
comptime MutUntrackedOrigin = UntrackedOrigin[mut=True]

comptime ImmStaticOrigin = Origin[
    _mlir_origin=__mlir_attr[
        `#lit.origin.field<`,
        `#lit.static.origin : !lit.origin<false>`,
        `, "__constants__"> : !lit.origin<false>`,
    ]
]()
comptime StaticConstantOrigin = ImmStaticOrigin
comptime OriginSet = __mlir_type.`!lit.origin.set`
comptime EllipsisType = __mlir_type.`!lit.ellipsis`

comptime _OriginType[mut: Bool] = __mlir_type[`!lit.origin<`, mut._mlir_value, `>`]


struct Origin[mut: Bool, _mlir_origin: _OriginType[mut], //](TrivialRegisterPassable):
    @always_inline("builtin")
    def __init__(out self):
        pass

    @always_inline("builtin")
    @implicit
    def __init__(origin: Origin) -> ImmOrigin[_mlir_origin=origin._mlir_origin]:
        return {}
