"""``buffer_callback``: a Python function that writes its results into buffers of the program.

In a compiled program it is a host step, like ``pure_callback``. Operands are seen where they lie,
results are the buffers that the function wrote to: nothing is copied.
"""

from __future__ import annotations

import enum
import re
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.pytree import PyTree
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.callback import (
    HOST_REASON,
    batched_callback,
    outside_programs,
    refused_derivative,
)
from maxjax._ir.effects import Effect
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Effectful, Host, Outside, Printed
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, invalid_type
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives.random_bits import random_unwrap_p
from maxjax._primitives.rules import replicated_factors

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
Aliases = tuple[tuple[int, int], ...]

# --- what the function gets -----------------------------------------------------------------------


class ExecutionStage(enum.Enum):
    """When a callback is called: always ``EXECUTE``.

    >>> jax.experimental.buffer_callback.ExecutionStage.EXECUTE
    ExecutionStage.EXECUTE
    """

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3

    def __repr__(self) -> str:
        return str(self)


class _MadeByCalls:
    """Only a call of the function makes one."""

    __slots__ = ()

    def __init__(self) -> None:
        raise TypeError(f"jaxlib._jax.ffi.{type(self).__name__}: no constructor defined!")


class ExecutionContext(_MadeByCalls):
    """The circumstances of a call.

    Attributes:
      stage: an ``ExecutionStage``.
      stream: on a GPU its stream; there is none on the CPU.

    >>> def show(context, out, x):
    ...     print(context.stage)
    >>> _ = jax.experimental.buffer_callback.buffer_callback(
    ...     show, jax.ShapeDtypeStruct((), np.float32))(1.)
    ExecutionStage.EXECUTE
    """

    __module__ = "jax.experimental.buffer_callback"
    __slots__ = ()

    @property
    def stage(self) -> ExecutionStage:
        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        raise JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


class Buffer(_MadeByCalls):
    """The memory of an operand or a result, for NumPy (``np.asarray``) and DLPack.

    Attributes:
      shape, dtype, ndim: as of an array.
      writeable: whether it is a result's; the elements of others cannot be written to.

    >>> def show(context, out, x):
    ...     print(x.shape, x.writeable, out.writeable, np.asarray(x))
    >>> _ = jax.experimental.buffer_callback.buffer_callback(
    ...     show, jax.ShapeDtypeStruct((), np.float32))(jnp.arange(3))
    (3,) False True [0 1 2]
    """

    __module__ = "jax.experimental.buffer_callback"
    __slots__ = ("_array",)
    _array: np.ndarray

    @classmethod
    def _of(cls, array: np.ndarray) -> Buffer:
        self = object.__new__(cls)
        self._array = array
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def writeable(self) -> bool:
        return self._array.flags.writeable

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None:
            raise ValueError("dtype parameter is not supported by Buffer.__array__.")
        if copy:
            raise ValueError("Buffer.__array__ with copy=True is not supported.")
        return self._array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise JaxRuntimeError("UNIMPLEMENTED: Buffer.__cuda_array_interface__ is only supported on "
                              "CUDA and ROCm.")

    def __dlpack__(self, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any:
        return self._array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device,
                                      copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


# --- the primitive --------------------------------------------------------------------------------


class BufferCallbackEffect(Effect):
    """A callback that has side effects."""


buffer_callback_effect = BufferCallbackEffect("BufferCallback")


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _called(values: Sequence[Value], *, callback: Callable[..., object],
            result_avals: Sequence[ShapedArray], in_tree: PyTreeDef, out_tree: PyTreeDef,
            input_output_aliases: Aliases, has_side_effect: bool, **params: object) -> list[Any]:
    """The results of a call, as NumPy arrays.

    Raises:
      JaxRuntimeError: with the traceback, the function raised, or returned something.
    """
    operands = [np.ascontiguousarray(value).reshape(np.shape(value)) for value in values]
    if not result_avals and not has_side_effect:
        return []
    results = [np.zeros(aval.shape, aval.dtype) for aval in result_avals]
    for source, target in input_output_aliases:
        results[target][...] = operands[source]
        operands[source] = results[target]
    try:
        with outside_programs():
            args, kwargs = in_tree.unflatten(
                [Buffer._of(_read_only(operand)) for operand in operands])
            returned = callback(
                object.__new__(ExecutionContext),
                out_tree.unflatten([Buffer._of(result) for result in results]), *args, **kwargs)
            if returned is not None:
                raise ValueError("buffer_callback callback must not return any values.")
    except Exception as error:
        raise JaxRuntimeError("INTERNAL: Error when calling buffer callback: "
                              f"{''.join(traceback.format_exception(error))}") from error
    return results


def _specialize(in_avals: Sequence[ShapedArray], params: Params,
                out_avals: Sequence[ShapedArray]) -> Callable[..., list[Any]]:
    return lambda *values: _called(values, **params)


buffer_callback_p = Primitive(
    "buffer_callback",
    abstract=lambda *avals, result_avals, **params: result_avals,
    host=Host(reason=HOST_REASON, specialize=_specialize),
    outside=Outside(
        eager=lambda operands, **params: _called([x.host() for x in operands], **params)),
    effects=Effectful(lambda *, has_side_effect, **params: (
        frozenset({buffer_callback_effect}) if has_side_effect else None)),
    printed=Printed(lambda params: {**params, "callback": _ADDRESS.sub(
        "0xXXXXXXXXXXXX", repr(params["callback"]))}),
    jvp=refused_derivative("Buffer", "JVP"),
    transpose=refused_derivative("Buffer", "transpose"),
    batch=batched_callback(lambda: buffer_callback_p),
    factors=replicated_factors,
    multiple_results=True,
    cacheable=False,
)

# --- the function ---------------------------------------------------------------------------------


def _operand(leaf: object) -> Any:
    """As an array; keys as their words."""
    try:
        operand = installed.runtime.argument(leaf)
    except TypeError:
        raise invalid_type(leaf) from None
    return random_unwrap_p.bind(operand) if dtypes.is_key(operand.dtype) else operand


def _result_aval(leaf: Any) -> ShapedArray:
    shape, dtype = tuple(leaf.shape), dtypes.as_dtype(leaf.dtype)
    if dtypes.is_key(dtype):
        raise TypeError("a buffer_callback writes numbers, no keys: let it write their words, of "
                        "uint32, for jax.random.wrap_key_data")
    return ShapedArray(shape, dtype)


def _check_aliases(aliases: Aliases, operands: Sequence[Array], results: Sequence[ShapedArray]
                   ) -> None:
    for source, target in aliases:
        for kind, index, count in (("input", source, len(operands)),
                                   ("output", target, len(results))):
            if not 0 <= index < count:
                raise ValueError(f"input_output_aliases contains the mapping '{source}:{target}' "
                                 f"with {kind} index {index} outside the range [0, {count}).")
        aval, result = operands[source].aval.update(weak_type=False), results[target]
        if (aval.shape, aval.dtype) != (result.shape, result.dtype):
            raise ValueError(
                f"input_output_aliases contains the mapping '{source}:{target}' referring to an "
                f"input with abstract value {aval.str_short()} and an output with a different "
                f"abstract value {result.str_short()}.")


def buffer_callback(callback: Callable[..., None], result_shape_dtypes: PyTree, *,
                    has_side_effect: bool = False, vmap_method: str | None = None,
                    input_output_aliases: dict[int, int] | None = None,
                    command_buffer_compatible: bool = False) -> Callable[..., Any]:
    """A function of arrays that calls a Python function, which writes the results into buffers.

    It has no derivative: ``custom_jvp`` or ``custom_vjp`` around it gives it one.

    Args:
      callback: called as ``callback(context, out, *args, **kwargs)``; ``context`` is an
        ``ExecutionContext``, and ``out`` and the arguments are pytrees of ``Buffer``s. It returns
        nothing. A result that it does not write to is zero. Buffers are valid during the call.
      result_shape_dtypes: a pytree with the shapes and dtypes of the results.
      has_side_effect: it is called even where the results are not used.
      vmap_method: see ``pure_callback``; None: ``vmap`` is refused.
      input_output_aliases: for the numbers of inputs, in flat order, those of outputs that begin
        as a copy of them; of the same shape and dtype.
      command_buffer_compatible: accepted.

    Raises, also when the function that it returns is called:
      TypeError: an argument is not an array, or a result is to be of keys.
      ValueError: an alias does not fit.
      JaxRuntimeError: ``callback`` raised, or returned something.

    >>> def add_one(context, out, x):
    ...     np.add(np.asarray(x), 1, out=np.asarray(out))
    >>> f = jax.experimental.buffer_callback.buffer_callback(
    ...     add_one, jax.ShapeDtypeStruct((2,), np.float32))
    >>> jax.jit(f)(jnp.array([3., 4.]))
    Array([4., 5.], dtype=float32)
    """
    leaves, tree = pytree.flatten(result_shape_dtypes)
    out_tree = PyTreeDef(tree)
    result_avals = tuple(map(_result_aval, leaves))
    aliases = tuple((input_output_aliases or {}).items())

    def wrapped_callback(*args: PyTree, **kwargs: PyTree) -> Any:
        leaves, in_tree = pytree.flatten((args, kwargs))
        operands = [_operand(leaf) for leaf in leaves]
        _check_aliases(aliases, operands, result_avals)
        results = buffer_callback_p.bind(
            *operands, callback=callback, result_avals=result_avals,
            in_tree=PyTreeDef(in_tree), out_tree=out_tree, vmap_method=vmap_method,
            has_side_effect=has_side_effect, input_output_aliases=aliases,
            command_buffer_compatible=command_buffer_compatible)
        return pytree.unflatten(tree, results)

    return wrapped_callback
