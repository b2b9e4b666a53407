"""Runs the lines of api.txt on JAX or maxjax with 8 devices: a separate script, because the number
of devices is fixed when the library starts.

    python -m tests.sharding.api_cases jax record      # writes JAX's outcomes into the file

A line is an expression, with its outcome indented below it, or a statement after ``!``.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("api.txt")
NAMES = ("AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec",
         "SingleDeviceSharding")


def lines() -> list[tuple[str, str]]:
    """Each line, with JAX's outcome."""
    found: list[tuple[str, str]] = []
    for line in FILE.read_text().splitlines():
        if line.startswith("    -> "):
            found[-1] = found[-1][0], line.removeprefix("    -> ")
        elif line and not line.startswith("#"):
            found.append((line, ""))
    return found


def namespace(library: str) -> dict[str, Any]:
    import numpy as np

    jax = importlib.import_module(library)
    sharding = importlib.import_module(f"{library}.sharding")
    names = {name: getattr(sharding, name) for name in NAMES}
    return {"jax": jax, "jnp": importlib.import_module(f"{library}.numpy"),
            "lax": importlib.import_module(f"{library}.lax"), "np": np, "S": sharding, **names,
            "P": sharding.PartitionSpec,
            "module": lambda name: importlib.import_module(f"{library}.{name}")}


def outcomes(library: str) -> list[str]:
    """Each line's outcome: its printed value, or its error, after its own output."""
    names = namespace(library)
    found = []
    for line, _ in lines():
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                if line.startswith("!"):
                    exec(line[1:].replace("\\n", "\n"), names)
                    value = "done"
                else:
                    value = repr(eval(line, names))
            except Exception as error:
                value = f"{type(error).__name__}: {error}"
        text = re.sub(r" at 0x[0-9a-f]+", "", printed.getvalue() + value)
        found.append(text.replace("\n", "\\n"))
    return found


def record(found: list[str]) -> None:
    given = iter(found)
    text = []
    for line in FILE.read_text().splitlines():
        if line.startswith("    -> "):
            continue
        text.append(line)
        if line and not line.startswith("#"):
            outcome = next(given)
            if not (line.startswith("!") and outcome == "done"):
                text.append(f"    -> {outcome}")
    FILE.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    results = outcomes(sys.argv[1])
    if sys.argv[2:] == ["record"]:
        record(results)
    else:
        json.dump(results, sys.stdout)
