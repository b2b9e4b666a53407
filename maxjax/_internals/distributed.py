"""The state of a job of one process."""

from __future__ import annotations

from typing import NamedTuple


class State(NamedTuple):
    """What libraries ask of a job; without a client there is but one process."""

    process_id: int = 0
    num_processes: int = 1
    client: None = None
    service: None = None
    coordinator_address: str | None = None


global_state = State()
