"""jax.ffi: calls of compiled functions from XLA's programs, which maxjax does not make.

A function of another language is called by ``jax.pure_callback``, or written as a Mojo kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from maxjax._base.missing import missing_names


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"jax.ffi.{name} is about XLA's custom calls, which maxjax's programs do not have: call "
        "the function by jax.pure_callback")


def ffi_call(target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False,
             vmap_method: str | None = None, input_layouts: Sequence[Any] | None = None,
             output_layouts: Any = None, input_output_aliases: dict[int, int] | None = None,
             custom_call_api_version: int = 4, legacy_backend_config: str | None = None,
             **kwargs: Any) -> Callable[..., Any]:
    """Not there: use ``jax.pure_callback``.

    Raises:
      NotImplementedError: always.

    >>> ffi_call("my_kernel", None)
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.ffi_call is about XLA's custom calls ...
    """
    _refuse("ffi_call")


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1,
                        **kwargs: Any) -> None:
    """Not there: use ``jax.pure_callback``.

    Raises:
      NotImplementedError: always.

    >>> register_ffi_target("my_kernel", None)
    Traceback (most recent call last):
    NotImplementedError: jax.ffi.register_ffi_target is about XLA's custom calls ...
    """
    _refuse("register_ffi_target")


__getattr__ = missing_names(__name__)
