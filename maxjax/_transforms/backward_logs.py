"""What backward rules log: values by name, which ``vjp(...).with_logs`` returns with cotangents.

A backward pass collects what is logged while it runs. A rule that runs in a trace inside of it (of
a loop's body, say) logs values that are unknown outside.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from maxjax._base.interrupts import context_manager
from maxjax._ir.trace import context


class Logs:
    """The logs of one backward pass.

    Attributes:
      found: the values by their names.
      hidden: the names of those that were logged inside of loops, branches and the like.
    """

    __slots__ = ("found", "hidden", "_trace")

    def __init__(self) -> None:
        self.found: dict[Any, Any] = {}
        self.hidden: list[Any] = []
        self._trace = context.trace

    def add(self, logs: Mapping[Hashable, object]) -> None:
        """Takes the logs of a rule.

        Raises:
          ValueError: a name is there already.
        """
        if context.trace is not self._trace:
            self.hidden.extend(logs)
            return
        for key, value in logs.items():
            if key in self.found:
                raise ValueError(
                    f"Duplicate backward-pass log key {key!r} from the fancy transpose rule for "
                    "'custom_lin'. Each key must be unique within a backward pass.")
            self.found[key] = value

    def result(self) -> dict[Any, Any]:
        """All of them, by name.

        Raises:
          NotImplementedError: some are hidden.
        """
        if self.hidden:
            raise NotImplementedError(
                f"with_logs: the backward pass logged {self.hidden[0]!r} inside of a loop, a "
                "branch, vmap, shard_map or checkpoint, of which maxjax does not take logs out: "
                "log what is called outside of these, or within jit alone")
        return self.found


class _Current(threading.local):
    """The backward pass that runs in this thread."""

    logs: Logs | None = None


_current = _Current()


@context_manager
def collected() -> Iterator[Logs]:
    """Within it, what rules log is collected; of a backward pass in another, by the inner one."""
    outer, logs = _current.logs, Logs()
    _current.logs = logs
    try:
        yield logs
    finally:
        _current.logs = outer


def log(logs: Mapping[Hashable, object]) -> None:
    """What the backward rule that runs has logged; without a reader it is dropped."""
    if logs and _current.logs is not None:
        _current.logs.add(logs)
