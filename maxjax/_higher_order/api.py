"""make_jaxpr, eval_shape, typeof and ShapeDtypeStruct: looking at a function without running it."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, overload

import numpy as np

from maxjax._base import dtypes, meshes, pytree
from maxjax._base.meshes import PartitionSpec
from maxjax._base.shardings import NamedSharding, Sharding
from maxjax._higher_order.jit import (
    UNSPECIFIED,
    HasNoValue,
    PjitFunction,
    make_jit,
    with_constants,
)
from maxjax._higher_order.jit_sharded import on_device, with_shardings
from maxjax._higher_order.target import Target
from maxjax._ir.axes import named_axes
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.refs import AbstractRef, Ref
from maxjax._ir.runtime import installed
from maxjax._ir.staging import eval_jaxpr
from maxjax._ir.symbolic import scope_of
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._primitives.sharding import type_on


class Format(NamedTuple):
    """Layout and sharding of an array; the layout is always left to the compiler."""

    layout: Any
    sharding: Any


class ShapeDtypeStruct(HasNoValue):
    """A shape and a dtype in the place of an array; immutable.

    Args:
      shape: the sizes of the dimensions.
      dtype: the type of the elements.
      sharding: a ``Sharding``, or a ``PartitionSpec`` of the mesh that is set where it is read.
      weak_type, is_ref, manual_axis_type: kept, compared and handed on.

    Raises:
      ValueError: there is no dtype, the shape is no sequence, the sharding is none, or it names
        more dimensions.
      TypeError: where the sharding is asked for, a ``PartitionSpec`` was given and no mesh is set.

    >>> ShapeDtypeStruct((2,), np.float32)
    ShapeDtypeStruct(shape=(2,), dtype=float32)
    """

    __module__ = "maxjax"
    __slots__ = ("_aval", "_others", "_sharding")
    _aval: ShapedArray
    _others: tuple[Any, ...]
    _sharding: Any

    def __init__(self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False,
                 is_ref: bool = False, manual_axis_type: Any = None):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be specified.")
        set_ = object.__setattr__
        if isinstance(sharding, NamedSharding):
            sharding.check_compatible_aval(tuple(shape))
        elif isinstance(sharding, PartitionSpec):
            if len(sharding) > len(tuple(shape)):
                raise ValueError(
                    f"PartitionSpec {sharding} is only valid for values of rank at least "
                    f"{len(sharding)}, but was applied to a value of rank {len(tuple(shape))}.")
        elif not (sharding is None or isinstance(sharding, (Sharding, Format))):
            raise ValueError(
                "sharding should be an instance of `jax.sharding.Sharding`, "
                "`jax.sharding.PartitionSpec` or `jax.experimental.layout.Format`. Got "
                f"{sharding} of type {type(sharding)}.")
        set_(self, "_aval", ShapedArray(tuple(shape), dtypes.as_dtype(dtype), weak_type))
        set_(self, "_others", (is_ref, manual_axis_type))
        set_(self, "_sharding", sharding)

    @property
    def sharding(self) -> Any:
        """How the array lies."""
        found = self._sharding
        if not isinstance(found, PartitionSpec):
            return found
        around = meshes.around()
        mesh: Any = around.abstract if around.concrete.empty else around.concrete
        if mesh.empty:
            raise TypeError(
                "When specifying PartitionSpec to `ShapeDtypeStruct`, the context mesh cannot be "
                "empty. Please use `jax.set_mesh` to set the mesh context.")
        return NamedSharding(mesh, found)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name):
            raise RuntimeError(
                f"Cannot reassign attributes ({name}) of immutable ShapeDtypeStruct objects")
        raise AttributeError(f"'ShapeDtypeStruct' object has no attribute {name!r}")

    shape = property(lambda self: self._aval.shape, doc="The sizes of the dimensions.")
    dtype = property(lambda self: self._aval.dtype, doc="The type of the elements.")
    weak_type = property(lambda self: self._aval.weak_type,
                         doc="Whether the dtype yields to others in promotion.")
    ndim = property(lambda self: self._aval.ndim, doc="The number of dimensions.")
    size = property(lambda self: self._aval.size, doc="The number of elements.")
    is_ref = property(lambda self: self._others[0], doc="Whether it stands for a reference.")
    manual_axis_type = property(lambda self: self._others[1])
    format = property(lambda self: Format(None, self.sharding), doc="Layout and sharding.")

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The shape and dtype of an array or scalar, with its weakness."""
        aval = typeof(x)
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """The same but for what is given; names that there are not are let be, as in JAX."""
        fields = {name: changes.get(name, getattr(self, name)) for name in (
            "weak_type", "is_ref", "manual_axis_type")}
        fields["sharding"] = changes.get("sharding", self._sharding)
        return ShapeDtypeStruct(changes.get("shape", self.shape),
                                changes.get("dtype", self.dtype), **fields)

    def __len__(self) -> int:
        return len(self._aval)

    def _key(self) -> Any:
        return self._aval, self._others, self.sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> Any:
        return _restore_struct, (
            self.shape, self.dtype, self._sharding, self.weak_type, *self._others)

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding is not None else ""
        weak = ", weak_type=True" if self.weak_type else ""
        ref = ", is_ref=True" if self.is_ref else ""
        name = self.dtype.name
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={name}{sharding}{weak}{ref})"


def _restore_struct(shape: Any, dtype: Any, sharding: Any, weak_type: bool, is_ref: bool,
                    manual: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape, dtype, sharding=sharding, weak_type=weak_type, is_ref=is_ref,
                            manual_axis_type=manual)


def typeof(x: Any) -> Any:
    """The type of an array or scalar.

    Raises:
      TypeError: ``x`` is neither.
    """
    if isinstance(x, (Array, Ref)):
        return x.aval
    if isinstance(x, ShapeDtypeStruct):
        aval = ShapedArray(x.shape, dtypes.canonical(x.dtype), x.weak_type)
        return aval if x.sharding is None else type_on(aval, x.sharding)
    try:
        return installed.runtime.operand(x).aval
    except TypeError:
        raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type") from None


def abstract_leaf(leaf: Any) -> Any:
    """The type of an argument: an array, a scalar, or anything with a shape and a dtype.

    Raises:
      TypeError: it has none.
    """
    if isinstance(leaf, (Array, Ref, ShapeDtypeStruct, np.ndarray, np.generic)):
        return typeof(leaf)
    if isinstance(leaf, AbstractRef):
        return leaf
    shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is not None and dtype is not None:
        return ShapedArray(shape, dtypes.canonical(dtype), bool(getattr(leaf, "weak_type", False)))
    return typeof(leaf)


def trace_abstract(jitted: PjitFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[
        Any, Any, Any]:
    """The entry of a jitted function for arguments of which only the types count.

    Returns:
      The entry, the tree of the dynamic arguments and the static ones.
    """
    leaves, tree, static = jitted._flatten(args, kwargs)
    avals = []
    for position, leaf in enumerate(leaves):
        try:
            avals.append(abstract_leaf(leaf))
        except TypeError:
            raise jitted._argument_error(leaf, position, tree, static) from None
    scope = scope_of([aval.shape for aval in avals])
    with scope if scope is not None else contextlib.nullcontext():
        return jitted._entry(tuple(avals), tree, static), tree, static


def shape_structs(avals: Iterable[ShapedArray]) -> list[ShapeDtypeStruct]:
    """The types as structs, with what they say of Explicit axes."""
    return [ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type,
                             sharding=None if aval.mesh_spec is None else aval.sharding)
            for aval in avals]


def _result_structs(entry: Any) -> list[ShapeDtypeStruct]:
    """Of the function's own results: the new values of array references stand behind them."""
    return shape_structs(entry.closed.out_avals[:entry.out_tree.num_leaves])


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of the results of ``fun``, without computing them.

    Args:
      args, kwargs: pytrees of arrays, scalars, ``ShapeDtypeStruct`` or anything with a shape and
        a dtype.

    Returns:
      The pytree of the results, with a ``ShapeDtypeStruct`` for each array.
    """
    jitted = fun if isinstance(fun, PjitFunction) else make_jit(fun)
    entry, _, _ = trace_abstract(jitted, args, kwargs)
    return pytree.unflatten(entry.out_tree, _result_structs(entry))


@overload
def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Iterable[int] = (),
               axis_env: Any = None, return_shape: Literal[False] = False
               ) -> Callable[..., ClosedJaxpr]: ...
@overload
def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Iterable[int] = (),
               axis_env: Any = None, *, return_shape: Literal[True]
               ) -> Callable[..., tuple[ClosedJaxpr, Any]]: ...


def make_jaxpr(fun: Callable[..., Any], static_argnums: int | Iterable[int] = (),
               axis_env: Any = None, return_shape: bool = False) -> Callable[..., Any]:
    """A function that gives the jaxpr of ``fun`` for its arguments.

    Args:
      static_argnums: the positional arguments that are Python values.
      axis_env: pairs (name, size) of the named axes that are bound around ``fun``.
      return_shape: give the pair of the jaxpr and the pytree of the results' shapes.

    >>> make_jaxpr(lambda x: x)(1.0)
    { lambda ; a:f32[]. let  in (a,) }
    """
    if not callable(fun):
        raise TypeError("the first argument must be callable")
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)

    @functools.wraps(fun, assigned=[name for name in ("__module__", "__doc__")
                                    if hasattr(fun, name)])
    def make_jaxpr_f(*args: Any, **kwargs: Any) -> Any:
        jitted = make_jit(_callable(fun), static_argnums=numbers or None)
        with named_axes(axis_env or ()):
            entry, _, _ = trace_abstract(jitted, args, kwargs)
        closed = with_constants(entry.closed, entry.captured)
        if not return_shape:
            return closed
        return closed, pytree.unflatten(entry.out_tree, _result_structs(entry))

    make_jaxpr_f.__name__ = f"make_jaxpr({getattr(fun, '__name__', fun)})"
    make_jaxpr_f.__qualname__ = make_jaxpr_f.__name__
    return make_jaxpr_f


class _NotSpecified:
    """The default of ``jit``'s first argument: None would be an error of the caller's."""

    def __repr__(self) -> str:
        return "<not-specified>"


_NOT_SPECIFIED = _NotSpecified()


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
    inline: bool
    compiler_options: dict[str, Any] | None
    dynamic_dims: Mapping[int | str, Any] | None


@overload
def jit(fun: Callable[..., Any], /, **options: Unpack[JitOptions]) -> PjitFunction: ...
@overload
def jit(**options: Unpack[JitOptions]) -> Callable[[Callable[..., Any]], PjitFunction]: ...


def jit(fun: Any = _NOT_SPECIFIED, /, *, in_shardings: Any = UNSPECIFIED,
        out_shardings: Any = UNSPECIFIED,
        static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Iterable[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Iterable[str] | None = None, keep_unused: bool = False,
        device: Any = None, backend: str | None = None, inline: bool = False,
        compiler_options: dict[str, Any] | None = None,
        dynamic_dims: Mapping[int | str, Any] | None = None) -> Any:
    """A function that is traced once for each signature, and compiled once it is worth it.

    Args:
      fun: a function of arrays or pytrees of them. Left out: a decorator is returned.
      static_argnums, static_argnames: arguments that are Python values; hashable. The function
        is traced anew for each value.
      donate_argnums, donate_argnames: arguments whose memory may be taken for the results.
      inline: write the function's operations into the programs that call it.
      dynamic_dims: the dimensions whose sizes change from call to call, with a symbol for each:
        ``{0: {0: "batch"}}`` is dimension 0 of argument 0; arguments by position or name, with a
        pytree of such maps for a pytree, or one map for all of its leaves. The function is traced
        once for all sizes of 2 and more; in it such a size is symbolic: arithmetic, shapes and
        comparisons work, and a comparison that comes out otherwise at another size has the function
        traced once more. maxjax's own: JAX does not have it.
      in_shardings, out_shardings: a ``Sharding``, a ``PartitionSpec`` (of the mesh that is set) or
        None (left open) for each argument, or result; prefix pytrees of them.
      device: where the arguments are put, and the function runs.
      backend: the platform, which has to be there.
      compiler_options: options of XLA's, which have no effect; that is told once.
      keep_unused: whether an argument that nothing reads says where the program runs, too.

    Raises:
      TypeError: ``fun`` is not callable.
      ValueError: it does not take the arguments that are named. At a call: one symbol of
        ``dynamic_dims`` has two sizes; ``compiler_options`` inside of another function.
      RuntimeError: at a call, there is no such platform.
      JaxRuntimeError: at a call, one of ``compiler_options`` is none of XLA's.
      DynamicSizeError: the function needs a dynamic size as a number.

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
    target = None
    if backend is not None or compiler_options:
        target = Target(backend, dict(compiler_options.items()) if compiler_options else None)

    def decorate(function: Callable[..., Any]) -> PjitFunction:
        made = make_jit(function, static_argnums, static_argnames, donate_argnums,
                        donate_argnames, keep_unused, inline, dynamic_dims)
        made._target = target
        if device is not None:
            return on_device(made, device)
        if in_shardings is UNSPECIFIED and out_shardings is UNSPECIFIED:
            return made
        return with_shardings(made, in_shardings, out_shardings)

    return decorate if isinstance(fun, _NotSpecified) else decorate(fun)


def _check_placement(device: Any, backend: str | None) -> None:
    """What JAX says to the arguments ``device`` and ``backend``; there is one backend."""
    warnings.warn(
        "backend and device argument on jit is deprecated. You can use `jax.device_put(..., "
        'jax.local_devices(backend="cpu")[0])` on the inputs to the jitted function to get the '
        "same behavior.", DeprecationWarning, stacklevel=3)
    if device is not None and backend is not None:
        raise ValueError("can't specify both a device and a backend for jit, got "
                         f"device={device!r} and backend={backend!r}")


def _callable(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A jitted function is called inside: its jaxpr has an equation for the call."""
    if not isinstance(fun, PjitFunction):
        return fun

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return call


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A function of flat arguments that runs a jaxpr."""
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)



