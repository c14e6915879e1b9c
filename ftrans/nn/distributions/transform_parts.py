"""Transforms that are made of others: composed, of parts of arrays, of more axes, and of another shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.source import at_line, user_line
from ...core.types import Shape
from ..functional.arguments import shape_of
from .constraints import Constraint, cat, independent, real, stack
from .numbers import operands, sizes_of
from .transforms import Transform

__all__ = [
    "CatTransform", "ComposeTransform", "IndependentTransform", "ReshapeTransform", "StackTransform",
    "identity_transform",
]  # fmt: skip


def sum_of_last(x: Any, count: int) -> Any:
    """Sums over the last axes."""
    return np.sum(x, axis=tuple(range(-count, 0))) if count > 0 else x


class ComposeTransform(Transform):
    """One transform after another.

    Args:
        parts: the transforms, the first one first.

    Example:
        >>> from ftrans.nn import distributions as D
        >>> f = D.ComposeTransform([D.AffineTransform(0.0, 2.0), D.ExpTransform()])
        >>> float(f(1.0).round(3))
        7.389
    """

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)

    def _events(self) -> tuple[int, int]:
        """The numbers of axes of one event, of arguments and values: enough for every part."""
        first = last = 0
        for part in self.parts:
            gained = part.codomain.event_dim - part.domain.event_dim
            lacking = max(part.domain.event_dim - last, 0)
            first, last = first + lacking, last + lacking + gained
        return first, last

    @property
    def domain(self) -> Constraint:
        if not self.parts:
            return real
        inner = self.parts[0].domain
        return independent(inner, self._events()[0] - inner.event_dim)

    @property
    def codomain(self) -> Constraint:
        if not self.parts:
            return real
        inner = self.parts[-1].codomain
        return independent(inner, self._events()[1] - inner.event_dim)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all parts are bijective."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    def _call(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Any) -> Any:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def _log_slope(self, x: Any, y: Any) -> Any:
        events = self._events()[0]
        total: Any = None
        for part in self.parts:
            image = part(x)
            slope = sum_of_last(part.log_abs_det_jacobian(x, image), events - part.domain.event_dim)
            total = slope if total is None else total + slope
            events += part.codomain.event_dim - part.domain.event_dim
            x = image
        return np.zeros_like(x) if total is None else total

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return f"ComposeTransform({self.parts!r})"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last axes are taken for parts of one event.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many axes more are one event.
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int) -> None:
        self.base_transform, self.reinterpreted_batch_ndims = base_transform, reinterpreted_batch_ndims

    @property
    def domain(self) -> Constraint:
        return independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Constraint:
        return independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the transform is."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        return self.base_transform.inv(y)

    def _log_slope(self, x: Any, y: Any) -> Any:
        return sum_of_last(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """The last axes in another shape.

    Args:
        in_shape: the shape of an event.
        out_shape: the shape that it gets.

    Raises:
        ValueError: the shapes have different numbers of elements.
    """

    def __init__(self, in_shape: Any, out_shape: Any) -> None:
        self.in_shape, self.out_shape = (sizes_of(s, "ReshapeTransform") for s in (in_shape, out_shape))
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                f"in_shape {self.in_shape} and out_shape {self.out_shape} of ReshapeTransform have different numbers "
                f"of elements{at_line(user_line())}"
            )

    @property
    def domain(self) -> Constraint:
        return independent(real, len(self.in_shape))

    @property
    def codomain(self) -> Constraint:
        return independent(real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape(self.forward_shape(shape_of(x)))

    def _inverse(self, y: Any) -> Any:
        return y.reshape(self.inverse_shape(shape_of(y)))

    def _log_slope(self, x: Any, y: Any) -> Any:
        return np.zeros(shape_of(x)[: len(shape_of(x)) - len(self.in_shape)], x.dtype)

    def forward_shape(self, shape: Shape) -> Shape:
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._exchanged(shape, self.out_shape, self.in_shape)

    def _exchanged(self, shape: Shape, old: Shape, new: Shape) -> Shape:
        batch = len(shape) - len(old)
        if batch < 0 or shape[batch:] != old:
            raise ValueError(f"ReshapeTransform takes arrays of shape (..., {old}), not {shape}{at_line(user_line())}")
        return (*shape[:batch], *new)


class _OfParts(Transform):
    """Transforms of parts of an array along an axis."""

    dim: int
    transforms: list[Transform]

    def _parts(self, x: Any) -> list[Any]:
        raise NotImplementedError(type(self))

    def _joined(self, parts: list[Any]) -> Any:
        raise NotImplementedError(type(self))

    def _constraint(self, parts: list[Constraint]) -> Constraint:
        raise NotImplementedError(type(self))

    @property
    def domain(self) -> Constraint:
        return self._constraint([t.domain for t in self.transforms])

    @property
    def codomain(self) -> Constraint:
        return self._constraint([t.codomain for t in self.transforms])

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all transforms are."""
        return all(t.bijective for t in self.transforms)

    def _each(self, f: Callable[..., Any], *xs: Any) -> list[Any]:
        return [f(t, *parts) for t, *parts in zip(self.transforms, *map(self._parts, xs), strict=True)]

    def _call(self, x: Any) -> Any:
        return self._joined(self._each(lambda t, part: t(part), x))

    def _inverse(self, y: Any) -> Any:
        return self._joined(self._each(lambda t, part: t.inv(part), y))

    def _log_slope(self, x: Any, y: Any) -> Any:
        events = max(t.domain.event_dim for t in self.transforms)
        slopes = self._each(
            lambda t, a, b: sum_of_last(t.log_abs_det_jacobian(a, b), events - t.domain.event_dim), x, y
        )
        axis = self.dim if self.dim >= 0 else self.dim + len(shape_of(x))
        if axis >= len(shape_of(x)) - events:
            return sum(slopes)
        return self._joined(slopes)


class CatTransform(_OfParts):
    """Transforms of the parts of an array along an axis.

    Args:
        tseq: the transforms.
        dim: the axis.
        lengths: the size of each part along the axis; 1 by default.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.transforms, self.dim = list(tseq), dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform takes one length for each of its {len(self.transforms)} transforms, not "
                f"{len(self.lengths)}{at_line(user_line())}"
            )

    def _parts(self, x: Any) -> list[Any]:
        size = shape_of(x)[self.dim]
        if size != sum(self.lengths):
            raise ValueError(
                f"CatTransform takes arrays of size {sum(self.lengths)} along axis {self.dim}, not {size}"
                + at_line(user_line())
            )
        return list(np.split(x, np.cumsum(self.lengths)[:-1].tolist(), self.dim))

    def _joined(self, parts: list[Any]) -> Any:
        return np.concatenate(operands(parts), self.dim)

    def _constraint(self, parts: list[Constraint]) -> Constraint:
        return cat(parts, self.dim, self.lengths)


class StackTransform(_OfParts):
    """Transforms of the slices of an array along an axis.

    Args:
        tseq: the transforms, one for each slice.
        dim: the axis.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0) -> None:
        self.transforms, self.dim = list(tseq), dim

    def _parts(self, x: Any) -> list[Any]:
        size = shape_of(x)[self.dim]
        if size != len(self.transforms):
            raise ValueError(
                f"StackTransform takes arrays of size {len(self.transforms)} along axis {self.dim}, not {size}"
                + at_line(user_line())
            )
        return [np.take(x, i, self.dim) for i in range(size)]

    def _joined(self, parts: list[Any]) -> Any:
        return np.stack(operands(parts), self.dim)

    def _constraint(self, parts: list[Constraint]) -> Constraint:
        return stack(parts, self.dim)
