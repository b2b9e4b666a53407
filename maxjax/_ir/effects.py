"""Effects: what an operation does besides computing its results.

A primitive's rule ``effects`` names those of an application. An equation with effects is never
dropped, merged with another or moved past one; a jaxpr's effects are those of its equations.
"""

from __future__ import annotations


class Effect:
    """A kind of effect; there is one object of each.

    >>> effect, = jax.make_jaxpr(lambda x: jax.debug.print("{}", x))(1.0).effects
    >>> isinstance(effect, jax.extend.core.Effect)
    True
    """

    __slots__ = ("name",)

    def __init__(self, name: str | None = None):
        self.name = type(self).__name__ if name is None else name

    def __str__(self) -> str:
        return self.name

    def check_runnable(self) -> None:
        """Raises where a program with this effect cannot be run as it is."""


class DebugEffect(Effect):
    """A debugging callback."""

    def __init__(self) -> None:
        super().__init__("Debug")


class OrderedDebugEffect(Effect):
    """A debugging callback that keeps its place among the ordered ones."""

    def __init__(self) -> None:
        super().__init__("OrderedDebug")


class IOEffect(Effect):
    """An impure callback."""

    def __init__(self) -> None:
        super().__init__("IO")


class OrderedIOEffect(Effect):
    """An impure callback that keeps its place among the ordered ones."""

    def __init__(self) -> None:
        super().__init__("OrderedIO")


debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()
io_effect, ordered_io_effect = IOEffect(), OrderedIOEffect()


class EffectSet(frozenset[Effect]):
    """The effects of a program, which print as a set does."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(set(self))
