"""The names of jax.interpreters.ad."""

from typing import Any

from maxjax._higher_order.custom_vjp_call import CustomVJPException as CustomVJPException
from maxjax.interpreters import ad as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
