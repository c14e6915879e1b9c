"""The programs of `scripts.py`: what needs no package but NumPy and SciPy."""

from __future__ import annotations

from .row import Row

TWO, THREE, FOUR = [0.8, 1.3], [0.7, 0.3, 0.9], [1.0, 0.7, 0.5, 0.35]

POINTS: dict[str, float | list[float] | list[list[float]]] = {
    "heat_equation": 0.2,
    "thomas": [2.0, 2.5, 3.0, 2.2],
    "rotation": THREE,
    "random_walk": THREE,
    "histogram_of_distances": [0.1, 0.2, 0.7, -0.3, 1.1, 0.4],
    "black_scholes": [100.0, 0.2],
    "haversine": [52.0, 13.0],
    "by_type": 1.7,
    "of_a_list": THREE,
    "vectorized": THREE,
    "cached": 0.6,
    "by_quad": TWO,
    "by_odeint": TWO,
    "by_solve_ivp": TWO,
    "by_simpson": 0.8,
    "by_brentq": TWO,
    "by_fsolve": TWO,
    "by_minimize": TWO,
    "by_curve_fit": FOUR,
    "by_least_squares": FOUR,
    "by_interp1d": TWO,
    "by_cubic_spline": [*FOUR, 0.2],
    "by_splines": 0.7,
    "by_regular_grid": TWO,
    "by_lfilter": TWO,
    "by_savgol": [*FOUR, 0.2],
    "by_welch": [*FOUR, *FOUR],
    "by_gaussian_filter": [*FOUR, 0.2],
    "by_dct": FOUR,
    "by_cdist": [[0.3, 0.8], [1.1, -0.4]],
    "by_rotation": THREE,
    "by_spsolve": [2.0, 2.5, 3.0],
    "by_sparse_product": FOUR,
    "by_cholesky": THREE,
    "by_expm": TWO,
    "by_log_likelihood": TWO,
    "by_multivariate_normal": TWO,
    "by_density": 0.4,
    "by_special": TWO,
}

# The programs that take longest, each around a function of SciPy.
LONG = (
    "cdist", "curve_fit", "dct", "expm", "fsolve", "gaussian_filter", "least_squares", "minimize",
    "multivariate_normal", "odeint", "regular_grid", "rotation", "savgol", "simpson",
    "sparse_product", "special", "splines", "welch",
)  # fmt: skip

ROWS = [Row(f"thirdparty.scripts.{name}", lambda f, x: f(x), at) for name, at in POINTS.items()]
