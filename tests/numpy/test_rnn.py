"""``jax.experimental.rnn`` against real JAX, whose CPU backend has ``lstm_ref`` alone."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.experimental import rnn as theirs

import maxjax
from maxjax.experimental import rnn as ours

SIZES = [(layers, bidirectional) for layers in (1, 2, 3) for bidirectional in (False, True)]
BATCH, TIME, INPUT, HIDDEN = 3, 5, 3, 4
LENGTHS = np.array([5, 3, 1], np.int32)


def operands(layers, bidirectional):
    rng = np.random.default_rng(layers)
    count = ours.get_num_params_in_lstm(INPUT, HIDDEN, layers, bidirectional)
    assert count == theirs.get_num_params_in_lstm(INPUT, HIDDEN, layers, bidirectional)
    states = (layers * (1 + bidirectional), BATCH, HIDDEN)
    return [rng.normal(size=shape).astype(np.float32) for shape in (
        (BATCH, TIME, INPUT), states, states, (count,))]


def reference(library, x, h, c, weights, layers, bidirectional, lengths=LENGTHS, dropout=0.):
    rnn = ours if library is maxjax else theirs
    parts = rnn.unpack_lstm_weights(weights, INPUT, HIDDEN, layers, bidirectional)
    return rnn.lstm_ref(x, h, c, *parts, library.numpy.asarray(lengths), INPUT, HIDDEN, layers,
                        dropout, bidirectional)


def weighed(results):
    return sum((result * (n + 1)).sum() for n, result in enumerate(results))


def close(actual, expected):
    for mine, other in zip(actual, expected, strict=True):
        assert mine.dtype == other.dtype
        expected_values = np.asarray(other)
        np.testing.assert_allclose(np.asarray(mine), expected_values, rtol=1e-5,
                                   atol=2e-6 * np.abs(expected_values).max())


@pytest.mark.parametrize("layers,bidirectional", SIZES)
def test_an_lstm_gives_what_jax_gives(layers, bidirectional):
    values = operands(layers, bidirectional)
    expected = reference(jax, *map(jax.numpy.asarray, values), layers, bidirectional)
    values = [maxjax.numpy.asarray(value) for value in values]
    close(reference(maxjax, *values, layers, bidirectional), expected)
    close(ours.lstm(*values, LENGTHS, INPUT, HIDDEN, layers, 0., bidirectional), expected)


@pytest.mark.parametrize("layers,bidirectional", SIZES[1:4])
def test_gradients(layers, bidirectional):
    values = operands(layers, bidirectional)

    def gradients(library):
        return library.jit(library.grad(
            lambda *args: weighed(reference(library, *args, layers, bidirectional)),
            (0, 1, 2, 3)))(*map(library.numpy.asarray, values))

    close(gradients(maxjax), gradients(jax))


@pytest.mark.parametrize("lengths", [[0, 9, 2], [5, 5, 5]])
def test_sequences_end_at_their_lengths(lengths):
    values = operands(2, True)
    lengths = np.array(lengths, np.int32)
    close(reference(maxjax, *values, 2, True, lengths), reference(jax, *values, 2, True, lengths))


@pytest.mark.parametrize("layers,bidirectional", SIZES)
def test_weights_are_unpacked_as_in_jax(layers, bidirectional):
    count = ours.get_num_params_in_lstm(INPUT, HIDDEN, layers, bidirectional)
    numbers = np.arange(count, dtype=np.float32)
    sizes = INPUT, HIDDEN, layers, bidirectional
    mine, other = (rnn.unpack_lstm_weights(numbers, *sizes) for rnn in (ours, theirs))
    for part, expected in zip(mine, other, strict=True):
        assert part.keys() == expected.keys()
        for number, array in part.items():
            np.testing.assert_array_equal(array, expected[number])
    np.testing.assert_array_equal(ours.swap_lstm_gates(numbers, *sizes),
                                  theirs.swap_lstm_gates(numbers, *sizes))
    np.testing.assert_array_equal(ours.init_lstm_weight(maxjax.random.key(3), *sizes),
                                  theirs.init_lstm_weight(jax.random.key(3), *sizes))


@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"lengths": np.array([1., 2, 3])},
                                     {"lengths": np.array([1, 2, 3], np.int8)}])
def test_errors_are_those_of_jax(options):
    values = operands(1, False)
    messages = []
    for library in (maxjax, jax):
        with pytest.raises(NotImplementedError) as caught:
            reference(library, *values, 1, False, **options)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
