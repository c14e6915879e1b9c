"""`scipy.optimize.root` and `fsolve`: with exact Jacobians, and in traces with derivatives of the root."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult

from ...base.source import at_line, user_line
from ...core.trace import Tracer
from ...numpy.promotion import asarray
from ..derivatives import jacobian_of, vector
from ..supplied import Account, Function, Used, attempt, solving
from .calls import BOOL, INT, NUMBER, TRACED_MESSAGE, Call, Given, alone, entering, refuse_complex, vector_of
from .solutions import root_of


def _traced_root(call: Call) -> OptimizeResult:
    """A root of equations, in SciPy's result."""
    refuse_complex(call, "x0")
    shape = np.shape(call["x0"])
    is_flat = call["method"].lower() in ("hybr", "lm")
    unknown = vector_of(math.prod(shape)) if is_flat else NUMBER.with_shape(shape)
    functions = {"fun": call.given("fun", unknown)}
    if callable(call["jac"]):
        functions["jac"] = call.given("jac", unknown)
    x, success, status, evaluations = call.searched(functions, _found, [unknown, BOOL, INT, INT])
    residual = _residual(functions["fun"], unknown.size, call)
    x = root_of(residual, x, call.name, call["x0"])
    return OptimizeResult(
        x=x, success=success, status=status, nfev=evaluations, fun=residual(x), message=TRACED_MESSAGE,
        method=call["method"],
    )  # fmt: skip


def _found(result: Any) -> Sequence[Any]:
    return result.x, result.success, result.get("status", 0), result.nfev


def _residual(f: Given, size: int, call: Call) -> Function:
    """The equations as a function of the unknowns that returns a vector.

    Raises:
        ValueError: there are more of them than unknowns, or fewer.
    """

    def residual(x: Tracer) -> Any:
        out = f(x)
        # The function may return its Jacobian, too.
        equations = np.reshape(asarray(out[0] if call.arguments.get("jac") is True else out), (-1,))
        if equations.size != size:
            raise ValueError(
                f"{call.name} has {equations.size} equations for {size} unknowns, so that what it finds is no root "
                f"that has a derivative; take ftrans.scipy.optimize.least_squares{at_line(user_line())}"
            )
        return equations

    return residual


def _traced_fsolve(call: Call) -> Any:
    """A root of equations, as `fsolve` returns it."""
    refuse_complex(call, "x0")
    unknown = vector_of(math.prod(np.shape(call["x0"])))
    functions = {"func": call.given("func", unknown)}
    if call["fprime"] is not None:
        functions["fprime"] = call.given("fprime", unknown)
    has_report = bool(call["full_output"])
    x, *outcome = call.searched(functions, _reported if has_report else alone, [unknown, *[INT] * (2 * has_report)])
    residual = _residual(functions["func"], unknown.size, call)
    x = root_of(residual, x, call.name, call["x0"])
    if not has_report:
        return x
    status, evaluations = outcome
    return x, {"nfev": evaluations, "fvec": residual(x)}, status, TRACED_MESSAGE


def _reported(found: Any) -> Sequence[Any]:
    return found[0], found[2], found[1]["nfev"]


def _root(
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


def _fsolve(
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


def _quasi_newton(call: Call) -> Any:
    """A root of equations, by itself."""
    refuse_complex(call, "xin")
    f = call.given("F", NUMBER.with_shape(np.shape(call["xin"])))
    (x,) = call.searched({"F": f}, alone, f.types)
    return root_of(_residual(f, x.size, call), x, call.name, call["xin"])


root = entering(scipy.optimize.root, _root)(_traced_root)
newton_krylov = entering(scipy.optimize.newton_krylov)(_quasi_newton)
broyden1 = entering(scipy.optimize.broyden1)(_quasi_newton)
broyden2 = entering(scipy.optimize.broyden2)(_quasi_newton)
anderson = entering(scipy.optimize.anderson)(_quasi_newton)
fsolve = entering(scipy.optimize.fsolve, _fsolve)(_traced_fsolve)
