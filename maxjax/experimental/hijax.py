"""jax.experimental.hijax: types above arrays, and primitives defined by a class.

Values of these types are Python objects that hold arrays (``maxjax._higher_order.hi_types``).
Jitted functions take them, close over them and change mutable ones, as do loops, branches and
derivatives that close over mutable ones. Immutable ones are operands and results of primitives, of
loops, of branches and of ``grad`` (``maxjax._higher_order.hi_values``); none are of ``vmap``.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NoReturn

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order import hi_values as hi_values
from maxjax._higher_order.custom_primitive import Zero as Zero
from maxjax._higher_order.hi_primitive import VJPHiPrimitive as VJPHiPrimitive
from maxjax._higher_order.hi_types import HiPrimitive as HiPrimitive
from maxjax._higher_order.hi_types import register_hitype as register_hitype
from maxjax._ir.refs import AbstractRef as AbstractRef
from maxjax._ir.types import ShapedArray as ShapedArray
from maxjax.interpreters.ad import instantiate_zeros as instantiate_zeros
from maxjax.interpreters.ad import is_undefined_primal as is_undefined_primal


class AbstractValue:
    """The base of types; those of maxjax are ``ShapedArray`` and ``AbstractRef``.

    >>> issubclass(jax.experimental.hijax.HiType, jax.experimental.hijax.AbstractValue)
    True
    """


def _must_override(self: object, *args: object) -> NoReturn:
    raise AssertionError("must override")


class HiType(AbstractValue):
    """The base of types of values that do not change.

    A subclass defines equality and a hash, ``lo_ty()``, the types of the arrays in a value,
    ``lower_val(value)``, those arrays, and ``raise_val(*arrays)``, a value of them.

    >>> class Pair(jax.experimental.hijax.HiType):
    ...     pass
    """

    is_high = True
    has_qdd = False
    __hash__ = _must_override       # type: ignore[assignment]
    __eq__ = _must_override         # type: ignore[assignment]
    lo_ty: Callable[..., Any] = _must_override
    lower_val: Callable[..., Any] = _must_override
    raise_val: Callable[..., Any] = _must_override


class MutableHiType(AbstractValue):
    """The base of types of values that change.

    What a type does not say is a value's ``cur_qdd()``. A subclass defines equality and a hash,
    ``lo_ty_qdd(qdd)``, the types of the arrays in a value, ``read_loval(qdd, value)``, those
    arrays, ``new_from_loval(qdd, *arrays)``, a value of them, and
    ``update_from_loval(qdd, value, *arrays)``, which puts them into a value.

    >>> class Counter(jax.experimental.hijax.MutableHiType):
    ...     pass
    """

    is_high = True
    has_qdd = True
    is_writer = False
    __hash__ = _must_override       # type: ignore[assignment]
    __eq__ = _must_override         # type: ignore[assignment]
    lo_ty_qdd: Callable[..., Any] = _must_override
    read_loval: Callable[..., Any] = _must_override
    new_from_loval: Callable[..., Any] = _must_override
    update_from_loval: Callable[..., Any] = _must_override


@dataclasses.dataclass(frozen=True)
class AvalQDD:
    """The type of a mutable value, and what it does not say.

    >>> jax.experimental.hijax.AvalQDD("a counter", "three leaves").qdd
    'three leaves'
    """

    aval: Any
    qdd: Any


@dataclasses.dataclass(frozen=True)
class AvalMutableQDD:
    """The type of a mutable value, and what it does not say, which a primitive may change.

    >>> jax.experimental.hijax.AvalMutableQDD("a counter", None).aval
    'a counter'
    """

    aval: Any
    mutable_qdd: Any


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

    def of_values(self, value: Any) -> Any:
        """The method of a value."""
        return functools.partial(self.function, value)


class aval_property(_Declared):
    """Declares a property of the values of a type.

    >>> class Pair(jax.experimental.hijax.HiType):
    ...     @jax.experimental.hijax.aval_property
    ...     def first(self): ...
    """

    def __init__(self, fget: Callable[..., Any]):
        super().__init__(fget)

    def of_values(self, value: Any) -> Any:
        """The property of a value."""
        return self.function(value)


class _Effects:
    """The effects that loops may have: all effects."""

    def add_type(self, effect: type) -> None:
        """Does nothing: every effect is allowed."""


control_flow_allowed_effects = _Effects()


explain_missing_names(__name__)
