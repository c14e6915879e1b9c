"""Frozen distributions: those whose parameters are given beforehand, as in `norm(0.0, 2.0)`."""

from __future__ import annotations

import functools
from typing import Any

import scipy.stats

from ...numpy.promotion import has_tracer

__all__ = ["Frozen", "class_of_frozen"]


class Frozen:
    """A distribution with its parameters, which may be traced.

    Its methods are those of the distribution, without the parameters.  Where these are plain it has all of the methods
    and attributes that SciPy's frozen distribution has.

    Attributes:
        dist: the distribution.
        args, kwds: its parameters.
    """

    def __init__(self, dist: Any, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return class_of_frozen(self.dist)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in vars(self.dist):
            method = getattr(self.dist, name)
            return lambda *given, **options: method(*given, *self.args, **self.kwds, **options)
        if has_tracer([*self.args, *self.kwds.values()]):
            return getattr(self.dist, name)
        return getattr(getattr(scipy.stats, self.dist.name)(*self.args, **self.kwds), name)

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Random numbers, as `rvs` of the distribution draws them."""
        return self.dist.rvs(*self.args, **self.kwds, size=size, random_state=random_state)

    def __repr__(self) -> str:
        given = [*map(repr, self.args), *(f"{name}={x!r}" for name, x in self.kwds.items())]
        return f"{self.dist!r}({', '.join(given)})"


@functools.cache
def class_of_frozen(dist: Any) -> type:
    """SciPy's class of a distribution of a kind with its parameters."""
    return type(getattr(scipy.stats, dist.name)(*dist.typical))
