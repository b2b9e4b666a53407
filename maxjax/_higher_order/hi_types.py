"""Types above arrays: ``jax.experimental.hijax.HiType``.

A value of such a type is a Python object that holds arrays. In a function that is traced it is a
``HiValue``. Where a value is an argument of a jitted function, its arrays are the arguments, and
the function gets a value made of tracers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

from maxjax._base import pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.types import ShapedArray
from maxjax._transforms.vmappable import MappingSpec


class HighType(Protocol):
    """A type above arrays, as it is used; ``jax.experimental.hijax.HiType`` says what its methods
    give."""

    def lo_ty(self) -> list[ShapedArray]: ...
    def lower_val(self, hi_val: object, /) -> list[Array]: ...
    def raise_val(self, *lo_vals: object) -> object: ...
    def to_tangent_aval(self) -> Aval: ...
    def to_ct_aval(self) -> Aval: ...
    def vspace_add(self, x: object, y: object) -> object: ...
    def dec_rank(self, size: int | None, spec: MappingSpec) -> HighType: ...
    def inc_rank(self, size: int | None, spec: MappingSpec) -> HighType: ...
    def leading_axis_spec(self) -> MappingSpec: ...


# What an operand or result of a primitive may be of.
Aval = ShapedArray | HighType

# The classes of values, and what tells the type of one.
hi_classes: dict[type, Callable[[Any], Any]] = {}


def register_hitype(val_cls: type, typeof_fn: Callable[[Any], HighType]) -> None:
    """Declares that values of a class have a type above arrays.

    Raises:
      TypeError: ``val_cls`` is not a class.

    >>> class Pair: ...
    >>> jax.experimental.hijax.register_hitype(Pair, lambda pair: None)
    """
    if not isinstance(val_cls, type):
        raise TypeError(f"register_hitype: val_cls must be a class, got {val_cls!r}")
    hi_classes[val_cls] = typeof_fn


class HiValue:
    """A value of an immutable type in a traced function: see ``maxjax._higher_order.hi_values``.

    Attributes:
      aval: its type.
      arrays: what the type lowers it to.
      carrier: what derivatives by it are derivatives by; None where it has none, or needs none.
    """

    __slots__ = ("aval", "arrays", "carrier")

    def __init__(self, aval: HighType, arrays: Sequence[object], carrier: object):
        self.aval = aval
        self.arrays: Sequence[Any] = arrays
        self.carrier: Any = carrier

    def __getattr__(self, name: str) -> Any:
        """What the type declares for its values, or has itself."""
        try:
            found = getattr(self.aval, name)      # which may have a ``__getattr__``, as Flax's
        except AttributeError as error:
            raise AttributeError(
                f"DynamicJaxprTracer has no attribute {name}", name=name, obj=self) from error
        function = getattr(type(found), "of_values", None)
        return found if function is None else function(found, self)

    def __repr__(self) -> str:
        return f"JitTracer({self.aval})"

    def __len__(self) -> int:
        return self._declared("_len", "has no length")(self)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._declared("_iter", "is not iterable")(self))

    def __setitem__(self, key: object, value: object) -> None:
        self._declared("_setitem", "is not indexable")(self, key, value)

    def _declared(self, name: str, otherwise: str) -> Any:
        function = getattr(self.aval, name, None)
        if function is None:
            raise TypeError(f"Value of type {type(self)} {otherwise}.")
        return function

    def _flatten(self) -> tuple[list[Any], tuple[Any, bool]]:
        carrier = [] if self.carrier is None else [self.carrier]
        return [*self.arrays, *carrier], (self.aval, self.carrier is not None)

    @staticmethod
    def _unflatten(structure: tuple[HighType, bool], leaves: Sequence[object]) -> Any:
        aval, has_carrier = structure
        arrays = list(leaves)
        carrier = arrays.pop() if has_carrier else None
        # Where there is nothing to trace it is an object of the user's again.
        if all(isinstance(leaf, Array) and not isinstance(leaf, Tracer) for leaf in leaves):
            return aval.raise_val(*arrays)
        return HiValue(aval, arrays, carrier)


def _operator(name: str) -> Callable[..., Any]:
    """An operator, which the type defines under a name with one underscore."""
    def apply(self: HiValue, *args: object) -> Any:
        return getattr(self.aval, f"_{name}")(self, *args)

    return apply


for _name in ("getitem", "neg", "pos", "abs", "invert", "round", "divmod", "rdivmod", *(
        f"{_side}{_name}" for _side in ("", "r") for _name in (
            "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
            "lshift", "rshift"))):
    setattr(HiValue, f"__{_name}__", _operator(_name))


class _Hooks:
    """What the module of ``HiValue``s does for those that it is built on.

    Attributes:
      lift: a pytree, its values as ``HiValue``s.
      elements: ``(xs, length)`` -> what a loop over ``xs`` is given, stacked.
      stacked: ``(structure, length)`` -> the structure of what loops stack.
      apply: ``(primitive, arguments)`` -> the result of a ``HiPrim`` that takes or gives values,
        in a traced function.
    """

    lift: Callable[[PyTree], Any]
    elements: Callable[[PyTree, Any], Any]
    stacked: Callable[[PyTreeSpec, int], PyTreeSpec]
    apply: Callable[[Any, tuple[Any, ...]], Any]


hooks = _Hooks()


def lifted_values(tree: PyTree) -> Any:
    """A pytree, its values as pytrees of arrays."""
    return hooks.lift(tree) if hi_classes else tree


pytree.register(HiValue, HiValue._flatten, HiValue._unflatten)


def hi_type_of(x: object) -> Any:
    """The type of a value of a registered class; None for all others."""
    if x.__class__ is HiValue:
        return x.aval
    typeof_fn = hi_classes.get(x.__class__)
    return None if typeof_fn is None else typeof_fn(x)


def any_hi_value(leaves: Sequence[object]) -> bool:
    """Whether a value of a registered class is among the leaves."""
    return any(leaf.__class__ in hi_classes for leaf in leaves)


class HiArguments(Exception):
    """Values of types above arrays are among arguments that are to be arrays."""


def refuse_hitypes(what: str) -> NoReturn:
    """Raises NotImplementedError for what needs more of types above arrays."""
    raise NotImplementedError(
        f"{what}: of types above arrays (jax.experimental.hijax) maxjax has those whose values "
        "jitted functions take and close over, carry through loops and differentiate by. Register "
        "a class of several arrays as a pytree for the rest")


# --- arguments of jitted functions ----------------------------------------------------------------


class _Taken:
    """A value taken apart: a pytree of the arrays in it."""

    def __init__(self, aval: HighType, arrays: Sequence[object]):
        self.aval = aval
        self.arrays = arrays

    def value(self) -> Any:
        """The value, under the current trace."""
        return HiValue._unflatten((self.aval, False), self.arrays)


pytree.register(_Taken, lambda x: (x.arrays, x.aval),
                lambda aval, arrays: _Taken(aval, list(arrays)))


def _is_whole(x: object) -> bool:
    return x.__class__ in hi_classes or x.__class__ is _Taken


def _take(x: object) -> Any:
    """A value taken apart; all else as it is."""
    aval = hi_type_of(x)
    return x if aval is None else _Taken(aval, list(aval.lower_val(x)))


def taken_apart(tree: PyTree) -> Any:
    """A pytree with its values taken apart."""
    return pytree.map(_take, tree, is_leaf=_is_whole)


def put_together(tree: PyTree) -> Any:
    """A pytree with the values that were taken apart."""
    return pytree.map(lambda x: x.value() if x.__class__ is _Taken else x, tree, is_leaf=_is_whole)


def types_of_values(tree: PyTree) -> Any:
    """A pytree with the type in the place of each value of which only types are known."""
    return pytree.map(lambda x: x.aval if x.__class__ in (HiValue, _Taken) else x, tree,
                      is_leaf=lambda x: x.__class__ in (HiValue, _Taken))


def on_arrays(function: Callable[..., PyTree]) -> Callable[..., Any]:
    """A function of values taken apart, which gives them taken apart as well."""
    @functools.wraps(function)
    def flat(*args: PyTree, **kwargs: PyTree) -> Any:
        args, kwargs = put_together((args, kwargs))
        return taken_apart(function(*args, **kwargs))

    return flat
