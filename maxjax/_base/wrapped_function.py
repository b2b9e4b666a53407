"""Functions with transformations around them, as ``jax.extend.linear_util`` has them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any


class StoreException(Exception):
    """An auxiliary result was read before it was written, or written twice.

    >>> raise jax.extend.linear_util.StoreException("Store empty")
    Traceback (most recent call last):
    StoreException: Store empty
    """


class Store:
    """A slot for one value; with ``takes_equal``, an equal one may be written again."""

    def __init__(self, takes_equal: bool = False) -> None:
        self._values: list[Any] = []
        self._takes_equal = takes_equal

    def store(self, value: object) -> None:
        if self._values and not (self._takes_equal and self._values[0] == value):
            raise StoreException("Store occupied")
        self._values[:] = [value]

    def reset(self) -> None:
        self._values.clear()

    @property
    def val(self) -> Any:
        if not self._values:
            raise StoreException("Store empty")
        return self._values[0]


class WrappedFun:
    """A function and the transformations around it; made by ``wrap_init``.

    Two are equal if the function, the transformations and all arguments are.

    Attributes:
      f: the innermost function.
      f_transformed: the transformed function.
      transforms: each transformation with its static arguments, outermost first.
      stores: the transformations' slots for auxiliary results; None for those without.
      params: keyword arguments of ``f``.

    >>> jax.extend.linear_util.wrap_init(lambda x: 2 * x).call_wrapped(3)
    6
    """

    def __init__(self, f: Callable[..., object], f_transformed: Callable[..., object],
                 transforms: tuple[tuple[Callable[..., object], tuple[Hashable, ...]], ...],
                 stores: tuple[Store | None, ...], params: tuple[tuple[str, object], ...]):
        self.f = f
        self.f_transformed = f_transformed
        self.transforms = transforms
        self.stores = stores
        self.params = params

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Callable[..., object], gen_static_args: tuple[Hashable, ...],
             out_store: Store | None, transformed: Callable[..., object]) -> WrappedFun:
        """The function with one more transformation around it."""
        return WrappedFun(self.f, transformed, ((gen, gen_static_args), *self.transforms),
                          (out_store, *self.stores), self.params)

    def call_wrapped(self, *args: object, **kwargs: object) -> Any:
        """The result of the transformed function."""
        return self.f_transformed(*args, **kwargs)

    def _key(self) -> Any:
        return self.f, self.transforms, self.params

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        layers = "".join(
            f"{number}   : {getattr(gen, '__name__', gen)}   {static}\n"
            for number, (gen, static) in enumerate(self.transforms))
        return f"Wrapped function:\n{layers}\nCore: {self.__name__}\n"


def wrap_init(f: Callable[..., object], params: dict[str, object] | None = None, *,
              debug_info: object = None) -> WrappedFun:
    """A function without transformations.

    Args:
      f: the function.
      params: keyword arguments that each call passes to it.
      debug_info: accepted as in JAX; maxjax finds names and lines itself.

    >>> jax.extend.linear_util.wrap_init(lambda x, by: by * x, {"by": 2}).call_wrapped(3)
    6
    """
    given = params or {}
    transformed = functools.partial(f, **given) if given else f
    return WrappedFun(f, transformed, (), (), tuple(sorted(given.items())))
