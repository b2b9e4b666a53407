"""Waiting for what has effects."""

from maxjax._runtime.cells import pending as _pending


def wait_for_tokens() -> None:
    """Waits until all that is pending has run."""
    _pending.flush()
