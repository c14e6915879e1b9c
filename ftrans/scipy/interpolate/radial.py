"""Interpolation by radial functions of the distance from each data point: `RBFInterpolator` and the older `Rbf`.

Coefficients solve a dense linear system, which is differentiated by its data, its points and its shape parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.interpolate
import scipy.linalg

from ...base.foreign import parts_of_rbf
from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from .objects import Form, enter
from .operands import as_double, as_real, is_plain, solve

__all__ = ["RBFInterpolator", "Rbf"]


def _root(squared: Any) -> Any:
    """The distance, whose derivative at 0 is taken as 0."""
    is_zero = squared == 0
    return np.where(is_zero, 0.0, np.sqrt(np.where(is_zero, 1.0, squared)))


def _thin_plate(squared: Any) -> Any:
    is_zero = squared == 0
    return np.where(is_zero, 0.0, 0.5 * squared * np.log(np.where(is_zero, 1.0, squared)))


# Functions of the squared distance.
_KERNELS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda s: -_root(s),
    "thin_plate_spline": _thin_plate,
    "cubic": lambda s: s * _root(s),
    "quintic": lambda s: -(s**2) * _root(s),
    "multiquadric": lambda s: -np.sqrt(s + 1.0),
    "inverse_multiquadric": lambda s: 1.0 / np.sqrt(s + 1.0),
    "inverse_quadratic": lambda s: 1.0 / (s + 1.0),
    "gaussian": lambda s: np.exp(-s),
}
_LEAST_DEGREES = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}
_SCALE_FREE = ("linear", "thin_plate_spline", "cubic", "quintic")


def _squared_distances(x: Any, y: Any) -> Any:
    return np.sum((x[:, None, :] - y) ** 2, axis=-1)


def _monomials(x: Any, powers: Any) -> Any:
    """The values of monomials at points: (points, monomials)."""
    columns = []
    for row in powers:
        product = np.ones_like(x[:, 0])
        for axis, power in enumerate(row):
            for _ in range(power):
                product = product * x[:, axis]
        columns.append(product)
    return np.stack(columns, axis=1) if columns else np.zeros((x.shape[0], 0))


def _powers(ndim: int, degree: int) -> Any:
    """The exponents of all monomials up to a degree."""
    found = [p for p in np.ndindex(*[max(degree, -1) + 1] * ndim) if sum(p) <= degree]
    return np.array(sorted(found, key=sum), int).reshape(-1, ndim)


class Radial(Form):
    """A sum of radial functions and a polynomial.

    Args:
        y: the places of the data, (n, dimensions).
        kernel: the name of the radial function.
        epsilon: its shape parameter.
        powers: exponents of the monomials.
        shift: what is subtracted from coordinates in monomials.
        scale: what they are divided by then.
        coefficients: those of radial functions and monomials, (n + monomials, ...).
    """

    stands_for = scipy.interpolate.RBFInterpolator

    def __init__(
        self, y: Any, kernel: str, epsilon: Any, powers: Any, shift: Any, scale: Any, coefficients: Any
    ) -> None:
        self.y, self.kernel, self.epsilon, self.powers = y, kernel, epsilon, powers
        self._shift, self._scale, self._coefficients = shift, scale, coefficients

    def __call__(self, x: Any) -> Any:
        """Values at points, (points, dimensions)."""
        x = as_real(x, "x")
        if x.ndim != 2 or x.shape[1] != self.y.shape[1]:
            raise ValueError(
                f"points are of the shape (points, {self.y.shape[1]}), not {x.shape}{at_line(user_line())}"
            )
        radial = _KERNELS[self.kernel](_squared_distances(x * self.epsilon, self.y * self.epsilon))
        factors = np.concatenate([radial, _monomials((x - self._shift) / self._scale, self.powers)], axis=1)
        values = factors @ self._coefficients.reshape(factors.shape[1], -1)
        return values.reshape(x.shape[0], *self._coefficients.shape[1:])


def _radial(
    y: Any,
    d: Any,
    neighbors: Any = None,
    smoothing: Any = 0.0,
    kernel: str = "thin_plate_spline",
    epsilon: Any = None,
    degree: Any = None,
) -> Radial:
    """`scipy.interpolate.RBFInterpolator` with all neighbors, whose data, parameters and points may be traced."""
    if neighbors is not None:
        raise _of_neighbors()
    y, d, kernel = as_real(y, "y"), as_double(d), kernel.lower()
    if kernel not in _KERNELS:
        raise ValueError(f"`kernel` must be one of {set(_KERNELS)}.{at_line(user_line())}")
    if y.ndim != 2 or d.shape[0] != y.shape[0]:
        raise ValueError(
            f"`y` must be a 2-dimensional array, and `d` as long, not {y.shape} and {d.shape}{at_line(user_line())}"
        )
    if epsilon is None:
        if kernel not in _SCALE_FREE:
            raise ValueError(f"`epsilon` must be specified for the kernel {kernel!r}{at_line(user_line())}")
        epsilon = 1.0
    powers = _powers(y.shape[1], max(_LEAST_DEGREES.get(kernel, -1), 0) if degree is None else int(degree))
    low, high = np.min(y, axis=0), np.max(y, axis=0)
    shift, scale = (high + low) / 2, (high - low) / 2
    scale = np.where(scale == 0.0, 1.0, scale)
    radial = _KERNELS[kernel](_squared_distances(y * epsilon, y * epsilon))
    radial = radial + np.diag(np.broadcast_to(as_real(smoothing, "smoothing"), (y.shape[0],)))
    polynomial, count = _monomials((y - shift) / scale, powers), len(powers)
    matrix = np.concatenate(
        [
            np.concatenate([radial, polynomial], axis=1),
            np.concatenate([polynomial.T, np.zeros((count, count))], axis=1),
        ]
    )
    data = np.concatenate([d, np.zeros((count, *d.shape[1:]))])
    return Radial(y, kernel, epsilon, powers, shift, scale, solve(matrix, data))


def _of_neighbors() -> MissingRule:
    return MissingRule(
        "RBFInterpolator with neighbors=: which ones are near depends on the point, and values jump there; write "
        f"neighbors=None{at_line(user_line())}"
    )


def _of_rbf_interpolator(f: Any) -> Radial:
    if f.neighbors is not None:
        raise _of_neighbors()
    shift, scale, coefficients = parts_of_rbf(f)
    coefficients = np.ascontiguousarray(coefficients).view(f.d_dtype).reshape(-1, *f.d_shape)
    made = Radial(f.y, f.kernel, f.epsilon, f.powers, shift, scale, coefficients)
    made.stands_for = type(f)
    return made


RBFInterpolator = enter(scipy.interpolate.RBFInterpolator, _radial, _of_rbf_interpolator)


# The older class

# Functions of the squared distance, divided by the square of epsilon for the first three.
_OLDER: dict[str, Callable[[Any], Any]] = {
    "multiquadric": lambda s: np.sqrt(s + 1.0),
    "inverse": lambda s: 1.0 / np.sqrt(s + 1.0),
    "gaussian": lambda s: np.exp(-s),
    "linear": _root,
    "cubic": lambda s: s * _root(s),
    "quintic": lambda s: s**2 * _root(s),
    "thin_plate": _thin_plate,
}
_NAMES = {"inverse_multiquadric": "inverse", "inverse multiquadric": "inverse", "thin-plate": "thin_plate"}


class OlderRadial(Form):
    """A sum of radial functions of `Rbf`.

    Args:
        xi: coordinates of the data, (dimensions, n).
        nodes: factors of the functions, (n,) or (n, columns).
        function: the name of the radial function.
        epsilon: its length.
    """

    stands_for = scipy.interpolate.Rbf

    def __init__(self, xi: Any, nodes: Any, function: Any, epsilon: Any) -> None:
        self.xi, self.nodes, self.function, self.epsilon = xi, nodes, _name(function), epsilon

    def __call__(self, *args: Any) -> Any:
        """Values at points, given by their coordinates."""
        points = np.broadcast_arrays(*(as_real(a, "x") for a in args))
        flat = np.stack([p.reshape(-1) for p in points], axis=1)
        values = _older_kernel(self.function, flat, self.xi.T, self.epsilon) @ self.nodes
        return values.reshape(*points[0].shape, *self.nodes.shape[1:])


def _name(function: Any) -> str:
    name = function.lower() if isinstance(function, str) else None
    name = _NAMES.get(name, name) if name is not None else None
    if name not in _OLDER:
        raise MissingRule(
            f"Rbf of traced values takes one of the functions {', '.join(_OLDER)} with Euclidean distances, not "
            f"{function!r}{at_line(user_line())}"
        )
    return name


def _older_kernel(name: str, x: Any, y: Any, epsilon: Any) -> Any:
    squared = _squared_distances(x, y)
    return _OLDER[name](squared / epsilon**2 if name in ("multiquadric", "inverse", "gaussian") else squared)


def _rbf(
    *args: Any,
    function: Any = "multiquadric",
    epsilon: Any = None,
    smooth: Any = 0.0,
    norm: Any = "euclidean",
    mode: str = "1-D",
) -> OlderRadial:
    """`scipy.interpolate.Rbf` with Euclidean distances, whose data, parameters and points may be traced."""
    if norm != "euclidean":
        raise MissingRule(f"Rbf of traced values has Euclidean distances only, not {norm!r}{at_line(user_line())}")
    *coordinates, d = (as_double(a) for a in args)
    xi = np.stack([a.reshape(-1) for a in coordinates])
    d = d.reshape(-1) if mode == "1-D" else d
    count = xi.shape[1]
    if d.shape[0] != count:
        raise ValueError(f"All arrays must be equal length, not {count} and {d.shape[0]}{at_line(user_line())}")
    if epsilon is None:
        edges = [edge for edge in np.max(xi, axis=1) - np.min(xi, axis=1) if not is_plain(edge) or edge]
        epsilon = np.power(np.prod(np.stack(edges)) / count, 1.0 / len(edges))
    matrix = _older_kernel(_name(function), xi.T, xi.T, epsilon) - np.eye(count) * smooth
    return OlderRadial(xi, solve(matrix, d), function, epsilon)


def _of_rbf(f: Any) -> OlderRadial:
    if f.norm != "euclidean":
        raise MissingRule(f"Rbf at traced points has Euclidean distances only, not {f.norm!r}{at_line(user_line())}")
    made = OlderRadial(f.xi, f.nodes, f.function, f.epsilon)
    made.stands_for = type(f)
    return made


Rbf = enter(scipy.interpolate.Rbf, _rbf, _of_rbf)
