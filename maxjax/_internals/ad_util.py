"""Primitives of derivatives."""

from maxjax._higher_order.custom_primitive import CustomPrimitive

# Libraries give it rules. Nothing is ever bound to it, as in JAX: `lax.stop_gradient` is another.
stop_gradient_p = CustomPrimitive("stop_gradient_of_jax")
