"""jax.experimental: what may change without notice."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.callback import io_callback as io_callback
from maxjax._higher_order.tangent_dtypes import primal_tangent_dtype as primal_tangent_dtype

explain_missing_names(__name__)
