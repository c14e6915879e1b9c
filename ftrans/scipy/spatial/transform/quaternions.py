"""Quaternions (..., 4) of rotations, the scalar last, and other ways to write a rotation.

Formulas: J. Diebel, "Representing Attitude" (2006); Euler angles by E. Bernardes and S. Viollet, "Quaternion to Euler
angles conversion" (2022).  Functions of the angle are series near 0, in its square, so that all derivatives exist.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from ....base.source import at_line, user_line
from ....ops.linalg import polar_factor

# Below this square of an angle, series of four terms are exact to rounding, also in their second derivatives.
_SMALL = 1e-5
# Middle Euler angles this close to the ends of their range leave only one of the other two angles defined.
_LOCKED = 1e-7


def _where_small(square: Any, series: tuple[float, ...], otherwise: Any) -> Any:
    """A function of a square: its Taylor series for small ones, `otherwise(square)` elsewhere."""
    is_small = square < _SMALL
    value = 0.0
    for coefficient in reversed(series):
        value = value * square + coefficient
    return np.where(is_small, value, otherwise(np.where(is_small, 1.0, square)))


def normalized(q: Any) -> Any:
    """Quaternions of length 1."""
    return q / np.sqrt(np.sum(q * q, -1, keepdims=True))


def product(p: Any, q: Any) -> Any:
    """The rotation by `q`, then by `p`."""
    p_vector, p_scalar, q_vector, q_scalar = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = p_scalar * q_vector + q_scalar * p_vector + np.cross(p_vector, q_vector)
    scalar = p_scalar * q_scalar - np.sum(p_vector * q_vector, -1, keepdims=True)
    return np.concatenate([vector, scalar], -1)


def inverse(q: Any) -> Any:
    """The rotation back."""
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def from_rotvec(v: Any) -> Any:
    """From the axis times the angle."""
    square = np.sum(v * v, -1, keepdims=True)
    scale = _where_small(square, (1 / 2, -1 / 48, 1 / 3840, -1 / 645120), lambda s: np.sin(np.sqrt(s) / 2) / np.sqrt(s))
    scalar = _where_small(square, (1, -1 / 8, 1 / 384, -1 / 46080), lambda s: np.cos(np.sqrt(s) / 2))
    return np.concatenate([scale * v, scalar], -1)


def as_rotvec(q: Any) -> Any:
    """The axis times the angle, which is at most pi."""
    q = np.where(q[..., 3:] < 0, -q, q)
    vector, scalar = q[..., :3], q[..., 3:]
    square = np.sum(vector * vector, -1, keepdims=True)

    def scale(square: Any) -> Any:
        length = np.sqrt(square)
        return 2 * np.arctan2(length, scalar) / length

    return vector * _where_small(square, (2, 1 / 3, 3 / 20, 5 / 56), scale)


def from_matrix(matrix: Any, assume_valid: bool) -> Any:
    """From matrices (..., 3, 3), of which the nearest rotations are taken unless they are known to be rotations."""
    m = matrix if assume_valid else polar_factor(matrix)
    x, y, z = (m[..., i, i] for i in range(3))
    trace = x + y + z
    candidates: list[Any] = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts: list[Any] = [None] * 4
        parts[i] = 1 - trace + 2 * m[..., i, i]
        parts[j], parts[k] = m[..., j, i] + m[..., i, j], m[..., k, i] + m[..., i, k]
        parts[3] = m[..., k, j] - m[..., j, k]
        candidates.append(np.stack(parts, -1))
    turning = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    candidates.append(np.stack([*turning, 1 + trace], -1))
    largest = np.argmax(np.stack([x, y, z, trace], -1), -1)[..., None]
    chosen = candidates[3]
    for i in range(3):
        chosen = np.where(largest == i, candidates[i], chosen)
    return normalized(chosen)


def as_matrix(q: Any) -> Any:
    """The matrices (..., 3, 3)."""
    x, y, z, w = (q[..., i] for i in range(4))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def from_mrp(p: Any) -> Any:
    """From modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
    square = np.sum(p * p, -1, keepdims=True)
    return np.concatenate([2 * p, 1 - square], -1) / (1 + square)


def as_mrp(q: Any) -> Any:
    """Modified Rodrigues parameters of the shorter way round."""
    q = np.where(q[..., 3:] < 0, -q, q)
    return q[..., :3] / (1 + q[..., 3:])


def canonical(q: Any) -> Any:
    """The one of both quaternions of a rotation whose last component that is not 0 in the order w, x, y, z is > 0."""
    is_other, is_open = q[..., 3] < 0, q[..., 3] == 0
    for i in range(3):
        is_other = is_other | (is_open & (q[..., i] < 0))
        is_open = is_open & (q[..., i] == 0)
    return np.where(is_other[..., None], -q, q)


def _axes_of(seq: str, least: int) -> tuple[list[int], bool]:
    """The axes of a sequence of Euler angles, and whether they turn with the body."""
    if not re.fullmatch("[XYZ]+|[xyz]+", seq) or not least <= len(seq) <= 3:
        raise ValueError(
            f"the sequence of axes must be {'3' if least == 3 else '1 to 3'} of 'x', 'y', 'z', or of 'X', 'Y', 'Z' for "
            f"intrinsic rotations, not {seq!r}{at_line(user_line())}"
        )
    if any(a == b for a, b in itertools.pairwise(seq)):
        raise ValueError(f"consecutive axes must be different, not {seq!r}{at_line(user_line())}")
    return ["xyz".index(a) for a in seq.lower()], seq.isupper()


def from_euler(seq: str, angles: Any) -> Any:
    """From Euler angles (..., axes), or () for one axis."""
    axes, is_intrinsic = _axes_of(seq, 1)
    if len(axes) == 1 and not angles.ndim:
        angles = angles[..., None]
    if angles.shape[-1:] != (len(axes),):
        raise ValueError(
            f"angles for the axes {seq!r} have the shape (..., {len(axes)}), not {angles.shape}{at_line(user_line())}"
        )
    vectors = np.eye(3)[axes]
    return composed([from_rotvec(angles[..., i, None] * vectors[i]) for i in range(len(axes))], is_intrinsic)


def composed(turns: list[Any], is_intrinsic: bool) -> Any:
    """Rotations one after the other, around axes that turn with the body if intrinsic."""
    found = turns[0]
    for turn in turns[1:]:
        found = product(found, turn) if is_intrinsic else product(turn, found)
    return found


def as_euler(q: Any, seq: str) -> Any:
    """Euler angles (..., 3); where only a sum or difference of two is defined, the last one is 0."""
    axes, is_intrinsic = _axes_of(seq, 3)
    i, j, k = axes[::-1] if is_intrinsic else axes
    is_symmetric = i == k
    k = 3 - i - j if is_symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    if is_symmetric:
        a, b, c, d = q[..., 3], q[..., i], q[..., j], sign * q[..., k]
    else:
        a, b = q[..., 3] - q[..., j], q[..., i] + sign * q[..., k]
        c, d = q[..., j] + q[..., 3], sign * q[..., k] - q[..., i]
    middle = 2 * np.arctan2(np.hypot(c, d), np.hypot(a, b))
    half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
    at_start, at_end = np.abs(middle) <= _LOCKED, np.abs(middle - np.pi) <= _LOCKED
    is_locked = at_start | at_end
    alone = np.where(at_start, 2 * half_sum, 2 * half_difference * (1 if is_intrinsic else -1))
    first, third = half_sum - half_difference, half_sum + half_difference
    if is_intrinsic:
        first, third = np.where(is_locked, 0.0, first), np.where(is_locked, alone, third)
    else:
        first, third = np.where(is_locked, alone, first), np.where(is_locked, 0.0, third)
    if not is_symmetric:
        middle, third = middle - np.pi / 2, third * sign
    found = np.stack([third, middle, first] if is_intrinsic else [first, middle, third], -1)
    # All are within two turns, and pi itself stays.
    return found - 2 * np.pi * ((found > np.pi) * 1.0 - (found < -np.pi) * 1.0)


def largest_eigenvector(k: Any) -> tuple[Any, Any]:
    """The largest eigenvalue of symmetric matrices, and its eigenvector."""
    values, vectors = np.linalg.eigh(k)
    return values[..., -1], vectors[..., -1]


def aligning(a: Any, b: Any, weights: Any) -> tuple[Any, Any]:
    """The rotation that turns vectors `b` (n, 3) to `a` best, by Davenport's method, and the root of what is left."""
    profile = np.einsum("n,ni,nj->ij", weights, a, b)
    trace = np.trace(profile)
    turning = np.stack([profile[2, 1] - profile[1, 2], profile[0, 2] - profile[2, 0], profile[1, 0] - profile[0, 1]])
    corner = profile + profile.T - trace * np.eye(3)
    k = np.concatenate(
        [
            np.concatenate([corner, turning[:, None]], 1),
            np.concatenate([turning, np.reshape(trace, (1,))])[None],
        ]
    )
    value, q = largest_eigenvector(k)
    left = np.sum(weights * np.sum(a * a + b * b, -1)) - 2 * value
    return q, np.sqrt(np.maximum(left, 0.0))
