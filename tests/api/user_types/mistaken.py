"""A user's program in which every line below the imports gives a wrong argument: all are flagged.

Never run.
"""

import jax.numpy as jnp
from jax import nn, random

x = jnp.ones(3)
# mistaken:
random.normal((3,))
random.uniform((3,), jnp.float32)
random.bernoulli((3,))
random.categorical((3,), x)
random.split((3,))
jnp.sum(x, axis="rows")
jnp.zeros(3, dtype=1.5)
jnp.argmax([1, 2, 3])
nn.softmax([1.0, 2.0])
