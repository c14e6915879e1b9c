"""`ftrans.scipy.spatial.transform`: rotations of traced values, against SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.spatial.transform
from test_scipy_sparse import check_along

import ftrans as ft
from ftrans.numpy.dispatch import TABLE
from ftrans.scipy.spatial import transform

RNG = np.random.default_rng(0)
X, MANY, VECTORS = RNG.normal(size=3), RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3))
PLAIN = scipy.spatial.transform.Rotation.random(5, rng=1)
TIMES = [0.0, 1.0, 2.0, 3.0, 5.0]


def unbound(name: str, m: Any) -> Any:
    """A method of SciPy's plain objects, as patched code reaches it."""
    function = getattr(scipy.spatial.transform.Rotation, name)
    return function if m is scipy.spatial.transform else TABLE[function]


OF_ROTATIONS: dict[str, Callable[[Any], Any]] = {
    "as_quat": lambda r: r.as_quat(),
    "as_quat canonical": lambda r: r.inv().as_quat(canonical=True),
    "as_quat scalar_first": lambda r: r.as_quat(scalar_first=True),
    "as_matrix": lambda r: r.as_matrix(),
    "as_rotvec": lambda r: r.as_rotvec(degrees=True),
    "as_mrp": lambda r: r.as_mrp(),
    "apply": lambda r: r.apply(VECTORS[0]),
    "apply inverse": lambda r: r.apply(VECTORS[0], inverse=True),
    "magnitude": lambda r: r.magnitude(),
    "power": lambda r: (r**2.5).as_quat(),
    "power -1": lambda r: (r**-1).as_matrix(),
}
for _seq in ("xyz", "zyx", "XYZ", "ZXZ", "zxz", "YXZ"):
    OF_ROTATIONS[f"as_euler {_seq}"] = lambda r, s=_seq: r.as_euler(s)

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda x, m: (m.Rotation.from_rotvec(x) * PLAIN).as_matrix(),
    "product with plain": lambda x, m: (PLAIN * m.Rotation.from_rotvec(MANY * x)).apply(VECTORS),
    "from_matrix": lambda x, m: m.Rotation.from_matrix(np.eye(3) + 0.1 * x[:, None] * VECTORS[0]).as_matrix(),
    "from_matrix of each kind": lambda x, m: m.Rotation.from_matrix(PLAIN.as_matrix() + 0.01 * x).as_rotvec(),
    "from_quat": lambda x, m: m.Rotation.from_quat(np.concatenate([x, x[:1]])).as_quat(),
    "from_quat scalar_first": lambda x, m: m.Rotation.from_quat(np.append(x, x[0]), scalar_first=True).as_quat(),
    "Rotation": lambda x, m: m.Rotation(np.concatenate([x, x[:1]])).as_quat(),
    "from_euler": lambda x, m: m.Rotation.from_euler("xyz", x).as_matrix(),
    "from_euler in degrees": lambda x, m: m.Rotation.from_euler("ZYX", 40 * MANY * x, degrees=True).as_quat(),
    "from_euler of one axis": lambda x, m: m.Rotation.from_euler("z", x[:, None]).as_quat(),
    "from_euler of a number": lambda x, m: m.Rotation.from_euler("y", x[0]).as_quat(),
    "from_euler of two": lambda x, m: m.Rotation.from_euler("YX", x[:2]).as_quat(),
    "from_mrp": lambda x, m: m.Rotation.from_mrp(x).as_quat(),
    "from_davenport": lambda x, m: m.Rotation.from_davenport(np.eye(3)[::-1], "extrinsic", x).as_matrix(),
    "mean of one": lambda x, m: m.Rotation.from_rotvec(x).mean().as_matrix(),
    "chosen": lambda x, m: m.Rotation.from_rotvec(MANY * x)[np.array([True, False, True, False, True])].as_matrix(),
    "mean": lambda x, m: m.Rotation.from_rotvec(MANY * x).mean().as_matrix(),
    "mean with weights": lambda x, m: m.Rotation.from_rotvec(MANY * x).mean(np.arange(1.0, 6.0)).as_matrix(),
    "concatenate": lambda x, m: m.Rotation.concatenate([m.Rotation.from_rotvec(x), PLAIN]).as_matrix(),
    "slice": lambda x, m: m.Rotation.from_rotvec(MANY * x)[1:3].as_matrix(),
    "element": lambda x, m: m.Rotation.from_rotvec(MANY * x)[2].apply(x),
    "iteration": lambda x, m: sum(r.as_matrix() for r in m.Rotation.from_rotvec(MANY * x)),
    "align_vectors": lambda x, m: m.Rotation.align_vectors(MANY, VECTORS * x)[0].as_matrix(),
    "align_vectors, rest": lambda x, m: m.Rotation.align_vectors(MANY, VECTORS * x, np.arange(1, 6))[1],
    "Slerp": lambda x, m: m.Slerp(TIMES, m.Rotation.from_rotvec(MANY * x))([0, 0.5, 1, 4.2, 5]).as_matrix(),
    "Slerp at one time": lambda x, m: m.Slerp(TIMES, m.Rotation.from_rotvec(MANY * x))(1.5).as_quat(),
    "Slerp by its times": lambda x, m: m.Slerp(np.cumsum(np.abs(np.append(x, x)) + 0.1)[:5], PLAIN)(1.0).as_quat(),
    "Rotation.apply": lambda x, m: unbound("apply", m)(PLAIN, VECTORS * x),
    "Rotation.__pow__": lambda x, m: unbound("__pow__", m)(PLAIN, x[0]).as_matrix(),
}
for _name, _read in OF_ROTATIONS.items():
    CALLS[_name] = lambda x, m, read=_read: read(m.Rotation.from_rotvec(x))
    CALLS[f"{_name}, many"] = lambda x, m, read=_read: read(m.Rotation.from_rotvec(MANY * x))


@pytest.mark.parametrize("name", CALLS)
def test_rotations(name: str) -> None:
    call = CALLS[name]
    check_along(lambda x: call(x, transform), lambda x: call(x, scipy.spatial.transform), X)


def test_the_time_of_plain_rotations() -> None:
    plain = scipy.spatial.transform.Slerp(TIMES, PLAIN)
    interpolate = TABLE[scipy.spatial.transform.Slerp.__call__]
    check_along(lambda t: interpolate(plain, t).as_matrix(), lambda t: plain(t).as_matrix(), np.abs(X))
    with pytest.raises(ValueError, match="within the range"):
        ft.grad(lambda t: interpolate(plain, t).magnitude())(7.0)


def test_rotation_vectors_are_smooth_at_zero() -> None:
    # exp([v]) y = y + v x y + (v x (v x y)) / 2 + ..., and v x (v x y) = v (v.y) - y (v.v).
    y = VECTORS[0]
    second = ft.hessian(lambda v: transform.Rotation.from_rotvec(v).apply(y))(np.zeros(3))
    e = np.eye(3)
    expected = (np.einsum("ij,k->ijk", e, y) + np.einsum("ik,j->ijk", e, y)) / 2 - np.einsum("jk,i->ijk", e, y)
    np.testing.assert_allclose(second, expected, atol=1e-15)
    there_and_back = ft.jacobian(lambda v: transform.Rotation.from_rotvec(v).as_rotvec())
    for scale in (0.0, 1e-9, 2e-3, 4e-3, 1.0):
        np.testing.assert_allclose(there_and_back(scale * X), np.eye(3), atol=1e-13)
    assert np.abs(ft.hessian(lambda v: transform.Rotation.from_rotvec(v).as_rotvec())(1e-6 * X)).max() < 1e-9


def test_half_turns_have_derivatives() -> None:
    # The quaternion (sin(a / 2) e, cos(a / 2)) at a = pi, with a' = 1.
    slope = ft.jvp(
        lambda q: transform.Rotation.from_quat(q).as_rotvec(),
        (np.array([0.0, 0, 1, 0]),),
        (np.array([0.0, 0, 0, -0.5]),),
    )[1]
    np.testing.assert_allclose(slope, [0, 0, 1], atol=1e-15)


def test_rotations_in_every_mode() -> None:
    def f(x: Any) -> Any:
        return np.sum(transform.Rotation.from_euler("xyz", x).as_rotvec() ** 2)

    np.testing.assert_allclose(ft.jit(ft.grad(f))(X), ft.grad(f)(X), atol=1e-13)
    np.testing.assert_allclose(ft.vmap(f)(MANY), [f(x) for x in MANY], rtol=1e-13)


def test_questions_and_refusals() -> None:
    def f(x: Any) -> Any:
        made = transform.Rotation.from_rotvec(x)
        assert isinstance(made, scipy.spatial.transform.Rotation)
        assert isinstance(made, transform.Rotation)
        assert made.single
        with pytest.raises(NotImplementedError, match=r"Rotation\.as_davenport has no form"):
            made.as_davenport(np.eye(3), "e")
        with pytest.raises(NotImplementedError, match=r"RotationSpline has no rule.*Slerp"):
            transform.RotationSpline(x, x)
        with pytest.raises(ValueError, match="consecutive axes"):
            made.as_euler("xxz")
        return made.magnitude()

    np.testing.assert_allclose(ft.grad(f)(X), X / np.linalg.norm(X))
    assert type(transform.Rotation.from_rotvec(X)) is scipy.spatial.transform.Rotation
    assert isinstance(PLAIN, transform.Rotation)


def test_euler_angles_of_half_a_turn() -> None:
    turn = np.array([1.0, 0.0, 0.0, 0.0])
    found = ft.jvp(lambda q: transform.Rotation.from_quat(q).as_euler("zxz"), (turn,), (turn,))[0]
    np.testing.assert_allclose(found, [0.0, np.pi, 0.0], atol=1e-15)
