# libraries: flax optax orbax-checkpoint
# tolerance: 1e-3 (training amplifies the rounding)
"""A character GPT of Flax NNX, trained by Optax, resumed from an Orbax checkpoint, generating."""
import pathlib
import tempfile

import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx

text = (pathlib.Path(__file__).parent / "data" / "river.txt").read_text().lower()
characters = sorted(set(text))
ids = np.array([characters.index(c) for c in text])
WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 48, 4, 2, 32, 16


class Block(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.ln1 = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.ln2 = nnx.RMSNorm(WIDTH, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(
            HEADS, WIDTH, decode=False, use_bias=False, rngs=rngs)
        self.mlp = nnx.Sequential(
            nnx.Linear(WIDTH, 4 * WIDTH, rngs=rngs), nnx.gelu,
            nnx.Linear(4 * WIDTH, WIDTH, rngs=rngs), nnx.Dropout(0.1, rngs=rngs))

    def __call__(self, x, mask):
        x = x + self.attention(self.ln1(x), mask=mask)
        return x + self.mlp(self.ln2(x))


class GPT(nnx.Module):
    def __init__(self, *, rngs: nnx.Rngs):
        self.tokens = nnx.Embed(len(characters), WIDTH, rngs=rngs)
        self.positions = nnx.Embed(CONTEXT, WIDTH, rngs=rngs)
        self.blocks = nnx.List([Block(rngs=rngs) for _ in range(LAYERS)])
        self.norm = nnx.RMSNorm(WIDTH, rngs=rngs)

    def __call__(self, tokens):
        length = tokens.shape[-1]
        mask = nnx.make_causal_mask(tokens)
        x = self.tokens(tokens) + self.positions(jnp.arange(length))
        for block in self.blocks:
            x = block(x, mask)
        return self.tokens.attend(self.norm(x))


def loss_fn(model, batch):
    logits = model(batch[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch[:, 1:]).mean()


@nnx.jit
def step(model, optimizer, batch):
    loss, grads = nnx.value_and_grad(loss_fn)(model, batch)
    optimizer.update(model, grads)
    return loss, optax.global_norm(grads)


def batches(seed):
    rng = np.random.default_rng(seed)
    while True:
        starts = rng.integers(0, len(ids) - CONTEXT - 1, BATCH)
        yield jnp.asarray(np.stack([ids[s:s + CONTEXT + 1] for s in starts]))


def optimizer_of(model):
    schedule = optax.warmup_cosine_decay_schedule(0.0, 3e-3, 5, 40)
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    return nnx.Optimizer(model, chain, wrt=nnx.Param)


model = GPT(rngs=nnx.Rngs(0))
optimizer = optimizer_of(model)
source = batches(0)
for i in range(20):
    loss, norm = step(model, optimizer, next(source))
    if i % 5 == 4:
        print(f"step {i + 1} loss {loss:.6f} norm {norm:.6f}")

with tempfile.TemporaryDirectory() as folder:
    options = ocp.CheckpointManagerOptions(max_to_keep=2, create=True)
    with ocp.CheckpointManager(pathlib.Path(folder).absolute(), options=options) as manager:
        state = {"model": nnx.state(model), "optimizer": nnx.state(optimizer)}
        manager.save(20, args=ocp.args.StandardSave(nnx.to_pure_dict(nnx.State(state))))
        manager.wait_until_finished()
        print("saved", manager.all_steps())
        other = GPT(rngs=nnx.Rngs(1))
        again = optimizer_of(other)
        target = nnx.State({"model": nnx.state(other), "optimizer": nnx.state(again)})
        pure = nnx.to_pure_dict(target)
        restored = manager.restore(20, args=ocp.args.StandardRestore(pure))
    nnx.replace_by_pure_dict(target, restored)
    nnx.update(other, target["model"])
    nnx.update(again, target["optimizer"])

batch = next(source)
print("resumed the same:", float(step(model, optimizer, batch)[0]) ==
      float(step(other, again, batch)[0]))
other.eval()
prompt = ids[:8].tolist()
for _ in range(8):
    window = jnp.asarray(prompt[-8:])[None]
    prompt.append(int(jnp.argmax(other(window)[0, -1])))
print(repr("".join(characters[i] for i in prompt)))
