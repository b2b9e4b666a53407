"""Types of values, and the state of tracing."""

from collections.abc import Sequence
from typing import Any

from maxjax import core as _public
from maxjax._base import dtypes as _dtypes
from maxjax._base import errors as _errors
from maxjax._higher_order.shape_struct import typeof as typeof
from maxjax._ir.runtime import installed
from maxjax._ir.staging import DynamicJaxprTracer as _DynamicJaxprTracer
from maxjax._ir.trace import Array as _Array
from maxjax._ir.trace import Tracer as _Tracer
from maxjax._ir.trace import context
from maxjax._ir.types import ShapedArray as ShapedArray
from maxjax._runtime.array import ArrayImpl as _ArrayImpl
from maxjax._transforms.batching import BatchTracer as _BatchTracer
from maxjax._transforms.jvp import JVPTracer as _JVPTracer
from maxjax._transforms.linearize import JaxprTracer as _JaxprTracer
from maxjax.core import Tracer as Tracer
from maxjax.extend import core as _extend
from maxjax.extend.core import Primitive as Primitive

# The modules that JAX has the classes of arrays and of errors in.
ARRAY_CLASSES = {
    _Array: "jax", _ArrayImpl: "jaxlib._jax", _Tracer: "jax._src.core",
    Tracer: "jax._src.core",
    _DynamicJaxprTracer: "jax._src.interpreters.partial_eval",
    _BatchTracer: "jax._src.interpreters.batching",
    _JVPTracer: "jax._src.interpreters.ad", _JaxprTracer: "jax._src.interpreters.ad",
    **dict.fromkeys(_errors.PUBLIC, "jax.errors")}


# The context of this thread: its ``trace`` is the one that operations go to.
trace_ctx = context


def trace_state_clean() -> bool:
    """Whether operations are evaluated, under no transformation."""
    return context.trace is installed.runtime and not context.axis_env


class JaxprEqnContext:
    """Settings that JAX keeps with each equation: maxjax has none."""


def physical_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the numbers that an array of an extended dtype, as of keys, is made of."""
    if _dtypes.is_key(aval.dtype):
        return ShapedArray((*aval.shape, *aval.dtype.key_shape), _dtypes.uint32)
    return ShapedArray(aval.shape, _dtypes.physical(aval.dtype), aval.weak_type)


def is_constant_dim(d: Any) -> bool:
    """Whether a size is a number, and not a symbol."""
    return isinstance(d, int)


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Whether all sizes are numbers."""
    return all(map(is_constant_dim, s))


def is_concrete(x: Any) -> bool:
    """Whether a value is known, and not traced."""
    return not isinstance(x, Tracer)


def __getattr__(name: str) -> Any:
    """What the public modules have under that name."""
    return getattr(_public if hasattr(_public, name) else _extend, name)
