"""jax.experimental.hijax: primitives defined by a class, on arrays; types above arrays can be
declared but not used.

Libraries declare such types when they are imported (Flax NNX its variables, which it uses only on
request), and that works. maxjax only has the types of arrays and references: applying a primitive
to a declared type raises an error that says so, and a value of one cannot be an argument of a
transformation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.custom_primitive import Zero as Zero
from maxjax._higher_order.hi_primitive import VJPHiPrimitive as VJPHiPrimitive
from maxjax._higher_order.hi_primitive import refuse_hitypes
from maxjax._ir.refs import AbstractRef as AbstractRef
from maxjax._ir.types import ShapedArray as ShapedArray
from maxjax.interpreters.ad import instantiate_zeros as instantiate_zeros
from maxjax.interpreters.ad import is_undefined_primal as is_undefined_primal


class AbstractValue:
    """The base of types; those of maxjax are ``ShapedArray`` and ``AbstractRef``.

    >>> issubclass(jax.experimental.hijax.HiType, jax.experimental.hijax.AbstractValue)
    True
    """


class HiType(AbstractValue):
    """The base of declared types.

    >>> class Pair(jax.experimental.hijax.HiType):
    ...     pass
    """


class MutableHiType(HiType):
    """The base of declared types whose values change.

    >>> class Counter(jax.experimental.hijax.MutableHiType):
    ...     pass
    """


class HiPrimitive:
    """A primitive on values of declared types.

    Args:
      name: used in errors.

    >>> jax.experimental.hijax.HiPrimitive("new_pair").bind(1.0)
    Traceback (most recent call last):
    NotImplementedError: new_pair: maxjax has no types above arrays (jax.experimental.hijax)
    """

    def __init__(self, name: str):
        self.name = name

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        """Raises NotImplementedError."""
        refuse_hitypes(self.name)


class _Declared:
    """A method or property of values, defined by a declared type."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function


class aval_method(_Declared):
    """Declares a method of the values of a type.

    >>> class Pair(jax.experimental.hijax.HiType):
    ...     @jax.experimental.hijax.aval_method
    ...     def swapped(self): ...
    """

    def __init__(self, fun: Callable[..., Any]):
        super().__init__(fun)


class aval_property(_Declared):
    """Declares a property of the values of a type.

    >>> class Pair(jax.experimental.hijax.HiType):
    ...     @jax.experimental.hijax.aval_property
    ...     def first(self): ...
    """

    def __init__(self, fget: Callable[..., Any]):
        super().__init__(fget)


class _Effects:
    """The effects that loops may have: all effects."""

    def add_type(self, effect: type) -> None:
        """Does nothing: every effect is allowed."""


control_flow_allowed_effects = _Effects()


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], Any]) -> None:
    """Declares that values of a class have a declared type.

    Raises:
      TypeError: ``val_cls`` is not a class.

    >>> class Pair: ...
    >>> jax.experimental.hijax.register_hitype(Pair, lambda pair: None)
    """
    if not isinstance(val_cls, type):
        raise TypeError(f"register_hitype: val_cls must be a class, got {val_cls!r}")


explain_missing_names(__name__)
