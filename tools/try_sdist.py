"""Tries the source distribution and the wheel without the kernel pack, which is built from it.

The wheel has all files of the package. It is installed into a fresh environment, where the command
``maxjax`` runs a script, interpreted; what that took to download and to install is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = """
import jax, jax.numpy as jnp
step = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2)))
print(jax.jit.__module__.partition(".")[0], step(jnp.zeros(3)))
"""


def package_files() -> set[str]:
    """The files of the package that the project keeps, without notes for contributors."""
    listed = subprocess.run(["git", "ls-files", "maxjax"], cwd=ROOT, check=True, text=True,
                            capture_output=True).stdout.split()
    return {name for name in listed if not name.endswith(".md")}


def missing(folder: Path) -> list[str]:
    """What the distributions in a folder lack."""
    sdist, = folder.glob("maxjax-*.tar.gz")
    wheel, = folder.glob("maxjax-*-none-any.whl")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    files = package_files()
    extra = {"README.md", "LICENSE", "NOTICE", "pyproject.toml"}
    return sorted([*(f"sdist: {name}" for name in (files | extra) - inside),
                   *(f"wheel: {name}" for name in files - names)])


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where `python -m build` has put the two")
    folder = parser.parse_args().folder
    if lacking := missing(folder):
        print("\n".join(lacking))
        return 1
    wheel, = folder.glob("maxjax-*-none-any.whl")
    with tempfile.TemporaryDirectory(prefix="maxjax-sdist-") as scratch:
        home, downloads = Path(scratch) / "venv", Path(scratch) / "downloads"
        venv.create(home, with_pip=True)
        before = megabytes(home)
        pip: list[str | Path] = [home / "bin" / "python", "-m", "pip", "--quiet",
                                 "--disable-pip-version-check"]
        subprocess.run([*pip, "download", "--dest", downloads, wheel], check=True)
        # As on a machine without a network.
        subprocess.run([*pip, "install", "--no-index", "--find-links", downloads, wheel],
                       check=True)
        print(f"downloaded {megabytes(downloads):.0f} MB, installed "
              f"{megabytes(home) - before:.0f} MB")
        script = Path(scratch) / "script.py"
        script.write_text(SCRIPT)
        environment = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "HOME": scratch,
                       "MAXJAX_CACHE_DIR": str(Path(scratch) / "cache"),
                       "MAXJAX_COMPILE": "never"}
        for arguments in (["--version"], [str(script)]):
            tried = subprocess.run([home / "bin" / "maxjax", *arguments], cwd=scratch, text=True,
                                   env=environment, capture_output=True, timeout=300, check=False)
            print(tried.stdout + tried.stderr, end="")
            if tried.returncode or tried.stderr:
                return 1
        return 0 if tried.stdout == "maxjax [0. 0. 0.]\n" else 1


if __name__ == "__main__":
    sys.exit(main())
