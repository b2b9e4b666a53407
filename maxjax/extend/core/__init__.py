"""jax.extend.core: primitives of one's own, and jaxprs to look at, change and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.missing import missing_names
from maxjax._base.source import SourceLine
from maxjax._higher_order.custom_primitive import CustomPrimitive
from maxjax._ir import check as _check
from maxjax._ir.effects import Effect as Effect
from maxjax._ir.jaxpr import ClosedJaxpr as ClosedJaxpr
from maxjax._ir.jaxpr import DropVar as DropVar
from maxjax._ir.jaxpr import Jaxpr as Jaxpr
from maxjax._ir.jaxpr import JaxprEqn as JaxprEqn
from maxjax._ir.jaxpr import Literal as Literal
from maxjax._ir.jaxpr import Var as Var
from maxjax._ir.jaxpr import subjaxprs as _subjaxprs
from maxjax._ir.staging import eval_jaxpr
from maxjax._ir.trace import Array, base_trace
from maxjax._ir.types import ShapedArray
from maxjax._transforms.autodiff import operands_of
from maxjax.core import AbstractValue as AbstractValue
from maxjax.core import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from maxjax.extend.core import primitives as primitives

Effects = frozenset
no_effects: frozenset[Effect] = frozenset()
array_types = {np.ndarray, np.generic, Array}


class Primitive(CustomPrimitive):
    """An operation of one's own, which transformations take through rules that are given to it.

    The type of its result is said by ``def_abstract_eval``, and it is computed by ``def_impl``, a
    function of NumPy arrays. Derivatives and batching: ``maxjax.interpreters.ad`` and
    ``batching``. A kernel: ``maxjax.extend.mojo``. ``examples/custom_op.py`` has all of them.

    Args:
      name: what it is called in jaxprs.

    Raises:
      ValueError: it is the name of a primitive with programs in it, such as "scan".

    >>> double_p = jax.extend.core.Primitive("double")
    >>> impl = double_p.def_impl(lambda x: 2 * x)
    >>> rule = double_p.def_abstract_eval(lambda x: jax.core.ShapedArray(x.shape, x.dtype))
    >>> jax.interpreters.ad.deflinear2(double_p, lambda ct, x: [double_p.bind(ct)])
    >>> jax.jit(jax.grad(lambda x: double_p.bind(x) ** 2))(3.0)
    Array(24., dtype=float32, weak_type=True)
    """


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A jaxpr as a function of arrays, which gives the list of its results.

    >>> closed = jax.make_jaxpr(lambda x: 2 * x)(1.0)
    >>> jax.extend.core.jaxpr_as_fun(closed)(3.0)
    [Array(6., dtype=float32, weak_type=True)]
    """
    count = len(closed_jaxpr.jaxpr.invars)

    def run(*args: Any) -> list[Any]:
        if len(args) != count:
            raise ValueError(f"the jaxpr has {count} inputs, not {len(args)}")
        return eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *operands_of(args))

    return run


def new_jaxpr_eqn(invars: Sequence[Any], outvars: Sequence[Var], primitive: Any,
                  params: dict[str, Any], effects: Any = no_effects,
                  source_info: SourceLine | None = None, ctx: Any = None) -> JaxprEqn:
    """An equation; its effects follow from the primitive.

    >>> x, y = [jax.extend.core.Var(jax.core.ShapedArray((), jnp.float32)) for _ in range(2)]
    >>> sine = jax.extend.core.new_jaxpr_eqn([x], [y], lax.sin_p, {})
    >>> jax.extend.core.Jaxpr([], [x], [y], [sine])
    { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """
    return JaxprEqn(primitive, invars, params, outvars, source_info)


def gensym(suffix: str = "") -> Callable[[ShapedArray], Var]:
    """A function that makes a new variable of a type.

    >>> new = jax.extend.core.gensym()
    >>> aval = jax.core.ShapedArray((3,), jnp.float32)
    >>> new(aval) == new(aval), new(aval).aval
    (False, ShapedArray(float32[3]))
    """
    return Var


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Checks that a jaxpr is well formed.

    Raises:
      Exception: it is not; names the equation.

    >>> jax.extend.core.check_jaxpr(jax.make_jaxpr(jnp.sin)(1.0).jaxpr)
    """
    _check.check_jaxpr(jaxpr)


def subjaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """The jaxprs in the parameters of a jaxpr's equations.

    >>> len(list(jax.extend.core.subjaxprs(jax.make_jaxpr(jax.jit(jnp.sin))(1.0).jaxpr)))
    1
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def jaxprs_in_params(params: dict[str, Any]) -> Iterator[Jaxpr]:
    """The jaxprs among an equation's parameters.

    >>> eqn, = jax.make_jaxpr(jax.jit(jnp.sin))(1.0).eqns
    >>> list(jax.extend.core.jaxprs_in_params(eqn.params))
    [{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }]
    """
    for inner in _subjaxprs(params):
        yield inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one element along an axis.

    >>> jax.extend.core.mapped_aval(3, 0, jax.core.ShapedArray((3, 2), jnp.float32))
    ShapedArray(float32[2])
    """
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1:]))


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of so many elements along an axis.

    >>> jax.extend.core.unmapped_aval(3, 0, jax.core.ShapedArray((2,), jnp.float32))
    ShapedArray(float32[3,2])
    """
    if axis is None:
        return aval
    return aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of tangents of values of a dtype: float0 for integers.

    >>> jax.extend.core.primal_dtype_to_tangent_dtype(jnp.dtype("int32")) == jax.float0
    True
    """
    return dtypes.tangent_dtype(dtypes.as_dtype(primal_dtype))


def valid_jaxtype(x: Any) -> bool:
    """Whether something is an array or a number.

    >>> jax.extend.core.valid_jaxtype(1.0), jax.extend.core.valid_jaxtype("text")
    (True, False)
    """
    try:
        base_trace[0].operand(x)
    except TypeError:
        return False
    return True


__getattr__ = missing_names(__name__)
