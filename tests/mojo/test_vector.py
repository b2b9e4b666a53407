"""The vector machine: programs run without kernels, and exchange them for kernels as they run."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

from tests.gen import mojo_random
from tests.mojo.test_cases import check_guarded
from tests.support import mojo_programs
from tests.support.waiting import until

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import debug, lax
from maxjax._base import config
from maxjax._base.config import enable_x64
from maxjax._max.mojo import backend as mojo_backend
from maxjax._max.mojo import bytecode, pieces, short_dimensions, vector_functions
from maxjax._max.mojo import part as part_module
from maxjax._max.mojo.backend import _by_heat
from maxjax._max.mojo.check_code import check_code
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._max.mojo.part import Part
from maxjax._max.mojo.plan import Plan
from maxjax._runtime.long_calls import LongCalls
from maxjax._runtime.program import BEING_COMPILED, Program
from maxjax._runtime.tiering import Tiering

FAMILIES = mojo_programs.tables()
# Nothing is compiled for them; `pytest -m exhaustive` runs all.
COUNT = 20

pytestmark = pytest.mark.xdist_group("mojo")


def check_family(family: str, count: int | None, monkeypatch) -> None:
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    failures, without = [], []
    items = mojo_programs.family(FAMILIES[family], count)
    for item in items:
        if not mojo_programs.has_code(item):
            without.append(item.name)
            continue
        try:
            mojo_programs.check(item)
        except Exception as error:
            failures.append(f"{item.name}: {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {len(items)} differ:\n" + "\n".join(failures)
    assert len(without) <= len(items) // 5, f"no code for {', '.join(without)}"


@pytest.mark.parametrize("family", FAMILIES)
def test_families_give_what_tier_0_gives(family, monkeypatch):
    check_family(family, COUNT, monkeypatch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_give_what_tier_0_gives(family, monkeypatch):
    check_family(family, None, monkeypatch)


# Structures of random programs, each with some assignments of sizes and dtypes.
STRUCTURES = range(12)


@pytest.fixture
def turns(monkeypatch):
    """Every value with a short last dimension is turned; the shapes of those that were."""
    turned = []

    def is_worth_it(region, users, wanted):
        turned.append(region[0].shape)
        return True

    for limit, value in (("_LONG", 2), ("_LEAST_ELEMENTS", 1), ("_LONG_ONCE", 2),
                         ("_LEAST_ELEMENTS_ONCE", 1), ("_is_worth_it", is_worth_it)):
        monkeypatch.setattr(short_dimensions, limit, value)
    short_dimensions.trailing_count.cache_clear()
    yield turned
    short_dimensions.trailing_count.cache_clear()


@pytest.fixture
def cuts(monkeypatch):
    """Every region that reads assembled arrays is computed by pieces; the shapes of those that are.
    """
    cut = []

    def gain(self, number, arrays, boxes):
        cut.append(self.members[number][0].shape)
        return 1.

    monkeypatch.setattr(pieces, "_LEAST_BYTES", 1)
    monkeypatch.setattr(pieces._Regions, "_gain", gain)
    return cut


@pytest.mark.parametrize("how", [
    "as it is", "on threads", "in the least blocks", "turned", "by pieces"])
def test_random_programs(how, monkeypatch, request):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    if how in ("turned", "by pieces"):
        shapes = request.getfixturevalue("turns" if how == "turned" else "cuts")
        check_random(STRUCTURES if how == "turned" else range(48))
        assert len(set(shapes)) > 5
        return
    if how == "on threads":
        monkeypatch.setattr(part_module, "threads_for", lambda group, elements, cores: cores)
        monkeypatch.setattr(part_module, "_BLOCK", 64)
    elif how != "as it is":
        for limit in ("_MOST_BLOCK", "_REGISTER_MEMORY", "_LINE_MEMORY"):
            monkeypatch.setattr(bytecode, limit, 1)
    check_random(STRUCTURES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("begin", range(1000, 2000, 100))
def test_many_random_programs(begin, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)
    check_random(range(begin, begin + 100))


def check_random(structures):
    for item in mojo_random.programs(structures, range(4)):
        if mojo_programs.has_code(item):
            try:
                mojo_programs.check(item)
            except Exception as error:
                raise AssertionError(f"{item.name}: {error}\n{item.program.opened}") from error


@pytest.mark.extended
@pytest.mark.parametrize("side", ["end", "begin"])
def test_within_bounds(side):
    check_guarded(side, "vector", 12)


def test_rows_that_lie_as_one_and_rows_that_do_not():
    """Several reduced dimensions are all one with the innermost, or are walked through."""
    x = f32(3, 3, 3, 3, 3, 1)
    for function in (
            lambda x: maxjax.nn.softmax(x, (2, 3, 4)),
            lambda x: maxjax.nn.softmax(jnp.broadcast_to(x[..., :1, :, :], x.shape), (0, 4))):
        program = program_of(function, x)
        plan = Plan(program.opened.jaxpr, 1)
        values = [*program.consts, x]
        result, = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
        np.testing.assert_allclose(result, program.tier0(*values)[0], rtol=1e-5)


def program_of(function, *args):
    return Program(maxjax.make_jaxpr(function)(*args))


RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


# Lines shorter and longer than blocks, points in odd numbers, several rows, columns and outputs.
SHAPES = [(1,), (3,), (127,), (129,), (1025,), (3, 5), (700, 3), (3, 700), (2, 3000), (2, 9000),
          (17, 1, 9), (4, 5, 6), (2, 3, 4, 5), (130, 129),
          (500, 2), (90, 7, 4), (33, 3, 13), (3, 50, 7, 2), (1, 70, 1, 5)]
OPERATIONS = {
    "map": lambda x: jnp.tanh(x * 2 + 1) - x,
    "spread": lambda x: x * x[..., :1] + x[:1],
    "reversed": lambda x: x[..., ::-1] * 2 + x,
    "transposed": lambda x: x.T * 2,
    "apart": lambda x: (x[..., ::3] * x[..., :1], jnp.sqrt(abs(x[..., -1]))),
    "outer": lambda x: (x + x[:1] * x[..., -1:] + jnp.arange(x.shape[0] * 1.0).reshape(
        x.shape[:1] + (1,) * (x.ndim - 1)), (x[..., ::-1] > x.max(-1, keepdims=True) - 1)),
    "pieces": lambda x: jnp.stack([x * 2, x[..., :1] - x, x + x[..., -1:]], -1),
    "several": lambda x: (x + 1, x * 2, x),
    "lines": lambda x: (x * x).sum(-1),
    "softmax": lambda x: maxjax.nn.softmax(x, -1),
    "variance": lambda x: (x - x.mean(-1, keepdims=True)) ** 2 / (x.var(-1, keepdims=True) + 1),
    "columns": lambda x: (x * 2).sum(0) + 1,
    "everything": lambda x: (x.sum(), x.max(), jnp.all(x > -9), (x > 0).sum()),
    "middle": lambda x: x.sum(tuple(range(0, x.ndim, 2))),
    "half": lambda x: (x.astype(jnp.bfloat16) * 2).sum(-1),
    "index": lambda x: x + jnp.arange(x.shape[-1]) + lax.broadcasted_iota(jnp.int32, x.shape, 0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_all_shapes_agree_with_tier_0(name):
    for shape in SHAPES:
        x = f32(*shape)
        program = program_of(OPERATIONS[name], x)
        for cores in (1, 4):
            plan = Plan(program.opened.jaxpr, cores)
            values = [*program.consts, x]
            with np.errstate(all="ignore"):
                expected = program.tier0(*values)
            for ours, theirs in zip(mojo_programs.without_kernels(
                plan, program.opened.jaxpr)(values), expected,
                                    strict=True):
                theirs = np.asarray(theirs)
                assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, shape
                np.testing.assert_allclose(
                    ours.astype(np.float64), theirs.astype(np.float64),
                    rtol=1e-2 if ours.dtype.itemsize == 2 else 2e-5,
                    atol=2e-4 * max(1.0, float(np.abs(x).sum()) / 1e3), err_msg=str((name, shape)))


@pytest.mark.parametrize("function, shapes, kernels", [
    (lambda x, s: x * s[:, None], [(300, 3), (300,)], 0),       # rows that no vector fills
    (lambda x, s: jnp.sum(x * s[:, None], -1), [(300, 3), (300,)], 0),
    (lambda x, s: x[:, 1:5] * s[:, ::2], [(200, 7), (200, 8)], 0),
    (lambda x, s: x * s[:, None], [(300, 40), (300,)], 1),      # long enough
    (lambda x, s: x * s[:, None], [(30, 3), (30,)], 1),         # soon done
    (lambda x, s: x * s, [(300, 3), (300, 3)], 1),              # one line
])
def test_short_rows_have_no_kernel(function, shapes, kernels):
    """The vector machine is faster, and stays when all else is compiled."""
    args = [f32(*shape) for shape in shapes]
    program = program_of(function, *args)
    plan = CheckedPlan(program.opened.jaxpr, 2)
    assert len(plan.kernels) == kernels and len(plan.codes) == 1, plan.source
    assert (bytecode.MACHINE in plan.functions) == (not kernels)
    assert plan.functions_without_kernels().keys() >= plan.functions.keys()
    values = [*program.consts, *args]
    result, = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
    np.testing.assert_allclose(result, program.tier0(*values)[0], rtol=1e-6)


def stencil(x):
    """Windows of one array, with what else a map may read, in windows of others."""
    near = x[..., 1:-1, 1:-1] + x[..., 2:, 1:-1] - x[..., :-2, 2:] * x[..., 1:-1, :-2]
    y = jnp.where(near > x[..., 1:-1, -1:], near * x[..., 1:2, 1:-1], near - x[..., 1:-1, 2:])
    y += lax.broadcasted_iota(x.dtype, y.shape, y.ndim - 1) * x[..., :1, :1]
    return jnp.pad(y, [(0, 0)] * (x.ndim - 2) + [(1, 1)] * 2, constant_values=3), near < y, y * 2


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
def test_lines_of_windows_are_as_far_apart_in_registers(dtype, monkeypatch):
    """What is between them is computed for nothing: neither stored nor read beyond arrays."""
    monkeypatch.setattr(pieces, "_LEAST_BYTES", 1)
    for shape in [(40, 130), (90, 66), (300, 33), (5, 600), (9, 400), (3, 50, 34), (70, 4, 30)]:
        x = RNG.integers(-99, 99, shape).astype(dtype)
        if dtype == "float32":
            x[..., 0] = np.nan
            x[..., ::7, -1] = np.inf
        program = program_of(stencil, x)
        for cores in (1, 3):
            plan = CheckedPlan(program.opened.jaxpr, cores)
            values = [*program.consts, x]
            for ours, theirs in zip(mojo_programs.without_kernels(
                    plan, program.opened.jaxpr)(values), program.tier0(*values), strict=True):
                np.testing.assert_array_equal(ours, theirs, strict=True)


def test_lines_that_are_spread_in_many_groups():
    """A row of each group for all its lines, and the same lines for all groups."""
    for shape in [(500, 4, 2), (90, 3, 5), (4, 60, 3)]:
        x, y = f32(shape[0], 1, shape[2]), f32(*shape[1:])
        program = program_of(lambda x, y: (x - y, (x * y) > 0), x, y)
        plan = CheckedPlan(program.opened.jaxpr, 1)
        values = [*program.consts, x, y]
        for ours, theirs in zip(mojo_programs.without_kernels(
                plan, program.opened.jaxpr)(values), program.tier0(*values), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("around", [0.0, -0.0, np.nan])
@pytest.mark.parametrize("starts", [(1, 2), (0, 0), (-5, 90)])
def test_a_window_in_one_element_is_written_where_it_is_computed(starts, around):
    x = f32(70, 64)
    x[3, 4:6] = np.nan, -np.inf
    program = program_of(lambda x: (lax.dynamic_update_slice(
        jnp.full((72, 70), around), jnp.sqrt(x), starts), x), x)
    plan = CheckedPlan(program.opened.jaxpr, 1)
    assert "write_window" not in plan.source
    values = [*program.consts, x]
    with np.errstate(all="ignore"):
        expected = program.tier0(*values)
    for ours, theirs in zip(mojo_programs.without_kernels(
            plan, program.opened.jaxpr)(values), expected, strict=True):
        np.testing.assert_array_equal(ours.view(np.uint32), theirs.view(np.uint32))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_integers_without_a_sign_have_the_functions_of_those_with_one(kind):
    """Where both give the same bits; what depends on a sign is a function of its own."""
    bits, signed = 8 * np.dtype(kind).itemsize, kind.removeprefix("u")
    some = np.array([0, 1, 2, 7, 100, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits - 1) + 1,
                     (1 << bits) - 2, (1 << bits) - 1], kind)
    x, y = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(some, some))

    def arithmetic(x, y):
        return [lax.neg(x), x + y, x - y, x * y, ~x, x & y, x | y, x ^ y,
                lax.population_count(x), lax.clz(x), x == y, x != y, lax.shift_left(x, y),
                lax.shift_right_logical(x, y), lax.shift_right_arithmetic(x, y)]

    def others(x, y):
        return [x < y, x <= y, x > y, x >= y, lax.max(x, y), lax.min(x, y), lax.div(x, y),
                lax.rem(x, y), lax.sign(x), *(x.astype(dtype) for dtype in (
                    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                    "float32", "float64", "bool"))]

    def reduced(x, y):
        return [lax.reduce_sum(x, (0,)), lax.reduce_prod(y, (0,)), lax.reduce_max(x, (0,)),
                lax.reduce_min(y, (0,)), lax.reduce_and(x | y, (0,)), lax.reduce_or(x, (0,)),
                lax.reduce_xor(x * y, (0,)), jnp.arange(100, dtype=kind) + x]

    for function, names, own in (
            (arithmetic, ("add", "mul", "neg", "eq", "shift_right_arithmetic", "clz"), ()),
            (others, (), ("lt", "max", "div", "rem")),
            (reduced, ("lines_sum", "lines_xor", "ramp"), ("lines_max", "lines_min"))):
        with enable_x64(True):
            program = program_of(function, x, y)
        plan = CheckedPlan(program.opened.jaxpr, 1)
        for name in names:
            assert re.search(rf"\b{name}_{signed}\b", plan.uncompiled_source), name
            assert not re.search(rf"\b{name}_{kind}\b", plan.uncompiled_source), name
        for name in own:
            assert re.search(rf"\b{name}_{kind}\b", plan.uncompiled_source), name
        values = [*program.consts, x, y]
        for ours, theirs in zip(mojo_programs.without_kernels(
                plan, program.opened.jaxpr)(values), program.tier0(*values), strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)


SPECIAL = np.float32([0, -0.0, 1, -1.5, np.inf, -np.inf, np.nan, 1e-30, -3e38, 3e38, 1.0000001])


def test_two_operations_are_one_instruction():
    """Each pair, with the first result as either operand, and where it is read again."""
    x, y, z = (np.ascontiguousarray(part.ravel()) for part in np.meshgrid(*[SPECIAL] * 3))

    def chain(x, y, z):
        a, b = x * y, y * z
        return (a + b) * z - x * (y - a), (x[::-1] * y - z).max(), ((x * z + b) * y).reshape(
            121, 11).max(1)

    joint = vector_functions.joint_operations().values()
    assert len(joint) == 18
    functions = [(lambda x, y, z, found=found: getattr(lax, found.then)(*[
        getattr(lax, found.first)(x, y), z][::-1 if found.right else 1])) for found in joint]
    for function, names in [*((function, [found]) for function, found in zip(
            functions, joint, strict=True)), (chain, joint)]:
        program = program_of(function, x, y, z)
        plan = CheckedPlan(program.opened.jaxpr, 1)
        text = plan.uncompiled_source
        assert any(f"= {found.function.removeprefix('vector_')}(" in text for found in names), text
        values = [*program.consts, x, y, z]
        with np.errstate(all="ignore"):
            expected = program.tier0(*values)
        for ours, theirs in zip(mojo_programs.without_kernels(
                plan, program.opened.jaxpr)(values), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, strict=True)
            np.testing.assert_array_equal(np.signbit(ours)[theirs == 0],
                                          np.signbit(theirs)[theirs == 0])


def test_lines_of_bytes_end_with_a_vector():
    """A costly operation on bytes goes by 128 elements: a block that is no multiple of that would
    be written past its end."""
    x = RNG.integers(-99, 99, (2, 3000)).astype(np.int8)
    program = program_of(lambda x: jnp.max(jnp.sign(x) * (x // 3), -1), x)
    plan = CheckedPlan(program.opened.jaxpr, 1)
    values = [*program.consts, x]
    result, = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
    np.testing.assert_array_equal(result, program.tier0(*values)[0])


def test_what_is_computed_once_holds_registers_while_it_is_read():
    """A long chain of scalars beside an array: each is needed by the next one alone."""
    def function(x, s):
        total = s[0]
        for number in range(1, 40):
            total = jnp.maximum(total * s[number % 4], s[(number + 1) % 4])
        return x * total + s[1]

    x, s = f32(3, 500), f32(4)
    program = program_of(function, x, s)
    plan = CheckedPlan(program.opened.jaxpr, 1)
    code, = [group.code for group in plan.codes]
    assert code is not None and code.registers < 16, code
    values = [*program.consts, x, s]
    result, = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
    np.testing.assert_array_equal(result, program.tier0(*values)[0])


@pytest.mark.parametrize("dtypes", [
    ("float32",), ("bool", "int32", "float32"), ("int8", "float16")])
def test_many_single_elements_at_once(dtypes):
    """As loops of solvers carry them: one group, in which all of them are in use together."""
    kinds = [np.dtype(dtypes[number % len(dtypes)]) for number in range(44)]
    values = [np.asarray(RNG.standard_normal() * 9).astype(dtype) for dtype in kinds]

    def function(flag, *scalars):
        turned = [*scalars[1:], scalars[0]]
        return [jnp.where(flag, x, y.astype(x.dtype)).reshape(1)
                for x, y in zip(scalars, turned)]

    flag = np.array(False)
    program = program_of(function, flag, *values)
    plan = CheckedPlan(program.opened.jaxpr, 1)
    assert len(plan.codes) < 44 and max(group.code.registers for group in plan.codes) > 32
    operands = [*program.consts, flag, *values]
    results = mojo_programs.without_kernels(plan, program.opened.jaxpr)(operands)
    for result, expected in zip(results, program.tier0(*operands), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_code_is_read_by_people():
    program = program_of(lambda x: maxjax.nn.relu(x * 2).sum(-1), f32(4, 300))
    text = Plan(program.opened.jaxpr, 1).uncompiled_source
    for part in ("rows:", "view(operand 0)", "mul_float32", "reduce lines_sum_float32", "store("):
        assert part in text, text


@pytest.mark.parametrize("change, message", [
    (lambda x: x._replace(sources=(60,)), "read before it is written"),
    (lambda x: x._replace(function=""), "its function"),
    (lambda x: x._replace(level=7), "no such level"),
    (lambda x: x._replace(opcode="jump"), "no such instruction"),
    (lambda x: x._replace(target=99), "no such register"),
])
def test_code_that_is_wrong_is_refused(change, message):
    program = program_of(lambda x: jnp.sin(x) + 1, f32(300))
    parts = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "part", lambda *arguments: parts.append(Part(*arguments)) or parts[-1])
        Plan(program.opened.jaxpr, 1)
    kernel, = parts[0].kernels.values()
    code = bytecode.code_of(kernel.form.schedule, 300, 300, False)
    check_code(code, kernel)
    part = code.phases[0].full
    position = next(n for n, x in enumerate(part) if x.opcode == "apply")
    part[position] = change(part[position])
    with pytest.raises(Exception, match=message):
        check_code(code, kernel)


# --- in the place of kernels, and giving it up ----------------------------------------------------

def test_kernels_take_its_place_within_a_call():
    def slow(x):
        return lax.fori_loop(0, 3_000, lambda i, x: jnp.tanh(x * 1.001), x)

    x = f32(3000)
    program = program_of(slow, x)
    plan = Plan(program.opened.jaxpr, 1)
    executable = mojo_programs.without_kernels(plan, program.opened.jaxpr)
    assert executable._without_kernels
    mojo_programs.store().build(list(plan.kernels))
    kernels = mojo_programs.store().find(plan.kernels)
    assert set(kernels) == set(plan.kernels)
    values = [*program.consts, x]
    expected, = executable(values)
    results = []
    thread = threading.Thread(target=lambda: results.append(executable(values)))
    thread.start()
    executable.exchange(kernels)
    thread.join()
    assert not executable._without_kernels
    np.testing.assert_allclose(results[0][0], expected, rtol=1e-5)
    np.testing.assert_allclose(executable(values)[0], expected, rtol=1e-5)


@pytest.fixture
def tiering(monkeypatch):
    """A policy of its own, on the pack that the tests share."""
    from maxjax._runtime import program as program_module
    made = Tiering()
    made.mojo.pack = mojo_programs.pack()
    made.mojo.store = mojo_programs.store()
    monkeypatch.setattr(program_module.policy, "tiering", made)
    monkeypatch.setattr("maxjax.debug.tiering", made)
    with config.compile_mode("auto"), config.backend("mojo"):
        yield made


def test_a_program_runs_native_at_its_first_call_and_compiled_when_it_is_hot(tiering, monkeypatch):
    jitted = maxjax.jit(lambda x: jnp.tanh(x * 3.25) - jnp.exp(-x * x) * 1.5)
    x = f32(1000, 300)
    expected = np.tanh(x * np.float32(3.25)) - np.exp(-x * x) * np.float32(1.5)
    np.testing.assert_allclose(jitted(x), expected, rtol=1e-5, atol=1e-6)
    found = debug.statistics(jitted)
    assert found.state == "native" and found.interpreted_calls == 0, found
    assert "until its kernels are compiled" in str(debug.explain(jitted, x, source=True))
    monkeypatch.setattr(Tiering, "HOT_NANOSECONDS", 0)
    jitted(x)
    until(lambda: debug.statistics(jitted).state == "compiled", 240)
    np.testing.assert_allclose(jitted(x), expected, rtol=1e-5, atol=1e-6)


def test_a_program_is_hot_whatever_its_kernels_are_estimated_to_take(tiering, monkeypatch):
    jitted, x = maxjax.jit(lambda x: jnp.arctan(x * 1.25) - jnp.cosh(x)), f32(1000, 300)
    monkeypatch.setattr(tiering.mojo, "charge", lambda prepared, nanoseconds: 0.0)
    monkeypatch.setattr(Tiering, "CHARGE_NANOSECONDS", 0)
    requested = []
    monkeypatch.setattr(tiering, "submit", lambda program, **options: requested.append(program))
    monkeypatch.setattr(Tiering, "HOT_NANOSECONDS", 1 << 60)
    jitted(x)
    assert debug.statistics(jitted).state == "native" and not requested
    monkeypatch.setattr(Tiering, "HOT_NANOSECONDS", 1)
    jitted(x)
    assert len(requested) == 1


def test_a_long_call_is_noticed_while_it_runs(monkeypatch):
    noticed = []
    calls = LongCalls(lambda program, nanoseconds: noticed.append((program, nanoseconds)))
    monkeypatch.setattr(LongCalls, "LONG_NANOSECONDS", 10_000_000)
    monkeypatch.setattr(LongCalls, "_LOOK_SECONDS", 0.01)
    program = program_of(jnp.sin, f32(3))
    calls.begin(program)
    until(lambda: len(noticed) > 2)
    told = calls.end(program)
    assert {program for program, _ in noticed} == {program}
    assert told == sum(nanoseconds for _, nanoseconds in noticed)
    assert all(nanoseconds > 5_000_000 for _, nanoseconds in noticed)


def test_a_small_program_stays_with_the_interpreter(tiering):
    jitted = maxjax.jit(lambda x: x * 2 + 1)
    jitted(f32(10))
    assert debug.statistics(jitted).state == "interpreted"


def test_nothing_is_native_where_nothing_may_be_compiled(tiering):
    jitted = maxjax.jit(lambda x: jnp.tanh(x * 4.5) + 2)
    with config.compile_mode("never"):
        jitted(f32(1000, 300))
    assert debug.statistics(jitted).compiled_calls == 0


def test_waiting_for_the_compiler_does_not_stop_at_the_machine(tiering):
    jitted = maxjax.jit(lambda x: jnp.tanh(x * 5.5) - 2)
    x = f32(1000, 300)
    jitted(x)
    assert debug.statistics(jitted).state == "native"
    with config.compile_mode("always"):
        jitted(x)
    assert debug.statistics(jitted).state == "compiled"


def test_a_small_program_is_planned_once_it_has_cost_what_that_takes(tiering):
    wide = maxjax.jit(lambda x: jnp.tanh(x * 2.75) - x)
    wide(f32(1000, 300))        # brings in the backend
    jitted = maxjax.jit(lambda x: lax.fori_loop(0, 50, lambda i, x: jnp.exp(-x), x))
    for _ in range(100):        # of some 0.1 ms
        jitted(np.float32(0.3))
    found = debug.statistics(jitted)
    assert found.state != "interpreted" and found.compiled_calls > 0, found


def test_a_loop_that_tells_no_number_runs_native_at_its_first_call(tiering):
    jitted = maxjax.jit(lambda n, x: lax.fori_loop(0, n, lambda i, x: x * 3 + i, x))
    expected = np.int32(5)
    with np.errstate(over="ignore"):
        for i in range(100):
            expected = expected * np.int32(3) + np.int32(i)
    assert jitted(100, np.int32(5)) == expected
    found = debug.statistics(jitted)
    assert found.interpreted_calls == 0 and found.compiled_calls == 1, found


@pytest.mark.extended
def test_kernels_get_hot_in_all_programs_together(tiering, monkeypatch):
    """None of the programs runs long enough; each is of a size of its own."""
    monkeypatch.setattr(Tiering, "HOT_NANOSECONDS", 100_000_000)
    monkeypatch.setattr(Tiering, "CHARGE_NANOSECONDS", 0)
    charge = tiering.mojo.charge
    monkeypatch.setattr(tiering.mojo, "charge", lambda prepared, _: charge(prepared, 10_000_000))
    requested = []
    submit = tiering.submit
    monkeypatch.setattr(tiering, "submit", lambda program, **options: (
        requested.append(program), submit(program, **options)))

    def program():
        return maxjax.jit(lambda x: jnp.tanh(x * 6.5) - jnp.cos(x) * x)

    made = [(program(), f32(300 + size, 1000)) for size in range(12)]
    for count, (jitted, x) in enumerate(made, 1):
        jitted(x)
        if count < 9:
            assert not requested, count
    assert requested
    programs = [entry.closed.made.programs[()]
                for jitted, _ in made for entry in jitted._entries.values()]
    until(lambda: all(program.compiled.is_complete for program in programs), 240)
    for jitted, x in made:
        np.testing.assert_allclose(jitted(x), np.tanh(x * np.float32(6.5)) - np.cos(x) * x,
                                   rtol=1e-4, atol=1e-5)
        assert debug.statistics(jitted).state == "compiled"
    assert len(requested) <= 3      # those that ran before the kernel was there


@pytest.mark.extended
def test_a_program_that_waits_for_the_pack_runs_native_once_it_is_there(tiering, monkeypatch):
    class LatePack:
        is_there, asked = False, []

        def address(self, name):
            return mojo_programs.pack().address(name) if self.is_there else None

        def request(self, done, priority, functions):
            self.asked.append(done)

        def request_once(self, done=None):
            return False

        def __getattr__(self, name):
            return getattr(mojo_programs.pack(), name)

    tiering.mojo.pack = pack = LatePack()
    # The kernels take as long as they are held, not as long as the compiler does: with a quick one
    # they are there before the pack is, and the program is compiled when it first runs native.
    request, held = tiering.mojo.store.request, []
    monkeypatch.setattr(tiering.mojo.store, "request", lambda *arguments: held.append(arguments))
    monkeypatch.setattr(Tiering, "HOT_NANOSECONDS", 0)
    monkeypatch.setattr(Tiering, "LOOKUP_NANOSECONDS", 0)
    monkeypatch.setattr(Tiering, "LEAST_LOOKUP_NANOSECONDS", 0)
    monkeypatch.setattr(tiering.mojo, "DISPATCH_NANOSECONDS", 0)
    jitted, x = maxjax.jit(lambda x: jnp.tanh(x * 7.5) - jnp.cos(x)), f32(1000, 30)
    for _ in range(3):
        expected = jitted(x)
    assert debug.statistics(jitted).reason == BEING_COMPILED and pack.asked and held
    assert debug.statistics(jitted).compiled_calls == 0
    pack.is_there = True
    until(lambda: jitted(x) is not None and debug.statistics(jitted).compiled_calls > 0, 240)
    assert debug.statistics(jitted).reason == BEING_COMPILED
    np.testing.assert_allclose(jitted(x), expected, rtol=1e-5, atol=1e-6)
    for done in pack.asked:
        done(None)
    for arguments in held:
        request(*arguments)
    until(lambda: debug.statistics(jitted).state == "compiled", 240)
    np.testing.assert_allclose(jitted(x), expected, rtol=1e-5, atol=1e-6)


def test_the_hottest_kernels_are_built_first(monkeypatch):
    monkeypatch.setattr(mojo_backend, "_TOGETHER", 2)
    program = program_of(lambda x, y: (jnp.sin(x) @ x, x.sum(0), jnp.exp(y), y.max()),
                         f32(30, 30), f32(7))
    forms = list(Plan(program.opened.jaxpr, 1).kernels)
    assert len(forms) == 4
    before = [form.heat for form in forms]
    try:
        for number, form in enumerate(forms):
            form.heat = 2.0 ** number
        assert _by_heat(forms) == [forms[:1:-1], forms[1::-1]]
        forms[3].heat = 100.0       # most of the time: it does not wait for another
        assert _by_heat(forms) == [[forms[3]], forms[2:0:-1], [forms[0]]]
        assert _by_heat(forms[3:]) == [forms[3:]]
        for form in forms:
            form.heat = 0.0
        assert _by_heat(forms) == [forms[:2], forms[2:]]
        assert _by_heat([]) == []
    finally:
        for form, heat in zip(forms, before, strict=True):
            form.heat = heat
