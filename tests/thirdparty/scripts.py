"""Programs as their authors wrote them: NumPy, SciPy and the standard library by their own names, no word of ftrans."""

import functools
import math
from math import exp, sqrt

import numpy as np
from numpy import zeros
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special, stats
from scipy.sparse import linalg as sparse_linalg

TIMES = np.linspace(0.0, 2.0, 9)
SAMPLES = np.cos(3 * TIMES)
TABLE = np.array([0.0, 0.8, 0.9, 0.1, -0.8, -1.0, -0.3, 0.7, 1.0])


# Loops that fill arrays


def heat_equation(conductivity):
    u = np.zeros(12)
    u[4:8] = 1.0
    for _ in range(5):
        new = np.zeros_like(u)
        for i in range(1, 11):
            new[i] = u[i] + conductivity * (u[i - 1] - 2 * u[i] + u[i + 1])
        u = new
    return float(np.sum(u**2))


def thomas(x):
    n = len(x)
    c, d = zeros(n), zeros(n)
    c[0], d[0] = -1.0 / x[0], 1.0 / x[0]
    for i in range(1, n):
        m = x[i] + c[i - 1]
        c[i] = -1.0 / m
        d[i] = (1.0 + d[i - 1]) / m
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return d.sum()


def rotation(angles):
    def about(axis, angle):
        m = np.eye(3)
        i, j = [k for k in range(3) if k != axis]
        m[i, i] = m[j, j] = math.cos(angle)
        m[i, j], m[j, i] = -math.sin(angle), math.sin(angle)
        return m

    return (about(0, angles[0]) @ about(1, angles[1]) @ about(2, angles[2]))[0, 2]


def random_walk(x):
    state = np.random.RandomState(0)
    path = np.empty((4, 3))
    path[0] = x
    for k in range(1, 4):
        path[k] = 0.9 * path[k - 1] + 0.1 * np.asarray(state.normal(size=3), dtype=float)
    return np.linalg.norm(path[-1])


def histogram_of_distances(x):
    x = np.asarray(x, dtype=np.float64).reshape(-1, 2)
    total = 0.0
    for i in range(len(x)):
        for j in range(i):
            r = math.hypot(x[i, 0] - x[j, 0], x[i, 1] - x[j, 1])
            total += math.exp(-(r**2))
    return total


# The module math, types and conversions


def black_scholes(x):
    spot, volatility = float(x[0]), float(x[1])
    d1 = (math.log(spot / 95) + 0.5 * volatility**2) / volatility
    cumulative = lambda d: 0.5 * (1 + math.erf(d / sqrt(2)))  # noqa: E731
    return spot * cumulative(d1) - 95 * cumulative(d1 - volatility)


def haversine(x):
    latitude, longitude = map(math.radians, x)
    a = math.sin((latitude - 0.8) / 2) ** 2 + math.cos(latitude) * math.cos(0.8) * math.sin((longitude - 0.2) / 2) ** 2
    return 2 * 6371 * math.asin(math.sqrt(a))


def by_type(x):
    if isinstance(x, float):
        return exp(-x) * math.gamma(x)
    return np.nan


def of_a_list(x):
    values = [v * 2 for v in x.tolist()] if isinstance(x, np.ndarray) else list(x)
    return math.fsum(values) * math.prod(values)


@np.vectorize
def ramp(x):
    return x**2 if x > 0.5 else 0.5 * x


def vectorized(x):
    return np.sum(ramp(x) * np.arange(1.0, 4.0))


@functools.lru_cache
def gain(x):
    return math.tanh(x) + math.log1p(x)


def cached(x):
    return gain(x) * gain(2.0)


# SciPy


def by_quad(x):
    return integrate.quad(lambda t: math.exp(-x[0] * t**2), 0.0, x[1])[0]


def by_odeint(x):
    return integrate.odeint(lambda y, t: [y[1], -x[0] * y[1] - x[1] * y[0]], [1.0, 0.0], TIMES)[-1, 0]


def by_solve_ivp(x):
    solved = integrate.solve_ivp(
        lambda t, y: [y[1], -x[0] * math.sin(y[0])], (0.0, 2.0), [x[1], 0.0], rtol=1e-10, atol=1e-10
    )
    return solved.y[0, -1]


def by_simpson(x):
    return integrate.simpson(np.exp(-x * TIMES), x=TIMES)


def by_brentq(x):
    return optimize.brentq(lambda t: t**3 + x[0] * t - x[1], 0.0, 5.0, xtol=1e-14)


def by_fsolve(x):
    return np.sum(optimize.fsolve(lambda t: [t[0] ** 2 + x[0] * t[1] - 2, t[0] - x[1] * t[1]], [1.0, 1.0], xtol=1e-13))


def by_minimize(x):
    return optimize.minimize(
        lambda t: (t[0] - x[0]) ** 2 + x[1] * (t[1] - t[0] ** 2) ** 2 + t[1] ** 4, [0.5, 0.5], tol=1e-12
    ).x[1]


def by_curve_fit(x):
    return optimize.curve_fit(lambda t, a, b: a * np.exp(-b * t), TIMES[:4], x, p0=[1.0, 1.0])[0][1]


def by_least_squares(x):
    return optimize.least_squares(
        lambda p: p[0] * np.exp(-p[1] * TIMES[:4]) - x, [1.0, 1.0], xtol=1e-15, ftol=1e-15, gtol=1e-15
    ).x[0]


def by_interp1d(x):
    return interpolate.interp1d(TIMES, TABLE, kind="cubic")(x).sum()


def by_cubic_spline(x):
    return interpolate.CubicSpline(TIMES[:5], x)(0.7)


def by_splines(x):
    return interpolate.splev(x, interpolate.splrep(TIMES, TABLE))


def by_regular_grid(x):
    grid = interpolate.RegularGridInterpolator((TIMES, TIMES), np.outer(TABLE, TABLE))
    return grid(x)[0]


def by_lfilter(x):
    return np.sum(signal.lfilter([x[0]], [1.0, -x[1]], SAMPLES) ** 2)


def by_savgol(x):
    return np.sum(signal.savgol_filter(x, 5, 2) ** 2)


def by_welch(x):
    return np.sum(signal.welch(x, nperseg=4)[1] ** 2)


def by_gaussian_filter(x):
    return np.sum(ndimage.gaussian_filter(x, 1.0) ** 2)


def by_dct(x):
    return np.sum(fft.dct(x, norm="ortho")[:3] ** 3)


def by_cdist(x):
    return np.sum(spatial.distance.cdist(x, x + np.array([[1.0, 0.5]])))


def by_rotation(x):
    return spatial.transform.Rotation.from_euler("xyz", x).apply([1.0, 0.5, 0.2])[1]


def by_spsolve(x):
    n = len(x)
    a = sparse.diags([x, -np.ones(n - 1)], [0, 1]).tocsc()
    return np.sum(sparse_linalg.spsolve(a, np.ones(n)))


def by_sparse_product(x):
    return np.sum((sparse.eye(4, format="csr") * 2 @ x) ** 2)


def by_cholesky(x):
    factor = linalg.cho_factor(np.eye(3) * 2 + np.outer(x, x))
    return x @ linalg.cho_solve(factor, np.ones(3))


def by_expm(x):
    return linalg.expm(np.array([[0.0, x[0]], [-x[1], 0.1]]))[0, 1]


def by_log_likelihood(x):
    return np.sum(stats.norm.logpdf(SAMPLES, loc=x[0], scale=x[1])) + stats.gamma.logpdf(x[1], 2.0)


def by_multivariate_normal(x):
    return stats.multivariate_normal.logpdf(x, mean=np.zeros(2), cov=[[2.0, 0.3], [0.3, 1.0]])


def by_density(x):
    return stats.gaussian_kde(TABLE)(x)[0]


def by_special(x):
    return special.gammaln(x[0]) + special.jv(1, x[1]) + special.erf(x[0] * x[1])
