"""What custom_jvp, custom_vjp and custom_vmap share: arguments by position, symbolic zeros, the
check that a rule gives what the function gives, and calls that keep their rule under vmap."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import signature_of
from maxjax._base.source import is_own
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.trace import all_as_given, aval_of, context
from maxjax._ir.types import ShapedArray, match_up_to_weak_type
from maxjax._ir.typing import ArrayLike, Value
from maxjax._transforms.autodiff import leaf_operand
from maxjax._transforms.batching import BatchTrace
from maxjax._transforms.jvp import instantiate


class SymbolicZero:
    """A tangent or cotangent that is known to be zero, for rules defined with
    ``symbolic_zeros``.

    >>> jax.custom_derivatives.SymbolicZero(jax.typeof(jnp.ones(3))).shape
    (3,)
    """

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    def __repr__(self) -> str:
        return type(self).__name__

    def __getattr__(self, name: str) -> Any:
        if name == "aval" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.aval, name)

    @staticmethod
    def from_primal_value(val: ArrayLike) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(leaf_operand(val).aval.tangent())


def zero_tangent(aval: ShapedArray) -> Any:
    """The zero tangent of a value of a type, as an array."""
    if not dtypes.has_tangents(aval.dtype):
        return np.zeros(aval.shape, dtypes.float0)
    return instantiate(None, aval)


def zero_from_primal(val: PyTree, symbolic_zeros: bool = False) -> Any:
    """The zero tangents of a pytree of values.

    Args:
      symbolic_zeros: give ``SymbolicZero`` instead of arrays.

    >>> jax.custom_derivatives.zero_from_primal(jnp.ones(2))
    Array([0., 0.], dtype=float32)
    """
    if symbolic_zeros:
        return pytree.map(SymbolicZero.from_primal_value, val)
    return pytree.map(lambda x: zero_tangent(leaf_operand(x).aval), val)


def handing_on(fun: Callable[..., object]) -> Callable[[Iterable[Any]], list[Any]]:
    """How a function and its rules get their operands: numbers of Python's as they were given, but
    as arrays where the function is maxjax's own."""
    code = getattr(inspect.unwrap(fun), "__code__", None)
    return list if code is not None and is_own(code) else all_as_given


def name_of(function: Callable[..., PyTree]) -> str:
    return getattr(function, "__name__", None) or str(function)


def forwarded(custom: Any, name: str) -> Any:
    """The ``def...`` methods of the function inside, which has a rule of another kind."""
    if name.startswith("def"):
        return getattr(custom.fun, name)
    raise AttributeError(name)


# --- arguments ------------------------------------------------------------------------------------


def fixed_numbers(function: Callable[..., PyTree], numbers: Sequence[int],
                  names: Iterable[str] | str) -> tuple[int, ...]:
    """The positions of the arguments that are not differentiated."""
    chosen = set(numbers) if numbers else set()
    if names:
        parameters = list(signature_of(function).parameters)      # type: ignore[union-attr]
        given = (names,) if isinstance(names, str) else names
        chosen.update(parameters.index(name) for name in given if name in parameters)
    return tuple(sorted(chosen))


class Positional:
    """Resolves the arguments of calls of one function to positions, defaults included."""

    __slots__ = ("count", "function", "kind")

    def __init__(self, function: Callable[..., PyTree], kind: str):
        self.function = function
        self.kind = kind
        # A call with this many positional arguments needs no resolving.
        self.count = -1
        signature = None if isinstance(function, functools.partial) else signature_of(function)
        if signature is not None:
            parameters = signature.parameters.values()
            if all(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
                self.count = len(parameters)

    def __call__(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> tuple[Any, ...]:
        """All arguments by position.

        Raises:
          TypeError: they cannot all be given by position.
        """
        if not kwargs and len(args) == self.count:
            return args
        try:
            return self._bind(args, kwargs)
        except TypeError as error:
            raise TypeError(
                f"The input arguments to the {self.kind}-decorated function "
                f"{name_of(self.function)} could not be resolved to positional-only arguments. "
                f"Binding failed with the error:\n{error}") from error

    def _bind(self, args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> tuple[Any, ...]:
        function = self.function
        if isinstance(function, functools.partial):      # its signature does not count
            def function(*args: PyTree, **kwargs: PyTree) -> None:
                pass
        signature = signature_of(function)
        if signature is None:
            signature = inspect.signature(function)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            passed = [name for name in bound.kwargs if name in kwargs]
            if passed:
                raise TypeError("The following keyword arguments could not be resolved to "
                                f"positions: {', '.join(passed)}")
        return bound.args


# --- results --------------------------------------------------------------------------------------


class Results:
    """The structure and types of a function's result, which its rule is checked against."""

    __slots__ = ("avals", "tree")

    def __init__(self, tree: PyTreeSpec, values: Sequence[Value]):
        self.tree = tree
        self.avals = [aval_of(value) for value in values]

    def described(self) -> str:
        text = str(pytree.unflatten(self.tree, [aval.str_short() for aval in self.avals]))
        return text.replace("'", "")


def check_results(results: Results, function: Results | None, messages: tuple[str, str, str],
                  decorated: str) -> None:
    """Raises where a rule's primal result is unlike the function's.

    Args:
      messages: the beginning of a message, and its continuations for structures and for types.
      decorated: the function, in the words of the message.

    Raises:
      TypeError: names both.
    """
    if function is None:
        return
    start, of_structures, of_types = messages
    if function.tree != results.tree:
        raise TypeError(
            f"{start}{of_structures} output's first element had container/pytree structure:\n"
            f"    {results.described()}\n"
            f"while the {decorated} had output container/pytree structure:\n"
            f"    {function.described()}.")
    if not all(map(match_up_to_weak_type, results.avals, function.avals)):
        raise TypeError(
            f"{start}{of_types} output's first element had shapes/dtypes of:\n"
            f"    {results.described()}\n"
            f"while the {decorated} had output shapes/dtypes of:\n"
            f"    {function.described()}")


def batched_call(size: int, operands: Sequence[Value], axes: Sequence[int | None],
                 closed: ClosedJaxpr, num_consts: int,
                 apply: Callable[[BatchTrace, Callable[..., list[Value]], list[Value]], list[Value]]
                 ) -> tuple[list[Any], list[int | None]]:
    """The batching rule of a call that keeps a user's rule, which is batched with it.

    Args:
      num_consts: how many of the operands are values that the function closes over.
      apply: ``(trace, function, arguments) -> results``: applies the function with its rule.
    """
    trace = BatchTrace(context.trace, size, context.batch_axis)
    boxed = [trace.box(x, axis) for x, axis in zip(operands, axes, strict=True)]
    consts = boxed[:num_consts]
    outs = apply(trace, lambda *xs: eval_jaxpr(closed.jaxpr, closed.consts, *consts, *xs),
                 boxed[num_consts:])
    pairs = [trace.unbox(out) for out in outs]
    return [value for value, _ in pairs], [axis for _, axis in pairs]
