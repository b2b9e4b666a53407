"""dynamic_dims: one trace and one compile for all sizes, and errors where that is impossible."""

from __future__ import annotations

import collections
import gc
import math
import sys
import types

import jax
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax, nn
from maxjax._base import config
from maxjax._ir import types as ir_types
from maxjax._runtime.program import program_of
from maxjax._runtime.tiering import tiering
from maxjax.errors import DynamicSizeError

SIZES = (6, 4, 9, 17, 65, 1, 0)
BATCH = {0: {0: "batch"}}
W = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)


def rows(count, width=3):
    return np.sin(np.arange(count * width, dtype=np.float32) * 7).reshape(count, width)


def counted(function):
    """The function, and a list that grows with each run."""
    runs = []

    def call(*args, **kwargs):
        runs.append(1)
        return function(*args, **kwargs)
    return call, runs


def classifier(x):
    labels = jnp.arange(x.shape[0]) % 5

    def loss(w):
        scores = nn.log_softmax(jnp.tanh(x @ w))
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], axis=1))
    return maxjax.value_and_grad(loss)(jnp.asarray(W))


FUNCTIONS = {
    "classifier": classifier,
    "one_hot": lambda x: jnp.sum(nn.one_hot(jnp.argmax(x, 1), 3) * nn.softmax(x)),
    "moments": lambda x: (x.mean(), x.var(0), x.std(), jnp.cov(x.T), jnp.average(x, axis=0)),
    "normalize": lambda x: (x - x.mean(0)) / (x.std(0) + 1e-5),
    "reshapes": lambda x: (x.reshape(-1), x.reshape(x.shape[0] * 3), x.reshape(3, -1), x.ravel(),
                           x.reshape(x.shape[0], 1, -1), x.T, x[..., None]),
    "distances": lambda x: jnp.sum((x[:, None] - x[None]) ** 2, -1),
    "slices": lambda x: (x[1:], x[:-1], x[::2], x[::-1], x[-1:], x[:x.shape[0] // 2]),
    "joins": lambda x: (jnp.concatenate([x, x]), jnp.stack([x, x]), jnp.tile(x, (2, 1)),
                        jnp.repeat(x, 2, axis=0), jnp.pad(x, ((1, 1), (0, 0)))),
    "order": lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0), jnp.flip(x, 0), jnp.cumsum(x, 0)),
    "creation": lambda x: (jnp.zeros(x.shape), jnp.ones_like(x), jnp.arange(x.shape[0]),
                           jnp.eye(x.shape[0]), jnp.full((2, x.shape[0]), 3)),
    "mask": lambda x: jnp.tril(jnp.ones((x.shape[0],) * 2)) * (x @ x.T),
    "products": lambda x: (x @ x.T, jnp.einsum("bi,bj->ij", x, x), x.T @ x),
    "vmap": lambda x: maxjax.vmap(maxjax.grad(lambda row: jnp.sum(row ** 2)))(x),
    "jacobian": lambda x: maxjax.jacfwd(lambda v: v ** 2)(x[:, 0]),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c.sum()), jnp.zeros(3), x),
    "fori": lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + i, jnp.zeros(3)),
    "while": lambda x: lax.while_loop(lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, c[1] * 2),
                                      (0, jnp.float32(1))),
    "cond": lambda x: lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x),
    "updates": lambda x: (x.at[:, 1].add(2.0), x.at[:, 0].set(x[:, 1]), x.at[::2].mul(3.0),
                          x.at[::-2, 0].add(1.0), x.at[1:, jnp.array([0, 2])].set(0.0)),
    "gather": lambda x: (x[jnp.arange(x.shape[0]), 0], x[np.array([0, -1])], x[-1],
                         x[x.shape[0] - 2], x[:, np.array([2, 0])], x[::2, jnp.array([1, 0])]),
    "arithmetic": lambda x: (x / x.shape[0], x * x.shape[0] ** 0.5, x + jnp.sqrt(x.shape[0]),
                             1 / (x.shape[0] + 1), x.sum() / (x.size + 1)),
    "size as a result": lambda x: (x.shape[0], jnp.asarray(x.shape[0]) * 2),
    "random": lambda x: (maxjax.random.normal(maxjax.random.key(0), x.shape),
                         maxjax.random.split(maxjax.random.PRNGKey(1), x.shape[0] + 2)),
    "inner jit": lambda x: maxjax.jit(lambda y, n: y * n, static_argnums=1)(x, x.shape[0]),
    "checkpoint": lambda x: maxjax.grad(
        maxjax.checkpoint(lambda v: jnp.sin(jnp.sin(v)).sum()))(x),
    "custom_jvp": lambda x: (nn.relu(x), maxjax.grad(lambda v: nn.gelu(v).sum())(x)),
}


def equal(ours, theirs):
    ours, theirs = maxjax.tree.leaves(ours), maxjax.tree.leaves(theirs)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.aval is other.aval
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(other))


def test_types_of_dynamic_sizes_die_anywhere(monkeypatch):
    """Also where a user's code runs, which may not have the sizes' hashes."""
    problems, kept = [], []
    monkeypatch.setattr(sys, "unraisablehook", problems.append)

    def function(x):
        cycle = types.SimpleNamespace(type=maxjax.typeof(jnp.concatenate([x] * 7)))
        cycle.itself = cycle
        kept.append(cycle)
        return x.sum()

    maxjax.jit(function, dynamic_dims=BATCH)(rows(5))
    shape = kept[0].type.shape
    del function
    maxjax.clear_caches()
    ir_types._recent.clear()
    assert any(known[0] is shape for known in ir_types._all)
    kept.clear()
    gc.collect()
    assert not problems and not any(known[0] is shape for known in ir_types._all)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_trace_gives_what_a_trace_of_each_size_gives(name):
    function, runs = counted(FUNCTIONS[name])
    dynamic = maxjax.jit(function, dynamic_dims=BATCH)
    for size in SIZES:
        x = rows(size)
        try:
            expected = maxjax.jit(FUNCTIONS[name])(x)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            assert size < 2, error
            with pytest.raises(type(error)):
                dynamic(x)
            continue
        equal(dynamic(x), expected)
        if size >= 2:
            assert len(runs) == 1


def test_against_jax():
    def function(j, x):
        return j.numpy.tanh(x[1:] - x.mean(0)) @ W / x.shape[0]
    dynamic = maxjax.jit(lambda x: function(maxjax, x), dynamic_dims=BATCH)
    for size in SIZES[:5]:
        np.testing.assert_allclose(
            np.asarray(dynamic(rows(size))),
            np.asarray(jax.jit(lambda x: function(jax, x))(rows(size))), rtol=1e-5, atol=1e-6)


# --- no new kernels -------------------------------------------------------------------------------

def test_a_larger_size_needs_no_new_kernel():
    """It may need fewer for many short rows, which are for the vector machine."""
    dynamic = maxjax.jit(classifier, dynamic_dims=BATCH)
    kernels = []
    for size in (6, 33, 128):
        program = program_of(dynamic._lookup((rows(size),), {}).closed)
        assert tiering.prepare(program), program.reason
        kernels.append({kernel for plan in program.prepared.plans.values()
                        for kernel in plan.kernels})
    assert kernels[0] >= kernels[1] >= kernels[2]
    assert len(kernels[2]) > 1


@pytest.mark.tier1
@pytest.mark.xdist_group("mojo")
def test_another_size_compiles_nothing(monkeypatch):
    function, runs = counted(classifier)
    dynamic = maxjax.jit(function, dynamic_dims=BATCH)
    with config.compile_mode("always"):
        dynamic(rows(6))[0].block_until_ready()
        store = tiering.backends["mojo"].store
        monkeypatch.setattr(store, "request", lambda *a: pytest.fail("a kernel is compiled"))
        for size in (9, 64):
            x = rows(size)
            loss, gradient = dynamic(x)
            with config.compile_mode("never"):
                want_loss, want_gradient = map(np.asarray, classifier(x))
            np.testing.assert_allclose(float(loss), float(want_loss), rtol=1e-5)
            np.testing.assert_allclose(
                np.asarray(gradient), np.asarray(want_gradient), rtol=1e-4, atol=1e-6)
    statistics = maxjax.debug.statistics(dynamic)
    assert statistics.compiled_calls == 3 and len(runs) == 1


def test_programs_of_a_trace_share_what_makes_them_hot():
    dynamic = maxjax.jit(lambda x: jnp.sin(x), dynamic_dims=BATCH)
    dynamic(rows(4))
    first = program_of(dynamic._lookup((rows(4),), {}).closed)
    assert first.heat > 0
    assert program_of(dynamic._lookup((rows(5),), {}).closed).heat == first.heat


# --- control flow on sizes ------------------------------------------------------------------------

def test_a_comparison_is_a_guard():
    """A size on the other side of a comparison traces the function again."""
    def scaled(x):
        return x * 2 if x.shape[0] > 8 else x - 1

    function, runs = counted(scaled)
    dynamic = maxjax.jit(function, dynamic_dims=BATCH)
    for size, traces in ((4, 1), (6, 1), (8, 1), (9, 2), (100, 2), (5, 2)):
        np.testing.assert_array_equal(np.asarray(dynamic(rows(size))), scaled(rows(size)))
        assert len(runs) == traces


@pytest.mark.parametrize("choose", [
    lambda n: n % 4 == 0, lambda n: n // 3 > 2, lambda n: min(n, 7) == 7, lambda n: n * n < 50,
    lambda n: n.bit_length() == 3 if hasattr(n, "bit_length") else False, lambda n: 5 <= n,
    lambda n: n < 4.5, lambda n: bool(n - 5), lambda n: n == 5.0, lambda n: -n > -6,
    lambda n: divmod(n, 2)[1], lambda n: max(3, n - 2) == 3, lambda n: abs(n - 6) > 2])
def test_guards_of_every_kind(choose):
    dynamic = maxjax.jit(lambda x: x + 1 if choose(x.shape[0]) else x - 1, dynamic_dims=BATCH)
    for size in (4, 5, 3, 12, 8, 7, 50):
        want = rows(size) + 1 if choose(size) else rows(size) - 1
        np.testing.assert_array_equal(np.asarray(dynamic(rows(size))), want)


@pytest.mark.parametrize("use", [
    lambda n: sum(1 for _ in range(n)), lambda n: math.log2(n), lambda n: int(n),
    lambda n: float(n), lambda n: [0] * n, lambda n: np.zeros(n), lambda n: {4: 1}.get(n),
    lambda n: n in {4, 8}, lambda n: np.arange(3)[:n], lambda n: np.sqrt(n) + np.asarray(n),
    lambda n: f"{n:d}", lambda n: hash(n), lambda n: collections.Counter([n]),
    lambda n: math.gcd(n, 4), lambda n: "ab"[n:]])
def test_a_size_as_a_number_is_an_error(use):
    """Functions with branches invisible to the trace must not be traced."""
    dynamic = maxjax.jit(lambda x: x * (use(x.shape[0]) is None), dynamic_dims=BATCH)
    with pytest.raises((DynamicSizeError, TypeError)) as caught:
        dynamic(rows(4))
    assert not dynamic._cache_size()
    if isinstance(caught.value, DynamicSizeError):
        assert "batch" in str(caught.value) and "test_dynamic_dims.py" in str(caught.value)


def test_an_error_that_was_caught_counts():
    def function(x):
        try:
            return x * len(x)
        except TypeError:
            return x
    with pytest.raises(DynamicSizeError, match="batch"):
        maxjax.jit(function, dynamic_dims=BATCH)(rows(4))


def test_equal_sizes_by_accident():
    """A constant that has the size of the first call fits no other."""
    dynamic = maxjax.jit(lambda x: x + np.ones((4, 1), np.float32), dynamic_dims=BATCH)
    np.testing.assert_array_equal(np.asarray(dynamic(rows(4))), rows(4) + 1)
    with pytest.raises((TypeError, ValueError), match="roadcast|shapes"):
        dynamic(rows(5))


def test_two_symbols_that_must_be_equal():
    function, runs = counted(lambda x, y: x + y)
    dynamic = maxjax.jit(function, dynamic_dims={0: {0: "n"}, 1: {0: "m"}})
    np.testing.assert_array_equal(np.asarray(dynamic(rows(4), rows(4))), rows(4) * 2)
    np.testing.assert_array_equal(np.asarray(dynamic(rows(7), rows(7))), rows(7) * 2)
    assert len(runs) == 1
    np.testing.assert_array_equal(np.asarray(dynamic(rows(5), rows(1))), rows(5) + rows(1))
    with pytest.raises((TypeError, ValueError), match="shapes"):
        dynamic(rows(4), rows(5))


# --- arguments ------------------------------------------------------------------------------------

def test_a_shared_symbol():
    dynamic = maxjax.jit(lambda x, y: x @ y, dynamic_dims={"x": {1: "k"}, 1: {0: "k"}})
    for size in (3, 5):
        dynamic(np.ones((2, size)), np.ones((size, 4)))
    assert len(dynamic._dynamic.variants) == 1
    message = ("dimension 0 of the argument y is 'k', which is 3 by dimension 1 of the argument x: "
               "needed 3, got 4")
    with pytest.raises(ValueError, match=message):
        dynamic(np.ones((2, 3)), np.ones((4, 4)))


def test_pytrees_keywords_and_static_arguments():
    function, runs = counted(lambda batch, flag, *, scale: (batch["x"] * scale, flag))
    for dims in ({0: {0: "b"}, "scale": {-1: "b"}},
                 {0: {"x": {0: "b"}, "y": None}, "scale": {0: "b"}}):
        runs.clear()
        dynamic = maxjax.jit(function, static_argnums=1, dynamic_dims=dims)
        for size in (3, 5, 8):
            out, _ = dynamic({"x": rows(size, 1)[:, 0], "y": rows(size)}, True,
                             scale=rows(size, 1)[:, 0])
            assert out.shape == (size,)
        assert len(runs) == 1 or dims[0] != {0: "b"}
    dynamic = maxjax.jit(lambda n, x: x * n, static_argnums=0, dynamic_dims={"x": {0: "b"}})
    assert dynamic(3, rows(4)).shape == (4, 3) and dynamic(3, rows(5)).shape == (5, 3)
    assert dynamic(3, x=rows(6)).shape == (6, 3)


@pytest.mark.parametrize("dims,error,match", [
    ("batch", TypeError, "dynamic_dims must map"),
    ({0: "batch"}, TypeError, "map dimensions to symbols"),
    ({0: {0: 3}}, ValueError, "name of a symbol"),
    ({0: {0: "2*n"}}, ValueError, "name of a symbol"),
    ({0.5: {0: "n"}}, TypeError, "positions or names"),
])
def test_bad_specifications(dims, error, match):
    with pytest.raises(error, match=match):
        maxjax.jit(lambda x: x, dynamic_dims=dims)


def test_specifications_that_do_not_fit():
    with pytest.raises(ValueError, match=r"dimension 1 of the argument x 'n'.*shape \(3,\)"):
        maxjax.jit(lambda x: x, dynamic_dims={0: {1: "n"}})(np.ones(3))
    with pytest.raises(ValueError, match="does not fit the structure of argument 0"):
        maxjax.jit(lambda x: x, dynamic_dims={0: {"a": {0: "n"}}})({"b": np.ones(3)})


# --- with the rest of jit -------------------------------------------------------------------------

def test_dtypes_and_options_have_traces_of_their_own():
    function, runs = counted(lambda x: x * x.shape[0])
    dynamic = maxjax.jit(function, dynamic_dims=BATCH)
    for dtype in (np.float32, np.int32):
        for size in (3, 4, 5):
            assert dynamic(rows(size).astype(dtype)).dtype == dtype
    assert len(runs) == 2
    with config.enable_x64(True):
        for size in (3, 4):
            assert dynamic(rows(size).astype(np.float64)).dtype == np.float64
    assert len(runs) == 3
    dynamic.clear_cache()
    dynamic(rows(3))
    assert len(runs) == 4


def test_under_transformations():
    dynamic = maxjax.jit(lambda x: jnp.sum(x ** 2) / x.shape[0], dynamic_dims=BATCH)
    for size in (3, 5):
        np.testing.assert_allclose(
            np.asarray(maxjax.grad(dynamic)(rows(size))), 2 * rows(size) / size, rtol=1e-6)
        assert maxjax.vmap(dynamic)(np.ones((2, size, 3))).shape == (2,)
        assert maxjax.jit(lambda x: dynamic(x) + 1)(rows(size)).shape == ()


def test_ahead_of_time_and_shapes():
    function, runs = counted(lambda x: x[1:])
    dynamic = maxjax.jit(function, dynamic_dims=BATCH)
    for size in (4, 6):
        struct = maxjax.ShapeDtypeStruct((size, 3), np.float32)
        assert dynamic.eval_shape(struct).shape == (size - 1, 3)
        assert str(size) in str(dynamic.trace(struct).jaxpr)
        assert dynamic.lower(struct).compile()(rows(size)).shape == (size - 1, 3)
    assert len(runs) == 1


def test_callbacks_and_donation():
    def function(x):
        return maxjax.pure_callback(
            lambda v: np.asarray(v) + 1, maxjax.ShapeDtypeStruct(x.shape, x.dtype), x)
    dynamic = maxjax.jit(function, dynamic_dims=BATCH, donate_argnums=0)
    for size in (4, 6):
        x = jnp.asarray(rows(size))
        np.testing.assert_array_equal(np.asarray(dynamic(x)), rows(size) + 1)
        assert x.is_deleted()


def test_many_sizes_are_not_all_kept(monkeypatch):
    monkeypatch.setattr("maxjax._higher_order.entries.MAX_SIZES", 8)
    dynamic = maxjax.jit(lambda x: x + 1, dynamic_dims=BATCH)
    for size in range(2, 40):
        assert dynamic(rows(size)).shape == (size, 3)
    assert dynamic._cache_size() <= 8


# --- symbolic sizes -------------------------------------------------------------------------------

def test_sizes_are_shown_as_expressions():
    seen = []

    def function(x):
        n = x.shape[0]
        seen.extend(map(str, (n, 2 * n + 1, n * n - n, (4 * n) // 2, n // 2, n % 2, -n, x.aval,
                              (n * 6) // n)))
        return x
    maxjax.jit(function, dynamic_dims=BATCH)(rows(4))
    assert seen == ["batch", "2*batch + 1", "batch^2 - batch", "2*batch", "floordiv(batch, 2)",
                    "mod(batch, 2)", "- batch", "float32[batch,3]", "6"]
