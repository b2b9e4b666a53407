"""jax.experimental.colocated_python: Python functions beside the devices of their arguments.

All devices belong to this process, so that a function is called here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import pytree, threads
from maxjax._base.missing import explain_missing_names
from maxjax._base.shardings import Mesh
from maxjax._runtime.devices import Device
from maxjax._transforms.autodiff import operands_of
from maxjax.tree_util import tree_map

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]


def colocated_cpu_devices(devices_or_mesh: Sequence[Device] | Mesh) -> Any:
    """The CPU devices beside the given ones, or a mesh of them: themselves.

    >>> jax.experimental.colocated_python.colocated_cpu_devices(jax.devices()) == jax.devices()
    True
    """
    return devices_or_mesh if isinstance(devices_or_mesh, Mesh) else list(devices_or_mesh)


class _Callable:
    """A function that is called where its arguments are."""

    def __init__(self, fun: Callable[..., Any], *, in_specs: Any = None,
                 out_specs_fn: Callable[..., Any] | None = None,
                 devices: Sequence[Device] | None = None):
        functools.update_wrapper(self, fun)
        self._fun = fun
        self._in_specs, self._out_specs_fn, self._devices = in_specs, out_specs_fn, devices

    def specialize(self, in_specs: Any = None, out_specs_fn: Callable[..., Any] | None = None,
                   devices: Sequence[Device] | None = None) -> _Callable:
        """The function with what is known of its calls.

        Args:
          in_specs: ``(args, kwargs)`` of ``jax.ShapeDtypeStruct``.
          out_specs_fn: gives the types of results from those of arguments.
          devices: where it is called, if there are no arguments.

        Raises:
          ValueError: one of them has been specified already.
        """
        for name, old, new in (("in_specs", self._in_specs, in_specs),
                               ("out_specs_fn", self._out_specs_fn, out_specs_fn),
                               ("devices", self._devices, devices)):
            if old is not None and new is not None:
                raise ValueError(f"{name} already specified")
        return _Callable(
            self._fun, in_specs=in_specs or self._in_specs,
            out_specs_fn=out_specs_fn or self._out_specs_fn, devices=devices or self._devices)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's results as arrays.

        Raises:
          ValueError: there are no arguments, and no devices are specified.
        """
        if not pytree.leaves((args, kwargs)) and self._devices is None:
            raise ValueError(
                "No devices found. colocated_python function without input arguments must be "
                "first specialized with devices.")
        return tree_map(_as_array, self._fun(*args, **kwargs))


def _as_array(value: Any) -> Any:
    return operands_of([value])[0]


def colocated_python(fun: Callable[..., Any]) -> _Callable:
    """Calls a Python function beside the devices of its arguments.

    Args:
      fun: takes and returns pytrees of arrays.

    >>> double = jax.experimental.colocated_python.colocated_python(lambda x: x * 2)
    >>> double(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    return _Callable(fun)


class _Object:
    """The object behind one of a colocated class: made when a method is first called."""

    def __init__(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]):
        self._cls, self._args, self._kwargs = cls, args, kwargs
        self._made: Any = None
        self._lock = threads.lock()

    def get(self) -> Any:
        with self._lock:
            if self._made is None:
                self._made = self._cls(*self._args, **self._kwargs)
                self._args, self._kwargs = (), {}
            return self._made


def _method(behind: _Object, name: str, function: Callable[..., Any]) -> _Callable:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(behind.get(), name)(*args, **kwargs)

    return _Callable(call)


def colocated_python_class(cls: type) -> type:
    """Makes a class whose objects live beside the devices that their methods' arguments are on.

    An object is made when one of its methods is first called. Methods are functions as
    ``colocated_python`` makes them: one without arguments is specialized with devices before it
    is called.

    >>> @jax.experimental.colocated_python.colocated_python_class
    ... class Count:
    ...     def __init__(self, start): self.value = start
    ...     def add(self, x):
    ...         self.value = self.value + x
    ...         return self.value
    >>> Count(1).add(jnp.int32(2))
    Array(3, dtype=int32)
    """
    methods = {name: value for name, value in inspect.getmembers(cls, inspect.isfunction)
               if not name.startswith("__")}

    # The methods are the object's own, without a reference to it: with it goes the one behind.
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        behind = _Object(cls, args, kwargs)
        for name, function in methods.items():
            setattr(self, name, _method(behind, name, function))

    functools.update_wrapper(init, inspect.getattr_static(cls, "__init__"))
    return type(cls.__name__, (), {
        "__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__,
        "__init__": init})


explain_missing_names(__name__)
