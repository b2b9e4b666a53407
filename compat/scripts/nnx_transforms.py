# libraries: flax treescope
# tolerance: 1e-4 (a chain of recurrent cells amplifies the rounding)
"""NNX beyond training: split and merge, filters, vmap and scan, LoRA, surgery, random keys."""
import jax
import jax.numpy as jnp
import numpy as np
import treescope
from flax import nnx


class Counter(nnx.Variable):
    pass


class Net(nnx.Module):
    def __init__(self, width, *, rngs):
        self.first = nnx.Linear(4, width, rngs=rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.drop = nnx.Dropout(0.2, rngs=rngs)
        self.last = nnx.Linear(width, 2, rngs=rngs)
        self.calls = Counter(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        return self.last(self.drop(nnx.relu(self.norm(self.first(x)))))


x = jax.random.normal(jax.random.key(0), (6, 4))
net = Net(8, rngs=nnx.Rngs(params=0, dropout=1))
graph, params, stats, rest = nnx.split(net, nnx.Param, nnx.BatchStat, ...)
print(len(jax.tree.leaves(params)), len(jax.tree.leaves(stats)), len(jax.tree.leaves(rest)))


@jax.jit
def pure(params, stats, rest, x):
    model = nnx.merge(graph, params, stats, rest)
    y = model(x)
    return y, nnx.state(model, nnx.BatchStat), nnx.state(model, Counter)


y, stats2, counter = pure(params, stats, rest, x)
print("pure", np.asarray(y[0]), jax.tree.leaves(counter))
nnx.jit(lambda m, x: m(x))(net, x)
print("in place", int(net.calls[...]), np.asarray(net.norm.mean[...])[:3])
net.eval()
print("evaluated", np.asarray(net(x)[0]))


@nnx.vmap(in_axes=0, out_axes=0)
def make(key):
    return nnx.Linear(4, 3, rngs=nnx.Rngs(key))


many = make(jax.random.split(jax.random.key(1), 5))
print("stacked", many.kernel[...].shape, np.asarray(
    nnx.vmap(lambda m, x: m(x), in_axes=(0, None))(many, x).mean((1, 2))))


@nnx.split_rngs(splits=4)
@nnx.vmap(in_axes=0, out_axes=0)
def block(rngs):
    return nnx.Linear(4, 4, rngs=rngs)


layers = block(nnx.Rngs(2))


@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
def forward(x, layer):
    return nnx.tanh(layer(x))


print("scanned", np.asarray(forward(x, layers)[0]))
grads = nnx.grad(lambda m: jnp.sum(forward(x, m) ** 2))(layers)
print("gradient", float(jnp.linalg.norm(grads["kernel"][...])))
rnn = nnx.RNN(nnx.OptimizedLSTMCell(4, 6, rngs=nnx.Rngs(3)))
print("RNN", np.asarray(rnn(x[None])[0, -1]))
lora = nnx.LoRA(4, 2, 3, base_module=nnx.Linear(4, 3, rngs=nnx.Rngs(4)), rngs=nnx.Rngs(5))
print("LoRA", np.asarray(lora(x)[0]), len(jax.tree.leaves(nnx.state(lora, nnx.LoRAParam))))
tied = nnx.Sequential(net.first, nnx.relu)
tied.layers[0].kernel[...] = tied.layers[0].kernel[...] * 2
print("shared", bool(jnp.array_equal(net.first.kernel[...], tied.layers[0].kernel[...])))
abstract = nnx.eval_shape(lambda: Net(8, rngs=nnx.Rngs(0)))
print("abstract", abstract.first.kernel.get_value().shape)
copy = nnx.clone(net)
nnx.update(copy, jax.tree.map(jnp.zeros_like, nnx.state(copy, nnx.Param)))
print("zeroed", float(jnp.abs(copy(x)).max()), float(jnp.abs(net(x)).max()) > 0)
print("paths", [".".join(map(str, p)) for p, _ in nnx.iter_graph(net) if p][-4:])
print("while", np.asarray(nnx.while_loop(lambda c: c[1] < 3, lambda c: (jnp.tanh(c[0]), c[1] + 1),
                                         (x[0], 0))[0]))
print("cond", float(nnx.cond(True, lambda m, x: m(x).sum(), lambda m, x: 0.0, net, x)))
print("remat", float(nnx.remat(lambda m, x: m(x).sum())(net, x)))
print("rendered", "Linear" in treescope.render_to_text(net))
