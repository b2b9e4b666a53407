"""maxjax: JAX, on Modular's MAX."""

from __future__ import annotations

from maxjax._base.config import config as config
from maxjax._ir.trace import Array as Array
from maxjax._runtime import pending as _pending  # puts the runtime at the bottom
from maxjax._transforms.autodiff import grad as grad
from maxjax._transforms.autodiff import jvp as jvp
from maxjax._transforms.autodiff import linearize as linearize
from maxjax._transforms.autodiff import value_and_grad as value_and_grad
from maxjax._transforms.autodiff import vjp as vjp
from maxjax._transforms.vmap import vmap as vmap
from maxjax._higher_order.jit import make_jit as jit
