"""Ranges of integers, for loops."""


@fieldwise_init
struct StopIteration(TrivialRegisterPassable):
    pass


trait Iterator(Deinitable, Movable):
    """What a loop goes through: step by step, or, at compile time, as a value of its own."""

    comptime Element: Movable

    def __next__(mut self) raises StopIteration -> Self.Element:
        ...

    def __has_next__(self) -> Bool:
        ...

    def __first__(self) -> Self.Element:
        ...

    def __go_on__(mut self):
        ...


struct Range(Iterator, TrivialRegisterPassable):
    """The integers from `start`, in steps, of which there are `left`."""

    comptime Element = Int
    var start: Int
    var step: Int
    var left: Int

    @always_inline
    def __init__(out self, start: Int, step: Int, left: Int):
        self.start = start
        self.step = step
        self.left = left

    @always_inline
    def __iter__(self) -> Self:
        return self

    @always_inline
    def __next__(mut self) raises StopIteration -> Int:
        if self.left <= 0:
            raise StopIteration()
        var result = self.start
        self.__go_on__()
        return result

    @always_inline
    def __has_next__(self) -> Bool:
        return self.left > 0

    @always_inline
    def __first__(self) -> Int:
        return self.start

    @always_inline
    def __go_on__(mut self):
        self.start += self.step
        self.left -= 1


@always_inline
def range(end: Int) -> Range:
    return Range(0, 1, end)


@always_inline
def range(start: Int, end: Int) -> Range:
    return Range(start, 1, end - start)


@always_inline
def range(start: Int, end: Int, step: Int) -> Range:
    if step > 0:
        return Range(start, step, (end - start + step - 1) // step)
    return Range(start, step, (start - end - step - 1) // -step)
