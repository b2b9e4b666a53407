"""Random loops over small and middle arrays: stencils, windows, rows and columns that are read and
written, masks by the counter, reductions, products, loops and choices in loops.

Arrays hold small whole numbers, so that results are the same bits in every order of a sum. A
program is drawn from a seed, and its functions are those of either library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import maxjax
from maxjax._base.config import enable_x64
from maxjax._runtime.program import Program
from tests.support.mojo_programs import Item

DTYPES = ["float32", "float64", "int32", "int64", "complex64"]
SIZES = [1, 2, 3, 5, 7, 8, 9, 12, 16, 17, 24, 33]
MOST = 9


class Drawn:
    """A program.

    Attributes:
      args: its arguments, as NumPy arrays.
    """

    def __init__(self, seed: int):
        draw = self.draw = np.random.default_rng(seed)
        self.dtype = np.dtype(DTYPES[seed % len(DTYPES)])
        self.n, self.m = (int(draw.choice(SIZES[2:])) for _ in range(2))
        if draw.random() < 0.3:
            self.m = self.n
        self.kind = int(draw.integers(4))
        self.count = int(draw.integers(0, 6))
        self.steps = draw.integers(0, 1 << 16, (int(draw.integers(2, 7)), 7)).tolist()
        self.order = draw.permutation(3).tolist()
        shapes = [(self.n, self.m), (self.n, self.m), (self.n,)]
        self.args = [self.data(shape) for shape in shapes]
        self.rows = self.data((self.count, self.n))

    def data(self, shape: tuple[int, ...]) -> np.ndarray:
        values = self.draw.integers(-4, 5, shape)
        if self.dtype.kind == "c":
            return (values + 1j * self.draw.integers(-4, 5, shape)).astype(self.dtype)
        return values.astype(self.dtype)

    def function(self, j: Any) -> Callable[..., Any]:
        """The program as a function that calls a library, ``maxjax`` or ``jax``."""
        lax, jnp = j.lax, j.numpy

        def body(i: Any, state: Any) -> Any:
            values = list(state)
            for which, *numbers in self.steps:
                values = self.step(j, which, numbers, i, values)
            x, y, v = values
            return ((x, y), (y, x), (x, x + y))[self.order[0]] + (v,)

        def run(x: Any, y: Any, v: Any, rows: Any) -> Any:
            state = x, y, v
            if self.kind == 0:
                return lax.fori_loop(0, self.count, body, state)
            if self.kind == 1:
                return lax.while_loop(lambda c: c[0] < self.count, lambda c: (
                    c[0] + 1, body(c[0], c[1])), (0, state))
            if self.kind == 2:
                def scanned(c: Any, s: Any) -> Any:
                    i, row = s
                    x, y, v = body(i, c)
                    return (x, y, self.bounded(j, v + row)), (x[0], v)
                return lax.scan(scanned, state, (jnp.arange(self.count), rows),
                                reverse=bool(self.count % 2))
            return lax.fori_loop(0, 2, lambda k, c: lax.fori_loop(
                0, self.count, lambda i, c: body(i + k, c), c), state)

        return run

    def bounded(self, j: Any, x: Any) -> Any:
        if self.dtype.kind == "c":
            return j.lax.complex(j.numpy.clip(x.real, -MOST, MOST),
                                 j.numpy.clip(x.imag, -MOST, MOST))
        return j.numpy.clip(x, -MOST, MOST)

    def step(self, j: Any, which: int, numbers: list[int], i: Any, values: list[Any]) -> list[Any]:
        """One of the three values becomes another one."""
        x, y, v = values
        if numbers[0] % 2:
            x, y = y, x
        steps = [step for name, step in vars(Drawn).items() if name.startswith("do_")]
        made = self.bounded(j, steps[which % len(steps)](self, j, i, x, y, v, numbers[1:]))
        assert made.dtype == self.dtype, (made.dtype, steps[which % len(steps)])
        if made.ndim == 1:
            return [values[0], values[1], made]
        return [values[0], made, v] if numbers[0] % 2 else [made, values[1], v]

    # --- windows at known places ---
    def do_window(self, j, i, x, y, v, k):
        a, b = k[0] % self.n, k[1] % self.m
        return x.at[a:, b:].set(y[:self.n - a, :self.m - b] - x[a:, b:])

    def do_stencil(self, j, i, x, y, v, k):
        if self.n < 3:
            return x + y
        return x.at[1:-1].set(y[2:] + y[:-2] - (x if k[0] % 2 else y)[1:-1])

    def do_stencil_in_place(self, j, i, x, y, v, k):
        return x.at[1:].add(x[:-1]) if k[0] % 2 else x.at[:, 1:].set(x[:, :-1])

    def do_border(self, j, i, x, y, v, k):
        a, b = k[0] % self.m, k[1] % self.m
        return x.at[:, a].set(x[:, b]).at[k[2] % self.n].set(k[3] % 4)

    def do_two_windows(self, j, i, x, y, v, k):
        a, b = k[0] % self.n, k[1] % self.n
        return x.at[a].set(y[b] + 1).at[b].add(y[a]) + (x if k[2] % 2 else y)

    def do_diagonal_element(self, j, i, x, y, v, k):
        return x.at[0, 0].set(x[-1, -1]).at[-1, -1].add(y[0, 0])

    # --- rows, columns and elements by the counter ---
    def do_row(self, j, i, x, y, v, k):
        return x.at[i + k[0] % 3].set(y[(i + k[1]) % self.n] + v[k[2] % self.n])

    def do_row_part(self, j, i, x, y, v, k):
        if k[0] % 2:
            return x.at[i % self.n, 1:].set(y[(i + k[1]) % self.n, :-1])
        return x.at[:-1, i % self.m].add(y[1:, k[1] % self.m] - x[:-1, (i + 1) % self.m])

    def do_column(self, j, i, x, y, v, k):
        return x.at[:, i % self.m].set(v + y[:, (i + 1) % self.m])

    def do_column_anew(self, j, i, x, y, v, k):
        """A column computed from what it is, which may be read elsewhere before or after."""
        c = i % self.m if k[0] % 2 else i - k[0] % 5
        old = x[:, c]
        new = [lambda: old * 2 - v, lambda: old[::-1] + 1, lambda: v - old + old[:1],
               lambda: j.numpy.where(old > v, old, y[:, 0]) if self.dtype.kind != "c" else -old
               ][k[1] % 4]()
        x = x.at[:, c].set(new, mode=("drop", "clip")[k[2] % 2])
        return [lambda: x, lambda: x + old[:, None], lambda: x - new[:, None],
                lambda: x.at[:, c].add(v)][k[3] % 4]()

    def do_block_anew(self, j, i, x, y, v, k):
        a, b = 1 + k[0] % self.n, 1 + k[1] % self.m
        at = i - k[2] % 3, k[3] % self.m - i
        block = j.lax.dynamic_slice(x, at, (a, b)) - y[:a, :b]
        if k[4] % 3 == 0:
            block = block + x[0, 0]
        return j.lax.dynamic_update_slice(x, block, at if k[4] % 4 else at[:1] + (i,))

    def do_element(self, j, i, x, y, v, k):
        return v.at[i].set(x[i % self.n, 0] - v[(i + 1) % self.n])

    def do_add_rows(self, j, i, x, y, v, k):
        places = j.numpy.array([k[0] % self.n, 1, k[0] % self.n]) + i - 1
        rows = x.at[places]
        return [rows.add, rows.multiply, *([rows.min, rows.max] if self.dtype.kind != "c" else [])
                ][k[1] % (2 if self.dtype.kind == "c" else 4)](y[:1])

    def do_slice(self, j, i, x, y, v, k):
        a, b = 1 + k[0] % self.n, 1 + k[1] % self.m
        window = j.lax.dynamic_slice(y, (i, k[2] % self.m - i), (a, b))
        return j.lax.dynamic_update_slice(x, window + 1, (k[3] % self.n - i, i))

    # --- whole arrays ---
    def do_mask(self, j, i, x, y, v, k):
        rows = j.numpy.arange(self.n)
        low = j.numpy.where(rows < i, v, 0)
        return x - low[:, None] * j.numpy.where(j.numpy.arange(self.m) >= i, y[i % self.n], 0)

    def do_outer(self, j, i, x, y, v, k):
        return x + y[:, k[0] % self.m][:, None] * x[k[1] % self.n][None]

    def do_sums(self, j, i, x, y, v, k):
        return x - y.sum(k[0] % 2, keepdims=True).astype(self.dtype)

    def do_maxima(self, j, i, x, y, v, k):
        if self.dtype.kind == "c":
            return x - (x * 2 - y).sum(0)
        boxes = y[:self.n // 2 * 2].reshape(self.n // 2, 2, self.m)
        return x.at[:self.n // 2].set(boxes.max(1) - j.numpy.min(x + 1, 0))

    def do_total(self, j, i, x, y, v, k):
        return v + (x * y).sum(1).astype(self.dtype)

    def do_product(self, j, i, x, y, v, k):
        return (x @ y.T) @ v if k[0] % 2 else v.at[i].set(x[i % self.n] @ y[k[1] % self.n])

    def do_arranged(self, j, i, x, y, v, k):
        return [lambda: x[::-1], lambda: j.numpy.roll(x, 1, k[1] % 2), lambda: x[:, ::-1] + y,
                lambda: x.T + y if self.n == self.m else y][k[0] % 4]()

    def do_elementwise(self, j, i, x, y, v, k):
        return j.numpy.where(x == y, x + i.astype(x.dtype), y * 2 - x)

    # --- loops and choices ---
    def do_loop(self, j, i, x, y, v, k):
        return j.lax.fori_loop(0, k[0] % 4, lambda l, x: self.bounded(
            j, x.at[l].set(y[(l + i) % self.n] + x[-1])), x)

    def do_sweeps(self, j, i, x, y, v, k):
        def row(a, x):
            return j.lax.fori_loop(1, self.m, lambda b, x: x.at[a, b].set(
                self.bounded(j, x[a - 1, b] + x[a, b - 1])), x)
        return j.lax.fori_loop(1, min(self.n, 4), row, x)

    def do_while(self, j, i, x, y, v, k):
        return j.lax.while_loop(lambda c: c[0] < i, lambda c: (
            c[0] + 1, self.bounded(j, c[1] + y)), (0, x))[1]

    def do_choice(self, j, i, x, y, v, k):
        return j.lax.cond(i % 2 == k[0] % 2, lambda x, y: x.at[0].set(y[-1]), lambda x, y: x, x, y)

    def do_switch(self, j, i, x, y, v, k):
        return j.lax.switch((i + k[0]) % 3, [
            lambda x: x + y, lambda x: x, lambda x: x.at[:, 0].set(v)], x)

    def do_undone(self, j, i, x, y, v, k):
        return j.numpy.where(i < k[0] % 4, x.at[i].set(y[0]), x)


def item(seed: int) -> Item:
    drawn = Drawn(seed)
    with enable_x64(True):
        closed = maxjax.make_jaxpr(drawn.function(maxjax))(*drawn.args, drawn.rows)
        program = Program(closed)
        return Item(f"loops {seed}", program, [*program.consts, *drawn.args, drawn.rows],
                    "exact", signed_zeros=False).plan(cores=1 + seed % 2)


def default(count: int) -> list[Item]:
    return [item(seed) for seed in range(count)]
