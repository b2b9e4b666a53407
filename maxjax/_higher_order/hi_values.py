"""Values of types above arrays within traced functions.

There a value is the arrays that its type lowers it to, and a carrier: zeros of its tangent type,
which are added to nothing. Derivatives by the value are derivatives by the carrier; the arrays have
none. So transformations, loops and branches see a pytree of arrays, and no more.

Where all arrays are there, the value is the object of the user's class again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree
from maxjax._higher_order.custom_primitive import Zero
from maxjax._higher_order.hi_accums import NullAccum
from maxjax._higher_order.hi_primitive import HiPrim
from maxjax._higher_order.hi_types import HiValue, hi_type_of, hooks, refuse_hitypes
from maxjax._ir.types import ShapedArray
from maxjax._primitives.creation import full
from maxjax._transforms import autodiff
from maxjax._transforms.autodiff import operands_of


def _is_value(x: object) -> bool:
    return x.__class__ is HiValue or hi_type_of(x) is not None


def tangent_type(aval: Any) -> ShapedArray | None:
    """The type of the carrier; None where values have no derivatives by arrays."""
    tangent = getattr(aval, "to_tangent_aval", None)
    found = None if tangent is None else tangent()
    if isinstance(found, ShapedArray) and dtypes.has_tangents(found.dtype):
        return found
    return None


def _carrier(tangent: ShapedArray) -> Any:
    return full(tangent.shape, 0, tangent.dtype)


def lifted(x: Any, carrier: Any = None) -> HiValue:
    """A value as arrays and a carrier."""
    aval = hi_type_of(x)
    if x.__class__ is HiValue and carrier is None:
        arrays, carrier = x.arrays, x.carrier
    else:
        arrays = x.arrays if x.__class__ is HiValue else operands_of(aval.lower_val(x))
    tangent = tangent_type(aval)
    if carrier is None and tangent is not None:
        carrier = _carrier(tangent)
    return HiValue(aval, list(arrays), carrier)


def lift(tree: PyTree) -> Any:
    """A pytree, its values as arrays and carriers."""
    return pytree.map(lambda x: lifted(x) if _is_value(x) else x, tree, is_leaf=_is_value)


def by_carriers(function: Callable[..., PyTree], args: tuple[PyTree, ...]
                ) -> tuple[Callable[..., PyTree], tuple[PyTree, ...]]:
    """A function of the carriers of the values among its arguments, and these carriers."""
    leaves, tree = pytree.flatten(args, _is_value)
    if not any(map(_is_value, leaves)):
        return function, args
    given = [lifted(x) if _is_value(x) else x for x in leaves]
    for x in given:
        if x.__class__ is HiValue and x.carrier is None:
            refuse_hitypes(f"a derivative by a value of type {x.aval}, whose tangents are no array")

    @functools.wraps(function)
    def of_carriers(*carriers: PyTree) -> Any:
        chosen = pytree.flatten(carriers)[0]
        return function(*pytree.unflatten(tree, [
            HiValue(x.aval, x.arrays, new) if x.__class__ is HiValue else new
            for x, new in zip(given, chosen, strict=True)]))

    return of_carriers, pytree.unflatten(tree, [
        x.carrier if x.__class__ is HiValue else x for x in given])


autodiff.by_carriers = by_carriers
hooks.lift = lift


# --- primitives -----------------------------------------------------------------------------------


def _packed_type(aval: Any) -> Any:
    if isinstance(aval, ShapedArray):
        return aval
    tangent = tangent_type(aval)
    return tuple(aval.lo_ty()), () if tangent is None else tangent


def _packed(aval: Any, x: Any) -> Any:
    if isinstance(aval, ShapedArray):
        return x
    value = lifted(x)
    return tuple(value.arrays), () if value.carrier is None else value.carrier


def _unpacked(aval: Any, x: Any) -> Any:
    """A value as the methods of a primitive get it."""
    if isinstance(aval, ShapedArray):
        return x
    arrays, carrier = x
    return pytree.unflatten(pytree.structure(
        HiValue(aval, [0] * len(arrays), None if isinstance(carrier, tuple) else 0)),
        [*arrays, *(() if isinstance(carrier, tuple) else (carrier,))])


def _direction(aval: Any, x: Any) -> Any:
    """Of what belongs to arrays and carrier, what belongs to the carrier."""
    if isinstance(aval, ShapedArray):
        return x
    return Zero(ShapedArray((), dtypes.float0)) if isinstance(x[1], tuple) else x[1]


def _packed_direction(aval: Any, x: Any) -> Any:
    if isinstance(aval, ShapedArray):
        return x
    zeros = tuple([Zero(low.tangent()) for low in aval.lo_ty()])
    return zeros, () if tangent_type(aval) is None else x


class _OnArrays(HiPrim):
    """A primitive on values of types above arrays, as one on arrays and carriers."""

    prim: HiPrim

    def __init__(self, prim: HiPrim):
        self.in_avals = tuple(map(_packed_type, prim.in_avals_flat))
        self.out_aval = tuple(map(_packed_type, prim.out_avals_flat))
        self.params = {"prim": prim}
        super().__init__()

    def __repr__(self) -> str:
        return repr(self.prim)

    def _has(self, method: str) -> bool:
        return self.params["prim"]._has(method)

    def _args(self, packed: Sequence[Any], of: Callable[[Any, Any], Any] = _unpacked) -> Any:
        prim = self.params["prim"]
        return pytree.unflatten(prim._in_spec, [
            of(aval, x) for aval, x in zip(prim.in_avals_flat, packed, strict=True)])

    def _result(self, out: PyTree, of: Callable[[Any, Any], Any] = _packed) -> tuple[Any, ...]:
        prim = self.params["prim"]
        return tuple([of(aval, x) for aval, x in zip(
            prim.out_avals_flat, prim._out_spec.flatten_up_to(out), strict=True)])

    def expand(self, *packed: Any) -> Any:
        return self._result(self.prim.expand(*self._args(packed, lambda aval, x: (
            x if isinstance(aval, ShapedArray) else aval.raise_val(*x[0])))))

    def vjp_fwd(self, nzs_in: PyTree, /, *packed: Any) -> Any:
        flags = self._args(nzs_in, lambda aval, flag: (
            flag if isinstance(aval, ShapedArray) else flag[1] is True))
        out, residuals = self.prim.vjp_fwd(flags, *self._args(packed))
        return self._result(out), lift(residuals)

    def vjp_bwd(self, res: PyTree, outgrad: PyTree, /, *arg_accums: Any) -> None:
        given = pytree.unflatten(self.prim._out_spec, [
            _direction(aval, x) for aval, x in zip(
                self.prim.out_avals_flat, outgrad, strict=True)])
        self.prim.vjp_bwd(res, given, *self._args(arg_accums, lambda aval, x: (
            x if isinstance(aval, ShapedArray) else
            NullAccum(ShapedArray((), dtypes.float0)) if isinstance(x[1], tuple) else x[1])))

    def jvp(self, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> Any:
        out, tangent = self.prim.jvp(self._args(primals), self._args(tangents, _direction))
        return self._result(out), self._result(tangent, _packed_direction)

    def lin(self, nzs_in: PyTree, *primals: PyTree) -> Any:
        flags = self._args(nzs_in, lambda aval, flag: (
            flag if isinstance(aval, ShapedArray) else flag[1] is True))
        out, residuals = self.prim.lin(flags, *self._args(primals))
        return self._result(out), lift(residuals)

    def linearized(self, residuals: PyTree, *tangents: PyTree) -> Any:
        return self._result(self.prim.linearized(
            residuals, *self._args(tangents, _direction)), _packed_direction)

    def batch(self, axis_data: Any, args: tuple[PyTree, ...], dims: tuple[PyTree, ...]) -> Any:
        if self._has("batch") or self._has("batch_dim_rule"):
            refuse_hitypes(f"{self.prim!r} under vmap")
        self._missing("vmap", "`batch` or `batch_dim_rule`")

    def _missing(self, transformation: str, methods: str) -> NoReturn:
        prim: HiPrim = self.params["prim"]
        prim._missing(transformation, methods)


def apply(prim: HiPrim, args: tuple[Any, ...]) -> Any:
    """A primitive of which an argument or result is of a type above arrays, in a traced function.

    Raises:
      TypeError: an argument is of another type.
    """
    in_spec: Any = prim._in_spec
    leaves: list[Any] = in_spec.flatten_up_to(args)
    for aval, x in zip(prim.in_avals_flat, leaves, strict=True):
        if not isinstance(aval, ShapedArray) and hi_type_of(x) != aval:
            raise TypeError(f"{prim!r} is declared for an argument of type {aval}, and got {x!r}")
    results = _OnArrays(prim)(*[_packed(aval, x)
                                for aval, x in zip(prim.in_avals_flat, leaves, strict=True)])
    return pytree.unflatten(prim._out_spec, [
        _unpacked(aval, x) for aval, x in zip(prim.out_avals_flat, results, strict=True)])


hooks.apply = apply
