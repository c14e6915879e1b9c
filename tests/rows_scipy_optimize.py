"""Rows of `scipy.optimize`: solvers whose last steps are exact, so that their values have all digits.

The others are tested in test_scipy_optimize_traced.py and test_scipy_optimize_minima.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import given, normal

ONCE: dict[str, Any] = {"dtypes": (), "looseness": 100.0}
NUMBER, PAIR = given(2.2), given([0.3, -0.2])


def cubic(x: Any, a: Any) -> Any:
    return x**3 + a * x - 3.0


def bent(x: Any, a: Any) -> Any:
    return np.stack([x[0] + 0.1 * x[1] ** 2 - a[0], x[1] - 0.2 * x[0] * x[1] - a[1]])


def bowl(x: Any, a: Any) -> Any:
    return np.sum((x - a) ** 2) + np.sum(a) * x[0] * x[1]


def bowl_slope(x: Any, a: Any) -> Any:
    return 2 * (x - a) + np.sum(a) * x[::-1]


def bowl_hessian(x: Any, a: Any) -> Any:
    return 2 * np.eye(2) + np.sum(a) * np.eye(2)[::-1]


row("scipy.optimize.brentq", NUMBER, call=lambda f, a: f(cubic, 0.0, 2.0, (a,), xtol=1e-15), **ONCE)
row("scipy.optimize.root", PAIR, call=lambda f, a: f(bent, np.zeros(2), (a,), tol=1e-14).x, **ONCE)
row(
    "scipy.optimize.minimize",
    PAIR,
    call=lambda f, a: f(bowl, np.zeros(2), (a,), "trust-exact", bowl_slope, bowl_hessian, options={"gtol": 1e-13}).x,
    **ONCE,
)
row("scipy.optimize.nnls", normal((4, 2)), normal((4,)), call=lambda f, a, b: f(np.abs(a), 2.0 + b)[0], **ONCE)
row(
    "scipy.optimize.linprog",
    normal((2,)),
    call=lambda f, b: f([-1.0, -2.0], [[1.0, 1.0], [1.0, 3.0]], np.array([4.0, 6.0]) + 0.1 * b).x,
    **ONCE,
)
for name in ("rosen", "rosen_der", "rosen_hess"):
    row(f"scipy.optimize.{name}", normal((3,)), **ONCE)
row("scipy.optimize.rosen_hess_prod", normal((3,)), normal((3,)), **ONCE)
