"""jax.ffi: XLA's foreign functions, which maxjax does not call; each name raises an error.

Use a primitive with a Mojo kernel instead (``examples/custom_op.py``), or ``pure_callback`` around
a function of NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from maxjax._base.missing import explain_missing_names

__all__ = ["ffi_call", "ffi_lowering", "include_dir", "pycapsule", "register_ffi_target",
           "register_ffi_type"]


def _not_supported(name: str) -> NoReturn:
    raise NotImplementedError(
        f"jax.ffi.{name}: foreign functions are written against XLA, which maxjax does not use. "
        "Give a primitive a kernel in Mojo (maxjax.extend.core.Primitive and "
        "maxjax.extend.mojo.register_elementwise; examples/custom_op.py), or call the function "
        "through ctypes in a pure_callback")


def ffi_call(target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False,
             vmap_method: str | None = None, input_layouts: Sequence[Any] | None = None,
             output_layouts: Any = None, input_output_aliases: dict[int, int] | None = None,
             custom_call_api_version: int = 4, legacy_backend_config: str | None = None,
             **kwargs: Any) -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.ffi_call("target", jax.ShapeDtypeStruct((), jnp.float32))
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.ffi_call: foreign functions are written against XLA
    """
    _not_supported("ffi_call")


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1,
                        **kwargs: Any) -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.register_ffi_target("target", None)
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.register_ffi_target: foreign functions are written against XLA
    """
    _not_supported("register_ffi_target")


def ffi_lowering(call_target_name: str, **kwargs: Any) -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.ffi_lowering("target")
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.ffi_lowering: foreign functions are written against XLA
    """
    _not_supported("ffi_lowering")


def include_dir() -> NoReturn:
    """Not supported: there are no headers.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.include_dir()
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.include_dir: foreign functions are written against XLA
    """
    _not_supported("include_dir")


def pycapsule(funcptr: Any) -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.pycapsule(None)
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.pycapsule: foreign functions are written against XLA
    """
    _not_supported("pycapsule")


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: says what to do instead.

    >>> jax.ffi.register_ffi_type("type", None)
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.register_ffi_type: foreign functions are written against XLA
    """
    _not_supported("register_ffi_type")


explain_missing_names(__name__)
