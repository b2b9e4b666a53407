"""``jax_debug_key_reuse``: keys that are used twice are found as JAX finds them."""

import jax
import numpy as np
import pytest

import maxjax
import maxjax.errors

LIBRARIES = maxjax, jax


def split_loop(j, k):
    return j.lax.while_loop(lambda c: c[1] < 3, lambda c: (
        lambda ks: (ks[0], c[1] + j.random.uniform(ks[1])))(j.random.split(c[0])), (k, 0.0))[1]


def split_scan(j, k):
    return j.lax.scan(lambda k, _: (
        lambda ks: (ks[0], j.random.uniform(ks[1])))(j.random.split(k)), k, None, length=2)[1].sum()


def chosen(j, k):
    return j.lax.cond(True, j.random.uniform, j.random.uniform, k)


def draw(name, *args):
    return lambda j, k: getattr(j.random, name)(k, *args)


# Functions of a library and a key.
USES = {
    "uniform": draw("uniform"), "normal": draw("normal"), "bits": draw("bits"),
    "split": draw("split"), "fold_in": draw("fold_in", 1), "key_data": draw("key_data"),
    "gamma": draw("gamma", 1.0), "permutation": draw("permutation", 3),
    "categorical": draw("categorical", np.ones(3, np.float32)),
    "binomial": draw("binomial", 5.0, 0.5), "bernoulli": draw("bernoulli"),
    "choice": draw("choice", 5, (2,), False), "clone": draw("clone"),
    "of a clone": lambda j, k: j.random.uniform(j.random.clone(k)),
    "of a copy": lambda j, k: j.random.uniform(j.numpy.copy(k)),
    "reshaped": lambda j, k: j.random.uniform(k.reshape(1)[0]),
    "compared": lambda j, k: k == k,
    "shown": lambda j, k: repr(k),
    "jit": lambda j, k: j.jit(j.random.uniform)(k),
    "twice in jit": lambda j, k: j.jit(lambda k: (j.random.uniform(k), j.random.uniform(k)))(k),
    "split and used in jit": lambda j, k: j.jit(
        lambda k: (j.random.split(k), j.random.uniform(k)))(k),
    "folded and used in jit": lambda j, k: j.jit(
        lambda k: (j.random.fold_in(k, 1), j.random.uniform(k)))(k),
    "a clone in jit": lambda j, k: j.jit(
        lambda k: (j.random.uniform(j.random.clone(k)), j.random.uniform(k)))(k),
    "jit in jit": lambda j, k: j.jit(
        lambda k: j.jit(j.random.uniform)(k) + j.random.bits(k))(k),
    "returned by jit": lambda j, k: j.random.uniform(j.jit(lambda k: k)(k)),
    "used and returned by jit": lambda j, k: j.random.uniform(
        j.jit(lambda k: (j.random.uniform(k), k))(k)[1]),
    "closed over": lambda j, k: j.jit(lambda: j.random.uniform(k))(),
    "slices": lambda j, k: [j.random.uniform(x) for x in (lambda ks: (ks[0], ks[1]))(
        j.random.split(k))],
    "a slice twice": lambda j, k: (lambda ks: (j.random.uniform(ks[0]), j.random.uniform(ks[0])))(
        j.random.split(k)),
    "a slice and all": lambda j, k: (lambda ks: (ks[:2], j.vmap(j.random.uniform)(ks)))(
        j.random.split(k, 3)),
    "other slices": lambda j, k: (lambda ks: (ks[:2], ks[2]))(j.random.split(k, 3)),
    "unpacked": lambda j, k: (lambda a, b: (j.random.uniform(a), j.random.uniform(b)))(
        *j.random.split(k)),
    "unpacked twice": lambda j, k: (lambda ks: ([*ks], [*ks]))(j.random.split(k)),
    "a slice twice in jit": lambda j, k: j.jit(lambda k: (
        lambda ks: (j.random.uniform(ks[0]), j.random.uniform(ks[0])))(j.random.split(k)))(k),
    "slices in jit": lambda j, k: j.jit(lambda k: (
        lambda ks: (j.random.uniform(ks[0]), j.random.uniform(ks[1])))(j.random.split(k)))(k),
    "an index in jit": lambda j, k: j.jit(lambda k, i: (
        lambda ks: (j.random.uniform(ks[i]), j.random.uniform(ks[i])))(j.random.split(k)))(k, 0),
    "vmap": lambda j, k: j.vmap(j.random.uniform)(j.random.split(k, 3)),
    "vmap of another": lambda j, k: j.vmap(lambda x: j.random.uniform(k) + x)(j.numpy.ones(2)),
    "the same keys mapped twice": lambda j, k: (lambda ks: (
        j.vmap(j.random.uniform)(ks), j.vmap(j.random.uniform)(ks)))(j.random.split(k)),
    "concatenated": lambda j, k: j.vmap(j.random.uniform)(j.numpy.concatenate(
        [j.random.split(k), j.random.split(j.random.key(1))])),
    "while": split_loop, "scan": split_scan, "cond": chosen,
    "while twice": lambda j, k: j.jit(lambda k: split_loop(j, k) + split_loop(j, k))(k),
    "scan twice": lambda j, k: j.jit(lambda k: split_scan(j, k) + split_scan(j, k))(k),
    "cond twice": lambda j, k: j.jit(lambda k: chosen(j, k) + chosen(j, k))(k),
    "one branch": lambda j, k: j.lax.cond(True, j.random.uniform, lambda k: 1.0, k),
    "no branch": lambda j, k: j.lax.cond(True, lambda k: 2.0, lambda k: 1.0, k),
    "twice in a branch": lambda j, k: j.lax.cond(
        True, lambda k: j.random.uniform(k) + j.random.uniform(k), lambda k: 1.0, k),
    "keys of branches": lambda j, k: j.random.uniform(j.lax.cond(
        True, lambda k: j.random.split(k)[0], lambda k: k, k)),
    "switch": lambda j, k: j.lax.switch(
        1, [j.random.uniform, lambda k: 1.0 + j.random.uniform(k), lambda k: 0.0], k),
    "keys of a scan": lambda j, k: j.vmap(j.random.uniform)(j.lax.scan(
        lambda k, _: tuple(j.random.split(k)), k, None, length=3)[1]),
    "the carry of a scan": lambda j, k: j.lax.scan(
        lambda k, _: (k, j.random.uniform(k)), k, None, length=2),
    "a constant of a scan": lambda j, k: j.lax.scan(
        lambda c, _: (c, j.random.uniform(k)), 0.0, None, length=2),
    "what a scan goes through": lambda j, k: j.lax.scan(
        lambda c, k: (c, j.random.uniform(k)), 0.0, j.random.split(k)),
    "map": lambda j, k: j.lax.map(j.random.uniform, j.random.split(k, 4)),
    "a carry of a while": lambda j, k: j.lax.while_loop(
        lambda c: c[1] < 3, lambda c: (c[0], c[1] + j.random.uniform(c[0])), (k, 0.0)),
    "a constant of a while": lambda j, k: j.lax.while_loop(
        lambda c: c < 3, lambda c: c + j.random.uniform(k), 0.0),
    "the condition of a while": lambda j, k: j.lax.while_loop(
        lambda c: j.random.uniform(c[0]) < 3, lambda c: c, (k, 0.0)),
    "folded in a fori_loop": lambda j, k: j.lax.fori_loop(0, 3, lambda i, c: (
        j.random.split(c[0])[0], c[1] + j.random.uniform(j.random.fold_in(c[0], i))), (k, 0.0)),
    "grad": lambda j, k: j.grad(lambda x, k: x * j.random.uniform(k))(1.0, k),
    "grad of two": lambda j, k: j.grad(
        lambda x, k: x * j.random.uniform(k) * j.random.uniform(k))(1.0, k),
    "grad of jit": lambda j, k: j.grad(j.jit(lambda x, k: x * j.random.uniform(k)))(1.0, k),
    "grad of checkpoint": lambda j, k: j.jit(j.grad(lambda x, k: j.checkpoint(
        lambda x, k: j.numpy.sin(x * j.random.uniform(k)))(x, k)))(1.0, k),
    "custom_jvp": lambda j, k: j.jit(lambda x, k: j.nn.relu(
        x * j.random.uniform(k) * j.random.uniform(k)))(1.0, k),
    "wrapped": lambda j, k: [j.random.uniform(j.random.wrap_key_data(j.random.key_data(k)))
                             for _ in range(2)],
}


def outcome(j, *uses):
    """The error of one after the other on one key, without where JAX's pages explain it, and
    without the text of an equation."""
    with j.debug_key_reuse(True):
        key = j.random.key(0)
        try:
            for use in uses:
                use(j, key)
        except TypeError as error:
            assert type(error).__name__ == "KeyReuseError"
            return str(error).partition("\nSee ")[0].partition("\n  eqn=")[0]
    return None


@pytest.mark.parametrize("name", USES)
def test_as_in_jax(name):
    use, uniform = USES[name], USES["uniform"]
    for uses in ([use], [use, use], [use, uniform], [uniform, use]):
        assert outcome(maxjax, *uses) == outcome(jax, *uses)


def test_some_are_found():
    assert [outcome(maxjax, USES[name], USES[name]) for name in ("uniform", "bits", "clone")] == [
        "Previously-consumed key passed to jit-compiled function at index 0",
        "Previously-consumed key passed to random_bits at index 0", None]


def test_chosen_and_stacked_keys_are_new():
    """JAX holds them for consumed, whatever was done with the keys before."""
    uniform = maxjax.random.uniform
    with maxjax.debug_key_reuse(True):
        a, b = maxjax.random.split(maxjax.random.key(0))
        maxjax.vmap(uniform)(maxjax.numpy.stack([a, b]))
        uniform(maxjax.numpy.where(True, a, b))
        with pytest.raises(maxjax.errors.KeyReuseError, match="jit-compiled function at index"):
            uniform(b)
        with pytest.raises(maxjax.errors.KeyReuseError, match="concatenate at index 0"):
            maxjax.numpy.stack([a, b])


def test_raw_keys_are_not_followed():
    for j in LIBRARIES:
        with j.debug_key_reuse(True):
            key = j.random.PRNGKey(0)
            assert j.random.uniform(key) == j.random.uniform(key)


def test_the_option_of_the_process():
    key = maxjax.random.key(0)
    maxjax.config.update("jax_debug_key_reuse", True)
    try:
        maxjax.random.uniform(key)
        with pytest.raises(maxjax.errors.KeyReuseError):
            maxjax.random.uniform(key)
        with maxjax.debug_key_reuse(False):
            maxjax.random.uniform(key)
    finally:
        maxjax.config.update("jax_debug_key_reuse", False)
    maxjax.random.uniform(key)


def test_other_keys_in_the_same_place_are_not_consumed():
    """What is known of an array goes with it."""
    with maxjax.debug_key_reuse(True):
        for seed in range(50):
            maxjax.random.uniform(maxjax.random.key(seed))


def test_a_clone_is_an_operation():
    def clone(j):
        return str(j.make_jaxpr(j.random.clone)(j.random.key(0)))

    assert clone(maxjax) == clone(jax)
    key = maxjax.random.key(1)
    assert maxjax.random.clone(key) == key and maxjax.jit(maxjax.random.clone)(key) == key
    keys = maxjax.random.split(key, 3)
    assert maxjax.numpy.all(maxjax.vmap(maxjax.random.clone)(keys) == keys)
    raw = maxjax.random.PRNGKey(0)
    np.testing.assert_array_equal(maxjax.random.clone(raw), jax.random.clone(
        jax.random.PRNGKey(0)))
