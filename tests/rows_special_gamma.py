"""Rows of `scipy.special`: the gamma and beta functions, the incomplete ones, their inverses, the zeta functions."""

from __future__ import annotations

from function_rows import row
from sampling import c64, c128, f32, given, uniform

PAIR = (2,)

# Gamma functions; left of 0 between the poles

for name in ("gamma", "gammaln", "loggamma", "rgamma", "psi"):
    row(f"scipy.special.{name}", uniform(0.3, 5, PAIR))
for name in ("gamma", "gammaln", "rgamma", "psi"):
    row(f"scipy.special.{name}", given([-0.4, -3.7]), note="negative", dtypes=())
for name in ("gamma", "loggamma", "rgamma", "psi"):
    row(f"scipy.special.{name}", uniform(0.5, 2, PAIR, c128), note="complex", dtypes=(c64,))
row("scipy.special.rgamma", given([0.0, -3.0]), note="zeros")
row("scipy.special.psi", given([-1.7 + 0.4j, -0.2 - 3.0j], c128), note="left half", dtypes=())
row("scipy.special.digamma", uniform(0.5, 2, PAIR), dtypes=())
row("scipy.special.polygamma", given([2, 1], int), uniform(0.5, 3, PAIR))
row("scipy.special.polygamma", given([0, 3], int), given([0.7, -1.3]), note="psi among them", dtypes=())
row("scipy.special.multigammaln", uniform(2, 4, PAIR), d=3, dtypes=())
row("scipy.special.factorial", uniform(0.5, 4, PAIR), dtypes=())

# Of two arguments

row("scipy.special.beta", uniform(0.5, 3, PAIR), uniform(0.5, 3, PAIR), dtypes=())
row("scipy.special.betaln", uniform(0.5, 3, PAIR), uniform(0.5, 3, PAIR))
row("scipy.special.betaln", given([1e7, -1.5]), given([0.2, 2.3]), note="far apart", dtypes=(), order=1)
row("scipy.special.poch", uniform(0.5, 3, PAIR), uniform(0.5, 3, PAIR), dtypes=())
row("scipy.special.poch", given([-2.0, -4.0]), given([5.0, 2.0]), note="poles", differentiated=(0,), dtypes=())
row("scipy.special.binom", uniform(3, 6, PAIR), uniform(0.5, 2.5, PAIR), dtypes=(), order=1)
row("scipy.special.binom", given([2.0, 5.0]), given([3.0, -1.0]), note="zeros", dtypes=(), order=1)
row("scipy.special.comb", uniform(3, 6, PAIR), uniform(0.5, 2.5, PAIR), dtypes=(), order=1)
row("scipy.special.perm", uniform(3, 6, PAIR), uniform(0.5, 2.5, PAIR), dtypes=(), order=1)

# Zeta functions

row("scipy.special.zeta", uniform(1.5, 4, PAIR), uniform(0.5, 3, PAIR))
row("scipy.special.zeta", given([2.5, 0.4, -0.5, -3.3]), note="Riemann")
row("scipy.special.zetac", given([2.5, 0.4, -0.5, -2.0]))

# Incomplete functions

for name in ("gammainc", "gammaincc"):
    row(f"scipy.special.{name}", given([0.6, 3.0, 3.0, 40.0]), given([0.4, 2.0, 5.0, 45.0]))
for name in ("gammaincinv", "gammainccinv"):
    row(f"scipy.special.{name}", uniform(1, 5, PAIR), uniform(0.2, 0.8, PAIR), looseness=3)
for name in ("betainc", "betaincc"):
    a, b, x = given([0.6, 3.0, 30.0]), given([2.0, 0.8, 20.0]), given([0.3, 0.8, 0.55])
    row(f"scipy.special.{name}", a, b, x, dtypes=(f32,))
for name in ("betaincinv", "betainccinv"):
    row(f"scipy.special.{name}", uniform(1, 3, PAIR), uniform(1, 3, PAIR), uniform(0.2, 0.8, PAIR), looseness=3)
