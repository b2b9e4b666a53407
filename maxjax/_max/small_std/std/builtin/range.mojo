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
    """The integers from `start` to `end`, one after the other."""

    comptime Element = Int
    var start: Int
    var end: Int

    @always_inline("builtin")
    def __init__(out self, start: Int, end: Int):
        self.start = start
        self.end = end

    @always_inline("nodebug")
    def __iter__(self) -> Self:
        return self

    @always_inline("nodebug")
    def __next__(mut self) raises StopIteration -> Int:
        if self.start >= self.end:
            raise StopIteration()
        var result = self.start
        self.start = result + 1
        return result

    @always_inline("nodebug")
    def __has_next__(self) -> Bool:
        return self.start < self.end

    @always_inline("nodebug")
    def __first__(self) -> Int:
        return self.start

    @always_inline("nodebug")
    def __go_on__(mut self):
        self.start = self.start + 1


struct Steps(Iterator, TrivialRegisterPassable):
    """Integers from `start` on, `step` apart, before `end`."""

    comptime Element = Int
    var start: Int
    var end: Int
    var step: Int

    @always_inline("builtin")
    def __init__(out self, start: Int, end: Int, step: Int):
        self.start = start
        self.end = end
        self.step = step

    @always_inline("nodebug")
    def __iter__(self) -> Self:
        return self

    @always_inline("nodebug")
    def __next__(mut self) raises StopIteration -> Int:
        if not self.__has_next__():
            raise StopIteration()
        var result = self.start
        self.start = result + self.step
        return result

    @always_inline("nodebug")
    def __has_next__(self) -> Bool:
        return (self.step > 0) & (self.start < self.end) | (self.step < 0) & (self.start > self.end)

    @always_inline("nodebug")
    def __first__(self) -> Int:
        return self.start

    @always_inline("nodebug")
    def __go_on__(mut self):
        self.start = self.start + self.step


@always_inline("nodebug")
def range(end: Int) -> Range:
    return Range(0, end)


@always_inline("nodebug")
def range(start: Int, end: Int) -> Range:
    return Range(start, end)


@always_inline("nodebug")
def range(start: Int, end: Int, step: Int) -> Steps:
    return Steps(start, end, step)
