"""Devices: one CPU, or as many simulated ones as ``jax_num_cpu_devices`` asks for."""

from __future__ import annotations

import dataclasses
import os
import re

from maxjax._base import config

num_cpu_devices = config.config.define(
    "jax_num_cpu_devices", -1, "How many CPU devices to simulate; -1: as XLA_FLAGS says, or one.")


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

    def devices(self) -> list[Device]:
        return devices(self.platform)

    local_devices = devices

    def device_count(self) -> int:
        return len(self.devices())

    local_device_count = device_count

    def process_index(self) -> int:
        return 0


class Device:
    """One device."""

    __slots__ = ("__weakref__", "id", "platform")

    def __init__(self, platform: str, index: int):
        self.platform = platform
        self.id = index

    @property
    def device_kind(self) -> str:
        return self.platform

    @property
    def process_index(self) -> int:
        return 0

    @property
    def local_hardware_id(self) -> int:
        return self.id

    @property
    def client(self) -> Client:
        return Client(self.platform)

    def memory_stats(self) -> None:
        return None

    def __reduce__(self):
        return _device, (self.platform, self.id)

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"


_devices: list[Device] = []


def devices(backend: str | None = None) -> list[Device]:
    """All devices, of one platform if named.

    Raises:
      RuntimeError: there is no such platform.
    """
    if backend not in (None, "cpu"):
        raise RuntimeError(
            f"Unknown backend: '{backend}' requested, but no platforms that are instances of "
            f"{backend} are present. Platforms present are: cpu")
    if not _devices:
        count = num_cpu_devices.value
        if count < 1:
            match = re.search(r"--xla_force_host_platform_device_count=(\d+)",
                              os.environ.get("XLA_FLAGS", ""))
            count = int(match.group(1)) if match else 1
        _devices.extend(Device("cpu", index) for index in range(count))
    return list(_devices)


def _device(platform: str, index: int) -> Device:
    return devices(platform)[index]


def default_device() -> Device:
    chosen = config.default_device.value
    if isinstance(chosen, Device):
        return chosen
    if not _devices:
        devices()
    return _devices[0]
