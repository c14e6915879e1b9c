"""Rows of the sample table for the gamma, beta and zeta functions and for distribution functions.

One small row for each primitive: tests/rows_special_gamma.py and tests/rows_special_statistics.py go through the
functions that they make.
"""

from __future__ import annotations

import numpy as np
from sampling import Source, c128, f32, given, i64, misfit, sample, uniform

from ftrans.core.types import ArrayType
from ftrans.ops.special import gamma, incomplete, kolmogorov, noncentral, noncentral_t, normal, statistics, zeta

PAIR = (2,)
SHAPE, X, P = uniform(1, 4, PAIR), uniform(0.5, 2, PAIR), uniform(0.2, 0.8, PAIR)
K, N, ONE = given([0, 2], i64), given([5, 4], i64), given([1.2])


def rows(module: object, names: str, *sources: Source, orders: int = 0, smooth: bool = True) -> None:
    """A row for each of some primitives, differentiated in all operands but the first ones."""
    places = tuple(range(orders, len(sources)))
    for name in names.split():
        sample(getattr(module, name), *sources, differentiated=places, smooth=smooth)


rows(gamma, "gamma gammaln loggamma rgamma psi", X)
rows(gamma, "gamma psi", uniform(0.5, 2, PAIR, c128))
rows(gamma, "gammaln psi", uniform(0.5, 2, PAIR, f32))
rows(gamma, "polygamma", given([1.0, 2.0]), X, orders=1)
rows(gamma, "beta betaln poch", X, X)
rows(gamma, "binom", SHAPE, P)
sample(gamma.gammasgn, given([0.5, -0.5, -1.5, 0.0, -1.0]), smooth=False)
misfit(gamma.gamma, ArrayType((2,), np.dtype(np.int64)), error=TypeError)
misfit(gamma.beta, ArrayType((2,), np.dtype(np.float64)), ArrayType((3,), np.dtype(np.float64)), error=TypeError)

rows(zeta, "zeta", uniform(1.5, 3, PAIR), X)
rows(zeta, "riemann_zeta zetac", uniform(1.5, 3, PAIR))

rows(incomplete, "gamma_density gammainc gammaincc", SHAPE, X)
rows(incomplete, "beta_density betainc betaincc", SHAPE, SHAPE, P)
rows(incomplete, "gammaincinv gammainccinv", SHAPE, P)
rows(incomplete, "betaincinv betainccinv", SHAPE, SHAPE, P)
sample(incomplete.gamma_density, given([1.0, 2.0, 0.5, 1.0, 2.0]), given([0.0, 0.0, 0.0, np.inf, -1.0]), smooth=False)
sample(
    incomplete.beta_density,
    given([1.0, 2.0, 0.5, 2.0, 2.0]),
    given([3.0, 1.0, 2.0, 3.0, 2.0]),
    given([0.0, 1.0, 0.0, 1.5, np.nan]),
    smooth=False,
)

rows(statistics, "gdtr gdtrc fdtr fdtrc", SHAPE, SHAPE, X)
rows(statistics, "gdtrix fdtri", SHAPE, SHAPE, P)
rows(statistics, "chdtr chdtrc stdtr", SHAPE, X)
rows(statistics, "chdtri stdtrit", SHAPE, P)
rows(statistics, "pdtr pdtrc", given([0.0, 2.0]), X, orders=1)
rows(statistics, "pdtri", K, P, orders=1)
rows(statistics, "bdtr bdtrc bdtri nbdtr nbdtrc nbdtri", K, N, P, orders=2)
# What SciPy finds by iteration is not as accurate as the derivatives, which the rows of functions are for.
rows(statistics, "gdtria", P, SHAPE, X, smooth=False)
rows(statistics, "gdtrib", SHAPE, P, X, smooth=False)
rows(statistics, "btdtria", P, SHAPE, P, smooth=False)
rows(statistics, "btdtrib", SHAPE, P, P, smooth=False)
rows(statistics, "chdtriv", P, X, smooth=False)
rows(statistics, "stdtridf", given([0.15]), given([-1.3]), smooth=False)
rows(statistics, "fdtridfd", given([3.0]), given([0.65]), given([1.4]), smooth=False)
rows(statistics, "pdtrik", P, SHAPE, smooth=False)
rows(statistics, "bdtrik nbdtrik", P, uniform(5, 8, PAIR), P, smooth=False)
rows(statistics, "bdtrin nbdtrin", SHAPE, P, P, smooth=False)

rows(normal, "nrdtrimn nrdtrisd", P, given([0.3, 0.7]), X)
rows(normal, "owens_t tklmbda", X, P)
rows(kolmogorov, "kolmogorov", X)
rows(kolmogorov, "kolmogi", P)
rows(kolmogorov, "smirnov smirnovi", given([1.0, 5.0]), given([0.33, 0.28]), orders=1)

rows(noncentral, "chndtr", X, SHAPE, X)
rows(noncentral, "chndtrix", given([0.4]), given([3.0]), ONE, smooth=False)
rows(noncentral, "chndtridf", given([3.0]), given([0.3]), ONE, smooth=False)
rows(noncentral, "chndtrinc", given([3.0]), given([2.0]), given([0.2]), smooth=False)
rows(noncentral, "ncfdtr", SHAPE, SHAPE, X, X)
rows(noncentral, "ncfdtri", given([3.0]), given([5.0]), ONE, given([0.4]), smooth=False)
rows(noncentral, "ncfdtridfd", given([3.0]), given([0.3]), ONE, given([0.9]), smooth=False)
rows(noncentral, "ncfdtridfn", given([0.3]), given([5.0]), ONE, given([0.5]), smooth=False)
rows(noncentral, "ncfdtrinc", given([3.0]), given([5.0]), given([0.3]), given([0.9]), smooth=False)
rows(noncentral_t, "nctdtr", SHAPE, X, X)
rows(noncentral_t, "nctdtrit", given([4.0]), given([0.5]), given([0.3]), smooth=False)
rows(noncentral_t, "nctdtrinc", given([4.0]), given([0.3]), given([0.7]), smooth=False)
rows(noncentral_t, "nctdtridf", given([0.3]), given([1.0]), given([0.7]), smooth=False)
