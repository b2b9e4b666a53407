"""Builders that fill in most of a primitive's rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import InternalError
from maxjax._ir.contract import Contract, takes
from maxjax._ir.linearity import SUM
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Compiled, Derivative, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params
from maxjax._primitives import fitting
from maxjax._primitives.broadcasting import (
    broadcast_in_dim,
    broadcast_to_shape,
    expand_axis,
    unbroadcast,
)
from maxjax._primitives.kernels import Kernel
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import (
    aval_of,
    broadcast_shape,
    elementwise_factors,
    is_linear,
    native,
)

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear
    from maxjax._primitives.widths import Accepted


def elementwise(name: str, *, evaluate: Callable[..., Any],
                out_dtype: np.dtype | Callable[..., Any] | None = None,
                jvp: Callable[..., Any] | tuple[Callable[..., Any] | None, ...] | None = None,
                transpose: Callable[..., Any] | None = None,
                abstract: Callable[..., Any] | None = None,
                batch: Callable[..., Any] | None = None, no_derivative: str | None = None,
                accepts: Accepted | None = None, same_dtypes: slice | None = slice(None),
                keeps_zero: bool = False, may_give_nan: bool = False,
                kernels: tuple[Kernel, ...] = (), cheap: bool = False,
                takes_complex: Collection[np.dtype] = (),
                lower: Callable[..., Any] | None = None, contract: Contract | None = None,
                **rules: Any) -> Primitive:
    """A primitive that computes each element of its result from the same element of its operands.

    Operands share a dtype and a rank (sizes equal or 1), except scalars, which join any shape.

    Args:
      evaluate: the NumPy rule; broadcasts as NumPy does.
      out_dtype: of the result, a dtype or a function of the operands' dtypes and the parameters;
        the first operand's if absent.
      jvp: for each operand a function ``(tangent, *operands, out, **params)`` that gives its
        contribution, or None where the derivative is zero. Absent: zero altogether.
      transpose: ``(cotangent, *operands, **params)``, a cotangent of the result's shape for each
        linear operand; broadcasting is undone here.
      no_derivative: why there is no jvp at all, in the words of the error.
      accepts, same_dtypes, keeps_zero, may_give_nan: see ``Values``.
      kernels, cheap, takes_complex: see ``Compiled``.
      lower: if absent, the kernel is used, where there is one.
      contract: if absent, there are as many operands as kernels, jvp or NumPy rule have, and no
        parameters.
      rules: the primitive's others, and groups.
    """
    def default_abstract(*avals: ShapedArray, **params: object) -> ShapedArray:
        shape = broadcast_shape(name, [aval.shape for aval in avals])
        if out_dtype is None:
            dtype = avals[0].dtype
        elif isinstance(out_dtype, np.dtype):
            dtype = out_dtype
        else:
            dtype = out_dtype(*[aval.dtype for aval in avals], **params)
        weak = all(aval.weak_type for aval in avals)
        return ShapedArray(shape, dtype, weak)

    terms = (jvp,) if callable(jvp) else jvp or ()

    def default_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], **params: object
                    ) -> Any:
        out = primitive.bind(*primals, **params)
        total = None
        for rule, tangent in zip(terms, tangents, strict=False):
            if tangent is None or rule is None:
                continue
            term = rule(tangent, *primals, out, **params)
            total = term if total is None else add_tangents(total, term)
        if total is not None and total.shape != out.shape:
            total = broadcast_to_shape(total, out.shape)
        return out, total

    def default_transpose(cotangent: Array, *operands: Array | Linear, **params: object
                          ) -> list[Any]:
        assert transpose is not None
        cotangents = transpose(cotangent, *operands, **params)
        return [
            unbroadcast(value, operand.aval) if is_linear(operand) and value is not None else None
            for value, operand in zip(cotangents, operands, strict=True)]

    def default_batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
                      **params: object) -> Any:
        return batch_elementwise(primitive, operands, axes, params)

    primitive = Primitive(
        name,
        abstract=abstract or default_abstract,
        evaluate=evaluate,
        jvp=None if no_derivative else default_jvp,
        transpose=default_transpose if transpose is not None else None,
        batch=batch or default_batch,
        factors=elementwise_factors,
        values=Values(accepts, same_dtypes, joins_scalars=abstract is None, keeps_zero=keeps_zero,
                      may_give_nan=may_give_nan),
        compiled=Compiled(kernels, cheap, takes_complex),
        derivative=Derivative(missing=no_derivative),
        lower=lower or (kernels[0] if kernels else None),
        contract=contract or takes(
            _operand_count(name, evaluate, kernels, jvp), fitting.NO_KEYS),
        **rules,
    )
    return primitive


def _operand_count(name: str, evaluate: Callable[..., object], kernels: Sequence[Kernel],
                   jvp: Callable[..., object] | tuple[object, ...] | None) -> int:
    if kernels:
        return kernels[0].operands
    if isinstance(jvp, tuple):
        return len(jvp)
    evaluate = inspect.unwrap(evaluate)
    if isinstance(evaluate, np.ufunc):
        return evaluate.nin
    if callable(jvp):
        return len(inspect.signature(jvp).parameters) - 2      # the tangent and the result
    kinds = [x.kind for x in inspect.signature(evaluate).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        raise InternalError(f"the number of operands of {name} must be said in its contract")
    return len([kind for kind in kinds if kind is inspect.Parameter.POSITIONAL_OR_KEYWORD])


def batch_elementwise(primitive: Primitive, operands: Sequence[Array], axes: Sequence[int | None],
                      params: Params) -> tuple[Any, int]:
    """Aligns the batch axes of the operands; unbatched ones get an axis of size 1."""
    ranks = [len(operand.shape) - (axis is not None)
             for operand, axis in zip(operands, axes, strict=True)]
    rank = max(ranks)
    used = {axis for axis in axes if axis is not None}
    if len(used) == 1 and all(
            r == rank or (r == 0 and axis is None)
            for r, axis in zip(ranks, axes, strict=True)):
        common = next(iter(used))
        aligned = [
            operand if axis is not None or not r else expand_axis(operand, common)
            for operand, axis, r in zip(operands, axes, ranks, strict=True)]
        return primitive.bind(*aligned, **params), common
    aligned = []
    for operand, axis, r in zip(operands, axes, ranks, strict=True):
        if axis is None:
            aligned.append(expand_axis(operand, 0) if r else operand)
            continue
        operand = move_axis(operand, axis, 0)
        if r < rank:      # a scalar for each batch element among arrays: sizes of 1 on the right
            operand = broadcast_in_dim(operand, (operand.shape[0],) + (1,) * rank, (0,))
        aligned.append(operand)
    return primitive.bind(*aligned, **params), 0


add_any_p = elementwise(
    "add_any", linearity=SUM,
    evaluate=np.add,
    lower=native("add"),
    jvp=(lambda t, x, y, out: t, lambda t, x, y, out: t),
    transpose=lambda cotangent, x, y: [cotangent, cotangent],
)


def add_tangents(x: Array | None, y: Array) -> Any:
    """The sum of two tangents or cotangents of one value; None is zero."""
    if x is None:
        return y
    if y is None:
        return x
    dtype = aval_of(x).dtype
    if dtype == dtypes.float0:
        return x
    other = aval_of(y).dtype
    if dtypes.is_user_defined(dtype) or dtypes.is_user_defined(other):
        if dtype != other:
            raise TypeError(f"cotangents of one value cannot be added: of dtypes {dtype} and "
                            f"{other}")
        return dtype._rules.add(dtype, x, y)
    return add_any_p.bind(x, y)
