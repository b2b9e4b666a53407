"""jax.experimental.xla_metadata: notes on operations for XLA, which nobody reads here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base.missing import explain_missing_names


class _Metadata:
    """A context, and a decorator, without effect: a jitted function stays one."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """``x`` as it is; without ``x`` a context manager and decorator without effect.

    Args:
      kwargs: the notes; taken, and not kept.

    >>> set_xla_metadata(3.0, a="b")
    3.0
    >>> with set_xla_metadata(a="b"):
    ...     pass
    """
    return _Metadata() if x is None else x


explain_missing_names(__name__)
