"""The functions that ``vjp`` and ``linearize`` return: linear maps of pytrees.

They are pytrees themselves, whose leaves are the residuals: so they may be results and arguments of
functions under ``jit`` and ``vmap``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.treedef import PyTreeDef
from maxjax._ir.refs import ADD, Ref, read, write
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._primitives.builders import add_tangents
from maxjax._transforms.jvp import instantiate
from maxjax._transforms.linearize import LinearEquation, LinearMap
from maxjax._transforms.transpose import transpose_map


def operands_of(leaves: Sequence[Any]) -> list[Any]:
    runtime = installed.runtime
    return [leaf if isinstance(leaf, Array) else runtime.operand(leaf) for leaf in leaves]


def _delivered(target: Any, cotangent: Any) -> Any:
    """What ``with_refs`` gives for a cotangent; adds it to the target if that is a reference."""
    if isinstance(target, DontWant):
        return DidntWant()
    if not isinstance(target, Ref):
        return cotangent
    if cotangent.shape != target.shape:
        raise ValueError(
            f"Invalid shape for `addupdate`. Ref shape: {target.shape}. Expected shape: "
            f"{target.shape}. Value shape: {cotangent.shape}. Transforms: (). ")
    if cotangent.dtype != target.dtype:
        raise ValueError(f"Invalid dtype for `addupdate`. Ref dtype: {target.dtype.name}. Value "
                         f"shape: {cotangent.dtype.name}. ")
    write(target, add_tangents(read(target), cotangent), ADD)
    return GradRef()


class _Slot:
    """The place of a residual in an equation."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number


class _Form:
    """A linear function without its residuals: the structure of it as a pytree."""

    __slots__ = ("fields", "linear")

    def __init__(self, linear: LinearMap, fields: tuple[Any, ...]):
        self.linear = linear
        self.fields = fields


class LinearFunction:
    """A linear map between pytrees.

    Attributes:
      linear: the map of leaves.
      in_tree, in_avals, out_tree, out_avals: of the function that was linearized.
      location: of the function, for messages.
    """

    def __init__(self, linear: LinearMap, in_tree: Any, in_avals: list[ShapedArray], out_tree: Any,
                 out_avals: list[ShapedArray], location: str = ""):
        self.linear = linear
        self.in_tree = in_tree
        self.in_avals = in_avals
        self.out_tree = out_tree
        self.out_avals = out_avals
        self.location = location
        self._form: _Form | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location})"

    def _flatten(self) -> tuple[list[Any], _Form]:
        numbers: dict[int, int] = {}
        residuals: list[Any] = []

        def place(operand: Any) -> Any:
            if not isinstance(operand, Array):
                return operand
            if id(operand) not in numbers:
                numbers[id(operand)] = len(residuals)
                residuals.append(operand)
            return _Slot(numbers[id(operand)])

        equations = _with_operands(self.linear.equations, place)
        if self._form is None:      # once, so that two structures of it are equal
            self._form = _Form(
                LinearMap(self.linear.inputs, equations, self.linear.outputs),
                (self.in_tree, self.in_avals, self.out_tree, self.out_avals, self.location))
        return residuals, self._form

    @classmethod
    def _unflatten(cls, form: _Form, residuals: Sequence[Any]) -> LinearFunction:
        values = list(residuals)
        linear = form.linear
        filled = LinearMap(linear.inputs, _with_operands(
            linear.equations, lambda x: values[x.number] if type(x) is _Slot else x),
            linear.outputs)
        self = cls(filled, *form.fields)
        self._form = form
        return self

    def check(self, aval: ShapedArray, leaf: Any) -> Any:
        """A tangent of a value of that type, or a cotangent, as an operand; None for float0.

        Raises:
          ValueError: it has another shape or dtype.
        """
        expected = self.type_of_direction(aval)
        if isinstance(leaf, np.ndarray) and leaf.dtype == dtypes.float0:
            got, value = ShapedArray(leaf.shape, dtypes.float0), None
        else:
            value = operands_of([leaf])[0]
            got = value.aval
        if (got.shape != expected.shape or got.dtype != expected.dtype
                or got.manual_axis_type[1:] != expected.manual_axis_type[1:]):
            raise ValueError(self.mismatch(got, expected, aval))
        return value

    # Of what is given, for a value of that type.
    type_of_direction: Callable[[ShapedArray], ShapedArray] = staticmethod(ShapedArray.tangent)

    def mismatch(self, got: ShapedArray, expected: ShapedArray, aval: ShapedArray) -> str:
        """What `check` says of a value of another type than expected."""
        raise NotImplementedError


def _with_operands(equations: Sequence[LinearEquation],
                   change: Callable[[Any], Any]) -> list[LinearEquation]:
    return [LinearEquation(eqn.primitive, [change(x) for x in eqn.operands], eqn.params,
                           eqn.outvars) for eqn in equations]


@dataclasses.dataclass(frozen=True)
class GradRef:
    """Stands for a cotangent that was added to a reference.

    >>> total = jax.new_ref(1.)
    >>> _, f_vjp = jax.vjp(lambda x: 3 * x, 2.)
    >>> f_vjp.with_refs(total)(1.), total
    ((GradRef(),), Ref(4., dtype=float32, weak_type=True))
    """


@dataclasses.dataclass(frozen=True)
class GradValue:
    """Asks ``with_refs`` for a cotangent as a result.

    >>> _, f_vjp = jax.vjp(lambda x, y: x * y, 2., 3.)
    >>> f_vjp.with_refs(jax.ad.GradValue(), jax.ad.DontWant())(1.)
    (Array(3., dtype=float32, weak_type=True), DidntWant())
    """


@dataclasses.dataclass(frozen=True)
class DontWant:
    """Tells ``with_refs`` that a cotangent is not wanted.

    >>> jax.ad.DontWant()
    DontWant()
    """


@dataclasses.dataclass(frozen=True)
class DidntWant:
    """Stands for a cotangent that was not wanted.

    >>> jax.ad.DidntWant()
    DidntWant()
    """


class VJP(LinearFunction):
    """Maps cotangents of a function's results to cotangents of its arguments."""

    type_of_direction = staticmethod(ShapedArray.cotangent)

    def with_refs(self, *maybe_ct_refs: Any) -> Callable[[Any], Any]:
        """The same function, which adds cotangents to references.

        Args:
          maybe_ct_refs: pytrees as the arguments of the function: for each leaf a reference, which
            the cotangent is added to, ``jax.ad.DontWant()``, or anything else: it is a result.

        Raises:
          ValueError: the structure is another; at a call: a reference has another shape or dtype.
        """
        targets, tree = pytree.flatten(maybe_ct_refs)
        if tree != self.in_tree:
            raise ValueError(f"expected references as {PyTreeDef(self.in_tree)}, got "
                             f"{PyTreeDef(tree)}")

        def vjp_with_refs(out_ct: Any) -> Any:
            cotangents = pytree.leaves(self(out_ct))
            return pytree.unflatten(tree, list(map(_delivered, targets, cotangents)))

        return vjp_with_refs

    def __call__(self, out_ct: Any, *extra: Any) -> Any:
        if extra:
            name = self.location.partition(" at ")[0]
            raise TypeError(
                f"The function returned by `jax.vjp` applied to {name} was called with "
                f"{1 + len(extra)} arguments, but functions returned by `jax.vjp` must be called "
                "with a single argument corresponding to the single value returned by the function "
                "being differentiated (even if that returned value is a tuple or other container).")
        leaves, tree = pytree.flatten(out_ct)
        if tree != self.out_tree:
            raise ValueError(
                "unexpected tree structure.\n\nThe argument to a VJP function returned by "
                "`jax.vjp` must match the pytree\nstructure of the differentiated function "
                f"{self.location}.\n\nBut the tree structures differ: got {PyTreeDef(tree)}, "
                f"expected {PyTreeDef(self.out_tree)}.")
        given = [self.check(aval, leaf)
                 for aval, leaf in zip(self.out_avals, leaves, strict=True)]
        return pytree.unflatten(self.in_tree, self.transpose(given))

    def mismatch(self, got: ShapedArray, expected: ShapedArray, aval: ShapedArray) -> str:
        return ("unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                f"{got.str_short()}, but expected {expected.str_short()} because the corresponding "
                f"output of the differentiated function had JAX type {aval.str_short()}")

    def transpose(self, cotangents: list[Any]) -> list[Any]:
        """Cotangents of all leaves of the arguments."""
        results = iter(transpose_map(self.linear, cotangents))
        return [instantiate(next(results), aval.cotangent()) if dtypes.is_inexact(aval.dtype)
                else np.zeros(aval.shape, dtypes.float0) for aval in self.in_avals]


class Linearized(LinearFunction):
    """Maps tangents of a function's arguments to tangents of its results."""

    def __call__(self, *tangents: Any) -> Any:
        leaves, tree = pytree.flatten(tangents)
        if tree != self.in_tree:
            raise TypeError(f"expected {PyTreeDef(self.in_tree)}, got {PyTreeDef(tree)}")
        given = [value for aval, leaf in zip(self.in_avals, leaves, strict=True)
                 if (value := self.check(aval, leaf)) is not None]
        return pytree.unflatten(self.out_tree, [
            instantiate(t, aval)
            for t, aval in zip(self.linear(*given), self.out_avals, strict=True)])

    def mismatch(self, got: ShapedArray, expected: ShapedArray, aval: ShapedArray) -> str:
        return ("linearized function called on tangent values inconsistent with the original "
                f"primal values:\nGot tangent aval {got} for primal aval {aval} but expected "
                f"{expected}.")


for _kind in (VJP, Linearized):
    pytree.register(_kind, _kind._flatten, _kind._unflatten)
