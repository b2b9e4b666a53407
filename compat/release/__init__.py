"""What changes between two releases of JAX, and what maxjax has of it (docs/releases.md)."""
