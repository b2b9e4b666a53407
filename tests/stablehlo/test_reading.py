"""Programs of StableHLO that JAX has written, read and run: as text and as bytecode."""

from __future__ import annotations

import functools
import itertools
import random
import re

import jax
import jax.export
import jax.numpy
import jax.scipy.special
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import export
from maxjax._stablehlo.parser import parse
from tests.gen import exported_programs, matrix_programs
from tests.support import harness, mojo_programs
from tests.support.jax_programs import modes_of, program_of, program_of_case

FAMILIES = mojo_programs.tables()
# Programs of each family by default, and files that are damaged; `pytest -m exhaustive` has more.
COUNT, DAMAGED, MANY_DAMAGED = 5, 300, 6000
X = np.sin(np.arange(12, dtype=np.float32)).reshape(4, 3)


def listed(result):
    return list(result) if isinstance(result, tuple) else [result]


def compare(actual, expected, tolerance="accumulate", derivative=False):
    assert len(actual) == len(expected)
    for a, e in zip(map(np.asarray, actual), expected, strict=True):
        assert (a.shape, a.dtype) == (e.shape, e.dtype)
        harness.assert_close(a, e, tolerance, derivative=derivative, signed_zeros=False)


def check_case(case, mode, number):
    """One of the forms; all of them over the cases of a family."""
    with case.precision():
        try:
            program = program_of_case(case, mode)
        except Exception:
            return      # JAX has no such program
        form = number % 3
        content = program.bytecode() if form == 2 else program.text(generic=form == 1)
        if content is None:
            content = program.text()
        function = export.from_stablehlo(content)
        tolerance = "accumulate" if case.tolerance == "elementwise" else case.tolerance
        compare(listed(function(*program.arguments)), program.results, tolerance,
                mode == "gradient")


def check_family(family, count):
    chosen = [(case, mode) for case in FAMILIES[family] for mode in modes_of(case)]
    if count is not None and len(chosen) > count:
        chosen = [chosen[int(number * len(chosen) / count)] for number in range(count)]
    failures = []
    for number, (case, mode) in enumerate(chosen):
        try:
            check_case(case, mode, number)
        except Exception as error:
            failures.append(f"{case.name} [{mode}]: {type(error).__name__}: {str(error)[:300]}")
    assert not failures, f"{len(failures)} of {len(chosen)} differ:\n" + "\n".join(failures)


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_of_families(family):
    check_family(family, COUNT)


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", FAMILIES)
def test_all_programs_of_families(family):
    check_family(family, None)


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed):
    _, function = matrix_programs.program(seed)
    program = program_of(function(jax), matrix_programs.ARGUMENT)
    actual = export.from_stablehlo(program.bytecode() or program.text())(*program.arguments)
    compare(listed(actual), program.results, "loose")


def test_both_forms_of_text_say_the_same():
    def function(x):
        loop = jax.lax.fori_loop(0, 3, lambda i, c: jax.numpy.sort(c, 1) + i, x)
        return jax.numpy.argmax(loop, 0), jax.lax.cond(x[0, 0] > 0, jax.numpy.sin, abs, loop)

    program = program_of(function, X)
    pretty, generic = (parse(program.text(form)) for form in (False, True))

    def shape_of(block):
        return [(operation.name, len(operation.operands), sorted(operation.attributes),
                 [shape_of(region) for region in operation.regions])
                for operation in block.operations]

    assert pretty.functions.keys() == generic.functions.keys()
    for name in pretty.functions:
        assert shape_of(pretty.functions[name].block) == shape_of(generic.functions[name].block)


@functools.cache
def on_a_mesh(name):
    """A program that exchanges parts of arrays: both forms of its text, its bytecode."""
    program = exported_programs.PROGRAMS[name]
    mesh = jax.sharding.AbstractMesh(
        *exported_programs.MESH, axis_types=(jax.sharding.AxisType.Auto,) * 2)
    args = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=jax.NamedSharding(mesh, jax.P(*spec)))
            for x, spec in zip(program.args, program.specs, strict=True)]
    function = jax.jit(lambda *xs: program.function(jax, *xs))
    module = function.trace(*args).lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    artifact = jax.export.export(function, platforms=["cpu"])(*args).mlir_module_serialized
    return *(module.operation.get_asm(print_generic_op_form=form) for form in (False, True)), (
        bytes(artifact))


@pytest.mark.parametrize("name", exported_programs.ON_MESH_PROGRAMS)
def test_all_forms_of_what_is_on_a_mesh_say_the_same(name):
    args = exported_programs.PROGRAMS[name].args
    pretty, generic, artifact = [
        re.sub("name=.*", "", str(maxjax.make_jaxpr(export.from_stablehlo(content))(*args)))
        for content in on_a_mesh(name)]
    assert pretty == generic == artifact and ("shard_map" in pretty or name == "sharded")


# --- as functions ---------------------------------------------------------------------------------

W = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)
SMOOTH = {
    "layer": lambda j, x: j.numpy.tanh(x @ W + 1).sum(1),
    "softmax": lambda j, x: j.nn.log_softmax(x @ W)[:, 1],
    "scan": lambda j, x: j.lax.scan(
        lambda c, row: (j.numpy.sin(c) * row, c.sum()), j.numpy.ones(3), x)[1],
    "fori_loop": lambda j, x: j.lax.fori_loop(0, 4, lambda i, c: j.numpy.sin(c) * (i + 1), x),
    "branch": lambda j, x: j.lax.cond(x.sum() > 0, j.numpy.sin, lambda y: y * 2, x),
    "indexing": lambda j, x: x.at[1:3, 0].multiply(2)[::-1, j.numpy.array([2, 0])],
    "solve": lambda j, x: j.numpy.linalg.solve(x @ x.T + 4 * j.numpy.eye(4), x),
    "sort": lambda j, x: j.numpy.sort(x, 0) * j.numpy.arange(3),
    "convolution": lambda j, x: j.lax.conv_general_dilated(
        x[None, None], W[None, None], (1, 1), "SAME"),
    "pooling": lambda j, x: j.lax.reduce_window(
        x, -j.numpy.inf, j.lax.max, (2, 2), (1, 1), "SAME"),
    "special": lambda j, x: j.scipy.special.erf(x) + j.numpy.arcsinh(x),
    "fft": lambda j, x: j.numpy.abs(j.numpy.fft.rfft(x, axis=0)),
}


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("form", ["text", "bytecode"])
def test_functions_are_transformed(name, form):
    function = SMOOTH[name]
    program = program_of(lambda x: function(jax, x), X)
    read = export.from_stablehlo(program.text() if form == "text" else program.bytecode())

    def total(j, f):
        return lambda x: j.numpy.sum(j.numpy.sin(f(x)))

    theirs = total(jax, lambda x: function(jax, x))
    compare([read(X), maxjax.jit(read)(X)], program.results * 2)
    compare([maxjax.grad(total(maxjax, read))(X)], [np.asarray(jax.grad(theirs)(X))], "loose")
    rows = np.stack([X, X * 0.5])
    compare([maxjax.vmap(read)(rows)],
            [np.asarray(jax.vmap(lambda x: function(jax, x))(rows))], "loose")
    compare([maxjax.vmap(maxjax.grad(total(maxjax, read)))(rows)],
            [np.asarray(jax.vmap(jax.grad(theirs))(rows))], "loose")


@pytest.mark.parametrize("name", SMOOTH)
def test_what_maxjax_writes_is_read(name):
    function = SMOOTH[name]
    text = maxjax.jit(lambda x: function(maxjax, x)).lower(X).as_text()
    compare([export.from_stablehlo(text)(X)],
            [np.asarray(function(jax, jax.numpy.asarray(X)))], "loose")


def test_a_loop_that_counts_is_a_scan():
    text = program_of(lambda x: jax.lax.fori_loop(2, 7, lambda i, c: c * 2, x), X).text()
    shown = str(maxjax.make_jaxpr(export.from_stablehlo(text))(X))
    assert "scan[" in shown and "length=5" in shown and "while" not in shown


@pytest.mark.parametrize("sizes", [(4,), (1,), (9,)])
def test_unknown_sizes(sizes):
    def function(x):
        return (x.sum(0) / x.shape[0], x.reshape(-1), jax.numpy.concatenate([x, x[1:]]),
                jax.numpy.arange(x.shape[0]) * 2, jax.numpy.pad(x, ((1, 2), (0, 0))),
                jax.lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], jax.numpy.zeros(3)))

    shape = jax.export.symbolic_shape("b, 3")
    exported = jax.export.export(jax.jit(function))(jax.ShapeDtypeStruct(shape, np.float32))
    x = np.random.default_rng(0).normal(size=(*sizes, 3)).astype(np.float32)
    for content in (str(exported.mlir_module()), exported.mlir_module_serialized):
        read = export.from_stablehlo(content)
        compare(listed(read(x)), [*map(np.asarray, function(jax.numpy.asarray(x)))])
    with pytest.raises(ValueError, match="Expected value >= 1 for dimension variable 'b'"):
        read(x[:0])


DTYPES = ("bool int4 uint4 int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 complex64 "
          "float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e8m0fnu float4_e2m1fn").split()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 3, 8, 40])
def test_constants(dtype, count):
    """Lists, single elements, and bytes; of all dtypes."""
    kind = np.dtype(getattr(jax.numpy, dtype))
    values = np.array([1, 0, 2, 1] * 10)[:count].astype(kind)
    program = program_of(lambda x: (jax.numpy.asarray(values), x), np.zeros(2, kind))
    for content in (program.text(), program.text(True), program.bytecode()):
        actual, _ = export.from_stablehlo(content)(*program.arguments)
        assert actual.dtype == kind and np.asarray(actual).tobytes() == values.tobytes()


def test_programs_of_64_bits_need_enable_x64():
    with jax.enable_x64(True):
        text = program_of(lambda x: x * np.float64(1) / 3, np.arange(3.0)).text()
    read = export.from_stablehlo(text)
    with maxjax.enable_x64(True):
        np.testing.assert_array_equal(read(np.arange(3.0)), np.arange(3.0) / 3)
    with pytest.raises(TypeError, match=r"argument 0 is float64\[3\], got float32.*enable_x64"):
        read(np.arange(3.0))


def test_a_resource():
    """A constant whose bytes stand at the end of the file, after four of its alignment."""
    text = """module { func.func @main() -> tensor<2xf32> {
  %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>
  return %0 : tensor<2xf32>
} }
{-# dialect_resources: { builtin: { weights: "0x040000000000803F00000040" } } #-}"""
    np.testing.assert_array_equal(export.from_stablehlo(text)(), np.array([1, 2], np.float32))


# --- what is refused ------------------------------------------------------------------------------

def function_of(body, arguments="%x: tensor<3xf32>", result="tensor<3xf32>", more=""):
    return f"module {{ func.func @main({arguments}) -> {result} {{\n{body}\n}}\n{more} }}"


def manual(placements):
    return ('module { sdy.mesh @m = <["x"=2]> func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> '
            f"{{\n%0 = sdy.manual_computation(%x) {placements} out_shardings=[<@m, [{{}}]>] "
            'manual_axes={"x"} (%y: tensor<3xf32>) { sdy.return %y : tensor<3xf32> } : '
            f"(tensor<3xf32>) -> tensor<3xf32>\n{RETURN}\n}} }}")


RETURN = "return %0 : tensor<3xf32>"
REFUSED = {
    "unknown operation": (function_of(
        f'%0 = "stablehlo.infeed"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n{RETURN}'),
        "line 2, column 1: the operation stablehlo.infeed is not supported"),
    "collective": (function_of(
        f'%0 = "stablehlo.all_reduce"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n{RETURN}'),
        "line 2, column 1: stablehlo.all_reduce outside of a manual computation"),
    "part of an axis": (manual('in_shardings=[<@m, [{"x":(1)2}]>]'), "a part is used"),
    "no such axis": (manual('in_shardings=[<@m, [{"y"}]>]'), "sdy.manual_computation: .*y"),
    "no such mesh": (manual('in_shardings=[<@n, [{"x"}]>]'), "of one mesh"),
    "a size that is not a multiple": (manual('in_shardings=[<@m, [{"x"}]>]'), "divisible"),
    "another dialect": (function_of(f"%0 = linalg.abs %x : tensor<3xf32>\n{RETURN}"),
                        "line 2.*the operation linalg.abs"),
    "callback": (function_of(
        f"%0 = stablehlo.custom_call @xla_python_cpu_callback(%x) : (tensor<3xf32>) -> "
        f"tensor<3xf32>\n{RETURN}"), "the custom call 'xla_python_cpu_callback' is not supported"),
    "wrong type": (function_of(
        '%0 = "stablehlo.abs"(%x) : (tensor<3xf32>) -> tensor<3xi32>\nreturn %0 : tensor<3xi32>'),
        r"stablehlo.abs gives float32\[3\], not int32\[3\]"),
    "wrong result": (function_of("return %x : tensor<3xf32>", result="tensor<4xf32>"),
                     "the function main gives"),
    "no such value": (function_of(f"%0 = stablehlo.abs %y : tensor<3xf32>\n{RETURN}"),
                      "there is no value %y"),
    "recursion": (function_of(
        f"%0 = call @main(%x) : (tensor<3xf32>) -> tensor<3xf32>\n{RETURN}"), "calls itself"),
    "no such function": (function_of(
        f"%0 = call @other(%x) : (tensor<3xf32>) -> tensor<3xf32>\n{RETURN}"),
        "there is no function other"),
    "too many calls": (function_of(
        f"%0 = call @f0(%x) : (tensor<3xf32>) -> tensor<3xf32>\n{RETURN}", more="\n".join(
            f"func.func private @f{n}(%x: tensor<3xf32>) -> tensor<3xf32> {{\n" + (
                f"%1 = call @f{n + 1}(%x) : (tensor<3xf32>) -> tensor<3xf32>\n"
                f"%0 = call @f{n + 1}(%1) : (tensor<3xf32>) -> tensor<3xf32>\n" if n < 40 else
                "%0 = stablehlo.abs %x : tensor<3xf32>\n") + f"{RETURN}\n}}" for n in range(41))),
        "is of more than 500000 operations"),
    "huge array": (function_of(
        "%0 = stablehlo.constant dense<0.0> : tensor<999999999999x9999999999xf32>\n"
        f"{RETURN}"), "no array has the shape"),
    "elements": (function_of(
        f"%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<3xf32>\n{RETURN}"),
        "the elements of a constant are not of the shape"),
    "nested attributes": (function_of(
        "%0 = stablehlo.abs %x {a = " + "[" * 5000 + "]" * 5000 + f"}} : tensor<3xf32>\n{RETURN}"),
        "nest too deep"),
    "nested regions": (function_of('"stablehlo.case"(%x) ({' * 3000), "nest too deep"),
    "no module": ("func.func @main() { return }", "a module is expected"),
    "nothing": ("", "a module is expected"),
    "blocks": (function_of("^a:\n^b:\nreturn %x : tensor<3xf32>"), "several blocks"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    text, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        export.from_stablehlo(text)


def test_arguments_that_do_not_fit():
    read = export.from_stablehlo(program_of(lambda x: x, X).text())
    with pytest.raises(TypeError, match=r"its argument 0 is float32\[4,3\], got float32\[3\]"):
        read(X[0])
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        read(X, X)


MARKS = '0123456789xf<>(){}[]%@#":,-='


def damaged_text(text, draw):
    lines = text.split("\n")
    kind = draw.randrange(6)
    place, other = draw.randrange(len(text)), draw.randrange(len(lines))
    if kind == 0:
        return text[:place]
    if kind == 1:
        return text[:place] + draw.choice(MARKS) + text[place + 1:]
    if kind == 2:
        return text[:place] + text[place + draw.randrange(1, 12):]
    if kind == 3:
        lines.pop(other)
        return "\n".join(lines)
    if kind == 4:
        lines[other], lines[0 - other] = lines[0 - other], lines[other]
        return "\n".join(lines)
    start, end = draw.choice([found.span() for found in re.finditer(r"\d+", text)])
    return text[:start] + str(draw.choice([0, 1, 3, 255, 2**31, 2**40, 10**18, -1])) + text[end:]


def damaged_bytes(content, draw):
    changed = bytearray(content)
    if draw.random() < 0.25:
        return bytes(changed[:draw.randrange(4, len(changed))])
    for _ in range(draw.choice([1, 1, 2, 4])):
        place = draw.randrange(5, len(changed))
        changed[place] = draw.choice([draw.randrange(256), changed[place] ^ 1 << draw.randrange(8),
                                      0, 255])
    return bytes(changed)


def check_damaged(seed, count):
    """Each is refused with a ValueError, or is a program whose results have the types it names."""
    draw = random.Random(seed)
    programs = [program_of(lambda x, f=function: f(jax, x), X) for function in SMOOTH.values()]
    texts = [program.text(form) for program in programs for form in (False, True)]
    artifacts = [program.bytecode() for program in programs]
    for name in exported_programs.ON_MESH_PROGRAMS:
        *forms, artifact = on_a_mesh(name)
        texts += forms
        artifacts.append(artifact)
    refused = 0
    for number in range(count):
        content = damaged_text(draw.choice(texts), draw) if number % 2 else damaged_bytes(
            draw.choice(artifacts), draw)
        try:
            export.from_stablehlo(content)
        except ValueError:
            refused += 1
    assert refused > count / 2


def test_damaged_files():
    check_damaged(0, DAMAGED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 4))
def test_many_damaged_files(seed):
    check_damaged(seed, MANY_DAMAGED)


def test_files_that_are_cut_off_are_refused():
    """A file that is cut off anywhere is refused."""
    program = program_of(lambda x: jax.numpy.sort(x @ W).sum(), X)
    for content in (program.text(), program.bytecode()):
        step = max(1, len(content) // 150)
        for end in itertools.chain(range(0, len(content) - 4, step)):
            with pytest.raises(ValueError):
                export.from_stablehlo(content[:end])


def test_it_is_a_jitted_function():
    read = export.from_stablehlo(program_of(lambda x: (x, x.sum()), X).text())
    assert str(maxjax.make_jaxpr(read)(X).out_avals) == str(
        maxjax.make_jaxpr(lambda x: (x, jnp.sum(x)))(X).out_avals)
