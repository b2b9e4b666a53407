"""Arrays in files: what maxjax and JAX write, the other one reads."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


def serialization(name):
    return importlib.import_module(f"{name}.experimental.array_serialization.serialization")


def run(name, action, folder):
    return subprocess.run(
        [sys.executable, "-m", "tests.api.arrays_in_files", name, action, str(folder)],
        capture_output=True, text=True, timeout=120, check=True).stdout


def test_arrays_are_the_same_with_other_shardings(tmp_path):
    for writer in ("maxjax", "jax"):
        run(writer, "write", tmp_path / writer)
    lines = {(writer, reader): run(reader, "read", tmp_path / writer) for writer, reader in (
        ("jax", "jax"), ("jax", "maxjax"), ("maxjax", "jax"), ("maxjax", "maxjax"))}
    assert lines["jax", "jax"].count("\n") == 12
    assert len(set(lines.values())) == 1, lines


@pytest.mark.parametrize("path", ["/a/b/../c", "gs://bucket/folder/name", "s3://bucket/f/name"])
@pytest.mark.parametrize("ocdbt", [False, True])
def test_specs_of_paths_are_those_of_jax(path, ocdbt):
    ours, theirs = (serialization(name).get_tensorstore_spec(path, ocdbt=ocdbt)
                    for name in ("maxjax", "jax"))
    assert ours == theirs
    assert serialization("maxjax").is_remote_storage(ours) == path.startswith(("gs", "s3"))
    assert serialization("jax").is_remote_storage(theirs) == path.startswith(("gs", "s3"))


@pytest.mark.parametrize(("path", "ocdbt"), [("folder/name", True), ("gs://bucket", False)])
def test_paths_that_do_not_do(path, ocdbt):
    for name in ("maxjax", "jax"):
        with pytest.raises(ValueError, match=r"absolute|bucket"):
            serialization(name).get_tensorstore_spec(path, ocdbt=ocdbt)


@pytest.mark.parametrize("name", ["maxjax", "jax"])
def test_a_write_that_fails_is_told(name, tmp_path):
    module = serialization(name)
    (tmp_path / "file").write_text("not a folder")
    manager = module.GlobalAsyncCheckpointManager()

    def save():
        manager.serialize([importlib.import_module(name).numpy.ones(3)],
                          [module.get_tensorstore_spec(str(tmp_path / "file" / "x"))])
        manager.wait_until_finished()

    with pytest.raises(ValueError, match="file"):
        save()
