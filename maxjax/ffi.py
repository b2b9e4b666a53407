"""jax.ffi: calls of foreign functions on the host.

A target is a function of Python, or the address of a C function of plain buffers
(``void f(void *out, const void **in)``, ``api_version=0``; with several results ``out`` is an array
of pointers too). Handlers that are written against XLA's headers (``api_version=1``) are not
called: maxjax has no XLA to give them its frames.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.callback import VMAP_METHODS, io_callback, pure_callback
from maxjax._ir.trace import aval_of
from maxjax._transforms.autodiff import operands_of
from maxjax.custom_derivatives import custom_jvp

__all__ = ["ffi_call", "ffi_lowering", "include_dir", "pycapsule", "register_ffi_target",
           "register_ffi_type"]

# The version of a custom call that has attributes, and is given to typed handlers.
_TYPED = 4
_targets: dict[str, Callable[..., Any]] = {}

# Prototypes of our own: attributes of ctypes.pythonapi are everyone's.
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi))
_capsule_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ("PyCapsule_GetName", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi))


def _not_supported(name: str) -> NoReturn:
    raise NotImplementedError(
        f"jax.ffi.{name}: this is for functions written against XLA, which maxjax does not use. "
        "Register a function of Python, or with api_version=0 the address of a C function "
        "`void f(void *out, const void **in)`; or give a primitive a kernel in Mojo "
        "(maxjax.extend.core.Primitive and maxjax.extend.mojo.register_elementwise; "
        "examples/custom_op.py)")


# --- targets --------------------------------------------------------------------------------------

def pycapsule(funcptr: Any) -> Any:
    """The address of a function of a ctypes library, as ``register_ffi_target`` takes it.

    >>> import ctypes
    >>> type(jax.ffi.pycapsule(ctypes.pythonapi.PyErr_Clear)).__name__
    'PyCapsule'
    """
    return _new_capsule(ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1,
                        **kwargs: Any) -> None:
    """Gives a foreign function the name that ``ffi_call`` calls it by.

    Args:
      fn: a function of Python, which is given NumPy arrays, and the attributes of the call by
        keyword, and returns the results; or, with ``api_version=0``, a capsule with the address of
        a C function ``void f(void *out, const void **in)``. The arrays are dense, in row-major
        order, and may only be read.
      platform: only "cpu" is called.

    Raises:
      NotImplementedError: a capsule with ``api_version=1``, a handler written against XLA.
      TypeError: neither a function nor a capsule.

    >>> jax.ffi.register_ffi_target("half", lambda x: x / 2)
    >>> jax.ffi.ffi_call("half", jax.ShapeDtypeStruct((2,), jnp.float32))(jnp.ones(2))
    Array([0.5, 0.5], dtype=float32)
    """
    is_capsule = type(fn).__name__ == "PyCapsule"
    if is_capsule and api_version != 0 or isinstance(fn, dict):
        _not_supported("register_ffi_target")
    if not is_capsule and not callable(fn):
        raise TypeError("register_ffi_target takes a function or a PyCapsule of one, not "
                        f"{type(fn)}")
    if platform == "cpu":
        _targets[name] = _of_address(_capsule_pointer(fn, _capsule_name(fn))) if is_capsule else (
            _of_python(fn))


def _of_python(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(args: Sequence[np.ndarray], results: Sequence[np.ndarray], attributes: Any) -> Any:
        return function(*args, **attributes)
    return call


def _of_address(address: int | None) -> Callable[..., Any]:
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address or 0)

    def call(args: Sequence[np.ndarray], results: Sequence[np.ndarray], attributes: Any) -> Any:
        out = [array.ctypes.data for array in results]
        inputs = (ctypes.c_void_p * max(len(args), 1))(*[array.ctypes.data for array in args])
        function(out[0] if len(out) == 1 else (ctypes.c_void_p * max(len(out), 1))(*out), inputs)
        return results
    return call


class _AbstractToken:
    """The type of what stands for an effect in JAX's programs."""

    def __repr__(self) -> str:
        return "AbstractToken()"

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        return "Tok"


# A result of this type is refused: what has effects in maxjax gives arrays.
abstract_token = _AbstractToken()


# --- calls ----------------------------------------------------------------------------------------

def ffi_call(target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False,
             vmap_method: str | None = None, input_layouts: Sequence[Any] | None = None,
             output_layouts: Any = None, input_output_aliases: dict[int, int] | None = None,
             custom_call_api_version: int = _TYPED, legacy_backend_config: str | None = None,
             **kwargs: Any) -> Callable[..., Any]:
    """A function that calls a registered foreign function, also from inside ``jit``.

    It has no derivative: ``custom_jvp`` or ``custom_vjp`` around it gives it one.

    Args:
      target_name: the name that ``register_ffi_target`` was given.
      result_shape_dtypes: shape and dtype of its result, or a sequence of those of several.
      has_side_effect: each call is made, even where its result is not used.
      vmap_method: see ``jax.pure_callback``.
      custom_call_api_version: below 4 there are no attributes.
      input_layouts, output_layouts, input_output_aliases, legacy_backend_config: accepted; arrays
        are dense, in row-major order, and results lie in memory of their own.

    Returns:
      A function of arrays and, by keyword, of the attributes, which are static.

    Raises:
      ValueError: no such ``vmap_method``; attributes that this version does not have.
      JaxRuntimeError: when it runs: there is no such target, or it failed.

    >>> jax.ffi.register_ffi_target("scaled", lambda x, *, by: by * x)
    >>> jax.jit(lambda x: jax.ffi.ffi_call("scaled", x)(x, by=3))(jnp.arange(3))
    Array([0, 3, 6], dtype=int32)
    """
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method must be on of the allowed methods {VMAP_METHODS}, but got: "
                         f"{vmap_method}")
    has_one = not isinstance(result_shape_dtypes, (list, tuple))
    if any(x is abstract_token for x in (
            [result_shape_dtypes] if has_one else result_shape_dtypes)):
        raise NotImplementedError(
            "ffi_call: functions give arrays in maxjax, not tokens: has_side_effect=True keeps a "
            "call that gives nothing")
    structs = [result_shape_dtypes] if has_one else list(result_shape_dtypes)

    def function(*args: Any, **attributes: Any) -> Any:
        if attributes and custom_call_api_version < _TYPED:
            raise ValueError("The use of ffi_call attributes requires a custom call API version of "
                             f"at least 4; got api_version={custom_call_api_version}.")

        def run(*operands: Any) -> list[Any]:
            return _called(target_name, structs, [aval_of(x).shape for x in values], operands,
                           attributes)

        @custom_jvp
        def call(*operands: Any) -> Any:
            if has_side_effect:
                return io_callback(run, structs, *operands)
            return pure_callback(run, structs, *operands, vmap_method=vmap_method)

        @call.defjvp
        def refuse(primals: Any, tangents: Any) -> Any:
            raise ValueError(f"The FFI call to `{target_name}` cannot be differentiated. You can "
                             "use `jax.custom_jvp` or `jax.custom_vjp` to add support.")

        values = operands_of(args)
        results = call(*values)
        return results[0] if has_one else type(result_shape_dtypes)(results)

    return function


def _called(target_name: str, structs: Sequence[Any], shapes: Sequence[tuple[int, ...]],
            operands: Sequence[Any], attributes: dict[str, Any]) -> list[Any]:
    """What a target returns for concrete operands; vmap may have given them leading axes."""
    target = _targets.get(target_name)
    if target is None:
        raise JaxRuntimeError(
            f"NOT_FOUND: No registered implementation for custom call to {target_name} for Host")
    args = [np.require(np.asarray(x), requirements="C") for x in operands]
    leading = max((arg.shape[:arg.ndim - len(shape)]
                   for arg, shape in zip(args, shapes, strict=True)), key=np.prod, default=())
    results = [np.zeros((*leading, *s.shape), dtypes.physical(dtypes.as_dtype(s.dtype)))
               for s in structs]
    return pytree.leaves(target(args, results, attributes))


# --- XLA's ----------------------------------------------------------------------------------------

def ffi_lowering(call_target_name: str, **kwargs: Any) -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.ffi_lowering("target")
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.ffi_lowering: this is for functions written against XLA
    """
    _not_supported("ffi_lowering")


def include_dir() -> NoReturn:
    """Not supported: there are no headers.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.include_dir()
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.include_dir: this is for functions written against XLA
    """
    _not_supported("include_dir")


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.register_ffi_type("type", None)
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.register_ffi_type: this is for functions written against XLA
    """
    _not_supported("register_ffi_type")


explain_missing_names(__name__)
