"""Integrals of functions with array results: `quad_vec`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import scipy.integrate

from ...core.trace import Tracer
from ...core.types import is_complex
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, cast
from .integrals import Computed, exploring, integrals
from .integrands import FoundTraced, is_traced, plainly, traced_function
from .quadrature import NUMBER, breakpoints, limits

__all__ = ["quad_vec"]


class Together(NamedTuple):
    """Quadrature of all elements at once: options of `scipy.integrate.quad_vec`."""

    epsabs: float
    epsrel: float
    norm: Any
    cache_size: float
    limit: int
    quadrature: Any

    def compute(self, f: Callable[[float], Any], size: int, a: float, b: float, points: Any) -> Computed:
        """The integrals of all elements."""
        breaks = points.tolist() if len(points) else None
        values, error, info = scipy.integrate.quad_vec(f, a, b, points=breaks, full_output=True, **self._asdict())
        return Computed(values, error, info.neval, len(info.intervals))

    def weighted(self, value: Any, x: Any) -> Any:
        """The integrand, since there is no weight."""
        return value

    def check_divisible(self) -> None:
        """There is no weight."""


@implements(scipy.integrate.quad_vec, takes_functions=True)
def quad_vec(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: Any = "2",
    cache_size: float = 100e6,
    limit: int = 10000,
    workers: Any = 1,
    points: Any = None,
    quadrature: Any = None,
    full_output: bool = False,
    *,
    args: Any = (),
) -> Any:
    """`scipy.integrate.quad_vec`, differentiable as `quad`.

    Derivatives are integrals by the same method; there are no workers.  With `full_output` the object has `neval`.
    """
    args = args if isinstance(args, tuple) else (args,)
    how = Together(epsabs, epsrel, norm, cache_size, limit, quadrature)
    if not is_traced(a, b, args, points):
        try:
            return scipy.integrate.quad_vec(
                plainly(f), a, b, **how._asdict(), workers=workers, points=points, full_output=full_output, args=args
            )
        except FoundTraced:
            pass

    def integrand(x: Tracer) -> list[Tracer]:
        y = asarray(f(x, *args))
        return [cast(part, NUMBER.dtype) for part in ((y.real, y.imag) if is_complex(y.dtype) else (y,))]

    low, high, breaks = *limits(a, b, "quad_vec"), breakpoints(points)
    traced = traced_function(f, [NUMBER], integrand, "quad_vec", exploring(how, low, high, breaks))
    outs, details = integrals(traced, low, high, breaks, how)
    value: Any = outs[0] + 1j * outs[1] if len(outs) == 2 else outs[0]
    return (value, details.error, SimpleNamespace(neval=details.evaluations)) if full_output else (value, details.error)
