"""Rows of the sample table for functions of Bessel and their kin, elliptic, hypergeometric and orthogonal functions.

One small row for each primitive: tests/rows_special_bessel.py and tests/rows_special_elliptic.py go through the
functions that they make.
"""

from __future__ import annotations

import scipy.special
from sampling import Source, c128, f64, given, i64, sample, uniform

from ftrans.ops.special import airy, bessel, elliptic, hypergeometric, legendre, polynomials, struve, wave
from ftrans.ops.special.family import SpecialFunction

PAIR = (2,)
POSITIVE = uniform(0.5, 2.5, PAIR)
INSIDE = uniform(-0.6, 0.6, PAIR)
PLANE = uniform(0.3, 1.2, PAIR, c128)


def rows(module: object, names: str, *sources: Source, orders: int = 0) -> None:
    """A row for each of some primitives, smooth in all operands but the first ones."""
    for name in names.split():
        primitive = getattr(module, name)
        assert isinstance(primitive, SpecialFunction)
        sample(primitive, *sources, differentiated=tuple(range(orders, len(sources))))


def whole(*values: int) -> Source:
    """Orders that are integers."""
    return given(values, i64)


def order(*values: float) -> Source:
    """Orders that are real."""
    return given(values, f64)


rows(bessel, "j0 j1 y0 y1 i0 i0e i1 i1e k0 k0e k1 k1e", POSITIVE)
rows(bessel, "jv jve yv yve iv ive kv kve", order(0.0, 1.5), POSITIVE, orders=1)
rows(bessel, "jve ive hankel1 hankel1e hankel2 hankel2e", order(0.0, 1.5), PLANE, orders=1)
rows(bessel, "yn kn spherical_jn spherical_yn spherical_in spherical_kn", whole(0, 2), POSITIVE, orders=1)
rows(bessel, "besselpoly wright_bessel", order(0.5, 1.5), order(1.0, 2.0), POSITIVE, orders=2)
# SciPy 1.14 has wrong logarithms of the larger values.
rows(bessel, "log_wright_bessel", order(0.5, 0.5), order(1.0, 2.0), given([0.2, 0.4]), orders=2)
rows(airy, "airy ber bei ker kei berp beip kerp keip", POSITIVE)
rows(airy, "airye", POSITIVE)
rows(airy, "itairy", given([0.3, 0.6]))
rows(airy, "airye", PLANE)
rows(struve, "struve modstruve", order(0.0, 1.5), given([0.7, 2.6]), orders=1)
rows(struve, "itj0y0 iti0k0 it2j0y0 it2i0k0 itstruve0 it2struve0 itmodstruve0", given([0.7, 2.6]))
sample(struve.leading, order(0.0, 1.5), order(0.0, 1.0), POSITIVE, differentiated=(2,))

rows(elliptic, "ellipk ellipkm1 ellipe", uniform(0.2, 0.8, PAIR))
rows(elliptic, "ellipkinc ellipeinc ellipj", given([-0.4, 2.3]), uniform(0.2, 0.8, PAIR))
rows(elliptic, "agm degenerate", POSITIVE, POSITIVE)
rows(elliptic, "elliprd elliprf elliprg", POSITIVE, POSITIVE, POSITIVE)
rows(elliptic, "elliprj", POSITIVE, POSITIVE, POSITIVE, POSITIVE)
sample(elliptic.carlson, POSITIVE, POSITIVE, POSITIVE, power=1, exponents=(3, 1, 1))
sample(elliptic.legendre, given([-0.4, 2.3]), uniform(0.2, 0.8, PAIR), a=1, b=3)

rows(hypergeometric, "hyp0f1", order(0.5, 1.5), INSIDE, orders=1)
rows(hypergeometric, "hyp1f1", order(0.5, 1.5), order(1.5, 2.0), INSIDE, orders=2)
rows(hypergeometric, "hyperu", order(0.5, 1.5), order(1.5, 2.5), POSITIVE, orders=2)
rows(hypergeometric, "hyp2f1", order(0.5, 1.5), order(1.5, 0.7), order(2.5, 2.0), INSIDE, orders=3)
rows(hypergeometric, "lambertw", whole(0, -1), order(1e-8, 1e-8), PLANE, orders=2)
rows(hypergeometric, "wrightomega", POSITIVE)

FAMILIES = "chebyc chebys chebyt chebyu hermite hermitenorm laguerre legendre sh_chebyt sh_chebyu sh_legendre"
rows(polynomials, " ".join(f"eval_{name}" for name in FAMILIES.split()), whole(0, 3), INSIDE, orders=1)
rows(polynomials, "eval_gegenbauer eval_genlaguerre", whole(0, 3), order(0.7, 1.5), INSIDE, orders=2)
rows(polynomials, "eval_jacobi eval_sh_jacobi", whole(0, 3), order(2.7, 2.5), order(0.7, 1.5), INSIDE, orders=3)
rows(legendre, "lpmv", order(0.0, -1.0), order(1.5, 2.0), INSIDE, orders=2)
sample(legendre.factor, order(0.0, 1.0), order(1.5, 2.0), INSIDE, order=0, differentiated=(2,))
rows(legendre, "sph_legendre_p", whole(2, 3), whole(0, -1), POSITIVE, orders=2)

rows(wave, "mathieu_cem mathieu_sem mathieu_modcem1 mathieu_modcem2", *[order(1.0, 2.0)] * 2, POSITIVE, orders=2)
rows(wave, "mathieu_modsem1 mathieu_modsem2", *[order(1.0, 2.0)] * 2, POSITIVE, orders=2)
rows(wave, "pbdv pbvv pbwa", order(0.5, 1.0), POSITIVE, orders=1)
DEGREES, SIZES = (order(0.0, 1.0), order(1.0, 2.0)), order(0.7, 1.2)
BETWEEN, BEYOND = given([0.4, 0.7]), given([2.4, 2.7])
PROLATE = order(*scipy.special.pro_cv([0, 1], [1, 2], [0.7, 1.2]))
OBLATE = order(*scipy.special.obl_cv([0, 1], [1, 2], [0.7, 1.2]))
rows(wave, "pro_ang1 obl_ang1 obl_rad1", *DEGREES, SIZES, BETWEEN, orders=3)
rows(wave, "pro_rad1 pro_rad2", *DEGREES, SIZES, BEYOND, orders=3)
rows(wave, "pro_ang1_cv", *DEGREES, SIZES, PROLATE, BETWEEN, orders=4)
rows(wave, "pro_rad1_cv pro_rad2_cv", *DEGREES, SIZES, PROLATE, BEYOND, orders=4)
rows(wave, "obl_ang1_cv obl_rad1_cv", *DEGREES, SIZES, OBLATE, BETWEEN, orders=4)
for name in ("mathieu_a", "mathieu_b", "pro_cv", "obl_cv"):
    degrees = DEGREES if "cv" in name else (order(1.0, 2.0),)
    # There are no second derivatives; tests/rows_special_bessel.py has the first ones.
    sample(getattr(wave, name), *degrees, SIZES, smooth=False)
    sample(getattr(wave, f"{name}_slope"), *degrees, SIZES, smooth=False)
