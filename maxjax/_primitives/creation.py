"""Arrays made from no other arrays: iota, and filled ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import caches, dtypes
from maxjax._ir.contract import DTYPE, NATURAL, SHAPE, takes
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Host, Printed, Sharded
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Shape, Value
from maxjax._primitives import costs, fitting
from maxjax._primitives.broadcasting import broadcast_in_dim, has_buffer, known_sizes
from maxjax._primitives.rules import (
    OnShard,
    axis_factors,
    nonnegative,
    scalar_like,
)

if TYPE_CHECKING:
    from maxjax._base.dtypes import DType
    from maxjax._primitives.rules import FactorRule
    from maxjax._sharding.local import Shard

# --- iota -----------------------------------------------------------------------------------------


# Lines of at most so many bytes are kept: counting takes longer than finding them.
_KEPT_LINE = 16 << 10


def _line(dtype: np.dtype, size: int) -> np.ndarray:
    return np.arange(size).astype(dtype)     # narrow integers wrap around, as XLA's do


@caches.memoized
def _kept_line(dtype: np.dtype, size: int) -> np.ndarray:
    line = _line(dtype, size)
    line.flags.writeable = False
    return line


def _iota_evaluate(*, dtype: np.dtype, shape: Shape, dimension: int) -> np.ndarray:
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    return np.broadcast_to(_line(dtype, shape[dimension]).reshape(sizes), shape)


def _iota_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                     out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    """A rule for short lines, which are kept: it gives a view of one, which is not writeable."""
    dtype, shape, dimension = params["dtype"], params["shape"], params["dimension"]
    if not has_buffer(dtype) or not known_sizes(shape) or (
            shape[dimension] * dtype.itemsize > _KEPT_LINE):
        return None
    size = shape[dimension]
    strides = tuple([dtype.itemsize if axis == dimension else 0 for axis in range(len(shape))])

    def counted() -> np.ndarray:
        view: np.ndarray = np.ndarray(shape, dtype, _kept_line(dtype, size), 0, strides)
        view.flags.writeable = False
        return view
    return counted


def _split_where_exact(eqn: JaxprEqn, rule: FactorRule) -> None:
    """Each shard counts from its own start: not where numbers wrap around."""
    if eqn.params["dtype"] in (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.float32,
                               dtypes.float64):
        rule.replicated = frozenset()


def _iota_on_shard(shard: Shard, eqn: JaxprEqn, operands: Sequence[Array], params: Params,
                   in_dims: Sequence[Sequence[tuple[str, ...]]],
                   out_dims: Sequence[Sequence[tuple[str, ...]]]) -> Any:
    axes = out_dims[0][eqn.params["dimension"]]
    out = iota_p.bind(**params)
    return shard.counted_from_start(out, eqn.params["dimension"], axes) if axes else out


iota_p = Primitive(
    "iota",
    contract=takes(0, fitting.iota, dtype=DTYPE, shape=SHAPE, dimension=NATURAL),
    cost=costs.MOVES,
    sharded=Sharded(
        shard_params=lambda params, avals, shapes, out: {**params, "shape": out},
        on_shard=OnShard(_iota_on_shard, computed=_split_where_exact)),
    printed=Printed(lambda params: {**params, "sharding": None}),
    abstract=lambda *, dtype, shape, dimension: ShapedArray(
        nonnegative("iota", shape), dtype),
    evaluate=_iota_evaluate,
    host=Host(specialize=_iota_specialize),
    lower=lambda ctx, *, dtype, shape, dimension: ctx.iota(dtype, shape, dimension),
    derivative=Derivative(missing="iota has no operands"),
    factors=lambda in_avals, out_avals, *, dtype, shape, dimension: axis_factors(
        in_avals, out_avals, whole=(dimension,)),
)

# --- operations that rules are written with -------------------------------------------------------
# Operands are trusted; an operation that changes nothing binds nothing.

def full(shape: Shape, value: float | np.generic, dtype: DType) -> Array:
    return broadcast_in_dim(scalar_like(value, dtype), tuple(shape), ())


def zeros_like(x: Value) -> Array:
    return full(x.shape, 0, x.dtype)


def ones_like(x: np.ndarray) -> Any:
    return full(x.shape, 1, x.dtype)


def iota(dtype: np.dtype, shape: Shape, dimension: int) -> Array:
    return iota_p.bind(dtype=dtypes.as_dtype(dtype), shape=tuple(shape), dimension=dimension)
