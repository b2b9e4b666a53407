"""Files that real JAX has exported: read, called, differentiated; damaged ones are refused.

``python -m tests.gen.exported_programs`` writes them.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import random
import subprocess
import sys

import jax
import jax.export
import numpy as np
import pytest

import maxjax
import maxjax.scipy.special
from maxjax import export
from maxjax._base.flatbuffer import Buffer
from tests import ROOT
from tests.api.test_export import same
from tests.gen.exported_programs import DEVICES, FOLDER, PROGRAMS, State, X, key_of

DAMAGED, MANY_DAMAGED = 250, 5000

export.register_namedtuple_serialization(State, serialized_name="tests.State")


SINGLE = [name for name, program in PROGRAMS.items() if program.specs is None]


def content_of(name):
    return (FOLDER / f"{name}.bin").read_bytes()


def plain(tree, j):
    """Arrays of NumPy's, keys as their words."""
    return [np.asarray(j.random.key_data(x) if j.dtypes.issubdtype(x.dtype, j.dtypes.prng_key)
                       else x) for x in j.tree.leaves(tree)]


def args_of(name, j):
    return PROGRAMS[name].args or key_of(j)


def result_of(name, j):
    program = PROGRAMS[name]
    return jax.jit(lambda *xs: program.function(jax, *xs))(*args_of(name, jax)) if j is jax \
        else export.deserialize(content_of(name)).call(*args_of(name, maxjax))


@pytest.mark.parametrize("name", SINGLE)
def test_calls_give_what_jax_gives(name):
    ours, theirs = result_of(name, maxjax), result_of(name, jax)
    assert str(maxjax.tree.structure(ours)) == str(jax.tree.structure(theirs))
    same(plain(ours, maxjax), plain(theirs, jax))


ATTRIBUTES = ("fun_name", "platforms", "nr_devices", "calling_convention_version",
              "ordered_effects", "unordered_effects", "module_kept_var_idx",
              "uses_global_constants", "disabled_safety_checks")
STRINGS = ("in_tree", "in_avals", "out_tree", "out_avals")


@pytest.mark.parametrize("name", SINGLE)
def test_attributes(name):
    program = PROGRAMS[name]
    args = args_of(name, jax)
    if program.sizes is not None:
        args = jax.export.symbolic_args_specs(args, program.sizes)
    theirs = jax.export.export(jax.jit(lambda *xs: program.function(jax, *xs)))(*args)
    ours = export.deserialize(content_of(name))
    for attribute in ATTRIBUTES:
        if attribute != "fun_name":
            assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    for attribute in STRINGS:
        assert str(getattr(ours, attribute)) == str(getattr(theirs, attribute)), attribute
    assert ours.has_vjp() is program.smooth
    assert ours.mlir_module_serialized.startswith(b"ML\xefR")


@pytest.mark.parametrize("name", [
    name for name, program in PROGRAMS.items() if program.smooth and program.specs is None])
@pytest.mark.parametrize("how", ["eager", "jit"])
def test_derivatives(name, how):
    program = PROGRAMS[name]

    def total(j, call):
        def loss(*args):
            return sum(j.numpy.sum(j.numpy.sin(x)) for x in j.tree.leaves(call(*args))
                       if x.dtype == np.float32)
        return j.grad(loss, allow_int=True)

    ours = total(maxjax, export.deserialize(content_of(name)).call)
    ours = maxjax.jit(ours) if how == "jit" else ours
    theirs = total(jax, lambda *xs: program.function(jax, *xs))

    def floats(tree, j):
        return [np.asarray(x) for x in j.tree.leaves(tree) if x.dtype == np.float32]

    for a, e in zip(floats(ours(*program.args), maxjax), floats(theirs(*program.args), jax),
                    strict=True):
        np.testing.assert_allclose(a, e, 2e-4, 2e-5)


def test_a_loaded_function_is_mapped():
    loaded = export.deserialize(content_of("cnn"))
    x = PROGRAMS["cnn"].args[0]
    rows = maxjax.vmap(loaded.call)(np.stack([x, 2 * x]))
    same(np.asarray(rows[1]), np.asarray(loaded.call(2 * x)))


def test_symbolic_sizes():
    loaded = export.deserialize(content_of("symbolic"))
    for count in (1, 3, 11):
        x = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
        same(np.asarray(loaded.call(x)), np.asarray(PROGRAMS["symbolic"].function(jax, x)))
        # Inside of jit the derivative is of the same sizes.
        slope = maxjax.jit(maxjax.grad(lambda x: maxjax.numpy.sum(loaded.call(x))))(x)
        same(np.asarray(slope), np.asarray(jax.grad(
            lambda x: jax.numpy.sum(PROGRAMS["symbolic"].function(jax, x)))(x)), 1e-4)
    with pytest.raises(ValueError, match="b"):
        loaded.call(np.zeros((0, 3), np.float32))
    with pytest.raises(NotImplementedError, match="keep its file"):
        loaded.serialize()


def test_shardings():
    """The mesh and the specifications, and the error where there are fewer devices, as in JAX."""
    loaded = export.deserialize(content_of("sharded"))
    spec = maxjax.sharding.PartitionSpec
    assert loaded.nr_devices == 4 and loaded.in_specs == (spec("a", None), spec(None, "b"))
    assert loaded.mesh_axes == (("a", 2, False), ("b", 2, False))
    with pytest.raises(ValueError, match="was exported for 4 devices and is called in a context "
                                         "with 1 devices"):
        loaded.call(*PROGRAMS["sharded"].args)


def results_on_a_mesh(library, code, tmp_path):
    """What each program that is on a mesh gives, in a process that has several devices."""
    script = f"""
import sys
import numpy as np
import {library} as jax
import {library}.export
from tests.gen.exported_programs import FOLDER, MESH, ON_MESH_PROGRAMS
mesh = jax.make_mesh(*MESH, axis_types=(jax.sharding.AxisType.Auto,) * 2)
found = {{}}
for name, program in ON_MESH_PROGRAMS.items():
    {code}
    for number, leaf in enumerate(jax.tree.leaves(results)):
        found[f"{{name}} {{number}}"] = np.asarray(leaf)
np.savez(sys.argv[1], **found)
"""
    path = tmp_path / f"{library}.npz"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, env={
        **os.environ, "PYTHONPATH": str(ROOT),
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}"})
    return np.load(path)


def test_calls_on_a_mesh(tmp_path):
    theirs = results_on_a_mesh("jax", """
    placed = [jax.device_put(x, jax.NamedSharding(mesh, jax.P(*spec)))
              for x, spec in zip(program.args, program.specs)]
    results = jax.jit(lambda *xs: program.function(jax, *xs))(*placed)""", tmp_path)
    ours = results_on_a_mesh("maxjax", """
    loaded = jax.export.deserialize((FOLDER / f"{name}.bin").read_bytes())
    with jax.set_mesh(mesh):
        results = loaded.call(*program.args)""", tmp_path)
    assert len(ours.files) == 9 and ours.files == theirs.files
    for name in ours.files:
        np.testing.assert_allclose(ours[name], theirs[name], 1e-5, 1e-6, err_msg=name)


def test_saved_again():
    """In maxjax's format, with the derivative."""
    loaded = export.deserialize(content_of("rnn"))
    again = export.deserialize(loaded.serialize(vjp_order=1))
    args = PROGRAMS["rnn"].args
    same(plain(again.call(*args), maxjax), plain(loaded.call(*args), maxjax))
    assert again.has_vjp() and "stablehlo" in loaded.mlir_module()


def test_a_class_that_is_not_registered(monkeypatch):
    content = content_of("rnn").replace(b"tests.State", b"tests.Other")
    with pytest.raises(ValueError, match="unregistered type `tests.Other`"):
        export.deserialize(content)


# --- written for JAX ------------------------------------------------------------------------------

WRITTEN = [name for name, program in PROGRAMS.items() if not program.specs]


def fields_of(table):
    """A file's fields, but for its program and what says who wrote it."""
    def tree(part):
        return (part.number(0, "B"), part.texts(2), part.text(3), part.bytes(4),
                [*map(tree, part.tables(1))])

    def types(number):
        return [(part.texts(1), part.number(2, "B"), part.number(3, "B"))
                for part in table.tables(number)]

    return {
        "version": table.number(0, "H"), "trees": [tree(table.table(number)) for number in (2, 4)],
        "types": [types(number) for number in (3, 5, 19)],
        "places": [len(table.tables(number)) for number in (7, 8)],
        "platforms": table.texts(9), "effects": [table.texts(number) for number in (10, 11)],
        "checks": len(table.tables(12)), "convention": table.number(14, "H"),
        "kept": table.numbers(15, "H"), "sizes": table.number(16, "B"),
        "devices": table.number(18, "I"), "meshes": [len(table.tables(n)) for n in (20, 21)],
        "numbers": [table.numbers(number, "I") for number in (22, 23, 24, 25)],
        "release": table.text(26),
        "derivative": None if table.table(17) is None else fields_of(table.table(17))}


def types_of(name, j):
    """The arguments, or what is exported in their place: types with symbolic sizes."""
    args, sizes = args_of(name, j), PROGRAMS[name].sizes
    return args if sizes is None else j.export.symbolic_args_specs(args, sizes)


@pytest.mark.parametrize("name", WRITTEN)
def test_files_written_for_jax(name):
    """They have the fields of JAX's files, and a program that JAX runs, as its derivative does."""
    program = PROGRAMS[name]
    args = args_of(name, maxjax)
    exported = export.export(maxjax.jit(lambda *xs: program.function(maxjax, *xs)))(
        *types_of(name, maxjax))
    order = 1 if program.smooth else 0
    content = bytes(exported.serialize(vjp_order=order, format="jax"))
    ours, theirs = (Buffer(x).root() for x in (content, content_of(name)))
    assert fields_of(ours) == fields_of(theirs)
    loaded = export.deserialize(content)
    same(plain(loaded.call(*args), maxjax), plain(result_of(name, jax), jax))

    # JAX reads a file by a package that is not needed here: its own has our program in its place.
    args = args_of(name, jax)
    made = jax.export.export(jax.jit(lambda *xs: program.function(jax, *xs)))(
        *types_of(name, jax))
    made = dataclasses.replace(made, mlir_module_serialized=ours.bytes(13))
    same(plain(made.call(*args), jax), plain(result_of(name, jax), jax))
    if order:
        derivative = made.vjp()
        given = [*jax.tree.leaves(args), *jax.tree.map(
            lambda x: np.ones(x.shape, jax.dtypes.float0 if x.dtype == np.int32 else x.dtype),
            jax.tree.leaves(made.call(*args)))]
        expected = derivative.call(*given)
        actual = dataclasses.replace(
            derivative, mlir_module_serialized=ours.table(17).bytes(13)).call(*given)
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype == e.dtype
            if e.dtype != jax.dtypes.float0:
                np.testing.assert_allclose(np.asarray(a), np.asarray(e), 2e-3, 2e-4)


def test_what_the_format_of_jax_cannot_hold():
    exported = export.export(maxjax.jit(
        lambda x: maxjax.lax.rng_bit_generator(np.zeros(4, np.uint32), x.shape)))(
        *export.symbolic_args_specs((X,), "b, 3"))
    with pytest.raises(NotImplementedError, match="operation for its primitive 'rng_bit_generator' "
                                                  "with symbolic sizes"):
        exported.serialize(format="jax")
    exported = export.export(maxjax.jit(maxjax.scipy.special.expi))(X)
    with pytest.raises(NotImplementedError, match="XLA has no operation for its primitive 'expi'"):
        exported.serialize(format="jax")
    with pytest.raises(ValueError, match="format must be"):
        exported.serialize(format="onnx")


# --- pickles --------------------------------------------------------------------------------------

def test_pickles_of_jax(tmp_path):
    """Arrays, keys and specifications in trees, read under the name of JAX."""
    keys = [jax.random.key(3, impl=name) for name in ("threefry2x32", "rbg", "unsafe_rbg")]
    spec = jax.P("a", ("b", "c"), None, unreduced={"d"})
    tree = {"weights": [jax.numpy.arange(4.0), jax.numpy.ones(2, jax.numpy.bfloat16)],
            "keys": keys, "spec": spec, "split": jax.random.split(keys[0], 3)}
    (tmp_path / "tree").write_bytes(pickle.dumps(tree))
    code = """
import pickle, jax
tree = pickle.load(open("tree", "rb"))
print(tree["weights"], tree["spec"], tree["split"].shape)
print([key.dtype for key in tree["keys"]], type(tree["keys"][0]) is type(tree["weights"][0]))
print(jax.random.normal(tree["keys"][0], (3,)), jax.random.key_data(tree["split"]).tolist())
"""
    done = subprocess.run([sys.executable, "-m", "maxjax", "-c", code], capture_output=True,
                          text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        f"{tree['weights']} {spec} (3,)",
        f"{[key.dtype for key in keys]} True",
        f"{jax.random.normal(keys[0], (3,))} {jax.random.key_data(tree['split']).tolist()}"]


# --- damaged files --------------------------------------------------------------------------------

def check_damaged(seed, count):
    draw = random.Random(seed)
    contents = [content_of(name) for name in PROGRAMS]
    refused = 0
    for _ in range(count):
        changed = bytearray(draw.choice(contents))
        if draw.random() < 0.2:
            changed = changed[:draw.randrange(len(changed))]
        for _ in range(draw.choice([1, 2, 4])):
            # Most of a file are programs; structures are at its end and its beginning.
            place = draw.choice([draw.randrange(len(changed) or 1), draw.randrange(300),
                                 len(changed) - 1 - draw.randrange(500)])
            if 0 <= place < len(changed):
                changed[place] = draw.choice([draw.randrange(256), 0, 255, changed[place] ^ 1])
        try:
            export.deserialize(bytes(changed))
        except ValueError:
            refused += 1
    assert refused > count / 4


def test_damaged_files():
    check_damaged(0, DAMAGED)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 4))
def test_many_damaged_files(seed):
    check_damaged(seed, MANY_DAMAGED)


def test_files_that_are_cut_off_are_refused():
    content = content_of("while")
    for end in range(0, len(content), 17):
        with pytest.raises(ValueError, match="cannot deserialize|cannot read StableHLO"):
            export.deserialize(content[:end])
