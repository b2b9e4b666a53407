"""The transformations, alone and in every order, against real JAX."""

from __future__ import annotations

import functools
import itertools
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

import maxjax
import maxjax.tree_util
from maxjax._ir.check import check_jaxpr
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._ir.runtime import call_of, installed
from maxjax._ir.trace import aval_of
from maxjax._transforms.batching import batch_jaxpr
from maxjax._transforms.jvp import jvp_jaxpr
from maxjax._transforms.linearize import linearize_jaxpr
from maxjax._transforms.simplify import eliminate_common_subexpressions, inline_calls, simplify
from maxjax._transforms.transpose import transpose_jaxpr
from tests.support import harness
from tests.support.against_jax import agree, assert_tree_same

X = np.array([0.5, -1.25, 2.0], np.float32)
Y = np.array([1.5, 0.25, -0.75], np.float32)
M = np.array([[0.5, -1.0, 0.25], [1.5, 0.75, -0.5]], np.float32)
Z = np.array([1 + 2j, 0.5 - 1j], np.complex64)


class Pair(NamedTuple):
    left: Any
    right: Any


# --- grad and value_and_grad ----------------------------------------------------------------------

def scalar(j, x, y=1.0, z=2.0):
    return j.numpy.sum(j.numpy.sin(x) * y) * z


@pytest.mark.parametrize("argnums", [0, 1, -1, (0,), (0, 2), (2, 0), (-1, 0), (1, -3)])
def test_gradients_by_chosen_arguments(argnums):
    agree(lambda j: j.value_and_grad(lambda x, y, z: scalar(j, x, y, z), argnums)(X, Y, 3.0))
    agree(lambda j: j.grad(lambda x, y, z: scalar(j, x, y, z), argnums=argnums)(X, Y, 3.0))


def test_grad_of_keyword_arguments_and_defaults():
    agree(lambda j: j.grad(lambda x, *, y, z=2.0: scalar(j, x, y, z))(X, y=Y))


@pytest.mark.parametrize("aux", [
    lambda j, x: x * 2, lambda j, x: None, lambda j, x: 3, lambda j, x: "text",
    lambda j, x: {"a": x[0], "b": (1, None, [x])}, lambda j, x: Pair(x, 2.5),
    lambda j, x: j.numpy.ones(2)])
def test_auxiliary_data_is_given_back(aux):
    for transform in ("grad", "value_and_grad"):
        def run(j, transform=transform):
            def fun(x):
                return j.numpy.sum(x ** 2), aux(j, x)
            value, kept = getattr(j, transform)(fun, has_aux=True)(X)[:2]
            return value, (kept if not isinstance(kept, str) else None)
        if aux(jax, jax.numpy.asarray(X)) == "text":
            result = maxjax.grad(lambda x: (maxjax.numpy.sum(x), "text"), has_aux=True)(X)
            assert result[1] == "text"
            continue
        agree(run)


def test_aux_of_vjp_jvp_and_linearize():
    def fun(j):
        return lambda x: (j.numpy.sin(x), {"doubled": x * 2, "one": 1})

    agree(lambda j: j.jvp(fun(j), (X,), (Y,), has_aux=True))

    def vjp(j):
        out, pullback, aux = j.vjp(fun(j), X, has_aux=True)
        return out, pullback(j.numpy.asarray(Y)), aux
    agree(vjp)

    def linearize(j):
        out, pushforward, aux = j.linearize(fun(j), X, has_aux=True)
        return out, pushforward(Y), aux
    agree(linearize)


def test_holomorphic():
    agree(lambda j: j.grad(lambda z: j.numpy.sum(z ** 3), holomorphic=True)(Z))
    agree(lambda j: j.grad(lambda z: j.numpy.sum(j.numpy.abs(z) ** 2))(Z))
    agree(lambda j: j.grad(lambda x: j.numpy.real(j.numpy.sum(j.numpy.exp(1j * x))))(X))


def test_integer_arguments():
    def run(j):
        gradient = j.grad(lambda n, x: j.numpy.sum(x) * n[0], argnums=(0, 1), allow_int=True)(
            np.arange(3, dtype=np.int32), X)
        return gradient[1], gradient[0].shape, str(gradient[0].dtype) == str(
            np.zeros(0, jax.dtypes.float0).dtype)
    agree(run)


def test_pytree_arguments():
    def loss(j, params, batch):
        hidden = j.numpy.tanh(batch["x"] @ params["w"] + params["b"].left)
        return j.numpy.sum(hidden ** 2) + params["b"].right[0], None

    params = {"w": np.ones((3, 2), np.float32) * 0.3, "b": Pair(np.ones(2, np.float32), [0.5]),
              "none": None}
    agree(lambda j: j.value_and_grad(functools.partial(loss, j), has_aux=True)(
        params, {"x": M}))


def test_weak_types_follow_the_arguments():
    agree(lambda j: j.grad(lambda x: x ** 2)(3.0))
    agree(lambda j: j.grad(lambda x: x * 2)(np.float32(3)))
    agree(lambda j: j.value_and_grad(lambda x, y: x * y, (0, 1))(3.0, np.float32(2)))
    agree(lambda j: j.jvp(lambda x: x * 2, (1.0,), (1.0,)))
    agree(lambda j: j.grad(lambda x: 1.0)(2.0))
    agree(lambda j: j.grad(lambda x: j.numpy.float32(1.0))(2.0))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_gradients_have_the_dtype_of_the_argument(dtype):
    def run(j):
        x = j.numpy.asarray([0.5, 1.5], dtype=dtype)
        return j.grad(lambda x: j.numpy.sum(x.astype("float32") ** 2))(x)
    agree(run)


# --- jvp, vjp, linearize --------------------------------------------------------------------------

def test_jvp_of_pytrees_agrees_with_jax():
    agree(lambda j: j.jvp(lambda x, y: (x * y, {"s": j.numpy.sin(x)}), (X, Y), (Y, X)))
    agree(lambda j: j.jvp(lambda t: t["a"] * t["b"][0], ({"a": X, "b": (Y, None)},),
                          ({"a": Y, "b": (X, None)},)))


def test_jvp_of_integers():
    def run(j):
        out, tangent = j.jvp(lambda n, x: (n + 1, x * n), (np.int32(3), X),
                             (np.zeros((), jax.dtypes.float0), Y))
        return out, tangent[1], tangent[0].shape
    agree(run)


def test_vjp_of_several_results():
    def run(j):
        (u, v), pullback = j.vjp(lambda x, y: (x * y, j.numpy.sum(x)), X, Y)
        return u, v, pullback((j.numpy.asarray(Y), j.numpy.float32(2)))
    agree(run)


def test_a_result_that_does_not_depend_on_the_arguments():
    def run(j):
        outs, pullback = j.vjp(lambda x: (x, j.numpy.ones(2), 3.0), X)
        return outs[0], pullback((j.numpy.asarray(Y), j.numpy.zeros(2), 0.0))
    agree(run)
    agree(lambda j: j.jvp(lambda x: j.numpy.ones(2), (X,), (Y,)))


def test_linearize_can_be_called_again():
    def run(j):
        out, pushforward = j.linearize(lambda x: j.numpy.sin(x) * x, X)
        return out, pushforward(Y), pushforward(X), j.vmap(pushforward)(np.stack([X, Y]))
    agree(run)


def test_pullback_can_be_called_again():
    def run(j):
        _, pullback = j.vjp(lambda x: j.numpy.sin(x) * x, j.numpy.asarray(X))
        return pullback(j.numpy.asarray(Y)), j.jit(pullback)(j.numpy.asarray(X)), j.vmap(pullback)(
            j.numpy.eye(3))
    agree(run)


def test_the_leaves_of_a_pullback_are_its_residuals():
    def run(j):
        def fun(x):
            return j.numpy.sum(j.numpy.sin(x) * np.arange(3.0, dtype=np.float32)) + x[
                np.array([0, 1])].sum()
        _, pullback = j.vjp(fun, X)
        residuals, tree = j.tree.flatten(pullback)
        doubled = j.tree.unflatten(tree, [x * 2 if x.dtype == np.float32 else x for x in residuals])
        ones = j.numpy.ones(())
        made = j.jit(lambda x: j.vjp(fun, x)[1])
        assert j.tree.structure(made(X)) == j.tree.structure(made(Y))
        return (sorted(x.shape for x in residuals), pullback(ones), doubled(ones), made(Y)(ones),
                j.vmap(lambda x: j.vjp(fun, x)[1](ones))(np.stack([X, Y])))
    agree(run)


# --- vmap -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("in_axes,out_axes", [
    (0, 0), (1, 0), (-1, 0), (-2, -1), (0, 1), (0, -1), ((0, None), 0), ((1, None), 1),
    ((None, 0), 0), ((0, 0), 0), ((-1, -1), 1), ([0, 1], 0)])
def test_vmap_over_chosen_axes(in_axes, out_axes):
    square = np.arange(16, dtype=np.float32).reshape(4, 4)
    agree(lambda j: j.vmap(lambda x, y: x * 2 + y, in_axes=in_axes, out_axes=out_axes)(
        square, square[::-1].copy()))


def test_axes_as_trees():
    tree = {"a": M, "b": (X, None)}
    agree(lambda j: j.vmap(lambda t, s: {"u": t["a"] * s, "v": t["b"][0]},
                           in_axes=({"a": 1, "b": (0, None)}, None),
                           out_axes={"u": 1, "v": 0})(tree, 2.0))
    agree(lambda j: j.vmap(lambda t: t["a"] * t["b"][0], in_axes=({"a": 1, "b": 0},))(tree))
    agree(lambda j: j.vmap(lambda x: (x, 1.0, x * 2), out_axes=(0, None, 1))(M))
    agree(lambda j: j.vmap(lambda p: Pair(p.right, p.left), in_axes=(Pair(0, 1),),
                           out_axes=Pair(1, 0))(Pair(M, M.T.copy())))


def test_axis_size_and_keywords():
    agree(lambda j: j.vmap(lambda: j.numpy.arange(3), axis_size=2)())
    agree(lambda j: j.vmap(lambda x: x + 1, in_axes=None, axis_size=2)(X))
    agree(lambda j: j.vmap(lambda x, y: x + y)(X, y=Y))
    agree(lambda j: j.vmap(lambda x, scale: x * scale["s"], in_axes=0)(X, scale={"s": Y}))
    agree(lambda j: j.vmap(lambda x: 1)(X))
    agree(lambda j: j.vmap(lambda x: None)(X))


def test_empty_batch():
    agree(lambda j: j.vmap(lambda x: j.numpy.sin(x).sum())(np.zeros((0, 3), np.float32)))


def test_nested_maps():
    agree(lambda j: j.vmap(j.vmap(lambda x, y: x * y, (None, 0)), (0, None))(X, Y))
    agree(lambda j: j.vmap(lambda row: j.vmap(lambda e: j.numpy.dot(row, row) * e)(row))(M))
    agree(lambda j: j.vmap(lambda x: j.vmap(lambda y: x @ y, in_axes=1)(M))(
        np.ones((3, 2), np.float32)))


# --- derivatives with something to get wrong ------------------------------------------------------

N = np.array([0, 2], np.int32)
SPECIAL = {
    "norm": lambda j: j.grad(lambda x: j.numpy.linalg.norm(x))(X),
    "sorted": lambda j: j.grad(lambda x: j.numpy.sort(x)[0])(X),
    "cumsum": lambda j: j.jvp(j.numpy.cumsum, (X,), (Y,)),
    "prod with a zero": lambda j: j.grad(lambda x: j.numpy.prod(x))(
        np.array([0, 2, 3], np.float32)),
    "where": lambda j: j.grad(lambda x: j.numpy.where(x > 0, x, 0.0).sum())(X),
    "ends": lambda j: j.grad(lambda x: x[0] * x[-1])(X),
    "root at zero": lambda j: j.grad(lambda x: j.numpy.sum(j.numpy.sqrt(x)))(X * 0),
    "power zero at zero": lambda j: j.grad(lambda x: x ** 0.0)(np.float32(0)),
    "power": lambda j: j.grad(lambda x, y: x ** y, (0, 1))(np.float32(0), np.float32(2)),
    "angle": lambda j: j.grad(j.numpy.arctan2, (0, 1))(1.0, 2.0),
    "modulus": lambda j: j.grad(lambda z: (z * z.conj()).real)(1 + 2j),
    "real to complex": lambda j: j.vjp(lambda x: x.astype("complex64"), X)[1](
        j.numpy.asarray(np.full(3, 1j, np.complex64))),
    "through integers": lambda j: j.grad(
        lambda x: x.astype("int32").astype("float32").sum())(X),
    "stop_gradient": lambda j: j.grad(lambda x: j.lax.stop_gradient(x) * x)(2.0),
    "stop_gradient under jit": lambda j: j.jit(j.grad(lambda x: j.lax.stop_gradient(x) * x))(2.0),
    "batched index": lambda j: j.vmap(lambda i, x: x[i], in_axes=(0, None))(N, j.numpy.asarray(X)),
    "batched update": lambda j: j.vmap(lambda i, x: x.at[i].set(9.0), in_axes=(0, None))(
        N, j.numpy.asarray(X)),
    "batched slice out of range": lambda j: j.vmap(
        lambda x, i: j.lax.dynamic_slice(x, (i,), (2,)))(M, N * 3),
    "batched gradient of a gather": lambda j: j.vmap(j.grad(lambda x, i: x[i] ** 2 * x[0]),
                                                     in_axes=(None, 0))(X, N),
    "aux under jit": lambda j: j.jit(j.value_and_grad(
        lambda x: (x ** 2, {"a": x * 1, "n": 1}), has_aux=True))(np.float32(3)),
    "unbatched keyword tree": lambda j: j.vmap(lambda t: t["a"] * 2, in_axes=({"a": None},),
                                               axis_size=3)({"a": 1.0}),
    "one-sided product": lambda j: j.vmap(lambda a, b: a @ b, in_axes=(0, None))(M, X),
    "two-sided product": lambda j: j.vmap(lambda a, b: a @ b, in_axes=(None, 0))(M, M),
    "sums of closed-over batches": lambda j: j.jit(lambda x: j.vmap(lambda y: y + x)(x))(X),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases_agree_with_jax(name):
    agree(SPECIAL[name], weak=False)


# --- nestings -------------------------------------------------------------------------------------

def network(j, tree):
    hidden = j.numpy.tanh(tree["w"] @ tree["x"].left) * tree["x"].right
    return {"out": (hidden.sum(), None), "hidden": hidden}


def mixture(j, tree):
    x, y = tree
    top = j.numpy.where(x > 0, x * y, j.numpy.exp(x))
    return Pair(top[::-1] ** 2, (j.numpy.max(top), x / (1 + y * y)))


def chain(j, x):
    return j.numpy.sin(x * j.numpy.cos(x)).reshape(-1, 1) * x


FUNCTIONS = {
    "network": (network, {"w": M, "x": Pair(X, np.array([0.5, 2.0], np.float32)), "none": None}),
    "mixture": (mixture, (X, Y)),
    "chain": (chain, X),
}


def leaves_of(j, tree):
    return j.tree_util.tree_leaves(tree)


def weighted_sum(j, tree):
    return sum(j.numpy.sum(leaf * (1.0 + 0.5 * n)) for n, leaf in enumerate(leaves_of(j, tree)))


def with_jit(j, fun):
    return j.jit(fun)


def with_grad(j, fun):
    return j.grad(lambda x: weighted_sum(j, fun(x)))


def with_vmap(j, fun):
    def mapped(tree):
        # Closes over the argument, and maps leaves along different axes.
        stacked = j.tree_util.tree_map(lambda leaf: j.numpy.stack([leaf, leaf * 0.5], -1), tree)
        return j.vmap(fun, in_axes=-1, out_axes=0)(stacked)
    return mapped


def with_jvp(j, fun):
    def pushed(tree):
        direction = j.tree_util.tree_map(lambda leaf: leaf * 0.25 + 1, tree)
        return j.jvp(fun, (tree,), (direction,))
    return pushed


TRANSFORMS = {"jit": with_jit, "grad": with_grad, "vmap": with_vmap, "jvp": with_jvp}


def transformed(j, name, stack):
    fun = functools.partial(FUNCTIONS[name][0], j)
    for transform in reversed(stack):
        fun = TRANSFORMS[transform](j, fun)
    return fun


@functools.cache
def expected_of(name, stack):
    # jit changes no result: one compilation serves all positions where it may be.
    return jax.jit(transformed(jax, name, stack))(FUNCTIONS[name][1])


STACKS = [stack for depth in (1, 2, 3) for stack in itertools.product(TRANSFORMS, repeat=depth)]


@pytest.mark.parametrize("name,stack", [
    pytest.param(name, stack, id=f"{name}-{'-'.join(stack)}")
    for name in FUNCTIONS for stack in STACKS
    if len(stack) < 3 or name == "network" or len(set(stack)) == 3 and name == "mixture"])
def test_nested_transformations_agree_with_jax(name, stack):
    expected = expected_of(name, tuple(t for t in stack if t != "jit"))
    fun = transformed(maxjax, name, stack)
    for _ in range(2):      # traced, and found
        assert_tree_same(fun(FUNCTIONS[name][1]), expected, derivative=True)


@pytest.mark.parametrize("stack", [
    ("jit", "vmap", "jit", "grad", "jit"), ("grad", "jit", "jvp", "jit", "vmap"),
    ("vmap", "grad", "jit", "vmap", "jit"), ("jvp", "jit", "grad", "grad")])
def test_deep_nesting(stack):
    expected = expected_of("chain", tuple(t for t in stack if t != "jit"))
    assert_tree_same(transformed(maxjax, "chain", stack)(X), expected, derivative=True)


def hessian(j, fun, outer, inner):
    def forward(f):
        return lambda x: j.vmap(lambda v: j.jvp(f, (x,), (v,))[1], out_axes=-1)(j.numpy.eye(3))

    def backward(f):
        def run(x):
            _, pullback = j.vjp(f, x)
            return j.vmap(lambda v: pullback(v)[0])(j.numpy.eye(3))
        return run
    kinds = {"forward": forward, "backward": backward}
    first = j.grad(fun) if inner == "backward" else (
        lambda x: j.vmap(lambda v: j.jvp(fun, (x,), (v,))[1])(j.numpy.eye(3)))
    return kinds[outer](first)


@pytest.mark.parametrize("outer,inner", list(itertools.product(("forward", "backward"), repeat=2)))
@pytest.mark.parametrize("jitted", [False, True])
def test_hessians_in_all_modes_agree(outer, inner, jitted):
    def fun(j, x):
        return j.numpy.sum(j.numpy.sin(x) * j.numpy.exp(x[::-1])) + j.numpy.prod(x)

    expected = jax.jit(hessian(jax, functools.partial(fun, jax), "forward", "backward"))(X)
    second = hessian(maxjax, functools.partial(fun, maxjax), outer, inner)
    actual = (maxjax.jit(second) if jitted else second)(X)
    assert_tree_same(actual, expected, derivative=True)
    assert_tree_same(actual, np.asarray(actual).T, derivative=True)


def test_fourth_derivative():
    def run(j):
        fun = j.numpy.sin
        for _ in range(4):
            fun = j.jit(j.grad(fun))
        return fun(0.75)
    agree(run)


# --- jit within -----------------------------------------------------------------------------------

def test_jit_within_jit_within_grad():
    def run(j):
        inner = j.jit(lambda x: j.numpy.sin(x) * 2)
        outer = j.jit(lambda x: inner(x) * inner(x[::-1]))
        return j.value_and_grad(lambda x: j.numpy.sum(outer(x)))(X)
    agree(run)


def test_grad_of_a_function_that_was_compiled_before():
    def run(j):
        fun = j.jit(lambda x: j.numpy.sum(x ** 3))
        return fun(X), j.grad(fun)(X), fun(X), j.jit(j.grad(fun))(X), j.vmap(j.grad(fun))(M)
    agree(run)


def test_an_inner_jit_is_derived_once():
    inner = maxjax.jit(lambda x: maxjax.numpy.sin(x) * x)
    fun = maxjax.grad(lambda x: maxjax.numpy.sum(inner(x)))
    for _ in range(3):
        fun(X)
    closed = next(iter(inner._entries.values())).closed
    assert sum(key[0].__name__ == "linearize_jaxpr" for key in closed.known
               if isinstance(key, tuple)) == 1


def test_closures_over_tracers_at_each_level():
    def run(j):
        def outer(x):
            doubled = x * 2

            @j.jit
            def middle(y):
                both = doubled * y
                return j.grad(lambda z: j.numpy.sum(z * both * x) + j.numpy.sum(doubled))(y)

            return j.numpy.sum(middle(x) * j.vmap(lambda e: e * doubled[0] + x[1])(x))
        return (j.grad(outer)(X), j.jit(j.grad(outer))(X), j.vmap(outer)(np.stack([X, Y])),
                j.jvp(outer, (X,), (Y,)), j.jit(j.vmap(j.grad(outer)))(np.stack([X, Y])))
    agree(run)


def test_perturbations_are_not_confused():
    # d/dx (x * d/dy (x + y)) = 1; a confusion of the levels gives 2.
    agree(lambda j: j.grad(lambda x: x * j.grad(lambda y: x + y)(1.0))(1.0))
    agree(lambda j: j.jvp(lambda x: x * j.jvp(lambda y: x + y, (1.0,), (1.0,))[1], (1.0,), (1.0,)))
    agree(lambda j: j.vmap(lambda x: j.grad(lambda y: j.grad(lambda z: x * y * z)(y) * y)(x))(X))


def test_control_flow_on_known_values():
    def fun(x):
        return x ** 2 if x > 0 else -x
    agree(lambda j: (j.grad(fun)(2.0), j.grad(fun)(-2.0), j.jvp(fun, (-1.0,), (3.0,))))


def test_a_function_with_a_loop():
    def run(j):
        def fun(x):
            for i in range(5):
                x = x * (i + 1) - j.numpy.sin(x)
            return j.numpy.sum(x)
        return j.grad(fun)(X), j.jit(j.grad(fun))(X)
    agree(run)


# --- every pass gives well-formed jaxprs ----------------------------------------------------------

def closed_of(fun, *args):
    return maxjax.jit(fun)._lookup(args, {}).closed


JAXPRS = {
    "plain": lambda: closed_of(lambda t: chain(maxjax, t), X),
    "network": lambda: closed_of(functools.partial(network, maxjax), FUNCTIONS["network"][1]),
    "mixture": lambda: closed_of(functools.partial(mixture, maxjax), (X, Y)),
    "calls": lambda: closed_of(
        lambda x: maxjax.jit(lambda y: maxjax.jit(maxjax.numpy.sin)(y) * y + X)(x) * x, X),
    "gradient": lambda: closed_of(transformed(maxjax, "network", ("grad", "jit")),
                                  FUNCTIONS["network"][1]),
    "unused": lambda: closed_of(lambda x, y: (x, maxjax.numpy.sin(y), 2.0, x)[::3], X, Y),
}


@pytest.mark.parametrize("name", JAXPRS)
def test_passes_keep_jaxprs_well_formed(name):
    closed = JAXPRS[name]()
    check_jaxpr(closed)
    count = len(closed.in_avals)
    for simplifying in (inline_calls, eliminate_dead_code, eliminate_common_subexpressions,
                        simplify):
        check_jaxpr(simplifying(closed))
    assert not any(eqn.primitive.name == "jit" for eqn in simplify(closed).eqns)
    check_jaxpr(batch_jaxpr(closed, 2, (0,) * count)[0])
    check_jaxpr(batch_jaxpr(closed, 2, (0, *(None,) * (count - 1)), True)[0])
    for nonzero in ((True,) * count, (True, *(False,) * (count - 1))):
        check_jaxpr(jvp_jaxpr(closed, nonzero)[0])
        check_jaxpr(jvp_jaxpr(closed, nonzero, True)[0])
        forward, linear, out_nonzero = linearize_jaxpr(closed, nonzero)
        check_jaxpr(forward)
        check_jaxpr(linear)
        residuals = len(linear.in_avals) - sum(nonzero)
        is_linear = (False,) * residuals + (True,) * sum(nonzero)
        transposed, _ = transpose_jaxpr(linear, is_linear, (True,) * sum(out_nonzero))
        check_jaxpr(transposed)
        check_jaxpr(simplify(transposed))


def run_jaxpr(closed, args):
    return installed.runtime.call(call_of(closed), [installed.runtime.operand(arg) for arg in args])


@pytest.mark.parametrize("name", JAXPRS)
def test_passes_keep_results(name):
    closed = JAXPRS[name]()
    args = harness.leaves({
        "network": FUNCTIONS["network"][1], "gradient": FUNCTIONS["network"][1],
        "mixture": (X, Y), "unused": (X, Y)}.get(name, X))
    expected = [np.asarray(x) for x in run_jaxpr(closed, args)]
    for simplifying in (inline_calls, eliminate_dead_code, eliminate_common_subexpressions):
        for actual, want in zip(run_jaxpr(simplifying(closed), args), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(actual), want)


def test_equal_equations_are_computed_once():
    closed = closed_of(lambda x: maxjax.numpy.sin(x) * maxjax.numpy.sin(x), X)
    names = [eqn.primitive.name for eqn in simplify(closed).eqns]
    assert names == ["sin", "mul"]


def test_signed_zeros_and_nan_literals_stay_apart():
    closed = closed_of(lambda x: (x * np.float32(0.0), x * np.float32(-0.0),
                                  x * np.float32("nan"), x * np.float32("nan")), X)
    assert len(simplify(closed).eqns) == 3


def test_avals_of_operands():
    assert aval_of(X).shape == (3,)
    assert aval_of(np.float32(1)).dtype == np.float32


# --- weak types -----------------------------------------------------------------------------------

# JAX's pow and stack have derivatives that are not weakly typed where all else is: not among these.
OF_A_NUMBER = {
    "sin": lambda j, x: j.numpy.sin(x), "constant": lambda j, x: 1.0,
    "add": lambda j, x: x + np.float32(1), "mul": lambda j, x: x * j.numpy.ones(3),
    "where": lambda j, x: j.numpy.where(x > 0, x, np.float32(0)),
    "max": lambda j, x: j.numpy.maximum(x, np.float32(0)),
    "dot": lambda j, x: j.numpy.dot(j.numpy.ones(2) * x, j.numpy.ones(2)),
    "jit": lambda j, x: j.jit(lambda y: y * np.float32(2))(x),
    "scan": lambda j, x: j.lax.scan(
        lambda c, _: (c * np.float32(2), None), np.float32(1) * x, length=2)[0],
    "cond": lambda j, x: j.lax.cond(
        True, lambda y: y * np.float32(2), lambda y: y * np.float32(2), x),
    "full": lambda j, x: j.numpy.full((3,), x).sum(),
    "at": lambda j, x: j.numpy.zeros(3).at[0].set(x),
    "two": lambda j, x: (j.numpy.sin(x), x * j.numpy.ones(2)),
}


@pytest.mark.parametrize("name", OF_A_NUMBER)
def test_derivatives_of_numbers_are_as_weakly_typed(name):
    def run(j):
        def f(x):
            return OF_A_NUMBER[name](j, x)

        def total(x):
            return sum(map(j.numpy.sum, j.tree.leaves(f(x))))

        out, pullback = j.vjp(f, 2.0)
        strong = j.tree.map(lambda y: np.ones(np.shape(y), np.float32), out)
        return (j.grad(total)(2.0), j.jit(j.grad(total))(2.0), j.jvp(f, (2.0,), (1.0,))[1],
                j.linearize(f, 2.0)[1](1.0), pullback(j.tree.map(j.numpy.ones_like, out)),
                pullback(strong))
    agree(run)


@pytest.mark.parametrize("function", [
    lambda j, z: z * np.complex64(2), lambda j, z: j.numpy.sin(z), lambda j, z: j.numpy.abs(z) ** 2,
    lambda j, z: z.real * np.float32(2)])
def test_cotangents_of_complex_numbers_are_as_weakly_typed(function):
    def run(j):
        out, pullback = j.vjp(lambda z: function(j, z), 1 + 2j)
        return pullback(j.numpy.ones_like(out)), pullback(np.ones((), out.dtype))
    agree(run)


@pytest.mark.parametrize("mode", ["jacfwd", "jacrev"])
def test_jacobians_of_many_numbers_store_no_unit_vectors(mode):
    """They are computed where they are read, also of leaves of several dtypes together."""
    many = {"a": np.linspace(0.25, 1, 1500, dtype=np.float32), "b": np.ones((2, 35), np.float16)}

    def derivative(j):
        def few(x):
            return j.numpy.sin(x["a"]).sum() * x["b"].sum(1), x["a"][:3] * x["b"][1, 7]

        def spread(x):
            return {"a": many["a"] * x, "b": (many["b"] * x).astype(np.float16)}

        return j.jacfwd(few) if mode == "jacfwd" else j.jacrev(spread)

    x = many if mode == "jacfwd" else np.float32(0.5)
    agree(lambda j: (derivative(j)(x), j.jit(derivative(j))(x)))
    stored = maxjax.make_jaxpr(derivative(maxjax))(x).consts
    assert sum(np.asarray(value).nbytes for value in stored) < 1 << 16
