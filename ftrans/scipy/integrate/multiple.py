"""Integrals over several variables, which are integrals of integrals: `nquad`, `dblquad` and `tplquad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import scipy.integrate

from ...numpy.dispatch import implements
from .integrands import FoundTraced, is_traced, plainly
from .quadrature import quad

__all__ = ["dblquad", "nquad", "tplquad"]


@implements(scipy.integrate.nquad, takes_functions=True)
def nquad(
    func: Callable[..., Any], ranges: Sequence[Any], args: Any = None, opts: Any = None, full_output: bool = False
) -> Any:
    """`scipy.integrate.nquad`: integrals of integrals by `quad`, differentiable as those are.

    The estimate of the error is that of the outermost integral.
    """
    args = () if args is None else args
    if not is_traced(ranges, args):
        try:
            spans = [plainly(r) if callable(r) else r for r in ranges]
            return scipy.integrate.nquad(plainly(func), spans, args, opts, full_output)
        except FoundTraced:
            pass
    options = [opts or {}] * len(ranges) if opts is None or isinstance(opts, dict) else list(opts)

    def integral(depth: int, *outer: Any) -> Any:
        """The integral over the variables up to number `depth`, at values of the others, and the arguments."""
        span = ranges[depth]
        low, high = span(*outer) if callable(span) else span
        option = options[depth]
        inner = func if depth == 0 else lambda *inner: integral(depth - 1, *inner)[0]
        return quad(inner, low, high, outer, full_output, **(option(*outer) if callable(option) else option))

    return integral(len(ranges) - 1, *args)


@implements(scipy.integrate.dblquad, takes_functions=True)
def dblquad(
    func: Callable[..., Any], a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    """`scipy.integrate.dblquad`, differentiable as `quad`, also by what `gfun` and `hfun` close over.

    Returns:
        The integral and the estimate of its error, which has no derivative.

    Raises:
        ValueError: as `quad`.

    Example:
        >>> import ftrans as ft
        >>> from ftrans.scipy.integrate import dblquad
        >>> volume = lambda a: dblquad(lambda y, x: a * x * y, 0.0, 1.0, 0.0, lambda x: a * x)[0]
        >>> print(ft.grad(volume)(2.0).round(6))
        1.5
    """

    def span(x: Any, *_: Any) -> tuple[Any, Any]:
        return _at(gfun, x), _at(hfun, x)

    return nquad(func, [span, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


@implements(scipy.integrate.tplquad, takes_functions=True)
def tplquad(
    func: Callable[..., Any], a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any = (),
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    """`scipy.integrate.tplquad`, differentiable as `quad`, also by what the functions for limits close over."""

    def innermost(y: Any, x: Any, *_: Any) -> tuple[Any, Any]:
        return _at(qfun, x, y), _at(rfun, x, y)

    def middle(x: Any, *_: Any) -> tuple[Any, Any]:
        return _at(gfun, x), _at(hfun, x)

    return nquad(func, [innermost, middle, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def _at(limit: Any, *outer: Any) -> Any:
    return limit(*outer) if callable(limit) else limit
