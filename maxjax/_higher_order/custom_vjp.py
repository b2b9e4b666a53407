"""custom_vjp: functions that come with a rule for reverse mode.

A rule of flat lists is ``rule(primals, perturbed) -> (results, residuals, backward)``, with
``backward(residuals, cotangents) -> cotangents``. The tangents of such a function are the results
of ``custom_lin``, which is linear in the tangents of the arguments and can do one thing only: be
transposed, by calling ``backward``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from maxjax._base import config, dtypes, pytree
from maxjax._base.errors import UnexpectedTracerError
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.signatures import argument_names
from maxjax._base.source import function_location, unwrapped
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order import refs as references
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._higher_order.custom_rules import (
    Positional,
    Results,
    SymbolicZero,
    check_results,
    fixed_numbers,
    forwarded,
    handing_on,
    name_of,
)
from maxjax._higher_order.custom_vjp_call import Backward, bind_remat_opt, hooks_of
from maxjax._higher_order.outputs import check_outputs
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.refs import Ref, RefsTouched, RefUse
from maxjax._ir.runtime import installed
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, Tracer, all_as_given, as_given, aval_of, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import FlatFunction, Result, Value
from maxjax._primitives.varying import like_type
from maxjax._transforms.autodiff import leaf_operand
from maxjax._transforms.backward_logs import log

# --- array references -----------------------------------------------------------------------------
# Within a trace a call of a function that uses references takes their values as further arguments,
# and gives the new values as further results, which are then written. The new value has the tangent
# of the old one; what the backward rule gives for a reference among the arguments is added to it.


def _with_references(call: _FlatCall, operands: list[Value], hooks: dict[str, Any]) -> list[Any]:
    def traced(function: FlatFunction) -> ClosedJaxpr:
        return trace_to_jaxpr(function, call.avals, call.name, "custom_vjp", with_refs=True)

    def differentiated(*xs: Value) -> list[Any]:
        outs, residuals, _ = call.rule(list(xs), (True,) * len(xs))
        return [*outs, *residuals]

    function = traced(call.function)
    found = [function.refs]
    # What is wrong with a rule shows where it is used.
    with contextlib.suppress(Exception):
        found.append(traced(differentiated).refs)
    # The rule may have a derivative for what nothing reads, too.
    uses = references.union(*found, [RefUse(ref, "") for ref in call.refs.values()])
    function = references.extended(function, uses)

    def rule(primals: list[Value], perturbed: tuple[bool, ...]) -> Any:
        count = 0
        own: Any = None

        def forward(*xs: Value) -> list[Any]:
            nonlocal count, own
            outs, residuals, own = call.rule(list(xs), perturbed[:len(xs)])
            count = len(outs)
            return [*outs, *residuals]

        closed = traced(forward)
        known = {use.ref._storage: use for use in uses}
        if any(use.ref._storage not in known
               or use.operation and not known[use.ref._storage].operation for use in closed.refs):
            raise RefsTouched("a forward rule of custom_vjp", closed.refs)
        closed = references.extended(closed, uses)
        results = list(eval_jaxpr(closed.jaxpr, closed.consts, *primals))
        new = len(results) - len(written)

        def backward(residuals: list[Value], cotangents: list[Value | None]) -> list[Any]:
            given = own(residuals, cotangents[:count])
            of_refs = {ref._storage: cotangent for ref, cotangent in zip(
                call.refs.values(), given[len(call.avals):], strict=True)}
            return [*given[:len(call.avals)], *(of_refs.get(use.ref._storage) for use in uses)]

        return [*results[:count], *results[new:]], results[count:new], backward

    _, written = references.split_uses(uses)
    values = references.values_for(uses)
    results = context.trace.apply_custom_vjp(
        lambda *xs: list(eval_jaxpr(function.jaxpr, function.consts, *xs)), rule,
        [*operands, *values], **hooks)
    count = len(results) - len(written)
    references.write_all([uses[n] for n in written], [
        _with_tangent_of(values[n], result)
        for n, result in zip(written, results[count:], strict=True)])
    return results[:count]


@custom_jvp
def _with_tangent_of(old: Array, new: Array) -> Array:
    return new


_with_tangent_of.defjvp(lambda primals, tangents: (primals[1], tangents[0]), symbolic_zeros=True)


# --- the decorator --------------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class CustomVJPPrimal:
    """An argument of a forward rule that is defined with ``symbolic_zeros``.

    Attributes:
      value: the argument itself.
      perturbed: whether it is differentiated with respect to.

    >>> jax.custom_derivatives.CustomVJPPrimal(jnp.float32(2), True).perturbed
    True
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: PyTree) -> Any:
    """The values of a pytree of ``CustomVJPPrimal``.

    >>> primal = jax.custom_derivatives.CustomVJPPrimal(3., True)
    >>> jax.custom_derivatives.custom_vjp_primal_tree_values([primal])
    [3.0]
    """
    def value(leaf: object) -> Any:
        if type(leaf) is not CustomVJPPrimal:
            raise TypeError(f"unexpected leaf type {type(leaf)}")
        return leaf.value

    return pytree.map(value, tree)


class custom_vjp(Generic[Result]):
    """A function with a rule for reverse mode. It has no forward mode.

    It is called as ``fun`` is. ``defvjp`` gives the rule as two functions: the forward one takes
    the arguments and returns the pair of the result and residuals, any pytree; the backward one
    takes residuals and the cotangent, and returns a tuple of one cotangent for each argument, or
    None for zeros.

    Args:
      fun: a function of arrays or pytrees of them.
      nondiff_argnums, nondiff_argnames: the arguments that are not differentiated, such as
        functions; no tracers. The backward rule takes them first.

    Raises:
      AttributeError: at a call that is differentiated, no rule was given.
      TypeError: the cotangents are no tuple of the arguments' structure; forward mode is asked for.
      ValueError: a cotangent is of another shape or dtype than its argument.

    See also: ``jax.custom_jvp``, ``jax.vjp``, ``jax.grad``, ``lax.stop_gradient``.

    >>> @jax.custom_vjp
    ... def clipped(x):
    ...     return 10 * x
    >>> clipped.defvjp(lambda x: (clipped(x), None),
    ...                lambda residuals, cotangent: (jnp.clip(cotangent, -1, 1),))
    >>> jax.grad(clipped)(2.)
    Array(1., dtype=float32, weak_type=True)

    With residuals, and an argument that is a function. The derivative of the root of
    ``f(x, a) = 0`` follows from the root alone, however many steps led to it:

    >>> import functools
    >>> @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    ... def root(f, start, a):
    ...     newton = lambda _, x: x - f(x, a) / jax.grad(f)(x, a)
    ...     return lax.fori_loop(0, 20, newton, start)
    >>> def root_forward(f, start, a):
    ...     x = root(f, start, a)
    ...     return x, (x, a)
    >>> def root_backward(f, residuals, cotangent):
    ...     by_x, by_a = jax.grad(f, argnums=(0, 1))(*residuals)
    ...     return None, -cotangent * by_a / by_x
    >>> root.defvjp(root_forward, root_backward)
    >>> square_root = lambda a: root(lambda x, a: x * x - a, 1., a)
    >>> square_root(9.), jax.grad(square_root)(9.)
    (Array(3., dtype=float32, weak_type=True), Array(0.16666667, dtype=float32, weak_type=True))
    """

    def __init__(self, fun: Callable[..., Result], nondiff_argnums: Sequence[int] = (),
                 nondiff_argnames: Sequence[str] = ()):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = fixed_numbers(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False
        self.optimize_remat = False
        self.with_logs = False
        self._positional: Positional | None = None

    if not TYPE_CHECKING:      # which would hide misspelt names
        def __getattr__(self, name: str) -> Any:
            return forwarded(self, name)

    def defvjp(self, fwd: Callable[..., PyTree], bwd: Callable[..., PyTree],
               symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """Defines the rule.

        Args:
          fwd: takes what the function takes, and gives a pair: its result, and residuals, a pytree
            of arrays.
          bwd: ``bwd(*nondiff, residuals, cotangent)`` gives a tuple with a cotangent for each
            argument that is differentiated; None is zero.
          symbolic_zeros: ``fwd`` takes ``CustomVJPPrimal`` instead of arrays, and cotangents
            that are known to be zero are ``SymbolicZero``.
          optimize_remat: the forward rule is one operation.

        Raises:
          NotImplementedError: ``symbolic_zeros`` and ``optimize_remat`` both are true.
        """
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat
        self.with_logs = False
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError(
                "remat optimization for custom_vjp does not support symbolic zeros")

    def defvjp_with_logs(self, fwd: Callable[..., PyTree], bwd: Callable[..., PyTree],
                         symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """``defvjp`` with a backward rule that gives a pair: cotangents, and a dict of what it
        logs, by names that are unique in a backward pass, or None; ``vjp(...)[1].with_logs`` gives
        these."""
        self.defvjp(fwd, bwd, symbolic_zeros, optimize_remat)
        self.with_logs = True

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Methods bind like functions."""
        return self if instance is None else functools.partial(self, instance)

    @boundary
    def __call__(self, *args: PyTree, **kwargs: PyTree) -> Result:
        name = name_of(self.fun)
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {name} using defvjp.")
        positional = self._positional
        if positional is None:
            positional = self._positional = Positional(self.fun, "custom_vjp")
        args = positional(args, kwargs)
        numbers = {n if n >= 0 else n + len(args) for n in self.nondiff_argnums}
        fixed = {n: args[n] for n in sorted(numbers)}
        for value in fixed.values():
            _check_no_tracers(value)
        given = tuple(arg for n, arg in enumerate(args) if n not in numbers)
        leaves, tree = pytree.flatten(given)
        # Array references are no operands: the function and its rules use them themselves.
        refs = {n: leaf for n, leaf in enumerate(leaves) if leaf.__class__ is Ref}
        if len(refs) > 1:
            self._check_refs(args, name)
        operands = [leaf_operand(dtypes.typed_number(as_given(leaf))) for leaf in leaves
                    if leaf.__class__ is not Ref]
        call = _FlatCall(self, name, len(args), fixed, tree, [x.aval for x in operands], refs)
        hooks = hooks_of(name, name_of(self.fwd), self.bwd, self.symbolic_zeros)
        if refs and context.trace is not installed.runtime:
            outs = _with_references(call, operands, hooks)
        else:
            outs = context.trace.apply_custom_vjp(call.function, call.rule, operands, **hooks)
        return pytree.unflatten(call.out_tree, all_as_given(outs))

    def _check_refs(self, args: tuple[PyTree, ...], name: str) -> None:
        """Raises ValueError where one reference is passed under two names."""
        leaves, tree = pytree.flatten((args, {}))
        names: dict[Any, str] = {}
        for leaf, place in zip(leaves, argument_names(self.fun, tree), strict=True):
            if leaf.__class__ is Ref:
                other = names.setdefault(leaf._storage, place)
                if other is not place:
                    raise ValueError(
                        "only one reference to a mutable array may be passed as an argument to a "
                        f"function, but custom_vjp function {name} got the same mutable array "
                        f"reference of type {leaf.aval} at {other} and {place}.")


def _check_no_tracers(argument: PyTree) -> None:
    if any(isinstance(leaf, Tracer) for leaf in pytree.leaves(argument)):
        raise UnexpectedTracerError(
            "Found a JAX Tracer object passed as an argument to a custom_vjp function in a "
            "position indicated by nondiff_argnums as non-differentiable. Tracers cannot be passed "
            "as non-differentiable arguments to custom_vjp functions; instead, nondiff_argnums "
            "should only be used for arguments that can't be or contain JAX tracers, e.g. "
            "function-valued arguments. In particular, array-valued arguments should typically not "
            "be indicated as nondiff_argnums.")


def logged_pair(pair: object, start: str) -> tuple[Any, dict[Any, Any] | None]:
    """What a backward rule gives with its logs.

    Raises:
      TypeError: it is no pair, or its second element is neither None nor a dict.
    """
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f"{start} and so must produce a pair (in_cts, logs), but got {pair}.")
    result, logs = pair
    if logs is not None and type(logs) is not dict:
        raise TypeError(
            f"{start}, and so the second element of the pair it returns must be None or a dict of "
            f"backward-pass log entries, but got {type(logs).__name__}.")
    return result, logs


class _FlatCall:
    """One call: the function and its rules on flat lists."""

    def __init__(self, custom: custom_vjp, name: str, count: int, fixed: dict[int, PyTree],
                 tree: PyTreeSpec, avals: list[ShapedArray], refs: dict[int, Ref]):
        self.refs = refs
        self.fun = custom.fun
        self.handing_on = handing_on(custom.fun)
        self.fwd, self.bwd = custom.fwd, custom.bwd
        self.symbolic_zeros = custom.symbolic_zeros
        self.optimize_remat = custom.optimize_remat
        self.with_logs = custom.with_logs
        self.name = name
        self.count = count
        self.fixed = fixed
        self.tree = tree
        self.avals = avals
        self.out_tree: Any = None
        self.results: Results | None = None

    def arguments(self, leaves: Sequence[object], refs: Mapping[int, object] | None = None
                  ) -> list[Any]:
        """``refs``: the references, or what stands for them."""
        refs = self.refs if refs is None else refs
        if refs:
            arrays = iter(leaves)
            leaves = [refs[n] if n in refs else next(arrays)
                      for n in range(self.tree.num_leaves)]
        given = iter(pytree.unflatten(self.tree, self.handing_on(leaves)))
        return [self.fixed[n] if n in self.fixed else next(given) for n in range(self.count)]

    def function(self, *leaves: Value) -> list[Any]:
        outs, self.out_tree = pytree.flatten(self.fun(*self.arguments(leaves)))
        outs = check_outputs(outs, self.name, "custom_vjp")
        self.results = Results(self.out_tree, outs)
        return outs

    def rule(self, primals: list[Value], perturbed: tuple[bool, ...]) -> tuple[
            list[Any], list[Any], Backward]:
        trees: list[Any] = []

        def forward(*xs: Value) -> list[Any]:
            outs, residuals, *found = self.forward(xs, perturbed)
            # Python's own numbers stay what they are: a rule may branch on them.
            # So do references, which the backward rule shares with this one.
            trees[:] = [*found, [
                dtypes.typed_number(x) if isinstance(x, (bool, int, float, complex, Ref)) else None
                for x in residuals]]
            return [*outs, *(leaf_operand(x) for x, number in zip(residuals, trees[2], strict=True)
                             if number is None)]

        values = (bind_remat_opt(self.function, forward, primals) if self.optimize_remat
                  else forward(*primals))
        out_tree, res_tree, numbers = trees
        self.out_tree = out_tree
        count = out_tree.num_leaves

        @functools.wraps(self.bwd, assigned=("__name__",), updated=())      # type: ignore[arg-type]
        def backward(residuals: list[Value], cotangents: list[Value | None]) -> list[Any]:
            arrays = iter(residuals)
            leaves = [next(arrays) if number is None else number for number in numbers]
            return self.backward(pytree.unflatten(res_tree, leaves),
                                 pytree.unflatten(out_tree, self.handing_on(cotangents)))

        return values[:count], values[count:], backward

    def forward(self, primals: Sequence[Value], perturbed: tuple[bool, ...]) -> tuple[
            list[Any], list[Any], Any, Any]:
        """Results and residuals, and the structures of both."""
        assert self.fwd is not None
        leaves: Any = primals
        refs: dict[int, Any] = self.refs
        if self.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, flag) for x, flag in zip(
                self.handing_on(primals), perturbed, strict=True)]
            refs = {n: CustomVJPPrimal(ref, False) for n, ref in refs.items()}
        pair = self.fwd(*self.arguments(leaves, refs))
        rule = name_of(self.fwd)
        start = (f"Custom VJP fwd rule {rule} for function {self.name} must produce a pair (list "
                 "or tuple of length two) where the first element represents the primal output "
                 "(equal to ")
        residual_words = ("second element represents residuals (i.e. values stored from the "
                          "forward pass for use on the backward pass), but ")
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"{start}those of the custom_vjp-decorated function {self.name}) and the "
                f"{residual_words}instead of a pair the fwd rule {rule} produced {pair}.")
        outs, out_tree = pytree.flatten(pair[0])
        residuals, res_tree = pytree.flatten(pair[1])
        own = {ref._storage for ref in self.refs.values()}
        for place, leaf in zip(*pytree.flatten_with_path(pair[1])[:2], strict=True):
            if leaf.__class__ is Ref and leaf._storage not in own:
                raise ValueError(
                    f"custom_vjp fwd function {rule} returned a mutable array reference of type "
                    f"{leaf.aval} at output tree path [1]{pytree.path_string(place)} that was not "
                    "an argument.")
        outs = [leaf_operand(out) for out in outs]
        decorated = f"custom_vjp-decorated function {self.name}"
        check_results(
            Results(out_tree, outs), self.results,
            (f"{start}the output of the {decorated}) and the {residual_words}",
             "instead the fwd rule", "instead the fwd rule"), decorated)
        return outs, residuals, out_tree, res_tree

    def backward(self, residuals: PyTree, cotangents: PyTree) -> list[Any]:
        """A cotangent of each array of the arguments, and then of each reference's value; None
        where it is zero."""
        assert self.bwd is not None
        result = self.bwd(*self.fixed.values(), residuals, cotangents)
        if self.with_logs:
            result, logs = logged_pair(
                result, "Custom VJP bwd rule was registered with defvjp_with_logs")
            log(logs or {})
        marks = pytree.numbered(self.tree)
        if isinstance(result, list) and len(result) == len(marks):
            result = tuple(result)
        found: list[Any] = []
        try:
            if not isinstance(result, tuple):
                raise ValueError
            leaves, spec = pytree.flatten(result, lambda x: x is None)
            for leaf, subtree in zip(leaves, spec.flatten_up_to(marks), strict=True):
                found.extend([leaf] * pytree.structure(subtree).num_leaves)
        except (ValueError, TypeError):
            raise TypeError(
                "Custom VJP bwd rule must produce an output with the same container (pytree) "
                "structure as the args tuple of the primal function, and in particular must "
                "produce a tuple of length equal to the number of arguments to the primal "
                f"function, but got bwd output structure {PyTreeDef(pytree.structure(result))} "
                f"for primal input structure {PyTreeDef(self.tree)}.") from None
        avals = [*self.avals, *(ref.aval.inner_aval for ref in self.refs.values())]
        return [self.cotangent(n, aval, found[place])
                for n, (aval, place) in enumerate(zip(avals, self.places(), strict=True))]

    def cotangent(self, number: int, aval: ShapedArray, value: object) -> Any:
        """A cotangent that the rule gave, or None where it is zero.

        Raises:
          ValueError: its type is not that of the argument.
        """
        expected = aval.cotangent()
        if value is None or expected.dtype == dtypes.float0:
            return None
        if isinstance(value, SymbolicZero):
            if value.shape != expected.shape or value.dtype != expected.dtype:
                raise ValueError(
                    "Custom VJP bwd rule produced a SymbolicZero with a shape/dtype that does not "
                    "match the corresponding input tangent shape/dtype: at "
                    f"output{self.path(number)} the SymbolicZero had shape/dtype "
                    f"{value.aval.str_short()} while the corresponding input had shape/dtype "
                    f"{aval.str_short()}. Consider just returning a None here instead of a "
                    "SymbolicZero object.")
            return None
        if isinstance(value, np.ndarray) and value.dtype == dtypes.float0:
            found, operand = ShapedArray(value.shape, dtypes.float0), value
        else:
            operand = leaf_operand(value)
            found = aval_of(operand)
        if config.disable_bwd_checks.value:
            return operand
        # JAX lets another dtype pass, as one of a library's whose sum is of another kind.
        if found.shape != expected.shape or not (
                dtypes.has_tangents(aval.dtype) and found.dtype != dtypes.float0):
            raise ValueError(
                f"{self.attached()} must produce an output with the same type as the args tuple "
                f"of the primal function, but at output{self.path(number)} the bwd rule produced "
                f"an output of type {found.str_short()} corresponding to an input of type "
                f"{aval.str_short()}"
                + (", so the shapes do not match" if found.shape != expected.shape else ""))
        if not expected.vma <= found.vma <= expected.vma | expected.manual_axis_type.unreduced:
            raise ValueError(
                f"{self.attached()} must produce an output with the same type as the args tuple "
                f"of the primal function, but at output{self.path(number)} the bwd rule produced "
                f"an output of type {found.str_short()} corresponding to an input of type "
                f"{aval.str_short()}, so the manual axis types do not match")
        return like_type(operand, expected)

    def attached(self) -> str:
        known = hasattr(unwrapped(self.fun), "__code__")
        where = function_location(self.fun) if known else "<unknown>"
        return f"Custom VJP bwd rule attached to {where}"

    def path(self, number: int) -> str:
        tree = pytree.numbered(self.tree)
        return pytree.path_string(pytree.flatten_with_path(tree)[0][self.places()[number]])

    def places(self) -> list[int]:
        """Those of the arrays among the arguments' leaves, and then of the references."""
        return [*(n for n in range(self.tree.num_leaves) if n not in self.refs), *self.refs]
