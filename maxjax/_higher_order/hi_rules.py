"""Rules of ``jax.experimental.hijax.HiPrim`` that follow from others, and parts of batching rules.

They are the same functions for all classes: a class takes them over in its body.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from maxjax._base import pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.custom_primitive import Zero
from maxjax._higher_order.hi_types import Aval, HiValue
from maxjax._higher_order.linear_transpose import linear_transpose
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import Jaxpr
from maxjax._ir.trace import Array, context, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._transforms.autodiff import operands_of
from maxjax._transforms.batching import to_axis
from maxjax._transforms.jvp import instantiate
from maxjax._transforms.linearize import UNKNOWN_PRIMALS, LinearTrace
from maxjax._transforms.vmap import vmap

if TYPE_CHECKING:
    from maxjax._higher_order.hi_primitive import HiPrim


def is_zero(x: object) -> bool:
    return type(x) is Zero


def leaves_of(tree: PyTreeSpec, value: PyTree, what: str) -> list[Any]:
    """The leaves of a value that a method gave, ``Zero`` among them.

    Raises:
      AssertionError: its structure is another.
    """
    leaves, found = pytree.flatten(value, lambda x: is_zero(x) or x.__class__ is HiValue)
    if found != tree:
        raise AssertionError(f"{what} has the structure {PyTreeDef(found)}, which ought to be "
                             f"{PyTreeDef(tree)}")
    return leaves


def instantiated(leaf: PyTree) -> Any:
    """A tangent as an array: zeros for a ``Zero``."""
    return instantiate(None, leaf.aval) if is_zero(leaf) else leaf


def _filled(prim: HiPrim, flags: Sequence[bool], moving: Sequence[PyTree]) -> Any:
    """A tangent of each argument, or ``Zero`` where the flag says so."""
    given = iter(moving)
    return pytree.unflatten(prim._in_spec, [
        next(given) if flag else Zero(aval.to_tangent_aval())
        for flag, aval in zip(flags, prim.in_avals_flat, strict=True)])


def _transposed(prim: HiPrim, flags: Sequence[bool], cotangent: PyTree,
                tangent_of: Callable[[tuple[PyTree, ...]], PyTree]) -> Any:
    """The cotangents of the arguments, from a function of their tangents."""
    def linear(*moving: Array) -> list[Any]:
        tangent = tangent_of(_filled(prim, flags, moving))
        return [instantiated(x) for x in leaves_of(prim._out_spec, tangent, "the tangent")]

    dummies = [aval.to_tangent_aval() for aval, flag in zip(
        prim.in_avals_flat, flags, strict=True) if flag]
    given = [instantiated(x) for x in leaves_of(prim._out_spec, cotangent, "the cotangent")]
    return _filled(prim, flags, linear_transpose(linear, *dummies)(given))


# --- lin and linearized, from jvp -----------------------------------------------------------------


@dataclasses.dataclass(eq=False)
class _LinearMap:
    """Residuals of ``linearize_from_jvp``: a program of tangents, and the arrays in it.

    Attributes:
      jaxpr: of the tangents of the arguments that are differentiated.
      nonzero: which results have a tangent.
    """

    consts: list[Any]
    jaxpr: Jaxpr
    nonzero: tuple[bool, ...]


pytree.register(_LinearMap, lambda x: (x.consts, (x.jaxpr, x.nonzero)),
                lambda of, consts: _LinearMap(list(consts), *of))


def _lin_from_jvp(self: Any, nzs_in: PyTree, *primals: PyTree) -> Any:
    flags = leaves_of(self._in_spec, nzs_in, "the tuple of flags")
    linear = LinearTrace(context.trace)
    inputs = [linear.new_input(aval.to_tangent_aval())
              for aval, flag in zip(self.in_avals_flat, flags, strict=True) if flag]
    try:
        with current_trace(linear):
            out, tangent = self.jvp(primals, _filled(self, flags, inputs))
        if any(map(linear.records, leaves_of(self._out_spec, out, "`jvp`: the result"))):
            raise ValueError(UNKNOWN_PRIMALS)
        tangents = leaves_of(self._out_spec, tangent, "`jvp`: the tangent")
        # One that does not depend on the arguments' can only be zero.
        nonzero = tuple(map(linear.records, tangents))
        outvars = [linear.atom(x) for x, flag in zip(tangents, nonzero, strict=True) if flag]
    finally:
        linear.live = False
    jaxpr = Jaxpr(list(linear.constvars.values()), [x._var for x in inputs], outvars, linear.eqns)
    return (out, _LinearMap(linear.consts, jaxpr, nonzero),
            pytree.unflatten(self._out_spec, nonzero))


def _linearized_from_jvp(self: Any, residuals: _LinearMap, *tangents: PyTree) -> Any:
    moving = [x for x in leaves_of(self._in_spec, tangents, "the tuple of tangents")
              if not is_zero(x)]
    found = iter(eval_jaxpr(residuals.jaxpr, residuals.consts, *operands_of(moving)))
    return pytree.unflatten(self._out_spec, [
        next(found) if flag else Zero(aval.to_tangent_aval())
        for flag, aval in zip(residuals.nonzero, self.out_avals_flat, strict=True)])


class _LinearizeFromJVP(NamedTuple):
    """The rules ``lin`` and ``linearized`` of a class with ``jvp``.

    >>> class Sine(jax.experimental.hijax.HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def jvp(self, primals, tangents):
    ...         return self(*primals), jnp.cos(primals[0]) * tangents[0]
    ...     lin, linearized = jax.experimental.hijax.linearize_from_jvp
    >>> jax.linearize(lambda x: Sine(jax.typeof(x))(x), 0.)[1](3.)
    Array(3., dtype=float32, weak_type=True)
    """

    lin: Callable[..., Any]
    linearized: Callable[..., Any]

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        _refuse_call("linearize_from_jvp", "lin, linearized")


class _VJPFromJVP(NamedTuple):
    """The rules of reverse mode of a class with ``jvp``, whose tangent is transposed.

    >>> class Sine(jax.experimental.hijax.HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def jvp(self, primals, tangents):
    ...         return self(*primals), jnp.cos(primals[0]) * tangents[0]
    ...     vjp_fwd, vjp_bwd_retval = jax.experimental.hijax.vjp_from_jvp
    >>> jax.grad(lambda x: Sine(jax.typeof(x))(x))(0.)
    Array(1., dtype=float32, weak_type=True)
    """

    vjp_fwd: Callable[..., Any]
    vjp_bwd_retval: Callable[..., Any]

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        _refuse_call("vjp_from_jvp", "vjp_fwd, vjp_bwd_retval")


class _VJPFromLin(NamedTuple):
    """The rules of reverse mode of a class with ``lin``: ``linearized`` is transposed.

    >>> class Sine(jax.experimental.hijax.HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def lin(self, nonzeros, x):
    ...         return self(x), jnp.cos(x)
    ...     def linearized(self, cosine, tangent):
    ...         return cosine * tangent
    ...     vjp_fwd, vjp_bwd_retval = jax.experimental.hijax.vjp_from_lin
    >>> jax.grad(lambda x: Sine(jax.typeof(x))(x))(0.)
    Array(1., dtype=float32, weak_type=True)
    """

    vjp_fwd: Callable[..., Any]
    vjp_bwd_retval: Callable[..., Any]

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        _refuse_call("vjp_from_lin", "vjp_fwd, vjp_bwd_retval")


def _refuse_call(name: str, rules: str) -> NoReturn:
    raise TypeError(f"`{name}` is a pair of rules, not a single rule; unpack it in the class body: "
                    f"`{rules} = {name}`")


linearize_from_jvp = _LinearizeFromJVP(_lin_from_jvp, _linearized_from_jvp)


# --- the others -----------------------------------------------------------------------------------


def jvp_from_lin(self: Any, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> Any:
    """The rule ``jvp`` of a class with ``lin`` and ``linearized``.

    >>> class Sine(jax.experimental.hijax.HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def lin(self, nonzeros, x):
    ...         return self(x), jnp.cos(x)
    ...     def linearized(self, cosine, tangent):
    ...         return cosine * tangent
    ...     jvp = jax.experimental.hijax.jvp_from_lin
    >>> jax.jvp(lambda x: Sine(jax.typeof(x))(x), (0.,), (3.,))[1]
    Array(3., dtype=float32, weak_type=True)
    """
    if type(self).lin is _lin_from_jvp:
        raise TypeError(
            f"subclass {type(self)} can't set both `jvp = jvp_from_lin` and `lin, linearized = "
            "linearize_from_jvp`, since each would be defined in terms of the other")
    flags = [not is_zero(x) for x in leaves_of(self._in_spec, tangents, "the tuple of tangents")]
    out, residuals, *rest = self.lin(pytree.unflatten(self._in_spec, flags), *primals)
    return out, self.linearized(residuals, *rest[1:], *tangents)


def _vjp_fwd_from_jvp(self: Any, nzs_in: PyTree, *primals: PyTree) -> Any:
    return self(*primals), (primals, nzs_in)


def _vjp_bwd_from_jvp(self: Any, residuals: tuple[PyTree, PyTree], cotangent: PyTree) -> Any:
    primals, nzs_in = residuals
    return _transposed(self, pytree.leaves(nzs_in), cotangent,
                       lambda tangents: self.jvp(primals, tangents)[1])


def _vjp_fwd_from_lin(self: Any, nzs_in: PyTree, *primals: PyTree) -> Any:
    out, residuals, *rest = self.lin(nzs_in, *primals)
    return out, (residuals, nzs_in), *rest


def _vjp_bwd_from_lin(self: Any, residuals: tuple[PyTree, PyTree], cotangent: PyTree) -> Any:
    given, nzs_in = residuals
    return _transposed(self, pytree.leaves(nzs_in), cotangent,
                       lambda tangents: self.linearized(given, *tangents))


vjp_from_jvp = _VJPFromJVP(_vjp_fwd_from_jvp, _vjp_bwd_from_jvp)
vjp_from_lin = _VJPFromLin(_vjp_fwd_from_lin, _vjp_bwd_from_lin)


def transposes_lin(kind: type) -> bool:
    """Whether the rules of reverse mode of a class are those of ``linearized``, transposed."""
    forward: Any = kind.vjp_fwd       # type: ignore[attr-defined]
    return forward is _vjp_fwd_from_lin or (
        forward is _vjp_fwd_from_jvp
        and kind.lin is _lin_from_jvp)      # type: ignore[attr-defined]


# --- batching -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class AxisData:
    """What a batching rule knows of the mapped axis."""

    name: Hashable
    size: int
    spmd_name: Hashable = None
    explicit_mesh_axis: Hashable = None


def unmap_avals(axis_data: AxisData, avals: PyTree, dims: PyTree) -> Any:
    """The types of batched values, from those of one element and the batch dimension of each.

    >>> scalar = jax.typeof(1.)
    >>> class Pair(jax.experimental.hijax.HiPrim):
    ...     def __init__(self, x, y):
    ...         self.in_avals, self.out_aval, self.params = (x, y), x, {}
    ...         super().__init__()
    ...     def expand(self, x, y):
    ...         return x + y
    ...     def batch(self, axis_data, args, dims):
    ...         print(jax.experimental.hijax.unmap_avals(axis_data, self.in_avals, dims))
    ...         args = jax.experimental.hijax.bdims_at_front(axis_data, args, dims)
    ...         avals = jax.experimental.hijax.unmap_avals(axis_data, self.in_avals, (0, 0))
    ...         return Pair(*avals)(*args), 0
    >>> jax.vmap(Pair(scalar, scalar), (0, None))(jnp.arange(3.), 1.)
    (ShapedArray(float32[3], weak_type=True), ShapedArray(float32[], weak_type=True))
    Array([1., 2., 3.], dtype=float32)
    """
    def unmapped(aval: Aval, dim: Any) -> Any:
        if dim is None:
            return aval
        if not isinstance(aval, ShapedArray):
            return aval.inc_rank(axis_data.size, dim)
        return aval.with_dim(dim % (aval.ndim + 1), axis_data.size, axis_data.explicit_mesh_axis)

    return pytree.map(unmapped, avals, dims)


def bdims_at_front(axis_data: AxisData, args: PyTree, dims: PyTree) -> Any:
    """Batched values with the batch dimension first; where they have none, they are repeated.

    >>> class Pair(jax.experimental.hijax.HiPrim):
    ...     def __init__(self, x, y):
    ...         self.in_avals, self.out_aval, self.params = (x, y), x, {}
    ...         super().__init__()
    ...     def expand(self, x, y):
    ...         return x + y
    ...     def batch(self, axis_data, args, dims):
    ...         x, y = jax.experimental.hijax.bdims_at_front(axis_data, args, dims)
    ...         print(x.shape, y.shape)
    ...         return x + y, 0
    >>> row = jax.typeof(jnp.ones(2))
    >>> jax.vmap(Pair(row, row), (1, None))(jnp.ones((2, 3)), jnp.ones(2)).shape
    (3, 2) (3, 2)
    (3, 2)
    """
    return pytree.map(lambda x, dim: to_axis(
        operands_of([x])[0], dim, 0, axis_data.size, axis_data.explicit_mesh_axis), args, dims)


def vmap_rule(axis_data: AxisData, f: Callable[..., PyTree], in_axes: PyTree, out_axes: PyTree, *,
              sum_match: bool = False) -> Callable[..., Any]:
    """``f`` for all elements, as a rule ``batch`` needs it: with ``Zero`` among what it takes and
    gives, each with the type that belongs there.

    >>> class Sine(jax.experimental.hijax.HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return jnp.sin(x)
    ...     def batch(self, axis_data, args, dims):
    ...         return jax.experimental.hijax.vmap_rule(axis_data, self.expand, dims, 0)(*args), 0
    >>> jax.vmap(Sine(jax.typeof(1.)))(jnp.zeros(3))
    Array([0., 0., 0.], dtype=float32)
    """
    mapped = vmap(f, in_axes=in_axes, out_axes=out_axes, axis_size=axis_data.size,
                  axis_name=axis_data.name, spmd_axis_name=axis_data.spmd_name,
                  sum_match=sum_match)

    def is_none(x: object) -> bool:
        return x is None

    def without(dim: Any, x: Any) -> Any:
        return Zero(x.aval.without_dim(dim % x.aval.ndim)) if (
            is_zero(x) and dim is not None) else x

    def batched(*args: PyTree) -> Any:
        out = mapped(*pytree.map(without, in_axes, args, is_leaf=is_none))
        return pytree.map(
            lambda dim, x: Zero(unmap_avals(axis_data, x.aval, dim)) if is_zero(x) else x,
            out_axes, out, is_leaf=is_none)

    return batched
