"""Rows of `numpy`: functions of each element, and the methods and options of ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np
from function_rows import in_place, row
from sampling import apart, c64, c128, distinct, f32, given, integers, normal, uniform

BOTH: dict[str, Any] = {"dtypes": (f32, c128)}
MASK = np.array([[True, False, True], [False, True, True]])

# One operand

ENTIRE = ("exp", "exp2", "expm1", "sin", "cos", "sinh", "cosh", "tanh", "arcsinh", "square", "positive", "negative")
for name in ENTIRE:
    row(f"numpy.{name}", normal(), analytic=True, **BOTH)
for name in ("log", "log2", "log10", "log1p", "sqrt", "reciprocal"):
    row(f"numpy.{name}", uniform(0.2, 3), analytic=True, **BOTH)
for name in ("arcsin", "arccos", "arctan", "arctanh", "tan"):
    row(f"numpy.{name}", uniform(-0.8, 0.8), analytic=True, **BOTH)
row("numpy.arccosh", uniform(1.2, 3), analytic=True, **BOTH)
row("numpy.cbrt", apart(normal(), 0.3))
row("numpy.sinc", normal(), **BOTH)
row("numpy.sinc", given([0.0, 1e-9, 1e-3, 1.0]), note="at and near zero")
row("numpy.fabs", distinct())
row("numpy.absolute", distinct(), **BOTH)
row("numpy.conjugate", normal((3,), c128))
row("numpy.conjugate", normal((3,)), note="real")
row("numpy.real", normal((3,), c128))
row("numpy.imag", normal((3,), c128))
row("numpy.angle", apart(normal((3,), c128), 0.3), dtypes=(c64,))
row("numpy.angle", normal((3,), c128), deg=True)
row("numpy.sign", normal((3,), c128), note="complex")
row("numpy.real_if_close", normal((3,)))
row("numpy.deg2rad", normal())
row("numpy.radians", normal())
row("numpy.rad2deg", normal())
row("numpy.degrees", normal())
row("numpy.nan_to_num", given([1.0, np.nan, -2.0]), nan=3.0)
row("numpy.nan_to_num", given([1.0, np.nan, -2.0]), normal(()), call=lambda f, x, v: f(x, nan=v), note="nan= differs")
row("numpy.modf", uniform(0.2, 0.8))

# Two operands

row("numpy.add", normal((2, 3)), normal((3,)), analytic=True, **BOTH)
row("numpy.subtract", normal((2, 1)), normal((3,)), analytic=True, **BOTH)
row("numpy.multiply", normal((2, 3)), normal(()), analytic=True, **BOTH)
row("numpy.divide", normal((2, 3)), uniform(0.5, 2), analytic=True, **BOTH)
row("numpy.multiply", normal((2, 3)), integers(1, 9, (3,)), note="an integer operand")
row("numpy.power", uniform(0.5, 2), normal((3,)), analytic=True, **BOTH)
row("numpy.power", apart(normal(), 0.3), integers(-2, 4), differentiated=(0,), note="integers")
row("numpy.power", distinct(), call=lambda f, x: f(x, 3), note="a cube")
row("numpy.float_power", uniform(0.5, 2), normal((3,)), analytic=True, **BOTH)
row("numpy.maximum", distinct((2, 3)), normal((3,)))
row("numpy.minimum", distinct((2, 3)), normal((3,)))
row("numpy.fmax", distinct((2, 3)), given([0.1, np.nan, 0.2]), differentiated=(0,))
row("numpy.fmin", distinct((2, 3)), normal((3,)))
row("numpy.arctan2", apart(normal(), 0.3), normal((3,)))
row("numpy.hypot", apart(normal(), 0.3), normal((3,)))
row("numpy.logaddexp", normal(), normal((3,)))
row("numpy.logaddexp2", normal(), normal((3,)))
row("numpy.copysign", distinct(), distinct((3,)))
row("numpy.remainder", uniform(0.2, 0.8), uniform(-1.8, -1.2))
row("numpy.fmod", uniform(2.2, 2.8), uniform(1.1, 1.3))
row("numpy.divmod", uniform(2.2, 2.8), uniform(1.1, 1.3))
row("numpy.heaviside", given([-1.0, 0.0, 2.0]), normal(()), differentiated=(1,))
row("numpy.ldexp", normal(), integers(-2, 3))
row("numpy.nextafter", given([1.0, -2.0]), given([2.0, 2.0]), differentiated=(0,))
row("numpy.where", integers(0, 2), normal(), normal((3,)), call=lambda f, c, x, y: f(c > 0, x, y), **BOTH)
row("numpy.clip", distinct((7,)), given(-0.9), given(1.1))
row("numpy.clip", distinct((7,)), call=lambda f, x: f(x, None, 0.9), note="one bound")

# Options of ufuncs

row("numpy.exp", normal(), dtype=np.float64, dtypes=(), note="dtype=")
row("numpy.multiply", normal(), normal(), dtype=np.complex128, dtypes=())
row("numpy.sqrt", apart(normal(), 0.3), call=lambda f, x: f(x, where=x > 0, out=np.zeros_like(x)), note="where=")
row("numpy.add", normal(), normal(), call=lambda f, x, y: f(x, y, where=MASK, out=y * 2), note="where= and out=")

# Methods of ufuncs

row("numpy.add.reduce", normal((2, 3)), axis=1, keepdims=True, **BOTH)
row("numpy.add.reduce", normal((2, 3)), axis=(0, 1), initial=2.0, where=MASK)
row("numpy.add.reduce", normal((2, 3)), call=lambda f, x: f(x, dtype=np.complex128), note="dtype=", dtypes=())
row("numpy.multiply.reduce", normal((2, 3)), axis=-1, **BOTH)
row("numpy.multiply.reduce", normal((2, 3)), axis=0, where=MASK)
row("numpy.subtract.reduce", normal((2, 3)), axis=1)
row("numpy.subtract.reduce", normal((2, 3)), axis=0, initial=2.0, where=MASK)
row("numpy.divide.reduce", uniform(0.5, 2, (2, 3)), axis=1)
row("numpy.maximum.reduce", distinct((2, 3)), axis=1)
row("numpy.minimum.reduce", distinct((2, 3)), axis=0, initial=9.0, where=MASK)
row("numpy.logaddexp.reduce", normal((2, 3)), axis=1)
row("numpy.hypot.reduce", apart(normal((2, 3)), 0.3), axis=(0, 1), keepdims=True)
row("numpy.arctan2.reduce", uniform(0.5, 2, (2, 3)), axis=1)
row("numpy.add.accumulate", normal((2, 3)), axis=1, **BOTH)
row("numpy.multiply.accumulate", normal((2, 3)))
row("numpy.maximum.accumulate", distinct((5,)))
row("numpy.logaddexp.accumulate", normal((4,)))
row("numpy.subtract.accumulate", normal((4,)))
row("numpy.multiply.outer", normal((2,)), normal((3,)), **BOTH)
row("numpy.subtract.outer", normal((2, 2)), normal((3,)))
row("numpy.add.at", normal((4,)), given([0, 2, 0], int), normal((3,)), call=in_place, **BOTH)
row("numpy.subtract.at", normal((4,)), given([0, 2, 0], int), normal((3,)), call=in_place)
row("numpy.multiply.at", normal((4,)), given([0, 2, 0], int), normal((3,)), call=in_place)
row("numpy.divide.at", normal((4,)), given([0, 2, 1], int), uniform(0.5, 2, (3,)), call=in_place)
row("numpy.maximum.at", distinct((4,)), given([0, 2, 0], int), normal((3,)), call=in_place)
row("numpy.sin.at", normal((4,)), given([0, 2], int), call=in_place)
