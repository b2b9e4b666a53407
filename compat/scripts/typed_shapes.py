# libraries: jaxtyping beartype tree-math jmp
"""jaxtyping with beartype, under transformations; tree-math; mixed precision by jmp."""
import jax
import jax.numpy as jnp
import jmp
import numpy as np
import tree_math as tm
from beartype import beartype
from jaxtyping import Array, Float, Int, Key, PyTree, Scalar, jaxtyped

typed = jaxtyped(typechecker=beartype)


@typed
def attention(q: Float[Array, "n d"], k: Float[Array, "m d"],
              v: Float[Array, "m e"]) -> Float[Array, "n e"]:
    return jax.nn.softmax(q @ k.T / jnp.sqrt(q.shape[-1])) @ v


@jax.jit
@typed
def loss(params: PyTree[Float[Array, "..."]], x: Float[Array, "b 4"],
         y: Int[Array, " b"]) -> Float[Scalar, ""]:
    logits = jnp.tanh(x @ params["w"]) @ params["out"]
    return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(len(y)), y])


@typed
def draw(key: Key[Array, ""], n: int) -> Float[Array, "{n} 4"]:
    return jax.random.normal(key, (n, 4))


keys = jax.random.split(jax.random.key(0), 4)
q, k = draw(keys[0], 3), draw(keys[1], 5)
print("attention", np.asarray(attention(q, k, k[:, :2])))
print("mapped", jax.vmap(attention, in_axes=(0, None, None))(jnp.stack([q, q]), k, k).shape)
params = {"w": jax.random.normal(keys[2], (4, 6)), "out": jax.random.normal(keys[3], (6, 3))}
labels = jnp.array([0, 1, 2])
print("loss", float(loss(params, q, labels)))
print("gradient", np.asarray(jax.grad(loss)(params, q, labels)["out"])[0])
for name, call in (("sizes", lambda: attention(q, k, k[:4])),
                   ("dtype", lambda: loss(params, q, labels.astype(jnp.float32))),
                   ("rank", lambda: attention(q[0], k, k)),
                   ("under vmap", lambda: jax.vmap(attention)(q, k[:3], k[:3]))):
    try:
        call()
        print(name, "passed")
    except Exception as error:
        print(name, "refused:", type(error).__name__)
print(isinstance(q, Float[Array, "3 4"]), isinstance(q, Float[Array, "4 3"]),
      isinstance(q, Float[np.ndarray, "3 4"]), isinstance(params, PyTree[Float[Array, "_ _"]]))


a, b = tm.Vector(params), tm.Vector(jax.tree.map(jnp.ones_like, params))
print("tree-math", float(a @ b), float((2 * a - b).max()), float((a * b).sum()))
p = tm.Vector(params)
for _ in range(5):
    p = p - 0.3 * tm.Vector(jax.grad(loss)(p.tree, q, labels))
print("descended", float(loss(p.tree, q, labels)))

policy = jmp.get_policy("params=float32,compute=bfloat16,output=float32")
scale = jmp.DynamicLossScale(jnp.float32(2.0 ** 10), period=2)


@jax.jit
def mixed(params, scale):
    def scaled(params):
        p, x = policy.cast_to_compute((params, q))
        return scale.scale(policy.cast_to_output(jnp.sum(jnp.tanh(x @ p["w"]) ** 2)))
    value, grads = jax.value_and_grad(scaled)(params)
    grads = scale.unscale(policy.cast_to_param(grads))
    finite = jmp.all_finite(grads)
    return value, grads, scale.adjust(finite), finite


for _ in range(3):
    value, grads, scale, finite = mixed(params, scale)
print("mixed", grads["w"].dtype, float(scale.loss_scale), bool(finite))
print(bool(jmp.select_tree(finite, jnp.array(True), jnp.array(False))))
