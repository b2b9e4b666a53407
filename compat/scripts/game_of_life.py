"""Conway's game of life, by rolls and by a convolution."""
import jax
import jax.numpy as jnp
from jax import lax

glider = jnp.array([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=jnp.uint8)
board = jnp.zeros((32, 32), dtype=jnp.uint8)
board = board.at[1:4, 1:4].set(glider)
board = lax.dynamic_update_slice(board, glider[::-1, ::-1], (20, 24))
board = board.at[14, 10:20].set(1)


@jax.jit
def life(board):
    neighbours = sum(jnp.roll(board, (i, j), axis=(0, 1))
                     for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return ((neighbours == 3) | ((board == 1) & (neighbours == 2))).astype(board.dtype)


@jax.jit
def life_by_convolution(board):
    wrapped = jnp.pad(board, 1, mode="wrap").astype(jnp.float32)
    kernel = jnp.ones((1, 1, 3, 3)).at[0, 0, 1, 1].set(0.0)
    n = lax.conv(wrapped[None, None], kernel, (1, 1), "VALID")[0, 0]
    return jnp.where(board == 1, (n == 2) | (n == 3), n == 3).astype(jnp.uint8)


@jax.jit
def evolve(board):
    def step(b, _):
        b = life(b)
        return b, b.sum()
    return lax.scan(step, board, None, length=60)


def show(board):
    for row in board.tolist():
        print("".join(".#"[cell] for cell in row))


last, population = evolve(board)
print("population", population[::10], population.dtype)
other = board
for _ in range(60):
    other = life_by_convolution(other)
print("both rules agree:", bool(jnp.array_equal(last, other)))
show(last[:16, :16])
rows, columns = jnp.nonzero(last)
print("centre of mass %.5f %.5f" % (rows.mean(), columns.mean()))
packed = jnp.packbits(last, axis=1)
print("packed", packed.shape, packed.dtype, int(packed.sum()))

# The glider comes back to its shape, one cell further, after four generations.
single = jnp.zeros((12, 12), jnp.uint8).at[1:4, 1:4].set(glider)
moved = lax.fori_loop(0, 4, lambda _, b: life(b), single)
print("glider moves:", bool((moved == jnp.roll(single, 1, (0, 1))).all()))
boards = jax.random.bernoulli(jax.random.key(0), 0.3, (8, 24, 24)).astype(jnp.uint8)
later = jax.vmap(lambda b: lax.fori_loop(0, 20, lambda _, b: life(b), b))(boards)
print("alive after 20 generations", later.sum(axis=(1, 2)))
