"""Tries a wheel of ``build_wheel.py`` where nothing can be compiled.

It is installed into a fresh environment, whose Mojo compiler is removed; PATH has no C compiler,
and the cache is empty. Programs have to run native from their first call all the same.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

# It may print nothing else, and warn of nothing.
SCRIPT = """
import os, warnings
warnings.simplefilter("error")
import numpy as np
import maxjax
import maxjax.numpy as jnp
from maxjax import debug
from maxjax._max.mojo import detached
from maxjax._runtime.tiering import tiering

def network(xp, x, w):
    y = xp.tanh(x @ w)
    return y, xp.sum(y * y, axis=1), xp.sort(y, axis=0)

step = maxjax.jit(lambda x, w: network(jnp, x, w))
rng = np.random.default_rng(0)
x, w = rng.standard_normal((2, 512, 512), dtype=np.float32)
for _ in range(3):
    for ours, theirs in zip(step(x, w), network(np, x, w), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)
found = debug.statistics(step)
assert found.interpreted_calls == 0 and found.compiled_calls == 3, found
assert found.state == "native", found
assert not tiering.mojo.pack.missing() and not tiering.mojo.pack.requested
cache = tiering.mojo.pack.libraries.cache
assert not detached.works(cache) and not list(cache.directory.glob("*.so"))
print("native")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="maxjax-wheel-") as scratch:
        home = Path(scratch) / "venv"
        python = home / "bin" / "python"
        venv.create(home, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        options.wheel], check=True)
        for compiler in home.glob("lib/python*/site-packages/modular/bin/mojo"):
            compiler.unlink()
        environment = {"PATH": str(python.parent), "HOME": scratch,
                       "MAXJAX_CACHE_DIR": str(Path(scratch) / "cache")}

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run([python, *arguments], cwd=scratch, env=environment, text=True,
                                  capture_output=True, timeout=300, check=False)

        report = run("-m", "maxjax", "--doctor")
        print(report.stdout + report.stderr, end="")
        if report.returncode != 1 or "shipped with maxjax" not in report.stdout:
            print("the doctor does not see the pack, or not that there is no compiler")
            return 1
        tried = run("-c", SCRIPT)
        print(tried.stdout + tried.stderr, end="")
        return 0 if (tried.returncode, tried.stdout) == (0, "native\n") else 1


if __name__ == "__main__":
    sys.exit(main())
