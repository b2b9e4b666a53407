"""Traces: what happens to a primitive while a transformation is active.

The current trace is found by context, never by looking at the operands: an operation goes to
``context.trace``, which handles its own tracers and passes the rest to its parent.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
    origin_message,
)
from maxjax._base.interrupts import entered_at_once
from maxjax._ir.types import ManualAxisType, ShapedArray

if TYPE_CHECKING:
    from maxjax._ir.array_members import ArrayMembers
    from maxjax._ir.primitive import Primitive
    from maxjax._ir.refs import Ref
    from maxjax._ir.typing import FlatJvp, FlatVjp, Params
else:
    ArrayMembers = object


class Trace:
    """One level of interpretation."""

    __slots__ = ("__weakref__", "live")

    def __init__(self) -> None:
        self.live = True      # False once the transformation that made this trace has ended

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        raise NotImplementedError(type(self).__name__)

    def process_primitive(self, primitive: Primitive, tracers: Sequence[Value],
                          params: Params) -> Any:
        """``apply``, under the name that traces of users' own have (``CustomTrace``)."""
        return self.apply(primitive, tuple(tracers), params)

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: Any) -> list[Any]:
        """Calls a function that has a derivative rule of its own; flat operands and results."""
        raise NotImplementedError(type(self).__name__)

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: Any) -> list[Any]:
        """Calls a function that has a reverse-mode rule of its own: ``rule(primals, perturbed)``
        gives results, residuals and ``backward(residuals, cotangents)``."""
        raise NotImplementedError(type(self).__name__)

    @property
    def main(self) -> Trace:
        """What the tracers of one transformation have in common; an old name of the trace."""
        return self

    def outwards(self) -> Trace | None:
        """The trace that this one passes operations on to."""
        return getattr(self, "parent", None) or getattr(self, "outer", None)

    def reference(self, ref: Ref) -> Any:
        """The state that this trace holds of an array reference that was made outside of it; None
        if it holds none."""
        return None

    def write_outside(self, ref: Ref, value: Value, operation: str) -> Any:
        """A value that is written to a reference from outside of this trace, as a value of the
        trace around it.

        Raises:
          Exception: the value cannot leave this trace.
        """
        return value


class _Context(threading.local):
    """What holds while code of this thread runs.

    Attributes:
      trace: the current trace. A thread begins at the runtime, once that is installed.
      axis_env: the named axes that are bound, with their sizes (``maxjax._ir.axes``).
      manual: the manual mesh axes among them (``maxjax._primitives.varying``), or None.
      batch_axis, batch_spmd_axis, batch_entry: of the axis that the running batching rule maps: its
        name, the mesh axes given as ``spmd_axis_name``, and the Explicit mesh axes that split it.
    """

    trace: Trace

    def __init__(self) -> None:
        self.axis_env: tuple[tuple[Any, int], ...] = ()
        self.manual: Any = None
        self.batch_axis: Any = None
        self.batch_spmd_axis: Any = None
        self.batch_entry: Any = None
        # Scalar arrays that stay constants of the jaxpr that is being written, by id; all others
        # become literals.
        self.kept_scalars: Mapping[int, Any] | None = None


context = _Context()


def set_base(trace: Trace) -> None:
    """Sends the operations of every thread to a trace where no transformation is active."""
    _Context.trace = trace


class current_trace:
    """``with current_trace(trace):`` makes it the one that operations go to."""

    __slots__ = ("previous", "trace")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self) -> Trace:
        self.previous = context.trace
        context.trace = self.trace
        return self.trace

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        context.trace = self.previous


class CompileTimeTrace(Trace):
    """Applies operations without tracers at once, under the trace ``base``; those with tracers go
    to ``outer``, the trace around it."""

    __slots__ = ("base", "outer")

    def __init__(self, outer: Trace, base: Trace):
        super().__init__()
        self.outer = outer
        self.base = base

    def _target(self, args: Sequence[Value], is_traced: bool = False) -> current_trace:
        return current_trace(self.outer if is_traced or any(
            isinstance(arg, Tracer) for arg in args) else self.base)

    def apply(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Any:
        # The trace that maps a named axis knows what a collective gives.
        with self._target(args, primitive.communication is not None) as trace:
            return trace.apply(primitive, args, params)

    def apply_custom_jvp(self, function: Callable[..., list[Value]], jvp: FlatJvp,
                         args: list[Value], **params: object) -> list[Any]:
        with self._target(args) as trace:
            return trace.apply_custom_jvp(function, jvp, args, **params)

    def apply_custom_vjp(self, function: Callable[..., list[Value]], rule: FlatVjp,
                         args: list[Value], **params: object) -> list[Any]:
        with self._target(args) as trace:
            return trace.apply_custom_vjp(function, rule, args, **params)


class Array(ArrayMembers):
    """An array of maxjax: shape, dtype and an operation for each of NumPy's operators.

    Concrete arrays and tracers both are instances. The operators and methods are installed by
    ``maxjax.numpy``.

    Arrays come from ``jnp.array`` and the functions that compute, not from calling the class. They
    are immutable: ``x.at[i].set(v)`` gives a changed copy, and ``x += 1`` a new array under the
    same name. As an annotation it stands for tracers, too.

    See also: ``jnp.array``, ``jnp.asarray``, ``jnp.ndarray.at``, ``jax.device_put``,
    ``jax.typing.ArrayLike``.

    >>> isinstance(jnp.arange(3), jnp.ndarray), isinstance(np.arange(3), jnp.ndarray)
    (True, False)
    """

    __module__ = "maxjax"      # where users find it

    __slots__ = ("__weakref__", "aval")
    aval: ShapedArray
    __array_priority__ = 100

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.aval.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields to others in promotion, as a Python scalar's does."""
        return self.aval.weak_type

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.aval.size * self.aval.dtype.itemsize

    def __len__(self) -> int:
        return len(self.aval)


# What a primitive is applied to.
Value = Array | np.ndarray | np.generic


class Tracer(Array):
    """Stands for a value while a function is being transformed."""

    __slots__ = ("_trace",)
    _trace: Trace
    __array_priority__ = 1000

    def __init__(self, trace: Trace, aval: ShapedArray):
        self._trace = trace
        self.aval = aval

    def origin(self) -> str:
        """Where the value came from, in words; empty if that is not known."""
        return ""

    def kind(self) -> str:
        """What JAX names such a tracer."""
        return type(self).__name__

    def leak(self) -> str:
        """Where the value was made, for the error about its escape; empty if not known."""
        return ""

    def literal(self) -> Any:
        """The value of a scalar constant of a program; else None."""
        return None

    def concrete(self) -> Any:
        """The concrete array behind this tracer, or None when only its type is known.

        A value that carries a tangent is given without it, so that this is only for uses in which
        no tangent can be lost: truth values, integers and static arguments. Nothing else about a
        tracer may reveal its value.
        """
        return None

    def is_known(self) -> bool:
        """Whether a concrete array is behind this tracer; does not look for it."""
        return False

    if not TYPE_CHECKING:      # which would hide misspelt names
        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):       # a property's own error
                return object.__getattribute__(self, name)
            raise AttributeError(f"{self.kind()} has no attribute {name}")

    @property
    def mat(self) -> ManualAxisType:
        """Its type along manual axes."""
        return self.aval.manual_axis_type

    def __bool__(self) -> bool:
        value = self.concrete()
        if value is None:
            if self.aval.size != 1:
                raise ValueError(truth_value_message(self.aval))
            raise TracerBoolConversionError(self)
        return bool(value)

    def __int__(self) -> int:
        value = self.concrete()
        if value is None:
            raise self._needed_by("int")
        return int(value)

    def __float__(self) -> float:
        raise self._needed_by("float")

    def __complex__(self) -> complex:
        raise self._needed_by("complex")

    def _needed_by(self, name: str) -> Exception:
        if self.aval.shape:
            return TypeError("Only scalar arrays can be converted to Python scalars; "
                             f"got arr.ndim={self.aval.ndim}")
        return ConcretizationTypeError(
            self,
            f"The problem arose with the `{name}` function. If trying to convert the data "
            f"type of a value, try using `x.astype({name})` or `jnp.array(x, {name})` "
            "instead.")

    def __index__(self) -> int:
        if self.aval.shape or not dtypes.is_integer(self.aval.dtype):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        value = self.concrete()
        if value is None:
            raise TracerIntegerConversionError(self)
        return value.__index__()

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise TracerArrayConversionError(self)

    def item(self, *args: int) -> Any:
        # JAX returns the element where it is known, whatever tangent it has.
        value = self.concrete()
        if value is None:
            raise ConcretizationTypeError(self, "This occurred in the item() method of jax.Array")
        return value.item(*args)

    def tolist(self) -> Any:
        raise ConcretizationTypeError(
            self, "The tolist() method was called on traced array with shape "
            f"{self.aval.str_short()}.{origin_message(self)}")

    def tobytes(self, order: str = "C") -> bytes:
        raise ConcretizationTypeError(
            self, f"The tobytes() method was called on traced array with shape "
            f"{self.aval.str_short()}.{origin_message(self)}")

    def __reduce__(self) -> Any:
        raise ConcretizationTypeError(
            self, "The error occurred in the __reduce__ method, which may indicate an attempt to "
            "serialize/pickle a traced value.")

    __hash__: None = None   # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.aval is None:       # of somebody's own class, before it has one
            return f"{type(self).__name__}<None>"
        weak = "~" if self.aval.weak_type else ""
        return f"{type(self).__name__}({weak}{self.aval.str_short()})"

    def __copy__(self) -> Tracer:
        return self

    def __deepcopy__(self, memo: dict) -> Tracer:
        return self


def tracer_class(tracer: Tracer) -> str:
    """A tracer's class as Python prints classes, by the name that JAX has for it."""
    return repr(type(tracer)).replace(type(tracer).__name__, tracer.kind())


def invalid_type(value: object) -> TypeError:
    """The error for what stands in an array's place and is none."""
    if isinstance(value, (np.ndarray, np.generic)):
        return TypeError(f"Dtype {value.dtype} is not a valid JAX array type. Only arrays of "
                         "numeric types are supported by JAX.")
    kind = f"{type(value)}" if isinstance(value, str) else f"'{type(value)}'"
    return TypeError(f"Argument '{value}' of type {kind} is not a valid JAX type")


def invalid_shape(shape: Sequence[object]) -> TypeError:
    """The error for a shape whose entries are not all concrete integers."""
    message = f"Shapes must be 1D sequences of concrete values of integer type, got {shape}."
    tracers = [size for size in shape if isinstance(size, Tracer) and not size.is_known()]
    if tracers:
        message += ("\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
                    f"subfunctions.{origin_message(tracers[0])}")
    return TypeError(message)


def truth_value_message(aval: ShapedArray) -> str:
    if aval.size == 0:
        return ("The truth value of an empty array is ambiguous. Use `array.size > 0` to check "
                "that an array is not empty.")
    return ("The truth value of an array with more than one element is ambiguous. "
            "Use a.any() or a.all()")


def leaked_tracer_error(tracer: Tracer) -> UnexpectedTracerError:
    leak = tracer.leak()
    return UnexpectedTracerError(
        "Encountered an unexpected tracer. A function transformed by JAX had a side effect, "
        "allowing for a reference to an intermediate value with type "
        f"{tracer.aval.str_short()} wrapped in a {tracer.kind()} to escape the scope of "
        "the transformation.\n"
        "JAX transformations require that functions explicitly return their outputs, and "
        "disallow saving intermediate values to global state."
        + (f"\n{leak}" if leak else "") +
        "\nTo catch the leak earlier, try setting the environment variable "
        "JAX_CHECK_TRACER_LEAKS or using the `jax.checking_leaks` context manager.")


def check_leaks(reference: weakref.ref[Trace]) -> None:
    """Checks whether anybody still holds a trace that has ended.

    Raises:
      Exception: somebody does, by one of its tracers; names them and who holds them.
    """
    if reference() is None:
        return
    gc.collect()        # garbage has not leaked
    trace = reference()
    if trace is None:
        return
    tracers = [x for x in gc.get_referrers(trace) if isinstance(x, Tracer)]
    if not tracers:
        return
    lines = [f"Leaked trace {type(trace).__name__}. Leaked tracer(s):"]
    for tracer in tracers:
        lines += ["", repr(tracer), *filter(None, [tracer.leak()])]
        for holder in gc.get_referrers(tracer):
            if holder is not tracers and type(holder) is not FrameType:
                lines.append(f"<{type(tracer).__name__} {id(tracer)}> is referred to by "
                             f"{_described(holder, tracer)}")
    raise Exception("\n".join(lines))


def _described(holder: object, value: object) -> str:
    if isinstance(holder, dict):
        keys = [key for key, item in holder.items() if item is value]
        name = holder.get("__name__")
        return f"{name}.{keys[0]}" if isinstance(name, str) and keys else f"<dict>[{keys!r}]"
    if isinstance(holder, (list, tuple)):
        positions = [n for n, item in enumerate(holder) if item is value]
        names = [_described(outer, holder) for outer in gc.get_referrers(holder)
                 if isinstance(outer, dict)]
        return f"<{type(holder).__name__}>{positions}" + (f", of {names[0]}" if names else "")
    return f"<{type(holder).__name__}>"


def as_given(value: object) -> Any:
    """The number of Python's that an operand was made of, for those who gave it; or the operand."""
    return value if isinstance(value, Tracer) else getattr(value, "_number", value)


def all_as_given(values: Iterable[object]) -> list[Any]:
    """``as_given`` of each."""
    return [as_given(value) for value in values]


def aval_of(value: Value) -> ShapedArray:
    """The type of an operand: an array, a tracer, or a NumPy array or scalar."""
    if isinstance(value, Array):
        return value.aval
    return ShapedArray(value.shape, value.dtype, False)


def is_scalar(value: object) -> bool:
    """Whether an operand that is not an ``Array`` is a scalar of one of NumPy's own classes."""
    return isinstance(value, np.generic) and value.__class__ is value.dtype.type
