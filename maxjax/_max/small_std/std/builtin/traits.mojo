"""The traits that the compiler asks every type about."""


trait AnyType:
    pass


trait Deinitable:
    comptime __del__is_trivial: Bool

    def __deinit__(deinit self, /):
        ...


trait Movable:
    comptime __move_ctor_is_trivial: Bool

    def __init__(out self, *, deinit move: Self):
        ...


trait Copyable(Movable):
    comptime __copy_ctor_is_trivial: Bool

    def __init__(out self, *, copy: Self):
        ...

    @always_inline("nodebug")
    def copy(self) -> Self:
        return Self(copy=self)


trait ImplicitlyCopyable(Copyable):
    pass


trait RegisterPassable(Movable):
    pass


trait TrivialRegisterPassable(Deinitable, ImplicitlyCopyable, Movable, RegisterPassable):
    pass
