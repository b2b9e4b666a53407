"""Promotion: how operations of jax.numpy convert their arguments before binding a primitive.

Arguments are maxjax arrays, NumPy arrays and scalars, and Python scalars; the last are weakly
typed. Operands of primitives share a dtype and, except for scalars, a rank.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import caches, config, dtypes, options, source
from maxjax._base.errors import ConcretizationTypeError
from maxjax._higher_order.outputs import HasNoValue, without_value
from maxjax._ir.dimensions import broadcast_shapes, is_dimension, size_index
from maxjax._ir.primitive import Primitive
from maxjax._ir.runtime import installed
from maxjax._ir.staging import is_staging
from maxjax._ir.trace import Array, Tracer, context, invalid_shape
from maxjax._ir.types import ShapedArray
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.convert import convert as convert_host
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.dimension import dimension_scalar
from maxjax._primitives.widths import refusal
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.outside_values import leaf_aval, python_value
from maxjax.lax._operands import canonical_axis
from maxjax.numpy._refusals import check_width, is_of_no_number, not_numeric, refusal_of

PYTHON_SCALARS = dtypes.PYTHON_SCALARS
NO_PARAMS: dict[str, Any] = {}


def is_arraylike(value: Any) -> bool:
    """Whether an operation accepts ``value`` as an array; lists and tuples are not accepted."""
    return (isinstance(value, (Array, np.ndarray, np.generic, bool, int, float, complex))
            or hasattr(value, "__jax_array__"))


def check_arraylike(name: str, *args: Any) -> None:
    """Raises TypeError for the first argument that is not an array or scalar."""
    for position, arg in enumerate(args):
        if isinstance(arg, Array):
            continue
        if not is_arraylike(arg) or is_of_no_number(arg):
            raise refusal_of(name, arg, position)
        if arg.__class__ is int and not -2**31 <= arg < 2**31:
            check_width(name, arg, position)


def as_array(value: Any, name: str = "asarray", position: int = 0) -> Array:
    """An argument as an array or tracer; Python scalars become weakly typed."""
    if isinstance(value, Array):
        return value
    if not is_arraylike(value) or is_of_no_number(value):
        raise refusal_of(name, value, position)
    if value.__class__ is int and not -2**31 <= value < 2**31:
        check_width(name, value, position)
    return installed.runtime.operand(value)


def type_of(value: Any) -> tuple[Any, bool]:
    """(dtype, is weak) of an argument."""
    if isinstance(value, Array):
        return value.aval.dtype, value.aval.weak_type
    if is_dimension(value):
        return dtypes.python_scalar(int)
    if value.__class__ in PYTHON_SCALARS:
        return dtypes.python_scalar(value.__class__)
    aval = leaf_aval(value)
    if aval is None:
        raise not_numeric(value)
    return aval.dtype, aval.weak_type


def element(value: Any, dtype: Any) -> Any:
    """A Python scalar as an element of an array of ``dtype``; an integer need fit no other.

    Raises:
      OverflowError: it fits neither this dtype nor that of Python's integers.
    """
    if value.__class__ is int and value >= 2**31 and dtypes.is_integer(dtype) and (
            dtype.itemsize >= 4):
        return constant(np.asarray(python_value(value, dtype), dtype)[()], dtype)
    return constant(value, dtype)


def shape_of(value: Any) -> tuple[int, ...]:
    return getattr(value, "shape", ())


_constants: dict[Any, Any] = caches.cache()
# The classes of those among them that are operands of their dtype only where 64 bits are enabled.
_WIDE = frozenset((np.float64, np.int64, np.uint64, np.complex128))


def constant(value: Any, dtype: Any, weak: bool = False) -> Any:
    """A Python or NumPy scalar as an operand of ``dtype``."""
    kind = value.__class__
    if is_dimension(value):
        return dimension_scalar(value, dtype, weak)
    # 0.0 and -0.0 would be the same key.
    key = (kind, value if value or kind is int else str(value), dtype, weak)
    known = _constants.get(key)
    if known is not None and (known.__class__ not in _WIDE or config.enable_x64.value):
        return known
    host = value
    if kind in PYTHON_SCALARS:
        own, _ = dtypes.python_scalar(kind)
        host = python_value(value, own)
    elif kind is np.int64 or kind is np.uint64:
        host = value.astype(dtypes.canonical(value.dtype))      # as any array
    scalar = np.asarray(convert_host(np.asarray(host), dtype))
    if not weak and dtypes.canonical(dtype) != dtype:
        return ArrayImpl(ShapedArray((), dtype), scalar)    # allowed, which NumPy's scalar is not
    result = ArrayImpl(ShapedArray((), dtype, True), scalar) if weak else scalar[()]
    # Integers that depend on the width of the default type are excluded.
    if kind is float or (kind is int and -2**31 <= value < 2**31):
        if len(_constants) > 4096:
            _constants.clear()
        _constants[key] = result
    return result


def cast(value: Any, dtype: Any, weak: bool = False) -> Any:
    """An argument as an operand of ``dtype``; weakly typed only if ``weak``."""
    if isinstance(value, Array):
        aval = value.aval
        # That an operand is weakly typed shows in a program, which is printed; a concrete array may
        # stay weakly typed, as nobody sees the types of the operands of an eager operation; but of
        # booleans alone the result is seen to be strongly typed.
        if aval.dtype == dtype and (aval.weak_type if weak else not (
                aval.weak_type and (dtype == dtypes.bool_ or isinstance(value, Tracer)))):
            return value
        if aval.dtype != dtype and dtypes.canonical(aval.dtype) == dtype and (
                config.explicit_x64_dtypes.value != options.ExplicitX64Mode.ALLOW):
            # A 64-bit array from before 64 bits were disabled.
            source.warn(dtypes.truncation(aval.dtype, dtype, " requested in dtype"))
        return convert_element_type(value, dtype, weak)
    if value.__class__ in PYTHON_SCALARS or (
            isinstance(value, (np.generic, bool, int, float, complex))):
        return constant(value, dtype, weak)
    value = installed.runtime.operand(value)
    return value if value.aval.dtype == dtype else convert_element_type(value, dtype, weak)


def weak_scalar(x: Any) -> Any:
    """``x``, strongly typed if it has dimensions.

    JAX's operations multiply by and compare with constants that are as weakly typed as a scalar is,
    but strongly typed beside an array.
    """
    return convert_element_type(x, x.dtype) if x.ndim and x.weak_type else x


def promote_dtypes(name: str, *args: Any) -> list[Any]:
    """The arguments as operands of one dtype, by JAX's promotion."""
    operands = resolve(name, args)
    dtype, weak = dtypes.promote(tuple([type_of(operand) for operand in operands]))
    return [cast(operand, dtype, weak) for operand in operands]


def resolve(name: str, args: Sequence[Any]) -> list[Any]:
    """Checks the arguments, and replaces those that define ``__jax_array__``."""
    result = []
    for position, arg in enumerate(args):
        if not isinstance(arg, Array) and arg.__class__ not in PYTHON_SCALARS:
            if hasattr(arg, "__jax_array__"):
                arg = arg.__jax_array__()
            elif isinstance(arg, HasNoValue) and is_staging():
                arg = without_value(arg)
            elif not is_arraylike(arg) or is_of_no_number(arg):
                raise refusal_of(name, arg, position)
        elif arg.__class__ is int and not -2**31 <= arg < 2**31:
            check_width(name, arg, position)
        result.append(arg)
    return result


def inexact_type(dtype: Any, weak: bool) -> tuple[Any, bool]:
    """The floating type in which a function computes on arguments of ``dtype``; that of booleans is
    strong."""
    return inexact_dtype(dtype), weak and dtype != dtypes.bool_


def inexact_dtype(dtype: Any) -> Any:
    """``dtype``, or the float that replaces an integer or boolean: float64 only for 64 bits."""
    if dtypes.is_inexact(dtype):
        return dtype
    if dtypes.is_opaque(dtype):
        raise TypeError(f"Cannot interpret '{dtype}' as a data type")
    return dtypes.float32 if dtype.itemsize < 8 else dtypes.kept(dtypes.float64)


def promote_inexact(name: str, *args: Any) -> list[Any]:
    """As ``promote_dtypes``, with integers and booleans converted to floats."""
    operands = resolve(name, args)
    dtype, weak = inexact_type(*dtypes.promote(tuple([type_of(operand) for operand in operands])))
    return [cast(operand, dtype, weak) for operand in operands]


def promote_shapes(name: str, *args: Any) -> list[Any]:
    """Gives operands of different ranks the same rank; scalars stay scalars.

    Without a name, the option that warns about this does not apply.
    """
    ranks = {len(arg.shape) for arg in args if arg.shape}
    if len(ranks) < 2:
        return list(args)
    shapes = [arg.shape for arg in args]
    if name and config.rank_promotion.value != "allow":
        _complain_of_ranks(name, shapes)
    try:
        broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}") from None
    rank = max(ranks)
    return [raise_rank(arg, rank) if arg.shape else arg for arg in args]


def apart(x: Any) -> Any:
    """An operand as the result of an operation that has changed nothing: what is deleted or donated
    is one array, not both."""
    return x.apart() if x.__class__ is ArrayImpl and not is_staging() else x


def raise_rank(x: Any, rank: int) -> Any:
    missing = rank - len(x.shape)
    if not missing:
        return x
    return broadcast_in_dim(x, (1,) * missing + x.shape, tuple(range(missing, rank)))


RANK_PROMOTION_LINK = "https://docs.jax.dev/en/latest/101/rank_promotion_warning.html."


def _complain_of_ranks(name: str, shapes: list[tuple[int, ...]]) -> None:
    text = " ".join(str(shape) for shape in shapes)
    if config.rank_promotion.value == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {text} and with the "
            "config option jax_numpy_rank_promotion='raise'. For more information, see "
            f"{RANK_PROMOTION_LINK}")
    source.warn(
        f"Following NumPy automatic rank promotion for {name} on shapes {text}. Set the "
        "jax_numpy_rank_promotion config option to 'allow' to disable this warning; for more "
        f"information, see {RANK_PROMOTION_LINK}")


def judge_ranks(shapes: Sequence[tuple[int, ...]], message: Callable[[], str]) -> None:
    """Warns, or raises ValueError, about shapes of different ranks, as the option says; scalars
    go with any."""
    state = config.rank_promotion.value
    if state == "allow" or len({len(shape) for shape in shapes if shape}) < 2:
        return
    if state == "raise":
        raise ValueError(message())
    source.warn(message())


def promote_args(name: str, *args: Any) -> list[Any]:
    """Operands of one dtype and, except for scalars, one rank."""
    return promote_shapes(name, *promote_dtypes(name, *args))


def promote_args_inexact(name: str, *args: Any) -> list[Any]:
    return promote_shapes(name, *promote_inexact(name, *args))


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Broadcasts an operand as NumPy does; the shape is known to be compatible."""
    have = x.shape
    if have == shape:
        return x
    missing = len(shape) - len(have)
    return broadcast_in_dim(x, shape, tuple(range(missing, len(shape))))


def broadcast_shapes_of(*args: Any) -> tuple[int, ...]:
    """The shape to which the arguments broadcast."""
    shapes = [shape_of(arg) for arg in args]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}") from None


def check_accepts(primitive: Primitive, operands: Sequence[Any]) -> None:
    """Raises TypeError if a primitive does not accept the dtype of an operand."""
    accepts: Any = primitive.values.accepts
    if accepts is None:
        return
    for position, operand in enumerate(operands):
        if operand.dtype in accepts:
            continue
        if dtypes.is_opaque(operand.dtype) and any(map(dtypes.is_opaque, accepts)):
            continue        # keys of users' generators, too
        where = f" at position {position}" if len(operands) > 1 else ""
        raise refusal(primitive.name, operand.dtype, where, accepts)


def operand(name: str, x: Any) -> Array:
    return as_array(resolve(name, (x,))[0])


def inexact_operand(name: str, x: Any) -> Array:
    return as_array(promote_inexact(name, x)[0])


def is_exact(x: Array) -> bool:
    return not dtypes.is_inexact(x.dtype)


def bind(primitive: Primitive, *operands: Any, **params: Any) -> Any:
    """Checks the dtypes, and applies an elementwise primitive."""
    check_accepts(primitive, operands)
    if not any(isinstance(operand, Array) for operand in operands) and operands:
        operands = (installed.runtime.operand(operands[0]), *operands[1:])
    return context.trace.apply(primitive, operands, params)


# --- axes, shapes, dtypes as arguments ------------------------------------------------------------

def canonical_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """``axis`` (None: all, an integer, or several) as a sorted tuple counted from the front."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, (np.ndarray, Array)) and axis.ndim and not isinstance(axis, Tracer):
        axis = [operator.index(entry) for entry in axis]
    if isinstance(axis, (tuple, list, range)):
        axes = tuple([canonical_axis(a, rank) for a in axis])
        if len(set(axes)) != len(axes):
            raise ValueError(f"duplicate value in 'axis': {tuple(axis)}")
        return tuple(sorted(axes))
    if isinstance(axis, Tracer) and axis.concrete() is None:
        raise ConcretizationTypeError(axis, "The axis argument must be known statically.")
    return (canonical_axis(axis, rank),)


def canonical_shape(shape: Any) -> tuple[int, ...]:
    """A shape argument as a tuple of ints.

    Raises:
      TypeError: an entry is not a concrete integer.
    """
    if isinstance(shape, int):
        return (int(shape),)
    if isinstance(shape, (Array, np.ndarray)) and not isinstance(shape, Tracer):
        host = np.asarray(shape)
        if host.dtype == np.bool_:
            raise TypeError("Shapes must be 1D sequences of concrete values of integer type, got "
                            f"{host}.")
        shape = host.tolist()
    if isinstance(shape, str) or not isinstance(shape, Sequence) and not (
            hasattr(shape, "__iter__") and not isinstance(shape, Tracer)):
        shape = (shape,)
    entries = tuple(shape)
    try:
        return tuple([size if type(size) is int else size_index(size) for size in entries])
    except TypeError:
        raise invalid_shape(shape if isinstance(shape, list) else entries) from None


def concrete(value: Any, message: str) -> Any:
    """A static argument as a NumPy value.

    Raises:
      ConcretizationTypeError: it is traced; ``message`` says where it was needed.
    """
    if isinstance(value, Tracer):
        known = value.concrete()
        if known is None:
            raise ConcretizationTypeError(value, message)
        return np.asarray(known)
    return np.asarray(value) if isinstance(value, Array) else value


def static(value: Any, name: str) -> int:
    """A static integer argument.

    Raises:
      ValueError: it is an array: JAX's static arguments are hashed.
      TypeError: it is not an integer.
    """
    if isinstance(value, Array):
        raise ValueError("Non-hashable static arguments are not supported: the argument "
                         f"{name!r} is the array {value}. Pass a Python integer.")
    return operator.index(value)


def is_concrete(value: Any) -> bool:
    return not isinstance(value, Tracer) or value.concrete() is not None


def check_out(name: str, out: Any) -> None:
    """Refuses NumPy's argument ``out``, as JAX's functions do."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{name} is not supported.")
