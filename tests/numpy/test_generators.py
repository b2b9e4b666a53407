"""Generators that functions define, the rare ones, and generators with a state, beside JAX's."""

from __future__ import annotations

from typing import Any

import jax
import jax.experimental.random
import jax.extend.random
import numpy as np
import pytest

import maxjax
import maxjax.experimental.random
import maxjax.extend.random


def counting(j: Any, key_shape: tuple[int, ...]) -> Any:
    """A generator of keys that count."""
    np_, words = j.numpy, int(np.prod(key_shape))

    def split(key: Any, shape: tuple[int, ...]) -> Any:
        steps = np_.arange(words * int(np.prod(shape)), dtype="uint32")
        return key + steps.reshape(*shape, *key_shape)

    return j.extend.random.define_prng_impl(
        key_shape=key_shape, name="counting", tag="cnt",
        seed=lambda n: np_.full(key_shape, n).astype("uint32"), split=split,
        random_bits=lambda key, width, shape: np_.full(
            shape, key.sum() * np.uint32(0x9E3779B1)).astype(f"uint{width}"),
        fold_in=lambda key, n: key * 3 + n)


GENERATORS: dict[str, Any] = {
    **{name: (lambda j, name=name: name)
       for name in ("philox2x32", "philox4x32", "threefry4x32")},
    "defined": lambda j: counting(j, (2,)),
    "matrices of words": lambda j: counting(j, (2, 3)),
}
USES: dict[str, Any] = {
    "bits": lambda j, k: [j.random.bits(k, (2, 3), dtype) for dtype in (
        "uint8", "uint16", "uint32")],
    "split": lambda j, k: j.random.key_data(j.random.split(k, (2, 3))),
    "fold_in": lambda j, k: j.random.key_data(j.random.fold_in(k, 7)),
    "normal": lambda j, k: j.random.normal(k, (5,)),
    "integers": lambda j, k: j.random.randint(k, (5,), -3, 100),
    "permutation": lambda j, k: j.random.permutation(k, 5),
    "raw": lambda j, k: j.random.wrap_key_data(
        j.random.key_data(k)[None], impl=j.random.key_impl(k)).shape,
    "vmap": lambda j, k: j.vmap(lambda k: j.random.uniform(k, (2,)))(j.random.split(k, 3)),
    "vmap of split": lambda j, k: j.random.key_data(j.vmap(
        lambda k, n: j.random.fold_in(j.random.split(k)[1], n))(
            j.random.split(k, 3), j.numpy.arange(3))),
    "equal": lambda j, k: j.random.split(k, 3) == j.random.split(k, 3)[::-1],
    "scan": lambda j, k: j.lax.scan(
        lambda k, _: (j.random.split(k, 1)[0], j.random.uniform(k)), k, None, length=3)[1],
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("generator", GENERATORS)
def test_generators_draw_as_jax_s(generator: str, use: str, jitted: bool) -> None:
    def answer(j: Any) -> Any:
        key = j.random.key(2 ** 30 + 5, impl=GENERATORS[generator](j))
        run = j.jit(lambda k: USES[use](j, k)) if jitted else lambda k: USES[use](j, k)
        return j.tree.leaves(run(key))

    for ours, theirs in zip(answer(maxjax), answer(jax), strict=True):
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None)
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("generator", GENERATORS)
def test_generators_are_shown_as_jax_s(generator: str) -> None:
    ours, theirs = (j.random.key(3, impl=GENERATORS[generator](j)) for j in (maxjax, jax))
    assert repr(ours) == repr(theirs) and str(ours.dtype) == str(theirs.dtype)
    assert str(maxjax.random.key_impl(ours)) == str(jax.random.key_impl(theirs))
    assert repr(maxjax.random.split(ours)) == repr(jax.random.split(theirs))


@pytest.mark.parametrize("generator", ["philox2x32", "philox4x32", "threefry4x32"])
def test_wide_seeds_and_bits(generator: str) -> None:
    def answer(j: Any) -> Any:
        with j.enable_x64(True):
            key = j.random.key(2 ** 40 + 3, impl=generator)
            return np.asarray(j.random.key_data(key)), np.asarray(j.random.bits(
                key, (3,), "uint64")), np.asarray(j.random.key_data(j.random.key(
                    -3, impl=generator)))

    for ours, theirs in zip(answer(maxjax), answer(jax), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_two_generators_of_one_name_have_different_keys() -> None:
    first, second = (maxjax.random.key(0, impl=counting(maxjax, (2,))) for _ in range(2))
    assert first.dtype != second.dtype
    with pytest.raises(ValueError, match="no available implicit dtype promotion"):
        first == second     # noqa: B015


def test_defined_generators_need_keys_of_their_shape() -> None:
    wrong = maxjax.extend.random.define_prng_impl(
        key_shape=(3,), seed=lambda n: maxjax.numpy.zeros(2, "uint32"), split=None,
        random_bits=None, fold_in=None)
    with pytest.raises(TypeError, match="needs keys of shape"):
        maxjax.random.key(0, impl=wrong)


# --- generators with a state ----------------------------------------------------------------------

STATEFUL: dict[str, Any] = {
    "draws": lambda j, rng: [rng.uniform(), rng.normal(2., 3., (2,)), rng.random(3),
                             rng.integers(5), rng.integers(-2, 9, (4,), dtype="int16")],
    "of parameters": lambda j, rng: [rng.uniform(1, j.numpy.arange(2., 4.)),
                                     rng.normal(j.numpy.zeros((2, 1)), j.numpy.ones(3))],
    "keys": lambda j, rng: [j.random.key_data(k) for k in (
        rng.key(), rng.key(3), rng.key((2, 1)))],
    "spawn": lambda j, rng: [child.uniform() for child in rng.spawn(2)],
    "split": lambda j, rng: j.vmap(lambda rng, x: x + rng.uniform())(
        rng.split(3), j.numpy.zeros(3)),
    "jit": lambda j, rng: [j.jit(rng.uniform)(), j.jit(lambda rng: rng.normal())(rng),
                           rng.uniform()],
    "scan": lambda j, rng: j.lax.scan(
        lambda c, _: (c + rng.uniform(), rng.uniform()), 0., None, length=3),
    "made under jit": lambda j, rng: j.jit(
        lambda: j.experimental.random.stateful_rng(4, impl="rbg").uniform())(),
}


@pytest.mark.parametrize("use", STATEFUL)
def test_stateful_generators_draw_as_jax_s(use: str) -> None:
    def answer(j: Any) -> Any:
        return j.tree.leaves(STATEFUL[use](j, j.experimental.random.stateful_rng(1701)))

    for ours, theirs in zip(answer(maxjax), answer(jax), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=2e-6)


REFUSED: dict[str, Any] = {
    "no seed": lambda j, random: j.jit(lambda: random.stateful_rng().uniform())(),
    "split": lambda j, random: random.stateful_rng(0).split(2).uniform(),
    "no key": lambda j, random: random.StatefulPRNG(j.numpy.zeros(2), j.new_ref(0)),
    "no reference": lambda j, random: random.StatefulPRNG(j.random.key(0), 1),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_stateful_generators_refuse(case: str) -> None:
    messages = []
    for j in (maxjax, jax):
        with pytest.raises((TypeError, ValueError)) as caught:
            REFUSED[case](j, j.experimental.random)
        messages.append((caught.type, str(caught.value)))
    assert messages[0] == messages[1]


def test_without_a_seed_generators_differ() -> None:
    first, second = (maxjax.experimental.random.stateful_rng() for _ in range(2))
    assert (maxjax.random.key_data(first.key()) != maxjax.random.key_data(second.key())).any()
