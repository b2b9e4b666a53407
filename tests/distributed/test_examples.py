"""examples/distributed.py: started in every way it reaches the loss of one process, and it goes on
from a checkpoint, after a process has ended, on another number of processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from maxjax._distributed.launcher import free_port
from tests import ROOT
from tests.distributed.running import environment, finished

# What they share is computed once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("distributed_examples")]

_SCRIPT = str(Path(ROOT) / "examples" / "distributed.py")
_STEPS = ("--steps", "30")


def train(way: str, count: int, *arguments: str) -> list[subprocess.CompletedProcess[str]]:
    env = environment(4 // count)
    script = [sys.executable, "-m", "maxjax", _SCRIPT, *arguments]
    if way == "alone":
        return finished([script], [env])
    if way == "mpiexec":
        return finished([[str(Path(sys.executable).parent / "mpiexec"), "-n", str(count), *script]],
                       [env])
    if way == "launcher":
        return finished([[sys.executable, "-m", "maxjax.distributed", "-n", str(count), _SCRIPT,
                         *arguments]], [env])
    port = free_port()
    return finished([script] * count, [{
        **env, "JAX_COORDINATOR_ADDRESS": f"localhost:{port}", "JAX_NUM_PROCESSES": str(count),
        "JAX_PROCESS_ID": str(number)} for number in range(count)])


def losses(results: list[subprocess.CompletedProcess[str]]) -> list[str]:
    for result in results:
        assert result.returncode == 0, result.stderr
    return [line[line.index("step"):] for result in results for line in result.stdout.splitlines()
            if "loss" in line]


def _close(found: list[str], expected: list[str]) -> None:
    assert [line.split()[:2] for line in found] == [line.split()[:2] for line in expected]
    for one, other in zip(found, expected, strict=True):
        assert float(one.split()[-1]) == pytest.approx(float(other.split()[-1]), abs=2e-6)


@pytest.fixture(scope="module")
def alone() -> list[str]:
    return losses(train("alone", 1, *_STEPS))


@pytest.mark.parametrize("parameters", ["replicated", "sharded"])
@pytest.mark.parametrize("way, count", [
    ("mpiexec", 2), ("by hand", 2), pytest.param("launcher", 2, marks=pytest.mark.extended),
    pytest.param("by hand", 4, marks=pytest.mark.exhaustive)])
def test_the_loss_of_one_process(alone, way, count, parameters):
    _close(losses(train(way, count, *_STEPS, "--parameters", parameters)), alone)


@pytest.mark.parametrize("way, count", [
    ("alone", 1), pytest.param("by hand", 4, marks=pytest.mark.extended)])
def test_it_goes_on_from_a_checkpoint_on_another_number_of_processes(alone, tmp_path, way, count):
    arguments = (*_STEPS, "--parameters", "sharded", "--checkpoint", str(tmp_path))
    first, second = train("by hand", 2, *arguments, "--fail-at", "24")
    assert second.returncode == 1
    assert first.returncode not in (0, None)
    assert "for process 1, which has ended" in first.stderr, first.stderr
    later = losses(train(way, count, *arguments))
    assert later[0].startswith("step 20 ")
    _close(later, [line for line in alone if int(line.split()[1]) >= 20])


@pytest.mark.exhaustive
@pytest.mark.parametrize("way, count, later", [("mpiexec", 2, 4), ("launcher", 4, 2)])
def test_a_launcher_ends_all_and_starts_another_number_of_processes(
        alone, tmp_path, way, count, later):
    arguments = (*_STEPS, "--parameters", "sharded", "--checkpoint", str(tmp_path))
    result, = train(way, count, *arguments, "--fail-at", "24")
    assert result.returncode not in (0, None)
    if way == "launcher":
        assert "for process 1, which has ended" in result.stdout, result.stdout
        assert "for process 0" not in result.stdout, result.stdout
    found = losses(train(way, later, *arguments))
    assert found[0].startswith("step 20 ")
    _close(found, [line for line in alone if int(line.split()[1]) >= 20])
