"""A process that has one library loaded and times its calls on request.

`python -m benchmarks.worker LIBRARY` reads a request a line and answers each with a line of JSON:

- `prepare NAME SECONDS`: makes a call and warms it up; SECONDS are about what a sample is to take.
- `save PATH`: writes the arrays that the prepared program computes.
- `sample`: times the call.
- `tier`: where maxjax has run it.

What a library cannot do is answered with `error`. Two workers, asked in turns, share what the
machine does meanwhile, and neither library sits in the other's process.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import agreement, sharded
from benchmarks.calls import CALLS, Call
from benchmarks.steady import PROGRAMS, Program


def seconds_for(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def prepare(library: Any, name: str, seconds: float) -> tuple[Call, int]:
    """The call, warm, and how many of them take about `seconds`."""
    makers: dict[str, Callable[[Any], Call]] = {**CALLS, **PROGRAMS, **sharded.PROGRAMS}
    call = makers[name](library)
    for _ in range(3):
        call()
    count = 1
    while (elapsed := seconds_for(call, count)) < seconds:
        count = max(count + 1, int(count * min(10.0, 1.2 * seconds / max(elapsed, 1e-9))))
    return call, count


class Worker:
    def __init__(self, library: str):
        self.library = importlib.import_module(library)
        self.call: Any = None
        self.count = 0

    def answer(self, request: str) -> dict[str, Any]:
        command, _, argument = request.strip().partition(" ")
        if command == "prepare":
            self.call = None  # the arrays of the last one go before those of the next come
            name, _, seconds = argument.rpartition(" ")
            self.call, self.count = prepare(self.library, name, float(seconds))
            return {"count": self.count, "tolerance": getattr(self.call, "tolerance", None)}
        if self.call is None:
            raise ValueError("nothing is prepared")
        if command == "save":
            agreement.save(Path(argument), self.call.results())
            return {}
        if command == "sample":
            gc.collect()
            return {"seconds": seconds_for(self.call, self.count) / self.count}
        if command == "tier":
            return {"tier": self.call.tier() if isinstance(self.call, Program) else ""}
        raise ValueError(f"no command {command!r}")


def main() -> None:
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = worker.answer(line)
        except Exception as error:
            message = str(error).strip().splitlines() or [""]
            answer = {"error": f"{type(error).__name__}: {message[0]}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
