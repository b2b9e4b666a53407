"""``python -m tests.api.arrays_in_files LIBRARY write|read FOLDER``, on eight devices.

Writes arrays to files, or reads them with other shardings, shapes and dtypes, and prints them.
"""

from __future__ import annotations

import importlib
import os
import sys

import numpy as np

SPECS = ({}, {"ocdbt": True})


def run(name: str, action: str, folder: str) -> None:
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    j = importlib.import_module(name)
    module = importlib.import_module(f"{name}.experimental.array_serialization.serialization")
    jnp = j.numpy

    def sharding(axes, *spec):
        devices = np.array(j.devices()).reshape([size for _, size in axes])
        mesh = j.sharding.Mesh(devices, tuple(axis for axis, _ in axes))
        return j.sharding.NamedSharding(mesh, j.sharding.PartitionSpec(*spec))

    def specs(options, count):
        return [module.get_tensorstore_spec(f"{folder}/{len(options)}/{number}", **options)
                for number in range(count)]

    if action == "write":
        values = jnp.arange(48.).reshape(8, 6)
        arrays = [j.device_put(values, sharding([("a", 2), ("b", 4)], "b", "a")),
                  jnp.full((3,), 2.5, jnp.bfloat16), jnp.array(5, jnp.int8)]
        for options in SPECS:
            manager, committed = module.GlobalAsyncCheckpointManager(), []
            manager.serialize(arrays, specs(options, 3),
                              on_commit_callback=lambda done=committed: done.append(True))
            manager.wait_until_finished()
            assert committed == [True]
        return

    single = j.sharding.SingleDeviceSharding(j.devices()[1])
    shardings = [sharding([("x", 8)], "x", None), single, single]
    for options in SPECS:
        found = module.run_deserialization(shardings, specs(options, 3))
        assert [x.sharding for x in found] == shardings
        found += module.run_deserialization(
            shardings, specs(options, 3), [(16, 3), (5,), ()], [jnp.float16, jnp.int32, jnp.uint8])
        for value in found:
            print(value.dtype, value.shape, np.asarray(value, np.float64).ravel().tolist())


if __name__ == "__main__":
    run(*sys.argv[1:])
