"""Rows of the table of functions: error functions, exponential integrals, and functions for statistics."""

from __future__ import annotations

from function_rows import row
from sampling import c128, given, normal, uniform

PAIR = (2,)
POSITIVE = uniform(0.3, 2, PAIR)
INSIDE = uniform(-0.8, 0.8, PAIR)
PLANE = uniform(0.3, 1.2, PAIR, c128)

# The error function, the normal distribution

for name in ("erf", "erfc", "erfcx", "erfi", "dawsn", "ndtr", "log_ndtr", "fresnel"):
    row(f"scipy.special.{name}", normal(PAIR), analytic=True)
for name in ("erf", "erfcx", "dawsn", "ndtr", "log_ndtr", "fresnel", "wofz"):
    row(f"scipy.special.{name}", PLANE, dtypes=(), note="complex")
row("scipy.special.erfinv", INSIDE)
for name in ("erfcinv", "ndtri"):
    row(f"scipy.special.{name}", uniform(0.1, 0.9, PAIR))
row("scipy.special.ndtri_exp", uniform(-3, -0.5, PAIR))
row("scipy.special.log_ndtr", given([-5.0, -40.0, 3.0]), note="tail")
row("scipy.special.voigt_profile", INSIDE, POSITIVE, uniform(0.3, 2, ()))
for name in ("modfresnelp", "modfresnelm"):
    row(f"scipy.special.{name}", POSITIVE)

# Exponential integrals

for name in ("exp1", "expi", "spence", "sici", "shichi"):
    row(f"scipy.special.{name}", POSITIVE)
    row(f"scipy.special.{name}", PLANE, dtypes=(), note="complex")
row("scipy.special.exprel", given([-3.0, 0.0, 0.5, 4.0]))
row("scipy.special.expn", given([1, 3], int), POSITIVE, dtypes=())

# The logistic function, entropies, losses

for name in ("expit", "log_expit", "softplus"):
    row(f"scipy.special.{name}", normal(PAIR))
row("scipy.special.logit", uniform(0.1, 0.9, PAIR))
row("scipy.special.entr", POSITIVE)
for name in ("kl_div", "rel_entr", "pseudo_huber", "xlogy", "powm1"):
    row(f"scipy.special.{name}", POSITIVE, uniform(0.3, 2, ()))
row("scipy.special.huber", given(0.5), given([0.2, 1.3, -0.7]))
row("scipy.special.xlog1py", POSITIVE, INSIDE)
row("scipy.special.xlogy", PLANE, PLANE, dtypes=(), note="complex")
for name in ("boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p"):
    row(f"scipy.special.{name}", POSITIVE, given([0.0, 0.7]))

# Powers and angles

for name in ("exp2", "exp10", "expm1", "log1p", "cosm1", "sinc"):
    row(f"scipy.special.{name}", INSIDE)
for name in ("expm1", "log1p"):
    row(f"scipy.special.{name}", PLANE, dtypes=(), note="complex")
row("scipy.special.cbrt", POSITIVE)
for name in ("sindg", "cosdg", "tandg", "cotdg"):
    row(f"scipy.special.{name}", uniform(20, 70, PAIR))
row("scipy.special.radian", normal(PAIR), normal(PAIR), normal(()))
row("scipy.special.diric", given([0.0, 0.7, 6.283185307179586]), n=4)

# Sums of exponentials

row("scipy.special.logsumexp", normal((2, 3)))
row("scipy.special.logsumexp", normal((2, 3)), axis=1, keepdims=True)
row("scipy.special.logsumexp", normal((2, 3)), axis=(0, 1), dtypes=())
row("scipy.special.logsumexp", normal((2, 2), c128), axis=0, dtypes=(), note="complex")
row(
    "scipy.special.logsumexp",
    uniform(0, 0.5, (2, 3)),
    given([1.0, -3.0, 0.0]),
    call=lambda f, x, b: f(x, axis=1, b=b, return_sign=True),
    note="weights",
)
for name in ("softmax", "log_softmax"):
    row(f"scipy.special.{name}", normal((2, 3)), axis=1)
    row(f"scipy.special.{name}", normal((2,)))
