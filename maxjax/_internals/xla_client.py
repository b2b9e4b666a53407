"""``jaxlib.xla_client``: the class of devices, and the error of programs that fail."""

from maxjax import Device as Device
from maxjax.errors import JaxRuntimeError as XlaRuntimeError

__all__ = ["Device", "XlaRuntimeError"]
