"""Transformations."""

from maxjax import ShapeDtypeStruct as ShapeDtypeStruct
from maxjax import block_until_ready as block_until_ready
from maxjax import checkpoint as checkpoint
from maxjax import clear_caches as clear_caches
from maxjax import device_get as device_get
from maxjax import device_put as device_put
from maxjax import disable_jit as disable_jit
from maxjax import eval_shape as eval_shape
from maxjax import grad as grad
from maxjax import hessian as hessian
from maxjax import jacfwd as jacfwd
from maxjax import jacrev as jacrev
from maxjax import jit as jit
from maxjax import jvp as jvp
from maxjax import linear_transpose as linear_transpose
from maxjax import linearize as linearize
from maxjax import live_arrays as live_arrays
from maxjax import make_jaxpr as make_jaxpr
from maxjax import named_call as named_call
from maxjax import named_scope as named_scope
from maxjax import pmap as pmap
from maxjax import value_and_grad as value_and_grad
from maxjax import vjp as vjp
from maxjax import vmap as vmap
