"""`scipy.stats` on arrays and traced values: distributions under their names, and functions of samples.

    >>> import ftrans as ft
    >>> import numpy as np
    >>> from ftrans.scipy import stats
    >>> heights = np.array([1.62, 1.75, 1.81])
    >>> def log_likelihood(mean, deviation):
    ...     return np.sum(stats.norm.logpdf(heights, mean, deviation))
    >>> slopes = ft.grad(log_likelihood, argnums=(0, 1))(1.7, 0.1)
    >>> print(*np.round(slopes, 6))
    8.0 -9.0

Continuous ones have `pdf`, `logpdf`, `cdf`, `logcdf`, `sf`, `logsf`, `ppf` and `isf`, discrete ones `pmf`, `logpmf`,
`cdf`, `logcdf`, `sf` and `logsf`, those of vectors `pdf` and `logpdf`, or `pmf` and `logpmf`.  All have derivatives
with respect to the variable (if it is continuous), the shape parameters, `loc` and `scale`.  Outside of the support
densities are 0, and so are their derivatives; where the parameters make no sense the result is NaN, as it is in SciPy.

Most have `mean`, `var`, `std` and `entropy`, too, and continuous ones `median` and `interval`.  Random numbers, `rvs`,
are those that SciPy draws with the same `random_state`; they follow `loc` and `scale`.  Called with its parameters, as
in `norm(mean, deviation)`, a distribution is frozen.

Functions of samples, such as `skew`, `zscore`, `pearsonr` and `ttest_ind`, have derivatives with respect to the sample,
their probabilities as well.
"""

# ruff: noqa: F403 - what is imported here is what is exported

import typing as _typing

from ...base.exports import exported as _exported
from ...base.source import at_line as _at_line
from ...base.source import user_line as _user_line
from .comparisons import *
from .continuous import *
from .discrete import *
from .distribution import Distribution as _Distribution
from .half_line import *
from .interval import *
from .kde import *
from .multivariate import *
from .multivariate import Multivariate as _Multivariate
from .originals import enter as _enter
from .spreads import *
from .summaries import *
from .untraced import FUNCTIONS as _FUNCTIONS

_enter(x for x in list(globals().values()) if isinstance(x, _Distribution | _Multivariate))


def __getattr__(name: str) -> _typing.Any:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    raise AttributeError(
        f"ftrans.scipy.stats has no {name!r}; it has {', '.join(_exported(globals()))}. For plain "
        f"arrays there is scipy.stats{_at_line(_user_line())}"
    )


if not _typing.TYPE_CHECKING:
    # Type checkers read what each file exports in that file.
    __all__ = _exported(globals())

    def __dir__() -> list[str]:
        return __all__
