"""Loggers, and the options that choose what of them is shown.

What JAX logs of traces, compilations and callbacks has its loggers' names here: programs and people
look for it there. All else is logged as "maxjax".
"""

from __future__ import annotations

import logging

logger = logging.getLogger("maxjax")
DISPATCH = logging.getLogger("jax._src.dispatch")
CALLBACK = logging.getLogger("jax._src.callback")
DEBUGGING = logging.getLogger("jax._src.debugging")
COMPILING = logging.getLogger("jax._src.interpreters.pxla")
_JAX = logging.getLogger("jax")

_FORMAT = logging.Formatter("{levelname}:{asctime}:{name}:{lineno}: {message}", style="{")
_handler = logging.StreamHandler()      # to stderr
_handler.setFormatter(_FORMAT)
_debug_handler = logging.StreamHandler()
_debug_handler.setFormatter(_FORMAT)
# What _handler shows of the same record is not shown twice.
_debug_handler.addFilter(lambda record: _handler not in _JAX.handlers)
# The loggers of jax_debug_log_modules, with the levels that they had.
_debugged: list[tuple[logging.Logger, int]] = []


def set_level(level: str | None) -> None:
    """Follows ``jax_logging_level``: None leaves the levels as they are."""
    for root in (logger, _JAX):
        root.removeHandler(_handler)
        if level is not None:
            root.setLevel(level)
            if level != "NOTSET":
                root.addHandler(_handler)


def debug_modules(names: str) -> None:
    """Follows ``jax_debug_log_modules``: the loggers that it names show everything."""
    while _debugged:
        chosen, level = _debugged.pop()
        chosen.removeHandler(_debug_handler)
        chosen.setLevel(level)
    for name in names.split(",") if names else ():
        chosen = logging.getLogger(name)
        _debugged.append((chosen, chosen.level))
        chosen.addHandler(_debug_handler)
        chosen.setLevel(logging.DEBUG)
