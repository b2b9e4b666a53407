"""Typical uses of ``shard_map``, at small sizes; see ``shard_map_programs.py``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def numbers(seed: int, *shape: int) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=shape) * 0.3).astype(np.float32)


def models(j: Any) -> dict[str, Callable[[], Any]]:
    jax, jnp, lax, P = j.jax, j.jnp, j.lax, j.P
    tree = jax.tree

    def data_parallel() -> Any:
        def step(params: Any, x: Any, y: Any) -> Any:
            def loss(p: Any) -> Any:
                hidden = jnp.tanh(x @ p["first"] + p["bias"])
                return lax.pmean(jnp.mean((hidden @ p["second"] - y) ** 2), "x")

            value, slope = jax.value_and_grad(loss)(params)
            return tree.map(lambda p, g: p - 0.1 * g, params, slope), value

        mapped = jax.jit(j.map(step, (P(), P("x"), P("x")), (P(), P()), j.line))
        params = {"first": numbers(0, 4, 8), "bias": numbers(1, 8), "second": numbers(2, 8, 2)}
        values = []
        for _ in range(3):
            params, value = mapped(params, numbers(3, 16, 4), numbers(4, 16, 2))
            values.append(value)
        return params, values

    def unchecked_data_parallel() -> Any:
        def step(w: Any, x: Any, y: Any) -> Any:
            value, slope = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
            return w - 0.1 * lax.pmean(slope, "x"), lax.pmean(value, "x")

        mapped = jax.jit(j.map(step, (P(), P("x"), P("x")), (P(), P()), check_vma=False))
        return mapped(numbers(0, 4, 2), numbers(1, 8, 4), numbers(2, 8, 2))

    def tensor_parallel() -> Any:
        def layers(first: Any, second: Any, x: Any) -> Any:
            return lax.psum(jax.nn.relu(x @ first) @ second, "y")

        mapped = j.map(layers, (P(None, "y"), P("y"), P("x")), P("x"))

        def loss(first: Any, second: Any, x: Any) -> Any:
            return jnp.sum(mapped(first, second, x) ** 2)

        return jax.jit(jax.value_and_grad(loss, argnums=(0, 1, 2)))(
            numbers(0, 6, 8), numbers(1, 8, 6), numbers(2, 8, 6))

    def ring_attention() -> Any:
        def attend(q: Any, k: Any, v: Any) -> Any:
            size = lax.axis_size("x")
            ring = [(i, (i + 1) % size) for i in range(size)]

            def body(carry: Any, _: Any) -> Any:
                k, v, top, total, out = carry
                scores = q @ k.T / 2
                new = jnp.maximum(top, scores.max(-1))
                weights = jnp.exp(scores - new[:, None])
                scale = jnp.exp(top - new)
                total = total * scale + weights.sum(-1)
                out = out * scale[:, None] + weights @ v
                return (lax.ppermute(k, "x", ring), lax.ppermute(v, "x", ring), new, total,
                        out), None

            length = q.shape[0]
            start = (k, v, *(lax.pcast(jnp.asarray(t), "x", to="varying") for t in (
                np.full(length, -1e9, np.float32), np.zeros(length, np.float32),
                np.zeros(q.shape, np.float32))))
            _, _, _, total, out = lax.scan(body, start, None, length=size)[0]
            return out / total[:, None]

        mapped = j.map(attend, P("x"), P("x"), j.line)
        q, k, v = (numbers(seed, 16, 4) for seed in range(3))
        return mapped(q, k, v), jax.grad(
            lambda q, k, v: jnp.sum(mapped(q, k, v) ** 2), argnums=(0, 1, 2))(q, k, v)

    def mixture_of_experts() -> Any:
        def layer(tokens: Any, gates: Any, experts: Any) -> Any:
            # Two slots for each expert on each shard.
            choice = jnp.argmax(tokens @ gates, -1)
            one_hot = jax.nn.one_hot(choice, 4)
            place = (jnp.cumsum(one_hot, 0) - 1) * one_hot
            chosen = one_hot[:, :, None] * jax.nn.one_hot(place.sum(-1).astype(int), 2)[:, None]
            sent = jnp.einsum("tec,td->ecd", chosen, tokens)
            there = lax.all_to_all(sent, "x", 0, 1, tiled=True)
            done = jnp.tanh(jnp.einsum("ecd,edf->ecf", there, experts))
            back = lax.all_to_all(done, "x", 1, 0, tiled=True)
            return jnp.einsum("tec,ecd->td", chosen, back)

        mapped = j.map(layer, (P("x"), P(), P("x")), P("x"))
        args = numbers(0, 16, 6), numbers(1, 6, 4), numbers(2, 4, 6, 6)
        return mapped(*args), jax.grad(
            lambda *a: jnp.sum(mapped(*a) ** 2), argnums=(0, 2))(*args)

    def fully_sharded() -> Any:
        def step(w: Any, x: Any, y: Any) -> Any:
            def loss(w: Any) -> Any:
                whole = lax.all_gather(w, "x", tiled=True)
                return jnp.sum((jnp.tanh(x @ whole) - y) ** 2)

            value, slope = jax.value_and_grad(loss)(w)
            return w - 0.05 * slope, lax.psum(value, "x")

        mapped = jax.jit(j.map(step, (P("x"), P("x"), P("x")), (P("x"), P()), j.line))
        w, values = numbers(0, 8, 2), []
        for _ in range(3):
            w, value = mapped(w, numbers(1, 16, 8), numbers(2, 16, 2))
            values.append(value)
        return w, values

    def scattered_gradients() -> Any:
        def step(w: Any, x: Any) -> Any:
            whole = lax.all_gather(w, "x", tiled=True)
            slope = jax.grad(lambda u: jnp.sum(jnp.sin(x @ u)))(whole)
            return w - 0.1 * lax.psum_scatter(slope, "x", tiled=True)

        return j.map(step, (P("x"), P("x")), P("x"))(numbers(0, 8, 3), numbers(1, 8, 8))

    def stencil() -> Any:
        def step(u: Any, _: Any) -> Any:
            size = lax.axis_size("x")
            left = lax.ppermute(u[-1:], "x", [(i, i + 1) for i in range(size - 1)])
            right = lax.ppermute(u[:1], "x", [(i + 1, i) for i in range(size - 1)])
            padded = jnp.concatenate([left, u, right])
            return u + 0.1 * (padded[2:] - 2 * u + padded[:-2]), lax.psum(u.sum(), "x")

        mapped = jax.jit(j.map(lambda u: lax.scan(step, u, None, length=5), P("x"),
                               (P("x"), P())))
        return mapped(numbers(0, 16))

    def pipeline() -> Any:
        def run(weights: Any, batches: Any) -> Any:
            # Four stages; a microbatch enters at the first and leaves at the last.
            stage = lax.axis_index("x")
            weights = weights[0]

            def tick(state: Any, step: Any) -> Any:
                fed = jnp.where(step < 3, batches[jnp.minimum(step, 2)], 0.)
                given = jnp.where(stage == 0, fed, state)
                done = jnp.tanh(given @ weights)
                return lax.ppermute(done, "x", [(i, (i + 1) % 4) for i in range(4)]), done

            start = lax.pcast(jnp.zeros((2, 4)), "x", to="varying")
            outs = lax.scan(tick, start, jnp.arange(6))[1][3:]
            return lax.psum(jnp.where(stage == 3, outs, 0.), "x")

        mapped = j.map(run, (P("x"), P()), P())
        args = numbers(0, 4, 4, 4), numbers(1, 3, 2, 4)
        return jax.jit(mapped)(*args), jax.jit(jax.grad(
            lambda *a: jnp.sum(mapped(*a) ** 2), argnums=(0, 1)))(*args)

    def split_vocabulary() -> Any:
        def loss(table: Any, hidden: Any, labels: Any) -> Any:
            logits = hidden @ table.T
            top = lax.pmax(lax.stop_gradient(logits).max(-1), "y")
            total = lax.psum(jnp.exp(logits - top[:, None]).sum(-1), "y")
            local = labels - lax.axis_index("y") * table.shape[0]
            inside = (local >= 0) & (local < table.shape[0])
            own = jnp.take_along_axis(
                logits, jnp.clip(local, 0, table.shape[0] - 1)[:, None], 1)[:, 0]
            own = lax.psum(jnp.where(inside, own, 0.), "y")
            return lax.pmean(jnp.mean(jnp.log(total) + top - own), "x")

        mapped = j.map(loss, (P("y"), P("x"), P("x")), P())
        labels = np.arange(8, dtype=np.int32) * 5 % 12
        return jax.value_and_grad(mapped, argnums=(0, 1))(
            numbers(0, 12, 4), numbers(1, 8, 4), labels)

    def collective_matmul() -> Any:
        def product(x: Any, w: Any) -> Any:
            size, index = lax.axis_size("x"), lax.axis_index("x")
            rows = x.shape[0]

            def body(i: Any, carry: Any) -> Any:
                out, x = carry
                source = (index + i) % size
                out = lax.dynamic_update_slice(out, x @ w, (source * rows, 0))
                return out, lax.ppermute(x, "x", [(k, (k - 1) % size) for k in range(size)])

            start = lax.pcast(jnp.zeros((rows * size, w.shape[1])), "x", to="varying")
            return lax.fori_loop(0, size, body, (start, x))[0]

        return j.map(product, (P("x"), P(None, "x")), P(None, "x"))(
            numbers(0, 8, 4), numbers(1, 4, 8))

    def batch_norm() -> Any:
        def norm(x: Any, scale: Any) -> Any:
            mean = lax.pmean(x.mean(0), "x")
            variance = lax.pmean(((x - mean) ** 2).mean(0), "x")
            return (x - mean) / jnp.sqrt(variance + 1e-5) * scale

        mapped = j.map(norm, (P("x"), P()), P("x"), j.line)
        return jax.grad(lambda x, s: jnp.sum(mapped(x, s) ** 3), argnums=(0, 1))(
            numbers(0, 16, 3), numbers(1, 3))

    def power_iteration() -> Any:
        def largest(a: Any) -> Any:
            def body(carry: Any) -> Any:
                v, _, step = carry
                w = lax.all_gather(a @ v, "x", tiled=True, to="invarying")
                norm = jnp.sqrt(jnp.sum(w * w))
                return w / norm, norm, step + 1

            start = jnp.ones(8) / 3, jnp.float32(0), 0
            return lax.while_loop(lambda c: c[2] < 20, body, start)[:2]

        a = numbers(0, 8, 8)
        return j.map(largest, P("x"), (P(), P()))(a @ a.T)

    def prefix_sum() -> Any:
        def scanned(x: Any) -> Any:
            own = jnp.cumsum(x)
            totals = lax.all_gather(own[-1], "x")
            before = jnp.where(jnp.arange(totals.shape[0]) < lax.axis_index("x"), totals, 0.)
            return own + before.sum()

        return j.map(scanned, P("x"), P("x"), j.line)(numbers(0, 32))

    def data_and_tensor_parallel() -> Any:
        def block(p: Any, x: Any) -> Any:
            hidden = jax.nn.gelu(x @ p["up"])
            out = x + lax.psum(hidden @ p["down"], "y")
            mean = out.mean(-1, keepdims=True)
            return (out - mean) / jnp.sqrt(out.var(-1, keepdims=True) + 1e-5) * p["scale"]

        def loss(p: Any, x: Any) -> Any:
            out, _ = lax.scan(lambda h, q: (block(q, h), None), x, p)
            return lax.pmean(jnp.mean(jnp.sin(out)), "x")

        specs = {"up": P(None, None, "y"), "down": P(None, "y"), "scale": P()}
        params = {"up": numbers(0, 3, 4, 8), "down": numbers(1, 3, 8, 4),
                  "scale": numbers(2, 3, 4) + 1}
        return jax.jit(jax.value_and_grad(j.map(loss, (specs, P("x")), P())))(
            params, numbers(3, 8, 4))

    return {make.__name__.replace("_", " "): make for make in (
        data_parallel, unchecked_data_parallel, tensor_parallel, ring_attention,
        mixture_of_experts, fully_sharded, scattered_gradients, stencil, pipeline,
        split_vocabulary, collective_matmul, batch_norm, power_iteration, prefix_sum,
        data_and_tensor_parallel)}
