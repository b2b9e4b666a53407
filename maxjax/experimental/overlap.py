"""jax.experimental.overlap: the order in which a program's operations run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base.missing import explain_missing_names
from maxjax._base.signatures import wraps
from maxjax._higher_order.api import jit


def program_order(f: Callable[..., Any] | None = None, *, enforce: bool,
                  strict_in_out: bool | tuple[bool, bool] = False,
                  exclude_argnames: str | Sequence[str] | None = None) -> Callable[..., Any]:
    """The function under ``jit``, whose operations begin in the order in which they are written.

    In maxjax those of every program do, and nothing that runs later is waited for.

    Args:
      f: a function of arrays; without it, this is a decorator.
      enforce: whether XLA may not reorder them.
      strict_in_out: whether nothing around the call may move into it, before and after it.
      exclude_argnames: the arguments that are not waited for.

    Raises:
      ValueError: ``exclude_argnames`` with ``enforce``, or ``strict_in_out`` without it.

    >>> jax.experimental.overlap.program_order(jnp.negative, enforce=True)(2.)
    Array(-2., dtype=float32, weak_type=True)
    """
    if enforce and exclude_argnames is not None:
        raise ValueError("exclude_argnames cannot be used with enforce=True.")
    if not enforce and strict_in_out:
        raise ValueError("strict_in_out=True cannot be used with enforce=False")
    if f is None:
        return lambda g: program_order(
            g, enforce=enforce, strict_in_out=strict_in_out, exclude_argnames=exclude_argnames)
    jitted = jit(f)

    @wraps(f)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return jitted(*args, **kwargs)

    return wrapped


explain_missing_names(__name__)
