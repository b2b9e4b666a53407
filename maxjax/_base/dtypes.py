"""Dtypes: canonical forms, JAX's promotion lattice, weak types, random-key dtypes."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Protocol, final

import ml_dtypes
import numpy as np

from maxjax._base import config, options, source
from maxjax._base.errors import TypePromotionError
from maxjax._base.typed_numbers import KINDS, TypedComplex, TypedFloat, TypedInt

if TYPE_CHECKING:
    from typing_extensions import TypeIs

bfloat16 = np.dtype(ml_dtypes.bfloat16)
float16, float32, float64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)
bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
int2, int4 = np.dtype(ml_dtypes.int2), np.dtype(ml_dtypes.int4)
uint2, uint4 = np.dtype(ml_dtypes.uint2), np.dtype(ml_dtypes.uint4)
FLOAT8 = tuple(
    np.dtype(getattr(ml_dtypes, name)) for name in (
        "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
        "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"))
float4_e2m1fn = np.dtype(ml_dtypes.float4_e2m1fn)
float0 = np.dtype([("float0", np.void, 0)])
# Dtypes that can be named, asked about and promoted; there are no arrays of them.
int1, uint1 = np.dtype(ml_dtypes.int1), np.dtype(ml_dtypes.uint1)
FLOAT6 = (np.dtype(ml_dtypes.float6_e2m3fn), np.dtype(ml_dtypes.float6_e3m2fn))
WITHOUT_ARRAYS = (int1, uint1, *FLOAT6)

FLOATS = (float16, bfloat16, float32, float64)
SMALL_FLOATS = (*FLOAT8, float4_e2m1fn)
COMPLEX = (complex64, complex128)
COMPLEX_WORDS = (complex64,)      # those that the pack moves as words of 64 bits
SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
SMALL_INTS = (int2, int4, uint2, uint4)
INTS = SIGNED + UNSIGNED

_FLOATING = frozenset(FLOATS + SMALL_FLOATS)
_COMPLEX = frozenset(COMPLEX)
_SIGNED = frozenset((*SIGNED, int2, int4))
_UNSIGNED = frozenset((*UNSIGNED, uint2, uint4))


@final
class KeyDType:
    """The dtype of random keys: opaque, equal to itself, one per generator.

    On the host and in MAX one key is one scalar of ``physical`` dtype, so that every operation
    that moves elements about (reshape, indexing, select, ...) works on keys as it stands.
    """

    __slots__ = ("impl", "itemsize", "key_shape", "words", "tag", "physical")
    kind = "V"

    def __init__(self, impl: str, tag: str, key_shape: tuple[int, ...],
                 physical: np.dtype | None = None):
        self.impl = impl
        self.tag = tag
        self.key_shape = key_shape
        self.words = math.prod(key_shape)
        self.itemsize = 4 * self.words
        # A record of one field, so that each generator's keys differ from the others'.
        self.physical: np.dtype = physical or np.dtype([(impl, f"V{self.itemsize}")])

    @property
    def name(self) -> str:
        return f"key<{self.tag}>"

    @property
    def type(self) -> type:
        return prng_key

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self):
        return (key_dtype, (self.impl,))


class extended(np.generic):
    """The abstract class of dtypes that NumPy does not have."""


class prng_key(extended):
    """The abstract class of random-key dtypes."""


class ExtendedDType:
    """The base of dtypes that libraries define, by instances that are equal where they are alike.

    On the host and in MAX an element is one of ``physical`` dtype, as for keys; what the dtype's
    ``_rules`` are asked is that, which conversions there are, and, where it has tangents, what is
    their sum and what is zero.
    """

    __slots__ = ()
    _rules: Any
    name: Any
    type: Any
    kind = "V"

    @property
    def physical(self) -> np.dtype:
        """The dtype of an element on the host.

        Raises:
          NotImplementedError: an element is an array.
        """
        element = self._rules.physical_element_aval(self)
        if element.shape:
            raise NotImplementedError(
                f"the dtype {self} has elements of shape {element.shape}; those of a dtype that a "
                "library defines are scalars")
        return np.dtype(element.dtype)

    @property
    def itemsize(self) -> int:
        return self.physical.itemsize

    def converts(self, source: DType, target: DType) -> bool:
        """Whether elements can be converted, of which one dtype is this one."""
        rules = self._rules
        if hasattr(rules, "allow_conversion"):
            return bool(rules.allow_conversion)
        asked = rules.convert_from if source == self else rules.convert_to
        return bool(asked(source, target))


DType = np.dtype | KeyDType | ExtendedDType

if TYPE_CHECKING:
    class _HasDType(Protocol):
        @property
        def dtype(self) -> DType: ...

    # What names a dtype.
    DTypeLike = str | type[Any] | DType | _HasDType | None

_KEY_DTYPES = {
    "threefry2x32": KeyDType("threefry2x32", "fry", (2,), np.dtype(np.uint64)),
    "rbg": KeyDType("rbg", "rbg", (4,)),
    "unsafe_rbg": KeyDType("unsafe_rbg", "urbg", (4,)),
    "philox2x32": KeyDType("philox2x32", "phx2", (1,)),
    "philox4x32": KeyDType("philox4x32", "phx4", (2,)),
    "threefry4x32": KeyDType("threefry4x32", "fry4", (4,)),
}


KEY_GENERATORS = frozenset(_KEY_DTYPES)


def key_dtype(impl: str) -> KeyDType:
    return _KEY_DTYPES[impl]


def is_key(dtype: object) -> TypeIs[KeyDType]:
    return type(dtype) is KeyDType


def is_user_defined(dtype: object) -> TypeIs[ExtendedDType]:
    return isinstance(dtype, ExtendedDType)


def is_opaque(dtype: object) -> TypeIs[KeyDType | ExtendedDType]:
    """Whether elements can be moved about and nothing else: there is no arithmetic of them."""
    return type(dtype) is KeyDType or isinstance(dtype, ExtendedDType)


def physical(dtype: DType) -> np.dtype:
    """The dtype in which the host and MAX hold elements of ``dtype``."""
    return dtype.physical if is_opaque(dtype) else dtype


_TO_32 = {int64: int32, uint64: uint32, float64: float32, complex128: complex64}


@functools.lru_cache(maxsize=512)
def _as_dtype(value: Any) -> np.dtype:
    return np.dtype(value)


def as_dtype(value: DTypeLike) -> Any:
    """``np.dtype`` of anything that names a dtype, random-key dtypes included."""
    if isinstance(value, np.dtype) or is_opaque(value):
        return value
    if value is None:
        return float64
    scalar_dtype = getattr(value, "dtype", None)      # jnp.float32 and its like
    if scalar_dtype is not None and isinstance(scalar_dtype, (np.dtype, KeyDType, ExtendedDType)):
        return scalar_dtype
    named: Any = value
    try:
        return _as_dtype(named)
    except TypeError:
        return np.dtype(named)


def as_dtype_argument(value: DTypeLike) -> Any:
    """``as_dtype`` of what a user gives as a dtype.

    Raises:
      ValueError, TypeError: it is an array, of JAX's kind or NumPy's.
    """
    if isinstance(value, (np.dtype, type, str)):    # to look for a missing attribute takes 1 us
        return as_dtype(value)
    if hasattr(value, "aval"):
        raise ValueError("Passing an array as a dtype argument is no longer supported; instead of "
                         "dtype=arr use dtype=arr.dtype.")
    if isinstance(value, np.ndarray):
        raise TypeError("Cannot construct a dtype from an array")
    return as_dtype(value)


# Those of NumPy's own dtypes that stand for themselves whatever ``jax_enable_x64`` is.
CANONICAL = frozenset((bool_, int8, int16, int32, uint8, uint16, uint32, float16, float32,
                       complex64))


def canonical(dtype: DTypeLike) -> Any:
    """The dtype that stands for ``dtype`` under the present ``jax_enable_x64``."""
    own = as_dtype(dtype)
    if not config.enable_x64.value:
        return _TO_32.get(own, own)
    return own


def kept(dtype: DTypeLike) -> Any:
    """The dtype of a result that has an operand's: ``canonical``, but where the option
    ``jax_explicit_x64_dtypes`` allows 64 bits, as then they stay."""
    if config.explicit_x64_dtypes.value == options.ExplicitX64Mode.ALLOW:
        return as_dtype(dtype)
    return canonical(dtype)


def requested(dtype: DType, name: str) -> Any:
    """The dtype that stands for one that was asked for, not as a Python type, in ``name``.

    While 64 bits are off that is, as ``jax_explicit_x64_dtypes`` has it, the 32-bit one, with a
    warning, or the dtype itself.

    Raises:
      ValueError: the option has 64 bits refused.
    """
    result = canonical(dtype)
    mode = config.explicit_x64_dtypes.value
    if result == dtype or mode == options.ExplicitX64Mode.ALLOW:
        return dtype
    where = f" requested in {name}" if name else ""
    if mode == options.ExplicitX64Mode.ERROR:
        raise ValueError(
            f"Explicitly requested dtype {dtype.name}{where} is not available. To enable more "
            "dtypes, set the jax_enable_x64 or allow_explicit_x64_dtypes configuration options."
            + _SITE)
    source.warn(truncation(dtype, result, where))
    return result


def argument(value: DTypeLike, name: str) -> Any:
    """The dtype that stands for a dtype argument of ``name``; of 64 bits see ``requested``.

    Raises:
      TypeError: it does not name a numeric dtype.
      ValueError: it is an array, or has 64 bits, which are disabled and refused.
    """
    try:
        wanted = as_dtype_argument(value)
    except TypeError as error:
        raise TypeError(str(error)) from None
    if is_opaque(wanted):
        return wanted
    if not (is_numeric(wanted) or wanted in (bool_, float0)):
        raise TypeError(
            f"JAX only supports number, bool, and string dtypes, got dtype {value} in {name}")
    if value is None or value is int or value is float or value is complex:
        return canonical(wanted)
    return requested(wanted, name)


_SITE = "See https://github.com/jax-ml/jax#current-gotchas for more."


def truncation(dtype: DType, result: DType, where: str) -> str:
    """The warning where 64 bits are asked for while they are off."""
    return (f"Explicitly requested dtype {dtype.name}{where} is not available, and will be "
            f"truncated to dtype {result.name}. To enable more dtypes, set the jax_enable_x64 "
            f"configuration option or the JAX_ENABLE_X64 shell environment variable. {_SITE}")


def warn_of_discarded_parts(dtype: DType, wanted: DType) -> None:
    """Warns where a conversion leaves out imaginary parts."""
    if is_complex(dtype) and not is_complex(wanted):
        source.warn("Casting complex values to real discards the imaginary part",
                    np.exceptions.ComplexWarning)


def check_storable(dtype: DType) -> None:
    """Raises TypeError where no arrays of a dtype exist."""
    if not (is_numeric(dtype) or dtype in (bool_, float0) or is_opaque(dtype)):
        raise TypeError(f"Dtype {dtype} is not a valid JAX array type. Only arrays of numeric "
                        "types are supported by JAX.")


def is_bool(dtype: DType) -> bool:
    return dtype == bool_


def is_integer(dtype: DType) -> bool:
    return dtype in _SIGNED or dtype in _UNSIGNED


def is_signed(dtype: DType) -> bool:
    return dtype in _SIGNED


def is_unsigned(dtype: DType) -> bool:
    return dtype in _UNSIGNED


def is_floating(dtype: DType) -> bool:
    return dtype in _FLOATING


def is_complex(dtype: DType | None) -> bool:
    return dtype in _COMPLEX


def is_inexact(dtype: DType) -> bool:
    return dtype in _FLOATING or dtype in _COMPLEX


def is_numeric(dtype: DType) -> bool:
    return is_inexact(dtype) or is_integer(dtype)


_SHORT = {bool_: "bool", bfloat16: "bf16", float0: "float0"}
_SHORT.update({d: f"f{d.itemsize * 8}" for d in (float16, float32, float64)})
_SHORT.update({d: f"c{d.itemsize * 8}" for d in COMPLEX})
_SHORT.update({d: f"i{d.itemsize * 8}" for d in SIGNED})
_SHORT.update({d: f"u{d.itemsize * 8}" for d in UNSIGNED})
_SHORT.update({int2: "i2", int4: "i4", uint2: "u2", uint4: "u4"})


@functools.cache
def name_of(dtype: np.dtype) -> str:
    """``dtype.name``, which NumPy puts together anew each time."""
    return dtype.name


def short_name(dtype: DType) -> str:
    """``f32`` for float32 and so on, as jaxprs print it."""
    name = _SHORT.get(dtype)
    if name is None:
        name = dtype.name if is_opaque(dtype) else dtype.name.replace("float", "f")
    return name


def real_dtype(dtype: DType) -> Any:
    """The dtype of the parts of a complex number; any other dtype itself."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_dtype(dtype: DType) -> Any:
    return complex128 if dtype in (float64, complex128) else complex64


def tangent_dtype(dtype: DType) -> Any:
    """Tangents of integers, booleans and keys carry nothing: their dtype is float0."""
    if isinstance(dtype, ExtendedDType):
        return dtype._rules.tangent_dtype(dtype)
    return dtype if is_inexact(dtype) else float0


def has_tangents(dtype: DType) -> bool:
    """Whether values have tangents that carry something."""
    return is_inexact(dtype) or isinstance(dtype, ExtendedDType) and (
        dtype._rules.tangent_dtype(dtype) != float0)


def finfo(dtype: DTypeLike) -> Any:
    return ml_dtypes.finfo(as_dtype(dtype))


def iinfo(dtype: DTypeLike) -> Any:
    return ml_dtypes.iinfo(as_dtype(dtype))


def extremes(dtype: DTypeLike) -> tuple[Any, Any]:
    """The least and the greatest value of a dtype: infinities where it has them."""
    own = as_dtype(dtype)
    if own == bool_:
        return np.False_, np.True_
    if is_integer(own):
        info = iinfo(own)
        return np.array(info.min, own)[()], np.array(info.max, own)[()]
    info = finfo(own)
    with np.errstate(all="ignore"):
        infinity = np.array(np.inf, own)[()]
    if not np.isinf(infinity.astype(np.complex128)):
        return info.min, info.max
    return np.array(-np.inf, own)[()], infinity


# --- promotion ---------------------------------------------------------------------------------
# The lattice of JAX's documentation ("Type promotion semantics"). Python scalars and weakly
# typed arrays stand at the nodes int, float and complex.
_WEAK_NODES = {"i*": (int32, int64), "f*": (float32, float64), "c*": (complex64, complex128)}
_EDGES: dict[Any, list[Any]] = {
    bool_: ["i*"],
    "i*": [uint8, int8, int1, uint1, *SMALL_INTS],
    int1: [], uint1: [], int2: [], int4: [], uint2: [], uint4: [],
    uint8: [int16, uint16], uint16: [int32, uint32], uint32: [int64, uint64], uint64: ["f*"],
    int8: [int16], int16: [int32], int32: [int64], int64: ["f*"],
    "f*": ["c*", bfloat16, float16, *SMALL_FLOATS, *FLOAT6],
    **{d: [] for d in (*SMALL_FLOATS, *FLOAT6)},
    bfloat16: [float32], float16: [float32], float32: [float64, complex64],
    float64: [complex128], "c*": [complex64], complex64: [complex128], complex128: [],
}


def _upper_bounds() -> dict[Any, frozenset[Any]]:
    bounds: dict[Any, set[Any]] = {node: {node, *above} for node, above in _EDGES.items()}
    grew = True
    while grew:
        grew = False
        for above in bounds.values():
            wider = set().union(*(bounds[node] for node in above))
            if not wider <= above:
                above |= wider
                grew = True
    return {node: frozenset(above) for node, above in bounds.items()}


_BOUNDS = _upper_bounds()


def _weak_node(dtype: DType) -> Any:
    if dtype == bool_:
        return bool_
    if is_integer(dtype):
        return "i*"
    return "c*" if is_complex(dtype) else "f*"


@functools.lru_cache(maxsize=4096)
def _join(nodes: frozenset[DType | str]) -> Any:
    for node in nodes:
        if node not in _BOUNDS:
            raise ValueError(f"dtype={node!r} is not a valid dtype for JAX type promotion.")
    common = frozenset.intersection(*(_BOUNDS[node] for node in nodes))
    least = [node for node in common if common <= _BOUNDS[node]]
    if len(least) == 1:
        return least[0]
    names = sorted(str(_WEAK_SCALARS.get(node, node)) for node in nodes)
    narrow, example = _narrow(nodes)
    hint = (f"To avoid unintended promotion, {narrow} do not support implicit promotion. If you'd "
            "like your inputs to be promoted to another type, you can do so explicitly using e.g. "
            f"x.astype('{example}')" if narrow else
            "Try explicitly casting inputs to the desired output type.")
    raise TypePromotionError(
        f"Input dtypes {tuple(names)} have no available implicit dtype promotion path. {hint}")


def _narrow(nodes: frozenset[DType | str]) -> tuple[str, str]:
    """The kind of narrow dtype that stands in the way, and what to convert it to."""
    bits = {finfo(node).bits for node in nodes if node in SMALL_FLOATS or node in FLOAT6}
    if bits:
        return f"{max(bits)}-bit floats", "float32"
    if any(node in SMALL_INTS or node in (int1, uint1) for node in nodes):
        return "1-bit, 2-bit and 4-bit integers", "int32"
    return "", ""


_WEAK_SCALARS: dict[Any, type] = {"i*": int, "f*": float, "c*": complex}


@functools.lru_cache(maxsize=4096)
def _promote(operands: tuple[tuple[DType, bool], ...], strict: bool, x64: bool) -> tuple[Any, bool]:
    strong = {dtype for dtype, weak in operands if not weak}
    if len(operands) == 1 or len(set(operands)) == 1:
        dtype, weak = operands[0]
        return dtype, weak and dtype != bool_
    if any(type(dtype) is KeyDType for dtype, _ in operands):
        if len({dtype for dtype, _ in operands}) == 1:
            return operands[0]
        names = tuple(sorted(str(dtype) for dtype, _ in operands))
        raise TypePromotionError(
            f"Input dtypes {names} have no available implicit dtype promotion path.")
    nodes = frozenset(_weak_node(dtype) if weak else dtype for dtype, weak in operands)
    if strict and strong:
        # A weak operand may only join a strong one of its own kind or wider.
        try:
            refused = len(strong) > 1 or _join(nodes) not in strong
        except TypePromotionError:
            refused = True
        if refused:
            names = tuple(sorted(str(_WEAK_SCALARS.get(node, node)) for node in nodes))
            raise TypePromotionError(
                f"Input dtypes {names} have no available implicit dtype promotion path when "
                "jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the desired "
                "output type, or set jax_numpy_dtype_promotion=standard.")
    if not strong and not strict:
        # Weak arrays may be of narrow dtypes: among themselves they promote as strong ones.
        node = _join(frozenset([dtype for dtype, _ in operands]))
        return node if x64 else _TO_32.get(node, node), node != bool_
    node = _join(nodes)
    if node in _WEAK_NODES:
        return _WEAK_NODES[node][x64], True
    if not x64 and not any(dtype in _TO_32 for dtype, _ in operands):
        return _TO_32.get(node, node), False    # nobody asked for 64 bits
    return node, False


def promote(operands: tuple[tuple[DType, bool], ...], x64: bool | None = None) -> tuple[Any, bool]:
    """The dtype and weakness of the result of operands given as (dtype, is weak) pairs.

    Args:
      x64: whether there are dtypes of 64 bits; None: as the option says.

    >>> promote(((int8, False), (float32, True)))
    (dtype('float32'), True)
    """
    wide = bool(config.enable_x64.value) if x64 is None else x64
    result = _promote(operands, config.dtype_promotion.value == "strict", wide)
    if not wide and not result[1] and result[0] in _TO_32 and len(set(operands)) > 1:
        return requested(result[0], "dtype"), False     # an operand of 64 bits becomes of 32
    return result


def default_of(dtype: DType) -> Any:
    """The dtype that a weak one stands for where it meets no other: the default of its kind."""
    if is_unsigned(dtype):
        narrow, wide = uint32, uint64
    else:
        narrow, wide = _WEAK_NODES[_weak_node(dtype)]
    return wide if config.enable_x64.value else narrow


def common(*kinds: DType) -> Any:
    """The dtype that values of these dtypes are computed in: that of ``promote``, also where the
    option refuses to promote operands.

    >>> common(float16, float32)
    dtype('float32')
    """
    return _promote(tuple([(kind, False) for kind in kinds]), False,
                    bool(config.enable_x64.value))[0]


# bool is a subclass of int and keeps no weakness: True + True is a bool.
PYTHON_SCALARS: dict[type, tuple[Any, Any, bool]] = {
    bool: (bool_, bool_, False),
    int: (int32, int64, True),
    float: (float32, float64, True),
    complex: (complex64, complex128, True),
    TypedInt: (int32, int64, True),
    TypedFloat: (float32, float64, True),
    TypedComplex: (complex64, complex128, True),
}


def python_scalar(kind: type) -> tuple[Any, bool]:
    """The dtype and weakness of a Python scalar of type ``kind``."""
    narrow, wide, weak = PYTHON_SCALARS[kind]
    return (wide if config.enable_x64.value else narrow), weak


def typed_number(value: object) -> Any:
    """A number of Python's with the dtype that it has as an array; what is none, as it is.

    >>> typed_number(2.5)
    TypedFloat(2.5, dtype=float32)
    """
    kind = KINDS.get(value.__class__)
    return value if kind is None else kind(value, python_scalar(value.__class__)[0])
