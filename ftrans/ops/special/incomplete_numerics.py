"""The incomplete gamma and beta functions and their derivatives of any order in the parameters, in float64.

The `n`-th derivative in `a` of the regularized lower incomplete gamma function P(a, x) is the integral from 0 to x of

    p(t) B_n(log t - psi(a), -psi'(a), -psi''(a), ...),    p(t) = t**(a - 1) exp(-t) / gamma(a),

with the complete Bell polynomials B_n, and minus the integral from x to infinity.  The side where it loses no digits is
taken: p is integrated up to exp(psi(a)), where the derivative of its logarithm changes its sign, and down to it beyond.
With t = x exp(-u), or x (1 + u), the rest is a smooth function that falls off exponentially, for which the double
exponential rule u = exp(s - exp(-s)) (Takahasi and Mori, 1974) takes some seventy points.  For x below 1 the power
series is used.  The incomplete beta function is alike.

The factor in front, D = x p(x), is formed from deviances, so that large parameters lose no digits (Loader, "Fast and
accurate computation of binomial probabilities", 2000).

All functions take the module of array functions, numpy or jax.numpy, first, and positive arrays of float64.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

# Bernoulli numbers B_2, B_4, ...
BERNOULLI = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
# From here on, the asymptotic series of log gamma and its derivatives are accurate.
_FAR = 12
_SHIFTS = np.arange(float(_FAR))
_TERMS = 40


# Polygamma functions


def polygamma(xp: Any, n: int, a: Any) -> Any:
    """The `n`-th derivative of psi, for positive `a`: recurrence up to an asymptotic series (DLMF 5.5.2, 5.15.8)."""
    near = math.factorial(n) * xp.sum(1 / (a[..., None] + _SHIFTS) ** (n + 1), axis=-1)
    z = a + _FAR
    inverse = 1 / z
    if n == 0:
        far = xp.log(z) - 0.5 * inverse - polynomial(_weights(0), inverse * inverse) * inverse**2
        return far - near
    far = inverse**n * (math.factorial(n - 1) + math.factorial(n) / 2 * inverse)
    far = far + polynomial(_weights(n), inverse * inverse) * inverse ** (n + 2)
    return (-1.0) ** (n + 1) * (near + far)


def polygamma_step(xp: Any, n: int, a: Any, h: Any) -> Any:
    """The `n`-th derivative of psi at `a + h` less that at `a`, for positive `a` and `a + h`, to full precision."""
    ratio = xp.log1p(h / (a + _FAR))[..., None]
    log_z = xp.log(a + _FAR)[..., None]
    powers = np.array([n + 1, *range(n + 2, n + 2 + 2 * len(BERNOULLI), 2)] + ([n] if n else []), np.float64)
    weights = np.array([math.factorial(n) / 2, *_weights(n)] + ([math.factorial(n - 1)] if n else []))
    far = xp.sum(weights * xp.expm1(-powers * ratio) * xp.exp(-powers * log_z), axis=-1)
    points = a[..., None] + _SHIFTS
    near = math.factorial(n) * xp.sum(xp.expm1(-(n + 1) * xp.log1p(h[..., None] / points)) / points ** (n + 1), axis=-1)
    return ratio[..., 0] - far - near if n == 0 else (-1.0) ** (n + 1) * (near + far)


def _weights(n: int) -> list[float]:
    """Coefficients of the asymptotic series of the `n`-th derivative of psi."""
    return [b * math.factorial(2 * k + n - 1) / math.factorial(2 * k) for k, b in enumerate(BERNOULLI, 1)]


def polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """The polynomial with these coefficients, the constant one first."""
    total = coefficients[-1] + 0.0 * x
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


# Densities


def _stirling_error(xp: Any, a: Any) -> Any:
    """log gamma(a) less Stirling's formula (a - 1/2) log(a) - a + log(2 pi) / 2."""
    # log gamma(a) = log gamma(a + 12) - log(a (a + 1) ... (a + 11)).
    near = xp.minimum(a, float(_FAR))
    lifted = near + _FAR
    logs = xp.log(near) + xp.log(xp.prod(near[..., None] + _SHIFTS[1:], axis=-1))
    small = (lifted - 0.5) * xp.log(lifted) - (near - 0.5) * xp.log(near) - _FAR + _stirling_series(lifted) - logs
    return xp.where(a < _FAR, small, _stirling_series(xp.maximum(a, float(_FAR))))


def _stirling_series(a: Any) -> Any:
    return polynomial([b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1)], 1 / (a * a)) / a


def _log1p_error(xp: Any, z: Any, one_and_z: Any) -> Any:
    """z - log(1 + z), to full precision where z is close to 0 or to -1."""
    is_small = xp.abs(z) < 0.5
    small = xp.where(is_small, z, 0.0)
    r = small / (2 + small)
    tail = polynomial([2 / (2 * k + 1) for k in range(1, 18)], r * r) * r**3
    return xp.where(is_small, r * small - tail, z - xp.log(one_and_z))


def gamma_density(xp: Any, a: Any, x: Any) -> Any:
    """x**(a - 1) exp(-x) / gamma(a) for positive `a` and `x`."""
    return xp.exp(log_gamma_factor(xp, a, x) - xp.log(x))


def beta_density(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """x**(a - 1) (1 - x)**(b - 1) / beta(a, b) for positive `a` and `b`, and `x` inside of (0, 1)."""
    return xp.exp(log_beta_factor(xp, a, b, x, 1 - x) - xp.log(x) - xp.log1p(-x))


def log_gamma_factor(xp: Any, a: Any, x: Any) -> Any:
    """log(x**a exp(-x) / gamma(a))."""
    deviance = a * _log1p_error(xp, (x - a) / a, x / a)
    return 0.5 * xp.log(a / (2 * math.pi)) - deviance - _stirling_error(xp, a)


def log_beta_factor(xp: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """log(x**a y**b / beta(a, b)), where y is 1 - x."""
    n = a + b
    # n x - a is b x - a y, which loses no digits in the sum of a small and a large parameter.
    offset = b * x - a * y
    deviance = a * _log1p_error(xp, offset / a, n * x / a) + b * _log1p_error(xp, -offset / b, n * y / b)
    errors = _stirling_error(xp, n) - _stirling_error(xp, a) - _stirling_error(xp, b)
    return 0.5 * (xp.log(a) + xp.log(b / n) - math.log(2 * math.pi)) - deviance + errors


def log_beta(xp: Any, a: Any, b: Any) -> Any:
    """log beta(a, b) for positive `a`, not less than `b`."""
    n = a + b
    powers = (b - 0.5) * (xp.log(b) - xp.log(n)) - (a - 0.5) * xp.log1p(b / a)
    errors = _stirling_error(xp, a) + _stirling_error(xp, b) - _stirling_error(xp, n)
    return 0.5 * (math.log(2 * math.pi) - xp.log(n)) + powers + errors


def log_gamma_step(xp: Any, a: Any, h: Any) -> Any:
    """log gamma(a + h) - log gamma(a) for positive `a` and `a + h`."""
    powers = h * (xp.log(a + h) - 1) + (a - 0.5) * xp.log1p(h / a)
    return powers + _stirling_error(xp, a + h) - _stirling_error(xp, a)


# The derivatives of a density by that density: complete Bell polynomials of the derivatives of its logarithm


def bell(
    kappa: Callable[[int, int], Any],
    m: int,
    n: int = 0,
    add: Callable[..., Any] = operator.add,
    mul: Callable[..., Any] = operator.mul,
) -> Any:
    """The derivative of exp(f(a, b)), `m` times in a and `n` times in b, by exp(f(a, b)).

    `kappa(i, j)` is that of f itself; `add` and `mul` are the arithmetic of what it gives.
    """
    if m == n == 0:
        return 1.0
    # One more derivative of the product of exp(f) and the slope of f, by Leibniz' rule.
    step = (1, 0) if m else (0, 1)
    m, n = m - step[0], n - step[1]
    terms = []
    for i in range(m + 1):
        for j in range(n + 1):
            slope, count = kappa(i + step[0], j + step[1]), math.comb(m, i) * math.comb(n, j)
            weighted = slope if count == 1 else mul(float(count), slope)
            rest = bell(kappa, m - i, n - j, add, mul)
            terms.append(weighted if (i, j) == (m, n) else mul(weighted, rest))
    return functools.reduce(add, terms)


@cache
def exponential_rule() -> tuple[Any, Any]:
    """Points and weights of the double exponential rule on the positive numbers, for what falls off like exp(-u)."""
    step = 0.12
    s = step * np.arange(-32, 36)
    u = np.exp(s - np.exp(-s))
    return u, step * (1 + np.exp(-s)) * u


# The incomplete gamma function


def gammainc_derivative(xp: Any, n: int, a: Any, x: Any) -> Any:
    """The `n`-th derivative in `a` of P(a, x), `n` at least 1, for finite positive `a` and `x`."""
    is_small = x < 1
    return xp.where(
        is_small,
        _gammainc_series(xp, n, a, xp.where(is_small, x, 0.5)),
        _gammainc_integral(xp, n, a, xp.where(is_small, 2.0, x)),
    )


def _gammainc_integral(xp: Any, n: int, a: Any, x: Any) -> Any:
    a, x = a[..., None], x[..., None]
    psi = [polygamma(xp, k, a) for k in range(n)]
    log_x = xp.log(x)
    is_lower = log_x < psi[0]
    points, weights = exponential_rule()
    scale = 1 / (xp.abs(a - x) + xp.sqrt(x))
    # t is x exp(-u) below x, and x (1 + u) above it.
    u = scale * points
    log_ratio = xp.where(is_lower, -u, xp.log1p(u))
    rest = xp.exp(xp.where(is_lower, -a * u - x * xp.expm1(-u), (a - 1) * log_ratio - x * u))
    polynomial = bell(lambda i, j: log_x - psi[0] + log_ratio if i == 1 else -psi[i - 1], n)
    factor = xp.where(is_lower, scale, -scale) * xp.exp(log_gamma_factor(xp, a, x))
    return factor[..., 0] * (rest * polynomial * weights).sum(-1)


def _gammainc_series(xp: Any, n: int, a: Any, x: Any) -> Any:
    """By x**a / gamma(a + 1) times the sum of (-x)**k / k! a / (a + k) (DLMF 8.7.1), term by term."""
    psi = [polygamma(xp, k, a + 1) for k in range(n)]
    log_x = xp.log(x)
    total: Any = 0.0
    for order in range(n + 1):
        terms: Any = float(order == 0)
        for k in range(1, 22):
            terms = terms - (-x) ** k / float(math.factorial(k)) * _reciprocal_slope(order, k, a)
        head = bell(lambda i, j: log_x - psi[0] if i == 1 else -psi[i - 1], n - order)
        total = total + math.comb(n, order) * terms * head
    # x**a / gamma(a + 1) is x**a exp(-x) / gamma(a), but for a factor.
    return total * xp.exp(log_gamma_factor(xp, a, x) + x) / a


def _reciprocal_slope(order: int, k: int, a: Any) -> Any:
    """Minus the derivative of a / (a + k) of some order, which is k / (a + k) less 1."""
    if order == 0:
        return -a / (a + k)
    return k * (-1.0) ** order * math.factorial(order) / (a + k) ** (order + 1)


# The incomplete beta function


def betainc_derivative(xp: Any, m: int, n: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative of I_x(a, b), `m` times in `a` and `n` times in `b`, of which one is not 0, for `x` in (0, 1)."""
    y = 1 - x
    is_high = x > 0.5
    # I_x(a, b) = 1 - I_y(b, a): the series wants the smaller of x and y.
    if m == n:
        a, b, x, y = _swap(xp, is_high, a, b, x, y)
        found = _betainc_lower(xp, m, n, a, b, x, y)
        return xp.where(is_high, -found, found)
    low = _betainc_lower(xp, m, n, a, b, xp.where(is_high, 0.25, x), xp.where(is_high, 0.75, y))
    high = _betainc_lower(xp, n, m, b, a, xp.where(is_high, y, 0.25), xp.where(is_high, x, 0.75))
    return xp.where(is_high, -high, low)


def _swap(xp: Any, flag: Any, a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    return xp.where(flag, b, a), xp.where(flag, a, b), xp.where(flag, y, x), xp.where(flag, x, y)


def _betainc_lower(xp: Any, m: int, n: int, a: Any, b: Any, x: Any, y: Any) -> Any:
    """The derivative for x up to 1/2."""
    is_small = b * x < 1
    in_series = [xp.where(is_small, v, w) for v, w in ((a, 1.0), (b, 1.0), (x, 0.25), (y, 0.75))]
    in_integral = [xp.where(is_small, w, v) for v, w in ((a, 4.0), (b, 4.0), (x, 0.5), (y, 0.5))]
    series = _betainc_series(xp, m, n, *in_series)
    return xp.where(is_small, series, _betainc_integral(xp, m, n, *in_integral))


def _log_slopes(xp: Any, a: Any, b: Any) -> Any:
    """Derivatives of -log beta(a, b), `i` times in a and `j` times in b."""

    @cache
    def slope(i: int, j: int) -> Any:
        if i and j:
            return polygamma(xp, i + j - 1, a + b)
        return polygamma_step(xp, i - 1, a, b) if i else polygamma_step(xp, j - 1, b, a)

    return slope


def _betainc_integral(xp: Any, m: int, n: int, a: Any, b: Any, x: Any, y: Any) -> Any:
    a, b, x, y = (v[..., None] for v in (a, b, x, y))
    slope = _log_slopes(xp, a, b)
    log_x, log_y = xp.log(x), xp.log1p(-x)
    is_upper = log_x + slope(1, 0) > 0
    factor = xp.where(is_upper, -1.0, 1.0) * xp.exp(log_beta_factor(xp, a, b, x, y))
    # The integral from x to 1 is that from 0 to y, with everything exchanged.
    p, q, z, rest = _swap(xp, is_upper, a, b, x, y)
    points, weights = exponential_rule()
    scale = rest / (xp.abs(b * x - a * y) + xp.sqrt(q * z))
    u = scale * points
    # t is z exp(-u), and log(1 - t) grows by this.
    growth = xp.log1p(-(z / rest) * xp.expm1(-u))
    integrand = xp.exp((q - 1) * growth - p * u)
    log_t = log_x + xp.where(is_upper, growth, -u)
    log_rest = log_y + xp.where(is_upper, -u, growth)

    def kappa(i: int, j: int) -> Any:
        return slope(i, j) + (log_t if (i, j) == (1, 0) else log_rest if (i, j) == (0, 1) else 0.0)

    return (factor * scale / rest)[..., 0] * (integrand * bell(kappa, m, n) * weights).sum(-1)


def _betainc_series(xp: Any, m: int, n: int, a: Any, b: Any, x: Any, y: Any) -> Any:
    """By x**a / beta(a, b) times the sum of (1 - b)_k / k! x**k / (a + k) (DLMF 8.17.7, 15.2.1), term by term."""
    slope = _log_slopes(xp, a, b)
    log_x = xp.log(x)
    # The derivatives in b of (1 - b)_k / k! x**k, by order.
    symbol: list[Any] = [xp.ones_like(x)] + [xp.zeros_like(x)] * n
    sums = [[0.0 * x for _ in range(n + 1)] for _ in range(m + 1)]
    for k in range(_TERMS + 12):
        for i in range(m + 1):
            share = (-1.0) ** i * math.factorial(i) * (a / (a + k)) / (a + k) ** i
            for j in range(n + 1):
                sums[i][j] = sums[i][j] + share * symbol[j]
        symbol = [x * ((k + 1 - b) * symbol[j] - (j * symbol[j - 1] if j else 0.0)) / (k + 1) for j in range(n + 1)]
    total: Any = 0.0
    for i in range(m + 1):
        for j in range(n + 1):
            head = bell(lambda p, q: slope(p, q) + (log_x if (p, q) == (1, 0) else 0.0), m - i, n - j)
            total = total + math.comb(m, i) * math.comb(n, j) * sums[i][j] * head
    return total * xp.exp(log_beta_factor(xp, a, b, x, y) - b * xp.log1p(-x)) / a
