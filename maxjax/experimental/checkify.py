"""jax.experimental.checkify: run-time checks, as values that a function returns.

``checkify(f)`` interprets the jaxpr of ``f`` and threads an ``Error`` through it: through calls,
and through loops and branches as extra carries and results. A check adds to it; nothing is raised
until the error is examined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._base import dtypes, pytree
from maxjax._base.source import function_location
from maxjax._higher_order.outputs import check_outputs
from maxjax._higher_order.refs import values_for, write_all
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array
from maxjax.experimental._checkify_errors import (
    DivisionByZeroError,
    ErrorCategory,
    FailedCheckError,
    JaxRuntimeError,
    NaNError,
    OOBError,
)
from maxjax.experimental._checkify_rules import Enabled, interpret
from maxjax.experimental._checkify_value import Error, failing, init_error, report

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check",
    "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]

user_checks: Enabled = frozenset({FailedCheckError})
nan_checks: Enabled = frozenset({NaNError})
index_checks: Enabled = frozenset({OOBError})
div_checks: Enabled = frozenset({DivisionByZeroError})
float_checks: Enabled = nan_checks | div_checks
automatic_checks: Enabled = float_checks | index_checks
all_checks: Enabled = automatic_checks | user_checks


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Adds an error where ``pred`` is false.

    Outside ``checkify`` it raises at once, and cannot be used in ``jit`` or a loop.

    Args:
      pred: a boolean scalar.
      msg: a format string.
      fmt_args, fmt_kwargs: pytrees of arrays for the format.
      debug: see ``debug_check``.

    Raises:
      TypeError: ``pred`` is not a boolean scalar, or a format argument is not an array.
      JaxRuntimeError: outside ``checkify``, if ``pred`` is false.

    >>> def f(x):
    ...     checkify.check(x > 0, "{x} needs to be positive!", x=x)
    ...     return 1 / x
    >>> error, _ = jax.jit(checkify.checkify(f))(-3.)
    >>> error.get()
    '-3.0 needs to be positive! (`check` failed)'
    """
    _check(pred, msg, fmt_args, fmt_kwargs, debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """``check`` under ``checkify``; elsewhere it does nothing, and may be used in any program.

    >>> jax.jit(lambda x: checkify.debug_check(x > 0, "not positive"))(-3.)
    """
    _check(pred, msg, fmt_args, fmt_kwargs, True)


def _check(pred: Any, msg: str, args: tuple[Any, ...], kwargs: dict[str, Any],
           debug: bool) -> None:
    if not (isinstance(pred, bool) or (
            isinstance(pred, Array) and pred.shape == () and pred.dtype == dtypes.bool_)):
        name = "debug_check" if debug else "check"
        raise TypeError(f"{name} takes a scalar pred as argument, got {pred}")
    values, tree = pytree.flatten((args, kwargs))
    for value in values:
        if not isinstance(value, (Array, np.ndarray)):
            raise TypeError("Formatting arguments to checkify.check need to be PyTrees of arrays, "
                            f"but got {value!r} of type {type(value)}.")
    report(failing(init_error, jnp.logical_not(pred), FailedCheckError, values,
                     lambda given: FailedCheckError(msg, *pytree.unflatten(tree, given))), debug)


def check_error(error: Error) -> None:
    """Raises if ``error`` records a failure: the inverse of ``checkify``, which records it again.

    Raises:
      TypeError: ``error`` is not an ``Error``.
      JaxRuntimeError: outside ``checkify``, if a check failed.
    """
    if not isinstance(error, Error):
        raise TypeError(f"check_error takes an Error as argument, got type {type(error)} instead.")
    report(error)


def checkify(f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks
             ) -> Callable[..., tuple[Error, Any]]:
    """A function that returns an ``Error`` and the result of ``f``.

    Args:
      f: a function of any arguments; it may contain ``check``s.
      errors: which checks are enabled. ``user_checks``: those in ``f``; ``nan_checks``: an
        operation produced a NaN; ``div_checks``: a division by zero; ``index_checks``: an index out
        of bounds. They combine with ``|``: ``float_checks``, ``automatic_checks``, ``all_checks``.

    The result may be jitted, mapped and differentiated. Array references keep what ``f`` writes,
    also where a check has failed.

    >>> def f(x, i):
    ...     return jnp.sin(x)[i]
    >>> error, y = checkify.checkify(f, errors=checkify.automatic_checks)(
    ...     jnp.ones(3), jnp.array(5))
    >>> error.get().split(": ")[1].strip()
    'index 5 is out of bounds for axis 0 with size 3.'
    >>> error, y = jax.jit(checkify.checkify(jnp.log, errors=checkify.nan_checks))(-1.)
    >>> error.throw()
    Traceback (most recent call last):
    ...
    maxjax.experimental.checkify.JaxRuntimeError: nan generated by primitive: log.
    """
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        location = function_location(f)
        tree: Any = None

        def flat() -> list[Any]:
            nonlocal tree
            # The arguments are closed over, so that their types do not change.
            outputs = f(*args, **kwargs)
            leaves, tree = pytree.flatten(outputs)
            return check_outputs(leaves, location, "checkify", outputs)

        closed = trace_to_jaxpr(flat, [], location, "checkify", with_refs=True)
        error, outs = interpret(closed.jaxpr, closed.consts, frozenset(errors), init_error,
                                *values_for(closed.refs))
        written = [use for use in closed.refs if use.operation]
        count = len(outs) - len(written)
        write_all(written, outs[count:])
        return error, pytree.unflatten(tree, outs[:count])

    return checked
