"""Rows of `scipy.special`: distribution functions and their inverses."""

from __future__ import annotations

from typing import Any

from function_rows import row
from sampling import Source, given, uniform

PAIR = (2,)
SHAPE, X, P = uniform(1, 4, PAIR), uniform(0.5, 2, PAIR), uniform(0.2, 0.8, PAIR)


def each(names: str, *sources: Source, **options: Any) -> None:
    """A row for each of several functions of the same operands."""
    for name in names.split():
        row(f"scipy.special.{name}", *sources, **options)


# Continuous distributions.  What SciPy finds by iteration is not as accurate as the derivatives.

each("chdtr chdtrc", SHAPE, X)
each("stdtr", given([0.7, 3.0, 40.0, 5.0]), given([0.8, -2.0, 3.0, 0.0]), dtypes=())
each("gdtr gdtrc", SHAPE, SHAPE, X, dtypes=())
each("fdtr fdtrc", SHAPE, SHAPE, X, dtypes=())
each("fdtr", given([3.0]), given([5.0]), given([1e3]), note="tail", dtypes=(), order=1)
each("chdtri", SHAPE, P, dtypes=())
each("stdtrit", SHAPE, P, dtypes=(), order=1)
each("chdtriv", P, X, dtypes=(), looseness=10)
each("stdtridf", given([0.15, 0.1]), given([-1.3, -2.0]), dtypes=(), order=1, looseness=10)
each("gdtrix", SHAPE, SHAPE, P, dtypes=(), looseness=10)
each("fdtri", SHAPE, SHAPE, P, dtypes=(), order=1, looseness=10)
each("gdtria", P, SHAPE, X, dtypes=(), looseness=10)
each("gdtrib", SHAPE, P, X, dtypes=(), looseness=10)
each("fdtridfd", given([3.0]), given([0.65]), given([1.4]), dtypes=(), order=1, looseness=10)
each("btdtria", P, SHAPE, P, dtypes=(), looseness=10)
each("btdtrib", SHAPE, P, P, dtypes=(), order=1, looseness=10)
each("nrdtrimn nrdtrisd", P, given([0.3, 0.7]), X, dtypes=())
each("owens_t", given([0.5, -1.0, 0.0]), given([1.2, 0.3, -0.7]))
each("tklmbda", given([0.5, 0.3, 4.0]), given([0.3, 0.0, -0.5]))
each("kolmogorov", given([0.3, 0.7, 1.3]))
each("kolmogi", P, dtypes=())
each("smirnov smirnovi", given([1, 5], int), given([0.33, 0.28]), dtypes=())

# Discrete distributions: derivatives in probabilities and means; in numbers of events where SciPy does not round them

K, N = given([0, 2], int), given([5, 4], int)
each("pdtr pdtrc", given([0.0, 2.0]), X, differentiated=(1,))
each("pdtri", K, P, dtypes=())
each("pdtrik", P, SHAPE, dtypes=(), looseness=10)
each("bdtr bdtrc bdtri nbdtr nbdtrc nbdtri", K, N, P, dtypes=())
each("bdtrik nbdtrik", P, uniform(5, 8, PAIR), P, dtypes=(), looseness=10)
each("bdtrin nbdtrin", SHAPE, P, P, dtypes=(), order=1, looseness=10)

# Noncentral distributions

each("chndtr", X, SHAPE, given([0.4, 3.0]), dtypes=())
each("chndtrix", P, SHAPE, given([0.4, 3.0]), dtypes=(), looseness=10)
each("chndtridf", given([3.0]), given([0.3]), given([2.0]), dtypes=(), looseness=10)
each("chndtrinc", given([3.0]), given([2.0]), given([0.2]), dtypes=(), looseness=10)
each("ncfdtr", SHAPE, SHAPE, given([0.4, 3.0]), X, dtypes=())
each("ncfdtri", given([3.0]), given([5.0]), given([1.2]), given([0.4]), dtypes=(), looseness=10)
each("nctdtr", given([3.0, 10.0]), given([0.5, 1.0]), given([1.2, -0.7]), dtypes=())
each("nctdtrit", given([4.0]), given([0.5]), given([0.3]), dtypes=(), looseness=10)
each("nctdtrinc", given([4.0]), given([0.3]), given([0.7]), dtypes=(), looseness=10)
# The results of these are good to five digits only; tests/test_special_gamma.py solves more exactly.
each("nctdtridf", given([0.3]), given([1.0]), given([0.7]), dtypes=(), order=1, looseness=1e3)
each("ncfdtridfd", given([3.0]), given([0.3]), given([1.2]), given([0.9]), dtypes=(), order=1, looseness=1e3)
each("ncfdtridfn", given([0.4]), given([5.0]), given([1.2]), given([0.3]), dtypes=(), order=1, looseness=1e3)
each("ncfdtrinc", given([3.0]), given([5.0]), given([0.3]), given([0.9]), dtypes=(), order=1, looseness=1e3)
