"""Joining the other processes of a job, and leaving them."""

from __future__ import annotations

import atexit
import errno
import os
import sys
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from maxjax._base.errors import JaxRuntimeError
from maxjax._base.processes import collective_timeout, job
from maxjax._distributed.addresses import host_and_port, own_address, resolved
from maxjax._distributed.communicator import Communicator, Unanswered
from maxjax._distributed.gloo import GlooCommunicator
from maxjax._distributed.group import Group
from maxjax._distributed.mpi import MPICommunicator
from maxjax._distributed.secret import VARIABLE, job_key
from maxjax._distributed.store import KEY_BYTES, Client, Keeper, Place

# Addresses that stand for all of this machine's, each with one at which it reaches itself.
_ALL = {"0.0.0.0": "127.0.0.1", "::": "::1"}
# Each with the variable that tells how many processes a launcher has started.
_LAUNCHERS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_NTASKS")


def launched(environment: Mapping[str, str] = os.environ) -> int | None:
    """How many processes ``mpiexec`` or ``srun`` says it has started; None: neither did."""
    for name in _LAUNCHERS:
        if environment.get(name, "").isdigit():
            return int(environment[name])
    return None


# What a process tells the others at the start; process 0 also, by MPI, where values are kept.
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

    def join(self, engine: Communicator, devices: int, keeper: Keeper | None = None,
             client: Client | None = None) -> None:
        """Makes an engine that of the job.

        Args:
          devices: how many devices this process has.
          keeper: of the values that the processes have met by, in process 0.
          client: asks for them; None: they have met without, and need a keeper yet.
        """
        self._engine = engine
        self.failed = False
        self.group = Group(engine, range(engine.size), self._mark_failed)
        self._keeper = keeper
        place: Place = "", 0, bytes(KEY_BYTES)
        if client is None and engine.rank == 0:
            self._keeper = Keeper(engine.address, engine.size)
            place = self._keeper.place
        told = self.group.all_gather(_told(devices, place), "number of local devices")
        self.client = client or Client(_place(told[0]), engine.rank)
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


def join_gloo(address: str, bind_address: str | None, size: int, rank: int,
              devices: Callable[[], int], start_timeout: float) -> None:
    """Joins processes that meet at an address, where process 0 listens.

    Args:
      bind_address: where it listens if not there, with or without a port.
      devices: how many devices this process has, once it has met the others.

    Raises:
      ValueError: an address is not "host:port", or the secret cannot be used.
      JaxRuntimeError: not all have come in time, or this one may not take part.
    """
    host, port = host_and_port(address, "coordinator_address")
    key = job_key()
    keeper = None
    try:
        reached = resolved(host)
        own = own_address(reached)
        if rank == 0:
            keeper = _keeper(reached, port, bind_address, size, key)
            listens, port, _ = keeper.place
            reached = _ALL.get(listens, listens)
            own = own if listens in _ALL else listens
        client = Client((reached, port, key), rank)
        client.join(size, start_timeout)
        engine = GlooCommunicator.connect(client, key, own, size, rank, collective_timeout.value)
        connection.join(engine, devices(), keeper, client)
    except (JaxRuntimeError, Unanswered, OSError) as error:
        raise _not_met(error, address, size, rank, start_timeout) from error
    finally:
        if keeper is not None and connection.group is None:
            keeper.close()


def _keeper(address: str, port: int, bind_address: str | None, size: int, key: bytes) -> Keeper:
    if bind_address:
        host, port = host_and_port(bind_address, "coordinator_bind_address", port)
        address = resolved(host)
    try:
        return Keeper(address, size, port, key)
    except OSError as error:
        hint = "" if error.errno != errno.EADDRNOTAVAIL else (
            ", which is no address of this machine: coordinator_bind_address or "
            "JAX_COORDINATOR_BIND_ADDRESS says where to listen, such as 0.0.0.0 for everywhere")
        raise JaxRuntimeError(f"UNAVAILABLE: process 0 cannot listen at {address}:{port}{hint} "
                              f"({os.strerror(error.errno or 0)})") from error


def _not_met(error: Exception, address: str, size: int, rank: int, seconds: float
             ) -> JaxRuntimeError:
    """What the user is told where processes do not meet."""
    status, separator, reason = str(error).partition(": ")
    if not separator or not status.isupper():
        status, reason = "UNAVAILABLE", str(error)
    within = f" within {seconds:g} s" if status == "DEADLINE_EXCEEDED" else ""
    hint = "" if "secret" not in reason else (
        f". Set {VARIABLE} to the same text in all processes of the job: without it each takes the "
        "secret of its user on its machine (docs/distributed.md)")
    return JaxRuntimeError(f"{status}: process {rank} did not meet all {size} processes at "
                           f"{address}{within}: {reason}{hint}")
