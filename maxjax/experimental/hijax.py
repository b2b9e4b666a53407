"""jax.experimental.hijax: types above arrays, and primitives defined by a class.

Values of these types are Python objects that hold arrays (``maxjax._higher_order.hi_types``):
jitted functions take them and close over them. They are operands and results of primitives, of
loops, of branches and of ``grad`` (``maxjax._higher_order.hi_values``); not of ``vmap``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order import hi_values as hi_values
from maxjax._higher_order import hi_vmap as hi_vmap
from maxjax._higher_order.custom_primitive import Zero as Zero
from maxjax._higher_order.hi_accums import GradAccum as GradAccum
from maxjax._higher_order.hi_accums import NullAccum as NullAccum
from maxjax._higher_order.hi_accums import ValAccum as ValAccum
from maxjax._higher_order.hi_accums import check_cotangent
from maxjax._higher_order.hi_primitive import HiPrim as HiPrim
from maxjax._higher_order.hi_rules import bdims_at_front as bdims_at_front
from maxjax._higher_order.hi_rules import jvp_from_lin as jvp_from_lin
from maxjax._higher_order.hi_rules import linearize_from_jvp as linearize_from_jvp
from maxjax._higher_order.hi_rules import unmap_avals as unmap_avals
from maxjax._higher_order.hi_rules import vjp_from_jvp as vjp_from_jvp
from maxjax._higher_order.hi_rules import vjp_from_lin as vjp_from_lin
from maxjax._higher_order.hi_rules import vmap_rule as vmap_rule
from maxjax._higher_order.hi_types import register_hitype as register_hitype
from maxjax._ir.refs import AbstractRef as AbstractRef
from maxjax._ir.refs import Ref
from maxjax._ir.types import ShapedArray as ShapedArray
from maxjax._transforms.vmappable import MappingSpec as MappingSpec
from maxjax.interpreters.ad import instantiate_zeros as instantiate_zeros
from maxjax.interpreters.ad import is_undefined_primal as is_undefined_primal
from maxjax.ref import freeze, new_ref


class AbstractValue:
    """The base of types; those of maxjax are ``ShapedArray`` and ``AbstractRef``.

    >>> issubclass(jax.experimental.hijax.HiType, jax.experimental.hijax.AbstractValue)
    True
    """

    def __repr__(self) -> str:
        fields = getattr(self, "__dict__", None)
        if fields is None:
            return type(self).__name__
        values = ",".join([f"{name}={value}" for name, value in fields.items()])
        return f"{type(self).__name__}({values})"

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """The type as printed programs and messages show it."""
        return str(self)


def _must_override(self: object, method: str, needed_for: str) -> NoReturn:
    raise NotImplementedError(
        f"{needed_for} requires {type(self).__name__} to implement the `{method}` method")


class HiType(AbstractValue):
    """The base of types of values that are objects with arrays in them.

    A subclass defines equality and a hash, and what its values are used in needs: an argument of
    ``jit`` the first three methods, a derivative ``to_tangent_aval``.

    >>> class Pair(jax.experimental.hijax.HiType):
    ...     pass
    >>> Pair().lo_ty()
    Traceback (most recent call last):
    NotImplementedError: lowering (e.g. under jit) requires Pair to implement the `lo_ty` method
    """

    is_high = True

    def __hash__(self) -> int:
        _must_override(self, "__hash__", "type equality")

    def __eq__(self, other: object) -> bool:
        _must_override(self, "__eq__", "type equality")

    def lo_ty(self) -> list[Any]:
        """The types of the arrays in a value."""
        _must_override(self, "lo_ty", "lowering (e.g. under jit)")

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        """The arrays in a value."""
        _must_override(self, "lower_val", "lowering values (e.g. under jit)")

    def raise_val(self, *lo_vals: Any) -> Any:
        """A value of arrays."""
        _must_override(self, "raise_val", "raising lowered values (e.g. under jit)")

    def to_tangent_aval(self) -> Any:
        """The type of tangents."""
        _must_override(self, "to_tangent_aval", "autodiff")

    def to_ct_aval(self) -> Any:
        """The type of cotangents."""
        return self.to_tangent_aval()

    def vspace_zero(self) -> Any:
        """The zero of this type, which is one of tangents."""
        _must_override(self, "vspace_zero", "use as a tangent/cotangent type")

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two values of this type, which is one of tangents."""
        _must_override(self, "vspace_add", "use as a tangent/cotangent type")

    def dec_rank(self, size: int | None, spec: MappingSpec) -> Any:
        """The type of one element of a value that ``vmap`` or ``scan`` maps."""
        _must_override(self, "dec_rank", "vmap")

    def inc_rank(self, size: int | None, spec: MappingSpec) -> Any:
        """The type of several elements."""
        _must_override(self, "inc_rank", "vmap")

    def leading_axis_spec(self) -> MappingSpec:
        """How ``scan`` maps a value."""
        _must_override(self, "leading_axis_spec", "scan")

    def shard(self, mesh: Any, manual_axes: frozenset[Any], check_vma: bool, spec: HiPspec) -> Any:
        """The type of one device's part of a value."""
        _must_override(self, "shard", "shard_map")

    def unshard(self, mesh: Any, check_vma: bool, spec: HiPspec) -> Any:
        """The type of a value, from that of the parts."""
        _must_override(self, "unshard", "shard_map")

    def nospec(self, mesh: Any, check_vma: bool, all_names: tuple[Any, ...]) -> HiPspec:
        """How residuals lie over a mesh."""
        _must_override(self, "nospec", "autodiff through shard_map")

    def reshard(self, sharding: Any) -> Any:
        """The type with another sharding."""
        _must_override(self, "reshard", "reshard")


class HiPspec:
    """The base of what says how values of a type above arrays lie over a mesh.

    >>> jax.experimental.hijax.HiPspec().to_lo()
    Traceback (most recent call last):
    NotImplementedError: shard_map requires HiPspec to implement the `to_lo` method
    """

    def to_lo(self) -> tuple[Any, ...]:
        """How the arrays in a value lie."""
        _must_override(self, "to_lo", "shard_map")

    def to_tangent_spec(self) -> HiPspec:
        """How a tangent lies."""
        _must_override(self, "to_tangent_spec", "autodiff through shard_map")

    def to_ct_spec(self) -> HiPspec:
        """How a cotangent lies."""
        _must_override(self, "to_ct_spec", "autodiff through shard_map")


class RefAccum(GradAccum):
    """The cotangent of an argument, in an array reference.

    Attributes:
      ref: the reference; None before anything is added.

    >>> total = jax.experimental.hijax.RefAccum(jax.typeof(1.))
    >>> total.accum(2.)
    >>> total.ref
    Ref(2., dtype=float32)
    """

    def __init__(self, aval: Any, ref: Ref | None = None):
        self.aval = aval
        self.ref = ref

    def accum(self, x: Any) -> None:
        """Adds a cotangent; None and ``Zero`` are zero.

        Raises:
          ValueError: it has another shape.
        """
        if x is None or isinstance(x, Zero):
            return
        if self.ref is None:
            self.ref = new_ref(x)
        else:
            check_cotangent(self.aval, x)
            self.ref.addupdate(x)

    def freeze(self) -> Any:
        """The sum; the reference cannot be used after that."""
        return Zero(self.aval) if self.ref is None else freeze(self.ref)

    def inst(self) -> RefAccum:
        """Itself, with a reference, of zeros if there was none."""
        if self.ref is None:
            self.ref = new_ref(Zero(self.aval).instantiate())
        return self


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
