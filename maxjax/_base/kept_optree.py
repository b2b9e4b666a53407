"""optree, imported so that what it knows of containers stays until Python ends.

optree forgets its registries, those of lists and dicts among them, when ``atexit`` runs its
functions; with ``atexit._run_exitfuncs()`` programs have these run early, and go on. Where optree
was imported before maxjax, it has registered its function already and that is not prevented.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from maxjax._base.interrupts import context_manager


def _when_python_ends(function: Callable[[], object]) -> Callable[[], Any]:
    def call() -> None:
        # Python stops the main thread before it runs the functions of atexit.
        if not threading.main_thread().is_alive():
            function()
    return call


@context_manager
def _late_exit_functions() -> Iterator[None]:
    """What is registered meanwhile, without arguments, is called at the end of Python alone."""
    register = atexit.register

    def later(function: Callable[..., object], *args: object, **kwargs: object
              ) -> Callable[..., Any]:
        if args or kwargs:
            return register(function, *args, **kwargs)
        register(_when_python_ends(function))
        return function

    vars(atexit)["register"] = later
    try:
        yield
    finally:
        vars(atexit)["register"] = register


if "optree" in sys.modules:
    import optree
else:
    with _late_exit_functions():
        import optree

__all__ = ["NAMESPACE", "optree"]

# Of the registry that has the nodes of maxjax.
NAMESPACE = "maxjax"
