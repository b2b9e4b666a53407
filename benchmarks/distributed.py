"""Two processes beside JAX with Gloo: ``python -m benchmarks.distributed``.

All ways run in turn, several times; what is printed are medians, and ratios to JAX's. Then the
memory of a process that holds its part of parameters sharded over all, by the number of processes.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
from pathlib import Path

ROUNDS = 3
WAYS = ("jax", "gloo", "mpi")

# A network's step of training, and milliseconds of what is run often.
NETWORK = r"""
import time
import jax

def median(run, count):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - begin)
    return sorted(times)[count // 2] * 1e3

def loss(layers, x, y):
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = layers[-1]
    return -(jax.nn.log_softmax(x @ w + b) * y).sum(-1).mean()

@jax.jit
def step(layers, x, y):
    gradients = jax.grad(loss)(layers, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, layers, gradients)
"""

SCRIPT = NETWORK + r"""
import json, resource, sys, time
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
jax.distributed.initialize(*([sys.argv[1], 2, int(sys.argv[2])] if len(sys.argv) > 1 else []))
mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
rows, found = NamedSharding(mesh, P("x")), {}

def age():
    # Seconds since the process began.
    ticks = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(ticks) / 100

def spread(value):
    return jax.make_array_from_callback(value.shape, rows, lambda index: value[index])

random = np.random.RandomState(0)
sizes = 784, 512, 256, 10
layers = [(random.randn(a, b).astype("f") * 0.05, np.zeros(b, "f"))
          for a, b in zip(sizes, sizes[1:])]
layers = jax.device_put(layers, NamedSharding(mesh, P()))
x = spread(random.randn(256, 784).astype("f"))
y = spread(np.eye(10, dtype="f")[np.arange(256) % 10])
jax.block_until_ready(step(layers, x, y))
found["start to first step, s"] = age()
for _ in range(200):      # native by then; all processes take as many steps
    jax.block_until_ready(step(layers, x, y))
found["MLP step, ms"] = median(lambda: step(layers, x, y), 60)
total = jax.jit(jax.shard_map(
    lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))
for name, size in (("all-reduce of 16 bytes, ms", 4), ("all-reduce of 4 MB, ms", 1 << 20)):
    value = spread(np.ones(2 * size, "f"))
    median(lambda: total(value), 20)
    found[name] = median(lambda: total(value), 100)
found["memory of a process, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
if jax.process_index() == 0:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
jax.distributed.shutdown()
"""


# A transformer block on two devices of each of two processes: batch by heads and hidden layer.
BLOCK = r"""
import json, os, sys, time
import jax
jax.distributed.initialize(*([sys.argv[1], 2, int(sys.argv[2])] if len(sys.argv) > 1 else []))
from tests.distributed.training_steps import attention_step
run, state = attention_step(heads=8, size=32, length=64, batch=8)
for _ in range(60):
    *state, loss = run(*state)
    jax.block_until_ready((state, loss))
times = []
for _ in range(40):
    begin = time.perf_counter()
    *state, loss = run(*state)
    jax.block_until_ready((state, loss))
    times.append(time.perf_counter() - begin)
if jax.process_index() == 0:
    sys.stdout.write(json.dumps({"transformer block 2 by 2, ms": sorted(times)[20] * 1e3}) + "\n")
    sys.stdout.flush()
jax.distributed.shutdown()
"""

# Parameters and momentum of 256 MB in all, sharded over all processes.
MEMORY = r"""
import json, resource, sys
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
count = int(sys.argv[3]) if len(sys.argv) > 3 else 2
if count > 1:
    jax.distributed.initialize(sys.argv[1], count, int(sys.argv[2]))
mesh = jax.make_mesh((count,), ("x",), axis_types=(AxisType.Auto,))
rows = NamedSharding(mesh, P("x"))
made = jax.jit(lambda: [jnp.ones((1024, 1024)) for _ in range(32)], out_shardings=[rows] * 32)
parameters, momentum = made(), made()
def step(parameters, momentum, x):
    def loss(parameters):
        y = x
        for w in parameters:
            y = jnp.tanh(y @ w * 1e-3)
        return (y ** 2).mean()
    gradients = jax.grad(loss)(parameters)
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
    return jax.tree.map(lambda p, m: p - m, parameters, momentum), momentum
train = jax.jit(step, donate_argnums=(0, 1), out_shardings=([rows] * 32, [rows] * 32))
x = jax.device_put(jnp.ones((8, 1024)), rows)
for _ in range(4):
    parameters, momentum = train(parameters, momentum, x)
jax.block_until_ready(parameters)
if jax.process_index() == 0:
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({"memory": found}) + "\n")
    sys.stdout.flush()
if count > 1:
    jax.distributed.shutdown()
"""


def once(way: str, script: str = SCRIPT, devices: int = 1, count: int = 2) -> dict[str, float]:
    env = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
           "JAX_PLATFORMS": "cpu"}
    python = [sys.executable, *([] if way == "jax" else ["-m", "maxjax"]), "-c", script]
    if way == "mpi":
        mpiexec = str(Path(sys.executable).parent / "mpiexec")
        commands = [[mpiexec, "-n", str(count), *python]]
    else:
        with socket.socket() as listener:
            listener.bind(("localhost", 0))
            address = f"localhost:{listener.getsockname()[1]}"
        commands = [[*python, address, str(number), *([] if count == 2 else [str(count)])]
                    for number in range(count)]
    processes = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
                 for command in commands]
    try:
        outputs = [process.communicate(timeout=120)[0] for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
    return json.loads(next(line for output in outputs for line in output.splitlines()
                           if line.startswith("{")))


def main() -> None:
    measured: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way in WAYS:
            measured[way].append({**once(way), **once(way, BLOCK, devices=2)})
    print(f"| | {' | '.join(WAYS)} |\n|{' --- |' * (len(WAYS) + 1)}")
    for name in measured["jax"][0]:
        middle = {way: statistics.median(found[name] for found in measured[way]) for way in WAYS}
        cells = [f"{middle['jax']:.3g}", *(f"{middle[way]:.3g} ({middle[way] / middle['jax']:.2f})"
                                           for way in WAYS[1:])]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n| processes | jax, MB | gloo, MB |\n| --- | --- | --- |")
    for count in (1, 2, 4):
        cells = [f"{once(way, MEMORY, count=count)['memory']:.0f}" for way in ("jax", "gloo")]
        print(f"| {count} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
