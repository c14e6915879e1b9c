"""The series of products and quotients, which those of all other functions come down to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from ...core.primitive import Primitive
from ...core.program import Params
from ...ops.elementwise import Elementwise, add, div, mul, neg, sub
from ...ops.literals import splat
from .series import UNBOUNDED, Coefficient, Series, Support, intersection, scaled, union


def product(primitive: Primitive, params: Params, a: Series, b: Series) -> Series:
    """The series of an equation that is linear in each of its two operands: sums of products of coefficients."""
    elementwise = isinstance(primitive, Elementwise)

    def term(j: int, k: int) -> Coefficient:
        if a.degree < j or b.degree < k:
            return None
        x = a[j]
        y = None if x is None else b[k]
        if x is None or y is None:
            return None
        (z,) = primitive.bind_all([x, y], params)
        is_number = any(_is_finite(s, i) for s, i in ((a, j), (b, k)))
        return z if not elementwise or is_number else intersection(a.support(j), b.support(k)).zeros_in(z, False)

    def make(k: int) -> Coefficient:
        if a is b and elementwise:
            half = scaled(_sum([term(j, k - j) for j in range((k + 1) // 2)]), 2)
            return _sum([half, None if k % 2 else term(k // 2, k // 2)])
        return _sum([term(j, k - j) for j in range(k + 1)])

    def support() -> Support:
        return intersection(a.support(0), b.support(0)) if elementwise else Support()

    def moving() -> Support:
        return union([x.support(1) for x in (a, b) if not x.is_constant]) if elementwise else Support()

    (type,) = primitive.output_types([a.type, b.type], params)
    return Series(type, make, a.degree + b.degree, a.is_slope or b.is_slope, support, moving)


def quotient(a: Series, b: Series) -> Series:
    """The series of `a / b`, from `b * z = a`."""
    is_singular = not (_is_finite(b, 0) and splat(b.at(0)))

    def make(k: int) -> Coefficient:
        known = [mul(z, y) for j in range(1, k + 1) if (y := b[j]) is not None and (z := series[k - j]) is not None]
        rest, x = _sum(known), a[k]
        change = x if rest is None else neg(rest) if x is None else sub(x, rest)
        z = None if change is None else div(change, b.at(0))
        return series.support(k).zeros_in(z, is_singular)

    def support(k: int) -> Support:
        found = union([x.support(k) for x in ((a, b) if k else (a,)) if not (k and x.is_constant)])
        return found.chosen() if is_singular else found

    degree = a.degree if b.is_constant else UNBOUNDED
    series = Series(a.type, make, degree, a.is_slope, lambda: support(0), lambda: support(1))
    return series


def with_zeros(x: Series) -> Series:
    """A product with a factor that may be infinite, with zeros where it is zero for certain."""

    def make(k: int) -> Coefficient:
        return x.support(k).zeros_in(x[k], True)

    return Series(x.type, make, x.degree, x.is_slope, lambda: x.support(0).chosen(), lambda: x.support(1).chosen())


def minus_square(x: Series) -> Series:
    """The series of `-x * x`."""
    squared = product(mul, {}, x, x)

    def make(k: int) -> Coefficient:
        y = squared[k]
        return None if y is None else neg(y)

    return Series(x.type, make, squared.degree, moving=lambda: squared.support(1))


def _sum(terms: Sequence[Coefficient]) -> Coefficient:
    found = [x for x in terms if x is not None]
    return reduce(add, found) if found else None


def _is_finite(x: Series, k: int) -> bool:
    """Whether a coefficient is one finite number of the program."""
    number = splat(x.at(k)) if x.is_constant and k == 0 else None
    return number is not None and bool(np.isfinite(number))
