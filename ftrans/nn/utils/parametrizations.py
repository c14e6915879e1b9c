"""Parametrizations of weights: with a norm that is trained, with a bounded singular value, and orthogonal ones.

Names, arguments and the names in state dictionaries are those of `torch.nn.utils.parametrizations`.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from ... import numpy as fnp
from ...api.derivatives import stop_gradient
from ...base.cell import Eager
from ...base.source import at_line, user_line
from ...core.types import is_complex
from ..cells.kinds import Buffer
from ..functional import normalize
from ..functional.arguments import concrete
from ..init import generator
from ..layers.convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from .orthogonal_maps import completed, is_orthogonal, orthonormal, reflections_of, with_reflections
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

Layer = TypeVar("Layer", bound=Module)


def __dir__() -> list[str]:
    return sorted(__all__)


# Weights with a norm that is trained


def weight_norm(module: Layer, name: str = "weight", dim: int | None = 0) -> Layer:
    """Train norm and direction of a weight apart, `g * v / |v|` (Salimans and Kingma, 2016).

    Args:
        module: the module; `parametrizations.weight.original0` is g, `original1` is v.
        name: the name of the weight.
        dim: axis along which each slice has a norm of its own; None for one norm of the whole weight.

    Returns:
        The module.

    Raises:
        ValueError: the module has no such parameter.

    Example:
        >>> from ftrans import nn
        >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
        >>> {name: p.shape for name, p in layer.named_parameters()}
        {'bias': (2,), 'parametrizations.weight.original0': (2, 1), 'parametrizations.weight.original1': (2, 3)}
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)  # type: ignore[return-value]


class _WeightNorm(Module):
    def __init__(self, dim: int | None) -> None:
        self.dim = dim

    def forward(self, g: Any, v: Any) -> Any:
        return v * (g / norm_except(v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return norm_except(weight, self.dim), weight

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


def norm_except(x: Any, dim: int | None) -> Any:
    """The Euclidean norm of each slice along an axis, with axes of size 1 for the others; None for that of all."""
    squares = fnp.square(fnp.abs(x))
    if dim is None or dim == -1:
        return fnp.sqrt(fnp.sum(squares))
    axes = tuple([i for i in range(len(x.shape)) if i != dim % len(x.shape)])
    return fnp.sqrt(fnp.sum(squares, axis=axes, keepdims=True))


# Weights with a bounded singular value


def spectral_norm(
    module: Layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Layer:
    """Divide a weight by its largest singular value (Miyato et al., 2018).

    The singular value is estimated by the power method, which goes on whenever the weight is read in training mode.

    Args:
        module: the module.
        name: the name of the weight; of a vector it is divided by the norm.
        n_power_iterations: number of iterations each time.
        eps: lower bound of the norms that are divided by.
        dim: axis of the weight that is the rows of a matrix, all others being columns; by default 1 for transposed
            convolutions, else 0.

    Returns:
        The module.

    Raises:
        ValueError: the module has no such parameter, or the number of iterations is not positive.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2), n_power_iterations=20)
        >>> print(np.linalg.norm(layer.weight.detach().numpy(), 2).round(4))
        1.0
    """
    weight = getattr(module, name, None)
    if weight is None:
        raise ValueError(f"{module.described()} has no parameter {name!r}{at_line(user_line())}")
    norm = _SpectralNorm(weight, n_power_iterations, eps, rows_of(module, dim))
    return register_parametrization(module, name, norm)  # type: ignore[return-value]


class _SpectralNorm(Module):
    def __init__(self, weight: Any, n_power_iterations: int, eps: float, dim: int) -> None:
        require_iterations(n_power_iterations)
        self.dim = dim if dim >= 0 else dim + len(weight.shape)
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if len(weight.shape) > 1:
            matrix = as_matrix(concrete(weight), self.dim)
            self._u = Buffer(unit_vector(matrix.shape[0], matrix.dtype, eps))
            self._v = Buffer(unit_vector(matrix.shape[1], matrix.dtype, eps))
            self._iterate(matrix, 15)

    def _iterate(self, matrix: Any, count: int) -> None:
        u, v = self._u.value, self._v.value
        for _ in range(count):
            u = normalize(matrix @ v, dim=0, eps=self.eps).astype(matrix.dtype)
            v = normalize(matrix.T @ u, dim=0, eps=self.eps).astype(matrix.dtype)
        self._u, self._v = u, v

    def forward(self, weight: Any) -> Any:
        if len(weight.shape) == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(without_gradient(matrix), self.n_power_iterations)
        norm = stop_gradient(self._u.read()) @ (matrix @ stop_gradient(self._v.read()))
        # NumPy multiplies matrices of bfloat16 in float32.
        return weight / norm.astype(weight.dtype)

    def right_inverse(self, value: Any) -> Any:
        return value

    def extra_repr(self) -> str:
        return f"n_power_iterations={self.n_power_iterations}"


def without_gradient(x: Any) -> Any:
    """An array of which no derivative is taken; of a tensor its array, since operations on that cost less."""
    return x.concrete() if isinstance(x, Eager) else stop_gradient(x)


def rows_of(module: Module, dim: int | None) -> int:
    """The axis of a weight that is that of outputs."""
    if dim is not None:
        return dim
    return int(isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d))


def as_matrix(weight: Any, dim: int) -> Any:
    """A weight with one axis as rows, and all others as columns."""
    return fnp.moveaxis(weight, dim, 0).reshape((weight.shape[dim], -1))


def unit_vector(size: int, dtype: Any, eps: float) -> Any:
    """A random vector of norm 1."""
    x = generator().normal(size=size)
    return (x / max(float(np.linalg.norm(x)), eps)).astype(dtype)


def require_iterations(count: int) -> None:
    """Raise unless the number of iterations of the power method is positive."""
    if count < 1:
        raise ValueError(f"n_power_iterations must be at least 1, not {count}{at_line(user_line())}")


# Orthogonal weights

_MAPS = ("matrix_exp", "cayley", "householder")


def orthogonal(
    module: Layer, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Layer:
    """Keep the rows or columns of a weight, whichever are fewer, orthonormal; for complex ones, unitary.

    What is trained is a matrix X without constraint.  With A = X - X^H of the lower triangle of X:

    - "matrix_exp": the weight is exp(A) (Lezcano-Casado and Martinez-Rubio, 2019),
    - "cayley": (I + A / 2) (I - A / 2)^-1,
    - "householder": the product of the Householder reflections whose vectors are the columns of X.

    Args:
        module: the module.
        name: the name of the weight, with at least two axes; matrices in the last two.
        orthogonal_map: as above; by default "matrix_exp" for square and complex weights, else "householder".
        use_trivialization: whether the weight is multiplied by a fixed orthogonal matrix, the buffer `base`, which is
            what was assigned last (Lezcano-Casado, 2019); without it only "householder" can be assigned to.

    Returns:
        The module.

    Raises:
        ValueError: the weight is a vector, or the map is unknown.

    Example:
        >>> import numpy as np
        >>> from ftrans import nn
        >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 2))
        >>> w = layer.weight.detach().numpy()
        >>> bool(np.allclose(w @ w.T, np.eye(2), atol=1e-6))
        True
    """
    weight = getattr(module, name, None)
    if weight is None or len(weight.shape) < 2:
        given = "there is none" if weight is None else f"it has shape {tuple(weight.shape)}"
        raise ValueError(
            f"orthogonal takes a parameter {name!r} with at least two axes, and {given}{at_line(user_line())}"
        )
    if orthogonal_map is None:
        is_square = weight.shape[-1] == weight.shape[-2]
        orthogonal_map = "matrix_exp" if is_square or is_complex(weight.dtype) else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f"orthogonal_map must be 'matrix_exp', 'cayley' or 'householder', not {orthogonal_map!r}"
            + at_line(user_line())
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)  # type: ignore[return-value]


class _Orthogonal(Module):
    base: Buffer | None

    def __init__(self, weight: Any, orthogonal_map: str, use_trivialization: bool) -> None:
        if is_complex(weight.dtype) and orthogonal_map == "householder":
            raise ValueError(
                "the reflections of a complex matrix are not among the parametrizations; pass "
                f"orthogonal_map='matrix_exp' or 'cayley'{at_line(user_line())}"
            )
        self.shape = tuple(weight.shape)
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        self.base = None

    def forward(self, x: Any) -> Any:
        dtype, is_wide = x.dtype, x.shape[-2] < x.shape[-1]
        x = _transposed(x) if is_wide else x
        # Linear algebra needs at least 32 bits.
        x = x.astype(_wide(dtype))
        q = with_reflections(x) if self.orthogonal_map == "householder" else self._by_rotation(x)
        if self.base is not None:
            q = self.base.read() @ q
        q = q.astype(dtype)
        return _transposed(q) if is_wide else q

    def _by_rotation(self, x: Any) -> Any:
        """The first columns of the orthogonal matrix of a skew matrix."""
        rows, columns = x.shape[-2:]
        x = fnp.tril(x)
        if rows != columns:
            x = fnp.concatenate([x, np.zeros((*x.shape[:-1], rows - columns), x.dtype)], axis=-1)
        a = x - fnp.conj(_transposed(x))
        if self.orthogonal_map == "matrix_exp":
            from ...scipy.linalg import expm

            return expm(a)[..., :columns]
        identity = np.eye(rows, dtype=x.dtype)
        # Powers of one matrix commute, so either order of the factors is the same.
        return fnp.linalg.solve(identity - 0.5 * a, identity + 0.5 * a)[..., :columns]

    def right_inverse(self, value: Any) -> Any:
        given = concrete(value)
        if given is None:
            raise TypeError(
                "a weight that is kept orthogonal cannot be assigned a traced value; assign it outside of the "
                f"transformed function{at_line(user_line())}"
            )
        if given.shape != self.shape:
            raise ValueError(
                f"the orthogonal weight has shape {self.shape}, and was assigned an array of shape {given.shape}"
                + at_line(user_line())
            )
        is_wide = given.shape[-2] < given.shape[-1]
        dtype = given.dtype
        q = (np.swapaxes(given, -1, -2) if is_wide else given).astype(_wide(dtype))
        if self.use_trivialization:
            base = completed(q) if q.shape[-1] < q.shape[-2] else q if is_orthogonal(q) else orthonormal(q)
            if self.base is None:
                self.base = Buffer(base.astype(dtype))
            else:
                self.base.value = base.astype(dtype)
            # The reflections of this matrix, and the rotation of its lower triangle, are the identity.
            return np.broadcast_to(-np.eye(*given.shape[-2:], dtype=given.dtype), given.shape)
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                f"orthogonal_map={self.orthogonal_map!r} cannot be assigned to with use_trivialization=False"
                + at_line(user_line())
            )
        found = reflections_of(q).astype(dtype)
        return np.swapaxes(found, -1, -2) if is_wide else found

    def extra_repr(self) -> str:
        return f"orthogonal_map={self.orthogonal_map!r}, use_trivialization={self.use_trivialization}"


def _wide(dtype: Any) -> Any:
    return dtype if np.dtype(dtype).itemsize >= 4 else np.dtype(np.float32)


def _transposed(x: Any) -> Any:
    return fnp.swapaxes(x, -1, -2)
