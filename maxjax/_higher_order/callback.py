"""pure_callback and io_callback: Python functions called while a program runs.

In a compiled program a callback is a host step. The function gets arrays, never tracers, and what
it returns is checked against the declared types.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.interrupts import context_manager, entered_at_once
from maxjax._base.logs import CALLBACK
from maxjax._base.pytree import PyTree
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order import scan
from maxjax._ir.effects import io_effect, ordered_io_effect
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Effectful, Host, Outside
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, aval_of, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives import costs
from maxjax._primitives.broadcasting import broadcast_leading
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import replicated_factors

VMAP_METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
                "legacy_vectorized", None]
HOST_REASON = "it calls a Python function"


class FlatCallback(NamedTuple):
    """A function of pytrees as one of flat lists."""

    callback_func: Callable[..., Any]
    in_tree: PyTreeDef

    def __call__(self, *leaves: Array) -> list[Any]:
        args, kwargs = self.in_tree.unflatten(leaves)
        return pytree.leaves(self.callback_func(*args, **kwargs))

    def __repr__(self) -> str:
        return f"_FlatCallback(callback_func={self.callback_func}, in_tree={self.in_tree})"


# --- calling --------------------------------------------------------------------------------------


class outside_programs:
    """The environment of a callback: no transformation, NumPy's usual warnings."""

    def __enter__(self) -> None:
        self.errors = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
        self.trace, self.axis_env, self.manual = context.trace, context.axis_env, context.manual
        self.errors.__enter__()
        context.trace, context.axis_env, context.manual = installed.runtime, (), None

    @entered_at_once
    def __exit__(self, *error: object) -> None:
        context.trace, context.axis_env, context.manual = self.trace, self.axis_env, self.manual
        self.errors.__exit__(None, None, None)


def arrays_of(values: Sequence[object], avals: Sequence[ShapedArray]) -> list[Any]:
    """The values of a running program as arrays, which a Python function may keep.

    They are copies: a program's value can lie in the caller's memory (an argument of it, or a view
    of one), or in memory that the program uses again.
    """
    constant = installed.runtime.constant
    return [constant(np.array(value), aval) for value, aval in zip(values, avals, strict=True)]


@context_manager
def failures_logged(logger: logging.Logger, name: str) -> Iterator[None]:
    """Logs what a callback raises, as JAX does: a program that runs in the background raises its
    own error, and only when somebody waits for it."""
    try:
        yield
    except BaseException:
        logger.exception(f"{name} failed")
        raise


def in_program(call: Callable[..., list[np.ndarray]], in_avals: Sequence[ShapedArray]
               ) -> Callable[..., list[Any]]:
    """``call``, a function of arrays, as a step of a program.

    The step raises JaxRuntimeError, with the traceback, where ``call`` raises.
    """
    avals = [aval.update(weak_type=False) for aval in in_avals]

    def run(*values: Value) -> list[Any]:
        try:
            with outside_programs():
                return call(*arrays_of(values, avals))
        except Exception as error:
            raise JaxRuntimeError("INTERNAL: CpuCallback error calling callback: "
                                  f"{''.join(traceback.format_exception(error))}") from error

    return run


def _checked_results(name: str, callback: FlatCallback, result_avals: Sequence[ShapedArray],
                     args: Sequence[Array]) -> list[Any]:
    """What the callback returns, as NumPy arrays of the declared types.

    Raises:
      RuntimeError: their number, shapes or dtypes differ.
    """
    with failures_logged(CALLBACK, f"jax.{name}"):
        # The function may keep its arrays, and write to them.
        results = [result if isinstance(result, Array) else np.array(result)
                   for result in callback(*args)]
    if len(results) != len(result_avals):
        raise RuntimeError("Mismatched number of outputs from callback. Expected: "
                           f"{len(result_avals)}, Actual: {len(results)}")
    values = []
    for number, (value, aval) in enumerate(zip(results, result_avals, strict=True)):
        shape, dtype = value.shape, dtypes.canonical(value.dtype)
        dtypes.check_storable(dtype)
        for what, expected, actual in (("shape", aval.shape, shape), ("dtype", aval.dtype, dtype)):
            if actual != expected:
                raise RuntimeError(f"Incorrect output {what} for return value #{number}: "
                                   f"Expected: {expected}, Actual: {actual}")
        content = value.host() if isinstance(value, Array) else value
        values.append(content.astype(dtypes.physical(dtype), copy=False))
    return values


def _step(name: str, in_avals: Sequence[ShapedArray], callback: FlatCallback,
          result_avals: Sequence[ShapedArray]) -> Callable[..., list[Any]]:
    return in_program(lambda *args: _checked_results(name, callback, result_avals, args), in_avals)


def _host(name: str) -> Host:
    def specialize(in_avals: Sequence[ShapedArray], params: Params,
                   out_avals: Sequence[ShapedArray]) -> Callable[..., list[Any]]:
        return _step(name, in_avals, params["callback"], params["result_avals"])

    return Host(reason=HOST_REASON, specialize=specialize)


def _outside(name: str) -> Outside:
    def eager(operands: Sequence[Array], *, callback: FlatCallback,
              result_avals: Sequence[ShapedArray], **params: object) -> list[Any]:
        return _step(name, [x.aval for x in operands], callback, result_avals)(
            *[x.host() for x in operands])

    return Outside(eager=eager)


# --- the primitives -------------------------------------------------------------------------------


def _map(primitive: Primitive, size: int, operands: Sequence[Array], axes: Sequence[int | None],
         params: Params, unrolled: bool = False) -> list[Any]:
    """Applies the primitive to one element after the other, in a loop."""
    batched = [axis is not None for axis in axes]
    consts = [x for x, flag in zip(operands, batched, strict=True) if not flag]
    xs = [move_axis(x, axis, 0) for x, axis in zip(operands, axes, strict=True)
          if axis is not None]

    def body(*args: Value) -> list[Any]:
        fixed, slices = iter(args[:len(consts)]), iter(args[len(consts):])
        return primitive.bind(*[next(slices) if flag else next(fixed) for flag in batched],
                              **params)

    slice_avals = [aval_of(x).update(shape=x.shape[1:]) for x in xs]
    closed = trace_to_jaxpr(body, [*map(aval_of, consts), *slice_avals], primitive.name)
    return scan.bind(consts, [], xs, closed, length=size, unroll=size if unrolled else 1)


def batched_callback(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """The batching rule of a callback with the parameters ``vmap_method`` and ``result_avals``."""

    def batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *,
              vmap_method: str | None, result_avals: Sequence[ShapedArray], **params: object
              ) -> tuple[list[Any], list[int]]:
        params["vmap_method"] = vmap_method
        if vmap_method is None or vmap_method not in VMAP_METHODS:
            raise NotImplementedError(
                f"vmap is only supported for the {primitive().name} primitive when vmap_method is "
                "one of 'sequential', 'sequential_unrolled', 'expand_dims', 'broadcast_all', or "
                f"'legacy_vectorized'. Got {vmap_method=}.")
        if vmap_method in ("sequential", "sequential_unrolled"):
            outs = _map(primitive(), size, operands, axes,
                        {**params, "result_avals": result_avals},
                        unrolled=vmap_method == "sequential_unrolled")
            return outs, [0] * len(outs)
        repeats = {"expand_dims": 1, "broadcast_all": size}.get(vmap_method)
        values = []
        for x, axis in zip(operands, axes, strict=True):
            if axis is not None:
                x = move_axis(x, axis, 0)
            elif repeats is not None:
                x = broadcast_leading(x, repeats)
            values.append(x)
        outs = primitive().bind(
            *values, result_avals=tuple(aval.update(shape=(size, *aval.shape))
                                        for aval in result_avals), **params)
        return outs, [0] * len(outs)

    return batch


# How an ``io_callback`` in the body of a ``shard_map`` is ordered in the program of all shards:
# each shard's calls are in order.
ON_EACH_SHARD = "on each shard"


def _io_batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *,
              ordered: bool | str, **params: object) -> tuple[list[Any], list[int]]:
    if ordered is True:
        raise ValueError("Cannot `vmap` ordered IO callback.")
    outs = _map(io_callback_p, size, operands, axes, {**params, "ordered": ordered})
    return outs, [0] * len(outs)


_REPLACED = {"JVP": "custom_jvp", "transpose": "custom_vjp"}


def refused_derivative(kind: str, what: str, advice: bool = True) -> Callable[..., Any]:
    """A rule that raises ValueError, as callbacks have no derivatives."""
    message = f"{kind} callbacks do not support {what}."
    if advice:
        message += (f" Please use `jax.{_REPLACED[what]}` to use callbacks while taking "
                    "gradients.")

    def rule(*args: object, **params: object) -> Any:
        raise ValueError(message)
    return rule


pure_callback_p = Primitive(
    "pure_callback",
    abstract=lambda *avals, result_avals, **params: result_avals,
    host=_host("pure_callback"),
    outside=_outside("pure_callback"),
    jvp=refused_derivative("Pure", "JVP"),
    transpose=refused_derivative("Pure", "transpose"),
    batch=batched_callback(lambda: pure_callback_p),
    factors=replicated_factors,
    multiple_results=True,
    cacheable=False,
    cost=costs.FREE_ROOFLINE,
)

io_callback_p = Primitive(
    "io_callback",
    abstract=lambda *avals, result_avals, **params: result_avals,
    host=_host("io_callback"),
    outside=_outside("io_callback"),
    effects=Effectful(
        lambda ordered, **params: frozenset({ordered_io_effect if ordered else io_effect})),
    jvp=refused_derivative("IO", "JVP", advice=False),
    transpose=refused_derivative("IO", "transpose", advice=False),
    batch=_io_batch,
    factors=replicated_factors,
    multiple_results=True,
    cacheable=False,
    cost=costs.FREE_ROOFLINE,
)


# --- the functions --------------------------------------------------------------------------------


def _result_avals(result_shape_dtypes: PyTree) -> tuple[tuple[ShapedArray, ...], Any]:
    leaves, tree = pytree.flatten(result_shape_dtypes)
    avals = []
    for leaf in leaves:
        dtype = dtypes.as_dtype(leaf.dtype)
        dtypes.check_storable(dtype)
        if dtypes.canonical(dtype) != dtype:
            raise ValueError("result_shape_dtypes cannot specify 64-bit types when "
                             "`jax_enable_x64` is disabled")
        avals.append(ShapedArray(tuple(leaf.shape), dtype))
    return tuple(avals), tree


def _operands(name: str, leaves: Sequence[object]) -> list[Any]:
    operands = []
    for position, leaf in enumerate(leaves):
        try:
            operands.append(installed.runtime.argument(leaf))
        except TypeError:
            raise TypeError(
                f"Error interpreting argument to {name} as a JAX value. The problematic value is "
                f"of type {type(leaf)} and was passed to {name} at position {position}.\n"
            ) from None
    return operands


def pure_callback(callback: Callable[..., PyTree], result_shape_dtypes: PyTree, *args: PyTree,
                  sharding: object = None, vmap_method: str | None = None, **kwargs: PyTree) -> Any:
    """Calls a Python function without side effects, also from inside ``jit``.

    It is called once, several times or not at all, as the program needs its result. It has no
    derivative: ``custom_jvp`` or ``custom_vjp`` around it gives it one.

    Args:
      callback: gets arrays, in the pytrees of ``args`` and ``kwargs``; returns what NumPy can
        convert to arrays.
      result_shape_dtypes: a pytree with the shapes and dtypes of its results, such as
        ``jax.ShapeDtypeStruct``s.
      args, kwargs: pytrees of arrays and numbers.
      sharding: accepted.
      vmap_method: what ``vmap`` does. "sequential": one call for each element, in a loop
        ("sequential_unrolled": written out). The others are one call for all elements, with a
        leading axis: unmapped arguments get one of size 1 ("expand_dims"), of the full size
        ("broadcast_all"), or none ("legacy_vectorized"). None: ``vmap`` is refused.

    Returns:
      A pytree of arrays as in ``result_shape_dtypes``.

    Raises:
      ValueError: no such ``vmap_method``; or a 64-bit dtype where they are disabled.
      JaxRuntimeError: the function failed, or returned something other than was declared.

    See also: ``jax.experimental.io_callback``, ``jax.debug.callback``, ``jax.custom_jvp``.

    >>> def norm(x):
    ...     return np.linalg.norm(x)
    >>> scalar = jax.ShapeDtypeStruct((), np.float32)
    >>> jax.jit(lambda x: 2 * jax.pure_callback(norm, scalar, x))(jnp.array([3., 4.]))
    Array(10., dtype=float32)
    """
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {VMAP_METHODS}, but got: "
                         f"{vmap_method}")
    leaves, tree = pytree.flatten((args, kwargs))
    avals, out_tree = _result_avals(result_shape_dtypes)
    results = pure_callback_p.bind(
        *_operands("pure_callback", leaves), callback=FlatCallback(callback, PyTreeDef(tree)),
        result_avals=avals, sharding=sharding, vmap_method=vmap_method)
    return pytree.unflatten(out_tree, results)


def io_callback(callback: Callable[..., PyTree], result_shape_dtypes: PyTree, *args: PyTree,
                sharding: object = None, ordered: bool = False, **kwargs: PyTree) -> Any:
    """Calls a Python function for its side effects, also from inside ``jit``.

    It is called once each time that the program reaches it. It has no derivative.

    Args:
      callback, result_shape_dtypes, sharding: see ``pure_callback``.
      ordered: it keeps its place among the other ordered callbacks; ``vmap`` refuses it. (Here
        all callbacks are called in the order in which they are written.)

    >>> log = []
    >>> @jax.jit
    ... def f(x):
    ...     io_callback(lambda v: log.append(float(v)), None, x, ordered=True)
    ...     return x + 1
    >>> _ = f(1.), f(2.)
    >>> log
    [1.0, 2.0]
    """
    leaves, tree = pytree.flatten((args, kwargs))
    avals, out_tree = _result_avals(result_shape_dtypes)
    results = io_callback_p.bind(
        *_operands("io_callback", leaves), callback=FlatCallback(callback, PyTreeDef(tree)),
        result_avals=avals, sharding=sharding, ordered=ordered)
    return pytree.unflatten(out_tree, results)
