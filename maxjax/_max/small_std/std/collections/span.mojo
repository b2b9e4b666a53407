"""Elements that lie next to one another in somebody else's memory."""
from std.collections.array import Array


struct Span[mut: Bool, //, T: TrivialRegisterPassable, origin: Origin[mut=mut]](
    Sized, TrivialRegisterPassable
):
    var _data: Pointer[Self.T, Self.origin]
    var _len: Int

    @always_inline
    @implicit
    def __init__[length: Int, //](out self, ref[Self.origin] array: Array[Self.T, length]):
        self._data = Pointer(to=array).unsafe_bitcast[Self.T]()
        self._len = length

    @always_inline("nodebug")
    def __getitem__(self, i: Int) -> ref[Self.origin] Self.T:
        return self._data[unsafe_offset=i]

    @always_inline("nodebug")
    def __len__(self) -> Int:
        return self._len


trait Sized:
    def __len__(self) -> Int:
        ...


@always_inline("nodebug")
def len[T: Sized, //](elements: T) -> Int:
    return elements.__len__()
