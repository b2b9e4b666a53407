"""Arrays made from no other arrays: iota, and filled ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import DTYPE, NATURAL, SHAPE, takes
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Printed, Sharded
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Shape, Value
from maxjax._primitives import costs, fitting
from maxjax._primitives.broadcasting import broadcast_in_dim
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


def _iota_evaluate(*, dtype: np.dtype, shape: Shape, dimension: int) -> np.ndarray:
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    if dtypes.is_integer(dtype) and dtype.itemsize < 4:   # wraps around, as XLA's does
        line = np.arange(shape[dimension]).astype(dtype)
    else:
        line = np.arange(shape[dimension]).astype(dtype)
    return np.broadcast_to(line.reshape(sizes), shape)


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
