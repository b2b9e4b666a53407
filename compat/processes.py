"""Tests in processes of their own: where a test ends its process, another goes on after it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], results: Path,
        seconds: float) -> bool:
    """Runs tests with the plugin ``recorder``, which writes ``results``.

    Output goes beside the results, to a file ``.log``. A test that an earlier run was stopped in
    runs again.

    Returns:
      Whether that ended within the seconds.
    """
    limit = time.monotonic() + seconds
    results.touch()
    if _last_began(results):
        lines = results.read_text().splitlines(keepends=True)
        results.write_text("".join(lines[:-1]))
    environment = {**environment, "RECORDER_FILE": str(results)}
    with open(results.with_suffix(".log"), "a") as log:
        while True:
            before = results.stat().st_size
            try:
                status = subprocess.run(command, cwd=folder, env=environment, stdout=log,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                        timeout=max(1.0, limit - time.monotonic())).returncode
            except subprocess.TimeoutExpired:
                return False
            # Ended by a signal, or by the test itself without a word of pytest's.
            died = status < 0 or _last_began(results)
            if not died or results.stat().st_size == before:
                return True


def _last_began(results: Path) -> bool:
    lines = results.read_text().splitlines()
    return bool(lines) and json.loads(lines[-1])["outcome"] == "began"
