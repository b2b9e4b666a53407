"""jax.distributed: several processes, each with devices of its own, that compute together.

``python -m maxjax.distributed -n 4 script.py`` starts that many on this machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from maxjax._base.missing import explain_missing_names
from maxjax._base.processes import collectives_implementation as _implementation
from maxjax._base.processes import job as _job
from maxjax._distributed import launcher as _launcher
from maxjax._distributed import start as _start
from maxjax._runtime import devices as _devices

_state = {"initialized": False}


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None,
               local_device_ids: int | Sequence[int] | None = None,
               cluster_detection_method: str | None = None, initialization_timeout: int = 300,
               heartbeat_timeout_seconds: int = 100, shutdown_timeout_seconds: int = 300,
               coordinator_bind_address: str | None = None, slice_index: int | None = None,
               partition_index: int | None = None, mtls_cert_file: str | None = None,
               mtls_key_file: str | None = None, mtls_ca_file: str | None = None,
               mtls_peer_uri_prefix: str | None = None,
               verify_secure_credentials: bool | None = None) -> None:
    """Joins the other processes of the job, before anything asks for devices.

    Processes that ``mpiexec`` or ``srun`` started need no arguments: MPI, through mpi4py, knows its
    place. Others meet at an address where process 0 listens, and are connected by Gloo. Either
    takes ``pip install 'maxjax[distributed]'``.

    Who has the job's secret takes part: MAXJAX_JOB_SECRET, or what the file that
    MAXJAX_JOB_SECRET_FILE names has, or else a secret that all processes of a user on a machine
    have. MPI has its own means. There are no certificates: ``mtls_cert_file``, ``mtls_key_file``,
    ``mtls_ca_file``, ``mtls_peer_uri_prefix`` and ``verify_secure_credentials`` are refused.

    The other arguments have no effect: each collective notices processes that are missing, within
    ``collective_timeout`` seconds.

    Args:
      coordinator_address: "host:port"; by default the environment variable JAX_COORDINATOR_ADDRESS.
      num_processes: how many processes there are; by default JAX_NUM_PROCESSES.
      process_id: this process's number; by default JAX_PROCESS_ID.
      local_device_ids, slice_index, partition_index, heartbeat_timeout_seconds,
        shutdown_timeout_seconds: accepted.
      cluster_detection_method: "mpi4py", or None; other clusters are not detected.
      initialization_timeout: seconds within which all processes must have come.
      coordinator_bind_address: "host:port" or "host", where process 0 listens; by default
        JAX_COORDINATOR_BIND_ADDRESS, or else the coordinator's address alone, where JAX listens
        everywhere (``"0.0.0.0"``).
      mtls_cert_file, mtls_key_file, mtls_ca_file, mtls_peer_uri_prefix, verify_secure_credentials:
        refused.

    Returns:
      None.

    Raises:
      ValueError: an argument is missing or out of range.
      RuntimeError: it has been called before, or devices are known already.
      JaxRuntimeError: not all processes have come in time, or this one has another secret.
      ImportError: mpi4py or xoscar is missing.
      NotImplementedError: certificates are given or asked for.

    See also: ``jax.distributed.shutdown``, ``jax.process_index``,
    ``jax.experimental.multihost_utils.process_allgather``.

    >>> initialize("localhost:1234", num_processes=1, process_id=0)
    >>> jax.distributed.is_initialized(), jax.process_count()
    (True, 1)
    >>> jax.distributed.shutdown()
    """
    for name, value in (
            ("mtls_cert_file", mtls_cert_file), ("mtls_key_file", mtls_key_file),
            ("mtls_ca_file", mtls_ca_file), ("mtls_peer_uri_prefix", mtls_peer_uri_prefix),
            ("verify_secure_credentials", verify_secure_credentials)):
        if value:
            raise NotImplementedError(
                f"jax.distributed.initialize: {name}={value!r}: maxjax has no certificates; its "
                "processes prove to each other that they have the job's secret, which "
                "MAXJAX_JOB_SECRET or MAXJAX_JOB_SECRET_FILE sets, and do not encrypt what they "
                "send (docs/distributed.md)")
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    num_processes = _or_variable(num_processes, "JAX_NUM_PROCESSES")
    process_id = _or_variable(process_id, "JAX_PROCESS_ID")
    launched = _start.launched()
    wanted = "mpi" if cluster_detection_method == "mpi4py" else _implementation.value
    by_mpi = wanted == "mpi" or address is None and launched is not None
    if not by_mpi:
        if address is None:
            raise ValueError("coordinator_address should be defined.")
        if num_processes is None:
            raise ValueError("Number of processes must be defined.")
        if process_id is None:
            raise ValueError("The process id of the current process must be defined.")
        if not 0 <= process_id < num_processes:
            raise ValueError(f"process_id must be from 0 to num_processes - 1, got {process_id} of "
                             f"{num_processes}")
    if _state["initialized"]:
        raise RuntimeError("distributed.initialize should only be called once.")
    if by_mpi or num_processes != 1:
        if _devices.is_started():
            raise RuntimeError(
                "jax.distributed.initialize() must be called before any JAX calls that might "
                "initialise the XLA backend. This includes any computation, but also calls to "
                "jax.devices, jax.device_put, and others.")
        if by_mpi:
            engine = _start.connect_mpi(launched if num_processes is None else num_processes)
            _start.connection.join(engine, _devices.local_device_count())
        else:
            assert address is not None and num_processes is not None and process_id is not None
            _start.join_gloo(
                address, coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS"),
                num_processes, process_id, _devices.local_device_count, initialization_timeout)
        _devices.forget()
    _state["initialized"] = True


def _or_variable(given: int | None, name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if given is None and text.isdigit() else given


def is_initialized() -> bool:
    """Whether ``initialize`` has been called.

    >>> is_initialized()
    False
    """
    return _state["initialized"]


def shutdown() -> None:
    """Leaves the job once all processes want to; does nothing if ``initialize`` was not called.

    Raises:
      JaxRuntimeError: another process does not come to this point.

    >>> shutdown()
    """
    several = _job.count > 1
    _state["initialized"] = False
    _start.connection.leave()
    if several:
        _devices.forget()


explain_missing_names(__name__)

if __name__ == "__main__":
    sys.exit(_launcher.main(sys.argv[1:]))
