"""``jaxlib._jax``: the class of jitted functions, for ``isinstance`` (GPJax)."""

from maxjax._higher_order.jit_function import PjitFunction as PjitFunction
