"""Functions of sparse arrays: derivatives, and functions of dense arrays adapted to them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import maxjax
from maxjax import numpy as jnp
from maxjax import tree_util
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array
from maxjax._primitives.arithmetic import (
    add_p,
    div_p,
    mul_p,
    sub_p,
)
from maxjax._primitives.broadcasting import broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.builders import add_any_p
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.joining import concatenate_p
from maxjax._primitives.layout import reshape_p, rev_p, squeeze_p, transpose_p
from maxjax._primitives.slicing import slice_p
from maxjax.experimental.sparse import _ops
from maxjax.experimental.sparse._bcoo import BCOO, JAXSparse
from maxjax.experimental.sparse._methods import _alone


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


# --- derivatives ----------------------------------------------------------------------------------

def _of_data(transform: Callable[..., Any], fun: Callable[..., Any],
             argnums: int | Sequence[int], pairs: bool, **kwargs: Any) -> Callable[..., Any]:
    """A derivative with respect to the data of the sparse arguments."""
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)

    @functools.wraps(fun)
    def derivative(*args: Any, **call_kwargs: Any) -> Any:
        places = [number % len(args) for number in numbers]
        trees = [tree_util.tree_flatten(args[place], is_leaf=_is_sparse) for place in places]
        data = [[x.data if _is_sparse(x) else x for x in leaves] for leaves, _ in trees]

        def of_data(*data: Any) -> Any:
            given = list(args)
            for place, values, (leaves, tree) in zip(places, data, trees, strict=True):
                given[place] = tree_util.tree_unflatten(tree, [
                    x._like(value) if _is_sparse(x) else value
                    for x, value in zip(leaves, values, strict=True)])
            return fun(*given, **call_kwargs)

        result = transform(of_data, argnums=tuple(range(len(places))), **kwargs)(*data)

        def sparse(slopes: Any) -> Any:
            made = [tree_util.tree_unflatten(tree, [
                _as_sparse(x, slope) if _is_sparse(x) else slope
                for x, slope in zip(leaves, values, strict=True)])
                for values, (leaves, tree) in zip(slopes, trees, strict=True)]
            return made[0] if isinstance(argnums, int) else tuple(made)

        return (result[0], sparse(result[1])) if pairs else sparse(result)
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
    if has_aux:
        def with_aux(*args: Any, **call: Any) -> Any:
            (_, aux), slopes = value_and_grad(fun, argnums, has_aux=True, **kwargs)(*args, **call)
            return slopes, aux
        return functools.wraps(fun)(with_aux)
    return _of_data(maxjax.grad, fun, argnums, False, **kwargs)


def value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0,
                   has_aux: Any = False, **kwargs: Any) -> Callable[..., tuple[Any, Any]]:
    """``jax.value_and_grad`` where arguments may be sparse.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 5.]))
    >>> sparse.value_and_grad(lambda m: (m @ jnp.array([2., 3.])))(m)
    (Array(15., dtype=float32), BCOO(float32[2], nse=1))
    """
    return _of_data(maxjax.value_and_grad, fun, argnums, True, has_aux=has_aux, **kwargs)


def jacfwd(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           **kwargs: Any) -> Callable[..., Any]:
    """``jax.jacfwd`` where arguments may be sparse; the output's dimensions become batch
    dimensions.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 5.]]))
    >>> sparse.jacfwd(lambda m: m @ jnp.array([2., 3.]))(m)
    BCOO(float32[1, 1, 2], nse=1, n_batch=1)
    """
    if has_aux:
        raise NotImplementedError("has_aux with sparse derivatives of functions to arrays")
    return _of_data(maxjax.jacfwd, fun, argnums, False, **kwargs)


def jacrev(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False,
           **kwargs: Any) -> Callable[..., Any]:
    """``jax.jacrev`` where arguments may be sparse; the output's dimensions become batch
    dimensions.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 5.]]))
    >>> sparse.jacrev(lambda m: m @ jnp.array([2., 3.]))(m)
    BCOO(float32[1, 1, 2], nse=1, n_batch=1)
    """
    if has_aux:
        raise NotImplementedError("has_aux with sparse derivatives of functions to arrays")
    return _of_data(maxjax.jacrev, fun, argnums, False, **kwargs)


jacobian = jacrev


# --- sparsify -------------------------------------------------------------------------------------

def _one(rule: Callable[..., Any]) -> Callable[..., Any]:
    return lambda args, params: [rule(*args, **params)]


def _mul(x: Any, y: Any, **_: Any) -> Any:
    if not _is_sparse(x):
        x, y = y, x
    return _ops.multiply(x, y)


def _sum(x: BCOO, *, axes: Any, **_: Any) -> Any:
    result = _ops.bcoo_reduce_sum(x, axes=axes)
    return result if result.ndim else result.todense()


def _div(x: Any, y: Any, **_: Any) -> Any:
    if _is_sparse(y):
        raise NotImplementedError("sparse rule for div is not implemented for a sparse divisor")
    return x / y


_RULES: dict[Primitive, Callable[..., list[Any]]] = {
    add_p: _one(lambda x, y, **_: _ops.add(x, y)),
    add_any_p: _one(lambda x, y, **_: _ops.add(x, y)),
    broadcast_in_dim_p: _one(lambda x, *, shape, broadcast_dimensions, **_:
                             _ops.bcoo_broadcast_in_dim(
                                 x, shape=shape, broadcast_dimensions=broadcast_dimensions)),
    concatenate_p: _one(lambda *xs, dimension, **_: _ops.bcoo_concatenate(
        xs, dimension=dimension)),
    div_p: _one(_div),
    dot_general_p: _one(lambda x, y, *, dimension_numbers, **_: _ops.bcoo_dot_general(
        x, y, dimension_numbers=dimension_numbers)),
    mul_p: _one(_mul),
    reduce_sum_p: _one(_sum),
    reshape_p: _one(lambda x, *, new_sizes, **_: _ops.bcoo_reshape(x, new_sizes=new_sizes)),
    rev_p: _one(lambda x, *, dimensions, **_: _ops.bcoo_rev(x, dimensions)),
    slice_p: _one(lambda x, *, start_indices, limit_indices, strides, **_: _ops.bcoo_slice(
        x, start_indices=start_indices, limit_indices=limit_indices, strides=strides)),
    squeeze_p: _one(lambda x, *, dimensions, **_: _ops.bcoo_squeeze(x, dimensions=dimensions)),
    sub_p: _one(lambda x, y, **_: _ops.subtract(x, y)),
    transpose_p: _one(lambda x, *, permutation, **_: _ops.bcoo_transpose(
        x, permutation=permutation)),
}


def _run(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return eval_jaxpr(closed.jaxpr, closed.consts, *args, rule=_apply,
                      literal=lambda literal: jnp.asarray(literal.val))


def _apply(eqn: JaxprEqn, args: list[Any]) -> list[Any]:
    primitive, params = eqn.primitive, eqn.params
    inner = primitive.called(params)
    if inner is not None:
        closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, [])
        return _run(closed, args)
    if not any(map(_is_sparse, args)):
        result = primitive.bind(*args, **params)
        return list(result) if primitive.multiple_results else [result]
    if primitive.keeps_zero:
        # A linear function may be applied separately to each part of a repeated entry.
        mat = args[0] if primitive.linearity is not None else _alone(args[0])
        return [mat._like(primitive.bind(mat.data, **params))]
    rule = _RULES.get(primitive)
    if rule is None:
        raise NotImplementedError(
            f"sparse rule for {primitive.name} is not implemented because it would result in dense "
            "output. If this is your intent, use sparse.todense() to convert your arguments to "
            "dense matrices.")
    return rule(args, params)


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Turns a function of dense arrays into one of sparse arrays.

    Args:
      f: composed of operations that preserve zeros: sums, products, ``sin``, transposes, slices ...
      use_tracer: accepted without effect: ``f`` is traced once and run on the sparse arrays.

    Raises:
      NotImplementedError: an operation would give a dense array.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 5.]))
    >>> sparse.sparsify(lambda x: jnp.sum(2 * x))(m)
    Array(10., dtype=float32)
    """
    @functools.wraps(f)
    def sparse_f(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs), is_leaf=_is_sparse)
        leaves = [x.to_bcoo() if _is_sparse(x) and not isinstance(x, BCOO) else x for x in leaves]
        dense = [_is_sparse(x) or isinstance(x, Array) or jnp.isscalar(x) or hasattr(x, "dtype")
                 for x in leaves]
        known = [x for x, is_array in zip(leaves, dense, strict=True) if is_array]
        types = [maxjax.ShapeDtypeStruct(x.shape, x.dtype) if _is_sparse(x) else x for x in known]

        def of_arrays(*arrays: Any) -> Any:
            rest = iter(arrays)
            given = [next(rest) if is_array else x
                     for x, is_array in zip(leaves, dense, strict=True)]
            call_args, call_kwargs = tree_util.tree_unflatten(tree, given)
            return f(*call_args, **call_kwargs)

        closed, out_types = maxjax.make_jaxpr(of_arrays, return_shape=True)(*types)
        operands = [x if _is_sparse(x) else jnp.asarray(x) for x in known]
        results = _run(closed, operands)
        return tree_util.tree_unflatten(tree_util.tree_structure(out_types), results)
    return sparse_f
