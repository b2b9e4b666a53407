"""The state of the job, as libraries ask for it."""

from __future__ import annotations

from maxjax._base.processes import job
from maxjax._distributed.start import connection
from maxjax._distributed.store import Client


class State:
    """What libraries ask of a job; without a client there is but one process.

    Attributes:
      service, coordinator_address: None: process 0 keeps the values that the client asks for, and
        the client alone knows where.
    """

    service: None = None
    coordinator_address: str | None = None

    @property
    def process_id(self) -> int:
        return job.index

    @property
    def num_processes(self) -> int:
        return job.count

    @property
    def client(self) -> Client | None:
        return connection.client


global_state = State()
