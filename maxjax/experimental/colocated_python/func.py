"""Libraries look here for details of JAX's implementation; functions are called directly."""
