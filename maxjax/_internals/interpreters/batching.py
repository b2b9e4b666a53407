"""The names of jax.interpreters.batching."""

from typing import Any

from maxjax._transforms.batching import BatchTrace as BatchTrace
from maxjax._transforms.batching import BatchTracer as BatchTracer
from maxjax._transforms.vmappable import registered as _registered
from maxjax.interpreters import batching as _public


def is_vmappable(x: Any) -> bool:
    """Whether an object's class was given to ``register_vmappable``."""
    return type(x) in _registered


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
