"""jax.custom_batching: rules of one's own for `vmap`."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.custom_vmap import custom_vmap as custom_vmap
from maxjax._higher_order.custom_vmap import sequential_vmap as sequential_vmap

explain_missing_names(__name__)
