"""jvp, vjp, linearize, grad and value_and_grad, on pytrees."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, overload

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import wraps
from maxjax._base.source import JVP, function_location, show_as, transformed
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.refs import Ref
from maxjax._ir.runtime import installed
from maxjax._ir.trace import (
    Array,
    Tracer,
    all_as_given,
    as_given,
    aval_of,
    invalid_type,
    tracer_class,
)
from maxjax._ir.types import ManualAxisType, ShapedArray
from maxjax._ir.typing import Aux, Result, Value
from maxjax._primitives.varying import vary
from maxjax._transforms.flags import flags_of, with_zeros
from maxjax._transforms.jvp import instantiate, jvp_flat
from maxjax._transforms.linear_functions import (
    VJP,
    LinearFunction,
    Linearized,
    like_result,
    of_values,
    operands_of,
    tangent_of,
)
from maxjax._transforms.linearize import linearize_flat
from maxjax._transforms.refs import Lent, lending

# ``(function, arguments)`` -> the same of what derivatives are by, for arguments of types above
# arrays; set by the module that defines them.
by_carriers: Callable[[Callable[..., Any], Any], tuple[Callable[..., Any], Any]] | None = None


def arguments_of(leaves: Sequence[object]) -> list[Any]:
    """The leaves of a function's arguments as operands.

    Raises:
      TypeError: one is neither a number nor an array.
    """
    try:
        return operands_of(leaves)
    except TypeError:
        for leaf in leaves:
            leaf_operand(leaf)
        raise


def leaf_operand(leaf: object) -> Any:
    """A leaf of a function's result as an operand.

    Raises:
      TypeError: it is neither a number nor an array.
    """
    if isinstance(leaf, Array):
        return leaf
    try:
        return installed.runtime.argument(leaf)
    except TypeError:
        raise invalid_type(leaf) from None


class FlatFunction:
    """A function of pytrees as one of flat lists; remembers the tree of its results.

    With ``has_aux`` the arrays among the auxiliary data follow the results, as further results.
    """

    def __init__(self, function: Callable[..., PyTree], in_tree: PyTreeSpec, has_aux: bool = False):
        self.function = function
        self.in_tree = in_tree
        self.has_aux = has_aux
        self.out_tree: Any = None
        self.aux_leaves: list[Any] = []
        self.aux_tree: Any = None

    def __call__(self, *leaves: Value) -> list[Any]:
        result = self.function(*pytree.unflatten(self.in_tree, leaves))
        if self.has_aux:
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                kind = tracer_class(result) if isinstance(result, Tracer) else type(result)
                raise TypeError(
                    "expected function with aux output to return a two-element tuple, but "
                    f"got type {kind} with value {result!r}")
            result, aux = result
            self.aux_leaves, self.aux_tree = pytree.flatten(aux)
        outputs, self.out_tree = pytree.flatten(result)
        return [*map(leaf_operand, outputs),
                *(leaf for leaf in self.aux_leaves if isinstance(leaf, Array))]

    def aux(self, values: Sequence[Value]) -> Any:
        """The auxiliary data, with the transformation's tracers replaced by their values."""
        given = iter(values)
        return pytree.unflatten(self.aux_tree, [
            as_given(next(given)) if isinstance(leaf, Array) else leaf for leaf in self.aux_leaves])


# --- forward --------------------------------------------------------------------------------------

@boundary
def jvp(fun: Callable[..., PyTree], primals: Sequence[PyTree], tangents: Sequence[PyTree],
        has_aux: bool = False) -> tuple[Any, ...]:
    """The value of ``fun`` at ``primals`` and its derivative along ``tangents``.

    Args:
      fun: a function of arrays or pytrees of them.
      primals, tangents: tuples of one pytree for each argument, of the same structure, shapes and
        dtypes (the tangent of an integer is of dtype float0).
      has_aux: ``fun`` returns a pair (result, auxiliary data).

    Returns:
      ``(result, tangent)``, or ``(result, tangent, aux)``.

    Raises:
      TypeError: the structures or dtypes differ.
      ValueError: the shapes differ.

    See also: ``jax.vjp``, ``jax.linearize``, ``jax.grad``, ``jax.jacfwd``, ``jax.custom_jvp``.
    """
    check_callable(fun)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            "primal and tangent arguments to jax.jvp must be tuples or lists; found "
            f"{type(primals).__name__} and {type(tangents).__name__}.")
    if by_carriers is not None and of_values.lift is not None:
        fun, primals = by_carriers(fun, primals)
        tangents = of_values.lift(tangents)
    given_tree = pytree.structure(primals)
    tangent_leaves, tangent_tree = pytree.flatten(tangents)
    if given_tree != tangent_tree:
        raise TypeError(
            "primal and tangent arguments to jax.jvp must have the same tree structure; primals "
            f"have tree structure {PyTreeDef(given_tree)} whereas tangents have tree structure "
            f"{PyTreeDef(tangent_tree)}.")
    leaves, tree = pytree.flatten(tuple(primals))
    if any(leaf.__class__ is Ref for leaf in leaves):
        return _jvp_of_refs(fun, tree, leaves, tangent_leaves, has_aux)
    values = arguments_of(leaves)
    given = [check_tangent(value.aval, tangent)
             for value, tangent in zip(values, tangent_leaves, strict=True)]
    flat = FlatFunction(fun, tree, has_aux)
    with transformed(JVP):
        outs, out_tangents = jvp_flat(flat, values, given)
    count = flat.out_tree.num_leaves
    result = pytree.unflatten(flat.out_tree, all_as_given(outs[:count]))
    tangent = tangent_of(flat.out_tree, [
        as_given(like_result(instantiate(t, aval_of(o)), aval_of(o)))
        if dtypes.has_tangents(aval_of(o).dtype) else float0_zeros(o)
        for o, t in zip(outs[:count], out_tangents[:count], strict=True)])
    if not has_aux:
        return result, tangent
    return result, tangent, flat.aux(outs[count:])


def _jvp_of_refs(fun: Callable[..., PyTree], tree: PyTreeSpec, leaves: list[object],
                 tangents: list[object], has_aux: bool) -> Any:
    """A jvp with references among the arguments, whose tangents are references too."""
    for leaf, tangent in zip(leaves, tangents, strict=True):
        if (leaf.__class__ is Ref) != (tangent.__class__ is Ref):
            raise TypeError("the tangent of an array reference is an array reference")
    lent, with_values = lending(fun, tree, leaves, has_aux, "jvp")
    lent_tangents = Lent(tangents, lent.names, lent.location, lent.kind)
    values, directions = lent.values(leaves), lent_tangents.values(tangents)
    with lent.borrowed(), lent_tangents.borrowed():
        (result, finals), (tangent, final_tangents), *aux = jvp(
            with_values, tuple(values), tuple(directions), has_aux)
    lent_tangents.written = lent.written
    lent.write(finals)
    lent_tangents.write(final_tangents)
    return result, tangent, *aux


def float0_zeros(value: Value) -> np.ndarray:
    return np.zeros(value.shape, dtypes.float0)


def check_tangent(aval: ShapedArray, tangent: object) -> Any:
    """A tangent as an operand; None for a float0."""
    if isinstance(tangent, np.ndarray) and tangent.dtype == dtypes.float0:
        dtype, shape = dtypes.float0, tangent.shape
        value = None
    else:
        value = operands_of([tangent])[0]
        dtype, shape = value.aval.dtype, value.aval.shape
    expected = aval.tangent().dtype
    if dtype != expected:
        raise TypeError(
            "primal and tangent arguments to jax.jvp do not match; dtypes must be equal, or in "
            "case of int/bool primal dtype the tangent dtype must be float0. "
            f"Got primal dtype {aval.dtype} and so expected tangent dtype {expected}, but got "
            f"tangent dtype {dtype} instead.")
    if shape != aval.shape:
        raise ValueError(
            "jvp called with different primal and tangent shapes; "
            f"Got primal shape {aval.shape} and tangent shape as {shape}")
    return value


# --- linearize and vjp ----------------------------------------------------------------------------

@overload
def linearize(fun: Callable[..., PyTree], *primals: PyTree, has_aux: Literal[False] = False,
              in_nzs: PyTree = None) -> tuple[Any, Callable[..., Any]]: ...
@overload
def linearize(fun: Callable[..., PyTree], *primals: PyTree, has_aux: Literal[True],
              in_nzs: PyTree = None) -> tuple[Any, Callable[..., Any], Any]: ...


@boundary
def linearize(fun: Callable[..., PyTree], *primals: PyTree, has_aux: bool = False,
              in_nzs: PyTree = None) -> tuple[Any, ...]:
    """The value of ``fun`` and the function that maps tangents to tangents there.

    Args:
      fun: a function of arrays or pytrees of them.
      primals: its arguments, at which it is evaluated once.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      in_nzs: booleans, a prefix of the tree of arguments: the tangents of those with False are
        zero. ``fun_jvp.out_nzs`` tells which results then have a tangent.

    Returns:
      ``(result, fun_jvp)``, or ``(result, fun_jvp, aux)``.

    Raises:
      TypeError: ``fun`` is not callable.
      ValueError: when ``fun_jvp`` is called: the tangents are of other shapes or dtypes.

    See also: ``jax.jvp``, ``jax.vjp``, ``jax.linear_transpose``, ``jax.jacfwd``.
    """
    check_callable(fun)
    if in_nzs is not None:
        fun = with_zeros(fun, flags_of(in_nzs, primals, "in_nzs of linearize"))
    outs, function, aux = _linear_function(Linearized, fun, primals, has_aux)
    result = pytree.unflatten(function.out_tree, all_as_given(outs))
    return (result, function, aux) if has_aux else (result, function)


def _linear_function(kind: type[LinearFunction], fun: Callable[..., PyTree],
                     primals: Sequence[PyTree], has_aux: bool) -> tuple[list[Any], Any, Any]:
    """Flat results, the linear function of that kind, auxiliary data."""
    if by_carriers is not None:
        fun, primals = by_carriers(fun, tuple(primals))
    leaves, tree = pytree.flatten(tuple(primals))
    if not any(leaf.__class__ is Ref for leaf in leaves):
        return _of_values(kind, fun, tree, leaves, leaves, has_aux)
    lent, with_values = lending(fun, tree, leaves, has_aux, "vjp" if kind is VJP else "linearize")
    given = lent.values(leaves)
    with lent.borrowed():
        outs, function, aux = _of_values(
            kind, with_values, pytree.structure(tuple(leaves)), given, leaves, has_aux)
    count = len(outs) - len(lent.written)
    lent.write(outs[count:])
    function.take_references(tree, lent.refs, lent.written)
    return outs[:count], function, aux


def _of_values(kind: type[LinearFunction], fun: Callable[..., PyTree], tree: PyTreeSpec,
               given: Sequence[object], leaves: Sequence[object], has_aux: bool
               ) -> tuple[list[Any], Any, Any]:
    """``_linear_function`` at the leaves ``given``; ``leaves`` are what the user passed."""
    typed = dtypes.typed_number if kind is VJP else _same
    values = arguments_of([typed(leaf) for leaf in given])
    flat = FlatFunction(fun, tree, has_aux)
    active = [dtypes.has_tangents(value.aval.dtype) for value in values]
    with transformed(JVP):
        outs, linear, nonzero = linearize_flat(flat, values, active)
    aux = None
    if has_aux:
        count = flat.out_tree.num_leaves
        aux = flat.aux(outs[count:])
        outs, nonzero = outs[:count], nonzero[:count]
        linear = linear.replace(jaxpr=linear.jaxpr.replace(outvars=linear.outvars[:sum(nonzero)]))
    saved: tuple[int, ...] = ()
    if kind is VJP:
        linear, saved = _arguments_first(linear, leaves, values)
    function = kind(
        linear, tuple(nonzero), flat.in_tree, tuple([value.aval for value in values]),
        flat.out_tree, tuple([aval_of(out) for out in outs]), function_location(fun), saved)
    return outs, function, aux


def _same(leaf: object) -> object:
    return leaf


def _arguments_first(linear: ClosedJaxpr, leaves: Sequence[object], values: Sequence[Array]
                     ) -> tuple[ClosedJaxpr, tuple[int, ...]]:
    """The jaxpr with its residuals that are leaves of the arguments first, and the leaves' numbers.

    ``values`` are the leaves as operands. References and numbers among the leaves do not count,
    which are no arrays that anybody could want back, nor does an array that is two leaves.
    """
    numbers: dict[int, int | None] = {}
    for n, value in enumerate(values):
        if isinstance(leaves[n], (Array, np.ndarray)):
            numbers[id(value)] = None if id(value) in numbers else n
    found = [numbers.get(id(residual)) for residual in linear.consts]
    order = sorted(range(len(found)), key=lambda i: (found[i] is None, found[i] or 0))
    saved = tuple([number for i in order if (number := found[i]) is not None])
    if not saved:
        return linear, saved
    jaxpr = linear.jaxpr.replace(constvars=[linear.jaxpr.constvars[i] for i in order])
    return ClosedJaxpr(jaxpr, [linear.consts[i] for i in order]), saved


@overload
def vjp(fun: Callable[..., Result], *primals: PyTree, has_aux: Literal[False] = False,
        reduce_axes: Sequence[Hashable] = (), saveable_args: PyTree = True, in_nzs: PyTree = None
        ) -> tuple[Result, Callable[..., Any]]: ...
@overload
def vjp(fun: Callable[..., tuple[Result, Aux]], *primals: PyTree, has_aux: Literal[True],
        reduce_axes: Sequence[Hashable] = (), saveable_args: PyTree = True, in_nzs: PyTree = None
        ) -> tuple[Result, Callable[..., Any], Aux]: ...


@boundary
def vjp(fun: Callable[..., PyTree], *primals: PyTree, has_aux: bool = False,
        reduce_axes: Sequence[Hashable] = (), saveable_args: PyTree = True, in_nzs: PyTree = None
        ) -> tuple[Any, ...]:
    """The value of ``fun`` and the function that maps its cotangent to those of its arguments.

    Args:
      fun: a function of arrays or pytrees of them.
      primals: its arguments, at which it is evaluated once.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      reduce_axes: must be empty.
      saveable_args: booleans, a prefix of the tree of arguments: those with False are not kept for
        the backward pass, and are put into ``fun_vjp.args_res`` by whoever calls ``fun_vjp``.
      in_nzs: such booleans: the derivatives by arguments with False are zero.

    Returns:
      ``(result, fun_vjp)``, or ``(result, fun_vjp, aux)``. ``fun_vjp(cotangent)`` gives a tuple of
      one pytree for each argument.

    Raises:
      ValueError: when ``fun_vjp`` is called: the cotangent's structure, shape or dtype is not that
        of the result.
      TypeError: ``fun`` is not callable.

    See also: ``jax.grad``, ``jax.jvp``, ``jax.linear_transpose``, ``jax.jacrev``,
    ``jax.custom_vjp``.
    """
    check_callable(fun)
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to vjp is deprecated")
    if in_nzs is not None:
        fun = with_zeros(fun, flags_of(in_nzs, primals, "in_nzs of vjp"))
    flags = None if saveable_args is True else flags_of(
        saveable_args, primals, "saveable_args of vjp")
    results = value_and_pullback(fun, primals, has_aux)
    if flags is not None:
        results[1].forget(flags)
    return results


def value_and_pullback(fun: Callable[..., PyTree], primals: Sequence[PyTree], has_aux: bool
                       ) -> tuple[Any, ...]:
    """What ``vjp`` gives."""
    outs, function, aux = _linear_function(VJP, fun, primals, has_aux)
    result = pytree.unflatten(function.out_tree, all_as_given(outs))
    return (result, function, aux) if has_aux else (result, function)


# --- grad -----------------------------------------------------------------------------------------

def value_and_grad(fun: Callable[..., PyTree], argnums: int | Sequence[int] = 0,
                   has_aux: bool = False, holomorphic: bool = False, allow_int: bool = False,
                   reduce_axes: Sequence[Hashable] = ()) -> Callable[..., tuple[Any, Any]]:
    """A function that gives the value of ``fun`` and its gradient.

    Args:
      fun: a function with a scalar result (or a pair of one and auxiliary data).
      argnums: the positional argument or arguments to differentiate with respect to.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      holomorphic: ``fun`` is a holomorphic function of complex arguments.
      allow_int: integer arguments are allowed; their gradients are of dtype float0.
      reduce_axes: must be empty.

    Returns:
      A function of ``fun``'s arguments that gives ``(value, gradient)``, or ``((value, aux),
      gradient)``. The gradient is a pytree like the argument, or a tuple of them if ``argnums`` is
      one; of a complex argument it is the conjugate of the direction in which a real result grows,
      as in JAX.

    Raises:
      TypeError: the result is not a real scalar, or an argument is not real or complex.

    See also: ``jax.grad``, ``jax.vjp``, ``jax.jacrev``.
    """
    if reduce_axes:
        raise NotImplementedError("reduce_axes argument to grad is deprecated")
    check_callable(fun)
    numbers = argument_numbers(argnums)

    @wraps(fun)
    @boundary
    def value_and_grad_f(*args: PyTree, **kwargs: PyTree) -> tuple[Any, Any]:
        if max(numbers) >= len(args):
            raise TypeError(
                f"differentiating with respect to argnums={argnums} requires at least "
                f"{max(numbers) + 1} positional arguments to be passed by the caller, but got only "
                f"{len(args)} positional arguments.")
        partial, dynamic = of_arguments(fun, numbers, args, kwargs)
        if by_carriers is not None:
            partial, dynamic = by_carriers(partial, dynamic)
        for leaf in pytree.leaves(dynamic):
            check_input("grad", holomorphic, allow_int, leaf)
        outs, function, aux = _linear_function(VJP, partial, dynamic, has_aux)
        check_scalar(outs, function.out_tree)
        out = outs[0]
        check_output("grad", holomorphic, out)
        # As weakly typed as the result.
        aval = aval_of(out)
        if aval.manual_axis_type != ManualAxisType(varying=aval.vma):
            raise ValueError(
                "unexpected JAX type (e.g. shape/dtype) for argument to VJP function: got "
                f"{aval.off_mesh().str_short()}, but expected {aval.cotangent().str_short()} "
                "because the corresponding output of the differentiated function had JAX type "
                f"{aval.str_short()}")
        cotangent = vary(
            installed.runtime.constant(np.ones((), aval.dtype), aval.off_mesh()), aval.vma)
        gradients = pytree.unflatten(function.in_tree, [
            as_given(gradient) for gradient in function.transpose([cotangent])])
        gradient = gradients[0] if isinstance(argnums, (int, np.integer)) else gradients
        value = pytree.unflatten(function.out_tree, all_as_given(outs))
        return ((value, aux), gradient) if has_aux else (value, gradient)

    return value_and_grad_f


def argument_numbers(argnums: int | Sequence[int]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, (int, np.integer)) else tuple(argnums)
    return tuple(operator.index(n) for n in numbers)


def of_arguments(fun: Callable[..., PyTree], numbers: Sequence[int], args: tuple[PyTree, ...],
                 kwargs: dict[str, PyTree]) -> tuple[Callable[..., Any], tuple[PyTree, ...]]:
    """``fun`` as a function of the numbered arguments alone, and those arguments.

    Raises:
      ValueError: a number is out of range.
    """
    positions = _argument_positions(numbers, len(args))

    def partial(*chosen: PyTree) -> Any:
        merged = list(args)
        for position, value in zip(positions, chosen, strict=True):
            merged[position] = value
        return fun(*merged, **kwargs)

    show_as(partial, fun)
    return partial, tuple(args[n] for n in positions)


def _argument_positions(numbers: Sequence[int], count: int) -> list[int]:
    """The positions of arguments given by number, which may be negative, among ``count``.

    Raises:
      ValueError: a number is out of range.
    """
    for n in numbers:
        if not -count <= n < count:
            raise ValueError(
                "Positional argument indices, e.g. for `static_argnums`, must have value greater "
                f"than or equal to -len(args) and less than len(args), but got value {n} for "
                f"len(args) == {count}.")
    return [n % count for n in numbers]


def grad(fun: Callable[..., PyTree], argnums: int | Sequence[int] = 0, has_aux: bool = False,
         holomorphic: bool = False, allow_int: bool = False,
         reduce_axes: Sequence[Hashable] = ()) -> Callable[..., Any]:
    """A function that gives the gradient of ``fun``.

    Args:
      fun: a function with a scalar result (or a pair of one and auxiliary data).
      argnums: the positional argument or arguments to differentiate with respect to.
      has_aux: ``fun`` returns a pair (result, auxiliary data).
      holomorphic: ``fun`` is a holomorphic function of complex arguments.
      allow_int: integer arguments are allowed; their gradients are of dtype float0, which holds
        nothing.
      reduce_axes: must be empty.

    Returns:
      A function of ``fun``'s arguments that gives the gradient, a pytree like the argument (a tuple
      of them if ``argnums`` is one), or ``(gradient, aux)``.

    Raises:
      TypeError: ``fun`` is not callable. At a call: the result is no scalar, or complex without
        ``holomorphic``; an argument is an integer; or there is no such argument.

    See also: ``jax.value_and_grad``, ``jax.jacrev``, ``jax.hessian``, ``jax.vjp``,
    ``lax.stop_gradient``, ``jax.custom_vjp``.

    >>> grad(lambda x: x ** 2)(3.0)
    Array(6., dtype=float32, weak_type=True)
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, reduce_axes)

    @functools.wraps(both)
    @boundary
    def grad_f(*args: PyTree, **kwargs: PyTree) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    grad_f.__wrapped__ = fun
    return grad_f


def check_callable(fun: object) -> None:
    if isinstance(fun, staticmethod):
        raise TypeError(f"staticmethod arguments are not supported, got {fun}")
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun}")


def check_input(name: str, holomorphic: bool, allow_int: bool, leaf: object) -> None:
    if leaf.__class__ is Ref:
        raise TypeError(
            f"{name} cannot differentiate with respect to a Ref-typed argument, because the "
            "gradient for a ref must itself be accumulated into a ref. Instead, use `jax.vjp` and "
            "bind a gradient ref using the returned VJP function's `with_refs` method. (Ref "
            f"arguments not selected by {name}'s argnums are fine: they are treated as plumbing, "
            "and are not differentiated.)")
    try:
        dtype = operands_of([leaf])[0].aval.dtype
    except TypeError:
        raise TypeError(
            f"Argument '{leaf}' of type {type(leaf)} is not a valid JAX type.") from None
    if dtypes.is_opaque(dtype):
        if allow_int:
            return
        raise TypeError(
            f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype}. If you want to use Boolean- or integer-valued "
            "inputs, use vjp or set allow_int to True.")
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise TypeError(
                f"{name} with holomorphic=True requires inputs with complex dtype, but got "
                f"{dtype.name}.")
    elif not dtypes.has_tangents(dtype) and not allow_int:
        raise TypeError(
            f"{name} requires real- or complex-valued inputs (input dtype that is a sub-dtype of "
            f"np.inexact), but got {dtype.name}. If you want to use Boolean- or integer-valued "
            "inputs, use vjp or set allow_int to True.")


def check_scalar(outs: Sequence[Value], tree: PyTreeSpec) -> None:
    message = "Gradient only defined for scalar-output functions. Output "
    if tree.num_nodes != 1 or len(outs) != 1:
        raise TypeError(f"{message}was {pytree.unflatten(tree, all_as_given(outs))}.")
    shape = aval_of(outs[0]).shape
    if shape:
        extract = ""
        if math.prod(shape) == 1:
            extract = ("extract the scalar with output.reshape(())"
                       f"{' or output[0]' if len(shape) == 1 else ''}, ")
        raise TypeError(
            f"{message}had shape: {shape}. To get the gradient, {extract}reduce the output to a "
            "scalar with output.sum(), or use jax.jacobian to differentiate a function with a "
            "non-scalar output.")


def check_output(name: str, holomorphic: bool, out: Value) -> None:
    dtype = aval_of(out).dtype
    if holomorphic:
        if not dtypes.is_complex(dtype):
            raise TypeError(
                f"{name} with holomorphic=True requires outputs with complex dtype, but got "
                f"{dtype.name}.")
    elif not dtypes.is_floating(dtype):
        advice = (
            "For holomorphic differentiation, pass holomorphic=True. For differentiation of "
            "non-holomorphic functions involving complex outputs, use jax.vjp directly."
            if dtypes.is_complex(dtype) else
            "For differentiation of functions with integer outputs, use jax.vjp directly.")
        raise TypeError(
            f"{name} requires real-valued outputs (output dtype that is a sub-dtype of "
            f"np.floating), but got {dtype.name}. {advice}")
