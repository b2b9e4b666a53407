"""The single warning of a process that must run without native code."""

from __future__ import annotations

import contextlib
import warnings

_warned = False


def warn_once(reason: str) -> None:
    """Warns of the first of several problems: they usually have one cause."""
    global _warned
    if _warned:
        return
    _warned = True
    # Under -W error the warning is an exception, which has no place to go in a background thread.
    with contextlib.suppress(Warning):
        warnings.warn(f"maxjax: {reason}", RuntimeWarning, stacklevel=3)


def warn_no_more() -> None:
    """Has later problems go unsaid: an interpreter that is ending stops its builds, and what they
    would have made is not missed."""
    global _warned
    _warned = True
