# tolerance: 1e-3 (impacts amplify the rounding)
# absolute: 1e-4 (heights and speeds near zero)
"""Rigid boxes that fall on a floor: quaternions, contacts by penalties, batched, a throw by gradients.

Checked to the tolerances above, with key 5: heights and energies of three of twelve boxes, the lowest
corner, the throw that is found, and a Jacobian.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random

DT, STEPS, STIFFNESS, FRICTION, MASS = 1 / 240, 240, 4e3, 0.5, 1.0
HALF = jnp.array([0.3, 0.2, 0.1])
INERTIA = MASS / 3 * (jnp.sum(HALF**2) - HALF**2)
CORNERS = HALF * jnp.stack(jnp.meshgrid(*[jnp.array([-1.0, 1.0])] * 3, indexing="ij"), -1).reshape(-1, 3)


class Body(NamedTuple):
    position: jax.Array
    turn: jax.Array          # a unit quaternion, scalar first
    velocity: jax.Array
    spin: jax.Array          # in the body's axes


def product(a, b):
    w1, x1, y1, z1 = a
    w2, x2, y2, z2 = b
    return jnp.array([w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2, w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                      w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2, w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2])


def rotation(q):
    w, x, y, z = q
    return jnp.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                      [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                      [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])


def contact(body, corner):
    """The force on one corner, and where it acts from the centre."""
    turned = rotation(body.turn)
    arm = turned @ corner
    place = body.position + arm
    speed = body.velocity + jnp.cross(turned @ body.spin, arm)
    depth = -place[2]
    normal = jnp.where(depth > 0, jnp.maximum(STIFFNESS * depth - 20 * speed[2], 0), 0)
    sliding = speed * jnp.array([1.0, 1, 0])
    size = jnp.sqrt(jnp.sum(sliding**2) + 1e-6)
    force = jnp.array([0, 0, 1.0]) * normal - FRICTION * normal * sliding / (size + 0.01)
    return force, jnp.cross(arm, force)


def step(body, _):
    forces, torques = jax.vmap(contact, (None, 0))(body, CORNERS)
    turned = rotation(body.turn)
    velocity = body.velocity + DT * (forces.sum(0) / MASS - jnp.array([0, 0, 9.81]))
    torque = turned.T @ torques.sum(0) - jnp.cross(body.spin, INERTIA * body.spin)
    spin = body.spin + DT * torque / INERTIA
    turn = body.turn + 0.5 * DT * product(body.turn, jnp.concatenate([jnp.zeros(1), spin]))
    turn = turn / jnp.linalg.norm(turn)
    new = Body(body.position + DT * velocity, turn, velocity, spin)
    energy = 0.5 * MASS * velocity @ velocity + 0.5 * spin @ (INERTIA * spin) + 9.81 * MASS * new.position[2]
    return new, (new.position, energy)


@jax.jit
def throw(body):
    return lax.scan(step, body, None, STEPS)


def start(key):
    k1, k2, k3 = random.split(key, 3)
    turn = random.normal(k1, (4,))
    return Body(jnp.array([0.0, 0, 1]) + 0.1 * random.normal(k2, (3,)), turn / jnp.linalg.norm(turn),
                jnp.array([1.0, 0, 0]), random.normal(k3, (3,)))


bodies = jax.vmap(start)(random.split(random.key(5), 12))
ends, (paths, energies) = jax.vmap(throw)(bodies)
for n in (0, 5, 11):
    print("box", n, "falls", paths[n, ::60, 2].tolist(), "energy", energies[n, ::60].tolist())
print("lowest corner", float(jax.vmap(lambda b: (CORNERS @ rotation(b.turn).T + b.position)[:, 2].min())(ends).min()))
short = lambda body: lax.scan(step, body, None, 80)[0]


def miss(velocity, body):
    end = short(body._replace(velocity=velocity))
    return jnp.sum((end.position - jnp.array([0.5, 0.2, 0.5])) ** 2)


body = jax.tree.map(lambda x: x[2], bodies)


@jax.jit
def aim(velocity):
    def descend(velocity, _):
        value, slope = jax.value_and_grad(miss)(velocity, body)
        return velocity - 2.0 * slope, value
    return lax.scan(descend, velocity, None, 15)


velocity, misses = aim(jnp.array([1.0, 0, 0]))
print("aimed", velocity.tolist(), "misses", misses[::5].tolist())
print("jacobian", float(jnp.linalg.norm(jax.jacfwd(lambda v: short(body._replace(velocity=v)).position)(velocity))))
