"""Problems of computer vision: bundle adjustment, and a hand whose bones follow observed points."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy
from numpy.random import Generator

from ..structured_problems import CAMERA, bundle_adjustment, projection, sightings
from . import native
from .problem import Problem, Targets

FINGERS, BONES_OF_FINGER = 5, 4
BONES = 2 + FINGERS * BONES_OF_FINGER
# The wrist is the root; the forearm and the first bone of each finger hang on it.
PARENTS = [-1, 0] + [0 if bone % 4 == 2 else bone - 1 for bone in range(2, BONES)]
POSE = 26  # rotation and translation of the hand, four angles of each finger


def rotation_by_axis(np, w):
    """Rodrigues' formula."""
    angle = np.sqrt(np.sum(w * w))
    x, y, z = w[0] / angle, w[1] / angle, w[2] / angle
    cos, sin = np.cos(angle), np.sin(angle)
    rows = [
        [cos + x * x * (1 - cos), x * y * (1 - cos) - z * sin, x * z * (1 - cos) + y * sin],
        [x * y * (1 - cos) + z * sin, cos + y * y * (1 - cos), y * z * (1 - cos) - x * sin],
        [x * z * (1 - cos) - y * sin, y * z * (1 - cos) + x * sin, cos + z * z * (1 - cos)],
    ]
    return np.stack([np.stack(row) for row in rows])


def rotation_by_angles(np, bend, spread):
    """About the first axis, then about the second."""
    zero, one = np.zeros(()), np.ones(())
    first = [one, zero, zero, zero, np.cos(bend), -np.sin(bend), zero, np.sin(bend), np.cos(bend)]
    second = [np.cos(spread), zero, np.sin(spread), zero, one, zero, -np.sin(spread), zero, np.cos(spread)]
    return np.reshape(np.stack(second), (3, 3)) @ np.reshape(np.stack(first), (3, 3))


def bone_angles(pose):
    """Bend and spread of each bone; what does not move has None."""
    angles: list[Any] = [None] * BONES
    for finger in range(FINGERS):
        first, base = 2 + BONES_OF_FINGER * finger, 6 + 4 * finger
        angles[first] = pose[base], pose[base + 1]
        angles[first + 1] = pose[base + 2], 0.0
        angles[first + 2] = pose[base + 3], 0.0
    return angles


def hand(np, params, u, model, corners, observed):
    """How far points on the skin of a hand are from where they were observed.

    The last two of `params` move all points on their triangles at once: each residual depends on its own point only,
    so that two columns hold the derivatives in all of them. (Srajer, Kukelova, Fitzgibbon, A benchmark of selected
    algorithmic differentiation tools, 2018: "hand tracking, complicated".)
    """
    relatives, inverses, base, weights = model
    pose, u = params[:POSE], u + params[POSE:]
    rotations: list[Any] = []
    places: list[Any] = []
    skin = np.zeros((3, base.shape[1]))
    for bone, angles in enumerate(bone_angles(pose)):
        turn, place = relatives[bone, :, :3], relatives[bone, :, 3]
        if angles is not None:
            turn = turn @ rotation_by_angles(np, *angles)
        if PARENTS[bone] >= 0:
            above, offset = rotations[PARENTS[bone]], places[PARENTS[bone]]
            turn, place = above @ turn, above @ place + offset
        rotations.append(turn)
        places.append(place)
        transform = turn @ inverses[bone, :, :3]
        shift = turn @ inverses[bone, :, 3] + place
        skin = skin + weights[bone] * (transform @ base + shift[:, None])
    skin = rotation_by_axis(np, pose[:3]) @ skin + pose[3:6, None]
    a, b, c = (skin[:, corners[:, k]] for k in range(3))
    along, across = u[:, 0], u[:, 1]
    return observed - (along * a + across * b + (1.0 - along - across) * c).T


def hand_with_care(jax, params, u, model, corners, observed):
    """All fingers at once, bone by bone outwards; all bones in one product with the skin."""
    np = jax.numpy
    relatives, inverses, base, weights = map(np.asarray, model)
    pose, u = params[:POSE], u + params[POSE:]
    fingers = pose[6:].reshape(FINGERS, 4)
    still = np.zeros(FINGERS)
    bends = np.stack([fingers[:, 0], fingers[:, 2], fingers[:, 3], still], 1)
    spreads = np.stack([fingers[:, 1], still, still, still], 1)
    turns = jax.vmap(jax.vmap(functools.partial(rotation_by_angles, np)))(bends, spreads)
    joints = np.zeros((FINGERS, BONES_OF_FINGER, 4, 4)).at[..., :3, :3].set(turns).at[..., 3, 3].set(1.0)
    relatives = homogeneous(np, relatives)
    own = relatives[2:].reshape(joints.shape) @ joints
    chain = [relatives[0] @ own[:, 0]]
    for k in range(1, BONES_OF_FINGER):
        chain.append(chain[-1] @ own[:, k])
    palm = np.stack([relatives[0], relatives[0] @ relatives[1]])
    absolute = np.concatenate([palm, np.stack(chain, 1).reshape(-1, 4, 4)])
    transforms = absolute[:, :3] @ homogeneous(np, inverses)
    points = np.concatenate([base, np.ones((1, base.shape[1]))])
    weighted = (weights[:, None] * points).reshape(4 * BONES, -1)
    skin = transforms.transpose(1, 0, 2).reshape(3, 4 * BONES) @ weighted
    skin = rotation_by_axis(np, pose[:3]) @ skin + pose[3:6, None]
    a, b, c = (skin[:, corners[:, k]] for k in range(3))
    return observed - (u[:, 0] * a + u[:, 1] * b + (1.0 - u[:, 0] - u[:, 1]) * c).T


def homogeneous(np, transforms):
    """With the row 0 0 0 1 below."""
    last = np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0]), (*transforms.shape[:-2], 1, 4))
    return np.concatenate([transforms, last], -2)


def hand_arguments(random: Generator, points: int, vertices: int) -> Any:
    """A hand made up: bones of about one unit, vertices around them, each held by two bones."""
    relatives = numpy.zeros((BONES, 3, 4))
    inverses = numpy.zeros((BONES, 3, 4))
    for bone in range(BONES):
        for made in relatives, inverses:
            made[bone, :, :3] = numpy.linalg.qr(random.normal(size=(3, 3)))[0]
            made[bone, :, 3] = 0.3 * random.normal(size=3)
    holding = random.integers(BONES, size=(2, vertices))
    weights = numpy.zeros((BONES, vertices))
    share = random.uniform(size=vertices)
    numpy.add.at(weights, (holding[0], numpy.arange(vertices)), share)
    numpy.add.at(weights, (holding[1], numpy.arange(vertices)), 1.0 - share)
    model = relatives, inverses, random.normal(size=(3, vertices)), weights
    params = numpy.concatenate([0.3 * random.normal(size=POSE), numpy.zeros(2)])
    corners = random.integers(vertices, size=(points, 3))
    return params, random.uniform(0.0, 0.5, size=(points, 2)), model, corners, random.normal(size=(points, 3))


def jacobian(library: ModuleType, function: Callable[..., Any]) -> Callable[..., Any]:
    return library.jacfwd(function)


def hand_problem(points: int, vertices: int = 544) -> Problem:
    return Problem(
        f"hand tracking, {points:,} correspondences: Jacobian",
        hand,
        hand_with_care,
        functools.partial(hand_arguments, points=points, vertices=vertices),
        Targets(careful=1.2, first_seconds=3.0),
        jacobian,
        jacobian,
    )


# Columns of the rows of each observation: the first pixel coordinate does not depend on the second centre, and back.
FIRST, SECOND = ([*range(k), *range(k + 1, CAMERA + 3)] for k in (8, 7))


def bundle_by_blocks(jax, z, cameras, seeing, seen):
    """The entries of the Jacobian, row by row: one small dense Jacobian for each observation."""
    np = jax.numpy
    table, places = z[: CAMERA * cameras].reshape(-1, CAMERA), z[CAMERA * cameras :].reshape(-1, 3)

    def residual(both):
        return np.stack(projection(np, list(both[:CAMERA]), list(both[CAMERA:])))

    blocks = jax.vmap(jax.jacfwd(residual))(np.concatenate([table[seeing], places[seen]], 1))
    return np.stack([blocks[:, 0, np.array(FIRST)], blocks[:, 1, np.array(SECOND)]], 1).ravel()


def csr_entries(function: Callable[..., Any], arguments: Any) -> Callable[..., Any]:
    import ftrans as ft

    prepared = ft.sparse_jacobian(function).prepare(*arguments)
    return lambda *arguments: prepared(*arguments).data


def bundle_problem(observations: int) -> Problem:
    problem = bundle_adjustment(observations)
    cameras, _, seeing, seen, _ = sightings(observations)
    return Problem(
        f"bundle adjustment, {observations:,} observations: Jacobian in CSR",
        problem.function,
        lambda jax, z: bundle_by_blocks(jax, z, cameras, seeing, seen),
        lambda random: (problem.start,),
        Targets(cpp=1.3),
        derive_with_care=lambda library, function: function,
        prepare=csr_entries,
        cpp=lambda z: native.bundle_adjustment(z, cameras, seeing, seen),
        is_for_jax=False,
    )


def problems() -> list[Problem]:
    return [bundle_problem(31_843), bundle_problem(287_451), hand_problem(100), hand_problem(25_600)]


def small_problems() -> list[Problem]:
    """The same in small, for tests."""
    return [bundle_problem(40), hand_problem(3, vertices=5)]
