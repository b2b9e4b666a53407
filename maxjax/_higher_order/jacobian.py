"""Whole Jacobians and Hessians, by mapping over unit vectors; transposes of linear functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._higher_order.api import eval_shape
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.trace import aval_of, base_trace
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import add_p
from maxjax._primitives.comparison import eq_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.shape import iota, reshape, slice_in_dim
from maxjax._transforms.autodiff import check_callable, jvp, vjp
from maxjax._transforms.vmap import vmap


def _wraps(fun: Callable[..., Any]) -> Callable[..., Any]:
    return functools.wraps(
        fun, assigned=[name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(fun, name)])


def _partial(fun: Callable[..., Any], argnums: int | Sequence[int], args: tuple[Any, ...],
             kwargs: dict[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function of the chosen arguments alone, and those arguments."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    positions = [n if n >= 0 else n + len(args) for n in numbers]

    def chosen(*values: Any) -> Any:
        merged = list(args)
        for position, value in zip(positions, values, strict=True):
            merged[position] = value
        return fun(*merged, **kwargs)

    return chosen, tuple(args[n] for n in positions)


def _check(name: str, tree: Any, holomorphic: bool, allow_int: bool, what: str) -> None:
    for leaf in pytree.leaves(tree):
        dtype = aval_of(base_trace[0].operand(leaf)).dtype
        if holomorphic:
            if not dtypes.is_complex(dtype):
                raise TypeError(
                    f"{name} with holomorphic=True requires {what}s with complex dtype, but got "
                    f"{dtype.name}.")
        elif name == "jacfwd" and not dtypes.is_floating(dtype):
            raise TypeError(
                f"jacfwd requires real-valued {what}s ({what} dtype that is a sub-dtype of "
                f"np.floating), but got {dtype.name}. For holomorphic differentiation, pass "
                "holomorphic=True. For differentiation of non-holomorphic functions involving "
                f"complex {what}s{' or integer inputs' if what == 'input' else ''}, use jax.jvp "
                "directly.")
        elif what == "output" and not dtypes.is_floating(dtype):
            raise TypeError(
                "jacrev requires real-valued outputs (output dtype that is a sub-dtype of "
                f"np.floating), but got {dtype.name}. For holomorphic differentiation, pass "
                "holomorphic=True. For differentiation of non-holomorphic functions involving "
                "complex outputs or integer outputs, use jax.vjp directly.")
        elif what == "input" and not dtypes.is_inexact(dtype) and not allow_int:
            raise TypeError(
                "jacrev requires real- or complex-valued inputs (input dtype that is a sub-dtype "
                f"of np.inexact), but got {dtype.name}. If you want to use Boolean- or "
                "integer-valued inputs, use vjp or set allow_int to True.")


def _basis(leaves: Sequence[Any]) -> list[Any]:
    """For each leaf, the part of all unit vectors of the leaves together: shape (total, ...)."""
    avals = [aval_of(leaf) for leaf in leaves]
    if any(is_dimension(aval.size) for aval in avals):
        return _symbolic_basis(avals)
    total = sum(aval.size for aval in avals)
    parts, start = [], 0
    for aval in avals:
        part = np.zeros((total, aval.size), aval.dtype)
        part[start:start + aval.size] = np.eye(aval.size, dtype=aval.dtype)
        parts.append(base_trace[0].constant(
            part.reshape(total, *aval.shape),
            ShapedArray((total, *aval.shape), aval.dtype, aval.weak_type)))
        start += aval.size
    return parts


def _symbolic_basis(avals: Sequence[ShapedArray]) -> list[Any]:
    """The same for sizes that are symbols: written as operations."""
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


def _split(value: Any, leaves: Sequence[Any], axis: int) -> list[Any]:
    """A result for all unit vectors, taken apart along ``axis`` leaf by leaf."""
    parts, start = [], 0
    for leaf in leaves:
        aval = aval_of(leaf)
        part = slice_in_dim(value, start, start + aval.size, axis)
        start += aval.size
        parts.append(reshape(part, (*value.shape[:axis], *aval.shape, *value.shape[axis + 1:])))
    return parts


def jacfwd(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``fun``, column by column in forward mode.

    Args:
      argnums: the positional argument, or arguments, to differentiate by.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      holomorphic: ``fun`` is holomorphic.

    Returns:
      For each leaf of the result, a pytree like the argument of arrays of shape
      ``result.shape + argument.shape``.
    """
    check_callable(fun)

    @_wraps(fun)
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        chosen, values = _partial(fun, argnums, args, kwargs)
        _check("jacfwd", values, holomorphic, False, "input")
        leaves, tree = pytree.flatten(values)
        leaves = [base_trace[0].operand(leaf) for leaf in leaves]
        arguments = pytree.unflatten(tree, leaves)

        aux: list[Any] = []

        def push(*tangents: Any) -> Any:
            # Auxiliary data do not depend on the tangents: they pass by the map.
            result, tangent, *aux[:] = jvp(
                chosen, arguments, pytree.unflatten(tree, tangents), has_aux=has_aux)
            return result, tangent

        result, jacobian = vmap(push, out_axes=(None, -1))(*_basis(leaves))
        _check("jacfwd", result, holomorphic, False, "output")

        def columns(value: Any) -> Any:
            parts = _split(value, leaves, value.ndim - 1)
            whole = pytree.unflatten(tree, parts)
            return whole[0] if isinstance(argnums, int) else whole

        jacobian = pytree.map(columns, jacobian)
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacfun


def jacrev(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           holomorphic: bool = False, allow_int: bool = False) -> Callable[..., Any]:
    """A function that gives the Jacobian of ``fun``, row by row in reverse mode.

    Arguments and results are those of ``jacfwd``; ``allow_int`` lets integer arguments be.
    """
    check_callable(fun)

    @_wraps(fun)
    def jacfun(*args: Any, **kwargs: Any) -> Any:
        chosen, values = _partial(fun, argnums, args, kwargs)
        _check("jacrev", values, holomorphic, allow_int, "input")
        result, pullback, *aux = vjp(chosen, *values, has_aux=has_aux)
        _check("jacrev", result, holomorphic, False, "output")
        leaves, tree = pytree.flatten(result)

        def pull(*cotangents: Any) -> Any:
            return pullback(pytree.unflatten(tree, cotangents))

        rows = vmap(pull)(*_basis(leaves))
        if isinstance(argnums, int):
            rows = rows[0]
        columns, spec = pytree.flatten(rows)
        parts = [_split(column, leaves, 0) for column in columns]
        jacobian = pytree.unflatten(
            tree, [pytree.unflatten(spec, row) for row in zip(*parts, strict=True)])
        return (jacobian, aux[0]) if has_aux else jacobian

    return jacfun


def hessian(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
            holomorphic: bool = False) -> Callable[..., Any]:
    """A function that gives the Hessian of ``fun``: forward over reverse mode."""
    return jacfwd(jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
                  argnums, has_aux=has_aux, holomorphic=holomorphic)


def linear_transpose(fun: Callable[..., Any], *primals: Any,
                     reduce_axes: Any = ()) -> Callable[..., Any]:
    """The transpose of a linear function.

    Args:
      fun: linear in its arguments.
      primals: arrays, or shapes and dtypes, of the arguments.

    Returns:
      A function of a cotangent of the result that gives a tuple of cotangents of the arguments.
    """
    zeros = pytree.map(
        lambda x: x if not hasattr(x, "dtype") else np.zeros(x.shape, x.dtype), primals)
    out_shape = eval_shape(fun, *primals)

    def transposed(cotangent: Any) -> Any:
        _, pullback = vjp(fun, *zeros)
        if pytree.structure(cotangent) != pytree.structure(out_shape):
            raise TypeError("cotangent tree does not match function output, expected "
                            f"{pytree.structure(out_shape)} but got {pytree.structure(cotangent)}")
        return pullback(cotangent)

    return transposed
