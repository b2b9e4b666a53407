"""where, which other functions use."""

from __future__ import annotations

from typing import Any, overload

from maxjax._base import dtypes
from maxjax._base.meshes import AbstractMesh
from maxjax._higher_order.named_calls import named
from maxjax._ir.dimensions import broadcast_shapes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import ne_p, select_n_p
from maxjax._runtime.array import ArrayImpl
from maxjax.lax._over_mesh import broadcast_over, explicit_mesh
from maxjax.numpy._promotion import (
    as_array,
    cast,
    constant,
    resolve,
    type_of,
)

__all__ = ["where"]


def as_bool(x: Any) -> Any:
    """Whether each element is nonzero."""
    if isinstance(x, Array):
        if x.dtype == dtypes.bool_:
            return x
        return ne_p.bind(x, constant(0, x.dtype, x.aval.weak_type and not x.ndim))
    return as_bool(as_array(x))


@overload
def where(condition: ArrayLike, /, *, size: int | None = None,
          fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None) -> tuple[Array, ...]: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...


def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
          size: int | None = None, fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None
          ) -> Array | tuple[Array, ...]:
    """Elements of ``x`` where ``condition`` holds, of ``y`` elsewhere.

    With only ``condition``: the indices where it holds, as from ``nonzero``.

    Both ``x`` and ``y`` are computed in full. In a gradient the branch that is not chosen counts as
    zero, but a NaN or an infinite derivative in it gives NaN all the same: replace the argument
    that causes it too, as in ``where(x > 0, log(where(x > 0, x, 1)), 0)``.

    Args:
      condition: booleans; of numbers all but 0 hold, NaN among them.
      x, y: arrays or scalars, both or neither; the three shapes broadcast.
      size: without ``x`` and ``y``: how many indices to return; required where ``condition`` is
        traced. Surplus ones are cut off.
      fill_value: what stands in place of missing indices: a number, or one for each dimension; 0 by
        default.

    Returns:
      An array of the common shape, of the dtype to which ``x`` and ``y`` promote. Without them a
      tuple of integer arrays ``(size,)``, one for each dimension of ``condition``, as from
      ``nonzero``.

    Raises:
      TypeError: only one of ``x`` and ``y`` is given, or an argument is a list.
      ValueError: the shapes do not broadcast, or ``size`` or ``fill_value`` is given with ``x`` and
        ``y``.
      ConcretizationTypeError: ``condition`` is traced, and there are neither ``x`` and ``y`` nor
        ``size``.

    See also: ``select``, ``piecewise``, ``nonzero``, ``choose``, ``lax.select``, ``lax.cond``.

    >>> x = jnp.array([-1., 2.])
    >>> jnp.where(x > 0, x, 0.), jnp.where(x > 0)
    (Array([0., 2.], dtype=float32), (Array([1], dtype=int32),))
    >>> jnp.where(jnp.array([0, 3, 0, 5]), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int32),)
    """
    if x is None and y is None:
        return as_array(condition, "where").nonzero(size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where "
                         "function.")
    return _where(*resolve("where", (condition, x, y)))


@named("_where")
def _where(holds: Any, yes: Any, no: Any) -> Any:
    holds = as_bool(holds)
    if yes.__class__ is ArrayImpl and no.__class__ is ArrayImpl and yes.aval is no.aval and (
            holds.aval.shape == yes.aval.shape and not yes.aval.weak_type):
        return select_n_p.bind(holds, no, yes)
    dtype, weak = dtypes.promote((type_of(yes), type_of(no)))
    yes, no = cast(yes, dtype, weak), cast(no, dtype, weak)
    mesh = explicit_mesh(holds, yes, no)
    if mesh is not None and len({holds.shape, yes.shape, no.shape}) > 1:
        return _over_mesh(mesh, holds, yes, no)
    shape = holds.shape
    if not (yes.shape == shape or yes.shape == ()) or not (no.shape == shape or no.shape == ()):
        shape = _common_shape(holds, yes, no)
        if holds.shape:
            holds = _spread(holds, shape)
    yes = _spread(yes, shape)
    return select_n_p.bind(holds, _spread(no, shape), yes)


def _common_shape(condition: Any, x: Any, y: Any) -> tuple[int, ...]:
    shapes = [condition.shape, x.shape, y.shape]
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}") from None


def _over_mesh(mesh: AbstractMesh, condition: Any, x: Any, y: Any) -> Any:
    """``where`` of operands that broadcast, some of which are split over Explicit axes."""
    shape = _common_shape(condition, x, y)
    if condition.shape:
        condition, x, y = broadcast_over(mesh, (condition, x, y), shape)
    else:
        x, y = broadcast_over(mesh, (x, y), shape)
    return select_n_p.bind(condition, y, x)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    if x.shape == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape) - len(x.shape), len(shape))))
