"""Distribution functions of common distributions, and their inverses in each argument.

Each distribution function states its slopes, the partial derivatives, from which those of its inverses follow by
implicit differentiation.  The number of events of a discrete distribution has no derivative where SciPy rounds it to an
integer, and has one in the inverses, which take it for a real number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.trace import Tracer
from ..elementwise import (
    abs_,
    bitwise_or,
    convert,
    div,
    eq,
    exp,
    floor,
    ge,
    gt,
    isinf,
    le,
    log,
    log1p,
    lt,
    minimum,
    mul,
    neg,
    select,
    sign,
    trunc,
)
from ..elementwise.family import Partial
from ..literals import full_like
from .arithmetic import minus, over, plus, times
from .family import Special
from .gamma import betaln, psi_step
from .incomplete import beta_density, betainc_in_ab, gamma_density, gammainc_in_a, implicit

# How far the probability at a solution that SciPy has found may be off, relative to it and to one less it.
_SOLVED = 1e-3
# A partial derivative of a distribution function, computed when it is needed.
Slope = Callable[[], Tracer]
Slopes = Callable[..., Sequence[Slope | None]]


def distribution(name: str, slopes: Slopes, upper: bool = False, **options: Any) -> Special:
    """A distribution function, or where `upper` is set, one less it."""

    def partials(y: Tracer, *operands: Tracer) -> list[Partial]:
        return [None if slope is None else _along(slope, upper) for slope in slopes(*operands)]

    return Special(name, partials, **options)


def _along(slope: Slope, upper: bool) -> Partial:
    return lambda t: neg(mul(t, slope())) if upper else mul(t, slope())


def inverse(
    name: str,
    slopes: Slopes,
    of: str,
    given: str,
    upper: bool = False,
    function: Special | None = None,
    of_events: bool = False,
    **options: Any,
) -> Special:
    """The inverse of a distribution function in one of its arguments.

    Args:
        name: name of the function of SciPy.
        slopes: those of the distribution function.
        of: a letter for each argument of the distribution function.
        given: a letter for each argument of the inverse, where p stands for the probability.
        upper: whether the probability is one less the distribution function.
        function: the distribution function, where SciPy searches for the result.  Where the search has failed, and
            what it returns is no solution, derivatives are NaN.
        of_events: whether the result is a number of events, which is 0 for all smaller probabilities than that of 0.
        options: those of `Special`.
    """
    (unknown,) = set(of) - set(given)

    def partials(y: Tracer, *operands: Tracer) -> list[Partial]:
        known = dict(zip(given, operands, strict=True))
        dtype = y.dtype
        point = [y if c == unknown else convert(known[c], dtype=dtype) for c in of]
        slope_of = dict(zip(of, slopes(*point), strict=True))
        partials = [_solved(slope_of, c, unknown, upper) for c in given]
        if of_events:
            return [_where(gt(y, full_like(y, 0)), partial, 0.0) for partial in partials]
        if function is None:
            return partials
        p = convert(known["p"], dtype=dtype)
        is_solved = le(abs_(minus(function(*point), p)), times(minimum(p, minus(1, p)), _SOLVED))
        return [None if partial is None else _where(is_solved, partial, math.nan) for partial in partials]

    return Special(name, partials, **options)


def _where(is_solved: Tracer, partial: Partial, other: float) -> Partial:
    assert partial is not None
    return lambda t: mul(t, select(is_solved, partial(full_like(t, 1)), full_like(t, other)))


def _solved(slope_of: dict[str, Slope | None], letter: str, unknown: str, upper: bool) -> Partial:
    density = slope_of[unknown]
    assert density is not None
    if letter == "p":
        return lambda t: div(neg(t) if upper else t, density())
    slope = slope_of[letter]
    return None if slope is None else lambda t: implicit(t, slope(), density())


# Slopes


def _half(x: Tracer) -> Tracer:
    return times(x, 0.5)


def _gamma_slopes(a: Tracer, b: Tracer, x: Tracer) -> list[Slope]:
    """Of gammainc(b, a x)."""
    scaled = mul(a, x)
    return [
        lambda: mul(x, gamma_density(b, scaled)),
        lambda: gammainc_in_a(1)(b, scaled),
        lambda: mul(a, gamma_density(b, scaled)),
    ]


def _chi_square_slopes(v: Tracer, x: Tracer) -> list[Slope]:
    """Of gammainc(v / 2, x / 2), for negative x that of 0."""
    is_inside = ge(x, full_like(x, 0))
    a, half = _half(v), _half(select(is_inside, x, full_like(x, 1)))

    def inside(slope: Tracer) -> Tracer:
        return select(is_inside, _half(slope), full_like(x, 0))

    return [lambda: inside(gammainc_in_a(1)(a, half)), lambda: inside(gamma_density(a, half))]


def _beta_slopes(a: Tracer, b: Tracer, x: Tracer) -> list[Slope]:
    """Of betainc(a, b, x)."""
    return [
        lambda: betainc_in_ab(1, 0)(a, b, x),
        lambda: betainc_in_ab(0, 1)(a, b, x),
        lambda: beta_density(a, b, x),
    ]


def _split_beta_slopes(a: Tracer, b: Tracer, x: Tracer, rest: Tracer) -> list[Slope]:
    """Of betainc(a, b, x), where `rest` is 1 - x, to full precision also where x is close to 1."""
    is_high = gt(x, rest)
    first, second = select(is_high, b, a), select(is_high, a, b)
    small = select(is_high, rest, x)

    def in_parameter(is_first: bool) -> Tracer:
        found = betainc_in_ab(int(is_first), int(not is_first))(first, second, small)
        other = betainc_in_ab(int(not is_first), int(is_first))(first, second, small)
        return select(is_high, neg(other), found)

    return [
        lambda: in_parameter(True),
        lambda: in_parameter(False),
        lambda: beta_density(first, second, small),
    ]


def _f_slopes(n: Tracer, d: Tracer, x: Tracer) -> list[Slope]:
    """Of betainc(n / 2, d / 2, z) with z = n x / (d + n x)."""
    is_far = isinf(x)
    x = select(is_far, full_like(x, 1), x)
    total = plus(d, mul(n, x))
    z, rest = div(mul(n, x), total), div(d, total)
    in_a, in_b, in_z = _split_beta_slopes(_half(n), _half(d), z, rest)

    def near(slope: Tracer) -> Tracer:
        return select(is_far, full_like(x, 0), slope)

    return [
        lambda: near(plus(_half(in_a()), div(times(in_z(), x, rest), total))),
        lambda: near(minus(_half(in_b()), div(mul(in_z(), z), total))),
        lambda: near(div(times(in_z(), n, rest), total)),
    ]


def student_density(df: Tracer, t: Tracer) -> Tracer:
    """The density of Student's t distribution; the normal one for infinite `df`."""
    is_normal = isinf(df)
    finite = select(is_normal, full_like(df, 1), df)
    square = mul(t, t)
    power = times(log1p(div(square, finite)), finite, 0.5)
    density = exp(neg(plus(plus(power, _half(log(plus(finite, square)))), betaln(_half(finite), full_like(df, 0.5)))))
    normal = times(exp(times(square, -0.5)), 1 / math.sqrt(2 * math.pi))
    return select(is_normal, normal, density)


def _student_slopes(df: Tracer, t: Tracer) -> list[Slope]:
    """Of betainc(df / 2, 1 / 2, df / (df + t**2)) / 2 for negative t, and of one less that for positive t."""

    def in_df() -> Tracer:
        zero, one = full_like(t, 0), full_like(t, 1)
        is_zero, is_limit = eq(t, zero), bitwise_or(isinf(t), isinf(df))
        point = select(bitwise_or(is_zero, is_limit), one, t)
        finite = select(is_limit, one, df)
        square, half = mul(point, point), _half(finite)
        total = plus(finite, square)
        in_a = _split_beta_slopes(half, full_like(df, 0.5), div(finite, total), div(square, total))[0]
        shift = div(mul(student_density(finite, point), abs_(point)), finite)
        slope = neg(times(sign(point), plus(times(in_a(), 0.25), times(shift, 0.5))))
        # Near 0 the function is 1/2 + t density(0), whose slope is 0, but not that of the slope.
        by_density = _half(minus(psi_step(0)(half, full_like(df, 0.5)), over(1.0, finite)))
        near = times(select(is_zero, t, zero), student_density(finite, zero), by_density)
        return select(is_limit, zero, select(is_zero, near, slope))

    return [in_df, lambda: student_density(df, t)]


def _poisson_slopes(k: Tracer, m: Tracer) -> list[Slope]:
    """Of gammaincc(k + 1, m)."""
    a = plus(k, 1.0)
    return [lambda: neg(gammainc_in_a(1)(a, m)), lambda: neg(gamma_density(a, m))]


def _binomial_slopes(k: Tracer, n: Tracer, p: Tracer) -> list[Slope]:
    """Of betaincc(k + 1, n - k, p)."""
    in_a, in_b, in_p = _beta_slopes(plus(k, 1.0), minus(n, k), p)
    return [lambda: minus(in_b(), in_a()), lambda: neg(in_b()), lambda: neg(in_p())]


def _negative_binomial_slopes(k: Tracer, n: Tracer, p: Tracer) -> list[Slope]:
    """Of betainc(n, k + 1, p)."""
    in_a, in_b, in_p = _beta_slopes(n, plus(k, 1.0), p)
    return [in_b, in_a, in_p]


def _of_events(slopes: Slopes, rounding: Callable[[Tracer], Tracer] = trunc) -> Slopes:
    """Slopes for whole numbers of events and trials, which have none: only the last argument has.

    All or none of the events have probability 1, whatever the argument.  `rounding` is that of SciPy for the events; it
    truncates the trials.
    """

    def rounded(*operands: Tracer) -> list[Slope | None]:
        last = operands[-1]
        counts = [convert(k, dtype=last.dtype) for k in operands[:-1]]
        counts = [rounding(counts[0]), *map(trunc, counts[1:])]
        zero = full_like(last, 0)
        is_sure = lt(counts[0], zero)
        if slopes is _binomial_slopes:
            is_sure = select(is_sure, is_sure, ge(counts[0], counts[1]))
        counts[0] = select(is_sure, zero, counts[0])
        if slopes is _binomial_slopes:
            counts[1] = select(is_sure, full_like(last, 1), counts[1])
        *_, slope = slopes(*counts, last)
        assert slope is not None
        return [None] * len(counts) + [lambda: select(is_sure, zero, slope())]

    return rounded


# Continuous distributions

gdtr = distribution("gdtr", _gamma_slopes)
gdtrc = distribution("gdtrc", _gamma_slopes, upper=True)
gdtria = inverse("gdtria", _gamma_slopes, "abx", "pbx", function=gdtr)
gdtrib = inverse("gdtrib", _gamma_slopes, "abx", "apx", function=gdtr)
gdtrix = inverse("gdtrix", _gamma_slopes, "abx", "abp")
chdtr = distribution("chdtr", _chi_square_slopes)
chdtrc = distribution("chdtrc", _chi_square_slopes, upper=True)
chdtri = inverse("chdtri", _chi_square_slopes, "vx", "vp", upper=True)
chdtriv = inverse("chdtriv", _chi_square_slopes, "vx", "px", function=chdtr)
btdtria = inverse("btdtria", _beta_slopes, "abx", "pbx")
btdtrib = inverse("btdtrib", _beta_slopes, "abx", "apx")
fdtr = distribution("fdtr", _f_slopes)
fdtrc = distribution("fdtrc", _f_slopes, upper=True)
fdtri = inverse("fdtri", _f_slopes, "ndx", "ndp")
fdtridfd = inverse("fdtridfd", _f_slopes, "ndx", "npx", function=fdtr)
stdtr = distribution("stdtr", _student_slopes)
stdtrit = inverse("stdtrit", _student_slopes, "dt", "dp")
stdtridf = inverse("stdtridf", _student_slopes, "dt", "pt", function=stdtr)

# Discrete distributions

pdtr = distribution("pdtr", _of_events(_poisson_slopes, floor))
pdtrc = distribution("pdtrc", _of_events(_poisson_slopes, floor), upper=True)
pdtri = inverse("pdtri", _of_events(_poisson_slopes), "km", "kp", orders=1)
pdtrik = inverse("pdtrik", _poisson_slopes, "km", "pm", of_events=True)
bdtr = distribution("bdtr", _of_events(_binomial_slopes, floor), orders=2)
bdtrc = distribution("bdtrc", _of_events(_binomial_slopes, floor), upper=True, orders=2)
bdtri = inverse("bdtri", _of_events(_binomial_slopes, floor), "knx", "knp", orders=2)
bdtrik = inverse("bdtrik", _binomial_slopes, "knx", "pnx", of_events=True)
bdtrin = inverse("bdtrin", _binomial_slopes, "knx", "kpx")
nbdtr = distribution("nbdtr", _of_events(_negative_binomial_slopes), orders=2)
nbdtrc = distribution("nbdtrc", _of_events(_negative_binomial_slopes), upper=True, orders=2)
nbdtri = inverse("nbdtri", _of_events(_negative_binomial_slopes), "knx", "knp", orders=2)
nbdtrik = inverse("nbdtrik", _negative_binomial_slopes, "knx", "pnx", of_events=True)
nbdtrin = inverse("nbdtrin", _negative_binomial_slopes, "knx", "kpx")
