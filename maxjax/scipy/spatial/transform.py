"""jax.scipy.spatial.transform: rotations in three dimensions, as unit quaternions (x, y, z, w).

Formulas: J. Diebel, "Representing attitude: Euler angles, unit quaternions, and rotation vectors";
Euler angles: E. Bernardes and S. Viollet, "Quaternion to Euler angles conversion".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from maxjax import numpy as jnp
from maxjax import random
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array

explain_missing_names(__name__)

_SMALL_ANGLE = 1e-3
_GIMBAL = 1e-7


def _inexact(x: Any) -> Any:
    x = jnp.asarray(x)
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.result_type(float))


def _norm(x: Any) -> Any:
    return jnp.sqrt(jnp.sum(x * x, -1))


def _unit(quat: Any) -> Any:
    return quat / _norm(quat)[..., None]


def _product(p: Any, q: Any) -> Any:
    u, v = p[..., :3], q[..., :3]
    u, v = jnp.broadcast_arrays(u, v)
    w, z = p[..., 3:], q[..., 3:]
    vector = w * v + z * u + jnp.cross(u, v)
    return jnp.concatenate([vector, w * z - jnp.sum(u * v, -1, keepdims=True)], -1)


def _axes(seq: str) -> tuple[list[int], bool]:
    """The indices of the axes, and whether they are fixed in space."""
    extrinsic = bool(seq) and all(axis in "xyz" for axis in seq)
    if not extrinsic and not (seq and all(axis in "XYZ" for axis in seq)):
        raise ValueError("Expected axes from `seq` to be from ['x', 'y', 'z'] or "
                         f"['X', 'Y', 'Z'], got {seq}")
    numbers = ["xyz".index(axis) for axis in seq.lower()]
    if any(a == b for a, b in zip(numbers, numbers[1:], strict=False)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return numbers, extrinsic


class Rotation(NamedTuple):
    """A rotation in three dimensions, or an array of them.

    Attributes:
      quat: unit quaternions (x, y, z, w), of shape (4,) or (N, 4).

    >>> from maxjax.scipy.spatial.transform import Rotation
    >>> r = Rotation.from_rotvec(jnp.array([0.0, 0.0, jnp.pi / 2]))
    >>> jnp.round(r.apply(jnp.array([1.0, 0.0, 0.0])), 3)
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Array

    # --- making them ---
    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Concatenates several arrays of rotations."""
        return cls(jnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: Array, degrees: bool = False) -> Rotation:
        """From angles about axes.

        Args:
          seq: up to three axes: of "xyz", fixed in space, or of "XYZ", which rotate with the body.
          angles: of shape (len(seq),) or (N, len(seq)); a scalar for one axis.

        Raises:
          ValueError: ``seq`` is invalid.
        """
        numbers, extrinsic = _axes(seq)
        if len(numbers) > 3:
            raise ValueError("Expected axis specification to be a non-empty string of upto 3 "
                             f"characters, got {seq}")
        angles = _inexact(angles)
        angles = angles.astype(angles.dtype)      # strongly typed, like the quaternion
        if degrees:
            angles = jnp.deg2rad(angles)
        if not angles.ndim:
            angles = angles[None]
        if angles.shape[-1] != len(numbers):
            raise ValueError(f"Expected `angles` to have {len(numbers)} columns, got shape "
                             f"{angles.shape}")
        quat: Any = None
        for position, number in enumerate(numbers):
            half = angles[..., position] / 2
            zero = jnp.zeros_like(half)
            parts = [zero, zero, zero, jnp.cos(half)]
            parts[number] = jnp.sin(half)
            turn = jnp.stack(parts, -1)
            if quat is None:
                quat = turn
            else:
                quat = _product(turn, quat) if extrinsic else _product(quat, turn)
        return cls(quat)

    @classmethod
    def from_matrix(cls, matrix: Array) -> Rotation:
        """From orthogonal matrices of shape (3, 3) or (N, 3, 3)."""
        m = _inexact(matrix)
        trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
        diagonal = jnp.stack([m[..., i, i] for i in range(3)] + [trace], -1)
        candidates = []
        for i in range(3):      # divides by the largest component
            j, k = (i + 1) % 3, (i + 2) % 3
            parts: list[Any] = [None] * 4
            parts[i] = 1 - trace + 2 * m[..., i, i]
            parts[j] = m[..., j, i] + m[..., i, j]
            parts[k] = m[..., k, i] + m[..., i, k]
            parts[3] = m[..., k, j] - m[..., j, k]
            candidates.append(jnp.stack(parts, -1))
        candidates.append(jnp.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0],
                                     m[..., 1, 0] - m[..., 0, 1], 1 + trace], -1))
        choice = jnp.argmax(diagonal, -1)[..., None]
        quat = jnp.select([choice == number for number in range(4)], candidates)
        return cls(_unit(quat))

    @classmethod
    def from_mrp(cls, mrp: Array) -> Rotation:
        """From modified Rodrigues parameters of shape (3,) or (N, 3)."""
        mrp = _inexact(mrp)
        square = jnp.sum(mrp * mrp, -1, keepdims=True)
        return cls(jnp.concatenate([2 * mrp, 1 - square], -1) / (1 + square))

    @classmethod
    def from_quat(cls, quat: Array) -> Rotation:
        """From quaternions (x, y, z, w) of shape (4,) or (N, 4), of any nonzero norm."""
        return cls(_unit(_inexact(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: Array, degrees: bool = False) -> Rotation:
        """From vectors along the axis whose length is the angle, of shape (3,) or (N, 3)."""
        rotvec = _inexact(rotvec)
        if degrees:
            rotvec = jnp.deg2rad(rotvec)
        angle = _norm(rotvec)[..., None]
        square = angle * angle
        small = angle <= _SMALL_ANGLE
        scale = jnp.where(small, 0.5 - square / 48 + square * square / 3840,
                          jnp.sin(angle / 2) / jnp.where(small, 1, angle))
        return cls(jnp.concatenate([scale * rotvec, jnp.cos(angle / 2)], -1))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The identity, or ``num`` of them."""
        quat = jnp.array([0, 0, 0, 1], dtype=dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """A uniformly random rotation, or ``num`` of them."""
        return cls(_unit(random.normal(random_key, (4,) if num is None else (num, 4))))

    # --- an array of them ---
    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return self.quat.shape[0]

    @property
    def single(self) -> bool:
        """Whether it is one rotation, not an array."""
        return self.quat.ndim == 1

    # --- computing with them ---
    def __mul__(self, other: Any) -> Rotation:
        return Rotation(_unit(_product(self.quat, other.quat)))

    def apply(self, vectors: Array, inverse: bool = False) -> Array:
        """Rotates vectors of shape (3,) or (N, 3); by the inverse rotations with ``inverse``."""
        matrix = self.as_matrix()
        if inverse:
            matrix = jnp.swapaxes(matrix, -1, -2)
        return jnp.einsum("...ij,...j->...i", matrix, _inexact(vectors))

    def inv(self) -> Rotation:
        """The inverse rotations."""
        return Rotation(jnp.concatenate([-self.quat[..., :3], self.quat[..., 3:]], -1))

    def magnitude(self) -> Array:
        """The angles, from 0 to pi."""
        return 2 * jnp.arctan2(_norm(self.quat[..., :3]), jnp.abs(self.quat[..., 3]))

    def mean(self, weights: Array | None = None) -> Rotation:
        """The rotation with the least mean square distance to all."""
        quat = self.quat if not self.single else self.quat[None]
        weights = jnp.ones(quat.shape[0], quat.dtype) if weights is None else _inexact(weights)
        _, vectors = jnp.linalg.eigh((quat.T * weights[None]) @ quat)
        return Rotation(vectors[:, -1])

    # --- taking them apart ---
    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Angles about three axes: see ``from_euler``; of shape (3,) or (N, 3).

        Raises:
          ValueError: ``seq`` does not name three axes.
        """
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        axes, extrinsic = _axes(seq)
        i, j, k = axes if extrinsic else axes[::-1]
        symmetric = i == k
        if symmetric:
            k = 3 - i - j
        sign = (i - j) * (j - k) * (k - i) // 2
        x, y, z, w = (self.quat[..., n] for n in (i, j, k, 3))
        a, b, c, d = (w, x, y, z * sign) if symmetric else (
            w - y, x + z * sign, y + w, z * sign - x)
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        first, third = half_sum - half_difference, half_sum + half_difference
        if not extrinsic:
            first, third = third, first
        # Gimbal lock: only the sum or the difference is determined, and the last angle is set to 0.
        level, over = jnp.abs(middle) <= _GIMBAL, jnp.abs(middle - jnp.pi) <= _GIMBAL
        turned = 2 * half_difference * (-1 if extrinsic else 1)
        first = jnp.where(level, 2 * half_sum, jnp.where(over, turned, first))
        third = jnp.where(level | over, 0, third)
        if not symmetric:
            middle = middle - jnp.pi / 2
            if extrinsic:
                third = third * sign
            else:
                first = first * sign
        angles = jnp.stack([first, middle, third], -1)
        angles = jnp.where(angles < -jnp.pi, angles + 2 * jnp.pi, angles)
        angles = jnp.where(angles > jnp.pi, angles - 2 * jnp.pi, angles)
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Matrices of shape (3, 3) or (N, 3, 3)."""
        x, y, z, w = (self.quat[..., n] for n in range(4))
        rows = [[x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w]]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters, of length at most 1."""
        w = self.quat[..., 3:]
        return jnp.where(w < 0, -1, 1) * self.quat[..., :3] / (1 + jnp.abs(w))

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors along the axis whose length is the angle."""
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        length = _norm(quat[..., :3])
        angle = 2 * jnp.arctan2(length, quat[..., 3])
        square = angle * angle
        small = angle <= _SMALL_ANGLE
        scale = jnp.where(small, 2 + square / 12 + 7 * square * square / 2880,
                          angle / jnp.where(small, 1, jnp.sin(angle / 2)))
        rotvec = scale[..., None] * quat[..., :3]
        return jnp.rad2deg(rotvec) if degrees else rotvec

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions: (x, y, z, w), or (w, x, y, z) with ``scalar_first``.

        Args:
          canonical: of the two that represent a rotation, the one with nonnegative w.
        """
        quat = self.quat
        if canonical:
            quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
        return jnp.roll(quat, 1, -1) if scalar_first else quat


class Slerp(NamedTuple):
    """Interpolates between rotations at given times, at constant angular velocity.

    Create one with ``Slerp.init(times, rotations)``.

    >>> from maxjax.scipy.spatial.transform import Rotation, Slerp
    >>> turns = Rotation.from_rotvec(jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> Slerp.init(jnp.array([0.0, 2.0]), turns)(jnp.array([1.0])).as_rotvec()
    Array([[0. , 0. , 0.5]], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: Array, rotations: Rotation) -> Slerp:
        """From increasing times, shape (N,), and as many rotations, two or more.

        Raises:
          ValueError: the shapes differ from these.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = _inexact(times)
        if times.ndim != 1:
            raise ValueError("Expected times to be specified in a 1 dimensional array, got "
                             f"{times.ndim} dimensions.")
        if times.shape[0] != len(rotations):
            raise ValueError("Expected number of rotations to be equal to number of timestamps "
                             f"given, got {len(rotations)} rotations and {times.shape[0]} "
                             "timestamps.")
        starts, ends = Rotation(rotations.quat[:-1]), Rotation(rotations.quat[1:])
        return cls(times, jnp.diff(times), starts, (starts.inv() * ends).as_rotvec())

    def __call__(self, times: Array) -> Rotation:
        """The rotations at times of shape () or (M,)."""
        at = _inexact(times)
        if at.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        number = jnp.maximum(jnp.searchsorted(self.times, at) - 1, 0)
        share = (at - self.times[number]) / self.timedelta[number]
        return Rotation(self.rotations.quat[number]) * Rotation.from_rotvec(
            self.rotvecs[number] * share[..., None])
