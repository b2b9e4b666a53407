"""Types of values, and the state of tracing."""

from maxjax._ir.runtime import installed
from maxjax._ir.trace import context
from maxjax._ir.types import ShapedArray as ShapedArray
from maxjax.core import Tracer as Tracer
from maxjax.extend.core import Primitive as Primitive


def trace_state_clean() -> bool:
    """Whether operations are evaluated, under no transformation."""
    return context.trace is installed.runtime and not context.axis_env
