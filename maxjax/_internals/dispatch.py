"""Waits for operations with effects."""

from maxjax._runtime.cells import pending as _pending


def wait_for_tokens() -> None:
    """Waits until all pending operations have run."""
    _pending.flush()
