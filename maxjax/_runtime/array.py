"""Concrete arrays: a type, and a value that may still be pending.

Two things hold of every value, in tier 0, in compiled code and in what a callback sees:

- It is a plain ``np.ndarray`` of the physical dtype and the shape that its type says. Values from
  outside are converted in one place (``maxjax._runtime.outside_values.plain``; subclasses of
  ndarray compute in their own ways), and every array's value passes through ``checked``.
- Nobody else writes to its memory. Memory that the caller may write to later is copied on entry or,
  for an argument of a program, before anything that outlives the call can hold it; what is handed
  out is a view that NumPy does not let anybody make writable.
"""

from __future__ import annotations

import enum
import functools
import sys
import threading
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.interrupts import entered_at_once
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding, refuse_unreduced
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, context, truth_value_message
from maxjax._ir.types import ShapedArray
from maxjax._max.device_memory import DeviceBuffer, DeviceMemory
from maxjax._primitives.layout import copy_p, reshape_p
from maxjax._runtime.cells import Cell, checked, pending
from maxjax._runtime.devices import Device, first_device

if TYPE_CHECKING:
    import numpy.typing as npt


class DLDeviceType(enum.IntEnum):
    """Where a buffer of DLPack is: all of maxjax's are given away at the host."""

    kDLCPU = 1


class _Unread(threading.local):
    """What computing an array has raised where NumPy drops it, whatever it is: in ``__index__`` and
    in ``__buffer__``. It then asks ``__buffer__`` and ``__array__``, which raise it again.

    NumPy asks all of them amid one instruction of whoever called it. An error that reached its
    caller is so not raised by a later one.
    """

    error: BaseException | None = None
    _asked: tuple[str, object] = ("", None)

    def keep(self, method: str, array: object, error: BaseException) -> None:
        self.error, self._asked = error, (method, _question(array))

    def take(self, array: object, methods: tuple[str, ...]) -> BaseException | None:
        """The error that one of these methods has raised amid the same instruction."""
        error, self.error = self.error, None
        method, question = self._asked
        return error if error is not None and method in methods and question == _question(
            array) else None


def _question(array: object) -> object:
    frame = sys._getframe(3)        # that of whoever has called what calls _unread's methods
    return id(array), id(frame), frame.f_lasti


_unread = _Unread()


def _xla_name(dtype: np.dtype) -> str:
    """What XLA calls a dtype that NumPy does not have: "BF16", "F8E5M2", "S4"."""
    name = dtype.name.replace("float", "f").replace("uint", "u").replace("int", "s")
    return name.replace("_", "").upper()


class _Kinds:
    """What there has been among arrays: to ask one for a slot that is not set takes long.

    Attributes:
      are_stored: some are in an accelerator's memory.
    """

    are_stored = False


@pytree.leaf_type
class ArrayImpl(Array):
    """An array on a device. Lazy: its value is computed when somebody looks at it."""

    # Libraries keep notes of their own with an array, as they can with JAX's: made when first used.
    __slots__ = ("__dict__", "_cell", "_committed", "_layout", "_number", "_placement", "_stored",
                 "_summands", "_value")
    _value: np.ndarray | None
    # The value in an accelerator's memory, where it is there; unset for most. ``_value`` may have
    # it as well: what the host has computed, or somebody has looked at.
    _stored: DeviceBuffer
    # Those of an unreduced array, where they are known (``maxjax._sharding.summands``).
    _summands: np.ndarray
    # The axes from the outermost to the innermost, where somebody asked for others than row-major.
    _layout: tuple[int, ...]
    # The number of Python's that somebody gave as an argument or result, and may want back.
    _number: bool | int | float | complex
    _cell: Cell | None

    def __init__(self, aval: ShapedArray, value: np.ndarray | None, cell: Cell | None = None,
                 placement: Device | Sharding | None = None, committed: bool = False):
        self.aval = aval
        # As in ``checked``, which this is spared where the value is what it most often is.
        if value is None or (value.__class__ is np.ndarray and value.dtype is aval.dtype
                             and value.shape == aval.shape):
            self._value = value
        else:
            self._value = checked(value, aval)
        self._cell = cell
        # The device, or how the array lies over several; None: the default device, not committed.
        self._placement = placement
        self._committed = committed

    def host(self) -> np.ndarray:
        """The value as a NumPy array of the physical dtype; not to be written to."""
        cell = self._cell
        if cell is not None:
            pending.force(cell)
            if self._cell is cell:
                # An interrupt, or a fork, came between the cell's value and the array's.
                self._value = checked(cell.value, self.aval)
                self._cell = None
        value = self._value
        if value is None:
            stored = getattr(self, "_stored", None)
            if stored is None:
                raise self._deleted()
            value = self._value = checked(stored.memory.load(stored), self.aval)
        return value

    def stored_in(self, memory: DeviceMemory) -> DeviceBuffer | None:
        """The value in an accelerator's memory, if it is there."""
        if self._cell is not None:
            self.host()
        stored = getattr(self, "_stored", None)
        return stored if stored is not None and stored.memory is memory else None

    def store(self, buffer: DeviceBuffer) -> None:
        """Keeps the same value in an accelerator's memory."""
        _Kinds.are_stored = True
        self._stored = buffer

    def dense(self) -> np.ndarray:
        """The value as it lies in memory for others: row by row, or as its layout says, without
        gaps or repetitions, which views of other arrays need not be. Some libraries read only the
        address."""
        value = self.host()
        axes = getattr(self, "_layout", None)
        if axes is not None:
            value = value.transpose(axes)
        if not value.flags.c_contiguous:
            value = np.array(value, order="C")
            self._value = value if axes is None else value.transpose(np.argsort(axes))
        return value if axes is None else self._value       # type: ignore[return-value]

    def literal(self) -> Any:
        """The value of a scalar, to stand in a jaxpr; None of opaque dtypes."""
        if dtypes.is_opaque(self.aval.dtype):
            return None
        return self.host()[()]

    # --- readiness and devices ---
    def block_until_ready(self) -> ArrayImpl:
        """Waits until the value is there, and returns the array."""
        if self._value is not None:
            return self
        if self._cell is None and hasattr(self, "_stored"):
            self._stored.memory.wait()      # without a copy to the host
        elif self.is_deleted():
            raise JaxRuntimeError("INVALID_ARGUMENT: BlockHostUntilReady() called on deleted or "
                                  "donated buffer")
        else:
            self.host()
        return self

    def is_ready(self) -> bool:
        """Whether the value is there already."""
        return self._cell is None

    def copy_to_host_async(self) -> None:
        """Starts computing the value; on the CPU it is at the host then."""
        self.host()

    def __await__(self):
        self.host()
        return self
        yield

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def is_fully_replicated(self) -> bool:
        return self.sharding.is_fully_replicated

    @property
    def committed(self) -> bool:
        """Whether the array was put on its device on purpose."""
        return self._committed

    @property
    def sharding(self) -> Sharding:
        """Where the array's parts are."""
        placement = self._placement
        return placement if isinstance(placement, Sharding) else _sharding_on(
            placement or first_device())

    @property
    def device(self) -> Any:
        """The device that holds the array; its sharding if there are several."""
        return self._placement or first_device()

    def devices(self) -> set[Device]:
        """The devices that hold the array.

        Raises:
          RuntimeError: it was deleted.
        """
        if self.is_deleted():
            raise self._deleted()
        return self.sharding.device_set

    def _deleted(self) -> RuntimeError:
        return RuntimeError(f"Array has been deleted with shape={self.aval.str_short()}.")

    def is_deleted(self) -> bool:
        """Whether the array was deleted or donated."""
        return self._value is None and self._cell is None and not hasattr(self, "_stored")

    def delete(self) -> None:
        """Frees the memory; the array cannot be used afterwards."""
        self._cell = None
        self._value = None
        if not self.aval.plain and hasattr(self, "_summands"):
            del self._summands
        if _Kinds.are_stored and hasattr(self, "_stored"):
            del self._stored

    # --- conversion ---
    def _refuse_unreduced(self) -> None:
        """Nobody may look at an unreduced array.

        Raises:
          NotImplementedError: it is unreduced.
        """
        if not self.aval.plain:
            refuse_unreduced(self.aval.sharding)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        error = _unread.take(self, ("__buffer__", "__index__"))
        if error is not None:
            raise error
        value = self.readable()
        if copy or (dtype is not None and dtype != value.dtype):
            return np.array(value, dtype=dtype, copy=copy)
        return value

    def readable(self) -> np.ndarray:
        """The value for those who asked for it: an array that nobody can write to. Unlike
        ``np.asarray``, for which see ``_Unread``, it always raises what computing raises."""
        self._refuse_unreduced()
        value = self.dense()
        if type(self.aval.dtype) is dtypes.KeyDType:
            raise TypeError(
                "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use "
                "jax.random.key_data(arr) if you wish to extract the underlying integer array.")
        if dtypes.is_user_defined(self.aval.dtype):
            raise NotImplementedError(
                f"an array of dtype {self.aval.dtype} cannot be converted to a NumPy array. Use "
                "jax.lax.convert_element_type to a dtype of numbers first.")
        return read_only(value)

    @entered_at_once
    def __buffer__(self, flags: int, /) -> memoryview:
        """A buffer to read, for ``memoryview`` and the like, from Python 3.12 on."""
        try:
            error = _unread.take(self, ("__index__",))
            if error is not None:
                raise error
            value = self.readable()
        except BaseException as error:
            _unread.keep("__buffer__", self, error)
            raise
        if value.dtype.isbuiltin != 1:      # NumPy goes on to ask `__array__`
            raise BufferError(f"INVALID_ARGUMENT: Buffers of type {_xla_name(value.dtype)} are not "
                              "supported by the Python buffer protocol.")
        return value.data

    def __bool__(self) -> bool:
        if dtypes.is_key(self.aval.dtype):
            raise TypeError("key array cannot be converted to boolean.")
        if dtypes.is_user_defined(self.aval.dtype):
            raise TypeError(f"an array of dtype {self.aval.dtype} has no truth value")
        if self.aval.size != 1:
            raise ValueError(truth_value_message(self.aval))
        self._refuse_unreduced()
        return bool(self.host().reshape(()))

    def _scalar(self) -> Any:
        if dtypes.is_opaque(self.aval.dtype):
            raise TypeError(f"an array of dtype {self.aval.dtype} is no number")
        if self.aval.shape:
            raise TypeError("Only scalar arrays can be converted to Python scalars; "
                            f"got arr.ndim={self.aval.ndim}")
        return self.readable()

    def __float__(self) -> float:
        return float(self._scalar())

    def __int__(self) -> int:
        return int(self._scalar())

    def __complex__(self) -> complex:
        return complex(self._scalar())

    @entered_at_once
    def __index__(self) -> int:
        try:
            if not self.aval.shape and dtypes.is_integer(self.aval.dtype):
                return int(self.host())
        except BaseException as error:
            _unread.keep("__index__", self, error)
            raise
        raise TypeError("Only integer scalar arrays can be converted to a scalar index.")

    __hash__: None = None   # type: ignore[assignment]

    def item(self, *args: int) -> Any:
        """The element (at a flat or full index) as a Python scalar."""
        if not args and self.aval.size != 1 and not self.is_deleted():
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.readable().item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars."""
        return self.readable().tolist()

    def tobytes(self, order: Literal["C", "F", "A", "K"] | None = "C") -> bytes:
        """The elements' bytes."""
        return self.readable().tobytes(order)

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        count = len(self.devices())
        if count > 1:
            raise BufferError(
                "to_dlpack can only pack a dlpack tensor from an array on a singular device, but "
                f"an array with a Sharding over {count} devices was provided.")
        value = self.dense()
        # Before DLPack 1.0 nothing tells the other library that it may not write.
        old = max_version is None or tuple(max_version) < (1, 0)
        if copy or old:
            value = value.copy()
        return value.__dlpack__() if old else read_only(value).__dlpack__(max_version=max_version)

    @property
    def __cuda_array_interface__(self) -> Any:
        raise AttributeError("__cuda_array_interface__ is only defined for GPU buffers.")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (DLDeviceType.kDLCPU, 0)

    def __reduce__(self):
        dtype = self.aval.dtype
        self._refuse_unreduced()
        if dtypes.is_key(dtype):
            return (_restore_keys, (dtype, self.aval.shape, self.host().tobytes()))
        return (_restore, (read_only(self.host()), self.aval.weak_type))

    def __copy__(self) -> ArrayImpl:
        """Another array with the same values, which is there when this one is deleted."""
        if self._cell is not None and context.trace is installed.runtime:
            return copy_p.bind(self)      # without computing it
        return self._with_value(self.host())

    def __deepcopy__(self, memo: dict) -> ArrayImpl:
        return self._with_value(self.host().copy())

    def _with_value(self, value: np.ndarray) -> ArrayImpl:
        other = ArrayImpl(self.aval, value)
        other._placement, other._committed = self._placement, self._committed
        return other

    def apart(self) -> Array:
        """The same value in another array, which stays when this one is deleted or donated."""
        if self._cell is not None and self._placement is None:
            return reshape_p.bind(self, new_sizes=self.shape, dimensions=None)
        if self.is_deleted():
            raise self._deleted()
        if self._cell is not None:
            self.host()
        other = ArrayImpl(self.aval, self._value, None, self._placement, self._committed)
        for name in ("_layout", "_stored", "_summands"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other


@functools.cache
def _sharding_on(device: Device) -> SingleDeviceSharding:
    return SingleDeviceSharding(device)


def is_spread(x: object) -> bool:
    """Whether an array, outside ``jit``, is spread over the Auto axes of a mesh."""
    placement = getattr(x, "_placement", None)
    return isinstance(placement, NamedSharding) and bool(placement.mesh.auto_axes)


def _restore(value: np.ndarray, weak_type: bool) -> ArrayImpl:
    dtype = value.dtype if weak_type else dtypes.canonical(value.dtype)
    # A copy: the buffers that a pickle was given stay those of whoever gave them.
    return ArrayImpl(ShapedArray(value.shape, dtype, weak_type), np.array(value, dtype))


def _restore_keys(dtype: dtypes.KeyDType, shape: tuple[int, ...], content: bytes) -> ArrayImpl:
    return ArrayImpl(ShapedArray(shape, dtype),
                     np.frombuffer(content, dtypes.physical(dtype)).reshape(shape))


def read_only(value: np.ndarray) -> np.ndarray:
    """A view that nobody can write through, or make writable: the array that owns the memory cannot
    be reached from it."""
    try:
        return np.asarray(value.data.toreadonly())
    except (ValueError, TypeError):
        # Not a dtype of buffers, but its bytes are: bfloat16 and the like.
        bits = value.view(_BITS[value.dtype.itemsize])
        return np.asarray(bits.data.toreadonly()).view(value.dtype)


_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def shows_sharding(x: ArrayImpl) -> bool:
    """Whether the array's type shows how it is spread: its mesh has Explicit axes."""
    placement = x._placement
    return placement is not None and getattr(placement, "in_types", False)
