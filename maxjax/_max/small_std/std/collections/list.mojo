"""Memory for elements, until it is no longer used; it grows with what is appended."""
from std.collections.span import Sized
from std.ffi import external_call
from std.memory import unsafe_memcpy
from std.sys.info import size_of


struct List[T: TrivialRegisterPassable](Deinitable, Movable, Sized):
    comptime __del__is_trivial = False
    comptime __move_ctor_is_trivial = True
    var _data: Pointer[Self.T, MutUntrackedOrigin]
    var _len: Int
    var _capacity: Int

    @always_inline
    def __init__(out self):
        self = Self(capacity=0)

    @always_inline
    def __init__(out self, *, capacity: Int):
        self._data = _allocated[Self.T](capacity)
        self._len = 0
        self._capacity = capacity

    @always_inline
    def __init__(out self, *, unsafe_uninit_length: Int):
        self = Self(capacity=unsafe_uninit_length)
        self._len = unsafe_uninit_length

    @always_inline
    def __init__(out self, *, length: Int, fill: Self.T):
        self = Self(unsafe_uninit_length=length)
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

    def reserve(mut self, capacity: Int):
        if capacity <= self._capacity:
            return
        var larger = _allocated[Self.T](capacity)
        unsafe_memcpy(dest=larger, src=self._data, count=self._len)
        external_call["free", NoneType](self._data)
        self._data = larger
        self._capacity = capacity

    @always_inline
    def append(mut self, value: Self.T):
        if self._len == self._capacity:
            self.reserve(max(4, 2 * self._capacity))
        self._data[unsafe_offset=self._len] = value
        self._len += 1

    def insert(mut self, place: Int, value: Self.T):
        self.append(value)
        for i in range(self._len - 1, place, -1):
            self._data[unsafe_offset=i] = self._data[unsafe_offset=i - 1]
        self._data[unsafe_offset=place] = value

    def pop(mut self, place: Int) -> Self.T:
        var result = self._data[unsafe_offset=place]
        self._len -= 1
        for i in range(place, self._len):
            self._data[unsafe_offset=i] = self._data[unsafe_offset=i + 1]
        return result


@always_inline
def _allocated[T: TrivialRegisterPassable](count: Int) -> Pointer[T, MutUntrackedOrigin]:
    var size = (max(count * size_of[T](), 1) + 63) // 64 * 64
    return external_call["aligned_alloc", Pointer[T, MutUntrackedOrigin]](64, size)
