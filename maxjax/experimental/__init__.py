"""jax.experimental."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.callback import io_callback as io_callback
from maxjax._higher_order.hi_types import cur_qdd as cur_qdd

explain_missing_names(__name__, {
    "primal_tangent_dtype": (
        "jax.experimental.primal_tangent_dtype is not there: dtypes whose tangents have another "
        "dtype are for primitives that lower to MLIR, which maxjax does not do"),
    "pallas": (
        "maxjax has no Pallas; kernels are written in Mojo, see maxjax.extend.mojo")})
