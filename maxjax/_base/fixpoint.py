"""Fixpoints over flags: rounds that end, whatever the rules in them do."""

from __future__ import annotations

from collections.abc import Iterator

from maxjax._base.errors import InternalError


def rounds(flags: int, what: str) -> Iterator[None]:
    """The rounds in which flags are set until none is added.

    A round that is not the last sets at least one flag more and clears none, so that there is one
    round more than there are flags at most.

    Args:
      flags: how many there are.
      what: whose they are, for the error.

    Raises:
      InternalError: there were that many rounds, and another is asked for: flags were cleared.
    """
    for _ in range(flags + 1):
        yield None
    raise InternalError(f"{what}: no fixpoint of {flags} flags after {flags + 1} rounds; a rule "
                        "clears what it had set")
