"""Which libraries' tests are run, and where their source distributions have them."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from compat import ROOT

SOURCES = ROOT / ".compat" / "libraries" / "sources"


@dataclasses.dataclass(frozen=True)
class Suite:
    """Tests of one library.

    Attributes:
      package: the distribution's name.
      paths: files and folders with tests, in the source distribution.
      ignore: those among them that are left out.
      options: for pytest.
      in_sdist: the tests come with the source distribution; else a user names a folder with them.
    """

    name: str
    package: str
    paths: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    options: tuple[str, ...] = ()
    in_sdist: bool = True

    @property
    def version(self) -> str:
        """That of the installed distribution.

        Raises:
          RuntimeError: it is not installed.
        """
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError as error:
            raise RuntimeError(
                f"{self.package} is not installed here: compat/libraries/requirements.txt and "
                "requirements_more.txt have it") from error


# flax's own configuration makes an error of each warning, NumPy's and Orbax's among them.
_WARNINGS = ("-W", "ignore")

SUITES = {suite.name: suite for suite in (
    Suite("optax", "optax", ("optax",)),
    Suite("chex", "chex", ("chex",)),
    Suite("tree-math", "tree-math", ("tree_math",)),
    Suite("einops", "einops", ("einops/tests",), environment={"EINOPS_TEST_BACKENDS": "numpy,jax"}),
    Suite("mctx", "mctx", ("mctx",)),
    Suite("haiku", "dm-haiku", ("haiku",)),
    Suite("distrax", "distrax", ("distrax",)),
    Suite("rlax", "rlax", ("rlax",)),
    Suite("flax-linen", "flax", ("tests",), ignore=("tests/nnx",), options=_WARNINGS),
    Suite("flax-nnx", "flax", ("tests/nnx",), options=_WARNINGS),
    Suite("numpyro", "numpyro", ("test",), ignore=("test/test_examples.py",)),
    Suite("jraph", "jraph", ("jraph",), ignore=("jraph/ogb_examples",)),
    Suite("blackjax", "blackjax", ("tests",)),
    # Applications are networks of hundreds of layers, whose weights are fetched.
    Suite("keras", "keras", ("keras/src",), ignore=("keras/src/applications",),
          environment={"KERAS_BACKEND": "jax"}),
    # The source distributions of these have no tests, or none but helpers for their own.
    Suite("jaxopt", "jaxopt", ("tests",), in_sdist=False),
    Suite("equinox", "equinox", ("tests",), in_sdist=False),
    Suite("diffrax", "diffrax", ("test",), in_sdist=False),
    Suite("lineax", "lineax", ("tests",), in_sdist=False),
    Suite("optimistix", "optimistix", ("tests",), in_sdist=False),
    Suite("orbax-checkpoint", "orbax-checkpoint", ("orbax/checkpoint",), in_sdist=False),
    Suite("ott", "ott-jax", ("tests",), in_sdist=False),
    Suite("dynamax", "dynamax", ("dynamax",), in_sdist=False),
    Suite("e3nn-jax", "e3nn-jax", ("tests",), in_sdist=False),
    Suite("jax-md", "jax-md", ("tests",), in_sdist=False),
    Suite("netket", "netket", ("test",), in_sdist=False),
)}
WITHOUT_TESTS = tuple(name for name, suite in SUITES.items() if not suite.in_sdist)


def source_of(suite: Suite) -> Path:
    """The unpacked source distribution of the installed version, fetched when it is not there.

    Raises:
      RuntimeError: pip does not get it, or it has no tests.
    """
    if not suite.in_sdist:
        raise RuntimeError(f"the source distribution of {suite.package} has no tests: name a "
                           f"folder with them, --source {suite.name}=FOLDER")
    target = SOURCES / f"{suite.package}-{suite.version}"
    if target.is_dir():
        return target.resolve()
    SOURCES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SOURCES) as folder:
        # pip looks at the metadata, for which it builds with wheels of the build tools.
        got = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--no-binary", suite.package, "--dest", folder,
             f"{suite.package}=={suite.version}"], capture_output=True, text=True)
        archives = list(Path(folder).glob("*.tar.gz"))
        if got.returncode or len(archives) != 1:
            raise RuntimeError(f"no source distribution of {suite.package} {suite.version}: "
                               f"{got.stderr.strip()}")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(folder, filter="data")
        inside, = (path for path in Path(folder).iterdir() if path.is_dir())
        inside.rename(target)
    return target.resolve()    # Else pytest names tests below a link without their files.


def is_checkout(suite: Suite, folder: Path) -> bool:
    """Whether a folder has the suite's or the distribution's name, and the tests."""
    return (folder.name.lower() in (suite.name, suite.package)
            and any((folder / path).exists() for path in suite.paths))


def revision_of(source: Path) -> str:
    """The commit of a checkout; nothing where a folder is none, or is only within one."""
    got = subprocess.run(["git", "-C", str(source), "rev-parse", "--show-prefix", "--short=9",
                          "HEAD"], capture_output=True, text=True)
    if got.returncode:
        return ""
    prefix, commit = got.stdout.splitlines()
    return "" if prefix else commit


def files_of(suite: Suite, source: Path) -> list[str]:
    """The test files, as paths below the source.

    Raises:
      ValueError: there is none.
    """
    found = {path.relative_to(source).as_posix() for top in suite.paths
             for pattern in ("test_*.py", "*_test.py") for path in (source / top).rglob(pattern)}
    kept = sorted(path for path in found
                  if not any(path == left or path.startswith(f"{left}/") for left in suite.ignore))
    if not kept:
        raise ValueError(f"no tests of {suite.name} in {source}")
    return kept
