"""Programs as people export them, for either library, and the files that JAX writes of them.

``python -m tests.gen.exported_programs`` writes ``tests/recorded/jax_exports``, for which JAX needs
the package ``flatbuffers``.
"""

from __future__ import annotations

import collections
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "recorded" / "jax_exports"
DEVICES = 4
MESH = (2, 2), ("a", "b")
State = collections.namedtuple("State", "hidden step")


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def mlp(j: Any, params: Any, x: Any) -> Any:
    for layer in params[:-1]:
        x = j.nn.relu(x @ layer["w"] + layer["b"])
    return j.nn.log_softmax(x @ params[-1]["w"] + params[-1]["b"])


def cnn(j: Any, x: Any) -> Any:
    x = j.lax.conv_general_dilated(x, weights(4, 1, 3, 3), (1, 1), "SAME")
    x = j.lax.reduce_window(j.nn.gelu(x), -j.numpy.inf, j.lax.max, (1, 1, 2, 2), (1, 1, 2, 2),
                            "VALID")
    return j.numpy.mean(x, (2, 3)) @ weights(4, 5, seed=1)


def attention(j: Any, cache: Any, x: Any, place: Any) -> Any:
    """One step of a transformer, with a cache of keys and values."""
    key, value = x @ weights(8, 8), x @ weights(8, 8, seed=1)
    keys = j.lax.dynamic_update_slice(cache["keys"], key[None], (place, 0))
    values = j.lax.dynamic_update_slice(cache["values"], value[None], (place, 0))
    scores = keys @ (x @ weights(8, 8, seed=2)) / np.float32(8**0.5)
    seen = j.numpy.arange(len(keys)) <= place
    mixed = j.nn.softmax(j.numpy.where(seen, scores, -j.numpy.inf)) @ values
    mixed = x + mixed
    normal = (mixed - mixed.mean()) / j.numpy.sqrt(mixed.var() + 1e-5)
    return {"keys": keys, "values": values}, normal + j.nn.gelu(normal @ weights(8, 8, seed=3))


def rnn(j: Any, state: Any, xs: Any) -> Any:
    def step(hidden, x):
        hidden = j.numpy.tanh(hidden @ weights(6, 6) + x @ weights(3, 6, seed=1))
        return hidden, hidden.sum()

    hidden, sums = j.lax.scan(step, state.hidden, xs)
    return State(hidden, state.step + 1), sums


def newton(j: Any, x: Any) -> Any:
    return j.lax.while_loop(lambda y: j.numpy.any(abs(y * y - x) > 1e-3 * x),
                            lambda y: 0.5 * (y + x / y), x)


def joined(j: Any, x: Any, y: Any, unread: Any) -> Any:
    """Of three arguments, one of which only says a size; one result has no derivative."""
    z = j.numpy.concatenate([x, y.reshape(-1, 3)])
    return {"rows": j.numpy.tanh(z) * x.shape[0], "places": j.numpy.arange(y.shape[0])}


def on_mesh(j: Any, function: Callable[..., Any], ins: Any, outs: Any, **options: Any) -> Any:
    mesh = j.sharding.AbstractMesh(*MESH, axis_types=(j.sharding.AxisType.Auto,) * 2)
    return j.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, **options)


def exchanges(j: Any, x: Any, y: Any) -> Any:
    """Each collective, along one axis and along both."""
    lax, spec = j.lax, j.sharding.PartitionSpec

    def body(v, w):
        turned = lax.all_to_all(v, "b", 1, 0, tiled=True)
        joined = lax.all_gather(w, ("b", "a"), axis=0, tiled=True) + lax.all_gather(v[0, 0], "a")[0]
        parts = lax.psum_scatter(joined * 2, ("b", "a"), tiled=True)
        moved = lax.ppermute(v, "a", [(0, 1), (1, 0)]) - lax.ppermute(v, "b", [(0, 1)])
        place = lax.axis_index("b") * 10 + lax.axis_index(("b", "a"))
        extremes = lax.pmax(v, "a") + lax.pmin(v, "a")
        return turned, parts, moved * place, extremes, lax.psum(v.sum(), ("a", "b"))

    by_both = spec("a", "b")
    everything = on_mesh(j, body, (by_both, spec(("a", "b"))), (
        spec(("b", "a")), spec(("a", "b")), by_both, spec(None, "b"), spec()), check_vma=False)
    some = on_mesh(j, lambda v: lax.psum(j.numpy.tanh(v), "a"), spec("a"), spec(),
                   axis_names={"a"})
    return everything(x, y), some(x)


def rows(j: Any, x: Any) -> Any:
    spec = j.sharding.PartitionSpec("a")
    return on_mesh(j, lambda v: v - j.lax.pmean(v.sum(0) / v.shape[0], "a"), spec, spec)(x)


class Program(NamedTuple):
    """A function of a library and arguments; the sizes that are symbolic; its specs."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    smooth: bool = True
    sizes: str | tuple[str | None, ...] | None = None
    specs: tuple[tuple[Any, ...], ...] | None = None


LAYERS = [{"w": weights(3, 8), "b": weights(8)}, {"w": weights(8, 4, seed=1), "b": weights(4)}]
X = weights(5, 3, seed=7)
PROGRAMS: dict[str, Program] = {
    "mlp": Program(mlp, (LAYERS, X)),
    "cnn": Program(cnn, (weights(2, 1, 6, 6, seed=3),)),
    "transformer": Program(
        attention, ({"keys": weights(4, 8), "values": weights(4, 8)}, weights(8), np.int32(2))),
    "rnn": Program(rnn, (State(weights(6), np.int32(3)), X)),
    "sort": Program(lambda j, x: (j.numpy.sort(x, 0), j.numpy.argsort(x, 1), j.lax.top_k(x, 2)),
                    (X,), smooth=False),
    "fft": Program(lambda j, x: j.numpy.abs(j.numpy.fft.rfft(x, axis=0)) + 1, (X,)),
    "cholesky": Program(lambda j, x: j.numpy.linalg.cholesky(x.T @ x + np.eye(3, dtype=np.float32)),
                        (X,)),
    "while": Program(newton, (abs(X) + 1,), smooth=False),
    "symbolic": Program(lambda j, x: mlp(j, LAYERS, x).sum(0) / x.shape[0], (X,), sizes="b, 3"),
    "sizes": Program(joined, (X, weights(9, seed=2), weights(5)), sizes=("b, 3", "3*c", "b")),
    "sharded": Program(lambda j, x, y: (j.numpy.tanh(x @ y), y.sum()),
                       (weights(4, 6), weights(6, 2)), specs=(("a", None), (None, "b"))),
    "exchanges": Program(exchanges, (weights(4, 8), weights(8, seed=1)), smooth=False,
                         specs=(("a", "b"), (("a", "b"),))),
    "rows": Program(rows, (weights(6, 3),), sizes=("2*n, 3",), specs=(("a", None),)),
    "keys": Program(lambda j, key: (j.random.split(key), j.random.normal(key, (3,))), (),
                    smooth=False),
}
ON_MESH_PROGRAMS = {
    name: program for name, program in PROGRAMS.items() if program.specs is not None}


def key_of(j: Any) -> tuple[Any, ...]:
    return (j.random.key(3),)


def main() -> None:
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    import jax
    import jax.export

    jax.export.register_namedtuple_serialization(State, serialized_name="tests.State")
    # Files say no folder of where they were written.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*")
    FOLDER.mkdir(exist_ok=True)
    for name, program in PROGRAMS.items():
        args = program.args or key_of(jax)
        if program.sizes is not None:
            args = jax.export.symbolic_args_specs(args, program.sizes)
        if program.specs is not None:
            mesh = jax.make_mesh(*MESH, axis_types=(jax.sharding.AxisType.Auto,) * 2)
            args = tuple(jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=jax.NamedSharding(
                mesh, jax.P(*spec))) for x, spec in zip(args, program.specs, strict=True))
        exported = jax.export.export(jax.jit(lambda *xs, f=program.function: f(jax, *xs)))(*args)
        content = exported.serialize(vjp_order=1 if program.smooth else 0)
        (FOLDER / f"{name}.bin").write_bytes(content)


if __name__ == "__main__":
    main()
