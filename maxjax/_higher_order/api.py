"""jit, and make_jaxpr and eval_shape: looking at a function without running it."""

from __future__ import annotations

import enum
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

from maxjax._base.pytree import PyTree
from maxjax._base.specs import AxisName
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.constants import closed_over_scalars, with_constants
from maxjax._higher_order.jit_function import PjitFunction, make_jit
from maxjax._higher_order.jit_sharded import UNSPECIFIED, Shardings, checked, on_device
from maxjax._higher_order.target import Target
from maxjax._ir.axes import named_axes
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.trace import context


@boundary
def eval_shape(fun: Callable[..., PyTree], *args: PyTree, **kwargs: PyTree) -> Any:
    """The shapes and dtypes of the results of ``fun``, without computing them.

    Args:
      fun: a function of arrays or pytrees of them; it is traced, not run.
      args, kwargs: pytrees of arrays, scalars, ``ShapeDtypeStruct`` or anything with a shape and
        a dtype.

    Returns:
      The pytree of the results, with a ``ShapeDtypeStruct`` for each array.

    Raises:
      TypeError: an argument is no array, number or shape.

    See also: ``jax.make_jaxpr``, ``jax.ShapeDtypeStruct``, ``jax.typeof``, ``jax.jit``.
    """
    jitted = fun if isinstance(fun, PjitFunction) else make_jit(fun)
    return jitted.eval_shape(*args, **kwargs)


@overload
def make_jaxpr(fun: Callable[..., PyTree], static_argnums: int | Iterable[int] = (),
               axis_env: Iterable[tuple[AxisName, int]] | None = None,
               return_shape: Literal[False] = False) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(fun: Callable[..., PyTree], static_argnums: int | Iterable[int] = (),
               axis_env: Iterable[tuple[AxisName, int]] | None = None, *,
               return_shape: Literal[True]) -> Callable[..., tuple[ClosedJaxpr, Any]]: ...


def make_jaxpr(fun: Callable[..., PyTree], static_argnums: int | Iterable[int] = (),
               axis_env: Iterable[tuple[AxisName, int]] | None = None, return_shape: bool = False
               ) -> Callable[..., Any]:
    """A function that gives the jaxpr of ``fun`` for its arguments.

    Args:
      fun: a function of arrays or pytrees of them; it is traced, not run.
      static_argnums: the positional arguments that are Python values.
      axis_env: pairs (name, size) of the named axes that are bound around ``fun``.
      return_shape: give the pair of the jaxpr and the pytree of the results' shapes.

    Returns:
      A function of ``fun``'s arguments that gives a ``ClosedJaxpr``: printed, it shows the program.

    Raises:
      TypeError: at a call, an argument is no array or number.

    See also: ``jax.jit``, ``jax.eval_shape``, ``jax.extend.core.jaxpr_as_fun``.

    >>> make_jaxpr(lambda x: x)(1.0)
    { lambda ; a:f32[]. let  in (a,) }
    """
    if not callable(fun):
        raise TypeError("the first argument must be callable")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun, assigned=[name for name in ("__module__", "__doc__")
                                    if hasattr(fun, name)])
    @boundary
    def make_jaxpr_f(*args: PyTree, **kwargs: PyTree) -> Any:
        jitted = make_jit(_callable(fun), static_argnums=numbers or None)
        before = context.kept_scalars
        context.kept_scalars = {**(before or {}), **closed_over_scalars(fun)}
        try:
            with named_axes(axis_env or ()):
                entry = jitted._trace_abstract(args, kwargs)[0]
        finally:
            context.kept_scalars = before
        closed = with_constants(entry.closed, entry.captured)
        return (closed, entry.result_structs()) if return_shape else closed

    make_jaxpr_f.__name__ = f"make_jaxpr({getattr(fun, '__name__', fun)})"
    make_jaxpr_f.__qualname__ = make_jaxpr_f.__name__
    return make_jaxpr_f


class _NotSpecified:
    """The default of ``jit``'s first argument: None would be a mistake of the caller."""

    def __repr__(self) -> str:
        return "<not-specified>"


_NOT_SPECIFIED = _NotSpecified()


class Inline(enum.Enum):
    """Where the call of a jitted function by another is written out.

    >>> double = jax.jit(lambda x: 2 * x, inline=jax.Inline.JAX_EARLY)
    >>> jax.make_jaxpr(lambda x: double(x))(1.)
    { lambda ; a:f32[]. let b:f32[] = mul 2.0:f32[] a in (b,) }
    """

    JAX_EARLY = "jax_early"     # in the caller's jaxpr
    JAX_LATE = "jax_late"       # when the caller is lowered; for this and the others, the same here
    XLA_EARLY = "xla_early"
    XLA_LATE = "xla_late"
    AUTO = "auto"


class JitOptions(TypedDict, total=False):
    """The arguments of ``jit`` by name."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Iterable[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Iterable[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool | Inline
    compiler_options: dict[str, Any] | None
    dynamic_dims: Mapping[int | str, Any] | None


@overload
def jit(fun: Callable[..., PyTree], /, **options: Unpack[JitOptions]) -> PjitFunction: ...
@overload
def jit(**options: Unpack[JitOptions]) -> Callable[[Callable[..., Any]], PjitFunction]: ...


def jit(fun: Any = _NOT_SPECIFIED, /, *, in_shardings: PyTree = UNSPECIFIED,
        out_shardings: PyTree = UNSPECIFIED,
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None, keep_unused: bool = False,
        device: object = None, backend: str | None = None, inline: bool | Inline = False,
        compiler_options: dict[str, object] | None = None,
        dynamic_dims: Mapping[int | str, PyTree] | None = None) -> Any:
    """A function that is traced once for each signature, and compiled once it is worth it.

    Args:
      fun: a function of arrays or pytrees of them. Left out: a decorator is returned.
      in_shardings, out_shardings: a ``Sharding``, a ``PartitionSpec`` (of the mesh that is set) or
        None (left open) for each argument, or result; prefix pytrees of them.
      static_argnums, static_argnames: arguments that are Python values; hashable. The function
        is traced anew for each value.
      donate_argnums, donate_argnames: arguments whose memory may be taken for the results.
      keep_unused: whether arguments that nothing reads also decide where the program runs.
      device: where the arguments are put, and the function runs.
      backend: the platform, which has to be there.
      inline: ``Inline.JAX_EARLY`` writes the function's operations into the jaxprs that call it;
        anything else is left to the compiler, which writes all calls out.
      compiler_options: XLA options, which have no effect; a warning says so once.
      dynamic_dims: the dimensions whose sizes change from call to call, with a symbol for each:
        ``{0: {0: "batch"}}`` is dimension 0 of argument 0; arguments by position or name, with a
        pytree of such maps for a pytree, or one map for all of its leaves. The function is traced
        once for all sizes of 2 and more; in it such a size is symbolic: arithmetic, shapes and
        comparisons work, and a comparison that comes out otherwise at another size has the function
        traced once more. maxjax's own: JAX does not have it.

    Returns:
      A function of the same arguments. It has the methods ``lower``, ``trace`` and ``eval_shape``,
      for what happens before it runs, and ``clear_cache``.

    Raises:
      TypeError: ``fun`` is not callable.
      ValueError: it does not take the arguments that are named. At a call: one symbol of
        ``dynamic_dims`` has two sizes; ``compiler_options`` inside another jitted function.
      RuntimeError: at a call, there is no such platform.
      JaxRuntimeError: at a call, XLA has no option of a name in ``compiler_options``.
      DynamicSizeError: the function needs a dynamic size as a number.

    See also: ``jax.grad``, ``jax.vmap``, ``jax.eval_shape``, ``jax.make_jaxpr``,
    ``jax.disable_jit``, ``jax.checkpoint``.

    >>> mean = jit(lambda x: x.sum(0) / x.shape[0], dynamic_dims={0: {0: "batch"}})
    >>> mean(np.ones((4, 2), np.float32)), mean(np.ones((7, 2), np.float32))
    (Array([1., 1.], dtype=float32), Array([1., 1.], dtype=float32))
    """
    if device is not None or backend is not None:
        _check_placement(device, backend)
        for name, given in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
            if given is not UNSPECIFIED:
                raise ValueError(f"If backend or device is specified on jit, then {name} should "
                                 "not be specified.")
    if not isinstance(inline, (bool, Inline)):
        raise ValueError(f"Invalid inline option: {inline!r}")
    early = inline is Inline.JAX_EARLY
    target = None
    if backend is not None or compiler_options:
        target = Target(backend, dict(compiler_options.items()) if compiler_options else None)

    def decorate(function: Callable[..., PyTree]) -> PjitFunction:
        shardings: Shardings | None = None
        if device is not None:
            shardings = on_device(device)
        elif in_shardings is not UNSPECIFIED or out_shardings is not UNSPECIFIED:
            shardings = checked(in_shardings, out_shardings)
        return make_jit(function, static_argnums, static_argnames, donate_argnums,
                        donate_argnames, keep_unused, early, dynamic_dims, target, shardings)

    return decorate if isinstance(fun, _NotSpecified) else decorate(fun)


def _check_placement(device: object, backend: str | None) -> None:
    """Checks the arguments ``device`` and ``backend`` as JAX does; there is one backend."""
    warnings.warn(
        "backend and device argument on jit is deprecated. You can use `jax.device_put(..., "
        'jax.local_devices(backend="cpu")[0])` on the inputs to the jitted function to get the '
        "same behavior.", DeprecationWarning, stacklevel=3)
    if device is not None and backend is not None:
        raise ValueError("can't specify both a device and a backend for jit, got "
                         f"device={device!r} and backend={backend!r}")


def _callable(fun: Callable[..., PyTree]) -> Callable[..., Any]:
    """Wraps a jitted function, so that the jaxpr has an equation for its call; and what cannot be
    referred to weakly, as jit's functions must be."""
    if not isinstance(fun, PjitFunction) and type(fun).__weakrefoffset__:
        return fun

    @functools.wraps(fun)
    def call(*args: PyTree, **kwargs: PyTree) -> Any:
        return fun(*args, **kwargs)

    return call


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A function of flat arguments that runs a jaxpr."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


