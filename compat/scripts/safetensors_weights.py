# libraries: safetensors flax einops
# absolute: 1e-6 (outputs near zero)
"""safetensors: a model's weights in bfloat16 and float32 written, read lazily, and applied."""
import pathlib
import tempfile

import flax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from einops import rearrange, reduce, repeat
from safetensors import safe_open
from safetensors.flax import load, load_file, save, save_file


class Mixer(nn.Module):
    """An MLP mixer whose axes einops moves."""

    @nn.compact
    def __call__(self, images):
        x = rearrange(images, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)
        x = nn.Dense(16, name="patches")(x)
        y = rearrange(nn.LayerNorm(name="norm")(x), "b n c -> b c n")
        x = x + rearrange(nn.Dense(9, name="mix")(nn.gelu(y)), "b c n -> b n c")
        return nn.Dense(5, name="head")(reduce(x, "b n c -> b c", "mean"))


images = jax.random.normal(jax.random.key(0), (2, 12, 12, 3))
model = Mixer()
params = model.init(jax.random.key(1), images)["params"]
flat = flax.traverse_util.flatten_dict(params, sep=".")
half = {name: value.astype(jnp.bfloat16) for name, value in flat.items()}
half["count"] = jnp.arange(3)
half["mask"] = jnp.array([True, False])

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "model.safetensors"
    save_file(half, path, metadata={"format": "flax", "note": "bfloat16"})
    loaded = load_file(path)
    print("same names:", sorted(loaded) == sorted(half))
    with safe_open(path, framework="flax") as file:
        print(sorted(file.metadata().items()))      # the library gives them in any order
        for name in sorted(file.keys())[:4]:
            tensor = file.get_tensor(name)
            print(name, tensor.shape, tensor.dtype, isinstance(tensor, jax.Array))
        part = file.get_slice("patches.kernel")
        print("slice", part.get_shape(), np.asarray(part[:1, :3].astype(jnp.float32)))
for name in sorted(half):
    assert jnp.array_equal(loaded[name], half[name]), name

restored = {k: v.astype(jnp.float32) for k, v in loaded.items() if k in flat}
tree = flax.traverse_util.unflatten_dict(restored, sep=".")
print("exact", np.asarray(model.apply({"params": params}, images)))
error = model.apply({"params": tree}, images) - model.apply({"params": params}, images)
print("bfloat16 is near:", bool(jnp.abs(error).max() < 0.05))
again = load(save(flat))
print("bytes:", all(jnp.array_equal(again[k], flat[k]) for k in flat))
message = flax.serialization.to_bytes(params)
back = flax.serialization.from_bytes(params, message)
print("msgpack:", len(message), bool(jnp.array_equal(back["head"]["kernel"], params["head"][
    "kernel"])))
tiled = repeat(images[0, :2, :2, 0], "h w -> (h a) (w b)", a=2, b=2)
print("tiled", np.asarray(tiled))
