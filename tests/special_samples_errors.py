"""Rows of the sample table for error functions, exponential integrals and functions of statistics.

One or two small rows for each primitive: tests/rows_special_errors.py goes through the functions that they make.
"""

from __future__ import annotations

import numpy as np
from sampling import Source, bf16, c128, f16, f32, given, kink, misfit, sample, uniform

from ftrans.core.types import ArrayType
from ftrans.ops.special import convenience, errors, exponential, faddeeva

PAIR = (2,)
POSITIVE = uniform(0.3, 2, PAIR)
INSIDE = uniform(-0.8, 0.8, PAIR)
PLANE = uniform(0.3, 1.2, PAIR, c128)
EDGES = given([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 1e-300])


def rows(module: object, names: str, *sources: Source, **options: object) -> None:
    """A row for each of some primitives."""
    for name in names.split():
        sample(getattr(module, name), *sources, **options)


rows(errors, "erf erfc erfi ndtr log_ndtr fresnel", INSIDE)
rows(errors, "erf log_ndtr", PLANE)
rows(errors, "erf_inv", INSIDE)
rows(errors, "erfc_inv ndtri", uniform(0.1, 0.9, PAIR))
rows(errors, "ndtri_exp", uniform(-3, -0.5, PAIR))
rows(errors, "erf erfc", EDGES, smooth=False, note="edges")
for dtype in (f32, f16, bf16):
    rows(errors, "erf erfc erf_inv", uniform(-0.8, 0.8, PAIR, dtype))
kink(errors.erf, [np.inf, -np.inf, 30.0], along=[[1.0, 1.0, 1.0]], gives=[0.0, 0.0, 0.0])
kink(errors.erfc, [np.inf, -np.inf, 30.0], along=[[1.0, 1.0, 1.0]], gives=[0.0, 0.0, 0.0])
misfit(errors.erf, ArrayType(PAIR, np.dtype(np.int64)), error=TypeError)

rows(faddeeva, "erfcx dawsn", INSIDE)
rows(faddeeva, "modfresnelp modfresnelm", POSITIVE)
rows(faddeeva, "wofz", PLANE)
rows(faddeeva, "erfcx_derivative dawsn_derivative", given([-0.7, 3.0]), order=1)
rows(faddeeva, "erfcx_derivative dawsn_derivative", PLANE, order=2)
sample(faddeeva.voigt_profile, INSIDE, POSITIVE, POSITIVE)
sample(faddeeva.complex_voigt, INSIDE, POSITIVE, POSITIVE, order=1)

rows(exponential, "exp1 expi shichi sici spence", POSITIVE)
rows(exponential, "exprel", uniform(-2, 2, PAIR))
sample(exponential.expn, given([0.0, 2.0]), POSITIVE, differentiated=(1,))

rows(convenience, "expit log_expit exp10 sindg cosdg", INSIDE)
rows(convenience, "tandg cotdg", uniform(20, 70, PAIR))
rows(convenience, "log1p", PLANE)
rows(convenience, "entr", POSITIVE)
rows(convenience, "logit", uniform(0.1, 0.9, PAIR))
rows(convenience, "xlogy log_ratio rel_entr kl_div pseudo_huber powm1", POSITIVE, POSITIVE)
rows(convenience, "boxcox boxcox1p inv_boxcox inv_boxcox1p", POSITIVE, POSITIVE)
sample(convenience.xlog1py, POSITIVE, INSIDE)
sample(convenience.huber, given([1.0, 0.4]), given([0.3, -0.9]))
