"""vmap with named axes against real JAX: nested calls around and inside collectives, the text of
jaxprs, errors, and the binding of names."""

from __future__ import annotations

import functools
import itertools
import random
import re
import threading

import jax
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._ir.axes import axis_size, named_axes
from maxjax._ir.check import check_jaxpr
from maxjax._ir.trace import context
from maxjax._transforms.simplify import simplify
from tests.support.against_jax import agree, assert_same_error, assert_tree_same

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)

# --- nests ----------------------------------------------------------------------------------------
# Functions of a vector that communicate, and the wrappers around them, inside the map.


def normalized(j, x):
    mean, square = j.lax.pmean((x, x * x), "i")
    return (x - mean) / j.numpy.sqrt(square - mean ** 2 + 0.1)


def gathered(j, x):
    every = j.lax.all_gather(x, "i")
    return j.numpy.tanh(every @ x) @ every


def shifted(j, x):
    pairs = [(n, (n + 1) % 4) for n in range(4)]
    return j.numpy.sin(x) * j.lax.ppermute(x, "i", pairs) + j.lax.axis_index("i")


def scattered(j, x):
    parts = x * j.numpy.arange(1., 5.)[:, None]
    return j.numpy.cos(x) + j.lax.psum_scatter(parts, "i") * j.lax.axis_size("i")


COLLECTIVES = [normalized, gathered, shifted, scattered]


def jitted(j, f):
    return j.jit(f)


def differentiated(j, f):
    return j.grad(lambda x: (f(x) ** 2).sum())


def forward(j, f):
    return lambda x: j.jvp(f, (x,), (j.numpy.cos(x),))[1]


def remade(j, f):
    return j.checkpoint(lambda x: f(j.numpy.sin(x)))


def scanned(j, f):
    return lambda x: j.lax.scan(lambda c, w: (0.5 * f(c) * w, c), x, X[:2, 0])[1].sum(0)


def chosen(j, f):      # with a predicate that differs between the elements
    return lambda x: j.lax.cond(x[0] > 0, f, lambda y: 2 * y, x)


def repeated(j, f):
    return lambda x: j.lax.fori_loop(0, 2, lambda _, y: 0.3 * f(y), x)


def with_vjp(j, f):
    g = j.custom_vjp(f)
    # The backward rule communicates, so that it shows whether it finds the axis.
    g.defvjp(lambda x: (f(x), j.lax.pmean(x, "i")),
             lambda mean, cotangent: (j.lax.psum(cotangent, "i") * mean,))
    return g


def with_jvp(j, f):
    g = j.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), 3 * j.lax.pmean(tangents[0], "i")))
    return g


def mapped(j, f):      # over another axis, at the end
    return lambda x: j.vmap(f, -1, -1, axis_name="k")(j.numpy.stack([x, 2 * x], -1)).sum(-1)


def shadowed(j, f):    # the name refers to another axis inside
    return lambda x: f(x) + j.vmap(lambda y: j.lax.psum(y, "i"), axis_name="i")(x)


WRAPPERS = [jitted, differentiated, forward, remade, scanned, chosen, repeated, with_vjp, with_jvp,
            mapped, shadowed]
NESTS = random.Random(0).sample(
    [(f, *pair) for f in COLLECTIVES for pair in itertools.product(WRAPPERS, repeat=2)
     if not (forward in pair and with_vjp in pair)], 18)


@pytest.mark.parametrize(
    ("collective", "inner", "outer"), NESTS,
    ids=["-".join(f.__name__ for f in nest) for nest in NESTS])
def test_nested_axes_agree_with_jax(collective, inner, outer):
    agree(lambda j, x: j.vmap(outer(j, inner(j, lambda y: collective(j, y))), axis_name="i")(x), X)


@pytest.mark.parametrize("collective", COLLECTIVES, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("around", "inside"), [
    (jitted, scanned), (differentiated, jitted), (differentiated, with_vjp), (forward, with_jvp),
    (remade, with_vjp), (forward, scanned)], ids=lambda f: f.__name__)
def test_around_the_map(collective, around, inside):
    agree(lambda j, x: around(j, j.vmap(inside(j, lambda y: collective(j, y)), axis_name="i"))(x),
          X)


def test_jaxprs_are_well_formed():
    for collective, wrapper in itertools.product(COLLECTIVES, WRAPPERS):
        function = maxjax.vmap(
            wrapper(maxjax, functools.partial(collective, maxjax)), axis_name="i")
        closed = maxjax.make_jaxpr(function)(X)
        check_jaxpr(closed)
        check_jaxpr(simplify(closed))
        names = {eqn.primitive.name for eqn in simplify(closed).jaxpr.eqns}
        assert not names & {"psum", "pmax", "ppermute", "all_gather", "axis_index"}


# --- several axes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [
    lambda j, x: j.lax.psum(x, ("i", "j")), lambda j, x: j.lax.pmax(x, "j") - x,
    lambda j, x: j.lax.psum(x, "i") * j.lax.psum(x, "j"),
    lambda j, x: j.lax.axis_index(("j", "i")) * x, lambda j, x: j.lax.all_gather(x, "j") @ x[0],
    lambda j, x: j.jit(lambda y: j.lax.psum(y, ("j", "i")))(x[0]),
    lambda j, x: j.grad(lambda y: j.lax.psum(y @ y.T, ("i", "j")).sum())(x),
    lambda j, x: j.lax.scan(lambda c, y: (c + j.lax.psum(y, "i"), j.lax.psum(c, "j")), x[0], x)],
    ids=range(8))
@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (-1, 1)], ids=str)
def test_nested_axes(body, axes):
    x = np.random.default_rng(1).normal(size=(2, 3, 3, 2)).astype(np.float32)
    agree(lambda j, x: j.vmap(j.vmap(lambda y: body(j, y), axes[1], axis_name="i"), axes[0],
                              axis_name="j")(x), x)


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize(("split", "concat"), list(itertools.product(range(3), repeat=2)))
def test_all_to_all_over_two_axes_is_that_over_one_of_both(split, concat, tiled):
    shape = [5, 7, 2]
    shape[split] = 12 if tiled else 6
    x = np.random.default_rng(0).normal(size=(6, *shape)).astype(np.float32)

    def over(names):
        return lambda y: lax.all_to_all(y, names, split, concat, tiled=tiled)

    one = np.asarray(maxjax.vmap(over("k"), axis_name="k")(x))
    both = maxjax.vmap(maxjax.vmap(over(("j", "i")), axis_name="i"), axis_name="j")
    np.testing.assert_array_equal(
        np.asarray(both(x.reshape(2, 3, *shape))).reshape(one.shape), one)


def test_transpose_of_all_to_all():
    # JAX's own result is wrong there, or fails: the adjoint identity decides.
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(4, 4, 3)).astype(np.float32) for _ in range(2))
    f = lambda v: lax.all_to_all(v, "i", 0, 1)
    out = maxjax.vmap(f, axis_name="i")(x)
    pulled = maxjax.vmap(lambda v, cotangent: maxjax.vjp(f, v)[1](cotangent)[0], axis_name="i")(
        x, y.swapaxes(1, 2))
    np.testing.assert_allclose(np.vdot(out, y.swapaxes(1, 2)), np.vdot(x, pulled), rtol=1e-5)


def test_broadcast_and_its_transpose():
    f = lambda v: lax.pbroadcast(v, "i", 2)
    np.testing.assert_array_equal(
        maxjax.vmap(f, axis_name="i")(X), np.broadcast_to(X[2], X.shape))
    pulled = maxjax.vmap(lambda v: maxjax.vjp(f, v)[1](v)[0], axis_name="i")(X)
    expected = np.zeros_like(X)
    expected[2] = X.sum(0)
    np.testing.assert_allclose(pulled, expected, rtol=1e-6)


# --- text -----------------------------------------------------------------------------------------


def as_printed(text):
    """Replaces ints by JAX's NumPy integers, with the line breaks that they need."""
    return re.sub(r"\s+|np\.int64\((\d+)\)", lambda m: m.group(1) or "", str(text))


@pytest.mark.parametrize("body", [
    lambda j, x: j.lax.psum(x, "i"), lambda j, x: j.lax.pmean(x, "i"),
    lambda j, x: j.lax.pmax((x, 2.), "i"), lambda j, x: j.lax.psum((x, 1, True), "i"),
    lambda j, x: j.lax.psum(x, (0, "i")), lambda j, x: j.lax.psum(2 * j.lax.axis_index("i"), "i"),
    lambda j, x: j.lax.psum(j.numpy.float32(2), "i"), lambda j, x: j.lax.all_gather(x, "i", axis=1),
    lambda j, x: j.lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    lambda j, x: j.lax.all_to_all(x, "i", 0, 0), lambda j, x: j.lax.pswapaxes(x, "i", 1),
    lambda j, x: j.jit(lambda y: j.lax.psum(y, "i"))(x),
    lambda j, x: j.lax.scan(lambda c, y: (c + j.lax.psum(y, "i"), y), x[0], x),
    lambda j, x: j.lax.cond(j.lax.psum(x[0, 0], "i") > 0, lambda y: y, lambda y: 2 * y, x),
    lambda j, x: j.grad(lambda y: j.lax.psum(j.numpy.sin(y), "i").sum())(x)], ids=range(15))
def test_text_under_the_map(body):
    x = np.ones((4, 4, 4), np.float32)
    texts = [as_printed(j.make_jaxpr(j.vmap(lambda y, j=j: body(j, y), axis_name="i"))(x))
             for j in (maxjax, jax)]
    assert texts[0] == texts[1]


# --- what names are bound to ----------------------------------------------------------------------


def test_jit_traces_for_each_size():
    count = []

    @maxjax.jit
    def mean(x):
        count.append(lax.axis_size("i"))
        return lax.psum(x, "i") / lax.axis_size("i")

    for size in (2, 3, 2, 3):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_allclose(
            maxjax.vmap(mean, axis_name="i")(x), np.full(size, x.mean()))
    assert count == [2, 3]
    with pytest.raises(NameError, match="unbound axis name: i"):
        mean(1.)
    outer = maxjax.vmap(lambda x: maxjax.vmap(mean, axis_name="i")(x), axis_name="j")
    np.testing.assert_allclose(outer(X), np.repeat(X.mean(1, keepdims=True), 3, 1), rtol=1e-6)


def test_one_jitted_function_under_two_names():
    total = maxjax.jit(lambda x: x + (lax.psum(x, "i") if bound("i") else 0))

    def bound(name):
        try:
            return axis_size(name)
        except NameError:
            return False

    np.testing.assert_allclose(maxjax.vmap(total, axis_name="j")(X), X)
    np.testing.assert_allclose(maxjax.vmap(total, axis_name="i")(X), X + X.sum(0), rtol=1e-6)
    np.testing.assert_allclose(total(X), X)


def test_names_are_unbound_after_an_error():
    def fail(x):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        maxjax.vmap(fail, axis_name="i")(X)
    assert context.axis_env == () and context.batch_axis is None


def test_inner_names_hide_their_like():
    with named_axes([("i", 4), ("j", 2)]):
        with named_axes([("i", 3)]):
            assert axis_size("i") == 3 and axis_size("j") == 2
            assert len(context.axis_env) == 2
        assert axis_size("i") == 4
    assert context.axis_env == ()


def test_names_belong_to_a_thread():
    found = []

    def look():
        try:
            found.append(axis_size("i"))
        except NameError as error:
            found.append(str(error))

    with named_axes([("i", 4)]):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == ["unbound axis name: i"]


def test_a_jaxpr_keeps_its_names_until_they_are_mapped():
    closed = maxjax.make_jaxpr(lambda x: lax.psum(x, "i"), axis_env=[("i", 4)])(1.)
    run = lambda x: maxjax.core.eval_jaxpr(closed.jaxpr, closed.consts, x)[0]
    np.testing.assert_allclose(
        maxjax.vmap(run, axis_name="i")(X[:, 0]), np.full(4, X[:, 0].sum()), rtol=1e-6)
    with pytest.raises(NameError, match="unbound axis name: i"):
        np.asarray(run(jnp.float32(1)))


def test_constants_at_compile_time():
    def inside(j):
        def f(x):
            with j.ensure_compile_time_eval():
                count, total = j.lax.psum(1, "i"), j.lax.psum(j.numpy.ones(3), "i")
            return x * count + total
        return f

    agree(lambda j, x: j.vmap(inside(j), axis_name="i")(x), X)


def test_callbacks_find_no_names():
    def called(x):
        assert context.axis_env == ()
        return np.asarray(x)

    shape = maxjax.ShapeDtypeStruct((3,), np.float32)
    result = maxjax.vmap(
        lambda x: lax.psum(maxjax.pure_callback(called, shape, x, vmap_method="sequential"), "i"),
        axis_name="i")(X)
    np.testing.assert_allclose(result, np.broadcast_to(X.sum(0), X.shape), rtol=1e-6)


# --- errors ---------------------------------------------------------------------------------------

ARRAYS = {size: np.ones((size, 2), np.float32) for size in (4, 5, 6)}


def five(a, b, c, d, e):
    return a


@pytest.mark.parametrize("call", [
    lambda j: j.vmap(lambda x: x, out_axes=None)(X),
    lambda j: j.vmap(lambda x: {"a": x}, out_axes={"a": None})(X),
    lambda j: j.vmap(lambda x: x, axis_name="i", out_axes=None)(X),
    lambda j: j.vmap(lambda: 1)(),
    lambda j: j.vmap(lambda x: x, True), lambda j: j.vmap(lambda x: x, {"a": 0}),
    lambda j: j.vmap(lambda x: x, ("a",)), lambda j: j.vmap(lambda x: x, out_axes="a"),
    lambda j: j.vmap(lambda x: x, out_axes=(0.5,)), lambda j: j.vmap(lambda x: x, (0, 1))(X),
    lambda j: j.vmap(lambda x: x, ({"a": 0},))({"a": X, "b": X}),
    lambda j: j.vmap(lambda x, y: x, ((0, 0), {"a": 0}))((X,), [X]),
    lambda j: j.vmap(lambda x: {"a": (x, x), "b": [x]}, out_axes={"a": [0], "b": [0, 0]})(X),
    lambda j: j.vmap(lambda x: (x, x), out_axes=(0,))(X),
    lambda j: j.vmap(five)(*(ARRAYS[n] for n in (4, 4, 5, 5, 5))),
    lambda j: j.vmap(five)(*(ARRAYS[n] for n in (5, 6, 4, 4, 4))),
    lambda j: j.vmap(five, axis_size=4)(*(ARRAYS[n] for n in (4, 4, 5, 5, 6))),
    lambda j: j.vmap(lambda a, *, k: a)(ARRAYS[4], k={"x": ARRAYS[5]}),
    lambda j: j.vmap(lambda x: j.lax.psum(x, "k"), axis_name="i")(X),
    lambda j: j.jit(lambda x: j.lax.pmax(x, "i"))(X),
    lambda j: j.jit(lambda x: j.lax.ppermute(x, "i", []))(X),
    lambda j: j.lax.psum(X, "i"), lambda j: j.lax.axis_index("i"), lambda j: j.lax.axis_size("i"),
    lambda j: j.lax.all_gather(X, "i"), lambda j: j.lax.all_to_all(X, "i", 0, 0),
    lambda j: j.lax.psum_scatter(X, "i"), lambda j: j.lax.pmean(X, "i"),
    lambda j: j.vmap(lambda x: j.lax.all_to_all(x, "i", 0, 0), axis_name="i")(X),
    lambda j: j.vmap(lambda x: j.lax.all_to_all(x, "i", 0, 0, tiled=True), axis_name="i")(X),
    lambda j: j.vmap(lambda x: j.lax.pshuffle(x, "i", [0, 0]), axis_name="i")(X),
    lambda j: j.vmap(lambda x: j.lax.ppermute(x, "i", [(0, 1)]), axis_name="i")(X),
    lambda j: j.vmap(lambda x: j.lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]),
                     axis_name="i")(X),
    lambda j: j.vmap(lambda x: j.lax.psum(x, "i", axis_index_groups=[[0], [2]]), axis_name="i")(X),
    lambda j: j.make_jaxpr(lambda x: j.lax.psum_scatter(x, "i"), axis_env=[("i", 5)])(X),
    lambda j: j.make_jaxpr(lambda x: j.lax.psum(x, 3))(X)], ids=range(36))
def test_an_error_is_that_of_jax(call):
    assert_same_error(call, whole=True)


# --- classes with handlers ------------------------------------------------------------------------

class Named:
    """Data, and what its dimensions are called."""

    def __init__(self, names, data):
        assert len(names) == len(data.shape)
        self.names, self.data = names, data


class Along:
    """Maps the dimension of that name; of the result at that place."""

    def __init__(self, name, axis):
        self.name, self.axis = name, axis


def _element(go, index, x, spec):
    return Named([name for name in x.names if name != spec.name], go(x.data, spec.axis))


def _all(go, size, x, spec):
    names = list(x.names)
    names.insert(spec.axis, spec.name)
    return Named(names, go(size, x.data, spec.axis))


for _library in (maxjax, jax):
    _library.interpreters.batching.register_vmappable(Named, Along, int, _element, _all, None)


@pytest.mark.parametrize("program", [
    lambda j, x: j.vmap(lambda n: Named([], n.data.sum()), in_axes=Along("a", 0),
                        out_axes=Along("a", 0), axis_size=2)(Named(["a", "b"], x)),
    lambda j, x: j.vmap(lambda n, y: (Named(n.names, n.data * y), y.sum()),
                        in_axes=(Along("b", 1), 0), out_axes=(Along("b", 1), 0), axis_size=3)(
                            Named(["a", "b"], x), j.numpy.arange(3.0)),
    lambda j, x: j.vmap(lambda n, y: Named(n.names, n.data + y), in_axes=(Along("a", 0), None),
                        out_axes=Along("a", 1), axis_size=2)(Named(["a", "b"], x), 2.0),
    lambda j, x: j.jit(lambda x: j.vmap(lambda n: n.data * 2, in_axes=Along("a", 0), out_axes=1,
                                        axis_size=2)(Named(["a", "b"], x)))(x),
    lambda j, x: j.grad(lambda x: j.vmap(
        lambda n: j.numpy.sin(n.data).sum(), in_axes=Along("b", 1), axis_size=3)(
            Named(["a", "b"], x)).sum())(x),
    lambda j, x: j.vmap(lambda y: Named(["b"], y), in_axes=0, out_axes=Along("c", 1),
                        axis_size=2)(x),
])
def test_classes_with_handlers(program):
    def run(j):
        found = program(j, j.numpy.arange(6.0).reshape(2, 3))
        found = found if isinstance(found, tuple) else (found,)
        return [(x.names, x.data) if isinstance(x, Named) else x for x in found]
    ours, theirs = run(maxjax), run(jax)
    assert [x[0] for x in ours if isinstance(x, tuple)] == [
        x[0] for x in theirs if isinstance(x, tuple)]
    assert_tree_same([x[1] if isinstance(x, tuple) else x for x in ours],
                     [x[1] if isinstance(x, tuple) else x for x in theirs])


def test_classes_with_handlers_that_lack_something():
    register = maxjax.interpreters.batching.register_vmappable
    with pytest.raises(NotImplementedError, match="sizes of a mapped axis are ints"):
        register(Named, Along, float, _element, _all, lambda size: size)
    with pytest.raises(ValueError, match="inconsistent sizes"):
        maxjax.vmap(lambda n: n.data, in_axes=Along("a", 0), axis_size=3)(
            Named(["a"], np.ones(2)))


class Held:
    """An array, and what is the same for all elements; mapped by ints, in any vmap."""

    def __init__(self, data, shared):
        self.data, self.shared = data, shared


class Shifted:
    """An array whose handlers compute with what they take apart, and with what they put together.
    """

    def __init__(self, data):
        self.data = data


def test_handlers_that_compute():
    def run(j):
        register = j.interpreters.batching.register_vmappable
        register(Shifted, int, int, lambda go, index, x, axis: Shifted(go(x.data + 1, axis)),
                 lambda go, size, x, axis: Shifted(go(size, x.data * 3, axis) - 2), None)
        mapped = j.vmap(lambda h, y: Shifted(h.data * y), axis_size=3)
        x = j.numpy.arange(6.0).reshape(3, 2)
        return [mapped(Shifted(x), x).data, j.jit(lambda x: mapped(Shifted(x), x).data)(x),
                j.grad(lambda x: mapped(Shifted(x), x).data.sum())(x)]
    try:
        agree(run)
    finally:
        for library in (maxjax, jax):
            library.interpreters.batching.unregister_vmappable(Shifted)


def test_classes_with_handlers_and_ints():
    for library in (maxjax, jax):
        library.tree_util.register_pytree_node(
            Held, lambda h: ((h.data, h.shared), None), lambda _, pair: Held(*pair))
        library.interpreters.batching.register_vmappable(
            Held, int, int, lambda go, index, x, axis: Held(go(x.data, axis), x.shared),
            lambda go, size, x, axis: Held(go(size, x.data, axis), x.shared), None)

    def run(j):
        held = j.vmap(lambda y: Held(y * 2, j.numpy.ones(2)))(j.numpy.arange(3.0))
        both = j.vmap(lambda h, y: Held(h.data * y + h.shared.sum(), h.shared), axis_size=3)(
            held, j.numpy.arange(3.0))
        return [held.data, held.shared, both.data, both.shared, j.vmap(lambda y: y + 1)(held.data)]
    agree(run)
