"""Values of types above arrays within traced functions.

There a value is the arrays that its type lowers it to, and a carrier: zeros of its tangent type,
which are added to nothing. Derivatives by the value are derivatives by the carrier; the arrays have
none. Where tangents are of a type above arrays themselves, with a tangent in it for each array in a
value, there is no carrier, and derivatives are by the arrays. So transformations, loops and
branches see a pytree of arrays, and no more.

Where all arrays are there, the value is the object of the user's class again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from maxjax._base import dtypes, pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.custom_primitive import Zero
from maxjax._higher_order.hi_accums import GradAccum, NullAccum
from maxjax._higher_order.hi_primitive import HiPrim
from maxjax._higher_order.hi_rules import AxisData, instantiated, is_zero, transposes_lin
from maxjax._higher_order.hi_types import (
    Aval,
    HighType,
    HiValue,
    hi_type_of,
    hooks,
    lifted_values,
    refuse_hitypes,
)
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.creation import full
from maxjax._transforms import autodiff
from maxjax._transforms.autodiff import operands_of
from maxjax._transforms.batching import MappedValue, ValueAxis
from maxjax._transforms.flags import flags_for
from maxjax._transforms.jvp import instantiate
from maxjax._transforms.linear_functions import of_values


def is_value(x: object) -> bool:
    return x.__class__ is HiValue or hi_type_of(x) is not None


def tangent_type(aval: Aval) -> ShapedArray | None:
    """The type of the carrier; None where values have no derivatives by arrays."""
    try:
        found = aval.to_tangent_aval()
    except NotImplementedError:     # it has none
        return None
    if isinstance(found, ShapedArray) and dtypes.has_tangents(found.dtype):
        return found
    return None


def high_tangent_type(aval: Aval) -> Any:
    """The type above arrays of tangents that hold a tangent for each array; None for others."""
    if isinstance(aval, ShapedArray):
        return None
    try:
        found = aval.to_tangent_aval()
    except NotImplementedError:     # it has none
        return None
    if isinstance(found, ShapedArray) or found != aval.to_ct_aval():
        return None
    of_arrays = [(low.shape, low.dtype) for low in map(ShapedArray.tangent, aval.lo_ty())]
    return found if [(low.shape, low.dtype) for low in found.lo_ty()] == of_arrays else None


def _of_arrays(aval: HighType, arrays: Sequence[object]) -> Any:
    """A value of arrays, without a carrier: the object of the user's class where it can be."""
    return HiValue._unflatten((aval, False), arrays)


def refuse_tangents(aval: Aval) -> NoReturn:
    refuse_hitypes(f"a derivative by or of a value of type {aval}, whose tangents are neither an "
                   "array nor have one for each array in the value")


def _carrier(tangent: ShapedArray) -> Any:
    return full(tangent.shape, 0, tangent.dtype)


def lifted(x: PyTree, carrier: object = None) -> HiValue:
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
    return pytree.map(lambda x: lifted(x) if is_value(x) else x, tree, is_leaf=is_value)


def by_carriers(function: Callable[..., PyTree], args: PyTree
                ) -> tuple[Callable[..., PyTree], Any]:
    """A function of the carriers of the values among its arguments, and these carriers.

    For values without carriers they are values of their tangents' type, of the same arrays.
    """
    leaves, tree = pytree.flatten(args, is_value)
    if not any(map(is_value, leaves)):
        return function, args
    for x in leaves:
        if is_value(x):
            hi_type_of(x).to_tangent_aval()     # may say that it is missing
    given = [lifted(x) if is_value(x) else x for x in leaves]
    high = [high_tangent_type(x.aval) if x.__class__ is HiValue else None for x in given]
    for x, tangent in zip(given, high, strict=True):
        if x.__class__ is HiValue and x.carrier is None and tangent is None:
            refuse_tangents(x.aval)

    @functools.wraps(function)
    def of_carriers(*carriers: PyTree) -> Any:
        chosen = pytree.flatten(carriers, is_value)[0]
        return function(*pytree.unflatten(tree, [
            new if x.__class__ is not HiValue else HiValue(x.aval, x.arrays, new)
            if tangent is None else _of_arrays(x.aval, lifted(new).arrays)
            for x, new, tangent in zip(given, chosen, high, strict=True)]))

    return of_carriers, pytree.unflatten(tree, [
        x if x.__class__ is not HiValue else x.carrier if tangent is None
        else HiValue(tangent, x.arrays, None) for x, tangent in zip(given, high, strict=True)])


def _has_values(tree: PyTree) -> bool:
    return any(x.__class__ is HiValue for x in pytree.leaves(tree, is_value))


def _taken(structure: PyTreeSpec, cotangent: PyTree) -> Any:
    """The cotangent of results, with zeros for the arrays in values."""
    results = pytree.numbered(structure)
    if not _has_values(results):
        return cotangent
    leaves, tree = pytree.flatten(results, is_value)

    def taken(x: PyTree, result: PyTree) -> Any:
        if result.__class__ is not HiValue:
            return x
        if high_tangent_type(result.aval) is not None:
            return HiValue(result.aval, lifted(x).arrays, None)
        return HiValue(
            result.aval, [instantiate(None, low.cotangent()) for low in result.aval.lo_ty()],
            None if result.carrier is None else x)

    return pytree.unflatten(tree, list(map(
        taken, PyTreeDef(tree).flatten_up_to(cotangent), leaves)))


def _found(structure: PyTreeSpec, leaves: Sequence[Value]) -> Any:
    """The tangent of results, which has no arrays in values."""
    results = pytree.numbered(structure)
    if not _has_values(results):
        return pytree.unflatten(structure, leaves)

    def tangent(result: PyTree) -> Any:
        if result.__class__ is not HiValue:
            return leaves[result]
        if (high := high_tangent_type(result.aval)) is not None:
            return _of_arrays(high, [leaves[number] for number in result.arrays])
        if result.carrier is None:
            result.aval.to_tangent_aval()       # may say that it is missing
            refuse_tangents(result.aval)
        return leaves[result.carrier]

    return pytree.map(tangent, results, is_leaf=is_value)


def _elements(xs: PyTree, length: int | None) -> Any:
    """What a loop over ``xs`` is given, stacked."""
    def element(x: PyTree) -> Any:
        if not is_value(x):
            return x
        if length is None:
            raise ValueError("must provide `length` to `scan`, since the leading-axis size of "
                             "non-array (hijax) types cannot be inferred")
        whole = hi_type_of(x)
        one = whole.dec_rank(int(length), whole.leading_axis_spec())
        value = lifted(x)
        _check_tangents(whole, one, int(length))
        return HiValue(one, value.arrays, value.carrier)

    return pytree.map(element, xs, is_leaf=is_value)


def _stacked(structure: PyTreeSpec, length: int) -> PyTreeSpec:
    """The structure of a carry and of what a loop stacks, from that of the body's pair, whose own
    type it has."""
    pair = pytree.numbered(structure)
    _, ys = pair
    stacks = {id(x) for x in pytree.leaves(ys, is_leaf=is_value) if x.__class__ is HiValue}

    def whole(x: PyTree) -> Any:
        if id(x) not in stacks:
            return x
        aval = x.aval.inc_rank(length, x.aval.leading_axis_spec())
        _check_tangents(aval, x.aval, length)
        return HiValue(aval, x.arrays, x.carrier)

    return canonical(pytree.structure(pytree.map(whole, pair, is_leaf=is_value)))


def _check_tangents(whole: HighType, one: HighType, length: int) -> None:
    """Raises where the tangents of several elements are not the elements' tangents, stacked."""
    tangent, tangents = tangent_type(one), tangent_type(whole)
    if (None if tangent is None else tangent.with_leading(length)) != tangents:
        refuse_hitypes(f"a loop over values of type {one}, whose tangents are not stacked")


autodiff.by_carriers = by_carriers
of_values.taken, of_values.found, of_values.lift = _taken, _found, lifted_values
hooks.lift = lift
hooks.elements = _elements
hooks.stacked = _stacked


# --- primitives -----------------------------------------------------------------------------------


def _packed_type(aval: Aval) -> Any:
    if isinstance(aval, ShapedArray):
        return aval
    tangent = tangent_type(aval)
    return tuple(aval.lo_ty()), () if tangent is None else tangent


def _packed(aval: Aval, x: PyTree) -> Any:
    if isinstance(aval, ShapedArray):
        return x
    value = lifted(x)
    return tuple(value.arrays), () if value.carrier is None else value.carrier


def _unpacked(aval: Aval, x: PyTree) -> Any:
    """A value as the methods of a primitive get it."""
    if isinstance(aval, ShapedArray):
        return x
    arrays, carrier = x
    return pytree.unflatten(pytree.structure(
        HiValue(aval, [0] * len(arrays), None if isinstance(carrier, tuple) else 0)),
        [*arrays, *(() if isinstance(carrier, tuple) else (carrier,))])


def _direction(aval: Aval, x: PyTree) -> Any:
    """The tangent or cotangent of a value, from those of arrays and carrier."""
    if isinstance(aval, ShapedArray):
        return x
    if (high := high_tangent_type(aval)) is not None:
        if all(map(is_zero, x[0])):
            return Zero(high)
        return _of_arrays(high, list(map(instantiated, x[0])))
    return Zero(ShapedArray((), dtypes.float0)) if isinstance(x[1], tuple) else x[1]


def _packed_direction(aval: Aval, x: PyTree) -> Any:
    if isinstance(aval, ShapedArray):
        return x
    zeros = tuple([Zero(low.tangent()) for low in aval.lo_ty()])
    if high_tangent_type(aval) is not None:
        return zeros if is_zero(x) else tuple(lifted(x).arrays), ()
    return zeros, () if tangent_type(aval) is None else x


def _whole(aval: Aval, x: PyTree, dims: PyTree) -> tuple[Any, Any]:
    """All elements of what a primitive is given, and how they are mapped."""
    if isinstance(aval, ShapedArray):
        return x, dims
    arrays, carrier = x
    of_arrays, of_carrier = dims
    found = next((dim for dim in (*of_arrays, of_carrier) if isinstance(dim, ValueAxis)), None)
    if found is None:
        if any(dim is not None for dim in of_arrays):
            raise MappedValue("an array")
        return _unpacked(aval, x), None
    if of_carrier is None:      # zeros, made for one element
        tangent = tangent_type(found.whole)
        carrier = () if tangent is None else _carrier(tangent)
    return _unpacked(found.whole, (arrays, carrier)), found.spec


def _packed_whole(aval: Aval, x: PyTree, dim: PyTree) -> tuple[Any, Any]:
    """All elements of what a primitive gives, and how each array is mapped."""
    if isinstance(aval, ShapedArray):
        return x, dim
    packed = _packed(aval, x)
    if dim is None:
        return packed, pytree.map(lambda _: None, packed)
    return packed, pytree.unflatten(
        pytree.structure(packed), axes_of_value(hi_type_of(x), aval, dim))


def axes_of_value(whole: HighType, one: HighType, spec: object) -> list[ValueAxis]:
    """How the arrays in a value and its carrier are mapped."""
    tangent = tangent_type(one)
    return [ValueAxis(spec, whole, aval)
            for aval in (*one.lo_ty(), *(() if tangent is None else (tangent,)))]


def _flags_of_arrays(aval: Aval, flags: Iterator[bool]) -> Any:
    """Which of the arrays and the carrier of a result are differentiated, from the next flag."""
    if isinstance(aval, ShapedArray):
        return next(flags)
    if high_tangent_type(aval) is not None:
        return (next(flags),) * len(aval.lo_ty()), ()
    return (False,) * len(aval.lo_ty()), () if tangent_type(aval) is None else next(flags)


class _AccumOfArrays(GradAccum):
    """The cotangent of a value that derivatives have by its arrays, in those of the arrays."""

    def __init__(self, aval: HighType, accums: Sequence[GradAccum]):
        self.aval = aval
        self.accums = accums

    def accum(self, x: object) -> None:
        if x is not None and not is_zero(x):
            for accum, array in zip(self.accums, lifted(x).arrays, strict=True):
                accum.accum(array)

    def freeze(self) -> Any:
        return _of_arrays(self.aval, [instantiated(x.freeze()) for x in self.accums])


def _accum(aval: Aval, x: PyTree) -> Any:
    """The accumulator for an argument, from those for arrays and carrier."""
    if isinstance(aval, ShapedArray):
        return x
    arrays, carrier = x
    if (high := high_tangent_type(aval)) is not None:
        if all(isinstance(accum, NullAccum) for accum in arrays):
            return NullAccum(high)
        return _AccumOfArrays(high, arrays)
    return NullAccum(ShapedArray((), dtypes.float0)) if isinstance(carrier, tuple) else carrier


def _linear_argument(aval: Aval, x: PyTree) -> Any:
    """An argument of a primitive that is transposed, or the accumulator in its place."""
    if isinstance(aval, ShapedArray) or not any(
            isinstance(leaf, GradAccum) for leaf in (*x[0], x[1])):
        return _unpacked(aval, x)
    # Beside arrays that it is linear in, a value may have constants, zeros.
    return _accum(aval, ([leaf if isinstance(leaf, GradAccum) else NullAccum(None)
                          for leaf in x[0]], x[1]))


class _OnArrays(HiPrim):
    """A primitive on values of types above arrays, as one on arrays and carriers."""

    prim: HiPrim

    def __init__(self, prim: HiPrim):
        self.in_avals = tuple(map(_packed_type, prim.in_avals_flat))
        self.out_aval = tuple(map(_packed_type, prim.out_avals_flat))
        self.params = {"prim": prim}
        self.effects = prim.effects
        super().__init__()

    def __repr__(self) -> str:
        return repr(self.prim)

    @property
    def shown_as(self) -> HiPrim:
        return self.prim

    def _has(self, method: str) -> bool:
        return self.params["prim"]._has(method)

    def _missing(self, transformation: str, methods: str) -> NoReturn:
        self.prim._missing(transformation, methods)

    def _args(self, packed: Sequence[PyTree],
              of: Callable[[Aval, PyTree], PyTree] = _unpacked) -> Any:
        prim = self.params["prim"]
        return pytree.unflatten(prim._in_spec, [
            of(aval, x) for aval, x in zip(prim.in_avals_flat, packed, strict=True)])

    def _result(self, out: PyTree,
                of: Callable[[Aval, PyTree], PyTree] = _packed) -> tuple[Any, ...]:
        prim = self.params["prim"]
        return tuple([of(aval, x) for aval, x in zip(
            prim.out_avals_flat, prim._out_spec.flatten_up_to(out), strict=True)])

    def expand(self, *packed: PyTree) -> Any:
        return self._result(self.prim.expand(*self._args(packed, lambda aval, x: (
            x if isinstance(aval, ShapedArray) else aval.raise_val(*x[0])))))

    @property
    def _transposes_lin(self) -> bool:
        return transposes_lin(type(self.prim))

    def _flags(self, nzs_in: PyTree) -> Any:
        return self._args(nzs_in, lambda aval, flag: (
            flag if isinstance(aval, ShapedArray) else any(flag[0])
            if high_tangent_type(aval) is not None else flag[1] is True))

    def _check_tangents(self) -> None:
        """Raises where values have tangents which are no arrays: they would count as zero."""
        for aval in (*self.prim.in_avals_flat, *self.prim.out_avals_flat):
            if not isinstance(aval, ShapedArray) and not isinstance(
                    aval.to_tangent_aval(), ShapedArray) and high_tangent_type(aval) is None:
                refuse_tangents(aval)

    def _with_result(self, out: PyTree, residuals: PyTree, *rest: PyTree) -> tuple[Any, ...]:
        """What a rule gives, for arrays and carriers."""
        if rest:
            flags = iter(flags_for(
                rest[0], pytree.numbered(self.prim._out_spec), "nzs_out",
                f"the nzs_out returned by {type(self.prim).__name__}"))
            nonzero = tuple([_flags_of_arrays(aval, flags) for aval in self.prim.out_avals_flat])
            rest = (nonzero, *map(lift, rest[1:]))
        return self._result(out), lift(residuals), *rest

    def vjp_fwd(self, nzs_in: PyTree, /, *packed: PyTree) -> Any:
        self._check_tangents()
        return self._with_result(*self.prim.vjp_fwd(self._flags(nzs_in), *self._args(packed)))

    def vjp_bwd(self, *given: PyTree) -> Any:
        *residuals, outgrad = given[:len(given) - len(self.in_avals)]
        direction = pytree.unflatten(self.prim._out_spec, [
            _direction(aval, x) for aval, x in zip(
                self.prim.out_avals_flat, outgrad, strict=True)])
        accums = given[len(given) - len(self.in_avals):]
        return self.prim.vjp_bwd(*residuals, direction, *self._args(accums, _accum))

    def transpose(self, out_ct: PyTree, *maybe_accums: PyTree) -> Any:
        direction = pytree.unflatten(self.prim._out_spec, list(map(
            _direction, self.prim.out_avals_flat, out_ct)))
        return self.prim.transpose(direction, *self._args(maybe_accums, _linear_argument))

    def jvp(self, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> Any:
        self._check_tangents()
        out, tangent = self.prim.jvp(self._args(primals), self._args(tangents, _direction))
        return self._result(out), self._result(tangent, _packed_direction)

    def lin(self, nzs_in: PyTree, *primals: PyTree) -> Any:
        self._check_tangents()
        return self._with_result(*self.prim.lin(self._flags(nzs_in), *self._args(primals)))

    def linearized(self, *given: PyTree) -> Any:
        residuals = given[:len(given) - len(self.in_avals)]
        tangents = given[len(given) - len(self.in_avals):]
        return self._result(self.prim.linearized(
            *residuals, *self._args(tangents, _direction)), _packed_direction)

    def batch(self, axis_data: AxisData, args: tuple[PyTree, ...], dims: tuple[PyTree, ...]) -> Any:
        prim = self.prim
        wholes, specs = zip(*map(_whole, prim.in_avals_flat, args, dims), strict=True) if (
            args) else ((), ())
        out, out_dims = prim.batch(axis_data, pytree.unflatten(prim._in_spec, wholes),
                                   pytree.unflatten(prim._in_spec, specs))
        packed = [_packed_whole(aval, x, dim) for aval, x, dim in zip(
            prim.out_avals_flat, prim._out_spec.flatten_up_to(out),
            prim._out_spec.flatten_up_to(out_dims), strict=True)]
        return tuple([x for x, _ in packed]), tuple([dims for _, dims in packed])


def apply(prim: HiPrim, args: tuple[PyTree, ...]) -> Any:
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
