"""`scipy.optimize.differential_evolution`, which polishes its result with exact derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import OptimizeResult

from ..supplied import Account, Function, solving
from .calls import entering
from .minimize import minimize
from .other_minima import traced_global_minimum


def _differential_evolution(
    func: Function,
    bounds: Any,
    args: tuple[Any, ...] = (),
    strategy: Any = "best1bin",
    maxiter: int = 1000,
    popsize: int = 15,
    tol: float = 0.01,
    mutation: Any = (0.5, 1),
    recombination: float = 0.7,
    rng: Any = None,
    callback: Callable[..., Any] | None = None,
    disp: bool = False,
    polish: Any = True,
    init: Any = "latinhypercube",
    atol: float = 0,
    updating: str = "immediate",
    workers: Any = 1,
    constraints: Any = (),
    x0: Any = None,
    *,
    integrality: Any = None,
    vectorized: bool = False,
    seed: Any = None,
    compile: bool | None = None,
    progress: bool | str = False,
) -> OptimizeResult:
    """`scipy.optimize.differential_evolution` whose result is polished with exact derivatives.

    The search itself takes no derivatives.  Polishing is by `minimize` of this module, with SciPy's method for it:
    L-BFGS-B, or trust-constr if there are constraints.  SciPy before 1.17 polishes by its own `minimize`.

    Args:
        func: as for SciPy.
        bounds: as for SciPy.
        args: as for SciPy.
        strategy: as for SciPy.
        maxiter: as for SciPy.
        popsize: as for SciPy.
        tol: as for SciPy.
        mutation: as for SciPy.
        recombination: as for SciPy.
        rng: as for SciPy.
        callback: as for SciPy.
        disp: as for SciPy.
        polish: as for SciPy; a function is used as it is.
        init: as for SciPy.
        atol: as for SciPy.
        updating: as for SciPy.
        workers: as for SciPy.
        constraints: as for SciPy.
        x0: as for SciPy.
        integrality: as for SciPy.
        vectorized: as for SciPy.
        seed: as for SciPy.
        compile: as for `minimize`.
        progress: as for `minimize`.

    Returns:
        SciPy's result.  `result.ftrans` says what was used in polishing.

    Raises:
        ValueError: as SciPy.

    Example:
        >>> import numpy as np
        >>> from ftrans.scipy.optimize import differential_evolution
        >>> result = differential_evolution(lambda x: np.sum(x**2 - np.cos(9 * x)), [(-2, 2), (-2, 2)], rng=0)
        >>> print(np.round(result.x, 4) + 0.0)
        [0. 0.]
    """
    account: Account = {}

    def polished(_: Function, start: Any, **given: Any) -> OptimizeResult:
        def value(x: Any) -> Any:
            return func(x[:, np.newaxis], *args)[0] if vectorized else func(x, *args)

        method = "trust-constr" if constraints else "L-BFGS-B"
        found = minimize(value, start, method=method, compile=compile, **given)
        account.update(found.ftrans)
        return found

    with solving("differential_evolution", func, account, progress) as shown:
        # SciPy takes a generator by name only, and either of two names.
        random = {name: value for name, value in (("rng", rng), ("seed", seed)) if value is not None}
        result = scipy.optimize.differential_evolution(
            shown, bounds, args, strategy, maxiter, popsize, tol, mutation, recombination, **random,
            callback=callback, disp=disp, polish=polished if polish is True else polish, init=init, atol=atol,
            updating=updating, workers=workers, constraints=constraints, x0=x0, integrality=integrality,
            vectorized=vectorized,
        )  # fmt: skip
    result.ftrans = account
    return result


differential_evolution = entering(scipy.optimize.differential_evolution, _differential_evolution)(traced_global_minimum)
