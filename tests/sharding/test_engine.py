"""The sharding engine: propagation's decisions, and the resulting collectives.

Programs of one shard run without devices, under a vmap for each mesh axis (``sharded.run``).
"""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import pytree
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._sharding import engine, report_picture, specs
from maxjax._sharding.auto import auto
from maxjax._sharding.cost_model import CostModel
from maxjax._sharding.engine import Partitioned, partition
from maxjax._sharding.specs import Dim, Spec, show
from maxjax.ad_checkpoint import checkpoint_name
from tests import ROOT
from tests.sharding.sharded import check_equal

# --- helpers --------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
MESH = {"data": 2, "model": 2}
COLUMNS, ROWS, BATCH = Spec.of(None, "model"), Spec.of("model"), Spec.of("data")
WHOLE = Spec.of(None)


def numbers(*shape: int) -> np.ndarray:
    return (0.3 * RNG.normal(size=shape)).astype(np.float32)


def traced(function: Any, args: list[np.ndarray]) -> ClosedJaxpr:
    return trace_to_jaxpr(lambda *xs: pytree.flatten(function(*xs))[0],
                          [ShapedArray(arg.shape, arg.dtype) for arg in args])


def made_of(function: Any, args: list[np.ndarray], specs: list[Any],
            mesh: dict[str, int] = MESH, **options: Any) -> Partitioned:
    """The partitioned program, after comparing its results with the unsharded program's."""
    closed = traced(function, args)
    made = partition(closed, mesh, specs, **options)
    check_equal(made, closed, args, "accumulate", derivative=True)
    return made


def collectives(made: Partitioned) -> list[str]:
    return [f"{move.kind} {','.join(move.axes)}" for move in made.report.moves]


def abstract(function: Any, shapes: list[tuple[int, ...]]) -> ClosedJaxpr:
    return trace_to_jaxpr(lambda *xs: pytree.flatten(function(*xs))[0],
                          [ShapedArray(shape, np.float32) for shape in shapes])


# --- propagation ----------------------------------------------------------------------------------

X, Y = numbers(8, 8), numbers(8, 8)


def test_propagation_runs_forwards_and_backwards():
    made = made_of(lambda x, y: jnp.tanh(x) * y, [X, Y], [None, Spec.of(None, "model")])
    assert list(map(show, made.in_specs)) == ["[{}, {model}]"] * 2
    assert collectives(made) == []


def test_the_output_is_a_source_too():
    made = made_of(lambda x: jnp.exp(x.T), [X], [None], out_specs=[Spec.of("data", "model")])
    assert show(made.in_specs[0]) == "[{model}, {data}]"


def test_closed_dimensions_do_not_grow():
    made = made_of(lambda x, y: x + y, [X, Y], [BATCH, Spec.of(None, None)])
    assert show(made.in_specs[1]) == "[{}, {}]"
    opened = made_of(lambda x, y: x + y, [X, Y],
                     [BATCH, Spec((Dim((), open=True), Dim()))])
    assert show(opened.in_specs[1]) == "[{data}, {}]"


def test_explicit_replication_is_kept():
    spec = Spec((Dim((), open=True), Dim((), open=True)), frozenset({"data"}))
    made = made_of(lambda x, y: x + y, [X, Y], [Spec.of("data", "model"), spec])
    assert show(made.in_specs[1]) == "[{}, {model}]"


def test_conflicts_basic_takes_the_common_part():
    made = made_of(lambda x, y: x + y, [X, Y],
                   [Spec.of(("data", "model")), Spec.of(("data", "z"))],
                   {"data": 2, "model": 2, "z": 2}, strategy="basic")
    assert show(made.out_specs[0]) == "[{data}, {}]"


def test_conflicts_aggressive_takes_the_larger_then_the_first():
    mesh = {"data": 2, "model": 2, "z": 2}
    made = made_of(lambda x, y: x + y, [X, Y],
                   [Spec.of(("data", "model")), Spec.of(("data", "z"))], mesh)
    assert show(made.out_specs[0]) == "[{data, model}, {}]"
    narrow = numbers(8, 1)
    made = made_of(lambda x, y: x + y, [narrow, Y], [BATCH, Spec.of("model")])
    assert show(made.out_specs[0]) == "[{model}, {}]"


def test_an_axis_for_two_dimensions_of_a_product():
    """Both the rows of x and the columns of y want the axis: basic gives it to neither."""
    args = [numbers(16, 8), numbers(8, 8)]
    specs = [Spec.of("model"), Spec.of(None, "model")]
    basic = made_of(jnp.dot, args, specs, strategy="basic")
    assert show(basic.out_specs[0]) == "[{}, {}]"
    aggressive = made_of(jnp.dot, args, specs)
    assert show(aggressive.out_specs[0]) == "[{model}, {}]"


def test_user_priorities_come_first():
    def specs(first, second):
        return [Spec((Dim(("data",), priority=first), Dim())),
                Spec((Dim(("model",), priority=second), Dim()))]

    for order, expected in (((0, 1), "[{data}, {}]"), ((1, 0), "[{model}, {}]")):
        made = made_of(lambda x, y: x + y, [X, Y], specs(*order))
        assert show(made.out_specs[0]) == expected


def test_elementwise_operations_come_before_contractions():
    """The product would give its result {data}; the sum with z is settled first."""
    def function(x, y, z):
        return jnp.dot(x, y) + z

    made = made_of(function, [X, Y, numbers(8, 8)], [BATCH, None, Spec.of("model")])
    assert show(made.out_specs[0]) == "[{model}, {}]"


def test_a_constraint_in_the_middle():
    def constraint(eqn):
        return (COLUMNS if eqn.primitive.name == "name" and eqn.params["name"] == "here" else None)

    made = made_of(lambda x: jnp.sin(checkpoint_name(jnp.cos(x), "here")), [X], [BATCH],
                   constraint_of=constraint)
    assert show(made.out_specs[0]) == "[{}, {model}]"
    reasons = {row.maker: row.why for row in made.report.rows}
    assert "constraint" in reasons["name"]


# --- reshapes and parts of axes -------------------------------------------------------------------


def test_a_dimension_that_splits_takes_parts_of_an_axis():
    made = made_of(lambda x: jnp.reshape(x, (2, 4, 3)) * 2, [numbers(8, 3)], [Spec.of("x")],
                   {"x": 4})
    assert show(made.out_specs[0]) == "[{x:(1)2}, {x:(2)2}, {}]"
    assert made.mesh == {"x:(1)2": 2, "x:(2)2": 2}
    assert collectives(made) == []


def test_axes_that_stay_whole_are_joined_again():
    made = made_of(lambda x: jnp.reshape(x, (4, 2, 3)) * 2, [numbers(8, 3)], [Spec.of("x")],
                   {"x": 4})
    assert made.mesh == {"x": 4} and show(made.out_specs[0]) == "[{x}, {}, {}]"


def test_merging_dimensions():
    made = made_of(lambda x: jnp.reshape(x, (32, 3)), [numbers(4, 8, 3)],
                   [Spec.of("data", "model")])
    assert show(made.out_specs[0]) == "[{data}, {}]"
    assert collectives(made) == ["all_gather model"]
    whole = made_of(lambda x: jnp.reshape(x, (32, 3)), [numbers(4, 8, 3)],
                    [Spec.of("x", "y")], {"x": 4, "y": 2})
    assert show(whole.out_specs[0]) == "[{x, y}, {}]" and collectives(whole) == []


def test_dimensions_that_do_not_correspond_stay_whole():
    """(4, 6) to (3, 8): half the columns are not a block of the result."""
    made = made_of(lambda x: jnp.reshape(x, (3, 8)), [numbers(4, 6)], [Spec.of(None, "x")],
                   {"x": 2})
    assert show(made.out_specs[0]) == "[{}, {}]"
    again = made_of(lambda x: jnp.reshape(x, (6, 6, 5)), [numbers(4, 9, 5)],
                    [Spec.of("x", None, "y")], {"x": 2, "y": 5})
    assert show(again.out_specs[0]) == "[{x}, {}, {y}]" and collectives(again) == []


# --- partial sums ---------------------------------------------------------------------------------


def test_a_sum_of_partial_sums_is_reduced_once():
    made = made_of(lambda x, y, a, b: jnp.dot(x, y) + jnp.dot(a, b), [X, Y, Y, X],
                   [COLUMNS, ROWS] * 2)
    assert collectives(made) == ["psum model"]


def test_partial_sums_pass_what_is_linear():
    made = made_of(lambda x, y, scale: -(jnp.dot(x, y) * scale).T, [X, Y, numbers()],
                   [COLUMNS, ROWS, None])
    assert collectives(made) == ["psum model"]
    assert made.report.moves[0].reason == "result of neg"


def test_partial_sums_are_reduced_before_what_is_not_linear():
    made = made_of(lambda x, y: jnp.tanh(jnp.dot(x, y)), [X, Y], [COLUMNS, ROWS])
    assert [move.reason for move in made.report.moves] == ["result of dot_general"]


def test_a_product_of_two_partial_sums_is_not_partial():
    made = made_of(lambda x, y: jnp.dot(x, y) * jnp.dot(y, x), [X, Y], [None, ROWS],
                   strategy="basic")
    assert "psum model" in collectives(made)


def test_a_partial_sum_that_is_wanted_split_is_scattered():
    made = made_of(jnp.dot, [X, Y], [COLUMNS, ROWS], out_specs=[Spec.of("model")])
    assert collectives(made) == ["reduce_scatter model"]


def test_what_is_added_whole_is_not_added_twice():
    made = made_of(lambda x, y, bias: jnp.dot(x, y) + bias, [X, Y, numbers(8)],
                   [COLUMNS, ROWS, None])
    assert made.report.moves[0].reason == "result of dot_general"


def test_partial_maxima():
    made = made_of(lambda x: jnp.max(x, axis=1).reshape(2, 4), [X], [COLUMNS])
    assert collectives(made) == ["pmax model"]


# --- the cheapest collectives ---------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after", "expected"), [
    (("x", None), (None, "x"), ["all_to_all x"]),
    (("x", None), (None, None), ["all_gather x"]),
    ((None, None), ("x", "y"), []),
    (("x", None), (("x", "y"), None), []),
    (("x", "y"), ("y", "x"), None),
    ((("x", "y"), None), ("x", "y"), ["all_to_all y"]),
    ((("x", "y"), None), (None, ("x", "y")), ["all_to_all x,y"]),
    (("y", None), (("x", "y"), None), None),
])
def test_resharding(before, after, expected):
    made = made_of(lambda x: jnp.negative(x), [numbers(8, 8)], [Spec.of(*before)],
                   {"x": 2, "y": 4}, out_specs=[Spec.of(*after)])
    if expected is not None:
        assert collectives(made) == expected


def test_a_reversal_sends_parts_on():
    made = made_of(lambda x: x[::-1], [X], [Spec.of(("data", "model"))])
    kinds = [eqn.primitive.name for eqn in made.jaxpr.jaxpr.eqns]
    assert kinds == ["rev", "ppermute", "ppermute"]


def test_what_must_be_whole_makes_room_for_what_need_not():
    """Sorting along a split dimension: if cheaper, the rows are split temporarily."""
    large, small = [(4096, 4096)], [(8, 8)]
    counts = [partition(abstract(lambda x: jnp.sort(x, 1), shapes), {"model": 8},
                        [COLUMNS]).report.counts() for shapes in (large, small)]
    assert counts == [{"all_to_all": 2}, {"all_gather": 1}]
    made_of(lambda x: jnp.sort(x, 1), [X], [COLUMNS], model=CostModel(latency=0.0, flops=1e6))


def test_a_count_starts_where_the_shard_does():
    made = made_of(lambda x: x + jnp.arange(8.0)[:, None], [X], [BATCH])
    assert collectives(made) == []


def test_each_shard_draws_with_its_own_keys():
    def drawn(seeds):
        keys = maxjax.vmap(maxjax.random.key)(seeds)
        return maxjax.vmap(lambda key: maxjax.random.normal(
            maxjax.random.fold_in(maxjax.random.split(key)[1], 3), (5,)))(keys)

    made = made_of(drawn, [np.arange(8, dtype=np.uint32)], [Spec.of("data")])
    assert show(made.out_specs[0]) == "[{data}, {}]" and collectives(made) == []


def test_small_sums_are_joined_and_large_ones_are_not():
    def gradients(first, second, x, y):
        return maxjax.grad(mlp_loss, argnums=(0, 1))(first, second, x, y)

    specs = [WHOLE, WHOLE, BATCH, BATCH]
    large = partition(abstract(gradients, [(1024, 4096), (4096, 1024), *[(16384, 1024)] * 2]),
                      MESH, specs)
    assert collectives(large) == ["psum data"] * 2
    together = made_of(gradients, MLP, specs)
    assert len(together.report.moves[0].also) == 1
    assert "(with " in together.report.text()


def test_sums_that_wait_for_one_another_are_not_joined():
    made = made_of(lambda x: jnp.sum(jnp.sin(x * jnp.tanh(jnp.sum(x, 1))[:, None])), [X],
                   [COLUMNS])
    names = [eqn.primitive.name for eqn in made.jaxpr.jaxpr.eqns]
    assert names.count("psum") == 2 and "concatenate" not in names


# --- programs -------------------------------------------------------------------------------------


def mlp_loss(first, second, x, y):
    return jnp.mean((jnp.tanh(x @ first) @ second - y) ** 2)


MLP = [numbers(8, 16), numbers(16, 8), numbers(4, 8), numbers(4, 8)]


@pytest.mark.parametrize(("specs", "expected"), [
    # data parallel: the gradients are reduced, small ones together
    ([None, None, BATCH, BATCH], ["psum data"]),
    # tensor parallel: only the forward product
    ([COLUMNS, ROWS, Spec.of(None, None), Spec.of(None, None)], ["psum model"]),
    # both
    ([COLUMNS, ROWS, BATCH, BATCH], ["psum model", "psum data"]),
])
def test_gradient_of_an_mlp(specs, expected):
    specs = [spec or Spec.of(None, None) for spec in specs]
    made = made_of(maxjax.grad(mlp_loss, argnums=(0, 1)), MLP, specs)
    assert collectives(made) == expected


def test_fully_sharded_data_parallel():
    """Weights and their gradients are split by the data axis: gathers and scattered sums."""
    weights = [Spec.of("data"), Spec.of("data")]
    args = [numbers(64, 64), numbers(64, 64), numbers(256, 64), numbers(256, 64)]
    made = made_of(maxjax.grad(mlp_loss, argnums=(0, 1)), args, [*weights, BATCH, BATCH],
                   {"data": 4}, out_specs=weights)
    counts = made.report.counts()
    assert counts["reduce_scatter"] == 2 and set(counts) == {"all_gather", "reduce_scatter"}


def attention(x, q, k, v, out):
    batch, length, width = x.shape

    def heads(weights):
        return jnp.reshape(x @ weights, (batch, length, 4, width // 4))

    scores = jnp.einsum("bqhd,bkhd->bhqk", heads(q), heads(k)) / np.float32(np.sqrt(width // 4))
    mixed = jnp.einsum("bhqk,bkhd->bqhd", maxjax.nn.softmax(scores, -1), heads(v))
    return jnp.reshape(mixed, (batch, length, width)) @ out


ATTENTION = [numbers(4, 6, 8), *(numbers(8, 8) for _ in range(4))]
ATTENTION_SPECS = [BATCH, COLUMNS, COLUMNS, COLUMNS, ROWS]


def test_attention():
    assert collectives(made_of(attention, ATTENTION, ATTENTION_SPECS)) == ["psum model"]


def test_gradient_of_attention():
    """One reduction forwards, one for the input backwards, and one for all weights' gradients."""
    gradient = maxjax.grad(lambda *args: jnp.sum(attention(*args) ** 2), argnums=(0, 1, 2, 3, 4))
    made = made_of(gradient, ATTENTION, ATTENTION_SPECS)
    assert sorted(collectives(made)) == ["psum data"] + ["psum model"] * 2


TABLE, WORDS = numbers(12, 4), np.array([[0, 5, 11], [7, 7, -1]], np.int32)


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("outside", [0, 12, -40])
def test_embedding_with_split_rows(mode, outside):
    """Each shard reads its own rows, and the sum is the result; gradients need no collective."""
    words = np.where(WORDS == 5, np.int32(outside if mode != "promise_in_bounds" else 5), WORDS)

    def embed(table, words):
        return table.at[words].get(mode=mode, wrap_negative_indices=True)

    args, specs = [TABLE, words], [ROWS, Spec.of(None)]
    assert collectives(made_of(embed, args, specs)) == ["psum model"]
    made = made_of(maxjax.grad(lambda *args: jnp.sum(embed(*args) * 2)),
                   args, specs, out_specs=[ROWS])
    assert collectives(made) == []


@pytest.mark.parametrize("kind", ["add", "max", "min", "set", "multiply"])
@pytest.mark.parametrize("specs", [
    [ROWS, Spec.of(None), Spec.of(None)],
    [Spec.of(None), BATCH, BATCH],
    [ROWS, BATCH, BATCH],
    [Spec.of(None, "model"), BATCH, BATCH],
])
def test_scatter_into_split_rows_and_of_split_updates(kind, specs):
    def function(table, words, updates):
        return getattr(table.at[words], kind)(updates, mode="drop")

    words = np.array([3, 3, 11, 40], np.int32) if kind != "set" else np.array(
        [3, 4, 11, 40], np.int32)
    made = made_of(function, [TABLE, words, numbers(4, 4)], specs, out_specs=[specs[0]])
    sums = {"add": ["psum data"], "max": ["pmax data"], "min": ["pmin data"]}
    if specs[1] == BATCH:
        assert collectives(made) == sums.get(kind, ["all_gather data"] * 2)
    else:
        assert collectives(made) == []


def layers(weights, x):
    def body(h, w):
        return jnp.tanh(h @ w[0]) @ w[1], jnp.sum(h)

    h, sums = lax.scan(body, x, weights)
    return jnp.mean(h ** 2) + jnp.sum(sums)


def test_scan_over_layers():
    weights = (numbers(3, 8, 16), numbers(3, 16, 8))

    def gradient(first, second, x):
        return maxjax.grad(layers)((first, second), x)

    made = made_of(gradient, [*weights, numbers(4, 8)],
                   [Spec.of(None, None, "model"), Spec.of(None, "model"), BATCH])
    inside = [move for move in made.report.moves if move.times == 3]
    assert sorted(f"{move.kind} {','.join(move.axes)}" for move in inside) == [
        "psum data", "psum model", "psum model"]


def test_gradients_are_summed_over_a_loop_before_over_shards():
    """Microbatches, and a recurrence whose weights all steps share: one reduction per weight."""
    def microbatches(w, xs):
        def body(total, x):
            return total + maxjax.grad(lambda w: jnp.sum(jnp.tanh(x @ w) ** 2))(w), None

        return lax.scan(body, jnp.ones_like(w), xs)[0]

    made = made_of(microbatches, [numbers(8, 8), numbers(3, 4, 8)],
                   [WHOLE, Spec.of(None, "data")])
    assert [(f"{move.kind} {','.join(move.axes)}", move.times) for move in made.report.moves] == [
        ("psum data", 1)]

    def recurrence(w, h):
        return jnp.sum(lax.scan(lambda h, _: (jnp.tanh(h @ w), None), h, None, length=3)[0])

    made = made_of(maxjax.grad(recurrence), [numbers(8, 8), numbers(4, 8)], [WHOLE, BATCH])
    assert [move.times for move in made.report.moves] == [1]


def test_while_loop():
    def function(x, w):
        return lax.while_loop(lambda carry: jnp.sum(carry[0]) < 40,
                              lambda carry: (jnp.abs(carry[0] @ w) + 1, carry[1] + 1), (x, 0))

    made = made_of(function, [numbers(4, 8), numbers(8, 8)], [BATCH, COLUMNS])
    assert "psum data,model" in collectives(made)


def test_branches_are_spread_alike():
    made = made_of(lambda x, w: lax.cond(jnp.sum(x) > 0, lambda x: x @ w, lambda x: 2 * x, x),
                   [numbers(4, 8), numbers(8, 8)], [BATCH, COLUMNS])
    assert show(made.out_specs[0]) == "[{data}, {model}]"


# --- automatic sharding ---------------------------------------------------------------------------

ALL = {"data": 4, "model": 2}


@pytest.mark.parametrize(("function", "shapes", "by_hand"), [
    (jnp.dot, [(4096, 4096)] * 2, {
        "data": [BATCH, WHOLE], "two dimensions": [BATCH, COLUMNS]}),
    (maxjax.grad(mlp_loss, argnums=(0, 1)), [(1024, 4096), (4096, 1024), *[(16384, 1024)] * 2], {
        "data": [WHOLE, WHOLE, BATCH, BATCH], "tensor": [COLUMNS, ROWS, WHOLE, WHOLE],
        "mixed": [COLUMNS, ROWS, BATCH, BATCH]}),
    (attention, [(16, 512, 512), *[(512, 512)] * 4], {
        "mixed": ATTENTION_SPECS, "data": [BATCH, *[WHOLE] * 4]}),
], ids=["matmul", "mlp", "attention"])
def test_automatic_is_never_worse_than_by_hand(function, shapes, by_hand):
    choice = auto(abstract(function, shapes), ALL, by_hand=by_hand)
    best = min(choice.seconds.values())
    assert choice.partitioned.report.seconds == best
    assert best <= min(choice.seconds[name] for name in by_hand)
    assert best < choice.seconds["all whole"] / 4
    assert choice.name.startswith("integer program") and "chosen" in choice.text()


def test_automatic_results_are_right():
    args = [numbers(8, 16), numbers(16, 8), numbers(8, 8), numbers(8, 8)]
    closed = traced(maxjax.grad(mlp_loss, argnums=(0, 1)), args)
    # Devices so slow, and links so fast, that splitting pays off even at this size.
    model = CostModel(latency=1e-12, flops=1e9, memory=1e9)
    choice = auto(closed, {"data": 2, "model": 2}, model=model)
    assert choice.name.startswith("integer program") and any(map(any, choice.in_specs))
    check_equal(choice.partitioned, closed, args, "accumulate", derivative=True)


def test_automatic_keeps_what_is_fixed():
    choice = auto(abstract(jnp.dot, [(64, 64)] * 2), ALL, in_specs=[COLUMNS, None])
    assert show(choice.in_specs[0]) == "[{}, {model}]"


# --- negative controls, errors, reports -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["psum", "all_gather", "reduce_scatter", "all_to_all"])
def test_a_wrong_collective_is_noticed(kind, monkeypatch):
    """With the wrong axis's number of parts, or none, the comparison must fail."""
    programs = {
        "psum": (jnp.dot, [X, Y], [COLUMNS, ROWS], None),
        "all_gather": (jnp.negative, [X], [BATCH], [Spec.of(None)]),
        "reduce_scatter": (jnp.dot, [X, Y], [COLUMNS, ROWS], [ROWS]),
        "all_to_all": (jnp.negative, [X], [ROWS], [COLUMNS]),
    }
    function, args, specs, outs = programs[kind]
    made = made_of(function, args, specs, out_specs=outs)
    assert [move.kind for move in made.report.moves] == [kind]
    closed = traced(function, args)
    eqns = []
    for eqn in made.jaxpr.jaxpr.eqns:
        if eqn.primitive.name == kind:
            name = "axes" if kind == "psum" else "axis_name"
            eqn = eqn.replace(params={**eqn.params, name: ("data" if "model" in eqn.params[name]
                                                           else "model",)})
        eqns.append(eqn)
    wrong = Partitioned(ClosedJaxpr(made.jaxpr.jaxpr.replace(eqns=eqns), made.jaxpr.consts),
                        made.mesh, made.in_specs, made.out_specs, made.report)
    with pytest.raises(AssertionError):
        check_equal(wrong, closed, args, "accumulate")


@pytest.mark.parametrize(("spec", "message"), [
    (Spec.of("model"), "input 0 .float32.6,8..: dimension 0 of size 6 cannot be split over the "
                       "mesh axis 'model' of size 4: 6 is not divisible by 4"),
    (Spec.of(None, ("data", "model")), None),
    (Spec.of("data", ("data",)), "uses the axis 'data' twice"),
    (Spec.of("rows"), "names the axis 'rows', which the mesh"),
    (Spec.of(None, None, "data"), "has rank 2"),
])
def test_errors_name_the_value(spec, message):
    closed = traced(jnp.negative, [numbers(6, 8)])
    if message is None:
        partition(closed, {"data": 2, "model": 4}, [spec])
        return
    with pytest.raises(ValueError, match=message):
        partition(closed, {"data": 2, "model": 4}, [spec])


def test_the_report_lists_values_and_collectives():
    made = made_of(lambda x, y: jnp.tanh(jnp.dot(x, y)), [X, Y], [COLUMNS, ROWS])
    assert made.report.text().splitlines() == [
        "mesh {data: 2, model: 2}",
        "values",
        "  a:f32[8,8] = input  [{}, {model}]  shard f32[8,4]  (dimension 1 given)",
        "  b:f32[8,8] = input  [{model}, {}]  shard f32[4,8]  (dimension 0 given)",
        "  c:f32[8,8] = dot_general  [{}, {}]",
        "  d:f32[8,8] = tanh  [{}, {}]",
        "collectives",
        "  psum over model: c [{}, {}] unreduced={model:add} -> [{}, {}], 256 bytes a shard "
        "(result of dot_general)",
        "total: 1 collectives, 256 bytes a link, 1.00 us of communication and 0.00 us of "
        "computation by the cost model",
    ]
    drawn = made.report.dot()
    assert drawn.startswith("digraph sharding {")
    # Along the program, with the sum between the product and what reads it.
    assert [line.strip() for line in drawn.splitlines() if "->" in line] == [
        '"a" -> "c";', '"b" -> "c";', '"c0" -> "d";', '"c" -> "c0" [color=red];']


def test_the_page_is_right():
    page = ROOT / "docs" / "sharding.md"
    result = doctest.testfile(str(page), module_relative=False,
                              optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 10 and not result.failed


def test_the_docstrings_are_right():
    for module in (engine, report_picture, specs):
        result = doctest.testmod(module, extraglobs={
            "np": np, "jnp": jnp, "partition": partition, "Spec": Spec})
        assert result.attempted and not result.failed
