"""Functions of Mathieu, of the parabolic cylinder and of the spheroids, with which SciPy returns their derivatives.

Second derivatives, and with them all further ones, are given by the differential equations that define them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..elementwise import cos, cosh, div, mul, square
from ..elementwise.family import Partial
from .arithmetic import minus, plus, times
from .bessel import in_order
from .family import Special, Specials, refused


def _solution(name: str, orders: str, second: Callable[..., Any], per_unit: float = 1.0) -> Specials:
    """A function and its derivative, in the last argument.

    Args:
        name: its name.
        orders: the names of the other arguments.
        second: the second derivative, from the function, its derivative and the arguments.
        per_unit: what the derivative counts in, in terms of the argument.
    """
    names = orders.split()

    def partials(ys: Any, *operands: Any) -> list[Any]:
        held = [in_order(name, argument) for argument in names]
        return [
            [*held, lambda t: mul(t, times(per_unit, ys[1]))],
            [*held, lambda t: mul(t, times(per_unit, second(*ys, *operands)))],
        ]

    return Specials(name, partials, results=2, orders=len(names))


# Characteristic values. They are eigenvalues, whose derivative is the mean of that of the operator, weighted by the
# square of the eigenfunction (the theorem of Hellmann and Feynman).


def _mean(function: str, operands: Sequence[Any], points: Any, weights: Any) -> Any:
    """The mean of numbers at some points, weighted by the square of a function and integrated by `weights[0]`."""
    import scipy.special

    squared = getattr(scipy.special, function)(*(x[..., np.newaxis] for x in operands), points)[0] ** 2
    return np.sum(weights[0] * weights[1] * squared, -1) / np.sum(weights[0] * squared, -1)


def _mathieu_slope(function: str, m: Any, q: Any) -> Any:
    degrees = np.arange(512) * 360 / 512
    return _mean(function, (m, q), degrees, (np.ones(512), 2 * np.cos(np.radians(2 * degrees))))


def _spheroidal_slope(function: str, sign: int, m: Any, n: Any, c: Any) -> Any:
    x, weights = np.polynomial.legendre.leggauss(200)
    return sign * 2 * c * _mean(function, (m, n, c), x, (weights, x * x))


def _characteristic(name: str, orders: str, argument: str, slope: Callable[..., Any]) -> tuple[Special, Special]:
    """A characteristic value, and its derivative in an argument, of which SciPy has no further one."""
    names = orders.split()

    def held() -> list[Partial]:
        return [in_order(name, order) for order in names]

    derivative = Special(
        f"{name}_slope",
        lambda y, *operands: [*held(), refused(name, argument, "only the first derivative is known")],
        numpy=lambda *operands: slope(*map(np.asarray, operands)),
        orders=len(names),
    )
    value = Special(name, lambda y, *operands: [*held(), lambda t: mul(t, derivative(*operands))], orders=len(names))
    return value, derivative


mathieu_a, mathieu_a_slope = _characteristic("mathieu_a", "m", "q", partial(_mathieu_slope, "mathieu_cem"))
mathieu_b, mathieu_b_slope = _characteristic("mathieu_b", "m", "q", partial(_mathieu_slope, "mathieu_sem"))
pro_cv, pro_cv_slope = _characteristic("pro_cv", "m n", "c", partial(_spheroidal_slope, "pro_ang1", 1))
obl_cv, obl_cv_slope = _characteristic("obl_cv", "m n", "c", partial(_spheroidal_slope, "obl_ang1", -1))


# Mathieu's equations, DLMF 28.2.1 and 28.20.1


def _angular(value: Special) -> Callable[..., Any]:
    def second(y: Any, slope: Any, m: Any, q: Any, x: Any) -> Any:
        wave = mul(q, cos(times(math.pi / 90, x)))
        return mul(minus(times(2, wave), value(m, q)), y)

    return second


def _radial(value: Special) -> Callable[..., Any]:
    def second(y: Any, slope: Any, m: Any, q: Any, x: Any) -> Any:
        return mul(minus(value(m, q), times(2, mul(q, cosh(times(2, x))))), y)

    return second


# The argument of these two is in degrees, and the derivative in radians.
mathieu_cem = _solution("mathieu_cem", "m q", _angular(mathieu_a), math.pi / 180)
mathieu_sem = _solution("mathieu_sem", "m q", _angular(mathieu_b), math.pi / 180)
mathieu_modcem1 = _solution("mathieu_modcem1", "m q", _radial(mathieu_a))
mathieu_modcem2 = _solution("mathieu_modcem2", "m q", _radial(mathieu_a))
mathieu_modsem1 = _solution("mathieu_modsem1", "m q", _radial(mathieu_b))
mathieu_modsem2 = _solution("mathieu_modsem2", "m q", _radial(mathieu_b))


# The parabolic cylinder, DLMF 12.2.2 and 12.2.3


def _parabolic(y: Any, slope: Any, v: Any, x: Any) -> Any:
    return mul(minus(times(0.25, square(x)), plus(v, 0.5)), y)


pbdv = _solution("pbdv", "v", _parabolic)
pbvv = _solution("pbvv", "v", _parabolic)
pbwa = _solution("pbwa", "a", lambda y, slope, a, x: mul(minus(a, times(0.25, square(x))), y))


# The spheroids, DLMF 30.2.1: ((1 - x**2) y')' + (cv - c**2 x**2 - m**2 / (1 - x**2)) y = 0, and with
# i x and -i c in place of x and c for the radial functions of oblate ones.


def _spheroidal(value: Special | None, c_sign: int, x_sign: int) -> Callable[..., Any]:
    def second(y: Any, slope: Any, m: Any, n: Any, c: Any, *rest: Any) -> Any:
        x = rest[-1]
        cv = rest[0] if value is None else value(m, n, c)
        inner = minus(1, times(x_sign, square(x)))
        wave = times(c_sign * x_sign, square(mul(c, x)))
        potential = minus(minus(cv, wave), div(square(m), inner))
        return div(times(x_sign, minus(times(2, mul(x, slope)), mul(potential, y))), inner)

    return second


def _pair(name: str, value: Special, c_sign: int, x_sign: int) -> tuple[Specials, Specials]:
    """A function, and that of a characteristic value that is given."""
    return (
        _solution(name, "m n c", _spheroidal(value, c_sign, x_sign)),
        _solution(f"{name}_cv", "m n c cv", _spheroidal(None, c_sign, x_sign)),
    )


pro_ang1, pro_ang1_cv = _pair("pro_ang1", pro_cv, 1, 1)
pro_rad1, pro_rad1_cv = _pair("pro_rad1", pro_cv, 1, 1)
pro_rad2, pro_rad2_cv = _pair("pro_rad2", pro_cv, 1, 1)
obl_ang1, obl_ang1_cv = _pair("obl_ang1", obl_cv, -1, 1)
obl_rad1, obl_rad1_cv = _pair("obl_rad1", obl_cv, -1, -1)
