"""The Mojo backend: its plans and texts, its store, and the kernel pack."""
