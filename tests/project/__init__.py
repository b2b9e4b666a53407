"""The project itself: layers, blocks, documents, and the compat suite."""
