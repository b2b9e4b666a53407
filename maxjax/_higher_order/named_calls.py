"""Functions that are an equation of their own name in jaxprs."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from maxjax._base import config
from maxjax._higher_order.jit_function import PjitFunction
from maxjax._higher_order.static_arguments import select
from maxjax._ir.runtime import installed
from maxjax._ir.staging import traces_eager_call, within_program
from maxjax._ir.trace import Array, context
from maxjax._ir.typing import Function

# Arguments that are one operand each.
_PLAIN = (Array, np.ndarray, np.generic, bool, int, float, complex)


class NamedCall(PjitFunction):
    """A function under jit where it is traced: an equation of its name, which is inlined when the
    program is simplified. Elsewhere it is the function itself, whose operations stay lazy.

    A call takes arrays by position, and static values by name.
    """

    def __call__(self, *args: object, **static: Hashable) -> Any:
        if context.trace is installed.runtime or not within_program() or traces_eager_call():
            return self._function(*args, **static)
        if not all(isinstance(x, _PLAIN) for x in args):
            return super().__call__(*args, **static)
        argument = installed.runtime.argument
        try:
            operands = [x if isinstance(x, Array) else argument(x) for x in args]
        except OverflowError:      # which that call words
            return super().__call__(*args, **static)
        key = (tuple([x.aval for x in operands]), tuple(static.items()), config.trace_state(),
               context.axis_env, context.manual)
        known = self._entries.by_signature
        entry = known.get(key)
        if entry is None:
            entry = self._lookup(tuple(operands), static)
            if not entry.captured:
                known[key] = entry
        return entry.out_tree.unflatten(self._apply(entry, operands))


def named(name: str, *static: str) -> Callable[[Function], Function]:
    """Decorates a function that JAX has under jit by this name, with the names of its static
    arguments."""
    def decorate(function: Function) -> Function:
        chosen = select(function, None, static, "static")
        donated = select(function, None, None, "donate")
        made: Any = NamedCall(function, chosen, donated, False, False, None, None, None)
        made.function_name = name
        return made
    return decorate
