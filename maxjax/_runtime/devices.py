"""Devices: one CPU, or as many simulated ones as ``jax_num_cpu_devices`` asks for; accelerators.

Accelerators are looked for when somebody asks for them by name, or ``jax_platforms`` does: only
then is MAX imported for it. They are no default unless ``jax_platforms`` names them first.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import re
from collections.abc import Callable
from typing import Any

from maxjax._base import config
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.processes import job
from maxjax._base.shardings import MEMORY_KINDS, SingleDeviceSharding, unknown_memory
from maxjax._max.device_memory import DeviceMemory, memories

logger = logging.getLogger("maxjax")

num_cpu_devices = config.config.define(
    "jax_num_cpu_devices", -1, "How many CPU devices to simulate; -1: as XLA_FLAGS says, or one.")

# Names that stand for several platforms, as in JAX.
_ALIASES = {"gpu": ("cuda", "rocm")}
_GPUS = ("cuda", "rocm")
_KNOWN = ("cpu",)


@dataclasses.dataclass(frozen=True)
class Client:
    """All devices of a platform.

    >>> jax.extend.backend.get_backend().platform
    'cpu'
    """

    platform: str

    @property
    def platform_version(self) -> str:
        return self.platform

    @property
    def runtime_type(self) -> str:
        return "max"

    def devices(self) -> list[Device]:
        return devices(self.platform)

    def local_devices(self) -> list[Device]:
        return local_devices(self.platform)

    def device_count(self) -> int:
        return len(self.devices())

    def local_device_count(self) -> int:
        return len(self.local_devices())

    def process_index(self) -> int:
        return job.index


@dataclasses.dataclass(frozen=True, repr=False, slots=True)
class Memory:
    """A memory of a device. On the CPU all of a device's are the same."""

    _device: Device
    _number: int

    @property
    def kind(self) -> str:
        return MEMORY_KINDS[self._number]

    @property
    def platform(self) -> str:
        return self._device.platform

    @property
    def process_index(self) -> int:
        return self._device.process_index

    def addressable_by_devices(self) -> list[Device]:
        return [self._device]

    @property
    def _id(self) -> int:
        return self._device.id * len(MEMORY_KINDS) + self._number

    def __repr__(self) -> str:
        kind = f"{self.platform}_device" if self.kind == "device" else self.kind
        return f"{kind.upper()}_{self._id}"

    def __str__(self) -> str:
        name = {"device": f"{self.platform.capitalize()}DeviceMemory",
                "pinned_host": "PinnedHostMemory",
                "unpinned_host": "UnpinnedHostMemorySpace"}[self.kind]
        return (f"{name}(id={self._id}, process_index={self.process_index}, "
                f"client={self.platform})")


# The number of a process's first device, by process, as in JAX.
_IDS_OF_A_PROCESS = 2048


class Device:
    """One device.

    Attributes:
      accelerator: its memory, which is not the host's; None for a CPU.
    """

    __slots__ = ("__weakref__", "accelerator", "id", "platform", "process_index")

    def __init__(self, platform: str, index: int, process_index: int = 0,
                 accelerator: DeviceMemory | None = None):
        self.platform = platform
        self.process_index = process_index
        self.id = process_index * _IDS_OF_A_PROCESS + index
        self.accelerator = accelerator

    @property
    def device_kind(self) -> str:
        return self.platform if self.accelerator is None else self.accelerator.kind

    @property
    def local_hardware_id(self) -> int | None:
        return self.id % _IDS_OF_A_PROCESS if self.process_index == job.index else None

    @property
    def client(self) -> Client:
        return Client(self.platform)

    @property
    def host_id(self) -> int:
        return self.process_index

    task_id = host_id

    def memory_stats(self) -> dict[str, int] | None:
        """What arrays hold of an accelerator's memory, in bytes; None for a CPU."""
        return None if self.accelerator is None else self.accelerator.stats()

    @property
    def _name(self) -> str:
        """The platform's own name: of an accelerator that of its maker's interface."""
        return self.platform if self.accelerator is None else self.accelerator.api

    def addressable_memories(self) -> list[Memory]:
        """The memories in which arrays of the device can be, its own first."""
        return [Memory(self, number) for number in range(len(MEMORY_KINDS))]

    def default_memory(self) -> Memory:
        """The memory of arrays that were put nowhere else."""
        return Memory(self, 0)

    def memory(self, kind: str) -> Memory:
        """The memory of a kind: "device", "pinned_host" or "unpinned_host".

        Raises:
          JaxRuntimeError: there is no such kind.
        """
        if kind not in MEMORY_KINDS:
            raise JaxRuntimeError(
                f"INVALID_ARGUMENT: {unknown_memory(kind, self.device_kind)}")
        return Memory(self, MEMORY_KINDS.index(kind))

    def __reduce__(self):
        return _device, (self.platform, self.id)

    def __repr__(self) -> str:
        return f"{self._name.capitalize()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self._name}:{self.id}"


_devices: list[Device] = []
_accelerators: list[Device] = []


def start() -> list[Device]:
    """All devices; makes them where nobody has asked for them yet.

    Raises:
      RuntimeError: ``jax_platforms`` names a platform that is not there.
    """
    if not _devices:
        _check_platforms(config.platforms.value or "cpu")
        counts = job.device_counts or (local_device_count(),)
        _devices.extend([Device("cpu", index, process) for process, count in enumerate(counts)
                         for index in range(count)])
        config.set_accelerated(_first_platform(config.platforms.value) == "gpu")
    return _devices


def accelerators() -> list[Device]:
    """All accelerators; looks for them where nobody has asked yet. A process of a job has none."""
    if not _accelerators and not job.device_counts:
        _accelerators.extend([
            Device("gpu", memory.number, accelerator=memory) for memory in memories()])
        config.status.accelerators = bool(_accelerators)
    return _accelerators


def is_started() -> bool:
    """Whether somebody has asked for devices."""
    return bool(_devices)


def forget() -> None:
    """Devices are made anew: the job has begun or ended."""
    _devices.clear()
    _accelerators.clear()
    config.status.accelerators = False


def local_device_count() -> int:
    """How many devices this process is to have.

    Raises:
      RuntimeError: none.
    """
    count = num_cpu_devices.value
    if count is None or count < 0:
        match = re.search(r"--xla_force_host_platform_device_count=(\d+)",
                          os.environ.get("XLA_FLAGS", ""))
        count = int(match.group(1)) if match else 1
    if count < 1:
        raise RuntimeError(
            f"Unable to initialize backend 'cpu': jax_num_cpu_devices is {count}, and needs to "
            "be 1 or more, or -1")
    return count


def _check_platforms(wanted: str) -> None:
    hint = "(set JAX_PLATFORMS='' to automatically choose an available backend)"
    platforms = _platforms(wanted)
    for platform in platforms:
        # JAX, too, skips CUDA on a machine without such a device.
        if platform not in (*_KNOWN, "cuda"):
            if platform in _GPUS and _first_platform(platform) is not None:
                continue
            raise RuntimeError(
                f"Unable to initialize backend '{platform}': Backend '{platform}' is not in the "
                f"list of known backends: {list(_KNOWN)}. {hint}")
    found = _first_platform(wanted)
    if found is None:
        raise RuntimeError(f"Unable to initialize backend '{wanted}': there is no accelerator that "
                           f"MAX finds, and maxjax computes on the CPU {hint}")
    if found == "cpu" and platforms[0] != "cpu":
        logger.warning("jax_platforms=%r: there is no accelerator that MAX finds, and maxjax "
                       "computes on the CPU", wanted)


def _platforms(wanted: str) -> list[str]:
    return [platform for name in wanted.split(",") for platform in _ALIASES.get(name, (name,))]


def _first_platform(wanted: str | None) -> str | None:
    """The platform of the first of some names that there are devices of; None: there are none."""
    for name in _platforms(wanted or "cpu"):
        if name in _KNOWN:
            return name
        if any(device._name == name for device in accelerators()):
            return "gpu"
    return None


def devices(backend: str | Client | None = None) -> list[Device]:
    """All devices, of one platform if named.

    Args:
      backend: the platform's name, such as "cpu" or "gpu"; None: the default one.

    Returns:
      A list of ``Device``; with several processes those of all.

    Raises:
      RuntimeError: there is no such platform.

    See also: ``jax.local_devices``, ``jax.device_count``, ``jax.default_backend``,
    ``jax.device_put``, ``jax.make_mesh``.
    """
    wanted = backend.platform if isinstance(backend, Client) else backend
    wanted = wanted or _named_platform()
    found = start()
    if not wanted:
        return list(accelerators() if config.status.accelerated else found)
    if wanted in _KNOWN:
        return list(found)
    if wanted in _GPUS or wanted in _ALIASES:
        present = [device for device in accelerators()
                   if wanted in (device.platform, device._name)]
        if present:
            return present
    known = list(dict.fromkeys([*_KNOWN, *[device._name for device in _accelerators]]))
    if wanted in _ALIASES:
        raise RuntimeError(
            f"Unknown backend: '{wanted}' requested, but no platforms that are instances of "
            f"{wanted} are present. Platforms present are: {','.join(known)}")
    raise RuntimeError(f"Unknown backend {wanted}. Available backends are {known}")


def local_devices(backend: str | Client | None = None) -> list[Device]:
    """This process's devices.

    Raises:
      RuntimeError: there is no such platform.
    """
    return [device for device in devices(backend) if device.process_index == job.index]


def _device(platform: str, number: int) -> Device:
    return next(device for device in devices(platform) if device.id == number)


def default_device() -> Device:
    """The device that computes if nothing else is asked for.

    Raises:
      RuntimeError: the platform that is asked for is not there.
    """
    default = config.default_device.value
    if isinstance(default, Device):
        return default
    if default is None and _devices and not _named_platform() and not config.status.accelerated:
        return first_device()
    return local_devices(default)[0]


def first_device() -> Device:
    """The device of arrays that were put nowhere: a CPU, whose memory is the host's."""
    found = _devices or start()
    return found[sum(job.device_counts[:job.index])]


def default_device_override() -> Device | None:
    """The device of new arrays, if it is not the first CPU: ``jax_default_device``, or an
    accelerator that is the default."""
    default = default_device()
    return default if default is not first_device() else None


def memory_of(placement: object) -> DeviceMemory | None:
    """The accelerator's memory in which values of a placement are; None: the host's, as for
    several devices and for an accelerator's ``pinned_host``."""
    if isinstance(placement, SingleDeviceSharding):
        placement = placement._device if placement.memory_kind == "device" else None
    return placement.accelerator if isinstance(placement, Device) else None


def are_known() -> bool:
    """Whether something asked for the devices, after which their number is fixed."""
    return bool(_devices)


def allow_execution(name: str) -> None:
    """Checks that something may run.

    Args:
      name: the primitive's, or the function's.

    Raises:
      RuntimeError: a platform that is asked for is not there, or ``jax_no_execution`` is set.
    """
    default_device()
    if config.no_execution.value:
        raise RuntimeError(f"JAX tried to execute function jit({name}), but the no_execution "
                           "config option is set")
    if not config.status.started:
        config.set_started()


def _named_platform() -> str:
    return config.xla_backend.value or config.platform_name.value


# --- what the options take ------------------------------------------------------------------------

def _check_default_device(value: object) -> None:
    if not (value is None or isinstance(value, Device) or value in ("cpu", "gpu", "tpu")):
        raise ValueError(
            "jax.default_device must be passed either a Device object (e.g. "
            "`jax.devices('cpu')[0]`) or a platform name string like 'cpu' or 'gpu', got: "
            f"{value!r}")


def _refuse_once_started(name: str) -> Callable[[Any], None]:
    def check(value: object) -> None:
        if _devices and value is not None and value != config.config.option(name).value:
            raise RuntimeError(
                f"{name} config should be updated before backends are initialized i.e. before any "
                "JAX operation is executed. You should initialize this config immediately after "
                "`import jax`.")

    return check


config.default_device.add_check(_check_default_device)
num_cpu_devices.add_check(_refuse_once_started(num_cpu_devices.name))
for _name, _minutes in (("jax_cpu_get_local_topology_timeout_minutes", 2),
                        ("jax_cpu_get_global_topology_timeout_minutes", 5)):
    config.config.define(
        _name, _minutes, "Accepted: there is one process.", without_effect="there is one process"
    ).add_check(_refuse_once_started(_name))
