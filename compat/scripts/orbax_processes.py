# libraries: orbax-checkpoint xoscar
"""Orbax: two processes train and save what they hold; four go on from it, and one."""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

RUN = r"""
import logging, sys
import jax
logging.disable(logging.WARNING)
address, count, number, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if count > 1:
    jax.distributed.initialize(address, count, number)
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((jax.device_count(),), ("x",), axis_types=(AxisType.Auto,))
rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
start = np.sin(np.arange(64, dtype="float32")).reshape(16, 4)
kinds = {"w": jax.ShapeDtypeStruct((16, 4), jnp.float32, sharding=rows),
         "bias": jax.ShapeDtypeStruct((4,), jnp.bfloat16, sharding=whole)}
state = {"w": jax.make_array_from_callback(start.shape, rows, lambda index: start[index]),
         "bias": jax.device_put(jnp.ones(4, jnp.bfloat16), whole)}

@jax.jit
def train(state):
    loss, gradients = jax.value_and_grad(
        lambda state: ((state["w"] @ state["w"].T).mean() - 1) ** 2
        + (state["bias"].astype(jnp.float32) ** 2).sum())(state)
    return jax.tree.map(lambda x, g: x - 0.1 * g.astype(x.dtype), state, gradients), loss

options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=1)
with ocp.CheckpointManager(folder, options=options) as manager:
    latest = manager.latest_step()
    if latest is not None:
        state = manager.restore(latest, args=ocp.args.StandardRestore(kinds))
    first = 0 if latest is None else latest + 1
    for step in range(first, first + 3):
        state, loss = train(state)
        manager.save(step, args=ocp.args.StandardSave(state))
    manager.wait_until_finished()
    kept = sorted(manager.all_steps())
if number == 0:
    print("from", latest, "kept", kept, "loss", float(loss), flush=True)
if count > 1:
    jax.distributed.shutdown()
"""

PYTHON = [sys.executable, *(["-m", "maxjax"] if "maxjax" in sys.modules else [])]


def run(count, folder):
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        address = f"localhost:{listener.getsockname()[1]}"
    env = {**os.environ, "JAX_PLATFORMS": "cpu",
           "XLA_FLAGS": f"--xla_force_host_platform_device_count={4 // count}"}
    processes = [subprocess.Popen([*PYTHON, "-c", RUN, address, str(count), str(number), folder],
                                  env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True) for number in range(count)]
    results = [process.communicate(timeout=300) for process in processes]
    print(count, "processes:", [process.returncode for process in processes],
          [line for output, _ in results for line in output.splitlines()
           if line.startswith("from")])
    for process, (_, errors) in zip(processes, results):
        if process.returncode:
            print(errors)


with tempfile.TemporaryDirectory() as folder:
    for count in (2, 4, 1):
        run(count, str(pathlib.Path(folder).absolute() / "runs"))
