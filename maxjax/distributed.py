"""jax.distributed, for one process."""

from __future__ import annotations

import os
from collections.abc import Sequence

from maxjax._base.missing import explain_missing_names

_state = {"initialized": False}


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None,
               local_device_ids: int | Sequence[int] | None = None,
               cluster_detection_method: str | None = None, initialization_timeout: int = 300,
               heartbeat_timeout_seconds: int = 100, shutdown_timeout_seconds: int = 300,
               coordinator_bind_address: str | None = None, slice_index: int | None = None,
               partition_index: int | None = None) -> None:
    """Starts a job of one process, which only checks the arguments.

    Args:
      coordinator_address: "host:port"; by default the environment variable JAX_COORDINATOR_ADDRESS.
      num_processes: 1.
      process_id: 0.
      cluster_detection_method: clusters are not detected: the other arguments must be given.

    Raises:
      ValueError: an argument is missing or out of range.
      RuntimeError: it has been called before.
      NotImplementedError: ``num_processes`` is more than 1.

    >>> initialize("localhost:1234", num_processes=1, process_id=0)
    >>> jax.distributed.is_initialized(), jax.process_count()
    (True, 1)
    >>> jax.distributed.shutdown()
    """
    address = coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS")
    if address is None:
        raise ValueError("coordinator_address should be defined.")
    if num_processes is None:
        raise ValueError("Number of processes must be defined.")
    if process_id is None:
        raise ValueError("The process id of the current process must be defined.")
    if not 0 <= process_id < num_processes:
        raise ValueError(f"process_id must be from 0 to num_processes - 1, got {process_id} of "
                         f"{num_processes}")
    if num_processes != 1:
        raise NotImplementedError(
            f"maxjax runs in one process, and was told of {num_processes}: use several devices of "
            "one process, or num_processes=1")
    if _state["initialized"]:
        raise RuntimeError("distributed.initialize should only be called once.")
    _state["initialized"] = True


def is_initialized() -> bool:
    """Whether ``initialize`` has been called.

    >>> is_initialized()
    False
    """
    return _state["initialized"]


def shutdown() -> None:
    """Undoes ``initialize``; does nothing if it was not called.

    >>> shutdown()
    """
    _state["initialized"] = False


explain_missing_names(__name__)
