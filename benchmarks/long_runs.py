"""What hours do to a process: ``python -m benchmarks.long_runs [NAME ...] [--scale S]``.

Each program runs in a process of its own, on maxjax and, where JAX is installed, on JAX, and tells
after each tenth of its work how much memory it holds and how long that tenth took:

- ``training``: 100,000 steps of Adam on a small network, the loss printed now and then;
- ``server``: eight threads that call twenty jitted functions with arrays of changing shapes;
- ``notebook``: a thousand times, cells that define functions anew, jit, differentiate and run them;
- ``eager``: operations one by one, with results kept for a while.

The first tenths fill caches. From then on memory and times are to be flat: the last tenth is set
against the third one. Also told: what the folder of compiled kernels holds before and after.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_TENTHS = 10

# Each defines `tenth(scale, number)`.
_COMMON = """
import functools, json, os, sys, threading, time
import numpy as np
import jax, jax.numpy as jnp
from jax import lax
random = np.random.default_rng(0)
"""

PROGRAMS = {
    "training": """
def loss(parameters, x, y):
    for w, b in parameters[:-1]:
        x = jnp.tanh(x @ w + b)
    return jnp.mean((x @ parameters[-1][0] + parameters[-1][1] - y) ** 2)

@jax.jit
def step(state, x, y):
    parameters, mean, square, count = state
    value, gradient = jax.value_and_grad(loss)(parameters, x, y)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradient)
    parameters = jax.tree.map(lambda p, m, s: p - 1e-3 * m / (jnp.sqrt(s) + 1e-8),
                              parameters, mean, square)
    return (parameters, mean, square, count + 1), value

parameters = [(jnp.asarray(random.normal(size=(a, b)) / a, "float32"), jnp.zeros(b))
              for a, b in ((8, 32), (32, 32), (32, 1))]
zeros = jax.tree.map(jnp.zeros_like, parameters)
state, losses = (parameters, zeros, zeros, 0), []

def tenth(scale, number):
    global state
    for i in range(int(10_000 * scale)):
        x = random.normal(size=(32, 8)).astype("float32")
        state, value = step(state, x, x.sum(1, keepdims=True))
        if i % 100 == 0:
            losses.append(float(value))
""",
    "server": """
def serve(power, x, y):
    z = lax.fori_loop(0, 3, lambda i, z: jnp.sin(z) * power + x, y)
    return jnp.where(z > 0, z, power * z).sum(0), z[::-1]

functions = [jax.jit(functools.partial(serve, power)) for power in range(20)]

def client(number, calls, errors):
    random = np.random.default_rng(number)
    try:
        for _ in range(calls):
            shape = (int(random.integers(1, 40)), int(random.integers(1, 6)))
            x = random.normal(size=shape).astype("float32")
            total, _ = functions[random.integers(len(functions))](x, x)
            np.asarray(total)
    except Exception as error:
        errors.append(error)

def tenth(scale, number):
    errors = []
    threads = [threading.Thread(target=client, args=(8 * number + k, int(500 * scale), errors))
               for k in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    if errors: raise errors[0]
""",
    "notebook": """
CELL = '''
class Model:
    def __init__(self, w): self.w = w
    def __call__(self, x): return jnp.tanh(x @ self.w)
def loss(w, x): return jnp.sum(Model(w)(x) ** 2) * {number}
step = jax.jit(jax.value_and_grad(loss))
x = jnp.ones((64, 64)); w = jnp.full((64, 64), 0.01)
for _ in range(5): value, gradient = step(w, x); w = w - 0.01 * gradient
rows = jax.vmap(lambda row: jnp.sort(row)[: 8])(w)
answer = float(value) + float(rows.sum())
'''
cells = {"jax": jax, "jnp": jnp}

def tenth(scale, number):
    for i in range(int(100 * scale)):
        exec(compile(CELL.format(number=i + 1), "<cell>", "exec"), cells)
""",
    "eager": """
kept = []

def tenth(scale, number):
    for i in range(int(3_000 * scale)):
        x = jnp.asarray(random.normal(size=(int(random.integers(1, 200)), 16)))
        y = jnp.concatenate([x * 2 - i, x[::-1]]).T @ jnp.ones((2 * x.shape[0], 3))
        kept.append(jnp.cumsum(y, 0)[-1] / (1 + jnp.abs(y).max()))
        if len(kept) > 500:
            assert np.isfinite(np.asarray(kept.pop(0))).all()
""",
}

_REPORT = """
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

for number in range(%d):
    start = time.perf_counter()
    tenth(float(sys.argv[1]), number)
    print(json.dumps([resident(), time.perf_counter() - start]), flush=True)
"""


def run(name: str, scale: float, on_jax: bool, cache: str) -> list[tuple[int, float]]:
    """Bytes in memory at the end of each tenth, and the seconds that it took."""
    text = _COMMON + PROGRAMS[name] + _REPORT % _TENTHS
    module = () if on_jax else ("-m", "maxjax")
    done = subprocess.run(
        [sys.executable, *module, "-c", text, str(scale)], text=True, stdout=subprocess.PIPE,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "MAXJAX_CACHE_DIR": cache}, check=True)
    return [(size, seconds) for size, seconds in map(json.loads, done.stdout.splitlines())]


def told(name: str, tenths: list[tuple[int, float]]) -> str:
    """One line: what the last tenth needs beside the third."""
    (size, seconds), (last_size, last_seconds) = tenths[2], tenths[-1]
    return (f"{name:20} {size >> 20:6} to {last_size >> 20:6} MiB ({last_size / size:.3f}), "
            f"a tenth {seconds:7.2f} to {last_seconds:7.2f} s ({last_seconds / seconds:.2f}); "
            f"in all {sum(took for _, took in tenths):.0f} s")


def kept(cache: str) -> str:
    """What a folder of kernels holds."""
    files = [path for path in Path(cache).rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return f"cache: {len(files)} files, {size / 2**20:.1f} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=", ".join(PROGRAMS))
    parser.add_argument("--scale", type=float, default=1.0, help="of the work")
    parser.add_argument("--alone", action="store_true", help="without JAX")
    parser.add_argument("--cache", help="the folder of kernels; by default a new one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cache = options.cache or folder
        subprocess.run([sys.executable, "-m", "maxjax", "--prepare"], check=True,
                       env={**os.environ, "MAXJAX_CACHE_DIR": cache})
        print(kept(cache))
        beside = not options.alone and importlib.util.find_spec("jax") is not None
        for name in options.names or PROGRAMS:
            for on_jax in (False, True) if beside else (False,):
                tenths = run(name, options.scale, on_jax, cache)
                print(told(f"{name}, {'JAX' if on_jax else 'maxjax'}", tenths), flush=True)
        print(kept(cache))


if __name__ == "__main__":
    main()
