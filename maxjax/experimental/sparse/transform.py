"""sparsify: functions of dense arrays made functions of sparse ones.

A function is traced as one of dense arrays, and its jaxpr is run on *sparse values*, which say
which buffers of an environment an array is made of: so two values that share their indices are
known to. A rule takes the environment and the values of an equation's operands. With
``use_tracer`` there is no jaxpr: the function itself runs, on tracers that stand for the values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import maxjax
from maxjax import numpy as jnp
from maxjax import tree_util
from maxjax._higher_order.composed import HIDDEN
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array, Trace, Tracer, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._primitives.comparison import eq_p, ge_p, gt_p, le_p, lt_p, ne_p
from maxjax._primitives.special import bessel_i0e_p
from maxjax._primitives.transcendental import acos_p, acosh_p, cos_p, cosh_p, exp_p, log_p
from maxjax.experimental.sparse import _arithmetic, bcoo
from maxjax.experimental.sparse._base import JAXSparse
from maxjax.experimental.sparse.bcoo import BCOO
from maxjax.experimental.sparse.bcsr import BCSR


class SparsifyValue(NamedTuple):
    """An array by its buffers in an environment; a dense one has no indices."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_sparse(self) -> bool:
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """The buffers of sparse values."""

    def __init__(self, bufs: Sequence[Any] = ()):
        self._buffers = list(bufs)

    def _push(self, arr: Any) -> int:
        self._buffers.append(jnp.asarray(arr))
        return len(self._buffers) - 1

    def _at(self, ref: int | None) -> Any:
        if ref is None:
            raise RuntimeError("the value has no such buffer")
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Any:
        """The stored elements of a value."""
        return self._at(spvalue.data_ref)

    def indices(self, spvalue: SparsifyValue) -> Any:
        """Its indices."""
        return self._at(spvalue.indices_ref)

    def indptr(self, spvalue: SparsifyValue) -> Any:
        """The starts of its rows."""
        return self._at(spvalue.indptr_ref)

    def dense(self, data: Any) -> SparsifyValue:
        """A dense value."""
        return SparsifyValue(jnp.shape(data), self._push(data))

    def sparse(self, shape: Sequence[int], data: Any = None, indices: Any = None,
               indptr: Any = None, *, data_ref: int | None = None, indices_ref: int | None = None,
               indptr_ref: int | None = None, indices_sorted: bool = False,
               unique_indices: bool = False) -> SparsifyValue:
        """A sparse value, of new buffers or of some that are there."""
        data_ref, indices_ref, indptr_ref = [
            self._push(buffer) if ref is None and buffer is not None else ref
            for buffer, ref in ((data, data_ref), (indices, indices_ref), (indptr, indptr_ref))]
        return SparsifyValue(tuple(shape), data_ref, indices_ref, indptr_ref, indices_sorted,
                             unique_indices)


def _is_sparse_obj(arg: Any) -> bool:
    return isinstance(arg, (BCOO, BCSR))


def _is_spvalue(arg: Any) -> bool:
    return isinstance(arg, SparsifyValue)


def _to_spvalue(spenv: SparsifyEnv, arg: Any) -> SparsifyValue:
    if not _is_sparse_obj(arg):
        return spenv.dense(arg)
    return spenv.sparse(arg.shape, *arg._bufs, indices_sorted=arg.indices_sorted,
                        unique_indices=arg.unique_indices)


def _to_array(spenv: SparsifyEnv, value: SparsifyValue) -> Any:
    if value.is_dense():
        return spenv.data(value)
    flags = {"indices_sorted": bool(value.indices_sorted),
             "unique_indices": bool(value.unique_indices)}
    if value.is_bcoo():
        return BCOO((spenv.data(value), spenv.indices(value)), shape=value.shape, **flags)
    return BCSR((spenv.data(value), spenv.indices(value), spenv.indptr(value)),
                shape=value.shape, **flags)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """A pytree of dense and sparse arrays as one of values."""
    return tree_util.tree_map(functools.partial(_to_spvalue, spenv), args, is_leaf=_is_sparse_obj)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """A pytree of values as one of dense and sparse arrays."""
    return tree_util.tree_map(functools.partial(_to_array, spenv), spvalues, is_leaf=_is_spvalue)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The types of the arrays that values stand for."""
    return tree_util.tree_map(
        lambda value: ShapedArray(tuple(value.shape), spenv.data(value).dtype,
                                  spenv.data(value).weak_type), spvalues, is_leaf=_is_spvalue)


# --- running --------------------------------------------------------------------------------------

Rule = Callable[..., Sequence[SparsifyValue]]
sparse_rules_bcoo: dict[Primitive, Rule] = {}
sparse_rules_bcsr: dict[Primitive, Rule] = {}
# What gives a dense array of a sparse one: no rule can be written.
_densifying = (acos_p, acosh_p, bessel_i0e_p, cos_p, cosh_p, eq_p, exp_p, ge_p, gt_p, le_p, lt_p,
               log_p, ne_p)


def _apply(spenv: SparsifyEnv, primitive: Primitive, values: Sequence[SparsifyValue],
           params: dict[str, Any]) -> Sequence[SparsifyValue]:
    """The results of a primitive."""
    if not any(value.is_sparse() for value in values):
        out = primitive.bind(*[spenv.data(value) for value in values], **params)
        return [spenv.dense(x) for x in (out if primitive.multiple_results else [out])]
    rules = sparse_rules_bcsr if any(value.is_bcsr() for value in values) else sparse_rules_bcoo
    rule = rules.get(primitive)
    if rule is not None:
        return rule(spenv, *values, **{k: v for k, v in params.items() if k != HIDDEN})
    inner = primitive.called(params)
    if inner is not None:
        return _eval_closed(spenv, inner, values)
    if primitive in _densifying:
        raise _arithmetic.densifies(primitive.name)
    raise NotImplementedError(f"sparse rule for {primitive.name} is not implemented.")


def _eval_closed(spenv: SparsifyEnv, closed: ClosedJaxpr,
                 values: Sequence[SparsifyValue]) -> list[Any]:
    def rule(eqn: JaxprEqn, args: list[Any]) -> Sequence[Any]:
        return _apply(spenv, eqn.primitive, args, eqn.params)

    return eval_jaxpr(closed.jaxpr, [spenv.dense(const) for const in closed.consts], *values,
                      rule=rule, literal=lambda literal: spenv.dense(literal.val))


def sparsify_raw(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays as one of an environment and values: gives values and their tree."""
    def wrapped(spenv: SparsifyEnv, *spvalues: Any, **params: Any) -> tuple[Any, Any]:
        flat, tree = tree_util.tree_flatten(spvalues, is_leaf=_is_spvalue)
        types = [maxjax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)
                 for aval in spvalues_to_avals(spenv, flat)]

        def of_flat(*args: Any) -> Any:
            return f(*tree_util.tree_unflatten(tree, args), **params)

        closed, out = maxjax.make_jaxpr(of_flat, return_shape=True)(*types)
        return _eval_closed(spenv, closed, flat), tree_util.tree_structure(out)
    return wrapped


def _sparsify_with_interpreter(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def sparse_f(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs), is_leaf=_is_sparse_obj)
        traced = [_is_sparse_obj(x) or isinstance(x, Array) or jnp.isscalar(x)
                  or hasattr(x, "dtype") for x in leaves]
        spenv = SparsifyEnv()

        def of_arrays(*arrays: Any) -> Any:
            rest = iter(arrays)
            given = [next(rest) if is_array else x
                     for x, is_array in zip(leaves, traced, strict=True)]
            call_args, call_kwargs = tree_util.tree_unflatten(tree, given)
            return f(*call_args, **call_kwargs)

        values = arrays_to_spvalues(
            spenv, [x for x, is_array in zip(leaves, traced, strict=True) if is_array])
        outs, out_tree = sparsify_raw(of_arrays)(spenv, *values)
        return tree_util.tree_unflatten(out_tree, [_to_array(spenv, value) for value in outs])
    return sparse_f


# --- tracers --------------------------------------------------------------------------------------

class SparseTracer(Tracer):
    """Stands for a dense or sparse array in a function that ``sparsify`` runs.

    >>> from maxjax.experimental import sparse
    >>> seen = []
    >>> m = sparse.eye(2)
    >>> _ = sparse.sparsify(lambda x: seen.append(type(x)) or x, use_tracer=True)(m)
    >>> seen == [sparse.SparseTracer]
    True
    """

    __slots__ = ("_spvalue",)

    def __init__(self, trace: SparseTrace, *, spvalue: SparsifyValue):
        super().__init__(trace, spvalues_to_avals(trace.spenv, spvalue))
        self._spvalue = spvalue

    def concrete(self) -> Any:
        if self._spvalue.is_sparse():
            return None
        trace = self._trace
        assert isinstance(trace, SparseTrace)
        data = trace.spenv.data(self._spvalue)
        return data.concrete() if isinstance(data, Tracer) else data


class SparseTrace(Trace):
    """Applies each primitive's rule for sparse values."""

    __slots__ = ("parent", "spenv")

    def __init__(self, parent_trace: Trace, spenv: SparsifyEnv):
        super().__init__()
        self.parent = parent_trace
        self.spenv = spenv

    def to_value(self, x: Any) -> SparsifyValue:
        if type(x) is SparseTracer and x._trace is self:
            return x._spvalue
        return self.spenv.dense(x)

    def apply(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not any(type(arg) is SparseTracer and arg._trace is self for arg in args):
            return self.parent.apply(primitive, args, params)
        with current_trace(self.parent):
            values = [self.to_value(arg) for arg in args]
            outs = [SparseTracer(self, spvalue=value)
                    for value in _apply(self.spenv, primitive, values, params)]
        return outs if primitive.multiple_results else outs[0]

    def apply_custom_jvp(self, function: Callable[..., list[Any]], jvp: Any, args: list[Any],
                         **params: Any) -> list[Any]:
        return function(*args)

    def apply_custom_vjp(self, function: Callable[..., list[Any]], rule: Any, args: list[Any],
                         **params: Any) -> list[Any]:
        return function(*args)


def _sparsify_with_tracer(f: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(f)
    def sparse_f(*args: Any, **kwargs: Any) -> Any:
        leaves, tree = tree_util.tree_flatten((args, kwargs), is_leaf=_is_sparse_obj)
        parent = context.trace
        trace = SparseTrace(parent, SparsifyEnv())
        given = [SparseTracer(trace, spvalue=_to_spvalue(trace.spenv, x))
                 if _is_sparse_obj(x) or hasattr(x, "dtype") or jnp.isscalar(x) else x
                 for x in leaves]
        call_args, call_kwargs = tree_util.tree_unflatten(tree, given)
        with current_trace(trace):
            out = f(*call_args, **call_kwargs)
        outs, out_tree = tree_util.tree_flatten(out, is_leaf=_is_sparse_obj)
        result = [_to_array(trace.spenv, trace.to_value(x)) if isinstance(x, Tracer) else x
                  for x in outs]
        return tree_util.tree_unflatten(out_tree, result)
    return sparse_f


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Turns a function of dense arrays into one of sparse arrays.

    Args:
      f: composed of operations that preserve zeros: sums, products, ``sin``, transposes, slices ...
      use_tracer: whether ``f`` runs on tracers, rather than being traced first and run as a jaxpr.

    Raises:
      NotImplementedError: an operation would give a dense array.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 5.]))
    >>> sparse.sparsify(lambda x: jnp.sum(2 * x))(m)
    Array(10., dtype=float32)
    """
    return _sparsify_with_tracer(f) if use_tracer else _sparsify_with_interpreter(f)


# --- methods of arrays ----------------------------------------------------------------------------

def _bcoo_sum(self: BCOO, axis: Any = None) -> Any:
    """The sums along axes, sparse; a dense scalar along all of them, the default."""
    return sparsify(lambda x: x.sum(axis))(self)


def _bcoo_reshape(self: BCOO, *args: Any, **kwargs: Any) -> Any:
    """The array in another shape; one size may be -1."""
    return sparsify(lambda x: x.reshape(*args, **kwargs))(self)


def _bcoo_transpose(self: BCOO, axes: Sequence[int] | None = None) -> BCOO:
    """The array with its axes in another order."""
    order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
    return bcoo.bcoo_transpose(self, permutation=order)


def _getitem(self: JAXSparse, item: Any) -> Any:
    leaves, tree = tree_util.tree_flatten(item, is_leaf=lambda x: x is None or isinstance(x, slice))
    places = [number for number, leaf in enumerate(leaves) if isinstance(leaf, Array)]

    def take(x: Any, *dynamic: Any) -> Any:
        given = list(leaves)
        for place, index in zip(places, dynamic, strict=True):
            given[place] = index
        return x[tree_util.tree_unflatten(tree, given)]

    known = [leaves[place] for place in places if isinstance(leaves[place], Tracer)]
    if not known:       # masks must be known
        return sparsify(lambda x: x[item])(self)
    return sparsify(take)(self, *[leaves[place] for place in places])


for _name, _method in {"sum": _bcoo_sum, "reshape": _bcoo_reshape, "transpose": _bcoo_transpose,
                       "__getitem__": _getitem}.items():
    setattr(BCOO, _name, _method)
setattr(BCSR, "__getitem__", _getitem)      # noqa: B010
