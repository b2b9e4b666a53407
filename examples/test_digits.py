"""The example learns, and learns the same on maxjax as on JAX."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).with_name("digits.py")


def run(folder, *arguments):
    losses = folder / "losses.json"
    outputs = ["--losses", str(losses), "--picture", str(folder / "digits.png")]
    finished = subprocess.run(
        [sys.executable, str(SCRIPT), *outputs, *arguments],
        env={**os.environ, "MAXJAX_COMPILE": "never"},
        capture_output=True,
        text=True,
    )
    assert finished.returncode == 0, finished.stderr
    assert (folder / "digits.png").stat().st_size > 0
    return finished.stdout, json.loads(losses.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["mlp", pytest.param("cnn", marks=pytest.mark.extended)])
def test_losses_agree_with_jax_and_the_network_learns(tmp_path, model):
    said, ours = run(tmp_path, "--model", model)
    _, theirs = run(tmp_path, "--model", model, "--jax", "--steps", "100")
    # Each step about doubles a difference in rounding, of which processors have their own.
    np.testing.assert_allclose(ours[model][:15], theirs[model][:15], rtol=1e-4)
    np.testing.assert_allclose(np.mean(ours[model][:100]), np.mean(theirs[model]), rtol=1e-2)
    assert float(said.split("test accuracy ")[1].split()[0]) >= 0.95
