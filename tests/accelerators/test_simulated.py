"""Runs what needs simulated accelerators in processes that have them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def in_simulation(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=1500,
        cwd=HERE.parent.parent, check=False,
        env={**os.environ, "MAXJAX_SIMULATED_ACCELERATORS": "2", **variables})


@pytest.mark.slow
@pytest.mark.parametrize("file", [
    pytest.param(path.name, marks=pytest.mark.extended if path.stem == "simulated_cases" else [])
    for path in sorted(HERE.glob("simulated_*.py"))])
def test_a_file_passes_on_simulated_devices(file):
    done = in_simulation("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0",
                         str(HERE / file))
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


_DEFAULTS = """
import maxjax as jax, maxjax.numpy as jnp, numpy as np
print(jax.default_backend(), jax.devices(), len(jax.devices("cpu")))
x = jnp.arange(3.0)
y = jax.jit(lambda x: x * 2)(np.ones(3, np.float32))
print(x.devices(), y.devices(), x.committed, y.committed, float((x + y).sum()))
"""


def test_platforms_decide_the_default():
    done = in_simulation("-c", _DEFAULTS, JAX_PLATFORMS="cuda,cpu", MAXJAX_COMPILE="never")
    assert done.stdout.splitlines() == [
        "gpu [CudaDevice(id=0), CudaDevice(id=1)] 1",
        "{CudaDevice(id=0)} {CudaDevice(id=0)} False False 9.0"], done.stderr
    done = in_simulation("-c", _DEFAULTS, JAX_PLATFORMS="cpu,cuda", MAXJAX_COMPILE="never")
    assert done.stdout.splitlines()[0] == "cpu [CpuDevice(id=0)] 1", done.stderr
    done = in_simulation("-c", _DEFAULTS, JAX_PLATFORMS="cuda,cpu",
                         MAXJAX_SIMULATED_ACCELERATORS="0", MAXJAX_COMPILE="never")
    assert done.stdout.splitlines()[0] == "cpu [CpuDevice(id=0)] 1", done.stderr


def test_a_platform_that_is_not_there():
    done = in_simulation("-c", "import maxjax as jax; jax.devices()", JAX_PLATFORMS="cuda",
                         MAXJAX_SIMULATED_ACCELERATORS="0")
    assert "RuntimeError: Unable to initialize backend 'cuda'" in done.stderr
    done = in_simulation("-c", "import maxjax as jax; jax.devices('gpu')",
                         MAXJAX_SIMULATED_ACCELERATORS="0")
    assert "Unknown backend: 'gpu' requested, but no platforms" in done.stderr
