"""Primitives of derivatives."""

from maxjax._higher_order.custom_primitive import CustomPrimitive

# Libraries give it rules. It is never bound, as in JAX: `lax.stop_gradient` uses another primitive.
stop_gradient_p = CustomPrimitive("stop_gradient_of_jax")
