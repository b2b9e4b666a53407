"""The top level against JAX: jaxprs, shapes, stages, Jacobians, placement; checks of the IR."""

import types

import jax
import numpy as np
import pytest

import maxjax
import maxjax.nn
import maxjax.random
from maxjax._base.errors import InternalError
from maxjax._ir.check import check_jaxpr
from maxjax._ir.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import add_p
from maxjax._transforms.batching import batch_jaxpr
from maxjax._transforms.jvp import jvp_jaxpr
from maxjax._transforms.linearize import linearize_jaxpr
from maxjax._transforms.simplify import simplify
from maxjax._transforms.transpose import transpose_jaxpr

LIBRARIES = (maxjax, jax)
ONES = np.ones((2, 3), np.float32)


def programs(j):
    jnp = j.numpy
    double = j.jit(lambda x: x * 2)

    @j.custom_jvp
    def custom(x, y):
        return x * y

    custom.defjvps(lambda t, ans, x, y: 2 * t * y, None)
    return {
        "one line": (lambda x: jnp.sin(x) * 2, 1.0),
        "sum": (lambda x: x.sum(axis=0), ONES),
        "convert": (lambda x: x.astype(jnp.int32), ONES),
        "jit": (double, np.ones(3, np.float32)),
        "shared": (lambda x: double(double(x)) + double(x), np.ones(3, np.float32)),
        "grad": (j.grad(lambda x: jnp.sin(x) * 2), 1.0),
        "relu": (j.nn.relu, 1.0),
        "relu of relu": (lambda x: j.nn.relu(j.nn.relu(x)), 1.0),
        "softmax": (j.nn.softmax, np.ones(3, np.float32)),
        "custom": (custom, 2.0, 3.0),
        "custom in jit": (j.jit(custom), 2.0, 3.0),
        "custom in vmap": (j.vmap(custom), np.ones(3, np.float32), np.ones(3, np.float32)),
        "grad of custom": (j.grad(custom), 2.0, 3.0),
        "gelu": (j.nn.gelu, ONES), "silu": (j.nn.silu, ONES), "elu": (j.nn.elu, ONES),
        "no operands": (lambda: jnp.ones(3),),
        "several": (lambda x, y: {"a": x + y, "b": (x, 1.0)}, 1.0, 2.0),
        "split": (lambda k: j.random.split(k), j.random.key(0)),
        "seed": (lambda i: j.random.PRNGKey(i), 0),
        "bernoulli": (lambda k: j.random.bernoulli(k, 0.3, (3,)), j.random.key(0)),
    }


# Where maxjax's rule uses other operations than JAX's.
OTHER_WORDS = {"elu"}


@pytest.mark.parametrize("name", [n for n in programs(maxjax) if n not in OTHER_WORDS])
def test_make_jaxpr(name):
    texts = []
    for j in LIBRARIES:
        function, *args = programs(j)[name]
        texts.append(str(j.make_jaxpr(function)(*args)))
    assert texts[0] == texts[1]


def outcome(function, *args):
    try:
        return str(function(*args)).replace("maxjax.", "jax.")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def compiled(j):
    return j.jit(lambda x, y: {"a": x * y["b"]}).lower(
        1.0, {"b": np.ones(3, np.float32)}).compile()


CALLS = {
    "struct": lambda j: j.ShapeDtypeStruct((2, 3), np.float32),
    "struct properties": lambda j: (lambda s: (s.ndim, s.size, len(s), s == s, s.shape))(
        j.ShapeDtypeStruct((2, 3), "int32")),
    "struct without dtype": lambda j: j.ShapeDtypeStruct((2,), None),
    "struct of a number": lambda j: j.ShapeDtypeStruct(2, int),
    "struct scalar": lambda j: len(j.ShapeDtypeStruct((), np.float32)),
    "eval_shape": lambda j: j.eval_shape(
        lambda x: {"a": x @ x.T, "b": 1.0}, j.ShapeDtypeStruct((2, 3), np.float32)),
    "eval_shape of str": lambda j: j.eval_shape(lambda x: "a", 1.0).count("x"),
    "return_shape": lambda j: j.make_jaxpr(lambda x, y: {"a": x + y}, return_shape=True)(1.0, 2.0),
    "static_argnums": lambda j: j.make_jaxpr(lambda x, n: x * n, static_argnums=1)(1.0, 3),
    "not callable": lambda j: j.make_jaxpr(1),
    "typeof": lambda j: [j.typeof(x) for x in (1, 1.0, ONES, j.numpy.ones(2))],
    "typeof str": lambda j: j.typeof("a"),
    "traced": lambda j: (lambda t: (t.jaxpr, t.out_info, t.fun_name, t.in_avals))(
        j.jit(lambda x, y: x * y["b"]).trace(ONES, {"b": ONES})),
    "lowered": lambda j: (lambda t: (t.in_tree, t.out_tree, t.args_info, t.out_info))(
        j.jit(lambda x, y: x * y["b"]).lower(ONES, {"b": ONES})),
    "lowered text": lambda j: j.jit(lambda x: x).lower(1.0).as_text()[:19],
    "compiled": lambda j: compiled(j)(2.0, {"b": np.ones(3, np.float32)}),
    "compiled with other shape": lambda j: compiled(j)(1.0, {"b": np.ones(2, np.float32)}),
    "compiled with other types": lambda j: compiled(j)(1, {"b": np.ones(2, np.float32)}),
    "compiled with other key": lambda j: compiled(j)(1.0, {"c": np.ones(3, np.float32)}),
    "compiled with less": lambda j: compiled(j)(1.0),
    "compiled with keyword": lambda j: compiled(j)(1.0, y={"b": np.ones(3, np.float32)}),
    "memory": lambda j: compiled(j).memory_analysis(),
    "static compiled": lambda j: j.jit(lambda x, n: x * n, static_argnums=1).lower(
        2.0, 3).compile()(2.0),
    "matmul flops": lambda j: j.jit(lambda x: x @ x.T).lower(ONES).compile().cost_analysis()[
        "flops"],
    "jacfwd": lambda j: j.jacfwd(lambda x: {"a": x ** 2, "b": x.sum()})(ONES[0]),
    "jacrev": lambda j: j.jacrev(lambda x: {"a": x ** 2, "b": x.sum()})(ONES[0]),
    "jacrev argnums": lambda j: j.jacrev(lambda x, y: x * y, argnums=(0, 1))(
        ONES[0], np.float32(2)),
    "jacfwd aux": lambda j: j.jacfwd(lambda x: (x ** 2, {"n": 3}), has_aux=True)(ONES[0]),
    "jacrev aux": lambda j: j.jacrev(lambda x: (x ** 2, {"n": 3}), has_aux=True)(ONES[0]),
    "jacfwd of ints": lambda j: j.jacfwd(lambda x: x)(1),
    "jacrev of ints": lambda j: j.jacrev(lambda x: x)(1),
    "hessian": lambda j: j.hessian(lambda x: (x ** 3).sum())(ONES[0]),
    "hessian of tree": lambda j: j.hessian(lambda x: x["a"] * x["b"] ** 2)({
        "a": np.float32(2), "b": np.float32(3)}),
    "linear_transpose": lambda j: j.linear_transpose(lambda x: 2 * x, ONES[0])(ONES[0]),
    "custom without rule": lambda j: j.custom_jvp(lambda x: x)(1.0),
    "custom no pair": lambda j: custom(j, lambda p, t: 1.0),
    "custom structures": lambda j: custom(j, lambda p, t: (p[0], (t[0],))),
    "custom shapes": lambda j: custom(j, lambda p, t: (p[0], j.numpy.ones(3))),
    "custom dtypes": lambda j: custom(j, lambda p, t: (p[0], j.numpy.int32(1))),
    "custom nondiff": lambda j: custom(
        j, lambda n, p, t: (p[0] * n, t[0] * 7.0), lambda x, n: x * n, (1,), 3),
    "device_put": lambda j: (lambda x: (x, x.committed, x.devices() == {j.devices()[0]}))(
        j.device_put(ONES, j.devices()[0])),
    "device_put tree": lambda j: j.device_put({"a": 1.0, "b": [ONES]}),
    "device_get": lambda j: j.device_get({"a": j.numpy.ones(2), "b": 1.0, "c": ONES}),
    "sharding": lambda j: j.numpy.ones(2).sharding,
    "counts": lambda j: (j.device_count(), j.local_device_count(), j.process_index(),
                         j.process_count(), j.default_backend(), j.devices()),
    "devices of": lambda j: j.devices("cpu") == j.local_devices(),
    "block": lambda j: j.block_until_ready({"a": j.numpy.ones(2), "b": 1}),
    "jit factory": lambda j: j.jit(static_argnums=1)(lambda x, n: x * n)(2.0, 3),
    "jit of nothing": lambda j: j.jit(1),
    "scope": lambda j: j.named_scope("a")(lambda x: x)(1),
    "ravel": lambda j: (lambda v, f: (v, f(v)))(*j.flatten_util.ravel_pytree(
        {"a": 1.0, "b": ONES})),
}


def custom(j, rule, function=lambda x: x * 2, nondiff=(), *more):
    made = j.custom_jvp(function, nondiff_argnums=nondiff)
    made.defjvp(rule)
    return j.grad(made)(1.0, *more)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gives_what_it_gives_in_jax(name):
    import jax.flatten_util  # noqa: F401
    results = [outcome(CALLS[name], j) for j in LIBRARIES]
    assert results[0] == results[1]


def test_options_hold_within_their_contexts():
    with maxjax.enable_x64(True):
        assert maxjax.numpy.ones(2).dtype == np.float64
    with maxjax.disable_jit():
        seen = []
        maxjax.jit(lambda x: seen.append(float(x)))(2.0)
        assert seen == [2.0]
    with maxjax.numpy_rank_promotion("raise"), pytest.raises(ValueError):
        maxjax.numpy.ones((2, 2)) + maxjax.numpy.ones(2)

    @maxjax.jit
    def function(x):
        with maxjax.ensure_compile_time_eval():
            size = int(maxjax.numpy.sum(maxjax.numpy.arange(3)))
        return x * size

    assert function(2.0) == 6.0


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="'maxjax' has no attribute 'x1'$"):
        _ = maxjax.x1
    with pytest.raises(AttributeError, match=r"'maxjax.numpy' has no attribute 'x1'"):
        _ = maxjax.numpy.x1
    assert not hasattr(maxjax, "__wrapped__")


def test_public_modules():
    for name in ("dtypes", "errors", "core", "typing", "dlpack", "stages", "custom_derivatives",
                 "tree", "tree_util", "sharding"):
        assert isinstance(getattr(maxjax, name), types.ModuleType)
    assert maxjax.dtypes.canonicalize_dtype("int64") == np.int32
    assert maxjax.dtypes.issubdtype(maxjax.random.key(0).dtype, maxjax.dtypes.prng_key)
    assert (maxjax.dlpack.from_dlpack(ONES) == ONES).all()


# --- the checker ----------------------------------------------------------------------------------

@pytest.mark.parametrize("name", programs(maxjax))
def test_every_pass_gives_a_good_jaxpr(name):
    function, *args = programs(maxjax)[name]
    closed = maxjax.make_jaxpr(function)(*args)
    check_jaxpr(closed)
    check_jaxpr(simplify(closed))
    inputs = closed.in_avals
    batched, _ = batch_jaxpr(closed, 4, tuple(0 for _ in inputs), True)
    check_jaxpr(batched)
    nonzero = tuple(np.issubdtype(aval.dtype, np.floating) if isinstance(aval.dtype, np.dtype)
                    else False for aval in inputs)
    if not any(nonzero):
        return
    both, _ = jvp_jaxpr(closed, nonzero)
    check_jaxpr(both)
    forward, linear, out_nonzero = linearize_jaxpr(closed, nonzero)
    check_jaxpr(forward)
    check_jaxpr(linear)
    residuals = len(linear.in_avals) - sum(nonzero)
    transposed, _ = transpose_jaxpr(
        linear, tuple(i >= residuals for i in range(len(linear.in_avals))),
        (True,) * len(linear.out_avals))
    check_jaxpr(transposed)
    check_jaxpr(simplify(transposed))


SCALAR = ShapedArray((), np.float32)


def bad_jaxprs():
    x, y, z = Var(SCALAR), Var(SCALAR), Var(ShapedArray((2,), np.float32))
    one = Literal(np.float32(1), SCALAR)
    return {
        "before it is defined": Jaxpr([], [x], [y], [JaxprEqn(add_p, [x, z], {}, [y])]),
        "a second time": Jaxpr([], [x], [x], [JaxprEqn(add_p, [x, one], {}, [x])]),
        "where the rule says": Jaxpr([], [x], [z], [JaxprEqn(add_p, [x, one], {}, [z])]),
        "2 results instead of 1": Jaxpr([], [x], [y], [JaxprEqn(add_p, [x, x], {}, [y, z])]),
        "is refused by the rule": Jaxpr([], [x], [y], [JaxprEqn(add_p, [], {}, [y])]),
        "literal of dtype": Jaxpr([], [x], [y], [
            JaxprEqn(add_p, [x, Literal(np.int32(1), SCALAR)], {}, [y])]),
        "literal of shape": Jaxpr([], [x], [y], [
            JaxprEqn(add_p, [x, Literal(np.ones(2, np.float32), SCALAR)], {}, [y])]),
    }


@pytest.mark.parametrize("words", bad_jaxprs())
def test_the_checker_sees(words):
    with pytest.raises(InternalError, match=words):
        check_jaxpr(bad_jaxprs()[words])
