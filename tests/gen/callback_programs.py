"""Random programs with callbacks anywhere in nested control flow, for either library.

They compute with small whole numbers, so that all results are exact. Each callback writes down
where it stands in the program, what it is called with, and how it is ordered.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# Of a library, a log, a vector and a number: the next vector.
Step = Callable[[Any, list[Any], Any, Any], Any]
MODULUS = 97


class Entry(NamedTuple):
    """What a callback has written down.

    Attributes:
      place: which it is.
      order: among which it keeps its place: "debug", "io" or, if it is not ordered, "".
      values, number: the first values that it was called with, and the number.
    """

    place: int
    order: str
    values: tuple[int, ...]
    number: int


class Program:
    """A program of one seed.

    Attributes:
      callbacks: how many stand in its text.
    """

    def __init__(self, seed: int, depth: int = 3):
        self.random = random.Random(seed)
        self.callbacks = 0
        self.step = self._sequence(depth)

    def on(self, j: Any, log: list[Any]) -> Callable[[Any, Any], Any]:
        return lambda x, n: self.step(j, log, x, n)

    # --- statements ---
    def _sequence(self, depth: int) -> Step:
        steps = [self._statement(depth) for _ in range(self.random.randint(2, 3))]

        def run(j: Any, log: list[Any], x: Any, n: Any) -> Any:
            for step in steps:
                x = step(j, log, x, n)
            return x
        return run

    def _statement(self, depth: int) -> Step:
        makers = [self._arithmetic, self._debug, self._io, self._pure]
        if depth:
            makers = [self._debug, self._io, *2 * [
                self._scan, self._fori, self._while, self._cond, self._switch, self._jit]]
        return self.random.choice(makers)(depth - 1)

    def _arithmetic(self, depth: int) -> Step:
        a, b, c = (self.random.randint(1, 9) for _ in range(3))
        return lambda j, log, x, n: (x * a + x[::-1] * b + c * n) % MODULUS

    def _place(self) -> int:
        self.callbacks += 1
        return self.callbacks

    def _debug(self, depth: int) -> Step:
        place, ordered = self._place(), self.random.random() < 0.6
        return lambda j, log, x, n: self._written(j, log, x, n, place, ordered)

    @staticmethod
    def _written(j: Any, log: list[Any], x: Any, n: Any, place: int, ordered: bool) -> Any:
        j.debug.callback(lambda x, n: log.append(Entry(
            place, "debug" * ordered, tuple(np.asarray(x).tolist()), int(n))), x[:5], n,
            ordered=ordered)
        return x

    def _io(self, depth: int) -> Step:
        place, ordered = self._place(), self.random.random() < 0.6

        def run(j: Any, log: list[Any], x: Any, n: Any) -> Any:
            def called(x: Any, n: Any) -> tuple[Any, ...]:
                x = np.asarray(x)
                log.append(Entry(place, "io" * ordered, tuple(x.tolist()[:5]), int(n)))
                return np.roll(x, 1), np.int32(x[0] % 7)
            shapes = (j.ShapeDtypeStruct(x.shape, x.dtype), j.ShapeDtypeStruct((), np.int32))
            y, more = j.experimental.io_callback(called, shapes, x, n, ordered=ordered)
            return (x + 3 * y + more) % MODULUS
        return run

    def _pure(self, depth: int) -> Step:
        def run(j: Any, log: list[Any], x: Any, n: Any) -> Any:
            return j.pure_callback(lambda x: (np.asarray(x)[::-1] * 5 + 1) % MODULUS,
                                   j.ShapeDtypeStruct(x.shape, x.dtype), x)
        return run

    # --- control flow ---
    def _scan(self, depth: int) -> Step:
        body, length, reverse = self._sequence(depth), self.random.randint(0, 3), \
            self.random.random() < 0.5

        def run(j: Any, log: list[Any], x: Any, n: Any) -> Any:
            def step(c: Any, k: Any) -> Any:
                c = body(j, log, c, k)
                return c, c.sum() + k
            x, sums = j.lax.scan(step, x, j.numpy.arange(length, dtype=np.int32) + n,
                                 reverse=reverse)
            return (x + sums.sum()) % MODULUS
        return run

    def _fori(self, depth: int) -> Step:
        body, length = self._sequence(depth), self.random.randint(1, 3)
        return lambda j, log, x, n: j.lax.fori_loop(
            np.int32(0), np.int32(length), lambda i, c: body(j, log, c, i), x)

    def _while(self, depth: int) -> Step:
        body, length = self._sequence(depth), self.random.randint(0, 3)
        place = self._place() if self.random.random() < 0.5 else None

        def run(j: Any, log: list[Any], x: Any, n: Any) -> Any:
            def goes_on(c: Any) -> Any:
                if place is not None:
                    self._written(j, log, c[1], c[0], place, True)
                return c[0] < length + c[1][0] % 2
            return j.lax.while_loop(
                goes_on, lambda c: (c[0] + 1, body(j, log, c[1], c[0])), (np.int32(0), x))[1]
        return run

    def _cond(self, depth: int) -> Step:
        first, second = self._sequence(depth), self._statement(0)
        return lambda j, log, x, n: j.lax.cond(
            (x[0] + n) % 3 == 0, lambda x: first(j, log, x, n), lambda x: second(j, log, x, n), x)

    def _switch(self, depth: int) -> Step:
        branches = [self._statement(depth), self._statement(0), lambda j, log, x, n: x]
        self.random.shuffle(branches)
        return lambda j, log, x, n: j.lax.switch(
            (x.sum() + n) % 3, [lambda x, branch=branch: branch(j, log, x, n)
                                for branch in branches], x)

    def _jit(self, depth: int) -> Step:
        body = self._sequence(depth)
        return lambda j, log, x, n: j.jit(lambda x, n: body(j, log, x, n))(x, n + 1)
