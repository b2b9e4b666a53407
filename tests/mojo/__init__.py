"""The Mojo backend: what it plans and writes, its store, and the pack of kernels."""
