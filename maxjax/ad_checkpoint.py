"""jax.ad_checkpoint: trading memory for recomputation in derivatives."""

from __future__ import annotations

from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.checkpoint import checkpoint_name as checkpoint_name
from maxjax._higher_order.checkpoint import checkpoint_name_fwd as checkpoint_name_fwd
from maxjax._higher_order.checkpoint_policies import Offloadable as Offloadable
from maxjax._higher_order.checkpoint_policies import Recompute as Recompute
from maxjax._higher_order.checkpoint_policies import Saveable as Saveable
from maxjax._higher_order.checkpoint_policies import checkpoint_policies as checkpoint_policies
from maxjax._higher_order.saved_residuals import print_saved_residuals as print_saved_residuals
from maxjax._higher_order.saved_residuals import saved_residuals as saved_residuals
from maxjax._primitives.identities import name_p as name_p

explain_missing_names(__name__)
