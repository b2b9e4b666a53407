"""Conway's game of life on a torus: a step is 20 generations, the number the living cells.

usage: life.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
size = 16 if small else 512


def generation(board):
    neighbours = sum(
        jnp.roll(board, (down, right), (0, 1))
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
        if (down, right) != (0, 0)
    )
    born = (board == 0) & (neighbours == 3)
    stays = (board == 1) & ((neighbours == 2) | (neighbours == 3))
    return (born | stays).astype(board.dtype)


@jax.jit
def advance(board):
    board = jax.lax.fori_loop(0, 20, lambda _, board: generation(board), board)
    return board, jnp.sum(board)


board = jax.random.bernoulli(jax.random.key(0), 0.3, (size, size)).astype(jnp.int32)
for step in range(steps):
    board, living = advance(board)
    print(step, float(living))
