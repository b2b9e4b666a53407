"""jax.experimental.compute_on: where operations run, which is always the host."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from maxjax._base.missing import explain_missing_names


@contextlib.contextmanager
def compute_on(compute_type: str) -> Iterator[None]:
    """A context manager and decorator without effect: everything runs on the host.

    Args:
      compute_type: "device_host", "device", "tpu_sparsecore", or "gpu_stream:" and a number.

    Raises:
      ValueError: it is none of these.

    >>> with compute_on("device_host"):
    ...     x = jnp.ones(3) + 1
    """
    if not isinstance(compute_type, str):
        raise TypeError(f"`compute_on`'s compute_type argument must be a string, got "
                        f"{type(compute_type)}")
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not (
            compute_type.startswith("gpu_stream:")):
        raise ValueError(f"Invalid compute type {compute_type}. Current supported values are "
                         "`device_host`, `device`, `tpu_sparsecore` and `gpu_stream:#`")
    yield


explain_missing_names(__name__)
