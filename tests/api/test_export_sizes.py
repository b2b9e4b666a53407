"""jax.export with symbolic sizes: texts, comparisons and equalities, and calls with any size."""

from __future__ import annotations

import functools

import jax
import jax.export as jax_export
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import export
from maxjax._base.errors import InconclusiveDimensionOperation
from tests.api.test_export import W, X, same, symbolic, total
from tests.support.against_jax import assert_tree_same, first_line

SYMBOLIC = {
    "mlp": (lambda j, x: j.nn.log_softmax(j.numpy.tanh(x @ W)), ("b, 3",)),
    "mean": (lambda j, x: x.sum(0) / x.shape[0] + x.shape[0], ("b, 3",)),
    "flat": (lambda j, x: j.numpy.concatenate([x.reshape(-1), x[0]]), ("b, 3",)),
    "slices": (lambda j, x: (x[1:], x[:-1], x[::-1], x[::2]), ("b, 3",)),
    "scan": (lambda j, x: j.lax.scan(lambda c, y: (c + y, c * y), j.numpy.zeros(3), x), ("b, 3",)),
    "einsum": (lambda j, x: j.numpy.einsum("ij,kj->ik", x, x), ("b, 3",)),
    "two": (lambda j, x, y: x[:, None] * y, ("b", "c")),
    "pairs": (lambda j, x, y: x.reshape(y.shape[0], 2) * y[:, None], ("2*b", "b")),
    "padded": (lambda j, x: j.numpy.pad(x, ((1, 1), (0, 0))), ("b + 1, 3",)),
    "arange": (lambda j, x: x + j.numpy.arange(x.shape[0]), ("b",)),
    "split": (lambda j, x: j.numpy.split(x, 2), ("2*b, 3",)),
    "rolled": (lambda j, x: (j.numpy.roll(x, 2, 0), j.numpy.roll(x, -1)), ("b, 3",)),
    "clipped slices": (lambda j, x: (x[:3], x[2:], x[-3:], x[1:-1], x[2::3], x[3:0:-1]), ("b",)),
    "clipped integers": (lambda j, x: (x[3], x[-4]), ("b",)),
    "dropped updates": (lambda j, x: (x.at[3].set(9), x.at[-4].set(9), x.at[:2].set(9),
                                      x.at[2:].add(1)), ("b",)),
    "slices by sizes": (lambda j, x: (
        j.lax.slice_in_dim(x, 0, x.shape[0] // 2), j.lax.slice_in_dim(x, -1, None),
        j.lax.dynamic_slice(x, (1,), (x.shape[0] - 1,))), ("b + 1",)),
    "pads by sizes": (lambda j, x: (
        j.numpy.pad(x, (1, x.shape[0])), j.numpy.pad(x, x.shape[0]),
        j.lax.pad(x, 0.0, [(1, 1, 1)])), ("b",)),
    "repeated": (lambda j, x: j.numpy.repeat(x, x.shape[0]), ("b",)),
    "variance": (lambda j, x: j.numpy.var(x, ddof=1), ("b + 2",)),
    "windows": (lambda j, x: (
        j.lax.reduce_window(x, 0.0, j.lax.add, (3,), (2,), "SAME"),
        j.lax.reduce_window(x, 0.0, j.lax.add, (3,), (2,), "VALID")), ("b + 2",)),
    "convolutions": (lambda j, x: (
        j.lax.conv_general_dilated(x[None, None], j.numpy.ones((1, 1, 3)), (2,), "SAME"),
        j.lax.conv_general_dilated(x[None, None], j.numpy.ones((1, 1, 3)), (2,), "VALID")),
        ("b + 2",)),
    "inserted": (lambda j, x: j.numpy.insert(x, 1, 5.0), ("b",)),
    "classes": (lambda j, x: x * j.nn.one_hot(j.numpy.arange(x.shape[0]), x.shape[0]), ("b",)),
    "sorted": (lambda j, x: j.lax.top_k(x, x.shape[0])[0], ("b",)),
    "segments": (lambda j, x: j.ops.segment_sum(
        x, j.numpy.arange(x.shape[0]) // 2, x.shape[0]), ("b",)),
    "singular values": (lambda j, x: j.numpy.linalg.svd(x, compute_uv=False), ("b, 3",)),
    "resized": (lambda j, x: (j.image.resize(x, (3,), "linear"),
                              j.image.resize(x, (2 * x.shape[0],), "nearest")), ("b",)),
    "cropped transform": (lambda j, x: j.numpy.abs(j.numpy.fft.fft(x, 4)), ("b",)),
    "ranges": (lambda j, x: (x[0] * j.numpy.arange(1, x.shape[0]),
                             x[0] * j.numpy.arange(x.shape[0], 0, -2)), ("b",)),
    "filled": (lambda j, x: (
        j.numpy.resize(x, 7), j.numpy.resize(x, (2, x.shape[0])),
        j.numpy.resize(x, x.shape[0] + 1)), ("b",)),
    "tiled": (lambda j, x: (j.numpy.tile(x, x.shape[0]), j.numpy.tile(x, (2, x.shape[0]))),
              ("b",)),
    "pads with edges": (lambda j, x: (
        j.numpy.pad(x, (1, 2), "edge"), j.numpy.pad(x, (x.shape[0], x.shape[0] - 1), "edge"),
        j.numpy.pad(x[:1], (0, x.shape[0]), "edge")), ("b",)),
    "pads with statistics": (lambda j, x: [
        j.numpy.pad(x, pair, mode) for mode in ("maximum", "minimum", "mean", "median")
        for pair in ((1, 2), (0, x.shape[0]))], ("b + 1",)),
    "pads with other elements": (lambda j, x: [
        j.numpy.pad(x, pair, mode) for mode in ("wrap", "reflect", "symmetric")
        for pair in ((1, 3), (4, 0), (x.shape[0], 2 * x.shape[0]))], ("b + 1",)),
    "pads of both axes": (lambda j, x: j.numpy.pad(
        x, ((1, 2), (2, 1)), "symmetric"), ("b, 3",)),
    "traces": (lambda j, x: (j.numpy.trace(x), j.numpy.trace(x, 1), j.numpy.trace(x, -1, 1, 0)),
               ("b, 3",)),
    "counts": (lambda j, x: x[0] * j.numpy.bincount(
        j.numpy.arange(x.shape[0]) // 2, weights=x, length=x.shape[0]), ("b",)),
    "extremes": (lambda j, x: x * j.core.max_dim(x.shape[0], 3) + j.core.min_dim(3, x.shape[0]),
                 ("b",)),
}
# Types with maxima and minima print as JAX prints them.
PRINTED = ["clipped slices", "slices by sizes", "pads by sizes", "tiled", "pads with edges",
           "pads with statistics", "traces", "counts"]


@pytest.mark.parametrize("name", PRINTED)
def test_symbolic_types(name):
    function, (text,) = SYMBOLIC[name]
    ours, theirs = (symbolic(j, text, functools.partial(function, j)) for j in (maxjax, jax))
    assert list(map(str, ours.out_avals)) == list(map(str, theirs.out_avals))


def test_extremes_of_sizes():
    def texts(module, core):
        a, b = module.symbolic_shape("a, b", constraints=["a >= b", "b >= 2"])
        c, = module.symbolic_shape("max(c, 3)")
        return str([core.max_dim(a, b), core.min_dim(a, b), core.max_dim(b, 2), core.max_dim(b, 3),
                    core.min_dim(a, 2 * b), core.max_dim(a - b, 0), core.min_dim(4, 5), c + 1,
                    c >= 3])

    assert texts(export, maxjax.core) == texts(jax_export, jax.core)


@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes_take_any_batch_after_loading(name):
    function, texts = SYMBOLIC[name]
    scope = export.SymbolicScope()
    specs = [maxjax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), np.float32)
             for text in texts]
    exported = export.export(maxjax.jit(lambda *xs: function(maxjax, *xs)))(*specs)
    loaded = export.deserialize(exported.serialize(vjp_order=1))
    assert list(map(str, loaded.out_avals)) == list(map(str, exported.out_avals))
    # Under jit, where JAX compiles a program and not each operation.
    in_jax = jax.jit(lambda *xs: (function(jax, *xs), jax.grad(
        lambda *xs: total(jax, lambda _: function(jax, *xs))(None))(*xs)))
    for batch in (1, 2, 5):
        args = [np.cos(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape) for shape in (
            [size if isinstance(size, int) else size.value({"b": batch, "c": 3})
             for size in spec.shape] for spec in specs)]
        values, slopes = in_jax(*args)
        same(maxjax.tree.map(np.asarray, loaded.call(*args)), jax.tree.map(np.asarray, values))
        found = maxjax.grad(lambda *xs: total(maxjax, lambda _: loaded.call(*xs))(None))(*args)
        same(np.asarray(found), np.asarray(slopes), rtol=1e-4)


SHAPES = ["a, 2*b, 3", "a*b", "a^2", "floordiv(a, 2)", "3*a*b - 1", "(a, b)", "(a)", "a,", ""]


@pytest.mark.parametrize("text", SHAPES)
def test_shapes_read_as_in_jax(text):
    assert str(export.symbolic_shape(text)) == str(jax_export.symbolic_shape(text))


@pytest.mark.parametrize("text", ["a b", "2a", "a+", "a//2", "1.5", "a, _", "f(a)"])
def test_shapes_that_cannot_be_read(text):
    for module in (export, jax_export):
        with pytest.raises(ValueError, match="syntax error in symbolic shape"):
            module.symbolic_shape(text)


@pytest.mark.parametrize("question", [
    "a >= 1", "a > 0", "a + 1 > a", "a == a", "a == 3", "a - 1 >= 0", "a*b >= 1", "a // 2 >= 0",
    "a % 3 < 3", "a % 3 >= 0", "c >= 2", "c + a >= 4", "d <= 9", "2*d < 20", "d >= c - 3",
    "a >= 2", "a > b", "c >= 4", "a // 2 >= 1", "a != b"])
def test_comparisons(question):
    def ask(module):
        names = module.symbolic_shape("a, b, c, d", constraints=["c >= 3", "d <= 9", "d >= c"])
        try:
            return eval(question, dict(zip("abcd", names, strict=True)))
        except Exception as error:
            return type(error).__name__

    assert ask(export) == ask(jax_export)


EQUALITIES = [["a == 2*b"], ["2*b == a"], ["a*b == c"], ["a == c + 1"], ["b == a"], ["a == 3"],
              ["floordiv(a, b) == c"], ["mod(a, 2) == 0"], ["2*a == 6"], ["a == 2*b", "b >= 3"],
              ["b == c", "a == b"], ["a^2 == b"], ["a == b", "b == a"], []]
EXPRESSIONS = ["a", "b", "a + b", "a - 2*b", "2*a + 1", "4*b", "a*b", "a*a*b", "a*b*c", "a // 2",
               "2*(a // 2)", "a % 2", "a // b", "b - a", "a == 2*b", "a >= b", "a > b", "b >= 4",
               "b < 5", "b*c - 1", "(a + 1) % 3", "2 * (c % 3) - 1"]


@pytest.mark.parametrize("constraints", EQUALITIES, ids=", ".join)
def test_equalities_rewrite_sizes(constraints):
    def look(module):
        names = module.symbolic_shape("a, b, c", constraints=constraints)
        found = {}
        for text in EXPRESSIONS:
            try:
                found[text] = str(eval(text, dict(zip("abc", names, strict=True))))
            except Exception as error:
                found[text] = type(error).__name__, first_line(error)
        return str(names), found

    assert look(export) == look(jax_export)


def test_equalities_of_arguments():
    def use(j, module, shape):
        a, b, c = module.symbolic_shape("a, b, c", constraints=["a*b == c", "mod(a, 2) == 0"])
        exported = module.export(j.jit(lambda x, y: (
            x.reshape(a // 2, 2, b), x.reshape(-1) + y)))(
            j.ShapeDtypeStruct((a, b), np.float32), j.ShapeDtypeStruct((c,), np.float32))
        if module is export:
            exported = export.deserialize(exported.serialize())
        try:
            results = exported.call(np.ones(shape[:2], np.float32), np.ones(shape[2], np.float32))
        except ValueError as error:
            results = str(error).split(" Please see")[0]
        return str(exported.out_avals), str(j.tree.map(j.numpy.shape, results))

    for shape in [(2, 3, 6), (2, 3, 5), (3, 2, 6)]:
        assert use(maxjax, export, shape) == use(jax, jax_export, shape)


@pytest.mark.parametrize("text", ["a + 1 == b", "3 == a", "3 == 4", "a == a + 1"])
def test_equalities_that_are_refused(text):
    for module in (export, jax_export):
        with pytest.raises(ValueError, match="Invalid equality|Unsatisfiable explicit"):
            module.symbolic_shape("a, b", constraints=[text])


def test_sizes_are_no_numbers():
    size, = export.symbolic_shape("b")
    with pytest.raises(InconclusiveDimensionOperation, match="Symbolic dimension 'b' used in"):
        int(size)
    for use in (range, float, np.asarray, lambda n: [0][n]):
        with pytest.raises(TypeError, match="Symbolic dimension 'b' used in"):
            use(size)


def test_call_with_symbolic_sizes():
    inner = symbolic(maxjax, "b", lambda x: x[1:])
    outer = symbolic(maxjax, "c", lambda x: inner.call(jnp.concatenate([x, x])))
    assert str(outer.out_avals) == "(ShapedArray(float32[2*c - 1]),)"
    assert outer.call(X[0]).shape == (5,)


def test_args_specs():
    specs = export.symbolic_args_specs(({"a": X}, X[0]), ({"a": "b, ..."}, None))
    theirs = jax_export.symbolic_args_specs(({"a": X}, X[0]), ({"a": "b, ..."}, None))
    assert str(specs) == str(theirs)

# --- sizes in arithmetic with floats and NumPy arrays ---------------------------------------------

SIZES = {
    "float": lambda np_, n: n * 1.5,
    "from a float": lambda np_, n: 1.0 - n,
    "float quotient": lambda np_, n: (n + 1.0) // 2,
    "quotient by a float": lambda np_, n: divmod(n, 1.5),
    "quotient of a float": lambda np_, n: divmod(7.5, n),
    "complex": lambda np_, n: n * 2j,
    "array": lambda np_, n: np.ones(2) * n,
    "array of integers": lambda np_, n: n - np.array([5, 3]),
    "short integers": lambda np_, n: np.array([1, 2], np.int16) + n,
    "quotient of an array": lambda np_, n: np.array([5, 3]) // n,
    "remainder": lambda np_, n: n % np.array([2, 3]),
    "booleans": lambda np_, n: np.array([True, False]) * n,
    "NumPy scalars": lambda np_, n: (np.float32(2) * n, n * np.float16(2)),
    "in an expression": lambda np_, n: np_.arange(3.) * (n // 2 * 0.5),
}


@pytest.mark.parametrize("name", SIZES)
def test_symbolic_sizes_among_floats_and_arrays(name):
    def answer(j, exports):
        kind = j.ShapeDtypeStruct(exports.symbolic_shape("n"), np.float32)
        exported = exports.export(j.jit(lambda x: SIZES[name](j.numpy, x.shape[0])))(kind)
        return exported.call(np.zeros(5, np.float32))

    assert_tree_same(answer(maxjax, export), answer(jax, jax_export))
