"""Random programs over the vocabulary of the Mojo backend.

A *structure* is drawn from a seed: which operations on which values, by names of dimensions alone.
Several assignments of sizes give several programs with mostly the same kernels, which are generic
in sizes.

Arrays hold small whole numbers, so that arithmetic is exact in every dtype, whatever the order of
a sum, and results are compared bit for bit; only values from a function that rounds, marked
inexact, are compared up to rounding, and no discontinuous function is applied to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base.config import enable_x64
from maxjax._runtime.program import Program
from tests.support.mojo_programs import Item

FLOATS = (np.float32, np.float32, np.float32, np.float64, np.float16, ml_dtypes.bfloat16)
INTS = (np.int32, np.int32, np.int64, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64)
DTYPES = [np.dtype(x) for x in (*FLOATS, *FLOATS, *INTS, bool)]
BOOL = np.dtype(bool)
# The sizes of a dimension, and its nominal size for bounding the sizes of arrays.
SIZES = {"small": ((2, 3), 4), "middling": ((2, 3, 3, 4, 5, 5, 7, 7, 8, 9, 16, 17, 33), 4),
         "large": ((64, 65, 127, 130, 300, 1025), 40)}
ASSIGNMENTS = 16
MOST_ELEMENTS = 3000    # of a value, at nominal sizes


class Value(NamedTuple):
    """A traced array and the names of its dimensions; equal names are equal sizes."""

    array: Any
    names: tuple[str, ...]
    is_exact: bool = True

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(self.array.dtype)

    @property
    def is_float(self) -> bool:
        return self.dtype.kind in "fV" or self.dtype.name == "bfloat16"


class Builder:
    """Draws a program: structure from one generator, sizes and values from another."""

    def __init__(self, structure: int, assignment: int):
        self.draw = np.random.default_rng((structure, 1))
        self.sizes_draw = np.random.default_rng((structure, assignment, 2))
        self.data_draw = np.random.default_rng((structure, assignment, 3))
        self.noise_draw: Any = None
        scale = self.choice(["small"] * 3 + ["middling"] * 6 + ["large"])
        self.ranks = {"small": [0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 6, 7],
                      "middling": [0, 1, 1, 2, 2, 2, 3, 3, 4], "large": [0, 1, 1, 2]}[scale]
        sizes, self.nominal = SIZES[scale]
        self.sizes: dict[str, int] = {"1": 1, "0": 0}
        for name in "abcd":
            self.sizes[name] = int(self.sizes_draw.choice(sizes))
        self.fresh = 0
        self.values: list[Value] = []
        self.outputs: list[Value] = []
        # The first is an index.
        main, index = self.choice(DTYPES), np.dtype(np.int32)
        kinds = [main, *(main if self.chance(0.6) else self.choice(DTYPES)
                         for _ in range(self.choice([0, 1, 2])))]
        self.input_names = [(), self.draw_names()[:1], *(self.draw_names() for _ in kinds)]
        self.inputs = [self.data(self.shape(names), dtype) for names, dtype in zip(
            self.input_names, [index, index, *kinds], strict=True)]

    # --- drawing ---
    def choice(self, options: Any) -> Any:
        return options[int(self.draw.integers(len(options)))]

    def chance(self, probability: float) -> bool:
        return bool(self.draw.random() < probability)

    def elements(self, names: tuple[str, ...]) -> int:
        """An estimate of the number: decisions may not depend on the sizes."""
        return math.prod(1 if name in "01" else self.nominal ** max(1, name.count("."))
                         for name in names)

    def name(self, size: int, like: str = "") -> str:
        """A name for a new dimension."""
        self.fresh += 1
        name = f"{like or 'n'}{self.fresh}"
        self.sizes[name] = size
        return name

    def shape(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.sizes[name] for name in names)

    def draw_names(self) -> tuple[str, ...]:
        rank = self.choice(self.ranks)
        names = [self.choice("aabbcd1") for _ in range(rank)]
        if rank and self.chance(0.03):
            names[self.choice(range(rank))] = "0"
        while self.elements(tuple(names)) > MOST_ELEMENTS:
            names[self.choice(range(rank))] = "1"
        return tuple(names)

    def data(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if dtype == BOOL:
            return self.data_draw.random(shape) < 0.5
        low = 0 if dtype.kind == "u" else -4
        return self.data_draw.integers(low, 5, shape).astype(dtype)

    def pick(self, *conditions: Callable[[Value], bool]) -> Value | None:
        options = [x for x in self.values if all(condition(x) for condition in conditions)]
        if not options:
            return None
        # Later values more often: chains grow.
        weights = np.arange(1, len(options) + 1, dtype=float) ** 3
        return options[int(self.draw.choice(len(options), p=weights / weights.sum()))]

    # --- operations: each gives a value, or None where it does not apply ---
    def tamed(self, array: Any, names: tuple[str, ...], is_exact: bool = True) -> Value:
        """Values stay small, so that later operations are exact too."""
        dtype = np.dtype(array.dtype)
        if dtype == BOOL:
            return Value(array, names, is_exact)
        low = np.asarray(0 if dtype.kind == "u" else -8, dtype)
        return Value(lax.clamp(low, array, np.asarray(8, dtype)), names, is_exact)

    def rounded(self, array: Any, names: tuple[str, ...]) -> Value:
        """An inexact result; with noise of a few roundings, to measure their effect."""
        if self.noise_draw is not None:
            dtype = np.dtype(array.dtype)
            unit = float(ml_dtypes.finfo(dtype).eps)
            noise = (1 + 4 * unit * self.noise_draw.uniform(-1, 1, array.shape)).astype(dtype)
            array = lax.mul(array, jnp.asarray(noise))
        return Value(array, names, False)

    def mean(self, array: Any, axes: tuple[int, ...]) -> Any:
        """A mean whose terms may cancel; with the noise of sequential addition, as in NumPy along
        axes other than the last."""
        result = jnp.mean(array, axes, keepdims=True)
        if self.noise_draw is not None:
            dtype = np.dtype(array.dtype)
            count = np.prod([array.shape[axis] for axis in axes])
            unit = float(ml_dtypes.finfo(dtype).eps) * count ** 0.5
            noise = (unit * self.noise_draw.uniform(-1, 1, result.shape)).astype(dtype)
            result = result + jnp.asarray(noise) * jnp.mean(abs(array), axes, keepdims=True)
        return result

    def unary(self) -> Value | None:
        x = self.pick()
        if x.dtype == BOOL:
            return x._replace(array=lax.bitwise_not(x.array))
        if x.is_float and self.chance(0.5):
            function = self.choice([lax.tanh, lax.logistic, lambda v: lax.exp(-abs(v)), lax.sin,
                                    lambda v: lax.log1p(abs(v)), lambda v: lax.sqrt(abs(v) + 1),
                                    lambda v: lax.rsqrt(v * v + 1), lax.erf, lax.atan])
            return self.rounded(function(x.array), x.names)
        options = [lambda v: abs(v), lax.square]
        if x.dtype.kind != "u":
            options.append(lax.neg)
        if x.is_float and x.is_exact:
            options += [lax.floor, lax.sign, lax.ceil, lambda v: lax.round(v * v.dtype.type(0.5))]
        elif not x.is_float:
            options += [lax.bitwise_not, lambda v: lax.shift_left(v, lax.full_like(v, 1)),
                        lax.population_count]
        return self.tamed(self.choice(options)(x.array), x.names, x.is_exact)

    def spread_to(self, x: Value, names: tuple[str, ...]) -> Any:
        """``x`` with the dimensions that it lacks, where its names are a subsequence."""
        dims, position = [], 0
        for name in x.names:
            while position < len(names) and names[position] != name and name != "1":
                position += 1
            if position >= len(names):
                return None
            dims.append(position)
            position += 1
        return lax.broadcast_in_dim(x.array, self.shape(names), dims)

    def partner(self, x: Value) -> Any:
        """Another value of the same dtype, brought to the shape of ``x``, and its exactness."""
        y = self.pick(lambda v: v.dtype == x.dtype)
        array = self.spread_to(y, x.names) if y is not None else None
        if array is None:
            return lax.full_like(x.array, 1 if x.dtype == BOOL else 2), True
        return array, y.is_exact

    def binary(self) -> Value | None:
        x = self.pick()
        y, y_exact = self.partner(x)
        is_exact = x.is_exact and y_exact
        if x.dtype == BOOL:
            return Value(self.choice([lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.ne])(
                x.array, y), x.names)
        options = [lax.add, lax.sub, lax.mul, lax.max, lax.min]
        if not x.is_float:
            options += [lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.div, lax.rem]
        elif is_exact:
            options.append(lambda v, w: lax.div(v, abs(w) + w.dtype.type(1)))
        chosen = self.choice(options)
        rounds = x.is_float and chosen is options[-1] and len(options) == 6
        if rounds:
            return self.rounded(chosen(x.array, y), x.names)
        return self.tamed(chosen(x.array, y), x.names, is_exact)

    def compare(self) -> Value | None:
        x = self.pick(lambda v: v.is_exact)
        if x is None:
            return None
        y, y_exact = self.partner(x)
        if not y_exact:
            return None
        return Value(self.choice([lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge])(x.array, y),
                     x.names)

    def select(self) -> Value | None:
        x = self.pick()
        y, y_exact = self.partner(x)
        which = self.pick(lambda v: v.dtype == BOOL and v.names == x.names)
        if which is not None:
            array = which.array
        elif x.names:
            array = lax.lt(lax.broadcasted_iota(np.int32, x.array.shape, len(x.names) - 1),
                           np.int32(2))
        else:
            return None
        return Value(lax.select(array, x.array, y), x.names, x.is_exact and y_exact)

    def convert(self) -> Value | None:
        x = self.pick()
        dtype = self.choice(DTYPES)
        if not x.is_exact and not (dtype.kind == "f" or dtype.name == "bfloat16"):
            return None
        return self.tamed(lax.convert_element_type(x.array, dtype), x.names, x.is_exact)

    def bitcast(self) -> Value | None:
        x = self.pick(lambda v: v.dtype.kind in "iu")
        if x is None:
            return None
        bits = 8 * x.dtype.itemsize
        kind = np.dtype(self.choice([f"int{bits}", f"uint{bits}"]))
        return self.tamed(lax.bitcast_convert_type(x.array, kind), x.names)

    def broadcast(self) -> Value | None:
        x = self.pick()
        places = [0] + [1] * len(x.names)
        names = list(x.names)
        for position in range(len(names), -1, -1):
            if self.chance(0.4):
                names.insert(position, self.choice("abcd1"))
        del places
        names = tuple(names)
        if self.elements(names) > MOST_ELEMENTS or len(names) > 7:
            return None
        array = self.spread_to(x, names)
        return None if array is None else Value(array, names, x.is_exact)

    def reshape(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1)
        if x is None:
            return None
        names = list(x.names)
        kind = self.choice(["merge", "insert", "squeeze", "flat"])
        if kind == "merge" and len(names) > 1:
            at = self.choice(range(len(names) - 1))
            pair = names[at:at + 2]
            names[at:at + 2] = [self.merged(pair)]
        elif kind == "insert" and len(names) < 7:
            names.insert(self.choice(range(len(names) + 1)), "1")
        elif kind == "squeeze":
            names = [name for name in names if name != "1"]
        else:
            names = [self.merged(names)]
        return Value(lax.reshape(x.array, self.shape(tuple(names))), tuple(names), x.is_exact)

    def merged(self, names: list[str]) -> str:
        wide = [name for name in names if name != "1"]
        if "0" in wide:
            return "0"
        if len(wide) <= 1:
            return wide[0] if wide else "1"
        name = "." + ".".join(x.strip(".") for x in wide)
        self.sizes[name] = math.prod(self.shape(tuple(wide)))
        return name

    def transpose(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 2)
        if x is None:
            return None
        order = [int(i) for i in self.draw.permutation(len(x.names))]
        return Value(lax.transpose(x.array, order), tuple(x.names[i] for i in order), x.is_exact)

    def reverse(self) -> Value | None:
        x = self.pick()
        dims = [dim for dim in range(len(x.names)) if self.chance(0.5)]
        return Value(lax.rev(x.array, dims), x.names, x.is_exact)

    def slice(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1)
        if x is None:
            return None
        starts, limits, steps, names = [], [], [], []
        for name in x.names:
            size, step = self.sizes[name], 1
            start, limit = 0, size
            if name not in "01" and self.chance(0.6):
                step = self.choice([1, 1, 2, 3])
                start = int(self.sizes_draw.integers(0, max(1, size - step)))
                low = min(size, start + step + 1)
                limit = int(self.sizes_draw.integers(low, size + 1))
                name = self.name(-(-(limit - start) // step))
            starts.append(start)
            limits.append(limit)
            steps.append(step)
            names.append(name)
        return Value(lax.slice(x.array, starts, limits, steps), tuple(names), x.is_exact)

    def pad(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1)
        if x is None:
            return None
        config, names = [], []
        for name in x.names:
            size, entry = self.sizes[name], (0, 0, 0)
            if self.chance(0.5):
                low, high = (int(sign * self.sizes_draw.integers(1, 3)) for sign in (
                    self.choice([-1, 0, 1, 1]), self.choice([-1, 0, 1, 1])))
                interior = self.choice([0, 0, 1, 2])
                total = low + high + size + max(0, size - 1) * interior
                if total < 0:
                    low = high = 0
                    total = size + max(0, size - 1) * interior
                entry = (low, high, interior)
                name = self.name(total)
            config.append(entry)
            names.append(name)
        fill = np.asarray(3, x.dtype) if x.dtype != BOOL else np.asarray(True)
        return Value(lax.pad(x.array, fill, config), tuple(names), x.is_exact)

    def concatenate(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1)
        if x is None:
            return None
        axis = self.choice(range(len(x.names)))
        parts = [x]
        for _ in range(self.choice([1, 1, 2])):
            y = self.pick(lambda v: v.dtype == x.dtype and len(v.names) == len(x.names) and all(
                a == b for dim, (a, b) in enumerate(zip(v.names, x.names, strict=True))
                if dim != axis))
            parts.insert(self.choice([0, 1]), y)
        names = list(x.names)
        names[axis] = self.name(sum(self.sizes[part.names[axis]] for part in parts))
        return Value(lax.concatenate([part.array for part in parts], axis), tuple(names),
                     all(part.is_exact for part in parts))

    def iota(self) -> Value | None:
        names = self.draw_names()
        dtype = self.choice([x for x in DTYPES if x != BOOL])
        if not names:
            return None
        return self.tamed(lax.broadcasted_iota(
            dtype, self.shape(names), self.choice(range(len(names)))), names)

    def axes(self, x: Value) -> list[int]:
        return [dim for dim in range(len(x.names)) if self.chance(0.5)] or [len(x.names) - 1]

    def reduce(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1)
        if x is None:
            return None
        axes = self.axes(x)
        kind = self.choice(["sum", "max", "min", "prod"])
        array = x.array
        if x.dtype == BOOL:
            kind = self.choice(["any", "all"])
        elif kind == "prod":
            if not x.is_exact:
                return None
            array = lax.min(array, lax.full_like(array, 1))
            array = lax.max(array, lax.full_like(array, 0 if x.dtype.kind == "u" else -1))
        elif kind in ("max", "min") and any(
                x.names[dim] == "0" or self.sizes[x.names[dim]] == 0 for dim in axes):
            kind = "sum"
        result = getattr(jnp, kind)(array, axis=tuple(axes))
        result = lax.convert_element_type(result, x.dtype)
        names = tuple(name for dim, name in enumerate(x.names) if dim not in axes)
        value = self.tamed(result, names, x.is_exact)
        if self.chance(0.5):        # and broadcast back
            kept = [dim for dim in range(len(x.names)) if dim not in axes]
            wide = lax.broadcast_in_dim(value.array, x.array.shape, kept)
            combine = lax.bitwise_xor if x.dtype == BOOL else self.choice([lax.add, lax.mul])
            self.values.append(value)
            return self.tamed(combine(wide, x.array), x.names, x.is_exact)
        return value

    def softmax(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1 and v.is_float and "0" not in v.names and all(
            self.sizes[name] for name in v.names))
        if x is None:
            return None
        axes = tuple(self.axes(x))
        if self.chance(0.5):
            shifted = x.array - jnp.max(x.array, axes, keepdims=True)
            powers = lax.exp(shifted)
            result = powers / jnp.sum(powers, axes, keepdims=True)
        else:
            centred = x.array - self.mean(x.array, axes)
            spread = jnp.mean(centred * centred, axes, keepdims=True)
            result = centred * lax.rsqrt(spread + x.dtype.type(1))
        return self.rounded(result, x.names)

    def argreduce(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1 and v.is_exact and v.dtype != BOOL)
        if x is None:
            return None
        axis = self.choice(range(len(x.names)))
        if not self.sizes[x.names[axis]]:
            return None
        kind = self.choice([lax.argmax, lax.argmin])
        names = (*x.names[:axis], *x.names[axis + 1:])
        return self.tamed(kind(x.array, axis, np.int32), names)

    def cumulative(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1 and v.dtype != BOOL)
        if x is None:
            return None
        kind = self.choice([lax.cumsum, lax.cummax, lax.cummin])
        return self.tamed(kind(x.array, self.choice(range(len(x.names))),
                               reverse=self.chance(0.5)), x.names, x.is_exact)

    def sort(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1 and v.is_exact)
        if x is None:
            return None
        return x._replace(array=lax.sort(x.array, dimension=self.choice(range(len(x.names)))))

    def dot(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1 and v.dtype != BOOL and v.dtype.kind != "u")
        if x is None:
            return None
        y = self.pick(lambda v: v.dtype == x.dtype and set(v.names) & set(x.names) - {"1", "0"}
                      and len(v.names) >= 1)
        if y is None:
            return None
        shared = [name for name in dict.fromkeys(x.names) if name in y.names
                  and name not in ("1", "0")]
        if not shared:
            return None
        roles = {name: self.choice(["contract", "batch", "free"]) for name in shared[1:]}
        roles[shared[0]] = "contract"
        contract = [name for name in shared if roles[name] == "contract"]
        batch = [name for name in shared if roles[name] == "batch"]
        numbers = tuple((tuple(map(x.names.index, names)), tuple(map(y.names.index, names)))
                        for names in (contract, batch))
        free = [name for dim, name in enumerate(x.names)
                if dim not in numbers[0][0] + numbers[1][0]]
        free += [name for dim, name in enumerate(y.names)
                 if dim not in numbers[0][1] + numbers[1][1]]
        names = (*batch, *free)
        if self.elements(names) > MOST_ELEMENTS or len(names) > 7:
            return None
        return self.tamed(lax.dot_general(x.array, y.array, numbers), names,
                          x.is_exact and y.is_exact)

    def take(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1)
        indices = self.pick(lambda v: v.dtype == np.int32 and len(v.names) <= 2)
        if x is None or indices is None:
            return None
        axis = self.choice(range(len(x.names)))
        if not self.sizes[x.names[axis]]:
            return None
        names = (*x.names[:axis], *indices.names, *x.names[axis + 1:])
        if self.elements(names) > MOST_ELEMENTS or len(names) > 7:
            return None
        mode = self.choice(["clip", "wrap", "fill"])
        fill = {"fill_value": 1} if mode == "fill" else {}
        return Value(jnp.take(x.array, indices.array, axis, mode=mode, **fill), names, x.is_exact)

    def scatter(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1 and v.dtype != BOOL)
        indices = self.pick(lambda v: v.dtype == np.int32 and len(v.names) == 1)
        if x is None or indices is None:
            return None
        updates = lax.full((*indices.array.shape, *x.array.shape[1:]), 1, x.dtype)
        method = self.choice(["add", "max", "min", "multiply", "set"])
        return self.tamed(getattr(x.array.at[indices.array], method)(updates), x.names, x.is_exact)

    def dynamic(self) -> Value | None:
        x = self.pick(lambda v: len(v.names) >= 1)
        index = self.pick(lambda v: v.dtype == np.int32 and not v.names)
        if x is None:
            return None
        place = (index or self.values[0]).array
        axis = self.choice(range(len(x.names)))
        size = self.sizes[x.names[axis]]
        if size < 2:
            return None
        taken = int(self.sizes_draw.integers(1 if size == 2 else 2, size + 1))
        piece = lax.dynamic_slice_in_dim(x.array, place, taken, axis)
        if self.chance(0.5):
            return Value(lax.dynamic_update_slice_in_dim(x.array, piece, 0, axis), x.names,
                         x.is_exact)
        names = list(x.names)
        names[axis] = self.name(taken)
        return Value(piece, tuple(names), x.is_exact)

    def loop(self) -> Value | None:
        x = self.pick(lambda v: v.is_exact and v.dtype != BOOL)
        if x is None:
            return None
        if x.names and self.chance(0.5):
            init = lax.full(x.array.shape[1:], 1, x.dtype)

            def body(carry: Any, row: Any) -> Any:
                carry = self.tamed(carry + row, x.names[1:]).array
                return carry, lax.max(carry, row)

            return self.tamed(lax.scan(body, init, x.array)[1], x.names)
        return Value(lax.fori_loop(
            0, 3, lambda i, c: self.tamed(c + c, x.names).array, x.array), x.names)

    OPERATIONS = (
        ("unary", 6), ("binary", 7), ("compare", 2), ("select", 2), ("convert", 4), ("bitcast", 1),
        ("broadcast", 3), ("reshape", 3), ("transpose", 3), ("reverse", 1), ("slice", 3),
        ("pad", 2), ("concatenate", 2), ("iota", 1), ("reduce", 6), ("softmax", 2),
        ("argreduce", 1), ("cumulative", 1), ("sort", 1), ("dot", 3), ("take", 2), ("scatter", 1),
        ("dynamic", 1), ("loop", 0.7))

    # --- the program ---
    def function(self, *arguments: Any) -> list[Any]:
        self.values = [Value(array, names) for array, names in zip(
            arguments, self.input_names, strict=True)]
        names, weights = zip(*self.OPERATIONS, strict=True)
        chances = np.array(weights) / sum(weights)
        count, made = self.choice([4, 6, 8, 10, 14, 20, 40]), 0
        for _ in range(4 * count):
            value = getattr(self, str(self.draw.choice(names, p=chances)))()
            if value is not None:
                self.values.append(value)
                made += 1
                if made == count:
                    break
        self.outputs = [self.values[-1]]
        self.outputs += [x for x in self.values[:-1] if self.chance(0.3)]
        return [x.array for x in self.outputs]


class RandomItem(Item):
    """A random program: exact results are compared bit for bit, the others to rounding."""

    builder: Builder
    seed: tuple[int, int]

    def noisy(self, number: int) -> list[np.ndarray]:
        """A result when every function that rounds is off by some more roundings."""
        with enable_x64(True):
            builder = Builder(*self.seed)
            builder.noise_draw = np.random.default_rng(number)
            return [np.asarray(x) for x in builder.function(*map(jnp.asarray, builder.inputs))]

    def compare(self, actual: list[Any], expected: list[Any]) -> None:
        noisy = None
        for number, (ours, theirs, value) in enumerate(
                zip(actual, expected, self.builder.outputs, strict=True)):
            ours, theirs = np.asarray(ours), np.asarray(theirs)
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), number
            if value.is_exact or not value.is_float:
                np.testing.assert_array_equal(ours, theirs, f"output {number}")
                continue
            unit = 32 * float(ml_dtypes.finfo(theirs.dtype).eps)
            a, e = ours.astype(np.float64), theirs.astype(np.float64)
            if np.all(np.abs(a - e) <= unit * (1 + np.abs(e))):
                continue
            noisy = noisy or [self.noisy(n) for n in range(4)]
            spread = max(np.abs(x[number].astype(np.float64) - e).max() for x in noisy)
            error = np.abs(a - e).max()
            assert error <= 8 * spread + unit, (
                f"output {number} is off by {error}, noise by {spread}")


def program(structure: int, assignment: int) -> RandomItem:
    """The program of a structure for one assignment of sizes."""
    with enable_x64(True):
        builder = Builder(structure, assignment)
        made = Program(maxjax.make_jaxpr(builder.function)(*builder.inputs))
    item = RandomItem(f"structure {structure}, assignment {assignment}", made,
                      [*made.consts, *builder.inputs])
    item.builder = builder
    item.seed = structure, assignment
    return item


def programs(structures: range, assignments: range) -> list[Item]:
    return [program(structure, assignment).plan()
            for structure in structures for assignment in assignments]


def default(structures: int) -> list[Item]:
    """Programs of the first structures, each for several assignments of sizes."""
    return programs(range(structures), range(ASSIGNMENTS))
