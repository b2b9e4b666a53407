"""A pytest plugin that bounds tests of others and writes down what they give.

Each test is a line of JSON in ``$RECORDER_FILE`` when it begins, and another when it has ended;
tests that have such lines already are not run again: a process can go on where another died
(``processes.py``). ``$RECORDER_SECONDS`` bounds a test. With ``$RECORDER_NAMES_FILES`` a test's
name includes its file, and seeds the global generators of Python and NumPy: tests that draw from
them draw the same on JAX and on maxjax. Where ``$RECORDER_ONLY`` names a file, only the tests that
it names run.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy as np
import pytest

LOG = Path(os.environ["RECORDER_FILE"])
SECONDS = float(os.environ["RECORDER_SECONDS"])
WITH_FILES = bool(os.environ.get("RECORDER_NAMES_FILES"))
ONLY = os.environ.get("RECORDER_ONLY")
LONGEST = 1500      # characters of a message
# Private objects that the test asked for, where another plugin notes them.
private: set[str] = set()


class TookTooLong(BaseException):
    """A test ran past its time. No ``Exception``, so that what it tests does not catch it."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise TookTooLong(f"the test took more than {SECONDS:g} s")


def write(**line: Any) -> None:
    with open(LOG, "a") as stream:
        stream.write(json.dumps(line) + "\n")


def name_of(item: pytest.Item) -> str:
    return item.nodeid if WITH_FILES else item.nodeid.partition("::")[2]


def _is_of_tests(path: Path) -> bool:
    return path.name.endswith("_test.py") or path.name.startswith("test_")


def _place(trace: TracebackType | None) -> str:
    """The last line of the test's own file, and the last of all."""
    places = [(Path(frame.f_code.co_filename), number)
              for frame, number in traceback.walk_tb(trace)]
    ends = [place for place in places if _is_of_tests(place[0])][-1:] + places[-1:]
    return ", ".join(f"{_short(path)}:{number}" for path, number in ends)


def _short(path: Path) -> str:
    """A path from the package's folder on, or a test file with its folder."""
    parts = path.parts
    starts = [number for number, part in enumerate(parts) if part in ("jax", "maxjax")]
    return "/".join(parts[starts[-1] if starts else -2:])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    done = {json.loads(line)["id"] for line in LOG.read_text().splitlines()}
    items[:] = [item for item in items if name_of(item) not in done]
    if ONLY:
        wanted = set(Path(ONLY).read_text().splitlines())
        items[:] = [item for item in items if name_of(item) in wanted]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    name = report.nodeid if WITH_FILES else ""
    if report.failed:
        write(id=name, outcome="failed", type="collection",
              message=str(report.longrepr)[-LONGEST:], place="", private=[])
    elif report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        write(id=name, outcome="skipped", message=str(reason)[:200])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    write(id=name_of(item), outcome="began")
    if WITH_FILES:
        seed = zlib.crc32(item.nodeid.encode())
        random.seed(seed)
        np.random.seed(seed)
    private.clear()
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    if report.when != "call" and report.passed:
        return
    line: dict[str, Any] = {"id": name_of(item), "outcome": report.outcome,
                            "seconds": round(report.duration, 3)}
    if report.failed and call.excinfo is not None:
        error = call.excinfo.value
        message = "a message that cannot be printed"
        with contextlib.suppress(Exception):
            message = str(error)
        line |= {"type": type(error).__name__, "message": message[:LONGEST],
                 "place": _place(error.__traceback__), "private": sorted(private)}
    elif report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        line["message"] = str(reason)[:200]
    write(**line)
