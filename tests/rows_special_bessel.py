"""Rows of `scipy.special`: functions of Bessel, Airy, Kelvin, Struve, Mathieu, of the parabolic cylinder and spheroids.

What is seldom used has rows of double precision only.
"""

from __future__ import annotations

from typing import Any

import scipy.special
from function_rows import row
from sampling import Source, c128, given, uniform

POSITIVE = uniform(0.5, 2.5, (2,))
SIGNED = given([-1.3, 0.6])
PLANE = uniform(0.3, 1.2, (2,), c128)
ORDERS = given([0.0, 1.5])
SELDOM: dict[str, Any] = {"dtypes": ()}
IN_LAST: dict[str, Any] = {"differentiated": (1,)}


def rows(names: str, *sources: Source, **options: Any) -> None:
    """A row for each of some functions."""
    for name in names.split():
        row(f"scipy.special.{name}", *sources, **options)


# Bessel functions

rows("j0 j1 i0 i0e i1 i1e", SIGNED)
rows("y0 y1 k0 k0e k1 k1e", POSITIVE)
rows("jv yv iv ive kv kve", ORDERS, POSITIVE, **IN_LAST)
rows("jve yve jn", ORDERS, POSITIVE, **IN_LAST, **SELDOM)
rows("yn kn", given([0, 2], int), POSITIVE, **IN_LAST)
rows("jv iv", given(1.0), given([-1.5, 0.0]), **IN_LAST, **SELDOM, note="at 0")
rows("jv kv kve", ORDERS, PLANE, **IN_LAST, **SELDOM, note="complex")
rows("jve yve ive", ORDERS, PLANE, **IN_LAST, **SELDOM, note="complex, and not analytic")
rows("hankel1 hankel1e hankel2 hankel2e", ORDERS, PLANE, **IN_LAST, **SELDOM)
row("scipy.special.hankel1", given(0.5), POSITIVE, **IN_LAST, **SELDOM, note="of a real argument")
rows("jvp yvp ivp kvp", ORDERS, POSITIVE, n=2, **IN_LAST, **SELDOM)
rows("h1vp h2vp", ORDERS, PLANE, **IN_LAST, **SELDOM)
rows("spherical_jn spherical_in spherical_yn spherical_kn", given([0, 2], int), POSITIVE, **IN_LAST, **SELDOM)
row("scipy.special.spherical_jn", given([0, 2], int), PLANE, derivative=True, **IN_LAST, **SELDOM)
# SciPy 1.14 has wrong logarithms of the larger values.
rows("wright_bessel log_wright_bessel", given(0.5), given([1.0, 2.0]), given([0.2, 0.4]), differentiated=(2,), **SELDOM)
row("scipy.special.besselpoly", POSITIVE, given(0.5), given([0.7, 2.0]), differentiated=(0,), **SELDOM)

# Their kin

rows("airy ber bei ker kei berp beip kerp keip kelvin", POSITIVE, **SELDOM)
rows("airy airye", PLANE, **SELDOM, note="complex")
row("scipy.special.airye", POSITIVE, **SELDOM)
row("scipy.special.itairy", given([0.3, 0.6]), **SELDOM)
rows("struve modstruve", given([0.0, 1.5]), given([0.6, 2.6]), **IN_LAST, **SELDOM)
rows("itj0y0 iti0k0 it2j0y0 it2i0k0 itstruve0 it2struve0 itmodstruve0", given([0.6, 2.6]), **SELDOM, looseness=100.0)

# Solutions of differential equations

rows("mathieu_cem mathieu_sem", given(2.0), given(1.5), given([20.0, 50.0]), differentiated=(2,), **SELDOM)
rows(
    "mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2",
    given(2.0),
    given(1.5),
    given([0.4, 0.9]),
    differentiated=(2,),
    **SELDOM,
)
rows("mathieu_a mathieu_b", given(2.0), given([0.4, -1.3]), **IN_LAST, **SELDOM, order=1)
rows("pro_cv obl_cv", given(1.0), given([1.0, 2.0]), given([0.4, 1.3]), differentiated=(2,), **SELDOM, order=1)
rows("pbdv pbvv pbwa", given(0.7), given([0.4, 1.3]), **IN_LAST, **SELDOM)
# A degree, an order and a size, whose characteristic values are in the rows of the functions with _cv.
SPHEROID = (1, 2, 1.2)
PROLATE, OBLATE = scipy.special.pro_cv(*SPHEROID), scipy.special.obl_cv(*SPHEROID)
BETWEEN, BEYOND = given([0.4, 0.7]), given([2.4, 2.7])
rows("pro_ang1 obl_ang1 obl_rad1", *map(given, SPHEROID), BETWEEN, differentiated=(3,), **SELDOM)
rows("pro_rad1 pro_rad2", *map(given, SPHEROID), BEYOND, differentiated=(3,), **SELDOM)
rows("pro_ang1_cv", *map(given, (*SPHEROID, PROLATE)), BETWEEN, differentiated=(4,), **SELDOM)
rows("pro_rad1_cv pro_rad2_cv", *map(given, (*SPHEROID, PROLATE)), BEYOND, differentiated=(4,), **SELDOM)
rows("obl_ang1_cv obl_rad1_cv", *map(given, (*SPHEROID, OBLATE)), BETWEEN, differentiated=(4,), **SELDOM)
