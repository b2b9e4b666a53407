"""Whole Jacobians and Hessians, by mapping over unit vectors; the two passes of reverse mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree
from maxjax._base.signatures import wraps
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import DType
from maxjax._primitives.arithmetic import add_p
from maxjax._primitives.comparison import eq_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import iota
from maxjax._primitives.layout import reshape
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.slicing import slice_in_dim
from maxjax._primitives.varying import vary
from maxjax._transforms.autodiff import (
    argument_numbers,
    arguments_of,
    check_callable,
    check_input,
    jvp,
    of_arguments,
    operands_of,
    value_and_pullback,
)
from maxjax._transforms.linear_functions import like_argument
from maxjax._transforms.vmap import vmap, vmap_output


def _check_forward_input(dtype: DType, holomorphic: bool) -> None:
    if dtypes.is_opaque(dtype):
        raise TypeError(f"jacfwd with input element type {dtype}")
    _check_complex("jacfwd", "inputs", dtype, holomorphic)
    if not holomorphic and not dtypes.is_floating(dtype):
        raise TypeError(
            "jacfwd requires real-valued inputs (input dtype that is a sub-dtype of np.floating), "
            f"but got {dtype.name}. For holomorphic differentiation, pass holomorphic=True. For "
            "differentiation of non-holomorphic functions involving complex inputs or integer "
            "inputs, use jax.jvp directly.")


def _check_reverse_output(dtype: DType, holomorphic: bool) -> None:
    _check_complex("jacrev", "outputs", dtype, holomorphic)
    if holomorphic or dtypes.is_floating(dtype):
        return
    advice = ("For holomorphic differentiation, pass holomorphic=True. For differentiation of "
              "non-holomorphic functions involving complex outputs, use jax.vjp directly."
              if dtypes.is_complex(dtype) else
              "For differentiation of functions with integer outputs, use jax.vjp directly.")
    raise TypeError(
        "jacrev requires real-valued outputs (output dtype that is a sub-dtype of np.floating), "
        f"but got {dtype.name}. {advice}")


def _check_complex(name: str, what: str, dtype: DType, holomorphic: bool) -> None:
    if holomorphic and not dtypes.is_complex(dtype):
        raise TypeError(
            f"{name} with holomorphic=True requires {what} with complex dtype, but got "
            f"{dtype.name}.")


def _dtypes(tree: PyTree) -> list[Any]:
    return [aval_of(x).dtype for x in arguments_of(pytree.leaves(tree))]


# More unit vectors than this are computed where they are read: stored, they would take megabytes of
# each program and file, and gigabytes where one number has a hundred thousand results.
_MOST_STORED = 1024


def _basis(leaves: Sequence[Array]) -> list[Any]:
    """For each leaf, the part of all unit vectors of the leaves together: shape (total, ...)."""
    avals = [aval_of(leaf) for leaf in leaves]
    total = sum(aval.size for aval in avals)
    if any(is_dimension(aval.size) for aval in avals) or total > _MOST_STORED:
        return _computed_basis(avals)
    parts, start = [], 0
    for aval in avals:
        part = np.zeros((total, aval.size), aval.dtype)
        part[start:start + aval.size] = np.eye(aval.size, dtype=aval.dtype)
        parts.append(installed.runtime.constant(
            part.reshape(total, *aval.shape),
            ShapedArray((total, *aval.shape), aval.dtype, aval.weak_type)))
        start += aval.size
    return parts


def _computed_basis(avals: Sequence[ShapedArray]) -> list[Any]:
    """``_basis`` as operations: of sizes that are symbols, and fused with what reads it."""
    total = sum(aval.size for aval in avals)
    parts, start = [], 0
    for aval in avals:
        shape = (total, aval.size)
        rows, columns = (iota(dtypes.int32, shape, dim) for dim in (0, 1))
        ones = eq_p.bind(rows, add_p.bind(columns, scalar_like(start, dtypes.int32)))
        part = convert_element_type(ones, aval.dtype, aval.weak_type)
        parts.append(reshape(part, (total, *aval.shape)))
        start += aval.size
    return parts


def _column(tangent: Array, result: Array) -> Any:
    """A tangent as weakly typed as its result; zeros of the result's own type for float0."""
    aval = aval_of(result)
    if dtypes.is_inexact(aval.dtype):
        return like_argument(tangent, aval)
    return installed.runtime.constant(np.zeros(aval.shape, dtypes.physical(aval.dtype)), aval)


def _row(cotangent: Array, aval: ShapedArray) -> Any:
    """A cotangent as weakly typed as its argument; zeros of the argument's own type for float0."""
    if dtypes.is_inexact(aval.dtype):
        return like_argument(cotangent, aval)
    return installed.runtime.constant(np.zeros(aval.shape, dtypes.physical(aval.dtype)), aval)


def _split(value: Array, leaves: Sequence[Array], axis: int) -> list[Any]:
    """A result for all unit vectors, taken apart along ``axis`` leaf by leaf."""
    parts, start = [], 0
    for leaf in leaves:
        aval = aval_of(leaf)
        part = slice_in_dim(value, start, start + aval.size, axis)
        start += aval.size
        parts.append(reshape(part, (*value.shape[:axis], *aval.shape, *value.shape[axis + 1:])))
    return parts


def jacfwd(fun: Callable[..., PyTree], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``fun``, column by column in forward mode.

    Args:
      fun: a function of arrays or pytrees of them.
      argnums: the positional argument or arguments to differentiate with respect to.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      holomorphic: ``fun`` is holomorphic.

    Returns:
      For each leaf of the result, a pytree like the argument of arrays of shape
      ``result.shape + argument.shape``.

    Raises:
      TypeError: ``fun`` is not callable. At a call: an argument is no real array, without
        ``holomorphic``.

    See also: ``jax.jacrev``, ``jax.hessian``, ``jax.jvp``, ``jax.linearize``.
    """
    check_callable(fun)

    @wraps(fun)
    @boundary
    def jacfun(*args: PyTree, **kwargs: PyTree) -> Any:
        chosen, values = of_arguments(fun, argument_numbers(argnums), args, kwargs)
        for dtype in _dtypes(values):
            _check_forward_input(dtype, holomorphic)
        leaves, tree = pytree.flatten(values)
        leaves = operands_of(leaves)
        arguments = pytree.unflatten(tree, leaves)

        aux: list[Any] = []

        def push(*tangents: PyTree) -> Any:
            # Auxiliary data do not depend on the tangents: they bypass the map.
            result, tangent, *aux[:] = jvp(
                chosen, arguments, pytree.unflatten(tree, tangents), has_aux=has_aux)
            for leaf in pytree.leaves(aux):
                if not isinstance(leaf, Array):
                    vmap_output(leaf)
            result = _arrays(result)
            return result, pytree.map(_column, _arrays(tangent), result)

        result, jacobian = vmap(push, out_axes=(None, -1))(*_basis(leaves))
        for dtype in _dtypes(result):
            _check_complex("jacfwd", "outputs", dtype, holomorphic)

        def columns(value: PyTree) -> Any:
            parts = _split(value, leaves, value.ndim - 1)
            whole = pytree.unflatten(tree, parts)
            return whole[0] if isinstance(argnums, int) else whole

        jacobian = pytree.map(columns, jacobian)
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacfun


def jacrev(fun: Callable[..., PyTree], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``fun``, row by row in reverse mode.

    Arguments and results are those of ``jacfwd``; ``allow_int`` allows integer arguments.

    Args:
      fun: a function of arrays or pytrees of them.
      argnums: the positional argument or arguments to differentiate with respect to.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      holomorphic: ``fun`` is holomorphic.
      allow_int: integer arguments are allowed; their derivatives are of dtype float0.

    Returns:
      As of ``jacfwd``. It takes one backward pass for each element of the result, so it is the
      better one for results of fewer elements than the arguments have.

    Raises:
      TypeError: ``fun`` is not callable. At a call: an argument is an integer, without
        ``allow_int``.

    See also: ``jax.jacfwd``, ``jax.grad``, ``jax.hessian``, ``jax.vjp``.
    """
    check_callable(fun)

    @wraps(fun)
    @boundary
    def jacfun(*args: PyTree, **kwargs: PyTree) -> Any:
        chosen, values = of_arguments(fun, argument_numbers(argnums), args, kwargs)
        for leaf in pytree.leaves(values):
            check_input("jacrev", holomorphic, allow_int, leaf)
        result, pullback, *aux = value_and_pullback(chosen, values, has_aux)
        for dtype in _dtypes(result):
            _check_reverse_output(dtype, holomorphic)
        leaves, tree = pytree.flatten(result)
        leaves = operands_of(leaves)
        avals = pytree.map(lambda x: aval_of(operands_of([x])[0]), values)

        def pull(*cotangents: PyTree) -> Any:
            given = [vary(x, leaf.aval.vma) for x, leaf in zip(cotangents, leaves, strict=True)]
            return pytree.map(_row, _arrays(pullback(pytree.unflatten(tree, given))), avals)

        rows = vmap(pull)(*_basis(leaves))
        if isinstance(argnums, int):
            rows = rows[0]
        columns, spec = pytree.flatten(rows)
        parts = [_split(column, leaves, 0) for column in columns]
        jacobian = pytree.unflatten(
            tree, [pytree.unflatten(spec, row) for row in zip(*parts, strict=True)])
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacfun


def _arrays(tree: PyTree) -> Any:
    """The pytree with all leaves as arrays: some may be Python's numbers."""
    leaves, spec = pytree.flatten(tree)
    return pytree.unflatten(spec, operands_of(leaves))


def hessian(fun: Callable[..., PyTree], argnums: int | Sequence[int] = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable[..., Any]:
    """A function that gives the Hessian of ``fun``: forward over reverse mode.

    Args:
      fun: a function of arrays or pytrees of them, such as one with a scalar result.
      argnums: the positional argument or arguments to differentiate with respect to.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      holomorphic: ``fun`` is holomorphic.

    Returns:
      A function that gives, for each leaf of the result, a pytree like the argument of pytrees like
      it, of arrays of shape ``result.shape + argument.shape + argument.shape``.

    Raises:
      TypeError: ``fun`` is not callable. At a call: an argument is no real array, without
        ``holomorphic``.

    See also: ``jax.jacfwd``, ``jax.jacrev``, ``jax.grad``, ``jax.jvp``.
    """
    return jacfwd(jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
                  argnums, has_aux=has_aux, holomorphic=holomorphic)


def fwd_and_bwd(fun: Callable[..., PyTree], argnums: int | Sequence[int], has_aux: bool = False,
                jitted: bool = True) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward pass of a function, each traced once for a signature.

    Args:
      argnums: the positional argument or arguments to differentiate with respect to.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      jitted: gives both under ``jit``.

    Returns:
      ``fwd(*args, **kwargs)``, which gives ``(result, residuals)`` or ``(result, residuals, aux)``,
      and ``bwd(residuals, cotangent)``, which gives the cotangents of the arguments.

    >>> fwd, bwd = jax.fwd_and_bwd(lambda x, y: jnp.sin(x) * y, argnums=1)
    >>> value, residuals = fwd(0.5, 2.0)
    >>> bwd(residuals, 1.0)
    Array(0.47942555, dtype=float32, weak_type=True)
    """
    check_callable(fun)

    def fwd(*args: PyTree, **kwargs: PyTree) -> Any:
        chosen, values = of_arguments(fun, argument_numbers(argnums), args, kwargs)
        return value_and_pullback(chosen, values, has_aux)

    def bwd(residuals: PyTree, cotangent: PyTree) -> Any:
        cotangents = residuals(cotangent)
        return cotangents[0] if isinstance(argnums, int) else cotangents

    return (make_jit(fwd), make_jit(bwd)) if jitted else (fwd, bwd)
