"""Control flow under ``disable_jit``: loops and branches as Python runs them.

The functions see concrete arrays, where they are called outside of transformations, and may print
them or stop at a breakpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import dtypes, pytree
from maxjax._base.errors import ConcretizationTypeError
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._higher_order.control import operands_of
from maxjax._ir.trace import Array, Tracer
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape
from maxjax._primitives.slicing import slice_in_dim


def known(value: object) -> bool:
    """Whether Python can look at a value: it decides which way to go."""
    return not isinstance(value, Tracer) or value.concrete() is not None


def scan(f: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]], init: PyTree, xs: Sequence[Array],
         xs_tree: PyTreeSpec, length: int, reverse: bool) -> tuple[Any, Any]:
    """The loop of ``lax.scan``.

    Raises:
      ValueError: there are no iterations, so that nothing shows what the outputs are.
    """
    if not length:
        raise ValueError("zero-length scan is not supported in disable_jit() mode because the "
                         "output type is unknown.")
    carry = init
    outputs = []
    for number in range(length - 1, -1, -1) if reverse else range(length):
        slices = [reshape(slice_in_dim(x, number, number + 1, 0), x.aval.shape[1:]) for x in xs]
        carry, output = f(carry, pytree.unflatten(xs_tree, slices))
        outputs.append(output)
    if reverse:
        outputs.reverse()
    return carry, pytree.map(lambda *parts: _stack(operands_of(parts)), *outputs)


def _stack(parts: list[PyTree]) -> Any:
    dtype, weak = dtypes.promote(tuple([(x.aval.dtype, x.aval.weak_type) for x in parts]))
    return concatenate(
        [expand_axis(convert_element_type(x, dtype, weak), 0) for x in parts], 0)


def while_loop(cond_fun: Callable[[PyTree], PyTree], body_fun: Callable[[PyTree], PyTree],
               init_val: PyTree) -> tuple[bool, Any]:
    """The loop of ``lax.while_loop``: (whether Python could run it, the result)."""
    leaves, tree = pytree.flatten(init_val)
    value = pytree.unflatten(tree, operands_of(leaves))
    try:
        while cond_fun(value):
            value = body_fun(value)
    except ConcretizationTypeError:     # the predicate is traced, by vmap for one
        return False, None
    return True, value


def fori_loop(start: int, stop: int, body_fun: Callable[[PyTree, PyTree], PyTree], value: PyTree
              ) -> Any:
    """The loop of ``lax.fori_loop``."""
    for i in range(start, stop):
        value = body_fun(i, value)
    return value
