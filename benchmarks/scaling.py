"""A transformer's step on many processes, on paper: ``python -m benchmarks.scaling``.

Measures what an all-reduce between two processes costs, as the latency and the bandwidth of the
project's cost model, and what a core computes; then prints, first, the model's step beside the
measured one for the network of ``benchmarks.distributed``, then the model's steps for 8 to 1,024
processes. Each process has its own tokens, and the same links to its neighbours as here.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys

from benchmarks.distributed import NETWORK, once
from maxjax._sharding.cost_model import CostModel

_WORDS, _WIDTH, _LAYERS, _TOKENS = 50_304, 768, 12, 8 * 1024
_MLP_BYTES = 4 * sum(a * b + b for a, b in ((784, 512), (512, 256), (256, 10)))

# The network's step on the half of the batch that a process has, and products of matrices.
_ALONE = NETWORK + r"""
import json, sys
import jax.numpy as jnp
sizes = 784, 512, 256, 10
layers = [(jnp.full((a, b), 0.01), jnp.zeros(b)) for a, b in zip(sizes, sizes[1:])]
x, y = jnp.ones((128, 784)), jnp.eye(10)[jnp.arange(128) % 10]
median(lambda: step(layers, x, y), 100)
a = jnp.ones((1024, 1024))
product = jax.jit(jnp.matmul)
sys.stdout.write(json.dumps({
    "step": median(lambda: step(layers, x, y), 60) / 1e3,
    "flops": 2 * 1024 ** 3 / median(lambda: product(a, a), 20) * 1e3}) + "\n")
"""


def without_exchange() -> dict[str, float]:
    """What each of two processes computes that run at the same time."""
    processes = [subprocess.Popen(
        [sys.executable, "-m", "maxjax", "-c", _ALONE], text=True, stdout=subprocess.PIPE,
        env={**os.environ, "JAX_PLATFORMS": "cpu"}) for _ in range(2)]
    found = [json.loads(process.communicate(timeout=120)[0].splitlines()[-1])
             for process in processes]
    return {name: (found[0][name] + found[1][name]) / 2 for name in found[0]}


def seconds(model: CostModel, kind: str, nbytes: float, processes: int) -> float:
    """A collective of the cost model, whose latency counts for each doubling of the processes.

    Args:
      kind: of ``maxjax._sharding.cost_model.KINDS``.
      nbytes: of the operand of a process.
    """
    starts = math.ceil(math.log2(processes)) - 1
    return model.collective(kind, nbytes, processes) + starts * model.latency


def transformer(model: CostModel, processes: int) -> dict[str, float]:
    """The seconds of a step: computing, and communication by data parallelism and by FSDP."""
    layer = 12 * _WIDTH * _WIDTH
    total = _LAYERS * layer + _WORDS * _WIDTH
    attended = 12 * _LAYERS * 1024 * _WIDTH
    parts = [layer] * _LAYERS + [_WORDS * _WIDTH]
    return {
        "computing": (6 * total + attended) * _TOKENS / model.flops,
        "data": seconds(model, "psum", 4 * total, processes),
        # Parameters come for the forward and for the backward pass, gradients go once.
        "FSDP": sum(2 * seconds(model, "all_gather", 4 * part / processes, processes)
                    + seconds(model, "reduce_scatter", 4 * part, processes) for part in parts)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=("gloo", "mpi"), default="gloo")
    way = parser.parse_args().way
    here = without_exchange()
    found = once(way)
    small, large = (found[f"all-reduce of {size}, ms"] / 1e3 for size in ("16 bytes", "4 MB"))
    model = CostModel(bandwidth=(4 << 20) / max(large - small, 1e-6), latency=small,
                      flops=here["flops"])
    print(f"{way}: latency {small * 1e3:.2f} ms, {model.bandwidth / 1e9:.2f} GB/s, "
          f"{model.flops / 1e9:.0f} GFLOP/s in each of two processes\n")
    predicted = here["step"] + model.collective("psum", _MLP_BYTES, 2)
    print(f"network's step in two processes: {predicted * 1e3:.1f} ms by the model "
          f"({here['step'] * 1e3:.1f} ms of them computing), {found['MLP step, ms']:.1f} ms "
          "measured\n")
    print("| processes | computing, s | data parallel, s | efficiency | FSDP, s | efficiency |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for power in range(3, 11):
        cost = transformer(model, 1 << power)
        cells = [f"{cost['computing']:.1f}"]
        for kind in ("data", "FSDP"):
            whole = cost["computing"] + cost[kind]
            cells += [f"{whole:.1f}", f"{cost['computing'] / whole:.0%}"]
        print(f"| {1 << power} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
