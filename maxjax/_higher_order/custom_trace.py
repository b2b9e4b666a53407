"""Traces of users' own: JAX's methods, and how they become maxjax's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base.wrapped_function import WrappedFun, wrap_init
from maxjax._higher_order.custom_jvp import custom_jvp_call_p
from maxjax._higher_order.custom_vjp_call import custom_vjp_call_p
from maxjax._higher_order.jit import jit_p
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Trace
from maxjax._ir.typing import FlatJvp, FlatVjp, Params, Value


class _AnyTrace(type):
    """maxjax's own traces are instances and subclasses too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is CustomTrace and isinstance(instance, Trace))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, subclass) or (
            cls is CustomTrace and issubclass(subclass, Trace))


class CustomTrace(Trace, metaclass=_AnyTrace):
    """What happens to each operation while this is the current trace
    (``jax.extend.core.set_current_trace``); to be subclassed.

    A subclass defines ``process_primitive(primitive, tracers, params)``, which gives the result,
    a list where ``primitive.multiple_results``. Functions with derivative rules of their own go to
    ``process_custom_jvp_call(primitive, fun, jvp, tracers, *, symbolic_zeros)`` and
    ``process_custom_vjp_call(primitive, fun, fwd, bwd, tracers, out_trees, symbolic_zeros)``; both
    give a list. ``fun`` is of ``jax.extend.linear_util``.

    >>> class Counting(jax.core.Trace):
    ...     count = 0
    ...     def process_primitive(self, primitive, tracers, params):
    ...         self.count += 1
    ...         return self.parent.process_primitive(primitive, tracers, params)
    >>> trace = Counting()
    >>> with jax.extend.core.take_current_trace() as trace.parent:
    ...     with jax.extend.core.set_current_trace(trace):
    ...         result = jax.lax.sin(jax.lax.cos(jnp.float32(0)))
    >>> trace.count
    2
    """

    def full_raise(self, x: object) -> Any:
        """``x``: values of other traces are told apart by a subclass's own rules."""
        return x

    def process_primitive(self, primitive: Primitive, tracers: Sequence[Value],
                          params: Params) -> Any:
        """The result of a primitive.

        Raises:
          NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError("must override")

    def process_custom_jvp_call(self, primitive: Primitive, fun: WrappedFun, jvp: WrappedFun,
                                tracers: Sequence[Value], *, symbolic_zeros: bool) -> Any:
        """The results of a function with a forward rule of its own.

        Raises:
          NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(f"{type(self)} must override process_custom_jvp_call "
                                  "to handle custom_jvp primitives")

    def process_custom_vjp_call(self, primitive: Primitive, fun: WrappedFun, fwd: WrappedFun,
                                bwd: WrappedFun | None, tracers: Sequence[Value],
                                out_trees: Callable[[], object] | None,
                                symbolic_zeros: bool) -> Any:
        """The results of a function with a reverse rule of its own; ``bwd`` and ``out_trees`` are
        None: here ``fwd(primals, perturbed)`` gives the backward pass too.

        Raises:
          NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(f"{type(self)} must override process_custom_vjp_call "
                                  "to handle custom_vjp primitives")

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        # The functions of staged programs have their rules as well.
        if primitive is custom_jvp_call_p or primitive is custom_vjp_call_p:
            closed = params["call_jaxpr"]
            function = functools.partial(eval_jaxpr, closed.jaxpr, closed.consts)
            symbolic_zeros = params["symbolic_zeros"]
            if primitive is custom_jvp_call_p:
                return self._custom_jvp(function, params["jvp"], args, params["name"],
                                        symbolic_zeros)
            return self._custom_vjp(function, params["fwd"], args, params["name"], symbolic_zeros)
        if primitive is jit_p:      # JAX's rules name it, and calls that are left are not inlined
            params = {"inline": False, **params}
        return self.process_primitive(primitive, list(args), params)

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: Any) -> list[Any]:
        return self._custom_jvp(function, jvp, args, **_told(params))

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: Any) -> list[Any]:
        return self._custom_vjp(function, rule, args, **_told(params))

    def _custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp, args: Sequence[Value],
                    name: str, symbolic_zeros: bool) -> list[Any]:
        return list(self.process_custom_jvp_call(
            custom_jvp_call_p, _named(function, name), _named(jvp, name), list(args),
            symbolic_zeros=symbolic_zeros))

    def _custom_vjp(self, function: Callable[..., list[Value]], fwd: FlatVjp, args: Sequence[Value],
                    name: str, symbolic_zeros: bool) -> list[Any]:
        return list(self.process_custom_vjp_call(
            custom_vjp_call_p, _named(function, name), _named(fwd, name), None, list(args), None,
            symbolic_zeros))


def _told(params: Params) -> dict[str, Any]:
    """What the hook that stages a call knows of it."""
    known = params["stage"].keywords
    return {"name": known["name"], "symbolic_zeros": known["symbolic_zeros"]}


def _named(function: Callable[..., object], name: str) -> WrappedFun:
    def called(*args: object) -> Any:
        return function(*args)

    called.__name__ = name
    return wrap_init(called)


# Users know it as ``jax.core.Trace``.
CustomTrace.__name__ = CustomTrace.__qualname__ = "Trace"
