"""Builds a wheel that has the kernel pack inside, for a level of x86-64.

On a machine of that kind, maxjax then builds no pack at its first use, and needs no compiler to run
native. The pack is built in a copy of the sources: a working tree with a pack inside would use it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("maxjax", "pyproject.toml", "README.md", "LICENSE", "NOTICE")
PREBUILT = Path("maxjax") / "_max" / "mojo" / "prebuilt"
# As MAX's own wheels have it: the libraries may need no later version of the C library.
PLATFORM = "manylinux_2_34_x86_64"
LATEST_GLIBC = 34
_GLIBC = re.compile(rb"GLIBC_2\.(\d+)")


def copy_sources(target: Path) -> None:
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target / part,
                            ignore=shutil.ignore_patterns("__pycache__", PREBUILT.name))
        else:
            shutil.copy2(ROOT / part, target / part)


def too_new(folder: Path) -> list[str]:
    """The libraries that need a later version of the C library than the wheel promises."""
    return [path.name for path in sorted(folder.glob("*.so"))
            if any(int(minor) > LATEST_GLIBC for minor in _GLIBC.findall(path.read_bytes()))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target-cpu", default="x86-64-v3")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="maxjax-wheel-") as scratch:
        sources = Path(scratch)
        copy_sources(sources)
        pack = sources / PREBUILT
        subprocess.run(
            [sys.executable, "-c", "import sys; from maxjax._max.mojo import pack_library; "
             "sys.exit(pack_library.main())", str(pack), "--target-cpu", options.target_cpu],
            cwd=sources, check=True, env={**os.environ, "PYTHONPATH": str(sources)})
        names = too_new(pack)
        if names:
            print(f"{', '.join(names)}: not for {PLATFORM}", file=sys.stderr)
            return 1
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--wheel-dir", str(options.output),
             f"--config-settings=--build-option=--plat-name={PLATFORM}", str(sources)],
            check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
