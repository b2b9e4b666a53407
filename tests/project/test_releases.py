"""What a release is made of agrees: versions, packages, the files for a public host."""

from __future__ import annotations

import io
import re
import tarfile
import tomllib
import zipfile

import maxjax
from tests import ROOT
from tools import try_sdist

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert PROJECT["version"] == maxjax.__version__
    followed = f"JAX {maxjax.version.JAX_VERSION}"
    minor, of_jax = PROJECT["version"].rpartition(".")[0], maxjax.version.JAX_VERSION
    assert f"| {minor} | {of_jax} |" in (ROOT / "docs" / "releases.md").read_text()
    assert followed in (ROOT / "CHANGELOG.md").read_text()
    assert {f"jax=={of_jax}", f"jaxlib=={of_jax}"} <= {*PROJECT["optional-dependencies"]["test"]}


def test_workflows_call_what_there_is():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {name for path in WORKFLOWS
              for line in re.findall(r"run: make ([\w -]+)", path.read_text())
              for name in line.split()}
    assert called == {"lint", "test", "test-lowest", "docs", "test-wheel", "test-sdist"} <= targets


def test_workflows_test_each_version_of_python():
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    tested = re.search(r"python: \[(.*)\]", text)[1].replace('"', "").split(", ")
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert tested == ["3.12", "3.13", "3.14"] and set(named) <= {"3.11", *tested}


def test_a_file_that_a_package_lacks_is_named(tmp_path):
    files = [name for name in try_sdist.package_files() if name != "maxjax/core.py"]
    with tarfile.open(tmp_path / "maxjax-1.tar.gz", "w:gz") as archive:
        for name in [*files, "README.md", "LICENSE", "NOTICE"]:
            archive.addfile(tarfile.TarInfo(f"maxjax-1/{name}"), io.BytesIO())
    with zipfile.ZipFile(tmp_path / "maxjax-1-py3-none-any.whl", "w") as wheel:
        for name in [*files, "maxjax/core.py"]:
            wheel.writestr(name, "")
    assert try_sdist.missing(tmp_path) == ["sdist: maxjax/core.py", "sdist: pyproject.toml"]
