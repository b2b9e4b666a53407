"""The errors that JAX's users know by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    class _Type(Protocol):
        def str_short(self) -> str: ...

    class _Tracer(Protocol):
        """What messages say of a tracer."""

        @property
        def aval(self) -> _Type | None: ...

        def origin(self) -> str: ...

_SITE = "https://docs.jax.dev/en/latest/101/errors.html#jax.errors."


class _TracingError(Exception):
    """Appends where JAX's documentation explains the error."""

    def __init__(self, message: str):
        name = type(self).__name__
        super().__init__(f"{message}\nSee {_SITE}{name}")


class JAXTypeError(_TracingError, TypeError):
    """A value of a kind that does not fit, for instance one that is traced."""


class JAXIndexError(_TracingError, IndexError):
    """An index of a kind that does not fit."""


class ConcretizationTypeError(JAXTypeError):
    """The value of a traced array was needed while the function was being traced."""

    def __init__(self, tracer: _Tracer | str, context: str = ""):
        message = tracer if isinstance(tracer, str) else (
            "Abstract tracer value encountered where concrete value is expected: "
            f"{describe_tracer(tracer)}\n{context}{origin_message(tracer)}\n"
        )
        super().__init__(message)


class TracerArrayConversionError(JAXTypeError):
    """A traced array was given to something that wants a NumPy array."""

    def __init__(self, tracer: _Tracer):
        super().__init__(
            "The numpy.ndarray conversion method __array__() was called on "
            f"{describe_tracer(tracer)}{origin_message(tracer)}"
        )


class TracerIntegerConversionError(JAXTypeError):
    """A traced array was used where Python needs an integer."""

    def __init__(self, tracer: _Tracer):
        super().__init__(
            f"The __index__() method was called on {describe_tracer(tracer)}"
            f"{origin_message(tracer)}"
        )


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced array was used where Python needs a truth value."""

    def __init__(self, tracer: _Tracer):
        super().__init__(
            f"Attempted boolean conversion of {describe_tracer(tracer)}.{origin_message(tracer)}"
        )


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean array was used as an index: the result's shape would depend on values."""

    def __init__(self, tracer: _Tracer):
        super().__init__(f"Array boolean indices must be concrete; got "
                         f"{tracer if tracer.aval is None else tracer.aval.str_short()}\n")


class UnexpectedTracerError(JAXTypeError):
    """A traced array was used after, or outside, the transformation that made it."""


class DynamicSizeError(JAXTypeError):
    """A size that ``dynamic_dims`` leaves open was needed as a number."""

    def __init__(self, message: str):
        TypeError.__init__(self, message)      # JAX's documentation knows nothing of it


class InconclusiveDimensionOperation(Exception):
    """The outcome of an operation on symbolic sizes is not the same for all sizes.

    >>> a, b = jax.export.symbolic_shape("a, b")
    >>> bool(a > b)
    Traceback (most recent call last):
    InconclusiveDimensionOperation: Symbolic dimension comparison is inconclusive
    """


class UnexpectedDimVar(Exception):
    """A program has a symbolic size that the sizes of its arguments do not tell."""


class JaxprTypeError(TypeError):
    """A jaxpr is not well formed.

    >>> jaxpr = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(0.0).jaxpr
    >>> jax.extend.core.check_jaxpr(jaxpr.replace(eqns=jaxpr.eqns[1:]))
    Traceback (most recent call last):
    JaxprTypeError: equation 0 (a:f32[] = add b 1.0:f32[]) uses ... before it is defined
    """


class KeyReuseError(JAXTypeError):
    """A random key was used twice."""


class JaxRuntimeError(RuntimeError):
    """A program failed while it ran."""


class TypePromotionError(ValueError):
    """Dtypes have no implicit promotion."""


class IndivisibleError(ValueError):
    """The size of a dimension is not divisible by the number of its parts."""


class DuplicateSpecError(Exception):
    """A partition spec names a mesh axis twice."""


class ShardingTypeError(Exception):
    """The types of the operands do not say how the result lies over the Explicit axes."""


class CompileError(RuntimeError):
    """MAX could not compile a program; holds what the compiler said."""


class UnfilteredStackTrace(Exception):
    """The cause of an error whose traceback was shortened; holds the whole one."""


class JaxStackTraceBeforeTransformation(Exception):
    """The cause of an error in an operation that a transformation made: says where the user wrote
    what was transformed."""


class InternalError(AssertionError):
    """A bug in maxjax, never in the caller's program.

    Attributes:
      problem: what is wrong.
    """

    def __init__(self, message: str):
        self.problem = message
        super().__init__(f"This is a bug in maxjax, not in your program: {message}")


# Those of `jax.errors`, which tracebacks name so, and pickles.
PUBLIC = (CompileError, ConcretizationTypeError, DynamicSizeError, InconclusiveDimensionOperation,
          JAXIndexError, JAXTypeError, JaxRuntimeError, JaxprTypeError, KeyReuseError,
          NonConcreteBooleanIndexError, TracerArrayConversionError, TracerBoolConversionError,
          TracerIntegerConversionError, UnexpectedTracerError)
for _error in PUBLIC:
    _error.__module__ = "maxjax.errors"


def describe_tracer(tracer: _Tracer) -> str:
    if tracer.aval is None:     # of somebody's own class, before it has one
        return "traced array with aval None"
    return f"traced array with shape {tracer.aval.str_short()}"


def origin_message(tracer: _Tracer) -> str:
    text = tracer.origin()
    return f"\n{text}" if text else ""
