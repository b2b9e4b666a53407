"""jax.extend.backend: the clients that run programs, which are maxjax's devices."""

from __future__ import annotations

from typing import Any, NoReturn

from maxjax import clear_caches
from maxjax._base.missing import explain_missing_names
from maxjax._runtime import devices as _devices

__all__ = ["backend_xla_version", "backends", "clear_backends",
           "clear_in_memory_compilation_cache", "get_backend", "get_compile_options",
           "get_default_device", "register_backend_factory"]


def get_backend(platform: Any = None) -> Any:
    """The client of a platform, the same as ``jax.Device.client``.

    Raises:
      RuntimeError: there is no such platform.

    >>> jax.extend.backend.get_backend("cpu").platform
    'cpu'
    """
    return _devices.devices(platform)[0].client


def backends() -> dict[str, Any]:
    """The clients by the names of their platforms.

    >>> sorted(jax.extend.backend.backends())
    ['cpu']
    """
    return {"cpu": get_backend()}


def get_default_device() -> Any:
    """The device that computes by default.

    >>> jax.extend.backend.get_default_device()
    CpuDevice(id=0)
    """
    return _devices.default_device()


def backend_xla_version(platform: str | None = None) -> None:
    """None: programs are not compiled by XLA.

    >>> jax.extend.backend.backend_xla_version()
    """
    get_backend(platform)


def clear_in_memory_compilation_cache() -> None:
    """Clears the caches, as ``jax.clear_caches``.

    >>> jax.extend.backend.clear_in_memory_compilation_cache()
    """
    clear_caches()


def clear_backends() -> None:
    """Clears the caches, as ``jax.clear_caches``: backends have no other state.

    >>> jax.extend.backend.clear_backends()
    """
    clear_caches()


def _not_supported(name: str) -> NoReturn:
    raise NotImplementedError(
        f"{name} is about XLA, which maxjax does not use: programs run on MAX "
        "(maxjax.config.compile, maxjax.debug.explain)")


def register_backend_factory(name: str, factory: Any, *, priority: int = 0,
                             fail_quietly: bool = True, experimental: bool = False,
                             make_topology: Any = None, c_api: Any = None) -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: XLA's plugins do not run maxjax's programs.

    >>> jax.extend.backend.register_backend_factory("mine", None)
    Traceback (most recent call last):
    NotImplementedError: register_backend_factory is about XLA
    """
    _not_supported("register_backend_factory")


def get_compile_options(num_replicas: int, num_partitions: int, **kwargs: Any) -> NoReturn:
    """Not supported.

    Raises:
      NotImplementedError: XLA's options do not exist here.

    >>> jax.extend.backend.get_compile_options(1, 1)
    Traceback (most recent call last):
    NotImplementedError: get_compile_options is about XLA
    """
    _not_supported("get_compile_options")


explain_missing_names(__name__)
