"""jax.custom_derivatives."""

from __future__ import annotations

from maxjax._base.missing import missing_names
from maxjax._higher_order.custom_jvp import SymbolicZero as SymbolicZero
from maxjax._higher_order.custom_jvp import custom_jvp as custom_jvp
from maxjax._higher_order.custom_jvp import custom_jvp_call_p as custom_jvp_call_p

__getattr__ = missing_names(__name__)
