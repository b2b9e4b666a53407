# tolerance: 1e-3 (training amplifies the rounding)
"""Beam search over a trained sequence-to-sequence model: attention, ends of sentences, lengths in the score.

A recurrent encoder and a decoder that attends learn to spell numbers out; the search is a while loop with a
pool of finished sentences, stops when none that is unfinished can win, and is batched by vmap. Checked with
keys 0 and 1 and NumPy's seeds 0 to 49, to a relative 1e-3: losses, scores of beams and of the same
sentences at once; sentences, their lengths and numbers of steps exactly.
"""
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random

WORDS = ["<pad>", "<go>", "<end>", "and", "hundred", *"one two three four five six seven eight nine".split(),
         *"ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(),
         *"twenty thirty forty fifty sixty seventy eighty ninety".split()]
GO, END, WIDTH, LONGEST, DIGITS, BATCH = 1, 2, 48, 8, 3, 64


def spelt(number):
    words = []
    hundreds, rest = divmod(number, 100)
    if hundreds:
        words += [WORDS[4 + hundreds], "hundred"] + ["and"] * (rest > 0)
    if rest >= 20:
        words.append(WORDS[22 + rest // 10])
        rest %= 10
    if rest:
        words.append(WORDS[4 + rest])
    found = [WORDS.index(word) for word in words] + [END]
    return found + [0] * (LONGEST - len(found))


def batch(seed):
    numbers = np.random.default_rng(seed).integers(1, 1000, BATCH)
    digits = numbers[:, None] // 10 ** np.arange(DIGITS)[::-1] % 10
    return jnp.asarray(digits), jnp.array([spelt(int(n)) for n in numbers])


def init(key):
    keys = iter(random.split(key, 16))
    dense = lambda m, n: random.normal(next(keys), (m, n)) * m**-0.5
    cell = lambda: {"gates": dense(2 * WIDTH, 2 * WIDTH), "new": dense(2 * WIDTH, WIDTH)}
    return {"digits": dense(10, WIDTH) * 2, "words": dense(len(WORDS), WIDTH) * 4, "forward": cell(),
            "backward": cell(), "decoder": cell(), "keys": dense(2 * WIDTH, WIDTH),
            "start": dense(2 * WIDTH, WIDTH), "mix": dense(3 * WIDTH, WIDTH)}


def gru(cell, h, x):
    keep, reset = jnp.split(jax.nn.sigmoid(jnp.concatenate([h, x]) @ cell["gates"] + 1), 2)
    return keep * h + (1 - keep) * jnp.tanh(jnp.concatenate([reset * h, x]) @ cell["new"])


def encode(params, digits):
    x, nothing = params["digits"][digits], jnp.zeros(WIDTH)
    step = lambda cell: lambda h, x: (gru(params[cell], h, x),) * 2
    last, ahead = lax.scan(step("forward"), nothing, x)
    first, back = lax.scan(step("backward"), nothing, x, reverse=True)
    return jnp.concatenate([ahead, back], 1), jnp.tanh(jnp.concatenate([last, first]) @ params["start"])


def decode(params, states, h, word):
    """One word: log-probabilities of the next, and the state."""
    h = gru(params["decoder"], h, params["words"][word])
    shares = jax.nn.softmax(states @ params["keys"] @ h / WIDTH**0.5)
    seen = jnp.tanh(jnp.concatenate([h, shares @ states]) @ params["mix"])
    return jax.nn.log_softmax(params["words"] @ seen), h


def score(params, digits, words):
    states, h = encode(params, digits)

    def step(carry, word):
        h, before = carry
        chances, h = decode(params, states, h, before)
        return (h, word), jnp.where(word > 0, chances[word], 0)
    return lax.scan(step, (h, jnp.int32(GO)), words)[1].sum()


@jax.jit
def train(params, moments, n, digits, words):
    loss, grads = jax.value_and_grad(lambda params: -jax.vmap(score, (None, 0, 0))(params, digits, words).sum()
                                     / (words > 0).sum())(params)
    moments = jax.tree.map(lambda m, g: (0.9 * m[0] + 0.1 * g, 0.99 * m[1] + 0.01 * g * g), moments, grads,
                           is_leaf=lambda m: isinstance(m, tuple))
    rate = 0.01 * jnp.minimum(1, (50 - n) / 20)
    params = jax.tree.map(lambda p, m: p - rate * m[0] / (1 - 0.9 ** (n + 1)) / (
        jnp.sqrt(m[1] / (1 - 0.99 ** (n + 1))) + 1e-5), params, moments)
    return params, moments, loss


class Search(NamedTuple):
    n: jax.Array
    words: jax.Array        # (beam, LONGEST) of those that go on
    scores: jax.Array
    h: jax.Array
    done: jax.Array         # (beam, LONGEST) of those that ended, the best first
    done_scores: jax.Array


@functools.partial(jax.jit, static_argnames=("beam", "power"))
def search(params, digits, beam, power=0.6):
    states, h = encode(params, digits)
    scaled = lambda score, length: score / ((5 + length) / 6) ** power

    def goes_on(s):
        hope = scaled(s.scores.max(), LONGEST)
        return (s.n < LONGEST) & (hope > s.done_scores.min())

    def step(s):
        before = jnp.where(s.n == 0, GO, s.words[:, s.n - 1])
        chances, h = jax.vmap(decode, (None, None, 0, 0))(params, states, s.h, before)
        totals, flat = lax.top_k((s.scores[:, None] + chances).ravel(), 2 * beam)
        parents, words = jnp.divmod(flat, len(WORDS))
        longer = s.words[parents].at[:, s.n].set(words)
        ended = jnp.where(words == END, scaled(totals, s.n + 1.0), -jnp.inf)
        done_scores, which = lax.top_k(jnp.concatenate([s.done_scores, ended]), beam)
        going, kept = lax.top_k(jnp.where(words == END, -jnp.inf, totals), beam)
        done = jnp.concatenate([s.done, longer])[which]
        return Search(s.n + 1, longer[kept], going, h[parents[kept]], done, done_scores)
    none = jnp.zeros((beam, LONGEST), jnp.int32)
    low, h = jnp.full(beam, -jnp.inf), jnp.broadcast_to(h, (beam, WIDTH))
    return lax.while_loop(goes_on, step, Search(0, none, low.at[0].set(0.0), h, none, low))


params = init(random.key(0))
moments = jax.tree.map(lambda p: (jnp.zeros_like(p),) * 2, params)
for n in range(50):
    params, moments, loss = train(params, moments, n, *batch(n))
    if n % 10 == 9:
        print("step", n + 1, "loss", float(loss))
say = lambda words: " ".join(WORDS[w] for w in words if w > END)
digits, wanted = batch(1000)
for beam in (1, 4):
    found = jax.vmap(functools.partial(search, params, beam=beam))(digits)
    right = (found.done[:, 0] == wanted).all(1).sum()
    print("beam", beam, "right", int(right), "score", float(found.done_scores[:, 0].mean()))
    print("steps", found.n.tolist())
for number in range(3):
    print("".join(map(str, digits[number].tolist())), [say(words) for words in np.asarray(found.done[number, :2])],
          found.done_scores[number, :2].tolist())
best = found.done[:, 0]
lengths = (best > 0).sum(1)
scores = jax.jit(jax.vmap(score, (None, 0, 0)))(params, digits, best) / ((5 + lengths) / 6) ** 0.6
print("scored at once", bool(jnp.allclose(scores, found.done_scores[:, 0], atol=1e-4)), scores[:4].tolist())
print("lengths", jnp.bincount(lengths, length=9).tolist(), "without a reward",
      jax.vmap(lambda d: search(params, d, 4, 0.0).done_scores[0])(digits[:4]).tolist())
