"""Random keys, as pickles that JAX wrote make them."""

from __future__ import annotations

from typing import Any, NamedTuple

from maxjax._runtime.array import ArrayImpl
from maxjax.random import wrap_key_data


class PRNGImpl(NamedTuple):
    """A generator; its functions are only named."""

    key_shape: tuple[int, ...]
    seed: object
    split: object
    random_bits: object
    fold_in: object
    name: str = "<unnamed>"
    tag: str = "?"


class PRNGKeyArray(ArrayImpl):
    """An array that becomes one of keys when it is given its state."""

    __slots__ = ()

    def __new__(cls) -> PRNGKeyArray:
        return object.__new__(cls)

    def __init__(self) -> None:
        pass      # it has no value until it has its state

    def __setstate__(self, state: dict[str, Any]) -> None:
        keys: Any = wrap_key_data(state["_base_array"], impl=state["_impl"].name)
        # From here on it is an array like any other.
        self.__class__ = ArrayImpl      # type: ignore[assignment]
        ArrayImpl.__init__(self, keys.aval, keys.host())
