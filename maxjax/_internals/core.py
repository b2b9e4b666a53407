"""Types of values, and the state of tracing."""

from typing import Any

from maxjax import core as _public
from maxjax._higher_order.shape_struct import typeof as typeof
from maxjax._ir.runtime import installed
from maxjax._ir.trace import context
from maxjax._ir.types import ShapedArray as ShapedArray
from maxjax.core import Tracer as Tracer
from maxjax.extend import core as _extend
from maxjax.extend.core import Primitive as Primitive


def trace_state_clean() -> bool:
    """Whether operations are evaluated, under no transformation."""
    return context.trace is installed.runtime and not context.axis_env


def __getattr__(name: str) -> Any:
    """Of the public modules."""
    return getattr(_public if hasattr(_public, name) else _extend, name)
