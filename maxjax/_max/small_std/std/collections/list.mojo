"""Memory for so many elements, until it is no longer used."""
from std.ffi import external_call
from std.sys.info import size_of


struct List[T: TrivialRegisterPassable](Deinitable, Movable):
    comptime __del__is_trivial = False
    comptime __move_ctor_is_trivial = True
    var _data: Pointer[Self.T, MutUntrackedOrigin]
    var _len: Int

    @always_inline
    def __init__(out self):
        self = Self(length=0, fill_nothing=True)

    @always_inline
    def __init__(out self, *, length: Int, fill_nothing: Bool):
        var size = (max(length * size_of[Self.T](), 1) + 63) // 64 * 64
        self._data = external_call["aligned_alloc", Pointer[Self.T, MutUntrackedOrigin]](64, size)
        self._len = length

    @always_inline
    def __init__(out self, *, length: Int, fill: Self.T):
        self = Self(length=length, fill_nothing=True)
        for i in range(length):
            self._data[unsafe_offset=i] = fill

    @always_inline
    def __deinit__(deinit self):
        external_call["free", NoneType](self._data)

    @always_inline("nodebug")
    def unsafe_ptr(ref self) -> Pointer[Self.T, MutUntrackedOrigin]:
        return self._data

    @always_inline("nodebug")
    def __getitem__(ref self, i: Int) -> ref[self] Self.T:
        return self._data.unsafe_origin_cast[origin_of(self)]()[unsafe_offset=i]

    @always_inline("nodebug")
    def __len__(self) -> Int:
        return self._len
