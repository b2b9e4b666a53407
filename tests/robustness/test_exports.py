"""Files of exported functions from strangers: each is refused by name, or runs as it says."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import export, lax
from maxjax._higher_order.export_format import _HEADER, MAGIC, packed
from maxjax._ir.check import MOST_NESTED
from tests import ROOT
from tests.support import harness

# --- files with one thing changed -----------------------------------------------------------------

SILENT = 20         # seconds without a word from a process that runs them


def faults(seed: int, count: int) -> list[str]:
    """What was wrong among so many files; a process that crashes or hangs is followed by another.
    """
    found, first = [], 0
    while first < count:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.robustness.mutants", str(seed), str(count), str(first)],
            cwd=ROOT, env={**os.environ, "MAXJAX_COMPILE": "never"}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        last, ended = "", False
        timer = threading.Timer(120, process.kill)      # until it is ready
        timer.start()
        for line in process.stdout:
            timer.cancel()
            timer = threading.Timer(SILENT, process.kill)
            timer.start()
            if line.startswith("begin"):
                last = line.strip()
            elif line.startswith("fault"):
                found.append(line.strip())
            ended = ended or line.startswith("done")
        timer.cancel()
        code = process.wait()
        if ended:
            return found
        if not last:
            return [*found, f"no file was read: {code}"]
        found.append(f"the process ended with {code}, or said nothing for {SILENT} s: {last}")
        first = int(last.split()[1]) + 1
    return found


@pytest.mark.slow
@pytest.mark.xdist_group("mojo")
def test_files_with_one_thing_changed():
    pytest.importorskip("max.engine")
    assert not faults(0, 1200)


@pytest.mark.extended
@pytest.mark.xdist_group("mojo")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_more_files_with_one_thing_changed(seed):
    pytest.importorskip("max.engine")
    assert not faults(seed, 20_000)


# --- what a file may hold -------------------------------------------------------------------------

# Of lowered programs, which trust what they are given, or over processes and meshes; and what
# becomes other primitives, or is refused, when a function is exported.
IN_NO_FILE = {
    "take_rows", "scatter_rows", "coordinate", "all_gather", "all_gather_invariant",
    "all_gather_reduced", "all_to_all", "axis_index", "pbroadcast", "ppermute", "preduced",
    "psum_invariant", "pvary", "ragged_all_to_all", "reduce_scatter", "reduced_vary_cast",
    "unreduced_psum", "unreduced_reduce_scatter", "vary_unreduced_cast", "sharding_constraint",
    "reshard", "pure_callback", "custom_lin"}


def test_each_primitive_has_a_contract_or_stands_in_no_file():
    missing = {
        name for name, primitive in harness.all_primitives().items()
        if primitive.contract is None and primitive.inner.expand is None
        and primitive.inner.calls is None and primitive.effects is None and not primitive.is_own}
    assert missing == IN_NO_FILE


CASES = [(family, case) for family, cases in harness.families().items()
         if not isinstance(cases, Exception) for case in cases
         if case.jittable and not case.raises]


@pytest.mark.parametrize("family", sorted({family for family, _ in CASES}))
def test_what_is_written_is_read(family):
    """Contracts refuse no program of the tables; those that name rows have them from `lower`."""
    for name, case in CASES:
        if name != family:
            continue
        with case.precision():
            try:
                exported = export.export(maxjax.jit(case.on(maxjax)))(*case.args)
            except NotImplementedError:
                continue
            if "_rows" not in case.name:
                export.deserialize(exported.serialize(int(case.differentiable)))


# --- attacks --------------------------------------------------------------------------------------

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def parts(function=lambda x: jnp.cumsum(x, 1), *args):
    content = export.export(maxjax.jit(function))(*(args or (X,))).serialize()
    return json.loads(content[_HEADER.size:])


def edited(change, function=lambda x: jnp.cumsum(x, 1), *args):
    data = parts(function, *args)
    change(data[0])
    return data


def params(data, name):
    return next(eqn for eqn in data["program"]["equations"] if eqn[0] == name)[2]


def refused(blob, *words):
    """It raises a ValueError that holds the words, and that blames nobody but the file."""
    with pytest.raises(ValueError) as info:
        export.deserialize(blob)
    message = str(info.value)
    assert "bug in maxjax" not in message
    for word in words:
        assert word in message, message


def test_a_refusal_names_the_equation_and_the_parameter():
    refused(packed(edited(lambda data: params(data, "cumsum").update(axis=-1))),
            "equation 0", "cumsum", "its parameter axis is -1, and must be a dimension")
    refused(packed(edited(lambda data: params(data, "scan").update(length="4"),
                          lambda x: lax.scan(lambda c, row: (c + row, c), x[0], x))),
            "scan", "its parameter length is '4', and must be a size")
    refused(packed(edited(
        lambda data: params(data, "broadcast_in_dim").update(broadcast_dimensions={"tuple": [0]}),
        lambda x: lax.broadcast_in_dim(x, (9, 3), (1,)), X[0])),
        "broadcast_in_dim", "its dimensions must be those of the result")


@pytest.mark.parametrize("value", [-(1 << 31), -(1 << 62), 1 << 40])
def test_a_refusal_takes_no_memory(value):
    """Also its text, which shows what is refused."""
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for name in ("num_carry", "num_consts"):
        refused(packed(edited(lambda data, name=name: params(data, "scan").update({name: value}),
                              lambda x: lax.scan(lambda c, row: (c + row, c), x[0], x))),
                "scan", f"{name}={value}")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + (100 << 10)


@pytest.mark.parametrize("step", [1, 7])
def test_files_that_are_cut_off(step):
    blob = bytes(packed(parts()))
    for end in range(0, len(blob), step * 5):
        refused(blob[:end])


@pytest.mark.parametrize("header", [
    _HEADER.pack(MAGIC, 0, 2, b""), _HEADER.pack(MAGIC, 2, 2, b""),
    _HEADER.pack(MAGIC, (1 << 32) - 1, 2, b""), _HEADER.pack(MAGIC, 1, (1 << 64) - 1, b""),
    b"", MAGIC, b"PK\x03\x04", MAGIC[:-1] + b"\x00"])
def test_damaged_headers_are_refused(header):
    refused(header + b"[]")


def raw(text):
    """A file of any text, its digest right."""
    blob = packed([])
    _, version, _, _ = _HEADER.unpack_from(blob)
    content = text.encode() if isinstance(text, str) else text
    return _HEADER.pack(MAGIC, version, len(content), hashlib.sha256(content).digest()) + content


@pytest.mark.parametrize("text", [
    "", "[]", "{}", "null", "[null]", "[[]]", "[{}]", "[1e400]", "[NaN]", "[" * 100_000,
    '{"a":' * 100_000, "[" + "9" * 100_000 + "]", b"\xff\xfe", '["\\ud800"]'])
def test_texts_that_are_no_program_are_refused(text):
    refused(raw(text))


def nested(depth):
    """A file of loops within loops."""
    data = parts(lambda x: lax.scan(lambda c, row: (c + row, c), x[0], x))
    body = data[0]["program"]
    template = json.dumps(next(eqn for eqn in body["equations"] if eqn[0] == "scan"))
    for _ in range(depth):
        scan = json.loads(template)
        body["equations"] = [scan]
        body = scan[2]["jaxpr"]["closed"]
    return data


@pytest.mark.parametrize("depth", [MOST_NESTED + 5, 100])
def test_loops_within_loops(depth):
    refused(packed(nested(depth)))


@pytest.mark.parametrize("depth", [300, 800, 5000, 100_000])
def test_deep_trees(depth):
    """What Python's stack holds is a tree like others."""
    text = json.dumps(edited(lambda data: data.update(out_tree="TREE")))
    blob = raw(text.replace('"TREE"', '["tuple",[' * depth + '"*"' + "]]" * depth))
    try:
        result = export.deserialize(blob).call(X)
    except ValueError as error:
        assert "bug in maxjax" not in str(error)
    else:
        np.testing.assert_array_equal(maxjax.tree.leaves(result)[0], np.cumsum(X, 1))


@pytest.mark.parametrize("tree", [
    ["dict", ["*"], [[1]]], ["dict", ["*", "*"], ["a", "a"]], ["dict", ["*"]],
    ["custom", ["*"], "x"],
    ["custom", [], "os.system", "AA=="], ["eval", ["*"]], 7, [], ["tuple"], {"a": 1}])
def test_structures_that_are_none_are_refused(tree):
    refused(packed(edited(lambda data: data.update(out_tree=tree))))


HUGE = {
    "a broadcast": (lambda data: (
        params(data, "broadcast_in_dim").update(shape={"tuple": [1 << 50, 2, 3]}),
        data["program"]["equations"][0][3][0][1][0].__setitem__(0, 1 << 50)),
        lambda x: lax.broadcast_in_dim(x, (4, 2, 3), (1, 2))),
    "padding": (lambda data: params(data, "pad").update(
        padding_config={"tuple": [{"tuple": [1 << 45, 0, 0]}, {"tuple": [0, 0, 0]}]}),
        lambda x: lax.pad(x, np.float32(0), ((1, 0, 0), (0, 0, 0)))),
    "padding of windows": (lambda data: params(data, "reduce_window_max").update(
        padding={"tuple": [{"tuple": [1 << 45, 0]}, {"tuple": [0, 0]}]}),
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID")),
    "a loop": (lambda data: params(data, "scan").update(length=10 ** 30),
               lambda x: lax.scan(lambda c, _: (c + 1, None), x, None, length=4)),
    "a power": (lambda data: params(data, "integer_pow").update(y=10 ** 12),
                lambda x: lax.integer_pow(x, 3)),
    "zeros": (lambda data: data["program"]["inputs"][0][1].__setitem__(0, [0, 1 << 60]),
              lambda x: x + 1),
}


@pytest.mark.parametrize("name", HUGE)
def test_small_files_of_huge_arrays(name):
    change, function = HUGE[name]
    refused(packed(edited(change, function)))


@pytest.mark.parametrize("size", ["b^9999999999", "9" * 5000, "b*" * 5000 + "b", "floordiv(b, 0)",
                                  "__import__('os')", "b; c", "", "b + c", "-b"])
def test_symbolic_sizes(size):
    shape = export.symbolic_shape("b, 3")
    content = export.export(maxjax.jit(lambda x: x.sum(0)))(
        maxjax.ShapeDtypeStruct(shape, np.float32)).serialize()
    data = json.loads(content[_HEADER.size:])
    for types in (data[0]["types"][0][1], data[0]["program"]["inputs"][0][1]):
        types[0][0] = {"size": size}
    try:
        exported = export.deserialize(packed(data))
        result = exported.call(X)
    except ValueError as error:
        assert "bug in maxjax" not in str(error)
    else:
        np.testing.assert_array_equal(result, X.sum(0))


def test_parameters_of_symbolic_programs_are_checked_at_the_sizes_of_a_call():
    shape = export.symbolic_shape("b")
    content = export.export(maxjax.jit(lambda x: x[1:]))(
        maxjax.ShapeDtypeStruct(shape, np.float32)).serialize()
    data = json.loads(content[_HEADER.size:])
    limits = params(data[0], "slice")["limit_indices"]["tuple"]
    for index, _ in enumerate(limits):
        limits[index] = {"size": "2*b"}
    data[0]["program"]["equations"][0][3][0][1][0] = [{"size": "2*b - 1"}]
    data[0]["types"][1][1][0] = [{"size": "2*b - 1"}]
    with pytest.raises(ValueError, match=r"slice.*within its operand"):
        export.deserialize(packed(data)).call(np.ones(4, np.float32))


CONSTANTS = {
    "too short": lambda text: base64.b64encode(base64.b64decode(text)[:-1]).decode(),
    "too long": lambda text: base64.b64encode(base64.b64decode(text) + b"\0" * 4).decode(),
    "none": lambda text: "",
    "no base 64": lambda text: text[:-4] + "!?*=",
    "a list": lambda text: [1, 2],
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants(name):
    table = jnp.arange(40, dtype=jnp.float32) ** 2

    def change(data):
        assert data["constants"]
        data["constants"][0] = CONSTANTS[name](data["constants"][0])

    refused(packed(edited(change, lambda x: x.sum() + table)))


@pytest.mark.parametrize("content", [b"\x02" * 40, b"\xff" * 40])
def test_bytes_that_are_no_booleans(content):
    mask = jnp.arange(40) > 3

    def change(data):
        data["constants"][0] = base64.b64encode(content).decode()

    refused(packed(edited(change, lambda x: jnp.where(mask, x.sum(), 0))), "bytes that are no bool")


@pytest.mark.parametrize("dtype", ["O", "f4,f4", "M8[s]", "V8", "U4", "S5", "float128", "float0",
                                   ">f4", "int1", "key:nobody", 7, None, ["float32"]])
def test_dtypes_without_arrays_are_refused(dtype):
    def change(data):
        data["program"]["inputs"][0][1][1] = dtype
        data["types"][0][1][1] = dtype

    refused(packed(edited(change)))


def test_nothing_is_imported_for_a_file():
    name = "maxjax.experimental.pallas.tpu"
    kept = sys.modules.pop(name, None)
    try:
        for kind in ("named", "enum"):
            refused(packed(edited(lambda data, kind=kind: params(data, "cumsum").update(
                reverse={kind: f"{name}:Anything", "items": [], "name": "x"}))))
            refused(packed(edited(lambda data, kind=kind: params(data, "cumsum").update(
                reverse={kind: "subprocess:Popen", "items": [["true"]], "name": "x"}))))
        assert name not in sys.modules
    finally:
        if kept is not None:
            sys.modules[name] = kept


@pytest.mark.parametrize("change", [
    lambda data: data.update(devices=0), lambda data: data.update(devices="1"),
    lambda data: data.update(devices=10 ** 9, mesh=[["x", 10 ** 9, True]], in_specs=[7]),
    lambda data: data.update(mesh=[["x", -1, True]]), lambda data: data.update(platforms="cpu"),
    lambda data: data.update(name=["f"]), lambda data: data.update(arguments=-1),
    lambda data: data.update(arguments=2), lambda data: data.update(constraints=["b ^ 99999 >= 1"]),
    lambda data: data.update(in_specs=[[["y"]], [], []]), lambda data: data.pop("constants"),
    lambda data: data["program"]["outputs"].append(99),
    lambda data: data["program"].update(outputs=[True]),
    lambda data: data["program"]["inputs"].append(data["program"]["inputs"][0]),
    lambda data: data["program"]["equations"][0].append(1),
    lambda data: data["program"]["equations"][0][3][0].__setitem__(0, 0)])
def test_fields_that_do_not_fit_are_refused(change):
    refused(packed(edited(change)))
