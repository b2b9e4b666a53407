"""jax.custom_derivatives: rules of one's own for derivatives."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.custom_gradient import closure_convert as closure_convert
from maxjax._higher_order.custom_gradient import custom_gradient as custom_gradient
from maxjax._higher_order.custom_gradient import linear_call as linear_call
from maxjax._higher_order.custom_jvp import custom_jvp as custom_jvp
from maxjax._higher_order.custom_jvp import custom_jvp_call_p as custom_jvp_call_p
from maxjax._higher_order.custom_rules import SymbolicZero as SymbolicZero
from maxjax._higher_order.custom_rules import zero_from_primal as zero_from_primal
from maxjax._higher_order.custom_vjp import CustomVJPPrimal as CustomVJPPrimal
from maxjax._higher_order.custom_vjp import custom_vjp as custom_vjp
from maxjax._higher_order.custom_vjp import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values,
)
from maxjax._higher_order.custom_vjp_call import custom_vjp_call_p as custom_vjp_call_p
from maxjax._higher_order.custom_vjp_call import remat_opt_p as remat_opt_p

explain_missing_names(__name__)
