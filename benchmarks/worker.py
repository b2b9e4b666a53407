"""A process that has one library loaded and times its calls on request.

`python -m benchmarks.worker LIBRARY` reads a request a line, `prepare NAME SECONDS` or `sample`,
and answers each with a line of JSON. Two of them, asked in turns, share what the machine does
meanwhile, and neither library sits in the other's process.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import time
from typing import Any

from benchmarks.calls import CALLS, Call


def seconds_for(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


def prepare(library: Any, name: str, seconds: float) -> tuple[Call, int]:
    """The call, warm, and how many of them take about `seconds`."""
    call = CALLS[name](library)
    for _ in range(3):
        call()
    count = 1
    while (elapsed := seconds_for(call, count)) < seconds:
        count = max(count + 1, int(count * min(10.0, 1.2 * seconds / max(elapsed, 1e-9))))
    return call, count


def main() -> None:
    library = importlib.import_module(sys.argv[1])
    call, count = None, 0
    for line in sys.stdin:
        request = line.split()
        if request[0] == "prepare":
            call, count = prepare(library, request[1], float(request[2]))
            answer: dict[str, Any] = {"count": count}
        else:
            assert call is not None, "prepare comes first"
            gc.collect()
            answer = {"seconds": seconds_for(call, count) / count}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
