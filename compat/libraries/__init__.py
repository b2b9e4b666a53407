"""The tests of libraries on top of JAX, on JAX and on maxjax (compat/README.md)."""
