# tolerance: 2e-3 (training amplifies the rounding)
# absolute: 2e-5 (a gradient near zero)
"""Protein design: a message-passing network reads a backbone, and writes a sequence for it.

Residues are nodes, joined with their nearest ones; decoding goes in a random order. Checked with NumPy's
seeds 0 to 39 and keys 0 to 3, to a relative 2e-3: geometry, losses, recovery, scores and a gradient by
coordinates; neighbours and designed sequences exactly.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.example_libraries import optimizers

LETTERS, LENGTH, NEAR, WIDTH, BATCH = "ACDEFGHIKLMNPQRSTVWY", 40, 10, 32, 6
TORSIONS = np.radians([[-45, 180, -60], [130, 180, -120], [150, 180, -75]])     # psi, omega, phi
start, update, parameters = optimizers.adam(3e-3, eps=1e-4)
SETS = [["AELKQR", "ALMF"], ["TKRSYE", "VIFY"], ["GNDPSG", "GPAC"]]


@jax.jit
def backbone(torsions):
    """Places N, CA and C one after the other by bond, angle and torsion: (residues, 3, 3)."""
    def place(last, kind):
        (a, b, c), (bond, angle, torsion) = last, kind
        forward, normal = c - b, jnp.cross(b - a, c - b)
        forward, normal = forward / jnp.linalg.norm(forward), normal / jnp.linalg.norm(normal)
        sideways = jnp.cos(torsion) * jnp.cross(normal, forward) + jnp.sin(torsion) * normal
        d = c + bond * (jnp.sin(angle) * sideways - jnp.cos(angle) * forward)
        return jnp.stack([b, c, d]), d
    bonds, angles = jnp.array([1.33, 1.46, 1.52]), jnp.radians(jnp.array([116.0, 122.0, 111.0]))
    first = jnp.array([[-1.4, 1.2, 0.0], [-1.46, 0.0, 0.0], [0.0, 0.0, 0.0]])
    kinds = (jnp.tile(bonds, LENGTH), jnp.tile(angles, LENGTH), torsions.ravel())
    return lax.scan(place, first, kinds)[1].reshape(LENGTH, 3, 3)


def protein(seed):
    """A backbone of helices, strands and loops, a sequence that suits it, and which residues are there."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat(rng.permutation([0, 2, 1, 2, 0, 1, 2, 0]), rng.integers(5, 9, 8))[:LENGTH]
    atoms = backbone(jnp.asarray(TORSIONS[kinds] + 0.05 * rng.standard_normal((LENGTH, 3)), jnp.float32))
    buried = np.sum(np.linalg.norm(np.asarray(atoms[:, None, 1] - atoms[:, 1]), axis=-1) < 9, 1) > 9
    sequence = [LETTERS.index(rng.choice(list(SETS[kind][int(deep)]))) for kind, deep in zip(kinds, buried)]
    return atoms, jnp.array(sequence), jnp.arange(LENGTH) < rng.integers(32, LENGTH)


def init(key):
    keys = iter(random.split(key, 24))
    dense = lambda m, n: random.normal(next(keys), (m, n)) * m**-0.5
    layer = lambda m: [dense(m, WIDTH), dense(WIDTH, WIDTH), dense(WIDTH, 2 * WIDTH), dense(2 * WIDTH, WIDTH)]
    return {"edge": dense(145, WIDTH), "edges": dense(3 * WIDTH, WIDTH), "letters": dense(20, WIDTH),
            "encode": [layer(96), layer(96)], "decode": [layer(128), layer(128)], "read": dense(WIDTH, 20)}


def message(layer, h, seen, mask):
    """New features of residues from what they see along their edges."""
    both = jnp.concatenate([jnp.broadcast_to(h[..., None, :], (*seen.shape[:-1], WIDTH)), seen], -1)
    h = jax.nn.standardize(h + jnp.where(mask, jax.nn.gelu(both @ layer[0]) @ layer[1], 0).sum(-2) / NEAR)
    return jax.nn.standardize(h + jax.nn.gelu(h @ layer[2]) @ layer[3])


def encode(params, atoms, real):
    """The nearest residues of each, what joins them (distances in waves, steps along the chain), and nodes."""
    n, ca, c = jnp.moveaxis(atoms, 1, 0)
    points = jnp.stack([n, ca, c, ca - 0.58 * jnp.cross(ca - n, c - ca) + 0.57 * (ca - n) - 0.54 * (c - ca)], 1)
    near = lax.top_k(-jnp.where(real, jnp.linalg.norm(ca[:, None] - ca, axis=-1), 1e4), NEAR)[1]
    gaps = jnp.sqrt(jnp.sum((points[:, None, :, None] - points[near][:, :, None]) ** 2, -1) + 1e-6)
    waves = jnp.exp(-((gaps.reshape(LENGTH, NEAR, 16, 1) - jnp.linspace(2, 16, 8)) / 1.75) ** 2)
    steps = jax.nn.one_hot(jnp.clip(near - jnp.arange(LENGTH)[:, None], -8, 8) + 8, 17)
    e = jnp.concatenate([waves.reshape(LENGTH, NEAR, -1), steps], -1) @ params["edge"]
    e, h = jax.nn.standardize(e), jnp.zeros((LENGTH, WIDTH))
    for layer in params["encode"]:
        h = message(layer, h, jnp.concatenate([h[near], e], -1), real[near][..., None])
        ends = [jnp.broadcast_to(h[:, None], e.shape), h[near], e]
        e = jax.nn.standardize(e + jax.nn.gelu(jnp.concatenate(ends, -1) @ params["edges"]))
    return near, e, h


def decode(params, code, real, sequence, rank):
    """Log-probabilities; each residue sees the letters of those before it in the order, and no others."""
    near, e, nodes = code
    earlier = (rank[near] < rank[:, None])[..., None]
    letters, h = jnp.where(earlier, params["letters"][sequence[near]], 0), nodes
    for layer in params["decode"]:
        seen = jnp.concatenate([jnp.where(earlier, h[near], nodes[near]), letters, e], -1)
        h = message(layer, h, seen, real[near][..., None])
    return jax.nn.log_softmax(h @ params["read"])


def loss_of(params, batch, keys):
    atoms, sequence, real = batch
    ranks = jax.vmap(lambda key: random.permutation(key, LENGTH))(keys)
    codes = jax.vmap(encode, (None, 0, 0))(params, atoms, real)
    found = jax.vmap(decode, (None, 0, 0, 0, 0))(params, codes, real, sequence, ranks)
    losses = -jnp.sum((0.9 * jax.nn.one_hot(sequence, 20) + 0.1 / 20) * found, -1)
    return losses.mean(where=real), (found.argmax(-1) == sequence).mean(where=real)


@jax.jit
def train(n, state, batch, keys):
    (loss, right), grads = jax.value_and_grad(loss_of, has_aux=True)(parameters(state), batch, keys)
    return update(n, grads, state), loss, right


@jax.jit
def design(params, atoms, real, fixed, key, temperature):
    """One residue at a time; those that are fixed come first."""
    order = random.permutation(random.fold_in(key, LENGTH), LENGTH)
    order = order[jnp.argsort(fixed[order] < 0)]
    code, rank = encode(params, atoms, real), jnp.argsort(order)

    def step(sequence, drawn):
        i, key = drawn
        chances = decode(params, code, real, sequence, rank)[i]
        letter = jnp.where(fixed[i] < 0, random.categorical(key, chances / temperature), fixed[i])
        return sequence.at[i].set(letter), chances[letter]
    sequence, scores = lax.scan(step, jnp.zeros(LENGTH, int), (order, random.split(key, LENGTH)))
    return sequence, scores, rank


proteins = jax.tree.map(lambda *x: jnp.stack(x), *[protein(seed) for seed in range(16)])
atoms, _, real = [x[-1] for x in proteins]
print("across a bond", float(jnp.linalg.norm(atoms[5, 0] - atoms[4, 2])), "last atom", atoms[-1, 2].tolist())
params = init(random.key(0))
near, e, h = encode(params, atoms, real)
print("near", near[::13, :5].tolist(), "edges", e[::13, 0, 0].tolist(), "nodes", h[::13, 0].tolist())
state = start(params)
for n in range(40):
    batch = [x[np.random.default_rng(n).permutation(14)[:BATCH]] for x in proteins]
    state, loss, right = train(n, state, batch, random.split(random.fold_in(random.key(1), n), BATCH))
    if n % 10 == 9:
        print("step", n + 1, "loss", float(loss), "recovery", float(right))
params = parameters(state)
held = jax.jit(loss_of)(params, [x[14:] for x in proteins], random.split(random.key(2), 2))
print("held out", *[float(x) for x in held])
fixed = jnp.full(LENGTH, -1).at[3:6].set(jnp.array([LETTERS.index(c) for c in "WCH"]))
keys = random.split(random.key(3), 4)
for temperature in (0.1, 1.0):
    made, scores, ranks = jax.vmap(design, (None, None, None, None, 0, None))(
        params, atoms, real, fixed, keys, temperature)
    print("designed", ["".join(LETTERS[c] for c in row) for row in np.asarray(made[:2])])
    print("scores", scores.sum(1).tolist(), "alike", float((made[0] == made[1]).mean()))
score = lambda atoms, letters, rank: jnp.take_along_axis(
    decode(params, encode(params, atoms, real), real, letters, rank), letters[:, None], 1).sum()
again = jax.jit(jax.vmap(score, (None, 0, 0)))(atoms, made, ranks)
print("scored at once", bool(jnp.allclose(again, scores.sum(1), rtol=1e-4)))
turned = score(atoms[..., jnp.array([1, 2, 0])] + 3, made[0], ranks[0])
print("turned", bool(jnp.isclose(turned, again[0], rtol=1e-3)))
pull = jax.jit(jax.grad(score))(atoms, made[0], ranks[0])
print("pull", float(jnp.abs(pull).sum()), "in all", pull.sum((0, 1)).tolist())
