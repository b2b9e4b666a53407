"""A user's program in which every line below the imports misspells a name: all are to be flagged.

Never run.
"""

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.sharding import PartitionSpec

x = jnp.ones(3)
f = jax.custom_jvp(jnp.sin)
g = jax.custom_vjp(jnp.sin)
# misspelt:
jax.jti(jnp.sin)
jax.value_and_gard(jnp.sin)
jax.tree.mpa(jnp.sin, x)
jax.tree_util.tree_maps(jnp.sin, x)
jax.jit(jnp.sin).lowr(x)
jax.nn.reluu(x)
jax.nn.initializers.he_nrmal()
jax.scipy.special.gamaln(x)
jax.scipy.linlag.expm(x)
jax.sharding.Messh
jax.experimentl
jax.randm.key(0)
jax.enable_x46
jnp.argmx(x)
jnp.float23
jnp.linalg.eihg(x)
jnp.fft.ffft(x)
jnp.add.redcue(x)
jnp.finfo(x.dtype).epss
lax.scann(f, x, x)
lax.sine_p
lax.linalg.choleski(x)
random.nrmal(random.key(0))
x.sahpe
x.astpe(jnp.float32)
x.summ()
x.att[0].set(1)
x.at[0].sett(1)
x.at.set(1)
(x + x).mn
x.sum(axes=0)
x.at[0].set(value=1)
f.defjpv(g)
g.defvpj(f, f)
jax.vjp(jnp.sin, x)[2]
jax.eval_shape()
PartitionSpec("x").unreducd
