"""Rows of `numpy`: choosing elements by index, condition and order; putting values into arrays; curves."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import in_place, row
from sampling import c128, distinct, f32, given, increasing, integers, normal, uniform

BOTH: dict[str, Any] = {"dtypes": (f32, c128)}
MASK = np.array([[True, False, True], [False, True, True]])

# By index

row("numpy.take", normal((2, 3)), indices=[[0, 5], [-1, 0]], **BOTH)
row("numpy.take", normal((2, 3)), indices=[2, 0, 0], axis=1)
row("numpy.take", normal((3,)), indices=[-1, 4, 7], mode="wrap")
row("numpy.take", normal((3,)), indices=[-1, 4, 1], mode="clip")
row("numpy.take", normal((3, 2)), integers(0, 3, (2, 2)), call=lambda f, x, i: f(x, i, axis=0), note="drawn indices")
row("numpy.take_along_axis", normal((2, 3)), integers(0, 3, (2, 2)), axis=1, **BOTH)
row("numpy.take_along_axis", normal((4,)), integers(0, 4, (2,)), axis=None)
row(
    "numpy.choose",
    given([0, 2, 1], int),
    normal((3,)),
    normal((3,)),
    normal(()),
    call=lambda f, i, *xs: f(i, xs),
    **BOTH,
)
row("numpy.choose", given([4, -1, 1], int), normal((2, 3)), call=lambda f, i, x: f(i, x, mode="wrap"), note="wrap")
row("numpy.choose", given([4, -1, 1], int), normal((2, 3)), call=lambda f, i, x: f(i, x, mode="clip"), note="clip")

# By condition

row("numpy.compress", normal((2, 3)), call=lambda f, x: f([True, False, True], x, axis=1), **BOTH)
row("numpy.compress", normal((2, 3)), call=lambda f, x: f([True, False, False, True], x), note="flat")
row("numpy.extract", normal((2, 3)), call=lambda f, x: f(MASK, x), **BOTH)
row("numpy.extract", distinct((2, 3)), call=lambda f, x: f(x > 0, x), asks=True, note="of itself")
row("numpy.select", distinct((5,)), call=lambda f, x: f([x < -0.5, x > 0.5], [x**2, np.sin(x)], 3 * x), dtypes=(f32,))
row("numpy.select", normal((2, 3)), normal((3,)), call=lambda f, x, y: f([MASK, ~MASK], [x, y]), **BOTH)
row(
    "numpy.piecewise",
    distinct((5,)),
    call=lambda f, x: f(x, [x < -0.5, x > 0.5], [np.sin, lambda v: v**2, 1.5]),
)
row(
    "numpy.piecewise",
    distinct((5,)),
    normal(()),
    call=lambda f, x, a: f(x, [x < 0], [lambda v, a: a * v, 2.0], a),
    note="args",
)

# By order

row("numpy.sort", distinct((2, 4)), axis=0)
row("numpy.sort", distinct((2, 3)), axis=None, kind="stable")
row("numpy.sort", normal((4,), c128), note="complex")
# What order the other elements have is up to NumPy, and to the CPU.
row("numpy.partition", distinct((2, 5)), kth=2, call=lambda f, x: f(x)[:, 2])
row("numpy.partition", distinct((4, 2)), kth=(1, -1), axis=0, call=lambda f, x: f(x)[[1, -1]])
row("numpy.unique", distinct((5,)), asks=True)
row("numpy.bincount", given([0, 2, 2, 1], int), normal((4,)), call=lambda f, i, w: f(i, w, 5), dtypes=())
row(
    "numpy.histogram",
    distinct((5,)),
    normal((5,)),
    call=lambda f, x, w: f(x, [-1.1, 0.0, 1.1], weights=w),
    note="weights=",
)
row(
    "numpy.histogram", distinct((5,)), uniform(1, 2, (5,)),
    call=lambda f, x, w: f(x, 3, (-1.3, 1.3), True, w), note="density=",
)  # fmt: skip

# Into arrays

PLACES = np.array([0, 3])


def put_along(f: Any, x: Any, v: Any) -> Any:
    """Change one element of each row."""
    return in_place(f, x, np.array([[2], [0]]), v, 1)


row("numpy.put_along_axis", normal((2, 3)), normal((2, 1)), call=put_along, **BOTH)
row("numpy.put_along_axis", normal((4,)), normal(()), call=lambda f, x, v: in_place(f, x, PLACES, v, None), note="flat")
row("numpy.put", normal((2, 3)), normal((2,)), call=lambda f, x, v: in_place(f, x, PLACES, v), **BOTH)
row("numpy.put", normal((2, 3)), normal(()), call=lambda f, x, v: in_place(f, x, PLACES + 5, v, "wrap"), note="wrap")
row("numpy.place", normal((2, 3)), normal((2,)), call=lambda f, x, v: in_place(f, x, MASK, v), **BOTH)
row("numpy.putmask", normal((2, 3)), normal((2, 3)), call=lambda f, x, v: in_place(f, x, MASK, v), **BOTH)
row("numpy.putmask", normal((2, 3)), normal((2,)), call=lambda f, x, v: in_place(f, x, MASK, v), note="repeated values")
row("numpy.copyto", normal((2, 3)), normal((3,)), call=in_place, **BOTH)
row("numpy.copyto", normal((2, 3)), normal(()), call=lambda f, x, v: _copied(f, x, v), note="where=")
row("numpy.fill_diagonal", normal((3, 2)), normal((2,)), call=in_place, **BOTH)
row("numpy.fill_diagonal", normal((5, 2)), normal(()), call=lambda f, x, v: in_place(f, x, v, True), note="wrap")


def _copied(f: Any, x: Any, v: Any) -> Any:
    y = x.copy()
    f(y, v, where=MASK)
    return y


# Curves

row("numpy.gradient", normal((2, 4)), call=lambda f, x: f(x, 0.5, axis=1), **BOTH)
row("numpy.gradient", normal((3, 3)), call=lambda f, x: f(x, 0.5, 2.0, edge_order=2), note="both axes")
row("numpy.gradient", normal((5,)), increasing((5,)), call=lambda f, y, x: f(y, x, edge_order=2), note="coordinates")
row("numpy.gradient", normal((3, 4)), increasing((3,)), normal(()), call=lambda f, y, x, h: f(y, x, h), note="spacings")
row("numpy.interp", uniform(-0.9, 1.9, (4,)), given([-1.0, 0.0, 0.7, 2.0]), normal((4,)))
row("numpy.interp", given([-2.0, 0.3, 3.0]), given([-1.0, 0.0, 2.0]), normal((3,)), left=-5.0, right=7.0)
row("numpy.interp", given([-2.2, 0.2, 3.4]), given([0.0, 0.3, 0.6]), normal((3,)), period=1.0)
row("numpy.interp", uniform(-0.9, 1.9, (4,)), given([-1.0, 0.0, 2.0]), normal((3,), c128), note="complex values")
row("numpy.unwrap", given([0.0, 3.0, 6.5, 1.0, -4.0]))
row("numpy.unwrap", given([[0.0, 3.0, 6.5], [1.0, 2.0, -1.0]]), axis=0, period=4.0, discont=2.5)
row("numpy.polyval", normal((3,)), normal((2, 2)), analytic=True, **BOTH)
row("numpy.poly1d", normal((3,)), normal((2,)), call=lambda f, c, x: f(c)(x), asks=True)
