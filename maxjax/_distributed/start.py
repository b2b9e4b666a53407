"""Joining the other processes of a job, and leaving them."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np

from maxjax._base.errors import JaxRuntimeError
from maxjax._base.processes import collective_timeout, job
from maxjax._distributed.communicator import Communicator, Unanswered
from maxjax._distributed.gloo import GlooCommunicator
from maxjax._distributed.group import Group
from maxjax._distributed.mpi import MPICommunicator
from maxjax._distributed.store import KEY_BYTES, Client, Keeper, Place

# Each with the variable that tells how many processes a launcher has started.
_LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_NTASKS")


def launched(environment: Mapping[str, str] = os.environ) -> int | None:
    """How many processes ``mpiexec`` or ``srun`` says it has started; None: neither did."""
    for name in _LAUNCHERS:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return None


# What a process tells the others at the start.
_TOLD = np.dtype([("devices", np.int64), ("port", np.int64), ("address", "S48"),
                  ("key", np.uint8, KEY_BYTES)])


def _told(devices: int, place: Place) -> np.ndarray:
    address, port, key = place
    return np.array((devices, port, address.encode(), np.frombuffer(key, np.uint8)), _TOLD)


def _place(told: Any) -> Place:
    return told["address"].decode(), int(told["port"]), told["key"].tobytes()


class _Connection:
    """The connection to the other processes.

    Attributes:
      group: all processes; None where there is one.
      failed: a collective has not ended: nothing can be exchanged any more.
      client: asks for values by name; None where there is one process.
    """

    def __init__(self) -> None:
        self.group: Group | None = None
        self.failed = False
        self._engine: Communicator | None = None
        self._groups: dict[tuple[int, ...], Group] = {}
        self._keeper: Keeper | None = None
        self.client: Client | None = None

    def join(self, engine: Communicator, devices: int) -> None:
        """Makes an engine that of the job.

        Args:
          devices: how many devices this process has.
        """
        self._engine = engine
        self.failed = False
        self.group = Group(engine, range(engine.size), self._mark_failed)
        place: Place = "", 0, bytes(KEY_BYTES)
        if engine.rank == 0:
            self._keeper = Keeper(engine.address, engine.size)
            place = self._keeper.place
        told = self.group.all_gather(_told(devices, place), "number of local devices")
        self.client = Client(_place(told[0]), engine.rank)
        job.index, job.device_counts = engine.rank, tuple(told["devices"].tolist())
        atexit.register(self._at_exit)
        self._hook = sys.excepthook
        sys.excepthook = self._on_exception

    @property
    def is_mpi(self) -> bool:
        """Whether MPI carries the data."""
        return isinstance(self._engine, MPICommunicator)

    def among(self, processes: tuple[int, ...]) -> Group:
        """The group of some processes, of which this is one.

        Raises:
          JaxRuntimeError: the others do not ask for it.
        """
        everybody = self.everybody()
        if processes == everybody.processes:
            return everybody
        known = self._groups.get(processes)
        if known is None:
            known = self._groups[processes] = everybody.subgroup(processes)
        return known

    def everybody(self) -> Group:
        """The group of all processes.

        Raises:
          JaxRuntimeError: a collective has failed.
        """
        if self.group is None:
            raise RuntimeError("jax.distributed.initialize has not been called")
        if self.failed:
            raise JaxRuntimeError("UNAVAILABLE: an earlier collective failed: this process has "
                                  "lost the others")
        return self.group

    def leave(self) -> None:
        """Waits until all have come to the end, and closes the connection."""
        if self.group is None or self._engine is None:
            return
        group, engine = self.group, self._engine
        for each in (group, *self._groups.values()):
            each.retire()
        keeper, self._keeper = self._keeper, None
        self.group = self._engine = self.client = None
        self._groups.clear()
        atexit.unregister(self._at_exit)
        sys.excepthook = self._hook
        try:
            if not self.failed:
                group.barrier("jax.distributed.shutdown")
        finally:
            job.index, job.device_counts = 0, ()
            engine.close(self.failed)
            if keeper is not None:
                keeper.close()

    def _mark_failed(self) -> None:
        self.failed = True
        for each in self._groups.values():
            each.retire()
        if self.group is not None:
            self.group.retire()

    def _on_exception(self, kind: type[BaseException], error: BaseException,
                      trace: TracebackType | None) -> Any:
        # The others learn of it at once, instead of waiting for this process.
        self.failed = True
        self._hook(kind, error, trace)

    def _at_exit(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if self._engine is not None:
            self._engine.close(self.failed)


connection = _Connection()


def connect_mpi(expected: int | None) -> Communicator:
    """The engine of processes that a launcher started.

    Raises:
      ImportError: mpi4py is missing.
      RuntimeError: MPI sees another number of processes than the launcher started.
    """
    try:
        engine = MPICommunicator(collective_timeout.value)
    except ImportError as error:
        raise ImportError("processes started by mpiexec need mpi4py: pip install "
                          f"'maxjax[distributed]' ({error})") from error
    if expected is not None and engine.size != expected:
        raise RuntimeError(
            f"the launcher started {expected} processes and MPI sees {engine.size}: this MPI is "
            "not the launcher's. Give jax.distributed.initialize a coordinator's address instead")
    return engine


def connect_gloo(address: str, size: int, rank: int, start_timeout: float) -> Communicator:
    """The engine of processes that meet at an address.

    Raises:
      ValueError: the address is not "host:port".
      JaxRuntimeError: not all have come in time.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"coordinator_address must be 'host:port', got {address!r}")
    try:
        return GlooCommunicator.connect(host.strip("[]"), int(port), size, rank,
                                        collective_timeout.value, start_timeout)
    except Unanswered as error:
        raise JaxRuntimeError(
            f"DEADLINE_EXCEEDED: process {rank} did not meet all {size} processes at {address} "
            f"within {start_timeout:g} s: {error}") from error
