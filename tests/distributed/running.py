"""Runs scripts in several processes, under either engine, bounded in time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from maxjax._distributed.launcher import free_port

ENGINES = ("gloo", "mpi")
_SECONDS = 120


def environment(devices: int = 2, **variables: str) -> dict[str, str]:
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": root, "MAXJAX_DETACHED_BUILDS": "0",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
            "JAX_PLATFORMS": "cpu", **variables}


# What is done beside processes, given their numbers.
Beside = Callable[[list[int]], contextlib.AbstractContextManager[object]]


def run(engine: str, script: str, count: int = 2, devices: int = 2, beside: Beside | None = None,
        address: str | None = None, **variables: str) -> list[subprocess.CompletedProcess[str]]:
    """A script in ``count`` processes.

    Args:
      beside: entered when they have been started, left when all have ended.
      address: of the coordinator.
      engine: "mpi": by mpiexec, all in one result; "gloo": by hand, with the address, the count and
        the number as arguments; "jax": the same on real JAX.
    """
    env = environment(devices, **variables)
    if engine == "mpi":
        mpiexec = str(Path(sys.executable).parent / "mpiexec")
        return finished([[mpiexec, "-n", str(count), sys.executable, "-m", "maxjax", "-c", script]],
                        [env], beside=beside)
    address = address or f"localhost:{free_port()}"
    command = [sys.executable, *([] if engine == "jax" else ["-m", "maxjax"]), "-c", script]
    return finished([[*command, address, str(count), str(number)] for number in range(count)],
                    [env] * count, beside=beside)


def finished(commands: list[list[str]], environments: list[dict[str, str]],
             seconds: float = _SECONDS, beside: Beside | None = None
             ) -> list[subprocess.CompletedProcess[str]]:
    """What commands that run at the same time came to. At the end none of their processes is left,
    nor of those that they started.

    Raises:
      TimeoutError: one has not ended in time; the error has what all have printed.
    """
    processes = [subprocess.Popen(command, env=env, text=True, start_new_session=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for command, env in zip(commands, environments, strict=True)]
    deadline = time.monotonic() + seconds
    results: list[subprocess.CompletedProcess[str]] = []
    try:
        with (contextlib.nullcontext() if beside is None
              else beside([process.pid for process in processes])):
            for process in processes:
                output, errors = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
                results.append(subprocess.CompletedProcess(
                    process.args, process.returncode, output, errors))
        return results
    except subprocess.TimeoutExpired:
        _kill(processes)
        said = [f"{number} ({process.poll()}): {process.communicate()}"
                for number, process in enumerate(processes) if process.stdout is not None
                and not process.stdout.closed]
        said += [f"{result.returncode}: {result.stdout}{result.stderr}" for result in results]
        raise TimeoutError(f"not ended within {seconds:g} s:\n" + "\n".join(said)) from None
    finally:
        _kill(processes)


def _kill(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):      # nobody of the group is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


# Joins the others, however it was started. What libraries print, such as JAX's Gloo from threads of
# its own, goes to the other output: it would come amid the lines of the script.
START = """
import os, sys
sys.stdout = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import jax, numpy as np
if len(sys.argv) > 1:
    jax.distributed.initialize(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
else:
    jax.distributed.initialize()
"""


def lines(results: list[subprocess.CompletedProcess[str]]) -> list[str]:
    """What was printed, sorted; all must have succeeded."""
    for result in results:
        assert result.returncode == 0, result.stderr
    return sorted(line for result in results for line in result.stdout.splitlines()
                  if line.startswith("*"))
