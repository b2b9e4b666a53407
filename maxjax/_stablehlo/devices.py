"""How arguments and results lie over several devices, in Shardy's words."""

from __future__ import annotations

import json

from maxjax._base.specs import PartitionSpec, entry_axes
from maxjax._ir.runtime import Devices


def mesh_line(devices: Devices) -> str:
    """The mesh, as an operation of a module."""
    axes = ", ".join([f"{_quoted(name)}={size}" for name, size in devices.axes])
    return f'  "sdy.mesh"() <{{sym_name = "mesh", mesh = #sdy.mesh<[{axes}]>}}> : () -> ()'


def sharding(spec: PartitionSpec | None, rank: int) -> list[str]:
    """The attribute of an argument or result, if anything is said of it."""
    if spec is None:
        return []
    parts = [", ".join(map(_quoted, entry_axes(entry))) for entry in spec.partitions]
    parts += [""] * (rank - len(parts))
    listed = ", ".join([f"{{{part}}}" for part in parts])
    return [f"sdy.sharding = #sdy.sharding<@mesh, [{listed}]>"]


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)
