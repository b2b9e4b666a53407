"""Members that only concrete arrays have (devices, shards, buffers), and tracers' substitutes."""

from __future__ import annotations

import operator
import warnings
import weakref
from typing import Any

import numpy as np

from maxjax._base.errors import ConcretizationTypeError, JaxRuntimeError, origin_message
from maxjax._base.layouts import Format, format_of
from maxjax._base.shardings import NamedSharding, Sharding, refuse_unreduced
from maxjax._ir.trace import Array
from maxjax._primitives import layout
from maxjax._primitives.arithmetic import complex_p
from maxjax._primitives.convert import bitcast_convert_type_p
from maxjax._runtime.array import ArrayImpl, read_only
from maxjax._runtime.devices import Device
from maxjax._runtime.spanning_array import SpanningArray


class Shard:
    """The part of an array that one device holds.

    Attributes:
      device: the device.
      index: the part, as slices of the whole array; None for an unreduced one.
      replica_id: distinguishes copies of one part; 0 is the first.
      data: the part as an array.

    >>> shard, = jnp.arange(3).addressable_shards
    >>> shard.index, shard.data
    ((slice(None, None, None),), Array([0, 1, 2], dtype=int32))
    """

    def __init__(self, device: Device, index: tuple[slice, ...], replica_id: int, data: Array,
                 sharding: Sharding | None = None):
        self._device = device
        self._replica_id = replica_id
        self._data = data
        self._index = index
        self._sharding = sharding

    @property
    def device(self) -> Device:
        return self._device

    @property
    def replica_id(self) -> int:
        return self._replica_id

    @property
    def data(self) -> Array:
        return self._data

    @property
    def index(self) -> tuple[slice, ...]:
        refuse_unreduced(self._sharding)
        return self._index

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, "
                f"replica_id={self.replica_id}, data={self.data})")


def _addressable_shards(self: ArrayImpl) -> list[Shard]:
    """The parts of the array on this process's devices."""
    if not isinstance(self._placement, Sharding):
        return [Shard(self.device, (slice(None),) * self.ndim, 0, self)]
    if isinstance(self, SpanningArray):
        return [shard for shard in _shards_of_all(self) if shard.data is not None]
    copies: dict[Any, int] = {}
    shards = []
    sharding, host = self._placement, self.host()
    aval = self.aval.off_mesh().update(shape=sharding.shard_shape(self.shape))
    numbers = [0] * sharding.num_devices
    summands: Any = None
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        numbers = sharding.index_along(sharding.spec.unreduced)
        summands = getattr(self, "_summands", None)
        if summands is None:      # the first is the total, the others are zeros
            summands = [host, *[np.zeros(host.shape, host.dtype)] * max(numbers)]
    for device, index, number in zip(
            sharding._devices(), sharding._indices(self.shape), numbers, strict=True):
        key = tuple((part.start, part.stop) for part in index)
        replica = copies[key] = copies.get(key, -1) + 1
        part = ArrayImpl(aval, (host if summands is None else summands[number])[index])
        part._placement, part._committed = device, True
        shards.append(Shard(device, index, replica, part, sharding))
    return shards


def _shards_of_all(self: SpanningArray) -> list[Shard]:
    """The parts of an array over processes; those of other processes without data."""
    copies: dict[Any, int] = {}
    shards = []
    sharding = self.sharding
    aval = self.aval.off_mesh().update(shape=sharding.shard_shape(self.shape))
    local = {position: number for number, position in enumerate(sharding.local_positions)}
    for position, (device, index) in enumerate(zip(
            sharding._devices(), sharding._indices(self.shape), strict=True)):
        key = tuple((part.start, part.stop) for part in index)
        replica = copies[key] = copies.get(key, -1) + 1
        part: Any = None
        if position in local:
            part = ArrayImpl(aval, self.shard(local[position]))
            part._placement, part._committed = device, True
        shards.append(Shard(device, index, replica, part, sharding))
    return shards


def _global_shards(self: ArrayImpl) -> list[Shard]:
    """The parts of the array on all devices; those of other processes have no data."""
    return _shards_of_all(self) if isinstance(self, SpanningArray) else _addressable_shards(self)


def _addressable_data(self: ArrayImpl, index: int) -> Array:
    """The array's part on the device number ``index``; the first one where all are the same."""
    if self.is_deleted():
        raise self._deleted()
    if self.sharding.is_fully_replicated:
        index = 0
    return _addressable_shards(self)[operator.index(index)].data


def _clone(self: ArrayImpl) -> ArrayImpl:
    """Another array with the same data."""
    return self.__copy__()


def _platform(self: ArrayImpl) -> str:
    """The kind of the array's device: "cpu"."""
    return next(iter(self.devices())).platform


def _on_device_size_in_bytes(self: ArrayImpl) -> int:
    """The memory that the array occupies on this process's devices, in bytes."""
    _refuse_deleted(self, "GetOnDeviceSizeInBytes()")
    sharding = self.sharding
    count = len(sharding.addressable_devices)
    if count == 1:
        return self.aval.nbytes
    return count * self.aval.off_mesh().update(shape=sharding.shard_shape(self.shape)).nbytes


def _refuse_deleted(self: ArrayImpl, operation: str) -> None:
    if self.is_deleted():
        raise JaxRuntimeError(
            f"INVALID_ARGUMENT: {operation} called on deleted or donated buffer")


# Arrays by the address that they have said. Results may share memory, as nothing writes to it; but
# who has an address may, so that no two have the same.
_by_address: weakref.WeakValueDictionary[int, ArrayImpl] = weakref.WeakValueDictionary()


def _unsafe_buffer_pointer(self: ArrayImpl) -> int:
    """The address of the data; valid as long as the array lives.

    No other array that a program gave has it. Arrays that were put on a device, or imported, may
    share memory with what they were made from.

    Raises:
      JaxRuntimeError: it was deleted, or lies on several devices.
    """
    _refuse_deleted(self, "UnsafeBufferPointer")
    if len(self.devices()) > 1:
        raise JaxRuntimeError("INVALID_ARGUMENT: UnsafeBufferPointer() is supported only for "
                              "unsharded arrays.")
    address = int(self.dense().ctypes.data)
    if self.committed or not self.aval.nbytes:
        return address
    first = _by_address.setdefault(address, self)
    if first is not self and not first.is_deleted() and first.host().ctypes.data == address:
        self._value = read_only(np.array(self.host()))
        address = int(self._value.ctypes.data)
    _by_address[address] = self
    return address


def _traceback(self: ArrayImpl) -> None:
    """Where the array was created: None, as this is not recorded."""
    self.host()


def _format(self: ArrayImpl) -> Format:
    """The layout and sharding: arrays are row-major unless another layout was asked for."""
    return format_of(self.ndim, self.sharding, getattr(self, "_layout", None))


def _device_buffer(self: Any) -> Any:
    raise AttributeError("arr.device_buffer has been deprecated. Use arr.addressable_data(0)")


def _device_buffers(self: Any) -> Any:
    raise AttributeError(
        "arr.device_buffers has been deprecated. Use [x.data for x in arr.addressable_shards]")


# --- of arrays and tracers ---

def _byteswap(self: Any) -> Any:
    """The array with the bytes of each element in reverse order.

    >>> jnp.array([1, 256], "int16").byteswap()
    Array([256,   1], dtype=int16)
    """
    dtype = self.dtype
    if dtype.itemsize == 1:
        return self
    if dtype.kind == "c":
        parts = [part.byteswap() for part in (self.real, self.imag)]
        return complex_p.bind(*parts)
    pieces = bitcast_convert_type_p.bind(self, new_dtype=np.dtype(np.uint8))
    pieces = layout.rev_p.bind(pieces, dimensions=(pieces.ndim - 1,))
    return bitcast_convert_type_p.bind(pieces, new_dtype=dtype)


def _flat(self: Any) -> Any:
    """Not implemented, as in JAX: see ``flatten``."""
    raise NotImplementedError(
        "JAX Arrays do not implement the arr.flat property: consider arr.flatten() instead.")


def _numpy_dtype(self: Any) -> Any:
    """The dtype, for NumPy's dtype protocol, with a warning."""
    warnings.warn("Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr "
                  "use dtype=arr.dtype. In the future this will result in an error.",
                  DeprecationWarning, stacklevel=2)
    return self.dtype


def _hex(self: Any) -> str:
    return hex(self.__index__())


def _oct(self: Any) -> str:
    return oct(self.__index__())


# A tracer's response to a request that needs a value.
_METHODS_OF_VALUES = (
    "addressable_data", "delete", "devices", "is_deleted", "on_device_size_in_bytes",
    "unsafe_buffer_pointer", "__dlpack__")
_PROPERTIES_OF_VALUES = (
    "addressable_shards", "committed", "global_shards", "is_fully_addressable",
    "is_fully_replicated", "traceback")
_ABSENT_FROM_TRACERS = (
    "block_until_ready", "clone", "copy_to_host_async", "device", "device_buffer",
    "device_buffers", "format", "is_ready", "platform", "sharding", "__dlpack_device__",
    "__numpy_dtype__")
# Members that both define, and that their common class should have as well.
_OF_BOTH = ("item", "tolist", "tobytes", "__array__", "__bool__", "__complex__", "__copy__",
            "__deepcopy__", "__float__", "__index__", "__int__")


def _needs_value(name: str, kind: str) -> Any:
    what = (f"{name!r} attribute is not available" if name in ("addressable_shards", "committed")
            else f"{name}() method was called" if kind == "method"
            else f"{name} property was called")

    def member(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise ConcretizationTypeError(
            self, f"The {what} on traced array with shape "
            f"{self.aval.str_short()}.{origin_message(self)}")

    member.__name__ = name
    member.__doc__ = getattr(getattr(ArrayImpl, name), "__doc__", None) or f"See ArrayImpl.{name}."
    return member if kind == "method" else property(member)


def _absent(name: str) -> Any:
    def member(self: Any) -> Any:
        shape = f"traced array with shape {self.aval.str_short()}."
        if name == "sharding":
            raise AttributeError(
                f"The 'sharding' attribute is not available on {shape} To query sharding "
                "information on tracers, use `jax.typeof(x)`.")
        if name in ("block_until_ready", "copy_to_host_async"):
            raise AttributeError(
                f"The {name!r} method is not available on {shape}{origin_message(self)}")
        raise AttributeError(f"{self.kind()} has no attribute {name}")

    doc = getattr(getattr(ArrayImpl, name, None), "__doc__", None)
    return property(member, doc=doc or f"{name}: of concrete arrays only.")


def install() -> None:
    """Installs all of these on the classes."""
    concrete: dict[str, Any] = {
        "addressable_shards": property(_addressable_shards),
        "global_shards": property(_global_shards),
        "addressable_data": _addressable_data, "clone": _clone, "platform": _platform,
        "on_device_size_in_bytes": _on_device_size_in_bytes,
        "unsafe_buffer_pointer": _unsafe_buffer_pointer,
        "traceback": property(_traceback),
        "format": property(_format),
        "device_buffer": property(_device_buffer), "device_buffers": property(_device_buffers),
        "__numpy_dtype__": property(_numpy_dtype),
    }
    for name, member in concrete.items():
        setattr(ArrayImpl, name, member)
    shared: dict[str, Any] = {
        "byteswap": _byteswap, "flat": property(_flat), "__hex__": _hex, "__oct__": _oct,
    }
    for name in _METHODS_OF_VALUES:
        shared[name] = _needs_value(name, "method")
    for name in _PROPERTIES_OF_VALUES:
        shared[name] = _needs_value(name, "property")
    for name in _ABSENT_FROM_TRACERS:
        shared[name] = _absent(name)
    for name in _OF_BOTH:
        shared[name] = vars(ArrayImpl)[name]
    for name, member in shared.items():
        setattr(Array, name, member)


install()
