"""What the rules of primitives are written with; below every family."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.linearity import REDUCED_FIRST
from maxjax._ir.primitive import Primitive
from maxjax._ir.size_scopes import state as dimensions
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import AxisName

if TYPE_CHECKING:
    from typing_extensions import TypeIs

MOST_INT32 = 2**31 - 1


class Linear:
    """Marks an operand to be transposed in a transpose rule: only its type is known.

    >>> jax.interpreters.ad.UndefinedPrimal(jax.core.ShapedArray((3,), jnp.float32)).aval
    ShapedArray(float32[3])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"UndefinedPrimal({'~' if self.aval.weak_type else ''}{self.aval.str_short()})"


def is_linear(x: object) -> TypeIs[Linear]:
    """Whether an operand of a transpose rule is one to be transposed.

    >>> jax.interpreters.ad.is_undefined_primal(1.0)
    False
    """
    return type(x) is Linear


def aval_of(operand: Array | Linear) -> ShapedArray:
    """The type of an operand: array, tracer, ``Linear`` mark, NumPy array or scalar."""
    if isinstance(operand, (Array, Linear)):
        return operand.aval
    return ShapedArray(operand.shape, operand.dtype)


def of_numbers(name: str, abstract: Callable[..., object]) -> Callable[..., Any]:
    """The rule of types of an operation on numbers, which refuses the keys of random generators and
    the elements of libraries' dtypes.

    Raises:
      TypeError: an operand is of those.
    """
    def checked(*avals: ShapedArray, **params: object) -> Any:
        for aval in avals:
            if dtypes.is_opaque(aval.dtype):
                raise TypeError(f"{name} does not accept dtype {aval.dtype}.")
        return abstract(*avals, **params)

    return checked


def nonnegative(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that a caller may have computed.

    Raises:
      TypeError: a size is negative, in JAX's words.
    """
    for size in shape:
        if type(size) is int and size < 0:
            raise TypeError(f"{name} shape must have every element be nonnegative, got {shape}.")
    return shape


def scalar_like(value: Any, dtype: Any) -> Any:
    """``value`` as a NumPy scalar of ``dtype``: an operand that joins any shape."""
    if dtypes.is_user_defined(dtype) and value == 0:      # the one that its rules know
        return dtype._rules.zero(dtype)
    if is_dimension(value):
        return dimensions.as_scalar(value, np.dtype(dtype), False)
    return np.asarray(value, dtype)[()]


def place_dtype(*sizes: object) -> np.dtype:
    """The dtype of places along dimensions of such sizes: int64 where int32 does not hold one of
    them, if there are 64 bits."""
    wide = any(type(size) is int and size > MOST_INT32 for size in sizes)
    return dtypes.canonical(dtypes.int64) if wide else dtypes.int32


def broadcast_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of an elementwise result.

    Operands have one rank, with sizes equal or 1, or rank 0.
    """
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            break
    else:
        return first
    full = [shape for shape in shapes if shape]
    ranks = {len(shape) for shape in full}
    if len(ranks) > 1:
        raise TypeError(
            f"{name}: arrays must have the same number of dimensions, "
            f"got {{{', '.join(map(str, sorted(ranks)))}}}")
    result = []
    for sizes in zip(*full, strict=True):
        wide = [size for size in sizes if size != 1]
        size = wide[0] if wide else 1
        if any(other != size for other in wide):
            raise TypeError(
                f"{name} got incompatible shapes for broadcasting: "
                f"{', '.join(map(str, shapes))}.")
        result.append(size)
    return tuple(result)


def linear_jvp(primals: Sequence[Array], tangents: Sequence[Array], *, primitive: Primitive,
               **params: object) -> tuple[Any, Any]:
    """The jvp of a primitive that is linear in its first operand, the only one with a tangent."""
    out = primitive.bind(*primals, **params)
    if tangents[0] is None:
        return out, None
    return out, primitive.bind(tangents[0], *primals[1:], **params)


def linear_primitive(name: str, **rules: Any) -> Primitive:
    """A primitive that is linear in its first operand; its jvp is itself."""
    rules.setdefault("linearity", REDUCED_FIRST)

    def jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object
            ) -> tuple[Any, Any]:
        return linear_jvp(primals, tangents, primitive=primitive, **params)

    primitive = Primitive(name, jvp=jvp, **rules)
    return primitive


def native(name: str) -> Callable[..., Any]:
    """A lowering to the backend's own operation of that name."""
    return lambda ctx, *values, **params: ctx.native(name, *values)


# --- sharding factors -----------------------------------------------------------------------------

# The factors of one dimension.
Dim = tuple[Hashable, ...]


class FactorRule:
    """How the dimensions of operands and results correspond.

    A factor is a name with a size. Each dimension is a tuple of factors, major first (several
    where a reshape splits or merges dimensions, none for a dimension of size 1).

    Attributes:
      operands, results: for each value, for each dimension, the tuple of its factors.
      sizes: factor -> size.
      reduction: factor -> how partial results combine: "add", "max", "min", "mul", "and", "or".
      replicated: the factors that no mesh axis may split.
      permutation: the factors whose elements move between shards (reverse, sort, shift).
    """

    __slots__ = ("operands", "permutation", "reduction", "replicated", "results", "sizes")

    def __init__(self, operands: Sequence[Sequence[Dim]], results: Sequence[Sequence[Dim]],
                 sizes: dict[Any, int], reduction: dict[Any, str] | None = None,
                 replicated: frozenset[Any] = frozenset(),
                 permutation: frozenset[Any] = frozenset()) -> None:
        self.operands = operands
        self.results = results
        self.sizes = sizes
        self.reduction = reduction or {}
        self.replicated = replicated
        self.permutation = permutation

    def __repr__(self) -> str:
        def value(dims: Sequence[Dim]) -> str:
            return "[" + ",".join("*".join(map(str, dim)) or "1" for dim in dims) + "]"

        text = f"{','.join(map(value, self.operands))} -> {','.join(map(value, self.results))}"
        extra = [f"{name}={getattr(self, name)}" for name in
                 ("reduction", "replicated", "permutation") if getattr(self, name)]
        return " ".join([text, *map(str, extra)])


class OnShard(NamedTuple):
    """What a shard computes by itself, although the dimensions do not correspond.

    Attributes:
      apply: ``(shard, eqn, operands, params, in_dims, out_dims)`` -> the results on one shard. The
        dimensions hold the mesh axes that split them; ``shard`` knows its position.
      factors: changes a factor rule in place: what can be split thanks to ``apply``.
      computed: the same, for splits that are used only where asked for, and never proposed.
    """

    apply: Callable[..., Any]
    factors: Callable[[JaxprEqn, FactorRule], None] | None = None
    computed: Callable[[JaxprEqn, FactorRule], None] | None = None


def factor_rule(operands: Sequence[Sequence[Hashable]], results: Sequence[Sequence[Hashable]],
                in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], **options: Any
                ) -> FactorRule:
    """A rule of one factor a dimension, given by names; None where a dimension has none."""
    sizes: dict[Any, int] = {}
    for names, aval in zip([*operands, *results], [*in_avals, *out_avals], strict=True):
        for name, size in zip(names, aval.shape, strict=True):
            if name is not None:
                sizes[name] = max(size, sizes.get(name, 0))

    def dims(names: Sequence[AxisName]) -> tuple[tuple[Any, ...], ...]:
        return tuple(() if name is None else (name,) for name in names)

    return FactorRule(tuple(map(dims, operands)), tuple(map(dims, results)), sizes, **options)


def elementwise_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], /,
                        **params: object) -> FactorRule:
    """Each dimension of the result is a factor; operands of size 1 there do not have it."""
    shape = out_avals[0].shape
    operands = [
        [i if size == shape[i] else None for i, size in enumerate(aval.shape)]
        for aval in in_avals]
    return factor_rule(operands, [range(len(shape))] * len(out_avals), in_avals, out_avals)


def replicated_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], /,
                       **params: object) -> FactorRule:
    """A rule for what cannot be computed on shards: every dimension needs replication."""
    names = iter(range(sum(aval.ndim for aval in (*in_avals, *out_avals))))
    dims = [[next(names) for _ in aval.shape] for aval in (*in_avals, *out_avals)]
    rule = factor_rule(dims[:len(in_avals)], dims[len(in_avals):], in_avals, out_avals)
    rule.replicated = frozenset(rule.sizes)
    return rule


def batch_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                  batch: int) -> FactorRule:
    """The first ``batch`` dimensions correspond; the others cannot be split."""
    names = iter(range(batch, batch + sum(aval.ndim for aval in (*in_avals, *out_avals))))
    dims = [[*range(batch), *(next(names) for _ in aval.shape[batch:])]
            for aval in (*in_avals, *out_avals)]
    rule = factor_rule(dims[:len(in_avals)], dims[len(in_avals):], in_avals, out_avals)
    rule.replicated = frozenset(name for name in rule.sizes if name >= batch)
    return rule


def call_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], /,
                 **params: object) -> FactorRule:
    """The rule of a call of a jaxpr: by itself it ties no dimension to another.

    The factors are those of the equations inside, into which shardings are propagated.
    """
    names = iter(range(sum(aval.ndim for aval in (*in_avals, *out_avals))))
    dims = [[next(names) for _ in aval.shape] for aval in (*in_avals, *out_avals)]
    return factor_rule(dims[:len(in_avals)], dims[len(in_avals):], in_avals, out_avals)


def axis_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                 whole: Sequence[int] = (), permuted: Sequence[int] = ()) -> FactorRule:
    """Dimensions correspond one to one; those in ``whole`` (``permuted``) need replication
    (permutation)."""
    ranks = [range(aval.ndim) for aval in (*in_avals, *out_avals)]
    return factor_rule(ranks[:len(in_avals)], ranks[len(in_avals):], in_avals, out_avals,
                       replicated=frozenset(whole), permutation=frozenset(permuted))


def reduced_shape(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for dim, size in enumerate(shape) if dim not in axes)


def reduction_batch(primitive: Primitive) -> Callable[..., tuple[Any, int]]:
    """The batching rule of a reduction with a parameter ``axes``."""
    def batch(size: int, operands: Sequence[Array], batch_axes: Sequence[int], *,
              axes: tuple[int, ...], **params: object) -> tuple[Any, int]:
        axis = batch_axes[0]
        moved = tuple(dim + (dim >= axis) for dim in axes)
        out = primitive.bind(operands[0], axes=moved, **params)
        return out, axis - sum(dim < axis for dim in moved)
    return batch


def reduction_factors(kind: str) -> Callable[..., FactorRule]:
    """The factors of a reduction: the reduced ones give partial results that combine by ``kind``.
    """
    def factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                axes: Sequence[int], **params: object) -> FactorRule:
        names = range(in_avals[0].ndim)
        return factor_rule([names], [[dim for dim in names if dim not in axes]] * len(out_avals),
                           in_avals, out_avals, reduction=dict.fromkeys(axes, kind))
    return factors
