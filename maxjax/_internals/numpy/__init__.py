"""Helpers of jax.numpy."""
