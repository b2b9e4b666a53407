"""Random programs under random stacks of transformations, against real JAX."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

import maxjax
import maxjax.lax
import maxjax.numpy
from maxjax._ir.check import check_jaxpr
from maxjax._runtime import cells
from maxjax._runtime import pending as pending_module
from maxjax._transforms.simplify import simplify
from tests.support import harness

Shape = tuple[int, ...]
MOST_ELEMENTS = 200


@dataclasses.dataclass(frozen=True)
class Step:
    """One operation on values computed earlier."""

    text: str
    run: Callable[..., Any]      # run(j, *operands)
    floats: tuple[int, ...] = ()
    integers: tuple[int, ...] = ()
    gives_integers: bool = False

    def __repr__(self) -> str:
        names = [f"x{n}" for n in self.floats] + [f"n{n}" for n in self.integers]
        return f"{self.text}({', '.join(names)})"


# Smooth and bounded, so that the two libraries can differ only by rounding.
UNARY = {
    "sin": lambda j, x: j.numpy.sin(x),
    "cos": lambda j, x: j.numpy.cos(x),
    "tanh": lambda j, x: j.numpy.tanh(x),
    "neg": lambda j, x: -x,
    "scaled": lambda j, x: x * 0.5 + 0.125,
    "integer scale": lambda j, x: 2 * x - 1,
    "bump": lambda j, x: j.numpy.exp(-x * x),
    "quotient": lambda j, x: x / (1 + x * x),
    "root": lambda j, x: j.numpy.sqrt(x * x + 1),
    "log1p": lambda j, x: j.numpy.log1p(x * x),
    "logistic": lambda j, x: j.lax.logistic(x),
    "square": lambda j, x: j.numpy.tanh(x) ** 2,
    "same": lambda j, x: x,
    "inner jit": lambda j, x: j.jit(lambda y: j.numpy.sin(y) * y)(x),
    "flat": lambda j, x: x.reshape(-1),
    "column": lambda j, x: x.reshape(-1, 1),
    "transposed": lambda j, x: j.numpy.transpose(x),
    "new axis": lambda j, x: x[None],
    "repeated": lambda j, x: j.numpy.broadcast_to(x, (2, *x.shape)),
    "sum": lambda j, x: j.numpy.sum(x),
}
ALONG_AXIS = {
    "sum": lambda j, x, axis: j.numpy.sum(x, axis=axis),
    "kept sum": lambda j, x, axis: j.numpy.sum(x, axis=axis, keepdims=True),
    "cumsum": lambda j, x, axis: j.numpy.cumsum(x, axis=axis),
    "flip": lambda j, x, axis: j.numpy.flip(x, axis),
    "roll": lambda j, x, axis: j.numpy.roll(x, 1, axis),
    "doubled": lambda j, x, axis: j.numpy.concatenate([x, x * 2], axis),
    "half": lambda j, x, axis: j.lax.slice_in_dim(x, 0, None, 2, axis),
    "moved": lambda j, x, axis: j.numpy.moveaxis(x, axis, 0),
    "expanded": lambda j, x, axis: j.numpy.expand_dims(x, axis),
    "padded": lambda j, x, axis: j.numpy.pad(
        x, [(1, 0) if n == axis % x.ndim else (0, 0) for n in range(x.ndim)]),
    "prod": lambda j, x, axis: j.numpy.prod(j.numpy.tanh(x) + 1.5, axis=axis),
}
WITH_ELEMENTS = {
    "mean": lambda j, x, axis: j.numpy.mean(x, axis=axis),
    "softmax": lambda j, x, axis: (lambda e: e / j.numpy.sum(e, axis=axis, keepdims=True))(
        j.numpy.exp(j.numpy.tanh(x))),
    "taken": lambda j, x, axis: j.numpy.take(
        x, np.array([0, x.shape[axis] - 1, 0], np.int32), axis=axis),
    "first": lambda j, x, axis: j.numpy.take(x, 0, axis=axis),
    "sorted": lambda j, x, axis: j.numpy.sort(x, axis=axis),
}
BINARY = {
    "add": lambda j, x, y: x + y,
    "sub": lambda j, x, y: x - y,
    "mul": lambda j, x, y: x * j.numpy.tanh(y),
    "where": lambda j, x, y: j.numpy.where(x > 0.3712, x, y),
    "maximum": lambda j, x, y: j.numpy.maximum(x, y + 0.3712),
    "tied maximum": lambda j, x, y: j.numpy.maximum(x + y, x + y),
}
INTEGER = {
    "add": lambda j, n: n + 1,
    "mul": lambda j, n: n * 3,
    "half": lambda j, n: n // 2,
    "rem": lambda j, n: n % 3,
    "xor": lambda j, n: n ^ 5,
    "wrap": lambda j, n: n * 1_000_003,
    "flipped": lambda j, n: n[::-1],
    "cumsum": lambda j, n: j.numpy.cumsum(n),
    "sorted": lambda j, n: j.numpy.sort(n),
}


def random_program(rng: random.Random) -> tuple[Shape, Shape, list[Step]]:
    """The shapes of two arguments, and steps whose last values are the results."""
    first = random_shape(rng)
    second = first if rng.random() < 0.5 else random_shape(rng)
    floats = [jax.ShapeDtypeStruct(first, np.float32), jax.ShapeDtypeStruct(second, np.float32)]
    integers = [jax.ShapeDtypeStruct((3,), np.int32)]
    steps: list[Step] = []
    count = rng.randint(10, 20)
    while len(steps) < count:
        step = random_step(rng, floats, integers)
        operands = [floats[n] for n in step.floats] + [integers[n] for n in step.integers]
        out = abstract(step, operands)
        if out.size > MOST_ELEMENTS or len(out.shape) > 4:
            continue
        (integers if step.gives_integers else floats).append(out)
        steps.append(step)
    return first, second, steps


def random_shape(rng: random.Random) -> Shape:
    rank = rng.choice((0, 1, 1, 2, 2, 2, 3))
    return tuple(rng.choice((0, 1, 1, 2, 2, 3, 3, 3, 3, 4)) for _ in range(rank))


def random_stack(rng: random.Random) -> list[str]:
    """At most two derivatives: a third one would be as large as all the rest."""
    while True:
        stack = [rng.choice(sorted(TRANSFORMS)) for _ in range(rng.choice((0, 1, 2, 2, 3, 3)))]
        if stack.count("grad") + stack.count("jvp") <= 2:
            return stack


def abstract(step: Step, operands: list[Any]) -> Any:
    """The shape of a result in maxjax; the tests check that JAX's is the same."""
    with_types = [maxjax.ShapeDtypeStruct(x.shape, x.dtype) for x in operands]
    out = maxjax.eval_shape(lambda *xs: step.run(maxjax, *xs), *with_types)
    return jax.ShapeDtypeStruct(out.shape, out.dtype)


def random_step(rng: random.Random, floats: list[Any], integers: list[Any]) -> Step:
    kind = rng.choice((
        "unary", "unary", "axis", "axis", "elements", "binary", "binary", "dot", "integer",
        "to float", "to integer", "index", "scatter"))
    number = max(rng.randrange(len(floats)) for _ in range(3))      # prefers a recent one
    shape = floats[number].shape
    if kind in ("axis", "elements") and shape:
        table = ALONG_AXIS if kind == "axis" or 0 in shape else WITH_ELEMENTS
        name = rng.choice(sorted(table))
        axis = rng.randrange(-len(shape), len(shape))
        return Step(f"{name}[{axis}]", lambda j, x: table[name](j, x, axis), (number,))
    if kind == "binary":
        fitting = [n for n, x in enumerate(floats) if broadcastable(shape, x.shape)]
        name = rng.choice(sorted(BINARY))
        return Step(name, BINARY[name], (number, rng.choice(fitting)))
    if kind == "dot" and len(shape) == 2:
        return Step("gram", lambda j, x: x @ x.T, (number,))
    if kind == "dot" and shape:
        return Step("dot", lambda j, x: j.numpy.tensordot(x, x, ([-1], [-1])), (number,))
    source = rng.randrange(len(integers))
    if kind == "integer":
        name = rng.choice(sorted(INTEGER))
        return Step(name, INTEGER[name], (), (source,), True)
    if kind == "to float":
        return Step("to float", lambda j, n: (n % 7).astype("float32") * 0.25, (), (source,))
    if kind == "to integer" and shape:
        return Step("to integer", lambda j, x: (x.reshape(-1) > 0.3712).astype("int32"), (number,),
                    (), True)
    if kind in ("index", "scatter") and shape and shape[0]:
        size = shape[0]
        if kind == "index":
            return Step("index", lambda j, x, n: x[n % size], (number,), (source,))
        return Step("scatter", lambda j, x, n: x.at[n % size].add(x[0] * 0.5), (number,), (source,))
    name = rng.choice(sorted(UNARY))
    return Step(name, UNARY[name], (number,))


def broadcastable(one: Shape, two: Shape) -> bool:
    return all(a == b or a == 1 or b == 1 for a, b in zip(one[::-1], two[::-1]))


def function_of(j: Any, steps: list[Step]) -> Callable[..., Any]:
    def fun(x, y, n):
        floats, integers = [j.numpy.asarray(x), j.numpy.asarray(y)], [j.numpy.asarray(n)]
        for step in steps:
            out = step.run(j, *[floats[k] for k in step.floats],
                           *[integers[k] for k in step.integers])
            (integers if step.gives_integers else floats).append(out)
        return floats[-1], {"before": floats[-2], "integers": integers[-1]}
    return fun


# --- transformations of functions of (x, y, n) ----------------------------------------------------

def with_jit(j, fun):
    return j.jit(fun)


def with_grad(j, fun):
    def total(x, y, n):
        leaves = [leaf for leaf in harness.leaves(fun(x, y, n)) if leaf.dtype == np.float32]
        return sum(j.numpy.sum(leaf) * (0.5 + 0.25 * k) for k, leaf in enumerate(leaves))
    return j.grad(total, argnums=(0, 1))


def with_jvp(j, fun):
    def pushed(x, y, n):
        (out, tangent) = j.jvp(lambda x, y: fun(x, y, n), (x, y), (x * 0.25 + 1, y - 0.5))
        return out, [t for t in harness.leaves(tangent) if t.dtype == np.float32]
    return pushed


def with_vmap(j, fun):
    def mapped(x, y, n):
        return j.vmap(fun, in_axes=(0, None, -1), out_axes=0)(
            j.numpy.stack([x, x * 0.5]), y, j.numpy.stack([n, n + 1], -1))
    return mapped


def with_vmap_of_second(j, fun):
    def mapped(x, y, n):
        return j.vmap(fun, in_axes=(None, -1, None), out_axes=-1)(
            x, j.numpy.stack([y, y * 0.5, -y], -1), n)
    return mapped


TRANSFORMS = {"jit": with_jit, "grad": with_grad, "jvp": with_jvp, "vmap": with_vmap,
              "vmap2": with_vmap_of_second}


def transformed(j, steps, stack):
    fun = function_of(j, steps)
    for name in reversed(stack):
        fun = TRANSFORMS[name](j, fun)
    return fun


def argument(shape: Shape, phase: float) -> np.ndarray:
    size = int(np.prod(shape))
    return np.sin(np.arange(size, dtype=np.float32) * 1.7 + phase).reshape(shape).astype(np.float32)


def assert_close(actual: Any, expected: Any) -> None:
    ours, theirs = harness.leaves(actual), harness.leaves(expected)
    assert jax.tree_util.tree_structure(actual) == jax.tree_util.tree_structure(expected)
    for a, e in zip(ours, theirs, strict=True):
        assert a.dtype == e.dtype and a.shape == e.shape
        a, e = np.asarray(a), np.asarray(e)
        if e.dtype.kind != "f":
            np.testing.assert_array_equal(a, e)
            continue
        scale = float(np.max(np.abs(e[np.isfinite(e)]), initial=1.0))
        np.testing.assert_allclose(a, e, rtol=2e-4, atol=2e-5 * scale)


def case(seed: int) -> tuple[list[Step], list[str], tuple[np.ndarray, ...]]:
    rng = random.Random(seed)
    first, second, steps = random_program(rng)
    stack = random_stack(rng)
    note(f"{'-'.join(stack)} of x0 {first}, x1 {second}: {steps}")
    return steps, stack, (
        argument(first, 0.5), argument(second, 2.0), np.array([2, 0, 1], np.int32))


# A smaller seed does not make a smaller program, so there is nothing to shrink.
PHASES = (Phase.explicit, Phase.generate)
SEEDS = st.integers(0, 1 << 32)


def check_beside_jax(seed):
    steps, stack, args = case(seed)
    expected = jax.jit(transformed(jax, steps, [t for t in stack if t != "jit"]))(*args)
    fun = transformed(maxjax, steps, stack)
    assert_close(fun(*args), expected)
    jitted = maxjax.jit(fun)
    assert_close(jitted(*args), expected)
    closed = jitted._lookup(args, {}).closed
    check_jaxpr(closed)
    check_jaxpr(simplify(closed))


@settings(max_examples=20, phases=PHASES)
@given(SEEDS)
def test_random_programs(seed):
    check_beside_jax(seed)


@pytest.mark.extended
@settings(max_examples=80, phases=PHASES)
@given(SEEDS)
def test_more_random_programs(seed):
    check_beside_jax(seed + (2 << 40))


@settings(max_examples=60, phases=PHASES)
@given(SEEDS)
def test_eager_lazy_heavy_and_jitted_are_one(seed):
    """maxjax against itself, without compiling: more programs in less time."""
    steps, stack, args = case(seed + (1 << 40))
    fun = transformed(maxjax, steps, stack)
    jitted = maxjax.jit(fun)(*args)
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in ((cells, "LIGHT_BYTES", -1), (cells, "LIGHT_BYTES", 1 << 40),
                                    (pending_module, "MAX_OPERATIONS", 0)):
            patch.setattr(module, name, value)
            assert_close(fun(*args), jitted)
