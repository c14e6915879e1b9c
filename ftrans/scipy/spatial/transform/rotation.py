"""`scipy.spatial.transform.Rotation` of traced values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.spatial.transform

from ....base.source import at_line, user_line
from ....core.primitive import MissingRule
from ....numpy.dispatch import implements
from ....numpy.promotion import asarray, cast, has_tracer
from ....run.places import live_in_trace
from . import quaternions

SCIPY: Any = scipy.spatial.transform.Rotation


class _Methods:
    """Rotations whose quaternions (..., 4) are traced, with the methods of SciPy's class."""

    def __init__(self, quat: Any) -> None:
        # The quaternions have length 1.
        self._traced = quat

    def __repr__(self) -> str:
        return f"<Rotation {self.shape} of traced values>"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of rotations; () for one."""
        return self._traced.shape[:-1]

    @property
    def single(self) -> bool:
        """Whether this is one rotation, and no array of them."""
        return not self.shape

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        if self.single:
            raise TypeError(f"a single rotation has no len(){at_line(user_line())}")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, indexer: Any) -> Any:
        if self.single:
            raise TypeError(f"a single rotation has no elements{at_line(user_line())}")
        index = indexer if isinstance(indexer, tuple) else (indexer,)
        return TracedRotation(self._traced[index if any(i is Ellipsis for i in index) else (*index, Ellipsis)])

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """Quaternions (..., 4) of length 1."""
        q = quaternions.canonical(self._traced) if canonical else self._traced
        return np.roll(q, 1, -1) if scalar_first else q

    def as_matrix(self) -> Any:
        """Matrices (..., 3, 3)."""
        return quaternions.as_matrix(self._traced)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Axes times angles (..., 3)."""
        return _in_degrees(quaternions.as_rotvec(self._traced), degrees)

    def as_euler(self, seq: str, degrees: bool = False, *, suppress_warnings: bool = False) -> Any:
        """Euler angles (..., 3)."""
        return _in_degrees(quaternions.as_euler(self._traced, seq), degrees)

    def as_mrp(self) -> Any:
        """Modified Rodrigues parameters (..., 3)."""
        return quaternions.as_mrp(self._traced)

    def apply(self, vectors: Any, inverse: bool = False) -> Any:
        """The vectors (..., 3), turned."""
        vectors = cast(asarray(vectors), np.dtype(np.float64))
        if vectors.shape[-1:] != (3,):
            raise ValueError(f"vectors have the shape (..., 3), not {vectors.shape}{at_line(user_line())}")
        matrix = self.as_matrix()
        matrix = np.swapaxes(matrix, -1, -2) if inverse else matrix
        return np.sum(matrix * vectors[..., None, :], -1)

    def inv(self) -> Any:
        """The rotations back."""
        return TracedRotation(quaternions.inverse(self._traced))

    def magnitude(self) -> Any:
        """The angles, from 0 to pi."""
        q = self._traced
        return 2 * np.arctan2(np.linalg.norm(q[..., :3], axis=-1), np.abs(q[..., 3]))

    def mean(self, weights: Any = None, axis: Any = None) -> Any:
        """The mean rotation, by the largest eigenvector of the mean of q qT."""
        q = self._traced
        if axis is not None and len(self.shape) > 1:
            raise MissingRule(
                f"Rotation.mean of traced values takes rotations along one axis, not {self.shape}{at_line(user_line())}"
            )
        q = q.reshape((-1, 4))
        weights = np.ones(q.shape[0]) if weights is None else weights
        return TracedRotation(quaternions.largest_eigenvector(np.einsum("n,ni,nj->ij", weights, q, q))[1])

    def approx_equal(self, other: Any, atol: Any = None, degrees: bool = False) -> Any:
        """Whether the angle between two rotations is at most `atol`."""
        limit = 1e-8 if atol is None else np.deg2rad(atol) if degrees else atol
        return (self * other.inv()).magnitude() < limit

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, SCIPY):
            return NotImplemented
        return TracedRotation(quaternions.normalized(quaternions.product(quaternion_of(self), quaternion_of(other))))

    def __rmul__(self, other: Any) -> Any:
        return traced(other) * self if isinstance(other, SCIPY) else NotImplemented

    def __pow__(self, n: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            raise NotImplementedError(f"modulus not supported{at_line(user_line())}")
        if not has_tracer(n) and n == 1:
            return self
        return TracedRotation(quaternions.from_rotvec(n * self.as_rotvec()))


def _refused(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise MissingRule(
            f"scipy.spatial.transform.Rotation.{name} has no form for traced values; write it by as_quat, as_matrix or "
            f"as_rotvec{at_line(user_line())}"
        )

    return method


_MADE = ("align_vectors", "concatenate", "create_group", "identity", "random")
_OTHERS = {n for n in dir(SCIPY) if not n.startswith(("_", "from_"))} - set(dir(_Methods)) - set(_MADE)
_Refusing: Any = type("_Refusing", (), {n: _refused(n) for n in (*_OTHERS, "__setitem__", "__getstate__")})


class TracedRotation(_Methods, _Refusing, SCIPY):
    """The same, as an object of SciPy's class."""


live_in_trace(TracedRotation)


def quaternion_of(rotation: Any) -> Any:
    """The quaternions of SciPy's rotations, or of traced ones."""
    return rotation._traced if type(rotation) is TracedRotation else asarray(rotation.as_quat())


def traced(rotation: Any) -> Any:
    """Rotations of SciPy as traced ones."""
    return rotation if type(rotation) is TracedRotation else TracedRotation(quaternion_of(rotation))


def _in_degrees(angles: Any, degrees: bool) -> Any:
    return np.rad2deg(angles) if degrees else angles


def _in_radians(angles: Any, degrees: bool) -> Any:
    return np.deg2rad(angles) if degrees else angles


def _array(x: Any, name: str, *end: int) -> Any:
    x = cast(asarray(x), np.dtype(np.float64))
    if end and x.shape[-len(end) :] != end:
        shape = ", ".join(map(str, ("...", *end)))
        raise ValueError(f"{name} have the shape ({shape}), not {x.shape}{at_line(user_line())}")
    return x


@implements(SCIPY)
def rotation(quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False) -> Any:
    """Rotations of quaternions (..., 4)."""
    quat = _array(quat, "quaternions", 4)
    quat = np.roll(quat, -1, -1) if scalar_first else quat
    return TracedRotation(quaternions.normalized(quat) if normalize else quat)


@implements(SCIPY.from_quat)
def from_quat(quat: Any, *, scalar_first: bool = False) -> Any:
    """Rotations of quaternions (..., 4), which are normalized."""
    return rotation(quat, scalar_first=scalar_first)


@implements(SCIPY.from_matrix)
def from_matrix(matrix: Any, *, assume_valid: bool = False) -> Any:
    """Rotations of matrices (..., 3, 3); of others than rotations, the nearest ones."""
    return TracedRotation(quaternions.from_matrix(_array(matrix, "matrices", 3, 3), assume_valid))


@implements(SCIPY.from_rotvec)
def from_rotvec(rotvec: Any, degrees: bool = False) -> Any:
    """Rotations of axes times angles (..., 3), smooth at 0."""
    return TracedRotation(quaternions.from_rotvec(_in_radians(_array(rotvec, "rotation vectors", 3), degrees)))


@implements(SCIPY.from_euler)
def from_euler(seq: str, angles: Any, degrees: bool = False) -> Any:
    """Rotations of Euler angles (..., axes)."""
    return TracedRotation(quaternions.from_euler(seq, _in_radians(_array(angles, "angles"), degrees)))


@implements(SCIPY.from_davenport)
def from_davenport(axes: Any, order: str, angles: Any, degrees: bool = False) -> Any:
    """Rotations of angles (..., axes) around up to three axes (axes, 3), each orthogonal to the next."""
    axes = _array(axes, "axes", 3)
    axes = axes if axes.ndim > 1 else axes[None]
    axes = axes / np.linalg.norm(axes, axis=-1, keepdims=True)
    angles = _in_radians(_array(angles, "angles"), degrees)
    angles = angles if angles.ndim else angles[None]
    if order not in ("e", "i", "extrinsic", "intrinsic") or angles.shape[-1] != axes.shape[-2]:
        raise ValueError(
            f"order must be 'extrinsic' or 'intrinsic' and angles (..., {axes.shape[-2]}), not {order!r} and "
            f"{angles.shape}{at_line(user_line())}"
        )
    turns = [quaternions.from_rotvec(angles[..., i, None] * axes[..., i, :]) for i in range(axes.shape[-2])]
    return TracedRotation(quaternions.composed(turns, order.startswith("i")))


@implements(SCIPY.from_mrp)
def from_mrp(mrp: Any) -> Any:
    """Rotations of modified Rodrigues parameters (..., 3)."""
    return TracedRotation(quaternions.from_mrp(_array(mrp, "parameters", 3)))


@implements(SCIPY.concatenate)
def concatenate(rotations: Any) -> Any:
    """Several rotations as one array of them."""
    parts = [quaternion_of(r) for r in ([rotations] if isinstance(rotations, SCIPY) else rotations)]
    return TracedRotation(np.concatenate([q if q.ndim > 1 else q[None] for q in parts]))


@implements(SCIPY.align_vectors)
def align_vectors(a: Any, b: Any, weights: Any = None, return_sensitivity: bool = False) -> tuple[Any, Any]:
    """The rotation that turns vectors `b` (n, 3) to `a` best, and the root of the weighted sum of squares left."""
    a, b = _array(a, "vectors", 3), _array(b, "vectors", 3)
    if return_sensitivity or a.ndim != 2 or a.shape != b.shape or a.shape[0] < 2:
        raise MissingRule(
            "Rotation.align_vectors of traced values takes at least two vectors (n, 3) on each side, and has no "
            f"sensitivity{at_line(user_line())}"
        )
    weights = np.ones(a.shape[0]) if weights is None else weights
    if not has_tracer(weights) and not np.all(np.isfinite(weights)):
        raise MissingRule(f"Rotation.align_vectors of traced values takes finite weights{at_line(user_line())}")
    q, left = quaternions.aligning(a, b, asarray(weights))
    return TracedRotation(q), left


def _method(name: str) -> Callable[..., Any]:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(traced(self), name)(*args, **kwargs)

    call.__name__ = name
    call.__doc__ = getattr(_Methods, name).__doc__
    public: Callable[..., Any] = implements(getattr(SCIPY, name))(call)
    return public


class _Kind(type):
    """Calls of the class make rotations of SciPy of plain values; both are its instances."""

    def __call__(cls, quat: Any, normalize: bool = True, copy: bool = True, scalar_first: bool = False) -> Any:
        return rotation(quat, normalize, copy, scalar_first=scalar_first)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, SCIPY)


class Rotation(metaclass=_Kind):
    """`scipy.spatial.transform.Rotation`, of traced values too.

    What is made of plain values is SciPy's object, and of traced values one with the same methods.

    Example:
        >>> import numpy as np, ftrans as ft
        >>> from ftrans.scipy.spatial.transform import Rotation
        >>> turned = lambda angle: Rotation.from_euler("z", angle).apply(np.array([1.0, 0.0, 0.0]))
        >>> ft.jacobian(turned)(0.0).round(6)
        array([0., 1., 0.])
    """

    from_quat = staticmethod(from_quat)
    from_matrix = staticmethod(from_matrix)
    from_rotvec = staticmethod(from_rotvec)
    from_euler = staticmethod(from_euler)
    from_davenport = staticmethod(from_davenport)
    from_mrp = staticmethod(from_mrp)
    concatenate = staticmethod(concatenate)
    align_vectors = staticmethod(align_vectors)
    identity = staticmethod(SCIPY.identity)
    random = staticmethod(SCIPY.random)
    create_group = staticmethod(SCIPY.create_group)


for _name in (
    "apply", "approx_equal", "as_euler", "as_matrix", "as_mrp", "as_quat", "as_rotvec", "inv", "magnitude", "mean",
    "__mul__", "__pow__", "__getitem__",
):  # fmt: skip
    setattr(Rotation, _name, _method(_name))
