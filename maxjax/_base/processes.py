"""Which process of a job this one is; a job has one unless ``jax.distributed`` started more."""

from __future__ import annotations

from maxjax._base import config, option_kinds

collective_timeout = config.config.define_own(
    "collective_timeout", 60.0,
    "Seconds that a process waits for the others in a collective before it raises an error.")

collectives_implementation = config.config.define(
    "jax_cpu_collectives_implementation", "gloo",
    "What carries data between processes: gloo or mpi. Processes that mpiexec started without a "
    "coordinator's address use mpi in any case.",
    option_kinds.one_of((None, "gloo", "mpi", "megascale")))


class _Processes:
    """The job's shape.

    Attributes:
      index: this process's number.
      device_counts: how many devices each process has; empty where there is one process.
    """

    __slots__ = ("device_counts", "index")

    def __init__(self) -> None:
        self.index = 0
        self.device_counts: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        return len(self.device_counts) or 1


job = _Processes()
