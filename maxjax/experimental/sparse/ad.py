"""Derivatives of functions of sparse arrays, with respect to their stored values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import maxjax
from maxjax import numpy as jnp
from maxjax import tree_util
from maxjax.experimental.sparse._base import JAXSparse
from maxjax.experimental.sparse.bcoo import BCOO


def is_sparse(x: Any) -> bool:
    """Whether something is a sparse array."""
    return isinstance(x, JAXSparse)


def _of_data(transform: Callable[..., Any], fun: Callable[..., Any],
             argnums: int | Sequence[int], *, value_first: bool = False, aux_last: bool = False,
             **kwargs: Any) -> Callable[..., Any]:
    """A derivative with respect to the data of the sparse arguments.

    Args:
      value_first, aux_last: whether the transformed function returns pairs, with the derivative in
        the second place, or in the first.
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(fun)
    def derivative(*args: Any, **call_kwargs: Any) -> Any:
        places = [number % len(args) for number in numbers]
        trees = [tree_util.tree_flatten(args[place], is_leaf=is_sparse) for place in places]
        data = [[x.data if is_sparse(x) else x for x in leaves] for leaves, _ in trees]

        def of_data(*data: Any) -> Any:
            given = list(args)
            for place, values, (leaves, tree) in zip(places, data, trees, strict=True):
                given[place] = tree_util.tree_unflatten(tree, [
                    x._like(value) if is_sparse(x) else value
                    for x, value in zip(leaves, values, strict=True)])
            return fun(*given, **call_kwargs)

        result = transform(of_data, argnums=tuple(range(len(places))), **kwargs)(*data)

        def sparse(slopes: Any) -> Any:
            made = [tree_util.tree_unflatten(tree, [
                _as_sparse(x, slope) if is_sparse(x) else slope
                for x, slope in zip(leaves, values, strict=True)])
                for values, (leaves, tree) in zip(slopes, trees, strict=True)]
            return made[0] if isinstance(argnums, int) else tuple(made)

        if value_first:
            return result[0], sparse(result[1])
        return (sparse(result[0]), result[1]) if aux_last else sparse(result)
    return derivative


def _as_sparse(x: BCOO, slope: Any) -> BCOO:
    """A derivative of the data's shape, or one for each output, in batch dimensions."""
    extra = slope.shape[:slope.ndim - x.data.ndim]
    indices = jnp.broadcast_to(x.indices, (*extra, *x.indices.shape))
    return BCOO((slope, indices), shape=(*extra, *x.shape), indices_sorted=x.indices_sorted,
                unique_indices=x.unique_indices)


def grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False,
         **kwargs: Any) -> Callable[..., Any]:
    """``jax.grad`` where arguments may be sparse: the gradient of one has its coordinates.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 5.]))
    >>> sparse.grad(lambda m: (m @ jnp.array([2., 3.])))(m).todense()
    Array([0., 3.], dtype=float32)
    """
    return _of_data(maxjax.grad, fun, argnums, aux_last=bool(has_aux), has_aux=has_aux, **kwargs)


def value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0,
                   has_aux: Any = False, **kwargs: Any) -> Callable[..., tuple[Any, Any]]:
    """``jax.value_and_grad`` where arguments may be sparse.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 5.]))
    >>> sparse.value_and_grad(lambda m: (m @ jnp.array([2., 3.])))(m)
    (Array(15., dtype=float32), BCOO(float32[2], nse=1))
    """
    return _of_data(maxjax.value_and_grad, fun, argnums, value_first=True, has_aux=has_aux, **kwargs)


def jacfwd(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           **kwargs: Any) -> Callable[..., Any]:
    """``jax.jacfwd`` where arguments may be sparse; the output's dimensions become batch
    dimensions.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 5.]]))
    >>> sparse.jacfwd(lambda m: m @ jnp.array([2., 3.]))(m)
    BCOO(float32[1, 1, 2], nse=1, n_batch=1)
    """
    return _of_data(maxjax.jacfwd, fun, argnums, aux_last=has_aux, has_aux=has_aux, **kwargs)


def jacrev(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           **kwargs: Any) -> Callable[..., Any]:
    """``jax.jacrev`` where arguments may be sparse; the output's dimensions become batch
    dimensions.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 5.]]))
    >>> sparse.jacrev(lambda m: m @ jnp.array([2., 3.]))(m)
    BCOO(float32[1, 1, 2], nse=1, n_batch=1)
    """
    return _of_data(maxjax.jacrev, fun, argnums, aux_last=has_aux, has_aux=has_aux, **kwargs)


jacobian = jacrev
