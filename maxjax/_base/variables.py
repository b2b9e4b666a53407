"""maxjax's own environment variables that are no options."""

from __future__ import annotations

import difflib
import logging
import os

from maxjax._base.config import config

logger = logging.getLogger("maxjax")

JOB_SECRET = "MAXJAX_JOB_SECRET"
# Each with its default and what it does.
DESCRIBED = {
    "MAXJAX_CACHE_DIR": ("the platform's folder for caches, and in it `maxjax`",
                         "where compiled kernels and programs are kept"),
    "MAXJAX_CACHE_MAX_BYTES": ("2 GiB", "how many bytes they may take; the oldest go first"),
    "MAXJAX_CPU_TARGET": ("this processor", "the processor that kernels are compiled for, in the "
                                            "compiler's words, such as `x86-64-v3`"),
    JOB_SECRET: (
        "the user's own, made on each machine",
        "what a process must have to take part in a job: 16 characters or more, the same in all "
        "processes; `none`: whoever reaches process 0 may take part"),
    "MAXJAX_JOB_SECRET_FILE": ("none", "a file that has it, where MAXJAX_JOB_SECRET is not set"),
    "MAXJAX_STANDARD_LIBRARY": (
        "the small one, with the compilers that it was tried with",
        "the standard library that kernels are compiled with: `small`, which is maxjax's own, or "
        "`max`"),
    "MAXJAX_SIMULATED_ACCELERATORS": (
        "none", "for tests: so many devices of the platform `gpu` are simulated, in memory of the "
                "host that is kept apart"),
    "MAXJAX_STRICT": (
        "0", "for tests: `1` raises an error of maxjax's own in planning a program, which would "
             "run another way instead"),
}
# The prefixes of variables that the project's own tests and tables read.
_OF_TESTS = ("MAXJAX_COMPAT_", "MAXJAX_TEST_")


def cache_max_bytes(default: int) -> int:
    """``MAXJAX_CACHE_MAX_BYTES``: a whole number of bytes.

    Raises:
      ValueError: it is another text.
    """
    text = os.environ.get("MAXJAX_CACHE_MAX_BYTES", "").strip()
    if text and not text.isdecimal():
        raise ValueError(f"environment variable MAXJAX_CACHE_MAX_BYTES is {text!r}, and needs to "
                         "be a whole number of bytes, such as 1000000000")
    return int(text) if text else default


def standard_library() -> str | None:
    """``MAXJAX_STANDARD_LIBRARY``: ``"small"`` or ``"max"``, or None.

    Raises:
      ValueError: it is another text.
    """
    text = os.environ.get("MAXJAX_STANDARD_LIBRARY", "").strip()
    if text not in ("", "small", "max"):
        raise ValueError(f"environment variable MAXJAX_STANDARD_LIBRARY is {text!r}, and needs to "
                         "be 'small' or 'max'")
    return text or None


def strict() -> bool:
    """``MAXJAX_STRICT``: whether an error in planning a program is raised."""
    return os.environ.get("MAXJAX_STRICT", "").strip() not in ("", "0")


def shown(name: str, value: str) -> str:
    """A variable's value, as a report may have it that others read."""
    return f"({len(value)} characters)" if name == JOB_SECRET and value != "none" else value


def warn_of_unknown() -> None:
    """Warns of variables that begin with MAXJAX_ and mean nothing."""
    known = [*DESCRIBED, *(f"MAXJAX_{name.upper()}" for name in config.own_names)]
    for name in sorted(os.environ):
        if name.startswith("MAXJAX_") and name not in known and not name.startswith(_OF_TESTS):
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            logger.warning("environment variable %s has no effect: %s", name, hint)
