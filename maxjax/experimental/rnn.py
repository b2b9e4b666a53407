"""jax.experimental.rnn: LSTMs of several layers, in one or both directions, with packed weights.

JAX computes ``lstm`` with cuDNN, on GPUs alone, and ``lstm_ref`` anywhere. Here both are the same
program: loops over time, on every backend.

A cell (Hochreiter & Schmidhuber 1997, with forget gates) has the weights of four gates one below
the other: input, forget, cell, output.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from maxjax import lax, random
from maxjax import numpy as jnp
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.api import jit
from maxjax.nn import sigmoid

explain_missing_names(__name__)

_GATES = 4


def _shapes(input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
            ) -> list[tuple[tuple[int, ...], ...]]:
    """The shapes of the weights of each layer and direction, for inputs and for states."""
    directions = 2 if bidirectional else 1
    rows = _GATES * hidden_size
    return [((rows, input_size if layer == 0 else hidden_size * directions), (rows, hidden_size))
            for layer in range(num_layers) for _ in range(directions)]


def get_num_params_in_lstm(input_size: int, hidden_size: int, num_layers: int,
                           bidirectional: bool) -> int:
    """The number of weights.

    >>> rnn = jax.experimental.rnn
    >>> rnn.get_num_params_in_lstm(3, 4, num_layers=1, bidirectional=False)
    144
    """
    return sum(math.prod(shape) + shape[0]
               for shapes in _shapes(input_size, hidden_size, num_layers, bidirectional)
               for shape in shapes)


def init_lstm_weight(rng: Any, input_size: int, hidden_size: int, num_layers: int,
                     bidirectional: bool) -> Any:
    """Random weights, a float32 vector, uniform between plus and minus ``hidden_size ** -0.5``.

    >>> rnn = jax.experimental.rnn
    >>> rnn.init_lstm_weight(jax.random.key(0), 3, 4, num_layers=1, bidirectional=False).shape
    (144,)
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = math.sqrt(1 / hidden_size)
    return random.uniform(rng, (count,), jnp.float32, -bound, bound)


def unpack_lstm_weights(weights: Any, input_size: int, hidden_size: int, num_layers: int,
                        bidirectional: bool) -> tuple[Any, Any, Any, Any]:
    """The packed weights' parts: those of inputs, those of states, and the biases of both.

    Returns:
      Four dictionaries, from the number of a layer and direction (``2 * layer + direction``, or
      ``layer``) to an array of 4 * hidden_size rows.

    >>> rnn = jax.experimental.rnn
    >>> weights = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, False)
    >>> [part[0].shape for part in rnn.unpack_lstm_weights(weights, 3, 4, 1, False)]
    [(16, 3), (16, 4), (16,), (16,)]
    """
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    parts: tuple[dict[int, Any], ...] = ({}, {}, {}, {})
    position = 0
    for columns, (first, second) in ((slice(None), parts[:2]), (slice(1), parts[2:])):
        for number, pair in enumerate(shapes):
            for part, shape in zip((first, second), pair, strict=True):
                shape = shape[columns]
                size = math.prod(shape)
                part[number] = weights[position:position + size].reshape(shape)
                position += size
    return parts      # type: ignore[return-value]


def swap_lstm_gates(weights: Any, input_size: int, hidden_size: int, num_layers: int,
                    bidirectional: bool) -> Any:
    """The packed weights with the third and the fourth gate of each cell swapped.

    >>> rnn = jax.experimental.rnn
    >>> rnn.swap_lstm_gates(jnp.arange(16.), 1, 1, 1, False)
    Array([ 0.,  1.,  3.,  2.,  4.,  5.,  7.,  6.,  8.,  9., 11., 10., 12.,
           13., 15., 14.], dtype=float32)
    """
    parts = unpack_lstm_weights(jnp.asarray(weights), input_size, hidden_size, num_layers,
                                bidirectional)
    flat = []
    for first, second in (parts[:2], parts[2:]):
        for number in range(len(first)):
            for part in (first[number], second[number]):
                gates = jnp.split(part, _GATES)
                flat += [gates[gate].ravel() for gate in (0, 1, 3, 2)]
    return jnp.concatenate(flat)


def _states(x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, Any]:
    """The states h and c of a cell after each step of ``x`` (time, batch, features)."""
    # Without rank promotion, which an option can forbid.
    from_input = x @ w_ih.T + b_ih[None, None]

    def step(states: tuple[Any, Any], given: Any) -> tuple[Any, Any]:
        h, c = states
        into, forget, cell, out = jnp.split(given + h @ w_hh.T + b_hh[None], _GATES, axis=-1)
        c = sigmoid(forget) * c + sigmoid(into) * jnp.tanh(cell)
        h = sigmoid(out) * jnp.tanh(c)
        return (h, c), (h, c)

    return lax.scan(step, (h, c), from_input)[1]


def _reversed(x: Any, seq_lengths: Any) -> Any:
    """Each sequence of (time, batch, features) backwards; what follows it goes around."""
    times = jnp.arange(x.shape[0])[:, None]
    sources = (seq_lengths[None] - 1 - times) % x.shape[0]
    return jnp.take_along_axis(x, sources[..., None], axis=0)


@functools.partial(jit, static_argnums=(8, 9, 10, 11, 12))
def lstm_ref(x: Any, h_0: Any, c_0: Any, W_ih: dict[int, Any], W_hh: dict[int, Any],
             b_ih: dict[int, Any], b_hh: dict[int, Any], seq_lengths: Any, input_size: int,
             hidden_size: int, num_layers: int, dropout: float, bidirectional: bool
             ) -> tuple[Any, Any, Any]:
    """An LSTM, of weights that ``unpack_lstm_weights`` gives. Differentiable.

    Args:
      x: (batch, time, input_size).
      h_0, c_0: (layers and directions, batch, hidden_size), the states at first.
      seq_lengths: (batch,), of int32; results after a sequence's end are zero.
      dropout: must be zero.

    Returns:
      (batch, time, hidden_size * directions), the output; and the states after each sequence's
      last step, shaped as at first.

    Raises:
      NotImplementedError: ``dropout`` is not zero, or lengths are not of int32.

    >>> rnn = jax.experimental.rnn
    >>> weights = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, False)
    >>> state = jnp.zeros((1, 2, 4))
    >>> y, h, c = rnn.lstm_ref(
    ...     jnp.ones((2, 5, 3)), state, state, *rnn.unpack_lstm_weights(weights, 3, 4, 1, False),
    ...     seq_lengths=jnp.array([5, 3]), input_size=3, hidden_size=4, num_layers=1, dropout=0.,
    ...     bidirectional=False)
    >>> y.shape, h.shape, bool((y[1, 3:] == 0).all())
    ((2, 5, 4), (1, 2, 4), True)
    """
    if seq_lengths.dtype != jnp.int32:
        raise NotImplementedError("`seq_lengths` can only be int32.")
    if dropout != 0:
        raise NotImplementedError("Dropout not supported in LSTM reference because we cannot "
                                  "determine CUDNN dropout mask.")
    directions = 2 if bidirectional else 1
    values = jnp.transpose(x, (1, 0, 2))
    batch = jnp.arange(values.shape[1])
    within = (jnp.arange(values.shape[0])[:, None] < seq_lengths[None])[..., None]
    final = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            steps = _reversed(values, seq_lengths) if direction else values
            hidden, cells = _states(steps, h_0[number], c_0[number], W_ih[number], W_hh[number],
                                    b_ih[number], b_hh[number])
            final.append((hidden[seq_lengths - 1, batch], cells[seq_lengths - 1, batch]))
            hidden = jnp.where(within, hidden, 0)
            outputs.append(_reversed(hidden, seq_lengths) if direction else hidden)
        values = jnp.concatenate(outputs, axis=-1)
    h_n, c_n = [jnp.stack(states) for states in zip(*final, strict=True)]
    return jnp.transpose(values, (1, 0, 2)), h_n, c_n


def lstm(x: Any, h_0: Any, c_0: Any, weights: Any, seq_lengths: Any, input_size: int,
         hidden_size: int, num_layers: int, dropout: float, bidirectional: bool,
         precision: Any = None) -> tuple[Any, Any, Any]:
    """An LSTM of packed weights: ``lstm_ref`` of ``unpack_lstm_weights``.

    Args:
      x, h_0, c_0, seq_lengths, dropout: see ``lstm_ref``.
      weights: (get_num_params_in_lstm(...),).
      precision: accepted.

    Raises:
      NotImplementedError: see ``lstm_ref``.

    >>> rnn = jax.experimental.rnn
    >>> weights = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, False)
    >>> state = jnp.zeros((1, 2, 4))
    >>> rnn.lstm(jnp.ones((2, 5, 3)), state, state, weights, jnp.array([5, 3]), 3, 4, 1, 0.,
    ...          False)[0].shape
    (2, 5, 4)
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return lstm_ref(x, h_0, c_0, *parts, seq_lengths, input_size, hidden_size, num_layers,
                    dropout, bidirectional)
