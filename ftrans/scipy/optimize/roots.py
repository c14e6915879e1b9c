"""`scipy.optimize.root` and `fsolve` with exact Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult

from ..derivatives import jacobian_of, vector
from ..supplied import Account, Function, Used, attempt, solving


def root(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    *,
    compile: bool | None = None,
    progress: bool | str = False,
) -> OptimizeResult:
    """`scipy.optimize.root` with the exact Jacobian, for the methods "hybr" and "lm"; the others take none.

    Args:
        fun: as for SciPy.
        x0: as for SciPy.
        args: as for SciPy.
        method: as for SciPy.
        jac: as for SciPy; None is for the exact Jacobian.
        tol: as for SciPy.
        callback: as for SciPy.
        options: as for SciPy.
        compile: as for `minimize`.
        progress: as for `minimize`.

    Returns:
        SciPy's result.  `result.ftrans["jac"]` says what was used.

    Raises:
        ValueError: as SciPy.
        TypeError: as SciPy.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.optimize import root
        >>> result = root(lambda x: [x[0] + x[1] - 3, x[0] * x[1] - 2], [3.0, 0.0])
        >>> print(np.round(result.x, 6))
        [2. 1.]
    """
    account: Account = {}
    options = dict(options or {})
    if (jac is None or jac is False) and isinstance(method, str) and method.lower() in ("hybr", "lm"):
        jac = _jacobian(fun, x0, args, options.get("col_deriv", False), account, compile)
    with solving("root", fun, account, progress) as shown:
        result = scipy.optimize.root(shown, x0, args, method, jac, tol, callback, options)
    result.ftrans = account
    return result


def fsolve(
    func: Function,
    x0: Any,
    args: Any = (),
    fprime: Any = None,
    full_output: Any = 0,
    col_deriv: Any = 0,
    xtol: float = 1.49012e-8,
    maxfev: int = 0,
    band: tuple[int, int] | None = None,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
    *,
    compile: bool | None = None,
    progress: bool | str = False,
) -> Any:
    """`scipy.optimize.fsolve` with the exact Jacobian.

    Args:
        func: as for SciPy.
        x0: as for SciPy.
        args: as for SciPy.
        fprime: as for SciPy; None is for the exact Jacobian, unless `band` or `epsfcn` ask for differences.
        full_output: as for SciPy; the dictionary then has an entry "ftrans" that says what was used.
        col_deriv: as for SciPy.
        xtol: as for SciPy.
        maxfev: as for SciPy.
        band: as for SciPy.
        epsfcn: as for SciPy.
        factor: as for SciPy.
        diag: as for SciPy.
        compile: as for `minimize`.
        progress: as for `minimize`.

    Returns:
        As SciPy: the solution, with `full_output` also a dictionary, a flag and a message.

    Raises:
        TypeError: as SciPy.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.optimize import fsolve
        >>> print(np.round(fsolve(lambda x: x**3 - 8, [1.0]), 6))
        [2.]
    """
    account: Account = {}
    if fprime is None and band is None and epsfcn is None:
        fprime = _jacobian(func, x0, args, col_deriv, account, compile)
    with solving("fsolve", func, account, progress) as shown:
        found = scipy.optimize.fsolve(
            shown, x0, args, fprime, full_output, col_deriv, xtol, maxfev, band, epsfcn, factor, diag
        )
    if full_output:
        found[1]["ftrans"] = account
    return found


def _jacobian(
    fun: Function, x0: Any, args: Any, transposed: Any, account: Account, compile: bool | None
) -> Function | None:
    """The Jacobian as MINPACK calls it; None if there is none."""
    given = args if isinstance(args, tuple) else (args,)
    x = np.asarray(x0)
    if x.dtype.kind not in "fiub":
        return None
    f = vector(lambda x: fun(x, *given))

    def make(used: Used) -> Function:
        found = jacobian_of(f, (x.astype(float).ravel(),), used, False, compile)
        return (lambda x, *_: found(x).T) if transposed else lambda x, *_: found(x)

    return attempt(account, "jac", make)
