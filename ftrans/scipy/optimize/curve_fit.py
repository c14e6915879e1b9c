"""`scipy.optimize.curve_fit` with the exact Jacobian of the model."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import scipy.optimize

from ...base.type_questions import is_plain
from ..derivatives import jacobian_of, vector
from ..supplied import Account, Function, Used, attempt, solving
from .calls import entering
from .squares import traced_curve_fit


def _curve_fit(
    f: Function,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    compile: bool | None = None,
    progress: bool | str = False,
    **kwargs: Any,
) -> Any:
    """`scipy.optimize.curve_fit` with the exact Jacobian of the model by its parameters.

    Args:
        f: the model, as for SciPy: f(xdata, *parameters).
        xdata: as for SciPy.
        ydata: as for SciPy.
        p0: as for SciPy.
        sigma: as for SciPy.
        absolute_sigma: as for SciPy.
        check_finite: as for SciPy.
        bounds: as for SciPy.
        method: as for SciPy.
        jac: as for SciPy; None is for the exact Jacobian, a string asks for differences.
        full_output: as for SciPy; the dictionary then has an entry "ftrans" that says what was used.
        nan_policy: as for SciPy.
        compile: as for `minimize`.
        progress: as for `minimize`.
        kwargs: as for SciPy: options of `leastsq` or `least_squares`.

    Returns:
        As SciPy: the parameters and their covariance, and more with `full_output`.

    Raises:
        ValueError: as SciPy.
        RuntimeError: as SciPy.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.optimize import curve_fit
        >>> t = np.linspace(0, 4, 50)
        >>> parameters, _ = curve_fit(lambda t, a, b: a * np.exp(-b * t), t, 2.5 * np.exp(-1.3 * t))
        >>> print(np.round(parameters, 6))
        [2.5 1.3]
    """
    account: Account = {}
    # These ask for differences, or are refused.
    if jac is None and not {"Dfun", "epsfcn", "diff_step", "args"} & kwargs.keys():
        jac = attempt(account, "jac", lambda used: _Jacobian(f, _as_data(xdata), ydata, p0, used, compile))
    if isinstance(jac, _Jacobian):
        xdata = jac.data
        # SciPy can divide a Jacobian by errors that have an axis only.
        sigma = None if sigma is None else np.atleast_1d(sigma)
    with solving("curve_fit", f, account, progress) as shown:
        found = scipy.optimize.curve_fit(
            shown, xdata, ydata, p0, sigma, absolute_sigma, check_finite, bounds, method, jac,
            full_output=full_output, nan_policy=nan_policy, **kwargs,
        )  # fmt: skip
    if full_output:
        found[2]["ftrans"] = account
    return found


class _Jacobian:
    """The Jacobian of a model by its parameters, as SciPy calls it.

    Attributes:
        data: the data for which it was made; where SciPy leaves data out, it is made again.

    Raises:
        ValueError: the model has one result for all data.
    """

    def __init__(self, f: Function, data: Any, ydata: Any, p0: Any, used: Used, compile: bool | None) -> None:
        self._f, self._used, self._compile = f, used, compile
        start = np.ones(_count(f)) if p0 is None else np.atleast_1d(p0).astype(float)
        # The start may be outside of where the model makes sense, if none is given.
        with np.errstate(all="ignore"):
            self._make(data, start)
        if used.shape[0] != np.size(ydata):
            raise ValueError(f"the model has {used.shape[0]} results for {np.size(ydata)} data")

    def _make(self, data: Any, at: np.ndarray) -> None:
        f = self._f
        self.data = data
        self._supplied = jacobian_of(vector(lambda p: f(data, *p)), (at,), self._used, False, self._compile)

    def __call__(self, data: Any, *parameters: Any) -> Any:
        at = np.array(parameters, float)
        if data is not self.data:
            self._make(data, at)
        return self._supplied(at)


def _as_data(xdata: Any) -> Any:
    """The data as SciPy hands it to the model."""
    return np.asarray(xdata, float) if is_plain(xdata, list | tuple | np.ndarray) else xdata


def _count(f: Function) -> int:
    """The number of parameters of a model, behind its data."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in positional for parameter in inspect.signature(f).parameters.values()) - 1


curve_fit = entering(scipy.optimize.curve_fit, _curve_fit)(traced_curve_fit)
