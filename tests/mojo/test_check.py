"""The checks of the Mojo backend's stages: plans pass them, broken plans do not."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base.errors import InternalError
from maxjax._higher_order.cond import cond_p
from maxjax._higher_order.scan import scan_p
from maxjax._higher_order.while_loop import while_p
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._max.mojo import check, layout
from maxjax._max.mojo.check import check_groups, check_nodes
from maxjax._max.mojo.check_plan import CheckedPlan, check_part, check_plan
from maxjax._max.mojo.context import THREADS, MojoContext
from maxjax._max.mojo.emit_loop import LoopForm
from maxjax._max.mojo.fusion import Fusion, Group, ordered
from maxjax._max.mojo.layout import KernelIntegers, KernelLayout
from maxjax._max.mojo.nodes import (
    Alias,
    Apply,
    Assemble,
    Call,
    Constant,
    Empty,
    Input,
    Iota,
    Loop,
    Node,
    Overlay,
    Piece,
    Reduce,
    Reshape,
    Result,
    View,
)
from maxjax._max.mojo.plan import Plan
from maxjax._max.operations import LoweringError
from maxjax._runtime.program import Program
from maxjax._transforms.simplify import simplify
from tests.gen import mojo_random
from tests.golden import kernels
from tests.golden.programs import GOLDENS
from tests.support import mojo_programs

# Programs of each family of cases; those that are built and run are checked as well.
COUNT = 12
FLOAT, INT, BOOL, BYTE = map(np.dtype, ("float32", "int32", "bool", "int8"))


# --- what is planned ------------------------------------------------------------------------------

def problems(items):
    return [f"{item.name}: {item.problem}" for item in items if item.problem is not None]


def golden_items():
    for name, golden in GOLDENS.items():
        if golden.made is kernels.kernel:
            program = Program(maxjax.make_jaxpr(golden.function)(*golden.args))
            yield mojo_programs.Item(name, program, list(program.consts)).plan()


@pytest.mark.parametrize("items", [
    lambda: mojo_programs.default(COUNT), lambda: mojo_random.default(COUNT), golden_items,
], ids=["cases", "random", "golden"])
def test_what_is_planned_is_well_formed(items):
    found = list(items())
    assert sum(item.is_compiled for item in found) > len(found) / 2
    assert not problems(found)


# --- nodes ----------------------------------------------------------------------------------------

def argument(*shape, dtype=FLOAT):
    return Input(shape, dtype, (), 0)


X = argument(4, 3)
LINE = argument(4)
IOTA = Iota((4,), INT, ())
TRANSPOSED = View((3, 4), FLOAT, (X,), ((0, 1, 1), (0, 1, 0)))


def view(index_map, shape=(4, 3), x=X, dtype=FLOAT):
    return View(shape, dtype, (x,), index_map)


def pad(start, *, step=1, x=LINE, inputs=(), shape=(8,)):
    return Assemble(shape, FLOAT, (x, *inputs), (Piece((start,), (step,)),))


def call(*operands, **fields):
    return Call((), BYTE, operands, "matmul_float32", **fields)


def closed(function, *args) -> ClosedJaxpr:
    return maxjax.make_jaxpr(function)(*args)


def loop(primitive, inputs, count, **params):
    """A loop or a choice by its primitive's parameters for so many operands."""
    flow = primitive.inner.control_flow.structure(params, count)
    return Loop((), BYTE, tuple(inputs), primitive.name, flow)


def scan(inputs, body=lambda c, x: (c + x, c), counts=(0, 1, 1), length=4):
    """A scan of float32 values over a line."""
    zero = np.float32(0)
    return loop(scan_p, inputs, sum(counts), jaxpr=closed(body, zero, zero), num_consts=counts[0],
                num_carry=counts[1], length=length, reverse=False)


ZERO = argument()
TRUE = argument(dtype=BOOL)
COUNT_OF = argument(dtype=INT)
LOOP = scan([ZERO, LINE])


def while_loop(condition, body=lambda x: x * 2):
    return loop(while_p, [ZERO], 1, cond_jaxpr=closed(condition, np.float32(0)), cond_nconsts=0,
                body_jaxpr=closed(body, np.float32(0)), body_nconsts=0)


def choice(*branches, kinds=(np.float32, np.float32)):
    return loop(cond_p, [COUNT_OF, ZERO], 2, branches=tuple(
        closed(branch, kind(0)) for branch, kind in zip(branches, kinds)))


GOOD: list[Node] = [
    X, IOTA, TRANSPOSED, Constant((2,), INT, (), np.array([1, 2], np.int32)), Empty((0,), INT, ()),
    Apply((4,), FLOAT, (LINE, LINE), "add"), Apply((4,), BOOL, (LINE, LINE), "lt"),
    Apply((), FLOAT, (TRUE, ZERO, ZERO), "select"), Reduce((4,), FLOAT, (X,), "sum", (1,)),
    view(((3, -1, 0), (0, 1, 1))), Reshape((2, 6), FLOAT, (X,)),
    Alias((4, 3, 2), np.dtype("int16"), (X,)), pad(1, step=2, inputs=(ZERO,)),
    Assemble((8,), FLOAT, (LINE, LINE), (Piece((0,), (1,)), Piece((4,), (1,)))),
    Overlay((8,), FLOAT, (LINE, argument(8)), (Piece((3,), (1,)),)),
    Result((4, 4), FLOAT, (call(X, TRANSPOSED, strided=True),), 0), Result((4,), FLOAT, (LOOP,), 1),
    Result((), FLOAT, (while_loop(lambda x: x < 3),), 0),
]


def test_good_nodes():
    check_nodes(GOOD)
    assert {type(node) for node in ordered(GOOD)} == set(check._RULES)


def apply(name, *operands, dtype=FLOAT, shape=(4,), source=None):
    return Apply(shape, dtype, operands, name, source)


BAD_NODES: dict[str, tuple[Node, str]] = {
    "no kind": (Node((2,), FLOAT, ()), "Node is no kind of node"),
    "dtype": (Input((2,), "float32", (), 0), "its dtype is 'float32'"),
    "negative size": (Input((-2,), FLOAT, (), 0), "its shape is (-2,)"),
    "no elements": (Iota((0,), INT, ()), "has no elements, and is not Empty"),
    "reads a call": (apply("neg", call(X, X, strided=True)), "<call matmul_float32 int8[]>, which"),
    "input's operand": (Input((4,), FLOAT, (LINE,), 0), "1 operands, and needs none"),
    "input's number": (Input((4,), FLOAT, (), -1), "its number is -1"),
    "constant's type": (Constant((2,), INT, (), np.zeros(2)), "its value is float64[2]"),
    "constant's order": (Constant((2, 3), FLOAT, (), np.zeros((3, 2), FLOAT).T),
                         "does not lie row by row"),
    "empty": (Empty((4,), FLOAT, ()), "it has elements"),
    "apply of nothing": (apply("neg"), "it has no operands"),
    "apply's shapes": (apply("add", LINE, X), "<input float32[4,3]> has another shape"),
    "apply's dtypes": (apply("add", LINE, argument(4, dtype=INT)), "operands are float32, int32"),
    "apply's result": (apply("add", LINE, LINE, dtype=INT), "add of float32 gives float32"),
    "comparison's result": (apply("lt", LINE, LINE), "lt of float32 gives bool"),
    "select": (apply("select", LINE, LINE, LINE), "selects from float32, float32, float32"),
    "bitcast": (apply("bitcast", LINE, dtype=BYTE), "has not the bits of <input float32[4]>"),
    "conversion of two": (apply("convert", LINE, LINE, dtype=INT), "2 operands, and needs one"),
    "copy": (apply("copy", LINE, dtype=INT), "<input float32[4]> has another dtype"),
    "source": (apply("neg", LINE, source="def neg(): ..."), "has a source, and is not custom"),
    "reduction's name": (Reduce((4,), FLOAT, (X,), "mean", (1,)), "it is no reduction"),
    "reduction's axes": (Reduce((4,), FLOAT, (X,), "sum", (2,)), "not some of 2 dimensions"),
    "reduction's order": (Reduce((), FLOAT, (X,), "sum", (1, 0)), "not some of 2 dimensions"),
    "reduction's shape": (Reduce((3,), FLOAT, (X,), "sum", (1,)), "leaves [4]"),
    "view of a view": (view(((0, 1, 0), (0, 1, 1)), (3, 4), TRANSPOSED), "is a view"),
    "map's rank": (view(((0, 1, 0),)), "is not one of <input float32[4,3]>"),
    "map's dimension": (view(((0, 1, 0), (0, 1, 2))), "goes along dimension 2 of 2"),
    "map's step": (view(((0, 1, 0), (0, 1, -1))), "step 1 along dimension -1"),
    "map's bounds": (view(((1, 1, 0), (0, 1, 1))), "goes from 1 to 4 in dimension 0"),
    "map's first": (view(((2, -1, 0), (0, 1, 1))), "goes from 2 to -1 in dimension 0"),
    "map's diagonal": (view(((0, 1, 0), (0, 1, 0)), (3,)), "along a diagonal"),
    "view's dtype": (view(((0, 1, 0), (0, 1, 1)), dtype=INT), "has another dtype"),
    "reshape of a reshape": (Reshape((12,), FLOAT, (Reshape((2, 6), FLOAT, (X,)),)),
                             "is a reshape"),
    "reshape's size": (Reshape((2, 5), FLOAT, (X,)), "has 12 elements"),
    "reshape's strides": (Reshape((12,), FLOAT, (TRANSPOSED,)), "strides cannot say it"),
    "iota": (Iota((2, 2), INT, ()), "it has not one dimension"),
    "alias's bytes": (Alias((4, 3, 4), np.dtype("int16"), (X,)), "has not the bytes"),
    "alias of a view": (Alias((3, 4, 2), np.dtype("int16"), (TRANSPOSED,)),
                        "does not lie row by row in memory"),
    "alias of an iota": (Alias((4, 2), np.dtype("int16"), (IOTA,)), "is in no memory"),
    "pieces": (pad(0, inputs=(ZERO, ZERO)), "3 operands for 1 pieces"),
    "piece's dtype": (pad(0, inputs=(COUNT_OF,)), "<input int32[]> has another dtype"),
    "piece's rank": (pad(0, x=X, inputs=(ZERO,)), "has another rank"),
    "piece's end": (pad(5, inputs=(ZERO,)), "goes from [5] to [8]"),
    "piece's begin": (pad(-1, inputs=(ZERO,)), "goes from [-1] to [2]"),
    "filler": (pad(0, inputs=(LINE,)), "<input float32[4]> is not one element"),
    "not filled": (pad(0), "its pieces fill 4 of 8 elements"),
    "overlap": (Assemble((8,), FLOAT, (LINE, LINE), (Piece((0,), (1,)), Piece((3,), (1,)))),
                "a piece that begins at [3] does not follow"),
    "laid on another shape": (
        Overlay((8,), FLOAT, (LINE, argument(9)), (Piece((3,), (1,)),)), "has another shape"),
    "laid beyond the end": (
        Overlay((8,), FLOAT, (LINE, argument(8)), (Piece((5,), (1,)),)), "goes from [5] to [8]"),
    "laid on columns": (
        Overlay((3, 4), FLOAT, (LINE, TRANSPOSED), (Piece((0, 0), (1, 1)),)), "another rank"),
    "piece in no memory": (Assemble((8,), INT, (IOTA, IOTA), (Piece((0,), (1,)),
                                                             Piece((4,), (1,)))),
                           "<iota int32[4]> is in no memory"),
    "call's operand": (Result((4, 4), FLOAT, (call(X, TRANSPOSED),), 0),
                       "<view float32[3,4]> does not lie row by row"),
    "call's iota": (Result((4, 4), FLOAT, (call(IOTA),), 0), "is in no memory"),
    "call's integers": (Result((4, 4), FLOAT, (call(X, integers=(1.5,)),), 0),
                        "its integers are (1.5,)"),
    "strided integers": (Result((), FLOAT, (call(X, X, integers=(1,), strided=True),), 0),
                         "has integers of its own"),
    "strided operands": (Result((), FLOAT, (call(X, strided=True),), 0),
                         "no integers for matmul_float32 of 1 operands"),
    "result of a value": (Result((4, 3), FLOAT, (X,), 0), "it is of <input float32[4,3]>"),
    "result's number": (Result((), FLOAT, (LOOP,), 2), "<loop scan int8[]> has 2 results"),
    "negative result": (Result((), FLOAT, (LOOP,), -1), "its number is -1"),
    "result's type": (Result((3,), FLOAT, (LOOP,), 1), "result 1 of <loop scan int8[]> is "
                                                       "float32[4]"),
    "loop's counts": (Result((), FLOAT, (scan([ZERO, LINE], counts=(0, 1, 2)),), 0),
                      "2 operands, 3 by its structure"),
    "body's counts": (Result((), FLOAT, (scan([ZERO, LINE, LINE], counts=(0, 1, 2)),), 0),
                      "its body has 2 operands, 3 by its structure"),
    "loop's operand": (Result((), FLOAT, (scan([ZERO, LINE], length=5),), 0),
                       "<input float32[4]> should be float32[5]"),
    "loop's carry": (Result((), FLOAT, (scan([ZERO, LINE], lambda c, x: (c > x, x)),), 0),
                     "does not give back what it carries"),
    "condition": (Result((), FLOAT, (while_loop(lambda x: x),), 0), "condition is not one bool"),
    "while's carry": (Result((), FLOAT, (while_loop(lambda x: x > 0, lambda x: x > 0),), 0),
                      "does not give back what it carries"),
    "branches": (Result((), FLOAT, (choice(lambda x: x, lambda x: x > 0),), 0),
                 "its branches differ"),
    "branches' operands": (Result((), FLOAT, (choice(
        lambda x: x, lambda x: np.float32(0) * x, kinds=(np.float32, np.int32)),), 0),
        "its programs differ in the type of operand 1"),
}


@pytest.mark.parametrize("name", BAD_NODES)
def test_bad_nodes(name):
    node, words = BAD_NODES[name]
    with pytest.raises(InternalError, match=re.escape(words)) as raised:
        check_nodes([node])
    named = [repr(x) for x in ordered([node])]
    assert any(f"{name}: " in str(raised.value) for name in named)


# --- groups ---------------------------------------------------------------------------------------

def fused() -> tuple[Fusion, Node, Node, Node]:
    """Two groups, the second of which reads what the first stores; and nodes of both."""
    product = Apply((4, 3), FLOAT, (X, X), "mul")
    total = Reduce((3,), FLOAT, (product,), "sum", (0,))
    shifted = Apply((3,), FLOAT, (total,), "exp")
    spread = View((4, 3), FLOAT, (shifted,), ((0, 1, 1),))
    last = Apply((4, 3), FLOAT, (X, spread), "sub")
    fusion = Fusion([last])
    check_groups(fusion)
    return fusion, total, shifted, last


def without_axes(fusion, total, shifted, last):
    fusion.home[total if total in fusion.home else shifted].axes = None


def with_other_axes(fusion, total, shifted, last):
    fusion.home[shifted].axes = (1,)


def with_no_axis(fusion, total, shifted, last):
    fusion.home[shifted].axes = (2,)


def in_other_space(fusion, total, shifted, last):
    fusion.home[last].space = (5, 3)


def without_maps(fusion, total, shifted, last):
    fusion.home[last].maps[last] = []


def without_homes(fusion, total, shifted, last):
    fusion.home[last].homes.clear()


def at_home_elsewhere(fusion, total, shifted, last):
    fusion.home[shifted] = fusion.home[last]


def not_each_point(fusion, total, shifted, last):
    group = fusion.home[last]
    group.maps[last] = [((0, 1, 0), (0, 0, -1))]


def too_many(fusion, total, shifted, last):
    group = fusion.home[last]
    for _ in range(96):
        group.maps[Apply((4, 3), FLOAT, (X,), "neg")] = group.maps[last]


def backwards(fusion, total, shifted, last):
    fusion.units.reverse()


def twice(fusion, total, shifted, last):
    fusion.units *= 2


def in_no_memory(fusion, total, shifted, last):
    group = fusion.home.pop(shifted)
    group.homes.remove(shifted)
    group.homes.append(total)
    fusion.home[total] = group


def in_no_group(fusion, total, shifted, last):
    del fusion.groups_of[total]


def no_unit(fusion, total, shifted, last):
    reader = Apply((4,), FLOAT, (Result((4,), FLOAT, (LOOP,), 1),), "neg")
    fusion.__init__([reader])
    fusion.units.remove(LOOP)
    fusion.order.remove(reader)
    fusion.units.clear()


@pytest.mark.parametrize("broken, words", [
    (without_axes, "it has 1 reductions"), (with_other_axes, "does not reduce its space"),
    (with_no_axis, "its axes are not some of its space's"),
    (in_other_space, "goes from 0 to 4 in dimension 0"), (without_maps, "has no index map"),
    (without_homes, "puts nothing in memory"), (at_home_elsewhere, "is not at home in it"),
    (not_each_point, "has not an element for each of its points"),
    (too_many, "it computes 97 nodes"), (backwards, "it comes before"), (twice, "comes twice"),
    (in_no_memory, "read from memory, and put in none"),
    (in_no_group, "computed in no group"), (no_unit, "none of the program's units"),
], ids=lambda x: getattr(x, "__name__", ""))
def test_bad_groups(broken, words):
    fusion, *nodes = fused()
    broken(fusion, *nodes)
    with pytest.raises(InternalError, match=re.escape(words)):
        check_groups(fusion)


def test_groups_of_the_example():
    fusion, total, shifted, last = fused()
    assert [type(unit) for unit in fusion.units] == [Group, Group]
    assert fusion.home[shifted] is not fusion.home[last]


# --- integers -------------------------------------------------------------------------------------

def test_integers_of_a_kernel_are_read_as_written():
    described = KernelLayout(2)
    call = KernelIntegers([(3, 64), (0, 7)], 2, 8, 128, 4, 5, [1, 0],
                          [[2, 640, 1]], [[5, 128, 0], [3, 1, 1]])
    integers = described.write(call)
    assert described.read(integers) == call
    assert [integers[place] for place in (
        described.place(1), described.threads, described.items, described.length,
        described.pieces, described.rows, described.stride(0),
        described.points)] == [0, 2, 8, 128, 4, 5, 1, 1]
    for wrong in (integers[:-1], [*integers, 0], integers[:described.points]):
        with pytest.raises(ValueError, match=f"there are {len(wrong)} integers, and should be"):
            described.read(wrong)


def test_most_dimensions():
    """A program with more is not planned."""

    def plan(rank):
        """The plan of a difference whose operands vary along every other dimension."""
        x, y = (np.zeros([2 if dim % 2 == odd else 1 for dim in range(rank)], np.float32)
                for odd in (0, 1))
        jaxpr = maxjax.make_jaxpr(lambda x, y: x - y)(x, y).jaxpr
        return CheckedPlan(jaxpr, 2)

    assert plan(layout.MOST_DIMENSIONS + 1).codes
    with pytest.raises(LoweringError, match="18 dimensions of which more than 16"):
        plan(layout.MOST_DIMENSIONS + 2)


# --- what every plan is asked ---

WRONG_CALLS = {
    "a sum that goes further": lambda c, x: c.call(
        "cumsum_float32", [x], (2, 4, 1, 0, 1), [(x.shape, x.dtype)]),
    "a sum that writes further": lambda c, x: c.call(
        "cumsum_float32", [x], (2, 3, 1, 0, 1), [((2,), x.dtype)]),
    "an unknown function": lambda c, x: c.call("spin_float32", [x], (2, 3, 1), [((6,), x.dtype)]),
    "a missing result": lambda c, x: c.call(
        "threefry2x32", [x, x, x, x], (6, 6, 1), [(x.shape, np.uint32)]),
    "a product of others": lambda c, x: c.call(
        "matmul_float32", [x, x], (), [((2, 3), x.dtype)], strided=True),
    "a view": lambda c, x: [c.native("neg", c.shared(View(
        (4, 3), x.dtype, (x,), ((0, 1, 0), (0, 1, 1)))))],
    "a view from behind": lambda c, x: [c.native("neg", c.shared(View(
        (2, 3), x.dtype, (x,), ((0, -1, 0), (0, 1, 1)))))],
    "a piece": lambda c, x: [c.shared(Assemble(
        (2, 3), x.dtype, (x,), (Piece((1, 0), (1, 1)),)))],
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_a_plan_that_leaves_its_arrays_is_refused(name, monkeypatch):
    """By the plan itself, whatever let its program in."""
    closed = maxjax.make_jaxpr(jnp.sin)(np.zeros((2, 3), np.float32))
    monkeypatch.setattr(MojoContext, "lower_jaxpr",
                        lambda self, jaxpr, consts, nodes: WRONG_CALLS[name](self, nodes[0])[:1])
    with pytest.raises(InternalError):
        Plan(closed.jaxpr, 2)


# --- the calls and the memory ---------------------------------------------------------------------

class KeptPlan(Plan):
    """A plan that records its parts."""

    def finished(self, part):
        if not hasattr(self, "parts"):
            self.parts = []
        self.parts.append(part)


def step_of_training(x, w, sequence):
    """Calls, groups of all kinds, a loop, a filler, temporaries that live at the same time."""
    hidden = jnp.tanh(x @ w)
    other = jnp.sin(x) @ w
    total = jnp.sum(hidden * other, axis=0)
    last, _ = lax.scan(lambda c, s: (c * s + total, s), total, sequence)
    padded = jnp.pad(jnp.sort(hidden, axis=1), 1)
    return padded, hidden - last, jnp.sum(other, axis=1)


def kept_plan() -> KeptPlan:
    arrays = [np.zeros(shape, np.float32) for shape in ((64, 32), (32, 160), (8, 160))]
    plan = KeptPlan(Program(maxjax.make_jaxpr(step_of_training)(*arrays)).opened.jaxpr, 2)
    for part in plan.parts:
        check_part(part)
    check_plan(plan)
    return plan


def temporaries(part):
    return [node for node, (slot, _) in part.places.items() if slot == part.arena_slot]


def kernel_step(part, kind):
    """The first call of a kind of kernel, and its group."""
    calls = [step for step in part.tape.steps if step.kernel]
    groups = [unit for unit, _ in part.units if isinstance(unit, Group)]
    return next((step, group) for step, group in zip(calls, groups, strict=True)
                if part.kernels[group].kind == kind)


def change(part, kind, **fields):
    """Replaces integers of a call by functions of the old ones."""
    step, group = kernel_step(part, kind)
    described = KernelLayout(len(part.kernels[group].operands))
    call = described.read(step.integers[:-1])
    step.integers[:-1] = described.write(
        call._replace(**{name: make(getattr(call, name)) for name, make in fields.items()}))


def pack_step(part, function):
    return next(step for step in part.tape.steps if step.function.startswith(function))


def reorder(part):
    part.units.reverse()


def forget_unit(part):
    part.units.pop(0)


def shrink_arena(part):
    part.arena.size = 64


def move_block(part):
    places = [part.places[node][1] for node in part.together]
    block = next(block for block in part.arena.blocks if block[0] == places[1])
    block[0] = places[0]


def share_place(part):
    """One block for all."""
    part.arena.blocks[:] = [[0, part.arena.size, 0, len(part.units)]]
    part.places.update(dict.fromkeys(temporaries(part), (part.arena_slot, 0)))


def forget_place(part):
    del part.places[temporaries(part)[0]]


def no_slot(part):
    part.places[temporaries(part)[0]] = (part.plan.slots, 0)


def one_result(part):
    results = [node for node, (slot, _) in part.places.items() if slot != part.arena_slot]
    part.places[results[0]] = part.places[results[1]]


def beside_block(part):
    node = temporaries(part)[0]
    part.places[node] = (part.arena_slot, part.places[node][1] + 8)


def forget_call(part):
    part.tape.steps.remove(kernel_step(part, "map")[0])


def other_kernel(part):
    step, _ = kernel_step(part, "map")
    part.tape.steps[part.tape.steps.index(step)] = step._replace(kernel="def KERNEL(): ...")


def cut_integers(part):
    kernel_step(part, "map")[0].integers.pop(-2)


def many_dimensions(part):
    change(part, "columns", point_dims=lambda dims: [[1] + [0] * 9] * 17,
           row_dims=lambda dims: dims)


def beyond_memory(part):
    step, group = kernel_step(part, "map")
    operands = part.kernels[group].operands
    number = next(k for k, x in enumerate(operands) if not x.is_output)
    access = operands[number].access
    operands[number] = operands[number]._replace(access=access._replace(offset=access.offset + 1))
    described = KernelLayout(len(operands))
    step.integers[described.place(number) + 1] += operands[number].node.dtype.itemsize


def unknown_function(part):
    steps = part.tape.steps
    step = pack_step(part, "sort_")
    steps[steps.index(step)] = step._replace(function="sorted_float32")


def drop_integer(function):
    def drop(part):
        pack_step(part, function).integers.pop(-2)
    drop.__name__ = f"drop_integer_of_{function}"
    return drop


def no_threads(part):
    pack_step(part, "sort_").integers[-1] = THREADS


def pack_slot(part):
    pack_step(part, "matmul_").integers[0] = part.plan.slots


def pack_offset(part):
    integers = pack_step(part, "sort_").integers
    place = next(k for k in (0, 2) if integers[k] == part.arena_slot)
    integers[place + 1] = part.arena.size + 64


def loop_slot(part):
    pack_step(part, "tape_scan").integers[4] = -1


@pytest.mark.parametrize("broken, words", [
    (reorder, "before it is made"), (forget_unit, "which is nowhere made"),
    (shrink_arena, "is not within the arena of 64 bytes"),
    (move_block, "a block of the arena that overlaps"), (share_place, "still lives"),
    (forget_place, "it has no place"), (no_slot, "its place is slot"),
    (one_result, "still lives"), (beside_block, "has no block of the arena there"),
    (forget_call, "groups, and has"), (other_kernel, "its step calls another kernel"),
    (cut_integers, "integers, and should be"), (many_dimensions, "it walks through 17"),
    (lambda part: change(part, "columns", rows=lambda rows: rows + 1), "rows, of dimensions"),
    (lambda part: change(part, "map", length=lambda n: n + 1), "it goes through"),
    (lambda part: change(part, "map", items=lambda items: items + 1), "items, of"),
    (lambda part: change(part, "map", threads=lambda threads: 0), "0 threads share"),
    (lambda part: change(part, "map", strides=lambda x: [2, *x[1:]]), "reaches from"),
    (lambda part: change(part, "map", places=lambda x: [(0, 4), *x[1:]]), "in its integers at"),
    (beyond_memory, "is accessed from element 1 to"),
    (unknown_function, "called by no unit"), (drop_integer("sort_"), "integers, and needs"),
    (drop_integer("matmul_"), "integers, and needs 19"),
    (drop_integer("copy_"), "integers, and needs"), (drop_integer("fill_"), "integers, and needs"),
    (drop_integer("tape_scan"), "is no count"), (no_threads, "no number of threads"),
    (pack_slot, "its place 0 is slot"), (pack_offset, "is slot"), (loop_slot, "its slots"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_bad_parts(broken, words):
    plan = kept_plan()
    part = plan.parts[-1]
    part.together = next(
        (a, b) for a, b in itertools.permutations(temporaries(part), 2)
        if part.first[a] < part.first[b] < part.last[a] and part.places[a] != part.places[b])
    broken(part)
    with pytest.raises(InternalError, match=re.escape(words)):
        check_part(part)


@pytest.mark.parametrize("fields, words", [
    ({"kernels": {}}, "its kernels are not those"), ({"functions": {}}, "its functions are not"),
    ({"constants": b"1"}, "are not aligned"), ({"written": 2}, "writes 2 results, and has 3"),
    ({"outputs": [3, ((), FLOAT), ((), FLOAT), ((), FLOAT)]}, "are arguments [3] of 3"),
], ids=lambda x: x if isinstance(x, str) else "")
def test_bad_plans(fields, words):
    plan = kept_plan()
    vars(plan).update(fields)
    with pytest.raises(InternalError, match=re.escape(words)):
        check_plan(plan)


def test_kernels_differ_as_their_texts_do():
    """A kernel is known by its structure, which texts are written from; a loop's by its text."""
    made = [program.kernels for program in mojo_programs.default(4)]
    forms = list(dict.fromkeys(form for kernels in made for form in kernels))
    assert len(forms) > 50
    assert len({form.identity for form in forms}) == len(forms)
    assert len({form.source for form in forms}) == len(forms)
    groups = [form for form in forms if not isinstance(form, LoopForm)]
    assert len({form.structure for form in groups}) == len(groups) > 40


def test_calls_over_turned_arrays_keep_their_results():
    """The nearest of some points: distances are computed with the short dimension first."""
    def nearest(points, centres):
        return jnp.argmin(jnp.sum((points[:, None] - centres[None]) ** 2, -1), 1)

    closed = simplify(maxjax.make_jaxpr(nearest)(jnp.ones((5000, 8)), jnp.ones((64, 8))))
    plan = CheckedPlan(closed.jaxpr, 2)
    step, = [step for step in plan.tape.steps if step.function.startswith("argmin")]
    assert len(step.integers) == 8      # two places, three sizes, threads
