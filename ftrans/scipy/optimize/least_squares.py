"""`scipy.optimize.least_squares` with the exact Jacobian of the residuals, sparse where that pays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult

from ..derivatives import jacobian_of, vector
from ..supplied import Account, Function, attempt, solving
from .calls import entering
from .constraints import TWO_POINT, LeftOut
from .squares import traced_least_squares

# A dense Jacobian with fewer elements is solved by singular values, as SciPy does by default.
_DENSE = 1_000_000


def _least_squares(
    fun: Function,
    x0: Any,
    jac: Any = TWO_POINT,
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    diff_step: Any = None,
    tr_solver: str | None = None,
    tr_options: dict[str, Any] | None = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    workers: Any = None,
    *,
    compile: bool | None = None,
    progress: bool | str = False,
) -> OptimizeResult:
    """`scipy.optimize.least_squares` with the exact Jacobian of the residuals.

    The Jacobian is a sparse array if `tr_solver="lsmr"` or `jac_sparsity` ask for that, or if it is sparse and has more
    than a million elements; SciPy then solves by LSMR.  Otherwise, and for `method="lm"`, it is dense.

    Args:
        fun: as for SciPy.
        x0: as for SciPy.
        jac: as for SciPy.  Left out, it is the exact Jacobian; "2-point" that is written out asks for differences.
        bounds: as for SciPy.
        method: as for SciPy.
        ftol: as for SciPy.
        xtol: as for SciPy.
        gtol: as for SciPy.
        x_scale: as for SciPy.
        loss: as for SciPy.
        f_scale: as for SciPy.
        diff_step: as for SciPy; a step asks for differences.
        tr_solver: as for SciPy.
        tr_options: as for SciPy.
        jac_sparsity: asks for a sparse Jacobian.  Its pattern is found by itself, so this one is used only where the
            Jacobian is left to SciPy.
        max_nfev: as for SciPy.
        verbose: as for SciPy.
        args: as for SciPy.
        kwargs: as for SciPy.
        callback: as for SciPy.
        workers: as for SciPy.
        compile: as for `minimize`.
        progress: as for `minimize`.

    Returns:
        SciPy's result.  `result.ftrans["jac"]` says what was used.

    Raises:
        ValueError: as SciPy.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.optimize import least_squares
        >>> t = np.linspace(0, 1, 20)
        >>> result = least_squares(lambda p: p[0] * np.exp(p[1] * t) - 2 * np.exp(-t), [1.0, 0.0])
        >>> print(np.round(result.x, 6), result.ftrans["jac"])  # doctest: +ELLIPSIS
        [ 2. -1.] dense Jacobian, NumPy, ... evaluations
    """
    account: Account = {}
    x = np.atleast_1d(np.asarray(x0))
    if isinstance(jac, LeftOut) and diff_step is None and x.ndim == 1 and x.dtype.kind in "fiub":
        f = vector(lambda x: fun(x, *args, **(kwargs or {})))
        asked = tr_solver == "lsmr" or jac_sparsity is not None
        sparse = method != "lm" and tr_solver != "exact"
        found = attempt(
            account,
            "jac",
            lambda used: jacobian_of(f, (x.astype(float),), used, sparse, compile, 0 if asked else _DENSE),
        )
        jac = "2-point" if found is None else lambda x, *_, **__: found(x)
    with solving("least_squares", fun, account, progress) as shown:
        result = scipy.optimize.least_squares(
            shown, x0, str(jac) if isinstance(jac, LeftOut) else jac, bounds, method, ftol, xtol, gtol, x_scale, loss,
            f_scale, diff_step, tr_solver, tr_options, jac_sparsity, max_nfev, verbose, args, kwargs, callback,
            workers=workers,
        )  # fmt: skip
    result.ftrans = account
    return result


least_squares = entering(scipy.optimize.least_squares, _least_squares)(traced_least_squares)
