"""jax.experimental.xla_metadata: metadata on operations for XLA, ignored here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base.missing import explain_missing_names


class _Metadata:
    """A context manager and decorator without effect: a jitted function stays jitted."""

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Returns ``x`` unchanged; without ``x`` a context manager and decorator without effect.

    Args:
      kwargs: the metadata; accepted and discarded.

    >>> set_xla_metadata(3.0, a="b")
    3.0
    >>> with set_xla_metadata(a="b"):
    ...     pass
    """
    return _Metadata() if x is None else x


explain_missing_names(__name__)
