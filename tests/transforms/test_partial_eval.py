"""jax.interpreters.partial_eval and related, jax.api_util: the same code on maxjax and on JAX."""

from __future__ import annotations

import importlib
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import maxjax
from tests.support.against_jax import agree, assert_same_error, errors_of

X = np.array([0.3, -0.7, 1.1], np.float32)


def modules(j):
    return SimpleNamespace(**{
        path.rpartition(".")[2]: importlib.import_module(f"{j.__name__}.{path}") for path in (
            "api_util", "extend.core", "extend.linear_util", "extend.backend",
            "interpreters.partial_eval", "interpreters.pxla", "interpreters.xla")})


def wrapped(j, f):
    m = modules(j)
    return m.linear_util.wrap_init(f, debug_info=m.api_util.debug_info("f", f, (), {}))


def two(j):
    return j.make_jaxpr(lambda x, y: (j.numpy.sin(x) * 2, j.numpy.cos(y)))(1.0, 2.0).jaxpr


def called(j):
    def f(x, y):
        inner = j.jit(lambda a, b: (a + 1, b * 2))(x, y)
        return *inner, j.lax.cond(x > 0, lambda: (x, y), lambda: (y, x))[0]
    return j.make_jaxpr(f)(1.0, 2.0).jaxpr


def constant(j):
    return j.make_jaxpr(lambda x: (x, x + X))(X).jaxpr


def dce(j, jaxpr, *args):
    pruned, inputs = modules(j).partial_eval.dce_jaxpr(jaxpr(j), *args)
    return str(pruned), inputs


def dynamic(j, **options):
    fun = wrapped(j, lambda x: [x * 2, x + X])
    aval = j.typeof(j.numpy.asarray(X))
    jaxpr, avals, consts = modules(j).partial_eval.trace_to_jaxpr_dynamic(fun, [aval], **options)
    return str(jaxpr), list(map(str, avals)), consts


def nounits(j, instantiate=False):
    pe = modules(j).partial_eval
    known = pe.PartialVal.known(j.numpy.asarray(X))
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(
        wrapped(j, lambda x, y: [j.numpy.sin(x), x * y, y]),
        [known, pe.PartialVal.unknown(known.get_aval())], instantiate)
    return ([out.is_known() for out in outs], [out.get_known() for out in outs if out.is_known()],
            [str(out.get_aval()) for out in outs], len(jaxpr.outvars),
            j.core.eval_jaxpr(jaxpr, consts, j.numpy.asarray(X)))


def nounits_inside(j, transform):
    """Values of a transformation around the call are known."""
    pe = modules(j).partial_eval

    def call(y):
        fun = wrapped(j, lambda x: [y * 2.0, j.numpy.sin(x) + y, y])
        jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(
            fun, [pe.PartialVal.unknown(j.typeof(j.numpy.asarray(X)))])
        assert [out.is_known() for out in outs] == [True, False, True]
        return (outs[0].get_known() + outs[2].get_known(),
                j.core.eval_jaxpr(jaxpr, consts, j.numpy.asarray(X))[0])
    return transform(call)(j.numpy.asarray(X))


def flattened(j):
    util = modules(j).api_util
    leaves, tree = j.tree.flatten(((1.0, {"a": X}), {"k": 3.0}))
    flat, out_tree = util.flatten_fun(wrapped(j, lambda x, y, k: {"r": (x, y["a"] + k)}), tree)
    return flat.call_wrapped(*leaves), str(out_tree())


def flattened_args(j):
    util = modules(j).api_util
    leaves, tree = j.tree.flatten((1.0, {"a": X}))
    flat, out_tree = util.flatten_fun_nokwargs(wrapped(j, lambda x, y: (y, x)), tree)
    return flat.call_wrapped(*leaves), str(out_tree())


def flattened_twice(j, use_eq_store):
    util = modules(j).api_util
    leaves, tree = j.tree.flatten((1.0, 2.0))
    flat, _ = util.flatten_fun_nokwargs(
        wrapped(j, lambda x, y: (y, x)), tree, use_eq_store=use_eq_store)
    return flat.call_wrapped(*leaves), flat.call_wrapped(*leaves)


def partial(j, where=(0, 2)):
    fun, rest = modules(j).api_util.argnums_partial(
        wrapped(j, lambda x, y, z: x - y * z), where, (5.0, 3.0, 2.0))
    return fun.call_wrapped(*rest), [float(getattr(x, "val", x)) for x in rest]


def states(j, name, transform):
    """The result of a function of the tracing state inside a transformation."""
    found = []
    ask = getattr(modules(j).core, name)

    def f(x):
        found.append(ask())
        return x
    transform(j)(f)(X)
    return [*found, ask()]


CALLS = {
    "dce first": lambda j: dce(j, two, [True, False]),
    "dce none": lambda j: dce(j, two, [False, False]),
    "dce all": lambda j: dce(j, two, True),
    "dce instantiated": lambda j: dce(j, two, [False, True], True),
    "dce some instantiated": lambda j: dce(j, two, [False, True], [True, False]),
    "dce of calls": lambda j: dce(j, called, [False, True, False])[1],
    "dce of a call": lambda j: dce(j, called, [True, False, False]),
    "dce of branches": lambda j: dce(j, called, [False, False, True])[1],
    "dce constants": lambda j: modules(j).partial_eval.dce_jaxpr_consts(
        constant(j), [True, False])[1:],
    "dce constants needed": lambda j: modules(j).partial_eval.dce_jaxpr_consts(
        constant(j), [False, True])[1:],
    "dynamic": dynamic,
    "nounits": nounits,
    "nounits instantiated": lambda j: nounits(j, True),
    "nounits under jit": lambda j: nounits_inside(j, j.jit),
    "nounits under vmap": lambda j: nounits_inside(j, j.vmap),
    "nounits under jit of jvp": lambda j: nounits_inside(
        j, lambda f: j.jit(lambda x: j.jvp(f, (x,), (x,)))),
    "flatten_fun": flattened,
    "flatten_fun_nokwargs": flattened_args,
    "flatten_fun twice": lambda j: flattened_twice(j, True),
    "names": lambda j: modules(j).api_util.debug_info(
        "jit", lambda x, y, k: x, (1, {"a": 2}), {"k": 3}).arg_names,
    "argnums_partial": partial,
    "argnums_partial of one": lambda j: partial(j, -1),
    "safe_map": lambda j: modules(j).api_util.safe_map(max, [1, 5], [4, 2]),
    "shaped_abstractify": lambda j: [str(modules(j).api_util.shaped_abstractify(x))
                                     for x in (1.0, X, True, np.int8(2))],
    "concrete_or_error": lambda j: [modules(j).core.concrete_or_error(int, j.numpy.float32(2.5)),
                                    modules(j).core.concrete_or_error(None, 1.5)],
    "concrete under grad": lambda j: j.grad(
        lambda x: modules(j).core.concrete_or_error(float, x) * x)(2.0),
    "no mesh": lambda j: [modules(j).pxla.thread_resources.env.physical_mesh.empty,
                          "thread_resources" in dir(modules(j).pxla)],
    "apply_primitive": lambda j: modules(j).xla.apply_primitive(j.lax.neg_p, j.numpy.ones(2)),
    "client": lambda j: [str(d) for d in modules(j).backend.get_backend().devices()],
    "devices": lambda j: [getattr(modules(j).backend.get_backend(), name)() for name in (
        "device_count", "local_device_count", "process_index")],
    "traced": lambda j: [j.jit(lambda x: 2 * x).trace(1.0).out_info.weak_type,
                         j.jit(lambda x: 2 * x).lower(1.0).out_info.weak_type],
    "jaxpr_as_fun": lambda j: modules(j).core.jaxpr_as_fun(
        j.make_jaxpr(lambda x, y: x - y)(1.0, 2.0), 5.0)(3.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_agree_with_jax(name):
    agree(CALLS[name])


TRANSFORMS = {
    "jit": lambda j: j.jit, "vmap": lambda j: j.vmap,
    "named vmap": lambda j: lambda f: j.vmap(f, axis_name="i"),
    "jit of vmap": lambda j: lambda f: j.jit(j.vmap(f)),
    "jvp": lambda j: lambda f: lambda x: j.jvp(f, (x,), (x,)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_state_of_tracing(transform):
    for name in ("unsafe_am_i_under_a_jit_DO_NOT_USE", "unsafe_am_i_under_a_vmap_DO_NOT_USE",
                 "unsafe_get_axis_names_DO_NOT_USE", "nonempty_axis_env_DO_NOT_USE"):
        agree(lambda j: states(j, name, TRANSFORMS[transform]))  # noqa: B023  # called at once

    def same(j):
        ask = modules(j).core.get_opaque_trace_state
        outside, found = ask(), []
        TRANSFORMS[transform](j)(lambda x: (found.append(ask() == outside), x)[1])(X)
        return found, ask() == outside
    agree(same)


ERRORS = {
    "dce flags": lambda j: dce(j, two, [True]),
    "jaxpr_as_fun": lambda j: modules(j).core.jaxpr_as_fun(
        j.make_jaxpr(lambda x: x)(1.0))(1.0, 2.0),
    "mapped_aval": lambda j: modules(j).core.mapped_aval(
        3, 0, j.core.ShapedArray((2,), np.dtype("float32"))),
    "unmapped_aval": lambda j: modules(j).core.unmapped_aval(
        3, 5, j.core.ShapedArray((2,), np.dtype("float32"))),
    "flatten_fun twice": lambda j: flattened_twice(j, False),
    "safe_map": lambda j: modules(j).api_util.safe_map(max, [1, 5], [4]),
    "shaped_abstractify": lambda j: modules(j).api_util.shaped_abstractify("text"),
    "concrete_or_error": lambda j: j.jit(
        lambda x: modules(j).core.concrete_or_error(int, x, "context"))(2.0),
    "orthogonal": lambda j: j.random.orthogonal(j.random.key(0), 3, dtype=np.int32),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_the_classes_of_jax(name):
    ours, theirs = errors_of(ERRORS[name])
    assert type(ours).__name__ == type(theirs).__name__


# --- axes and donations of arguments --------------------------------------------------------------

AXES = {
    "one": ({"a": 1, "b": (2, 3)}, 0, {}),
    "prefix": ({"a": 1, "b": (2, 3)}, {"a": 1, "b": None}, {}),
    "whole": ({"a": 1, "b": (2, 3)}, {"a": 1, "b": (None, 2)}, {}),
    "none": ((1, 2), None, {}),
    "nodes of None": ([1, None, 2], [1, None, 2], {}),
    "arguments": ((1, (2, 3)), (0, 1), {"tupled_args": True}),
    "keywords": (((1, 2), {"k": 3}), ((0, 1), 0), {"kws": True}),
    "too long": ({"a": 1, "b": (2, 3)}, {"a": 1, "b": (1, 2, 3)}, {}),
    "another type": ([1, 2], (1, 2), {}),
    "missing key": ({"a": 1, "b": 2}, {"a": 1}, {}),
    "one argument": (((1, 2),), (0, 1), {"tupled_args": True}),
    "a leaf": ((1, (1, 2)), ((1, 2), 0), {"tupled_args": True}),
    "keywords, and one too many": (((1, 2), {"k": 3}), ((0, 1, 2), 0), {"kws": True}),
}


@pytest.mark.parametrize("name", AXES)
def test_flatten_axes(name):
    tree, axes, options = AXES[name]

    def flattened(j):
        try:
            return modules(j).api_util.flatten_axes(
                "in_axes", j.tree_util.tree_structure(tree), axes, **options)
        except ValueError as error:
            return str(error).replace("jax._src.api_util", "").replace("maxjax._base.pytree", "")

    assert flattened(maxjax) == flattened(jax)


@pytest.mark.parametrize("numbers, names, kws", [
    ((1,), (), True), ((0,), ("m",), True), ((), ("k",), True), ((0, 1, 5), (), True),
    ((-1,), (), True), ((0,), (), False), ((), (), True)])
def test_donation_vector(numbers, names, kws):
    tree = ((1, (2, 3)), {"m": [1, 2], "k": 1}) if kws else (1, (2, 3))
    assert len({modules(j).api_util.donation_vector(
        numbers, names, j.tree_util.tree_structure(tree), kws=kws) for j in (jax, maxjax)}) == 1


@pytest.mark.parametrize("donated, static", [
    ((0, 2, 3), (1,)), ((), (1, 0)), ((1,), ()), ((2, 1, 2), (0,))])
def test_rebase_donate_argnums(donated, static):
    assert len({modules(j).api_util.rebase_donate_argnums(donated, static)
                for j in (jax, maxjax)}) == 1
    assert_same_error(lambda j: modules(j).api_util.rebase_donate_argnums((2, 1), (1, 0)), True)
