"""Rows of `scipy.special`: elliptic, hypergeometric and orthogonal functions, and the function of Lambert."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import scipy.special
from function_rows import row
from sampling import Source, c128, f32, given, uniform

POSITIVE = uniform(0.5, 2.5, (2,))
PLANE = uniform(0.3, 1.2, (2,), c128)
INSIDE = uniform(-0.6, 0.6, (2,))
SELDOM: dict[str, Any] = {"dtypes": ()}


def rows(names: str, *sources: Source, **options: Any) -> None:
    """A row for each of some functions."""
    for name in names.split():
        row(f"scipy.special.{name}", *sources, **options)


# Elliptic integrals and functions

rows("ellipk ellipe", given([-0.7, 0.4]))
row("scipy.special.ellipkm1", POSITIVE, **SELDOM)
rows("ellipkinc ellipeinc", given([-0.4, 2.3]), given([0.0, 0.6]))
row("scipy.special.ellipj", given([-0.4, 2.3]), uniform(0.2, 0.8, (2,)))
rows("agm", POSITIVE, POSITIVE, **SELDOM)
row("scipy.special.elliprc", POSITIVE, given([0.6, -0.7]), **SELDOM)
rows("elliprf elliprd elliprg", POSITIVE, POSITIVE, POSITIVE, **SELDOM)
row("scipy.special.elliprf", *[given([0.7])] * 3, **SELDOM, note="equal arguments")
row("scipy.special.elliprd", PLANE, PLANE, PLANE, **SELDOM, note="complex")
row("scipy.special.elliprj", *[POSITIVE] * 4, **SELDOM)

# Hypergeometric functions

row("scipy.special.hyp0f1", given(1.5), INSIDE, differentiated=(1,))
row("scipy.special.hyp1f1", given(0.5), given([1.5, 2.0]), INSIDE, differentiated=(2,))
row("scipy.special.hyp2f1", given(0.5), given([1.5, 0.7]), given(2.5), INSIDE, differentiated=(3,))
row("scipy.special.hyp2f1", given(0.5), given(1.5), given(2.5), PLANE, differentiated=(3,), **SELDOM, note="complex")
row("scipy.special.hyperu", given(0.5), given([1.5, 2.5]), POSITIVE, differentiated=(2,), **SELDOM)
row("scipy.special.lambertw", POSITIVE)
row("scipy.special.lambertw", given([-0.2, -0.1]), k=-1, **SELDOM)
row("scipy.special.lambertw", PLANE, k=1, **SELDOM, note="complex")
row("scipy.special.wrightomega", given([-1.3, 0.6]))
row("scipy.special.wrightomega", PLANE, **SELDOM, note="complex")

# Orthogonal polynomials and functions

rows("eval_legendre eval_chebyt", given([0, 3], int), INSIDE, differentiated=(1,), dtypes=(f32,))
rows(
    "eval_chebyc eval_chebys eval_chebyu eval_hermite eval_hermitenorm eval_laguerre eval_sh_chebyt eval_sh_chebyu"
    " eval_sh_legendre",
    given([0, 3], int),
    INSIDE,
    differentiated=(1,),
    **SELDOM,
)
row("scipy.special.eval_legendre", given(1.5), INSIDE, differentiated=(1,), **SELDOM, note="of real degree")
rows("eval_gegenbauer eval_genlaguerre", given([0, 3], int), given(0.7), INSIDE, differentiated=(2,), **SELDOM)
rows("eval_jacobi eval_sh_jacobi", given([0, 3], int), given(2.7), given(0.7), INSIDE, differentiated=(3,), **SELDOM)
row("scipy.special.assoc_laguerre", INSIDE, given([0, 3], int), given(0.7), differentiated=(0,), **SELDOM)
row("scipy.special.lpmv", given([0, 1, -2]), given([1.5, 3.0, 3.0]), uniform(-0.6, 0.6, (3,)), differentiated=(2,))
row("scipy.special.legendre_p", given([0, 3], int), INSIDE, differentiated=(1,), **SELDOM)
row("scipy.special.assoc_legendre_p", given(3, int), given([1, -2], int), INSIDE, differentiated=(2,), **SELDOM)
row("scipy.special.assoc_legendre_p", given(3, int), given(1, int), INSIDE, norm=True, differentiated=(2,), **SELDOM)
row("scipy.special.sph_legendre_p", given([2, 3], int), given([0, -1], int), POSITIVE, differentiated=(2,), **SELDOM)
row(
    "scipy.special.sph_harm_y",
    given([2, 3], int),
    given([1, -2], int),
    POSITIVE,
    given([-0.4, 2.3]),
    differentiated=(2, 3),
    **SELDOM,
)


def without_warning(f: Callable[..., Any], *operands: Any) -> Any:
    """The result of a function that warns of its age."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return f(*operands)


if hasattr(scipy.special, "sph_harm"):
    # Up to SciPy 1.16.
    angles = (given([-0.4, 2.3]), POSITIVE)
    orders = (given([1, -2], int), given([2, 3], int))
    row("scipy.special.sph_harm", *orders, *angles, call=without_warning, differentiated=(2, 3), **SELDOM)
