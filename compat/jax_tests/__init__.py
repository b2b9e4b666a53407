"""JAX's own tests, and the examples of its docstrings, run on maxjax (see compat/README.md)."""
