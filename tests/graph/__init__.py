"""The graph backend: its compile service, its kernels, and the pieces of programs it gets."""
