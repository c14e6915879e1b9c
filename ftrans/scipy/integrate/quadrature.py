"""Integrals of functions of one variable by adaptive quadrature: `quad`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate

from ...api.call import name_of
from ...api.derivatives import stop_gradient
from ...base.source import at_line, user_line
from ...core.primitive import MissingRule
from ...core.trace import Tracer
from ...core.types import ArrayType, is_complex
from ...numpy.dispatch import implements
from ...numpy.promotion import asarray, cast
from .integrals import Computed, exploring, integrals
from .integrands import FoundTraced, is_traced, plainly, traced_function

__all__ = ["quad"]

NUMBER = ArrayType((), np.dtype(np.float64))


class Adaptive(NamedTuple):
    """Quadrature of one element after the other by QUADPACK: options of `scipy.integrate.quad`.

    Attributes:
        epsabs: absolute tolerance.
        epsrel: relative tolerance.
        limit: most subintervals.
        weight: name of the weight, or None.
        wvar: its parameters.
        maxp1: most Chebyshev moments.
        limlst: most cycles.
        silent: whether an inaccurate result is not warned of.
    """

    epsabs: float
    epsrel: float
    limit: int
    weight: str | None
    wvar: Any
    maxp1: int
    limlst: int
    silent: bool

    def compute(self, f: Callable[[float], Any], size: int, a: float, b: float, points: Any) -> Computed:
        """The integrals of all elements; values of the function are kept for those behind the first."""
        options = self._asdict()
        silent = options.pop("silent")
        kept = functools.cache(lambda x: f(x).tolist())
        values, errors, evaluations, intervals = [], [0.0], 0, 0
        for place in range(size):
            value, error, info, *message = scipy.integrate.quad(
                lambda x, place=place: kept(x)[place],
                a,
                b,
                full_output=1,
                points=points if len(points) else None,
                **options,
            )
            if message and not silent:
                warnings.warn(message[0], scipy.integrate.IntegrationWarning, stacklevel=2)
            values.append(value)
            errors.append(error)
            evaluations += info["neval"]
            intervals += info.get("last", 0)
        return Computed(values, max(errors), evaluations, intervals)

    def weighted(self, value: Any, x: Any) -> Any:
        """The integrand at a limit, times the weight there."""
        if self.weight is None:
            return value
        return value * (np.cos if self.weight == "cos" else np.sin)(self.wvar * x)

    def check_divisible(self) -> None:
        """Raise if the weight depends on the limits."""
        if self.weight not in (None, "cos", "sin"):
            raise MissingRule(
                f"quad with the weight {self.weight!r} has no derivative where the integrand switches between "
                f"expressions at points that move: write the weight into the integrand{at_line(user_line())}"
            )


@implements(scipy.integrate.quad, takes_functions=True)
def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: Any = None,
    weight: str | None = None,
    wvar: Any = None,
    wopts: Any = None,
    maxp1: int = 50,
    limlst: int = 50,
    complex_func: bool = False,
) -> Any:
    """`scipy.integrate.quad`, differentiable by the limits, by `args`, and by what `func` closes over.

    Derivatives are integrals of the derivative of the integrand, by the same method and with the same tolerances,
    relative to the size of what they are derivatives by.  An infinite limit has none.  Where the
    integrand switches between expressions (`numpy.where`, branches) or is rounded at points that move, integrals up to
    and from there are derived.  Breakpoints have no derivative.  Where nothing is traced, this is SciPy's function.

    Args:
        func: as for SciPy; it may have branches that depend on its arguments.
        a: the lower limit.
        b: the upper limit.
        args: further arguments of `func`.
        full_output: whether to return a dictionary with `neval` and `last`, too.
        epsabs: as for SciPy.
        epsrel: as for SciPy.
        limit: as for SciPy.
        points: as for SciPy.
        weight: as for SciPy.  With other weights than "cos" and "sin" the limits have no derivative.
        wvar: as for SciPy, a plain value.
        wopts: not for traced values.
        maxp1: as for SciPy.
        limlst: as for SciPy.
        complex_func: as for SciPy.

    Returns:
        The integral and the estimate of its error, which has no derivative.

    Raises:
        ValueError: as SciPy; or `wvar`, or a limit of an integral with a weight that has no derivative by it, is
            traced.
        TypeError: the integrand is not a number.

    Example:
        >>> import ftrans as ft, numpy as np
        >>> from ftrans.scipy.integrate import quad
        >>> print(round(float(ft.grad(lambda k: quad(lambda x: np.exp(-k * x), 0.0, np.inf)[0])(2.0)), 9))
        -0.25
    """
    args = args if isinstance(args, tuple) else (args,)
    options: dict[str, Any] = {
        "epsabs": epsabs, "epsrel": epsrel, "limit": limit, "weight": weight, "wvar": wvar, "maxp1": maxp1,
        "limlst": limlst,
    }  # fmt: skip
    if not callable(func) or not is_traced(a, b, args, points, wvar):
        more = {"full_output": full_output, "points": points, "wopts": wopts, "complex_func": complex_func}
        try:
            return scipy.integrate.quad(plainly(func) if callable(func) else func, a, b, args, **options, **more)
        except FoundTraced:
            pass
    _check(a, b, weight, wvar, wopts)
    parts = 2 if complex_func else 1

    def integrand(x: Tracer) -> list[Tracer]:
        y = _number(func, func(x, *args), complex_func)
        return [cast(part, NUMBER.dtype) for part in ((y.real, y.imag) if complex_func else (y,))]

    options["wvar"] = tuple(np.ravel(wvar).tolist()) if weight and weight.startswith("alg") else wvar
    how = Adaptive(**options, silent=bool(full_output))
    low, high, breaks = *limits(a, b, "quad"), breakpoints(points)
    traced = traced_function(func, [NUMBER], integrand, "quad", exploring(how, low, high, breaks))
    outs, details = integrals(traced, low, high, breaks, how)
    value: Any = outs[0] + 1j * outs[1] if parts == 2 else outs[0]
    error = details.error * (1 + 1j) if complex_func else details.error
    if full_output:
        return value, error, {"neval": details.evaluations, "last": details.intervals}
    return value, error


def _check(a: Any, b: Any, weight: str | None, wvar: Any, wopts: Any) -> None:
    if is_traced(wvar):
        raise ValueError(
            f"wvar of quad is traced: write the weight into the integrand, which has a derivative{at_line(user_line())}"
        )
    if weight not in (None, "cos", "sin") and is_traced(a, b):
        raise ValueError(
            f"the limits of quad are traced, but the weight {weight!r} depends on them: write it into the integrand"
            + at_line(user_line())
        )
    if wopts is not None:
        raise ValueError(f"wopts of quad is not taken with traced values: leave it out{at_line(user_line())}")


def _number(func: Callable[..., Any], y: Any, may_be_complex: bool) -> Any:
    y = asarray(y)
    if y.size != 1 or (is_complex(y.dtype) and not may_be_complex):
        advice = "give complex_func=True" if y.size == 1 else "quad_vec takes functions whose result is an array"
        raise TypeError(
            f"quad integrates real numbers, but {name_of(func)} returned {y.type}; {advice}{at_line(user_line())}"
        )
    return np.reshape(y, ())


def limits(a: Any, b: Any, what: str) -> tuple[Tracer, Tracer]:
    """The limits of an integral.

    Raises:
        TypeError: a limit is not a real number.
    """
    return _limit(a, "a", what), _limit(b, "b", what)


def _limit(x: Any, name: str, what: str) -> Tracer:
    x = asarray(x)
    if x.size != 1 or x.dtype.kind not in "fiub":
        raise TypeError(f"the limit {name} of {what} must be a real number, not {x.type}{at_line(user_line())}")
    return cast(np.reshape(x, ()), NUMBER.dtype)


def breakpoints(points: Any) -> Tracer:
    """The points at which an interval is divided, which have no derivative."""
    return stop_gradient(cast(np.reshape(asarray(() if points is None else points), (-1,)), NUMBER.dtype))
