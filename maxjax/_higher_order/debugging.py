"""jax.debug.callback, print and log: looking at values while a program runs."""

from __future__ import annotations

import copy
import logging
import string
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import pytree
from maxjax._base.logs import DEBUGGING
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import Sharding
from maxjax._base.source import user_frame
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.callback import HOST_REASON, failures_logged, in_program, outside_programs
from maxjax._ir.effects import Effect, debug_effect, ordered_debug_effect
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Effectful, Host, Outside
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params
from maxjax._primitives.layout import squeeze_p
from maxjax._primitives.rules import replicated_factors
from maxjax._primitives.slicing import slice_in_dim

logger = logging.getLogger("maxjax.debug")


class SplitCallback:
    """A function of pytrees, with the leaves that are no arrays fixed, as one of the others."""

    __slots__ = ("fixed", "function", "tree")

    def __init__(self, function: Callable[..., PyTree], tree: PyTreeDef,
                 fixed: Sequence[tuple[int, object]]):
        self.function = function
        self.tree = tree
        self.fixed = fixed

    def __call__(self, *arrays: object) -> list[Any]:
        given, fixed = iter(arrays), dict(self.fixed)
        leaves = [fixed[n] if n in fixed else next(given)
                  for n in range(len(arrays) + len(fixed))]
        args, kwargs = self.tree.unflatten(leaves)
        self.function(*args, **kwargs)
        return []


class ShardingInspector:
    """A callback that needs only the sharding of a value: it is called when a program over a mesh
    is partitioned, and is not part of that program."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Sharding], None]):
        self.function = function

    def __call__(self, value: Array) -> list[Any]:
        self.function(value.sharding)
        return []


def split(args: PyTree, kwargs: PyTree) -> tuple[PyTreeDef, list[Any], tuple[tuple[int, Any], ...]]:
    """The structure of the arguments, the leaves that are arrays, and the others by position."""
    leaves, tree = pytree.flatten((args, kwargs))
    operands, fixed = [], []
    for position, leaf in enumerate(leaves):
        try:
            operands.append(installed.runtime.operand(leaf))
        except TypeError:
            fixed.append((position, leaf))
    return PyTreeDef(tree), operands, tuple(fixed)


# --- the primitives -------------------------------------------------------------------------------


def _primitive(name: str, function_of: Callable[[Params], Callable[..., list[np.ndarray]]],
               effect_of: Callable[..., Effect]) -> Primitive:
    """A primitive without results that calls ``function_of(params)`` with its operands."""
    def called(params: Params) -> Callable[..., list[Any]]:
        function = function_of(params)

        def call(*args: Array) -> list[Any]:
            with failures_logged(DEBUGGING, "jax.debug.callback"):
                return function(*args)

        return call

    def specialize(in_avals: Sequence[ShapedArray], params: Params,
                   out_avals: Sequence[ShapedArray]) -> Callable[..., list[Any]]:
        return in_program(called(params), in_avals)

    def eager(operands: Sequence[Array], **params: object) -> list[Any]:
        with outside_programs():      # what it raises is raised as it is
            return called(params)(*operands)

    def batch(size: int, operands: Sequence[Array], axes: Sequence[int | None],
              **params: object) -> tuple[list[Any], list[Any]]:
        for i in range(size):
            primitive.bind(*[x if axis is None else _element(x, i, axis)
                             for x, axis in zip(operands, axes, strict=True)], **params)
        return [], []

    def jvp(primals: Sequence[Array], tangents: Sequence[Array | None], **params: object) -> tuple[
            list[Any], list[Any]]:
        return primitive.bind(*primals, **params), []

    primitive = Primitive(
        name,
        abstract=lambda *avals, **params: (),
        host=Host(reason=HOST_REASON, specialize=specialize),
        outside=Outside(eager=eager),
        effects=Effectful(lambda **params: frozenset({effect_of(**params)})),
        jvp=jvp,
        transpose=lambda cotangents, *operands, **params: [None] * len(operands),
        batch=batch,
        factors=replicated_factors,
        multiple_results=True,
        cacheable=False,
    )
    return primitive


def _element(x: Array, index: int, axis: int) -> Any:
    return squeeze_p.bind(slice_in_dim(x, index, index + 1, axis), dimensions=(axis,))


def _printing(params: Params) -> Callable[..., list[Any]]:
    def write(*args: PyTree, **kwargs: PyTree) -> None:
        _print(params, args, kwargs)

    return SplitCallback(write, params["in_tree"], params["static_args"])


def _print(params: Params, args: Sequence[object], kwargs: dict[str, object]) -> None:
    if params["has_placeholders"]:
        with np.printoptions(**dict(params["np_printoptions"])):
            text = params["fmt"].format(*args, **kwargs)
    else:
        if kwargs:
            raise AssertionError("Format without placeholders should not have kwargs.")
        text = " ".join([params["fmt"], *map(str, args)])
    record = params["logging_record"]
    if record is None:
        sys.stdout.write(text + "\n")
        return
    record = copy.copy(record)
    record.msg = text
    logger.handle(record)


debug_callback_p = _primitive(
    "debug_callback", lambda params: params["callback"], lambda effect, **params: effect)
debug_print_p = _primitive(
    "debug_print", _printing,
    lambda ordered, **params: ordered_debug_effect if ordered else debug_effect)


# --- the functions --------------------------------------------------------------------------------


def debug_callback(callback: Callable[..., None] | None = None, *args: PyTree,
                   ordered: bool = False, partitioned: bool = False, **kwargs: PyTree
                   ) -> Callable[..., None] | None:
    """Calls a Python function with values, also from inside ``jit``, each time that the program
    reaches it.

    Under ``vmap`` it is called for each element; when differentiated, with the values.
    ``debug.callback(ordered=True)(callback, *args)`` keeps the options apart from the arguments.

    Args:
      callback: what it returns is ignored.
      args, kwargs: pytrees; leaves that are no arrays are passed as they are.
      ordered: it keeps its place among the other ordered ones. (Here all are called in the order
        in which they are written.)
      partitioned: accepted.

    Returns:
      None.

    Raises:
      TypeError: ``callback`` cannot be called.

    See also: ``jax.debug.print``, ``jax.pure_callback``, ``jax.experimental.io_callback``,
    ``jax.effects_barrier``.

    >>> jax.jit(lambda x: jax.debug.callback(print, "x is", x))(3)
    x is 3
    """
    def call(callback: Callable[..., None], *args: PyTree, **kwargs: PyTree) -> None:
        if not callable(callback):
            raise TypeError("first argument to jax.debug.callback must be callable, but got an "
                            f"object of type {type(callback)}")
        tree, operands, fixed = split(args, kwargs)
        debug_callback_p.bind(
            *operands, callback=SplitCallback(callback, tree, fixed),
            effect=ordered_debug_effect if ordered else debug_effect, partitioned=partitioned)

    if callback is not None:
        call(callback, *args, **kwargs)
        return None
    if args or kwargs:
        raise TypeError("debug_callback received unexpected arguments in the two-call form: "
                        f"{args=} {kwargs=}")
    return call


def inspect_sharding(value: PyTree, function: Callable[[Sharding], None]) -> None:
    """Calls a function with the sharding of a traced value, once it is decided."""
    debug_callback_p.bind(value, callback=ShardingInspector(function), effect=debug_effect,
                          partitioned=False)


class _FormatCheck(string.Formatter):
    """Formats nothing, and finds arguments that the format does not use."""

    def format_field(self, value: object, format_spec: str) -> str:
        return ""

    def check_unused_args(self, used_args: Collection[int | str], args: Sequence[object],
                          kwargs: Mapping[str, object]) -> None:
        positions = [x for n, x in enumerate(args) if n not in used_args]
        if positions:
            raise ValueError(f"Unused positional arguments to `jax.debug.print`: {positions}")
        names = [name for name in kwargs if name not in used_args]
        if names:
            raise ValueError(
                f"Unused keyword arguments to `jax.debug.print`: {names}. You may be passing an "
                'f-string (i.e, `f"{x}"`) into `jax.debug.print` and instead should pass in a '
                "regular string.")


_check = _FormatCheck()


def _begins_with_field(fmt: str) -> bool:
    """Whether the format's first part ends with a replacement field."""
    return bool(fmt) and next(iter(string.Formatter().parse(fmt)))[1] is not None


def _logging_record() -> logging.LogRecord:
    frame = user_frame()
    place = (frame.f_code.co_filename, frame.f_lineno) if frame else ("(unknown file)", 0)
    return logger.makeRecord(logger.name, logging.INFO, *place, "", (), None)


def debug_print(fmt: str | None = None, *args: PyTree, ordered: bool = False,
                partitioned: bool = False, skip_format_check: bool = False,
                _use_logging: bool = False, **kwargs: PyTree) -> Callable[..., None] | None:
    """Prints values, also from inside ``jit``, each time that the program reaches it.

    Formatting waits for the values, so an f-string does not work. Under ``vmap`` it prints for
    each element; when differentiated, the values. ``debug.print(ordered=True)(fmt, x)`` keeps
    the options apart from the arguments.

    Args:
      fmt: a format string, for ``str.format``.
      args, kwargs: what is formatted; pytrees.
      ordered, partitioned: see ``debug.callback``.
      skip_format_check: allow arguments that the format does not use; without any field in the
        format they are printed after it.

    Returns:
      None.

    Raises:
      ValueError: an argument is not used.

    See also: ``jax.debug.callback``, ``jax.debug.breakpoint``, ``jax.disable_jit``.

    >>> @jax.jit
    ... def f(x):
    ...     jax.debug.print("x = {x:.2f}", x=x)
    ...     return x + 1
    >>> _ = jax.vmap(f)(jnp.array([1., 2.]))
    x = 1.00
    x = 2.00
    """
    def call(fmt: str, *args: PyTree, **kwargs: PyTree) -> None:
        if not skip_format_check:
            _check.format(fmt, *args, **kwargs)
        tree, operands, fixed = split(args, kwargs)
        debug_print_p.bind(
            *operands, fmt=fmt, ordered=ordered, partitioned=partitioned, in_tree=tree,
            static_args=fixed, np_printoptions=tuple(np.get_printoptions().items()),
            has_placeholders=_begins_with_field(fmt),
            logging_record=_logging_record() if _use_logging else None)

    if fmt is not None:
        call(fmt, *args, **kwargs)
        return None
    if args or kwargs:
        raise TypeError("debug_print received unexpected arguments in the two-call form: "
                        f"{args=} {kwargs=}")
    return call
