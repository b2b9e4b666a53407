"""The rules of primitives for sparse values, by which ``sparsify`` runs a function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import maxjax
from maxjax import lax, tree_util
from maxjax._higher_order.cond import cond_p
from maxjax._higher_order.scan import scan_p
from maxjax._higher_order.while_loop import while_p
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._primitives.arithmetic import (
    abs_p,
    add_p,
    conj_p,
    div_p,
    imag_p,
    integer_pow_p,
    mul_p,
    neg_p,
    real_p,
    sign_p,
    square_p,
    sub_p,
)
from maxjax._primitives.broadcasting import broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.builders import add_any_p
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.convert import convert_element_type_p
from maxjax._primitives.convolution import conv_general_dilated_p
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.identities import stage_p
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.joining import concatenate_p
from maxjax._primitives.layout import copy_p, reshape_p, rev_p, squeeze_p, transpose_p
from maxjax._primitives.slicing import slice_p
from maxjax._primitives.special import bessel_i1e_p
from maxjax._primitives.stacking import stack_p
from maxjax._primitives.transcendental import (
    asin_p,
    asinh_p,
    atan_p,
    atanh_p,
    expm1_p,
    log1p_p,
    sin_p,
    sinh_p,
    sqrt_p,
    tan_p,
    tanh_p,
)
from maxjax.experimental.sparse import _arithmetic, bcoo, bcsr
from maxjax.experimental.sparse.api import todense_p
from maxjax.experimental.sparse.bcoo import BCOO
from maxjax.experimental.sparse.bcsr import BCSR
from maxjax.experimental.sparse.transform import (
    Rule,
    SparsifyEnv,
    SparsifyValue,
    _eval_closed,
    _is_sparse_obj,
    _to_array,
    _to_spvalue,
    sparse_rules_bcoo,
    sparse_rules_bcsr,
)

_LINEAR = (conj_p, convert_element_type_p, copy_p, imag_p, neg_p, real_p, stage_p)
_NONLINEAR = (abs_p, asin_p, asinh_p, atan_p, atanh_p, bessel_i1e_p, expm1_p, log1p_p, sign_p,
              sin_p, sinh_p, sqrt_p, square_p, tan_p, tanh_p)


def _unique_value(spenv: SparsifyEnv, value: SparsifyValue) -> SparsifyValue:
    if value.unique_indices:
        return value
    mat = _to_array(spenv, value)
    if value.is_bcsr():
        return _to_spvalue(spenv, bcsr.bcsr_sum_duplicates(mat, mat.nse))
    return _to_spvalue(spenv, _arithmetic.unique(mat))


def _with_data(spenv: SparsifyEnv, value: SparsifyValue, data: Any) -> SparsifyValue:
    return value._replace(data_ref=spenv._push(data))


def _unary(primitive: Primitive, linear: bool) -> Rule:
    def rule(spenv: SparsifyEnv, value: SparsifyValue, **params: Any) -> list[SparsifyValue]:
        # A linear function may be applied separately to each part of a repeated element.
        value = value if linear else _unique_value(spenv, value)
        return [_with_data(spenv, value, primitive.bind(spenv.data(value), **params))]
    return rule


for _prim in _LINEAR + _NONLINEAR:
    sparse_rules_bcoo[_prim] = sparse_rules_bcsr[_prim] = _unary(_prim, _prim in _LINEAR)


def _integer_pow(spenv: SparsifyEnv, value: SparsifyValue, *, y: int) -> list[SparsifyValue]:
    if y > 0:
        value = _unique_value(spenv, value)
        return [_with_data(spenv, value, integer_pow_p.bind(spenv.data(value), y=y))]
    return [_to_spvalue(spenv, _arithmetic.power(_to_array(spenv, value), y))]


def _of_arrays(function: Callable[..., Any], *keep: str, several: bool = False) -> Rule:
    """The rule of a function of arrays: ``keep`` names the parameters that it takes."""
    def rule(spenv: SparsifyEnv, *values: SparsifyValue, **params: Any) -> list[SparsifyValue]:
        arrays = [_to_array(spenv, value) for value in values]
        given = {key: params[key] for key in keep}
        out = function(arrays, **given) if several else function(*arrays, **given)
        return [_to_spvalue(spenv, out)]
    return rule


def _shared(left: SparsifyValue, right: SparsifyValue) -> bool:
    return left.is_sparse() and right.is_sparse() and left.indices_ref == right.indices_ref \
        and left.shape == right.shape


def _elementwise(of_data: Callable[[Any, Any], Any], of_arrays: Callable[[Any, Any], Any],
                 linear: bool) -> Rule:
    """The rule of an operation that is one of the data where the indices are shared."""
    def rule(spenv: SparsifyEnv, left: SparsifyValue, right: SparsifyValue,
             **params: Any) -> list[SparsifyValue]:
        if _shared(left, right) and (linear or left.unique_indices):
            data = of_data(spenv.data(left), spenv.data(right))
            return [_with_data(spenv, left, data)]
        return [_to_spvalue(spenv, of_arrays(_to_array(spenv, left), _to_array(spenv, right)))]
    return rule


def _sum(mat: BCOO, *, axes: Any) -> Any:
    result = bcoo.bcoo_reduce_sum(mat, axes=axes)
    return result if result.ndim else result.todense()


def _stacked(arrays: Sequence[Any], *, axis: int) -> Any:
    kind = bcsr if isinstance(arrays[0], BCSR) else bcoo
    broadcast = kind.bcsr_broadcast_in_dim if kind is bcsr else kind.bcoo_broadcast_in_dim
    concatenate = kind.bcsr_concatenate if kind is bcsr else kind.bcoo_concatenate
    mat = arrays[0]
    shape = (*mat.shape[:axis], 1, *mat.shape[axis:])
    places = [place for place in range(mat.ndim + 1) if place != axis]
    return concatenate([broadcast(x, shape=shape, broadcast_dimensions=places) for x in arrays],
                       dimension=axis)


def _dynamic_slice(mat: BCOO, *starts: Any, slice_sizes: Any) -> Any:
    return bcoo.bcoo_dynamic_slice(mat, starts, slice_sizes)


def _gather(mat: BCOO, starts: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any) -> Any:
    return bcoo.bcoo_gather(mat, starts, dimension_numbers, slice_sizes, mode=mode)


def _conv(lhs: Any, rhs: Any, *, window_strides: Any, padding: Any, lhs_dilation: Any,
          rhs_dilation: Any, feature_group_count: int, batch_group_count: int) -> Any:
    return bcoo.bcoo_conv_general_dilated(
        lhs, rhs, window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation, feature_group_count=feature_group_count,
        batch_group_count=batch_group_count)


def _todense(spenv: SparsifyEnv, *values: SparsifyValue, tree: Any) -> list[SparsifyValue]:
    value, = values
    array = _to_array(spenv, value)
    return [spenv.dense(array.todense() if _is_sparse_obj(array) else array)]


# --- loops and branches ---------------------------------------------------------------------------

def _plain(x: Any) -> Any:
    """A sparse array that promises nothing, so that every step of a loop has the same."""
    if not _is_sparse_obj(x):
        return x
    return type(x)(x._bufs, shape=x.shape)


def _run(closed: ClosedJaxpr, arrays: Sequence[Any], plain: bool = True) -> list[Any]:
    """The results of a jaxpr of arrays."""
    spenv = SparsifyEnv()
    values = [_to_spvalue(spenv, x) for x in arrays]
    outs = [_to_array(spenv, value) for value in _eval_closed(spenv, closed, values)]
    return [_plain(x) for x in outs] if plain else outs


def _while(spenv: SparsifyEnv, *values: SparsifyValue, cond_jaxpr: ClosedJaxpr, cond_nconsts: int,
           body_jaxpr: ClosedJaxpr, body_nconsts: int, **_: Any) -> list[SparsifyValue]:
    arrays = [_to_array(spenv, value) for value in values]
    of_cond, of_body = arrays[:cond_nconsts], arrays[cond_nconsts:cond_nconsts + body_nconsts]
    carry = [_plain(x) for x in arrays[cond_nconsts + body_nconsts:]]
    outs = lax.while_loop(lambda carry: _run(cond_jaxpr, [*of_cond, *carry])[0],
                          lambda carry: _run(body_jaxpr, [*of_body, *carry]), carry)
    return [_to_spvalue(spenv, x) for x in outs]


def _scan(spenv: SparsifyEnv, *values: SparsifyValue, jaxpr: ClosedJaxpr, num_consts: int,
          num_carry: int, length: int, reverse: bool, unroll: Any,
          **_: Any) -> list[SparsifyValue]:
    arrays = [_to_array(spenv, value) for value in values]
    consts, xs = arrays[:num_consts], arrays[num_consts + num_carry:]
    carry = [_plain(x) for x in arrays[num_consts:num_consts + num_carry]]

    def step(carry: list[Any], xs: list[Any]) -> tuple[list[Any], list[Any]]:
        outs = _run(jaxpr, [*consts, *carry, *xs])
        return outs[:num_carry], outs[num_carry:]

    carry, ys = lax.scan(step, carry, xs, length=length, reverse=reverse, unroll=unroll)
    return [_to_spvalue(spenv, x) for x in (*carry, *ys)]


def _cond(spenv: SparsifyEnv, which: SparsifyValue, *values: SparsifyValue,
          branches: Sequence[ClosedJaxpr], **_: Any) -> list[SparsifyValue]:
    arrays = [_to_array(spenv, value) for value in values]
    functions = [functools.partial(lambda closed, *args: _run(closed, args), closed)
                 for closed in branches]
    trees = [tree_util.tree_structure(maxjax.eval_shape(function, *arrays))
             for function in functions]
    if any(tree != trees[0] for tree in trees):
        raise TypeError("sparsified true_fun output must have same type structure as sparsified "
                        f"false_fun output, got {trees[-1]} and {trees[0]}.")
    outs = lax.switch(spenv.data(which).astype(np.int32), functions, *arrays)
    return [_to_spvalue(spenv, x) for x in outs]


# --- tables ---------------------------------------------------------------------------------------

_numbers = ("dimension_numbers", "preferred_element_type")
sparse_rules_bcoo.update({
    add_p: _elementwise(lax.add, _arithmetic.add, linear=True),
    add_any_p: _elementwise(lax.add, _arithmetic.add, linear=True),
    sub_p: _elementwise(lax.sub, _arithmetic.subtract, linear=True),
    mul_p: _elementwise(lax.mul, _arithmetic.multiply, linear=False),
    div_p: _of_arrays(_arithmetic.divide),
    integer_pow_p: _integer_pow,
    broadcast_in_dim_p: _of_arrays(bcoo.bcoo_broadcast_in_dim, "shape", "broadcast_dimensions"),
    concatenate_p: _of_arrays(bcoo.bcoo_concatenate, "dimension", several=True),
    stack_p: _of_arrays(_stacked, "axis", several=True),
    conv_general_dilated_p: _of_arrays(
        _conv, "window_strides", "padding", "lhs_dilation", "rhs_dilation", "feature_group_count",
        "batch_group_count"),
    dot_general_p: _of_arrays(bcoo.bcoo_dot_general, *_numbers),
    dynamic_slice_p: _of_arrays(_dynamic_slice, "slice_sizes"),
    gather_p: _of_arrays(_gather, "dimension_numbers", "slice_sizes", "mode"),
    reduce_sum_p: _of_arrays(_sum, "axes"),
    reshape_p: _of_arrays(bcoo.bcoo_reshape, "new_sizes"),
    rev_p: _of_arrays(bcoo.bcoo_rev, "dimensions"),
    slice_p: _of_arrays(bcoo.bcoo_slice, "start_indices", "limit_indices", "strides"),
    squeeze_p: _of_arrays(bcoo.bcoo_squeeze, "dimensions"),
    transpose_p: _of_arrays(bcoo.bcoo_transpose, "permutation"),
    todense_p: _todense,
    while_p: _while,
    scan_p: _scan,
    cond_p: _cond,
})
sparse_rules_bcsr.update({
    integer_pow_p: _integer_pow,
    broadcast_in_dim_p: _of_arrays(bcsr.bcsr_broadcast_in_dim, "shape", "broadcast_dimensions"),
    concatenate_p: _of_arrays(bcsr.bcsr_concatenate, "dimension", several=True),
    stack_p: _of_arrays(_stacked, "axis", several=True),
    dot_general_p: _of_arrays(bcsr.bcsr_dot_general, *_numbers),
    todense_p: _todense,
})
