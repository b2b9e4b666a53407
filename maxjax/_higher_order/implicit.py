"""custom_linear_solve and custom_root: solutions differentiated through their equations."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.canonical_specs import canonical
from maxjax._base.pytree import PyTree, PyTreeSpec
from maxjax._base.tracebacks import boundary
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.control import Traced, merged, operands_of, traced
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, Var, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Inner, Values
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.typing import Params, Value
from maxjax._primitives.arithmetic import neg_p, sub_p
from maxjax._primitives.rules import Linear, call_factors, is_linear
from maxjax._transforms.autodiff import linearize
from maxjax._transforms.batching import batch_jaxpr, to_axis
from maxjax._transforms.jvp import instantiate, jvp_flat, jvp_jaxpr
from maxjax._transforms.transpose import transpose_jaxpr

T = TypeVar("T")

# --- linear systems -------------------------------------------------------------------------------


class LinearSolveTuple(NamedTuple):
    """Something for each function of a linear system; None where there is no such function."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transpose(self) -> LinearSolveTuple:
        return LinearSolveTuple(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def _parts(values: Sequence[T], lengths: LinearSolveTuple) -> tuple[LinearSolveTuple, list[T]]:
    """The constants of each function, and the right-hand sides."""
    parts, start = [], 0
    for length in lengths:
        parts.append(list(values[start:start + length]))
        start += length
    return LinearSolveTuple(*parts), list(values[start:])


def _bind(consts: LinearSolveTuple, b: Sequence[Value], lengths: LinearSolveTuple,
          jaxprs: LinearSolveTuple) -> list[Any]:
    return linear_solve_p.bind(*(x for part in consts for x in part), *b, const_lengths=lengths,
                               jaxprs=jaxprs)


def _solving(params: Params) -> ClosedJaxpr:
    """What a program that is only run calls: the solver, as a jaxpr of all operands."""
    lengths, jaxprs = params["const_lengths"], params["jaxprs"]
    return _of_all_operands(jaxprs.solve, lengths, jaxprs)


@derived
def _of_all_operands(solve: ClosedJaxpr, lengths: LinearSolveTuple, jaxprs: LinearSolveTuple
                     ) -> ClosedJaxpr:
    unused = LinearSolveTuple(*([] if function is None else list(map(
        Var, function.in_avals[:length])) for function, length in zip(
            jaxprs, lengths, strict=True)))
    consts = unused._replace(solve=solve.invars[:lengths.solve])
    invars = [*(var for part in consts for var in part), *solve.invars[lengths.solve:]]
    return ClosedJaxpr(solve.jaxpr.replace(invars=invars), solve.consts)


def _jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *,
         const_lengths: LinearSolveTuple, jaxprs: LinearSolveTuple) -> tuple[list[Any], list[Any]]:
    """A x = b, so A dx = db - dA x."""
    consts, b = _parts(primals, const_lengths)
    directions, b_dot = _parts(tangents, const_lengths)
    outs = _bind(consts, b, const_lengths, jaxprs)
    count = len(b)
    right = b_dot
    nonzero = tuple(t is not None for t in directions.matvec)
    if any(nonzero):
        both, out_nz = jvp_jaxpr(jaxprs.matvec, (*nonzero, *(False,) * count))
        results = eval_jaxpr(both.jaxpr, both.consts, *consts.matvec, *outs[:count],
                             *(t for t in directions.matvec if t is not None))
        moved = merged(out_nz, results[count:])
        right = [db if change is None else neg_p.bind(change) if db is None
                 else sub_p.bind(db, change) for db, change in zip(b_dot, moved, strict=True)]
    if all(value is None for value in right):
        return outs, [None] * len(outs)
    given = [instantiate(value, aval_of(x)) for value, x in zip(right, b, strict=True)]
    out_dot = _bind(consts, given, const_lengths, jaxprs)[:count]
    return outs, [*out_dot, *(None,) * (len(outs) - count)]


def _transpose(cotangents: Sequence[Array | None], *operands: Array | Linear,
               const_lengths: LinearSolveTuple, jaxprs: LinearSolveTuple) -> list[Any]:
    if jaxprs.transpose_solve is None:
        raise TypeError("transpose_solve required for backwards mode automatic differentiation of "
                        "custom_linear_solve")
    consts, b = _parts(operands, const_lengths)
    given = [instantiate(cotangent, x.aval.cotangent())
             for cotangent, x in zip(cotangents[:len(b)], b, strict=True)]
    results = _bind(consts.transpose(), given, const_lengths.transpose(), jaxprs.transpose())
    found = [cotangent if is_linear(x) else None
             for cotangent, x in zip(results[:len(b)], b, strict=True)]
    return [*(None,) * sum(const_lengths), *found]


def _batch(size: int, operands: Sequence[Array], axes: Sequence[int | None], *,
           const_lengths: LinearSolveTuple, jaxprs: LinearSolveTuple) -> tuple[
               list[Any], list[int | None]]:
    consts, b = _parts(operands, const_lengths)
    const_axes, b_axes = _parts(axes, const_lengths)
    b = [to_axis(x, axis, 0, size) for x, axis in zip(b, b_axes, strict=True)]
    batched = LinearSolveTuple(*(
        None if jaxpr is None else
        batch_jaxpr(jaxpr, size, (*its_axes, *(0,) * len(b)), True)[0]
        for jaxpr, its_axes in zip(jaxprs, const_axes, strict=True)))
    results = _bind(consts, b, const_lengths, batched)
    return results, [0] * len(results)


linear_solve_p = Primitive(
    "custom_linear_solve",
    abstract=lambda *avals, const_lengths, jaxprs: tuple(jaxprs.solve.out_avals),
    evaluate=lambda *values, **params: interpreter(_solving(params))(*values),
    lower=lambda ctx, *values, **params: ctx.lower_closed(_solving(params), values),
    inner=Inner(calls=_solving),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    factors=call_factors,
    multiple_results=True,
    cacheable=False,
    values=Values(may_give_nan=True),
)


@boundary
def custom_linear_solve(
        matvec: Callable[[PyTree], PyTree], b: PyTree,
        solve: Callable[[Callable[[PyTree], PyTree], PyTree], PyTree],
        transpose_solve: Callable[[Callable[[PyTree], PyTree], PyTree], PyTree] | None = None,
        symmetric: bool = False, has_aux: bool = False) -> Any:
    """Solves ``matvec(x) = b`` with a given solver, which is not differentiated itself.

    Derivatives solve a system of the same matrix, and in reverse mode of its transpose.

    Args:
      matvec: a linear function of a pytree like ``b``.
      solve: ``(matvec, b) -> x``.
      transpose_solve: ``(vecmat, b) -> x`` for the transposed system; for reverse mode.
      symmetric: ``matvec`` is its own transpose, and ``solve`` serves for both.
      has_aux: the solvers return pairs ``(x, auxiliary data)``.

    Raises:
      ValueError: ``matvec`` or ``solve`` gives other shapes than ``b`` has.
      TypeError: one gives another pytree than ``b``; or reverse mode is used, and there is no
        ``transpose_solve``.

    >>> b = jnp.array([2., 4.])
    >>> lax.custom_linear_solve(lambda x: 2 * x, b, lambda matvec, b: b / 2)
    Array([1., 2.], dtype=float32)
    """
    leaves, tree = pytree.flatten(b)
    values = operands_of(leaves)
    avals = [x.aval for x in values]
    arguments = pytree.structure((b,))

    def trace(function: Callable[..., PyTree]) -> Traced:
        return traced(function, "custom_linear_solve", arguments, avals)

    def check(name: str, result: Traced, aux: bool) -> None:
        found_tree = result.tree.children()[0] if aux else result.tree
        _check_tree(name, found_tree, tree, "b")
        found = result.closed.out_avals[:found_tree.num_leaves]
        shapes, expected = [x.shape for x in found], [x.shape for x in avals]
        if shapes != expected:
            raise ValueError(f"{name}() output shapes must match b, got {shapes} and {expected}")

    forward = trace(matvec)
    check("matvec", forward, False)
    solver = trace(functools.partial(solve, matvec))
    check("solve", solver, has_aux)
    backward: tuple[Any, Sequence[Any]] = (None, ())
    transpose_solver: tuple[Any, Sequence[Any]] = (None, ())
    if symmetric:
        backward = (forward.closed, forward.consts)
        transpose_solver = (solver.closed, solver.consts)
    elif transpose_solve is not None:
        closed = _transposed(forward.closed, len(forward.consts))
        backward = (closed, forward.consts)

        def vecmat(x: PyTree) -> Any:
            given = operands_of(pytree.leaves(x))
            return pytree.unflatten(
                tree, eval_jaxpr(closed.jaxpr, closed.consts, *forward.consts, *given))

        result = trace(functools.partial(transpose_solve, vecmat))
        check("transpose_solve", result, has_aux)
        transpose_solver = (result.closed, result.consts)
    parts = ((forward.closed, forward.consts), backward, (solver.closed, solver.consts),
             transpose_solver)
    consts = LinearSolveTuple(*(list(values) for _, values in parts))
    results = _bind(consts, values, LinearSolveTuple(*map(len, consts)),
                    LinearSolveTuple(*(jaxpr for jaxpr, _ in parts)))
    return pytree.unflatten(solver.tree, results)


@derived
def _transposed(matvec: ClosedJaxpr, num_consts: int) -> ClosedJaxpr:
    """(constants, cotangents) -> cotangents of the vector."""
    count = len(matvec.out_avals)
    linear = (*(False,) * num_consts, *(True,) * count)
    backward, nonzero = transpose_jaxpr(matvec, linear, (True,) * count)

    def function(*args: Value) -> list[Any]:
        found = merged(nonzero, eval_jaxpr(backward.jaxpr, backward.consts, *args))
        return [instantiate(x, aval) for x, aval in zip(
            found, matvec.in_avals[num_consts:], strict=True)]

    return trace_to_jaxpr(function, backward.in_avals, matvec.jaxpr.debug_info)


# --- roots ----------------------------------------------------------------------------------------


@boundary
def custom_root(f: Callable[[PyTree], PyTree], initial_guess: PyTree,
                solve: Callable[[Callable[[PyTree], PyTree], PyTree], PyTree],
                tangent_solve: Callable[[Callable[[PyTree], PyTree], PyTree], PyTree],
                has_aux: bool = False) -> Any:
    """A root of ``f``, found by a given solver, which is not differentiated itself.

    Where f(x, a) = 0, the derivative dx solves the linear system (df/dx) dx = -(df/da) da.

    Args:
      f: a function of a pytree like ``initial_guess`` to one of the same structure; what it
        closes over is what the root is differentiated with respect to.
      solve: ``(f, initial_guess) -> x``.
      tangent_solve: ``(g, y) -> x`` with ``g(x) = y`` for a linear ``g``.
      has_aux: ``solve`` returns a pair ``(x, auxiliary data)``.

    Raises:
      TypeError: ``f``, ``solve`` or ``tangent_solve`` gives another structure than
        ``initial_guess`` has.

    >>> def solve(f, x):
    ...     return lax.fori_loop(0, 30, lambda _, x: x - f(x) / 4, x)
    >>> root = lambda a: lax.custom_root(lambda x: x ** 2 - a, 1., solve, lambda g, y: y / g(1.))
    >>> jax.grad(root)(4.).round(4)      # d sqrt(a) / da
    Array(0.25, dtype=float32, weak_type=True)
    """
    leaves, tree = pytree.flatten(initial_guess)
    guess = operands_of(leaves)
    avals = [x.aval for x in guess]
    arguments = pytree.structure((initial_guess,))
    function = traced(f, "custom_root", arguments, avals)
    _check_tree("f", function.tree, canonical(tree))
    solver = traced(functools.partial(solve, f), "custom_root solve", arguments, avals)
    solved = solver.tree
    if has_aux:
        if len(solved.children()) != 2:
            raise ValueError(
                f"solve() produced a pytree with structure {PyTreeDef(solved)}, but a pytree tuple "
                "with auxiliary output was expected because has_aux was set to True.")
        solved = solved.children()[0]
    _check_tree("solve", canonical(solved), canonical(tree))
    count = len(guess)

    def linearize_and_solve(x: PyTree, y: PyTree) -> Any:
        _, linear = linearize(f, x)
        return tangent_solve(linear, y)

    # Traced here, where the tracers that the functions close over are known: they are operands.
    linear_solver = traced(linearize_and_solve, "custom_root tangent_solve",
                           pytree.structure((initial_guess, initial_guess)), [*avals, *avals])
    _check_tree("tangent_solve", linear_solver.tree, canonical(tree), "x")

    @custom_jvp
    def _custom_root(consts: list[Value], solver_consts: list[Value],
                     linear_solver_consts: list[Value], start: list[Value]) -> list[Any]:
        closed = solver.closed
        return eval_jaxpr(closed.jaxpr, closed.consts, *solver_consts, *start)

    @_custom_root.defjvp
    def _root_jvp(primals: tuple[list[Value], list[Value], list[Value], list[Value]],
                  tangents: tuple[list[Value], list[Value], list[Value], list[Value]]) -> Any:
        consts, _, linear_solver_consts, _ = primals
        solution = _custom_root(*primals)
        root = solution[:count]
        closed = function.closed

        def at(*args: Value) -> list[Any]:
            return eval_jaxpr(closed.jaxpr, closed.consts, *args)

        directions = [None if t.dtype == dtypes.float0 else t for t in tangents[0]]
        _, changes = jvp_flat(lambda *xs: at(*xs, *root), consts, directions)
        right = [instantiate(change, aval_of(x)) for change, x in zip(changes, root, strict=True)]
        solving = linear_solver.closed
        moved = eval_jaxpr(solving.jaxpr, solving.consts, *linear_solver_consts, *root, *right)
        rest = [instantiate(None, aval_of(x)) if dtypes.has_tangents(x.dtype)
                else np.zeros(x.shape, dtypes.float0) for x in solution[count:]]
        return solution, [*(neg_p.bind(x) for x in moved), *rest]

    results = _custom_root(function.consts, solver.consts, linear_solver.consts, guess)
    return pytree.unflatten(solver.tree, results)


def _check_tree(name: str, found: PyTreeSpec, expected: PyTreeSpec,
                like: str = "initial_guess") -> None:
    if found != expected:
        raise TypeError(f"{name}() output pytree structure must match {like}, got "
                        f"{PyTreeDef(found)} and {PyTreeDef(expected)}.")
