"""Rows of `scipy.integrate`."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import row
from sampling import given, normal

ONCE: dict[str, Any] = {"dtypes": ()}
# Places of samples, at distances of their own.
PLACES = given([0.0, 0.9, 2.0, 3.1, 3.9, 5.0])
FIVE = given([0.0, 0.9, 2.0, 3.1, 3.9])

row("scipy.integrate.trapezoid", normal((2, 3)), given([0.0, 0.4, 1.0]))
row("scipy.integrate.cumulative_trapezoid", normal((2, 3)), given([0.0, 0.4, 1.0]), initial=0, **ONCE)
row("scipy.integrate.cumulative_trapezoid", normal((3, 2)), dx=0.5, axis=0, **ONCE)
row("scipy.integrate.simpson", normal((6,)), PLACES, call=lambda f, y, x: f(y, x=x), **ONCE)
row("scipy.integrate.simpson", normal((5, 2)), FIVE, call=lambda f, y, x: f(y, x=x, axis=0), **ONCE)
row("scipy.integrate.simpson", normal((6,)), given(0.3), call=lambda f, y, h: f(y, dx=h), **ONCE)
row("scipy.integrate.simpson", normal((2,)), given(0.3), call=lambda f, y, h: f(y, dx=h), note="two", **ONCE)
row("scipy.integrate.cumulative_simpson", normal((6,)), PLACES, call=lambda f, y, x: f(y, x=x), **ONCE)
row(
    "scipy.integrate.cumulative_simpson",
    normal((5, 2)),
    given(0.3),
    call=lambda f, y, h: f(y, dx=h, axis=0, initial=h),
    **ONCE,
)
row("scipy.integrate.romb", normal((5,)), given(0.3), call=lambda f, y, h: f(y, dx=h), **ONCE)
row(
    "scipy.integrate.fixed_quad",
    given(0.7),
    given(1.9),
    call=lambda f, a, b: f(lambda x, c: np.exp(-c * x) * np.sin(a * x), a, b, args=(b,), n=4)[0],
    **ONCE,
)
row(
    "scipy.integrate.quad",
    given(0.7),
    given(1.9),
    call=lambda f, a, b: f(lambda x: np.exp(-b * x) * np.sin(a * x), a, b, epsabs=0, epsrel=1e-12)[0],
    **ONCE,
)
row(
    "scipy.integrate.quad_vec",
    given([0.7, 1.9]),
    given(0.3),
    call=lambda f, c, a: f(lambda x: np.exp(-c * x) / (a + x), a, np.inf, epsrel=1e-12)[0],
    **ONCE,
)
row(
    "scipy.integrate.dblquad",
    given(0.7),
    call=lambda f, c: f(lambda y, x: np.exp(-c * x * y), 0, c, lambda x: c * x, 1)[0],
    **ONCE,
)
row(
    "scipy.integrate.tplquad",
    given(0.7),
    call=lambda f, c: f(lambda z, y, x: c * z, 0, c, 0, lambda x: c * x, c, 2.0)[0],
    **ONCE,
)
row(
    "scipy.integrate.nquad",
    given(0.7),
    call=lambda f, c: f(lambda y, x, k: np.sin(k * x * y), [[0, 1], lambda k: (0, k)], args=(c,))[0],
    **ONCE,
)


def swinging(t: Any, y: Any, k: Any) -> list[Any]:
    return [y[1], -k * np.sin(y[0]) - t * y[1]]


row(
    "scipy.integrate.solve_ivp",
    given([0.7, 0.2]),
    given(1.9),
    given([0.3, 0.8]),
    call=lambda f, y0, k, t: (
        f(swinging, t, y0, "DOP853", args=(k,), rtol=1e-12, atol=1e-12, t_eval=np.linspace(0.4, 0.7, 2)).y
    ),
    **ONCE,
)
row(
    "scipy.integrate.odeint",
    given([0.7, 0.2]),
    given(1.9),
    given([0.3, 0.8]),
    call=lambda f, y0, k, t: f(swinging, y0, t, args=(k,), rtol=1e-12, atol=1e-12, tfirst=True),
    looseness=100,
    **ONCE,
)
